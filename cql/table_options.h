/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_TABLE_OPTIONS_H
#define HELENUS_CQL_TABLE_OPTIONS_H

/*
 * The options of a table: WITH ... of CREATE and ALTER, the columns of system_schema.tables, and
 * what DESCRIBE prints, all from one list in table_options.c. Cassandra's TableParams,
 * CompactionParams, CompressionParams, CachingParams, SpeculativeRetryPolicy.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"

/* A small map of text to text (or, for extensions, to a blob) in the order given. */
struct option_entry {
	struct slice key;
	struct slice value;
};

struct option_map {
	struct option_entry *entries;
	uint32_t count;
};

/* NULL: not there. */
const struct slice *option_map_get(const struct option_map *map, const char *key);
/* Copy entries, keys and values. */
struct option_map option_map_copy(struct arena *arena, const struct option_map *map);
/* Put or replace; the slices are borrowed. The entries' memory is of `arena`. */
void
option_map_put(struct option_map *map, struct slice key, struct slice value, struct arena *arena);
bool option_map_remove(struct option_map *map, const char *key);
/* By the bytes of the keys. */
void option_map_sort(struct option_map *map);
bool option_map_equal(const struct option_map *a, const struct option_map *b); /* any order */
uint64_t option_map_hash(const struct option_map *map); /* any order; never stored */
/* {'a': '1', 'b': '2'} in the order of the map. */
void option_map_print(const struct option_map *map, struct buffer *out);

enum retry_kind {
	RETRY_NEVER,
	RETRY_ALWAYS,
	RETRY_FIXED, /* fixed_ms */
	RETRY_PERCENTILE, /* percentile */
	RETRY_MIN, /* of fixed and percentile */
	RETRY_MAX,
};

/* speculative_retry and additional_write_policy. */
struct retry_policy {
	enum retry_kind kind;
	double percentile; /* 0..100 */
	double fixed_ms;
	struct slice text; /* normalised: "99p", "50ms", "MIN(99p,50ms)", "NEVER", "ALWAYS" */
};

enum compressor {
	COMPRESSOR_NONE,
	COMPRESSOR_LZ4,
	COMPRESSOR_SNAPPY,
	COMPRESSOR_DEFLATE,
	COMPRESSOR_ZSTD,
	COMPRESSOR_NOOP,
};

enum compaction_strategy {
	COMPACTION_SIZE_TIERED,
	COMPACTION_LEVELED,
	COMPACTION_TIME_WINDOW,
	COMPACTION_DATE_TIERED, /* removed from Cassandra: refused */
};

enum { CACHING_ROWS_ALL = -1, CACHING_ROWS_NONE = 0 };

struct table_options {
	struct slice comment;
	double bloom_filter_fp_chance; /* NaN: not given; table_options_fp_chance() */
	bool caching_keys;
	int32_t caching_rows; /* CACHING_ROWS_ALL, CACHING_ROWS_NONE or a number */
	bool cdc;
	double crc_check_chance;
	int32_t default_time_to_live; /* seconds, 0: none */
	int32_t gc_grace_seconds;
	int32_t min_index_interval;
	int32_t max_index_interval;
	int32_t memtable_flush_period_in_ms;
	bool is_read_repair_blocking;
	struct retry_policy speculative_retry;
	struct retry_policy additional_write_policy;
	struct slice memtable;
	/* Options of later versions: neither printed nor stored while they have the default. */
	bool incremental_backups;
	bool allow_auto_snapshot;
	struct option_map extensions; /* text -> blob */

	/* As system_schema.tables has them: "class" full name, then the rest by name. */
	struct option_map compaction;
	struct option_map compression;

	/* The parsed forms of those two, for the storage. */
	enum compaction_strategy strategy;
	bool is_compaction_enabled;
	int32_t min_threshold; /* strategies that have none: 4, 32 */
	int32_t max_threshold;
	enum compressor compressor; /* COMPRESSOR_NONE: not compressed */
	int32_t chunk_length; /* bytes */
	double min_compress_ratio; /* 0: off */
	int32_t compressor_level; /* zstd; 3 */
	bool is_lz4_high_compressor; /* lz4_compressor_type 'high' */
	int32_t lz4_high_level; /* 9 */
};

/* Defaults of Cassandra 4.1. Static memory only. */
void table_options_init(struct table_options *options);
/* Deep copy into the arena. */
void table_options_copy(
    struct table_options *out, const struct table_options *options, struct arena *arena);
bool table_options_equal(const struct table_options *a, const struct table_options *b);
/* bloom_filter_fp_chance, or the default that the strategy has (0.01, leveled 0.1). */
double table_options_fp_chance(const struct table_options *options);

/* One property of WITH: either a simple value (text of the literal) or a map. */
struct table_property {
	struct slice name; /* lower case */
	bool is_map;
	struct slice value; /* !is_map */
	struct option_map map; /* is_map */
};

/*
 * Apply the properties of a statement on top of what options has (defaults for CREATE). Values are
 * copied into the arena. ERROR_SYNTAX "Unknown property 'x'", "Invalid value for property ..." and
 * ERROR_CONFIG for values out of range, unknown sub-options and classes, as Cassandra. Does not
 * know "id" (CREATE TABLE ... WITH ID = ): the caller takes that out.
 */
int table_options_apply(struct table_options *options, const struct table_property *properties,
    uint32_t count, struct arena *arena, struct error *err);
/* Is there such a property? */
bool table_options_knows(struct slice name);
/* TableParams.validate: ranges and combinations. apply() has called it. */
int table_options_validate(const struct table_options *options, struct error *err);

/*
 * "additional_write_policy = '99p'\n    AND bloom_filter_fp_chance = 0.01..." as DESCRIBE prints
 * it, without WITH before and ';' after. is_view leaves default_time_to_live out.
 */
void table_options_print(const struct table_options *options, bool is_view, struct buffer *out);

/*
 * The cells of system_schema.tables (and .views): column name and serialised value, in order of
 * name. Values are in the arena; a null slice is a null cell. Returns the count; `cells` has room
 * for TABLE_OPTIONS_CELLS_MAX.
 */
enum { TABLE_OPTIONS_CELLS_MAX = 24 };
struct table_option_cell {
	const char *column;
	struct slice value;
};
uint32_t table_options_to_cells(const struct table_options *options, struct arena *arena,
    struct table_option_cell cells[TABLE_OPTIONS_CELLS_MAX]);
/* Set one option from the cell of that column; unknown columns are ignored (return 0). Null keeps
 * the default. ERROR_CORRUPT when the bytes are wrong. */
int table_options_from_cell(struct table_options *options, struct slice column, struct slice value,
    struct arena *arena, struct error *err);

#endif
