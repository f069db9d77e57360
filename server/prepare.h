/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_PREPARE_H
#define HELENUS_SERVER_PREPARE_H

/*
 * From text to plan: parse, resolve names, check types. A plan (prepared_statement) is immutable and
 * shared by reference counts; every statement is run from one, whether it was prepared by the client or
 * came as text. A plan holds the schema snapshot it was made with, so everything it points to lives
 * as long as it does; a plan whose table has changed since is replaced or dropped by the cache.
 * Cassandra: cql3/QueryProcessor, CQLStatement.Raw.prepare.
 */
#include <stdatomic.h>
#include "cql/ast.h"
#include "server/executor.h"
#include "server/term.h"

struct select_plan;
struct modification_plan;
struct batch_plan;

enum { PREPARE_VERSIONS = 3 }; /* of the protocol: 3, 4, 5 */

struct prepared_statement {
	atomic_uint refs;
	struct arena arena; /* owned; everything below lives here */
	uint8_t id[16]; /* MD5 of keyspace and text */
	enum statement_kind kind;
	enum request_stage stage; /* that runs it */
	const struct statement *statement;
	struct slice query; /* the text */
	struct slice keyspace; /* of the session it was prepared in; null: none */
	const struct schema *schema; /* shared */
	const struct keyspace_metadata *keyspace_metadata; /* of table; borrowed from schema */
	const struct table_metadata *table; /* NULL for statements without one */
	bool is_conditional;

	uint32_t marker_count;
	struct column_spec *markers;
	uint32_t key_index_count;
	uint16_t *key_indexes;
	uint32_t result_count;
	const struct column_spec *results;
	uint8_t result_metadata_id[16];
	struct slice encoded_results[PREPARE_VERSIONS]; /* response_encode_specs() */
	struct slice encoded_markers[PREPARE_VERSIONS];

	union {
		struct select_plan *select;
		struct modification_plan *modification; /* INSERT, UPDATE, DELETE */
		struct batch_plan *batch;
	};
};

/*
 * Make a plan; *out has one reference. The schema is shared by the plan. keyspace: of the session
 * or the request, null: none. ERROR_SYNTAX, ERROR_INVALID, ... as Cassandra.
 */
int prepare_statement(const struct schema *schema, struct slice keyspace, struct slice query,
    struct prepared_statement **out, struct error *err);

struct prepared_statement *prepared_statement_ref(struct prepared_statement *plan);
/* NULL is accepted. */
void prepared_statement_unref(struct prepared_statement *plan);

/* MD5 of keyspace (may be null) and text (QueryProcessor.computeId). */
void prepare_id(struct slice keyspace, struct slice query, uint8_t id[16]);

/* ---- For the parts that prepare ---- */

/* The table that a name means. ERROR_INVALID: no keyspace, no such keyspace or table. */
int prepare_table(const struct schema *schema, struct slice keyspace, const struct ast_name *name,
    const struct keyspace_metadata **keyspace_out, const struct table_metadata **table_out,
    struct error *err);
/* The column of a table, or ERROR_INVALID "Undefined column name x in table ks.t". */
const struct column_metadata *
prepare_column(const struct table_metadata *table, struct slice name, struct error *err);
/* The receiver that a column is. */
struct column_spec
prepare_receiver(const struct table_metadata *table, const struct column_metadata *column);

#endif
