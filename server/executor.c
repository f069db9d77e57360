/* SPDX-License-Identifier: Apache-2.0 */
#include "server/executor.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <stdio.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "server/batch.h"
#include "server/execution.h"
#include "server/internal_query.h"
#include "server/modification.h"
#include "server/node.h"
#include "server/schema_change.h"
#include "server/system_local.h"
#include "server/tracing.h"

enum {
	EXECUTOR_DDL_LOCK_RANK = 10,
	EXECUTOR_NAMES_LOCK_RANK = 60,
	EXECUTOR_PLANS_LOCK_RANK = 70,
	EXECUTOR_PREPARED_BYTES_MIN = 10 << 20,
};

/* ---- Life ---------------------------------------------------------------------------------- */

struct executor *
executor_new(struct node *node)
{
	struct executor *executor = xzalloc(sizeof(*executor));
	int64_t bytes = node->config->prepared_statements_cache_size;

	executor->node = node;
	executor->env = node->env;
	executor->store = node->store;
	executor->coordinator = node->coordinator;
	executor->config = node->config;
	schema_holder_init(&executor->schema);
	prepared_cache_init(
	    &executor->prepared, bytes > 0 ? (size_t)bytes : (size_t)EXECUTOR_PREPARED_BYTES_MIN);
	table_locks_init(&executor->cas_locks);
	lock_init(&executor->ddl_lock, "ddl", EXECUTOR_DDL_LOCK_RANK);
	lock_init(&executor->names_lock, "names", EXECUTOR_NAMES_LOCK_RANK);
	map_init(&executor->names);
	slow_reads_init(&executor->slow_reads, env_monotonic_ns(executor->env));
	lock_init(&executor->plans_lock, "internal_plans", EXECUTOR_PLANS_LOCK_RANK);
	map_init(&executor->internal_plans);
	/* The variant bits of a clock sequence, and a random node with the multicast bit set. */
	executor->uuid_node = env_random_u64(executor->env);
	executor->uuid_node =
	    (executor->uuid_node & UINT64_C(0x3fffffffffffffff)) | UINT64_C(0x8000010000000000);
	return executor;
}

int
executor_start(struct executor *executor, struct error *err)
{
	if (schema_start(executor, err) != 0)
		return -1;
	if (system_local_start(executor, err) != 0)
		return -1;
	return internal_load_prepared(executor, err);
}

void
executor_free(struct executor *executor)
{
	struct slice key;
	size_t cursor = 0;
	void *value;

	if (executor == NULL)
		return;
	prepared_cache_fini(&executor->prepared);
	schema_holder_fini(&executor->schema);
	table_locks_fini(&executor->cas_locks);
	while (map_next(&executor->names, &cursor, &key, &value))
		free(value);
	map_fini(&executor->names);
	lock_fini(&executor->names_lock);
	cursor = 0;
	while (map_next(&executor->internal_plans, &cursor, &key, &value))
		prepared_statement_unref(value);
	map_fini(&executor->internal_plans);
	lock_fini(&executor->plans_lock);
	slow_reads_fini(&executor->slow_reads);
	lock_fini(&executor->ddl_lock);
	free(executor);
}

void
executor_client_fini(struct executor *executor, struct client_state *client)
{
	(void)executor;
	client->executor_state = NULL;
}

const char *
executor_intern(struct executor *executor, struct slice name)
{
	char *found;

	lock_take(&executor->names_lock);
	found = map_get(&executor->names, name);
	if (found == NULL) {
		found = xstrndup((const char *)name.data, name.size);
		map_put(&executor->names, slice_of_string(found), found);
	}
	lock_drop(&executor->names_lock);
	return found;
}

/* ---- Time and chance ----------------------------------------------------------------------- */

/* Microseconds that never repeat: two writes of one node are never equally old. */
static int64_t
executor_next_timestamp(struct executor *executor, int64_t now)
{
	long long last = atomic_load_explicit(&executor->last_timestamp_us, memory_order_relaxed);
	long long next;

	do {
		next = now > last ? now : last + 1;
	} while (!atomic_compare_exchange_weak_explicit(
	    &executor->last_timestamp_us, &last, next, memory_order_relaxed, memory_order_relaxed));
	return next;
}

