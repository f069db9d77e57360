/* SPDX-License-Identifier: Apache-2.0 */
/* The masking functions of 5.0: mask_null, mask_default, mask_replace, mask_inner, mask_outer and
 * mask_hash. */
#include <stdio.h>
#include <openssl/evp.h>
#include "cql/function.h"
#include "cql/function_internal.h"
#include "cql/type_internal.h"
#include "cql/value_internal.h"

static int
mask_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "out of memory for a value");
}

static int
mask_null(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	(void)function;
	(void)context;
	(void)arguments;
	(void)arena;
	(void)err;
	*out = slice_null;
	return 0;
}

static int
mask_replace(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	(void)function;
	(void)context;
	(void)arena;
	(void)err;
	*out = arguments[1];
	return 0;
}

/* ---- mask_default -------------------------------------------------------------------------- */

static int mask_default_value(
    const struct type *type, struct arena *arena, struct slice *out, struct error *err);

/* Tuples, user types and vectors of masked elements. */
static int
mask_default_elements(const struct type *type, uint32_t count, struct arena *arena,
    struct slice *out, struct error *err)
{
	struct slice *elements = arena_calloc(arena, count + 1, sizeof(*elements));
	uint32_t i;

	if (elements == NULL)
		return mask_no_memory(err);
	for (i = 0; i < count; i++) {
		const struct type *element = type->params[type->kind == TYPE_VECTOR ? 0 : i];

		if (mask_default_value(element, arena, &elements[i], err) != 0)
			return -1;
	}
	*out = type_pack(type, elements, count, arena);
	return slice_is_null(*out) ? mask_no_memory(err) : 0;
}

/* Zero, four asterisks, the beginning of time, nothing: a fixed value of each type. */
static int
mask_default_value(
    const struct type *type, struct arena *arena, struct slice *out, struct error *err)
{
	static const uint8_t zeros[16];
	uint8_t *bytes;

	switch (type->kind) {
	case TYPE_ASCII:
	case TYPE_TEXT:
		*out = slice_of_string("****");
		return 0;
	case TYPE_DATE:
		return value_put_integer(INT64_C(0x80000000), 4, arena, out, err);
	case TYPE_TIMEUUID:
		bytes = value_alloc(arena, 16, err);
		if (bytes == NULL)
			return -1;
		function_min_timeuuid(0, bytes);
		*out = slice_of(bytes, 16);
		return 0;
	case TYPE_UUID:
		*out = slice_of(zeros, 16);
		return 0;
	case TYPE_BIGINT:
	case TYPE_COUNTER:
	case TYPE_DOUBLE:
	case TYPE_TIME:
	case TYPE_TIMESTAMP:
		*out = slice_of(zeros, 8);
		return 0;
	case TYPE_DECIMAL:
		*out = slice_of(zeros, 5);
		return 0;
	case TYPE_FLOAT:
	case TYPE_INET:
	case TYPE_INT:
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_MAP:
		*out = slice_of(zeros, 4);
		return 0;
	case TYPE_DURATION:
		*out = slice_of(zeros, 3);
		return 0;
	case TYPE_SMALLINT:
		*out = slice_of(zeros, 2);
		return 0;
	case TYPE_BOOLEAN:
	case TYPE_TINYINT:
	case TYPE_VARINT:
		*out = slice_of(zeros, 1);
		return 0;
	case TYPE_TUPLE:
	case TYPE_UDT:
		return mask_default_elements(type, type->param_count, arena, out, err);
	case TYPE_VECTOR:
		return mask_default_elements(type, type->dimension, arena, out, err);
	default:
		*out = slice_empty;
		return 0;
	}
}

static int
mask_default(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	(void)context;
	(void)arguments;
	return mask_default_value(function->return_type, arena, out, err);
}

/* ---- mask_inner, mask_outer ---------------------------------------------------------------- */

static size_t
mask_character_size(struct slice text, size_t at)
{
	size_t size = 1;

	while (at + size < text.size && (text.data[at + size] & 0xc0) == 0x80)
		size++;
	return size;
}

static int64_t
mask_count_characters(struct slice text)
{
	int64_t count = 0;
	size_t at;

	for (at = 0; at < text.size; at += mask_character_size(text, at))
		count++;
	return count;
}

static int64_t
mask_margin(struct slice value)
{
	int64_t margin = value.size == 4 ? type_load_signed(value) : 0;

	return margin < 0 ? 0 : margin;
}

