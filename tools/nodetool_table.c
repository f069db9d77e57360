/* SPDX-License-Identifier: Apache-2.0 */
/* tablestats, and look-ups in tables. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nodetool.h"

static const char *
table_number(int64_t value, bool is_human)
{
	static char texts[8][32];
	static unsigned next;
	char *text;

	if (is_human)
		return nodetool_size((uint64_t)value);
	text = texts[next++ % 8];
	snprintf(text, 32, "%" PRId64, value);
	return text;
}

/* Milliseconds of a mean in µs, as Java prints doubles. */
static const char *
table_ms(const json_t *histogram)
{
	static char texts[4][40];
	static unsigned next;
	char *text = texts[next++ % 4];

	if (nodetool_int(histogram, "count") == 0)
		return "NaN";
	snprintf(text, 40, "%.3f", nodetool_real(histogram, "mean") / 1000);
	return text;
}

/* The mean of what a slice met, as Java prints doubles. */
static const char *
table_per_slice(const json_t *histogram)
{
	static char texts[2][40];
	static unsigned next;
	char *text = texts[next++ % 2];

	if (nodetool_int(histogram, "count") == 0)
		return "NaN";
	snprintf(text, 40, "%.1f", nodetool_real(histogram, "mean"));
	return text;
}

/* What stands before each line of a table. */
static const char *table_indent = "\t\t";

/* printf, with table_indent instead of two tabs at the beginning of each line. */
static void __attribute__((format(printf, 1, 2))) table_line(const char *format, ...)
{
	char text[512], *rest = text, *line;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (strncmp(line, "\t\t", 2) == 0)
			printf("%s%s", table_indent, line + 2);
		if (rest != NULL)
			printf("\n");
	}
}

static void
table_print_space(const json_t *table, bool is_human)
{
	json_t *levels = json_object_get(table, "levels");
	int64_t off_heap = nodetool_int(table, "filter_bytes") +
	    nodetool_int(table, "summary_bytes") + nodetool_int(table, "compression_bytes");
	size_t used = 0;
	double ratio = nodetool_real(table, "compression_ratio");

	for (size_t i = 0; i < json_array_size(levels); i++)
		if (json_integer_value(json_array_get(levels, i)) > 0)
			used = i + 1;
	table_line("\t\tSSTable count: %" PRId64 "\n\t\tOld SSTable count: 0\n",
	    nodetool_int(table, "sstables"));
	if (used > 1) {
		printf("%sSSTables in each level: [", table_indent);
		for (size_t i = 0; i < json_array_size(levels); i++)
			printf("%s%" JSON_INTEGER_FORMAT, i == 0 ? "" : ", ",
			    json_integer_value(json_array_get(levels, i)));
		printf("]\n");
	}
	table_line("\t\tSpace used (live): %s\n",
	    table_number(nodetool_int(table, "live_bytes"), is_human));
	table_line("\t\tSpace used (total): %s\n",
	    table_number(nodetool_int(table, "total_bytes"), is_human));
	table_line("\t\tSpace used by snapshots (total): %s\n",
	    table_number(nodetool_int(table, "snapshot_bytes"), is_human));
	table_line("\t\tOff heap memory used (total): %s\n", table_number(off_heap, is_human));
	if (ratio < 0)
		table_line("\t\tSSTable Compression Ratio: -1.0\n");
	else
		table_line("\t\tSSTable Compression Ratio: %.5f\n", ratio);
	table_line("\t\tNumber of partitions (estimate): %" PRId64 "\n",
	    nodetool_int(table, "partitions"));
}

