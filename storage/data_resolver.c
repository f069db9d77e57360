/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/data_resolver_internal.h"
#include "storage/merge.h"

/*
 * Answers are taken apart into partitions at once: a run walks them as often as it must. A run merges partition
 * after partition until the limit is reached, everything is merged, or an answer that a limit cut is used up;
 * rows to fetch for replica filtering protection are collected on the way, as many as can be seen.
 */

enum {
	RESOLVER_ASK_ROWS_MIN = 16, /* of a continuation: one row more is as dear as some */
};

int
resolver_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory to merge the answers of replicas");
}

void *
resolver_room(struct arena *arena, void *array, size_t size, uint32_t count, uint32_t *room)
{
	uint32_t more = *room == 0 ? 8 : 2 * *room;
	void *grown;

	if (count < *room)
		return array;
	grown = arena_calloc(arena, more, size);
	if (grown == NULL)
		return NULL;
	if (count != 0)
		memcpy(grown, array, count * size);
	*room = more;
	return grown;
}

static bool
resolver_is_row_filter(const struct filter_expression *filter)
{
	return filter->column->kind == COLUMN_REGULAR || filter->column->kind == COLUMN_CLUSTERING;
}

struct data_resolver *
data_resolver_new(const struct read_command *command, uint32_t replica_count, struct arena *arena)
{
	struct data_resolver *resolver = arena_zalloc(arena, sizeof(*resolver));

	if (resolver == NULL)
		return NULL;
	resolver->command = command;
	resolver->arena = arena;
	resolver->replica_count = replica_count;
	resolver->replicas = arena_calloc(arena, replica_count, sizeof(*resolver->replicas));
	if (resolver->replicas == NULL)
		return NULL;
	for (uint32_t i = 0; i < command->filter_count; i++) {
		if (resolver_is_row_filter(&command->filters[i]))
			resolver->filters_rows = true;
		else
			resolver->filters_partitions = true;
	}
	return resolver;
}

/* ---- answers ------------------------------------------------------------------------------------ */

/* The deletion that a marker leaves open, in the order of the iteration. */
static struct deletion
resolver_opens(const struct marker *marker, bool is_reversed)
{
	if (is_reversed)
		return bound_closes(marker->kind) ? marker->close : DELETION_LIVE;
	return bound_opens(marker->kind) ? marker->open : DELETION_LIVE;
}

/*
 * Where an answer was cut inside a range tombstone, its end and the beginning of the rest stand at one place:
 * they are one marker, or none. Returns false when `item` has to be added as it is.
 */
static bool
resolver_join_markers(struct resolver_partition *partition, const struct unfiltered *item)
{
	struct marker *last;
	struct deletion before, after;
	bool is_reversed = partition->command->clustering.is_reversed;

	if (partition->item_count == 0 || item->kind != UNFILTERED_MARKER ||
	    partition->items[partition->item_count - 1].kind != UNFILTERED_MARKER)
		return false;
	last = &partition->items[partition->item_count - 1].marker;
	if (!slice_equal(last->position, item->marker.position))
		return false;
	before = is_reversed ? last->open : last->close;
	after = resolver_opens(&item->marker, is_reversed);
	if (before.marked_for_delete_at == after.marked_for_delete_at &&
	    before.local_deletion_time == after.local_deletion_time) {
		partition->item_count--;
		return true;
	}
	marker_between(
	    last, is_reversed ? after : before, is_reversed ? before : after, &item->marker);
	return true;
}

static int
resolver_add_items(struct data_resolver *resolver, struct resolver_partition *partition,
    struct unfiltered_iterator *source, struct error *err)
{
	struct unfiltered item;
	int rc;

