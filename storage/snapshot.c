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

enum { SNAPSHOT_MANIFEST_MAX = 64 << 20 };

/* A tag becomes a folder's name. */
static bool
snapshot_tag_is_sound(const char *tag)
{
	return *tag != '\0' && strlen(tag) < 200 && strchr(tag, '/') == NULL &&
	    strcmp(tag, ".") != 0 && strcmp(tag, "..") != 0;
}

static char *
snapshot_path(const char *directory, const char *tag)
{
	return xasprintf("%s/snapshots/%s", directory, tag);
}

void
store_set_snapshot_throttle(struct store *store, uint64_t links_per_second)
{
	atomic_store(&store->snapshot_links_per_second, links_per_second);
}

uint64_t
store_snapshot_throttle(const struct store *store)
{
	return atomic_load(&store->snapshot_links_per_second);
}

/* Wait for one's turn to make a link. */
static void
snapshot_throttle(struct store *store)
{
	uint64_t rate = atomic_load(&store->snapshot_links_per_second), now, next;
	unsigned long long turn;
	struct timespec pause;

	if (rate == 0)
		return;
	now = env_monotonic_ns(store->env);
	turn = atomic_load(&store->snapshot_next_ns);
	do {
		next = (turn > now ? turn : now) + 1000000000 / rate;
	} while (!atomic_compare_exchange_weak(&store->snapshot_next_ns, &turn, next));
	if (turn <= now)
		return;
	pause = (struct timespec){
	    (time_t)((turn - now) / 1000000000), (long)((turn - now) % 1000000000)};
	while (nanosleep(&pause, &pause) != 0)
		;
}

/* Link every component of one SSTable into `folder`; its Data file is added to the manifest unless that is NULL. */
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
		snapshot_throttle(store);
		rc = files_link(store->env->files, from, to, err);
		if (rc == 0 && component == SSTABLE_DATA && manifest != NULL)
			buffer_printf(manifest, "%s\"%s\"", manifest->size > 0 ? "," : "",
			    strrchr(to, '/') + 1);
		free(to);
		if (rc != 0)
			return -1;
	}
	return 0;
}

#define SNAPSHOT_TIME "%Y-%m-%dT%H:%M:%S"

static void
snapshot_format_time(int64_t ms, char out[32])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(out, 32, SNAPSHOT_TIME, &tm);
	snprintf(out + strlen(out), 32 - strlen(out), ".%03dZ", (int)(ms % 1000));
}

static int
snapshot_write_manifest(struct store *store, const char *folder, const struct buffer *names,
    int64_t ttl_seconds, int64_t *expires_ms, struct error *err)
{
	char *path = xasprintf("%s/manifest.json", folder);
	int64_t now = env_wall_us(store->env) / 1000;
	char created[32], expires[32] = "";
	struct buffer text;
	int rc;

	*expires_ms = ttl_seconds > 0 ? now + ttl_seconds * 1000 : INT64_MAX;
	snapshot_format_time(now, created);
	if (ttl_seconds > 0)
		snapshot_format_time(*expires_ms, expires);
	buffer_init(&text);
	buffer_printf(&text,
	    "{\"files\":[%.*s],\"created_at\":\"%s\",\"expires_at\":%s%s%s,"
	    "\"ephemeral\":false}\n",
	    (int)names->size, (const char *)names->data, created, ttl_seconds > 0 ? "\"" : "null",
	    expires, ttl_seconds > 0 ? "\"" : "");
	rc = buffer_check(&text, err);
	if (rc == 0)
		rc = files_replace(store->env->files, path, buffer_slice(&text), err);
	buffer_fini(&text);
	free(path);
	return rc;
}

