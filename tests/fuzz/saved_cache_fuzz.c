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
#include "tests/fuzz/fuzz_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const fuzz_paths[SAVED_CACHES] = {
    "/saved/KeyCache-h1.db", "/saved/RowCache-h1.db", "/saved/CounterCache-h1.db"};

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
		store = fuzz_store_open(env_sim_env(world), schema_new(), 0);
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
