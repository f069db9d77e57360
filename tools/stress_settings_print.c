/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include "tools/stress_settings.h"

static const char *
stress_bool(bool value)
{
	return value ? "true" : "false";
}

static const char *
stress_or_null(const char *text)
{
	return text != NULL ? text : "null";
}

/* %,d of Java. */
static void
stress_put_grouped(struct buffer *out, long long value)
{
	char digits[32];
	int size = snprintf(digits, sizeof(digits), "%lld", value);

	for (int i = 0; i < size; i++) {
		if (i > 0 && (size - i) % 3 == 0 && digits[i - 1] != '-')
			buffer_put_u8(out, ',');
		buffer_put_u8(out, (uint8_t)digits[i]);
	}
}

static void
stress_put_distribution(
    struct buffer *out, const char *title, const struct stress_distribution *distribution)
{
	buffer_printf(out, "  %s: ", title);
	stress_distribution_print(distribution, out);
	buffer_put_string(out, "\n");
}

static void
stress_put_ratio(struct buffer *out, const char *title, const struct stress_ratio *ratio)
{
	buffer_printf(out, "  %s: Ratio: divisor=%f;delegate=", title, ratio->divisor);
	stress_distribution_print(&ratio->distribution, out);
	buffer_put_string(out, "\n");
}

static void
stress_print_command(const struct stress_settings *settings, struct buffer *out)
{
	const char *name = stress_command_name(settings->command);

	buffer_put_string(out, "Command:\n  Type: ");
	for (; *name != '\0'; name++)
		buffer_put_u8(out, (uint8_t)tolower((unsigned char)*name));
	buffer_put_string(out, "\n  Count: ");
	stress_put_grouped(out, settings->count);
	if (settings->duration > 0) {
		buffer_put_string(out, "\n  Duration: ");
		stress_put_grouped(out, settings->duration);
		buffer_printf(out, " %s",
		    settings->duration_unit == 'h'       ? "HOURS"
			: settings->duration_unit == 'm' ? "MINUTES"
							 : "SECONDS");
	}
	buffer_printf(out,
	    "\n  No Warmup: %s\n  Consistency Level: %s\n  Serial Consistency Level: %s\n",
	    stress_bool(settings->no_warmup), consistency_name(settings->consistency),
	    consistency_name(settings->serial_consistency));
	if (settings->target_uncertainty >= 0)
		buffer_printf(out,
		    "  Target Uncertainty: %.3f\n  Minimum Uncertainty Measurements: %d\n"
		    "  Maximum Uncertainty Measurements: %d\n",
		    settings->target_uncertainty, settings->uncertainty_min,
		    settings->uncertainty_max);
	else
		buffer_put_string(out, "  Target Uncertainty: not applicable\n");
	if (settings->command != STRESS_USER)
		buffer_printf(out,
		    "  Key Size (bytes): %d\n  Counter Increment Distibution: add=%s\n",
		    settings->key_size, settings->counter_add_text);
	if (settings->share_count == 0)
		return;
	buffer_put_string(out, "  Command Ratios: {");
	for (uint32_t i = 0; i < settings->share_count; i++)
		buffer_printf(out, "%s%s=%.1f", i > 0 ? ", " : "", settings->shares[i].name,
		    settings->shares[i].share);
	buffer_printf(out, "}\n  Command Clustering Distribution: clustering=%s\n",
	    settings->clustering_text);
	if (settings->profiles != NULL)
		buffer_printf(out, "  Profile File(s): %s\n", settings->profiles);
}

static void
stress_print_load(const struct stress_settings *settings, struct buffer *out)
{
	static const char *const orders[] = {"ARBITRARY", "SHUFFLED", "SORTED"};
	static const char *const batches[] = {"LOGGED", "UNLOGGED", "COUNTER"};
	const struct stress_population *population = &settings->population;

	buffer_printf(out, "Rate:\n  Auto: %s\n", stress_bool(settings->is_auto));
	if (settings->is_auto)
		buffer_printf(out, "  Min Threads: %d\n  Max Threads: %d\n", settings->threads_min,
		    settings->threads_max);
	else
		buffer_printf(out, "  Thread Count: %d\n  OpsPer Sec: %d\n", settings->threads,
		    settings->rate);
	buffer_put_string(out, "Population:\n");
	if (population->is_sequence)
		buffer_printf(out, "  Sequence: %lld..%lld\n", (long long)population->first,
		    (long long)population->last);
	else
		stress_put_distribution(out, "Distribution", &population->distribution);
	if (population->has_lookback)
		stress_put_distribution(out, "Read Look Back", &population->lookback);
	buffer_printf(out, "  Order: %s\n  Wrap: %s\nInsert:\n", orders[settings->order],
	    stress_bool(population->wraps));
	stress_put_distribution(out, "Revisits", &settings->revisit);
	stress_put_distribution(out, "Visits", &settings->visits);
	if (settings->has_batch_size)
		stress_put_distribution(out, "Batchsize", &settings->batch_size);
	if (settings->has_select_ratio)
		stress_put_ratio(out, "Select Ratio", &settings->select_ratio);
	stress_put_ratio(out, "Row Population Ratio", &settings->row_population);
	buffer_printf(out, "  Batch Type: %s\n",
	    settings->batch_type < 0 ? "not batching" : batches[settings->batch_type]);
	if (settings->command == STRESS_USER)
		return;
	buffer_printf(
	    out, "Columns:\n  Max Columns Per Key: %u\n  Column Names: [", settings->column_count);
	for (uint32_t i = 0; i < settings->column_count; i++)
		buffer_printf(out, "%s%s", i > 0 ? ", " : "", settings->columns[i]);
	buffer_printf(out,
	    "]\n  Comparator: %s\n  Timestamp: %s\n  Variable Column Count: %s\n  Slice: %s\n",
	    settings->comparator, stress_or_null(settings->timestamp),
	    stress_bool(stress_distribution_min(&settings->column_counts) < settings->column_count),
	    stress_bool(settings->slice));
	stress_put_distribution(out, "Size Distribution", &settings->column_size);
	stress_put_distribution(out, "Count Distribution", &settings->column_counts);
}

