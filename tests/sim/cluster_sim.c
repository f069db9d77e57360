/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole cluster in a simulated world (tests/sim/world), from seeds: a ring by gossip, whose nodes have stores on simulated
 * disks, hints, a batchlog, Paxos, counters, streams and repair, in one data center or (each third seed) in two. Nodes join,
 * leave, are removed and replaced, one after the other, while clients write and read, alone, in batches and page by page, create,
 * alter and drop tables, and while messages are lost, links are cut, and nodes stand still, are killed, lose their power and start again. Then, always:
 *   - a request is answered exactly once, and in time;
 *   - no acknowledged write is lost, and no read goes back in time: at QUORUM, at EACH_QUORUM, and at LOCAL_QUORUM in a
 *     data center; pages of a scan are in order and leave nothing out;
 *   - a batch is written whole or not at all, whoever dies;
 *   - counters add up: what was acknowledged, and no more than that and what is not known;
 *   - conditional statements and serial reads are linearizable;
 *   - each change of the ring comes to its end, and all nodes see the same ring;
 *   - changes of the schema have one order, in which those that were acknowledged stand as clients saw them, each once; all
 *     nodes come to have the same tables, and no table has what was written to another one of its name;
 *   - after a repair all replicas of a row have the same.
 *
 *   cluster_sim [FIRST_SEED [SEEDS]]       SIM_SEEDS in the environment otherwise; SIM_VERBOSE=1: figures;
 *                                      SIM_STORY: how many lines of a story are kept
 *
 * At most one node is away at a time, none is cut off for so long that a coordinator does not hear of a change within the
 * ring delay, and what is left is repaired before a dead node is removed or replaced: more than that Cassandra's
 * rings do not survive either.
 *
 * Ends with "N passed, N failed"; a failing seed is printed with the end of its story, and can be run alone.
 */
#include <stdarg.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "tests/sim/linearizable.h"
#include "tests/sim/world/ring.h"
#include "tests/sim/world/seeds.h"

enum {
	NODES = 9, /* by turns in the data centers */
	DATACENTERS = 2, /* at most */
	FOUNDERS = 4, /* 6 of two data centers */
	FACTOR = 3, /* in each */
	CHANGES = 3, /* of a seed */
	CLIENTS = 6,
	ROWS = 2, /* of a partition */
	KEYS = 24, /* written and read: row key % ROWS of partition key / ROWS */
	PARTITIONS = KEYS / ROWS,
	COUNTERS = 3,
	REGISTERS = 3, /* compared and set; partitions of the same table, behind the others */
	PAIRS = 3, /* of partitions, written by batches; behind these */
	FIRST_REGISTER = PARTITIONS,
	FIRST_PAIR = FIRST_REGISTER + REGISTERS,
	ALL_PARTITIONS = FIRST_PAIR + 2 * PAIRS,
	PAGE = 5, /* rows */
	OPERATIONS_MAX = 8000,
	DESIGNERS = 4, /* clients that change the schema */
	SCHEMA_CHANGES_MAX = 1000,
	NAMED_KEYS = 2, /* partitions of each table that they make */
	STORY_LINES = 2000,
	RING_DELAY_S = 10,
	CHANGE_S_MAX = 2400, /* with all its attempts, and repairs of all that are left */
	/* Contention, the last prepare, proposal and commit, and the read; and a node that stands still. */
	ANSWER_MS = 5 * 2000 + 1000 + 3 * 2000,
};

enum change_kind { CHANGE_JOIN, CHANGE_LEAVE, CHANGE_REMOVE, CHANGE_REPLACE, CHANGE_KINDS };
enum request {
	REQUEST_WRITE,
	REQUEST_READ,
	REQUEST_COUNT,
	REQUEST_CAS,
	REQUEST_SERIAL_READ,
	REQUEST_BATCH,
	REQUEST_SCAN,
	REQUEST_NAMED_WRITE,
	REQUEST_NAMED_READ,
	REQUESTS,
};

/* The version of a key that reads of a level must see at least. */
struct known {
	int64_t quorum, local[DATACENTERS];
};

struct run;

struct client {
	struct run *run;
	struct ring_op op;
	bool is_busy;
	enum request request;
	uint32_t key;
	enum consistency level;
	int64_t version; /* of a write */
	int64_t floors[KEYS]; /* of a read: it must see at least these */
	bool is_scanning; /* there is a next page, behind the last row */
	struct ring_row last;
	int64_t created; /* of the table that has a name */
	struct operation operation;
	uint64_t began_ns;
};

/* A change of the schema, as its client saw it. */
struct designed {
	struct ring_schema_change change; /* first */
	struct run *run;
	uint64_t began, ended; /* moments; ended 0: not yet */
};

/* The last table of a name that anybody used: what reads of it must see. */
struct named {
	int64_t created;
	int64_t floors[NAMED_KEYS];
};

struct run {
	uint64_t seed;
	struct ring *ring;
	struct world *world;
	struct client clients[CLIENTS];
	uint32_t datacenters;
	struct known known[KEYS];
	int64_t batched[PAIRS];
	int64_t versions;
	struct named named[RING_NAMES];
	int64_t *
	    written_to; /* owned; by version: when its table was created; 0: one that is always there */
	int64_t written_room;
	struct designed *designed; /* owned */
	uint32_t designed_count, designing;
	int64_t counted[COUNTERS], maybe_counted[COUNTERS];
	int64_t register_seen[REGISTERS], values;
	uint64_t moment;
	struct operation operations[OPERATIONS_MAX];
	uint32_t operation_count;
	uint32_t succeeded[REQUESTS], failed[REQUESTS], troubles;

	/* The ring as it should become. */
	uint32_t member_count;
	bool is_member[NODES]; /* or is about to be */
	bool was_used[NODES];
	uint32_t away; /* 1 + the one node that is not up, or is to die; 0: none */
	enum change_kind kind;
	bool is_changing, has_asked, is_resuming;
	/* Whose ranges are repaired before a dead one is given up. */
	bool is_repairing[NODES], is_repaired[NODES];
	uint32_t repair_numbers[NODES];
	uint32_t subject, newcomer; /* newcomer 0: not yet, or nobody */
	uint64_t changed_ns;
	struct ring_change change;
	uint32_t attempts;
	bool is_broken;
};

