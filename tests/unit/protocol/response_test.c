/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/response.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "cql/type.h"
#include "golden.h"

static struct buffer buffer;
static struct arena arena;

static void
setup(void)
{
	buffer_init(&buffer);
	arena_init(&arena, 4096);
}

static void
teardown(void)
{
	buffer_fini(&buffer);
	arena_fini(&arena);
}

/* What is in the buffer, which is then empty. */
static void
check_bytes(const char *expected)
{
	ck_assert_int_eq(buffer_check(&buffer, NULL), 0);
	golden_check(buffer_slice(&buffer), expected);
	buffer_clear(&buffer);
}

static struct slice
text(const char *string)
{
	return slice_of_string(string);
}

START_TEST(test_envelopes_follow_one_another)
{
	struct response response = response_begin(&buffer, 4, 7, OPCODE_READY, 0, NULL);

	response_end(&response, COMPRESSION_NONE);
	response = response_begin(&buffer, 6, -1, OPCODE_RESULT, 0, NULL);
	response_put_void(&buffer);
	response_end(&response, COMPRESSION_NONE);
	check_bytes("84 00 0007 02 00000000  86 10 ffff 08 00000004 00000001");
}
END_TEST

START_TEST(test_prefix_parts_stand_in_order)
{
	static const uint8_t tracing[16] = {1, 2, 3};
	const struct slice warnings[] = {text("w1"), text("w2")};
	struct response_prefix prefix = {
	    .tracing_id = tracing,
	    .warnings = warnings,
	    .warning_count = 2,
	    .custom_payload = golden("0001 0001 'k' 00000001 'v'"),
	};
	struct response response;
#define PREFIX                                                                                     \
	"01020300000000000000000000000000 0002 0002 'w1' 0002 'w2' 0001 0001 'k' 00000001 'v'"

	response = response_begin(&buffer, 4, 1, OPCODE_RESULT, 0, &prefix);
	response_put_void(&buffer);
	response_end(&response, COMPRESSION_NONE);
	check_bytes("84 0e 0001 08 00000028 " PREFIX " 00000001");

	response = response_begin(&buffer, 4, 1, OPCODE_RESULT, 0, NULL);
	response_put_void(&buffer);
	response_insert_prefix(&response, &prefix);
	response_end(&response, COMPRESSION_NONE);
	check_bytes("84 0e 0001 08 00000028 " PREFIX " 00000001");

	/* Warnings and payload did not exist in v3. */
	response = response_begin(&buffer, 3, 1, OPCODE_RESULT, 0, &prefix);
	response_put_void(&buffer);
	response_end(&response, COMPRESSION_NONE);
	check_bytes("83 02 0001 08 00000014 01020300000000000000000000000000 00000001");
}
END_TEST

START_TEST(test_an_abandoned_answer_leaves_nothing)
{
	struct response response;

	buffer_put_u8(&buffer, 0xAA);
	response = response_begin(&buffer, 4, 1, OPCODE_RESULT, 0, NULL);
	response_put_void(&buffer);
	response_abandon(&response);
	check_bytes("aa");
}
END_TEST

START_TEST(test_bodies_are_compressed_where_it_was_agreed)
{
	struct response response = response_begin(&buffer, 4, 1, OPCODE_RESULT, 0, NULL);

	for (int i = 0; i < 1000; i++)
		buffer_put_u8(&buffer, 'a');
	response_end(&response, COMPRESSION_LZ4);
	ck_assert_uint_eq(buffer.data[1], ENVELOPE_COMPRESSED);
	ck_assert_uint_eq(load_u32(buffer.data + 5), buffer.size - 9);
	ck_assert_uint_eq(load_u32(buffer.data + 9), 1000);
	ck_assert_uint_lt(buffer.size, 100);
}
END_TEST

START_TEST(test_supported_is_what_cassandra_sends)
{
	response_put_supported(&buffer, "3.4.6", 6);
	check_bytes("0003 0011 'PROTOCOL_VERSIONS' 0004 0004 '3/v3' 0004 '4/v4' 0004 '5/v5' "
		    "0009 '6/v6-beta' 000b 'COMPRESSION' 0002 0006 'snappy' 0003 'lz4' "
		    "000b 'CQL_VERSION' 0001 0005 '3.4.6'");
}
END_TEST

