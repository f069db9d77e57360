/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the ring that an operator asks for. Each waits; the admin port's threads may. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/range_streamer.h"
#include "server/cluster_internal.h"
#include "server/network.h"
#include "server/node.h"
#include "server/operations.h"
#include "server/system_ranges.h"
#include "storage/stream_writer.h"

static int
cluster_check_started(struct cluster *cluster, struct error *err)
{
	if (cluster->service != NULL)
		return 0;
	return error_set(err, ERROR_INVALID, "the node is starting");
}

/* ---- who is in the ring ------------------------------------------------------------------------------- */

int
cluster_decommission(struct cluster *cluster, bool is_forced, struct error *err)
{
	struct cluster_waiter waiter;

	if (cluster_check_started(cluster, err) != 0)
		return -1;
	cluster_waiter_init(&waiter);
	storage_service_decommission(cluster->service, is_forced, &waiter.service);
	if (cluster_wait(&waiter, err) != 0)
		return -1;
	/* Out of the ring: nobody is served, and nobody hears of this node any more. */
	cluster_set_serving(cluster, false);
	network_disable(cluster->node->network);
	cluster_waiter_init(&waiter);
	gossip_stop(cluster->gossip, false, &waiter.gossip);
	(void)cluster_wait(&waiter, NULL);
	log_info("DECOMMISSIONED");
	return 0;
}

int
cluster_move(struct cluster *cluster, int64_t token, struct error *err)
{
	struct cluster_waiter waiter;

	if (cluster_check_started(cluster, err) != 0)
		return -1;
	cluster_waiter_init(&waiter);
	storage_service_move(cluster->service, token, &waiter.service);
	return cluster_wait(&waiter, err);
}

int
cluster_remove_node(struct cluster *cluster, const char *host_id, struct error *err)
{
	struct cluster_waiter waiter;
	struct uuid id;

	if (cluster_check_started(cluster, err) != 0)
		return -1;
	if (uuid_parse(host_id, strlen(host_id), &id) != 0)
		return error_set(err, ERROR_INVALID, "'%s' is no host id", host_id);
	cluster_waiter_init(&waiter);
	storage_service_remove_node(cluster->service, &id, &waiter.service);
	return cluster_wait(&waiter, err);
}

int
cluster_force_removal(struct cluster *cluster, struct error *err)
{
	struct cluster_waiter waiter;

	if (cluster_check_started(cluster, err) != 0)
		return -1;
	cluster_waiter_init(&waiter);
	storage_service_force_removal(cluster->service, &waiter.service);
	return cluster_wait(&waiter, err);
}

int
cluster_removal_status(struct cluster *cluster, struct buffer *out, struct error *err)
{
	struct cluster_waiter waiter;

	if (cluster_check_started(cluster, err) != 0)
		return -1;
	cluster_waiter_init(&waiter);
	storage_service_removal_status(cluster->service, out, &waiter.service);
	return cluster_wait(&waiter, err);
}

int
cluster_resume_bootstrap(struct cluster *cluster, bool is_forced, struct error *err)
{
	struct cluster_waiter waiter;

	if (cluster_check_started(cluster, err) != 0)
		return -1;
	if (cluster->node->config->cassandra__reset_bootstrap_progress && !is_forced)
		return error_set(err, ERROR_INVALID,
		    "'nodetool bootstrap resume' is disabled by "
		    "cassandra.reset_bootstrap_progress; --force resumes all the same.");
	cluster_waiter_init(&waiter);
	storage_service_resume_bootstrap(cluster->service, &waiter.service);
	return cluster_wait(&waiter, err);
}

/* ---- rebuild ------------------------------------------------------------------------------------------- */

