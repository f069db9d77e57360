/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "cluster/paxos_codec.h"
#include "storage/counter.h"
#include "tests/sim/world/ring_internal.h"

/* ---- Requests ------------------------------------------------------------------------------ */

void
ring_op_begin(struct ring *ring, uint32_t node, struct ring_op *op,
    void (*run)(struct task *task, struct worker *worker), enum cluster_stage stage)
{
	struct cluster_env *env = &world_node(ring->world, node)->cluster;

	op->ring = ring;
	op->node = node;
	op->schema = schema_ref(ring_node(ring, node)->schema);
	op->task = (struct task){.run = run};
	if (!cluster_submit(env, stage, &op->task))
		abort();
}

static void
ring_op_init(struct ring_op *op)
{
	void (*on_done)(struct ring_op * op) = op->on_done;
	void (*on_ready)(struct ring_op * op) = op->on_ready;
	void *context = op->context;

	memset(op, 0, sizeof(*op));
	op->on_done = on_done;
	op->on_ready = on_ready;
	op->context = context;
	arena_init(&op->arena, 4096);
}

void
ring_op_free(struct ring_op *op)
{
	if (op->arena.block_size != 0) /* it was begun */
		arena_fini(&op->arena);
	free(op->rows);
	op->rows = NULL;
	schema_unref(op->schema);
	op->schema = NULL;
}

void
ring_op_end(struct ring_op *op, const struct error *err)
{
	op->is_done = true;
	op->done_count++;
	op->has_failed = err != NULL;
	if (err != NULL)
		op->err = *err;
	if (op->on_done != NULL)
		op->on_done(op);
}

struct ring_op *
ring_op_of(struct task *task)
{
	return (struct ring_op *)((char *)task - offsetof(struct ring_op, task));
}

static void
ring_written(struct coordinator_write *write, const struct error *err)
{
	ring_op_end(write->context, err);
}

void
ring_run_write(struct task *task, struct worker *worker)
{
	struct ring_op *op = ring_op_of(task);

	op->write.worker = worker;
	coordinator_write(ring_node(op->ring, op->node)->coordinator, &op->write);
}

static void
ring_build(struct ring_op *op, struct mutation *mutation, const struct table_metadata *table,
    int32_t pk, const struct row *row)
{
	struct partition_update *update = arena_zalloc(&op->arena, sizeof(*update));
	struct update_builder *builder;
	uint8_t *key = arena_alloc(&op->arena, 4);
	struct slice *clustering =
	    arena_calloc(&op->arena, row->clustering_count, sizeof(*clustering));
	struct cell *cells = arena_calloc(&op->arena, row->cell_count, sizeof(*cells));
	struct row kept = *row;
	struct error err;

	/* Rows are views: what they are made of lives as long as the op. */
	if (row->clustering_count > 0)
		memcpy(clustering, row->clustering, row->clustering_count * sizeof(*clustering));
	if (row->cell_count > 0)
		memcpy(cells, row->cells, row->cell_count * sizeof(*cells));
	kept.clustering = clustering;
	kept.cells = cells;
	store_u32(key, (uint32_t)pk);
	builder = update_builder_new(table, slice_of(key, 4), &op->arena);
	ring_must(update_builder_add_row(builder, &kept, &err), &err);
	ring_must(update_builder_finish(builder, update, &err), &err);
	/* As the server has it: the name in the schema, without an end. */
	*mutation = (struct mutation){.keyspace = (const char *)table->keyspace.data,
	    .key = update->key,
	    .token = update->token,
	    .update_count = 1,
	    .updates = update};
}

static void
ring_begin_write(struct ring *ring, uint32_t index, struct ring_op *op, uint32_t count,
    enum consistency level, enum write_type type)
{
	struct ring_node *node = ring_node(ring, index);

	op->write = (struct coordinator_write){.mutations = op->mutations,
	    .mutation_count = count,
	    .keyspace = node->keyspace,
	    .consistency = level,
	    .type = type,
	    .on_done = ring_written,
	    .context = op,
	    .arena = &op->arena};
	ring_op_begin(ring, index, op, ring_run_write,
	    type == WRITE_COUNTER ? CLUSTER_STAGE_COUNTER_MUTATION : CLUSTER_STAGE_MUTATION);
}

