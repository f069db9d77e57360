/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "server/config_internal.h"

#define CONFIG_ENTRY(kind, field, text, old)                                                       \
	{#field, CONFIG_KIND_##kind, offsetof(struct config, field), text, old},

const struct config_key config_keys[] = {CONFIG_KEYS(CONFIG_ENTRY)};
const size_t config_key_count = sizeof(config_keys) / sizeof(config_keys[0]);

/* What a word may be. Words compare without regard to case, as Cassandra's enums do. */
static const struct {
	const char *field, *words;
} config_choices[] = {
    {"commit_failure_policy", "die stop stop_commit ignore"},
    {"commitlog_sync", "periodic batch group"},
    {"corrupted_tombstone_strategy", "disabled warn exception"},
    {"cql_start_time", "REQUEST QUEUE"},
    {"disk_access_mode", "auto mmap mmap_index_only standard mmap_reads"},
    {"disk_failure_policy", "best_effort stop ignore stop_paranoid die"},
    {"disk_optimization_strategy", "ssd spinning"},
    {"flush_compression", "none fast table"},
    {"internode_compression", "all dc none"},
    {"log_format", "text json"},
    {"log_level", "TRACE DEBUG INFO WARN ERROR OFF"},
    {"memtable_allocation_type",
	"unslabbed_heap_buffers unslabbed_heap_buffers_logged heap_buffers offheap_buffers "
	"offheap_objects"},
    {"paxos_on_linearizability_violations", "fail log ignore"},
    {"paxos_state_purging", "legacy gc_grace repaired"},
    {"paxos_variant",
	"v1_without_linearizable_reads_or_rejected_writes v1 "
	"v2_without_linearizable_reads_or_rejected_writes v2_without_linearizable_reads "
	"v2"},
    {"batchlog_endpoint_strategy", "random_remote prefer_local dynamic_remote dynamic"},
    {"repair_command_pool_full_strategy", "queue reject"},
    {"server_encryption_options__internode_encryption", "none dc rack all"},
    {"user_function_timeout_policy", "ignore die die_immediate"},
    {"client_encryption_options__require_client_auth", "true false required optional not_required"},
    {"server_encryption_options__require_client_auth", "true false required optional not_required"},
};

/* Maps whose keys are somebody else's business. */
static const char *const config_free_forms[] = {
    "memtable.configurations.",
    "startup_checks.",
    "default_compaction.",
    "sstable.format.",
    "back_pressure_strategy.parameters.",
    "commitlog_compression.parameters.",
    "hints_compression.parameters.",
    "seed_provider.parameters.",
    "audit_logging_options.logger.parameters.",
    "client_encryption_options.ssl_context_factory.parameters.",
    "server_encryption_options.ssl_context_factory.parameters.",
    "transparent_data_encryption_options.key_provider.parameters.",
    "jmx_encryption_options.",
};

/* ---- names --------------------------------------------------------------------------------------- */

void
config_key_name(const struct config_key *key, char name[CONFIG_NAME_MAX])
{
	const char *from = key->field;
	size_t at = 0;

	while (*from != '\0' && at + 1 < CONFIG_NAME_MAX) {
		if (from[0] == '_' && from[1] == '_') {
			name[at++] = '.';
			from += 2;
		} else {
			name[at++] = *from++;
		}
	}
	name[at] = '\0';
}

/* Is `name` one of the words of an `old` list? Its unit goes to `unit`. */
static bool
config_old_match(const char *old, const char *name, char unit[16])
{
	size_t length = strlen(name);

	while (old != NULL && *old != '\0') {
		size_t word = strcspn(old, " ");
		const char *colon = memchr(old, ':', word);
		size_t plain = colon == NULL ? word : (size_t)(colon - old);

		if (plain == length && memcmp(old, name, length) == 0) {
			size_t units = colon == NULL ? 0 : word - plain - 1;

			memcpy(unit, colon == NULL ? "" : colon + 1, units);
			unit[units] = '\0';
			return true;
		}
		old += word;
		old += strspn(old, " ");
	}
	return false;
}

const struct config_key *
config_key_find(const char *name, char unit[16], bool *is_old)
{
	char full[CONFIG_NAME_MAX];

	*is_old = false;
	for (size_t i = 0; i < config_key_count; i++) {
		config_key_name(&config_keys[i], full);
		if (strcmp(full, name) == 0)
			return &config_keys[i];
	}
	*is_old = true;
	for (size_t i = 0; i < config_key_count; i++)
		if (config_old_match(config_keys[i].old, name, unit))
			return &config_keys[i];
	return NULL;
}

bool
config_is_free_form(const char *name)
{
	for (size_t i = 0; i < sizeof(config_free_forms) / sizeof(config_free_forms[0]); i++) {
		const char *prefix = config_free_forms[i];
		size_t length = strlen(prefix);

		if (strncmp(name, prefix, length) == 0 ||
		    (strlen(name) == length - 1 && strncmp(name, prefix, length - 1) == 0))
			return true;
	}
	return false;
}

bool
config_is_section(const char *name)
{
	size_t length = strlen(name);
	char full[CONFIG_NAME_MAX];

	for (size_t i = 0; i < config_key_count; i++) {
		config_key_name(&config_keys[i], full);
		if (strncmp(full, name, length) == 0 && full[length] == '.')
			return true;
	}
	for (size_t i = 0; i < sizeof(config_free_forms) / sizeof(config_free_forms[0]); i++)
		if (strncmp(config_free_forms[i], name, length) == 0 &&
		    config_free_forms[i][length] == '.')
			return true;
	return false;
}

/* ---- values ----------------------------------------------------------------------------------------- */

struct config_unit {
	const char *name;
	double factor;
};

static const struct config_unit config_durations[] = {{"d", 86400e3}, {"h", 3600e3}, {"m", 60e3},
    {"s", 1e3}, {"ms", 1}, {"us", 1e-3}, {"\xc2\xb5s", 1e-3}, {"ns", 1e-6}, {NULL, 0}};
static const struct config_unit config_sizes[] = {
    {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {NULL, 0}};
static const struct config_unit config_rates[] = {
    {"B/s", 1}, {"KiB/s", 1024}, {"MiB/s", 1048576}, {"Mb/s", 125000}, {NULL, 0}};

/* A whole number and a unit of the table; `unit` is taken where the text has none (old names). */
static int
config_parse_unit(const char *text, const struct config_unit *units, const char *unit, int64_t *out)
{
	char *end;
	double value;
	long long number;

	while (isspace((unsigned char)*text))
		text++;
	if (!isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0)
		return -1;
	if (*end == '.' && unit != NULL) { /* old names took fractions: 1.5 */
		errno = 0;
		value = strtod(text, &end);
		if (errno != 0)
			return -1;
	} else {
		value = (double)number;
	}
	while (*end == ' ')
		end++;
	if (*end == '\0') {
		if (unit == NULL && number != 0)
			return -1;
		end = (char *)(unit == NULL ? units[0].name : unit);
	}
	for (; units->name != NULL; units++) {
		if (strcmp(units->name, end) != 0)
			continue;
		if (units->factor == 1 && value == (double)number) {
			*out = number;
			return 0;
		}
		value = ceil(value * units->factor);
		if (value >= 9.2e18)
			return -1;
		*out = (int64_t)value;
		return 0;
	}
	return -1;
}

int
config_parse_duration_ms(const char *text, int64_t *out)
{
	return config_parse_unit(text, config_durations, NULL, out);
}

int
config_parse_size(const char *text, int64_t *out)
{
	return config_parse_unit(text, config_sizes, NULL, out);
}

int
config_parse_rate(const char *text, int64_t *out)
{
	return config_parse_unit(text, config_rates, NULL, out);
}

void
config_assign(char **field, const char *value)
{
	char *copy = value == NULL ? NULL : xstrdup(value);

	free(*field);
	*field = copy;
}

static void
config_list_clear(struct config_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct config_list){0};
}

static int
config_wrong(
    struct error *err, const char *where, const char *name, const char *text, const char *right)
{
	return error_set(err, ERROR_CONFIG, "%s%s: '%.100s' is wrong: %s", where, name,
	    text == NULL ? "null" : text, right);
}

static int
config_store_word(const struct config_key *key, char **field, const char *text, const char *where,
    const char *name, struct error *err)
{
	const char *words = NULL;

	for (size_t i = 0; i < sizeof(config_choices) / sizeof(config_choices[0]); i++)
		if (strcmp(config_choices[i].field, key->field) == 0)
			words = config_choices[i].words;
	if (words != NULL && text != NULL) {
		const char *word = words;
		char right[400];

		while (*word != '\0') {
			size_t length = strcspn(word, " ");

			if (strlen(text) == length && strncasecmp(word, text, length) == 0)
				break;
			word += length;
			word += strspn(word, " ");
		}
		if (*word == '\0') {
			snprintf(right, sizeof(right), "it is one of: %s", words);
			return config_wrong(err, where, name, text, right);
		}
	}
	config_assign(field, text);
	return 0;
}

static int
config_store_bool(
    bool *field, const char *text, const char *where, const char *name, struct error *err)
{
	static const char *const yes[] = {"true", "yes", "on"};
	static const char *const no[] = {"false", "no", "off"};

	for (int i = 0; text != NULL && i < 3; i++) {
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*field = strcasecmp(text, yes[i]) == 0;
			return 0;
		}
	}
	return config_wrong(err, where, name, text, "it is true or false");
}

