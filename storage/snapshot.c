/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/snapshot.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cql/describe.h"
#include "storage/store_internal.h"

char *
snapshot_auto_tag(struct env *env, const char *reason, const char *table)
{
	return xasprintf("%s-%" PRId64 "-%s", reason, env_wall_us(env) / 1000, table);
}

/* A tag becomes a folder's name. */
static bool
snapshot_tag_is_sound(const char *tag)
{
	return *tag != '\0' && strlen(tag) < 200 && strchr(tag, '/') == NULL &&
	    strcmp(tag, ".") != 0 && strcmp(tag, "..") != 0;
}

static char *
snapshot_path(const struct table_store *table, const char *tag)
{
	return xasprintf("%s/snapshots/%s", table->directory, tag);
}

/* Link every component of one SSTable and add its Data file to the manifest. */
static int
snapshot_link(struct store *store, struct sstable *sstable, const char *folder,
    struct buffer *manifest, struct error *err)
{
	const struct sstable_descriptor *descriptor = sstable_descriptor(sstable);

	for (int component = 0; component < SSTABLE_COMPONENT_COUNT; component++) {
		char from[SSTABLE_PATH_MAX];
		char *to;
		int rc;

		if (sstable_path(descriptor, (enum sstable_component)component, from, err) != 0)
			return -1;
		if (!files_exists(store->env->files, from))
			continue;
		to = xasprintf("%s/%s", folder, strrchr(from, '/') + 1);
		rc = files_link(store->env->files, from, to, err);
		if (rc == 0 && component == SSTABLE_DATA)
			buffer_printf(manifest, "%s\"%s\"", manifest->size > 0 ? "," : "",
			    strrchr(to, '/') + 1);
		free(to);
		if (rc != 0)
			return -1;
	}
	return 0;
}

static int
snapshot_write_manifest(
    struct store *store, const char *folder, const struct buffer *names, struct error *err)
{
	char *path = xasprintf("%s/manifest.json", folder);
	time_t seconds = (time_t)(env_wall_us(store->env) / 1000000);
	struct buffer text;
	char when[32];
	struct tm tm;
	int rc;

	gmtime_r(&seconds, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buffer_init(&text);
	buffer_printf(&text,
	    "{\"files\":[%.*s],\"created_at\":\"%s\",\"expires_at\":null,"
	    "\"ephemeral\":false}\n",
	    (int)names->size, (const char *)names->data, when);
	rc = buffer_check(&text, err);
	if (rc == 0)
		rc = files_replace(store->env->files, path, buffer_slice(&text), err);
	buffer_fini(&text);
	free(path);
	return rc;
}

static int
snapshot_write_schema(
    struct store *store, struct table_store *table, const char *folder, struct error *err)
{
	char *path = xasprintf("%s/schema.cql", folder);
	const struct table_metadata *metadata = atomic_load(&table->metadata);
	const struct keyspace_metadata *keyspace;
	struct schema *schema;
	struct buffer text;
	int rc;

	/* A schema change may put another one in its place meanwhile. */
	lock_take(&store->tables_lock);
	schema = schema_ref(store->schema);
	lock_drop(&store->tables_lock);
	keyspace = schema_keyspace(schema, metadata->keyspace);
	buffer_init(&text);
	/* A keyspace that is being dropped may be gone from the schema already: no types to print then. */
	if (keyspace != NULL)
		describe_table(keyspace, metadata, true, true, &text);
	schema_unref(schema);
	rc = buffer_check(&text, err);
	if (rc == 0)
		rc = files_replace(store->env->files, path, buffer_slice(&text), err);
	buffer_fini(&text);
	free(path);
	return rc;
}

int
store_snapshot(struct store *store, struct table_store *table, const char *tag, struct error *err)
{
	struct table_view *view = NULL;
	struct buffer names;
	char *folder;
	int rc = -1;

	if (!snapshot_tag_is_sound(tag))
		return error_set(err, ERROR_INVALID, "'%s' cannot name a snapshot", tag);
	folder = snapshot_path(table, tag);
	buffer_init(&names);
	if (files_exists(store->env->files, folder)) {
		error_set(err, ERROR_INVALID, "Snapshot %s already exists.", tag);
		goto done;
	}
	if (store_flush(store, table, err) != 0 || files_mkdir(store->env->files, folder, err) != 0)
		goto done;
	/* The view holds the SSTables: their files stay while we link them. */
	view = table_view_acquire(table);
	rc = 0;
	for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++)
		rc = snapshot_link(store, view->sstables[i], folder, &names, err);
	if (rc == 0)
		rc = buffer_check(&names, err);
	if (rc == 0)
		rc = snapshot_write_manifest(store, folder, &names, err);
	if (rc == 0)
		rc = snapshot_write_schema(store, table, folder, err);
	if (rc == 0)
		rc = files_sync_folder(store->env->files, folder, err);
done:
	table_view_release(view);
	buffer_fini(&names);
	free(folder);
	return rc;
}

/* ---- what there is, and taking it away ------------------------------------------------------------ */

/* Bytes of one snapshot folder; true: of files that have no other name. */
static void
snapshot_measure(
    struct store *store, const char *folder, uint64_t *true_bytes, uint64_t *total_bytes)
{
	struct file_list list;

