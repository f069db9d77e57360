/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_MODIFICATION_H
#define HELENUS_SERVER_MODIFICATION_H

/*
 * INSERT, UPDATE, DELETE: the plan, and how its executions become mutations. Cassandra:
 * cql3/statements/ModificationStatement and its children, cql3/conditions/.
 */
#include "server/operation.h"
#include "server/restriction.h"
#include "storage/mutation.h"

struct execution;
struct prepared_statement;

/* IF column <op> value. */
struct condition {
	const struct column_metadata *column;
	const struct term *element; /* c[element]; NULL */
	int field; /* c.field; -1 */
	enum ast_operator operator;
	const struct type *type; /* of what is compared */
	const struct term *value; /* IN ?: the list */
	const struct term **in_values;
	uint32_t in_count;
	bool has_in_list; /* IN (...) */
};

struct modification_plan {
	enum statement_kind kind;
	const struct keyspace_metadata *keyspace;
	const struct table_metadata *table;
	struct restrictions restrictions;
	struct operation *statics; /* in the order of columns */
	uint32_t static_count;
	struct operation *regulars;
	uint32_t regular_count;
	const struct term *timestamp; /* NULL: none given */
	const struct term *ttl;

	bool sets_liveness; /* INSERT into a table with rows of their own */
	bool deletes_rows; /* DELETE without columns */
	bool is_static_only; /* touches the static row alone */
	bool is_direct; /* one row, plain columns: the fast way */
	bool needs_read;
	bool has_deletion_of_static; /* both kinds in one DELETE */

	bool is_conditional;
	bool if_exists, if_not_exists;
	struct condition *conditions; /* regulars as written, then statics */
	uint32_t condition_count;
	bool has_static_condition, has_regular_condition;

	/* INSERT JSON: the terms are markers of one value for each column, in the order of SELECT *. */
	bool is_json, default_unset;
	const struct term *json;
};

/* Fill plan->modification, key_indexes, stage. */
int modification_prepare(struct preparation *preparation, const struct statement *statement,
    struct prepared_statement *plan, struct modification_plan **out, struct error *err);
/* Conditions of UPDATE and DELETE. */
int conditions_prepare(struct preparation *preparation, const struct ast_conditions *raw,
    struct modification_plan *plan, struct error *err);

/* One statement with its values: of an EXECUTE or QUERY, or a part of a BATCH. */
struct modification {
	const struct modification_plan *plan;
	struct term_context terms;
	int64_t timestamp; /* default, when the statement has none */
	int64_t now_seconds;
};

/* Mutations by keyspace and key, collected from one or several statements. */
struct mutation_entry {
	const struct keyspace_metadata *keyspace;
	struct slice key;
	int64_t token;
	uint32_t update_count, update_capacity;
	const struct table_metadata **tables;
	struct update_builder **builders;
};

struct mutation_set {
	struct arena *arena;
	struct mutation_entry *entries;
	uint32_t count, capacity;
	uint32_t *slots; /* hash table: index of the entry + 1, or 0 */
	uint32_t slot_count; /* power of two, at least twice capacity */
};

/* JSON: turn the document into the values of the markers. Call before the others. */
int modification_begin(
    struct modification *modification, struct execution *execution, struct error *err);
/* Keys that it touches. */
int modification_keys(const struct modification *modification, struct slice **keys, uint32_t *count,
    struct error *err);
/* Add its changes; reads what it needs to (the caller holds the partitions' locks then). */
int modification_collect(struct modification *modification, struct execution *execution,
    struct mutation_set *set, struct error *err);
/* The one mutation of a direct plan, without builders. */
int modification_direct(struct modification *modification, struct execution *execution,
    struct mutation *mutation, struct partition_update *update, struct row *row,
    struct row *static_row, struct error *err);
int mutation_set_finish(struct mutation_set *set, struct mutation **out, struct error *err);

/*
 * Read the first row of a range (NULL: of the partition) and the static row, live at now, copied. Where this node is
 * not the only replica, the row must come from others first: -1 with execution_wants_rows(); the caller gives up
 * what it has begun, and begins again from execution_read_rows()'s callback, when the row is there.
 */
int modification_read_row(struct execution *execution, const struct modification_plan *plan,
    struct slice key, int64_t token, const struct clustering_range *range, int64_t now_seconds,
    struct arena *arena, struct row *row, bool *has_row, struct row *static_row, bool *has_static,
    struct error *err);

/* Did the last failure mean that rows must be read first? */
bool execution_wants_rows(const struct execution *execution);
/*
 * Read them at `level`, then go on: err is NULL, or what the read failed with; the execution goes on in any case. No locks
 * are held.
 */
typedef void (*execution_go_on_fn)(
    struct execution *execution, void *context, const struct error *err);
void execution_read_rows(
    struct execution *execution, enum consistency level, execution_go_on_fn go_on, void *context);
/* Forget what was read: it is out of date. */
void execution_forget_rows(struct execution *execution);

/* Conditional statements: one, or those of a batch, all of one partition. Ends the execution. */
void cas_execute(struct execution *execution, struct modification *modifications, uint32_t count);
/* Hand mutations to the coordinator; ends the execution with Void. */
void execution_write(struct execution *execution, struct mutation *mutations, uint32_t count,
    const struct keyspace_metadata *keyspace, int write_type);

#endif
