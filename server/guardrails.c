/* SPDX-License-Identifier: Apache-2.0 */
#include "server/guardrails.h"
#include <string.h>
#include <strings.h>
#include "base/consistency.h"
#include "base/hash.h"
#include "base/log.h"
#include "cluster/topology.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/modification.h"
#include "server/select.h"
#include "server/tracing.h"

/* A guardrail that is violated again is not logged again before so long (NoSpamLogger). */
#define GUARDRAIL_SILENCE_NS (UINT64_C(600) * 1000 * 1000 * 1000)

/* ---- Telling ------------------------------------------------------------------------------- */

/* Clients' own statements are looked at. */
static bool
guardrail_applies(const struct execution *execution)
{
	return execution != NULL && execution->client != NULL;
}

static void
guardrail_log(struct execution *execution, bool is_failure, const char *text)
{
	struct executor *executor = execution->executor;
	_Atomic uint64_t *next = &executor->guardrail_next_log_ns[is_failure];
	uint64_t now = env_monotonic_ns(executor->env);
	uint64_t due = atomic_load_explicit(next, memory_order_relaxed);

	if (execution->tracing != NULL)
		tracing_event(execution, "%s", text);
	if (now < due ||
	    !atomic_compare_exchange_strong_explicit(
		next, &due, now + GUARDRAIL_SILENCE_NS, memory_order_relaxed, memory_order_relaxed))
		return;
	if (is_failure)
		log_error("%s (others like it in the next ten minutes are not logged)", text);
	else
		log_warn("%s (others like it in the next ten minutes are not logged)", text);
}

/* A statement may be begun again, for it needs a row of others or its turn among the schema changes came later. */
static bool
guardrail_was_told(const struct execution *execution, const struct buffer *text)
{
	for (uint32_t i = 0; i < execution->warning_count; i++) {
		if (slice_equal(execution->warnings[i], slice_of(text->data, text->size - 1)))
			return true;
	}
	return false;
}

/* Warn of it, or refuse: 0 or -1. */
static int
guardrail_violated(struct execution *execution, const char *name, bool is_failure,
    struct buffer *message, struct error *err)
{
	struct buffer text;
	int rc = 0;

	buffer_init(&text);
	buffer_printf(&text, "Guardrail %s violated: %.*s", name, (int)message->size,
	    (const char *)message->data);
	buffer_put_u8(&text, '\0');
	if (buffer_check(&text, NULL) == 0 && !guardrail_was_told(execution, &text)) {
		execution_warn(execution, "%s", (const char *)text.data);
		guardrail_log(execution, is_failure, (const char *)text.data);
	}
	if (is_failure)
		rc = error_set(err, ERROR_INVALID, "%s", (const char *)text.data);
	buffer_fini(&text);
	return rc;
}

static int
guardrail_violated_text(struct execution *execution, const char *name, bool is_failure,
    const char *text, struct error *err)
{
	struct buffer message;
	int rc;

	buffer_init(&message);
	buffer_printf(&message, "%s", text);
	rc = guardrail_violated(execution, name, is_failure, &message, err);
	buffer_fini(&message);
	return rc;
}

/* ---- Maxima -------------------------------------------------------------------------------- */