/* v, and the column that was added last. */
static void
ring_make_rows_of(const struct table_metadata *table, struct ring_op *op,
    const struct ring_row *rows, uint32_t count, int64_t timestamp)
{
	ring_op_init(op);
	op->mutations = arena_calloc(&op->arena, count, sizeof(*op->mutations));
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *bytes = arena_alloc(&op->arena, 12);
		struct slice clustering = slice_of(bytes, 4);
		struct cell cells[2] = {{.column = &table->regulars[0],
		    .timestamp = timestamp,
		    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
		    .value = slice_of(bytes + 4, 8)}};
		struct row row = {.clustering_count = 1,
		    .clustering = &clustering,
		    .liveness = {timestamp, TTL_NONE, LOCAL_DELETION_TIME_NONE},
		    .deletion = DELETION_LIVE,
		    .cell_count = table->regular_count > 1 ? 2 : 1,
		    .cells = cells};

		cells[1] = cells[0];
		cells[1].column = &table->regulars[table->regular_count - 1];
		store_u32(bytes, (uint32_t)rows[i].ck);
		store_u64(bytes + 4, (uint64_t)rows[i].v);
		ring_build(op, &op->mutations[i], table, rows[i].pk, &row);
	}
}

void
ring_make_rows(struct ring_node *node, struct ring_op *op, const struct ring_row *rows,
    uint32_t count, int64_t timestamp)
{
	ring_make_rows_of(node->tables[0], op, rows, count, timestamp);
}

void
ring_put(struct ring *ring, uint32_t index, struct ring_op *op, const struct ring_row *rows,
    uint32_t count, int64_t timestamp, enum consistency level, enum write_type type)
{
	ring_make_rows(ring_node(ring, index), op, rows, count, timestamp);
	ring_begin_write(ring, index, op, count, level, type);
}

void
ring_put_named(struct ring *ring, uint32_t index, struct ring_op *op, uint32_t name,
    struct ring_row row, int64_t timestamp, enum consistency level)
{
	ring_make_rows_of(ring_named_table(ring, index, name), op, &row, 1, timestamp);
	ring_begin_write(ring, index, op, 1, level, WRITE_SIMPLE);
}

void
ring_encode(
    struct ring *ring, uint32_t index, struct ring_row row, int64_t timestamp, struct buffer *out)
{
	struct ring_op op = {.on_done = NULL};

	ring_make_rows(ring_node(ring, index), &op, &row, 1, timestamp);
	mutation_encode(op.mutations, out);
	ring_op_free(&op);
}

void
ring_delete(struct ring *ring, uint32_t index, struct ring_op *op, int32_t pk, int32_t ck,
    int64_t timestamp, enum consistency level)
{
	uint8_t *bytes;
	struct slice clustering;
	struct row row = {.clustering_count = 1,
	    .clustering = &clustering,
	    .liveness = LIVENESS_NONE,
	    .deletion = {timestamp, RING_NOW_S}};

	ring_op_init(op);
	bytes = arena_alloc(&op->arena, 4);
	store_u32(bytes, (uint32_t)ck);
	clustering = slice_of(bytes, 4);
	op->mutations = arena_calloc(&op->arena, 1, sizeof(*op->mutations));
	ring_build(op, op->mutations, ring_node(ring, index)->tables[0], pk, &row);
	ring_begin_write(ring, index, op, 1, level, WRITE_SIMPLE);
}

void
ring_increment(struct ring *ring, uint32_t index, struct ring_op *op, int32_t pk, int64_t delta,
    enum consistency level)
{
	struct ring_node *node = ring_node(ring, index);
	struct cell cell = {.column = table_column(node->tables[1], slice_of_string("n")),
	    .timestamp = 1,
	    .local_deletion_time = LOCAL_DELETION_TIME_NONE};
	struct row row = {
	    .liveness = LIVENESS_NONE, .deletion = DELETION_LIVE, .cell_count = 1, .cells = &cell};

	ring_op_init(op);
	cell.value = counter_make_update(delta, &op->arena);
	op->mutations = arena_calloc(&op->arena, 1, sizeof(*op->mutations));
	ring_build(op, op->mutations, node->tables[1], pk, &row);
	ring_begin_write(ring, index, op, 1, level, WRITE_COUNTER);
}

