/* SPDX-License-Identifier: Apache-2.0 */
#include "server/denylist.h"

#include <inttypes.h>
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/consistency.h"
#include "base/hash.h"
#include "base/log.h"
#include "server/execution.h"
#include "server/internal_query.h"
#include "server/modification.h"
#include "server/ranks.h"
#include "server/select_internal.h"

enum { DENYLIST_ARENA = 4096 };

struct denylist_key {
	int64_t token;
	struct slice key;
};

struct denylist_table {
	struct uuid id;
	uint32_t count;
	struct denylist_key *keys; /* by token, then bytes */
};

struct denylist_list {
	atomic_uint refs; /* the denylist's, and one of each check that runs */
	struct arena arena; /* owned; tables, keys */
	uint32_t count;
	struct denylist_table *tables; /* by id */
};

struct denylist {
	struct executor *executor; /* borrowed */
	enum consistency level;
	atomic_bool is_running; /* a reload */
	_Atomic uint64_t next_ns; /* when to reload, monotonic */
	struct log_limit log;

	struct lock lock;
	struct denylist_list *list; /* guarded by lock; a reference; NULL: not loaded yet */
};

/* ---- The list ------------------------------------------------------------------------------ */

static void
denylist_list_unref(struct denylist_list *list)
{
	if (list == NULL || atomic_fetch_sub(&list->refs, 1) > 1)
		return;
	arena_fini(&list->arena);
	free(list);
}

static struct denylist_list *
denylist_acquire(struct denylist *denylist)
{
	struct denylist_list *list;

	lock_take(&denylist->lock);
	list = denylist->list;
	if (list != NULL)
		atomic_fetch_add(&list->refs, 1);
	lock_drop(&denylist->lock);
	return list;
}

static int
denylist_compare_keys(const void *a, const void *b)
{
	const struct denylist_key *left = a, *right = b;

	if (left->token != right->token)
		return left->token < right->token ? -1 : 1;
	return slice_compare(left->key, right->key);
}

static int
denylist_compare_tables(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct uuid));
}

static const struct denylist_table *
denylist_table(const struct denylist_list *list, const struct table_metadata *table)
{
	static_assert(offsetof(struct denylist_table, id) == 0, "bsearch() compares ids");

	return bsearch(
	    &table->id, list->tables, list->count, sizeof(*list->tables), denylist_compare_tables);
}

/* A client without these could not mend anything. */
static bool
denylist_is_exempt(struct slice keyspace)
{
	static const char *const names[] = {"system", "system_distributed", "system_traces",
	    "system_virtual_schema", "system_views", "system_auth"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_equal_string(keyspace, names[i]))
			return true;
	return false;
}

/* ---- Loading ------------------------------------------------------------------------------- */

enum {
	DENYLIST_KEYSPACE,
	DENYLIST_TABLE,
	DENYLIST_KEY,
};

static void
denylist_tell_limit(const struct slice *cells, const char *which, const char *key, int64_t limit)
{
	log_error(
	    "Partition denylist for %.*s/%.*s has exceeded the %s allowance of (%" PRId64
	    "). Remaining keys were ignored; please reduce the total number of keys denied or "
	    "increase %s to avoid inconsistency in denied partitions across nodes.",
	    (int)cells[DENYLIST_KEYSPACE].size, (const char *)cells[DENYLIST_KEYSPACE].data,
	    (int)cells[DENYLIST_TABLE].size, (const char *)cells[DENYLIST_TABLE].data, which, limit,
	    key);
}

/* The table that the list was adding to, or the next one, whose keys begin at `keys`. */
static struct denylist_table *
denylist_list_table(struct denylist_list *list, const struct uuid *id, struct denylist_key *keys)
{
	struct denylist_table *table = list->count > 0 ? &list->tables[list->count - 1] : NULL;

	if (table == NULL || memcmp(&table->id, id, sizeof(*id)) != 0) {
		table = &list->tables[list->count++];
		table->id = *id;
		table->keys = keys;
	}
	return table;
}

/* Rows as they come: of one table together, its keys in order. */
static int
denylist_fill(const struct denylist *denylist, struct denylist_list *list,
    struct internal_rows *rows, struct error *err)
{
	const struct config *config = denylist->executor->config;
	struct schema *schema = schema_holder_get(&denylist->executor->schema);
	uint32_t each = (uint32_t)config->denylist_max_keys_per_table, total = 0;
	struct denylist_key *keys = arena_calloc(&list->arena, rows->left + 1, sizeof(*keys));
	struct slice cells[INTERNAL_COLUMNS_MAX];

