/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DESCRIBE: rows of names, or of names and CREATE statements. Cassandra:
 * cql3/statements/DescribeStatement.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "cql/describe.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/node.h"

struct describe_row {
	struct slice keyspace, type, name, statement;
};

struct describe {
	struct execution *execution;
	struct arena *arena;
	const struct schema *schema;
	const struct statement_describe *statement;
	bool has_statements; /* the fourth column */
	struct describe_row *rows;
	uint32_t count, capacity;
	bool is_failed; /* no memory */
};

enum { DESCRIBE_STATE_SIZE = 20 };

static struct buffer
describe_text(void)
{
	struct buffer text;

	buffer_init(&text);
	return text;
}

/* Names are shown as CQL writes them. */
static void
describe_quote(struct describe *describe, struct describe_row *row)
{
	struct buffer quoted = describe_text();

	describe_name(row->keyspace, &quoted);
	row->keyspace = arena_copy(describe->arena, buffer_slice(&quoted));
	buffer_clear(&quoted);
	describe_name(row->name, &quoted);
	row->name = arena_copy(describe->arena, buffer_slice(&quoted));
	buffer_fini(&quoted);
}

/* Takes the text over. */
static void
describe_add(struct describe *describe, struct slice keyspace, const char *type, struct slice name,
    struct buffer *text)
{
	struct describe_row *row;

	if (describe->count == describe->capacity) {
		uint32_t capacity = describe->capacity == 0 ? 64 : describe->capacity * 2;
		struct describe_row *rows = arena_calloc(describe->arena, capacity, sizeof(*rows));

		if (rows == NULL) {
			describe->is_failed = true;
			buffer_fini(text);
			return;
		}
		if (describe->count > 0)
			memcpy(rows, describe->rows, describe->count * sizeof(*rows));
		describe->rows = rows;
		describe->capacity = capacity;
	}
	row = &describe->rows[describe->count++];
	row->keyspace = keyspace;
	row->name = name;
	row->type = slice_of_string(type);
	row->statement = arena_copy(describe->arena, buffer_slice(text));
	buffer_fini(text);
	if (describe->has_statements)
		describe_quote(describe, row);
}

/* ---- Elements ------------------------------------------------------------------------------ */

static void
describe_add_index(struct describe *describe, const struct table_metadata *table,
    const struct index_metadata *index)
{
	struct buffer text = describe_text();

	describe_index(table, index, false, &text);
	describe_add(describe, table->keyspace, "index", index->name, &text);
}

static void
describe_add_table(struct describe *describe, const struct keyspace_metadata *keyspace,
    const struct table_metadata *table)
{
	struct buffer text = describe_text();

	describe_table(keyspace, table, describe->statement->with_internals, false, &text);
	describe_add(describe, keyspace->name, table->is_view ? "materialized_view" : "table",
	    table->name, &text);
	for (uint32_t i = 0; i < table->index_count; i++)
		describe_add_index(describe, table, &table->indexes[i]);
}

static void
describe_add_type(
    struct describe *describe, const struct keyspace_metadata *keyspace, const struct type *udt)
{
	struct buffer text = describe_text();

	describe_type(udt, false, &text);
	describe_add(describe, keyspace->name, "type", udt->name, &text);
}

/* Types before those that use them. */
static void
describe_add_types(struct describe *describe, const struct keyspace_metadata *keyspace)
{
	bool *is_done = arena_calloc(describe->arena, keyspace->type_count, sizeof(*is_done));
	bool has_changed = true;

	while (is_done != NULL && has_changed) {
		has_changed = false;
		for (uint32_t i = 0; i < keyspace->type_count; i++) {
			const struct type *udt = keyspace->types[i].type;
			bool is_ready = !is_done[i];

			for (uint32_t n = 0; n < keyspace->type_count && is_ready; n++) {
				const struct type *other = keyspace->types[n].type;

				if (n == i || is_done[n])
					continue;
				for (uint32_t f = 0; f < udt->param_count; f++)
					is_ready = is_ready &&
					    !type_uses_udt(
						udt->params[f], other->keyspace, other->name);
			}
			if (!is_ready)
				continue;
			describe_add_type(describe, keyspace, udt);
			is_done[i] = true;
			has_changed = true;
		}
	}
}

static void
describe_add_keyspace(
    struct describe *describe, const struct keyspace_metadata *keyspace, bool is_only)
{
	struct buffer text = describe_text();

