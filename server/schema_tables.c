/* SPDX-License-Identifier: Apache-2.0 */
#include "server/schema_tables.h"
#include <assert.h>
#include <stdlib.h>
#include "base/log.h"
#include "server/execution.h"
#include "server/internal_query.h"

enum { SCHEMA_ARENA_BLOCK = 16 << 10 };

struct schema_writer {
	struct executor *executor;
	struct internal_batch *batch; /* what is to be written, together */
	struct arena arena;
};

static int
schema_write(struct schema_writer *writer, const char *cql, const struct slice *values,
    uint32_t count, struct error *err)
{
	return internal_batch_add(writer->batch, cql, values, count, err);
}

/* ---- Values -------------------------------------------------------------------------------- */

static struct slice
schema_pack(
    struct schema_writer *writer, const char *type_text, struct slice *elements, uint32_t count)
{
	const struct type *type;

	if (type_parse_cql(slice_of_string(type_text), NULL, NULL, &writer->arena, &type, NULL) !=
	    0)
		return slice_null;
	if (type->kind == TYPE_SET)
		count = type_sort_elements(type->params[0], elements, count, 1);
	else if (type->kind == TYPE_MAP)
		count = type_sort_elements(type->params[0], elements, count, 2);
	return type_pack(type, elements, count, &writer->arena);
}

static struct slice
schema_pack_options(struct schema_writer *writer, const struct option_map *map)
{
	struct slice *elements =
	    arena_calloc(&writer->arena, (size_t)map->count * 2, sizeof(*elements));

	if (elements == NULL)
		return slice_null;
	for (uint32_t i = 0; i < map->count; i++) {
		elements[2 * i] = map->entries[i].key;
		elements[2 * i + 1] = map->entries[i].value;
	}
	return schema_pack(writer, "frozen<map<text, text>>", elements, map->count);
}

static struct slice
schema_type_text(struct schema_writer *writer, const struct type *type)
{
	struct buffer text;
	struct slice copy;

	buffer_init(&text);
	type_print_cql(type, &text);
	copy = arena_copy(&writer->arena, buffer_slice(&text));
	buffer_fini(&text);
	return copy;
}

static struct slice
schema_int(struct schema_writer *writer, uint32_t value)
{
	uint8_t *bytes = arena_alloc_bytes(&writer->arena, 4);

	if (bytes == NULL)
		return slice_null;
	store_u32(bytes, value);
	return slice_of(bytes, 4);
}

/* ---- Writing ------------------------------------------------------------------------------- */

static int
schema_write_column(struct schema_writer *writer, const struct table_metadata *table,
    const struct column_metadata *column, struct error *err)
{
	bool is_key = column->kind == COLUMN_PARTITION_KEY || column->kind == COLUMN_CLUSTERING;
	struct slice values[] = {table->keyspace, table->name, column->name,
	    slice_of_string(column->kind != COLUMN_CLUSTERING ? "none"
		    : column->is_reversed                     ? "desc"
							      : "asc"),
	    column->name, slice_of_string(column_kind_name(column->kind)),
	    schema_int(writer, is_key ? column->position : UINT32_MAX),
	    schema_type_text(writer, column->type)};

	return schema_write(writer,
	    "INSERT INTO system_schema.columns (keyspace_name, table_name, column_name, "
	    "clustering_order, column_name_bytes, kind, position, type) VALUES (?, ?, ?, ?, ?, ?, "
	    "?, ?)",
	    values, 8, err);
}