void
executor_next_timeuuid(struct executor *executor, uint8_t out[16])
{
	uint64_t now = uuid_ticks_of_unix_us(env_wall_us(executor->env));
	unsigned long long last = atomic_load_explicit(&executor->uuid_ticks, memory_order_relaxed);
	unsigned long long next;
	struct uuid uuid;

	do {
		next = now > last ? now : last + 1;
	} while (!atomic_compare_exchange_weak_explicit(
	    &executor->uuid_ticks, &last, next, memory_order_relaxed, memory_order_relaxed));
	uuid = uuid_from_time(next, executor->uuid_node);
	memcpy(out, uuid.bytes, sizeof(uuid.bytes));
}

static void
execution_next_timeuuid(void *user, uint8_t out[16])
{
	executor_next_timeuuid(user, out);
}

static void
execution_next_uuid(void *user, uint8_t out[16])
{
	struct executor *executor = user;
	uint8_t random[16];
	struct uuid uuid;

	env_random(executor->env, random, sizeof(random));
	uuid = uuid_from_random(random);
	memcpy(out, uuid.bytes, sizeof(uuid.bytes));
}

/* ---- Executions ---------------------------------------------------------------------------- */

void
execution_init(
    struct execution *execution, struct executor *executor, struct arena *arena, struct buffer *out)
{
	memset(execution, 0, offsetof(struct execution, warnings));
	execution->executor = executor;
	execution->arena = arena;
	execution->out = out;
	execution->version = PROTOCOL_VERSION_MAX;
	execution->keyspace = slice_null;
	execution->result_metadata_id = slice_null;
	execution->now_us = env_wall_us(executor->env);
	execution->now_seconds = execution->now_us / 1000000;
	execution->timestamp = TIMESTAMP_NONE;
	execution->functions = (struct function_context){.now_us = execution->now_us,
	    .next_timeuuid = execution_next_timeuuid,
	    .next_uuid = execution_next_uuid,
	    .user = executor};
	execution->terms = (struct term_context){
	    .functions = &execution->functions, .arena = arena, .execution = execution};
}

int64_t
execution_timestamp(struct execution *execution)
{
	if (execution->timestamp == TIMESTAMP_NONE)
		execution->timestamp =
		    executor_next_timestamp(execution->executor, execution->now_us);
	return execution->timestamp;
}

int
execution_bind_values(struct execution *execution, const struct bound_values *values,
    const struct column_spec *markers, uint32_t marker_count, struct error *err)
{
	struct bound_value *ordered;

	execution->terms.values = values->values;
	execution->terms.value_count = values->count;
	if (values->names == NULL) {
		if (values->count != marker_count)
			return error_set(err, ERROR_INVALID,
			    execution->message != NULL &&
				    execution->message->opcode == OPCODE_EXECUTE
				? "there were %u markers(?) in CQL but %u bound variables"
				: execution->message != NULL &&
				    execution->message->opcode == OPCODE_BATCH
				? "There were %u markers(?) in CQL but %u bound variables"
				: "Invalid amount of bind variables",
			    marker_count, values->count);
		return 0;
	}
	ordered = arena_calloc(execution->arena, marker_count, sizeof(*ordered));
	if (ordered == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for bound values");
	for (uint32_t i = 0; i < marker_count; i++) {
		uint32_t n = 0;

		while (n < values->count && !slice_equal(values->names[n], markers[i].name))
			n++;
		if (n == values->count)
			return error_set(err, ERROR_INVALID, "Invalid amount of bind variables");
		ordered[i] = values->values[n];
	}
	execution->terms.values = ordered;
	execution->terms.value_count = marker_count;
	return 0;
}

int
execution_bind(struct execution *execution, const struct query_options *options, struct error *err)
{
	execution->options = options;
	if (options->has_now_in_seconds)
		execution->now_seconds = options->now_in_seconds;
	if (options->has_timestamp)
		execution->timestamp = options->timestamp;
	if (execution->plan == NULL)
		return 0;
	return execution_bind_values(execution, &options->values, execution->plan->markers,
	    execution->plan->marker_count, err);
}

void
execution_warn(struct execution *execution, const char *format, ...)
{
	char text[2048];
	va_list arguments;
	struct slice copy;
	int size;

	if (execution->warning_count == EXECUTION_WARNINGS_MAX)
		return;
	va_start(arguments, format);
	size = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (size < 0)
		return;
	if ((size_t)size >= sizeof(text))
		size = sizeof(text) - 1;
	copy = arena_copy(execution->arena, slice_of(text, (size_t)size));
	if (!slice_is_null(copy))
		execution->warnings[execution->warning_count++] = copy;
}

void
execution_begin_result(struct execution *execution)
{
	if (execution->request == NULL)
		return;
	execution->response = response_begin(execution->out, execution->version,
	    execution->request->header.stream, OPCODE_RESULT, 0, NULL);
	execution->has_response = true;
}

/* The plans of a BATCH message: they live until the answer is given. */
struct executor_batch {
	struct prepared_statement **plans;
	uint32_t count;
};

static void
executor_batch_fini(struct executor_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++)
		prepared_statement_unref(batch->plans[i]);
}

