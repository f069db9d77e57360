/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_profile.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <yaml.h>
#include "base/alloc.h"
#include "protocol/message.h"

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

	if (strcmp(name, "insert") == 0 || strcmp(name, "validate") == 0)
		return error_set(err, ERROR_INVALID,
		    "line %zu: Found '%s' in queries, this name is reserved, please use different "
		    "name",
		    node->start_mark.line + 1, name);
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
		} else if (strcasecmp(key, "condition") == 0) {
			free(profile->condition);
			profile->condition = *text != '\0' ? xstrdup(text) : NULL;
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
stress_profile_read_scan(struct stress_profile *profile, yaml_document_t *document,
    const char *name, const yaml_node_t *node, struct error *err)
{
	struct stress_scan *scan;
	const char *key, *text;
	yaml_node_t *value;
	size_t cursor = 0;
	int64_t number;

	profile->scans =
	    xrealloc(profile->scans, (profile->scan_count + 1) * sizeof(*profile->scans));
	scan = &profile->scans[profile->scan_count++];
	*scan = (struct stress_scan){.name = stress_lower(name), .page_size = 5000};
	while (stress_yaml_pair(document, node, &cursor, &key, &value)) {
		text = stress_yaml_text(value);
		if (strcmp(key, "columns") == 0 && text != NULL && *text != '\0') {
			free(scan->columns);
			scan->columns = xstrdup(text);
		} else if (strcmp(key, "page_size") == 0 && text != NULL &&
		    stress_parse_long(text, strlen(text), &number) && number > 0 &&
		    number <= INT32_MAX) {
			scan->page_size = (int)number;
		} else {
			return stress_yaml_error(profile, value,
			    "of a token range query: columns, and a page_size of 1 or more", err);
		}
	}
	if (scan->columns == NULL)
		scan->columns = xstrdup("*");
	return 0;
}

static int
stress_profile_read_scans(struct stress_profile *profile, yaml_document_t *document,
    const yaml_node_t *node, struct error *err)
{
	const char *name;
	yaml_node_t *value;
	size_t cursor = 0;

	while (stress_yaml_pair(document, node, &cursor, &name, &value)) {
		if (stress_profile_read_scan(profile, document, name, value, err) != 0)
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
		return stress_profile_read_scans(profile, document, value, err);
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
	for (uint32_t i = 0; i < profile->scan_count; i++) {
		if (stress_profile_query(profile, profile->scans[i].name) != NULL)
			return error_set(err, ERROR_INVALID,
			    "Found %s in both queries and token_range_queries, please use "
			    "different "
			    "names",
			    profile->scans[i].name);
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
