/* SPDX-License-Identifier: Apache-2.0 */
#include "server/internal_query.h"
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "server/execution.h"
#include "server/modification.h"

enum {
	INTERNAL_ARENA_BLOCK = 16 << 10,
	INTERNAL_PLANS_MAX = 256, /* texts that are put together at run time are not all kept */
};

/* The plan of a text of the server's own; *out has a reference. */
static int
internal_plan(
    struct executor *executor, const char *cql, struct prepared_statement **out, struct error *err)
{
	struct slice text = slice_of_string(cql);
	struct prepared_statement *plan;
	struct schema *schema;
	int rc;

	lock_take(&executor->plans_lock);
	plan = map_get(&executor->internal_plans, text);
	if (plan != NULL)
		prepared_statement_ref(plan);
	lock_drop(&executor->plans_lock);
	if (plan != NULL) {
		*out = plan;
		return 0;
	}
	schema = schema_holder_get(&executor->schema);
	rc = prepare_statement(schema, slice_null, text, &plan, err);
	schema_unref(schema);
	if (rc != 0)
		return -1;
	lock_take(&executor->plans_lock);
	if (executor->internal_plans.count < INTERNAL_PLANS_MAX &&
	    map_get(&executor->internal_plans, text) == NULL)
		map_put(&executor->internal_plans, plan->query, prepared_statement_ref(plan));
	lock_drop(&executor->plans_lock);
	*out = plan;
	return 0;
}

struct internal_call {
	pthread_mutex_t mutex;
	pthread_cond_t done_cond;
	bool is_done;
	bool has_error;
	struct error err;
};

static void
internal_done(struct execution *execution, const struct error *err)
{
	struct internal_call *call = execution->context;

	pthread_mutex_lock(&call->mutex);
	call->has_error = err != NULL;
	if (err != NULL)
		call->err = *err;
	call->is_done = true;
	pthread_cond_signal(&call->done_cond);
	pthread_mutex_unlock(&call->mutex);
}

static int
internal_wait(struct internal_call *call, struct error *err)
{
	pthread_mutex_lock(&call->mutex);
	while (!call->is_done)
		pthread_cond_wait(&call->done_cond, &call->mutex);
	pthread_mutex_unlock(&call->mutex);
	pthread_cond_destroy(&call->done_cond);
	pthread_mutex_destroy(&call->mutex);
	if (!call->has_error)
		return 0;
	if (err != NULL)
		*err = call->err;
	return -1;
}

static int
internal_run(struct executor *executor, enum consistency level, const char *cql,
    const struct slice *values, uint32_t count, struct buffer *out, struct error *err)
{
	struct internal_call call = {.is_done = false};
	struct query_options options = {.consistency = level,
	    .serial_consistency = CONSISTENCY_SERIAL,
	    .skip_metadata = true,
	    .page_size = -1,
	    .paging_state = slice_null,
	    .keyspace = slice_null};
	struct execution execution;
	struct arena arena;
	int rc;

	arena_init(&arena, INTERNAL_ARENA_BLOCK);
	execution_init(&execution, executor, &arena, out);
	rc = internal_plan(executor, cql, &execution.plan, err);
	if (rc == 0) {
		options.values.count = count;
		options.values.values = arena_calloc(&arena, count, sizeof(struct bound_value));
		for (uint32_t i = 0; options.values.values != NULL && i < count; i++)
			options.values.values[i].value = values[i];
		rc = execution_bind(&execution, &options, err);
		if (rc != 0)
			prepared_statement_unref(execution.plan);
	}
	if (rc == 0) {
		pthread_mutex_init(&call.mutex, NULL);
		pthread_cond_init(&call.done_cond, NULL);
		execution.done = internal_done;
		execution.context = &call;
		execution_run(&execution);
		rc = internal_wait(&call, err);
	}
	arena_fini(&arena);
	return rc;
}

static int
internal_execute_at(struct executor *executor, enum consistency level, const char *cql,
    const struct slice *values, uint32_t count, struct error *err)
{
	struct buffer out;
	int rc;

	buffer_init(&out);
	rc = internal_run(executor, level, cql, values, count, &out, err);
	buffer_fini(&out);
	return rc;
}

int
internal_execute(struct executor *executor, const char *cql, const struct slice *values,
    uint32_t count, struct error *err)
{
	return internal_execute_at(executor, CONSISTENCY_ONE, cql, values, count, err);
}

int
internal_execute_any(struct executor *executor, const char *cql, const struct slice *values,
    uint32_t count, struct error *err)
{
	return internal_execute_at(executor, CONSISTENCY_ANY, cql, values, count, err);
}

