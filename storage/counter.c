/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/counter.h"

enum {
	COUNTER_ID_SIZE = 16,
	COUNTER_SHARD_SIZE = 32,
	COUNTER_GLOBAL_BIT = 0x8000,
};

/* CounterContext.UPDATE_CLOCK_ID: CounterId.fromInt(0). */
static const struct uuid counter_update_id = {{0, 0, 0, 0, 0, 0, 0, 0, 0xc0}};

/* A walk over a context's shards. */
struct counter_cursor {
	const uint8_t *header, *header_end;
	const uint8_t *shard, *end;
	uint32_t index;
};

static void
counter_cursor_init(struct counter_cursor *cursor, struct slice context)
{
	uint16_t count;

	*cursor = (struct counter_cursor){0};
	if (context.size < 2)
		return;
	/* A negative count marks local shards to be cleared by old versions; the length is the same. */
	count = load_u16(context.data);
	if (count & 0x8000)
		count = (uint16_t)(0x10000 - count);
	if (context.size - 2 < (size_t)count * 2)
		return;
	cursor->header = context.data + 2;
	cursor->header_end = cursor->header + (size_t)count * 2;
	cursor->shard = cursor->header_end;
	cursor->end = cursor->shard +
	    (size_t)(context.data + context.size - cursor->shard) / COUNTER_SHARD_SIZE *
		COUNTER_SHARD_SIZE;
}

static bool
counter_cursor_next(struct counter_cursor *cursor, struct counter_shard *out)
{
	if (cursor->shard == cursor->end)
		return false;
	memcpy(out->id.bytes, cursor->shard, COUNTER_ID_SIZE);
	out->clock = (int64_t)load_u64(cursor->shard + 16);
	out->count = (int64_t)load_u64(cursor->shard + 24);
	out->kind = COUNTER_SHARD_REMOTE;
	if (cursor->header != cursor->header_end) {
		uint16_t entry = load_u16(cursor->header);

		if ((uint16_t)(entry & ~COUNTER_GLOBAL_BIT) == (uint16_t)cursor->index) {
			out->kind =
			    entry & COUNTER_GLOBAL_BIT ? COUNTER_SHARD_GLOBAL : COUNTER_SHARD_LOCAL;
			cursor->header += 2;
		}
	}
	cursor->shard += COUNTER_SHARD_SIZE;
	cursor->index++;
	return true;
}

static void
counter_shard_store(uint8_t *at, const struct counter_shard *shard)
{
	memcpy(at, shard->id.bytes, COUNTER_ID_SIZE);
	store_u64(at + 16, (uint64_t)shard->clock);
	store_u64(at + 24, (uint64_t)shard->count);
}

static struct slice
counter_make_one(const struct counter_shard *shard, struct arena *arena)
{
	enum { SIZE = 4 + COUNTER_SHARD_SIZE };
	uint8_t *at = arena_alloc_bytes(arena, SIZE);

	if (at == NULL)
		return slice_null;
	store_u16(at, 1);
	store_u16(at + 2, shard->kind == COUNTER_SHARD_GLOBAL ? COUNTER_GLOBAL_BIT : 0);
	counter_shard_store(at + 4, shard);
	return slice_of(at, SIZE);
}

struct slice
counter_make_update(int64_t delta, struct arena *arena)
{
	struct counter_shard shard = {counter_update_id, 1, delta, COUNTER_SHARD_LOCAL};

	return counter_make_one(&shard, arena);
}

int64_t
counter_update_delta(struct slice context)
{
	struct counter_shard shard;

	if (counter_find(context, &counter_update_id, &shard))
		return shard.count;
	return counter_total(context);
}

struct slice
counter_make_global(const struct uuid *id, int64_t clock, int64_t count, struct arena *arena)
{
	struct counter_shard shard = {*id, clock, count, COUNTER_SHARD_GLOBAL};

	return counter_make_one(&shard, arena);
}

static int64_t
counter_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Two shards of one id. */
static struct counter_shard
counter_merge_shards(const struct counter_shard *a, const struct counter_shard *b)
{
	if (a->kind != b->kind)
		return a->kind > b->kind ? *a : *b;
	if (a->kind == COUNTER_SHARD_LOCAL) {
		struct counter_shard sum = *a;

		sum.clock = counter_add(a->clock, b->clock);
		sum.count = counter_add(a->count, b->count);
		return sum;
	}
	if (a->clock != b->clock)
		return a->clock > b->clock ? *a : *b;
	return a->count > b->count ? *a : *b;
}

