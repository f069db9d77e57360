/* SPDX-License-Identifier: Apache-2.0 */
/* Stages, latencies, clients, compactions. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/nodetool.h"

static const struct nodetool_option stats_format_options[] = {
    {"-F", "--format", "format", "json or yaml instead of columns"}, {NULL, NULL, NULL, NULL}};

/* ---- tpstats -------------------------------------------------------------------------------------- */

static void
stats_tp_structured(const json_t *answer, const char *format)
{
	json_t *pools = json_object(), *waits = json_object(), *dropped = json_object(), *each;
	json_t *all;
	size_t index;

	json_array_foreach(json_object_get(answer, "stages"), index, each)
	{
		json_object_set_new(pools, nodetool_text(each, "name"),
		    json_pack("{s:I,s:I,s:I,s:I,s:I}", "ActiveTasks", nodetool_int(each, "active"),
			"PendingTasks", nodetool_int(each, "pending"), "CompletedTasks",
			nodetool_int(each, "completed"), "CurrentlyBlockedTasks",
			nodetool_int(each, "blocked"), "TotalBlockedTasks",
			nodetool_int(each, "blocked_total")));
	}
	json_array_foreach(json_object_get(answer, "dropped"), index, each)
	{
		const json_t *wait = json_object_get(each, "queue_wait_us");
		const char *name = nodetool_text(each, "message");

		json_object_set_new(dropped, name, json_integer(nodetool_int(each, "dropped")));
		json_object_set_new(waits, name,
		    json_pack("[f,f,f,f,f,f,f]", (double)nodetool_int(wait, "p50"),
			(double)nodetool_int(wait, "p75"), (double)nodetool_int(wait, "p95"),
			(double)nodetool_int(wait, "p98"), (double)nodetool_int(wait, "p99"),
			(double)nodetool_int(wait, "min"), (double)nodetool_int(wait, "max")));
	}
	all = json_pack("{s:o,s:o,s:o}", "ThreadPools", pools, "WaitLatencies", waits,
	    "DroppedMessage", dropped);
	nodetool_print_structured(all, format);
	json_decref(all);
}

static int
stats_tpstats(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "stages"), *each;
	const char *format = nodetool_option(tool, "-F");
	struct nodetool_grid grid;
	size_t index;

	if (format != NULL) {
		stats_tp_structured(answer, format);
		return 0;
	}
	nodetool_grid_init(&grid, " ", 6);
	nodetool_grid_add(&grid, "Pool Name");
	nodetool_grid_add(&grid, "Active");
	nodetool_grid_add(&grid, "Pending");
	nodetool_grid_add(&grid, "Completed");
	nodetool_grid_add(&grid, "Blocked");
	nodetool_grid_add(&grid, "All time blocked");
	json_array_foreach(json_object_get(answer, "stages"), index, each)
	{
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "name"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "active"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "pending"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "completed"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "blocked"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "blocked_total"));
	}
	nodetool_grid_print(&grid);
	printf("\nLatencies waiting in queue (micros) per dropped message types\n");
	nodetool_grid_init(&grid, " ", 6);
	nodetool_grid_add(&grid, "Message type");
	nodetool_grid_add(&grid, "Dropped    ");
	nodetool_grid_add(&grid, "50%%     ");
	nodetool_grid_add(&grid, "95%%     ");
	nodetool_grid_add(&grid, "99%%     ");
	nodetool_grid_add(&grid, "Max");
	json_array_foreach(json_object_get(answer, "dropped"), index, each)
	{
		const json_t *wait = json_object_get(each, "queue_wait_us");

		nodetool_grid_add(&grid, "%s", nodetool_text(each, "message"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "dropped"));
		nodetool_grid_add(&grid, "%" PRId64 ".0", nodetool_int(wait, "p50"));
		nodetool_grid_add(&grid, "%" PRId64 ".0", nodetool_int(wait, "p95"));
		nodetool_grid_add(&grid, "%" PRId64 ".0", nodetool_int(wait, "p99"));
		nodetool_grid_add(&grid, "%" PRId64 ".0", nodetool_int(wait, "max"));
	}
	nodetool_grid_print(&grid);
	return 0;
}

