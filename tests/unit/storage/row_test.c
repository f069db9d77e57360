/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "storage/counter.h"
#include "storage/row_codec.h"
#include "tests/unit/storage/facts.h"

static struct table_metadata *table;
static struct arena arena;
static struct error err;

static void
test_setup(void)
{
	table = facts_table();
	arena_init(&arena, 65536);
}

static void
test_teardown(void)
{
	table_unref(table);
	arena_fini(&arena);
}

static const struct column_metadata *
test_column(const char *name)
{
	return table_column(table, slice_of_string(name));
}

static struct cell
test_cell(const char *value, int64_t timestamp, int32_t ttl, int32_t local_deletion_time)
{
	return (struct cell){test_column("b"), timestamp, ttl, local_deletion_time, slice_null,
	    slice_of_string(value)};
}

/* ---- reconciliation ------------------------------------------------------------------------------ */

START_TEST(test_ties_are_decided_as_cassandra_does)
{
	enum { NONE = LOCAL_DELETION_TIME_NONE };
	/* Ascending: each beats all before it. */
	const struct cell cells[] = {
	    test_cell("z", 1, 0, NONE),
	    test_cell("a", 2, 0, NONE),
	    test_cell("b", 2, 0, NONE),
	    test_cell("a", 2, 10, 100), /* expiring beats live, whatever the value */
	    test_cell("b", 2, 10, 100),
	    test_cell("a", 2, 10, 101),
	    test_cell("", 2, 0, 50), /* a tombstone beats an expiring cell */
	    test_cell("", 2, 0, 60),
	    test_cell("", 3, 0, NONE),
	};
	size_t count = sizeof(cells) / sizeof(cells[0]);

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++)
			ck_assert_ptr_eq(
			    cell_reconcile(&cells[i], &cells[j]), &cells[i > j ? i : j]);
	}
}
END_TEST

START_TEST(test_bytes_compare_unsigned)
{
	struct cell a = test_cell("\x7f", 1, 0, LOCAL_DELETION_TIME_NONE);
	struct cell b = test_cell("\x80", 1, 0, LOCAL_DELETION_TIME_NONE);

	ck_assert_ptr_eq(cell_reconcile(&a, &b), &b);
	ck_assert_ptr_eq(cell_reconcile(&b, &a), &b);
}
END_TEST

START_TEST(test_live_view_shows_what_is_alive)
{
	struct cell cells[] = {
	    test_cell("live", 1, 0, LOCAL_DELETION_TIME_NONE),
	    test_cell("later", 1, 10, 101),
	    test_cell("expired", 1, 10, 100),
	    test_cell("", 1, 0, 50),
	};
	struct row row = {
	    .liveness = {1, 10, 100},
	    .deletion = {0, 50},
	    .cell_count = 4,
	    .cells = cells,
	};
	struct row out;
	uint32_t tombstones;
	bool has_live;

	ck_assert_int_eq(row_live_view(&row, 100, &arena, &out, &has_live, &tombstones, &err), 0);
	ck_assert(has_live);
	ck_assert_uint_eq(tombstones, 2);
	ck_assert_uint_eq(out.cell_count, 2);
	ck_assert(deletion_is_live(out.deletion));
	ck_assert_int_eq(out.liveness.timestamp, TIMESTAMP_NONE);

	ck_assert_int_eq(row_live_view(&row, 99, &arena, &out, &has_live, &tombstones, &err), 0);
	ck_assert_uint_eq(tombstones, 1);
	ck_assert_int_eq(out.liveness.timestamp, 1);

	row.cell_count = 0;
	ck_assert_int_eq(row_live_view(&row, 100, &arena, &out, &has_live, &tombstones, &err), 0);
	ck_assert(!has_live);
	ck_assert_uint_eq(tombstones, 1);
	ck_assert(row_is_empty(&out));
}
END_TEST

