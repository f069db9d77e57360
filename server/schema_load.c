/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema out of the rows of system_schema: keyspaces, then their types (each may need others), then
 * their tables.
 */
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "server/execution.h"
#include "server/internal_query.h"
#include "server/schema_tables.h"

enum { SCHEMA_LOAD_BLOCK = 16 << 10 };

struct schema_loader {
	struct executor *executor;
	struct arena arena;
	struct keyspace_metadata *keyspace; /* being built */
};

static int
schema_load_map(
    struct schema_loader *loader, struct slice value, struct option_map *out, struct error *err)
{
	const struct type *type;
	struct type_iterator iterator;
	struct slice key, element;

	*out = (struct option_map){NULL, 0};
	if (type_parse_cql(slice_of_string("frozen<map<text, text>>"), NULL, NULL, &loader->arena,
		&type, err) != 0)
		return -1;
	if (slice_is_null(value))
		return 0;
	type_iterator_init(&iterator, type, value);
	while (type_iterator_next(&iterator, &key, NULL) &&
	    type_iterator_next(&iterator, &element, NULL))
		option_map_put(out, key, element, &loader->arena);
	return 0;
}

/* ---- Types --------------------------------------------------------------------------------- */

static uint32_t
schema_load_list(struct schema_loader *loader, struct slice value, struct slice **out)
{
	const struct type *type;
	struct type_iterator iterator;
	uint32_t count = 0;

	*out = NULL;
	if (slice_is_null(value) ||
	    type_parse_cql(slice_of_string("frozen<list<text>>"), NULL, NULL, &loader->arena, &type,
		NULL) != 0)
		return 0;
	type_iterator_init(&iterator, type, value);
	*out = arena_calloc(&loader->arena, iterator.count, sizeof(**out));
	while (*out != NULL && count < iterator.count &&
	    type_iterator_next(&iterator, &(*out)[count], NULL))
		count++;
	return count;
}

/* 1: made; 0: needs a type that is not there yet. */
static int
schema_load_type(struct schema_loader *loader, const struct slice *cells)
{
	struct slice *names, *texts;
	uint32_t count = schema_load_list(loader, cells[1], &names);
	const struct type **types = arena_calloc(&loader->arena, count, sizeof(*types));
	struct keyspace_metadata *changed;
	const struct type *udt;
	struct error err;

	if (types == NULL || schema_load_list(loader, cells[2], &texts) != count)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		if (type_parse_cql(texts[i], keyspace_resolve_udt, loader->keyspace, &loader->arena,
			&types[i], &err) != 0)
			return 0;
	}
	udt = type_udt(&loader->arena, loader->keyspace->name, cells[0], names, types, count, true);
	if (udt == NULL)
		return 0;
	changed = keyspace_with_type(loader->keyspace, udt);
	keyspace_unref(loader->keyspace);
	loader->keyspace = changed;
	return 1;
}

static int
schema_load_types(struct schema_loader *loader, struct error *err)
{
	struct slice name = arena_copy(&loader->arena, loader->keyspace->name);
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;
	bool has_changed = true;
	uint32_t left = 0;

	while (has_changed) {
		has_changed = false;
		left = 0;
		if (internal_select(loader->executor,
			"SELECT type_name, field_names, field_types FROM system_schema.types WHERE "
			"keyspace_name = ?",
			&name, 1, &rows, err) != 0)
			return -1;
		while (internal_rows_next(&rows, cells)) {
			if (keyspace_type(loader->keyspace, cells[0]) != NULL)
				continue;
			if (schema_load_type(loader, cells))
				has_changed = true;
			else
				left++;
		}
		internal_rows_fini(&rows);
	}
	if (left > 0)
		return error_set(err, ERROR_CORRUPT,
		    "system_schema.types of keyspace %.*s: %u types cannot be understood",
		    (int)name.size, (const char *)name.data, left);
	return 0;
}

/* ---- Tables -------------------------------------------------------------------------------- */

struct schema_column_row {
	enum column_kind kind;
	int32_t position;
	struct slice name, type, order;
};

static int
schema_compare_columns(const void *a, const void *b)
{
	const struct schema_column_row *left = a, *right = b;

	if (left->kind != right->kind)
		return (int)left->kind - (int)right->kind;
	if (left->position != right->position)
		return left->position < right->position ? -1 : 1;
	return slice_compare(left->name, right->name);
}

static int
schema_load_columns(struct schema_loader *loader, struct slice table, struct table_builder *builder,
    struct error *err)
{
	struct slice values[2] = {loader->keyspace->name, table};
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct schema_column_row *columns;
	struct internal_rows rows;
	uint32_t count = 0;
	int rc = 0;

