/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_profile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "protocol/message.h"

void
stress_profile_fini(struct stress_profile *profile)
{
	free(profile->name);
	free(profile->keyspace);
	free(profile->keyspace_definition);
	free(profile->table);
	free(profile->table_definition);
	for (uint32_t i = 0; i < profile->extra_count; i++)
		free(profile->extra_definitions[i]);
	free(profile->extra_definitions);
	for (uint32_t i = 0; i < profile->spec_count; i++) {
		free(profile->specs[i].name);
		free(profile->specs[i].seed_text);
	}
	free(profile->specs);
	for (uint32_t i = 0; i < profile->query_count; i++) {
		free(profile->queries[i].name);
		free(profile->queries[i].cql);
		if (profile->queries[i].statement.query != NULL)
			stress_statement_fini(&profile->queries[i].statement);
		stress_condition_free(profile->queries[i].condition);
	}
	free(profile->queries);
	for (uint32_t i = 0; i < profile->scan_count; i++)
		stress_scan_fini(&profile->scans[i]);
	free(profile->scans);
	free(profile->condition);
	stress_validation_fini(&profile->validation);
	if (profile->has_insert)
		stress_statement_fini(&profile->insert);
	stress_table_fini(&profile->columns);
	buffer_fini(&profile->insert_query);
	arena_fini(&profile->arena);
	memset(profile, 0, sizeof(*profile));
}

struct stress_query *
stress_profile_query(struct stress_profile *profile, const char *name)
{
	for (uint32_t i = 0; i < profile->query_count; i++) {
		if (strcmp(profile->queries[i].name, name) == 0)
			return &profile->queries[i];
	}
	return NULL;
}

struct stress_scan *
stress_profile_scan(struct stress_profile *profile, const char *name)
{
	for (uint32_t i = 0; i < profile->scan_count; i++) {
		if (strcmp(profile->scans[i].name, name) == 0)
			return &profile->scans[i];
	}
	return NULL;
}

/* ---- The schema -------------------------------------------------------------------------------------- */

static void
stress_sleep(uint32_t seconds)
{
	struct timespec pause = {.tv_sec = seconds};

	fflush(stdout);
	while (nanosleep(&pause, &pause) != 0)
		;
}

/* Definitions are worth a quorum unless the command asks for more. */
static enum consistency
stress_schema_consistency(const struct stress_settings *settings)
{
	switch (settings->consistency) {
	case CONSISTENCY_ALL:
	case CONSISTENCY_QUORUM:
	case CONSISTENCY_EACH_QUORUM:
	case CONSISTENCY_LOCAL_QUORUM:
		return settings->consistency;
	default:
		return CONSISTENCY_LOCAL_ONE;
	}
}

int
stress_profile_create(
    struct stress_profile *profile, struct stress_session *session, struct error *err)
{
	enum consistency level = stress_schema_consistency(session->settings);
	uint32_t nodes = session->settings->node_count;
	char use[2 * STRESS_NAME_MAX];

	if (profile->keyspace_definition != NULL &&
	    stress_session_run(session, profile->keyspace_definition, level, err) != 0)
		return -1;
	snprintf(use, sizeof(use), "use %s", profile->keyspace);
	if (stress_session_run(session, use, level, err) != 0)
		return -1;
	if (profile->table_definition != NULL) {
		if (stress_session_run(session, profile->table_definition, level, err) != 0)
			return -1;
		printf("Created schema. Sleeping %us for propagation.\n", nodes);
		stress_sleep(nodes);
	}
	for (uint32_t i = 0; i < profile->extra_count; i++) {
		if (stress_session_run(session, profile->extra_definitions[i], level, err) != 0)
			return -1;
	}
	if (profile->extra_count > 0) {
		printf("Created extra schema. Sleeping %us for propagation.\n", nodes);
		stress_sleep(nodes);
	}
	stress_session_agree(session);
	return 0;
}

static void
stress_put_identifier(struct buffer *out, const char *name)
{
	bool is_plain = *name != '\0';

	for (const char *c = name; *c != '\0'; c++)
		is_plain &= islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_';
	buffer_printf(out, is_plain ? "%s" : "\"%s\"", name);
}

static bool
stress_column_is_key(const struct stress_column *column)
{
	return column->kind == 'p' || column->kind == 'c';
}

/* Is the new value added to the old one? */
static bool
stress_column_adds(const struct stress_column *column)
{
	return column->type->kind == TYPE_COUNTER || column->type->is_multi_cell;
}

