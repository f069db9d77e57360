/* SPDX-License-Identifier: Apache-2.0 */
#include "server/schema_sync.h"
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "server/events.h"
#include "server/batch.h"
#include "server/cluster.h"
#include "server/events.h"
#include "server/execution.h"
#include "server/internal_query.h"
#include "server/schema_change.h"
#include "server/schema_tables.h"
#include "server/system_local.h"
#include "server/system_ranges.h"

enum { SCHEMA_SYNC_VERSION = 1, SCHEMA_SYNC_MUTATIONS_MAX = 1 << 20, SCHEMA_SYNC_BLOCK = 64 << 10 };

/* ---- Plans after a change ------------------------------------------------------------------ */

struct schema_renewal {
	struct executor *executor;
	const struct schema *schema; /* the new one */
};

/* Same columns, kinds and types: what a client knows of the statement still holds. */
static bool
schema_is_same_shape(const struct table_metadata *a, const struct table_metadata *b)
{
	if (memcmp(a->id.bytes, b->id.bytes, sizeof(a->id.bytes)) != 0 ||
	    a->column_count != b->column_count)
		return false;
	for (uint32_t i = 0; i < a->column_count; i++) {
		const struct column_metadata *left = a->select_order[i];
		const struct column_metadata *right = b->select_order[i];

		if (!slice_equal(left->name, right->name) || left->kind != right->kind ||
		    left->is_reversed != right->is_reversed || !type_equal(left->type, right->type))
			return false;
	}
	return true;
}

static const struct table_metadata *
schema_current_table(const struct schema *schema, const struct table_metadata *table)
{
	return schema_table(schema, table->keyspace, table->name);
}

/* Keep plans of other tables; make those anew whose table only has other options; drop the rest. */
static struct prepared_statement *
schema_renew_plan(void *argument, struct prepared_statement *plan)
{
	struct schema_renewal *renewal = argument;
	const struct table_metadata *now;
	struct prepared_statement *fresh;
	struct error err;

	if (plan->kind == STATEMENT_BATCH) {
		for (uint32_t i = 0; i < plan->batch->count; i++) {
			const struct table_metadata *table = plan->batch->statements[i]->table;

			if (schema_current_table(renewal->schema, table) != table)
				return NULL;
		}
		return plan;
	}
	if (plan->table == NULL)
		return plan;
	now = schema_current_table(renewal->schema, plan->table);
	if (now == plan->table)
		return plan;
	if (now == NULL || !schema_is_same_shape(plan->table, now))
		return NULL;
	if (executor_renew(renewal->executor, renewal->schema, plan, &fresh, &err) != 0)
		return NULL;
	return fresh;
}

/* ---- What clients are told ------------------------------------------------------------------ */

static void
schema_tell(struct executor *executor, enum schema_change_kind kind,
    enum schema_change_target target, struct slice keyspace, struct slice name)
{
	struct schema_change change = {
	    .kind = kind, .target = target, .keyspace = keyspace, .name = name};

	if (executor->node->network != NULL)
		events_push_schema(executor->node->network, &change);
}

static void
schema_tell_types(struct executor *executor, const struct keyspace_metadata *before,
    const struct keyspace_metadata *after)
{
	for (uint32_t i = 0; i < after->type_count; i++) {
		const struct type *type = after->types[i].type;
		const struct type *old = keyspace_type(before, type->name);

		if (old == NULL || !type_equal(old, type))
			schema_tell(executor, old == NULL ? SCHEMA_CREATED : SCHEMA_UPDATED,
			    SCHEMA_TYPE, after->name, type->name);
	}
}

static void
schema_tell_tables(struct executor *executor, const struct keyspace_metadata *before,
    const struct keyspace_metadata *after)
{
	for (uint32_t i = 0; i < after->table_count; i++) {
		const struct table_metadata *table = after->tables[i];
		const struct table_metadata *old = keyspace_table(before, table->name);

		if (old == NULL)
			schema_tell(
			    executor, SCHEMA_CREATED, SCHEMA_TABLE, after->name, table->name);
		else if (!table_equal(old, table))
			schema_tell(
			    executor, SCHEMA_UPDATED, SCHEMA_TABLE, after->name, table->name);
	}
}

