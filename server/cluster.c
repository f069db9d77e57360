/* SPDX-License-Identifier: Apache-2.0 */
#include "server/cluster.h"
#include "server/disk_usage.h"
#include <libgen.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "cluster/messaging.h"
#include "server/cluster_internal.h"
#include "server/execution.h"
#include "server/internode.h"
#include "server/node.h"
#include "server/operations.h"
#include "server/system_local.h"
#include "server/system_peers.h"
#include "server/tracing.h"

#define CLUSTER_MS UINT64_C(1000000)
/* How often a start that waits looks for a signal. */
#define CLUSTER_SIGNAL_NS 200000000L

/* What NET_VERSION tells: of Cassandra 4.x, whose gossip states ours are. */
enum { CLUSTER_NET_VERSION = 12 };

/* ---- waiting: main and the admin port's threads may, stages may not ---------------------------------- */

static void
cluster_wake(struct cluster_waiter *waiter, const struct error *err)
{
	pthread_mutex_lock(&waiter->mutex);
	waiter->is_done = true;
	waiter->has_failed = err != NULL;
	if (err != NULL)
		waiter->err = *err;
	pthread_cond_signal(&waiter->condition);
	pthread_mutex_unlock(&waiter->mutex);
}

static void
cluster_service_done(struct service_wait *wait, const struct error *err)
{
	cluster_wake(
	    (struct cluster_waiter *)((char *)wait - offsetof(struct cluster_waiter, service)),
	    err);
}

static void
cluster_gossip_done(struct gossip_wait *wait, const struct error *err)
{
	cluster_wake(
	    (struct cluster_waiter *)((char *)wait - offsetof(struct cluster_waiter, gossip)), err);
}

void
cluster_waiter_init(struct cluster_waiter *waiter)
{
	memset(waiter, 0, sizeof(*waiter));
	waiter->service.on_done = cluster_service_done;
	waiter->gossip.on_done = cluster_gossip_done;
	pthread_mutex_init(&waiter->mutex, NULL);
	pthread_cond_init(&waiter->condition, NULL);
}

int
cluster_wait(struct cluster_waiter *waiter, struct error *err)
{
	pthread_mutex_lock(&waiter->mutex);
	while (!waiter->is_done)
		pthread_cond_wait(&waiter->condition, &waiter->mutex);
	pthread_mutex_unlock(&waiter->mutex);
	pthread_cond_destroy(&waiter->condition);
	pthread_mutex_destroy(&waiter->mutex);
	if (waiter->has_failed && err != NULL)
		*err = waiter->err;
	return waiter->has_failed ? -1 : 0;
}

/* Has somebody told the process to end? Signals wait in main's descriptor while the node starts. */
static bool
cluster_is_told_to_end(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	    (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

/* Joining may take hours: it is given up when the process is told to end. */
static int
cluster_wait_start(struct cluster *cluster, struct cluster_waiter *waiter, struct error *err)
{
	struct timespec until;
	bool is_told = false;

	pthread_mutex_lock(&waiter->mutex);
	while (!waiter->is_done) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += CLUSTER_SIGNAL_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&waiter->condition, &waiter->mutex, &until);
		if (waiter->is_done || is_told || !cluster_is_told_to_end())
			continue;
		is_told = true;
		pthread_mutex_unlock(&waiter->mutex);
		storage_service_abandon(cluster->service);
		pthread_mutex_lock(&waiter->mutex);
	}
	pthread_mutex_unlock(&waiter->mutex);
	return cluster_wait(waiter, err);
}

/* ---- making the parts ------------------------------------------------------------------------------------ */

