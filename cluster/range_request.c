/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of a token range over a ring (service/reads/range/RangeCommands, RangeCommandIterator): the range is cut
 * where the replicas change, and the pieces are read in order, a batch of them at once. After each batch the live
 * rows are counted: with enough of them, or at the range's end, the pieces' rows are handed on one after the
 * other. How many pieces make a batch follows from how many rows the pieces before gave. A piece whose replicas are late, or
 * fail, asks one more (speculation.h).
 */
#include <stdlib.h>
#include <string.h>
#include "cluster/read_request.h"

enum { RANGE_CONCURRENCY_MAX = 32 }; /* Cassandra: 10 for each core */

struct range_scan {
	const struct topology *topology; /* one reference */
	struct range_plans plans;
	const struct read_command *command; /* of the caller */
	uint32_t range_count; /* of the ring, for the estimate */
	uint32_t ranges_read;
	uint32_t concurrency;
	uint32_t rows; /* live ones so far */
	bool is_first; /* no piece was begun */
	bool is_done; /* all pieces were begun */
	struct range_plan *batch; /* room for RANGE_CONCURRENCY_MAX */
	struct partition_iterator **sources; /* of all batches; in the caller's arena */
	uint32_t source_count, source_capacity;
};

void
range_scan_free(struct read_request *request)
{
	if (request->scan == NULL)
		return;
	topology_release(request->coordinator->ring.topology, request->scan->topology);
	request->scan = NULL;
}

static int
range_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a read of a range");
}

/* The caller's command, cut to a piece. */
static void
range_piece_command(struct range_scan *scan, const struct range_plan *piece, bool is_first,
    bool is_last, struct read_command *out)
{
	const struct read_command *command = scan->command;

	*out = *command;
	if (!is_first) {
		out->after_position = slice_null;
		out->range.left = piece->range.left;
		out->range.includes_left = false;
		out->range.start_key = slice_null;
		out->range.start_key_exclusive = false;
	}
	if (!is_last) {
		out->range.right = piece->range.right;
		out->range.excludes_right = false;
	}
	if (command->row_limit != READ_LIMIT_NONE)
		out->row_limit = command->row_limit - scan->rows;
}

/* Take the next pieces: 0 and *count, or -1. */
static int
range_scan_take(struct range_scan *scan, uint32_t *count, struct error *err)
{
	*count = 0;
	while (*count < scan->concurrency && !scan->is_done) {
		int rc = range_plans_next(&scan->plans, &scan->batch[*count], err);

		if (rc < 0)
			return -1;
		if (rc == 0)
			scan->is_done = true;
		else
			(*count)++;
	}
	/* Is it the last one? Whoever must not count rows is told so. */
	if (!scan->is_done)
		scan->is_done = scan->plans.is_done;
	return 0;
}

/* Make and describe the parts of the next batch. */
static int
range_request_make_batch(struct read_request *request, uint32_t count, struct error *err)
{
	struct range_scan *scan = request->scan;
	uint32_t replicas = 0;

	for (uint32_t i = 0; i < count; i++)
		replicas += scan->batch[i].plan.count;
	if (read_request_make_parts(request, count, replicas, 0) != 0)
		return range_no_memory(err);
	if (trace_is_on(&request->trace))
		trace_event(request->coordinator->ring.cluster, &request->trace,
		    request->read->worker, "Submitting %u concurrent range requests",
		    (unsigned)count);
	for (uint32_t i = 0; i < count; i++) {
		struct read_part *part = &request->parts[i];

		range_piece_command(scan, &scan->batch[i], scan->is_first && i == 0,
		    scan->is_done && i + 1 == count, &part->own);
		if (read_part_init(part, &part->own, &scan->batch[i].plan, true, err) != 0)
			return -1;
		scan->ranges_read += scan->batch[i].vnode_count;
	}
	scan->is_first = false;
	return 0;
}

/* ---- Counting ------------------------------------------------------------------------------ */

static int
range_part_count_rows(struct read_part *part, uint32_t *rows, struct error *err)
{
	struct arena *arena = part->request->read->arena;
	struct partition_iterator *source;
	struct live_reader reader;
	struct live_row live;
	int rc;

	if (read_part_source(part, &source, err) != 0)
		return -1;
	live_reader_init(&reader, part->command, source, arena);
	while ((rc = live_reader_next(&reader, &live, err)) > 0)
		(*rows)++;
	live_reader_fini(&reader);
	return rc;
}

/* RangeCommandIterator.computeConcurrencyFactor. */
static void
range_scan_adjust(struct range_scan *scan)
{
	uint32_t left =
	    scan->range_count > scan->ranges_read ? scan->range_count - scan->ranges_read : 1;
	uint32_t most = left < RANGE_CONCURRENCY_MAX ? left : RANGE_CONCURRENCY_MAX;
	double rows_per_range, wanted;

	if (scan->rows == 0 || scan->command->row_limit == READ_LIMIT_NONE) {
		scan->concurrency = most;
		return;
	}
	rows_per_range = (double)scan->rows / (scan->ranges_read > 0 ? scan->ranges_read : 1);
	wanted = (scan->command->row_limit - scan->rows) / rows_per_range + 0.5;
	scan->concurrency = wanted >= most ? most : wanted < 1 ? 1 : (uint32_t)wanted;
}

