/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/world/ring_internal.h"
#include "base/hash.h"
#include "cluster/paxos_codec.h"
#include "cluster/replica_plan.h"
#include "cql/table_options_internal.h"
#include "storage/counter.h"

struct ring_node *
ring_node(struct ring *ring, uint32_t index)
{
	return world_node(ring->world, index)->parts;
}

void
ring_must(int rc, const struct error *err)
{
	if (rc == 0)
		return;
	printf("ring: %s\n", err->text);
	abort();
}

/* ---- A node's parts ------------------------------------------------------------------------ */

static bool
ring_submit_work(void *context, const char *stage, store_work_fn work, void *argument)
{
	(void)context;
	(void)stage;
	work(argument);
	return true;
}

static struct table_metadata *
ring_make_table(const struct ring *ring, const char *name, bool is_counter)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string(name));
	struct uuid id = {
	    {(uint8_t)name[0], 2, 3, 4, 5, 6, 0x11, 8, 0x89, 10, 11, 12, 13, 14, 15, 16}};
	struct table_options *options = table_builder_options(builder);
	struct table_metadata *table;
	struct error err;

	table_builder_set_id(builder, &id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "pk", "int");
	if (is_counter) {
		table_builder_set_flags(builder, TABLE_COMPOUND | TABLE_COUNTER);
		table_builder_add(builder, COLUMN_REGULAR, "n", "counter");
	} else {
		table_builder_add(builder, COLUMN_CLUSTERING, "ck", "int");
		table_builder_add(builder, COLUMN_REGULAR, "v", "bigint");
	}
	if (ring->options.speculative_retry != NULL)
		ring_must(
		    table_options_parse_retry(slice_of_string(ring->options.speculative_retry),
			&options->speculative_retry, table_builder_arena(builder), &err),
		    &err);
	ring_must(table_builder_build(builder, &table, &err), &err);
	table_builder_free(builder);
	return table;
}

/* system.paxos, as far as Paxos uses it. */
static struct table_metadata *
ring_make_paxos_table(void)
{
	static const char *const columns[][2] = {{"in_progress_ballot", "timeuuid"},
	    {"most_recent_commit", "blob"}, {"most_recent_commit_at", "timeuuid"},
	    {"most_recent_commit_version", "int"}, {"proposal", "blob"},
	    {"proposal_ballot", "timeuuid"}, {"proposal_version", "int"}};
	struct table_builder *builder =
	    table_builder_new(slice_of_string("system"), slice_of_string("paxos"));
	struct uuid id = {{'p', 2, 3, 4, 5, 6, 0x11, 8, 0x89, 10, 11, 12, 13, 14, 15, 16}};
	struct table_metadata *table;
	struct error err;

	table_builder_set_id(builder, &id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "row_key", "blob");
	table_builder_add(builder, COLUMN_CLUSTERING, "cf_id", "uuid");
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		table_builder_add(builder, COLUMN_REGULAR, columns[i][0], columns[i][1]);
	table_builder_options(builder)->gc_grace_seconds = 0;
	ring_must(table_builder_build(builder, &table, &err), &err);
	table_builder_free(builder);
	return table;
}

/* The schema with keyspace "system" too, which each node keeps to itself. */
static struct schema *
ring_add_system(struct ring_node *node, struct schema *schema)
{
	struct option_entry entry = {slice_of_string("class"),
	    slice_of_string("org.apache.cassandra.locator.LocalStrategy")};
	struct option_map replication = {&entry, 1};
	struct keyspace_metadata *bare, *with, *both;
	struct schema *made;

	node->paxos_table = ring_make_paxos_table();
	node->batches_table = ring_make_batches_table();
	bare = keyspace_new(slice_of_string("system"), &replication, true, false);
	with = keyspace_with_table(bare, node->paxos_table);
	both = keyspace_with_table(with, node->batches_table);
	made = schema_with_keyspace(schema, both);
	keyspace_unref(bare);
	keyspace_unref(with);
	keyspace_unref(both);
	schema_unref(schema);
	return made;
}