static int
config_store_number(void *field, enum config_kind kind, const char *text, const char *where,
    const char *name, struct error *err)
{
	char *end;
	long long number;
	double real;

	errno = 0;
	if (kind == CONFIG_KIND_DOUBLE) {
		real = strtod(text, &end);
		if (*text == '\0' || *end != '\0' || isnan(real))
			return config_wrong(err, where, name, text, "it is a number such as 0.5");
		*(double *)field = real;
		return 0;
	}
	number = strtoll(text, &end, 10);
	if (*text == '\0' || *end != '\0' || errno != 0 ||
	    (kind == CONFIG_KIND_INT && (number < INT32_MIN || number > INT32_MAX)))
		return config_wrong(err, where, name, text, "it is a whole number");
	if (kind == CONFIG_KIND_INT)
		*(int32_t *)field = (int32_t)number;
	else
		*(int64_t *)field = number;
	return 0;
}

static int
config_store_unit(int64_t *field, enum config_kind kind, const char *unit, const char *text,
    const char *where, const char *name, struct error *err)
{
	/* Old files write -1 for "none" and "off". */
	if (strcmp(text, "-1") == 0) {
		*field = CONFIG_UNSET;
		return 0;
	}
	switch (kind) {
	case CONFIG_KIND_MS:
		if (config_parse_unit(text, config_durations, unit, field) == 0)
			return 0;
		return config_wrong(err, where, name, text,
		    "it is a duration: a whole number and d, h, m, s, ms, us or ns, such as 10s");
	case CONFIG_KIND_SECONDS:
		if (config_parse_unit(text, config_durations, "s", field) == 0) {
			*field = (*field + 999) / 1000;
			return 0;
		}
		return config_wrong(err, where, name, text,
		    "it is a duration: a whole number and d, h, m or s, such as 4h");
	case CONFIG_KIND_SIZE:
		if (config_parse_unit(text, config_sizes, unit, field) == 0)
			return 0;
		return config_wrong(err, where, name, text,
		    "it is a size: a whole number and B, KiB, MiB or GiB, such as 32MiB");
	default:
		if (config_parse_unit(text, config_rates, unit, field) == 0)
			return 0;
		return config_wrong(err, where, name, text,
		    "it is a rate: a whole number and B/s, KiB/s or MiB/s, such as 64MiB/s");
	}
}