START_TEST(test_error_envelopes_of_old_versions_have_their_layout)
{
	struct error err;

	error_set(&err, ERROR_PROTOCOL, "no");
	response_put_error_envelope(&buffer, 1, 0, 0, &err);
	check_bytes("81 00 00 00 00000008 0000000a 0002 'no'");
	response_put_error_envelope(&buffer, 66, 5, 0, &err);
	check_bytes("85 00 0005 00 00000008 0000000a 0002 'no'");
}
END_TEST

static struct error err;

static void
check_error(uint8_t version, const char *expected)
{
	response_put_error(&buffer, version, &err, NULL, 0);
	check_bytes(expected);
}

START_TEST(test_errors_without_fields_have_code_and_text)
{
	static const struct {
		enum error_code code;
		const char *wire;
	} rows[] = {
	    {ERROR_SERVER, "00000000"},
	    {ERROR_IO, "00000000"},
	    {ERROR_CORRUPT, "00000000"},
	    {ERROR_NO_MEMORY, "00000000"},
	    {ERROR_PROTOCOL, "0000000a"},
	    {ERROR_BAD_CREDENTIALS, "00000100"},
	    {ERROR_OVERLOADED, "00001001"},
	    {ERROR_BOOTSTRAPPING, "00001002"},
	    {ERROR_TRUNCATE, "00001003"},
	    {ERROR_CDC_WRITE_FAILURE, "00001600"},
	    {ERROR_SYNTAX, "00002000"},
	    {ERROR_UNAUTHORIZED, "00002100"},
	    {ERROR_INVALID, "00002200"},
	    {ERROR_CONFIG, "00002300"},
	};
	char expected[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(expected, sizeof(expected), "%s 0003 'why'", rows[i].wire);
		error_set(&err, rows[i].code, "why");
		check_error(4, expected);
		check_error(5, expected);
	}
}
END_TEST

START_TEST(test_unavailable_tells_required_then_alive)
{
	error_set(&err, ERROR_UNAVAILABLE, "u");
	err.consistency = 4;
	err.required = 2;
	err.received = 1;
	check_error(4, "00001000 0001 'u' 0004 00000002 00000001");
}
END_TEST

START_TEST(test_timeouts)
{
	error_set(&err, ERROR_READ_TIMEOUT, "t");
	err.consistency = 1;
	err.received = 0;
	err.required = 1;
	err.data_present = true;
	check_error(4, "00001200 0001 't' 0001 00000000 00000001 01");
	error_set(&err, ERROR_WRITE_TIMEOUT, "t");
	err.consistency = 6;
	err.received = 1;
	err.required = 2;
	err.write_type = "BATCH_LOG";
	check_error(5, "00001100 0001 't' 0006 00000001 00000002 0009 'BATCH_LOG'");
}
END_TEST

START_TEST(test_cas_timeout_has_contentions_in_v5_only)
{
	error_set(&err, ERROR_WRITE_TIMEOUT, "cas");
	err.consistency = 8;
	err.received = 1;
	err.required = 2;
	err.write_type = "CAS";
	err.contentions = 3;
	check_error(5, "00001100 0003 'cas' 0008 00000001 00000002 0003 'CAS' 0003");
	check_error(4,
	    "00001100 0030 'Operation timed out - received only 1 responses.' 0008 00000001 "
	    "00000002 0003 'CAS'");
}
END_TEST

START_TEST(test_cas_unknown_is_a_timeout_before_v5)
{
	error_set(&err, ERROR_CAS_WRITE_UNKNOWN, "x");
	err.consistency = 8;
	err.received = 1;
	err.required = 2;
	check_error(5, "00001700 0001 'x' 0008 00000001 00000002");
	check_error(4,
	    "00001100 0030 'Operation timed out - received only 1 responses.' 0008 00000001 "
	    "00000002 0003 'CAS'");
	ck_assert_uint_eq(response_error_code(4, ERROR_CAS_WRITE_UNKNOWN), 0x1100);
	ck_assert_uint_eq(response_error_code(5, ERROR_CAS_WRITE_UNKNOWN), 0x1700);
}
END_TEST

