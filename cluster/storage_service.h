/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_STORAGE_SERVICE_H
#define HELENUS_CLUSTER_STORAGE_SERVICE_H

/*
 * This node's way into the ring and out of it, and what gossip tells made into a topology (service/StorageService).
 *
 *     start   shadow round -> may I join? -> saved tokens: gossip with NORMAL -> settled -> done
 *                                         \> new: gossip -> settled -> tokens -> NORMAL -> done
 *                                          \> new, in a ring with data: ... -> BOOT -> ring delay -> stream -> NORMAL
 *     others  gossip's states -> members, conflicts decided -> topology_update() -> system.peers -> events to clients
 *
 * Threads: a state machine on the gossip stage without a lock. What it cannot do itself (system tables, streams,
 * events) it asks of `ops`, which are called there too. Functions say where they may be called.
 */
#include "cluster/gossip.h"
#include "cluster/snitch.h"
#include "cluster/stream.h"
#include "cluster/topology.h"

struct storage_service;

/* Cassandra's StorageService.Mode, as netstats shows it. */
enum storage_mode {
	STORAGE_STARTING,
	STORAGE_NORMAL,
	STORAGE_JOINING,
	STORAGE_LEAVING,
	STORAGE_DECOMMISSIONED,
	STORAGE_MOVING,
};
const char *storage_mode_name(enum storage_mode mode);

/* system.local's column `bootstrapped`. */
enum bootstrap_state {
	BOOTSTRAP_NEEDED,
	BOOTSTRAP_IN_PROGRESS,
	BOOTSTRAP_COMPLETED,
	BOOTSTRAP_DECOMMISSIONED,
};
const char *bootstrap_state_name(enum bootstrap_state state);
/* Unknown or empty: BOOTSTRAP_NEEDED. */
enum bootstrap_state bootstrap_state_parse(struct slice text);

/* What system.peers and peers_v2 say of another node. Strings may be NULL: not known. */
struct service_peer {
	struct endpoint endpoint;
	struct uuid host_id;
	bool has_host_id;
	const char *datacenter, *rack, *release_version;
	struct endpoint native; /* where clients connect; size 0: not known */
	struct endpoint internal; /* preferred_ip; size 0: not known */
	struct uuid schema_version;
	bool has_schema_version;
	const int64_t *tokens;
	uint32_t token_count;
};

enum service_event {
	SERVICE_NEW_NODE,
	SERVICE_REMOVED_NODE,
	SERVICE_UP,
	SERVICE_DOWN,
};

/* Somebody waits for something, once; memory lives until then. err: NULL on success, valid for the call. */
struct service_wait {
	void (*on_done)(struct service_wait *wait, const struct error *err);
};

/* Data that moves because a node's place in the ring changes, as it stands in the current topology. */
struct service_movement {
	/* BOOTSTRAP: this node fetches. UNBOOTSTRAP: it gives away. RELOCATION: both.
	 * RESTORE_REPLICA_COUNT: it fetches what it gets because `peer` is gone. */
	enum stream_operation operation;
	struct peer *peer; /* whose place changes */
	bool is_replacing; /* BOOTSTRAP: from the other replicas of a dead node */
	bool is_resumed; /* an earlier attempt broke off: what it moved is not moved again */
};

/* All on the gossip stage. Arguments are borrowed for the call. */
struct storage_service_ops {
	/* system.local, durable on return: nobody may hear of tokens that a crash makes us forget. */
	int (*save_local)(void *context, enum bootstrap_state state, const int64_t *tokens,
	    uint32_t token_count, struct error *err);
	/* This node's host id, in place of the one that it made: durable on return. */
	int (*save_host_id)(void *context, const struct uuid *host_id, struct error *err);
	/* system.peers and peers_v2. In the order of the calls, events included: drivers read them at an event. */
	void (*save_peer)(void *context, const struct service_peer *peer);
	void (*remove_peer)(void *context, const struct endpoint *endpoint);
	/* For clients that registered. native: what they know the node by; size 0 is never told. */
	void (*tell)(
	    void *context, enum service_event event, struct peer *peer, struct endpoint native);
	/*
	 * Tokens for a new node that leave the ring even. The topology has settled. ERROR_CONFIG. They must not be in
	 * use there.
	 */
	int (*allocate)(void *context, const struct topology *topology, int64_t *tokens,
	    uint32_t count, struct error *err);
	/* Move the data; wait->on_done on the gossip stage. */
	void (*stream)(
	    void *context, const struct service_movement *movement, struct service_wait *wait);
	/* Does this node know a keyspace of users? While there is none, nothing can be missed, and nobody waits. */
	bool (*has_data)(void *context);
	/* May this node leave (ERROR_INVALID: a keyspace would have fewer nodes than its replication factor)? */
	int (*may_leave)(void *context, const struct topology *topology, struct error *err);
	/* Who becomes a replica of what `peer` had, once it is gone. The caller frees *out. */
	uint32_t (*gainers)(void *context, struct peer *peer, struct peer ***out);
};

