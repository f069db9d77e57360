/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_BATCH_H
#define HELENUS_SERVER_BATCH_H

/*
 * BATCH, as text or as a message: statements whose mutations are merged by partition and written as
 * one. Cassandra: cql3/statements/BatchStatement.
 */
#include "cql/ast.h"
#include "server/modification.h"

struct batch_plan {
	enum ast_batch_kind kind;
	uint32_t count;
	struct modification_plan **statements;
	const struct term *timestamp; /* of the batch; NULL: none */
};

/* Fill plan->batch. */
int batch_prepare(struct preparation *preparation, const struct statement *statement,
    struct prepared_statement *plan, struct error *err);

/*
 * Run statements, each with its values. Ends the execution. timestamp: default for those without one
 * of their own. table_name: what warnings call the batch.
 */
void batch_run(struct execution *execution, enum ast_batch_kind kind,
    struct modification *modifications, uint32_t count);
/* Checks that do not depend on values: counters with others, conditions, timestamps. */
int batch_check(enum ast_batch_kind kind, const struct modification_plan *const *statements,
    uint32_t count, bool has_timestamp, struct error *err);

#endif
