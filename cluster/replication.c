/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/replication.h"
#include <stdlib.h>
#include "base/alloc.h"

/* ---- Options ------------------------------------------------------------------------------- */

static const char replication_package[] = "org.apache.cassandra.locator.";

int
replication_parse_class(struct slice name, enum replication_class *out, struct error *err)
{
	static const char *const names[] = {
	    "SimpleStrategy", "NetworkTopologyStrategy", "LocalStrategy", "EverywhereStrategy"};
	size_t package = sizeof(replication_package) - 1;
	struct slice simple = name;

	if (name.size > package && memcmp(name.data, replication_package, package) == 0)
		simple = (struct slice){name.data + package, name.size - package};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (slice_equal_string(simple, names[i])) {
			*out = (enum replication_class)i;
			return 0;
		}
	}
	return error_set(err, ERROR_CONFIG, "Unable to find replication strategy class '%s%.*s'",
	    simple.data == name.data && memchr(name.data, '.', name.size) == NULL
		? replication_package
		: "",
	    (int)name.size, (const char *)name.data);
}

int
replication_parse_factor(struct slice text, int32_t *out, struct error *err)
{
	bool is_negative = text.size > 0 && text.data[0] == '-';
	size_t at = is_negative || (text.size > 0 && text.data[0] == '+');
	int64_t value = 0;

	if (memchr(text.data, '/', text.size) != NULL)
		return error_set(err, ERROR_CONFIG,
		    "Transient replication is not supported: replication factor '%.*s' must be a "
		    "plain number",
		    (int)text.size, (const char *)text.data);
	if (at == text.size)
		return error_set(err, ERROR_CONFIG, "For input string: \"%.*s\"", (int)text.size,
		    (const char *)text.data);
	for (; at < text.size; at++) {
		if (text.data[at] < '0' || text.data[at] > '9' || value > INT32_MAX)
			return error_set(err, ERROR_CONFIG, "For input string: \"%.*s\"",
			    (int)text.size, (const char *)text.data);
		value = value * 10 + (text.data[at] - '0');
	}
	if (value > INT32_MAX)
		return error_set(err, ERROR_CONFIG, "For input string: \"%.*s\"", (int)text.size,
		    (const char *)text.data);
	if (is_negative && value != 0)
		return error_set(err, ERROR_CONFIG,
		    "Replication factor must be non-negative; found -%lld", (long long)value);
	*out = (int32_t)value;
	return 0;
}

static int
replication_factor_compare(const void *a, const void *b)
{
	const struct replication_factor *left = a, *right = b;

	return strcmp(left->datacenter, right->datacenter);
}

