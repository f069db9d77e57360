/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/internode_internal.h"
#include "server/network_internal.h"
#include "server/ranks.h"

enum {
	INTERNODE_RETRY_MS_MIN = 50,
	INTERNODE_RETRY_MS_MAX = 1000,
};

static const char *const internode_kind_names[INTERNODE_KINDS] = {
    [INTERNODE_URGENT] = "URGENT_MESSAGES",
    [INTERNODE_SMALL] = "SMALL_MESSAGES",
    [INTERNODE_LARGE] = "LARGE_MESSAGES",
};

enum { INTERNODE_ANSWER_BYTES = MESSAGE_ANSWER_MAX + FRAME_RECORD_HEADER };

static void internode_link_dialled(struct internode_dial *dial, const struct error *err);
static void internode_link_go_on(struct internode_link *link);

/* ---- Answers without payload ----------------------------------------------------------------- */

void
internode_answers_add(struct internode_answers *answers, const struct message_answer *answer)
{
	if (answers->count == answers->capacity) {
		answers->capacity = answers->capacity == 0 ? 64 : answers->capacity * 2;
		answers->list = xrealloc(answers->list, answers->capacity * sizeof(*answers->list));
	}
	answers->list[answers->count++] = *answer;
}

void
internode_answers_clear(struct internode_answers *answers)
{
	answers->count = 0;
	if (answers->capacity > INTERNODE_ANSWERS_KEEP)
		internode_answers_fini(answers);
}

void
internode_answers_fini(struct internode_answers *answers)
{
	free(answers->list);
	*answers = (struct internode_answers){0};
}

/* ---- Peers ---------------------------------------------------------------------------------- */

static void
internode_link_woken(struct loop_message *message, struct loop *loop)
{
	(void)loop;
	internode_link_run((struct internode_link *)message);
}

static struct internode_peer *
internode_peer_new(struct internode *internode, struct peer *peer)
{
	struct internode_peer *self = xzalloc(sizeof(*self));
	struct network *network = internode->node->network;

	self->internode = internode;
	self->peer = peer;
	for (uint32_t kind = 0; kind < INTERNODE_KINDS; kind++) {
		struct internode_link *link = &self->links[kind];

		link->wake.run = internode_link_woken;
		link->peer = self;
		link->kind = (enum internode_kind)kind;
		link->loop = &network->loops[(peer->index + kind) % network->loop_count];
		link->socket.fd = link->dial.socket.fd = -1;
		lock_init(&link->lock, "internode link", RANK_INTERNODE_LINK);
		buffer_init(&link->out);
	}
	return self;
}

struct internode_peer *
internode_peer_get(struct internode *internode, struct peer *peer)
{
	/* Acquire: who made it filled it before. */
	void *known = atomic_load_explicit(&peer->link, memory_order_acquire);
	struct internode_peer *made;

	if (known != NULL)
		return known;
	made = internode_peer_new(internode, peer);
	if (atomic_compare_exchange_strong(&peer->link, &known, made))
		return made;
	internode_peer_free(made);
	return known;
}

static void
internode_free_messages(struct message *message)
{
	while (message != NULL) {
		struct message *next = message->next;

		message_unref(message);
		message = next;
	}
}

void
internode_peer_free(struct internode_peer *peer)
{
	for (int kind = 0; kind < INTERNODE_KINDS; kind++) {
		struct internode_link *link = &peer->links[kind];

		assert(link->socket.fd < 0 && link->dial.socket.fd < 0);
		/* Sent after the end. */
		internode_free_messages(link->first);
		internode_free_messages(link->taken);
		internode_answers_fini(&link->answers);
		internode_answers_fini(&link->taken_answers);
		buffer_fini(&link->out);
		lock_fini(&link->lock);
	}
	free(peer);
}

/* ---- The queue ------------------------------------------------------------------------------ */

bool
internode_reserve_take(_Atomic uint64_t *used, uint64_t bytes, uint64_t max)
{
	uint64_t old = atomic_fetch_add_explicit(used, bytes, memory_order_relaxed);

	if (old + bytes <= max)
		return true;
	atomic_fetch_sub_explicit(used, bytes, memory_order_relaxed);
	return false;
}

