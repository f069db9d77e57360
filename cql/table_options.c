/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of options, and reading, checking and printing them. Everything that only one of the maps
 * needs (caching, compaction, compression, the retry policies) is in table_options_maps.c.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/hash.h"
#include "cql/table_options.h"
#include "cql/table_options_internal.h"
#include "cql/type.h"
#include "cql/value.h"

/* ---- Option maps --------------------------------------------------------------------------- */

const struct slice *
option_map_get(const struct option_map *map, const char *key)
{
	uint32_t i;

	for (i = 0; i < map->count; i++) {
		if (slice_equal_string(map->entries[i].key, key))
			return &map->entries[i].value;
	}
	return NULL;
}

struct option_map
option_map_copy(struct arena *arena, const struct option_map *map)
{
	struct option_map copy = {NULL, map->count};
	uint32_t i;

	copy.entries = arena_calloc(arena, map->count + 1, sizeof(*copy.entries));
	if (copy.entries == NULL)
		abort();
	for (i = 0; i < map->count; i++) {
		copy.entries[i].key = arena_copy(arena, map->entries[i].key);
		copy.entries[i].value = arena_copy(arena, map->entries[i].value);
		if (copy.entries[i].key.data == NULL)
			abort();
	}
	return copy;
}

void
option_map_put(struct option_map *map, struct slice key, struct slice value, struct arena *arena)
{
	struct option_entry *entries;
	uint32_t i;

	for (i = 0; i < map->count; i++) {
		if (slice_equal(map->entries[i].key, key)) {
			map->entries[i].value = value;
			return;
		}
	}
	entries = arena_calloc(arena, map->count + 1, sizeof(*entries));
	if (entries == NULL)
		abort();
	if (map->count > 0)
		memcpy(entries, map->entries, map->count * sizeof(*entries));
	entries[map->count].key = key;
	entries[map->count].value = value;
	map->entries = entries;
	map->count++;
}

bool
option_map_remove(struct option_map *map, const char *key)
{
	uint32_t i;

	for (i = 0; i < map->count; i++) {
		if (!slice_equal_string(map->entries[i].key, key))
			continue;
		memmove(&map->entries[i], &map->entries[i + 1],
		    (map->count - i - 1) * sizeof(*map->entries));
		map->count--;
		return true;
	}
	return false;
}

static int
option_map_order(const void *left, const void *right)
{
	const struct option_entry *a = left;
	const struct option_entry *b = right;

	return slice_compare(a->key, b->key);
}

void
option_map_sort(struct option_map *map)
{
	if (map->count > 1)
		qsort(map->entries, map->count, sizeof(*map->entries), option_map_order);
}

bool
option_map_equal(const struct option_map *a, const struct option_map *b)
{
	uint32_t i, j;

	if (a->count != b->count)
		return false;
	for (i = 0; i < a->count; i++) {
		/* Most are in one order. */
		j = i;
		if (!slice_equal(a->entries[i].key, b->entries[i].key)) {
			for (j = 0; j < b->count; j++) {
				if (slice_equal(a->entries[i].key, b->entries[j].key))
					break;
			}
		}
		if (j == b->count || !slice_equal(a->entries[i].value, b->entries[j].value))
			return false;
	}
	return true;
}

uint64_t
option_map_hash(const struct option_map *map)
{
	uint64_t hash = map->count;

	for (uint32_t i = 0; i < map->count; i++) {
		uint64_t key = hash_bytes(map->entries[i].key);

		/* A sum does not mind the order; the product ties a value to its key. */
		hash += (key | 1) * (hash_bytes(map->entries[i].value) ^ (key >> 32));
	}
	return hash;
}

static void
option_put_quoted(struct slice text, struct buffer *out)
{
	size_t i;

	buffer_put_u8(out, '\'');
	for (i = 0; i < text.size; i++) {
		if (text.data[i] == '\'')
			buffer_put_u8(out, '\'');
		buffer_put_u8(out, text.data[i]);
	}
	buffer_put_u8(out, '\'');
}

