/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types and values from outside. Input: the class name of a type, a newline, one byte that says where
 * the rest is cut in two, two values. A name that parses must print back to the same type; values
 * that are valid must have an order, comparable forms in that order, and texts; values that are not
 * valid must not be read past their end.
 */
#include <assert.h>
#include <stdlib.h>
#include "cql/json.h"
#include "cql/schema.h"
#include "cql/type.h"
#include "cql/value.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
fuzz_sign(int order)
{
	return (order > 0) - (order < 0);
}

static void
fuzz_print_back(const struct type *type, struct arena *arena)
{
	const struct type *again = NULL;
	struct buffer text;

	buffer_init(&text);
	type_print_class(type, &text);
	if (type_parse_class(buffer_slice(&text), arena, &again, NULL) == 0)
		assert(type_equal(type_freeze(arena, type), type_freeze(arena, again)));
	buffer_clear(&text);
	type_print_cql(type, &text);
	buffer_fini(&text);
}

static void
fuzz_order(const struct type *type, struct slice a, struct slice b)
{
	int order = fuzz_sign(type_compare(type, a, b));
	struct buffer x, y;
	int forms, reversed;

	assert(fuzz_sign(type_compare(type, b, a)) == -order);
	for (reversed = 0; reversed < 2; reversed++) {
		buffer_init(&x);
		buffer_init(&y);
		type_to_comparable(type, reversed, a, &x);
		type_to_comparable(type, reversed, b, &y);
		forms = memcmp(x.data, y.data, x.size < y.size ? x.size : y.size);
		if (forms == 0)
			assert(x.size == y.size);
		assert(fuzz_sign(forms) == (reversed ? -order : order));
		buffer_fini(&x);
		buffer_fini(&y);
	}
}

static void
fuzz_texts(const struct type *type, struct slice value, struct arena *arena)
{
	struct buffer text;
	struct slice back;

	buffer_init(&text);
	value_to_string(type, value, &text);
	buffer_clear(&text);
	value_to_literal(type, value, &text);
	buffer_clear(&text);
	json_from_value(type, value, &text);
	/* What we write we must read, though not every value comes back as it was. */
	json_to_value(type, buffer_slice(&text), arena, &back, NULL);
	buffer_fini(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = memchr(data, '\n', size);
	const struct type *type = NULL;
	struct json_field *fields;
	struct buffer form;
	struct slice a, b, out;
	struct arena arena;
	struct error err;
	uint32_t count;
	size_t left, cut;

	if (newline == NULL || newline + 1 >= data + size || size > 4096)
		return 0;
	arena_init(&arena, 4096);
	left = size - (size_t)(newline - data) - 2;
	cut = newline[1] < left ? newline[1] : left;
	a = slice_of(newline + 2, cut);
	b = slice_of(newline + 2 + cut, left - cut);
	type_parse_cql(slice_of(data, (size_t)(newline - data)), NULL, NULL, &arena, &type, &err);
	if (type_parse_class(slice_of(data, (size_t)(newline - data)), &arena, &type, &err) == 0) {
		bool is_valid =
		    type_validate(type, a, &err) == 0 && type_validate(type, b, &err) == 0;

		fuzz_memory_certain(true);
		fuzz_print_back(type, &arena);
		if (is_valid) {
			fuzz_order(type, a, b);
		} else {
			buffer_init(&form);
			type_compare(type, a, b);
			type_to_comparable(type, false, a, &form);
			buffer_fini(&form);
		}
		fuzz_memory_certain(false);
		fuzz_texts(type, a, &arena);
		value_from_string(type, a, &arena, &out, &err);
		json_to_value(type, a, &arena, &out, &err);
	}
	json_parse_object(a, &arena, &fields, &count, &err);
	arena_fini(&arena);
	return 0;
}