/* `keyspace` NULL: the table stands below its keyspace; else it is printed alone. */
static void
table_print(const json_t *table, const char *keyspace, bool is_human)
{
	const json_t *live = json_object_get(table, "live_rows");
	const json_t *dead = json_object_get(table, "tombstones");
	int64_t wrong = nodetool_int(table, "filter_false_positives");
	int64_t right = nodetool_int(table, "filter_true_positives");
	int64_t filter = nodetool_int(table, "filter_bytes");

	table_indent = keyspace == NULL ? "\t\t" : "\t";
	table_line("\t\tTable: %s%s%s\n", keyspace == NULL ? "" : keyspace,
	    keyspace == NULL ? "" : ".", nodetool_text(table, "table"));
	table_print_space(table, is_human);
	table_line("\t\tMemtable cell count: %" PRId64 "\n", nodetool_int(table, "memtable_rows"));
	table_line("\t\tMemtable data size: %s\n",
	    table_number(nodetool_int(table, "memtable_bytes"), is_human));
	table_line("\t\tMemtable off heap memory used: %s\n",
	    table_number(nodetool_int(table, "memtable_bytes"), is_human));
	table_line(
	    "\t\tMemtable switch count: %" PRId64 "\n", nodetool_int(table, "memtable_switches"));
	table_line("\t\tSpeculative retries: 0\n");
	table_line("\t\tLocal read count: %" PRId64 "\n", nodetool_int(table, "reads"));
	table_line("\t\tLocal read latency: %s ms\n", table_ms(json_object_get(table, "read_us")));
	table_line("\t\tLocal write count: %" PRId64 "\n", nodetool_int(table, "writes"));
	table_line(
	    "\t\tLocal write latency: %s ms\n", table_ms(json_object_get(table, "write_us")));
	table_line("\t\tPending flushes: %" PRId64 "\n", nodetool_int(table, "pending_flushes"));
	table_line("\t\tPercent repaired: 0.0\n\t\tBytes repaired: 0.000KiB\n");
	table_line("\t\tBytes unrepaired: %.3fKiB\n\t\tBytes pending repair: 0.000KiB\n",
	    (double)nodetool_int(table, "live_bytes") / 1024);
	table_line("\t\tBloom filter false positives: %" PRId64 "\n", wrong);
	table_line("\t\tBloom filter false ratio: %.5f\n",
	    wrong + right == 0 ? 0.0 : (double)wrong / (double)(wrong + right));
	table_line("\t\tBloom filter space used: %s\n",
	    table_number(filter == 0 ? 0 : filter + 8, is_human));
	table_line("\t\tBloom filter off heap memory used: %s\n", table_number(filter, is_human));
	table_line("\t\tIndex summary off heap memory used: %s\n",
	    table_number(nodetool_int(table, "summary_bytes"), is_human));
	table_line("\t\tCompression metadata off heap memory used: %s\n",
	    table_number(nodetool_int(table, "compression_bytes"), is_human));
	table_line("\t\tCompacted partition minimum bytes: %" PRId64 "\n",
	    nodetool_int(table, "partition_min"));
	table_line("\t\tCompacted partition maximum bytes: %" PRId64 "\n",
	    nodetool_int(table, "partition_max"));
	table_line("\t\tCompacted partition mean bytes: %" PRId64 "\n",
	    nodetool_int(table, "partition_mean"));
	table_line(
	    "\t\tAverage live cells per slice (last five minutes): %s\n", table_per_slice(live));
	table_line("\t\tMaximum live cells per slice (last five minutes): %" PRId64 "\n",
	    nodetool_int(live, "max"));
	table_line(
	    "\t\tAverage tombstones per slice (last five minutes): %s\n", table_per_slice(dead));
	table_line("\t\tMaximum tombstones per slice (last five minutes): %" PRId64 "\n",
	    nodetool_int(dead, "max"));
	table_line("\t\tDropped Mutations: 0\n\t\tDroppable tombstone ratio: %.5f\n\n",
	    nodetool_real(table, "droppable_tombstones"));
}

/* Do the words name this table? "ks" or "ks.table". */
static bool
table_is_named(const struct nodetool *tool, const json_t *table)
{
	const char *keyspace = nodetool_text(table, "keyspace");
	const char *name = nodetool_text(table, "table");
	size_t length = strlen(keyspace);
	bool is_ignoring = nodetool_option(tool, "-i") != NULL, is_named = false;

	if (tool->word_count == 0)
		return true;
	for (int i = 0; i < tool->word_count; i++) {
		const char *word = tool->words[i];

		if (strcmp(word, keyspace) == 0 ||
		    (strncmp(word, keyspace, length) == 0 && word[length] == '.' &&
			strcmp(word + length + 1, name) == 0))
			is_named = true;
	}
	return is_named != is_ignoring;
}

static void
table_check_words(struct nodetool *tool, const json_t *tables)
{
	for (int i = 0; i < tool->word_count; i++) {
		const char *word = tool->words[i], *dot = strchr(word, '.');
		bool is_found = false;
		json_t *table;
		size_t index;

		json_array_foreach(tables, index, table)
		{
			const char *keyspace = nodetool_text(table, "keyspace");

			is_found |= strlen(keyspace) ==
				(dot == NULL ? strlen(word) : (size_t)(dot - word)) &&
			    strncmp(keyspace, word, strlen(keyspace)) == 0 &&
			    (dot == NULL || strcmp(dot + 1, nodetool_text(table, "table")) == 0);
		}
		if (!is_found && dot == NULL)
			nodetool_refuse("Unknown keyspace: %s", word);
		if (!is_found)
			nodetool_refuse("Unknown tables: [%s] in keyspace: %.*s", dot + 1,
			    (int)(dot - word), word);
	}
}

