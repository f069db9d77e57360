/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_PAXOS_H
#define HELENUS_CLUSTER_PAXOS_H

/*
 * Conditional statements and serial reads: rounds of Paxos over a partition's replicas (service/StorageProxy.cas,
 * service/paxos). For each request:
 *
 *   prepare   a ballot to all participants; a majority promises to take nothing older, and tells what it has
 *             accepted and committed last
 *             (something accepted was not finished: propose and commit that, begin again;
 *              somebody lacks the last commit: send it, begin again)
 *   on_ready  the caller reads at QUORUM (LOCAL_QUORUM), decides, and calls paxos_propose()
 *   propose   a majority accepts the value
 *   commit    all replicas write it; as many answers as the commit level asks for
 *
 * A ballot that is too old begins again after a random pause, until cas_contention_timeout. A read, or a condition that
 * does not hold, proposes an empty value: else an unfinished older write could come to light behind what it saw
 * (CASSANDRA-12126).
 *
 * Threads: any stage thread starts a request. on_ready and on_done run on the mutation stage, one after the other.
 */
#include "cluster/coordinator.h"
#include "cluster/messaging.h"
#include "cluster/snitch.h"

struct paxos;

struct paxos_options {
	/* Borrowed; outlive it. */
	struct store *store;
	struct cluster_env *cluster;
	struct messaging *messaging;
	struct peers *peers;
	struct topology_holder *topology;
	/* Any thread; `context` comes first. */
	void *context;
	struct schema *(*schema)(void *context); /* the current snapshot; one reference */
	uint64_t (*contention_timeout_ns)(void *context); /* cas_contention_timeout */
	uint64_t (*write_timeout_ns)(void *context);
	uint32_t
	    repair_parallelism; /* paxos_repair_parallelism: partitions of a repair at a time */
	struct coordinator_hints hints; /* for commits that a replica missed */
	/*
	 * The replica and this node do not see the same participants: one of them has not heard of a change of the ring yet.
	 * At most once in 100 ms, any thread. NULL: nothing is done about it, the round is tried again later.
	 */
	void (*on_disagreement)(void *context, struct peer *peer);
};

/* Registers PAXOS_PREPARE_REQ, PAXOS_PROPOSE_REQ, PAXOS_COMMIT_REQ. */
struct paxos *paxos_new(const struct paxos_options *options);
/*
 * No timer fires any more and no answer comes: requests that paused before they begin again get ERROR_SERVER, others
 * are over. NULL is accepted.
 */
void paxos_free(struct paxos *paxos);

/* Filled by the caller; alive, with all that it points to, until on_done. */
struct paxos_request {
	const struct keyspace_metadata *keyspace;
	const struct table_metadata *table;
	struct slice key;
	int64_t token;
	enum consistency serial; /* SERIAL or LOCAL_SERIAL */
	enum consistency commit; /* of the write */
	bool is_read; /* errors are those of a read, at the serial level */
	/*
	 * The promise is held. Calls paxos_propose() or paxos_abandon(), now or later, from any thread. The value's
	 * timestamp is paxos_ballot_timestamp(&ballot). May run again: when the ballot was overtaken.
	 */
	void (*on_ready)(struct paxos_request *request, const struct uuid *ballot);
	/*
	 * Once. NULL: what was proposed is decided, and written. Errors: ERROR_UNAVAILABLE; ERROR_WRITE_TIMEOUT (type CAS)
	 * or ERROR_READ_TIMEOUT; what paxos_abandon() was given.
	 */
	void (*on_done)(struct paxos_request *request, const struct error *err);
	void *context;
	const struct trace *trace; /* as in coordinator_write */
	/*
	 * For on_done without an error: a mutation of this request was written. It may be that of an earlier on_ready which
	 * another proposer brought to its end, even where the last on_ready saw that one's outcome and found that
	 * its condition does not hold.
	 */
	bool has_written;
	/* Paxos's. */
	struct paxos_run *run;
};
void paxos_begin(struct paxos *paxos, struct paxos_request *request);
/* mutation NULL: nothing changes, the round is only to be finished. Encoded before it returns. */
void paxos_propose(struct paxos_request *request, const struct mutation *mutation);
/* The caller failed: on_done is called with the error. */
void paxos_abandon(struct paxos_request *request, const struct error *err);

/*
 * Does this replica keep a state for conditional statements of the keyspace's tables? Looks at so many rows of system.paxos at most
 * that it may overlook some. Reads the disk.
 */
bool paxos_has_state(struct paxos *paxos, const struct keyspace_metadata *keyspace);

/* How often ballots were overtaken, unfinished values finished (ClientRequest metrics ContentionHistogram,
 * UnfinishedCommit). Relaxed. */
struct paxos_stats {
	uint64_t contentions, unfinished_commits;
};
void paxos_stats(const struct paxos *paxos, struct paxos_stats *out);

#endif