/* A name becomes its first address; one that cannot be found is left out with a warning, as Cassandra does. */
static bool
cluster_resolve(const char *seed, uint16_t port, struct endpoint *out, const char **reason)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	char host[256], numeric[NI_MAXHOST];
	const char *colon = strrchr(seed, ':');
	size_t length = colon == NULL ? strlen(seed) : (size_t)(colon - seed);
	struct error err;
	int rc;

	if (endpoint_parse(seed, port, out, NULL) == 0)
		return true;
	*reason = "the name is too long";
	if (length >= sizeof(host))
		return false;
	memcpy(host, seed, length);
	host[length] = '\0';
	if (colon != NULL)
		port = (uint16_t)atoi(colon + 1);
	rc = getaddrinfo(host, NULL, &hints, &found);
	if (rc == 0) {
		rc = getnameinfo(found->ai_addr, found->ai_addrlen, numeric, sizeof(numeric), NULL,
		    0, NI_NUMERICHOST);
		freeaddrinfo(found);
	}
	*reason = rc == 0 ? "an address of a strange kind" : gai_strerror(rc);
	if (rc == 0 && endpoint_parse(numeric, port, out, &err) == 0)
		return true;
	/* A machine without /etc/hosts has a loopback all the same (RFC 6761). */
	if (strcmp(host, "localhost") == 0)
		return endpoint_parse("127.0.0.1", port, out, NULL) == 0;
	log_warn("Seed provider couldn't lookup host %s: %s", seed, *reason);
	return false;
}

/* *out is the caller's to free, with *count of them. ERROR_CONFIG: there are none, and *out is NULL. */
static int
cluster_seeds(
    const struct config *config, struct endpoint **out, uint32_t *count, struct error *err)
{
	struct endpoint *seeds = xcalloc(config->seed_list.count + 1, sizeof(*seeds));
	const char *seed = NULL, *reason = NULL;

	*count = 0;
	for (size_t i = 0; i < config->seed_list.count; i++) {
		seed = config->seed_list.items[i];
		if (cluster_resolve(seed, (uint16_t)config->storage_port, &seeds[*count], &reason))
			(*count)++;
	}
	*out = seeds;
	if (*count > 0)
		return 0;
	free(seeds);
	*out = NULL;
	if (seed == NULL)
		return error_set(err, ERROR_CONFIG, "The seed provider lists no seeds.");
	return error_set(err, ERROR_CONFIG,
	    "The seed provider lists no seeds that can be found: seeds: '%s': %s", seed, reason);
}

static int
cluster_make_snitch(struct cluster *cluster, struct error *err)
{
	const struct config *config = cluster->node->config;
	struct snitch_config snitch = snitch_config_default;
	char *copy = config->path == NULL ? NULL : xstrdup(config->path);
	int rc;

	snitch.endpoint_snitch = config->endpoint_snitch;
	snitch.config_folder = copy == NULL ? NULL : dirname(copy);
	snitch.datacenter = config->dc;
	snitch.rack = config->rack;
	snitch.is_dynamic = config->dynamic_snitch;
	snitch.badness_threshold = config->dynamic_snitch_badness_threshold;
	snitch.update_interval_ns = (uint64_t)config->dynamic_snitch_update_interval * CLUSTER_MS;
	snitch.reset_interval_ns = (uint64_t)config->dynamic_snitch_reset_interval * CLUSTER_MS;
	rc = snitch_new(&snitch, cluster->node->env, cluster->peers, &cluster->snitch, err);
	free(copy);
	return rc;
}

static void
cluster_make_gossip(struct cluster *cluster, const struct endpoint *seeds, uint32_t seed_count)
{
	const struct config *config = cluster->node->config;
	struct gossip_options options;

	gossip_options_init(&options);
	options.cluster_name = config->cluster_name;
	options.partitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
	options.seeds = seeds;
	options.seed_count = seed_count;
	options.ring_delay_ns = (uint64_t)config->cassandra__ring_delay_ms * CLUSTER_MS;
	options.detector.phi_threshold = config->phi_convict_threshold;
	options.is_member = storage_service_is_member;
	options.context = cluster->topology;
	cluster->gossip = gossip_new(cluster->env, cluster->messaging, cluster->peers, &options);
}

