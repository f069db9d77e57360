/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexes, materialized views, functions, aggregates and triggers: there are none. CREATE is refused, after what is wrong
 * with the statement itself. ALTER and DROP say that there is no such thing, or with IF EXISTS that all is well, as they
 * do in Cassandra: scripts that make a schema anew begin with them.
 */
#include "server/execution.h"
#include "server/schema_change.h"

static int
schema_refuse(const char *feature, struct error *err)
{
	return error_set(
	    err, ERROR_INVALID, "%s are not supported by this version of Helenus", feature);
}

/* Cassandra has two texts for a keyspace that nobody may change: permissions are asked for tables and indexes only. */
static int
schema_absent_keyspace(
    struct schema_transformation *transformation, const struct ast_name *name, struct error *err)
{
	if (schema_target_keyspace(transformation, ast_slice(name->keyspace), err) == 0)
		return 0;
	if (err->code == ERROR_UNAUTHORIZED)
		error_set(err, ERROR_INVALID, "System keyspace '%.*s' is not user-modifiable",
		    (int)transformation->name.size, (const char *)transformation->name.data);
	return -1;
}

/* IF EXISTS: nothing is done. Else there is no `kind` of that name. */
static int
schema_absent_end(struct schema_transformation *transformation, bool if_exists, const char *kind,
    struct slice name, struct error *err)
{
	if (if_exists) {
		transformation->is_noop = true;
		return 0;
	}
	return error_set(err, ERROR_INVALID, "%s '%.*s.%.*s' doesn't exist", kind,
	    (int)transformation->name.size, (const char *)transformation->name.data, (int)name.size,
	    (const char *)name.data);
}

/* ---- Indexes ------------------------------------------------------------------------------- */

static int
schema_create_index(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_create_index *create = &transformation->statement->create_index;
	const struct table_metadata *table = NULL;

	if (schema_target_keyspace(transformation, ast_slice(create->table.keyspace), err) != 0)
		return -1;
	if (transformation->before != NULL)
		table = keyspace_table(transformation->before, ast_slice(create->table.name));
	if (table == NULL)
		return error_set(
		    err, ERROR_INVALID, "Table '%s' doesn't exist", create->table.name.text);
	for (size_t i = 0; i < create->target_count; i++) {
		if (table_column(table, ast_slice(create->targets[i].column.text)) == NULL)
			return error_set(err, ERROR_INVALID,
			    "Undefined column name %s in table %.*s.%.*s",
			    create->targets[i].column.text.text, (int)table->keyspace.size,
			    table->keyspace.data, (int)table->name.size, table->name.data);
	}
	return schema_refuse("Secondary indexes (CREATE INDEX)", err);
}

/* There are none but those of a schema that Cassandra wrote. */
static int
schema_drop_index(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_drop *drop = &transformation->statement->drop;
	const struct keyspace_metadata *before;
	struct slice name = ast_slice(drop->name.name);

	if (schema_target_keyspace(transformation, ast_slice(drop->name.keyspace), err) != 0)
		return -1;
	before = transformation->before;
	for (uint32_t i = 0; before != NULL && i < before->table_count; i++) {
		for (uint32_t n = 0; n < before->tables[i]->index_count; n++) {
			if (slice_equal(before->tables[i]->indexes[n].name, name))
				return schema_refuse("Secondary indexes (DROP INDEX)", err);
		}
	}
	if (drop->if_exists) {
		transformation->is_noop = true;
		return 0;
	}
	/* The odd quote is Cassandra's. */
	return error_set(err, ERROR_INVALID, "Index '%.*s.%s' doesn't exist'",
	    (int)transformation->name.size, (const char *)transformation->name.data,
	    drop->name.name.text);
}

/* ---- Views --------------------------------------------------------------------------------- */

static int
schema_check_keyspace(const struct schema_transformation *transformation, struct error *err)
{
	if (transformation->before != NULL)
		return 0;
	return error_set(err, ERROR_INVALID, "Keyspace '%.*s' doesn't exist",
	    (int)transformation->name.size, (const char *)transformation->name.data);
}

static int
schema_create_view(struct schema_transformation *transformation, struct error *err)
{
	if (schema_absent_keyspace(
		transformation, &transformation->statement->create_view.name, err) != 0 ||
	    schema_check_keyspace(transformation, err) != 0)
		return -1;
	return schema_refuse("Materialized views", err);
}

static int
schema_absent_view(struct schema_transformation *transformation, const struct ast_name *name,
    bool if_exists, struct error *err)
{
	if (schema_absent_keyspace(transformation, name, err) != 0)
		return -1;
	return schema_absent_end(
	    transformation, if_exists, "Materialized view", ast_slice(name->name), err);
}

/* ---- Functions and aggregates -------------------------------------------------------------- */

static int
schema_create_function(struct schema_transformation *transformation, struct error *err)
{
	if (schema_absent_keyspace(
		transformation, &transformation->statement->create_function.name, err) != 0)
		return -1;
	return schema_refuse("User-defined functions (CREATE FUNCTION)", err);
}

