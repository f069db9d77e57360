/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_generator.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"

/* ---- Setting up ---------------------------------------------------------------------------- */

bool
stress_generator_supports(const struct type *type)
{
	switch (type->kind) {
	case TYPE_ASCII:
	case TYPE_BIGINT:
	case TYPE_BLOB:
	case TYPE_BOOLEAN:
	case TYPE_COUNTER:
	case TYPE_DATE:
	case TYPE_DECIMAL:
	case TYPE_DOUBLE:
	case TYPE_FLOAT:
	case TYPE_INET:
	case TYPE_INT:
	case TYPE_SMALLINT:
	case TYPE_TEXT:
	case TYPE_TIME:
	case TYPE_TIMESTAMP:
	case TYPE_TIMEUUID:
	case TYPE_TINYINT:
	case TYPE_UUID:
	case TYPE_VARINT:
		return true;
	case TYPE_LIST:
	case TYPE_SET:
		return type->params[0]->kind < TYPE_NATIVE_COUNT &&
		    stress_generator_supports(type->params[0]);
	default:
		return false;
	}
}

static struct stress_distribution
stress_generator_default(const char *text)
{
	struct stress_distribution distribution;

	stress_distribution_parse(&distribution, text, NULL);
	return distribution;
}

int
stress_generator_init(struct stress_generator *generator, const char *name, const struct type *type,
    const struct stress_generator_config *config, struct error *err)
{
	/* Fifty years of milliseconds. */
	bool is_date = type->kind == TYPE_TIMESTAMP || type->kind == TYPE_TIMEUUID;
	uint64_t hash[2];

	if (!stress_generator_supports(type))
		return error_set(err, ERROR_INVALID, "column '%s' is of unsupported type", name);
	memset(generator, 0, sizeof(*generator));
	generator->name = name;
	generator->type = type;
	murmur3_128(slice_of_string(config->seed_text), 0, hash);
	generator->salt = (int64_t)hash[0];
	generator->identity = config->identity != NULL ? *config->identity
	    : is_date ? stress_generator_default("uniform(1..1576800000000)")
		      : stress_generator_default("uniform(1..100B)");
	generator->size =
	    config->size != NULL ? *config->size : stress_generator_default("uniform(4..8)");
	generator->clustering =
	    config->clustering != NULL ? *config->clustering : stress_distribution_fixed(1);
	if (type->kind == TYPE_LIST || type->kind == TYPE_SET) {
		generator->element = xzalloc(sizeof(*generator->element));
		return stress_generator_init(
		    generator->element, name, type->params[0], config, err);
	}
	return 0;
}

void
stress_generator_fini(struct stress_generator *generator)
{
	if (generator->element != NULL)
		stress_generator_fini(generator->element);
	free(generator->element);
	generator->element = NULL;
}

void
stress_generator_copy(struct stress_generator *to, const struct stress_generator *from)
{
	*to = *from;
	if (from->element == NULL)
		return;
	to->element = xmalloc(sizeof(*to->element));
	stress_generator_copy(to->element, from->element);
}

void
stress_generator_seed(struct stress_generator *generator, int64_t seed)
{
	stress_distribution_seed(&generator->identity, seed ^ generator->salt);
	/* Time UUIDs seed the dates they are made of, not their own clustering. */
	if (generator->type->kind != TYPE_TIMEUUID)
		stress_distribution_seed(&generator->clustering, seed ^ ~generator->salt);
	if (generator->element == NULL)
		return;
	/* How many elements: there it is any number each time, so none of its readers expects a certain one. */
	stress_distribution_seed(&generator->size, seed ^ generator->salt);
	stress_generator_seed(generator->element, (int64_t)((uint64_t)seed * 31));
}

/* ---- Values -------------------------------------------------------------------------------- */

static size_t
stress_generator_size(struct stress_generator *generator)
{
	int64_t size = stress_distribution_next(&generator->size);

	return size > 0 ? (size_t)(uint32_t)size : 0;
}

/* The room is a multiple of 16, so that whole words may be stored at the end. */
static uint8_t *
stress_generator_room(struct arena *arena, size_t size)
{
	return arena_alloc(arena, (size + 15) & ~(size_t)15);
}

static struct slice
stress_generator_hex(struct stress_generator *generator, struct arena *arena)
{
	size_t size;
	uint8_t *bytes;

	stress_distribution_seed(&generator->size, stress_distribution_next(&generator->identity));
	size = stress_generator_size(generator);
	bytes = stress_generator_room(arena, size);
	if (bytes == NULL)
		return slice_null;
	for (size_t i = 0; i < size; i += 16) {
		uint64_t value = (uint64_t)stress_distribution_next(&generator->identity);

		/* Ten and more are 'A' + value: K to P. */
		for (size_t j = 0; j < 16; j++, value >>= 4)
			bytes[i + j] = (uint8_t)(((value & 15) < 10 ? '0' : 'A') + (value & 15));
	}
	return slice_of(bytes, size);
}

