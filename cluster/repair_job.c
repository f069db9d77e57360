/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/repair_internal.h"

/* One table of a session: all replicas make trees, pairs that differ exchange (repair/RepairJob, SyncTask). */

/* A question of the job that is out: which participant's. */
struct repair_job_question {
	struct repair_job *job;
	uint32_t index;
};

static uint32_t
repair_job_peers(const struct repair_job *job)
{
	return job->session->common->peer_count;
}

static uint32_t
repair_job_ranges(const struct repair_job *job)
{
	return job->session->common->range_count;
}

static void
repair_job_drop_trees(struct repair_job *job)
{
	for (uint32_t i = 0;
	     job->trees != NULL && i < repair_job_peers(job) * repair_job_ranges(job); i++)
		merkle_tree_free(job->trees[i]);
	free(job->trees);
	job->trees = NULL;
}

void
repair_job_cancel(struct repair_job *job)
{
	for (uint32_t i = 0; i < job->call_count; i++) {
		if (job->calls[i] == NULL)
			continue;
		free(job->calls[i]->context);
		repair_call_cancel(job->calls[i]);
	}
	job->call_count = 0;
	job->state = JOB_DONE;
	repair_job_drop_trees(job);
}

void
repair_job_fini(struct repair_job *job)
{
	for (uint32_t i = 0; i < job->call_count; i++)
		if (job->calls[i] != NULL)
			free(job->calls[i]->context);
	repair_job_drop_trees(job);
	free(job->depths);
	free(job->chains);
	free(job->is_asked);
	free(job->calls);
}

void
repair_job_end(struct repair_job *job, const struct error *err)
{
	repair_job_cancel(job);
	repair_job_ended(job, err);
}

void
repair_job_ask(struct repair_job *job, uint32_t index, const struct repair_message *message,
    repair_call_fn on_done)
{
	struct repair_job_question *question = xzalloc(sizeof(*question));
	struct repair_command *command = job->session->command;
	struct buffer payload;

	question->job = job;
	question->index = index;
	if (job->call_count == job->call_room) {
		job->call_room = job->call_room * 2 + 4;
		job->calls = xrealloc(job->calls, job->call_room * sizeof(struct repair_call *));
	}
	job->pending++;
	buffer_init(&payload);
	repair_message_encode(message, &payload);
	job->calls[job->call_count++] =
	    repair_call(command->repairs, job->session->common->peers[index], message->verb,
		buffer_slice(&payload), &command->trace, on_done, question);
	buffer_fini(&payload);
}

/* Its answer is here: it is not among those that are out any more. */
static uint32_t
repair_job_take(struct repair_job_question *question)
{
	struct repair_job *job = question->job;
	uint32_t index = question->index;

	for (uint32_t i = 0; i < job->call_count; i++) {
		if (job->calls[i] == NULL || job->calls[i]->context != question)
			continue;
		job->calls[i] = job->calls[--job->call_count];
		break;
	}
	free(question);
	job->pending--;
	return index;
}

struct repair_job *
repair_job_answered(void *context)
{
	struct repair_job *job = ((struct repair_job_question *)context)->job;

	repair_job_take(context);
	return job;
}

static struct repair_message
repair_job_message(const struct repair_job *job, enum verb verb)
{
	return (struct repair_message){.verb = verb,
	    .parent = job->session->command->parent,
	    .session = job->session->id,
	    .table = job->table->id};
}

/* ---- differences ------------------------------------------------------------------------------------- */

static void
repair_job_synced(void *context, struct peer *peer, struct slice result, const struct error *err)
{
	struct repair_job *job = ((struct repair_job_question *)context)->job;

	(void)peer;
	(void)result;
	repair_job_take(context);
	if (err == NULL && job->pending == 0)
		repair_trace(job->session->command, "%s is fully synced", job->table->name);
	if (err != NULL)
		repair_job_end(job, err);
	else if (job->pending == 0)
		repair_job_end(job, NULL);
}

