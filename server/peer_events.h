/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_PEER_EVENTS_H
#define HELENUS_SERVER_PEER_EVENTS_H

/*
 * What other nodes have missed for good: hints that were not kept since their node had been down for longer than
 * max_hint_window are counted by peer (struct peer), logged, and written to system.peer_events and peer_events_v2, each ten minutes
 * and at a clean stop. Such a node needs a repair. Cassandra: HintedHandoffMetrics.log.
 */
struct executor;
struct peer_events;

struct peer_events *peer_events_new(struct executor *executor);
/* NULL is accepted; nothing of it runs any more. */
void peer_events_free(struct peer_events *events);
/* Begin what is due, on MiscStage. Called by one thread now and then. */
void peer_events_tick(struct peer_events *events);
/* Write what is new, now. A thread that may block. NULL is accepted. */
void peer_events_write(struct peer_events *events);

#endif
