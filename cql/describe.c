/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include "cql/describe.h"
#include "cql/type_internal.h"

/* ---- Names --------------------------------------------------------------------------------- */

/* Words that cannot be a name without quotes; sorted. */
static const char *const describe_reserved[] = {"add", "allow", "alter", "and", "apply", "asc",
    "authorize", "batch", "begin", "by", "columnfamily", "create", "delete", "desc", "describe",
    "drop", "entries", "execute", "from", "full", "grant", "if", "in", "index", "infinity",
    "insert", "into", "is", "keyspace", "limit", "materialized", "modify", "nan", "norecursive",
    "not", "null", "of", "on", "or", "order", "primary", "rename", "revoke", "schema", "select",
    "set", "table", "to", "token", "truncate", "unlogged", "update", "use", "using", "view",
    "where", "with"};

static bool
describe_is_reserved(struct slice name)
{
	size_t low = 0, high = sizeof(describe_reserved) / sizeof(describe_reserved[0]);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = slice_compare(slice_of_string(describe_reserved[middle]), name);

		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool
describe_is_plain(struct slice name)
{
	size_t i;

	if (name.size == 0 || name.data[0] < 'a' || name.data[0] > 'z')
		return false;
	for (i = 0; i < name.size; i++) {
		uint8_t c = name.data[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			return false;
	}
	return !describe_is_reserved(name);
}

static void
describe_put_quoted(struct slice text, char quote, struct buffer *out)
{
	size_t i;

	buffer_put_u8(out, (uint8_t)quote);
	for (i = 0; i < text.size; i++) {
		if (text.data[i] == (uint8_t)quote)
			buffer_put_u8(out, (uint8_t)quote);
		buffer_put_u8(out, text.data[i]);
	}
	buffer_put_u8(out, (uint8_t)quote);
}

void
describe_name(struct slice name, struct buffer *out)
{
	if (describe_is_plain(name))
		buffer_put_slice(out, name);
	else
		describe_put_quoted(name, '"', out);
}

void
describe_literal(struct slice text, struct buffer *out)
{
	describe_put_quoted(text, '\'', out);
}

static void
describe_qualified(struct slice keyspace, struct slice name, struct buffer *out)
{
	describe_name(keyspace, out);
	buffer_put_u8(out, '.');
	describe_name(name, out);
}

static void
describe_create(const char *what, bool if_not_exists, struct buffer *out)
{
	buffer_printf(out, "CREATE %s %s", what, if_not_exists ? "IF NOT EXISTS " : "");
}

/* ---- Keyspaces, types ---------------------------------------------------------------------- */

/* As stored, but strategies of Cassandra's own go by their short name. */
static void
describe_replication(const struct option_map *replication, struct buffer *out)
{
	static const char package[] = "org.apache.cassandra.locator.";
	uint32_t i;

	buffer_put_u8(out, '{');
	for (i = 0; i < replication->count; i++) {
		struct slice key = replication->entries[i].key;
		struct slice value = replication->entries[i].value;

		if (slice_equal_string(key, "class") && value.size >= sizeof(package) &&
		    memcmp(value.data, package, sizeof(package) - 1) == 0)
			value = slice_of(
			    value.data + sizeof(package) - 1, value.size - (sizeof(package) - 1));
		if (i > 0)
			buffer_put_string(out, ", ");
		describe_literal(key, out);
		buffer_put_string(out, ": ");
		describe_literal(value, out);
	}
	buffer_put_u8(out, '}');
}

void
describe_keyspace(const struct keyspace_metadata *keyspace, bool with_internals, bool if_not_exists,
    struct buffer *out)
{
	(void)with_internals;
	if (keyspace->is_virtual) {
		/* Nothing can create one. */
		buffer_put_string(out, "/*\nWarning: Keyspace ");
		describe_name(keyspace->name, out);
		buffer_put_string(out,
		    " is a virtual keyspace and cannot be recreated with CQL.\nStructure, for "
		    "reference:\nVIRTUAL KEYSPACE ");
		describe_name(keyspace->name, out);
		buffer_put_string(out, ";\n*/");
		return;
	}
	describe_create("KEYSPACE", if_not_exists, out);
	describe_name(keyspace->name, out);
	buffer_put_string(out, " WITH replication = ");
	describe_replication(&keyspace->replication, out);
	/* Two blanks, as Cassandra has them. */
	buffer_printf(
	    out, "  AND durable_writes = %s;", keyspace->durable_writes ? "true" : "false");
}

void
describe_type(const struct type *udt, bool if_not_exists, struct buffer *out)
{
	uint32_t i;

	describe_create("TYPE", if_not_exists, out);
	describe_qualified(udt->keyspace, udt->name, out);
	buffer_put_string(out, " (");
	for (i = 0; i < udt->param_count; i++) {
		buffer_put_string(out, i == 0 ? "\n    " : ",\n    ");
		describe_name(udt->fields[i], out);
		buffer_put_u8(out, ' ');
		type_print_cql(udt->params[i], out);
	}
	buffer_put_string(out, "\n);");
}

/* ---- Tables -------------------------------------------------------------------------------- */

/* Columns of one CREATE TABLE, with the separators between them. */
struct describe_columns {
	const struct table_metadata *table;
	struct buffer *out;
	bool has_any;
	bool with_internals;
	bool is_simple; /* PRIMARY KEY stands behind the only key column */
};

static void
describe_column(struct describe_columns *columns, const struct column_metadata *column)
{
	struct buffer *out = columns->out;
	/* In a static compact table the columns are static inside only. */
	bool is_static = column->kind == COLUMN_STATIC && !table_is_static_compact(columns->table);

	if (columns->has_any)
		buffer_put_string(out, ",\n");
	columns->has_any = true;
	buffer_put_string(out, "    ");
	describe_name(column->name, out);
	buffer_put_u8(out, ' ');
	type_print_cql(column->type, out);
	if (is_static)
		buffer_put_string(out, " static");
	if (column->kind == COLUMN_PARTITION_KEY && columns->is_simple)
		buffer_put_string(out, " PRIMARY KEY");
}

/* Columns that the storage of compact tables needs and no statement names. */
static bool
describe_is_hidden(const struct table_metadata *table, const struct column_metadata *column)
{
	if (!table->is_compact)
		return false;
	if (column->name.size == 0 || column->type->kind == TYPE_EMPTY)
		return true;
	return table_is_static_compact(table) && table->static_count > 0 &&
	    (column->kind == COLUMN_CLUSTERING || column->kind == COLUMN_REGULAR);
}

static void
describe_columns_of(
    struct describe_columns *columns, const struct column_metadata *list, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (describe_is_hidden(columns->table, &list[i]))
			continue;
		/* One that was dropped once comes below, to be dropped and added again. */
		if (columns->with_internals &&
		    table_dropped_column(columns->table, list[i].name) != NULL)
			continue;
		describe_column(columns, &list[i]);
	}
}

static void
describe_all_columns(struct describe_columns *columns)
{
	const struct table_metadata *table = columns->table;
	uint32_t i;

	describe_columns_of(columns, table->partition_key, table->partition_key_count);
	describe_columns_of(columns, table->clustering, table->clustering_count);
	describe_columns_of(columns, table->statics, table->static_count);
	describe_columns_of(columns, table->regulars, table->regular_count);
	if (columns->with_internals) {
		for (i = 0; i < table->dropped_count; i++)
			describe_column(columns, &table->dropped[i].column);
	}
}

static bool
describe_has_visible_clustering(const struct table_metadata *table)
{
	return table->clustering_count > 0 && !describe_is_hidden(table, &table->clustering[0]);
}

static void
describe_primary_key(const struct table_metadata *table, struct buffer *out)
{
	uint32_t i;

	buffer_put_string(out, "PRIMARY KEY (");
	if (table->partition_key_count > 1)
		buffer_put_u8(out, '(');
	for (i = 0; i < table->partition_key_count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		describe_name(table->partition_key[i].name, out);
	}
	if (table->partition_key_count > 1)
		buffer_put_u8(out, ')');
	if (describe_has_visible_clustering(table)) {
		for (i = 0; i < table->clustering_count; i++) {
			buffer_put_string(out, ", ");
			describe_name(table->clustering[i].name, out);
		}
	}
	buffer_put_u8(out, ')');
}

/* WITH and everything behind it but the ';'. */
static void
describe_table_options(const struct table_metadata *table, bool with_internals, struct buffer *out)
{
	char id[UUID_TEXT_SIZE];
	uint32_t i;

	buffer_put_string(out, " WITH ");
	if (table->is_compact)
		buffer_put_string(out, "COMPACT STORAGE\n    AND ");
	if (with_internals) {
		uuid_format(&table->id, id);
		buffer_printf(out, "ID = %s\n    AND ", id);
	}
	if (table->clustering_count > 0) {
		buffer_put_string(out, "CLUSTERING ORDER BY (");
		for (i = 0; i < table->clustering_count; i++) {
			if (i > 0)
				buffer_put_string(out, ", ");
			describe_name(table->clustering[i].name, out);
			buffer_put_string(out, table->clustering[i].is_reversed ? " DESC" : " ASC");
		}
		buffer_put_string(out, ")\n    AND ");
	}
	if (table->is_virtual) {
		buffer_put_string(out, "comment = ");
		describe_literal(table->options.comment, out);
		return;
	}
	table_options_print(&table->options, table->is_view, out);
}

/* Columns that were dropped: created above, dropped here at the same time, added again if they
 * were. */
static void
describe_dropped(const struct table_metadata *table, struct buffer *out)
{
	uint32_t i;

	for (i = 0; i < table->dropped_count; i++) {
		const struct dropped_column *dropped = &table->dropped[i];
		const struct column_metadata *again = table_column(table, dropped->column.name);

		buffer_put_string(out, "\nALTER TABLE ");
		describe_qualified(table->keyspace, table->name, out);
		buffer_put_string(out, " DROP ");
		describe_name(dropped->column.name, out);
		buffer_printf(out, " USING TIMESTAMP %" PRId64 ";", dropped->dropped_us);
		if (again == NULL)
			continue;
		buffer_put_string(out, "\nALTER TABLE ");
		describe_qualified(table->keyspace, table->name, out);
		buffer_put_string(out, " ADD ");
		describe_name(again->name, out);
		buffer_put_u8(out, ' ');
		type_print_cql(again->type, out);
		if (again->kind == COLUMN_STATIC)
			buffer_put_string(out, " static");
		buffer_put_u8(out, ';');
	}
}

static void
describe_plain_table(
    const struct table_metadata *table, bool with_internals, bool if_not_exists, struct buffer *out)
{
	struct describe_columns columns = {.table = table,
	    .out = out,
	    .with_internals = with_internals && !table->is_compact,
	    .is_simple = table->partition_key_count == 1 && table->clustering_count == 0 &&
		!table->is_compact};

	if (table->is_compact || table->is_virtual) {
		buffer_put_string(out, "/*\nWarning: Table ");
		describe_qualified(table->keyspace, table->name, out);
		buffer_put_string(out,
		    table->is_virtual ? " is a virtual table and cannot be recreated with CQL.\n"
					"Structure, for reference:\n"
				      : " omitted because it has constructs not compatible with "
					"CQL (was created via legacy API).\n"
					"Approximate structure, for reference:\n"
					"(this should not be used to reproduce this schema)\n\n");
	}
	if (table->is_virtual)
		buffer_printf(out, "VIRTUAL TABLE %s", if_not_exists ? "IF NOT EXISTS " : "");
	else
		describe_create("TABLE", if_not_exists, out);
	describe_qualified(table->keyspace, table->name, out);
	buffer_put_string(out, " (\n");
	describe_all_columns(&columns);
	if (!columns.is_simple) {
		buffer_put_string(out, ",\n    ");
		describe_primary_key(table, out);
	}
	buffer_put_string(out, "\n)");
	describe_table_options(table, with_internals, out);
	buffer_put_u8(out, ';');
	if (table->is_compact || table->is_virtual)
		buffer_put_string(out, "\n*/");
	else if (with_internals)
		describe_dropped(table, out);
}

static void
describe_view(const struct view_metadata *view, const struct table_metadata *table,
    bool with_internals, bool if_not_exists, struct buffer *out)
{
	uint32_t i;

	describe_create("MATERIALIZED VIEW", if_not_exists, out);
	describe_qualified(table->keyspace, table->name, out);
	buffer_put_string(out, " AS\n    SELECT ");
	if (view->includes_all_columns)
		buffer_put_u8(out, '*');
	for (i = 0; !view->includes_all_columns && i < table->column_count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		describe_name(table->select_order[i]->name, out);
	}
	buffer_put_string(out, "\n    FROM ");
	describe_qualified(table->keyspace, view->base_table, out);
	buffer_put_string(out, "\n    WHERE ");
	buffer_put_slice(out, view->where_clause);
	buffer_put_string(out, "\n    ");
	describe_primary_key(table, out);
	buffer_put_u8(out, '\n');
	describe_table_options(table, with_internals, out);
	buffer_put_u8(out, ';');
}

void
describe_table(const struct keyspace_metadata *keyspace, const struct table_metadata *table,
    bool with_internals, bool if_not_exists, struct buffer *out)
{
	const struct view_metadata *view = NULL;

	if (table->is_view && keyspace != NULL)
		view = keyspace_view(keyspace, table->name);
	if (view != NULL)
		describe_view(view, table, with_internals, if_not_exists, out);
	else
		describe_plain_table(table, with_internals, if_not_exists, out);
}

/* ---- Indexes, functions -------------------------------------------------------------------- */

void
describe_index(const struct table_metadata *table, const struct index_metadata *index,
    bool if_not_exists, struct buffer *out)
{
	const struct slice *class_name = option_map_get(&index->options, "class_name");
	bool is_custom = strcmp(index->kind, "CUSTOM") == 0;
	uint32_t i, count = 0;

	describe_create(is_custom ? "CUSTOM INDEX" : "INDEX", if_not_exists, out);
	describe_name(index->name, out);
	buffer_put_string(out, " ON ");
	describe_qualified(table->keyspace, table->name, out);
	buffer_put_string(out, " (");
	buffer_put_slice(out, index->target);
	buffer_put_u8(out, ')');
	if (is_custom && class_name != NULL) {
		buffer_put_string(out, " USING ");
		describe_literal(*class_name, out);
	}
	for (i = 0; is_custom && i < index->options.count; i++) {
		const struct option_entry *entry = &index->options.entries[i];

		if (slice_equal_string(entry->key, "target") ||
		    slice_equal_string(entry->key, "class_name"))
			continue;
		buffer_put_string(out, count++ == 0 ? " WITH OPTIONS = {" : ", ");
		describe_literal(entry->key, out);
		buffer_put_string(out, ": ");
		describe_literal(entry->value, out);
	}
	buffer_put_string(out, count > 0 ? "};" : ";");
}

static void
describe_arguments(const struct function_metadata *function, struct buffer *out)
{
	uint32_t i;

	buffer_put_u8(out, '(');
	for (i = 0; i < function->argument_count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		if (!function->is_aggregate) {
			describe_name(function->argument_names[i], out);
			buffer_put_u8(out, ' ');
		}
		type_print_cql(function->argument_types[i], out);
	}
	buffer_put_u8(out, ')');
}

void
describe_function(const struct keyspace_metadata *keyspace,
    const struct function_metadata *function, bool if_not_exists, struct buffer *out)
{
	describe_create(function->is_aggregate ? "AGGREGATE" : "FUNCTION", if_not_exists, out);
	describe_qualified(keyspace->name, function->name, out);
	describe_arguments(function, out);
	if (!function->is_aggregate) {
		buffer_put_string(out,
		    function->called_on_null ? "\n    CALLED ON NULL INPUT\n    RETURNS "
					     : "\n    RETURNS NULL ON NULL INPUT\n    RETURNS ");
		type_print_cql(function->return_type, out);
		buffer_put_string(out, "\n    LANGUAGE ");
		buffer_put_slice(out, function->language);
		buffer_put_string(out, "\n    AS $$");
		buffer_put_slice(out, function->body);
		buffer_put_string(out, "$$;");
		return;
	}
	buffer_put_string(out, "\n    SFUNC ");
	describe_name(function->state_function, out);
	buffer_put_string(out, "\n    STYPE ");
	type_print_cql(function->state_type, out);
	if (!slice_is_null(function->final_function)) {
		buffer_put_string(out, "\n    FINALFUNC ");
		describe_name(function->final_function, out);
	}
	if (!slice_is_null(function->initial_condition)) {
		buffer_put_string(out, "\n    INITCOND ");
		buffer_put_slice(out, function->initial_condition);
	}
	buffer_put_u8(out, ';');
}