static enum request_outcome
execution_outcome(enum error_code code)
{
	switch (code) {
	case ERROR_NONE:
		return REQUEST_OUTCOME_OK;
	case ERROR_READ_TIMEOUT:
	case ERROR_WRITE_TIMEOUT:
		return REQUEST_OUTCOME_TIMEOUT;
	case ERROR_UNAVAILABLE:
		return REQUEST_OUTCOME_UNAVAILABLE;
	default:
		return REQUEST_OUTCOME_FAILURE;
	}
}

static enum request_metric
execution_metric(const struct execution *execution)
{
	const struct prepared_statement *plan = execution->plan;

	if (execution->is_batch)
		return REQUEST_METRIC_WRITE;
	if (plan == NULL)
		return REQUEST_METRIC_NONE;
	switch (plan->kind) {
	case STATEMENT_SELECT:
		if (plan->stage == REQUEST_STAGE_RANGE)
			return REQUEST_METRIC_RANGE;
		return execution->options != NULL && plan->stage != REQUEST_STAGE_REQUEST &&
			consistency_is_serial(execution->options->consistency)
		    ? REQUEST_METRIC_CAS_READ
		    : REQUEST_METRIC_READ;
	case STATEMENT_INSERT:
	case STATEMENT_UPDATE:
	case STATEMENT_DELETE:
		return plan->is_conditional ? REQUEST_METRIC_CAS_WRITE : REQUEST_METRIC_WRITE;
	default:
		return REQUEST_METRIC_NONE;
	}
}

/* What goes in front of the body: the trace's id and the warnings. */
static void
execution_put_prefix(struct execution *execution, uint8_t tracing_id[16])
{
	struct response_prefix prefix = {0};

	/* Who did not ask (settraceprobability) is not told. */
	if (execution->tracing != NULL && execution->message != NULL &&
	    execution->message->is_traced) {
		tracing_id_of(execution->tracing, tracing_id);
		prefix.tracing_id = tracing_id;
	}
	prefix.warnings = execution->warnings;
	prefix.warning_count = execution->warning_count;
	if (prefix.tracing_id != NULL || prefix.warning_count > 0)
		response_insert_prefix(&execution->response, &prefix);
}

/* A failure names the replicas that failed; where nobody did, it was this node, the only one. */
static void
execution_put_error(struct execution *execution, const struct error *err)
{
	struct replica_failure failure = {.reason = err->reason}, failures[ERROR_REPLICAS_MAX];
	const char *address = execution->executor->config->listen_address;

	if (err->code != ERROR_READ_FAILURE && err->code != ERROR_WRITE_FAILURE) {
		response_put_error(execution->out, execution->version, err, NULL, 0);
		return;
	}
	for (uint32_t i = 0; i < err->replica_count; i++) {
		failures[i] =
		    (struct replica_failure){.address.size = err->replicas[i].address_size,
			.address.port = err->replicas[i].port,
			.reason = err->replicas[i].reason};
		memcpy(failures[i].address.bytes, err->replicas[i].address,
		    sizeof(failures[i].address.bytes));
	}
	if (err->replica_count > 0) {
		response_put_error(
		    execution->out, execution->version, err, failures, err->replica_count);
		return;
	}
	if (inet_pton(AF_INET, address, failure.address.bytes) == 1)
		failure.address.size = 4;
	else if (inet_pton(AF_INET6, address, failure.address.bytes) == 1)
		failure.address.size = 16;
	response_put_error(
	    execution->out, execution->version, err, &failure, failure.address.size > 0 ? 1 : 0);
}