	list->tables = arena_calloc(&list->arena, rows->left + 1, sizeof(*list->tables));
	if (keys == NULL || list->tables == NULL) {
		schema_unref(schema);
		return error_set(err, ERROR_NO_MEMORY, "no memory");
	}
	while (internal_rows_next(rows, cells)) {
		const struct table_metadata *metadata =
		    schema_table(schema, cells[DENYLIST_KEYSPACE], cells[DENYLIST_TABLE]);
		struct denylist_table *table;

		if (metadata == NULL)
			continue;
		if (total >= (uint32_t)config->denylist_max_keys_total) {
			denylist_tell_limit(cells, "global", "denylist_max_keys_total",
			    config->denylist_max_keys_total);
			break;
		}
		table = denylist_list_table(list, &metadata->id, keys + total);
		if (table->count == each) {
			denylist_tell_limit(
			    cells, "per-table", "denylist_max_keys_per_table", each);
			continue;
		}
		keys[total].key = arena_copy(&list->arena, cells[DENYLIST_KEY]);
		keys[total].token = murmur3_token(keys[total].key);
		table->count++;
		total++;
	}
	schema_unref(schema);
	for (uint32_t i = 0; i < list->count; i++)
		qsort(list->tables[i].keys, list->tables[i].count, sizeof(*list->tables[i].keys),
		    denylist_compare_keys);
	qsort(list->tables, list->count, sizeof(*list->tables), denylist_compare_tables);
	return 0;
}

static int
denylist_read(struct denylist *denylist, struct denylist_list **out, struct error *err)
{
	struct executor *executor = denylist->executor;
	struct denylist_list *list;
	struct internal_rows rows;
	char query[160];
	int rc;

	/* One more than is taken of each, to see that there is one. */
	snprintf(query, sizeof(query),
	    "SELECT ks_name, table_name, key FROM system_distributed.partition_denylist PER "
	    "PARTITION LIMIT %lld",
	    (long long)executor->config->denylist_max_keys_per_table + 1);
	if (internal_select_at(executor, denylist->level, query, NULL, 0, &rows, err) != 0)
		return -1;
	list = xzalloc(sizeof(*list));
	atomic_init(&list->refs, 1);
	arena_init(&list->arena, DENYLIST_ARENA);
	rc = denylist_fill(denylist, list, &rows, err);
	internal_rows_fini(&rows);
	if (rc == 0)
		*out = list;
	else
		denylist_list_unref(list);
	return rc;
}

void
denylist_load(struct denylist *denylist)
{
	struct denylist_list *list, *old;
	char left_out[LOG_LIMIT_TEXT_MAX];
	const struct config *config;
	struct error err;
	uint64_t now;

	if (denylist == NULL)
		return;
	config = denylist->executor->config;
	now = env_monotonic_ns(denylist->executor->env);
	if (denylist_read(denylist, &list, &err) != 0) {
		if (log_limit_take(&denylist->log, now, left_out))
			log_warn("Failed to load partition denylist at %s: %s; tried again in "
				 "%lld seconds. Until then it stays as it is%s",
			    consistency_name(denylist->level), err.text,
			    (long long)config->denylist_initial_load_retry / 1000, left_out);
		atomic_store(&denylist->next_ns,
		    now + (uint64_t)config->denylist_initial_load_retry * 1000000);
		return;
	}
	log_limit_reset(&denylist->log);
	lock_take(&denylist->lock);
	old = denylist->list;
	denylist->list = list;
	lock_drop(&denylist->lock);
	if (old == NULL)
		log_info("Loaded partition denylist: %" PRIu32 " tables", list->count);
	denylist_list_unref(old);
	atomic_store(&denylist->next_ns, now + (uint64_t)config->denylist_refresh * 1000000);
}

static void
denylist_run(void *argument)
{
	struct denylist *denylist = argument;

	denylist_load(denylist);
	atomic_store(&denylist->is_running, false);
}

void
denylist_tick(struct denylist *denylist)
{
	struct stage *stage;

	if (denylist == NULL ||
	    env_monotonic_ns(denylist->executor->env) < atomic_load(&denylist->next_ns) ||
	    atomic_exchange(&denylist->is_running, true))
		return;
	stage = denylist->executor->node->stages[NODE_STAGE_MISC];
	if (!stage_submit_work(stage, denylist_run, denylist))
		atomic_store(&denylist->is_running, false);
}

struct denylist *
denylist_new(struct executor *executor)
{
	const char *level = executor->config->denylist_consistency_level;
	struct denylist *denylist;

	if (!executor->config->partition_denylist_enabled)
		return NULL;
	denylist = xzalloc(sizeof(*denylist));
	denylist->executor = executor;
	lock_init(&denylist->lock, "denylist", RANK_DENYLIST);
	/* config_finish_guardrails() has looked at it. */
	(void)consistency_parse(level, strlen(level), &denylist->level);
	return denylist;
}

