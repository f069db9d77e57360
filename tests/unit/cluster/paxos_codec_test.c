/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/paxos_codec.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(test_ballots_are_their_microsecond)
{
	struct uuid none = {{0}};
	struct uuid a = paxos_ballot_make(1700000000000001, 5, false);
	struct uuid b = paxos_ballot_make(1700000000000001, 6, false);
	struct uuid c = paxos_ballot_make(1700000000000002, 0, false);

	struct uuid local = paxos_ballot_make(1700000000000001, 5, true);

	ck_assert_int_eq(uuid_version(&a), 1);
	ck_assert(paxos_ballot_is_local(&local) && !paxos_ballot_is_local(&a));
	ck_assert_int_eq(paxos_ballot_timestamp(&local), 1700000000000001);
	ck_assert(!paxos_ballot_is_later(&local, &a) && !paxos_ballot_is_later(&a, &local));
	ck_assert_int_eq(paxos_ballot_timestamp(&a), 1700000000000001);
	ck_assert_int_eq(paxos_ballot_timestamp(&c), 1700000000000002);
	ck_assert_int_ne(paxos_ballot_compare(&a, &b), 0);
	ck_assert_int_eq(paxos_ballot_compare(&a, &b), -paxos_ballot_compare(&b, &a));
	ck_assert_int_eq(paxos_ballot_compare(&a, &a), 0);
	ck_assert_int_lt(paxos_ballot_compare(&b, &c), 0);
	ck_assert_int_lt(paxos_ballot_compare(&none, &a), 0);
	ck_assert_int_gt(paxos_ballot_compare(&a, &none), 0);
	ck_assert_int_eq(paxos_ballot_compare(&none, &none), 0);
	ck_assert(paxos_ballot_is_none(&none) && !paxos_ballot_is_none(&a));
	/* Of one microsecond neither is later: their values would have the same timestamp. */
	ck_assert(!paxos_ballot_is_later(&a, &b) && !paxos_ballot_is_later(&b, &a));
	ck_assert(paxos_ballot_is_later(&c, &a) && !paxos_ballot_is_later(&a, &c));
	ck_assert(paxos_ballot_is_later(&a, &none) && !paxos_ballot_is_later(&none, &a));
}
END_TEST

