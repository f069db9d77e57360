/* SPDX-License-Identifier: Apache-2.0 */
/* The options that have a grammar of their own: retry policies, caching, compaction, compression. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include "cql/table_options.h"
#include "cql/table_options_internal.h"
#include "cql/value.h"

#define TEXT_ARGS(slice) (int)(slice).size, (const char *)(slice).data

static struct slice
options_text(struct arena *arena, const char *text)
{
	char *copy = arena_strdup(arena, text);

	if (copy == NULL)
		abort();
	return slice_of_string(copy);
}

/* ---- speculative_retry --------------------------------------------------------------------- */

static struct slice
retry_trim(struct slice text)
{
	while (text.size > 0 && isspace(text.data[0])) {
		text.data++;
		text.size--;
	}
	while (text.size > 0 && isspace(text.data[text.size - 1]))
		text.size--;
	return text;
}

/* "99.5" of "99.5p", "50" of "50ms": digits and one point in front of one of the units. */
static bool
retry_number(struct slice text, const char *unit, double *out)
{
	size_t length = strlen(unit), i;
	struct slice number = slice_of(text.data, text.size - length);

	if (text.size <= length || !option_is_word(slice_of(text.data + number.size, length), unit))
		return false;
	for (i = 0; i < number.size; i++) {
		if (!isdigit(number.data[i]) && number.data[i] != '.')
			return false;
	}
	return option_to_double(number, out);
}

static bool
retry_is_percentile(struct slice text, double *out)
{
	return retry_number(text, "p", out) || retry_number(text, "percentile", out);
}

static int
retry_fail(struct slice text, struct error *err)
{
	return error_set(err, ERROR_CONFIG, "Invalid value %.*s for option 'speculative_retry'",
	    TEXT_ARGS(text));
}

static int
retry_check_percentile(struct slice text, double percentile, struct error *err)
{
	if (percentile > 0 && percentile < 100)
		return 0;
	return error_set(err, ERROR_CONFIG,
	    "Invalid value %.*s for PERCENTILE option 'speculative_retry': must be between (0.0 "
	    "and 100.0)",
	    TEXT_ARGS(text));
}

/* "99.5p" with at most four decimals and no zeros at the end. */
static void
retry_print_percentile(double percentile, char *out, size_t size)
{
	size_t length;

	snprintf(out, size, "%.4f", percentile);
	length = strlen(out);
	while (out[length - 1] == '0')
		length--;
	if (out[length - 1] == '.')
		length--;
	snprintf(out + length, size - length, "p");
}

/* MIN(a,b) and MAX(a,b) of one percentile and one fixed time. */
static int
retry_parse_hybrid(
    struct slice text, struct retry_policy *out, struct arena *arena, struct error *err)
{
	struct slice inner = slice_of(text.data + 4, text.size - 5);
	const uint8_t *comma = memchr(inner.data, ',', inner.size);
	struct slice first, second;
	bool a, b;
	char percentile[32], all[96];
	double value[2];

	if (comma == NULL || text.data[text.size - 1] != ')')
		return retry_fail(text, err);
	first = retry_trim(slice_of(inner.data, (size_t)(comma - inner.data)));
	second = retry_trim(slice_of(comma + 1, (size_t)(inner.data + inner.size - comma - 1)));
	a = retry_is_percentile(first, &value[0]);
	b = retry_is_percentile(second, &value[1]);
	if ((!a && !retry_number(first, "ms", &value[0])) ||
	    (!b && !retry_number(second, "ms", &value[1])))
		return retry_fail(text, err);
	if (a == b)
		return error_set(err, ERROR_CONFIG,
		    "Invalid value %.*s for option 'speculative_retry': MIN()/MAX() arguments "
		    "should be of different types, but both are of type %s",
		    TEXT_ARGS(text), a ? "PERCENTILE" : "FIXED");
	out->kind = option_is_word(slice_of(text.data, 3), "MIN") ? RETRY_MIN : RETRY_MAX;
	out->percentile = value[a ? 0 : 1];
	out->fixed_ms = (double)(int32_t)value[a ? 1 : 0];
	if (retry_check_percentile(a ? first : second, out->percentile, err) != 0)
		return -1;
	retry_print_percentile(out->percentile, percentile, sizeof(percentile));
	snprintf(all, sizeof(all), "%s(%s,%dms)", out->kind == RETRY_MIN ? "MIN" : "MAX",
	    percentile, (int)out->fixed_ms);
	out->text = options_text(arena, all);
	return 0;
}