static void
ring_make_schema(struct ring_node *node)
{
	const struct ring *ring = node->ring;
	char factor[12], names[8][16];
	struct option_entry entries[9];
	struct option_map replication = {entries, 1};
	struct keyspace_metadata *bare, *with, *both;
	struct schema *empty = schema_new();

	snprintf(factor, sizeof(factor), "%d", (int)ring->options.factor);
	entries[0].key = slice_of_string("class");
	if (ring->options.datacenters > 1) {
		entries[0].value =
		    slice_of_string("org.apache.cassandra.locator.NetworkTopologyStrategy");
		for (uint32_t i = 0; i < ring->options.datacenters; i++) {
			snprintf(names[i], sizeof(names[i]), "dc%u", i + 1);
			entries[1 + i] = (struct option_entry){
			    slice_of_string(names[i]), slice_of_string(factor)};
		}
		replication.count += ring->options.datacenters;
	} else {
		entries[0].value = slice_of_string("org.apache.cassandra.locator.SimpleStrategy");
		entries[1] = (struct option_entry){
		    slice_of_string("replication_factor"), slice_of_string(factor)};
		replication.count = 2;
	}
	node->tables[0] = ring_make_table(ring, "t", false);
	node->tables[1] = ring_make_table(ring, "c", true);
	bare = keyspace_new(slice_of_string("ks"), &replication, true, false);
	with = keyspace_with_table(bare, node->tables[0]);
	both = keyspace_with_table(with, node->tables[1]);
	node->schema = ring_add_system(node, schema_with_keyspace(empty, both));
	node->keyspace = schema_keyspace(node->schema, slice_of_string("ks"));
	keyspace_unref(bare);
	keyspace_unref(with);
	keyspace_unref(both);
	schema_unref(empty);
}

const char *
ring_datacenter(const struct ring *ring, uint32_t index)
{
	static const char *const names[] = {"dc1", "dc2", "dc3", "dc4"};

	return names[ring->options.datacenters > 1 ? index % ring->options.datacenters : 0];
}

/* As the test says who is a member. */
static void
ring_update_topology(struct ring_node *node)
{
	static const enum member_state states[] = {[RING_NORMAL] = MEMBER_NORMAL,
	    [RING_JOINING] = MEMBER_JOINING,
	    [RING_LEAVING] = MEMBER_LEAVING};
	struct ring *ring = node->ring;
	uint32_t count = ring->options.world.node_count, used = 0;
	struct member *members = xcalloc(count, sizeof(*members));
	int64_t(*tokens)[RING_TOKENS] = xcalloc(count, sizeof(*tokens));
	struct error err;

	for (uint32_t i = 0; i < count; i++) {
		enum ring_standing place = ring->places[node->node->index * count + i];

		if (place == RING_OUT)
			continue;
		for (uint32_t j = 0; j < RING_TOKENS; j++)
			/* Spread evenly, each node's turn again and again. */
			tokens[i][j] =
			    (int64_t)((j * count + i) * (UINT64_MAX / (RING_TOKENS * count)) +
				(UINT64_C(1) << 63) + 1);
		members[used] = (struct member){
		    .peer = peers_get(node->node->peers, &world_node(ring->world, i)->endpoint),
		    .host_id = {{(uint8_t)(i + 1)}},
		    .datacenter = ring_datacenter(ring, i),
		    .rack = "rack1",
		    .state = states[place],
		    .token_count = RING_TOKENS,
		    .tokens = tokens[i]};
		atomic_store(
		    &members[used++].peer->is_alive, i == node->node->index || ring->alive[i]);
	}
	ring_must(topology_update(node->topology, members, used, &err), &err);
	free(members);
	free(tokens);
}

static uint64_t
ring_timeout_ns(void *context, enum coordinator_timeout which)
{
	(void)context;
	return which == COORDINATOR_TIMEOUT_RANGE ? 10 * WORLD_S : 2 * WORLD_S;
}

static uint64_t
ring_paxos_timeout_ns(void *context)
{
	(void)context;
	return 2 * WORLD_S;
}

struct schema *
ring_schema(void *context)
{
	struct ring_node *node = context;

	return node->has_forgotten ? schema_new() : schema_ref(node->schema);
}

static uint32_t
ring_tombstones(void *context)
{
	(void)context;
	return 100000;
}

static int
ring_record_truncate(
    void *context, struct table_store *table, struct commitlog_position position, struct error *err)
{
	(void)context;
	(void)table;
	(void)position;
	(void)err;
	return 0;
}

static int
ring_truncate_table(void *context, const struct table_metadata *table, struct error *err)
{
	struct ring_node *node = context;

	return store_truncate(
	    node->store, store_table(node->store, table), ring_record_truncate, node, err);
}