	if (internal_select(loader->executor,
		"SELECT column_name, kind, position, type, clustering_order FROM "
		"system_schema.columns WHERE keyspace_name = ? AND table_name = ?",
		values, 2, &rows, err) != 0)
		return -1;
	columns = arena_calloc(&loader->arena, (size_t)rows.left + 1, sizeof(*columns));
	if (columns == NULL)
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for the schema");
	while (rc == 0 && internal_rows_next(&rows, cells)) {
		struct schema_column_row *column = &columns[count++];
		int kind = slice_is_null(cells[1]) ? -1 : column_kind_parse(cells[1]);

		if (kind < 0 || cells[2].size != 4 || slice_is_null(cells[3])) {
			rc = error_set(err, ERROR_CORRUPT,
			    "system_schema.columns: column %.*s of %.*s.%.*s has no kind or type",
			    (int)cells[0].size, (const char *)cells[0].data, (int)values[0].size,
			    (const char *)values[0].data, (int)table.size,
			    (const char *)table.data);
			break;
		}
		*column = (struct schema_column_row){(enum column_kind)kind,
		    (int32_t)load_u32(cells[2].data), cells[0], cells[3], cells[4]};
	}
	if (rc == 0)
		qsort(columns, count, sizeof(*columns), schema_compare_columns);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		const struct type *type;

		rc = type_parse_cql(columns[i].type, keyspace_resolve_udt, loader->keyspace,
		    table_builder_arena(builder), &type, err);
		if (rc == 0)
			table_builder_add_column(builder, columns[i].kind, columns[i].name, type,
			    slice_equal_string(columns[i].order, "desc"));
	}
	internal_rows_fini(&rows);
	return rc;
}

static int
schema_load_dropped(struct schema_loader *loader, struct slice table, struct table_builder *builder,
    struct error *err)
{
	struct slice values[2] = {loader->keyspace->name, table};
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;

	if (internal_select(loader->executor,
		"SELECT column_name, kind, type, dropped_time FROM system_schema.dropped_columns "
		"WHERE keyspace_name = ? AND table_name = ?",
		values, 2, &rows, err) != 0)
		return -1;
	while (internal_rows_next(&rows, cells)) {
		const struct type *type;
		int kind = slice_is_null(cells[1]) ? COLUMN_REGULAR : column_kind_parse(cells[1]);
		struct error ignored;

		if (cells[3].size != 8 || kind < 0)
			continue;
		/* The type may name a user type that is gone: its bytes are skipped all the same. */
		if (slice_is_null(cells[2]) ||
		    type_parse_cql(cells[2], keyspace_resolve_udt, loader->keyspace,
			table_builder_arena(builder), &type, &ignored) != 0)
			type = type_native(TYPE_BLOB);
		table_builder_add_dropped(builder, (enum column_kind)kind, cells[0], type,
		    (int64_t)load_u64(cells[3].data) * 1000);
	}
	internal_rows_fini(&rows);
	return 0;
}

static int
schema_load_indexes(struct schema_loader *loader, struct slice table, struct table_builder *builder,
    struct error *err)
{
	struct slice values[2] = {loader->keyspace->name, table};
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;
	int rc = 0;

	if (internal_select(loader->executor,
		"SELECT index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = "
		"? "
		"AND table_name = ?",
		values, 2, &rows, err) != 0)
		return -1;
	while (rc == 0 && internal_rows_next(&rows, cells)) {
		struct option_map options;
		const struct slice *target;
		const char *kind;

		rc = schema_load_map(loader, cells[2], &options, err);
		target = option_map_get(&options, "target");
		if (rc != 0 || target == NULL)
			continue;
		kind = slice_equal_string(cells[1], "KEYS")  ? "KEYS"
		    : slice_equal_string(cells[1], "CUSTOM") ? "CUSTOM"
							     : "COMPOSITES";
		/* It is kept, so that it can be shown and is there when another server takes over. */
		log_warn("index %.*s of %.*s.%.*s is not maintained: indexes are not supported",
		    (int)cells[0].size, (const char *)cells[0].data, (int)values[0].size,
		    (const char *)values[0].data, (int)table.size, (const char *)table.data);
		table_builder_add_index(builder, cells[0], kind, *target, &options);
	}
	internal_rows_fini(&rows);
	return rc;
}