/* null: what is not set. */
static int
config_store_null(void *field, const struct config_key *key, const char *where, const char *name,
    struct error *err)
{
	switch (key->kind) {
	case CONFIG_KIND_BOOL:
		return config_wrong(err, where, name, NULL, "it is true or false");
	case CONFIG_KIND_INT:
		*(int32_t *)field = CONFIG_UNSET;
		break;
	case CONFIG_KIND_DOUBLE:
		*(double *)field = CONFIG_UNSET;
		break;
	case CONFIG_KIND_STRING:
		config_assign(field, NULL);
		break;
	case CONFIG_KIND_LIST:
		config_list_clear(field);
		break;
	default:
		*(int64_t *)field = CONFIG_UNSET;
	}
	return 0;
}

int
config_store_list(struct config *config, const struct config_key *key, char **items, size_t count,
    const char *where, const char *name, struct error *err)
{
	struct config_list *list = (struct config_list *)((char *)config + key->offset);
	struct config_list made = {0};

	if (key->kind != CONFIG_KIND_LIST) {
		if (count == 1)
			return config_store(config, key, NULL, items[0], where, name, err);
		return config_wrong(err, where, name, "a list", "it is a single value");
	}
	made.items = xcalloc(count + 1, sizeof(*made.items));
	for (size_t i = 0; i < count; i++)
		made.items[made.count++] = xstrdup(items[i]);
	config_list_clear(list);
	*list = made;
	config->is_set[key - config_keys] = 1;
	return 0;
}