uint32_t
ring_index_of(struct ring *ring, const struct peer *peer)
{
	for (uint32_t i = 0; i < ring->options.world.node_count; i++) {
		if (endpoint_equal(&world_node(ring->world, i)->endpoint, &peer->endpoint))
			return i;
	}
	abort();
}

static uint64_t
ring_write_timeout_ns(void *context)
{
	return ring_timeout_ns(context, COORDINATOR_TIMEOUT_WRITE);
}

static uint64_t
ring_downtime_ns(void *context, struct peer *peer)
{
	(void)context;
	(void)peer;
	return 0;
}

static int64_t
ring_truncated_ms(void *context, const struct table_metadata *table)
{
	(void)context;
	(void)table;
	return 0;
}

static void
ring_open_hints(struct ring_node *node)
{
	struct world_node *world_node = node->node;
	struct hints_options options = {.directory = "/hints",
	    .host_id = ring_host_id(node),
	    .in_flight_max = 1024,
	    .cluster = &world_node->cluster,
	    .messaging = world_node->messaging,
	    .peers = world_node->peers,
	    .topology = node->topology,
	    .store = node->store,
	    .context = node,
	    .timeout_ns = ring_write_timeout_ns,
	    .schema = ring_schema,
	    .downtime_ns = ring_downtime_ns,
	    .truncated_ms = ring_truncated_ms};
	struct error err;

	ring_must(hints_open(&options, &node->hints, &err), &err);
	hints_start(node->hints);
}

static void
ring_open_store(struct ring_node *node)
{
	static const char *const directories[] = {"/data"};
	struct store_executor executor = {ring_submit_work, node};
	struct store_options options;
	struct uuid host_id = ring_host_id(node);
	struct error err;

	store_options_defaults(&options);
	options.data_directories = directories;
	options.data_directory_count = 1;
	options.commitlog_directory = "/commitlog";
	options.commitlog_segment_bytes = 1 << 20;
	options.commitlog_total_bytes = 16 << 20;
	options.memtable_bytes = 64 << 20;
	options.memtable_shards = 2;
	ring_must(store_open(&options, node->node->env, &executor, &node->store, &err), &err);
	ring_must(store_set_schema(node->store, node->schema, &err), &err);
	store_set_host_id(node->store, &host_id);
	ring_must(store_replay(node->store, &err), &err);
}

/* ---- Repair ------------------------------------------------------------------------------ */

struct ring_exchange {
	struct stream_wait wait; /* first */
	struct repair_sync *sync;
};

static void
ring_exchanged(struct stream_wait *wait, const struct error *err)
{
	struct repair_sync *sync = ((struct ring_exchange *)wait)->sync;

	sync->on_done(sync, err);
}

static void
ring_sync(void *context, struct repair_sync *sync)
{
	struct ring_node *node = context;
	struct ring_exchange *exchange = xzalloc(sizeof(*exchange));
	struct stream_job *job = stream_job_new(
	    node->streams, STREAM_REPAIR, sync->has_pending_repair ? &sync->pending_repair : NULL);

	exchange->wait.on_done = ring_exchanged;
	exchange->sync = sync;
	sync->exchange = exchange;
	stream_job_request(
	    job, sync->peer, sync->keyspace, &sync->table, 1, sync->ranges, sync->range_count);
	if (!sync->is_pull)
		stream_job_send(job, sync->peer, sync->keyspace, &sync->table, 1, sync->ranges,
		    sync->range_count);
	stream_job_start(job, &exchange->wait);
}

static void
ring_record(void *context, const struct repair_record *record)
{
	(void)context;
	(void)record;
}

/* What a node's system.repairs has, which outlives it. */
struct ring_session {
	struct ring_session *next;
	uint32_t node;
	struct repair_local local; /* lists are owned */
};

static void *
ring_copy(const void *items, size_t bytes)
{
	void *copy = xmalloc(bytes + 1);

	if (bytes > 0)
		memcpy(copy, items, bytes);
	return copy;
}

static int
ring_save_session(void *context, const struct repair_local *local, struct error *err)
{
	struct ring_node *node = context;
	struct ring_session *session = node->ring->sessions;

	(void)err;
	while (session != NULL &&
	    (session->node != node->node->index || !uuid_equal(&session->local.id, &local->id)))
		session = session->next;
	if (session != NULL) {
		session->local.state = local->state;
		session->local.last_update_ms = local->last_update_ms;
		return 0;
	}
	session = xzalloc(sizeof(*session));
	session->node = node->node->index;
	session->local = *local;
	session->local.tables =
	    ring_copy(local->tables, local->table_count * sizeof(*local->tables));
	session->local.ranges =
	    ring_copy(local->ranges, local->range_count * sizeof(*local->ranges));
	session->local.participants =
	    ring_copy(local->participants, local->participant_count * sizeof(*local->participants));
	session->next = node->ring->sessions;
	node->ring->sessions = session;
	return 0;
}

