/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This node's part in incremental repairs (repair/consistent/LocalSessions): two phases, each step on the disk before it is
 * answered.
 *
 *   PREPARE_CONSISTENT   the unrepaired data of the ranges is set apart          PREPARING -> PREPARED
 *   FINALIZE_PROPOSE     from here on this node does not give up by itself       -> FINALIZE_PROMISED
 *   FINALIZE_COMMIT      it counts as repaired                                   -> FINALIZED
 *   FAILED_SESSION       it is unrepaired again                                  -> FAILED
 *
 * A node that starts again has failed what it had not promised. What it had, all participants decide: one that is
 * FINALIZED or FAILED tells how it ended; if none is, nobody was told to commit, and it has failed.
 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/repair_participant.h"
#include "storage/stream_writer.h"

#define REPAIR_CHECK_NS (60 * UINT64_C(1000000000))
#define REPAIR_KEPT_MS (24 * 3600 * INT64_C(1000))

static const char *const repair_state_names[] = {
    "PREPARING", "PREPARED", "REPAIRING", "FINALIZE_PROMISED", "FINALIZED", "FAILED"};

const char *
repair_state_name(enum repair_state state)
{
	return repair_state_names[state];
}

bool
repair_local_is_kept(const struct repair_local *local)
{
	return local->state == REPAIR_FINALIZED && local->repaired_at > 0;
}

bool
repair_state_is_over(enum repair_state state)
{
	return state == REPAIR_FINALIZED || state == REPAIR_HAS_FAILED;
}

/* ---- the list: under the lock ------------------------------------------------------------------------- */

static struct repair_local *
repair_local_find_locked(struct repairs *repairs, const struct uuid *id)
{
	lock_assert_held(&repairs->lock);
	for (struct repair_local *local = repairs->locals; local != NULL; local = local->next)
		if (uuid_equal(&local->id, id))
			return local;
	return NULL;
}

void
repair_local_free(struct repair_local *local)
{
	if (local == NULL)
		return;
	free((void *)local->tables);
	free((void *)local->ranges);
	free((void *)local->participants);
	free(local);
}

static void *
repair_dup(const void *items, uint32_t count, size_t size)
{
	void *copy = xcalloc((size_t)count + 1, size);

	if (count > 0)
		memcpy(copy, items, count * size);
	return copy;
}

static struct repair_local *
repair_local_copy(const struct repair_local *from)
{
	struct repair_local *copy = xzalloc(sizeof(*copy));

	*copy = *from;
	copy->next = NULL;
	copy->tables = repair_dup(from->tables, from->table_count, sizeof(*from->tables));
	copy->ranges = repair_dup(from->ranges, from->range_count, sizeof(*from->ranges));
	copy->participants =
	    repair_dup(from->participants, from->participant_count, sizeof(*from->participants));
	return copy;
}

static int64_t
repair_now_ms(struct repairs *repairs)
{
	return (int64_t)(env_wall_us(repairs->env->env) / 1000);
}

/*
 * Those that ended long ago are forgotten; but the last one that repaired a range tells when it was repaired. Returns them,
 * the caller's.
 */
static struct repair_local *
repair_local_forget_locked(struct repairs *repairs)
{
	int64_t now = repair_now_ms(repairs);
	struct repair_local *forgotten = NULL;

	for (struct repair_local **at = &repairs->locals; *at != NULL;) {
		struct repair_local *local = *at;

		if (!repair_state_is_over(local->state) ||
		    now - local->last_update_ms < REPAIR_KEPT_MS ||
		    (repair_local_is_kept(local) && !repair_is_superseded_locked(repairs, local))) {
			at = &local->next;
			continue;
		}
		*at = local->next;
		local->next = forgotten;
		forgotten = local;
	}
	return forgotten;
}

/* Their rows go too. */
static void
repair_local_drop(struct repairs *repairs, struct repair_local *forgotten)
{
	while (forgotten != NULL) {
		struct repair_local *next = forgotten->next;

		if (repair_local_is_kept(forgotten))
			repairs->ops.forget(repairs->ops.context, &forgotten->id);
		repair_local_free(forgotten);
		forgotten = next;
	}
}

struct repair_local *
repair_local_get(struct repairs *repairs, const struct uuid *id)
{
	struct repair_local *local, *copy = NULL;

	lock_take(&repairs->lock);
	local = repair_local_find_locked(repairs, id);
	if (local != NULL)
		copy = repair_local_copy(local);
	lock_drop(&repairs->lock);
	return copy;
}

