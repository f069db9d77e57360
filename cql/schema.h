/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_SCHEMA_H
#define HELENUS_CQL_SCHEMA_H

/*
 * The schema: keyspaces, tables, columns, user types. Everything here is immutable once it can be
 * seen by a second thread and is shared by reference counts; a change makes a new struct schema that
 * shares the unchanged keyspaces and tables with the old one (copy on write). Who swaps the current
 * snapshot, and persists it, lives above. Memory failures of these small structures abort (xalloc).
 *
 * Building: table_builder collects, checks and makes a table_metadata. Cassandra's classes:
 * TableMetadata, ColumnMetadata, KeyspaceMetadata, Keyspaces, Schema.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/map.h"
#include "base/uuid.h"
#include "cql/table_options.h"
#include "cql/type.h"

enum {
	SCHEMA_NAME_MAX = 48, /* bytes of a keyspace name */
	/* Of a table name: its folder is called <name>-<32 digits>. What Cassandra says of 48 holds for
	 * keyspaces only (4.1). */
	SCHEMA_TABLE_NAME_MAX = 222,
};

enum column_kind {
	COLUMN_PARTITION_KEY,
	COLUMN_CLUSTERING,
	COLUMN_STATIC,
	COLUMN_REGULAR,
};

/* "partition_key", "clustering", "static", "regular": as system_schema.columns has it. */
const char *column_kind_name(enum column_kind kind);
/* -1: no such kind. */
int column_kind_parse(struct slice text);

struct column_metadata {
	struct slice name; /* exact case; may be empty (compact tables' value column) */
	const struct type *type; /* never TYPE_REVERSED */
	enum column_kind kind;
	bool is_reversed; /* clustering: ORDER BY ... DESC */
	bool is_complex; /* multi-cell: collections and user types that are not frozen */
	/* Partition key and clustering: position in the key. Regular and static: index in
	 * table_metadata.regulars / statics, the order of Cassandra's Columns (simple columns before
	 * complex ones, then by the bytes of the name): the order of cells in a row. */
	uint16_t position;
};

struct dropped_column {
	struct column_metadata column; /* as it was; position unused */
	int64_t dropped_us; /* cells with a timestamp up to this are gone; microseconds */
};

/* An index: CREATE [CUSTOM] INDEX. */
struct index_metadata {
	struct slice name;
	const char *kind; /* "COMPOSITES", "KEYS", "CUSTOM" */
	struct slice target; /* option target: column, keys(c), values(c), entries(c), full(c) */
	struct option_map options; /* all options, target and class_name among them */
};

struct trigger_metadata {
	struct slice name;
	struct slice class_name;
};

/* Flags as system_schema.tables stores them: compound, dense, super, counter. */
enum {
	TABLE_COMPOUND = 1,
	TABLE_DENSE = 2,
	TABLE_SUPER = 4,
	TABLE_COUNTER = 8,
};

struct table_metadata {
	atomic_uint refs;
	/* The storage's handle for this table id, set once by the storage when it sees the table and
	 * read on every request (acquire); what a changed table_metadata inherits from its
	 * predecessor is the same handle. NULL: not opened yet. Not owned here. */
	_Atomic(void *) user;

	struct arena arena; /* owned; everything below lives here */
	struct slice keyspace;
	struct slice name;
	struct uuid id;
	uint32_t flags;
	bool is_virtual;
	bool is_view; /* a materialized view's table: see view_metadata of the keyspace */
	bool is_compact; /* COMPACT STORAGE: !compound, dense or super */
	bool is_index; /* hidden table of a secondary index */

	uint32_t partition_key_count;
	uint32_t clustering_count;
	uint32_t static_count;
	uint32_t regular_count;
	uint32_t column_count; /* sum of the four */
	struct column_metadata *partition_key; /* by position */
	struct column_metadata *clustering; /* by position */
	struct column_metadata *statics; /* Columns order: simple, then complex; by name */
	struct column_metadata *regulars; /* same */
	uint32_t static_simple_count; /* statics[static_simple_count..) are complex */
	uint32_t regular_simple_count;
	/* The order of SELECT * (partition key, clustering, statics, regulars; the last two by name
	 * alone): pointers to the above. */
	const struct column_metadata **select_order;
	struct map columns_by_name; /* struct column_metadata; find with table_column() */