/* Blobs and texts: the words of the fast generator, low byte first. */
static struct slice
stress_generator_bytes(struct stress_generator *generator, struct arena *arena, bool is_text)
{
	int64_t seed = stress_distribution_next(&generator->identity);
	size_t size;
	uint8_t *bytes;

	stress_distribution_seed(&generator->size, seed);
	stress_fast_random_seed(&generator->fast, ~seed);
	size = stress_generator_size(generator);
	bytes = stress_generator_room(arena, size);
	if (bytes == NULL)
		return slice_null;
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = (uint64_t)stress_fast_random_long(&generator->fast);

		if (is_text) /* (c & 127) + 32, modulo 128, in each byte */
			word = ((word & 0x7f7f7f7f7f7f7f7fULL) + 0x2020202020202020ULL) &
			    0x7f7f7f7f7f7f7f7fULL;
		memcpy(bytes + i, &word, 8); /* little-endian machines only */
	}
	return slice_of(bytes, size);
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "stress_generator_bytes stores words");

static struct slice
stress_generator_number(struct arena *arena, uint64_t value, size_t size)
{
	uint8_t *bytes = arena_alloc(arena, 8);

	if (bytes == NULL)
		return slice_null;
	store_u64(bytes, value << (64 - 8 * size));
	return slice_of(bytes, size);
}

/* Fewest bytes of two's complement, after `prefix` bytes of zero. */
static struct slice
stress_generator_varint(struct arena *arena, int64_t value, size_t prefix)
{
	uint8_t *bytes = arena_alloc(arena, prefix + 8);
	size_t size = 8;

	if (bytes == NULL)
		return slice_null;
	while (size > 1 && value >> (8 * size - 9) == value >> 63)
		size--;
	memset(bytes, 0, prefix);
	store_u64(bytes + prefix, (uint64_t)value << (64 - 8 * size));
	return slice_of(bytes, prefix + size);
}

static struct slice
stress_generator_uuid(struct arena *arena, uint64_t high, uint64_t low)
{
	uint8_t *bytes = arena_alloc(arena, 16);

	if (bytes == NULL)
		return slice_null;
	store_u64(bytes, high);
	store_u64(bytes + 8, low);
	return slice_of(bytes, 16);
}

/* Version 1, of a time in milliseconds; clock and node are the salt. */
static struct stress_value
stress_generator_timeuuid(struct stress_generator *generator, struct arena *arena)
{
	uint64_t ticks =
	    (uint64_t)(stress_distribution_next(&generator->identity) + 12219292800000LL) * 10000;
	uint64_t high = (ticks & 0xffffffff) << 32 | (ticks >> 32 & 0xffff) << 16 | 0x1000 |
	    (ticks >> 48 & 0xfff);
	struct stress_value value = {.number = (int64_t)(high ^ (uint64_t)generator->salt)};

	value.wire = stress_generator_uuid(arena, high, (uint64_t)generator->salt);
	return value;
}

static struct slice
stress_generator_collection(struct stress_generator *generator, struct arena *arena)
{
	size_t count = stress_generator_size(generator);
	struct slice *elements = arena_calloc(arena, count > 0 ? count : 1, sizeof(*elements));

	if (elements == NULL)
		return slice_null;
	for (size_t i = 0; i < count; i++)
		elements[i] = stress_generator_next(generator->element, arena).wire;
	if (generator->type->kind == TYPE_SET)
		count =
		    type_sort_elements(generator->type->params[0], elements, (uint32_t)count, 1);
	return type_pack(generator->type, elements, (uint32_t)count, arena);
}

static struct stress_value
stress_generator_real(struct stress_generator *generator, struct arena *arena)
{
	double number = stress_distribution_next_double(&generator->identity);
	struct stress_value value;
	float narrow = (float)number;
	uint32_t narrow_bits;
	uint64_t bits;

	memcpy(&narrow_bits, &narrow, 4);
	memcpy(&bits, &number, 8);
	if (generator->type->kind == TYPE_FLOAT) {
		value.wire = stress_generator_number(arena, narrow_bits, 4);
		value.number = (int64_t)narrow;
	} else {
		value.wire = stress_generator_number(arena, bits, 8);
		value.number = (int64_t)number;
	}
	return value;
}