/* $what, $value and $limit stand for them. */
static const struct {
	const char *warning, *failure;
} guardrail_texts[GUARDRAIL_MAXIMUM_COUNT] = {
    [GUARDRAIL_KEYSPACES] = {"Creating keyspace $what, current number of keyspaces $value exceeds "
			     "warning threshold of $limit.",
	"Cannot have more than $limit keyspaces, aborting the creation of keyspace $what"},
    [GUARDRAIL_TABLES] = {"Creating table $what, current number of tables $value exceeds warning "
			  "threshold of $limit.",
	"Cannot have more than $limit tables, aborting the creation of table $what"},
    [GUARDRAIL_COLUMNS_PER_TABLE] = {"The table $what has $value columns, this exceeds the warning "
				     "threshold of $limit.",
	"Tables cannot have more than $limit columns, but $value provided for table $what"},
    [GUARDRAIL_FIELDS_PER_UDT] = {"The user type $what has $value columns, this exceeds the "
				  "warning threshold of $limit.",
	"User types cannot have more than $limit columns, but $value provided for user type "
	"$what."},
    [GUARDRAIL_PAGE_SIZE] = {"Query for table $what with page size $value exceeds warning "
			     "threshold of $limit.",
	"Aborting query for table $what, page size $value exceeds fail threshold of $limit."},
    [GUARDRAIL_PARTITION_KEYS_IN_SELECT] = {"Query with partition keys in IN clause on table "
					    "$what, with number of partition keys $value exceeds "
					    "warning threshold of $limit.",
	"Aborting query with partition keys in IN clause on table $what, number of partition keys "
	"$value exceeds fail threshold of $limit."},
    [GUARDRAIL_IN_SELECT_CARTESIAN_PRODUCT] = {"The cartesian product of the IN restrictions on "
					       "$what produces $value values, this exceeds warning "
					       "threshold of $limit.",
	"Aborting query because the cartesian product of the IN restrictions on $what produces "
	"$value values, this exceeds fail threshold of $limit."},
    [GUARDRAIL_ITEMS_PER_COLLECTION] = {"Detected collection $what with $value items, this exceeds "
					"the warning threshold of $limit.",
	"Detected collection $what with $value items, this exceeds the failure threshold of "
	"$limit."},
    [GUARDRAIL_COLLECTION_SIZE] = {"Detected collection $what of size $value, this exceeds the "
				   "warning threshold of $limit.",
	"Detected collection $what of size $value, this exceeds the failure threshold of $limit."},
};

static void
guardrail_print(
    struct buffer *out, const char *text, struct slice what, int64_t value, int64_t limit)
{
	while (*text != '\0') {
		size_t plain = strcspn(text, "$");

		buffer_put(out, text, plain);
		text += plain;
		if (strncmp(text, "$what", 5) == 0) {
			buffer_put(out, what.data, what.size);
			text += 5;
		} else if (strncmp(text, "$value", 6) == 0) {
			buffer_printf(out, "%lld", (long long)value);
			text += 6;
		} else if (strncmp(text, "$limit", 6) == 0) {
			buffer_printf(out, "%lld", (long long)limit);
			text += 6;
		}
	}
}

bool
guardrail_is_set(const struct execution *execution, enum guardrail_maximum which)
{
	int64_t warn, fail;

	if (!guardrail_applies(execution))
		return false;
	guardrail_limits(execution->executor->config, which, &warn, &fail);
	return warn > 0 || fail > 0;
}

int
guardrail_check_maximum(struct execution *execution, enum guardrail_maximum which,
    struct slice what, int64_t value, struct error *err)
{
	struct buffer message;
	int64_t warn, fail;
	bool is_failure;
	int rc;

	if (!guardrail_applies(execution))
		return 0;
	guardrail_limits(execution->executor->config, which, &warn, &fail);
	is_failure = fail > 0 && value > fail;
	if (!is_failure && (warn <= 0 || value <= warn))
		return 0;
	buffer_init(&message);
	guardrail_print(&message,
	    is_failure ? guardrail_texts[which].failure : guardrail_texts[which].warning, what,
	    value, is_failure ? fail : warn);
	rc =
	    guardrail_violated(execution, guardrail_maximum_name(which), is_failure, &message, err);
	buffer_fini(&message);
	return rc;
}

/* ---- Switches ------------------------------------------------------------------------------ */