int
table_options_parse_retry(
    struct slice text, struct retry_policy *out, struct arena *arena, struct error *err)
{
	char printed[48];

	memset(out, 0, sizeof(*out));
	if (text.size > 5 &&
	    (option_is_word(slice_of(text.data, 4), "MIN(") ||
		option_is_word(slice_of(text.data, 4), "MAX(")))
		return retry_parse_hybrid(text, out, arena, err);
	if (option_is_word(text, "ALWAYS")) {
		out->kind = RETRY_ALWAYS;
		snprintf(printed, sizeof(printed), "ALWAYS");
	} else if (option_is_word(text, "NEVER") || option_is_word(text, "NONE")) {
		out->kind = RETRY_NEVER;
		snprintf(printed, sizeof(printed), "NEVER");
	} else if (retry_is_percentile(text, &out->percentile)) {
		out->kind = RETRY_PERCENTILE;
		if (retry_check_percentile(text, out->percentile, err) != 0)
			return -1;
		retry_print_percentile(out->percentile, printed, sizeof(printed));
	} else if (retry_number(text, "ms", &out->fixed_ms) && out->fixed_ms <= INT32_MAX) {
		out->kind = RETRY_FIXED;
		out->fixed_ms = (double)(int32_t)out->fixed_ms;
		snprintf(printed, sizeof(printed), "%dms", (int)out->fixed_ms);
	} else {
		return retry_fail(text, err);
	}
	out->text = options_text(arena, printed);
	return 0;
}

/* ---- caching ------------------------------------------------------------------------------- */

static bool
caching_parse_rows(struct slice text, int32_t *rows)
{
	if (option_is_word(text, "ALL"))
		*rows = CACHING_ROWS_ALL;
	else if (option_is_word(text, "NONE"))
		*rows = CACHING_ROWS_NONE;
	else if (!option_to_int(text, rows) || *rows < 0)
		return false;
	return true;
}

int
table_options_parse_caching(
    struct table_options *options, const struct option_map *map, struct error *err)
{
	uint32_t i;

	/* What is not named is off, not the default. */
	options->caching_keys = false;
	options->caching_rows = CACHING_ROWS_NONE;
	for (i = 0; i < map->count; i++) {
		struct slice key = map->entries[i].key;
		struct slice value = map->entries[i].value;

		if (slice_equal_string(key, "keys")) {
			options->caching_keys = option_is_word(value, "ALL");
			if (!options->caching_keys && !option_is_word(value, "NONE"))
				return error_set(err, ERROR_CONFIG,
				    "Invalid value '%.*s' for caching sub-option 'keys': only "
				    "'ALL' and 'NONE' are allowed",
				    TEXT_ARGS(value));
		} else if (slice_equal_string(key, "rows_per_partition")) {
			if (!caching_parse_rows(value, &options->caching_rows))
				return error_set(err, ERROR_CONFIG,
				    "Invalid value '%.*s' for caching sub-option "
				    "'rows_per_partition': only 'ALL', 'NONE', and integer values "
				    "are allowed",
				    TEXT_ARGS(value));
		} else {
			return error_set(err, ERROR_CONFIG,
			    "Invalid caching sub-options [%.*s]: only 'keys' and "
			    "'rows_per_partition' are allowed",
			    TEXT_ARGS(key));
		}
	}
	return 0;
}

/* ---- compaction ---------------------------------------------------------------------------- */

enum sub_option_kind {
	SUB_ANY, /* not looked at */
	SUB_BOOLEAN, /* 'true' or 'false' */
	SUB_POSITIVE, /* integer > 0 */
	SUB_NOT_NEGATIVE, /* integer >= 0 */
	SUB_RATIO, /* number > 0 */
	SUB_NUMBER, /* any number */
	SUB_WINDOW_SIZE, /* integer >= 1, its own words */
	SUB_WINDOW_UNIT, /* MINUTES HOURS DAYS */
	SUB_RESOLUTION, /* SECONDS MILLISECONDS MICROSECONDS NANOSECONDS */
	SUB_OVERLAPPING, /* NONE ROW CELL */
	SUB_UNSAFE, /* unsafe_aggressive_sstable_expiration */
	SUB_LOG_ALL, /* 'true' or 'false', its own words */
};