/* "a, b" or "[a, b]" of the command line and the defaults. */
static void
config_store_text_list(struct config_list *list, const char *text)
{
	config_list_clear(list);
	while (*text != '\0') {
		size_t length;

		text += strspn(text, "[], '\"");
		length = strcspn(text, "[],'\"");
		if (length == 0)
			break;
		list->items = xrealloc(list->items, (list->count + 1) * sizeof(*list->items));
		list->items[list->count] = xstrndup(text, length);
		while (length > 0 && list->items[list->count][length - 1] == ' ')
			list->items[list->count][--length] = '\0';
		list->count++;
		text += strcspn(text, ",]");
	}
}

int
config_store(struct config *config, const struct config_key *key, const char *unit,
    const char *text, const char *where, const char *name, struct error *err)
{
	void *field = (char *)config + key->offset;
	int rc;

	if (text == NULL || strcmp(text, "null") == 0 || strcmp(text, "~") == 0 ||
	    (*text == '\0' && key->kind != CONFIG_KIND_STRING)) {
		rc = config_store_null(field, key, where, name, err);
	} else {
		switch (key->kind) {
		case CONFIG_KIND_BOOL:
			rc = config_store_bool(field, text, where, name, err);
			break;
		case CONFIG_KIND_STRING:
			rc = config_store_word(key, field, text, where, name, err);
			break;
		case CONFIG_KIND_LIST:
			config_store_text_list(field, text);
			rc = 0;
			break;
		case CONFIG_KIND_INT:
		case CONFIG_KIND_LONG:
		case CONFIG_KIND_DOUBLE:
			rc = config_store_number(field, key->kind, text, where, name, err);
			break;
		default:
			rc = config_store_unit(field, key->kind,
			    unit != NULL && *unit != '\0' ? unit : NULL, text, where, name, err);
		}
	}
	if (rc == 0)
		config->is_set[key - config_keys] = 1;
	return rc;
}

bool
config_is_set(const struct config *config, const void *field)
{
	size_t offset = (size_t)((const char *)field - (const char *)config);

	for (size_t i = 0; i < config_key_count; i++)
		if (config_keys[i].offset == offset)
			return config->is_set[i] != 0;
	return false;
}

/* ---- construction --------------------------------------------------------------------------------------- */

void
config_init(struct config *config)
{
	memset(config, 0, sizeof(*config));
	config->is_set = xzalloc(config_key_count);
	buffer_init(&config->unknown);
	buffer_init(&config->deprecated);
	for (size_t i = 0; i < config_key_count; i++) {
		struct error err;
		int rc = config_store(config, &config_keys[i], NULL, config_keys[i].text, "",
		    config_keys[i].field, &err);

		assert(rc == 0); /* the table's own defaults */
		(void)rc;
	}
	memset(config->is_set, 0, config_key_count);
}

