/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "storage/stream_reader.h"
#include "storage/stream_writer.h"
#include "tests/unit/storage/replica.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture from, to;
static struct error err;

static struct table_store *
test_table(struct store_fixture *fixture)
{
	return store_table(fixture->store, fixture->table);
}

/* As after a crash: nothing is flushed. */
static void
test_reopen(struct store_fixture *fixture)
{
	store_fixture_close(fixture);
	store_fixture_open(fixture);
}

static void
test_done(struct store_write *write, const struct error *error)
{
	(void)write;
	ck_assert_ptr_null(error);
}

/* The rows from `ck` on are deleted. */
static void
test_delete_from(struct store_fixture *fixture, int32_t pk, int32_t ck, int64_t timestamp)
{
	struct partition_update update;
	struct mutation mutation = {.keyspace = "ks", .update_count = 1, .updates = &update};
	struct store_write write = {
	    .mutation = &mutation, .is_durable = true, .on_done = test_done};
	struct update_builder *builder;
	struct range_tombstone tombstone;
	struct slice start;
	struct arena arena;

	arena_init(&arena, 4096);
	builder = update_builder_new(fixture->table, replica_key(pk, &arena), &arena);
	start = replica_key(ck, &arena);
	tombstone = (struct range_tombstone){
	    BOUND_INCL_START, BOUND_INCL_END, 1, 0, &start, NULL, {timestamp, (int32_t)time(NULL)}};
	ck_assert_int_eq(update_builder_delete_range(builder, &tombstone, &err), 0);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	mutation.key = update.key;
	mutation.token = update.token;
	store_apply(fixture->store, &write);
	arena_fini(&arena);
}

/* Everything in (left, right], tombstones too. */
static void
test_print(struct store_fixture *fixture, int64_t left, int64_t right, struct buffer *out)
{
	struct read_command command = {
	    .table = fixture->table,
	    .is_range = true,
	    .range = {.left = left, .right = right},
	    .clustering = {.with_static = true},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = time(NULL),
	};
	struct partition_iterator *partitions;
	struct arena arena;

	arena_init(&arena, 65536);
	ck_assert_int_eq(store_read(fixture->store, &command, &arena, &partitions, &err), 0);
	replica_print(partitions, out);
	arena_fini(&arena);
}

static void
test_setup(void)
{
	store_fixture_init(&from);
	store_fixture_init(&to);
}

static void
test_teardown(void)
{
	store_fixture_fini(&to);
	store_fixture_fini(&from);
}

/* Two SSTables and a memtable of 200 partitions with rows, deleted rows and range tombstones. */
static void
test_fill(struct store_fixture *fixture)
{
	char text[600];

	for (int round = 0; round < 3; round++) {
		for (int pk = round; pk < 200; pk++) {
			for (int ck = 0; ck < 5; ck++) {
				snprintf(text, sizeof(text), "%d %d %0*d", pk, ck,
				    pk % 3 == 0 ? 500 : 1, round);
				store_fixture_insert(fixture, pk, ck, text, 10 + round);
			}
			store_fixture_insert(fixture, pk, 7, NULL, 20);
			test_delete_from(fixture, pk, 4, 30 + round);
		}
		if (round < 2)
			store_fixture_flush(fixture);
	}
}

/* Send a file, cut into pieces of `piece` bytes; stops after `upto` pieces. -1: the reader refused. */
static int
test_send_file(struct stream_plan *plan, uint32_t index, struct stream_transaction *transaction,
    size_t block, size_t piece, size_t corrupt)
{
	struct stream_writer *writer;
	struct stream_reader *reader;
	struct buffer bytes;
	int rc;

	buffer_init(&bytes);
	ck_assert_int_eq(stream_writer_open(plan, index, &writer, &err), 0);
	while ((rc = stream_writer_next(writer, block, &bytes, &err)) > 0)
		continue;
	ck_assert_msg(rc == 0, "%s", err.text);
	ck_assert_int_eq(stream_writer_next(writer, block, &bytes, &err), 0);
	stream_writer_close(writer);
	if (corrupt != 0)
		bytes.data[corrupt < bytes.size ? corrupt : bytes.size - 1] ^= 1;
	ck_assert_int_eq(stream_reader_new(transaction, &reader, &err), 0);
	for (size_t at = 0; at < bytes.size && rc == 0; at += piece)
		rc = stream_reader_push(reader,
		    slice_of(bytes.data + at, bytes.size - at < piece ? bytes.size - at : piece),
		    &err);
	if (rc == 0)
		rc = stream_reader_finish(reader, &err);
	else
		stream_reader_abort(reader);
	buffer_fini(&bytes);
	return rc;
}