/*
 * Go over to a state, unless it ended meanwhile: in memory, then on the disk. Returns false when it had, with its state in
 * *state.
 */
static bool
repair_local_go(struct repairs *repairs, const struct uuid *id, enum repair_state *state, int *rc,
    struct error *err)
{
	struct repair_local *local, *copy = NULL;

	*rc = 0;
	lock_take(&repairs->lock);
	local = repair_local_find_locked(repairs, id);
	if (local == NULL || (repair_state_is_over(local->state) && local->state != *state)) {
		*state = local == NULL ? REPAIR_HAS_FAILED : local->state;
	} else {
		local->state = *state;
		local->last_update_ms = repair_now_ms(repairs);
		copy = repair_local_copy(local);
	}
	lock_drop(&repairs->lock);
	if (copy == NULL)
		return false;
	*rc = repairs->ops.save(repairs->ops.context, copy, err);
	/* The answer is a promise: it must be there after a loss of power, whatever commitlog_sync says. */
	if (*rc == 0)
		*rc = store_sync(repairs->store, err);
	repair_local_free(copy);
	return true;
}

/* ---- steps: on the validation stage --------------------------------------------------------------------- */

/* Sessions that SSTables of a table are pending in. */
struct repair_pending {
	struct uuid *ids; /* owned */
	uint32_t count;
};

static void
repair_add_pending(void *context, const struct uuid *session, uint64_t bytes)
{
	struct repair_pending *pending = context;

	(void)bytes;
	for (uint32_t i = 0; i < pending->count; i++)
		if (uuid_equal(&pending->ids[i], session))
			return;
	pending->ids = xrealloc(pending->ids, (pending->count + 1) * sizeof(*pending->ids));
	pending->ids[pending->count++] = *session;
}

int
repair_release(struct repairs *repairs, struct table_store *table, const struct uuid *session,
    const struct repair_local *local, struct error *err)
{
	return store_finish_repair(repairs->store, table, session,
	    local != NULL && local->state == REPAIR_FINALIZED ? local->repaired_at : 0, err);
}

/* Data of sessions that ended, or that nobody knows of, is what it became with their end. */
static void
repair_reconcile_table(struct repairs *repairs, struct table_store *table)
{
	struct repair_pending pending = {NULL, 0};
	struct error err;

	store_pending_repairs(table, repair_add_pending, &pending);
	for (uint32_t i = 0; i < pending.count; i++) {
		struct repair_local *local = repair_local_get(repairs, &pending.ids[i]);

		if ((local == NULL || repair_state_is_over(local->state)) &&
		    repair_release(repairs, table, &pending.ids[i], local, &err) != 0)
			log_error("%s.%s: %s", table_store_keyspace(table), table_store_name(table),
			    err.text);
		repair_local_free(local);
	}
	free(pending.ids);
}

/* For each table of the session that there is. */
static int
repair_each_table(struct repairs *repairs, const struct repair_local *local, bool is_anticompaction,
    struct error *err)
{
	struct schema *schema = repairs->ops.schema(repairs->ops.context);
	struct stream_range *ranges = xcalloc((size_t)local->range_count + 1, sizeof(*ranges));
	int rc = 0;

	for (uint32_t i = 0; i < local->range_count; i++)
		ranges[i] = (struct stream_range){local->ranges[i].left, local->ranges[i].right};
	for (uint32_t i = 0; i < local->table_count && rc == 0; i++) {
		const struct table_metadata *metadata =
		    schema_table_by_id(schema, &local->tables[i]);
		struct table_store *table =
		    metadata == NULL ? NULL : store_table(repairs->store, metadata);

		if (table == NULL)
			continue; /* dropped meanwhile */
		/* Streams of a session that failed may have ended after it: they are in nobody's way. */
		if (is_anticompaction)
			repair_reconcile_table(repairs, table);
		rc = is_anticompaction
		    ? store_anticompact(
			  repairs->store, table, &local->id, ranges, local->range_count, err)
		    : store_finish_repair(repairs->store, table, &local->id,
			  local->state == REPAIR_FINALIZED ? local->repaired_at : 0, err);
	}
	free(ranges);
	schema_unref(schema);
	return rc;
}

static struct repair_local
repair_local_of_parent(const struct repair_parent *parent)
{
	int64_t now = repair_now_ms(parent->repairs);

	return (struct repair_local){.id = parent->id,
	    .state = REPAIR_PREPARING,
	    .coordinator = parent->coordinator->endpoint,
	    .started_ms = now,
	    .last_update_ms = now,
	    .repaired_at = parent->repaired_at,
	    .tables = parent->tables,
	    .table_count = parent->table_count,
	    .ranges = parent->ranges,
	    .range_count = parent->range_count,
	    .participants = parent->participants,
	    .participant_count = parent->participant_count};
}

