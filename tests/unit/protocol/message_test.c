/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/message.h"

#include <check.h>
#include <stdlib.h>
#include "golden.h"

static struct arena arena;
static struct client_message message;
static struct error err;

static void
setup(void)
{
	arena_init(&arena, 4096);
}

static void
teardown(void)
{
	arena_fini(&arena);
}

static struct envelope
envelope_of(uint8_t version, uint8_t opcode, uint8_t flags, const char *body)
{
	struct envelope envelope = {.body = golden(body)};

	envelope.header = (struct envelope_header){
	    .version = version,
	    .flags = flags,
	    .opcode = opcode,
	    .stream = 7,
	    .length = (uint32_t)envelope.body.size,
	};
	return envelope;
}

static void
decode(uint8_t version, uint8_t opcode, uint8_t flags, const char *body)
{
	struct envelope envelope = envelope_of(version, opcode, flags, body);

	error_clear(&err);
	if (message_decode_request(&envelope, &arena, &message, &err) != 0)
		ck_abort_msg("%s", err.text);
	ck_assert_int_eq(message.stream, 7);
	ck_assert_uint_eq(message.version, version);
	ck_assert_uint_eq(message.opcode, opcode);
}

static void
decode_fails(uint8_t version, uint8_t opcode, uint8_t flags, const char *body, const char *text)
{
	struct envelope envelope = envelope_of(version, opcode, flags, body);

	ck_assert_int_eq(message_decode_request(&envelope, &arena, &message, &err), -1);
	ck_assert_int_eq(err.code, ERROR_PROTOCOL);
	ck_assert_str_eq(err.text, text);
}

START_TEST(test_startup_options_are_found_in_any_case)
{
	decode(4, OPCODE_STARTUP, 0,
	    "0002 000b 'CQL_VERSION' 0005 '3.0.0' 000b 'compression' 0003 'LZ4'");
	ck_assert_uint_eq(message.startup.count, 2);
	golden_check(message_startup_option(&message.startup, "cql_version"), "'3.0.0'");
	golden_check(message_startup_option(&message.startup, "COMPRESSION"), "'LZ4'");
	ck_assert(slice_is_null(message_startup_option(&message.startup, "NO_COMPACT")));
}
END_TEST

START_TEST(test_query_without_options)
{
	decode(4, OPCODE_QUERY, 0, "00000008 'select 1' 0001 00");
	golden_check(message.query.query, "'select 1'");
	ck_assert_int_eq(message.query.options.consistency, CONSISTENCY_ONE);
	ck_assert_int_eq(message.query.options.serial_consistency, CONSISTENCY_SERIAL);
	ck_assert_int_eq(message.query.options.page_size, -1);
	ck_assert_uint_eq(message.query.options.values.count, 0);
	ck_assert(slice_is_null(message.query.options.paging_state));
	ck_assert(slice_is_null(message.query.options.keyspace));
	ck_assert(!message.query.options.has_timestamp);
	ck_assert(!message.query.options.skip_metadata);
}
END_TEST

static void
check_all_options(const struct query_options *options)
{
	ck_assert_int_eq(options->consistency, CONSISTENCY_LOCAL_QUORUM);
	ck_assert_uint_eq(options->values.count, 3);
	golden_check(options->values.names[0], "'a'");
	golden_check(options->values.values[0].value, "01020304");
	ck_assert(slice_is_null(options->values.values[1].value));
	ck_assert(!options->values.values[1].is_unset);
	ck_assert(slice_is_null(options->values.values[2].value));
	ck_assert(options->values.values[2].is_unset);
	ck_assert(options->skip_metadata);
	ck_assert_int_eq(options->page_size, 100);
	golden_check(options->paging_state, "aabb");
	ck_assert_int_eq(options->serial_consistency, CONSISTENCY_LOCAL_SERIAL);
	ck_assert(options->has_timestamp);
	ck_assert_int_eq(options->timestamp, -2);
}

#define ALL_OPTIONS                                                                                \
	"0003 0001 'a' 00000004 01020304 0001 'b' ffffffff 0001 'c' fffffffe 00000064 "            \
	"00000002 aabb 0009 fffffffffffffffe"

START_TEST(test_query_with_every_option_v4)
{
	decode(4, OPCODE_QUERY, 0, "00000001 'q' 0006 7f " ALL_OPTIONS);
	check_all_options(&message.query.options);
	ck_assert(slice_is_null(message.query.options.keyspace));
}
END_TEST

