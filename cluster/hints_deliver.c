/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bringing a node its hints (hints/HintsDispatchExecutor, HintsDispatcher). A session is run by the task of the node's store:
 *
 *   1  begin: the node is alive, not paused, and fewer than max_hints_delivery_threads sessions run
 *   2  the oldest file; what is in memory or being written is finished when there is no other
 *   3  a page: one HINT_REQ for each hint that is not too old. The task ends
 *   4  the last answer starts the task: all have answered, and the page is behind us; else the session ends and the
 *      page is sent again some time
 *   5  the throttle: a timer starts the task
 *   6  the file is through: removed. Back to 2
 *
 * While hints are transferred (decommission) they all go to one node, which keeps them for those whom they are for.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/hints_internal.h"

/* ---- Beginning and ending ------------------------------------------------------------------ */

/* Where the hints go now: NULL, the node is not there. */
static struct peer *
hints_session_target(struct hints_store *store)
{
	struct hints *hints = store->hints;
	struct peer *to = atomic_load(&hints->transfer_to);
	const struct topology *topology;
	const struct member *member;

	if (to == NULL) {
		topology = topology_acquire(hints->options.topology);
		member = topology_find_host(topology, &store->host_id);
		to = member == NULL ? NULL : member->peer;
		topology_release(hints->options.topology, topology);
	}
	/* A replacement with the same address has this host id, and is not to be given hints before it is there: gossip
	 * does not call it alive. */
	return to != NULL && !to->is_local && atomic_load(&to->is_alive) ? to : NULL;
}

static bool
hints_session_may_run(struct hints_store *store)
{
	struct hints *hints = store->hints;

	store->session.to = NULL;
	if (atomic_load(&hints->is_stopped) || atomic_load(&hints->is_paused))
		return false;
	store->session.to = hints_session_target(store);
	return store->session.to != NULL;
}

static bool
hints_session_begin(struct hints_store *store)
{
	struct hints *hints = store->hints;
	struct hints_session *session = &store->session;
	uint32_t running = atomic_load(&hints->sessions);

	if (!hints_store_has_hints(store) || !hints_session_may_run(store))
		return false;
	atomic_store(&store->awaits_turn, true);
	do {
		if (running >= atomic_load(&hints->settings.delivery_max))
			return false;
	} while (!atomic_compare_exchange_weak(&hints->sessions, &running, running + 1));
	atomic_store(&store->awaits_turn, false);
	session->is_open = true;
	session->sent = 0;
	session->position_saved_ns = env_monotonic_ns(hints->env);
	atomic_store(&session->has_failed, false);
	return true;
}

/* A transfer waits for all stores. */
static void
hints_transfer_ended(struct hints_store *store, bool is_complete)
{
	struct hints *hints = store->hints;
	struct hints_wait *wait = NULL;
	bool has_failed;
	struct error err;

	if (!atomic_exchange(&store->is_transferring, false))
		return;
	lock_take(&hints->lock);
	hints->transfer_has_failed = hints->transfer_has_failed || !is_complete;
	has_failed = hints->transfer_has_failed;
	if (--hints->transfer_left == 0) {
		wait = hints->transfer;
		hints->transfer = NULL;
	}
	lock_drop(&hints->lock);
	if (wait == NULL)
		return;
	atomic_store(&hints->transfer_to, NULL);
	if (has_failed)
		error_set(&err, ERROR_SERVER, "not all hints could be transferred");
	wait->on_done(wait, has_failed ? &err : NULL);
}

static void
hints_session_close_file(struct hints_session *session)
{
	file_close(session->reader);
	session->reader = NULL;
	session->current = NULL;
}

/* Only those that had no room: who has just failed is not tried again before its time. */
static void
hints_kick_waiting(struct hints_store *store, void *context)
{
	(void)context;
	if (atomic_exchange(&store->awaits_turn, false))
		hints_store_kick(store, HINTS_WORK_DELIVER);
}

void
hints_session_end(struct hints_store *store, bool is_complete)
{
	struct hints_session *session = &store->session;
	struct hints *hints = store->hints;
	char host[UUID_TEXT_SIZE];

	if (session->is_open) {
		if (session->current != NULL)
			hints_store_save_position(store, session->current);
		hints_session_close_file(session);
		buffer_fini(&session->page);
		buffer_init(&session->page);
		session->is_open = false;
		atomic_fetch_sub(&hints->sessions, 1);
		hints_count(&hints->completed_sessions, 1);
		uuid_format(&store->host_id, host);
		if (session->sent > 0)
			log_info("Finished hinted handoff to %s%s: %" PRIu64 " hints", host,
			    is_complete ? "" : ", partially", session->sent);
		hints_each_store(hints, hints_kick_waiting, NULL);
	}
	hints_transfer_ended(store, is_complete);
}