	while ((rc = unfiltered_iterator_next(source, &item, err)) > 0) {
		if (resolver_join_markers(partition, &item))
			continue;
		partition->items = resolver_room(resolver->arena, partition->items, sizeof(item),
		    partition->item_count, &partition->item_room);
		if (partition->items == NULL)
			return resolver_no_memory(err);
		partition->items[partition->item_count++] = item;
		if (item.kind == UNFILTERED_ROW)
			partition->last_row = item.row.position;
	}
	partition->end = rc == 0 ? read_response_partition_end(source) : READ_RESPONSE_COMPLETE;
	return rc;
}

static struct resolver_partition *
resolver_partition_new(struct data_resolver *resolver, uint32_t replica,
    const struct read_command *command, const struct unfiltered_iterator *source)
{
	struct resolver_partition *partition = arena_zalloc(resolver->arena, sizeof(*partition));

	if (partition == NULL)
		return NULL;
	partition->replica = replica;
	partition->command = command;
	partition->token = source->token;
	partition->key = source->key;
	partition->deletion = source->partition_deletion;
	partition->has_static = source->has_static_row;
	partition->static_row = source->static_row;
	return partition;
}

/* More of a partition: the same replica, a moment later. */
static int
resolver_continue(struct data_resolver *resolver, struct resolver_partition *partition,
    struct unfiltered_iterator *source, struct error *err)
{
	if (deletion_supersedes(source->partition_deletion, partition->deletion))
		partition->deletion = source->partition_deletion;
	if (!partition->has_static && source->has_static_row) {
		partition->has_static = true;
		partition->static_row = source->static_row;
	}
	return resolver_add_items(resolver, partition, source, err);
}

static int
resolver_compare(const struct resolver_partition *a, const struct resolver_partition *b)
{
	if (a->token != b->token)
		return a->token < b->token ? -1 : 1;
	return slice_compare(a->key, b->key);
}

static int
resolver_add_partition(struct data_resolver *resolver, uint32_t replica_index,
    const struct read_command *command, struct unfiltered_iterator *source, struct error *err)
{
	struct resolver_replica *replica = &resolver->replicas[replica_index];
	struct resolver_partition *partition =
	    resolver_partition_new(resolver, replica_index, command, source);
	uint32_t count = replica->partition_count;

	replica->partitions = resolver_room(resolver->arena, replica->partitions,
	    sizeof(*replica->partitions), count, &replica->partition_room);
	if (partition == NULL || replica->partitions == NULL)
		return resolver_no_memory(err);
	if (count != 0 && resolver_compare(replica->partitions[count - 1], partition) >= 0)
		return error_set(
		    err, ERROR_PROTOCOL, "a read answer goes on before the place where it ended");
	replica->partitions[replica->partition_count++] = partition;
	return resolver_add_items(resolver, partition, source, err);
}

int
resolver_add_fetch(struct data_resolver *resolver, struct resolver_partition *partition,
    const struct read_command *command, struct error *err)
{
	struct resolver_replica *replica = &resolver->replicas[partition->replica];
	struct resolver_request *request =
	    resolver_request_add(resolver, partition->replica, RESOLVER_REST_OF_PARTITION, command);
	uint32_t at = replica->fetched_count;

	replica->fetched = resolver_room(resolver->arena, replica->fetched,
	    sizeof(*replica->fetched), replica->fetched_count, &replica->fetched_room);
	if (request == NULL || replica->fetched == NULL)
		return resolver_no_memory(err);
	for (; at > 0 && resolver_compare(partition, replica->fetched[at - 1]) < 0; at--)
		replica->fetched[at] = replica->fetched[at - 1];
	replica->fetched[at] = partition;
	replica->fetched_count++;
	partition->command = request->public.command;
	request->partition = partition;
	return 0;
}

/* Is the answer's first partition the rest of the one that was cut? */
static bool
resolver_is_rest(const struct resolver_partition *cut, const struct unfiltered_iterator *source)
{
	return cut != NULL && cut->token == source->token && slice_equal(cut->key, source->key);
}

