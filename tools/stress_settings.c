/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/alloc.h"
#include "protocol/message.h"
#include "tools/stress_help.h"

bool
stress_settings_inserts_only(const struct stress_settings *settings)
{
	return settings->share_count == 1 && strcmp(settings->shares[0].name, "insert") == 0;
}

/* ---- Reading ----------------------------------------------------------------------------------- */

/* Which group of an option is meant; its help goes out where none is. */
static int
stress_select(struct stress_arguments *arguments, const char *key, struct stress_group *groups,
    size_t count, struct error *err)
{
	int chosen =
	    stress_groups_select(groups, count, stress_arguments_take(arguments, key), err);

	if (chosen < 0) {
		stress_groups_print_help(key, groups, count);
		if (*err->text == '\0')
			error_set(err, ERROR_INVALID,
			    "Invalid %s options provided, see output for valid options", key);
	}
	return chosen;
}

/* The groups of an option by its name in the topics. */
static int
stress_select_topic(struct stress_arguments *arguments, const char *key,
    struct stress_group groups[2], struct error *err)
{
	size_t count = stress_topic_groups(key, groups);

	return stress_select(arguments, key, groups, count, err);
}

/* Numbers that the patterns have checked; false: beyond int. */
static int
stress_number(const struct stress_group *group, const char *prefix, int *out, struct error *err)
{
	const char *text = stress_group_value(group, prefix);
	int64_t value = 0;
	size_t size = strspn(text, "0123456789");

	if (!stress_parse_long(text, size, &value) || value > INT32_MAX)
		return error_set(err, ERROR_INVALID, "Invalid value %s of %s", text, prefix);
	*out = (int)value;
	return 0;
}

static struct stress_distribution
stress_distribution_of(const char *text)
{
	struct stress_distribution distribution;

	/* Given ones were checked when they were accepted, standard ones are right. */
	if (stress_distribution_parse(&distribution, text, NULL) != 0)
		return stress_distribution_fixed(1);
	return distribution;
}

static int
stress_parse_shares(
    struct stress_settings *settings, const char *text, bool is_commands, struct error *err)
{
	char key[2 * STRESS_NAME_MAX], value[64], *end;
	enum stress_command command;
	bool is_bad;

	while (stress_multi_next(&text, key, sizeof(key), value, sizeof(value), &is_bad)) {
		struct stress_share *share = &settings->shares[settings->share_count];
		double amount = strtod(value, &end);
		const char *name = key;

		for (char *c = key; !is_bad && *c != '\0'; c++)
			*c = (char)tolower((unsigned char)*c);
		if (!is_bad && is_commands)
			name = stress_command_find(key, &command) && command <= STRESS_COUNTER_READ
			    ? stress_command_name(command)
			    : NULL;
		if (is_bad || name == NULL || *end != '\0' || !(amount >= 0) ||
		    settings->share_count == STRESS_OPERATIONS_MAX)
			return error_set(err, ERROR_INVALID, "Invalid %s specification: %s",
			    is_commands ? "ratio" : "ops", is_bad ? text : key);
		if (amount == 0)
			continue;
		for (uint32_t i = 0; i < settings->share_count; i++) {
			if (strcmp(settings->shares[i].name, name) == 0)
				return error_set(err, ERROR_INVALID, "%s set twice", key);
		}
		snprintf(share->name, sizeof(share->name), "%s", name);
		share->share = amount;
		settings->share_count++;
	}
	if (settings->share_count == 0)
		return error_set(
		    err, ERROR_INVALID, "Must specify at least one command with a non-zero ratio");
	return 0;
}

static int
stress_parse_extent(
    struct stress_settings *settings, const struct stress_group *group, struct error *err)
{
	const char *count = stress_group_value(group, "n=");
	const char *duration = stress_group_value(group, "duration=");