/* What of so many pending bytes lies over the link's own capacity, and so in the reserves. */
static uint64_t
internode_link_excess(const struct internode_link *link, uint64_t pending)
{
	uint64_t capacity = link->peer->internode->send_capacity;

	return pending > capacity ? pending - capacity : 0;
}

static bool
internode_link_take_locked(struct internode_link *link, uint64_t bytes)
{
	struct internode *internode = link->peer->internode;
	uint64_t excess = internode_link_excess(link, link->pending_bytes + bytes) -
	    internode_link_excess(link, link->pending_bytes);

	if (excess > 0) {
		if (!internode_reserve_take(
			&internode->send_reserve, excess, internode->send_global_max))
			return false;
		if (!internode_reserve_take(
			&link->peer->send_reserve, excess, internode->send_endpoint_max)) {
			atomic_fetch_sub_explicit(
			    &internode->send_reserve, excess, memory_order_relaxed);
			return false;
		}
	}
	link->pending_count++;
	link->pending_bytes += bytes;
	return true;
}

/* Messages have left the queue, one way or the other. */
static void
internode_link_give(struct internode_link *link, uint64_t count, uint64_t bytes)
{
	struct internode *internode = link->peer->internode;
	uint64_t excess;

	if (count == 0)
		return;
	lock_take(&link->lock);
	assert(link->pending_count >= count && link->pending_bytes >= bytes);
	excess = internode_link_excess(link, link->pending_bytes) -
	    internode_link_excess(link, link->pending_bytes - bytes);
	link->pending_count -= count;
	link->pending_bytes -= bytes;
	lock_drop(&link->lock);
	if (excess == 0)
		return;
	atomic_fetch_sub_explicit(&internode->send_reserve, excess, memory_order_relaxed);
	atomic_fetch_sub_explicit(&link->peer->send_reserve, excess, memory_order_relaxed);
}

/* Tell who waits, and let it go. */
static void
internode_undelivered(struct internode_link *link, struct message *message, struct worker *worker)
{
	messaging_undelivered(link->peer->internode->messaging, link->peer->peer, message, worker);
	message_unref(message);
}

static bool
internode_link_push(struct internode_link *link, struct message *message)
{
	size_t size = message_size(message);
	bool is_taken;

	message->next = NULL;
	lock_take(&link->lock);
	is_taken = internode_link_take_locked(link, size);
	if (!is_taken) {
		link->overload_count++;
		link->overload_bytes += size;
	} else {
		if (link->last != NULL)
			link->last->next = message;
		else
			link->first = message;
		link->last = message;
	}
	lock_drop(&link->lock);
	return is_taken;
}

/* It is counted; nobody waits for what becomes of an answer. */
static void
internode_answer_undelivered(struct internode_link *link, const struct message_answer *answer)
{
	struct message message = {.verb = answer->verb};

	messaging_undelivered(link->peer->internode->messaging, link->peer->peer, &message, NULL);
}

/* The link's loop has to look at its queue: told at the end of the worker's run, or at once. */
static void
internode_link_touch(struct internode_link *link, struct worker *worker)
{
	/* seq_cst on both sides: see is_scheduled. */
	if (atomic_exchange(&link->is_scheduled, true))
		return;
	if (!worker_is_current(worker)) {
		loop_post(link->loop, &link->wake);
		return;
	}
	link->next_touched = worker->links;
	worker->links = link;
	if (!worker->is_loop)
		worker->flush = loop_flush_worker;
}

void
internode_link_wake(struct internode_link *link)
{
	internode_link_touch(link, NULL);
}

void
internode_flush_worker(struct worker *worker, struct loop *here)
{
	struct internode_link *link = worker->links;

	worker->links = NULL;
	while (link != NULL) {
		struct internode_link *next = link->next_touched;

		if (link->loop == here)
			internode_link_run(link);
		else
			loop_post(link->loop, &link->wake);
		link = next;
	}
}

