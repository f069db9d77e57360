/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that change something. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/bytes.h"
#include "tools/nodetool.h"

const char *
nodetool_join_words(const struct nodetool *tool, int from)
{
	static struct buffer list;

	buffer_clear(&list);
	for (int i = from; i < tool->word_count; i++)
		buffer_printf(&list, "%s%s", i == from ? "" : ",", tool->words[i]);
	buffer_put_u8(&list, 0);
	return (const char *)list.data;
}

/* POST <call> for the tables that the words name. */
static int
operation_on_tables(struct nodetool *tool)
{
	const char *keyspace = tool->word_count > 0 ? tool->words[0] : "";

	(void)nodetool_post(tool, "%s?keyspace=%u&tables=%u", tool->command->call, keyspace,
	    nodetool_join_words(tool, 1));
	return 0;
}

static int
operation_auto_compaction(struct nodetool *tool)
{
	const char *keyspace = tool->word_count > 0 ? tool->words[0] : "";

	(void)nodetool_post(tool, "autocompaction?enabled=%s&keyspace=%u&tables=%u",
	    strcmp(tool->command->name, "enableautocompaction") == 0 ? "true" : "false", keyspace,
	    nodetool_join_words(tool, 1));
	return 0;
}

static int
operation_refresh(struct nodetool *tool)
{
	(void)nodetool_post(tool, "refresh?keyspace=%u&table=%u", tool->words[0], tool->words[1]);
	return 0;
}

/* ---- snapshots --------------------------------------------------------------------------------------- */

struct operation_snapshot {
	const char *tag, *ttl;
	bool skip_flush;
};

static void
operation_snapshot_tables(struct nodetool *tool, const struct operation_snapshot *snapshot,
    const char *keyspace, const char *tables)
{
	(void)nodetool_post(tool, "snapshot?tag=%u&keyspace=%u&tables=%u&ttl=%u&skipflush=%s",
	    snapshot->tag, keyspace, tables, snapshot->ttl == NULL ? "" : snapshot->ttl,
	    snapshot->skip_flush ? "true" : "false");
}

static void
operation_snapshot_of(
    struct nodetool *tool, const struct operation_snapshot *snapshot, const char *pair)
{
	const char *dot = strchr(pair, '.');
	char keyspace[128];

	if (dot == NULL)
		nodetool_refuse("Invalid argument '%s': write <keyspace>.<table>", pair);
	snprintf(keyspace, sizeof(keyspace), "%.*s", (int)(dot - pair), pair);
	operation_snapshot_tables(tool, snapshot, keyspace, dot + 1);
}

/* "] with snapshot name [x] and options {ttl=1h, skipFlush=false}" */
static void
operation_print_snapshot(const struct operation_snapshot *snapshot)
{
	printf("] with snapshot name [%s] and options {%s%s%sskipFlush=%s}\n", snapshot->tag,
	    snapshot->ttl == NULL ? "" : "ttl=", snapshot->ttl == NULL ? "" : snapshot->ttl,
	    snapshot->ttl == NULL ? "" : ", ", snapshot->skip_flush ? "true" : "false");
	fflush(stdout);
}

static int
operation_snapshot(struct nodetool *tool)
{
	const char *pairs = nodetool_option(tool, "-kt");
	const char *table = nodetool_option(tool, "-cf");
	struct operation_snapshot snapshot = {nodetool_option(tool, "-t"),
	    nodetool_option(tool, "--ttl"), nodetool_option(tool, "-sf") != NULL};
	char made[32];

	if (snapshot.tag == NULL) {
		struct timeval now;

		gettimeofday(&now, NULL);
		snprintf(made, sizeof(made), "%" PRId64,
		    (int64_t)now.tv_sec * 1000 + now.tv_usec / 1000);
		snapshot.tag = made;
	}
	if (pairs != NULL) {
		char *copy = strdup(pairs), *rest = copy, *pair;

		printf("Requested creating snapshot(s) for [%s", pairs);
		operation_print_snapshot(&snapshot);
		while ((pair = strsep(&rest, ",")) != NULL)
			operation_snapshot_of(tool, &snapshot, pair);
		free(copy);
	} else {
		if (table != NULL && tool->word_count != 1)
			nodetool_refuse(
			    "When specifying the table for a snapshot, you must specify "
			    "one and only one keyspace");
		printf("Requested creating snapshot(s) for [");
		if (tool->word_count == 0)
			printf("all keyspaces");
		for (int i = 0; i < tool->word_count; i++)
			printf("%s%s", i == 0 ? "" : ", ", tool->words[i]);
		operation_print_snapshot(&snapshot);
		for (int i = 0; i == 0 || i < tool->word_count; i++)
			operation_snapshot_tables(tool, &snapshot,
			    tool->word_count == 0 ? "" : tool->words[i],
			    table == NULL ? "" : table);
	}
	printf("Snapshot directory: %s\n", snapshot.tag);
	return 0;
}

