/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_RANKS_H
#define HELENUS_SERVER_RANKS_H

/*
 * Ranks of the server floor's locks: a thread takes locks in rising rank only. A stage's lock is the last:
 * anybody may submit while holding another. No lock is held while a task runs.
 */
enum {
	RANK_NETWORK_CONTROL = 990,
	RANK_NETWORK = 1000,
	RANK_LOOP = 1010,
	RANK_LIMITS = 1020,
	RANK_CLIENT_HISTORY = 1030,
	RANK_INTERNODE = 1100,
	RANK_INTERNODE_LINK = 1110,
	RANK_INTERNODE_STREAM = 1120,
	RANK_INTERNODE_TIMERS = 1800,
	RANK_DENYLIST = 1840,
	RANK_SLOW_READS = 1850,
	RANK_STAGE = 1900,
};

#endif
