/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of tests/bench/run: one thread that keeps DEPTH requests in flight on each of CONNECTIONS
 * connections, protocol v4, and spends as little as it can, so that one core of it can load one core of any
 * server. The table is cassandra-stress's: a blob key of 10 bytes, five blobs of 34.
 *
 *   load ADDRESS:PORT schema | write | read | mixed | scan [option]...
 *
 *   -c N  connections (1)            -d N  requests in flight on each (1)
 *   -s S  seconds (5)                -n N  stop after so many requests (scan: rows of a page, 5000)
 *   -p N  keys to choose from (1000000); with -o: write them in order, once
 *
 * Prints one JSON object. The status is not 0 where any answer was an error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/histogram.h"
#include "protocol/client.h"

enum {
	LOAD_KEY_SIZE = 10,
	LOAD_COLUMNS = 5,
	LOAD_COLUMN_SIZE = 34,
	LOAD_INPUT_SIZE = 256 << 10,
	LOAD_VERSION = 4,
	LOAD_FINE = 10000, /* tenths of a microsecond that are told apart */
};

enum load_mode { LOAD_SCHEMA, LOAD_WRITE, LOAD_READ, LOAD_MIXED, LOAD_SCAN };

/* An EXECUTE whose key (and stream) is written anew each time. */
struct load_template {
	uint8_t bytes[512];
	size_t size, key_offset, value_offset;
};

struct load_connection {
	int fd;
	uint8_t *input;
	size_t input_size;
	struct buffer output;
	uint64_t *sent_ns; /* by stream */
};

struct load {
	struct sockaddr_in address;
	enum load_mode mode;
	uint32_t connection_count, depth;
	uint64_t seconds, request_max, population;
	bool is_ordered;
	struct load_connection *connections;
	struct load_template write, read;
	uint64_t random, sent, done, errors, rows, bytes;
	uint64_t start_ns, end_ns;
	bool is_over;
	struct histogram latency_us;
	uint32_t *fine; /* [i]: requests that took i/10 us */
};

static void
load_die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t
load_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t
load_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
load_random(struct load *load)
{
	load->random ^= load->random >> 12;
	load->random ^= load->random << 25;
	load->random ^= load->random >> 27;
	return load->random * UINT64_C(0x2545F4914F6CDD1D);
}

/* ---- one request at a time, while nothing is measured ------------------------------------------- */

static int
load_connect(const struct load *load)
{
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    connect(fd, (const struct sockaddr *)&load->address, sizeof(load->address)) != 0)
		load_die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void
load_read_all(int fd, uint8_t *bytes, size_t size)
{
	while (size > 0) {
		ssize_t got = read(fd, bytes, size);

		if (got <= 0)
			load_die("read");
		bytes += got;
		size -= (size_t)got;
	}
}

/* Ask and wait; the answer lies in `body` and the arena. */
static void
load_ask(int fd, const struct client_message *message, struct buffer *body, struct arena *arena,
    struct client_response *response)
{
	struct envelope envelope = {0};
	uint8_t header[ENVELOPE_HEADER_SIZE];
	struct buffer request;
	struct error err;

	buffer_init(&request);
	if (client_put_request(&request, message, COMPRESSION_NONE, &err) != 0 ||
	    write(fd, request.data, request.size) != (ssize_t)request.size)
		load_die("request");
	buffer_fini(&request);
	load_read_all(fd, header, sizeof(header));
	buffer_clear(body);
	envelope.header = (struct envelope_header){.version = header[0] & 0x7f,
	    .flags = header[1],
	    .stream = (int16_t)(header[2] << 8 | header[3]),
	    .opcode = header[4],
	    .length = load_u32(header + 5)};
	if (envelope.header.length > 0) {
		uint8_t *bytes = buffer_append(body, envelope.header.length);

		load_read_all(fd, bytes, envelope.header.length);
	}
	envelope.body = slice_of(body->data, envelope.header.length);
	if (client_decode_response(&envelope, arena, response, &err) != 0) {
		fprintf(stderr, "load: %s\n", err.text);
		exit(2);
	}
	if (response->opcode == OPCODE_ERROR) {
		fprintf(stderr, "load: %.*s\n", (int)response->error.text.size,
		    (const char *)response->error.text.data);
		exit(1);
	}
}

static void
load_startup(int fd, struct buffer *body, struct arena *arena)
{
	struct startup_option option = {slice_of_string("CQL_VERSION"), slice_of_string("3.0.0")};
	struct client_message message = {.version = LOAD_VERSION,
	    .opcode = OPCODE_STARTUP,
	    .startup = {.count = 1, .options = &option}};
	struct client_response response;

	load_ask(fd, &message, body, arena, &response);
}