enum {
	OF_SIZE_TIERED = 1 << COMPACTION_SIZE_TIERED,
	OF_LEVELED = 1 << COMPACTION_LEVELED,
	OF_TIME_WINDOW = 1 << COMPACTION_TIME_WINDOW,
	OF_DATE_TIERED = 1 << COMPACTION_DATE_TIERED,
	OF_TIERED = OF_SIZE_TIERED | OF_LEVELED | OF_TIME_WINDOW,
	OF_WINDOWED = OF_TIME_WINDOW | OF_DATE_TIERED,
	OF_ALL = OF_TIERED | OF_DATE_TIERED,
};

struct sub_option {
	const char *name;
	enum sub_option_kind kind;
	int strategies;
};

/* LeveledCompactionStrategy takes the size-tiered ones too: its level 0 is size-tiered. */
static const struct sub_option compaction_sub_options[] = {
    {"tombstone_threshold", SUB_RATIO, OF_ALL},
    {"tombstone_compaction_interval", SUB_POSITIVE, OF_ALL},
    {"unchecked_tombstone_compaction", SUB_BOOLEAN, OF_ALL},
    {"only_purge_repaired_tombstones", SUB_ANY, OF_ALL},
    {"log_all", SUB_LOG_ALL, OF_ALL},
    {"provide_overlapping_tombstones", SUB_OVERLAPPING, OF_ALL},
    {"min_sstable_size", SUB_NOT_NEGATIVE, OF_TIERED},
    {"bucket_low", SUB_NUMBER, OF_TIERED},
    {"bucket_high", SUB_NUMBER, OF_TIERED},
    {"sstable_size_in_mb", SUB_POSITIVE, OF_LEVELED},
    {"fanout_size", SUB_POSITIVE, OF_LEVELED},
    {"single_sstable_uplevel", SUB_ANY, OF_LEVELED},
    {"compaction_window_unit", SUB_WINDOW_UNIT, OF_TIME_WINDOW},
    {"compaction_window_size", SUB_WINDOW_SIZE, OF_TIME_WINDOW},
    {"timestamp_resolution", SUB_RESOLUTION, OF_WINDOWED},
    {"expired_sstable_check_frequency_seconds", SUB_NOT_NEGATIVE, OF_TIME_WINDOW},
    {"unsafe_aggressive_sstable_expiration", SUB_UNSAFE, OF_TIME_WINDOW},
    {"base_time_seconds", SUB_POSITIVE, OF_DATE_TIERED},
    {"max_sstable_age_days", SUB_NUMBER, OF_DATE_TIERED},
    {"max_window_size_seconds", SUB_POSITIVE, OF_DATE_TIERED},
};

static const char *const compaction_classes[] = {
    [COMPACTION_SIZE_TIERED] = "SizeTieredCompactionStrategy",
    [COMPACTION_LEVELED] = "LeveledCompactionStrategy",
    [COMPACTION_TIME_WINDOW] = "TimeWindowCompactionStrategy",
    [COMPACTION_DATE_TIERED] = "DateTieredCompactionStrategy",
};

enum { COMPACTION_STRATEGIES = sizeof(compaction_classes) / sizeof(compaction_classes[0]) };

/* The name without the package when it is that package; else as it is. */
static struct slice
options_simple_class(struct slice name, const char *package)
{
	size_t length = strlen(package);

	if (name.size > length && memcmp(name.data, package, length) == 0)
		return slice_of(name.data + length, name.size - length);
	return name;
}

static int
sub_option_fail_range(const char *name, const char *relation, const char *value, struct error *err)
{
	return error_set(err, ERROR_CONFIG, "%s must %s, but was %s", name, relation, value);
}

static bool
options_is_in(struct slice text, const char *const *words)
{
	for (; *words != NULL; words++) {
		if (option_is_word(text, *words))
			return true;
	}
	return false;
}