static enum internode_kind
internode_kind_of(const struct message *message, size_t size)
{
	if (size > INTERNODE_LARGE_BYTES)
		return INTERNODE_LARGE;
	return (message->flags & MESSAGE_URGENT) != 0 ? INTERNODE_URGENT : INTERNODE_SMALL;
}

void
internode_send(
    struct cluster_env *env, struct peer *to, struct message *message, struct worker *worker)
{
	struct internode *internode = (struct internode *)env;
	struct internode_peer *peer = internode_peer_get(internode, to);
	size_t size = message_size(message);
	struct internode_link *link = &peer->links[internode_kind_of(message, size)];

	if (!atomic_load_explicit(&internode->is_running, memory_order_acquire)) {
		if (internode->messaging != NULL)
			internode_undelivered(link, message, worker);
		else
			message_unref(message);
		return;
	}
	if (size > internode->message_max) {
		internode_add(&link->error_count, 1);
		internode_add(&link->error_bytes, size);
		internode_undelivered(link, message, worker);
		return;
	}
	if (!internode_link_push(link, message)) {
		internode_undelivered(link, message, worker);
		return;
	}
	internode_link_touch(link, worker);
}

void
internode_answer(
    struct cluster_env *env, const struct message_answer *answer, struct worker *worker)
{
	struct internode *internode = (struct internode *)env;
	struct internode_link *link =
	    &internode_peer_get(internode, answer->peer)->links[INTERNODE_SMALL];
	bool is_taken;

	if (!atomic_load_explicit(&internode->is_running, memory_order_acquire)) {
		internode_answer_undelivered(link, answer);
		return;
	}
	lock_take(&link->lock);
	is_taken = internode_link_take_locked(link, INTERNODE_ANSWER_BYTES);
	if (is_taken) {
		internode_answers_add(&link->answers, answer);
	} else {
		link->overload_count++;
		link->overload_bytes += INTERNODE_ANSWER_BYTES;
	}
	lock_drop(&link->lock);
	if (is_taken)
		internode_link_touch(link, worker);
	else
		internode_answer_undelivered(link, answer);
}

/* ---- On the loop: what was queued ----------------------------------------------------------- */

/* Usually all that were taken are done with, and the two lists change places. */
static void
internode_link_collect_answers_locked(struct internode_link *link)
{
	struct internode_answers *taken = &link->taken_answers, *waiting = &link->answers;

	if (waiting->count == 0)
		return;
	if (link->answers_done == taken->count) {
		struct internode_answers empty = *taken;

		internode_answers_clear(&empty);
		*taken = *waiting;
		*waiting = empty;
		link->answers_done = 0;
		return;
	}
	for (size_t i = 0; i < waiting->count; i++)
		internode_answers_add(taken, &waiting->list[i]);
	internode_answers_clear(waiting);
}

static bool
internode_link_has_taken(const struct internode_link *link)
{
	return link->taken != NULL || link->answers_done < link->taken_answers.count;
}

static void
internode_link_collect(struct internode_link *link)
{
	struct message *first, *last;

	lock_take(&link->lock);
	first = link->first;
	last = link->last;
	link->first = link->last = NULL;
	internode_link_collect_answers_locked(link);
	lock_drop(&link->lock);
	if (first == NULL)
		return;
	if (link->taken_last != NULL)
		link->taken_last->next = first;
	else
		link->taken = first;
	link->taken_last = last;
}

static struct message *
internode_link_pop(struct internode_link *link)
{
	struct message *message = link->taken;

	if (message == NULL)
		return NULL;
	link->taken = message->next;
	if (link->taken == NULL)
		link->taken_last = NULL;
	message->next = NULL;
	return message;
}

/* What was taken off the queue in one go and is given back in one. */
struct internode_given {
	uint64_t count, bytes;
};

static void
internode_link_expire(
    struct internode_link *link, struct message *message, struct internode_given *given)
{
	size_t size = message_size(message);

	given->count++;
	given->bytes += size;
	internode_add(&link->expired_count, 1);
	internode_add(&link->expired_bytes, size);
	internode_undelivered(link, message, &link->loop->worker);
}