	uint32_t dropped_count;
	struct dropped_column *dropped; /* by name */
	uint32_t index_count;
	struct index_metadata *indexes; /* by name */
	uint32_t trigger_count;
	struct trigger_metadata *triggers;

	struct table_options options; /* its memory is of this arena */
};

/* Sharing: any thread. unref accepts NULL. */
struct table_metadata *table_ref(const struct table_metadata *table);
void table_unref(const struct table_metadata *table);
/* Could no client tell them apart? */
bool table_equal(const struct table_metadata *a, const struct table_metadata *b);

/* NULL: no such column. */
const struct column_metadata *table_column(const struct table_metadata *table, struct slice name);
/* NULL unless the column was dropped (and is in the list). */
const struct dropped_column *
table_dropped_column(const struct table_metadata *table, struct slice name);
const struct index_metadata *table_index(const struct table_metadata *table, struct slice name);

static inline bool
table_is_counter(const struct table_metadata *table)
{
	return (table->flags & TABLE_COUNTER) != 0;
}

/* No clustering columns, and compact or not: one row a partition. */
static inline bool
table_has_clustering(const struct table_metadata *table)
{
	return table->clustering_count != 0;
}

/* TableMetadata.isStaticCompactTable: !super, !dense, !compound. */
static inline bool
table_is_static_compact(const struct table_metadata *table)
{
	return (table->flags & (TABLE_COMPOUND | TABLE_DENSE | TABLE_SUPER)) == 0;
}

/*
 * Partition keys. One component: its bytes as they are. More: each as [u16 length][bytes][00]
 * (CompositeType).
 */
/* Serialise `table->partition_key_count` components; the null slice without memory. A single
 * component is returned as it is, not copied. Every component must be <= 65535 bytes. */
struct slice table_partition_key(
    const struct table_metadata *table, const struct slice *components, struct arena *arena);
/* Split a key into its components, which point into it. -1 with ERROR_INVALID when it is not one. */
int table_partition_key_split(const struct table_metadata *table, struct slice key,
    struct slice *components, struct error *err);
/* Validate key and components: type_validate() of each, "Key may not be empty", "Key length of N is
 * longer than maximum of 65535". */
int table_partition_key_validate(
    const struct table_metadata *table, struct slice key, struct error *err);
/* "a:b" in CQL text form, as error texts and logs name keys. */
void
table_partition_key_print(const struct table_metadata *table, struct slice key, struct buffer *out);

/*
 * Compare `count` components of two clusterings in the order of the table (is_reversed applied);
 * null components (compact tables, bounds) sort first. The memtable uses comparable forms instead.
 */
int table_compare_clustering(const struct table_metadata *table, const struct slice *a,
    const struct slice *b, uint32_t count);
/* The comparable form of `count` components: per component a separator byte (40 value, 3F null;
 * not inverted for reversed components as Cassandra sorts nulls first in both), then the form.
 * No terminator: callers append their own bound byte. */
void table_clustering_to_comparable(const struct table_metadata *table,
    const struct slice *components, uint32_t count, struct buffer *out);
enum { TABLE_COMPARABLE_NULL = 0x3f, TABLE_COMPARABLE_VALUE = 0x40 };

/* ---- Building a table ---------------------------------------------------------------------- */

/*
 * Collects what a new table_metadata is made of. Everything given is copied. Start from nothing
 * (table_builder_new) or from an existing table to alter it (table_builder_from).
 */
struct table_builder;

struct table_builder *table_builder_new(struct slice keyspace, struct slice name);
struct table_builder *table_builder_from(const struct table_metadata *table);
void table_builder_free(struct table_builder *builder);

