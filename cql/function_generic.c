/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of 5.0 whose types follow from their arguments: collections, vectors, mathematics. */
#include <math.h>
#include "cql/function.h"
#include "cql/function_internal.h"
#include "cql/function_number.h"
#include "cql/value_internal.h"

/* ---- Collections --------------------------------------------------------------------------- */

static int
generic_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "out of memory for a value");
}

/* map_keys and map_values. */
static int
generic_map_half(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	uint32_t wanted = function->return_type->kind == TYPE_SET ? 0 : 1, count = 0, i;
	struct type_iterator iterator;
	struct slice *elements, element;

	(void)context;
	type_iterator_init(&iterator, function->argument_types[0], arguments[0]);
	elements = arena_calloc(arena, iterator.count / 2 + 1, sizeof(*elements));
	if (elements == NULL)
		return generic_no_memory(err);
	for (i = 0; type_iterator_next(&iterator, &element, NULL); i++) {
		if ((i & 1) == wanted)
			elements[count++] = element;
	}
	*out = type_pack(function->return_type, elements, count, arena);
	return slice_is_null(*out) ? generic_no_memory(err) : 0;
}

static int
generic_collection_count(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	int32_t size = type_collection_size(arguments[0]);

	(void)function;
	(void)context;
	return value_put_integer(size < 0 ? 0 : size, 4, arena, out, err);
}

/* collection_min, _max, _sum and _avg feed the aggregate of that name with the elements. */
static int
generic_collection_aggregate(const struct function *function,
    const struct function_context *context, const struct slice *arguments, struct arena *arena,
    struct slice *out, struct error *err)
{
	const struct function *aggregate = function->data;
	void *state = function_aggregate_new(aggregate, arena);
	struct type_iterator iterator;
	struct slice element;

	(void)context;
	if (state == NULL)
		return generic_no_memory(err);
	type_iterator_init(&iterator, function->argument_types[0], arguments[0]);
	while (type_iterator_next(&iterator, &element, NULL)) {
		if (function_aggregate_add(aggregate, state, &element, arena, err) != 0)
			return -1;
	}
	return function_aggregate_result(aggregate, state, arena, out, err);
}

static void
generic_find_map_half(struct slice name, const struct type *type, struct function_list *list)
{
	bool is_keys = slice_equal_string(name, "map_keys");
	struct function *function;
	const struct type *result;

	if (type->kind != TYPE_MAP)
		return;
	result = is_keys ? type_set(list->arena, type->params[0], false)
			 : type_list(list->arena, type->params[1], false);
	if (result == NULL) {
		list->is_failed = true;
		return;
	}
	function =
	    function_list_add(list, is_keys ? "map_keys" : "map_values", result, generic_map_half);
	function_add_argument(list, function, type);
}

static void
generic_find_collection_aggregate(
    struct slice name, const struct type *type, struct function_list *list)
{
	struct slice inner = slice_of(name.data + 11, name.size - 11); /* after "collection_" */
	struct function_list aggregates = {.arena = list->arena};
	const struct type *element = type->params[0];
	uint32_t i;

	function_aggregate_find(inner, &aggregates);
	for (i = 0; i < aggregates.count; i++) {
		struct function *aggregate = aggregates.functions[i], *function;
		char *text;

		if (aggregate->argument_count != 1 ||
		    !type_equal(aggregate->argument_types[0], element))
			continue;
		text = arena_strndup(list->arena, (const char *)name.data, name.size);
		function = text == NULL ? NULL
					: function_list_add(list, text, aggregate->return_type,
					      generic_collection_aggregate);
		if (function == NULL) {
			list->is_failed = true;
			return;
		}
		function->data = aggregate;
		function_add_argument(list, function, type);
	}
	list->is_failed |= aggregates.is_failed;
}

/* ---- Vectors ------------------------------------------------------------------------------- */