static int
stats_concurrency(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "stages"), *each;
	size_t index;
	int shown = 0;

	for (int pass = 0; pass < 2; pass++) {
		json_array_foreach(json_object_get(answer, "stages"), index, each)
		{
			const char *name = nodetool_text(each, "name");
			size_t length = strlen(name);
			bool is_stage = length > 5 && strcmp(name + length - 5, "Stage") == 0;
			bool is_wanted = tool->word_count == 0 && is_stage;

			for (int i = 0; i < tool->word_count; i++)
				is_wanted |= strcasecmp(tool->words[i], name) == 0;
			if (!is_wanted)
				continue;
			if (pass == 0) {
				shown++;
				continue;
			}
			printf("%-25s%16d%16" PRId64 "\n", name, 0, nodetool_int(each, "threads"));
		}
		if (pass == 0 && shown < (tool->word_count > 0 ? tool->word_count : 1))
			nodetool_refuse("Unknown stage: %s", tool->words[0]);
		if (pass == 0)
			printf("%-25s%16s%16s\n", "Stage", "CorePoolSize", "MaximumPoolSize");
	}
	return 0;
}

/* ---- latencies -------------------------------------------------------------------------------------- */

static const struct {
	const char *title, *name;
} stats_rows[] = {{"50%", "p50"}, {"75%", "p75"}, {"95%", "p95"}, {"98%", "p98"}, {"99%", "p99"},
    {"Min", "min"}, {"Max", "max"}};

static int
stats_proxy_histograms(struct nodetool *tool)
{
	static const char *const columns[] = {
	    "read", "write", "range", "cas_read", "cas_write", "view_write"};
	json_t *answer = nodetool_get(tool, "proxyhistograms");

	printf("proxy histograms\n%-10s%19s%19s%19s%19s%19s%19s\n", "Percentile", "Read Latency",
	    "Write Latency", "Range Latency", "CAS Read Latency", "CAS Write Latency",
	    "View Write Latency");
	printf("%-10s%19s%19s%19s%19s%19s%19s\n", "", "(micros)", "(micros)", "(micros)",
	    "(micros)", "(micros)", "(micros)");
	for (size_t i = 0; i < sizeof(stats_rows) / sizeof(stats_rows[0]); i++) {
		printf("%-10s", stats_rows[i].title);
		for (int j = 0; j < 6; j++)
			printf("%19.2f",
			    (double)nodetool_int(
				json_object_get(answer, columns[j]), stats_rows[i].name));
		putchar('\n');
	}
	putchar('\n');
	return 0;
}

static int
stats_table_histograms(struct nodetool *tool)
{
	const char *keyspace = tool->words[0],
		   *table = tool->word_count > 1 ? tool->words[1] : NULL;
	const char *dot = strchr(keyspace, '.');
	char name[128];
	json_t *answer;

	if (table == NULL && dot != NULL) {
		snprintf(name, sizeof(name), "%.*s", (int)(dot - keyspace), keyspace);
		table = dot + 1;
		keyspace = name;
	}
	if (table == NULL)
		nodetool_refuse("tablehistograms requires <keyspace> <table> or <keyspace.table> "
				"format argument.");
	answer = nodetool_get(tool, "tablehistograms?keyspace=%u&table=%u", keyspace, table);
	printf("%s/%s histograms\n%-10s%18s%18s%18s%18s%18s\n", keyspace, table, "Percentile",
	    "Read Latency", "Write Latency", "SSTables", "Partition Size", "Cell Count");
	printf("%-10s%18s%18s%18s%18s%18s\n", "", "(micros)", "(micros)", "", "(bytes)", "");
	for (size_t i = 0; i < sizeof(stats_rows) / sizeof(stats_rows[0]); i++) {
		const char *row = stats_rows[i].name;

		printf("%-10s%18.2f%18.2f%18.2f%18" PRId64 "%18" PRId64 "\n", stats_rows[i].title,
		    (double)nodetool_int(json_object_get(answer, "read_us"), row),
		    (double)nodetool_int(json_object_get(answer, "write_us"), row),
		    (double)nodetool_int(json_object_get(answer, "sstables"), row),
		    nodetool_int(json_object_get(answer, "partition_size"), row),
		    nodetool_int(json_object_get(answer, "cell_count"), row));
	}
	putchar('\n');
	return 0;
}

