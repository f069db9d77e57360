/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_PAXOS_INTERNAL_H
#define HELENUS_CLUSTER_PAXOS_INTERNAL_H

/*
 * Shared by paxos.c (a request from its beginning to its end, its questions), paxos_rounds.c (what its rounds say, and what
 * follows from the answers) and paxos_handle.c (the replica's side of the messages).
 */
#include "base/lock.h"
#include "cluster/paxos.h"
#include "cluster/paxos_state.h"
#include "cluster/replica_plan.h"

struct paxos {
	struct paxos_options options;
	struct paxos_acceptor acceptor;
	_Atomic int64_t last_ballot_us; /* each microsecond makes one ballot */
	_Atomic uint64_t contentions, unfinished_commits;
	struct paxos_auto *automatic; /* owned; paxos_repair.c */
	_Atomic uint64_t disagreed_ns; /* when on_disagreement was called last */

	struct lock lock; /* of all that follows */
	struct paxos_run
	    *pausing; /* those whose timer may be armed: no answer would ever end them */
};

enum { PAXOS_QUORUMS_MAX = 64 };

enum paxos_phase {
	PAXOS_BEGINNING,
	PAXOS_PREPARING,
	PAXOS_CATCHING_UP, /* the last commit goes to those that lack it */
	PAXOS_DECIDING, /* the caller's */
	PAXOS_PROPOSING,
	PAXOS_COMMITTING,
};

/* What somebody accepted or committed; the bytes are the message's. */
struct paxos_value {
	struct uuid ballot;
	struct slice bytes; /* struct paxos_content, encoded; or empty */
	struct message *message; /* a reference; NULL: none was told */
};

/* A participant, as it answered to the prepare. */
struct paxos_participant {
	struct peer *peer;
	bool has_promised;
	struct uuid committed; /* the last one it knows */
};

struct paxos_run {
	atomic_uint
	    references; /* the request's, one for each question, one for the timer or task */
	struct paxos *paxos;
	struct paxos_request *request; /* NULL once it is done */
	struct task task; /* the next step, on the mutation stage: one at a time */
	struct cluster_timer timer;
	struct paxos_run *next_pausing, **in_pausing; /* paxos->lock */
	uint64_t deadline_ns; /* of contention */
	struct trace trace; /* of type TRACE_NONE: not traced */
	uint32_t attempts;

	/* Of this attempt; written by the steps alone. */
	const struct topology *topology; /* a reference */
	struct arena arena;
	struct replica_plan plan; /* of the participants */
	struct paxos_participant *participants;
	struct uuid ballot;
	uint64_t electorate; /* who takes part, dead ones too */
	/*
	 * The caller's value was proposed, and no majority accepted it: it may yet come true by another's hand, as long as
	 * no later value is accepted by a majority. The ballot of the first time, by which it is known whenever it is
	 * proposed; the zero UUID: no such value is about. Never forgotten: that one majority knows nothing of the value
	 * does not tell that a later one will not, where nothing was accepted in between.
	 */
	struct uuid unsettled;
	int32_t aware; /* of those that promised: know the last commit already */
	bool is_own; /* what is proposed is the caller's */
	bool is_empty; /* ... and changes nothing */
	struct message_payload *value; /* a paxos_commit; NULL: none yet */
	struct message_payload *mutation; /* its mutation, for hints */
	int64_t created_ms;

	struct lock lock; /* of all that follows: answers come on any thread */
	enum paxos_phase phase;
	uint64_t round; /* answers to an older one are late */
	bool is_asking; /* the step still asks: it decides itself what has been answered by then */
	bool is_decided; /* this round is, and the task is on its way */
	uint32_t waiting;
	int32_t agreed, refused;
	int32_t differing; /* PAXOS_PREPARING: those that see other participants */
	uint32_t quorum_count; /* PAXOS_COMMITTING: answers that are still wanted, by quorum */
	int32_t wanted[PAXOS_QUORUMS_MAX];
	struct uuid highest; /* ballot of others that was in the way */
	/*
	 * The round that proposed our value for the first time, while nobody may have accepted it; 0: somebody may, or
	 * it was proposed again. Its answers count after the round, too.
	 */
	uint64_t own_round;
	uint32_t
	    own_waiting; /* those who have not refused it yet; 0: nobody will ever know of it */
	struct paxos_value accepted, committed; /* the youngest that were told */
};

/* A question that is out. */
struct paxos_ask {
	struct message_callback callback; /* first */
	struct paxos_run *run; /* a reference */
	uint64_t round;
	uint32_t index; /* of the participant */
	int16_t quorum; /* PAXOS_COMMITTING */
	bool is_counted;
	struct message_payload *hint; /* PAXOS_COMMITTING: a reference; NULL: none is kept */
	int64_t created_ms;
};

/* ---- paxos.c ---- */

void paxos_attempt_clear(struct paxos_run *run);
uint64_t paxos_now(const struct paxos_run *run);
void paxos_finish(struct paxos_run *run, const struct error *err);
void paxos_fail(struct paxos_run *run, const struct error *cause);
void paxos_fail_timeout(struct paxos_run *run, enum consistency level, const char *write_type,
    int32_t received, int32_t required);
void paxos_fail_unknown(struct paxos_run *run, int32_t accepted);
void paxos_fail_memory(struct paxos_run *run);
struct message_payload *
paxos_payload(struct paxos_run *run, const struct uuid *ballot, struct slice value);
uint64_t paxos_open_round(struct paxos_run *run, enum paxos_phase phase, uint32_t waiting);
void paxos_close_round(struct paxos_run *run);
void paxos_ask(struct paxos_run *run, struct peer *peer, enum verb verb,
    struct message_payload *payload, const struct paxos_ask *how);
void paxos_retry(struct paxos_run *run);

/* ---- paxos_rounds.c: steps on the mutation stage, each when a round is over ---- */

void paxos_attempt(struct paxos_run *run);
void paxos_prepared(struct paxos_run *run);
void paxos_caught_up(struct paxos_run *run);
void paxos_proposed(struct paxos_run *run);
void paxos_committed(struct paxos_run *run);

/* ---- paxos_handle.c ---- */
void paxos_handle_register(struct paxos *paxos);

#endif
