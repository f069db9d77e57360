/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/schema_log_codec.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static uint8_t entry_bytes[] = "the rows";

static struct schema_entry
made_entry(void)
{
	struct schema_entry entry = {
	    .epoch = 7, .timestamp = 1234567, .bytes = entry_bytes, .size = sizeof(entry_bytes)};

	memset(entry.id.bytes, 9, sizeof(entry.id.bytes));
	return entry;
}

START_TEST(test_state_goes_there_and_back)
{
	struct schema_log_state state = {.epoch = 6,
	    .timestamp = 99,
	    .promised = {5, 6},
	    .accepted_ballot = {3, 4},
	    .has_accepted = true,
	    .accepted = made_entry(),
	    .recent_count = 2};
	struct schema_log_state out;
	struct buffer buffer;
	struct error err;

	memset(state.recent[1].bytes, 1, 16);
	buffer_init(&buffer);
	schema_state_encode(&state, &buffer);
	ck_assert_int_eq(schema_state_decode(buffer_slice(&buffer), &out, &err), 0);
	ck_assert_uint_eq(out.epoch, 6);
	ck_assert_int_eq(out.timestamp, 99);
	ck_assert_int_eq(schema_ballot_compare(&out.promised, &state.promised), 0);
	ck_assert_int_eq(schema_ballot_compare(&out.accepted_ballot, &state.accepted_ballot), 0);
	ck_assert(out.has_accepted && out.accepted.epoch == 7 && out.accepted.timestamp == 1234567);
	ck_assert_uint_eq(out.accepted.size, sizeof(entry_bytes));
	ck_assert_mem_eq(out.accepted.bytes, entry_bytes, sizeof(entry_bytes));
	ck_assert_uint_eq(out.recent_count, 2);
	ck_assert(uuid_equal(&out.recent[1], &state.recent[1]));
	schema_entry_fini(&out.accepted);
	/* Cut anywhere, or with a byte too many, it is none. */
	for (size_t size = 0; size < buffer.size; size++) {
		ck_assert_int_ne(schema_state_decode(slice_of(buffer.data, size), &out, &err), 0);
		ck_assert_int_eq(err.code, ERROR_INVALID);
	}
	buffer_put_u8(&buffer, 0);
	ck_assert_int_ne(schema_state_decode(buffer_slice(&buffer), &out, &err), 0);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_promise_goes_there_and_back)
{
	struct schema_promise promise = {.is_ok = true,
	    .promised = {1, 2},
	    .epoch = 3,
	    .timestamp = 4,
	    .has_accepted = true,
	    .accepted_ballot = {5, 6},
	    .accepted = made_entry()};
	struct schema_promise out;
	struct buffer buffer;
	struct error err;

	buffer_init(&buffer);
	schema_promise_encode(&promise, &buffer);
	ck_assert_int_eq(schema_promise_decode(buffer_slice(&buffer), &out, &err), 0);
	ck_assert(out.is_ok && out.epoch == 3 && out.timestamp == 4 && out.has_accepted);
	ck_assert_uint_eq(out.accepted_ballot.nonce, 6);
	ck_assert_mem_eq(out.accepted.bytes, entry_bytes, sizeof(entry_bytes));
	schema_entry_fini(&out.accepted);
	buffer_clear(&buffer);
	promise.is_ok = promise.has_accepted = false;
	schema_promise_encode(&promise, &buffer);
	ck_assert_int_eq(schema_promise_decode(buffer_slice(&buffer), &out, &err), 0);
	ck_assert(!out.is_ok && !out.has_accepted && out.accepted.bytes == NULL);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_a_length_beyond_the_end_is_refused)
{
	struct schema_entry entry = made_entry(), out;
	struct buffer buffer;
	struct reader reader;
	struct error err;

	buffer_init(&buffer);
	schema_entry_encode(&entry, &buffer);
	buffer_patch_u32(&buffer, 32, UINT32_MAX);
	reader = reader_of(buffer_slice(&buffer));
	ck_assert_int_ne(schema_entry_decode(&reader, &out, &err), 0);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_ballots_go_by_time_then_chance)
{
	struct schema_ballot a = {1, 9}, b = {2, 0}, c = {2, 1};

	ck_assert_int_lt(schema_ballot_compare(&a, &b), 0);
	ck_assert_int_lt(schema_ballot_compare(&b, &c), 0);
	ck_assert_int_gt(schema_ballot_compare(&c, &a), 0);
	ck_assert_int_eq(schema_ballot_compare(&c, &c), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("schema_log_codec");
	TCase *tcase = tcase_create("schema_log_codec");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_state_goes_there_and_back);
	tcase_add_test(tcase, test_promise_goes_there_and_back);
	tcase_add_test(tcase, test_a_length_beyond_the_end_is_refused);
	tcase_add_test(tcase, test_ballots_go_by_time_then_chance);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
