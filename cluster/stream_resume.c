/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/stream_session.h"

/*
 * A session whose connection broke goes on over a new one. Both sides have kept the files that were chosen, by their numbers,
 * and what has arrived; each says what that is (RESUME), and the rest is sent. Who began the session connects. At
 * the other side the new connection has a session object of its own, which takes over all that the old one holds: a
 * channel never changes its user.
 */

#define STREAM_RESUME_POLL_NS UINT64_C(20000000)

/* ---- breaking --------------------------------------------------------------------------------------- */

void
stream_resume_break(struct stream_session *session)
{
	stream_send_break(session);
	stream_receive_break(session);
	session->is_resuming = false;
}

void
stream_resume_check_parked(struct stream_session *session)
{
	uint64_t now = stream_session_now(session);
	struct error err;

	if (now < session->parked_until_ns) {
		stream_session_delay(session, session->parked_until_ns - now);
		return;
	}
	error_set(&err, ERROR_IO, "the connection broke, and the other side did not come back");
	stream_session_fail(session, &err);
}

/* ---- RESUME ------------------------------------------------------------------------------------------ */

static void
stream_resume_say(struct stream_session *session, bool is_known)
{
	struct stream_message message = {.verb = VERB_STREAM_RESUME};

	if (is_known && session->has_committed) {
		message.resume.flags = STREAM_RESUME_KNOWN | STREAM_RESUME_COMMITTED;
	} else if (is_known) {
		message.resume.flags = STREAM_RESUME_KNOWN;
		message.resume.count = session->received_count;
		message.resume.numbers = session->received;
	}
	stream_session_say(session, &message);
}

void
stream_resume_ask(struct stream_session *session)
{
	session->is_resuming = true;
	stream_session_say_init(session);
	stream_resume_say(session, true);
}

/* What the other side has: the rest is sent again. */
static int
stream_resume_go_on(struct stream_session *session, uint8_t flags, const uint64_t *numbers,
    uint32_t count, struct error *err)
{
	char address[ENDPOINT_TEXT_SIZE], plan[UUID_TEXT_SIZE];

	if (stream_send_resume(
		session, numbers, count, (flags & STREAM_RESUME_COMMITTED) != 0, err) != 0)
		return -1;
	uuid_format(&session->plan_id, plan);
	log_info("[Stream #%s] Session with %s goes on: %u files had come, %u are to be sent", plan,
	    endpoint_format(&session->peer->endpoint, address), (unsigned)session->received_count,
	    (unsigned)session->unacknowledged);
	session->is_resuming = false;
	atomic_store(&session->state, STREAM_STREAMING);
	return 0;
}

/* The other side knows nothing of it any more. */
static int
stream_resume_anew(struct stream_session *session, struct error *err)
{
	stream_session_undo(session);
	session->has_sent_done = session->has_heard_complete = session->has_committed = false;
	session->can_resume = session->is_resuming = false;
	lock_take(&session->lock);
	stream_count_fini(&session->receiving);
	stream_count_fini(&session->sending);
	lock_drop(&session->lock);
	return stream_session_introduce(session, err);
}

int
stream_resume_hear(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	uint8_t flags = message->resume.flags;

	if (!session->is_resuming || session->theirs_flags != 0 ||
	    (session->is_follower && (flags & STREAM_RESUME_KNOWN) == 0))
		return error_set(err, ERROR_PROTOCOL, "streaming: RESUME out of order");
	if (!session->is_follower)
		return (flags & STREAM_RESUME_KNOWN) == 0
		    ? stream_resume_anew(session, err)
		    : stream_resume_go_on(
			  session, flags, message->resume.numbers, message->resume.count, err);
	/* The session that is meant may not have noticed yet that its connection is gone. */
	session->theirs_flags = flags;
	session->theirs_count = message->resume.count;
	session->theirs = xcalloc((size_t)message->resume.count + 1, sizeof(*session->theirs));
	if (message->resume.count > 0)
		memcpy(session->theirs, message->resume.numbers,
		    message->resume.count * sizeof(*session->theirs));
	return 0;
}

/* ---- taking over ---------------------------------------------------------------------------------------- */

/* NULL with *is_there: not now. A session that was found is ours: its task does nothing any more. */
static struct stream_session *
stream_resume_find(struct stream_session *session, bool *is_there)
{
	struct streams *streams = session->streams;
	struct stream_session *found = NULL;

	*is_there = false;
	lock_take(&streams->lock);
	for (struct stream_session *at = streams->sessions; at != NULL; at = at->next) {
		int state = atomic_load(&at->state);

		if (at == session || !at->is_follower || at->peer != session->peer ||
		    !uuid_equal(&at->plan_id, &session->plan_id) ||
		    (state != STREAM_STREAMING && state != STREAM_WAIT_COMPLETE))
			continue;
		*is_there = true;
		lock_take(&at->lock);
		if (at->is_parked && !at->is_scheduled && !at->is_taken) {
			at->is_taken = true;
			found = at;
		} else if (at->channel != NULL) {
			stream_close(at->channel);
		}
		lock_drop(&at->lock);
		break;
	}
	lock_drop(&streams->lock);
	return found;
}

/* Lists that the two sessions hold change places: what the old one gets is empty. */
static void
stream_resume_swap(struct stream_session *session, struct stream_session *old)
{
	struct stream_count receiving, sending;

	session->transfers = old->transfers;
	session->transfer_count = old->transfer_count;
	session->outgoing = old->outgoing;
	session->outgoing_count = old->outgoing_count;
	session->files = old->files;
	session->file_count = old->file_count;
	session->unacknowledged = old->unacknowledged;
	session->incoming = old->incoming;
	session->incoming_count = old->incoming_count;
	session->received = old->received;
	session->received_count = old->received_count;
	session->received_capacity = old->received_capacity;
	session->has_committed = old->has_committed;
	old->transfers = NULL;
	old->outgoing = NULL;
	old->files = NULL;
	old->incoming = NULL;
	old->received = NULL;
	old->transfer_count = old->outgoing_count = old->file_count = old->unacknowledged = 0;
	old->incoming_count = old->received_count = old->received_capacity = 0;
	/* Others look at these. */
	lock_take(&old->lock);
	receiving = old->receiving;
	sending = old->sending;
	memset(&old->receiving, 0, sizeof(old->receiving));
	memset(&old->sending, 0, sizeof(old->sending));
	lock_drop(&old->lock);
	lock_take(&session->lock);
	session->receiving = receiving;
	session->sending = sending;
	lock_drop(&session->lock);
}

bool
stream_resume_take_over(struct stream_session *session)
{
	struct stream_session *old;
	struct error err;
	bool is_there;

	old = stream_resume_find(session, &is_there);
	if (old == NULL && is_there) {
		stream_session_delay(session, STREAM_RESUME_POLL_NS);
		return false;
	}
	if (old == NULL) {
		/* Where nothing is known the other side begins anew, with INIT. */
		session->theirs_flags = 0;
		session->is_resuming = false;
		stream_resume_say(session, false);
		return false;
	}
	stream_resume_swap(session, old);
	stream_history_move(session, old);
	atomic_store(&old->state, STREAM_TAKEN);
	lock_take(&old->lock);
	old->is_parked = false;
	old->is_over = true;
	stream_session_kick(old);
	lock_drop(&old->lock);
	stream_resume_say(session, true);
	if (stream_resume_go_on(
		session, session->theirs_flags, session->theirs, session->theirs_count, &err) != 0)
		stream_session_give_up(session, &err);
	session->theirs_flags = 0;
	free(session->theirs);
	session->theirs = NULL;
	return true;
}
