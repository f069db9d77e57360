/* SPDX-License-Identifier: Apache-2.0 */

/* Replication options in CREATE and ALTER KEYSPACE: what a statement leaves out, and what it may not say. */
#include <stdio.h>
#include "cluster/replication.h"

static const char *const replication_full_names[] = {
    "org.apache.cassandra.locator.SimpleStrategy",
    "org.apache.cassandra.locator.NetworkTopologyStrategy",
    "org.apache.cassandra.locator.LocalStrategy",
    "org.apache.cassandra.locator.EverywhereStrategy",
};

/* One statement. */
struct replication_statement {
	const struct option_map *given, *before;
	struct slice keyspace;
	const struct replication_place *places;
	uint32_t place_count;
	struct slice default_factor;
	struct arena *arena;
	enum replication_class class;
	struct option_map *out;
};

static bool
replication_is_factor_key(struct slice key)
{
	return slice_equal_string(key, "replication_factor");
}

static int
replication_unrecognized(
    const struct replication_statement *statement, struct slice key, struct error *err)
{
	const char *full = replication_full_names[statement->class];

	return error_set(err, ERROR_CONFIG,
	    "Unrecognized strategy option {%.*s} passed to %s for keyspace %.*s", (int)key.size,
	    (const char *)key.data, full + sizeof("org.apache.cassandra.locator.") - 1,
	    (int)statement->keyspace.size, (const char *)statement->keyspace.data);
}

static bool
replication_has_place(const struct replication_statement *statement, struct slice key)
{
	for (uint32_t i = 0; i < statement->place_count; i++) {
		if (slice_equal_string(key, statement->places[i].datacenter))
			return true;
	}
	return false;
}

/* Options that the class does not know, factors that are none. */
static int
replication_check_given(const struct replication_statement *statement, struct error *err)
{
	for (uint32_t i = 0; i < statement->given->count; i++) {
		const struct option_entry *entry = &statement->given->entries[i];
		bool is_factor = replication_is_factor_key(entry->key);
		int32_t ignored;

		if (slice_equal_string(entry->key, "class"))
			continue;
		if (statement->class == REPLICATION_EVERYWHERE ||
		    (statement->class == REPLICATION_SIMPLE && !is_factor) ||
		    (!is_factor && !replication_has_place(statement, entry->key)))
			return replication_unrecognized(statement, entry->key, err);
		if (replication_parse_factor(entry->value, &ignored, err) != 0)
			return -1;
	}
	return 0;
}

static bool
replication_is_nothing(struct slice factor)
{
	int32_t value;

	return replication_parse_factor(factor, &value, NULL) == 0 && value == 0;
}

static void
replication_put_absent(
    const struct replication_statement *statement, struct slice key, struct slice value)
{
	for (uint32_t i = 0; i < statement->out->count; i++) {
		if (slice_equal(statement->out->entries[i].key, key))
			return;
	}
	option_map_put(statement->out, key, value, statement->arena);
}

/* What the statement names, then what the keyspace had, then all other places by the default. */
static void
replication_spread(
    const struct replication_statement *statement, const struct slice *factor, bool keeps_before)
{
	for (uint32_t i = 0; keeps_before && i < statement->before->count; i++) {
		const struct option_entry *entry = &statement->before->entries[i];

		if (!slice_equal_string(entry->key, "class") &&
		    !replication_is_factor_key(entry->key))
			replication_put_absent(statement, entry->key, entry->value);
	}
	for (uint32_t i = 0; factor != NULL && i < statement->place_count; i++)
		replication_put_absent(
		    statement, slice_of_string(statement->places[i].datacenter), *factor);
}

/* Without a word about factors: SimpleStrategy's own goes on. */
static const struct slice *
replication_unsaid(const struct replication_statement *statement)
{
	const struct slice *factor = statement->before == NULL
	    ? NULL
	    : option_map_get(statement->before, "replication_factor");

	return factor != NULL ? factor : &statement->default_factor;
}

