/* SPDX-License-Identifier: Apache-2.0 */
/* Making tables: collect, check, lay out. */
#include <assert.h>
#include <stdlib.h>
#include <openssl/rand.h>
#include "base/alloc.h"
#include "cql/schema.h"
#include "cql/schema_internal.h"

struct builder_column {
	struct slice name;
	const struct type *type;
	enum column_kind kind;
	bool is_reversed;
};

/* Everything grows in arrays of the heap; slices and types lie in the arena. */
struct table_builder {
	struct arena arena;
	struct slice keyspace;
	struct slice name;
	struct uuid id;
	bool has_id;
	uint32_t flags;
	bool is_virtual;
	bool is_view;
	bool is_index;
	void *user; /* of the table this one replaces */
	struct table_options options;

	uint32_t column_count;
	struct builder_column *columns; /* owned */
	uint32_t dropped_count;
	struct dropped_column *dropped; /* owned */
	uint32_t index_count;
	struct index_metadata *indexes; /* owned */
	uint32_t trigger_count;
	struct trigger_metadata *triggers; /* owned */
};

/* One more element at the end of an array whose capacity is the next power of two. */
static void *
table_builder_extend(void *array, uint32_t count, size_t size)
{
	if (count == 0)
		return xrealloc(array, 4 * size);
	if (count >= 4 && (count & (count - 1)) == 0)
		return xrealloc(array, 2 * (size_t)count * size);
	return array;
}

static void
table_builder_delete(void *array, uint32_t count, uint32_t at, size_t size)
{
	uint8_t *bytes = array;

	memmove(bytes + at * size, bytes + (at + 1) * size, (count - at - 1) * size);
}

struct table_builder *
table_builder_new(struct slice keyspace, struct slice name)
{
	struct table_builder *builder = xzalloc(sizeof(*builder));

	arena_init(&builder->arena, 4096);
	builder->keyspace = schema_copy(&builder->arena, keyspace);
	builder->name = schema_copy(&builder->arena, name);
	builder->flags = TABLE_COMPOUND;
	table_options_init(&builder->options);
	return builder;
}

static void
table_builder_take_columns(
    struct table_builder *builder, const struct column_metadata *columns, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		table_builder_add_column(builder, columns[i].kind, columns[i].name, columns[i].type,
		    columns[i].is_reversed);
}

struct table_builder *
table_builder_from(const struct table_metadata *table)
{
	struct table_builder *builder = table_builder_new(table->keyspace, table->name);
	uint32_t i;

	table_builder_set_id(builder, &table->id);
	builder->flags = table->flags;
	builder->is_virtual = table->is_virtual;
	builder->is_view = table->is_view;
	builder->is_index = table->is_index;
	builder->user = atomic_load_explicit(
	    &((struct table_metadata *)(uintptr_t)table)->user, memory_order_acquire);
	table_options_copy(&builder->options, &table->options, &builder->arena);
	table_builder_take_columns(builder, table->partition_key, table->partition_key_count);
	table_builder_take_columns(builder, table->clustering, table->clustering_count);
	table_builder_take_columns(builder, table->statics, table->static_count);
	table_builder_take_columns(builder, table->regulars, table->regular_count);
	for (i = 0; i < table->dropped_count; i++)
		table_builder_add_dropped(builder, table->dropped[i].column.kind,
		    table->dropped[i].column.name, table->dropped[i].column.type,
		    table->dropped[i].dropped_us);
	for (i = 0; i < table->index_count; i++)
		table_builder_add_index(builder, table->indexes[i].name, table->indexes[i].kind,
		    table->indexes[i].target, &table->indexes[i].options);
	for (i = 0; i < table->trigger_count; i++)
		table_builder_add_trigger(
		    builder, table->triggers[i].name, table->triggers[i].class_name);
	return builder;
}

void
table_builder_free(struct table_builder *builder)
{
	if (builder == NULL)
		return;
	free(builder->columns);
	free(builder->dropped);
	free(builder->indexes);
	free(builder->triggers);
	arena_fini(&builder->arena);
	free(builder);
}

