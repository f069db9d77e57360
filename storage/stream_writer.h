/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_STREAM_WRITER_H
#define HELENUS_STORAGE_STREAM_WRITER_H

/*
 * The sending half of streaming (CassandraStreamManager, CassandraEntireSSTableStreamWriter, CassandraStreamWriter): the
 * data of a table in some token ranges as bytes, SSTable by SSTable. A file that lies wholly in one of the
 * ranges goes as it is on disk, component by component; of any other the partitions in the ranges are sent.
 *
 *   stream_plan_new            flush, choose; the SSTables are held from here on
 *   per file: stream_writer_open, stream_writer_next until 0, stream_writer_close
 *   stream_plan_free
 *
 * Bytes are made when they are asked for, a block at a time: pace and order are the caller's. A file that was
 * broken off is sent again from its beginning. Threads: a plan is immutable, any number of its files may be
 * sent at once; a writer belongs to one thread at a time.
 */
#include "storage/store.h"

/* Tokens in (left, right]; left >= right goes round the ring's end, left == right is all of it. */
struct stream_range {
	int64_t left, right;
};

static inline bool
stream_range_has(const struct stream_range *normalized, int64_t token)
{
	return (token > normalized->left || normalized->left == INT64_MIN) &&
	    (normalized->right == INT64_MIN || token <= normalized->right);
}

struct stream_plan_options {
	bool entire_sstables; /* stream_entire_sstables */
	const struct uuid *pending_repair; /* not NULL: only SSTables of this repair session */
};

/* What is known of a file before it is sent. */
struct stream_file {
	bool is_entire;
	uint64_t bytes; /* entire: of all components; else an estimate */
	uint64_t keys; /* estimate */
	int64_t repaired_at; /* ms */
	bool has_pending_repair;
	struct uuid pending_repair;
	char id[32]; /* of the SSTable, for logs */
};

struct stream_plan;
struct stream_writer;

/*
 * Ranges sorted, disjoint and not going round, in place of `ranges` (heap; *out_count may be 0 for none).
 * INT64_MIN as right stands for the end, as in struct token_range.
 */
struct stream_range *
stream_ranges_normalize(const struct stream_range *ranges, uint32_t count, uint32_t *out_count);

/* Flushes the table first and waits for it. */
int stream_plan_new(struct store *store, struct table_store *table,
    const struct stream_range *ranges, uint32_t count, const struct stream_plan_options *options,
    struct stream_plan **out, struct error *err);
uint32_t stream_plan_count(const struct stream_plan *plan);
const struct stream_file *stream_plan_file(const struct stream_plan *plan, uint32_t index);
void stream_plan_free(struct stream_plan *plan); /* accepts NULL; no writer is open */

int stream_writer_open(
    struct stream_plan *plan, uint32_t index, struct stream_writer **out, struct error *err);
/*
 * Append the next block, of about `bytes` (one row at least). 1: more follows; 0: that was the last, or there was
 * nothing left; -1: the file cannot be sent.
 */
int stream_writer_next(
    struct stream_writer *writer, size_t bytes, struct buffer *out, struct error *err);
void stream_writer_close(struct stream_writer *writer); /* accepts NULL */

#endif