static int
replication_parse_datacenters(const struct option_map *options, struct arena *arena,
    struct replication_strategy *out, struct error *err)
{
	out->datacenters = arena_calloc(arena, options->count, sizeof(*out->datacenters));
	if (out->datacenters == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for replication options");
	for (uint32_t i = 0; i < options->count; i++) {
		const struct option_entry *entry = &options->entries[i];
		struct replication_factor *factor = &out->datacenters[out->datacenter_count];

		if (slice_equal_string(entry->key, "class"))
			continue;
		if (replication_parse_factor(entry->value, &factor->factor, err) != 0)
			return -1;
		/* As if it were not named: nothing is kept there, no quorum asked for. */
		if (factor->factor == 0)
			continue;
		factor->datacenter =
		    arena_strndup(arena, (const char *)entry->key.data, entry->key.size);
		if (factor->datacenter == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for replication options");
		out->datacenter_count++;
	}
	qsort(out->datacenters, out->datacenter_count, sizeof(*out->datacenters),
	    replication_factor_compare);
	return 0;
}

static int
replication_parse_simple(
    const struct option_map *options, struct replication_strategy *out, struct error *err)
{
	const struct slice *factor = option_map_get(options, "replication_factor");

	for (uint32_t i = 0; i < options->count; i++) {
		struct slice key = options->entries[i].key;

		if (!slice_equal_string(key, "class") &&
		    !slice_equal_string(key, "replication_factor"))
			return error_set(err, ERROR_CONFIG,
			    "Unrecognized strategy option {%.*s} passed to SimpleStrategy",
			    (int)key.size, (const char *)key.data);
	}
	if (factor == NULL)
		return error_set(err, ERROR_CONFIG,
		    "SimpleStrategy requires a replication_factor strategy option.");
	return replication_parse_factor(*factor, &out->factor, err);
}

int
replication_parse(const struct option_map *options, struct arena *arena,
    struct replication_strategy *out, struct error *err)
{
	const struct slice *class_name = option_map_get(options, "class");

	memset(out, 0, sizeof(*out));
	if (class_name == NULL)
		return error_set(err, ERROR_CONFIG, "Missing replication strategy class");
	if (replication_parse_class(*class_name, &out->class, err) != 0)
		return -1;
	if (out->class == REPLICATION_SIMPLE)
		return replication_parse_simple(options, out, err);
	if (out->class == REPLICATION_NETWORK_TOPOLOGY)
		return replication_parse_datacenters(options, arena, out, err);
	return 0;
}

/* ---- Walking a ring ------------------------------------------------------------------------ */

/* What one data center still wants while a walk is under way. */
struct ring_walk_datacenter {
	uint32_t wanted; /* the factor, or its nodes where those are fewer */
	int64_t
	    repeats; /* the factor less its racks: nodes of racks used already that may be taken */
	uint32_t left; /* this walk */
	int64_t repeats_left;
};

struct ring_walk {
	const struct ring_view *view;
	struct ring_walk_datacenter
	    *datacenters; /* owned; one where factors are not by data center */
	uint32_t datacenter_count;
	bool is_by_rack;
	uint32_t count_max;
	/* Number of the walk that took this member, used this rack: nothing need be cleared in between. */
	uint32_t walk;
	uint32_t *taken;
	uint32_t *rack_used;
};

static void
ring_walk_count(struct ring_walk *walk, const int32_t *factors, int32_t factor)
{
	const struct ring_view *view = walk->view;
	bool *is_owner = xcalloc(view->member_count + 1, sizeof(*is_owner));
	bool *is_rack = xcalloc(view->rack_count + 1, sizeof(*is_rack));

	for (uint32_t d = 0; d < walk->datacenter_count; d++)
		walk->datacenters[d].repeats = factors == NULL ? factor : factors[d];
	for (uint32_t i = 0; i < view->token_count; i++) {
		uint32_t owner = view->owners[i];
		struct ring_place place = view->places[owner];
		uint32_t d = factors == NULL ? 0 : place.datacenter;
		struct ring_walk_datacenter *datacenter = &walk->datacenters[d];

		if (is_owner[owner])
			continue;
		is_owner[owner] = true;
		if ((int64_t)datacenter->wanted < (factors == NULL ? factor : factors[d]))
			datacenter->wanted++;
		if (!is_rack[place.rack])
			datacenter->repeats--;
		is_rack[place.rack] = true;
	}
	for (uint32_t d = 0; d < walk->datacenter_count; d++)
		walk->count_max += walk->datacenters[d].wanted;
	free(is_owner);
	free(is_rack);
}

struct ring_walk *
ring_walk_new(const struct ring_view *view, const int32_t *factors, int32_t factor)
{
	struct ring_walk *walk = xzalloc(sizeof(*walk));

	walk->view = view;
	walk->is_by_rack = factors != NULL;
	walk->datacenter_count = factors == NULL ? 1 : view->datacenter_count;
	walk->datacenters = xcalloc(walk->datacenter_count + 1, sizeof(*walk->datacenters));
	walk->taken = xcalloc(view->member_count + 1, sizeof(*walk->taken));
	walk->rack_used = xcalloc(view->rack_count + 1, sizeof(*walk->rack_used));
	ring_walk_count(walk, factors, factor);
	return walk;
}

void
ring_walk_free(struct ring_walk *walk)
{
	if (walk == NULL)
		return;
	free(walk->datacenters);
	free(walk->taken);
	free(walk->rack_used);
	free(walk);
}

uint32_t
ring_walk_count_max(const struct ring_walk *walk)
{
	return walk->count_max;
}

/*
 * Does the walk take this member? NetworkTopologyStrategy's rule: one of a rack not used yet always; one of a used rack
 * only while there are repeats left, which are as many as the factor exceeds the racks. SimpleStrategy takes
 * every node that it meets.
 */
static bool
ring_walk_take(struct ring_walk *walk, uint32_t member)
{
	struct ring_place place = walk->view->places[member];
	struct ring_walk_datacenter *datacenter =
	    &walk->datacenters[walk->is_by_rack ? place.datacenter : 0];

	if (datacenter->left == 0 || walk->taken[member] == walk->walk)
		return false;
	if (walk->is_by_rack && walk->rack_used[place.rack] == walk->walk) {
		if (datacenter->repeats_left <= 0)
			return false;
		datacenter->repeats_left--;
	}
	walk->rack_used[place.rack] = walk->walk;
	walk->taken[member] = walk->walk;
	datacenter->left--;
	return true;
}

uint32_t
ring_walk_replicas(struct ring_walk *walk, uint32_t index, uint32_t *out)
{
	const struct ring_view *view = walk->view;
	uint32_t count = 0;

	walk->walk++;
	for (uint32_t d = 0; d < walk->datacenter_count; d++) {
		walk->datacenters[d].left = walk->datacenters[d].wanted;
		walk->datacenters[d].repeats_left = walk->datacenters[d].repeats;
	}
	for (uint32_t i = 0; i < view->token_count && count < walk->count_max; i++) {
		uint32_t member = view->owners[index];

		if (ring_walk_take(walk, member))
			out[count++] = member;
		if (++index == view->token_count)
			index = 0;
	}
	return count;
}
