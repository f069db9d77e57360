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

/* What has been shown of a command. */
struct repair_shown {
	size_t lines;
	json_t *events; /* kept; by their ids */
	int64_t last_event_ms;
	bool has_new;
};

/* Other nodes' events come late, and out of order. */
enum { REPAIR_EVENTS_LATE_MS = 10000, REPAIR_EVENTS_QUIET = 5 };

static void
repair_show_events(struct repair_shown *shown, const json_t *events)
{
	json_t *event;
	size_t index;

	shown->has_new = false;
	json_array_foreach(events, index, event)
	{
		const char *id = nodetool_text(event, "id");
		int64_t time_ms = nodetool_int(event, "time_ms");

		if (json_object_get(shown->events, id) != NULL)
			continue;
		json_object_set_new(shown->events, id, json_true());
		shown->has_new = true;
		if (time_ms > shown->last_event_ms)
			shown->last_event_ms = time_ms;
		repair_print(time_ms, nodetool_text(event, "text"), NULL);
	}
}

static json_t *
repair_show(struct nodetool *tool, int64_t command, struct repair_shown *shown)
{
	int64_t since = shown->last_event_ms - REPAIR_EVENTS_LATE_MS;
	json_t *answer, *line;
	char query[96];
	size_t index;

	snprintf(query, sizeof(query), "repair?command=%d&from=%zu&since=%lld", (int)command,
	    shown->lines, (long long)(since > 0 ? since : 0));
	answer = nodetool_get(tool, "%s", query);
	repair_show_events(shown, json_object_get(answer, "events"));
	json_array_foreach(json_object_get(answer, "lines"), index, line)
	{
		repair_print(nodetool_int(line, "time_ms"), nodetool_text(line, "text"),
		    json_object_get(line, "percent"));
		shown->lines++;
	}
	return answer;
}

