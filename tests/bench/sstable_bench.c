/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an SSTable costs in CPU time: rows of cassandra-stress (10-byte key, five blobs of 34 bytes) are
 * written as a flush does, scanned, read one by one and written again from a scan as a compaction does.
 * Writing is compared with LZ4, CRC and one copy of the same bytes on the same core.
 *
 *   sstable_bench [rows] [directory]
 *
 * SSTABLE_BENCH_ROUNDS=n: the least time of n rounds is shown for what writes (5).
 */
#include <lz4.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/env.h"
#include "base/hash.h"
#include "storage/chunk_cache.h"
#include "storage/key_cache.h"
#include "storage/sstable.h"

enum { BENCH_COLUMNS = 5, BENCH_VALUE = 34, BENCH_CHUNK = 16384, BENCH_ROUNDS = 5 };

struct bench_row {
	int64_t token;
	uint32_t number;
};

struct bench {
	struct env *env;
	struct sstable_context context;
	struct table_metadata *table;
	const char *directory;
	struct bench_row *rows;
	uint32_t count;
	uint8_t noise[65536 + BENCH_VALUE];
};

static double
bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static _Noreturn void
bench_fail(const struct error *err)
{
	fprintf(stderr, "sstable_bench: %s\n", err->text);
	exit(1);
}

static void
bench_key(uint32_t number, uint8_t key[10])
{
	uint64_t value = number * UINT64_C(0x9e3779b97f4a7c15);

	store_u64(key, value);
	store_u16(key + 8, (uint16_t)number);
}

static int
bench_compare(const void *a, const void *b)
{
	int64_t left = ((const struct bench_row *)a)->token;
	int64_t right = ((const struct bench_row *)b)->token;

	return left < right ? -1 : left > right;
}

static void
bench_init(struct bench *bench, uint32_t count, const char *directory)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("standard1"));
	struct error err;
	uint32_t seed = 1;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "key", "blob");
	for (int i = 0; i < BENCH_COLUMNS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "C%d", i);
		table_builder_add(builder, COLUMN_REGULAR, name, "blob");
	}
	if (table_builder_build(builder, &bench->table, &err) != 0)
		bench_fail(&err);
	table_builder_free(builder);
	bench->env = env_posix_new();
	bench->directory = directory;
	bench->context = (struct sstable_context){.env = bench->env,
	    .chunks = chunk_cache_new(UINT64_C(1) << 30),
	    .keys = key_cache_new(100 << 20)};
	bench->rows = calloc(count, sizeof(*bench->rows));
	bench->count = count;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t key[10];

		bench_key(i, key);
		bench->rows[i] = (struct bench_row){murmur3_token(slice_of(key, 10)), i};
	}
	qsort(bench->rows, count, sizeof(*bench->rows), bench_compare);
	for (size_t i = 0; i < sizeof(bench->noise); i++) {
		seed = seed * 1664525 + 1013904223;
		bench->noise[i] = (uint8_t)(seed >> 24);
	}
}

/* ---- a source of partitions, as cheap as can be ---------------------------------------------------- */

struct bench_source {
	struct unfiltered_iterator base;
	struct row row;
	struct cell cells[BENCH_COLUMNS];
	uint8_t key[10];
	bool is_done;
};

static int
bench_source_next(struct unfiltered_iterator *base, struct unfiltered *out, struct error *err)
{
	struct bench_source *source = (struct bench_source *)base;

	(void)err;
	if (source->is_done)
		return 0;
	source->is_done = true;
	out->kind = UNFILTERED_ROW;
	out->row = source->row;
	return 1;
}

static void
bench_source_close(struct unfiltered_iterator *base)
{
	(void)base;
}

static const struct unfiltered_iterator_ops bench_source_ops = {
    bench_source_next, bench_source_close};

