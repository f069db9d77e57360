/* SPDX-License-Identifier: Apache-2.0 */
/* ALTER TABLE. */
#include "server/execution.h"
#include "server/guardrails.h"
#include "server/schema_change.h"

struct alteration {
	struct schema_transformation *transformation;
	const struct statement_alter_table *statement;
	const struct table_metadata *table;
	struct table_builder *builder;
	bool has_changed;
};

static int
alter_add_column(struct alteration *alteration, const struct ast_column *column, struct error *err)
{
	const struct table_metadata *table = alteration->table;
	struct arena *arena = table_builder_arena(alteration->builder);
	struct slice name = ast_slice(column->name.text);
	const struct dropped_column *dropped;
	const struct type *type;

	if (table_column(table, name) != NULL) {
		if (alteration->statement->if_column_not_exists)
			return 0;
		return error_set(err, ERROR_INVALID, "Column with name '%s' already exists",
		    column->name.text.text);
	}
	if (schema_resolve_type(alteration->transformation->schema, table->keyspace, column->type,
		arena, &type, err) != 0)
		return -1;
	if (table->is_compact)
		return error_set(
		    err, ERROR_INVALID, "Cannot add new column to a COMPACT STORAGE table");
	if (column->is_static && table->clustering_count == 0)
		return error_set(err, ERROR_INVALID,
		    "Static columns are only useful (and thus allowed) if the table has at least "
		    "one "
		    "clustering column");
	if (type->kind == TYPE_COUNTER && !table_is_counter(table))
		return error_set(err, ERROR_CONFIG,
		    "%.*s.%.*s: Cannot have a counter column (\"%s\") in a non counter table",
		    (int)table->keyspace.size, table->keyspace.data, (int)table->name.size,
		    table->name.data, column->name.text.text);
	if (type->kind != TYPE_COUNTER && table_is_counter(table))
		return error_set(err, ERROR_CONFIG,
		    "%.*s.%.*s: Cannot have a non counter column (\"%s\") in a counter table",
		    (int)table->keyspace.size, table->keyspace.data, (int)table->name.size,
		    table->name.data, column->name.text.text);
	dropped = table_dropped_column(table, name);
	if (dropped != NULL) {
		bool was_static = dropped->column.kind == COLUMN_STATIC;

		if (!type_is_value_compatible(type, dropped->column.type) ||
		    type->is_multi_cell != dropped->column.type->is_multi_cell ||
		    type->kind != dropped->column.type->kind)
			return error_set(err, ERROR_INVALID,
			    "Cannot re-add previously dropped column '%s' of type %s, incompatible "
			    "with previous type %s",
			    column->name.text.text, type_name(arena, type),
			    type_name(arena, dropped->column.type));
		if (column->is_static != was_static)
			return error_set(err, ERROR_INVALID,
			    "Cannot re-add previously dropped column '%s' of kind %s, incompatible "
			    "with previous kind %s",
			    column->name.text.text, column->is_static ? "STATIC" : "REGULAR",
			    was_static ? "STATIC" : "REGULAR");
	}
	table_builder_add_column(alteration->builder,
	    column->is_static ? COLUMN_STATIC : COLUMN_REGULAR, name, type, false);
	alteration->has_changed = true;
	return 0;
}

static int
alter_check_columns(struct alteration *alteration, struct error *err)
{
	const struct table_metadata *table = alteration->table;
	int64_t count = table->column_count;

	for (size_t i = 0; i < alteration->statement->columns.count; i++) {
		const struct ast_column *column = &alteration->statement->columns.items[i];

		count += table_column(table, ast_slice(column->name.text)) == NULL;
	}
	return guardrail_check_maximum(alteration->transformation->execution,
	    GUARDRAIL_COLUMNS_PER_TABLE, table->name, count, err);
}

static int
alter_drop_column(struct alteration *alteration, const struct ast_column *raw, struct error *err)
{
	const struct table_metadata *table = alteration->table;
	struct slice name = ast_slice(raw->name.text);
	const struct column_metadata *column = table_column(table, name);
	/* system_schema keeps milliseconds; rounded up, since what was written before must go. */
	int64_t timestamp = alteration->statement->has_timestamp
	    ? alteration->statement->timestamp
	    : (alteration->transformation->execution->now_us / 1000 + 1) * 1000;

	if (column == NULL) {
		if (alteration->statement->if_column_exists)
			return 0;
		return error_set(err, ERROR_INVALID, "Column %s was not found in table '%.*s.%.*s'",
		    raw->name.text.text, (int)table->keyspace.size, table->keyspace.data,
		    (int)table->name.size, table->name.data);
	}
	if (column->kind == COLUMN_PARTITION_KEY || column->kind == COLUMN_CLUSTERING)
		return error_set(
		    err, ERROR_INVALID, "Cannot drop PRIMARY KEY column %s", raw->name.text.text);
	if (table->is_compact)
		return error_set(
		    err, ERROR_INVALID, "Cannot drop columns from a COMPACT STORAGE table");
	if (column->type->kind == TYPE_UDT && column->type->is_multi_cell)
		return error_set(err, ERROR_INVALID,
		    "Cannot drop non-frozen column %s of user type %.*s", raw->name.text.text,
		    (int)column->type->name.size, column->type->name.data);
	for (uint32_t i = 0; i < table->index_count; i++) {
		if (slice_equal(table->indexes[i].target, name))
			return error_set(err, ERROR_INVALID,
			    "Cannot drop column %s because it has dependent secondary indexes "
			    "(%.*s)",
			    raw->name.text.text, (int)table->indexes[i].name.size,
			    table->indexes[i].name.data);
	}
	table_builder_remove_column(alteration->builder, name, true, timestamp);
	alteration->has_changed = true;
	return 0;
}

