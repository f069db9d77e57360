/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_GOSSIP_H
#define HELENUS_CLUSTER_GOSSIP_H

/*
 * Who is there, in which state, and alive (gms/Gossiper). Each node keeps for every node a generation (its start), a
 * heartbeat and named values with versions; in rounds of a second it compares them with a few others (SYN: digests,
 * ACK: what they lack and what they want, ACK2: that). Its own state it alone changes. This is the only writer of
 * peer->is_alive.
 *
 * Beyond Cassandra: a node that changed something, or learned of a change, makes an extra round at once to a few others, so
 * that news crosses a ring in a few messages; settling ends as soon as every seed answered and agrees.
 *
 * Threads: everything happens on CLUSTER_STAGE_GOSSIP, and so do all callbacks, none under a lock. What
 * says "any thread" takes the gossiper's lock (rank in cluster/README.md) for a moment.
 *
 * Order of life: gossip_new(), gossip_subscribe(), gossip_add_saved(), gossip_shadow_round(), gossip_set() of the
 * first states, gossip_start(), gossip_settle(), ..., gossip_stop(), then with stages and timers quiet and
 * messaging freed: gossip_free().
 */
#include "cluster/application_state.h"
#include "cluster/failure_detector.h"
#include "cluster/messaging.h"

struct gossip;

struct gossip_options {
	const char *cluster_name; /* copied, as all that follows */
	const char *partitioner; /* "org.apache.cassandra.dht.Murmur3Partitioner" */
	const struct endpoint *seeds; /* this node's own address may be among them */
	uint32_t seed_count;
	uint64_t interval_ns; /* of rounds; 1 s */
	uint64_t ring_delay_ns; /* cassandra.ring_delay_ms; 30 s */
	/* How long a node that is no seed looks for one that answers; 0: ring_delay_ns. A seed goes on after
	 * shadow_seed_ns: the ring may begin with it. */
	uint64_t shadow_round_ns;
	uint64_t shadow_seed_ns;
	size_t message_size_max; /* payload bytes of one message; more is split */
	struct failure_detector_options detector;
	/* Has it a place in the ring? One that has none and is silent is forgotten after ring_delay_ns (Cassandra's
	 * fat clients). NULL: told from its status. */
	bool (*is_member)(void *context, struct peer *peer);
	void *context;
};

/* Cassandra's defaults; names and seeds are the caller's to fill. */
void gossip_options_init(struct gossip_options *options);

/* Registers its verbs' handlers. */
struct gossip *gossip_new(struct cluster_env *env, struct messaging *messaging, struct peers *peers,
    const struct gossip_options *options);
void gossip_free(struct gossip *gossip);

/* ---- Listening (IEndpointStateChangeSubscriber) ---- */

/*
 * Embedded in who listens; unset functions are passed over. Subscribers are called in the order in which they
 * subscribed. Never about this node itself, but for on_change after gossip_set(). Within a callback gossip_value()
 * shows all that came along.
 */
struct gossip_subscriber {
	/* A node not known before, with all its states (on_change does not follow). */
	void (*on_join)(struct gossip_subscriber *subscriber, struct peer *peer);
	/* Values of some states changed: bits by application_state_bit(). One call for what came together. */
	void (*on_change)(
	    struct gossip_subscriber *subscriber, struct peer *peer, uint32_t changed);
	void (*on_alive)(struct gossip_subscriber *subscriber, struct peer *peer);
	void (*on_dead)(struct gossip_subscriber *subscriber, struct peer *peer);
	/* Out of the ring for good (LEFT, removed, assassinated, a silent non-member): quarantined. Its states stay readable
	 * until they expire. */
	void (*on_remove)(struct gossip_subscriber *subscriber, struct peer *peer);
	/* A newer generation: comes before on_join of it, and instead of on_dead of the older one. Until on_alive it counts as
	 * dead. */
	void (*on_restart)(struct gossip_subscriber *subscriber, struct peer *peer);
	struct gossip_subscriber *next; /* gossip's */
};
/* Before the first message. */
void gossip_subscribe(struct gossip *gossip, struct gossip_subscriber *subscriber);

/* ---- Start and stop ---- */

