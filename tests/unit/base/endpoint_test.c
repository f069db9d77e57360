/* SPDX-License-Identifier: Apache-2.0 */
#include "base/endpoint.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct endpoint
parsed(const char *text)
{
	struct endpoint endpoint;
	struct error err;

	ck_assert_msg(endpoint_parse(text, 7000, &endpoint, &err) == 0, "%s", text);
	return endpoint;
}

START_TEST(test_text_goes_there_and_back)
{
	static const char *const cases[][2] = {{"127.0.0.1", "127.0.0.1:7000"},
	    {"/127.0.0.1:7001", "127.0.0.1:7001"}, {"::1", "[::1]:7000"}, {"[::1]", "[::1]:7000"},
	    {"[fe80::2]:9", "[fe80::2]:9"}};
	char out[ENDPOINT_TEXT_SIZE];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct endpoint endpoint = parsed(cases[i][0]);

		ck_assert_str_eq(endpoint_format(&endpoint, out), cases[i][1]);
	}
}
END_TEST

START_TEST(test_what_is_no_address_is_refused)
{
	static const char *const cases[] = {"", "host", "1.2.3", "1.2.3.4:", "1.2.3.4:x",
	    "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:-1", "[::1", "[::1]x", "[::1]:", ":7000",
	    "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd:eeee"};
	struct endpoint endpoint;
	struct error err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(endpoint_parse(cases[i], 7000, &endpoint, &err) != 0, "%s", cases[i]);
		ck_assert_int_eq(err.code, ERROR_INVALID);
	}
}
END_TEST

START_TEST(test_order_is_by_address_then_port)
{
	struct endpoint a = parsed("127.0.0.1:9"), b = parsed("127.0.0.2:1"), c = parsed("::1");
	struct endpoint d = parsed("127.0.0.1:10");

	ck_assert_int_lt(endpoint_compare(&a, &b), 0);
	ck_assert_int_gt(endpoint_compare(&c, &b), 0);
	ck_assert_int_lt(endpoint_compare(&a, &d), 0);
	ck_assert_int_eq(endpoint_compare(&a, &a), 0);
	ck_assert(endpoint_equal(&a, &a) && !endpoint_equal(&a, &d));
	ck_assert_uint_ne(endpoint_hash(&a), endpoint_hash(&d));
}
END_TEST

START_TEST(test_wire_form_refuses_what_is_short)
{
	static const char *const cases[] = {"10.1.2.3:4", "[2001:db8::7]:65535"};
	uint8_t wire[ENDPOINT_WIRE_MAX];
	struct endpoint out;

	for (size_t i = 0; i < 2; i++) {
		struct endpoint endpoint = parsed(cases[i]);
		size_t size = endpoint_encode(&endpoint, wire);

		ck_assert_uint_eq(endpoint_decode(wire, size, &out), size);
		ck_assert(endpoint_equal(&endpoint, &out));
		for (size_t cut = 0; cut < size; cut++)
			ck_assert_uint_eq(endpoint_decode(wire, cut, &out), 0);
	}
	wire[0] = 5;
	ck_assert_uint_eq(endpoint_decode(wire, sizeof(wire), &out), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("endpoint");
	TCase *tcase = tcase_create("endpoint");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_text_goes_there_and_back);
	tcase_add_test(tcase, test_what_is_no_address_is_refused);
	tcase_add_test(tcase, test_order_is_by_address_then_port);
	tcase_add_test(tcase, test_wire_form_refuses_what_is_short);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