void
option_map_print(const struct option_map *map, struct buffer *out)
{
	uint32_t i;

	buffer_put_u8(out, '{');
	for (i = 0; i < map->count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		option_put_quoted(map->entries[i].key, out);
		buffer_put_string(out, ": ");
		option_put_quoted(map->entries[i].value, out);
	}
	buffer_put_u8(out, '}');
}

/* ---- The list ------------------------------------------------------------------------------ */

enum option_kind {
	OPTION_TEXT,
	OPTION_DOUBLE,
	OPTION_INT,
	OPTION_BOOLEAN,
	OPTION_RETRY,
	OPTION_READ_REPAIR,
	OPTION_CACHING,
	OPTION_COMPACTION,
	OPTION_COMPRESSION,
	OPTION_EXTENSIONS,
};

enum {
	/* Not printed and null in system_schema.tables while it has its default: options that
	 * Cassandra 4.1's own tables do not have, so that its texts stay the same. */
	OPTION_QUIET = 1,
	/* Null in system_schema.tables while it has its default (4.1 does so for upgrades). */
	OPTION_SPARSE = 2,
	OPTION_NOT_IN_VIEWS = 4,
};

struct option_info {
	const char *name;
	enum option_kind kind;
	size_t offset;
	int flags;
};

#define OPTION(name, kind, flags)                                                                  \
	{                                                                                          \
#name, kind, offsetof(struct table_options, name), flags                           \
	}

/* In the order in which DESCRIBE prints them. */
static const struct option_info option_list[] = {
    OPTION(additional_write_policy, OPTION_RETRY, 0),
    OPTION(allow_auto_snapshot, OPTION_BOOLEAN, OPTION_QUIET),
    OPTION(bloom_filter_fp_chance, OPTION_DOUBLE, 0),
    {"caching", OPTION_CACHING, 0, 0},
    OPTION(cdc, OPTION_BOOLEAN, OPTION_SPARSE),
    OPTION(comment, OPTION_TEXT, 0),
    {"compaction", OPTION_COMPACTION, 0, 0},
    {"compression", OPTION_COMPRESSION, 0, 0},
    OPTION(memtable, OPTION_TEXT, OPTION_SPARSE),
    OPTION(crc_check_chance, OPTION_DOUBLE, 0),
    OPTION(default_time_to_live, OPTION_INT, OPTION_NOT_IN_VIEWS),
    OPTION(extensions, OPTION_EXTENSIONS, 0),
    OPTION(gc_grace_seconds, OPTION_INT, 0),
    OPTION(incremental_backups, OPTION_BOOLEAN, OPTION_QUIET),
    OPTION(max_index_interval, OPTION_INT, 0),
    OPTION(memtable_flush_period_in_ms, OPTION_INT, 0),
    OPTION(min_index_interval, OPTION_INT, 0),
    {"read_repair", OPTION_READ_REPAIR, offsetof(struct table_options, is_read_repair_blocking), 0},
    OPTION(speculative_retry, OPTION_RETRY, 0),
};

enum { OPTION_COUNT = sizeof(option_list) / sizeof(option_list[0]) };

static inline void *
option_field(struct table_options *options, const struct option_info *info)
{
	return (uint8_t *)options + info->offset;
}

static inline const void *
option_const_field(const struct table_options *options, const struct option_info *info)
{
	return (const uint8_t *)options + info->offset;
}

static const struct option_info *
option_find(struct slice name)
{
	size_t i;

	for (i = 0; i < OPTION_COUNT; i++) {
		if (slice_equal_string(name, option_list[i].name))
			return &option_list[i];
	}
	return NULL;
}

/* ---- Defaults, copies ---------------------------------------------------------------------- */

#define OPTION_STATIC(string)                                                                      \
	{                                                                                          \
		(const uint8_t *)(string), sizeof(string) - 1                                      \
	}

