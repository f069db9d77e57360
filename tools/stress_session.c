/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_session.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "protocol/type_codec.h"

enum {
	STRESS_CONNECT_TIMEOUT_MS = 5000,
	STRESS_SCHEMA_TIMEOUT_MS = 60000, /* a busy cluster creates tables slowly */
};

/* ---- One request at a time -------------------------------------------------------------------------- */

struct stress_answer {
	struct arena *arena;
	struct client_response *response;
	bool is_done;
	int rc;
	struct error error;
};

static void
stress_answer_cb(void *user, const struct envelope *envelope)
{
	struct stress_answer *answer = user;
	struct envelope copy = *envelope;

	if (envelope->header.stream < 0)
		return; /* an event */
	copy.body = arena_copy(answer->arena, envelope->body);
	answer->rc = client_decode_response(&copy, answer->arena, answer->response, &answer->error);
	answer->is_done = true;
}

static int
stress_session_ask(struct stress_session *session, const struct client_message *request,
    struct arena *arena, struct client_response *out, struct error *err)
{
	struct stress_connection *connection = &session->connection;
	struct stress_answer answer = {.arena = arena, .response = out};

	if (connection->fd < 0)
		return error_set(err, ERROR_IO, "Connection has been closed");
	if (client_put_request(stress_connection_out(connection), request,
		connection->is_framed ? COMPRESSION_NONE : connection->compression, err) != 0)
		return -1;
	while (!answer.is_done) {
		if (stress_connection_flush(connection, err) != 0 ||
		    stress_connection_wait(connection, STRESS_SCHEMA_TIMEOUT_MS, err) != 0 ||
		    stress_connection_read(connection, stress_answer_cb, &answer, err) != 0) {
			stress_connection_close(connection);
			return -1;
		}
	}
	if (answer.rc != 0) {
		*err = answer.error;
		return -1;
	}
	if (out->opcode == OPCODE_ERROR)
		return error_set(err,
		    out->error.code == 0x2400       ? ERROR_ALREADY_EXISTS
			: out->error.code == 0x2200 ? ERROR_INVALID
						    : ERROR_SERVER,
		    "%.*s", (int)out->error.text.size, (const char *)out->error.text.data);
	return 0;
}

int
stress_session_execute(struct stress_session *session, const char *query,
    enum consistency consistency, struct arena *arena, struct client_response *out,
    struct error *err)
{
	struct client_message request = {
	    .version = session->connection.version,
	    .opcode = OPCODE_QUERY,
	    .query = {slice_of_string(query), client_query_options(consistency)},
	};

	return stress_session_ask(session, &request, arena, out, err);
}

int
stress_session_run(struct stress_session *session, const char *query, enum consistency consistency,
    struct error *err)
{
	struct client_response response;
	struct arena arena;
	int rc;

	arena_init(&arena, 4096);
	rc = stress_session_execute(session, query, consistency, &arena, &response, err);
	arena_fini(&arena);
	return rc != 0 && err->code == ERROR_ALREADY_EXISTS ? 0 : rc;
}

/* ---- The cluster --------------------------------------------------------------------------------------- */

static struct slice
stress_cell(struct slice *content)
{
	struct slice cell = slice_null;

	if (client_next_cell(content, &cell) != 0)
		return slice_null;
	return cell;
}

static char *
stress_cell_text(struct slice *content)
{
	struct slice cell = stress_cell(content);

	return slice_is_null(cell) ? xstrdup("null") : xstrndup((const char *)cell.data, cell.size);
}

static char *
stress_cell_address(struct slice *content)
{
	struct slice cell = stress_cell(content);
	char text[INET6_ADDRSTRLEN] = "";

	if (cell.size == 4 || cell.size == 16)
		inet_ntop(cell.size == 4 ? AF_INET : AF_INET6, cell.data, text, sizeof(text));
	return xstrdup(text);
}

static void
stress_session_add_host(struct stress_session *session, char *address, char *datacenter, char *rack)
{
	for (uint32_t i = 0; i < session->host_count; i++) {
		if (strcmp(session->hosts[i].address, address) == 0)
			*address = '\0';
	}
	if (*address == '\0') {
		free(address);
		free(datacenter);
		free(rack);
		return;
	}
	session->hosts =
	    xrealloc(session->hosts, (session->host_count + 1) * sizeof(*session->hosts));
	session->hosts[session->host_count++] = (struct stress_host){address, datacenter, rack};
}

