/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logged batches: two nodes keep one, it is written, they forget it; what they still have after a while they write
 * themselves. As server/batchlog.c does it, whose CQL there is not here.
 */
#include "tests/sim/world/ring_internal.h"

enum { RING_BATCH_PERIOD_S = 10, RING_BATCH_AGE_MS = 4000, RING_BATCHES_MAX = 512 };

struct ring_batches {
	struct ring_node *node; /* borrowed */
	struct cluster_timer timer;
	struct task task;
	bool is_busy;
	struct service_wait *wait; /* who waits for a replay; NULL: nobody */
	struct batchlog_replay replay;
	uint32_t count;
	struct ring_batch {
		struct uuid id;
		struct batchlog_outcome outcome;
	} kept[RING_BATCHES_MAX];
};

/* system.batches, as far as it is used: the mutations stand in one value, each behind its u32 size. */
struct table_metadata *
ring_make_batches_table(void)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("system"), slice_of_string("batches"));
	struct uuid id = {{'b', 2, 3, 4, 5, 6, 0x11, 8, 0x89, 10, 11, 12, 13, 14, 15, 16}};
	struct table_metadata *table;
	struct error err;

	table_builder_set_id(builder, &id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "id", "timeuuid");
	table_builder_add(builder, COLUMN_REGULAR, "mutations", "blob");
	table_builder_options(builder)->gc_grace_seconds = 0;
	ring_must(table_builder_build(builder, &table, &err), &err);
	table_builder_free(builder);
	return table;
}

/* The batch's row, or with mutations null its deletion. */
static void
ring_batch_mutation(struct ring_node *node, const struct uuid *id, struct slice mutations,
    struct arena *arena, struct mutation *out)
{
	struct table_metadata *table = node->batches_table;
	struct partition_update *update = arena_zalloc(arena, sizeof(*update));
	int64_t timestamp = uuid_unix_ms(id) * 1000 + !mutations.data;
	struct cell *cell = arena_zalloc(arena, sizeof(*cell));
	struct row row = {.liveness = {timestamp, TTL_NONE, LOCAL_DELETION_TIME_NONE},
	    .deletion = DELETION_LIVE,
	    .cell_count = 1,
	    .cells = cell};
	struct update_builder *builder = update_builder_new(
	    table, arena_copy(arena, slice_of(id->bytes, sizeof(id->bytes))), arena);
	struct error err;

	*cell = (struct cell){.column = table_column(table, slice_of_string("mutations")),
	    .timestamp = timestamp,
	    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
	    .value = mutations};
	if (mutations.data != NULL)
		ring_must(update_builder_add_row(builder, &row, &err), &err);
	else
		update_builder_delete_partition(builder, (struct deletion){timestamp, RING_NOW_S});
	ring_must(update_builder_finish(builder, update, &err), &err);
	*out = (struct mutation){.keyspace = (const char *)table->keyspace.data,
	    .key = update->key,
	    .token = update->token,
	    .update_count = 1,
	    .updates = update};
}

/* ---- A client's batch ---------------------------------------------------------------------- */

static void
ring_batch_written(struct coordinator_write *write, const struct error *err)
{
	struct ring_op *op = write->context;
	struct mutation mutation;
	struct buffer encoded;

	if (err == NULL) {
		buffer_init(&encoded);
		ring_batch_mutation(
		    ring_node(op->ring, op->node), &op->batch, slice_null, &op->arena, &mutation);
		mutation_encode(&mutation, &encoded);
		batchlog_entry_remove(ring_node(op->ring, op->node)->coordinator, &op->entry,
		    buffer_slice(&encoded), write->worker);
		buffer_fini(&encoded);
	}
	ring_op_end(op, err);
}