/* The `a`th participant fetches from the `b`th or, where that is not all, exchanges with it. */
static void
repair_job_sync(struct repair_job *job, uint32_t a, uint32_t b, const struct ring_range *ranges,
    uint32_t count, bool is_pull)
{
	struct repair_message message = repair_job_message(job, VERB_SYNC_REQ);

	message.flags = is_pull ? REPAIR_IS_PULL : 0;
	message.endpoint_count = 1;
	message.endpoints = &job->session->common->peers[b]->endpoint;
	message.ranges = ranges;
	message.range_count = count;
	repair_job_ask(job, a, &message, repair_job_synced);
}

static int
repair_job_sync_optimised(struct repair_job *job, struct error *err)
{
	uint32_t peers = repair_job_peers(job);
	struct repair_fetch *fetches = NULL;

	if (repair_job_reduce(job, &fetches, err) != 0)
		return -1;
	for (uint32_t to = 0; to < peers; to++) {
		for (uint32_t from = 0; from < peers; from++) {
			const struct repair_fetch *fetch = &fetches[to * peers + from];

			if (fetch->count > 0)
				repair_job_sync(job, to, from, fetch->ranges, fetch->count, true);
		}
	}
	repair_fetches_free(fetches, peers);
	return 0;
}

static bool
repair_job_is_optimised(const struct repair_job *job)
{
	const struct repair_options *options = &job->session->command->options;

	return options->optimises_streams && !options->is_pull;
}

/* Two participants' trees; the first one, which is this node where it is one of the pair, is asked to do it. */
static int
repair_job_compare(struct repair_job *job, uint32_t a, uint32_t b, struct error *err)
{
	const struct repair_options *options = &job->session->command->options;
	char names[2][ENDPOINT_TEXT_SIZE], text[2 * ENDPOINT_TEXT_SIZE + 128];
	uint32_t ranges = repair_job_ranges(job), count = 0;
	struct ring_range *all = NULL;
	int rc = 0;

	for (uint32_t i = 0; i < ranges && rc == 0; i++) {
		struct merkle_range *found = NULL;
		uint32_t found_count = 0;

		rc = merkle_tree_difference(job->trees[a * ranges + i], job->trees[b * ranges + i],
		    &found, &found_count, err);
		if (rc == 0 && found_count > 0) {
			all = xrealloc(all, (count + found_count) * sizeof(*all));
			for (uint32_t j = 0; j < found_count; j++)
				all[count++] = (struct ring_range){found[j].left, found[j].right};
		}
		free(found);
	}
	if (rc == 0) {
		endpoint_format(&job->session->common->peers[a]->endpoint, names[0]);
		endpoint_format(&job->session->common->peers[b]->endpoint, names[1]);
		if (count == 0)
			snprintf(text, sizeof(text), "Endpoints /%s and /%s are consistent for %s",
			    names[0], names[1], job->table->name);
		else
			snprintf(text, sizeof(text),
			    "Endpoints /%s and /%s have %u range(s) out of sync for %s", names[0],
			    names[1], (unsigned)count, job->table->name);
		log_info("%s", text);
		repair_trace(job->session->command, "%s", text);
		job->synced_ranges += count;
		if (count > 0 && options->preview == REPAIR_PREVIEW_NONE &&
		    !repair_job_is_optimised(job))
			repair_job_sync(job, a, b, all, count, options->is_pull);
	}
	free(all);
	return rc;
}

static void
repair_job_compare_all(struct repair_job *job)
{
	struct repair_command *command = job->session->command;
	struct error err;

	job->state = JOB_SYNC;
	repair_reach(job->session->command->repairs, &job->history, REPAIR_JOB_VALIDATION_COMPLETE);
	for (uint32_t a = 0; a < repair_job_peers(job); a++) {
		for (uint32_t b = a + 1; b < repair_job_peers(job); b++) {
			if (repair_job_compare(job, a, b, &err) == 0)
				continue;
			repair_job_end(job, &err);
			return;
		}
	}
	if (command->options.preview == REPAIR_PREVIEW_NONE && repair_job_is_optimised(job) &&
	    repair_job_sync_optimised(job, &err) != 0) {
		repair_job_end(job, &err);
		return;
	}
	if (job->pending > 0)
		repair_reach(command->repairs, &job->history, REPAIR_JOB_STREAM_START);
	repair_job_drop_trees(job);
	command->preview_ranges +=
	    command->options.preview != REPAIR_PREVIEW_NONE ? job->synced_ranges : 0;
	if (job->pending == 0)
		repair_job_end(job, NULL);
}