void
table_builder_set_name(struct table_builder *builder, struct slice name)
{
	builder->name = schema_copy(&builder->arena, name);
}

void
table_builder_set_id(struct table_builder *builder, const struct uuid *id)
{
	builder->id = *id;
	builder->has_id = true;
}

void
table_builder_set_flags(struct table_builder *builder, uint32_t flags)
{
	builder->flags = flags;
}

void
table_builder_set_virtual(struct table_builder *builder, bool is_virtual)
{
	builder->is_virtual = is_virtual;
}

void
table_builder_set_view(struct table_builder *builder, bool is_view)
{
	builder->is_view = is_view;
}

void
table_builder_set_index(struct table_builder *builder, bool is_index)
{
	builder->is_index = is_index;
}

struct table_options *
table_builder_options(struct table_builder *builder)
{
	return &builder->options;
}

struct arena *
table_builder_arena(struct table_builder *builder)
{
	return &builder->arena;
}

static struct builder_column *
table_builder_find(struct table_builder *builder, struct slice name)
{
	uint32_t i;

	for (i = 0; i < builder->column_count; i++) {
		if (slice_equal(builder->columns[i].name, name))
			return &builder->columns[i];
	}
	return NULL;
}

void
table_builder_add_column(struct table_builder *builder, enum column_kind kind, struct slice name,
    const struct type *type, bool is_reversed)
{
	struct builder_column *column = table_builder_find(builder, name);
	bool is_wrapped;

	type = type_unreversed(type, &is_wrapped);
	if (column == NULL) {
		builder->columns = table_builder_extend(
		    builder->columns, builder->column_count, sizeof(*builder->columns));
		column = &builder->columns[builder->column_count++];
		column->name = schema_copy(&builder->arena, name);
	}
	column->kind = kind;
	column->type = schema_copy_type(&builder->arena, type);
	column->is_reversed = kind == COLUMN_CLUSTERING && (is_reversed || is_wrapped);
}

void
table_builder_add(
    struct table_builder *builder, enum column_kind kind, const char *name, const char *cql_type)
{
	const struct type *type = NULL;
	struct error err;
	int rc =
	    type_parse_cql(slice_of_string(cql_type), NULL, NULL, &builder->arena, &type, &err);

	assert(rc == 0);
	(void)rc;
	table_builder_add_column(builder, kind, slice_of_string(name), type, false);
}

bool
table_builder_remove_column(
    struct table_builder *builder, struct slice name, bool is_dropped, int64_t dropped_us)
{
	struct builder_column *column = table_builder_find(builder, name);

	if (column == NULL)
		return false;
	if (is_dropped)
		table_builder_add_dropped(
		    builder, column->kind, column->name, column->type, dropped_us);
	table_builder_delete(builder->columns, builder->column_count,
	    (uint32_t)(column - builder->columns), sizeof(*column));
	builder->column_count--;
	return true;
}

void
table_builder_add_dropped(struct table_builder *builder, enum column_kind kind, struct slice name,
    const struct type *type, int64_t dropped_us)
{
	struct dropped_column *dropped = NULL;
	uint32_t i;

	for (i = 0; i < builder->dropped_count; i++) {
		if (slice_equal(builder->dropped[i].column.name, name))
			dropped = &builder->dropped[i];
	}
	if (dropped == NULL) {
		builder->dropped = table_builder_extend(
		    builder->dropped, builder->dropped_count, sizeof(*builder->dropped));
		dropped = &builder->dropped[builder->dropped_count++];
	}
	memset(dropped, 0, sizeof(*dropped));
	dropped->column.name = schema_copy(&builder->arena, name);
	/* Kept as it was, multi-cell or not: old SSTables have its cells in that form. A user
	 * type may be dropped and altered meanwhile, which this copy does not feel. */
	dropped->column.type = schema_copy_type(&builder->arena, type);
	dropped->column.kind = kind;
	dropped->column.is_complex = type->is_multi_cell;
	dropped->dropped_us = dropped_us;
}

