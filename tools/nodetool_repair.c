/* SPDX-License-Identifier: Apache-2.0 */
/* Repair, with its progress. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tools/nodetool.h"

enum { REPAIR_POLL_MIN_US = 50 * 1000, REPAIR_POLL_MAX_US = 500 * 1000 };

/* "[2026-12-01 02:13:14,512] text", of the local clock, as Cassandra's nodetool prints it. */
static void
repair_print(int64_t time_ms, const char *text, const json_t *percent)
{
	time_t seconds = (time_t)(time_ms / 1000);
	char stamp[64];
	struct tm parts;

	localtime_r(&seconds, &parts);
	strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &parts);
	printf("[%s,%03d] %s", stamp, (int)(time_ms % 1000), text);
	if (json_is_integer(percent))
		printf(" (progress: %d%%)", (int)json_integer_value(percent));
	putchar('\n');
	fflush(stdout);
}

static int64_t
repair_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Show what the command says until it is done. */
static void
repair_follow(struct nodetool *tool, int64_t command)
{
	useconds_t pause = REPAIR_POLL_MIN_US;
	size_t seen = 0, index;
	json_t *answer, *line;
	char query[64];

	for (;;) {
		snprintf(query, sizeof(query), "repair?command=%d&from=%zu", (int)command, seen);
		answer = nodetool_get(tool, "%s", query);
		json_array_foreach(json_object_get(answer, "lines"), index, line)
		{
			repair_print(nodetool_int(line, "time_ms"), nodetool_text(line, "text"),
			    json_object_get(line, "percent"));
			seen++;
		}
		if (nodetool_true(answer, "is_done"))
			break;
		usleep(pause);
		pause = pause * 3 / 2 < REPAIR_POLL_MAX_US ? pause * 3 / 2 : REPAIR_POLL_MAX_US;
	}
	if (nodetool_true(answer, "has_failed"))
		nodetool_fail(
		    "Repair job has failed with the error message: Repair command #%d failed "
		    "with error %s. Check the logs on the repair participants for further "
		    "details",
		    (int)command, nodetool_text(answer, "failure"));
}

static const char *
repair_flag(const struct nodetool *tool, const char *name)
{
	return nodetool_option(tool, name) != NULL ? "true" : "false";
}

static const char *
repair_value(const struct nodetool *tool, const char *name)
{
	const char *value = nodetool_option(tool, name);

	return value == NULL ? "" : value;
}

/* What is asked for and is not there, or does not fit together. */
static void
repair_check(const struct nodetool *tool)
{
	static const char *const absent[] = {"--trace", "--optimise-streams"};

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (nodetool_option(tool, absent[i]) != NULL)
			nodetool_fail("'%s' is an option of Cassandra that this version of Helenus "
				      "does not have",
			    absent[i]);
	if (nodetool_option(tool, "-pr") != NULL &&
	    (nodetool_option(tool, "-dc") != NULL || nodetool_option(tool, "-hosts") != NULL))
		nodetool_fail(
		    "Primary range repair should be performed on all nodes in the cluster.");
	if (nodetool_option(tool, "-vd") != NULL && nodetool_option(tool, "-full") != NULL)
		nodetool_fail("Cannot combine --validate and --full: what is repaired is compared");
}

static const char *
repair_preview(const struct nodetool *tool)
{
	if (nodetool_option(tool, "-vd") != NULL)
		return "repaired";
	if (nodetool_option(tool, "-prv") == NULL)
		return "none";
	return nodetool_option(tool, "-full") != NULL ? "all" : "unrepaired";
}

static void
repair_keyspace(struct nodetool *tool, const char *keyspace, const char *tables)
{
	const char *parallelism = nodetool_option(tool, "-seq") != NULL ? "sequential"
	    : nodetool_option(tool, "-dcpar") != NULL                   ? "dc_parallel"
									: "parallel";
	json_t *answer = nodetool_post(tool,
	    "repair?keyspace=%u&tables=%u&parallelism=%s&threads=%u&preview=%s&incremental=%s&"
	    "primary=%s&pull=%s&force=%s&ignoreunreplicated=%s&local=%s&datacenters=%u&hosts=%u&"
	    "start=%u&end=%u&paxosonly=%s&skippaxos=%s",
	    keyspace, tables, parallelism, repair_value(tool, "-j"), repair_preview(tool),
	    nodetool_option(tool, "-full") == NULL ? "true" : "false", repair_flag(tool, "-pr"),
	    repair_flag(tool, "-pl"), repair_flag(tool, "-force"), repair_flag(tool, "-iuk"),
	    repair_flag(tool, "-local"), repair_value(tool, "-dc"), repair_value(tool, "-hosts"),
	    repair_value(tool, "-st"), repair_value(tool, "-et"), repair_flag(tool, "-paxos-only"),
	    repair_flag(tool, "-skip-paxos"));
	int64_t command = nodetool_int(answer, "command");
	char text[300];

	if (command == 0) {
		snprintf(text, sizeof(text),
		    "Replication factor is 1. No repair is needed for keyspace '%s'", keyspace);
		repair_print(repair_now_ms(), text, NULL);
		return;
	}
	repair_follow(tool, command);
}

