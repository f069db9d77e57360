/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/paxos_repair.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"

/* A partition that is fought over is left to those who fight; then somebody says so. */
enum { PAXOS_REPAIR_BLOCK = 4 << 10, PAXOS_REPAIR_TRIES = 4, PAXOS_REPAIR_PARALLEL_MAX = 64 };

/* A partition whose round runs. */
struct paxos_repair_key {
	struct paxos_request request; /* first */
	struct paxos_repair *repair;
	struct uuid ballot; /* the one that is open */
	uint32_t tries;
};

static void paxos_repair_step(struct task *task, struct worker *worker);

static void
paxos_repair_end(struct paxos_repair *repair, const struct error *err)
{
	uint64_t finished = atomic_load_explicit(&repair->finished, memory_order_relaxed);

	if (finished > 0)
		log_info("Paxos repair of %s%s: %" PRIu64 " partition(s) finished",
		    repair->keyspace == NULL ? "what was left over" : "keyspace ",
		    repair->keyspace == NULL ? "" : repair->keyspace, finished);
	arena_fini(&repair->arena);
	schema_unref(repair->schema);
	repair->schema = NULL;
	repair->on_done(repair, err);
}

static void
paxos_repair_submit(struct paxos_repair *repair)
{
	struct error err;

	repair->task.run = paxos_repair_step;
	if (cluster_submit(
		repair->paxos->options.cluster, CLUSTER_STAGE_PAXOS_REPAIR, &repair->task))
		return;
	error_set(&err, ERROR_SHUTDOWN, "the node is stopping");
	paxos_repair_end(repair, &err);
}

/* ---- One partition ---- */

static void
paxos_repair_ready(struct paxos_request *request, const struct uuid *ballot)
{
	(void)ballot;
	paxos_propose(request, NULL);
}

static void
paxos_repair_finished(struct paxos_request *request, const struct error *err)
{
	struct paxos_repair_key *key = (struct paxos_repair_key *)request;
	struct paxos_repair *repair = key->repair;

	if (err != NULL && err->code == ERROR_READ_TIMEOUT && ++key->tries < PAXOS_REPAIR_TRIES) {
		paxos_begin(repair->paxos, request);
		return;
	}
	if (err != NULL && repair->takes_tracked)
		/* The next time. */
		paxos_tracker_open(&repair->paxos->acceptor.tracker, &request->table->id,
		    request->key, &key->ballot);
	if (err == NULL)
		atomic_fetch_add_explicit(&repair->finished, 1, memory_order_relaxed);
	else if (!atomic_flag_test_and_set(&repair->has_failed))
		repair->err = *err;
	/* Acquire and release: who goes on sees the error. */
	if (atomic_fetch_sub_explicit(&repair->running, 1, memory_order_acq_rel) == 1)
		paxos_repair_submit(repair);
}

/* NULL: not to be repaired, or no memory (repair->err). */
static struct paxos_repair_key *
paxos_repair_key(struct paxos_repair *repair, const struct paxos_open *open)
{
	const struct table_metadata *table = schema_table_by_id(repair->schema, &open->table);
	struct paxos_repair_key *key;
	bool is_local = paxos_ballot_is_local(&open->ballot);
	bool is_wanted = repair->table_count == 0;

	for (uint32_t i = 0; i < repair->table_count && !is_wanted; i++)
		is_wanted = uuid_equal(&repair->tables[i], &open->table);
	/* A table that was dropped, or what others keep in system.paxos. */
	if (table == NULL || !is_wanted ||
	    (repair->keyspace != NULL && !slice_equal_string(table->keyspace, repair->keyspace)))
		return NULL;
	key = arena_zalloc(&repair->arena, sizeof(*key));
	if (key == NULL) {
		if (!atomic_flag_test_and_set(&repair->has_failed))
			error_set(&repair->err, ERROR_NO_MEMORY, "no memory to repair Paxos");
		return NULL;
	}
	key->repair = repair;
	key->ballot = open->ballot;
	key->request =
	    (struct paxos_request){.keyspace = schema_keyspace(repair->schema, table->keyspace),
		.table = table,
		.key = open->key,
		.token = murmur3_token(open->key),
		.serial = is_local ? CONSISTENCY_LOCAL_SERIAL : CONSISTENCY_SERIAL,
		.commit = is_local ? CONSISTENCY_LOCAL_QUORUM : CONSISTENCY_QUORUM,
		.is_read = true,
		.on_ready = paxos_repair_ready,
		.on_done = paxos_repair_finished};
	return key;
}