/* The time of a manifest's field, ms; 0: it has none. */
static int64_t
snapshot_read_time(const char *manifest, const char *field)
{
	const char *at = strstr(manifest, field);
	struct tm tm = {0};
	int64_t ms = 0;

	if (at == NULL)
		return 0;
	at += strlen(field);
	at = strptime(at, "\":\"" SNAPSHOT_TIME, &tm);
	if (at == NULL)
		return 0;
	if (*at == '.')
		ms = (int64_t)(strtod(at, NULL) * 1000 + 0.5);
	return (int64_t)timegm(&tm) * 1000 + ms;
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

/* Somebody looks for expired snapshots not later than then. */
static void
snapshot_expect(struct store *store, int64_t expires_ms)
{
	int64_t next = atomic_load(&store->next_snapshot_expiry_ms);

	while (expires_ms < next &&
	    !atomic_compare_exchange_weak(&store->next_snapshot_expiry_ms, &next, expires_ms))
		;
}

/* The links of the SSTables that lie in one of the table's directories. */
static int
snapshot_link_directory(struct table_store *table, const struct table_view *view,
    const char *directory, const char *tag, struct buffer *names, struct error *err)
{
	struct files *files = table->store->env->files;
	char *folder = snapshot_path(directory, tag);
	bool is_made = false;
	int rc = 0;

	for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++) {
		if (strcmp(sstable_descriptor(view->sstables[i])->directory, directory) != 0)
			continue;
		if (!is_made)
			rc = files_mkdir(files, folder, err);
		is_made = true;
		if (rc == 0)
			rc = snapshot_link(table->store, view->sstables[i], folder, names, err);
	}
	if (rc == 0 && is_made)
		rc = files_sync_folder(files, folder, err);
	free(folder);
	return rc;
}

int
store_snapshot(struct store *store, struct table_store *table,
    const struct store_snapshot_options *options, struct error *err)
{
	struct table_view *view = NULL;
	struct buffer names;
	int64_t expires_ms;
	char *folder;
	int rc = -1;

	if (!snapshot_tag_is_sound(options->tag))
		return error_set(err, ERROR_INVALID, "'%s' cannot name a snapshot", options->tag);
	folder = snapshot_path(table->directories[0], options->tag);
	buffer_init(&names);
	if (files_exists(store->env->files, folder)) {
		error_set(err, ERROR_INVALID, "Snapshot %s already exists.", options->tag);
		goto done;
	}
	if ((!options->skip_flush && store_flush(store, table, err) != 0) ||
	    files_mkdir(store->env->files, folder, err) != 0)
		goto done;
	/* The view holds the SSTables: their files stay while we link them. */
	view = table_view_acquire(table);
	rc = 0;
	for (uint32_t i = 0; i < table->directory_count && rc == 0; i++)
		rc = snapshot_link_directory(
		    table, view, table->directories[i], options->tag, &names, err);
	if (rc == 0)
		rc = buffer_check(&names, err);
	if (rc == 0)
		rc = snapshot_write_manifest(
		    store, folder, &names, options->ttl_seconds, &expires_ms, err);
	if (rc == 0)
		rc = snapshot_write_schema(store, table, folder, err);
	if (rc == 0)
		rc = files_sync_folder(store->env->files, folder, err);
	if (rc == 0)
		snapshot_expect(store, expires_ms);
done:
	table_view_release(view);
	buffer_fini(&names);
	free(folder);
	return rc;
}

/* "<reason>-<wall clock ms>-<table>", or the time first. */
static int
snapshot_tagged(
    struct table_store *table, char *tag, bool skip_flush, int64_t ttl_seconds, struct error *err)
{
	const struct store_snapshot_options options = {tag, skip_flush, ttl_seconds};
	int rc = store_snapshot(table->store, table, &options, err);

	free(tag);
	return rc;
}

int
snapshot_auto(struct table_store *table, const char *reason, struct error *err)
{
	struct store *store = table->store;

	return snapshot_tagged(table,
	    xasprintf("%s-%" PRId64 "-%s", reason, env_wall_us(store->env) / 1000, table->name),
	    false, store->options.auto_snapshot_ttl_seconds, err);
}

