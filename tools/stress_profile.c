/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_profile.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include <yaml.h>
#include "base/alloc.h"
#include "protocol/message.h"

#define STRESS_SEED_TEXT "seed for stress"

/* ---- YAML ------------------------------------------------------------------------------------------ */

static const char *
stress_yaml_text(const yaml_node_t *node)
{
	return node != NULL && node->type == YAML_SCALAR_NODE
	    ? (const char *)node->data.scalar.value
	    : NULL;
}

static int
stress_yaml_error(const struct stress_profile *profile, const yaml_node_t *node, const char *what,
    struct error *err)
{
	(void)profile;
	return error_set(
	    err, ERROR_INVALID, "line %zu: %s", node != NULL ? node->start_mark.line + 1 : 0, what);
}

static char *
stress_lower(const char *text)
{
	char *copy = xstrdup(text);

	for (char *c = copy; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	return copy;
}

/* Walk over a mapping's pairs; false at the end. A null node has none. */
static bool
stress_yaml_pair(yaml_document_t *document, const yaml_node_t *node, size_t *cursor,
    const char **key, yaml_node_t **value)
{
	yaml_node_pair_t *pair;

	if (node == NULL || node->type != YAML_MAPPING_NODE)
		return false;
	pair = node->data.mapping.pairs.start + *cursor;
	if (pair >= node->data.mapping.pairs.top)
		return false;
	(*cursor)++;
	*key = stress_yaml_text(yaml_document_get_node(document, pair->key));
	*value = yaml_document_get_node(document, pair->value);
	if (*key == NULL)
		*key = "";
	return true;
}

static int
stress_profile_read_distribution(struct stress_profile *profile, const yaml_node_t *node,
    struct stress_distribution *out, bool *is_given, struct error *err)
{
	const char *text = stress_yaml_text(node);

	if (text == NULL)
		return stress_yaml_error(profile, node, "a distribution is missing", err);
	if (stress_distribution_parse(out, text, err) != 0) {
		error_prefix(err, "line %zu", node->start_mark.line + 1);
		return -1;
	}
	*is_given = true;
	return 0;
}

static int
stress_profile_read_spec(struct stress_profile *profile, yaml_document_t *document,
    const yaml_node_t *node, struct error *err)
{
	struct stress_column_spec *spec;
	const char *key;
	yaml_node_t *value;
	size_t cursor = 0;
	int rc = 0;

	profile->specs =
	    xrealloc(profile->specs, (profile->spec_count + 1) * sizeof(*profile->specs));
	spec = &profile->specs[profile->spec_count++];
	memset(spec, 0, sizeof(*spec));
	while (rc == 0 && stress_yaml_pair(document, node, &cursor, &key, &value)) {
		if (strcasecmp(key, "name") == 0 && stress_yaml_text(value) != NULL &&
		    spec->name == NULL) {
			spec->name = stress_lower(stress_yaml_text(value));
			spec->seed_text = xasprintf(STRESS_SEED_TEXT "%s", stress_yaml_text(value));
		} else if (strcasecmp(key, "size") == 0) {
			rc = stress_profile_read_distribution(
			    profile, value, &spec->size, &spec->has_size, err);
		} else if (strcasecmp(key, "population") == 0) {
			rc = stress_profile_read_distribution(
			    profile, value, &spec->population, &spec->has_population, err);
		} else if (strcasecmp(key, "cluster") == 0) {
			rc = stress_profile_read_distribution(
			    profile, value, &spec->clustering, &spec->has_clustering, err);
		} else {
			rc = stress_yaml_error(
			    profile, value, "Unrecognised option(s) in column spec", err);
		}
	}
	if (rc == 0 && spec->name == NULL)
		return stress_yaml_error(
		    profile, node, "Missing name argument in column spec", err);
	return rc;
}

static int
stress_profile_read_level(struct stress_profile *profile, const yaml_node_t *node,
    enum consistency *out, bool *is_given, struct error *err)
{
	const char *text = stress_yaml_text(node);

	if (text == NULL || !consistency_parse(text, strlen(text), out))
		return stress_yaml_error(profile, node, "not a consistency level", err);
	*is_given = true;
	return 0;
}

static int
stress_profile_read_query(struct stress_profile *profile, yaml_document_t *document,
    const char *name, const yaml_node_t *node, struct error *err)
{
	struct stress_query *query;
	const char *key, *text;
	yaml_node_t *value;
	size_t cursor = 0;
	int rc = 0;

	if (strcmp(name, "insert") == 0)
		return stress_yaml_error(profile, node,
		    "Found 'insert' in queries, this name is reserved, please use different name",
		    err);
	profile->queries =
	    xrealloc(profile->queries, (profile->query_count + 1) * sizeof(*profile->queries));
	query = &profile->queries[profile->query_count++];
	memset(query, 0, sizeof(*query));
	query->name = stress_lower(name);
	while (rc == 0 && stress_yaml_pair(document, node, &cursor, &key, &value)) {
		text = stress_yaml_text(value);
		if (strcmp(key, "cql") == 0 && text != NULL && query->cql == NULL) {
			query->cql = xstrdup(text);
		} else if (strcmp(key, "fields") == 0 && text != NULL) {
			query->is_same_row = strcasecmp(text, "samerow") == 0;
			if (!query->is_same_row && strcasecmp(text, "multirow") != 0)
				rc = stress_yaml_error(
				    profile, value, "fields is samerow or multirow", err);
		} else if (strcmp(key, "consistencyLevel") == 0) {
			rc = stress_profile_read_level(
			    profile, value, &query->consistency, &query->has_consistency, err);
		} else if (strcmp(key, "serialConsistencyLevel") == 0) {
			rc = stress_profile_read_level(profile, value, &query->serial_consistency,
			    &query->has_serial_consistency, err);
		} else {
			rc = stress_yaml_error(
			    profile, value, "Unrecognised option of a query", err);
		}
	}
	if (rc == 0 && query->cql == NULL)
		return stress_yaml_error(profile, node, "a query has no cql", err);
	return rc;
}

static int
stress_profile_read_insert(struct stress_profile *profile, yaml_document_t *document,
    const yaml_node_t *node, struct error *err)
{
	const char *key, *text;
	yaml_node_t *value;
	size_t cursor = 0;
	bool ignored;
	int rc = 0;

	while (rc == 0 && stress_yaml_pair(document, node, &cursor, &key, &value)) {
		text = stress_yaml_text(value);
		if (text == NULL)
			return stress_yaml_error(profile, value, "not a text", err);
		if (strcasecmp(key, "partitions") == 0) {
			rc = stress_profile_read_distribution(
			    profile, value, &profile->partitions, &ignored, err);
		} else if (strcasecmp(key, "select") == 0) {
			rc = stress_ratio_parse(&profile->select, text, err);
		} else if (strcasecmp(key, "row-population") == 0) {
			rc = stress_ratio_parse(&profile->row_population, text, err);
		} else if (strcasecmp(key, "batchtype") == 0) {
			profile->batch_type = strcasecmp(text, "LOGGED") == 0 ? BATCH_LOGGED
			    : strcasecmp(text, "UNLOGGED") == 0               ? BATCH_UNLOGGED
			    : strcasecmp(text, "COUNTER") == 0                ? BATCH_COUNTER
									      : -1;
			if (profile->batch_type < 0)
				rc = stress_yaml_error(profile, value,
				    "batchtype is LOGGED, UNLOGGED or COUNTER", err);
		} else if (strcasecmp(key, "consistencyLevel") == 0) {
			rc = stress_profile_read_level(
			    profile, value, &profile->consistency, &profile->has_consistency, err);
		} else if (strcasecmp(key, "serialConsistencyLevel") == 0) {
			rc = stress_profile_read_level(profile, value, &profile->serial_consistency,
			    &profile->has_serial_consistency, err);
		} else {
			rc =
			    error_set(err, ERROR_INVALID, "Unrecognised insert option(s): %s", key);
		}
	}
	return rc;
}

static int
stress_profile_read_list(struct stress_profile *profile, yaml_document_t *document, const char *key,
    const yaml_node_t *node, struct error *err)
{
	yaml_node_item_t *item;

	if (node->type != YAML_SEQUENCE_NODE)
		return stress_yaml_text(node) != NULL && *stress_yaml_text(node) == '\0'
		    ? 0
		    : stress_yaml_error(profile, node, "not a list", err);
	for (item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		const yaml_node_t *each = yaml_document_get_node(document, *item);

		if (strcmp(key, "columnspec") == 0) {
			if (stress_profile_read_spec(profile, document, each, err) != 0)
				return -1;
			continue;
		}
		if (stress_yaml_text(each) == NULL)
			return stress_yaml_error(profile, each, "not a statement", err);
		profile->extra_definitions = xrealloc(profile->extra_definitions,
		    (profile->extra_count + 1) * sizeof(*profile->extra_definitions));
		profile->extra_definitions[profile->extra_count++] =
		    xstrdup(stress_yaml_text(each));
	}
	return 0;
}

static int
stress_profile_read_queries(struct stress_profile *profile, yaml_document_t *document,
    const yaml_node_t *node, struct error *err)
{
	const char *name;
	yaml_node_t *value;
	size_t cursor = 0;

	while (stress_yaml_pair(document, node, &cursor, &name, &value)) {
		if (stress_profile_read_query(profile, document, name, value, err) != 0)
			return -1;
	}
	return 0;
}

static int
stress_profile_read_pair(struct stress_profile *profile, yaml_document_t *document, const char *key,
    const yaml_node_t *value, struct error *err)
{
	const struct {
		const char *name;
		char **to;
	} texts[] = {
	    {"specname", &profile->name},
	    {"keyspace", &profile->keyspace},
	    {"keyspace_definition", &profile->keyspace_definition},
	    {"table", &profile->table},
	    {"table_definition", &profile->table_definition},
	};
	const char *text = stress_yaml_text(value);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(texts[i].name, key) != 0)
			continue;
		if (text == NULL)
			return stress_yaml_error(profile, value, "not a text", err);
		free(*texts[i].to);
		*texts[i].to = *text != '\0' ? xstrdup(text) : NULL;
		return 0;
	}
	if (strcmp(key, "columnspec") == 0 || strcmp(key, "extra_definitions") == 0)
		return stress_profile_read_list(profile, document, key, value, err);
	if (strcmp(key, "queries") == 0)
		return stress_profile_read_queries(profile, document, value, err);
	if (strcmp(key, "insert") == 0)
		return stress_profile_read_insert(profile, document, value, err);
	if (strcmp(key, "token_range_queries") == 0)
		return value->type == YAML_MAPPING_NODE &&
			value->data.mapping.pairs.start != value->data.mapping.pairs.top
		    ? stress_yaml_error(
			  profile, value, "token_range_queries are not supported", err)
		    : 0;
	return error_set(err, ERROR_INVALID, "line %zu: Unable to find property '%s'",
	    value->start_mark.line + 1, key);
}

