/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tablestats (StatsTable, TableStatsHolder): one list of fields serves lines, JSON and YAML, and what -s sorts by.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nodetool.h"

enum stat_kind {
	STAT_COUNT,
	STAT_SIZE, /* bytes; with a unit where -H is given; a text in JSON */
	STAT_KIB, /* bytes; lines have KiB */
	STAT_REAL,
	STAT_RATIO, /* five digits; a text in JSON */
	STAT_US, /* a mean of microseconds, as milliseconds; a text in JSON */
	STAT_MEAN, /* the mean of a histogram; NaN where it is empty */
	STAT_LEVELS, /* one number a level, where the table is leveled */
	STAT_TEXT, /* only to sort by */
	STAT_SORT, /* a number, only to sort by */
	STAT_NOTHING, /* {} in JSON: collected by no one here */
};

struct stat_field {
	const char *key; /* in JSON, YAML and for -s */
	const char *label; /* NULL: not in the lines */
	enum stat_kind kind;
	const char *field, *of; /* of the node's answer; of: a member of that, or NULL */
	bool sorts;
};

/* In the order of the lines. */
static const struct stat_field stat_fields[] = {
    {"sstable_count", "SSTable count", STAT_COUNT, "sstables", NULL, true},
    {"old_sstable_count", "Old SSTable count", STAT_COUNT, "old_sstables", NULL, false},
    {"sstables_in_each_level", "SSTables in each level", STAT_LEVELS, "levels", NULL, false},
    {"sstable_bytes_in_each_level", "SSTable bytes in each level", STAT_LEVELS, "level_bytes", NULL,
	false},
    {"space_used_live", "Space used (live)", STAT_SIZE, "live_bytes", NULL, true},
    {"space_used_total", "Space used (total)", STAT_SIZE, "total_bytes", NULL, true},
    {"space_used_by_snapshots_total", "Space used by snapshots (total)", STAT_SIZE,
	"snapshot_bytes", NULL, true},
    {"off_heap_memory_used_total", "Off heap memory used (total)", STAT_SIZE, "off_heap_bytes",
	NULL, false},
    {"sstable_compression_ratio", "SSTable Compression Ratio", STAT_REAL, "compression_ratio", NULL,
	true},
    {"number_of_partitions_estimate", "Number of partitions (estimate)", STAT_COUNT, "partitions",
	NULL, true},
    {"memtable_cell_count", "Memtable cell count", STAT_COUNT, "memtable_rows", NULL, true},
    {"memtable_data_size", "Memtable data size", STAT_SIZE, "memtable_bytes", NULL, true},
    {"memtable_off_heap_memory_used", "Memtable off heap memory used", STAT_SIZE, "memtable_bytes",
	NULL, true},
    {"memtable_switch_count", "Memtable switch count", STAT_COUNT, "memtable_switches", NULL, true},
    {"speculative_retries", "Speculative retries", STAT_COUNT, "speculative_retries", NULL, false},
    {"local_read_count", "Local read count", STAT_COUNT, "reads", NULL, true},
    {"local_read_latency_ms", "Local read latency", STAT_US, "read_us", "mean", true},
    {"local_write_count", "Local write count", STAT_COUNT, "writes", NULL, true},
    {"local_write_latency_ms", "Local write latency", STAT_US, "write_us", "mean", true},
    {"pending_flushes", "Pending flushes", STAT_COUNT, "pending_flushes", NULL, true},
    {"percent_repaired", "Percent repaired", STAT_REAL, "percent_repaired", NULL, false},
    {"bytes_repaired", "Bytes repaired", STAT_KIB, "repaired_bytes", NULL, false},
    {"bytes_unrepaired", "Bytes unrepaired", STAT_KIB, "unrepaired_bytes", NULL, false},
    {"bytes_pending_repair", "Bytes pending repair", STAT_KIB, "pending_repair_bytes", NULL, false},
    {"bloom_filter_false_positives", "Bloom filter false positives", STAT_COUNT,
	"filter_false_positives", NULL, true},
    {"bloom_filter_false_ratio", "Bloom filter false ratio", STAT_RATIO, "filter_false_ratio", NULL,
	false},
    {"bloom_filter_space_used", "Bloom filter space used", STAT_SIZE, "filter_space", NULL, true},
    {"bloom_filter_off_heap_memory_used", "Bloom filter off heap memory used", STAT_SIZE,
	"filter_bytes", NULL, true},
    {"index_summary_off_heap_memory_used", "Index summary off heap memory used", STAT_SIZE,
	"summary_bytes", NULL, true},
    {"compression_metadata_off_heap_memory_used", "Compression metadata off heap memory used",
	STAT_SIZE, "compression_bytes", NULL, true},
    {"compacted_partition_minimum_bytes", "Compacted partition minimum bytes", STAT_COUNT,
	"partition_min", NULL, true},
    {"compacted_partition_maximum_bytes", "Compacted partition maximum bytes", STAT_COUNT,
	"partition_max", NULL, true},
    {"compacted_partition_mean_bytes", "Compacted partition mean bytes", STAT_COUNT,
	"partition_mean", NULL, true},
    {"average_live_cells_per_slice_last_five_minutes",
	"Average live cells per slice (last five minutes)", STAT_MEAN, "live_rows", "mean", true},
    {"maximum_live_cells_per_slice_last_five_minutes",
	"Maximum live cells per slice (last five minutes)", STAT_COUNT, "live_rows", "max", true},
    {"average_tombstones_per_slice_last_five_minutes",
	"Average tombstones per slice (last five minutes)", STAT_MEAN, "tombstones", "mean", true},
    {"maximum_tombstones_per_slice_last_five_minutes",
	"Maximum tombstones per slice (last five minutes)", STAT_COUNT, "tombstones", "max", true},
    {"dropped_mutations", "Dropped Mutations", STAT_SIZE, "dropped_mutation_bytes", NULL, false},
    {"droppable_tombstone_ratio", "Droppable tombstone ratio", STAT_RATIO, "droppable_tombstones",
	NULL, false},
    {"top_size_partitions", NULL, STAT_NOTHING, "", NULL, false},
    {"top_tombstone_partitions", NULL, STAT_NOTHING, "", NULL, false},
    {"full_name", NULL, STAT_TEXT, "keyspace", NULL, true},
    {"table_name", NULL, STAT_TEXT, "table", NULL, true},
    {"reads", NULL, STAT_SORT, "reads", NULL, true},
    {"read_latency", NULL, STAT_SORT, "read_us", "mean", true},
    {"writes", NULL, STAT_SORT, "writes", NULL, true},
    {"write_latency", NULL, STAT_SORT, "write_us", "mean", true},
};
enum { STAT_FIELDS = sizeof(stat_fields) / sizeof(stat_fields[0]) };