/* Counts and mean latencies of a keyspace's tables. */
static void
table_print_keyspace(const json_t *tables, const char *keyspace)
{
	int64_t reads = 0, writes = 0, flushes = 0;
	double read_us = 0, write_us = 0;
	json_t *table;
	size_t index;

	json_array_foreach(tables, index, table)
	{
		const json_t *read = json_object_get(table, "read_us");
		const json_t *write = json_object_get(table, "write_us");

		if (strcmp(nodetool_text(table, "keyspace"), keyspace) != 0)
			continue;
		/* Not every operation is timed: the mean stands for all. */
		reads += nodetool_int(table, "reads");
		writes += nodetool_int(table, "writes");
		if (nodetool_int(read, "count") > 0)
			read_us +=
			    nodetool_real(read, "mean") * (double)nodetool_int(table, "reads");
		if (nodetool_int(write, "count") > 0)
			write_us +=
			    nodetool_real(write, "mean") * (double)nodetool_int(table, "writes");
		flushes += nodetool_int(table, "pending_flushes");
	}
	printf("Keyspace : %s\n\tRead Count: %" PRId64 "\n", keyspace, reads);
	if (reads > 0)
		printf("\tRead Latency: %.5g ms\n", read_us / 1000 / (double)reads);
	else
		printf("\tRead Latency: NaN ms\n");
	printf("\tWrite Count: %" PRId64 "\n", writes);
	if (writes > 0)
		printf("\tWrite Latency: %.5g ms\n", write_us / 1000 / (double)writes);
	else
		printf("\tWrite Latency: NaN ms\n");
	printf("\tPending Flushes: %" PRId64 "\n", flushes);
}

static void
table_structured(struct nodetool *tool, const json_t *tables, const char *format)
{
	json_t *all = nodetool_keep(tool, json_object()), *table;
	size_t index;

	json_object_set_new(
	    all, "total_number_of_tables", json_integer((json_int_t)json_array_size(tables)));
	json_array_foreach(tables, index, table)
	{
		const char *keyspace = nodetool_text(table, "keyspace");
		json_t *of_keyspace = json_object_get(all, keyspace), *out;
		const struct {
			const char *to, *from;
		} names[] = {{"sstable_count", "sstables"}, {"space_used_live", "live_bytes"},
		    {"space_used_total", "total_bytes"},
		    {"space_used_by_snapshots_total", "snapshot_bytes"},
		    {"sstable_compression_ratio", "compression_ratio"},
		    {"number_of_partitions_estimate", "partitions"},
		    {"memtable_cell_count", "memtable_rows"},
		    {"memtable_data_size", "memtable_bytes"},
		    {"memtable_switch_count", "memtable_switches"}, {"local_read_count", "reads"},
		    {"local_write_count", "writes"}, {"pending_flushes", "pending_flushes"},
		    {"bloom_filter_false_positives", "filter_false_positives"},
		    {"bloom_filter_off_heap_memory_used", "filter_bytes"},
		    {"index_summary_off_heap_memory_used", "summary_bytes"},
		    {"compression_metadata_off_heap_memory_used", "compression_bytes"},
		    {"compacted_partition_minimum_bytes", "partition_min"},
		    {"compacted_partition_maximum_bytes", "partition_max"},
		    {"compacted_partition_mean_bytes", "partition_mean"},
		    {"droppable_tombstone_ratio", "droppable_tombstones"}};

		if (!table_is_named(tool, table))
			continue;
		out = json_object();
		if (of_keyspace == NULL) {
			of_keyspace = json_pack("{s:{}}", "tables");
			json_object_set_new(all, keyspace, of_keyspace);
		}
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			json_object_set(out, names[i].to, json_object_get(table, names[i].from));
		json_object_set_new(out, "local_read_latency_ms",
		    json_string(table_ms(json_object_get(table, "read_us"))));
		json_object_set_new(out, "local_write_latency_ms",
		    json_string(table_ms(json_object_get(table, "write_us"))));
		json_object_set_new(
		    json_object_get(of_keyspace, "tables"), nodetool_text(table, "table"), out);
	}
	nodetool_print_structured(all, format);
}

