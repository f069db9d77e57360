/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_SESSION_H
#define HELENUS_TOOLS_STRESS_SESSION_H

/*
 * The control side of a run: one connection on which statements are executed and prepared one by one,
 * and what it tells of the cluster. Blocks. One thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "cql/type.h"
#include "protocol/client.h"
#include "tools/stress_connection.h"
#include "tools/stress_ring.h"

struct stress_host {
	char *address; /* owned */
	char *datacenter;
	char *rack;
};

struct stress_session {
	const struct stress_settings *settings; /* borrowed */
	struct stress_tls tls; /* owned; shared with the workers' connections */
	struct stress_connection connection; /* owned */
	struct stress_host *hosts; /* owned; those that the run sends to */
	uint32_t host_count;
	struct stress_ring
	    ring; /* owned; of all nodes; no tokens where these are not Murmur3Partitioner's */
	bool is_murmur3;
	char *cluster_name;
};

/* Connect to the first node that answers, ask for the others, print what the tool prints. */
int stress_session_open(
    struct stress_session *session, const struct stress_settings *settings, struct error *err);
void stress_session_close(struct stress_session *session);

/*
 * Execute a statement. The response and its slices live in `arena` (also the envelope). -1: what
 * stopped it, or the server's error: err->code, text of the server.
 */
int stress_session_execute(struct stress_session *session, const char *query,
    enum consistency consistency, struct arena *arena, struct client_response *out,
    struct error *err);
/* The same, where nothing but success matters; ALREADY_EXISTS counts as success. */
int stress_session_run(struct stress_session *session, const char *query,
    enum consistency consistency, struct error *err);
/* Which nodes have what of a keyspace (as CQL writes it). Nothing where there is only one
 * node to send to, or its strategy is none that spreads. Owned by the caller. */
void stress_session_place(
    struct stress_session *session, const char *keyspace, struct stress_placement *placement);
/* Wait until all nodes tell the same schema version, at most a few seconds. */
void stress_session_agree(struct stress_session *session);

struct stress_marker {
	char *name;
	const struct type *type;
};

/* A statement that was prepared, with what an EXECUTE needs. Constant; shared by all threads. */
struct stress_statement {
	char *query; /* owned */
	struct arena arena; /* types, names */
	struct slice id;
	struct slice result_metadata_id; /* v5 */
	uint32_t marker_count;
	struct stress_marker *markers;
	enum consistency consistency;
	enum consistency serial_consistency;
	bool is_write; /* carries a timestamp, its result has no rows */
	bool is_prepared; /* else sent as text, with literals for the markers */
};

int stress_session_prepare(struct stress_session *session, const char *query,
    struct stress_statement *out, struct error *err);
void stress_statement_fini(struct stress_statement *statement);

#endif
