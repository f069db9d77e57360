/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the API about repair. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/range_streamer.h"
#include "server/admin_internal.h"
#include "server/cluster.h"
#include "server/internal_query.h"
#include "server/node.h"
#include "server/operations.h"

enum { ADMIN_REPAIR_THREADS_MAX = 4 }; /* RepairOption.MAX_JOB_THREADS */

/* Parts of a text between commas; owned. */
struct admin_list {
	char **items;
	uint32_t count;
};

static struct admin_list
admin_split(const char *text)
{
	struct admin_list list = {NULL, 0};

	while (text != NULL && *text != '\0') {
		size_t length = strcspn(text, ",");

		if (length > 0) {
			list.items = xrealloc(list.items, (list.count + 1) * sizeof(char *));
			list.items[list.count++] = xstrndup(text, length);
		}
		text += length + (text[length] == ',');
	}
	return list;
}

static void
admin_list_free(struct admin_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

static bool
admin_is_true(const struct admin_call *call, const char *name)
{
	const char *text = admin_argument(call, name);

	return text != NULL && strcmp(text, "true") == 0;
}

/* Which of the names; -1 with *err: none. */
static int
admin_one_of(
    const struct admin_call *call, const char *name, const char *const *names, struct error *err)
{
	const char *text = admin_argument(call, name);

	if (text == NULL)
		return 0;
	for (int i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], text) == 0)
			return i;
	return error_set(err, ERROR_INVALID, "argument '%s' is '%.40s'", name, text);
}

/* start=, end=: both or none; an end that is missing is the begin of the ring. */
static int
admin_repair_range(
    const struct admin_call *call, struct ring_range *range, bool *has_range, struct error *err)
{
	*range = (struct ring_range){INT64_MIN, INT64_MIN};
	*has_range = admin_argument(call, "start") != NULL || admin_argument(call, "end") != NULL;
	if (admin_argument(call, "start") != NULL &&
	    admin_need_number(call, "start", INT64_MIN, INT64_MAX, &range->left, err) != 0)
		return -1;
	if (admin_argument(call, "end") != NULL &&
	    admin_need_number(call, "end", INT64_MIN, INT64_MAX, &range->right, err) != 0)
		return -1;
	if (*has_range && range->left == range->right && range->left != INT64_MIN)
		return error_set(err, ERROR_INVALID, "Start and end tokens must be different.");
	return 0;
}

static int
admin_repair_options(struct admin_call *call, struct repair_options *options, struct error *err)
{
	static const char *const parallelisms[] = {"parallel", "sequential", "dc_parallel", NULL};
	static const enum repair_parallelism orders[] = {
	    REPAIR_PARALLEL, REPAIR_SEQUENTIAL, REPAIR_DC_PARALLEL};
	static const char *const previews[] = {"none", "all", "unrepaired", "repaired", NULL};
	int parallelism = admin_one_of(call, "parallelism", parallelisms, err);
	int preview = admin_one_of(call, "preview", previews, err);
	int64_t threads = 1;

	if (parallelism < 0 || preview < 0 ||
	    admin_need(call, "keyspace", &options->keyspace, err) != 0)
		return -1;
	if (admin_argument(call, "threads") != NULL &&
	    admin_need_number(call, "threads", 1, INT32_MAX, &threads, err) != 0)
		return -1;
	options->job_threads =
	    (uint32_t)(threads > ADMIN_REPAIR_THREADS_MAX ? ADMIN_REPAIR_THREADS_MAX : threads);
	options->parallelism = orders[parallelism];
	options->preview = (enum repair_preview)preview;
	options->is_incremental = admin_is_true(call, "incremental");
	options->is_primary_range = admin_is_true(call, "primary");
	options->is_pull = admin_is_true(call, "pull");
	options->is_forced = admin_is_true(call, "force");
	options->ignores_unreplicated = admin_is_true(call, "ignoreunreplicated");
	options->is_paxos_only = admin_is_true(call, "paxosonly");
	options->skips_paxos = admin_is_true(call, "skippaxos");
	options->optimises_streams = admin_is_true(call, "optimise");
	options->is_traced = admin_is_true(call, "trace");
	return 0;
}

static int
admin_repair_hosts(struct admin_call *call, const struct admin_list *names, struct endpoint **out,
    struct error *err)
{
	uint16_t port = (uint16_t)call->node->config->storage_port;

