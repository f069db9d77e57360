/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_HELP_H
#define HELENUS_TOOLS_STRESS_HELP_H

/*
 * The tables of commands, options and their parameters, out of which help is printed and
 * stress_settings reads command lines. Constant; any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include "tools/stress_options.h"
#include "tools/stress_settings.h"

enum { STRESS_COMMAND_GROUPS_MAX = 3, STRESS_TOPIC_GROUPS_MAX = 2 };

/* The command of that name (lower case); false: there is none. */
bool stress_command_find(const char *name, enum stress_command *command);
/* The groups of a command's parameters; returns how many, 0 for help and version. */
size_t stress_command_groups(
    enum stress_command command, struct stress_group groups[STRESS_COMMAND_GROUPS_MAX]);
/* The groups of an option ("-rate"); 0: there is none of that name. */
size_t stress_topic_groups(const char *name, struct stress_group groups[STRESS_TOPIC_GROUPS_MAX]);

/* What there is, to standard output. */
void stress_print_help(void);
/* Help of one command or option; false: there is none of that name. */
bool stress_print_topic(const char *name);

#endif
