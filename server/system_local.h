/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SYSTEM_LOCAL_H
#define HELENUS_SERVER_SYSTEM_LOCAL_H

/*
 * system.local: what the node says of itself to drivers, and keeps for itself over restarts (host id,
 * tokens, cluster name). Cassandra: SystemKeyspace, StorageService.
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/uuid.h"
#include "cluster/storage_service.h"
#include "storage/commitlog_position.h"

struct executor;

/*
 * Read what is kept, check it against the configuration, write the row; tokens and `bootstrapped` are left to
 * system_local_save_tokens(). Sets node->host_id, generation, bootstrapped and saved_tokens. ERROR_WRONG_STATE: the
 * data are another cluster's, or of another data center or rack.
 */
int system_local_start(struct executor *executor, struct error *err);
/* Another host id from now on: of the node that this one replaces under its address. Before clients are served. */
int
system_local_save_host_id(struct executor *executor, const struct uuid *host_id, struct error *err);
/* Durable on return. count 0: the tokens stay as they are. */
int system_local_save_tokens(struct executor *executor, enum bootstrap_state state,
    const int64_t *tokens, uint32_t count, struct error *err);
int system_local_set_schema_version(
    struct executor *executor, const struct uuid *version, struct error *err);
/* truncated_at: the commit log holds nothing of the table up to `position`. Durable on return. */
int system_local_set_truncated(struct executor *executor, const struct uuid *table_id,
    struct commitlog_position position, struct error *err);
/* Tell the store the host id that was kept, if there is one, before it replays the commit log. */
int system_local_load_host_id(struct executor *executor, struct error *err);
/* Tell the store what truncated_at says, before it replays the commit log. */
int system_local_load_truncated(struct executor *executor, struct error *err);

/* Values of columns of system tables; null for what cannot be said (no memory, no address). */
struct slice system_inet(const char *text, struct arena *arena);
struct slice system_int(int64_t value, struct arena *arena);
/* set<text> of numbers, and back: ascending, for free(); NULL for none. */
struct slice system_tokens(const int64_t *tokens, uint32_t count, struct arena *arena);
int64_t *system_parse_tokens(struct slice cell, uint32_t *count);

/* What versions we claim to be. */
#define SYSTEM_RELEASE_VERSION "4.1.8"
#define SYSTEM_CQL_VERSION "3.4.6"

#endif