static uint32_t
test_stream(
    const struct stream_range *ranges, uint32_t count, bool entire, size_t block, size_t piece)
{
	struct stream_plan_options options = {.entire_sstables = entire};
	struct stream_transaction *transaction;
	struct stream_plan *plan;
	uint32_t entire_files = 0;

	ck_assert_msg(stream_plan_new(
			  from.store, test_table(&from), ranges, count, &options, &plan, &err) == 0,
	    "%s", err.text);
	ck_assert_int_eq(
	    stream_transaction_begin(to.store, test_table(&to), 1000, &transaction, &err), 0);
	for (uint32_t i = 0; i < stream_plan_count(plan); i++) {
		entire_files += stream_plan_file(plan, i)->is_entire;
		ck_assert_msg(
		    test_send_file(plan, i, transaction, block, piece, 0) == 0, "%s", err.text);
	}
	stream_plan_free(plan);
	ck_assert_msg(stream_transaction_finish(transaction, &err) == 0, "%s", err.text);
	return entire_files;
}

static void
test_same(int64_t left, int64_t right)
{
	struct buffer a, b;

	buffer_init(&a);
	buffer_init(&b);
	test_print(&from, left, right, &a);
	test_print(&to, left, right, &b);
	ck_assert_str_eq((char *)a.data, (char *)b.data);
	ck_assert_uint_gt(a.size, 10);
	buffer_fini(&a);
	buffer_fini(&b);
}

static void
test_holds_nothing(int64_t left, int64_t right)
{
	struct buffer a;

	buffer_init(&a);
	test_print(&to, left, right, &a);
	ck_assert_str_eq((char *)a.data, "");
	buffer_fini(&a);
}

START_TEST(test_whole_sstables_arrive)
{
	struct stream_range all = {5, 5};

	test_fill(&from);
	ck_assert_uint_eq(test_stream(&all, 1, true, 4096, 1000), 3);
	test_same(INT64_MIN, INT64_MIN);
	test_reopen(&to);
	test_same(INT64_MIN, INT64_MIN);
}
END_TEST

START_TEST(test_ranges_arrive_and_nothing_else)
{
	struct stream_range ranges[] = {{1000, 1000000000000000000}, {-2000000000000000000, -7}};

	test_fill(&from);
	ck_assert_uint_eq(test_stream(ranges, 2, true, 1000, 1), 0);
	test_same(1000, 1000000000000000000);
	test_same(-2000000000000000000, -7);
	test_holds_nothing(-7, 1000);
	test_holds_nothing(1000000000000000000, INT64_MIN);
	test_holds_nothing(INT64_MIN, -2000000000000000000);
}
END_TEST

START_TEST(test_a_range_round_the_end_of_the_ring)
{
	struct stream_range range = {3000000000000000000, -3000000000000000000};

	test_fill(&from);
	test_stream(&range, 1, false, 100000, 3000);
	test_same(3000000000000000000, INT64_MIN);
	test_same(INT64_MIN, -3000000000000000000);
	test_holds_nothing(-3000000000000000000, 3000000000000000000);
}
END_TEST

/* Only what was finished counts, and not before the transaction has ended. */
START_TEST(test_all_or_nothing)
{
	struct stream_range all = {5, 5};
	struct stream_plan_options options = {.entire_sstables = true};
	struct stream_transaction *transaction;
	struct stream_plan *plan;

	test_fill(&from);
	for (int i = 0; i < 2; i++) {
		options.entire_sstables = i == 0;
		ck_assert_int_eq(
		    stream_plan_new(from.store, test_table(&from), &all, 1, &options, &plan, &err),
		    0);
		ck_assert_int_eq(
		    stream_transaction_begin(to.store, test_table(&to), 1000, &transaction, &err),
		    0);
		ck_assert_int_eq(test_send_file(plan, 0, transaction, 5000, 777, 0), 0);
		test_holds_nothing(INT64_MIN, INT64_MIN);
		stream_transaction_abort(transaction);
		stream_plan_free(plan);
		test_holds_nothing(INT64_MIN, INT64_MIN);
		test_reopen(&to);
		test_holds_nothing(INT64_MIN, INT64_MIN);
	}
}
END_TEST