/* A set<text>. */
static void
stress_session_take_tokens(struct stress_session *session, uint32_t node, struct slice tokens)
{
	struct slice text;
	char number[24];

	if (!session->is_murmur3 || tokens.size < 4)
		return;
	tokens = slice_of(tokens.data + 4, tokens.size - 4);
	while (tokens.size > 0 && client_next_cell(&tokens, &text) == 0) {
		if (slice_is_null(text) || text.size >= sizeof(number))
			continue;
		snprintf(number, sizeof(number), "%.*s", (int)text.size, (const char *)text.data);
		stress_ring_add_token(&session->ring, node, strtoll(number, NULL, 10));
	}
}

/* Rows of (address, datacenter, rack, tokens); those of another datacenter than the first's, or than was asked for,
 * are left out. */
static void
stress_session_take_hosts(struct stress_session *session, const struct client_response *response)
{
	struct slice content = response->rows.content;

	for (uint32_t i = 0; i < response->rows.row_count; i++) {
		char *address = stress_cell_address(&content);
		char *datacenter = stress_cell_text(&content);
		char *rack = stress_cell_text(&content);
		const char *wanted = session->settings->datacenter != NULL
		    ? session->settings->datacenter
		    : session->host_count > 0 ? session->hosts[0].datacenter
					      : datacenter;

		printf("Datacenter: %s; Host: /%s:%d; Rack: %s\n", datacenter, address,
		    session->settings->port, rack);
		stress_session_take_tokens(session,
		    stress_ring_add_node(&session->ring, address, datacenter, rack),
		    stress_cell(&content));
		if (strcmp(wanted, datacenter) != 0 ||
		    (session->settings->rack != NULL && strcmp(session->settings->rack, rack) != 0))
			*address = '\0';
		stress_session_add_host(session, address, datacenter, rack);
	}
}

static void
stress_session_take_given_hosts(struct stress_session *session)
{
	for (uint32_t i = 0; i < session->settings->node_count; i++)
		stress_session_add_host(session, xstrdup(session->settings->nodes[i]),
		    xstrdup("null"), xstrdup("null"));
}

static void
stress_session_take_cluster(struct stress_session *session, struct slice *content)
{
	static const char murmur3[] = ".Murmur3Partitioner";
	char *partitioner;
	size_t size;

	session->cluster_name = stress_cell_text(content);
	partitioner = stress_cell_text(content);
	size = strlen(partitioner);
	session->is_murmur3 =
	    size >= strlen(murmur3) && strcmp(partitioner + size - strlen(murmur3), murmur3) == 0;
	free(partitioner);
}

static void
stress_session_number_nodes(struct stress_session *session)
{
	stress_ring_sort(&session->ring);
	for (uint32_t i = 0; i < session->ring.node_count; i++) {
		for (uint32_t host = 0; host < session->host_count && host < STRESS_NO_HOST;
		     host++) {
			if (strcmp(session->hosts[host].address, session->ring.nodes[i].address) ==
			    0)
				session->ring.nodes[i].host = (uint16_t)host;
		}
	}
}

/* One entry of replication, a map<text, text>. */
static void
stress_take_replication(struct slice name, struct slice value, struct stress_replication *out)
{
	char number[16];

	if (slice_equal(name, slice_of_string("class"))) {
		const char *simple = "SimpleStrategy";

		out->is_simple = value.size >= strlen(simple) &&
		    memcmp(value.data + value.size - strlen(simple), simple, strlen(simple)) == 0;
		return;
	}
	snprintf(number, sizeof(number), "%.*s", (int)value.size, (const char *)value.data);
	if (slice_equal(name, slice_of_string(out->datacenter)) ||
	    slice_equal(name, slice_of_string("replication_factor")))
		out->factor =
		    (uint32_t)strtoul(number, NULL, 10); /* "3/1": three, one of them transient */
}

void
stress_session_place(
    struct stress_session *session, const char *keyspace, struct stress_placement *placement)
{
	struct stress_replication replication = {.is_simple = false};
	struct client_response response;
	struct slice map, name, value;
	struct arena arena;
	struct error ignored;
	bool is_quoted;
	char *query;

