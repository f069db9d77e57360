/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "storage/validation.h"
#include "tests/unit/storage/facts.h"
#include "tests/unit/storage/store_fixture.h"

static struct error err;

static bool
test_has(const struct merkle_range *range, int64_t token)
{
	return (uint64_t)token - (uint64_t)range->left - 1 <
	    (uint64_t)range->right - (uint64_t)range->left ||
	    range->left == range->right;
}

static int64_t
test_token(struct random *random)
{
	return (int64_t)((uint64_t)random_below(random, UINT32_MAX) << 32 |
	    random_below(random, UINT32_MAX));
}

/* Two trees of the same tokens, of which some differ: those lie in the difference, and little else does. */
START_TEST(test_differences_are_found)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct random random = {seed};
		struct merkle_range range = {test_token(&random), test_token(&random)}, *ranges;
		uint32_t depth = random_below(&random, 12), count;
		struct merkle_tree *a, *b, *decoded;
		int64_t different[3];
		int differences = (int)random_below(&random, 4), found = 0;
		struct buffer out;
		uint64_t covered = 0;

		if (random_below(&random, 4) == 0)
			range.right = range.left;
		a = merkle_tree_new(range, depth);
		b = merkle_tree_new(range, depth);
		for (int i = 0; i < 300; i++) {
			int64_t token = test_token(&random);
			uint8_t hash[MERKLE_HASH_SIZE] = {(uint8_t)i, 1, 2};
			bool is_in = merkle_tree_add(a, token, hash);

			ck_assert_int_eq(is_in, test_has(&range, token));
			if (is_in && found < differences)
				different[found++] = token;
			else
				merkle_tree_add(b, token, hash);
		}
		buffer_init(&out);
		merkle_tree_encode(b, &out);
		ck_assert_int_eq(merkle_tree_decode(buffer_slice(&out), &decoded, &err), 0);
		ck_assert_int_eq(merkle_tree_difference(b, decoded, &ranges, &count, &err), 0);
		ck_assert_uint_eq(count, 0);
		free(ranges);
		ck_assert_uint_eq(merkle_tree_partitions(decoded), merkle_tree_partitions(b));
		ck_assert_int_eq(merkle_tree_difference(a, decoded, &ranges, &count, &err), 0);
		ck_assert_uint_le(count, (uint32_t)found);
		ck_assert_int_eq(count == 0, found == 0);
		for (int i = 0; i < found; i++) {
			bool is_covered = false;

			for (uint32_t j = 0; j < count; j++)
				is_covered = is_covered || test_has(&ranges[j], different[i]);
			ck_assert(is_covered);
		}
		for (uint32_t j = 0; j < count && depth >= 8; j++)
			covered += ((uint64_t)ranges[j].right - (uint64_t)ranges[j].left) >> 1;
		ck_assert_uint_le(covered, UINT64_MAX / 64);
		for (size_t size = 0; size < out.size; size++) {
			struct merkle_tree *none;

			ck_assert_int_eq(
			    merkle_tree_decode(slice_of(out.data, size), &none, &err), -1);
			size += size / 16;
		}
		free(ranges);
		buffer_fini(&out);
		merkle_tree_free(a);
		merkle_tree_free(b);
		merkle_tree_free(decoded);
	}
}
END_TEST

START_TEST(test_depth_follows_data_and_memory)
{
	ck_assert_uint_eq(merkle_depth(1, 1, 1 << 30), 0);
	ck_assert_uint_eq(merkle_depth(1000, 1, 1 << 30), 10);
	ck_assert_uint_eq(merkle_depth(UINT64_MAX, 1, 1 << 30), MERKLE_DEPTH_MAX);
	ck_assert_uint_eq(merkle_depth(1000000, 16, 1 << 20), 12);
}
END_TEST

static int
test_progress(void *context, uint64_t partitions, uint64_t bytes, struct error *error)
{
	uint64_t *seen = context;

	(void)bytes;
	*seen += partitions;
	return *seen > 1000000 ? error_set(error, ERROR_SHUTDOWN, "stopped") : 0;
}

static struct merkle_tree *
test_validate(struct store_fixture *fixture, struct merkle_range range, uint64_t seen_before)
{
	struct merkle_tree *tree = merkle_tree_new(range, 10);
	struct validation *validation;
	uint64_t seen = seen_before;
	int rc;

	ck_assert_int_eq(validation_new(fixture->store, store_table(fixture->store, fixture->table),
			     VALIDATION_ALL, NULL, &validation, &err),
	    0);
	rc = validation_run(validation, tree, 1700000100, test_progress, &seen, &err);
	ck_assert_int_eq(rc, seen_before == 0 ? 0 : -1);
	if (seen_before == 0)
		ck_assert_uint_eq(seen, merkle_tree_partitions(tree));
	validation_free(validation);
	return tree;
}

/* Same content in other files: same tree. One row more: one range, which holds it. */
START_TEST(test_validation_sees_content)
{
	struct merkle_range ranges[] = {{5, 5}, {1000, -1000}, {INT64_MIN, 0}};
	struct store_fixture a, b;

	store_fixture_init(&a);
	store_fixture_init(&b);
	for (int round = 0; round < 2; round++) {
		for (int pk = 0; pk < 100; pk++) {
			store_fixture_insert(&a, pk, round, "x", 10);
			store_fixture_insert(&b, pk, 1 - round, "x", 10);
			store_fixture_insert(&b, pk, 5, NULL, 10);
			if (round == 1)
				store_fixture_insert(&a, pk, 5, NULL, 10);
		}
		store_fixture_flush(&a);
		if (round == 1)
			store_fixture_insert(&b, 1, 1, "x", 10);
	}
	for (int i = 0; i < 3; i++) {
		struct merkle_tree *x = test_validate(&a, ranges[i], 0);
		struct merkle_tree *y = test_validate(&b, ranges[i], 0);
		struct merkle_range *difference;
		uint32_t count;

		ck_assert_uint_gt(merkle_tree_partitions(x), 10);
		ck_assert_int_eq(merkle_tree_difference(x, y, &difference, &count, &err), 0);
		ck_assert_uint_eq(count, 0);
		free(difference);
		merkle_tree_free(x);
		merkle_tree_free(y);
	}
	store_fixture_insert(&b, 42, 9, "more", 11);
	{
		struct merkle_tree *x = test_validate(&a, ranges[0], 0);
		struct merkle_tree *y = test_validate(&b, ranges[0], 0);
		struct merkle_range *difference;
		uint32_t count;

		ck_assert_int_eq(merkle_tree_difference(x, y, &difference, &count, &err), 0);
		ck_assert_uint_eq(count, 1);
		free(difference);
		merkle_tree_free(x);
		merkle_tree_free(y);
	}
	/* Whoever asked can stop it. */
	merkle_tree_free(test_validate(&a, ranges[0], 1000000));
	ck_assert_int_eq(err.code, ERROR_SHUTDOWN);
	store_fixture_fini(&a);
	store_fixture_fini(&b);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("storage/merkle_tree");
	TCase *cases = tcase_create("merkle_tree");
	SRunner *runner;
	int failed;

	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, test_differences_are_found);
	tcase_add_test(cases, test_depth_follows_data_and_memory);
	tcase_add_test(cases, test_validation_sees_content);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