START_TEST(test_failures_are_a_number_then_a_map)
{
	static const struct replica_failure failures[] = {
	    {{.size = 4, .bytes = {127, 0, 0, 1}}, 1},
	    {{.size = 16, .bytes = {0xfe, 0x80}}, 0x0102},
	};

	error_set(&err, ERROR_READ_FAILURE, "f");
	err.consistency = 1;
	err.received = 0;
	err.required = 1;
	err.failures = 2;
	err.reason = 1;
	response_put_error(&buffer, 5, &err, failures, 2);
	check_bytes("00001300 0001 'f' 0001 00000000 00000001 00000002 04 7f000001 0001 "
		    "10 fe800000000000000000000000000000 0102 00");
	check_error(4, "00001300 0001 'f' 0001 00000000 00000001 00000002 00");
	check_error(3,
	    "00001200 0030 'Operation timed out - received only 0 responses.' 0001 00000000 "
	    "00000001 00");
	/* Nobody knows the address. */
	check_error(5, "00001300 0001 'f' 0001 00000000 00000001 00000001 04 00000000 0001 00");

	error_set(&err, ERROR_WRITE_FAILURE, "f");
	err.write_type = "SIMPLE";
	err.failures = 1;
	response_put_error(&buffer, 5, &err, failures, 1);
	check_bytes("00001500 0001 'f' 0000 00000000 00000000 00000001 04 7f000001 0001 "
		    "0006 'SIMPLE'");
	check_error(3,
	    "00001100 0030 'Operation timed out - received only 0 responses.' 0000 00000000 "
	    "00000000 0006 'SIMPLE'");
}
END_TEST

START_TEST(test_function_failure_lists_its_types)
{
	error_set(&err, ERROR_FUNCTION_FAILURE, "f");
	snprintf(err.keyspace, sizeof(err.keyspace), "ks");
	snprintf(err.table, sizeof(err.table), "fn");
	snprintf(err.arguments, sizeof(err.arguments), "int, map<int, text>");
	check_error(
	    4, "00001400 0001 'f' 0002 'ks' 0002 'fn' 0002 0003 'int' 000e 'map<int, text>'");
	check_error(3, "00002200 0019 'ERROR FUNCTION_FAILURE: f'");
	error_set(&err, ERROR_CDC_WRITE_FAILURE, "f");
	check_error(3, "00002200 001a 'ERROR CDC_WRITE_FAILURE: f'");
}
END_TEST

START_TEST(test_already_exists_and_unprepared)
{
	error_set(&err, ERROR_ALREADY_EXISTS, "a");
	snprintf(err.keyspace, sizeof(err.keyspace), "ks");
	check_error(4, "00002400 0001 'a' 0002 'ks' 0000");
	error_set(&err, ERROR_UNPREPARED, "a");
	memset(err.prepared_id, 0xAB, 16);
	check_error(4, "00002500 0001 'a' 0010 abababababababababababababababab");
}
END_TEST

START_TEST(test_schema_changes)
{
	const struct slice arguments[] = {text("int"), text("text")};
	struct schema_change change = {
	    .kind = SCHEMA_CREATED, .target = SCHEMA_KEYSPACE, .keyspace = text("k")};

	response_put_schema_change(&buffer, 4, &change);
	check_bytes("00000005 0007 'CREATED' 0008 'KEYSPACE' 0001 'k'");
	change.target = SCHEMA_TABLE;
	change.kind = SCHEMA_DROPPED;
	change.name = text("t");
	response_put_schema_event(&buffer, 4, &change);
	check_bytes("000d 'SCHEMA_CHANGE' 0007 'DROPPED' 0005 'TABLE' 0001 'k' 0001 't'");
	change.target = SCHEMA_FUNCTION;
	change.arguments = arguments;
	change.argument_count = 2;
	response_put_schema_event(&buffer, 4, &change);
	check_bytes("000d 'SCHEMA_CHANGE' 0007 'DROPPED' 0008 'FUNCTION' 0001 'k' 0001 't' 0002 "
		    "0003 'int' 0004 'text'");
	response_put_schema_event(&buffer, 3, &change);
	check_bytes("000d 'SCHEMA_CHANGE' 0007 'UPDATED' 0008 'KEYSPACE' 0001 'k'");
}
END_TEST

START_TEST(test_node_events_carry_address_and_port)
{
	struct node_event event = {.kind = NODE_EVENT_NEW_NODE,
	    .address = {.size = 4, .bytes = {127, 0, 0, 2}, .port = 9042}};

	response_put_node_event(&buffer, &event);
	check_bytes("000f 'TOPOLOGY_CHANGE' 0008 'NEW_NODE' 04 7f000002 00002352");
	event.kind = NODE_EVENT_DOWN;
	response_put_node_event(&buffer, &event);
	check_bytes("000d 'STATUS_CHANGE' 0004 'DOWN' 04 7f000002 00002352");
}
END_TEST

