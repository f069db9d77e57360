/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of guardrails: what they may be (config/GuardrailsOptions), and what they are made into. */
#include <ctype.h>
#include <string.h>
#include "base/consistency.h"
#include "cql/table_options.h"
#include "server/config_internal.h"
#include "server/guardrails.h"

void
guardrail_limits(
    const struct config *config, enum guardrail_maximum which, int64_t *warn, int64_t *fail)
{
	*warn = *fail = -1;
	switch (which) {
	case GUARDRAIL_KEYSPACES:
		*warn = config->keyspaces_warn_threshold;
		*fail = config->keyspaces_fail_threshold;
		break;
	case GUARDRAIL_TABLES:
		*warn = config->tables_warn_threshold;
		*fail = config->tables_fail_threshold;
		break;
	case GUARDRAIL_COLUMNS_PER_TABLE:
		*warn = config->columns_per_table_warn_threshold;
		*fail = config->columns_per_table_fail_threshold;
		break;
	case GUARDRAIL_FIELDS_PER_UDT:
		*warn = config->fields_per_udt_warn_threshold;
		*fail = config->fields_per_udt_fail_threshold;
		break;
	case GUARDRAIL_PAGE_SIZE:
		*warn = config->page_size_warn_threshold;
		*fail = config->page_size_fail_threshold;
		break;
	case GUARDRAIL_PARTITION_KEYS_IN_SELECT:
		*warn = config->partition_keys_in_select_warn_threshold;
		*fail = config->partition_keys_in_select_fail_threshold;
		break;
	case GUARDRAIL_IN_SELECT_CARTESIAN_PRODUCT:
		*warn = config->in_select_cartesian_product_warn_threshold;
		*fail = config->in_select_cartesian_product_fail_threshold;
		break;
	case GUARDRAIL_ITEMS_PER_COLLECTION:
		*warn = config->items_per_collection_warn_threshold;
		*fail = config->items_per_collection_fail_threshold;
		break;
	case GUARDRAIL_COLLECTION_SIZE:
		*warn = config->collection_size_warn_threshold;
		*fail = config->collection_size_fail_threshold;
		break;
	case GUARDRAIL_MAXIMUM_COUNT:
		break;
	}
}

const char *
guardrail_maximum_name(enum guardrail_maximum which)
{
	static const char *const names[GUARDRAIL_MAXIMUM_COUNT] = {
	    [GUARDRAIL_KEYSPACES] = "keyspaces",
	    [GUARDRAIL_TABLES] = "tables",
	    [GUARDRAIL_COLUMNS_PER_TABLE] = "columns_per_table",
	    [GUARDRAIL_FIELDS_PER_UDT] = "fields_per_udt",
	    [GUARDRAIL_PAGE_SIZE] = "page_size",
	    [GUARDRAIL_PARTITION_KEYS_IN_SELECT] = "partition_keys_in_select",
	    [GUARDRAIL_IN_SELECT_CARTESIAN_PRODUCT] = "in_select_cartesian_product",
	    [GUARDRAIL_ITEMS_PER_COLLECTION] = "items_per_collection",
	    [GUARDRAIL_COLLECTION_SIZE] = "collection_size",
	};

	return names[which];
}

static int
config_check_threshold(const char *name, const char *which, int64_t value, struct error *err)
{
	if (value == 0)
		return error_set(err, ERROR_CONFIG,
		    "Invalid value for %s_%s_threshold: 0 is not allowed; if attempting to disable "
		    "use -1",
		    name, which);
	if (value < -1)
		return error_set(err, ERROR_CONFIG,
		    "Invalid value %lld for %s_%s_threshold: negative values are not allowed, "
		    "outside of -1 which disables the guardrail",
		    (long long)value, name, which);
	return 0;
}

static int
config_check_thresholds(
    const char *name, bool is_maximum, int64_t warn, int64_t fail, struct error *err)
{
	if (config_check_threshold(name, "warn", warn, err) != 0 ||
	    config_check_threshold(name, "fail", fail, err) != 0)
		return -1;
	if (warn == -1 || fail == -1 || (is_maximum ? warn <= fail : warn >= fail))
		return 0;
	return error_set(err, ERROR_CONFIG,
	    "The warn threshold %lld for %s_warn_threshold should be %s than the fail threshold "
	    "%lld",
	    (long long)warn, name, is_maximum ? "lower" : "greater", (long long)fail);
}

static int
config_finish_levels(
    const struct config_list *list, const char *key, uint32_t *mask, struct error *err)
{
	*mask = 0;
	for (size_t i = 0; i < list->count; i++) {
		enum consistency level;

		if (!consistency_parse(list->items[i], strlen(list->items[i]), &level))
			return error_set(err, ERROR_CONFIG,
			    "%s: '%s' is no consistency level: it must be ANY, ONE, TWO, THREE, "
			    "QUORUM, ALL, LOCAL_QUORUM, EACH_QUORUM, SERIAL, LOCAL_SERIAL or "
			    "LOCAL_ONE",
			    key, list->items[i]);
		*mask |= 1u << level;
	}
	return 0;
}

