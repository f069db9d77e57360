/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope.h"

#include <check.h>
#include <stdlib.h>
#include "golden.h"

static struct envelope_decoder decoder;
static struct envelope envelope;
static struct error err;
static size_t consumed;

static void
setup(void)
{
	envelope_decoder_init(&decoder, false, 0);
}

START_TEST(test_an_envelope_is_cut_out_without_copying)
{
	struct slice run = golden("04 02 0102 07 00000003 aabbcc 04");

	ck_assert_int_eq(envelope_decode(&decoder, run, &consumed, &envelope, &err), ENVELOPE_ONE);
	ck_assert_uint_eq(consumed, 12);
	ck_assert_uint_eq(envelope.header.version, 4);
	ck_assert_uint_eq(envelope.header.flags, ENVELOPE_TRACING);
	ck_assert_int_eq(envelope.header.stream, 0x0102);
	ck_assert_uint_eq(envelope.header.opcode, OPCODE_QUERY);
	ck_assert_ptr_eq(envelope.body.data, run.data + 9);
	ck_assert_uint_eq(envelope.body.size, 3);
}
END_TEST

START_TEST(test_every_prefix_of_an_envelope_asks_for_more)
{
	struct slice whole = golden("05 00 ffff 05 00000002 aabb");

	for (size_t size = 0; size < whole.size; size++) {
		ck_assert_int_eq(envelope_decode(&decoder, slice_of(whole.data, size), &consumed,
				     &envelope, &err),
		    ENVELOPE_MORE);
		ck_assert_uint_eq(consumed, 0);
	}
	ck_assert_int_eq(
	    envelope_decode(&decoder, whole, &consumed, &envelope, &err), ENVELOPE_ONE);
	ck_assert_int_eq(envelope.header.stream, -1);
}
END_TEST

static void
check_version_refused(const char *bytes, uint8_t answer_version, const char *text)
{
	setup();
	ck_assert_int_eq(
	    envelope_decode(&decoder, golden(bytes), &consumed, &envelope, &err), ENVELOPE_BAD);
	ck_assert_int_eq(err.code, ERROR_PROTOCOL);
	ck_assert_str_eq(err.text, text);
	ck_assert_int_eq(envelope.header.stream, 0);
	ck_assert_uint_eq(envelope.header.version, answer_version);
}

START_TEST(test_unsupported_versions_get_the_text_that_drivers_match)
{
	check_version_refused("42 00 0009 05 00000000", 5,
	    "Invalid or unsupported protocol version (66); supported versions are (3/v3, 4/v4, "
	    "5/v5, 6/v6-beta)");
	check_version_refused("00 00 0009 05 00000000", 5,
	    "Invalid or unsupported protocol version (0); supported versions are (3/v3, 4/v4, "
	    "5/v5, 6/v6-beta)");
	check_version_refused("02 00 09 05 00000000", 2,
	    "Invalid or unsupported protocol version (2); supported versions are (3/v3, 4/v4, "
	    "5/v5, 6/v6-beta)");
	check_version_refused("06 00 0009 05 00000000", 6,
	    "Beta version of the protocol used (6/v6-beta), but USE_BETA flag is unset");
}
END_TEST

START_TEST(test_a_lowered_maximum_is_told)
{
	decoder.version_max = 4;
	ck_assert_int_eq(
	    envelope_decode(&decoder, golden("05 00 0009 05 00000000"), &consumed, &envelope, &err),
	    ENVELOPE_BAD);
	ck_assert_str_eq(err.text,
	    "Invalid or unsupported protocol version (5); supported versions are (3/v3, 4/v4)");
	ck_assert_uint_eq(envelope.header.version, 4);
}
END_TEST

START_TEST(test_beta_with_its_flag_is_taken)
{
	ck_assert_int_eq(
	    envelope_decode(&decoder, golden("06 10 0009 05 00000000"), &consumed, &envelope, &err),
	    ENVELOPE_ONE);
}
END_TEST

START_TEST(test_a_bad_opcode_costs_only_its_envelope)
{
	struct slice run = golden("04 00 0009 20 00000003 aabbcc 04 00 0001 05 00000000");

	ck_assert_int_eq(envelope_decode(&decoder, run, &consumed, &envelope, &err), ENVELOPE_BAD);
	ck_assert_str_eq(err.text, "Unknown opcode 32");
	ck_assert_int_eq(envelope.header.stream, 9);
	run = slice_of(run.data + consumed, run.size - consumed);
	ck_assert_int_eq(envelope_decode(&decoder, run, &consumed, &envelope, &err), ENVELOPE_ONE);
	ck_assert_uint_eq(envelope.header.opcode, OPCODE_OPTIONS);
	ck_assert_uint_eq(consumed, run.size);
}
END_TEST

START_TEST(test_more_than_an_int_is_refused_by_its_header)
{
	ck_assert_int_eq(envelope_decode(&decoder, golden("04 00 0009 07 80000001 aabbcc"),
			     &consumed, &envelope, &err),
	    ENVELOPE_BAD);
	ck_assert_ptr_nonnull(strstr(err.text, "Request is too big: length 2147483658 exceeds"));
	ck_assert_uint_eq(envelope.header.length, 0x80000001);
	ck_assert_uint_eq(consumed, 9);
}
END_TEST

START_TEST(test_what_the_caller_refused_is_passed_over)
{
	struct slice run = golden("04 00 0009 07 00000003 aabbcc 04 00 0001 05 00000000");

	envelope_decoder_skip(&decoder, 12);
	ck_assert_int_eq(envelope_decode(&decoder, run, &consumed, &envelope, &err), ENVELOPE_ONE);
	ck_assert_uint_eq(envelope.header.opcode, OPCODE_OPTIONS);
	ck_assert_uint_eq(consumed, run.size);
}
END_TEST

