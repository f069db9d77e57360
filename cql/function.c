/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and calling functions: FunctionResolver. */
#include <assert.h>
#include <stdio.h>
#include "base/hash.h"
#include "cql/function.h"
#include "cql/function_internal.h"
#include "cql/json.h"
#include "cql/value_internal.h"

/* ---- Candidates ---------------------------------------------------------------------------- */

struct function *
function_list_add(struct function_list *list, const char *name, const struct type *return_type,
    function_execute_fn execute)
{
	struct function *function = arena_zalloc(list->arena, sizeof(*function));
	struct function **functions;

	if (list->count == list->capacity) {
		uint32_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;

		functions = arena_calloc(list->arena, capacity, sizeof(*functions));
		if (functions == NULL || function == NULL) {
			list->is_failed = true;
			return NULL;
		}
		if (list->count > 0)
			memcpy(functions, list->functions, list->count * sizeof(*functions));
		list->functions = functions;
		list->capacity = capacity;
	}
	if (function == NULL) {
		list->is_failed = true;
		return NULL;
	}
	function->keyspace = "system";
	function->name = name;
	function->return_type = return_type;
	function->is_pure = true;
	function->execute = execute;
	list->functions[list->count++] = function;
	return function;
}

void
function_add_argument(
    struct function_list *list, struct function *function, const struct type *type)
{
	const struct type **types;

	if (function == NULL)
		return;
	types = arena_calloc(list->arena, function->argument_count + 1, sizeof(*types));
	if (types == NULL) {
		list->is_failed = true;
		return;
	}
	if (function->argument_count > 0)
		memcpy(types, function->argument_types, function->argument_count * sizeof(*types));
	types[function->argument_count++] = type;
	function->argument_types = types;
}

struct function *
function_list_add_native(struct function_list *list, const char *name, int return_kind,
    function_execute_fn execute, int first, int second, int third)
{
	const int kinds[] = {first, second, third};
	struct function *function =
	    function_list_add(list, name, type_native((enum type_kind)return_kind), execute);
	int i;

	for (i = 0; i < 3 && kinds[i] >= 0; i++)
		function_add_argument(list, function, type_native((enum type_kind)kinds[i]));
	return function;
}

/* ---- Error texts --------------------------------------------------------------------------- */

static void
function_put_name(const char *name, struct buffer *out)
{
	/* Names of operators begin with '_', which CQL must quote. */
	buffer_printf(out, name[0] == '_' ? "system.\"%s\"" : "system.%s", name);
}

/* "system.todate : (timeuuid) -> date, ..." */
static const char *
function_signatures(const struct function_list *list)
{
	struct buffer out;
	const char *text;
	uint32_t i, j;

	buffer_init(&out);
	for (i = 0; i < list->count; i++) {
		const struct function *function = list->functions[i];

		if (i > 0)
			buffer_put_string(&out, ", ");
		function_put_name(function->name, &out);
		buffer_put_string(&out, " : (");
		for (j = 0; j < function->argument_count; j++) {
			if (j > 0)
				buffer_put_string(&out, ", ");
			type_print_cql(function->argument_types[j], &out);
		}
		buffer_put_string(&out, ") -> ");
		type_print_cql(function->return_type, &out);
	}
	text = arena_strndup(list->arena, out.size > 0 ? (const char *)out.data : "", out.size);
	buffer_fini(&out);
	return text != NULL ? text : "?";
}

static const char *
function_argument_text(const struct function_argument *argument, struct arena *arena)
{
	assert(argument != NULL);
	if (argument->text != NULL)
		return argument->text;
	return argument->type != NULL ? type_name(arena, argument->type) : "?";
}

/* ---- Matching ------------------------------------------------------------------------------ */

static enum assignment
function_test_type(const struct type *from, const struct type *to)
{
	if (type_equal(from, to))
		return ASSIGNMENT_EXACT;
	/* Bytes can stand for anything: count(), min() and max() of a collection are those of blobs. */
	if (to->kind == TYPE_BLOB)
		return ASSIGNMENT_WEAK;
	return type_is_value_compatible(to, from) ? ASSIGNMENT_WEAK : ASSIGNMENT_NOT;
}

