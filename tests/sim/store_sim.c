/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on a simulated disk (base/env_sim.h), from seeds: writes, deletions, flushes, compactions,
 * snapshots and truncations until the power goes, the disk fills up, a sync fails or a bit flips. After each
 * the store is opened again, and every key must hold what was acknowledged last, or what was under way.
 *
 *   store_sim [FIRST_SEED [SEEDS]]       SIM_SEEDS in the environment otherwise
 *
 * Ends with "N passed, N failed"; a failing seed is printed and can be run alone.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/env_sim.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/store.h"

enum { KEYS = 24, CRASHES = 4, OPERATIONS_MAX = 250 };

static const char *const sim_directories[] = {"/node/data", "/node/more"};

enum trouble { TROUBLE_POWER, TROUBLE_SPACE, TROUBLE_SYNC, TROUBLE_BIT, TROUBLES };

/*
 * Version 0: never written; versions divisible by 5 are deletions. A write that was refused may have
 * happened all the same (its record was in the log before the sync failed): any version that was sent after
 * the acknowledged one is right.
 */
struct key {
	uint32_t acked, sent;
	bool may_be_deleted; /* a deletion was sent since the acknowledged version */
};

struct sim {
	uint64_t seed;
	enum trouble trouble;
	struct env_sim *world;
	struct env *env;
	struct store_options options;
	struct store *store;
	struct schema *schema;
	struct table_metadata *table;
	struct key keys[KEYS];
	uint32_t versions;
	struct commitlog_position truncated_at;
	bool has_failed;
	char why[800];

	pthread_mutex_t mutex;
	pthread_cond_t cond;
};

/* ---- the store ----------------------------------------------------------------------------------- */

/* Background work runs at once, where it is submitted: one order for a seed. */
static bool
sim_submit(void *context, const char *stage, store_work_fn work, void *argument)
{
	(void)context;
	(void)stage;
	work(argument);
	return true;
}

static void
sim_make_schema(struct sim *sim)
{
	struct option_entry entry = {slice_of_string("class"),
	    slice_of_string("org.apache.cassandra.locator.SimpleStrategy")};
	struct option_map replication = {&entry, 1};
	struct uuid id = {{9, 2, 3, 4, 5, 6, 0x11, 8, 0x89, 10, 11, 12, 13, 14, 15, 16}};
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	struct keyspace_metadata *keyspace, *with;
	struct schema *empty = schema_new();
	struct error err;

	table_builder_set_id(builder, &id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "pk", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "ck", "int");
	table_builder_add(builder, COLUMN_REGULAR, "v", "int");
	table_builder_add(builder, COLUMN_REGULAR, "pad", "blob");
	if (table_builder_build(builder, &sim->table, &err) != 0)
		abort();
	table_builder_free(builder);
	keyspace = keyspace_new(slice_of_string("ks"), &replication, true, false);
	with = keyspace_with_table(keyspace, sim->table);
	sim->schema = schema_with_keyspace(empty, with);
	keyspace_unref(keyspace);
	keyspace_unref(with);
	schema_unref(empty);
}

static int
sim_open(struct sim *sim, struct error *err)
{
	struct store_executor executor = {sim_submit, sim};

	if (store_open(&sim->options, sim->env, &executor, &sim->store, err) != 0)
		return -1;
	if (store_set_schema(sim->store, sim->schema, err) != 0)
		return -1;
	store_set_host_id(sim->store, &sim->table->id);
	store_set_truncated(store_table(sim->store, sim->table), sim->truncated_at, 1);
	return store_replay(sim->store, err);
}

static void
sim_close(struct sim *sim)
{
	store_close(sim->store);
	sim->store = NULL;
	atomic_store(&sim->table->user, NULL);
}

static void
sim_fail(struct sim *sim, const char *format, ...)
{
	va_list arguments;

	if (sim->has_failed)
		return;
	sim->has_failed = true;
	va_start(arguments, format);
	vsnprintf(sim->why, sizeof(sim->why), format, arguments);
	va_end(arguments);
}

/* ---- operations ----------------------------------------------------------------------------------- */

struct sim_write {
	struct store_write write;
	struct sim *sim;
	bool is_done, has_failed;
	enum error_code code;
};

static void
sim_written(struct store_write *write, const struct error *err)
{
	struct sim_write *state = write->context;

	pthread_mutex_lock(&state->sim->mutex);
	state->is_done = true;
	state->has_failed = err != NULL;
	state->code = err != NULL ? err->code : ERROR_NONE;
	pthread_cond_signal(&state->sim->cond);
	pthread_mutex_unlock(&state->sim->mutex);
}

