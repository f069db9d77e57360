/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "cluster/range_streamer.h"
#include "cluster/repair_participant.h"

/*
 * Repair of the state of Paxos (service/paxos/cleanup): of a table before its data is compared, and of all ranges whose
 * replicas are to change. Each participant finishes what it knows to be open (cluster/paxos_repair.h).
 */

/* How long a participant waits until it sees the ring as who asks does. */
#define REPAIR_PAXOS_AGREE_NS UINT64_C(60000000000)
#define REPAIR_PAXOS_LOOK_NS UINT64_C(200000000)
#define REPAIR_PAXOS_AGAIN_NS UINT64_C(2000000000)
enum { REPAIR_PAXOS_TRIES = 10 };

/* Who takes part in the range's rounds. */
static uint64_t
repair_electorate(
    const struct topology *topology, const struct replication *replication, struct ring_range range)
{
	return replica_plan_electorate(topology, replication,
	    range.right == INT64_MIN ? INT64_MAX : range.right, CONSISTENCY_SERIAL);
}

/* ---- a participant's part ------------------------------------------------------------------------------ */

static void
repair_paxos_finished(struct paxos_repair *paxos, const struct error *err)
{
	struct repair_work *work =
	    (struct repair_work *)((char *)paxos - offsetof(struct repair_work, paxos));

	buffer_put_u8(&work->result, REPAIR_DONE);
	if (err != NULL)
		repair_work_fail(work, err);
	repair_work_finish(work);
}

/* A ring that has not come to this node yet would let it promise, later, what the repair could not know of. */
static bool
repair_paxos_agrees(struct repair_work *work)
{
	const struct repair_message *message = &work->message;
	struct repairs *repairs = work->parent->repairs;
	struct schema *schema = repairs->ops.schema(repairs->ops.context);
	const struct keyspace_metadata *keyspace = schema_keyspace(schema, message->keyspace);
	const struct topology *topology = topology_acquire(repairs->topology);
	bool agrees = keyspace != NULL;

	for (uint32_t i = 0; i < message->range_count && agrees; i++)
		agrees = repair_electorate(topology, topology_replication(topology, keyspace),
			     message->ranges[i]) == message->electorates[i];
	topology_release(repairs->topology, topology);
	schema_unref(schema);
	return agrees;
}

static void
repair_paxos_look_again(struct cluster_timer *timer)
{
	struct repair_work *work =
	    (struct repair_work *)((char *)timer - offsetof(struct repair_work, timer));

	/* Not taken: the node stops, and repairs_free() frees it. */
	(void)cluster_submit(work->parent->repairs->env, CLUSTER_STAGE_VALIDATION, &work->task);
}