/* ---- Batches ------------------------------------------------------------------------------- */

static int
range_scan_keep(struct read_request *request, struct error *err)
{
	struct range_scan *scan = request->scan;
	uint32_t needed = scan->source_count + request->part_count;

	if (needed > scan->source_capacity) {
		uint32_t capacity = needed * 2;
		struct partition_iterator **sources = arena_calloc(
		    request->read->arena, capacity, sizeof(struct partition_iterator *));

		if (sources == NULL)
			return range_no_memory(err);
		if (scan->source_count > 0)
			memcpy(sources, scan->sources, scan->source_count * sizeof(*sources));
		scan->sources = sources;
		scan->source_capacity = capacity;
	}
	for (uint32_t i = 0; i < request->part_count; i++) {
		if (read_part_source(&request->parts[i], &scan->sources[scan->source_count], err) !=
		    0)
			return -1;
		scan->source_count++;
	}
	return 0;
}

static void
range_request_fail(struct read_request *request, const struct error *err, struct worker *worker)
{
	struct range_scan *scan = request->scan;

	for (uint32_t i = 0; i < scan->source_count; i++)
		partition_iterator_close(scan->sources[i]);
	read_request_fail(request, err, worker);
}

static bool
range_scan_is_full(const struct range_scan *scan)
{
	return scan->command->row_limit != READ_LIMIT_NONE &&
	    scan->rows >= scan->command->row_limit;
}

void
range_request_settled(struct read_request *request, struct worker *worker)
{
	struct range_scan *scan = request->scan;
	struct error err;
	uint32_t count;
	int rc = 0;

	/* At the range's end nobody needs to know how many there are. */
	for (uint32_t i = 0; i < request->part_count && rc == 0 && !scan->is_done; i++)
		rc = range_part_count_rows(&request->parts[i], &scan->rows, &err);
	if (rc == 0)
		rc = range_scan_keep(request, &err);
	if (rc == 0 && !scan->is_done && !range_scan_is_full(scan)) {
		range_scan_adjust(scan);
		rc = range_scan_take(scan, &count, &err);
		if (rc == 0 && count > 0) {
			rc = range_request_make_batch(request, count, &err);
			if (rc == 0) {
				read_request_send(
				    request, coordinator_now(request->coordinator), worker);
				return;
			}
		}
	}
	if (rc != 0)
		range_request_fail(request, &err, worker);
	else
		read_request_succeed(request, scan->sources, scan->source_count, worker);
}

/* ---- Starting ------------------------------------------------------------------------------ */

/* The range for the plans: where the left token itself is wanted, from the one before. */
static struct ring_range
range_of_command(const struct read_command *command)
{
	struct ring_range range = {command->range.left, command->range.right};

	if (command->range.includes_left && range.left != INT64_MIN)
		range.left--;
	return range;
}

static struct range_scan *
range_scan_new(struct coordinator *coordinator, struct coordinator_read *read,
    const struct topology *topology, const struct replication *replication)
{
	struct range_scan *scan = arena_zalloc(read->arena, sizeof(*scan));

	if (scan == NULL)
		return NULL;
	scan->batch = arena_calloc(read->arena, RANGE_CONCURRENCY_MAX, sizeof(*scan->batch));
	if (scan->batch == NULL)
		return NULL;
	scan->topology = topology;
	scan->command = read->command;
	scan->concurrency = 1;
	scan->is_first = true;
	range_plans_init(&scan->plans, topology, replication, range_of_command(read->command),
	    read->consistency, read->command->table->options.speculative_retry.kind != RETRY_NEVER,
	    coordinator->ring.snitch, read->arena);
	scan->range_count = range_plans_count(&scan->plans);
	return scan;
}

void
range_request_start(struct coordinator *coordinator, struct coordinator_read *read,
    const struct topology *topology, const struct replication *replication)
{
	struct range_scan *scan = range_scan_new(coordinator, read, topology, replication);
	struct read_request *request = NULL;
	uint32_t count = 0;
	struct error err;
	int rc = 0;

	if (scan == NULL)
		rc = range_no_memory(&err);
	if (rc == 0)
		rc = range_scan_take(scan, &count, &err);
	/* All of it is here: nothing to ask, nothing to copy. */
	if (rc == 0 && scan->is_done &&
	    (count == 0 ||
		(count == 1 && scan->batch[0].plan.contact_count == 1 &&
		    scan->batch[0].plan.replicas[0].peer->is_local))) {
		topology_release(coordinator->ring.topology, topology);
		coordinator_read_local(coordinator, read);
		return;
	}
	if (rc == 0) {
		request = read_request_new(coordinator, read, COORDINATOR_TIMEOUT_RANGE);
		if (request == NULL)
			rc = range_no_memory(&err);
	}
	if (rc == 0) {
		request->scan = scan;
		rc = range_request_make_batch(request, count, &err);
	}
	if (rc == 0) {
		read_request_begin(request, read->worker);
		return;
	}
	topology_release(coordinator->ring.topology, topology);
	if (request != NULL)
		read_request_unref(request);
	read->on_done(read, NULL, &err);
}
