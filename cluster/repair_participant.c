/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/repair_participant.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"

#define REPAIR_HOLD_NS UINT64_C(4000000000) /* before who waits is told that it takes longer */
#define REPAIR_TICK_NS UINT64_C(1000000000)
enum { REPAIR_ARENA_BLOCK = 4096 };

/* ---- parents and works ---------------------------------------------------------------------------------- */

static void
repair_snapshot_free(struct repair_snapshot *snapshot)
{
	if (snapshot == NULL)
		return;
	validation_free(snapshot->validation);
	schema_unref(snapshot->schema);
	free(snapshot);
}

static void
repair_work_free(struct repair_work *work)
{
	for (struct repair_work **at = &work->parent->works; *at != NULL; at = &(*at)->next) {
		if (*at == work) {
			*at = work->next;
			break;
		}
	}
	message_unref(work->request);
	message_unref(work->parked);
	repair_snapshot_free(work->snapshot);
	free(work->sync.exchange);
	arena_fini(&work->arena);
	buffer_fini(&work->result);
	free(work);
}

static void
repair_parent_free(struct repair_parent *parent)
{
	for (struct repair_parent **at = &parent->repairs->parents; *at != NULL;
	     at = &(*at)->next) {
		if (*at == parent) {
			*at = parent->next;
			break;
		}
	}
	while (parent->works != NULL)
		repair_work_free(parent->works);
	repair_trail_release(parent->repairs, parent->trail);
	while (parent->snapshots != NULL) {
		struct repair_snapshot *snapshot = parent->snapshots;

		parent->snapshots = snapshot->next;
		repair_snapshot_free(snapshot);
	}
	free(parent->keyspace);
	free(parent->tables);
	free(parent->ranges);
	free(parent->participants);
	free(parent);
}

/* Nobody asks any more: what runs is told, what waits goes. why: NULL, or what went wrong. */
static void
repair_parent_close(struct repair_parent *parent, const char *why)
{
	struct repairs *repairs = parent->repairs;
	struct repair_work *next;

	if (parent->trail != NULL)
		repair_trail_end(repairs, parent->trail, why);
	repairs->closed[repairs->next_closed++ % REPAIR_CLOSED_KEPT] = parent->id;
	parent->is_closed = true;
	for (struct repair_work *work = parent->works; work != NULL; work = next) {
		next = work->next;
		atomic_store_explicit(&work->is_cancelled, true, memory_order_relaxed);
		if (work->is_done)
			repair_work_free(work);
	}
	if (parent->works == NULL)
		repair_parent_free(parent);
}

static struct repair_parent *
repair_parent_find(struct repairs *repairs, const struct uuid *id)
{
	for (struct repair_parent *parent = repairs->parents; parent != NULL; parent = parent->next)
		if (!parent->is_closed && uuid_equal(&parent->id, id))
			return parent;
	return NULL;
}

static bool
repair_was_closed(const struct repairs *repairs, const struct uuid *id)
{
	for (uint32_t i = 0; i < REPAIR_CLOSED_KEPT; i++)
		if (uuid_equal(&repairs->closed[i], id))
			return true;
	return false;
}

bool
repair_has_parent(struct repairs *repairs, const struct uuid *id)
{
	return repair_parent_find(repairs, id) != NULL;
}

struct repair_parent *
repair_parent_new(
    struct repairs *repairs, const struct repair_message *message, struct peer *coordinator)
{
	struct repair_parent *parent = xzalloc(sizeof(*parent));

	parent->repairs = repairs;
	parent->id = message->parent;
	parent->coordinator = coordinator;
	parent->keyspace = xstrndup((const char *)message->keyspace.data, message->keyspace.size);
	parent->flags = message->flags;
	parent->preview = message->preview;
	parent->repaired_at = message->repaired_at;
	parent->table_count = message->table_count;
	parent->tables = xcalloc((size_t)message->table_count + 1, sizeof(*parent->tables));
	memcpy(parent->tables, message->tables, message->table_count * sizeof(*parent->tables));
	parent->range_count = message->range_count;
	parent->ranges = xcalloc((size_t)message->range_count + 1, sizeof(*parent->ranges));
	memcpy(parent->ranges, message->ranges, message->range_count * sizeof(*parent->ranges));
	parent->participant_count = message->endpoint_count;
	parent->participants =
	    xcalloc((size_t)message->endpoint_count + 1, sizeof(*parent->participants));
	/* PAXOS2_CLEANUP names none. */
	if (message->endpoint_count > 0)
		memcpy(parent->participants, message->endpoints,
		    message->endpoint_count * sizeof(*parent->participants));
	parent->next = repairs->parents;
	repairs->parents = parent;
	return parent;
}

