/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "base/alloc.h"
#include "tests/sim/world/world_internal.h"

/*
 * Streaming channels of the simulated world: two ends, records in order with the network's delays, back-pressure. A cut
 * holds records back, as TCP would; a crash of one side breaks the channel for the other, and so does chance
 * (faults.stream_break). Ends live as long as the world; those of dead nodes are deaf.
 */

#define WORLD_STREAM_AGAIN_NS (50 * WORLD_MS)

struct world_record {
	struct world_record *next;
	struct buffer bytes;
};

struct world_stream {
	struct stream_channel channel; /* first; whose user is this side's */
	struct world *world;
	uint32_t node, to;
	struct world_stream *other; /* NULL: not accepted yet */
	struct world_stream *next; /* the world's list */
	bool is_over; /* on_close ran, or its node died */
	bool is_full, is_paused, is_closing, is_pumping;
	size_t pending;
	struct world_record *first, **last; /* written, not delivered */
};

static void world_stream_pump(void *context, uint32_t argument);

static uint64_t
world_stream_delay(struct world *world)
{
	const struct world_faults *faults = &world->options.faults;

	return faults->delay_min_ns + 1 +
	    world_random(&world->chance) % (faults->delay_max_ns - faults->delay_min_ns + 1);
}

static void
world_stream_later(struct world_stream *stream, uint64_t delay_ns)
{
	if (stream->is_pumping)
		return;
	stream->is_pumping = true;
	world_at(stream->world, delay_ns, world_stream_pump, stream, stream->node);
}

static void
world_stream_drop(struct world_stream *stream)
{
	while (stream->first != NULL) {
		struct world_record *record = stream->first;

		stream->first = record->next;
		buffer_fini(&record->bytes);
		free(record);
	}
	stream->last = &stream->first;
	stream->pending = 0;
}

static void
world_stream_end(struct world_stream *stream, const char *why)
{
	struct error err;

	if (stream == NULL || stream->is_over)
		return;
	stream->is_over = true;
	world_stream_drop(stream);
	if (why != NULL)
		error_set(&err, ERROR_IO, "%s", why);
	stream->channel.user->on_close(stream->channel.user, why == NULL ? NULL : &err);
}

/* ---- the channel's operations ------------------------------------------------------------------- */

static bool
world_stream_put(struct stream_channel *channel, struct slice bytes)
{
	struct world_stream *stream = (struct world_stream *)channel;
	struct world_record *record;

	if (stream->is_over || stream->is_closing)
		return true;
	record = xzalloc(sizeof(*record));
	buffer_init(&record->bytes);
	buffer_put_slice(&record->bytes, bytes);
	*stream->last = record;
	stream->last = &record->next;
	stream->pending += bytes.size;
	stream->is_full |= stream->pending > STREAM_WRITE_HIGH;
	world_stream_later(stream, world_stream_delay(stream->world));
	return !stream->is_full;
}

static void
world_stream_pause(struct stream_channel *channel, bool is_paused)
{
	((struct world_stream *)channel)->is_paused = is_paused;
}

static void
world_stream_close(struct stream_channel *channel)
{
	struct world_stream *stream = (struct world_stream *)channel;

	if (stream->is_over || stream->is_closing)
		return;
	stream->is_closing = true;
	world_stream_later(stream, world_stream_delay(stream->world));
}

static const struct stream_channel_ops world_stream_ops = {
    .write = world_stream_put, .pause = world_stream_pause, .close = world_stream_close};

static struct world_stream *
world_stream_new(struct world *world, uint32_t node, uint32_t to)
{
	struct world_stream *stream = xzalloc(sizeof(*stream));

	stream->channel.ops = &world_stream_ops;
	stream->channel.peer = peers_get(world->nodes[node].peers, &world->nodes[to].endpoint);
	stream->world = world;
	stream->node = node;
	stream->to = to;
	stream->last = &stream->first;
	stream->next = world->streams;
	world->streams = stream;
	return stream;
}

struct stream_channel *
world_stream_open(struct cluster_env *env, struct peer *to, struct stream_user *user)
{
	struct world_node *node = world_node_of(env);
	struct world_stream *stream = world_stream_new(
	    node->world, node->index, world_find(node->world, &to->endpoint)->index);

	stream->channel.user = user;
	if (node->clock->is_dying)
		stream->is_over = true;
	else
		world_stream_later(stream, world_stream_delay(node->world));
	return &stream->channel;
}

/* ---- delivery ------------------------------------------------------------------------------------- */

static bool
world_stream_accept(struct world_stream *stream)
{
	struct world *world = stream->world;
	struct world_node *to = &world->nodes[stream->to];
	struct world_stream *other;

	if (!to->is_up || to->cluster.on_stream == NULL)
		return false;
	other = world_stream_new(world, stream->to, stream->node);
	if (!to->cluster.on_stream(&to->cluster, &other->channel)) {
		other->is_over = true;
		return false;
	}
	stream->other = other;
	other->other = stream;
	return true;
}

static void
world_stream_deliver(struct world_stream *stream)
{
	struct world_record *record = stream->first;
	struct world_stream *other = stream->other;

	stream->first = record->next;
	if (stream->first == NULL)
		stream->last = &stream->first;
	stream->pending -= record->bytes.size;
	other->channel.user->on_record(other->channel.user, buffer_slice(&record->bytes));
	buffer_fini(&record->bytes);
	free(record);
	if (stream->is_full && stream->pending < STREAM_WRITE_LOW) {
		stream->is_full = false;
		stream->channel.user->on_writable(stream->channel.user);
	}
}

/* One step: accept, a record, the close. */
static void
world_stream_pump(void *context, uint32_t argument)
{
	struct world_stream *stream = context;
	struct world *world = stream->world;

	(void)argument;
	stream->is_pumping = false;
	if (stream->is_over)
		return;
	if (world_is_cut(world, stream->node, stream->to) ||
	    world_is_cut(world, stream->to, stream->node) ||
	    (stream->other != NULL && stream->other->is_paused)) {
		world_stream_later(stream, WORLD_STREAM_AGAIN_NS);
		return;
	}
	if (stream->other == NULL && !world_stream_accept(stream)) {
		world_stream_end(stream, "cannot open a stream: refused");
		return;
	}
	if (world->options.faults.stream_break > 0 &&
	    (double)(world_random(&world->chance) >> 11) <
		world->options.faults.stream_break * 0x1p53) {
		world_note(world, "a stream of %u and %u breaks", stream->node, stream->to);
		world_stream_end(stream->other, "connection reset");
		world_stream_end(stream, "connection reset");
		return;
	}
	if (stream->first != NULL)
		world_stream_deliver(stream);
	if (stream->first != NULL || stream->is_closing)
		world_stream_later(stream, world_stream_delay(world));
	if (stream->first == NULL && stream->is_closing) {
		world_stream_end(stream->other, "closed by peer");
		world_stream_end(stream, NULL);
	}
}

void
world_streams_crash(struct world *world, uint32_t index)
{
	for (struct world_stream *stream = world->streams; stream != NULL; stream = stream->next) {
		if (stream->node != index || stream->is_over)
			continue;
		stream->is_over = true;
		world_stream_drop(stream);
		if (stream->other != NULL)
			world_stream_end(stream->other, "connection reset");
	}
	world->nodes[index].cluster.on_stream = NULL;
	world->nodes[index].cluster.stream_context = NULL;
}

void
world_streams_free(struct world *world)
{
	while (world->streams != NULL) {
		struct world_stream *stream = world->streams;

		world->streams = stream->next;
		world_stream_drop(stream);
		free(stream);
	}
}
