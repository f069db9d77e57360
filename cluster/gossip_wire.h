/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_GOSSIP_WIRE_H
#define HELENUS_CLUSTER_GOSSIP_WIRE_H

/*
 * Payloads of the gossip verbs. Private to the gossiper and its tests. All integers big-endian; endpoints
 * as base/endpoint.h has them; generations and versions are vints of at most INT32_MAX.
 *
 *   SYN       u8 format | u8 flags | vint n, cluster name | vint n, partitioner | u32 count, digests
 *   ACK       u8 format | u8 flags | u32 count, digests (wanted above their versions) | u32 count, deltas
 *   ACK2, SHUTDOWN   u8 format | u8 flags | u32 count, deltas
 *   digest    endpoint | vint generation | vint highest version
 *   delta     endpoint | vint generation | vint heartbeat | u8 count | count x (u8 state | vint version | vint n, value)
 *
 * A SYN without digests asks for everything (shadow round). Decoders check the whole message before anything of it is
 * used; a state number that we do not know is passed over, so that newer nodes may add some.
 */
#include "cluster/application_state.h"

enum {
	GOSSIP_FORMAT = 1,
	GOSSIP_NAME_MAX = 1024, /* bytes of a cluster's or partitioner's name */
	GOSSIP_VALUE_MAX = 65536, /* bytes of one value */
};

enum gossip_flags {
	GOSSIP_COMPLETE = 1, /* SYN: digests of all endpoints that the sender knows */
	GOSSIP_IN_SHADOW = 2, /* ACK: the sender is in its shadow round, too, and knows nothing */
};

struct gossip_digest {
	struct endpoint endpoint;
	int32_t generation, version;
};

struct gossip_delta_value {
	enum application_state state;
	int32_t version;
	struct slice value; /* borrowed of the message */
};

struct gossip_delta {
	struct endpoint endpoint;
	int32_t generation, heartbeat;
	uint32_t count;
	struct gossip_delta_value values[STATE_COUNT]; /* one for each state at most; the newest */
};

/* A message that was checked; the readers stand at the first digest and the first delta. */
struct gossip_message {
	uint8_t flags;
	struct slice cluster_name, partitioner; /* SYN */
	uint32_t digest_count; /* SYN, ACK */
	struct reader digests;
	uint32_t delta_count; /* ACK, ACK2, SHUTDOWN */
	struct reader deltas;
};

/* ERROR_INVALID says what is wrong. Slices and readers are borrowed of `payload`. */
int gossip_syn_decode(struct slice payload, struct gossip_message *out, struct error *err);
int gossip_ack_decode(struct slice payload, struct gossip_message *out, struct error *err);
int gossip_ack2_decode(struct slice payload, struct gossip_message *out, struct error *err);
/* The next one of a checked message; at most as often as the count says. */
void gossip_digest_next(struct reader *digests, struct gossip_digest *out);
void gossip_delta_next(struct reader *deltas, struct gossip_delta *out);

/* Each list begins with its count, which is patched when it ends. */
void gossip_put_head(struct buffer *out, uint8_t flags);
void gossip_put_name(struct buffer *out, const char *name);
size_t gossip_list_begin(struct buffer *out); /* offset for gossip_list_end() */
void gossip_list_end(struct buffer *out, size_t offset, uint32_t count);
void gossip_put_digest(
    struct buffer *out, const struct endpoint *endpoint, int32_t generation, int32_t version);
void gossip_put_delta(struct buffer *out, const struct endpoint *endpoint, int32_t generation,
    int32_t heartbeat, uint8_t value_count);
void gossip_put_value(
    struct buffer *out, enum application_state state, int32_t version, struct slice value);

#endif