struct storage_service_options {
	struct uuid host_id;
	int32_t generation; /* gossip_next_generation() */
	const char *release_version; /* copied, as all strings and arrays */
	const char *sstable_versions; /* "big-nb" */
	uint32_t net_version;
	struct endpoint native, internal;
	struct uuid schema_version;
	enum bootstrap_state bootstrapped; /* of system.local */
	const int64_t *saved_tokens; /* of system.local */
	uint32_t saved_token_count;
	const int64_t *initial_tokens; /* initial_token */
	uint32_t initial_token_count;
	uint32_t num_tokens;
	bool auto_bootstrap, join_ring;
	bool override_decommission; /* cassandra.override_decommission */
	struct messaging *messaging; /* borrowed */
	/* cassandra.replace_address(_first_boot): take over the tokens of this dead node; size 0: none. */
	struct endpoint replaced;
	bool is_first_boot_only;
	bool allow_unsafe_replace; /* cassandra.allow_unsafe_replace */
	bool consistent_rangemovement; /* cassandra.consistent.rangemovement */
	bool reset_bootstrap_progress; /* cassandra.reset_bootstrap_progress */
	uint64_t ring_delay_ns;
};

/* Subscribes to gossip. All is borrowed. */
struct storage_service *storage_service_new(struct cluster_env *env, struct peers *peers,
    struct gossip *gossip, struct topology_holder *holder, struct snitch *snitch,
    const struct storage_service_options *options, const struct storage_service_ops *ops,
    void *context);
/* With stages and timers quiet. NULL is accepted. */
void storage_service_free(struct storage_service *service);

/* A peer that system.peers knew: a member until gossip says otherwise. Before storage_service_start(). */
void storage_service_add_saved(
    struct storage_service *service, struct peer *peer, const struct service_peer *saved);

/*
 * Into the ring. Done when the node is a NORMAL member (or, with join_ring false, when gossip has settled) and the
 * picture of the others is whole: clients may be served. ERROR_CONFIG: an operator must decide (address in use,
 * decommissioned, no seeds); ERROR_SERVER: others could not be reached. Any thread.
 */
void storage_service_start(struct storage_service *service, struct service_wait *wait);
/* nodetool join, of a node that started with join_ring false. ERROR_INVALID: it has joined. Any thread. */
void storage_service_join(struct storage_service *service, struct service_wait *wait);

/*
 * nodetool bootstrap resume, of a node whose bootstrap failed. ERROR_INVALID: there is nothing to resume. Any thread, as
 * all that follow; on_done on the gossip stage.
 */
void storage_service_resume_bootstrap(struct storage_service *service, struct service_wait *wait);
/*
 * Out of the ring for good: data is given away, then nobody knows this node any more. is_forced: whatever replication factors
 * say. Where the data could not be given, the node stays LEAVING, and this once more goes on where it was; a restart makes it
 * NORMAL again. ERROR_INVALID: it cannot leave now.
 */
void storage_service_decommission(
    struct storage_service *service, bool is_forced, struct service_wait *wait);
/* Of a node with one token: to another one. On failure it stays MOVING, as a decommission stays LEAVING. */
void
storage_service_move(struct storage_service *service, int64_t token, struct service_wait *wait);
/*
 * Take a dead node out of the ring, when those who become replicas in its place have fetched the data from others
 * (removenode).
 */
void storage_service_remove_node(
    struct storage_service *service, const struct uuid *host_id, struct service_wait *wait);
/* ... no matter who has not confirmed. */
void storage_service_force_removal(struct storage_service *service, struct service_wait *wait);
/* "RemovalStatus: ...", appended before on_done. */
void storage_service_removal_status(
    struct storage_service *service, struct buffer *out, struct service_wait *wait);

/*
 * The node stops: whoever waits for any of these is told so (ERROR_SHUTDOWN) soon. What is under way at other nodes is not
 * undone.
 */
void storage_service_abandon(struct storage_service *service);

/* enablegossip, after gossip_stop(): what this node is to the ring is told again. Any thread. */
void storage_service_start_gossip(struct storage_service *service);
/* Are CQL clients served? Drivers of the others are told UP and DOWN by it. Any thread. */
void storage_service_set_rpc_ready(struct storage_service *service, bool is_ready);
/* Any thread. */
void storage_service_set_schema(struct storage_service *service, const struct uuid *schema_version);
/* LOAD, bytes on disk. Any thread. */
void storage_service_set_load(struct storage_service *service, uint64_t bytes);

enum storage_mode storage_service_mode(const struct storage_service *service); /* any thread */
bool storage_service_has_joined(const struct storage_service *service); /* any thread */
/* For gossip_options.is_member: `holder` is the topology's. */
bool storage_service_is_member(void *holder, struct peer *peer);

#endif