/* ---- clients ------------------------------------------------------------------------------------------ */

static const char *
stats_or(const char *text, const char *other)
{
	return *text == '\0' ? other : text;
}

static void
stats_all_clients(const json_t *clients, bool has_options)
{
	static const char *const head[] = {"Address", "SSL", "Cipher", "Protocol", "Version",
	    "User", "Keyspace", "Requests", "Driver-Name", "Driver-Version", "Client-Options"};
	struct nodetool_grid grid;
	json_t *client;
	size_t index, columns = has_options ? 11 : 10;

	if (json_array_size(clients) == 0)
		return;
	nodetool_grid_init(&grid, " ", columns);
	for (size_t i = 0; i < columns; i++)
		nodetool_grid_add(&grid, "%s", head[i]);
	json_array_foreach(clients, index, client)
	{
		bool is_ssl = nodetool_true(client, "ssl");

		nodetool_grid_add(&grid, "/%s:%" PRId64, nodetool_text(client, "address"),
		    nodetool_int(client, "port"));
		nodetool_grid_add(&grid, "%s", is_ssl ? "true" : "false");
		nodetool_grid_add(
		    &grid, "%s", stats_or(nodetool_text(client, "cipher"), "undefined"));
		nodetool_grid_add(
		    &grid, "%s", stats_or(nodetool_text(client, "ssl_protocol"), "undefined"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(client, "protocol_version"));
		nodetool_grid_add(
		    &grid, "%s", stats_or(nodetool_text(client, "user"), "anonymous"));
		nodetool_grid_add(&grid, "%s", nodetool_text(client, "keyspace"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(client, "requests"));
		nodetool_grid_add(
		    &grid, "%s", stats_or(nodetool_text(client, "driver_name"), "undefined"));
		nodetool_grid_add(
		    &grid, "%s", stats_or(nodetool_text(client, "driver_version"), "undefined"));
		if (has_options) {
			char *text = json_dumps(json_object_get(client, "options"), JSON_COMPACT);

			nodetool_grid_add(&grid, "%s", text);
			free(text);
		}
	}
	nodetool_grid_print(&grid);
	putchar('\n');
}

static void
stats_clients_by_protocol(const json_t *seen)
{
	struct nodetool_grid grid;
	json_t *client;
	size_t index;

	printf("Clients by protocol version\n\n");
	nodetool_grid_init(&grid, " ", 3);
	nodetool_grid_add(&grid, "Protocol-Version");
	nodetool_grid_add(&grid, "IP-Address");
	nodetool_grid_add(&grid, "Last-Seen");
	json_array_foreach(seen, index, client)
	{
		int64_t version = nodetool_int(client, "protocol_version");
		time_t last = (time_t)(nodetool_int(client, "last_seen_ms") / 1000);
		char text[64];
		struct tm when;

		strftime(text, sizeof(text), "%b %d, %Y %T", localtime_r(&last, &when));
		nodetool_grid_add(&grid, "%" PRId64 "/v%" PRId64, version, version);
		nodetool_grid_add(&grid, "/%s", nodetool_text(client, "address"));
		nodetool_grid_add(&grid, "%s", text);
	}
	nodetool_grid_print(&grid);
	putchar('\n');
}

static int
stats_clients(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "clients"),
	       *clients = json_object_get(answer, "clients");
	json_t *users = nodetool_keep(tool, json_object()), *client, *value;
	struct nodetool_grid grid;
	const char *user;
	size_t index;

	if (nodetool_option(tool, "--by-protocol") != NULL) {
		stats_clients_by_protocol(json_object_get(answer, "seen"));
		return 0;
	}
	if (nodetool_option(tool, "--clear-history") != NULL) {
		(void)nodetool_post(tool, "clearclienthistory");
		printf("Clearing connection history\n");
		return 0;
	}
	if (nodetool_option(tool, "--all") != NULL ||
	    nodetool_option(tool, "--client-options") != NULL)
		stats_all_clients(clients, nodetool_option(tool, "--client-options") != NULL);
	json_array_foreach(clients, index, client)
	{
		user = stats_or(nodetool_text(client, "user"), "anonymous");
		json_object_set_new(users, user, json_integer(nodetool_int(users, user) + 1));
	}
	printf("Total connected clients: %zu\n\n", json_array_size(clients));
	nodetool_grid_init(&grid, " ", 2);
	nodetool_grid_add(&grid, "User");
	nodetool_grid_add(&grid, "Connections");
	json_object_foreach(users, user, value)
	{
		nodetool_grid_add(&grid, "%s", user);
		nodetool_grid_add(&grid, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	}
	nodetool_grid_print(&grid);
	return 0;
}

/* ---- compactions ---------------------------------------------------------------------------------------- */

static int
stats_compactions(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "compactions"), *each;
	json_t *running = json_object_get(answer, "compactions");
	bool is_human = nodetool_option(tool, "-H") != NULL;
	int64_t left = 0, rate = nodetool_int(answer, "throughput_bytes");
	struct nodetool_grid grid;
	size_t index;

	printf("pending tasks: %" PRId64 "\n",
	    nodetool_int(answer, "pending_total") + (int64_t)json_array_size(running));
	json_array_foreach(json_object_get(answer, "pending"), index, each)
	    printf("- %s.%s: %" PRId64 "\n", nodetool_text(each, "keyspace"),
		nodetool_text(each, "table"), nodetool_int(each, "pending"));
	putchar('\n');
	if (json_array_size(running) == 0)
		return 0;
	nodetool_grid_init(&grid, " ", 8);
	for (int i = 0; i < 8; i++) {
		static const char *const head[] = {"id", "compaction type", "keyspace", "table",
		    "completed", "total", "unit", "progress"};

		nodetool_grid_add(&grid, "%s", head[i]);
	}
	json_array_foreach(running, index, each)
	{
		int64_t done = nodetool_int(each, "completed"), total = nodetool_int(each, "total");
		const char *kind = nodetool_text(each, "kind");

		left += total - done;
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "id"));
		nodetool_grid_add(
		    &grid, "%s", strcmp(kind, "COMPACTION") == 0 ? "Compaction" : kind);
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "keyspace"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "table"));
		if (is_human) {
			nodetool_grid_add(&grid, "%s", nodetool_size((uint64_t)done));
			nodetool_grid_add(&grid, "%s", nodetool_size((uint64_t)total));
		} else {
			nodetool_grid_add(&grid, "%" PRId64, done);
			nodetool_grid_add(&grid, "%" PRId64, total);
		}
		nodetool_grid_add(&grid, "bytes");
		nodetool_grid_add(
		    &grid, "%.2f%%", total == 0 ? 0.0 : (double)done * 100 / (double)total);
	}
	nodetool_grid_print(&grid);
	if (rate > 0)
		printf("Active compaction remaining time : %3" PRId64 "h%02" PRId64 "m%02" PRId64
		       "s\n",
		    left / rate / 3600, left / rate / 60 % 60, left / rate % 60);
	else
		printf("Active compaction remaining time :        n/a\n");
	return 0;
}

