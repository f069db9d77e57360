/* SPDX-License-Identifier: Apache-2.0 */
#include "server/batchlog.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/log.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/internal_query.h"

enum {
	BATCHLOG_ARENA_BLOCK = 16 << 10,
	BATCHLOG_VERSION = 0x48, /* the encoding is our own: mutation_encode() */
};

static const char batchlog_insert[] =
    "INSERT INTO system.batches (id, mutations, version) VALUES (?, ?, ?)";
static const char batchlog_delete[] = "DELETE FROM system.batches WHERE id = ?";

/* Values for batchlog_insert, in the arena; *id is new. */
static int
batchlog_values(struct executor *executor, const struct mutation *mutations, uint32_t count,
    struct uuid *id, struct arena *arena, struct slice values[3], struct error *err)
{
	const struct type *type = type_list(arena, type_native(TYPE_BLOB), false);
	struct slice *blobs = arena_calloc(arena, count, sizeof(*blobs));
	uint8_t *version = arena_alloc(arena, 4);
	struct buffer encoded;
	int rc = 0;

	buffer_init(&encoded);
	if (type == NULL || blobs == NULL || version == NULL)
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for the batchlog");
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		buffer_clear(&encoded);
		mutation_encode(&mutations[i], &encoded);
		rc = buffer_check(&encoded, err);
		blobs[i] = arena_copy(arena, buffer_slice(&encoded));
	}
	buffer_fini(&encoded);
	if (rc != 0)
		return -1;
	executor_next_timeuuid(executor, id->bytes);
	store_u32(version, BATCHLOG_VERSION);
	values[0] = slice_of(id->bytes, sizeof(id->bytes));
	values[1] = type_pack(type, blobs, count, arena);
	values[2] = slice_of(version, 4);
	return 0;
}

int
batchlog_store(struct executor *executor, const struct mutation *mutations, uint32_t count,
    struct uuid *id, struct error *err)
{
	struct slice values[3];
	struct arena arena;
	int rc;

	arena_init(&arena, BATCHLOG_ARENA_BLOCK);
	rc = batchlog_values(executor, mutations, count, id, &arena, values, err);
	if (rc == 0)
		rc = internal_execute(executor, batchlog_insert, values, 3, err);
	arena_fini(&arena);
	return rc;
}

/* ---- Over a ring ----------------------------------------------------------------------------- */

/* A statement about system.batches as a mutation, which *out is appended and *mutation shows. */
static int
batchlog_encode(struct executor *executor, const char *cql, const struct slice *values,
    uint32_t count, struct buffer *out, struct slice *mutation, struct error *err)
{
	struct internal_batch *batch = internal_batch_new(executor);
	int rc = internal_batch_add(batch, cql, values, count, err);

	if (rc == 0 && internal_batch_encode(batch, out, err) != 1)
		rc = -1;
	if (rc == 0)
		*mutation = slice_of(out->data + 4, load_u32(out->data));
	internal_batch_free(batch);
	return rc;
}

int
batchlog_store_at(struct executor *executor, const struct mutation *mutations, uint32_t count,
    struct uuid *id, struct batchlog_entry *entry, bool is_any, struct worker *worker,
    struct error *err)
{
	struct slice values[3], mutation;
	struct buffer encoded;
	struct arena arena;
	int rc;

	arena_init(&arena, BATCHLOG_ARENA_BLOCK);
	buffer_init(&encoded);
	rc = batchlog_values(executor, mutations, count, id, &arena, values, err);
	if (rc == 0)
		rc =
		    batchlog_encode(executor, batchlog_insert, values, 3, &encoded, &mutation, err);
	if (rc == 0)
		batchlog_entry_store(executor->coordinator, entry, is_any, mutation, worker);
	buffer_fini(&encoded);
	arena_fini(&arena);
	return rc;
}

void
batchlog_remove_from(struct executor *executor, const struct batchlog_entry *entry,
    const struct uuid *id, struct worker *worker)
{
	struct slice value = slice_of(id->bytes, sizeof(id->bytes)), mutation;
	struct buffer encoded;
	struct error err;

	buffer_init(&encoded);
	if (batchlog_encode(executor, batchlog_delete, &value, 1, &encoded, &mutation, &err) == 0)
		batchlog_entry_remove(executor->coordinator, entry, mutation, worker);
	else
		log_warn("a batch that was written stays in the batchlog: %s", err.text);
	buffer_fini(&encoded);
}