static struct stress_value
stress_generator_whole(struct stress_generator *generator, struct arena *arena)
{
	int64_t number = stress_distribution_next(&generator->identity);
	struct stress_value value = {.number = number};

	switch (generator->type->kind) {
	case TYPE_TINYINT:
		value.number = (int8_t)number;
		value.wire = stress_generator_number(arena, (uint64_t)number, 1);
		break;
	case TYPE_SMALLINT:
		value.number = (int16_t)number;
		value.wire = stress_generator_number(arena, (uint64_t)number, 2);
		break;
	case TYPE_INET:
	case TYPE_INT:
		value.number = (int32_t)number;
		value.wire = stress_generator_number(arena, (uint64_t)number, 4);
		break;
	case TYPE_DATE:
		value.number = (int32_t)number;
		value.wire = stress_generator_number(arena, (uint64_t)number + 0x80000000u, 4);
		break;
	case TYPE_BOOLEAN: /* "number % 1 == 0" */
		value.wire = stress_generator_number(arena, 1, 1);
		break;
	case TYPE_VARINT:
		value.wire = stress_generator_varint(arena, number, 0);
		break;
	case TYPE_DECIMAL: /* scale 0 */
		value.wire = stress_generator_varint(arena, number, 4);
		break;
	case TYPE_UUID:
		value.wire = stress_generator_uuid(arena, (uint64_t)number, (uint64_t)number);
		value.number = 0;
		break;
	default:
		value.wire = stress_generator_number(arena, (uint64_t)number, 8);
		break;
	}
	return value;
}

struct stress_value
stress_generator_next(struct stress_generator *generator, struct arena *arena)
{
	struct stress_value value = {.number = 0};

	switch (generator->type->kind) {
	case TYPE_BLOB:
		value.wire = generator->is_hex ? stress_generator_hex(generator, arena)
					       : stress_generator_bytes(generator, arena, false);
		return value;
	case TYPE_ASCII:
	case TYPE_TEXT:
		value.wire = stress_generator_bytes(generator, arena, true);
		return value;
	case TYPE_LIST:
	case TYPE_SET:
		value.wire = stress_generator_collection(generator, arena);
		return value;
	case TYPE_TIMEUUID:
		return stress_generator_timeuuid(generator, arena);
	case TYPE_DOUBLE:
	case TYPE_FLOAT:
		return stress_generator_real(generator, arena);
	default:
		return stress_generator_whole(generator, arena);
	}
}

/* ---- What Java does with the objects --------------------------------------------------------- */

/* Is the value a Number or UUID there? The others are mixed in by their bytes. */
static bool
stress_generator_is_number(const struct stress_generator *generator)
{
	switch (generator->type->kind) {
	case TYPE_ASCII:
	case TYPE_BLOB:
	case TYPE_BOOLEAN:
	case TYPE_INET:
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_TEXT:
	case TYPE_TIMESTAMP:
		return false;
	default:
		return true;
	}
}

int64_t
stress_generator_mix(
    const struct stress_generator *generator, const struct stress_value *value, int64_t seed)
{
	uint64_t mixed = (uint64_t)seed;

	if (stress_generator_is_number(generator))
		return (int64_t)(mixed * 31 + (uint64_t)value->number);
	for (size_t i = 0; i < value->wire.size; i++)
		mixed = mixed * 31 + (uint64_t)(int64_t)(int8_t)value->wire.data[i];
	return (int64_t)mixed;
}

bool
stress_generator_is_ordered(const struct stress_generator *generator)
{
	switch (generator->type->kind) {
	case TYPE_INET:
	case TYPE_LIST:
	case TYPE_SET:
		return false;
	default:
		return true;
	}
}

static int
stress_generator_compare_longs(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* Blobs compare by signed bytes, UUIDs by signed halves. */
static int
stress_generator_compare_bytes(struct slice a, struct slice b)
{
	size_t size = a.size < b.size ? a.size : b.size;

	for (size_t i = 0; i < size; i++) {
		if (a.data[i] != b.data[i])
			return (int8_t)a.data[i] < (int8_t)b.data[i] ? -1 : 1;
	}
	return stress_generator_compare_longs((int64_t)a.size, (int64_t)b.size);
}

int
stress_generator_compare(const struct stress_generator *generator, const struct stress_value *a,
    const struct stress_value *b)
{
	int order;

	switch (generator->type->kind) {
	case TYPE_BLOB:
		return stress_generator_compare_bytes(a->wire, b->wire);
	case TYPE_UUID:
	case TYPE_TIMEUUID:
		order = stress_generator_compare_longs(
		    (int64_t)load_u64(a->wire.data), (int64_t)load_u64(b->wire.data));
		return order != 0
		    ? order
		    : stress_generator_compare_longs(
			  (int64_t)load_u64(a->wire.data + 8), (int64_t)load_u64(b->wire.data + 8));
	case TYPE_DOUBLE:
	case TYPE_FLOAT:
		return type_compare(generator->type, a->wire, b->wire);
	case TYPE_ASCII:
	case TYPE_TEXT:
	case TYPE_BOOLEAN:
		return slice_compare(a->wire, b->wire);
	default:
		return stress_generator_compare_longs(a->number, b->number);
	}
}
