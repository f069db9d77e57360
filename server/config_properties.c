/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/config_internal.h"

/* The .properties files that stand beside cassandra.yaml. */

static void
config_trim_end(char *text)
{
	size_t end = strlen(text);

	while (end > 0 && isspace((unsigned char)text[end - 1]))
		end--;
	text[end] = '\0';
}

int
config_read_properties(struct config *config, const char *name, config_property_fn each,
    void *argument, struct error *err)
{
	char *copy, *path, *line = NULL;
	size_t capacity = 0;
	FILE *file;
	int rc = 0;

	if (config->path == NULL)
		return 0;
	copy = xstrdup(config->path);
	path = xasprintf("%s/%s", dirname(copy), name);
	file = fopen(path, "re");
	while (rc == 0 && file != NULL && getline(&line, &capacity, file) >= 0) {
		char *key = line + strspn(line, " \t"), *value = strchr(key, '=');

		if (*key == '#' || *key == '!' || value == NULL)
			continue;
		*value++ = '\0';
		value += strspn(value, " \t");
		config_trim_end(value);
		config_trim_end(key);
		rc = each(argument, key, value, err);
		if (rc != 0)
			error_prefix(err, "%s: %s", path, key);
	}
	free(line);
	if (file != NULL)
		fclose(file);
	free(path);
	free(copy);
	return rc;
}

/* ---- commitlog_archiving.properties (Cassandra: CommitLogArchiver) ---------------------------------- */

/* "yyyy:MM:dd HH:mm:ss", in GMT. */
static int
config_parse_point_in_time(const char *text, int64_t *out, struct error *err)
{
	struct tm time = {0};
	const char *end = strptime(text, "%Y:%m:%d %H:%M:%S", &time);

	if (end == NULL || *end != '\0')
		return error_set(err, ERROR_CONFIG,
		    "'%s' is no time of the form yyyy:MM:dd HH:mm:ss (in GMT)", text);
	*out = (int64_t)timegm(&time) * 1000;
	return 0;
}

static int
config_parse_precision(const char *text, uint64_t *out, struct error *err)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
	    {"NANOSECONDS", 1},
	    {"MICROSECONDS", 1000},
	    {"MILLISECONDS", 1000000},
	    {"SECONDS", 1000000000},
	    {"MINUTES", UINT64_C(60) * 1000000000},
	    {"HOURS", UINT64_C(3600) * 1000000000},
	    {"DAYS", UINT64_C(86400) * 1000000000},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(text, units[i].name) == 0) {
			*out = units[i].ns;
			return 0;
		}
	return error_set(err, ERROR_CONFIG,
	    "'%s' is no unit: NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS or "
	    "DAYS",
	    text);
}

static int
config_set_archiving(void *argument, const char *key, const char *value, struct error *err)
{
	struct config *config = argument;

	if (*value == '\0')
		return 0;
	if (strcmp(key, "archive_command") == 0)
		config_assign(&config->archive_command, value);
	else if (strcmp(key, "restore_command") == 0)
		config_assign(&config->restore_command, value);
	else if (strcmp(key, "restore_directories") == 0)
		config_assign(&config->restore_directories, value);
	else if (strcmp(key, "restore_point_in_time") == 0)
		return config_parse_point_in_time(value, &config->restore_point_ms, err);
	else if (strcmp(key, "precision") == 0)
		return config_parse_precision(value, &config->restore_precision_ns, err);
	else
		log_warn(
		    "commitlog_archiving.properties: %s is not known to this version of Helenus",
		    key);
	return 0;
}

int
config_read_archiving(struct config *config, struct error *err)
{
	config->restore_point_ms = INT64_MAX;
	config->restore_precision_ns = 1000;
	return config_read_properties(
	    config, "commitlog_archiving.properties", config_set_archiving, config, err);
}