void
denylist_free(struct denylist *denylist)
{
	if (denylist == NULL)
		return;
	denylist_list_unref(denylist->list);
	lock_fini(&denylist->lock);
	free(denylist);
}

/* ---- Asking -------------------------------------------------------------------------------- */

static int
denylist_check_key(const struct denylist_list *list, const struct table_metadata *table,
    struct slice key, const char *what, struct error *err)
{
	const struct denylist_table *denied = denylist_table(list, table);
	struct denylist_key wanted;
	struct buffer text;

	if (denied == NULL)
		return 0;
	wanted = (struct denylist_key){murmur3_token(key), key};
	if (bsearch(&wanted, denied->keys, denied->count, sizeof(wanted), denylist_compare_keys) ==
	    NULL)
		return 0;
	buffer_init(&text);
	for (size_t i = 0; i < key.size; i++)
		buffer_printf(&text, "%02x", key.data[i]);
	error_set(err, ERROR_INVALID,
	    "Unable to %s denylisted partition [0xDecoratedKey(%" PRId64 ", %.*s)] in %.*s/%.*s",
	    what, wanted.token, (int)text.size, (const char *)text.data, (int)table->keyspace.size,
	    table->keyspace.data, (int)table->name.size, table->name.data);
	buffer_fini(&text);
	return -1;
}

static int
denylist_check_range(
    const struct denylist_list *list, const struct select_run *run, struct error *err)
{
	const struct denylist_table *denied = denylist_table(list, run->table);
	const struct token_range *range = &run->command.range;
	/* A page that goes on behind a key: the key itself was read. */
	bool includes_left = range->includes_left && slice_is_null(range->start_key);
	uint32_t count = 0;
	struct buffer text;

	for (uint32_t i = 0; denied != NULL && i < denied->count; i++) {
		int64_t token = denied->keys[i].token;

		if (range->left != INT64_MIN &&
		    (token < range->left || (token == range->left && !includes_left)))
			continue;
		if (range->right != INT64_MIN &&
		    (token > range->right || (token == range->right && range->excludes_right)))
			continue;
		count++;
	}
	if (count == 0)
		return 0;
	buffer_init(&text);
	select_put_tokens(run, &text);
	error_set(err, ERROR_INVALID,
	    "Attempted to read a range containing %" PRIu32
	    " denylisted keys in %.*s/%.*s. Range read: %.*s",
	    count, (int)run->table->keyspace.size, run->table->keyspace.data,
	    (int)run->table->name.size, run->table->name.data, (int)text.size,
	    (const char *)text.data);
	buffer_fini(&text);
	return -1;
}

int
denylist_check_select(const struct select_run *run, struct error *err)
{
	const struct execution *execution = run->execution;
	struct denylist *denylist = execution->executor->node->denylist;
	const struct config *config = execution->executor->config;
	struct denylist_list *list;
	int rc = 0;

	if (denylist == NULL || execution->client == NULL ||
	    !(run->is_range ? config->denylist_range_reads_enabled
			    : config->denylist_reads_enabled) ||
	    denylist_is_exempt(run->table->keyspace))
		return 0;
	list = denylist_acquire(denylist);
	if (list == NULL)
		return 0;
	if (run->is_range)
		rc = denylist_check_range(list, run, err);
	for (uint32_t i = run->key_index; rc == 0 && !run->is_range && i < run->key_count; i++)
		rc = denylist_check_key(list, run->table, run->keys[i], "read", err);
	denylist_list_unref(list);
	return rc;
}

static int
denylist_check_modification(const struct denylist_list *list,
    const struct modification *modification, const char *what, struct error *err)
{
	struct slice *keys;
	uint32_t count;

	if (denylist_is_exempt(modification->plan->table->keyspace) ||
	    denylist_table(list, modification->plan->table) == NULL)
		return 0;
	if (modification_keys(modification, &keys, &count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		if (denylist_check_key(list, modification->plan->table, keys[i], what, err) != 0)
			return -1;
	return 0;
}

int
denylist_check_write(const struct execution *execution, const struct modification *modifications,
    uint32_t count, struct error *err)
{
	struct denylist *denylist = execution->executor->node->denylist;
	const char *what = "write to";
	struct denylist_list *list;
	int rc = 0;

	if (denylist == NULL || execution->client == NULL ||
	    !execution->executor->config->denylist_writes_enabled)
		return 0;
	list = denylist_acquire(denylist);
	if (list == NULL)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (modifications[i].plan->is_conditional)
			what = "CAS write to";
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = denylist_check_modification(list, &modifications[i], what, err);
	denylist_list_unref(list);
	return rc;
}