	describe_keyspace(keyspace, describe->statement->with_internals, false, &text);
	describe_add(describe, keyspace->name, "keyspace", keyspace->name, &text);
	if (is_only)
		return;
	describe_add_types(describe, keyspace);
	for (uint32_t i = 0; i < keyspace->table_count; i++) {
		if (!keyspace->tables[i]->is_view)
			describe_add_table(describe, keyspace, keyspace->tables[i]);
	}
	for (uint32_t i = 0; i < keyspace->table_count; i++) {
		if (keyspace->tables[i]->is_view)
			describe_add_table(describe, keyspace, keyspace->tables[i]);
	}
	for (uint32_t i = 0; i < keyspace->function_count; i++) {
		text = describe_text();
		describe_function(keyspace, &keyspace->functions[i], false, &text);
		describe_add(describe, keyspace->name,
		    keyspace->functions[i].is_aggregate ? "aggregate" : "function",
		    keyspace->functions[i].name, &text);
	}
}

/* ---- The forms ----------------------------------------------------------------------------- */

static const struct keyspace_metadata *
describe_find_keyspace(struct describe *describe, struct slice name, struct error *err)
{
	const struct keyspace_metadata *keyspace;

	if (slice_is_null(name))
		name = describe->execution->keyspace;
	if (slice_is_null(name)) {
		error_set(err, ERROR_INVALID, "No keyspace specified and no current keyspace");
		return NULL;
	}
	keyspace = schema_keyspace(describe->schema, name);
	if (keyspace == NULL)
		error_set(err, ERROR_INVALID, "'%.*s' not found in keyspaces", (int)name.size,
		    (const char *)name.data);
	return keyspace;
}

static int
describe_not_found(struct error *err, const char *format, struct slice name,
    const struct keyspace_metadata *keyspace)
{
	char text[512];

	snprintf(text, sizeof(text), format, (int)name.size, (const char *)name.data,
	    (int)keyspace->name.size, (const char *)keyspace->name.data);
	return error_set(err, ERROR_INVALID, "%s", text);
}

static bool
describe_find_index(
    struct describe *describe, const struct keyspace_metadata *keyspace, struct slice name)
{
	for (uint32_t i = 0; i < keyspace->table_count; i++) {
		const struct index_metadata *index = table_index(keyspace->tables[i], name);

		if (index == NULL)
			continue;
		describe_add_index(describe, keyspace->tables[i], index);
		return true;
	}
	return false;
}

static int
describe_element(struct describe *describe, struct error *err)
{
	const struct statement_describe *statement = describe->statement;
	struct slice name = ast_slice(statement->name.name);
	const struct keyspace_metadata *keyspace =
	    describe_find_keyspace(describe, ast_slice(statement->name.keyspace), err);
	const struct table_metadata *table;
	const struct type *udt;

	if (keyspace == NULL)
		return -1;
	switch (statement->kind) {
	case AST_DESCRIBE_TABLE:
		table = keyspace_table(keyspace, name);
		if (table == NULL || table->is_view)
			return describe_not_found(
			    err, "Table '%.*s' not found in keyspace '%.*s'", name, keyspace);
		describe_add_table(describe, keyspace, table);
		return 0;
	case AST_DESCRIBE_VIEW:
		table = keyspace_table(keyspace, name);
		if (table == NULL || !table->is_view)
			return describe_not_found(
			    err, "Materialized view '%.*s' not found in '%.*s'", name, keyspace);
		describe_add_table(describe, keyspace, table);
		return 0;
	case AST_DESCRIBE_INDEX:
		if (!describe_find_index(describe, keyspace, name))
			return describe_not_found(err,
			    "Table for existing index '%.*s' not found in '%.*s'", name, keyspace);
		return 0;
	case AST_DESCRIBE_TYPE:
		udt = keyspace_type(keyspace, name);
		if (udt == NULL)
			return describe_not_found(
			    err, "User defined type '%.*s' not found in '%.*s'", name, keyspace);
		describe_add_type(describe, keyspace, udt);
		return 0;
	default:
		for (uint32_t i = 0; i < keyspace->function_count; i++) {
			struct buffer text = describe_text();

			if (!slice_equal(keyspace->functions[i].name, name) ||
			    keyspace->functions[i].is_aggregate !=
				(statement->kind == AST_DESCRIBE_AGGREGATE)) {
				buffer_fini(&text);
				continue;
			}
			describe_function(keyspace, &keyspace->functions[i], false, &text);
			describe_add(describe, keyspace->name,
			    statement->kind == AST_DESCRIBE_AGGREGATE ? "aggregate" : "function",
			    name, &text);
		}
		if (describe->count == 0)
			return describe_not_found(err,
			    statement->kind == AST_DESCRIBE_AGGREGATE
				? "User defined aggregate '%.*s' not found in '%.*s'"
				: "User defined function '%.*s' not found in '%.*s'",
			    name, keyspace);
		return 0;
	}
}

