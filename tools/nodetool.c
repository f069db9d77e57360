/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/nodetool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct nodetool_command *const nodetool_lists[] = {nodetool_cluster_commands,
    nodetool_info_commands, nodetool_repair_commands, nodetool_stats_commands,
    nodetool_table_commands, nodetool_tablestats_commands, nodetool_operation_commands,
    nodetool_topology_commands, nodetool_compact_commands, nodetool_hints_commands,
    nodetool_settings_commands};
enum { NODETOOL_LISTS = sizeof(nodetool_lists) / sizeof(nodetool_lists[0]) };

/* Commands of Cassandra that have nothing to act on here: named, so that a script's message is clear. */
static const struct {
	const char *name, *reason;
} nodetool_absent[] = {
    {"abortbootstrap", "stop the node instead: it joins again with an empty data directory"},
    {"checktokenmetadata", "the ring is held once; see ring and describecluster"},
    {"disableauditlog", "there is no audit log"},
    {"disablefullquerylog", "there is no full query log; see settraceprobability"},
    {"enableauditlog", "there is no audit log"},
    {"enablefullquerylog", "there is no full query log; see settraceprobability"},
    {"forcecompact", "use compact --partition, and gc_grace_seconds of the table"},
    {"getauditlog", "there is no audit log"},
    {"getauthcacheconfig", "nobody logs in: there are no roles to cache"},
    {"getconcurrentviewbuilders", "there are no materialized views"},
    {"getfullquerylog", "there is no full query log; see gettraceprobability"},
    {"invalidatecidrpermissionscache", "nobody logs in: there are no permissions to cache"},
    {"invalidatecredentialscache", "nobody logs in: there are no credentials to cache"},
    {"invalidatejmxpermissionscache", "there is no JMX"},
    {"invalidatenetworkpermissionscache", "nobody logs in: there are no permissions to cache"},
    {"invalidatepermissionscache", "nobody logs in: there are no permissions to cache"},
    {"invalidaterolescache", "nobody logs in: there are no roles to cache"},
    {"rebuild_index", "there are no secondary indexes"},
    {"reloadlocalschema", "nobody but the node writes its schema tables; restart it"},
    {"reloadtriggers", "there are no triggers"},
    {"relocatesstables", "an SSTable may lie in any of the data directories"},
    {"resetfullquerylog", "there is no full query log"},
    {"resetlocalschema", "restart the node: it takes what it lacks from the others"},
    {"setauthcacheconfig", "nobody logs in: there are no roles to cache"},
    {"setconcurrentviewbuilders", "there are no materialized views"},
    {"viewbuildstatus", "there are no materialized views"},
};

static const char nodetool_globals[] =
    "[(-h <host> | --host <host>)] [(-p <port> | --port <port>)]\n"
    "        [(-pp | --print-port)] [(-u <user> | --username "
    "<user>)] [(-pw <password> | --password <password>)]\n"
    "        [(-pwf <file> | --password-file <file>)]";

static const struct nodetool_command *
nodetool_find(const char *name)
{
	static const char *const aliases[][2] = {{"cfstats", "tablestats"},
	    {"cfhistograms", "tablehistograms"}, {"liststages", "tpstats"}};

	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(aliases[i][0], name) == 0)
			name = aliases[i][1];
	for (int i = 0; i < NODETOOL_LISTS; i++)
		for (const struct nodetool_command *each = nodetool_lists[i]; each->name != NULL;
		     each++)
			if (strcmp(each->name, name) == 0)
				return each;
	return NULL;
}

static int
nodetool_compare(const void *a, const void *b)
{
	return strcmp((*(const struct nodetool_command *const *)a)->name,
	    (*(const struct nodetool_command *const *)b)->name);
}

