/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/handshake.h"

#include <check.h>
#include <stdlib.h>
#include "golden.h"

static struct handshake handshake;
static struct error err;
static int16_t stream;
static uint8_t version;

static void
setup(void)
{
	handshake_init(&handshake);
}

static int
check(uint8_t request_version, uint8_t opcode)
{
	struct envelope_header header = {.version = request_version, .opcode = opcode, .stream = 9};

	error_clear(&err);
	return handshake_check(&handshake, &header, &stream, &version, &err);
}

/* STARTUP with these names and values, NULL at the end. */
static int
startup(uint8_t request_version, const char *const *pairs)
{
	struct startup_option options[8];
	struct client_message message = {.version = request_version, .opcode = OPCODE_STARTUP};

	message.startup.options = options;
	for (; pairs[0] != NULL; pairs += 2) {
		options[message.startup.count].name = slice_of_string(pairs[0]);
		options[message.startup.count].value = slice_of_string(pairs[1]);
		message.startup.count++;
	}
	error_clear(&err);
	return handshake_startup(&handshake, &message, &err);
}

static const char *const plain_options[] = {"CQL_VERSION", "3.0.0", NULL};
static const char *const lz4_options[] = {"cql_version", "3.4.5", "COMPRESSION", "Lz4", NULL};

START_TEST(test_before_startup_only_options_and_startup)
{
	ck_assert_int_eq(check(4, OPCODE_OPTIONS), 0);
	ck_assert_int_eq(check(4, OPCODE_QUERY), -1);
	ck_assert_str_eq(err.text, "Unexpected message QUERY, expecting STARTUP or OPTIONS");
	ck_assert_int_eq(stream, 0);
	ck_assert_int_eq(check(3, OPCODE_STARTUP), 0);
}
END_TEST

START_TEST(test_v4_is_ready_after_ready_and_not_framed)
{
	ck_assert_int_eq(startup(4, lz4_options), 0);
	ck_assert_int_eq(handshake_body_compression(&handshake), COMPRESSION_NONE);
	handshake_answered(&handshake, OPCODE_READY);
	ck_assert_int_eq(handshake.state, HANDSHAKE_READY);
	ck_assert(!handshake.is_framed);
	ck_assert_int_eq(handshake_body_compression(&handshake), COMPRESSION_LZ4);
	ck_assert_int_eq(check(4, OPCODE_QUERY), 0);
	ck_assert_int_eq(check(4, OPCODE_OPTIONS), 0);
	ck_assert_int_eq(check(4, OPCODE_STARTUP), -1);
	ck_assert_str_eq(
	    err.text, "Unexpected message STARTUP, the connection is already initialized");
	ck_assert_int_eq(stream, 9);
}
END_TEST

START_TEST(test_v5_frames_after_authenticate_and_waits_for_the_login)
{
	ck_assert_int_eq(startup(5, lz4_options), 0);
	ck_assert(!handshake.is_framed);
	handshake_answered(&handshake, OPCODE_AUTHENTICATE);
	ck_assert(handshake.is_framed);
	ck_assert_int_eq(handshake.compression, COMPRESSION_LZ4);
	ck_assert_int_eq(handshake_body_compression(&handshake), COMPRESSION_NONE);
	ck_assert_int_eq(check(5, OPCODE_QUERY), -1);
	ck_assert_str_eq(err.text, "Unexpected message QUERY, expecting SASL_RESPONSE");
	ck_assert_int_eq(check(5, OPCODE_OPTIONS), -1);
	ck_assert_int_eq(check(5, OPCODE_AUTH_RESPONSE), 0);
	handshake_answered(&handshake, OPCODE_ERROR);
	ck_assert_int_eq(check(5, OPCODE_AUTH_RESPONSE), 0);
	handshake_answered(&handshake, OPCODE_AUTH_SUCCESS);
	ck_assert_int_eq(check(5, OPCODE_QUERY), 0);
}
END_TEST

START_TEST(test_the_first_startup_fixes_the_version)
{
	ck_assert_int_eq(startup(4, plain_options), 0);
	handshake_answered(&handshake, OPCODE_READY);
	ck_assert_int_eq(check(3, OPCODE_QUERY), -1);
	ck_assert_str_eq(err.text,
	    "Invalid message version. Got 3/v3 but previous messages on this connection had "
	    "version 4/v4");
	ck_assert_int_eq(stream, 9);
	ck_assert_uint_eq(version, 4);
}
END_TEST

static void
check_startup_fails(uint8_t request_version, const char *const *pairs, const char *text)
{
	ck_assert_int_eq(startup(request_version, pairs), -1);
	ck_assert_int_eq(err.code, ERROR_PROTOCOL);
	ck_assert_str_eq(err.text, text);
	ck_assert_uint_eq(handshake.version, 0);
}

START_TEST(test_a_bad_startup_is_explained_and_may_be_repeated)
{
	check_startup_fails(
	    4, (const char *[]){NULL}, "Missing value CQL_VERSION in STARTUP message");
	check_startup_fails(4, (const char *[]){"CQL_VERSION", "2.0.0", NULL},
	    "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= "
	    "3.0.0)");
	check_startup_fails(
	    4, (const char *[]){"CQL_VERSION", "x", NULL}, "Invalid version value: x");
	check_startup_fails(4,
	    (const char *[]){"CQL_VERSION", "3.0.0", "COMPRESSION", "zstd", NULL},
	    "Unknown compression algorithm: zstd");
	check_startup_fails(5,
	    (const char *[]){"CQL_VERSION", "3.0.0", "COMPRESSION", "snappy", NULL},
	    "Snappy compression is not supported in protocol V5");
	ck_assert_int_eq(startup(4, (const char *[]){"CQL_VERSION", "3.1", NULL}), 0);
	ck_assert_int_eq(startup(4, (const char *[]){"CQL_VERSION", "4.0.0", NULL}), 0);
}
END_TEST

START_TEST(test_other_options_are_taken_over)
{
	ck_assert_int_eq(startup(4,
			     (const char *[]){"CQL_VERSION", "3.0.0", "THROW_ON_OVERLOAD", "1",
				 "NO_COMPACT", "true", "DRIVER_NAME", "x", NULL}),
	    0);
	ck_assert(handshake.throw_on_overload);
	ck_assert(handshake.no_compact);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("handshake");
	TCase *tcase = tcase_create("handshake");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, test_before_startup_only_options_and_startup);
	tcase_add_test(tcase, test_v4_is_ready_after_ready_and_not_framed);
	tcase_add_test(tcase, test_v5_frames_after_authenticate_and_waits_for_the_login);
	tcase_add_test(tcase, test_the_first_startup_fixes_the_version);
	tcase_add_test(tcase, test_a_bad_startup_is_explained_and_may_be_repeated);
	tcase_add_test(tcase, test_other_options_are_taken_over);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
