/* SPDX-License-Identifier: Apache-2.0 */
#include "server/system_tables.h"
#include "base/alloc.h"
#include "cql/parser.h"
#include "server/schema_change.h"

enum { SYSTEM_TABLES_BLOCK = 16 << 10 };

static const struct {
	const char *name;
	const char *class_name;
	int32_t factor; /* default_keyspace_rf where that is more; 0: none */
	bool is_virtual;
} system_keyspaces[] = {
    {"system", "org.apache.cassandra.locator.LocalStrategy", 0, false},
    {"system_schema", "org.apache.cassandra.locator.LocalStrategy", 0, false},
    {"system_auth", "org.apache.cassandra.locator.SimpleStrategy", 1, false},
    {"system_distributed", "org.apache.cassandra.locator.SimpleStrategy", 3, false},
    {"system_traces", "org.apache.cassandra.locator.SimpleStrategy", 2, false},
    {"system_views", "org.apache.cassandra.locator.LocalStrategy", 0, true},
    {"system_virtual_schema", "org.apache.cassandra.locator.LocalStrategy", 0, true},
};

static int
system_table_build(const struct system_table_definition *definition, bool is_virtual,
    const struct schema *schema, struct arena *arena, struct table_metadata **out,
    struct error *err)
{
	struct table_builder *builder = NULL;
	struct statement *statement;
	const struct slice *no_id = NULL;
	struct buffer text;
	struct uuid id;
	int rc;

	buffer_init(&text);
	buffer_printf(&text, "CREATE TABLE %s.\"%s\" (%s) WITH %s", definition->keyspace,
	    definition->table, definition->columns, definition->options);
	rc = buffer_check(&text, err);
	if (rc == 0)
		rc = cql_parse(buffer_slice(&text), arena, &statement, err);
	if (rc == 0)
		rc = schema_build_table(&statement->create_table,
		    slice_of_string(definition->keyspace), schema, &builder, err);
	if (rc == 0)
		rc = schema_apply_options(
		    builder, &statement->create_table.properties, NULL, &no_id, err);
	if (rc == 0) {
		/* TableId.forSystemTable */
		buffer_clear(&text);
		buffer_printf(&text, "%s%s", definition->keyspace, definition->table);
		id = uuid_from_name(buffer_slice(&text));
		table_builder_set_id(builder, &id);
		table_builder_set_virtual(builder, is_virtual);
		rc = table_builder_build(builder, out, err);
	}
	if (rc != 0)
		error_prefix(err, "%s.%s", definition->keyspace, definition->table);
	table_builder_free(builder);
	buffer_fini(&text);
	return rc;
}

static int
system_keyspace_build(size_t index, const struct schema *schema, int32_t default_factor,
    struct arena *arena, struct keyspace_metadata **out, struct error *err)
{
	int32_t factor = system_keyspaces[index].factor;
	struct option_map replication = {NULL, 0};
	struct keyspace_metadata *keyspace, *changed;
	struct table_metadata *table;

	option_map_put(&replication, slice_of_string("class"),
	    slice_of_string(system_keyspaces[index].class_name), arena);
	if (factor > 0) {
		const char *text = arena_printf(
		    arena, "%d", (int)(factor > default_factor ? factor : default_factor));

		if (text == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for the system tables");
		option_map_put(&replication, slice_of_string("replication_factor"),
		    slice_of_string(text), arena);
	}
	keyspace = keyspace_new(slice_of_string(system_keyspaces[index].name), &replication, true,
	    system_keyspaces[index].is_virtual);
	for (size_t i = 0; i < system_table_definition_count; i++) {
		if (strcmp(system_table_definitions[i].keyspace, system_keyspaces[index].name) != 0)
			continue;
		if (system_table_build(&system_table_definitions[i],
			system_keyspaces[index].is_virtual, schema, arena, &table, err) != 0) {
			keyspace_unref(keyspace);
			return -1;
		}
		changed = keyspace_with_table(keyspace, table);
		keyspace_unref(keyspace);
		table_unref(table);
		keyspace = changed;
	}
	*out = keyspace;
	return 0;
}

int
system_tables_schema(int32_t default_factor, struct schema **out, struct error *err)
{
	struct schema *schema = schema_new(), *changed;
	struct keyspace_metadata *keyspace = NULL;
	struct arena arena;
	int rc = 0;

	arena_init(&arena, SYSTEM_TABLES_BLOCK);
	for (size_t i = 0; i < sizeof(system_keyspaces) / sizeof(system_keyspaces[0]); i++) {
		rc = system_keyspace_build(i, schema, default_factor, &arena, &keyspace, err);
		if (rc != 0)
			break;
		changed = schema_with_keyspace(schema, keyspace);
		keyspace_unref(keyspace);
		schema_unref(schema);
		schema = changed;
	}
	arena_fini(&arena);
	if (rc != 0) {
		schema_unref(schema);
		return -1;
	}
	*out = schema;
	return 0;
}
