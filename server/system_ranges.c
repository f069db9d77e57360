/* SPDX-License-Identifier: Apache-2.0 */
#include "server/system_ranges.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cql/type.h"
#include "server/internal_query.h"
#include "server/system_local.h"

/* A range as Cassandra writes it here: int kind (0: a Range of tokens), then each token behind its size. */
enum { SYSTEM_RANGE_BYTES = 28 };

struct system_range {
	char *keyspace; /* owned */
	struct endpoint to; /* size 0: this node */
	struct ring_range range;
};

struct system_ranges {
	struct system_range *list; /* owned */
	uint32_t count, capacity;
};

/* ---- the blobs ------------------------------------------------------------------------------------- */

static void
system_range_encode(struct ring_range range, uint8_t bytes[SYSTEM_RANGE_BYTES])
{
	store_u32(bytes, 0);
	store_u32(bytes + 4, 8);
	store_u64(bytes + 8, (uint64_t)range.left);
	store_u32(bytes + 16, 8);
	store_u64(bytes + 20, (uint64_t)range.right);
}

static bool
system_range_decode(struct slice blob, struct ring_range *out)
{
	const uint8_t *bytes = blob.data;

	if (blob.size != SYSTEM_RANGE_BYTES || load_u32(bytes) != 0 || load_u32(bytes + 4) != 8 ||
	    load_u32(bytes + 16) != 8)
		return false;
	*out = (struct ring_range){(int64_t)load_u64(bytes + 8), (int64_t)load_u64(bytes + 20)};
	return true;
}

static int
system_range_compare(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static struct slice
system_range_set(const struct stream_wish *wish, struct arena *arena)
{
	const struct type *type = type_set(arena, type_native(TYPE_BLOB), false);
	size_t count = wish->range_count;
	struct slice *blobs = arena_calloc(arena, count + 1, sizeof(*blobs));
	uint8_t *bytes = arena_alloc_bytes(arena, (count + 1) * SYSTEM_RANGE_BYTES);

	if (type == NULL || blobs == NULL || bytes == NULL)
		return slice_null;
	for (size_t i = 0; i < count; i++) {
		system_range_encode(wish->ranges[i], bytes + i * SYSTEM_RANGE_BYTES);
		blobs[i] = slice_of(bytes + i * SYSTEM_RANGE_BYTES, SYSTEM_RANGE_BYTES);
	}
	qsort(blobs, count, sizeof(*blobs), system_range_compare);
	return type_pack(type, blobs, wish->range_count, arena);
}

/* ---- looking --------------------------------------------------------------------------------------- */

static void
system_ranges_add(struct system_ranges *ranges, struct slice keyspace, const struct endpoint *to,
    struct ring_range range)
{
	struct system_range *added;

	if (ranges->count == ranges->capacity) {
		ranges->capacity = ranges->capacity * 2 + 16;
		ranges->list = xrealloc(ranges->list, ranges->capacity * sizeof(*ranges->list));
	}
	added = &ranges->list[ranges->count++];
	*added = (struct system_range){
	    .keyspace = xstrndup((const char *)keyspace.data, keyspace.size), .range = range};
	if (to != NULL)
		added->to = *to;
}

static void
system_ranges_add_set(struct system_ranges *ranges, struct slice keyspace,
    const struct endpoint *to, struct slice set)
{
	struct reader reader = reader_of(set);
	uint32_t count = slice_is_null(set) ? 0 : reader_u32(&reader);
	struct ring_range range;

	for (uint32_t i = 0; i < count && !reader.is_failed; i++) {
		struct slice blob = reader_bytes(&reader, reader_u32(&reader));

		if (!reader.is_failed && system_range_decode(blob, &range))
			system_ranges_add(ranges, keyspace, to, range);
	}
}

static int
system_ranges_load_fetched(
    struct executor *executor, struct system_ranges *ranges, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;

	if (internal_select(executor,
		"SELECT keyspace_name, full_ranges FROM system.available_ranges_v2", NULL, 0, &rows,
		err) != 0)
		return -1;
	while (internal_rows_next(&rows, cells))
		system_ranges_add_set(ranges, cells[0], NULL, cells[1]);
	internal_rows_fini(&rows);
	return 0;
}

static int
system_ranges_load_given(struct executor *executor, enum stream_operation operation,
    struct system_ranges *ranges, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;

	if (internal_select(executor,
		"SELECT operation, keyspace_name, peer, peer_port, ranges FROM "
		"system.transferred_ranges_v2",
		NULL, 0, &rows, err) != 0)
		return -1;
	while (internal_rows_next(&rows, cells)) {
		struct endpoint to = {.size = (uint8_t)cells[2].size};

		if (!slice_equal_string(cells[0], stream_operation_name(operation)) ||
		    (cells[2].size != 4 && cells[2].size != 16) || cells[3].size != 4)
			continue;
		memcpy(to.address, cells[2].data, cells[2].size);
		to.port = (uint16_t)load_u32(cells[3].data);
		system_ranges_add_set(ranges, cells[1], &to, cells[4]);
	}
	internal_rows_fini(&rows);
	return 0;
}

int
system_ranges_load(struct executor *executor, enum stream_operation operation,
    struct system_ranges **out, struct error *err)
{
	struct system_ranges *ranges = xzalloc(sizeof(*ranges));

	if (system_ranges_load_fetched(executor, ranges, err) != 0 ||
	    system_ranges_load_given(executor, operation, ranges, err) != 0) {
		system_ranges_free(ranges);
		return -1;
	}
	*out = ranges;
	return 0;
}

void
system_ranges_free(struct system_ranges *ranges)
{
	if (ranges == NULL)
		return;
	for (uint32_t i = 0; i < ranges->count; i++)
		free(ranges->list[i].keyspace);
	free(ranges->list);
	free(ranges);
}

/* Both are (left, right] on a ring of 2^64 tokens; left == right is all of it. */
static bool
system_range_contains(struct ring_range outer, struct ring_range inner)
{
	uint64_t size = (uint64_t)outer.right - (uint64_t)outer.left;
	uint64_t wanted = (uint64_t)inner.right - (uint64_t)inner.left;
	uint64_t begin = (uint64_t)inner.left - (uint64_t)outer.left;

	if (size == 0)
		return true;
	return wanted != 0 && begin < size && wanted <= size - begin;
}

bool
system_ranges_has(const struct system_ranges *ranges, struct slice keyspace,
    const struct endpoint *to, struct ring_range range)
{
	for (uint32_t i = 0; i < ranges->count; i++) {
		const struct system_range *at = &ranges->list[i];
		bool is_to = to == NULL ? at->to.size == 0 : endpoint_equal(&at->to, to);

		if (is_to && slice_equal_string(keyspace, at->keyspace) &&
		    system_range_contains(at->range, range))
			return true;
	}
	return false;
}

/* ---- writing --------------------------------------------------------------------------------------- */

static int
system_ranges_save_wish(struct executor *executor, enum stream_operation operation,
    const struct endpoint *to, const struct stream_wish *wish, struct error *err)
{
	struct slice values[5];
	struct arena arena;
	int rc;

	arena_init(&arena, 4096);
	values[0] = system_range_set(wish, &arena);
	values[1] = slice_of_string(wish->keyspace);
	if (to != NULL) {
		values[2] = slice_of_string(stream_operation_name(operation));
		values[3] = slice_of(to->address, to->size);
		values[4] = system_int(to->port, &arena);
	}
	if (slice_is_null(values[0]) || (to != NULL && slice_is_null(values[4])))
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for the ranges of a keyspace");
	else if (to == NULL)
		rc = internal_execute(executor,
		    "UPDATE system.available_ranges_v2 SET full_ranges = full_ranges + ? WHERE "
		    "keyspace_name = ?",
		    values, 2, err);
	else
		rc = internal_execute(executor,
		    "UPDATE system.transferred_ranges_v2 SET ranges = ranges + ? WHERE "
		    "keyspace_name = ? AND operation = ? AND peer = ? AND peer_port = ?",
		    values, 5, err);
	arena_fini(&arena);
	return rc;
}

int
system_ranges_save(struct executor *executor, enum stream_operation operation,
    const struct stream_result *result, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < result->fetched_count && rc == 0; i++)
		rc = system_ranges_save_wish(executor, operation, NULL, &result->fetched[i], err);
	for (uint32_t i = 0; i < result->given_count && rc == 0; i++)
		rc = system_ranges_save_wish(
		    executor, operation, &result->peer->endpoint, &result->given[i], err);
	return rc;
}