/* Somebody waits for one of the things below, once; memory lives until then. err: NULL on success, valid for the call. */
struct gossip_wait {
	void (*on_done)(struct gossip_wait *wait, const struct error *err);
	struct gossip_wait *next; /* gossip's, with all that follows */
	struct gossip *gossip;
	struct peer *peer;
	int32_t generation, heartbeat;
	uint32_t pending;
	uint64_t until_ns;
};

/* The generation of this start: seconds of the wall clock, or saved + 1 when that is not later. `saved`: of system.local, 0: none. */
int32_t gossip_next_generation(int32_t saved, int64_t wall_us);

/* A node that system.peers knows: dead until heard of. NULL/0 for what is not known. Before gossip_start(). Any thread. */
void gossip_add_saved(struct gossip *gossip, struct peer *peer, const struct uuid *host_id,
    const char *datacenter, const char *rack, const int64_t *tokens, uint32_t token_count);

/*
 * Ask the seeds (and, after half of the time, the saved peers) for all they know, without a word of ourselves. Afterwards
 * gossip_shadow_*() show it, until gossip_start(). Success without anybody: this node is the only seed, all seeds
 * are at this same point, or it is a seed and nobody answered in time. ERROR_CONFIG: no seeds.
 * ERROR_SERVER "Unable to gossip with any peers". Any thread.
 */
void gossip_shadow_round(struct gossip *gossip, struct gossip_wait *wait);
/* Another shadow_round_ns. Before gossip_shadow_round(). */
void gossip_set_shadow_round(struct gossip *gossip, uint64_t ns);
/* Did anybody answer? */
bool gossip_shadow_has_answer(const struct gossip *gossip);
/* The value that the answer has; null: not known. Borrowed until gossip_start(). On the gossip stage, or any thread between on_done and gossip_start(). */
struct slice
gossip_shadow_value(const struct gossip *gossip, struct peer *peer, enum application_state state);
/* Does the answer name the peer? (Who has this host id: walk peers_at().) */
bool gossip_shadow_knows(const struct gossip *gossip, struct peer *peer);

/*
 * Begin rounds with this generation, and the first one at once, to all seeds. Any thread. After gossip_stop() again
 * (enablegossip): a generation not above the last is raised.
 */
void gossip_start(struct gossip *gossip, int32_t generation);
/*
 * Wait until the picture is whole: every seed answered, nothing was left to tell either way, every peer was
 * found alive or not. Where seeds stay silent: as Cassandra, 5 s and then three equal looks a second apart. Never fails.
 * Any thread; after gossip_start().
 */
void gossip_settle(struct gossip *gossip, struct gossip_wait *wait);
/*
 * No more rounds. With `announce`: own status becomes shutdown and RPC_READY false, all live peers are told (they mark
 * us dead at once); done when they answered or after 2 s (shutdown_announce_in_ms). Any thread. wait may be NULL.
 */
void gossip_stop(struct gossip *gossip, bool announce, struct gossip_wait *wait);
bool gossip_is_running(struct gossip *gossip); /* any thread */
/* A round with this peer now: one of the two knows something that the other does not. Any thread. */
void gossip_ask(struct gossip *gossip, struct peer *peer);

/* ---- Our own states ---- */

struct gossip_change {
	enum application_state state;
	struct slice value; /* copied */
};
/* Set some states together: no other node sees one without the others, versions rise in the given order. A value that is
 * there already still gets a new version, as in Cassandra. Tells others at once. Any thread. */
void gossip_set(struct gossip *gossip, const struct gossip_change *changes, uint32_t count);
/* TOKENS (unless count is 0), STATUS_WITH_PORT and STATUS together. Any thread. */
void gossip_set_status(struct gossip *gossip, const struct node_status *status,
    const int64_t *tokens, uint32_t token_count);

/* ---- Looking ---- */

/* Borrowed, until the callback or task that runs on the gossip stage returns. Null: the peer or the state is not known. Gossip stage. */
struct slice
gossip_value(const struct gossip *gossip, struct peer *peer, enum application_state state);
/* A copy, appended; false: not known. Any thread. */
bool gossip_copy_value(
    struct gossip *gossip, struct peer *peer, enum application_state state, struct buffer *out);
