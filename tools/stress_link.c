/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "base/alloc.h"
#include "tools/stress_worker.h"

struct stress_use {
	bool is_done;
	bool is_good;
	struct arena arena;
	struct error error;
};

static void
stress_use_cb(void *user, const struct envelope *envelope)
{
	struct stress_use *use = user;
	struct client_response response;

	use->is_done = true;
	if (client_decode_response(envelope, &use->arena, &response, &use->error) != 0)
		return;
	use->is_good = response.opcode == OPCODE_RESULT;
	if (response.opcode == OPCODE_ERROR)
		error_set(&use->error, ERROR_SERVER, "%.*s", (int)response.error.text.size,
		    (const char *)response.error.text.data);
}

static int
stress_link_use(struct stress_link *link, int timeout_ms, struct error *err)
{
	struct stress_connection *connection = &link->connection;
	struct stress_use use = {.is_done = false};
	struct client_message request = {.version = connection->version, .opcode = OPCODE_QUERY};
	char text[STRESS_NAME_MAX + 16];
	int rc = 0;

	snprintf(text, sizeof(text), "USE %s", link->keyspace);
	request.query.query = slice_of_string(text);
	request.query.options = client_query_options(CONSISTENCY_ONE);
	arena_init(&use.arena, 1024);
	if (client_put_request(stress_connection_out(connection), &request,
		connection->is_framed ? COMPRESSION_NONE : connection->compression, err) != 0 ||
	    stress_connection_flush(connection, err) != 0)
		rc = -1;
	while (rc == 0 && !use.is_done) {
		rc = stress_connection_wait(connection, timeout_ms, err);
		if (rc == 0)
			rc = stress_connection_read(connection, stress_use_cb, &use, err);
	}
	if (rc == 0 && !use.is_good) {
		*err = use.error;
		rc = -1;
	}
	arena_fini(&use.arena);
	return rc;
}

int
stress_link_open(struct stress_link *link, const struct stress_settings *settings,
    const struct stress_tls *tls, int timeout_ms, struct error *err)
{
	uint32_t count = (uint32_t)settings->pending_max;

	if (link->streams == NULL) {
		link->streams = xcalloc(count, sizeof(struct stress_client *));
		link->free_streams = xcalloc(count, sizeof(int16_t));
	}
	memset(link->streams, 0, count * sizeof(struct stress_client *));
	for (uint32_t i = 0; i < count; i++)
		link->free_streams[i] = (int16_t)(count - 1 - i);
	link->free_count = count;
	link->is_dirty = link->is_armed = false;
	if (stress_connection_open(&link->connection, settings, tls, link->host, link->port,
		link->version, timeout_ms, err) != 0)
		return -1;
	if (link->keyspace != NULL && stress_link_use(link, timeout_ms, err) != 0) {
		stress_connection_close(&link->connection);
		return -1;
	}
	return 0;
}

void
stress_link_fini(struct stress_link *link)
{
	stress_connection_close(&link->connection);
	free(link->streams);
	free(link->free_streams);
	link->streams = NULL;
	link->free_streams = NULL;
}