/* "(left,right],(left,right]" */
static int
cluster_parse_ranges(const char *text, struct ring_range **out, uint32_t *count, struct error *err)
{
	const char *at = text;

	*out = NULL;
	*count = 0;
	while (at != NULL && *at != '\0') {
		struct ring_range range;
		char *end;

		errno = 0;
		if (*at != '(')
			break;
		range.left = strtoll(at + 1, &end, 10);
		if (end == at + 1 || *end != ',')
			break;
		at = end + 1;
		range.right = strtoll(at, &end, 10);
		if (end == at || *end != ']' || errno != 0)
			break;
		*out = xrealloc(*out, (*count + 1) * sizeof(**out));
		(*out)[(*count)++] = range;
		at = end + 1;
		if (*at == ',')
			at++;
	}
	if (at == NULL || *at == '\0')
		return 0;
	free(*out);
	*out = NULL;
	return error_set(err, ERROR_INVALID,
	    "Invalid token range at '%s': it is written as (start_token,end_token]", at);
}

static int
cluster_parse_sources(
    struct cluster *cluster, const char *text, struct range_fetch *fetch, struct error *err)
{
	char *copy = text == NULL ? NULL : xstrdup(text), *rest = copy, *word;
	struct peer **sources = NULL;
	uint32_t count = 0;
	int rc = 0;

	while (rc == 0 && rest != NULL && (word = strsep(&rest, ",")) != NULL) {
		struct endpoint endpoint;
		struct peer *peer;

		rc = endpoint_parse(
		    word, (uint16_t)cluster->node->config->storage_port, &endpoint, err);
		if (rc != 0)
			break;
		peer = peers_find(cluster->peers, &endpoint);
		if (peer == NULL || peer->is_local) {
			rc = error_set(err, ERROR_INVALID,
			    peer == NULL ? "Unknown host specified %s"
					 : "This host was specified as a source for rebuilding: %s",
			    word);
			break;
		}
		sources = xrealloc(sources, (count + 1) * sizeof(struct peer *));
		sources[count++] = peer;
	}
	free(copy);
	fetch->sources = sources;
	fetch->source_count = count;
	return rc;
}

static int
cluster_check_datacenter(const struct topology *topology, const char *datacenter, struct error *err)
{
	const char *const *names;
	uint32_t count = topology_datacenters(topology, &names);

	for (uint32_t i = 0; i < count; i++)
		if (datacenter == NULL || strcmp(names[i], datacenter) == 0)
			return 0;
	return error_set(
	    err, ERROR_INVALID, "Provided datacenter '%s' is not a valid datacenter", datacenter);
}

static int
cluster_rebuild_plan(struct cluster *cluster, const struct range_fetch *fetch, const char *keyspace,
    struct stream_job *job, struct error *err)
{
	struct schema *schema = operations_schema(cluster->node->executor);
	bool is_found = keyspace == NULL;
	int rc = 0;

	for (uint32_t i = 0; i < schema->keyspace_count && rc == 0; i++) {
		const struct keyspace_metadata *each = schema->keyspaces[i];

		if (!keyspace_is_distributed(each) ||
		    (keyspace != NULL && !slice_equal_string(each->name, keyspace)))
			continue;
		is_found = true;
		rc = range_streamer_fetch(job, fetch, each, err);
	}
	schema_unref(schema);
	if (rc == 0 && !is_found)
		rc = error_set(err, ERROR_INVALID, "Keyspace [%s] does not exist.", keyspace);
	return rc;
}

struct cluster_rebuild {
	struct cluster *cluster;
	struct stream_wait stream;
	struct repair_paxos paxos;
	struct cluster_waiter waiter;
};

static bool
cluster_was_rebuilt(void *context, const struct keyspace_metadata *keyspace, const struct peer *to,
    struct ring_range range)
{
	(void)to;
	return system_ranges_has(context, keyspace->name, NULL, range);
}

static void
cluster_rebuilt_from(struct stream_wait *wait, const struct stream_result *result)
{
	struct cluster_rebuild *rebuild =
	    (struct cluster_rebuild *)((char *)wait - offsetof(struct cluster_rebuild, stream));
	struct error err;

	if (system_ranges_save(rebuild->cluster->node->executor, STREAM_REBUILD, result, &err) != 0)
		log_warn("ranges that were rebuilt could not be noted: %s", err.text);
}

