/* SPDX-License-Identifier: Apache-2.0 */
/* What the node is; its ring is nodetool_cluster.c's. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nodetool.h"

static int
info_version(struct nodetool *tool)
{
	json_t *info = nodetool_get(tool, "info");

	printf("ReleaseVersion: %s\n", nodetool_text(info, "release_version"));
	if (nodetool_option(tool, "-v") != NULL)
		printf("HelenusVersion: %s\n", nodetool_text(info, "helenus_version"));
	return 0;
}

static void
info_cache(const json_t *caches, const char *name, const char *title)
{
	const json_t *cache = json_object_get(caches, name);
	int64_t hits = nodetool_int(cache, "hits"), requests = nodetool_int(cache, "requests");
	char rate[32] = "NaN";

	if (requests > 0)
		snprintf(rate, sizeof(rate), "%.3f", (double)hits / (double)requests);
	printf("%-23s: entries %" PRId64 ", size %s, capacity %s, %" PRId64 " hits, %" PRId64
	       " requests, %s recent hit rate, %" PRId64 " save period in seconds\n",
	    title, nodetool_int(cache, "entries"),
	    nodetool_size((uint64_t)nodetool_int(cache, "size_bytes")),
	    nodetool_size((uint64_t)nodetool_int(cache, "capacity_bytes")), hits, requests, rate,
	    nodetool_int(cache, "save_period_s"));
}

/* Of the data of all tables. */
static void
info_repaired(struct nodetool *tool)
{
	json_t *tables = json_object_get(nodetool_get(tool, "tables"), "tables"), *table;
	double repaired = 0, all = 0;
	size_t index;

	json_array_foreach(tables, index, table)
	{
		double bytes = (double)nodetool_int(table, "repaired_bytes");

		repaired += bytes;
		all += bytes + (double)nodetool_int(table, "unrepaired_bytes") +
		    (double)nodetool_int(table, "pending_repair_bytes");
	}
	printf("%-23s: %.1f%%\n", "Percent Repaired", all > 0 ? 100 * repaired / all : 100.0);
}

static int
info_info(struct nodetool *tool)
{
	json_t *info = nodetool_get(tool, "info"), *caches = json_object_get(info, "caches");
	json_t *tokens = json_object_get(info, "tokens"), *token;
	const json_t *chunks = json_object_get(caches, "chunk");
	size_t index;

	printf("%-23s: %s\n", "ID", nodetool_text(info, "host_id"));
	printf("%-23s: %s\n", "Gossip active",
	    nodetool_true(info, "gossip_active") ? "true" : "false");
	printf("%-23s: %s\n", "Native Transport active",
	    nodetool_true(info, "native_transport_active") ? "true" : "false");
	printf("%-23s: %s\n", "Load", nodetool_size((uint64_t)nodetool_int(info, "load_bytes")));
	printf("%-23s: %" PRId64 "\n", "Generation No", nodetool_int(info, "generation"));
	printf("%-23s: %" PRId64 "\n", "Uptime (seconds)", nodetool_int(info, "uptime_s"));
	printf("%-23s: %.2f / %.2f\n", "Heap Memory (MB)",
	    (double)nodetool_int(info, "resident_bytes") / 1048576,
	    (double)nodetool_int(info, "memory_bytes") / 1048576);
	printf("%-23s: %.2f\n", "Off Heap Memory (MB)",
	    (double)nodetool_int(info, "memtable_bytes") / 1048576);
	printf("%-23s: %s\n", "Data Center", nodetool_text(info, "data_center"));
	printf("%-23s: %s\n", "Rack", nodetool_text(info, "rack"));
	printf("%-23s: %" PRId64 "\n", "Exceptions", nodetool_int(info, "exceptions"));
	info_cache(caches, "key", "Key Cache");
	info_cache(caches, "row", "Row Cache");
	info_cache(caches, "counter", "Counter Cache");
	if (nodetool_int(chunks, "capacity_bytes") > 0) {
		int64_t requests = nodetool_int(chunks, "requests"),
			hits = nodetool_int(chunks, "hits");
		char rate[32] = "NaN";

		if (requests > 0)
			snprintf(rate, sizeof(rate), "%.3f", (double)hits / (double)requests);

		printf("%-23s: entries %" PRId64 ", size %s, capacity %s, %" PRId64
		       " misses, %" PRId64 " requests, %s recent hit rate, NaN microseconds miss "
		       "latency\n",
		    "Chunk Cache", nodetool_int(chunks, "entries"),
		    nodetool_size((uint64_t)nodetool_int(chunks, "size_bytes")),
		    nodetool_size((uint64_t)nodetool_int(chunks, "capacity_bytes")),
		    requests - hits, requests, rate);
	}
	info_repaired(tool);
	if (json_array_size(tokens) != 1 && nodetool_option(tool, "-T") == NULL) {
		printf("%-23s: (invoke with -T/--tokens to see all %zu tokens)\n", "Token",
		    json_array_size(tokens));
		return 0;
	}
	json_array_foreach(tokens, index, token)
	    printf("%-23s: %" JSON_INTEGER_FORMAT "\n", "Token", json_integer_value(token));
	return 0;
}

static int
info_status_binary(struct nodetool *tool)
{
	printf("%s\n",
	    nodetool_true(nodetool_get(tool, "info"), "native_transport_active") ? "running"
										 : "not running");
	return 0;
}

static int
info_status_backup(struct nodetool *tool)
{
	printf("%s\n",
	    json_is_true(json_object_get(nodetool_get(tool, "info"), "incremental_backups"))
		? "running"
		: "not running");
	return 0;
}

static int
info_gcstats(struct nodetool *tool)
{
	(void)nodetool_get(tool, "timeouts");
	printf("Interval (ms) Max GC Elapsed (ms)Total GC Elapsed (ms)Stdev GC Elapsed (ms)   GC "
	       "Reclaimed (MB)         Collections      Direct Memory Bytes\n");
	printf("not applicable: there is no garbage collector\n");
	return 0;
}

static int
info_sjk(struct nodetool *tool)
{
	(void)tool;
	printf("not applicable: there is no Java virtual machine\n");
	return 0;
}

static const struct nodetool_option info_version_options[] = {
    {"-v", "--verbose", NULL, "The server's own version too"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option info_tokens_options[] = {
    {"-T", "--tokens", NULL, "Show all tokens"}, {NULL, NULL, NULL, NULL}};
const struct nodetool_command nodetool_info_commands[] = {
    {"gcstats", "Garbage collection: there is none", "", 0, 0, NULL, info_gcstats, NULL},
    {"info", "The node: load, uptime, memory, caches", "", 0, 0, info_tokens_options, info_info,
	NULL},
    {"sjk", "Java tools: there is no Java", "", 0, NODETOOL_WORDS_MAX - 1, NULL, info_sjk, NULL},
    {"statusbackup", "Are incremental backups on", "", 0, 0, NULL, info_status_backup, NULL},
    {"statusbinary", "Are CQL clients served", "", 0, 0, NULL, info_status_binary, NULL},
    {"version", "The Cassandra version that the node behaves like", "", 0, 0, info_version_options,
	info_version, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
