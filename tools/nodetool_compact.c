/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that read and write SSTables anew. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/nodetool.h"

static const char *
compact_keyspace(const struct nodetool *tool)
{
	return tool->word_count > 0 ? tool->words[0] : "";
}

static const char *
compact_switch(const struct nodetool *tool, const char *name)
{
	return nodetool_option(tool, name) != NULL ? "true" : "false";
}

static const char *
compact_text(const struct nodetool *tool, const char *name)
{
	const char *value = nodetool_option(tool, name);

	return value == NULL ? "" : value;
}

static int
compact_run(struct nodetool *tool)
{
	bool is_user_defined = nodetool_option(tool, "--user-defined") != NULL;
	bool has_tokens = nodetool_option(tool, "-st") != NULL ||
	    nodetool_option(tool, "-et") != NULL || nodetool_option(tool, "--partition") != NULL;

	if (nodetool_option(tool, "-s") != NULL && (is_user_defined || has_tokens))
		nodetool_fail("Invalid option combination: Can not use split-output here");
	if (is_user_defined && has_tokens)
		nodetool_fail(
		    "Invalid option combination: Can not provide tokens when using user-defined");
	if (is_user_defined && tool->word_count == 0)
		nodetool_refuse("compact --user-defined requires <SSTable file>...");
	if (is_user_defined)
		(void)nodetool_post(tool, "compact?files=%u", nodetool_join_words(tool, 0));
	else
		(void)nodetool_post(tool,
		    "compact?keyspace=%u&tables=%u&split=%s&start=%u&end=%u&key=%u",
		    compact_keyspace(tool), nodetool_join_words(tool, 1),
		    compact_switch(tool, "-s"), compact_text(tool, "-st"),
		    compact_text(tool, "-et"), compact_text(tool, "--partition"));
	return 0;
}

static int
compact_garbage(struct nodetool *tool)
{
	const char *granularity = nodetool_option(tool, "-g");

	if (granularity != NULL && strcmp(granularity, "ROW") != 0 &&
	    strcmp(granularity, "CELL") != 0)
		nodetool_refuse(
		    "--granularity: given '%s', but it must be CELL or ROW", granularity);
	(void)nodetool_post(tool, "garbagecollect?keyspace=%u&tables=%u&cells=%s&jobs=%u",
	    compact_keyspace(tool), nodetool_join_words(tool, 1),
	    granularity != NULL && strcmp(granularity, "CELL") == 0 ? "true" : "false",
	    compact_text(tool, "-j"));
	return 0;
}

static int
compact_scrub(struct nodetool *tool)
{
	json_t *answer, *table;
	size_t index;

	if (nodetool_option(tool, "-r") != NULL)
		nodetool_fail(
		    "scrub --reinsert-overflowed-ttl is not supported: this server never wrote "
		    "rows whose TTL overflowed; run it with Cassandra before files of such a "
		    "version are brought here");
	answer = nodetool_post(tool,
	    "scrub?keyspace=%u&tables=%u&skip=%s&novalidate=%s&nosnapshot=%s&jobs=%u",
	    compact_keyspace(tool), nodetool_join_words(tool, 1), compact_switch(tool, "-s"),
	    compact_switch(tool, "-n"), compact_switch(tool, "-ns"), compact_text(tool, "-j"));
	json_array_foreach(json_object_get(answer, "scrubbed"), index, table)
	{
		if (nodetool_int(table, "bad") > 0)
			printf("WARNING: %" PRId64
			       " partitions of %s.%s could not be read and were "
			       "left out, %" PRId64 " were kept\n",
			    nodetool_int(table, "bad"), nodetool_text(table, "keyspace"),
			    nodetool_text(table, "table"), nodetool_int(table, "good"));
	}
	return 0;
}

static int
compact_upgrade(struct nodetool *tool)
{
	(void)nodetool_post(tool, "upgradesstables?keyspace=%u&tables=%u&all=%s&jobs=%u",
	    compact_keyspace(tool), nodetool_join_words(tool, 1), compact_switch(tool, "-a"),
	    compact_text(tool, "-j"));
	return 0;
}

static int
compact_recompress(struct nodetool *tool)
{
	(void)nodetool_post(tool, "recompress?keyspace=%u&tables=%u&jobs=%u",
	    compact_keyspace(tool), nodetool_join_words(tool, 1), compact_text(tool, "-j"));
	return 0;
}

