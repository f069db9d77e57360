/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/hints.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "cluster/hints_file.h"
#include "tests/sim/world/ring.h"

/* ---- Files --------------------------------------------------------------------------------- */

START_TEST(test_names_are_cassandras)
{
	const char *text = "00010203-0405-0607-0809-0a0b0c0d0e0f-1767225600000-1.hints";
	static const char *const bad[] = {"", "x", "00010203-0405-0607-0809-0a0b0c0d0e0f",
	    "00010203-0405-0607-0809-0a0b0c0d0e0f-1767225600000-1.crc32",
	    "00010203-0405-0607-0809-0a0b0c0d0e0f-1767225600000-1.hints2",
	    "00010203-0405-0607-0809-0a0b0c0d0e0f--1.hints",
	    "00010203-0405-0607-0809-0a0b0c0d0e0f-9223372036854775808-1.hints",
	    "00010203-0405-0607-0809-0a0b0c0d0e0f-1-4294967296.hints"};
	char again[HINTS_NAME_SIZE];
	struct hints_name name;

	ck_assert(hints_name_parse(text, &name));
	ck_assert_int_eq(name.timestamp_ms, 1767225600000);
	ck_assert_uint_eq(name.version, 1);
	ck_assert_uint_eq(name.host_id.bytes[15], 15);
	ck_assert_str_eq(hints_name_format(&name, ".hints", again), text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!hints_name_parse(bad[i], &name), "%s", bad[i]);
}
END_TEST

START_TEST(test_records_go_there_and_back)
{
	struct hint hint = {-5, 864000, slice_of_string("a mutation")}, out;
	struct buffer buffer;
	struct reader reader;
	size_t need, one;

	buffer_init(&buffer);
	hint_encode(&hint, &buffer);
	one = buffer.size;
	hint.created_ms = 7;
	hint_encode(&hint, &buffer);
	reader = reader_of(buffer_slice(&buffer));
	ck_assert_int_eq(hints_next(&reader, &out, &need), HINTS_RECORD);
	ck_assert_int_eq(out.created_ms, -5);
	ck_assert_uint_eq(out.gc_grace_seconds, 864000);
	ck_assert(slice_equal(out.mutation, hint.mutation));
	ck_assert_int_eq(hints_next(&reader, &out, &need), HINTS_RECORD);
	ck_assert_int_eq(out.created_ms, 7);
	ck_assert_int_eq(hints_next(&reader, &out, &need), HINTS_END);
	/* Cut anywhere it is short, and says how much it needs once that is known. */
	for (size_t size = 1; size < one; size++) {
		reader = reader_of(slice_of(buffer.data, size));
		ck_assert_int_eq(hints_next(&reader, &out, &need), HINTS_SHORT);
		ck_assert_uint_eq(need, size < 8 ? 8 : one);
	}
	/* Any bit that is wrong is seen, and only a damaged size hides what follows. */
	for (size_t bit = 0; bit < one * 8; bit++) {
		enum hints_next next;

		buffer.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		reader = reader_of(buffer_slice(&buffer));
		next = hints_next(&reader, &out, &need);
		ck_assert_int_eq(next, bit < 64 ? HINTS_BAD_SIZE : HINTS_BAD_BODY);
		if (next == HINTS_BAD_BODY)
			ck_assert_int_eq(hints_next(&reader, &out, &need), HINTS_RECORD);
		buffer.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_headers_and_positions)
{
	struct uuid host = {{1, 2, 3}}, out;
	uint8_t bytes[HINTS_POSITION_SIZE];
	struct buffer buffer;
	uint64_t position;
	struct error err;

	buffer_init(&buffer);
	hints_header_encode(&host, &buffer);
	ck_assert_uint_eq(buffer.size, HINTS_HEADER_SIZE);
	ck_assert_int_eq(hints_header_decode(buffer_slice(&buffer), &out, &err), 0);
	ck_assert(uuid_equal(&host, &out));
	for (size_t i = 0; i < buffer.size; i++) {
		buffer.data[i] ^= 0x10;
		ck_assert_int_ne(hints_header_decode(buffer_slice(&buffer), &out, &err), 0);
		ck_assert_int_eq(err.code, ERROR_CORRUPT);
		buffer.data[i] ^= 0x10;
	}
	ck_assert_int_ne(hints_header_decode(slice_of(buffer.data, 31), &out, &err), 0);
	buffer_fini(&buffer);
	hints_position_encode(4096, bytes);
	ck_assert(hints_position_decode(slice_of(bytes, sizeof(bytes)), &position));
	ck_assert_uint_eq(position, 4096);
	bytes[7] ^= 1;
	ck_assert(!hints_position_decode(slice_of(bytes, sizeof(bytes)), &position));
	ck_assert(!hints_position_decode(slice_of(bytes, 11), &position));
}
END_TEST

/* ---- A ring -------------------------------------------------------------------------------- */

static struct ring *ring;
static struct world *world;

static void
begin(uint32_t nodes)
{
	struct ring_options options = {
	    .world = {.seed = 11,
		.node_count = nodes,
		.faults = {.delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS},
		.is_encoded = true},
	    .factor = 3,
	    .has_hints = true};

	log_set_level("ROOT", LOG_OFF);
	ring = ring_new(&options);
	world = ring_world(ring);
}

static struct uuid
host_of(uint32_t node)
{
	return (struct uuid){{(uint8_t)(node + 1)}};
}

/* Rows 0 .. count - 1, written by node 0 at ONE. */
static void
put_rows(uint32_t count)
{
	struct ring_row rows[100];
	struct ring_op op = {.on_done = NULL};

	for (uint32_t i = 0; i < count; i++)
		rows[i] = (struct ring_row){(int32_t)i, 0, (int64_t)i + 1};
	ring_put(ring, 0, &op, rows, count, 1, CONSISTENCY_ONE, WRITE_UNLOGGED_BATCH);
	ring_wait(ring, &op);
	ck_assert(op.is_done && !op.has_failed);
	ring_op_free(&op);
}

static uint32_t
rows_of(uint32_t node, uint32_t count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++)
		found += ring_look(ring, node, (int32_t)i, 0) == (int64_t)i + 1;
	return found;
}