	memset(placement, 0, sizeof(*placement));
	if (session->host_count < 2)
		return;
	replication.datacenter = session->settings->datacenter != NULL
	    ? session->settings->datacenter
	    : session->ring.nodes[0].datacenter;
	is_quoted = *keyspace == '"';
	query =
	    xasprintf("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '%s'",
		keyspace + is_quoted);
	for (char *c = strchr(query, '\'') + 1; *c != '\0' && !is_quoted; c++)
		*c = (char)tolower((unsigned char)*c);
	if (is_quoted)
		memmove(strrchr(query, '"'), "'", 2);
	arena_init(&arena, 4096);
	if (stress_session_execute(session, query, CONSISTENCY_ONE, &arena, &response, &ignored) ==
		0 &&
	    response.result_kind == RESULT_ROWS && response.rows.row_count == 1) {
		map = stress_cell(&response.rows.content);
		map = map.size < 4 ? slice_empty : slice_of(map.data + 4, map.size - 4);
		while (map.size > 0 && client_next_cell(&map, &name) == 0 &&
		    client_next_cell(&map, &value) == 0)
			stress_take_replication(name, value, &replication);
		stress_placement_init(placement, &session->ring, &replication);
	}
	arena_fini(&arena);
	free(query);
}

static int
stress_session_look_around(struct stress_session *session, const char *first, struct error *err)
{
	const struct stress_settings *settings = session->settings;
	struct client_response response;
	struct arena arena;
	struct error ignored;
	int rc;

	arena_init(&arena, 4096);
	rc = stress_session_execute(session, "SELECT cluster_name, partitioner FROM system.local",
	    CONSISTENCY_ONE, &arena, &response, err);
	if (rc != 0)
		goto done;
	if (response.result_kind == RESULT_ROWS && response.rows.row_count > 0)
		stress_session_take_cluster(session, &response.rows.content);
	printf(
	    "Connected to cluster: %s, max pending requests per connection %d, max connections per "
	    "host %d\n",
	    session->cluster_name != NULL ? session->cluster_name : "null", settings->pending_max,
	    settings->connections_per_host);
	if (stress_session_execute(session,
		"SELECT rpc_address, data_center, rack, tokens FROM system.local", CONSISTENCY_ONE,
		&arena, &response, &ignored) == 0 &&
	    response.result_kind == RESULT_ROWS)
		stress_session_take_hosts(session, &response);
	/* The address that was given reaches the node for sure. */
	if (session->host_count > 0) {
		free(session->hosts[0].address);
		session->hosts[0].address = xstrdup(first);
		free(session->ring.nodes[0].address);
		session->ring.nodes[0].address = xstrdup(first);
	}
	if (stress_session_execute(session,
		"SELECT rpc_address, data_center, rack, tokens FROM system.peers", CONSISTENCY_ONE,
		&arena, &response, &ignored) == 0 &&
	    response.result_kind == RESULT_ROWS)
		stress_session_take_hosts(session, &response);
	if (session->host_count == 0 && !settings->is_white_list &&
	    (settings->datacenter != NULL || settings->rack != NULL)) {
		rc = error_set(err, ERROR_INVALID, "no node is in datacenter %s, rack %s",
		    settings->datacenter != NULL ? settings->datacenter : "(any)",
		    settings->rack != NULL ? settings->rack : "(any)");
		goto done;
	}
	if (settings->is_white_list || session->host_count == 0) {
		session->host_count = 0;
		stress_session_take_given_hosts(session);
	}
	stress_session_number_nodes(session);
	fflush(stdout);
done:
	arena_fini(&arena);
	return rc;
}

int
stress_session_open(
    struct stress_session *session, const struct stress_settings *settings, struct error *err)
{
	struct error last;
	uint32_t i;

