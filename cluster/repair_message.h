/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_REPAIR_MESSAGE_H
#define HELENUS_CLUSTER_REPAIR_MESSAGE_H

/*
 * What the nodes of a repair say (repair/messages), big-endian; strings and lists begin with a vint.
 *
 *   all      parent id (16), session id (16; 0 where there is none)
 *   PREPARE  string keyspace, u8 flags, u8 preview, i64 repaired at, list of table ids, ranges, list of participants
 *   SNAPSHOT      table id
 *   VALIDATION    table id, i64 now (seconds), ranges, a u8 depth for each
 *   SYNC          table id, u8 flags, endpoint, ranges
 *   PAXOS2_CLEANUP   string keyspace, list of table ids, ranges, a u64 electorate of each (replica_plan.h)
 *   CLEANUP, PREPARE_CONSISTENT, FINALIZE_PROPOSE, FINALIZE_COMMIT, FAILED_SESSION   nothing more
 *
 *   ranges   list of (i64 left, i64 right)
 *   answer   u8 REPAIR_WORKING, REPAIR_DONE or REPAIR_FAILED; what was asked for, or why it failed
 *            PREPARE: list of vint partitions, one for each table; VALIDATION: list of (vint bytes, tree)
 */
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/uuid.h"
#include "cluster/message.h"
#include "cluster/topology.h"

enum { REPAIR_WORKING, REPAIR_DONE, REPAIR_FAILED };
enum {
	REPAIR_IS_INCREMENTAL = 1,
	REPAIR_IS_PULL = 2,
	REPAIR_IS_PAXOS_ONLY = 4,
	REPAIR_IS_GLOBAL = 8, /* of all data centers and hosts */
};

struct repair_message {
	enum verb verb;
	struct uuid parent, session;
	struct uuid table; /* SNAPSHOT, VALIDATION, SYNC */
	struct slice keyspace; /* PREPARE, PAXOS2_CLEANUP */
	uint8_t flags; /* PREPARE, SYNC */
	uint8_t preview; /* PREPARE */
	int64_t repaired_at; /* PREPARE: ms */
	int64_t now_seconds; /* VALIDATION */
	uint32_t table_count; /* PREPARE, PAXOS2_CLEANUP: 0 are all of the keyspace */
	const struct uuid *tables;
	uint32_t range_count; /* PREPARE, VALIDATION, SYNC, PAXOS2_CLEANUP */
	const struct ring_range *ranges;
	const uint8_t *depths; /* VALIDATION */
	const uint64_t *electorates; /* PAXOS2_CLEANUP: of each range */
	uint32_t endpoint_count; /* PREPARE: all participants; SYNC: one */
	const struct endpoint *endpoints;
};

/* Appends. */
void repair_message_encode(const struct repair_message *message, struct buffer *out);
/* Lists are the arena's; the keyspace points into `encoded`. ERROR_PROTOCOL, ERROR_NO_MEMORY. */
int repair_message_decode(enum verb verb, struct slice encoded, struct arena *arena,
    struct repair_message *out, struct error *err);

#endif