static int
sub_option_check_integer(const struct sub_option *sub, struct slice value,
    enum compaction_strategy strategy, struct error *err)
{
	char text[16];
	int32_t number;

	if (!option_to_int(value, &number))
		return error_set(err, ERROR_CONFIG, "%.*s is not a parsable int (base10) for %s",
		    TEXT_ARGS(value), sub->name);
	snprintf(text, sizeof(text), "%d", number);
	if (sub->kind == SUB_WINDOW_SIZE && number < 1)
		return error_set(
		    err, ERROR_CONFIG, "%s must be greater than 1 for %s", text, sub->name);
	if (sub->kind == SUB_POSITIVE && number < 1)
		return sub_option_fail_range(sub->name,
		    strategy == COMPACTION_LEVELED && strncmp(sub->name, "tombstone", 9) != 0
			? "be larger than 0"
			: "be greater than 0",
		    text, err);
	if (sub->kind == SUB_NOT_NEGATIVE && number < 0) {
		if (strcmp(sub->name, "min_sstable_size") == 0)
			return error_set(
			    err, ERROR_CONFIG, "%s must be non negative: %s", sub->name, text);
		return sub_option_fail_range(sub->name, "not be negative", text, err);
	}
	return 0;
}

static int
sub_option_check_word(const struct sub_option *sub, struct slice value, struct error *err)
{
	static const char *const units[] = {"MINUTES", "HOURS", "DAYS", NULL};
	static const char *const resolutions[] = {
	    "SECONDS", "MILLISECONDS", "MICROSECONDS", "NANOSECONDS", NULL};
	const char *const *words = sub->kind == SUB_WINDOW_UNIT ? units : resolutions;
	size_t i;

	/* Case matters here, unlike elsewhere. */
	for (i = 0; words[i] != NULL; i++) {
		if (slice_equal_string(value, words[i]))
			return 0;
	}
	return error_set(
	    err, ERROR_CONFIG, "%.*s is not valid for %s", TEXT_ARGS(value), sub->name);
}

static int
sub_option_check(const struct sub_option *sub, struct slice value,
    enum compaction_strategy strategy, struct error *err)
{
	static const char *const booleans[] = {"true", "false", NULL};
	static const char *const overlapping[] = {"NONE", "ROW", "CELL", NULL};
	char upper[32];
	double number;
	size_t i;

	switch (sub->kind) {
	case SUB_ANY:
		return 0;
	case SUB_BOOLEAN:
		if (!options_is_in(value, booleans))
			return error_set(err, ERROR_CONFIG,
			    "'%s' should be either 'true' or 'false', not '%.*s'", sub->name,
			    TEXT_ARGS(value));
		return 0;
	case SUB_LOG_ALL:
		if (!options_is_in(value, booleans))
			return error_set(err, ERROR_CONFIG,
			    "'%s' should either be 'true' or 'false', not %.*s", sub->name,
			    TEXT_ARGS(value));
		return 0;
	case SUB_UNSAFE:
		if (!options_is_in(value, booleans))
			return error_set(err, ERROR_CONFIG, "%s is not 'true' or 'false' (%.*s)",
			    sub->name, TEXT_ARGS(value));
		if (option_is_word(value, "true"))
			return error_set(
			    err, ERROR_CONFIG, "%s is requested but not allowed", sub->name);
		return 0;
	case SUB_POSITIVE:
	case SUB_NOT_NEGATIVE:
	case SUB_WINDOW_SIZE:
		return sub_option_check_integer(sub, value, strategy, err);
	case SUB_RATIO:
		if (!option_to_double(value, &number))
			return error_set(err, ERROR_CONFIG,
			    "%.*s is not a parsable int (base10) for %s", TEXT_ARGS(value),
			    sub->name);
		if (number < 0)
			return error_set(err, ERROR_CONFIG, "%s must be greater than 0, but was %f",
			    sub->name, number);
		return 0;
	case SUB_NUMBER:
		if (!option_to_double(value, &number))
			return error_set(err, ERROR_CONFIG, "%.*s is not a parsable float for %s",
			    TEXT_ARGS(value), sub->name);
		return 0;
	case SUB_WINDOW_UNIT:
	case SUB_RESOLUTION:
		return sub_option_check_word(sub, value, err);
	case SUB_OVERLAPPING:
		if (options_is_in(value, overlapping))
			return 0;
		for (i = 0; i < value.size && i + 1 < sizeof(upper); i++)
			upper[i] = (char)toupper(value.data[i]);
		upper[i] = '\0';
		return error_set(err, ERROR_CONFIG,
		    "Invalid value %s for 'provide_overlapping_tombstones' compaction sub-option - "
		    "must be one of the following [NONE, ROW, CELL].",
		    upper);
	}
	return 0;
}

