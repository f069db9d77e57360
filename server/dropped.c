/* SPDX-License-Identifier: Apache-2.0 */
#include "server/dropped.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "cluster/message.h"
#include "cluster/messaging.h"
#include "server/cluster.h"
#include "server/node.h"
#include "server/stage.h"

/*
 * What a stage drops of this node's own clients is no message and has no verb: it is of the stage's main kind, which comes
 * before the others of its stage.
 */
enum { DROPPED_NO_VERB = VERB_COUNT };

static const struct {
	const char *name;
	int verb;
	enum node_stage stage;
	bool is_main;
} dropped_kinds[DROPPED_MESSAGES] = {
    {"READ_REQ", VERB_READ_REQ, NODE_STAGE_READ, true},
    {"RANGE_REQ", VERB_RANGE_REQ, NODE_STAGE_READ, false},
    {"MUTATION_REQ", VERB_MUTATION_REQ, NODE_STAGE_MUTATION, true},
    {"COUNTER_MUTATION_REQ", VERB_COUNTER_MUTATION_REQ, NODE_STAGE_COUNTER_MUTATION, true},
    {"HINT_REQ", VERB_HINT_REQ, NODE_STAGE_MUTATION, false},
    {"READ_REPAIR_REQ", VERB_READ_REPAIR_REQ, NODE_STAGE_MUTATION, false},
    {"BATCH_STORE_REQ", VERB_BATCH_STORE_REQ, NODE_STAGE_MUTATION, false},
    {"BATCH_REMOVE_REQ", VERB_BATCH_REMOVE_REQ, NODE_STAGE_MUTATION, false},
    {"PAXOS_PREPARE_REQ", VERB_PAXOS_PREPARE_REQ, NODE_STAGE_MUTATION, false},
    {"PAXOS_PROPOSE_REQ", VERB_PAXOS_PROPOSE_REQ, NODE_STAGE_MUTATION, false},
    {"PAXOS_COMMIT_REQ", VERB_PAXOS_COMMIT_REQ, NODE_STAGE_MUTATION, false},
    {"TRUNCATE_REQ", VERB_TRUNCATE_REQ, NODE_STAGE_MISC, true},
    {"SCHEMA_PULL_REQ", VERB_SCHEMA_PULL_REQ, NODE_STAGE_MIGRATION, true},
    {"GOSSIP_DIGEST_SYN", VERB_GOSSIP_DIGEST_SYN, NODE_STAGE_GOSSIP, true},
    {"GOSSIP_DIGEST_ACK", VERB_GOSSIP_DIGEST_ACK, NODE_STAGE_GOSSIP, false},
    {"GOSSIP_DIGEST_ACK2", VERB_GOSSIP_DIGEST_ACK2, NODE_STAGE_GOSSIP, false},
    {"GOSSIP_SHUTDOWN", VERB_GOSSIP_SHUTDOWN, NODE_STAGE_GOSSIP, false},
    {"ECHO_REQ", VERB_ECHO_REQ, NODE_STAGE_GOSSIP, false},
    {"REQUEST_RSP", DROPPED_NO_VERB, NODE_STAGE_NATIVE_TRANSPORT, true},
    {"_TRACE", DROPPED_NO_VERB, NODE_STAGE_TRACING, true},
};

static void
dropped_of_verb(struct node *node, int kind, uint64_t *internal, uint64_t *cross_node)
{
	struct messaging_verb_stats stats = {0};

	if (dropped_kinds[kind].verb != DROPPED_NO_VERB)
		messaging_verb_stats(
		    node->cluster->messaging, (uint8_t)dropped_kinds[kind].verb, &stats);
	*internal = stats.dropped_internal;
	*cross_node = stats.dropped_cross_node;
}

void
dropped_each(struct node *node,
    void (*each)(
	void *argument, const struct dropped_message *message, const struct stage_stats *stage),
    void *argument)
{
	for (int i = 0; i < DROPPED_MESSAGES; i++) {
		struct dropped_message message = {.name = dropped_kinds[i].name};
		uint64_t messages = 0;
		struct stage_stats stage;

		stage_stats(node->stages[dropped_kinds[i].stage], &stage);
		dropped_of_verb(node, i, &message.internal, &message.cross_node);
		for (int j = 0; dropped_kinds[i].is_main && j < DROPPED_MESSAGES; j++) {
			uint64_t internal, cross_node;

			if (dropped_kinds[j].stage != dropped_kinds[i].stage)
				continue;
			dropped_of_verb(node, j, &internal, &cross_node);
			messages += internal + cross_node;
		}
		/* Messages that came too late or found no room were never the stage's. */
		if (dropped_kinds[i].is_main && stage.dropped > messages)
			message.internal += stage.dropped - messages;
		each(argument, &message, &stage);
	}
}

struct dropped_reporter {
	struct node *node;
	uint32_t period_ms;
	int at;
};

static void
dropped_report_one(
    void *argument, const struct dropped_message *message, const struct stage_stats *stage)
{
	struct dropped_reporter *reporter = argument;
	uint64_t *told = reporter->node->dropped_told[reporter->at++];
	uint64_t internal = message->internal > told[0] ? message->internal - told[0] : 0;
	uint64_t cross_node = message->cross_node > told[1] ? message->cross_node - told[1] : 0;

	if (internal + cross_node == 0)
		return;
	told[0] += internal;
	told[1] += cross_node;
	log_info("%s messages were dropped in last %u ms: %" PRIu64 " internal and %" PRIu64
		 " cross node. Waiting in %s: p50 %" PRIu64 " us, p99 %" PRIu64
		 " us; threads %u, active %u, pending %" PRIu64,
	    message->name, reporter->period_ms, internal, cross_node, stage->name,
	    histogram_quantile(stage->queue_wait_us, 0.5),
	    histogram_quantile(stage->queue_wait_us, 0.99), stage->threads, stage->active,
	    stage->pending);
}

void
dropped_report(struct node *node, uint32_t period_ms)
{
	struct dropped_reporter reporter = {.node = node, .period_ms = period_ms};

	dropped_each(node, dropped_report_one, &reporter);
}
