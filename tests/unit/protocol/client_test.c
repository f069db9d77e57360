/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/client.h"

#include <check.h>
#include <stdlib.h>
#include "cql/type.h"
#include "golden.h"
#include "protocol/type_codec.h"

static struct arena arena;
static struct buffer buffer;
static struct error err;
static struct client_message back;
static struct client_response response;

static void
setup(void)
{
	arena_init(&arena, 4096);
	buffer_init(&buffer);
}

static void
teardown(void)
{
	arena_fini(&arena);
	buffer_fini(&buffer);
}

static struct slice
text(const char *string)
{
	return slice_of_string(string);
}

/* Encode, check against bytes where given, decode into `back`. */
static void
send_request(
    const struct client_message *request, enum compression compression, const char *expected)
{
	struct envelope_decoder decoder;
	struct envelope envelope;
	size_t consumed;

	buffer_clear(&buffer);
	if (client_put_request(&buffer, request, compression, &err) != 0)
		ck_abort_msg("%s", err.text);
	if (expected != NULL)
		golden_check(buffer_slice(&buffer), expected);
	envelope_decoder_init(&decoder, false, 0);
	ck_assert_int_eq(
	    envelope_decode(&decoder, buffer_slice(&buffer), &consumed, &envelope, &err),
	    ENVELOPE_ONE);
	ck_assert_uint_eq(consumed, buffer.size);
	ck_assert_int_eq(compression_open_body(compression, &envelope, 1 << 20, &arena, &err), 0);
	if (message_decode_request(&envelope, &arena, &back, &err) != 0)
		ck_abort_msg("%s", err.text);
	ck_assert_uint_eq(back.opcode, request->opcode);
	ck_assert_int_eq(back.stream, request->stream);
}

START_TEST(test_startup_has_the_golden_bytes)
{
	struct startup_option option = {text("CQL_VERSION"), text("3.0.0")};
	struct client_message request = {.version = 5, .opcode = OPCODE_STARTUP, .stream = 1};

	request.startup.count = 1;
	request.startup.options = &option;
	send_request(&request, COMPRESSION_NONE,
	    "05 00 0001 01 00000016 0001 000b 'CQL_VERSION' 0005 '3.0.0'");
}
END_TEST

static struct query_options
full_options(uint8_t version)
{
	static struct bound_value values[3];
	static struct slice names[3];
	struct query_options options = client_query_options(CONSISTENCY_QUORUM);

	values[0].value = text("v");
	values[1].value = slice_null;
	values[2].value = slice_null;
	values[2].is_unset = true;
	for (int i = 0; i < 3; i++)
		names[i] = text("name");
	options.values = (struct bound_values){3, values, names};
	options.skip_metadata = true;
	options.page_size = 10;
	options.paging_state = text("state");
	options.serial_consistency = CONSISTENCY_LOCAL_SERIAL;
	options.has_timestamp = true;
	options.timestamp = 99;
	if (version >= 5) {
		options.keyspace = text("ks");
		options.has_now_in_seconds = true;
		options.now_in_seconds = 8;
	}
	return options;
}

static void
check_options(const struct query_options *options, uint8_t version)
{
	ck_assert_int_eq(options->consistency, CONSISTENCY_QUORUM);
	ck_assert_uint_eq(options->values.count, 3);
	golden_check(options->values.values[0].value, "'v'");
	ck_assert(!options->values.values[1].is_unset);
	ck_assert(options->values.values[2].is_unset);
	golden_check(options->values.names[2], "'name'");
	ck_assert(options->skip_metadata);
	ck_assert_int_eq(options->page_size, 10);
	golden_check(options->paging_state, "'state'");
	ck_assert_int_eq(options->serial_consistency, CONSISTENCY_LOCAL_SERIAL);
	ck_assert_int_eq(options->timestamp, 99);
	ck_assert_int_eq(options->has_now_in_seconds, version >= 5);
	ck_assert_int_eq(slice_is_null(options->keyspace), version < 5);
}