static struct hints_stats
stats_of(uint32_t node)
{
	struct hints_stats stats;

	hints_stats(ring_hints(ring, node), &stats);
	return stats;
}

static void
add_pending(void *context, const struct hints_pending *pending)
{
	struct hints_pending *sum = context;

	sum->host_id = pending->host_id;
	sum->files += pending->files;
	sum->bytes += pending->bytes;
	sum->corrupt_files += pending->corrupt_files;
}

static struct hints_pending
pending_of(uint32_t node)
{
	struct hints_pending sum = {.files = 0};

	hints_each_pending(ring_hints(ring, node), add_pending, &sum);
	return sum;
}

static struct peer *
peer_of(uint32_t node, uint32_t other)
{
	return peers_get(world_node(world, node)->peers, &world_node(world, other)->endpoint);
}

static bool
wants(uint32_t node, uint32_t other)
{
	struct coordinator_hints hints = hints_for_coordinator(ring_hints(ring, node));

	return hints.wants(hints.context, peer_of(node, other));
}

static void
miss(uint32_t node, uint32_t rows)
{
	ring_set_alive(ring, node, false);
	put_rows(rows);
	world_run(world, 11 * WORLD_S); /* written */
}

START_TEST(test_a_node_gets_what_it_missed)
{
	struct hints_pending pending;
	struct uuid host = host_of(2);

	begin(3);
	miss(2, 50);
	ck_assert_uint_eq(stats_of(0).total, 50);
	pending = pending_of(0);
	ck_assert_uint_eq(pending.files, 1);
	ck_assert(uuid_equal(&pending.host_id, &host));
	ck_assert_uint_eq(rows_of(2, 50), 0);
	/* Nobody has to tell: it is looked at every ten seconds. */
	ring_set_alive(ring, 2, true);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 50);
	ck_assert_uint_eq(pending_of(0).files, 0);
	ck_assert_uint_eq(stats_of(0).succeeded, 50);
	ck_assert_uint_eq(stats_of(2).applied, 50);
	ring_free(ring);
}
END_TEST

START_TEST(test_who_is_told_that_a_node_is_back_delivers_at_once)
{
	begin(3);
	miss(2, 50);
	ring_set_alive(ring, 2, true);
	hints_peer_is_alive(ring_hints(ring, 0), peer_of(0, 2));
	world_run(world, 100 * WORLD_MS);
	ck_assert_uint_eq(rows_of(2, 50), 50);
	ring_free(ring);
}
END_TEST