/* ---- Batches --------------------------------------------------------------------------------- */

struct internal_batch {
	struct arena arena; /* values, and all that the execution makes */
	struct buffer out;
	struct execution execution;
	struct mutation_set set;
	struct prepared_statement **plans; /* owned; a reference each */
	uint32_t plan_count;
	int64_t timestamp; /* of all of them; TIMESTAMP_NONE: the clock's, each its own */
};

struct internal_batch *
internal_batch_new(struct executor *executor)
{
	struct internal_batch *batch = xzalloc(sizeof(*batch));

	arena_init(&batch->arena, INTERNAL_ARENA_BLOCK);
	buffer_init(&batch->out);
	execution_init(&batch->execution, executor, &batch->arena, &batch->out);
	batch->set.arena = &batch->arena;
	batch->timestamp = TIMESTAMP_NONE;
	return batch;
}

struct internal_batch *
internal_batch_new_at(struct executor *executor, int64_t timestamp)
{
	struct internal_batch *batch = internal_batch_new(executor);

	batch->timestamp = timestamp;
	return batch;
}

void
internal_batch_free(struct internal_batch *batch)
{
	if (batch == NULL)
		return;
	for (uint32_t i = 0; i < batch->plan_count; i++)
		prepared_statement_unref(batch->plans[i]);
	free(batch->plans);
	buffer_fini(&batch->out);
	arena_fini(&batch->arena);
	free(batch);
}

static struct prepared_statement *
internal_batch_prepare(struct internal_batch *batch, const char *cql, struct error *err)
{
	struct prepared_statement *plan;

	if (internal_plan(batch->execution.executor, cql, &plan, err) != 0)
		return NULL;
	batch->plans = xrealloc(batch->plans, (batch->plan_count + 1) * sizeof(*batch->plans));
	batch->plans[batch->plan_count++] = plan;
	return plan;
}