/* What follows from other numbers of the answer. */
static void
stat_derive(json_t *table)
{
	int64_t filter = nodetool_int(table, "filter_bytes");
	double wrong = (double)nodetool_int(table, "filter_false_positives");
	double right = (double)nodetool_int(table, "filter_true_positives");
	double repaired = (double)nodetool_int(table, "repaired_bytes");
	double all = repaired + (double)nodetool_int(table, "unrepaired_bytes") +
	    (double)nodetool_int(table, "pending_repair_bytes");

	json_object_set_new(table, "off_heap_bytes",
	    json_integer(filter + nodetool_int(table, "summary_bytes") +
		nodetool_int(table, "compression_bytes")));
	/* In the file: the count of hashes and that of words stand before them. */
	json_object_set_new(table, "filter_space", json_integer(filter == 0 ? 0 : filter + 8));
	json_object_set_new(table, "filter_false_ratio",
	    json_real(wrong + right == 0 ? 0 : wrong / (wrong + right)));
	json_object_set_new(table, "percent_repaired",
	    json_real(all == 0 ? 100 : round(repaired / all * 10000) / 100));
}

static const json_t *
stat_value(const json_t *table, const struct stat_field *field)
{
	const json_t *value = json_object_get(table, field->field);

	return field->of == NULL ? value : json_object_get(value, field->of);
}

/* NaN for the mean of nothing. */
static double
stat_number(const json_t *table, const struct stat_field *field)
{
	const json_t *histogram = json_object_get(table, field->field);

	if (field->of != NULL && strcmp(field->of, "mean") == 0 &&
	    nodetool_int(histogram, "count") == 0)
		return NAN;
	return json_number_value(stat_value(table, field));
}

