/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COUNTER_H
#define HELENUS_STORAGE_COUNTER_H

/*
 * Counter contexts, the values of counter cells (CounterContext):
 *
 *   int16 n | n x int16 entry | shards, each 16 bytes id, int64 clock, int64 count, ascending by id
 *
 * An entry of the header names a shard by its index: as it is for a local shard, with bit 15 set for a
 * global one; shards that are not named are remote. Current versions write global shards only; the
 * others are understood since old SSTables have them. Merging, for each id: global beats local beats
 * remote; two locals are added up; else the higher clock wins, then the higher count.
 * Pure functions, any thread.
 */
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/uuid.h"

enum counter_shard_kind { COUNTER_SHARD_REMOTE, COUNTER_SHARD_LOCAL, COUNTER_SHARD_GLOBAL };

struct counter_shard {
	struct uuid id;
	int64_t clock;
	int64_t count;
	enum counter_shard_kind kind;
};

/*
 * The value of an increment before a leader has applied it (createUpdate): one local shard whose id
 * and clock are fixed. It never reaches a file: counter_update_delta() takes the increment out again.
 */
struct slice counter_make_update(int64_t delta, struct arena *arena);
/* The increment in such a value; counter_total() of any other context. */
int64_t counter_update_delta(struct slice context);

/* A context of one global shard (createGlobal): what a leader writes. Null slice without memory. */
struct slice
counter_make_global(const struct uuid *id, int64_t clock, int64_t count, struct arena *arena);

/* Both contexts in one. Returns an argument's bytes where they are the result. A context that does not
 * hold to the format counts as empty. Null slice without memory. */
struct slice counter_merge(struct slice a, struct slice b, struct arena *arena);

/* Sum of the counts (wraps as Java's long); what a client sees. */
int64_t counter_total(struct slice context);

/* Find the shard of `id`; false when there is none. */
bool counter_find(struct slice context, const struct uuid *id, struct counter_shard *out);

/* Does the header fit, and are there whole shards? ERROR_CORRUPT. */
int counter_validate(struct slice context, struct error *err);

#endif