static void
run_break(struct run *run, const char *format, ...)
{
	va_list arguments;

	if (!run->is_broken) {
		printf("--- seed %" PRIu64 " (cluster_sim %" PRIu64 " 1): ", run->seed, run->seed);
		va_start(arguments, format);
		vprintf(format, arguments);
		va_end(arguments);
		printf("\n");
		world_tell(run->world, stdout);
	}
	run->is_broken = true;
}

/* ---- What is known ------------------------------------------------------------------------- */

static uint32_t
run_datacenter(const struct run *run, uint32_t node)
{
	return node % run->datacenters;
}

static int64_t
known_floor(const struct run *run, uint32_t key, enum consistency level, uint32_t datacenter)
{
	const struct known *known = &run->known[key];
	int64_t floor;

	if (level == CONSISTENCY_QUORUM)
		return known->quorum;
	if (level == CONSISTENCY_LOCAL_QUORUM)
		return known->local[datacenter];
	floor = known->quorum;
	for (uint32_t i = 0; i < run->datacenters; i++)
		if (known->local[i] > floor)
			floor = known->local[i];
	return floor;
}

static void
known_raise(int64_t *known, int64_t version)
{
	if (version > *known)
		*known = version;
}

/* The version was written or read; a read repairs what it saw at so many. */
static void
known_learn(
    struct run *run, uint32_t key, enum consistency level, uint32_t datacenter, int64_t version)
{
	struct known *known = &run->known[key];
	bool is_one = run->datacenters == 1; /* there all levels are the same */

	if (level != CONSISTENCY_LOCAL_QUORUM || is_one)
		known_raise(&known->quorum, version);
	for (uint32_t i = 0; i < run->datacenters; i++)
		if (level == CONSISTENCY_EACH_QUORUM || is_one ||
		    (level == CONSISTENCY_LOCAL_QUORUM && i == datacenter))
			known_raise(&known->local[i], version);
}

static enum consistency
run_level(struct run *run)
{
	static const enum consistency levels[] = {CONSISTENCY_QUORUM, CONSISTENCY_LOCAL_QUORUM,
	    CONSISTENCY_LOCAL_QUORUM, CONSISTENCY_EACH_QUORUM};

	return levels[world_chance(run->world, 4)];
}

/* ---- Clients ------------------------------------------------------------------------------- */

static void
client_note_cas(struct client *client)
{
	struct run *run = client->run;
	struct ring_op *op = &client->op;
	struct operation *operation = &client->operation;

	operation->ended = ++run->moment;
	operation->seen = op->row_count > 0 ? op->rows[0].v : 0;
	if (op->has_failed)
		operation->outcome =
		    op->err.code == ERROR_UNAVAILABLE ? OUTCOME_NEVER : OUTCOME_UNKNOWN;
	else
		operation->outcome = op->is_applied ? OUTCOME_APPLIED : OUTCOME_READ;
	if (!op->has_failed)
		run->register_seen[operation->key] =
		    op->is_applied ? operation->written : operation->seen;
	if (client->request == REQUEST_SERIAL_READ && op->has_failed)
		return;
	if (run->operation_count == OPERATIONS_MAX)
		run_break(run, "too many operations");
	else
		run->operations[run->operation_count++] = *operation;
}

/* Does the row stand behind the other one in the order of the ring? */
static bool
row_is_behind(const struct ring_row *row, const struct ring_row *other)
{
	uint8_t a[4], b[4];
	int64_t token, before;

	if (row->pk == other->pk)
		return row->ck > other->ck;
	store_u32(a, (uint32_t)row->pk);
	store_u32(b, (uint32_t)other->pk);
	token = murmur3_token(slice_of(a, 4));
	before = murmur3_token(slice_of(b, 4));
	return token != before ? token > before : row->pk > other->pk;
}

static void
client_note_row(struct client *client, uint32_t key)
{
	struct run *run = client->run;
	uint32_t datacenter = run_datacenter(run, client->op.node);
	int64_t found = 0;

	for (uint32_t i = 0; i < client->op.row_count; i++) {
		const struct ring_row *row = &client->op.rows[i];

		if (row->pk == (int32_t)(key / ROWS) && row->ck == (int32_t)(key % ROWS))
			found = row->v;
	}
	if (found < client->floors[key])
		run_break(run,
		    "node %u read version %" PRId64 " of key %u where %" PRId64
		    " was known (level %d)",
		    client->op.node, found, key, client->floors[key], (int)client->level);
	known_learn(run, key, client->level, datacenter, found);
}

static void
client_note_read(struct client *client)
{
	uint32_t partition = client->key / ROWS;

	for (uint32_t i = 0; i < ROWS; i++)
		client_note_row(client, partition * ROWS + i);
}

/* A page: whatever is known to stand between the last row of the page before and its own must be in it. */
static void
client_note_page(struct client *client)
{
	struct ring_op *op = &client->op;
	bool is_first = !client->is_scanning, is_last = op->row_count < PAGE;
	struct ring_row before = client->last;

	for (uint32_t i = 0; i < op->row_count; i++)
		if ((i > 0 || !is_first) &&
		    !row_is_behind(&op->rows[i], i > 0 ? &op->rows[i - 1] : &before))
			run_break(client->run, "rows of a scan are not in order");
	for (uint32_t key = 0; key < KEYS; key++) {
		struct ring_row row = {(int32_t)(key / ROWS), (int32_t)(key % ROWS), 0};

		if ((is_first || row_is_behind(&row, &before)) &&
		    (is_last || !row_is_behind(&row, &op->rows[op->row_count - 1])))
			client_note_row(client, key);
	}
	client->is_scanning = !is_last;
	if (!is_last)
		client->last = op->rows[op->row_count - 1];
}

static bool
client_is_excused(enum error_code code)
{
	switch (code) {
	case ERROR_UNAVAILABLE:
	case ERROR_WRITE_TIMEOUT:
	case ERROR_READ_TIMEOUT:
	case ERROR_WRITE_FAILURE:
	case ERROR_READ_FAILURE:
	case ERROR_CAS_WRITE_UNKNOWN:
	case ERROR_OVERLOADED:
	case ERROR_SERVER:
		return true;
	default:
		return false;
	}
}

/* ---- Tables that come and go ----------------------------------------------------------------- */

/* What is known of the table; NULL: of a later one of that name. */
static struct named *
run_named(struct run *run, uint32_t name, int64_t created)
{
	struct named *named = &run->named[name];

	if (named->created < created)
		*named = (struct named){.created = created};
	return named->created == created ? named : NULL;
}