static int
stats_compaction_history(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "compactionhistory"), *each;
	const char *format = nodetool_option(tool, "-F");
	struct nodetool_grid grid;
	size_t index;

	if (format != NULL) {
		json_t *all =
		    json_pack("{s:O}", "CompactionHistory", json_object_get(answer, "compactions"));

		nodetool_print_structured(all, format);
		json_decref(all);
		return 0;
	}
	printf("Compaction History: \n");
	if (json_array_size(json_object_get(answer, "compactions")) == 0) {
		printf("There is no compaction history\n");
		return 0;
	}
	nodetool_grid_init(&grid, " ", 7);
	for (int i = 0; i < 7; i++) {
		static const char *const head[] = {"id", "keyspace_name", "columnfamily_name",
		    "compacted_at", "bytes_in", "bytes_out", "rows_merged"};

		nodetool_grid_add(&grid, "%s", head[i]);
	}
	json_array_foreach(json_object_get(answer, "compactions"), index, each)
	{
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "id"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "keyspace_name"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "columnfamily_name"));
		nodetool_grid_add(
		    &grid, "%s", nodetool_time(nodetool_int(each, "compacted_at_ms"), false));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "bytes_in"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "bytes_out"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "rows_merged"));
	}
	nodetool_grid_print(&grid);
	return 0;
}