int
internal_batch_add(struct internal_batch *batch, const char *cql, const struct slice *values,
    uint32_t count, struct error *err)
{
	struct execution *execution = &batch->execution;
	struct query_options *options = arena_zalloc(&batch->arena, sizeof(*options));
	struct bound_value *bound = arena_calloc(&batch->arena, count, sizeof(*bound));
	struct modification *modification = arena_zalloc(&batch->arena, sizeof(*modification));
	struct prepared_statement *plan;

	if (options == NULL || bound == NULL || modification == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for '%s'", cql);
	plan = internal_batch_prepare(batch, cql, err);
	if (plan == NULL)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		bound[i].value = arena_copy(&batch->arena, values[i]);
	options->consistency = CONSISTENCY_ONE;
	options->serial_consistency = CONSISTENCY_SERIAL;
	options->values = (struct bound_values){count, bound, NULL};
	execution->plan = plan;
	if (execution_bind(execution, options, err) != 0)
		return -1;
	/* The clock hands out each microsecond once. */
	execution->timestamp = batch->timestamp;
	*modification = (struct modification){.plan = plan->modification,
	    .terms = execution->terms,
	    .timestamp = execution_timestamp(execution),
	    .now_seconds = execution->now_seconds};
	if (modification_begin(modification, execution, err) != 0)
		return -1;
	return modification_collect(modification, execution, &batch->set, err);
}

/* Write and wait. */
static int
internal_write(struct execution *execution, struct mutation *mutations, uint32_t count,
    const struct keyspace_metadata *keyspace, struct error *err)
{
	struct internal_call call = {.is_done = false};

	pthread_mutex_init(&call.mutex, NULL);
	pthread_cond_init(&call.done_cond, NULL);
	execution->plan = NULL; /* all of them are the caller's */
	execution->done = internal_done;
	/* cppcheck-suppress autoVariables ; internal_wait() returns when nobody uses it any more */
	execution->context = &call;
	execution_write(execution, mutations, count, keyspace, WRITE_UNLOGGED_BATCH);
	return internal_wait(&call, err);
}

int
internal_batch_run(struct internal_batch *batch, struct error *err)
{
	struct mutation *mutations;

	if (batch->set.count == 0)
		return 0;
	if (mutation_set_finish(&batch->set, &mutations, err) != 0)
		return -1;
	return internal_write(
	    &batch->execution, mutations, batch->set.count, batch->set.entries[0].keyspace, err);
}

int
internal_batch_encode(struct internal_batch *batch, struct buffer *out, struct error *err)
{
	struct mutation *mutations;

	if (batch->set.count == 0)
		return 0;
	if (mutation_set_finish(&batch->set, &mutations, err) != 0)
		return -1;
	for (uint32_t i = 0; i < batch->set.count; i++) {
		size_t at = out->size;

		buffer_put_u32(out, 0);
		mutation_encode(&mutations[i], out);
		if (!out->is_failed)
			buffer_patch_u32(out, at, (uint32_t)(out->size - at - 4));
	}
	return buffer_check(out, err) == 0 ? (int)batch->set.count : -1;
}

int
internal_apply(struct executor *executor, struct mutation *mutations, uint32_t count,
    const struct keyspace_metadata *keyspace, struct error *err)
{
	struct query_options options = {.consistency = CONSISTENCY_ONE,
	    .serial_consistency = CONSISTENCY_SERIAL,
	    .paging_state = slice_null,
	    .keyspace = slice_null};
	struct execution execution;
	struct buffer out;
	struct arena arena;
	int rc;

	arena_init(&arena, INTERNAL_ARENA_BLOCK);
	buffer_init(&out);
	execution_init(&execution, executor, &arena, &out);
	execution.options = &options;
	rc = internal_write(&execution, mutations, count, keyspace, err);
	buffer_fini(&out);
	arena_fini(&arena);
	return rc;
}

int
internal_select(struct executor *executor, const char *cql, const struct slice *values,
    uint32_t count, struct internal_rows *out, struct error *err)
{
	return internal_select_at(executor, CONSISTENCY_ONE, cql, values, count, out, err);
}

int
internal_select_at(struct executor *executor, enum consistency level, const char *cql,
    const struct slice *values, uint32_t count, struct internal_rows *out, struct error *err)
{
	buffer_init(&out->cells);
	if (internal_run(executor, level, cql, values, count, &out->cells, err) != 0) {
		buffer_fini(&out->cells);
		return -1;
	}
	/* Kind, flags (no metadata), columns, rows; then the cells. */
	out->reader = reader_of(buffer_slice(&out->cells));
	reader_skip(&out->reader, 8);
	out->column_count = reader_u32(&out->reader);
	out->left = reader_u32(&out->reader);
	if (out->reader.is_failed || out->column_count > INTERNAL_COLUMNS_MAX) {
		buffer_fini(&out->cells);
		return error_set(err, ERROR_SERVER, "cannot read the result of '%s'", cql);
	}
	return 0;
}

bool
internal_rows_next(struct internal_rows *rows, struct slice *cells)
{
	if (rows->left == 0)
		return false;
	rows->left--;
	for (uint32_t i = 0; i < rows->column_count; i++) {
		int32_t size = (int32_t)reader_u32(&rows->reader);

		cells[i] = size < 0 ? slice_null : reader_bytes(&rows->reader, (size_t)size);
	}
	return !rows->reader.is_failed;
}

void
internal_rows_fini(struct internal_rows *rows)
{
	buffer_fini(&rows->cells);
}

/* ---- Prepared statements ------------------------------------------------------------------- */

void
internal_save_prepared(struct executor *executor, const struct prepared_statement *plan)
{
	struct slice values[3] = {
	    slice_of(plan->id, sizeof(plan->id)), plan->keyspace, plan->query};
	struct error err;

	if (internal_execute(executor,
		"INSERT INTO system.prepared_statements (prepared_id, logged_keyspace, "
		"query_string) "
		"VALUES (?, ?, ?)",
		values, 3, &err) != 0)
		log_warn("a prepared statement could not be saved: %s", err.text);
}

int
internal_load_prepared(struct executor *executor, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct prepared_statement *plan;
	struct internal_rows rows;
	struct error failed;
	unsigned count = 0;

	if (internal_select(executor,
		"SELECT prepared_id, logged_keyspace, query_string FROM system.prepared_statements",
		NULL, 0, &rows, err) != 0)
		return -1;
	while (internal_rows_next(&rows, cells)) {
		if (slice_is_null(cells[2]))
			continue;
		if (executor_prepare(executor, cells[1], cells[2], &plan, &failed) != 0) {
			/* Its table is gone, or has changed: nobody can use it any more. */
			if (internal_execute(executor,
				"DELETE FROM system.prepared_statements WHERE prepared_id = ?",
				&cells[0], 1, &failed) != 0)
				log_warn(
				    "a prepared statement could not be removed: %s", failed.text);
			continue;
		}
		prepared_statement_unref(plan);
		count++;
	}
	internal_rows_fini(&rows);
	if (count > 0)
		log_info("%u prepared statements loaded", count);
	return 0;
}