static int
ring_read_rows(struct ring_op *op, struct partition_iterator *source, struct error *err)
{
	struct live_reader reader;
	struct live_row live;
	int rc;

	if (op->rows == NULL)
		op->rows = xcalloc(RING_ROWS_MAX, sizeof(*op->rows));
	op->row_count = 0;
	live_reader_init(&reader, &op->command, source, &op->arena);
	while ((rc = live_reader_next(&reader, &live, err)) > 0) {
		struct ring_row *row = &op->rows[op->row_count++];
		const struct cell *cell;

		if (op->row_count == RING_ROWS_MAX)
			abort();
		row->pk = (int32_t)load_u32(live.key.data);
		if (live.row == NULL || live.row->cell_count == 0)
			continue;
		cell = &live.row->cells[0];
		if (live.row->clustering_count > 0) {
			row->ck = (int32_t)load_u32(live.row->clustering[0].data);
			row->v = (int64_t)load_u64(cell->value.data);
		} else {
			row->v = counter_total(cell->value);
		}
	}
	live_reader_fini(&reader);
	return rc;
}

static void
ring_have_read(
    struct coordinator_read *read, struct partition_iterator *source, const struct error *err)
{
	struct ring_op *op = read->context;
	struct error failure;

	if (err == NULL && ring_read_rows(op, source, &failure) != 0)
		err = &failure;
	ring_op_end(op, err);
}

static void
ring_run_read(struct task *task, struct worker *worker)
{
	struct ring_op *op = ring_op_of(task);

	op->read.worker = worker;
	coordinator_read(ring_node(op->ring, op->node)->coordinator, &op->read);
}

static void
ring_begin_read(struct ring *ring, uint32_t index, struct ring_op *op,
    const struct table_metadata *table, uint32_t limit, enum consistency level)
{
	struct ring_node *node = ring_node(ring, index);

	op->command.table = table;
	op->command.row_limit = limit == 0 ? READ_LIMIT_NONE : limit;
	op->command.per_partition_limit = READ_LIMIT_NONE;
	op->command.now_seconds = RING_NOW_S;
	op->read = (struct coordinator_read){.command = &op->command,
	    .keys = op->keys,
	    .key_count = op->key_count,
	    .keyspace = node->keyspace,
	    .consistency = level,
	    .arena = &op->arena,
	    .on_done = ring_have_read,
	    .context = op};
	ring_op_begin(ring, index, op, ring_run_read, CLUSTER_STAGE_READ);
}

static void
ring_get_of(struct ring *ring, uint32_t index, struct ring_op *op,
    const struct table_metadata *table, int32_t pk, uint32_t limit, enum consistency level)
{
	uint8_t *key;

	ring_op_init(op);
	key = arena_alloc(&op->arena, 4);
	store_u32(key, (uint32_t)pk);
	op->command.key = slice_of(key, 4);
	op->command.token = murmur3_token(op->command.key);
	ring_begin_read(ring, index, op, table, limit, level);
}

void
ring_get(struct ring *ring, uint32_t index, struct ring_op *op, int table, int32_t pk,
    uint32_t limit, enum consistency level)
{
	ring_get_of(ring, index, op, ring_node(ring, index)->tables[table], pk, limit, level);
}

void
ring_get_named(struct ring *ring, uint32_t index, struct ring_op *op, uint32_t name, int32_t pk,
    enum consistency level)
{
	ring_get_of(ring, index, op, ring_named_table(ring, index, name), pk, 0, level);
}

void
ring_get_many(struct ring *ring, uint32_t index, struct ring_op *op, int32_t pk, uint32_t count,
    enum consistency level)
{
	ring_op_init(op);
	op->keys = arena_calloc(&op->arena, count, sizeof(*op->keys));
	op->key_count = count;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *key = arena_alloc(&op->arena, 4);

		store_u32(key, (uint32_t)pk + i);
		op->keys[i] = slice_of(key, 4);
	}
	op->command.key = op->keys[0];
	op->command.token = murmur3_token(op->command.key);
	ring_begin_read(ring, index, op, ring_node(ring, index)->tables[0], 0, level);
}

