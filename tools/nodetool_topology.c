/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the ring, and the data that moves with them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nodetool.h"

/* ---- changes of the ring --------------------------------------------------------------------------- */

static int
topology_bootstrap(struct nodetool *tool)
{
	if (tool->word_count == 0 || strcmp(tool->words[0], "resume") != 0)
		nodetool_refuse("Unknown or missing subcommand: bootstrap resume");
	printf("Resuming bootstrap\n");
	(void)nodetool_post(tool, "resumebootstrap?force=%s",
	    nodetool_option(tool, "-f") != NULL ? "true" : "false");
	printf("Resume bootstrap is complete\n");
	return 0;
}

static int
topology_decommission(struct nodetool *tool)
{
	(void)nodetool_post(
	    tool, "decommission?force=%s", nodetool_option(tool, "-f") != NULL ? "true" : "false");
	return 0;
}

static int
topology_move(struct nodetool *tool)
{
	char *end;

	(void)strtoll(tool->words[0], &end, 10);
	if (end == tool->words[0] || *end != '\0')
		nodetool_refuse("Invalid token %s", tool->words[0]);
	(void)nodetool_post(tool, "move?token=%u", tool->words[0]);
	return 0;
}

static int
topology_remove(struct nodetool *tool)
{
	const char *word = tool->words[0];

	if (strcmp(word, "status") == 0) {
		printf("%s\n", nodetool_text(nodetool_post(tool, "removalstatus"), "status"));
		return 0;
	}
	(void)nodetool_post(tool, "removenode?host_id=%u", word);
	return 0;
}

static const char *
topology_argument(const char *value)
{
	return value == NULL ? "" : value;
}

static int
topology_rebuild(struct nodetool *tool)
{
	const char *keyspace = nodetool_option(tool, "-ks");
	const char *tokens = nodetool_option(tool, "-ts");

	if (tokens != NULL && keyspace == NULL)
		nodetool_refuse("Cannot specify tokens without keyspace.");
	(void)nodetool_post(tool, "rebuild?datacenter=%u&keyspace=%u&tokens=%u&sources=%u",
	    tool->word_count > 0 ? tool->words[0] : "", topology_argument(keyspace),
	    topology_argument(tokens), topology_argument(nodetool_option(tool, "-s")));
	return 0;
}

static int
topology_cleanup(struct nodetool *tool)
{
	char tables[4096] = "";
	size_t used = 0;

	for (int i = 1; i < tool->word_count; i++) {
		int size = snprintf(tables + used, sizeof(tables) - used, "%s%s", i == 1 ? "" : ",",
		    tool->words[i]);

		if (size < 0 || (size_t)size >= sizeof(tables) - used)
			nodetool_refuse("too many tables");
		used += (size_t)size;
	}
	(void)nodetool_post(tool, "cleanup?keyspace=%u&tables=%u&jobs=%u",
	    tool->word_count > 0 ? tool->words[0] : "", tables,
	    nodetool_option(tool, "-j") != NULL ? nodetool_option(tool, "-j") : "");
	return 0;
}

/* ---- limits of streams -------------------------------------------------------------------------------- */

#define TOPOLOGY_MEGABIT (1e6 / 8)
#define TOPOLOGY_MEBIBYTE 1048576.0

static bool
topology_is_inter_dc(const struct nodetool *tool)
{
	return strstr(tool->command->name, "interdc") != NULL;
}

static const char *
topology_limit(const struct nodetool *tool)
{
	bool is_entire = nodetool_option(tool, "-e") != NULL;

	if (topology_is_inter_dc(tool))
		return is_entire ? "entire_inter_dc" : "inter_dc";
	return is_entire ? "entire" : "stream";
}

static int
topology_get_throughput(struct nodetool *tool)
{
	double bytes =
	    (double)nodetool_int(nodetool_get(tool, "streamthroughput"), topology_limit(tool));
	bool is_entire = nodetool_option(tool, "-e") != NULL;
	const char *what = is_entire ? "entire SSTable " : "";
	const char *where = topology_is_inter_dc(tool) ? "inter-datacenter " : "";

	if (is_entire || nodetool_option(tool, "-m") != NULL)
		printf("Current %s%sstream throughput: %.15g MiB/s\n", what, where,
		    bytes / TOPOLOGY_MEBIBYTE);
	else if (nodetool_option(tool, "-d") != NULL)
		printf("Current %s%sstream throughput: %.15g Mb/s\n", what, where,
		    bytes / TOPOLOGY_MEGABIT);
	else
		printf("Current %s%sstream throughput: %.0f Mb/s\n", what, where,
		    bytes / TOPOLOGY_MEGABIT);
	return 0;
}

static int
topology_set_throughput(struct nodetool *tool)
{
	bool is_mebibytes =
	    nodetool_option(tool, "-m") != NULL || nodetool_option(tool, "-e") != NULL;
	char *end, bytes[32];
	double value = strtod(tool->words[0], &end);

	if (end == tool->words[0] || *end != '\0' || !(value >= 0 && value <= 1e6))
		nodetool_refuse("'%s' is no throughput", tool->words[0]);
	snprintf(bytes, sizeof(bytes), "%.0f",
	    value * (is_mebibytes ? TOPOLOGY_MEBIBYTE : TOPOLOGY_MEGABIT));
	(void)nodetool_post(
	    tool, "streamthroughput?which=%u&bytes=%u", topology_limit(tool), bytes);
	return 0;
}

/* ---- netstats' streams ----------------------------------------------------------------------------------- */

static void
topology_print_bytes(bool is_human, uint64_t bytes)
{
	if (is_human)
		printf("%s total", nodetool_size(bytes));
	else
		printf("%" PRIu64 " bytes total", bytes);
}