/* The name that a CREATE statement gives, without its keyspace and quotes. */
static void
stress_defined_name(const char *cql, char *out, size_t size)
{
	static const char *const words[] = {
	    "create", "keyspace", "schema", "table", "columnfamily", "if", "not", "exists"};
	size_t at = 0;

	for (;;) {
		bool is_word = false;
		size_t length;

		cql += strspn(cql, " \t\r\n");
		length = strcspn(cql, " \t\r\n({;");
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			is_word |=
			    strlen(words[i]) == length && strncasecmp(words[i], cql, length) == 0;
		if (!is_word || length == 0)
			break;
		cql += length;
	}
	for (; *cql != '\0' && strchr(" \t\r\n({;", *cql) == NULL; cql++) {
		if (*cql == '.')
			at = 0;
		else if (*cql != '"' && at + 1 < size)
			out[at++] = *cql;
	}
	out[at] = '\0';
}

static int
stress_profile_check(struct stress_profile *profile, struct error *err)
{
	char name[STRESS_NAME_MAX];

	if (profile->keyspace == NULL)
		return error_set(err, ERROR_INVALID, "keyspace name is required in yaml file");
	if (profile->table == NULL)
		return error_set(err, ERROR_INVALID, "table name is required in yaml file");
	if (profile->keyspace_definition != NULL) {
		stress_defined_name(profile->keyspace_definition, name, sizeof(name));
		if (strcasecmp(name, profile->keyspace) != 0)
			return error_set(err, ERROR_INVALID,
			    "Name in keyspace_definition doesn't match keyspace property: '%s' != "
			    "'%s'",
			    name, profile->keyspace);
	}
	if (profile->table_definition != NULL) {
		stress_defined_name(profile->table_definition, name, sizeof(name));
		if (strcasecmp(name, profile->table) != 0)
			return error_set(err, ERROR_INVALID,
			    "Name in table_definition doesn't match table property: '%s' != '%s'",
			    name, profile->table);
	}
	if (profile->name == NULL)
		profile->name = xasprintf("%s.%s", profile->keyspace, profile->table);
	return 0;
}