	settings->count = -1;
	settings->target_uncertainty = -1;
	settings->uncertainty_min = -1;
	settings->uncertainty_max = -1;
	if (count != NULL) {
		if (!stress_parse_long(count, strlen(count), &settings->count))
			return error_set(err, ERROR_INVALID, "Invalid value %s of n=", count);
		return 0;
	}
	if (duration != NULL) {
		size_t size = strlen(duration);

		if (!stress_parse_long(duration, size - 1, &settings->duration) ||
		    settings->duration > INT32_MAX)
			return error_set(err, ERROR_INVALID, "Invalid duration %s", duration);
		settings->duration_unit = (char)tolower((unsigned char)duration[size - 1]);
		return 0;
	}
	settings->target_uncertainty = strtod(stress_group_value(group, "err<"), NULL);
	if (stress_number(group, "n>", &settings->uncertainty_min, err) != 0)
		return -1;
	return stress_number(group, "n<", &settings->uncertainty_max, err);
}

static int
stress_parse_command(struct stress_settings *settings, struct error *err)
{
	struct stress_group groups[STRESS_COMMAND_GROUPS_MAX];
	size_t count = stress_command_groups(settings->command, groups);
	const char *text;
	int chosen;
	const struct stress_group *group;

	chosen = stress_select(
	    &settings->arguments, settings->arguments.list[0].key, groups, count, err);
	if (chosen < 0)
		return -1;
	group = &groups[chosen];
	if (stress_parse_extent(settings, group, err) != 0)
		return -1;
	settings->no_warmup = stress_group_is_set(group, "no-warmup");
	text = stress_group_value(group, "truncate=");
	settings->truncate = strcasecmp(text, "never") == 0 ? STRESS_TRUNCATE_NEVER
	    : strcasecmp(text, "once") == 0                 ? STRESS_TRUNCATE_ONCE
							    : STRESS_TRUNCATE_ALWAYS;
	text = stress_group_value(group, "cl=");
	consistency_parse(text, strlen(text), &settings->consistency);
	text = stress_group_value(group, "serial-cl=");
	consistency_parse(text, strlen(text), &settings->serial_consistency);
	settings->key_size = 10;
	settings->counter_add = stress_distribution_fixed(1);
	if (settings->command != STRESS_USER) {
		settings->counter_add_text = stress_group_value(group, "add=");
		settings->counter_add = stress_distribution_of(settings->counter_add_text);
		if (stress_number(group, "keysize=", &settings->key_size, err) != 0)
			return -1;
	}
	if (settings->command == STRESS_MIXED || settings->command == STRESS_USER) {
		settings->clustering_text = stress_group_value(group, "clustering=");
		settings->clustering = stress_distribution_of(settings->clustering_text);
	}
	if (settings->command == STRESS_USER) {
		settings->profiles = stress_group_value(group, "profile=");
		text = stress_group_value(group, "ops");
		return stress_parse_shares(settings, text != NULL ? text : ")", false, err);
	}
	if (settings->command == STRESS_MIXED) {
		text = stress_group_value(group, "ratio");
		return stress_parse_shares(
		    settings, text != NULL ? text : "read=1,write=1)", true, err);
	}
	return 0;
}

static int
stress_parse_rate(struct stress_settings *settings, struct error *err)
{
	struct stress_group groups[2];
	int throttle, fixed, chosen;

	settings->threads = settings->threads_min = settings->threads_max = -1;
	if (stress_arguments_take(&settings->arguments, "-rate") == NULL &&
	    (settings->command == STRESS_WRITE || settings->command == STRESS_COUNTER_WRITE) &&
	    settings->count > 0) {
		settings->threads = 200;
		settings->is_fixed = true; /* "0 == 0", as there; it means nothing without a rate */
		return 0;
	}
	chosen = stress_select_topic(&settings->arguments, "-rate", groups, err);
	if (chosen < 0)
		return -1;
	if (chosen == 0) {
		settings->is_auto = stress_group_is_set(&groups[0], "auto") ||
		    stress_arguments_take(&settings->arguments, "-rate") == NULL;
		if (stress_number(&groups[0], "threads>=", &settings->threads_min, err) != 0 ||
		    stress_number(&groups[0], "threads<=", &settings->threads_max, err) != 0)
			return -1;
		return settings->threads_min > 0
		    ? 0
		    : error_set(err, ERROR_INVALID, "threads>= must be at least 1");
	}
	if (stress_number(&groups[1], "threads=", &settings->threads, err) != 0 ||
	    stress_number(&groups[1], "throttle=", &throttle, err) != 0 ||
	    stress_number(&groups[1], "fixed=", &fixed, err) != 0)
		return -1;
	if (throttle != 0 && fixed != 0)
		return error_set(
		    err, ERROR_INVALID, "can't have both fixed and throttle set, choose one.");
	if (settings->threads < 1)
		return error_set(err, ERROR_INVALID, "threads= must be at least 1");
	settings->rate = fixed > throttle ? fixed : throttle;
	settings->is_fixed = settings->rate == fixed;
	return 0;
}