bool
table_builder_rename_column(struct table_builder *builder, struct slice from, struct slice to)
{
	struct builder_column *column = table_builder_find(builder, from);

	if (column == NULL)
		return false;
	column->name = schema_copy(&builder->arena, to);
	return true;
}

bool
table_builder_replace_udt(struct table_builder *builder, const struct type *udt)
{
	bool has_changed = false;
	uint32_t i;

	for (i = 0; i < builder->column_count; i++) {
		const struct type *type =
		    type_replace_udt(&builder->arena, builder->columns[i].type, udt);

		if (type == NULL)
			abort();
		has_changed |= type != builder->columns[i].type;
		/* The new type points into udt's memory. */
		if (type != builder->columns[i].type)
			builder->columns[i].type = schema_copy_type(&builder->arena, type);
	}
	return has_changed;
}

void
table_builder_add_index(struct table_builder *builder, struct slice name, const char *kind,
    struct slice target, const struct option_map *options)
{
	struct index_metadata *index;

	table_builder_remove_index(builder, name);
	builder->indexes =
	    table_builder_extend(builder->indexes, builder->index_count, sizeof(*builder->indexes));
	index = &builder->indexes[builder->index_count++];
	index->name = schema_copy(&builder->arena, name);
	index->kind = arena_strdup(&builder->arena, kind);
	index->target = schema_copy(&builder->arena, target);
	index->options = option_map_copy(&builder->arena, options);
}

bool
table_builder_remove_index(struct table_builder *builder, struct slice name)
{
	uint32_t i;

	for (i = 0; i < builder->index_count; i++) {
		if (!slice_equal(builder->indexes[i].name, name))
			continue;
		table_builder_delete(
		    builder->indexes, builder->index_count, i, sizeof(*builder->indexes));
		builder->index_count--;
		return true;
	}
	return false;
}

void
table_builder_add_trigger(struct table_builder *builder, struct slice name, struct slice class_name)
{
	struct trigger_metadata *trigger;

	table_builder_remove_trigger(builder, name);
	builder->triggers = table_builder_extend(
	    builder->triggers, builder->trigger_count, sizeof(*builder->triggers));
	trigger = &builder->triggers[builder->trigger_count++];
	trigger->name = schema_copy(&builder->arena, name);
	trigger->class_name = schema_copy(&builder->arena, class_name);
}

bool
table_builder_remove_trigger(struct table_builder *builder, struct slice name)
{
	uint32_t i;

	for (i = 0; i < builder->trigger_count; i++) {
		if (!slice_equal(builder->triggers[i].name, name))
			continue;
		table_builder_delete(
		    builder->triggers, builder->trigger_count, i, sizeof(*builder->triggers));
		builder->trigger_count--;
		return true;
	}
	return false;
}

/* ---- Building ------------------------------------------------------------------------------ */

static bool
table_is_name(struct slice name)
{
	size_t i;

	if (name.size == 0 || name.size > SCHEMA_TABLE_NAME_MAX)
		return false;
	for (i = 0; i < name.size; i++) {
		uint8_t c = name.data[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '_')
			return false;
	}
	return true;
}

static int
table_builder_fail(const struct table_builder *builder, const char *what, struct slice column,
    const char *rest, struct error *err)
{
	return error_set(err, ERROR_CONFIG, "%.*s.%.*s: %s%.*s%s", (int)builder->keyspace.size,
	    (const char *)builder->keyspace.data, (int)builder->name.size,
	    (const char *)builder->name.data, what, (int)column.size,
	    column.size > 0 ? (const char *)column.data : "", rest);
}

