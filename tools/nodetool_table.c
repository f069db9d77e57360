/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nodetool.h"

bool
nodetool_table_is_named(const struct nodetool *tool, const json_t *table)
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

void
nodetool_check_tables(struct nodetool *tool, const json_t *tables)
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

static int
table_sstables(struct nodetool *tool)
{
	bool shows_levels = nodetool_option(tool, "-l") != NULL;
	json_t *answer, *each;
	size_t index;

	answer = nodetool_get(tool, "key?keyspace=%u&table=%u&key=%u&hex=%s", tool->words[0],
	    tool->words[1], tool->words[2],
	    nodetool_option(tool, "-hf") != NULL ? "true" : "false");
	json_array_foreach(json_object_get(answer, "sstables"), index, each)
	{
		if (shows_levels)
			printf("%" PRId64 ": ", nodetool_int(each, "level"));
		printf("%s\n", nodetool_text(each, "path"));
	}
	return 0;
}

static int
table_data_paths(struct nodetool *tool)
{
	json_t *paths = json_object_get(nodetool_get(tool, "datapaths"), "paths"), *path;
	const char *last = "";
	json_t *directory;
	size_t index, inner;

	nodetool_check_tables(tool, paths);
	json_array_foreach(paths, index, path)
	{
		const char *keyspace = nodetool_text(path, "keyspace");

		if (!nodetool_table_is_named(tool, path))
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

static const struct nodetool_option table_status_options[] = {
    {"-a", "--all", NULL, "Each table"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option table_snapshot_options[] = {
    {"-nt", "--no-ttl", NULL, "Without those that expire"},
    {"-e", "--ephemeral", NULL, "With the ephemeral ones"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option table_sstables_options[] = {
    {"-hf", "--hex-format", NULL, "The key is in hex"},
    {"-l", "--show-levels", NULL, "With the level of each"}, {NULL, NULL, NULL, NULL}};

const struct nodetool_command nodetool_table_commands[] = {
    {"datapaths", "Where the tables' data lies", "[--] [<keyspace.table>...]", 0,
	NODETOOL_WORDS_MAX - 1, NULL, table_data_paths, NULL},
    {"getsstables", "SSTables that hold a key", "[--] <keyspace> <cfname> <key>", 3, 3,
	table_sstables_options, table_sstables, NULL},
    {"listsnapshots", "Snapshots and their sizes", "", 0, 0, table_snapshot_options,
	table_snapshots, NULL},
    {"statusautocompaction", "Do tables compact by themselves", "[--] [<keyspace> <tables>...]", 0,
	NODETOOL_WORDS_MAX - 1, table_status_options, table_status_auto_compaction, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