static const struct option_entry table_options_default_compaction[] = {
    {OPTION_STATIC("class"), OPTION_STATIC(COMPACTION_PACKAGE "SizeTieredCompactionStrategy")},
    {OPTION_STATIC("max_threshold"), OPTION_STATIC("32")},
    {OPTION_STATIC("min_threshold"), OPTION_STATIC("4")},
};

static const struct option_entry table_options_default_compression[] = {
    {OPTION_STATIC("chunk_length_in_kb"), OPTION_STATIC("16")},
    {OPTION_STATIC("class"), OPTION_STATIC(COMPRESS_PACKAGE "LZ4Compressor")},
};

void
table_options_init(struct table_options *options)
{
	const struct retry_policy retry = {RETRY_PERCENTILE, 99.0, 0, slice_of_string("99p")};

	memset(options, 0, sizeof(*options));
	options->comment = slice_empty;
	options->bloom_filter_fp_chance = NAN;
	options->caching_keys = true;
	options->caching_rows = CACHING_ROWS_NONE;
	options->crc_check_chance = 1.0;
	options->gc_grace_seconds = 864000;
	options->min_index_interval = 128;
	options->max_index_interval = 2048;
	options->is_read_repair_blocking = true;
	options->speculative_retry = retry;
	options->additional_write_policy = retry;
	options->memtable = slice_of_string("default");
	options->incremental_backups = true;
	options->allow_auto_snapshot = true;
	/* Never changed in place: every change replaces the map. */
	options->compaction.entries =
	    (struct option_entry *)(uintptr_t)table_options_default_compaction;
	options->compaction.count = 3;
	options->compression.entries =
	    (struct option_entry *)(uintptr_t)table_options_default_compression;
	options->compression.count = 2;
	options->strategy = COMPACTION_SIZE_TIERED;
	options->is_compaction_enabled = true;
	options->min_threshold = 4;
	options->max_threshold = 32;
	options->compressor = COMPRESSOR_LZ4;
	options->chunk_length = 16 * 1024;
	options->compressor_level = 3;
	options->lz4_high_level = 9;
}

static struct slice
table_options_copy_text(struct arena *arena, struct slice text)
{
	struct slice copy = arena_copy(arena, text);

	if (copy.data == NULL && text.data != NULL)
		abort();
	return copy;
}

void
table_options_copy(
    struct table_options *out, const struct table_options *options, struct arena *arena)
{
	*out = *options;
	out->comment = table_options_copy_text(arena, options->comment);
	out->memtable = table_options_copy_text(arena, options->memtable);
	out->speculative_retry.text =
	    table_options_copy_text(arena, options->speculative_retry.text);
	out->additional_write_policy.text =
	    table_options_copy_text(arena, options->additional_write_policy.text);
	out->extensions = option_map_copy(arena, &options->extensions);
	out->compaction = option_map_copy(arena, &options->compaction);
	out->compression = option_map_copy(arena, &options->compression);
}

double
table_options_fp_chance(const struct table_options *options)
{
	if (!isnan(options->bloom_filter_fp_chance))
		return options->bloom_filter_fp_chance;
	return options->strategy == COMPACTION_LEVELED ? 0.1 : 0.01;
}

bool
table_options_equal(const struct table_options *a, const struct table_options *b)
{
	struct buffer left, right;
	bool is_equal;

	buffer_init(&left);
	buffer_init(&right);
	table_options_print(a, false, &left);
	table_options_print(b, false, &right);
	is_equal = slice_equal(buffer_slice(&left), buffer_slice(&right)) &&
	    option_map_equal(&a->extensions, &b->extensions) && !left.is_failed;
	buffer_fini(&left);
	buffer_fini(&right);
	return is_equal;
}

/* ---- Reading properties -------------------------------------------------------------------- */

static bool
option_is_one_of(struct slice text, const char *const words[3])
{
	int i;

	for (i = 0; i < 3; i++) {
		if (option_is_word(text, words[i]))
			return true;
	}
	return false;
}

