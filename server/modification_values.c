/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INSERT, UPDATE, DELETE with the values of one execution: rows, mutations, and their way to the
 * coordinator.
 */
#include "base/hash.h"
#include "cql/json.h"
#include "server/execution.h"
#include "server/denylist.h"
#include "server/guardrails.h"
#include "server/modification.h"
#include "server/tracing.h"

/* 2038-01-19T03:14:06+00:00: what an nb SSTable can say of an expiry. */
#define MODIFICATION_EXPIRY_MAX INT64_C(2147483646)

static int
modification_values_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a write");
}

/* ---- USING --------------------------------------------------------------------------------- */

static int
modification_eval_timestamp(
    const struct modification *modification, int64_t *out, struct error *err)
{
	struct slice value;
	bool is_unset;

	*out = modification->timestamp;
	if (modification->plan->timestamp == NULL)
		return 0;
	if (term_eval(
		modification->plan->timestamp, &modification->terms, &value, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return 0;
	if (slice_is_null(value) || value.size != 8)
		return error_set(err, ERROR_INVALID, "Invalid null value of timestamp");
	*out = (int64_t)load_u64(value.data);
	if (*out == TIMESTAMP_NONE)
		return error_set(err, ERROR_INVALID,
		    "Out of bound timestamp, must be in [%lld, %lld]", (long long)INT64_MIN + 1,
		    (long long)INT64_MAX);
	return 0;
}

static int
modification_eval_ttl(const struct modification *modification, int32_t *out, struct error *err)
{
	const struct table_metadata *table = modification->plan->table;
	struct slice value = slice_null;
	bool is_unset = true, is_default;

	*out = 0;
	if (modification->plan->ttl != NULL &&
	    term_eval(modification->plan->ttl, &modification->terms, &value, &is_unset, err) != 0)
		return -1;
	is_default = modification->plan->ttl == NULL || is_unset;
	if (is_default) {
		*out = table->options.default_time_to_live;
	} else if (!slice_is_null(value) && value.size == 4) {
		*out = (int32_t)load_u32(value.data);
		if (*out < 0)
			return error_set(err, ERROR_INVALID,
			    "A TTL must be greater or equal to 0, but was %d", *out);
		if (*out > TTL_MAX)
			return error_set(err, ERROR_INVALID,
			    "ttl is too large. requested (%d) maximum (%d)", *out, TTL_MAX);
	}
	if (*out > 0 && modification->now_seconds + *out > MODIFICATION_EXPIRY_MAX)
		return error_set(err, ERROR_INVALID,
		    "Request on table %.*s.%.*s with %sttl of %d seconds exceeds maximum supported "
		    "expiration date of 2038-01-19T03:14:06+00:00. In order to avoid this use a "
		    "lower "
		    "TTL, change the expiration date overflow policy or upgrade to a version where "
		    "this limitation is fixed. See CASSANDRA-14092 for more details.",
		    (int)table->keyspace.size, table->keyspace.data, (int)table->name.size,
		    table->name.data, is_default ? "default " : "", *out);
	return 0;
}

/* ---- INSERT JSON --------------------------------------------------------------------------- */

int
modification_begin(
    struct modification *modification, struct execution *execution, struct error *err)
{
	const struct modification_plan *plan = modification->plan;
	const struct table_metadata *table = plan->table;
	struct bound_value *values;
	struct json_field *fields;
	struct slice document;
	uint32_t count;

	(void)execution;
	if (!plan->is_json)
		return 0;
	if (term_eval(plan->json, &modification->terms, &document, NULL, err) != 0)
		return -1;
	if (slice_is_null(document))
		return error_set(err, ERROR_INVALID, "Got null for INSERT JSON values");
	if (json_parse_object(document, modification->terms.arena, &fields, &count, err) != 0)
		return -1;
	values = arena_calloc(modification->terms.arena, table->column_count, sizeof(*values));
	if (values == NULL)
		return modification_values_no_memory(err);
	for (uint32_t i = 0; i < table->column_count; i++)
		values[i].is_unset = plan->default_unset &&
		    table->select_order[i]->kind != COLUMN_PARTITION_KEY &&
		    table->select_order[i]->kind != COLUMN_CLUSTERING;
	for (uint32_t n = 0; n < count; n++) {
		uint32_t i = 0;

		while (i < table->column_count &&
		    !slice_equal(table->select_order[i]->name, fields[n].name))
			i++;
		if (i == table->column_count)
			return error_set(err, ERROR_INVALID,
			    "JSON values map contains unrecognized column: %.*s",
			    (int)fields[n].name.size, fields[n].name.data);
		values[i].is_unset = false;
		values[i].value = slice_null;
		if (fields[n].is_null)
			continue;
		if (json_to_value(table->select_order[i]->type, fields[n].value,
			modification->terms.arena, &values[i].value, err) != 0) {
			error_prefix(err, "Error decoding JSON value for %.*s",
			    (int)fields[n].name.size, fields[n].name.data);
			if (err != NULL)
				err->code = ERROR_INVALID;
			return -1;
		}
	}
	modification->terms.values = values;
	modification->terms.value_count = table->column_count;
	return 0;
}

int
modification_keys(const struct modification *modification, struct slice **keys, uint32_t *count,
    struct error *err)
{
	const struct restrictions *restrictions = &modification->plan->restrictions;

	if (!restrictions->is_simple_key)
		return restrictions_keys(restrictions, &modification->terms, keys, count, err);
	*keys = arena_calloc(modification->terms.arena, 1, sizeof(**keys));
	if (*keys == NULL)
		return modification_values_no_memory(err);
	*count = 1;
	return restrictions_key(restrictions, &modification->terms, *keys, err);
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static void
modification_uuid(void *user, uint8_t out[16])
{
	executor_next_timeuuid(user, out);
}

struct modification_row {
	struct modification *modification;
	struct execution *execution;
	int64_t timestamp;
	int32_t ttl;
};

static int
modification_make_cells(const struct modification_row *making, const struct operation *operations,
    uint32_t count, const struct row *existing, struct row *row, struct error *err)
{
	struct modification *modification = making->modification;
	struct arena *arena = modification->terms.arena;
	struct operation_target target = {.terms = &modification->terms,
	    .timestamp = making->timestamp,
	    .ttl = making->ttl,
	    .now_seconds = modification->now_seconds,
	    .next_timeuuid = modification_uuid,
	    .user = making->execution->executor,
	    .existing = existing,
	    .cell_capacity = count};

	target.cells = arena_alloc(arena, count * sizeof(*target.cells));
	if (target.cells == NULL)
		return modification_values_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		if (operations[i].column->is_complex && target.deletions == NULL) {
			target.deletions = arena_calloc(arena, count, sizeof(*target.deletions));
			if (target.deletions == NULL)
				return modification_values_no_memory(err);
		}
		if (operation_run(&operations[i], &target, err) != 0)
			return -1;
	}
	row->cells = target.cells;
	row->cell_count = target.cell_count;
	row->complex_deletions = target.deletions;
	row->complex_deletion_count = target.deletion_count;
	return 0;
}

static void
modification_init_row(const struct modification_row *making, bool is_static, struct row *row)
{
	*row = (struct row){.is_static = is_static,
	    .position = slice_null,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE};
	if (is_static || !making->modification->plan->sets_liveness)
		return;
	row->liveness.timestamp = making->timestamp;
	if (making->ttl != TTL_NONE) {
		row->liveness.ttl = making->ttl;
		row->liveness.local_expiration_time =
		    (int32_t)(making->modification->now_seconds + making->ttl);
	}
}

static int
modification_check_clustering(const struct slice *clustering, uint32_t count, struct error *err)
{
	size_t total = 0;

	for (uint32_t i = 0; i < count; i++)
		total += clustering[i].size;
	if (total > UINT16_MAX)
		return error_set(err, ERROR_INVALID,
		    "The sum of all clustering columns is too long (%zu > %d)", total, UINT16_MAX);
	return 0;
}

int
modification_direct(struct modification *modification, struct execution *execution,
    struct mutation *mutation, struct partition_update *update, struct row *row,
    struct row *static_row, struct error *err)
{
	const struct modification_plan *plan = modification->plan;
	const struct table_metadata *table = plan->table;
	struct modification_row making = {modification, execution, 0, 0};
	struct slice *clustering;

	if (modification_eval_timestamp(modification, &making.timestamp, err) != 0 ||
	    modification_eval_ttl(modification, &making.ttl, err) != 0)
		return -1;
	*update = (struct partition_update){
	    .table = table, .deletion = DELETION_LIVE, .static_row = NULL};
	if (restrictions_key(&plan->restrictions, &modification->terms, &update->key, err) != 0)
		return -1;
	update->token = murmur3_token(update->key);
	if (plan->static_count > 0) {
		modification_init_row(&making, true, static_row);
		if (modification_make_cells(
			&making, plan->statics, plan->static_count, NULL, static_row, err) != 0)
			return -1;
		update->static_row = static_row;
	}
	if (!plan->is_static_only) {
		modification_init_row(&making, false, row);
		clustering = arena_calloc(
		    modification->terms.arena, table->clustering_count, sizeof(*clustering));
		if (clustering == NULL)
			return modification_values_no_memory(err);
		for (uint32_t i = 0; i < table->clustering_count; i++) {
			bool is_unset;

			if (term_eval(plan->restrictions.clustering[i]->value, &modification->terms,
				&clustering[i], &is_unset, err) != 0)
				return -1;
			if (is_unset || slice_is_null(clustering[i]))
				return error_set(err, ERROR_INVALID,
				    is_unset ? "Invalid unset value for column %.*s"
					     : "Invalid null value in condition for column %.*s",
				    (int)table->clustering[i].name.size,
				    table->clustering[i].name.data);
		}
		if (modification_check_clustering(clustering, table->clustering_count, err) != 0)
			return -1;
		row->clustering = clustering;
		row->clustering_count = table->clustering_count;
		row->position = position_make(table, BOUND_CLUSTERING, clustering,
		    table->clustering_count, modification->terms.arena);
		if (slice_is_null(row->position))
			return modification_values_no_memory(err);
		if (modification_make_cells(
			&making, plan->regulars, plan->regular_count, NULL, row, err) != 0)
			return -1;
		update->rows = row;
		update->row_count = 1;
	}
	*mutation = (struct mutation){.keyspace = (const char *)table->keyspace.data,
	    .key = update->key,
	    .token = update->token,
	    .update_count = 1,
	    .updates = update};
	return 0;
}

/* ---- Sets of mutations --------------------------------------------------------------------- */

static bool
mutation_set_grow(struct mutation_set *set)
{
	uint32_t capacity = set->capacity == 0 ? 4 : set->capacity * 2;
	struct mutation_entry *entries = arena_calloc(set->arena, capacity, sizeof(*entries));
	uint32_t slot_count = capacity * 2;
	uint32_t *slots = arena_calloc(set->arena, slot_count, sizeof(*slots));

	if (entries == NULL || slots == NULL)
		return false;
	if (set->count > 0)
		memcpy(entries, set->entries, set->count * sizeof(*entries));
	for (uint32_t i = 0; i < set->count; i++) {
		uint32_t at = (uint32_t)entries[i].token & (slot_count - 1);

		while (slots[at] != 0)
			at = (at + 1) & (slot_count - 1);
		slots[at] = i + 1;
	}
	set->entries = entries;
	set->capacity = capacity;
	set->slots = slots;
	set->slot_count = slot_count;
	return true;
}

/* The entry of a key of a keyspace, made when there is none; NULL without memory. */
static struct mutation_entry *
mutation_set_entry(struct mutation_set *set, const struct keyspace_metadata *keyspace,
    struct slice key, int64_t token)
{
	uint32_t at;

	if (set->count == set->capacity && !mutation_set_grow(set))
		return NULL;
	/* Tokens are hashes already. */
	at = (uint32_t)token & (set->slot_count - 1);
	for (; set->slots[at] != 0; at = (at + 1) & (set->slot_count - 1)) {
		struct mutation_entry *entry = &set->entries[set->slots[at] - 1];

		if (entry->token == token && slice_equal(entry->key, key) &&
		    slice_equal(entry->keyspace->name, keyspace->name))
			return entry;
	}
	set->slots[at] = ++set->count;
	set->entries[set->count - 1] =
	    (struct mutation_entry){.keyspace = keyspace, .key = key, .token = token};
	return &set->entries[set->count - 1];
}

static struct update_builder *
mutation_set_builder(struct mutation_set *set, const struct modification_plan *plan,
    struct slice key, int64_t token, struct error *err)
{
	struct mutation_entry *entry = mutation_set_entry(set, plan->keyspace, key, token);
	struct update_builder *builder;

	if (entry == NULL)
		goto no_memory;
	for (uint32_t i = 0; i < entry->update_count; i++) {
		if (entry->tables[i] == plan->table)
			return entry->builders[i];
	}
	if (entry->update_count == entry->update_capacity) {
		uint32_t capacity = entry->update_capacity == 0 ? 2 : entry->update_capacity * 2;
		const struct table_metadata **tables =
		    arena_calloc(set->arena, capacity, sizeof(*tables));
		struct update_builder **builders =
		    arena_calloc(set->arena, capacity, sizeof(*builders));

		if (tables == NULL || builders == NULL)
			goto no_memory;
		for (uint32_t i = 0; i < entry->update_count; i++) {
			tables[i] = entry->tables[i];
			builders[i] = entry->builders[i];
		}
		entry->tables = tables;
		entry->builders = builders;
		entry->update_capacity = capacity;
	}
	builder = update_builder_new(plan->table, key, set->arena);
	if (builder == NULL)
		goto no_memory;
	entry->tables[entry->update_count] = plan->table;
	entry->builders[entry->update_count++] = builder;
	return builder;
no_memory:
	modification_values_no_memory(err);
	return NULL;
}

int
mutation_set_finish(struct mutation_set *set, struct mutation **out, struct error *err)
{
	struct mutation *mutations = arena_calloc(set->arena, set->count, sizeof(*mutations));

	if (mutations == NULL)
		return modification_values_no_memory(err);
	for (uint32_t i = 0; i < set->count; i++) {
		struct mutation_entry *entry = &set->entries[i];
		struct partition_update *updates =
		    arena_calloc(set->arena, entry->update_count, sizeof(*updates));

		if (updates == NULL)
			return modification_values_no_memory(err);
		for (uint32_t j = 0; j < entry->update_count; j++) {
			if (update_builder_finish(entry->builders[j], &updates[j], err) != 0)
				return -1;
		}
		mutations[i] =
		    (struct mutation){.keyspace = (const char *)entry->keyspace->name.data,
			.key = entry->key,
			.token = entry->token,
			.update_count = entry->update_count,
			.updates = updates};
	}
	*out = mutations;
	return 0;
}

/* ---- One statement's changes --------------------------------------------------------------- */

static int
modification_collect_static(const struct modification_row *making, struct update_builder *builder,
    const struct row *existing, struct error *err)
{
	const struct modification_plan *plan = making->modification->plan;
	struct row row;

	if (plan->static_count == 0)
		return 0;
	modification_init_row(making, true, &row);
	if (modification_make_cells(
		making, plan->statics, plan->static_count, existing, &row, err) != 0)
		return -1;
	return row_is_empty(&row) ? 0 : update_builder_add_row(builder, &row, err);
}

static int
modification_collect_row(const struct modification_row *making, struct update_builder *builder,
    const struct clustering_range *range, const struct row *existing, struct error *err)
{
	const struct modification_plan *plan = making->modification->plan;
	struct row row;

	modification_init_row(making, false, &row);
	row.clustering = range->start;
	row.clustering_count = range->start_count;
	if (modification_check_clustering(range->start, range->start_count, err) != 0)
		return -1;
	if (plan->deletes_rows)
		row.deletion = (struct deletion){
		    making->timestamp, (int32_t)making->modification->now_seconds};
	else if (modification_make_cells(
		     making, plan->regulars, plan->regular_count, existing, &row, err) != 0)
		return -1;
	/* UPDATE with nothing but unset values changes nothing. */
	return row_is_empty(&row) ? 0 : update_builder_add_row(builder, &row, err);
}

static int
modification_collect_deletion(const struct modification_row *making, struct update_builder *builder,
    const struct clustering_range *range, struct error *err)
{
	struct deletion deletion = {making->timestamp, (int32_t)making->modification->now_seconds};
	struct range_tombstone tombstone = {.start_kind = range->start_kind,
	    .end_kind = range->end_kind,
	    .start_count = range->start_count,
	    .end_count = range->end_count,
	    .start = range->start,
	    .end = range->end,
	    .deletion = deletion};

	return update_builder_delete_range(builder, &tombstone, err);
}

static int
modification_collect_key(const struct modification_row *making, struct slice key,
    const struct clustering_range *ranges, uint32_t range_count, struct mutation_set *set,
    struct error *err)
{
	struct modification *modification = making->modification;
	const struct modification_plan *plan = modification->plan;
	int64_t token = murmur3_token(key);
	struct update_builder *builder = mutation_set_builder(set, plan, key, token, err);
	struct row row, static_row;
	bool has_row = false, has_static = false;

	if (builder == NULL)
		return -1;
	if (plan->deletes_rows && !plan->restrictions.has_clustering) {
		update_builder_delete_partition(builder,
		    (struct deletion){making->timestamp, (int32_t)modification->now_seconds});
		return 0;
	}
	for (uint32_t i = 0; i < (range_count == 0 ? 1 : range_count); i++) {
		const struct clustering_range *range = range_count == 0 ? NULL : &ranges[i];

		if (plan->needs_read &&
		    modification_read_row(making->execution, plan, key, token, range,
			modification->now_seconds, modification->terms.arena, &row, &has_row,
			&static_row, &has_static, err) != 0)
			return -1;
		if (i == 0 &&
		    modification_collect_static(
			making, builder, has_static ? &static_row : NULL, err) != 0)
			return -1;
		if (plan->is_static_only || range == NULL)
			continue;
		if (plan->deletes_rows && !range->is_row) {
			if (modification_collect_deletion(making, builder, range, err) != 0)
				return -1;
			continue;
		}
		if (plan->kind == STATEMENT_DELETE && !plan->deletes_rows &&
		    plan->regular_count == 0)
			continue;
		if (modification_collect_row(making, builder, range, has_row ? &row : NULL, err) !=
		    0)
			return -1;
	}
	return 0;
}

int
modification_collect(struct modification *modification, struct execution *execution,
    struct mutation_set *set, struct error *err)
{
	const struct modification_plan *plan = modification->plan;
	struct modification_row making = {modification, execution, 0, 0};
	struct clustering_range *ranges = NULL;
	struct slice *keys;
	uint32_t key_count, range_count = 0;

	if (modification_eval_timestamp(modification, &making.timestamp, err) != 0 ||
	    modification_eval_ttl(modification, &making.ttl, err) != 0 ||
	    modification_keys(modification, &keys, &key_count, err) != 0)
		return -1;
	if (!plan->is_static_only) {
		if (restrictions_ranges(
			&plan->restrictions, &modification->terms, &ranges, &range_count, err) != 0)
			return -1;
		if (range_count == 0)
			return 0; /* IN () */
	}
	for (uint32_t i = 0; i < key_count; i++) {
		if (modification_collect_key(&making, keys[i], ranges, range_count, set, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- Execution ----------------------------------------------------------------------------- */

static void
execution_write_done(struct coordinator_write *write, const struct error *err)
{
	struct execution *execution = write->context;

	execution->worker = write->worker;
	if (err != NULL)
		execution_done(execution, err);
	else
		execution_done_void(execution);
}

void
execution_write(struct execution *execution, struct mutation *mutations, uint32_t count,
    const struct keyspace_metadata *keyspace, int write_type)
{
	struct coordinator_write *write = arena_zalloc(execution->arena, sizeof(*write));
	struct error err;

	if (count == 0) {
		execution_done_void(execution);
		return;
	}
	if (write == NULL) {
		modification_values_no_memory(&err);
		execution_done(execution, &err);
		return;
	}
	write->mutations = mutations;
	write->mutation_count = count;
	write->keyspace = keyspace;
	write->consistency = execution->options->consistency;
	write->type = (enum write_type)write_type;
	write->on_done = execution_write_done;
	write->context = execution;
	write->arena = execution->arena;
	if (worker_is_current(execution->worker))
		write->scratch = &execution->worker->scratch;
	write->worker = execution->worker;
	write->trace = tracing_of(execution);
	tracing_event(execution, "Determining replicas for mutation");
	coordinator_write(execution->executor->coordinator, write);
}

/* A direct plan: one allocation for all the parts. */
struct modification_direct_parts {
	struct mutation mutation;
	struct partition_update update;
	struct row row, static_row;
};

static int
modification_execute_direct(
    struct execution *execution, struct modification *modification, struct error *err)
{
	struct modification_direct_parts *parts = arena_alloc(execution->arena, sizeof(*parts));

	if (parts == NULL)
		return modification_values_no_memory(err);
	if (modification_direct(modification, execution, &parts->mutation, &parts->update,
		&parts->row, &parts->static_row, err) != 0)
		return -1;
	execution_write(execution, &parts->mutation, 1, modification->plan->keyspace,
	    table_is_counter(modification->plan->table) ? WRITE_COUNTER : WRITE_SIMPLE);
	return 0;
}

static int
modification_execute_general(
    struct execution *execution, struct modification *modification, struct error *err)
{
	const struct modification_plan *plan = modification->plan;
	struct table_locks *locks = &execution->executor->cas_locks;
	struct mutation_set set = {.arena = execution->arena};
	struct mutation *mutations = NULL;
	struct table_locks_set held = {{0}};
	struct slice *keys = NULL;
	uint32_t key_count = 0;
	int rc;

	if (modification_begin(modification, execution, err) != 0)
		return -1;
	if (plan->needs_read) {
		if (modification_keys(modification, &keys, &key_count, err) != 0)
			return -1;
		for (uint32_t i = 0; i < key_count; i++)
			table_locks_set_add(&held, murmur3_token(keys[i]));
		table_locks_take_set(locks, &held);
	}
	rc = modification_collect(modification, execution, &set, err);
	if (rc == 0)
		rc = mutation_set_finish(&set, &mutations, err);
	if (rc == 0)
		execution_write(execution, mutations, set.count, plan->keyspace,
		    table_is_counter(plan->table) ? WRITE_COUNTER : WRITE_SIMPLE);
	/* The write is visible when the coordinator returns, whenever it is acknowledged. */
	table_locks_drop_set(locks, &held);
	return rc;
}

static void
modification_execute_again(struct execution *execution, void *context, const struct error *err)
{
	(void)context;
	if (err != NULL)
		execution_done(execution, err);
	else
		modification_execute(execution);
}

void
modification_execute(struct execution *execution)
{
	struct modification modification = {.plan = execution->plan->modification,
	    .terms = execution->terms,
	    .timestamp = execution_timestamp(execution),
	    .now_seconds = execution->now_seconds};
	struct error err;
	int rc;

	if (guardrail_check_write(execution, &modification, 1, &err) != 0 ||
	    denylist_check_write(execution, &modification, 1, &err) != 0) {
		execution_done(execution, &err);
		return;
	}
	if (modification.plan->is_conditional) {
		struct modification *one = arena_alloc(execution->arena, sizeof(*one));

		if (one == NULL) {
			modification_values_no_memory(&err);
			execution_done(execution, &err);
			return;
		}
		*one = modification;
		cas_execute(execution, one, 1);
		return;
	}
	rc = execution_check_write_consistency(execution, modification.plan->table, &err);
	if (rc == 0)
		rc = modification.plan->is_direct
		    ? modification_execute_direct(execution, &modification, &err)
		    : modification_execute_general(execution, &modification, &err);
	if (rc != 0 && execution_wants_rows(execution))
		execution_read_rows(
		    execution, execution->options->consistency, modification_execute_again, NULL);
	else if (rc != 0)
		execution_done(execution, &err);
}
