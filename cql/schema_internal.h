/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_SCHEMA_INTERNAL_H
#define HELENUS_CQL_SCHEMA_INTERNAL_H

/* What the files schema*.c share. */
#include "cql/schema.h"

/* Arena memory that aborts when there is none, as xmalloc() does; zeroed. */
void *schema_alloc(struct arena *arena, size_t count, size_t size);
/* With a NUL behind it: names are handed on as strings too (struct mutation). Null stays null. */
struct slice schema_copy(struct arena *arena, struct slice slice);
const struct type *schema_copy_type(struct arena *arena, const struct type *type);

/* What goes into the schema version of one keyspace. */
void schema_digest_keyspace(const struct keyspace_metadata *keyspace, struct buffer *out);

#endif