static void
ring_free_session(struct ring_session *session)
{
	free((void *)session->local.tables);
	free((void *)session->local.ranges);
	free((void *)session->local.participants);
	free(session);
}

static void
ring_forget_session(void *context, const struct uuid *id)
{
	struct ring_node *node = context;

	for (struct ring_session **at = &node->ring->sessions; *at != NULL; at = &(*at)->next) {
		struct ring_session *session = *at;

		if (session->node != node->node->index || !uuid_equal(&session->local.id, id))
			continue;
		*at = session->next;
		ring_free_session(session);
		return;
	}
}

static void
ring_free_sessions(struct ring *ring)
{
	while (ring->sessions != NULL) {
		struct ring_session *session = ring->sessions;

		ring->sessions = session->next;
		ring_free_session(session);
	}
}

static bool
ring_skips_paxos(void *context, struct slice keyspace)
{
	(void)context;
	(void)keyspace;
	return false;
}

static void
ring_start_repairs(struct ring_node *node)
{
	const struct repair_ops ops = {.context = node,
	    .schema = ring_schema,
	    .sync = ring_sync,
	    .record = ring_record,
	    .save = ring_save_session,
	    .forget = ring_forget_session,
	    .paxos = node->paxos,
	    .skips_paxos = ring_skips_paxos,
	    .session_space = 1 << 20,
	    .depth_max = 20};

	node->repairs = repairs_new(&node->node->cluster, node->node->peers, node->node->messaging,
	    node->topology, node->store, &ops);
	for (struct ring_session *each = node->ring->sessions; each != NULL; each = each->next)
		if (each->node == node->node->index)
			repairs_add_saved(node->repairs, &each->local);
	repairs_resume(node->repairs);
}

static void *
ring_start(struct world_node *world_node, void *context)
{
	struct ring_node *node = xzalloc(sizeof(*node));
	struct snitch_config config = snitch_config_default;
	struct coordinator_ring ring;
	struct paxos_options paxos;
	struct streams_options streams;
	struct uuid host_id;
	struct error err;

	node->ring = context;
	node->node = world_node;
	host_id = ring_host_id(node);
	ring_make_schema(node);
	if (node->ring->schemas != NULL)
		ring_schema_make(node);
	ring_open_store(node);
	node->topology = topology_holder_new(world_node->peers);
	topology_holder_set_local(
	    node->topology, ring_datacenter(node->ring, world_node->index), "rack1");
	if (node->ring->memory == NULL)
		ring_update_topology(node);
	config.endpoint_snitch =
	    node->ring->options.datacenters > 1 ? "GossipingPropertyFileSnitch" : "SimpleSnitch";
	config.datacenter = ring_datacenter(node->ring, world_node->index);
	config.rack = "rack1";
	ring_must(
	    snitch_new(&config, world_node->env, world_node->peers, &node->snitch, &err), &err);
	snitch_start(node->snitch, &world_node->cluster);
	if (node->ring->memory != NULL)
		ring_members_make(node);
	node->coordinator = coordinator_new(node->store, world_node->env);
	coordinator_set_host_id(node->coordinator, &host_id);
	ring = (struct coordinator_ring){
	    .cluster = &world_node->cluster,
	    .messaging = world_node->messaging,
	    .peers = world_node->peers,
	    .topology = node->topology,
	    .snitch = node->snitch,
	    .context = node,
	    .timeout_ns = ring_timeout_ns,
	    .schema = ring_schema,
	    .tombstone_failure_threshold = ring_tombstones,
	    .truncate = ring_truncate_table,
	};
	if (node->ring->options.has_hints) {
		ring_open_hints(node);
		ring.hints = hints_for_coordinator(node->hints);
	}
	coordinator_set_ring(node->coordinator, &ring);
	paxos = (struct paxos_options){.store = node->store,
	    .cluster = &world_node->cluster,
	    .messaging = world_node->messaging,
	    .peers = world_node->peers,
	    .topology = node->topology,
	    .context = node,
	    .schema = ring_schema,
	    .contention_timeout_ns = ring_paxos_timeout_ns,
	    .write_timeout_ns = ring_paxos_timeout_ns,
	    .repair_parallelism = 4,
	    .hints = ring.hints};
	node->paxos = paxos_new(&paxos);
	streams_options_init(&streams);
	if (node->ring->options.streams.keep_alive_ns != 0)
		streams = node->ring->options.streams;
	node->streams = streams_new(&world_node->cluster, node->store, node->topology, &streams);
	ring_start_repairs(node);
	if (node->ring->options.has_batches)
		ring_batches_start(node);
	if (node->changes != NULL)
		ring_schema_start(node);
	if (node->ring->memory != NULL)
		ring_members_start(node);
	return node;
}

