/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/stream_session.h"

/* A session's files on their way in (StreamReceiveTask). */

/* NULL: no such table, or it was dropped. */
static struct table_store *
stream_receive_table(struct stream_session *session, const struct uuid *id)
{
	uint32_t count;
	struct table_store **tables = store_tables(session->streams->store, &count), *found = NULL;

	for (uint32_t i = 0; i < count && found == NULL; i++)
		if (uuid_equal(table_store_id(tables[i]), id))
			found = tables[i];
	free(tables);
	return found;
}

int
stream_receive_prepare(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	uint64_t files = 0, bytes = 0;

	session->incoming =
	    xcalloc((size_t)message->prepare.summary_count + 1, sizeof(*session->incoming));
	for (uint32_t i = 0; i < message->prepare.summary_count; i++) {
		const struct stream_summary *summary = &message->prepare.summaries[i];
		struct stream_incoming *into = &session->incoming[session->incoming_count++];

		*into = (struct stream_incoming){.table_id = summary->table_id,
		    .table = stream_receive_table(session, &summary->table_id),
		    .files = summary->files,
		    .bytes = summary->bytes};
		if (into->table == NULL)
			return error_set(err, ERROR_INVALID, "table %.*s.%.*s is not known here",
			    (int)summary->keyspace.size, (const char *)summary->keyspace.data,
			    (int)summary->table.size, (const char *)summary->table.data);
		files += summary->files;
		bytes += summary->bytes;
	}
	lock_take(&session->lock);
	session->receiving.flow.files = files;
	session->receiving.flow.bytes = bytes;
	lock_drop(&session->lock);
	return 0;
}

static struct stream_incoming *
stream_receive_find(struct stream_session *session, const struct uuid *id)
{
	for (uint32_t i = 0; i < session->incoming_count; i++)
		if (uuid_equal(&session->incoming[i].table_id, id))
			return &session->incoming[i];
	return NULL;
}

int
stream_receive_file(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	struct stream_incoming *into = stream_receive_find(session, &message->file.table_id);
	char number[24];

	if (session->is_receiving || session->has_committed || into == NULL)
		return error_set(err, ERROR_PROTOCOL, "streaming: FILE out of order");
	if (into->transaction == NULL &&
	    stream_transaction_begin(
		session->streams->store, into->table, into->bytes, &into->transaction, err) != 0)
		return -1;
	if (stream_reader_new(into->transaction, &session->reader, err) != 0)
		return -1;
	session->is_receiving = true;
	session->number = message->file.number;
	session->into = (uint32_t)(into - session->incoming);
	snprintf(number, sizeof(number), "%" PRIu64, message->file.number);
	stream_count_begin(session, &session->receiving, into->table, number, message->file.bytes);
	return 0;
}

/* The sender's fault or the wire's: it may be right the next time. Our own disk's is not. */
static bool
stream_receive_may_retry(const struct error *err)
{
	return err->code == ERROR_CORRUPT || err->code == ERROR_PROTOCOL;
}

static void
stream_receive_pass_over(struct stream_session *session, const struct error *err)
{
	session->is_passing_over = true;
	session->pass_error = *err;
}

static int
stream_receive_push(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	int rc = stream_reader_push(session->reader, message->data.bytes, err);

	if (rc == 0 && message->data.is_last) {
		rc = stream_reader_finish(session->reader, err);
		session->reader = NULL;
	} else if (rc != 0) {
		stream_reader_abort(session->reader);
		session->reader = NULL;
	}
	if (rc == 0)
		return 0;
	if (!stream_receive_may_retry(err))
		return -1;
	stream_receive_pass_over(session, err);
	return 0;
}

/* It arrived: after a broken connection it need not come again. */
static void
stream_receive_note(struct stream_session *session)
{
	if (session->received_count == session->received_capacity) {
		session->received_capacity = session->received_capacity * 2 + 16;
		session->received = xrealloc(
		    session->received, session->received_capacity * sizeof(*session->received));
	}
	session->received[session->received_count++] = session->number;
	session->attempts = 1;
}

int
stream_receive_data(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	struct stream_message ack = {.verb = VERB_STREAM_ACK};

	if (!session->is_receiving)
		return error_set(err, ERROR_PROTOCOL, "streaming: DATA out of order");
	stream_count_bytes(
	    session, &session->receiving, message->data.bytes.size, message->data.is_last);
	streams_count(session->streams, 0, message->data.bytes.size);
	if (!session->is_passing_over && stream_receive_push(session, message, err) != 0)
		return -1;
	if (!message->data.is_last)
		return 0;
	ack.ack.number = session->number;
	ack.ack.again = session->is_passing_over;
	ack.ack.reason = slice_of_string(session->is_passing_over ? session->pass_error.text : "");
	if (!session->is_passing_over)
		stream_receive_note(session);
	session->incoming[session->into].files_done += !session->is_passing_over;
	lock_take(&session->lock);
	session->receiving.flow.files_done += !session->is_passing_over;
	lock_drop(&session->lock);
	session->is_receiving = session->is_passing_over = false;
	stream_session_say(session, &ack);
	return 0;
}

int
stream_receive_commit(struct stream_session *session, struct error *err)
{
	for (uint32_t i = 0; i < session->incoming_count; i++) {
		struct stream_incoming *from = &session->incoming[i];
		struct stream_transaction *transaction = from->transaction;

		if (from->files_done != from->files)
			return error_set(err, ERROR_PROTOCOL,
			    "streaming: %" PRIu64 " files of table %s.%s came, not %" PRIu64,
			    from->files_done, table_store_keyspace(from->table),
			    table_store_name(from->table), from->files);
		from->transaction = NULL;
		if (transaction != NULL && stream_transaction_finish(transaction, err) != 0)
			return -1;
	}
	return 0;
}

void
stream_receive_break(struct stream_session *session)
{
	if (session->is_receiving)
		stream_count_undo(session, &session->receiving);
	stream_reader_abort(session->reader);
	session->reader = NULL;
	session->is_receiving = session->is_passing_over = false;
}

void
stream_receive_end(struct stream_session *session)
{
	stream_reader_abort(session->reader);
	session->reader = NULL;
	for (uint32_t i = 0; i < session->incoming_count; i++)
		stream_transaction_abort(session->incoming[i].transaction);
	free(session->incoming);
	session->incoming = NULL;
	session->incoming_count = 0;
	session->received_count = 0;
	session->is_receiving = session->is_passing_over = false;
}
