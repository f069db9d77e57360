/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one write and one read of the stress table cost below the CQL front, on one thread: commit log
 * and memtable, point reads from memory, flush, point reads and a scan from disk, a compaction of four
 * tables; and what LZ4, CRC and a copy of the same bytes cost. Times are CPU time of the process, so that other
 * load on the machine matters little. Prints one line a figure: name, number, unit.
 *
 *   store_bench [ROWS]
 */
#include <glob.h>
#include <inttypes.h>
#include <lz4.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/compress.h"
#include "storage/compression_info.h"
#include "storage/store.h"

struct bench {
	struct env *env;
	struct store *store;
	struct table_metadata *table;
	const struct column_metadata *columns[5];
	uint64_t done;
	const char *directory;
	atomic_int working; /* threads of the executor */
	uint8_t *reference; /* owned */
	uint64_t reference_size, reference_ns, reference_runs;
	uint32_t reference_sum; /* so that nobody leaves it out */
};

struct bench_work {
	struct bench *bench;
	store_work_fn work;
	void *argument;
};

static void *
bench_work_run(void *argument)
{
	struct bench_work work = *(struct bench_work *)argument;

	free(argument);
	work.work(work.argument);
	atomic_fetch_sub(&work.bench->working, 1);
	return NULL;
}

static bool
bench_submit(void *context, const char *stage, store_work_fn function, void *argument)
{
	struct bench_work *work = xzalloc(sizeof(*work));
	pthread_t thread;

	(void)stage;
	*work = (struct bench_work){context, function, argument};
	atomic_fetch_add(&work->bench->working, 1);
	if (pthread_create(&thread, NULL, bench_work_run, work) != 0)
		abort();
	pthread_detach(thread);
	return true;
}

static uint64_t
bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void
bench_check(int rc, const struct error *err)
{
	if (rc != 0) {
		fprintf(stderr, "store_bench: %s\n", err->text);
		exit(1);
	}
}

static void
bench_open(struct bench *bench, const char *directory)
{
	struct store_executor executor = {bench_submit, bench};
	struct option_entry entry = {slice_of_string("class"),
	    slice_of_string("org.apache.cassandra.locator.SimpleStrategy")};
	struct option_map replication = {&entry, 1};
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("standard1"));
	struct keyspace_metadata *keyspace, *with;
	struct store_options options;
	struct schema *empty = schema_new(), *schema;
	struct error err;
	char data[256], log[256], name[3] = "C0";

	table_builder_add(builder, COLUMN_PARTITION_KEY, "key", "blob");
	for (int i = 0; i < 5; i++) {
		name[1] = (char)('0' + i);
		table_builder_add(builder, COLUMN_REGULAR, name, "blob");
	}
	bench_check(table_builder_build(builder, &bench->table, &err), &err);
	table_builder_free(builder);
	for (int i = 0; i < 5; i++) {
		name[1] = (char)('0' + i);
		bench->columns[i] = table_column(bench->table, slice_of_string(name));
	}
	keyspace = keyspace_new(slice_of_string("ks"), &replication, true, false);
	with = keyspace_with_table(keyspace, bench->table);
	schema = schema_with_keyspace(empty, with);
	store_options_defaults(&options);
	snprintf(data, sizeof(data), "%s/data", directory);
	snprintf(log, sizeof(log), "%s/commitlog", directory);
	options.data_directories = (const char *const[]){data};
	options.data_directory_count = 1;
	options.commitlog_directory = log;
	options.memtable_bytes = UINT64_C(4) << 30;
	bench->env = env_posix_new();
	bench_check(store_open(&options, bench->env, &executor, &bench->store, &err), &err);
	bench_check(store_set_schema(bench->store, schema, &err), &err);
	bench_check(store_replay(bench->store, &err), &err);
	schema_unref(schema);
	schema_unref(empty);
	keyspace_unref(keyspace);
	keyspace_unref(with);
}

static void
bench_written(struct store_write *write, const struct error *err)
{
	struct bench *bench = write->context;

	bench_check(err == NULL ? 0 : -1, err);
	bench->done++;
}

static void
bench_key(uint8_t key[10], uint64_t number)
{
	/* Spread as the stress tool's keys are, and ten bytes long. */
	number *= UINT64_C(0x9e3779b97f4a7c15);
	memcpy(key, &number, 8);
	key[8] = 'k';
	key[9] = 'y';
}

/* As random as the stress tool's, which do not compress. */
static void
bench_values(uint8_t value[170], uint64_t *random)
{
	for (int i = 0; i + 8 <= 170; i += 8) {
		*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		memcpy(value + i, random, 8);
	}
}

