/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of a transaction log. The input is the log's text; beside it lie SSTables that it may name. Whatever it
 * says, only files of this folder that belong to SSTables go, and a log that is refused removes nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include "base/env_sim.h"
#include "base/log.h"
#include "storage/lifecycle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_put(struct env *env, const char *path, struct slice content)
{
	struct error err;

	if (files_replace(env->files, path, content, &err) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const tables[] = {"/data/t/nb-1-big-Data.db", "/data/t/nb-1-big-TOC.txt",
	    "/data/t/nb-2-big-Data.db", "/data/t/nb-2-big-TOC.txt"};
	struct env_sim *world = env_sim_new(1);
	struct env *env = env_sim_env(world);
	struct error err;
	int rc;

	log_set_level("ROOT", LOG_OFF);
	if (files_mkdir(env->files, "/data/t", &err) != 0 ||
	    files_mkdir(env->files, "/data/u", &err) != 0)
		abort();
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		fuzz_put(env, tables[i], slice_of_string("x"));
	fuzz_put(env, "/data/u/nb-1-big-Data.db", slice_of_string("x"));
	fuzz_put(env, "/data/t/manifest.json", slice_of_string("x"));
	fuzz_put(env, "/data/t/nb_txn_flush_1.log", slice_of(data, size));
	rc = lifecycle_recover(env, (const char *const[]){"/data/t"}, 1, &err);
	if (!files_exists(env->files, "/data/u/nb-1-big-Data.db") ||
	    !files_exists(env->files, "/data/t/manifest.json"))
		abort();
	if (rc != 0) {
		for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
			if (!files_exists(env->files, tables[i]))
				abort();
	} else if (files_exists(env->files, "/data/t/nb_txn_flush_1.log")) {
		abort();
	}
	env_sim_free(world);
	return 0;
}