static void
internode_link_expire_answer(
    struct internode_link *link, const struct message_answer *answer, struct internode_given *given)
{
	given->count++;
	given->bytes += INTERNODE_ANSWER_BYTES;
	internode_add(&link->expired_count, 1);
	internode_add(&link->expired_bytes, INTERNODE_ANSWER_BYTES);
	internode_answer_undelivered(link, answer);
}

static bool
internode_answer_is_expired(const struct message_answer *answer, uint64_t now)
{
	return answer->expires_ns != 0 && answer->expires_ns <= now;
}

static void
internode_link_prune_answers(struct internode_link *link, struct internode_given *given)
{
	struct internode_answers *taken = &link->taken_answers;
	size_t kept = 0;

	for (size_t i = link->answers_done; i < taken->count; i++) {
		const struct message_answer *answer = &taken->list[i];

		if (answer->expires_ns == 0 ||
		    internode_answer_is_expired(answer, link->loop->now_ns))
			internode_link_expire_answer(link, answer, given);
		else
			taken->list[kept++] = *answer;
	}
	taken->count = kept;
	link->answers_done = 0;
}

/* While there is no connection: drop what nobody waits for any more, and all that would wait for ever. */
static void
internode_link_prune(struct internode_link *link)
{
	struct message *kept = NULL, *kept_last = NULL, *message;
	struct internode_given given = {0};

	while ((message = internode_link_pop(link)) != NULL) {
		if (message->expires_ns == 0 || message_is_expired(message, link->loop->now_ns)) {
			internode_link_expire(link, message, &given);
			continue;
		}
		if (kept_last != NULL)
			kept_last->next = message;
		else
			kept = message;
		kept_last = message;
	}
	link->taken = kept;
	link->taken_last = kept_last;
	internode_link_prune_answers(link, &given);
	internode_link_give(link, given.count, given.bytes);
}

