/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saved caches, as a store reads them at its start. The first byte chooses the cache, the rest are the records; header and
 * checksum are put around them, for nothing would get past them otherwise (bit 7 leaves the checksum wrong).
 */
#include <stdint.h>
#include <stdlib.h>
#include "base/env_sim.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/counter_cache.h"
#include "storage/saved_cache.h"
#include "storage/store_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const fuzz_paths[SAVED_CACHES] = {
    "/saved/KeyCache-h1.db", "/saved/RowCache-h1.db", "/saved/CounterCache-h1.db"};

static bool
fuzz_submit(void *context, const char *stage, store_work_fn work, void *argument)
{
	(void)context;
	(void)stage;
	work(argument);
	return true;
}

/* One store for all inputs: it has no tables, so nothing that is read is found. */
static struct store *
fuzz_store(struct env *env)
{
	static const char *const directories[] = {"/data"};
	const struct store_executor executor = {.submit = fuzz_submit};
	struct store_options options;
	struct schema *schema = schema_new();
	struct store *store;
	struct error err;

	store_options_defaults(&options);
	options.data_directories = directories;
	options.data_directory_count = 1;
	options.commitlog_directory = "/log";
	options.commitlog_segment_bytes = 64 << 10;
	options.saved_caches_directory = "/saved";
	if (store_open(&options, env, &executor, &store, &err) != 0 ||
	    store_set_schema(store, schema, &err) != 0 || store_replay(store, &err) != 0)
		abort();
	schema_unref(schema);
	return store;
}

static int
fuzz_record(void *argument, struct slice record, struct error *err)
{
	struct slice key, position, column;
	bool is_static;

	(void)argument;
	(void)err;
	if (counter_cache_parse_key(record, &key, &position, &is_static, &column) &&
	    key.size + position.size + column.size + 9 != record.size)
		abort();
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct env_sim *world;
	static struct store *store;
	struct env *env;
	struct buffer content;
	struct error err;
	int kind;

	if (size == 0)
		return 0;
	log_set_level("ROOT", LOG_OFF);
	if (world == NULL) {
		world = env_sim_new(1);
		store = fuzz_store(env_sim_env(world));
	}
	env = env_sim_env(world);
	kind = data[0] % SAVED_CACHES;
	buffer_init(&content);
	buffer_put(&content, "HELCACHE", 8);
	buffer_put_u32(&content, (uint32_t)kind);
	buffer_put(&content, data + 1, size - 1);
	buffer_put_u32(&content, crc32_update(0, content.data, content.size) ^ (data[0] >> 7));
	(void)saved_cache_decode(
	    buffer_slice(&content), (enum saved_cache_kind)kind, fuzz_record, NULL, &err);
	if (files_mkdir(env->files, "/saved", &err) != 0)
		abort();
	for (int i = 0; i < SAVED_CACHES; i++)
		if (files_unlink(env->files, fuzz_paths[i], &err) != 0)
			abort();
	if (files_replace(env->files, fuzz_paths[kind], buffer_slice(&content), &err) != 0)
		abort();
	saved_cache_load(store);
	buffer_fini(&content);
	return 0;
}