/* ---- toppartitions ---------------------------------------------------------------------------------- */

enum stats_sample_columns { SAMPLE_FREQUENCY, SAMPLE_SIZE, SAMPLE_QUERY };

/* In Cassandra's order. */
static const struct stats_sampler {
	const char *name, *title;
	enum stats_sample_columns columns;
} stats_samplers[] = {
    {"READS", "Frequency of reads by partition", SAMPLE_FREQUENCY},
    {"WRITES", "Frequency of writes by partition", SAMPLE_FREQUENCY},
    {"CAS_CONTENTIONS", "Frequency of cas contentions by partition", SAMPLE_FREQUENCY},
    {"WRITE_SIZE", "Max mutation size by partition", SAMPLE_SIZE},
    {"LOCAL_READ_TIME", "Longest read query times", SAMPLE_QUERY},
};
enum { STATS_SAMPLERS = sizeof(stats_samplers) / sizeof(stats_samplers[0]) };

static void
stats_print_samples(const json_t *answer, const struct stats_sampler *sampler)
{
	static const char *const heads[][5] = {{"   Table", "Partition", "Count", "+/-", NULL},
	    {"   Table", "Partition", "Bytes", NULL}, {"   Query", "Microseconds", NULL}};
	json_t *list = json_object_get(json_object_get(answer, sampler->name), "partitions"), *each;
	struct nodetool_grid grid;
	size_t index, columns = 0;

	printf("%s:\n", sampler->title);
	if (json_array_size(list) == 0) {
		printf("   Nothing recorded during sampling period...\n");
		return;
	}
	while (heads[sampler->columns][columns] != NULL)
		columns++;
	nodetool_grid_init(&grid, " ", columns);
	for (size_t i = 0; i < columns; i++)
		nodetool_grid_add(&grid, "%s", heads[sampler->columns][i]);
	json_array_foreach(list, index, each)
	{
		if (sampler->columns == SAMPLE_QUERY) {
			nodetool_grid_add(&grid, "   %s", nodetool_text(each, "key"));
		} else {
			nodetool_grid_add(&grid, "   %s", nodetool_text(each, "table"));
			nodetool_grid_add(&grid, "%s", nodetool_text(each, "key"));
		}
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "count"));
		if (sampler->columns == SAMPLE_FREQUENCY)
			nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "error"));
	}
	nodetool_grid_print(&grid);
}

/* Which of the samplers -a names; all without it. */
static void
stats_choose_samplers(const char *names, bool *is_chosen)
{
	char text[256], *rest = text, *word;

	for (int i = 0; i < STATS_SAMPLERS; i++)
		is_chosen[i] = names == NULL;
	snprintf(text, sizeof(text), "%s", names == NULL ? "" : names);
	while (names != NULL && (word = strsep(&rest, ", ")) != NULL) {
		int found = -1;

		for (int i = 0; i < STATS_SAMPLERS; i++)
			if (strcasecmp(stats_samplers[i].name, word) == 0)
				found = i;
		if (found < 0 && *word != '\0')
			nodetool_refuse("'%s' sampler is not available from: [READS, WRITES, "
					"LOCAL_READ_TIME, WRITE_SIZE, CAS_CONTENTIONS]",
			    word);
		if (found >= 0)
			is_chosen[found] = true;
	}
}

