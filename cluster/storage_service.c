/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/storage_service.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/storage_service_internal.h"

/* This node's way into the ring: StorageService.initServer, prepareToJoin, joinTokenRing, BootStrapper. */

/* How long a member that starts again looks for others. */
#define SERVICE_REJOIN_NS (10 * UINT64_C(1000000000))
/* How long a new node waits until its schema is that of the others. */
#define SERVICE_SCHEMA_MAX_NS (30 * UINT64_C(1000000000))

static uint64_t
service_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static const char *const service_modes[] = {
    [STORAGE_STARTING] = "STARTING",
    [STORAGE_NORMAL] = "NORMAL",
    [STORAGE_JOINING] = "JOINING",
    [STORAGE_LEAVING] = "LEAVING",
    [STORAGE_DECOMMISSIONED] = "DECOMMISSIONED",
    [STORAGE_MOVING] = "MOVING",
};

static const char *const service_bootstrap_states[] = {
    [BOOTSTRAP_NEEDED] = "NEEDS_BOOTSTRAP",
    [BOOTSTRAP_IN_PROGRESS] = "IN_PROGRESS",
    [BOOTSTRAP_COMPLETED] = "COMPLETED",
    [BOOTSTRAP_DECOMMISSIONED] = "DECOMMISSIONED",
};

const char *
storage_mode_name(enum storage_mode mode)
{
	return service_modes[mode];
}

const char *
bootstrap_state_name(enum bootstrap_state state)
{
	return service_bootstrap_states[state];
}

enum bootstrap_state
bootstrap_state_parse(struct slice text)
{
	for (int i = BOOTSTRAP_NEEDED; i <= BOOTSTRAP_DECOMMISSIONED; i++)
		if (!slice_is_null(text) && slice_equal_string(text, service_bootstrap_states[i]))
			return (enum bootstrap_state)i;
	return BOOTSTRAP_NEEDED;
}

void
service_set_mode(struct storage_service *service, enum storage_mode mode, const char *why)
{
	atomic_store(&service->mode, mode);
	log_info("%s%s%s", service_modes[mode], *why == '\0' ? "" : ": ", why);
}

static struct peer *
service_local(struct storage_service *service)
{
	return peers_local(service->peers);
}

/* ---- the end of start and join ---------------------------------------------------------------------- */

static void
service_done(struct storage_service *service, const struct error *err)
{
	struct service_wait *wait = service->wait;

	service->wait = NULL;
	service->step = err == NULL ? SERVICE_STEP_DONE : SERVICE_STEP_IDLE;
	if (wait != NULL)
		wait->on_done(wait, err);
}

/* ---- tokens ------------------------------------------------------------------------------------------- */