	if (files_list(store->env->files, folder, &list, NULL) != 0)
		return;
	for (size_t i = 0; i < list.count; i++) {
		char *path = xasprintf("%s/%s", folder, list.entries[i].name);
		struct file_stat status;

		if (files_stat(store->env->files, path, &status, NULL) == 0) {
			*total_bytes += status.size;
			if (status.links <= 1)
				*true_bytes += status.size;
		}
		free(path);
	}
	file_list_fini(&list);
}

uint64_t
snapshot_true_bytes(struct store *store, const struct table_store *table)
{
	char *folder = xasprintf("%s/snapshots", table->directory);
	uint64_t true_bytes = 0, total_bytes = 0;
	struct file_list tags;

	if (files_exists(store->env->files, folder) &&
	    files_list(store->env->files, folder, &tags, NULL) == 0) {
		for (size_t i = 0; i < tags.count; i++) {
			char *path = xasprintf("%s/%s", folder, tags.entries[i].name);

			snapshot_measure(store, path, &true_bytes, &total_bytes);
			free(path);
		}
		file_list_fini(&tags);
	}
	free(folder);
	return true_bytes;
}

/* Calls back for every snapshot folder on disk, those of dropped tables included. Names are borrowed. */
typedef int (*snapshot_each_fn)(void *context, const char *keyspace, const char *table,
    const char *tag, const char *folder, struct error *err);

static int
snapshot_each_of_table(struct store *store, const char *keyspace, const char *table_folder,
    const char *name, snapshot_each_fn each, void *context, struct error *err)
{
	char *folder = xasprintf("%s/%s/snapshots", table_folder, name);
	const char *dash = strrchr(name, '-');
	char *table = xstrndup(name, dash != NULL ? (size_t)(dash - name) : strlen(name));
	struct file_list tags;
	int rc = 0;

	if (files_exists(store->env->files, folder)) {
		rc = files_list(store->env->files, folder, &tags, err);
		for (size_t i = 0; rc == 0 && i < tags.count; i++) {
			char *path = xasprintf("%s/%s", folder, tags.entries[i].name);

			rc = each(context, keyspace, table, tags.entries[i].name, path, err);
			free(path);
		}
		if (rc == 0)
			file_list_fini(&tags);
	}
	free(table);
	free(folder);
	return rc;
}

static int
snapshot_each(struct store *store, const char *only_keyspace, snapshot_each_fn each, void *context,
    struct error *err)
{
	struct file_list keyspaces;
	int rc;

	rc = files_list(store->env->files, store->options.data_directory, &keyspaces, err);
	if (rc != 0)
		return -1;
	for (size_t k = 0; k < keyspaces.count && rc == 0; k++) {
		const char *keyspace = keyspaces.entries[k].name;
		struct file_list tables;
		char *folder;

		if (keyspaces.entries[k].kind != FILE_FOLDER ||
		    (only_keyspace != NULL && strcmp(keyspace, only_keyspace) != 0))
			continue;
		folder = xasprintf("%s/%s", store->options.data_directory, keyspace);
		rc = files_list(store->env->files, folder, &tables, err);
		if (rc == 0) {
			for (size_t t = 0; t < tables.count && rc == 0; t++)
				if (tables.entries[t].kind == FILE_FOLDER)
					rc = snapshot_each_of_table(store, keyspace, folder,
					    tables.entries[t].name, each, context, err);
			file_list_fini(&tables);
		}
		free(folder);
	}
	file_list_fini(&keyspaces);
	return rc;
}

struct snapshot_listing {
	struct store *store;
	void (*each)(void *argument, const struct store_snapshot_info *info);
	void *argument;
};

static int
snapshot_list_one(void *context, const char *keyspace, const char *table, const char *tag,
    const char *folder, struct error *err)
{
	struct snapshot_listing *listing = context;
	struct store_snapshot_info info = {.keyspace = keyspace, .table = table, .tag = tag};
	char *manifest = xasprintf("%s/manifest.json", folder);
	struct file_stat status;

	snapshot_measure(listing->store, folder, &info.true_bytes, &info.total_bytes);
	if (files_stat(listing->store->env->files, manifest, &status, err) == 0 &&
	    status.kind != FILE_MISSING)
		info.created_ms = status.modified_us / 1000;
	free(manifest);
	listing->each(listing->argument, &info);
	return 0;
}

int
store_list_snapshots(struct store *store,
    void (*each)(void *argument, const struct store_snapshot_info *info), void *argument,
    struct error *err)
{
	struct snapshot_listing listing = {store, each, argument};

	return snapshot_each(store, NULL, snapshot_list_one, &listing, err);
}

struct snapshot_clearing {
	struct store *store;
	const char *tag;
	uint32_t removed;
};

static int
snapshot_clear_one(void *context, const char *keyspace, const char *table, const char *tag,
    const char *folder, struct error *err)
{
	struct snapshot_clearing *clearing = context;

	(void)keyspace;
	(void)table;
	if (clearing->tag != NULL && strcmp(clearing->tag, tag) != 0)
		return 0;
	clearing->removed++;
	return files_remove_tree(clearing->store->env->files, folder, err);
}

int
store_clear_snapshots(struct store *store, const char *keyspace, const char *tag, uint32_t *removed,
    struct error *err)
{
	struct snapshot_clearing clearing = {store, tag, 0};
	int rc = snapshot_each(store, keyspace, snapshot_clear_one, &clearing, err);

	*removed = clearing.removed;
	return rc;
}
