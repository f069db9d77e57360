/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text from which the schema version is computed. It must be the same on every node that has the
 * same schema, whatever the order of the changes that led there, and differ when a client could see
 * a difference. Every item is preceded by its length, so that two contents cannot run together.
 */
#include "cql/schema.h"
#include "cql/schema_internal.h"

static void
digest_put(struct slice item, struct buffer *out)
{
	buffer_put_u32(out, slice_is_null(item) ? UINT32_MAX : (uint32_t)item.size);
	if (item.size > 0)
		buffer_put_slice(out, item);
}

static void
digest_put_type(const struct type *type, struct buffer *out)
{
	size_t at = out->size;

	buffer_put_u32(out, 0);
	if (type == NULL)
		return;
	type_print_class(type, out);
	if (!out->is_failed)
		buffer_patch_u32(out, at, (uint32_t)(out->size - at - 4));
}

static void
digest_put_map(const struct option_map *map, struct buffer *out)
{
	uint32_t i;

	buffer_put_u32(out, map->count);
	for (i = 0; i < map->count; i++) {
		digest_put(map->entries[i].key, out);
		digest_put(map->entries[i].value, out);
	}
}

static void
digest_put_column(const struct column_metadata *column, struct buffer *out)
{
	digest_put(column->name, out);
	digest_put_type(column->type, out);
	buffer_put_u8(out, (uint8_t)column->kind);
	buffer_put_u8(out, column->is_reversed);
	buffer_put_u16(out, column->position);
}

static void
digest_put_table(const struct table_metadata *table, struct buffer *out)
{
	uint32_t i;

	digest_put(table->name, out);
	buffer_put(out, table->id.bytes, sizeof(table->id.bytes));
	buffer_put_u32(out, table->flags);
	buffer_put_u32(out, table->column_count);
	for (i = 0; i < table->column_count; i++)
		digest_put_column(table->select_order[i], out);
	buffer_put_u32(out, table->dropped_count);
	for (i = 0; i < table->dropped_count; i++) {
		digest_put_column(&table->dropped[i].column, out);
		buffer_put_u64(out, (uint64_t)table->dropped[i].dropped_us);
	}
	buffer_put_u32(out, table->index_count);
	for (i = 0; i < table->index_count; i++) {
		digest_put(table->indexes[i].name, out);
		digest_put(slice_of_string(table->indexes[i].kind), out);
		digest_put_map(&table->indexes[i].options, out);
	}
	buffer_put_u32(out, table->trigger_count);
	for (i = 0; i < table->trigger_count; i++) {
		digest_put(table->triggers[i].name, out);
		digest_put(table->triggers[i].class_name, out);
	}
	table_options_print(&table->options, false, out);
}

bool
table_equal(const struct table_metadata *a, const struct table_metadata *b)
{
	struct buffer left, right;
	bool is_equal;

	if (a == b)
		return true;
	buffer_init(&left);
	buffer_init(&right);
	digest_put_table(a, &left);
	digest_put_table(b, &right);
	is_equal = !left.is_failed && !right.is_failed &&
	    slice_equal(buffer_slice(&left), buffer_slice(&right));
	buffer_fini(&left);
	buffer_fini(&right);
	return is_equal;
}

static void
digest_put_function(const struct function_metadata *function, struct buffer *out)
{
	uint32_t i;

	digest_put(function->name, out);
	buffer_put_u8(out, function->is_aggregate);
	buffer_put_u32(out, function->argument_count);
	for (i = 0; i < function->argument_count; i++) {
		if (function->argument_names != NULL)
			digest_put(function->argument_names[i], out);
		digest_put_type(function->argument_types[i], out);
	}
	digest_put_type(function->return_type, out);
	digest_put(function->body, out);
	digest_put(function->language, out);
	buffer_put_u8(out, function->called_on_null);
	digest_put(function->state_function, out);
	digest_put(function->final_function, out);
	digest_put_type(function->state_type, out);
	digest_put(function->initial_condition, out);
}

void
schema_digest_keyspace(const struct keyspace_metadata *keyspace, struct buffer *out)
{
	uint32_t i;

	digest_put(keyspace->name, out);
	buffer_put_u8(out, keyspace->durable_writes);
	digest_put_map(&keyspace->replication, out);
	buffer_put_u32(out, keyspace->table_count);
	for (i = 0; i < keyspace->table_count; i++)
		digest_put_table(keyspace->tables[i], out);
	buffer_put_u32(out, keyspace->type_count);
	for (i = 0; i < keyspace->type_count; i++)
		digest_put_type(keyspace->types[i].type, out);
	buffer_put_u32(out, keyspace->view_count);
	for (i = 0; i < keyspace->view_count; i++) {
		digest_put(keyspace->views[i].name, out);
		digest_put(keyspace->views[i].base_table, out);
		buffer_put_u8(out, keyspace->views[i].includes_all_columns);
		digest_put(keyspace->views[i].where_clause, out);
	}
	buffer_put_u32(out, keyspace->function_count);
	for (i = 0; i < keyspace->function_count; i++)
		digest_put_function(&keyspace->functions[i], out);
}
