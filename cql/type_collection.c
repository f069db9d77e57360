/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and packing what has elements: collections, tuples, user types, vectors. */
#include <stdlib.h>
#include "cql/type.h"
#include "cql/type_internal.h"

int32_t
type_collection_size(struct slice value)
{
	if (value.size < 4)
		return -1;
	return (int32_t)load_u32(value.data);
}

void
type_iterator_init(struct type_iterator *iterator, const struct type *type, struct slice value)
{
	int32_t count;

	type = type_unreversed(type, NULL);
	iterator->type = type;
	iterator->reader = reader_of(value);
	iterator->index = 0;
	iterator->is_failed = false;
	switch (type->kind) {
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_MAP:
		count = type_collection_size(value);
		reader_skip(&iterator->reader, 4);
		/* Each element takes four bytes at least, so a count beyond that is a lie. */
		iterator->is_failed =
		    value.size < 4 || (count > 0 && (size_t)count > value.size / 4);
		iterator->count = count < 0 || iterator->is_failed ? 0 : (uint32_t)count;
		if (type->kind == TYPE_MAP)
			iterator->count *= 2;
		break;
	case TYPE_VECTOR:
		iterator->count = type->dimension;
		break;
	default:
		iterator->count = type->param_count;
		break;
	}
}

static const struct type *
type_iterator_element(const struct type_iterator *iterator)
{
	switch (iterator->type->kind) {
	case TYPE_MAP:
		return iterator->type->params[iterator->index & 1];
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_VECTOR:
		return iterator->type->params[0];
	default:
		return iterator->type->params[iterator->index];
	}
}

/* Vectors have no null: fixed elements lie back to back, others after an unsigned vint. */
static struct slice
type_iterator_vector(struct type_iterator *iterator)
{
	int32_t fixed = iterator->type->params[0]->fixed_length;
	size_t size = fixed >= 0 ? (size_t)fixed : (size_t)reader_vint(&iterator->reader);

	return reader_bytes(&iterator->reader, size);
}

bool
type_iterator_next(
    struct type_iterator *iterator, struct slice *element, const struct type **element_type)
{
	int32_t size;

	if (iterator->is_failed || iterator->index >= iterator->count)
		return false;
	if (type_is_tuple(iterator->type) && reader_left(&iterator->reader) == 0)
		return false;
	if (element_type != NULL)
		*element_type = type_iterator_element(iterator);
	if (iterator->type->kind == TYPE_VECTOR) {
		*element = type_iterator_vector(iterator);
	} else {
		size = (int32_t)reader_u32(&iterator->reader);
		if (size < 0)
			*element = slice_null;
		else
			*element = reader_bytes(&iterator->reader, (size_t)size);
	}
	if (iterator->reader.is_failed) {
		iterator->is_failed = true;
		return false;
	}
	iterator->index++;
	return true;
}

struct slice
type_pack(
    const struct type *type, const struct slice *elements, uint32_t count, struct arena *arena)
{
	bool is_vector = type->kind == TYPE_VECTOR;
	bool has_count = type_is_collection(type);
	uint32_t slices = type->kind == TYPE_MAP ? 2 * count : count;
	int32_t fixed = is_vector ? type->params[0]->fixed_length : -1;
	size_t size = has_count ? 4 : 0;
	uint8_t *data, *at;
	uint32_t i;

	for (i = 0; i < slices; i++) {
		size += elements[i].size;
		if (!is_vector)
			size += 4;
		else if (fixed < 0)
			size += vint_size(elements[i].size);
	}
	/* A vint may be written over all the room that it could take. */
	data = at = arena_alloc_bytes(arena, size + VINT_SIZE_MAX);
	if (data == NULL)
		return slice_null;
	if (has_count) {
		store_u32(at, count);
		at += 4;
	}
	for (i = 0; i < slices; i++) {
		if (!is_vector) {
			store_u32(at,
			    slice_is_null(elements[i]) ? UINT32_MAX : (uint32_t)elements[i].size);
			at += 4;
		} else if (fixed < 0) {
			at += vint_encode(at, elements[i].size);
		}
		if (elements[i].size > 0)
			memcpy(at, elements[i].data, elements[i].size);
		at += elements[i].size;
	}
	arena_trim(arena, data, size + VINT_SIZE_MAX, size);
	return slice_of(data, size);
}

struct type_sort {
	const struct type *type;
	uint32_t width;
};

static int
type_sort_compare(const void *left, const void *right, void *user)
{
	const struct type_sort *sort = user;
	const struct slice *a = left;
	const struct slice *b = right;
	int order = type_compare(sort->type, *a, *b);

	/* The place where an element stood is kept behind the pair, so that the sort is stable. */
	if (order == 0)
		order = a[sort->width].size < b[sort->width].size ? -1 : 1;
	return order;
}

/* Drop doubles among sorted elements of `stride` slices; the first key and the last value stay, as
 * in Java's TreeMap. */
static uint32_t
type_sort_unique(const struct type_sort *sort, struct slice *out, const struct slice *sorted,
    uint32_t count, uint32_t stride)
{
	uint32_t i, kept = 0;

	for (i = 0; i < count; i++) {
		const struct slice *element = &sorted[(size_t)i * stride];
		struct slice *last = &out[(size_t)(kept - 1) * sort->width];

		if (kept > 0 && type_compare(sort->type, last[0], element[0]) == 0) {
			if (sort->width == 2)
				last[1] = element[1];
			continue;
		}
		memmove(&out[(size_t)kept * sort->width], element, sort->width * sizeof(*out));
		kept++;
	}
	return kept;
}

/* Slow, but needs no memory. */
static void
type_sort_in_place(const struct type_sort *sort, struct slice *elements, uint32_t count)
{
	uint32_t width = sort->width, i, j;
	struct slice moved[2];

	for (i = 1; i < count; i++) {
		memcpy(moved, &elements[(size_t)i * width], width * sizeof(*moved));
		for (j = i; j > 0; j--) {
			struct slice *before = &elements[(size_t)(j - 1) * width];

			if (type_compare(sort->type, before[0], moved[0]) <= 0)
				break;
			memcpy(before + width, before, width * sizeof(*before));
		}
		memcpy(&elements[(size_t)j * width], moved, width * sizeof(*moved));
	}
}

/* Elements with their index as a further slice, since qsort_r() keeps no order of equals. */
static uint32_t
type_sort_big(const struct type_sort *sort, struct slice *elements, uint32_t count)
{
	uint32_t width = sort->width, stride = width + 1;
	struct slice *work = calloc((size_t)count * stride, sizeof(*work));
	uint32_t i;

	if (work == NULL) {
		type_sort_in_place(sort, elements, count);
		return type_sort_unique(sort, elements, elements, count, width);
	}
	for (i = 0; i < count; i++) {
		memcpy(
		    &work[(size_t)i * stride], &elements[(size_t)i * width], width * sizeof(*work));
		work[(size_t)i * stride + width].size = i;
	}
	qsort_r(work, count, stride * sizeof(*work), type_sort_compare, (void *)sort);
	count = type_sort_unique(sort, elements, work, count, stride);
	free(work);
	return count;
}

uint32_t
type_sort_elements(
    const struct type *element_type, struct slice *elements, uint32_t count, uint32_t width)
{
	struct type_sort sort = {element_type, width};
	uint32_t i;

	/* Mostly sorted already: drivers send sets and maps in the order they read them. */
	for (i = 1; i < count; i++) {
		if (type_compare(element_type, elements[(size_t)(i - 1) * width],
			elements[(size_t)i * width]) >= 0)
			return type_sort_big(&sort, elements, count);
	}
	return count;
}
