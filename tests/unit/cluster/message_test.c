/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/message.h"

#include <check.h>
#include <stdlib.h>

static const struct endpoint here = {.address = {127, 0, 0, 1}, .size = 4, .port = 7000};
static const struct endpoint there = {.address = {127, 0, 0, 2}, .size = 4, .port = 7000};
static const struct endpoint six = {.address = {0xfe, 0x80, [15] = 9}, .size = 16, .port = 7001};

enum { NOW = 1000000 };

static struct message *
message_of(uint8_t verb, const char *payload)
{
	struct message *message = message_new(verb, message_payload_new(slice_of_string(payload)));

	ck_assert_ptr_nonnull(message);
	message->id = 77;
	message->from = here;
	return message;
}

static struct message *
round_trip(const struct message *message, const struct endpoint *self, uint64_t sent_ns,
    uint64_t received_ns)
{
	struct peer sender = {.endpoint = *self};
	struct message *out = NULL;
	struct buffer wire;
	struct error err;

	buffer_init(&wire);
	message_encode(message, self, sent_ns, &wire);
	ck_assert_uint_le(wire.size, message_size(message));
	ck_assert_msg(message_decode(buffer_slice(&wire), &sender, received_ns, &out, &err) == 0,
	    "%s", err.text);
	ck_assert_ptr_eq(out->peer, endpoint_equal(&message->from, self) ? &sender : NULL);
	out->peer = NULL;
	/* Every shorter form is refused or, once the header is there, has less payload. */
	for (size_t size = 0; size < wire.size - message_payload_slice(message).size; size++) {
		struct message *cut = NULL;

		ck_assert_int_eq(
		    message_decode(slice_of(wire.data, size), &sender, received_ns, &cut, &err),
		    -1);
		ck_assert_ptr_null(cut);
	}
	buffer_fini(&wire);
	return out;
}

START_TEST(test_message_survives_the_wire)
{
	struct message *message = message_of(VERB_MUTATION_REQ, "row"), *out;

	message->flags |= MESSAGE_WANTS_FAILURE | MESSAGE_TRACED;
	memset(message->trace.session.bytes, 7, sizeof(message->trace.session.bytes));
	message->trace.type = TRACE_QUERY;
	message->expires_ns = NOW + 5000000;
	out = round_trip(message, &here, NOW, 10 * NOW);
	ck_assert_uint_eq(out->verb, VERB_MUTATION_REQ);
	ck_assert_uint_eq(out->flags, MESSAGE_WANTS_FAILURE | MESSAGE_TRACED);
	ck_assert_uint_eq(out->id, 77);
	ck_assert(endpoint_equal(&out->from, &here));
	ck_assert(uuid_equal(&out->trace.session, &message->trace.session));
	ck_assert_uint_eq(out->trace.type, TRACE_QUERY);
	ck_assert_uint_eq(out->trace.began_ns, 10 * NOW);
	ck_assert(slice_equal_string(message_payload_slice(out), "row"));
	message_unref(out);
	message_unref(message);
}
END_TEST

START_TEST(test_what_is_left_of_the_time_travels)
{
	struct message *message = message_of(VERB_READ_REQ, "x"), *out;

	message->expires_ns = NOW + 5000000;
	out = round_trip(message, &here, NOW + 2000000, 500);
	ck_assert_uint_eq(out->expires_ns, 500 + 3000000);
	message_unref(out);
	message->expires_ns = 0;
	out = round_trip(message, &here, NOW, 500);
	ck_assert_uint_eq(out->expires_ns, 0);
	message_unref(out);
	/* Less than can be told is not "never". */
	message->expires_ns = NOW + 1;
	out = round_trip(message, &here, NOW, 500);
	ck_assert_uint_gt(out->expires_ns, 500);
	message_unref(out);
	message_unref(message);
}
END_TEST

START_TEST(test_from_is_told_where_it_is_another)
{
	struct message *message = message_of(VERB_MUTATION_REQ, ""), *out;

	message->from = six;
	out = round_trip(message, &here, NOW, NOW);
	ck_assert(endpoint_equal(&out->from, &six));
	ck_assert_ptr_null(out->payload);
	message_unref(out);
	message_unref(message);
}
END_TEST

START_TEST(test_forwards_survive_the_wire)
{
	struct message *message = message_of(VERB_MUTATION_REQ, "m"), *out;

	ck_assert_int_eq(message_forwards_alloc(message, 2), 0);
	message->forwards[0] = (struct message_forward){there, 1};
	message->forwards[1] = (struct message_forward){six, UINT64_MAX};
	out = round_trip(message, &here, NOW, NOW);
	ck_assert_uint_eq(out->forward_count, 2);
	ck_assert(endpoint_equal(&out->forwards[0].to, &there));
	ck_assert(endpoint_equal(&out->forwards[1].to, &six));
	ck_assert_uint_eq(out->forwards[1].id, UINT64_MAX);
	message_unref(out);
	message_unref(message);
}
END_TEST