static void
nodetool_help(FILE *out)
{
	const struct nodetool_command *sorted[256];
	size_t count = 0;

	for (int i = 0; i < NODETOOL_LISTS; i++)
		for (const struct nodetool_command *each = nodetool_lists[i]; each->name != NULL;
		     each++)
			sorted[count++] = each;
	qsort(sorted, count, sizeof(sorted[0]), nodetool_compare);
	fprintf(out, "usage: nodetool %s <command>\n        [<args>]\n\n", nodetool_globals);
	fprintf(out, "The most commonly used nodetool commands are:\n");
	fprintf(out, "    %-35s %s\n", "help", "Show this list, or the manual of one command");
	for (size_t i = 0; i < count; i++)
		fprintf(out, "    %-35s %s\n", sorted[i]->name, sorted[i]->help);
	fprintf(
	    out, "\nSee 'nodetool help <command>' for more information on a specific command.\n\n");
}

static void
nodetool_help_command(const struct nodetool_command *command)
{
	const struct nodetool_option *options = command->options;

	printf("NAME\n        nodetool %s - %s\n\n", command->name, command->help);
	printf("SYNOPSIS\n        nodetool %s\n        %s", nodetool_globals, command->name);
	for (const struct nodetool_option *each = options;
	     each != NULL && (each->brief != NULL || each->full != NULL); each++) {
		const char *name = each->brief != NULL ? each->brief : each->full;

		if (each->argument != NULL)
			printf(" [%s <%s>]", name, each->argument);
		else
			printf(" [%s]", name);
	}
	printf("%s%s\n\nOPTIONS\n", *command->usage == '\0' ? "" : " ", command->usage);
	for (const struct nodetool_option *each = options;
	     each != NULL && (each->brief != NULL || each->full != NULL); each++) {
		printf("        %s%s%s", each->brief == NULL ? "" : each->brief,
		    each->brief != NULL && each->full != NULL ? ", " : "",
		    each->full == NULL ? "" : each->full);
		if (each->argument != NULL)
			printf(" <%s>", each->argument);
		printf("\n            %s\n\n", each->help);
	}
	printf("        -h <host>, --host <host>\n            Address of the node's admin port "
	       "(127.0.0.1)\n\n"
	       "        -p <port>, --port <port>\n            The admin port (7199)\n\n"
	       "        -pp, --print-port\n            Show addresses with their port\n\n"
	       "        -u, -pw, -pwf\n            Accepted and not used: the admin port has no "
	       "login\n\n");
}

const char *
nodetool_option(const struct nodetool *tool, const char *name)
{
	const struct nodetool_option *options = tool->command->options;

	for (int i = 0; options != NULL && (options[i].brief != NULL || options[i].full != NULL);
	     i++)
		if ((options[i].brief != NULL && strcmp(options[i].brief, name) == 0) ||
		    (options[i].full != NULL && strcmp(options[i].full, name) == 0))
			return tool->option_values[i];
	return NULL;
}

/* Is `word` the option, perhaps as --name=value? *value: after the equals sign, or NULL. */
static bool
nodetool_is_option(const char *word, const char *brief, const char *full, const char **value)
{
	size_t length = full == NULL ? 0 : strlen(full);

	*value = NULL;
	if (brief != NULL && strcmp(word, brief) == 0)
		return true;
	if (full == NULL || strncmp(word, full, length) != 0)
		return false;
	if (word[length] == '=')
		*value = word + length + 1;
	return word[length] == '\0' || word[length] == '=';
}

/* A global option at argv[i]: how many words it takes, 0 when it is none. */
static int
nodetool_global(struct nodetool *tool, int argc, char **argv, int i)
{
	static const char *const ignored[][2] = {
	    {"-u", "--username"}, {"-pw", "--password"}, {"-pwf", "--password-file"}};
	const char *value;

	if (strcmp(argv[i], "-pp") == 0 || strcmp(argv[i], "--print-port") == 0) {
		tool->print_port = true;
		return 1;
	}
	for (int j = -2; j < 3; j++) {
		const char *brief = j == -2 ? "-h" : j == -1 ? "-p" : ignored[j][0];
		const char *full = j == -2 ? "--host" : j == -1 ? "--port" : ignored[j][1];

		if (!nodetool_is_option(argv[i], brief, full, &value))
			continue;
		if (value == NULL && i + 1 >= argc)
			nodetool_refuse("Required values for option '%s' not provided", full + 2);
		if (j == -2)
			tool->host = value != NULL ? value : argv[i + 1];
		if (j == -1)
			tool->port = value != NULL ? value : argv[i + 1];
		return value != NULL ? 1 : 2;
	}
	return 0;
}