static void
bench_source_set(struct bench_source *source, const struct bench *bench, uint32_t i)
{
	uint32_t number = bench->rows[i].number;

	bench_key(number, source->key);
	source->base = (struct unfiltered_iterator){
	    .ops = &bench_source_ops,
	    .table = bench->table,
	    .token = bench->rows[i].token,
	    .key = slice_of(source->key, sizeof(source->key)),
	    .partition_deletion = DELETION_LIVE,
	};
	source->row = (struct row){.liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE,
	    .cell_count = BENCH_COLUMNS,
	    .cells = source->cells};
	source->row.liveness.timestamp = INT64_C(1700000000000000) + number;
	for (uint32_t j = 0; j < BENCH_COLUMNS; j++)
		source->cells[j] = (struct cell){.column = &bench->table->regulars[j],
		    .timestamp = source->row.liveness.timestamp,
		    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
		    .value =
			slice_of(bench->noise + ((number * 5 + j) * 7919 & 65535), BENCH_VALUE)};
	source->is_done = false;
}

static struct sstable_writer *
bench_writer(struct bench *bench, uint64_t generation)
{
	struct sstable_writer_options options = {
	    .descriptor = {bench->directory, {.generation = generation}},
	    .table = bench->table,
	    .expected_keys = bench->count,
	    .min_timestamp = INT64_C(1700000000000000),
	    .min_local_deletion_time = CODEC_DELETION_TIME_EPOCH,
	};
	struct sstable_writer *writer;
	struct error err;

	if (sstable_writer_new(&bench->context, &options, &writer, &err) != 0)
		bench_fail(&err);
	return writer;
}

static void
bench_report(const char *what, const struct bench *bench, double seconds, uint64_t bytes)
{
	printf("%-28s %8.3f s  %7.0f ns/row  %7.0f MB/s\n", what, seconds,
	    seconds * 1e9 / bench->count, (double)bytes / 1e6 / seconds);
}

static struct sstable *
bench_flush(struct bench *bench, double *seconds)
{
	struct sstable_writer *writer = bench_writer(bench, 1);
	struct bench_source source;
	struct sstable *sstable;
	struct error err;
	double start = bench_now();

	for (uint32_t i = 0; i < bench->count; i++) {
		bench_source_set(&source, bench, i);
		if (sstable_writer_append(writer, &source.base, &err) != 0)
			bench_fail(&err);
	}
	if (sstable_writer_finish(writer, &sstable, &err) != 0)
		bench_fail(&err);
	*seconds = bench_now() - start;
	return sstable;
}

/* Bytes as those of Data.db: keys, a few bytes of headers, values. */
static void
bench_fill(const struct bench *bench, uint8_t *data, uint64_t size)
{
	static const uint8_t header[20] = {
	    0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x24, 0x80, 0xb7, 0x12, 0x80, 0x11};
	uint64_t at = 0;

	for (uint32_t i = 0; i < bench->count && at + 256 <= size; i++) {
		uint32_t number = bench->rows[i].number;

		store_u16(data + at, 10);
		bench_key(number, data + at + 2);
		memcpy(data + at + 12, header, sizeof(header));
		at += 12 + sizeof(header);
		for (uint32_t j = 0; j < BENCH_COLUMNS; j++, at += 2 + BENCH_VALUE) {
			store_u16(data + at, 0x0822);
			memcpy(data + at + 2, bench->noise + ((number * 5 + j) * 7919 & 65535),
			    BENCH_VALUE);
		}
	}
}

/* What the same bytes cost at the least: one copy, LZ4 and CRC of chunks of 16 KiB; and, where wanted, the
 * kernel's part of writing them to a file. */
