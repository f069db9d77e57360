/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include "base/hash.h"
#include "tests/unit/storage/replica.h"

void
replica_init(struct replica *replica, struct table_metadata *table)
{
	for (int i = 0; i < REPLICA_MEMTABLES; i++)
		replica->memtables[i] = memtable_new(table, 2, NULL);
}

void
replica_fini(struct replica *replica)
{
	for (int i = 0; i < REPLICA_MEMTABLES; i++)
		memtable_unref(replica->memtables[i]);
}

void
replica_apply(struct replica *replica, const struct partition_update *update, struct random *random)
{
	struct error err;

	ck_assert_int_eq(memtable_apply(replica->memtables[random_below(random, REPLICA_MEMTABLES)],
			     update, &err),
	    0);
}

struct slice
replica_key(int key, struct arena *arena)
{
	uint8_t *at = arena_alloc_bytes(arena, 4);

	store_u32(at, (uint32_t)key);
	return slice_of(at, 4);
}

void
replica_apply_facts(
    struct replica *replica, struct facts *facts, uint64_t which, int key, struct random *random)
{
	uint64_t all = facts->count == 64 ? UINT64_MAX : (UINT64_C(1) << facts->count) - 1;
	uint64_t left = which & all;

	while (left != 0) {
		struct partition_update update;
		uint64_t group = 0;

		for (uint32_t i = 0; i < facts->count; i++) {
			if (((left >> i) & 1) && random_below(random, 3) == 0)
				group |= UINT64_C(1) << i;
		}
		left &= ~group;
		facts_update(facts, group, &update);
		update.key = replica_key(key, &facts->arena);
		update.token = murmur3_token(update.key);
		replica_apply(replica, &update, random);
	}
}

/* One partition as a stream of partitions. */
struct replica_lone {
	struct partition_iterator base;
	struct unfiltered_iterator *partition;
};

static int
replica_lone_next(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *err)
{
	struct replica_lone *lone = (struct replica_lone *)iterator;

	(void)err;
	*out = lone->partition;
	lone->partition = NULL;
	return *out != NULL;
}

static void
replica_lone_close(struct partition_iterator *iterator)
{
	unfiltered_iterator_close(((struct replica_lone *)iterator)->partition);
}

static const struct partition_iterator_ops replica_lone_ops = {
    replica_lone_next, replica_lone_close};

struct partition_iterator *
replica_read(struct replica *replica, const struct read_command *command, struct arena *arena)
{
	struct unfiltered_iterator *partitions[REPLICA_MEMTABLES];
	struct partition_iterator *scans[REPLICA_MEMTABLES], *out;
	struct replica_lone *lone = arena_zalloc(arena, sizeof(*lone));
	size_t count = 0;
	struct error err;

	if (command->is_range) {
		for (int i = 0; i < REPLICA_MEMTABLES; i++)
			ck_assert_int_eq(memtable_scan(replica->memtables[i], command, arena, NULL,
					     &scans[i], &err),
			    0);
		ck_assert_int_eq(partition_merge(scans, REPLICA_MEMTABLES, arena, &out, &err), 0);
		return out;
	}
	for (int i = 0; i < REPLICA_MEMTABLES; i++) {
		ck_assert_int_eq(memtable_read(replica->memtables[i], command, arena, NULL,
				     &partitions[count], &err),
		    0);
		count += partitions[count] != NULL;
	}
	lone->base.ops = &replica_lone_ops;
	if (count != 0)
		ck_assert_int_eq(
		    unfiltered_merge(partitions, count, arena, &lone->partition, &err), 0);
	return &lone->base;
}

struct slice
replica_answer(struct replica *replica, const struct read_command *command, bool is_data,
    struct arena *arena, struct read_response_stats *stats)
{
	struct read_response_options options = {.wants_data = is_data, .wants_digest = is_data};
	struct buffer out;
	struct slice copy;
	struct error err;

	buffer_init(&out);
	ck_assert_msg(read_response_write(replica_read(replica, command, arena), command, &options,
			  arena, &out, stats, &err) == 0,
	    "%s", err.text);
	copy = arena_copy(arena, buffer_slice(&out));
	buffer_fini(&out);
	return copy;
}

struct read_command
replica_command(struct table_metadata *table, int key, struct arena *arena)
{
	struct read_command command = {
	    .table = table,
	    .is_range = key < 0,
	    .range = {.left = INT64_MIN, .right = INT64_MIN},
	    .clustering = {.with_static = true},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = 500,
	};

	if (key >= 0) {
		command.key = replica_key(key, arena);
		command.token = murmur3_token(command.key);
	}
	return command;
}