void
ring_scan_after(struct ring *ring, uint32_t index, struct ring_op *op, const struct ring_row *after,
    uint32_t limit, enum consistency level)
{
	ring_op_init(op);
	op->command.is_range = true;
	op->command.range = (struct token_range){.left = INT64_MIN, .right = INT64_MIN};
	if (after != NULL) {
		uint8_t *bytes = arena_alloc(&op->arena, 8);
		struct slice clustering = slice_of(bytes + 4, 4);
		struct token_range *range = &op->command.range;

		store_u32(bytes, (uint32_t)after->pk);
		store_u32(bytes + 4, (uint32_t)after->ck);
		range->start_key = slice_of(bytes, 4);
		range->left = murmur3_token(range->start_key);
		range->includes_left = true;
		op->command.after_position = position_make(ring_node(ring, index)->tables[0],
		    BOUND_CLUSTERING, &clustering, 1, &op->arena);
	}
	ring_begin_read(ring, index, op, ring_node(ring, index)->tables[0], limit, level);
}

void
ring_scan(
    struct ring *ring, uint32_t index, struct ring_op *op, uint32_t limit, enum consistency level)
{
	ring_scan_after(ring, index, op, NULL, limit, level);
}

static void
ring_truncated(struct coordinator_truncate *truncate, const struct error *err)
{
	ring_op_end(truncate->context, err);
}

static void
ring_run_truncate(struct task *task, struct worker *worker)
{
	struct ring_op *op = ring_op_of(task);

	op->truncate.worker = worker;
	coordinator_truncate(ring_node(op->ring, op->node)->coordinator, &op->truncate);
}

void
ring_truncate(struct ring *ring, uint32_t index, struct ring_op *op)
{
	ring_op_init(op);
	op->truncate = (struct coordinator_truncate){
	    .table = ring_node(ring, index)->tables[0], .on_done = ring_truncated, .context = op};
	ring_op_begin(ring, index, op, ring_run_truncate, CLUSTER_STAGE_MISC);
}

/* ---- Paxos --------------------------------------------------------------------------------- */

static void
ring_paxos_begin(struct ring *ring, uint32_t index, struct ring_op *op, int32_t pk,
    enum consistency serial, enum consistency commit)
{
	struct ring_node *node = ring_node(ring, index);
	uint8_t *key;

	ring_op_init(op);
	op->ring = ring;
	op->node = index;
	key = arena_alloc(&op->arena, 4);
	store_u32(key, (uint32_t)pk);
	op->command = (struct read_command){.table = node->tables[0],
	    .key = slice_of(key, 4),
	    .token = murmur3_token(slice_of(key, 4)),
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = RING_NOW_S};
	op->read = (struct coordinator_read){.command = &op->command,
	    .keyspace = node->keyspace,
	    .consistency =
		serial == CONSISTENCY_SERIAL ? CONSISTENCY_QUORUM : CONSISTENCY_LOCAL_QUORUM,
	    .arena = &op->arena,
	    .context = op};
	op->paxos = (struct paxos_request){.keyspace = node->keyspace,
	    .table = node->tables[0],
	    .key = op->command.key,
	    .token = op->command.token,
	    .serial = serial,
	    .commit = commit,
	    .context = op};
}

static void
ring_run_paxos(struct task *task, struct worker *worker)
{
	struct ring_op *op = ring_op_of(task);

	(void)worker;
	paxos_begin(ring_node(op->ring, op->node)->paxos, &op->paxos);
}

/* What the condition is about has been read. */
static void
ring_cas_read(
    struct coordinator_read *read, struct partition_iterator *source, const struct error *err)
{
	struct ring_op *op = read->context;
	struct ring_node *node = ring_node(op->ring, op->node);
	int64_t timestamp = paxos_ballot_timestamp(&op->ballot);
	struct error failure;
	uint8_t *bytes = arena_alloc(&op->arena, 12);
	struct slice clustering = slice_of(bytes, 4);
	struct cell cell = {.column = table_column(node->tables[0], slice_of_string("v")),
	    .timestamp = timestamp,
	    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
	    .value = slice_of(bytes + 4, 8)};
	struct row row = {.clustering_count = 1,
	    .clustering = &clustering,
	    .liveness = {timestamp, TTL_NONE, LOCAL_DELETION_TIME_NONE},
	    .deletion = DELETION_LIVE,
	    .cell_count = 1,
	    .cells = &cell};