void
hints_session_fini(struct hints_session *session)
{
	file_close(session->reader);
	buffer_fini(&session->page);
	free(session->sends);
}

/* ---- Files --------------------------------------------------------------------------------- */

/* The file cannot be read any further. */
static void
hints_session_spoiled(struct hints_store *store, struct hints_file *file, const char *why)
{
	char name[HINTS_NAME_SIZE];

	hints_name_format(&file->name, ".hints", name);
	hints_session_close_file(&store->session);
	if (!file->is_finished) {
		/* It was being written when the node died: whole flushes are before this. */
		log_info("%s ends torn at offset %" PRIu64 " of %" PRIu64, name, file->position,
		    file->size);
		hints_store_remove_file(store, file);
		return;
	}
	log_error(
	    "%s is damaged at offset %" PRIu64 " of %" PRIu64
	    " (%s): the hints behind it are lost to the node, which a repair helps; the file stays",
	    name, file->position, file->size, why);
	hints_count(&store->hints->corrupt, 1);
	hints_store_save_position(store, file);
	lock_take(&store->lock);
	file->is_corrupt = true;
	lock_drop(&store->lock);
}

/* False: there is nothing, or it cannot be read now. */
static bool
hints_session_open_file(struct hints_store *store)
{
	struct hints_session *session = &store->session;
	struct hints_file *file;
	struct error err;

	for (;;) {
		file = hints_store_first(store);
		if (file == NULL) {
			if (hints_store_flush(store, &err) != 0)
				log_error("hints could not be written, and will be tried again: %s",
				    err.text);
			hints_store_finish_file(store);
			file = hints_store_first(store);
		}
		if (file == NULL)
			return false;
		if (hints_file_open(store, file, &session->reader, &err) == 0)
			break;
		if (err.code != ERROR_CORRUPT) {
			log_error("hints cannot be read: %s", err.text);
			return false;
		}
		hints_session_spoiled(store, file, err.text);
	}
	session->current = file;
	return true;
}

/* ---- Pages --------------------------------------------------------------------------------- */

static void
hints_session_answered(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct hints_store *store = ((struct hints_send *)callback)->store;
	struct hints *hints = store->hints;

	(void)worker;
	if (answer != NULL) {
		hints_count(&hints->succeeded, 1);
	} else {
		hints_count(reason == FAILURE_TIMEOUT ? &hints->timed_out : &hints->failed, 1);
		atomic_store(&store->session.has_failed, true);
	}
	if (atomic_fetch_sub(&store->session.pending, 1) == 1)
		hints_store_kick(store, HINTS_WORK_DELIVER);
}

static struct message *
hints_session_message(
    struct hints_store *store, const struct hint *hint, const struct hints_tables *tables)
{
	uint8_t head[HINTS_REQUEST_HEAD + HINTS_BODY_MIN];
	struct message_payload *payload = message_payload_alloc(sizeof(head) + hint->mutation.size);

	if (payload == NULL)
		return NULL;
	memcpy(head, store->host_id.bytes, sizeof(store->host_id.bytes));
	head[16] = tables->unknown > 0 ? HINTS_REQUEST_SKIPS_UNKNOWN : 0;
	store_u64(head + HINTS_REQUEST_HEAD, (uint64_t)hint->created_ms);
	store_u32(head + HINTS_REQUEST_HEAD + 8, hint->gc_grace_seconds);
	memcpy(payload->data, head, sizeof(head));
	memcpy(payload->data + sizeof(head), hint->mutation.data, hint->mutation.size);
	return message_new(VERB_HINT_REQ, payload);
}

static void
hints_session_send(struct hints_store *store, const struct hint *hint, struct hints_send *send)
{
	struct hints *hints = store->hints;
	struct hints_session *session = &store->session;
	struct hints_tables tables;
	struct message *message;

	if (!hints_look_at(hints, hint->mutation, &tables) ||
	    !hint_is_live(hint, &tables, hints_now_ms(hints))) {
		hints_count(&hints->expired, 1);
		return;
	}
	message = hints_session_message(store, hint, &tables);
	if (message == NULL) {
		atomic_store(&session->has_failed, true);
		return;
	}
	send->store = store;
	send->callback.on_answer = hints_session_answered;
	session->sent++;
	atomic_fetch_add(&session->pending, 1);
	messaging_request(hints->options.messaging, session->to, message,
	    hints->options.timeout_ns(hints->options.context), &send->callback, NULL);
}

