/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/movement.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"

struct movement {
	struct movement_options options;
	struct service_movement wanted;
	struct repair_paxos paxos;
	struct stream_wait stream;
	struct service_wait handed_on;
	struct service_wait *wait; /* the caller's */
	struct task task;
	bool has_failed;
	struct error err;
};

/* A removed node's ranges are fetched at once or, all of them, again: nothing is noted. */
static bool
movement_is_resumable(const struct movement *movement)
{
	return movement->wanted.operation != STREAM_RESTORE_REPLICA_COUNT;
}

/* Does this node give data away? */
static bool
movement_gives(const struct service_movement *wanted)
{
	return wanted->operation == STREAM_UNBOOTSTRAP || wanted->operation == STREAM_RELOCATION;
}

/* ---- The end ------------------------------------------------------------------------------- */

/* Back on the gossip stage. */
static void
movement_over(struct task *task, struct worker *worker)
{
	struct movement *movement =
	    (struct movement *)((char *)task - offsetof(struct movement, task));

	(void)worker;
	movement->wait->on_done(movement->wait, movement->has_failed ? &movement->err : NULL);
	free(movement);
}

static void
movement_end(struct movement *movement)
{
	movement->task = (struct task){.run = movement_over};
	/* A node that stops: nobody waits any more. */
	if (!cluster_submit(movement->options.env, CLUSTER_STAGE_GOSSIP, &movement->task))
		free(movement);
}

static void
movement_fail(struct movement *movement, const struct error *err)
{
	movement->has_failed = true;
	movement->err = *err;
	movement_end(movement);
}

/* That alone keeps nobody in the ring. */
static void
movement_handed_on(struct service_wait *wait, const struct error *err)
{
	if (err != NULL)
		log_warn("hints could not be given to another node: %s", err->text);
	movement_end((struct movement *)((char *)wait - offsetof(struct movement, handed_on)));
}

/* ---- The data ------------------------------------------------------------------------------ */

/* What it moved needs no note any more; where nothing is resumed, what an earlier one left does not either. */
static int
movement_forget(struct movement *movement, struct error *err)
{
	enum stream_operation operation = movement->wanted.operation;

	return movement->options.ops->forget_notes(
	    movement->options.context, operation, operation != STREAM_UNBOOTSTRAP, err);
}

static void
movement_session(struct stream_wait *wait, const struct stream_result *result)
{
	struct movement *movement =
	    (struct movement *)((char *)wait - offsetof(struct movement, stream));
	struct error err;

	/* Without the note it is moved twice, which does no harm. */
	if (movement->options.ops->save_note(
		movement->options.context, movement->wanted.operation, result, &err) != 0)
		log_warn("ranges that were moved could not be noted: %s", err.text);
}

static void
movement_streamed(struct stream_wait *wait, const struct error *err)
{
	struct movement *movement =
	    (struct movement *)((char *)wait - offsetof(struct movement, stream));
	const struct movement_ops *ops = movement->options.ops;
	struct error failed;

	if (err != NULL) {
		movement_fail(movement, err);
		return;
	}
	if (movement_is_resumable(movement) && movement_forget(movement, &failed) != 0)
		log_warn("notes of ranges that were moved remain: %s", failed.text);
	if (movement->wanted.operation != STREAM_UNBOOTSTRAP || ops->hand_on == NULL) {
		movement_end(movement);
		return;
	}
	movement->handed_on.on_done = movement_handed_on;
	ops->hand_on(movement->options.context, &movement->handed_on);
}

struct movement_before {
	const struct movement_ops *ops;
	struct movement_notes *notes; /* NULL: none */
};

static bool
movement_has_moved(void *context, const struct keyspace_metadata *keyspace, const struct peer *to,
    struct ring_range range)
{
	const struct movement_before *before = context;

	return before->ops->has_note(
	    before->notes, keyspace->name, to == NULL ? NULL : &to->endpoint, range);
}

static int
movement_plan(const struct movement *movement, const struct topology *before,
    const struct topology *after, struct movement_before *moved, struct stream_job *job,
    struct error *err)
{
	const struct movement_options *options = &movement->options;
	const struct service_movement *wanted = &movement->wanted;
	struct schema *schema = options->ops->schema(options->context);
	struct range_fetch fetch = {.before = before,
	    .after = after,
	    .peers = options->peers,
	    .snitch = options->snitch,
	    .is_strict = wanted->operation != STREAM_RESTORE_REPLICA_COUNT &&
		!wanted->is_replacing && options->is_strict,
	    .is_from_nothing = wanted->is_replacing,
	    .has_moved = moved->notes == NULL ? NULL : movement_has_moved,
	    .context = moved};
	int rc = 0;

	for (uint32_t i = 0; i < schema->keyspace_count && rc == 0; i++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[i];

		if (!keyspace_is_distributed(keyspace))
			continue;
		if (wanted->operation != STREAM_UNBOOTSTRAP)
			rc = range_streamer_fetch(job, &fetch, keyspace, err);
		if (rc == 0 && movement_gives(wanted))
			range_streamer_give(job, before, after, keyspace, fetch.has_moved, moved);
	}
	schema_unref(schema);
	return rc;
}