static void
load_query(int fd, const char *text, struct buffer *body, struct arena *arena)
{
	struct client_message message = {.version = LOAD_VERSION,
	    .opcode = OPCODE_QUERY,
	    .query = {
		.query = slice_of_string(text), .options = client_query_options(CONSISTENCY_ONE)}};
	struct client_response response;

	load_ask(fd, &message, body, arena, &response);
}

/* ---- the two statements ---------------------------------------------------------------------------- */

static void
load_make_template(struct load_template *template, struct slice id, uint32_t value_count)
{
	struct buffer buffer;
	uint8_t value[LOAD_COLUMN_SIZE] = {0};

	buffer_init(&buffer);
	buffer_put_u8(&buffer, LOAD_VERSION);
	buffer_put_u8(&buffer, 0);
	buffer_put_u16(&buffer, 0);
	buffer_put_u8(&buffer, OPCODE_EXECUTE);
	buffer_put_u32(&buffer, 0);
	buffer_put_u16(&buffer, (uint16_t)id.size);
	buffer_put(&buffer, id.data, id.size);
	buffer_put_u16(&buffer, CONSISTENCY_LOCAL_ONE);
	buffer_put_u8(&buffer, 0x01); /* values */
	buffer_put_u16(&buffer, (uint16_t)value_count);
	for (uint32_t i = 0; i < value_count; i++) {
		bool is_key = i + 1 == value_count;
		uint32_t size = is_key ? LOAD_KEY_SIZE : LOAD_COLUMN_SIZE;

		buffer_put_u32(&buffer, size);
		if (i == 0)
			template->value_offset = buffer.size;
		if (is_key)
			template->key_offset = buffer.size;
		buffer_put(&buffer, value, size);
	}
	store_u32(buffer.data + 5, (uint32_t)(buffer.size - ENVELOPE_HEADER_SIZE));
	template->size = buffer.size;
	memcpy(template->bytes, buffer.data, buffer.size);
	buffer_fini(&buffer);
}

static void
load_prepare(struct load_template *template, const char *text, uint32_t value_count, int fd,
    struct buffer *body, struct arena *arena)
{
	/* A null server prepares nothing and takes any id. */
	static const uint8_t nothing[16];
	struct client_message message = {.version = LOAD_VERSION,
	    .opcode = OPCODE_PREPARE,
	    .prepare = {.query = slice_of_string(text), .keyspace = slice_null}};
	struct client_response response;

	load_ask(fd, &message, body, arena, &response);
	load_make_template(template,
	    response.result_kind == RESULT_PREPARED ? response.prepared.id
						    : slice_of(nothing, sizeof(nothing)),
	    value_count);
}

static void
load_put(struct load *load, struct load_connection *connection, uint16_t stream, uint64_t now)
{
	bool is_write = load->mode == LOAD_WRITE ||
	    (load->mode == LOAD_MIXED && (load_random(load) >> 63) != 0);
	struct load_template *template = is_write ? &load->write : &load->read;
	uint64_t key = load->is_ordered ? load->sent : load_random(load) % load->population;
	uint8_t *at = buffer_append(&connection->output, template->size);

	memcpy(at, template->bytes, template->size);
	store_u16(at + 2, stream);
	store_u64(at + template->key_offset, key * UINT64_C(0x9E3779B97F4A7C15));
	store_u16(at + template->key_offset + 8, (uint16_t)key);
	if (is_write) {
		for (int i = 0; i < LOAD_COLUMNS; i++) {
			uint8_t *value =
			    at + template->value_offset + (size_t)i * (LOAD_COLUMN_SIZE + 4);

			for (int j = 0; j + 8 <= LOAD_COLUMN_SIZE; j += 8)
				store_u64(value + j, load_random(load));
		}
	}
	connection->sent_ns[stream] = now;
	load->sent++;
}

static void
load_flush(struct load_connection *connection)
{
	struct buffer *output = &connection->output;
	size_t at = 0;

	while (at < output->size) {
		ssize_t put =
		    send(connection->fd, output->data + at, output->size - at, MSG_NOSIGNAL);

		if (put < 0 && errno != EINTR)
			load_die("send");
		at += put > 0 ? (size_t)put : 0;
	}
	buffer_clear(output);
}

static void
load_answer(
    struct load *load, struct load_connection *connection, const uint8_t *envelope, uint64_t now)
{
	uint16_t stream = load_u16(envelope + 2);