void
execution_done(struct execution *execution, const struct error *err)
{
	struct request *request = execution->request;
	struct prepared_statement *plan = execution->plan;
	struct worker *worker = execution->worker;
	uint8_t tracing_id[16];
	struct error memory;

	if (request == NULL) {
		execution->done(execution, err);
		prepared_statement_unref(plan);
		return;
	}
	if (err == NULL && buffer_check(execution->out, &memory) != 0)
		err = &memory;
	request->metric = (uint8_t)execution_metric(execution);
	request->outcome = (uint8_t)execution_outcome(err == NULL ? ERROR_NONE : err->code);
	if (err != NULL) {
		if (execution->has_response)
			response_abandon(&execution->response);
		buffer_clear(execution->out);
		execution->response = response_begin(execution->out, execution->version,
		    request->header.stream, OPCODE_ERROR, 0, NULL);
		execution_put_error(execution, err);
	}
	execution_put_prefix(execution, tracing_id);
	response_end(&execution->response, COMPRESSION_NONE);
	if (execution->tracing != NULL)
		tracing_finish(execution->tracing, execution);
	prepared_statement_unref(plan);
	if (execution->batch != NULL)
		executor_batch_fini(execution->batch);
	request->state = NULL;
	request_done(request, worker);
}

void
execution_done_void(struct execution *execution)
{
	execution_begin_result(execution);
	if (execution->request != NULL)
		response_put_void(execution->out);
	execution_done(execution, NULL);
}

int
execution_check_read_consistency(const struct execution *execution, struct error *err)
{
	if (execution->options->consistency == CONSISTENCY_ANY)
		return error_set(
		    err, ERROR_INVALID, "ANY ConsistencyLevel is only supported for writes");
	return 0;
}

int
execution_check_write_consistency(
    const struct execution *execution, const struct table_metadata *table, struct error *err)
{
	if (consistency_is_serial(execution->options->consistency))
		return error_set(
		    err, ERROR_INVALID, "You must use conditional updates for serializable writes");
	if (table_is_counter(table) && execution->options->consistency == CONSISTENCY_ANY)
		return error_set(err, ERROR_INVALID,
		    "Consistency level ANY is not yet supported for counter table %.*s",
		    (int)table->name.size, table->name.data);
	return 0;
}

void
execution_run(struct execution *execution)
{
	switch (execution->plan->kind) {
	case STATEMENT_SELECT:
		select_execute(execution);
		break;
	case STATEMENT_INSERT:
	case STATEMENT_UPDATE:
	case STATEMENT_DELETE:
		modification_execute(execution);
		break;
	case STATEMENT_BATCH:
		execution->is_batch = true;
		batch_execute(execution);
		break;
	case STATEMENT_USE:
		use_execute(execution);
		break;
	case STATEMENT_TRUNCATE:
		truncate_execute(execution);
		break;
	case STATEMENT_DESCRIBE:
		describe_execute(execution);
		break;
	case STATEMENT_CREATE_ROLE:
	case STATEMENT_ALTER_ROLE:
	case STATEMENT_DROP_ROLE:
	case STATEMENT_GRANT_ROLE:
	case STATEMENT_REVOKE_ROLE:
	case STATEMENT_GRANT_PERMISSIONS:
	case STATEMENT_REVOKE_PERMISSIONS:
	case STATEMENT_LIST_PERMISSIONS:
	case STATEMENT_LIST_ROLES:
	case STATEMENT_LIST_USERS:
	case STATEMENT_LIST_SUPERUSERS:
	case STATEMENT_ADD_IDENTITY:
	case STATEMENT_DROP_IDENTITY:
		auth_execute(execution);
		break;
	default:
		schema_change_execute(execution);
		break;
	}
}

/* ---- Messages ------------------------------------------------------------------------------ */

static struct slice
executor_keyspace(const struct execution *execution, struct slice of_message)
{
	const char *keyspace;

	if (!slice_is_null(of_message))
		return of_message;
	keyspace = atomic_load_explicit(&execution->client->keyspace, memory_order_acquire);
	return keyspace == NULL ? slice_null : slice_of_string(keyspace);
}

static int
executor_query(struct execution *execution, struct error *err)
{
	const struct request_query *query = &execution->message->query;
	struct schema *schema;
	int rc;

	atomic_fetch_add_explicit(&execution->executor->regular_executed, 1, memory_order_relaxed);
	execution->keyspace = executor_keyspace(execution, query->options.keyspace);
	if (!slice_is_null(query->options.keyspace)) {
		schema = schema_holder_get(&execution->executor->schema);
		rc = schema_keyspace(schema, query->options.keyspace) == NULL;
		schema_unref(schema);
		if (rc != 0)
			return error_set(err, ERROR_INVALID, "Keyspace '%.*s' does not exist",
			    (int)query->options.keyspace.size,
			    (const char *)query->options.keyspace.data);
	}
	tracing_event(execution, "Preparing statement");
	schema = schema_holder_get(&execution->executor->schema);
	rc = prepare_statement(schema, execution->keyspace, query->query, &execution->plan, err);
	schema_unref(schema);
	if (rc != 0 || execution_bind(execution, &query->options, err) != 0)
		return -1;
	execution_run(execution);
	return 0;
}