/* A field as lines have it, and as a text of JSON. Good until the eighth call after. */
static const char *
stat_text(const json_t *table, const struct stat_field *field, bool is_human)
{
	static char texts[8][48];
	static unsigned next;
	char *text = texts[next++ % 8];
	double number = stat_number(table, field);

	switch (field->kind) {
	case STAT_SIZE:
		if (is_human)
			return nodetool_size((uint64_t)number);
		/* FALLTHROUGH */
	case STAT_COUNT:
		snprintf(text, 48, "%" PRId64, (int64_t)number);
		break;
	case STAT_KIB:
		snprintf(text, 48, "%.3fKiB", number / 1024);
		break;
	case STAT_RATIO:
		snprintf(text, 48, "%.5f", number);
		break;
	case STAT_US:
		if (isnan(number))
			return "NaN";
		snprintf(text, 48, "%.3f", number / 1000);
		break;
	default:
		return nodetool_double(number);
	}
	return text;
}

/* ---- Lines ------------------------------------------------------------------------------------ */

static void
stat_print_levels(const json_t *levels)
{
	json_t *each;
	size_t index;

	printf("[");
	json_array_foreach((json_t *)levels, index, each)
	    printf("%s%" JSON_INTEGER_FORMAT, index == 0 ? "" : ", ", json_integer_value(each));
	printf("]\n");
}

/* `keyspace` NULL: the table stands below its keyspace; else it is printed alone. */
static void
stat_print(const json_t *table, const char *keyspace, bool is_human)
{
	const char *indent = keyspace == NULL ? "\t\t" : "\t";

	printf("%sTable: %s%s%s\n", indent, keyspace == NULL ? "" : keyspace,
	    keyspace == NULL ? "" : ".", nodetool_text(table, "table"));
	for (int i = 0; i < STAT_FIELDS; i++) {
		const struct stat_field *field = &stat_fields[i];

		if (field->label == NULL ||
		    (field->kind == STAT_LEVELS && !nodetool_true(table, "is_leveled")))
			continue;
		printf("%s%s: ", indent, field->label);
		if (field->kind == STAT_LEVELS)
			stat_print_levels(stat_value(table, field));
		else
			printf("%s%s\n", stat_text(table, field, is_human),
			    field->kind == STAT_US ? " ms" : "");
	}
	printf("\n");
}

/* Counts and mean latencies of a keyspace's tables. */
struct stat_keyspace {
	int64_t reads, writes, flushes;
	double read_ms, write_ms; /* NaN: none */
};

/* Not every operation is timed: the mean of those that are stands for all. */
static double
stat_total_us(const json_t *table, const char *histogram, int64_t count)
{
	const json_t *us = json_object_get(table, histogram);

	return nodetool_int(us, "count") == 0 ? 0 : nodetool_real(us, "mean") * (double)count;
}

static struct stat_keyspace
stat_sum(const json_t *tables, const char *keyspace)
{
	struct stat_keyspace sum = {0};
	json_t *table;
	size_t index;

	json_array_foreach((json_t *)tables, index, table)
	{
		int64_t reads = nodetool_int(table, "reads"),
			writes = nodetool_int(table, "writes");

		if (strcmp(nodetool_text(table, "keyspace"), keyspace) != 0)
			continue;
		sum.reads += reads;
		sum.writes += writes;
		sum.flushes += nodetool_int(table, "pending_flushes");
		sum.read_ms += stat_total_us(table, "read_us", reads) / 1000;
		sum.write_ms += stat_total_us(table, "write_us", writes) / 1000;
	}
	sum.read_ms = sum.reads == 0 ? NAN : sum.read_ms / (double)sum.reads;
	sum.write_ms = sum.writes == 0 ? NAN : sum.write_ms / (double)sum.writes;
	return sum;
}

static void
stat_print_keyspace(const json_t *tables, const char *keyspace)
{
	struct stat_keyspace sum = stat_sum(tables, keyspace);

	printf("Keyspace : %s\n\tRead Count: %" PRId64 "\n\tRead Latency: %s ms\n", keyspace,
	    sum.reads, nodetool_double(sum.read_ms));
	printf("\tWrite Count: %" PRId64 "\n\tWrite Latency: %s ms\n\tPending Flushes: %" PRId64
	       "\n",
	    sum.writes, nodetool_double(sum.write_ms), sum.flushes);
}

/* ---- JSON and YAML ---------------------------------------------------------------------------- */

/* JSON has no NaN: it is a text then. */
static json_t *
stat_json_real(double value)
{
	return isnan(value) ? json_string("NaN") : json_real(value);
}

