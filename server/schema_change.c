/* SPDX-License-Identifier: Apache-2.0 */
#include "server/schema_change.h"
#include <stddef.h>
#include <stdlib.h>
#include "base/log.h"
#include "server/events.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/guardrails.h"
#include "server/tracing.h"
#include "server/internal_query.h"
#include "server/modification.h"
#include "server/batch.h"
#include "server/schema_sync.h"
#include "server/schema_tables.h"
#include "server/system_local.h"
#include "server/system_tables.h"

int
schema_transform(struct schema_transformation *transformation, struct error *err)
{
	switch (transformation->statement->kind) {
	case STATEMENT_CREATE_KEYSPACE:
	case STATEMENT_ALTER_KEYSPACE:
	case STATEMENT_DROP_KEYSPACE:
		return schema_transform_keyspace(transformation, err);
	case STATEMENT_CREATE_TABLE:
	case STATEMENT_DROP_TABLE:
		return schema_transform_table(transformation, err);
	case STATEMENT_ALTER_TABLE:
		return schema_transform_alter_table(transformation, err);
	case STATEMENT_CREATE_TYPE:
	case STATEMENT_ALTER_TYPE:
	case STATEMENT_DROP_TYPE:
		return schema_transform_type(transformation, err);
	default:
		return schema_transform_absent(transformation, err);
	}
}

/* ---- A client's change ---------------------------------------------------------------------- */

/* In the arena of its request. */
struct schema_change_call {
	struct schema_sync_change change; /* first */
	struct schema_transformation transformation;
	struct execution *execution;
	struct cluster_timer timer;
	struct task task;
	uint64_t deadline_ns; /* of waiting for agreement */
};

enum {
	SCHEMA_AGREEMENT_NS = 100 * 1000000,
	SCHEMA_AGREEMENT_LOOK_NS = 1000000,
};

/* Would a driver that asks this node for system.local and system.peers see one version? */
static bool
schema_is_agreed(struct executor *executor)
{
	struct topology_holder *holder = executor->node->cluster->topology;
	const struct topology *topology = topology_acquire(holder);
	struct schema *schema = schema_holder_get(&executor->schema);
	uint64_t version = load_u64(schema->version.bytes);
	bool is_agreed = true;

	for (uint32_t i = 0; i < topology_member_count(topology) && is_agreed; i++) {
		struct peer *peer = topology_member(topology, i)->peer;

		is_agreed = peer->is_local || !atomic_load(&peer->is_alive) ||
		    atomic_load_explicit(&peer->saved_schema, memory_order_acquire) == version;
	}
	schema_unref(schema);
	topology_release(holder, topology);
	return is_agreed;
}

static void
schema_change_answer(struct schema_change_call *call)
{
	struct execution *execution = call->execution;

	execution_begin_result(execution);
	response_put_schema_change(
	    execution->out, execution->version, &call->transformation.change);
	execution_done(execution, NULL);
}

static void
schema_change_run_answer(struct task *task, struct worker *worker)
{
	struct schema_change_call *call =
	    (struct schema_change_call *)((char *)task - offsetof(struct schema_change_call, task));

	call->execution->worker = worker;
	schema_change_answer(call);
}

static void
schema_change_look(struct cluster_timer *timer)
{
	struct schema_change_call *call = (struct schema_change_call *)((char *)timer -
	    offsetof(struct schema_change_call, timer));
	struct executor *executor = call->execution->executor;
	struct cluster_env *env = executor->node->cluster->env;

	if (env_monotonic_ns(executor->env) < call->deadline_ns && !schema_is_agreed(executor)) {
		cluster_timer_start(env, timer, SCHEMA_AGREEMENT_LOOK_NS);
		return;
	}
	call->task = (struct task){.run = schema_change_run_answer};
	if (!cluster_submit(env, CLUSTER_STAGE_INTERNAL_RESPONSE, &call->task))
		schema_change_answer(call);
}

/*
 * All that are alive have the change, and gossip is about to say so. Drivers look at that when they have the answer, and
 * sleep long (200 ms) where they find that it was not said yet.
 */
static void
schema_change_await(struct schema_change_call *call)
{
	struct executor *executor = call->execution->executor;

	if (coordinator_is_alone(executor->coordinator) || schema_is_agreed(executor)) {
		schema_change_answer(call);
		return;
	}
	call->deadline_ns = env_monotonic_ns(executor->env) + SCHEMA_AGREEMENT_NS;
	call->timer.fire = schema_change_look;
	cluster_timer_start(executor->node->cluster->env, &call->timer, SCHEMA_AGREEMENT_LOOK_NS);
}

