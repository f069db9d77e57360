/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/gossip_wire.h"

#include <check.h>
#include <stdlib.h>

static const struct endpoint first = {.address = {10, 0, 0, 1}, .size = 4, .port = 7000};
static const struct endpoint second = {.address = {0x20, 1, [15] = 1}, .size = 16, .port = 7001};
static struct buffer out;

static void
setup(void)
{
	buffer_init(&out);
}

static void
teardown(void)
{
	buffer_fini(&out);
}

static void
put_syn(void)
{
	size_t list;

	gossip_put_head(&out, GOSSIP_COMPLETE);
	gossip_put_name(&out, "Test Cluster");
	gossip_put_name(&out, "org.apache.cassandra.dht.Murmur3Partitioner");
	list = gossip_list_begin(&out);
	gossip_put_digest(&out, &first, 1767225600, 17);
	gossip_put_digest(&out, &second, INT32_MAX, INT32_MAX);
	gossip_list_end(&out, list, 2);
}

static void
put_delta(void)
{
	const int64_t token = 5;
	struct buffer tokens;

	buffer_init(&tokens);
	tokens_encode(&token, 1, &tokens);
	gossip_put_delta(&out, &first, 1767225600, 99, 3);
	gossip_put_value(&out, STATE_DC, 5, slice_of_string("dc1"));
	gossip_put_value(&out, STATE_TOKENS, 6, buffer_slice(&tokens));
	gossip_put_value(&out, STATE_STATUS_WITH_PORT, 7, slice_of_string("NORMAL,5"));
	buffer_fini(&tokens);
}

static void
put_ack(void)
{
	size_t list;

	gossip_put_head(&out, 0);
	list = gossip_list_begin(&out);
	gossip_put_digest(&out, &second, 8, 0);
	gossip_list_end(&out, list, 1);
	list = gossip_list_begin(&out);
	put_delta();
	gossip_list_end(&out, list, 1);
}

static void
put_ack2(void)
{
	size_t list;

	gossip_put_head(&out, 0);
	list = gossip_list_begin(&out);
	put_delta();
	gossip_list_end(&out, list, 1);
}

START_TEST(test_syn_goes_there_and_back)
{
	struct gossip_message message;
	struct gossip_digest digest;
	struct error err;

	put_syn();
	ck_assert_int_eq(gossip_syn_decode(buffer_slice(&out), &message, &err), 0);
	ck_assert(slice_equal_string(message.cluster_name, "Test Cluster"));
	ck_assert_uint_eq(message.flags, GOSSIP_COMPLETE);
	ck_assert_uint_eq(message.digest_count, 2);
	gossip_digest_next(&message.digests, &digest);
	ck_assert(endpoint_equal(&digest.endpoint, &first));
	ck_assert_int_eq(digest.generation, 1767225600);
	ck_assert_int_eq(digest.version, 17);
	gossip_digest_next(&message.digests, &digest);
	ck_assert(endpoint_equal(&digest.endpoint, &second));
	ck_assert_int_eq(digest.version, INT32_MAX);
	/* What a digest costs in a ring of IPv4 addresses. */
	ck_assert_uint_le(out.size, 70 + 15 + 29);
}
END_TEST

START_TEST(test_ack_goes_there_and_back)
{
	struct gossip_message message;
	struct gossip_delta delta;
	struct error err;

	put_ack();
	ck_assert_int_eq(gossip_ack_decode(buffer_slice(&out), &message, &err), 0);
	ck_assert_uint_eq(message.digest_count, 1);
	ck_assert_uint_eq(message.delta_count, 1);
	gossip_delta_next(&message.deltas, &delta);
	ck_assert_int_eq(delta.heartbeat, 99);
	ck_assert_uint_eq(delta.count, 3);
	ck_assert(slice_equal_string(delta.values[2].value, "NORMAL,5"));
	ck_assert_int_eq(delta.values[0].version, 5);
}
END_TEST

START_TEST(test_what_is_cut_or_longer_is_refused)
{
	int (*decode[])(struct slice, struct gossip_message *, struct error *) = {
	    gossip_syn_decode, gossip_ack_decode, gossip_ack2_decode};
	void (*put[])(void) = {put_syn, put_ack, put_ack2};

	for (int i = 0; i < 3; i++) {
		struct gossip_message message;
		struct error err;

		buffer_clear(&out);
		put[i]();
		ck_assert_int_eq(decode[i](buffer_slice(&out), &message, &err), 0);
		for (size_t cut = 0; cut < out.size; cut++) {
			uint8_t *exact = malloc(cut + 1);

			memcpy(exact, out.data, cut);
			ck_assert_int_eq(decode[i](slice_of(exact, cut), &message, &err), -1);
			ck_assert_int_eq(err.code, ERROR_INVALID);
			free(exact);
		}
		buffer_put_u8(&out, 0);
		ck_assert_int_eq(decode[i](buffer_slice(&out), &message, &err), -1);
	}
}
END_TEST