static int
stress_parse_population(struct stress_settings *settings, struct error *err)
{
	struct stress_population *population = &settings->population;
	int64_t limit = settings->count <= 0 ? 1000000 : settings->count;
	bool is_given = stress_arguments_take(&settings->arguments, "-pop") != NULL;
	struct stress_group groups[2];
	const char *text;
	char standard[64];
	int chosen = 0;

	population->wraps = true;
	if (is_given) {
		chosen = stress_select_topic(&settings->arguments, "-pop", groups, err);
		if (chosen < 0)
			return -1;
		text = stress_group_value(&groups[chosen], "contents=");
		settings->order = text == NULL        ? STRESS_ARBITRARY
		    : strcasecmp(text, "sorted") == 0 ? STRESS_SORTED
						      : STRESS_SHUFFLED;
	} else if (settings->command != STRESS_WRITE && settings->command != STRESS_COUNTER_WRITE &&
	    !(settings->command == STRESS_USER && stress_settings_inserts_only(settings))) {
		chosen = 1;
	}
	if (chosen == 1) {
		text = is_given ? stress_group_value(&groups[1], "dist=") : NULL;
		snprintf(standard, sizeof(standard), "gaussian(1..%lld)", (long long)limit);
		population->wraps = false;
		population->distribution = stress_distribution_of(text != NULL ? text : standard);
		return 0;
	}
	population->is_sequence = true;
	population->first = 1;
	population->last = limit;
	if (!is_given)
		return 0;
	text = stress_group_value(&groups[0], "seq=");
	if (!stress_parse_range(text, strlen(text), &population->first, &population->last) ||
	    population->first > population->last)
		return error_set(err, ERROR_INVALID, "Invalid sequence %s", text);
	population->wraps = !stress_group_is_set(&groups[0], "no-wrap");
	text = stress_group_value(&groups[0], "read-lookback=");
	if (text != NULL) {
		population->has_lookback = true;
		population->lookback = stress_distribution_of(text);
	}
	return 0;
}

static int
stress_parse_insert(struct stress_settings *settings, struct error *err)
{
	struct stress_group groups[2];
	const char *text;

	if (stress_select_topic(&settings->arguments, "-insert", groups, err) < 0)
		return -1;
	settings->visits = stress_distribution_of(stress_group_value(groups, "visits="));
	settings->revisit = stress_distribution_of(stress_group_value(groups, "revisit="));
	text = stress_group_value(groups, "partitions=");
	settings->has_batch_size = text != NULL;
	if (text != NULL)
		settings->batch_size = stress_distribution_of(text);
	text = stress_group_value(groups, "batchtype=");
	settings->batch_type = text == NULL     ? -1
	    : strcasecmp(text, "logged") == 0   ? BATCH_LOGGED
	    : strcasecmp(text, "unlogged") == 0 ? BATCH_UNLOGGED
						: BATCH_COUNTER;
	text = stress_group_value(groups, "select-ratio=");
	settings->has_select_ratio = text != NULL;
	if (text != NULL && stress_ratio_parse(&settings->select_ratio, text, err) != 0)
		return -1;
	return stress_ratio_parse(
	    &settings->row_population, stress_group_value(groups, "row-population-ratio="), err);
}