/* The row of system_schema.tables: every column that is an option. */
static int
schema_load_table(struct schema_loader *loader, const struct table_metadata *tables,
    const struct slice *cells, struct error *err)
{
	struct table_builder *builder = NULL;
	struct keyspace_metadata *changed;
	struct table_metadata *table;
	struct slice name = slice_null;
	uint32_t flags = 0;
	int rc = 0;

	for (uint32_t i = 0; i < tables->column_count; i++) {
		if (slice_equal_string(tables->select_order[i]->name, "table_name"))
			name = cells[i];
	}
	builder = table_builder_new(loader->keyspace->name, name);
	for (uint32_t i = 0; i < tables->column_count && rc == 0; i++) {
		struct slice column = tables->select_order[i]->name;

		if (slice_equal_string(column, "id") && cells[i].size == 16) {
			struct uuid id;

			memcpy(id.bytes, cells[i].data, 16);
			table_builder_set_id(builder, &id);
		} else if (slice_equal_string(column, "flags")) {
			struct slice *names;
			uint32_t count = schema_load_list(loader, cells[i], &names);

			for (uint32_t n = 0; n < count; n++)
				flags |= slice_equal_string(names[n], "compound") ? TABLE_COMPOUND
				    : slice_equal_string(names[n], "counter")     ? TABLE_COUNTER
				    : slice_equal_string(names[n], "dense")       ? TABLE_DENSE
				    : slice_equal_string(names[n], "super")       ? TABLE_SUPER
										  : 0;
		} else if (!slice_equal_string(column, "table_name") &&
		    !slice_equal_string(column, "keyspace_name")) {
			rc = table_options_from_cell(table_builder_options(builder), column,
			    cells[i], table_builder_arena(builder), err);
		}
	}
	table_builder_set_flags(builder, flags);
	if (rc == 0)
		rc = schema_load_columns(loader, name, builder, err);
	if (rc == 0)
		rc = schema_load_dropped(loader, name, builder, err);
	if (rc == 0)
		rc = schema_load_indexes(loader, name, builder, err);
	if (rc == 0)
		rc = table_builder_build(builder, &table, err);
	table_builder_free(builder);
	if (rc != 0) {
		error_prefix(err, "the schema of table %.*s.%.*s", (int)loader->keyspace->name.size,
		    loader->keyspace->name.data, (int)name.size, (const char *)name.data);
		return -1;
	}
	changed = keyspace_with_table(loader->keyspace, table);
	table_unref(table);
	keyspace_unref(loader->keyspace);
	loader->keyspace = changed;
	return 0;
}

static int
schema_load_tables(
    struct schema_loader *loader, const struct table_metadata *tables, struct error *err)
{
	struct slice name = arena_copy(&loader->arena, loader->keyspace->name);
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;
	int rc = 0;

	if (internal_select(loader->executor,
		"SELECT * FROM system_schema.tables WHERE keyspace_name = ?", &name, 1, &rows,
		err) != 0)
		return -1;
	while (rc == 0 && internal_rows_next(&rows, cells))
		rc = schema_load_table(loader, tables, cells, err);
	internal_rows_fini(&rows);
	return rc;
}

/* ---- Keyspaces ----------------------------------------------------------------------------- */

/* What a row of system_schema.keyspaces says of one that is known. */
static int
schema_load_params(struct schema_loader *loader, const struct keyspace_metadata *known,
    const struct slice *cells, struct error *err)
{
	bool durable = cells[1].size != 1 || cells[1].data[0] != 0;
	struct option_map replication;

	if (schema_load_map(loader, cells[2], &replication, err) != 0)
		return -1;
	loader->keyspace = keyspace_with_params(known, &replication, durable);
	return 0;
}

static int
schema_load_whole(struct schema_loader *loader, const struct slice *cells,
    const struct table_metadata *tables, struct error *err)
{
	bool durable = cells[1].size != 1 || cells[1].data[0] != 0;
	struct option_map replication;

	if (schema_load_map(loader, cells[2], &replication, err) != 0)
		return -1;
	loader->keyspace = keyspace_new(cells[0], &replication, durable, false);
	if (schema_load_types(loader, err) != 0)
		return -1;
	return schema_load_tables(loader, tables, err);
}

static int
schema_load_keyspace(struct schema_loader *loader, const struct slice *cells,
    const struct table_metadata *tables, struct schema **schema, struct error *err)
{
	const struct keyspace_metadata *known = schema_keyspace(*schema, cells[0]);
	struct schema *changed;
	int rc;

	/* Of a system keyspace the tables are known; its replication may have been changed. */
	if (known == NULL)
		rc = schema_load_whole(loader, cells, tables, err);
	else if (schema_is_replicated_system_keyspace(cells[0]))
		rc = schema_load_params(loader, known, cells, err);
	else
		return 0;
	if (rc == 0) {
		changed = schema_with_keyspace(*schema, loader->keyspace);
		schema_unref(*schema);
		*schema = changed;
	}
	keyspace_unref(loader->keyspace);
	loader->keyspace = NULL;
	return rc;
}