START_TEST(test_what_was_flushed_survives_the_power)
{
	begin(3);
	miss(2, 50);
	ring_cut_power(ring, 0);
	world_start(world, 0);
	ring_set_alive(ring, 2, true);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 50);
	ring_free(ring);
}
END_TEST

START_TEST(test_a_restart_goes_on_where_it_was)
{
	struct hints_settings *settings;
	uint64_t before;

	begin(3);
	settings = hints_settings(ring_hints(ring, 0));
	/* A page is all that a file of this size holds; each takes some seconds. */
	atomic_store(&settings->file_size_max, 2000);
	atomic_store(&settings->throttle_bytes, 1000);
	ring_set_alive(ring, 2, false);
	for (int i = 0; i < 4; i++) {
		put_rows(25);
		world_run(world, 11 * WORLD_S);
	}
	ck_assert_uint_gt(pending_of(0).files, 3);
	ring_set_alive(ring, 2, true);
	ring_deliver_hints(ring);
	world_run(world, 4 * WORLD_S);
	before = stats_of(2).applied;
	ck_assert_uint_gt(before, 0);
	ck_assert_uint_lt(before, 100);
	/* Not by power: what was removed and not synced would come back, which does no harm. */
	ring_kill(ring, 0);
	world_start(world, 0);
	world_run(world, 20 * WORLD_S);
	ck_assert_uint_eq(pending_of(0).files, 0);
	/* What was answered before is not sent again, but for one file at most. */
	ck_assert_uint_le(stats_of(2).applied, 100 + 25);
	ring_free(ring);
}
END_TEST

START_TEST(test_a_failed_page_is_sent_again)
{
	begin(3);
	miss(2, 50);
	ring_set_alive(ring, 2, true);
	world_cut_both(world, 0, 2);
	ring_deliver_hints(ring);
	world_run(world, 3 * WORLD_S);
	ck_assert_uint_eq(stats_of(0).timed_out, 50);
	ck_assert_uint_eq(stats_of(0).sessions, 0);
	ck_assert_uint_eq(pending_of(0).files, 1);
	world_heal(world);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 50);
	ring_free(ring);
}
END_TEST

START_TEST(test_a_page_goes_no_faster_than_the_throttle)
{
	begin(3);
	atomic_store(&hints_settings(ring_hints(ring, 0))->throttle_bytes, 200);
	atomic_store(&hints_settings(ring_hints(ring, 0))->file_size_max, 1000);
	miss(2, 20);
	put_rows(20);
	world_run(world, 11 * WORLD_S);
	ring_set_alive(ring, 2, true);
	ring_deliver_hints(ring);
	world_run(world, 5 * WORLD_S);
	/* 100 bytes a second, for there are two who may send to it. */
	ck_assert_uint_eq(stats_of(2).applied, 20);
	world_run(world, 25 * WORLD_S);
	ck_assert_uint_eq(stats_of(2).applied, 40);
	ring_free(ring);
}
END_TEST

START_TEST(test_what_is_wanted)
{
	struct hints *hints;
	struct hints_settings *settings;

	begin(3);
	hints = ring_hints(ring, 0);
	settings = hints_settings(hints);
	ck_assert(wants(0, 2) && !wants(0, 0));
	atomic_store(&settings->is_enabled, false);
	ck_assert(!wants(0, 2));
	atomic_store(&settings->is_enabled, true);
	hints_disable_datacenter(hints, "dc1");
	hints_disable_datacenter(hints, "dc2");
	ck_assert(!wants(0, 2));
	hints_enable_datacenter(hints, "dc1");
	ck_assert(wants(0, 2));
	atomic_store(&settings->host_size_max, 1000);
	miss(2, 50);
	ck_assert(!wants(0, 2) && wants(0, 1));
	atomic_store(&settings->host_size_max, 0);
	ck_assert(wants(0, 2));
	/* Nobody knows since when it is down, but the first hint for it does; also after a restart. */
	atomic_store(&settings->window_ms, 5000);
	ck_assert(!wants(0, 2) && wants(0, 1));
	ck_assert_uint_eq(stats_of(0).not_stored, 2);
	ring_kill(ring, 0);
	world_start(world, 0);
	settings = hints_settings(ring_hints(ring, 0));
	atomic_store(&settings->window_ms, 5000);
	world_run(world, 6 * WORLD_S);
	ck_assert(!wants(0, 2));
	atomic_store(&settings->is_window_persistent, false);
	ck_assert(wants(0, 2));
	atomic_store(&settings->is_window_persistent, true);
	hints_truncate(ring_hints(ring, 0), NULL);
	world_run(world, WORLD_S);
	ck_assert(wants(0, 2));
	ring_free(ring);
}
END_TEST

