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

/* toppartitions. */
int admin_post_sample(struct admin_call *call, struct error *err);

/* The text of /metrics. */
void admin_metrics(struct node *node, struct buffer *out);
extern const char admin_console[];

/* Bytes of memory that the process holds. */
uint64_t admin_resident_bytes(void);

#endif