static int
config_finish_properties(struct config_list *list, const char *key, struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		for (char *c = list->items[i]; *c != '\0'; c++)
			*c = (char)tolower((unsigned char)*c);
		if (!table_options_knows(slice_of_string(list->items[i])))
			return error_set(err, ERROR_CONFIG,
			    "Invalid value for %s: '%s' do not parse as valid table properties",
			    key, list->items[i]);
	}
	return 0;
}

static int
config_check_disk_usage(const struct config *config, struct error *err)
{
	int32_t warn = config->data_disk_usage_percentage_warn_threshold;
	int32_t fail = config->data_disk_usage_percentage_fail_threshold;

	if (warn > 100 || fail > 100)
		return error_set(err, ERROR_CONFIG,
		    "Invalid value %d for data_disk_usage_percentage_%s_threshold: maximum allowed "
		    "value is 100",
		    warn > 100 ? warn : fail, warn > 100 ? "warn" : "fail");
	if (config->data_disk_usage_max_disk_size == 0)
		return error_set(err, ERROR_CONFIG,
		    "Invalid value for data_disk_usage_max_disk_size: 0 is not allowed; if "
		    "attempting to disable use an empty value");
	return config_check_thresholds("data_disk_usage_percentage", true, warn, fail, err);
}

static int
config_check_denylist(const struct config *config, struct error *err)
{
	const char *name = config->denylist_consistency_level;
	enum consistency level;

	if (!consistency_parse(name, strlen(name), &level) || level == CONSISTENCY_ANY ||
	    consistency_is_serial(level))
		return error_set(err, ERROR_CONFIG,
		    "denylist_consistency_level: '%s' is no level of reads: it must be ONE, TWO, "
		    "THREE, QUORUM, ALL, LOCAL_QUORUM, EACH_QUORUM or LOCAL_ONE",
		    name);
	if (config->denylist_max_keys_per_table <= 0 || config->denylist_max_keys_total <= 0)
		return error_set(err, ERROR_CONFIG, "%s must be a positive integer",
		    config->denylist_max_keys_per_table <= 0 ? "denylist_max_keys_per_table"
							     : "denylist_max_keys_total");
	return 0;
}

int
config_finish_guardrails(struct config *config, struct error *err)
{
	int64_t warn = config->minimum_replication_factor_warn_threshold;
	int64_t fail = config->minimum_replication_factor_fail_threshold;

	for (int i = 0; i < GUARDRAIL_MAXIMUM_COUNT; i++) {
		enum guardrail_maximum which = (enum guardrail_maximum)i;
		int64_t most, too_many;

		guardrail_limits(config, which, &most, &too_many);
		if (config_check_thresholds(
			guardrail_maximum_name(which), true, most, too_many, err) != 0)
			return -1;
	}
	if (config->coordinator_read_size_warn_threshold != CONFIG_UNSET &&
	    config->coordinator_read_size_fail_threshold != CONFIG_UNSET &&
	    config->coordinator_read_size_fail_threshold <
		config->coordinator_read_size_warn_threshold)
		return error_set(err, ERROR_CONFIG,
		    "coordinator_read_size_fail_threshold (%lldB) must be greater than or equal to "
		    "coordinator_read_size_warn_threshold (%lldB)",
		    (long long)config->coordinator_read_size_fail_threshold,
		    (long long)config->coordinator_read_size_warn_threshold);
	if (config_check_disk_usage(config, err) != 0 || config_check_denylist(config, err) != 0)
		return -1;
	if (config_check_thresholds("minimum_replication_factor", false, warn, fail, err) != 0)
		return -1;
	if (fail > config->default_keyspace_rf)
		return error_set(err, ERROR_CONFIG,
		    "default_keyspace_rf (%d) cannot be less than "
		    "minimum_replication_factor_fail_threshold (%lld)",
		    config->default_keyspace_rf, (long long)fail);
	if (config_finish_levels(&config->read_consistency_levels_warned,
		"read_consistency_levels_warned", &config->read_levels_warned, err) != 0 ||
	    config_finish_levels(&config->read_consistency_levels_disallowed,
		"read_consistency_levels_disallowed", &config->read_levels_disallowed, err) != 0 ||
	    config_finish_levels(&config->write_consistency_levels_warned,
		"write_consistency_levels_warned", &config->write_levels_warned, err) != 0 ||
	    config_finish_levels(&config->write_consistency_levels_disallowed,
		"write_consistency_levels_disallowed", &config->write_levels_disallowed, err) != 0)
		return -1;
	if (config_finish_properties(
		&config->table_properties_warned, "table_properties_warned", err) != 0 ||
	    config_finish_properties(
		&config->table_properties_ignored, "table_properties_ignored", err) != 0)
		return -1;
	return config_finish_properties(
	    &config->table_properties_disallowed, "table_properties_disallowed", err);
}