START_TEST(test_wrong_direction_is_named)
{
	ck_assert_int_eq(
	    envelope_decode(&decoder, golden("04 00 0009 02 00000000"), &consumed, &envelope, &err),
	    ENVELOPE_BAD);
	ck_assert_str_eq(err.text,
	    "Wrong protocol direction (expected RESPONSE, got REQUEST) for opcode 2 (READY)");
	ck_assert_int_eq(
	    envelope_decode(&decoder, golden("84 00 0009 07 00000000"), &consumed, &envelope, &err),
	    ENVELOPE_BAD);
	ck_assert_str_eq(err.text,
	    "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode 7 (QUERY)");
}
END_TEST

START_TEST(test_too_big_is_read_away_and_then_answered)
{
	uint8_t body[64] = {0};
	struct slice next = golden("04 00 0001 05 00000000");

	decoder.frame_size_max = 20;
	ck_assert_int_eq(
	    envelope_decode(&decoder, golden("04 00 0003 07 00000040"), &consumed, &envelope, &err),
	    ENVELOPE_MORE);
	ck_assert_uint_eq(consumed, 9);
	ck_assert_int_eq(envelope_decode(&decoder, slice_of(body, 60), &consumed, &envelope, &err),
	    ENVELOPE_MORE);
	ck_assert_uint_eq(consumed, 60);
	ck_assert_int_eq(
	    envelope_decode(&decoder, slice_of(body, 4), &consumed, &envelope, &err), ENVELOPE_BAD);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_str_eq(
	    err.text, "Request is too big: length 73 exceeds maximum allowed length 20.");
	ck_assert_int_eq(envelope.header.stream, 3);
	ck_assert_int_eq(envelope_decode(&decoder, next, &consumed, &envelope, &err), ENVELOPE_ONE);
}
END_TEST

START_TEST(test_an_envelope_may_not_lead_out_of_its_segment)
{
	ck_assert_int_eq(envelope_decode_payload(&decoder, golden("05 00 0009 07 00000004 aabb"),
			     &consumed, &envelope, &err),
	    ENVELOPE_BAD);
	ck_assert_uint_eq(consumed, 11);
	ck_assert_int_eq(envelope.header.stream, 9);
	ck_assert_int_eq(
	    envelope_decode_payload(&decoder, golden("05 00 00"), &consumed, &envelope, &err),
	    ENVELOPE_BAD);
	ck_assert_int_eq(envelope_decode_payload(&decoder, golden("05 00 0001 05 00000000"),
			     &consumed, &envelope, &err),
	    ENVELOPE_ONE);
	/* A bad length must not eat the next segment either. */
	ck_assert_int_eq(envelope_decode_payload(&decoder, golden("05 00 0009 07 fffffffb aa"),
			     &consumed, &envelope, &err),
	    ENVELOPE_BAD);
	ck_assert_str_eq(err.text, "Invalid value for envelope header body length field: -5");
	ck_assert_int_eq(
	    envelope_decode_payload(&decoder, golden("aa"), &consumed, &envelope, &err),
	    ENVELOPE_MORE);
	ck_assert_int_eq(envelope_decode_payload(&decoder, golden("05 00 0001 05 00000000"),
			     &consumed, &envelope, &err),
	    ENVELOPE_ONE);
}
END_TEST

START_TEST(test_headers_are_stored_in_both_layouts)
{
	struct envelope_header header = {
	    .version = 4, .is_response = true, .stream = -1, .opcode = OPCODE_EVENT, .length = 7};
	uint8_t at[ENVELOPE_HEADER_SIZE];

	ck_assert_uint_eq(envelope_store_header(at, &header), 9);
	golden_check(slice_of(at, 9), "84 00 ffff 0c 00000007");
	header.version = 1;
	ck_assert_uint_eq(envelope_store_header(at, &header), 8);
	golden_check(slice_of(at, 8), "81 00 ff 0c 00000007");
}
END_TEST

START_TEST(test_a_client_takes_responses_only)
{
	envelope_decoder_init(&decoder, true, 0);
	ck_assert_int_eq(
	    envelope_decode(&decoder, golden("84 00 0001 02 00000000"), &consumed, &envelope, &err),
	    ENVELOPE_ONE);
	ck_assert_int_eq(
	    envelope_decode(&decoder, golden("04 00 0001 05 00000000"), &consumed, &envelope, &err),
	    ENVELOPE_BAD);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("envelope");
	TCase *tcase = tcase_create("envelope");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, test_an_envelope_is_cut_out_without_copying);
	tcase_add_test(tcase, test_every_prefix_of_an_envelope_asks_for_more);
	tcase_add_test(tcase, test_unsupported_versions_get_the_text_that_drivers_match);
	tcase_add_test(tcase, test_a_lowered_maximum_is_told);
	tcase_add_test(tcase, test_beta_with_its_flag_is_taken);
	tcase_add_test(tcase, test_a_bad_opcode_costs_only_its_envelope);
	tcase_add_test(tcase, test_wrong_direction_is_named);
	tcase_add_test(tcase, test_too_big_is_read_away_and_then_answered);
	tcase_add_test(tcase, test_more_than_an_int_is_refused_by_its_header);
	tcase_add_test(tcase, test_what_the_caller_refused_is_passed_over);
	tcase_add_test(tcase, test_an_envelope_may_not_lead_out_of_its_segment);
	tcase_add_test(tcase, test_headers_are_stored_in_both_layouts);
	tcase_add_test(tcase, test_a_client_takes_responses_only);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