static int
operation_backup(struct nodetool *tool)
{
	(void)nodetool_post(tool, "backup?enabled=%s",
	    strcmp(tool->command->name, "enablebackup") == 0 ? "true" : "false");
	return 0;
}

static int
operation_clear_snapshot(struct nodetool *tool)
{
	const char *tag = nodetool_option(tool, "-t");
	bool is_all = nodetool_option(tool, "--all") != NULL;

	if (tag == NULL && !is_all)
		nodetool_fail("Specify snapshot name or --all");
	if (tag != NULL && is_all)
		nodetool_fail("Specify only one of snapshot name or --all");
	printf("Requested clearing snapshot(s) for [");
	if (tool->word_count == 0)
		printf("all keyspaces");
	for (int i = 0; i < tool->word_count; i++)
		printf("%s%s", i == 0 ? "" : ", ", tool->words[i]);
	if (is_all)
		printf("] with [all snapshots]\n");
	else
		printf("] with snapshot name [%s]\n", tag);
	fflush(stdout);
	for (int i = 0; i == 0 || i < tool->word_count; i++)
		(void)nodetool_post(tool, "clearsnapshot?tag=%u&keyspace=%u",
		    tag == NULL ? "" : tag, tool->word_count == 0 ? "" : tool->words[i]);
	return 0;
}

/* ---- compaction ----------------------------------------------------------------------------------------- */