static int
table_builder_check(const struct table_builder *builder, struct error *err)
{
	bool is_counter = (builder->flags & TABLE_COUNTER) != 0;
	uint32_t i, keys = 0;

	/* A hidden index table is named "table.index". */
	if (!builder->is_index && !table_is_name(builder->name))
		return table_builder_fail(builder,
		    "Table name must not be empty, more than 48 characters long, or contain "
		    "non-alphanumeric-underscore characters (got \"",
		    builder->name, "\")", err);
	for (i = 0; i < builder->column_count; i++) {
		const struct builder_column *column = &builder->columns[i];

		if (column->kind == COLUMN_PARTITION_KEY)
			keys++;
		if (column->kind == COLUMN_PARTITION_KEY || column->kind == COLUMN_CLUSTERING)
			continue;
		/* The value column of a super table is a map and stands for counters there. */
		if (is_counter && !type_references_counter(column->type))
			return table_builder_fail(builder, "Cannot have a non counter column (\"",
			    column->name, "\") in a counter table", err);
		if (!is_counter && type_references_counter(column->type))
			return table_builder_fail(builder, "Cannot have a counter column (\"",
			    column->name, "\") in a non counter table", err);
	}
	if (keys == 0)
		return table_builder_fail(
		    builder, "Missing partition keys for table ", builder->name, "", err);
	if (builder->column_count > UINT16_MAX)
		return table_builder_fail(builder, "Too many columns", slice_empty, "", err);
	return 0;
}

/* Columns order: simple before complex, then by name; only for statics and regulars. */
static int
table_column_order(const void *left, const void *right)
{
	const struct column_metadata *a = left;
	const struct column_metadata *b = right;

	if (a->is_complex != b->is_complex)
		return a->is_complex ? 1 : -1;
	return slice_compare(a->name, b->name);
}

static int
table_select_order(const void *left, const void *right)
{
	const struct column_metadata *const *a = left;
	const struct column_metadata *const *b = right;

	return slice_compare((*a)->name, (*b)->name);
}

/* The columns of one kind, laid out at *columns. */
static void
table_builder_lay_out(const struct table_builder *builder, struct table_metadata *table,
    enum column_kind kind, struct column_metadata **columns, uint32_t *count, uint32_t *simple)
{
	struct column_metadata *out;
	uint32_t i, n = 0;

	for (i = 0; i < builder->column_count; i++)
		n += builder->columns[i].kind == kind;
	out = schema_alloc(&table->arena, n, sizeof(*out));
	n = 0;
	for (i = 0; i < builder->column_count; i++) {
		const struct builder_column *column = &builder->columns[i];

		if (column->kind != kind)
			continue;
		out[n].name = schema_copy(&table->arena, column->name);
		out[n].type = schema_copy_type(&table->arena, column->type);
		out[n].kind = kind;
		out[n].is_reversed = column->is_reversed;
		out[n].is_complex = column->type->is_multi_cell;
		n++;
	}
	if (simple != NULL)
		qsort(out, n, sizeof(*out), table_column_order);
	for (i = 0; i < n; i++) {
		out[i].position = (uint16_t)i;
		if (simple != NULL && !out[i].is_complex)
			*simple = i + 1;
	}
	*columns = out;
	*count = n;
}

static void
table_builder_index_columns(struct table_metadata *table)
{
	struct column_metadata *const lists[] = {
	    table->partition_key, table->clustering, table->statics, table->regulars};
	const uint32_t counts[] = {table->partition_key_count, table->clustering_count,
	    table->static_count, table->regular_count};
	uint32_t kind, i, n = 0;

	table->column_count = counts[0] + counts[1] + counts[2] + counts[3];
	table->select_order =
	    schema_alloc(&table->arena, table->column_count, sizeof(*table->select_order));
	map_init(&table->columns_by_name);
	for (kind = 0; kind < 4; kind++) {
		uint32_t start = n;

		for (i = 0; i < counts[kind]; i++) {
			table->select_order[n++] = &lists[kind][i];
			map_put(&table->columns_by_name, lists[kind][i].name, &lists[kind][i]);
		}
		if (kind >= 2)
			qsort(&table->select_order[start], counts[kind],
			    sizeof(*table->select_order), table_select_order);
	}
}

static int
table_dropped_order(const void *left, const void *right)
{
	const struct dropped_column *a = left;
	const struct dropped_column *b = right;

	return slice_compare(a->column.name, b->column.name);
}