static void
client_learn_named(struct client *client, int64_t version)
{
	struct named *named = run_named(client->run, client->key / NAMED_KEYS, client->created);

	if (named != NULL)
		known_raise(&named->floors[client->key % NAMED_KEYS], version);
}

static void
client_note_named(struct client *client)
{
	struct run *run = client->run;
	int64_t found = client->op.row_count > 0 ? client->op.rows[0].v : 0;

	if (found < client->floors[0])
		run_break(run,
		    "node %u read version %" PRId64 " of d%u where %" PRId64 " was known",
		    client->op.node, found, client->key / NAMED_KEYS, client->floors[0]);
	if (found != 0 && run->written_to[found] != client->created)
		run_break(run,
		    "node %u read version %" PRId64 " of d%u, which was written to another table",
		    client->op.node, found, client->key / NAMED_KEYS);
	client_learn_named(client, found);
}

/* False: the node has no such table. */
static bool
client_begin_named(struct client *client, uint32_t node)
{
	struct run *run = client->run;
	uint32_t name = world_chance(run->world, RING_NAMES);
	int32_t pk = (int32_t)world_chance(run->world, NAMED_KEYS);
	const struct named *named;

	client->created = ring_table_created(run->ring, node, name);
	if (client->created == 0)
		return false;
	client->key = name * NAMED_KEYS + (uint32_t)pk;
	client->level = CONSISTENCY_QUORUM;
	if (client->request == REQUEST_NAMED_READ) {
		named = run_named(run, name, client->created);
		client->floors[0] = named == NULL ? 0 : named->floors[pk];
		ring_get_named(run->ring, node, &client->op, name, pk, client->level);
		return true;
	}
	client->version = ++run->versions;
	while (run->written_room <= client->version) {
		int64_t room = run->written_room * 2 + 1000;

		run->written_to =
		    xrealloc(run->written_to, (size_t)room * sizeof(*run->written_to));
		memset(run->written_to + run->written_room, 0,
		    (size_t)(room - run->written_room) * sizeof(*run->written_to));
		run->written_room = room;
	}
	run->written_to[client->version] = client->created;
	ring_put_named(run->ring, node, &client->op, name,
	    (struct ring_row){pk, 0, client->version}, client->version, client->level);
	return true;
}

static void
designer_done(struct ring_schema_change *change)
{
	struct designed *designed = (struct designed *)change;
	struct run *run = designed->run;

	designed->ended = ++run->moment;
	run->designing--;
	if (change->done_count != 1)
		run_break(run, "a change of the schema ended twice");
	if (change->has_failed && change->err.code != ERROR_ALREADY_EXISTS &&
	    change->err.code != ERROR_INVALID && change->err.code != ERROR_UNAVAILABLE &&
	    change->err.code != ERROR_SERVER)
		run_break(run, "a change of the schema has failed: %s", change->err.text);
}

static struct designed *
designer_begin(struct run *run, uint32_t node, enum ring_schema_kind kind, uint32_t name)
{
	static const char *const kinds[] = {"create", "alter", "drop"};
	struct designed *designed = &run->designed[run->designed_count++];

	*designed = (struct designed){
	    .change = {.on_done = designer_done}, .run = run, .began = ++run->moment};
	run->designing++;
	ring_change_schema(run->ring, node, &designed->change, kind, name);
	world_note(run->world, "client: change %u: %s d%u at node %u", designed->change.number,
	    kinds[kind], name, node);
	return designed;
}

/* At one node, and at another one at the same moment: often the same. */
static void
designer_look(struct run *run, uint32_t first, uint32_t second)
{
	/* Few are dropped: there shall be something to write to. */
	static const enum ring_schema_kind kinds[] = {
	    RING_CREATE, RING_CREATE, RING_ALTER, RING_ALTER, RING_DROP};
	uint32_t nodes[] = {first, second};
	uint32_t name = world_chance(run->world, RING_NAMES);

	for (uint32_t i = 0; i < 2; i++) {
		enum ring_schema_kind kind = kinds[world_chance(run->world, 5)];

		/* A repair of a table that is dropped fails; who gives up a node needs one that does not. */
		if (kind == RING_DROP && run->is_changing && !run->has_asked &&
		    (run->kind == CHANGE_REMOVE || run->kind == CHANGE_REPLACE))
			continue;
		/* The last one is of peace. */
		if (run->designing < DESIGNERS && run->designed_count + 1 < SCHEMA_CHANGES_MAX &&
		    ring_serves(run->ring, nodes[i]))
			(void)designer_begin(run, nodes[i], kind, name);
	}
	if (ring_schema_broken(run->ring) != NULL)
		run_break(run, "schema: %s", ring_schema_broken(run->ring));
}

static const char *const request_names[] = {"write", "read", "increment", "cas", "serial read",
    "batch", "page", "write to a named one", "read of a named one"};

static void
client_tell(const struct client *client)
{
	const struct ring_op *op = &client->op;

	world_note(client->run->world,
	    "client: %s of %u at node %u, level %d (%" PRId64 " -> %" PRId64 "), %" PRIu64
	    " ms: %s, saw %" PRId64,
	    request_names[client->request], client->key, op->node, (int)client->level,
	    client->operation.expected,
	    client->request == REQUEST_WRITE || client->request == REQUEST_BATCH ||
		    client->request == REQUEST_NAMED_WRITE
		? client->version
		: client->operation.written,
	    (world_now(client->run->world) - client->began_ns) / WORLD_MS,
	    op->has_failed       ? op->err.text
		: op->is_applied ? "applied"
				 : "done",
	    op->row_count > 0 ? op->rows[0].v : 0);
}