static int
replication_prepare_topology(const struct replication_statement *statement, struct error *err)
{
	const struct slice *factor = option_map_get(statement->given, "replication_factor");
	const struct option_map *before = statement->before;
	struct option_map all = {NULL, 0}, *out = statement->out;
	struct replication_statement spread = *statement;
	bool keeps_before = factor != NULL && before != NULL;

	spread.out = &all;
	for (uint32_t i = 0; i < statement->given->count; i++) {
		const struct option_entry *entry = &statement->given->entries[i];

		if (!slice_equal_string(entry->key, "class") &&
		    !replication_is_factor_key(entry->key))
			option_map_put(&all, entry->key, entry->value, statement->arena);
	}
	if (factor == NULL && all.count == 0)
		factor = replication_unsaid(statement);
	replication_spread(&spread, factor, keeps_before);
	if (all.count == 0)
		return error_set(
		    err, ERROR_CONFIG, "Configuration for at least one datacenter must be present");
	for (uint32_t i = 0; i < all.count; i++) {
		if (!replication_is_nothing(all.entries[i].value))
			option_map_put(
			    out, all.entries[i].key, all.entries[i].value, statement->arena);
	}
	return 0;
}

int
replication_prepare(const struct option_map *given, const struct option_map *before,
    struct slice keyspace, const struct replication_place *places, uint32_t place_count,
    int32_t default_factor, struct arena *arena, struct option_map *out, struct error *err)
{
	const char *default_text = arena_printf(arena, "%d", (int)default_factor);
	struct replication_statement statement = {.given = given,
	    .before = before,
	    .keyspace = keyspace,
	    .places = places,
	    .place_count = place_count,
	    .arena = arena,
	    .out = out};
	const struct slice *class_name = option_map_get(given, "class"), *factor;

	if (default_text == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a schema change");
	statement.default_factor = slice_of_string(default_text);
	if (class_name == NULL)
		return error_set(err, ERROR_CONFIG, "Missing replication strategy class");
	if (replication_parse_class(*class_name, &statement.class, err) != 0)
		return -1;
	if (statement.class == REPLICATION_LOCAL)
		return error_set(err, ERROR_CONFIG,
		    "Unable to use given strategy class: LocalStrategy is reserved for internal "
		    "use.");
	if (replication_check_given(&statement, err) != 0)
		return -1;
	*out = (struct option_map){NULL, 0};
	option_map_put(out, slice_of_string("class"),
	    slice_of_string(replication_full_names[statement.class]), arena);
	if (statement.class == REPLICATION_NETWORK_TOPOLOGY)
		return replication_prepare_topology(&statement, err);
	if (statement.class == REPLICATION_SIMPLE) {
		factor = option_map_get(given, "replication_factor");
		option_map_put(out, slice_of_string("replication_factor"),
		    factor == NULL ? *replication_unsaid(&statement) : *factor, arena);
	}
	return 0;
}

/* ---- Warnings ------------------------------------------------------------------------------ */

static int64_t
replication_sum(const struct option_map *options)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < options->count; i++) {
		int32_t factor;

		if (!slice_equal_string(options->entries[i].key, "class") &&
		    replication_parse_factor(options->entries[i].value, &factor, NULL) == 0)
			sum += factor;
	}
	return sum;
}

/* Of a data center; of all for SimpleStrategy's one factor. */
static uint32_t
replication_count_nodes(
    struct slice key, const struct replication_place *places, uint32_t place_count)
{
	uint32_t nodes = 0;

	for (uint32_t i = 0; i < place_count; i++) {
		if (replication_is_factor_key(key) || slice_equal_string(key, places[i].datacenter))
			nodes += places[i].node_count;
	}
	return nodes;
}

void
replication_warn(const struct option_map *options, const struct option_map *before,
    struct slice keyspace, const struct replication_place *places, uint32_t place_count,
    replication_warn_fn warn, void *argument)
{
	char text[512];

	for (uint32_t i = 0; i < options->count; i++) {
		const struct option_entry *entry = &options->entries[i];
		bool is_simple = replication_is_factor_key(entry->key);
		uint32_t nodes = replication_count_nodes(entry->key, places, place_count);
		int32_t factor;

		if (slice_equal_string(entry->key, "class") ||
		    replication_parse_factor(entry->value, &factor, NULL) != 0 || nodes == 0 ||
		    factor <= (int64_t)nodes)
			continue;
		snprintf(text, sizeof(text),
		    "Your replication factor %d for keyspace %.*s is higher than the number of "
		    "nodes %u%s%.*s",
		    factor, (int)keyspace.size, (const char *)keyspace.data, nodes,
		    is_simple ? "" : " for datacenter ", is_simple ? 0 : (int)entry->key.size,
		    (const char *)entry->key.data);
		warn(argument, text);
	}
	if (before != NULL && replication_sum(options) > replication_sum(before))
		warn(argument,
		    "When increasing replication factor you need to run a full (-full) repair to "
		    "distribute the data.");
}