static int
option_parse_boolean(const char *name, struct slice text, bool *out, struct error *err)
{
	static const char *const yes[3] = {"1", "true", "yes"};
	static const char *const no[3] = {"0", "false", "no"};

	*out = option_is_one_of(text, yes);
	if (*out || option_is_one_of(text, no))
		return 0;
	return error_set(err, ERROR_SYNTAX,
	    "Invalid boolean value %.*s for '%s'. Positive values can be '1', 'true' or 'yes'. "
	    "Negative values can be '0', 'false' or 'no'.",
	    (int)text.size, (const char *)text.data, name);
}

bool
option_is_word(struct slice text, const char *word)
{
	size_t i;

	if (text.size != strlen(word))
		return false;
	for (i = 0; i < text.size; i++) {
		if (tolower(text.data[i]) != tolower((uint8_t)word[i]))
			return false;
	}
	return true;
}

bool
option_to_double(struct slice text, double *out)
{
	char copy[64], *end;

	if (text.size == 0 || text.size >= sizeof(copy) || isspace(text.data[0]))
		return false;
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	*out = strtod(copy, &end);
	return *end == '\0';
}

bool
option_to_int(struct slice text, int32_t *out)
{
	char copy[32], *end;
	long long value;

	if (text.size == 0 || text.size >= sizeof(copy) || isspace(text.data[0]))
		return false;
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	errno = 0;
	value = strtoll(copy, &end, 10);
	if (*end != '\0' || errno != 0 || value < INT32_MIN || value > INT32_MAX)
		return false;
	*out = (int32_t)value;
	return true;
}

static int
option_parse_read_repair(struct slice text, bool *is_blocking, struct error *err)
{
	*is_blocking = option_is_word(text, "BLOCKING");
	if (*is_blocking || option_is_word(text, "NONE"))
		return 0;
	return error_set(err, ERROR_CONFIG,
	    "Invalid value '%.*s' for 'read_repair': must be 'BLOCKING' or 'NONE'", (int)text.size,
	    (const char *)text.data);
}

static int
option_set_text(struct table_options *options, const struct option_info *info, struct slice text,
    struct arena *arena, struct error *err)
{
	void *field = option_field(options, info);

	switch (info->kind) {
	case OPTION_TEXT:
		if (field == (void *)&options->memtable && !slice_equal_string(text, "default"))
			return error_set(err, ERROR_CONFIG,
			    "Memtable configuration \"%.*s\" not found.", (int)text.size,
			    (const char *)text.data);
		*(struct slice *)field = table_options_copy_text(arena, text);
		return 0;
	case OPTION_DOUBLE:
		if (!option_to_double(text, field))
			return error_set(err, ERROR_SYNTAX, "Invalid double value %.*s for '%s'",
			    (int)text.size, (const char *)text.data, info->name);
		return 0;
	case OPTION_INT:
		if (!option_to_int(text, field))
			return error_set(err, ERROR_SYNTAX, "Invalid integer value %.*s for '%s'",
			    (int)text.size, (const char *)text.data, info->name);
		return 0;
	case OPTION_BOOLEAN:
		return option_parse_boolean(info->name, text, field, err);
	case OPTION_RETRY:
		return table_options_parse_retry(text, field, arena, err);
	case OPTION_READ_REPAIR:
		return option_parse_read_repair(text, field, err);
	default:
		return 0;
	}
}

static int
option_set_map(struct table_options *options, const struct option_info *info,
    const struct option_map *map, struct arena *arena, struct error *err)
{
	switch (info->kind) {
	case OPTION_CACHING:
		return table_options_parse_caching(options, map, err);
	case OPTION_COMPACTION:
		return table_options_parse_compaction(options, map, arena, err);
	default:
		return table_options_parse_compression(options, map, arena, err);
	}
}

