/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_OPTIONS_H
#define HELENUS_TOOLS_STRESS_OPTIONS_H

/*
 * The grammar of cassandra-stress command lines: a command, then options that begin with '-', each
 * followed by its parameters. An option has one or more groups of parameters that exclude each other;
 * the first group that takes all that was given, and has all it requires, is meant. Groups are
 * tables: parsing, defaults and help come out of one place. Cassandra: stress/settings/Option*,
 * GroupedOptions, StressSettings.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

enum stress_option_kind {
	STRESS_OPTION_SIMPLE, /* prefix, then what `pattern` matches; flags have the pattern "" */
	STRESS_OPTION_DISTRIBUTION, /* prefix, then a distribution */
	STRESS_OPTION_RATIO, /* prefix, then a distribution over a divisor */
	STRESS_OPTION_MULTI, /* name(key=value,...) */
	STRESS_OPTION_REFUSED, /* known, and never taken: `text` says why */
};

/* One parameter. All strings are static. */
struct stress_option {
	const char *prefix;
	enum stress_option_kind kind;
	const char *pattern; /* extended regular expression, letters of either case; SIMPLE */
	const char *standard; /* the value when it is not given; NULL: none */
	const char *text; /* for help */
	bool is_required;
};

enum { STRESS_OPTIONS_MAX = 24, STRESS_GROUPS_MAX = 6, STRESS_PARAMETERS_MAX = 64 };

struct stress_group {
	const struct stress_option *options;
	size_t count;
	const char *values[STRESS_OPTIONS_MAX]; /* given; they point into the parameters */
	size_t accepted;
};

/* A command line, cut up. */
struct stress_argument {
	char *key; /* lower case; "write", "-rate", ... */
	char *parameters[STRESS_PARAMETERS_MAX];
	size_t count;
	bool is_used;
};

struct stress_arguments {
	struct stress_argument *list; /* owned */
	size_t count;
	char *text; /* owned; keys and parameters lie in it */
};

/* Blanks around , = ( and ) do not separate. ERROR_INVALID: an option twice, too many parameters. */
int stress_arguments_parse(
    struct stress_arguments *arguments, int argc, char *const *argv, struct error *err);
void stress_arguments_fini(struct stress_arguments *arguments);
/* The option of that name, which then counts as used; NULL: not given. */
struct stress_argument *stress_arguments_take(struct stress_arguments *arguments, const char *key);

/*
 * Offer the parameters to the groups. Returns the index of the group that is meant. -1: ERROR_INVALID,
 * a parameter that none knows or whose value is wrong; or, with an empty text, no group fits all.
 * NULL argument: nothing was given, the first group that is content with that is meant.
 */
int stress_groups_select(struct stress_group *groups, size_t count,
    const struct stress_argument *argument, struct error *err);

/* The value of an option of the group, or its standard one; NULL: neither. */
const char *stress_group_value(const struct stress_group *group, const char *prefix);
bool stress_group_is_set(const struct stress_group *group, const char *prefix);

/* "Usage: ..." of an option or command, and what its parameters mean, to standard output. */
void stress_groups_print_help(const char *name, const struct stress_group *groups, size_t count);

/*
 * Walk over the inside of a MULTI value, "a=1,b=2": *cursor begins as the value. False at the end;
 * *is_bad: a part is not of the form key=value.
 */
bool stress_multi_next(
    const char **cursor, char *key, size_t key_size, char *value, size_t value_size, bool *is_bad);

#endif