START_TEST(test_deleted_counter_stays_deleted_and_counters_add_up)
{
	struct column_metadata column = {.name = slice_of_string("n"),
	    .type = type_native(TYPE_COUNTER),
	    .kind = COLUMN_REGULAR};
	struct uuid one = {{1}}, two = {{2}};
	struct cell a = {&column, 5, TTL_NONE, LOCAL_DELETION_TIME_NONE, slice_null,
	    counter_make_global(&one, 1, 10, &arena)};
	struct cell b = {&column, 9, TTL_NONE, LOCAL_DELETION_TIME_NONE, slice_null,
	    counter_make_global(&two, 1, 4, &arena)};
	struct cell deleted = {&column, 1, TTL_NONE, 77, slice_null, slice_empty};
	struct cell merged = a;

	ck_assert_int_eq(cell_merge(&merged, &b, &arena, &err), 0);
	ck_assert_int_eq(counter_total(merged.value), 14);
	ck_assert_int_eq(merged.timestamp, 9);
	ck_assert_int_eq(cell_merge(&merged, &deleted, &arena, &err), 0);
	ck_assert(cell_is_tombstone(&merged));
	ck_assert_int_eq(cell_merge(&merged, &b, &arena, &err), 0);
	ck_assert(cell_is_tombstone(&merged));
}
END_TEST

/* ---- the codec ----------------------------------------------------------------------------------- */

START_TEST(test_row_has_cassandras_bytes)
{
	/* c1 = 1, c2 = 2; liveness at epoch + 5; a = 7 with the row's time, b = "x" one later with TTL. */
	static const uint8_t one[] = {0, 0, 0, 1}, two[] = {0, 0, 0, 2}, seven[] = {0, 0, 0, 7};
	static const uint8_t expected[] = {
	    0x04, /* has timestamp */
	    0x00, 0, 0, 0, 1, 0, 0, 0, 2, /* clustering: header, values of fixed length */
	    15, 0x81, 0x00, /* size behind this: two bytes of previous size and the body */
	    0x05, /* timestamp */
	    0x04, /* m is absent */
	    0x08, 0, 0, 0, 7, /* a: the row's timestamp */
	    0x02, 0x06, 0x0a, 0x0a, 0x01, 'x', /* b: expiring, at, when, ttl, length */
	};
	struct slice clustering[] = {slice_of(one, 4), slice_of(two, 4)};
	struct cell cells[] = {
	    {test_column("a"), CODEC_TIMESTAMP_EPOCH + 5, TTL_NONE, LOCAL_DELETION_TIME_NONE,
		slice_null, slice_of(seven, 4)},
	    {test_column("b"), CODEC_TIMESTAMP_EPOCH + 6, 10, CODEC_DELETION_TIME_EPOCH + 10,
		slice_null, slice_of_string("x")},
	};
	struct row row = {
	    .clustering_count = 2,
	    .clustering = clustering,
	    .liveness = {CODEC_TIMESTAMP_EPOCH + 5, TTL_NONE, LOCAL_DELETION_TIME_NONE},
	    .deletion = DELETION_LIVE,
	    .cell_count = 2,
	    .cells = cells,
	};
	struct row_codec codec;
	struct buffer out;

	row_codec_init(&codec, table);
	buffer_init(&out);
	row_encode(&codec, ROW_CODEC_SSTABLE, &row, 256, &out);
	ck_assert_uint_eq(out.size, sizeof(expected));
	ck_assert_mem_eq(out.data, expected, sizeof(expected));
	buffer_fini(&out);
}
END_TEST

static bool
test_same_cells(const struct row *a, const struct row *b)
{
	if (a->cell_count != b->cell_count ||
	    a->complex_deletion_count != b->complex_deletion_count)
		return false;
	for (uint32_t i = 0; i < a->cell_count; i++) {
		const struct cell *x = &a->cells[i], *y = &b->cells[i];

		if (x->column != y->column || x->timestamp != y->timestamp || x->ttl != y->ttl ||
		    x->local_deletion_time != y->local_deletion_time ||
		    !slice_equal(x->path, y->path) || !slice_equal(x->value, y->value))
			return false;
	}
	for (uint32_t i = 0; i < a->complex_deletion_count; i++) {
		if (a->complex_deletions[i].column != b->complex_deletions[i].column ||
		    memcmp(&a->complex_deletions[i].deletion, &b->complex_deletions[i].deletion,
			sizeof(int64_t)) != 0)
			return false;
	}
	return a->liveness.timestamp == b->liveness.timestamp &&
	    a->liveness.ttl == b->liveness.ttl &&
	    a->liveness.local_expiration_time == b->liveness.local_expiration_time &&
	    a->deletion.marked_for_delete_at == b->deletion.marked_for_delete_at &&
	    a->deletion.local_deletion_time == b->deletion.local_deletion_time;
}

