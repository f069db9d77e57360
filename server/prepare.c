/* SPDX-License-Identifier: Apache-2.0 */
#include "server/prepare.h"
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/refs.h"
#include "cql/parser.h"
#include "server/batch.h"
#include "server/modification.h"
#include "server/select.h"

enum { PREPARE_ARENA_BLOCK = 8 << 10 };

struct prepared_statement *
prepared_statement_ref(struct prepared_statement *plan)
{
	refs_take(&plan->refs);
	return plan;
}

void
prepared_statement_unref(struct prepared_statement *plan)
{
	if (plan == NULL || !refs_drop(&plan->refs))
		return;
	schema_unref(plan->schema);
	arena_fini(&plan->arena);
	free(plan);
}

void
prepare_id(struct slice keyspace, struct slice query, uint8_t id[16])
{
	struct buffer text;

	buffer_init(&text);
	if (!slice_is_null(keyspace))
		buffer_put_slice(&text, keyspace);
	buffer_put_slice(&text, query);
	md5(buffer_slice(&text), id);
	buffer_fini(&text);
}

/* ---- Names --------------------------------------------------------------------------------- */

int
prepare_table(const struct schema *schema, struct slice keyspace, const struct ast_name *name,
    const struct keyspace_metadata **keyspace_out, const struct table_metadata **table_out,
    struct error *err)
{
	const struct keyspace_metadata *found;
	const struct table_metadata *table;
	struct slice in = ast_slice(name->keyspace);

	if (slice_is_null(in))
		in = keyspace;
	if (slice_is_null(in))
		return error_set(err, ERROR_INVALID,
		    "No keyspace has been specified. USE a keyspace, or explicitly specify "
		    "keyspace.tablename");
	if (name->name.length == 0)
		return error_set(err, ERROR_INVALID, "non-empty table is required");
	found = schema_keyspace(schema, in);
	if (found == NULL)
		return error_set(err, ERROR_INVALID, "keyspace %.*s does not exist", (int)in.size,
		    (const char *)in.data);
	table = keyspace_table(found, ast_slice(name->name));
	if (table == NULL)
		return error_set(err, ERROR_INVALID, "table %s does not exist", name->name.text);
	*keyspace_out = found;
	*table_out = table;
	return 0;
}

const struct column_metadata *
prepare_column(const struct table_metadata *table, struct slice name, struct error *err)
{
	const struct column_metadata *column = table_column(table, name);
	struct buffer quoted;

	if (column != NULL)
		return column;
	buffer_init(&quoted);
	cql_quote_identifier(name, &quoted);
	error_set(err, ERROR_INVALID, "Undefined column name %.*s in table %.*s.%.*s",
	    (int)quoted.size, (const char *)quoted.data, (int)table->keyspace.size,
	    table->keyspace.data, (int)table->name.size, table->name.data);
	buffer_fini(&quoted);
	return NULL;
}

struct column_spec
prepare_receiver(const struct table_metadata *table, const struct column_metadata *column)
{
	return (struct column_spec){table->keyspace, table->name, column->name, column->type};
}

/* ---- Plans --------------------------------------------------------------------------------- */

static int
prepare_markers(struct preparation *preparation, struct prepared_statement *plan, struct error *err)
{
	const struct statement *statement = plan->statement;

	plan->marker_count = (uint32_t)statement->marker_count;
	plan->markers = arena_calloc(&plan->arena, statement->marker_count, sizeof(*plan->markers));
	if (plan->markers == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for markers");
	for (uint32_t i = 0; i < plan->marker_count; i++)
		plan->markers[i].name = ast_slice(statement->markers[i].name);
	preparation->markers = plan->markers;
	return 0;
}

/* A marker that stands where nothing looks at it (a part of a statement that is refused later). */
static void
prepare_finish_markers(struct prepared_statement *plan)
{
	for (uint32_t i = 0; i < plan->marker_count; i++) {
		struct column_spec *spec = &plan->markers[i];

		if (spec->type == NULL)
			spec->type = type_native(TYPE_BLOB);
		if (slice_is_null(spec->name))
			spec->name = slice_empty;
		if (slice_is_null(spec->keyspace)) {
			spec->keyspace = plan->table != NULL ? plan->table->keyspace : slice_empty;
			spec->table = plan->table != NULL ? plan->table->name : slice_empty;
		}
	}
}

static int
prepare_modification(
    struct preparation *preparation, struct prepared_statement *plan, struct error *err)
{
	if (modification_prepare(preparation, plan->statement, plan, &plan->modification, err) != 0)
		return -1;
	plan->key_index_count = restrictions_key_markers(
	    &plan->modification->restrictions, &plan->arena, &plan->key_indexes);
	if (plan->modification->is_json)
		plan->key_index_count = 0;
	plan->stage =
	    table_is_counter(plan->table) ? REQUEST_STAGE_COUNTER : REQUEST_STAGE_MUTATION;
	return 0;
}

static int
prepare_plan(struct prepared_statement *plan, struct error *err)
{
	struct preparation preparation = {.arena = &plan->arena,
	    .schema = plan->schema,
	    .keyspace = plan->keyspace,
	    .statement = plan->statement};
	int rc;

	if (prepare_markers(&preparation, plan, err) != 0)
		return -1;
	plan->stage = REQUEST_STAGE_REQUEST;
	switch (plan->kind) {
	case STATEMENT_SELECT:
		rc = select_prepare(&preparation, plan, err);
		break;
	case STATEMENT_INSERT:
	case STATEMENT_UPDATE:
	case STATEMENT_DELETE:
		rc = prepare_modification(&preparation, plan, err);
		break;
	case STATEMENT_BATCH:
		rc = batch_prepare(&preparation, plan->statement, plan, err);
		break;
	default:
		rc = 0;
	}
	if (rc != 0)
		return -1;
	prepare_finish_markers(plan);
	response_metadata_id(plan->results, plan->result_count, plan->result_metadata_id);
	return 0;
}

int
prepare_statement(const struct schema *schema, struct slice keyspace, struct slice query,
    struct prepared_statement **out, struct error *err)
{
	struct prepared_statement *plan = xzalloc(sizeof(*plan));
	struct statement *statement;
	int rc;

	atomic_init(&plan->refs, 1);
	arena_init(&plan->arena, PREPARE_ARENA_BLOCK);
	plan->schema = schema_ref(schema);
	plan->query = arena_copy(&plan->arena, query);
	plan->keyspace = arena_copy(&plan->arena, keyspace);
	prepare_id(keyspace, query, plan->id);
	rc = cql_parse(plan->query, &plan->arena, &statement, err);
	if (rc == 0) {
		plan->statement = statement;
		plan->kind = statement->kind;
		rc = prepare_plan(plan, err);
	}
	if (rc != 0) {
		prepared_statement_unref(plan);
		return -1;
	}
	*out = plan;
	return 0;
}