static void
schema_tell_dropped(struct executor *executor, const struct keyspace_metadata *before,
    const struct keyspace_metadata *after)
{
	for (uint32_t i = 0; i < before->table_count; i++)
		if (keyspace_table(after, before->tables[i]->name) == NULL)
			schema_tell(executor, SCHEMA_DROPPED, SCHEMA_TABLE, before->name,
			    before->tables[i]->name);
	for (uint32_t i = 0; i < before->type_count; i++)
		if (keyspace_type(after, before->types[i].type->name) == NULL)
			schema_tell(executor, SCHEMA_DROPPED, SCHEMA_TYPE, before->name,
			    before->types[i].type->name);
}

/* What a bootstrap or rebuild that broke off has brought is of a keyspace that is not there, or lies elsewhere now. */
static void
schema_forget_moved(struct executor *executor, const struct keyspace_metadata *before,
    const struct keyspace_metadata *after)
{
	char *name;
	struct error err;

	if (before == NULL ||
	    (after != NULL && option_map_equal(&before->replication, &after->replication)))
		return;
	name = xstrndup((const char *)before->name.data, before->name.size);
	if (system_ranges_forget_fetched(executor, name, &err) != 0)
		log_warn("system.available_ranges_v2 still has ranges of %s: %s", name, err.text);
	free(name);
}

/* One event for each keyspace, table and type that is not what it was. */
static void
schema_tell_keyspace(struct executor *executor, const struct schema *old_schema,
    const struct schema *new_schema, const struct schema_touched *touched)
{
	const struct keyspace_metadata *before = schema_keyspace(old_schema, touched->keyspace);
	const struct keyspace_metadata *after = schema_keyspace(new_schema, touched->keyspace);

	if (before == NULL && after == NULL)
		return;
	schema_forget_moved(executor, before, after);
	if (before == NULL || after == NULL) {
		schema_tell(executor, before == NULL ? SCHEMA_CREATED : SCHEMA_DROPPED,
		    SCHEMA_KEYSPACE, touched->keyspace, slice_null);
		if (after == NULL)
			return;
	} else if (before->durable_writes != after->durable_writes ||
	    !option_map_equal(&before->replication, &after->replication)) {
		schema_tell(
		    executor, SCHEMA_UPDATED, SCHEMA_KEYSPACE, touched->keyspace, slice_null);
	}
	if (before == NULL)
		return;
	schema_tell_dropped(executor, before, after);
	schema_tell_types(executor, before, after);
	schema_tell_tables(executor, before, after);
}

/* ---- Taking effect -------------------------------------------------------------------------- */

int
schema_sync_put(struct executor *executor, struct schema *schema, struct error *err)
{
	if (store_set_schema(executor->store, schema, err) != 0)
		return -1;
	schema_holder_set(&executor->schema, schema);
	return 0;
}

/* `schema` in place of the current one. The caller holds ddl_lock. */
static int
schema_sync_take(struct executor *executor, struct schema *schema, struct error *err)
{
	struct schema_renewal renewal = {.executor = executor, .schema = schema};

	if (schema_sync_put(executor, schema, err) != 0)
		return -1;
	prepared_cache_renew(&executor->prepared, schema_renew_plan, &renewal);
	return system_local_set_schema_version(executor, &schema->version, err);
}

/* ---- Entries ---------------------------------------------------------------------------------- */

struct schema_entry_reader {
	struct executor *executor;
	struct schema *schema; /* the current one; a reference */
	struct arena arena;
	struct mutation *mutations;
	uint32_t count;
};

static const struct table_metadata *
schema_entry_table(void *argument, const struct uuid *id)
{
	const struct schema_entry_reader *reader = argument;

	return schema_table_by_id(reader->schema, id);
}