/* `cut`: the partition that the answer goes on with; NULL: none. */
static int
resolver_take_answer(struct data_resolver *resolver, uint32_t replica,
    const struct read_command *command, enum resolver_request_kind kind,
    struct resolver_partition *cut, struct slice encoded, struct error *err)
{
	struct read_response *response = arena_alloc(resolver->arena, sizeof(*response));
	struct partition_iterator *partitions;
	struct unfiltered_iterator *source;
	int rc;

	if (response == NULL)
		return resolver_no_memory(err);
	if (read_response_decode(encoded, command, resolver->arena, response, err) != 0 ||
	    read_response_partitions(response, resolver->arena, &partitions, err) != 0)
		return -1;
	if (cut != NULL)
		cut->end = READ_RESPONSE_COMPLETE;
	while ((rc = partition_iterator_next(partitions, &source, err)) > 0) {
		if (resolver_is_rest(cut, source))
			rc = resolver_continue(resolver, cut, source, err);
		else
			rc = resolver_add_partition(resolver, replica, command, source, err);
		unfiltered_iterator_close(source);
		cut = NULL;
		if (rc < 0)
			break;
	}
	if (rc == 0 && kind != RESOLVER_REST_OF_PARTITION)
		resolver->replicas[replica].is_complete = read_response_is_complete(partitions);
	partition_iterator_close(partitions);
	return rc < 0 ? -1 : 0;
}

int
data_resolver_add(
    struct data_resolver *resolver, uint32_t replica, struct slice encoded, struct error *err)
{
	resolver->replicas[replica].has_answer = true;
	return resolver_take_answer(
	    resolver, replica, resolver->command, RESOLVER_NEXT_PARTITIONS, NULL, encoded, err);
}

int
data_resolver_answer(
    struct data_resolver *resolver, uint32_t index, struct slice encoded, struct error *err)
{
	struct resolver_request *request = &resolver->requests[index];

	request->is_answered = true;
	return resolver_take_answer(resolver, request->public.replica, request->public.command,
	    request->kind, request->partition, encoded, err);
}

/* ---- requests ----------------------------------------------------------------------------------- */

uint32_t
data_resolver_request_count(const struct data_resolver *resolver)
{
	return resolver->request_count;
}

const struct data_resolver_request *
data_resolver_request(const struct data_resolver *resolver, uint32_t index)
{
	return &resolver->requests[index].public;
}

struct resolver_request *
resolver_request_add(struct data_resolver *resolver, uint32_t replica,
    enum resolver_request_kind kind, const struct read_command *command)
{
	struct read_command *copy = arena_alloc(resolver->arena, sizeof(*copy));
	struct resolver_request *request;

	resolver->requests = resolver_room(resolver->arena, resolver->requests,
	    sizeof(*resolver->requests), resolver->request_count, &resolver->request_room);
	if (copy == NULL || resolver->requests == NULL)
		return NULL;
	*copy = *command;
	request = &resolver->requests[resolver->request_count++];
	*request = (struct resolver_request){{replica, copy}, kind, NULL, false};
	return request;
}

/* How many rows to ask for: what is missing, more each time. */
static uint32_t
resolver_rows_to_ask(const struct data_resolver *resolver, uint32_t asked)
{
	uint32_t rows = resolver->partition_rows_left < resolver->rows_left
	    ? resolver->partition_rows_left
	    : resolver->rows_left;

	if (rows < RESOLVER_ASK_ROWS_MIN)
		rows = RESOLVER_ASK_ROWS_MIN;
	if (asked > UINT32_MAX / 4)
		return rows;
	return rows > 2 * asked ? rows : 2 * asked;
}

/* The token range from a partition on, or from behind it. */
static void
resolver_range_from(
    struct read_command *command, const struct resolver_partition *partition, bool is_behind)
{
	command->range.start_key = partition->key;
	command->range.left = partition->token;
	command->range.includes_left = true;
	command->range.start_key_exclusive = is_behind;
	command->after_position = is_behind ? slice_null : partition->last_row;
}