static void
ring_batch_stored(struct batchlog_entry *entry, const struct error *err, struct worker *worker)
{
	struct ring_op *op = (struct ring_op *)((char *)entry - offsetof(struct ring_op, entry));
	struct error stopping;

	(void)worker;
	if (err != NULL) {
		ring_op_end(op, err);
		return;
	}
	op->task = (struct task){.run = ring_run_write};
	if (cluster_submit(
		&world_node(op->ring->world, op->node)->cluster, CLUSTER_STAGE_MUTATION, &op->task))
		return;
	error_set(&stopping, ERROR_SERVER, "the node stops");
	ring_op_end(op, &stopping);
}

static void
ring_batch_store(struct task *task, struct worker *worker)
{
	struct ring_op *op = ring_op_of(task);
	struct ring_node *node = ring_node(op->ring, op->node);
	struct buffer all, one;
	struct mutation mutation;
	uint64_t random;

	buffer_init(&all);
	buffer_init(&one);
	for (uint32_t i = 0; i < op->write.mutation_count; i++) {
		buffer_clear(&one);
		mutation_encode(&op->mutations[i], &one);
		buffer_put_u32(&all, (uint32_t)one.size);
		buffer_put_slice(&all, buffer_slice(&one));
	}
	random = env_random_u64(node->node->env);
	op->batch = uuid_from_time(uuid_ticks_of_unix_us(env_wall_us(node->node->env)), random);
	ring_batch_mutation(
	    node, &op->batch, arena_copy(&op->arena, buffer_slice(&all)), &op->arena, &mutation);
	buffer_clear(&one);
	mutation_encode(&mutation, &one);
	op->entry.on_done = ring_batch_stored;
	batchlog_entry_store(node->coordinator, &op->entry, false, buffer_slice(&one), worker);
	buffer_fini(&all);
	buffer_fini(&one);
}

void
ring_batch(struct ring *ring, uint32_t index, struct ring_op *op, const struct ring_row *rows,
    uint32_t count, int64_t timestamp, enum consistency level)
{
	struct ring_node *node = ring_node(ring, index);

	ring_make_rows(node, op, rows, count, timestamp);
	op->write = (struct coordinator_write){.mutations = op->mutations,
	    .mutation_count = count,
	    .keyspace = node->keyspace,
	    .consistency = level,
	    .type = WRITE_BATCH,
	    .on_done = ring_batch_written,
	    .context = op,
	    .arena = &op->arena};
	ring_op_begin(ring, index, op, ring_batch_store, CLUSTER_STAGE_MUTATION);
}

/* ---- Replay -------------------------------------------------------------------------------- */

static void
ring_batch_forgotten(struct store_write *write, const struct error *err)
{
	(void)write;
	ring_must(err == NULL ? 0 : -1, err);
}

static void
ring_batch_forget(struct ring_batches *batches, const struct uuid *id)
{
	struct mutation mutation;
	struct store_write write = {.mutation = &mutation, .on_done = ring_batch_forgotten};
	struct arena arena;

	arena_init(&arena, 1024);
	ring_batch_mutation(batches->node, id, slice_null, &arena, &mutation);
	store_apply(batches->node->store, &write);
	arena_fini(&arena);
}

static void
ring_batches_end(struct ring_batches *batches)
{
	struct service_wait *wait = batches->wait;

	batches->is_busy = false;
	batches->wait = NULL;
	if (wait != NULL)
		wait->on_done(wait, NULL);
}

static void
ring_batches_replayed(struct task *task, struct worker *worker)
{
	struct ring_batches *batches =
	    (struct ring_batches *)((char *)task - offsetof(struct ring_batches, task));

	(void)worker;
	for (uint32_t i = 0; i < batches->count; i++)
		if (!atomic_load(&batches->kept[i].outcome.has_failed))
			ring_batch_forget(batches, &batches->kept[i].id);
	if (batches->count > 0)
		world_note(batches->node->ring->world, "%u wrote %u batches again",
		    batches->node->node->index, batches->count);
	ring_batches_end(batches);
}