static void
ring_stop(struct world_node *world_node, void *parts, void *context)
{
	struct ring_node *node = parts;

	(void)world_node;
	(void)context;
	ring_schema_stop(node);
	paxos_free(node->paxos);
	/* Batches wait for hints to be on the disk. */
	hints_close(node->hints);
	ring_batches_free(node);
	coordinator_free(node->coordinator);
	repairs_free(node->repairs);
	streams_free(node->streams);
	store_close(node->store);
	ring_members_free(node);
	topology_holder_free(node->topology);
	snitch_free(node->snitch);
	schema_unref(node->schema);
	table_unref(node->tables[0]);
	table_unref(node->tables[1]);
	table_unref(node->paxos_table);
	table_unref(node->batches_table);
	ring_schema_free(node);
	free(node);
}

/* ---- The ring ------------------------------------------------------------------------------ */

struct ring *
ring_new(const struct ring_options *options)
{
	static const struct world_ops ops = {
	    .start = ring_start, .stop = ring_stop, .refused = ring_refused};
	struct ring *ring = xzalloc(sizeof(*ring));
	uint32_t count = options->world.node_count;

	ring->options = *options;
	ring->options.world.has_disks = true;
	ring->alive = xcalloc(count, sizeof(bool));
	ring->places = xcalloc((size_t)count * count, sizeof(*ring->places));
	for (uint32_t i = 0; i < count; i++)
		ring->alive[i] = true;
	if (options->founder_count > 0)
		ring->memory = ring_memory_new(count);
	if (options->has_schema_log)
		ring->schemas = ring_schemas_new(count);
	ring->world = world_new(&ring->options.world, &ops, ring);
	if (options->founder_count > 0)
		count = options->founder_count;
	for (uint32_t i = 0; i < count; i++)
		world_start(ring->world, i);
	return ring;
}

void
ring_free(struct ring *ring)
{
	world_free(ring->world);
	ring_memory_free(ring->memory, ring->options.world.node_count);
	ring_schemas_free(ring->schemas, ring->options.world.node_count);
	ring_free_sessions(ring);
	free(ring->alive);
	free(ring->places);
	free(ring);
}

struct world *
ring_world(struct ring *ring)
{
	return ring->world;
}

struct coordinator *
ring_coordinator(struct ring *ring, uint32_t node)
{
	return ring_node(ring, node)->coordinator;
}

struct repairs *
ring_repairs(struct ring *ring, uint32_t node)
{
	return ring_node(ring, node)->repairs;
}

struct streams *
ring_streams(struct ring *ring, uint32_t node)
{
	return ring_node(ring, node)->streams;
}

struct snitch *
ring_snitch(struct ring *ring, uint32_t node)
{
	return ring_node(ring, node)->snitch;
}

struct store *
ring_store(struct ring *ring, uint32_t node)
{
	return ring_node(ring, node)->store;
}

struct table_store *
ring_table_store(struct ring *ring, uint32_t node, int table)
{
	return store_table(ring_store(ring, node), ring_node(ring, node)->tables[table]);
}

struct peer *
ring_peer(struct ring *ring, uint32_t node, uint32_t of)
{
	return peers_get(
	    world_node(ring->world, node)->peers, &world_node(ring->world, of)->endpoint);
}

/* Any node that is up. */
static struct ring_node *
ring_any(struct ring *ring)
{
	for (uint32_t i = 0;; i++)
		if (world_node(ring->world, i)->is_up)
			return ring_node(ring, i);
}

uint32_t
ring_ranges(struct ring *ring, uint32_t index, struct ring_range **out)
{
	struct ring_node *node = ring_any(ring);
	const struct topology *topology = topology_acquire(node->topology);
	uint32_t count = replication_ranges_of(topology_replication(topology, node->keyspace),
	    peers_get(node->node->peers, &world_node(ring->world, index)->endpoint), out);

	topology_release(node->topology, topology);
	return count;
}