static int
stress_profile_read(struct stress_profile *profile, yaml_document_t *document, struct error *err)
{
	yaml_node_t *root = yaml_document_get_root_node(document), *value;
	const char *key;
	size_t cursor = 0;

	if (root == NULL || root->type != YAML_MAPPING_NODE)
		return error_set(err, ERROR_INVALID, "not a YAML mapping");
	while (stress_yaml_pair(document, root, &cursor, &key, &value)) {
		if (stress_profile_read_pair(profile, document, key, value, err) != 0)
			return -1;
	}
	return stress_profile_check(profile, err);
}

int
stress_profile_load(struct stress_profile *profile, const char *path, struct error *err)
{
	FILE *file;
	yaml_parser_t parser;
	yaml_document_t document;
	int rc;

	memset(profile, 0, sizeof(*profile));
	arena_init(&profile->arena, 4096);
	buffer_init(&profile->insert_query);
	profile->partitions = stress_distribution_fixed(1);
	profile->select =
	    (struct stress_ratio){.distribution = stress_distribution_fixed(1), .divisor = 1};
	profile->row_population = profile->select;
	if (strncmp(path, "file:", 5) == 0)
		path += strncmp(path, "file://", 7) == 0 ? 7 : 5;
	file = fopen(path, "rb");
	if (file == NULL)
		return error_set_errno(err, errno, "%s", path);
	yaml_parser_initialize(&parser);
	yaml_parser_set_input_file(&parser, file);
	if (yaml_parser_load(&parser, &document)) {
		rc = stress_profile_read(profile, &document, err);
		yaml_document_delete(&document);
	} else {
		rc = error_set(err, ERROR_INVALID, "line %zu: %s", parser.problem_mark.line + 1,
		    parser.problem != NULL ? parser.problem : "cannot be read");
	}
	yaml_parser_delete(&parser);
	fclose(file);
	if (rc != 0)
		error_prefix(err, "%s", path);
	return rc;
}

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
	}
	free(profile->queries);
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
		if (stress_profile_add_column(
			profile, &columns[i], stress_profile_place(table, &columns[i]), err) != 0)
			return -1;
	}
	table->order = order;
	stress_table_finish(table);
	if (table->value_count > 0)
		stress_profile_put_update(profile, columns, count);
	else
		stress_profile_put_insert(profile, columns, count);
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
		if (stress_profile_check_markers(profile, &query->statement, err) != 0)
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
}