	*out = xcalloc((size_t)names->count + 1, sizeof(**out));
	for (uint32_t i = 0; i < names->count; i++)
		if (endpoint_parse(names->items[i], port, &(*out)[i], err) != 0)
			return error_set(
			    err, ERROR_INVALID, "Unknown host specified %s", names->items[i]);
	return 0;
}

static bool
admin_is_ready(struct admin_call *call, struct error *err)
{
	struct cluster *cluster = call->node->cluster;

	if (cluster->service != NULL && cluster->repairs != NULL)
		return true;
	error_set(err, ERROR_INVALID, "the node is starting");
	return false;
}

int
admin_post_repair(struct admin_call *call, struct error *err)
{
	struct cluster *cluster = call->node->cluster;
	struct repair_options options = {0};
	struct admin_list tables = admin_split(admin_argument(call, "tables"));
	struct admin_list datacenters = admin_is_true(call, "local")
	    ? admin_split(cluster_datacenter(cluster))
	    : admin_split(admin_argument(call, "datacenters"));
	struct admin_list hosts = admin_split(admin_argument(call, "hosts"));
	struct endpoint *endpoints = NULL;
	struct ring_range range;
	uint32_t number = 0;
	bool has_range;
	int rc = -1;

	options.tables = (const char *const *)tables.items;
	options.table_count = tables.count;
	options.datacenters = (const char *const *)datacenters.items;
	options.datacenter_count = datacenters.count;
	if (admin_is_ready(call, err) && admin_repair_options(call, &options, err) == 0 &&
	    admin_repair_range(call, &range, &has_range, err) == 0 &&
	    admin_repair_hosts(call, &hosts, &endpoints, err) == 0) {
		options.hosts = endpoints;
		options.host_count = hosts.count;
		options.ranges = &range;
		options.range_count = has_range ? 1 : 0;
		rc = repairs_start(cluster->repairs, &options, &number, err);
	}
	admin_set_number(call->answer, "command", number);
	admin_list_free(&tables);
	admin_list_free(&datacenters);
	admin_list_free(&hosts);
	free(endpoints);
	return rc;
}

static void
admin_add_line(void *context, const struct repair_line *line)
{
	json_t *json = json_object();

	admin_set(json, "time_ms", json_integer(line->time_ms));
	admin_set(json, "percent", line->percent < 0 ? NULL : json_integer(line->percent));
	admin_set_text(json, "text", line->text);
	json_array_append_new(context, json);
}

/* Events of a traced command since a moment; events of other nodes come late, so the caller has some of them already. */
static int
admin_add_events(
    struct admin_call *call, const struct trace *trace, int64_t since_ms, struct error *err)
{
	struct endpoint own = peers_local(call->node->cluster->peers)->endpoint;
	uint8_t since[8];
	const struct slice values[] = {slice_of(trace->session.bytes, sizeof(trace->session.bytes)),
	    slice_of(since, sizeof(since))};
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;
	json_t *events = json_array();

	admin_set(call->answer, "events", events);
	store_u64(since, (uint64_t)since_ms);
	if (internal_select(call->node->executor,
		"SELECT event_id, source, activity FROM system_traces.events WHERE session_id = ? "
		"AND event_id >= minTimeuuid(?)",
		values, 2, &rows, err) != 0)
		return -1;
	while (internal_rows_next(&rows, cells)) {
		struct endpoint source = {.size = (uint8_t)cells[1].size};
		char id[UUID_TEXT_SIZE], address[ENDPOINT_TEXT_SIZE];
		struct uuid event;
		json_t *json;

		if (cells[0].size != sizeof(event.bytes) ||
		    (cells[1].size != 4 && cells[1].size != 16) || slice_is_null(cells[2]))
			continue;
		memcpy(event.bytes, cells[0].data, sizeof(event.bytes));
		memcpy(source.address, cells[1].data, cells[1].size);
		json = json_object();
		uuid_format(&event, id);
		admin_set_text(json, "id", id);
		admin_set(json, "time_ms",
		    json_integer((int64_t)(uuid_ticks(&event) - uuid_ticks_of_unix_us(0)) / 10000));
		if (source.size != own.size || memcmp(source.address, own.address, own.size) != 0)
			admin_set(json, "text",
			    json_sprintf("/%s: %.*s", endpoint_format_address(&source, address),
				(int)cells[2].size, (const char *)cells[2].data));
		else
			admin_set(
			    json, "text", json_stringn((const char *)cells[2].data, cells[2].size));
		json_array_append_new(events, json);
	}
	internal_rows_fini(&rows);
	return 0;
}

