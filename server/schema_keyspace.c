/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE, ALTER, DROP KEYSPACE. */
#include "server/execution.h"
#include "server/schema_change.h"

#define SCHEMA_LOCATOR "org.apache.cassandra.locator."

static bool
schema_name_is_valid(struct slice name)
{
	if (name.size == 0 || name.size > SCHEMA_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.size; i++) {
		uint8_t c = name.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			c == '_'))
			return false;
	}
	return true;
}

int
schema_target_keyspace(
    struct schema_transformation *transformation, struct slice given, struct error *err)
{
	const struct keyspace_metadata *keyspace;

	if (slice_is_null(given))
		given = transformation->session_keyspace;
	if (slice_is_null(given))
		return error_set(err, ERROR_INVALID,
		    "No keyspace has been specified. USE a keyspace, or explicitly specify "
		    "keyspace.tablename");
	transformation->name = given;
	keyspace = schema_keyspace(transformation->schema, given);
	transformation->before = keyspace;
	if (schema_is_local_keyspace(given) || (keyspace != NULL && keyspace->is_virtual))
		return error_set(err, ERROR_UNAUTHORIZED, "%.*s keyspace is not user-modifiable.",
		    (int)given.size, (const char *)given.data);
	transformation->change.keyspace = given;
	return 0;
}

/* ---- Options ------------------------------------------------------------------------------- */

struct keyspace_options {
	struct option_map replication;
	bool has_replication;
	bool durable_writes;
};

static int
keyspace_parse_boolean(const struct ast_property *property, bool *out, struct error *err)
{
	static const char *const yes[] = {"1", "true", "yes"};
	static const char *const no[] = {"0", "false", "no"};

	for (int i = 0; i < 3; i++) {
		if (strcasecmp(property->value.text, yes[i]) == 0) {
			*out = true;
			return 0;
		}
		if (strcasecmp(property->value.text, no[i]) == 0) {
			*out = false;
			return 0;
		}
	}
	return error_set(err, ERROR_SYNTAX,
	    "Invalid boolean value %s for '%s'. Positive values can be '1', 'true' or 'yes'. "
	    "Negative values can be '0', 'false' or 'no'.",
	    property->value.text, property->name.text);
}

static int
keyspace_parse_factor(struct slice text, int32_t *out, struct error *err)
{
	int64_t value = 0;
	bool is_negative = text.size > 0 && text.data[0] == '-';

	for (size_t i = is_negative; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' || value > INT32_MAX)
			return error_set(err, ERROR_CONFIG, "For input string: \"%.*s\"",
			    (int)text.size, (const char *)text.data);
		value = value * 10 + (text.data[i] - '0');
	}
	if (text.size == (size_t)is_negative)
		return error_set(err, ERROR_CONFIG, "For input string: \"%.*s\"", (int)text.size,
		    (const char *)text.data);
	if (is_negative)
		return error_set(err, ERROR_CONFIG,
		    "Replication factor must be non-negative; found -%lld", (long long)value);
	*out = (int32_t)value;
	return 0;
}

