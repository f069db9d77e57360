/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "storage/compaction.h"
#include "storage/lifecycle.h"
#include "storage/store_internal.h"
#include "storage/stream_writer.h"

/*
 * nodetool import: the SSTables of any folder, under new names, in this table. Each of them comes in one transaction:
 * checked where it lies, its files linked (or copied, from another disk), made durable, then shown.
 */

enum { IMPORT_READ = 1 << 20 };

struct import {
	struct store *store;
	struct table_store *table;
	const struct store_import_options *options;
};

static int
import_copy(struct files *files, const char *from, const char *to, struct error *err)
{
	struct file *in = NULL, *out = NULL;
	uint8_t *block = xmalloc(IMPORT_READ);
	uint64_t at = 0;
	size_t got = 1;
	int rc;

	rc = files_open(files, from, FILE_READ, &in, err);
	if (rc == 0)
		rc = files_open(files, to, FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, &out, err);
	for (; rc == 0 && got > 0; at += got) {
		rc = file_pread(in, block, IMPORT_READ, at, &got, err);
		if (rc == 0 && got > 0)
			rc = file_write(out, block, got, err);
	}
	file_close(in);
	file_close(out);
	free(block);
	return rc;
}

/* One component, durable but for its name. */
static int
import_component(struct files *files, const char *from, const char *to, struct error *err)
{
	struct file *file;
	struct error no_link;
	int rc;

	if (files_link(files, from, to, &no_link) != 0 && import_copy(files, from, to, err) != 0)
		return -1;
	if (files_open(files, to, FILE_WRITE, &file, err) != 0)
		return -1;
	rc = file_sync(file, err);
	file_close(file);
	return rc;
}

static int
import_files(const struct import *import, const struct sstable_descriptor *from,
    const struct sstable_descriptor *to, struct error *err)
{
	struct files *files = import->store->env->files;
	char source[SSTABLE_PATH_MAX], target[SSTABLE_PATH_MAX];

	/* TOC.txt last: what has one is whole. */
	for (int i = 0; i <= SSTABLE_COMPONENT_COUNT; i++) {
		enum sstable_component component =
		    i == SSTABLE_COMPONENT_COUNT ? SSTABLE_TOC : (enum sstable_component)i;

		if (i == SSTABLE_TOC)
			continue;
		if (sstable_path(from, component, source, err) != 0 ||
		    sstable_path(to, component, target, err) != 0)
			return -1;
		if (files_exists(files, source) &&
		    import_component(files, source, target, err) != 0)
			return -1;
	}
	return files_sync_folder(files, to->directory, err);
}

static int
import_check(const struct import *import, const struct sstable_descriptor *from, struct error *err)
{
	const struct store_import_options *options = import->options;
	const struct sstable_context context = {.env = import->store->env};
	struct sstable *sstable;
	int rc = 0;

	if (sstable_open(&context, from, atomic_load(&import->table->metadata), &sstable, err) != 0)
		return -1;
	if (sstable_stats(sstable, err) == NULL)
		rc = -1;
	if (rc == 0 && options->owned != NULL)
		rc = sstable_verify_index(sstable, options->owned, options->owned_count, err);
	if (rc == 0 && !options->is_unverified)
		rc = sstable_verify(sstable, options->is_extended, NULL, err);
	sstable_unref(sstable);
	return rc;
}

static int
import_mark(const struct import *import, struct sstable *sstable, struct error *err)
{
	const struct sstable_repair *repair = sstable_repair(sstable, err);

	if (repair == NULL)
		return -1;
	if (!import->options->keeps_level && sstable_level(sstable) != 0 &&
	    sstable_set_level(sstable, 0, err) != 0)
		return -1;
	if (import->options->keeps_repaired && !repair->has_pending_repair)
		return 0;
	if (repair->repaired_at == 0 && !repair->has_pending_repair)
		return 0;
	return sstable_set_repaired(sstable, 0, NULL, false, err);
}

static int
import_one(const struct import *import, const struct sstable_descriptor *from, uint64_t bytes,
    struct error *err)
{
	struct table_store *table = import->table;
	struct store *store = import->store;
	struct lifecycle *lifecycle = NULL;
	struct sstable_descriptor to;
	struct sstable *sstable = NULL;
	const char *directory;
	char *base;
	int rc;

	if (import_check(import, from, err) != 0 || table_store_keep_directory(table, err) != 0 ||
	    table_store_choose_directory(table, bytes, &directory, err) != 0 ||
	    lifecycle_begin(store->env, directory, "import", &lifecycle, err) != 0)
		return -1;
	to = table_store_new_descriptor(table, directory);
	base = sstable_base_path(&to);
	rc = lifecycle_add(lifecycle, base, err);
	free(base);
	if (rc == 0)
		rc = import_files(import, from, &to, err);
	if (rc == 0)
		rc = sstable_open(
		    &store->sstables, &to, atomic_load(&table->metadata), &sstable, err);
	if (rc == 0)
		rc = import_mark(import, sstable, err);
	if (rc != 0) {
		sstable_unref(sstable);
		lifecycle_finish(lifecycle);
		return -1;
	}
	if (table_store_replace_sstables(table, lifecycle, NULL, 0, &sstable, 1, err) != 0) {
		sstable_unref(sstable);
		return -1;
	}
	return 0;
}

/* It is in the table: the files it came from are not wanted any more. */
static void
import_remove(const struct import *import, const struct sstable_descriptor *from)
{
	char *base = sstable_base_path(from);
	struct error err;

	if (!import->options->copies &&
	    lifecycle_delete_sstable(import->store->env, base, &err) != 0)
		log_warn("%s was imported and cannot be removed: %s", base, err.text);
	free(base);
}

int
store_import(struct store *store, struct table_store *table, const char *directory,
    const struct store_import_options *options, uint32_t *added, store_verified_fn failed,
    void *argument, struct error *err)
{
	const struct import import = {store, table, options};
	struct file_list list;

	*added = 0;
	if (*directory != '/')
		return error_set(err, ERROR_INVALID, "'%s' is no absolute path", directory);
	if (files_list(store->env->files, directory, &list, err) != 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		struct sstable_descriptor from = {.directory = directory};
		enum sstable_component component;
		struct file_stat stat = {.size = 0};
		char path[SSTABLE_PATH_MAX];
		struct error why;

		if (!sstable_name_parse(list.entries[i].name, &from.id, &component) ||
		    component != SSTABLE_DATA || sstable_path(&from, SSTABLE_DATA, path, NULL) != 0)
			continue;
		(void)files_stat(store->env->files, path, &stat, NULL);
		if (import_one(&import, &from, stat.size, &why) == 0) {
			(*added)++;
			import_remove(&import, &from);
		} else {
			failed(argument, path, &why);
		}
	}
	file_list_fini(&list);
	if (*added > 0)
		compaction_check(store->compactions, table);
	return 0;
}