static enum assignment
function_test_argument(const struct function_argument *argument, const struct type *type)
{
	if (argument->test != NULL)
		return argument->test(argument->term, type);
	if (argument->type == NULL)
		return ASSIGNMENT_WEAK;
	/* Keys of clustering order and frozenness do not matter to a function. */
	return function_test_type(type_unreversed(argument->type, NULL), type);
}

static enum assignment
function_match(
    const struct function *function, const struct function_argument *arguments, uint32_t count)
{
	enum assignment result = ASSIGNMENT_EXACT;
	uint32_t i;

	if (function->argument_count != count)
		return ASSIGNMENT_NOT;
	for (i = 0; i < count; i++) {
		enum assignment one =
		    function_test_argument(&arguments[i], function->argument_types[i]);

		if (one == ASSIGNMENT_NOT)
			return ASSIGNMENT_NOT;
		if (one == ASSIGNMENT_WEAK)
			result = ASSIGNMENT_WEAK;
	}
	return result;
}

/* Keep the candidates that fit; an exact one is returned at once. */
static const struct function *
function_filter(struct function_list *list, const struct function_argument *arguments,
    uint32_t count, const struct type *receiver, struct function_list *fitting)
{
	uint32_t i;

	for (i = 0; i < list->count; i++) {
		struct function *function = list->functions[i];
		enum assignment match;

		if (receiver != NULL &&
		    function_test_type(function->return_type, receiver) == ASSIGNMENT_NOT)
			continue;
		match = function_match(function, arguments, count);
		if (match == ASSIGNMENT_EXACT)
			return function;
		/* The array of the whole list serves: what is kept is never ahead. */
		if (match == ASSIGNMENT_WEAK)
			fitting->functions[fitting->count++] = function;
	}
	return NULL;
}

static int
function_check_only(const struct function *function, const struct function_argument *arguments,
    uint32_t count, struct arena *arena, struct error *err)
{
	uint32_t i;

	if (count != function->argument_count)
		return error_set(err, ERROR_INVALID,
		    "Invalid number of arguments in call to function system.%s: %u required but %u "
		    "provided",
		    function->name, function->argument_count, count);
	for (i = 0; i < count; i++) {
		if (function_test_argument(&arguments[i], function->argument_types[i]) ==
		    ASSIGNMENT_NOT)
			return error_set(err, ERROR_INVALID,
			    "Type error: %s cannot be passed as argument %u of function system.%s "
			    "of type %s",
			    function_argument_text(&arguments[i], arena), i, function->name,
			    type_name(arena, function->argument_types[i]));
	}
	return 0;
}

/* What an operator stands for: written by nobody, and told with its keyspace. */
static bool
function_is_internal(const struct function *function)
{
	return function->name[0] == '_' || strncmp(function->name, "castAs", 6) == 0;
}

static int
function_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "out of memory for a function call");
}

static int
function_pick(struct function_list *list, const struct function_argument *arguments, uint32_t count,
    const struct type *receiver, const struct function **out, struct error *err)
{
	struct function_list fitting = {.arena = list->arena};

	if (list->is_failed)
		return function_no_memory(err);
	if (list->count == 1) {
		*out = list->functions[0];
		return function_check_only(*out, arguments, count, list->arena, err);
	}
	fitting.functions = arena_calloc(list->arena, list->count + 1, sizeof(*fitting.functions));
	if (fitting.functions == NULL)
		return function_no_memory(err);
	*out = function_filter(list, arguments, count, receiver, &fitting);
	if (*out != NULL)
		return 0;
	if (fitting.count == 1) {
		*out = fitting.functions[0];
		return 0;
	}
	if (fitting.count == 0)
		return error_set(err, ERROR_INVALID,
		    "Invalid call to function %s%s, none of its type signatures match (known "
		    "type signatures: %s)",
		    function_is_internal(list->functions[0]) ? "system." : "",
		    list->functions[0]->name, function_signatures(list));
	return error_set(err, ERROR_INVALID,
	    "Ambiguous call to function %s%s (can be matched by following signatures: %s): "
	    "use type casts to disambiguate",
	    function_is_internal(list->functions[0]) ? "system." : "", list->functions[0]->name,
	    function_signatures(&fitting));
}

/* ---- token, toJson, fromJson --------------------------------------------------------------- */