/* Delete the rows that `ranges` was read from. */
static int
system_ranges_delete(struct executor *executor, const struct system_ranges *ranges,
    const char *keyspace, enum stream_operation operation, struct error *err)
{
	struct slice values[2] = {slice_null, slice_of_string(stream_operation_name(operation))};
	int rc = 0;

	for (uint32_t i = 0; i < ranges->count && rc == 0; i++) {
		const char *name = ranges->list[i].keyspace;
		bool is_first = i == 0 || strcmp(ranges->list[i - 1].keyspace, name) != 0;

		if (!is_first || (keyspace != NULL && strcmp(keyspace, name) != 0))
			continue;
		values[0] = slice_of_string(name);
		rc = ranges->list[i].to.size == 0
		    ? internal_execute(executor,
			  "DELETE FROM system.available_ranges_v2 WHERE keyspace_name = ?", values,
			  1, err)
		    : internal_execute(executor,
			  "DELETE FROM system.transferred_ranges_v2 WHERE keyspace_name = ? AND "
			  "operation = ?",
			  values, 2, err);
	}
	return rc;
}

int
system_ranges_forget_fetched(struct executor *executor, const char *keyspace, struct error *err)
{
	struct system_ranges *ranges = xzalloc(sizeof(*ranges));
	int rc = system_ranges_load_fetched(executor, ranges, err);

	if (rc == 0)
		rc = system_ranges_delete(executor, ranges, keyspace, STREAM_OTHER, err);
	system_ranges_free(ranges);
	return rc;
}

int
system_ranges_forget_given(
    struct executor *executor, enum stream_operation operation, struct error *err)
{
	struct system_ranges *ranges = xzalloc(sizeof(*ranges));
	int rc = system_ranges_load_given(executor, operation, ranges, err);

	if (rc == 0)
		rc = system_ranges_delete(executor, ranges, NULL, operation, err);
	system_ranges_free(ranges);
	return rc;
}