static int
generic_similarity(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	char which = function->name[11]; /* after "similarity_" */
	size_t count = arguments[0].size / 4, i;
	float dot = 0, left = 0, right = 0, distance = 0, result;

	(void)context;
	if (arguments[0].size != arguments[1].size)
		return error_set(
		    err, ERROR_INVALID, "All arguments must have the same vector dimensions");
	for (i = 0; i < count; i++) {
		float a = value_get_float(slice_of(arguments[0].data + 4 * i, 4));
		float b = value_get_float(slice_of(arguments[1].data + 4 * i, 4));

		dot += a * b;
		left += a * a;
		right += b * b;
		distance += (a - b) * (a - b);
	}
	if (which == 'c') {
		if (left == 0 || right == 0)
			return error_set(err, ERROR_INVALID,
			    "Function system.similarity_cosine doesn't support all-zero vectors.");
		result = (1 + dot / (float)sqrt((double)left * right)) / 2;
	} else if (which == 'e') {
		result = 1 / (1 + distance);
	} else {
		result = (1 + dot) / 2;
	}
	return value_put_float(result, arena, out, err);
}

static void
generic_find_similarity(struct slice name, const struct function_argument *arguments,
    uint32_t count, struct function_list *list)
{
	static const char *const names[] = {
	    "similarity_cosine", "similarity_euclidean", "similarity_dot_product"};
	const struct type *type = NULL;
	struct function *function;
	uint32_t i;

	for (i = 0; i < count && i < 2; i++) {
		if (arguments[i].type != NULL && arguments[i].type->kind == TYPE_VECTOR &&
		    arguments[i].type->params[0]->kind == TYPE_FLOAT)
			type = arguments[i].type;
	}
	for (i = 0; i < 3; i++) {
		if (!slice_equal_string(name, names[i]))
			continue;
		/* Without a known side the dimension is not known either. */
		if (type == NULL)
			type = type_vector(list->arena, type_native(TYPE_FLOAT), 1);
		function =
		    function_list_add(list, names[i], type_native(TYPE_FLOAT), generic_similarity);
		function_add_argument(list, function, type);
		function_add_argument(list, function, type);
		list->is_failed |= type == NULL;
	}
}

/* ---- Mathematics --------------------------------------------------------------------------- */

static double
generic_compute(char which, double number)
{
	switch (which) {
	case 'a':
		return fabs(number);
	case 'e':
		return exp(number);
	case 'l':
		return log(number);
	case '1':
		return log10(number);
	default:
		return floor(number + 0.5);
	}
}

/* abs and round of integers and big numbers without leaving them. */
static int
generic_exact(const struct function *function, struct slice value, char which, struct arena *arena,
    struct slice *out, struct error *err)
{
	const struct type *type = function->return_type;
	struct function_number number, one = {NULL, 0};
	BIGNUM *rounded;
	int rc;

	if (function_number_init(&number, type, value) != 0)
		return generic_no_memory(err);
	if (which == 'a') {
		BN_set_negative(number.unscaled, 0);
	} else if (number.scale > 0) {
		one.unscaled = BN_new();
		rounded = one.unscaled != NULL && BN_one(one.unscaled)
		    ? function_bn_divide(&number, &one, 0, false)
		    : NULL;
		BN_free(one.unscaled);
		if (rounded == NULL) {
			function_number_fini(&number);
			return generic_no_memory(err);
		}
		BN_free(number.unscaled);
		number.unscaled = rounded;
		number.scale = 0;
	}
	if (type->kind == TYPE_VARINT || type->kind == TYPE_DECIMAL) {
		rc = function_number_put(&number, type, arena, out, err);
	} else {
		rc = value_varint_from_bn(number.unscaled, arena, out, err);
		if (rc == 0)
			rc = value_put_integer(
			    function_to_integer(type_native(TYPE_VARINT), *out, 8), value.size,
			    arena, out, err);
	}
	function_number_fini(&number);
	return rc;
}

