/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/application_state.h"

#include <check.h>
#include <stdlib.h>

static const struct {
	const char *text;
	enum node_status_kind kind;
} status_cases[] = {
    {"BOOT,-9223372036854775808", NODE_STATUS_BOOT},
    {"BOOT_REPLACE,127.0.0.1:7000", NODE_STATUS_BOOT_REPLACE},
    {"BOOT_REPLACE,[::1]:7000", NODE_STATUS_BOOT_REPLACE},
    {"NORMAL,-123", NODE_STATUS_NORMAL},
    {"LEAVING,5", NODE_STATUS_LEAVING},
    {"LEFT,5,1767225600000", NODE_STATUS_LEFT},
    {"MOVING,9223372036854775807", NODE_STATUS_MOVING},
    {"removing,01020304-0506-4007-8008-090a0b0c0d0e", NODE_STATUS_REMOVING},
    {"removed,01020304-0506-4007-8008-090a0b0c0d0e,1767225600000", NODE_STATUS_REMOVED},
    {"shutdown,true", NODE_STATUS_SHUTDOWN},
    {"hibernate,true", NODE_STATUS_HIBERNATE},
    {"", NODE_STATUS_NONE},
};

START_TEST(test_status_goes_there_and_back)
{
	struct buffer out;

	buffer_init(&out);
	for (size_t i = 0; i < sizeof(status_cases) / sizeof(status_cases[0]); i++) {
		struct node_status status;
		struct error err;

		ck_assert_msg(node_status_parse(
				  slice_of_string(status_cases[i].text), 7000, &status, &err) == 0,
		    "%s", status_cases[i].text);
		ck_assert_int_eq(status.kind, status_cases[i].kind);
		buffer_clear(&out);
		node_status_format(&status, true, &out);
		buffer_put_u8(&out, 0);
		ck_assert_str_eq((char *)out.data, status_cases[i].text);
	}
	buffer_fini(&out);
}
END_TEST

START_TEST(test_status_without_port_takes_the_default)
{
	struct node_status status;
	struct buffer out;
	struct error err;

	buffer_init(&out);
	ck_assert_int_eq(
	    node_status_parse(slice_of_string("BOOT_REPLACE,10.0.0.1"), 7011, &status, &err), 0);
	ck_assert_uint_eq(status.replaced.port, 7011);
	node_status_format(&status, false, &out);
	buffer_put_u8(&out, 0);
	ck_assert_str_eq((char *)out.data, "BOOT_REPLACE,10.0.0.1");
	buffer_fini(&out);
}
END_TEST

START_TEST(test_what_no_node_writes_is_refused)
{
	static const char *const cases[] = {"normal,1", "NORMAL", "NORMAL,", "NORMAL,x",
	    "NORMAL,1x", "NORMAL,1,2", "NORMAL,9223372036854775808", "LEFT,1", "LEFT,1,",
	    "LEFT,1,2,3", "removed,0102", "removing,01020304-0506-4007-8008-090a0b0c0d0",
	    "shutdown,false", "hibernate", "BOOT_REPLACE,nowhere", ",", "shutdown,true,true",
	    "NORMAL,11111111111111111111111111111111111111111111111111111111111111111111111"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node_status status;
		struct error err;

		ck_assert_msg(
		    node_status_parse(slice_of_string(cases[i]), 7000, &status, &err) == -1, "%s",
		    cases[i]);
		ck_assert_int_eq(err.code, ERROR_INVALID);
		ck_assert_int_eq(status.kind, NODE_STATUS_NONE);
	}
}
END_TEST

START_TEST(test_dead_states_are_those_of_cassandra)
{
	ck_assert(node_status_is_dead(NODE_STATUS_LEFT));
	ck_assert(node_status_is_dead(NODE_STATUS_REMOVED));
	ck_assert(node_status_is_dead(NODE_STATUS_REMOVING));
	ck_assert(node_status_is_dead(NODE_STATUS_HIBERNATE));
	ck_assert(!node_status_is_dead(NODE_STATUS_SHUTDOWN));
	ck_assert(!node_status_is_dead(NODE_STATUS_NONE));
	ck_assert(node_status_is_silent(NODE_STATUS_SHUTDOWN));
	ck_assert(node_status_is_silent(NODE_STATUS_BOOT));
	ck_assert(!node_status_is_silent(NODE_STATUS_NORMAL));
}
END_TEST

START_TEST(test_tokens_go_there_and_back)
{
	const int64_t tokens[] = {INT64_MIN, -1, 0, INT64_MAX};
	struct buffer out;
	struct error err;
	int64_t *read;
	uint32_t count;

	buffer_init(&out);
	tokens_encode(tokens, 4, &out);
	/* As TokenSerializer writes them. */
	ck_assert_uint_eq(out.size, 4 * 12 + 4);
	ck_assert_uint_eq(load_u32(out.data), 8);
	ck_assert_int_eq(tokens_decode(buffer_slice(&out), &read, &count, &err), 0);
	ck_assert_uint_eq(count, 4);
	ck_assert_mem_eq(read, tokens, sizeof(tokens));
	free(read);
	for (size_t cut = 0; cut < out.size; cut++)
		ck_assert_int_eq(tokens_decode(slice_of(out.data, cut), &read, &count, &err), -1);
	buffer_put_u8(&out, 0);
	ck_assert_int_eq(tokens_decode(buffer_slice(&out), &read, &count, &err), -1);
	buffer_clear(&out);
	tokens_encode(NULL, 0, &out);
	ck_assert_int_eq(tokens_decode(buffer_slice(&out), &read, &count, &err), 0);
	ck_assert_uint_eq(count, 0);
	ck_assert_ptr_null(read);
	buffer_fini(&out);
}
END_TEST

START_TEST(test_names_are_those_of_cassandra)
{
	ck_assert_str_eq(application_state_name(STATE_STATUS), "STATUS");
	ck_assert_str_eq(application_state_name(STATE_STATUS_WITH_PORT), "STATUS_WITH_PORT");
	ck_assert_str_eq(application_state_name((enum application_state)9), "X_11_PADDING");
	for (int state = 0; state < STATE_COUNT; state++)
		ck_assert_ptr_nonnull(application_state_name((enum application_state)state));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("application_state");
	TCase *tcase = tcase_create("application_state");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_status_goes_there_and_back);
	tcase_add_test(tcase, test_status_without_port_takes_the_default);
	tcase_add_test(tcase, test_what_no_node_writes_is_refused);
	tcase_add_test(tcase, test_dead_states_are_those_of_cassandra);
	tcase_add_test(tcase, test_tokens_go_there_and_back);
	tcase_add_test(tcase, test_names_are_those_of_cassandra);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