static int
schema_create_aggregate(struct schema_transformation *transformation, struct error *err)
{
	if (schema_absent_keyspace(
		transformation, &transformation->statement->create_aggregate.name, err) != 0)
		return -1;
	if (transformation->before == NULL)
		return error_set(err, ERROR_CONFIG, "Keyspace %.*s doesn't exist",
		    (int)transformation->name.size, (const char *)transformation->name.data);
	return schema_refuse("User-defined aggregates (CREATE AGGREGATE)", err);
}

static int
schema_check_arguments(const struct schema_transformation *transformation,
    const struct ast_types *arguments, struct error *err)
{
	for (size_t i = 0; i < arguments->count; i++) {
		const struct ast_type *argument = arguments->items[i];
		struct buffer text;

		if (!argument->is_frozen || argument->kind == AST_TYPE_TUPLE)
			continue;
		buffer_init(&text);
		ast_type_text(argument, &text);
		error_set(err, ERROR_INVALID,
		    "Argument '%.*s' cannot be frozen; remove frozen<> modifier from '%.*s'",
		    (int)text.size, (const char *)text.data, (int)text.size,
		    (const char *)text.data);
		buffer_fini(&text);
		return -1;
	}
	for (size_t i = 0; i < arguments->count; i++) {
		const struct type *type;

		if (schema_resolve_type(transformation->schema, transformation->name,
			arguments->items[i], transformation->arena, &type, err) != 0)
			return -1;
	}
	return 0;
}

static int
schema_drop_function(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_drop_function *drop = &transformation->statement->drop_function;
	bool is_function = transformation->statement->kind == STATEMENT_DROP_FUNCTION;
	struct buffer name;
	int rc;

	if (schema_absent_keyspace(transformation, &drop->name, err) != 0)
		return -1;
	if (transformation->before != NULL &&
	    schema_check_arguments(transformation, &drop->argument_types, err) != 0)
		return -1;
	buffer_init(&name);
	buffer_printf(&name, "%s%s", drop->name.name.text, drop->has_arguments ? "(" : "");
	for (size_t i = 0; i < drop->argument_types.count; i++) {
		buffer_printf(&name, "%s", i > 0 ? ", " : "");
		ast_type_text(drop->argument_types.items[i], &name);
	}
	buffer_printf(&name, "%s", drop->has_arguments ? ")" : "");
	rc = schema_absent_end(transformation, drop->if_exists,
	    is_function ? "Function" : "Aggregate", slice_of(name.data, name.size), err);
	buffer_fini(&name);
	return rc;
}

/* ---- Triggers ------------------------------------------------------------------------------ */

static int
schema_create_trigger(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_trigger *trigger = &transformation->statement->trigger;

	if (schema_absent_keyspace(transformation, &trigger->table, err) != 0 ||
	    schema_check_keyspace(transformation, err) != 0)
		return -1;
	if (keyspace_table(transformation->before, ast_slice(trigger->table.name)) == NULL)
		return error_set(
		    err, ERROR_INVALID, "Table '%s' doesn't exist", trigger->table.name.text);
	return error_set(
	    err, ERROR_INVALID, "Triggers are Java classes, which this server cannot load");
}

static int
schema_drop_trigger(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_trigger *trigger = &transformation->statement->trigger;

	if (schema_absent_keyspace(transformation, &trigger->table, err) != 0)
		return -1;
	if (trigger->if_exists) {
		transformation->is_noop = true;
		return 0;
	}
	return error_set(err, ERROR_INVALID, "Trigger '%s' on '%.*s.%s' doesn't exist",
	    trigger->name.text.text, (int)transformation->name.size,
	    (const char *)transformation->name.data, trigger->table.name.text);
}

int
schema_transform_absent(struct schema_transformation *transformation, struct error *err)
{
	const struct statement *statement = transformation->statement;

	switch (statement->kind) {
	case STATEMENT_CREATE_INDEX:
		return schema_create_index(transformation, err);
	case STATEMENT_DROP_INDEX:
		return schema_drop_index(transformation, err);
	case STATEMENT_CREATE_VIEW:
		return schema_create_view(transformation, err);
	case STATEMENT_ALTER_VIEW:
		return schema_absent_view(transformation, &statement->alter_view.name,
		    statement->alter_view.if_exists, err);
	case STATEMENT_DROP_VIEW:
		return schema_absent_view(
		    transformation, &statement->drop.name, statement->drop.if_exists, err);
	case STATEMENT_CREATE_FUNCTION:
		return schema_create_function(transformation, err);
	case STATEMENT_CREATE_AGGREGATE:
		return schema_create_aggregate(transformation, err);
	case STATEMENT_DROP_FUNCTION:
	case STATEMENT_DROP_AGGREGATE:
		return schema_drop_function(transformation, err);
	case STATEMENT_CREATE_TRIGGER:
		return schema_create_trigger(transformation, err);
	case STATEMENT_DROP_TRIGGER:
		return schema_drop_trigger(transformation, err);
	default:
		return error_set(err, ERROR_INVALID, "%s is not supported",
		    statement_kind_name(statement->kind));
	}
}