/* What tablestats -s sorts by: a number of the answer, or of one of its histograms; text where `is_text`. */
static const struct table_sort {
	const char *key, *field, *of; /* of: the histogram's field, NULL: none */
	bool is_text;
} table_sorts[] = {{"average_live_cells_per_slice_last_five_minutes", "live_rows", "mean", false},
    {"average_tombstones_per_slice_last_five_minutes", "tombstones", "mean", false},
    {"bloom_filter_false_positives", "filter_false_positives", NULL, false},
    {"bloom_filter_off_heap_memory_used", "filter_bytes", NULL, false},
    {"bloom_filter_space_used", "filter_bytes", NULL, false},
    {"compacted_partition_maximum_bytes", "partition_max", NULL, false},
    {"compacted_partition_mean_bytes", "partition_mean", NULL, false},
    {"compacted_partition_minimum_bytes", "partition_min", NULL, false},
    {"compression_metadata_off_heap_memory_used", "compression_bytes", NULL, false},
    {"full_name", "keyspace", NULL, true},
    {"index_summary_off_heap_memory_used", "summary_bytes", NULL, false},
    {"local_read_count", "reads", NULL, false}, {"local_read_latency_ms", "read_us", "mean", false},
    {"local_write_count", "writes", NULL, false},
    {"local_write_latency_ms", "write_us", "mean", false},
    {"maximum_live_cells_per_slice_last_five_minutes", "live_rows", "max", false},
    {"maximum_tombstones_per_slice_last_five_minutes", "tombstones", "max", false},
    {"memtable_cell_count", "memtable_rows", NULL, false},
    {"memtable_data_size", "memtable_bytes", NULL, false},
    {"memtable_off_heap_memory_used", "memtable_bytes", NULL, false},
    {"memtable_switch_count", "memtable_switches", NULL, false},
    {"number_of_partitions_estimate", "partitions", NULL, false},
    {"pending_flushes", "pending_flushes", NULL, false}, {"read_latency", "read_us", "mean", false},
    {"reads", "reads", NULL, false},
    {"space_used_by_snapshots_total", "snapshot_bytes", NULL, false},
    {"space_used_live", "live_bytes", NULL, false},
    {"space_used_total", "total_bytes", NULL, false},
    {"sstable_compression_ratio", "compression_ratio", NULL, false},
    {"sstable_count", "sstables", NULL, false}, {"table_name", "table", NULL, true},
    {"write_latency", "write_us", "mean", false}, {"writes", "writes", NULL, false}};
static const struct table_sort *table_sorted_by;

static double
table_sort_value(const json_t *table)
{
	const json_t *field = json_object_get(table, table_sorted_by->field);
	double value;

	if (table_sorted_by->of != NULL)
		field = json_object_get(field, table_sorted_by->of);
	value = json_number_value(field);
	return isnan(value) ? 0 : value;
}

/* Greatest first; equals by their full names, ascending. */
static int
table_sort_compare(const void *a, const void *b)
{
	const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
	double x, y;
	int order;

	if (table_sorted_by->is_text && strcmp(table_sorted_by->field, "table") == 0) {
		order = -strcmp(nodetool_text(left, "table"), nodetool_text(right, "table"));
		if (order != 0)
			return order;
	}
	x = table_sorted_by->is_text ? 0 : table_sort_value(left);
	y = table_sorted_by->is_text ? 0 : table_sort_value(right);
	if (x != y)
		return x < y ? 1 : -1;
	order = strcmp(nodetool_text(left, "keyspace"), nodetool_text(right, "keyspace"));
	if (order == 0)
		order = strcmp(nodetool_text(left, "table"), nodetool_text(right, "table"));
	return table_sorted_by->is_text ? -order : order;
}

static void
table_find_sort(const char *key)
{
	size_t count = sizeof(table_sorts) / sizeof(table_sorts[0]), used = 0;
	char all[2048] = "";

	for (size_t i = 0; i < count; i++) {
		if (strcmp(table_sorts[i].key, key) == 0)
			table_sorted_by = &table_sorts[i];
		used += (size_t)snprintf(
		    all + used, sizeof(all) - used, "%s%s", i == 0 ? "" : ", ", table_sorts[i].key);
	}
	if (table_sorted_by == NULL)
		nodetool_refuse("argument for sort must be one of: %s", all);
}

