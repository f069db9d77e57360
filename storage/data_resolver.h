/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_DATA_RESOLVER_H
#define HELENUS_STORAGE_DATA_RESOLVER_H

/*
 * One answer from the data answers of several replicas (DataResolver, RowIteratorMergeListener,
 * ShortReadProtection, ReplicaFilteringProtection): their streams are merged, and for each replica the
 * resolver notes what it lacks, which is its read repair.
 *
 * No thread waits here. data_resolver_run() says that it is done, or what it must still ask; the caller sends those
 * commands, hands in the answers, and runs it again:
 *
 *   data_resolver_new
 *   data_resolver_add(0..n-1)                   the answers to the command itself
 *   while (run == DATA_RESOLVER_ASK)
 *           for each data_resolver_request()    send request.command to request.replica
 *           data_resolver_answer() for each     (any order, from any thread that holds the request)
 *   data_resolver_partitions, data_resolver_repairs
 *
 * It asks for more when a replica's limit ended its answer at a place behind which the result still needs rows,
 * because rows that it counted are deleted elsewhere (short reads), and, with row filters, for rows that one
 * replica has and another may have filtered out for being newer (replica filtering protection).
 *
 * Threads: one at a time, the caller serialises. Memory: everything comes from the arena given, which with the
 * answers' bytes must outlive what comes out. A run that is repeated starts from the beginning: answers are
 * pages, and asking again is rare.
 */
#include "storage/read_response.h"

struct data_resolver;

enum data_resolver_state {
	DATA_RESOLVER_FAILED = -1,
	DATA_RESOLVER_DONE,
	DATA_RESOLVER_ASK,
};

/* A command for one replica; its answer must be data. Valid until the next run, the command until the end. */
struct data_resolver_request {
	uint32_t replica;
	const struct read_command *command;
};

/*
 * For the answers of `replica_count` replicas (1 is allowed) to `command`, which is borrowed. NULL: no memory.
 */
struct data_resolver *
data_resolver_new(const struct read_command *command, uint32_t replica_count, struct arena *arena);

/*
 * Hand in replica's data answer to the command itself, once each, before the first run. The bytes are borrowed.
 * A replica whose answer never came is left out: merged without, not repaired. ERROR_PROTOCOL when it is a
 * digest or damaged.
 */
int data_resolver_add(
    struct data_resolver *resolver, uint32_t replica, struct slice encoded, struct error *err);

/*
 * Go as far as the answers allow. ASK: all of the requests must be answered before the next run. A
 * request that fails fails the read (Cassandra: the timeout or failure of the read itself).
 */
enum data_resolver_state data_resolver_run(struct data_resolver *resolver, struct error *err);

/* After ASK: index < count. */
uint32_t data_resolver_request_count(const struct data_resolver *resolver);
const struct data_resolver_request *
data_resolver_request(const struct data_resolver *resolver, uint32_t index);
/* The answer to a request; the bytes are borrowed. */
int data_resolver_answer(
    struct data_resolver *resolver, uint32_t index, struct slice encoded, struct error *err);

/* After DONE: the merged partitions with tombstones, for live_reader (which applies filters and limits). */
struct partition_iterator *data_resolver_partitions(struct data_resolver *resolver);

/*
 * After DONE: what a replica lacks of the merged result, one mutation (of one partition) each, ready for
 * mutation_encode() (READ_REPAIR_REQ) or store_apply(). count 0: it is up to date.
 */
const struct mutation *
data_resolver_repairs(const struct data_resolver *resolver, uint32_t replica, uint32_t *count);

#endif