static int
executor_unprepared(struct slice id, struct error *err)
{
	char hex[2 * sizeof(err->prepared_id) + 1] = "";

	if (id.size <= sizeof(err->prepared_id))
		hex_encode(id, hex);
	error_set(err, ERROR_UNPREPARED,
	    "Prepared query with ID %s not found (either the query was not prepared on this host "
	    "(maybe the host has been restarted?) or you have prepared too many queries and it has "
	    "been evicted from the internal cache)",
	    hex);
	if (err != NULL && id.size == sizeof(err->prepared_id))
		memcpy(err->prepared_id, id.data, sizeof(err->prepared_id));
	return -1;
}

static int
executor_execute(struct execution *execution, struct error *err)
{
	const struct request_execute *execute = &execution->message->execute;

	atomic_fetch_add_explicit(&execution->executor->prepared_executed, 1, memory_order_relaxed);
	execution->plan = prepared_cache_get(&execution->executor->prepared, execute->id);
	if (execution->plan == NULL)
		return executor_unprepared(execute->id, err);
	execution->keyspace = execution->plan->keyspace;
	execution->result_metadata_id = execute->result_metadata_id;
	tracing_prepared(execution, execution->plan->query);
	if (execution_bind(execution, &execute->options, err) != 0)
		return -1;
	if (execution->tracing != NULL)
		tracing_bound(execution);
	execution_run(execution);
	return 0;
}

/* Is every name of the statement given with its keyspace? */
static bool
executor_is_qualified(const struct statement *statement)
{
	switch (statement->kind) {
	case STATEMENT_SELECT:
		return statement->select.table.keyspace.text != NULL;
	case STATEMENT_INSERT:
		return statement->insert.table.keyspace.text != NULL;
	case STATEMENT_UPDATE:
		return statement->update.table.keyspace.text != NULL;
	case STATEMENT_DELETE:
		return statement->delete.table.keyspace.text != NULL;
	case STATEMENT_BATCH:
		for (size_t i = 0; i < statement->batch.statement_count; i++) {
			if (!executor_is_qualified(statement->batch.statements[i]))
				return false;
		}
		return true;
	default:
		return false;
	}
}

static void
executor_encode_specs(struct prepared_statement *plan)
{
	struct buffer specs;

	buffer_init(&specs);
	for (int i = 0; i < PREPARE_VERSIONS; i++) {
		if (plan->result_count > 0) {
			buffer_clear(&specs);
			response_encode_specs(
			    &specs, (uint8_t)(3 + i), plan->results, plan->result_count);
			plan->encoded_results[i] = arena_copy(&plan->arena, buffer_slice(&specs));
		}
		buffer_clear(&specs);
		response_encode_specs(&specs, (uint8_t)(3 + i), plan->markers, plan->marker_count);
		plan->encoded_markers[i] = arena_copy(&plan->arena, buffer_slice(&specs));
	}
	buffer_fini(&specs);
}

int
executor_renew(struct executor *executor, const struct schema *schema,
    const struct prepared_statement *plan, struct prepared_statement **out, struct error *err)
{
	(void)executor;
	if (prepare_statement(schema, plan->keyspace, plan->query, out, err) != 0)
		return -1;
	executor_encode_specs(*out);
	return 0;
}

int
executor_prepare(struct executor *executor, struct slice keyspace, struct slice query,
    struct prepared_statement **out, struct error *err)
{
	struct schema *schema = schema_holder_get(&executor->schema);
	struct prepared_statement *plan = NULL, *other = NULL;
	int rc = prepare_statement(schema, keyspace, query, &plan, err);