static int
repair_is_over_error(struct error *err)
{
	return error_set(err, ERROR_INVALID, "The incremental repair session has failed");
}

int
repair_local_prepare(struct repair_work *work, struct error *err)
{
	struct repairs *repairs = work->parent->repairs;
	struct repair_local fresh = repair_local_of_parent(work->parent), *local, *forgotten;
	enum repair_state state = REPAIR_PREPARING;
	int rc;

	lock_take(&repairs->lock);
	forgotten = repair_local_forget_locked(repairs);
	if (repair_local_find_locked(repairs, &fresh.id) == NULL) {
		local = repair_local_copy(&fresh);
		local->next = repairs->locals;
		repairs->locals = local;
	}
	lock_drop(&repairs->lock);
	repair_local_drop(repairs, forgotten);
	if (!repair_local_go(repairs, &fresh.id, &state, &rc, err))
		return repair_is_over_error(err);
	if (rc == 0)
		rc = repair_each_table(repairs, &fresh, true, err);
	state = REPAIR_PREPARED;
	if (rc == 0 && repair_local_go(repairs, &fresh.id, &state, &rc, err))
		return rc;
	/* It failed here, or was failed meanwhile: what was set apart since goes back. */
	if (rc == 0)
		rc = repair_is_over_error(err);
	(void)repair_local_fail(repairs, &fresh.id, &(struct error){0});
	return rc;
}

int
repair_local_promise(struct repair_work *work, struct error *err)
{
	enum repair_state state = REPAIR_FINALIZE_PROMISED;
	int rc;

	if (repair_local_go(work->parent->repairs, &work->parent->id, &state, &rc, err))
		return rc;
	return state == REPAIR_FINALIZED ? 0 : repair_is_over_error(err);
}

/* It ended so, here; again where it had. */
static int
repair_local_end(
    struct repairs *repairs, const struct uuid *id, enum repair_state wanted, struct error *err)
{
	enum repair_state state = wanted;
	struct repair_local *local;
	int rc;

	if (!repair_local_go(repairs, id, &state, &rc, err) && state != wanted)
		return wanted == REPAIR_HAS_FAILED ? 0 : repair_is_over_error(err);
	local = repair_local_get(repairs, id);
	if (local == NULL)
		return 0;
	if (rc == 0)
		rc = repair_each_table(repairs, local, false, err);
	repair_local_free(local);
	return rc;
}

int
repair_local_commit(struct repairs *repairs, const struct uuid *id, struct error *err)
{
	return repair_local_end(repairs, id, REPAIR_FINALIZED, err);
}

int
repair_local_fail(struct repairs *repairs, const struct uuid *id, struct error *err)
{
	return repair_local_end(repairs, id, REPAIR_HAS_FAILED, err);
}

/* ---- after a restart --------------------------------------------------------------------------------------- */

void
repairs_add_saved(struct repairs *repairs, const struct repair_local *saved)
{
	struct repair_local *local = repair_local_copy(saved);

	lock_take(&repairs->lock);
	local->next = repairs->locals;
	repairs->locals = local;
	lock_drop(&repairs->lock);
}

static void
repair_reconcile(struct task *task, struct worker *worker)
{
	struct repairs *repairs =
	    (struct repairs *)((char *)task - offsetof(struct repairs, start_task));
	struct schema *schema = repairs->ops.schema(repairs->ops.context);

	(void)worker;
	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[i];

		for (uint32_t j = 0; j < keyspace->table_count && !keyspace->is_virtual; j++) {
			struct table_store *table =
			    store_table(repairs->store, keyspace->tables[j]);

			if (table != NULL)
				repair_reconcile_table(repairs, table);
		}
	}
	schema_unref(schema);
}

void
repairs_resume(struct repairs *repairs)
{
	struct uuid *failed = NULL;
	uint32_t count = 0;
	bool has_promised = false;
	struct error err;

	lock_take(&repairs->lock);
	for (struct repair_local *local = repairs->locals; local != NULL; local = local->next) {
		has_promised |= local->state == REPAIR_FINALIZE_PROMISED;
		if (local->state >= REPAIR_FINALIZE_PROMISED)
			continue;
		failed = xrealloc(failed, (count + 1) * sizeof(*failed));
		failed[count++] = local->id;
	}
	lock_drop(&repairs->lock);
	for (uint32_t i = 0; i < count; i++) {
		enum repair_state state = REPAIR_HAS_FAILED;
		int rc;

		if (repair_local_go(repairs, &failed[i], &state, &rc, &err) && rc != 0)
			log_error("system.repairs: %s", err.text);
	}
	free(failed);
	repairs->start_task.run = repair_reconcile;
	(void)cluster_submit(repairs->env, CLUSTER_STAGE_VALIDATION, &repairs->start_task);
	if (has_promised)
		repair_local_check_later(repairs);
}