int
resolver_ask_rest(
    struct data_resolver *resolver, struct resolver_partition *partition, struct error *err)
{
	const struct resolver_replica *replica = &resolver->replicas[partition->replica];
	bool is_last = resolver->command->is_range && !replica->is_complete &&
	    partition == replica->partitions[replica->partition_count - 1] &&
	    partition->end == READ_RESPONSE_ROW_LIMIT;
	struct read_command command = *partition->command;
	struct resolver_request *request;
	enum resolver_request_kind kind =
	    is_last ? RESOLVER_REST_OF_RANGE : RESOLVER_REST_OF_PARTITION;

	partition->asked = resolver_rows_to_ask(resolver, partition->asked);
	command.row_limit = partition->asked;
	if (is_last) {
		resolver_range_from(&command, partition, false);
	} else {
		command.is_range = false;
		command.key = partition->key;
		command.token = partition->token;
		command.after_position = partition->last_row;
		command.per_partition_limit = READ_LIMIT_NONE;
	}
	request = resolver_request_add(resolver, partition->replica, kind, &command);
	if (request == NULL)
		return resolver_no_memory(err);
	request->partition = partition;
	return 0;
}

/* The replica's answer is used up, and a limit had ended it. */
static int
resolver_ask_next(struct data_resolver *resolver, uint32_t index, struct error *err)
{
	const struct resolver_replica *replica = &resolver->replicas[index];
	struct resolver_partition *last = replica->partitions[replica->partition_count - 1];
	struct read_command command = *resolver->command;

	resolver->partition_rows_left = READ_LIMIT_NONE;
	last->asked = resolver_rows_to_ask(resolver, last->asked);
	command.row_limit = last->asked;
	resolver_range_from(&command, last, true);
	if (resolver_request_add(resolver, index, RESOLVER_NEXT_PARTITIONS, &command) == NULL)
		return resolver_no_memory(err);
	return 0;
}

/* ---- a run -------------------------------------------------------------------------------------- */

/* The replica's next partition; NULL: it has none. */
static struct resolver_partition *
resolver_head(const struct resolver_replica *replica)
{
	return replica->at < replica->partition_count ? replica->partitions[replica->at] : NULL;
}

/* Everybody's next partition must be known before the least can be told. 1: it is; 0: it was asked for. */
static int
resolver_check_heads(struct data_resolver *resolver, struct error *err)
{
	uint32_t before = resolver->request_count;

	for (uint32_t i = 0; i < resolver->replica_count; i++) {
		const struct resolver_replica *replica = &resolver->replicas[i];

		if (resolver->command->is_range && replica->has_answer && !replica->is_complete &&
		    replica->partition_count != 0 && resolver_head(replica) == NULL &&
		    resolver_ask_next(resolver, i, err) != 0)
			return -1;
	}
	return resolver->request_count == before;
}

static int
resolver_add_source(
    struct data_resolver *resolver, struct resolver_partition *partition, struct error *err)
{
	resolver->sources = resolver_room(resolver->arena, resolver->sources,
	    sizeof(*resolver->sources), resolver->source_count, &resolver->source_room);
	if (resolver->sources == NULL)
		return resolver_no_memory(err);
	partition->at = 0;
	partition->open = DELETION_LIVE;
	resolver->sources[resolver->source_count++] = partition;
	return 0;
}

/* All parts of the least partition become sources. 1, 0: none is left, -1. */
static int
resolver_gather(struct data_resolver *resolver, struct error *err)
{
	struct resolver_partition *least = NULL;

	for (uint32_t i = 0; i < resolver->replica_count; i++) {
		struct resolver_partition *head = resolver_head(&resolver->replicas[i]);

		if (head != NULL && (least == NULL || resolver_compare(head, least) < 0))
			least = head;
	}
	resolver->source_count = 0;
	for (uint32_t i = 0; i < resolver->replica_count && least != NULL; i++) {
		struct resolver_replica *replica = &resolver->replicas[i];
		struct resolver_partition *head = resolver_head(replica);

		if (head != NULL && resolver_compare(head, least) == 0) {
			replica->at++;
			if (resolver_add_source(resolver, head, err) != 0)
				return -1;
		}
		for (; replica->fetched_at < replica->fetched_count; replica->fetched_at++) {
			struct resolver_partition *fetched = replica->fetched[replica->fetched_at];
			int order = resolver_compare(fetched, least);

			if (order > 0)
				break;
			if (order == 0 && resolver_add_source(resolver, fetched, err) != 0)
				return -1;
		}
	}
	return least != NULL;
}