	if (err == NULL && ring_read_rows(op, source, &failure) != 0)
		err = &failure;
	if (err != NULL) {
		paxos_abandon(&op->paxos, err);
		return;
	}
	if ((op->row_count == 0 ? 0 : op->rows[0].v) != op->expected) {
		paxos_propose(&op->paxos, NULL);
		return;
	}
	store_u32(bytes, 0);
	store_u64(bytes + 4, (uint64_t)op->written);
	op->mutations = arena_calloc(&op->arena, 1, sizeof(*op->mutations));
	ring_build(
	    op, op->mutations, node->tables[0], (int32_t)load_u32(op->command.key.data), &row);
	paxos_propose(&op->paxos, op->mutations);
}

static void
ring_cas_ready(struct paxos_request *request, const struct uuid *ballot)
{
	struct ring_op *op = request->context;

	op->ballot = *ballot;
	if (op->on_ready != NULL)
		op->on_ready(op);
	else
		ring_cas_go_on(op);
}

void
ring_cas_go_on(struct ring_op *op)
{
	op->read.on_done = ring_cas_read;
	coordinator_read(ring_node(op->ring, op->node)->coordinator, &op->read);
}

static void
ring_cas_done(struct paxos_request *request, const struct error *err)
{
	struct ring_op *op = request->context;

	op->is_applied = request->has_written;
	ring_op_end(op, err);
}

void
ring_cas(struct ring *ring, uint32_t index, struct ring_op *op, int32_t pk, int64_t expected,
    int64_t written, enum consistency serial, enum consistency commit)
{
	ring_paxos_begin(ring, index, op, pk, serial, commit);
	op->expected = expected;
	op->written = written;
	op->paxos.on_ready = ring_cas_ready;
	op->paxos.on_done = ring_cas_done;
	ring_op_begin(ring, index, op, ring_run_paxos, CLUSTER_STAGE_MUTATION);
}

static void
ring_serial_ready(struct paxos_request *request, const struct uuid *ballot)
{
	(void)ballot;
	paxos_propose(request, NULL);
}

static void
ring_serial_done(struct paxos_request *request, const struct error *err)
{
	struct ring_op *op = request->context;

	if (err != NULL) {
		ring_op_end(op, err);
		return;
	}
	op->read.on_done = ring_have_read;
	coordinator_read(ring_node(op->ring, op->node)->coordinator, &op->read);
}

void
ring_get_serial(
    struct ring *ring, uint32_t index, struct ring_op *op, int32_t pk, enum consistency serial)
{
	ring_paxos_begin(ring, index, op, pk, serial, CONSISTENCY_QUORUM);
	op->paxos.is_read = true;
	op->paxos.on_ready = ring_serial_ready;
	op->paxos.on_done = ring_serial_done;
	ring_op_begin(ring, index, op, ring_run_paxos, CLUSTER_STAGE_MUTATION);
}

/* ---- Looking ------------------------------------------------------------------------------- */

static bool
ring_op_is_done(struct world *world, void *context)
{
	(void)world;
	return ((struct ring_op *)context)->is_done;
}

void
ring_wait(struct ring *ring, struct ring_op *op)
{
	world_run_until(ring->world, ring_op_is_done, op, WORLD_MS, 60 * WORLD_S);
}

static int64_t
ring_look_in(struct ring_node *node, const struct table_metadata *table, int32_t pk, int32_t ck)
{
	struct read_command command = {.table = table,
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = RING_NOW_S};
	struct partition_iterator *source;
	struct live_reader reader;
	struct live_row live;
	struct arena arena;
	struct error err;
	uint8_t key[4];
	int64_t found = -1;

	arena_init(&arena, 4096);
	store_u32(key, (uint32_t)pk);
	command.key = slice_of(key, 4);
	command.token = murmur3_token(command.key);
	ring_must(store_read(node->store, &command, &arena, &source, &err), &err);
	live_reader_init(&reader, &command, source, &arena);
	while (live_reader_next(&reader, &live, &err) > 0) {
		if ((int32_t)load_u32(live.row->clustering[0].data) == ck)
			found = (int64_t)load_u64(live.row->cells[0].value.data);
	}
	live_reader_fini(&reader);
	arena_fini(&arena);
	return found;
}

int64_t
ring_look(struct ring *ring, uint32_t index, int32_t pk, int32_t ck)
{
	return ring_look_in(ring_node(ring, index), ring_node(ring, index)->tables[0], pk, ck);
}

int64_t
ring_look_named(struct ring *ring, uint32_t index, uint32_t name, int32_t pk, int32_t ck)
{
	return ring_look_in(ring_node(ring, index), ring_named_table(ring, index, name), pk, ck);
}