/* [keyspace table] [milliseconds]; a table * is all of the keyspace, no names or * * all there are. */
static int
stats_top_partitions(struct nodetool *tool)
{
	const char *limit = nodetool_option(tool, "-k"), *capacity = nodetool_option(tool, "-s");
	bool has_names = tool->word_count >= 2, is_first = true, is_chosen[STATS_SAMPLERS];
	const char *keyspace = has_names ? tool->words[0] : "*";
	const char *table = has_names ? tool->words[1] : "*";
	const char *ms = tool->word_count % 2 == 1 ? tool->words[tool->word_count - 1]
						   : nodetool_option(tool, "-d");
	json_t *answer;

	stats_choose_samplers(nodetool_option(tool, "-a"), is_chosen);
	limit = limit == NULL ? "10" : limit;
	capacity = capacity == NULL ? "256" : capacity;
	ms = ms == NULL ? "10000" : ms;
	if (strcmp(keyspace, "*") == 0)
		answer =
		    nodetool_post(tool, "sample?ms=%u&capacity=%u&limit=%u", ms, capacity, limit);
	else if (strcmp(table, "*") == 0)
		answer = nodetool_post(tool, "sample?keyspace=%u&ms=%u&capacity=%u&limit=%u",
		    keyspace, ms, capacity, limit);
	else
		answer =
		    nodetool_post(tool, "sample?keyspace=%u&table=%u&ms=%u&capacity=%u&limit=%u",
			keyspace, table, ms, capacity, limit);
	for (int i = 0; i < STATS_SAMPLERS; i++) {
		if (!is_chosen[i])
			continue;
		if (!is_first)
			putchar('\n');
		is_first = false;
		stats_print_samples(answer, &stats_samplers[i]);
	}
	return 0;
}

static const struct nodetool_option stats_top_options[] = {
    {"-a", NULL, "samplers",
	"READS, WRITES, CAS_CONTENTIONS, WRITE_SIZE, LOCAL_READ_TIME: some, separated by commas "
	"(all)"},
    {"-k", NULL, "topCount", "How many partitions to show (10)"},
    {"-s", NULL, "size", "How many are told apart while sampling (256)"},
    {"-d", NULL, "duration", "Milliseconds (10000)"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option stats_client_options[] = {
    {NULL, "--all", NULL, "Every connection"}, {NULL, "--by-protocol", NULL, "By protocol version"},
    {NULL, "--clear-history", NULL, "Forget who was connected"},
    {NULL, "--client-options", NULL, "Every connection, with its STARTUP options"},
    {NULL, NULL, NULL, NULL}};
static const struct nodetool_option stats_compaction_options[] = {
    {"-H", "--human-readable", NULL, "Sizes with units"},
    {"-V", "--vtable", NULL, "As system_views.sstable_tasks"}, {NULL, NULL, NULL, NULL}};

const struct nodetool_command nodetool_stats_commands[] = {
    {"clientstats", "Connected clients", "", 0, 0, stats_client_options, stats_clients, NULL},
    {"compactionhistory", "Compactions that ended", "", 0, 0, stats_format_options,
	stats_compaction_history, NULL},
    {"compactionstats", "Compactions that run and wait", "", 0, 0, stats_compaction_options,
	stats_compactions, NULL},
    {"getconcurrency", "How many threads the stages have", "[stage-names]", 0, 64, NULL,
	stats_concurrency, NULL},
    {"proxyhistograms", "Latencies of client requests", "", 0, 0, NULL, stats_proxy_histograms,
	NULL},
    {"tablehistograms", "Latencies and sizes of a table", "<keyspace> <table> | <keyspace.table>",
	1, 2, NULL, stats_table_histograms, NULL},
    {"profileload", "As toppartitions", "<keyspace> <cfname> <duration_ms>", 0, 3,
	stats_top_options, stats_top_partitions, NULL},
    {"toppartitions", "Which partitions are read and written most",
	"<keyspace> <cfname> <duration_ms>", 0, 3, stats_top_options, stats_top_partitions, NULL},
    {"tpstats", "Stages: active, pending, completed, blocked, dropped", "", 0, 0,
	stats_format_options, stats_tpstats, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