/* ---- what was promised and never decided --------------------------------------------------------------------- */

/* One session that is asked about. */
struct repair_question {
	struct task task;
	struct repairs *repairs;
	struct repair_local *local; /* owned; a copy */
	uint32_t pending;
	bool has_finalized, has_failed, is_unsure;
};

static void
repair_question_decide(struct task *task, struct worker *worker)
{
	struct repair_question *question = (struct repair_question *)task;
	struct repairs *repairs = question->repairs;
	char id[UUID_TEXT_SIZE];
	struct error err;
	int rc;

	(void)worker;
	uuid_format(&question->local->id, id);
	log_info("Incremental repair session %s, which was promised, %s", id,
	    question->has_finalized ? "has been finalized" : "has failed");
	rc = question->has_finalized ? repair_local_commit(repairs, &question->local->id, &err)
				     : repair_local_fail(repairs, &question->local->id, &err);
	if (rc != 0)
		log_error("Incremental repair session %s: %s", id, err.text);
	repair_local_free(question->local);
	free(question);
}

static void
repair_question_answered(
    void *context, struct peer *peer, struct slice result, const struct error *err)
{
	struct repair_question *question = context;
	struct reader reader = reader_of(result);
	uint8_t state = err == NULL ? reader_u8(&reader) : REPAIR_STATE_UNKNOWN;
	bool is_running = err == NULL && reader_u8(&reader) != 0;

	(void)peer;
	question->has_finalized |= state == REPAIR_FINALIZED;
	question->has_failed |= state == REPAIR_HAS_FAILED;
	question->is_unsure |= is_running || reader.is_failed || state == REPAIR_STATE_UNKNOWN;
	if (--question->pending > 0)
		return;
	if (question->has_finalized || question->has_failed || !question->is_unsure) {
		question->task.run = repair_question_decide;
		if (cluster_submit(
			question->repairs->env, CLUSTER_STAGE_VALIDATION, &question->task))
			return;
	} else {
		repair_local_check_later(question->repairs);
	}
	repair_local_free(question->local);
	free(question);
}

static void
repair_question_ask(struct repairs *repairs, struct repair_local *local)
{
	struct repair_message message = {.verb = VERB_STATUS_REQ, .parent = local->id};
	struct repair_question *question = xzalloc(sizeof(*question));
	struct buffer payload;

	question->repairs = repairs;
	question->local = local;
	question->pending = local->participant_count;
	buffer_init(&payload);
	repair_message_encode(&message, &payload);
	for (uint32_t i = 0; i < local->participant_count; i++)
		repair_call(repairs, repair_peer(repairs, &local->participants[i]), VERB_STATUS_REQ,
		    buffer_slice(&payload), NULL, repair_question_answered, question);
	buffer_fini(&payload);
}

static void
repair_local_check(struct task *task, struct worker *worker)
{
	struct repairs *repairs =
	    (struct repairs *)((char *)task - offsetof(struct repairs, check_task));
	struct repair_local *asked = NULL;

	(void)worker;
	repairs->is_checking = false;
	lock_take(&repairs->lock);
	for (struct repair_local *local = repairs->locals; local != NULL; local = local->next) {
		struct repair_local *copy;

		if (local->state != REPAIR_FINALIZE_PROMISED ||
		    repair_has_parent(repairs, &local->id))
			continue;
		copy = repair_local_copy(local);
		copy->next = asked;
		asked = copy;
	}
	lock_drop(&repairs->lock);
	while (asked != NULL) {
		struct repair_local *next = asked->next;

		asked->next = NULL;
		if (asked->participant_count > 0)
			repair_question_ask(repairs, asked);
		else
			repair_local_free(asked);
		asked = next;
	}
}

static void
repair_check_fired(struct cluster_timer *timer)
{
	struct repairs *repairs =
	    (struct repairs *)((char *)timer - offsetof(struct repairs, check_timer));

	(void)cluster_submit(repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &repairs->check_task);
}