void
config_fini(struct config *config)
{
	for (size_t i = 0; i < config_key_count; i++) {
		void *field = (char *)config + config_keys[i].offset;

		if (config_keys[i].kind == CONFIG_KIND_STRING)
			config_assign(field, NULL);
		else if (config_keys[i].kind == CONFIG_KIND_LIST)
			config_list_clear(field);
	}
	config_list_clear(&config->seed_list);
	free(config->initial_tokens.items);
	free(config->memtable_class);
	free(config->archive_command);
	free(config->restore_command);
	free(config->restore_directories);
	for (size_t i = 0; i < config->extra_count; i++) {
		free(config->extras[i].key);
		free(config->extras[i].value);
	}
	free(config->extras);
	free(config->path);
	for (uint32_t i = 0; i < config->option_count; i++)
		free(config->options[i]);
	free(config->options);
	free(config->is_set);
	buffer_fini(&config->unknown);
	buffer_fini(&config->deprecated);
	memset(config, 0, sizeof(*config));
}

void
config_add_extra(struct config *config, const char *name, const char *value)
{
	for (size_t i = 0; i < config->extra_count; i++) {
		if (strcmp(config->extras[i].key, name) == 0) {
			config_assign(&config->extras[i].value, value);
			return;
		}
	}
	config->extras =
	    xrealloc(config->extras, (config->extra_count + 1) * sizeof(*config->extras));
	config->extras[config->extra_count++] = (struct config_extra){
	    .key = xstrdup(name),
	    .value = value == NULL ? NULL : xstrdup(value),
	};
}

const char *
config_extra(const struct config *config, const char *key)
{
	for (size_t i = 0; i < config->extra_count; i++)
		if (strcmp(config->extras[i].key, key) == 0)
			return config->extras[i].value;
	return NULL;
}

int
config_set(struct config *config, const char *key, const char *value, struct error *err)
{
	char unit[16] = "";
	bool is_old;
	const struct config_key *found = config_key_find(key, unit, &is_old);

	if (found == NULL && config_is_free_form(key)) {
		config_add_extra(config, key, value);
		return 0;
	}
	if (found == NULL)
		return error_set(err, ERROR_CONFIG,
		    "-D %s: no such key; the configuration file and helenus.yaml(5) list them",
		    key);
	return config_store(config, found, is_old ? unit : NULL, value, "-D ", key, err);
}

int
config_set_option(struct config *config, const char *option, struct error *err)
{
	const char *equals = strchr(option, '=');
	char *key;
	int rc;

	if (equals == NULL || equals == option)
		return error_set(err, ERROR_CONFIG, "-D %s: write -D key=value", option);
	key = xstrndup(option, (size_t)(equals - option));
	rc = config_set(config, key, equals + 1, err);
	if (rc == 0 && strcmp(key, "data_directory") == 0)
		config_forget_directories(config);
	free(key);
	config->options =
	    xrealloc(config->options, (config->option_count + 1) * sizeof(*config->options));
	config->options[config->option_count++] = xstrdup(option);
	return rc;
}

int
config_read_again(const struct config *config, struct config *fresh, struct error *err)
{
	int rc;

	if (config->path == NULL)
		return error_set(
		    err, ERROR_INVALID, "the node was started without a configuration file");
	rc = config_read_file(fresh, config->path, err);
	for (uint32_t i = 0; i < config->option_count && rc == 0; i++)
		rc = config_set_option(fresh, config->options[i], err);
	return rc;
}

/* ---- showing ---------------------------------------------------------------------------------------------- */

static void
config_print_duration(struct buffer *out, int64_t ms)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {1000, "s"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ms == 0 || ms % units[i].ms != 0)
			continue;
		buffer_printf(out, "%" PRId64 "%s", ms / units[i].ms, units[i].unit);
		return;
	}
	buffer_printf(out, "%" PRId64 "ms", ms);
}

