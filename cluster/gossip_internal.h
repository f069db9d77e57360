/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_GOSSIP_INTERNAL_H
#define HELENUS_CLUSTER_GOSSIP_INTERNAL_H

/*
 * What the files of the gossiper share. State (gossip_state.c) is changed on the gossip stage alone, but for the
 * local node's values (gossip_set(), any thread) and the saved nodes before the start; all of it under
 * gossip->lock. What has to be told or sent is noted under the lock (events, outgoing messages) and
 * done after it is dropped: gossip_flush().
 */
#include "base/lock.h"
#include "cluster/gossip.h"
#include "cluster/gossip_wire.h"
#include "cluster/ranks.h"

enum {
	GOSSIP_ENDPOINTS_MAX = 20000, /* more than that is somebody's mistake or malice */
	GOSSIP_RUMOR_TARGETS = 3,
	GOSSIP_RUMORS_AT_ONCE = 32, /* endpoints in one eager push */
	GOSSIP_RUMORS_PER_ROUND = 64,
	GOSSIP_REFUSED_SHARE =
	    4, /* of phi_convict_threshold, for a peer that refuses connections */
};

#define GOSSIP_MS UINT64_C(1000000)
#define GOSSIP_S (1000 * GOSSIP_MS)
#define GOSSIP_GENERATION_AHEAD_MAX                                                                \
	(365 * 24 * 3600) /* seconds; Gossiper.MAX_GENERATION_DIFFERENCE */
#define GOSSIP_EXPIRE_MS INT64_C(259200000) /* three days; Gossiper.aVeryLongTime */
#define GOSSIP_RUMOR_DELAY_NS (20 * GOSSIP_MS)
#define GOSSIP_REFUSED_NS (5 * GOSSIP_S) /* how long a refused connection counts */
#define GOSSIP_ECHO_NS GOSSIP_S
#define GOSSIP_LATE_ECHOES_MAX 1 /* that are asked again, while clients wait for this node */
#define GOSSIP_EXPIRES_NS (10 * GOSSIP_S) /* of messages in queues */
#define GOSSIP_ANNOUNCE_NS (2 * GOSSIP_S) /* shutdown_announce_in_ms */

/* ---- Values: one block for all of a node, never changed once it is seen ---- */

struct gossip_values {
	struct gossip_values *retired_next;
	uint32_t mask; /* which are there; application_state_bit() */
	uint32_t size; /* of the bytes behind `at` */
	struct {
		int32_t version;
		uint32_t end; /* of its bytes */
	} at[]; /* one for each bit, ascending; then the bytes */
};

static inline uint32_t
gossip_values_count(const struct gossip_values *values)
{
	return values == NULL ? 0 : (uint32_t)__builtin_popcount(values->mask);
}

/* Null: not there. version may be NULL. `values` may be NULL. */
struct slice gossip_values_get(
    const struct gossip_values *values, enum application_state state, int32_t *version);
/*
 * A new block: `values` (may be NULL) with each change that is newer than what is there. *changed gets the bits
 * whose bytes are others now, *version_max is raised to the newest version. NULL: no change was newer.
 */
struct gossip_values *
gossip_values_merge(const struct gossip_values *values, const struct gossip_delta_value *changes,
    uint32_t count, uint32_t *changed, int32_t *version_max);

/* ---- Endpoints ---- */

enum gossip_list { GOSSIP_NO_LIST, GOSSIP_LIVE, GOSSIP_UNREACHABLE };

struct gossip_endpoint {
	struct peer *peer; /* borrowed */
	struct gossip_values *values; /* owned; replaced as a whole, the old block is retired */
	int32_t generation; /* 0: of system.peers, never heard of */
	int32_t heartbeat;
	int32_t version_max; /* of heartbeat and values */
	uint32_t stamp; /* of the digest that was looked at last */
	uint32_t order; /* its place in gossip->order */
	uint32_t list_index; /* its place in the live or unreachable list */
	uint8_t list; /* enum gossip_list */
	uint8_t status; /* enum node_status_kind */
	bool has_echo; /* an ECHO is on its way */
	uint8_t late_echoes; /* without an answer, while this node settled */
	bool is_rumor; /* stands in the queue of rumors */
	bool is_removed; /* on_remove was told */
	uint64_t updated_ns; /* monotonic: last news of it */
	uint64_t down_ns; /* monotonic: when it became unreachable */
	int64_t expires_ms; /* wall clock: when it is forgotten; 0: never */
};

/* By peer index. Outlives the endpoint's eviction. */
struct gossip_slot {
	struct gossip_endpoint *endpoint; /* owned; NULL: not known */
	uint64_t quarantined_ns; /* monotonic: until then nothing about it is believed .. */
	int32_t quarantined_generation; /* .. that is of this life or an earlier one */
	uint64_t refused_ns; /* monotonic: a connection was refused; 0: none */
};