void
repair_local_check_later(struct repairs *repairs)
{
	if (repairs->is_checking)
		return;
	repairs->is_checking = true;
	repairs->check_task.run = repair_local_check;
	repairs->check_timer.fire = repair_check_fired;
	cluster_timer_start(repairs->env, &repairs->check_timer, REPAIR_CHECK_NS);
}

uint8_t
repair_local_state(struct repairs *repairs, const struct uuid *id)
{
	struct repair_local *local;
	uint8_t state = REPAIR_STATE_UNKNOWN;

	lock_take(&repairs->lock);
	local = repair_local_find_locked(repairs, id);
	if (local != NULL)
		state = (uint8_t)local->state;
	lock_drop(&repairs->lock);
	return state;
}

struct repair_parent *
repair_local_parent(struct repairs *repairs, const struct uuid *id)
{
	struct repair_local *local = repair_local_get(repairs, id);
	struct repair_message message = {0};
	struct repair_parent *parent;

	if (local == NULL)
		return NULL;
	message.parent = local->id;
	message.keyspace = slice_of_string("");
	message.flags = REPAIR_IS_INCREMENTAL;
	message.repaired_at = local->repaired_at;
	message.table_count = local->table_count;
	message.tables = local->tables;
	message.range_count = local->range_count;
	message.ranges = local->ranges;
	message.endpoint_count = local->participant_count;
	message.endpoints = local->participants;
	parent = repair_parent_new(repairs, &message, repair_peer(repairs, &local->coordinator));
	parent->is_passing = true;
	repair_local_free(local);
	return parent;
}

/* ---- what operators see ---------------------------------------------------------------------------------------- */

void
repairs_each_session(struct repairs *repairs,
    void (*each)(void *context, const struct repair_local *local), void *context)
{
	lock_take(&repairs->lock);
	for (struct repair_local *local = repairs->locals; local != NULL; local = local->next)
		each(context, local);
	lock_drop(&repairs->lock);
}

struct repair_cancellation {
	struct task task;
	struct repairs *repairs;
	struct repair_local *local; /* owned; a copy */
};

static void
repair_cancel(struct task *task, struct worker *worker)
{
	struct repair_cancellation *cancellation = (struct repair_cancellation *)task;
	struct repairs *repairs = cancellation->repairs;
	struct repair_local *local = cancellation->local;
	struct repair_message message = {.verb = VERB_FAILED_SESSION_MSG, .parent = local->id};
	struct buffer payload;

	(void)worker;
	repair_command_cancel(repairs, &local->id);
	buffer_init(&payload);
	repair_message_encode(&message, &payload);
	for (uint32_t i = 0; i < local->participant_count; i++)
		repair_call(repairs, repair_peer(repairs, &local->participants[i]),
		    VERB_FAILED_SESSION_MSG, buffer_slice(&payload), NULL, repair_ignore, NULL);
	buffer_fini(&payload);
	repair_local_free(local);
	free(cancellation);
}

int
repairs_cancel_session(
    struct repairs *repairs, const struct uuid *id, bool is_forced, struct error *err)
{
	struct repair_local *local = repair_local_get(repairs, id);
	struct repair_cancellation *cancellation;
	char text[UUID_TEXT_SIZE], address[ENDPOINT_TEXT_SIZE];
	int rc = 0;

	uuid_format(id, text);
	if (local == NULL)
		return error_set(err, ERROR_INVALID, "Session %s does not exist", text);
	if (repair_state_is_over(local->state))
		rc = error_set(err, ERROR_INVALID, "Cannot cancel session %s: it is %s", text,
		    repair_state_name(local->state));
	else if (!is_forced &&
	    !endpoint_equal(&local->coordinator, &peers_local(repairs->peers)->endpoint))
		rc = error_set(err, ERROR_INVALID,
		    "Cancel session %s from its repair coordinator (/%s) or use --force", text,
		    endpoint_format(&local->coordinator, address));
	if (rc != 0) {
		repair_local_free(local);
		return rc;
	}
	cancellation = xzalloc(sizeof(*cancellation));
	cancellation->task.run = repair_cancel;
	cancellation->repairs = repairs;
	cancellation->local = local;
	if (cluster_submit(repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &cancellation->task))
		return 0;
	repair_local_free(local);
	free(cancellation);
	return error_set(err, ERROR_SHUTDOWN, "the node is going down");
}

void
repair_locals_free(struct repairs *repairs)
{
	while (repairs->locals != NULL) {
		struct repair_local *local = repairs->locals;

		repairs->locals = local->next;
		repair_local_free(local);
	}
}