/* One delta with one value. */
static int
decode_value(uint8_t state, uint64_t version, const void *value, size_t size)
{
	struct gossip_message message;
	struct error err;
	size_t list;

	buffer_clear(&out);
	gossip_put_head(&out, 0);
	list = gossip_list_begin(&out);
	gossip_put_delta(&out, &first, 1, 1, 1);
	buffer_put_u8(&out, state);
	buffer_put_vint(&out, version);
	buffer_put_vint(&out, size);
	buffer_put(&out, value, size);
	gossip_list_end(&out, list, 1);
	return gossip_ack2_decode(buffer_slice(&out), &message, &err);
}

START_TEST(test_values_that_would_do_harm_are_refused)
{
	char *large = calloc(1, GOSSIP_VALUE_MAX + 1);

	memset(large, 'x', GOSSIP_VALUE_MAX + 1);
	ck_assert_int_eq(decode_value(STATE_DC, 1, "dc1", 3), 0);
	ck_assert_int_eq(decode_value(STATE_DC, 1, "d\xc3\xbc", 3), 0);
	ck_assert_int_eq(decode_value(STATE_DC, 1, "d\nc", 3), -1);
	ck_assert_int_eq(decode_value(STATE_DC, 1, "\x1b[2J", 4), -1);
	ck_assert_int_eq(decode_value(STATE_DC, 1, "\xff\xfe", 2), -1);
	ck_assert_int_eq(decode_value(STATE_DC, (uint64_t)INT32_MAX + 1, "dc1", 3), -1);
	ck_assert_int_eq(decode_value(STATE_TOKENS, 1, "dc1", 3), -1);
	ck_assert_int_eq(decode_value(STATE_DC, 1, large, GOSSIP_VALUE_MAX), 0);
	ck_assert_int_eq(decode_value(STATE_DC, 1, large, GOSSIP_VALUE_MAX + 1), -1);
	/* A newer node's state. */
	ck_assert_int_eq(decode_value(STATE_COUNT, 1, "\0\1", 2), 0);
	ck_assert_int_eq(decode_value(255, 1, "\0\1", 2), 0);
	free(large);
}
END_TEST

START_TEST(test_counts_beyond_the_bytes_are_refused_before_memory_is_taken)
{
	struct gossip_message message;
	struct error err;

	gossip_put_head(&out, 0);
	gossip_put_name(&out, "a");
	gossip_put_name(&out, "b");
	buffer_put_u32(&out, UINT32_MAX);
	ck_assert_int_eq(gossip_syn_decode(buffer_slice(&out), &message, &err), -1);
	buffer_clear(&out);
	gossip_put_head(&out, 0);
	buffer_put_u32(&out, UINT32_MAX);
	ck_assert_int_eq(gossip_ack2_decode(buffer_slice(&out), &message, &err), -1);
}
END_TEST

START_TEST(test_nobody_is_nowhere)
{
	struct endpoint nowhere = {.size = 4, .port = 7000}, portless = first;
	struct gossip_message message;
	struct error err;

	portless.port = 0;
	for (int i = 0; i < 2; i++) {
		size_t list;

		buffer_clear(&out);
		gossip_put_head(&out, 0);
		list = gossip_list_begin(&out);
		gossip_put_delta(&out, i == 0 ? &nowhere : &portless, 1, 1, 0);
		gossip_list_end(&out, list, 1);
		ck_assert_int_eq(gossip_ack2_decode(buffer_slice(&out), &message, &err), -1);
	}
}
END_TEST

START_TEST(test_of_a_state_that_is_named_twice_the_newer_counts)
{
	struct gossip_message message;
	struct gossip_delta delta;
	struct error err;
	size_t list;

	gossip_put_head(&out, 0);
	list = gossip_list_begin(&out);
	gossip_put_delta(&out, &first, 1, 1, 3);
	gossip_put_value(&out, STATE_DC, 5, slice_of_string("new"));
	gossip_put_value(&out, STATE_DC, 4, slice_of_string("old"));
	gossip_put_value(&out, STATE_RACK, 4, slice_of_string("r"));
	gossip_list_end(&out, list, 1);
	ck_assert_int_eq(gossip_ack2_decode(buffer_slice(&out), &message, &err), 0);
	gossip_delta_next(&message.deltas, &delta);
	ck_assert_uint_eq(delta.count, 2);
	ck_assert(slice_equal_string(delta.values[0].value, "new"));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("gossip_wire");
	TCase *tcase = tcase_create("gossip_wire");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_syn_goes_there_and_back);
	tcase_add_test(tcase, test_ack_goes_there_and_back);
	tcase_add_test(tcase, test_what_is_cut_or_longer_is_refused);
	tcase_add_test(tcase, test_values_that_would_do_harm_are_refused);
	tcase_add_test(tcase, test_counts_beyond_the_bytes_are_refused_before_memory_is_taken);
	tcase_add_test(tcase, test_nobody_is_nowhere);
	tcase_add_test(tcase, test_of_a_state_that_is_named_twice_the_newer_counts);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
