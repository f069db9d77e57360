/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_CONSISTENCY_H
#define HELENUS_BASE_CONSISTENCY_H

/*
 * Consistency levels: how many replicas must answer. The values are the native protocol's
 * [consistency] codes, so that protocol, cluster and storage say the same number. Pure functions;
 * any thread. Cassandra: db/ConsistencyLevel.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum consistency {
	CONSISTENCY_ANY = 0,
	CONSISTENCY_ONE = 1,
	CONSISTENCY_TWO = 2,
	CONSISTENCY_THREE = 3,
	CONSISTENCY_QUORUM = 4,
	CONSISTENCY_ALL = 5,
	CONSISTENCY_LOCAL_QUORUM = 6,
	CONSISTENCY_EACH_QUORUM = 7,
	CONSISTENCY_SERIAL = 8,
	CONSISTENCY_LOCAL_SERIAL = 9,
	CONSISTENCY_LOCAL_ONE = 10,
};

enum { CONSISTENCY_COUNT = 11 };

/* Is `code` (from the wire) one of the levels above? */
static inline bool
consistency_is_known(uint16_t code)
{
	return code < CONSISTENCY_COUNT;
}

/* SERIAL or LOCAL_SERIAL. */
static inline bool
consistency_is_serial(enum consistency level)
{
	return level == CONSISTENCY_SERIAL || level == CONSISTENCY_LOCAL_SERIAL;
}

/* Only replicas of the coordinator's own data center count: LOCAL_ONE, LOCAL_QUORUM, LOCAL_SERIAL. */
static inline bool
consistency_is_local(enum consistency level)
{
	return level == CONSISTENCY_LOCAL_ONE || level == CONSISTENCY_LOCAL_QUORUM ||
	    level == CONSISTENCY_LOCAL_SERIAL;
}

/*
 * Answers that a level asks for of `total` replicas, `local` of them in the coordinator's data center
 * (ConsistencyLevel.blockFor). EACH_QUORUM, which needs each data center's own number, as if they were one.
 */
int32_t consistency_answers(enum consistency level, int32_t total, int32_t local);

/* "LOCAL_QUORUM", ...; "UNKNOWN" for a value that is no level. Static string. */
const char *consistency_name(enum consistency level);

/* Read a name, letters of either case. False, *out untouched, when it is none. */
bool consistency_parse(const char *name, size_t size, enum consistency *out);

#endif