static const struct sub_option *
sub_option_find(struct slice name, enum compaction_strategy strategy)
{
	size_t i;

	for (i = 0; i < sizeof(compaction_sub_options) / sizeof(compaction_sub_options[0]); i++) {
		if ((compaction_sub_options[i].strategies & (1 << strategy)) &&
		    slice_equal_string(name, compaction_sub_options[i].name))
			return &compaction_sub_options[i];
	}
	return NULL;
}

static int
compaction_find_strategy(
    const struct option_map *map, enum compaction_strategy *out, struct error *err)
{
	const struct slice *name = option_map_get(map, "class");
	struct slice simple;
	int i;

	if (name == NULL)
		return error_set(
		    err, ERROR_CONFIG, "Missing sub-option 'class' for the 'compaction' option");
	simple = options_simple_class(*name, COMPACTION_PACKAGE);
	for (i = 0; i < COMPACTION_STRATEGIES; i++) {
		if (slice_equal_string(simple, compaction_classes[i])) {
			*out = (enum compaction_strategy)i;
			return 0;
		}
	}
	return error_set(err, ERROR_CONFIG, "Unable to find compaction strategy class '%s%.*s'",
	    memchr(name->data, '.', name->size) != NULL ? "" : COMPACTION_PACKAGE,
	    TEXT_ARGS(*name));
}

static int
compaction_parse_threshold(
    const struct option_map *map, const char *name, int32_t *out, struct error *err)
{
	const struct slice *value = option_map_get(map, name);

	if (value != NULL && !option_to_int(*value, out))
		return error_set(err, ERROR_CONFIG,
		    "Invalid value %.*s for '%s' compaction sub-option - must be an integer",
		    TEXT_ARGS(*value), name);
	return 0;
}

static int
compaction_parse_thresholds(
    struct table_options *options, const struct option_map *map, struct error *err)
{
	options->min_threshold = 4;
	options->max_threshold = 32;
	if (compaction_parse_threshold(map, "min_threshold", &options->min_threshold, err) != 0 ||
	    compaction_parse_threshold(map, "max_threshold", &options->max_threshold, err) != 0)
		return -1;
	if (options->min_threshold == 0 || options->max_threshold == 0)
		return error_set(err, ERROR_CONFIG,
		    "Disabling compaction by setting compaction thresholds to 0 has been removed, "
		    "set the compaction option 'enabled' to false instead.");
	if (options->min_threshold <= 1)
		return error_set(err, ERROR_CONFIG,
		    "Min compaction threshold cannot be less than 2 (got %d)",
		    options->min_threshold);
	if (options->min_threshold > options->max_threshold)
		return error_set(err, ERROR_CONFIG,
		    "Min compaction threshold (got %d) cannot be greater than max compaction "
		    "threshold (got %d)",
		    options->min_threshold, options->max_threshold);
	return 0;
}

static int
compaction_check_buckets(const struct option_map *map, struct error *err)
{
	const struct slice *low = option_map_get(map, "bucket_low");
	const struct slice *high = option_map_get(map, "bucket_high");
	double low_value = 0.5, high_value = 1.5;
	struct buffer text;

	if (low != NULL)
		option_to_double(*low, &low_value);
	if (high != NULL)
		option_to_double(*high, &high_value);
	if (high_value > low_value)
		return 0;
	buffer_init(&text);
	buffer_put_string(&text, "bucket_high value (");
	value_print_double(high_value, &text);
	buffer_put_string(&text, ") is less than or equal to the bucket_low value (");
	value_print_double(low_value, &text);
	buffer_put_string(&text, ")");
	error_set(err, ERROR_CONFIG, "%.*s", (int)text.size, (const char *)text.data);
	buffer_fini(&text);
	return -1;
}

