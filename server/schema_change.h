/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SCHEMA_CHANGE_H
#define HELENUS_SERVER_SCHEMA_CHANGE_H

/*
 * Changes of the schema: CREATE, ALTER, DROP. What one means is decided against a snapshot of the schema that
 * is the ring's newest, when the schema log (cluster/schema_log.h) says that it is this change's turn; how it takes
 * effect stands in server/schema_sync.h.
 *
 * Cassandra: cql3/statements/schema/.
 */
#include "base/error.h"
#include "cql/ast.h"
#include "cluster/replication.h"
#include "cql/schema.h"
#include "protocol/response.h"

struct executor;
struct execution;

/* At start: system tables, user schema, replay. */
int schema_start(struct executor *executor, struct error *err);

/* What a transformation makes of a snapshot. */
struct schema_transformation {
	const struct schema *schema; /* before */
	struct slice session_keyspace; /* null: none */
	const struct statement *statement;
	struct execution *execution; /* for warnings; NULL: none */
	struct arena *arena;
	/* The cluster's data centers. */
	const struct replication_place *places;
	uint32_t place_count;
	int32_t default_factor; /* default_keyspace_rf */

	/* Set by the transformation. */
	struct slice name; /* of the keyspace */
	const struct keyspace_metadata *before; /* NULL: did not exist */
	struct keyspace_metadata *after; /* a reference; NULL: dropped, or nothing is done */
	bool is_noop; /* IF [NOT] EXISTS said so */
	struct schema_change change;
};

/* The statement's: fills the result or gives an error. */
int schema_transform(struct schema_transformation *transformation, struct error *err);
/* By kind of statement. */
int schema_transform_keyspace(struct schema_transformation *transformation, struct error *err);
int schema_transform_table(struct schema_transformation *transformation, struct error *err);
int schema_transform_alter_table(struct schema_transformation *transformation, struct error *err);
int schema_transform_type(struct schema_transformation *transformation, struct error *err);
/* Indexes, views, functions, aggregates and triggers, of which there are none. */
int schema_transform_absent(struct schema_transformation *transformation, struct error *err);

/* A type as the schema knows it. ERROR_INVALID, ERROR_SYNTAX. */
int schema_resolve_type(const struct schema *schema, struct slice keyspace,
    const struct ast_type *raw, struct arena *arena, const struct type **out, struct error *err);
/* CREATE TABLE as a builder has it; *builder is the caller's, also after a failure (may be NULL). */
int schema_build_table(const struct statement_create_table *create, struct slice keyspace,
    const struct schema *schema, struct table_builder **builder, struct error *err);
/* WITH ... as table_options_apply() takes it; `id` is taken out (NULL where none), and what a guardrail ignores is left out
 * (execution NULL: nothing). */
int schema_apply_options(struct table_builder *builder, const struct ast_properties *properties,
    const struct execution *execution, const struct slice **id, struct error *err);

/* Is a table without compression allowed, if it is one? */
int schema_check_compression(struct schema_transformation *transformation,
    const struct table_options *options, struct error *err);

/* The keyspace a name means in a DDL statement, and the check that it may be changed. */
int schema_target_keyspace(
    struct schema_transformation *transformation, struct slice given, struct error *err);

#endif
