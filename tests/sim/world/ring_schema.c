/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that clients create, alter and drop: the schema log with a schema of a few names, which stands beside the two tables that
 * are always there. As server/schema_sync.c does it, whose rows of system_schema are an entry of a line here. A node keeps the
 * whole history too, so that there can be no two orders, nor two tables of one name, that nobody sees.
 */
#include "cluster/schema_log.h"
#include "tests/sim/world/ring_internal.h"

#define RING_SCHEMA_TIMEOUT_NS (10 * WORLD_S)

/* What a change is, in the log and in the history. */
struct ring_schema_entry {
	enum ring_schema_kind kind;
	uint32_t name, number; /* number: of the client's change */
	int64_t timestamp;
};

/* A table of that name; created 0: there is none. */
struct ring_schema_table {
	int64_t created; /* the timestamp, of which its id is made */
	uint32_t columns; /* that were added */
};

/* What a node has of it. */
struct ring_schema_state {
	struct ring_schema_table tables[RING_NAMES];
	struct ring_schema_entry *history; /* owned */
	uint32_t count;
};

/* ... on its disk. */
struct ring_schema_disk {
	struct buffer log; /* the log's own state */
	struct ring_schema_state state;
};

struct ring_schemas {
	struct ring_schema_disk *disks; /* owned; by node */
	struct ring_schema_entry *history; /* owned; as the first node had it */
	uint32_t count;
	uint32_t changes; /* numbers that are given */
	const char *broken; /* NULL: nothing is wrong so far */
};

struct ring_schema {
	struct ring_node *node; /* borrowed */
	struct schema_log *log;
	struct schema *base; /* without those tables; a reference */
	struct ring_schema_state state; /* durable with the next save */
};

static struct ring_schema_disk *
ring_schema_disk(const struct ring_node *node)
{
	return &node->ring->schemas->disks[node->node->index];
}

static void
ring_schema_break(struct ring_node *node, const char *what)
{
	if (node->ring->schemas->broken == NULL)
		node->ring->schemas->broken = what;
}

static void
ring_schema_copy(struct ring_schema_state *to, const struct ring_schema_state *from)
{
	free(to->history);
	*to = *from;
	to->history = xcalloc((size_t)from->count + 1, sizeof(*to->history));
	if (from->count > 0)
		memcpy(to->history, from->history, from->count * sizeof(*to->history));
}

/* ---- A schema ------------------------------------------------------------------------------- */

static struct table_metadata *
ring_schema_make_table(uint32_t name, const struct ring_schema_table *from)
{
	char text[16];
	struct uuid id = {{'d', 0, 3, 4, 5, 6, 0x11, 8, 0x89}};
	struct table_builder *builder;
	struct table_metadata *table;
	struct error err;

	id.bytes[1] = (uint8_t)name;
	store_u64(id.bytes + 8, (uint64_t)from->created);
	snprintf(text, sizeof(text), "d%u", name);
	builder = table_builder_new(slice_of_string("ks"), slice_of_string(text));
	table_builder_set_id(builder, &id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "pk", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "ck", "int");
	table_builder_add(builder, COLUMN_REGULAR, "v", "bigint");
	for (uint32_t i = 0; i < from->columns; i++) {
		snprintf(text, sizeof(text), "w%03u", i);
		table_builder_add(builder, COLUMN_REGULAR, text, "bigint");
	}
	ring_must(table_builder_build(builder, &table, &err), &err);
	table_builder_free(builder);
	return table;
}

/* The node's schema is what its state says. */
static void
ring_schema_publish(struct ring_schema *schema)
{
	struct ring_node *node = schema->node;
	struct schema *made = schema_ref(schema->base), *with;

	for (uint32_t i = 0; i < RING_NAMES; i++) {
		const struct ring_schema_table *from = &schema->state.tables[i];
		const struct table_metadata *now;
		struct table_metadata *table;
		char text[16];

		if (from->created == 0)
			continue;
		snprintf(text, sizeof(text), "d%u", i);
		now = schema_table(node->schema, slice_of_string("ks"), slice_of_string(text));
		table = ring_schema_make_table(i, from);
		/* What did not change is the same object. */
		with =
		    schema_with_table(made, now != NULL && table_equal(now, table) ? now : table);
		table_unref(table);
		schema_unref(made);
		made = with;
	}
	schema_unref(node->schema);
	node->schema = made;
	node->keyspace = schema_keyspace(made, slice_of_string("ks"));
}

/* ... and the store has its tables, and others are told. */
static void
ring_schema_take(struct ring_schema *schema)
{
	struct error err;

	ring_schema_publish(schema);
	ring_must(store_set_schema(schema->node->store, schema->node->schema, &err), &err);
	ring_members_tell_schema(schema->node);
}

/* ---- Entries ---------------------------------------------------------------------------------- */

static void
ring_schema_encode(const struct ring_schema_entry *entry, struct buffer *out)
{
	buffer_put_u8(out, (uint8_t)entry->kind);
	buffer_put_u32(out, entry->name);
	buffer_put_u32(out, entry->number);
	buffer_put_u64(out, (uint64_t)entry->timestamp);
}

