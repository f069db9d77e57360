/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that change while the node runs, and lookups that fit nowhere else. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/admin_internal.h"
#include "server/cluster.h"
#include "server/node.h"
#include "storage/store.h"

static int64_t
admin_column_index_size(struct node *node)
{
	return store_column_index_size(node->store);
}

static void
admin_set_column_index_size(struct node *node, int64_t value)
{
	store_set_column_index_size(node->store, (uint32_t)value);
}

static int64_t
admin_snapshot_throttle(struct node *node)
{
	return (int64_t)store_snapshot_throttle(node->store);
}

static void
admin_set_snapshot_throttle(struct node *node, int64_t value)
{
	store_set_snapshot_throttle(node->store, (uint64_t)value);
}

static int64_t
admin_default_rf(struct node *node)
{
	return atomic_load(&node->default_keyspace_rf);
}

static void
admin_set_default_rf(struct node *node, int64_t value)
{
	atomic_store(&node->default_keyspace_rf, value);
}

static int64_t
admin_old_protocols(struct node *node)
{
	return network_allows_older_versions(node->network);
}

static void
admin_set_old_protocols(struct node *node, int64_t value)
{
	network_allow_older_versions(node->network, value != 0);
}

static const struct {
	const char *name;
	int64_t low, high;
	int64_t (*get)(struct node *node);
	void (*set)(struct node *node, int64_t value);
} admin_settings[] = {
    {"column_index_bytes", 1024, INT32_MAX, admin_column_index_size, admin_set_column_index_size},
    {"default_keyspace_rf", 1, INT32_MAX, admin_default_rf, admin_set_default_rf},
    {"older_protocols", 0, 1, admin_old_protocols, admin_set_old_protocols},
    {"snapshot_links_per_second", 0, INT32_MAX, admin_snapshot_throttle,
	admin_set_snapshot_throttle},
};

enum { ADMIN_SETTINGS = sizeof(admin_settings) / sizeof(admin_settings[0]) };

int
admin_get_limits(struct admin_call *call, struct error *err)
{
	(void)err;
	for (size_t i = 0; i < ADMIN_SETTINGS; i++)
		json_object_set_new(call->answer, admin_settings[i].name,
		    json_integer(admin_settings[i].get(call->node)));
	return 0;
}

int
admin_post_limit(struct admin_call *call, struct error *err)
{
	const char *name;
	int64_t value;

	if (admin_need(call, "name", &name, err) != 0)
		return -1;
	for (size_t i = 0; i < ADMIN_SETTINGS; i++) {
		if (strcmp(admin_settings[i].name, name) != 0)
			continue;
		if (admin_need_number(call, "value", admin_settings[i].low, admin_settings[i].high,
			&value, err) != 0)
			return -1;
		admin_settings[i].set(call->node, value);
		log_info("%s: %lld from now on", name, (long long)value);
		return 0;
	}
	return error_set(err, ERROR_INVALID, "no setting '%s'", name);
}

/* ---- of a table ----------------------------------------------------------------------------------- */

static int
admin_one_table(struct admin_call *call, struct table_store **out, struct error *err)
{
	const char *keyspace, *name;

	if (admin_need(call, "keyspace", &keyspace, err) != 0 ||
	    admin_need(call, "table", &name, err) != 0)
		return -1;
	*out = store_find_table(call->node->store, keyspace, name);
	return *out != NULL
	    ? 0
	    : error_set(err, ERROR_INVALID, "Unknown keyspace/cf pair (%s.%s)", keyspace, name);
}

static void
admin_add_token(void *argument, int64_t token)
{
	json_array_append_new(argument, json_integer(token));
}

int
admin_get_key_samples(struct admin_call *call, struct error *err)
{
	struct table_store **tables;
	json_t *tokens = json_array();
	uint32_t count;

	json_object_set_new(call->answer, "tokens", tokens);
	if (admin_tables(call, &tables, &count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		/* Cassandra: those of the keyspaces that are not its own. */
		if (strncmp(table_store_keyspace(tables[i]), "system", 6) != 0)
			store_key_samples(tables[i], admin_add_token, tokens);
	}
	free(tables);
	return 0;
}

/* ---- import --------------------------------------------------------------------------------------- */

static bool
admin_flag(const struct admin_call *call, const char *name)
{
	const char *text = admin_argument(call, name);

	return text != NULL && strcmp(text, "true") == 0;
}

static void
admin_import_failed(void *argument, const char *path, const struct error *err)
{
	json_t *json = json_object();

	admin_set_text(json, "path", path);
	admin_set_text(json, "error", err->text);
	json_array_append_new(argument, json);
}

int
admin_post_import(struct admin_call *call, struct error *err)
{
	struct store_import_options options = {.copies = admin_flag(call, "copy"),
	    .keeps_level = admin_flag(call, "keeplevel"),
	    .keeps_repaired = admin_flag(call, "keeprepaired"),
	    .is_unverified = admin_flag(call, "noverify"),
	    .is_extended = admin_flag(call, "extended")};
	struct stream_range *owned = NULL;
	json_t *failures = json_array();
	struct table_store *table;
	const char *directory;
	uint32_t added = 0;
	int rc;

	json_object_set_new(call->answer, "failures", failures);
	if (admin_one_table(call, &table, err) != 0 ||
	    admin_need(call, "directory", &directory, err) != 0)
		return -1;
	if (!admin_flag(call, "anytokens"))
		owned = cluster_owned_ranges(
		    call->node->cluster, table_store_keyspace(table), &options.owned_count);
	options.owned = owned;
	rc = store_import(call->node->store, table, directory, &options, &added,
	    admin_import_failed, failures, err);
	free(owned);
	json_object_set_new(call->answer, "added", json_integer(added));
	return rc;
}