/* Every sub-option known and right; what is unknown is named together. */
static int
compaction_check(const struct option_map *map, enum compaction_strategy strategy, struct error *err)
{
	static const char *const common[] = {
	    "class", "enabled", "min_threshold", "max_threshold", NULL};
	char unknown[256] = "";
	uint32_t i;

	for (i = 0; i < map->count; i++) {
		struct slice key = map->entries[i].key;
		const struct sub_option *sub = sub_option_find(key, strategy);
		size_t used = strlen(unknown);

		if (sub != NULL) {
			if (sub_option_check(sub, map->entries[i].value, strategy, err) != 0)
				return -1;
			continue;
		}
		if (options_is_in(key, common))
			continue;
		snprintf(unknown + used, sizeof(unknown) - used, "%s%.*s", used > 0 ? ", " : "",
		    TEXT_ARGS(key));
	}
	if (unknown[0] != '\0')
		return error_set(err, ERROR_CONFIG,
		    "Properties specified [%s] are not understood by %s", unknown,
		    compaction_classes[strategy]);
	if ((OF_TIERED & (1 << strategy)) != 0)
		return compaction_check_buckets(map, err);
	return 0;
}

static int
compaction_parse_enabled(
    struct table_options *options, const struct option_map *map, struct error *err)
{
	const struct slice *enabled = option_map_get(map, "enabled");

	options->is_compaction_enabled = enabled == NULL || !option_is_word(*enabled, "false");
	if (enabled != NULL && options->is_compaction_enabled && !option_is_word(*enabled, "true"))
		return error_set(err, ERROR_CONFIG,
		    "enabled should either be 'true' or 'false', not %.*s", TEXT_ARGS(*enabled));
	return 0;
}

int
table_options_parse_compaction(struct table_options *options, const struct option_map *map,
    struct arena *arena, struct error *err)
{
	char text[16];

	if (compaction_find_strategy(map, &options->strategy, err) != 0 ||
	    compaction_check(map, options->strategy, err) != 0 ||
	    compaction_parse_thresholds(options, map, err) != 0 ||
	    compaction_parse_enabled(options, map, err) != 0)
		return -1;
	options->compaction = option_map_copy(arena, map);
	option_map_put(&options->compaction, slice_of_string("class"),
	    slice_of_string(arena_printf(
		arena, COMPACTION_PACKAGE "%s", compaction_classes[options->strategy])),
	    arena);
	snprintf(text, sizeof(text), "%d", options->min_threshold);
	option_map_put(&options->compaction, slice_of_string("min_threshold"),
	    options_text(arena, text), arena);
	snprintf(text, sizeof(text), "%d", options->max_threshold);
	option_map_put(&options->compaction, slice_of_string("max_threshold"),
	    options_text(arena, text), arena);
	option_map_sort(&options->compaction);
	return 0;
}

/* ---- compression --------------------------------------------------------------------------- */

static const char *const compressor_classes[] = {
    [COMPRESSOR_LZ4] = "LZ4Compressor",
    [COMPRESSOR_SNAPPY] = "SnappyCompressor",
    [COMPRESSOR_DEFLATE] = "DeflateCompressor",
    [COMPRESSOR_ZSTD] = "ZstdCompressor",
    [COMPRESSOR_NOOP] = "NoopCompressor",
};

static void
compression_disable(struct table_options *options, struct arena *arena)
{
	options->compressor = COMPRESSOR_NONE;
	options->compression.entries = NULL;
	options->compression.count = 0;
	option_map_put(
	    &options->compression, slice_of_string("enabled"), slice_of_string("false"), arena);
}

static int
compression_parse_class(struct table_options *options, struct slice name, struct error *err)
{
	struct slice simple = options_simple_class(name, COMPRESS_PACKAGE);
	int i;

	for (i = COMPRESSOR_LZ4; i <= COMPRESSOR_NOOP; i++) {
		if (slice_equal_string(simple, compressor_classes[i])) {
			options->compressor = (enum compressor)i;
			return 0;
		}
	}
	return error_set(err, ERROR_CONFIG, "Could not create Compression for type %s%.*s",
	    memchr(name.data, '.', name.size) != NULL ? "" : COMPRESS_PACKAGE, TEXT_ARGS(name));
}