/* ---- trees -------------------------------------------------------------------------------------------- */

static void repair_job_validate_next(struct repair_job *job, uint32_t chain);

static int
repair_job_take_trees(
    struct repair_job *job, uint32_t index, struct slice result, struct error *err)
{
	struct reader reader = reader_of(result);
	uint32_t ranges = repair_job_ranges(job);
	uint64_t count = reader_vint(&reader);

	if (count != ranges)
		return error_set(err, ERROR_PROTOCOL,
		    "a validation brought %" PRIu64 " trees instead of %u", count,
		    (unsigned)ranges);
	for (uint32_t i = 0; i < ranges; i++) {
		struct slice encoded = reader_bytes(&reader, reader_vint(&reader));

		if (reader.is_failed)
			return error_set(err, ERROR_PROTOCOL, "a validation's trees are damaged");
		if (merkle_tree_decode(encoded, &job->trees[index * ranges + i], err) != 0)
			return -1;
		/* What it claims to be is checked by the comparison. */
	}
	return 0;
}

static void
repair_job_validated(void *context, struct peer *peer, struct slice result, const struct error *err)
{
	struct repair_job *job = ((struct repair_job_question *)context)->job;
	struct repair_command *command = job->session->command;
	char address[ENDPOINT_TEXT_SIZE], session[UUID_TEXT_SIZE];
	uint32_t index = repair_job_take(context);
	struct error own;

	endpoint_format(&peer->endpoint, address);
	if (err == NULL && repair_job_take_trees(job, index, result, &own) != 0)
		err = &own;
	if (err != NULL) {
		struct error named;

		error_set(&named, err->code, "[repair #%s on %s/%s] Validation failed in /%s: %s",
		    (uuid_format(&job->session->id, session), session), command->options.keyspace,
		    job->table->name, address, err->text);
		repair_job_end(job, &named);
		return;
	}
	log_debug("Received merkle tree for %s from /%s", job->table->name, address);
	repair_trace(command, "Received merkle tree for %s from /%s", job->table->name, address);
	repair_job_validate_next(job, job->chains[index]);
	if (job->pending == 0)
		repair_job_compare_all(job);
}

/* The next participant of the chain. */
static void
repair_job_validate_next(struct repair_job *job, uint32_t chain)
{
	struct repair_message message = repair_job_message(job, VERB_VALIDATION_REQ);

	for (uint32_t i = 0; i < repair_job_peers(job); i++) {
		if (job->is_asked[i] || job->chains[i] != chain)
			continue;
		job->is_asked[i] = true;
		message.now_seconds = job->now_seconds;
		message.ranges = job->session->common->ranges;
		message.range_count = repair_job_ranges(job);
		message.depths = job->depths;
		repair_job_ask(job, i, &message, repair_job_validated);
		return;
	}
}

static void
repair_job_validate(struct repair_job *job)
{
	uint32_t chains = 0;

	job->state = JOB_VALIDATION;
	repair_reach(job->session->command->repairs, &job->history, REPAIR_JOB_VALIDATION_START);
	job->now_seconds = env_wall_us(job->session->command->repairs->env->env) / 1000000;
	for (uint32_t i = 0; i < repair_job_peers(job); i++)
		if (job->chains[i] >= chains)
			chains = job->chains[i] + 1;
	for (uint32_t i = 0; i < chains; i++)
		repair_job_validate_next(job, i);
}

static void
repair_job_snapshot_taken(
    void *context, struct peer *peer, struct slice result, const struct error *err)
{
	struct repair_job *job = ((struct repair_job_question *)context)->job;
	char address[ENDPOINT_TEXT_SIZE];
	struct error named;

	(void)result;
	repair_job_take(context);
	if (err != NULL) {
		error_set(&named, err->code, "Could not create snapshot at /%s: %s",
		    endpoint_format(&peer->endpoint, address), err->text);
		repair_job_end(job, &named);
	} else if (job->pending == 0) {
		repair_reach(
		    job->session->command->repairs, &job->history, REPAIR_JOB_SNAPSHOT_COMPLETE);
		repair_job_validate(job);
	}
}