static int
option_apply(struct table_options *options, const struct option_info *info,
    const struct table_property *property, struct arena *arena, struct error *err)
{
	bool wants_map = info->kind == OPTION_CACHING || info->kind == OPTION_COMPACTION ||
	    info->kind == OPTION_COMPRESSION;

	/* Cassandra takes extensions in a statement and does nothing with them. */
	if (info->kind == OPTION_EXTENSIONS)
		return 0;
	if (wants_map != property->is_map)
		return error_set(err, ERROR_SYNTAX,
		    "Invalid value for property '%s'. It should be a %s", info->name,
		    wants_map ? "map." : "string");
	if (wants_map)
		return option_set_map(options, info, &property->map, arena, err);
	return option_set_text(options, info, property->value, arena, err);
}

bool
table_options_knows(struct slice name)
{
	return option_find(name) != NULL;
}

int
table_options_apply(struct table_options *options, const struct table_property *properties,
    uint32_t count, struct arena *arena, struct error *err)
{
	uint32_t i, j;

	for (i = 0; i < count; i++) {
		struct slice name = properties[i].name;

		for (j = 0; j < i; j++) {
			if (slice_equal(properties[j].name, name))
				return error_set(err, ERROR_SYNTAX,
				    "Multiple definition for property '%.*s'", (int)name.size,
				    (const char *)name.data);
		}
		if (option_find(name) == NULL)
			return error_set(err, ERROR_SYNTAX, "Unknown property '%.*s'",
			    (int)name.size, (const char *)name.data);
	}
	for (i = 0; i < count; i++) {
		if (option_apply(
			options, option_find(properties[i].name), &properties[i], arena, err) != 0)
			return -1;
	}
	/* From now on it stays, whatever ALTER makes of the strategy. */
	options->bloom_filter_fp_chance = table_options_fp_chance(options);
	return table_options_validate(options, err);
}

/* ---- Checks -------------------------------------------------------------------------------- */

static int
option_fail_range(
    const char *name, const char *relation, int32_t bound, int32_t value, struct error *err)
{
	return error_set(err, ERROR_CONFIG, "%s must be %s than or equal to %d (got %d)", name,
	    relation, bound, value);
}

static int
option_fail_chance(const char *format, double value, struct error *err)
{
	struct buffer text;

	buffer_init(&text);
	value_print_double(value, &text);
	buffer_put_u8(&text, 0);
	error_set(err, ERROR_CONFIG, "%s (got %s)", format,
	    text.is_failed ? "?" : (const char *)text.data);
	buffer_fini(&text);
	return -1;
}

/* The least chance that the tables of Cassandra's BloomCalculations reach. */
#define TABLE_OPTIONS_FP_CHANCE_MIN 6.71e-5
enum { TABLE_OPTIONS_TTL_MAX = 630720000 };

int
table_options_validate(const struct table_options *options, struct error *err)
{
	double fp_chance = table_options_fp_chance(options);

	if (!(fp_chance > TABLE_OPTIONS_FP_CHANCE_MIN && fp_chance <= 1.0))
		return option_fail_chance("bloom_filter_fp_chance must be larger than 6.71E-5 and "
					  "less than or equal to 1.0",
		    fp_chance, err);
	if (!(options->crc_check_chance >= 0 && options->crc_check_chance <= 1.0))
		return option_fail_chance("crc_check_chance must be larger than or equal to 0 and "
					  "smaller than or equal to 1.0",
		    options->crc_check_chance, err);
	if (options->default_time_to_live < 0)
		return option_fail_range(
		    "default_time_to_live", "greater", 0, options->default_time_to_live, err);
	if (options->default_time_to_live > TABLE_OPTIONS_TTL_MAX)
		return option_fail_range("default_time_to_live", "less", TABLE_OPTIONS_TTL_MAX,
		    options->default_time_to_live, err);
	if (options->gc_grace_seconds < 0)
		return option_fail_range(
		    "gc_grace_seconds", "greater", 0, options->gc_grace_seconds, err);
	if (options->min_index_interval < 1)
		return option_fail_range(
		    "min_index_interval", "greater", 1, options->min_index_interval, err);
	if (options->max_index_interval < options->min_index_interval)
		return error_set(err, ERROR_CONFIG,
		    "max_index_interval must be greater than or equal to min_index_interval (%d) "
		    "(got %d)",
		    options->min_index_interval, options->max_index_interval);
	if (options->memtable_flush_period_in_ms < 0)
		return option_fail_range("memtable_flush_period_in_ms", "greater", 0,
		    options->memtable_flush_period_in_ms, err);
	return 0;
}