int
repair_run_paxos(struct repair_work *work, struct error *err)
{
	const struct repair_message *message = &work->message;
	struct repairs *repairs = work->parent->repairs;
	uint64_t now = env_monotonic_ns(repairs->env->env);

	if (atomic_load_explicit(&work->is_cancelled, memory_order_relaxed))
		return error_set(err, ERROR_SHUTDOWN, "Paxos repair was cancelled");
	if (repairs->ops.paxos == NULL)
		return error_set(err, ERROR_SERVER, "Paxos is not running here");
	if (work->began_ns == 0)
		work->began_ns = now;
	if (!repair_paxos_agrees(work)) {
		if (now - work->began_ns > REPAIR_PAXOS_AGREE_NS)
			return error_set(err, ERROR_SERVER,
			    "this node does not see the same replicas of keyspace %.*s",
			    (int)message->keyspace.size, (const char *)message->keyspace.data);
		work->timer.fire = repair_paxos_look_again;
		cluster_timer_start(repairs->env, &work->timer, REPAIR_PAXOS_LOOK_NS);
		return 1;
	}
	work->paxos =
	    (struct paxos_repair){.keyspace = arena_strndup(&work->arena,
				      (const char *)message->keyspace.data, message->keyspace.size),
		.tables = message->tables,
		.table_count = message->table_count,
		.ranges = message->ranges,
		.range_count = message->range_count,
		.before_us = INT64_MAX,
		.on_done = repair_paxos_finished};
	if (work->paxos.keyspace == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to repair Paxos");
	paxos_repair_start(repairs->ops.paxos, &work->paxos);
	return 1;
}

/* ---- of a job, before its validation --------------------------------------------------------------------- */

static void
repair_job_paxos_finished(
    void *context, struct peer *peer, struct slice result, const struct error *err)
{
	struct repair_job *job = repair_job_answered(context);
	char address[ENDPOINT_TEXT_SIZE];
	struct error named;

	(void)result;
	if (err != NULL) {
		error_set(&named, err->code, "Paxos repair of %s failed in /%s: %s",
		    job->table->name, endpoint_format(&peer->endpoint, address), err->text);
		repair_job_end(job, &named);
	} else if (job->pending == 0 && job->session->command->options.is_paxos_only) {
		repair_job_end(job, NULL);
	} else if (job->pending == 0) {
		repair_job_compare_data(job);
	}
}

void
repair_job_paxos(struct repair_job *job)
{
	struct repair_command *command = job->session->command;
	struct repairs *repairs = command->repairs;
	const struct repair_common *common = job->session->common;
	struct schema *schema = repairs->ops.schema(repairs->ops.context);
	const struct keyspace_metadata *keyspace =
	    schema_keyspace(schema, slice_of_string(command->options.keyspace));
	const struct topology *topology = topology_acquire(repairs->topology);
	uint64_t *electorates = xcalloc((size_t)common->range_count + 1, sizeof(*electorates));
	struct repair_message message = {.verb = VERB_PAXOS2_CLEANUP_REQ,
	    .parent = command->parent,
	    .session = job->session->id,
	    .table = job->table->id,
	    .keyspace = slice_of_string(command->options.keyspace),
	    .table_count = 1,
	    .tables = &job->table->id,
	    .range_count = common->range_count,
	    .ranges = common->ranges,
	    .electorates = electorates};

	for (uint32_t i = 0; i < common->range_count && keyspace != NULL; i++)
		electorates[i] = repair_electorate(
		    topology, topology_replication(topology, keyspace), common->ranges[i]);
	job->state = JOB_PAXOS;
	for (uint32_t i = 0; i < common->peer_count; i++)
		repair_job_ask(job, i, &message, repair_job_paxos_finished);
	free(electorates);
	topology_release(repairs->topology, topology);
	schema_unref(schema);
}

/* ---- before the ring changes -------------------------------------------------------------------------------- */

/* What one replica is asked about one keyspace. */
struct repair_paxos_share {
	struct peer *peer;
	struct ring_range *ranges; /* owned */
	uint64_t *electorates; /* owned */
	uint32_t count;
};

struct repair_paxos_plan {
	struct repair_paxos *paxos;
	const struct topology *topology;
	const struct keyspace_metadata *keyspace;
	const struct replication *replication;
	struct repair_paxos_share *shares; /* owned */
	uint32_t share_count;
};

static void repair_paxos_try(struct task *task, struct worker *worker);

static void
repair_paxos_plan_fini(struct repair_paxos_plan *plan)
{
	for (uint32_t i = 0; i < plan->share_count; i++) {
		free(plan->shares[i].ranges);
		free(plan->shares[i].electorates);
	}
	free(plan->shares);
}

static void
repair_paxos_add(struct repair_paxos_plan *plan, struct peer *peer, struct ring_range range)
{
	struct repair_paxos_share *share = NULL;

	for (uint32_t i = 0; i < plan->share_count && share == NULL; i++)
		if (plan->shares[i].peer == peer)
			share = &plan->shares[i];
	if (share == NULL) {
		plan->shares =
		    xrealloc(plan->shares, (plan->share_count + 1) * sizeof(*plan->shares));
		share = &plan->shares[plan->share_count++];
		*share = (struct repair_paxos_share){.peer = peer};
	}
	share->ranges = xrealloc(share->ranges, (share->count + 1) * sizeof(*share->ranges));
	share->electorates =
	    xrealloc(share->electorates, (share->count + 1) * sizeof(*share->electorates));
	share->ranges[share->count] = range;
	share->electorates[share->count++] =
	    repair_electorate(plan->topology, plan->replication, range);
}

/* Does it know what it has promised? */
static bool
repair_paxos_knows(const struct repair_paxos_plan *plan, const struct peer *peer)
{
	return peer->is_local ? !plan->paxos->is_without_state : repair_is_alive(peer);
}

/* A majority is alive, or only one is not; of all replicas, or of one data center's. */
static bool
repair_paxos_has_majority(
    const struct repair_paxos_plan *plan, const struct replica_set *set, const char *datacenter)
{
	const struct repair_ops *ops = &plan->paxos->repairs->ops;
	uint32_t all = 0, live = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		if (datacenter != NULL && set->datacenters[i] != datacenter)
			continue;
		all++;
		live += repair_paxos_knows(plan, set->peers[i]);
	}
	return live >= all / 2 + 1 || (!ops->paxos_strict_each_quorum && live + 1 >= all);
}