static size_t
counter_shard_count(struct slice context)
{
	struct counter_cursor cursor;

	counter_cursor_init(&cursor, context);
	return (size_t)(cursor.end - cursor.shard) / COUNTER_SHARD_SIZE;
}

/* Header entries and shards of the merged context, side by side as they are found. */
struct counter_output {
	uint8_t *entries;
	uint8_t *shards;
	size_t entry_count, shard_count;
};

static void
counter_output_put(struct counter_output *output, const struct counter_shard *shard)
{
	if (shard->kind != COUNTER_SHARD_REMOTE) {
		uint16_t entry = (uint16_t)output->shard_count;

		if (shard->kind == COUNTER_SHARD_GLOBAL)
			entry |= COUNTER_GLOBAL_BIT;
		store_u16(output->entries + 2 * output->entry_count++, entry);
	}
	counter_shard_store(output->shards + COUNTER_SHARD_SIZE * output->shard_count++, shard);
}

struct slice
counter_merge(struct slice a, struct slice b, struct arena *arena)
{
	size_t most = counter_shard_count(a) + counter_shard_count(b);
	struct counter_cursor at_a, at_b;
	struct counter_shard shard_a, shard_b;
	struct counter_output output = {0};
	uint8_t *memory;
	size_t header_size, size;
	bool has_a, has_b;

	/* Also of equal contexts: two increments by the same number are two. */
	if (counter_shard_count(b) == 0)
		return a;
	if (counter_shard_count(a) == 0)
		return b;
	memory = arena_alloc_bytes(arena, 2 + most * (2 + COUNTER_SHARD_SIZE));
	if (memory == NULL)
		return slice_null;
	output.entries = memory + 2;
	output.shards = memory + 2 + most * 2; /* moved down when the entries are counted */

	counter_cursor_init(&at_a, a);
	counter_cursor_init(&at_b, b);
	has_a = counter_cursor_next(&at_a, &shard_a);
	has_b = counter_cursor_next(&at_b, &shard_b);
	while (has_a || has_b) {
		int order = !has_a ? 1
		    : !has_b       ? -1
				   : memcmp(shard_a.id.bytes, shard_b.id.bytes, COUNTER_ID_SIZE);

		if (order == 0) {
			struct counter_shard merged = counter_merge_shards(&shard_a, &shard_b);

			counter_output_put(&output, &merged);
		} else {
			counter_output_put(&output, order < 0 ? &shard_a : &shard_b);
		}
		if (order <= 0)
			has_a = counter_cursor_next(&at_a, &shard_a);
		if (order >= 0)
			has_b = counter_cursor_next(&at_b, &shard_b);
	}
	store_u16(memory, (uint16_t)output.entry_count);
	header_size = 2 + 2 * output.entry_count;
	size = header_size + COUNTER_SHARD_SIZE * output.shard_count;
	memmove(memory + header_size, output.shards, COUNTER_SHARD_SIZE * output.shard_count);
	return slice_of(memory, size);
}

int64_t
counter_total(struct slice context)
{
	struct counter_cursor cursor;
	struct counter_shard shard;
	int64_t total = 0;

	counter_cursor_init(&cursor, context);
	while (counter_cursor_next(&cursor, &shard))
		total = counter_add(total, shard.count);
	return total;
}

bool
counter_find(struct slice context, const struct uuid *id, struct counter_shard *out)
{
	struct counter_cursor cursor;
	struct counter_shard shard;

	counter_cursor_init(&cursor, context);
	while (counter_cursor_next(&cursor, &shard)) {
		if (memcmp(shard.id.bytes, id->bytes, COUNTER_ID_SIZE) == 0) {
			*out = shard;
			return true;
		}
	}
	return false;
}

int
counter_validate(struct slice context, struct error *err)
{
	struct counter_cursor cursor;

	counter_cursor_init(&cursor, context);
	if (cursor.header == NULL)
		return error_set(err, ERROR_CORRUPT,
		    "counter context of %zu bytes: its header does not fit", context.size);
	if (cursor.end != context.data + context.size)
		return error_set(err, ERROR_CORRUPT,
		    "counter context of %zu bytes: not a whole number of shards", context.size);
	return 0;
}