static int
function_token(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	const struct table_metadata *table = function->data;
	struct slice key;
	uint32_t i;

	(void)context;
	for (i = 0; i < function->argument_count; i++) {
		if (slice_is_null(arguments[i])) {
			*out = slice_null;
			return 0;
		}
		if (arguments[i].size > UINT16_MAX)
			return error_set(err, ERROR_INVALID,
			    "Key length of %zu is longer than maximum of 65535", arguments[i].size);
	}
	key = table_partition_key(table, arguments, arena);
	if (slice_is_null(key))
		return function_no_memory(err);
	return value_put_integer(murmur3_token(key), 8, arena, out, err);
}

static void
function_token_find(const struct table_metadata *table, struct function_list *list)
{
	struct function *function =
	    function_list_add(list, "token", type_native(TYPE_BIGINT), function_token);
	uint32_t i;

	if (function == NULL)
		return;
	function->called_on_null = true;
	function->data = table;
	for (i = 0; i < table->partition_key_count; i++)
		function_add_argument(list, function, table->partition_key[i].type);
}

static int
function_to_json(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	struct buffer text;

	(void)context;
	buffer_init(&text);
	json_from_value(function->argument_types[0], arguments[0], &text);
	*out = text.is_failed ? slice_null : arena_copy(arena, buffer_slice(&text));
	buffer_fini(&text);
	return slice_is_null(*out) ? function_no_memory(err) : 0;
}

static int
function_from_json(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	(void)context;
	if (json_to_value(function->return_type, arguments[0], arena, out, err) == 0)
		return 0;
	if (err != NULL && err->code == ERROR_INVALID) {
		char cause[ERROR_TEXT_MAX];

		snprintf(cause, sizeof(cause), "%s", err->text);
		error_set(err, ERROR_FUNCTION_FAILURE,
		    "execution of 'system.fromjson[text]' failed: %s", cause);
		snprintf(err->keyspace, sizeof(err->keyspace), "system");
		snprintf(err->table, sizeof(err->table), "fromjson");
		snprintf(err->arguments, sizeof(err->arguments), "text");
	}
	return -1;
}

static int
function_json_find(struct slice name, const struct function_argument *arguments, uint32_t count,
    const struct type *receiver, struct function_list *list, struct error *err)
{
	struct function *function;

	if (function_name_is(name, "tojson", "to_json")) {
		if (receiver != NULL)
			return error_set(err, ERROR_INVALID,
			    "toJson() may only be used within the selection clause of SELECT "
			    "statements");
		if (count != 1 || arguments[0].type == NULL)
			return error_set(err, ERROR_INVALID,
			    count != 1 ? "toJson() only accepts one argument (got %u)"
				       : "toJson() needs an argument of a known type",
			    count);
		function =
		    function_list_add(list, "tojson", type_native(TYPE_TEXT), function_to_json);
		function_add_argument(list, function, arguments[0].type);
		if (function != NULL)
			function->called_on_null = true;
		return 0;
	}
	if (!function_name_is(name, "fromjson", "from_json"))
		return 0;
	if (receiver == NULL)
		return error_set(err, ERROR_INVALID,
		    "fromJson() cannot be used in the selection clause of a SELECT statement");
	function = function_list_add(list, "fromjson", receiver, function_from_json);
	function_add_argument(list, function, type_native(TYPE_TEXT));
	return 0;
}

/* ---- The door ------------------------------------------------------------------------------ */

static int
function_collect(struct slice name, const struct function_argument *arguments, uint32_t count,
    const struct type *receiver, const struct table_metadata *table, struct function_list *list,
    struct error *err)
{
	if (slice_equal_string(name, "token") && table != NULL)
		function_token_find(table, list);
	if (function_json_find(name, arguments, count, receiver, list, err) != 0)
		return -1;
	function_time_find(name, list);
	function_blob_find(name, list);
	function_aggregate_find(name, list);
	function_generic_find(name, arguments, count, list);
	return 0;
}

int
function_resolve(struct slice keyspace, struct slice name,
    const struct function_argument *arguments, uint32_t count, const struct type *receiver,
    const struct table_metadata *table, struct arena *arena, const struct function **out,
    struct error *err)
{
	struct function_list list = {.arena = arena};