static void
schema_change_done(struct schema_sync_change *change, bool is_noop, const struct error *err)
{
	struct schema_change_call *call = (struct schema_change_call *)change;
	struct execution *execution = call->execution;

	keyspace_unref(call->transformation.after);
	/* The migration stage's thread: what the client's thread collects is not ours. */
	execution->worker = NULL;
	if (err != NULL) {
		execution_done(execution, err);
		return;
	}
	if (is_noop) {
		execution_done_void(execution);
		return;
	}
	schema_change_await(call);
}

void
schema_change_execute(struct execution *execution)
{
	struct schema_change_call *call = arena_zalloc(execution->arena, sizeof(*call));
	struct error err;

	if (call == NULL)
		error_set(&err, ERROR_NO_MEMORY, "no memory for a schema change");
	if (call == NULL || guardrail_check_schema_change(execution, &err) != 0) {
		execution_done(execution, &err);
		return;
	}
	call->change.transformation = &call->transformation;
	call->change.done = schema_change_done;
	call->execution = execution;
	call->transformation =
	    (struct schema_transformation){.session_keyspace = execution->keyspace,
		.statement = execution->plan->statement,
		.execution = execution,
		.arena = execution->arena};
	schema_log_change(execution->executor->node->cluster->schema_log, &call->change,
	    (uint64_t)execution->executor->config->request_timeout * 1000 * 1000);
}

/* ---- Start --------------------------------------------------------------------------------- */

/* Older than all that the schema log writes: the ring's word on their replication holds. */
enum { SCHEMA_SYSTEM_TIMESTAMP = 1 };

/* Cassandra's own tools and drivers read the system keyspaces' tables out of system_schema too. Our own
 * start does not, so these rows need no flush: what a crash loses is written again. */
static int
schema_save_system(struct executor *executor, const struct schema *schema, struct error *err)
{
	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[i];
		bool is_there;

		if (keyspace->is_virtual)
			continue;
		if (schema_tables_has_keyspace(executor, keyspace->name, &is_there, err) != 0)
			return -1;
		if (!is_there &&
		    schema_tables_save(executor, keyspace, SCHEMA_SYSTEM_TIMESTAMP, err) != 0)
			return -1;
	}
	return 0;
}

/* Before the replay, whose flushes would be compacted; until nodetool enableautocompaction. */
static void
schema_hold_compactions(struct executor *executor)
{
	uint32_t count;
	struct table_store **tables = store_tables(executor->store, &count);

	for (uint32_t i = 0; i < count; i++)
		store_set_auto_compaction(executor->store, tables[i], false);
	free(tables);
	log_info("Not enabling compaction; autocompaction_on_startup_enabled is set to false");
}

int
schema_start(struct executor *executor, struct error *err)
{
	struct schema *system, *schema;
	int rc;

	if (system_tables_schema(executor->config->default_keyspace_rf, &system, err) != 0)
		return -1;
	rc = schema_sync_put(executor, system, err);
	/* The schema is in SSTables and in the commit log: its own tables are replayed first. */
	if (rc == 0)
		rc = store_replay_local(executor->store, err);
	if (rc == 0)
		rc = schema_tables_load(executor, system, &schema, err);
	if (rc != 0) {
		schema_unref(system);
		return -1;
	}
	rc = schema_sync_put(executor, schema, err);
	if (rc == 0 && !executor->config->autocompaction_on_startup_enabled)
		schema_hold_compactions(executor);
	if (rc == 0)
		rc = system_local_load_host_id(executor, err);
	if (rc == 0)
		rc = system_local_load_truncated(executor, err);
	if (rc == 0)
		rc = store_replay(executor->store, err);
	schema_unref(schema);
	if (rc == 0)
		rc = schema_save_system(executor, system, err);
	schema_unref(system);
	return rc;
}

/* ---- USE, TRUNCATE ------------------------------------------------------------------------- */

