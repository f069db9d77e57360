/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_APPLICATION_STATE_H
#define HELENUS_CLUSTER_APPLICATION_STATE_H

/*
 * What a node tells the others of itself: named values (gms/ApplicationState) and how they are written
 * (gms/VersionedValue). Values are bytes; all but TOKENS are text. Pure functions; any thread.
 */
#include "base/bytes.h"
#include "base/endpoint.h"
#include "base/error.h"
#include "base/uuid.h"

/* Numbers go over the wire: never change one. Those without a name here are Cassandra's padding. */
enum application_state {
	STATE_STATUS = 0, /* as STATUS_WITH_PORT; addresses in it have no port */
	STATE_LOAD = 1, /* bytes, as Java prints a double: "123456.0" */
	STATE_SCHEMA = 2, /* uuid */
	STATE_DC = 3,
	STATE_RACK = 4,
	STATE_RELEASE_VERSION = 5,
	STATE_REMOVAL_COORDINATOR = 6, /* "REMOVER,<host id>": who runs removenode */
	STATE_INTERNAL_IP = 7, /* "10.0.0.1" */
	STATE_RPC_ADDRESS = 8, /* "10.0.0.1" */
	STATE_SEVERITY = 10, /* a double; an operator's */
	STATE_NET_VERSION = 11, /* messaging version */
	STATE_HOST_ID = 12, /* uuid */
	STATE_TOKENS = 13, /* binary: tokens_encode() */
	STATE_RPC_READY = 14, /* "true", "false" */
	STATE_INTERNAL_ADDRESS_AND_PORT = 15, /* "10.0.0.1:7000" */
	STATE_NATIVE_ADDRESS_AND_PORT = 16, /* "10.0.0.1:9042" */
	STATE_STATUS_WITH_PORT = 17, /* node_status_format() */
	STATE_SSTABLE_VERSIONS = 18, /* "big-nb", comma separated */
	STATE_DISK_USAGE = 19, /* "SPACIOUS", "STUFFED", "FULL" */
	STATE_INDEX_STATUS = 20,
	STATE_COUNT = 21,
};

/* "STATUS_WITH_PORT"; "X9" and such for the padding. Static. */
const char *application_state_name(enum application_state state);
static inline uint32_t
application_state_bit(enum application_state state)
{
	return 1u << state;
}

/* ---- STATUS and STATUS_WITH_PORT ---- */

enum node_status_kind {
	NODE_STATUS_NONE, /* no status yet, or an empty one */
	NODE_STATUS_BOOT, /* token */
	NODE_STATUS_BOOT_REPLACE, /* replaced */
	NODE_STATUS_NORMAL, /* token */
	NODE_STATUS_LEAVING, /* token */
	NODE_STATUS_LEFT, /* token, expires_ms */
	NODE_STATUS_MOVING, /* token: where to */
	NODE_STATUS_REMOVING, /* host_id: its own */
	NODE_STATUS_REMOVED, /* host_id, expires_ms */
	NODE_STATUS_SHUTDOWN,
	NODE_STATUS_HIBERNATE,
};

struct node_status {
	enum node_status_kind kind;
	int64_t token; /* the first of its tokens */
	struct endpoint replaced;
	struct uuid host_id;
	int64_t expires_ms; /* wall clock: when the others may forget it */
};

/* "NORMAL,-123", "BOOT_REPLACE,127.0.0.1:7000", "removed,<uuid>,<ms>", "shutdown,true", ... Appends. */
void node_status_format(const struct node_status *status, bool with_port, struct buffer *out);
/* A null or empty value is NODE_STATUS_NONE. A port that is not there is default_port. ERROR_INVALID for what no node writes. */
int node_status_parse(
    struct slice value, uint16_t default_port, struct node_status *out, struct error *err);
/* States in which a node does not come back by itself (Gossiper.DEAD_STATES): REMOVING, REMOVED, LEFT, HIBERNATE. */
bool node_status_is_dead(enum node_status_kind kind);
/* States in which a node starts without a word (Gossiper.SILENT_SHUTDOWN_STATES): the dead ones, BOOT, BOOT_REPLACE, SHUTDOWN. */
bool node_status_is_silent(enum node_status_kind kind);

/* ---- TOKENS ---- */

/* As Cassandra's TokenSerializer: u32 8 and the token for each, then u32 0. Appends. */
void tokens_encode(const int64_t *tokens, uint32_t count, struct buffer *out);
/* *out is malloc()ed, the caller's to free; NULL for none. ERROR_INVALID. */
int tokens_decode(struct slice value, int64_t **out, uint32_t *count, struct error *err);

#endif