static int
service_compare_tokens(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

void
service_keep_tokens(struct storage_service *service, const int64_t *tokens, uint32_t count)
{
	int64_t *copy = xcalloc((size_t)count + 1, sizeof(*copy));

	memcpy(copy, tokens, count * sizeof(*copy));
	qsort(copy, count, sizeof(*copy), service_compare_tokens);
	free(service->tokens);
	service->tokens = copy;
	service->token_count = count;
}

bool
service_is_token_used(const struct topology *topology, int64_t token)
{
	uint32_t count = topology_token_count(topology);

	return count > 0 &&
	    topology_token(topology, topology_token_index(topology, token), NULL) == token;
}

/* BootStrapper.getSpecifiedTokens */
static int
service_check_initial(
    struct storage_service *service, const struct topology *topology, struct error *err)
{
	for (uint32_t i = 0; i < service->options.initial_token_count; i++)
		if (service_is_token_used(topology, service->options.initial_tokens[i]))
			return error_set(err, ERROR_CONFIG,
			    "Bootstrapping to existing token %" PRId64
			    " is not allowed (decommission/removenode the old node first).",
			    service->options.initial_tokens[i]);
	return 0;
}

/* Tokens for a first start: initial_token's, or new ones. */
static int
service_choose_tokens(struct storage_service *service, struct error *err)
{
	const struct topology *topology = topology_acquire(service->holder);
	uint32_t count = service->options.num_tokens;
	int64_t *tokens = xcalloc((size_t)count + 1, sizeof(*tokens));
	int rc;

	if (service->options.initial_token_count > 0) {
		rc = service_check_initial(service, topology, err);
		if (rc == 0)
			service_keep_tokens(service, service->options.initial_tokens,
			    service->options.initial_token_count);
	} else {
		rc = service->ops->allocate(service->context, topology, tokens, count, err);
		if (rc == 0)
			service_keep_tokens(service, tokens, count);
	}
	topology_release(service->holder, topology);
	free(tokens);
	return rc;
}

static int
service_take_saved(struct storage_service *service, struct error *err)
{
	const struct storage_service_options *options = &service->options;

	if (options->saved_token_count != options->num_tokens)
		return error_set(err, ERROR_CONFIG,
		    "Cannot change the number of tokens from %" PRIu32 " to %" PRIu32,
		    options->saved_token_count, options->num_tokens);
	service_keep_tokens(service, options->saved_tokens, options->saved_token_count);
	return 0;
}

/* ---- what we tell of ourselves --------------------------------------------------------------------------- */

static void
service_set_text(struct storage_service *service, enum application_state state, const char *text)
{
	struct gossip_change change = {state, slice_of_string(text)};

	gossip_set(service->gossip, &change, 1);
}

/* Everything but tokens and status. */
static void
service_introduce(struct storage_service *service)
{
	const struct storage_service_options *options = &service->options;
	char native[ENDPOINT_TEXT_SIZE], rpc[ENDPOINT_TEXT_SIZE], internal[ENDPOINT_TEXT_SIZE];
	char internal_ip[ENDPOINT_TEXT_SIZE], host_id[UUID_TEXT_SIZE], schema[UUID_TEXT_SIZE];
	char net_version[16];

	uuid_format(&options->host_id, host_id);
	uuid_format(&options->schema_version, schema);
	endpoint_format(&options->native, native);
	endpoint_format_address(&options->native, rpc);
	endpoint_format(&options->internal, internal);
	endpoint_format_address(&options->internal, internal_ip);
	snprintf(net_version, sizeof(net_version), "%" PRIu32, options->net_version);
	const struct gossip_change changes[] = {
	    {STATE_NET_VERSION, slice_of_string(net_version)},
	    {STATE_HOST_ID, slice_of_string(host_id)},
	    {STATE_NATIVE_ADDRESS_AND_PORT, slice_of_string(native)},
	    {STATE_RPC_ADDRESS, slice_of_string(rpc)},
	    {STATE_RELEASE_VERSION, slice_of_string(options->release_version)},
	    {STATE_SSTABLE_VERSIONS, slice_of_string(options->sstable_versions)},
	    {STATE_DC, slice_of_string(snitch_local_datacenter(service->snitch))},
	    {STATE_RACK, slice_of_string(snitch_local_rack(service->snitch))},
	    {STATE_INTERNAL_ADDRESS_AND_PORT, slice_of_string(internal)},
	    {STATE_INTERNAL_IP, slice_of_string(internal_ip)},
	    {STATE_SCHEMA, slice_of_string(schema)},
	    {STATE_RPC_READY,
		slice_of_string(atomic_load(&service->is_rpc_ready) ? "true" : "false")},
	};

	gossip_set(service->gossip, changes, sizeof(changes) / sizeof(changes[0]));
}

void
service_tell_status(struct storage_service *service, const struct node_status *status)
{
	gossip_set_status(service->gossip, status, service->tokens, service->token_count);
}

static void
service_tell_kind(struct storage_service *service, enum node_status_kind kind)
{
	struct node_status status = {
	    .kind = kind, .token = service->token_count > 0 ? service->tokens[0] : 0};

	service_tell_status(service, &status);
}

/* ---- the steps ------------------------------------------------------------------------------------------------------ */

/* A full member: saved first, then told. */
int
service_become_normal(struct storage_service *service, struct error *err)
{
	if (service->ops->save_local(service->context, BOOTSTRAP_COMPLETED, service->tokens,
		service->token_count, err) != 0)
		return -1;
	service->bootstrapped = BOOTSTRAP_COMPLETED;
	service_put_out_replaced(service, service_node(service, service_local(service)));
	service_set_local(service, MEMBER_NORMAL);
	service_tell_kind(service, NODE_STATUS_NORMAL);
	atomic_store(&service->has_joined, true);
	service_set_mode(service, STORAGE_NORMAL, "");
	return 0;
}

/* ---- waiting, streaming ---------------------------------------------------------------------------------------- */

static void
service_timer_run(struct task *task, struct worker *worker)
{
	struct storage_service *service =
	    (struct storage_service *)((char *)task - offsetof(struct storage_service, timer_task));

	(void)worker;
	service->timer_fn(service);
}

static void
service_timer_fired(struct cluster_timer *timer)
{
	struct storage_service *service =
	    (struct storage_service *)((char *)timer - offsetof(struct storage_service, timer));

	service->timer_task = (struct task){.run = service_timer_run};
	/* A stage that is stopping: so is the node, and nobody waits any more. */
	(void)cluster_submit(service->env, CLUSTER_STAGE_GOSSIP, &service->timer_task);
}

void
service_after(
    struct storage_service *service, uint64_t delay_ns, void (*fn)(struct storage_service *service))
{
	service->timer_fn = fn;
	service->timer.fire = service_timer_fired;
	cluster_timer_start(service->env, &service->timer, delay_ns);
}

uint64_t
service_ring_delay(struct storage_service *service)
{
	return service->ops->has_data(service->context) ? service->options.ring_delay_ns : 0;
}

static void
service_streamed(struct service_wait *wait, const struct error *err)
{
	struct storage_service *service = (struct storage_service *)((char *)wait -
	    offsetof(struct storage_service, stream_wait));

	service->stream_fn(service, err);
}

void
service_stream(struct storage_service *service, const struct service_movement *movement,
    void (*fn)(struct storage_service *service, const struct error *err))
{
	service->stream_fn = fn;
	service->stream_wait.on_done = service_streamed;
	service->ops->stream(service->context, movement, &service->stream_wait);
}

/* ---- bootstrap -------------------------------------------------------------------------------------------------- */

/* Whoever waits for the start hears of success only: until then the node can be told to go on. */
static void
service_bootstrapped(struct storage_service *service, const struct error *err)
{
	struct service_wait *resume = service->change_wait;
	struct error failed;

	service->change_wait = NULL;
	if (err == NULL && service_become_normal(service, &failed) == 0) {
		service_done(service, NULL);
		if (resume != NULL)
			resume->on_done(resume, NULL);
		return;
	}
	if (err != NULL)
		failed = *err;
	error_prefix(&failed, "bootstrap");
	log_error(
	    "%s. Some data streaming failed. Use nodetool bootstrap resume to go on", failed.text);
	service->step = SERVICE_STEP_STREAM_FAILED;
	if (resume != NULL)
		resume->on_done(resume, &failed);
}

static void
service_fetch(struct storage_service *service)
{
	const struct service_movement movement = {STREAM_BOOTSTRAP, service_local(service),
	    service->replaced != NULL, service->is_resumed};

	service->step = SERVICE_STEP_STREAM;
	service_set_mode(service, STORAGE_JOINING, "Starting to bootstrap...");
	service_stream(service, &movement, service_bootstrapped);
}

void
service_resume(struct storage_service *service, struct service_wait *wait)
{
	struct error err;

	if (service->step != SERVICE_STEP_STREAM_FAILED) {
		error_set(&err, ERROR_INVALID, "Node is %s bootstrapped.",
		    service->step == SERVICE_STEP_DONE ? "already" : "not yet");
		wait->on_done(wait, &err);
		return;
	}
	log_info("Resuming bootstrap...");
	service->change_wait = wait;
	service->is_resumed = true;
	service_fetch(service);
}

/*
 * In place of a dead node: under its address we are it to the others, and dead, so they keep hints for us; under another one we get
 * copies of its writes from now on.
 */
static void
service_tell_replacing(struct storage_service *service)
{
	struct node_status status = {.kind = NODE_STATUS_BOOT_REPLACE};
	struct service_node *local = service_node(service, service_local(service));

	if (service->replaced->is_local) {
		service_set_local(service, MEMBER_NORMAL);
		service_tell_kind(service, NODE_STATUS_HIBERNATE);
		return;
	}
	local->replaces = service->replaced;
	service_set_local(service, MEMBER_REPLACING);
	status.replaced = service->replaced->endpoint;
	service_tell_status(service, &status);
}

/* The last look before data is fetched: what began at the same moment shows now. */
static void
service_begin_fetch(struct storage_service *service)
{
	struct error err;

	if (service_check_members(service, true, &err) == 0)
		service_fetch(service);
	else
		service_done(service, &err);
}

/* Others send us copies of writes from now on. */
static void
service_tell_joining(struct storage_service *service)
{
	if (service->replaced != NULL) {
		service_tell_replacing(service);
		return;
	}
	service_set_local(service, MEMBER_JOINING);
	service_tell_kind(service, NODE_STATUS_BOOT);
}

/* When all know that we join, what was there before is fetched. */
static int
service_begin_bootstrap(struct storage_service *service, struct error *err)
{
	if (service_check_members(service, false, err) != 0 ||
	    service->ops->save_local(service->context, BOOTSTRAP_IN_PROGRESS, service->tokens,
		service->token_count, err) != 0)
		return -1;
	service->step = SERVICE_STEP_RING_DELAY;
	service_tell_joining(service);
	service_set_mode(service, STORAGE_JOINING, "waiting for pending range calculation");
	service_after(service, service_ring_delay(service), service_begin_fetch);
	return 0;
}

/* ---- schema -------------------------------------------------------------------------------------------------------- */

#define SERVICE_SCHEMA_POLL_NS UINT64_C(50000000)

/* Has every live node the schema that we have? */
static bool
service_has_schema(struct storage_service *service)
{
	struct slice own = gossip_value(service->gossip, service_local(service), STATE_SCHEMA);

	for (uint32_t i = 0; i < peers_count(service->peers); i++) {
		struct peer *peer = peers_at(service->peers, i);
		struct slice theirs = gossip_value(service->gossip, peer, STATE_SCHEMA);

		if (!slice_is_null(theirs) &&
		    atomic_load_explicit(&peer->is_alive, memory_order_relaxed) &&
		    !slice_equal(own, theirs))
			return false;
	}
	return true;
}

static void service_take_place(struct storage_service *service);

/* Without the tables of the others nobody can say what has to be fetched. */
static void
service_wait_schema(struct storage_service *service)
{
	uint64_t now = env_monotonic_ns(service->env->env);
	struct error err;

	if (service->step != SERVICE_STEP_SCHEMA) {
		service->step = SERVICE_STEP_SCHEMA;
		service->schema_until_ns = now + SERVICE_SCHEMA_MAX_NS;
		service_set_mode(
		    service, STORAGE_JOINING, "waiting for schema information to complete");
	}
	if (service_has_schema(service)) {
		service_take_place(service);
	} else if (now < service->schema_until_ns) {
		service_after(service, SERVICE_SCHEMA_POLL_NS, service_wait_schema);
	} else {
		error_set(&err, ERROR_SERVER,
		    "Didn't receive schemas for all known versions within %u s: some live node "
		    "has another schema (nodetool describecluster)",
		    (unsigned)(SERVICE_SCHEMA_MAX_NS / 1000000000));
		service_done(service, &err);
	}
}

/* ---- the steps ------------------------------------------------------------------------------------------------------ */

/*
 * A new node chooses its place. Where there are no tables yet nothing is fetched, as if all had auto_bootstrap: false: the first
 * nodes of a ring may come all at once.
 */
static void
service_take_place(struct storage_service *service)
{
	bool has_data = service->replaced != NULL || service->ops->has_data(service->context);
	struct error err;
	int rc = 0;

	service->step = SERVICE_STEP_JOIN;
	if (service->token_count == 0)
		rc = service_choose_tokens(service, &err);
	if (rc == 0 && service->shall_bootstrap && has_data)
		rc = service_begin_bootstrap(service, &err);
	else if (rc == 0)
		rc = service_become_normal(service, &err);
	if (rc != 0)
		service_done(service, &err);
	else if (service->step != SERVICE_STEP_RING_DELAY)
		service_done(service, NULL);
}

/* The picture is whole. */
static void
service_settled(struct storage_service *service)
{
	service->step = SERVICE_STEP_JOIN;
	service_apply(service);
	if (!service->shall_join)
		log_info("Not joining ring as requested. Use nodetool join to initiate ring "
			 "joining");
	if (!service->shall_join || atomic_load(&service->has_joined))
		service_done(service, NULL);
	else if (service->shall_bootstrap)
		service_wait_schema(service);
	else
		service_take_place(service);
}

static void
service_on_settled(struct gossip_wait *wait, const struct error *err)
{
	struct storage_service *service = (struct storage_service *)((char *)wait -
	    offsetof(struct storage_service, gossip_wait));

	(void)err; /* it never fails */
	if (service->step == SERVICE_STEP_SETTLE)
		service_settled(service);
}

/* A node of a ring that was off waits for seeds no longer than until all that it remembers are there. */
void
service_check_settled(struct storage_service *service)
{
	if (service->step != SERVICE_STEP_SETTLE || !service->knows_ring)
		return;
	for (uint32_t i = 0; i < service->node_capacity; i++) {
		const struct service_node *node = service->nodes[i];

		if (node != NULL && node->is_in_ring && !node->peer->is_local &&
		    !atomic_load_explicit(&node->peer->is_alive, memory_order_relaxed))
			return;
	}
	service_settled(service);
}

/* Has anybody to be waited for? A node that nobody answered and that knows nobody is the ring. */
static bool
service_is_alone(struct storage_service *service)
{
	return peers_count(service->peers) == 1 ||
	    (!gossip_shadow_has_answer(service->gossip) &&
		gossip_unreachable_count(service->gossip) == 0);
}

static bool
service_was_member(const struct storage_service *service)
{
	return service->bootstrapped == BOOTSTRAP_COMPLETED &&
	    service->options.saved_token_count > 0;
}

static bool
service_remembers_others(struct storage_service *service)
{
	for (uint32_t i = 0; i < service->node_capacity; i++)
		if (service->nodes[i] != NULL && service->nodes[i]->is_saved)
			return true;
	return false;
}

static int
service_begin(struct storage_service *service, struct error *err)
{
	bool is_alone;

	if (service_check_shadow(service, err) != 0)
		return -1;
	if (service_was_member(service) && service_take_saved(service, err) != 0)
		return -1;
	is_alone = service_is_alone(service);
	service->knows_ring = service_remembers_others(service);
	service_introduce(service);
	/* A node that was in the ring is there again at once, and all tell so in one message. */
	if (service->shall_join && service_was_member(service)) {
		log_info("Using saved tokens (%" PRIu32 ")", service->token_count);
		if (service_become_normal(service, err) != 0)
			return -1;
	} else if (service->is_resumed) {
		/* No write may go past it, or what it has fetched is worth nothing. */
		service_tell_joining(service);
	} else if (service->token_count > 0 && !service->shall_join) {
		service_set_local(service, MEMBER_NORMAL);
		service_tell_kind(service, NODE_STATUS_HIBERNATE);
	} else if (service->replaced != NULL && service->replaced->is_local) {
		/* With its first word: to the others it stays the member that is dead, and its ranges have the replicas they had. */
		service_tell_replacing(service);
	}
	gossip_start(service->gossip, service->options.generation);
	service->step = SERVICE_STEP_SETTLE;
	if (is_alone) {
		service_settled(service);
		return 0;
	}
	service->gossip_wait = (struct gossip_wait){.on_done = service_on_settled};
	gossip_settle(service->gossip, &service->gossip_wait);
	return 0;
}

static void
service_on_shadow(struct gossip_wait *wait, const struct error *err)
{
	struct storage_service *service = (struct storage_service *)((char *)wait -
	    offsetof(struct storage_service, gossip_wait));
	struct error failed;

	/* A member may start before those that it could ask, of a ring that was off: what its disk says holds. */
	if (err != NULL && err->code == ERROR_SERVER && service_was_member(service)) {
		log_warn("%s, but this node was a member of the ring and goes on", err->text);
		err = NULL;
	}
	if (err != NULL)
		service_done(service, err);
	else if (service_begin(service, &failed) != 0)
		service_done(service, &failed);
}

void
storage_service_start(struct storage_service *service, struct service_wait *wait)
{
	struct error err;

	service->wait = wait;
	if (service->bootstrapped == BOOTSTRAP_DECOMMISSIONED) {
		if (!service->options.override_decommission) {
			error_set(&err, ERROR_CONFIG,
			    "This node was decommissioned and will not rejoin the ring unless "
			    "cassandra.override_decommission=true has been set, or all existing "
			    "data is removed and the node is bootstrapped again");
			service_done(service, &err);
			return;
		}
		log_warn("This node was decommissioned, but overridden by "
			 "cassandra.override_decommission");
		service->bootstrapped = BOOTSTRAP_NEEDED;
		service->options.saved_token_count = 0;
	}
	/* Who has been there need not wait for all of the ring delay: see service_on_shadow(). */
	if (service_was_member(service))
		gossip_set_shadow_round(service->gossip,
		    service_min(service->options.ring_delay_ns, SERVICE_REJOIN_NS));
	service->step = SERVICE_STEP_SHADOW;
	service->gossip_wait = (struct gossip_wait){.on_done = service_on_shadow};
	gossip_shadow_round(service->gossip, &service->gossip_wait);
}

/* ---- nodetool join ---------------------------------------------------------------------------------------------------- */

static void
service_run_join(struct task *task, struct worker *worker)
{
	struct storage_service *service =
	    (struct storage_service *)((char *)task - offsetof(struct storage_service, join_task));
	struct service_wait *wait = atomic_exchange(&service->join_wait, NULL);
	struct error err;

	(void)worker;
	if (service->step != SERVICE_STEP_DONE || service->shall_join) {
		error_set(&err, ERROR_INVALID,
		    service->step != SERVICE_STEP_DONE ? "the node is starting or joining"
			: service->bootstrapped == BOOTSTRAP_DECOMMISSIONED
			? "This node was decommissioned and will not rejoin the ring"
			: "This node has already joined the ring.");
		wait->on_done(wait, &err);
		return;
	}
	log_info("Joining ring by operator request");
	service->wait = wait;
	service->shall_join = true;
	service_settled(service);
}

void
storage_service_join(struct storage_service *service, struct service_wait *wait)
{
	struct service_wait *none = NULL;
	struct error err;

	if (!atomic_compare_exchange_strong(&service->join_wait, &none, wait)) {
		error_set(&err, ERROR_INVALID, "the node is joining already");
		wait->on_done(wait, &err);
		return;
	}
	service->join_task = (struct task){.run = service_run_join};
	if (!cluster_submit(service->env, CLUSTER_STAGE_GOSSIP, &service->join_task)) {
		atomic_store(&service->join_wait, NULL);
		error_set(&err, ERROR_SHUTDOWN, "the node is stopping");
		wait->on_done(wait, &err);
	}
}

static void
service_run_gossip(struct task *task, struct worker *worker)
{
	struct storage_service *service = (struct storage_service *)((char *)task -
	    offsetof(struct storage_service, gossip_task));

	(void)worker;
	atomic_store(&service->is_gossip_task_queued, false);
	if (gossip_is_running(service->gossip))
		return;
	service_set_text(
	    service, STATE_RPC_READY, atomic_load(&service->is_rpc_ready) ? "true" : "false");
	if (service->token_count > 0)
		service_tell_kind(service,
		    atomic_load(&service->has_joined) ? NODE_STATUS_NORMAL : NODE_STATUS_HIBERNATE);
	gossip_start(service->gossip, service->options.generation);
}

void
storage_service_start_gossip(struct storage_service *service)
{
	if (atomic_exchange(&service->is_gossip_task_queued, true))
		return;
	service->gossip_task = (struct task){.run = service_run_gossip};
	if (!cluster_submit(service->env, CLUSTER_STAGE_GOSSIP, &service->gossip_task))
		atomic_store(&service->is_gossip_task_queued, false);
}

/* ---- values that change while the node runs ------------------------------------------------------------------------------ */

void
storage_service_set_rpc_ready(struct storage_service *service, bool is_ready)
{
	if (atomic_exchange(&service->is_rpc_ready, is_ready) != is_ready)
		service_set_text(service, STATE_RPC_READY, is_ready ? "true" : "false");
}

void
storage_service_set_schema(struct storage_service *service, const struct uuid *schema_version)
{
	char text[UUID_TEXT_SIZE];

	uuid_format(schema_version, text);
	service_set_text(service, STATE_SCHEMA, text);
}

void
storage_service_set_load(struct storage_service *service, uint64_t bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".0", bytes);
	service_set_text(service, STATE_LOAD, text);
}