/* ---- Printing ------------------------------------------------------------------------------ */

static bool
option_is_default(const struct table_options *options, const struct option_info *info)
{
	struct table_options defaults;
	const void *field = option_const_field(options, info);
	const void *other;

	table_options_init(&defaults);
	other = option_const_field(&defaults, info);
	if (info->kind == OPTION_BOOLEAN)
		return *(const bool *)field == *(const bool *)other;
	assert(info->kind == OPTION_TEXT);
	return slice_equal(*(const struct slice *)field, *(const struct slice *)other);
}

static void
option_print_extensions(const struct option_map *map, struct buffer *out)
{
	uint32_t i;
	size_t j;

	buffer_put_u8(out, '{');
	for (i = 0; i < map->count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		option_put_quoted(map->entries[i].key, out);
		buffer_put_string(out, ": 0x");
		for (j = 0; j < map->entries[i].value.size; j++)
			buffer_printf(out, "%02x", map->entries[i].value.data[j]);
	}
	buffer_put_u8(out, '}');
}

static void
option_print_caching(const struct table_options *options, struct buffer *out)
{
	buffer_printf(
	    out, "{'keys': '%s', 'rows_per_partition': '", options->caching_keys ? "ALL" : "NONE");
	if (options->caching_rows == CACHING_ROWS_ALL)
		buffer_put_string(out, "ALL'}");
	else if (options->caching_rows == CACHING_ROWS_NONE)
		buffer_put_string(out, "NONE'}");
	else
		buffer_printf(out, "%d'}", options->caching_rows);
}

static void
option_print(
    const struct table_options *options, const struct option_info *info, struct buffer *out)
{
	const void *field = option_const_field(options, info);

	switch (info->kind) {
	case OPTION_TEXT:
		option_put_quoted(*(const struct slice *)field, out);
		break;
	case OPTION_DOUBLE:
		value_print_double(field == (const void *)&options->bloom_filter_fp_chance
			? table_options_fp_chance(options)
			: *(const double *)field,
		    out);
		break;
	case OPTION_INT:
		buffer_printf(out, "%d", *(const int32_t *)field);
		break;
	case OPTION_BOOLEAN:
		buffer_put_string(out, *(const bool *)field ? "true" : "false");
		break;
	case OPTION_RETRY:
		option_put_quoted(((const struct retry_policy *)field)->text, out);
		break;
	case OPTION_READ_REPAIR:
		buffer_put_string(out, *(const bool *)field ? "'BLOCKING'" : "'NONE'");
		break;
	case OPTION_CACHING:
		option_print_caching(options, out);
		break;
	case OPTION_COMPACTION:
		option_map_print(&options->compaction, out);
		break;
	case OPTION_COMPRESSION:
		option_map_print(&options->compression, out);
		break;
	case OPTION_EXTENSIONS:
		option_print_extensions(&options->extensions, out);
		break;
	}
}

void
table_options_print(const struct table_options *options, bool is_view, struct buffer *out)
{
	bool is_first = true;
	size_t i;

	for (i = 0; i < OPTION_COUNT; i++) {
		const struct option_info *info = &option_list[i];

		if ((info->flags & OPTION_QUIET) && option_is_default(options, info))
			continue;
		if ((info->flags & OPTION_NOT_IN_VIEWS) && is_view)
			continue;
		if (!is_first)
			buffer_put_string(out, "\n    AND ");
		is_first = false;
		buffer_printf(out, "%s = ", info->name);
		option_print(options, info, out);
	}
}

/* ---- system_schema.tables ------------------------------------------------------------------ */

static struct slice
option_put_number(struct arena *arena, uint64_t number, size_t size)
{
	uint8_t *out = arena_alloc_bytes(arena, 8);

	if (out == NULL)
		abort();
	store_u64(out, number);
	return slice_of(out + 8 - size, size);
}