	if (slice_is_null(keyspace) || slice_equal_string(keyspace, "system")) {
		if (function_collect(name, arguments, count, receiver, table, &list, err) != 0)
			return -1;
		if (list.is_failed)
			return function_no_memory(err);
	}
	if (list.count == 0)
		return error_set(err, ERROR_INVALID, "Unknown function '%.*s%s%.*s'",
		    VALUE_ARGS(keyspace), slice_is_null(keyspace) ? "" : ".", VALUE_ARGS(name));
	return function_pick(&list, arguments, count, receiver, out, err);
}

bool
function_is_native(struct slice name)
{
	struct function_argument unknown = {NULL, NULL, NULL, NULL};
	struct function_list list;
	struct arena arena;
	bool is_native;

	if (slice_equal_string(name, "token") || function_name_is(name, "tojson", "to_json") ||
	    function_name_is(name, "fromjson", "from_json"))
		return true;
	arena_init(&arena, 16384);
	list = (struct function_list){.arena = &arena};
	function_time_find(name, &list);
	function_blob_find(name, &list);
	function_aggregate_find(name, &list);
	function_generic_find(name, &unknown, 1, &list);
	is_native = list.count > 0 || list.is_failed;
	arena_fini(&arena);
	return is_native;
}

static bool
function_is_marker(const struct function_argument *argument)
{
	assert(argument != NULL);
	return argument->text != NULL && strcmp(argument->text, "?") == 0;
}

/* Several overloads fit an operator: what would give the receiver's type from operands of it. */
static const struct function *
function_operator_by_receiver(const struct function_list *fitting, const struct type *receiver)
{
	uint32_t i;

	for (i = 0; i < fitting->count; i++) {
		const struct type *const *types = fitting->functions[i]->argument_types;

		if (type_equal(receiver, types[0]) && type_equal(receiver, types[1]))
			return fitting->functions[i];
	}
	return NULL;
}

int
function_operator(char symbol, const struct function_argument *left,
    const struct function_argument *right, const struct type *receiver, struct arena *arena,
    const struct function **out, struct error *err)
{
	struct function_argument arguments[2] = {*left, right != NULL ? *right : *left};
	struct function_list list = {.arena = arena}, fitting = {.arena = arena};
	uint32_t count = symbol == 'n' ? 1 : 2;

	if (receiver != NULL)
		receiver = type_unreversed(receiver, NULL);
	function_operator_find(symbol, &list);
	if (list.is_failed)
		return function_no_memory(err);
	fitting.functions = arena_calloc(arena, list.count + 1, sizeof(*fitting.functions));
	if (fitting.functions == NULL)
		return function_no_memory(err);
	*out = function_filter(&list, arguments, count, receiver, &fitting);
	if (*out == NULL && fitting.count == 1)
		*out = fitting.functions[0];
	if (*out != NULL)
		return 0;
	if (symbol == 'n')
		return fitting.count > 0
		    ? error_set(
			  err, ERROR_INVALID, "Ambiguous negation: use type casts to disambiguate")
		    : error_set(err, ERROR_INVALID,
			  "Invalid call to function system._negate, none of its type "
			  "signatures match (known type signatures: %s)",
			  function_signatures(&list));
	if (fitting.count == 0)
		return error_set(err, ERROR_INVALID,
		    "the '%c' operation is not supported between %s and %s", symbol,
		    function_argument_text(left, arena), function_argument_text(right, arena));
	if (receiver != NULL && !function_is_marker(left) && !function_is_marker(right)) {
		*out = function_operator_by_receiver(&fitting, receiver);
		if (*out != NULL)
			return 0;
	}
	return error_set(err, ERROR_INVALID,
	    "Ambiguous '%c' operation with args %s and %s: use type hint to disambiguate, example "
	    "'(int) ?'",
	    symbol, function_argument_text(left, arena), function_argument_text(right, arena));
}

int
function_call(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	uint32_t i;

	if (!function->called_on_null) {
		for (i = 0; i < function->argument_count; i++) {
			if (slice_is_null(arguments[i])) {
				*out = slice_null;
				return 0;
			}
		}
	}
	return function->execute(function, context, arguments, arena, out, err);
}
