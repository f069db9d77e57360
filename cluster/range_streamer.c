/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/range_streamer.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/replica_plan.h"

enum { RANGE_SOURCES_MAX = 64 };

/* ---- the ring to be ------------------------------------------------------------------------------------ */

/* How a member stands when its change has ended. */
static void
ring_settle(struct member *member)
{
	if (member->state == MEMBER_MOVING) {
		member->tokens = member->next_tokens;
		member->token_count = member->next_token_count;
		member->next_token_count = 0;
	}
	member->state = MEMBER_NORMAL;
}

struct topology_holder *
ring_after(const struct topology *topology, struct peers *peers, struct peer *peer)
{
	struct topology_holder *holder = topology_holder_new(peers);
	uint32_t count = topology_member_count(topology), used = 0;
	struct member *members = xcalloc((size_t)count + 1, sizeof(*members));
	const struct member *changing = topology_find(topology, peer);
	const struct peer *gone =
	    changing != NULL && changing->state == MEMBER_REPLACING ? changing->replaces : NULL;
	struct error err;

	topology_holder_set_local(
	    holder, topology_local_datacenter(topology), topology_local_rack(topology));
	for (uint32_t i = 0; i < count; i++) {
		struct member member = *topology_member(topology, i);

		if (member.peer == gone || member.state == MEMBER_LEAVING)
			continue;
		if (member.peer == peer)
			ring_settle(&member);
		members[used++] = member;
	}
	if (topology_update(holder, members, used, &err) != 0)
		log_error("the ring to be cannot be made: %s", err.text);
	free(members);
	return holder;
}

bool
keyspace_is_distributed(const struct keyspace_metadata *keyspace)
{
	const struct slice *class_name = option_map_get(&keyspace->replication, "class");
	static const char suffix[] = "LocalStrategy";
	size_t size = sizeof(suffix) - 1;

	return !keyspace->is_virtual && class_name != NULL && class_name->size >= size &&
	    memcmp(class_name->data + class_name->size - size, suffix, size) != 0;
}

/* ---- ranges that have one set of replicas in both rings --------------------------------------------------- */

struct range_walk {
	int64_t *tokens; /* owned; ascending, each once */
	uint32_t count;
	const struct replication *before, *after;
};

static int
range_compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/* Others' changes too may have their tokens: ranges are then only finer. */
static void
range_walk_init(struct range_walk *walk, const struct topology *before,
    const struct topology *after, const struct keyspace_metadata *keyspace,
    const struct ring_range *ranges, uint32_t range_count)
{
	uint32_t first = topology_token_count(before), second = topology_token_count(after);
	uint32_t used = 0, kept = 0;

	walk->before = topology_replication(before, keyspace);
	walk->after = topology_replication(after, keyspace);
	walk->tokens =
	    xcalloc((size_t)first + second + 2 * (size_t)range_count + 1, sizeof(*walk->tokens));
	for (uint32_t i = 0; i < first; i++)
		walk->tokens[used++] = topology_token(before, i, NULL);
	for (uint32_t i = 0; i < second; i++)
		walk->tokens[used++] = topology_token(after, i, NULL);
	for (uint32_t i = 0; i < range_count; i++) {
		walk->tokens[used++] = ranges[i].left;
		walk->tokens[used++] = ranges[i].right;
	}
	qsort(walk->tokens, used, sizeof(*walk->tokens), range_compare);
	for (uint32_t i = 0; i < used; i++)
		if (kept == 0 || walk->tokens[kept - 1] != walk->tokens[i])
			walk->tokens[kept++] = walk->tokens[i];
	walk->count = kept;
}

static struct ring_range
range_walk_at(const struct range_walk *walk, uint32_t index)
{
	return (struct ring_range){
	    walk->tokens[index == 0 ? walk->count - 1 : index - 1], walk->tokens[index]};
}

static bool
range_has(const struct replica_set *set, const struct peer *peer)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->peers[i] == peer)
			return true;
	return false;
}

/* The ranges that go from or to one peer. */
struct range_list {
	struct ring_range *ranges; /* owned */
	uint32_t count, capacity;
};