static int
compression_parse_chunk(
    struct table_options *options, struct slice text, const char *name, struct error *err)
{
	int32_t kb;

	if (!option_to_int(text, &kb))
		return error_set(err, ERROR_CONFIG, "Invalid value for %s", name);
	if (kb > INT32_MAX / 1024)
		return error_set(err, ERROR_CONFIG, "Value of %s is too large (%d)", name, kb);
	if (kb <= 0)
		return error_set(err, ERROR_CONFIG, "Invalid negative or null chunk_length_in_kb");
	if ((kb & (kb - 1)) != 0)
		return error_set(err, ERROR_CONFIG, "chunk_length_in_kb must be a power of 2");
	options->chunk_length = kb * 1024;
	return 0;
}

static int
compression_parse_lz4(struct table_options *options, struct slice key, struct slice value,
    bool *is_known, struct error *err)
{
	if (slice_equal_string(key, "lz4_compressor_type")) {
		*is_known = true;
		options->is_lz4_high_compressor = slice_equal_string(value, "high");
		if (!options->is_lz4_high_compressor && !slice_equal_string(value, "fast"))
			return error_set(err, ERROR_CONFIG,
			    "Invalid compressor type '%.*s' specified for LZ4 parameter "
			    "'lz4_compressor_type'. Valid options are [high, fast].",
			    TEXT_ARGS(value));
	} else if (slice_equal_string(key, "lz4_high_compressor_level")) {
		*is_known = true;
		if (!option_to_int(value, &options->lz4_high_level) ||
		    options->lz4_high_level < 1 || options->lz4_high_level > 17)
			return error_set(err, ERROR_CONFIG,
			    "Invalid value [%.*s] for parameter 'lz4_high_compressor_level'. Value "
			    "must be between 1 and 17.",
			    TEXT_ARGS(value));
	}
	return 0;
}

enum { ZSTD_LEVEL_MIN = -131072, ZSTD_LEVEL_MAX = 22 };

/* What only the chosen compressor knows. */
static int
compression_parse_other(
    struct table_options *options, const struct option_entry *entry, struct error *err)
{
	bool is_known = false;

	if (options->compressor == COMPRESSOR_LZ4 &&
	    compression_parse_lz4(options, entry->key, entry->value, &is_known, err) != 0)
		return -1;
	if (options->compressor == COMPRESSOR_ZSTD &&
	    slice_equal_string(entry->key, "compression_level")) {
		is_known = true;
		if (!option_to_int(entry->value, &options->compressor_level) ||
		    options->compressor_level < ZSTD_LEVEL_MIN ||
		    options->compressor_level > ZSTD_LEVEL_MAX)
			return error_set(err, ERROR_CONFIG,
			    "ZstdCompressor.create() threw an error: "
			    "java.lang.IllegalArgumentException compression_level=%.*s is invalid",
			    TEXT_ARGS(entry->value));
	}
	if (!is_known)
		return error_set(
		    err, ERROR_CONFIG, "Unknown compression options %.*s", TEXT_ARGS(entry->key));
	return 0;
}

static int
compression_parse_ratio(struct table_options *options, struct slice text, struct error *err)
{
	if (!option_to_double(text, &options->min_compress_ratio))
		return error_set(err, ERROR_CONFIG, "Invalid value for min_compress_ratio");
	if (options->min_compress_ratio != 0 && options->min_compress_ratio < 1)
		return error_set(err, ERROR_CONFIG,
		    "min_compress_ratio can either be 0 or greater than or equal to 1");
	return 0;
}

/* Two names for one thing: `old` only where `name` is not used. */
static int
compression_pick(const struct option_map *map, const char *name, const char *old, const char *what,
    const struct slice **out, struct error *err)
{
	const struct slice *value = option_map_get(map, name);
	const struct slice *old_value = option_map_get(map, old);

	if (value != NULL && old_value != NULL)
		return error_set(err, ERROR_CONFIG,
		    "The '%s' option must not be used if the %s is already specified by the '%s' "
		    "option",
		    old, what, name);
	*out = value != NULL ? value : old_value;
	return 0;
}

