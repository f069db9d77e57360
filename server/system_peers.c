/* SPDX-License-Identifier: Apache-2.0 */
#include "server/system_peers.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "server/internal_query.h"
#include "server/system_local.h"

enum { SYSTEM_PEERS_VALUES_MAX = 12 };

/* An INSERT in the making: only columns that are known, since a null would be a tombstone. */
struct system_peers_insert {
	struct buffer columns, markers;
	struct slice values[SYSTEM_PEERS_VALUES_MAX];
	uint32_t count;
};

static void
system_peers_put(struct system_peers_insert *insert, const char *column, struct slice value)
{
	const char *comma = insert->count == 0 ? "" : ", ";

	if (slice_is_null(value) || insert->count == SYSTEM_PEERS_VALUES_MAX)
		return;
	buffer_printf(&insert->columns, "%s%s", comma, column);
	buffer_printf(&insert->markers, "%s?", comma);
	insert->values[insert->count++] = value;
}

static struct slice
system_peers_address(const struct endpoint *endpoint)
{
	return endpoint->size == 0 ? slice_null : slice_of(endpoint->address, endpoint->size);
}

static struct slice
system_peers_port(const struct endpoint *endpoint, struct arena *arena)
{
	return endpoint->size == 0 ? slice_null : system_int(endpoint->port, arena);
}

static struct slice
system_peers_text(const char *text)
{
	return text == NULL ? slice_null : slice_of_string(text);
}

static int
system_peers_run(struct executor *executor, struct system_peers_insert *insert, const char *table,
    struct error *err)
{
	struct buffer text;
	int rc;

	buffer_init(&text);
	buffer_printf(&text, "INSERT INTO system.%s (%.*s) VALUES (%.*s)", table,
	    (int)insert->columns.size, (const char *)insert->columns.data,
	    (int)insert->markers.size, (const char *)insert->markers.data);
	buffer_put_u8(&text, 0);
	rc = buffer_check(&text, err);
	if (rc == 0)
		rc = internal_execute(
		    executor, (const char *)text.data, insert->values, insert->count, err);
	buffer_fini(&text);
	return rc;
}

static int
system_peers_save_table(struct executor *executor, const struct service_peer *peer, bool is_v2,
    struct arena *arena, struct error *err)
{
	struct system_peers_insert insert = {.count = 0};
	int rc;

	buffer_init(&insert.columns);
	buffer_init(&insert.markers);
	system_peers_put(&insert, "peer", system_peers_address(&peer->endpoint));
	if (is_v2)
		system_peers_put(&insert, "peer_port", system_peers_port(&peer->endpoint, arena));
	system_peers_put(&insert, "data_center", system_peers_text(peer->datacenter));
	if (peer->has_host_id)
		system_peers_put(&insert, "host_id", slice_of(peer->host_id.bytes, 16));
	system_peers_put(
	    &insert, is_v2 ? "native_address" : "rpc_address", system_peers_address(&peer->native));
	system_peers_put(&insert, "preferred_ip", system_peers_address(&peer->internal));
	if (is_v2) {
		system_peers_put(&insert, "native_port", system_peers_port(&peer->native, arena));
		system_peers_put(
		    &insert, "preferred_port", system_peers_port(&peer->internal, arena));
	}
	system_peers_put(&insert, "rack", system_peers_text(peer->rack));
	system_peers_put(&insert, "release_version", system_peers_text(peer->release_version));
	if (peer->has_schema_version)
		system_peers_put(
		    &insert, "schema_version", slice_of(peer->schema_version.bytes, 16));
	if (peer->token_count > 0)
		system_peers_put(
		    &insert, "tokens", system_tokens(peer->tokens, peer->token_count, arena));
	rc = system_peers_run(executor, &insert, is_v2 ? "peers_v2" : "peers", err);
	buffer_fini(&insert.columns);
	buffer_fini(&insert.markers);
	return rc;
}

int
system_peers_save(struct executor *executor, const struct service_peer *peer, struct error *err)
{
	struct arena arena;
	int rc;

	arena_init(&arena, 2048);
	rc = system_peers_save_table(executor, peer, true, &arena, err);
	if (rc == 0)
		rc = system_peers_save_table(executor, peer, false, &arena, err);
	arena_fini(&arena);
	return rc;
}

int
system_peers_remove(struct executor *executor, const struct endpoint *endpoint, struct error *err)
{
	struct slice values[2] = {slice_of(endpoint->address, endpoint->size), slice_null};
	struct arena arena;
	int rc;

	arena_init(&arena, 64);
	values[1] = system_int(endpoint->port, &arena);
	rc = internal_execute(executor,
	    "DELETE FROM system.peers_v2 WHERE peer = ? AND peer_port = ?", values, 2, err);
	if (rc == 0)
		rc = internal_execute(
		    executor, "DELETE FROM system.peers WHERE peer = ?", values, 1, err);
	arena_fini(&arena);
	return rc;
}

/* ---- loading ----------------------------------------------------------------------------------------- */

static bool
system_peers_endpoint(struct slice address, struct slice port, struct endpoint *out)
{
	memset(out, 0, sizeof(*out));
	if ((address.size != 4 && address.size != 16) || port.size != 4)
		return false;
	memcpy(out->address, address.data, address.size);
	out->size = (uint8_t)address.size;
	out->port = (uint16_t)load_u32(port.data);
	return true;
}

static char *
system_peers_string(struct slice cell)
{
	return slice_is_null(cell) ? NULL : xstrndup((const char *)cell.data, cell.size);
}

static void
system_peers_load_row(const struct slice *cells,
    void (*each)(void *context, const struct service_peer *peer), void *context)
{
	struct service_peer peer = {.has_host_id = cells[2].size == 16};
	char *datacenter, *rack, *release;
	int64_t *tokens;

	if (!system_peers_endpoint(cells[0], cells[1], &peer.endpoint))
		return;
	if (peer.has_host_id)
		memcpy(peer.host_id.bytes, cells[2].data, 16);
	datacenter = system_peers_string(cells[3]);
	rack = system_peers_string(cells[4]);
	release = system_peers_string(cells[5]);
	tokens = system_parse_tokens(cells[6], &peer.token_count);
	(void)system_peers_endpoint(cells[7], cells[8], &peer.native);
	(void)system_peers_endpoint(cells[9], cells[10], &peer.internal);
	peer.datacenter = datacenter;
	peer.rack = rack;
	peer.release_version = release;
	peer.tokens = tokens;
	if (peer.token_count > 0)
		each(context, &peer);
	free(datacenter);
	free(rack);
	free(release);
	free(tokens);
}

int
system_peers_load(struct executor *executor,
    void (*each)(void *context, const struct service_peer *peer), void *context, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;

	if (internal_select(executor,
		"SELECT peer, peer_port, host_id, data_center, rack, release_version, tokens, "
		"native_address, native_port, preferred_ip, preferred_port FROM system.peers_v2",
		NULL, 0, &rows, err) != 0)
		return -1;
	while (internal_rows_next(&rows, cells))
		system_peers_load_row(cells, each, context);
	internal_rows_fini(&rows);
	return 0;
}
