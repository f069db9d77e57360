/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_UNIT_STORAGE_STORE_FIXTURE_H
#define HELENUS_TESTS_UNIT_STORAGE_STORE_FIXTURE_H

#include <stdatomic.h>
#include "storage/store.h"

/* A store with one keyspace and one table (pk int, ck int, v text), background work in threads. */
struct store_fixture {
	struct env *env;
	struct store_options options;
	struct store *store;
	struct schema *schema;
	struct table_metadata *table;
	char directory[64], data[96], more[96], commitlog[96];
	const char *directories[2];
	struct uuid host_id;
	atomic_int running;
};

/* store_executor.submit: each work in a thread of its own; context is the fixture. */
bool store_fixture_submit(void *context, const char *stage, store_work_fn function, void *argument);
/* Wait until no background work runs. */
void store_fixture_quiet(struct store_fixture *fixture);
void store_fixture_open(struct store_fixture *fixture);
void store_fixture_close(struct store_fixture *fixture);
/* In a folder of its own under /tmp; options may be changed between close and open. */
void store_fixture_init(struct store_fixture *fixture);
void store_fixture_fini(struct store_fixture *fixture);
/* INSERT INTO t (pk, ck, v); a NULL v deletes the row. Waits until it is acknowledged. */
void store_fixture_insert(
    struct store_fixture *fixture, int32_t pk, int32_t ck, const char *v, int64_t timestamp);
/* The same where it may fail; -1 with why. Its own allocations do not (tests/memory/allocation.h). */
int store_fixture_try_insert(struct store_fixture *fixture, int32_t pk, int32_t ck, const char *v,
    int64_t timestamp, struct error *err);
int store_fixture_try_lookup(
    struct store_fixture *fixture, int32_t pk, int32_t ck, char out[64], struct error *err);
/* Value of one row, "" when there is none. */
void store_fixture_lookup(struct store_fixture *fixture, int32_t pk, int32_t ck, char out[64]);
uint64_t store_fixture_count(struct store_fixture *fixture);
void store_fixture_flush(struct store_fixture *fixture);
uint32_t store_fixture_sstables(struct store_fixture *fixture);
struct table_metadata *store_fixture_table(const struct uuid *id, bool with_extra);
struct schema *store_fixture_schema(const struct table_metadata *table);

#endif