/* PaxosRepair.hasSufficientLiveNodesForTopologyChange */
static int
repair_paxos_check(const struct repair_paxos_plan *plan, const struct replica_set *set,
    struct ring_range range, struct error *err)
{
	bool is_sufficient = repair_paxos_has_majority(plan, set, NULL);
	char address[ENDPOINT_TEXT_SIZE] = "";

	for (uint32_t i = 0;
	     i < set->count && !plan->paxos->repairs->ops.paxos_no_dc_checks && is_sufficient; i++)
		is_sufficient = repair_paxos_has_majority(plan, set, set->datacenters[i]);
	if (is_sufficient)
		return 0;
	for (uint32_t i = 0; i < set->count && *address == '\0'; i++)
		if (!repair_paxos_knows(plan, set->peers[i]) && !set->peers[i]->is_local)
			endpoint_format(&set->peers[i]->endpoint, address);
	return error_set(err, ERROR_UNAVAILABLE,
	    "Insufficient live nodes to repair paxos for (%lld,%lld] in %.*s for %s: /%s is down, "
	    "among others. skip_paxos_repair_on_topology_change goes on without it, which can "
	    "make conditional statements forget what was decided",
	    (long long)range.left, (long long)range.right, (int)plan->keyspace->name.size,
	    (const char *)plan->keyspace->name.data, plan->paxos->reason, address);
}

static bool
repair_paxos_concerns(const struct repair_paxos_plan *plan, const struct replica_set *set)
{
	const struct peer *local = topology_local_peer(plan->topology);
	bool concerns = false;

	for (uint32_t i = 0; i < set->count + set->pending_count; i++)
		concerns |= set->peers[i] == local && (i >= set->count || plan->paxos->has_natural);
	return concerns;
}

static int
repair_paxos_plan(struct repair_paxos_plan *plan, struct error *err)
{
	plan->replication = topology_replication(plan->topology, plan->keyspace);
	for (uint32_t i = 0; i < replication_range_count(plan->replication); i++) {
		struct ring_range range;
		const struct replica_set *set = replication_range(plan->replication, i, &range);

		if (!repair_paxos_concerns(plan, set))
			continue;
		if (repair_paxos_check(plan, set, range, err) != 0)
			return -1;
		for (uint32_t j = 0; j < set->count + set->pending_count; j++)
			if (repair_paxos_knows(plan, set->peers[j]))
				repair_paxos_add(plan, set->peers[j], range);
	}
	return 0;
}

static void
repair_paxos_fired(struct cluster_timer *timer)
{
	struct repair_paxos *paxos =
	    (struct repair_paxos *)((char *)timer - offsetof(struct repair_paxos, timer));

	/* Not taken: the node stops, and repairs_free() tells so. */
	(void)cluster_submit(paxos->repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &paxos->task);
}

static void
repair_paxos_end(struct repair_paxos *paxos)
{
	for (struct repair_paxos **at = &paxos->repairs->paxos; *at != NULL; at = &(*at)->next) {
		if (*at == paxos) {
			*at = paxos->next;
			break;
		}
	}
	paxos->on_done(paxos, paxos->err.code == ERROR_NONE ? NULL : &paxos->err);
}

static void
repair_paxos_tried(struct repair_paxos *paxos)
{
	if (paxos->err.code == ERROR_NONE) {
		log_info("Paxos repaired for %s", paxos->reason);
		repair_paxos_end(paxos);
	} else if (++paxos->tries < REPAIR_PAXOS_TRIES) {
		log_warn("Paxos repair for %s failed, and is tried again: %s", paxos->reason,
		    paxos->err.text);
		cluster_timer_start(paxos->repairs->env, &paxos->timer, REPAIR_PAXOS_AGAIN_NS);
	} else {
		error_prefix(&paxos->err, "Paxos repair for %s", paxos->reason);
		repair_paxos_end(paxos);
	}
}

