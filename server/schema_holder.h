/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SCHEMA_HOLDER_H
#define HELENUS_SERVER_SCHEMA_HOLDER_H

/*
 * The current schema snapshot. Readers take a reference; the one thread that changes the schema (it
 * holds the executor's ddl_lock) puts a new snapshot. Plans carry their own reference, so a prepared
 * statement's execution does not come here. Cassandra: schema/Schema.
 */
#include "base/lock.h"
#include "cql/schema.h"

struct schema_holder {
	struct lock lock;
	struct schema *schema; /* shared; guarded by lock */
};

void schema_holder_init(struct schema_holder *holder);
void schema_holder_fini(struct schema_holder *holder);
/* One reference for the caller. */
struct schema *schema_holder_get(struct schema_holder *holder);
/* Takes its own reference. */
void schema_holder_set(struct schema_holder *holder, struct schema *schema);

#endif