	if (rc == 0 && !slice_is_null(keyspace) && executor_is_qualified(plan->statement)) {
		/* Known without the keyspace, and found with it too. */
		rc = prepare_statement(schema, slice_null, query, &other, err);
		if (rc == 0) {
			executor_encode_specs(plan);
			prepared_cache_put(&executor->prepared, plan);
			prepared_statement_unref(plan);
			plan = other;
		}
	}
	schema_unref(schema);
	if (rc != 0) {
		prepared_statement_unref(plan);
		return -1;
	}
	executor_encode_specs(plan);
	prepared_cache_put(&executor->prepared, plan);
	*out = plan;
	return 0;
}

static int
executor_prepare_message(struct execution *execution, struct error *err)
{
	const struct request_prepare *prepare = &execution->message->prepare;
	struct executor *executor = execution->executor;
	struct prepared_statement *plan;
	struct prepared_info info = {0};
	uint8_t id[16];

	execution->keyspace = executor_keyspace(execution, prepare->keyspace);
	prepare_id(execution->keyspace, prepare->query, id);
	plan = prepared_cache_get(&executor->prepared, slice_of(id, sizeof(id)));
	if (plan != NULL && !slice_is_null(execution->keyspace) &&
	    executor_is_qualified(plan->statement)) {
		/* Its own id is the one without the keyspace. */
		prepared_statement_unref(plan);
		prepare_id(slice_null, prepare->query, id);
		plan = prepared_cache_get(&executor->prepared, slice_of(id, sizeof(id)));
	}
	if (plan == NULL) {
		if (executor_prepare(executor, execution->keyspace, prepare->query, &plan, err) !=
		    0)
			return -1;
		internal_save_prepared(executor, plan);
	}
	execution->plan = plan;
	info.id = plan->id;
	info.result_metadata_id = plan->result_metadata_id;
	info.markers.columns = plan->markers;
	info.markers.column_count = plan->marker_count;
	info.markers.encoded = plan->encoded_markers[execution->version - 3];
	info.key_indexes = plan->key_indexes;
	info.key_index_count = plan->key_index_count;
	info.result.columns = plan->results;
	info.result.column_count = plan->result_count;
	info.result.encoded = plan->encoded_results[execution->version - 3];
	execution_begin_result(execution);
	response_put_prepared(execution->out, execution->version, &info);
	execution_done(execution, NULL);
	return 0;
}

/* ---- BATCH --------------------------------------------------------------------------------- */

static int
executor_batch_entry(struct execution *execution, const struct schema *schema,
    const struct batch_entry *entry, struct executor_batch *batch,
    struct modification *modification, struct error *err)
{
	struct executor *executor = execution->executor;
	struct prepared_statement *plan;

	if (entry->is_prepared) {
		plan = prepared_cache_get(&executor->prepared, entry->query_or_id);
		if (plan == NULL)
			return executor_unprepared(entry->query_or_id, err);
	} else if (prepare_statement(schema, execution->keyspace, entry->query_or_id, &plan, err) !=
	    0) {
		return -1;
	}
	batch->plans[batch->count++] = plan;
	if (plan->kind != STATEMENT_INSERT && plan->kind != STATEMENT_UPDATE &&
	    plan->kind != STATEMENT_DELETE)
		return error_set(err, ERROR_INVALID,
		    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are "
		    "allowed.");
	if (execution_bind_values(
		execution, &entry->values, plan->markers, plan->marker_count, err) != 0)
		return -1;
	*modification = (struct modification){.plan = plan->modification,
	    .terms = execution->terms,
	    .now_seconds = execution->now_seconds};
	return 0;
}

static int
executor_batch_message(struct execution *execution, struct executor_batch *batch,
    struct modification **modifications, struct error *err)
{
	const struct request_batch *message = &execution->message->batch;
	const struct modification_plan **plans =
	    arena_calloc(execution->arena, message->count, sizeof(*plans));
	struct schema *schema;
	int rc = 0;

