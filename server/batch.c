/* SPDX-License-Identifier: Apache-2.0 */
#include "server/batch.h"
#include "base/hash.h"
#include "server/batchlog.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/denylist.h"
#include "server/guardrails.h"
#include "server/tracing.h"

enum { BATCH_TABLES_NAMED = 16 };

static int
batch_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a batch");
}

int
batch_check(enum ast_batch_kind kind, const struct modification_plan *const *statements,
    uint32_t count, bool has_timestamp, struct error *err)
{
	bool has_counters = false, has_others = false, has_conditions = false;
	bool has_own_timestamp = false;

	for (uint32_t i = 0; i < count; i++) {
		if (table_is_counter(statements[i]->table))
			has_counters = true;
		else
			has_others = true;
		has_conditions = has_conditions || statements[i]->is_conditional;
		has_own_timestamp = has_own_timestamp || statements[i]->timestamp != NULL;
	}
	if (has_timestamp && has_own_timestamp)
		return error_set(err, ERROR_INVALID,
		    "Timestamp must be set either on BATCH or individual statements");
	if (has_timestamp && has_conditions)
		return error_set(
		    err, ERROR_INVALID, "Cannot provide custom timestamp for conditional BATCH");
	if (has_timestamp && kind == AST_BATCH_COUNTER)
		return error_set(
		    err, ERROR_INVALID, "Cannot provide custom timestamp for counter BATCH");
	if (kind == AST_BATCH_COUNTER && has_others)
		return error_set(
		    err, ERROR_INVALID, "Cannot include non-counter statement in a counter batch");
	if (kind != AST_BATCH_COUNTER && has_counters && has_others)
		return error_set(err, ERROR_INVALID,
		    "Counter and non-counter mutations cannot exist in the same batch");
	if (kind == AST_BATCH_LOGGED && has_counters)
		return error_set(
		    err, ERROR_INVALID, "Cannot include a counter statement in a logged batch");
	if (!has_conditions)
		return 0;
	for (uint32_t i = 1; i < count; i++) {
		if (statements[i]->table != statements[0]->table)
			return error_set(err, ERROR_INVALID,
			    "Batch with conditions cannot span multiple tables");
	}
	for (uint32_t i = 0; i < count; i++) {
		if (statements[i]->timestamp != NULL)
			return error_set(err, ERROR_INVALID,
			    "Cannot provide custom timestamp for conditional updates");
	}
	return 0;
}

int
batch_prepare(struct preparation *preparation, const struct statement *statement,
    struct prepared_statement *plan, struct error *err)
{
	const struct statement_batch *raw = &statement->batch;
	struct batch_plan *batch = arena_zalloc(preparation->arena, sizeof(*batch));
	struct column_spec timestamp = {
	    slice_empty, slice_empty, slice_of_string("[timestamp]"), type_native(TYPE_BIGINT)};
	bool is_one_table = true;

	if (batch == NULL)
		return batch_no_memory(err);
	batch->kind = raw->kind;
	batch->count = (uint32_t)raw->statement_count;
	batch->statements =
	    arena_calloc(preparation->arena, raw->statement_count, sizeof(*batch->statements));
	if (batch->statements == NULL)
		return batch_no_memory(err);
	if (raw->attributes.ttl != NULL)
		return error_set(
		    err, ERROR_INVALID, "Global TTL on the BATCH statement is not supported.");
	if (raw->attributes.timestamp != NULL &&
	    term_prepare(
		preparation, raw->attributes.timestamp, &timestamp, &batch->timestamp, err) != 0)
		return -1;
	for (uint32_t i = 0; i < batch->count; i++) {
		if (modification_prepare(
			preparation, raw->statements[i], plan, &batch->statements[i], err) != 0)
			return -1;
		is_one_table =
		    is_one_table && batch->statements[i]->table == batch->statements[0]->table;
	}
	if (batch->count > 0)
		plan->keyspace_metadata = batch->statements[0]->keyspace;
	if (batch->count > 0 && is_one_table)
		plan->key_index_count =
		    restrictions_key_markers(&batch->statements[batch->count - 1]->restrictions,
			preparation->arena, &plan->key_indexes);
	plan->batch = batch;
	/* A logged batch may wait for the batchlog, which is nothing for a loop. */
	plan->stage =
	    raw->kind == AST_BATCH_LOGGED ? REQUEST_STAGE_REQUEST : REQUEST_STAGE_MUTATION;
	for (uint32_t i = 0; i < batch->count; i++) {
		if (table_is_counter(batch->statements[i]->table))
			plan->stage = REQUEST_STAGE_COUNTER;
	}
	return batch_check(raw->kind, (const struct modification_plan *const *)batch->statements,
	    batch->count, batch->timestamp != NULL, err);
}