void
ring_flush(struct ring *ring, uint32_t index)
{
	struct ring_node *node = ring_node(ring, index);
	struct error err;

	for (uint32_t i = 0; i < 2; i++)
		ring_must(store_flush(node->store, store_table(node->store, node->tables[i]), &err),
		    &err);
	ring_must(
	    store_flush(node->store, store_table(node->store, node->paxos_table), &err), &err);
}

void
ring_set_alive(struct ring *ring, uint32_t index, bool is_alive)
{
	ring->alive[index] = is_alive;
	for (uint32_t i = 0; i < ring->options.world.node_count; i++) {
		struct world_node *node = world_node(ring->world, i);

		if (node->is_up && i != index)
			atomic_store(
			    &peers_get(node->peers, &world_node(ring->world, index)->endpoint)
				 ->is_alive,
			    is_alive);
	}
}

static void
ring_crash(struct ring *ring, uint32_t node, enum world_death death)
{
	struct error err;

	ring_must(store_sync(ring_node(ring, node)->store, &err), &err);
	world_crash(ring->world, node, death);
}

void
ring_kill(struct ring *ring, uint32_t node)
{
	ring_crash(ring, node, WORLD_KILL);
}

void
ring_cut_power(struct ring *ring, uint32_t node)
{
	ring_crash(ring, node, WORLD_POWER);
}

struct paxos *
ring_paxos(struct ring *ring, uint32_t node)
{
	return ring_node(ring, node)->paxos;
}

/* ---- Who comes and goes -------------------------------------------------------------------- */

void
ring_set_place(struct ring *ring, uint32_t viewer, uint32_t of, enum ring_standing place)
{
	ring->places[viewer * ring->options.world.node_count + of] = (uint8_t)place;
	if (world_node(ring->world, viewer)->is_up)
		ring_update_topology(ring_node(ring, viewer));
}

static void
ring_moved(struct service_wait *wait, const struct error *err)
{
	struct ring_movement *movement =
	    (struct ring_movement *)((char *)wait - offsetof(struct ring_movement, wait));

	movement->on_done(movement, err);
}

void
ring_move(struct ring *ring, uint32_t index, struct ring_movement *movement)
{
	struct ring_node *node = ring_node(ring, index);
	bool leaves = ring->places[index * ring->options.world.node_count + index] == RING_LEAVING;
	struct service_movement wanted = {
	    .operation = leaves ? STREAM_UNBOOTSTRAP : STREAM_BOOTSTRAP,
	    .peer = peers_local(node->node->peers)};

	movement->wait.on_done = ring_moved;
	ring_move_data(node, &wanted, movement->skips_paxos, &movement->wait);
}

uint32_t
ring_replicas(struct ring *ring, int32_t key, uint32_t *out, uint32_t capacity)
{
	struct ring_node *node = ring_any(ring);
	const struct topology *topology;
	const struct replica_set *set;
	uint8_t pk[4];
	uint32_t count = 0;

	store_u32(pk, (uint32_t)key);
	topology = topology_acquire(node->topology);
	set = replication_replicas(topology_replication(topology, node->keyspace),
	    murmur3_token(slice_of(pk, sizeof(pk))));
	for (uint32_t i = 0; i < set->count && count < capacity; i++)
		out[count++] = ring_index_of(ring, set->peers[i]);
	topology_release(node->topology, topology);
	return count;
}

void
ring_forget_schema(struct ring *ring, uint32_t node)
{
	ring_node(ring, node)->has_forgotten = true;
}

struct hints *
ring_hints(struct ring *ring, uint32_t node)
{
	return ring_node(ring, node)->hints;
}

uint32_t
ring_hint_count(struct ring *ring)
{
	struct hints_stats stats;
	uint64_t count = 0;

	for (uint32_t i = 0; i < ring->options.world.node_count; i++) {
		if (!world_node(ring->world, i)->is_up)
			continue;
		hints_stats(ring_hints(ring, i), &stats);
		count += stats.total;
	}
	return (uint32_t)count;
}

void
ring_deliver_hints(struct ring *ring)
{
	for (uint32_t i = 0; i < ring->options.world.node_count; i++) {
		if (world_node(ring->world, i)->is_up)
			hints_deliver(ring_hints(ring, i));
	}
}