	load->done++;
	if (envelope[4] == OPCODE_ERROR) {
		if (load->errors++ == 0)
			fprintf(stderr, "load: %.*s\n", (int)load_u16(envelope + 13),
			    (const char *)envelope + 15);
	} else if (load_u32(envelope + 5) > 32) {
		load->rows++; /* more than Void or an empty result */
	}
	histogram_add(&load->latency_us, (now - connection->sent_ns[stream]) / 1000);
	load->fine[load_min((now - connection->sent_ns[stream]) / 100, LOAD_FINE - 1)]++;
	if (!load->is_over && now >= load->end_ns)
		load->is_over = true;
	if (load->request_max != 0 && load->sent >= load->request_max)
		load->is_over = true;
	if (!load->is_over)
		load_put(load, connection, stream, now);
}

static void
load_receive(struct load *load, struct load_connection *connection)
{
	ssize_t got = recv(connection->fd, connection->input + connection->input_size,
	    LOAD_INPUT_SIZE - connection->input_size, MSG_DONTWAIT);
	uint64_t now = load_now();
	size_t at = 0, have;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0)
		load_die("the server closed a connection");
	load->bytes += (uint64_t)got;
	have = connection->input_size + (size_t)got;
	while (have - at >= ENVELOPE_HEADER_SIZE) {
		size_t size = ENVELOPE_HEADER_SIZE + load_u32(connection->input + at + 5);

		if (have - at < size)
			break;
		load_answer(load, connection, connection->input + at, now);
		at += size;
	}
	memmove(connection->input, connection->input + at, have - at);
	connection->input_size = have - at;
	load_flush(connection);
}

static void
load_run(struct load *load)
{
	struct epoll_event events[256];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	for (uint32_t i = 0; i < load->connection_count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};

		epoll_ctl(epoll, EPOLL_CTL_ADD, load->connections[i].fd, &event);
	}
	load->start_ns = load_now();
	load->end_ns = load->start_ns + load->seconds * 1000000000;
	for (uint32_t i = 0; i < load->connection_count; i++) {
		for (uint32_t j = 0; j < load->depth; j++)
			load_put(load, &load->connections[i], (uint16_t)j, load->start_ns);
		load_flush(&load->connections[i]);
	}
	while (load->done < load->sent) {
		int count = epoll_wait(epoll, events, 256, 1000);

		for (int i = 0; i < count; i++)
			load_receive(load, &load->connections[events[i].data.u32]);
		if (count == 0 && load_now() > load->end_ns + UINT64_C(10000000000)) {
			fprintf(stderr, "load: %" PRIu64 " requests were never answered\n",
			    load->sent - load->done);
			exit(1);
		}
	}
	load->end_ns = load_now();
	close(epoll);
}

/* SELECT of everything, page after page. */
static void
load_scan(struct load *load, int fd, struct buffer *body)
{
	struct client_message message = {.version = LOAD_VERSION,
	    .opcode = OPCODE_QUERY,
	    .query = {.query = slice_of_string("SELECT * FROM bench.standard1"),
		.options = client_query_options(CONSISTENCY_ONE)}};
	struct client_response response;
	struct buffer state;
	struct arena arena;

	arena_init(&arena, 1 << 16);
	buffer_init(&state);
	message.query.options.page_size = load->request_max != 0 ? (int)load->request_max : 5000;
	load->start_ns = load_now();
	do {
		load_ask(fd, &message, body, &arena, &response);
		load->rows += response.rows.row_count;
		load->bytes += body->size;
		load->done++;
		buffer_clear(&state);
		buffer_put(&state, response.rows.metadata.paging_state.data,
		    response.rows.metadata.paging_state.size);
		message.query.options.paging_state = slice_of(state.data, state.size);
		arena_reset(&arena);
	} while (state.size > 0);
	load->end_ns = load_now();
	buffer_fini(&state);
	arena_fini(&arena);
}

static void
load_schema(int fd, struct buffer *body, struct arena *arena)
{
	load_query(fd,
	    "CREATE KEYSPACE IF NOT EXISTS bench WITH replication = "
	    "{'class': 'SimpleStrategy', 'replication_factor': 1}",
	    body, arena);
	load_query(fd, "DROP TABLE IF EXISTS bench.standard1", body, arena);
	load_query(fd,
	    "CREATE TABLE bench.standard1 (key blob PRIMARY KEY, \"C0\" blob, \"C1\" blob, "
	    "\"C2\" blob, \"C3\" blob, \"C4\" blob)",
	    body, arena);
}

