/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_DROPPED_H
#define HELENUS_SERVER_DROPPED_H

/*
 * Messages that were dropped because nobody waited for them any more when their stage came to them, or because it was full:
 * each counts under the name that Cassandra gives it, as this node's own or as another's. Cassandra: the DroppedMessage
 * metrics, and the log's line of net/MessagingMetrics.
 */
#include <stdint.h>

struct node;
struct stage_stats;

enum { DROPPED_MESSAGES = 20 };

struct dropped_message {
	const char *name; /* static */
	uint64_t internal, cross_node; /* of clients and of this node; of other nodes */
};

/* `each` is called for all DROPPED_MESSAGES in the same order; stage: where messages of the kind wait. Any thread. */
void dropped_each(struct node *node,
    void (*each)(
	void *argument, const struct dropped_message *message, const struct stage_stats *stage),
    void *argument);

/* A line of the log for each kind of which some were dropped since the last call. One thread. */
void dropped_report(struct node *node, uint32_t period_ms);

#endif
