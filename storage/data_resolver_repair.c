/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/data_resolver_internal.h"

/*
 * What a replica lacks of the merged partition (RowIteratorMergeListener): deletions that it has not or has older,
 * cells that are not the ones that won, and stretches where the merged stream is deleted by more than its own.
 */

static bool
repair_same(struct deletion a, struct deletion b)
{
	return a.marked_for_delete_at == b.marked_for_delete_at &&
	    a.local_deletion_time == b.local_deletion_time;
}

/*
 * Can it be told what the replica lacks here? With filters, one that said nothing of the partition may have dropped
 * it whole.
 */
static bool
repair_is_known(const struct data_resolver *resolver, uint32_t replica)
{
	return resolver->replicas[replica].has_answer &&
	    (resolver->command->filter_count == 0 || resolver->replicas[replica].has_source);
}

void
resolver_repair_begin(struct data_resolver *resolver)
{
	for (uint32_t i = 0; i < resolver->replica_count; i++)
		resolver->replicas[i].repair = (struct resolver_repair){
		    .deletion = DELETION_LIVE,
		    .open = DELETION_LIVE,
		};
}

/* ---- rows --------------------------------------------------------------------------------------- */

static bool
repair_has_cell(const struct row *row, const struct cell *cell)
{
	uint32_t low = 0, high = row->cell_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = cell_order(&row->cells[middle], cell);

		if (order == 0) {
			const struct cell *own = &row->cells[middle];

			return own->timestamp == cell->timestamp && own->ttl == cell->ttl &&
			    own->local_deletion_time == cell->local_deletion_time &&
			    slice_equal(own->value, cell->value);
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool
repair_has_complex(const struct row *row, const struct complex_deletion *deletion)
{
	for (uint32_t i = 0; i < row->complex_deletion_count; i++)
		if (column_order(row->complex_deletions[i].column, deletion->column) == 0)
			return repair_same(row->complex_deletions[i].deletion, deletion->deletion);
	return false;
}

/* *out is what `own` (NULL: nothing) lacks of `merged`. */
static int
repair_diff(struct arena *arena, const struct row *merged, const struct row *own, struct row *out,
    struct error *err)
{
	struct complex_deletion *deletions;
	struct cell *cells;

	*out = *merged;
	if (own == NULL)
		return 0;
	if (merged->liveness.timestamp == own->liveness.timestamp &&
	    merged->liveness.ttl == own->liveness.ttl &&
	    merged->liveness.local_expiration_time == own->liveness.local_expiration_time)
		out->liveness = LIVENESS_NONE;
	if (repair_same(merged->deletion, own->deletion))
		out->deletion = DELETION_LIVE;
	cells = arena_alloc(arena, merged->cell_count * sizeof(*cells));
	deletions = arena_alloc(arena, merged->complex_deletion_count * sizeof(*deletions));
	if (cells == NULL || deletions == NULL)
		return resolver_no_memory(err);
	out->cells = cells;
	out->cell_count = 0;
	for (uint32_t i = 0; i < merged->cell_count; i++)
		if (!repair_has_cell(own, &merged->cells[i]))
			cells[out->cell_count++] = merged->cells[i];
	out->complex_deletions = deletions;
	out->complex_deletion_count = 0;
	for (uint32_t i = 0; i < merged->complex_deletion_count; i++)
		if (!repair_has_complex(own, &merged->complex_deletions[i]))
			deletions[out->complex_deletion_count++] = merged->complex_deletions[i];
	return 0;
}

/* What a replica says of a row in its parts (one, but for what was fetched). *out NULL: nothing. */
static int
repair_own_row(struct data_resolver *resolver, uint32_t replica, bool is_static,
    const struct row **out, struct error *err)
{
	struct row *merged;
	const struct row *parts[2];

	*out = NULL;
	for (uint32_t i = 0; i < resolver->source_count; i++) {
		const struct resolver_partition *source = resolver->sources[i];
		const struct row *row = resolver->versions[i];

		if (is_static)
			row = source->has_static ? &source->static_row : NULL;
		if (source->replica != replica || row == NULL)
			continue;
		if (*out == NULL) {
			*out = row;
			continue;
		}
		merged = arena_alloc(resolver->arena, sizeof(*merged));
		if (merged == NULL)
			return resolver_no_memory(err);
		parts[0] = *out;
		parts[1] = row;
		if (row_merge(parts, 2, DELETION_LIVE, resolver->arena, merged, err) != 0)
			return -1;
		*out = merged;
	}
	return 0;
}

static int
repair_add_row(struct data_resolver *resolver, struct resolver_repair *repair,
    const struct row *row, struct error *err)
{
	repair->rows = resolver_room(resolver->arena, repair->rows, sizeof(*repair->rows),
	    repair->row_count, &repair->row_room);
	if (repair->rows == NULL)
		return resolver_no_memory(err);
	repair->rows[repair->row_count++] = *row;
	return 0;
}

int
resolver_repair_row(struct data_resolver *resolver, const struct row *merged, struct error *err)
{
	for (uint32_t i = 0; i < resolver->replica_count; i++) {
		const struct row *own;
		struct row lacks;

		if (!repair_is_known(resolver, i) ||
		    !resolver_is_heard(resolver, i, merged->position))
			continue;
		if (repair_own_row(resolver, i, false, &own, err) != 0 ||
		    repair_diff(resolver->arena, merged, own, &lacks, err) != 0)
			return -1;
		if (!row_is_empty(&lacks) &&
		    repair_add_row(resolver, &resolver->replicas[i].repair, &lacks, err) != 0)
			return -1;
	}
	return 0;
}

int
resolver_repair_heads(struct data_resolver *resolver, struct error *err)
{
	const struct unfiltered_iterator *base = &resolver->result->base;

	for (uint32_t i = 0; i < resolver->replica_count; i++) {
		struct resolver_repair *repair = &resolver->replicas[i].repair;
		struct deletion deletion = DELETION_LIVE;
		const struct row *own;
		struct row *lacks;

		if (!repair_is_known(resolver, i))
			continue;
		for (uint32_t j = 0; j < resolver->source_count; j++)
			if (resolver->sources[j]->replica == i &&
			    deletion_supersedes(resolver->sources[j]->deletion, deletion))
				deletion = resolver->sources[j]->deletion;
		if (deletion_supersedes(base->partition_deletion, deletion))
			repair->deletion = base->partition_deletion;
		if (!base->has_static_row)
			continue;
		lacks = arena_alloc(resolver->arena, sizeof(*lacks));
		if (lacks == NULL)
			return resolver_no_memory(err);
		if (repair_own_row(resolver, i, true, &own, err) != 0 ||
		    repair_diff(resolver->arena, &base->static_row, own, lacks, err) != 0)
			return -1;
		if (!row_is_empty(lacks))
			repair->static_row = lacks;
	}
	return 0;
}

/* ---- range tombstones --------------------------------------------------------------------------- */

static bool
repair_is_before(const struct marker *marker)
{
	return marker->kind == BOUND_EXCL_END || marker->kind == BOUND_INCL_START ||
	    marker->kind == BOUND_EXCL_END_INCL_START;
}

/* The stretch from repair->from to `to`, in the order of the iteration. */
static int
repair_add_tombstone(struct data_resolver *resolver, struct resolver_repair *repair,
    const struct marker *to, struct error *err)
{
	bool is_reversed = resolver->command->clustering.is_reversed;
	const struct marker *start = is_reversed ? to : &repair->from;
	const struct marker *end = is_reversed ? &repair->from : to;

	repair->tombstones = resolver_room(resolver->arena, repair->tombstones,
	    sizeof(*repair->tombstones), repair->tombstone_count, &repair->tombstone_room);
	if (repair->tombstones == NULL)
		return resolver_no_memory(err);
	repair->tombstones[repair->tombstone_count++] = (struct range_tombstone){
	    .start_kind = repair_is_before(start) ? BOUND_INCL_START : BOUND_EXCL_START,
	    .end_kind = repair_is_before(end) ? BOUND_EXCL_END : BOUND_INCL_END,
	    .start_count = start->clustering_count,
	    .end_count = end->clustering_count,
	    .start = start->clustering,
	    .end = end->clustering,
	    .deletion = repair->open,
	};
	return 0;
}

int
resolver_repair_marker(struct data_resolver *resolver, const struct marker *at, struct error *err)
{
	for (uint32_t i = 0; i < resolver->replica_count; i++) {
		struct resolver_repair *repair = &resolver->replicas[i].repair;
		struct deletion own = DELETION_LIVE, lacks = DELETION_LIVE;

		if (!repair_is_known(resolver, i))
			continue;
		for (uint32_t j = 0; j < resolver->source_count; j++)
			if (resolver->sources[j]->replica == i &&
			    deletion_supersedes(resolver->sources[j]->open, own))
				own = resolver->sources[j]->open;
		if (deletion_supersedes(resolver->open, own))
			lacks = resolver->open;
		if (repair_same(lacks, repair->open))
			continue;
		if (!deletion_is_live(repair->open) &&
		    repair_add_tombstone(resolver, repair, at, err) != 0)
			return -1;
		repair->open = lacks;
		repair->from = *at;
	}
	return 0;
}

/* ---- mutations ---------------------------------------------------------------------------------- */

static void
repair_reverse_rows(struct resolver_repair *repair)
{
	for (uint32_t i = 0; i < repair->row_count / 2; i++) {
		struct row row = repair->rows[i];

		repair->rows[i] = repair->rows[repair->row_count - 1 - i];
		repair->rows[repair->row_count - 1 - i] = row;
	}
}

static int
repair_add_mutation(struct data_resolver *resolver, struct resolver_replica *replica,
    const char *keyspace, struct error *err)
{
	const struct unfiltered_iterator *base = &resolver->result->base;
	struct partition_update *update = arena_alloc(resolver->arena, sizeof(*update));

	replica->mutations = resolver_room(resolver->arena, replica->mutations,
	    sizeof(*replica->mutations), replica->mutation_count, &replica->mutation_room);
	if (update == NULL || replica->mutations == NULL || keyspace == NULL)
		return resolver_no_memory(err);
	if (base->is_reversed)
		repair_reverse_rows(&replica->repair);
	*update = (struct partition_update){
	    .table = base->table,
	    .key = base->key,
	    .token = base->token,
	    .deletion = replica->repair.deletion,
	    .static_row = replica->repair.static_row,
	    .row_count = replica->repair.row_count,
	    .rows = replica->repair.rows,
	    .tombstone_count = replica->repair.tombstone_count,
	    .tombstones = replica->repair.tombstones,
	};
	replica->mutations[replica->mutation_count++] = (struct mutation){
	    .keyspace = keyspace,
	    .key = base->key,
	    .token = base->token,
	    .update_count = 1,
	    .updates = update,
	};
	return 0;
}

int
resolver_repair_end(struct data_resolver *resolver, struct error *err)
{
	const struct table_metadata *table = resolver->command->table;
	const char *keyspace = NULL;

	for (uint32_t i = 0; i < resolver->replica_count; i++) {
		struct resolver_replica *replica = &resolver->replicas[i];
		const struct resolver_repair *repair = &replica->repair;

		if (repair->row_count == 0 && repair->tombstone_count == 0 &&
		    repair->static_row == NULL && deletion_is_live(repair->deletion))
			continue;
		if (keyspace == NULL)
			keyspace = arena_strndup(resolver->arena,
			    (const char *)table->keyspace.data, table->keyspace.size);
		if (repair_add_mutation(resolver, replica, keyspace, err) != 0)
			return -1;
	}
	return 0;
}
