/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_options.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/alloc.h"
#include "tools/stress_distribution.h"

/* ---- The command line ------------------------------------------------------------------------ */

/* Join the words, without the blanks that only make it readable. */
static char *
stress_arguments_join(int argc, char *const *argv)
{
	size_t size = 1, at = 0;
	char *text;

	for (int i = 0; i < argc; i++)
		size += strlen(argv[i]) + 1;
	text = xmalloc(size);
	for (int i = 0; i < argc; i++) {
		for (const char *from = argv[i]; *from != '\0'; from++) {
			char c = isspace((unsigned char)*from) ? ' ' : *from;

			if (c == ' ' && (at == 0 || strchr(" ,=(", text[at - 1]) != NULL))
				continue;
			if (strchr(",=()", c) != NULL) {
				while (at > 0 && text[at - 1] == ' ')
					at--;
			}
			text[at++] = c;
		}
		if (at > 0 && strchr(" ,=(", text[at - 1]) == NULL)
			text[at++] = ' ';
	}
	while (at > 0 && text[at - 1] == ' ')
		at--;
	text[at] = '\0';
	return text;
}

static int
stress_arguments_add(struct stress_arguments *arguments, char *word, struct error *err)
{
	struct stress_argument *last;

	if (arguments->count > 0 && word[0] != '-') {
		last = &arguments->list[arguments->count - 1];
		if (last->count == STRESS_PARAMETERS_MAX)
			return error_set(
			    err, ERROR_INVALID, "%s has too many parameters", last->key);
		last->parameters[last->count++] = word;
		return 0;
	}
	for (char *c = word; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	for (size_t i = 0; i < arguments->count; i++) {
		if (strcmp(arguments->list[i].key, word) == 0)
			return error_set(err, ERROR_INVALID,
			    "%s is defined multiple times. Each option/command can be specified at "
			    "most once.",
			    word);
	}
	arguments->list =
	    xrealloc(arguments->list, (arguments->count + 1) * sizeof(*arguments->list));
	arguments->list[arguments->count++] = (struct stress_argument){.key = word};
	return 0;
}

int
stress_arguments_parse(
    struct stress_arguments *arguments, int argc, char *const *argv, struct error *err)
{
	char *rest = NULL;

	memset(arguments, 0, sizeof(*arguments));
	arguments->text = stress_arguments_join(argc, argv);
	for (char *word = strtok_r(arguments->text, " ", &rest); word != NULL;
	     word = strtok_r(NULL, " ", &rest)) {
		if (stress_arguments_add(arguments, word, err) != 0)
			return -1;
	}
	if (arguments->count == 0)
		return error_set(err, ERROR_INVALID, "No command provided");
	return 0;
}

void
stress_arguments_fini(struct stress_arguments *arguments)
{
	free(arguments->list);
	free(arguments->text);
	memset(arguments, 0, sizeof(*arguments));
}

struct stress_argument *
stress_arguments_take(struct stress_arguments *arguments, const char *key)
{
	for (size_t i = 0; i < arguments->count; i++) {
		if (strcmp(arguments->list[i].key, key) == 0) {
			arguments->list[i].is_used = true;
			return &arguments->list[i];
		}
	}
	return NULL;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static bool
stress_option_matches(const char *pattern, const char *value)
{
	char anchored[256];
	regex_t regex;
	bool matches;

	snprintf(anchored, sizeof(anchored), "^(%s)$", pattern);
	if (regcomp(&regex, anchored, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
		abort(); /* the patterns are ours */
	matches = regexec(&regex, value, 0, NULL, 0) == 0;
	regfree(&regex);
	return matches;
}

static int
stress_option_check(const struct stress_option *option, const char *value, struct error *err)
{
	struct stress_distribution distribution;
	struct stress_ratio ratio;

	switch (option->kind) {
	case STRESS_OPTION_DISTRIBUTION:
		return stress_distribution_parse(&distribution, value, err);
	case STRESS_OPTION_RATIO:
		return stress_ratio_parse(&ratio, value, err);
	case STRESS_OPTION_MULTI:
		return 0;
	case STRESS_OPTION_REFUSED:
		return error_set(
		    err, ERROR_INVALID, "%s is not supported: %s", option->prefix, option->text);
	default:
		if (*option->pattern == '\0' ? *value == '\0'
					     : stress_option_matches(option->pattern, value))
			return 0;
		return error_set(err, ERROR_INVALID, "Invalid value %s; must match pattern %s",
		    value, option->pattern);
	}
}

/* 1: the group took it, 0: not one of its own, -1: it is, and wrong. */
static int
stress_group_accept(struct stress_group *group, const char *parameter, struct error *err)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct stress_option *option = &group->options[i];
		size_t size = strlen(option->prefix), length = strlen(parameter);
		const char *value = parameter + size;

		if (strncasecmp(parameter, option->prefix, size) != 0)
			continue;
		if (option->kind == STRESS_OPTION_MULTI &&
		    (*value != '(' || parameter[length - 1] != ')'))
			continue;
		if (option->kind == STRESS_OPTION_MULTI)
			value++;
		/* A flag that goes on is another option's: "native" and "native=". */
		if (option->kind == STRESS_OPTION_SIMPLE && *option->pattern == '\0' &&
		    *value != '\0')
			continue;
		if (group->values[i] != NULL)
			return error_set(err, ERROR_INVALID,
			    "Suboption %s has been specified more than once", option->prefix);
		if (stress_option_check(option, value, err) != 0)
			return -1;
		group->values[i] = value;
		group->accepted++;
		return 1;
	}
	return 0;
}

static bool
stress_group_is_happy(const struct stress_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		if (group->options[i].is_required && group->values[i] == NULL)
			return false;
	}
	return true;
}

int
stress_groups_select(struct stress_group *groups, size_t count,
    const struct stress_argument *argument, struct error *err)
{
	size_t parameters = argument != NULL ? argument->count : 0;

	for (size_t i = 0; i < parameters; i++) {
		bool is_accepted = false;

		for (size_t j = 0; j < count; j++) {
			int taken = stress_group_accept(&groups[j], argument->parameters[i], err);

			if (taken < 0)
				return -1;
			is_accepted |= taken > 0;
		}
		if (!is_accepted)
			return error_set(
			    err, ERROR_INVALID, "Invalid parameter %s", argument->parameters[i]);
	}
	for (size_t j = 0; j < count; j++) {
		if (groups[j].accepted == parameters && stress_group_is_happy(&groups[j]))
			return (int)j;
	}
	return error_set(err, ERROR_INVALID, "%s", "");
}

static size_t
stress_group_find(const struct stress_group *group, const char *prefix)
{
	for (size_t i = 0; i < group->count; i++) {
		if (strcmp(group->options[i].prefix, prefix) == 0)
			return i;
	}
	return SIZE_MAX;
}

const char *
stress_group_value(const struct stress_group *group, const char *prefix)
{
	size_t i = stress_group_find(group, prefix);

	if (i == SIZE_MAX)
		return NULL;
	return group->values[i] != NULL ? group->values[i] : group->options[i].standard;
}

bool
stress_group_is_set(const struct stress_group *group, const char *prefix)
{
	size_t i = stress_group_find(group, prefix);

	return i != SIZE_MAX && group->values[i] != NULL;
}

bool
stress_multi_next(
    const char **cursor, char *key, size_t key_size, char *value, size_t value_size, bool *is_bad)
{
	const char *at = *cursor, *equals;
	size_t size;

	*is_bad = false;
	if (*at == ')' || *at == '\0')
		return false;
	/* The closing parenthesis is the value's last character. */
	size = strcspn(at, ",");
	*cursor = at + size + (at[size] == ',');
	if (at[size] == '\0' && size > 0 && at[size - 1] == ')')
		size--;
	equals = memchr(at, '=', size);
	if (equals == NULL || equals == at || equals + 1 == at + size ||
	    (size_t)(equals - at) >= key_size || (size_t)(at + size - equals) > value_size) {
		*is_bad = true;
		return true;
	}
	snprintf(key, key_size, "%.*s", (int)(equals - at), at);
	snprintf(value, value_size, "%.*s", (int)(at + size - equals - 1), equals + 1);
	return true;
}

/* ---- Help ------------------------------------------------------------------------------------ */

static void
stress_option_print_short(const struct stress_option *option)
{
	size_t size = strlen(option->prefix);
	char last = size > 0 ? option->prefix[size - 1] : '\0';
	const char *tail = option->kind == STRESS_OPTION_MULTI ? "(?)"
	    : option->kind == STRESS_OPTION_DISTRIBUTION || option->kind == STRESS_OPTION_RATIO
	    ? "DIST(?)"
	    : last == '=' || last == '<' || last == '>' ? "?"
							: "";

	printf(option->is_required ? " %s%s" : " [%s%s]", option->prefix, tail);
}

static void
stress_option_print_long(const struct stress_option *option)
{
	char left[256];
	size_t size = strlen(option->prefix);
	bool takes_value = size == 0 || strchr("=<>", option->prefix[size - 1]) != NULL;

	snprintf(left, sizeof(left), "%s%s%s%s%s", option->prefix,
	    option->kind == STRESS_OPTION_MULTI ? "(?)"
		: takes_value                   ? "?"
						: "",
	    option->standard != NULL ? " (default=" : "",
	    option->standard != NULL ? option->standard : "", option->standard != NULL ? ")" : "");
	printf("  %-40s %s\n", left, option->text);
}

static void
stress_distributions_print(void)
{
	static const char *const lines[][2] = {
	    {"EXP(min..max)", "An exponential distribution over the range [min..max]"},
	    {"EXTREME(min..max,shape)",
		"An extreme value (Weibull) distribution over the range [min..max]"},
	    {"QEXTREME(min..max,shape,quantas)",
		"An extreme value, split into quantas, within which the chance of selection is "
		"uniform"},
	    {"GAUSSIAN(min..max,stdvrng)",
		"A gaussian/normal distribution, where mean=(min+max)/2, and stdev is "
		"(mean-min)/stdvrng"},
	    {"GAUSSIAN(min..max,mean,stdev)",
		"A gaussian/normal distribution, with explicitly defined mean and stdev"},
	    {"UNIFORM(min..max)", "A uniform distribution over the range [min, max]"},
	    {"FIXED(val)", "A fixed distribution, always returning the same value"},
	    {"SEQ(min..max)",
		"A fixed sequence, returning values in the range min to max sequentially (starting "
		"based on seed), wrapping if necessary."},
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		printf("      %-36s %s\n", lines[i][0], lines[i][1]);
	printf(
	    "      Preceding the name with ~ will invert the distribution, e.g. ~exp(1..10) will "
	    "yield 10 most, instead of least, often\n");
	printf("      Aliases: extr, qextr, gauss, normal, norm, weibull\n");
}

void
stress_groups_print_help(const char *name, const struct stress_group *groups, size_t count)
{
	bool has_distribution = false;

	printf("\n");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			printf(" OR \n");
		printf("Usage: %s", name);
		for (size_t j = 0; j < groups[i].count; j++) {
			if (groups[i].options[j].kind != STRESS_OPTION_REFUSED)
				stress_option_print_short(&groups[i].options[j]);
		}
		printf("\n");
	}
	printf("\n");
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < groups[i].count; j++) {
			const struct stress_option *option = &groups[i].options[j];
			bool is_known = false;

			for (size_t k = 0; k < i; k++)
				is_known |=
				    stress_group_find(&groups[k], option->prefix) != SIZE_MAX;
			if (is_known || option->kind == STRESS_OPTION_REFUSED)
				continue;
			stress_option_print_long(option);
			has_distribution |= option->kind == STRESS_OPTION_DISTRIBUTION ||
			    option->kind == STRESS_OPTION_RATIO;
		}
	}
	if (has_distribution)
		stress_distributions_print();
}
