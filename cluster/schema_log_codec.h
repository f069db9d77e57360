/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_SCHEMA_LOG_CODEC_H
#define HELENUS_CLUSTER_SCHEMA_LOG_CODEC_H

/*
 * What the schema log says to other nodes and to the disk, as bytes (big-endian; each begins with a version of
 * one byte). Every decoder gets bytes from outside: a length is checked before it is used, and ERROR_INVALID says
 * what was wrong. Internal to the schema log and its fuzz target.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/uuid.h"

enum { SCHEMA_RECENT_MAX = 32, SCHEMA_ENTRY_MAX = 64 << 20 };

/* Whose proposal wins: by time, then by chance. */
struct schema_ballot {
	uint64_t time_us;
	uint64_t nonce;
};

/* One change. */
struct schema_entry {
	uint64_t epoch; /* that the schema has with it */
	int64_t timestamp; /* that it writes at, us */
	struct uuid id; /* by which its maker knows it again */
	uint8_t *bytes; /* owned */
	size_t size;
};

/* What stands on the disk of a node. */
struct schema_log_state {
	uint64_t epoch;
	int64_t timestamp;
	struct schema_ballot promised, accepted_ballot;
	bool has_accepted;
	struct schema_entry accepted; /* has_accepted */
	uint32_t recent_count;
	struct uuid recent[SCHEMA_RECENT_MAX]; /* ids of the last entries, the newest last */
};

/* The answer to a prepare. */
struct schema_promise {
	bool is_ok;
	struct schema_ballot promised; /* ours, which may be higher than what was asked for */
	uint64_t epoch;
	int64_t timestamp;
	bool has_accepted;
	struct schema_ballot accepted_ballot;
	struct schema_entry accepted; /* borrowed when encoded, owned when decoded */
};

/* The answer to a pull. */
struct schema_fetched {
	uint64_t epoch;
	int64_t timestamp;
	bool has_snapshot; /* false: the answering node is not ahead */
	uint32_t recent_count;
	struct uuid recent[SCHEMA_RECENT_MAX];
	struct slice snapshot; /* a view */
};

int schema_ballot_compare(const struct schema_ballot *a, const struct schema_ballot *b);

int schema_entry_copy(struct schema_entry *to, const struct schema_entry *from); /* -1: no memory */
void schema_entry_fini(struct schema_entry *entry);

void schema_ballot_encode(const struct schema_ballot *ballot, struct buffer *out);
void schema_ballot_decode(struct reader *reader, struct schema_ballot *out);

/* Entries: in proposals behind a ballot, in commits alone. */
void schema_entry_encode(const struct schema_entry *entry, struct buffer *out);
int schema_entry_decode(struct reader *reader, struct schema_entry *out, struct error *err);

void schema_state_encode(const struct schema_log_state *state, struct buffer *out);
/* *out is written on success only; free with schema_entry_fini(&out->accepted). */
int schema_state_decode(struct slice bytes, struct schema_log_state *out, struct error *err);

void schema_promise_encode(const struct schema_promise *promise, struct buffer *out);
int schema_promise_decode(struct slice bytes, struct schema_promise *out, struct error *err);

void schema_fetched_encode(const struct schema_fetched *fetched, struct buffer *out);
int schema_fetched_decode(struct slice bytes, struct schema_fetched *out, struct error *err);

#endif