/* Random id unless set. */
void table_builder_set_name(struct table_builder *builder, struct slice name);
void table_builder_set_id(struct table_builder *builder, const struct uuid *id);
/* CQL tables have TABLE_COMPOUND (the default). */
void table_builder_set_flags(struct table_builder *builder, uint32_t flags);
void table_builder_set_virtual(struct table_builder *builder, bool is_virtual);
void table_builder_set_view(struct table_builder *builder, bool is_view);
void table_builder_set_index(struct table_builder *builder, bool is_index);
/* The options, initially table_options_init(); change in place. Slices set in it must live until
 * build. */
struct table_options *table_builder_options(struct table_builder *builder);
/* Memory that lives as long as the builder: for types and texts on their way in. */
struct arena *table_builder_arena(struct table_builder *builder);

/* Key columns are added in order of position. A name that is there already is replaced. type may be
 * TYPE_REVERSED for clustering columns. */
void table_builder_add_column(struct table_builder *builder, enum column_kind kind,
    struct slice name, const struct type *type, bool is_reversed);
/* Shorthand for system tables: type by CQL name, aborts when it is wrong (programmer's promise). */
void table_builder_add(
    struct table_builder *builder, enum column_kind kind, const char *name, const char *cql_type);
/* With is_dropped the column is recorded among the dropped ones at `dropped_us`. False: no such. */
bool table_builder_remove_column(
    struct table_builder *builder, struct slice name, bool is_dropped, int64_t dropped_us);
void table_builder_add_dropped(struct table_builder *builder, enum column_kind kind,
    struct slice name, const struct type *type, int64_t dropped_us);
bool table_builder_rename_column(struct table_builder *builder, struct slice from, struct slice to);
/* ALTER TYPE: every column's type that uses the user type. True when something changed. */
bool table_builder_replace_udt(struct table_builder *builder, const struct type *udt);
void table_builder_add_index(struct table_builder *builder, struct slice name, const char *kind,
    struct slice target, const struct option_map *options);
bool table_builder_remove_index(struct table_builder *builder, struct slice name);
void table_builder_add_trigger(
    struct table_builder *builder, struct slice name, struct slice class_name);
bool table_builder_remove_trigger(struct table_builder *builder, struct slice name);

/* Check (TableMetadata.validate) and make; on success *out has one reference. The builder stays
 * usable and must be freed. ERROR_CONFIG / ERROR_INVALID as Cassandra. */
int
table_builder_build(struct table_builder *builder, struct table_metadata **out, struct error *err);

/* ---- Keyspaces ----------------------------------------------------------------------------- */

struct type_metadata {
	const struct type *type; /* TYPE_UDT, multi-cell form; keyspace and name inside */
};

/* A materialized view: its table is in the keyspace's tables too (is_view). */
struct view_metadata {
	struct slice name;
	struct slice base_table;
	struct uuid base_id;
	bool includes_all_columns;
	struct slice where_clause;
};

/* CREATE FUNCTION / CREATE AGGREGATE. */
struct function_metadata {
	struct slice name;
	bool is_aggregate;
	uint32_t argument_count;
	const struct slice *argument_names; /* functions */
	const struct type *const *argument_types;
	const struct type *return_type;
	/* functions */
	struct slice body;
	struct slice language;
	bool called_on_null;
	/* aggregates */
	struct slice state_function;
	struct slice final_function; /* null: none */
	const struct type *state_type;
	struct slice initial_condition; /* CQL literal; null: none */
};

struct keyspace_metadata {
	atomic_uint refs;
	struct arena arena; /* owned; names, types, options; not the tables */
	struct slice name;
	bool durable_writes;
	bool is_virtual;
	struct option_map replication; /* "class" (full name) first, then by name */
	uint64_t replication_hash; /* option_map_hash() of it */

	uint32_t table_count;
	struct table_metadata **tables; /* by name; a reference each; views' tables among them */
	uint32_t type_count;
	struct type_metadata *types; /* by name */
	uint32_t view_count;
	struct view_metadata *views; /* by name */
	uint32_t function_count;
	struct function_metadata *functions; /* by name, then argument types */
};