static void
stress_profile_put_update(
    struct stress_profile *profile, const struct stress_column *columns, uint32_t count)
{
	struct buffer *out = &profile->insert_query;
	const char *separator = " SET ";

	buffer_put_string(out, "UPDATE ");
	stress_put_identifier(out, profile->table);
	for (uint32_t i = 0; i < count; i++) {
		if (stress_column_is_key(&columns[i]) ||
		    !stress_generator_supports(columns[i].type))
			continue;
		buffer_put_string(out, separator);
		stress_put_identifier(out, columns[i].name);
		buffer_put_string(out, " = ");
		if (stress_column_adds(&columns[i])) {
			stress_put_identifier(out, columns[i].name);
			buffer_put_string(out, " + ");
		}
		buffer_put_string(out, "?");
		separator = ",";
	}
	separator = " WHERE ";
	for (uint32_t i = 0; i < count; i++) {
		if (!stress_column_is_key(&columns[i]))
			continue;
		buffer_put_string(out, separator);
		stress_put_identifier(out, columns[i].name);
		buffer_put_string(out, " = ?");
		separator = " AND ";
	}
}

static void
stress_profile_put_insert(
    struct stress_profile *profile, const struct stress_column *columns, uint32_t count)
{
	struct buffer *out = &profile->insert_query;

	buffer_put_string(out, "INSERT INTO ");
	stress_put_identifier(out, profile->table);
	buffer_put_string(out, " (");
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_string(out, i > 0 ? ", " : "");
		stress_put_identifier(out, columns[i].name);
	}
	buffer_put_string(out, ") values(");
	for (uint32_t i = 0; i < count; i++)
		buffer_put_string(out, i > 0 ? ", ?" : "?");
	buffer_put_string(out, ")");
}

static int
stress_profile_add_column(struct stress_profile *profile, const struct stress_column *column,
    struct stress_generator *generator, struct error *err)
{
	struct stress_generator_config config = {
	    .seed_text = arena_printf(&profile->arena, STRESS_SEED_TEXT "%s", column->name)};
	const char *name = arena_strdup(&profile->arena, column->name);

	for (uint32_t i = 0; i < profile->spec_count; i++) {
		const struct stress_column_spec *spec = &profile->specs[i];

		if (strcmp(spec->name, column->name) != 0)
			continue;
		config.seed_text = spec->seed_text;
		config.size = spec->has_size ? &spec->size : NULL;
		config.identity = spec->has_population ? &spec->population : NULL;
		config.clustering = spec->has_clustering ? &spec->clustering : NULL;
	}
	return stress_generator_init(generator, name, column->type, &config, err);
}

/* Keys and clustering columns come in their position's order, the others by name. */
static struct stress_generator *
stress_profile_place(struct stress_table *table, const struct stress_column *column)
{
	switch (column->kind) {
	case 'p':
		return &table->keys[column->position];
	case 'c':
		return &table->clusterings[column->position];
	default:
		return &table->values[table->value_count++];
	}
}

int
stress_profile_set_columns(struct stress_profile *profile, const struct stress_column *columns,
    uint32_t count, enum stress_order order, bool skips_unsupported, struct error *err)
{
	struct stress_table *table = &profile->columns;
	struct stress_generator *generator;

	for (uint32_t i = 0; i < count; i++) {
		table->key_count += columns[i].kind == 'p';
		table->clustering_count += columns[i].kind == 'c';
	}
	if (table->key_count == 0)
		return error_set(err, ERROR_INVALID, "Unable to find table %s.%s",
		    profile->keyspace, profile->table);
	if (table->clustering_count > STRESS_CLUSTERING_MAX)
		return error_set(
		    err, ERROR_INVALID, "More than %d clustering columns", STRESS_CLUSTERING_MAX);
	table->keys = xcalloc(count + 1, sizeof(*table->keys));
	table->clusterings = xcalloc(count + 1, sizeof(*table->clusterings));
	table->values = xcalloc(count + 1, sizeof(*table->values));
	for (uint32_t i = 0; i < count; i++) {
		if (stress_column_is_key(&columns[i]) &&
		    (columns[i].position < 0 ||
			(uint32_t)columns[i].position >=
			    table->key_count + table->clustering_count))
			return error_set(err, ERROR_PROTOCOL, "columns without order");
		if (!stress_generator_supports(columns[i].type)) {
			fprintf(stderr, "%s: Table '%s' has column '%s' of unsupported type\n",
			    skips_unsupported ? "WARNING" : "ERROR", profile->table,
			    columns[i].name);
			if (skips_unsupported && !stress_column_is_key(&columns[i]))
				continue;
			return error_set(err, ERROR_INVALID, "Can't continue due to the errors");
		}
		generator = stress_profile_place(table, &columns[i]);
		if (stress_profile_add_column(profile, &columns[i], generator, err) != 0)
			return -1;
		generator->is_static = columns[i].kind == 's';
	}
	table->order = order;
	stress_table_finish(table);
	/* An UPDATE has no IF NOT EXISTS. */
	if (table->value_count > 0 &&
	    (profile->condition == NULL || strcasestr(profile->condition, "not exists") == NULL))
		stress_profile_put_update(profile, columns, count);
	else
		stress_profile_put_insert(profile, columns, count);
	if (profile->condition != NULL)
		buffer_printf(&profile->insert_query, "%s%s",
		    strncasecmp(profile->condition, "if ", 3) == 0 ? " " : " IF ",
		    profile->condition);
	buffer_put_u8(&profile->insert_query, 0);
	return buffer_check(&profile->insert_query, err);
}