/* u8 version, u32 count, mutations each behind its u32 size. */
static int
schema_entry_read(struct schema_entry_reader *entry, struct slice bytes, struct error *err)
{
	struct reader reader = reader_of(bytes);
	uint8_t version = reader_u8(&reader);
	uint32_t count = reader_u32(&reader);

	if (reader.is_failed || version != SCHEMA_SYNC_VERSION || count > SCHEMA_SYNC_MUTATIONS_MAX)
		return error_set(err, ERROR_INVALID,
		    "a schema change of another version (%u): upgrade this node", version);
	entry->mutations =
	    arena_calloc(&entry->arena, (size_t)count + 1, sizeof(*entry->mutations));
	if (entry->mutations == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a schema change");
	for (uint32_t i = 0; i < count; i++) {
		struct slice encoded = reader_bytes(&reader, reader_u32(&reader));
		struct mutation *mutation = &entry->mutations[entry->count];

		if (reader.is_failed)
			return error_set(err, ERROR_INVALID, "a schema change is cut off");
		if (mutation_decode(
			encoded, schema_entry_table, entry, &entry->arena, mutation, err) != 0)
			return -1;
		if (!slice_equal_string(slice_of_string(mutation->keyspace), "system_schema"))
			return error_set(err, ERROR_INVALID,
			    "a schema change writes to keyspace %s", mutation->keyspace);
		/* All of its tables may be unknown to this version. */
		entry->count += mutation->update_count > 0;
	}
	if (reader_left(&reader) != 0)
		return error_set(err, ERROR_INVALID, "a schema change has bytes too many");
	return 0;
}

static int
schema_touch_table(
    struct schema_entry_reader *entry, struct schema_touched *touched, struct slice name)
{
	/* Grown by doubling: capacity is the power of two above the count. */
	uint32_t count = touched->table_count;

	if ((count & (count - 1)) == 0) {
		struct slice *tables = arena_calloc(
		    &entry->arena, count == 0 ? 1 : (size_t)count * 2, sizeof(*tables));

		if (tables == NULL)
			return -1;
		if (count > 0)
			memcpy(tables, touched->tables, count * sizeof(*tables));
		touched->tables = tables;
	}
	((struct slice *)touched->tables)[touched->table_count++] = name;
	return 0;
}

static int
schema_touch_update(struct schema_entry_reader *entry, const struct partition_update *update,
    struct schema_touched *touched)
{
	struct slice table = update->table->name;

	if (!deletion_is_live(update->deletion))
		touched->is_all = true;
	if (slice_equal_string(table, "keyspaces")) {
		touched->has_params = true;
		return 0;
	}
	if (!slice_equal_string(table, "tables") && !slice_equal_string(table, "columns") &&
	    !slice_equal_string(table, "dropped_columns") &&
	    !slice_equal_string(table, "indexes")) {
		touched->is_all = true;
		return 0;
	}
	for (uint32_t i = 0; i < update->row_count; i++) {
		if (update->rows[i].clustering_count > 0 &&
		    schema_touch_table(entry, touched, update->rows[i].clustering[0]) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < update->tombstone_count; i++) {
		const struct range_tombstone *tombstone = &update->tombstones[i];

		if (tombstone->start_count == 0)
			touched->is_all = true;
		else if (schema_touch_table(entry, touched, tombstone->start[0]) != 0)
			return -1;
	}
	return 0;
}

/* Read back what the mutations wrote, keyspace by keyspace, and let it take effect. */
static int
schema_entry_reload(struct schema_entry_reader *entry, struct error *err)
{
	struct schema_touched *touched =
	    arena_calloc(&entry->arena, (size_t)entry->count + 1, sizeof(*touched));
	struct schema *schema = schema_ref(entry->schema), *changed;
	int rc = 0;

	if (touched == NULL)
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for a schema change");
	for (uint32_t i = 0; i < entry->count && rc == 0; i++) {
		const struct mutation *mutation = &entry->mutations[i];

		touched[i].keyspace = mutation->key;
		for (uint32_t k = 0; k < mutation->update_count && rc == 0; k++)
			if (schema_touch_update(entry, &mutation->updates[k], &touched[i]) != 0)
				rc = error_set(
				    err, ERROR_NO_MEMORY, "no memory for a schema change");
		if (rc == 0)
			rc = schema_tables_reload(
			    entry->executor, schema, &touched[i], &changed, err);
		if (rc == 0) {
			schema_unref(schema);
			schema = changed;
		}
	}
	if (rc == 0)
		rc = schema_sync_take(entry->executor, schema, err);
	for (uint32_t i = 0; i < entry->count && rc == 0; i++)
		schema_tell_keyspace(entry->executor, entry->schema, schema, &touched[i]);
	schema_unref(schema);
	return rc;
}

static void
schema_entry_open(struct schema_entry_reader *entry, struct executor *executor)
{
	*entry = (struct schema_entry_reader){.executor = executor};
	arena_init(&entry->arena, SCHEMA_SYNC_BLOCK);
	lock_take(&executor->ddl_lock);
	entry->schema = schema_holder_get(&executor->schema);
}

static void
schema_entry_close(struct schema_entry_reader *entry)
{
	schema_unref(entry->schema);
	lock_drop(&entry->executor->ddl_lock);
	arena_fini(&entry->arena);
}

static bool
schema_entry_deletes(const struct schema_entry_reader *entry)
{
	for (uint32_t i = 0; i < entry->count; i++) {
		const struct mutation *mutation = &entry->mutations[i];

		for (uint32_t k = 0; k < mutation->update_count; k++)
			if (!deletion_is_live(mutation->updates[k].deletion) ||
			    mutation->updates[k].tombstone_count > 0)
				return true;
	}
	return false;
}

/* Write the mutations, and let them take effect. */
static int
schema_entry_write(struct schema_entry_reader *entry, struct error *err)
{
	const struct keyspace_metadata *keyspace =
	    schema_keyspace(entry->schema, slice_of_string("system_schema"));

	if (internal_apply(entry->executor, entry->mutations, entry->count, keyspace, err) != 0)
		return -1;
	/* What is gone takes its files with it: not before that is certain. */
	if (schema_entry_deletes(entry) && store_sync(entry->executor->store, err) != 0)
		return -1;
	return schema_entry_reload(entry, err);
}

static int
schema_sync_apply(void *context, struct slice bytes, struct error *err)
{
	struct schema_entry_reader entry;
	int rc;

	schema_entry_open(&entry, context);
	rc = schema_entry_read(&entry, bytes, err);
	if (rc == 0)
		rc = schema_entry_write(&entry, err);
	schema_entry_close(&entry);
	return rc;
}

/* Open an entry; *count_at is where the number of mutations goes. */
static void
schema_entry_begin(struct buffer *out, size_t *count_at)
{
	buffer_put_u8(out, SCHEMA_SYNC_VERSION);
	*count_at = out->size;
	buffer_put_u32(out, 0);
}

/* The data centers that the ring has; this node's own where it is no member yet. */
static int
schema_places(struct executor *executor, struct schema_transformation *transformation)
{
	struct topology_holder *holder = executor->node->cluster->topology;
	const struct topology *topology = topology_acquire(holder);
	const char *const *names;
	uint32_t count = topology_datacenters(topology, &names);
	struct replication_place *places =
	    arena_calloc(transformation->arena, (size_t)count + 1, sizeof(*places));

	for (uint32_t d = 0; d < count && places != NULL; d++) {
		places[d].datacenter = arena_strdup(transformation->arena, names[d]);
		for (uint32_t i = 0; i < topology_member_count(topology); i++)
			places[d].node_count +=
			    strcmp(topology_member(topology, i)->datacenter, names[d]) == 0;
	}
	topology_release(holder, topology);
	transformation->places = places;
	transformation->default_factor = (int32_t)atomic_load(&executor->node->default_keyspace_rf);
	transformation->place_count = count;
	if (places != NULL && count == 0) {
		places[0] =
		    (struct replication_place){cluster_datacenter(executor->node->cluster), 1};
		transformation->place_count = 1;
	}
	return places == NULL ? -1 : 0;
}

static int
schema_sync_transform(
    void *context, void *argument, int64_t timestamp, struct buffer *out, struct error *err)
{
	struct executor *executor = context;
	struct schema_sync_change *change = argument;
	struct schema_transformation *transformation = change->transformation;
	struct schema *schema = schema_holder_get(&executor->schema), *next;
	size_t count_at;
	int rc, count;

	/* It may have been asked before, against an older schema. */
	keyspace_unref(transformation->after);
	transformation->after = NULL;
	transformation->before = NULL;
	transformation->is_noop = false;
	transformation->schema = schema;
	rc = schema_places(executor, transformation) == 0
	    ? schema_transform(transformation, err)
	    : error_set(err, ERROR_NO_MEMORY, "no memory for a schema change");
	if (rc == 0 && !transformation->is_noop) {
		next = transformation->after == NULL
		    ? schema_without_keyspace(schema, transformation->name)
		    : schema_with_keyspace(schema, transformation->after);
		/* A change that changes nothing. */
		transformation->is_noop = transformation->after != NULL && next != NULL &&
		    uuid_equal(&next->version, &schema->version);
		schema_unref(next);
	}
	if (rc == 0 && !transformation->is_noop) {
		schema_entry_begin(out, &count_at);
		count = schema_tables_encode(
		    executor, transformation->before, transformation->after, timestamp, out, err);
		if (count < 0)
			rc = -1;
		else
			buffer_patch_u32(out, count_at, (uint32_t)count);
	}
	/* The answer needs names only, and those are the statement's. */
	transformation->schema = NULL;
	transformation->before = NULL;
	schema_unref(schema);
	return rc != 0 ? -1 : !transformation->is_noop;
}

/* ---- Snapshots -------------------------------------------------------------------------------- */

/* In the log: what all nodes have alike. */
static bool
schema_is_shared(const struct keyspace_metadata *keyspace)
{
	return !keyspace->is_virtual && !schema_is_local_keyspace(keyspace->name);
}

/* An entry: the rows of every shared keyspace. */
static int
schema_sync_snapshot(void *context, int64_t timestamp, struct buffer *out, struct error *err)
{
	struct executor *executor = context;
	struct schema *schema = schema_holder_get(&executor->schema);
	uint32_t total = 0;
	size_t count_at;
	int rc = 0;

	schema_entry_begin(out, &count_at);
	for (uint32_t i = 0; i < schema->keyspace_count && rc == 0; i++) {
		int count = 0;

		if (schema_is_shared(schema->keyspaces[i]))
			count = schema_tables_encode(
			    executor, NULL, schema->keyspaces[i], timestamp, out, err);
		if (count < 0)
			rc = -1;
		else
			total += (uint32_t)count;
	}
	schema_unref(schema);
	if (rc == 0)
		rc = buffer_check(out, err);
	if (rc == 0)
		buffer_patch_u32(out, count_at, total);
	return rc;
}

/*
 * The mutation that leaves of a keyspace what `with` says (NULL: nothing): every table of system_schema loses what was
 * written up to `deletion`. One mutation, so that a crash leaves the old rows or the new ones.
 */
static int
schema_install_mutation(struct schema_entry_reader *entry, struct slice keyspace,
    const struct mutation *with, struct deletion deletion, struct mutation *out, struct error *err)
{
	const struct keyspace_metadata *tables =
	    schema_keyspace(entry->schema, slice_of_string("system_schema"));
	struct partition_update *updates =
	    arena_calloc(&entry->arena, tables->table_count, sizeof(*updates));
	int64_t token = with != NULL ? with->token : murmur3_token(keyspace);

	if (updates == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the schema");
	for (uint32_t i = 0; i < tables->table_count; i++) {
		updates[i] = (struct partition_update){
		    .table = tables->tables[i], .key = keyspace, .token = token};
		for (uint32_t k = 0; with != NULL && k < with->update_count; k++)
			if (with->updates[k].table == tables->tables[i])
				updates[i] = with->updates[k];
		updates[i].deletion = deletion;
	}
	*out = (struct mutation){.keyspace = "system_schema",
	    .key = keyspace,
	    .token = token,
	    .update_count = tables->table_count,
	    .updates = updates};
	return 0;
}

/* Turn the snapshot's mutations into those that also take away what it does not have. */
static int
schema_install_mutations(
    struct schema_entry_reader *entry, int64_t timestamp, int64_t now_seconds, struct error *err)
{
	struct deletion deletion = {timestamp, (int32_t)now_seconds};
	uint32_t count = 0;
	struct mutation *all = arena_calloc(
	    &entry->arena, (size_t)entry->count + entry->schema->keyspace_count + 1, sizeof(*all));

	if (all == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the schema");
	for (uint32_t i = 0; i < entry->count; i++)
		if (schema_install_mutation(entry, entry->mutations[i].key, &entry->mutations[i],
			deletion, &all[count++], err) != 0)
			return -1;
	for (uint32_t i = 0; i < entry->schema->keyspace_count; i++) {
		const struct keyspace_metadata *keyspace = entry->schema->keyspaces[i];
		bool is_known = !schema_is_shared(keyspace) ||
		    schema_is_replicated_system_keyspace(keyspace->name);

		for (uint32_t k = 0; k < entry->count && !is_known; k++)
			is_known = slice_equal(entry->mutations[k].key, keyspace->name);
		if (!is_known &&
		    schema_install_mutation(
			entry, keyspace->name, NULL, deletion, &all[count++], err) != 0)
			return -1;
	}
	entry->mutations = all;
	entry->count = count;
	return 0;
}

static int
schema_sync_install(void *context, struct slice snapshot, int64_t timestamp, struct error *err)
{
	struct executor *executor = context;
	struct schema_entry_reader entry;
	int rc;

	schema_entry_open(&entry, executor);
	rc = schema_entry_read(&entry, snapshot, err);
	if (rc == 0)
		rc = schema_install_mutations(
		    &entry, timestamp, env_wall_us(executor->env) / 1000000, err);
	if (rc == 0)
		rc = schema_entry_write(&entry, err);
	schema_entry_close(&entry);
	return rc;
}

/* ---- The log's own state ------------------------------------------------------------------------ */

/*
 * A row of system.paxos, where accepted and promised values of single rows stand too: the key is ours alone, for
 * no table has the id of the namespace.
 */
static const char schema_log_key[] = "schema log";
static const struct uuid schema_log_table;

static int
schema_sync_load(void *context, struct buffer *out, struct error *err)
{
	struct slice values[2] = {slice_of(schema_log_key, sizeof(schema_log_key) - 1),
	    slice_of(schema_log_table.bytes, sizeof(schema_log_table.bytes))};
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;

	if (internal_select(context,
		"SELECT most_recent_commit FROM system.paxos WHERE row_key = ? AND cf_id = ?",
		values, 2, &rows, err) != 0)
		return -1;
	if (internal_rows_next(&rows, cells) && !slice_is_null(cells[0]))
		buffer_put_slice(out, cells[0]);
	internal_rows_fini(&rows);
	return buffer_check(out, err);
}

static int
schema_sync_save(void *context, struct slice state, struct error *err)
{
	struct executor *executor = context;
	struct slice values[3] = {state, slice_of(schema_log_key, sizeof(schema_log_key) - 1),
	    slice_of(schema_log_table.bytes, sizeof(schema_log_table.bytes))};

	if (internal_execute(executor,
		"UPDATE system.paxos SET most_recent_commit = ? WHERE row_key = ? AND cf_id = ?",
		values, 3, err) != 0)
		return -1;
	/* Acknowledged schema changes survive the machine's death in every mode of the commit log. */
	return store_sync(executor->store, err);
}

static void
schema_sync_done(void *context, void *argument, bool is_noop, const struct error *err)
{
	struct schema_sync_change *change = argument;

	(void)context;
	change->done(change, is_noop, err);
}

const struct schema_log_ops schema_sync_ops = {.load = schema_sync_load,
    .save = schema_sync_save,
    .transform = schema_sync_transform,
    .apply = schema_sync_apply,
    .snapshot = schema_sync_snapshot,
    .install = schema_sync_install,
    .done = schema_sync_done};