/* Show what the command says until it is done. */
static void
repair_follow(struct nodetool *tool, int64_t command)
{
	struct repair_shown shown = {.events = nodetool_keep(tool, json_object())};
	bool is_traced = nodetool_option(tool, "--trace") != NULL;
	useconds_t pause = REPAIR_POLL_MIN_US;
	json_t *answer;

	for (;;) {
		answer = repair_show(tool, command, &shown);
		if (nodetool_true(answer, "is_done"))
			break;
		usleep(pause);
		pause = pause * 3 / 2 < REPAIR_POLL_MAX_US ? pause * 3 / 2 : REPAIR_POLL_MAX_US;
	}
	/* The last events are still being written. */
	for (int i = 0; i < REPAIR_EVENTS_QUIET && is_traced; i++) {
		usleep(REPAIR_POLL_MIN_US);
		(void)repair_show(tool, command, &shown);
		i = shown.has_new ? -1 : i;
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

/* What does not fit together. */
static void
repair_check(const struct nodetool *tool)
{
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
	    "start=%u&end=%u&paxosonly=%s&skippaxos=%s&optimise=%s&trace=%s",
	    keyspace, tables, parallelism, repair_value(tool, "-j"), repair_preview(tool),
	    nodetool_option(tool, "-full") == NULL ? "true" : "false", repair_flag(tool, "-pr"),
	    repair_flag(tool, "-pl"), repair_flag(tool, "-force"), repair_flag(tool, "-iuk"),
	    repair_flag(tool, "-local"), repair_value(tool, "-dc"), repair_value(tool, "-hosts"),
	    repair_value(tool, "-st"), repair_value(tool, "-et"), repair_flag(tool, "-paxos-only"),
	    repair_flag(tool, "-skip-paxos"), repair_flag(tool, "-os"), repair_flag(tool, "-tr"));
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
    {"-os", "--optimise-streams", NULL,
	"Replicas that are equal are one source: less is sent; not together with --pull"},
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
    {"-tr", "--trace", NULL, "Tell step by step what happens; also in system_traces"},
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

/* Only "list" and the tables' commands have ranges. */
static void
repair_admin_check(const struct nodetool *tool, bool has_range, bool has_tables)
{
	if (!has_range &&
	    (nodetool_option(tool, "-st") != NULL || nodetool_option(tool, "-et") != NULL))
		nodetool_refuse("Found unexpected parameters: [%s]",
		    nodetool_option(tool, "-st") != NULL ? "-st" : "-et");
	if (!has_tables && tool->word_count > 1)
		nodetool_refuse("Found unexpected parameters: [%s]", tool->words[1]);
}

static int
repair_admin_list(struct nodetool *tool)
{
	struct nodetool_grid grid;
	json_t *sessions, *session;
	size_t index;

	repair_admin_check(tool, true, false);
	sessions = json_object_get(
	    nodetool_get(tool, "repairsessions?all=%s&start=%u&end=%u", repair_flag(tool, "--all"),
		repair_value(tool, "-st"), repair_value(tool, "-et")),
	    "sessions");
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

	repair_admin_check(tool, false, session == NULL);
	if (session == NULL && tool->word_count > 1)
		session = tool->words[1];
	if (session == NULL)
		nodetool_refuse("Required option '-s' is missing");
	(void)nodetool_post(
	    tool, "cancelrepair?session=%u&force=%s", session, repair_flag(tool, "--force"));
	return 0;
}

/* The tables that "[<keyspace> <tables>...]" behind the command's name says, as the API takes them. */
static json_t *
repair_admin_tables(struct nodetool *tool, bool is_write, const char *call, const char *more)
{
	const char *keyspace = tool->word_count > 1 ? tool->words[1] : "";
	const char *tables = tool->word_count > 2 ? nodetool_join_words(tool, 2) : "";
	json_t *answer;

	repair_admin_check(tool, true, true);
	answer = is_write
	    ? nodetool_post(tool, "%s?keyspace=%u&tables=%u&start=%u&end=%u&force=%s", call,
		  keyspace, tables, repair_value(tool, "-st"), repair_value(tool, "-et"), more)
	    : nodetool_get(tool, "%s?keyspace=%u&tables=%u&start=%u&end=%u", call, keyspace, tables,
		  repair_value(tool, "-st"), repair_value(tool, "-et"));
	return json_object_get(answer, "tables");
}

static void
repair_add_table(struct nodetool_grid *grid, const json_t *table)
{
	nodetool_grid_add(grid, "%s", nodetool_text(table, "keyspace"));
	nodetool_grid_add(grid, "%s", nodetool_text(table, "table"));
}

/* PendingStat.toString(): "0 bytes (0 sstables / 0 sessions)" */
static void
repair_add_pending(struct nodetool_grid *grid, int64_t bytes, int64_t sstables, int64_t sessions)
{
	nodetool_grid_add(grid, "%s (%lld sstables / %lld sessions)",
	    nodetool_size((uint64_t)bytes), (long long)sstables, (long long)sessions);
}

static int
repair_admin_pending(struct nodetool *tool)
{
	static const char *const kinds[] = {"pending", "finalized", "failed"};
	json_t *tables = repair_admin_tables(tool, false, "pendingrepairs", ""), *table;
	bool is_verbose = nodetool_option(tool, "-v") != NULL;
	struct nodetool_grid grid;
	size_t index;

	nodetool_grid_init(&grid, " | ", is_verbose ? 6 : 3);
	nodetool_grid_add(&grid, "keyspace");
	nodetool_grid_add(&grid, "table");
	nodetool_grid_add(&grid, "total");
	for (size_t i = 0; i < 3 && is_verbose; i++)
		nodetool_grid_add(&grid, "%s", kinds[i]);
	json_array_foreach(tables, index, table)
	{
		int64_t totals[3] = {0, 0, 0};

		for (size_t i = 0; i < 3; i++) {
			const json_t *stat = json_object_get(table, kinds[i]);

			totals[0] += nodetool_int(stat, "bytes");
			totals[1] += nodetool_int(stat, "sstables");
			totals[2] += nodetool_int(stat, "sessions");
		}
		repair_add_table(&grid, table);
		repair_add_pending(&grid, totals[0], totals[1], totals[2]);
		for (size_t i = 0; i < 3 && is_verbose; i++) {
			const json_t *stat = json_object_get(table, kinds[i]);

			repair_add_pending(&grid, nodetool_int(stat, "bytes"),
			    nodetool_int(stat, "sstables"), nodetool_int(stat, "sessions"));
		}
	}
	nodetool_grid_print(&grid);
	nodetool_grid_fini(&grid);
	return 0;
}

/* "(1,2]=1796111218648, (2,3]=0" */
static void
repair_put_sections(struct buffer *out, const json_t *sections)
{
	json_t *section;
	size_t index;

	json_array_foreach(sections, index, section)
	    buffer_printf(out, "%s(%lld,%lld]=%lld", index == 0 ? "" : ", ",
		(long long)nodetool_int(section, "start"), (long long)nodetool_int(section, "end"),
		(long long)nodetool_int(section, "repaired_at_ms"));
	buffer_put_u8(out, 0);
}

static int
repair_admin_repaired(struct nodetool *tool)
{
	json_t *tables = repair_admin_tables(tool, false, "repaired", ""), *table, *section;
	bool is_verbose = nodetool_option(tool, "-v") != NULL;
	struct nodetool_grid grid;
	size_t index, each;

	nodetool_grid_init(&grid, " | ", is_verbose ? 5 : 4);
	nodetool_grid_add(&grid, "keyspace");
	nodetool_grid_add(&grid, "table");
	nodetool_grid_add(&grid, "min_repaired");
	nodetool_grid_add(&grid, "max_repaired");
	if (is_verbose)
		nodetool_grid_add(&grid, "detail");
	json_array_foreach(tables, index, table)
	{
		const json_t *sections = json_object_get(table, "sections");
		int64_t first = 0, last = 0;

		json_array_foreach(sections, each, section)
		{
			int64_t at = nodetool_int(section, "repaired_at_ms");

			first = each == 0 || at < first ? at : first;
			last = at > last ? at : last;
		}
		repair_add_table(&grid, table);
		nodetool_grid_add(&grid, "%lld", (long long)first);
		nodetool_grid_add(&grid, "%lld", (long long)last);
		if (is_verbose) {
			struct buffer text;

			buffer_init(&text);
			repair_put_sections(&text, sections);
			nodetool_grid_add(
			    &grid, "%s", text.is_failed ? "?" : (const char *)text.data);
			buffer_fini(&text);
		}
	}
	nodetool_grid_print(&grid);
	nodetool_grid_fini(&grid);
	return 0;
}

static int
repair_admin_cleanup(struct nodetool *tool)
{
	struct nodetool_grid grid;
	json_t *tables, *table;
	size_t index;

	repair_admin_check(tool, true, true);
	printf("Cleaning up data from completed sessions...\n");
	fflush(stdout);
	tables = repair_admin_tables(tool, true, "cleanuprepairs", repair_flag(tool, "--force"));
	nodetool_grid_init(&grid, " | ", 4);
	nodetool_grid_add(&grid, "keyspace");
	nodetool_grid_add(&grid, "table");
	nodetool_grid_add(&grid, "successful sessions");
	nodetool_grid_add(&grid, "unsuccessful sessions");
	json_array_foreach(tables, index, table)
	{
		repair_add_table(&grid, table);
		nodetool_grid_add(&grid, "%d", (int)nodetool_int(table, "successful"));
		nodetool_grid_add(&grid, "%d", (int)nodetool_int(table, "unsuccessful"));
	}
	nodetool_grid_print(&grid);
	nodetool_grid_fini(&grid);
	return 0;
}

static int
repair_admin(struct nodetool *tool)
{
	static const struct {
		const char *name;
		int (*run)(struct nodetool *tool);
	} commands[] = {{"list", repair_admin_list}, {"cancel", repair_admin_cancel},
	    {"cleanup", repair_admin_cleanup}, {"summarize-pending", repair_admin_pending},
	    {"summarize-repaired", repair_admin_repaired}};
	const char *what = tool->word_count > 0 ? tool->words[0] : "list";

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(what, commands[i].name) == 0)
			return commands[i].run(tool);
	nodetool_refuse("Found unexpected parameters: [%s]", what);
}

static const struct nodetool_option repair_admin_options[] = {
    {"-a", "--all", NULL, "list: sessions that are over too"},
    {"-et", "--end-token", "end_token", "Where the range ends (inclusive); not for cancel"},
    {"-f", "--force", NULL,
	"cancel: on a node that is not the session's coordinator; cleanup: stop compactions that "
	"are in the way"},
    {"-s", "--session", "session", "cancel: the session"},
    {"-st", "--start-token", "start_token", "Where the range begins (exclusive); not for cancel"},
    {"-v", "--verbose", NULL, "summarize-pending, summarize-repaired: in detail"},
    {NULL, NULL, NULL, NULL},
};

const struct nodetool_command nodetool_repair_commands[] = {
    {"repair", "Make replicas equal", "[--] [<keyspace> <tables>...]", 0, NODETOOL_WORDS_MAX,
	repair_options, repair_run, NULL},
    {"repair_admin", "Incremental repairs: sessions, what is pending in them, what they repaired",
	"[list | cancel -s <session> | (cleanup | summarize-pending | summarize-repaired) "
	"[<keyspace> <tables>...]]",
	0, NODETOOL_WORDS_MAX, repair_admin_options, repair_admin, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