static void
repair_paxos_answered(
    void *context, struct peer *peer, struct slice result, const struct error *err)
{
	struct repair_paxos *paxos = context;
	char address[ENDPOINT_TEXT_SIZE];

	(void)result;
	if (err != NULL && paxos->err.code == ERROR_NONE)
		error_set(&paxos->err, err->code, "/%s: %s",
		    endpoint_format(&peer->endpoint, address), err->text);
	if (--paxos->pending == 0)
		repair_paxos_tried(paxos);
}

static void
repair_paxos_ask(struct repair_paxos_plan *plan)
{
	struct repair_paxos *paxos = plan->paxos;
	struct repair_message message = {
	    .verb = VERB_PAXOS2_CLEANUP_REQ, .keyspace = plan->keyspace->name};
	struct buffer payload;

	for (uint32_t i = 0; i < plan->share_count; i++) {
		repair_uuid(paxos->repairs, &message.parent);
		message.range_count = plan->shares[i].count;
		message.ranges = plan->shares[i].ranges;
		message.electorates = plan->shares[i].electorates;
		buffer_init(&payload);
		repair_message_encode(&message, &payload);
		paxos->pending++;
		repair_call(paxos->repairs, plan->shares[i].peer, message.verb,
		    buffer_slice(&payload), NULL, repair_paxos_answered, paxos);
		buffer_fini(&payload);
	}
}

static void
repair_paxos_try(struct task *task, struct worker *worker)
{
	struct repair_paxos *paxos =
	    (struct repair_paxos *)((char *)task - offsetof(struct repair_paxos, task));
	struct repairs *repairs = paxos->repairs;
	struct schema *schema = repairs->ops.schema(repairs->ops.context);
	const struct topology *topology = topology_acquire(repairs->topology);
	int rc = 0;

	(void)worker;
	paxos->err.code = ERROR_NONE;
	paxos->pending = 1; /* this one's, until all were asked */
	for (uint32_t i = 0; i < schema->keyspace_count && rc == 0; i++) {
		struct repair_paxos_plan plan = {
		    .paxos = paxos, .topology = topology, .keyspace = schema->keyspaces[i]};

		if (!keyspace_is_distributed(plan.keyspace) || plan.keyspace->table_count == 0 ||
		    repairs->ops.skips_paxos(repairs->ops.context, plan.keyspace->name))
			continue;
		rc = repair_paxos_plan(&plan, &paxos->err);
		if (rc == 0)
			repair_paxos_ask(&plan);
		repair_paxos_plan_fini(&plan);
	}
	topology_release(repairs->topology, topology);
	schema_unref(schema);
	if (--paxos->pending == 0)
		repair_paxos_tried(paxos);
}

static void
repair_paxos_begin(struct task *task, struct worker *worker)
{
	struct repair_paxos *paxos =
	    (struct repair_paxos *)((char *)task - offsetof(struct repair_paxos, task));

	paxos->next = paxos->repairs->paxos;
	paxos->repairs->paxos = paxos;
	task->run = repair_paxos_try;
	repair_paxos_try(task, worker);
}

void
repairs_finish_paxos(struct repairs *repairs, struct repair_paxos *paxos)
{
	struct error err;

	paxos->repairs = repairs;
	paxos->tries = 0;
	paxos->timer.fire = repair_paxos_fired;
	paxos->task = (struct task){.run = repair_paxos_begin};
	if (cluster_submit(repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &paxos->task))
		return;
	error_set(&err, ERROR_SHUTDOWN, "the node is stopping");
	paxos->on_done(paxos, &err);
}

void
repair_paxos_free(struct repairs *repairs)
{
	struct error err;

	error_set(&err, ERROR_SHUTDOWN, "the node is stopping");
	while (repairs->paxos != NULL) {
		struct repair_paxos *paxos = repairs->paxos;

		repairs->paxos = paxos->next;
		paxos->on_done(paxos, &err);
	}
}
