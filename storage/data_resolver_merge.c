/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/data_resolver_internal.h"
#include "storage/merge.h"

/*
 * One partition of several replicas: the merge of merge.c, over arrays, that knows whose each version is. Rows are
 * counted as the consumer will count them (DataLimits over the merged rows), so that it ends where they do.
 */

static struct slice
resolver_position(const struct unfiltered *item)
{
	return item->kind == UNFILTERED_ROW ? item->row.position : item->marker.position;
}

static const struct unfiltered *
resolver_source_head(const struct resolver_partition *source)
{
	return source->at < source->item_count ? &source->items[source->at] : NULL;
}

/* ---- the head ----------------------------------------------------------------------------------- */

static int
resolver_merge_heads(struct data_resolver *resolver, struct error *err)
{
	struct unfiltered_iterator *base = &resolver->result->base;
	uint32_t statics = 0;

	base->table = resolver->command->table;
	base->token = resolver->sources[0]->token;
	base->key = resolver->sources[0]->key;
	base->is_reversed = resolver->command->clustering.is_reversed;
	base->partition_deletion = DELETION_LIVE;
	for (uint32_t i = 0; i < resolver->source_count; i++) {
		const struct resolver_partition *source = resolver->sources[i];

		if (deletion_supersedes(source->deletion, base->partition_deletion))
			base->partition_deletion = source->deletion;
		if (source->has_static)
			resolver->versions[statics++] = &source->static_row;
	}
	if (statics == 0)
		return 0;
	if (row_merge(resolver->versions, statics, base->partition_deletion, resolver->arena,
		&base->static_row, err) != 0)
		return -1;
	base->has_static_row = !row_is_empty(&base->static_row);
	return 0;
}

static int
resolver_begin_partition(struct data_resolver *resolver, struct error *err)
{
	resolver->result = arena_zalloc(resolver->arena, sizeof(*resolver->result));
	if (resolver->version_room < resolver->source_count) {
		resolver->version_room = resolver->source_room;
		resolver->versions = arena_calloc(
		    resolver->arena, resolver->version_room, sizeof(*resolver->versions));
	}
	if (resolver->result == NULL || resolver->versions == NULL)
		return resolver_no_memory(err);
	resolver->open = DELETION_LIVE;
	resolver->partition_rows_left = resolver->command->per_partition_limit;
	resolver->partition_rows = 0;
	for (uint32_t i = 0; i < resolver->replica_count; i++) {
		resolver->replicas[i].has_source = false;
		resolver->replicas[i].silent_count = 0;
	}
	for (uint32_t i = 0; i < resolver->source_count; i++)
		resolver->replicas[resolver->sources[i]->replica].has_source = true;
	if (resolver_merge_heads(resolver, err) != 0)
		return -1;
	resolver_repair_begin(resolver);
	return resolver_repair_heads(resolver, err);
}

static int
resolver_put(struct data_resolver *resolver, const struct unfiltered *item, struct error *err)
{
	struct resolver_result *result = resolver->result;

	result->items = resolver_room(
	    resolver->arena, result->items, sizeof(*item), result->item_count, &result->item_room);
	if (result->items == NULL)
		return resolver_no_memory(err);
	result->items[result->item_count++] = *item;
	return 0;
}

/* ---- what filters may have hidden (ReplicaFilteringProtection) ------------------------------------ */

/* Was this partition fetched without filters, or is it an answer to the command itself? */
static bool
resolver_is_fetched(const struct resolver_partition *partition)
{
	return partition->command->filter_count == 0;
}

static bool
resolver_selects(const struct clustering_filter *filter, struct slice position)
{
	for (uint32_t i = 0; i < filter->slice_count; i++) {
		const struct clustering_slice *slice = &filter->slices[i];

		if ((slice_is_null(slice->start) || slice_compare(slice->start, position) < 0) &&
		    (slice_is_null(slice->end) || slice_compare(position, slice->end) < 0))
			return true;
	}
	return filter->slice_count == 0;
}

bool
resolver_is_heard(const struct data_resolver *resolver, uint32_t replica, struct slice position)
{
	if (resolver->command->filter_count == 0)
		return true;
	for (uint32_t i = 0; i < resolver->source_count; i++) {
		const struct resolver_partition *source = resolver->sources[i];

		if (source->replica != replica)
			continue;
		if (resolver->versions[i] != NULL ||
		    (resolver_is_fetched(source) &&
			resolver_selects(&source->command->clustering, position)))
			return true;
	}
	return false;
}