static void
bench_write(struct bench *bench, uint64_t first, uint64_t rows, bool is_told)
{
	uint8_t key[10], value[170];
	uint64_t random = first + 1;
	struct buffer scratch;
	struct arena arena;
	uint64_t began;

	arena_init(&arena, 16 << 10);
	buffer_init(&scratch);
	began = bench_now();
	for (uint64_t i = 0; i < rows; i++) {
		struct cell cells[5];
		struct row row = {.liveness = LIVENESS_NONE,
		    .deletion = DELETION_LIVE,
		    .cell_count = 5,
		    .cells = cells};
		struct partition_update update;
		struct mutation mutation;
		struct store_write write = {.mutation = &mutation,
		    .is_durable = true,
		    .on_done = bench_written,
		    .context = bench,
		    .scratch = &scratch};
		struct update_builder *builder;
		struct error err;

		bench_key(key, first + i);
		bench_values(value, &random);
		for (int c = 0; c < 5; c++)
			cells[c] = (struct cell){.column = bench->columns[c],
			    .timestamp = 1700000000000000 + (int64_t)i,
			    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
			    .value = slice_of(value + 34 * c, 34)};
		builder = update_builder_new(bench->table, slice_of(key, sizeof(key)), &arena);
		bench_check(update_builder_add_row(builder, &row, &err), &err);
		bench_check(update_builder_finish(builder, &update, &err), &err);
		mutation = (struct mutation){.keyspace = "ks",
		    .key = update.key,
		    .token = update.token,
		    .update_count = 1,
		    .updates = &update};
		store_apply(bench->store, &write);
		arena_reset(&arena);
	}
	if (is_told)
		printf("%-28s %8" PRIu64 " ns/row\n", "write", (bench_now() - began) / rows);
	buffer_fini(&scratch);
	arena_fini(&arena);
}

static void
bench_read(struct bench *bench, uint64_t rows, uint64_t reads, const char *what)
{
	struct arena arena;
	uint64_t began, found = 0, number = 88172645463325252;

	arena_init(&arena, 16 << 10);
	began = bench_now();
	for (uint64_t i = 0; i < reads; i++) {
		struct read_command command = {.table = bench->table,
		    .row_limit = READ_LIMIT_NONE,
		    .per_partition_limit = READ_LIMIT_NONE,
		    .now_seconds = 1800000000};
		struct partition_iterator *partitions;
		struct live_reader reader;
		struct live_row row;
		struct error err;
		uint8_t key[10];

		number ^= number << 13;
		number ^= number >> 7;
		number ^= number << 17;
		bench_key(key, number % rows);
		command.key = slice_of(key, sizeof(key));
		command.token = murmur3_token(command.key);
		bench_check(store_read(bench->store, &command, &arena, &partitions, &err), &err);
		live_reader_init(&reader, &command, partitions, &arena);
		while (live_reader_next(&reader, &row, &err) > 0)
			found += row.row->cell_count;
		live_reader_fini(&reader);
		arena_reset(&arena);
	}
	printf("%-28s %8" PRIu64 " ns/read%s\n", what, (bench_now() - began) / reads,
	    found == 5 * reads ? "" : "  (ROWS ARE MISSING)");
	arena_fini(&arena);
}

static void
bench_scan(struct bench *bench, uint64_t rows, const char *what)
{
	struct read_command command = {.table = bench->table,
	    .is_range = true,
	    .range = {.left = INT64_MIN, .right = INT64_MIN},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = 1800000000};
	struct partition_iterator *partitions;
	struct live_reader reader;
	struct live_row row;
	struct arena arena;
	struct error err;
	uint64_t began = bench_now(), found = 0;
	int rc;

	arena_init(&arena, 64 << 10);
	bench_check(store_read(bench->store, &command, &arena, &partitions, &err), &err);
	live_reader_init(&reader, &command, partitions, &arena);
	while ((rc = live_reader_next(&reader, &row, &err)) > 0)
		found++;
	bench_check(rc, &err);
	live_reader_fini(&reader);
	printf("%-28s %8" PRIu64 " ns/row%s, arena %zu MiB\n", what, (bench_now() - began) / rows,
	    found == rows ? "" : "  (ROWS ARE MISSING)", arena.total_bytes >> 20);
	arena_fini(&arena);
}

/* A file of the flushed table, whole. */
static struct slice
bench_file(struct bench *bench, const char *name, struct buffer *out)
{
	char pattern[512];
	glob_t found;
	struct error err;

	snprintf(
	    pattern, sizeof(pattern), "%s/data/ks/standard1-*/nb-1-big-%s", bench->directory, name);
	if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc != 1) {
		fprintf(stderr, "store_bench: no %s\n", pattern);
		exit(1);
	}
	buffer_init(out);
	bench_check(
	    files_read_all(bench->env->files, found.gl_pathv[0], SIZE_MAX, out, &err), &err);
	globfree(&found);
	return buffer_slice(out);
}