/* What it did for us is over. What is on its way to it is not lost: it may be for the new life. */
static void
cluster_on_restart(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct cluster *cluster =
	    (struct cluster *)((char *)subscriber - offsetof(struct cluster, subscriber));

	if (cluster->streams != NULL)
		streams_peer_is_down(cluster->streams, peer);
	if (cluster->repairs != NULL)
		repairs_peer_is_down(cluster->repairs, peer);
}

static void
cluster_on_dead(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct cluster *cluster =
	    (struct cluster *)((char *)subscriber - offsetof(struct cluster, subscriber));

	/* One that said goodbye waits for our answer, and closes its connections itself. */
	if (gossip_status(cluster->gossip, peer).kind != NODE_STATUS_SHUTDOWN)
		internode_peer_is_down(cluster->node->internode, peer);
	cluster_on_restart(subscriber, peer);
}

/* Scores of replicas, by the latencies of the last tenth of a second; short, so on the timer's thread. */
static void
cluster_score(struct cluster_timer *timer)
{
	struct cluster *cluster =
	    (struct cluster *)((char *)timer - offsetof(struct cluster, snitch_timer));

	snitch_update(cluster->snitch, env_monotonic_ns(cluster->node->env));
	cluster_timer_start(cluster->env, timer, snitch_update_interval_ns(cluster->snitch));
}

/* Its schema is not ours: it may know of changes that we missed. */
static void
cluster_compare_schema(struct cluster *cluster, struct peer *peer)
{
	struct slice told = gossip_value(cluster->gossip, peer, STATE_SCHEMA);
	char text[UUID_TEXT_SIZE];
	struct schema *schema;

	if (peer->is_local || slice_is_null(told) || cluster->schema_log == NULL)
		return;
	schema = operations_schema(cluster->node->executor);
	uuid_format(&schema->version, text);
	schema_unref(schema);
	if (!slice_equal_string(told, text))
		schema_log_peer_differs(cluster->schema_log, peer);
}

static void
cluster_on_change(struct gossip_subscriber *subscriber, struct peer *peer, uint32_t changed)
{
	struct cluster *cluster =
	    (struct cluster *)((char *)subscriber - offsetof(struct cluster, subscriber));

	if ((changed & application_state_bit(STATE_SCHEMA)) != 0)
		cluster_compare_schema(cluster, peer);
	if ((changed & application_state_bit(STATE_DISK_USAGE)) != 0)
		disk_usage_heard(cluster->node, peer);
}

static void
cluster_on_alive(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct cluster *cluster =
	    (struct cluster *)((char *)subscriber - offsetof(struct cluster, subscriber));

	cluster_compare_schema(cluster, peer);
	snitch_forget(cluster->snitch, peer);
	if (cluster->hints != NULL)
		hints_peer_is_alive(cluster->hints, peer);
}

static void
cluster_on_remove(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct cluster *cluster =
	    (struct cluster *)((char *)subscriber - offsetof(struct cluster, subscriber));

	cluster_drop_hints(cluster, peer);
	disk_usage_forget(cluster->node, peer);
}

/* The first other node: a lone one has nobody to choose from, and sleeps. */
static void
cluster_on_join(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct cluster *cluster =
	    (struct cluster *)((char *)subscriber - offsetof(struct cluster, subscriber));

	disk_usage_heard(cluster->node, peer);
	if (cluster->has_snitch_timer || !cluster->node->config->dynamic_snitch)
		return;
	cluster->has_snitch_timer = true;
	cluster->snitch_timer.fire = cluster_score;
	cluster_timer_start(
	    cluster->env, &cluster->snitch_timer, snitch_update_interval_ns(cluster->snitch));
}

static const char *
cluster_peer_datacenter(void *context, const struct peer *peer)
{
	struct cluster *cluster = context;
	const struct topology *topology = topology_acquire(cluster->topology);
	const char *datacenter = topology_datacenter(topology, peer);

	/* A name that outlives the snapshot. */
	if (datacenter != NULL)
		datacenter = executor_intern(cluster->node->executor, slice_of_string(datacenter));
	topology_release(cluster->topology, topology);
	return datacenter;
}

