/* SPDX-License-Identifier: Apache-2.0 */
#include "server/term.h"

/*
 * A set or map from a client may be in any order and have doubles; what is stored whole (frozen, as a
 * key) must not. As Cassandra does, only the outermost one is put in order.
 */
static int
term_put_in_order(
    const struct type *type, struct arena *arena, struct slice *value, struct error *err)
{
	uint32_t width = type->kind == TYPE_MAP ? 2 : 1, count = 0;
	struct slice previous = slice_null, element;
	struct type_iterator iterator;
	struct slice *elements;
	bool is_ordered = true;

	type_iterator_init(&iterator, type, *value);
	for (uint32_t i = 0; type_iterator_next(&iterator, &element, NULL); i++) {
		if (i % width != 0)
			continue;
		if (i > 0 && type_compare(type->params[0], previous, element) >= 0)
			is_ordered = false;
		previous = element;
	}
	if (is_ordered)
		return 0;
	elements = arena_calloc(arena, iterator.count, sizeof(*elements));
	if (elements == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a collection");
	type_iterator_init(&iterator, type, *value);
	while (type_iterator_next(&iterator, &element, NULL))
		elements[count++] = element;
	count = type_sort_elements(type->params[0], elements, count / width, width);
	*value = type_pack(type, elements, count, arena);
	if (slice_is_null(*value))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a collection");
	return 0;
}

static int
term_eval_marker(const struct term *term, const struct term_context *context, struct slice *out,
    bool *is_unset, struct error *err)
{
	const struct bound_value *bound;

	if (term->marker >= context->value_count)
		return error_set(err, ERROR_INVALID, "Invalid amount of bind variables");
	bound = &context->values[term->marker];
	*out = bound->value;
	if (bound->is_unset) {
		if (is_unset == NULL)
			return error_set(err, ERROR_INVALID, "Invalid unset value");
		*is_unset = true;
		*out = slice_null;
		return 0;
	}
	if (slice_is_null(*out))
		return 0;
	if (type_validate(term->type, *out, err) != 0)
		return -1;
	if (!type_is_collection(term->type) || out->size == 0)
		return 0;
	/* Valid by itself, but a value that is bound is read too. */
	if (type_collection_size(*out) < 0)
		return error_set(err, ERROR_INVALID, "The data cannot be deserialized as a %s",
		    term->type->kind == TYPE_LIST      ? "list"
			: term->type->kind == TYPE_SET ? "set"
						       : "map");
	if (term->type->kind != TYPE_LIST)
		return term_put_in_order(term->type, context->arena, out, err);
	return 0;
}

static int
term_eval_collection(const struct term *term, const struct term_context *context, struct slice *out,
    struct error *err)
{
	struct slice *elements = arena_calloc(context->arena, term->parts.count, sizeof(*elements));
	uint32_t count = term->parts.count;

	if (elements == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a collection");
	for (uint32_t i = 0; i < count; i++) {
		if (term_eval(term->parts.items[i], context, &elements[i], NULL, err) != 0)
			return -1;
		if (slice_is_null(elements[i]))
			return error_set(
			    err, ERROR_INVALID, "null is not supported inside collections");
	}
	if (term->type->kind == TYPE_SET)
		count = type_sort_elements(term->type->params[0], elements, count, 1);
	else if (term->type->kind == TYPE_MAP)
		count = type_sort_elements(term->type->params[0], elements, count / 2, 2);
	*out = type_pack(term->type, elements, count, context->arena);
	if (slice_is_null(*out))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a collection");
	return 0;
}

static int
term_eval_tuple(const struct term *term, const struct term_context *context, struct slice *out,
    struct error *err)
{
	struct slice *elements = arena_calloc(context->arena, term->parts.count, sizeof(*elements));

	if (elements == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a tuple");
	for (uint32_t i = 0; i < term->parts.count; i++) {
		bool is_unset = false;

		elements[i] = slice_null;
		if (term->parts.items[i] == NULL)
			continue;
		if (term_eval(term->parts.items[i], context, &elements[i], &is_unset, err) != 0)
			return -1;
		if (is_unset && term->type->kind == TYPE_UDT)
			return error_set(err, ERROR_INVALID,
			    "Invalid unset value for field '%.*s' of user defined type %.*s",
			    (int)term->type->fields[i].size, term->type->fields[i].data,
			    (int)term->type->name.size, term->type->name.data);
		if (is_unset)
			return error_set(
			    err, ERROR_INVALID, "Invalid unset value for tuple field number %u", i);
		if (term->type->kind == TYPE_VECTOR && slice_is_null(elements[i]))
			return error_set(
			    err, ERROR_INVALID, "null is not supported inside vectors");
	}
	*out = type_pack(term->type, elements, term->parts.count, context->arena);
	if (slice_is_null(*out))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a tuple");
	return 0;
}

static int
term_eval_call(const struct term *term, const struct term_context *context, struct slice *out,
    struct error *err)
{
	const struct function *function = term->call.function;
	struct slice *arguments =
	    arena_calloc(context->arena, function->argument_count, sizeof(*arguments));

	if (arguments == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for arguments");
	for (uint32_t i = 0; i < function->argument_count; i++) {
		bool is_unset = false;

		if (term_eval(term->call.arguments[i], context, &arguments[i], &is_unset, err) != 0)
			return -1;
		if (is_unset)
			return error_set(err, ERROR_INVALID,
			    "Invalid unset value for argument in call to function %s",
			    function->name);
	}
	return function_call(function, context->functions, arguments, context->arena, out, err);
}

int
term_eval(const struct term *term, const struct term_context *context, struct slice *out,
    bool *is_unset, struct error *err)
{
	if (is_unset != NULL)
		*is_unset = false;
	switch (term->kind) {
	case TERM_VALUE:
		*out = term->value;
		return 0;
	case TERM_MARKER:
		return term_eval_marker(term, context, out, is_unset, err);
	case TERM_COLLECTION:
		return term_eval_collection(term, context, out, err);
	case TERM_TUPLE:
		return term_eval_tuple(term, context, out, err);
	case TERM_CALL:
		return term_eval_call(term, context, out, err);
	}
	return error_set(err, ERROR_SERVER, "unknown kind of term %d", (int)term->kind);
}