START_TEST(test_query_with_every_option_v5)
{
	decode(5, OPCODE_QUERY, 0, "00000001 'q' 0006 000001ff " ALL_OPTIONS " 0002 'ks' 0000002a");
	check_all_options(&message.query.options);
	golden_check(message.query.options.keyspace, "'ks'");
	ck_assert(message.query.options.has_now_in_seconds);
	ck_assert_int_eq(message.query.options.now_in_seconds, 42);
}
END_TEST

START_TEST(test_keyspace_bit_is_honoured_in_v4)
{
	decode(4, OPCODE_QUERY, 0, "00000001 'q' 0001 80 0006 'system'");
	golden_check(message.query.options.keyspace, "'system'");
}
END_TEST

START_TEST(test_unset_before_v4_is_null)
{
	decode(3, OPCODE_QUERY, 0, "00000001 'q' 0001 01 0002 fffffffe fffffffd");
	ck_assert(!message.query.options.values.values[0].is_unset);
	ck_assert(slice_is_null(message.query.options.values.values[0].value));
	ck_assert(slice_is_null(message.query.options.values.values[1].value));
}
END_TEST

START_TEST(test_empty_value_is_not_null)
{
	decode(4, OPCODE_QUERY, 0, "00000001 'q' 0001 01 0001 00000000");
	ck_assert(!slice_is_null(message.query.options.values.values[0].value));
	ck_assert_uint_eq(message.query.options.values.values[0].value.size, 0);
}
END_TEST

START_TEST(test_bytes_after_the_body_are_ignored)
{
	decode(4, OPCODE_QUERY, 0, "00000001 'q' 0001 00 aabbcc");
	decode(4, OPCODE_OPTIONS, 0, "aabbcc");
}
END_TEST

START_TEST(test_malformed_queries_are_refused_by_name)
{
	decode_fails(
	    4, OPCODE_QUERY, 0, "00000001 'q' 004d 00", "Unknown code 77 for a consistency level");
	decode_fails(
	    4, OPCODE_QUERY, 0, "00000001 'q' 0001 04 00000000", "The page size cannot be 0");
	decode_fails(4, OPCODE_QUERY, 0, "00000001 'q' 0001 20 8000000000000000",
	    "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807] (got "
	    "-9223372036854775808)");
	decode_fails(
	    4, OPCODE_QUERY, 0, "00000001 'q' 0001 01 0001 fffffffd", "Invalid ByteBuf length -3");
	decode_fails(4, OPCODE_QUERY, 0, "ffffffff 0001 00",
	    "Not enough bytes to read an UTF8 serialized string preceded by its 4 bytes length");
	decode_fails(4, OPCODE_QUERY, 0, "00000064 'q' 0001 00",
	    "Not enough bytes to read an UTF8 serialized string preceded by its 4 bytes length");
	decode_fails(4, OPCODE_QUERY, 0, "00000001 'q' 0001 80",
	    "Not enough bytes to read an UTF8 serialized string preceded by its 2 bytes length");
	decode_fails(4, OPCODE_QUERY, 0, "00000001 'q' 0001 01 ffff 00000000",
	    "Not enough bytes to read the values");
	decode_fails(4, OPCODE_QUERY, 0, "00000002 c0 80 0001 00",
	    "Cannot decode string as UTF8: statement");
	decode_fails(4, OPCODE_QUERY, 0, "00000003 eda080 0001 00",
	    "Cannot decode string as UTF8: statement");
}
END_TEST

START_TEST(test_a_huge_count_takes_no_memory)
{
	size_t before = arena.total_bytes;

	decode_fails(4, OPCODE_BATCH, 0, "00 ffff 00",
	    "Not enough bytes to read the statements of the batch");
	decode_fails(4, OPCODE_STARTUP, 0, "ffff", "Not enough bytes to read the options");
	ck_assert_uint_eq(arena.total_bytes, before);
}
END_TEST

START_TEST(test_execute_v4_and_v5)
{
	decode(4, OPCODE_EXECUTE, ENVELOPE_TRACING,
	    "0010 000102030405060708090a0b0c0d0e0f 0001 03 0001 00000004 0000002a");
	ck_assert(message.is_traced);
	golden_check(message.execute.id, "000102030405060708090a0b0c0d0e0f");
	ck_assert(slice_is_null(message.execute.result_metadata_id));
	golden_check(message.execute.options.values.values[0].value, "0000002a");
	ck_assert(message.execute.options.skip_metadata);

	decode(5, OPCODE_EXECUTE, 0, "0002 aabb 0002 ccdd 0001 00000000");
	golden_check(message.execute.id, "aabb");
	golden_check(message.execute.result_metadata_id, "ccdd");
	decode_fails(4, OPCODE_EXECUTE, 0, "",
	    "Not enough bytes to read a byte array preceded by its 2 bytes length");
}
END_TEST