static struct slice
replica_bound(struct facts *facts, enum bound_kind kind, int row)
{
	int values[2] = {row / FACTS_C2, FACTS_C2 - 1 - row % FACTS_C2};

	return facts_position(facts, kind, values, 2);
}

void
replica_command_vary(struct read_command *command, struct facts *facts, struct random *random)
{
	struct clustering_slice *slices = arena_calloc(&facts->arena, 4, sizeof(*slices));
	uint64_t *wanted = arena_zalloc(&facts->arena, sizeof(*wanted));
	int next = 0;

	command->clustering.is_reversed = random_below(random, 2) == 0;
	command->clustering.with_static = random_below(random, 4) != 0;
	if (random_below(random, 4) == 0) {
		*wanted = random_below(random, 8);
		command->wanted_regulars = wanted;
	}
	if (random_below(random, 2) == 0)
		return;
	command->clustering.slices = slices;
	while (next < FACTS_ROWS && command->clustering.slice_count < 4) {
		struct clustering_slice *slice = &slices[command->clustering.slice_count];
		int from = next + (int)random_below(random, 4);
		int to = from + (int)random_below(random, 4);

		if (to >= FACTS_ROWS)
			break;
		slice->start = replica_bound(facts,
		    random_below(random, 2) == 0 ? BOUND_INCL_START : BOUND_EXCL_START, from);
		slice->end = replica_bound(facts, BOUND_INCL_END, to);
		if (slice_compare(slice->start, slice->end) < 0)
			command->clustering.slice_count++;
		next = to + 1;
	}
}

/* ---- printing ----------------------------------------------------------------------------------- */

static void
replica_print_bytes(const char *what, struct slice bytes, struct buffer *out)
{
	buffer_printf(out, "%s", what);
	for (size_t i = 0; i < bytes.size; i++)
		buffer_printf(out, "%02x", bytes.data[i]);
}

static void
replica_print_deletion(const char *what, struct deletion deletion, struct buffer *out)
{
	if (!deletion_is_live(deletion))
		buffer_printf(out, "%s%lld/%d", what, (long long)deletion.marked_for_delete_at,
		    deletion.local_deletion_time);
}

static void
replica_print_row(const struct row *row, struct buffer *out)
{
	replica_print_bytes("\n  row ", row->position, out);
	if (row->liveness.timestamp != TIMESTAMP_NONE)
		buffer_printf(out, " live %lld/%d/%d", (long long)row->liveness.timestamp,
		    row->liveness.ttl, row->liveness.local_expiration_time);
	replica_print_deletion(" deleted ", row->deletion, out);
	for (uint32_t i = 0; i < row->complex_deletion_count; i++)
		replica_print_deletion(" complex ", row->complex_deletions[i].deletion, out);
	for (uint32_t i = 0; i < row->cell_count; i++) {
		const struct cell *cell = &row->cells[i];

		buffer_printf(out, " %.*s", (int)cell->column->name.size,
		    (const char *)cell->column->name.data);
		replica_print_bytes("[", cell->path, out);
		replica_print_bytes("]=", cell->value, out);
		buffer_printf(out, "@%lld/%d/%d", (long long)cell->timestamp, cell->ttl,
		    cell->local_deletion_time);
	}
}

static void
replica_print_item(const struct unfiltered *item, struct buffer *out)
{
	if (item->kind == UNFILTERED_ROW) {
		replica_print_row(&item->row, out);
		return;
	}
	replica_print_bytes("\n  marker ", item->marker.position, out);
	buffer_printf(out, " kind %d", item->marker.kind);
	replica_print_deletion(" close ", item->marker.close, out);
	replica_print_deletion(" open ", item->marker.open, out);
}

void
replica_print(struct partition_iterator *partitions, struct buffer *out)
{
	struct unfiltered_iterator *partition;
	struct unfiltered item;
	struct error err;
	int rc;

	while ((rc = partition_iterator_next(partitions, &partition, &err)) > 0) {
		replica_print_bytes("partition ", partition->key, out);
		replica_print_deletion(" deleted ", partition->partition_deletion, out);
		if (partition->has_static_row)
			replica_print_row(&partition->static_row, out);
		while ((rc = unfiltered_iterator_next(partition, &item, &err)) > 0)
			replica_print_item(&item, out);
		ck_assert_msg(rc == 0, "%s", err.text);
		unfiltered_iterator_close(partition);
		buffer_printf(out, "\n");
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	partition_iterator_close(partitions);
	buffer_put_u8(out, 0);
}
