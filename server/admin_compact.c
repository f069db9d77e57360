/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the API that read and write SSTables anew: compact, upgradesstables, scrub, verify. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/admin_internal.h"
#include "server/cluster.h"
#include "server/node.h"
#include "server/operations.h"
#include "storage/store.h"

/* What a call wants of each table. */
struct admin_compact {
	struct admin_call *call;
	struct schema *schema;
	uint64_t done; /* SSTables, or partitions */
	const char *key; /* compact --partition */
	int64_t left, right; /* compact -st, -et */
	char **files; /* compact --user-defined */
	uint32_t file_count;
	json_t *list; /* verify: borrowed of the answer */
	uint32_t jobs;
	enum store_upgrade upgrade;
};

typedef int (*admin_compact_fn)(
    struct admin_compact *compact, struct table_store *table, struct error *err);

static int
admin_compact_tables(struct admin_compact *compact, admin_compact_fn run, struct error *err)
{
	struct node *node = compact->call->node;
	int mode = atomic_load(&node->mode);
	struct table_store **tables;
	uint32_t count;
	int rc = 0;

	if (mode == NODE_DRAINING || mode == NODE_DRAINED)
		return error_set(err, ERROR_SHUTDOWN, "Node in DRAINED state");
	if (admin_tables(compact->call, &tables, &count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		rc = run(compact, tables[i], err);
		if (rc != 0)
			error_prefix(err, "%s.%s", table_store_keyspace(tables[i]),
			    table_store_name(tables[i]));
	}
	json_object_set_new(compact->call->answer, "tables", json_integer(count));
	free(tables);
	return rc;
}

static bool
admin_is_true(const struct admin_call *call, const char *name)
{
	const char *text = admin_argument(call, name);

	return text != NULL && strcmp(text, "true") == 0;
}

/* ---- compact --------------------------------------------------------------------------------------- */

static int
admin_compact_all(struct admin_compact *compact, struct table_store *table, struct error *err)
{
	struct store *store = compact->call->node->store;

	return admin_is_true(compact->call, "split") ? store_compact_split(store, table, err)
						     : store_compact(store, table, err);
}

static int
admin_compact_range(struct admin_compact *compact, struct table_store *table, struct error *err)
{
	uint32_t chosen;

	return store_compact_range(
	    compact->call->node->store, table, compact->left, compact->right, &chosen, err);
}

static int
admin_compact_key(struct admin_compact *compact, struct table_store *table, struct error *err)
{
	const struct table_metadata *metadata = schema_table(compact->schema,
	    slice_of_string(table_store_keyspace(table)), slice_of_string(table_store_name(table)));
	struct arena arena;
	struct slice key;
	uint32_t chosen;
	int rc = 0;

	arena_init(&arena, 1024);
	if (metadata != NULL)
		rc = admin_partition_key(metadata, compact->key, &arena, &key, err);
	if (metadata != NULL && rc == 0)
		rc = store_compact_key(compact->call->node->store, table, key, &chosen, err);
	arena_fini(&arena);
	return rc;
}

static int
admin_compact_files(struct admin_compact *compact, struct table_store *table, struct error *err)
{
	uint32_t chosen = 0;
	int rc = store_compact_files(compact->call->node->store, table,
	    (const char *const *)compact->files, compact->file_count, &chosen, err);

	compact->done += chosen;
	return rc;
}

static int
admin_post_compact_files(struct admin_compact *compact, const char *list, struct error *err)
{
	char *copy = xstrdup(list), *rest = copy, *name;
	int rc;

	compact->files = xcalloc(strlen(list) + 1, sizeof(char *));
	while ((name = strsep(&rest, ", ")) != NULL)
		if (*name != '\0')
			compact->files[compact->file_count++] = name;
	rc = admin_compact_tables(compact, admin_compact_files, err);
	if (rc == 0 && compact->done < compact->file_count)
		rc = error_set(err, ERROR_INVALID,
		    "only %u of these %u files are active SSTables: %s", (unsigned)compact->done,
		    compact->file_count, list);
	free(compact->files);
	free(copy);
	return rc;
}

static int
admin_token(const char *text, int64_t *out, struct error *err)
{
	char *end;

	if (text == NULL) {
		*out = INT64_MIN; /* the ring's beginning, and its end */
		return 0;
	}
	*out = strtoll(text, &end, 10);
	if (*end != '\0')
		return error_set(err, ERROR_INVALID, "'%s' is no token", text);
	return 0;
}

int
admin_post_compact(struct admin_call *call, struct error *err)
{
	struct admin_compact compact = {.call = call, .key = admin_argument(call, "key")};
	const char *start = admin_argument(call, "start"), *end = admin_argument(call, "end");
	const char *files = admin_argument(call, "files");
	int rc;

	if (files != NULL)
		return admin_post_compact_files(&compact, files, err);
	if (compact.key != NULL) {
		compact.schema = operations_schema(call->node->executor);
		rc = admin_compact_tables(&compact, admin_compact_key, err);
		schema_unref(compact.schema);
		return rc;
	}
	if (start == NULL && end == NULL)
		return admin_compact_tables(&compact, admin_compact_all, err);
	if (admin_token(start, &compact.left, err) != 0 ||
	    admin_token(end, &compact.right, err) != 0)
		return -1;
	return admin_compact_tables(&compact, admin_compact_range, err);
}

/* ---- the others ------------------------------------------------------------------------------------- */

int
admin_jobs(const struct admin_call *call, uint32_t *out, struct error *err)
{
	int64_t jobs = 2;

	if (admin_argument(call, "jobs") != NULL &&
	    admin_need_number(call, "jobs", 0, INT32_MAX, &jobs, err) != 0)
		return -1;
	*out = (uint32_t)jobs;
	return 0;
}

static int
admin_upgrade(struct admin_compact *compact, struct table_store *table, struct error *err)
{
	uint32_t rewritten = 0;
	int rc = store_upgrade(
	    compact->call->node->store, table, compact->upgrade, compact->jobs, &rewritten, err);

	compact->done += rewritten;
	return rc;
}

static int
admin_rewrite(struct admin_call *call, enum store_upgrade which, struct error *err)
{
	struct admin_compact compact = {.call = call, .upgrade = which};
	int rc;

	if (admin_jobs(call, &compact.jobs, err) != 0)
		return -1;
	rc = admin_compact_tables(&compact, admin_upgrade, err);
	json_object_set_new(call->answer, "rewritten", json_integer((json_int_t)compact.done));
	return rc;
}

int
admin_post_upgrade(struct admin_call *call, struct error *err)
{
	return admin_rewrite(
	    call, admin_is_true(call, "all") ? STORE_UPGRADE_ALL : STORE_UPGRADE_OLD, err);
}

int
admin_post_recompress(struct admin_call *call, struct error *err)
{
	return admin_rewrite(call, STORE_UPGRADE_RECOMPRESS, err);
}

static int
admin_scrub(struct admin_compact *compact, struct table_store *table, struct error *err)
{
	const struct admin_call *call = compact->call;
	const struct store_scrub_options options = {.skips_corrupted = admin_is_true(call, "skip"),
	    .no_validation = admin_is_true(call, "novalidate"),
	    .no_snapshot = admin_is_true(call, "nosnapshot"),
	    .jobs = compact->jobs};
	uint64_t good = 0, bad = 0;
	json_t *json;

	if (store_scrub(call->node->store, table, &options, &good, &bad, err) != 0)
		return -1;
	json = json_object();
	json_object_set_new(json, "keyspace", json_string(table_store_keyspace(table)));
	json_object_set_new(json, "table", json_string(table_store_name(table)));
	json_object_set_new(json, "good", json_integer((json_int_t)good));
	json_object_set_new(json, "bad", json_integer((json_int_t)bad));
	json_array_append_new(compact->list, json);
	return 0;
}

int
admin_post_scrub(struct admin_call *call, struct error *err)
{
	struct admin_compact compact = {.call = call, .list = json_array()};

	json_object_set_new(call->answer, "scrubbed", compact.list);
	if (admin_jobs(call, &compact.jobs, err) != 0)
		return -1;
	return admin_compact_tables(&compact, admin_scrub, err);
}

static int
admin_collect_garbage(struct admin_compact *compact, struct table_store *table, struct error *err)
{
	return store_collect_garbage(compact->call->node->store, table,
	    admin_is_true(compact->call, "cells"), compact->jobs, err);
}

int
admin_post_garbage_collect(struct admin_call *call, struct error *err)
{
	struct admin_compact compact = {.call = call};

	if (admin_jobs(call, &compact.jobs, err) != 0)
		return -1;
	return admin_compact_tables(&compact, admin_collect_garbage, err);
}

static void
admin_verified(void *argument, const char *path, const struct error *err)
{
	json_t *json = json_object();

	json_object_set_new(json, "path", json_string(path));
	if (err != NULL)
		json_object_set_new(json, "error", json_string(err->text));
	json_array_append_new(argument, json);
}

static int
admin_verify(struct admin_compact *compact, struct table_store *table, struct error *err)
{
	const struct admin_call *call = compact->call;
	struct store_verify_options options = {.is_extended = admin_is_true(call, "extended"),
	    .is_quick = admin_is_true(call, "quick"),
	    .marks_unrepaired = admin_is_true(call, "unrepaired"),
	    .tells_failures = admin_is_true(call, "failures")};
	struct stream_range *owned = NULL;
	int rc;

	if (admin_is_true(call, "tokens"))
		owned = cluster_owned_ranges(
		    call->node->cluster, table_store_keyspace(table), &options.owned_count);
	options.owned = owned;
	rc = store_verify(call->node->store, table, &options, admin_verified, compact->list, err);
	free(owned);
	return rc;
}

int
admin_post_verify(struct admin_call *call, struct error *err)
{
	struct admin_compact compact = {.call = call, .list = json_array()};

	json_object_set_new(call->answer, "sstables", compact.list);
	return admin_compact_tables(&compact, admin_verify, err);
}