static void
client_done(struct ring_op *op)
{
	struct client *client = op->context;
	struct run *run = client->run;
	uint64_t took_ms = (world_now(run->world) - client->began_ns) / WORLD_MS;

	if (op->done_count != 1)
		run_break(run, "a request was answered twice");
	if (took_ms > ANSWER_MS)
		run_break(run, "a request took %" PRIu64 " ms", took_ms);
	client->is_busy = false;
	(op->has_failed ? run->failed : run->succeeded)[client->request]++;
	client_tell(client);
	/* The table may be gone. */
	if (op->has_failed && !client_is_excused(op->err.code) &&
	    !(client->request >= REQUEST_NAMED_WRITE && op->err.code == ERROR_INVALID))
		run_break(run, "an unexpected error: %s", op->err.text);
	switch (client->request) {
	case REQUEST_WRITE:
		if (!op->has_failed)
			known_learn(run, client->key, client->level, run_datacenter(run, op->node),
			    client->version);
		break;
	case REQUEST_BATCH:
		if (!op->has_failed)
			known_raise(&run->batched[client->key], client->version);
		break;
	case REQUEST_SCAN:
		if (!op->has_failed)
			client_note_page(client);
		else
			client->is_scanning = false;
		break;
	case REQUEST_NAMED_WRITE:
		if (!op->has_failed)
			client_learn_named(client, client->version);
		break;
	case REQUEST_NAMED_READ:
		if (!op->has_failed)
			client_note_named(client);
		break;
	case REQUESTS:
	case REQUEST_READ:
		if (!op->has_failed)
			client_note_read(client);
		break;
	case REQUEST_COUNT:
		if (!op->has_failed)
			run->counted[client->key]++;
		else if (op->err.code != ERROR_UNAVAILABLE)
			run->maybe_counted[client->key]++;
		break;
	case REQUEST_CAS:
	case REQUEST_SERIAL_READ:
		client_note_cas(client);
		break;
	}
}

static void
client_begin_cas(struct client *client, uint32_t node)
{
	struct run *run = client->run;
	uint32_t which = client->key = world_chance(run->world, REGISTERS);

	client->operation = (struct operation){.key = which, .began = ++run->moment};
	if (client->request == REQUEST_SERIAL_READ) {
		ring_get_serial(run->ring, node, &client->op, (int32_t)(FIRST_REGISTER + which),
		    CONSISTENCY_SERIAL);
		return;
	}
	client->operation.expected = run->register_seen[which];
	client->operation.written = ++run->values;
	ring_cas(run->ring, node, &client->op, (int32_t)(FIRST_REGISTER + which),
	    client->operation.expected, client->operation.written, CONSISTENCY_SERIAL,
	    CONSISTENCY_QUORUM);
}

static void
client_set_floors(struct client *client, uint32_t node)
{
	struct run *run = client->run;

	for (uint32_t key = 0; key < KEYS; key++)
		client->floors[key] =
		    known_floor(run, key, client->level, run_datacenter(run, node));
}

static void
client_begin_batch(struct client *client, uint32_t node)
{
	struct run *run = client->run;
	int64_t version = client->version = ++run->versions;
	struct ring_row rows[2];

	client->key %= PAIRS;
	for (uint32_t i = 0; i < 2; i++)
		rows[i] =
		    (struct ring_row){(int32_t)(FIRST_PAIR + 2 * client->key + i), 0, version};
	client->level = CONSISTENCY_QUORUM;
	ring_batch(run->ring, node, &client->op, rows, 2, version, client->level);
}

static void
client_begin(struct client *client)
{
	static const enum request requests[] = {REQUEST_WRITE, REQUEST_WRITE, REQUEST_READ,
	    REQUEST_READ, REQUEST_COUNT, REQUEST_CAS, REQUEST_CAS, REQUEST_SERIAL_READ,
	    REQUEST_BATCH, REQUEST_SCAN, REQUEST_NAMED_WRITE, REQUEST_NAMED_READ};
	struct run *run = client->run;
	uint32_t node = world_chance(run->world, NODES);

	if (!ring_serves(run->ring, node))
		return;
	ring_op_free(&client->op);
	client->request =
	    client->is_scanning ? REQUEST_SCAN : requests[world_chance(run->world, 12)];
	client->key = world_chance(run->world, KEYS);
	client->level = run_level(run);
	client->began_ns = world_now(run->world);
	client->op.on_done = client_done;
	client->op.context = client;
	client->is_busy = true;
	client->operation = (struct operation){.key = 0};
	switch (client->request) {
	case REQUEST_WRITE: {
		struct ring_row row = {
		    (int32_t)(client->key / ROWS), (int32_t)(client->key % ROWS), ++run->versions};

		client->version = run->versions;
		ring_put(run->ring, node, &client->op, &row, 1, run->versions, client->level,
		    WRITE_SIMPLE);
		break;
	}
	case REQUEST_READ:
		client_set_floors(client, node);
		ring_get(run->ring, node, &client->op, 0, (int32_t)(client->key / ROWS), 0,
		    client->level);
		break;
	case REQUEST_BATCH:
		client_begin_batch(client, node);
		break;
	case REQUEST_SCAN:
		/* Each page is a request of its own, of any node and level. */
		client_set_floors(client, node);
		ring_scan_after(run->ring, node, &client->op,
		    client->is_scanning ? &client->last : NULL, PAGE, client->level);
		break;
	case REQUEST_COUNT:
		client->key %= COUNTERS;
		ring_increment(
		    run->ring, node, &client->op, (int32_t)client->key, 1, CONSISTENCY_QUORUM);
		break;
	case REQUEST_CAS:
	case REQUEST_SERIAL_READ:
		client_begin_cas(client, node);
		break;
	case REQUEST_NAMED_WRITE:
	case REQUEST_NAMED_READ:
		client->is_busy = client_begin_named(client, node);
		break;
	case REQUESTS:
		break;
	}
}

/* ---- Trouble ------------------------------------------------------------------------------- */

static void
node_up(void *context, uint32_t node)
{
	struct run *run = context;

	if (run->is_member[node] && !world_node(run->world, node)->is_up)
		world_start(run->world, node);
}

static void
node_is_back(void *context, uint32_t node)
{
	struct run *run = context;

	if (run->away == node + 1)
		run->away = 0;
}

static void
links_healed(void *context, uint32_t argument)
{
	(void)argument;
	world_heal(((struct run *)context)->world);
}

static void
trouble_death(struct run *run, uint32_t node)
{
	bool is_joining = run->is_changing && run->newcomer == node && node != 0 &&
	    world_node(run->world, node)->is_up;

	/* One that takes a dead one's place is not missed more than that. */
	if ((run->away != 0 && !(is_joining && run->kind == CHANGE_REPLACE)) ||
	    !(is_joining || ring_serves(run->ring, node)))
		return;
	if (run->away == 0)
		run->away = node + 1;
	if (world_chance(run->world, 2) == 0)
		ring_flush(run->ring, node);
	if (world_chance(run->world, 2) == 0)
		ring_kill(run->ring, node);
	else
		ring_cut_power(run->ring, node);
	world_at(run->world, (1 + world_chance(run->world, 20)) * WORLD_S, node_up, run, node);
	/* Up, and heard of by all. */
	world_at(run->world, 40 * WORLD_S, node_is_back, run, node);
}