static void
stress_print_schema(const struct stress_settings *settings, struct buffer *out)
{
	buffer_put_string(out, "Node:\n  Nodes: [");
	for (uint32_t i = 0; i < settings->node_count; i++)
		buffer_printf(out, "%s%s", i > 0 ? ", " : "", settings->nodes[i]);
	buffer_printf(out, "]\n  Is White List: %s\n  Datacenter: %s\n",
	    stress_bool(settings->is_white_list), stress_or_null(settings->datacenter));
	if (settings->rack != NULL)
		buffer_printf(out, "  Rack: %s\n", settings->rack);
	buffer_printf(out,
	    "Schema:\n  Keyspace: %s\n  Replication Strategy: %s\n  Replication Strategy Options: "
	    "{%s}\n  Table Compression: %s\n  Table Compaction Strategy: %s\n  Table Compaction "
	    "Strategy Options: {%s}\n",
	    settings->command == STRESS_USER ? "null" : settings->keyspace, settings->strategy,
	    settings->strategy_options + (*settings->strategy_options != '\0' ? 2 : 0),
	    stress_or_null(settings->table_compression),
	    *settings->compaction != '\0' ? settings->compaction : "null",
	    settings->compaction_options + (*settings->compaction_options != '\0' ? 2 : 0));
	buffer_printf(out,
	    "Transport:\n  Truststore: %s\n  Truststore Password: %s\n  Keystore: %s\n  Keystore "
	    "Password: %s\n  SSL Ciphers: %s\n",
	    stress_or_null(settings->trust_store),
	    settings->trust_store_password != NULL ? "*suppressed*" : "null",
	    stress_or_null(settings->key_store),
	    settings->key_store_password != NULL ? "*suppressed*" : "null",
	    stress_or_null(settings->ciphers));
}

void
stress_settings_print(const struct stress_settings *settings, struct buffer *out)
{
	static const char *const levels[] = {"MINIMAL", "NORMAL", "VERBOSE"};
	static const char *const compressions[] = {"NONE", "LZ4", "SNAPPY"};

	buffer_put_string(out, "******************** Stress Settings ********************\n");
	stress_print_command(settings, out);
	stress_print_load(settings, out);
	buffer_printf(out, "Errors:\n  Ignore: %s\n  Tries: %d\n",
	    stress_bool(settings->ignore_errors), settings->tries);
	buffer_printf(out,
	    "Log:\n  No Summary: %s\n  No Settings: %s\n  File: %s\n  Interval Millis: %d\n  "
	    "Level: "
	    "%s\n",
	    stress_bool(settings->no_summary), stress_bool(settings->no_settings),
	    stress_or_null(settings->log_file), settings->interval_ms, levels[settings->log_level]);
	buffer_printf(out,
	    "Mode:\n  API: JAVA_DRIVER_NATIVE\n  Connection Style: %s\n  Protocol Version: ",
	    settings->is_prepared ? "CQL_PREPARED" : "CQL");
	if (settings->protocol_version != 0)
		buffer_printf(out, "V%d", settings->protocol_version);
	else
		buffer_put_string(out, "NEWEST_SUPPORTED");
	buffer_printf(out,
	    "\n  Username: %s\n  Password: %s\n  Auth Provide Class: %s\n  Max Pending Per "
	    "Connection: %d\n  Connections Per Host: %d\n  Compression: %s\n",
	    stress_or_null(settings->user), settings->password != NULL ? "*suppressed*" : "null",
	    stress_or_null(settings->auth_provider), settings->pending_max,
	    settings->connections_per_host, compressions[settings->compression]);
	stress_print_schema(settings, out);
	buffer_printf(out,
	    "Port:\n  Native Port: %d\n  JMX Port: %d\nSend To Daemon:\n  *not set*\nGraph:\n  "
	    "File: "
	    "%s\n  Revision: %s\n  Title: %s\n  Operation: %s\nTokenRange:\n  Wrap: %s\n  Split "
	    "Factor: %d\n",
	    settings->port, settings->jmx_port, stress_or_null(settings->graph_file),
	    settings->graph_revision != NULL ? settings->graph_revision : "unknown",
	    stress_or_null(settings->graph_title),
	    settings->graph_operation != NULL ? settings->graph_operation
					      : stress_command_name(settings->command),
	    stress_bool(settings->wraps_ranges), settings->split_factor);
}