static bool
guardrail_is_allowed(
    const struct config *config, enum guardrail_switch which, const char **name, const char **what)
{
	switch (which) {
	case GUARDRAIL_ALLOW_FILTERING:
		*name = "allow_filtering";
		*what = "Querying with ALLOW FILTERING";
		return config->allow_filtering_enabled;
	case GUARDRAIL_GROUP_BY:
		*name = "group_by";
		*what = "GROUP BY functionality";
		return config->group_by_enabled;
	case GUARDRAIL_USER_TIMESTAMPS:
		*name = "user_timestamps";
		*what = "User provided timestamps (USING TIMESTAMP)";
		return config->user_timestamps_enabled;
	case GUARDRAIL_DROP_TRUNCATE_TABLE:
		*name = "drop_truncate_table_enabled";
		*what = "DROP and TRUNCATE TABLE functionality";
		return config->drop_truncate_table_enabled;
	case GUARDRAIL_UNCOMPRESSED_TABLES:
		*name = "uncompressed_tables_enabled";
		*what = "Uncompressed table";
		return config->uncompressed_tables_enabled;
	case GUARDRAIL_COMPACT_TABLES:
		*name = "compact_tables";
		*what = "Creation of new COMPACT STORAGE tables";
		return config->compact_tables_enabled;
	case GUARDRAIL_SECONDARY_INDEXES:
		*name = "secondary_indexes";
		*what = "Creating secondary indexes";
		return config->secondary_indexes_enabled;
	case GUARDRAIL_READ_BEFORE_WRITE_LISTS:
		*name = "read_before_write_list_operations";
		*what = "List operation requiring read before write";
		return config->read_before_write_list_operations_enabled;
	}
	return true;
}

int
guardrail_check_switch(
    struct execution *execution, enum guardrail_switch which, const char *what, struct error *err)
{
	const char *name, *usual;
	struct buffer message;
	int rc;

	if (!guardrail_applies(execution) ||
	    guardrail_is_allowed(execution->executor->config, which, &name, &usual))
		return 0;
	buffer_init(&message);
	buffer_printf(&message, "%s is not allowed", what != NULL ? what : usual);
	rc = guardrail_violated(execution, name, true, &message, err);
	buffer_fini(&message);
	return rc;
}

/* ---- Replication --------------------------------------------------------------------------- */

static int
guardrail_check_factor(
    struct execution *execution, struct slice keyspace, int64_t factor, struct error *err)
{
	const struct config *config = execution->executor->config;
	int64_t fail = config->minimum_replication_factor_fail_threshold;
	int64_t warn = config->minimum_replication_factor_warn_threshold;
	bool is_failure = fail > 0 && factor < fail;
	struct buffer message;
	int rc;

	if (!is_failure && (warn <= 0 || factor >= warn))
		return 0;
	buffer_init(&message);
	buffer_printf(&message,
	    "The keyspace %.*s has a replication factor of %lld, below the %s threshold of %lld.",
	    (int)keyspace.size, (const char *)keyspace.data, (long long)factor,
	    is_failure ? "failure" : "warning", (long long)(is_failure ? fail : warn));
	rc = guardrail_violated(execution, "minimum_replication_factor", is_failure, &message, err);
	buffer_fini(&message);
	return rc;
}

