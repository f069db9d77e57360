/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/stream_session.h"

/* A session's files on their way out (StreamTransferTask). */

/* ---- choosing -------------------------------------------------------------------------------------- */

static bool
stream_send_wants(const struct stream_wish *wish, const struct table_store *table)
{
	if (strcmp(table_store_keyspace(table), wish->keyspace) != 0)
		return false;
	for (uint32_t i = 0; i < wish->table_count; i++)
		if (strcmp(table_store_name(table), wish->tables[i]) == 0)
			return true;
	return wish->table_count == 0;
}

static int
stream_send_add(struct stream_session *session, const struct stream_wish *wish,
    struct table_store *table, struct error *err)
{
	struct stream_plan_options options = {
	    .entire_sstables = session->streams->options.entire_sstables,
	    .pending_repair = session->has_pending_repair ? &session->pending_repair : NULL};
	struct stream_range *ranges = xcalloc((size_t)wish->range_count + 1, sizeof(*ranges));
	struct stream_plan *plan;
	int rc;

	for (uint32_t i = 0; i < wish->range_count; i++)
		ranges[i] = (struct stream_range){wish->ranges[i].left, wish->ranges[i].right};
	rc = stream_plan_new(
	    session->streams->store, table, ranges, wish->range_count, &options, &plan, err);
	free(ranges);
	if (rc != 0)
		return -1;
	session->outgoing =
	    xrealloc(session->outgoing, (session->outgoing_count + 1) * sizeof(*session->outgoing));
	session->outgoing[session->outgoing_count++] = (struct stream_outgoing){table, plan};
	return 0;
}

int
stream_send_prepare(
    struct stream_session *session, const struct stream_wish *wish, struct error *err)
{
	uint32_t count;
	struct table_store **tables = store_tables(session->streams->store, &count);
	int rc = 0;

	for (uint32_t i = 0; i < count && rc == 0; i++)
		if (stream_send_wants(wish, tables[i]))
			rc = stream_send_add(session, wish, tables[i], err);
	free(tables);
	return rc;
}

static void
stream_send_number(
    struct stream_session *session, uint32_t outgoing, struct stream_summary *summary)
{
	const struct stream_outgoing *from = &session->outgoing[outgoing];
	uint32_t count = stream_plan_count(from->plan);

	*summary = (struct stream_summary){.table_id = *table_store_id(from->table),
	    .keyspace = slice_of_string(table_store_keyspace(from->table)),
	    .table = slice_of_string(table_store_name(from->table)),
	    .files = count};
	session->files =
	    xrealloc(session->files, (session->file_count + count + 1) * sizeof(*session->files));
	for (uint32_t i = 0; i < count; i++) {
		summary->bytes += stream_plan_file(from->plan, i)->bytes;
		session->files[session->file_count++] = (struct stream_outgoing_file){
		    .outgoing = outgoing, .index = i, .is_queued = true};
	}
	session->unacknowledged += count;
}

int
stream_send_summaries(
    struct stream_session *session, struct stream_message *message, struct error *err)
{
	struct stream_summary *summaries =
	    arena_alloc(&session->arena, (session->outgoing_count + 1) * sizeof(*summaries));
	uint64_t bytes = 0;
	uint32_t count = 0;