static void
resolver_begin(struct data_resolver *resolver)
{
	resolver->request_count = 0;
	resolver->result_count = 0;
	resolver->rows_left = resolver->command->row_limit;
	for (uint32_t i = 0; i < resolver->replica_count; i++) {
		struct resolver_replica *replica = &resolver->replicas[i];

		replica->at = replica->fetched_at = 0;
		replica->mutation_count = 0;
	}
}

static bool
resolver_has_all_answers(const struct data_resolver *resolver)
{
	for (uint32_t i = 0; i < resolver->request_count; i++)
		if (!resolver->requests[i].is_answered)
			return false;
	return true;
}

enum data_resolver_state
data_resolver_run(struct data_resolver *resolver, struct error *err)
{
	int rc;

	if (!resolver_has_all_answers(resolver)) {
		error_set(err, ERROR_SERVER, "a request of a data resolver was not answered");
		return DATA_RESOLVER_FAILED;
	}
	resolver_begin(resolver);
	while (resolver->rows_left != 0) {
		rc = resolver_check_heads(resolver, err);
		if (rc > 0)
			rc = resolver_gather(resolver, err);
		if (rc > 0)
			rc = resolver_merge_partition(resolver, err);
		if (rc < 0)
			return DATA_RESOLVER_FAILED;
		if (rc == 0)
			break;
	}
	resolver->is_done = resolver->request_count == 0;
	return resolver->is_done ? DATA_RESOLVER_DONE : DATA_RESOLVER_ASK;
}

const struct mutation *
data_resolver_repairs(const struct data_resolver *resolver, uint32_t replica, uint32_t *count)
{
	*count = resolver->is_done ? resolver->replicas[replica].mutation_count : 0;
	return resolver->replicas[replica].mutations;
}

/* ---- the result --------------------------------------------------------------------------------- */

struct resolver_results {
	struct partition_iterator base;
	struct data_resolver *resolver;
	uint32_t at;
};

static int
resolver_result_next(
    struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct resolver_result *result = (struct resolver_result *)iterator;

	(void)err;
	if (result->at == result->item_count)
		return 0;
	*out = result->items[result->at++];
	return 1;
}

static void
resolver_result_close(struct unfiltered_iterator *iterator)
{
	(void)iterator; /* all of it is the arena's */
}

static const struct unfiltered_iterator_ops resolver_result_ops = {
    resolver_result_next,
    resolver_result_close,
};

static int
resolver_results_next(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *err)
{
	struct resolver_results *results = (struct resolver_results *)iterator;
	struct resolver_result *result;

	(void)err;
	if (results->at == results->resolver->result_count)
		return 0;
	result = results->resolver->results[results->at++];
	result->base.ops = &resolver_result_ops;
	result->at = 0;
	*out = &result->base;
	return 1;
}

static void
resolver_results_close(struct partition_iterator *iterator)
{
	(void)iterator;
}

static const struct partition_iterator_ops resolver_results_ops = {
    resolver_results_next,
    resolver_results_close,
};

struct partition_iterator *
data_resolver_partitions(struct data_resolver *resolver)
{
	struct resolver_results *results = arena_alloc(resolver->arena, sizeof(*results));

	if (results == NULL || !resolver->is_done)
		return NULL;
	*results = (struct resolver_results){{&resolver_results_ops}, resolver, 0};
	return &results->base;
}