struct gossip_peers {
	struct gossip_endpoint **at; /* owned array, borrowed elements */
	uint32_t count, capacity;
};

/* ---- What is done after the lock is dropped ---- */

enum gossip_event_kind {
	GOSSIP_EVENT_JOIN,
	GOSSIP_EVENT_CHANGE,
	GOSSIP_EVENT_ALIVE,
	GOSSIP_EVENT_DEAD,
	GOSSIP_EVENT_REMOVE,
	GOSSIP_EVENT_RESTART,
	GOSSIP_EVENT_ECHO, /* ask it, to be found alive */
};

struct gossip_event {
	enum gossip_event_kind kind;
	uint32_t changed;
	struct peer *peer;
};

struct gossip_outgoing {
	struct peer *to;
	enum verb verb;
	struct message_payload *payload; /* owned */
};

/* A timer whose work is done on the gossip stage. */
struct gossip_timer {
	struct cluster_timer timer; /* first */
	struct task task;
	struct gossip *gossip;
	void (*run)(struct gossip *gossip, struct worker *worker);
	atomic_bool is_armed; /* from gossip_timer_arm() until just before run() */
};

struct gossip_echo {
	struct message_callback callback; /* first */
	struct task task;
	struct gossip *gossip;
	struct peer *peer;
	int32_t generation;
	bool is_answered;
	bool is_late; /* neither an answer came nor word that there will be none */
	struct gossip_echo *next, *previous; /* all that are on their way; gossip->lock */
};

struct gossip_shadow {
	bool is_active;
	bool is_over; /* its answer may be looked at */
	bool has_answer;
	uint32_t tries;
	uint64_t began_ns;
	struct gossip_wait *wait;
	struct gossip_endpoint **answer; /* owned; by peer index */
	uint32_t answer_count;
	struct peer **silent; /* owned; seeds that said they are in shadow, too */
	uint32_t silent_count;
};

struct gossip_settling {
	struct gossip_wait *waits; /* all who wait */
	uint64_t began_ns;
	uint64_t asked_ns; /* last SYN to seeds that have not agreed */
	uint32_t asked; /* how often, up to a bound */
	uint64_t looked_ns; /* last look, for the slow way */
	uint32_t known, live, equal_looks;
};

struct gossip {
	struct cluster_env *cluster; /* borrowed */
	struct messaging *messaging; /* borrowed */
	struct peers *peers; /* borrowed */
	struct peer *local; /* borrowed */
	struct gossip_options options; /* names owned; seeds below */
	struct gossip_subscriber *subscribers; /* constant once messages come */
	struct gossip_timer round, rumor, start; /* start: shadow round and settling */

	struct lock lock; /* guards all that follows */
	bool is_running;
	uint32_t stamp;
	uint64_t chance; /* state of the generator */
	int32_t version; /* of the local node's newest value or heartbeat */
	struct gossip_slot *slots; /* owned; by peer index */
	uint32_t slot_count;
	struct gossip_peers order; /* every endpoint that is known, the local one too; shuffled */
	struct gossip_peers live, unreachable;
	struct endpoint *seeds; /* owned; without this node */
	struct peer **seed_peers; /* owned; the same ones */
	bool *seed_agrees; /* owned; since gossip_start(): answered, and nothing was left to tell */
	uint32_t seed_count;
	bool is_seed; /* this node is one */
	struct failure_detector *detector; /* owned */
	struct gossip_values *retired; /* owned; blocks that a callback may still look at */
	struct peer **rumors; /* owned; a queue */
	uint32_t rumor_count, rumor_capacity, rumor_budget;
	struct gossip_event *events; /* owned */
	uint32_t event_count, event_capacity;
	bool is_flushing; /* gossip stage only: events are being told */
	struct gossip_outgoing *outgoing; /* owned */
	uint32_t outgoing_count, outgoing_capacity;
	struct gossip_echo *echoes; /* owned */
	struct gossip_shadow shadow;
	struct gossip_settling settling;
	struct gossip_stats stats;
	struct gossip_wait *assassinations; /* that wait for their time */
	uint64_t complained_ns; /* of a message that is not believed: one line in ten seconds */
};

static inline uint64_t
gossip_now_ns(const struct gossip *gossip)
{
	return env_monotonic_ns(gossip->cluster->env);
}

static inline int64_t
gossip_wall_ms(const struct gossip *gossip)
{
	return env_wall_us(gossip->cluster->env) / 1000;
}

/* Below `bound` (> 0). Locked. */
uint32_t gossip_chance(struct gossip *gossip, uint32_t bound);