/* Notes of an earlier attempt: *out NULL where this is none. */
static int
movement_load_notes(struct movement *movement, struct movement_notes **out, struct error *err)
{
	*out = NULL;
	if (!movement_is_resumable(movement))
		return 0;
	if (!movement->wanted.is_resumed)
		return movement_forget(movement, err);
	log_info("Ranges that were moved before are left out");
	return movement->options.ops->load_notes(
	    movement->options.context, movement->wanted.operation, out, err);
}

/* What is where is settled: the data itself. */
static void
movement_stream(struct movement *movement)
{
	const struct movement_options *options = &movement->options;
	const struct topology *before = topology_acquire(options->topology), *after;
	struct topology_holder *holder = ring_after(before, options->peers, movement->wanted.peer);
	struct stream_job *job = stream_job_new(options->streams, movement->wanted.operation, NULL);
	struct movement_before moved = {.ops = options->ops};
	struct error err;

	movement->stream.on_done = movement_streamed;
	if (movement_is_resumable(movement))
		movement->stream.on_session = movement_session;
	after = topology_acquire(holder);
	if (movement_load_notes(movement, &moved.notes, &err) != 0 ||
	    movement_plan(movement, before, after, &moved, job, &err) != 0) {
		stream_job_free(job);
		job = NULL;
	}
	options->ops->free_notes(moved.notes);
	topology_release(holder, after);
	topology_holder_free(holder);
	topology_release(options->topology, before);
	if (job == NULL)
		movement_fail(movement, &err);
	else
		stream_job_start(job, &movement->stream);
}

/* ---- The beginning ------------------------------------------------------------------------- */

static void
movement_repaired(struct repair_paxos *paxos, const struct error *err)
{
	struct movement *movement =
	    (struct movement *)((char *)paxos - offsetof(struct movement, paxos));

	if (err == NULL)
		movement_stream(movement);
	else
		movement_fail(movement, err);
}

static const char *
movement_reason(const struct service_movement *wanted)
{
	switch (wanted->operation) {
	case STREAM_BOOTSTRAP:
		return wanted->is_replacing ? "replacing a node" : "bootstrap";
	case STREAM_UNBOOTSTRAP:
		return "decommission";
	case STREAM_RELOCATION:
		return "move";
	default:
		return "removenode";
	}
}

/* Does it take the place of a dead one under that one's address? The ranges are its own to all then. */
static bool
movement_is_hibernating(const struct movement *movement)
{
	const struct topology *topology;
	const struct member *member;
	bool is_pending;

	if (movement->wanted.operation != STREAM_BOOTSTRAP || !movement->wanted.is_replacing)
		return false;
	topology = topology_acquire(movement->options.topology);
	member = topology_find(topology, peers_local(movement->options.peers));
	is_pending = member != NULL && member->state != MEMBER_NORMAL;
	topology_release(movement->options.topology, topology);
	return !is_pending;
}

void
movement_start(const struct movement_options *options, const struct service_movement *wanted,
    struct service_wait *wait)
{
	struct movement *movement = xzalloc(sizeof(*movement));

	movement->options = *options;
	movement->wanted = *wanted;
	movement->wait = wait;
	movement->paxos = (struct repair_paxos){.reason = movement_reason(wanted),
	    .is_without_state = movement_is_hibernating(movement),
	    .on_done = movement_repaired};
	movement->paxos.has_natural = movement_gives(wanted) || movement->paxos.is_without_state;
	if (options->repairs != NULL)
		repairs_finish_paxos(options->repairs, &movement->paxos);
	else
		movement_stream(movement);
}

/* ---- A node that leaves -------------------------------------------------------------------- */

struct movement_handoff {
	struct hints_wait done; /* first */
	struct hints *hints;
	struct service_wait *wait;
	struct peer *second; /* NULL: nobody else, or tried */
};

/* The nearer the higher; 0: it cannot take hints. */
static int
movement_handoff_rank(const struct topology *topology, const struct member *member)
{
	if (member->peer->is_local || member->state != MEMBER_NORMAL ||
	    !atomic_load(&member->peer->is_alive))
		return 0;
	if (strcmp(member->datacenter, topology_local_datacenter(topology)) != 0)
		return 1;
	return strcmp(member->rack, topology_local_rack(topology)) != 0 ? 2 : 3;
}

/* The nearest node, other than `except`; NULL: there is none. */
static struct peer *
movement_handoff_target(const struct topology *topology, const struct peer *except)
{
	struct peer *found = NULL;
	int best = 0;

	for (uint32_t i = 0; i < topology_member_count(topology); i++) {
		const struct member *member = topology_member(topology, i);
		int rank = movement_handoff_rank(topology, member);

		if (rank <= best || member->peer == except)
			continue;
		best = rank;
		found = member->peer;
	}
	return found;
}