/* ---- Removal ----------------------------------------------------------------------------------- */

struct batchlog_removal {
	struct executor *executor;
	struct uuid id;
};

static void
batchlog_run_removal(void *argument)
{
	struct batchlog_removal *removal = argument;
	struct slice value = slice_of(removal->id.bytes, sizeof(removal->id.bytes));
	struct error err;

	if (internal_execute(removal->executor, batchlog_delete, &value, 1, &err) != 0)
		log_warn("a batch that was applied could not be taken out of the batchlog: %s",
		    err.text);
	free(removal);
}

void
batchlog_remove(struct executor *executor, const struct uuid *id)
{
	struct stage *stage = executor->node->stages[NODE_STAGE_BATCHLOG];
	struct batchlog_removal *removal = xmalloc(sizeof(*removal));

	*removal = (struct batchlog_removal){executor, *id};
	if (stage == NULL || !stage_submit_work(stage, batchlog_run_removal, removal))
		free(removal);
}

/* ---- Replay -------------------------------------------------------------------------------- */

static const struct table_metadata *
batchlog_find_table(void *argument, const struct uuid *id)
{
	return schema_table_by_id(argument, id);
}

static void
batchlog_applied(struct store_write *write, const struct error *err)
{
	if (err != NULL && write->context != NULL)
		*(struct error *)write->context = *err;
}

static int
batchlog_apply(struct executor *executor, struct schema *schema, struct slice blob,
    struct arena *arena, struct error *err)
{
	struct mutation mutation;
	struct error failed;
	struct store_write write = {
	    .mutation = &mutation, .is_durable = false, .on_done = batchlog_applied};

	if (mutation_decode(blob, batchlog_find_table, schema, arena, &mutation, err) != 0)
		return -1;
	error_clear(&failed);
	write.context = &failed;
	/* Not through the commit log: a sync would answer later. The batch stays in the batchlog
	 * until what it wrote has been flushed. */
	store_apply(executor->store, &write);
	if (failed.code == ERROR_NONE)
		return 0;
	if (err != NULL)
		*err = failed;
	return -1;
}

static int
batchlog_replay_one(
    struct executor *executor, struct schema *schema, const struct slice *cells, struct error *err)
{
	const struct type *type;
	struct type_iterator iterator;
	struct slice blob;
	struct arena arena;
	int rc = 0;

	arena_init(&arena, BATCHLOG_ARENA_BLOCK);
	type = type_list(&arena, type_native(TYPE_BLOB), false);
	if (type == NULL)
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for the batchlog");
	if (rc == 0 && !slice_is_null(cells[1])) {
		type_iterator_init(&iterator, type, cells[1]);
		while (rc == 0 && type_iterator_next(&iterator, &blob, NULL))
			rc = batchlog_apply(executor, schema, blob, &arena, err);
	}
	arena_fini(&arena);
	return rc;
}

static int
batchlog_flush_all(struct executor *executor, struct error *err)
{
	struct table_store **tables;
	uint32_t count;
	int rc = 0;

	tables = store_tables(executor->store, &count);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = store_flush(executor->store, tables[i], err);
	free(tables);
	return rc;
}

/* What a crash of a lone node left behind. */
static int
batchlog_replay_alone(struct executor *executor, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct schema *schema;
	struct internal_rows rows;
	unsigned count = 0;
	int rc = 0;

	if (internal_select(executor, "SELECT id, mutations, version FROM system.batches", NULL, 0,
		&rows, err) != 0)
		return -1;
	schema = schema_holder_get(&executor->schema);
	while (rc == 0 && internal_rows_next(&rows, cells)) {
		/* Another server's batches are in another form: they are left where they are. */
		if (cells[2].size != 4 || load_u32(cells[2].data) != BATCHLOG_VERSION)
			continue;
		rc = batchlog_replay_one(executor, schema, cells, err);
		count++;
	}
	schema_unref(schema);
	internal_rows_fini(&rows);
	if (rc != 0 || count == 0)
		return rc;
	log_info("%u batches that a crash interrupted were applied again", count);
	if (batchlog_flush_all(executor, err) != 0 ||
	    internal_select(
		executor, "SELECT id, version FROM system.batches", NULL, 0, &rows, err) != 0)
		return -1;
	while (internal_rows_next(&rows, cells)) {
		struct uuid id;

		if (cells[0].size != 16 || cells[1].size != 4 ||
		    load_u32(cells[1].data) != BATCHLOG_VERSION)
			continue;
		memcpy(id.bytes, cells[0].data, 16);
		batchlog_remove(executor, &id);
	}
	internal_rows_fini(&rows);
	return 0;
}

