/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the API that change something. Each runs on a thread of its own and may take long. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/uuid.h"
#include "server/admin_internal.h"
#include "server/estimates.h"
#include "server/internode.h"
#include "server/client_history.h"
#include "server/cluster.h"
#include "server/node.h"
#include "server/operations.h"
#include "storage/store.h"

static bool
admin_is_drained(struct node *node)
{
	int mode = atomic_load(&node->mode);

	return mode == NODE_DRAINING || mode == NODE_DRAINED;
}

int
admin_check_may_start(struct node *node, const char *service, struct error *err)
{
	struct storage_service *joined = node->cluster->service;

	if (admin_is_drained(node))
		return error_set(err, ERROR_SHUTDOWN,
		    "Unable to start %s because the node was drained.", service);
	/* Who is not to join stays outside, and serves all the same. */
	if (node->config->cassandra__join_ring &&
	    (joined == NULL || storage_service_mode(joined) != STORAGE_NORMAL))
		return error_set(err, ERROR_INVALID,
		    "Unable to start %s because the node is not in the normal state.", service);
	return 0;
}

/* Run something on every table that the call names. */
static int
admin_each_table(struct admin_call *call,
    int (*run)(struct store *store, struct table_store *table, struct error *err),
    struct error *err)
{
	struct table_store **tables;
	uint32_t count;
	int rc = 0;