/* One that is given again is a list: its values with commas between them. */
static void
nodetool_set_option(struct nodetool *tool, int index, const char *value)
{
	if (tool->option_values[index] != NULL) {
		json_t *joined =
		    nodetool_keep(tool, json_sprintf("%s,%s", tool->option_values[index], value));

		value = json_string_value(joined);
		if (value == NULL)
			nodetool_fail("no memory");
	}
	tool->option_values[index] = value;
}

static int
nodetool_command_option(struct nodetool *tool, int argc, char **argv, int i)
{
	const struct nodetool_option *options = tool->command->options;
	const char *value;

	for (int j = 0; options != NULL && (options[j].brief != NULL || options[j].full != NULL);
	     j++) {
		if (!nodetool_is_option(argv[i], options[j].brief, options[j].full, &value))
			continue;
		if (options[j].argument == NULL) {
			tool->option_values[j] = "";
			return 1;
		}
		if (value == NULL && i + 1 >= argc)
			nodetool_refuse("Required values for option '%s' not provided", argv[i]);
		nodetool_set_option(tool, j, value != NULL ? value : argv[i + 1]);
		return value != NULL ? 1 : 2;
	}
	return 0;
}

static void __attribute__((noreturn)) nodetool_no_such(const char *name)
{
	for (size_t i = 0; i < sizeof(nodetool_absent) / sizeof(nodetool_absent[0]); i++)
		if (strcmp(nodetool_absent[i].name, name) == 0)
			nodetool_fail("%s is not supported: %s", name, nodetool_absent[i].reason);
	nodetool_refuse("Found unexpected parameters: [%s]", name);
}

static int
nodetool_show_help(int argc, char **argv, int i)
{
	const struct nodetool_command *command;

	if (i >= argc) {
		nodetool_help(stdout);
		return 0;
	}
	command = nodetool_find(argv[i]);
	if (command == NULL) {
		printf("Unknown command %s\n", argv[i]);
		return 0;
	}
	nodetool_help_command(command);
	return 0;
}

int
main(int argc, char **argv)
{
	struct nodetool tool = {.host = "127.0.0.1", .port = "7199", .kept = json_array()};
	int status = 0;
	bool is_plain = false; /* after "--" */
	int i = 1;

	while (i < argc && argv[i][0] == '-') {
		int taken = nodetool_global(&tool, argc, argv, i);

		if (taken == 0)
			nodetool_refuse("Found unexpected parameters: [%s]", argv[i]);
		i += taken;
	}
	if (i >= argc || strcmp(argv[i], "help") == 0) {
		json_decref(tool.kept);
		return nodetool_show_help(argc, argv, i + 1);
	}
	tool.command = nodetool_find(argv[i]);
	if (tool.command == NULL)
		nodetool_no_such(argv[i]);
	for (i++; i < argc;) {
		int taken = 0;

		if (!is_plain && strcmp(argv[i], "--") == 0) {
			is_plain = true;
			i++;
			continue;
		}
		if (!is_plain && argv[i][0] == '-' && argv[i][1] != '\0') {
			taken = nodetool_command_option(&tool, argc, argv, i);
			if (taken == 0)
				taken = nodetool_global(&tool, argc, argv, i);
			/* A negative number is a word: tokens. */
			if (taken == 0 && (argv[i][1] < '0' || argv[i][1] > '9'))
				nodetool_refuse("Found unexpected parameters: [%s]", argv[i]);
		}
		if (taken == 0 && tool.word_count < NODETOOL_WORDS_MAX) {
			tool.words[tool.word_count++] = argv[i];
			taken = 1;
		}
		i += taken == 0 ? 1 : taken;
	}
	if (tool.word_count < tool.command->words_min)
		nodetool_refuse("%s requires %s", tool.command->name, tool.command->usage);
	if (tool.word_count > tool.command->words_max)
		nodetool_refuse(
		    "Found unexpected parameters: [%s]", tool.words[tool.command->words_max]);
	if (tool.command->run != NULL)
		status = tool.command->run(&tool);
	else
		(void)nodetool_post(&tool, "%s", tool.command->call);
	json_decref(tool.kept);
	return status;
}
