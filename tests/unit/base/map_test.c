/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <check.h>
#include <stdlib.h>

enum { KEYS = 5000 };

static uint32_t keys[KEYS];

static struct slice
key_of(uint32_t i)
{
	keys[i] = i;
	return slice_of(&keys[i], sizeof(keys[i]));
}

START_TEST(test_empty_map_has_nothing)
{
	struct map map;
	size_t cursor = 0;

	map_init(&map);
	ck_assert_ptr_null(map_get_string(&map, "a"));
	ck_assert_ptr_null(map_remove(&map, slice_of_string("a")));
	ck_assert(!map_next(&map, &cursor, NULL, NULL));
	map_fini(&map);
}
END_TEST

START_TEST(test_put_replaces_and_gives_back_the_old)
{
	struct map map;
	int a, b;

	map_init(&map);
	ck_assert_ptr_null(map_put(&map, slice_of_string("key"), &a));
	ck_assert_ptr_eq(map_put(&map, slice_of_string("key"), &b), &a);
	ck_assert_uint_eq(map.count, 1);
	ck_assert_ptr_eq(map_get_string(&map, "key"), &b);
	ck_assert_ptr_null(map_get_string(&map, "ke"));
	ck_assert_ptr_eq(map_remove(&map, slice_of_string("key")), &b);
	ck_assert_uint_eq(map.count, 0);
	map_fini(&map);
}
END_TEST

START_TEST(test_empty_key_is_a_key)
{
	struct map map;
	int a;

	map_init(&map);
	map_put(&map, slice_empty, &a);
	ck_assert_ptr_eq(map_get_string(&map, ""), &a);
	map_fini(&map);
}
END_TEST

/* Against a plain array: removal must not lose what probed past the hole. */
START_TEST(test_random_puts_and_removes_agree_with_a_plain_table)
{
	static void *model[KEYS];
	static int values[KEYS];
	uint64_t state = 42;
	struct map map;
	size_t count = 0;

	map_init(&map);
	memset(model, 0, sizeof(model));
	for (int step = 0; step < 200000; step++) {
		uint32_t i;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		i = (uint32_t)(state >> 33) % (step % 4000 < 2000 ? KEYS : 64);
		if (state >> 63) {
			ck_assert_ptr_eq(map_put(&map, key_of(i), &values[i]), model[i]);
			count += model[i] == NULL;
			model[i] = &values[i];
		} else {
			ck_assert_ptr_eq(map_remove(&map, key_of(i)), model[i]);
			count -= model[i] != NULL;
			model[i] = NULL;
		}
		ck_assert_uint_eq(map.count, count);
	}
	for (uint32_t i = 0; i < KEYS; i++)
		ck_assert_ptr_eq(map_get(&map, key_of(i)), model[i]);
	map_fini(&map);
}
END_TEST

START_TEST(test_walk_meets_each_entry_once)
{
	static int values[KEYS];
	struct slice key;
	struct map map;
	size_t cursor = 0;
	size_t met = 0;
	void *value;

	map_init(&map);
	for (uint32_t i = 0; i < KEYS; i++)
		map_put(&map, key_of(i), &values[i]);
	while (map_next(&map, &cursor, &key, &value)) {
		uint32_t i;

		memcpy(&i, key.data, sizeof(i));
		ck_assert_ptr_eq(value, &values[i]);
		values[i]++;
		met++;
	}
	ck_assert_uint_eq(met, KEYS);
	for (uint32_t i = 0; i < KEYS; i++)
		ck_assert_int_eq(values[i], 1);
	map_fini(&map);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("map");
	TCase *tcase = tcase_create("map");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_empty_map_has_nothing);
	tcase_add_test(tcase, test_put_replaces_and_gives_back_the_old);
	tcase_add_test(tcase, test_empty_key_is_a_key);
	tcase_add_test(tcase, test_random_puts_and_removes_agree_with_a_plain_table);
	tcase_add_test(tcase, test_walk_meets_each_entry_once);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
