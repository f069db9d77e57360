/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_SCHEMA_LOG_INTERNAL_H
#define HELENUS_CLUSTER_SCHEMA_LOG_INTERNAL_H

/* The schema log, for the files that make it up: this node's word (schema_log_acceptor.c), and changes (schema_log.c). */
#include "cluster/schema_log.h"
#include "cluster/schema_log_codec.h"

struct schema_change_item;

struct schema_log {
	struct cluster_env *env;
	struct messaging *messaging;
	struct peers *peers;
	struct topology_holder *topology;
	const struct schema_log_ops *ops;
	void *context;
	_Atomic uint64_t epoch_shown;
	_Atomic int64_t timestamp_shown;

	/* All that follows is the migration stage's. */
	struct schema_log_state state; /* as it is on the disk */
	struct schema_change_item *queue, *queue_last; /* the first is the one that is worked on */
	bool is_busy; /* with the first: questions are out, or the timer runs */

	/* This round: one question to many. Answers to an older one come too late. */
	uint64_t round;
	uint32_t waiting, agreed;
	uint32_t members, alive, quorum;
	bool is_lone; /* nobody to agree with, and nothing to keep for them */
	struct schema_ballot ballot, ballot_seen;
	int64_t timestamp; /* the youngest that anybody told */
	struct schema_entry entry; /* that is proposed; owned */
	struct error commit_error; /* why this node could not make it */
	struct schema_entry found; /* accepted by somebody, not finished; owned */
	struct schema_ballot found_ballot;
	uint64_t prepared_epoch; /* ours when the question was put */
	struct peer *ahead; /* who told a higher epoch than ours */
	uint64_t ahead_epoch;

	struct cluster_timer retry_timer, pull_timer;
	struct task retry_task, pull_task;
	_Atomic(struct peer *) pull_from; /* whose schema is wanted; NULL: nobody's */
	atomic_bool is_pull_timed;
	bool is_pulling; /* a question is out */
};

/* ---- schema_log_acceptor.c; all on the migration stage ---- */

/* Handles VERB_SCHEMA_PREPARE_REQ, _PROPOSE_REQ, _COMMIT_REQ and _PULL_REQ. */
void schema_acceptor_register(struct schema_log *log);
void schema_forget_accepted(struct schema_log *log);
/* Append what we say to a prepare. Nothing is promised that is not on the disk. */
void schema_promise(struct schema_log *log, const struct schema_ballot *ballot, struct buffer *out);
/* Append what we say to a proposal. */
void schema_accept(struct schema_log *log, const struct schema_ballot *ballot,
    const struct schema_entry *entry, struct buffer *out);
/* Among the last ones. */
bool schema_is_committed(const struct schema_log *log, const struct uuid *id);
/* A decided entry: make it true here when it is the next one. */
int schema_commit(struct schema_log *log, const struct schema_entry *entry, struct error *err);
/* Another node's whole schema in place of ours. */
int schema_install(struct schema_log *log, const struct schema_fetched *fetched, struct error *err);

#endif