/* The integer part of a decimal as a varint. */
static int
generic_truncate(struct slice decimal, struct arena *arena, struct slice *out, struct error *err)
{
	struct function_number number;
	int64_t scale;
	int rc = -1;

	if (function_number_init(&number, type_native(TYPE_DECIMAL), decimal) != 0)
		return generic_no_memory(err);
	for (scale = number.scale; scale > 0; scale--)
		BN_div_word(number.unscaled, 10);
	if (scale < 0 && function_bn_scale(number.unscaled, -scale) != 0)
		error_set(err, ERROR_INVALID, "the result has too many digits");
	else
		rc = value_varint_from_bn(number.unscaled, arena, out, err);
	function_number_fini(&number);
	return rc;
}

static int
generic_math(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	const struct type *type = function->return_type;
	char which = function->name[0] == 'l' && function->name[3] == '1' ? '1' : function->name[0];
	struct buffer text;
	double number;
	int rc;

	(void)context;
	if (arguments[0].size == 0) {
		*out = slice_null;
		return 0;
	}
	if (type->kind != TYPE_FLOAT && type->kind != TYPE_DOUBLE && (which == 'a' || which == 'r'))
		return generic_exact(function, arguments[0], which, arena, out, err);
	number = generic_compute(which, function_to_double(type, arguments[0]));
	switch (type->kind) {
	case TYPE_FLOAT:
		return value_put_float((float)number, arena, out, err);
	case TYPE_DOUBLE:
		return value_put_double(number, arena, out, err);
	case TYPE_VARINT:
	case TYPE_DECIMAL:
		buffer_init(&text);
		value_print_double(number, &text);
		rc = isfinite(number) ? value_text_to_decimal(buffer_slice(&text), arena, out) : -1;
		buffer_fini(&text);
		if (rc != 0)
			return error_set(
			    err, ERROR_INVALID, "%s has no finite result", function->name);
		if (type->kind == TYPE_VARINT)
			return generic_truncate(*out, arena, out, err);
		return 0;
	default:
		/* As Java narrows a double. */
		if (value_put_double(number, arena, out, err) != 0)
			return -1;
		return value_put_integer(
		    function_to_integer(type_native(TYPE_DOUBLE), *out, arguments[0].size),
		    arguments[0].size, arena, out, err);
	}
}

/* ---- The list ------------------------------------------------------------------------------ */

void
function_generic_find(struct slice name, const struct function_argument *arguments, uint32_t count,
    struct function_list *list)
{
	static const char *const math[] = {"abs", "exp", "log", "log10", "round"};
	const struct type *type = count > 0 && arguments[0].type != NULL
	    ? type_unreversed(arguments[0].type, NULL)
	    : NULL;
	struct function *function;
	size_t i;
	int kind;

	generic_find_similarity(name, arguments, count, list);
	function_mask_find(name, type, list);
	for (i = 0; i < sizeof(math) / sizeof(math[0]); i++) {
		if (!slice_equal_string(name, math[i]))
			continue;
		for (kind = 0; kind < TYPE_NATIVE_COUNT; kind++) {
			if (kind != TYPE_COUNTER &&
			    type_is_numeric(type_native((enum type_kind)kind)))
				function_list_add_native(
				    list, math[i], kind, generic_math, kind, -1, -1);
		}
	}
	if (type == NULL)
		return;
	if (slice_equal_string(name, "map_keys") || slice_equal_string(name, "map_values"))
		generic_find_map_half(name, type, list);
	if (!type_is_collection(type) || name.size < 12 ||
	    memcmp(name.data, "collection_", 11) != 0)
		return;
	if (slice_equal_string(name, "collection_count")) {
		function = function_list_add(
		    list, "collection_count", type_native(TYPE_INT), generic_collection_count);
		function_add_argument(list, function, type);
	} else if (type->kind != TYPE_MAP) {
		generic_find_collection_aggregate(name, type, list);
	}
}