START_TEST(test_requests_come_back_as_they_were)
{
	for (uint8_t version = 4; version <= 6; version++) {
		struct client_message request = {
		    .version = version, .stream = 300, .is_traced = true};

		request.custom_payload = golden("0001 0001 'k' 00000001 'v'");
		request.opcode = OPCODE_QUERY;
		request.query.query = text("select");
		request.query.options = full_options(version);
		send_request(&request, COMPRESSION_NONE, NULL);
		golden_check(back.query.query, "'select'");
		ck_assert(back.is_traced);
		ck_assert(slice_equal(back.custom_payload, request.custom_payload));
		check_options(&back.query.options, version);

		request.opcode = OPCODE_EXECUTE;
		request.execute.id = text("0123456789abcdef");
		request.execute.result_metadata_id = text("meta");
		request.execute.options = full_options(version);
		send_request(&request, COMPRESSION_NONE, NULL);
		golden_check(back.execute.id, "'0123456789abcdef'");
		ck_assert_int_eq(slice_is_null(back.execute.result_metadata_id), version < 5);
		check_options(&back.execute.options, version);

		request.opcode = OPCODE_PREPARE;
		request.prepare.query = text("select");
		request.prepare.keyspace = version >= 5 ? text("ks") : slice_null;
		send_request(&request, COMPRESSION_NONE, NULL);
		ck_assert(slice_equal(back.prepare.keyspace, request.prepare.keyspace));
	}
}
END_TEST

START_TEST(test_batch_register_and_token)
{
	struct bound_value value = {.value = text("v")};
	struct batch_entry entries[2] = {
	    {.query_or_id = text("insert"), .values = {1, &value, NULL}},
	    {.is_prepared = true, .query_or_id = text("id")},
	};
	struct client_message request = {.version = 4, .opcode = OPCODE_BATCH};
	struct buffer token;

	request.custom_payload = slice_null;
	request.batch.type = BATCH_COUNTER;
	request.batch.count = 2;
	request.batch.entries = entries;
	request.batch.options = client_query_options(CONSISTENCY_ONE);
	send_request(&request, COMPRESSION_NONE,
	    "04 00 0000 0d 0000001f 02 0002 00 00000006 'insert' 0001 00000001 'v' 01 0002 'id' "
	    "0000 0001 00");
	ck_assert_int_eq(back.batch.type, BATCH_COUNTER);

	request.opcode = OPCODE_REGISTER;
	request.register_.events = REGISTER_SCHEMA_CHANGE | REGISTER_TOPOLOGY_CHANGE;
	send_request(&request, COMPRESSION_NONE, NULL);
	ck_assert_uint_eq(back.register_.events, REGISTER_SCHEMA_CHANGE | REGISTER_TOPOLOGY_CHANGE);

	buffer_init(&token);
	client_put_plain_token(&token, "user", "pass");
	request.opcode = OPCODE_AUTH_RESPONSE;
	request.auth_response.token = buffer_slice(&token);
	send_request(
	    &request, COMPRESSION_NONE, "04 00 0000 0f 0000000e 0000000a 00 'user' 00 'pass'");
	buffer_fini(&token);
}
END_TEST

START_TEST(test_long_bodies_are_compressed)
{
	static char query[4001];
	struct client_message request = {.version = 4, .opcode = OPCODE_QUERY};

	memset(query, 'q', 4000);
	request.custom_payload = slice_null;
	request.query.query = text(query);
	request.query.options = client_query_options(CONSISTENCY_ONE);
	send_request(&request, COMPRESSION_SNAPPY, NULL);
	ck_assert_uint_lt(buffer.size, 1000);
	ck_assert_uint_eq(back.query.query.size, 4000);
}
END_TEST

START_TEST(test_what_a_version_cannot_carry_is_refused)
{
	struct client_message request = {.version = 4, .opcode = OPCODE_QUERY};

	request.custom_payload = slice_null;
	request.query.query = text("q");
	request.query.options = client_query_options(CONSISTENCY_ONE);
	request.query.options.keyspace = text("ks");
	buffer_put_u8(&buffer, 1);
	ck_assert_int_eq(client_put_request(&buffer, &request, COMPRESSION_NONE, &err), -1);
	ck_assert_uint_eq(buffer.size, 1);
	request.query.options = full_options(4);
	request.version = 3;
	ck_assert_int_eq(client_put_request(&buffer, &request, COMPRESSION_NONE, &err), -1);
	ck_assert_uint_eq(buffer.size, 1);
}
END_TEST

/* ---- responses ---- */

/* Decoding fails, if only when the cells are read. */
static bool
fails(const struct envelope *envelope)
{
	struct slice cell;
	uint64_t cells;

	if (client_decode_response(envelope, &arena, &response, &err) != 0)
		return true;
	if (response.result_kind != RESULT_ROWS)
		return false;
	cells = (uint64_t)response.rows.row_count * response.rows.metadata.column_count;
	while (cells-- > 0) {
		if (client_next_cell(&response.rows.content, &cell) != 0)
			return true;
	}
	return false;
}