int
snapshot_before_compaction(struct table_store *table, struct error *err)
{
	return snapshot_tagged(table,
	    xasprintf("%" PRId64 "-compact-%s", env_wall_us(table->store->env) / 1000, table->name),
	    true, 0, err);
}

int
snapshot_before_scrub(struct table_store *table, struct error *err)
{
	return snapshot_tagged(table,
	    xasprintf("pre-scrub-%" PRId64, env_wall_us(table->store->env) / 1000), true, 0, err);
}

/* ---- incremental backups ---------------------------------------------------------------------------- */

void
store_set_incremental_backups(struct store *store, bool is_enabled)
{
	atomic_store(&store->incremental_backups, is_enabled);
}

bool
store_incremental_backups(const struct store *store)
{
	return atomic_load(&store->incremental_backups);
}

void
snapshot_back_up(struct table_store *table, struct sstable *sstable)
{
	struct store *store = table->store;
	struct error err;
	char *folder;

	if (!store_incremental_backups(store) ||
	    !atomic_load(&table->metadata)->options.incremental_backups)
		return;
	folder = xasprintf("%s/backups", sstable_descriptor(sstable)->directory);
	if (files_mkdir(store->env->files, folder, &err) != 0 ||
	    snapshot_link(store, sstable, folder, NULL, &err) != 0 ||
	    files_sync_folder(store->env->files, folder, &err) != 0)
		log_error(
		    "incremental backup of %s.%s: %s", table->keyspace, table->name, err.text);
	free(folder);
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

static uint64_t
snapshot_true_bytes_in(struct store *store, const char *directory)
{
	char *folder = xasprintf("%s/snapshots", directory);
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

uint64_t
snapshot_true_bytes(struct store *store, const struct table_store *table)
{
	uint64_t true_bytes = 0;

	for (uint32_t i = 0; i < table->directory_count; i++)
		true_bytes += snapshot_true_bytes_in(store, table->directories[i]);
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
snapshot_each_in(struct store *store, const char *data, const char *only_keyspace,
    snapshot_each_fn each, void *context, struct error *err)
{
	struct file_list keyspaces;
	int rc;

	rc = files_list(store->env->files, data, &keyspaces, err);
	if (rc != 0)
		return -1;
	for (size_t k = 0; k < keyspaces.count && rc == 0; k++) {
		const char *keyspace = keyspaces.entries[k].name;
		struct file_list tables;
		char *folder;

		if (keyspaces.entries[k].kind != FILE_FOLDER ||
		    (only_keyspace != NULL && strcmp(keyspace, only_keyspace) != 0))
			continue;
		folder = xasprintf("%s/%s", data, keyspace);
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

static int
snapshot_each(struct store *store, const char *only_keyspace, snapshot_each_fn each, void *context,
    struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < store->options.data_directory_count && rc == 0; i++)
		rc = snapshot_each_in(
		    store, store->options.data_directories[i], only_keyspace, each, context, err);
	return rc;
}

/* One snapshot, gathered from the folders of all data directories. */
struct snapshot_found {
	char *keyspace, *table_folder, *table, *tag; /* owned */
	uint64_t true_bytes, total_bytes;
	int64_t created_ms, expires_ms;
};

struct snapshot_listing {
	struct store *store;
	struct snapshot_found *found; /* owned */
	size_t count;
};

static struct snapshot_found *
snapshot_listing_find(struct snapshot_listing *listing, const char *keyspace,
    const char *table_folder, const char *tag)
{
	/* The same one of an earlier data directory; with one there is none to look for. */
	for (size_t i = listing->count; i > 0 && listing->store->options.data_directory_count > 1;
	     i--) {
		struct snapshot_found *each = &listing->found[i - 1];

		if (strcmp(each->tag, tag) == 0 && strcmp(each->table_folder, table_folder) == 0 &&
		    strcmp(each->keyspace, keyspace) == 0)
			return each;
	}
	return NULL;
}

static int
snapshot_list_one(void *context, const char *keyspace, const char *table, const char *tag,
    const char *folder, struct error *err)
{
	struct snapshot_listing *listing = context;
	struct files *files = listing->store->env->files;
	char *manifest = xasprintf("%s/manifest.json", folder);
	const char *end = strstr(folder, "/snapshots/"), *begin = end;
	struct snapshot_found *found;
	struct buffer text;
	char *table_folder;

	(void)err;
	while (begin > folder && begin[-1] != '/')
		begin--;
	table_folder = xstrndup(begin, (size_t)(end - begin));
	found = snapshot_listing_find(listing, keyspace, table_folder, tag);
	if (found == NULL) {
		listing->found =
		    xrealloc(listing->found, (listing->count + 1) * sizeof(*listing->found));
		found = &listing->found[listing->count++];
		*found = (struct snapshot_found){.keyspace = xstrdup(keyspace),
		    .table_folder = table_folder,
		    .table = xstrdup(table),
		    .tag = xstrdup(tag)};
		table_folder = NULL;
	}
	snapshot_measure(listing->store, folder, &found->true_bytes, &found->total_bytes);
	buffer_init(&text);
	if (files_exists(files, manifest) &&
	    files_read_all(files, manifest, SNAPSHOT_MANIFEST_MAX, &text, NULL) == 0) {
		buffer_put_u8(&text, 0);
		found->created_ms = snapshot_read_time((const char *)text.data, "created_at");
		found->expires_ms = snapshot_read_time((const char *)text.data, "expires_at");
	}
	buffer_fini(&text);
	free(table_folder);
	free(manifest);
	return 0;
}

static int
snapshot_list(struct store *store, struct snapshot_listing *listing, struct error *err)
{
	*listing = (struct snapshot_listing){.store = store};
	return snapshot_each(store, NULL, snapshot_list_one, listing, err);
}

static void
snapshot_listing_fini(struct snapshot_listing *listing)
{
	for (size_t i = 0; i < listing->count; i++) {
		free(listing->found[i].keyspace);
		free(listing->found[i].table_folder);
		free(listing->found[i].table);
		free(listing->found[i].tag);
	}
	free(listing->found);
}

int
store_list_snapshots(struct store *store,
    void (*each)(void *argument, const struct store_snapshot_info *info), void *argument,
    struct error *err)
{
	struct snapshot_listing listing;
	int rc = snapshot_list(store, &listing, err);

	for (size_t i = 0; i < listing.count && rc == 0; i++) {
		const struct snapshot_found *found = &listing.found[i];

		each(argument,
		    &(struct store_snapshot_info){found->keyspace, found->table, found->tag,
			found->true_bytes, found->total_bytes, found->created_ms,
			found->expires_ms});
	}
	snapshot_listing_fini(&listing);
	return rc;
}

void
snapshot_expire(struct store *store)
{
	int64_t now = env_wall_us(store->env) / 1000;
	struct snapshot_listing listing;
	struct error err;

	/* A snapshot that is made meanwhile brings it forward again. */
	atomic_store(&store->next_snapshot_expiry_ms, INT64_MAX);
	if (snapshot_list(store, &listing, &err) != 0)
		log_warn("snapshots that have expired stay: %s", err.text);
	for (size_t i = 0; i < listing.count; i++) {
		const struct snapshot_found *found = &listing.found[i];

		if (found->expires_ms == 0)
			continue;
		if (found->expires_ms > now) {
			snapshot_expect(store, found->expires_ms);
			continue;
		}
		log_info("Removing expired snapshot %s of %s.%s", found->tag, found->keyspace,
		    found->table);
		for (uint32_t k = 0; k < store->options.data_directory_count; k++) {
			char *folder =
			    xasprintf("%s/%s/%s/snapshots/%s", store->options.data_directories[k],
				found->keyspace, found->table_folder, found->tag);

			if (files_remove_tree(store->env->files, folder, &err) != 0)
				log_warn("%s", err.text);
			free(folder);
		}
	}
	snapshot_listing_fini(&listing);
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