/* Write the next version of a key. False when it was refused. */
static bool
sim_write_key(struct sim *sim, int number)
{
	struct key *key = &sim->keys[number];
	uint32_t version = ++sim->versions;
	uint8_t pk[4], ck[4], v[4], pad[600];
	struct slice clustering = {ck, 4};
	struct cell cells[2] = {
	    {.column = table_column(sim->table, slice_of_string("pad")),
		.timestamp = version,
		.local_deletion_time = LOCAL_DELETION_TIME_NONE,
		.value = slice_of(pad, 1 + env_sim_chance(sim->world, sizeof(pad) - 1))},
	    {.column = table_column(sim->table, slice_of_string("v")),
		.timestamp = version,
		.local_deletion_time = LOCAL_DELETION_TIME_NONE,
		.value = slice_of(v, 4)}};
	struct row row = {.clustering_count = 1,
	    .clustering = &clustering,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE};
	struct partition_update update;
	struct mutation mutation;
	struct sim_write state = {.sim = sim};
	struct update_builder *builder;
	struct arena arena;
	struct error err;

	arena_init(&arena, 4096);
	memset(pad, number, sizeof(pad));
	store_u32(pk, (uint32_t)number / 4);
	store_u32(ck, (uint32_t)number % 4);
	store_u32(v, version);
	if (version % 5 == 0) {
		row.deletion = (struct deletion){version, 1767225600};
	} else {
		row.liveness.timestamp = version;
		row.cell_count = 2;
		row.cells = cells;
	}
	builder = update_builder_new(sim->table, slice_of(pk, 4), &arena);
	if (update_builder_add_row(builder, &row, &err) != 0 ||
	    update_builder_finish(builder, &update, &err) != 0)
		abort();
	mutation = (struct mutation){.keyspace = "ks",
	    .key = slice_of(pk, 4),
	    .token = update.token,
	    .update_count = 1,
	    .updates = &update};
	state.write = (struct store_write){
	    .mutation = &mutation, .is_durable = true, .on_done = sim_written, .context = &state};
	key->sent = version;
	key->may_be_deleted |= version % 5 == 0;
	store_apply(sim->store, &state.write);
	pthread_mutex_lock(&sim->mutex);
	while (!state.is_done)
		pthread_cond_wait(&sim->cond, &sim->mutex);
	pthread_mutex_unlock(&sim->mutex);
	arena_fini(&arena);
	if (!state.has_failed)
		*key = (struct key){version, version, false};
	return !state.has_failed;
}

static int
sim_record_truncate(
    void *context, struct table_store *table, struct commitlog_position position, struct error *err)
{
	struct sim *sim = context;

	(void)table;
	/* In the server this is a row of system.local, synced; it may fail as any write does. */
	if (env_sim_is_down(sim->world))
		return error_set(err, ERROR_IO, "the power is gone");
	sim->truncated_at = position;
	/* From here on it counts as done: a replay will not bring the rows back. */
	return 0;
}

static void
sim_truncate(struct sim *sim)
{
	struct error err;

	if (store_truncate(sim->store, store_table(sim->store, sim->table), sim_record_truncate,
		sim, &err) == 0) {
		for (int i = 0; i < KEYS; i++)
			sim->keys[i] = (struct key){0, 0, false};
		return;
	}
	/* Under way: each key may be there or not. */
	for (int i = 0; i < KEYS; i++)
		sim->keys[i].may_be_deleted = true;
}

/* One step; false when the store refused or failed. */
static bool
sim_step(struct sim *sim)
{
	struct table_store *table = store_table(sim->store, sim->table);
	struct error err;

	switch (env_sim_chance(sim->world, 40)) {
	case 0:
	case 1:
		return store_flush(sim->store, table, &err) == 0;
	case 2:
		return store_compact(sim->store, table, &err) == 0;
	case 3: {
		char tag[32];

		snprintf(tag, sizeof(tag), "s%" PRIu32, sim->versions);
		return store_snapshot(sim->store, table,
			   &(struct store_snapshot_options){.tag = tag}, &err) == 0;
	}
	case 4:
		if (sim->trouble != TROUBLE_BIT && env_sim_chance(sim->world, 3) == 0)
			sim_truncate(sim);
		return true;
	default:
		return sim_write_key(sim, (int)env_sim_chance(sim->world, KEYS));
	}
}

/* ---- verifying ----------------------------------------------------------------------------------- */

static bool
sim_is_sound(const struct key *key, uint32_t found)
{
	if (found != 0)
		return found >= key->acked && found <= key->sent;
	return key->acked == 0 || key->acked % 5 == 0 || key->may_be_deleted;
}