/* gossip_state.c: the tables. Locked. */
struct gossip_slot *
gossip_slot_locked(struct gossip *gossip, const struct peer *peer); /* makes room */
struct gossip_endpoint *
gossip_find_locked(const struct gossip *gossip, const struct peer *peer); /* NULL: not known */
struct gossip_endpoint *gossip_add_locked(struct gossip *gossip, struct peer *peer);
/* Out of all lists and freed, its values retired. */
void gossip_evict_locked(struct gossip *gossip, struct gossip_endpoint *endpoint);
void
gossip_list_locked(struct gossip *gossip, struct gossip_endpoint *endpoint, enum gossip_list list);
void gossip_retire_locked(struct gossip *gossip, struct gossip_values *values);
void gossip_free_retired_locked(struct gossip *gossip);
/* Is what is told of this life of the peer not to be believed? */
bool gossip_is_quarantined_locked(
    const struct gossip *gossip, const struct peer *peer, int32_t generation, uint64_t now_ns);
/* From now on for so long nothing is believed of it that is not of a later life than `generation`; INT32_MAX: nothing at all. */
void
gossip_quarantine_locked(struct gossip *gossip, struct peer *peer, int32_t generation, uint64_t ns);
/* Values with newer versions go in; status and expiry follow. Returns the bits whose bytes changed. */
uint32_t gossip_merge_locked(struct gossip *gossip, struct gossip_endpoint *endpoint,
    const struct gossip_delta_value *values, uint32_t count);
bool gossip_is_member_locked(const struct gossip *gossip, const struct gossip_endpoint *endpoint);
void gossip_state_fini(struct gossip *gossip);

/* gossip_apply.c: what becomes of news. */
void gossip_event_locked(
    struct gossip *gossip, enum gossip_event_kind kind, struct peer *peer, uint32_t changed);
void gossip_outgoing_locked(
    struct gossip *gossip, struct peer *to, enum verb verb, struct message_payload *payload);
/* Send and tell what was noted. Gossip stage, without the lock. */
void gossip_flush(struct gossip *gossip, struct worker *worker);
/* Send only: any thread. */
void gossip_flush_outgoing(struct gossip *gossip, struct worker *worker);
/* Returns whether it told something that others should hear of soon. */
bool
gossip_apply_locked(struct gossip *gossip, struct peer *peer, const struct gossip_delta *delta);
void gossip_mark_dead_locked(struct gossip *gossip, struct gossip_endpoint *endpoint);
/* Out of the ring: quarantined, dead, on_remove. Its states stay. */
void gossip_remove_locked(struct gossip *gossip, struct gossip_endpoint *endpoint);
/* It said that it stops. */
void gossip_mark_shutdown_locked(struct gossip *gossip, struct gossip_endpoint *endpoint);
/* After its values changed: what its status means for its life. */
void gossip_follow_status_locked(struct gossip *gossip, struct gossip_endpoint *endpoint);
void gossip_ask_echo_locked(struct gossip *gossip, struct gossip_endpoint *endpoint);

/* gossip_round.c */
void gossip_round(struct gossip *gossip, struct worker *worker);
void gossip_push_rumors(struct gossip *gossip, struct worker *worker);
/* Others should hear of it soon. */
void gossip_rumor_locked(struct gossip *gossip, struct gossip_endpoint *endpoint);
struct message_payload *gossip_make_syn_locked(struct gossip *gossip);
/* Of all seeds, to all seeds that have not agreed yet when `missing`. */
void gossip_syn_seeds_locked(struct gossip *gossip, bool missing);
/* Append one endpoint's delta: heartbeat and values above `above`. */
void gossip_put_endpoint_locked(
    struct buffer *out, const struct gossip_endpoint *endpoint, int32_t above);

/* gossip_handle.c */
void gossip_handlers(struct gossip *gossip);

/* gossip_start.c */
void gossip_start_timer(struct gossip *gossip, struct worker *worker);
/* A message for the shadow round. Gossip stage, without the lock: nobody else touches the answer. */
void gossip_shadow_ack(struct gossip *gossip, struct peer *from, struct gossip_message *ack);
void gossip_shadow_finish(struct gossip *gossip, const struct error *err);
void gossip_shadow_fini(struct gossip *gossip);
/* A seed answered. */
void gossip_settle_seed_locked(struct gossip *gossip, const struct peer *peer, bool agrees);

/* gossip_admin.c */
/* True while some wait for their time. Gossip stage, without the lock. */
bool gossip_assassinate_step(struct gossip *gossip);

/* Arms it unless it is; runs on the gossip stage. Any thread, best without the lock. */
void gossip_timer_arm(struct gossip_timer *timer, uint64_t delay_ns);

#endif
