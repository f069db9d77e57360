/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/ring.h"
#include <stdio.h>

void
ring_init(struct ring *ring, const char *datacenter)
{
	snprintf(ring->datacenter, sizeof(ring->datacenter), "%s", datacenter);
}

/* "3", or "3/1" with transient replicas. */
static int32_t
ring_parse_factor(struct slice text)
{
	int32_t factor = 0;

	for (size_t i = 0; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
		if (factor > 100000)
			return factor;
		factor = factor * 10 + (text.data[i] - '0');
	}
	return factor;
}

static bool
ring_ends_with(struct slice text, const char *end)
{
	size_t size = strlen(end);

	return text.size >= size && memcmp(text.data + text.size - size, end, size) == 0;
}

int32_t
ring_replication_factor(
    const struct ring *ring, const struct keyspace_metadata *keyspace, bool is_local)
{
	const struct option_map *replication = &keyspace->replication;
	const struct slice *class_name = option_map_get(replication, "class");
	const struct slice *factor;
	int32_t sum = 0;

	if (class_name == NULL || ring_ends_with(*class_name, "LocalStrategy"))
		return 1;
	if (!ring_ends_with(*class_name, "NetworkTopologyStrategy")) {
		factor = option_map_get(replication, "replication_factor");
		return factor == NULL ? 1 : ring_parse_factor(*factor);
	}
	for (uint32_t i = 0; i < replication->count; i++) {
		const struct option_entry *entry = &replication->entries[i];

		if (slice_equal_string(entry->key, "class"))
			continue;
		if (is_local && !slice_equal_string(entry->key, ring->datacenter))
			continue;
		sum += ring_parse_factor(entry->value);
	}
	return sum;
}

int32_t
ring_block_for(
    const struct ring *ring, const struct keyspace_metadata *keyspace, enum consistency consistency)
{
	int32_t factor = ring_replication_factor(ring, keyspace, consistency_is_local(consistency));

	return consistency_answers(consistency, factor, factor);
}

int
ring_check(const struct ring *ring, const struct keyspace_metadata *keyspace,
    enum consistency consistency, struct error *err)
{
	int32_t required, alive = 1;

	/* One replica is always here: nearly every request ends at this line. */
	if (consistency == CONSISTENCY_ONE || consistency == CONSISTENCY_LOCAL_ONE ||
	    consistency == CONSISTENCY_ANY)
		return 0;
	required = ring_block_for(ring, keyspace, consistency);
	if (required <= alive)
		return 0;
	error_set(err, ERROR_UNAVAILABLE, "Cannot achieve consistency level %s",
	    consistency_name(consistency));
	if (err != NULL) {
		err->consistency = (uint16_t)consistency;
		err->required = required;
		err->received = alive;
	}
	return -1;
}