/* The bytes of the flushed Data.db, before compression, as they will go through the reference. */
static void
bench_reference_load(struct bench *bench)
{
	struct compression_info info;
	struct buffer data, content;
	struct slice stored = bench_file(bench, "Data.db", &data);
	struct error err;

	bench_check(compression_info_decode(bench_file(bench, "CompressionInfo.db", &content),
			stored.size, &info, &err),
	    &err);
	bench->reference_size = info.data_length;
	bench->reference = xmalloc(bench->reference_size);
	for (uint32_t i = 0; i < info.chunk_count; i++) {
		uint64_t at = (uint64_t)i * info.chunk_length;
		uint64_t size = bench->reference_size - at;
		uint64_t packed = info.offsets[i + 1] - info.offsets[i] - COMPRESSION_CRC_SIZE;

		if (size > info.chunk_length)
			size = info.chunk_length;
		bench_check(
		    decompress_chunk(info.kind, slice_of(stored.data + info.offsets[i], packed),
			bench->reference + at, size, &err),
		    &err);
	}
	compression_info_fini(&info);
	buffer_fini(&content);
	buffer_fini(&data);
}

enum { BENCH_CHUNK = 16 << 10 };

/* The same bytes through the three things that cannot be avoided; next to each of the two that are compared with it. */
static void
bench_reference(struct bench *bench)
{
	uint8_t *copy = xmalloc(BENCH_CHUNK);
	int bound = LZ4_compressBound(BENCH_CHUNK);
	char *compressed = xmalloc((size_t)bound);
	uint64_t began = bench_now();
	uint32_t sum = 0;

	for (uint64_t at = 0; at < bench->reference_size; at += BENCH_CHUNK) {
		uint64_t left = bench->reference_size - at;
		int size = left < BENCH_CHUNK ? (int)left : BENCH_CHUNK;
		int put;

		memcpy(copy, bench->reference + at, (size_t)size);
		put = LZ4_compress_default((const char *)copy, compressed, size, bound);
		sum ^= crc32_update(0, compressed, (size_t)put);
	}
	bench->reference_ns += bench_now() - began;
	bench->reference_runs++;
	bench->reference_sum += sum;
	free(copy);
	free(compressed);
}

static void
bench_compact(struct bench *bench, uint64_t rows)
{
	struct table_store *table = store_table(bench->store, bench->table);
	struct error err;
	uint64_t began;

	for (uint64_t i = 0; i < 4; i++) {
		bench_write(bench, i * rows / 4, rows / 4, false);
		bench_check(store_flush(bench->store, table, &err), &err);
	}
	store_set_compaction_throughput(bench->store, 0);
	began = bench_now();
	bench_check(store_compact(bench->store, table, &err), &err);

	/* The first flush's rows are in there too. */
	printf("%-28s %8" PRIu64 " ns/row\n", "compaction", (bench_now() - began) / (2 * rows));
}

int
main(int argc, char **argv)
{
	uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000, began;
	char directory[] = "/tmp/store_bench.XXXXXX";
	struct bench bench = {.directory = directory};
	struct error err;

	if (mkdtemp(directory) == NULL || rows == 0)
		return 1;
	log_set_level("ROOT", LOG_WARN);
	bench_open(&bench, directory);
	bench_write(&bench, 0, rows, true);
	printf(
	    "%-28s %8" PRIu64 " bytes/row\n", "memtable", store_memtable_bytes(bench.store) / rows);
	bench_read(&bench, rows, rows, "point read, memtable");
	bench_scan(&bench, rows, "scan, memtable");
	began = bench_now();
	store_set_auto_compaction(bench.store, store_table(bench.store, bench.table), false);
	bench_check(store_flush(bench.store, store_table(bench.store, bench.table), &err), &err);
	printf("%-28s %8" PRIu64 " ns/row\n", "flush", (bench_now() - began) / rows);
	bench_reference_load(&bench);
	bench_reference(&bench);
	bench_read(&bench, rows, rows, "point read, sstable");
	bench_scan(&bench, rows, "scan, sstable");
	bench_compact(&bench, rows);
	bench_reference(&bench);
	printf("%-28s %8" PRIu64 " ns/row (%08x)\n", "LZ4, CRC and copy",
	    bench.reference_ns / bench.reference_runs / rows, bench.reference_sum);
	free(bench.reference);
	while (atomic_load(&bench.working) > 0)
		usleep(1000);
	store_close(bench.store);
	files_remove_tree(bench.env->files, directory, NULL);
	env_free(bench.env);
	return 0;
}