/* ---- answers -------------------------------------------------------------------------------------------- */

static void
repair_respond(
    struct repairs *repairs, const struct message *request, uint8_t status, const char *text)
{
	struct buffer answer;

	buffer_init(&answer);
	buffer_put_u8(&answer, status);
	buffer_put_string(&answer, text);
	if (answer.is_failed)
		messaging_respond_failure(repairs->messaging, request, FAILURE_UNKNOWN, NULL);
	else
		messaging_respond(repairs->messaging, request, buffer_slice(&answer), NULL);
	buffer_fini(&answer);
}

void
repair_work_fail(struct repair_work *work, const struct error *err)
{
	buffer_clear(&work->result);
	buffer_put_u8(&work->result, REPAIR_FAILED);
	buffer_put_string(&work->result, err->text);
}

/* The answer goes to who waits for it; the work with it. */
static void
repair_work_answer(struct repair_work *work)
{
	struct repairs *repairs = work->parent->repairs;

	if (work->parked == NULL)
		return;
	if (work->result.is_failed)
		messaging_respond_failure(repairs->messaging, work->parked, FAILURE_UNKNOWN, NULL);
	else
		messaging_respond(
		    repairs->messaging, work->parked, buffer_slice(&work->result), NULL);
	repair_work_free(work);
}

/* After a work has gone: was it the last of a parent that nobody needs? */
static void
repair_parent_settle(struct repair_parent *parent)
{
	if ((parent->is_closed || parent->is_passing) && parent->works == NULL)
		repair_parent_free(parent);
}

static void
repair_work_done(struct task *task, struct worker *worker)
{
	struct repair_work *work = (struct repair_work *)task;
	struct repair_parent *parent = work->parent;

	(void)worker;
	work->is_done = true;
	if (work->message.verb == VERB_SNAPSHOT_MSG && work->snapshot != NULL) {
		work->snapshot->next = parent->snapshots;
		parent->snapshots = work->snapshot;
		work->snapshot = NULL;
	}
	if (parent->is_closed)
		repair_work_free(work);
	else
		repair_work_answer(work);
	repair_parent_settle(parent);
}

/* Back to the stage. */
void
repair_work_finish(struct repair_work *work)
{
	work->task.run = repair_work_done;
	/* Not taken: the node stops, and repairs_free() frees it. */
	(void)cluster_submit(work->parent->repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &work->task);
}

/* ---- the work: on the validation stage ------------------------------------------------------------------ */

/* The table; *schema is a reference that keeps it. */
static struct table_store *
repair_find_table(
    struct repairs *repairs, const struct uuid *id, struct schema **schema, struct error *err)
{
	const struct table_metadata *metadata;
	struct table_store *table = NULL;
	char text[UUID_TEXT_SIZE];

	*schema = repairs->ops.schema(repairs->ops.context);
	metadata = schema_table_by_id(*schema, id);
	if (metadata != NULL)
		table = store_table(repairs->store, metadata);
	if (table == NULL) {
		uuid_format(id, text);
		error_set(err, ERROR_INVALID,
		    "Table with id %s was dropped during prepare phase of repair", text);
		schema_unref(*schema);
	}
	return table;
}

/* A range that wraps counts as what is behind its begin. */
static void
repair_estimate(struct repairs *repairs, struct table_store *table, struct ring_range range,
    uint64_t *partitions, uint64_t *bytes)
{
	store_range_estimate(repairs->store, table, range.left,
	    range.left < range.right ? range.right : INT64_MIN, partitions, bytes);
}