/* ---- results ---- */

static struct column_spec columns[2];
static struct columns_metadata metadata;

/* p int, c text of k.t */
static void
setup_columns(void)
{
	columns[0] = (struct column_spec){text("k"), text("t"), text("p"), type_native(TYPE_INT)};
	columns[1] = (struct column_spec){text("k"), text("t"), text("c"), type_native(TYPE_TEXT)};
	metadata = (struct columns_metadata){.columns = columns, .column_count = 2};
}

static void
put_rows(uint8_t version, bool skip_metadata, const uint8_t *new_id, struct slice paging_state)
{
	struct response_rows rows =
	    response_begin_rows(&buffer, version, &metadata, skip_metadata, new_id);

	response_put_cell(&buffer, golden("00000001"));
	response_put_cell(&buffer, text("b"));
	rows.row_count++;
	response_put_cell(&buffer, slice_empty);
	response_put_cell(&buffer, slice_null);
	rows.row_count++;
	response_end_rows(&buffer, &rows, paging_state);
}

#define SPECS "0001 'k' 0001 't' 0001 'p' 0009 0001 'c' 000d"
#define ROWS "00000002 00000004 00000001 00000001 'b' 00000000 ffffffff"
#define ID "000102030405060708090a0b0c0d0e0f"

START_TEST(test_rows_with_all_metadata_flags)
{
	const uint8_t *id = golden(ID).data;

	setup_columns();
	put_rows(4, false, NULL, slice_null);
	check_bytes("00000002 00000001 00000002 " SPECS ROWS);
	put_rows(4, true, NULL, slice_null);
	check_bytes("00000002 00000004 00000002 " ROWS);
	put_rows(4, false, NULL, golden("aabbcc"));
	check_bytes("00000002 00000003 00000002 00000003 aabbcc " SPECS ROWS);
	put_rows(4, true, NULL, golden("aabbcc"));
	check_bytes("00000002 00000006 00000002 00000003 aabbcc " ROWS);
	/* A stale id overrules skip_metadata, on v5 only. */
	put_rows(5, true, id, golden("aabbcc"));
	check_bytes("00000002 0000000b 00000002 00000003 aabbcc 0010 " ID SPECS ROWS);
	put_rows(4, true, id, slice_null);
	check_bytes("00000002 00000004 00000002 " ROWS);
}
END_TEST

START_TEST(test_columns_of_two_tables_name_theirs)
{
	setup_columns();
	columns[1].table = text("u");
	put_rows(4, false, NULL, slice_null);
	check_bytes("00000002 00000000 00000002 0001 'k' 0001 't' 0001 'p' 0009 0001 'k' 0001 'u' "
		    "0001 'c' 000d " ROWS);
}
END_TEST

START_TEST(test_encoded_specs_give_the_same_bytes)
{
	struct buffer encoded;

	setup_columns();
	buffer_init(&encoded);
	response_encode_specs(&encoded, 4, columns, 2);
	metadata.encoded = buffer_slice(&encoded);
	metadata.columns = NULL;
	put_rows(4, false, NULL, slice_null);
	check_bytes("00000002 00000001 00000002 " SPECS ROWS);
	buffer_fini(&encoded);
}
END_TEST

START_TEST(test_cells_can_be_written_piece_by_piece)
{
	size_t mark = response_begin_cell(&buffer);

	buffer_put_u8(&buffer, 0xAA);
	buffer_put_u8(&buffer, 0xBB);
	response_end_cell(&buffer, mark);
	check_bytes("00000002 aabb");
}
END_TEST