static const char *
cluster_peer_rack(void *context, const struct peer *peer)
{
	struct cluster *cluster = context;
	const struct topology *topology = topology_acquire(cluster->topology);
	const char *rack = topology_rack(topology, peer);

	if (rack != NULL)
		rack = executor_intern(cluster->node->executor, slice_of_string(rack));
	topology_release(cluster->topology, topology);
	return rack;
}

static void
cluster_refused(void *context, struct peer *peer)
{
	struct cluster *cluster = context;

	gossip_refused(cluster->gossip, peer);
}

static int
cluster_native(const struct config *config, struct endpoint *out, struct error *err)
{
	return endpoint_parse(config->broadcast_rpc_address != NULL ? config->broadcast_rpc_address
								    : config->rpc_address,
	    (uint16_t)config->native_transport_port, out, err);
}

int
cluster_new(struct node *node, struct cluster **out, struct error *err)
{
	struct cluster *cluster = xzalloc(sizeof(*cluster));
	const struct internode_places places = {
	    cluster, cluster_peer_datacenter, cluster_peer_rack};
	struct endpoint *seeds;
	uint32_t seed_count;

	*out = cluster;
	cluster->node = node;
	if (internode_local_endpoint(node->config, &cluster->local, err) != 0 ||
	    cluster_native(node->config, &cluster->native, err) != 0)
		return -1;
	if (cluster_seeds(node->config, &seeds, &seed_count, err) != 0)
		return -1;
	cluster->peers = peers_new(&cluster->local);
	if (cluster_make_snitch(cluster, err) != 0) {
		free(seeds);
		return -1;
	}
	cluster->node->internode = internode_new(node, cluster->peers);
	cluster->env = internode_env(cluster->node->internode);
	cluster->env->trace = tracing_record;
	cluster->env->trace_context = node;
	cluster->messaging = messaging_new(cluster->env, cluster->peers);
	cluster->topology = topology_holder_new(cluster->peers);
	topology_holder_set_local(
	    cluster->topology, cluster_datacenter(cluster), cluster_rack(cluster));
	internode_set_places(cluster->node->internode, &places);
	internode_set_refused(cluster->node->internode, cluster_refused, cluster);
	cluster_make_gossip(cluster, seeds, seed_count);
	free(seeds);
	cluster->subscriber.on_join = cluster_on_join;
	cluster->subscriber.on_change = cluster_on_change;
	cluster->subscriber.on_alive = cluster_on_alive;
	cluster->subscriber.on_dead = cluster_on_dead;
	cluster->subscriber.on_restart = cluster_on_restart;
	cluster->subscriber.on_remove = cluster_on_remove;
	gossip_subscribe(cluster->gossip, &cluster->subscriber);
	return 0;
}

void
cluster_end(struct cluster *cluster)
{
	if (cluster->node->internode != NULL)
		internode_stop_timers(cluster->node->internode);
	if (cluster->messaging != NULL)
		messaging_free(cluster->messaging);
	cluster->messaging = NULL;
	/* Its rounds are parts of repairs. */
	cluster_unset_executor(cluster);
	hints_close(cluster->hints);
	cluster->hints = NULL;
	repairs_free(cluster->repairs);
	cluster->repairs = NULL;
	streams_free(cluster->streams);
	cluster->streams = NULL;
}

void
cluster_free(struct cluster *cluster)
{
	if (cluster == NULL)
		return;
	cluster_load_free(cluster->load);
	storage_service_free(cluster->service);
	if (cluster->gossip != NULL)
		gossip_free(cluster->gossip);
	if (cluster->topology != NULL)
		topology_holder_free(cluster->topology);
	internode_free(cluster->node->internode);
	cluster->node->internode = NULL;
	if (cluster->snitch != NULL)
		snitch_free(cluster->snitch);
	if (cluster->peers != NULL)
		peers_free(cluster->peers);
	free(cluster);
}

const char *
cluster_datacenter(const struct cluster *cluster)
{
	return snitch_local_datacenter(cluster->snitch);
}