	memset(session, 0, sizeof(*session));
	session->settings = settings;
	session->connection.fd = -1;
	if (stress_tls_init(&session->tls, settings, err) != 0)
		return -1;
	for (i = 0; i < settings->node_count; i++) {
		if (stress_connection_open(&session->connection, settings, &session->tls,
			settings->nodes[i], settings->port, settings->protocol_version,
			STRESS_CONNECT_TIMEOUT_MS, &last) == 0)
			break;
		if (last.code == ERROR_BAD_CREDENTIALS)
			return error_set(err, ERROR_BAD_CREDENTIALS,
			    "com.datastax.driver.core.exceptions.AuthenticationException: "
			    "Authentication error on host %s:%d: %s",
			    settings->nodes[i], settings->port, last.text);
	}
	if (i == settings->node_count)
		return error_set(err, ERROR_IO,
		    "com.datastax.driver.core.exceptions.NoHostAvailableException: All host(s) "
		    "tried "
		    "for query failed (tried: %s:%d (%s))",
		    settings->nodes[i - 1], settings->port, last.text);
	return stress_session_look_around(session, settings->nodes[i], err);
}

void
stress_session_close(struct stress_session *session)
{
	stress_connection_close(&session->connection);
	stress_tls_fini(&session->tls);
	for (uint32_t i = 0; i < session->host_count; i++) {
		free(session->hosts[i].address);
		free(session->hosts[i].datacenter);
		free(session->hosts[i].rack);
	}
	free(session->hosts);
	stress_ring_fini(&session->ring);
	free(session->cluster_name);
	memset(session, 0, sizeof(*session));
	session->connection.fd = -1;
}

void
stress_session_agree(struct stress_session *session)
{
	struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
	struct client_response local, peers;
	struct error err;
	struct arena arena;

	arena_init(&arena, 4096);
	for (int i = 0; i < 100; i++) {
		bool is_same = true;
		struct slice version, peer;

		if (stress_session_execute(session, "SELECT schema_version FROM system.local",
			CONSISTENCY_ONE, &arena, &local, &err) != 0 ||
		    stress_session_execute(session, "SELECT schema_version FROM system.peers",
			CONSISTENCY_ONE, &arena, &peers, &err) != 0 ||
		    local.result_kind != RESULT_ROWS || peers.result_kind != RESULT_ROWS)
			break;
		version = stress_cell(&local.rows.content);
		for (uint32_t row = 0; row < peers.rows.row_count; row++) {
			peer = stress_cell(&peers.rows.content);
			is_same &= slice_is_null(peer) || slice_equal(peer, version);
		}
		if (is_same)
			break;
		nanosleep(&pause, NULL);
		arena_reset(&arena);
	}
	arena_fini(&arena);
}

/* ---- Statements ---------------------------------------------------------------------------------------- */

int
stress_session_prepare(struct stress_session *session, const char *query,
    struct stress_statement *out, struct error *err)
{
	struct client_message request = {
	    .version = session->connection.version,
	    .opcode = OPCODE_PREPARE,
	    .prepare = {.query = slice_of_string(query)},
	};
	struct client_response response;

	memset(out, 0, sizeof(*out));
	arena_init(&out->arena, 4096);
	if (stress_session_ask(session, &request, &out->arena, &response, err) != 0)
		goto failed;
	if (response.opcode != OPCODE_RESULT || response.result_kind != RESULT_PREPARED) {
		error_set(err, ERROR_PROTOCOL, "Unexpected answer to PREPARE");
		goto failed;
	}
	out->query = xstrdup(query);
	out->id = response.prepared.id;
	out->result_metadata_id = response.prepared.result_metadata_id;
	out->marker_count = response.prepared.markers.column_count;
	out->markers = arena_calloc(&out->arena, out->marker_count + 1, sizeof(*out->markers));
	out->is_prepared = true;
	out->consistency = session->settings->consistency;
	out->serial_consistency = session->settings->serial_consistency;
	for (uint32_t i = 0; i < out->marker_count; i++) {
		const struct client_column *column = &response.prepared.markers.columns[i];

		out->markers[i].name =
		    arena_strndup(&out->arena, (const char *)column->name.data, column->name.size);
		if (type_codec_decode(column->type, &out->arena, &out->markers[i].type, err) != 0)
			goto failed;
	}
	return 0;
failed:
	stress_statement_fini(out);
	return -1;
}

void
stress_statement_fini(struct stress_statement *statement)
{
	free(statement->query);
	arena_fini(&statement->arena);
	memset(statement, 0, sizeof(*statement));
}