static void
test_round_trip(const struct row_codec *codec, enum row_codec_flavor flavor, const struct row *row)
{
	struct buffer out;
	struct reader reader, skipping;
	enum unfiltered_kind kind;
	struct row decoded;
	struct marker marker;

	buffer_init(&out);
	row_encode(codec, flavor, row, 12345, &out);
	reader = skipping = reader_of(buffer_slice(&out));
	ck_assert_msg(unfiltered_decode(codec, flavor, &reader, row->is_static, NULL, &arena, &kind,
			  &decoded, &marker, &err) == 0,
	    "%s", err.text);
	ck_assert_int_eq(kind, UNFILTERED_ROW);
	ck_assert_uint_eq(reader_left(&reader), 0);
	ck_assert(test_same_cells(row, &decoded));
	ck_assert_uint_eq(decoded.clustering_count, row->clustering_count);
	for (uint32_t i = 0; i < row->clustering_count; i++)
		ck_assert(slice_equal(decoded.clustering[i], row->clustering[i]));
	ck_assert_int_eq(unfiltered_skip(codec, flavor, &skipping, row->is_static, &kind, &err), 0);
	ck_assert_uint_eq(reader_left(&skipping), 0);
	buffer_fini(&out);
}

START_TEST(test_rows_of_facts_come_back)
{
	struct facts facts;
	struct row_codec codec;

	facts_init(&facts);
	row_codec_init(&codec, facts.table);
	codec.min_timestamp = 0; /* as an SSTable's header has them */
	codec.min_local_deletion_time = 1000;
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct random random = {seed};
		struct partition_update update;

		facts_generate(&facts, &random, 60);
		facts_update(&facts, UINT64_MAX, &update);
		for (uint32_t i = 0; i < update.row_count; i++) {
			test_round_trip(&codec, ROW_CODEC_MESSAGE, &update.rows[i]);
			test_round_trip(&codec, ROW_CODEC_SSTABLE, &update.rows[i]);
		}
		if (update.static_row != NULL)
			test_round_trip(&codec, ROW_CODEC_SSTABLE, update.static_row);
		arena_reset(&arena);
	}
	facts_fini(&facts);
}
END_TEST

START_TEST(test_times_below_the_minima_come_back)
{
	struct cell cells[] = {
	    test_cell("x", INT64_MIN + 1, 0, LOCAL_DELETION_TIME_NONE),
	};
	struct slice clustering[2] = {slice_null, slice_empty};
	struct row row = {
	    .clustering_count = 2,
	    .clustering = clustering,
	    .liveness = {-5, TTL_MAX, -7},
	    .deletion = {INT64_MAX, 0},
	    .cell_count = 1,
	    .cells = cells,
	};
	struct row_codec codec;

	row_codec_init(&codec, table);
	test_round_trip(&codec, ROW_CODEC_MESSAGE, &row);
	codec.min_timestamp = INT64_MAX;
	codec.min_ttl = 100;
	test_round_trip(&codec, ROW_CODEC_SSTABLE, &row);
}
END_TEST

START_TEST(test_markers_of_every_kind_come_back)
{
	static const enum bound_kind kinds[] = {BOUND_EXCL_END, BOUND_INCL_START,
	    BOUND_EXCL_END_INCL_START, BOUND_INCL_END_EXCL_START, BOUND_INCL_END, BOUND_EXCL_START};
	static const uint8_t one[] = {0, 0, 0, 1};
	struct slice clustering[] = {slice_of(one, 4)};
	struct row_codec codec;

	row_codec_init(&codec, table);
	for (size_t i = 0; i < 12; i++) {
		enum row_codec_flavor flavor = i < 6 ? ROW_CODEC_SSTABLE : ROW_CODEC_MESSAGE;
		struct marker marker = {
		    .kind = kinds[i % 6],
		    .clustering_count = i % 2,
		    .clustering = clustering,
		    .close = {5, 6},
		    .open = {7, 8},
		};
		struct marker decoded;
		struct row row;
		struct buffer out;
		struct reader reader, skipping;
		enum unfiltered_kind kind;

		buffer_init(&out);
		marker_encode(&codec, flavor, &marker, 99, &out);
		reader = skipping = reader_of(buffer_slice(&out));
		ck_assert_int_eq(unfiltered_decode(&codec, flavor, &reader, false, NULL, &arena,
				     &kind, &row, &decoded, &err),
		    0);
		ck_assert_int_eq(kind, UNFILTERED_MARKER);
		ck_assert_uint_eq(reader_left(&reader), 0);
		ck_assert_int_eq(decoded.kind, marker.kind);
		ck_assert_uint_eq(decoded.clustering_count, marker.clustering_count);
		if (bound_closes(marker.kind))
			ck_assert_int_eq(decoded.close.marked_for_delete_at, 5);
		if (bound_opens(marker.kind))
			ck_assert_int_eq(decoded.open.marked_for_delete_at, 7);
		ck_assert_int_eq(unfiltered_skip(&codec, flavor, &skipping, false, &kind, &err), 0);
		ck_assert_uint_eq(reader_left(&skipping), 0);
		buffer_fini(&out);
	}
}
END_TEST