static int
repair_run(struct nodetool *tool)
{
	json_t *keyspaces, *keyspace;
	struct buffer tables;
	size_t index;

	repair_check(tool);
	if (tool->word_count > 0) {
		buffer_init(&tables);
		for (int i = 1; i < tool->word_count; i++)
			buffer_printf(&tables, "%s%s", i == 1 ? "" : ",", tool->words[i]);
		buffer_put_u8(&tables, 0);
		if (tables.is_failed)
			nodetool_fail("no memory");
		repair_keyspace(tool, tool->words[0], (const char *)tables.data);
		buffer_fini(&tables);
		return 0;
	}
	keyspaces = json_object_get(nodetool_get(tool, "cluster"), "keyspaces");
	json_array_foreach(keyspaces, index, keyspace)
	{
		const char *name = nodetool_text(keyspace, "name");

		/* system_distributed has to be named (CASSANDRA-9621). */
		if (strstr(nodetool_text(json_object_get(keyspace, "replication"), "class"),
			"LocalStrategy") == NULL &&
		    strcmp(name, "system_distributed") != 0)
			repair_keyspace(tool, name, "");
	}
	return 0;
}

static const struct nodetool_option repair_options[] = {
    {"-dc", "--in-dc", "specific_dc", "Repair nodes of these data centers; may be given again"},
    {"-dcpar", "--dc-parallel", NULL, "One replica of each data center validates at a time"},
    {"-et", "--end-token", "end_token", "Where the range to repair ends (inclusive)"},
    {"-force", "--force", NULL, "Leave out replicas that are down"},
    {"-full", "--full", NULL, "Compare all data, not only what was not repaired yet"},
    {"-hosts", "--in-hosts", "specific_host",
	"Repair these nodes, this one among them; may be given again"},
    {"-iuk", "--ignore-unreplicated-keyspaces", NULL,
	"Pass over what has no other replica, instead of failing"},
    {"-j", "--job-threads", "job_threads", "Tables repaired at a time: 1 to 4 (1)"},
    {"-local", "--in-local-dc", NULL, "Repair nodes of this node's data center"},
    {"-os", "--optimise-streams", NULL, "Not there"},
    {"-paxos-only", "--paxos-only", NULL,
	"Finish what conditional statements left over; compare no data"},
    {"-pl", "--pull", NULL, "Only fetch what this node lacks (with -hosts, -st and -et)"},
    {"-pr", "--partitioner-range", NULL,
	"Repair the ranges that this node is the first replica of"},
    {"-prv", "--preview", NULL, "Only tell what differs"},
    {"-seq", "--sequential", NULL, "One replica validates at a time"},
    {"-skip-paxos", "--skip-paxos", NULL,
	"Compare data without repairing the state of Paxos first"},
    {"-st", "--start-token", "start_token", "Where the range to repair begins (exclusive)"},
    {"-tr", "--trace", NULL, "Not there"},
    {"-vd", "--validate", NULL, "Only tell whether repaired data is in sync"},
    {NULL, NULL, NULL, NULL},
};

/* ---- repair_admin ------------------------------------------------------------------------------------------ */

/* "a,b"; owned by the tool. */
static const char *
repair_join(struct nodetool *tool, const json_t *list)
{
	json_t *joined = nodetool_keep(tool, json_string("")), *item;
	size_t index;

	json_array_foreach(list, index, item) joined = nodetool_keep(tool,
	    json_sprintf("%s%s%s", json_string_value(joined), index == 0 ? "" : ",",
		json_string_value(item)));
	return json_string_value(joined);
}