static void
trouble(struct run *run)
{
	uint32_t a = world_chance(run->world, NODES), b = world_chance(run->world, NODES);
	uint8_t groups[NODES];

	run->troubles++;
	/* On both sides of it. */
	if (world_chance(run->world, 2) == 0)
		designer_look(run, a, b);
	switch (world_chance(run->world, 5)) {
	case 0:
		if (a != b)
			world_cut(run->world, a, b);
		break;
	case 1:
		if (a != b)
			world_cut_both(run->world, a, b);
		break;
	case 2:
		for (uint32_t i = 0; i < NODES; i++)
			groups[i] = (uint8_t)world_chance(run->world, 2);
		world_partition(run->world, groups);
		break;
	case 3:
		if (world_node(run->world, a)->is_up)
			world_pause(run->world, a, (1 + world_chance(run->world, 2000)) * WORLD_MS);
		break;
	default:
		trouble_death(run, a);
		break;
	}
	world_at(run->world, (1 + world_chance(run->world, 3000)) * WORLD_MS, links_healed, run, 0);
}

/* ---- Changes of the ring ------------------------------------------------------------------- */

static uint32_t
run_members(const struct run *run, uint32_t datacenter)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < NODES; i++)
		count += run->is_member[i] && run_datacenter(run, i) == datacenter;
	return count;
}

/* A node of the data center that was never in the ring; NODES: there is none. */
static uint32_t
run_unused(const struct run *run, uint32_t datacenter)
{
	uint32_t node = 0;

	while (node < NODES && (run->was_used[node] || run_datacenter(run, node) != datacenter))
		node++;
	return node;
}

static void
change_begin(struct run *run)
{
	uint32_t subject = world_chance(run->world, NODES);
	uint32_t datacenter = run_datacenter(run, subject);

	run->kind = world_chance(run->world, CHANGE_KINDS);
	if (run->away != 0 || !ring_is_whole(run->ring, run->member_count))
		return;
	if (run->kind != CHANGE_JOIN && !run->is_member[subject])
		return;
	if (run_members(run, datacenter) <= FACTOR + (run->datacenters == 1) &&
	    (run->kind == CHANGE_LEAVE || run->kind == CHANGE_REMOVE))
		run->kind = CHANGE_JOIN;
	if ((run->kind == CHANGE_JOIN || run->kind == CHANGE_REPLACE) &&
	    run_unused(run, datacenter) == NODES)
		return;
	run->is_changing = true;
	run->has_asked = run->is_resuming = false;
	memset(run->is_repairing, 0, sizeof(run->is_repairing));
	memset(run->is_repaired, 0, sizeof(run->is_repaired));
	run->newcomer = run->attempts = 0;
	run->changed_ns = world_now(run->world);
	run->subject = subject;
	world_note(run->world, "change: %s, %u",
	    (const char *[]){"join", "leave", "remove", "replace"}[run->kind], subject);
	switch (run->kind) {
	case CHANGE_JOIN:
		run->newcomer = run_unused(run, datacenter);
		run->is_member[run->newcomer] = run->was_used[run->newcomer] = true;
		run->member_count++;
		ring_join(run->ring, run->newcomer);
		break;
	case CHANGE_LEAVE:
		run->member_count--;
		break;
	case CHANGE_REMOVE:
	case CHANGE_REPLACE:
		run->is_member[subject] = false;
		run->away = subject + 1;
		run->member_count -= run->kind == CHANGE_REMOVE;
		ring_kill(run->ring, subject);
		break;
	default:
		break;
	}
}

static bool
is_seen_dead(struct run *run, uint32_t node)
{
	for (uint32_t i = 0; i < NODES; i++)
		if (i != node && ring_serves(run->ring, i) &&
		    atomic_load(&ring_peer(run->ring, i, node)->is_alive))
			return false;
	return true;
}

static uint32_t
any_serving(struct run *run)
{
	for (;;) {
		uint32_t node = world_chance(run->world, NODES);

		if (ring_serves(run->ring, node))
			return node;
	}
}

/* Its bootstrap broke off: go on with it, or start it once more. */
static void
change_look_at_newcomer(struct run *run)
{
	struct error err;

	if (run->newcomer == 0 || !world_node(run->world, run->newcomer)->is_up) {
		run->is_resuming = false;
		return;
	}
	if (ring_has_failed_to_start(run->ring, run->newcomer, &err)) {
		run->attempts++;
		world_note(run->world, "change: again, since %s", err.text);
		ring_kill(run->ring, run->newcomer);
		world_start(run->world, run->newcomer);
		run->is_resuming = false;
	} else if (!ring_serves(run->ring, run->newcomer) &&
	    (!run->is_resuming || run->change.is_done) && world_chance(run->world, 300) == 0) {
		run->is_resuming = true;
		ring_resume_bootstrap(run->ring, run->newcomer, &run->change);
	}
}

static void
change_look_at_leaver(struct run *run)
{
	if (run->has_asked && run->change.is_done && !run->change.has_failed) {
		if (!run->is_member[run->subject])
			return;
		run->is_member[run->subject] = false;
		ring_kill(run->ring, run->subject);
		return;
	}
	/* It died on its way out: it is a member again when it comes back. */
	if (!world_node(run->world, run->subject)->is_up)
		run->has_asked = false;
	if (!run->has_asked && !ring_serves(run->ring, run->subject))
		return;
	if (run->has_asked && !run->change.is_done)
		return;
	if (run->has_asked)
		world_note(run->world, "change: again, since %s", run->change.err.text);
	run->has_asked = true;
	run->attempts++;
	ring_decommission(run->ring, run->subject, &run->change);
}

static void
no_line(void *context, const struct repair_line *line)
{
	(void)context;
	(void)line;
}

