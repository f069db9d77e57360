/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_NODETOOL_H
#define HELENUS_TOOLS_NODETOOL_H

/*
 * nodetool: Cassandra's commands, options and output columns, over the admin port's JSON API.
 *
 * Exit status: 0 done, 1 bad usage or a bad argument, 2 the command failed.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NODETOOL_USAGE = 1, NODETOOL_FAILED = 2, NODETOOL_WORDS_MAX = 256 };

/* An option of a command. */
struct nodetool_option {
	const char *brief; /* "-t" or NULL */
	const char *full; /* "--tag" or NULL */
	const char *argument; /* "tag"; NULL: a switch */
	const char *help;
};

struct nodetool {
	const char *host;
	const char *port;
	bool print_port;

	const struct nodetool_command *command;
	const char *option_values[24]; /* by the command's options; "" for a switch that is set */
	json_t *kept; /* owned; an array of what lives until the end: every answer */
	const char *words[NODETOOL_WORDS_MAX];
	int word_count;
};

struct nodetool_command {
	const char *name;
	const char *help; /* one line */
	const char *usage; /* positional arguments, or "" */
	int words_min, words_max;
	const struct nodetool_option *options; /* all NULL at the end; may be NULL */
	int (*run)(struct nodetool *tool);
	/* For commands that are one call: POST <call>. */
	const char *call;
};

extern const struct nodetool_command nodetool_cluster_commands[], nodetool_info_commands[],
    nodetool_hints_commands[], nodetool_repair_commands[], nodetool_stats_commands[],
    nodetool_table_commands[], nodetool_operation_commands[], nodetool_topology_commands[],
    nodetool_tablestats_commands[], nodetool_compact_commands[], nodetool_settings_commands[];

/* netstats' streams (nodetool_topology.c). */
void topology_print_streams(struct nodetool *tool, const json_t *streams);

/* The value of an option by either name; NULL: not given. */
const char *nodetool_option(const struct nodetool *tool, const char *name);

/* The words from the `from`th on, joined with commas: the tables of "[keyspace [tables...]]". Good until the next call. */
const char *nodetool_join_words(const struct nodetool *tool, int from);

/* Do the words ("ks" or "ks.table"; none: all) name this table of an answer? With -i: all but those. */
bool nodetool_table_is_named(const struct nodetool *tool, const json_t *table);
/* Refuses a word that names none of them. */
void nodetool_check_tables(struct nodetool *tool, const json_t *tables);

/* ---- talking to the node (nodetool_http.c) ------------------------------------------------------ */

/*
 * Call the API. `format` makes the name and the query; %u in it takes a string and escapes it for a
 * query. The answer is the tool's. On failure the reason is printed and the process exits as Cassandra's
 * nodetool does.
 */
json_t *nodetool_get(struct nodetool *tool, const char *format, ...);
json_t *nodetool_post(struct nodetool *tool, const char *format, ...);

/* The tool owns it from now on. */
json_t *nodetool_keep(struct nodetool *tool, json_t *json);

/* Members of an answer; 0, "" or false when absent. */
int64_t nodetool_int(const json_t *json, const char *name);
double nodetool_real(const json_t *json, const char *name); /* NAN for null */
const char *nodetool_text(const json_t *json, const char *name);
bool nodetool_true(const json_t *json, const char *name);

/* Print "nodetool: <text>", the hint, and exit with NODETOOL_USAGE. */
void nodetool_refuse(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Print "error: <text>" and exit with NODETOOL_FAILED. */
void nodetool_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- printing (nodetool_print.c) ------------------------------------------------------------------ */

/* Rows of texts, printed in columns as wide as their widest cell. */
struct nodetool_grid {
	const char *separator;
	size_t columns;
	char **cells; /* owned; row by row */
	size_t cell_count;
};
void nodetool_grid_init(struct nodetool_grid *grid, const char *separator, size_t columns);
/* One cell; the row is full after `columns` of them. */
void nodetool_grid_add(struct nodetool_grid *grid, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Also empties it. */
void nodetool_grid_print(struct nodetool_grid *grid);
void nodetool_grid_fini(struct nodetool_grid *grid);

/* "104.34 KiB", "70 bytes". Good until the eighth call after. */
const char *nodetool_size(uint64_t bytes);
/* "2026-11-30T21:40:36.129Z"; with_zone false: without the Z. Same. */
const char *nodetool_time(int64_t ms, bool with_zone);
/* As Java prints a double: "0.25", "NaN". Same. */
const char *nodetool_double(double value);
/* json or yaml (-F). */
void nodetool_print_structured(const json_t *json, const char *format);

#endif