static void
range_list_add(struct range_list *list, struct ring_range range)
{
	/* What follows on what there is: one range. */
	if (list->count > 0 && list->ranges[list->count - 1].right == range.left) {
		list->ranges[list->count - 1].right = range.right;
		return;
	}
	if (list->count == list->capacity) {
		list->capacity = list->capacity * 2 + 16;
		list->ranges = xrealloc(list->ranges, list->capacity * sizeof(*list->ranges));
	}
	list->ranges[list->count++] = range;
}

static char *
range_name(const struct keyspace_metadata *keyspace)
{
	return xstrndup((const char *)keyspace->name.data, keyspace->name.size);
}

/* ---- fetching ------------------------------------------------------------------------------------------------ */

static bool
range_is_in(const struct ring_range *ranges, uint32_t count, int64_t token)
{
	for (uint32_t i = 0; i < count; i++) {
		bool is_after = token > ranges[i].left, is_before = token <= ranges[i].right;

		if (ranges[i].left < ranges[i].right ? is_after && is_before
						     : is_after || is_before)
			return true;
	}
	return count == 0;
}

static bool
range_may_come_from(const struct range_fetch *fetch, const struct replica_set *set, uint32_t index)
{
	struct peer *peer = set->peers[index];

	if (peer->is_local ||
	    (fetch->datacenter != NULL && strcmp(set->datacenters[index], fetch->datacenter) != 0))
		return false;
	for (uint32_t i = 0; i < fetch->source_count; i++)
		if (fetch->sources[i] == peer)
			return true;
	return fetch->source_count == 0;
}

/* The one who gives the range away; NULL: nobody alone does. */
static struct peer *
range_giver(const struct replica_set *now, const struct replica_set *then)
{
	struct peer *giver = NULL;

	for (uint32_t i = 0; i < now->count; i++) {
		if (range_has(then, now->peers[i]))
			continue;
		if (giver != NULL)
			return NULL;
		giver = now->peers[i];
	}
	return giver;
}

static bool
range_is_alive(const struct peer *peer)
{
	return atomic_load_explicit(&peer->is_alive, memory_order_relaxed);
}

static int
range_no_source(const struct range_fetch *fetch, const struct range_walk *walk,
    struct ring_range range, const struct keyspace_metadata *keyspace, struct error *err)
{
	bool is_single = replication_total_factor(walk->after) == 1;
	char text[320];

	snprintf(text, sizeof(text),
	    "Unable to find sufficient sources for streaming range (%" PRId64 ",%" PRId64
	    "] in keyspace %.*s%s",
	    range.left, range.right, (int)keyspace->name.size, (const char *)keyspace->name.data,
	    is_single ? " with RF=1" : "");
	/*
	 * SimpleStrategy knows no data centers: a new one may hold all replicas of a range of system_traces, and has no
	 * other to ask. That must not keep the users' data away.
	 */
	if (fetch->datacenter != NULL && keyspace->name.size > 6 &&
	    memcmp(keyspace->name.data, "system", 6) == 0) {
		log_warn("%s of data center %s", text, fetch->datacenter);
		return 0;
	}
	if (!is_single || fetch->is_strict)
		return error_set(err, ERROR_UNAVAILABLE, "%s%s", text,
		    is_single ? ". Ensure this keyspace contains replicas in the source datacenter."
			      : "");
	log_warn("%s. Keyspace might be missing data.", text);
	return 0;
}

/* Whom to ask; *out NULL: nobody, which is no error. */
static int
range_choose(const struct range_fetch *fetch, const struct range_walk *walk,
    struct ring_range range, const struct keyspace_metadata *keyspace, struct peer **out,
    struct error *err)
{
	const struct replica_set *now = replication_replicas(walk->before, range.right);
	const struct replica_set *then = replication_replicas(walk->after, range.right);
	struct peer *giver = fetch->is_strict ? range_giver(now, then) : NULL;
	struct replica near[RANGE_SOURCES_MAX];
	uint32_t count = 0;
	char address[ENDPOINT_TEXT_SIZE];