START_TEST(test_prepared_id_is_seen_without_decoding)
{
	struct envelope envelope = envelope_of(4, OPCODE_EXECUTE, 0, "0002 aabb 0001 00");

	golden_check(message_peek_prepared_id(&envelope), "aabb");
	envelope = envelope_of(4, OPCODE_EXECUTE, ENVELOPE_CUSTOM_PAYLOAD,
	    "0001 0001 'k' 00000001 'v' 0002 aabb 0001 00");
	golden_check(message_peek_prepared_id(&envelope), "aabb");
	envelope = envelope_of(4, OPCODE_EXECUTE, ENVELOPE_COMPRESSED, "0002 aabb 0001 00");
	ck_assert(slice_is_null(message_peek_prepared_id(&envelope)));
	envelope = envelope_of(5, OPCODE_EXECUTE, ENVELOPE_COMPRESSED, "0002 aabb 0001 00");
	golden_check(message_peek_prepared_id(&envelope), "aabb");
	envelope = envelope_of(4, OPCODE_EXECUTE, 0, "0002 aa");
	ck_assert(slice_is_null(message_peek_prepared_id(&envelope)));
	envelope = envelope_of(4, OPCODE_QUERY, 0, "00000001 'q' 0001 00");
	ck_assert(slice_is_null(message_peek_prepared_id(&envelope)));
	golden_check(message_peek_query(&envelope), "'q'");
}
END_TEST

START_TEST(test_a_value_is_seen_without_decoding)
{
	const char *v4 = "0002 aabb 0001 01 0003 00000001 07 ffffffff 00000002 beef";
	struct envelope envelope = envelope_of(4, OPCODE_EXECUTE, 0, v4);

	golden_check(message_peek_value(&envelope, 0), "07");
	ck_assert(slice_is_null(message_peek_value(&envelope, 1)));
	golden_check(message_peek_value(&envelope, 2), "beef");
	ck_assert(slice_is_null(message_peek_value(&envelope, 3)));
	for (size_t size = 0; size < envelope.body.size; size++) {
		struct envelope cut = envelope;

		cut.body.size = size;
		ck_assert(slice_is_null(message_peek_value(&cut, 2)));
	}
	envelope =
	    envelope_of(5, OPCODE_EXECUTE, 0, "0002 aabb 0002 ccdd 0001 00000001 0001 00000001 07");
	golden_check(message_peek_value(&envelope, 0), "07");
	/* By name, or none at all. */
	envelope = envelope_of(4, OPCODE_EXECUTE, 0, "0002 aabb 0001 41 0001 0001 'k' 00000001 07");
	ck_assert(slice_is_null(message_peek_value(&envelope, 0)));
	envelope = envelope_of(4, OPCODE_EXECUTE, 0, "0002 aabb 0001 00");
	ck_assert(slice_is_null(message_peek_value(&envelope, 0)));
	envelope = envelope_of(4, OPCODE_QUERY, 0, "00000001 'q' 0001 00");
	ck_assert(slice_is_null(message_peek_value(&envelope, 0)));
}
END_TEST

START_TEST(test_prepare_has_a_keyspace_in_v5)
{
	decode(4, OPCODE_PREPARE, 0, "00000001 'q'");
	golden_check(message.prepare.query, "'q'");
	decode(5, OPCODE_PREPARE, 0, "00000001 'q' 00000000");
	ck_assert(slice_is_null(message.prepare.keyspace));
	decode(5, OPCODE_PREPARE, 0, "00000001 'q' 00000001 0002 'ks'");
	golden_check(message.prepare.keyspace, "'ks'");
	decode_fails(
	    5, OPCODE_PREPARE, 0, "00000001 'q'", "Not enough bytes to read the flags of PREPARE");
}
END_TEST