static struct slice
option_put_double(struct arena *arena, double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return option_put_number(arena, bits, 8);
}

static struct slice
option_put_map(struct arena *arena, const struct option_map *map)
{
	const struct type *text = type_native(TYPE_TEXT);
	const struct type *type = type_map(arena, text, text, false);
	struct option_map sorted = option_map_copy(arena, map);
	struct slice packed;

	static_assert(
	    sizeof(struct option_entry) == 2 * sizeof(struct slice), "entries are pairs of slices");
	option_map_sort(&sorted);
	packed = type != NULL
	    ? type_pack(type, (const struct slice *)sorted.entries, sorted.count, arena)
	    : slice_null;
	if (packed.data == NULL)
		abort();
	return packed;
}

/*
 * Options that system_schema.tables of our release_version has no column for (OPTION_QUIET) stand among the extensions
 * by their names, so that they are there after a restart and on other nodes.
 */
static struct slice
option_put_extensions(struct arena *arena, const struct table_options *options)
{
	static const uint8_t truth[2] = {0, 1};
	struct option_map all = option_map_copy(arena, &options->extensions);

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_info *info = &option_list[i];

		if ((info->flags & OPTION_QUIET) != 0 && !option_is_default(options, info))
			option_map_put(&all, slice_of_string(info->name),
			    slice_of(&truth[*(const bool *)option_const_field(options, info)], 1),
			    arena);
	}
	return option_put_map(arena, &all);
}

static struct slice
option_put_caching(struct arena *arena, const struct table_options *options)
{
	struct option_entry entries[2];
	struct option_map map = {entries, 2};
	const char *rows = options->caching_rows == CACHING_ROWS_ALL ? "ALL" : "NONE";

	if (options->caching_rows > 0)
		rows = arena_printf(arena, "%d", options->caching_rows);
	if (rows == NULL)
		abort();
	entries[0].key = slice_of_string("keys");
	entries[0].value = slice_of_string(options->caching_keys ? "ALL" : "NONE");
	entries[1].key = slice_of_string("rows_per_partition");
	entries[1].value = slice_of_string(rows);
	return option_put_map(arena, &map);
}

static struct slice
option_to_cell(
    const struct table_options *options, const struct option_info *info, struct arena *arena)
{
	const void *field = option_const_field(options, info);

	if ((info->flags & (OPTION_QUIET | OPTION_SPARSE)) && option_is_default(options, info))
		return slice_null;
	switch (info->kind) {
	case OPTION_TEXT:
		return table_options_copy_text(arena, *(const struct slice *)field);
	case OPTION_DOUBLE:
		return option_put_double(arena,
		    field == (const void *)&options->bloom_filter_fp_chance
			? table_options_fp_chance(options)
			: *(const double *)field);
	case OPTION_INT:
		return option_put_number(arena, (uint32_t) * (const int32_t *)field, 4);
	case OPTION_BOOLEAN:
		return option_put_number(arena, *(const bool *)field, 1);
	case OPTION_RETRY:
		return table_options_copy_text(arena, ((const struct retry_policy *)field)->text);
	case OPTION_READ_REPAIR:
		return slice_of_string(*(const bool *)field ? "BLOCKING" : "NONE");
	case OPTION_CACHING:
		return option_put_caching(arena, options);
	case OPTION_COMPACTION:
		return option_put_map(arena, &options->compaction);
	case OPTION_COMPRESSION:
		return option_put_map(arena, &options->compression);
	case OPTION_EXTENSIONS:
		return option_put_extensions(arena, options);
	}
	return slice_null;
}

static int
option_cell_order(const void *left, const void *right)
{
	const struct table_option_cell *a = left;
	const struct table_option_cell *b = right;

	return strcmp(a->column, b->column);
}

uint32_t
table_options_to_cells(const struct table_options *options, struct arena *arena,
    struct table_option_cell cells[TABLE_OPTIONS_CELLS_MAX])
{
	uint32_t count = 0;
	size_t i;