/* ---- Execution ----------------------------------------------------------------------------- */

/* "[ks.a, ks.b]"; of very many tables the first. */
static void
batch_table_names(const struct mutation *mutations, uint32_t count, struct buffer *out)
{
	const struct table_metadata *tables[BATCH_TABLES_NAMED];
	uint32_t known = 0;

	buffer_put_u8(out, '[');
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < mutations[i].update_count; j++) {
			const struct table_metadata *table = mutations[i].updates[j].table;
			uint32_t n = 0;

			while (n < known && tables[n] != table)
				n++;
			if (n < known || known == BATCH_TABLES_NAMED)
				continue;
			tables[known++] = table;
			buffer_printf(out, "%s%.*s.%.*s", n > 0 ? ", " : "",
			    (int)table->keyspace.size, table->keyspace.data, (int)table->name.size,
			    table->name.data);
		}
	}
	buffer_put_u8(out, ']');
}

/* Too big: a warning, or an error (BatchStatement.verifyBatchSize). One mutation is exempt. */
static int
batch_check_size(struct execution *execution, const struct mutation *mutations, uint32_t count,
    struct error *err)
{
	const struct config *config = execution->executor->config;
	size_t warn = (size_t)config->batch_size_warn_threshold;
	size_t fail = (size_t)config->batch_size_fail_threshold;
	struct buffer names;
	size_t size = 0;
	int rc = 0;

	if (count <= 1)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		size += mutation_data_size(&mutations[i]);
	if (size <= warn)
		return 0;
	buffer_init(&names);
	batch_table_names(mutations, count, &names);
	if (size > fail)
		rc = error_set(err, ERROR_INVALID, "Batch too large");
	else
		execution_warn(execution,
		    "Batch for %.*s is of size %zu, exceeding specified threshold of %zu by %zu.",
		    (int)names.size, (const char *)names.data, size, warn, size - warn);
	buffer_fini(&names);
	return rc;
}

/* An unlogged batch over many partitions gains nothing (verifyBatchType). */
static void
batch_check_spread(struct execution *execution, const struct mutation *mutations, uint32_t count)
{
	uint32_t threshold =
	    (uint32_t)execution->executor->config->unlogged_batch_across_partitions_warn_threshold;
	struct buffer names;

	if (count <= threshold)
		return;
	buffer_init(&names);
	batch_table_names(mutations, count, &names);
	execution_warn(execution,
	    "Unlogged batch covering %u partitions detected against table%s %.*s. You should use a "
	    "logged batch for atomicity, or asynchronous writes for performance.",
	    count, memchr(names.data, ',', names.size) != NULL ? "s" : "", (int)names.size,
	    (const char *)names.data);
	buffer_fini(&names);
}

static int
batch_collect(struct execution *execution, struct modification *modifications, uint32_t count,
    struct mutation_set *set, struct table_locks_set *held, struct error *err)
{
	bool needs_read = false;