static struct ring_schema_entry
ring_schema_decode(struct reader *reader)
{
	struct ring_schema_entry entry;

	entry.kind = (enum ring_schema_kind)reader_u8(reader);
	entry.name = reader_u32(reader);
	entry.number = reader_u32(reader);
	entry.timestamp = (int64_t)reader_u64(reader);
	return entry;
}

static bool
ring_schema_same(const struct ring_schema_entry *a, const struct ring_schema_entry *b)
{
	return a->kind == b->kind && a->name == b->name && a->number == b->number &&
	    a->timestamp == b->timestamp;
}

/* Is it possible in this schema? */
static bool
ring_schema_fits(const struct ring_schema_state *state, enum ring_schema_kind kind, uint32_t name)
{
	return (state->tables[name].created == 0) == (kind == RING_CREATE);
}

static void
ring_schema_add(struct ring_schema *schema, const struct ring_schema_entry *entry)
{
	struct ring_schema_state *state = &schema->state;
	struct ring_schemas *all = schema->node->ring->schemas;
	struct ring_schema_table *table = &state->tables[entry->name];

	if (!ring_schema_fits(state, entry->kind, entry->name))
		ring_schema_break(
		    schema->node, "a change is of another schema than it was made for");
	if (state->count > 0 && entry->timestamp <= state->history[state->count - 1].timestamp)
		ring_schema_break(schema->node, "a change is not younger than the one before it");
	if (state->count < all->count && !ring_schema_same(&all->history[state->count], entry))
		ring_schema_break(schema->node, "two nodes have two orders");
	if (state->count == all->count) {
		all->history = xrealloc(all->history, (all->count + 1) * sizeof(*all->history));
		all->history[all->count++] = *entry;
	}
	state->history = xrealloc(state->history, (state->count + 1) * sizeof(*state->history));
	state->history[state->count++] = *entry;
	if (entry->kind == RING_CREATE)
		*table = (struct ring_schema_table){.created = entry->timestamp};
	else if (entry->kind == RING_ALTER)
		table->columns++;
	else
		table->created = 0;
}

/* ---- The log's operations --------------------------------------------------------------------- */

static int
ring_schema_load(void *context, struct buffer *out, struct error *err)
{
	struct ring_schema *schema = context;

	buffer_put_slice(out, buffer_slice(&ring_schema_disk(schema->node)->log));
	return buffer_check(out, err);
}

static int
ring_schema_save(void *context, struct slice state, struct error *err)
{
	struct ring_schema *schema = context;
	struct ring_schema_disk *disk = ring_schema_disk(schema->node);

	buffer_clear(&disk->log);
	buffer_put_slice(&disk->log, state);
	ring_schema_copy(&disk->state, &schema->state);
	return buffer_check(&disk->log, err);
}

static int
ring_schema_transform(
    void *context, void *argument, int64_t timestamp, struct buffer *out, struct error *err)
{
	struct ring_schema *schema = context;
	const struct ring_schema_change *change = argument;
	struct ring_schema_entry entry = {change->kind, change->name, change->number, timestamp};

	if (!ring_schema_fits(&schema->state, change->kind, change->name))
		return error_set(err,
		    change->kind == RING_CREATE ? ERROR_ALREADY_EXISTS : ERROR_INVALID,
		    "table d%u is %s", change->name,
		    change->kind == RING_CREATE ? "there" : "not there");
	ring_schema_encode(&entry, out);
	return 1;
}

static int
ring_schema_apply(void *context, struct slice bytes, struct error *err)
{
	struct ring_schema *schema = context;
	struct reader reader = reader_of(bytes);
	struct ring_schema_entry entry = ring_schema_decode(&reader);
	const struct ring_schema_state *state = &schema->state;

	if (reader.is_failed)
		return error_set(err, ERROR_INVALID, "an entry is cut off");
	/* The same again: the node died between applying and saying so. */
	if (state->count > 0 && ring_schema_same(&state->history[state->count - 1], &entry))
		return 0;
	ring_schema_add(schema, &entry);
	ring_schema_take(schema);
	return 0;
}

static int
ring_schema_snapshot(void *context, int64_t timestamp, struct buffer *out, struct error *err)
{
	struct ring_schema *schema = context;

	(void)timestamp;
	buffer_put_u32(out, schema->state.count);
	for (uint32_t i = 0; i < schema->state.count; i++)
		ring_schema_encode(&schema->state.history[i], out);
	return buffer_check(out, err);
}

