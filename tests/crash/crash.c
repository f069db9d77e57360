/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills the server under load, starts it again, and looks for every acknowledged write.
 *
 *   crash [-b HELENUSD] [-n NODETOOL] [-r ROUNDS] [-s SEED] [-m periodic|batch|group]
 *
 * Workers write rows of a model that knows, per key, the last acknowledged and the last sent version; meanwhile
 * one more connection changes the schema, truncates a table and makes the store flush, compact and
 * snapshot. At a random moment the process gets SIGKILL. After the restart every key must hold a version that
 * is not older than the acknowledged one and was really sent; what was truncated stays away; every
 * acknowledged table is there.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "client.h"

enum {
	WORKERS = 4,
	KEYS = 64, /* per worker; the window below is smaller, so there is always an idle one */
	WINDOW = 32,
	PAD_MAX = 3000,
	START_SECONDS = 120, /* a machine may be busy, and sanitizers are slow */
};

/* ---- the client --------------------------------------------------------------------------------- */

int
crash_client_open(struct crash_client *client, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct startup_option option = {slice_of_string("CQL_VERSION"), slice_of_string("3.0.0")};
	struct client_message request = {
	    .version = 4, .opcode = OPCODE_STARTUP, .startup = {1, &option}};
	struct client_response response;
	struct error err;
	int one = 1;

	memset(client, 0, sizeof(*client));
	buffer_init(&client->out);
	buffer_init(&client->in);
	arena_init(&client->arena, 16 << 10);
	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0 ||
	    connect(client->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return -1;
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (client_put_request(&client->out, &request, COMPRESSION_NONE, &err) != 0 ||
	    crash_client_flush(client) != 0 || crash_client_next(client, &response) != 0 ||
	    response.opcode != OPCODE_READY)
		return -1;
	return 0;
}

void
crash_client_close(struct crash_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	buffer_fini(&client->out);
	buffer_fini(&client->in);
	arena_fini(&client->arena);
}

void
crash_client_query(struct crash_client *client, int16_t stream, const char *text)
{
	struct client_message request = {.version = 4,
	    .opcode = OPCODE_QUERY,
	    .stream = stream,
	    .query = {slice_of_string(text), client_query_options(CONSISTENCY_ONE)}};
	struct error err;

	if (client_put_request(&client->out, &request, COMPRESSION_NONE, &err) != 0)
		abort();
}

void
crash_client_execute(struct crash_client *client, int16_t stream, struct slice id,
    const struct slice *values, uint32_t count)
{
	struct bound_value bound[8] = {0};
	struct client_message request = {.version = 4,
	    .opcode = OPCODE_EXECUTE,
	    .stream = stream,
	    .execute = {.id = id, .options = client_query_options(CONSISTENCY_ONE)}};
	struct error err;

	for (uint32_t i = 0; i < count; i++)
		bound[i].value = values[i];
	request.execute.options.values = (struct bound_values){count, bound, NULL};
	if (client_put_request(&client->out, &request, COMPRESSION_NONE, &err) != 0)
		abort();
}

int
crash_client_flush(struct crash_client *client)
{
	size_t at = 0;

	while (at < client->out.size) {
		ssize_t sent =
		    send(client->fd, client->out.data + at, client->out.size - at, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return -1;
		at += (size_t)sent;
	}
	buffer_clear(&client->out);
	return 0;
}

int
crash_client_next(struct crash_client *client, struct client_response *response)
{
	for (;;) {
		const uint8_t *at = client->in.data + client->taken;
		size_t left = client->in.size - client->taken;
		ssize_t got;

		if (left >= ENVELOPE_HEADER_SIZE) {
			size_t length = load_u32(at + 5);

			if (left >= ENVELOPE_HEADER_SIZE + length) {
				struct envelope envelope = {.header = {.version = at[0] & 0x7f,
								.is_response = true,
								.flags = at[1],
								.stream = (int16_t)load_u16(at + 2),
								.opcode = at[4],
								.length = (uint32_t)length},
				    .body = slice_of(at + ENVELOPE_HEADER_SIZE, length)};
				struct error err;

				client->taken += ENVELOPE_HEADER_SIZE + length;
				arena_reset(&client->arena);
				return client_decode_response(
				    &envelope, &client->arena, response, &err);
			}
		}
		if (client->taken > 0) {
			memmove(client->in.data, at, left);
			client->in.size = left;
			client->taken = 0;
		}
		if (!buffer_reserve(&client->in, 64 << 10))
			abort();
		got = recv(client->fd, client->in.data + client->in.size, 64 << 10, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		client->in.size += (size_t)got;
	}
}

int
crash_client_do(struct crash_client *client, struct client_response *response, const char *text)
{
	crash_client_query(client, 0, text);
	if (crash_client_flush(client) != 0 || crash_client_next(client, response) != 0)
		return -1;
	if (response->opcode != OPCODE_ERROR)
		return 0;
	fprintf(stderr, "crash: %s: error %04x %.*s\n", text, response->error.code,
	    (int)response->error.text.size, (const char *)response->error.text.data);
	return -1;
}

int
crash_client_prepare(struct crash_client *client, const char *text, uint8_t id[16])
{
	struct client_message request = {
	    .version = 4, .opcode = OPCODE_PREPARE, .prepare = {slice_of_string(text), slice_null}};
	struct client_response response;
	struct error err;

	if (client_put_request(&client->out, &request, COMPRESSION_NONE, &err) != 0 ||
	    crash_client_flush(client) != 0 || crash_client_next(client, &response) != 0 ||
	    response.opcode != OPCODE_RESULT || response.prepared.id.size != 16)
		return -1;
	memcpy(id, response.prepared.id.data, 16);
	return 0;
}

/* ---- the server ----------------------------------------------------------------------------------- */

struct crash {
	const char *server, *nodetool, *sync;
	unsigned seed;
	int port, admin_port, storage_port;
	char directory[64];
	pid_t pid;
	atomic_bool is_dying;

	/* What the side connection did; its thread, and the verifier after it ended. */
	int tables_acked; /* crash.t0 .. t<n-1> were acknowledged */
	int starts;
	int truncates_acked; /* rows of earlier rounds must be gone */
	int truncated_row_last; /* highest row acknowledged after the last acknowledged truncate */
	int truncate_floor; /* rows below were acknowledged before it */
	uint64_t acked;
};

static void
crash_fail(const struct crash *crash, const char *what)
{
	fprintf(stderr, "crash: %s (seed %u, data in %s)\n", what, crash->seed, crash->directory);
	if (crash->pid > 0)
		kill(crash->pid, SIGKILL);
	exit(1);
}

static int
crash_free_port(void)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		abort();
	close(fd);
	return ntohs(address.sin_port);
}

static void
crash_start(struct crash *crash)
{
	/* Compressed segments are in memory until they are synced: only where all wait for that. */
	bool is_compressed = strcmp(crash->sync, "periodic") != 0 && crash->starts++ % 2 == 1;
	char port[48], admin[48], storage[48], directory[128], sync[64], log[128];
	struct crash_client client;
	time_t until = time(NULL) + START_SECONDS;

	snprintf(port, sizeof(port), "native_transport_port=%d", crash->port);
	snprintf(admin, sizeof(admin), "admin_port=%d", crash->admin_port);
	snprintf(storage, sizeof(storage), "storage_port=%d", crash->storage_port);
	snprintf(directory, sizeof(directory), "data_directory=%s", crash->directory);
	snprintf(sync, sizeof(sync), "commitlog_sync=%s", crash->sync);
	snprintf(log, sizeof(log), "%s/log", crash->directory);
	crash->pid = fork();
	if (crash->pid == 0) {
		if (freopen(log, "a", stderr) == NULL || freopen("/dev/null", "w", stdout) == NULL)
			_exit(127);
		execl(crash->server, crash->server, "-f", "-D", port, "-D", admin, "-D", storage,
		    "-D", directory, "-D", sync, "-D", "commitlog_sync_period=2000ms", "-D",
		    "commitlog_sync_group_window=10ms", "-D", "commitlog_segment_size=1MiB", "-D",
		    "memtable_heap_space=4MiB", "-D", "compaction_throughput=0MiB/s",
		    is_compressed ? "-D" : NULL, "commitlog_compression.class_name=LZ4Compressor",
		    (char *)NULL);
		_exit(127);
	}
	for (;;) {
		int status;

		if (crash_client_open(&client, crash->port) == 0) {
			crash_client_close(&client);
			return;
		}
		crash_client_close(&client);
		if (waitpid(crash->pid, &status, WNOHANG) == crash->pid) {
			crash->pid = 0;
			crash_fail(crash, "the server did not start again; see its log");
		}
		if (time(NULL) > until)
			crash_fail(crash, "the server does not answer after its start");
		usleep(20000);
	}
}

/* Run nodetool; what it says does not matter, the server may be dying. */
static void
crash_nodetool(const struct crash *crash, const char *command, const char *argument)
{
	char port[16];
	pid_t pid;

	snprintf(port, sizeof(port), "%d", crash->admin_port);
	pid = fork();
	if (pid == 0) {
		if (freopen("/dev/null", "w", stdout) == NULL ||
		    freopen("/dev/null", "w", stderr) == NULL)
			_exit(127);
		execl(
		    crash->nodetool, crash->nodetool, "-p", port, command, argument, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

/* ---- workers ---------------------------------------------------------------------------------------- */

/* Versions of one key: 0 is "never written"; an odd multiple of 5 is a deletion. */
struct key_model {
	uint32_t acked, sent;
	/* At most one: two of one key may be carried out in either order, and answer one for the other. */
	bool is_in_flight;
};

struct worker {
	struct crash *crash;
	int number;
	unsigned seed;
	struct key_model keys[KEYS];
	int next;
	uint64_t acked;
	pthread_t thread;
};

static bool
version_is_deletion(uint32_t version)
{
	return version % 10 == 5;
}

static void
worker_send(struct worker *worker, struct crash_client *client, const uint8_t insert[16],
    const uint8_t delete[16])
{
	static const char pad[PAD_MAX] = {0};
	uint8_t pk[4], ck[4], v[4];
	struct slice values[4] = {slice_of(pk, 4), slice_of(ck, 4), slice_of(v, 4),
	    slice_of(pad, (size_t)(rand_r(&worker->seed) % PAD_MAX))};
	uint32_t version;
	int key;

	do
		key = worker->next++ % KEYS;
	while (worker->keys[key].is_in_flight);
	worker->keys[key].is_in_flight = true;
	version = ++worker->keys[key].sent;
	store_u32(pk, (uint32_t)(worker->number * KEYS + key));
	store_u32(ck, (uint32_t)(key % 3));
	store_u32(v, version);
	if (version_is_deletion(version))
		crash_client_execute(client, (int16_t)key, slice_of(delete, 16), values, 2);
	else
		crash_client_execute(client, (int16_t)key, slice_of(insert, 16), values, 4);
}

/* Write until the connection breaks. */
static void *
worker_run(void *argument)
{
	struct worker *worker = argument;
	struct crash_client client;
	struct client_response response;
	uint8_t insert[16], delete[16];

	for (int i = 0; i < KEYS; i++)
		worker->keys[i].is_in_flight = false;
	if (crash_client_open(&client, worker->crash->port) != 0 ||
	    crash_client_prepare(&client,
		"INSERT INTO crash.data (pk, ck, v, pad) VALUES (?, ?, ?, ?)", insert) != 0 ||
	    crash_client_prepare(
		&client, "DELETE FROM crash.data WHERE pk = ? AND ck = ?", delete) != 0)
		goto done;
	for (int i = 0; i < WINDOW; i++)
		worker_send(worker, &client, insert, delete);
	while (crash_client_flush(&client) == 0 && crash_client_next(&client, &response) == 0) {
		struct key_model *key = &worker->keys[response.stream];

		key->is_in_flight = false;
		if (response.opcode == OPCODE_RESULT) {
			key->acked = key->sent;
			worker->acked++;
		} else if (!atomic_load(&worker->crash->is_dying)) {
			fprintf(stderr, "crash: a write was answered with %04x %.*s\n",
			    response.error.code, (int)response.error.text.size,
			    (const char *)response.error.text.data);
		}
		worker_send(worker, &client, insert, delete);
	}
done:
	crash_client_close(&client);
	return NULL;
}

/* The side connection: everything that is not a plain write. */
static void *
side_run(void *argument)
{
	struct crash *crash = argument;
	struct crash_client client;
	struct client_response response;
	unsigned seed = crash->seed + 77;
	int row = crash->truncated_row_last;

	if (crash_client_open(&client, crash->port) != 0)
		goto done;
	for (;;) {
		char text[256];
		int rc = 0;

		switch (rand_r(&seed) % 6) {
		case 0:
			snprintf(text, sizeof(text),
			    "CREATE TABLE IF NOT EXISTS crash.t%d (pk int PRIMARY KEY, v int)",
			    crash->tables_acked);
			rc = crash_client_do(&client, &response, text);
			if (rc == 0)
				crash->tables_acked++;
			break;
		case 1:
			rc = crash_client_do(&client, &response, "TRUNCATE crash.gone");
			if (rc == 0)
				crash->truncate_floor = row;
			break;
		case 2:
			crash_nodetool(crash, "flush", "crash");
			break;
		case 3:
			crash_nodetool(crash, "compact", "crash");
			break;
		case 4:
			crash_nodetool(crash, "snapshot", "crash");
			break;
		default:
			for (int i = 0; i < 20 && rc == 0; i++) {
				snprintf(text, sizeof(text),
				    "INSERT INTO crash.gone (pk, ck) VALUES (0, %d)", row + 1);
				rc = crash_client_do(&client, &response, text);
				if (rc == 0)
					crash->truncated_row_last = ++row;
			}
		}
		if (rc != 0 || atomic_load(&crash->is_dying))
			break;
	}
done:
	crash_client_close(&client);
	return NULL;
}

/* ---- verifying ---------------------------------------------------------------------------------- */

/* The version that the server has for a key: -1 none, -2 on failure. */
static int64_t
verify_version(struct crash_client *client, const uint8_t select[16], int pk, int ck)
{
	struct client_response response;
	uint8_t pk_bytes[4], ck_bytes[4];
	struct slice values[2] = {slice_of(pk_bytes, 4), slice_of(ck_bytes, 4)}, cell;

	store_u32(pk_bytes, (uint32_t)pk);
	store_u32(ck_bytes, (uint32_t)ck);
	crash_client_execute(client, 0, slice_of(select, 16), values, 2);
	if (crash_client_flush(client) != 0 || crash_client_next(client, &response) != 0 ||
	    response.opcode != OPCODE_RESULT)
		return -2;
	if (response.rows.row_count == 0)
		return -1;
	if (client_next_cell(&response.rows.content, &cell) != 0 || cell.size != 4)
		return -2;
	return load_u32(cell.data);
}

static void
verify_worker(struct crash *crash, struct worker *worker, struct crash_client *client,
    const uint8_t select[16])
{
	for (int i = 0; i < KEYS; i++) {
		struct key_model *key = &worker->keys[i];
		int64_t found = verify_version(client, select, worker->number * KEYS + i, i % 3);
		bool is_sound;
		char what[200];

		if (found == -2)
			crash_fail(crash, "a read failed after the restart");
		/* One write of the key may have been under way: either state is right. */
		if (found == -1)
			is_sound = key->acked == 0 || version_is_deletion(key->acked) ||
			    (key->sent > key->acked && version_is_deletion(key->sent));
		else
			is_sound = found == key->acked || found == key->sent;
		if (!is_sound) {
			snprintf(what, sizeof(what),
			    "key %d has version %" PRId64 ", acknowledged was %" PRIu32
			    ", sent %" PRIu32,
			    worker->number * KEYS + i, found, key->acked, key->sent);
			crash_fail(crash, what);
		}
		/* What is there now is the truth for the next round. */
		if (found >= 0)
			key->acked = (uint32_t)found;
		else if (key->sent > key->acked && version_is_deletion(key->sent))
			key->acked = key->sent;
		/* Else a first write, or one after a deletion, that was not answered and is not there: nothing is owed. */
		key->sent = key->acked > key->sent ? key->acked : key->sent;
	}
}

static void
verify_side(struct crash *crash, struct crash_client *client)
{
	struct client_response response;
	int count = 0, highest = 0;
	char text[200];

	for (int i = 0; i < crash->tables_acked; i++) {
		snprintf(text, sizeof(text), "SELECT v FROM crash.t%d WHERE pk = 1", i);
		if (crash_client_do(client, &response, text) != 0)
			crash_fail(crash, "an acknowledged table is gone");
	}
	if (crash_client_do(client, &response, "SELECT ck FROM crash.gone WHERE pk = 0") != 0)
		crash_fail(crash, "the truncated table cannot be read");
	for (uint32_t i = 0; i < response.rows.row_count; i++) {
		struct slice cell;

		if (client_next_cell(&response.rows.content, &cell) != 0 || cell.size != 4)
			crash_fail(crash, "the truncated table answers nonsense");
		if ((int)load_u32(cell.data) <= crash->truncate_floor)
			crash_fail(crash, "a truncated row came back");
		highest = (int)load_u32(cell.data);
		count++;
	}
	/* A truncate may have been under way: then nothing, or all that was acknowledged. */
	if (count != 0 && count < crash->truncated_row_last - crash->truncate_floor) {
		snprintf(text, sizeof(text),
		    "%d rows after the last truncate, %d were acknowledged", count,
		    crash->truncated_row_last - crash->truncate_floor);
		crash_fail(crash, text);
	}
	if (count == 0)
		crash->truncate_floor = crash->truncated_row_last;
	else if (highest > crash->truncated_row_last)
		crash->truncated_row_last = highest;
}

static void
crash_round(struct crash *crash, struct worker *workers, int round)
{
	struct crash_client client;
	uint8_t select[16];
	pthread_t side;
	int status;

	atomic_store(&crash->is_dying, false);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]);
	pthread_create(&side, NULL, side_run, crash);
	usleep(50000 + (unsigned)rand_r(&crash->seed) % 700000);
	atomic_store(&crash->is_dying, true);
	kill(crash->pid, SIGKILL);
	waitpid(crash->pid, &status, 0);
	crash->pid = 0;
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		crash_fail(crash, "the server was dead before it was killed");
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_join(side, NULL);

	crash_start(crash);
	if (crash_client_open(&client, crash->port) != 0 ||
	    crash_client_prepare(
		&client, "SELECT v FROM crash.data WHERE pk = ? AND ck = ?", select) != 0)
		crash_fail(crash, "the restarted server cannot prepare a read");
	for (int i = 0; i < WORKERS; i++) {
		verify_worker(crash, &workers[i], &client, select);
		crash->acked += workers[i].acked;
		workers[i].acked = 0;
	}
	verify_side(crash, &client);
	crash_client_close(&client);
	if (round % 10 == 9)
		printf("%s: %d rounds, %" PRIu64 " acknowledged writes found, %d tables\n",
		    crash->sync, round + 1, crash->acked, crash->tables_acked);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct crash crash = {.server = "build/helenusd",
	    .nodetool = "build/nodetool",
	    .sync = "periodic",
	    .seed = (unsigned)time(NULL)};
	struct worker *workers = xcalloc(WORKERS, sizeof(*workers));
	struct crash_client client;
	struct client_response response;
	char command[128];
	int rounds = 10, option;

	while ((option = getopt(argc, argv, "b:n:r:s:m:")) != -1) {
		switch (option) {
		case 'b':
			crash.server = optarg;
			break;
		case 'n':
			crash.nodetool = optarg;
			break;
		case 'r':
			rounds = atoi(optarg);
			break;
		case 's':
			crash.seed = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'm':
			crash.sync = optarg;
			break;
		default:
			return 2;
		}
	}
	signal(SIGPIPE, SIG_IGN);
	snprintf(crash.directory, sizeof(crash.directory), "/tmp/helenus-crash.XXXXXX");
	if (mkdtemp(crash.directory) == NULL)
		return 1;
	crash.port = crash_free_port();
	crash.admin_port = crash_free_port();
	crash.storage_port = crash_free_port();
	for (int i = 0; i < WORKERS; i++) {
		workers[i].crash = &crash;
		workers[i].number = i;
		workers[i].seed = crash.seed + (unsigned)i;
	}
	crash_start(&crash);
	if (crash_client_open(&client, crash.port) != 0 ||
	    crash_client_do(&client, &response,
		"CREATE KEYSPACE crash WITH replication = {'class': 'SimpleStrategy', "
		"'replication_factor': 1}") != 0 ||
	    crash_client_do(&client, &response,
		"CREATE TABLE crash.data (pk int, ck int, v int, pad blob, PRIMARY KEY (pk, "
		"ck))") != 0 ||
	    crash_client_do(&client, &response,
		"CREATE TABLE crash.gone (pk int, ck int, PRIMARY KEY (pk, ck))") != 0)
		crash_fail(&crash, "the schema cannot be made");
	crash_client_close(&client);
	for (int round = 0; round < rounds; round++)
		crash_round(&crash, workers, round);
	kill(crash.pid, SIGTERM);
	waitpid(crash.pid, &option, 0);
	if (!WIFEXITED(option) || WEXITSTATUS(option) != 0)
		crash_fail(&crash, "the last, clean stop did not exit with 0");
	snprintf(command, sizeof(command), "rm -rf %s", crash.directory);
	if (system(command) != 0)
		return 1;
	printf("%s: %d rounds survived, %" PRIu64 " acknowledged writes found\n", crash.sync,
	    rounds, crash.acked);
	free(workers);
	return 0;
}