	if (admin_is_drained(call->node))
		return error_set(err, ERROR_SHUTDOWN, "Node in DRAINED state");
	if (admin_tables(call, &tables, &count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		rc = run(call->node->store, tables[i], err);
		if (rc != 0)
			error_prefix(err, "%s.%s", table_store_keyspace(tables[i]),
			    table_store_name(tables[i]));
	}
	json_object_set_new(call->answer, "tables", json_integer(count));
	free(tables);
	return rc;
}

static int
admin_post_compaction_threshold(struct admin_call *call, struct error *err)
{
	const char *keyspace, *name;
	struct table_store *table;
	int64_t min, max;

	if (admin_need(call, "keyspace", &keyspace, err) != 0 ||
	    admin_need(call, "table", &name, err) != 0 ||
	    admin_need_number(call, "min", 0, INT32_MAX, &min, err) != 0 ||
	    admin_need_number(call, "max", 0, INT32_MAX, &max, err) != 0)
		return -1;
	table = store_find_table(call->node->store, keyspace, name);
	if (table == NULL)
		return error_set(
		    err, ERROR_INVALID, "Unknown keyspace/cf pair (%s.%s)", keyspace, name);
	return store_set_compaction_threshold(table, (int32_t)min, (int32_t)max, err);
}

static int
admin_post_clear_client_history(struct admin_call *call, struct error *err)
{
	(void)err;
	client_history_clear(network_clients_seen(call->node->network));
	return 0;
}

static int
admin_post_flush(struct admin_call *call, struct error *err)
{
	return admin_each_table(call, store_flush, err);
}

static int
admin_auto_on(struct store *store, struct table_store *table, struct error *err)
{
	(void)err;
	store_set_auto_compaction(store, table, true);
	return 0;
}

static int
admin_auto_off(struct store *store, struct table_store *table, struct error *err)
{
	(void)err;
	store_set_auto_compaction(store, table, false);
	return 0;
}

int
admin_need_switch(const struct admin_call *call, bool *out, struct error *err)
{
	const char *text;

	if (admin_need(call, "enabled", &text, err) != 0)
		return -1;
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return error_set(err, ERROR_INVALID, "enabled must be true or false");
	*out = strcmp(text, "true") == 0;
	return 0;
}

static int
admin_post_auto_compaction(struct admin_call *call, struct error *err)
{
	bool is_on = false;

	if (admin_need_switch(call, &is_on, err) != 0)
		return -1;
	return admin_each_table(call, is_on ? admin_auto_on : admin_auto_off, err);
}

static int
admin_post_refresh(struct admin_call *call, struct error *err)
{
	const char *keyspace, *name;
	struct table_store *table;
	uint32_t added = 0;

	if (admin_need(call, "keyspace", &keyspace, err) != 0 ||
	    admin_need(call, "table", &name, err) != 0)
		return -1;
	table = store_find_table(call->node->store, keyspace, name);
	if (table == NULL)
		return error_set(
		    err, ERROR_INVALID, "Unknown keyspace/cf pair (%s.%s)", keyspace, name);
	if (store_refresh(call->node->store, table, &added, err) != 0)
		return -1;
	json_object_set_new(call->answer, "added", json_integer(added));
	return 0;
}

/* ---- snapshots ---------------------------------------------------------------------------------------- */

/* snapshot --ttl: a duration of at least a minute, as Cassandra's SNAPSHOT_MIN_ALLOWED_TTL_SECONDS. */
static int
admin_snapshot_ttl(const char *text, int64_t *seconds, struct error *err)
{
	int64_t ms;

	if (text == NULL)
		return 0;
	if (config_parse_duration_ms(text, &ms) != 0)
		return error_set(err, ERROR_INVALID, "Invalid duration: %s", text);
	*seconds = ms / 1000;
	if (*seconds < 60)
		return error_set(
		    err, ERROR_INVALID, "ttl for snapshot must be at least 60 seconds");
	return 0;
}

static int
admin_post_snapshot(struct admin_call *call, struct error *err)
{
	const char *skip_flush = admin_argument(call, "skipflush");
	struct store_snapshot_options options = {
	    .skip_flush = skip_flush != NULL && strcmp(skip_flush, "true") == 0};
	struct table_store **tables;
	uint32_t count;
	int rc = 0;

	if (admin_need(call, "tag", &options.tag, err) != 0 ||
	    admin_snapshot_ttl(admin_argument(call, "ttl"), &options.ttl_seconds, err) != 0)
		return -1;
	if (strchr(options.tag, '/') != NULL || options.tag[0] == '.')
		return error_set(err, ERROR_INVALID, "Snapshot name cannot contain /");
	if (admin_tables(call, &tables, &count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = store_snapshot(call->node->store, tables[i], &options, err);
	free(tables);
	return rc;
}

static int
admin_post_clear_snapshots(struct admin_call *call, struct error *err)
{
	uint32_t removed = 0;

	if (store_clear_snapshots(call->node->store, admin_argument(call, "keyspace"),
		admin_argument(call, "tag"), &removed, err) != 0)
		return -1;
	json_object_set_new(call->answer, "removed", json_integer(removed));
	return 0;
}

static int
admin_post_backup(struct admin_call *call, struct error *err)
{
	bool is_on = false;

	if (admin_need_switch(call, &is_on, err) != 0)
		return -1;
	store_set_incremental_backups(call->node->store, is_on);
	return 0;
}

/* ---- compaction --------------------------------------------------------------------------------------- */

static int
admin_post_stop(struct admin_call *call, struct error *err)
{
	const char *text = admin_argument(call, "id");
	struct uuid id;
	uint32_t count;

	if (text != NULL && uuid_parse(text, strlen(text), &id) != 0)
		return error_set(err, ERROR_INVALID, "'%s' is no compaction id", text);
	if (call->node->cluster->repairs != NULL && text == NULL &&
	    admin_argument(call, "kind") != NULL &&
	    strcmp(admin_argument(call, "kind"), "VALIDATION") == 0)
		repairs_stop_validations(call->node->cluster->repairs);
	count = store_stop_compactions(
	    call->node->store, text == NULL ? NULL : &id, admin_argument(call, "kind"));
	json_object_set_new(call->answer, "stopped", json_integer(count));
	return 0;
}

static int
admin_post_compaction_throughput(struct admin_call *call, struct error *err)
{
	int64_t mib;

	if (admin_need_number(call, "mib", 0, 1 << 20, &mib, err) != 0)
		return -1;
	store_set_compaction_throughput(call->node->store, (uint64_t)mib << 20);
	return 0;
}

static int
admin_post_concurrent_compactors(struct admin_call *call, struct error *err)
{
	int64_t count;

	if (admin_need_number(call, "count", 1, 1024, &count, err) != 0)
		return -1;
	store_set_concurrent_compactors(call->node->store, (uint32_t)count);
	stage_resize(call->node->stages[NODE_STAGE_COMPACTION], (uint32_t)count);
	return 0;
}

/* ---- the node ------------------------------------------------------------------------------------------- */

static int
admin_post_binary(struct admin_call *call, struct error *err)
{
	bool is_on = false;

	if (admin_need_switch(call, &is_on, err) != 0)
		return -1;
	if (is_on) {
		if (admin_check_may_start(call->node, "native transport", err) != 0 ||
		    network_enable(call->node->network, err) != 0)
			return -1;
		cluster_set_serving(call->node->cluster, true);
		return 0;
	}
	/* Gossip goes on to tell RPC_READY, as in Cassandra: drivers find out by themselves. */
	network_disable(call->node->network);
	return 0;
}

static int
admin_post_drain(struct admin_call *call, struct error *err)
{
	return node_drain(call->node, err);
}

static int
admin_post_stop_daemon(struct admin_call *call, struct error *err)
{
	(void)err;
	node_request_stop(call->node);
	return 0;
}

static int
admin_post_concurrency(struct admin_call *call, struct error *err)
{
	/* Cassandra's Stage with more than one thread, and what it resizes over JMX. */
	static const int allowed[] = {NODE_STAGE_READ, NODE_STAGE_MUTATION,
	    NODE_STAGE_COUNTER_MUTATION, NODE_STAGE_VIEW_MUTATION, NODE_STAGE_REQUEST_RESPONSE,
	    NODE_STAGE_INTERNAL_RESPONSE, NODE_STAGE_PAXOS_REPAIR, NODE_STAGE_NATIVE_TRANSPORT};
	char names[256] = "";
	const char *name;
	int64_t threads;
	int stage;

	if (admin_need(call, "stage", &name, err) != 0 ||
	    admin_need_number(call, "threads", 1, 65536, &threads, err) != 0)
		return -1;
	stage = node_stage_find(name);
	if (stage < 0)
		return error_set(err, ERROR_INVALID, "Unknown stage: %s", name);
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (allowed[i] == stage) {
			stage_resize(call->node->stages[stage], (uint32_t)threads);
			log_info(
			    "%s: %ld threads from now on", node_stage_name(stage), (long)threads);
			return 0;
		}
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
		    i > 0 ? ", " : "", node_stage_name(allowed[i]));
	}
	return error_set(err, ERROR_INVALID, "The size of %s cannot be changed; that of %s can",
	    node_stage_name(stage), names);
}

static int
admin_post_timeout(struct admin_call *call, struct error *err)
{
	const char *name;
	int64_t ms;
	int timeout;

	if (admin_need(call, "type", &name, err) != 0 ||
	    admin_need_number(call, "ms", 0, INT32_MAX, &ms, err) != 0)
		return -1;
	timeout = node_timeout_find(name);
	if (timeout < 0)
		return error_set(err, ERROR_INVALID, "Unknown timeout type: %s", name);
	atomic_store(&call->node->timeouts_ms[timeout], ms);
	return 0;
}

static int
admin_post_log_level(struct admin_call *call, struct error *err)
{
	const char *logger = admin_argument(call, "logger");
	const char *text = admin_argument(call, "level");
	enum log_level level;

	/* Without arguments: what the configuration says. */
	if (text == NULL)
		text = call->node->config->log_level;
	if (logger == NULL)
		logger = "ROOT";
	/* Cassandra's class names: its own root is ours. */
	if (strncmp(logger, "org.apache.cassandra", 20) == 0 || strcasecmp(logger, "root") == 0)
		logger = "ROOT";
	if (log_level_parse(text, &level) != 0)
		return error_set(err, ERROR_INVALID,
		    "'%s' is no log level: TRACE, DEBUG, INFO, WARN, ERROR or OFF", text);
	log_set_level(logger, level);
	return 0;
}

static int
admin_post_trace_probability(struct admin_call *call, struct error *err)
{
	const char *text;
	double value;
	char *end;

	if (admin_need(call, "value", &text, err) != 0)
		return -1;
	value = strtod(text, &end);
	if (*end != '\0' || !(value >= 0 && value <= 1))
		return error_set(err, ERROR_INVALID, "Trace probability must be between 0 and 1");
	atomic_store(&call->node->trace_probability, value);
	return 0;
}

static int
admin_post_invalidate(struct admin_call *call, struct error *err)
{
	const char *cache;

	if (admin_need(call, "cache", &cache, err) != 0)
		return -1;
	if (strcmp(cache, "key") == 0)
		store_invalidate_key_cache(call->node->store);
	else if (strcmp(cache, "row") == 0)
		store_invalidate_row_cache(call->node->store);
	else if (strcmp(cache, "counter") == 0)
		store_invalidate_counter_cache(call->node->store);
	else
		return error_set(err, ERROR_INVALID, "no cache '%s'", cache);
	return 0;
}

/* key=, row=, counter=: MiB for setcachecapacity, numbers of keys for setcachekeystosave. */
static int
admin_need_caches(struct admin_call *call, int64_t max, int64_t out[3], struct error *err)
{
	static const char *const names[] = {"key", "row", "counter"};

	for (int i = 0; i < 3; i++)
		if (admin_need_number(call, names[i], 0, max, &out[i], err) != 0)
			return -1;
	return 0;
}

static int
admin_post_cache_capacity(struct admin_call *call, struct error *err)
{
	int64_t mib[3];

	if (admin_need_caches(call, 1 << 20, mib, err) != 0)
		return -1;
	store_set_cache_capacity(call->node->store, (uint64_t)mib[0] << 20, (uint64_t)mib[1] << 20,
	    (uint64_t)mib[2] << 20);
	return 0;
}

static int
admin_post_cache_keys_to_save(struct admin_call *call, struct error *err)
{
	int64_t counts[3];

	if (admin_need_caches(call, INT32_MAX, counts, err) != 0)
		return -1;
	store_set_cache_keys_to_save(
	    call->node->store, (uint64_t)counts[0], (uint64_t)counts[1], (uint64_t)counts[2]);
	return 0;
}

static int
admin_post_refresh_size_estimates(struct admin_call *call, struct error *err)
{
	return estimates_refresh(call->node->estimates, err);
}

static int
admin_post_reload_tls(struct admin_call *call, struct error *err)
{
	struct internode *internode = call->node->internode;

	if (network_reload_tls(call->node->network, err) != 0)
		return -1;
	return internode == NULL ? 0 : internode_reload_tls(internode, err);
}

const struct admin_route admin_writes[] = {
    {"assassinate", true, admin_post_assassinate},
    {"autocompaction", true, admin_post_auto_compaction},
    {"backup", true, admin_post_backup},
    {"batchlogthrottle", true, admin_post_batchlog_throttle},
    {"binary", true, admin_post_binary},
    {"cachecapacity", true, admin_post_cache_capacity},
    {"cachekeystosave", true, admin_post_cache_keys_to_save},
    {"cleanuprepairs", true, admin_post_cleanup_repairs},
    {"cleanup", true, admin_post_cleanup},
    {"cancelrepair", true, admin_post_cancel_repair},
    {"clearsnapshot", true, admin_post_clear_snapshots},
    {"clearclienthistory", true, admin_post_clear_client_history},
    {"compact", true, admin_post_compact},
    {"compactionthreshold", true, admin_post_compaction_threshold},
    {"compactionthroughput", true, admin_post_compaction_throughput},
    {"concurrency", true, admin_post_concurrency},
    {"concurrentcompactors", true, admin_post_concurrent_compactors},
    {"decommission", true, admin_post_decommission},
    {"drain", true, admin_post_drain},
    {"flush", true, admin_post_flush},
    {"gossip", true, admin_post_gossip},
    {"garbagecollect", true, admin_post_garbage_collect},
    {"handoff", true, admin_post_handoff},
    {"hintdelivery", true, admin_post_hint_delivery},
    {"hintthrottle", true, admin_post_hint_throttle},
    {"hintwindow", true, admin_post_hint_window},
    {"import", true, admin_post_import},
    {"invalidate", true, admin_post_invalidate},
    {"join", true, admin_post_join},
    {"limit", true, admin_post_limit},
    {"logginglevel", true, admin_post_log_level},
    {"move", true, admin_post_move},
    {"rebuild", true, admin_post_rebuild},
    {"recompress", true, admin_post_recompress},
    {"refresh", true, admin_post_refresh},
    {"refreshsizeestimates", true, admin_post_refresh_size_estimates},
    {"reloadseeds", true, admin_post_reload_seeds},
    {"reloadssl", true, admin_post_reload_tls},
    {"removalstatus", true, admin_post_removal_status},
    {"removenode", true, admin_post_remove_node},
    {"repair", true, admin_post_repair},
    {"replaybatchlog", true, admin_post_replay_batchlog},
    {"resumebootstrap", true, admin_post_resume_bootstrap},
    {"sample", true, admin_post_sample},
    {"scrub", true, admin_post_scrub},
    {"snapshot", true, admin_post_snapshot},
    {"stop", true, admin_post_stop},
    {"stopdaemon", true, admin_post_stop_daemon},
    {"streamthroughput", true, admin_post_stream_throughput},
    {"terminaterepairs", true, admin_post_terminate_repairs},
    {"timeout", true, admin_post_timeout},
    {"traceprobability", true, admin_post_trace_probability},
    {"truncatehints", true, admin_post_truncate_hints},
    {"upgradesstables", true, admin_post_upgrade},
    {"verify", true, admin_post_verify},
    {NULL, false, NULL},
};