START_TEST(test_truncated_hints_are_gone)
{
	struct uuid other = host_of(1), host = host_of(2);

	begin(3);
	miss(2, 50);
	put_rows(50); /* in memory */
	hints_truncate(ring_hints(ring, 0), &other);
	world_run(world, WORLD_S);
	ck_assert_uint_eq(pending_of(0).files, 1);
	hints_truncate(ring_hints(ring, 0), &host);
	world_run(world, WORLD_S);
	ck_assert_uint_eq(pending_of(0).files, 0);
	ck_assert_uint_eq(pending_of(0).bytes, 0);
	ring_set_alive(ring, 2, true);
	world_run(world, 21 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 0);
	/* And later ones are kept as ever. */
	miss(2, 10);
	ring_set_alive(ring, 2, true);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 10), 10);
	ring_free(ring);
}
END_TEST

START_TEST(test_a_hint_past_gc_grace_is_dropped)
{
	begin(3);
	miss(2, 50);
	world_step_wall(world, 0, INT64_C(864001) * 1000000);
	ring_set_alive(ring, 2, true);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 0);
	ck_assert_uint_eq(stats_of(0).expired, 50);
	ck_assert_uint_eq(pending_of(0).files, 0);
	ring_free(ring);
}
END_TEST

START_TEST(test_files_that_expired_are_cleaned_up)
{
	begin(3);
	miss(2, 50);
	atomic_store(&hints_settings(ring_hints(ring, 0))->file_size_max, 100);
	put_rows(50);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_ge(pending_of(0).files, 1);
	atomic_store(&hints_settings(ring_hints(ring, 0))->cleans_up, true);
	world_step_wall(world, 0, INT64_C(864001) * 1000000);
	world_run(world, 3601 * WORLD_S);
	ck_assert_uint_eq(pending_of(0).files, 0);
	ring_free(ring);
}
END_TEST

START_TEST(test_paused_delivery_waits)
{
	begin(3);
	miss(2, 50);
	hints_pause(ring_hints(ring, 0), true);
	ring_set_alive(ring, 2, true);
	world_run(world, 30 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 0);
	hints_pause(ring_hints(ring, 0), false);
	world_run(world, WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 50);
	ring_free(ring);
}
END_TEST

/* Damage the one file of node 0's hints. */
static void
flip(uint64_t offset)
{
	struct world_node *node = world_node(world, 0);
	struct file_list list;
	struct hints_name name;
	char path[HINTS_NAME_SIZE + 16];
	struct error err;

	ck_assert_int_eq(files_list(node->env->files, "/hints", &list, &err), 0);
	for (size_t i = 0; i < list.count; i++) {
		if (!hints_name_parse(list.entries[i].name, &name))
			continue;
		snprintf(path, sizeof(path), "/hints/%s", list.entries[i].name);
		ck_assert_int_eq(env_sim_flip_bit(node->disk, path, offset, 3), 0);
	}
	file_list_fini(&list);
}

START_TEST(test_a_damaged_hint_costs_only_itself)
{
	begin(3);
	miss(2, 50);
	flip(HINTS_HEADER_SIZE + 20);
	ring_set_alive(ring, 2, true);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 49);
	ck_assert_uint_eq(stats_of(0).corrupt, 1);
	ck_assert_uint_eq(pending_of(0).files, 0);
	ring_free(ring);
}
END_TEST

START_TEST(test_a_damaged_file_is_kept_and_passed_over)
{
	begin(3);
	miss(2, 50);
	flip(HINTS_HEADER_SIZE + 1);
	ring_set_alive(ring, 2, true);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 0);
	ck_assert_uint_eq(stats_of(0).corrupt, 1);
	ck_assert_uint_eq(pending_of(0).corrupt_files, 1);
	/* Those that follow are not held up. */
	miss(2, 50);
	ring_set_alive(ring, 2, true);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 50);
	ck_assert_uint_eq(pending_of(0).files, 1);
	ring_free(ring);
}
END_TEST