static void
table_stats_sorted(struct nodetool *tool, json_t *tables, const char *key, size_t top)
{
	json_t **sorted = calloc(json_array_size(tables) + 1, sizeof(json_t *)), *table;
	size_t count = 0, index;

	if (sorted == NULL)
		nodetool_fail("no memory");
	table_find_sort(key);
	json_array_foreach(tables, index, table) if (table_is_named(tool, table)) sorted[count++] =
	    table;
	qsort(sorted, count, sizeof(json_t *), table_sort_compare);
	printf("Total number of tables: %zu", json_array_size(tables));
	if (top > 0)
		printf(" (showing top %zu by %s)", top < count ? top : count, key);
	printf("\n----------------\n");
	for (size_t i = 0; i < count && (top == 0 || i < top); i++)
		table_print(sorted[i], nodetool_text(sorted[i], "keyspace"),
		    nodetool_option(tool, "-H") != NULL);
	printf("----------------\n");
	free(sorted);
}

static int
table_stats(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "tables"), *tables = json_object_get(answer, "tables");
	const char *format = nodetool_option(tool, "-F");
	const char *sort = nodetool_option(tool, "-s"), *top = nodetool_option(tool, "-t");
	bool is_human = nodetool_option(tool, "-H") != NULL;
	json_t *done = nodetool_keep(tool, json_object()), *table;
	size_t index;

	table_check_words(tool, tables);
	if (top != NULL && sort == NULL)
		nodetool_refuse("cannot filter top K tables without specifying a sort key.");
	if (sort != NULL && format != NULL)
		nodetool_fail("tablestats -s with -F is not supported by this version of Helenus");
	if (sort != NULL) {
		table_stats_sorted(
		    tool, tables, sort, top == NULL ? 0 : (size_t)strtoul(top, NULL, 10));
		return 0;
	}
	if (format != NULL) {
		table_structured(tool, tables, format);
		return 0;
	}
	printf("Total number of tables: %zu\n----------------\n", json_array_size(tables));
	json_array_foreach(tables, index, table)
	{
		const char *keyspace = nodetool_text(table, "keyspace");
		json_t *other;
		size_t at;

		if (!table_is_named(tool, table) || json_object_get(done, keyspace) != NULL)
			continue;
		json_object_set_new(done, keyspace, json_true());
		table_print_keyspace(tables, keyspace);
		json_array_foreach(tables, at,
		    other) if (strcmp(nodetool_text(other, "keyspace"), keyspace) == 0 &&
		    table_is_named(tool, other)) table_print(other, NULL, is_human);
		printf("----------------\n");
	}
	return 0;
}

static int
table_sstables(struct nodetool *tool)
{
	json_t *answer, *path;
	size_t index;

	answer = nodetool_get(tool, "key?keyspace=%u&table=%u&key=%u", tool->words[0],
	    tool->words[1], tool->words[2]);
	json_array_foreach(json_object_get(answer, "sstables"), index, path)
	    printf("%s\n", json_string_value(path));
	return 0;
}

static int
table_data_paths(struct nodetool *tool)
{
	json_t *paths = json_object_get(nodetool_get(tool, "datapaths"), "paths"), *path;
	const char *last = "";
	json_t *directory;
	size_t index, inner;

	table_check_words(tool, paths);
	json_array_foreach(paths, index, path)
	{
		const char *keyspace = nodetool_text(path, "keyspace");

		if (!table_is_named(tool, path))
			continue;
		if (strcmp(keyspace, last) != 0)
			printf("Keyspace: %s\n", keyspace);
		last = keyspace;
		printf("\tTable: %s\n\tPaths:\n", nodetool_text(path, "table"));
		json_array_foreach(json_object_get(path, "paths"), inner, directory)
		    printf("\t\t%s\n", json_string_value(directory));
		printf("\n");
	}
	return 0;
}

