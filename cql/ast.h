/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_AST_H
#define HELENUS_CQL_AST_H

/*
 * What the parser makes of a statement: a tree that says what was written, checked for syntax only.
 * Nothing in it knows the schema. Every node, array and string of a tree lives in the one arena that
 * was given to cql_parse() and dies with it; a finished tree is never changed, so any number of
 * threads may read it.
 *
 * Names come as Cassandra keeps them: folded to lower case unless they were quoted, the quotes taken
 * off and "" made ". Where Cassandra's error texts show what was written, ast_*_text() below writes
 * it the way its Term.Raw.getText(), CQL3Type.Raw.toString() and Selectable.Raw.toString() do.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/bytes.h"

/* Where a node begins, counted as Cassandra's error texts count: lines from 1, columns from 0 in
 * UTF-16 units (Java's chars). line 0: unknown. */
struct ast_position {
	uint32_t line;
	uint32_t column;
};

/* Bytes with a NUL behind them that `length` does not count (a string literal may hold NULs).
 * text == NULL: absent. */
struct ast_string {
	const char *text;
	size_t length;
};

static inline struct slice
ast_slice(struct ast_string string)
{
	return slice_of(string.text, string.length);
}

static inline bool
ast_string_equal(struct ast_string a, struct ast_string b)
{
	if (a.text == NULL || b.text == NULL)
		return a.text == b.text;
	return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* A column, field, alias, argument or role name. */
struct ast_identifier {
	struct ast_string text;
	bool is_quoted; /* "x" (or 'x' for roles): text kept its case */
	struct ast_position at;
};

struct ast_identifiers {
	struct ast_identifier *items;
	size_t count;
};

/* A name that may have a keyspace in front: tables, types, functions, indexes. */
struct ast_name {
	struct ast_string keyspace; /* absent: the session's */
	struct ast_string name;
	struct ast_position at;
};

/* ---- Types (CQL3Type.Raw) ---- */

enum ast_type_kind {
	AST_TYPE_NATIVE, /* name is the CQL name in lower case: "int", "text", "varchar", ... */
	AST_TYPE_LIST, /* arguments: 1 */
	AST_TYPE_SET, /* arguments: 1 */
	AST_TYPE_MAP, /* arguments: 2 */
	AST_TYPE_TUPLE, /* arguments: 1.. */
	AST_TYPE_VECTOR, /* arguments: 1, and dimension */
	AST_TYPE_USER, /* name, keyspace */
	AST_TYPE_CUSTOM, /* 'org.apache...SomeType(...)': name is the class string */
};

struct ast_type {
	enum ast_type_kind kind;
	bool is_frozen; /* frozen<...> stood around it (frozen<frozen<x>> is the same) */
	struct ast_string keyspace; /* AST_TYPE_USER; absent: the statement's */
	struct ast_string name; /* AST_TYPE_NATIVE, _USER, _CUSTOM; else absent */
	struct ast_type **arguments;
	size_t argument_count;
	int32_t dimension; /* AST_TYPE_VECTOR; as written, may be out of range */
	struct ast_position at;
};

struct ast_types {
	struct ast_type **items;
	size_t count;
};

/* ---- Terms (Term.Raw) ---- */

struct ast_term;

struct ast_terms {
	struct ast_term **items;
	size_t count;
};

enum ast_term_kind {
	AST_TERM_CONSTANT, /* constant */
	AST_TERM_NULL, /* - */
	AST_TERM_MARKER, /* marker: index in statement.markers */
	AST_TERM_LIST, /* terms; [a, b]: a list, or a vector where a vector is expected */
	AST_TERM_SET, /* terms; {a, b}; {} too, which may also mean an empty map */
	AST_TERM_MAP, /* pairs; {a: b}; see also AST_TERM_UDT */
	AST_TERM_UDT, /* fields; {name: term}; keys are identifiers (UserTypes.Literal) */
	AST_TERM_TUPLE, /* terms; (a, b); (a) is a tuple of one, or just parentheses */
	AST_TERM_FUNCTION, /* function */
	AST_TERM_TYPE_CAST, /* cast; (type) term: a hint that term is to have the type */
	AST_TERM_CAST, /* cast; CAST(term AS type): converts */
	AST_TERM_OPERATION, /* operation; a + b and so on */
	AST_TERM_NEGATION, /* negated; - term */
};

enum ast_constant_kind {
	AST_CONSTANT_STRING, /* text is the unescaped string */
	AST_CONSTANT_INTEGER,
	AST_CONSTANT_FLOAT, /* also "NaN", "Infinity", "-Infinity", however they were written */
	AST_CONSTANT_UUID,
	AST_CONSTANT_BOOLEAN, /* as written, any case */
	AST_CONSTANT_HEX, /* with its 0x */
	AST_CONSTANT_DURATION,
};

struct ast_map_entry {
	struct ast_term *key;
	struct ast_term *value;
};

struct ast_field_value {
	struct ast_identifier field;
	struct ast_term *value;
};

struct ast_term {
	enum ast_term_kind kind;
	struct ast_position at;
	union {
		struct {
			enum ast_constant_kind kind;
			struct ast_string text; /* Constants.Literal.getRawText() */
		} constant;
		uint32_t marker;
		struct ast_terms terms;
		struct {
			struct ast_map_entry *items;
			size_t count;
		} pairs;
		struct {
			struct ast_field_value *items; /* a later value of the same field wins */
			size_t count;
		} fields;
		struct {
			struct ast_name name;
			struct ast_terms arguments;
		} function;
		struct {
			struct ast_type *type;
			struct ast_term *term;
		} cast;
		struct {
			char operator; /* + - * / % */
			struct ast_term *left;
			struct ast_term *right;
		} operation;
		struct ast_term *negated;
	};
};

/* A bind marker. Their order is the order in the text; index is the place in statement.markers. */
struct ast_marker {
	struct ast_string name; /* of :name; absent for ? */
	struct ast_position at;
};

/* ---- Selectors (Selectable.Raw) ---- */

struct ast_selector;

struct ast_selectors {
	struct ast_selector **items;
	size_t count;
};

enum ast_selector_kind {
	AST_SELECTOR_COLUMN, /* column */
	AST_SELECTOR_TERM, /* term: a constant, null or marker */
	AST_SELECTOR_FUNCTION, /* function; token(k) and count(x) too */
	AST_SELECTOR_COUNT_ROWS, /* count(*) */
	AST_SELECTOR_WRITETIME, /* operand: a column, or an element / slice / field of one */
	AST_SELECTOR_MAXWRITETIME, /* operand */
	AST_SELECTOR_MINWRITETIME, /* operand */
	AST_SELECTOR_TTL, /* operand */
	AST_SELECTOR_CAST, /* cast; CAST(x AS type) */
	AST_SELECTOR_TYPE_HINT, /* cast; (type) x */
	AST_SELECTOR_OPERATION, /* operation */
	AST_SELECTOR_NEGATION, /* operand */
	AST_SELECTOR_FIELD, /* field; x.name */
	AST_SELECTOR_ELEMENT, /* element; x[key] */
	AST_SELECTOR_SLICE, /* slice; x[from..to], from or to may be NULL */
	AST_SELECTOR_TUPLE, /* items; (a, b); one item: a tuple of one or just parentheses */
	AST_SELECTOR_LIST, /* items; [a, b] */
	AST_SELECTOR_SET, /* items; {a, b}; {} too */
	AST_SELECTOR_MAP, /* pairs; {a: b}: a map, or a UDT when keys are plain names */
};

struct ast_selector_pair {
	struct ast_selector *key;
	struct ast_selector *value;
};

struct ast_selector {
	enum ast_selector_kind kind;
	struct ast_position at;
	/* Items of a SELECT list only. */
	struct ast_string raw; /* the text as it was written, without AS */
	struct ast_identifier alias; /* alias.text.text == NULL: no AS */
	union {
		struct ast_identifier column;
		struct ast_term *term;
		struct {
			struct ast_name name;
			struct ast_selectors arguments;
		} function;
		struct ast_selector *operand;
		struct {
			struct ast_type *type;
			struct ast_selector *operand;
		} cast;
		struct {
			char operator; /* + - * / % */
			struct ast_selector *left;
			struct ast_selector *right;
		} operation;
		struct {
			struct ast_selector *operand;
			struct ast_identifier field;
		} field;
		struct {
			struct ast_selector *operand;
			struct ast_term *key;
		} element;
		struct {
			struct ast_selector *operand;
			struct ast_term *from; /* NULL: open */
			struct ast_term *to; /* NULL: open */
		} slice;
		struct ast_selectors items;
		struct {
			struct ast_selector_pair *items;
			size_t count;
		} pairs;
	};
};

/* ---- WHERE (WhereClause, Relation) ---- */

enum ast_operator {
	AST_EQ,
	AST_LT,
	AST_LTE,
	AST_GT,
	AST_GTE,
	AST_NEQ,
	AST_IN,
	AST_CONTAINS,
	AST_CONTAINS_KEY,
	AST_LIKE,
	AST_IS_NOT, /* IS NOT NULL */
};

enum ast_relation_kind {
	AST_RELATION_COLUMN, /* c <op> value; columns holds 1 */
	AST_RELATION_ELEMENT, /* c[key] <op> value; columns holds 1 */
	AST_RELATION_TUPLE, /* (c, d) <op> value */
	AST_RELATION_TOKEN, /* token(c, d) <op> value */
	AST_RELATION_EXPRESSION, /* expr(index, value): a custom index's own language */
};

struct ast_relation {
	enum ast_relation_kind kind;
	enum ast_operator operator;
	struct ast_position at;
	struct ast_identifiers columns;
	struct ast_term *key; /* AST_RELATION_ELEMENT */
	struct ast_string index; /* AST_RELATION_EXPRESSION: the index's name */
	/*
	 * The right-hand side. For AST_IN with a list, value is NULL and in_values holds the list
	 * (maybe empty; for tuples each item is a tuple literal or a marker); for `IN ?`, value is
	 * the marker, which stands for the whole list. IS NOT NULL has an AST_TERM_NULL.
	 */
	struct ast_term *value;
	struct ast_terms in_values;
};

struct ast_where {
	struct ast_relation **items; /* joined by AND, in the order written */
	size_t count;
};

/* ---- Statements ---- */

enum statement_kind {
	STATEMENT_SELECT,
	STATEMENT_INSERT,
	STATEMENT_UPDATE,
	STATEMENT_DELETE,
	STATEMENT_BATCH,
	STATEMENT_USE,
	STATEMENT_TRUNCATE,
	STATEMENT_CREATE_KEYSPACE,
	STATEMENT_ALTER_KEYSPACE,
	STATEMENT_DROP_KEYSPACE,
	STATEMENT_CREATE_TABLE,
	STATEMENT_ALTER_TABLE,
	STATEMENT_DROP_TABLE,
	STATEMENT_CREATE_TYPE,
	STATEMENT_ALTER_TYPE,
	STATEMENT_DROP_TYPE,
	STATEMENT_CREATE_INDEX,
	STATEMENT_DROP_INDEX,
	STATEMENT_CREATE_VIEW,
	STATEMENT_ALTER_VIEW,
	STATEMENT_DROP_VIEW,
	STATEMENT_CREATE_FUNCTION,
	STATEMENT_DROP_FUNCTION,
	STATEMENT_CREATE_AGGREGATE,
	STATEMENT_DROP_AGGREGATE,
	STATEMENT_CREATE_TRIGGER,
	STATEMENT_DROP_TRIGGER,
	STATEMENT_CREATE_ROLE, /* CREATE USER too: role.is_user */
	STATEMENT_ALTER_ROLE, /* ALTER USER too */
	STATEMENT_DROP_ROLE, /* DROP USER too */
	STATEMENT_GRANT_ROLE,
	STATEMENT_REVOKE_ROLE,
	STATEMENT_GRANT_PERMISSIONS,
	STATEMENT_REVOKE_PERMISSIONS,
	STATEMENT_LIST_PERMISSIONS,
	STATEMENT_LIST_ROLES,
	STATEMENT_LIST_USERS,
	STATEMENT_LIST_SUPERUSERS,
	STATEMENT_ADD_IDENTITY,
	STATEMENT_DROP_IDENTITY,
	STATEMENT_DESCRIBE,
};

/* USING TIMESTAMP / TTL. Each is NULL, an integer constant or a marker; the last one given wins. */
struct ast_attributes {
	struct ast_term *timestamp; /* microseconds */
	struct ast_term *ttl; /* seconds */
};

/* An IF condition on a column (ColumnCondition.Raw). */
struct ast_condition {
	struct ast_identifier column;
	struct ast_term *element; /* column[element]; else NULL */
	struct ast_identifier field; /* column.field; else field.text.text == NULL */
	enum ast_operator operator; /* AST_EQ .. AST_CONTAINS_KEY */
	struct ast_term *value; /* as in struct ast_relation */
	struct ast_terms in_values;
};

struct ast_conditions {
	bool if_exists; /* IF EXISTS; then count is 0 */
	struct ast_condition **items;
	size_t count;
};

struct ast_ordering {
	struct ast_identifier column;
	bool is_descending;
	struct ast_term *ann_of; /* ORDER BY column ANN OF term; else NULL */
};

struct statement_select {
	bool is_json;
	bool is_distinct;
	bool is_wildcard; /* SELECT *; selectors is empty then */
	bool allow_filtering;
	struct ast_name table;
	struct ast_selectors selectors;
	struct ast_where where;
	struct ast_selectors group_by;
	struct ast_ordering *orderings;
	size_t ordering_count;
	struct ast_term *per_partition_limit; /* NULL, an integer constant or a marker */
	struct ast_term *limit; /* likewise */
};

struct statement_insert {
	struct ast_name table;
	bool is_json;
	bool if_not_exists;
	bool default_unset; /* JSON ... DEFAULT UNSET */
	struct ast_identifiers columns;
	struct ast_terms values; /* the counts may differ: that is checked later, as in Cassandra */
	struct ast_term *json; /* a string constant or a marker */
	struct ast_attributes attributes;
};

enum ast_assignment_kind {
	AST_ASSIGN_SET, /* c = value */
	AST_ASSIGN_ADD, /* c = c + value, c += value */
	AST_ASSIGN_SUBTRACT, /* c = c - value, c -= value */
	AST_ASSIGN_PREPEND, /* c = value + c */
	AST_ASSIGN_SET_ELEMENT, /* c[element] = value */
	AST_ASSIGN_SET_FIELD, /* c.field = value */
};

struct ast_assignment {
	enum ast_assignment_kind kind;
	struct ast_identifier column;
	struct ast_term *element;
	struct ast_identifier field;
	struct ast_term *value; /* `c = c -3` is an ADD of the constant -3 */
};

struct statement_update {
	struct ast_name table;
	struct ast_attributes attributes;
	struct ast_assignment **assignments;
	size_t assignment_count;
	struct ast_where where;
	struct ast_conditions conditions;
};

/* What DELETE takes away of a row: a column, c[element] or c.field. */
struct ast_deletion {
	struct ast_identifier column;
	struct ast_term *element; /* else NULL */
	struct ast_identifier field; /* else field.text.text == NULL */
};

struct statement_delete {
	struct ast_name table;
	struct ast_attributes attributes; /* timestamp only */
	struct ast_deletion **deletions; /* none: whole rows, partitions or ranges */
	size_t deletion_count;
	struct ast_where where;
	struct ast_conditions conditions;
};

enum ast_batch_kind { AST_BATCH_LOGGED, AST_BATCH_UNLOGGED, AST_BATCH_COUNTER };

struct statement_batch {
	enum ast_batch_kind kind;
	struct ast_attributes attributes;
	/* INSERT, UPDATE or DELETE each; their markers count through the whole batch and stand in
	 * the outer statement's list (the inner lists are empty). */
	struct statement **statements;
	size_t statement_count;
};

/* name = value of WITH: text as Cassandra's PropertyDefinitions hold it. */
struct ast_property_entry {
	struct ast_string key;
	struct ast_string value;
};

struct ast_property {
	struct ast_string name;
	bool is_map;
	bool is_keyword; /* the value was a bare word such as ALL */
	enum ast_constant_kind kind; /* of value when !is_map && !is_keyword */
	struct ast_string value; /* unless is_map */
	struct ast_property_entry *entries;
	size_t entry_count;
	struct ast_position at;
};

struct ast_properties {
	struct ast_property *items; /* names are unique */
	size_t count;
};

/* CREATE / ALTER / DROP KEYSPACE. */
struct statement_keyspace {
	struct ast_string name;
	bool if_exists;
	bool if_not_exists;
	struct ast_properties properties;
};

/* MASKED WITH function(arguments), MASKED WITH DEFAULT (mask_default()). */
struct ast_mask {
	struct ast_name function;
	struct ast_terms arguments;
};

struct ast_column {
	struct ast_identifier name;
	struct ast_type *type;
	bool is_static;
	struct ast_mask *mask; /* NULL: none */
};

struct ast_columns {
	struct ast_column *items;
	size_t count;
};

struct ast_clustering_order {
	struct ast_identifier column;
	bool is_descending;
};

/* CREATE TABLE. */
struct statement_create_table {
	struct ast_name name;
	bool if_not_exists;
	bool is_compact_storage;
	struct ast_columns columns; /* names are unique */
	struct ast_identifiers partition_key; /* count 0: no PRIMARY KEY was given */
	struct ast_identifiers clustering_key;
	struct ast_clustering_order *clustering_order;
	size_t clustering_order_count;
	struct ast_properties properties;
};

enum ast_alter_table_kind {
	AST_ALTER_TABLE_COLUMN_TYPE, /* ALTER c TYPE t: columns[0] (Cassandra refuses it later) */
	AST_ALTER_TABLE_MASK, /* ALTER c MASKED WITH / DROP MASKED: columns[0].mask or NULL */
	AST_ALTER_TABLE_ADD, /* columns */
	AST_ALTER_TABLE_DROP, /* columns (names only), timestamp */
	AST_ALTER_TABLE_RENAME, /* renames */
	AST_ALTER_TABLE_DROP_COMPACT_STORAGE,
	AST_ALTER_TABLE_PROPERTIES, /* properties */
};

struct ast_rename {
	struct ast_identifier from;
	struct ast_identifier to;
};

struct statement_alter_table {
	enum ast_alter_table_kind kind;
	struct ast_name name;
	bool if_exists; /* the table */
	bool if_column_exists; /* DROP IF EXISTS, RENAME IF EXISTS, ALTER IF EXISTS */
	bool if_column_not_exists; /* ADD IF NOT EXISTS */
	struct ast_columns columns;
	struct ast_rename *renames;
	size_t rename_count;
	bool has_timestamp; /* DROP ... USING TIMESTAMP */
	int64_t timestamp;
	struct ast_properties properties;
};

/* DROP TABLE / TYPE / INDEX / MATERIALIZED VIEW; TRUNCATE (if_exists false). */
struct statement_drop {
	struct ast_name name;
	bool if_exists;
};

struct statement_create_type {
	struct ast_name name;
	bool if_not_exists;
	struct ast_columns fields; /* name and type */
};

enum ast_alter_type_kind {
	AST_ALTER_TYPE_FIELD_TYPE, /* ALTER f TYPE t: refused later */
	AST_ALTER_TYPE_ADD, /* fields */
	AST_ALTER_TYPE_RENAME, /* renames */
};

struct statement_alter_type {
	enum ast_alter_type_kind kind;
	struct ast_name name;
	bool if_exists;
	bool if_field_exists;
	bool if_field_not_exists;
	struct ast_columns fields;
	struct ast_rename *renames;
	size_t rename_count;
};

enum ast_index_target_kind {
	AST_INDEX_SIMPLE, /* c: values of a collection, or the column */
	AST_INDEX_VALUES,
	AST_INDEX_KEYS,
	AST_INDEX_ENTRIES,
	AST_INDEX_FULL,
};

struct ast_index_target {
	enum ast_index_target_kind kind;
	struct ast_identifier column;
};

struct statement_create_index {
	struct ast_name name; /* name.name absent: to be made up; keyspace is always absent */
	struct ast_name table;
	bool if_not_exists;
	bool is_custom;
	struct ast_string custom_class; /* USING '...'; may be absent or present either way */
	struct ast_index_target *targets;
	size_t target_count;
	struct ast_properties properties;
};

struct statement_create_view {
	struct ast_name name;
	struct ast_name base;
	bool if_not_exists;
	bool is_wildcard;
	struct ast_selectors selectors;
	struct ast_where where;
	struct ast_identifiers partition_key;
	struct ast_identifiers clustering_key;
	struct ast_clustering_order *clustering_order;
	size_t clustering_order_count;
	struct ast_properties properties;
};

struct statement_alter_view {
	struct ast_name name;
	bool if_exists;
	struct ast_properties properties;
};

/* CREATE FUNCTION. */
struct statement_create_function {
	struct ast_name name;
	bool or_replace;
	bool if_not_exists;
	bool is_called_on_null;
	struct ast_identifiers argument_names;
	struct ast_types argument_types;
	struct ast_type *return_type;
	struct ast_string language; /* lower case */
	struct ast_string body;
};

struct statement_create_aggregate {
	struct ast_name name;
	bool or_replace;
	bool if_not_exists;
	struct ast_types argument_types;
	struct ast_string state_function;
	struct ast_type *state_type;
	struct ast_string final_function; /* absent: none */
	struct ast_term *initial_condition; /* NULL: none */
};

/* DROP FUNCTION / AGGREGATE. */
struct statement_drop_function {
	struct ast_name name;
	bool if_exists;
	bool has_arguments; /* a list was given, maybe an empty one */
	struct ast_types argument_types;
};

struct statement_trigger {
	struct ast_identifier name;
	struct ast_name table;
	bool if_exists;
	bool if_not_exists;
	struct ast_string trigger_class; /* CREATE only */
};

enum ast_access_kind {
	AST_ACCESS_UNSET,
	AST_ACCESS_ALL,
	AST_ACCESS_LIST,
};

enum ast_tristate { AST_UNSET = -1, AST_FALSE = 0, AST_TRUE = 1 };

/* CREATE / ALTER / DROP ROLE and USER. CREATE USER has is_login AST_TRUE and is_superuser set;
 * CREATE ROLE without the options has both AST_FALSE; ALTER leaves AST_UNSET what is not named. */
struct statement_role {
	struct ast_identifier name;
	bool is_user;
	bool if_exists;
	bool if_not_exists;
	struct ast_string password; /* absent: not given */
	struct ast_string hashed_password; /* absent: not given */
	enum ast_tristate is_superuser;
	enum ast_tristate is_login;
	bool has_options; /* OPTIONS = { ... } */
	struct ast_property_entry *options;
	size_t option_count;
	enum ast_access_kind datacenter_access;
	struct ast_string *datacenters;
	size_t datacenter_count;
	enum ast_access_kind cidr_access; /* 5.0 */
	struct ast_string *cidrs;
	size_t cidr_count;
};

/* In the order Cassandra lists them (Permission). */
enum ast_permission {
	AST_PERMISSION_CREATE = 1 << 0,
	AST_PERMISSION_ALTER = 1 << 1,
	AST_PERMISSION_DROP = 1 << 2,
	AST_PERMISSION_SELECT = 1 << 3,
	AST_PERMISSION_MODIFY = 1 << 4,
	AST_PERMISSION_AUTHORIZE = 1 << 5,
	AST_PERMISSION_DESCRIBE = 1 << 6,
	AST_PERMISSION_EXECUTE = 1 << 7,
	AST_PERMISSION_UNMASK = 1 << 8, /* 5.0 */
	AST_PERMISSION_SELECT_MASKED = 1 << 9, /* 5.0 */
};
/* What ALL stands for: those of 4.1. The later two are given by name only. */
enum { AST_PERMISSIONS_ALL = (1 << 8) - 1 };

enum ast_resource_kind {
	AST_RESOURCE_NONE, /* LIST PERMISSIONS without ON */
	AST_RESOURCE_ALL_KEYSPACES,
	AST_RESOURCE_KEYSPACE, /* name.keyspace */
	AST_RESOURCE_ALL_TABLES_IN_KEYSPACE, /* name.keyspace */
	AST_RESOURCE_TABLE, /* name */
	AST_RESOURCE_ALL_ROLES,
	AST_RESOURCE_ROLE, /* name.name */
	AST_RESOURCE_ALL_FUNCTIONS,
	AST_RESOURCE_ALL_FUNCTIONS_IN_KEYSPACE, /* name.keyspace */
	AST_RESOURCE_FUNCTION, /* name, argument_types */
	AST_RESOURCE_ALL_MBEANS,
	AST_RESOURCE_MBEAN, /* name.name */
	AST_RESOURCE_MBEANS, /* name.name: a pattern */
};

struct ast_resource {
	enum ast_resource_kind kind;
	struct ast_name name;
	struct ast_types argument_types;
};

/* GRANT / REVOKE / LIST of roles and permissions. */
struct statement_grant {
	uint32_t
	    permissions; /* enum ast_permission; those that apply to the resource (for LIST: all
	                       * that were named) */
	struct ast_resource resource;
	struct ast_identifier role; /* GRANT_ROLE / REVOKE_ROLE: the role that is given */
	struct ast_identifier grantee; /* TO / FROM / OF; absent for LIST without OF */
	bool is_recursive; /* LIST: no NORECURSIVE */
};

struct statement_identity {
	struct ast_string identity;
	struct ast_string role; /* ADD only */
	bool if_exists;
	bool if_not_exists;
};

enum ast_describe_kind {
	AST_DESCRIBE_CLUSTER,
	AST_DESCRIBE_SCHEMA, /* is_full: FULL SCHEMA, with the system keyspaces */
	AST_DESCRIBE_KEYSPACES,
	AST_DESCRIBE_KEYSPACE, /* name.keyspace, absent: the session's; is_only */
	AST_DESCRIBE_TABLES,
	AST_DESCRIBE_TABLE,
	AST_DESCRIBE_INDEX,
	AST_DESCRIBE_VIEW,
	AST_DESCRIBE_TYPES,
	AST_DESCRIBE_TYPE,
	AST_DESCRIBE_FUNCTIONS,
	AST_DESCRIBE_FUNCTION,
	AST_DESCRIBE_AGGREGATES,
	AST_DESCRIBE_AGGREGATE,
	AST_DESCRIBE_ANY, /* name: a keyspace, table, view or index, looked for in this order */
};

struct statement_describe {
	enum ast_describe_kind kind;
	struct ast_name name;
	bool is_full;
	bool is_only;
	bool with_internals;
};

struct statement {
	enum statement_kind kind;
	struct ast_position at;
	struct ast_marker *markers; /* in the order of the text */
	size_t marker_count;
	union {
		struct statement_select select;
		struct statement_insert insert;
		struct statement_update update;
		struct statement_delete delete;
		struct statement_batch batch;
		struct ast_string use; /* the keyspace */
		struct statement_drop drop; /* DROP TABLE, TYPE, INDEX, VIEW; TRUNCATE */
		struct statement_keyspace keyspace;
		struct statement_create_table create_table;
		struct statement_alter_table alter_table;
		struct statement_create_type create_type;
		struct statement_alter_type alter_type;
		struct statement_create_index create_index;
		struct statement_create_view create_view;
		struct statement_alter_view alter_view;
		struct statement_create_function create_function;
		struct statement_create_aggregate create_aggregate;
		struct statement_drop_function drop_function;
		struct statement_trigger trigger;
		struct statement_role role;
		struct statement_grant grant;
		struct statement_identity identity;
		struct statement_describe describe;
	};
};

/* "SELECT", "CREATE_TABLE", ...: as in the enum. Static string. */
const char *statement_kind_name(enum statement_kind kind);

/* "=", "<", "IN", "CONTAINS KEY", "IS NOT", ... (Operator.toString()). Static string. */
const char *ast_operator_text(enum ast_operator comparison);

/*
 * Append what Cassandra's error texts and column headers show of a node. A failed buffer is the
 * caller's to check.
 *
 * ast_term_text: Term.Raw.getText(): 'abc', 12, ?, [1, 2], {a: 1}, (1, 2), f(1), (int)5,
 * system."_add"(1, 2). `statement` may be NULL.
 * ast_type_text: CQL3Type.Raw.toString(): list<int>, frozen<ks.udt>.
 * ast_relation_text: Relation.toString(): k = 1, token(a, b) > 0, k IN (1, 2).
 */
void
ast_term_text(const struct statement *statement, const struct ast_term *term, struct buffer *out);
void ast_type_text(const struct ast_type *type, struct buffer *out);
void ast_relation_text(
    const struct statement *statement, const struct ast_relation *relation, struct buffer *out);

#endif