/* True: the node's ranges are repaired. */
static bool
change_repair_node(struct run *run, uint32_t node)
{
	struct repair_options options = {.keyspace = "ks",
	    .parallelism = REPAIR_PARALLEL,
	    .job_threads = 2 + RING_NAMES, /* a question that is lost costs half a minute */
	    .is_forced = true};
	struct repair_status status = {0};
	struct error err;

	if (!ring_serves(run->ring, node)) {
		run->is_repairing[node] = false;
		return false;
	}
	if (!run->is_repairing[node]) {
		run->is_repairing[node] = repairs_start(ring_repairs(run->ring, node), &options,
					      &run->repair_numbers[node], &err) == 0;
		if (!run->is_repairing[node])
			world_note(
			    run->world, "change: the repair of %u is refused: %s", node, err.text);
		return false;
	}
	if (repairs_status(ring_repairs(run->ring, node), run->repair_numbers[node], 0, no_line,
		NULL, &status) &&
	    !status.is_done)
		return false;
	run->is_repairing[node] = false;
	if (status.is_done && !status.has_failed)
		return true;
	world_note(run->world, "change: the repair of %u has failed: %s", node, status.failure);
	return false;
}

/*
 * A write that the dead node and one other have is on one node only, and with the hint of a dead coordinator even that is all:
 * whoever gives up a node for good repairs what is left first. True: all is repaired.
 */
static bool
change_repair(struct run *run)
{
	bool is_repaired = true;

	for (uint32_t i = 0; i < NODES; i++) {
		if (!run->is_member[i] || i == run->subject || run->is_repaired[i])
			continue;
		run->is_repaired[i] = change_repair_node(run, i);
		is_repaired &= run->is_repaired[i];
	}
	return is_repaired;
}

static void
change_look_at_dead(struct run *run)
{
	if (!run->has_asked && !is_seen_dead(run, run->subject))
		return;
	if (!run->has_asked && !change_repair(run))
		return;
	if (run->kind == CHANGE_REPLACE) {
		if (run->has_asked) {
			change_look_at_newcomer(run);
			return;
		}
		run->has_asked = true;
		run->newcomer = run_unused(run, run_datacenter(run, run->subject));
		run->is_member[run->newcomer] = run->was_used[run->newcomer] = true;
		ring_replace(run->ring, run->newcomer, run->subject);
		return;
	}
	if (run->has_asked && !run->change.is_done)
		return;
	if (run->has_asked && !run->change.has_failed)
		return;
	if (run->has_asked)
		world_note(run->world, "change: again, since %s", run->change.err.text);
	run->has_asked = true;
	run->attempts++;
	ring_remove(run->ring, any_serving(run), run->subject, &run->change);
}

static void
change_look(struct run *run)
{
	if (run->kind == CHANGE_JOIN)
		change_look_at_newcomer(run);
	else if (run->kind == CHANGE_LEAVE)
		change_look_at_leaver(run);
	else
		change_look_at_dead(run);
	if (ring_agrees(run->ring, run->member_count) &&
	    ((run->kind == CHANGE_LEAVE && !run->is_member[run->subject]) ||
		run->kind == CHANGE_REMOVE ||
		(run->newcomer != 0 && ring_serves(run->ring, run->newcomer)))) {
		world_note(run->world, "change: done after %" PRIu64 " s",
		    (world_now(run->world) - run->changed_ns) / WORLD_S);
		run->is_changing = false;
		if (run->kind == CHANGE_REMOVE || run->kind == CHANGE_REPLACE)
			run->away = 0;
	} else if (world_now(run->world) - run->changed_ns > CHANGE_S_MAX * WORLD_S) {
		run_break(run, "a change of the ring did not come to its end");
	}
}

/* ---- A seed -------------------------------------------------------------------------------- */

static bool
is_whole(struct world *world, void *context)
{
	struct run *run = context;

	(void)world;
	return ring_is_whole(run->ring, run->member_count);
}

static void
run_clients(struct run *run)
{
	uint32_t changes = 0;

	while (!run->is_broken && (changes < CHANGES || run->is_changing)) {
		for (uint32_t i = 0; i < CLIENTS; i++)
			if (!run->clients[i].is_busy && world_chance(run->world, 12) == 0)
				client_begin(&run->clients[i]);
		if (world_chance(run->world, 100) == 0)
			designer_look(
			    run, world_chance(run->world, NODES), world_chance(run->world, NODES));
		if (world_chance(run->world, 150) == 0)
			trouble(run);
		if (run->is_changing) {
			change_look(run);
		} else if (world_chance(run->world, 60) == 0) {
			change_begin(run);
			changes += run->is_changing;
		}
		world_run(run->world, world_chance(run->world, 60) * WORLD_MS);
	}
}

/* v of a row of table t, or 0. */
static int64_t
run_read(struct run *run, uint32_t node, int32_t pk, uint32_t ck, enum consistency level)
{
	struct ring_op op = {.on_done = NULL};
	int64_t found = 0;

	ring_get(run->ring, node, &op, 0, pk, 0, level);
	ring_wait(run->ring, &op);
	if (!op.is_done || op.has_failed)
		run_break(run, "partition %d cannot be read by node %u in peace: %s", (int)pk, node,
		    op.err.text);
	for (uint32_t i = 0; i < op.row_count; i++)
		if (op.rows[i].ck == (int32_t)ck)
			found = op.rows[i].v;
	ring_op_free(&op);
	return found;
}

/* Batches are written whole, or not at all. */
static void
run_check_pairs(struct run *run, uint32_t node)
{
	for (uint32_t pair = 0; pair < PAIRS && !run->is_broken; pair++) {
		int32_t pk = (int32_t)(FIRST_PAIR + 2 * pair);
		int64_t first = run_read(run, node, pk, 0, CONSISTENCY_QUORUM);
		int64_t second = run_read(run, node, pk + 1, 0, CONSISTENCY_QUORUM);

		if (first != second || first < run->batched[pair])
			run_break(run,
			    "node %u reads batches %" PRId64 " and %" PRId64 " of pair %u, %" PRId64
			    " was acknowledged",
			    node, first, second, pair, run->batched[pair]);
	}
}