/* DESCRIBE name: a keyspace, then a table, view or index of the session's. */
static int
describe_any(struct describe *describe, struct error *err)
{
	const struct statement_describe *statement = describe->statement;
	struct slice name = ast_slice(statement->name.name);
	struct slice in = ast_slice(statement->name.keyspace);
	const struct keyspace_metadata *keyspace;
	const struct table_metadata *table;

	if (slice_is_null(in)) {
		keyspace = schema_keyspace(describe->schema, name);
		if (keyspace != NULL) {
			describe_add_keyspace(describe, keyspace, false);
			return 0;
		}
		in = describe->execution->keyspace;
		if (slice_is_null(in))
			return error_set(err, ERROR_INVALID, "'%.*s' not found in keyspaces",
			    (int)name.size, (const char *)name.data);
	}
	keyspace = describe_find_keyspace(describe, in, err);
	if (keyspace == NULL)
		return -1;
	table = keyspace_table(keyspace, name);
	if (table != NULL) {
		describe_add_table(describe, keyspace, table);
		return 0;
	}
	if (describe_find_index(describe, keyspace, name))
		return 0;
	return describe_not_found(err, "'%.*s' not found in keyspace '%.*s'", name, keyspace);
}

/* Names are listed without regard to case. */
static int
describe_compare_names(const void *a, const void *b)
{
	const struct describe_row *left = a, *right = b;
	size_t size = left->name.size < right->name.size ? left->name.size : right->name.size;
	int order = slice_compare(left->keyspace, right->keyspace);

	if (order != 0)
		return order;
	for (size_t i = 0; i < size && order == 0; i++)
		order = tolower(left->name.data[i]) - tolower(right->name.data[i]);
	return order != 0 ? order : (int)left->name.size - (int)right->name.size;
}

/* TABLES, TYPES, FUNCTIONS, AGGREGATES: of the session's keyspace, or of all. */
static void
describe_list(struct describe *describe)
{
	struct slice only = describe->execution->keyspace;

	for (uint32_t i = 0; i < describe->schema->keyspace_count; i++) {
		const struct keyspace_metadata *keyspace = describe->schema->keyspaces[i];
		struct buffer none = describe_text();

		if (!slice_is_null(only) && !slice_equal(only, keyspace->name))
			continue;
		for (uint32_t n = 0;
		     describe->statement->kind == AST_DESCRIBE_TABLES && n < keyspace->table_count;
		     n++) {
			if (!keyspace->tables[n]->is_view)
				describe_add(describe, keyspace->name, "table",
				    keyspace->tables[n]->name, &none);
		}
		for (uint32_t n = 0;
		     describe->statement->kind == AST_DESCRIBE_TYPES && n < keyspace->type_count;
		     n++)
			describe_add(
			    describe, keyspace->name, "type", keyspace->types[n].type->name, &none);
		for (uint32_t n = 0; (describe->statement->kind == AST_DESCRIBE_FUNCTIONS ||
					 describe->statement->kind == AST_DESCRIBE_AGGREGATES) &&
		     n < keyspace->function_count;
		     n++) {
			bool is_aggregate = keyspace->functions[n].is_aggregate;

			if (is_aggregate == (describe->statement->kind == AST_DESCRIBE_AGGREGATES))
				describe_add(describe, keyspace->name,
				    is_aggregate ? "aggregate" : "function",
				    keyspace->functions[n].name, &none);
		}
	}
}

