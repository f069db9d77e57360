/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_CONFIG_H
#define HELENUS_SERVER_CONFIG_H

/*
 * The configuration of a node: cassandra.yaml, key for key, plus a few keys of our own
 * (config_keys.h is the list). Read once at start; fields that can change while the node runs are
 * read through atomics in who uses them, not here. A key that Helenus does not have is named in one
 * warning; a wrong value is ERROR_CONFIG with file, line, key and what would be right.
 *
 * Order: config_init(), config_read_file(), config_set() for each -D, config_finish(). One thread.
 * Cassandra: config/Config, YamlConfigurationLoader, DatabaseDescriptor.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"
#include "server/config_keys.h"

struct config_list {
	char **items; /* owned, each on the heap */
	size_t count;
};

struct config_tokens {
	int64_t *items; /* owned */
	uint32_t count;
};

/* The types of the kinds. A number, duration or size that is not set ("null") is CONFIG_UNSET; a
 * string is NULL. Durations are milliseconds (SECONDS: seconds), sizes bytes, rates bytes/s. */
#define CONFIG_TYPE_BOOL bool
#define CONFIG_TYPE_INT int32_t
#define CONFIG_TYPE_LONG int64_t
#define CONFIG_TYPE_DOUBLE double
#define CONFIG_TYPE_STRING char *
#define CONFIG_TYPE_LIST struct config_list
#define CONFIG_TYPE_MS int64_t
#define CONFIG_TYPE_SECONDS int64_t
#define CONFIG_TYPE_SIZE int64_t
#define CONFIG_TYPE_RATE int64_t

enum { CONFIG_UNSET = -1 };

#define CONFIG_FIELD(kind, field, text, old) CONFIG_TYPE_##kind field;

struct config_extra {
	char *
	    key; /* dotted path below a free-form map, e.g. memtable.configurations.default.inherits */
	char *value;
};

struct config {
	CONFIG_KEYS(CONFIG_FIELD)

	/* Filled by config_finish(): what "auto" became. */
	struct config_list seed_list; /* of seeds, or of seed_provider's parameters */
	struct config_tokens initial_tokens; /* of initial_token */
	/* Bits of the levels that the guardrails name. */
	uint32_t read_levels_warned, read_levels_disallowed;
	uint32_t write_levels_warned, write_levels_disallowed;
	char *memtable_class; /* memtable.configurations.default.class_name, or NULL */
	/* Of commitlog_archiving.properties; NULL: not set. See store_options. */
	char *archive_command, *restore_command, *restore_directories; /* owned */
	int64_t restore_point_ms;
	uint64_t restore_precision_ns;
	uint32_t cores; /* available_processors, or what the scheduler gives us */
	int64_t memory_bytes; /* the "heap" that Cassandra's auto sizes are fractions of */

	/* Free-form maps (parameters of a class, memtable configurations); config_extra() finds. */
	struct config_extra *extras; /* owned */
	size_t extra_count;

	/* The reader's. */
	char *path; /* owned; for messages; NULL: no file */
	char **options; /* owned; what config_set_option() was given, for config_read_again() */
	uint32_t option_count;
	struct buffer unknown; /* names of unknown keys, comma separated */
	struct buffer deprecated; /* old names that were used */
	uint8_t *is_set; /* owned; one byte a key: the file or -D gave it */
};

/* All defaults. Free with config_fini(), also after a failure of the others. */
void config_init(struct config *config);
void config_fini(struct config *config);

/* Read `path`. ERROR_CONFIG ("FILE:LINE: key: ..."), or ERROR_IO when it cannot be read. */
int config_read_file(struct config *config, const char *path, struct error *err);
/* The same from memory; `name` stands for the file in messages. For tests and the fuzzer. */
int config_read_text(struct config *config, const char *name, struct slice text, struct error *err);

/* One key=value of the command line. value is what could stand in the file: a list in flow style or
 * separated by commas; `[]`, `null`. An unknown key is ERROR_CONFIG here. */
int config_set(struct config *config, const char *key, const char *value, struct error *err);
/* As config_set() for "key=value". data_directory=DIR puts all directories below DIR, whatever was said before. */
int config_set_option(struct config *config, const char *option, struct error *err);
/* The file that `config` was read from, as it is now, and the same options of the command line, into `fresh` after its
 * config_init(). ERROR_INVALID: there is no file. */
int config_read_again(const struct config *config, struct config *fresh, struct error *err);

/*
 * Resolve directories, addresses, data center and rack (cassandra-rackdc.properties beside the
 * file), read commitlog_archiving.properties there, and the sizes that are "auto"; check what belongs together. Logs the one warning about
 * unknown keys and the one about old names. After this, these are never unset: data_file_directories,
 * the other directories, seeds, concurrent_compactors, memtable_*, *_cache_size,
 * commitlog_total_space, max_mutation_size, native_transport_max_request_data_in_flight*.
 */
int config_finish(struct config *config, struct error *err);

/*
 * After config_finish(): ERROR_CONFIG for what this version does not have and somebody would rely on (a
 * password, encryption, other nodes). Logs one warning that names the keys that were set to no effect
 * (config_inert.h).
 */
int config_check_support(const struct config *config, struct error *err);

/* A value below a free-form map; NULL when absent. */
const char *config_extra(const struct config *config, const char *key);

/*
 * For system_views.settings: calls `each` once for every key (and its old names, as Cassandra 4.1
 * shows them) in the alphabet. value is NULL for null; secrets are masked. The strings are valid
 * during the call only. Any thread after config_finish().
 */
typedef void (*config_setting_fn)(void *argument, const char *name, const char *value);
void config_each_setting(const struct config *config, config_setting_fn each, void *argument);

/* Parse helpers, also for the admin API. -1: not of that form; *out untouched. */
int config_parse_duration_ms(const char *text, int64_t *out);
int config_parse_size(const char *text, int64_t *out);
int config_parse_rate(const char *text, int64_t *out);

#endif