START_TEST(test_a_damaged_file_comes_again)
{
	struct stream_range all = {5, 5};
	struct stream_plan_options options = {.entire_sstables = true};
	struct stream_transaction *transaction;
	struct stream_plan *plan;

	test_fill(&from);
	for (int i = 0; i < 2; i++) {
		options.entire_sstables = i == 0;
		ck_assert_int_eq(
		    stream_plan_new(from.store, test_table(&from), &all, 1, &options, &plan, &err),
		    0);
		ck_assert_int_eq(
		    stream_transaction_begin(to.store, test_table(&to), 1000, &transaction, &err),
		    0);
		for (uint32_t file = 0; file < stream_plan_count(plan); file++) {
			for (size_t corrupt = 1; corrupt < 20000; corrupt += 1 + corrupt * 2) {
				ck_assert_int_eq(
				    test_send_file(plan, file, transaction, 5000, 5000, corrupt),
				    -1);
				ck_assert_int_eq(err.code, ERROR_PROTOCOL);
			}
			ck_assert_int_eq(test_send_file(plan, file, transaction, 5000, 5000, 0), 0);
		}
		ck_assert_uint_eq(stream_transaction_files(transaction), stream_plan_count(plan));
		stream_plan_free(plan);
		ck_assert_int_eq(stream_transaction_finish(transaction, &err), 0);
		test_same(INT64_MIN, INT64_MIN);
	}
}
END_TEST

/* SSTables that are compacted away meanwhile are still sent. */
START_TEST(test_a_plan_holds_its_sstables)
{
	struct stream_range all = {5, 5};
	struct stream_plan_options options = {.entire_sstables = true};
	struct stream_transaction *transaction;
	struct stream_plan *plan;

	test_fill(&from);
	ck_assert_int_eq(
	    stream_plan_new(from.store, test_table(&from), &all, 1, &options, &plan, &err), 0);
	ck_assert_msg(store_compact(from.store, test_table(&from), &err) == 0, "%s", err.text);
	ck_assert_int_eq(
	    stream_transaction_begin(to.store, test_table(&to), 1000, &transaction, &err), 0);
	for (uint32_t i = 0; i < stream_plan_count(plan); i++)
		ck_assert_msg(
		    test_send_file(plan, i, transaction, 5000, 5000, 0) == 0, "%s", err.text);
	stream_plan_free(plan);
	ck_assert_int_eq(stream_transaction_finish(transaction, &err), 0);
	test_same(INT64_MIN, INT64_MIN);
}
END_TEST

START_TEST(test_ranges_are_made_normal)
{
	struct stream_range ranges[] = {{10, 20}, {15, 30}, {30, 31}, {100, -100}, {50, 60}};
	uint32_t count;
	struct stream_range *normal = stream_ranges_normalize(ranges, 5, &count);

	ck_assert_uint_eq(count, 4);
	ck_assert(normal[0].left == INT64_MIN && normal[0].right == -100);
	ck_assert(normal[1].left == 10 && normal[1].right == 31);
	ck_assert(normal[2].left == 50 && normal[2].right == 60);
	ck_assert(normal[3].left == 100 && normal[3].right == INT64_MIN);
	free(normal);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("storage/stream");
	TCase *cases = tcase_create("stream");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, test_setup, test_teardown);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, test_whole_sstables_arrive);
	tcase_add_test(cases, test_ranges_arrive_and_nothing_else);
	tcase_add_test(cases, test_a_range_round_the_end_of_the_ring);
	tcase_add_test(cases, test_all_or_nothing);
	tcase_add_test(cases, test_a_damaged_file_comes_again);
	tcase_add_test(cases, test_a_plan_holds_its_sstables);
	tcase_add_test(cases, test_ranges_are_made_normal);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