static int
describe_collect(struct describe *describe, struct error *err)
{
	const struct keyspace_metadata *keyspace;

	describe->has_statements = true;
	switch (describe->statement->kind) {
	case AST_DESCRIBE_KEYSPACES:
		describe->has_statements = false;
		for (uint32_t i = 0; i < describe->schema->keyspace_count; i++) {
			struct buffer none = describe_text();
			struct slice name = describe->schema->keyspaces[i]->name;

			describe_add(describe, name, "keyspace", name, &none);
			if (!describe->is_failed)
				describe_quote(describe, &describe->rows[describe->count - 1]);
		}
		return 0;
	case AST_DESCRIBE_TABLES:
	case AST_DESCRIBE_TYPES:
	case AST_DESCRIBE_FUNCTIONS:
	case AST_DESCRIBE_AGGREGATES:
		describe->has_statements = false;
		describe_list(describe);
		if (describe->count > 1)
			qsort(describe->rows, describe->count, sizeof(*describe->rows),
			    describe_compare_names);
		for (uint32_t i = 0; i < describe->count; i++)
			describe_quote(describe, &describe->rows[i]);
		return 0;
	case AST_DESCRIBE_SCHEMA:
		for (uint32_t i = 0; i < describe->schema->keyspace_count; i++) {
			keyspace = describe->schema->keyspaces[i];
			if (!describe->statement->is_full &&
			    (keyspace->is_virtual || schema_is_local_keyspace(keyspace->name) ||
				schema_is_replicated_system_keyspace(keyspace->name)))
				continue;
			describe_add_keyspace(describe, keyspace, false);
		}
		return 0;
	case AST_DESCRIBE_KEYSPACE:
		keyspace = describe_find_keyspace(
		    describe, ast_slice(describe->statement->name.keyspace), err);
		if (keyspace == NULL)
			return -1;
		describe_add_keyspace(describe, keyspace, describe->statement->is_only);
		return 0;
	case AST_DESCRIBE_ANY:
		return describe_any(describe, err);
	default:
		return describe_element(describe, err);
	}
}

/* ---- Answers ------------------------------------------------------------------------------- */

static struct column_spec
describe_spec(const char *name, const struct type *type)
{
	return (struct column_spec){
	    slice_of_string("system"), slice_of_string("describe"), slice_of_string(name), type};
}

/* Pages: the schema's version and the number of rows that were given. */
static int
describe_resume(struct describe *describe, uint32_t *first, struct error *err)
{
	struct slice state = describe->execution->options->paging_state;

	*first = 0;
	if (slice_is_null(state))
		return 0;
	if (state.size != DESCRIBE_STATE_SIZE)
		return error_set(err, ERROR_PROTOCOL, "Invalid value for the paging state");
	if (memcmp(state.data, describe->schema->version.bytes, 16) != 0)
		return error_set(err, ERROR_INVALID,
		    "The schema has changed since the previous page of the DESCRIBE statement "
		    "result. "
		    "Please retry the DESCRIBE statement.");
	*first = load_u32(state.data + 16);
	return 0;
}

static int
describe_answer(struct describe *describe, struct error *err)
{
	struct execution *execution = describe->execution;
	struct column_spec specs[4] = {describe_spec("keyspace_name", type_native(TYPE_TEXT)),
	    describe_spec("type", type_native(TYPE_TEXT)),
	    describe_spec("name", type_native(TYPE_TEXT)),
	    describe_spec("create_statement", type_native(TYPE_TEXT))};
	struct columns_metadata metadata = {
	    .columns = specs, .column_count = describe->has_statements ? 4 : 3};
	uint8_t state[DESCRIBE_STATE_SIZE];
	struct response_rows rows;
	uint32_t first, last = describe->count;
	int32_t page = execution->options->page_size;
	struct slice next = slice_null;

	if (describe_resume(describe, &first, err) != 0)
		return -1;
	if (page > 0 && first < last && last - first >= (uint32_t)page) {
		last = first + (uint32_t)page;
		memcpy(state, describe->schema->version.bytes, 16);
		store_u32(state + 16, last);
		next = slice_of(state, sizeof(state));
	}
	execution_begin_result(execution);
	rows = response_begin_rows(execution->out, execution->version, &metadata, false, NULL);
	for (uint32_t i = first; i < last; i++) {
		response_put_cell(execution->out, describe->rows[i].keyspace);
		response_put_cell(execution->out, describe->rows[i].type);
		response_put_cell(execution->out, describe->rows[i].name);
		if (describe->has_statements)
			response_put_cell(execution->out, describe->rows[i].statement);
		rows.row_count++;
	}
	response_end_rows(execution->out, &rows, next);
	return 0;
}

static int
describe_compare_tokens(const void *a, const void *b)
{
	const struct slice *left = a, *right = b;

	return slice_compare(left[0], right[0]);
}

