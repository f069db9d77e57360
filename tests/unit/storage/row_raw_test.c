/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "storage/row_codec.h"
#include "storage/statistics.h"
#include "tests/unit/storage/facts.h"

static struct facts facts;
static struct error err;
static uint64_t cut_count;

static void
test_setup(void)
{
	facts_init(&facts);
	cut_count = 0;
}

static void
test_teardown(void)
{
	facts_fini(&facts);
}

static void
test_same_statistics(const struct row *row, const struct row_raw *raw)
{
	struct statistics_collector a, b;

	statistics_collector_init(&a);
	statistics_collector_init(&b);
	statistics_collect_row(&a, row);
	statistics_collect_raw(&b, raw);
	ck_assert_int_eq(a.min_timestamp, b.min_timestamp);
	ck_assert_int_eq(a.max_timestamp, b.max_timestamp);
	ck_assert_int_eq(a.min_local_deletion_time, b.min_local_deletion_time);
	ck_assert_int_eq(a.max_local_deletion_time, b.max_local_deletion_time);
	ck_assert_int_eq(a.min_ttl, b.min_ttl);
	ck_assert_int_eq(a.max_ttl, b.max_ttl);
	ck_assert_int_eq(a.total_columns_set, b.total_columns_set);
	ck_assert_int_eq(a.total_rows, b.total_rows);
	ck_assert_uint_eq(a.partition_cells, b.partition_cells);
	ck_assert_uint_eq(a.last_drop_count, b.last_drop_count);
	if (a.last_drop_count > 0)
		ck_assert_int_eq(a.last_drop_time, b.last_drop_time);
	statistics_collector_fini(&a);
	statistics_collector_fini(&b);
}

static void
test_encode(const struct row_codec *codec, enum row_codec_flavor flavor, const struct row *row,
    struct buffer *out)
{
	buffer_clear(out);
	row_encode(codec, flavor, row, 12345, out);
}

/* What goes into another file is byte for byte what the decoded row would be there. */
static void
test_carry(const struct row_codec *from, enum row_codec_flavor flavor, const struct row_codec *to,
    const struct row *row)
{
	struct buffer encoded, expected, got;
	struct row_raw raw;
	struct row decoded;

	buffer_init(&encoded);
	buffer_init(&expected);
	buffer_init(&got);
	test_encode(from, flavor, row, &encoded);
	if (row_raw_cut(from, flavor, buffer_slice(&encoded), &facts.arena, &raw)) {
		cut_count++;
		test_encode(to, ROW_CODEC_SSTABLE, row, &expected);
		row_raw_encode(to, &raw, 12345, &got);
		ck_assert(slice_equal(buffer_slice(&expected), buffer_slice(&got)));
		test_same_statistics(row, &raw);
		ck_assert_int_eq(row_raw_decode(&raw, &facts.arena, &decoded, &err), 0);
		test_encode(to, ROW_CODEC_SSTABLE, &decoded, &got);
		ck_assert(slice_equal(buffer_slice(&expected), buffer_slice(&got)));
	}
	/* Cut short or with a byte changed it may be anything, but nothing beyond its end is looked at. */
	for (size_t size = 0; size < encoded.size; size++) {
		uint8_t *copy = malloc(size);

		ck_assert(copy != NULL || size == 0);
		if (size > 0)
			memcpy(copy, encoded.data, size);
		row_raw_cut(from, flavor, slice_of(copy, size), &facts.arena, &raw);
		free(copy);
	}
	buffer_fini(&encoded);
	buffer_fini(&expected);
	buffer_fini(&got);
}

START_TEST(test_raw_rows_become_the_bytes_that_decoded_ones_do)
{
	struct row_codec epoch, near, far;
	uint64_t rows = 0;

	row_codec_init(&epoch, facts.table);
	near = far = epoch;
	near.min_timestamp = 0;
	near.min_local_deletion_time = 1000;
	far.min_timestamp = -3;
	far.min_local_deletion_time = 1100;
	far.min_ttl = 7;
	ck_assert(row_codec_is_carried(&epoch, facts.table));
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct random random = {seed};
		struct partition_update update;

		facts_generate(&facts, &random, 60);
		facts_update(&facts,
		    seed % 2 == 0 ? UINT64_MAX : seed * UINT64_C(0x9e3779b97f4a7c15), &update);
		for (uint32_t i = 0; i < update.row_count; i++) {
			rows++;
			test_carry(&epoch, ROW_CODEC_MESSAGE, &near, &update.rows[i]);
			test_carry(&near, ROW_CODEC_SSTABLE, &far, &update.rows[i]);
			test_carry(&near, ROW_CODEC_SSTABLE, &near, &update.rows[i]);
		}
	}
	ck_assert_uint_gt(cut_count, rows / 2); /* of 3 * rows */
}
END_TEST

/* Where one row is said to replace the other, the merge says so too. */
START_TEST(test_a_raw_row_replaces_what_merging_would_drop)
{
	struct row_codec codec;
	uint64_t replaced = 0;

	row_codec_init(&codec, facts.table);
	codec.min_timestamp = 0;
	codec.min_local_deletion_time = 1000;
	for (uint64_t seed = 1; seed <= 4000; seed++) {
		struct random random = {seed};
		struct buffer bytes[2], expected, got;
		struct partition_update updates[2];
		struct row_raw raws[2];
		const struct row *versions[2];
		struct row merged;

		facts_generate(&facts, &random, 1 + random_below(&random, 12));
		for (uint32_t i = 0; i < facts.count; i++) {
			facts.facts[i].c1 = facts.facts[i].c2 = 0;
			if (random_below(&random, 4) != 0)
				facts.facts[i].timestamp += 100 * (i & 1);
		}
		facts_update(&facts, UINT64_C(0x5555555555555555), &updates[0]);
		facts_update(&facts,
		    seed % 16 == 0 ? UINT64_C(0x5555555555555555) : UINT64_C(0xaaaaaaaaaaaaaaaa),
		    &updates[1]);
		if (updates[0].row_count != 1 || updates[1].row_count != 1)
			continue;
		for (int i = 0; i < 2; i++) {
			buffer_init(&bytes[i]);
			versions[i] = &updates[i].rows[0];
			test_encode(&codec, ROW_CODEC_SSTABLE, versions[i], &bytes[i]);
		}
		if (row_raw_cut(&codec, ROW_CODEC_SSTABLE, buffer_slice(&bytes[0]), &facts.arena,
			&raws[0]) &&
		    row_raw_cut(&codec, ROW_CODEC_SSTABLE, buffer_slice(&bytes[1]), &facts.arena,
			&raws[1]) &&
		    row_raw_replaces(&raws[1], &raws[0])) {
			replaced++;
			buffer_init(&expected);
			buffer_init(&got);
			ck_assert_int_eq(
			    row_merge(versions, 2, DELETION_LIVE, &facts.arena, &merged, &err), 0);
			test_encode(&codec, ROW_CODEC_SSTABLE, &merged, &expected);
			row_raw_encode(&codec, &raws[1], 12345, &got);
			ck_assert_msg(slice_equal(buffer_slice(&expected), buffer_slice(&got)),
			    "seed %llu", (unsigned long long)seed);
			buffer_fini(&expected);
			buffer_fini(&got);
		}
		buffer_fini(&bytes[0]);
		buffer_fini(&bytes[1]);
	}
	ck_assert_uint_gt(replaced, 100);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("row_raw");
	TCase *tcase = tcase_create("row_raw");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_test(tcase, test_raw_rows_become_the_bytes_that_decoded_ones_do);
	tcase_add_test(tcase, test_a_raw_row_replaces_what_merging_would_drop);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
