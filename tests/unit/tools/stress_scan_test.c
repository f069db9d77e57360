/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_scan.h"

#include <check.h>
#include <stdlib.h>

/* Each token lies in one range, and they come in order. */
static void
check_cover(const struct stress_range *ranges, uint32_t count)
{
	ck_assert(!ranges[0].has_after);
	ck_assert(!ranges[count - 1].has_until);
	for (uint32_t i = 1; i < count; i++) {
		ck_assert(ranges[i - 1].has_until && ranges[i].has_after);
		ck_assert_int_eq(ranges[i - 1].until, ranges[i].after);
		if (ranges[i].has_until)
			ck_assert_int_lt(ranges[i].after, ranges[i].until);
	}
}

START_TEST(test_ranges_cover_the_ring_once)
{
	struct stress_ring ring = {.token_count = 0};
	struct stress_range *ranges;
	uint32_t count, node;

	ranges = stress_ranges_new(&ring, 1, &count);
	ck_assert_uint_eq(count, 1);
	check_cover(ranges, count);
	free(ranges);
	node = stress_ring_add_node(&ring, "a", "x", "r");
	stress_ring_add_token(&ring, node, 100);
	stress_ring_add_token(&ring, node, -100);
	stress_ring_add_token(&ring, node, 100); /* of another node, by mistake */
	stress_ring_sort(&ring);
	ranges = stress_ranges_new(&ring, 1, &count);
	ck_assert_uint_eq(count, 3);
	check_cover(ranges, count);
	ck_assert_int_eq(ranges[1].after, -100);
	ck_assert_int_eq(ranges[1].until, 100);
	free(ranges);
	ranges = stress_ranges_new(&ring, 7, &count);
	ck_assert_uint_eq(count, 21);
	check_cover(ranges, count);
	free(ranges);
	stress_ring_fini(&ring);
}
END_TEST

START_TEST(test_a_narrow_range_is_not_cut)
{
	struct stress_ring ring = {.token_count = 0};
	uint32_t count, node = stress_ring_add_node(&ring, "a", "x", "r");
	struct stress_range *ranges;

	stress_ring_add_token(&ring, node, 5);
	stress_ring_add_token(&ring, node, 7);
	stress_ring_sort(&ring);
	ranges = stress_ranges_new(&ring, 4, &count);
	ck_assert_uint_eq(count, 9);
	check_cover(ranges, count);
	free(ranges);
	stress_ring_fini(&ring);
}
END_TEST

/* A row of a token and one more cell. */
static void
put_row(struct buffer *out, int64_t token)
{
	buffer_put_u32(out, 8);
	buffer_put_u64(out, (uint64_t)token);
	buffer_put_u32(out, UINT32_MAX);
}

static void
make_scan(struct stress_scan *scan, uint32_t ranges, bool wraps)
{
	*scan = (struct stress_scan){.token = (char *)"token(k)",
	    .select = (char *)"SELECT",
	    .page_size = 10,
	    .range_count = ranges,
	    .wraps = wraps};
	scan->ranges = calloc(ranges, sizeof(*scan->ranges));
}

START_TEST(test_a_client_keeps_to_its_range_to_the_last_page)
{
	struct stress_cursor cursor = {.is_open = false};
	struct client_rows rows = {
	    .metadata = {.column_count = 2, .paging_state = slice_of_string("x")}, .row_count = 3};
	struct stress_request request;
	struct buffer out, page;
	struct stress_scan scan;
	struct error err;

	make_scan(&scan, 2, false);
	buffer_init(&out);
	buffer_init(&page);
	ck_assert_int_eq(stress_scan_put(&scan, &cursor, false, &out, 4, &request, &err), 1);
	ck_assert(!stress_scan_is_over(&scan));
	put_row(&page, 1);
	put_row(&page, 1);
	put_row(&page, 2);
	rows.content = buffer_slice(&page);
	ck_assert_uint_eq(stress_scan_take(&cursor, &rows, false), 2);
	ck_assert(cursor.is_open && cursor.page.size == 1);
	/* The next page goes on in the partition of the last row. */
	ck_assert_int_eq(stress_scan_put(&scan, &cursor, false, &out, 4, &request, &err), 1);
	buffer_clear(&page);
	put_row(&page, 2);
	put_row(&page, 3);
	rows.row_count = 2;
	rows.content = buffer_slice(&page);
	rows.metadata.paging_state = slice_null;
	ck_assert_uint_eq(stress_scan_take(&cursor, &rows, false), 1);
	ck_assert(!cursor.is_open);
	ck_assert_int_eq(stress_scan_put(&scan, &cursor, false, &out, 4, &request, &err), 1);
	ck_assert(stress_scan_is_over(&scan));
	stress_scan_take(&cursor, &rows, false);
	ck_assert_int_eq(stress_scan_put(&scan, &cursor, false, &out, 4, &request, &err), 0);
	stress_scan_rewind(&scan);
	ck_assert_int_eq(stress_scan_put(&scan, &cursor, false, &out, 4, &request, &err), 1);
	/* A warm-up is content with one page. */
	rows.metadata.paging_state = slice_of_string("x");
	stress_scan_take(&cursor, &rows, true);
	ck_assert(!cursor.is_open);
	free(scan.ranges);
	stress_cursor_fini(&cursor);
	buffer_fini(&out);
	buffer_fini(&page);
}
END_TEST

START_TEST(test_a_scan_that_wraps_has_no_end)
{
	struct stress_cursor cursor = {.is_open = false};
	struct stress_request request;
	struct stress_scan scan;
	struct buffer out;
	struct error err;

	make_scan(&scan, 3, true);
	buffer_init(&out);
	for (int i = 0; i < 10; i++) {
		ck_assert(!stress_scan_is_over(&scan));
		ck_assert_int_eq(
		    stress_scan_put(&scan, &cursor, false, &out, 5, &request, &err), 1);
		cursor.is_open = false;
	}
	free(scan.ranges);
	stress_cursor_fini(&cursor);
	buffer_fini(&out);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stress_scan");
	TCase *tests = tcase_create("stress_scan");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, test_ranges_cover_the_ring_once);
	tcase_add_test(tests, test_a_narrow_range_is_not_cut);
	tcase_add_test(tests, test_a_client_keeps_to_its_range_to_the_last_page);
	tcase_add_test(tests, test_a_scan_that_wraps_has_no_end);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