static int
ring_schema_install(void *context, struct slice snapshot, int64_t timestamp, struct error *err)
{
	struct ring_schema *schema = context;
	struct ring_schema_state *state = &schema->state;
	struct reader reader = reader_of(snapshot);
	uint32_t count = reader_u32(&reader), had = state->count;

	(void)timestamp;
	for (uint32_t i = 0; i < count && !reader.is_failed; i++) {
		struct ring_schema_entry entry = ring_schema_decode(&reader);

		if (i >= had)
			ring_schema_add(schema, &entry);
		else if (!ring_schema_same(&state->history[i], &entry))
			ring_schema_break(schema->node, "a snapshot has another order");
	}
	if (reader.is_failed)
		return error_set(err, ERROR_INVALID, "a snapshot is cut off");
	if (count < had)
		ring_schema_break(schema->node, "a snapshot is older than what it replaces");
	ring_schema_take(schema);
	return 0;
}

static void
ring_schema_done(void *context, void *argument, bool is_noop, const struct error *err)
{
	struct ring_schema *schema = context;
	struct ring_schema_change *change = argument;

	(void)is_noop;
	change->is_done = true;
	change->done_count++;
	change->has_failed = err != NULL;
	if (err != NULL)
		change->err = *err;
	world_note(schema->node->ring->world, "schema: change %u at node %u: %s", change->number,
	    schema->node->node->index, err == NULL ? "done" : err->text);
	if (change->on_done != NULL)
		change->on_done(change);
}

/* ---- A node's part ---------------------------------------------------------------------------- */

struct ring_schemas *
ring_schemas_new(uint32_t nodes)
{
	struct ring_schemas *schemas = xzalloc(sizeof(*schemas));

	schemas->disks = xcalloc(nodes, sizeof(*schemas->disks));
	for (uint32_t i = 0; i < nodes; i++)
		buffer_init(&schemas->disks[i].log);
	return schemas;
}

void
ring_schemas_free(struct ring_schemas *schemas, uint32_t nodes)
{
	if (schemas == NULL)
		return;
	for (uint32_t i = 0; i < nodes; i++) {
		buffer_fini(&schemas->disks[i].log);
		free(schemas->disks[i].state.history);
	}
	free(schemas->disks);
	free(schemas->history);
	free(schemas);
}

void
ring_schema_make(struct ring_node *node)
{
	node->changes = xzalloc(sizeof(*node->changes));
	node->changes->node = node;
	node->changes->base = schema_ref(node->schema);
	ring_schema_copy(&node->changes->state, &ring_schema_disk(node)->state);
	ring_schema_publish(node->changes);
}

void
ring_schema_start(struct ring_node *node)
{
	static const struct schema_log_ops ops = {ring_schema_load, ring_schema_save,
	    ring_schema_transform, ring_schema_apply, ring_schema_snapshot, ring_schema_install,
	    ring_schema_done};
	struct world_node *world_node = node->node;
	struct error err;

	node->changes->log = schema_log_new(&world_node->cluster, world_node->messaging,
	    world_node->peers, node->topology, &ops, node->changes);
	ring_must(schema_log_start(node->changes->log, &err), &err);
}

void
ring_schema_differs(struct ring_node *node, struct peer *peer)
{
	schema_log_peer_differs(node->changes->log, peer);
}

void
ring_schema_stop(struct ring_node *node)
{
	if (node->changes != NULL)
		schema_log_free(node->changes->log);
}

void
ring_schema_free(struct ring_node *node)
{
	if (node->changes == NULL)
		return;
	schema_unref(node->changes->base);
	free(node->changes->state.history);
	free(node->changes);
}

/* ---- Clients ----------------------------------------------------------------------------------- */

void
ring_change_schema(struct ring *ring, uint32_t index, struct ring_schema_change *change,
    enum ring_schema_kind kind, uint32_t name)
{
	struct ring_node *node = ring_node(ring, index);

	*change = (struct ring_schema_change){.on_done = change->on_done,
	    .context = change->context,
	    .kind = kind,
	    .name = name,
	    .number = ++ring->schemas->changes};
	schema_log_change(node->changes->log, change, RING_SCHEMA_TIMEOUT_NS);
}

int64_t
ring_table_created(struct ring *ring, uint32_t index, uint32_t name)
{
	return ring_node(ring, index)->changes->state.tables[name].created;
}

const struct table_metadata *
ring_named_table(struct ring *ring, uint32_t index, uint32_t name)
{
	struct ring_node *node = ring_node(ring, index);
	char text[16];

	snprintf(text, sizeof(text), "d%u", name);
	return schema_table(node->schema, slice_of_string("ks"), slice_of_string(text));
}

const char *
ring_schema_broken(struct ring *ring)
{
	return ring->schemas->broken;
}

uint32_t
ring_schema_place(struct ring *ring, const struct ring_schema_change *change, uint32_t *times)
{
	const struct ring_schemas *schemas = ring->schemas;
	uint32_t place = 0;

	*times = 0;
	for (uint32_t i = 0; i < schemas->count; i++) {
		if (schemas->history[i].number != change->number)
			continue;
		++*times;
		place = i;
	}
	return place;
}

bool
ring_schema_agrees(struct ring *ring)
{
	for (uint32_t i = 0; i < ring->options.world.node_count; i++)
		if (ring_serves(ring, i) &&
		    ring_node(ring, i)->changes->state.count != ring->schemas->count)
			return false;
	return true;
}
