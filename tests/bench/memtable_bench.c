/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a memtable costs: rows of cassandra-stress (10-byte key, five blobs of 34 bytes), 1 M of them in random
 * order: insert, read of one row, overwrite, scan; and memory for each row.
 *
 *   memtable_bench [rows] [shards]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/hash.h"
#include "storage/memtable.h"
#include "storage/merge.h"

struct bench {
	struct table_metadata *table;
	struct memtable *memtable;
	struct arena arena;
	uint32_t rows;
};

static double
bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static struct table_metadata *
bench_table(void)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("standard1"));
	struct table_metadata *table = NULL;
	struct error err;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "key", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C0", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C1", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C2", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C3", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C4", "blob");
	if (table_builder_build(builder, &table, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	table_builder_free(builder);
	return table;
}

/* Visits every number below 2^32 once, in no order. */
static uint32_t
bench_shuffle(uint32_t number)
{
	return number * UINT32_C(2654435761);
}

static struct slice
bench_key(char key[16], uint32_t number)
{
	for (int i = 9; i >= 0; i--, number /= 10)
		key[i] = (char)('0' + number % 10);
	return slice_of(key, 10);
}

static void
bench_put(struct bench *bench, uint32_t number, int64_t timestamp)
{
	uint8_t value[34];
	char key[16];
	struct cell cells[5];
	struct row row = {
	    .liveness = {timestamp, TTL_NONE, LOCAL_DELETION_TIME_NONE},
	    .deletion = DELETION_LIVE,
	    .cell_count = 5,
	    .cells = cells,
	};
	struct update_builder *builder;
	struct partition_update update;
	struct error err;

	memset(value, (int)number, sizeof(value));
	for (uint32_t i = 0; i < 5; i++)
		cells[i] = (struct cell){&bench->table->regulars[i], timestamp, TTL_NONE,
		    LOCAL_DELETION_TIME_NONE, slice_null, slice_of(value, sizeof(value))};
	builder = update_builder_new(bench->table, bench_key(key, number), &bench->arena);
	if (update_builder_add_row(builder, &row, &err) != 0 ||
	    update_builder_finish(builder, &update, &err) != 0 ||
	    memtable_apply(bench->memtable, &update, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	arena_reset(&bench->arena);
}

static void
bench_get(struct bench *bench, uint32_t number)
{
	char key[16];
	struct slice bytes = bench_key(key, number);
	struct read_command command = {
	    .table = bench->table,
	    .key = bytes,
	    .token = murmur3_token(bytes),
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	};
	struct unfiltered_iterator *iterator;
	struct memtable_hold *holds = NULL;
	struct unfiltered unfiltered;
	struct error err;

	if (memtable_read(bench->memtable, &command, &bench->arena, &holds, &iterator, &err) != 0 ||
	    iterator == NULL || unfiltered_iterator_next(iterator, &unfiltered, &err) != 1 ||
	    unfiltered.row.cells[4].value.size != 34) {
		fprintf(stderr, "row %u is not there\n", number);
		exit(1);
	}
	unfiltered_iterator_close(iterator);
	memtable_release(holds);
	arena_reset(&bench->arena);
}

static void
bench_report(const char *what, double start, uint32_t count)
{
	printf("%-28s %8.0f ns\n", what, (bench_now() - start) / count);
}

/* The part of an operation that is not the memtable's: making the update, hashing the key. */
static void
bench_overhead(struct bench *bench)
{
	double start = bench_now();
	volatile int64_t token = 0;

	for (uint32_t i = 0; i < bench->rows; i++) {
		char key[16];

		token = token ^ murmur3_token(bench_key(key, bench_shuffle(i)));
	}
	bench_report("(key and token alone)", start, bench->rows);
}

static void
bench_scan(struct bench *bench)
{
	struct partition_iterator *partitions;
	struct unfiltered_iterator *partition;
	struct unfiltered unfiltered;
	struct error err;
	uint32_t seen = 0;
	double start = bench_now();

	if (memtable_flush_iterator(bench->memtable, true, &bench->arena, &partitions, &err) != 0)
		exit(1);
	while (partition_iterator_next(partitions, &partition, &err) == 1) {
		while (unfiltered_iterator_next(partition, &unfiltered, &err) == 1)
			seen++;
		unfiltered_iterator_close(partition);
	}
	partition_iterator_close(partitions);
	bench_report("scan, a row", start, seen);
}

int
main(int argc, char **argv)
{
	struct bench bench = {.rows = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000000};
	uint32_t shards = argc > 2 ? (uint32_t)atoi(argv[2]) : 8;
	double start;

	bench.table = bench_table();
	bench.memtable = memtable_new(bench.table, shards, NULL);
	arena_init(&bench.arena, 16384);
	bench_overhead(&bench);

	start = bench_now();
	for (uint32_t i = 0; i < bench.rows; i++)
		bench_put(&bench, bench_shuffle(i), 1700000000000000 + i);
	bench_report("insert", start, bench.rows);
	printf("%-28s %8.0f bytes\n", "memory, a row",
	    (double)memtable_bytes(bench.memtable) / bench.rows);

	start = bench_now();
	for (uint32_t i = 0; i < bench.rows; i++)
		bench_get(&bench, bench_shuffle(bench.rows - 1 - i));
	bench_report("read", start, bench.rows);

	bench_scan(&bench);

	start = bench_now();
	for (uint32_t i = 0; i < bench.rows; i++)
		bench_put(&bench, bench_shuffle(i / 2), 1800000000000000 + i);
	bench_report("overwrite", start, bench.rows);

	memtable_unref(bench.memtable);
	table_unref(bench.table);
	arena_fini(&bench.arena);
	return 0;
}
