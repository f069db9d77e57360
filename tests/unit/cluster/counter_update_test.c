/* SPDX-License-Identifier: Apache-2.0 */
/* What a leader of counters begins with: its newest shard, whatever came back to it of older ones. */
#include "cluster/counter_update.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "storage/counter.h"
#include "tests/sim/world/ring_internal.h"

static struct ring *ring;

static void
begin(uint32_t nodes)
{
	struct ring_options options = {
	    .world = {.seed = 5,
		.node_count = nodes,
		.faults = {.delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS},
		.is_encoded = true},
	    .factor = (int32_t)nodes};

	log_set_level("ROOT", LOG_OFF);
	ring = ring_new(&options);
}

static void
increment(uint32_t node, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++) {
		struct ring_op op = {.on_done = NULL};

		ring_increment(ring, node, &op, 1, 1, CONSISTENCY_ALL);
		ring_wait(ring, &op);
		ck_assert(op.is_done && !op.has_failed);
		ring_op_free(&op);
	}
}

static int64_t
total(uint32_t node)
{
	struct ring_op op = {.on_done = NULL};
	int64_t found;

	ring_get(ring, node, &op, 1, 1, 0, CONSISTENCY_ALL);
	ring_wait(ring, &op);
	ck_assert(op.is_done && !op.has_failed && op.row_count == 1);
	found = op.rows[0].v;
	ring_op_free(&op);
	return found;
}

static void
applied(struct store_write *write, const struct error *err)
{
	(void)write;
	ck_assert_ptr_null(err);
}

/* A shard of node 0 that somebody has, and sends it: of a read repair, or a hint. */
static void
send_shard(int64_t clock, int64_t count)
{
	struct ring_node *node = ring_node(ring, 0);
	struct table_metadata *table = node->tables[1];
	struct uuid id = ring_host_id(node);
	struct cell cell = {.column = table_column(table, slice_of_string("n")),
	    .timestamp = 1,
	    .local_deletion_time = LOCAL_DELETION_TIME_NONE};
	struct row row = {
	    .liveness = LIVENESS_NONE, .deletion = DELETION_LIVE, .cell_count = 1, .cells = &cell};
	struct partition_update update;
	struct mutation mutation;
	struct store_write write = {.mutation = &mutation, .on_done = applied};
	struct update_builder *builder;
	struct arena arena;
	struct error err;
	uint8_t key[4];

	arena_init(&arena, 4096);
	memset(&update, 0, sizeof(update));
	store_u32(key, 1);
	cell.value = counter_make_global(&id, clock, count, &arena);
	builder = update_builder_new(table, slice_of(key, sizeof(key)), &arena);
	ck_assert_int_eq(update_builder_add_row(builder, &row, &err), 0);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	mutation = (struct mutation){.keyspace = (const char *)table->keyspace.data,
	    .key = update.key,
	    .token = update.token,
	    .update_count = 1,
	    .updates = &update};
	store_apply(node->store, &write);
	arena_fini(&arena);
}

/* Nothing is cached: it was thrown out, or data came by a stream. */
static void
check_old_shard(uint32_t nodes)
{
	begin(nodes);
	increment(0, 3);
	ck_assert_int_eq(total(0), 3);
	store_invalidate_counter_cache(ring_store(ring, 0));
	send_shard(1, 1);
	increment(0, 1);
	ck_assert_int_eq(total(0), 4);
	send_shard(1, 1);
	increment(0, 1);
	ck_assert_int_eq(total(0), 5);
	ring_free(ring);
}

START_TEST(test_an_old_shard_that_comes_back_is_not_begun_with)
{
	check_old_shard(1);
	check_old_shard(3);
}
END_TEST

/* The node's data was lost, and others give it back. */
START_TEST(test_a_newer_shard_that_comes_back_is_begun_with)
{
	int64_t later = INT64_MAX / 2;

	begin(1);
	increment(0, 3);
	send_shard(later, 100);
	increment(0, 1);
	ck_assert_int_eq(total(0), 101);
	store_invalidate_counter_cache(ring_store(ring, 0));
	send_shard(later + 2, 200);
	increment(0, 1);
	ck_assert_int_eq(total(0), 201);
	ring_free(ring);
}
END_TEST

START_TEST(test_what_the_node_leads_is_cached)
{
	struct store_cache_stats before, after;

	begin(3);
	increment(0, 1);
	store_counter_cache_stats(ring_store(ring, 0), &before);
	increment(0, 10);
	store_counter_cache_stats(ring_store(ring, 0), &after);
	ck_assert_uint_eq(after.hits - before.hits, 10);
	ck_assert_uint_eq(after.entries, 1);
	/* Not what others lead. */
	store_counter_cache_stats(ring_store(ring, 1), &after);
	ck_assert_uint_eq(after.entries, 0);
	ring_free(ring);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("counter_update");
	TCase *tcase = tcase_create("counter_update");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, test_an_old_shard_that_comes_back_is_not_begun_with);
	tcase_add_test(tcase, test_a_newer_shard_that_comes_back_is_begun_with);
	tcase_add_test(tcase, test_what_the_node_leads_is_cached);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
