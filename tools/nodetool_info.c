/* SPDX-License-Identifier: Apache-2.0 */
/* What the node and its ring are. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nodetool.h"

static const char *
info_address(const struct nodetool *tool, const json_t *info)
{
	static char text[128];

	if (!tool->print_port)
		return nodetool_text(info, "address");
	snprintf(text, sizeof(text), "%s:%" PRId64, nodetool_text(info, "address"),
	    nodetool_int(info, "storage_port"));
	return text;
}

static int
info_version(struct nodetool *tool)
{
	json_t *info = nodetool_get(tool, "info");

	printf("ReleaseVersion: %s\n", nodetool_text(info, "release_version"));
	if (nodetool_option(tool, "-v") != NULL)
		printf("HelenusVersion: %s\n", nodetool_text(info, "helenus_version"));
	return 0;
}

/* A keyspace argument must exist. */
static void
info_check_keyspace(struct nodetool *tool)
{
	if (tool->word_count > 0)
		(void)nodetool_get(tool, "tables?keyspace=%u", tool->words[0]);
}

static int
info_status(struct nodetool *tool)
{
	json_t *info = nodetool_get(tool, "info");
	const char *dc = nodetool_text(info, "data_center");
	struct nodetool_grid grid;

	info_check_keyspace(tool);
	printf("Datacenter: %s\n", dc);
	for (size_t i = 0; i < strlen("Datacenter: ") + strlen(dc); i++)
		putchar('=');
	printf("\nStatus=Up/Down\n|/ State=Normal/Leaving/Joining/Moving\n");
	nodetool_grid_init(&grid, "  ", 8);
	for (int i = 0; i < 8; i++) {
		static const char *const head[] = {
		    "--", "Address", "Load", "Tokens", "Owns (effective)", "Host ID", "Rack", ""};

		nodetool_grid_add(&grid, "%s", head[i]);
	}
	grid.columns = 7;
	free(grid.cells[--grid.cell_count]);
	nodetool_grid_add(&grid, "UN");
	nodetool_grid_add(&grid, "%s", info_address(tool, info));
	nodetool_grid_add(&grid, "%s", nodetool_size((uint64_t)nodetool_int(info, "load_bytes")));
	nodetool_grid_add(&grid, "%zu", json_array_size(json_object_get(info, "tokens")));
	nodetool_grid_add(&grid, "100.0%%");
	nodetool_grid_add(&grid, "%s", nodetool_text(info, "host_id"));
	nodetool_grid_add(&grid, "%s", nodetool_text(info, "rack"));
	nodetool_grid_print(&grid);
	putchar('\n');
	return 0;
}