static void
ring_batches_done(struct batchlog_replay *replay, const struct error *err)
{
	struct ring_batches *batches =
	    (struct ring_batches *)((char *)replay - offsetof(struct ring_batches, replay));

	if (err != NULL)
		batches->count = 0; /* they stay, all of them */
	batches->task = (struct task){.run = ring_batches_replayed};
	if (!cluster_submit(&batches->node->node->cluster, CLUSTER_STAGE_MUTATION, &batches->task))
		batches->is_busy = false;
}

static void
ring_batch_take(struct ring_batches *batches, const struct live_row *live, int64_t now_ms)
{
	struct ring_batch *kept = &batches->kept[batches->count];
	struct reader reader = reader_of(live->row->cells[0].value);
	struct error err;

	memcpy(kept->id.bytes, live->key.data, sizeof(kept->id.bytes));
	/* Its coordinator may still be at it. */
	if (now_ms - uuid_unix_ms(&kept->id) < RING_BATCH_AGE_MS ||
	    batches->count + 1 == RING_BATCHES_MAX)
		return;
	batches->count++;
	atomic_init(&kept->outcome.has_failed, false);
	while (reader_left(&reader) > 0) {
		struct slice mutation = reader_bytes(&reader, reader_u32(&reader));

		ring_must(batchlog_replay_add(&batches->replay, &kept->outcome, mutation,
			      uuid_unix_ms(&kept->id), &err),
		    &err);
	}
}

static void
ring_batches_replay(struct task *task, struct worker *worker)
{
	struct ring_batches *batches =
	    (struct ring_batches *)((char *)task - offsetof(struct ring_batches, task));
	struct ring_node *node = batches->node;
	struct read_command command = {.table = node->batches_table,
	    .is_range = true,
	    .range = {.left = INT64_MIN, .right = INT64_MIN},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = RING_NOW_S};
	int64_t now_ms = env_wall_us(node->node->env) / 1000;
	struct partition_iterator *source;
	struct live_reader reader;
	struct live_row live;
	struct arena arena;
	struct error err;

	(void)worker;
	batches->count = 0;
	batches->replay.on_done = ring_batches_done;
	batchlog_replay_begin(&batches->replay, node->coordinator, node->hints);
	arena_init(&arena, 4096);
	ring_must(store_read(node->store, &command, &arena, &source, &err), &err);
	live_reader_init(&reader, &command, source, &arena);
	while (live_reader_next(&reader, &live, &err) > 0)
		if (live.row != NULL && live.row->cell_count == 1)
			ring_batch_take(batches, &live, now_ms);
	live_reader_fini(&reader);
	arena_fini(&arena);
	batchlog_replay_end(&batches->replay);
}

static void
ring_batches_begin(struct ring_batches *batches)
{
	if (batches->is_busy)
		return;
	batches->task = (struct task){.run = ring_batches_replay};
	batches->is_busy =
	    cluster_submit(&batches->node->node->cluster, CLUSTER_STAGE_MUTATION, &batches->task);
	if (!batches->is_busy)
		ring_batches_end(batches);
}

static void
ring_batches_fire(struct cluster_timer *timer)
{
	struct ring_batches *batches =
	    (struct ring_batches *)((char *)timer - offsetof(struct ring_batches, timer));

	ring_batches_begin(batches);
	cluster_timer_start(&batches->node->node->cluster, timer, RING_BATCH_PERIOD_S * WORLD_S);
}

void
ring_batches_start(struct ring_node *node)
{
	struct ring_batches *batches = xzalloc(sizeof(*batches));

	node->batches = batches;
	batches->node = node;
	batches->timer.fire = ring_batches_fire;
	cluster_timer_start(&node->node->cluster, &batches->timer, RING_BATCH_PERIOD_S * WORLD_S);
}

void
ring_batches_free(struct ring_node *node)
{
	free(node->batches);
}

void
ring_batches_replay_now(struct ring_node *node, struct service_wait *wait)
{
	node->batches->wait = wait;
	ring_batches_begin(node->batches);
}
