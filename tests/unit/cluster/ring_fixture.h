/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_RING_FIXTURE_H
#define HELENUS_TESTS_RING_FIXTURE_H

/*
 * A ring for tests: nodes 127.0.1.1, .2, ... in data centers and racks, with tokens by hand or by seed; and a naive
 * model of the strategies, which works from the rule and not from the code.
 */
#include "cluster/topology.h"

enum { RING_NODES_MAX = 64, RING_TOKENS_MAX = 32 };

struct ring_fixture {
	struct peers *peers;
	struct topology_holder *holder;
	struct member members[RING_NODES_MAX];
	int64_t tokens[RING_NODES_MAX][RING_TOKENS_MAX];
	int64_t next_tokens[RING_NODES_MAX][RING_TOKENS_MAX];
	char names[RING_NODES_MAX][2][16]; /* data center, rack */
	uint32_t count;
	uint64_t random;
};

/* Node 1 (127.0.1.1) is the local one. */
void ring_fixture_init(struct ring_fixture *ring, uint64_t seed);
void ring_fixture_fini(struct ring_fixture *ring);
uint64_t ring_random(struct ring_fixture *ring);
/* Below `bound`. */
uint32_t ring_chance(struct ring_fixture *ring, uint32_t bound);
struct member *ring_add(struct ring_fixture *ring, const char *datacenter, const char *rack);
/* NORMAL, with `count` tokens by chance. */
struct member *ring_add_random(
    struct ring_fixture *ring, const char *datacenter, const char *rack, uint32_t count);
void ring_set_tokens(
    struct ring_fixture *ring, struct member *member, const int64_t *tokens, uint32_t count);
void ring_set_next_tokens(
    struct ring_fixture *ring, struct member *member, const int64_t *tokens, uint32_t count);
/* Make the members the current topology. */
void ring_publish(struct ring_fixture *ring);

/* "SimpleStrategy", "replication_factor", "3", NULL. Freed by keyspace_unref(). */
struct keyspace_metadata *ring_keyspace(const char *class_name, ...) __attribute__((sentinel));

/* ---- The model ---- */

struct model_token {
	int64_t token;
	uint32_t member;
};

/* Who owns what when `change` is done (NULL: none), and all that leave are gone where they go. */
uint32_t model_ring(const struct ring_fixture *ring, const struct member *change, bool leavers_go,
    struct model_token *out);
/*
 * Replicas of a token, as member numbers: data centers and factors by place (datacenter NULL: all nodes are one,
 * and racks count for nothing). Returns their number.
 */
struct model_factor {
	const char *datacenter;
	uint32_t factor;
};
uint32_t model_replicas(const struct ring_fixture *ring, const struct model_token *tokens,
    uint32_t token_count, const struct model_factor *factors, uint32_t factor_count, int64_t token,
    uint32_t *out);

#endif