static int
table_index_order(const void *left, const void *right)
{
	const struct index_metadata *a = left;
	const struct index_metadata *b = right;

	return slice_compare(a->name, b->name);
}

static void
table_builder_copy_rest(const struct table_builder *builder, struct table_metadata *table)
{
	struct arena *arena = &table->arena;
	uint32_t i;

	table->dropped_count = builder->dropped_count;
	table->dropped = schema_alloc(arena, builder->dropped_count, sizeof(*table->dropped));
	for (i = 0; i < builder->dropped_count; i++) {
		table->dropped[i] = builder->dropped[i];
		table->dropped[i].column.name = schema_copy(arena, builder->dropped[i].column.name);
		table->dropped[i].column.type =
		    schema_copy_type(arena, builder->dropped[i].column.type);
	}
	qsort(table->dropped, table->dropped_count, sizeof(*table->dropped), table_dropped_order);

	table->index_count = builder->index_count;
	table->indexes = schema_alloc(arena, builder->index_count, sizeof(*table->indexes));
	for (i = 0; i < builder->index_count; i++) {
		table->indexes[i].name = schema_copy(arena, builder->indexes[i].name);
		table->indexes[i].kind = arena_strdup(arena, builder->indexes[i].kind);
		table->indexes[i].target = schema_copy(arena, builder->indexes[i].target);
		table->indexes[i].options = option_map_copy(arena, &builder->indexes[i].options);
	}
	qsort(table->indexes, table->index_count, sizeof(*table->indexes), table_index_order);

	table->trigger_count = builder->trigger_count;
	table->triggers = schema_alloc(arena, builder->trigger_count, sizeof(*table->triggers));
	for (i = 0; i < builder->trigger_count; i++) {
		table->triggers[i].name = schema_copy(arena, builder->triggers[i].name);
		table->triggers[i].class_name = schema_copy(arena, builder->triggers[i].class_name);
	}
}

/* A fresh id: as unguessable as any, since Cassandra's time-based ones only need to be unique. */
static void
table_builder_make_id(struct table_builder *builder)
{
	uint8_t random[16];

	if (builder->has_id)
		return;
	if (RAND_bytes(random, sizeof(random)) != 1)
		abort();
	builder->id = uuid_from_random(random);
	builder->has_id = true;
}

int
table_builder_build(struct table_builder *builder, struct table_metadata **out, struct error *err)
{
	struct table_metadata *table;

	if (table_builder_check(builder, err) != 0 ||
	    table_options_validate(&builder->options, err) != 0)
		return -1;
	table_builder_make_id(builder);
	table = xzalloc(sizeof(*table));
	arena_init(&table->arena, 4096);
	atomic_init(&table->refs, 1);
	atomic_init(&table->user, builder->user);
	table->keyspace = schema_copy(&table->arena, builder->keyspace);
	table->name = schema_copy(&table->arena, builder->name);
	table->id = builder->id;
	table->flags = builder->flags;
	table->is_virtual = builder->is_virtual;
	table->is_view = builder->is_view;
	table->is_index = builder->is_index;
	table->is_compact =
	    !(builder->flags & TABLE_COMPOUND) || (builder->flags & (TABLE_DENSE | TABLE_SUPER));
	table_builder_lay_out(builder, table, COLUMN_PARTITION_KEY, &table->partition_key,
	    &table->partition_key_count, NULL);
	table_builder_lay_out(
	    builder, table, COLUMN_CLUSTERING, &table->clustering, &table->clustering_count, NULL);
	table_builder_lay_out(builder, table, COLUMN_STATIC, &table->statics, &table->static_count,
	    &table->static_simple_count);
	table_builder_lay_out(builder, table, COLUMN_REGULAR, &table->regulars,
	    &table->regular_count, &table->regular_simple_count);
	table_builder_index_columns(table);
	table_builder_copy_rest(builder, table);
	table_options_copy(&table->options, &builder->options, &table->arena);
	*out = table;
	return 0;
}