START_TEST(test_requests_go_there_and_back)
{
	struct paxos_commit commit = {.ballot = paxos_ballot_make(1700000000000001, 5, false),
	    .key = slice_of_string("key"),
	    .value = slice_of_string("the value"),
	    .electorate = 77};
	struct paxos_commit out;
	struct buffer buffer;
	struct error err;

	memset(commit.table.bytes, 3, sizeof(commit.table.bytes));
	buffer_init(&buffer);
	paxos_commit_encode(&commit, &buffer);
	ck_assert_int_eq(paxos_commit_decode(buffer_slice(&buffer), &out, &err), 0);
	ck_assert(uuid_equal(&out.ballot, &commit.ballot) && uuid_equal(&out.table, &commit.table));
	ck_assert(slice_equal(out.key, commit.key) && slice_equal(out.value, commit.value));
	ck_assert_uint_eq(out.electorate, 77);
	for (size_t size = 0; size < buffer.size; size++) {
		ck_assert_int_ne(paxos_commit_decode(slice_of(buffer.data, size), &out, &err), 0);
		ck_assert_int_eq(err.code, ERROR_INVALID);
	}
	buffer_put_u8(&buffer, 0);
	ck_assert_int_ne(paxos_commit_decode(buffer_slice(&buffer), &out, &err), 0);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_a_request_without_a_ballot_is_refused)
{
	struct paxos_commit commit = {.key = slice_of_string("key")}, out;
	struct buffer buffer;
	struct error err;

	commit.value = slice_of("", 0);
	buffer_init(&buffer);
	paxos_commit_encode(&commit, &buffer);
	ck_assert_int_ne(paxos_commit_decode(buffer_slice(&buffer), &out, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.text, "ballot"));
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_answers_go_there_and_back)
{
	struct paxos_promise promise = {.is_promised = true,
	    .promised = paxos_ballot_make(10, 1, false),
	    .accepted_ballot = paxos_ballot_make(9, 1, false),
	    .committed_ballot = paxos_ballot_make(8, 1, false),
	    .accepted = slice_of_string("accepted"),
	    .committed = slice_of_string("committed")};
	struct paxos_acceptance acceptance = {true, paxos_ballot_make(10, 1, false)}, taken;
	struct paxos_promise out;
	struct buffer buffer;
	struct error err;

	buffer_init(&buffer);
	paxos_promise_encode(&promise, &buffer);
	ck_assert_int_eq(paxos_promise_decode(buffer_slice(&buffer), &out, &err), 0);
	ck_assert(out.is_promised && uuid_equal(&out.promised, &promise.promised));
	ck_assert(uuid_equal(&out.accepted_ballot, &promise.accepted_ballot));
	ck_assert(uuid_equal(&out.committed_ballot, &promise.committed_ballot));
	ck_assert(slice_equal_string(out.accepted, "accepted"));
	ck_assert(slice_equal_string(out.committed, "committed"));
	buffer_clear(&buffer);
	paxos_acceptance_encode(&acceptance, &buffer);
	ck_assert_int_eq(paxos_acceptance_decode(buffer_slice(&buffer), &taken, &err), 0);
	ck_assert(taken.is_accepted && uuid_equal(&taken.promised, &acceptance.promised));
	ck_assert_int_ne(
	    paxos_acceptance_decode(slice_of(buffer.data, buffer.size - 1), &taken, &err), 0);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_a_value_knows_what_was_before_it)
{
	struct uuid origins[PAXOS_HISTORY_MAX + 2];
	uint8_t history[16 * PAXOS_HISTORY_MAX];
	struct paxos_content content = {.history_count = 3, .mutation = slice_of_string("m")}, out;
	struct buffer buffer;
	struct error err;

	/* The last one first. */
	for (int i = 0; i < PAXOS_HISTORY_MAX + 2; i++) {
		origins[i] = paxos_ballot_make(1000 - i, 1, false);
		if (i > 0 && i <= PAXOS_HISTORY_MAX)
			memcpy(history + (i - 1) * 16, origins[i].bytes, 16);
	}
	content.origin = origins[0];
	content.history = slice_of(history, 3 * 16);
	buffer_init(&buffer);
	paxos_content_encode(&content, &buffer);
	ck_assert_int_eq(paxos_content_decode(buffer_slice(&buffer), &out, &err), 0);
	ck_assert(slice_equal_string(out.mutation, "m") && out.history_count == 3);
	for (size_t size = 0; size < buffer.size; size++)
		ck_assert_int_ne(paxos_content_decode(slice_of(buffer.data, size), &out, &err), 0);
	ck_assert_int_eq(paxos_content_decode(buffer_slice(&buffer), &out, &err), 0);
	for (int i = 0; i <= 3; i++)
		ck_assert(paxos_content_has(&out, &origins[i]));
	/* There was nothing before a history that is not full. */
	ck_assert(!paxos_content_has(&out, &origins[4]));
	ck_assert(!paxos_content_may_have_had(&out, &origins[4]));
	content.history_count = PAXOS_HISTORY_MAX;
	content.history = slice_of(history, sizeof(history));
	ck_assert(!paxos_content_has(&content, &origins[PAXOS_HISTORY_MAX + 1]));
	ck_assert(paxos_content_may_have_had(&content, &origins[PAXOS_HISTORY_MAX + 1]));
	buffer_fini(&buffer);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("paxos_codec");
	TCase *tcase = tcase_create("paxos_codec");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_ballots_are_their_microsecond);
	tcase_add_test(tcase, test_requests_go_there_and_back);
	tcase_add_test(tcase, test_a_request_without_a_ballot_is_refused);
	tcase_add_test(tcase, test_answers_go_there_and_back);
	tcase_add_test(tcase, test_a_value_knows_what_was_before_it);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
