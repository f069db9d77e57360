/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual tables about the other nodes: gossip and the wire. */
#include "server/cluster.h"
#include "server/execution.h"
#include "server/internode.h"
#include "server/virtual_gossip.h"
#include "server/virtual_table.h"
#include "server/virtual_rows.h"

void
virtual_fill_gossip_info(struct executor *executor, struct virtual_rows *rows)
{
	virtual_gossip_fill(executor->node->cluster->gossip, rows);
}

/* What both of the wire's tables begin with. */
static void
virtual_begin_peer(struct virtual_rows *rows, struct cluster *cluster, const struct peer *peer)
{
	const struct topology *topology = topology_acquire(cluster->topology);
	const char *datacenter = topology_datacenter(topology, peer);
	const char *rack = topology_rack(topology, peer);

	virtual_row_begin(rows);
	virtual_set(rows, "address", slice_of(peer->endpoint.address, peer->endpoint.size));
	virtual_set_int(rows, "port", peer->endpoint.port);
	/* Parts of the key: never null. */
	virtual_set_text(rows, "dc", datacenter == NULL ? "UNKNOWN_DC" : datacenter);
	virtual_set_text(rows, "rack", rack == NULL ? "UNKNOWN_RACK" : rack);
	topology_release(cluster->topology, topology);
}

struct virtual_internode {
	struct cluster *cluster;
	struct virtual_rows *rows;
	struct internode_outbound sum; /* of the links of sum.peer */
	uint64_t active;
};

struct virtual_count {
	const char *column;
	uint64_t value;
};

static void
virtual_set_counts_of(struct virtual_rows *rows, const struct virtual_count *counts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		virtual_set_bigint(rows, counts[i].column, (int64_t)counts[i].value);
}

static void
virtual_add_inbound(void *argument, const struct internode_inbound *inbound)
{
	struct virtual_internode *context = argument;
	const struct virtual_count counts[] = {
	    {"corrupt_frames_recovered", inbound->corrupt_frames_recovered},
	    {"corrupt_frames_unrecovered", inbound->corrupt_frames_unrecovered},
	    {"error_bytes", inbound->error_bytes},
	    {"error_count", inbound->error_count},
	    {"expired_bytes", inbound->expired_bytes},
	    {"expired_count", inbound->expired_count},
	    {"processed_bytes", inbound->processed_bytes},
	    {"processed_count", inbound->processed_count},
	    {"received_bytes", inbound->received_bytes},
	    {"received_count", inbound->received_count},
	    {"scheduled_bytes", inbound->scheduled_bytes},
	    {"scheduled_count", inbound->scheduled_count},
	    {"throttled_count", inbound->throttled_count},
	    {"throttled_nanos", inbound->throttled_nanos},
	    {"using_bytes", inbound->using_bytes},
	    {"using_reserve_bytes", inbound->using_reserve_bytes},
	};

	virtual_begin_peer(context->rows, context->cluster, inbound->peer);
	virtual_set_counts_of(context->rows, counts, sizeof(counts) / sizeof(counts[0]));
	virtual_row_end(context->rows);
}

void
virtual_fill_internode_inbound(struct executor *executor, struct virtual_rows *rows)
{
	struct virtual_internode context = {.cluster = executor->node->cluster, .rows = rows};

	internode_each_inbound(context.cluster->node->internode, virtual_add_inbound, &context);
}

static void
virtual_end_outbound(struct virtual_internode *context)
{
	const struct internode_outbound *sum = &context->sum;
	const struct virtual_count counts[] = {
	    {"active_connections", context->active},
	    {"connection_attempts", sum->connection_attempts},
	    {"error_bytes", sum->error_bytes},
	    {"error_count", sum->error_count},
	    {"expired_bytes", sum->expired_bytes},
	    {"expired_count", sum->expired_count},
	    {"overload_bytes", sum->overload_bytes},
	    {"overload_count", sum->overload_count},
	    {"pending_bytes", sum->pending_bytes},
	    {"pending_count", sum->pending_count},
	    {"sent_bytes", sum->sent_bytes},
	    {"sent_count", sum->sent_count},
	    {"successful_connection_attempts", sum->successful_connection_attempts},
	    {"using_bytes", sum->pending_bytes},
	    {"using_reserve_bytes", sum->reserve_bytes},
	};

	if (sum->peer == NULL)
		return;
	virtual_begin_peer(context->rows, context->cluster, sum->peer);
	virtual_set_counts_of(context->rows, counts, sizeof(counts) / sizeof(counts[0]));
	virtual_row_end(context->rows);
}

