/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/repair_message.h"
#include <check.h>
#include <stdlib.h>

static struct error err;

static const struct ring_range test_ranges[] = {{-5, 10}, {10, INT64_MIN}};
static const struct uuid test_tables[] = {{{1}}, {{2}}};
static const uint64_t test_electorates[] = {5, UINT64_MAX};
static const uint8_t test_depths[] = {3, 20};
static const struct endpoint test_endpoints[] = {
    {{127, 0, 0, 1}, 4, 7000}, {{0, [15] = 1}, 16, 7001}};

static struct repair_message
test_message(enum verb verb)
{
	struct repair_message message = {
	    .verb = verb, .parent = {{7}}, .session = {{8}}, .keyspace = slice_of("", 0)};

	switch (verb) {
	case VERB_PREPARE_MSG:
		message.keyspace = slice_of_string("ks");
		message.flags = REPAIR_IS_INCREMENTAL;
		message.preview = 2;
		message.repaired_at = 1700000000000;
		message.table_count = 2;
		message.tables = test_tables;
		message.range_count = 2;
		message.ranges = test_ranges;
		message.endpoint_count = 2;
		message.endpoints = test_endpoints;
		break;
	case VERB_VALIDATION_REQ:
		message.table = test_tables[1];
		message.now_seconds = 1700000000;
		message.range_count = 2;
		message.ranges = test_ranges;
		message.depths = test_depths;
		break;
	case VERB_SYNC_REQ:
		message.table = test_tables[0];
		message.flags = REPAIR_IS_PULL;
		message.endpoint_count = 1;
		message.endpoints = test_endpoints;
		message.range_count = 1;
		message.ranges = test_ranges;
		break;
	case VERB_PAXOS2_CLEANUP_REQ:
		message.keyspace = slice_of_string("ks");
		message.table_count = 2;
		message.tables = test_tables;
		message.range_count = 2;
		message.ranges = test_ranges;
		message.electorates = test_electorates;
		break;
	default:
		break;
	}
	return message;
}

static const enum verb test_verbs[] = {VERB_PREPARE_MSG, VERB_SNAPSHOT_MSG, VERB_VALIDATION_REQ,
    VERB_SYNC_REQ, VERB_CLEANUP_MSG, VERB_PAXOS2_CLEANUP_REQ};

/* What is said is understood; cut anywhere, or with more behind it, it is refused. */
START_TEST(test_messages_come_through)
{
	enum verb verb = test_verbs[_i];
	struct repair_message message = test_message(verb), decoded;
	struct buffer encoded, again;
	struct arena arena;

	arena_init(&arena, 1024);
	buffer_init(&encoded);
	buffer_init(&again);
	repair_message_encode(&message, &encoded);
	ck_assert_int_eq(
	    repair_message_decode(verb, buffer_slice(&encoded), &arena, &decoded, &err), 0);
	repair_message_encode(&decoded, &again);
	ck_assert(slice_equal(buffer_slice(&encoded), buffer_slice(&again)));
	ck_assert(uuid_equal(&decoded.parent, &message.parent));
	ck_assert_uint_eq(decoded.range_count, message.range_count);
	ck_assert_uint_eq(decoded.endpoint_count, message.endpoint_count);
	ck_assert_int_eq(decoded.repaired_at, message.repaired_at);
	ck_assert_uint_eq(decoded.flags, message.flags);
	for (uint32_t i = 0; i < message.range_count; i++) {
		ck_assert_int_eq(decoded.ranges[i].left, message.ranges[i].left);
		ck_assert_int_eq(decoded.ranges[i].right, message.ranges[i].right);
	}
	for (size_t size = 0; size < encoded.size; size++) {
		ck_assert_int_eq(repair_message_decode(
				     verb, slice_of(encoded.data, size), &arena, &decoded, &err),
		    -1);
		ck_assert_int_eq(err.code, ERROR_PROTOCOL);
	}
	buffer_put_u8(&encoded, 0);
	ck_assert_int_eq(
	    repair_message_decode(verb, buffer_slice(&encoded), &arena, &decoded, &err), -1);
	buffer_fini(&encoded);
	buffer_fini(&again);
	arena_fini(&arena);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cluster/repair_message");
	TCase *cases = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(
	    cases, test_messages_come_through, 0, sizeof(test_verbs) / sizeof(test_verbs[0]));
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
