/* SPDX-License-Identifier: Apache-2.0 */
/* CAST(x AS type): CastFcts. */
#include "cql/function.h"
#include "cql/function_internal.h"
#include "cql/function_number.h"
#include "cql/function_time.h"
#include "cql/type_internal.h"
#include "cql/value.h"
#include "cql/value_internal.h"

static int
cast_to_number(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	const struct type *from = function->argument_types[0];
	struct function_number number;
	int rc;

	(void)context;
	if (arguments[0].size == 0) {
		*out = slice_null;
		return 0;
	}
	switch (function->return_type->kind) {
	case TYPE_TINYINT:
		return value_put_integer(
		    function_to_integer(from, arguments[0], 1), 1, arena, out, err);
	case TYPE_SMALLINT:
		return value_put_integer(
		    function_to_integer(from, arguments[0], 2), 2, arena, out, err);
	case TYPE_INT:
		return value_put_integer(
		    function_to_integer(from, arguments[0], 4), 4, arena, out, err);
	case TYPE_BIGINT:
		return value_put_integer(
		    function_to_integer(from, arguments[0], 8), 8, arena, out, err);
	case TYPE_FLOAT:
		return value_put_float(function_to_float(from, arguments[0]), arena, out, err);
	case TYPE_DOUBLE:
		return value_put_double(function_to_double(from, arguments[0]), arena, out, err);
	case TYPE_VARINT:
		/* Through a long, whatever comes: that is what Cassandra's cast does. */
		rc = value_put_integer(
		    function_to_integer(from, arguments[0], 8), 8, arena, out, err);
		if (rc == 0)
			*out = type_trim_varint(*out);
		return rc;
	default:
		if (function_number_init(&number, from, arguments[0]) != 0)
			return error_set(
			    err, ERROR_INVALID, "NaN and Infinity cannot be cast to decimal");
		rc = function_number_put(&number, function->return_type, arena, out, err);
		function_number_fini(&number);
		return rc;
	}
}

static int
cast_to_text(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	const struct type *from = function->argument_types[0];
	struct buffer text;

	(void)context;
	if (from->kind == TYPE_ASCII || from->kind == TYPE_TEXT) {
		*out = arguments[0];
		return 0;
	}
	if (arguments[0].size == 0) {
		*out = slice_null;
		return 0;
	}
	if (from->kind == TYPE_COUNTER)
		from = type_native(TYPE_BIGINT);
	buffer_init(&text);
	value_to_string(from, arguments[0], &text);
	*out = text.is_failed ? slice_null : arena_copy(arena, buffer_slice(&text));
	buffer_fini(&text);
	return slice_is_null(*out) ? error_set(err, ERROR_NO_MEMORY, "out of memory for a value")
				   : 0;
}

/* Whether there is a conversion, and by what. */
static function_execute_fn
cast_find(const struct type *from, const struct type *to)
{
	switch (to->kind) {
	case TYPE_ASCII:
	case TYPE_TEXT:
		if (type_is_numeric(from) || from->kind == TYPE_BOOLEAN ||
		    from->kind == TYPE_UUID || from->kind == TYPE_TIMEUUID ||
		    from->kind == TYPE_INET || from->kind == TYPE_DATE || from->kind == TYPE_TIME ||
		    from->kind == TYPE_TIMESTAMP ||
		    (from->kind == TYPE_ASCII && to->kind == TYPE_TEXT))
			return cast_to_text;
		return NULL;
	case TYPE_TIMESTAMP:
		return from->kind == TYPE_DATE || from->kind == TYPE_TIMEUUID
		    ? function_convert_time
		    : NULL;
	case TYPE_DATE:
		return from->kind == TYPE_TIMESTAMP || from->kind == TYPE_TIMEUUID
		    ? function_convert_time
		    : NULL;
	case TYPE_COUNTER:
		return NULL;
	default:
		return type_is_numeric(to) && type_is_numeric(from) ? cast_to_number : NULL;
	}
}

int
function_cast(const struct type *from, const struct type *to, struct arena *arena,
    const struct function **out, struct error *err)
{
	struct function_list list = {.arena = arena};
	function_execute_fn execute;
	struct function *function;
	char *name;

	from = type_unreversed(from, NULL);
	*out = NULL;
	if (type_equal(from, to))
		return 0;
	execute = cast_find(from, to);
	if (execute == NULL)
		return error_set(err, ERROR_INVALID, "%s cannot be cast to %s",
		    type_name(arena, from), type_name(arena, to));
	/* castAsInt */
	name = arena_printf(arena, "castAs%s", type_name(arena, to));
	function = name != NULL ? function_list_add(&list, name, to, execute) : NULL;
	function_add_argument(&list, function, from);
	if (function == NULL || list.is_failed)
		return error_set(err, ERROR_NO_MEMORY, "out of memory for a cast");
	name[6] = (char)(name[6] - 'a' + 'A');
	*out = function;
	return 0;
}