static int
alter_rename(struct alteration *alteration, const struct ast_rename *rename, struct error *err)
{
	const struct table_metadata *table = alteration->table;
	const struct column_metadata *column = table_column(table, ast_slice(rename->from.text));

	if (column == NULL) {
		if (alteration->statement->if_column_exists)
			return 0;
		return error_set(err, ERROR_INVALID, "Undefined column name %s in table %.*s.%.*s",
		    rename->from.text.text, (int)table->keyspace.size, table->keyspace.data,
		    (int)table->name.size, table->name.data);
	}
	if (column->kind != COLUMN_PARTITION_KEY && column->kind != COLUMN_CLUSTERING)
		return error_set(err, ERROR_INVALID, "Cannot rename non PRIMARY KEY column %s",
		    rename->from.text.text);
	if (table_column(table, ast_slice(rename->to.text)) != NULL)
		return error_set(err, ERROR_INVALID,
		    "Cannot rename column %s to %s in table '%.*s.%.*s'; another column with that "
		    "name already exists",
		    rename->from.text.text, rename->to.text.text, (int)table->keyspace.size,
		    table->keyspace.data, (int)table->name.size, table->name.data);
	table_builder_rename_column(
	    alteration->builder, ast_slice(rename->from.text), ast_slice(rename->to.text));
	alteration->has_changed = true;
	return 0;
}

static int
alter_options(struct alteration *alteration, struct error *err)
{
	const struct slice *id = NULL;
	struct table_options *options = table_builder_options(alteration->builder);

	if (schema_apply_options(alteration->builder, &alteration->statement->properties,
		alteration->transformation->execution, &id, err) != 0 ||
	    schema_check_compression(alteration->transformation, options, err) != 0)
		return -1;
	if (id != NULL)
		return error_set(err, ERROR_CONFIG, "Cannot alter table id.");
	if (table_is_counter(alteration->table) && options->default_time_to_live > 0)
		return error_set(
		    err, ERROR_INVALID, "Cannot set default_time_to_live on a table with counters");
	alteration->has_changed = true;
	return 0;
}

static int
alter_run(struct alteration *alteration, struct error *err)
{
	const struct statement_alter_table *statement = alteration->statement;
	int rc = 0;

	switch (statement->kind) {
	case AST_ALTER_TABLE_COLUMN_TYPE:
		return error_set(
		    err, ERROR_INVALID, "Altering column types is no longer supported");
	case AST_ALTER_TABLE_MASK:
		return error_set(err, ERROR_INVALID,
		    "Cannot mask columns because dynamic data masking is not enabled. You can "
		    "enable "
		    "it with the dynamic_data_masking_enabled property on cassandra.yaml");
	case AST_ALTER_TABLE_ADD:
		for (size_t i = 0; i < statement->columns.count && rc == 0; i++)
			rc = alter_add_column(alteration, &statement->columns.items[i], err);
		if (rc == 0 && alteration->has_changed)
			rc = alter_check_columns(alteration, err);
		return rc;
	case AST_ALTER_TABLE_DROP:
		for (size_t i = 0; i < statement->columns.count && rc == 0; i++)
			rc = alter_drop_column(alteration, &statement->columns.items[i], err);
		return rc;
	case AST_ALTER_TABLE_RENAME:
		for (size_t i = 0; i < statement->rename_count && rc == 0; i++)
			rc = alter_rename(alteration, &statement->renames[i], err);
		return rc;
	case AST_ALTER_TABLE_DROP_COMPACT_STORAGE:
		return error_set(err, ERROR_INVALID,
		    "DROP COMPACT STORAGE is not supported by this version of Helenus");
	case AST_ALTER_TABLE_PROPERTIES:
		return alter_options(alteration, err);
	}
	return error_set(err, ERROR_SERVER, "unknown kind of ALTER TABLE");
}

int
schema_transform_alter_table(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_alter_table *statement = &transformation->statement->alter_table;
	struct alteration alteration = {.transformation = transformation, .statement = statement};
	struct slice name = ast_slice(statement->name.name);
	struct table_metadata *table = NULL;
	int rc;

	transformation->change.target = SCHEMA_TABLE;
	if (schema_target_keyspace(transformation, ast_slice(statement->name.keyspace), err) != 0)
		return -1;
	if (transformation->before != NULL)
		alteration.table = keyspace_table(transformation->before, name);
	if (alteration.table == NULL) {
		if (statement->if_exists) {
			transformation->is_noop = true;
			return 0;
		}
		return error_set(err, ERROR_INVALID, "Table '%.*s.%s' doesn't exist",
		    (int)transformation->name.size, (const char *)transformation->name.data,
		    statement->name.name.text);
	}
	if (schema_is_replicated_system_keyspace(transformation->name))
		return error_set(err, ERROR_UNAUTHORIZED, "Cannot ALTER <table %.*s.%s>",
		    (int)transformation->name.size, (const char *)transformation->name.data,
		    statement->name.name.text);
	if (alteration.table->is_view)
		return error_set(err, ERROR_INVALID,
		    "Cannot use ALTER TABLE on a materialized view; use ALTER MATERIALIZED VIEW "
		    "instead");
	alteration.builder = table_builder_from(alteration.table);
	rc = alter_run(&alteration, err);
	if (rc == 0 && alteration.has_changed)
		rc = table_builder_build(alteration.builder, &table, err);
	table_builder_free(alteration.builder);
	if (rc != 0)
		return -1;
	if (!alteration.has_changed) {
		transformation->is_noop = true;
		return 0;
	}
	transformation->after = keyspace_with_table(transformation->before, table);
	table_unref(table);
	transformation->change.kind = SCHEMA_UPDATED;
	transformation->change.name = name;
	return 0;
}
