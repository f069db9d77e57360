/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SYSTEM_TABLES_H
#define HELENUS_SERVER_SYSTEM_TABLES_H

/*
 * The metadata of the system keyspaces: system, system_schema (local), system_auth,
 * system_distributed, system_traces (replicated), system_views, system_virtual_schema (virtual).
 * Cassandra: SystemKeyspace, SchemaKeyspace, AuthKeyspace, TraceKeyspace,
 * SystemDistributedKeyspace, db/virtual.
 */
#include "base/error.h"
#include "cql/schema.h"

struct system_table_definition {
	const char *keyspace;
	const char *table;
	const char *columns; /* between the parentheses of CREATE TABLE */
	const char *options; /* behind WITH; never empty */
};

extern const struct system_table_definition system_table_definitions[];
extern const size_t system_table_definition_count;

/*
 * A new snapshot with all of them and nothing else; *out has one reference. Fails only when a
 * definition is wrong, which its test finds.
 */
int system_tables_schema(int32_t default_factor, struct schema **out, struct error *err);

#endif
