/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE, ALTER, DROP KEYSPACE. */
#include <stdio.h>
#include "server/cluster.h"
#include "server/execution.h"
#include "server/guardrails.h"
#include "server/node.h"
#include "server/schema_change.h"

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

/* The map of the statement, to be checked and filled up by the cluster floor. */
static int
keyspace_parse_replication(struct schema_transformation *transformation,
    const struct ast_property *property, struct option_map *out, struct error *err)
{
	const struct keyspace_metadata *before = transformation->before;
	struct option_map given = {NULL, 0};

	if (!property->is_map)
		return error_set(err, ERROR_SYNTAX,
		    "Invalid value for property 'replication'. It should be a map.");
	for (size_t i = 0; i < property->entry_count; i++)
		option_map_put(&given, ast_slice(property->entries[i].key),
		    ast_slice(property->entries[i].value), transformation->arena);
	return replication_prepare(&given, before == NULL ? NULL : &before->replication,
	    transformation->name, transformation->places, transformation->place_count,
	    transformation->default_factor, transformation->arena, out, err);
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

static void
keyspace_warn_one(void *argument, const char *text)
{
	execution_warn(argument, "%s", text);
}

static int
keyspace_check_replication(struct schema_transformation *transformation,
    const struct option_map *before, const struct option_map *after, struct error *err)
{
	if (transformation->execution == NULL)
		return 0;
	if (guardrail_check_replication(
		transformation->execution, transformation->name, after, err) != 0)
		return -1;
	replication_warn(after, before, transformation->name, transformation->places,
	    transformation->place_count, keyspace_warn_one, transformation->execution);
	return 0;
}

/* ---- Replicas that change ------------------------------------------------------------------------ */

static bool
keyspace_is_same_replication(const struct option_map *a, const struct option_map *b)
{
	bool is_same = a->count == b->count;

	for (uint32_t i = 0; i < a->count && is_same; i++) {
		bool is_found = false;

		for (uint32_t j = 0; j < b->count && !is_found; j++)
			is_found = slice_equal(a->entries[i].key, b->entries[j].key) &&
			    slice_equal(a->entries[i].value, b->entries[j].value);
		is_same = is_found;
	}
	return is_same;
}

/* AlterKeyspaceStatement.validateNoRangeMovements: what moves by the old rules would not be where the new ones look for it. */
static int
keyspace_check_movements(struct cluster *cluster, struct error *err)
{
	const struct topology *topology = topology_acquire(cluster->topology);
	char moving[ERROR_TEXT_MAX / 2] = "", address[ENDPOINT_TEXT_SIZE];
	size_t used = 0;

	for (uint32_t i = 0; i < topology_member_count(topology); i++) {
		const struct member *member = topology_member(topology, i);

		if (member->peer->is_local || member->state == MEMBER_NORMAL ||
		    used > sizeof(moving) - 2 * ENDPOINT_TEXT_SIZE)
			continue;
		used += (size_t)snprintf(moving + used, sizeof(moving) - used, "%s/%s",
		    used == 0 ? "" : ", ", endpoint_format(&member->peer->endpoint, address));
	}
	topology_release(cluster->topology, topology);
	if (used == 0)
		return 0;
	return error_set(err, ERROR_CONFIG,
	    "Cannot alter RF while some endpoints are not in normal state (no range movements): "
	    "[%s]",
	    moving);
}

/*
 * Where conditional statements were used: the new replicas' majorities may know nothing of what the old ones decided. Cassandra does
 * not say so.
 */
static void
keyspace_warn_paxos(struct schema_transformation *transformation, struct cluster *cluster)
{
	const struct topology *topology = topology_acquire(cluster->topology);
	bool is_ring = topology_member_count(topology) > 1;

	topology_release(cluster->topology, topology);
	if (is_ring && cluster->paxos != NULL &&
	    paxos_has_state(cluster->paxos, transformation->before))
		execution_warn(transformation->execution,
		    "Conditional statements were used in keyspace %.*s: until a full (-full) "
		    "repair "
		    "of it, which repairs the state of Paxos too, has ended on all nodes, they may "
		    "not "
		    "see what was decided before",
		    (int)transformation->name.size, (const char *)transformation->name.data);
}

static int
keyspace_check_replicas(
    struct schema_transformation *transformation, const struct option_map *after, struct error *err)
{
	struct node *node;

	if (transformation->execution == NULL ||
	    keyspace_is_same_replication(&transformation->before->replication, after))
		return 0;
	node = transformation->execution->executor->node;
	if (!node->config->cassandra__allow_alter_rf_during_range_movement &&
	    keyspace_check_movements(node->cluster, err) != 0)
		return -1;
	keyspace_warn_paxos(transformation, node->cluster);
	return 0;
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
	if (keyspace_parse_options(transformation, &statement->properties, &options, err) != 0 ||
	    keyspace_check_replication(transformation, NULL, &options.replication, err) != 0)
		return -1;
	transformation->after =
	    keyspace_new(transformation->name, &options.replication, options.durable_writes, false);
	transformation->change.kind = SCHEMA_CREATED;
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
	if (keyspace_parse_options(transformation, &statement->properties, &options, err) != 0 ||
	    (options.has_replication &&
		keyspace_check_replication(
		    transformation, &before->replication, &options.replication, err) != 0))
		return -1;
	if (options.has_replication &&
	    keyspace_check_replicas(transformation, &options.replication, err) != 0)
		return -1;
	transformation->after =
	    keyspace_with_params(before, &options.replication, options.durable_writes);
	transformation->change.kind = SCHEMA_UPDATED;
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
