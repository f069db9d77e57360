/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_PAXOS_CODEC_H
#define HELENUS_CLUSTER_PAXOS_CODEC_H

/*
 * What replicas say to each other in a round of Paxos, as bytes (big-endian, a version first). Decoders get
 * bytes from outside: every length is checked, ERROR_INVALID says what was wrong. Views of the bytes that were decoded.
 *
 * A ballot is a version 1 UUID of whole microseconds: they are the timestamp that its value is written at.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/uuid.h"

/* By time, then by the bytes: -1, 0, 1. The zero UUID is before all. */
int paxos_ballot_compare(const struct uuid *a, const struct uuid *b);
bool paxos_ballot_is_none(const struct uuid *ballot);
/*
 * By a whole microsecond at least, or `b` is none. Replicas take nothing else as newer: two ballots of one microsecond
 * would write their values at the same timestamp, and which of them stands would not be for Paxos to say.
 */
bool paxos_ballot_is_later(const struct uuid *a, const struct uuid *b);
/* Microseconds since 1970. */
int64_t paxos_ballot_timestamp(const struct uuid *ballot);
/*
 * Of `timestamp` (us since 1970), unique by `nonce`. It tells whether it is for LOCAL_SERIAL (Ballot.Flag): who finds it
 * unfinished later has to know whose majority it is about.
 */
struct uuid paxos_ballot_make(int64_t timestamp, uint64_t nonce, bool is_local);
bool paxos_ballot_is_local(const struct uuid *ballot);

/*
 * A value: a mutation, and of which values it is the follower. A replica that took a value over from another proposer
 * keeps `origin`, so its maker finds out later what became of it. An empty value (no bytes) changes nothing.
 */
enum { PAXOS_HISTORY_MAX = 16 };
struct paxos_content {
	struct uuid origin; /* the ballot that it was made for */
	uint32_t history_count; /* < PAXOS_HISTORY_MAX: there were no others before them */
	struct slice
	    history; /* origins of the values that were committed before, the last one first; 16 bytes each */
	struct slice mutation; /* as mutation_encode() writes it */
};
void paxos_content_encode(const struct paxos_content *content, struct buffer *out);
int paxos_content_decode(struct slice value, struct paxos_content *out, struct error *err);
/* Is the origin that of the content, or in its history? */
bool paxos_content_has(const struct paxos_content *content, const struct uuid *origin);
/* ... or may it be further back than the history goes? */
bool paxos_content_may_have_had(const struct paxos_content *content, const struct uuid *origin);

/* PAXOS_PREPARE_REQ (no value), PAXOS_PROPOSE_REQ, PAXOS_COMMIT_REQ. */
struct paxos_commit {
	struct uuid ballot;
	struct uuid table;
	struct slice key;
	struct slice value; /* struct paxos_content, encoded; or empty */
	/* PAXOS_PREPARE_REQ: replica_plan_electorate(), who takes part in the proposer's eyes; else 0. */
	uint64_t electorate;
};
void paxos_commit_encode(const struct paxos_commit *commit, struct buffer *out);
int paxos_commit_decode(struct slice bytes, struct paxos_commit *out, struct error *err);

/* The answer to a prepare. */
struct paxos_promise {
	bool is_promised;
	/* Others take part in the replica's eyes (the ring changes): nothing was promised, and it tells nothing else. */
	bool is_electorate_other;
	struct uuid promised; /* the highest so far: ours when is_promised */
	/* The zero UUID: none. */
	struct uuid accepted_ballot, committed_ballot;
	struct slice accepted, committed; /* values */
};
void paxos_promise_encode(const struct paxos_promise *promise, struct buffer *out);
int paxos_promise_decode(struct slice bytes, struct paxos_promise *out, struct error *err);

/* The answer to a proposal. */
struct paxos_acceptance {
	bool is_accepted;
	struct uuid promised;
};
void paxos_acceptance_encode(const struct paxos_acceptance *acceptance, struct buffer *out);
int paxos_acceptance_decode(struct slice bytes, struct paxos_acceptance *out, struct error *err);

#endif