/* Versions that a scan finds; 0 where there is none. -1 with err. */
static int
sim_read_all(struct sim *sim, uint32_t found[KEYS], struct error *err)
{
	struct read_command command = {.table = sim->table,
	    .is_range = true,
	    .range = {.left = INT64_MIN, .right = INT64_MIN},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = 1767225700};
	struct partition_iterator *partitions;
	struct live_reader reader;
	struct live_row row;
	struct arena arena;
	int rc;

	memset(found, 0, KEYS * sizeof(*found));
	arena_init(&arena, 64 << 10);
	if (store_read(sim->store, &command, &arena, &partitions, err) != 0) {
		arena_fini(&arena);
		return -1;
	}
	live_reader_init(&reader, &command, partitions, &arena);
	while ((rc = live_reader_next(&reader, &row, err)) > 0) {
		uint32_t number =
		    load_u32(row.key.data) * 4 + load_u32(row.row->clustering[0].data);

		if (number >= KEYS) {
			rc = error_set(err, ERROR_CORRUPT, "a key that was never written");
			break;
		}
		for (uint32_t i = 0; i < row.row->cell_count; i++) {
			const struct cell *cell = &row.row->cells[i];

			if (slice_equal_string(cell->column->name, "v"))
				found[number] = load_u32(cell->value.data);
			else if (cell->value.size > 0 && cell->value.data[0] != number)
				rc = error_set(err, ERROR_CORRUPT, "a cell of another key");
		}
		if (rc < 0)
			break;
	}
	live_reader_fini(&reader);
	arena_fini(&arena);
	return rc;
}

static void
sim_verify(struct sim *sim, const char *when)
{
	uint32_t found[KEYS];
	struct error err;

	if (sim_read_all(sim, found, &err) != 0) {
		sim_fail(sim, "%s: a read failed: %s", when, err.text);
		return;
	}
	for (int i = 0; i < KEYS; i++) {
		struct key *key = &sim->keys[i];

		if (!sim_is_sound(key, found[i]))
			sim_fail(sim,
			    "%s: key %d has version %" PRIu32 ", acknowledged was %" PRIu32
			    ", sent %" PRIu32,
			    when, i, found[i], key->acked, key->sent);
		/* What is there is the truth from here on. */
		*key = (struct key){found[i], found[i], false};
	}
}

/* ---- troubles ------------------------------------------------------------------------------------ */

static void
sim_run_until_power_goes(struct sim *sim)
{
	env_sim_crash_after(sim->world, 1 + env_sim_chance(sim->world, 600));
	for (int i = 0; i < OPERATIONS_MAX && !env_sim_is_down(sim->world); i++)
		(void)sim_step(sim);
}

/* The disk fills up, writes are refused, space comes back and writes go on. */
static void
sim_run_out_of_space(struct sim *sim)
{
	bool was_refused = false, is_back = false;

	env_sim_set_space(sim->world, 300000 + env_sim_chance(sim->world, 600000));
	for (int i = 0; i < OPERATIONS_MAX; i++)
		was_refused |= !sim_step(sim);
	sim_verify(sim, "with the disk full");
	env_sim_set_space(sim->world, UINT64_MAX);
	/* A failed flush is tried again each second of the store's timer; a segment after 100 ms. */
	for (int i = 0; i < 400 && !is_back; i++) {
		env_sim_advance(sim->world, 200000000);
		is_back = sim_write_key(sim, 0);
		if (!is_back)
			usleep(10000);
	}
	if (!is_back)
		sim_fail(sim, "writes are still refused after space came back (refused before: %d)",
		    was_refused);
}

/* A sync fails: no write is acknowledged that the disk does not have. */
static void
sim_run_with_failing_sync(struct sim *sim)
{
	env_sim_fail(sim->world, ENV_SIM_SYNC, "", env_sim_chance(sim->world, 60), 1, 5 /* EIO */);
	for (int i = 0; i < OPERATIONS_MAX; i++)
		(void)sim_step(sim);
	env_sim_fail(sim->world, ENV_SIM_SYNC, "", 0, 0, 0);
}