	batch->plans = arena_calloc(execution->arena, message->count, sizeof(*batch->plans));
	*modifications = arena_calloc(execution->arena, message->count, sizeof(**modifications));
	if (plans == NULL || batch->plans == NULL || *modifications == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a batch");
	execution->keyspace = executor_keyspace(execution, message->options.keyspace);
	if (execution_bind(execution, &message->options, err) != 0)
		return -1;
	schema = schema_holder_get(&execution->executor->schema);
	for (uint32_t i = 0; i < message->count && rc == 0; i++) {
		rc = executor_batch_entry(
		    execution, schema, &message->entries[i], batch, &(*modifications)[i], err);
		if (rc == 0)
			plans[i] = (*modifications)[i].plan;
	}
	schema_unref(schema);
	if (rc != 0)
		return -1;
	for (uint32_t i = 0; i < message->count; i++)
		(*modifications)[i].timestamp = execution_timestamp(execution);
	return batch_check((enum ast_batch_kind)message->type, plans, message->count, false, err);
}

static void
executor_run_batch(struct execution *execution)
{
	struct executor_batch *batch = arena_zalloc(execution->arena, sizeof(*batch));
	struct modification *modifications;
	struct error err;

	if (batch == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "no memory for a batch");
		execution_done(execution, &err);
		return;
	}
	execution->is_batch = true;
	execution->batch = batch;
	if (executor_batch_message(execution, batch, &modifications, &err) != 0) {
		execution_done(execution, &err);
		return;
	}
	batch_run(execution, (enum ast_batch_kind)execution->message->batch.type, modifications,
	    execution->message->batch.count);
}

/* ---- Slow reads ---------------------------------------------------------------------------- */

void
executor_note_slow(struct executor *executor, const struct request *request, uint64_t us)
{
	struct envelope envelope = {request->header, request->body};
	const char *keyspace = atomic_load(&request->client->keyspace);
	struct prepared_statement *plan;

	if (request->header.opcode == OPCODE_QUERY) {
		slow_reads_note(&executor->slow_reads,
		    keyspace != NULL ? slice_of_string(keyspace) : slice_null,
		    message_peek_query(&envelope), us / 1000);
		return;
	}
	plan = prepared_cache_get(&executor->prepared, message_peek_prepared_id(&envelope));
	if (plan == NULL)
		return; /* it was put out meanwhile */
	slow_reads_note(&executor->slow_reads, plan->keyspace, plan->query, us / 1000);
	prepared_statement_unref(plan);
}

void
executor_tell_slow(struct executor *executor)
{
	slow_reads_report(&executor->slow_reads, executor->config->slow_query_log_timeout,
	    env_monotonic_ns(executor->env));
}

/* ---- The door ------------------------------------------------------------------------------ */

enum request_stage
executor_stage_of(struct executor *executor, const struct request *request)
{
	struct envelope envelope = {request->header, request->body};
	enum request_stage stage;
	struct slice query;

	switch (request->header.opcode) {
	case OPCODE_EXECUTE:
		if (prepared_cache_stage(
			&executor->prepared, message_peek_prepared_id(&envelope), &stage))
			return stage;
		return REQUEST_STAGE_REQUEST;
	case OPCODE_BATCH:
		/* A logged one may wait for the batchlog, which a loop must not do. The type is the
		 * first byte unless a payload stands before it. */
		if ((request->header.flags & ENVELOPE_CUSTOM_PAYLOAD) != 0 ||
		    request->body.size == 0 || request->body.data[0] == BATCH_LOGGED)
			return REQUEST_STAGE_REQUEST;
		return request->body.data[0] == BATCH_COUNTER ? REQUEST_STAGE_COUNTER
							      : REQUEST_STAGE_MUTATION;
	case OPCODE_QUERY:
		/* Most texts are told by their first letter; the rest is parsed, and may be slow. */
		query = message_peek_query(&envelope);
		if (query.size > 0 && (query.data[0] == 'S' || query.data[0] == 's'))
			return REQUEST_STAGE_SLICE; /* who knows how long */
		if (query.size > 0 && (query.data[0] == 'I' || query.data[0] == 'i'))
			return REQUEST_STAGE_MUTATION;
		return REQUEST_STAGE_REQUEST;
	default:
		return REQUEST_STAGE_REQUEST;
	}
}

static void
executor_start_execution(
    struct execution *execution, struct request *request, struct worker *worker)
{
	execution_init(execution, request->executor, &request->arena, &request->response);
	execution->request = request;
	execution->worker = worker;
	execution->client = request->client;
	execution->version = request->header.version;
	request->state = execution;
}

/* An answer without an execution. */
static void
executor_answer_error(struct request *request, struct worker *worker, const struct error *err)
{
	buffer_clear(&request->response);
	response_put_error_envelope(
	    &request->response, request->header.version, request->header.stream, 0, err);
	request_done(request, worker);
}

/* nodetool settraceprobability: some requests are traced although nobody asked. */
static bool
executor_draws_trace(struct executor *executor)
{
	double probability =
	    atomic_load_explicit(&executor->node->trace_probability, memory_order_relaxed);

	return probability > 0 &&
	    (double)(env_random_u64(executor->env) >> 11) * 0x1p-53 < probability;
}