static void
load_open(struct load *load)
{
	struct buffer body;
	struct arena arena;
	int fd = load_connect(load);

	arena_init(&arena, 1 << 16);
	buffer_init(&body);
	load_startup(fd, &body, &arena);
	if (load->mode == LOAD_SCHEMA) {
		load_schema(fd, &body, &arena);
		exit(0);
	}
	if (load->mode == LOAD_SCAN) {
		load_scan(load, fd, &body);
		close(fd);
	} else {
		load_prepare(&load->write,
		    "UPDATE bench.standard1 SET \"C0\" = ?, \"C1\" = ?, \"C2\" = ?, \"C3\" = ?, "
		    "\"C4\" = ? WHERE key = ?",
		    LOAD_COLUMNS + 1, fd, &body, &arena);
		load_prepare(&load->read, "SELECT * FROM bench.standard1 WHERE key = ?", 1, fd,
		    &body, &arena);
		close(fd);
		load->connections = xcalloc(load->connection_count, sizeof(*load->connections));
		for (uint32_t i = 0; i < load->connection_count; i++) {
			struct load_connection *connection = &load->connections[i];

			connection->fd = load_connect(load);
			load_startup(connection->fd, &body, &arena);
			connection->input = xmalloc(LOAD_INPUT_SIZE);
			connection->sent_ns = xcalloc(load->depth, sizeof(uint64_t));
			buffer_init(&connection->output);
		}
	}
	buffer_fini(&body);
	arena_fini(&arena);
}

/* The histogram's buckets are a fifth wide, too much to compare two servers. */
static double
load_median_us(const struct load *load)
{
	uint64_t half = 0;
	size_t at = 0;

	while (at + 1 < LOAD_FINE && (half += load->fine[at]) * 2 < load->done)
		at++;
	return (double)at / 10;
}

static void
load_print(const struct load *load, double setup_seconds)
{
	double seconds = (double)(load->end_ns - load->start_ns) / 1e9;
	struct rusage usage;
	double cpu;

	getrusage(RUSAGE_SELF, &usage);
	cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
	    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6 - setup_seconds;
	printf("{\"requests\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"rows\": %" PRIu64
	       ", \"bytes\": %" PRIu64 ", \"seconds\": %.4f, \"rate\": %.1f, \"mean_us\": %.2f, "
	       "\"p50_us\": %" PRIu64 ", \"p50_us_fine\": %.1f, \"p99_us\": %" PRIu64
	       ", \"client_cpu_us\": %.3f}\n",
	    load->done, load->errors, load->rows, load->bytes, seconds,
	    (double)load->done / seconds,
	    seconds * 1e6 * load->connection_count * load->depth / (double)load->done,
	    histogram_quantile(&load->latency_us, 0.5), load_median_us(load),
	    histogram_quantile(&load->latency_us, 0.99), cpu * 1e6 / (double)load->done);
}

static void
load_usage(void)
{
	fprintf(stderr,
	    "usage: load ADDRESS:PORT schema|write|read|mixed|scan [-c CONNECTIONS] [-d DEPTH] "
	    "[-s SECONDS] [-n REQUESTS] [-p KEYS] [-o]\n");
	exit(2);
}

static void
load_options(struct load *load, int argc, char **argv)
{
	static const char *const modes[] = {"schema", "write", "read", "mixed", "scan"};
	char *colon = NULL;
	int option;

	if (argc < 3 || (colon = strrchr(argv[1], ':')) == NULL)
		load_usage();
	*colon = '\0';
	load->address = (struct sockaddr_in){
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
	if (inet_pton(AF_INET, argv[1], &load->address.sin_addr) != 1)
		load_usage();
	while ((int)load->mode < 5 && strcmp(argv[2], modes[load->mode]) != 0)
		load->mode++;
	if ((int)load->mode == 5)
		load_usage();
	optind = 3;
	while ((option = getopt(argc, argv, "c:d:s:n:p:o")) != -1) {
		uint64_t number = optarg != NULL ? strtoull(optarg, NULL, 10) : 0;

		if (option == 'c')
			load->connection_count = (uint32_t)number;
		else if (option == 'd')
			load->depth = (uint32_t)number;
		else if (option == 's')
			load->seconds = number;
		else if (option == 'n')
			load->request_max = number;
		else if (option == 'p')
			load->population = number;
		else if (option == 'o')
			load->is_ordered = true;
		else
			load_usage();
	}
	if (load->connection_count == 0 || load->depth == 0 || load->depth > 32768 ||
	    load->population == 0)
		load_usage();
}

int
main(int argc, char **argv)
{
	struct load load = {.connection_count = 1, .depth = 1, .seconds = 5, .population = 1000000};
	struct rusage usage;

	load_options(&load, argc, argv);
	load.random = UINT64_C(0x853c49e6748fea9b) ^ load_now();
	if (load.is_ordered && load.request_max == 0) {
		load.request_max = load.population;
		load.seconds = 3600;
	}
	load.fine = xcalloc(LOAD_FINE, sizeof(*load.fine));
	histogram_init(&load.latency_us, HISTOGRAM_BUCKETS_MAX);
	load_open(&load);
	getrusage(RUSAGE_SELF, &usage);
	if (load.mode != LOAD_SCAN)
		load_run(&load);
	load_print(&load,
	    (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	return load.errors == 0 ? 0 : 1;
}