START_TEST(test_answers_without_payload_are_messages_without_one)
{
	struct peer sender = {.endpoint = here};
	struct message_answer answer = {
	    .id = 1234567, .expires_ns = NOW + 5000000, .verb = VERB_MUTATION_REQ + 60};
	struct message_answer out = {0};
	struct message *message = message_of(answer.verb, ""), *decoded;
	struct buffer whole, alone;
	struct error err;

	buffer_init(&whole);
	buffer_init(&alone);
	message->id = answer.id;
	message->expires_ns = answer.expires_ns;
	message->from = here;
	message_encode(message, &here, NOW, &whole);
	message_encode_answer(&answer, NOW, &alone);
	ck_assert(slice_equal(buffer_slice(&whole), buffer_slice(&alone)));
	ck_assert_uint_le(alone.size, MESSAGE_ANSWER_MAX);
	ck_assert(message_peek_answer(buffer_slice(&alone), &out));
	ck_assert_uint_eq(out.id, answer.id);
	ck_assert_uint_eq(out.verb, answer.verb);
	ck_assert_int_eq(message_decode(buffer_slice(&alone), &sender, NOW, &decoded, &err), 0);
	ck_assert_uint_eq(decoded->id, answer.id);
	message_unref(decoded);
	/* Anything more or less is none. */
	ck_assert(!message_peek_answer(slice_of(alone.data, alone.size - 1), &out));
	buffer_put_u8(&alone, 0);
	ck_assert(!message_peek_answer(buffer_slice(&alone), &out));
	alone.size--;
	alone.data[1] = MESSAGE_TRACED;
	ck_assert(!message_peek_answer(buffer_slice(&alone), &out));
	alone.data[1] = 0;
	alone.data[0] = VERB_MUTATION_REQ;
	ck_assert(!message_peek_answer(buffer_slice(&alone), &out));
	/* What is over is not "never". */
	buffer_clear(&alone);
	message_encode_answer(&answer, 2 * answer.expires_ns, &alone);
	ck_assert_uint_eq(alone.data[alone.size - 1], 1);
	message_unref(message);
	buffer_fini(&whole);
	buffer_fini(&alone);
}
END_TEST

START_TEST(test_a_decoded_payload_outlives_its_message)
{
	struct message *message = message_of(VERB_MUTATION_REQ, "kept"), *out, *forward;
	struct message_payload *payload;

	out = round_trip(message, &here, NOW, NOW);
	payload = out->payload;
	message_payload_ref(payload);
	forward = message_new(VERB_MUTATION_REQ, payload);
	message_unref(out);
	ck_assert(slice_equal_string(message_payload_slice(forward), "kept"));
	message_payload_ref(payload);
	message_unref(forward);
	ck_assert_uint_eq(payload->size, 4);
	message_payload_unref(payload);
	message_unref(message);
}
END_TEST

START_TEST(test_more_forwards_than_bytes_are_refused)
{
	struct peer sender = {.endpoint = here};
	struct message *out;
	struct buffer wire;
	struct error err;

	buffer_init(&wire);
	buffer_put_u8(&wire, VERB_MUTATION_REQ);
	buffer_put_u8(&wire, 0x40);
	buffer_put_vint(&wire, 1);
	buffer_put_vint(&wire, 0);
	buffer_put_vint(&wire, 60000);
	buffer_put_string(&wire, "too few bytes");
	ck_assert_int_eq(message_decode(buffer_slice(&wire), &sender, NOW, &out, &err), -1);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	buffer_fini(&wire);
}
END_TEST

START_TEST(test_payload_is_shared)
{
	struct message_payload *payload = message_payload_new(slice_of_string("shared"));
	struct message *first, *second;

	message_payload_ref(payload);
	first = message_new(VERB_MUTATION_REQ, payload);
	second = message_new(VERB_MUTATION_REQ, payload);
	message_unref(first);
	ck_assert(slice_equal_string(message_payload_slice(second), "shared"));
	message_unref(second);
}
END_TEST

/* A number tells which of both it is, and no two verbs share one. */
START_TEST(test_answers_are_told_from_requests)
{
	int requests = 0;

	for (int verb = 0; verb < VERB_COUNT; verb++) {
		const char *name = verb_name((uint8_t)verb);
		bool is_request = strcmp(name, "UNKNOWN") != 0 && !verb_is_answer((uint8_t)verb);

		if (!is_request)
			continue;
		requests++;
		ck_assert_int_lt(verb, VERB_COUNT - VERB_RESPONSE_OFFSET);
		ck_assert(verb_is_answer((uint8_t)(verb + VERB_RESPONSE_OFFSET)));
		ck_assert_int_ne(verb + VERB_RESPONSE_OFFSET, VERB_FAILURE_RSP);
	}
	ck_assert_int_gt(requests, 30);
	ck_assert_str_eq(verb_name(VERB_MUTATION_REQ + VERB_RESPONSE_OFFSET), "MUTATION_RSP");
	ck_assert_str_eq(verb_name(VERB_FAILURE_RSP), "FAILURE_RSP");
	ck_assert(verb_is_urgent(VERB_GOSSIP_DIGEST_SYN) && verb_is_urgent(VERB_FAILURE_RSP));
	ck_assert(verb_is_urgent(VERB_ECHO_REQ + VERB_RESPONSE_OFFSET));
	ck_assert(!verb_is_urgent(VERB_MUTATION_REQ));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("message");
	TCase *tcase = tcase_create("message");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, test_message_survives_the_wire);
	tcase_add_test(tcase, test_what_is_left_of_the_time_travels);
	tcase_add_test(tcase, test_from_is_told_where_it_is_another);
	tcase_add_test(tcase, test_forwards_survive_the_wire);
	tcase_add_test(tcase, test_answers_without_payload_are_messages_without_one);
	tcase_add_test(tcase, test_a_decoded_payload_outlives_its_message);
	tcase_add_test(tcase, test_more_forwards_than_bytes_are_refused);
	tcase_add_test(tcase, test_payload_is_shared);
	tcase_add_test(tcase, test_answers_are_told_from_requests);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