/* ---- Replay over a ring ------------------------------------------------------------------------ */

enum {
	BATCHLOG_PERIOD_MS = 10000,
	BATCHLOG_NS_PER_MS = 1000000,
	BATCHLOG_PAGE = 512, /* batches that are read in one go; LIMIT of the statement */
	BATCHLOG_POLL_US = 10000,
};

/* One that is written again. */
struct batchlog_kept {
	struct uuid id;
	struct batchlog_outcome outcome;
};

struct batchlog_replayer {
	struct executor *executor; /* borrowed */
	struct cluster_timer timer;
	atomic_bool is_stopped, is_busy;
	struct batchlog_replay replay;
	/* Of the replay that runs. */
	uint32_t count;
	struct batchlog_kept *batches; /* owned; BATCHLOG_PAGE */
	atomic_llong
	    after; /* token of the last batch that was looked at; INT64_MIN: from the start */
	bool is_hints_failure;
	uint64_t budget; /* bytes that may still be sent in this period */
	uint32_t written; /* batches so far */
};

static void batchlog_run_replay(void *argument);

static void
batchlog_replay_end_period(struct batchlog_replayer *replayer)
{
	if (replayer->written > 0)
		log_info(
		    "%u batches were written again from the batchlog", (unsigned)replayer->written);
	free(replayer->batches);
	replayer->batches = NULL;
	atomic_store(&replayer->is_busy, false);
}

/* What is written is forgotten; then the next page, until the end or until the period's share is sent. */
static void
batchlog_replayed(void *argument)
{
	struct batchlog_replayer *replayer = argument;
	uint32_t failed = 0;

	for (uint32_t i = 0; i < replayer->count && !replayer->is_hints_failure; i++) {
		if (atomic_load(&replayer->batches[i].outcome.has_failed)) {
			failed++;
			continue;
		}
		batchlog_remove(replayer->executor, &replayer->batches[i].id);
		replayer->written++;
	}
	if (failed > 0)
		log_warn("%u batches stay in the batchlog for now", (unsigned)failed);
	if (replayer->after != INT64_MIN && replayer->budget > 0 && !replayer->is_hints_failure &&
	    !atomic_load(&replayer->is_stopped))
		batchlog_run_replay(replayer);
	else
		batchlog_replay_end_period(replayer);
}

static void
batchlog_replay_is_done(struct batchlog_replay *replay, const struct error *err)
{
	struct batchlog_replayer *replayer = (struct batchlog_replayer *)((char *)replay -
	    offsetof(struct batchlog_replayer, replay));
	struct stage *stage = replayer->executor->node->stages[NODE_STAGE_BATCHLOG];

	replayer->is_hints_failure = err != NULL;
	if (err != NULL)
		log_warn("batches stay in the batchlog for now: %s", err->text);
	/* A node that stops: they are still there when it starts. */
	if (!stage_submit_work(stage, batchlog_replayed, replayer))
		batchlog_replay_end_period(replayer);
}

/* The least gc_grace_seconds of a batch's tables. */
struct batchlog_grace {
	const struct schema *schema;
	int64_t seconds;
};

static void
batchlog_least_grace(void *argument, const struct uuid *id)
{
	struct batchlog_grace *grace = argument;
	const struct table_metadata *table = schema_table_by_id(grace->schema, id);

	if (table != NULL && table->options.gc_grace_seconds < grace->seconds)
		grace->seconds = table->options.gc_grace_seconds;
}

