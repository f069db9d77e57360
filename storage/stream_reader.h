/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_STREAM_READER_H
#define HELENUS_STORAGE_STREAM_READER_H

/*
 * The receiving half of streaming (CassandraStreamReceiver, CassandraEntireSSTableStreamReader, CassandraStreamReader):
 * bytes of stream_writer.h become SSTables of the table, all of a transaction together and durably, or none.
 *
 *   stream_transaction_begin
 *   per file: stream_reader_new, stream_reader_push as bytes come, stream_reader_finish
 *   stream_transaction_finish, or _abort (also what a crash amounts to: the next start removes the files)
 *
 * A file that fails leaves the others alone: its reader is aborted and the file may come again. Memory is
 * bounded by the sender's blocks. Nothing of what comes in is trusted: every block has a CRC, lengths, order and
 * kinds are checked, an entire SSTable is opened and its statistics read before it counts.
 *
 * Threads: a transaction with its readers belongs to one thread at a time. Blocks on the disk.
 */
#include "storage/store.h"

struct stream_transaction;
struct stream_reader;

/* bytes: estimate of all files, for the choice of the disk. The table must not be dropped meanwhile. */
int stream_transaction_begin(struct store *store, struct table_store *table, uint64_t bytes,
    struct stream_transaction **out, struct error *err);
/* Files received so far. */
uint32_t stream_transaction_files(const struct stream_transaction *transaction);
/*
 * The files are part of the table when this returns 0, and will be after a crash. Frees the transaction in any
 * case; on failure it is as after an abort.
 */
int stream_transaction_finish(struct stream_transaction *transaction, struct error *err);
void stream_transaction_abort(struct stream_transaction *transaction); /* accepts NULL */

int stream_reader_new(
    struct stream_transaction *transaction, struct stream_reader **out, struct error *err);
/* The next bytes of the file, cut anywhere. After -1 only abort is allowed. */
int stream_reader_push(struct stream_reader *reader, struct slice bytes, struct error *err);
/* All bytes have come: the file counts for the transaction. Frees the reader in any case. ERROR_PROTOCOL: there
 * should have been more. */
int stream_reader_finish(struct stream_reader *reader, struct error *err);
void stream_reader_abort(struct stream_reader *reader); /* accepts NULL */

#endif