static void
internode_link_drop_all(struct internode_link *link)
{
	struct internode_given given = {0};
	struct message *message;

	internode_link_collect(link);
	while ((message = internode_link_pop(link)) != NULL) {
		size_t size = message_size(message);

		given.count++;
		given.bytes += size;
		internode_add(&link->error_count, 1);
		internode_add(&link->error_bytes, size);
		internode_undelivered(link, message, &link->loop->worker);
	}
	for (size_t i = link->answers_done; i < link->taken_answers.count; i++) {
		given.count++;
		given.bytes += INTERNODE_ANSWER_BYTES;
		internode_add(&link->error_count, 1);
		internode_add(&link->error_bytes, INTERNODE_ANSWER_BYTES);
		internode_answer_undelivered(link, &link->taken_answers.list[i]);
	}
	link->answers_done = link->taken_answers.count;
	internode_link_give(link, given.count, given.bytes);
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* Returns how many. */
static uint64_t
internode_link_fill_answers(struct internode_link *link, struct internode_given *given)
{
	uint64_t now = link->loop->now_ns, sent = 0;

	while (link->answers_done < link->taken_answers.count &&
	    link->out.size - link->written < INTERNODE_OUT_HIGH) {
		const struct message_answer *answer =
		    &link->taken_answers.list[link->answers_done++];

		if (internode_answer_is_expired(answer, now)) {
			internode_link_expire_answer(link, answer, given);
			continue;
		}
		message_encode_answer(
		    answer, now, frame_record_begin(&link->writer, &link->out, MESSAGE_ANSWER_MAX));
		frame_record_end(&link->writer, &link->out);
		given->count++;
		given->bytes += INTERNODE_ANSWER_BYTES;
		sent++;
	}
	return sent;
}

/* Encode until enough waits to be written. */
static void
internode_link_fill(struct internode_link *link)
{
	const struct internode *internode = link->peer->internode;
	uint64_t now = link->loop->now_ns;
	struct internode_given given = {0};
	uint64_t sent = internode_link_fill_answers(link, &given);
	struct message *message;

	while (link->out.size - link->written < INTERNODE_OUT_HIGH &&
	    (message = internode_link_pop(link)) != NULL) {
		size_t size = message_size(message);

		if (message_is_expired(message, now)) {
			internode_link_expire(link, message, &given);
			continue;
		}
		message_encode(message, &internode->local,
		    internode->counts_waiting ? now : message->created_ns,
		    frame_record_begin(&link->writer, &link->out, size));
		frame_record_end(&link->writer, &link->out);
		given.count++;
		given.bytes += size;
		sent++;
		message_unref(message);
	}
	if (sent > 0)
		internode_add(&link->sent_count, sent);
	frame_writer_flush(&link->writer, &link->out);
	internode_link_give(link, given.count, given.bytes);
}

static void
internode_link_shrink(struct internode_link *link)
{
	link->written = 0;
	if (link->out.capacity > INTERNODE_OUT_KEEP) {
		buffer_fini(&link->out);
		buffer_init(&link->out);
	}
	buffer_clear(&link->out);
}

static void
internode_link_down(struct internode_link *link)
{
	internode_socket_close(&link->socket);
	if (link->has_writer)
		frame_writer_fini(&link->writer);
	link->has_writer = false;
	internode_link_shrink(link);
	atomic_store_explicit(&link->is_connected, false, memory_order_relaxed);
	link->state = INTERNODE_LINK_IDLE;
}

/* The connection is gone, and with it what was written to it or encoded. */
static void
internode_link_lost(struct internode_link *link, const struct error *err)
{
	log_info("Connection to %s (%s) lost: %s", link->socket.name,
	    internode_kind_names[link->kind], err->text);
	internode_add(&link->error_count, 1);
	internode_add(&link->error_bytes, link->out.size - link->written);
	internode_link_down(link);
	internode_link_go_on(link);
}

static void
internode_link_write(struct internode_link *link)
{
	struct error err;

	for (;;) {
		ssize_t written;

		internode_link_fill(link);
		if (link->state != INTERNODE_LINK_UP)
			return;
		if (buffer_check(&link->out, &err) != 0) {
			internode_link_lost(link, &err);
			return;
		}
		if (link->written == link->out.size)
			break;
		written = internode_socket_write(
		    &link->socket, link->out.data + link->written, link->out.size - link->written);
		if (written < 0 && errno == EAGAIN)
			return;
		if (written < 0) {
			internode_socket_error(&link->socket, &err, "write");
			internode_link_lost(link, &err);
			return;
		}
		link->written += (size_t)written;
		internode_add(&link->sent_bytes, (uint64_t)written);
		if (link->written == link->out.size)
			internode_link_shrink(link);
	}
	internode_link_shrink(link);
}

/* ---- Connecting ----------------------------------------------------------------------------- */

static void
internode_link_write_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_link *link = argument;

	(void)fd;
	(void)what;
	loop_note_now(link->loop);
	internode_link_write(link);
}

/* The other side says nothing on this connection but its end. */
static void
internode_link_read_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_link *link = argument;
	uint8_t nothing[64];
	struct error err;
	ssize_t got;

	(void)fd;
	(void)what;
	loop_note_now(link->loop);
	errno = 0;
	got = internode_socket_read(&link->socket, nothing, sizeof(nothing));
	if (got < 0 && errno == EAGAIN)
		return;
	if (got > 0) {
		error_set(&err, ERROR_PROTOCOL, "it sends where it should only listen");
	} else {
		if (got == 0)
			errno = 0;
		internode_socket_error(&link->socket, &err, "read");
	}
	internode_link_lost(link, &err);
}

static void
internode_link_retry_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_link *link = argument;

	(void)fd;
	(void)what;
	loop_note_now(link->loop);
	internode_timer_end(&link->timer);
	link->state = INTERNODE_LINK_IDLE;
	internode_link_go_on(link);
}