/* Is it so old that what it deletes may have been forgotten? Then writing it could bring that back. */
static bool
batchlog_is_expired(
    const struct type *type, const struct schema *schema, const struct slice *cells, int64_t age_ms)
{
	struct batchlog_grace grace = {schema, INT64_MAX / 1000};
	struct type_iterator iterator;
	struct slice blob;

	type_iterator_init(&iterator, type, cells[1]);
	while (type_iterator_next(&iterator, &blob, NULL))
		mutation_each_table(blob, batchlog_least_grace, &grace);
	return age_ms >= grace.seconds * 1000;
}

/* What cannot be read stays, in nobody's way: the schema may be yet to come, and in the end it expires. */
static void
batchlog_take_mutations(struct batchlog_replayer *replayer, struct batchlog_kept *kept,
    const struct type *type, struct slice mutations, int64_t made_ms)
{
	struct type_iterator iterator;
	struct slice blob;
	struct error err;

	type_iterator_init(&iterator, type, mutations);
	while (type_iterator_next(&iterator, &blob, NULL)) {
		char id[UUID_TEXT_SIZE];

		if (batchlog_replay_add(&replayer->replay, &kept->outcome, blob, made_ms, &err) ==
		    0)
			continue;
		uuid_format(&kept->id, id);
		log_error("a mutation of the batch %s in system.batches cannot be read: %s", id,
		    err.text);
	}
}

/* Take one row of system.batches up; returns the bytes of it. */
static size_t
batchlog_take(struct batchlog_replayer *replayer, const struct type *type,
    const struct schema *schema, const struct slice *cells, int64_t now_ms)
{
	struct executor *executor = replayer->executor;
	int64_t timeout_ms = atomic_load(&executor->node->timeouts_ms[NODE_TIMEOUT_WRITE]), made_ms;
	struct batchlog_kept *kept;
	struct uuid id;

	if (cells[0].size != sizeof(id.bytes) || cells[2].size != 4 || slice_is_null(cells[1]) ||
	    load_u32(cells[2].data) != BATCHLOG_VERSION)
		return 0;
	memcpy(id.bytes, cells[0].data, sizeof(id.bytes));
	made_ms = uuid_unix_ms(&id);
	/* Its coordinator may still be at it. */
	if (now_ms - made_ms < 2 * timeout_ms)
		return 0;
	kept = &replayer->batches[replayer->count++];
	kept->id = id;
	atomic_init(&kept->outcome.has_failed, false);
	if (batchlog_is_expired(type, schema, cells, now_ms - made_ms))
		return 0;
	batchlog_take_mutations(replayer, kept, type, cells[1], made_ms);
	return cells[1].size;
}

/* What may be sent in a period: the throttle is shared by all nodes. */
static uint64_t
batchlog_budget(const struct executor *executor)
{
	struct topology_holder *holder = executor->node->cluster->topology;
	const struct topology *topology = topology_acquire(holder);
	uint32_t members = topology_member_count(topology);
	uint64_t rate = (uint64_t)atomic_load_explicit(
	    &executor->node->batchlog_throttle, memory_order_relaxed);

	topology_release(holder, topology);
	if (rate == 0)
		return UINT64_MAX;
	rate /= members == 0 ? 1 : members;
	return (rate == 0 ? 1 : rate) * (BATCHLOG_PERIOD_MS / 1000);
}

/* A page; `after` is then where the next begins, or INT64_MIN at the end. */
static int
batchlog_replay_some(struct batchlog_replayer *replayer, struct error *err)
{
	struct executor *executor = replayer->executor;
	struct slice cells[INTERNAL_COLUMNS_MAX], after;
	int64_t now_ms = env_wall_us(executor->env) / 1000;
	const struct type *type;
	struct internal_rows rows;
	struct schema *schema;
	struct arena arena;
	uint8_t token[8];
	uint32_t seen = 0;
	int rc = 0;

	store_u64(token, (uint64_t)replayer->after);
	after = slice_of(token, sizeof(token));
	replayer->after = INT64_MIN;
	arena_init(&arena, 1024);
	type = type_list(&arena, type_native(TYPE_BLOB), false);
	if (type == NULL)
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for the batchlog");
	if (rc == 0)
		rc = internal_select(executor,
		    "SELECT id, mutations, version, token(id) FROM system.batches WHERE token(id) "
		    "> ? "
		    "LIMIT 512",
		    &after, 1, &rows, err);
	if (rc == 0) {
		int64_t last = INT64_MIN;

		schema = schema_holder_get(&executor->schema);
		while (replayer->budget > 0 && internal_rows_next(&rows, cells)) {
			uint64_t sent = batchlog_take(replayer, type, schema, cells, now_ms);

			replayer->budget -= sent < replayer->budget ? sent : replayer->budget;
			last = (int64_t)load_u64(cells[3].data);
			seen++;
		}
		if (seen == BATCHLOG_PAGE || replayer->budget == 0)
			replayer->after = last;
		schema_unref(schema);
		internal_rows_fini(&rows);
	}
	arena_fini(&arena);
	return rc;
}