/* A table of many columns and rows with random sets of them; decoded whole and in part. */
static void
test_wide_table(uint32_t columns)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("wide"));
	struct random random = {columns};
	struct table_metadata *wide;
	struct row_codec codec;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	for (uint32_t i = 0; i < columns; i++) {
		char name[16];

		snprintf(name, sizeof(name), "c%05u", i);
		table_builder_add(builder, COLUMN_REGULAR, name, "blob");
	}
	ck_assert_int_eq(table_builder_build(builder, &wide, &err), 0);
	table_builder_free(builder);
	row_codec_init(&codec, wide);

	for (int round = 0; round < 100; round++) {
		struct cell *cells = arena_alloc(&arena, columns * sizeof(*cells));
		struct row row = {.liveness = LIVENESS_NONE, .deletion = {1, 1}, .cells = cells};
		uint64_t wanted[32] = {0};
		uint32_t chance = 1 + random_below(&random, 100), kept = 0;
		struct buffer out;
		struct reader reader;
		enum unfiltered_kind kind;
		struct row decoded;
		struct marker marker;

		for (uint32_t i = 0; i < columns; i++) {
			if (random_below(&random, 100) >= chance && round != 0)
				continue;
			cells[row.cell_count++] = (struct cell){&wide->regulars[i], 5, TTL_NONE,
			    LOCAL_DELETION_TIME_NONE, slice_null, slice_of_string("value")};
			if (random_below(&random, 2) == 0) {
				wanted[i >> 6] |= UINT64_C(1) << (i & 63);
				kept++;
			}
		}
		test_round_trip(&codec, ROW_CODEC_SSTABLE, &row);
		test_round_trip(&codec, ROW_CODEC_MESSAGE, &row);
		buffer_init(&out);
		row_encode(&codec, ROW_CODEC_MESSAGE, &row, 0, &out);
		reader = reader_of(buffer_slice(&out));
		ck_assert_int_eq(unfiltered_decode(&codec, ROW_CODEC_MESSAGE, &reader, false,
				     wanted, &arena, &kind, &decoded, &marker, &err),
		    0);
		ck_assert_uint_eq(decoded.cell_count, kept);
		ck_assert_uint_eq(reader_left(&reader), 0);
		buffer_fini(&out);
		arena_reset(&arena);
	}
	table_unref(wide);
}

START_TEST(test_any_set_of_columns_comes_back)
{
	static const uint32_t counts[] = {1, 2, 7, 62, 63, 64, 65, 127, 128, 129, 1500};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		test_wide_table(counts[i]);
}
END_TEST

START_TEST(test_large_subset_lists_the_smaller_half)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("wide"));
	struct cell cells[2];
	struct row row = {
	    .liveness = LIVENESS_NONE, .deletion = DELETION_LIVE, .cell_count = 2, .cells = cells};
	/* flags, 68 of 70 absent, present: 3 and 69, two cells of deleted values */
	static const uint8_t expected[] = {0x00, 68, 3, 69, 0x05, 0, 0, 0x05, 0, 0};
	struct table_metadata *wide;
	struct row_codec codec;
	struct buffer out;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	for (uint32_t i = 0; i < 70; i++) {
		char name[16];

		snprintf(name, sizeof(name), "c%02u", i);
		table_builder_add(builder, COLUMN_REGULAR, name, "int");
	}
	ck_assert_int_eq(table_builder_build(builder, &wide, &err), 0);
	table_builder_free(builder);
	row_codec_init(&codec, wide);
	for (int i = 0; i < 2; i++)
		cells[i] = (struct cell){&wide->regulars[i == 0 ? 3 : 69], CODEC_TIMESTAMP_EPOCH,
		    TTL_NONE, CODEC_DELETION_TIME_EPOCH, slice_null, slice_empty};
	buffer_init(&out);
	row_encode(&codec, ROW_CODEC_MESSAGE, &row, 0, &out);
	ck_assert_uint_eq(out.size, sizeof(expected));
	ck_assert_mem_eq(out.data, expected, sizeof(expected));
	buffer_fini(&out);
	table_unref(wide);
}
END_TEST

