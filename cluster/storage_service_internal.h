/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_STORAGE_SERVICE_INTERNAL_H
#define HELENUS_CLUSTER_STORAGE_SERVICE_INTERNAL_H

/* Shared by storage_service.c (this node's way into the ring) and storage_service_members.c (the others). */
#include "cluster/storage_service.h"

/* What we know of one node. All on the gossip stage. */
struct service_node {
	struct peer *peer;
	bool is_saved; /* of system.peers, gossip has not told its status yet */
	bool is_in_ring; /* to be in the topology, as `state` */
	bool
	    is_removed; /* put out of the ring; what gossip still says of that generation is void */
	bool is_dirty; /* something of it changed since the last service_apply() */
	enum member_state state;
	struct uuid host_id;
	bool has_host_id;
	char *datacenter, *rack; /* owned; the snitch's answer */
	int64_t *tokens; /* owned; ascending */
	uint32_t token_count;
	int64_t next_token; /* MEMBER_MOVING */
	struct peer *replaces; /* MEMBER_REPLACING */
	int32_t generation;

	/* What the topology, system.peers and clients were last told. */
	bool was_member; /* NORMAL, LEAVING or MOVING in the topology */
	bool is_join_untold; /* NEW_NODE waits until clients can connect to it */
	enum { SERVICE_TOLD_NOTHING, SERVICE_TOLD_UP, SERVICE_TOLD_DOWN } told;
	struct endpoint native; /* as last told */
};

enum service_step {
	SERVICE_STEP_IDLE,
	SERVICE_STEP_SHADOW,
	SERVICE_STEP_SETTLE,
	SERVICE_STEP_SCHEMA,
	SERVICE_STEP_JOIN,
	SERVICE_STEP_RING_DELAY, /* BOOT has been told */
	SERVICE_STEP_STREAM,
	SERVICE_STEP_STREAM_FAILED, /* bootstrap resume goes on */
	SERVICE_STEP_DONE,
};

struct storage_service {
	struct cluster_env *env; /* borrowed, and all that follow */
	struct peers *peers;
	struct gossip *gossip;
	struct topology_holder *holder;
	struct snitch *snitch;
	const struct storage_service_ops *ops;
	void *context;

	struct storage_service_options options; /* strings and arrays are owned */
	struct gossip_subscriber subscriber;

	/* The gossip stage's. */
	struct service_node **nodes; /* by peer index; holes are NULL */
	uint32_t node_capacity;
	struct task apply_task;
	bool is_apply_queued;

	enum service_step step;
	struct service_wait *wait; /* of start or join */
	struct gossip_wait gossip_wait;
	struct cluster_timer timer;
	struct task timer_task;
	struct service_wait stream_wait;
	bool knows_ring; /* system.peers had others */
	bool shall_bootstrap;
	bool is_resumed; /* what an earlier attempt to bootstrap has brought still counts */
	bool shall_join; /* join_ring, or nodetool join */
	struct task join_task;
	struct service_wait *_Atomic join_wait; /* handed over by storage_service_join() */
	struct task gossip_task;
	_Atomic bool is_gossip_task_queued;
	enum bootstrap_state bootstrapped;
	int64_t *tokens; /* owned; this node's; ascending */
	uint32_t token_count;
	void (*timer_fn)(struct storage_service *service); /* what the timer waits for */
	void (*stream_fn)(struct storage_service *service, const struct error *err);
	struct peer *replaced; /* NULL: this node takes nobody's place */
	uint64_t schema_until_ns;

	/* storage_service_changes.c's: what an operator asked for. */
	struct service_wait *change_wait; /* NULL: nothing is under way */
	bool is_change_resumed; /* it broke off before */
	int64_t next_token; /* of a move */
	struct service_removal *removal; /* owned; NULL: none */
	struct service_restore *restores; /* owned; those who are removed, by others too */

	/* Any thread. */
	_Atomic int mode; /* enum storage_mode */
	_Atomic bool has_joined;
	_Atomic bool is_rpc_ready;
};

/* ---- storage_service.c; gossip stage ---- */

/* After a change: is the wait for the others over? */
void service_check_settled(struct storage_service *service);
void service_set_mode(struct storage_service *service, enum storage_mode mode, const char *why);
void service_keep_tokens(struct storage_service *service, const int64_t *tokens, uint32_t count);
bool service_is_token_used(const struct topology *topology, int64_t token);
void service_tell_status(struct storage_service *service, const struct node_status *status);
/* STATUS NORMAL, saved. */
int service_become_normal(struct storage_service *service, struct error *err);
/* Call fn in so many ns, on the gossip stage; one at a time. */
void service_after(struct storage_service *service, uint64_t delay_ns,
    void (*fn)(struct storage_service *service));
/* Until all know what was told: the ring delay, or nothing where nothing can be missed. */
uint64_t service_ring_delay(struct storage_service *service);
/* Have data moved, then call fn. */
void service_stream(struct storage_service *service, const struct service_movement *movement,
    void (*fn)(struct storage_service *service, const struct error *err));
/* bootstrap resume. */
void service_resume(struct storage_service *service, struct service_wait *wait);

/* ---- storage_service_check.c; gossip stage ---- */

/* By what the shadow round brought. Sets shall_bootstrap, is_resumed, replaced and tokens. ERROR_CONFIG. */
int service_check_shadow(struct storage_service *service, struct error *err);
/* By what gossip says. is_last: this node has told that it joins. */
int service_check_members(struct storage_service *service, bool is_last, struct error *err);
/* The same of a node that leaves or moves, or (removed: not NULL) is removed. ERROR_INVALID. */
int service_check_changes(struct storage_service *service, const struct service_node *removed,
    bool is_last, struct error *err);

/* ---- storage_service_changes.c; gossip stage ---- */

void service_changes_init(struct storage_service *service);
void service_changes_free(struct storage_service *service);
/* Gossip says that the node is being removed. */
void service_restore(struct storage_service *service, struct service_node *node);
/* It is gone, or is not removed any more. */
void service_restore_end(struct storage_service *service, struct peer *peer);
/* Somebody died, or left. */
void service_check_removal(struct storage_service *service);

/* ---- storage_service_members.c; gossip stage ---- */

/* Find or make. */
struct service_node *service_node(struct storage_service *service, struct peer *peer);
void service_nodes_free(struct storage_service *service);
/* Put what changed into topology, system.peers and events, after the callbacks of this message. */
void service_mark(struct storage_service *service, struct peer *peer);
/* The same at once. */
void service_apply(struct storage_service *service);
/* This node's own membership; tokens are copied. */
void service_set_local(struct storage_service *service, enum member_state state);
/* The node is a full member: it stands in the place of the one that it replaced. */
void service_put_out_replaced(struct storage_service *service, struct service_node *node);
void service_set_tokens(struct service_node *node, const int64_t *tokens, uint32_t count);
void service_subscribe(struct storage_service *service);

#endif