/* What is in memory shall count, and be compared. */
static int
repair_run_prepare(struct repair_work *work, struct error *err)
{
	const struct repair_parent *parent = work->parent;
	struct repairs *repairs = parent->repairs;

	buffer_put_u8(&work->result, REPAIR_DONE);
	buffer_put_vint(&work->result, parent->table_count);
	for (uint32_t i = 0; i < parent->table_count; i++) {
		struct schema *schema;
		struct table_store *table =
		    repair_find_table(repairs, &parent->tables[i], &schema, err);
		uint64_t partitions = 0;
		int rc;

		if (table == NULL)
			return -1;
		rc = (parent->flags & REPAIR_IS_PAXOS_ONLY) != 0
		    ? 0
		    : store_flush(repairs->store, table, err);
		for (uint32_t j = 0; j < parent->range_count && rc == 0; j++) {
			uint64_t found, bytes;

			repair_estimate(repairs, table, parent->ranges[j], &found, &bytes);
			partitions += found;
		}
		schema_unref(schema);
		if (rc != 0)
			return -1;
		buffer_put_vint(&work->result, partitions);
	}
	return 0;
}

static struct repair_snapshot *
repair_snapshot_new(struct repair_work *work, struct error *err)
{
	static const enum validation_data previews[] = {[REPAIR_PREVIEW_NONE] = VALIDATION_ALL,
	    [REPAIR_PREVIEW_ALL] = VALIDATION_ALL,
	    [REPAIR_PREVIEW_UNREPAIRED] = VALIDATION_UNREPAIRED,
	    [REPAIR_PREVIEW_REPAIRED] = VALIDATION_REPAIRED};
	const struct repair_parent *parent = work->parent;
	struct repairs *repairs = parent->repairs;
	enum validation_data data = previews[parent->preview];
	struct repair_snapshot *snapshot = xzalloc(sizeof(*snapshot));
	struct table_store *table =
	    repair_find_table(repairs, &work->message.table, &snapshot->schema, err);

	if (table == NULL) {
		free(snapshot);
		return NULL;
	}
	if (data == VALIDATION_ALL && (parent->flags & REPAIR_IS_INCREMENTAL) != 0)
		data = VALIDATION_PENDING;
	snapshot->session = work->message.session;
	snapshot->table = work->message.table;
	if (validation_new(repairs->store, table, data, &parent->id, &snapshot->validation, err) !=
	    0) {
		schema_unref(snapshot->schema);
		free(snapshot);
		return NULL;
	}
	return snapshot;
}

static int
repair_validation_progress(void *context, uint64_t partitions, uint64_t bytes, struct error *err)
{
	struct repair_work *work = context;

	work->partitions += partitions;
	atomic_fetch_add_explicit(&work->validation->partitions, partitions, memory_order_relaxed);
	atomic_fetch_add_explicit(&work->validation->bytes, bytes, memory_order_relaxed);
	if (atomic_load_explicit(&work->is_cancelled, memory_order_relaxed))
		return error_set(err, ERROR_SHUTDOWN, "Validation was cancelled");
	return 0;
}

static void
repair_log_validation(const struct repair_work *work)
{
	const struct table_metadata *table =
	    schema_table_by_id(work->snapshot->schema, &work->message.table);
	char session[UUID_TEXT_SIZE];

	uuid_format(&work->message.session, session);
	log_info("[repair #%s] Validated %" PRIu64 " partitions of %s.%.*s", session,
	    work->partitions, work->parent->keyspace, (int)table->name.size,
	    (const char *)table->name.data);
	trace_event(work->parent->repairs->env, &work->request->trace, NULL,
	    "Validated %" PRIu64 " partitions of %s.%.*s", work->partitions, work->parent->keyspace,
	    (int)table->name.size, (const char *)table->name.data);
}

/* What it will read, about. */
static void
repair_estimate_validation(struct repair_work *work)
{
	const struct repair_message *message = &work->message;
	struct repairs *repairs = work->parent->repairs;
	struct schema *schema;
	struct error err;
	struct table_store *table = repair_find_table(repairs, &message->table, &schema, &err);

	for (uint32_t i = 0; table != NULL && i < message->range_count; i++) {
		uint64_t partitions, bytes;

		repair_estimate(repairs, table, message->ranges[i], &partitions, &bytes);
		atomic_fetch_add_explicit(
		    &work->validation->estimated_partitions, partitions, memory_order_relaxed);
		atomic_fetch_add_explicit(
		    &work->validation->estimated_bytes, bytes, memory_order_relaxed);
	}
	if (table != NULL)
		schema_unref(schema);
}