/* ---- All ---- */

/* Ranges that wrap have two parts. */
static bool
paxos_repair_next_part(struct paxos_repair *repair)
{
	for (; repair->next_part < repair->range_count * 2; repair->next_part++) {
		const struct ring_range *range = &repair->ranges[repair->next_part / 2];
		bool wraps = range->left >= range->right && range->right != INT64_MIN;
		bool is_second = repair->next_part % 2 == 1;

		if (is_second && !wraps)
			continue;
		repair->walk.range =
		    (struct token_range){.left = is_second ? INT64_MIN : range->left,
			.right = wraps && !is_second ? INT64_MIN : range->right,
			.start_key = slice_null};
		repair->walk.is_done = false;
		repair->next_part++;
		return true;
	}
	return false;
}

/* More open ones into repair->open. 0: there are no more. */
static int
paxos_repair_more(struct paxos_repair *repair, struct error *err)
{
	struct paxos *paxos = repair->paxos;
	struct arena walked;

	/* The walk goes on behind a key of the old arena. */
	walked = repair->arena;
	arena_init(&repair->arena, PAXOS_REPAIR_BLOCK);
	schema_unref(repair->schema);
	repair->schema = paxos->options.schema(paxos->options.context);
	if (repair->takes_tracked && !repair->has_taken) {
		repair->has_taken = true;
		if (paxos_tracker_take(&paxos->acceptor.tracker, repair->before_us, &repair->arena,
			&repair->open, err) != 0) {
			arena_fini(&walked);
			return -1;
		}
	}
	while (repair->open == NULL) {
		if (repair->walk.is_done && !paxos_repair_next_part(repair))
			break;
		repair->walk.paxos_table = schema_table(
		    repair->schema, slice_of_string("system"), slice_of_string("paxos"));
		if (repair->walk.paxos_table == NULL ||
		    paxos_walk_next(&repair->walk, &repair->arena, &repair->open, err) != 0) {
			arena_fini(&walked);
			return -1;
		}
	}
	arena_fini(&walked);
	return repair->open != NULL;
}

static uint32_t
paxos_repair_parallelism(const struct paxos *paxos)
{
	uint32_t wanted = paxos->options.repair_parallelism;

	return wanted == 0                       ? 1
	    : wanted < PAXOS_REPAIR_PARALLEL_MAX ? wanted
						 : PAXOS_REPAIR_PARALLEL_MAX;
}

/* On the PaxosRepairStage, with no round running: begin the next few. */
static void
paxos_repair_step(struct task *task, struct worker *worker)
{
	struct paxos_repair *repair =
	    (struct paxos_repair *)((char *)task - offsetof(struct paxos_repair, task));
	uint32_t parallelism = paxos_repair_parallelism(repair->paxos);
	struct paxos_repair_key *keys[PAXOS_REPAIR_PARALLEL_MAX];
	struct error err;
	uint32_t count = 0;

	(void)worker;
	/* What nobody waits for goes on with the next partition. */
	while (count < parallelism && (repair->err.code == ERROR_NONE || repair->takes_tracked)) {
		struct paxos_open *open = repair->open;
		int rc;

		if (open == NULL && count > 0)
			break;
		rc = open != NULL ? 1 : paxos_repair_more(repair, &err);
		if (rc < 0)
			repair->err = err;
		if (rc == 0 || repair->open == NULL)
			break;
		open = repair->open;
		repair->open = open->next;
		keys[count] = paxos_repair_key(repair, open);
		count += keys[count] != NULL;
	}
	if (count == 0) {
		paxos_repair_end(repair, repair->err.code == ERROR_NONE ? NULL : &repair->err);
		return;
	}
	/* The last one that ends takes it from here, perhaps before this returns. */
	atomic_store_explicit(&repair->running, count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++)
		paxos_begin(repair->paxos, &keys[i]->request);
}