enum storage_mode
storage_service_mode(const struct storage_service *service)
{
	return (enum storage_mode)atomic_load(&service->mode);
}

bool
storage_service_has_joined(const struct storage_service *service)
{
	return atomic_load(&service->has_joined);
}

/* ---- life ------------------------------------------------------------------------------------------------------------------- */

static int64_t *
service_copy_tokens(const int64_t *tokens, uint32_t count)
{
	int64_t *copy = xcalloc((size_t)count + 1, sizeof(*copy));

	if (count > 0)
		memcpy(copy, tokens, count * sizeof(*copy));
	return copy;
}

struct storage_service *
storage_service_new(struct cluster_env *env, struct peers *peers, struct gossip *gossip,
    struct topology_holder *holder, struct snitch *snitch,
    const struct storage_service_options *options, const struct storage_service_ops *ops,
    void *context)
{
	struct storage_service *service = xzalloc(sizeof(*service));

	service->env = env;
	service->peers = peers;
	service->gossip = gossip;
	service->holder = holder;
	service->snitch = snitch;
	service->ops = ops;
	service->context = context;
	service->options = *options;
	service->options.release_version = xstrdup(options->release_version);
	service->options.sstable_versions = xstrdup(options->sstable_versions);
	service->options.saved_tokens =
	    service_copy_tokens(options->saved_tokens, options->saved_token_count);
	service->options.initial_tokens =
	    service_copy_tokens(options->initial_tokens, options->initial_token_count);
	service->bootstrapped = options->bootstrapped;
	service->shall_join = options->join_ring;
	atomic_init(&service->mode, STORAGE_STARTING);
	topology_holder_set_local(
	    holder, snitch_local_datacenter(snitch), snitch_local_rack(snitch));
	service_subscribe(service);
	service_changes_init(service);
	return service;
}

void
storage_service_free(struct storage_service *service)
{
	if (service == NULL)
		return;
	service_changes_free(service);
	service_nodes_free(service);
	free(service->tokens);
	free((char *)service->options.release_version);
	free((char *)service->options.sstable_versions);
	free((int64_t *)service->options.saved_tokens);
	free((int64_t *)service->options.initial_tokens);
	free(service);
}