static void
cluster_rebuilt(struct stream_wait *wait, const struct error *err)
{
	struct cluster_rebuild *rebuild =
	    (struct cluster_rebuild *)((char *)wait - offsetof(struct cluster_rebuild, stream));

	rebuild->waiter.service.on_done(&rebuild->waiter.service, err);
}

static void
cluster_rebuild_repaired(struct repair_paxos *paxos, const struct error *err)
{
	struct cluster_rebuild *rebuild =
	    (struct cluster_rebuild *)((char *)paxos - offsetof(struct cluster_rebuild, paxos));

	rebuild->waiter.service.on_done(&rebuild->waiter.service, err);
}

/* The replicas may have become others by ALTER KEYSPACE: their majorities shall know what those before decided. */
static int
cluster_rebuild_paxos(struct cluster *cluster, struct error *err)
{
	struct cluster_rebuild rebuild = {
	    .paxos = {
		.reason = "rebuild", .has_natural = true, .on_done = cluster_rebuild_repaired}};

	if (!cluster->node->config->paxos_repair_enabled)
		return 0;
	cluster_waiter_init(&rebuild.waiter);
	repairs_finish_paxos(cluster->repairs, &rebuild.paxos);
	return cluster_wait(&rebuild.waiter, err);
}

static int
cluster_run_rebuild(
    struct cluster *cluster, struct range_fetch *fetch, const char *keyspace, struct error *err)
{
	struct stream_job *job = stream_job_new(cluster->streams, STREAM_REBUILD, NULL);
	struct cluster_rebuild rebuild = {.cluster = cluster,
	    .stream = {.on_done = cluster_rebuilt, .on_session = cluster_rebuilt_from}};
	struct executor *executor = cluster->node->executor;
	struct system_ranges *came = NULL;
	int rc;

	/* What a rebuild that broke off has brought is not fetched again. */
	rc = system_ranges_load(executor, STREAM_REBUILD, &came, err);
	fetch->has_moved = cluster_was_rebuilt;
	fetch->context = came;
	if (rc == 0)
		rc = cluster_rebuild_plan(cluster, fetch, keyspace, job, err);
	system_ranges_free(came);
	if (rc != 0) {
		stream_job_free(job);
		return -1;
	}
	cluster_waiter_init(&rebuild.waiter);
	stream_job_start(job, &rebuild.stream);
	if (cluster_wait(&rebuild.waiter, err) != 0)
		return -1;
	return system_ranges_forget_fetched(executor, keyspace, err);
}

int
cluster_rebuild(struct cluster *cluster, const char *datacenter, const char *keyspace,
    const char *tokens, const char *sources, struct error *err)
{
	struct range_fetch fetch = {
	    .peers = cluster->peers, .snitch = cluster->snitch, .is_from_nothing = true};
	struct ring_range *ranges = NULL;
	int rc;

	if (cluster_check_started(cluster, err) != 0)
		return -1;
	if (tokens != NULL && keyspace == NULL)
		return error_set(err, ERROR_INVALID, "Cannot specify tokens without keyspace.");
	if (atomic_exchange(&cluster->is_rebuilding, true))
		return error_set(
		    err, ERROR_INVALID, "Node is still rebuilding. Check nodetool netstats.");
	fetch.before = fetch.after = topology_acquire(cluster->topology);
	fetch.datacenter = datacenter;
	rc = cluster_check_datacenter(fetch.before, datacenter, err);
	if (rc == 0)
		rc = cluster_parse_ranges(tokens, &ranges, &fetch.range_count, err);
	fetch.ranges = ranges;
	if (rc == 0)
		rc = cluster_parse_sources(cluster, sources, &fetch, err);
	if (rc == 0)
		rc = cluster_rebuild_paxos(cluster, err);
	if (rc == 0)
		rc = cluster_run_rebuild(cluster, &fetch, keyspace, err);
	topology_release(cluster->topology, fetch.before);
	free(ranges);
	free((void *)fetch.sources);
	atomic_store(&cluster->is_rebuilding, false);
	return rc;
}

