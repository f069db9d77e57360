/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_PAXOS_STATE_H
#define HELENUS_CLUSTER_PAXOS_STATE_H

/*
 * A replica's part in Paxos (service/paxos/PaxosState): what it has promised, accepted and committed for a partition
 * of a table, kept in system.paxos through the same store as everything else. Nothing is answered before it is as
 * durable as any acknowledged write.
 *
 * Threads: any stage thread; a partition's state is read and written under its lock. on_done may come later, on the
 * commit log's thread.
 */
#include <stdatomic.h>
#include "cluster/paxos_tracker.h"
#include "cluster/table_locks.h"
#include "storage/store.h"

struct paxos_acceptor {
	struct store *store; /* borrowed */
	struct env *env; /* borrowed */
	struct table_locks locks;
	struct paxos_tracker tracker;
};

void paxos_acceptor_init(struct paxos_acceptor *acceptor, struct store *store, struct env *env);
void paxos_acceptor_fini(struct paxos_acceptor *acceptor);

enum paxos_step { PAXOS_PREPARE, PAXOS_PROPOSE, PAXOS_COMMIT };

/* One step of a request. The caller fills the first part, and keeps it with all that it points to until on_done. */
struct paxos_step_call {
	enum paxos_step step;
	struct paxos_commit commit; /* the request */
	const struct table_metadata *table; /* that it is about */
	const struct table_metadata *paxos_table; /* system.paxos */
	bool is_durable; /* PAXOS_COMMIT: the keyspace's durable_writes */
	struct mutation
	    mutation; /* PAXOS_COMMIT: that of commit.value, decoded; update_count 0: nothing to write */
	struct arena *arena;
	void (*on_done)(struct paxos_step_call *call, const struct error *err);
	void *context;

	/* The answer. */
	struct paxos_promise promise; /* PAXOS_PREPARE */
	struct paxos_acceptance acceptance; /* PAXOS_PROPOSE */

	/* The acceptor's. */
	struct paxos_acceptor *acceptor;
	struct mutation state;
	struct store_write write, state_write;
	atomic_uint left;
	atomic_flag has_failed; /* err belongs to who set it first */
	struct error err;
};

void paxos_step_run(struct paxos_acceptor *acceptor, struct paxos_step_call *call);

/* Is there a row for one of the keyspace's tables among the first of system.paxos? */
bool paxos_state_knows(struct paxos_acceptor *acceptor, const struct table_metadata *paxos_table,
    const struct keyspace_metadata *keyspace);

/* ---- What is not finished (uncommitted/PaxosUncommittedTracker) ---- */

/* Where a walk over the open ones of a range stands; `range` is the caller's to set. */
struct paxos_walk {
	struct token_range range;
	struct paxos_acceptor *acceptor;
	const struct table_metadata *paxos_table;
	int64_t before_us; /* what began later is passed over: it may be under way */
	bool is_done;
};
/*
 * The next few hundred at most, in the arena; NULL: none. Go on until walk->is_done; the range then points into the
 * last answer, which must stay. Reads the disk.
 */
int paxos_walk_next(
    struct paxos_walk *walk, struct arena *arena, struct paxos_open **out, struct error *err);

#endif