void
paxos_repair_start(struct paxos *paxos, struct paxos_repair *repair)
{
	repair->paxos = paxos;
	arena_init(&repair->arena, PAXOS_REPAIR_BLOCK);
	repair->schema = NULL;
	repair->open = NULL;
	repair->next_part = 0;
	repair->has_taken = false;
	repair->walk = (struct paxos_walk){
	    .acceptor = &paxos->acceptor, .before_us = repair->before_us, .is_done = true};
	atomic_init(&repair->running, 0);
	atomic_init(&repair->finished, 0);
	atomic_flag_clear(&repair->has_failed);
	repair->err.code = ERROR_NONE;
	paxos_repair_submit(repair);
}

bool
paxos_has_state(struct paxos *paxos, const struct keyspace_metadata *keyspace)
{
	struct schema *schema = paxos->options.schema(paxos->options.context);
	const struct table_metadata *table =
	    schema_table(schema, slice_of_string("system"), slice_of_string("paxos"));
	bool has = table != NULL && paxos_state_knows(&paxos->acceptor, table, keyspace);

	schema_unref(schema);
	return has;
}

/* ---- Every so often ---- */

struct paxos_auto {
	struct paxos *paxos;
	uint64_t interval_ns;
	struct cluster_timer timer;
	struct task task;
	struct paxos_repair repair;
};

static void
paxos_auto_done(struct paxos_repair *repair, const struct error *err)
{
	struct paxos_auto *each = repair->context;

	if (err != NULL && err->code == ERROR_SHUTDOWN)
		return;
	/* Partitions that could not be finished are known again; how far the walk came is not. */
	if (err != NULL && err->code != ERROR_UNAVAILABLE && err->code != ERROR_READ_TIMEOUT)
		atomic_store(&each->paxos->acceptor.tracker.has_forgotten, true);
	if (err != NULL)
		log_info("Paxos: not all that was left over could be finished: %s", err->text);
	cluster_timer_start(each->paxos->options.cluster, &each->timer, each->interval_ns);
}

/* What began since is under way, or its proposer still tries. */
static int64_t
paxos_auto_before_us(const struct paxos *paxos)
{
	const struct paxos_options *options = &paxos->options;
	uint64_t longest_ns = options->contention_timeout_ns(options->context) +
	    options->write_timeout_ns(options->context);

	return env_wall_us(options->cluster->env) - (int64_t)(2 * longest_ns / 1000);
}

/* All that this replica has a state of, where memory does not tell what is open. */
static void
paxos_auto_run(struct task *task, struct worker *worker)
{
	static const struct ring_range everything = {INT64_MIN, INT64_MIN};
	struct paxos_auto *each =
	    (struct paxos_auto *)((char *)task - offsetof(struct paxos_auto, task));
	struct paxos_tracker *tracker = &each->paxos->acceptor.tracker;
	bool has_forgotten = atomic_exchange(&tracker->has_forgotten, false);

	(void)worker;
	each->repair = (struct paxos_repair){.takes_tracked = true,
	    .ranges = &everything,
	    .range_count = has_forgotten ? 1 : 0,
	    .before_us = paxos_auto_before_us(each->paxos),
	    .on_done = paxos_auto_done,
	    .context = each};
	paxos_repair_start(each->paxos, &each->repair);
}

static void
paxos_auto_fired(struct cluster_timer *timer)
{
	struct paxos_auto *each =
	    (struct paxos_auto *)((char *)timer - offsetof(struct paxos_auto, timer));

	each->task.run = paxos_auto_run;
	/* Not taken: the node stops. */
	(void)cluster_submit(each->paxos->options.cluster, CLUSTER_STAGE_PAXOS_REPAIR, &each->task);
}

void
paxos_auto_repair(struct paxos *paxos, uint64_t interval_ns)
{
	struct paxos_auto *each = xzalloc(sizeof(*each));

	each->paxos = paxos;
	each->interval_ns = interval_ns;
	each->timer.fire = paxos_auto_fired;
	paxos->automatic = each;
	cluster_timer_start(paxos->options.cluster, &each->timer, interval_ns);
}