/* The folded name, as an unquoted one of a statement is. */
static const char *
stress_profile_fold(struct stress_profile *profile, const char *name)
{
	char *folded = arena_strdup(&profile->arena, name);
	size_t size = strlen(folded);

	if (size >= 2 && folded[0] == '"' && folded[size - 1] == '"') {
		folded[size - 1] = '\0';
		return folded + 1;
	}
	for (char *c = folded; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	return folded;
}

static int
stress_profile_read_columns(struct stress_profile *profile, const struct client_rows *rows,
    struct stress_column *columns, struct error *err)
{
	struct slice content = rows->content;

	for (uint32_t i = 0; i < rows->row_count; i++) {
		struct slice name, kind, position, type;
		struct error unknown;

		if (client_next_cell(&content, &name) != 0 ||
		    client_next_cell(&content, &kind) != 0 ||
		    client_next_cell(&content, &position) != 0 ||
		    client_next_cell(&content, &type) != 0 || position.size != 4 || kind.size == 0)
			return error_set(
			    err, ERROR_PROTOCOL, "malformed row of system_schema.columns");
		columns[i].name =
		    arena_strndup(&profile->arena, (const char *)name.data, name.size);
		columns[i].kind = (char)kind.data[0];
		columns[i].position = (int32_t)load_u32(position.data);
		if (kind.size > 1 && kind.data[0] == 'p' && kind.data[1] != 'a')
			columns[i].kind = 'r';
		/* A user type, say: it cannot be generated, and the column is told so by name. */
		if (type_parse_cql(type, NULL, NULL, &profile->arena, &columns[i].type, &unknown) !=
		    0)
			columns[i].type = type_custom(&profile->arena, type);
	}
	return 0;
}

static int
stress_profile_load_columns(
    struct stress_profile *profile, struct stress_session *session, struct error *err)
{
	struct client_response response;
	struct stress_column *columns;
	struct arena arena;
	const char *query;
	int rc;

	arena_init(&arena, 16384);
	query = arena_printf(&arena,
	    "SELECT column_name, kind, position, type FROM system_schema.columns WHERE "
	    "keyspace_name = "
	    "'%s' AND table_name = '%s'",
	    stress_profile_fold(profile, profile->keyspace),
	    stress_profile_fold(profile, profile->table));
	rc = stress_session_execute(session, query, CONSISTENCY_ONE, &arena, &response, err);
	if (rc == 0 && (response.opcode != OPCODE_RESULT || response.result_kind != RESULT_ROWS))
		rc = error_set(err, ERROR_PROTOCOL, "system_schema.columns has no rows");
	if (rc == 0) {
		columns = arena_calloc(&arena, response.rows.row_count + 1, sizeof(*columns));
		rc = stress_profile_read_columns(profile, &response.rows, columns, err);
		if (rc == 0)
			rc = stress_profile_set_columns(profile, columns, response.rows.row_count,
			    session->settings->order, session->settings->skip_unsupported_columns,
			    err);
	}
	arena_fini(&arena);
	return rc;
}

/* What the command line says of inserts goes before the profile. */
static int
stress_profile_choose(
    struct stress_profile *profile, const struct stress_settings *settings, struct error *err)
{
	double visits_min = (double)stress_distribution_min(&settings->visits), rows;

	if (settings->has_batch_size)
		profile->partitions = settings->batch_size;
	if (settings->has_select_ratio)
		profile->select = settings->select_ratio;
	profile->row_population = settings->row_population.distribution.kind == STRESS_FIXED &&
		settings->row_population.distribution.min == 1 &&
		settings->row_population.divisor == 1
	    ? profile->row_population
	    : settings->row_population;
	if (settings->batch_type >= 0)
		profile->batch_type = settings->batch_type;
	rows = stress_ratio_max(&profile->select) *
	    (double)stress_distribution_max(&profile->partitions) * profile->columns.row_count_max /
	    (visits_min > 0 ? visits_min : 1);
	if (profile->columns.row_count_max > 100e6)
		fprintf(stderr,
		    "WARNING: You have defined a schema that permits very large partitions (%.0f "
		    "max "
		    "rows (>100M))\n",
		    profile->columns.row_count_max);
	if (rows > 65535)
		return error_set(err, ERROR_INVALID,
		    "ERROR: You have defined a workload that generates batches with more than 65k "
		    "rows "
		    "(%.0f). There is a 65k row limit on a single batch.",
		    rows);
	return 0;
}

/* What token range queries are made of. All columns are named: the token is selected with them. */
static int
stress_profile_attach_scan(struct stress_profile *profile, struct stress_scan *scan,
    const struct stress_session *session, struct error *err)
{
	const struct stress_table *table = &profile->columns;
	struct buffer text;
	int rc;

	if (!session->is_murmur3)
		return error_set(err, ERROR_INVALID,
		    "token_range_queries (%s) need Murmur3Partitioner", scan->name);
	buffer_init(&text);
	for (uint32_t i = 0; i < table->key_count; i++) {
		buffer_put_string(&text, i == 0 ? "token(" : ", ");
		stress_put_identifier(&text, table->keys[i].name);
	}
	buffer_put_string(&text, ")");
	rc = buffer_check(&text, err);
	if (rc == 0)
		scan->token = xstrndup((const char *)text.data, text.size);
	buffer_clear(&text);
	buffer_printf(&text, "SELECT %s, ", scan->token);
	if (strcmp(scan->columns, "*") != 0)
		buffer_put_string(&text, scan->columns);
	for (uint32_t i = 0; strcmp(scan->columns, "*") == 0 &&
	     i < table->key_count + table->clustering_count + table->value_count;
	     i++) {
		buffer_put_string(&text, i > 0 ? ", " : "");
		stress_put_identifier(&text, stress_table_name(table, i));
	}
	buffer_put_string(&text, " FROM ");
	stress_put_identifier(&text, profile->table);
	if (rc == 0)
		rc = buffer_check(&text, err);
	if (rc == 0)
		scan->select = xstrndup((const char *)text.data, text.size);
	buffer_fini(&text);
	scan->consistency = session->settings->consistency;
	scan->ranges = stress_ranges_new(
	    &session->ring, (uint32_t)session->settings->split_factor, &scan->range_count);
	scan->wraps = session->settings->wraps_ranges;
	return rc;
}

static int
stress_profile_check_markers(
    struct stress_profile *profile, const struct stress_statement *statement, struct error *err)
{
	for (uint32_t i = 0; i < statement->marker_count; i++) {
		if (stress_table_index(&profile->columns, statement->markers[i].name) == INT32_MIN)
			return error_set(err, ERROR_INVALID,
			    "no column is generated for the marker '%s' of: %s",
			    statement->markers[i].name, statement->query);
	}
	return 0;
}

static int
stress_profile_attach_condition(struct stress_profile *profile, struct stress_query *query,
    struct stress_session *session, struct error *err)
{
	struct buffer table;
	int rc;

	buffer_init(&table);
	stress_put_identifier(&table, profile->table);
	buffer_put_u8(&table, 0);
	rc = stress_condition_prepare(&query->condition, session, query->cql,
	    (const char *)table.data, &profile->columns, err);
	buffer_fini(&table);
	if (rc == 0 && query->condition != NULL && !query->is_same_row)
		rc = error_set(err, ERROR_INVALID, "CAS is supported only for type 'samerow'");
	if (rc != 0)
		error_prefix(err, "query %s", query->name);
	return rc;
}

int
stress_profile_attach_validation(
    struct stress_profile *profile, struct stress_session *session, struct error *err)
{
	struct buffer table;
	int rc;

	profile->validation.may_lack = stress_ratio_min(&profile->row_population) < 1;
	buffer_init(&table);
	stress_put_identifier(&table, profile->keyspace);
	buffer_put_u8(&table, '.');
	stress_put_identifier(&table, profile->table);
	buffer_put_u8(&table, 0);
	rc = stress_validation_prepare(
	    &profile->validation, session, (const char *)table.data, &profile->columns, err);
	buffer_fini(&table);
	for (uint32_t i = 0; i < profile->validation.count; i++)
		profile->validation.checks[i].statement.consistency =
		    session->settings->consistency;
	return rc;
}

int
stress_profile_attach(
    struct stress_profile *profile, struct stress_session *session, struct error *err)
{
	const struct stress_settings *settings = session->settings;
	char use[2 * STRESS_NAME_MAX];

	snprintf(use, sizeof(use), "use %s", profile->keyspace);
	if (stress_session_run(session, use, CONSISTENCY_ONE, err) != 0 ||
	    stress_profile_load_columns(profile, session, err) != 0 ||
	    stress_profile_choose(profile, settings, err) != 0)
		return -1;
	if (stress_session_prepare(
		session, (const char *)profile->insert_query.data, &profile->insert, err) != 0) {
		error_prefix(err, "%s", (const char *)profile->insert_query.data);
		return -1;
	}
	profile->has_insert = true;
	profile->insert.is_write = true;
	if (profile->has_consistency)
		profile->insert.consistency = profile->consistency;
	if (profile->has_serial_consistency)
		profile->insert.serial_consistency = profile->serial_consistency;
	for (uint32_t i = 0; i < profile->query_count; i++) {
		struct stress_query *query = &profile->queries[i];

		if (stress_session_prepare(session, query->cql, &query->statement, err) != 0) {
			error_prefix(err, "query %s", query->name);
			return -1;
		}
		if (query->has_consistency)
			query->statement.consistency = query->consistency;
		if (query->has_serial_consistency)
			query->statement.serial_consistency = query->serial_consistency;
		if (stress_profile_check_markers(profile, &query->statement, err) != 0 ||
		    stress_profile_attach_condition(profile, query, session, err) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < profile->scan_count; i++) {
		if (stress_profile_attach_scan(profile, &profile->scans[i], session, err) != 0)
			return -1;
	}
	return stress_profile_check_markers(profile, &profile->insert, err);
}

void
stress_profile_print(const struct stress_profile *profile, struct buffer *out)
{
	buffer_printf(out, "  Keyspace Name: %s\n", profile->keyspace);
	buffer_printf(out, "  Keyspace CQL: \n***\n%s***\n\n",
	    profile->keyspace_definition != NULL ? profile->keyspace_definition : "null");
	buffer_printf(out, "  Table Name: %s\n", profile->table);
	buffer_printf(out, "  Table CQL: \n***\n%s***\n\n",
	    profile->table_definition != NULL ? profile->table_definition : "null");
	buffer_put_string(out, "  Generator Configs:\n");
	for (uint32_t i = 0; i < profile->spec_count; i++) {
		const struct stress_column_spec *spec = &profile->specs[i];

		buffer_printf(out, "    %s: ", spec->name);
		if (spec->has_clustering) {
			buffer_put_string(out, "Clustering: ");
			stress_distribution_print(&spec->clustering, out);
			buffer_put_string(out, ";");
		}
		if (spec->has_size) {
			buffer_put_string(out, "Size: ");
			stress_distribution_print(&spec->size, out);
			buffer_put_string(out, ";");
		}
		if (spec->has_population) {
			buffer_put_string(out, "Identity: ");
			stress_distribution_print(&spec->population, out);
			buffer_put_string(out, ";");
		}
		buffer_put_string(out, "\n");
	}
	buffer_put_string(out, "  Query Definitions:\n");
	for (uint32_t i = 0; i < profile->query_count; i++)
		buffer_printf(out, "    %s: CQL:%s;Fields:%s;\n", profile->queries[i].name,
		    profile->queries[i].cql,
		    profile->queries[i].is_same_row ? "samerow" : "multirow");
	if (profile->scan_count > 0)
		buffer_put_string(out, "  Token Range Queries:\n");
	for (uint32_t i = 0; i < profile->scan_count; i++)
		buffer_printf(out, "    %s: Columns: %s;Page Size: %d;\n", profile->scans[i].name,
		    profile->scans[i].columns, profile->scans[i].page_size);
}