/* Room for an answer to each hint of the page; none is waited for now. */
static void
hints_session_count(struct hints_session *session)
{
	struct reader records = reader_of(buffer_slice(&session->page));
	enum hints_next next;
	struct hint hint;
	uint32_t count = 0;
	size_t need;

	while (
	    (next = hints_next(&records, &hint, &need)) == HINTS_RECORD || next == HINTS_BAD_BODY)
		count++;
	if (count <= session->send_capacity)
		return;
	free(session->sends);
	session->sends = xcalloc(count, sizeof(*session->sends));
	session->send_capacity = count;
}

static void
hints_session_throttle(struct hints_store *store, size_t bytes)
{
	struct hints *hints = store->hints;
	uint64_t rate = atomic_load(&hints->settings.throttle_bytes);
	const struct topology *topology = topology_acquire(hints->options.topology);
	uint32_t members = topology_member_count(topology);

	topology_release(hints->options.topology, topology);
	store->session.next_ns = 0;
	if (rate == 0)
		return;
	/* Every other node may be delivering to the same one. */
	rate = rate / (members > 2 ? members - 1 : 1);
	store->session.next_ns =
	    env_monotonic_ns(hints->env) + bytes * UINT64_C(1000000000) / (rate == 0 ? 1 : rate);
}

/* Send the next page. False: the file is through, or no use. */
static bool
hints_session_page(struct hints_store *store)
{
	struct hints_session *session = &store->session;
	struct hints_file *file = session->current;
	struct reader records;
	enum hints_next next;
	struct error err;
	struct hint hint;
	uint32_t index = 0;
	size_t need = 0, taken;

	if (file->position >= file->size) {
		hints_session_close_file(session);
		hints_store_remove_file(store, file);
		return false;
	}
	if (hints_read_page(session->reader, file->size, file->position, &session->page, &err) !=
	    0) {
		hints_session_spoiled(store, file, err.text);
		return false;
	}
	hints_session_count(session);
	records = reader_of(buffer_slice(&session->page));
	while (
	    (next = hints_next(&records, &hint, &need)) == HINTS_RECORD || next == HINTS_BAD_BODY) {
		if (next == HINTS_RECORD) {
			hints_session_send(store, &hint, &session->sends[index++]);
			continue;
		}
		hints_count(&store->hints->corrupt, 1);
		log_error("a damaged hint before offset %" PRIu64 " of the file of %" PRId64
			  " is passed over",
		    file->position + session->page.size - reader_left(&records),
		    file->name.timestamp_ms);
	}
	taken = session->page.size - reader_left(&records);
	if (taken == 0) {
		hints_session_spoiled(
		    store, file, next == HINTS_SHORT ? "torn" : "a size that is damaged");
		return false;
	}
	session->page_end = file->position + taken;
	hints_session_throttle(store, taken);
	return true;
}

/* The page was answered. False: not by all. */
static bool
hints_session_finish_page(struct hints_store *store)
{
	struct hints_session *session = &store->session;
	uint64_t now = env_monotonic_ns(store->hints->env);

	if (atomic_exchange(&session->has_failed, false))
		return false;
	if (session->current == NULL || session->page_end == 0)
		return true;
	session->current->position = session->page_end;
	session->page_end = 0;
	if (now - session->position_saved_ns < HINTS_POSITION_MS * HINTS_NS_PER_MS)
		return true;
	session->position_saved_ns = now;
	hints_store_save_position(store, session->current);
	return true;
}

/* True: the throttle has the timer start us. */
static bool
hints_session_waits(struct hints_store *store)
{
	struct hints_session *session = &store->session;
	uint64_t now = env_monotonic_ns(store->hints->env);

	if (session->next_ns <= now)
		return false;
	atomic_store(&session->waits, true);
	cluster_timer_start(store->hints->options.cluster, &session->timer, session->next_ns - now);
	return true;
}

void
hints_session_run(struct hints_store *store)
{
	struct hints_session *session = &store->session;

	if (atomic_load(&session->pending) > 0 || atomic_load(&session->waits))
		return;
	if (!session->is_open && !hints_session_begin(store)) {
		/* Whoever waits for its turn is started by the end of another session. */
		if (session->to == NULL || !hints_store_has_hints(store))
			hints_transfer_ended(store, !hints_store_has_hints(store));
		return;
	}
	for (;;) {
		if (!hints_session_finish_page(store) || !hints_session_may_run(store)) {
			session->page_end = 0;
			hints_session_end(store, false);
			return;
		}
		if (hints_session_waits(store))
			return;
		if (session->current == NULL && !hints_session_open_file(store)) {
			hints_session_end(store, !hints_store_has_hints(store));
			return;
		}
		/* The one more keeps answers from starting us before all are asked. */
		atomic_store(&session->pending, 1);
		(void)hints_session_page(store);
		if (atomic_fetch_sub(&session->pending, 1) != 1)
			return;
	}
}