static int
repair_run_validation(struct repair_work *work, struct error *err)
{
	const struct repair_message *message = &work->message;
	struct repairs *repairs = work->parent->repairs;
	struct buffer encoded;
	int rc = 0;

	repair_reach(repairs, &work->validation->history, REPAIR_VALIDATION_START);
	repair_estimate_validation(work);
	if (work->snapshot == NULL)
		work->snapshot = repair_snapshot_new(work, err);
	if (work->snapshot == NULL)
		return -1;
	buffer_put_u8(&work->result, REPAIR_DONE);
	buffer_put_vint(&work->result, message->range_count);
	buffer_init(&encoded);
	for (uint32_t i = 0; i < message->range_count && rc == 0; i++) {
		struct merkle_tree *tree = merkle_tree_new(
		    (struct merkle_range){message->ranges[i].left, message->ranges[i].right},
		    message->depths[i]);

		if (tree == NULL)
			rc = error_set(err, ERROR_NO_MEMORY, "no memory for a Merkle tree");
		else
			rc = validation_run(work->snapshot->validation, tree, message->now_seconds,
			    repair_validation_progress, work, err);
		if (rc == 0) {
			buffer_clear(&encoded);
			merkle_tree_encode(tree, &encoded);
			rc = buffer_check(&encoded, err);
			buffer_put_vint(&work->result, encoded.size);
			buffer_put_slice(&work->result, buffer_slice(&encoded));
		}
		merkle_tree_free(tree);
	}
	buffer_fini(&encoded);
	if (rc == 0)
		rc = buffer_check(&work->result, err);
	if (rc == 0) {
		repair_log_validation(work);
		repair_reach(repairs, &work->validation->history, REPAIR_VALIDATION_SENDING_TREES);
	}
	return rc;
}

static int
repair_run_snapshot(struct repair_work *work, struct error *err)
{
	work->snapshot = repair_snapshot_new(work, err);
	buffer_put_u8(&work->result, REPAIR_DONE);
	return work->snapshot == NULL ? -1 : 0;
}

static void
repair_sync_done(struct repair_sync *sync, const struct error *err)
{
	struct repair_work *work =
	    (struct repair_work *)((char *)sync - offsetof(struct repair_work, sync));

	trace_event(work->parent->repairs->env, &work->request->trace, NULL, "%s",
	    err == NULL ? "Sync complete" : err->text);
	buffer_put_u8(&work->result, REPAIR_DONE);
	if (err != NULL)
		repair_work_fail(work, err);
	repair_work_finish(work);
}

/* Returns 1: repair_sync_done() will be called. */
static int
repair_run_sync(struct repair_work *work, struct error *err)
{
	const struct repair_parent *parent = work->parent;
	const struct repair_message *message = &work->message;
	struct repairs *repairs = parent->repairs;
	const struct table_metadata *metadata;
	struct schema *schema = repairs->ops.schema(repairs->ops.context);
	char address[ENDPOINT_TEXT_SIZE];
	const char *name = NULL;

	metadata = schema_table_by_id(schema, &message->table);
	if (metadata != NULL)
		name = arena_strndup(
		    &work->arena, (const char *)metadata->name.data, metadata->name.size);
	schema_unref(schema);
	if (name == NULL)
		return error_set(err, ERROR_INVALID, "A table was dropped during repair");
	work->sync = (struct repair_sync){.peer = repair_peer(repairs, &message->endpoints[0]),
	    .keyspace = parent->keyspace,
	    .table = name,
	    .ranges = message->ranges,
	    .range_count = message->range_count,
	    .is_pull = (message->flags & REPAIR_IS_PULL) != 0,
	    .has_pending_repair = (parent->flags & REPAIR_IS_INCREMENTAL) != 0,
	    .pending_repair = parent->id,
	    .on_done = repair_sync_done};
	trace_event(repairs->env, &work->request->trace, NULL,
	    "Syncing %u range(s) of %s.%s with /%s", (unsigned)message->range_count,
	    parent->keyspace, name, endpoint_format(&message->endpoints[0], address));
	repairs->ops.sync(repairs->ops.context, &work->sync);
	return 1;
}

