/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "server/config_internal.h"

/*
 * The file, flattened: a key below a key is "a.b"; a list of maps (seed_provider has one) is one map.
 * Aliases may make a small file large, so nodes are counted.
 */
enum {
	CONFIG_DEPTH_MAX = 12,
	CONFIG_NESTING_MAX = 100, /* also of what is passed over, as unknown */
	CONFIG_NODES_MAX = 20000,
	CONFIG_FILE_MAX = 4 << 20,
};

struct config_walk {
	struct config *config;
	yaml_document_t *document;
	const char *name; /* of the file */
	size_t nodes;
};

static void
config_where(const struct config_walk *walk, const yaml_node_t *node, char *out, size_t size)
{
	snprintf(out, size, "%s:%zu: ", walk->name, node->start_mark.line + 1);
}

static void
config_note(struct buffer *names, const char *name)
{
	buffer_printf(names, "%s%s", names->size == 0 ? "" : ", ", name);
}

static bool
config_is_null(const yaml_node_t *node)
{
	return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	    (node->data.scalar.length == 0 ||
		strcmp((const char *)node->data.scalar.value, "null") == 0 ||
		strcmp((const char *)node->data.scalar.value, "~") == 0);
}

static int
config_walk_scalar(
    struct config_walk *walk, const yaml_node_t *node, const char *path, struct error *err)
{
	const char *text = config_is_null(node) ? NULL : (const char *)node->data.scalar.value;
	char unit[16] = "", where[400];
	bool is_old;
	const struct config_key *key = config_key_find(path, unit, &is_old);

	config_where(walk, node, where, sizeof(where));
	if (text != NULL && strlen(text) != node->data.scalar.length)
		return error_set(err, ERROR_CONFIG, "%s%s: the value holds a NUL", where, path);
	if (key == NULL) {
		if (config_is_free_form(path))
			config_add_extra(walk->config, path, text);
		else if (!config_is_section(path) || text != NULL)
			config_note(&walk->config->unknown, path);
		return 0;
	}
	if (is_old)
		config_note(&walk->config->deprecated, path);
	return config_store(walk->config, key, is_old ? unit : NULL, text, where, path, err);
}

static int config_walk_node(
    struct config_walk *walk, int index, const char *path, int depth, struct error *err);

static int
config_walk_list(
    struct config_walk *walk, yaml_node_t *node, const char *path, int depth, struct error *err)
{
	size_t count = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
	char unit[16], where[400];
	bool is_old, has_maps = false;
	const struct config_key *key = config_key_find(path, unit, &is_old);
	char **items = xcalloc(count + 1, sizeof(*items));
	size_t used = 0;
	int rc = 0;

	config_where(walk, node, where, sizeof(where));
	for (size_t i = 0; i < count && rc == 0; i++) {
		int index = node->data.sequence.items.start[i];
		yaml_node_t *item = yaml_document_get_node(walk->document, index);

		if (++walk->nodes > CONFIG_NODES_MAX) {
			rc = error_set(err, ERROR_CONFIG, "%s%s: too many values", where, path);
		} else if (item->type == YAML_SCALAR_NODE) {
			items[used++] = (char *)item->data.scalar.value;
		} else {
			has_maps = true;
			rc = config_walk_node(walk, index, path, depth + 1, err);
		}
	}
	if (rc == 0 && key != NULL)
		rc = config_store_list(walk->config, key, items, used, where, path, err);
	else if (rc == 0 && !has_maps && !config_is_free_form(path))
		config_note(&walk->config->unknown, path);
	free(items);
	return rc;
}

/* Cassandra 5 writes "authenticator: {class_name: X, parameters: ...}" where 4.1 writes the class. */
static int
config_walk_class(struct config_walk *walk, yaml_node_t *node, const struct config_key *key,
    const char *path, struct error *err)
{
	char where[400];

	config_where(walk, node, where, sizeof(where));
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top && key->kind == CONFIG_KIND_STRING; pair++) {
		yaml_node_t *name = yaml_document_get_node(walk->document, pair->key);
		yaml_node_t *value = yaml_document_get_node(walk->document, pair->value);

		if (name->type == YAML_SCALAR_NODE && value->type == YAML_SCALAR_NODE &&
		    strcmp((const char *)name->data.scalar.value, "class_name") == 0)
			return config_store(walk->config, key, NULL,
			    (const char *)value->data.scalar.value, where, path, err);
	}
	return error_set(
	    err, ERROR_CONFIG, "%s%s: a map stands here, but the key takes a value", where, path);
}

static int
config_walk_map(
    struct config_walk *walk, yaml_node_t *node, const char *path, int depth, struct error *err)
{
	char where[400];

	config_where(walk, node, where, sizeof(where));
	if (*path != '\0' && !config_is_section(path) && !config_is_free_form(path)) {
		char unit[16];
		bool is_old;

		const struct config_key *key = config_key_find(path, unit, &is_old);

		if (key != NULL)
			return config_walk_class(walk, node, key, path, err);
		config_note(&walk->config->unknown, path);
		return 0;
	}
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		yaml_node_t *key = yaml_document_get_node(walk->document, pair->key);
		char below[CONFIG_NAME_MAX * 2];
		int length;