static int
schema_write_dropped(struct schema_writer *writer, const struct table_metadata *table,
    const struct dropped_column *dropped, struct error *err)
{
	uint8_t *time = arena_alloc_bytes(&writer->arena, 8);
	struct slice values[] = {table->keyspace, table->name, dropped->column.name,
	    slice_of(time, 8), slice_of_string(column_kind_name(dropped->column.kind)),
	    schema_type_text(writer, dropped->column.type)};

	if (time == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the schema");
	store_u64(time, (uint64_t)(dropped->dropped_us / 1000));
	return schema_write(writer,
	    "INSERT INTO system_schema.dropped_columns (keyspace_name, table_name, column_name, "
	    "dropped_time, kind, type) VALUES (?, ?, ?, ?, ?, ?)",
	    values, 6, err);
}

static int
schema_write_index(struct schema_writer *writer, const struct table_metadata *table,
    const struct index_metadata *index, struct error *err)
{
	struct slice values[] = {table->keyspace, table->name, index->name,
	    slice_of_string(index->kind), schema_pack_options(writer, &index->options)};

	return schema_write(writer,
	    "INSERT INTO system_schema.indexes (keyspace_name, table_name, index_name, kind, "
	    "options) VALUES (?, ?, ?, ?, ?)",
	    values, 5, err);
}

static struct slice
schema_pack_flags(struct schema_writer *writer, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {{TABLE_COMPOUND, "compound"}, {TABLE_COUNTER, "counter"},
	    {TABLE_DENSE, "dense"}, {TABLE_SUPER, "super"}};
	struct slice elements[4];
	uint32_t count = 0;

	for (size_t i = 0; i < 4; i++) {
		if ((flags & names[i].flag) != 0)
			elements[count++] = slice_of_string(names[i].name);
	}
	return schema_pack(writer, "frozen<set<text>>", elements, count);
}

static int
schema_write_table_row(struct schema_writer *writer, const struct table_metadata *table,
    bool is_new, struct error *err)
{
	struct table_option_cell cells[TABLE_OPTIONS_CELLS_MAX];
	uint32_t count = table_options_to_cells(&table->options, &writer->arena, cells);
	struct slice values[TABLE_OPTIONS_CELLS_MAX + 4];
	struct schema *schema = schema_holder_get(&writer->executor->schema);
	const struct table_metadata *tables =
	    schema_table(schema, slice_of_string("system_schema"), slice_of_string("tables"));
	struct buffer cql;
	uint32_t n = 4;
	int rc;

	values[0] = table->keyspace;
	values[1] = table->name;
	values[2] = slice_of(table->id.bytes, sizeof(table->id.bytes));
	values[3] = schema_pack_flags(writer, table->flags);
	buffer_init(&cql);
	buffer_put_string(
	    &cql, "INSERT INTO system_schema.tables (keyspace_name, table_name, id, flags");
	for (uint32_t i = 0; i < count; i++) {
		/* An option of a later version has no column here. */
		if (tables == NULL ||
		    table_column(tables, slice_of_string(cells[i].column)) == NULL)
			continue;
		/* Null is written (as a tombstone) only where something may have been before. */
		if (is_new && slice_is_null(cells[i].value))
			continue;
		buffer_printf(&cql, ", %s", cells[i].column);
		values[n++] = cells[i].value;
	}
	schema_unref(schema);
	buffer_put_string(&cql, ") VALUES (?");
	for (uint32_t i = 1; i < n; i++)
		buffer_put_string(&cql, ", ?");
	buffer_put(&cql, ")", 2);
	rc = buffer_check(&cql, err);
	if (rc == 0)
		rc = schema_write(writer, (const char *)cql.data, values, n, err);
	buffer_fini(&cql);
	return rc;
}

static int
schema_delete_row(struct schema_writer *writer, const char *cql, struct slice keyspace,
    struct slice name, struct slice sub, struct error *err)
{
	struct slice values[3] = {keyspace, name, sub};

	return schema_write(writer, cql, values, slice_is_null(sub) ? 2 : 3, err);
}

static int
schema_write_table(struct schema_writer *writer, const struct table_metadata *before,
    const struct table_metadata *after, struct error *err)
{
	if (schema_write_table_row(writer, after, before == NULL, err) != 0)
		return -1;
	for (uint32_t i = 0; before != NULL && i < before->column_count; i++) {
		const struct column_metadata *column = before->select_order[i];

		if (table_column(after, column->name) != NULL)
			continue;
		if (schema_delete_row(writer,
			"DELETE FROM system_schema.columns WHERE keyspace_name = ? AND table_name "
			"= "
			"? AND column_name = ?",
			after->keyspace, after->name, column->name, err) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < after->column_count; i++) {
		if (schema_write_column(writer, after, after->select_order[i], err) != 0)
			return -1;
	}
	for (uint32_t i = 0; before != NULL && i < before->dropped_count; i++) {
		struct slice name = before->dropped[i].column.name;

		if (table_dropped_column(after, name) == NULL &&
		    schema_delete_row(writer,
			"DELETE FROM system_schema.dropped_columns WHERE keyspace_name = ? AND "
			"table_name = ? AND column_name = ?",
			after->keyspace, after->name, name, err) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < after->dropped_count; i++) {
		if (schema_write_dropped(writer, after, &after->dropped[i], err) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < after->index_count; i++) {
		if (schema_write_index(writer, after, &after->indexes[i], err) != 0)
			return -1;
	}
	return 0;
}

static int
schema_delete_table(
    struct schema_writer *writer, const struct table_metadata *table, struct error *err)
{
	static const char *const deletes[] = {
	    "DELETE FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
	    "DELETE FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?",
	    "DELETE FROM system_schema.dropped_columns WHERE keyspace_name = ? AND table_name = ?",
	    "DELETE FROM system_schema.indexes WHERE keyspace_name = ? AND table_name = ?",
	};

	for (size_t i = 0; i < sizeof(deletes) / sizeof(deletes[0]); i++) {
		if (schema_delete_row(
			writer, deletes[i], table->keyspace, table->name, slice_null, err) != 0)
			return -1;
	}
	return 0;
}

static int
schema_write_type(struct schema_writer *writer, const struct type *type, struct error *err)
{
	struct slice *names = arena_calloc(&writer->arena, type->param_count, sizeof(*names));
	struct slice *types = arena_calloc(&writer->arena, type->param_count, sizeof(*types));
	struct slice values[4];

	if (names == NULL || types == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the schema");
	for (uint32_t i = 0; i < type->param_count; i++) {
		names[i] = type->fields[i];
		types[i] = schema_type_text(writer, type->params[i]);
	}
	values[0] = type->keyspace;
	values[1] = type->name;
	values[2] = schema_pack(writer, "frozen<list<text>>", names, type->param_count);
	values[3] = schema_pack(writer, "frozen<list<text>>", types, type->param_count);
	return schema_write(writer,
	    "INSERT INTO system_schema.types (keyspace_name, type_name, field_names, field_types) "
	    "VALUES (?, ?, ?, ?)",
	    values, 4, err);
}

static int
schema_write_keyspace(
    struct schema_writer *writer, const struct keyspace_metadata *keyspace, struct error *err)
{
	static const uint8_t truth[2] = {0, 1};
	struct slice values[3] = {keyspace->name, slice_of(&truth[keyspace->durable_writes], 1),
	    schema_pack_options(writer, &keyspace->replication)};

	return schema_write(writer,
	    "INSERT INTO system_schema.keyspaces (keyspace_name, durable_writes, replication) "
	    "VALUES "
	    "(?, ?, ?)",
	    values, 3, err);
}

static int
schema_delete_keyspace(struct schema_writer *writer, struct slice name, struct error *err)
{
	static const char *const tables[] = {"keyspaces", "tables", "columns", "dropped_columns",
	    "triggers", "views", "types", "functions", "aggregates", "indexes"};
	struct buffer cql;
	int rc = 0;

	buffer_init(&cql);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && rc == 0; i++) {
		buffer_clear(&cql);
		buffer_printf(
		    &cql, "DELETE FROM system_schema.%s WHERE keyspace_name = ?", tables[i]);
		buffer_put_u8(&cql, 0);
		rc = buffer_check(&cql, err);
		if (rc == 0)
			rc = schema_write(writer, (const char *)cql.data, &name, 1, err);
	}
	buffer_fini(&cql);
	return rc;
}

static int
schema_write_changes(struct schema_writer *writer, const struct keyspace_metadata *before,
    const struct keyspace_metadata *after, struct error *err)
{
	if (after == NULL) {
		assert(before != NULL);
		return schema_delete_keyspace(writer, before->name, err);
	}
	if (before == NULL || before->durable_writes != after->durable_writes ||
	    !option_map_equal(&before->replication, &after->replication)) {
		if (schema_write_keyspace(writer, after, err) != 0)
			return -1;
	}
	for (uint32_t i = 0; before != NULL && i < before->type_count; i++) {
		const struct type *type = before->types[i].type;

		if (keyspace_type(after, type->name) == NULL &&
		    schema_delete_row(writer,
			"DELETE FROM system_schema.types WHERE keyspace_name = ? AND type_name = ?",
			after->name, type->name, slice_null, err) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < after->type_count; i++) {
		const struct type *type = after->types[i].type;
		const struct type *old = before == NULL ? NULL : keyspace_type(before, type->name);

		if ((old == NULL || !type_equal(old, type)) &&
		    schema_write_type(writer, type, err) != 0)
			return -1;
	}
	for (uint32_t i = 0; before != NULL && i < before->table_count; i++) {
		if (keyspace_table(after, before->tables[i]->name) == NULL &&
		    schema_delete_table(writer, before->tables[i], err) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < after->table_count; i++) {
		const struct table_metadata *table = after->tables[i];
		const struct table_metadata *old =
		    before == NULL ? NULL : keyspace_table(before, table->name);

		if (old != table && schema_write_table(writer, old, table, err) != 0)
			return -1;
	}
	return 0;
}

static void
schema_writer_init(
    struct schema_writer *writer, struct executor *executor, struct internal_batch *batch)
{
	writer->executor = executor;
	writer->batch = batch;
	arena_init(&writer->arena, SCHEMA_ARENA_BLOCK);
}

static void
schema_writer_fini(struct schema_writer *writer)
{
	internal_batch_free(writer->batch);
	arena_fini(&writer->arena);
}

int
schema_tables_save(struct executor *executor, const struct keyspace_metadata *keyspace,
    int64_t timestamp, struct error *err)
{
	struct schema_writer writer;
	int rc;

	schema_writer_init(&writer, executor, internal_batch_new_at(executor, timestamp));
	rc = schema_write_changes(&writer, NULL, keyspace, err);
	/* All rows have the keyspace's name as their key: one record of the commit log. */
	if (rc == 0)
		rc = internal_batch_run(writer.batch, err);
	schema_writer_fini(&writer);
	return rc;
}

int
schema_tables_encode(struct executor *executor, const struct keyspace_metadata *before,
    const struct keyspace_metadata *after, int64_t timestamp, struct buffer *out, struct error *err)
{
	struct schema_writer writer;
	int count = -1;

	schema_writer_init(&writer, executor, internal_batch_new_at(executor, timestamp));
	if (schema_write_changes(&writer, before, after, err) == 0)
		count = internal_batch_encode(writer.batch, out, err);
	schema_writer_fini(&writer);
	return count;
}

int
schema_tables_has_keyspace(
    struct executor *executor, struct slice name, bool *out, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;

	if (internal_select(executor,
		"SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?", &name,
		1, &rows, err) != 0)
		return -1;
	*out = internal_rows_next(&rows, cells);
	internal_rows_fini(&rows);
	return 0;
}