static void
repair_work_run(struct task *task, struct worker *worker)
{
	struct repair_work *work = (struct repair_work *)task;
	struct error err;
	int rc;

	(void)worker;
	error_clear(&err);
	switch (work->message.verb) {
	case VERB_PREPARE_MSG:
		rc = repair_run_prepare(work, &err);
		break;
	case VERB_SNAPSHOT_MSG:
		rc = repair_run_snapshot(work, &err);
		break;
	case VERB_VALIDATION_REQ:
		rc = repair_run_validation(work, &err);
		break;
	case VERB_SYNC_REQ:
		rc = repair_run_sync(work, &err);
		break;
	case VERB_PAXOS2_CLEANUP_REQ:
		rc = repair_run_paxos(work, &err);
		break;
	case VERB_PREPARE_CONSISTENT_REQ:
		rc = repair_local_prepare(work, &err);
		break;
	case VERB_FINALIZE_PROPOSE_MSG:
		rc = repair_local_promise(work, &err);
		break;
	case VERB_FINALIZE_COMMIT_MSG:
		rc = repair_local_commit(work->parent->repairs, &work->parent->id, &err);
		break;
	default: /* VERB_FAILED_SESSION_MSG */
		rc = repair_local_fail(work->parent->repairs, &work->parent->id, &err);
		break;
	}
	/* What runs on another thread may have ended, and the work with it. */
	if (rc > 0)
		return;
	if (rc == 0 && work->result.size == 0)
		buffer_put_u8(&work->result, REPAIR_DONE);
	if (rc < 0)
		repair_work_fail(work, &err);
	if (work->validation != NULL)
		repair_reach_end(work->parent->repairs, &work->validation->history,
		    rc < 0 ? REPAIR_RESULT_FAILURE : REPAIR_RESULT_SUCCESS,
		    rc < 0 ? err.text : NULL);
	repair_work_finish(work);
}

/* ---- who waits too long is told so -------------------------------------------------------------------------- */

static void repair_tick_start(struct repairs *repairs);

static void
repair_tick(struct task *task, struct worker *worker)
{
	struct repairs *repairs =
	    (struct repairs *)((char *)task - offsetof(struct repairs, tick_task));
	uint64_t now = env_monotonic_ns(repairs->env->env);
	bool has_work = false;

	(void)worker;
	repairs->is_ticking = false;
	for (struct repair_parent *parent = repairs->parents; parent != NULL;
	     parent = parent->next) {
		for (struct repair_work *work = parent->works; work != NULL; work = work->next) {
			has_work = true;
			if (work->parked == NULL || now - work->parked_ns < REPAIR_HOLD_NS)
				continue;
			repair_respond(repairs, work->parked, REPAIR_WORKING, "");
			message_unref(work->parked);
			work->parked = NULL;
		}
	}
	if (has_work)
		repair_tick_start(repairs);
}

static void
repair_tick_fired(struct cluster_timer *timer)
{
	struct repairs *repairs =
	    (struct repairs *)((char *)timer - offsetof(struct repairs, tick_timer));

	(void)cluster_submit(repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &repairs->tick_task);
}

