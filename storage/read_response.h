/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_READ_RESPONSE_H
#define HELENUS_STORAGE_READ_RESPONSE_H

/*
 * A replica's answer to a read command (ReadResponse): the data with its tombstones, or a digest of it.
 *
 *   replica      read_response_execute: store_read -> forget what is past gc_grace -> cut markers at the
 *                slices -> filters -> limits (live rows) -> bytes and / or digest
 *   coordinator  read_response_decode -> read_response_partitions (one replica's answer is enough), or
 *                data_resolver.h (answers of several are merged)
 *
 * Two replicas with the same content give the same digest however it lies in their memtables and SSTables,
 * and whichever of them has compacted: tombstones that any compaction may drop (gc_grace) are left out of answers,
 * expired cells are tombstones, markers are cut at the slices, what cannot matter below newer cells is left
 * out.
 *
 * An answer is a buffer: nothing is pinned in the store once it was written. Threads: pure functions of their
 * arguments; the store part as store_read().
 */
#include "storage/store.h"

struct read_digest {
	uint8_t bytes[16];
};

static inline bool
read_digest_equal(const struct read_digest *a, const struct read_digest *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

struct read_response_options {
	bool wants_data; /* append a data answer; false: append a digest answer */
	bool wants_digest; /* with data: compute the digest of it too, into stats->digest */
	/* Over it the read ends with ERROR_READ_FAILURE, err->reason 1 (READ_TOO_MANY_TOMBSTONES); 0: none. */
	uint32_t tombstone_failure_threshold;
	/* NULL, or asked now and then: -1 ends the read with *err (the request has expired, the node stops). */
	int (*check)(void *argument, struct error *err);
	void *check_argument;
};

struct read_response_stats {
	uint64_t rows; /* live ones, as limits count them */
	uint64_t tombstones; /* seen on the way: the caller warns over tombstone_warn_threshold */
	bool is_cut; /* a limit ended it: there may be more */
	struct read_digest digest; /* of a digest answer, or with wants_digest */
};

/*
 * Run the command on the local store and append the answer to `out`. `arena` is the request's scratch: for a
 * transient range it stays bounded, and nothing of the answer lies in it. On failure `out` is as it was.
 */
int read_response_execute(struct store *store, const struct read_command *command,
    const struct read_response_options *options, struct arena *arena, struct buffer *out,
    struct read_response_stats *stats, struct error *err);

/* The same from any stream of partitions of the command's table. Takes ownership of source. */
int read_response_write(struct partition_iterator *source, const struct read_command *command,
    const struct read_response_options *options, struct arena *arena, struct buffer *out,
    struct read_response_stats *stats, struct error *err);

/* A decoded answer: a view of the bytes it came in. */
struct read_response {
	bool is_digest;
	struct read_digest digest; /* is_digest */
	/* Data. Private below. */
	const struct read_command *command;
	struct row_codec codec;
	struct slice body;
};

/*
 * Understand an answer to `command` (the very command that was sent, with our version of its table). Bytes are
 * borrowed from `encoded`, arrays come from `arena`. Columns that our table does not have are passed over. The
 * header is checked here, the rest as it is pulled. ERROR_PROTOCOL: damaged, or of an unknown version.
 */
int read_response_decode(struct slice encoded, const struct read_command *command,
    struct arena *arena, struct read_response *out, struct error *err);

/*
 * The partitions of a data answer as a stream with tombstones; may be asked for more than once. Rows come from
 * `arena`, bytes stay where they are; the response must outlive the iterator. Order, positions, kinds and
 * counts are checked: damage is ERROR_PROTOCOL, never a stream that breaks its promises.
 */
int read_response_partitions(const struct read_response *response, struct arena *arena,
    struct partition_iterator **out, struct error *err);

/* Why a partition of an answer ends where it does, and the answer. */
enum read_response_end {
	READ_RESPONSE_COMPLETE, /* nothing more (of the partition, of the range) */
	READ_RESPONSE_PARTITION_LIMIT, /* per_partition_limit */
	READ_RESPONSE_ROW_LIMIT, /* row_limit: the whole answer ends here */
};
/* Of a partition that read_response_partitions() gave, once it has been pulled to its end. */
enum read_response_end read_response_partition_end(const struct unfiltered_iterator *partition);
/* Of the whole answer, once its partitions were pulled to the end: false when a limit ended it. */
bool read_response_is_complete(const struct partition_iterator *partitions);

/* The digest of a data answer: what read_response_execute() would have given for it. */
int read_response_digest(const struct read_response *response, struct arena *arena,
    struct read_digest *out, struct error *err);

#endif