static void
internode_link_wait(struct internode_link *link)
{
	uint64_t ms = INTERNODE_RETRY_MS_MIN;

	for (uint32_t i = 1; i < link->failures && ms < INTERNODE_RETRY_MS_MAX; i++)
		ms *= 2;
	if (ms > INTERNODE_RETRY_MS_MAX)
		ms = INTERNODE_RETRY_MS_MAX;
	link->state = INTERNODE_LINK_WAITING;
	if (internode_timer_set(&link->timer, link->loop, ms, internode_link_retry_cb, link) != 0)
		link->state = INTERNODE_LINK_IDLE; /* the next message tries again */
}

static void
internode_link_dialled(struct internode_dial *dial, const struct error *err)
{
	struct internode_link *link =
	    (struct internode_link *)((char *)dial - offsetof(struct internode_link, dial));
	char name[ENDPOINT_TEXT_SIZE];

	link->state = INTERNODE_LINK_IDLE;
	endpoint_format(&dial->to->endpoint, name);
	if (err != NULL) {
		const struct internode *internode = dial->internode;

		link->failures++;
		if (err->sys_errno == ECONNREFUSED && internode->on_refused != NULL)
			internode->on_refused(internode->on_refused_context, dial->to);
		if (link->failures == 1)
			log_info("Cannot connect to %s (%s): %s", name,
			    internode_kind_names[link->kind], err->text);
		internode_link_prune(link);
		internode_link_wait(link);
		return;
	}
	link->failures = 0;
	if (internode_socket_move(&dial->socket, &link->socket, internode_link_read_cb,
		internode_link_write_cb, link) != 0) {
		internode_dial_end(dial);
		internode_link_wait(link);
		return;
	}
	internode_add(&link->successes, 1);
	log_debug("Connected to %s (%s)%s%s", name, internode_kind_names[link->kind],
	    link->socket.tls != NULL ? ", encrypted" : "",
	    dial->welcome.compression == COMPRESSION_LZ4 ? ", LZ4" : "");
	frame_writer_init(&link->writer, (enum compression)dial->welcome.compression);
	link->has_writer = true;
	link->state = INTERNODE_LINK_UP;
	atomic_store_explicit(&link->is_connected, true, memory_order_relaxed);
	dial->have = 0;
	internode_link_write(link);
}

static void
internode_link_dial(struct internode_link *link)
{
	link->state = INTERNODE_LINK_DIALLING;
	internode_add(&link->attempts, 1);
	link->dial = (struct internode_dial){.internode = link->peer->internode,
	    .to = link->peer->peer,
	    .loop = link->loop,
	    .kind = (enum frame_kind)link->kind,
	    .on_done = internode_link_dialled};
	internode_dial_start(&link->dial);
}

/* Look at the queue, connect, write. */
static void
internode_link_go_on(struct internode_link *link)
{
	loop_note_now(link->loop);
	if (!atomic_load_explicit(&link->peer->internode->is_running, memory_order_acquire) ||
	    atomic_exchange(&link->is_drop_wanted, false)) {
		internode_link_end(link);
		return;
	}
	internode_link_collect(link);
	if (atomic_exchange(&link->is_there, false) && link->state == INTERNODE_LINK_WAITING) {
		internode_timer_end(&link->timer);
		link->state = INTERNODE_LINK_IDLE;
	}
	switch (link->state) {
	case INTERNODE_LINK_UP:
		internode_link_write(link);
		break;
	case INTERNODE_LINK_IDLE:
		if (internode_link_has_taken(link))
			internode_link_dial(link);
		break;
	case INTERNODE_LINK_DIALLING:
	case INTERNODE_LINK_WAITING:
		break;
	}
}

void
internode_link_run(struct internode_link *link)
{
	/* Before the queue is looked at, what comes after that is another wake; and here alone: while the wake is
	 * on its way nobody may post it again. */
	atomic_store(&link->is_scheduled, false);
	internode_link_go_on(link);
}

void
internode_link_end(struct internode_link *link)
{
	internode_timer_end(&link->timer);
	if (link->state == INTERNODE_LINK_DIALLING)
		internode_dial_end(&link->dial);
	internode_link_down(link);
	link->failures = 0;
	internode_link_drop_all(link);
}