static void
config_print_size(struct buffer *out, int64_t bytes, const char *per)
{
	if (bytes != 0 && bytes % 1048576 == 0)
		buffer_printf(out, "%" PRId64 "MiB%s", bytes / 1048576, per);
	else if (bytes != 0 && bytes % 1024 == 0)
		buffer_printf(out, "%" PRId64 "KiB%s", bytes / 1024, per);
	else
		buffer_printf(out, "%" PRId64 "B%s", bytes, per);
}

/* False: null. */
static bool
config_print(struct buffer *out, const struct config *config, const struct config_key *key)
{
	const void *field = (const char *)config + key->offset;
	const struct config_list *list = field;
	int64_t number = 0;

	switch (key->kind) {
	case CONFIG_KIND_BOOL:
		buffer_put_string(out, *(const bool *)field ? "true" : "false");
		return true;
	case CONFIG_KIND_INT:
		buffer_printf(out, "%" PRId32, *(const int32_t *)field);
		return key->text != NULL || *(const int32_t *)field != CONFIG_UNSET;
	case CONFIG_KIND_DOUBLE:
		buffer_printf(out, "%.17g", *(const double *)field);
		return true;
	case CONFIG_KIND_STRING:
		if (*(char *const *)field == NULL)
			return false;
		buffer_put_string(out, *(char *const *)field);
		return true;
	case CONFIG_KIND_LIST:
		buffer_put_string(out, "[");
		for (size_t i = 0; i < list->count; i++)
			buffer_printf(out, "%s%s", i == 0 ? "" : ", ", list->items[i]);
		buffer_put_string(out, "]");
		return true;
	default:
		number = *(const int64_t *)field;
	}
	if (number == CONFIG_UNSET)
		return false;
	if (key->kind == CONFIG_KIND_MS)
		config_print_duration(out, number);
	else if (key->kind == CONFIG_KIND_SIZE)
		config_print_size(out, number, "");
	else if (key->kind == CONFIG_KIND_RATE)
		config_print_size(out, number, "/s");
	else
		buffer_printf(out, "%" PRId64, number);
	return true;
}

static bool
config_is_secret(const char *field)
{
	return strstr(field, "password") != NULL || strstr(field, "private_key") != NULL;
}

static void
config_each_old(const struct config *config, const struct config_key *key, const char *shown,
    config_setting_fn each, void *argument)
{
	const char *old = key->old;
	const void *field = (const char *)config + key->offset;

	while (old != NULL && *old != '\0') {
		size_t word = strcspn(old, " ");
		const char *colon = memchr(old, ':', word);
		size_t plain = colon == NULL ? word : (size_t)(colon - old);
		char name[CONFIG_NAME_MAX], unit[16], value[64];
		const struct config_unit *units = key->kind == CONFIG_KIND_SIZE ? config_sizes
		    : key->kind == CONFIG_KIND_RATE                             ? config_rates
										: config_durations;

		snprintf(name, sizeof(name), "%.*s", (int)plain, old);
		if (colon == NULL || shown == NULL) {
			each(argument, name, shown);
		} else {
			snprintf(unit, sizeof(unit), "%.*s", (int)(word - plain - 1), colon + 1);
			while (units->name != NULL && strcmp(units->name, unit) != 0)
				units++;
			snprintf(value, sizeof(value), "%" PRId64,
			    units->name == NULL
				? *(const int64_t *)field
				: (int64_t)((double)*(const int64_t *)field / units->factor));
			each(argument, name, value);
		}
		old += word;
		old += strspn(old, " ");
	}
}

void
config_each_setting(const struct config *config, config_setting_fn each, void *argument)
{
	struct buffer text;

	buffer_init(&text);
	for (size_t i = 0; i < config_key_count; i++) {
		const struct config_key *key = &config_keys[i];
		char name[CONFIG_NAME_MAX];
		const char *shown = NULL;

		buffer_clear(&text);
		if (config_print(&text, config, key)) {
			buffer_put_u8(&text, 0);
			shown = text.is_failed ? "" : (const char *)text.data;
			if (config_is_secret(key->field))
				shown = "*****";
		}
		config_key_name(key, name);
		each(argument, name, shown);
		config_each_old(config, key, shown, each, argument);
	}
	buffer_fini(&text);
}
