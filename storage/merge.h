/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_MERGE_H
#define HELENUS_STORAGE_MERGE_H

/*
 * Small tools for streams of unfiltereds, shared by the merge (unfiltered.h), the purge, the memtable and
 * the SSTable reader. Pure functions.
 */
#include "storage/unfiltered.h"

/* Compute the position of a row or marker where it is null, into `arena`. -1 without memory. */
int unfiltered_set_position(const struct table_metadata *table, struct unfiltered *unfiltered,
    struct arena *arena, struct error *err);

/* The clustering values of a row, raw or not, or of a marker. */
static inline const struct slice *
unfiltered_clustering(const struct unfiltered *unfiltered, uint32_t *count)
{
	switch (unfiltered->kind) {
	case UNFILTERED_RAW:
		*count = unfiltered->raw.clustering_count;
		return unfiltered->raw.clustering;
	case UNFILTERED_MARKER:
		*count = unfiltered->marker.clustering_count;
		return unfiltered->marker.clustering;
	default:
		*count = unfiltered->row.clustering_count;
		return unfiltered->row.clustering;
	}
}

/* Turn a raw row into a row. */
int unfiltered_decode_raw(struct unfiltered *unfiltered, struct arena *arena, struct error *err);

/*
 * The marker at `at`'s place (its values, and whether it stands before or after the rows there) between
 * the deletion `below` and the one `above` it in clustering order; not both DELETION_LIVE.
 */
void marker_between(
    struct marker *marker, struct deletion below, struct deletion above, const struct marker *at);

#endif
