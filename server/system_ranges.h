/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SYSTEM_RANGES_H
#define HELENUS_SERVER_SYSTEM_RANGES_H

/*
 * Which ranges have moved already: system.available_ranges_v2 (came to this node) and system.transferred_ranges_v2 (were
 * given by it), so that a movement that broke off goes on where it was (streaming/StreamStateStore, SystemKeyspace). A range stands
 * there when its data is part of the tables of who got it. Any thread that may block.
 */
#include "cluster/stream.h"

struct executor;

/* What was moved; *out is freed with system_ranges_free(). operation: whose given ranges; those that came are of any. */
struct system_ranges;
int system_ranges_load(struct executor *executor, enum stream_operation operation,
    struct system_ranges **out, struct error *err);
void system_ranges_free(struct system_ranges *ranges); /* NULL is accepted */
/* to: who got it; NULL: this node. */
bool system_ranges_has(const struct system_ranges *ranges, struct slice keyspace,
    const struct endpoint *to, struct ring_range range);

/* A session ended well. */
int system_ranges_save(struct executor *executor, enum stream_operation operation,
    const struct stream_result *result, struct error *err);

/* The movement is over, or begins from nothing. keyspace: NULL for all. */
int
system_ranges_forget_fetched(struct executor *executor, const char *keyspace, struct error *err);
int system_ranges_forget_given(
    struct executor *executor, enum stream_operation operation, struct error *err);

#endif