int
admin_get_repair(struct admin_call *call, struct error *err)
{
	struct repair_status status;
	char parent[UUID_TEXT_SIZE];
	int64_t command, from = 0, since_ms = 0;
	json_t *lines = json_array();

	admin_set(call->answer, "lines", lines);
	if (!admin_is_ready(call, err) ||
	    admin_need_number(call, "command", 1, INT32_MAX, &command, err) != 0 ||
	    (admin_argument(call, "from") != NULL &&
		admin_need_number(call, "from", 0, INT32_MAX, &from, err) != 0) ||
	    (admin_argument(call, "since") != NULL &&
		admin_need_number(call, "since", 0, INT64_MAX, &since_ms, err) != 0))
		return -1;
	if (!repairs_status(call->node->cluster->repairs, (uint32_t)command, (uint32_t)from,
		admin_add_line, lines, &status))
		return error_set(
		    err, ERROR_INVALID, "There is no repair command #%d", (int)command);
	uuid_format(&status.parent, parent);
	admin_set_text(call->answer, "parent", parent);
	admin_set(call->answer, "is_done", json_boolean(status.is_done));
	admin_set(call->answer, "has_failed", json_boolean(status.has_failed));
	admin_set_text(call->answer, "failure", status.failure);
	return trace_is_on(&status.trace) ? admin_add_events(call, &status.trace, since_ms, err)
					  : 0;
}

int
admin_post_terminate_repairs(struct admin_call *call, struct error *err)
{
	if (!admin_is_ready(call, err))
		return -1;
	admin_set_number(
	    call->answer, "count", repairs_terminate_all(call->node->cluster->repairs));
	return 0;
}

/* ---- incremental repairs (repair_admin) ------------------------------------------------------------------ */

struct admin_sessions {
	json_t *list;
	bool has_all;
	const struct ring_range *range; /* NULL: all */
};

static void
admin_add_session(void *context, const struct repair_local *local)
{
	struct admin_sessions *sessions = context;
	json_t *json, *participants;
	char id[UUID_TEXT_SIZE], address[ENDPOINT_TEXT_SIZE];

	if ((!sessions->has_all && repair_state_is_over(local->state)) ||
	    (sessions->range != NULL && !repair_local_has_range(local, sessions->range, 1)))
		return;
	json = json_object();
	participants = json_array();
	uuid_format(&local->id, id);
	admin_set_text(json, "id", id);
	admin_set_text(json, "state", repair_state_name(local->state));
	admin_set(json, "last_update_ms", json_integer(local->last_update_ms));
	admin_set(json, "repaired_at_ms", json_integer(local->repaired_at));
	admin_set_text(json, "coordinator", endpoint_format(&local->coordinator, address));
	for (uint32_t i = 0; i < local->participant_count; i++)
		json_array_append_new(
		    participants, json_string(endpoint_format(&local->participants[i], address)));
	admin_set(json, "participants", participants);
	json_array_append_new(sessions->list, json);
}

int
admin_get_repair_sessions(struct admin_call *call, struct error *err)
{
	struct admin_sessions sessions = {json_array(), admin_is_true(call, "all"), NULL};
	struct ring_range range;
	bool has_range;

	admin_set(call->answer, "sessions", sessions.list);
	if (!admin_is_ready(call, err) || admin_repair_range(call, &range, &has_range, err) != 0)
		return -1;
	if (has_range)
		sessions.range = &range;
	repairs_each_session(call->node->cluster->repairs, admin_add_session, &sessions);
	return 0;
}

int
admin_post_cancel_repair(struct admin_call *call, struct error *err)
{
	struct uuid session;
	const char *text;

	if (!admin_is_ready(call, err) || admin_need(call, "session", &text, err) != 0)
		return -1;
	if (uuid_parse(text, strlen(text), &session) != 0)
		return error_set(err, ERROR_INVALID, "Invalid UUID string: %.40s", text);
	return repairs_cancel_session(
	    call->node->cluster->repairs, &session, admin_is_true(call, "force"), err);
}

/* ---- tables and ranges that repair_admin asks about ------------------------------------------------------ */

/* One table; ranges: those that were given, or all that this node is a replica of. */
typedef void (*admin_summary_fn)(struct admin_call *call, json_t *json, struct table_store *table,
    const struct ring_range *ranges, uint32_t range_count);

