/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_TOKEN_ALLOCATOR_H
#define HELENUS_CLUSTER_TOKEN_ALLOCATOR_H

/*
 * Which tokens a new node takes (dht/BootStrapper.getBootstrapTokens, dht/tokenallocator): those of initial_token; else
 * num_tokens allocated so that all nodes hold the same share of a keyspace with so many replicas
 * (allocate_tokens_for_keyspace, allocate_tokens_for_local_replication_factor); else num_tokens by chance.
 *
 * Allocation works on the ring of those nodes that share data with the new one: its data center, or only its rack when
 * there are as many racks as replicas, for then each rack holds everything once. With one replica
 * in that ring, the nodes that own most give parts of their largest ranges, down to a common level. With
 * more, tokens are chosen one by one among the middles of all ranges: each time the one that brings
 * the shares of nodes, and the shares of tokens, nearest to even. The first nodes of a ring split its largest
 * ranges unevenly, so that later ones find ranges of all sizes.
 *
 * Pure but for chance; any thread; cold. Tokens come out ascending; none is in the ring, none is INT64_MIN.
 */
#include "base/env.h"
#include "cluster/topology.h"

enum { TOKENS_MAX = 1536 }; /* num_tokens */

/* By chance, each in no one's hands. out: `count`. */
void token_allocate_random(
    const struct topology *topology, struct env *env, uint32_t count, int64_t *out);

/*
 * For `factor` replicas in the data center. ERROR_CONFIG: fewer racks than replicas (but more than one), where no
 * even shares can be had.
 */
int
token_allocate_for_factor(const struct topology *topology, const char *datacenter, const char *rack,
    int32_t factor, struct env *env, uint32_t count, int64_t *out, struct error *err);

/*
 * For a keyspace: its factor in the data center; all nodes share one ring under SimpleStrategy. ERROR_CONFIG as above,
 * or a strategy without a choice of replicas.
 */
int token_allocate_for_keyspace(const struct topology *topology,
    const struct replication *replication, const char *datacenter, const char *rack,
    struct env *env, uint32_t count, int64_t *out, struct error *err);

/*
 * initial_token: decimal tokens, separated by commas; out: `count` (num_tokens). ERROR_CONFIG: another
 * number of them, one that is no token, one twice. Ascending in out.
 */
int token_parse_list(const char *text, uint32_t count, int64_t *out, struct error *err);

#endif
