/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_FUZZ_STORE_H
#define HELENUS_TESTS_FUZZ_STORE_H

/* A store in a simulated world, for targets that need one; its work is done at once. */
#include <stdlib.h>
#include "storage/store_internal.h"

static bool
fuzz_submit(void *context, const char *stage, store_work_fn work, void *argument)
{
	(void)context;
	(void)stage;
	work(argument);
	return true;
}

/* With the tables of `schema`, whose reference it takes. Saved caches lie in /saved. Aborts on failure. */
static struct store *
fuzz_store_open(struct env *env, struct schema *schema, uint32_t memtable_shards)
{
	static const char *const directories[] = {"/data"};
	const struct store_executor executor = {.submit = fuzz_submit};
	struct store_options options;
	struct store *store;
	struct error err;

	store_options_defaults(&options);
	options.data_directories = directories;
	options.data_directory_count = 1;
	options.commitlog_directory = "/log";
	options.commitlog_segment_bytes = 64 << 10;
	options.saved_caches_directory = "/saved";
	options.memtable_shards = memtable_shards;
	if (store_open(&options, env, &executor, &store, &err) != 0 ||
	    store_set_schema(store, schema, &err) != 0 || store_replay(store, &err) != 0)
		abort();
	schema_unref(schema);
	return store;
}

#endif