static int
stress_compare_names_cb(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int
stress_parse_columns(struct stress_settings *settings, struct error *err)
{
	struct stress_group groups[2];
	int64_t count;
	int chosen;

	/* Neither group is content with nothing but the second. */
	chosen = stress_select_topic(&settings->arguments, "-col", groups, err);
	if (chosen < 0)
		return -1;
	settings->column_size =
	    stress_distribution_of(stress_group_value(&groups[chosen], "size="));
	settings->comparator = stress_group_value(&groups[chosen], "comparator=");
	settings->timestamp = stress_group_value(&groups[chosen], "timestamp=");
	settings->slice = stress_group_is_set(&groups[chosen], "slice");
	settings->columns = xcalloc(STRESS_COLUMNS_MAX, sizeof(*settings->columns));
	if (chosen == 0) {
		const char *names = stress_group_value(&groups[0], "names=");

		while (*names != '\0') {
			size_t size = strcspn(names, ",");

			if (size > 0 && size < STRESS_NAME_MAX &&
			    settings->column_count < STRESS_COLUMNS_MAX)
				memcpy(settings->columns[settings->column_count++], names, size);
			else
				return error_set(
				    err, ERROR_INVALID, "Invalid column names: %s", names);
			names += size + (names[size] == ',');
		}
		settings->column_counts = stress_distribution_fixed(settings->column_count);
	} else {
		settings->column_counts =
		    stress_distribution_of(stress_group_value(&groups[1], "n="));
		count = stress_distribution_max(&settings->column_counts);
		if (count < 1 || count > STRESS_COLUMNS_MAX)
			return error_set(err, ERROR_INVALID,
			    "The number of columns must be 1 to %d", STRESS_COLUMNS_MAX);
		settings->column_count = (uint32_t)count;
		for (uint32_t i = 0; i < settings->column_count; i++)
			snprintf(settings->columns[i], STRESS_NAME_MAX, "C%u", i);
	}
	if (settings->column_count == 0)
		return error_set(err, ERROR_INVALID, "No column names");
	if (stress_distribution_max(&settings->column_size) > 64 << 20)
		return error_set(err, ERROR_INVALID, "A column's size must be at most 64 MiB");
	qsort(settings->columns, settings->column_count, sizeof(*settings->columns),
	    stress_compare_names_cb);
	return 0;
}

static int
stress_parse_interval(const char *text, int *out, struct error *err)
{
	size_t size = strspn(text, "0123456789");
	int64_t value;

	if (!stress_parse_long(text, size, &value) || value > 86400000)
		return error_set(err, ERROR_INVALID, "Invalid interval %s", text);
	if (strcmp(text + size, "ms") != 0)
		value *= 1000;
	if (value <= 0 || value > INT32_MAX)
		return error_set(err, ERROR_INVALID, "Log interval must be greater than zero");
	*out = (int)value;
	return 0;
}

static int
stress_parse_log(struct stress_settings *settings, struct error *err)
{
	struct stress_group errors[2], log[2], reporting[2];
	const char *text;

	if (stress_select_topic(&settings->arguments, "-errors", errors, err) < 0 ||
	    stress_select_topic(&settings->arguments, "-log", log, err) < 0 ||
	    stress_select_topic(&settings->arguments, "-reporting", reporting, err) < 0)
		return -1;
	if (stress_number(errors, "retries=", &settings->tries, err) != 0)
		return -1;
	settings->tries = settings->tries < INT32_MAX ? settings->tries + 1 : INT32_MAX;
	settings->ignore_errors = stress_group_is_set(errors, "ignore");
	settings->skip_read_validation = stress_group_is_set(errors, "skip-read-validation");
	settings->skip_unsupported_columns =
	    stress_group_is_set(errors, "skip-unsupported-columns");
	text = stress_group_value(log, "level=");
	settings->log_level = strcasecmp(text, "minimal") == 0 ? STRESS_LOG_MINIMAL
	    : strcasecmp(text, "verbose") == 0                 ? STRESS_LOG_VERBOSE
							       : STRESS_LOG_NORMAL;
	settings->no_summary = stress_group_is_set(log, "no-summary");
	settings->no_settings = stress_group_is_set(log, "no-settings");
	settings->log_file = stress_group_value(log, "file=");
	settings->hdr_file = stress_group_value(log, "hdrfile=");
	settings->shows_queries = stress_group_is_set(log, "show-queries");
	settings->query_log_file = stress_group_value(log, "query-log-file=");
	text = stress_group_value(reporting, "header-frequency=");
	if (text != NULL && stress_parse_interval(text, &settings->header_interval_ms, err) != 0)
		return -1;
	text = stress_group_is_set(reporting, "output-frequency=")
	    ? stress_group_value(reporting, "output-frequency=")
	    : stress_group_value(log, "interval=");
	return stress_parse_interval(text, &settings->interval_ms, err);
}

static int
stress_read_credentials(struct stress_settings *settings, struct error *err)
{
	struct stress_argument *argument =
	    stress_arguments_take(&settings->arguments, "-credentials-file");
	char *rest = NULL;
	size_t size;
	FILE *file;

	if (argument == NULL)
		return 0;
	if (argument->count != 1)
		return error_set(
		    err, ERROR_INVALID, "Invalid -credentials-file: one file is needed");
	file = fopen(argument->parameters[0], "r");
	if (file == NULL)
		return error_set_errno(err, errno, "%s", argument->parameters[0]);
	settings->credentials = xzalloc(65536);
	size = fread(settings->credentials, 1, 65535, file);
	fclose(file);
	settings->credentials[size] = '\0';
	for (char *line = strtok_r(settings->credentials, "\r\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		if (strncmp(line, "cql.username=", 13) == 0)
			settings->user = line + 13;
		else if (strncmp(line, "cql.password=", 13) == 0)
			settings->password = line + 13;
	}
	return 0;
}

static int
stress_parse_mode(struct stress_settings *settings, struct error *err)
{
	struct stress_group group[2];
	const char *text;

	if (stress_read_credentials(settings, err) != 0 ||
	    stress_select_topic(&settings->arguments, "-mode", group, err) < 0)
		return -1;
	settings->is_prepared = !stress_group_is_set(group, "unprepared");
	text = stress_group_value(group, "protocolVersion=");
	settings->protocol_version = isdigit((unsigned char)*text) ? (uint8_t)(*text - '0') : 0;
	text = stress_group_value(group, "compression=");
	settings->compression = COMPRESSION_NONE;
	compression_parse(slice_of_string(text), &settings->compression);
	if (stress_group_is_set(group, "user="))
		settings->user = stress_group_value(group, "user=");
	if (stress_group_is_set(group, "password="))
		settings->password = stress_group_value(group, "password=");
	settings->auth_provider = stress_group_value(group, "auth-provider=");
	if (stress_number(group, "maxPending=", &settings->pending_max, err) != 0 ||
	    stress_number(group, "connectionsPerHost=", &settings->connections_per_host, err) !=
		0 ||
	    stress_number(group, "requestTimeout=", &settings->request_timeout_ms, err) != 0 ||
	    stress_number(group, "workers=", &settings->workers, err) != 0)
		return -1;
	if (settings->pending_max < 1 || settings->pending_max > 32768)
		return error_set(err, ERROR_INVALID, "maxPending= must be 1 to 32768");
	if (settings->connections_per_host < 1 || settings->connections_per_host > 1024)
		return error_set(err, ERROR_INVALID, "connectionsPerHost= must be 1 to 1024");
	if (settings->workers > 256)
		return error_set(err, ERROR_INVALID, "workers= must be at most 256");
	return 0;
}

static int
stress_add_node(struct stress_settings *settings, const char *name, size_t size, struct error *err)
{
	if (settings->node_count == STRESS_NODES_MAX)
		return error_set(err, ERROR_INVALID, "More than %d nodes", STRESS_NODES_MAX);
	if (size > 0)
		settings->nodes[settings->node_count++] = xstrndup(name, size);
	return 0;
}

static int
stress_parse_node(struct stress_settings *settings, struct error *err)
{
	struct stress_group group[2], port[2], mode[2];
	const char *text;

	if (stress_select_topic(&settings->arguments, "-mode", mode, err) < 0 ||
	    stress_select_topic(&settings->arguments, "-node", group, err) < 0 ||
	    stress_select_topic(&settings->arguments, "-port", port, err) < 0)
		return -1;
	settings->is_white_list = stress_group_is_set(group, "whitelist");
	settings->datacenter = stress_group_value(group, "datacenter=");
	settings->rack = stress_group_value(group, "rack=");
	if (stress_group_is_set(mode, "port=") && !stress_group_is_set(port, "native=")) {
		if (stress_number(mode, "port=", &settings->port, err) != 0)
			return -1;
	} else if (stress_number(port, "native=", &settings->port, err) != 0) {
		return -1;
	}
	if (stress_number(port, "jmx=", &settings->jmx_port, err) != 0)
		return -1;
	if (settings->port < 1 || settings->port > 65535)
		return error_set(err, ERROR_INVALID, "native= is no port: %d", settings->port);
	text = stress_group_value(group, "file=");
	if (text != NULL) {
		FILE *file = fopen(text, "r");
		char line[256];
		int rc = 0;

		if (file == NULL)
			return error_set_errno(err, errno, "%s", text);
		while (rc == 0 && fgets(line, sizeof(line), file) != NULL)
			rc = stress_add_node(settings, line, strcspn(line, "\r\n"), err);
		fclose(file);
		if (rc == 0 && settings->node_count == 0)
			return error_set(err, ERROR_INVALID, "%s names no node", text);
		return rc;
	}
	for (text = stress_group_value(group, ""); *text != '\0';) {
		size_t size = strcspn(text, ",");

		if (stress_add_node(settings, text, size, err) != 0)
			return -1;
		text += size + (text[size] == ',');
	}
	return 0;
}

/* The strategy and its parameters, as CREATE wants them. */
static int
stress_parse_strategy(const char *text, const char *package, char *name, size_t name_size,
    char *options, size_t options_size, bool *has_factor, struct error *err)
{
	char key[64], value[128];
	size_t at = 0;
	bool is_bad;

	while (stress_multi_next(&text, key, sizeof(key), value, sizeof(value), &is_bad)) {
		int size;

		if (is_bad || strchr(value, '\'') != NULL || strchr(key, '\'') != NULL)
			return error_set(err, ERROR_INVALID, "Invalid specification: %s", text);
		if (strcasecmp(key, "strategy") == 0) {
			snprintf(name, name_size, "%s%s", strchr(value, '.') == NULL ? package : "",
			    value);
			continue;
		}
		if (strcasecmp(key, "factor") == 0) {
			snprintf(key, sizeof(key), "replication_factor");
			*has_factor = true;
		}
		size = snprintf(options + at, options_size - at, ", '%s' : '%s'", key, value);
		if (size < 0 || (size_t)size >= options_size - at)
			return error_set(err, ERROR_INVALID, "Too many parameters in %s", text);
		at += (size_t)size;
	}
	return 0;
}

static int
stress_parse_schema(struct stress_settings *settings, struct error *err)
{
	bool is_given = stress_arguments_take(&settings->arguments, "-schema") != NULL;
	bool has_factor = false, ignored = false;
	struct stress_group group[2];
	const char *text;

	if (is_given && settings->command == STRESS_USER)
		return error_set(err, ERROR_INVALID,
		    "-schema can only be provided with predefined operations insert, read, etc.; "
		    "the "
		    "'user' command requires a schema yaml instead");
	if (stress_select_topic(&settings->arguments, "-schema", group, err) < 0)
		return -1;
	settings->keyspace = stress_group_value(group, "keyspace=");
	settings->table_compression = stress_group_value(group, "compression=");
	snprintf(settings->strategy, sizeof(settings->strategy),
	    "org.apache.cassandra.locator.SimpleStrategy");
	text = stress_group_value(group, "replication");
	if (text != NULL &&
	    stress_parse_strategy(text, "org.apache.cassandra.locator.", settings->strategy,
		sizeof(settings->strategy), settings->strategy_options,
		sizeof(settings->strategy_options), &has_factor, err) != 0)
		return -1;
	if (*settings->strategy_options == '\0')
		snprintf(settings->strategy_options, sizeof(settings->strategy_options),
		    ", 'replication_factor': '1'");
	text = stress_group_value(group, "compaction");
	if (text != NULL &&
	    stress_parse_strategy(text, "", settings->compaction, sizeof(settings->compaction),
		settings->compaction_options, sizeof(settings->compaction_options), &ignored,
		err) != 0)
		return -1;
	return 0;
}

static int
stress_parse_transport(struct stress_settings *settings, struct error *err)
{
	struct stress_group group[2], graph[2], ranges[2];

	if (stress_select_topic(&settings->arguments, "-transport", group, err) < 0 ||
	    stress_select_topic(&settings->arguments, "-tokenrange", ranges, err) < 0)
		return -1;
	settings->trust_store = stress_group_value(group, "truststore=");
	settings->trust_store_password = stress_group_value(group, "truststore-password=");
	settings->key_store = stress_group_value(group, "keystore=");
	settings->key_store_password = stress_group_value(group, "keystore-password=");
	settings->ciphers = stress_group_value(group, "ssl-ciphers=");
	settings->tls_protocol = stress_group_value(group, "ssl-protocol=");
	settings->verifies_host =
	    strcasecmp(stress_group_value(group, "hostname-verification="), "true") == 0;
	settings->is_encrypted = settings->trust_store != NULL;
	settings->wraps_ranges = stress_group_is_set(ranges, "wrap");
	if (stress_number(ranges, "split-factor=", &settings->split_factor, err) != 0)
		return -1;
	if (settings->split_factor < 1 || settings->split_factor > STRESS_SPLIT_MAX)
		return error_set(
		    err, ERROR_INVALID, "split-factor= must be 1 to %d", STRESS_SPLIT_MAX);
	if (stress_arguments_take(&settings->arguments, "-graph") == NULL)
		return 0;
	if (stress_select_topic(&settings->arguments, "-graph", graph, err) < 0)
		return -1;
	settings->graph_file = stress_group_value(graph, "file=");
	settings->graph_revision = stress_group_value(graph, "revision=");
	settings->graph_title = stress_group_value(graph, "title=");
	settings->graph_operation = stress_group_value(graph, "op=");
	return 0;
}

/* ---- What is not a run --------------------------------------------------------------------------- */

static int
stress_print_distribution(struct stress_settings *settings, struct error *err)
{
	struct stress_group groups[STRESS_COMMAND_GROUPS_MAX];
	struct stress_distribution distribution;
	size_t count = stress_command_groups(STRESS_PRINT, groups);
	const char *text;

	if (stress_select(&settings->arguments, "print", groups, count, err) < 0)
		return -1;
	text = stress_group_value(&groups[0], "dist=");
	if (stress_distribution_parse(&distribution, text, err) != 0)
		return -1;
	printf("%% of samples    Range       %% of total\n");
	for (int i = 10; i <= 100; i += 10) {
		double low = (i - 10) / 100.0, high = i / 100.0;
		int64_t from = stress_distribution_inverse(&distribution, low);
		int64_t to = stress_distribution_inverse(&distribution, high);
		double range = (double)(stress_distribution_max(&distribution) -
		    stress_distribution_min(&distribution));

		printf("%3d%%            [%lld..%lld]    %.1f%%\n", i, (long long)from,
		    (long long)to, range != 0 ? 100 * fabs((double)(to - from) / range) : 100);
	}
	return 1;
}

static int
stress_print_asked(struct stress_settings *settings, struct error *err)
{
	const struct stress_argument *first = &settings->arguments.list[0];
	const char *topic = first->count > 0 ? first->parameters[0]
	    : settings->arguments.count > 1  ? settings->arguments.list[1].key
					     : NULL;

	switch (settings->command) {
	case STRESS_VERSION:
		printf("Version: %s\n", PACKAGE_VERSION);
		return 1;
	case STRESS_PRINT:
		return stress_print_distribution(settings, err);
	default:
		if (topic == NULL) {
			stress_print_help();
			return 1;
		}
		if (stress_print_topic(topic))
			return 1;
		stress_print_help();
		return error_set(
		    err, ERROR_INVALID, "Invalid command or option provided to command help");
	}
}

static int
stress_check_unused(struct stress_settings *settings, struct error *err)
{
	struct buffer names;
	bool is_any = false;

	buffer_init(&names);
	for (size_t i = 0; i < settings->arguments.count; i++) {
		const struct stress_argument *argument = &settings->arguments.list[i];

		if (argument->is_used)
			continue;
		buffer_printf(&names, "%s%s", is_any ? "\n" : "", argument->key);
		for (size_t j = 0; j < argument->count; j++)
			buffer_printf(&names, " %s", argument->parameters[j]);
		is_any = true;
	}
	if (is_any) {
		stress_print_help();
		error_set(err, ERROR_INVALID,
		    "Error processing command line arguments. The following were ignored:\n%.*s",
		    (int)names.size, (const char *)names.data);
	}
	buffer_fini(&names);
	return is_any ? -1 : 0;
}

int
stress_settings_parse(
    struct stress_settings *settings, int argc, char *const *argv, struct error *err)
{
	memset(settings, 0, sizeof(*settings));
	if (stress_arguments_parse(&settings->arguments, argc, argv, err) != 0) {
		stress_print_help();
		return -1;
	}
	if (!stress_command_find(settings->arguments.list[0].key, &settings->command)) {
		stress_print_help();
		if (strcasecmp(settings->arguments.list[0].key, "legacy") == 0)
			return error_set(err, ERROR_INVALID,
			    "legacy command lines are not supported; what they did do the commands "
			    "above");
		return error_set(err, ERROR_INVALID, "No command specified");
	}
	if (settings->command >= STRESS_HELP)
		return stress_print_asked(settings, err);
	if (stress_arguments_take(&settings->arguments, "-sendto") != NULL ||
	    stress_arguments_take(&settings->arguments, "-send-to") != NULL)
		return error_set(
		    err, ERROR_INVALID, "-sendto is not supported: there is no stress daemon");
	if (stress_arguments_take(&settings->arguments, "-sample") != NULL)
		return error_set(err, ERROR_INVALID,
		    "-sample is not supported: all latencies are counted, none is sampled");
	stress_arguments_take(&settings->arguments, "-jmx");
	if (stress_parse_command(settings, err) != 0 || stress_parse_rate(settings, err) != 0 ||
	    stress_parse_population(settings, err) != 0 ||
	    stress_parse_insert(settings, err) != 0 || stress_parse_columns(settings, err) != 0 ||
	    stress_parse_log(settings, err) != 0 || stress_parse_mode(settings, err) != 0 ||
	    stress_parse_node(settings, err) != 0 || stress_parse_schema(settings, err) != 0 ||
	    stress_parse_transport(settings, err) != 0)
		return -1;
	return stress_check_unused(settings, err);
}

void
stress_settings_fini(struct stress_settings *settings)
{
	for (uint32_t i = 0; i < settings->node_count; i++)
		free(settings->nodes[i]);
	free(settings->columns);
	free(settings->credentials);
	stress_arguments_fini(&settings->arguments);
	memset(settings, 0, sizeof(*settings));
}