/* Decode the body in the buffer; every cut of it must fail. */
static void
receive(uint8_t version, uint8_t opcode, uint8_t flags)
{
	struct envelope envelope = {.body = buffer_slice(&buffer)};

	envelope.header.version = version;
	envelope.header.opcode = opcode;
	envelope.header.flags = flags;
	for (size_t size = 0; size < buffer.size; size++) {
		uint8_t *exact = malloc(size + 1);

		memcpy(exact, buffer.data, size);
		envelope.body = slice_of(exact, size);
		ck_assert(fails(&envelope));
		free(exact);
	}
	envelope.body = buffer_slice(&buffer);
	if (client_decode_response(&envelope, &arena, &response, &err) != 0)
		ck_abort_msg("%s", err.text);
}

START_TEST(test_rows_are_read_cell_by_cell)
{
	const struct column_spec columns[2] = {
	    {text("k"), text("t"), text("p"), type_native(TYPE_INT)},
	    {text("k"), text("u"), text("l"), type_list(&arena, type_native(TYPE_TEXT), true)},
	};
	struct columns_metadata metadata = {.columns = columns, .column_count = 2};
	struct response_rows rows =
	    response_begin_rows(&buffer, 5, &metadata, false, (const uint8_t *)"0123456789abcdef");
	const struct type *type;
	struct slice cell;

	response_put_cell(&buffer, text("1234"));
	response_put_cell(&buffer, slice_null);
	rows.row_count = 1;
	response_end_rows(&buffer, &rows, text("more"));
	receive(5, OPCODE_RESULT, 0);
	ck_assert_int_eq(response.result_kind, RESULT_ROWS);
	ck_assert_uint_eq(response.rows.row_count, 1);
	ck_assert_uint_eq(response.rows.metadata.column_count, 2);
	golden_check(response.rows.metadata.paging_state, "'more'");
	golden_check(response.rows.metadata.new_metadata_id, "'0123456789abcdef'");
	golden_check(response.rows.metadata.columns[1].table, "'u'");
	golden_check(response.rows.metadata.columns[1].name, "'l'");
	ck_assert_int_eq(
	    type_codec_decode(response.rows.metadata.columns[1].type, &arena, &type, &err), 0);
	ck_assert_int_eq(type->kind, TYPE_LIST);
	ck_assert_int_eq(client_next_cell(&response.rows.content, &cell), 0);
	golden_check(cell, "'1234'");
	ck_assert_int_eq(client_next_cell(&response.rows.content, &cell), 0);
	ck_assert(slice_is_null(cell));
	ck_assert_int_eq(client_next_cell(&response.rows.content, &cell), -1);
}
END_TEST

START_TEST(test_prepared_is_read)
{
	static const uint16_t keys[] = {1, 0};
	const struct column_spec columns[2] = {
	    {text("k"), text("t"), text("p"), type_native(TYPE_INT)},
	    {text("k"), text("t"), text("c"), type_native(TYPE_TEXT)},
	};
	struct prepared_info info = {
	    .id = (const uint8_t *)"0123456789abcdef",
	    .result_metadata_id = (const uint8_t *)"fedcba9876543210",
	    .markers = {.columns = columns, .column_count = 2},
	    .key_indexes = keys,
	    .key_index_count = 2,
	    .result = {.columns = columns, .column_count = 1},
	};

	response_put_prepared(&buffer, 5, &info);
	receive(5, OPCODE_RESULT, 0);
	ck_assert_int_eq(response.result_kind, RESULT_PREPARED);
	golden_check(response.prepared.id, "'0123456789abcdef'");
	golden_check(response.prepared.result_metadata_id, "'fedcba9876543210'");
	ck_assert_uint_eq(response.prepared.key_index_count, 2);
	ck_assert_uint_eq(response.prepared.key_indexes[0], 1);
	golden_check(response.prepared.markers.columns[1].name, "'c'");
	ck_assert_uint_eq(response.prepared.result.column_count, 1);
	buffer_clear(&buffer);
	response_put_prepared(&buffer, 3, &info);
	receive(3, OPCODE_RESULT, 0);
	ck_assert_uint_eq(response.prepared.key_index_count, 0);
}
END_TEST