static double
topology_percent(int64_t part, int64_t whole)
{
	return whole == 0 ? 100 : (double)part / (double)whole * 100;
}

static void
topology_print_flow(const json_t *flow, const char *address, bool is_human, bool is_sending)
{
	int64_t files = nodetool_int(flow, "files"), files_done = nodetool_int(flow, "files_done");
	int64_t bytes = nodetool_int(flow, "bytes"), bytes_done = nodetool_int(flow, "bytes_done");
	json_t *file;
	size_t index;

	if (files == 0)
		return;
	printf("        %s %" PRId64 " files, ", is_sending ? "Sending" : "Receiving", files);
	topology_print_bytes(is_human, (uint64_t)bytes);
	printf(". Already %s %" PRId64 " files (%.2f%%), ", is_sending ? "sent" : "received",
	    files_done, topology_percent(files_done, files));
	topology_print_bytes(is_human, (uint64_t)bytes_done);
	printf(" (%.2f%%)\n", topology_percent(bytes_done, bytes));
	json_array_foreach(json_object_get(flow, "progress"), index, file)
	{
		int64_t done = nodetool_int(file, "bytes"), total = nodetool_int(file, "total");

		printf("            %s.%s-%s %" PRId64 "/%" PRId64 " bytes (%.0f%%) %s idx:0/%s\n",
		    nodetool_text(file, "keyspace"), nodetool_text(file, "table"),
		    nodetool_text(file, "file"), done, total, floor(topology_percent(done, total)),
		    is_sending ? "sent to" : "received from", address);
	}
}

void
topology_print_streams(struct nodetool *tool, const json_t *streams)
{
	bool is_human = nodetool_option(tool, "-H") != NULL;
	const char *plan = "";
	json_t *stream;
	size_t index;

	if (json_array_size(streams) == 0)
		printf("Not sending any streams.\n");
	json_array_foreach(streams, index, stream)
	{
		const char *address = nodetool_text(stream, "address");

		if (strcmp(plan, nodetool_text(stream, "plan_id")) != 0)
			printf("%s %s\n", nodetool_text(stream, "operation"),
			    nodetool_text(stream, "plan_id"));
		plan = nodetool_text(stream, "plan_id");
		printf("    /%s", address);
		if (tool->print_port)
			printf(":%" PRId64, nodetool_int(stream, "port"));
		putchar('\n');
		topology_print_flow(json_object_get(stream, "receiving"), address, is_human, false);
		topology_print_flow(json_object_get(stream, "sending"), address, is_human, true);
	}
}

/* ---- the commands ----------------------------------------------------------------------------------------- */

static const struct nodetool_option topology_force_options[] = {
    {"-f", "--force", NULL, "Leave although a keyspace keeps too few nodes for its replicas"},
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option topology_resume_options[] = {
    {"-f", "--force", NULL, "Resume although cassandra.reset_bootstrap_progress is set"},
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option topology_jobs_options[] = {
    {"-j", "--jobs", "jobs",
	"How many SSTables of a table at once (2); 0: as many as there are compactors"},
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option topology_rebuild_options[] = {
    {"-ks", "--keyspace", "specific_keyspace", "Only this keyspace"},
    {"-ts", "--tokens", "specific_tokens", "Only these ranges of it: (start,end],(start,end]"},
    {"-s", "--sources", "specific_sources", "Only from these nodes, separated by commas"},
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option topology_get_options[] = {
    {"-e", "--entire-sstable-throughput", NULL, "The limit of SSTables that go whole, MiB/s"},
    {"-m", "--mib", NULL, "In MiB/s"}, {"-d", "--precise-mbit", NULL, "Megabits/s with fractions"},
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option topology_set_options[] = {
    {"-e", "--entire-sstable-throughput", NULL, "The limit of SSTables that go whole, MiB/s"},
    {"-m", "--mib", NULL, "In MiB/s"}, {NULL, NULL, NULL, NULL}};

const struct nodetool_command nodetool_topology_commands[] = {
    {"bootstrap", "Go on with a bootstrap that failed", "resume", 0, 1, topology_resume_options,
	topology_bootstrap, NULL},
    {"cleanup", "Delete data that other nodes own now", "[--] [<keyspace> <tables>...]", 0,
	NODETOOL_WORDS_MAX, topology_jobs_options, topology_cleanup, NULL},
    {"decommission", "Leave the ring for good, and give the data away", "", 0, 0,
	topology_force_options, topology_decommission, NULL},
    {"getinterdcstreamthroughput", "Limit of streams to other data centers", "", 0, 0,
	topology_get_options, topology_get_throughput, NULL},
    {"getstreamthroughput", "Limit of all streams", "", 0, 0, topology_get_options,
	topology_get_throughput, NULL},
    {"move", "Move to another token, of a node that has one", "[--] <new token>", 1, 1, NULL,
	topology_move, NULL},
    {"rebuild", "Fetch this node's data from others", "[--] [<src-dc-name>]", 0, 1,
	topology_rebuild_options, topology_rebuild, NULL},
    {"removenode", "Take a dead node out of the ring; status or force of it",
	"[--] <status>|<force>|<ID>", 1, 1, NULL, topology_remove, NULL},
    {"setinterdcstreamthroughput", "Limit streams to other data centers, Mb/s; 0: no limit",
	"[--] <value_in_mb>", 1, 1, topology_set_options, topology_set_throughput, NULL},
    {"setstreamthroughput", "Limit all streams, Mb/s; 0: no limit", "[--] <value_in_mb>", 1, 1,
	topology_set_options, topology_set_throughput, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