static struct slice
describe_replicas(struct arena *arena, const struct type *list, const struct replica_set *set)
{
	struct slice *names = arena_calloc(arena, set->count, sizeof(*names));

	for (uint32_t i = 0; names != NULL && i < set->count; i++) {
		char name[ENDPOINT_TEXT_SIZE];
		const char *text =
		    arena_printf(arena, "/%s", endpoint_format(&set->peers[i]->endpoint, name));

		if (text == NULL)
			return slice_null;
		names[i] = slice_of_string(text);
	}
	return names == NULL ? slice_null : type_pack(list, names, set->count, arena);
}

/* The last token of each range -> addresses of its replicas (StorageService.getRangeToAddressMap). */
static struct slice
describe_ownership(struct describe *describe, const struct type *list, const struct type *map)
{
	struct executor *executor = describe->execution->executor;
	struct topology_holder *holder = executor->node->cluster->topology;
	const struct keyspace_metadata *keyspace =
	    schema_keyspace(describe->schema, describe->execution->keyspace);
	struct arena *arena = describe->arena;
	const struct topology *topology;
	const struct replication *replication;
	struct slice *pairs, value = slice_null;
	uint32_t count;

	if (keyspace == NULL)
		return slice_null;
	topology = topology_acquire(holder);
	replication = topology_replication(topology, keyspace);
	count = replication_range_count(replication);
	pairs = arena_calloc(arena, 2 * (size_t)count, sizeof(*pairs));
	for (uint32_t i = 0; pairs != NULL && i < count; i++) {
		struct ring_range range;
		const struct replica_set *set = replication_range(replication, i, &range);
		const char *token = arena_printf(arena, "%" PRId64, range.right);

		pairs[2 * i + 1] = describe_replicas(arena, list, set);
		if (token == NULL || slice_is_null(pairs[2 * i + 1]))
			pairs = NULL;
		else
			pairs[2 * i] = slice_of_string(token);
	}
	topology_release(holder, topology);
	if (pairs != NULL) {
		qsort(pairs, count, 2 * sizeof(*pairs), describe_compare_tokens);
		value = type_pack(map, pairs, count, arena);
	}
	return value;
}

/* The class's name, without its package. */
static const char *
describe_snitch(const struct config *config)
{
	const char *dot;

	if (config->dynamic_snitch)
		return "DynamicEndpointSnitch";
	dot = strrchr(config->endpoint_snitch, '.');
	return dot != NULL ? dot + 1 : config->endpoint_snitch;
}

static void
describe_cluster(struct describe *describe)
{
	struct execution *execution = describe->execution;
	struct arena *arena = describe->arena;
	const struct type *text = type_native(TYPE_TEXT);
	const struct type *list = type_list(arena, text, false);
	struct column_spec specs[4] = {describe_spec("cluster", text),
	    describe_spec("partitioner", text), describe_spec("snitch", text),
	    describe_spec(
		"range_ownership", list == NULL ? NULL : type_map(arena, text, list, false))};
	struct columns_metadata metadata = {.columns = specs, .column_count = 3};
	struct slice ownership = slice_null;
	struct response_rows rows;

	if (!slice_is_null(execution->keyspace) && !schema_is_local_keyspace(execution->keyspace) &&
	    specs[3].type != NULL) {
		ownership = describe_ownership(describe, list, specs[3].type);
		metadata.column_count = 4;
	}
	execution_begin_result(execution);
	rows = response_begin_rows(execution->out, execution->version, &metadata, false, NULL);
	response_put_cell(
	    execution->out, slice_of_string(execution->executor->config->cluster_name));
	response_put_cell(execution->out, slice_of_string("Murmur3Partitioner"));
	response_put_cell(
	    execution->out, slice_of_string(describe_snitch(execution->executor->config)));
	if (metadata.column_count == 4)
		response_put_cell(execution->out, ownership);
	rows.row_count = 1;
	response_end_rows(execution->out, &rows, slice_null);
}

void
describe_execute(struct execution *execution)
{
	struct describe describe = {.execution = execution,
	    .arena = execution->arena,
	    .statement = &execution->plan->statement->describe};
	struct schema *schema = schema_holder_get(&execution->executor->schema);
	struct error err;
	int rc = 0;

	describe.schema = schema;
	if (describe.statement->kind == AST_DESCRIBE_CLUSTER) {
		describe_cluster(&describe);
	} else {
		rc = describe_collect(&describe, &err);
		if (rc == 0 && describe.is_failed)
			rc = error_set(&err, ERROR_NO_MEMORY, "no memory for DESCRIBE");
		if (rc == 0)
			rc = describe_answer(&describe, &err);
	}
	schema_unref(schema);
	execution_done(execution, rc == 0 ? NULL : &err);
}