static void
movement_hints_given(struct hints_wait *wait, const struct error *err)
{
	struct movement_handoff *handoff = (struct movement_handoff *)wait;
	struct peer *second = handoff->second;

	if (err != NULL && err->code != ERROR_INVALID && second != NULL) {
		handoff->second = NULL;
		hints_transfer(handoff->hints, second, wait);
		return;
	}
	handoff->wait->on_done(handoff->wait, err);
	free(handoff);
}

void
movement_hand_on_hints(
    struct hints *hints, struct topology_holder *holder, struct service_wait *wait)
{
	const struct topology *topology = topology_acquire(holder);
	struct peer *first = movement_handoff_target(topology, NULL);
	struct peer *second = movement_handoff_target(topology, first);
	struct movement_handoff *handoff;

	topology_release(holder, topology);
	if (first == NULL) {
		wait->on_done(wait, NULL);
		return;
	}
	handoff = xzalloc(sizeof(*handoff));
	*handoff = (struct movement_handoff){.done = {.on_done = movement_hints_given},
	    .hints = hints,
	    .wait = wait,
	    .second = second};
	hints_transfer(hints, first, &handoff->done);
}

/* ---- What else the storage service asks ---------------------------------------------------- */

bool
keyspace_is_system(const struct keyspace_metadata *keyspace)
{
	return keyspace->is_virtual ||
	    (keyspace->name.size >= 6 && memcmp(keyspace->name.data, "system", 6) == 0);
}

bool
movement_has_data(const struct schema *schema)
{
	for (uint32_t i = 0; i < schema->keyspace_count; i++)
		if (!keyspace_is_system(schema->keyspaces[i]) &&
		    schema->keyspaces[i]->table_count > 0)
			return true;
	return false;
}

/* The nodes that could hold the keyspace's replicas where this one stands: of the ring, or of its data center. */
static uint32_t
movement_places(const struct topology *topology, bool is_of_datacenter)
{
	const char *local = topology_local_datacenter(topology);
	uint32_t count = 0;

	for (uint32_t i = 0; i < topology_member_count(topology); i++) {
		const struct member *member = topology_member(topology, i);

		count += member->state != MEMBER_JOINING && member->state != MEMBER_REPLACING &&
		    (!is_of_datacenter || strcmp(member->datacenter, local) == 0);
	}
	return count;
}

int
movement_may_leave(const struct topology *topology, const struct schema *schema, struct error *err)
{
	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[i];
		const struct replication *replication;
		uint32_t nodes;
		int32_t factor;

		if (!keyspace_is_distributed(keyspace) || keyspace_is_system(keyspace))
			continue;
		replication = topology_replication(topology, keyspace);
		factor = replication_factor_of(replication, topology_local_datacenter(topology));
		nodes = movement_places(
		    topology, replication_class(replication) == REPLICATION_NETWORK_TOPOLOGY);
		if ((int64_t)nodes <= factor)
			return error_set(err, ERROR_INVALID,
			    "Not enough live nodes to maintain replication factor in keyspace "
			    "%.*s (RF = %d, N = %u). Perform a forceful decommission to ignore.",
			    (int)keyspace->name.size, (const char *)keyspace->name.data,
			    (int)factor, (unsigned)nodes);
	}
	return 0;
}

static bool
movement_set_has(const struct replica_set *set, const struct peer *peer)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->peers[i] == peer)
			return true;
	return false;
}

/* Does the peer become a replica of a range that it is none of now? */
static bool
movement_gains(const struct topology *before, const struct topology *after,
    const struct schema *schema, const struct peer *peer)
{
	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		const struct replication *now, *then;

		if (!keyspace_is_distributed(schema->keyspaces[i]))
			continue;
		now = topology_replication(before, schema->keyspaces[i]);
		then = topology_replication(after, schema->keyspaces[i]);
		for (uint32_t t = 0; t < topology_token_count(before); t++) {
			int64_t token = topology_token(before, t, NULL);

			if (movement_set_has(replication_replicas(then, token), peer) &&
			    !movement_set_has(replication_replicas(now, token), peer))
				return true;
		}
	}
	return false;
}

uint32_t
movement_gainers(const struct topology *topology, struct peers *peers, const struct schema *schema,
    struct peer *gone, struct peer ***out)
{
	struct topology_holder *holder = ring_after(topology, peers, gone);
	const struct topology *after = topology_acquire(holder);
	uint32_t count = 0;

	*out = xcalloc((size_t)topology_member_count(after) + 1, sizeof(struct peer *));
	for (uint32_t i = 0; i < topology_member_count(after); i++) {
		struct peer *peer = topology_member(after, i)->peer;

		if (movement_gains(topology, after, schema, peer))
			(*out)[count++] = peer;
	}
	topology_release(holder, after);
	topology_holder_free(holder);
	return count;
}