/* A bit flips in a Data file: reads answer right or say that it is damaged. */
static void
sim_run_with_flipped_bit(struct sim *sim)
{
	struct file_list list;
	uint32_t found[KEYS];
	struct error err;
	char path[400], id[33], directory[300];
	struct file_stat status;
	bool was_flipped = false;

	for (int i = 0; i < 80; i++)
		(void)sim_step(sim);
	if (store_flush(sim->store, store_table(sim->store, sim->table), &err) != 0) {
		sim_fail(sim, "a flush failed: %s", err.text);
		return;
	}
	sim_close(sim);
	hex_encode(slice_of(sim->table->id.bytes, 16), id);
	snprintf(directory, sizeof(directory), "%s/ks/t-%s", sim_directories[0], id);
	if (files_list(sim->env->files, directory, &list, &err) != 0)
		abort();
	for (size_t i = 0; i < list.count && !was_flipped; i++) {
		if (strstr(list.entries[i].name, "-Data.db") == NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, list.entries[i].name);
		if (files_stat(sim->env->files, path, &status, &err) != 0 || status.size == 0)
			continue;
		was_flipped =
		    env_sim_flip_bit(sim->world, path, env_sim_chance(sim->world, status.size),
			(unsigned)env_sim_chance(sim->world, 8)) == 0;
	}
	file_list_fini(&list);
	if (sim_open(sim, &err) != 0) {
		sim_fail(sim, "the store does not open with a damaged Data file: %s", err.text);
		return;
	}
	if (!was_flipped || sim_read_all(sim, found, &err) == 0)
		sim_verify(sim, "with a flipped bit");
	else if (err.code != ERROR_CORRUPT || strstr(err.text, "Data.db") == NULL)
		sim_fail(sim, "damage is reported as '%s'", err.text);
}

static void
sim_run_seed(struct sim *sim, uint64_t seed)
{
	struct error err;

	memset(sim, 0, sizeof(*sim));
	sim->seed = seed;
	sim->trouble = (enum trouble)(seed % TROUBLES);
	sim->world = env_sim_new(seed);
	sim->env = env_sim_env(sim->world);
	pthread_mutex_init(&sim->mutex, NULL);
	pthread_cond_init(&sim->cond, NULL);
	store_options_defaults(&sim->options);
	sim->options.data_directories = sim_directories;
	sim->options.data_directory_count = seed / TROUBLES % 2 == 1 ? 2 : 1;
	sim->options.commitlog_directory = "/node/commitlog";
	sim->options.commitlog_sync = seed % 3 == 0 ? COMMITLOG_SYNC_GROUP : COMMITLOG_SYNC_BATCH;
	sim->options.commitlog_sync_group_window_ms = 1;
	sim->options.commitlog_compressor = seed / (2 * TROUBLES) % 2 == 1 ? "LZ4Compressor" : NULL;
	sim->options.commitlog_segment_bytes = 32 << 10;
	sim->options.max_mutation_bytes = 16 << 10;
	sim->options.memtable_bytes = UINT64_C(64) << 20;
	sim->options.compaction_bytes_per_second = 0;
	sim->options.memtable_shards = 2;
	sim_make_schema(sim);
	if (sim_open(sim, &err) != 0)
		sim_fail(sim, "the first start failed: %s", err.text);
	for (int round = 0; round < CRASHES && !sim->has_failed; round++) {
		switch (sim->trouble) {
		case TROUBLE_POWER:
			sim_run_until_power_goes(sim);
			break;
		case TROUBLE_SPACE:
			sim_run_out_of_space(sim);
			break;
		case TROUBLE_SYNC:
			sim_run_with_failing_sync(sim);
			break;
		default:
			sim_run_with_flipped_bit(sim);
			round = CRASHES;
			continue;
		}
		sim_close(sim);
		env_sim_crash(sim->world);
		if (sim_open(sim, &err) != 0) {
			sim_fail(sim, "the start after crash %d failed: %s", round, err.text);
			break;
		}
		sim_verify(sim, "after the crash");
	}
	sim_close(sim);
	schema_unref(sim->schema);
	table_unref(sim->table);
	env_sim_free(sim->world);
	pthread_mutex_destroy(&sim->mutex);
	pthread_cond_destroy(&sim->cond);
}

int
main(int argc, char **argv)
{
	const char *seeds_text = getenv("SIM_SEEDS");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t seeds = argc > 2 ? strtoull(argv[2], NULL, 10)
	    : argc > 1            ? 1
	    : seeds_text != NULL  ? strtoull(seeds_text, NULL, 10)
				  : 100;
	struct sim *sim = xzalloc(sizeof(*sim));
	uint64_t failed = 0;

	log_set_level("ROOT", argc > 1 && argc < 3 ? LOG_INFO : LOG_OFF);
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		sim_run_seed(sim, seed);
		if (sim->has_failed) {
			failed++;
			printf("seed %" PRIu64 ": %s\n", seed, sim->why);
			fflush(stdout);
		}
	}
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", seeds - failed, failed);
	free(sim);
	return failed == 0 ? 0 : 1;
}
