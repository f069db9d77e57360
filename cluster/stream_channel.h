/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_STREAM_CHANNEL_H
#define HELENUS_CLUSTER_STREAM_CHANNEL_H

/*
 * A connection of its own between two nodes, for what moves whole ranges of data: records of bytes, in order, both
 * ways, with back-pressure. Opened by cluster_env.stream_open(), offered to the other side by
 * cluster_env.on_stream. The server's runs over a socket (server/internode_stream.c: framed, checked, TLS and LZ4 as
 * other connections), the simulation's over its network.
 *
 * Threads: stream_write(), stream_pause() and stream_close() from any thread. The user's callbacks run one at a
 * time, on the channel's own thread (a network loop): they must be short, and hand what costs time or touches a disk to
 * a stage. None runs after on_close() has.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "cluster/peer.h"

enum {
	STREAM_RECORD_MAX = 16 << 20,
	STREAM_WRITE_HIGH = 4 << 20, /* unwritten bytes from which on the writer should wait */
	STREAM_WRITE_LOW = 1 << 20, /* ... until so many are left */
};

struct stream_channel;

/* The user's side, embedded in its session; filled before the channel is opened or accepted. */
struct stream_user {
	/* A record came; the bytes are borrowed for the call. */
	void (*on_record)(struct stream_user *user, struct slice record);
	/* After stream_write() said false: there is room again. */
	void (*on_writable)(struct stream_user *user);
	/* The end, exactly once: the channel must not be used any more and is freed by its owner. err: NULL when
	 * this side closed it; ERROR_IO with "closed by peer" when the other side did. */
	void (*on_close)(struct stream_user *user, const struct error *err);
};

struct stream_channel_ops {
	bool (*write)(struct stream_channel *channel, struct slice record);
	void (*pause)(struct stream_channel *channel, bool is_paused);
	void (*close)(struct stream_channel *channel);
};

struct stream_channel {
	const struct stream_channel_ops *ops;
	struct peer *peer; /* the other side */
	struct stream_user *user; /* borrowed until on_close() */
};

/*
 * Queue a record (copied; 1..STREAM_RECORD_MAX bytes). It is taken in any case; false: more than
 * STREAM_WRITE_HIGH bytes wait to be written, so wait for on_writable() before the next one. Records are
 * written as soon as the channel is open.
 */
static inline bool
stream_write(struct stream_channel *channel, struct slice record)
{
	return channel->ops->write(channel, record);
}

/* Stop reading, or go on: the other side's writer feels it. A record that was read already may still come. */
static inline void
stream_pause(struct stream_channel *channel, bool is_paused)
{
	channel->ops->pause(channel, is_paused);
}

/* Write what is queued, then close; on_close() follows. */
static inline void
stream_close(struct stream_channel *channel)
{
	channel->ops->close(channel);
}

#endif