/* The class with its package first; NetworkTopologyStrategy's replication_factor is spread out. */
static int
keyspace_parse_replication(struct schema_transformation *transformation,
    const struct ast_property *property, struct option_map *out, struct error *err)
{
	struct arena *arena = transformation->arena;
	struct slice class_name = slice_null, factor = slice_null;
	bool is_topology = false, has_datacenter = false;
	const char *full;
	int32_t ignored;

	if (!property->is_map)
		return error_set(err, ERROR_SYNTAX,
		    "Invalid value for property 'replication'. It should be a map.");
	for (size_t i = 0; i < property->entry_count; i++) {
		if (ast_string_equal(property->entries[i].key, (struct ast_string){"class", 5}))
			class_name = ast_slice(property->entries[i].value);
	}
	if (slice_is_null(class_name))
		return error_set(err, ERROR_CONFIG, "Missing replication strategy class");
	if (class_name.size > strlen(SCHEMA_LOCATOR) &&
	    memcmp(class_name.data, SCHEMA_LOCATOR, strlen(SCHEMA_LOCATOR)) == 0)
		full = arena_strndup(arena, (const char *)class_name.data, class_name.size);
	else
		full = arena_printf(arena, SCHEMA_LOCATOR "%.*s", (int)class_name.size,
		    (const char *)class_name.data);
	if (full == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a keyspace");
	is_topology = strcmp(full, SCHEMA_LOCATOR "NetworkTopologyStrategy") == 0;
	if (!is_topology && strcmp(full, SCHEMA_LOCATOR "SimpleStrategy") != 0) {
		if (strcmp(full, SCHEMA_LOCATOR "LocalStrategy") == 0)
			return error_set(err, ERROR_CONFIG,
			    "Unable to use given strategy class: LocalStrategy is reserved for "
			    "internal use.");
		return error_set(
		    err, ERROR_CONFIG, "Unable to find replication strategy class '%s'", full);
	}
	*out = (struct option_map){NULL, 0};
	option_map_put(out, slice_of_string("class"), slice_of_string(full), arena);
	for (size_t i = 0; i < property->entry_count; i++) {
		struct slice key = ast_slice(property->entries[i].key);
		struct slice value = ast_slice(property->entries[i].value);

		if (slice_equal_string(key, "class"))
			continue;
		if (slice_equal_string(key, "replication_factor")) {
			if (keyspace_parse_factor(value, &ignored, err) != 0)
				return -1;
			factor = value;
			continue;
		}
		if (!is_topology || !slice_equal_string(key, transformation->datacenter))
			return error_set(err, ERROR_CONFIG,
			    "Unrecognized strategy option {%.*s} passed to %s for keyspace %.*s",
			    (int)key.size, (const char *)key.data,
			    is_topology ? "NetworkTopologyStrategy" : "SimpleStrategy",
			    (int)transformation->name.size,
			    (const char *)transformation->name.data);
		if (keyspace_parse_factor(value, &ignored, err) != 0)
			return -1;
		has_datacenter = true;
		option_map_put(out, key, value, arena);
	}
	if (is_topology) {
		if (!has_datacenter && !slice_is_null(factor))
			option_map_put(
			    out, slice_of_string(transformation->datacenter), factor, arena);
		else if (!has_datacenter)
			return error_set(err, ERROR_CONFIG,
			    "Configuration for at least one datacenter must be present");
	} else {
		option_map_put(out, slice_of_string("replication_factor"),
		    slice_is_null(factor) ? slice_of_string("1") : factor, arena);
	}
	return 0;
}

/* Unknown names are refused before anything else is looked at. */
static int
keyspace_check_names(
    const struct ast_properties *properties, bool *has_replication, struct error *err)
{
	*has_replication = false;
	for (size_t i = 0; i < properties->count; i++) {
		const char *name = properties->items[i].name.text;

		if (strcmp(name, "replication") == 0)
			*has_replication = true;
		else if (strcmp(name, "durable_writes") != 0)
			return error_set(err, ERROR_SYNTAX, "Unknown property '%s'", name);
	}
	return 0;
}

static int
keyspace_parse_options(struct schema_transformation *transformation,
    const struct ast_properties *properties, struct keyspace_options *out, struct error *err)
{
	bool ignored;

	if (keyspace_check_names(properties, &ignored, err) != 0)
		return -1;
	for (size_t i = 0; i < properties->count; i++) {
		const struct ast_property *property = &properties->items[i];

		if (strcmp(property->name.text, "replication") == 0) {
			out->has_replication = true;
			if (keyspace_parse_replication(
				transformation, property, &out->replication, err) != 0)
				return -1;
		} else if (keyspace_parse_boolean(property, &out->durable_writes, err) != 0) {
			return -1;
		}
	}
	return 0;
}

static int32_t
keyspace_sum(const struct option_map *replication)
{
	int32_t sum = 0, factor;

	for (uint32_t i = 0; i < replication->count; i++) {
		if (!slice_equal_string(replication->entries[i].key, "class") &&
		    keyspace_parse_factor(replication->entries[i].value, &factor, NULL) == 0)
			sum += factor;
	}
	return sum;
}

static void
keyspace_warn(struct schema_transformation *transformation, const struct option_map *before,
    const struct option_map *after)
{
	int32_t sum = keyspace_sum(after);
	struct slice name = transformation->name;

	if (transformation->execution == NULL)
		return;
	if (sum > 1)
		execution_warn(transformation->execution,
		    "Your replication factor %d for keyspace %.*s is higher than the number of "
		    "nodes "
		    "1",
		    sum, (int)name.size, (const char *)name.data);
	if (before != NULL && sum > keyspace_sum(before))
		execution_warn(transformation->execution,
		    "When increasing replication factor you need to run a full (-full) repair to "
		    "distribute the data.");
}

/* ---- The three ----------------------------------------------------------------------------- */

static int
keyspace_create(struct schema_transformation *transformation,
    const struct statement_keyspace *statement, struct error *err)
{
	struct keyspace_options options = {.durable_writes = true};
	bool has_replication;

	if (!schema_name_is_valid(transformation->name))
		return error_set(err, ERROR_INVALID,
		    "Keyspace name must not be empty, more than 48 characters long, or contain "
		    "non-alphanumeric-underscore characters (got '%s')",
		    statement->name.text);
	if (schema_is_local_keyspace(transformation->name) ||
	    (transformation->before != NULL && transformation->before->is_virtual))
		return error_set(err, ERROR_INVALID, "System keyspace '%s' is not user-modifiable",
		    statement->name.text);
	if (keyspace_check_names(&statement->properties, &has_replication, err) != 0)
		return -1;
	if (!has_replication)
		return error_set(err, ERROR_INVALID, "Missing mandatory option 'replication'");
	if (transformation->before != NULL) {
		if (statement->if_not_exists) {
			transformation->is_noop = true;
			return 0;
		}
		error_set(err, ERROR_ALREADY_EXISTS, "Cannot add existing keyspace \"%s\"",
		    statement->name.text);
		if (err != NULL)
			memcpy(err->keyspace, statement->name.text, statement->name.length + 1);
		return -1;
	}
	if (keyspace_parse_options(transformation, &statement->properties, &options, err) != 0)
		return -1;
	transformation->after =
	    keyspace_new(transformation->name, &options.replication, options.durable_writes, false);
	transformation->change.kind = SCHEMA_CREATED;
	keyspace_warn(transformation, NULL, &options.replication);
	return 0;
}

static int
keyspace_alter(struct schema_transformation *transformation,
    const struct statement_keyspace *statement, struct error *err)
{
	const struct keyspace_metadata *before = transformation->before;
	struct keyspace_options options = {0};

	if (before == NULL) {
		if (statement->if_exists) {
			transformation->is_noop = true;
			return 0;
		}
		return error_set(
		    err, ERROR_INVALID, "Keyspace '%s' doesn't exist", statement->name.text);
	}
	options.durable_writes = before->durable_writes;
	options.replication = before->replication;
	if (keyspace_parse_options(transformation, &statement->properties, &options, err) != 0)
		return -1;
	transformation->after =
	    keyspace_with_params(before, &options.replication, options.durable_writes);
	transformation->change.kind = SCHEMA_UPDATED;
	if (options.has_replication)
		keyspace_warn(transformation, &before->replication, &options.replication);
	return 0;
}

static int
keyspace_drop(struct schema_transformation *transformation,
    const struct statement_keyspace *statement, struct error *err)
{
	if (transformation->before == NULL) {
		if (statement->if_exists) {
			transformation->is_noop = true;
			return 0;
		}
		return error_set(
		    err, ERROR_INVALID, "Keyspace '%s' doesn't exist", statement->name.text);
	}
	if (schema_is_replicated_system_keyspace(transformation->name))
		return error_set(
		    err, ERROR_UNAUTHORIZED, "Cannot DROP <keyspace %s>", statement->name.text);
	transformation->after = NULL;
	transformation->change.kind = SCHEMA_DROPPED;
	return 0;
}

int
schema_transform_keyspace(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_keyspace *statement = &transformation->statement->keyspace;
	struct slice name = ast_slice(statement->name);

	transformation->change.target = SCHEMA_KEYSPACE;
	transformation->change.keyspace = name;
	if (transformation->statement->kind == STATEMENT_CREATE_KEYSPACE) {
		transformation->name = name;
		transformation->before = schema_keyspace(transformation->schema, name);
		return keyspace_create(transformation, statement, err);
	}
	if (schema_target_keyspace(transformation, name, err) != 0)
		return -1;
	if (transformation->statement->kind == STATEMENT_ALTER_KEYSPACE)
		return keyspace_alter(transformation, statement, err);
	return keyspace_drop(transformation, statement, err);
}