static int
info_ring(struct nodetool *tool)
{
	json_t *info = nodetool_get(tool, "info"), *tokens = json_object_get(info, "tokens"),
	       *token;
	const char *address = info_address(tool, info);
	int width = (int)strlen(address) + 5;
	size_t index, count = json_array_size(tokens);
	const char *load = nodetool_size((uint64_t)nodetool_int(info, "load_bytes"));

	info_check_keyspace(tool);
	printf("\nDatacenter: %s\n==========\n", nodetool_text(info, "data_center"));
	printf("%-*s  %-12s%-7s%-8s%-16s%-20s%-44s\n", width, "Address", "Rack", "Status", "State",
	    "Load", "Owns", "Token");
	if (count > 0)
		printf("%-*s  %-12s%-7s%-8s%-16s%-20s%-44" JSON_INTEGER_FORMAT "\n", width, "", "",
		    "", "", "", "", json_integer_value(json_array_get(tokens, count - 1)));
	json_array_foreach(tokens, index, token)
	    printf("%-*s  %-12s%-7s%-8s%-16s%-20s%-44" JSON_INTEGER_FORMAT "\n", width, address,
		nodetool_text(info, "rack"), "Up", "Normal", load, "100.00%",
		json_integer_value(token));
	printf("\n");
	if (count > 1)
		printf("  Warning: \"nodetool ring\" is used to output all the tokens of a node.\n"
		       "  To view status related info of a node use \"nodetool status\" "
		       "instead.\n\n\n");
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

static int
info_info(struct nodetool *tool)
{
	json_t *info = nodetool_get(tool, "info"), *caches = json_object_get(info, "caches");
	json_t *tokens = json_object_get(info, "tokens"), *token;
	const json_t *chunks = json_object_get(caches, "chunk");
	size_t index;

	printf("%-23s: %s\n", "ID", nodetool_text(info, "host_id"));
	printf("%-23s: %s\n", "Gossip active", "true");
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
	printf("%-23s: %s\n", "Percent Repaired", "0.0%");
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
info_describe_cluster(struct nodetool *tool)
{
	json_t *cluster = nodetool_get(tool, "cluster");
	json_t *keyspaces = json_object_get(cluster, "keyspaces"), *keyspace;
	const char *address = info_address(tool, cluster),
		   *snitch = nodetool_text(cluster, "snitch");
	size_t index;

	printf("Cluster Information:\n\tName: %s\n", nodetool_text(cluster, "cluster_name"));
	printf("\tSnitch: %s%s\n",
	    strchr(snitch, '.') == NULL ? "org.apache.cassandra.locator." : "", snitch);
	printf("\tDynamicEndPointSnitch: %s\n",
	    nodetool_true(cluster, "dynamic_snitch") ? "enabled" : "disabled");
	printf("\tPartitioner: %s\n", nodetool_text(cluster, "partitioner"));
	printf("\tSchema versions:\n\t\t%s: [%s]\n\n", nodetool_text(cluster, "schema_version"),
	    address);
	printf("Stats for all nodes:\n\tLive: 1\n\tJoining: 0\n\tMoving: 0\n\tLeaving: 0\n"
	       "\tUnreachable: 0\n\n");
	printf(
	    "Data Centers: \n\t%s #Nodes: 1 #Down: 0\n\n", nodetool_text(cluster, "data_center"));
	printf("Database versions:\n\t%s: [%s:%" PRId64 "]\n\n",
	    nodetool_text(cluster, "release_version"), nodetool_text(cluster, "address"),
	    nodetool_int(cluster, "storage_port"));
	printf("Keyspaces:\n");
	json_array_foreach(keyspaces, index, keyspace)
	{
		json_t *replication = json_object_get(keyspace, "replication"), *value;
		const char *class = nodetool_text(replication, "class"), *name;
		const char *dot = strrchr(class, '.');
		bool is_first = true;

		printf("\t%s -> Replication class: %s {", nodetool_text(keyspace, "name"),
		    dot == NULL ? class : dot + 1);
		json_object_foreach(replication, name, value)
		{
			if (strcmp(name, "class") == 0)
				continue;
			printf("%s%s=%s", is_first ? "" : ", ", name, json_string_value(value));
			is_first = false;
		}
		printf("}\n");
	}
	return 0;
}

static int
info_describe_ring(struct nodetool *tool)
{
	json_t *cluster = nodetool_get(tool, "cluster"),
	       *tokens = json_object_get(cluster, "tokens");
	const char *address = info_address(tool, cluster);
	const char *rpc = nodetool_text(cluster, "rpc_address");
	size_t count = json_array_size(tokens);

	info_check_keyspace(tool);
	printf("Schema Version:%s\nTokenRange: \n", nodetool_text(cluster, "schema_version"));
	for (size_t i = 0; i < count; i++)
		printf("\tTokenRange(start_token:%" JSON_INTEGER_FORMAT
		       ", end_token:%" JSON_INTEGER_FORMAT ", endpoints:[%s], rpc_endpoints:[%s], "
		       "endpoint_details:[EndpointDetails(host:%s, datacenter:%s, rack:%s)])\n",
		    json_integer_value(json_array_get(tokens, (i + count - 1) % count)),
		    json_integer_value(json_array_get(tokens, i)), address, rpc, address,
		    nodetool_text(cluster, "data_center"), nodetool_text(cluster, "rack"));
	return 0;
}

static int
info_gossip(struct nodetool *tool)
{
	json_t *cluster = nodetool_get(tool, "cluster"),
	       *tokens = json_object_get(cluster, "tokens");
	const char *mode = nodetool_text(cluster, "mode");
	bool is_serving = nodetool_true(cluster, "native_transport_active");
	json_int_t first = json_integer_value(json_array_get(tokens, 0));

	printf("/%s\n", info_address(tool, cluster));
	printf("  generation:%" PRId64 "\n  heartbeat:%" PRId64 "\n",
	    nodetool_int(cluster, "generation"), nodetool_int(cluster, "uptime_s"));
	printf("  STATUS:1:%s,%" JSON_INTEGER_FORMAT "\n",
	    strcmp(mode, "NORMAL") == 0 ? "NORMAL" : "shutdown", first);
	printf("  LOAD:1:%" PRId64 ".0\n", nodetool_int(cluster, "load_bytes"));
	printf("  SCHEMA:1:%s\n", nodetool_text(cluster, "schema_version"));
	printf("  DC:1:%s\n  RACK:1:%s\n", nodetool_text(cluster, "data_center"),
	    nodetool_text(cluster, "rack"));
	printf("  RELEASE_VERSION:1:%s\n", nodetool_text(cluster, "release_version"));
	printf("  RPC_ADDRESS:1:%s\n  NET_VERSION:1:12\n", nodetool_text(cluster, "rpc_address"));
	printf("  HOST_ID:1:%s\n  RPC_READY:1:%s\n", nodetool_text(cluster, "host_id"),
	    is_serving ? "true" : "false");
	printf("  NATIVE_ADDRESS_AND_PORT:1:%s:%" PRId64 "\n",
	    nodetool_text(cluster, "rpc_address"), nodetool_int(cluster, "native_port"));
	printf("  SSTABLE_VERSIONS:1:big-nb\n  TOKENS:1:<hidden>\n\n");
	return 0;
}

static int
info_netstats(struct nodetool *tool)
{
	json_t *info = nodetool_get(tool, "info");

	printf("Mode: %s\nNot sending any streams.\n", nodetool_text(info, "mode"));
	printf("Read Repair Statistics:\nAttempted: 0\nMismatch (Blocking): 0\n"
	       "Mismatch (Background): 0\n");
	printf("%-25s%10s%10s%15s%10s\n", "Pool Name", "Active", "Pending", "Completed", "Dropped");
	printf("%-25s%10s%10s%15s%10s\n", "Large messages", "n/a", "0", "0", "0");
	printf("%-25s%10s%10s%15s%10s\n", "Small messages", "n/a", "0", "0", "0");
	printf("%-25s%10s%10s%15s%10s\n", "Gossip messages", "n/a", "0", "0", "0");
	return 0;
}

static int
info_failure_detector(struct nodetool *tool)
{
	(void)nodetool_get(tool, "timeouts");
	printf("  Endpoint,             Phi\n");
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
info_status_gossip(struct nodetool *tool)
{
	const char *mode = nodetool_text(nodetool_get(tool, "info"), "mode");

	printf("%s\n", strcmp(mode, "NORMAL") == 0 ? "running" : "not running");
	return 0;
}

/* A key of the configuration, shown. */
static const char *
info_setting(struct nodetool *tool, const char *name)
{
	return nodetool_text(nodetool_get(tool, "settings"), name);
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
info_status_handoff(struct nodetool *tool)
{
	printf("Hinted handoff is %s\n",
	    strcmp(info_setting(tool, "hinted_handoff_enabled"), "true") == 0 ? "running"
									      : "not running");
	return 0;
}

static int
info_max_hint_window(struct nodetool *tool)
{
	printf("Current max hint window: %s ms\n", info_setting(tool, "max_hint_window_in_ms"));
	return 0;
}

static int
info_default_rf(struct nodetool *tool)
{
	printf("%s\n", info_setting(tool, "default_keyspace_rf"));
	return 0;
}

static int
info_column_index_size(struct nodetool *tool)
{
	printf("Current size for column_index_size: %s KiB\n",
	    info_setting(tool, "column_index_size_in_kb"));
	return 0;
}

static int
info_batchlog_throttle(struct nodetool *tool)
{
	printf("Batchlog replay throttle: %s KB/s\n",
	    info_setting(tool, "batchlog_replay_throttle_in_kb"));
	return 0;
}

static int
info_snapshot_throttle(struct nodetool *tool)
{
	const char *throttle = info_setting(tool, "snapshot_links_per_second");

	if (strcmp(throttle, "0") == 0)
		printf("Snapshot throttle is disabled\n");
	else
		printf("Current snapshot throttle: %s links/s\n", throttle);
	return 0;
}

static int
info_stream_throughput(struct nodetool *tool)
{
	bool is_inter = strcmp(tool->command->name, "getinterdcstreamthroughput") == 0;

	printf("Current %sstream throughput: %s Mb/s\n", is_inter ? "inter-datacenter " : "",
	    info_setting(tool,
		is_inter ? "inter_dc_stream_throughput_outbound_megabits_per_sec"
			 : "stream_throughput_outbound_megabits_per_sec"));
	return 0;
}

static int
info_concurrent_view_builders(struct nodetool *tool)
{
	printf("Current number of concurrent view builders in the system is: \n%s\n",
	    info_setting(tool, "concurrent_materialized_view_builders"));
	return 0;
}

static int
info_seeds(struct nodetool *tool)
{
	(void)info_setting(tool, "seeds");
	printf("Seed node list does not contain any remote node IPs\n");
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
static const struct nodetool_option info_human_options[] = {
    {"-H", "--human-readable", NULL, "Sizes with units"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option info_resolve_options[] = {
    {"-r", "--resolve-ip", NULL, "Show names instead of addresses"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option info_throughput_options[] = {
    {"-e", "--entire-sstable-throughput", NULL, "That of whole SSTables"},
    {"-m", "--mib", NULL, "In MiB/s"}, {"-d", "--precise-mbit", NULL, "Not rounded"},
    {NULL, NULL, NULL, NULL}};

const struct nodetool_command nodetool_info_commands[] = {
    {"describecluster", "Name, snitch, partitioner and schema version of the cluster", "", 0, 0,
	NULL, info_describe_cluster, NULL},
    {"describering", "Token ranges of a keyspace and who holds them", "[--] <keyspace>", 1, 1, NULL,
	info_describe_ring, NULL},
    {"failuredetector", "How suspect each other node is", "", 0, 0, NULL, info_failure_detector,
	NULL},
    {"gcstats", "Garbage collection: there is none", "", 0, 0, NULL, info_gcstats, NULL},
    {"getbatchlogreplaythrottle", "Limit of the batchlog's replay", "", 0, 0, NULL,
	info_batchlog_throttle, NULL},
    {"getcolumnindexsize", "Granularity of the index inside a partition", "", 0, 0, NULL,
	info_column_index_size, NULL},
    {"getconcurrentviewbuilders", "How many view builders may run", "", 0, 0, NULL,
	info_concurrent_view_builders, NULL},
    {"getdefaultrf", "Replication factor of keyspaces that name none", "", 0, 0, NULL,
	info_default_rf, NULL},
    {"getinterdcstreamthroughput", "Limit of streams to other data centers", "", 0, 0,
	info_throughput_options, info_stream_throughput, NULL},
    {"getmaxhintwindow", "How long hints are kept for a node that is down", "", 0, 0, NULL,
	info_max_hint_window, NULL},
    {"getseeds", "Seeds other than this node", "", 0, 0, NULL, info_seeds, NULL},
    {"getsnapshotthrottle", "Limit of links a second while a snapshot is made", "", 0, 0, NULL,
	info_snapshot_throttle, NULL},
    {"getstreamthroughput", "Limit of streams", "", 0, 0, info_throughput_options,
	info_stream_throughput, NULL},
    {"gossipinfo", "What gossip tells of the nodes", "", 0, 0, info_resolve_options, info_gossip,
	NULL},
    {"info", "The node: load, uptime, memory, caches", "", 0, 0, info_tokens_options, info_info,
	NULL},
    {"netstats", "Streams and messages between nodes", "", 0, 1, info_human_options, info_netstats,
	NULL},
    {"ring", "All tokens of the ring", "[<keyspace>]", 0, 1, info_resolve_options, info_ring, NULL},
    {"sjk", "Java tools: there is no Java", "", 0, NODETOOL_WORDS_MAX - 1, NULL, info_sjk, NULL},
    {"status", "The nodes of the cluster: state, load, ids", "[--] [<keyspace>]", 0, 1,
	info_resolve_options, info_status, NULL},
    {"statusbackup", "Are incremental backups on", "", 0, 0, NULL, info_status_backup, NULL},
    {"statusbinary", "Are CQL clients served", "", 0, 0, NULL, info_status_binary, NULL},
    {"statusgossip", "Does the node gossip", "", 0, 0, NULL, info_status_gossip, NULL},
    {"statushandoff", "Are hints stored for nodes that are down", "", 0, 0, NULL,
	info_status_handoff, NULL},
    {"version", "The Cassandra version that the node behaves like", "", 0, 0, info_version_options,
	info_version, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