static int
repair_admin_list(struct nodetool *tool)
{
	json_t *sessions = json_object_get(
	    nodetool_get(tool, "repairsessions?all=%s", repair_flag(tool, "--all")), "sessions");
	struct nodetool_grid grid;
	json_t *session;
	size_t index;

	if (json_array_size(sessions) == 0) {
		printf("no sessions\n");
		return 0;
	}
	nodetool_grid_init(&grid, " | ", 5);
	nodetool_grid_add(&grid, "id");
	nodetool_grid_add(&grid, "state");
	nodetool_grid_add(&grid, "last activity");
	nodetool_grid_add(&grid, "coordinator");
	nodetool_grid_add(&grid, "participants");
	json_array_foreach(sessions, index, session)
	{
		nodetool_grid_add(&grid, "%s", nodetool_text(session, "id"));
		nodetool_grid_add(&grid, "%s", nodetool_text(session, "state"));
		nodetool_grid_add(&grid, "%d (s)",
		    (int)((repair_now_ms() - nodetool_int(session, "last_update_ms")) / 1000));
		nodetool_grid_add(&grid, "/%s", nodetool_text(session, "coordinator"));
		nodetool_grid_add(
		    &grid, "%s", repair_join(tool, json_object_get(session, "participants")));
	}
	nodetool_grid_print(&grid);
	nodetool_grid_fini(&grid);
	return 0;
}

static int
repair_admin_cancel(struct nodetool *tool)
{
	const char *session = nodetool_option(tool, "--session");

	if (session == NULL && tool->word_count > 1)
		session = tool->words[1];
	if (session == NULL)
		nodetool_refuse("Required option '-s' is missing");
	(void)nodetool_post(
	    tool, "cancelrepair?session=%u&force=%s", session, repair_flag(tool, "--force"));
	return 0;
}

static int
repair_admin_pending(struct nodetool *tool)
{
	json_t *tables = json_object_get(nodetool_get(tool, "pendingrepairs"), "tables"), *table;
	struct nodetool_grid grid;
	size_t index;

	if (json_array_size(tables) == 0) {
		printf("nothing pending\n");
		return 0;
	}
	nodetool_grid_init(&grid, " | ", 4);
	nodetool_grid_add(&grid, "keyspace");
	nodetool_grid_add(&grid, "table");
	nodetool_grid_add(&grid, "size");
	nodetool_grid_add(&grid, "sstables");
	json_array_foreach(tables, index, table)
	{
		nodetool_grid_add(&grid, "%s", nodetool_text(table, "keyspace"));
		nodetool_grid_add(&grid, "%s", nodetool_text(table, "table"));
		nodetool_grid_add(
		    &grid, "%s", nodetool_size((uint64_t)nodetool_int(table, "bytes")));
		nodetool_grid_add(&grid, "%d", (int)nodetool_int(table, "sstables"));
	}
	nodetool_grid_print(&grid);
	nodetool_grid_fini(&grid);
	return 0;
}

static int
repair_admin(struct nodetool *tool)
{
	const char *what = tool->word_count > 0 ? tool->words[0] : "list";

	if (strcmp(what, "list") == 0)
		return repair_admin_list(tool);
	if (strcmp(what, "cancel") == 0)
		return repair_admin_cancel(tool);
	if (strcmp(what, "summarize-pending") == 0)
		return repair_admin_pending(tool);
	if (strcmp(what, "cleanup") == 0 || strcmp(what, "summarize-repaired") == 0)
		nodetool_fail("'repair_admin %s' is a command of Cassandra that this version of "
			      "Helenus does not have",
		    what);
	nodetool_refuse("Found unexpected parameters: [%s]", what);
}

static const struct nodetool_option repair_admin_options[] = {
    {"-a", "--all", NULL, "list: sessions that are over too"},
    {"-f", "--force", NULL, "cancel: on a node that is not the session's coordinator"},
    {"-s", "--session", "session", "cancel: the session"},
    {NULL, NULL, NULL, NULL},
};

const struct nodetool_command nodetool_repair_commands[] = {
    {"repair", "Make replicas equal", "[--] [<keyspace> <tables>...]", 0, NODETOOL_WORDS_MAX,
	repair_options, repair_run, NULL},
    {"repair_admin", "Incremental repairs under way: list, cancel, summarize-pending",
	"[list | cancel -s <session> | summarize-pending]", 0, 2, repair_admin_options,
	repair_admin, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
