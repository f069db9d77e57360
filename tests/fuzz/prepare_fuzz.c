/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements of any kind against a schema of every kind of column, prepared and, for SELECT, bound to
 * values of any kind: an answer or an error, never a crash. A line feed ends the text; what follows are the
 * bytes of the values.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "server/modification.h"
#include "server/prepare.h"
#include "server/select.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
	enum column_kind kind;
	const char *name, *type;
} fuzz_columns[] = {{COLUMN_PARTITION_KEY, "k", "int"}, {COLUMN_PARTITION_KEY, "q", "text"},
    {COLUMN_CLUSTERING, "c", "int"}, {COLUMN_CLUSTERING, "d", "timeuuid"},
    {COLUMN_CLUSTERING, "e", "frozen<list<text>>"}, {COLUMN_STATIC, "s", "int"},
    {COLUMN_STATIC, "sm", "map<text, int>"}, {COLUMN_REGULAR, "v", "int"},
    {COLUMN_REGULAR, "w", "text"}, {COLUMN_REGULAR, "l", "list<int>"},
    {COLUMN_REGULAR, "st", "set<text>"}, {COLUMN_REGULAR, "m", "map<text, int>"},
    {COLUMN_REGULAR, "t", "frozen<tuple<int, text>>"}, {COLUMN_REGULAR, "f", "vector<float, 2>"},
    {COLUMN_REGULAR, "ts", "timestamp"}, {COLUMN_REGULAR, "du", "duration"},
    {COLUMN_REGULAR, "de", "decimal"}, {COLUMN_REGULAR, "u", "uuid"}};

static struct keyspace_metadata *
fuzz_add_table(
    struct keyspace_metadata *keyspace, const char *name, bool is_counter, const struct type *udt)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string(name));
	struct keyspace_metadata *changed;
	struct table_metadata *table;
	struct error err;

	if (is_counter) {
		table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
		table_builder_add(builder, COLUMN_REGULAR, "n", "counter");
		table_builder_set_flags(builder, TABLE_COMPOUND | TABLE_COUNTER);
	} else {
		for (size_t i = 0; i < sizeof(fuzz_columns) / sizeof(fuzz_columns[0]); i++)
			table_builder_add(builder, fuzz_columns[i].kind, fuzz_columns[i].name,
			    fuzz_columns[i].type);
		table_builder_add_column(
		    builder, COLUMN_REGULAR, slice_of_string("ud"), udt, false);
	}
	if (table_builder_build(builder, &table, &err) != 0)
		abort();
	table_builder_free(builder);
	changed = keyspace_with_table(keyspace, table);
	table_unref(table);
	keyspace_unref(keyspace);
	return changed;
}

static struct schema *
fuzz_schema(void)
{
	struct slice names[2] = {slice_of_string("a"), slice_of_string("b")};
	const struct type *types[2] = {type_native(TYPE_INT), type_native(TYPE_TEXT)};
	struct option_map replication = {NULL, 0};
	struct schema *empty = schema_new(), *schema;
	struct keyspace_metadata *keyspace, *changed;
	const struct type *udt;
	struct arena arena;

	arena_init(&arena, 4096);
	option_map_put(
	    &replication, slice_of_string("class"), slice_of_string("LocalStrategy"), &arena);
	keyspace = keyspace_new(slice_of_string("ks"), &replication, true, false);
	udt = type_udt(&arena, slice_of_string("ks"), slice_of_string("ut"), names, types, 2, true);
	changed = keyspace_with_type(keyspace, udt);
	keyspace_unref(keyspace);
	keyspace = fuzz_add_table(changed, "t", false, udt);
	keyspace = fuzz_add_table(keyspace, "n", true, udt);
	schema = schema_with_keyspace(empty, keyspace);
	keyspace_unref(keyspace);
	schema_unref(empty);
	arena_fini(&arena);
	return schema;
}

/* Values out of the bytes: a length, then so many bytes; 255 is null, 254 unset. */
static void
fuzz_values(struct slice bytes, struct bound_value *values, uint32_t count)
{
	struct reader reader = reader_of(bytes);

	for (uint32_t i = 0; i < count; i++) {
		uint8_t length = reader_left(&reader) > 0 ? reader_u8(&reader) : 255;

		values[i] = (struct bound_value){slice_null, length == 254};
		if (length < 254)
			values[i].value = reader_bytes(
			    &reader, length < reader_left(&reader) ? length : reader_left(&reader));
	}
}

static void
fuzz_select(const struct select_plan *plan, const struct term_context *context)
{
	const struct restrictions *restrictions = &plan->restrictions;
	const struct filter_expression *filters;
	struct clustering_range *ranges;
	struct token_range tokens;
	struct slice *keys;
	struct error err;
	uint32_t count;
	bool is_empty;

	if (restrictions_ranges(restrictions, context, &ranges, &count, &err) == 0) {
		for (uint32_t i = 0; i < count; i++)
			assert(slice_compare(ranges[i].start_position, ranges[i].end_position) < 0);
	}
	restrictions_filters(restrictions, context, &filters, &count, &err);
	restrictions_token_range(restrictions, context, &tokens, &is_empty, &err);
	if (!restrictions->is_key_range)
		restrictions_keys(restrictions, context, &keys, &count, &err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct schema *schema;
	const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
	struct slice text = slice_of(data, end != NULL ? (size_t)(end - data) : size);
	struct slice rest = end != NULL ? slice_of(end + 1, size - text.size - 1) : slice_empty;
	struct prepared_statement *plan;
	struct function_context functions = {0};
	struct term_context context = {.functions = &functions};
	struct error err;
	struct arena arena;

	fuzz_memory_certain(true);
	if (schema == NULL)
		schema = fuzz_schema();
	fuzz_memory_certain(false);
	if (size == 0)
		text = slice_empty;
	if (prepare_statement(schema, slice_of_string("ks"), text, &plan, &err) != 0) {
		assert(err.code != ERROR_NONE && err.text[0] != '\0');
		return 0;
	}
	arena_init(&arena, 4096);
	context.arena = &arena;
	context.value_count = plan->marker_count;
	context.values = arena_calloc(&arena, plan->marker_count, sizeof(*context.values));
	for (uint32_t i = 0; i < plan->marker_count; i++)
		assert(plan->markers[i].type != NULL);
	if (context.values != NULL)
		fuzz_values(rest, (struct bound_value *)context.values, plan->marker_count);
	if (context.values != NULL && plan->kind == STATEMENT_SELECT &&
	    plan->select->restrictions.filter_count < 50)
		fuzz_select(plan->select, &context);
	arena_fini(&arena);
	prepared_statement_unref(plan);
	return 0;
}