static int
compression_parse_all(struct table_options *options, const struct option_map *map,
    struct option_map *rest, struct arena *arena, struct error *err)
{
	static const char *const known[] = {"enabled", "class", "sstable_compression",
	    "chunk_length_in_kb", "chunk_length_kb", "min_compress_ratio", "crc_check_chance",
	    NULL};
	const struct slice *chunk, *ratio, *chance;
	uint32_t i;

	if (compression_pick(
		map, "chunk_length_in_kb", "chunk_length_kb", "chunk length", &chunk, err) != 0)
		return -1;
	if (chunk != NULL &&
	    compression_parse_chunk(options, *chunk,
		option_map_get(map, "chunk_length_in_kb") != NULL ? "chunk_length_in_kb"
								  : "chunk_length_kb",
		err) != 0)
		return -1;
	ratio = option_map_get(map, "min_compress_ratio");
	if (ratio != NULL && compression_parse_ratio(options, *ratio, err) != 0)
		return -1;
	chance = option_map_get(map, "crc_check_chance");
	if (chance != NULL && !option_to_double(*chance, &options->crc_check_chance))
		return error_set(err, ERROR_CONFIG, "crc_check_chance should be a double");
	for (i = 0; i < map->count; i++) {
		if (options_is_in(map->entries[i].key, known))
			continue;
		if (compression_parse_other(options, &map->entries[i], err) != 0)
			return -1;
		option_map_put(rest, map->entries[i].key, map->entries[i].value, arena);
	}
	return 0;
}

int
table_options_parse_compression(struct table_options *options, const struct option_map *map,
    struct arena *arena, struct error *err)
{
	const struct slice *enabled = option_map_get(map, "enabled");
	const struct slice *name;
	struct option_map rest = {NULL, 0};
	char text[16];

	options->chunk_length = 16 * 1024;
	options->min_compress_ratio = 0;
	options->compressor_level = 3;
	options->is_lz4_high_compressor = false;
	options->lz4_high_level = 9;
	if (enabled != NULL && !option_is_word(*enabled, "true") && map->count > 1)
		return error_set(err, ERROR_CONFIG,
		    "If the 'enabled' option is set to false no other options must be specified");
	if (map->count == 0 || (enabled != NULL && !option_is_word(*enabled, "true"))) {
		compression_disable(options, arena);
		return 0;
	}
	if (compression_pick(
		map, "class", "sstable_compression", "compression algorithm", &name, err) != 0)
		return -1;
	if (name == NULL)
		return error_set(
		    err, ERROR_CONFIG, "Missing sub-option 'class' for the 'compression' option.");
	if (name->size == 0 && option_map_get(map, "class") != NULL)
		return error_set(err, ERROR_CONFIG,
		    "The 'class' option must not be empty. To disable compression use 'enabled' : "
		    "false");
	if (name->size == 0) {
		compression_disable(options, arena);
		return 0;
	}
	if (compression_parse_class(options, *name, err) != 0 ||
	    compression_parse_all(options, map, &rest, arena, err) != 0)
		return -1;
	options->compression = option_map_copy(arena, &rest);
	option_map_put(&options->compression, slice_of_string("class"),
	    slice_of_string(arena_printf(
		arena, COMPRESS_PACKAGE "%s", compressor_classes[options->compressor])),
	    arena);
	snprintf(text, sizeof(text), "%d", options->chunk_length / 1024);
	option_map_put(&options->compression, slice_of_string("chunk_length_in_kb"),
	    options_text(arena, text), arena);
	if (options->min_compress_ratio != 0) {
		struct buffer ratio;

		buffer_init(&ratio);
		value_print_double(options->min_compress_ratio, &ratio);
		buffer_put_u8(&ratio, 0);
		option_map_put(&options->compression, slice_of_string("min_compress_ratio"),
		    options_text(arena, ratio.is_failed ? "" : (const char *)ratio.data), arena);
		buffer_fini(&ratio);
	}
	option_map_sort(&options->compression);
	return 0;
}
