/* SPDX-License-Identifier: Apache-2.0 */
/* typeAsBlob() and blobAsType() for every native type. */
#include <stdio.h>
#include "cql/function.h"
#include "cql/function_internal.h"
#include "cql/type_internal.h"
#include "cql/value_internal.h"

static int
blob_from_value(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	(void)function;
	(void)context;
	(void)arena;
	(void)err;
	*out = arguments[0];
	return 0;
}

static int
blob_to_value(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	const struct type *type = function->return_type;
	struct slice value = arguments[0];
	char *hex;

	(void)context;
	*out = value;
	/* The version of a timeuuid is not looked at here. */
	if (type->kind == TYPE_TIMEUUID)
		type = type_native(TYPE_UUID);
	if (type_validate(type, value, NULL) == 0)
		return 0;
	if (value.size > 64)
		value.size = 64;
	hex = arena_alloc_bytes(arena, 2 * value.size + 1);
	if (hex != NULL)
		hex_encode(value, hex);
	return error_set(err, ERROR_INVALID,
	    "In call to function system.%s, value 0x%s is not a valid binary representation for "
	    "type %s",
	    function->name, hex != NULL ? hex : "", type_name(arena, function->return_type));
}

/* "int" for TYPE_INT; "varchar" is a second name of text. */
static void
blob_find_type(struct slice name, const char *type_text, int kind, struct function_list *list)
{
	char camel[32], snake[32];

	snprintf(camel, sizeof(camel), "%sasblob", type_text);
	snprintf(snake, sizeof(snake), "%s_as_blob", type_text);
	if (function_name_is(name, camel, snake))
		function_list_add_native(list, arena_strdup(list->arena, camel), TYPE_BLOB,
		    blob_from_value, kind, -1, -1);
	snprintf(camel, sizeof(camel), "blobas%s", type_text);
	snprintf(snake, sizeof(snake), "blob_as_%s", type_text);
	if (function_name_is(name, camel, snake))
		function_list_add_native(
		    list, arena_strdup(list->arena, camel), kind, blob_to_value, TYPE_BLOB, -1, -1);
}

void
function_blob_find(struct slice name, struct function_list *list)
{
	int kind;

	for (kind = 0; kind < TYPE_NATIVE_COUNT; kind++) {
		if (kind != TYPE_BLOB)
			blob_find_type(name, type_cql_of((enum type_kind)kind), kind, list);
	}
	blob_find_type(name, "varchar", TYPE_TEXT, list);
}