static json_t *
stat_json(const json_t *table, bool is_human)
{
	json_t *out = json_object();

	for (int i = 0; i < STAT_FIELDS; i++) {
		const struct stat_field *field = &stat_fields[i];
		json_t *value = NULL;

		switch (field->kind) {
		case STAT_TEXT:
		case STAT_SORT:
			continue;
		case STAT_COUNT:
		case STAT_KIB:
			value = json_integer((json_int_t)stat_number(table, field));
			break;
		case STAT_REAL:
		case STAT_MEAN:
			value = stat_json_real(stat_number(table, field));
			break;
		case STAT_LEVELS:
			value = nodetool_true(table, "is_leveled")
			    ? json_deep_copy(stat_value(table, field))
			    : json_array();
			break;
		case STAT_NOTHING:
			value = json_object();
			break;
		case STAT_SIZE:
		case STAT_RATIO:
		case STAT_US:
			value = json_string(stat_text(table, field, is_human));
			break;
		}
		json_object_set_new(out, field->key, value);
	}
	return out;
}

static void
stat_structured(struct nodetool *tool, const json_t *tables, const char *format)
{
	json_t *all = nodetool_keep(tool, json_object()), *table;
	size_t index;

	json_object_set_new(
	    all, "total_number_of_tables", json_integer((json_int_t)json_array_size(tables)));
	json_array_foreach((json_t *)tables, index, table)
	{
		const char *keyspace = nodetool_text(table, "keyspace");
		json_t *out = json_object_get(all, keyspace);

		if (!nodetool_table_is_named(tool, table))
			continue;
		if (out == NULL) {
			struct stat_keyspace sum = stat_sum(tables, keyspace);

			out = json_pack("{s:{}, s:I, s:o, s:o, s:I, s:o, s:o, s:I}", "tables",
			    "read_count", (json_int_t)sum.reads, "read_latency",
			    stat_json_real(sum.read_ms), "read_latency_ms",
			    stat_json_real(sum.read_ms), "write_count", (json_int_t)sum.writes,
			    "write_latency", stat_json_real(sum.write_ms), "write_latency_ms",
			    stat_json_real(sum.write_ms), "pending_flushes",
			    (json_int_t)sum.flushes);
			json_object_set_new(all, keyspace, out);
		}
		json_object_set_new(json_object_get(out, "tables"), nodetool_text(table, "table"),
		    stat_json(table, nodetool_option(tool, "-H") != NULL));
	}
	nodetool_print_structured(all, format);
}

/* ---- Sorted ----------------------------------------------------------------------------------- */

static const struct stat_field *stat_sorted_by;

static double
stat_sort_value(const json_t *table)
{
	double value = stat_number(table, stat_sorted_by);

	return isnan(value) ? 0 : value;
}

static int
stat_compare_names(const json_t *left, const json_t *right)
{
	int order = strcmp(nodetool_text(left, "keyspace"), nodetool_text(right, "keyspace"));

	return order != 0 ? order
			  : strcmp(nodetool_text(left, "table"), nodetool_text(right, "table"));
}

/* Greatest first; equals by their full names, ascending. */
static int
stat_compare(const void *a, const void *b)
{
	const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
	double x, y;

	if (stat_sorted_by->kind == STAT_TEXT) {
		int order = strcmp(nodetool_text(left, stat_sorted_by->field),
		    nodetool_text(right, stat_sorted_by->field));

		return order != 0 ? -order : -stat_compare_names(left, right);
	}
	x = stat_sort_value(left);
	y = stat_sort_value(right);
	if (x != y)
		return x < y ? 1 : -1;
	return stat_compare_names(left, right);
}

static int
stat_compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
stat_find_sort(const char *key)
{
	const char *keys[STAT_FIELDS];
	size_t count = 0, used = 0;
	char all[2048] = "";

	for (int i = 0; i < STAT_FIELDS; i++) {
		if (!stat_fields[i].sorts)
			continue;
		keys[count++] = stat_fields[i].key;
		if (strcmp(stat_fields[i].key, key) == 0)
			stat_sorted_by = &stat_fields[i];
	}
	qsort(keys, count, sizeof(keys[0]), stat_compare_keys);
	for (size_t i = 0; i < count && used < sizeof(all); i++)
		used += (size_t)snprintf(
		    all + used, sizeof(all) - used, "%s%s", i == 0 ? "" : ", ", keys[i]);
	if (stat_sorted_by == NULL)
		nodetool_refuse("argument for sort must be one of: %s", all);
}