int
schema_tables_load(
    struct executor *executor, const struct schema *base, struct schema **out, struct error *err)
{
	struct schema_loader loader = {.executor = executor};
	struct schema *schema = schema_ref(base);
	const struct table_metadata *tables =
	    schema_table(base, slice_of_string("system_schema"), slice_of_string("tables"));
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;
	int rc = 0;

	arena_init(&loader.arena, SCHEMA_LOAD_BLOCK);
	if (internal_select(executor,
		"SELECT keyspace_name, durable_writes, replication FROM system_schema.keyspaces",
		NULL, 0, &rows, err) != 0) {
		schema_unref(schema);
		arena_fini(&loader.arena);
		return -1;
	}
	while (rc == 0 && internal_rows_next(&rows, cells))
		rc = schema_load_keyspace(&loader, cells, tables, &schema, err);
	internal_rows_fini(&rows);
	arena_fini(&loader.arena);
	if (rc != 0) {
		schema_unref(schema);
		return -1;
	}
	*out = schema;
	return 0;
}

/* ---- What has changed ---------------------------------------------------------------------- */

static const char schema_select_keyspace[] =
    "SELECT keyspace_name, durable_writes, replication FROM system_schema.keyspaces WHERE "
    "keyspace_name = ?";

static int
schema_reload_table(struct schema_loader *loader, const struct table_metadata *tables,
    struct slice name, struct error *err)
{
	struct slice values[2] = {arena_copy(&loader->arena, loader->keyspace->name), name};
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct keyspace_metadata *changed;
	struct internal_rows rows;
	int rc = 0;

	if (internal_select(loader->executor,
		"SELECT * FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
		values, 2, &rows, err) != 0)
		return -1;
	if (internal_rows_next(&rows, cells)) {
		rc = schema_load_table(loader, tables, cells, err);
	} else if (keyspace_table(loader->keyspace, name) != NULL) {
		changed = keyspace_without_table(loader->keyspace, name);
		keyspace_unref(loader->keyspace);
		loader->keyspace = changed;
	}
	internal_rows_fini(&rows);
	return rc;
}

/* Only what was touched of a keyspace that is known. */
static int
schema_reload_parts(struct schema_loader *loader, const struct schema_touched *touched,
    const struct keyspace_metadata *known, const struct slice *cells,
    const struct table_metadata *tables, struct error *err)
{
	int rc = 0;

	if (touched->has_params)
		rc = schema_load_params(loader, known, cells, err);
	else
		loader->keyspace = keyspace_ref(known);
	for (uint32_t i = 0; i < touched->table_count && rc == 0; i++) {
		bool is_seen = false;

		for (uint32_t k = 0; k < i && !is_seen; k++)
			is_seen = slice_equal(touched->tables[i], touched->tables[k]);
		if (!is_seen)
			rc = schema_reload_table(loader, tables, touched->tables[i], err);
	}
	return rc;
}

int
schema_tables_reload(struct executor *executor, const struct schema *schema,
    const struct schema_touched *touched, struct schema **out, struct error *err)
{
	struct schema_loader loader = {.executor = executor};
	const struct keyspace_metadata *known = schema_keyspace(schema, touched->keyspace);
	const struct table_metadata *tables =
	    schema_table(schema, slice_of_string("system_schema"), slice_of_string("tables"));
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;
	bool is_system = schema_is_replicated_system_keyspace(touched->keyspace);
	int rc = 0;

	if (internal_select(executor, schema_select_keyspace, &touched->keyspace, 1, &rows, err) !=
	    0)
		return -1;
	arena_init(&loader.arena, SCHEMA_LOAD_BLOCK);
	*out = NULL;
	if (!internal_rows_next(&rows, cells)) {
		*out = known == NULL || is_system
		    ? schema_ref(schema)
		    : schema_without_keyspace(schema, touched->keyspace);
	} else if (is_system) {
		/* Its tables are ours and known. */
		if (known != NULL)
			rc = schema_load_params(&loader, known, cells, err);
	} else if (known == NULL || touched->is_all) {
		rc = schema_load_whole(&loader, cells, tables, err);
	} else {
		rc = schema_reload_parts(&loader, touched, known, cells, tables, err);
	}
	if (rc == 0 && loader.keyspace != NULL)
		*out = schema_with_keyspace(schema, loader.keyspace);
	else if (rc == 0 && *out == NULL)
		*out = schema_ref(schema);
	keyspace_unref(loader.keyspace);
	internal_rows_fini(&rows);
	arena_fini(&loader.arena);
	return rc;
}