static void
repair_tick_start(struct repairs *repairs)
{
	if (repairs->is_ticking)
		return;
	repairs->is_ticking = true;
	repairs->tick_task.run = repair_tick;
	repairs->tick_timer.fire = repair_tick_fired;
	cluster_timer_start(repairs->env, &repairs->tick_timer, REPAIR_TICK_NS);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static void
repair_park(struct repair_work *work, struct message *message)
{
	/* A second asking of the same: the first one has been given up. */
	message_unref(work->parked);
	message_ref(message);
	work->parked = message;
	work->parked_ns = env_monotonic_ns(work->parent->repairs->env->env);
}

static bool
repair_is_same_work(const struct repair_message *a, const struct repair_message *b)
{
	return a->verb == b->verb && uuid_equal(&a->session, &b->session) &&
	    uuid_equal(&a->table, &b->table) &&
	    (a->verb != VERB_SYNC_REQ || endpoint_equal(&a->endpoints[0], &b->endpoints[0]));
}

static struct repair_work *
repair_work_find(struct repair_parent *parent, const struct repair_message *message)
{
	for (struct repair_work *work = parent->works; work != NULL; work = work->next)
		if (repair_is_same_work(&work->message, message))
			return work;
	return NULL;
}

static struct repair_snapshot *
repair_snapshot_take(struct repair_parent *parent, const struct repair_message *message)
{
	for (struct repair_snapshot **at = &parent->snapshots; *at != NULL; at = &(*at)->next) {
		struct repair_snapshot *snapshot = *at;

		if (!uuid_equal(&snapshot->session, &message->session) ||
		    !uuid_equal(&snapshot->table, &message->table))
			continue;
		*at = snapshot->next;
		return snapshot;
	}
	return NULL;
}

/* Takes the arena. */
static void
repair_work_start(struct repair_parent *parent, struct message *request, struct arena *arena,
    const struct repair_message *message)
{
	struct repairs *repairs = parent->repairs;
	struct repair_work *work = xzalloc(sizeof(*work));

	work->parent = parent;
	message_ref(request);
	work->request = request;
	work->arena = *arena;
	work->message = *message;
	buffer_init(&work->result);
	work->next = parent->works;
	parent->works = work;
	repair_park(work, request);
	if (message->verb == VERB_VALIDATION_REQ) {
		work->snapshot = repair_snapshot_take(parent, message);
		work->validation = repair_trail_validation(repairs, parent->trail, message);
	}
	work->task.run = repair_work_run;
	if (!cluster_submit(repairs->env, CLUSTER_STAGE_VALIDATION, &work->task)) {
		if (work->validation != NULL)
			repair_reach_end(repairs, &work->validation->history, REPAIR_RESULT_FAILURE,
			    "ValidationExecutor is full");
		repair_respond(repairs, request, REPAIR_FAILED, "ValidationExecutor is full");
		repair_work_free(work);
		return;
	}
	repair_tick_start(repairs);
}

static struct repair_parent *
repair_parent_begin(
    struct repairs *repairs, const struct repair_message *message, const struct message *request)
{
	struct repair_parent *parent =
	    repair_parent_new(repairs, message, repair_peer(repairs, &request->from));

	parent->trail = repair_trail_open(repairs, message, &request->from);
	return parent;
}

static void
repair_handle_asked(struct repairs *repairs, struct message *request, struct arena *arena,
    const struct repair_message *message)
{
	struct repair_parent *parent = repair_parent_find(repairs, &message->parent);
	struct repair_work *work;
	char text[UUID_TEXT_SIZE + 64], id[UUID_TEXT_SIZE];

	if (parent == NULL && message->verb == VERB_PREPARE_MSG &&
	    !repair_was_closed(repairs, &message->parent))
		parent = repair_parent_begin(repairs, message, request);
	if (parent == NULL &&
	    (message->verb == VERB_FINALIZE_COMMIT_MSG || message->verb == VERB_FAILED_SESSION_MSG))
		parent = repair_local_parent(repairs, &message->parent);
	if (parent == NULL && message->verb == VERB_PAXOS2_CLEANUP_REQ &&
	    !repair_was_closed(repairs, &message->parent)) {
		/* Of no command: the ring changes. */
		parent = repair_parent_new(repairs, message, repair_peer(repairs, &request->from));
		parent->is_passing = true;
	}
	/* Only what was prepared is validated. */
	if (parent != NULL && parent->trail == NULL && message->verb == VERB_VALIDATION_REQ)
		parent = NULL;
	if (parent == NULL && message->verb == VERB_FAILED_SESSION_MSG) {
		repair_respond(repairs, request, REPAIR_DONE, ""); /* nothing of it here */
		arena_fini(arena);
		return;
	}
	if (parent == NULL) {
		uuid_format(&message->parent, id);
		snprintf(text, sizeof(text),
		    "Parent repair session with id = %s has failed or is not known.", id);
		repair_respond(repairs, request, REPAIR_FAILED, text);
		arena_fini(arena);
		return;
	}
	work = repair_work_find(parent, message);
	if (work == NULL) {
		repair_work_start(parent, request, arena, message);
		return;
	}
	arena_fini(arena);
	repair_park(work, request);
	if (work->is_done)
		repair_work_answer(work);
	repair_parent_settle(parent);
}

static void
repair_handle_cleanup(
    struct repairs *repairs, struct message *request, const struct repair_message *message)
{
	struct repair_parent *parent = repair_parent_find(repairs, &message->parent);

	if (parent != NULL)
		repair_parent_close(parent, NULL);
	repair_respond(repairs, request, REPAIR_DONE, "");
}

static void
repair_handle_status(
    struct repairs *repairs, struct message *request, const struct repair_message *message)
{
	uint8_t answer[] = {REPAIR_DONE, repair_local_state(repairs, &message->parent),
	    repair_command_is_running(repairs, &message->parent)};

	messaging_respond(repairs->messaging, request, slice_of(answer, sizeof(answer)), NULL);
}

static void
repair_handle(void *context, struct message *request, struct worker *worker)
{
	struct repairs *repairs = context;
	struct repair_message message;
	struct arena arena;
	struct error err;

	(void)worker;
	arena_init(&arena, REPAIR_ARENA_BLOCK);
	if (repair_message_decode((enum verb)request->verb, message_payload_slice(request), &arena,
		&message, &err) != 0 ||
	    (message.verb == VERB_PREPARE_MSG && message.preview > REPAIR_PREVIEW_REPAIRED &&
		error_set(&err, ERROR_PROTOCOL, "unknown kind of preview: %u",
		    (unsigned)message.preview) != 0)) {
		repair_respond(repairs, request, REPAIR_FAILED, err.text);
		arena_fini(&arena);
	} else if (message.verb == VERB_STATUS_REQ) {
		repair_handle_status(repairs, request, &message);
		arena_fini(&arena);
	} else if (message.verb == VERB_CLEANUP_MSG) {
		repair_handle_cleanup(repairs, request, &message);
		arena_fini(&arena);
	} else {
		repair_handle_asked(repairs, request, &arena, &message);
	}
}

/* ---- nodetool stop VALIDATION ------------------------------------------------------------------------------ */

struct repair_halt {
	struct task task;
	struct repairs *repairs;
};

static void
repair_halt(struct task *task, struct worker *worker)
{
	struct repairs *repairs = ((struct repair_halt *)task)->repairs;

	(void)worker;
	for (struct repair_parent *parent = repairs->parents; parent != NULL; parent = parent->next)
		for (struct repair_work *work = parent->works; work != NULL; work = work->next)
			if (work->message.verb == VERB_VALIDATION_REQ)
				atomic_store_explicit(
				    &work->is_cancelled, true, memory_order_relaxed);
	free(task);
}

void
repairs_stop_validations(struct repairs *repairs)
{
	struct repair_halt *halt = xzalloc(sizeof(*halt));

	halt->task.run = repair_halt;
	halt->repairs = repairs;
	if (!cluster_submit(repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &halt->task))
		free(halt);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

void
repair_participant_init(struct repairs *repairs)
{
	static const enum verb verbs[] = {VERB_PREPARE_MSG, VERB_SNAPSHOT_MSG, VERB_VALIDATION_REQ,
	    VERB_SYNC_REQ, VERB_CLEANUP_MSG, VERB_PREPARE_CONSISTENT_REQ, VERB_FINALIZE_PROPOSE_MSG,
	    VERB_FINALIZE_COMMIT_MSG, VERB_FAILED_SESSION_MSG, VERB_STATUS_REQ,
	    VERB_PAXOS2_CLEANUP_REQ};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		messaging_handle(repairs->messaging, verbs[i], CLUSTER_STAGE_ANTI_ENTROPY,
		    repair_handle, repairs);
}

/* Its coordinator is dead, and nothing was promised: it has failed. */
static void
repair_fail_orphan(struct repair_parent *parent)
{
	struct repair_message message = {.verb = VERB_FAILED_SESSION_MSG, .parent = parent->id};
	struct buffer payload;

	buffer_init(&payload);
	repair_message_encode(&message, &payload);
	repair_call(parent->repairs, peers_local(parent->repairs->peers), VERB_FAILED_SESSION_MSG,
	    buffer_slice(&payload), NULL, repair_ignore, NULL);
	buffer_fini(&payload);
}

void
repair_participant_peer_is_down(struct repairs *repairs, struct peer *peer)
{
	char address[ENDPOINT_TEXT_SIZE], why[ENDPOINT_TEXT_SIZE + 32];
	struct repair_parent *next;

	snprintf(
	    why, sizeof(why), "Coordinator /%s died", endpoint_format(&peer->endpoint, address));
	for (struct repair_parent *parent = repairs->parents; parent != NULL; parent = next) {
		next = parent->next;
		if (parent->coordinator != peer || parent->is_closed)
			continue;
		if (repair_local_state(repairs, &parent->id) == REPAIR_FINALIZE_PROMISED)
			repair_local_check_later(repairs);
		else if ((parent->flags & REPAIR_IS_INCREMENTAL) != 0)
			repair_fail_orphan(parent);
		repair_parent_close(parent, why);
	}
}

void
repair_participant_free(struct repairs *repairs)
{
	while (repairs->parents != NULL)
		repair_parent_free(repairs->parents);
}