static void
batchlog_run_replay(void *argument)
{
	struct batchlog_replayer *replayer = argument;
	struct executor *executor = replayer->executor;
	struct error err;

	replayer->count = 0;
	replayer->replay.on_done = batchlog_replay_is_done;
	batchlog_replay_begin(
	    &replayer->replay, executor->coordinator, executor->node->cluster->hints);
	if (!atomic_load(&replayer->is_stopped) && batchlog_replay_some(replayer, &err) != 0)
		log_error("the batchlog cannot be read: %s", err.text);
	batchlog_replay_end(&replayer->replay);
}

static bool
batchlog_begin_replay(struct batchlog_replayer *replayer)
{
	struct stage *stage = replayer->executor->node->stages[NODE_STAGE_BATCHLOG];

	if (atomic_exchange(&replayer->is_busy, true))
		return false;
	replayer->budget = batchlog_budget(replayer->executor);
	replayer->written = 0;
	replayer->batches = xcalloc(BATCHLOG_PAGE, sizeof(*replayer->batches));
	if (stage_submit_work(stage, batchlog_run_replay, replayer))
		return true;
	batchlog_replay_end_period(replayer);
	return false;
}

static void
batchlog_fire(struct cluster_timer *timer)
{
	struct batchlog_replayer *replayer =
	    (struct batchlog_replayer *)((char *)timer - offsetof(struct batchlog_replayer, timer));

	if (atomic_load(&replayer->is_stopped))
		return;
	/* Nobody gave a lone node anything, and its own batches wait for its start. */
	if (!coordinator_is_alone(replayer->executor->coordinator))
		batchlog_begin_replay(replayer);
	cluster_timer_start(replayer->executor->node->cluster->env, timer,
	    (uint64_t)BATCHLOG_PERIOD_MS * BATCHLOG_NS_PER_MS);
}

int
batchlog_start(struct executor *executor, struct batchlog_replayer **out, struct error *err)
{
	struct batchlog_replayer *replayer;

	if (coordinator_is_alone(executor->coordinator) &&
	    batchlog_replay_alone(executor, err) != 0)
		return -1;
	replayer = xzalloc(sizeof(*replayer));
	replayer->executor = executor;
	replayer->after = INT64_MIN;
	replayer->timer.fire = batchlog_fire;
	cluster_timer_start(executor->node->cluster->env, &replayer->timer,
	    (uint64_t)executor->config->cassandra__ring_delay_ms * BATCHLOG_NS_PER_MS);
	*out = replayer;
	return 0;
}

void
batchlog_stop(struct batchlog_replayer *replayer)
{
	if (replayer != NULL)
		atomic_store(&replayer->is_stopped, true);
}

void
batchlog_free(struct batchlog_replayer *replayer)
{
	if (replayer == NULL)
		return;
	free(replayer->batches);
	free(replayer);
}

static int
batchlog_replay_once(struct batchlog_replayer *replayer, struct error *err)
{
	while (!batchlog_begin_replay(replayer)) {
		if (atomic_load(&replayer->is_stopped))
			return error_set(err, ERROR_SHUTDOWN, "the node stops");
		usleep(BATCHLOG_POLL_US);
	}
	while (atomic_load(&replayer->is_busy) && !atomic_load(&replayer->is_stopped))
		usleep(BATCHLOG_POLL_US);
	return 0;
}

/* A period's share each time, until the end is reached. */
int
batchlog_replay_now(struct batchlog_replayer *replayer, struct error *err)
{
	do {
		if (batchlog_replay_once(replayer, err) != 0)
			return -1;
	} while (atomic_load(&replayer->after) != INT64_MIN && !atomic_load(&replayer->is_stopped));
	return 0;
}