struct keyspace_metadata *keyspace_ref(const struct keyspace_metadata *keyspace);
void keyspace_unref(const struct keyspace_metadata *keyspace);
/* Borrowed from the keyspace; NULL: none. */
const struct table_metadata *
keyspace_table(const struct keyspace_metadata *keyspace, struct slice name);
const struct type *keyspace_type(const struct keyspace_metadata *keyspace, struct slice name);
const struct view_metadata *
keyspace_view(const struct keyspace_metadata *keyspace, struct slice name);
/* type_resolve_udt_fn; user is a const struct keyspace_metadata *. */
const struct type *keyspace_resolve_udt(void *user, struct slice keyspace, struct slice name);

/*
 * New keyspaces; each returns one reference and copies what it is given (tables: takes its own
 * reference). The old one is left as it is.
 */
struct keyspace_metadata *keyspace_new(
    struct slice name, const struct option_map *replication, bool durable_writes, bool is_virtual);
struct keyspace_metadata *keyspace_with_params(const struct keyspace_metadata *keyspace,
    const struct option_map *replication, bool durable_writes);
/* Adds, or replaces the table of the same name. */
struct keyspace_metadata *
keyspace_with_table(const struct keyspace_metadata *keyspace, const struct table_metadata *table);
struct keyspace_metadata *
keyspace_without_table(const struct keyspace_metadata *keyspace, struct slice name);
/* Adds or replaces; replacing also makes new tables for those that use the type. */
struct keyspace_metadata *
keyspace_with_type(const struct keyspace_metadata *keyspace, const struct type *udt);
struct keyspace_metadata *
keyspace_without_type(const struct keyspace_metadata *keyspace, struct slice name);
struct keyspace_metadata *keyspace_with_view(const struct keyspace_metadata *keyspace,
    const struct view_metadata *view, const struct table_metadata *table);
struct keyspace_metadata *
keyspace_without_view(const struct keyspace_metadata *keyspace, struct slice name);
struct keyspace_metadata *keyspace_with_function(
    const struct keyspace_metadata *keyspace, const struct function_metadata *function);
struct keyspace_metadata *keyspace_without_function(
    const struct keyspace_metadata *keyspace, const struct function_metadata *function);

/* ---- The snapshot -------------------------------------------------------------------------- */

struct schema {
	atomic_uint refs;
	uint32_t keyspace_count;
	struct keyspace_metadata **keyspaces; /* by name; a reference each */
	struct map keyspaces_by_name;
	struct map tables_by_id;
	/* From the content of all keyspaces that are neither local (system, system_schema) nor
	 * virtual: equal contents have equal versions on every node (DDL-56). */
	struct uuid version;
};

struct schema *schema_new(void); /* no keyspaces; one reference */
struct schema *schema_ref(const struct schema *schema);
void schema_unref(const struct schema *schema);
const struct keyspace_metadata *schema_keyspace(const struct schema *schema, struct slice name);
/* Hot path. Borrowed from the snapshot. */
const struct table_metadata *
schema_table(const struct schema *schema, struct slice keyspace, struct slice name);
const struct table_metadata *schema_table_by_id(const struct schema *schema, const struct uuid *id);
/* type_resolve_udt_fn; user is a const struct schema *; the keyspace must be given. */
const struct type *schema_resolve_udt(void *user, struct slice keyspace, struct slice name);

/* Copy on write: new snapshots with one reference; the argument is left as it is. */
struct schema *
schema_with_keyspace(const struct schema *schema, const struct keyspace_metadata *keyspace);
struct schema *schema_without_keyspace(const struct schema *schema, struct slice name);
/* keyspace_with_table() and schema_with_keyspace() in one; the keyspace must be there. */
struct schema *schema_with_table(const struct schema *schema, const struct table_metadata *table);

/* True for system, system_schema: not replicated, not part of the version. */
bool schema_is_local_keyspace(struct slice name);
/* True for system_auth, system_distributed, system_traces. */
bool schema_is_replicated_system_keyspace(struct slice name);

#endif