static double
bench_limit(struct bench *bench, struct sstable *sstable, bool is_written)
{
	uint64_t size = sstable_uncompressed_size(sstable);
	uint8_t *data = calloc(1, size + BENCH_CHUNK);
	char out[LZ4_COMPRESSBOUND(BENCH_CHUNK)];
	uint8_t chunk[BENCH_CHUNK];
	uint32_t crc = 0;
	double start;
	void *state = malloc((size_t)LZ4_sizeofState());
	struct file *file = NULL;
	struct error err;
	char path[4096];

	snprintf(path, sizeof(path), "%s/limit", bench->directory);
	if (is_written &&
	    files_open(bench->env->files, path, FILE_WRITE | FILE_CREATE, &file, &err) != 0)
		bench_fail(&err);

	bench_fill(bench, data, size);
	start = bench_now();
	for (uint64_t at = 0; at + BENCH_CHUNK <= size; at += BENCH_CHUNK) {
		int used;

		memcpy(chunk, data + at, BENCH_CHUNK);
		used = LZ4_compress_fast_extState(
		    state, (const char *)chunk, out, BENCH_CHUNK, (int)sizeof(out), 1);
		crc = crc32_update(crc, out, (size_t)used);
		if (file != NULL && file_write(file, out, (size_t)used, &err) != 0)
			bench_fail(&err);
	}
	file_close(file);
	start = bench_now() - start;
	free(data);
	free(state);
	files_unlink(bench->env->files, path, NULL);
	return crc == 1 ? start + 1e-9 : start;
}

static uint64_t
bench_drain(struct unfiltered_iterator *partition)
{
	struct unfiltered item;
	struct error err;
	uint64_t cells = 0;
	int rc;

	while ((rc = unfiltered_iterator_next(partition, &item, &err)) > 0)
		cells += item.row.cell_count;
	if (rc < 0)
		bench_fail(&err);
	unfiltered_iterator_close(partition);
	return cells;
}

static double
bench_scan(struct bench *bench, struct sstable *sstable, uint32_t flags)
{
	struct partition_iterator *scan;
	struct unfiltered_iterator *partition;
	struct error err;
	struct arena arena;
	uint64_t cells = 0;
	double start = bench_now();
	int rc;

	arena_init(&arena, 1 << 16);
	if (sstable_scan(sstable, NULL, NULL, flags, &arena, &scan, &err) != 0)
		bench_fail(&err);
	while ((rc = partition_iterator_next(scan, &partition, &err)) > 0)
		cells += bench_drain(partition);
	if (rc < 0 || cells != (uint64_t)bench->count * BENCH_COLUMNS)
		bench_fail(&err);
	partition_iterator_close(scan);
	arena_fini(&arena);
	return bench_now() - start;
}

static double
bench_read(struct bench *bench, struct sstable *sstable, bool is_present)
{
	struct error err;
	struct arena arena;
	uint64_t cells = 0;
	double start = bench_now();

	arena_init(&arena, 1 << 14);
	for (uint32_t i = 0; i < bench->count; i++) {
		struct read_command command = {.table = bench->table};
		struct unfiltered_iterator *partition;
		uint8_t key[10];

		bench_key((uint32_t)(i * UINT64_C(2654435761) % bench->count) +
			(is_present ? 0 : bench->count),
		    key);
		command.key = slice_of(key, sizeof(key));
		command.token = murmur3_token(command.key);
		if (sstable_read(sstable, &command, &arena, &partition, &err) != 0)
			bench_fail(&err);
		if (partition != NULL)
			cells += bench_drain(partition);
		arena_reset(&arena);
	}
	arena_fini(&arena);
	if (is_present && cells != (uint64_t)bench->count * BENCH_COLUMNS)
		printf("rows are missing\n");
	return bench_now() - start;
}