void
use_execute(struct execution *execution)
{
	struct slice name = ast_slice(execution->plan->statement->use);
	struct schema *schema = schema_holder_get(&execution->executor->schema);
	bool is_there = schema_keyspace(schema, name) != NULL;
	struct error err;

	schema_unref(schema);
	if (execution->client != NULL && !execution->executor->config->use_statements_enabled) {
		error_set(&err, ERROR_INVALID,
		    "USE statements prohibited. (see use_statements_enabled in cassandra.yaml)");
		execution_done(execution, &err);
		return;
	}
	if (!is_there) {
		error_set(&err, ERROR_INVALID, "Keyspace '%.*s' does not exist", (int)name.size,
		    (const char *)name.data);
		execution_done(execution, &err);
		return;
	}
	if (execution->request != NULL)
		atomic_store_explicit(&execution->request->client->keyspace,
		    executor_intern(execution->executor, name), memory_order_release);
	execution_begin_result(execution);
	response_put_set_keyspace(execution->out, name);
	execution_done(execution, NULL);
}

static int
truncate_record(
    void *context, struct table_store *table, struct commitlog_position position, struct error *err)
{
	return system_local_set_truncated(context, table_store_id(table), position, err);
}

/* The table that a TRUNCATE names; one reference. */
static int
truncate_table(struct execution *execution, const struct table_metadata **out, struct error *err)
{
	const struct keyspace_metadata *keyspace;
	const struct table_metadata *table;
	struct schema *schema = schema_holder_get(&execution->executor->schema);
	int rc;

	rc = prepare_table(schema, execution->keyspace, &execution->plan->statement->drop.name,
	    &keyspace, &table, err);
	if (rc == 0 && table->is_view)
		rc = error_set(err, ERROR_INVALID,
		    "Cannot TRUNCATE materialized view directly; must truncate base table instead");
	if (rc == 0 && table->is_virtual)
		rc = error_set(err, ERROR_INVALID, "Truncation is not supported by table %.*s.%.*s",
		    (int)table->keyspace.size, table->keyspace.data, (int)table->name.size,
		    table->name.data);
	if (rc == 0)
		*out = table_ref(table);
	schema_unref(schema);
	return rc;
}

int
executor_truncate(struct executor *executor, const struct table_metadata *table, struct error *err)
{
	struct table_store *store;
	int rc = 0;

	lock_take(&executor->ddl_lock);
	store = store_table(executor->store, table);
	if (store != NULL)
		rc = store_truncate(executor->store, store, truncate_record, executor, err);
	lock_drop(&executor->ddl_lock);
	if (rc != 0) {
		error_prefix(err, "Error during truncate");
		if (err != NULL)
			err->code = ERROR_TRUNCATE;
	}
	return rc;
}

struct truncate_run {
	struct coordinator_truncate truncate; /* first */
	struct execution *execution;
};

static void
truncate_done(struct coordinator_truncate *truncate, const struct error *err)
{
	struct truncate_run *run = (struct truncate_run *)truncate;
	struct execution *execution = run->execution;

	table_unref(truncate->table);
	execution->worker = truncate->worker;
	if (err != NULL)
		execution_done(execution, err);
	else
		execution_done_void(execution);
}

/* Local keyspaces are this node's own, whatever the ring is. */
static bool
truncate_is_local(const struct executor *executor, const struct table_metadata *table)
{
	return coordinator_is_alone(executor->coordinator) ||
	    schema_is_local_keyspace(table->keyspace);
}

void
truncate_execute(struct execution *execution)
{
	struct executor *executor = execution->executor;
	struct truncate_run *run = arena_zalloc(execution->arena, sizeof(*run));
	const struct table_metadata *table = NULL;
	struct error err;
	int rc;

	if (run == NULL)
		rc = error_set(&err, ERROR_NO_MEMORY, "no memory for a TRUNCATE");
	else if (guardrail_check_switch(execution, GUARDRAIL_DROP_TRUNCATE_TABLE, NULL, &err) != 0)
		rc = -1;
	else
		rc = truncate_table(execution, &table, &err);
	if (rc != 0) {
		execution_done(execution, &err);
		return;
	}
	run->execution = execution;
	run->truncate = (struct coordinator_truncate){.table = table,
	    .on_done = truncate_done,
	    .worker = execution->worker,
	    .trace = tracing_of(execution)};
	if (!truncate_is_local(executor, table)) {
		coordinator_truncate(executor->coordinator, &run->truncate);
		return;
	}
	rc = executor_truncate(executor, table, &err);
	truncate_done(&run->truncate, rc == 0 ? NULL : &err);
}