START_TEST(test_a_disk_that_fails_is_tried_again)
{
	begin(3);
	env_sim_fail(world_node(world, 0)->disk, ENV_SIM_SYNC, "hints", 0, 1, 28);
	miss(2, 50);
	world_run(world, 11 * WORLD_S);
	ring_set_alive(ring, 2, true);
	world_run(world, 21 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 50);
	ck_assert_uint_eq(pending_of(0).files, 0);
	ring_free(ring);
}
END_TEST

START_TEST(test_too_many_in_flight_overload)
{
	struct coordinator_hints hints;
	struct buffer mutation;
	struct uuid host = host_of(2);
	struct ring_op op = {.on_done = NULL};
	struct ring_row row = {1, 0, 1};

	begin(3);
	buffer_init(&mutation);
	ring_encode(ring, 0, row, 1, &mutation);
	/* The stage writes nothing as long as the world stands still. */
	hints = hints_for_coordinator(ring_hints(ring, 0));
	while (mutation.size < 1 << 20)
		buffer_put_u8(&mutation, 0);
	for (int i = 0; i < 96; i++)
		ck_assert(hints_keep(ring_hints(ring, 0), &host, buffer_slice(&mutation), 1));
	mutation.size = 64;
	for (int i = 0; i < 1025; i++) {
		ck_assert_int_eq(hints.check(hints.context, peer_of(0, 2), NULL), 0);
		ck_assert(hints_keep(ring_hints(ring, 0), &host, buffer_slice(&mutation),
		    env_wall_us(world_node(world, 0)->env) / 1000));
	}
	/* A node without any is let alone. */
	ck_assert_int_eq(hints.check(hints.context, peer_of(0, 1), NULL), 0);
	atomic_store(&hints_settings(ring_hints(ring, 0))->is_window_persistent, false);
	ring_put(ring, 0, &op, &row, 1, 1, CONSISTENCY_ONE, WRITE_SIMPLE);
	/* The write's task comes before that of the hints' stage only by chance: ask ourselves, too. */
	{
		struct error err;

		ck_assert_int_ne(hints.check(hints.context, peer_of(0, 2), &err), 0);
		ck_assert_int_eq(err.code, ERROR_OVERLOADED);
		ck_assert_str_eq(err.text,
		    "Too many in flight hints: 1025 destination: /10.0.0.2:7000 destination hints: "
		    "1025");
	}
	ring_wait(ring, &op);
	ring_op_free(&op);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(stats_of(0).in_progress, 0);
	ck_assert_int_eq(hints.check(hints.context, peer_of(0, 2), NULL), 0);
	buffer_fini(&mutation);
	ring_free(ring);
}
END_TEST

/* ---- Moving ranges, leaving nodes ---------------------------------------------------------- */

START_TEST(test_a_hint_for_a_range_that_moved_finds_its_replicas)
{
	uint32_t replicas[3], other = 0;
	struct buffer mutation;
	struct uuid host;
	struct ring_row row = {5, 0, 77};

	begin(4);
	ck_assert_uint_eq(ring_replicas(ring, 5, replicas, 3), 3);
	while (other == replicas[0] || other == replicas[1] || other == replicas[2])
		other++;
	host = host_of(other);
	buffer_init(&mutation);
	ring_encode(ring, replicas[0], row, 77, &mutation);
	ck_assert(hints_keep(ring_hints(ring, replicas[0]), &host, buffer_slice(&mutation),
	    env_wall_us(world_node(world, 0)->env) / 1000));
	world_run(world, 25 * WORLD_S);
	ck_assert_int_eq(ring_look(ring, other, 5, 0), -1);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(ring_look(ring, replicas[i], 5, 0), 77);
	buffer_fini(&mutation);
	ring_free(ring);
}
END_TEST

struct transfer {
	struct hints_wait wait; /* first */
	unsigned done;
	bool has_failed;
};

static void
transferred(struct hints_wait *wait, const struct error *err)
{
	struct transfer *transfer = (struct transfer *)wait;

	transfer->done++;
	transfer->has_failed = err != NULL;
}