static void
repair_job_snapshot(struct repair_job *job)
{
	struct repair_message message = repair_job_message(job, VERB_SNAPSHOT_MSG);

	job->state = JOB_SNAPSHOT;
	repair_reach(job->session->command->repairs, &job->history, REPAIR_JOB_SNAPSHOT_START);
	for (uint32_t i = 0; i < repair_job_peers(job); i++)
		repair_job_ask(job, i, &message, repair_job_snapshot_taken);
}

/* ---- the beginning --------------------------------------------------------------------------------------- */

static double
repair_range_share(struct ring_range range)
{
	uint64_t size = (uint64_t)range.right - (uint64_t)range.left;

	return size == 0 ? 1.0 : (double)size / 18446744073709551616.0;
}

/* Depths by the partitions that the participants have, spread as tokens are. */
static void
repair_job_set_depths(struct repair_job *job)
{
	struct repair_command *command = job->session->command;
	const struct repair_common *common = job->session->common;
	uint32_t trees = common->range_count * common->peer_count;
	double whole = 0;

	for (uint32_t i = 0; i < command->plan.common_count; i++)
		for (uint32_t j = 0; j < command->plan.commons[i].range_count; j++)
			whole += repair_range_share(command->plan.commons[i].ranges[j]);
	job->depths = xcalloc((size_t)common->range_count + 1, 1);
	for (uint32_t i = 0; i < common->range_count; i++) {
		double share = whole > 0 ? repair_range_share(common->ranges[i]) / whole : 1;
		uint64_t partitions = (uint64_t)((double)job->table->partitions * share) + 1;
		uint32_t depth =
		    merkle_depth(partitions, trees, command->repairs->ops.session_space);

		if (depth > command->repairs->ops.depth_max)
			depth = command->repairs->ops.depth_max;
		job->depths[i] = (uint8_t)depth;
	}
}

static void
repair_job_set_chains(struct repair_job *job)
{
	struct repair_command *command = job->session->command;
	const struct repair_common *common = job->session->common;
	const struct topology *topology = topology_acquire(command->repairs->topology);

	job->chains = xcalloc(common->peer_count, sizeof(*job->chains));
	for (uint32_t i = 0; i < common->peer_count; i++) {
		const char *datacenter = topology_datacenter(topology, common->peers[i]);

		if (command->options.parallelism == REPAIR_PARALLEL)
			job->chains[i] = i;
		if (command->options.parallelism != REPAIR_DC_PARALLEL)
			continue;
		job->chains[i] = i;
		for (uint32_t j = 0; j < i; j++)
			if (topology_datacenter(topology, common->peers[j]) == datacenter)
				job->chains[i] = job->chains[j];
	}
	topology_release(command->repairs->topology, topology);
}

void
repair_job_start(struct repair_job *job)
{
	const struct repair_options *options = &job->session->command->options;

	if (options->is_paxos_only ||
	    (!options->skips_paxos && options->preview == REPAIR_PREVIEW_NONE &&
		job->session->command->repairs->ops.paxos != NULL))
		repair_job_paxos(job);
	else
		repair_job_compare_data(job);
}

void
repair_job_compare_data(struct repair_job *job)
{
	struct repair_command *command = job->session->command;
	uint32_t peers = repair_job_peers(job);

	job->trees =
	    xcalloc((size_t)peers * repair_job_ranges(job) + 1, sizeof(struct merkle_tree *));
	job->is_asked = xcalloc(peers, sizeof(bool));
	repair_job_set_depths(job);
	repair_job_set_chains(job);
	/* SSTables of an incremental repair stand apart already: nothing changes them. */
	if (command->options.parallelism == REPAIR_PARALLEL || command->options.is_incremental)
		repair_job_validate(job);
	else
		repair_job_snapshot(job);
}