static int
compact_verify(struct nodetool *tool)
{
	json_t *answer, *sstable;
	size_t index;
	int damaged = 0;

	/* -c: what is not of the current version is not opened at all. */
	answer = nodetool_post(tool,
	    "verify?keyspace=%u&tables=%u&extended=%s&quick=%s&unrepaired=%s&failures=%s&tokens=%s",
	    compact_keyspace(tool), nodetool_join_words(tool, 1), compact_switch(tool, "-e"),
	    compact_switch(tool, "-q"), compact_switch(tool, "-r"), compact_switch(tool, "-d"),
	    compact_switch(tool, "-t"));
	json_array_foreach(json_object_get(answer, "sstables"), index, sstable)
	{
		if (json_object_get(sstable, "error") == NULL)
			continue;
		damaged++;
		fprintf(stderr, "%s is damaged: %s\n", nodetool_text(sstable, "path"),
		    nodetool_text(sstable, "error"));
	}
	if (damaged > 0)
		nodetool_fail("%d of %zu SSTables are damaged", damaged,
		    json_array_size(json_object_get(answer, "sstables")));
	return 0;
}

#define COMPACT_JOBS                                                                               \
	{                                                                                          \
		"-j", "--jobs", "jobs",                                                            \
		    "How many SSTables of a table at once (2); 0: as many as there are compactors" \
	}
static const struct nodetool_option compact_options[] = {
    {"-s", "--split-output", NULL,
	"Tables tiered by size: SSTables of half the data, a quarter, ... instead of one"},
    {NULL, "--user-defined", NULL, "The arguments are Data.db files of SSTables to merge"},
    {"-st", "--start-token", "token", "SSTables with tokens behind this one"},
    {"-et", "--end-token", "token", "SSTables with tokens up to this one"},
    {NULL, "--partition", "key", "SSTables that may hold this partition"},
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option compact_garbage_options[] = {
    {"-g", "--granularity", "granularity",
	"ROW: what is deleted goes (the default); CELL: what is overwritten as well"},
    COMPACT_JOBS, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option compact_scrub_options[] = {
    {"-ns", "--no-snapshot", NULL, "Make no snapshot before"},
    {"-s", "--skip-corrupted", NULL,
	"Leave damaged partitions out of tables with counters as well"},
    {"-n", "--no-validate", NULL, "Do not check values by their types"},
    {"-r", "--reinsert-overflowed-ttl", NULL, "Refused: no such rows were ever written here"},
    COMPACT_JOBS, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option compact_upgrade_options[] = {
    {"-a", "--include-all-sstables", NULL, "Those of the current version too"}, COMPACT_JOBS,
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option compact_verify_options[] = {
    {"-e", "--extended-verify", NULL, "Read every row as well"},
    {"-f", "--force", NULL, "Accepted: the command changes nothing here and needs no force"},
    {"-c", "--check-version", NULL, "Accepted: files of another version are not opened at all"},
    {"-d", "--dfp", NULL, "What is damaged is for disk_failure_policy as well"},
    {"-r", "--rsc", NULL, "What is damaged counts as not repaired: the next repair fetches it"},
    {"-t", "--check-tokens", NULL, "All partitions have to be of this node's ranges"},
    {"-q", "--quick", NULL, "Read the index, not the data"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option compact_recompress_options[] = {
    COMPACT_JOBS, {NULL, NULL, NULL, NULL}};

#define COMPACT_TABLES "[--] [<keyspace> <tables>...]"
enum { COMPACT_MANY = NODETOOL_WORDS_MAX - 1 };

const struct nodetool_command nodetool_compact_commands[] = {
    {"compact", "Merge SSTables of tables", COMPACT_TABLES " | <SSTable file>...", 0, COMPACT_MANY,
	compact_options, compact_run, NULL},
    {"garbagecollect", "Remove what other SSTables delete", COMPACT_TABLES, 0, COMPACT_MANY,
	compact_garbage_options, compact_garbage, NULL},
    {"recompress_sstables", "Write SSTables anew that are not compressed as their table says now",
	COMPACT_TABLES, 0, COMPACT_MANY, compact_recompress_options, compact_recompress, NULL},
    {"scrub", "Write SSTables anew with what can be read of them", COMPACT_TABLES, 0, COMPACT_MANY,
	compact_scrub_options, compact_scrub, NULL},
    {"upgradesstables", "Write SSTables of older versions anew", COMPACT_TABLES, 0, COMPACT_MANY,
	compact_upgrade_options, compact_upgrade, NULL},
    {"verify", "Check the files of SSTables", COMPACT_TABLES, 0, COMPACT_MANY,
	compact_verify_options, compact_verify, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