/* Note the row for the replicas that may have it and did not say so. */
static int
resolver_note_silent(struct data_resolver *resolver, const struct row *row, struct error *err)
{
	bool passed_filter = false;

	if (resolver->command->filter_count == 0)
		return 0;
	for (uint32_t i = 0; i < resolver->source_count; i++)
		passed_filter = passed_filter ||
		    (resolver->versions[i] != NULL && !resolver_is_fetched(resolver->sources[i]));
	for (uint32_t i = 0; i < resolver->replica_count && passed_filter; i++) {
		struct resolver_replica *replica = &resolver->replicas[i];

		if (!replica->has_answer || resolver_is_heard(resolver, i, row->position))
			continue;
		replica->silent = resolver_room(resolver->arena, replica->silent,
		    sizeof(*replica->silent), replica->silent_count, &replica->silent_room);
		if (replica->silent == NULL)
			return resolver_no_memory(err);
		replica->silent[replica->silent_count++] = *row;
	}
	return 0;
}

/* The command that reads this partition without filters and limits. */
static struct read_command
resolver_unfiltered_command(const struct data_resolver *resolver)
{
	struct read_command command = *resolver->command;
	const struct unfiltered_iterator *base = &resolver->result->base;

	if (command.is_range && !slice_equal(command.range.start_key, base->key))
		command.after_position = slice_null;
	command.is_range = false;
	command.key = base->key;
	command.token = base->token;
	command.filter_count = 0;
	command.filters = NULL;
	command.row_limit = READ_LIMIT_NONE;
	command.per_partition_limit = READ_LIMIT_NONE;
	return command;
}

static int
resolver_fetch(struct data_resolver *resolver, uint32_t replica, const struct read_command *command,
    struct error *err)
{
	struct resolver_partition *partition = arena_zalloc(resolver->arena, sizeof(*partition));

	if (partition == NULL)
		return resolver_no_memory(err);
	partition->replica = replica;
	partition->token = command->token;
	partition->key = command->key;
	partition->deletion = DELETION_LIVE;
	return resolver_add_fetch(resolver, partition, command, err);
}

static int
resolver_fetch_rows(struct data_resolver *resolver, uint32_t index, struct error *err)
{
	const struct resolver_replica *replica = &resolver->replicas[index];
	const struct table_metadata *table = resolver->command->table;
	struct read_command command = resolver_unfiltered_command(resolver);
	uint32_t count = replica->silent_count;
	struct clustering_slice *slices = arena_calloc(resolver->arena, count, sizeof(*slices));

	if (slices == NULL)
		return resolver_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		const struct row *row =
		    &replica->silent[command.clustering.is_reversed ? count - 1 - i : i];

		slices[i].start = position_make(table, BOUND_INCL_START, row->clustering,
		    row->clustering_count, resolver->arena);
		slices[i].end = position_make(
		    table, BOUND_INCL_END, row->clustering, row->clustering_count, resolver->arena);
		if (slice_is_null(slices[i].start) || slice_is_null(slices[i].end))
			return resolver_no_memory(err);
	}
	command.clustering.is_names = true;
	command.clustering.slices = slices;
	command.clustering.slice_count = count;
	command.after_position = slice_null;
	return resolver_fetch(resolver, index, &command, err);
}