static int
mask_partial(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	bool is_inner = function->name[5] == 'i';
	struct slice text = arguments[0], padding = slice_of_string("*");
	int64_t begin = mask_margin(arguments[1]), end = mask_margin(arguments[2]), count, i;
	uint8_t *masked, *to;
	size_t at = 0;

	(void)context;
	if (slice_is_null(text)) {
		*out = slice_null;
		return 0;
	}
	if (function->argument_count > 3 && !slice_is_null(arguments[3]))
		padding = arguments[3];
	if (mask_count_characters(padding) != 1)
		return error_set(err, ERROR_INVALID,
		    "The padding argument for function system.%s should be single-character, but "
		    "'%.*s' has %d characters.",
		    function->name, VALUE_ARGS(padding), (int)mask_count_characters(padding));
	count = mask_count_characters(text);
	to = masked = value_alloc(arena, text.size * padding.size + text.size + 1, err);
	if (masked == NULL)
		return -1;
	for (i = 0; i < count; i++) {
		size_t size = mask_character_size(text, at);
		bool is_margin = i < begin || i >= count - end;
		struct slice from = slice_of(text.data + at, size);

		if (is_margin != is_inner)
			from = padding;
		memcpy(to, from.data, from.size);
		to += from.size;
		at += size;
	}
	*out = slice_of(masked, (size_t)(to - masked));
	return 0;
}

/* ---- mask_hash ----------------------------------------------------------------------------- */

static int
mask_hash(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	struct slice name = slice_of_string("SHA-256");
	const EVP_MD *digest;
	unsigned size = 0;
	uint8_t *bytes;
	char text[32];

	(void)context;
	if (slice_is_null(arguments[0])) {
		*out = slice_null;
		return 0;
	}
	if (function->argument_count > 1 && !slice_is_null(arguments[1]))
		name = arguments[1];
	snprintf(text, sizeof(text), "%.*s", VALUE_ARGS(name));
	digest = EVP_get_digestbyname(text);
	if (digest == NULL || name.size >= sizeof(text))
		return error_set(
		    err, ERROR_INVALID, "Hash algorithm not found: %.*s", VALUE_ARGS(name));
	bytes = value_alloc(arena, EVP_MAX_MD_SIZE, err);
	if (bytes == NULL)
		return -1;
	if (!EVP_Digest(arguments[0].data, arguments[0].size, bytes, &size, digest, NULL))
		return error_set(err, ERROR_INVALID, "Hash algorithm failed: %s", text);
	*out = slice_of(bytes, size);
	return 0;
}

/* ---- The list ------------------------------------------------------------------------------ */

static void
mask_add(struct function_list *list, const char *name, const struct type *result,
    function_execute_fn execute, const struct type *first, const struct type *const *others,
    uint32_t count)
{
	struct function *function = function_list_add(list, name, result, execute);
	uint32_t i;

	if (function == NULL)
		return;
	function->called_on_null = true;
	function_add_argument(list, function, first);
	for (i = 0; i < count; i++)
		function_add_argument(list, function, others[i]);
}

static void
mask_add_partial(struct function_list *list, const char *name)
{
	const struct type *others[] = {
	    type_native(TYPE_INT), type_native(TYPE_INT), type_native(TYPE_TEXT)};
	static const enum type_kind kinds[] = {TYPE_TEXT, TYPE_ASCII};
	size_t i;

	for (i = 0; i < 2; i++) {
		const struct type *type = type_native(kinds[i]);

		mask_add(list, name, type, mask_partial, type, others, 2);
		mask_add(list, name, type, mask_partial, type, others, 3);
	}
}

void
function_mask_find(struct slice name, const struct type *type, struct function_list *list)
{
	const struct type *text = type_native(TYPE_TEXT);

	if (name.size < 6 || memcmp(name.data, "mask_", 5) != 0)
		return;
	if (slice_equal_string(name, "mask_inner"))
		mask_add_partial(list, "mask_inner");
	if (slice_equal_string(name, "mask_outer"))
		mask_add_partial(list, "mask_outer");
	if (type == NULL)
		return;
	if (slice_equal_string(name, "mask_null"))
		mask_add(list, "mask_null", type, mask_null, type, NULL, 0);
	if (slice_equal_string(name, "mask_default"))
		mask_add(list, "mask_default", type, mask_default, type, NULL, 0);
	if (slice_equal_string(name, "mask_replace"))
		mask_add(list, "mask_replace", type, mask_replace, type, &type, 1);
	if (slice_equal_string(name, "mask_hash")) {
		mask_add(list, "mask_hash", type_native(TYPE_BLOB), mask_hash, type, NULL, 0);
		mask_add(list, "mask_hash", type_native(TYPE_BLOB), mask_hash, type, &text, 1);
	}
}