static void
run_check_keys(struct run *run, uint32_t node, enum consistency level)
{
	struct ring_op op = {.on_done = NULL};

	for (uint32_t key = 0; key < KEYS && !run->is_broken; key++) {
		int64_t floor = known_floor(run, key, level, run_datacenter(run, node));
		int64_t found = run_read(run, node, (int32_t)(key / ROWS), key % ROWS, level);

		if (found < floor)
			run_break(run,
			    "node %u reads version %" PRId64 " of key %u, known was %" PRId64
			    " (level %d)",
			    node, found, key, floor, (int)level);
	}
	for (uint32_t key = 0; key < COUNTERS && !run->is_broken; key++) {
		int64_t found;

		ring_get(run->ring, node, &op, 1, (int32_t)key, 0, level);
		ring_wait(run->ring, &op);
		found = op.row_count > 0 ? op.rows[0].v : 0;
		if (!op.is_done || op.has_failed)
			run_break(run, "counter %u cannot be read: %s", key, op.err.text);
		else if (found < run->counted[key] ||
		    found > run->counted[key] + run->maybe_counted[key])
			run_break(run,
			    "counter %u is %" PRId64 " at node %u: %" PRId64
			    " were acknowledged, %" PRId64 " are not known",
			    key, found, node, run->counted[key], run->maybe_counted[key]);
		ring_op_free(&op);
	}
}

static void
run_check_registers(struct run *run, uint32_t node)
{
	struct ring_op op = {.on_done = NULL};

	for (uint32_t key = 0; key < REGISTERS && !run->is_broken; key++) {
		struct operation operation = {
		    .outcome = OUTCOME_READ, .key = key, .began = ++run->moment};

		ring_get_serial(
		    run->ring, node, &op, (int32_t)(FIRST_REGISTER + key), CONSISTENCY_SERIAL);
		ring_wait(run->ring, &op);
		operation.seen = op.row_count > 0 ? op.rows[0].v : 0;
		operation.ended = ++run->moment;
		if (!op.is_done || op.has_failed)
			run_break(run, "register %u cannot be read by node %u in peace: %s", key,
			    node, op.err.text);
		else if (run->operation_count < OPERATIONS_MAX)
			run->operations[run->operation_count++] = operation;
		ring_op_free(&op);
	}
}

static bool
is_designed(struct world *world, void *context)
{
	(void)world;
	return ((struct designed *)context)->ended != 0;
}

static bool
has_one_schema(struct world *world, void *context)
{
	(void)world;
	return ring_schema_agrees(((struct run *)context)->ring);
}

/* What clients were told of the schema is true, and in the order in which they were told. */
static void
run_check_designed(struct run *run)
{
	for (uint32_t i = 0; i < run->designed_count && !run->is_broken; i++) {
		const struct designed *designed = &run->designed[i];
		uint32_t times, place = ring_schema_place(run->ring, &designed->change, &times);

		if (designed->ended == 0)
			run_break(run, "a change of the schema was never answered");
		else if (times > 1 || (times == 0 && !designed->change.has_failed))
			run_break(run, "change %u of the schema was made %u times",
			    designed->change.number, times);
		else if (times == 1 && designed->change.has_failed &&
		    (designed->change.err.code == ERROR_ALREADY_EXISTS ||
			designed->change.err.code == ERROR_INVALID))
			run_break(run, "change %u of the schema was refused, and made",
			    designed->change.number);
		for (uint32_t k = 0; k < run->designed_count && times == 1; k++) {
			const struct designed *later = &run->designed[k];
			uint32_t later_times,
			    later_place =
				ring_schema_place(run->ring, &later->change, &later_times);

			if (!designed->change.has_failed && later_times == 1 &&
			    later->began > designed->ended && later_place < place)
				run_break(run, "changes %u and %u of the schema are in disorder",
				    designed->change.number, later->change.number);
		}
	}
}

static void
run_check_schema(struct run *run)
{
	struct designed *last;
	uint32_t node = any_serving(run), name = 0;

	/* In peace it can be changed: to have one more table, or where all are there, one less. */
	while (name < RING_NAMES && ring_table_created(run->ring, node, name) != 0)
		name++;
	last = name < RING_NAMES ? designer_begin(run, node, RING_CREATE, name)
				 : designer_begin(run, node, RING_DROP, 0);
	if (!world_run_until(run->world, is_designed, last, 10 * WORLD_MS, 30 * WORLD_S) ||
	    last->change.has_failed)
		run_break(run, "the schema cannot be changed in peace: %s",
		    last->ended == 0 ? "no answer" : last->change.err.text);
	if (!world_run_until(run->world, has_one_schema, run, 100 * WORLD_MS, 60 * WORLD_S))
		run_break(run, "not all nodes come to have the same schema");
	if (ring_schema_broken(run->ring) != NULL)
		run_break(run, "schema: %s", ring_schema_broken(run->ring));
	run_check_designed(run);
}

static void
run_check_named(struct run *run, uint32_t node)
{
	for (uint32_t i = 0; i < RING_NAMES * NAMED_KEYS && !run->is_broken; i++) {
		struct client client = {.run = run,
		    .key = i,
		    .created = ring_table_created(run->ring, node, i / NAMED_KEYS)};
		const struct named *named;

		if (client.created == 0)
			continue;
		named = run_named(run, i / NAMED_KEYS, client.created);
		if (named == NULL) {
			run_break(run, "node %u has a d%u that is older than another one", node,
			    i / NAMED_KEYS);
			return;
		}
		client.floors[0] = named->floors[i % NAMED_KEYS];
		ring_get_named(run->ring, node, &client.op, i / NAMED_KEYS,
		    (int32_t)(i % NAMED_KEYS), CONSISTENCY_QUORUM);
		ring_wait(run->ring, &client.op);
		if (!client.op.is_done || client.op.has_failed)
			run_break(run, "d%u cannot be read by node %u in peace: %s", i / NAMED_KEYS,
			    node, client.op.err.text);
		else
			client_note_named(&client);
		ring_op_free(&client.op);
	}
}

struct repair_wait {
	struct run *run;
	uint32_t node, number;
	struct repair_status status;
};

static bool
is_repaired(struct world *world, void *context)
{
	struct repair_wait *wait = context;

	(void)world;
	return !repairs_status(ring_repairs(wait->run->ring, wait->node), wait->number, 0, no_line,
		   NULL, &wait->status) ||
	    wait->status.is_done;
}

static void
run_repair(struct run *run)
{
	struct repair_options options = {.keyspace = "ks", .job_threads = 1};
	struct repair_wait wait = {.run = run};
	struct error err;

	/* Each node repairs the ranges that it is a replica of. */
	for (wait.node = 0; wait.node < NODES && !run->is_broken; wait.node++) {
		if (!ring_serves(run->ring, wait.node))
			continue;
		wait.status = (struct repair_status){0};
		if (repairs_start(
			ring_repairs(run->ring, wait.node), &options, &wait.number, &err) != 0)
			run_break(run, "repair is refused: %s", err.text);
		else if (!world_run_until(
			     run->world, is_repaired, &wait, 10 * WORLD_MS, 900 * WORLD_S))
			run_break(run, "repair does not end");
		else if (wait.status.has_failed)
			run_break(run, "repair has failed: %s", wait.status.failure);
	}
}