	for (uint32_t i = 0; i < count; i++) {
		struct slice *keys;
		uint32_t key_count;

		if (modification_begin(&modifications[i], execution, err) != 0)
			return -1;
		if (!modifications[i].plan->needs_read)
			continue;
		needs_read = true;
		if (modification_keys(&modifications[i], &keys, &key_count, err) != 0)
			return -1;
		for (uint32_t j = 0; j < key_count; j++)
			table_locks_set_add(held, murmur3_token(keys[j]));
	}
	if (needs_read)
		table_locks_take_set(&execution->executor->cas_locks, held);
	for (uint32_t i = 0; i < count; i++) {
		if (modification_collect(&modifications[i], execution, set, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- Logged batches ------------------------------------------------------------------------ */

struct batch_logged {
	struct coordinator_write write; /* first */
	struct execution *execution;
	struct uuid id;
	struct batchlog_entry entry; /* over a ring */
	struct task task;
};

static void
batch_logged_done(struct coordinator_write *write, const struct error *err)
{
	struct batch_logged *logged = (struct batch_logged *)write;
	struct execution *execution = logged->execution;

	execution->worker = write->worker;
	if (err != NULL) {
		/* It stays in the batchlog, whose replay writes it. */
		execution_done(execution, err);
		return;
	}
	if (logged->entry.peer_count > 0)
		batchlog_remove_from(
		    execution->executor, &logged->entry, &logged->id, write->worker);
	else
		batchlog_remove(execution->executor, &logged->id);
	execution_done_void(execution);
}

/* Two nodes have it. */
static void
batch_logged_write(struct task *task, struct worker *worker)
{
	struct batch_logged *logged =
	    (struct batch_logged *)((char *)task - offsetof(struct batch_logged, task));

	logged->write.worker = worker;
	coordinator_write(logged->execution->executor->coordinator, &logged->write);
}

static void
batch_logged_stored(struct batchlog_entry *entry, const struct error *err, struct worker *worker)
{
	struct batch_logged *logged =
	    (struct batch_logged *)((char *)entry - offsetof(struct batch_logged, entry));
	struct execution *execution = logged->execution;
	struct error full;

	/* Maybe a network loop: writing is for a stage. */
	logged->task = (struct task){.run = batch_logged_write};
	if (err == NULL &&
	    !cluster_submit(
		execution->executor->node->cluster->env, CLUSTER_STAGE_MUTATION, &logged->task)) {
		error_set(&full, ERROR_OVERLOADED, "the mutation stage is full");
		err = &full;
	}
	if (err == NULL)
		return;
	execution->worker = worker;
	execution_done(execution, err);
}

static int
batch_write_logged(struct execution *execution, struct mutation *mutations, uint32_t count,
    const struct keyspace_metadata *keyspace, struct error *err)
{
	struct batch_logged *logged = arena_zalloc(execution->arena, sizeof(*logged));

	struct executor *executor = execution->executor;
	bool is_alone = coordinator_is_alone(executor->coordinator);

	if (logged == NULL)
		return batch_no_memory(err);
	if (is_alone && batchlog_store(executor, mutations, count, &logged->id, err) != 0)
		return -1;
	logged->execution = execution;
	logged->write.mutations = mutations;
	logged->write.mutation_count = count;
	logged->write.keyspace = keyspace;
	logged->write.consistency = execution->options->consistency;
	logged->write.type = WRITE_BATCH;
	logged->write.on_done = batch_logged_done;
	logged->write.arena = execution->arena;
	logged->write.worker = execution->worker;
	logged->write.trace = logged->entry.trace = tracing_of(execution);
	if (is_alone) {
		coordinator_write(executor->coordinator, &logged->write);
		return 0;
	}
	logged->entry.on_done = batch_logged_stored;
	return batchlog_store_at(executor, mutations, count, &logged->id, &logged->entry,
	    logged->write.consistency == CONSISTENCY_ANY, execution->worker, err);
}

/* A batch that begins again once rows have been read for it. */
struct batch_again {
	enum ast_batch_kind kind;
	struct modification *modifications; /* as they came */
	uint32_t count;
};

static void
batch_run_again(struct execution *execution, void *context, const struct error *err)
{
	struct batch_again *again = context;

	if (err != NULL) {
		execution_done(execution, err);
		return;
	}
	batch_run(execution, again->kind, again->modifications, again->count);
}

/* Keep what running changes; NULL without memory. */
static struct batch_again *
batch_keep(struct execution *execution, enum ast_batch_kind kind,
    const struct modification *modifications, uint32_t count)
{
	struct batch_again *again = arena_zalloc(execution->arena, sizeof(*again));

	if (again == NULL)
		return NULL;
	again->kind = kind;
	again->count = count;
	again->modifications = arena_calloc(execution->arena, count, sizeof(*again->modifications));
	if (again->modifications == NULL)
		return NULL;
	memcpy(again->modifications, modifications, count * sizeof(*modifications));
	return again;
}

void
batch_run(struct execution *execution, enum ast_batch_kind kind, struct modification *modifications,
    uint32_t count)
{
	struct table_locks *locks = &execution->executor->cas_locks;
	struct table_locks_set held = {{0}};
	struct mutation_set set = {.arena = execution->arena};
	struct mutation *mutations = NULL;
	bool is_conditional = false, is_counter = false, needs_read = false;
	struct batch_again *again = NULL;
	struct error err;
	int rc = 0;

	if (guardrail_check_write(execution, modifications, count, &err) != 0 ||
	    denylist_check_write(execution, modifications, count, &err) != 0) {
		execution_done(execution, &err);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		needs_read = needs_read || modifications[i].plan->needs_read;
		is_conditional = is_conditional || modifications[i].plan->is_conditional;
		is_counter = is_counter || table_is_counter(modifications[i].plan->table);
	}
	if (is_conditional) {
		cas_execute(execution, modifications, count);
		return;
	}
	if (needs_read) {
		again = batch_keep(execution, kind, modifications, count);
		if (again == NULL)
			rc = batch_no_memory(&err);
	}
	if (count > 0 && rc == 0)
		rc = execution_check_write_consistency(
		    execution, modifications[0].plan->table, &err);
	if (rc == 0)
		rc = batch_collect(execution, modifications, count, &set, &held, &err);
	if (rc == 0)
		rc = mutation_set_finish(&set, &mutations, &err);
	if (rc == 0)
		rc = batch_check_size(execution, mutations, set.count, &err);
	if (rc == 0) {
		histogram_add(&execution->executor->node->metrics
				   .batch_partitions[is_counter       ? METRICS_BATCH_COUNTER
					   : kind == AST_BATCH_LOGGED ? METRICS_BATCH_LOGGED
								      : METRICS_BATCH_UNLOGGED],
		    set.count);
		if (kind == AST_BATCH_UNLOGGED && !is_counter)
			batch_check_spread(execution, mutations, set.count);
		if (!is_counter && kind == AST_BATCH_LOGGED && set.count > 1)
			rc = batch_write_logged(
			    execution, mutations, set.count, set.entries[0].keyspace, &err);
		else
			execution_write(execution, mutations, set.count,
			    set.count > 0 ? set.entries[0].keyspace : NULL,
			    is_counter                     ? WRITE_COUNTER
				: kind == AST_BATCH_LOGGED ? WRITE_BATCH
							   : WRITE_UNLOGGED_BATCH);
	}
	table_locks_drop_set(locks, &held);
	if (rc != 0 && again != NULL && execution_wants_rows(execution))
		execution_read_rows(
		    execution, execution->options->consistency, batch_run_again, again);
	else if (rc != 0)
		execution_done(execution, &err);
}

void
batch_execute(struct execution *execution)
{
	const struct batch_plan *batch = execution->plan->batch;
	struct modification *modifications =
	    arena_calloc(execution->arena, batch->count, sizeof(*modifications));
	int64_t timestamp = execution_timestamp(execution);
	struct slice value;
	struct error err;
	bool is_unset;

	if (modifications == NULL) {
		batch_no_memory(&err);
		execution_done(execution, &err);
		return;
	}
	if (batch->timestamp != NULL) {
		if (term_eval(batch->timestamp, &execution->terms, &value, &is_unset, &err) != 0) {
			execution_done(execution, &err);
			return;
		}
		if (!is_unset && (slice_is_null(value) || value.size != 8)) {
			error_set(&err, ERROR_INVALID, "Invalid null value of timestamp");
			execution_done(execution, &err);
			return;
		}
		if (!is_unset)
			timestamp = (int64_t)load_u64(value.data);
	}
	for (uint32_t i = 0; i < batch->count; i++)
		modifications[i] = (struct modification){.plan = batch->statements[i],
		    .terms = execution->terms,
		    .timestamp = timestamp,
		    .now_seconds = execution->now_seconds};
	batch_run(execution, batch->kind, modifications, batch->count);
}