static void
stat_sorted(struct nodetool *tool, json_t *tables, const char *key, size_t top, const char *format)
{
	json_t **sorted = calloc(json_array_size(tables) + 1, sizeof(json_t *)), *table;
	json_t *all = nodetool_keep(tool, json_object());
	bool is_human = nodetool_option(tool, "-H") != NULL;
	size_t count = 0, index;

	if (sorted == NULL)
		nodetool_fail("no memory");
	stat_find_sort(key);
	json_array_foreach(tables, index, table)
	{
		if (nodetool_table_is_named(tool, table))
			sorted[count++] = table;
	}
	qsort(sorted, count, sizeof(json_t *), stat_compare);
	if (top == 0 || top > count)
		top = count;
	json_object_set_new(
	    all, "total_number_of_tables", json_integer((json_int_t)json_array_size(tables)));
	if (format == NULL) {
		printf("Total number of tables: %zu", json_array_size(tables));
		if (nodetool_option(tool, "-t") != NULL)
			printf(" (showing top %zu by %s)", top, key);
		printf("\n----------------\n");
	}
	for (size_t i = 0; i < top; i++) {
		const char *keyspace = nodetool_text(sorted[i], "keyspace");
		char name[256];

		snprintf(name, sizeof(name), "%s.%s", keyspace, nodetool_text(sorted[i], "table"));
		if (format == NULL)
			stat_print(sorted[i], keyspace, is_human);
		else
			json_object_set_new(all, name, stat_json(sorted[i], is_human));
	}
	if (format == NULL)
		printf("----------------\n");
	else
		nodetool_print_structured(all, format);
	free(sorted);
}

static size_t
stat_top(struct nodetool *tool)
{
	const char *text = nodetool_option(tool, "-t");
	char *end;
	long top;

	if (text == NULL)
		return 0;
	if (nodetool_option(tool, "-s") == NULL)
		nodetool_refuse("cannot filter top K tables without specifying a sort key.");
	top = strtol(text, &end, 10);
	if (*end != '\0' || top <= 0)
		nodetool_refuse("argument for top must be a positive integer.");
	return (size_t)top;
}

static int
stat_run(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "tables"), *tables = json_object_get(answer, "tables");
	const char *format = nodetool_option(tool, "-F"), *sort = nodetool_option(tool, "-s");
	bool is_human = nodetool_option(tool, "-H") != NULL;
	size_t top = stat_top(tool), index;
	json_t *done = nodetool_keep(tool, json_object()), *table;

	if (format != NULL && strcmp(format, "json") != 0 && strcmp(format, "yaml") != 0)
		nodetool_refuse("arguments for -F are yaml and json only.");
	nodetool_check_tables(tool, tables);
	json_array_foreach(tables, index, table) stat_derive(table);
	if (sort != NULL) {
		stat_sorted(tool, tables, sort, top, format);
		return 0;
	}
	if (format != NULL) {
		stat_structured(tool, tables, format);
		return 0;
	}
	printf("Total number of tables: %zu\n----------------\n", json_array_size(tables));
	json_array_foreach(tables, index, table)
	{
		const char *keyspace = nodetool_text(table, "keyspace");
		json_t *other;
		size_t at;

		if (!nodetool_table_is_named(tool, table) ||
		    json_object_get(done, keyspace) != NULL)
			continue;
		json_object_set_new(done, keyspace, json_true());
		stat_print_keyspace(tables, keyspace);
		json_array_foreach(tables, at, other)
		{
			if (strcmp(nodetool_text(other, "keyspace"), keyspace) == 0 &&
			    nodetool_table_is_named(tool, other))
				stat_print(other, NULL, is_human);
		}
		printf("----------------\n");
	}
	return 0;
}

static const struct nodetool_option stat_options[] = {
    {"-F", "--format", "format", "json or yaml instead of lines"},
    {"-H", "--human-readable", NULL, "Sizes with units"},
    {"-i", NULL, NULL, "All but the named tables"},
    {"-s", "--sort", "sort_key", "Tables by this number, the greatest first"},
    {"-t", "--top", "top", "Only so many of them"}, {NULL, NULL, NULL, NULL}};

const struct nodetool_command nodetool_tablestats_commands[] = {
    {"tablestats", "Statistics of tables", "[--] [<keyspace.table>...]", 0, NODETOOL_WORDS_MAX - 1,
	stat_options, stat_run, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
