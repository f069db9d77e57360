/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_SETTINGS_H
#define HELENUS_TOOLS_STRESS_SETTINGS_H

/*
 * What a command line asks for. Read once, then constant; any thread may look. Cassandra:
 * stress/settings/Settings*, with the option names of 4.1 and of the releases around it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/consistency.h"
#include "base/error.h"
#include "protocol/compression.h"
#include "tools/stress_options.h"
#include "tools/stress_partition.h"
#include "tools/stress_seeds.h"

enum stress_command {
	STRESS_READ,
	STRESS_WRITE,
	STRESS_COUNTER_WRITE,
	STRESS_COUNTER_READ,
	STRESS_MIXED,
	STRESS_USER,
	/* What does not run anything. */
	STRESS_HELP,
	STRESS_PRINT,
	STRESS_VERSION,
};

enum stress_log_level {
	STRESS_LOG_MINIMAL,
	STRESS_LOG_NORMAL,
	STRESS_LOG_VERBOSE,
};

enum stress_truncate {
	STRESS_TRUNCATE_NEVER,
	STRESS_TRUNCATE_ONCE,
	STRESS_TRUNCATE_ALWAYS,
};

enum {
	STRESS_OPERATIONS_MAX = 32,
	STRESS_NODES_MAX = 256,
	STRESS_SPLIT_MAX = 100000,
	STRESS_NAME_MAX = 64
};

/* An operation of a mix and its share. */
struct stress_share {
	char name[2 * STRESS_NAME_MAX];
	double share;
};

struct stress_settings {
	struct stress_arguments arguments; /* owned; many strings below lie in it */

	/* The command. */
	enum stress_command command;
	int64_t count; /* operations; -1: no end */
	int64_t duration; /* of duration_unit; 0: none */
	char duration_unit; /* 's', 'm', 'h' */
	double target_uncertainty; /* -1: not asked for */
	int uncertainty_min; /* measurements */
	int uncertainty_max;
	bool no_warmup;
	enum stress_truncate truncate;
	enum consistency consistency;
	enum consistency serial_consistency;
	struct stress_distribution counter_add;
	const char *counter_add_text;
	int key_size;
	struct stress_distribution clustering; /* of runs of one operation */
	const char *clustering_text;
	struct stress_share
	    shares[STRESS_OPERATIONS_MAX]; /* MIXED: commands; USER: as ops() has them */
	uint32_t share_count;
	const char *profiles; /* USER: paths, comma separated */

	/* -rate */
	bool is_auto; /* stop where more threads do not help */
	int threads; /* -1: a ladder */
	int threads_min; /* -1: no ladder */
	int threads_max;
	int rate; /* operations a second, 0: no limit */
	bool is_fixed; /* latency counts from when an operation was due */

	/* -pop, -insert */
	struct stress_population population;
	enum stress_order order;
	struct stress_distribution visits;
	struct stress_distribution revisit;
	bool has_batch_size;
	struct stress_distribution batch_size;
	bool has_select_ratio;
	struct stress_ratio select_ratio;
	struct stress_ratio row_population;
	int batch_type; /* enum batch_type, -1: not given */

	/* -col */
	uint32_t column_count;
	char (*columns)[STRESS_NAME_MAX]; /* owned; sorted */
	struct stress_distribution column_size;
	struct stress_distribution column_counts;
	const char *comparator;
	const char *timestamp; /* NULL: none */
	bool slice;

	/* -errors */
	int tries;
	bool ignore_errors;
	bool skip_read_validation;
	bool skip_unsupported_columns;

	/* -log, -reporting */
	enum stress_log_level log_level;
	bool no_summary;
	bool no_settings;
	int interval_ms;
	int header_interval_ms; /* 0: the header is printed once */
	bool shows_queries;
	const char *query_log_file; /* NULL: none */
	const char *log_file;
	const char *hdr_file;

	/* -mode */
	bool is_prepared;
	uint8_t protocol_version; /* 0: the newest that the server speaks */
	enum compression compression;
	const char *user; /* owned when read from a file; NULL: none */
	const char *password;
	const char *auth_provider;
	int pending_max; /* requests in flight on a connection */
	int connections_per_host;
	int request_timeout_ms;
	int workers; /* threads that do it all; 0: chosen */

	/* -node, -port */
	char *nodes[STRESS_NODES_MAX]; /* owned */
	uint32_t node_count;
	bool is_white_list;
	const char *datacenter;
	const char *rack; /* NULL: any */
	int port;
	int jmx_port;

	/* -schema */
	const char *keyspace;
	char strategy[128];
	char strategy_options[512]; /* ", 'key' : 'value'" of each */
	const char *table_compression; /* NULL: none */
	char compaction[128]; /* empty: none */
	char compaction_options[512];

	/* -transport */
	bool is_encrypted;
	const char *trust_store; /* PEM, or PKCS#12 */
	const char *trust_store_password;
	const char *key_store;
	const char *key_store_password;
	const char *ciphers; /* NULL: the library's */
	const char *tls_protocol; /* "TLS", or a version */
	bool verifies_host;

	/* -graph */
	const char *graph_file; /* NULL: none */
	const char *graph_revision;
	const char *graph_title;
	const char *graph_operation;

	/* -tokenrange */
	int split_factor;
	bool wraps_ranges;

	char *credentials; /* owned text of -credentials-file */
};

/*
 * Read a command line (without the program's name). 1: it was help or the like, all is said and done.
 * -1: ERROR_INVALID; the help of the option in question is on standard output.
 */
int stress_settings_parse(
    struct stress_settings *settings, int argc, char *const *argv, struct error *err);
void stress_settings_fini(struct stress_settings *settings);

/* "WRITE", ...: as reports name it. */
const char *stress_command_name(enum stress_command command);
/* Does the command write (so that a ladder rests between its steps)? */
bool stress_command_updates(enum stress_command command);
/* True when ops() asks for inserts alone. */
bool stress_settings_inserts_only(const struct stress_settings *settings);

/* The "Stress Settings" block; user profiles add theirs after it. */
void stress_settings_print(const struct stress_settings *settings, struct buffer *out);

#endif