void
executor_ahead(struct executor *executor, struct task *first, size_t count)
{
	struct store_place places[STORE_AHEAD_MAX];
	void (*ahead)(struct task *, size_t) = first->ahead;
	size_t found = 0;
	unsigned side;

	if (count < 2)
		return; /* alone it would wait here instead of there */
	side = prepared_cache_enter(&executor->prepared);
	for (struct task *task = first; task != NULL && count-- > 0 && found < STORE_AHEAD_MAX;
	     task = task->next) {
		const struct request *request = (const struct request *)task;
		const struct prepared_statement *plan;
		struct envelope envelope;
		struct slice key;

		if (task->ahead != ahead || request->header.opcode != OPCODE_EXECUTE)
			continue;
		envelope = (struct envelope){request->header, request->body};
		plan =
		    prepared_cache_look(&executor->prepared, message_peek_prepared_id(&envelope));
		if (plan == NULL || plan->table == NULL || plan->key_index_count != 1 ||
		    plan->table->partition_key_count != 1)
			continue;
		key = message_peek_value(&envelope, plan->key_indexes[0]);
		if (!slice_is_null(key))
			places[found++] =
			    (struct store_place){plan->table, murmur3_token(key), key};
	}
	if (found > 1)
		store_ahead(executor->store, places, found);
	prepared_cache_leave(&executor->prepared, side);
}

void
executor_run(struct request *request, struct worker *worker)
{
	struct execution *execution = arena_alloc(&request->arena, sizeof(*execution));
	struct client_message *message = arena_zalloc(&request->arena, sizeof(*message));
	struct envelope envelope = {request->header, request->body};
	struct error err;
	int rc;

	if (execution == NULL || message == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "no memory for a request");
		executor_answer_error(request, worker, &err);
		return;
	}
	executor_start_execution(execution, request, worker);
	rc = message_decode_request(&envelope, &request->arena, message, &err);
	execution->message = message;
	if (rc == 0 && (message->is_traced || executor_draws_trace(request->executor)))
		tracing_begin(execution);
	if (rc == 0) {
		switch (message->opcode) {
		case OPCODE_QUERY:
			rc = executor_query(execution, &err);
			break;
		case OPCODE_EXECUTE:
			rc = executor_execute(execution, &err);
			break;
		case OPCODE_PREPARE:
			rc = executor_prepare_message(execution, &err);
			break;
		case OPCODE_BATCH:
			executor_run_batch(execution);
			break;
		default:
			rc = error_set(&err, ERROR_PROTOCOL, "Unexpected message %s",
			    opcode_name(message->opcode));
			break;
		}
	}
	if (rc != 0)
		execution_done(execution, &err);
}

void
executor_time_out(struct request *request, struct worker *worker)
{
	enum request_stage stage = executor_stage_of(request->executor, request);
	struct error err;

	if (stage == REQUEST_STAGE_READ || stage == REQUEST_STAGE_SLICE ||
	    stage == REQUEST_STAGE_RANGE) {
		error_set(
		    &err, ERROR_READ_TIMEOUT, "Operation timed out - received only 0 responses.");
		request->metric = REQUEST_METRIC_READ;
	} else if (stage == REQUEST_STAGE_MUTATION || stage == REQUEST_STAGE_COUNTER ||
	    request->header.opcode == OPCODE_BATCH) {
		error_set(
		    &err, ERROR_WRITE_TIMEOUT, "Operation timed out - received only 0 responses.");
		err.write_type = stage == REQUEST_STAGE_COUNTER ? "COUNTER"
		    : request->header.opcode != OPCODE_BATCH    ? "SIMPLE"
		    : stage == REQUEST_STAGE_MUTATION           ? "UNLOGGED_BATCH"
								: "BATCH_LOG";
		request->metric = REQUEST_METRIC_WRITE;
	} else {
		error_set(&err, ERROR_OVERLOADED, "The request waited too long and was dropped");
	}
	err.consistency = CONSISTENCY_LOCAL_ONE;
	err.required = 1;
	request->outcome = REQUEST_OUTCOME_TIMEOUT;
	executor_answer_error(request, worker, &err);
}

void
executor_overloaded(struct request *request, struct worker *worker)
{
	struct error err;

	error_set(&err, ERROR_OVERLOADED, REQUEST_OVERLOADED_TEXT);
	executor_answer_error(request, worker, &err);
}