START_TEST(test_errors_are_read_with_their_fields)
{
	static const struct replica_failure failures[] = {
	    {{.size = 4, .bytes = {127, 0, 0, 1}}, 1},
	    {{.size = 16, .bytes = {0xfe}}, 2},
	};
	struct error sent;

	error_set(&sent, ERROR_READ_FAILURE, "why");
	sent.consistency = CONSISTENCY_QUORUM;
	sent.received = 1;
	sent.required = 2;
	sent.data_present = true;
	response_put_error(&buffer, 5, &sent, failures, 2);
	receive(5, OPCODE_ERROR, 0);
	ck_assert_uint_eq(response.error.code, 0x1300);
	golden_check(response.error.text, "'why'");
	ck_assert_int_eq(response.error.failures, 2);
	ck_assert_uint_eq(response.error.failed[1].reason, 2);
	ck_assert_uint_eq(response.error.failed[1].address.bytes[0], 0xfe);
	ck_assert(response.error.data_present);

	buffer_clear(&buffer);
	error_set(&sent, ERROR_UNPREPARED, "why");
	memset(sent.prepared_id, 'x', 16);
	response_put_error(&buffer, 4, &sent, NULL, 0);
	receive(4, OPCODE_ERROR, 0);
	golden_check(response.error.prepared_id, "'xxxxxxxxxxxxxxxx'");

	buffer_clear(&buffer);
	error_set(&sent, ERROR_UNAVAILABLE, "why");
	sent.required = 3;
	sent.received = 1;
	response_put_error(&buffer, 4, &sent, NULL, 0);
	receive(4, OPCODE_ERROR, 0);
	ck_assert_int_eq(response.error.required, 3);
	ck_assert_int_eq(response.error.received, 1);
}
END_TEST

START_TEST(test_supported_and_events_are_read)
{
	struct node_event node = {
	    .kind = NODE_EVENT_UP, .address = {.size = 4, .bytes = {127, 0, 0, 2}, .port = 9042}};
	const struct slice arguments[] = {text("int")};
	struct schema_change change = {.kind = SCHEMA_UPDATED,
	    .target = SCHEMA_AGGREGATE,
	    .keyspace = text("k"),
	    .name = text("a"),
	    .arguments = arguments,
	    .argument_count = 1};

	response_put_supported(&buffer, "3.4.6", 5);
	receive(4, OPCODE_SUPPORTED, 0);
	ck_assert_uint_eq(response.supported.count, 3);
	ck_assert_uint_eq(response.supported.options[0].value_count, 3);
	golden_check(response.supported.options[0].values[2], "'5/v5'");

	buffer_clear(&buffer);
	response_put_node_event(&buffer, &node);
	receive(4, OPCODE_EVENT, 0);
	ck_assert(!response.event.is_schema_change);
	ck_assert_int_eq(response.event.node.kind, NODE_EVENT_UP);
	ck_assert_uint_eq(response.event.node.address.port, 9042);

	buffer_clear(&buffer);
	response_put_schema_event(&buffer, 4, &change);
	receive(4, OPCODE_EVENT, 0);
	ck_assert(response.event.is_schema_change);
	ck_assert_int_eq(response.event.schema_change.target, SCHEMA_AGGREGATE);
	golden_check(response.event.schema_change.arguments[0], "'int'");
}
END_TEST

START_TEST(test_prefixes_are_read)
{
	const struct slice warnings[] = {text("w1"), text("w2")};
	struct response_prefix prefix = {
	    .tracing_id = (const uint8_t *)"0123456789abcdef",
	    .warnings = warnings,
	    .warning_count = 2,
	    .custom_payload = golden("0001 0001 'k' 00000001 'v'"),
	};
	struct response put = response_begin(&buffer, 4, 1, OPCODE_RESULT, 0, &prefix);

	response_put_void(&buffer);
	response_end(&put, COMPRESSION_NONE);
	memmove(
	    buffer.data, buffer.data + ENVELOPE_HEADER_SIZE, buffer.size - ENVELOPE_HEADER_SIZE);
	buffer.size -= ENVELOPE_HEADER_SIZE;
	receive(4, OPCODE_RESULT, ENVELOPE_TRACING | ENVELOPE_WARNING | ENVELOPE_CUSTOM_PAYLOAD);
	golden_check(response.tracing_id, "'0123456789abcdef'");
	ck_assert_uint_eq(response.warning_count, 2);
	golden_check(response.warnings[1], "'w2'");
	ck_assert_int_eq(response.result_kind, RESULT_VOID);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("client");
	TCase *tcase = tcase_create("client");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_startup_has_the_golden_bytes);
	tcase_add_test(tcase, test_requests_come_back_as_they_were);
	tcase_add_test(tcase, test_batch_register_and_token);
	tcase_add_test(tcase, test_long_bodies_are_compressed);
	tcase_add_test(tcase, test_what_a_version_cannot_carry_is_refused);
	tcase_add_test(tcase, test_rows_are_read_cell_by_cell);
	tcase_add_test(tcase, test_prepared_is_read);
	tcase_add_test(tcase, test_errors_are_read_with_their_fields);
	tcase_add_test(tcase, test_supported_and_events_are_read);
	tcase_add_test(tcase, test_prefixes_are_read);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
