/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE TABLE and DROP TABLE; see schema_alter.c for ALTER TABLE. */
#include "server/execution.h"
#include "server/guardrails.h"
#include "server/schema_change.h"

/* ---- Types --------------------------------------------------------------------------------- */

struct schema_type_scope {
	const struct schema *schema;
	struct slice keyspace;
	struct slice foreign; /* the other keyspace that a name was said to be in; null: none */
};

static const struct type *
schema_scope_resolve(void *user, struct slice keyspace, struct slice name)
{
	struct schema_type_scope *scope = user;

	if (!slice_is_null(keyspace) && !slice_equal(keyspace, scope->keyspace)) {
		scope->foreign = keyspace;
		return NULL;
	}
	return schema_resolve_udt(
	    (void *)scope->schema, slice_is_null(keyspace) ? scope->keyspace : keyspace, name);
}

int
schema_resolve_type(const struct schema *schema, struct slice keyspace, const struct ast_type *raw,
    struct arena *arena, const struct type **out, struct error *err)
{
	struct schema_type_scope scope = {schema, keyspace, slice_null};
	struct buffer text;
	int rc;

	buffer_init(&text);
	ast_type_text(raw, &text);
	rc = buffer_check(&text, err);
	if (rc == 0)
		rc = type_parse_cql(
		    buffer_slice(&text), schema_scope_resolve, &scope, arena, out, err);
	if (rc != 0 && !slice_is_null(scope.foreign))
		error_set(err, ERROR_INVALID,
		    "Statement on keyspace %.*s cannot refer to a user type in keyspace %.*s; user "
		    "types can only be used in the keyspace they are defined in",
		    (int)keyspace.size, (const char *)keyspace.data, (int)scope.foreign.size,
		    (const char *)scope.foreign.data);
	/* A name without a keyspace is looked for in the statement's, and is told so. */
	else if (rc != 0 && err != NULL && strncmp(err->text, "Unknown type ", 13) == 0 &&
	    strchr(err->text, '.') == NULL)
		error_set(err, ERROR_INVALID, "Unknown type %.*s.%s", (int)keyspace.size,
		    (const char *)keyspace.data,
		    arena_strndup(arena, err->text + 13, strlen(err->text + 13)));
	buffer_fini(&text);
	return rc;
}

/* ---- Options ------------------------------------------------------------------------------- */