const char *
cluster_rack(const struct cluster *cluster)
{
	return snitch_local_rack(cluster->snitch);
}

/* ---- joining the ring --------------------------------------------------------------------------------------- */

/* cassandra.replace_address, or the one that counts only until the node has joined. */
static int
cluster_set_replaced(
    const struct config *config, struct storage_service_options *options, struct error *err)
{
	const char *address = config->cassandra__replace_address;

	options->allow_unsafe_replace = config->cassandra__allow_unsafe_replace;
	options->is_first_boot_only = address == NULL || *address == '\0';
	if (options->is_first_boot_only)
		address = config->cassandra__replace_address_first_boot;
	if (address == NULL || *address == '\0')
		return 0;
	if (endpoint_parse(address, (uint16_t)config->storage_port, &options->replaced, err) == 0)
		return 0;
	error_prefix(err, "cassandra.replace_address");
	return -1;
}

static int
cluster_make_service(struct cluster *cluster, struct error *err)
{
	struct node *node = cluster->node;
	const struct config *config = node->config;
	struct schema *schema = operations_schema(node->executor);
	struct storage_service_options options = {
	    .generation = node->generation,
	    .release_version = NODE_RELEASE_VERSION,
	    .sstable_versions = "big-nb",
	    .net_version = CLUSTER_NET_VERSION,
	    .native = cluster->native,
	    .schema_version = schema->version,
	    .bootstrapped = node->bootstrapped,
	    .saved_tokens = node->saved_tokens,
	    .saved_token_count = node->saved_token_count,
	    .initial_tokens = config->initial_tokens.items,
	    .initial_token_count = config->initial_tokens.count,
	    .num_tokens = (uint32_t)config->num_tokens,
	    .auto_bootstrap = config->auto_bootstrap,
	    .join_ring = config->cassandra__join_ring,
	    .override_decommission = config->cassandra__override_decommission,
	    .consistent_rangemovement = config->cassandra__consistent__rangemovement,
	    .reset_bootstrap_progress = config->cassandra__reset_bootstrap_progress,
	    .messaging = cluster->messaging,
	    .ring_delay_ns = (uint64_t)config->cassandra__ring_delay_ms * CLUSTER_MS,
	};

	schema_unref(schema);
	if (cluster_set_replaced(config, &options, err) != 0)
		return -1;
	memcpy(options.host_id.bytes, node->host_id, sizeof(options.host_id.bytes));
	/* listen_address, where it differs from what we broadcast. */
	options.internal = cluster->local;
	(void)endpoint_parse(
	    config->listen_address, (uint16_t)config->storage_port, &options.internal, NULL);
	cluster->service = storage_service_new(cluster->env, cluster->peers, cluster->gossip,
	    cluster->topology, cluster->snitch, &options, &cluster_service_ops, cluster);
	return 0;
}

static void
cluster_add_saved(void *context, const struct service_peer *saved)
{
	struct cluster *cluster = context;
	struct peer *peer = peers_get(cluster->peers, &saved->endpoint);

	/* Of a time when this node had another address, or the other one had this. */
	if (!peer->is_local)
		storage_service_add_saved(cluster->service, peer, saved);
}

int
cluster_start(struct cluster *cluster, struct error *err)
{
	struct node *node = cluster->node;
	struct cluster_waiter waiter;

	cluster_start_hints(cluster);
	cluster_start_streams(cluster);
	if (cluster_start_repairs(cluster, err) != 0 || cluster_make_service(cluster, err) != 0 ||
	    schema_log_start(cluster->schema_log, err) != 0 ||
	    system_peers_load(node->executor, cluster_add_saved, cluster, err) != 0 ||
	    internode_start(cluster->node->internode, cluster->messaging, err) != 0)
		return -1;
	cluster_waiter_init(&waiter);
	storage_service_start(cluster->service, &waiter.service);
	if (cluster_wait_start(cluster, &waiter, err) != 0)
		return -1;
	cluster->load = cluster_load_start(cluster);
	return 0;
}