/* The requests for what was silent in this partition. */
static int
resolver_ask_silent(struct data_resolver *resolver, struct error *err)
{
	if (resolver->command->filter_count == 0)
		return 0;
	for (uint32_t i = 0; i < resolver->replica_count; i++) {
		const struct resolver_replica *replica = &resolver->replicas[i];
		struct read_command command;

		/* A filter on keys and static columns may have hidden all of the partition. */
		if (resolver->filters_partitions && replica->has_answer && !replica->has_source) {
			command = resolver_unfiltered_command(resolver);
			if (resolver_fetch(resolver, i, &command, err) != 0)
				return -1;
		} else if (replica->silent_count != 0 && resolver_fetch_rows(resolver, i, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- counting ----------------------------------------------------------------------------------- */

/* 1: the row counts as one of the result; 0; -1. `row` NULL: the static row alone. */
static int
resolver_counts(struct data_resolver *resolver, const struct row *row, struct error *err)
{
	const struct read_command *command = resolver->command;
	const struct unfiltered_iterator *base = &resolver->result->base;
	struct row view, static_view;
	bool is_live = true, has_static = false;

	if (row != NULL &&
	    row_live_view(row, command->now_seconds, resolver->arena, &view, &is_live, NULL, err) !=
		0)
		return -1;
	if (!is_live)
		return 0;
	if (base->has_static_row &&
	    row_live_view(&base->static_row, command->now_seconds, resolver->arena, &static_view,
		&has_static, NULL, err) != 0)
		return -1;
	if (row == NULL && !has_static)
		return 0;
	if (command->filter_count == 0)
		return 1;
	return read_command_filter(
	    command, base->key, has_static ? &static_view : NULL, row != NULL ? &view : NULL, err);
}

static void
resolver_count(struct data_resolver *resolver)
{
	resolver->partition_rows++;
	if (resolver->rows_left != READ_LIMIT_NONE)
		resolver->rows_left--;
	if (resolver->partition_rows_left != READ_LIMIT_NONE)
		resolver->partition_rows_left--;
}

/* A live static row is a row of the result where there is no other (see live_reader.c). */
static int
resolver_count_static(struct data_resolver *resolver, struct error *err)
{
	const struct read_command *command = resolver->command;
	int rc;

	if (resolver->partition_rows != 0 || resolver->filters_rows ||
	    (!slice_is_null(command->after_position) &&
		(!command->is_range ||
		    slice_equal(command->range.start_key, resolver->result->base.key))))
		return 0;
	rc = resolver_counts(resolver, NULL, err);
	if (rc > 0)
		resolver_count(resolver);
	return rc < 0 ? -1 : 0;
}

/* ---- rows and markers --------------------------------------------------------------------------- */

/*
 * 1 and *least, the position that comes next, null at the end. 0: a source was cut and more of it was asked for; -1.
 */
static int
resolver_find_least(struct data_resolver *resolver, struct slice *least, struct error *err)
{
	bool is_reversed = resolver->command->clustering.is_reversed, was_asked = false;

	*least = slice_null;
	for (uint32_t i = 0; i < resolver->source_count; i++) {
		struct resolver_partition *source = resolver->sources[i];
		const struct unfiltered *head = resolver_source_head(source);
		int order;

		if (head == NULL && source->end != READ_RESPONSE_COMPLETE) {
			was_asked = true;
			if (resolver_ask_rest(resolver, source, err) != 0)
				return -1;
		}
		if (head == NULL)
			continue;
		order = slice_is_null(*least) ? -1 : slice_compare(resolver_position(head), *least);
		if (slice_is_null(*least) || (is_reversed ? order > 0 : order < 0))
			*least = resolver_position(head);
	}
	return was_asked ? 0 : 1;
}

/* What holds behind a marker, in the order of the iteration. */
static struct deletion
resolver_leaves_open(const struct data_resolver *resolver, const struct marker *marker)
{
	if (resolver->command->clustering.is_reversed)
		return bound_closes(marker->kind) ? marker->close : DELETION_LIVE;
	return bound_opens(marker->kind) ? marker->open : DELETION_LIVE;
}

/* The merged stream's change to `open` at a place. */
static int
resolver_change(struct data_resolver *resolver, struct deletion open, const struct marker *at,
    struct error *err)
{
	bool is_reversed = resolver->command->clustering.is_reversed;
	struct unfiltered item = {.kind = UNFILTERED_MARKER};
	struct deletion before = resolver->open;

	resolver->open = open;
	if (before.marked_for_delete_at != open.marked_for_delete_at ||
	    before.local_deletion_time != open.local_deletion_time) {
		marker_between(
		    &item.marker, is_reversed ? open : before, is_reversed ? before : open, at);
		if (resolver_put(resolver, &item, err) != 0)
			return -1;
	}
	return resolver_repair_marker(resolver, at, err);
}

static int
resolver_take_markers(struct data_resolver *resolver, struct slice least, struct error *err)
{
	struct deletion open = DELETION_LIVE;
	const struct marker *at = NULL;

	for (uint32_t i = 0; i < resolver->source_count; i++) {
		struct resolver_partition *source = resolver->sources[i];
		const struct unfiltered *head = resolver_source_head(source);

		if (head != NULL && slice_equal(resolver_position(head), least)) {
			at = &head->marker;
			source->open = resolver_leaves_open(resolver, at);
			source->at++;
		}
		if (deletion_supersedes(source->open, open))
			open = source->open;
	}
	if (!deletion_supersedes(open, resolver->result->base.partition_deletion))
		open = DELETION_LIVE;
	return resolver_change(resolver, open, at, err);
}

/* The merged row is put; *is_last: a limit is reached with it. */
static int
resolver_take_rows(
    struct data_resolver *resolver, struct slice least, bool *is_last, struct error *err)
{
	struct unfiltered item = {.kind = UNFILTERED_ROW};
	const struct row **versions =
	    arena_alloc(resolver->arena, resolver->source_count * sizeof(*versions));
	struct deletion active = deletion_is_live(resolver->open)
	    ? resolver->result->base.partition_deletion
	    : resolver->open;
	uint32_t count = 0;
	int rc;

	if (versions == NULL)
		return resolver_no_memory(err);
	for (uint32_t i = 0; i < resolver->source_count; i++) {
		struct resolver_partition *source = resolver->sources[i];
		const struct unfiltered *head = resolver_source_head(source);

		resolver->versions[i] = NULL;
		if (head == NULL || !slice_equal(resolver_position(head), least))
			continue;
		resolver->versions[i] = versions[count++] = &head->row;
		source->at++;
	}
	if (row_merge(versions, count, active, resolver->arena, &item.row, err) != 0)
		return -1;
	item.row.position = least;
	if (resolver_note_silent(resolver, &item.row, err) != 0 ||
	    resolver_repair_row(resolver, &item.row, err) != 0)
		return -1;
	if (row_is_empty(&item.row))
		return 0;
	if (resolver_put(resolver, &item, err) != 0)
		return -1;
	rc = resolver_counts(resolver, &item.row, err);
	if (rc > 0) {
		resolver_count(resolver);
		*is_last = resolver->rows_left == 0 || resolver->partition_rows_left == 0;
	}
	return rc < 0 ? -1 : 0;
}

/* A limit was reached with this row: nothing is said of what lies behind it. */
static int
resolver_close_open(struct data_resolver *resolver, const struct row *row, struct error *err)
{
	bool is_reversed = resolver->command->clustering.is_reversed;
	struct marker at = {
	    .kind = is_reversed ? BOUND_INCL_START : BOUND_INCL_END,
	    .clustering_count = row->clustering_count,
	    .clustering = row->clustering,
	};

	at.position = position_make(
	    resolver->command->table, at.kind, at.clustering, at.clustering_count, resolver->arena);
	if (slice_is_null(at.position))
		return resolver_no_memory(err);
	for (uint32_t i = 0; i < resolver->source_count; i++)
		resolver->sources[i]->open = DELETION_LIVE;
	return resolver_change(resolver, DELETION_LIVE, &at, err);
}

/* 1: all of the partition that matters is merged; 0: more was asked for; -1. */
static int
resolver_merge_items(struct data_resolver *resolver, struct error *err)
{
	struct slice least;
	bool is_last = false;
	int rc;

	while (!is_last && (rc = resolver_find_least(resolver, &least, err)) > 0 &&
	    !slice_is_null(least)) {
		bool is_row = false;

		for (uint32_t i = 0; i < resolver->source_count; i++) {
			const struct unfiltered *head = resolver_source_head(resolver->sources[i]);

			if (head != NULL && slice_equal(resolver_position(head), least))
				is_row = head->kind == UNFILTERED_ROW;
		}
		rc = is_row ? resolver_take_rows(resolver, least, &is_last, err)
			    : resolver_take_markers(resolver, least, err);
		if (rc != 0)
			return -1;
	}
	if (!is_last)
		return rc;
	return resolver_close_open(resolver,
		   &resolver->result->items[resolver->result->item_count - 1].row, err) == 0
	    ? 1
	    : -1;
}

static bool
resolver_result_is_empty(const struct resolver_result *result)
{
	return deletion_is_live(result->base.partition_deletion) && !result->base.has_static_row &&
	    result->item_count == 0;
}

int
resolver_merge_partition(struct data_resolver *resolver, struct error *err)
{
	int rc;

	if (resolver_begin_partition(resolver, err) != 0)
		return -1;
	rc = resolver_merge_items(resolver, err);
	if (rc < 0 || resolver_ask_silent(resolver, err) != 0)
		return -1;
	if (rc == 0)
		return 0;
	if (resolver_count_static(resolver, err) != 0 || resolver_repair_end(resolver, err) != 0)
		return -1;
	if (resolver_result_is_empty(resolver->result))
		return 1;
	resolver->results = resolver_room(resolver->arena, resolver->results,
	    sizeof(*resolver->results), resolver->result_count, &resolver->result_room);
	if (resolver->results == NULL)
		return resolver_no_memory(err);
	resolver->results[resolver->result_count++] = resolver->result;
	return 1;
}
