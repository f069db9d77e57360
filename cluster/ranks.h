/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_RANKS_H
#define HELENUS_CLUSTER_RANKS_H

/*
 * Ranks of the cluster floor's locks: a thread takes locks in rising rank only. Above storage's (below 100), below the
 * server's (from 990): timers and stages may be called while one of these is held, the store may not.
 */
enum {
	RANK_GOSSIP = 300, /* states of all nodes */
	RANK_MESSAGING = 400, /* a shard of callbacks */
	RANK_STREAMS = 420, /* the lists of stream sessions, the limits */
	RANK_STREAM_SESSION = 430, /* one session: what came, its channel */
	RANK_COORDINATOR_REQUEST = 410, /* one request; nothing is called under it */
	RANK_PAXOS = 416, /* the rounds that pause; nothing is called under it */
	RANK_PAXOS_RUN = 415, /* one round; nothing is called under it */
	RANK_REPAIRS = 416, /* commands of repair and their lines; nothing is called under it */
	RANK_HINTS = 417, /* disabled data centers, the list of stores, a transfer */
	RANK_HINTS_STORE = 418, /* memory and list of files of one node */
	RANK_TOPOLOGY_BUILD =
	    780, /* a snapshot computes the replicas of a keyspace: one thread does it */
	RANK_SNITCH = 785, /* names of places */
	RANK_PEERS = 790, /* the table of peers; nothing is called under it */
};

#endif