void
cluster_leave(struct cluster *cluster)
{
	struct cluster_waiter waiter;

	if (cluster->hints != NULL)
		hints_pause(cluster->hints, true);
	if (cluster->service == NULL || !gossip_is_running(cluster->gossip))
		return;
	storage_service_abandon(cluster->service);
	cluster_waiter_init(&waiter);
	log_info("Announcing shutdown");
	gossip_stop(cluster->gossip, true, &waiter.gossip);
	(void)cluster_wait(&waiter, NULL);
}

void
cluster_stop(struct cluster *cluster)
{
	if (cluster->hints != NULL)
		hints_stop(cluster->hints);
	if (cluster->node->internode != NULL)
		internode_stop(cluster->node->internode);
}

void
cluster_set_serving(struct cluster *cluster, bool is_serving)
{
	atomic_store(&cluster->is_serving, is_serving);
	if (cluster->service != NULL)
		storage_service_set_rpc_ready(cluster->service, is_serving);
}

void
cluster_set_schema(struct cluster *cluster, const struct uuid *version)
{
	/* While the node starts the service has not begun: it is told at its making. */
	if (cluster != NULL && cluster->service != NULL)
		storage_service_set_schema(cluster->service, version);
}

/* ---- what an operator asks for ---------------------------------------------------------------------------------- */

int
cluster_join(struct cluster *cluster, struct error *err)
{
	struct cluster_waiter waiter;

	if (cluster->service == NULL)
		return error_set(err, ERROR_INVALID, "the node is starting");
	cluster_waiter_init(&waiter);
	storage_service_join(cluster->service, &waiter.service);
	return cluster_wait(&waiter, err);
}

int
cluster_set_gossiping(struct cluster *cluster, bool is_on, struct error *err)
{
	struct cluster_waiter waiter;

	if (cluster->service == NULL || storage_service_mode(cluster->service) == STORAGE_STARTING)
		return error_set(err, ERROR_INVALID, "the node is starting");
	if (is_on == gossip_is_running(cluster->gossip))
		return 0;
	if (is_on) {
		log_info("starting gossip by operator request");
		storage_service_start_gossip(cluster->service);
		return 0;
	}
	log_warn("stopping gossip by operator request");
	cluster_waiter_init(&waiter);
	gossip_stop(cluster->gossip, true, &waiter.gossip);
	return cluster_wait(&waiter, err);
}

int
cluster_assassinate(struct cluster *cluster, const char *address, struct error *err)
{
	struct cluster_waiter waiter;
	struct endpoint endpoint;
	struct peer *peer;

	if (endpoint_parse(
		address, (uint16_t)cluster->node->config->storage_port, &endpoint, err) != 0)
		return -1;
	peer = peers_find(cluster->peers, &endpoint);
	if (peer == NULL || !gossip_knows(cluster->gossip, peer, NULL, NULL))
		return error_set(err, ERROR_INVALID, "%s is not known to gossip", address);
	if (peer->is_local)
		return error_set(err, ERROR_INVALID, "%s is this node itself", address);
	cluster_waiter_init(&waiter);
	gossip_assassinate(cluster->gossip, peer, &waiter.gossip);
	return cluster_wait(&waiter, err);
}

int
cluster_reload_seeds(struct cluster *cluster, struct error *err)
{
	const struct config *config = cluster->node->config;
	struct endpoint *seeds;
	struct config fresh;
	uint32_t count;
	int rc;

	config_init(&fresh);
	rc = config_read_again(config, &fresh, err);
	if (rc == 0)
		rc = config_finish(&fresh, err);
	if (rc == 0) {
		rc = cluster_seeds(&fresh, &seeds, &count, err);
		if (rc == 0)
			gossip_set_seeds(cluster->gossip, seeds, count);
		else
			error_prefix(err, "%s: the seeds stay as they were", config->path);
		free(seeds);
	}
	config_fini(&fresh);
	return rc;
}
