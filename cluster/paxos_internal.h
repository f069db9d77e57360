/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_PAXOS_INTERNAL_H
#define HELENUS_CLUSTER_PAXOS_INTERNAL_H

/* Shared by paxos.c (who proposes) and paxos_handle.c (the replica's side of the messages). */
#include "base/lock.h"
#include "cluster/paxos.h"
#include "cluster/paxos_state.h"

struct paxos {
	struct paxos_options options;
	struct paxos_acceptor acceptor;
	_Atomic int64_t last_ballot_us; /* each microsecond makes one ballot */
	_Atomic uint64_t contentions, unfinished_commits;

	struct lock lock; /* of all that follows */
	struct paxos_run
	    *pausing; /* those whose timer may be armed: no answer would ever end them */
};

void paxos_handle_register(struct paxos *paxos);

#endif