/* The links of one peer come one after the other; the table has a row for the peer. */
static void
virtual_add_outbound(void *argument, const struct internode_outbound *outbound)
{
	struct virtual_internode *context = argument;
	struct internode_outbound *sum = &context->sum;

	if (outbound->peer != sum->peer) {
		virtual_end_outbound(context);
		*sum = (struct internode_outbound){.peer = outbound->peer};
		context->active = 0;
	}
	context->active += outbound->is_connected;
	sum->connection_attempts += outbound->connection_attempts;
	sum->successful_connection_attempts += outbound->successful_connection_attempts;
	sum->sent_count += outbound->sent_count;
	sum->sent_bytes += outbound->sent_bytes;
	sum->pending_count += outbound->pending_count;
	sum->pending_bytes += outbound->pending_bytes;
	sum->overload_count += outbound->overload_count;
	sum->overload_bytes += outbound->overload_bytes;
	sum->expired_count += outbound->expired_count;
	sum->expired_bytes += outbound->expired_bytes;
	sum->error_count += outbound->error_count;
	sum->error_bytes += outbound->error_bytes;
	sum->reserve_bytes = outbound->reserve_bytes;
}

void
virtual_fill_internode_outbound(struct executor *executor, struct virtual_rows *rows)
{
	struct virtual_internode context = {.cluster = executor->node->cluster, .rows = rows};

	internode_each_outbound(context.cluster->node->internode, virtual_add_outbound, &context);
	virtual_end_outbound(&context);
}

/* ---- hints ------------------------------------------------------------------------------------------- */

struct virtual_hints {
	struct cluster *cluster;
	struct virtual_rows *rows;
};

static void
virtual_set_timestamp(struct virtual_rows *rows, const char *column, int64_t ms)
{
	uint8_t bytes[8];

	store_u64(bytes, (uint64_t)ms);
	virtual_set(rows, column, slice_of(bytes, sizeof(bytes)));
}

static void
virtual_add_pending_hints(void *context, const struct hints_pending *pending)
{
	struct virtual_hints *hints = context;
	struct virtual_rows *rows = hints->rows;
	const struct topology *topology = topology_acquire(hints->cluster->topology);
	const struct member *member = topology_find_host(topology, &pending->host_id);

	virtual_row_begin(rows);
	virtual_set(
	    rows, "host_id", slice_of(pending->host_id.bytes, sizeof(pending->host_id.bytes)));
	if (member != NULL) {
		const struct peer *peer = member->peer;

		virtual_set(rows, "address", slice_of(peer->endpoint.address, peer->endpoint.size));
		virtual_set_int(rows, "port", peer->endpoint.port);
		virtual_set_text(rows, "dc", member->datacenter);
		virtual_set_text(rows, "rack", member->rack);
		virtual_set_text(rows, "status", atomic_load(&peer->is_alive) ? "UP" : "DOWN");
	} else {
		virtual_set_text(rows, "dc", "Unknown");
		virtual_set_text(rows, "rack", "Unknown");
		virtual_set_text(rows, "status", "Unknown");
	}
	virtual_set_int(rows, "files", (int32_t)pending->files);
	virtual_set_timestamp(rows, "newest", pending->newest_ms);
	virtual_set_timestamp(rows, "oldest", pending->oldest_ms);
	virtual_row_end(rows);
	topology_release(hints->cluster->topology, topology);
}

void
virtual_fill_pending_hints(struct executor *executor, struct virtual_rows *rows)
{
	struct virtual_hints hints = {executor->node->cluster, rows};

	hints_each_pending(hints.cluster->hints, virtual_add_pending_hints, &hints);
}
