/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_ADMIN_INTERNAL_H
#define HELENUS_SERVER_ADMIN_INTERNAL_H

/* Shared by admin.c (HTTP), admin_read.c, admin_write.c and admin_metrics.c. */
#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include "base/bytes.h"
#include "base/error.h"

struct node;
struct table_store;

/* One call of the API. */
struct admin_call {
	struct node *node; /* borrowed */
	struct evkeyvalq arguments; /* of the query */
	json_t *answer; /* owned; an object, empty at first */
};

/* 0, or -1: ERROR_INVALID is the caller's fault. */
typedef int (*admin_fn)(struct admin_call *call, struct error *err);

struct admin_route {
	const char *name;
	bool is_write; /* POST */
	admin_fn run;
};
extern const struct admin_route admin_reads[], admin_writes[]; /* name NULL at the end */

/* NULL: absent or empty. */
const char *admin_argument(const struct admin_call *call, const char *name);
int
admin_need(const struct admin_call *call, const char *name, const char **out, struct error *err);
int admin_need_number(const struct admin_call *call, const char *name, int64_t low, int64_t high,
    int64_t *out, struct error *err);

/* The tables that keyspace= and tables= (comma separated) name; all without. free() the array. */
int admin_tables(
    const struct admin_call *call, struct table_store ***out, uint32_t *count, struct error *err);

/* Members of an answer; NULL, and a number that is none, become null. */
void admin_set(json_t *object, const char *name, json_t *value);
void admin_set_number(json_t *object, const char *name, uint64_t value);
void admin_set_text(json_t *object, const char *name, const char *text);
void admin_set_real(json_t *object, const char *name, double value);

struct arena;
struct table_metadata;
/* A partition key as nodetool takes it: the text of its type; parts of a composite separated by ':'. */
int admin_partition_key(const struct table_metadata *table, const char *text, struct arena *arena,
    struct slice *out, struct error *err);

/* jobs=: SSTables at once, 2 unless it is given; 0: as many as there are threads for. */
int admin_jobs(const struct admin_call *call, uint32_t *out, struct error *err);
int admin_need_switch(const struct admin_call *call, bool *out, struct error *err); /* enabled= */

int admin_get_info(struct admin_call *call, struct error *err);

/* The ring (admin_cluster.c). */
int admin_get_cluster(struct admin_call *call, struct error *err);
int admin_get_describe_ring(struct admin_call *call, struct error *err);
int admin_get_endpoints(struct admin_call *call, struct error *err);
int admin_get_failure_detector(struct admin_call *call, struct error *err);
int admin_get_gossip(struct admin_call *call, struct error *err);
int admin_get_netstats(struct admin_call *call, struct error *err);
int admin_get_ring(struct admin_call *call, struct error *err);
int admin_get_seeds(struct admin_call *call, struct error *err);
/* Streams and changes of the ring (admin_stream.c). */
json_t *admin_streams(struct node *node);
int admin_get_stream_throughput(struct admin_call *call, struct error *err);
int admin_post_stream_throughput(struct admin_call *call, struct error *err);
int admin_post_cleanup(struct admin_call *call, struct error *err);
int admin_post_decommission(struct admin_call *call, struct error *err);
int admin_post_move(struct admin_call *call, struct error *err);
int admin_post_rebuild(struct admin_call *call, struct error *err);
int admin_post_removal_status(struct admin_call *call, struct error *err);
int admin_post_remove_node(struct admin_call *call, struct error *err);
int admin_post_resume_bootstrap(struct admin_call *call, struct error *err);

int admin_post_assassinate(struct admin_call *call, struct error *err);
int admin_post_gossip(struct admin_call *call, struct error *err);
int admin_post_join(struct admin_call *call, struct error *err);
int admin_post_reload_seeds(struct admin_call *call, struct error *err);

/* Hints and the batchlog (admin_hints.c). */
int admin_post_batchlog_throttle(struct admin_call *call, struct error *err);
int admin_post_replay_batchlog(struct admin_call *call, struct error *err);
int admin_get_hints(struct admin_call *call, struct error *err);
int admin_post_handoff(struct admin_call *call, struct error *err);
int admin_post_hint_delivery(struct admin_call *call, struct error *err);
int admin_post_hint_throttle(struct admin_call *call, struct error *err);
int admin_post_hint_window(struct admin_call *call, struct error *err);
int admin_post_truncate_hints(struct admin_call *call, struct error *err);

/* Repair (admin_repair.c). */
int admin_get_repair(struct admin_call *call, struct error *err);
int admin_get_pending_repairs(struct admin_call *call, struct error *err);
int admin_get_repaired(struct admin_call *call, struct error *err);
int admin_get_repair_sessions(struct admin_call *call, struct error *err);
int admin_post_cancel_repair(struct admin_call *call, struct error *err);
int admin_post_cleanup_repairs(struct admin_call *call, struct error *err);
int admin_post_repair(struct admin_call *call, struct error *err);
int admin_post_terminate_repairs(struct admin_call *call, struct error *err);

/* SSTables read and written anew (admin_compact.c). */
int admin_post_recompress(struct admin_call *call, struct error *err);
int admin_post_compact(struct admin_call *call, struct error *err);
int admin_post_garbage_collect(struct admin_call *call, struct error *err);
int admin_post_scrub(struct admin_call *call, struct error *err);
int admin_post_upgrade(struct admin_call *call, struct error *err);
int admin_post_verify(struct admin_call *call, struct error *err);

/* Settings, lookups, import (admin_settings.c). */
int admin_get_key_samples(struct admin_call *call, struct error *err);
int admin_get_limits(struct admin_call *call, struct error *err);
int admin_post_import(struct admin_call *call, struct error *err);
int admin_post_limit(struct admin_call *call, struct error *err);

/* toppartitions. */
int admin_post_sample(struct admin_call *call, struct error *err);

/* The text of /metrics. */
void admin_metrics(struct node *node, struct buffer *out);
extern const char admin_console[];

/* Bytes of memory that the process holds. */
uint64_t admin_resident_bytes(void);

/* May nodetool start gossip or the native transport (StorageService.checkServiceAllowedToStart)? */
int admin_check_may_start(struct node *node, const char *service, struct error *err);

#endif
