/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that change while the node runs, and import and samples of keys. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nodetool.h"

static int64_t
settings_get(struct nodetool *tool, const char *name)
{
	return nodetool_int(nodetool_get(tool, "limits"), name);
}

static int64_t
settings_number(const char *text)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0' || end == text || value > INT64_MAX / 1024 || value < -1)
		nodetool_refuse("can not convert \"%s\" to a number", text);
	return value;
}

/* In units of `unit`. */
static void
settings_set(struct nodetool *tool, const char *name, const char *text, int64_t unit)
{
	char number[32];

	snprintf(number, sizeof(number), "%" PRId64, settings_number(text) * unit);
	(void)nodetool_post(tool, "limit?name=%u&value=%u", name, number);
}

static int
settings_get_column_index(struct nodetool *tool)
{
	printf("Current value for column_index_size: %" PRId64 " KiB\n",
	    settings_get(tool, "column_index_bytes") / 1024);
	return 0;
}

static int
settings_set_column_index(struct nodetool *tool)
{
	settings_set(tool, "column_index_bytes", tool->words[0], 1024);
	return 0;
}

static int
settings_get_default_rf(struct nodetool *tool)
{
	printf("%" PRId64 "\n", settings_get(tool, "default_keyspace_rf"));
	return 0;
}

static int
settings_set_default_rf(struct nodetool *tool)
{
	settings_set(tool, "default_keyspace_rf", tool->words[0], 1);
	return 0;
}

static int
settings_get_snapshot(struct nodetool *tool)
{
	int64_t links = settings_get(tool, "snapshot_links_per_second");

	if (links == 0)
		printf("Snapshot throttle is disabled\n");
	else
		printf("Current snapshot throttle: %" PRId64 " links/s\n", links);
	return 0;
}

static int
settings_set_snapshot(struct nodetool *tool)
{
	settings_set(tool, "snapshot_links_per_second", tool->words[0], 1);
	return 0;
}

static int
settings_old_protocols(struct nodetool *tool)
{
	settings_set(tool, "older_protocols",
	    strcmp(tool->command->name, "enableoldprotocolversions") == 0 ? "1" : "0", 1);
	return 0;
}

static int
settings_key_samples(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "keysamples"), *token;
	size_t index;

	printf("RangeKeySample: \n");
	json_array_foreach(json_object_get(answer, "tokens"), index, token)
	    printf("\t%" JSON_INTEGER_FORMAT "\n", json_integer_value(token));
	return 0;
}

/* ---- import ----------------------------------------------------------------------------------------- */

static const char *
settings_switch(const struct nodetool *tool, const char *name)
{
	return nodetool_option(tool, name) != NULL ? "true" : "false";
}

static size_t
settings_import_from(struct nodetool *tool, const char *directory)
{
	json_t *answer, *failure;
	size_t index;

	/* -q and -c: rows are only decoded with -e; no cache holds what is not in the table yet. */
	answer = nodetool_post(tool,
	    "import?keyspace=%u&table=%u&directory=%u&copy=%s&keeplevel=%s&keeprepaired=%s&"
	    "noverify=%s&anytokens=%s&extended=%s",
	    tool->words[0], tool->words[1], directory, settings_switch(tool, "-p"),
	    settings_switch(tool, "-l"), settings_switch(tool, "-r"),
	    nodetool_option(tool, "-q") != NULL ? "true" : settings_switch(tool, "-v"),
	    settings_switch(tool, "-t"), settings_switch(tool, "-e"));
	json_array_foreach(json_object_get(answer, "failures"), index, failure) fprintf(
	    stderr, "%s: %s\n", nodetool_text(failure, "path"), nodetool_text(failure, "error"));
	return json_array_size(json_object_get(answer, "failures"));
}

static int
settings_import(struct nodetool *tool)
{
	size_t failures = 0;

	for (int i = 2; i < tool->word_count; i++) {
		char *path = realpath(tool->words[i], NULL);

		failures += settings_import_from(tool, path != NULL ? path : tool->words[i]);
		free(path);
	}
	if (failures > 0)
		nodetool_fail("%zu SSTables were not imported", failures);
	return 0;
}

static const struct nodetool_option settings_import_options[] = {
    {"-p", "--copy-data", NULL, "Leave the files where they are as well"},
    {"-l", "--keep-level", NULL, "Keep the level of each SSTable; else 0"},
    {"-r", "--keep-repaired", NULL, "Keep what was repaired; else nothing is"},
    {"-v", "--no-verify", NULL, "Do not check the files"},
    {"-q", "--quick", NULL, "The same: only what tells where the rows are is read"},
    {"-t", "--no-tokens", NULL, "Do not check that all partitions are this node's"},
    {"-e", "--extended-verify", NULL, "Read every row as well"},
    {"-c", "--no-invalidate-caches", NULL, "Accepted: no cache holds rows that were not there"},
    {NULL, NULL, NULL, NULL}};

const struct nodetool_command nodetool_settings_commands[] = {
    {"disableoldprotocolversions", "New connections speak the newest protocol or none", "", 0, 0,
	NULL, settings_old_protocols, NULL},
    {"enableoldprotocolversions", "New connections may speak older protocols again", "", 0, 0, NULL,
	settings_old_protocols, NULL},
    {"getcolumnindexsize", "Granularity of the index inside a partition", "", 0, 0, NULL,
	settings_get_column_index, NULL},
    {"getdefaultrf", "Replication factor of keyspaces that name none", "", 0, 0, NULL,
	settings_get_default_rf, NULL},
    {"getsnapshotthrottle", "Limit of links a second while a snapshot is made", "", 0, 0, NULL,
	settings_get_snapshot, NULL},
    {"import", "Take over SSTables of any folder", "[--] <keyspace> <table> <directory>...", 3,
	NODETOOL_WORDS_MAX - 1, settings_import_options, settings_import, NULL},
    {"rangekeysample", "Tokens of a sample of keys", "", 0, 0, NULL, settings_key_samples, NULL},
    {"setcolumnindexsize", "Granularity of the index inside partitions written from now on, KiB",
	"[--] <value_in_kib>", 1, 1, NULL, settings_set_column_index, NULL},
    {"setdefaultrf", "Replication factor of keyspaces that name none, until a restart",
	"[--] <value>", 1, 1, NULL, settings_set_default_rf, NULL},
    {"setsnapshotthrottle", "Limit links a second while a snapshot is made; 0: no limit",
	"[--] <value>", 1, 1, NULL, settings_set_snapshot, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