static void
run_check_replicas(struct run *run)
{
	for (uint32_t i = 0; i < ALL_PARTITIONS * ROWS && !run->is_broken; i++) {
		int32_t pk = (int32_t)(i / ROWS), ck = (int32_t)(i % ROWS);
		uint32_t replicas[NODES];
		uint32_t count = ring_replicas(run->ring, pk, replicas, NODES);
		int64_t first;

		if (count != FACTOR * run->datacenters) {
			run_break(run, "partition %d has %u replicas", (int)pk, count);
			return;
		}
		first = ring_look(run->ring, replicas[0], pk, ck);
		for (uint32_t k = 1; k < count; k++)
			if (ring_look(run->ring, replicas[k], pk, ck) != first)
				run_break(run,
				    "row %d of partition %d differs between nodes %u and %u after "
				    "repair",
				    (int)ck, (int)pk, replicas[0], replicas[k]);
	}
	for (uint32_t i = 0; i < RING_NAMES * NAMED_KEYS && !run->is_broken; i++) {
		uint32_t name = i / NAMED_KEYS, replicas[NODES];
		int32_t pk = (int32_t)(i % NAMED_KEYS);
		uint32_t count = ring_replicas(run->ring, pk, replicas, NODES);

		if (ring_table_created(run->ring, replicas[0], name) == 0)
			continue;
		for (uint32_t k = 1; k < count; k++)
			if (ring_look_named(run->ring, replicas[0], name, pk, 0) !=
			    ring_look_named(run->ring, replicas[k], name, pk, 0))
				run_break(run,
				    "partition %d of d%u differs between nodes %u and %u after "
				    "repair",
				    (int)pk, name, replicas[0], replicas[k]);
	}
}

static void
run_settle(struct run *run)
{
	static const struct world_faults none = {
	    .delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS};
	char why[200];

	world_heal(run->world);
	world_set_faults(run->world, &none);
	world_run(run->world, 60 * WORLD_S);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		if (run->clients[i].is_busy)
			run_break(run, "a request was never answered");
		ring_op_free(&run->clients[i].op);
	}
	if (!run->is_broken &&
	    !world_run_until(run->world, is_whole, run, 100 * WORLD_MS, 300 * WORLD_S))
		run_break(run, "the ring does not become one of %u", run->member_count);
	if (!run->is_broken)
		run_check_schema(run);
	for (uint32_t i = 0; i < NODES && !run->is_broken; i++) {
		if (!ring_serves(run->ring, i))
			continue;
		run_check_keys(run, i, CONSISTENCY_QUORUM);
		run_check_keys(run, i, CONSISTENCY_LOCAL_QUORUM);
		run_check_pairs(run, i);
		run_check_registers(run, i);
		run_check_named(run, i);
	}
	for (uint32_t key = 0; key < REGISTERS && !run->is_broken; key++)
		if (!linearizable_check(run->operations, run->operation_count, key, why))
			run_break(run, "register %u: %s", key, why);
	if (!run->is_broken)
		run_repair(run);
	if (!run->is_broken)
		run_check_keys(run, any_serving(run), CONSISTENCY_ALL);
	run_check_replicas(run);
}

static void
run_tell(const struct run *run)
{
	printf("seed %" PRIu64 ": %" PRIu64 " s, %" PRIu64 " messages, %u troubles, %u members;",
	    run->seed, world_now(run->world) / WORLD_S, world_messages(run->world), run->troubles,
	    run->member_count);
	for (int i = 0; i < REQUESTS; i++)
		printf(" %s %u (%u failed)", request_names[i], run->succeeded[i], run->failed[i]);
	printf(" changes of the schema %u\n", run->designed_count);
}

static bool
run_seed(uint64_t seed)
{
	struct ring_options options = {.world = {.seed = seed,
					   .node_count = NODES,
					   .faults = {.loss = 0.01,
					       .reorder = 0.05,
					       .stream_break = 0.002,
					       .delay_min_ns = 200 * WORLD_US,
					       .delay_max_ns = 20 * WORLD_MS},
					   .skew_max_us = 100000,
					   .drift_max_ppm = 100,
					   .is_encoded = true,
					   .story_lines = STORY_LINES},
	    .datacenters = seed % 3 == 0 ? 2 : 1,
	    .factor = FACTOR,
	    .has_hints = true,
	    .has_batches = true,
	    .founder_count = seed % 3 == 0 ? 2 * FACTOR : FOUNDERS,
	    .ring_delay_ns = RING_DELAY_S * WORLD_S,
	    .has_schema_log = true};
	struct run *run = xzalloc(sizeof(*run));
	bool is_sound;

	if (getenv("SIM_STORY") != NULL)
		options.world.story_lines = (uint32_t)atoi(getenv("SIM_STORY"));
	run->seed = seed;
	run->designed = xcalloc(SCHEMA_CHANGES_MAX, sizeof(*run->designed));
	run->ring = ring_new(&options);
	run->world = ring_world(run->ring);
	run->datacenters = options.datacenters;
	run->member_count = options.founder_count;
	for (uint32_t i = 0; i < options.founder_count; i++)
		run->is_member[i] = run->was_used[i] = true;
	for (uint32_t i = 0; i < CLIENTS; i++)
		run->clients[i].run = run;
	if (!world_run_until(run->world, is_whole, run, 50 * WORLD_MS, 120 * WORLD_S))
		run_break(run, "the ring does not begin");
	run_clients(run);
	run_settle(run);
	if (getenv("SIM_VERBOSE") != NULL)
		run_tell(run);
	is_sound = !run->is_broken;
	ring_free(run->ring);
	free(run->designed);
	free(run->written_to);
	free(run);
	return is_sound;
}

int
main(int argc, char **argv)
{
	struct seeds seeds = seeds_begin(argc, argv, 4);

	seeds_count(&seeds, linearizable_self_check());
	for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++)
		seeds_count(&seeds, run_seed(seed));
	return seeds_end(&seeds);
}