START_TEST(test_bound_codec_drops_what_was_dropped)
{
	struct table_builder *builder = table_builder_from(table);
	struct cell cells[] = {
	    test_cell("old", 100, 0, LOCAL_DELETION_TIME_NONE),
	};
	struct slice clustering[2] = {slice_empty, slice_empty};
	struct row row = {
	    .clustering_count = 2,
	    .clustering = clustering,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE,
	    .cell_count = 1,
	    .cells = cells,
	};
	struct table_metadata *dropped, *again;
	struct row_codec codec, bound;

	ck_assert(table_builder_remove_column(builder, slice_of_string("b"), true, 100));
	ck_assert_int_eq(table_builder_build(builder, &dropped, &err), 0);
	table_builder_add(builder, COLUMN_REGULAR, "b", "text");
	ck_assert_int_eq(table_builder_build(builder, &again, &err), 0);
	table_builder_free(builder);
	row_codec_init(&codec, table);

	for (int i = 0; i < 4; i++) {
		const struct table_metadata *now = i < 2 ? dropped : again;
		struct buffer out;
		struct reader reader;
		enum unfiltered_kind kind;
		struct row decoded;
		struct marker marker;

		cells[0].timestamp = i % 2 == 0 ? 100 : 101;
		bound = codec;
		ck_assert_int_eq(row_codec_bind(&bound, now, &arena, &err), 0);
		buffer_init(&out);
		row_encode(&codec, ROW_CODEC_SSTABLE, &row, 0, &out);
		reader = reader_of(buffer_slice(&out));
		ck_assert_int_eq(unfiltered_decode(&bound, ROW_CODEC_SSTABLE, &reader, false, NULL,
				     &arena, &kind, &decoded, &marker, &err),
		    0);
		/* Only what was written after the drop into the column that came back. */
		ck_assert_uint_eq(decoded.cell_count, i == 3);
		if (i == 3)
			ck_assert_ptr_eq(
			    decoded.cells[0].column, table_column(again, slice_of_string("b")));
		else
			ck_assert(row_is_empty(&decoded));
		buffer_fini(&out);
	}
	table_unref(dropped);
	table_unref(again);
}
END_TEST

START_TEST(test_unknown_flags_are_corruption)
{
	static const uint8_t bytes[][4] = {
	    {0x80, 0x04, 0, 0}, {0x80, 0x01, 0, 0}, {0x08, 0, 0, 0}, {0x02, 3, 0, 0}};
	struct row_codec codec;

	row_codec_init(&codec, table);
	for (size_t i = 0; i < 4; i++) {
		struct reader reader = reader_of(slice_of(bytes[i], 4));
		enum unfiltered_kind kind;
		struct row row;
		struct marker marker;

		ck_assert_int_eq(unfiltered_decode(&codec, ROW_CODEC_MESSAGE, &reader, false, NULL,
				     &arena, &kind, &row, &marker, &err),
		    -1);
		ck_assert_int_eq(err.code, ERROR_CORRUPT);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("row");
	TCase *tcase = tcase_create("row");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_test(tcase, test_ties_are_decided_as_cassandra_does);
	tcase_add_test(tcase, test_bytes_compare_unsigned);
	tcase_add_test(tcase, test_live_view_shows_what_is_alive);
	tcase_add_test(tcase, test_deleted_counter_stays_deleted_and_counters_add_up);
	tcase_add_test(tcase, test_row_has_cassandras_bytes);
	tcase_add_test(tcase, test_rows_of_facts_come_back);
	tcase_add_test(tcase, test_times_below_the_minima_come_back);
	tcase_add_test(tcase, test_markers_of_every_kind_come_back);
	tcase_add_test(tcase, test_any_set_of_columns_comes_back);
	tcase_add_test(tcase, test_large_subset_lists_the_smaller_half);
	tcase_add_test(tcase, test_bound_codec_drops_what_was_dropped);
	tcase_add_test(tcase, test_unknown_flags_are_corruption);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