	static_assert(OPTION_COUNT + 2 <= TABLE_OPTIONS_CELLS_MAX, "room for every option");
	for (i = 0; i < OPTION_COUNT; i++) {
		cells[count].column = option_list[i].name;
		cells[count].value = option_to_cell(options, &option_list[i], arena);
		count++;
	}
	/* Gone as options, but drivers still read the columns. */
	cells[count].column = "dclocal_read_repair_chance";
	cells[count++].value = option_put_double(arena, 0.0);
	cells[count].column = "read_repair_chance";
	cells[count++].value = option_put_double(arena, 0.0);
	qsort(cells, count, sizeof(cells[0]), option_cell_order);
	return count;
}

static int
option_cell_corrupt(const struct option_info *info, struct error *err)
{
	return error_set(
	    err, ERROR_CORRUPT, "wrong bytes in column %s of a schema table", info->name);
}

static int
option_map_from_cell(const struct option_info *info, struct slice value, struct option_map *map,
    struct arena *arena, struct error *err)
{
	const struct type *text = type_native(TYPE_TEXT);
	const struct type *type = type_map(arena, text, text, false);
	struct type_iterator iterator;
	struct slice key, element;

	map->entries = NULL;
	map->count = 0;
	if (type == NULL)
		abort();
	type_iterator_init(&iterator, type, value);
	while (type_iterator_next(&iterator, &key, NULL) &&
	    type_iterator_next(&iterator, &element, NULL)) {
		if (slice_is_null(key) || slice_is_null(element))
			return option_cell_corrupt(info, err);
		option_map_put(map, table_options_copy_text(arena, key),
		    table_options_copy_text(arena, element), arena);
	}
	return iterator.is_failed ? option_cell_corrupt(info, err) : 0;
}

static int
option_extensions_from_cell(struct table_options *options, const struct option_info *info,
    struct slice value, struct arena *arena, struct error *err)
{
	if (option_map_from_cell(info, value, &options->extensions, arena, err) != 0)
		return -1;
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_info *quiet = &option_list[i];
		const struct slice *kept = (quiet->flags & OPTION_QUIET) == 0
		    ? NULL
		    : option_map_get(&options->extensions, quiet->name);

		if (kept == NULL)
			continue;
		if (kept->size != 1)
			return option_cell_corrupt(quiet, err);
		*(bool *)option_field(options, quiet) = kept->data[0] != 0;
		option_map_remove(&options->extensions, quiet->name);
	}
	return 0;
}

int
table_options_from_cell(struct table_options *options, struct slice column, struct slice value,
    struct arena *arena, struct error *err)
{
	const struct option_info *info = option_find(column);
	struct option_map map;
	void *field;
	uint64_t bits;

	if (info == NULL || slice_is_null(value))
		return 0;
	field = option_field(options, info);
	switch (info->kind) {
	case OPTION_DOUBLE:
		if (value.size != 8)
			return option_cell_corrupt(info, err);
		bits = load_u64(value.data);
		memcpy(field, &bits, sizeof(bits));
		return 0;
	case OPTION_INT:
		if (value.size != 4)
			return option_cell_corrupt(info, err);
		*(int32_t *)field = (int32_t)load_u32(value.data);
		return 0;
	case OPTION_BOOLEAN:
		if (value.size != 1)
			return option_cell_corrupt(info, err);
		*(bool *)field = value.data[0] != 0;
		return 0;
	case OPTION_TEXT:
		*(struct slice *)field = table_options_copy_text(arena, value);
		return 0;
	case OPTION_RETRY:
	case OPTION_READ_REPAIR:
		return option_set_text(options, info, value, arena, err);
	case OPTION_EXTENSIONS:
		return option_extensions_from_cell(options, info, value, arena, err);
	default:
		if (option_map_from_cell(info, value, &map, arena, err) != 0)
			return -1;
		return option_set_map(options, info, &map, arena, err);
	}
}