int
guardrail_check_replication(struct execution *execution, struct slice keyspace,
    const struct option_map *replication, struct error *err)
{
	if (!guardrail_applies(execution) || schema_is_replicated_system_keyspace(keyspace))
		return 0;
	for (uint32_t i = 0; i < replication->count; i++) {
		const struct option_entry *entry = &replication->entries[i];
		int64_t factor = 0;

		if (slice_equal_string(entry->key, "class"))
			continue;
		/* It was checked to be a number, maybe with transient replicas behind it: "3/1". */
		for (size_t n = 0; n < entry->value.size && entry->value.data[n] >= '0' &&
		     entry->value.data[n] <= '9';
		     n++)
			factor = factor * 10 + entry->value.data[n] - '0';
		if (guardrail_check_factor(execution, keyspace, factor, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- Consistency levels -------------------------------------------------------------------- */

static void
guardrail_print_levels(struct buffer *out, uint32_t levels)
{
	const char *separator = "";

	buffer_put_u8(out, '[');
	for (uint32_t level = 0; level < CONSISTENCY_COUNT; level++) {
		if ((levels & 1u << level) == 0)
			continue;
		buffer_printf(out, "%s%s", separator, consistency_name((enum consistency)level));
		separator = ", ";
	}
	buffer_put_u8(out, ']');
}

static int
guardrail_check_levels(struct execution *execution, const char *name, const char *what,
    uint32_t used, uint32_t disallowed, uint32_t warned, struct error *err)
{
	bool is_failure = (used & disallowed) != 0;
	struct buffer message;
	int rc;

	if (!is_failure && (used & warned) == 0)
		return 0;
	buffer_init(&message);
	buffer_printf(&message, "Provided values ");
	guardrail_print_levels(&message, used & (is_failure ? disallowed : warned));
	buffer_printf(&message,
	    " are not %s for %s (%s values are: ", is_failure ? "allowed" : "recommended", what,
	    is_failure ? "disallowed" : "warned");
	guardrail_print_levels(&message, is_failure ? disallowed : warned);
	buffer_put_u8(&message, ')');
	rc = guardrail_violated(execution, name, is_failure, &message, err);
	buffer_fini(&message);
	return rc;
}

/* ---- Requests ------------------------------------------------------------------------------ */

static bool
guardrail_is_system(struct slice keyspace)
{
	return schema_is_local_keyspace(keyspace) || schema_is_replicated_system_keyspace(keyspace);
}

int
guardrail_check_select(struct execution *execution, struct error *err)
{
	const struct config *config = execution->executor->config;
	const struct prepared_statement *plan = execution->plan;

	if (!guardrail_applies(execution))
		return 0;
	if (plan->select->is_grouped &&
	    guardrail_check_switch(execution, GUARDRAIL_GROUP_BY, NULL, err) != 0)
		return -1;
	if (plan->statement->select.allow_filtering && !plan->table->is_virtual &&
	    !guardrail_is_system(plan->table->keyspace) &&
	    guardrail_check_switch(execution, GUARDRAIL_ALLOW_FILTERING, NULL, err) != 0)
		return -1;
	return guardrail_check_levels(execution, "read_consistency_levels",
	    "read consistency levels", 1u << execution->options->consistency,
	    config->read_levels_disallowed, config->read_levels_warned, err);
}

static int
guardrail_check_lists(struct execution *execution, const struct operation *operations,
    uint32_t count, struct error *err)
{
	for (uint32_t i = 0; i < count; i++) {
		const char *what = operations[i].kind == OPERATION_SET_INDEX
		    ? "Setting of list items by index requiring read before write"
		    : operations[i].kind == OPERATION_DELETE_INDEX
		    ? "Removal of list items by index requiring read before write"
		    : operations[i].kind == OPERATION_DISCARD
		    ? "Removal of list items requiring read before write"
		    : NULL;

		if (what != NULL &&
		    guardrail_check_switch(
			execution, GUARDRAIL_READ_BEFORE_WRITE_LISTS, what, err) != 0)
			return -1;
	}
	return 0;
}

/* Is a replica of what is written short of space? */
static int
guardrail_check_disks(
    struct execution *execution, const struct modification *modification, struct error *err)
{
	struct topology_holder *holder = execution->executor->node->cluster->topology;
	const struct topology *topology = topology_acquire(holder);
	const struct replication *replication =
	    topology_replication(topology, modification->plan->keyspace);
	uint8_t worst = DISK_USAGE_NOT_AVAILABLE;
	struct slice *keys;
	uint32_t count;
	int rc = modification_keys(modification, &keys, &count, err);

	for (uint32_t k = 0; rc == 0 && k < count; k++) {
		const struct replica_set *replicas =
		    replication_replicas(replication, murmur3_token(keys[k]));

		for (uint32_t i = 0; i < replicas->count + replicas->pending_count; i++) {
			uint8_t usage = atomic_load_explicit(
			    &replicas->peers[i]->disk_usage, memory_order_relaxed);

			worst = usage > worst ? usage : worst;
		}
	}
	topology_release(holder, topology);
	if (rc != 0 || worst < DISK_USAGE_STUFFED)
		return rc;
	return guardrail_violated_text(execution, "replica_disk_usage", worst == DISK_USAGE_FULL,
	    worst == DISK_USAGE_FULL
		? "Write request failed because disk usage exceeds failure threshold"
		: "Replica disk usage exceeds warning threshold",
	    err);
}

int
guardrail_check_write(struct execution *execution, const struct modification *modifications,
    uint32_t count, struct error *err)
{
	const struct config *config = execution->executor->config;

	if (!guardrail_applies(execution))
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct modification_plan *plan = modifications[i].plan;

		if (plan->timestamp != NULL &&
		    guardrail_check_switch(execution, GUARDRAIL_USER_TIMESTAMPS, NULL, err) != 0)
			return -1;
	}
	if (guardrail_check_levels(execution, "write_consistency_levels",
		"write consistency levels",
		1u << execution->options->consistency |
		    1u << execution->options->serial_consistency,
		config->write_levels_disallowed, config->write_levels_warned, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count && !config->read_before_write_list_operations_enabled; i++) {
		const struct modification_plan *plan = modifications[i].plan;

		if (guardrail_check_lists(execution, plan->statics, plan->static_count, err) != 0 ||
		    guardrail_check_lists(execution, plan->regulars, plan->regular_count, err) != 0)
			return -1;
	}
	if (atomic_load_explicit(&execution->executor->node->stuffed_peers, memory_order_relaxed) ==
	    0)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (guardrail_check_disks(execution, &modifications[i], err) != 0)
			return -1;
	return 0;
}

int
guardrail_check_collection(struct execution *execution, struct slice column, uint32_t items,
    int64_t size, struct error *err)
{
	if (guardrail_check_maximum(
		execution, GUARDRAIL_ITEMS_PER_COLLECTION, column, items, err) != 0)
		return -1;
	return guardrail_check_maximum(execution, GUARDRAIL_COLLECTION_SIZE, column, size, err);
}

/* ---- Properties of tables ------------------------------------------------------------------ */

static bool
guardrail_lists(const struct config_list *list, struct slice name)
{
	for (size_t i = 0; i < list->count; i++) {
		if (slice_equal_string(name, list->items[i]))
			return true;
	}
	return false;
}

/* Those of the properties that a list names, and the list: -1, 0 or 1 as guardrail_violated(), 1: none is there. */
static int
guardrail_check_list(struct execution *execution, const struct ast_properties *properties,
    const struct config_list *list, const char *format_begin, const char *format_middle,
    bool is_failure, struct error *err)
{
	const char *separator = "";
	struct buffer message;
	int rc = 0;

	buffer_init(&message);
	for (size_t i = 0; i < properties->count; i++) {
		struct slice name = ast_slice(properties->items[i].name);

		if (!guardrail_lists(list, name))
			continue;
		buffer_printf(&message, "%s%.*s", *separator == '\0' ? format_begin : separator,
		    (int)name.size, (const char *)name.data);
		separator = ", ";
	}
	if (*separator != '\0') {
		buffer_printf(&message, "] %s: [", format_middle);
		for (size_t i = 0; i < list->count; i++)
			buffer_printf(&message, "%s%s", i > 0 ? ", " : "", list->items[i]);
		buffer_printf(&message, "])");
		rc = guardrail_violated(execution, "table_properties", is_failure, &message, err);
	}
	buffer_fini(&message);
	return rc;
}

static int
guardrail_check_properties(
    struct execution *execution, const struct ast_properties *properties, struct error *err)
{
	const struct config *config = execution->executor->config;

	if (guardrail_check_list(execution, properties, &config->table_properties_disallowed,
		"Provided values [", "are not allowed for Table Properties (disallowed values are",
		true, err) != 0)
		return -1;
	(void)guardrail_check_list(execution, properties, &config->table_properties_ignored,
	    "Ignoring provided values [",
	    "as they are not supported for Table Properties (ignored values are", false, err);
	(void)guardrail_check_list(execution, properties, &config->table_properties_warned,
	    "Provided values [", "are not recommended for Table Properties (warned values are",
	    false, err);
	return 0;
}

bool
guardrail_ignores_property(const struct execution *execution, struct slice property)
{
	return guardrail_applies(execution) &&
	    guardrail_lists(&execution->executor->config->table_properties_ignored, property);
}

/* ---- Schema changes ------------------------------------------------------------------------ */

struct guardrail_counts {
	int64_t keyspaces, tables; /* of clients */
	int64_t all_keyspaces, all_tables; /* but for virtual ones */
};

static struct guardrail_counts
guardrail_count(const struct schema *schema)
{
	struct guardrail_counts counts = {0, 0, 0, 0};

	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[i];

		if (keyspace->is_virtual)
			continue;
		counts.all_keyspaces++;
		counts.all_tables += keyspace->table_count;
		if (guardrail_is_system(keyspace->name))
			continue;
		counts.keyspaces++;
		counts.tables += keyspace->table_count;
	}
	return counts;
}

static int
guardrail_check_create_keyspace(
    struct execution *execution, const struct guardrail_counts *counts, struct error *err)
{
	const struct statement_keyspace *create = &execution->plan->statement->keyspace;
	int32_t many = execution->executor->config->keyspace_count_warn_threshold;

	if (guardrail_check_maximum(execution, GUARDRAIL_KEYSPACES, ast_slice(create->name),
		counts->keyspaces + 1, err) != 0)
		return -1;
	if (counts->all_keyspaces + 1 > many)
		execution_warn(execution,
		    "Cluster already contains %lld keyspaces. Having a large number of keyspaces "
		    "will significantly slow down schema dependent cluster operations.",
		    (long long)counts->all_keyspaces + 1);
	return 0;
}

static int
guardrail_check_create_table(
    struct execution *execution, const struct guardrail_counts *counts, struct error *err)
{
	const struct statement_create_table *create = &execution->plan->statement->create_table;
	struct slice name = ast_slice(create->name.name);
	int32_t many = execution->executor->config->table_count_warn_threshold;

	if (guardrail_check_properties(execution, &create->properties, err) != 0 ||
	    guardrail_check_maximum(execution, GUARDRAIL_COLUMNS_PER_TABLE, name,
		(int64_t)create->columns.count, err) != 0 ||
	    guardrail_check_maximum(execution, GUARDRAIL_TABLES, name, counts->tables + 1, err) !=
		0)
		return -1;
	if (create->is_compact_storage &&
	    guardrail_check_switch(execution, GUARDRAIL_COMPACT_TABLES, NULL, err) != 0)
		return -1;
	if (counts->all_tables + 1 > many)
		execution_warn(execution,
		    "Cluster already contains %lld tables in %lld keyspaces. Having a large number "
		    "of tables will significantly slow down schema dependent cluster operations.",
		    (long long)counts->all_tables + 1, (long long)counts->all_keyspaces);
	return 0;
}

int
guardrail_check_schema_change(struct execution *execution, struct error *err)
{
	const struct statement *statement = execution->plan->statement;
	struct guardrail_counts counts = {0, 0, 0, 0};
	struct schema *schema;

	if (!guardrail_applies(execution))
		return 0;
	switch (execution->plan->kind) {
	case STATEMENT_CREATE_KEYSPACE:
	case STATEMENT_CREATE_TABLE:
		schema = schema_holder_get(&execution->executor->schema);
		counts = guardrail_count(schema);
		schema_unref(schema);
		return execution->plan->kind == STATEMENT_CREATE_KEYSPACE
		    ? guardrail_check_create_keyspace(execution, &counts, err)
		    : guardrail_check_create_table(execution, &counts, err);
	case STATEMENT_ALTER_TABLE:
		return statement->alter_table.kind == AST_ALTER_TABLE_PROPERTIES
		    ? guardrail_check_properties(execution, &statement->alter_table.properties, err)
		    : 0;
	case STATEMENT_DROP_TABLE:
		return guardrail_check_switch(execution, GUARDRAIL_DROP_TRUNCATE_TABLE, NULL, err);
	case STATEMENT_CREATE_TYPE:
		return guardrail_check_maximum(execution, GUARDRAIL_FIELDS_PER_UDT,
		    ast_slice(statement->create_type.name.name),
		    (int64_t)statement->create_type.fields.count, err);
	case STATEMENT_CREATE_INDEX:
		return guardrail_check_switch(execution, GUARDRAIL_SECONDARY_INDEXES, NULL, err);
	default:
		return 0;
	}
}