static void
admin_summarize(struct admin_call *call, json_t *list, const struct topology *topology,
    const struct keyspace_metadata *keyspace, struct table_store *table,
    const struct ring_range *given, admin_summary_fn summarize)
{
	struct ring_range *own = NULL;
	uint32_t count = given != NULL
	    ? 1
	    : replication_ranges_of(topology_replication(topology, keyspace),
		  peers_local(call->node->cluster->peers), &own);
	json_t *json = json_object();

	admin_set_text(json, "keyspace", table_store_keyspace(table));
	admin_set_text(json, "table", table_store_name(table));
	summarize(call, json, table, given != NULL ? given : own, count);
	json_array_append_new(list, json);
	free(own);
}

/* Of each table that keyspace= and tables= name; without them of all that other nodes have parts of. */
static int
admin_each_summary(struct admin_call *call, admin_summary_fn summarize, struct error *err)
{
	struct cluster *cluster = call->node->cluster;
	json_t *list = json_array();
	const struct topology *topology;
	struct table_store **tables;
	struct ring_range given;
	struct schema *schema;
	bool is_given;
	uint32_t count;

	admin_set(call->answer, "tables", list);
	if (!admin_is_ready(call, err) || admin_repair_range(call, &given, &is_given, err) != 0 ||
	    admin_tables(call, &tables, &count, err) != 0)
		return -1;
	schema = operations_schema(call->node->executor);
	topology = topology_acquire(cluster->topology);
	for (uint32_t i = 0; i < count; i++) {
		const struct keyspace_metadata *keyspace =
		    schema_keyspace(schema, slice_of_string(table_store_keyspace(tables[i])));

		if (keyspace != NULL && keyspace_is_distributed(keyspace))
			admin_summarize(call, list, topology, keyspace, tables[i],
			    is_given ? &given : NULL, summarize);
	}
	topology_release(cluster->topology, topology);
	schema_unref(schema);
	free(tables);
	return 0;
}

static void
admin_set_pending(json_t *json, const char *name, const struct repair_pending_stat *stat)
{
	json_t *figures = json_object();

	admin_set_number(figures, "bytes", stat->bytes);
	admin_set_number(figures, "sstables", stat->sstables);
	admin_set_number(figures, "sessions", stat->sessions);
	admin_set(json, name, figures);
}

static void
admin_summarize_pending(struct admin_call *call, json_t *json, struct table_store *table,
    const struct ring_range *ranges, uint32_t range_count)
{
	struct repair_pending_stats stats;

	repairs_pending(call->node->cluster->repairs, table, ranges, range_count, &stats);
	admin_set_pending(json, "pending", &stats.pending);
	admin_set_pending(json, "finalized", &stats.finalized);
	admin_set_pending(json, "failed", &stats.failed);
}

int
admin_get_pending_repairs(struct admin_call *call, struct error *err)
{
	return admin_each_summary(call, admin_summarize_pending, err);
}

static void
admin_summarize_repaired(struct admin_call *call, json_t *json, struct table_store *table,
    const struct ring_range *ranges, uint32_t range_count)
{
	struct repair_section *sections;
	uint32_t count = repairs_repaired(
	    call->node->cluster->repairs, table_store_id(table), ranges, range_count, &sections);
	json_t *list = json_array();

	for (uint32_t i = 0; i < count; i++) {
		json_t *section = json_object();

		admin_set(section, "start", json_integer(sections[i].range.left));
		admin_set(section, "end", json_integer(sections[i].range.right));
		admin_set(section, "repaired_at_ms", json_integer(sections[i].repaired_at));
		json_array_append_new(list, section);
	}
	admin_set(json, "sections", list);
	free(sections);
}

int
admin_get_repaired(struct admin_call *call, struct error *err)
{
	return admin_each_summary(call, admin_summarize_repaired, err);
}

static void
admin_cleanup_repairs(struct admin_call *call, json_t *json, struct table_store *table,
    const struct ring_range *ranges, uint32_t range_count)
{
	uint32_t successful, unsuccessful;

	repairs_cleanup(
	    call->node->cluster->repairs, table, ranges, range_count, &successful, &unsuccessful);
	admin_set_number(json, "successful", successful);
	admin_set_number(json, "unsuccessful", unsuccessful);
}

int
admin_post_cleanup_repairs(struct admin_call *call, struct error *err)
{
	/* What is being compacted cannot be given back: it need not wait for that. */
	if (admin_is_true(call, "force"))
		(void)store_stop_compactions(call->node->store, NULL, "COMPACTION");
	return admin_each_summary(call, admin_cleanup_repairs, err);
}