		if (key->type != YAML_SCALAR_NODE)
			return error_set(
			    err, ERROR_CONFIG, "%s%s: a key must be a word", where, path);
		length = snprintf(below, sizeof(below), "%s%s%s", path, *path == '\0' ? "" : ".",
		    (const char *)key->data.scalar.value);
		if (length < 0 || (size_t)length >= sizeof(below)) {
			below[40] = '\0';
			config_note(&walk->config->unknown, below);
			continue;
		}
		if (config_walk_node(walk, pair->value, below, depth + 1, err) != 0)
			return -1;
	}
	return 0;
}

static int
config_walk_node(
    struct config_walk *walk, int index, const char *path, int depth, struct error *err)
{
	yaml_node_t *node = yaml_document_get_node(walk->document, index);
	char where[400];

	config_where(walk, node, where, sizeof(where));
	if (depth > CONFIG_DEPTH_MAX || ++walk->nodes > CONFIG_NODES_MAX)
		return error_set(
		    err, ERROR_CONFIG, "%s%s: nested too deep, or too many values", where, path);
	switch (node->type) {
	case YAML_SCALAR_NODE:
		return config_walk_scalar(walk, node, path, err);
	case YAML_SEQUENCE_NODE:
		return config_walk_list(walk, node, path, depth, err);
	case YAML_MAPPING_NODE:
		return config_walk_map(walk, node, path, depth, err);
	default:
		return 0;
	}
}

/* What the parser found wrong. */
static int
config_refuse(const char *name, const yaml_parser_t *parser, struct error *err)
{
	return error_set(err, ERROR_CONFIG, "%s:%zu: %s%s%s", name, parser->problem_mark.line + 1,
	    parser->problem == NULL ? "not YAML" : parser->problem,
	    parser->context == NULL ? "" : " ", parser->context == NULL ? "" : parser->context);
}

/*
 * The parser looks at every open bracket again for each word: of a file of nothing but brackets it would make hours, and nobody
 * would learn why the server does not start. So nothing is loaded before this has seen that it is not nested like that.
 */
static int
config_check_nesting(
    struct config *config, const char *name, yaml_parser_t *parser, struct error *err)
{
	int nesting = 0;
	bool is_end = false;

	(void)config;
	while (!is_end) {
		yaml_event_t event;
		size_t line;

		if (!yaml_parser_parse(parser, &event))
			return config_refuse(name, parser, err);
		if (event.type == YAML_SEQUENCE_START_EVENT ||
		    event.type == YAML_MAPPING_START_EVENT)
			nesting++;
		else if (event.type == YAML_SEQUENCE_END_EVENT ||
		    event.type == YAML_MAPPING_END_EVENT)
			nesting--;
		/* Another document may follow, which is no part of the configuration. */
		is_end =
		    event.type == YAML_DOCUMENT_END_EVENT || event.type == YAML_STREAM_END_EVENT;
		line = event.start_mark.line + 1;
		yaml_event_delete(&event);
		if (nesting > CONFIG_NESTING_MAX)
			return error_set(err, ERROR_CONFIG, "%s:%zu: nested too deep", name, line);
	}
	return 0;
}

static int
config_load(struct config *config, const char *name, yaml_parser_t *parser, struct error *err)
{
	struct config_walk walk = {.config = config, .name = name};
	yaml_document_t document;
	yaml_node_t *root;
	int rc = 0;

	if (!yaml_parser_load(parser, &document))
		return config_refuse(name, parser, err);
	walk.document = &document;
	root = yaml_document_get_root_node(&document);
	if (root != NULL && root->type != YAML_MAPPING_NODE &&
	    !(root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
		rc = error_set(
		    err, ERROR_CONFIG, "%s:1: the file must be a map of key: value", name);
	else if (root != NULL && root->type == YAML_MAPPING_NODE)
		rc = config_walk_map(&walk, root, "", 0, err);
	yaml_document_delete(&document);
	return rc;
}

/* With a parser at the start of the text: run `read`. */
static int
config_parse(struct config *config, const char *name, struct slice text,
    int (*read)(struct config *config, const char *name, yaml_parser_t *parser, struct error *err),
    struct error *err)
{
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		return error_set(err, ERROR_NO_MEMORY, "%s: no memory", name);
	/* An empty file may come without a pointer, which libyaml does not take. */
	yaml_parser_set_input_string(
	    &parser, text.data == NULL ? (const unsigned char *)"" : text.data, text.size);
	rc = read(config, name, &parser, err);
	yaml_parser_delete(&parser);
	return rc;
}

int
config_read_text(struct config *config, const char *name, struct slice text, struct error *err)
{
	if (config_parse(config, name, text, config_check_nesting, err) != 0)
		return -1;
	return config_parse(config, name, text, config_load, err);
}

int
config_read_file(struct config *config, const char *path, struct error *err)
{
	FILE *file = fopen(path, "re");
	struct buffer text;
	char part[4096];
	size_t got;
	int rc;

	if (file == NULL)
		return error_set_errno(err, errno, "configuration %s", path);
	buffer_init(&text);
	while ((got = fread(part, 1, sizeof(part), file)) > 0 && text.size < CONFIG_FILE_MAX)
		buffer_put(&text, part, got);
	rc = ferror(file) ? error_set_errno(err, errno, "configuration %s", path) : 0;
	fclose(file);
	if (rc == 0)
		rc = buffer_check(&text, err);
	if (rc == 0 && text.size >= CONFIG_FILE_MAX)
		rc = error_set(err, ERROR_CONFIG, "%s: larger than 4 MiB", path);
	if (rc == 0) {
		config_assign(&config->path, path);
		rc = config_read_text(config, path, buffer_slice(&text), err);
	}
	buffer_fini(&text);
	return rc;
}