START_TEST(test_who_leaves_gives_its_hints_away)
{
	struct transfer transfer = {.wait = {.on_done = transferred}};
	struct uuid host = host_of(2);

	begin(3);
	miss(2, 50);
	hints_transfer(ring_hints(ring, 0), peer_of(0, 1), &transfer.wait);
	world_run(world, 5 * WORLD_S);
	ck_assert_uint_eq(transfer.done, 1);
	ck_assert(!transfer.has_failed);
	ck_assert_uint_eq(pending_of(0).files, 0);
	ring_kill(ring, 0);
	ring_set_alive(ring, 0, false);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(pending_of(1).files, 1);
	{
		struct hints_pending pending = pending_of(1);

		ck_assert(uuid_equal(&pending.host_id, &host));
	}
	ring_set_alive(ring, 2, true);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 50);
	ring_free(ring);
}
END_TEST

START_TEST(test_a_transfer_that_fails_says_so)
{
	struct transfer transfer = {.wait = {.on_done = transferred}};

	begin(3);
	miss(2, 50);
	world_cut_both(world, 0, 1);
	hints_transfer(ring_hints(ring, 0), peer_of(0, 1), &transfer.wait);
	world_run(world, 5 * WORLD_S);
	ck_assert_uint_eq(transfer.done, 1);
	ck_assert(transfer.has_failed);
	ck_assert_uint_eq(pending_of(0).files, 1);
	/* With nothing to give it is done at once. */
	transfer.done = 0;
	hints_transfer(ring_hints(ring, 1), peer_of(1, 0), &transfer.wait);
	ck_assert(transfer.done == 1 && !transfer.has_failed);
	ring_free(ring);
}
END_TEST

START_TEST(test_sync_waits_for_the_disk)
{
	struct transfer sync = {.wait = {.on_done = transferred}};

	begin(3);
	hints_sync(ring_hints(ring, 0), &sync.wait);
	ck_assert_uint_eq(sync.done, 1);
	ring_set_alive(ring, 2, false);
	put_rows(50);
	hints_sync(ring_hints(ring, 0), &sync.wait);
	ck_assert_uint_eq(sync.done, 1);
	world_run(world, 10 * WORLD_MS);
	ck_assert_uint_eq(sync.done, 2);
	ring_cut_power(ring, 0);
	world_start(world, 0);
	ring_set_alive(ring, 2, true);
	world_run(world, 11 * WORLD_S);
	ck_assert_uint_eq(rows_of(2, 50), 50);
	ring_free(ring);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("hints");
	TCase *tcase = tcase_create("hints");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_names_are_cassandras);
	tcase_add_test(tcase, test_records_go_there_and_back);
	tcase_add_test(tcase, test_headers_and_positions);
	tcase_add_test(tcase, test_a_node_gets_what_it_missed);
	tcase_add_test(tcase, test_who_is_told_that_a_node_is_back_delivers_at_once);
	tcase_add_test(tcase, test_what_was_flushed_survives_the_power);
	tcase_add_test(tcase, test_a_restart_goes_on_where_it_was);
	tcase_add_test(tcase, test_a_failed_page_is_sent_again);
	tcase_add_test(tcase, test_a_page_goes_no_faster_than_the_throttle);
	tcase_add_test(tcase, test_what_is_wanted);
	tcase_add_test(tcase, test_truncated_hints_are_gone);
	tcase_add_test(tcase, test_a_hint_past_gc_grace_is_dropped);
	tcase_add_test(tcase, test_files_that_expired_are_cleaned_up);
	tcase_add_test(tcase, test_paused_delivery_waits);
	tcase_add_test(tcase, test_a_damaged_hint_costs_only_itself);
	tcase_add_test(tcase, test_a_damaged_file_is_kept_and_passed_over);
	tcase_add_test(tcase, test_a_disk_that_fails_is_tried_again);
	tcase_add_test(tcase, test_too_many_in_flight_overload);
	tcase_add_test(tcase, test_a_hint_for_a_range_that_moved_finds_its_replicas);
	tcase_add_test(tcase, test_who_leaves_gives_its_hints_away);
	tcase_add_test(tcase, test_a_transfer_that_fails_says_so);
	tcase_add_test(tcase, test_sync_waits_for_the_disk);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