/* ---- cleanup ---------------------------------------------------------------------------------------------- */

/* Does the ring change such that this node gets ranges? What it would delete may be what came already. */
static bool
cluster_has_pending(const struct topology *topology, const struct replication *replication)
{
	struct ring_range *pending;
	uint32_t count =
	    replication_pending_ranges_of(replication, topology_local_peer(topology), &pending);

	free(pending);
	return count > 0;
}

static struct stream_range *
cluster_ranges_of(
    const struct topology *topology, const struct replication *replication, uint32_t *count)
{
	struct stream_range *ranges;
	struct ring_range *owned;

	*count = replication_ranges_of(replication, topology_local_peer(topology), &owned);
	ranges = xcalloc((size_t)*count + 1, sizeof(*ranges));
	for (uint32_t i = 0; i < *count; i++)
		ranges[i] = (struct stream_range){owned[i].left, owned[i].right};
	free(owned);
	return ranges;
}

struct stream_range *
cluster_owned_ranges(struct cluster *cluster, const char *name, uint32_t *count)
{
	const struct topology *topology = topology_acquire(cluster->topology);
	struct schema *schema = operations_schema(cluster->node->executor);
	const struct keyspace_metadata *keyspace = schema_keyspace(schema, slice_of_string(name));
	struct stream_range *ranges, *normalized = NULL;

	*count = 0;
	if (keyspace != NULL && keyspace_is_distributed(keyspace)) {
		ranges =
		    cluster_ranges_of(topology, topology_replication(topology, keyspace), count);
		normalized = stream_ranges_normalize(ranges, *count, count);
		free(ranges);
	}
	schema_unref(schema);
	topology_release(cluster->topology, topology);
	return normalized;
}

static int
cluster_cleanup_with(struct cluster *cluster, const struct topology *topology,
    const struct keyspace_metadata *keyspace, struct table_store *table, uint32_t jobs,
    struct error *err)
{
	const struct replication *replication = topology_replication(topology, keyspace);
	struct stream_range *ranges;
	uint32_t count;
	int rc;

	if (cluster_has_pending(topology, replication))
		return error_set(err, ERROR_INVALID,
		    "Node is involved in cluster membership changes. Not safe to run cleanup.");
	ranges = cluster_ranges_of(topology, replication, &count);
	rc = store_cleanup(cluster->node->store, table, ranges, count, jobs, err);
	/* What a rebuild that broke off has brought may be gone now. */
	if (rc == 0)
		rc = system_ranges_forget_fetched(
		    cluster->node->executor, table_store_keyspace(table), err);
	free(ranges);
	return rc;
}

int
cluster_cleanup(
    struct cluster *cluster, struct table_store *table, uint32_t jobs, struct error *err)
{
	const struct topology *topology = topology_acquire(cluster->topology);
	struct schema *schema = operations_schema(cluster->node->executor);
	const struct keyspace_metadata *keyspace =
	    schema_keyspace(schema, slice_of_string(table_store_keyspace(table)));
	int rc = 0;

	if (!atomic_load(&cluster->node->cluster->is_serving) &&
	    storage_service_mode(cluster->service) != STORAGE_NORMAL)
		rc = error_set(err, ERROR_INVALID,
		    "Cleanup cannot be run before the node has joined the ring");
	else if (keyspace != NULL && keyspace_is_distributed(keyspace))
		rc = cluster_cleanup_with(cluster, topology, keyspace, table, jobs, err);
	schema_unref(schema);
	topology_release(cluster->topology, topology);
	return rc;
}