/* STATUS_WITH_PORT, or STATUS where that is missing; NODE_STATUS_NONE when not known. Any thread. */
struct node_status gossip_status(struct gossip *gossip, struct peer *peer);
/* Is there a state of it (not evicted)? generation and heartbeat may be NULL. Any thread. */
bool
gossip_knows(struct gossip *gossip, struct peer *peer, int32_t *generation, int32_t *heartbeat);
/* Any thread. Without this node. */
uint32_t gossip_live_count(struct gossip *gossip);
uint32_t gossip_unreachable_count(struct gossip *gossip);
/* ns since it was found dead; 0: it is not unreachable (Gossiper.getEndpointDowntime). Any thread. */
uint64_t gossip_downtime(struct gossip *gossip, struct peer *peer);

/* One endpoint, for gossipinfo, system_views.gossip_info and failuredetector. Borrowed for the call. */
struct gossip_row {
	struct peer *peer;
	int32_t generation, heartbeat;
	bool is_alive, is_local;
	double phi; /* 0 for the local one */
	struct {
		int32_t version;
		struct slice value; /* null: not there */
	} states[STATE_COUNT];
};
/* Every endpoint by address. `each` runs without locks and must not be slow. Any thread. */
void gossip_each(struct gossip *gossip, void (*each)(void *context, const struct gossip_row *row),
    void *context);
/* Where the columns of a row of system_views.gossip_info go: its key (an address and a port), numbers and texts. */
struct gossip_columns {
	void (*key)(void *context, const struct endpoint *endpoint);
	void (*number)(void *context, const char *column, int32_t value);
	void (*text)(void *context, const char *column, struct slice value);
	void *context;
};
/* Names as Cassandra's GossipInfoTable has them: "rack", "rack_version", ...; of TOKENS the version alone. What is not
 * there is passed over. */
void gossip_row_columns(const struct gossip_row *row, const struct gossip_columns *to);
/* As `nodetool gossipinfo` prints it. Appends. Any thread. */
void gossip_info(struct gossip *gossip, bool with_port, struct buffer *out);

double gossip_phi_threshold(struct gossip *gossip);
void gossip_set_phi_threshold(struct gossip *gossip, double threshold);
/* Numeric "ip:port" each; the caller frees *out (one malloc()). Any thread. */
uint32_t gossip_seeds(struct gossip *gossip, struct endpoint **out);
void gossip_set_seeds(
    struct gossip *gossip, const struct endpoint *seeds, uint32_t count); /* reloadseeds */
bool gossip_is_seed(struct gossip *gossip, const struct endpoint *endpoint);

/* ---- What operators and the transport know ---- */

/*
 * Write states in the name of another node, as its removal needs it (advertiseRemoving, advertiseTokenRemoved):
 * generation + 1 and a heartbeat above all its versions. REMOVING also sets REMOVAL_COORDINATOR to `coordinator`.
 * REMOVED quarantines it here. ERROR_INVALID: not known. Gossip stage.
 */
int gossip_advertise(struct gossip *gossip, struct peer *peer, const struct node_status *status,
    const struct uuid *coordinator, struct error *err);
/*
 * Take a node that answers no more out of the ring by force (nodetool assassinate): after ring delay, when its
 * heartbeat stood still, others are told that it has LEFT. Tokens: what it had, or a random one. ERROR_SERVER when
 * it is alive after all. Any thread.
 */
void gossip_assassinate(struct gossip *gossip, struct peer *peer, struct gossip_wait *wait);
/* Another node took its place (replace with another address): quarantined twice as long, and evicted. Gossip stage. */
void gossip_replaced(struct gossip *gossip, struct peer *peer);
/*
 * The transport was refused by the peer's host (ECONNREFUSED): nothing listens there. Not a verdict: who has news of it from
 * others lives; but silence counts four times for the next few seconds. Any thread.
 */
void gossip_refused(struct gossip *gossip, struct peer *peer);

struct gossip_stats {
	uint64_t rounds, extra_rounds; /* SYNs sent by the clock, and eagerly */
	uint64_t digests_sent, deltas_sent, deltas_received, bytes_sent;
	uint64_t refused_generations, refused_names; /* messages not believed */
};
void gossip_stats(struct gossip *gossip, struct gossip_stats *out); /* any thread */

#endif