int
schema_apply_options(struct table_builder *builder, const struct ast_properties *properties,
    const struct execution *execution, const struct slice **id, struct error *err)
{
	struct arena *arena = table_builder_arena(builder);
	struct table_property *out = arena_calloc(arena, properties->count, sizeof(*out));
	struct slice *id_text = NULL;
	uint32_t count = 0;

	if (out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for options");
	for (size_t i = 0; i < properties->count; i++) {
		const struct ast_property *property = &properties->items[i];
		struct table_property *to;

		if (guardrail_ignores_property(execution, ast_slice(property->name)))
			continue;
		if (strcmp(property->name.text, "id") == 0 && !property->is_map) {
			id_text = arena_alloc(arena, sizeof(*id_text));
			if (id_text == NULL)
				return error_set(err, ERROR_NO_MEMORY, "no memory for options");
			*id_text = ast_slice(property->value);
			continue;
		}
		to = &out[count++];
		to->name = ast_slice(property->name);
		to->is_map = property->is_map;
		if (!property->is_map) {
			to->value = ast_slice(property->value);
			continue;
		}
		for (size_t n = 0; n < property->entry_count; n++)
			option_map_put(&to->map, ast_slice(property->entries[n].key),
			    ast_slice(property->entries[n].value), arena);
	}
	*id = id_text;
	return table_options_apply(table_builder_options(builder), out, count, arena, err);
}

int
schema_check_compression(struct schema_transformation *transformation,
    const struct table_options *options, struct error *err)
{
	return options->compressor != COMPRESSOR_NONE
	    ? 0
	    : guardrail_check_switch(
		  transformation->execution, GUARDRAIL_UNCOMPRESSED_TABLES, NULL, err);
}

/* ---- CREATE TABLE -------------------------------------------------------------------------- */

static const struct ast_column *
create_find(const struct statement_create_table *create, struct ast_string name)
{
	for (size_t i = 0; i < create->columns.count; i++) {
		if (ast_string_equal(create->columns.items[i].name.text, name))
			return &create->columns.items[i];
	}
	return NULL;
}

static bool
create_is_key(const struct statement_create_table *create, struct ast_string name)
{
	for (size_t i = 0; i < create->partition_key.count; i++) {
		if (ast_string_equal(create->partition_key.items[i].text, name))
			return true;
	}
	for (size_t i = 0; i < create->clustering_key.count; i++) {
		if (ast_string_equal(create->clustering_key.items[i].text, name))
			return true;
	}
	return false;
}

static int
create_key_column(const struct statement_create_table *create, const struct ast_identifier *name,
    enum column_kind kind, bool is_reversed, struct slice keyspace, const struct schema *schema,
    struct table_builder *builder, struct error *err)
{
	const struct ast_column *column = create_find(create, name->text);
	struct arena *arena = table_builder_arena(builder);
	const struct type *type;

	if (column == NULL)
		return error_set(err, ERROR_INVALID,
		    "Unknown column '%s' referenced in PRIMARY KEY for table '%s'", name->text.text,
		    create->name.name.text);
	if (schema_resolve_type(schema, keyspace, column->type, arena, &type, err) != 0)
		return -1;
	if (type->kind == TYPE_COUNTER)
		return error_set(err, ERROR_INVALID,
		    "counter type is not supported for PRIMARY KEY column '%s'", name->text.text);
	if (type_references_duration(type))
		return error_set(err, ERROR_INVALID,
		    "duration type is not supported for PRIMARY KEY column '%s'", name->text.text);
	if (type->is_multi_cell && type->kind == TYPE_UDT)
		return error_set(err, ERROR_INVALID,
		    "Invalid non-frozen user-defined type \"%.*s.%s\" for PRIMARY KEY column '%s'",
		    (int)type->keyspace.size, type->keyspace.data, type_name(arena, type),
		    name->text.text);
	if (type->is_multi_cell)
		return error_set(err, ERROR_INVALID,
		    "Invalid non-frozen collection type %s for PRIMARY KEY column '%s'",
		    type_name(arena, type), name->text.text);
	if (column->is_static)
		return error_set(err, ERROR_INVALID,
		    "Static column '%s' cannot be part of the PRIMARY KEY", name->text.text);
	table_builder_add_column(builder, kind, ast_slice(name->text), type, is_reversed);
	return 0;
}

/* CLUSTERING ORDER BY names the clustering columns from the first on, without a gap. */
static int
create_check_order(const struct statement_create_table *create, struct error *err)
{
	struct buffer strangers;
	int rc = 0;

	buffer_init(&strangers);
	for (size_t i = 0; i < create->clustering_order_count; i++) {
		struct ast_string name = create->clustering_order[i].column.text;
		bool is_clustering = false;

		for (size_t n = 0; n < create->clustering_key.count; n++)
			is_clustering = is_clustering ||
			    ast_string_equal(create->clustering_key.items[n].text, name);
		if (!is_clustering)
			buffer_printf(
			    &strangers, "%s%s", strangers.size > 0 ? ", " : "", name.text);
	}
	if (strangers.size > 0)
		rc = error_set(err, ERROR_INVALID,
		    "Only clustering key columns can be defined in CLUSTERING ORDER directive: "
		    "[%.*s] are not clustering columns",
		    (int)strangers.size, (const char *)strangers.data);
	buffer_fini(&strangers);
	for (size_t i = 0; rc == 0 && i < create->clustering_order_count; i++) {
		if (i < create->clustering_key.count &&
		    ast_string_equal(create->clustering_key.items[i].text,
			create->clustering_order[i].column.text))
			continue;
		for (size_t n = 0; n < create->clustering_order_count; n++) {
			if (ast_string_equal(create->clustering_order[n].column.text,
				create->clustering_key.items[i].text))
				return error_set(err, ERROR_INVALID,
				    "The order of columns in the CLUSTERING ORDER directive must "
				    "match "
				    "that of the clustering columns (%s must appear before %s)",
				    create->clustering_key.items[i].text.text,
				    create->clustering_order[i].column.text.text);
		}
		rc = error_set(err, ERROR_INVALID, "Missing CLUSTERING ORDER for column %s",
		    create->clustering_key.items[i].text.text);
	}
	return rc;
}

static int
create_columns(const struct statement_create_table *create, struct slice keyspace,
    const struct schema *schema, struct table_builder *builder, struct error *err)
{
	bool has_counter = false, has_other = false;

	for (size_t i = 0; i < create->columns.count; i++) {
		const struct ast_column *column = &create->columns.items[i];
		const struct type *type;

		if (column->mask != NULL)
			return error_set(err, ERROR_INVALID,
			    "Cannot mask columns because dynamic data masking is not enabled. You "
			    "can "
			    "enable it with the dynamic_data_masking_enabled property on "
			    "cassandra.yaml");
		if (create_is_key(create, column->name.text))
			continue;
		if (schema_resolve_type(schema, keyspace, column->type,
			table_builder_arena(builder), &type, err) != 0)
			return -1;
		if (type->kind == TYPE_COUNTER)
			has_counter = true;
		else
			has_other = true;
		if (column->is_static && create->clustering_key.count == 0)
			return error_set(err, ERROR_INVALID,
			    "Static columns are only useful (and thus allowed) if the table has at "
			    "least one clustering column");
		table_builder_add_column(builder,
		    column->is_static ? COLUMN_STATIC : COLUMN_REGULAR,
		    ast_slice(column->name.text), type, false);
	}
	if (has_counter && has_other)
		return error_set(err, ERROR_INVALID,
		    "Cannot mix counter and non counter columns in the same table");
	table_builder_set_flags(builder, TABLE_COMPOUND | (has_counter ? TABLE_COUNTER : 0));
	return 0;
}

int
schema_build_table(const struct statement_create_table *create, struct slice keyspace,
    const struct schema *schema, struct table_builder **builder, struct error *err)
{
	*builder = table_builder_new(keyspace, ast_slice(create->name.name));
	if (create->is_compact_storage)
		return error_set(err, ERROR_INVALID,
		    "COMPACT STORAGE tables cannot be created by this version of Helenus");
	if (create->partition_key.count == 0)
		return error_set(err, ERROR_INVALID,
		    "No PRIMARY KEY specifed for table '%s%s%s' (exactly one required)",
		    create->name.keyspace.text == NULL ? "" : create->name.keyspace.text,
		    create->name.keyspace.text == NULL ? "" : ".", create->name.name.text);
	for (size_t i = 0; i < create->partition_key.count; i++) {
		if (create_key_column(create, &create->partition_key.items[i], COLUMN_PARTITION_KEY,
			false, keyspace, schema, *builder, err) != 0)
			return -1;
	}
	for (size_t i = 0; i < create->clustering_key.count; i++) {
		const struct ast_identifier *name = &create->clustering_key.items[i];
		bool is_reversed = false;

		for (size_t n = 0; n < create->partition_key.count + i; n++) {
			const struct ast_identifier *other = n < create->partition_key.count
			    ? &create->partition_key.items[n]
			    : &create->clustering_key.items[n - create->partition_key.count];

			if (ast_string_equal(other->text, name->text))
				return error_set(err, ERROR_INVALID,
				    "Duplicate column '%s' in PRIMARY KEY clause for table '%s'",
				    name->text.text, create->name.name.text);
		}
		for (size_t n = 0; n < create->clustering_order_count; n++) {
			if (ast_string_equal(create->clustering_order[n].column.text, name->text))
				is_reversed = create->clustering_order[n].is_descending;
		}
		if (create_key_column(create, name, COLUMN_CLUSTERING, is_reversed, keyspace,
			schema, *builder, err) != 0)
			return -1;
	}
	if (create_check_order(create, err) != 0)
		return -1;
	return create_columns(create, keyspace, schema, *builder, err);
}

static int
create_table_id(struct schema_transformation *transformation, const struct slice *text,
    struct table_builder *builder, struct error *err)
{
	struct uuid id;

	if (text == NULL) {
		/* As Cassandra: an id of time, so that tables sort by age. */
		executor_next_timeuuid(transformation->execution->executor, id.bytes);
		table_builder_set_id(builder, &id);
		return 0;
	}
	if (uuid_parse((const char *)text->data, text->size, &id) != 0)
		return error_set(err, ERROR_CONFIG, "Invalid table id");
	if (schema_table_by_id(transformation->schema, &id) != NULL)
		return error_set(err, ERROR_INVALID, "Table id is already in use");
	table_builder_set_id(builder, &id);
	return 0;
}

static int
table_create(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_create_table *create = &transformation->statement->create_table;
	const struct keyspace_metadata *keyspace;
	struct table_builder *builder = NULL;
	struct table_metadata *table;
	const struct slice *id = NULL;
	struct slice name = ast_slice(create->name.name);
	int rc;

	if (schema_target_keyspace(transformation, ast_slice(create->name.keyspace), err) != 0)
		return -1;
	keyspace = transformation->before;
	if (keyspace == NULL)
		return error_set(err, ERROR_INVALID, "Keyspace '%.*s' doesn't exist",
		    (int)transformation->name.size, (const char *)transformation->name.data);
	if (schema_is_replicated_system_keyspace(transformation->name))
		return error_set(err, ERROR_UNAUTHORIZED, "Cannot CREATE <all tables in %.*s>",
		    (int)transformation->name.size, (const char *)transformation->name.data);
	if (keyspace_table(keyspace, name) != NULL) {
		if (create->if_not_exists) {
			transformation->is_noop = true;
			return 0;
		}
		error_set(err, ERROR_ALREADY_EXISTS,
		    "Cannot add already existing table \"%s\" to "
		    "keyspace \"%.*s\"",
		    create->name.name.text, (int)transformation->name.size,
		    (const char *)transformation->name.data);
		if (err != NULL) {
			memcpy(err->keyspace, transformation->name.data, transformation->name.size);
			memcpy(err->table, name.data,
			    name.size < ERROR_NAME_MAX ? name.size : ERROR_NAME_MAX - 1);
		}
		return -1;
	}
	rc =
	    schema_build_table(create, transformation->name, transformation->schema, &builder, err);
	if (rc == 0)
		rc = schema_apply_options(
		    builder, &create->properties, transformation->execution, &id, err);
	if (rc == 0)
		rc = schema_check_compression(transformation, table_builder_options(builder), err);
	if (rc == 0)
		rc = create_table_id(transformation, id, builder, err);
	if (rc == 0)
		rc = table_builder_build(builder, &table, err);
	table_builder_free(builder);
	if (rc != 0)
		return -1;
	if (table_is_counter(table) && table->options.default_time_to_live > 0) {
		table_unref(table);
		return error_set(
		    err, ERROR_INVALID, "Cannot set default_time_to_live on a table with counters");
	}
	transformation->after = keyspace_with_table(keyspace, table);
	table_unref(table);
	transformation->change.kind = SCHEMA_CREATED;
	transformation->change.name = name;
	return 0;
}

/* ---- DROP TABLE ---------------------------------------------------------------------------- */

static int
table_drop(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_drop *drop = &transformation->statement->drop;
	struct slice name = ast_slice(drop->name.name);
	const struct table_metadata *table = NULL;

	if (schema_target_keyspace(transformation, ast_slice(drop->name.keyspace), err) != 0)
		return -1;
	if (transformation->before != NULL)
		table = keyspace_table(transformation->before, name);
	if (table == NULL && !schema_is_replicated_system_keyspace(transformation->name)) {
		if (drop->if_exists) {
			transformation->is_noop = true;
			return 0;
		}
		return error_set(err, ERROR_INVALID, "Table '%.*s.%s' doesn't exist",
		    (int)transformation->name.size, (const char *)transformation->name.data,
		    drop->name.name.text);
	}
	if (schema_is_replicated_system_keyspace(transformation->name))
		return error_set(err, ERROR_UNAUTHORIZED, "Cannot DROP <table %.*s.%s>",
		    (int)transformation->name.size, (const char *)transformation->name.data,
		    drop->name.name.text);
	if (table->is_view)
		return error_set(err, ERROR_INVALID,
		    "Cannot use DROP TABLE on a materialized view. Please use DROP MATERIALIZED "
		    "VIEW "
		    "instead.");
	for (uint32_t i = 0; i < transformation->before->view_count; i++) {
		if (slice_equal(transformation->before->views[i].base_table, name))
			return error_set(err, ERROR_INVALID,
			    "Cannot drop a table when materialized views still depend on it (%.*s)",
			    (int)transformation->before->views[i].name.size,
			    transformation->before->views[i].name.data);
	}
	transformation->after = keyspace_without_table(transformation->before, name);
	transformation->change.kind = SCHEMA_DROPPED;
	transformation->change.name = name;
	return 0;
}

int
schema_transform_table(struct schema_transformation *transformation, struct error *err)
{
	transformation->change.target = SCHEMA_TABLE;
	return transformation->statement->kind == STATEMENT_CREATE_TABLE
	    ? table_create(transformation, err)
	    : table_drop(transformation, err);
}