	if (summaries == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a stream's summaries");
	for (uint32_t i = 0; i < session->outgoing_count; i++) {
		if (stream_plan_count(session->outgoing[i].plan) == 0)
			continue;
		stream_send_number(session, i, &summaries[count]);
		bytes += summaries[count++].bytes;
	}
	message->prepare.summary_count = count;
	message->prepare.summaries = summaries;
	lock_take(&session->lock);
	session->sending.flow.files = session->file_count;
	session->sending.flow.bytes = bytes;
	lock_drop(&session->lock);
	return 0;
}

/* ---- sending ----------------------------------------------------------------------------------------- */

static const struct stream_file *
stream_send_file(const struct stream_session *session, uint32_t file)
{
	const struct stream_outgoing_file *at = &session->files[file];

	return stream_plan_file(session->outgoing[at->outgoing].plan, at->index);
}

/* The next file that is to go. 1: it is begun; 0: none is left. */
static int
stream_send_next(struct stream_session *session, struct error *err)
{
	struct stream_message message = {.verb = VERB_STREAM_FILE};
	const struct stream_outgoing *from;
	const struct stream_file *file;
	uint32_t next = 0;

	while (next < session->file_count && !session->files[next].is_queued)
		next++;
	if (next == session->file_count)
		return 0;
	from = &session->outgoing[session->files[next].outgoing];
	file = stream_send_file(session, next);
	if (stream_writer_open(from->plan, session->files[next].index, &session->writer, err) != 0)
		return -1;
	session->file = next;
	session->files[next].is_queued = false;
	session->files[next].tries++;
	stream_count_begin(session, &session->sending, from->table, file->id, file->bytes);
	message.file.number = next;
	message.file.table_id = *table_store_id(from->table);
	message.file.bytes = file->bytes;
	stream_session_say(session, &message);
	return 1;
}

/* A block of the file. */
static int
stream_send_data(struct stream_session *session, struct error *err)
{
	bool is_entire = stream_send_file(session, session->file)->is_entire;
	struct stream_message message = {.verb = VERB_STREAM_DATA};
	struct buffer block;
	uint64_t delay_ns;
	int rc;

	buffer_init(&block);
	rc = stream_writer_next(session->writer, STREAM_DATA_BYTES, &block, err);
	if (rc >= 0)
		rc = buffer_check(&block, err) != 0 ? -1 : rc;
	if (rc >= 0 && block.size >= STREAM_RECORD_MAX)
		rc = error_set(err, ERROR_SERVER, "a row of %zu bytes is too large to be streamed",
		    block.size);
	if (rc >= 0) {
		message.data.is_last = rc == 0;
		message.data.bytes = buffer_slice(&block);
		stream_session_say(session, &message);
		stream_count_bytes(session, &session->sending, block.size, rc == 0);
		streams_count(session->streams, block.size, 0);
		delay_ns = streams_take(session->streams, session->peer, is_entire, block.size);
		session->may_send_ns =
		    delay_ns == 0 ? 0 : env_monotonic_ns(session->streams->env->env) + delay_ns;
	}
	if (rc == 0) {
		stream_writer_close(session->writer);
		session->writer = NULL;
	}
	buffer_fini(&block);
	return rc < 0 ? -1 : 0;
}

/* 1: something was sent; 0: there is nothing to send. */
static int
stream_send_one(struct stream_session *session, struct error *err)
{
	struct stream_message done = {.verb = VERB_STREAM_DONE};
	int rc;

	if (session->writer != NULL)
		return stream_send_data(session, err) == 0 ? 1 : -1;
	rc = stream_send_next(session, err);
	if (rc != 0)
		return rc;
	if (session->unacknowledged == 0 && !session->has_sent_done) {
		session->has_sent_done = true;
		stream_session_say(session, &done);
	}
	return 0;
}

static bool
stream_send_must_wait(struct stream_session *session)
{
	uint64_t now = env_monotonic_ns(session->streams->env->env);
	bool is_full;

	lock_take(&session->lock);
	is_full = session->is_full || session->channel == NULL;
	lock_drop(&session->lock);
	if (is_full)
		return true;
	/* What is a moment away is not worth a timer. */
	if (session->may_send_ns <= now + 1000000)
		return false;
	stream_session_delay(session, session->may_send_ns - now);
	return true;
}

bool
stream_send_some(struct stream_session *session)
{
	struct error err;
	int rc = 1;

	for (uint32_t i = 0; i < STREAM_TURN_RECORDS && rc == 1; i++) {
		if (stream_send_must_wait(session))
			return false;
		rc = stream_send_one(session, &err);
	}
	if (rc < 0)
		stream_session_give_up(session, &err);
	return rc == 1;
}

static void
stream_send_arrived(struct stream_session *session, struct stream_outgoing_file *file)
{
	file->is_acknowledged = true;
	session->unacknowledged--;
	session->attempts = 1;
	lock_take(&session->lock);
	session->sending.flow.files_done++;
	lock_drop(&session->lock);
}

int
stream_send_acknowledged(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	struct stream_outgoing_file *file;

	if (message->ack.number >= session->file_count ||
	    session->files[message->ack.number].is_acknowledged ||
	    session->files[message->ack.number].is_queued)
		return error_set(err, ERROR_PROTOCOL, "streaming: ACK of a file that was not sent");
	file = &session->files[message->ack.number];
	if (message->ack.again) {
		if (file->tries > session->streams->options.max_retries)
			return error_set(err, ERROR_SERVER,
			    "SSTable %s was sent %u times, and the other side could not take it: "
			    "%.*s",
			    stream_send_file(session, (uint32_t)message->ack.number)->id,
			    file->tries,
			    (int)(message->ack.reason.size > 300 ? 300 : message->ack.reason.size),
			    (const char *)message->ack.reason.data);
		file->is_queued = true;
		return 0;
	}
	stream_send_arrived(session, file);
	return 0;
}

void
stream_send_break(struct stream_session *session)
{
	if (session->writer != NULL)
		stream_count_undo(session, &session->sending);
	stream_writer_close(session->writer);
	session->writer = NULL;
	for (uint32_t i = 0; i < session->file_count; i++)
		session->files[i].is_queued = !session->files[i].is_acknowledged;
}

int
stream_send_resume(struct stream_session *session, const uint64_t *numbers, uint32_t count,
    bool is_committed, struct error *err)
{
	for (uint32_t i = 0; i < count; i++)
		if (numbers[i] >= session->file_count)
			return error_set(
			    err, ERROR_PROTOCOL, "streaming: RESUME of a file that there is not");
	for (uint32_t i = 0; i < (is_committed ? session->file_count : count); i++) {
		struct stream_outgoing_file *file = &session->files[is_committed ? i : numbers[i]];

		if (!file->is_acknowledged)
			stream_send_arrived(session, file);
		file->is_queued = false;
	}
	session->has_sent_done = session->has_heard_complete = is_committed;
	return 0;
}

void
stream_send_end(struct stream_session *session)
{
	stream_writer_close(session->writer);
	session->writer = NULL;
	for (uint32_t i = 0; i < session->outgoing_count; i++)
		stream_plan_free(session->outgoing[i].plan);
	free(session->outgoing);
	free(session->files);
	session->outgoing = NULL;
	session->files = NULL;
	session->outgoing_count = session->file_count = session->unacknowledged = 0;
}