static double
bench_compact(struct bench *bench, struct sstable *sstable)
{
	struct sstable_writer *writer = bench_writer(bench, 2);
	struct partition_iterator *scan;
	struct unfiltered_iterator *partition;
	struct error err;
	struct arena arena;
	struct sstable *written;
	double start = bench_now();
	int rc;

	arena_init(&arena, 1 << 16);
	if (sstable_scan(sstable, NULL, NULL, SSTABLE_SCAN_SEQUENTIAL | SSTABLE_SCAN_TRANSIENT,
		&arena, &scan, &err) != 0)
		bench_fail(&err);
	while ((rc = partition_iterator_next(scan, &partition, &err)) > 0) {
		if (sstable_writer_append(writer, partition, &err) != 0)
			bench_fail(&err);
		unfiltered_iterator_close(partition);
	}
	if (rc < 0 || sstable_writer_finish(writer, &written, &err) != 0)
		bench_fail(&err);
	partition_iterator_close(scan);
	arena_fini(&arena);
	start = bench_now() - start;
	sstable_mark_obsolete(written, NULL, NULL);
	sstable_unref(written);
	return start;
}

/* The least of some rounds each: what else runs on the machine only ever adds. */
struct bench_times {
	double limit, written, flush, compact;
};

static struct sstable *
bench_write(struct bench *bench, struct bench_times *times)
{
	const char *wanted = getenv("SSTABLE_BENCH_ROUNDS");
	int rounds = wanted != NULL ? atoi(wanted) : BENCH_ROUNDS;
	struct sstable *sstable = NULL;

	for (int i = 0; i < rounds || sstable == NULL; i++) {
		double flush;

		if (sstable != NULL) {
			sstable_mark_obsolete(sstable, NULL, NULL);
			sstable_unref(sstable);
		}
		sstable = bench_flush(bench, &flush);
		times->flush = fmin(times->flush, flush);
		times->limit = fmin(times->limit, bench_limit(bench, sstable, false));
		times->written = fmin(times->written, bench_limit(bench, sstable, true));
		times->compact = fmin(times->compact, bench_compact(bench, sstable));
	}
	return sstable;
}

int
main(int argc, char **argv)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000000;
	char folder[] = "/dev/shm/sstable-bench-XXXXXX";
	struct sstable *sstable;
	uint64_t bytes;
	struct bench_times times = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};

	bench_init(bench, count, argc > 2 ? argv[2] : mkdtemp(folder));
	sstable = bench_write(bench, &times);
	bytes = sstable_uncompressed_size(sstable);
	printf("%u rows, %.1f MB, %.1f MB on disk\n", count, (double)bytes / 1e6,
	    (double)sstable_data_size(sstable) / 1e6);
	bench_report("LZ4, CRC, copy", bench, times.limit, bytes);
	bench_report("LZ4, CRC, copy, write()", bench, times.written, bytes);
	bench_report("flush", bench, times.flush, bytes);
	bench_report("scan and write (compaction)", bench, times.compact, bytes);
	bench_report("scan, sequential", bench,
	    bench_scan(bench, sstable, SSTABLE_SCAN_SEQUENTIAL | SSTABLE_SCAN_TRANSIENT), bytes);
	bench_report("scan, cold cache", bench, bench_scan(bench, sstable, 0), bytes);
	bench_report("scan, warm cache", bench, bench_scan(bench, sstable, 0), bytes);
	bench_report("read, by summary", bench, bench_read(bench, sstable, true), bytes);
	bench_report("read, by key cache", bench, bench_read(bench, sstable, true), bytes);
	bench_report("read, absent key", bench, bench_read(bench, sstable, false), bytes);
	printf("of the limit: flush %.2f, compaction %.2f; of the limit with write(): %.2f, %.2f\n",
	    times.limit / times.flush, times.limit / times.compact, times.written / times.flush,
	    times.written / times.compact);
	sstable_mark_obsolete(sstable, NULL, NULL);
	sstable_unref(sstable);
	if (argc <= 2)
		files_rmdir(bench->env->files, bench->directory, NULL);
	chunk_cache_free(bench->context.chunks);
	key_cache_free(bench->context.keys);
	table_unref(bench->table);
	env_free(bench->env);
	free(bench->rows);
	free(bench);
	return 0;
}