static int
operation_stop(struct nodetool *tool)
{
	static const char *const kinds[] = {"COMPACTION", "VALIDATION", "CLEANUP", "SCRUB",
	    "UPGRADE_SSTABLES", "INDEX_BUILD", "TOMBSTONE_COMPACTION", "ANTICOMPACTION", "VERIFY",
	    "VIEW_BUILD", "INDEX_SUMMARY", "RELOCATE", "GARBAGE_COLLECT"};
	const char *id = nodetool_option(tool, "-id");
	const char *kind = tool->word_count > 0 ? tool->words[0] : NULL;
	bool is_known = kind == NULL;

	for (size_t i = 0; kind != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		is_known |= strcmp(kinds[i], kind) == 0;
	if (!is_known)
		nodetool_refuse("compaction_type: can not convert \"%s\" to a OperationType", kind);
	if (id == NULL && kind == NULL)
		nodetool_refuse("stop requires a compaction type or -id");
	(void)nodetool_post(
	    tool, "stop?id=%u&kind=%u", id == NULL ? "" : id, id != NULL ? "" : kind);
	return 0;
}

static int
operation_get_throughput(struct nodetool *tool)
{
	int64_t bytes = nodetool_int(nodetool_get(tool, "compactions"), "throughput_bytes");

	if (nodetool_option(tool, "-d") != NULL)
		printf("Current compaction throughput: %.1f MiB/s\n", (double)bytes / 1048576);
	else
		printf("Current compaction throughput: %" PRId64 " MB/s\n", bytes / 1048576);
	return 0;
}

static int
operation_set_throughput(struct nodetool *tool)
{
	(void)nodetool_post(tool, "compactionthroughput?mib=%u", tool->words[0]);
	return 0;
}

static int
operation_get_compactors(struct nodetool *tool)
{
	printf("Current concurrent compactors in the system is: \n%" PRId64 "\n",
	    nodetool_int(nodetool_get(tool, "compactions"), "concurrent"));
	return 0;
}

static int
operation_set_compactors(struct nodetool *tool)
{
	(void)nodetool_post(tool, "concurrentcompactors?count=%u", tool->words[0]);
	return 0;
}

/* ---- the node --------------------------------------------------------------------------------------------- */

static int
operation_binary(struct nodetool *tool)
{
	(void)nodetool_post(tool, "binary?enabled=%s",
	    strcmp(tool->command->name, "enablebinary") == 0 ? "true" : "false");
	return 0;
}

static int
operation_stop_daemon(struct nodetool *tool)
{
	(void)nodetool_post(tool, "stopdaemon");
	printf("Helenus has shutdown.\n");
	return 0;
}

static int
operation_set_concurrency(struct nodetool *tool)
{
	/* stage, or stage core max */
	(void)nodetool_post(tool, "concurrency?stage=%u&threads=%u", tool->words[0],
	    tool->words[tool->word_count - 1]);
	return 0;
}

static int
operation_get_threshold(struct nodetool *tool)
{
	json_t *table = json_array_get(
	    json_object_get(
		nodetool_get(tool, "tables?keyspace=%u&tables=%u", tool->words[0], tool->words[1]),
		"tables"),
	    0);

	printf("Current compaction thresholds for %s/%s: \n min = %" PRId64 ",  max = %" PRId64
	       "\n",
	    tool->words[0], tool->words[1], nodetool_int(table, "min_threshold"),
	    nodetool_int(table, "max_threshold"));
	return 0;
}

static int
operation_set_threshold(struct nodetool *tool)
{
	(void)nodetool_post(tool, "compactionthreshold?keyspace=%u&table=%u&min=%u&max=%u",
	    tool->words[0], tool->words[1], tool->words[2], tool->words[3]);
	return 0;
}

static const char operation_timeouts[] =
    "Timeout type requires one of (read, range, write, counterwrite, cascontention, truncate, "
    "internodeconnect, internodeuser, internodestreaminguser, misc (general rpc_timeout_in_ms))";

static int
operation_get_timeout(struct nodetool *tool)
{
	json_t *timeouts = nodetool_get(tool, "timeouts");

	for (int i = 0; i < tool->word_count; i++)
		if (json_object_get(timeouts, tool->words[i]) == NULL)
			nodetool_refuse("%s", operation_timeouts);
	for (int i = 0; i < tool->word_count; i++)
		printf("Current timeout for type %s: %" PRId64 " ms\n", tool->words[i],
		    nodetool_int(timeouts, tool->words[i]));
	return 0;
}

static int
operation_set_timeout(struct nodetool *tool)
{
	json_t *timeouts = nodetool_get(tool, "timeouts");

	if (json_object_get(timeouts, tool->words[0]) == NULL)
		nodetool_refuse("%s", operation_timeouts);
	(void)nodetool_post(tool, "timeout?type=%u&ms=%u", tool->words[0], tool->words[1]);
	return 0;
}

static int
operation_get_levels(struct nodetool *tool)
{
	json_t *loggers = nodetool_get(tool, "loggers"), *level;
	const char *name;

	printf("\n%-50s%10s\n", "Logger Name", "Log Level");
	json_object_foreach(loggers, name, level)
	    printf("%-50s%10s\n", name, json_string_value(level));
	return 0;
}

static int
operation_set_level(struct nodetool *tool)
{
	(void)nodetool_post(tool, "logginglevel?logger=%u&level=%u",
	    tool->word_count > 0 ? tool->words[0] : "", tool->word_count > 1 ? tool->words[1] : "");
	return 0;
}

static int
operation_get_trace(struct nodetool *tool)
{
	printf("Current trace probability: %g\n",
	    nodetool_real(nodetool_get(tool, "info"), "trace_probability"));
	return 0;
}

static int
operation_set_trace(struct nodetool *tool)
{
	(void)nodetool_post(tool, "traceprobability?value=%u", tool->words[0]);
	return 0;
}

static int
operation_invalidate(struct nodetool *tool)
{
	const char *name = tool->command->name + strlen("invalidate");

	(void)nodetool_post(tool, "invalidate?cache=%s",
	    strncmp(name, "key", 3) == 0       ? "key"
		: strncmp(name, "row", 3) == 0 ? "row"
					       : "counter");
	return 0;
}

static int
operation_set_caches(struct nodetool *tool)
{
	(void)nodetool_post(tool, "%s?key=%u&row=%u&counter=%u", tool->command->call,
	    tool->words[0], tool->words[1], tool->words[2]);
	return 0;
}

static const struct nodetool_option operation_snapshot_options[] = {
    {"-t", "--tag", "tag", "Name of the snapshot; the time when absent"},
    {"-cf", "--column-family", "table", "One table of the keyspace"},
    {NULL, "--table", "table", "As -cf"},
    {"-kt", "--kt-list", "ktlist", "Tables as keyspace.table, separated by commas"},
    {"-sf", "--skip-flush", NULL, "Without a flush: what is on disk already"},
    {NULL, "--ttl", "ttl", "It removes itself after this duration, 1m or more: 1h, 7d"},
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option operation_clear_options[] = {
    {"-t", NULL, "tag", "Name of the snapshot"}, {NULL, "--all", NULL, "All snapshots"},
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option operation_stop_options[] = {
    {"-id", "--compaction-id", "id", "The compaction with this id"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option operation_precise_options[] = {
    {"-d", "--precise-mib", NULL, "Not rounded"}, {NULL, NULL, NULL, NULL}};

#define OPERATION_TABLES "[--] [<keyspace> <tables>...]"
enum { OPERATION_MANY = NODETOOL_WORDS_MAX - 1 };

const struct nodetool_command nodetool_operation_commands[] = {
    {"clearsnapshot", "Remove snapshots", "[--] [<keyspaces>...]", 0, OPERATION_MANY,
	operation_clear_options, operation_clear_snapshot, NULL},
    {"disableautocompaction", "Tables no longer compact by themselves", OPERATION_TABLES, 0,
	OPERATION_MANY, NULL, operation_auto_compaction, NULL},
    {"disablebackup", "No more incremental backups", "", 0, 0, NULL, operation_backup, NULL},
    {"disablebinary", "Stop serving CQL clients", "", 0, 0, NULL, operation_binary, NULL},
    {"drain", "Stop accepting writes and flush everything", "", 0, 0, NULL, NULL, "drain"},
    {"enableautocompaction", "Tables compact by themselves again", OPERATION_TABLES, 0,
	OPERATION_MANY, NULL, operation_auto_compaction, NULL},
    {"enablebackup", "Incremental backups: links of what is flushed", "", 0, 0, NULL,
	operation_backup, NULL},
    {"enablebinary", "Serve CQL clients again", "", 0, 0, NULL, operation_binary, NULL},
    {"flush", "Write memtables to disk", OPERATION_TABLES, 0, OPERATION_MANY, NULL,
	operation_on_tables, "flush"},
    {"getcompactionthroughput", "Limit of all compactions", "", 0, 0, operation_precise_options,
	operation_get_throughput, NULL},
    {"getcompactionthreshold", "How many SSTables of a table a compaction takes",
	"[--] <keyspace> <table>", 2, 2, NULL, operation_get_threshold, NULL},
    {"getconcurrentcompactors", "How many compactions may run", "", 0, 0, NULL,
	operation_get_compactors, NULL},
    {"getlogginglevels", "Log levels", "", 0, 0, NULL, operation_get_levels, NULL},
    {"gettimeout", "Timeouts", "<timeout_type>...", 1, OPERATION_MANY, NULL, operation_get_timeout,
	NULL},
    {"gettraceprobability", "How many requests are traced", "", 0, 0, NULL, operation_get_trace,
	NULL},
    {"invalidatecountercache", "Empty the counter cache", "", 0, 0, NULL, operation_invalidate,
	NULL},
    {"invalidatekeycache", "Empty the key cache", "", 0, OPERATION_MANY, NULL, operation_invalidate,
	NULL},
    {"invalidaterowcache", "Empty the row cache", "", 0, OPERATION_MANY, NULL, operation_invalidate,
	NULL},
    {"refresh", "Take over SSTables that were put into a table's directory",
	"[--] <keyspace> <table>", 2, 2, NULL, operation_refresh, NULL},
    {"refreshsizeestimates", "Write system.size_estimates and table_estimates now", "", 0, 0, NULL,
	NULL, "refreshsizeestimates"},
    {"reloadssl", "Read the TLS files again", "", 0, 0, NULL, NULL, "reloadssl"},
    {"setcachecapacity", "Change how large the caches may be, MiB",
	"[--] <key-cache-capacity> <row-cache-capacity> <counter-cache-capacity>", 3, 3, NULL,
	operation_set_caches, "cachecapacity"},
    {"setcachekeystosave", "Change how many keys of each cache are saved; 0: none",
	"[--] <key-cache-keys-to-save> <row-cache-keys-to-save> <counter-cache-keys-to-save>", 3, 3,
	NULL, operation_set_caches, "cachekeystosave"},
    {"setcompactionthreshold", "Change how many SSTables of a table a compaction takes",
	"[--] <keyspace> <table> <minthreshold> <maxthreshold>", 4, 4, NULL,
	operation_set_threshold, NULL},
    {"setcompactionthroughput", "Limit all compactions, MiB/s; 0: no limit", "[--] <value_in_mb>",
	1, 1, NULL, operation_set_throughput, NULL},
    {"setconcurrency", "Change how many threads a stage has",
	"[--] <stage-name> <maximum-concurrency> | <stage-name> <core-pool> <maximum-concurrency>",
	2, 3, NULL, operation_set_concurrency, NULL},
    {"setconcurrentcompactors", "Change how many compactions may run", "[--] <value>", 1, 1, NULL,
	operation_set_compactors, NULL},
    {"setlogginglevel", "Change a log level; without arguments: what the configuration says",
	"[--] [<component|class> <level>]", 0, 2, NULL, operation_set_level, NULL},
    {"settimeout", "Change a timeout, ms; 0: none", "<timeout_type> <timeout_in_ms>", 2, 2, NULL,
	operation_set_timeout, NULL},
    {"settraceprobability", "Change how many requests are traced, 0 to 1", "[--] <value>", 1, 1,
	NULL, operation_set_trace, NULL},
    {"snapshot", "Make a snapshot", "[--] [<keyspaces>...]", 0, OPERATION_MANY,
	operation_snapshot_options, operation_snapshot, NULL},
    {"stop", "Stop compactions", "[<compaction type>]", 0, 1, operation_stop_options,
	operation_stop, NULL},
    {"stopdaemon", "Drain and end the server", "", 0, 0, NULL, operation_stop_daemon, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
