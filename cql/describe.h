/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_DESCRIBE_H
#define HELENUS_CQL_DESCRIBE_H

/*
 * The CREATE statements that DESCRIBE answers, letter by letter as Cassandra 4.1 writes them
 * (SchemaElement.toCqlString). All append to `out` without NUL; each statement ends with ';'.
 */
#include <stdbool.h>
#include "base/bytes.h"
#include "cql/schema.h"

/* with_internals: DESCRIBE ... WITH INTERNALS (ids, dropped columns). if_not_exists: snapshots'
 * schema.cql. */
void describe_keyspace(const struct keyspace_metadata *keyspace, bool with_internals,
    bool if_not_exists, struct buffer *out);
/* CREATE TABLE, or CREATE MATERIALIZED VIEW for a view's table (keyspace needed then). Indexes are
 * not part: see describe_index(). */
void describe_table(const struct keyspace_metadata *keyspace, const struct table_metadata *table,
    bool with_internals, bool if_not_exists, struct buffer *out);
void describe_index(const struct table_metadata *table, const struct index_metadata *index,
    bool if_not_exists, struct buffer *out);
void describe_type(const struct type *udt, bool if_not_exists, struct buffer *out);
void describe_function(const struct keyspace_metadata *keyspace,
    const struct function_metadata *function, bool if_not_exists, struct buffer *out);

/* A name as CQL needs it: as it is when lower case and no reserved word, else in double quotes. */
void describe_name(struct slice name, struct buffer *out);
/* 'text' with quotes doubled. */
void describe_literal(struct slice text, struct buffer *out);

#endif