START_TEST(test_prepared_of_each_version)
{
	static const uint16_t keys[] = {1, 0};
	struct prepared_info info = {.id = golden(ID).data, .key_indexes = keys};
	uint8_t metadata_id[16];

	setup_columns();
	response_metadata_id(columns, 1, metadata_id);
	golden_check(slice_of(metadata_id, 16), "063b7186dbddca2f7a611f92a7fe07cc");
	info.result_metadata_id = metadata_id;
	info.markers = metadata;
	info.key_index_count = 2;
	info.result = (struct columns_metadata){.columns = columns, .column_count = 1};
	response_put_prepared(&buffer, 3, &info);
	check_bytes("00000004 0010 " ID "00000001 00000002 " SPECS
		    "00000001 00000001 0001 'k' 0001 't' 0001 'p' 0009");
	response_put_prepared(&buffer, 4, &info);
	check_bytes("00000004 0010 " ID "00000001 00000002 00000002 0001 0000 " SPECS
		    "00000001 00000001 0001 'k' 0001 't' 0001 'p' 0009");
	response_put_prepared(&buffer, 5, &info);
	check_bytes("00000004 0010 " ID "0010 063b7186dbddca2f7a611f92a7fe07cc "
		    "00000001 00000002 00000002 0001 0000 " SPECS
		    "00000001 00000001 0001 'k' 0001 't' 0001 'p' 0009");
	/* No markers, no result. */
	info = (struct prepared_info){.id = info.id, .result_metadata_id = metadata_id};
	response_put_prepared(&buffer, 4, &info);
	check_bytes("00000004 0010 " ID "00000000 00000000 00000000 00000004 00000000");
}
END_TEST

START_TEST(test_metadata_id_is_cassandras)
{
	const struct type *list = type_list(&arena, type_native(TYPE_INT), false);
	const struct slice fields[] = {text("a"), text("b")};
	const struct type *params[] = {type_native(TYPE_INT), type_native(TYPE_TEXT)};
	struct column_spec specs[4] = {
	    {.name = text("p"), .type = type_native(TYPE_INT)},
	    {.name = text("d"), .type = type_native(TYPE_DURATION)},
	    {.name = text("m"), .type = type_map(&arena, type_native(TYPE_TEXT), list, true)},
	    {.name = text("u"),
		.type = type_udt(&arena, text("k"), text("u"), fields, params, 2, false)},
	};
	uint8_t id[16];

	response_metadata_id(specs, 4, id);
	golden_check(slice_of(id, 16), "234c4031dc6949b33a393744b9bf624d");
	response_metadata_id(NULL, 0, id);
	golden_check(slice_of(id, 16), "d41d8cd98f00b204e9800998ecf8427e");
}
END_TEST

START_TEST(test_long_strings_are_cut_between_characters)
{
	static char long_text[70001];

	for (int i = 0; i < 70000; i += 2)
		memcpy(long_text + i, "\xC3\xA4", 2);
	response_put_string(&buffer, text(long_text));
	ck_assert_uint_eq(buffer.size, 2 + 65534);
	ck_assert_uint_eq(load_u16(buffer.data), 65534);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("response");
	TCase *tcase = tcase_create("response");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_envelopes_follow_one_another);
	tcase_add_test(tcase, test_prefix_parts_stand_in_order);
	tcase_add_test(tcase, test_an_abandoned_answer_leaves_nothing);
	tcase_add_test(tcase, test_bodies_are_compressed_where_it_was_agreed);
	tcase_add_test(tcase, test_supported_is_what_cassandra_sends);
	tcase_add_test(tcase, test_error_envelopes_of_old_versions_have_their_layout);
	tcase_add_test(tcase, test_errors_without_fields_have_code_and_text);
	tcase_add_test(tcase, test_unavailable_tells_required_then_alive);
	tcase_add_test(tcase, test_timeouts);
	tcase_add_test(tcase, test_cas_timeout_has_contentions_in_v5_only);
	tcase_add_test(tcase, test_cas_unknown_is_a_timeout_before_v5);
	tcase_add_test(tcase, test_failures_are_a_number_then_a_map);
	tcase_add_test(tcase, test_function_failure_lists_its_types);
	tcase_add_test(tcase, test_already_exists_and_unprepared);
	tcase_add_test(tcase, test_schema_changes);
	tcase_add_test(tcase, test_node_events_carry_address_and_port);
	tcase_add_test(tcase, test_rows_with_all_metadata_flags);
	tcase_add_test(tcase, test_columns_of_two_tables_name_theirs);
	tcase_add_test(tcase, test_encoded_specs_give_the_same_bytes);
	tcase_add_test(tcase, test_cells_can_be_written_piece_by_piece);
	tcase_add_test(tcase, test_prepared_of_each_version);
	tcase_add_test(tcase, test_metadata_id_is_cassandras);
	tcase_add_test(tcase, test_long_strings_are_cut_between_characters);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
