/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "server/paging.h"

START_TEST(test_a_state_comes_back_as_it_was)
{
	struct paging_state in = {slice_of_string("key"), slice_of_string("position"), 12, 3}, out;
	struct buffer bytes;
	struct error err;

	buffer_init(&bytes);
	paging_encode(&in, &bytes);
	ck_assert_int_eq(paging_decode(buffer_slice(&bytes), &out, &err), 0);
	ck_assert(slice_equal(out.key, in.key));
	ck_assert(slice_equal(out.position, in.position));
	ck_assert_uint_eq(out.left, 12);
	ck_assert_uint_eq(out.left_in_partition, 3);
	buffer_fini(&bytes);
}
END_TEST

START_TEST(test_a_finished_partition_has_no_position)
{
	struct paging_state in = {slice_of_string("key"), slice_null, INT32_MAX, INT32_MAX}, out;
	struct buffer bytes;
	struct error err;

	buffer_init(&bytes);
	paging_encode(&in, &bytes);
	ck_assert_int_eq(paging_decode(buffer_slice(&bytes), &out, &err), 0);
	ck_assert(slice_is_null(out.position));
	buffer_fini(&bytes);
}
END_TEST

START_TEST(test_damage_is_an_error_whatever_byte_it_hits)
{
	struct paging_state in = {slice_of_string("k"), slice_of_string("p"), 5, 5}, out;
	struct buffer bytes;
	struct error err;

	buffer_init(&bytes);
	paging_encode(&in, &bytes);
	for (size_t size = 0; size < bytes.size; size++) {
		ck_assert_int_eq(paging_decode(slice_of(bytes.data, size), &out, &err), -1);
		ck_assert_int_eq(err.code, ERROR_PROTOCOL);
		ck_assert_str_eq(err.text, "Invalid value for the paging state");
	}
	/* A length that reaches beyond the end, a form that is unknown. */
	bytes.data[2] = 0x7f;
	ck_assert_int_eq(paging_decode(buffer_slice(&bytes), &out, &err), -1);
	bytes.data[0] = 0;
	ck_assert_int_eq(paging_decode(buffer_slice(&bytes), &out, &err), -1);
	buffer_fini(&bytes);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("paging");
	TCase *tcase = tcase_create("paging");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, test_a_state_comes_back_as_it_was);
	tcase_add_test(tcase, test_a_finished_partition_has_no_position);
	tcase_add_test(tcase, test_damage_is_an_error_whatever_byte_it_hits);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