static int
table_snapshots(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "snapshots"),
	       *list = json_object_get(answer, "snapshots");
	struct nodetool_grid grid;
	uint64_t total = 0;
	json_t *each;
	size_t index;

	printf("Snapshot Details: \n");
	if (json_array_size(list) == 0) {
		printf("There are no snapshots\n");
		return 0;
	}
	nodetool_grid_init(&grid, " ", 7);
	for (int i = 0; i < 7; i++) {
		static const char *const head[] = {"Snapshot name", "Keyspace name",
		    "Column family name", "True size", "Size on disk", "Creation time",
		    "Expiration time"};

		nodetool_grid_add(&grid, "%s", head[i]);
	}
	json_array_foreach(list, index, each)
	{
		if (nodetool_option(tool, "-nt") != NULL && nodetool_int(each, "expires_ms") != 0)
			continue;
		total += (uint64_t)nodetool_int(each, "true_bytes");
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "tag"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "keyspace"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "table"));
		nodetool_grid_add(
		    &grid, "%s", nodetool_size((uint64_t)nodetool_int(each, "true_bytes")));
		nodetool_grid_add(
		    &grid, "%s", nodetool_size((uint64_t)nodetool_int(each, "total_bytes")));
		nodetool_grid_add(
		    &grid, "%s", nodetool_time(nodetool_int(each, "created_ms"), true));
		nodetool_grid_add(&grid, "%s",
		    nodetool_int(each, "expires_ms") == 0
			? ""
			: nodetool_time(nodetool_int(each, "expires_ms"), true));
	}
	nodetool_grid_print(&grid);
	printf("\nTotal TrueDiskSpaceUsed: %s\n\n", nodetool_size(total));
	return 0;
}

static int
table_status_auto_compaction(struct nodetool *tool)
{
	json_t *answer = tool->word_count > 0
	    ? nodetool_get(tool, "tables?keyspace=%u", tool->words[0])
	    : nodetool_get(tool, "tables");
	bool is_all = nodetool_option(tool, "-a") != NULL;
	struct nodetool_grid grid;
	json_t *table;
	size_t index;
	int on = 0, off = 0;

	nodetool_grid_init(&grid, " ", 3);
	nodetool_grid_add(&grid, "Keyspace");
	nodetool_grid_add(&grid, "Table");
	nodetool_grid_add(&grid, "Status");
	json_array_foreach(json_object_get(answer, "tables"), index, table)
	{
		bool is_on = nodetool_true(table, "auto_compaction"),
		     is_wanted = tool->word_count < 2;

		for (int i = 1; i < tool->word_count; i++)
			is_wanted |= strcmp(tool->words[i], nodetool_text(table, "table")) == 0;
		if (!is_wanted)
			continue;
		on += is_on;
		off += !is_on;
		nodetool_grid_add(&grid, "%s", nodetool_text(table, "keyspace"));
		nodetool_grid_add(&grid, "%s", nodetool_text(table, "table"));
		nodetool_grid_add(&grid, "%s", is_on ? "running" : "not running");
	}
	if (is_all)
		nodetool_grid_print(&grid);
	else
		printf("%s\n",
		    off == 0      ? "running"
			: on == 0 ? "not running"
				  : "partially running");
	nodetool_grid_fini(&grid);
	return 0;
}

static const struct nodetool_option table_stats_options[] = {
    {"-F", "--format", "format", "json or yaml instead of lines"},
    {"-H", "--human-readable", NULL, "Sizes with units"},
    {"-i", NULL, NULL, "All but the named tables"},
    {"-s", "--sort", "sort_key", "Tables by this number, the greatest first"},
    {"-t", "--top", "top", "Only so many of them"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option table_status_options[] = {
    {"-a", "--all", NULL, "Each table"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option table_snapshot_options[] = {
    {"-nt", "--no-ttl", NULL, "Without those that expire"},
    {"-e", "--ephemeral", NULL, "With the ephemeral ones"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option table_sstables_options[] = {
    {"-hf", "--hex-format", NULL, "The key is in hex"},
    {"-l", "--show-levels", NULL, "By level of the leveled strategy"}, {NULL, NULL, NULL, NULL}};

const struct nodetool_command nodetool_table_commands[] = {
    {"datapaths", "Where the tables' data lies", "[--] [<keyspace.table>...]", 0,
	NODETOOL_WORDS_MAX - 1, NULL, table_data_paths, NULL},
    {"getsstables", "SSTables that hold a key", "[--] <keyspace> <cfname> <key>", 3, 3,
	table_sstables_options, table_sstables, NULL},
    {"listsnapshots", "Snapshots and their sizes", "", 0, 0, table_snapshot_options,
	table_snapshots, NULL},
    {"statusautocompaction", "Do tables compact by themselves", "[--] [<keyspace> <tables>...]", 0,
	NODETOOL_WORDS_MAX - 1, table_status_options, table_status_auto_compaction, NULL},
    {"tablestats", "Statistics of tables", "[--] [<keyspace.table>...]", 0, NODETOOL_WORDS_MAX - 1,
	table_stats_options, table_stats, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