	*out = NULL;
	if (giver != NULL && !range_is_alive(giver))
		return error_set(err, ERROR_UNAVAILABLE,
		    "A node required to move the data consistently is down (%s). If you wish to "
		    "move the data from a potentially inconsistent replica, restart the node with "
		    "-Dcassandra.consistent.rangemovement=false",
		    endpoint_format(&giver->endpoint, address));
	if (giver != NULL) {
		*out = giver;
		return 0;
	}
	for (uint32_t i = 0; i < now->count && count < RANGE_SOURCES_MAX; i++)
		if (range_may_come_from(fetch, now, i) && range_is_alive(now->peers[i]))
			near[count++] = (struct replica){
			    .peer = now->peers[i], .datacenter = now->datacenters[i]};
	if (count == 0)
		return range_no_source(fetch, walk, range, keyspace, err);
	if (fetch->snitch != NULL)
		snitch_sort(fetch->snitch, fetch->before, near, count);
	*out = near[0].peer;
	return 0;
}

static bool
range_is_coming(
    const struct range_fetch *fetch, const struct range_walk *walk, struct ring_range range)
{
	struct peer *local = peers_local(fetch->peers);

	return range_has(replication_replicas(walk->after, range.right), local) &&
	    (fetch->is_from_nothing ||
		!range_has(replication_replicas(walk->before, range.right), local)) &&
	    range_is_in(fetch->ranges, fetch->range_count, range.right);
}

int
range_streamer_fetch(struct stream_job *job, const struct range_fetch *fetch,
    const struct keyspace_metadata *keyspace, struct error *err)
{
	uint32_t peer_count = peers_count(fetch->peers);
	struct range_list *lists = xcalloc(peer_count, sizeof(*lists));
	struct range_walk walk;
	char *name = range_name(keyspace);
	int rc = 0;

	range_walk_init(
	    &walk, fetch->before, fetch->after, keyspace, fetch->ranges, fetch->range_count);
	/* Before there was anybody there was no data. */
	for (uint32_t i = 0; i < walk.count && rc == 0 && topology_token_count(fetch->before) > 0;
	     i++) {
		struct ring_range range = range_walk_at(&walk, i);
		struct peer *from;

		if (!range_is_coming(fetch, &walk, range) ||
		    (fetch->has_moved != NULL &&
			fetch->has_moved(fetch->context, keyspace, NULL, range)))
			continue;
		rc = range_choose(fetch, &walk, range, keyspace, &from, err);
		if (rc == 0 && from != NULL)
			range_list_add(&lists[from->index], range);
	}
	for (uint32_t i = 0; i < peer_count; i++) {
		if (rc == 0)
			stream_job_request(job, peers_at(fetch->peers, i), name, NULL, 0,
			    lists[i].ranges, lists[i].count);
		free(lists[i].ranges);
	}
	free(lists);
	free(walk.tokens);
	free(name);
	return rc;
}

/* ---- giving --------------------------------------------------------------------------------------------------- */

void
range_streamer_give(struct stream_job *job, const struct topology *before,
    const struct topology *after, const struct keyspace_metadata *keyspace,
    range_moved_fn has_moved, void *context)
{
	struct peer *local = topology_local_peer(before);
	uint32_t count = topology_member_count(after);
	struct range_walk walk;
	char *name = range_name(keyspace);

	if (topology_token_count(after) == 0) {
		free(name);
		return;
	}
	range_walk_init(&walk, before, after, keyspace, NULL, 0);
	for (uint32_t m = 0; m < count; m++) {
		struct peer *to = topology_member(after, m)->peer;
		struct range_list list = {NULL, 0, 0};

		for (uint32_t i = 0; i < walk.count && to != local; i++) {
			struct ring_range range = range_walk_at(&walk, i);
			const struct replica_set *now =
			    replication_replicas(walk.before, range.right);
			const struct replica_set *then =
			    replication_replicas(walk.after, range.right);

			if (range_has(now, local) && range_has(then, to) && !range_has(now, to) &&
			    (has_moved == NULL || !has_moved(context, keyspace, to, range)))
				range_list_add(&list, range);
		}
		stream_job_send(job, to, name, NULL, 0, list.ranges, list.count);
		free(list.ranges);
	}
	free(walk.tokens);
	free(name);
}