START_TEST(test_batch_mixes_texts_and_ids)
{
	decode(4, OPCODE_BATCH, 0,
	    "01 0002 00 00000001 'q' 0001 00000001 aa 01 0002 aabb 0000 0004 20 0000000000000005");
	ck_assert_int_eq(message.batch.type, BATCH_UNLOGGED);
	ck_assert_uint_eq(message.batch.count, 2);
	ck_assert(!message.batch.entries[0].is_prepared);
	golden_check(message.batch.entries[0].query_or_id, "'q'");
	golden_check(message.batch.entries[0].values.values[0].value, "aa");
	ck_assert(message.batch.entries[1].is_prepared);
	golden_check(message.batch.entries[1].query_or_id, "aabb");
	ck_assert_uint_eq(message.batch.entries[1].values.count, 0);
	ck_assert_int_eq(message.batch.options.consistency, CONSISTENCY_QUORUM);
	ck_assert_int_eq(message.batch.options.timestamp, 5);

	decode(5, OPCODE_BATCH, 0, "00 0000 0001 00000180 0001 'k' 00000009");
	ck_assert_uint_eq(message.batch.count, 0);
	golden_check(message.batch.options.keyspace, "'k'");
	ck_assert_int_eq(message.batch.options.now_in_seconds, 9);

	decode_fails(4, OPCODE_BATCH, 0, "09 0000 0001 00", "Invalid BATCH message type 9");
	decode_fails(4, OPCODE_BATCH, 0, "00 0001 09 00000001 'q' 0000 0001 00",
	    "Invalid query kind in BATCH messages. Must be 0 or 1 but got 9");
}
END_TEST

START_TEST(test_register_takes_names_in_any_case)
{
	decode(4, OPCODE_REGISTER, 0, "0002 000d 'schema_change' 000d 'STATUS_CHANGE'");
	ck_assert_uint_eq(
	    message.register_.events, REGISTER_SCHEMA_CHANGE | REGISTER_STATUS_CHANGE);
	decode_fails(4, OPCODE_REGISTER, 0, "0001 0003 'FOO'", "Invalid value 'FOO' for Type");
}
END_TEST

START_TEST(test_auth_response_token_may_be_null)
{
	decode(4, OPCODE_AUTH_RESPONSE, 0, "00000004 00 'a' 00 'b'");
	golden_check(message.auth_response.token, "00 'a' 00 'b'");
	decode(4, OPCODE_AUTH_RESPONSE, 0, "ffffffff");
	ck_assert(slice_is_null(message.auth_response.token));
}
END_TEST

START_TEST(test_custom_payload_is_checked_and_walked)
{
	struct slice name, value;
	size_t cursor = 0;

	decode(4, OPCODE_QUERY, ENVELOPE_CUSTOM_PAYLOAD,
	    "0002 0001 'a' 00000001 'b' 0001 'c' ffffffff 00000001 'q' 0001 00");
	golden_check(message.query.query, "'q'");
	ck_assert(message_payload_next(message.custom_payload, &cursor, &name, &value));
	golden_check(name, "'a'");
	golden_check(value, "'b'");
	ck_assert(message_payload_next(message.custom_payload, &cursor, &name, &value));
	golden_check(name, "'c'");
	ck_assert(slice_is_null(value));
	ck_assert(!message_payload_next(message.custom_payload, &cursor, &name, &value));
	decode_fails(3, OPCODE_QUERY, ENVELOPE_CUSTOM_PAYLOAD, "0000 00000001 'q' 0001 00",
	    "Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4");
	decode_fails(4, OPCODE_QUERY, ENVELOPE_CUSTOM_PAYLOAD, "0001",
	    "Not enough bytes to read the custom payload");
}
END_TEST

START_TEST(test_credentials_of_v1_are_not_supported)
{
	decode_fails(4, OPCODE_CREDENTIALS, 0, "0000", "Unsupported message");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("message");
	TCase *tcase = tcase_create("message");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_startup_options_are_found_in_any_case);
	tcase_add_test(tcase, test_query_without_options);
	tcase_add_test(tcase, test_query_with_every_option_v4);
	tcase_add_test(tcase, test_query_with_every_option_v5);
	tcase_add_test(tcase, test_keyspace_bit_is_honoured_in_v4);
	tcase_add_test(tcase, test_unset_before_v4_is_null);
	tcase_add_test(tcase, test_empty_value_is_not_null);
	tcase_add_test(tcase, test_bytes_after_the_body_are_ignored);
	tcase_add_test(tcase, test_malformed_queries_are_refused_by_name);
	tcase_add_test(tcase, test_a_huge_count_takes_no_memory);
	tcase_add_test(tcase, test_execute_v4_and_v5);
	tcase_add_test(tcase, test_prepared_id_is_seen_without_decoding);
	tcase_add_test(tcase, test_a_value_is_seen_without_decoding);
	tcase_add_test(tcase, test_prepare_has_a_keyspace_in_v5);
	tcase_add_test(tcase, test_batch_mixes_texts_and_ids);
	tcase_add_test(tcase, test_register_takes_names_in_any_case);
	tcase_add_test(tcase, test_auth_response_token_may_be_null);
	tcase_add_test(tcase, test_custom_payload_is_checked_and_walked);
	tcase_add_test(tcase, test_credentials_of_v1_are_not_supported);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
