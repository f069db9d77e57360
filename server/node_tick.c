/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/coordinator.h"
#include "server/denylist.h"
#include "server/disk_usage.h"
#include "server/dropped.h"
#include "server/estimates.h"
#include "server/executor.h"
#include "server/node.h"
#include "server/peer_events.h"

void
node_tick(struct node *node, uint32_t period_ms)
{
	dropped_report(node, period_ms);
	executor_tell_slow(node->executor);
	coordinator_tick(node->coordinator, period_ms / 1000.0);
	denylist_tick(node->denylist);
	disk_usage_tick(node);
	estimates_tick(node->estimates);
	peer_events_tick(node->peer_events);
}
