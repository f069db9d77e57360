/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cql/value_zone.h"

/* Abbreviations and the zone that stands for them, since "PST" in July means the zone, not the
 * offset. */
static const struct {
	const char *abbreviation;
	const char *zone;
} zone_aliases[] = {
    {"Zulu", "UTC"},
    {"PST", "America/Los_Angeles"},
    {"PDT", "America/Los_Angeles"},
    {"MST", "America/Denver"},
    {"MDT", "America/Denver"},
    {"CST", "America/Chicago"},
    {"CDT", "America/Chicago"},
    {"EST", "America/New_York"},
    {"EDT", "America/New_York"},
    {"AKST", "America/Anchorage"},
    {"HST", "Pacific/Honolulu"},
    {"CET", "Europe/Paris"},
    {"CEST", "Europe/Paris"},
    {"EET", "Europe/Athens"},
    {"EEST", "Europe/Athens"},
    {"WET", "Europe/Lisbon"},
    {"BST", "Pacific/Bougainville"},
    {"MSK", "Europe/Moscow"},
    {"IST", "Europe/Dublin"},
    {"SGT", "Asia/Singapore"},
    {"NZST", "Pacific/Auckland"},
    {"NZDT", "Pacific/Auckland"},
    {"PT", "America/Los_Angeles"},
    {"MT", "America/Denver"},
    {"CT", "America/Chicago"},
    {"ET", "America/New_York"},
    {"JST", "Asia/Tokyo"},
    {"AEST", "Australia/Sydney"},
    {"AEDT", "Australia/Sydney"},
};

/* Fallback where the system has no zone files. */
static const struct {
	const char *zone;
	int hours;
} zone_fixed[] = {
    {"America/Los_Angeles", -8},
    {"America/Denver", -7},
    {"America/Chicago", -6},
    {"America/New_York", -5},
    {"Pacific/Honolulu", -10},
    {"Europe/Paris", 1},
    {"Europe/London", 0},
    {"Asia/Tokyo", 9},
};

enum { ZONE_FILE_MAX = 64 * 1024, ZONE_HEADER = 44 };

static bool
zone_is_name(const char *name)
{
	/* A relative path below the zone folder and nothing else. */
	if (name[0] == '\0' || name[0] == '/' || strstr(name, "..") != NULL)
		return false;
	for (; *name != '\0'; name++) {
		if (!isalnum((unsigned char)*name) && strchr("/_+-", *name) == NULL)
			return false;
	}
	return true;
}

/* The file's content, or size 0. */
static size_t
zone_read(const char *name, uint8_t *data)
{
	char path[160];
	size_t size = 0;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (size < ZONE_FILE_MAX && (got = read(fd, data + size, ZONE_FILE_MAX - size)) > 0)
		size += (size_t)got;
	close(fd);
	return size;
}

/* Sizes out of a TZif header: bytes of the data behind it, with times of `width` bytes. */
struct zone_counts {
	uint32_t utc, standard, leap, time, type, chars;
};

static bool
zone_header(const uint8_t *at, size_t left, struct zone_counts *counts)
{
	if (left < ZONE_HEADER || memcmp(at, "TZif", 4) != 0)
		return false;
	counts->utc = load_u32(at + 20);
	counts->standard = load_u32(at + 24);
	counts->leap = load_u32(at + 28);
	counts->time = load_u32(at + 32);
	counts->type = load_u32(at + 36);
	counts->chars = load_u32(at + 40);
	return counts->utc < 4096 && counts->standard < 4096 && counts->leap < 4096 &&
	    counts->time < 8192 && counts->type < 4096 && counts->chars < 4096;
}

static size_t
zone_block(const struct zone_counts *counts, size_t width)
{
	return counts->time * (width + 1) + counts->type * 6 + counts->chars +
	    counts->leap * (width + 4) + counts->standard + counts->utc;
}

/*
 * Rule behind the last transition, "EST5EDT,M3.2.0,M11.1.0": only the form with two Mm.w.d rules is
 * read, which is what all zones with summer time have today.
 */
struct zone_rule {
	int month, week, day;
	int time; /* seconds of local time; 02:00 unless given */
};

static const char *
zone_rule_parse(const char *at, struct zone_rule *rule)
{
	int used = 0, hours = 2;

	if (sscanf(at, ",M%d.%d.%d%n", &rule->month, &rule->week, &rule->day, &used) != 3)
		return NULL;
	at += used;
	if (*at == '/') {
		hours = atoi(at + 1);
		at += strcspn(at + 1, ",") + 1;
	}
	rule->time = hours * 3600;
	return at;
}

static const char *
zone_posix_name(const char *at)
{
	if (*at == '<') {
		at = strchr(at, '>');
		return at != NULL ? at + 1 : NULL;
	}
	while (isalpha((unsigned char)*at))
		at++;
	return at;
}

/* Seconds ahead of UTC (the sign is the other way round in the text). */
static const char *
zone_posix_offset(const char *at, int *seconds)
{
	int sign = *at == '-' ? 1 : -1;
	int hours, minutes = 0;
	char *end;

	if (*at == '-' || *at == '+')
		at++;
	hours = (int)strtol(at, &end, 10);
	if (*end == ':')
		minutes = (int)strtol(end + 1, &end, 10);
	*seconds = sign * (hours * 3600 + minutes * 60);
	return end;
}

/* Local seconds since 1970 at which the rule strikes in a year. */
static int64_t
zone_rule_seconds(const struct zone_rule *rule, int year)
{
	struct tm tm = {.tm_year = year - 1900, .tm_mon = rule->month - 1, .tm_mday = 1};
	int64_t first = timegm(&tm);
	int weekday = tm.tm_wday, day, length;

	day = 1 + (rule->day - weekday + 7) % 7 + (rule->week - 1) * 7;
	tm = (struct tm){.tm_year = year - 1900, .tm_mon = rule->month, .tm_mday = 1};
	length = (int)((timegm(&tm) - first) / 86400);
	while (day > length)
		day -= 7;
	return first + (day - 1) * INT64_C(86400) + rule->time;
}

static bool
zone_posix(const char *text, int64_t local_seconds, int *seconds)
{
	struct zone_rule start, end;
	int standard, summer;
	struct tm tm;
	time_t now = local_seconds;
	int64_t from, to;
	const char *at = zone_posix_name(text);

	if (at == NULL)
		return false;
	at = zone_posix_offset(at, &standard);
	*seconds = standard;
	if (*at == '\0')
		return true;
	at = zone_posix_name(at);
	if (at == NULL)
		return false;
	summer = standard + 3600;
	if (*at != ',' && *at != '\0')
		at = zone_posix_offset(at, &summer);
	at = zone_rule_parse(at, &start);
	if (at == NULL || zone_rule_parse(at, &end) == NULL || gmtime_r(&now, &tm) == NULL)
		return true;
	from = zone_rule_seconds(&start, tm.tm_year + 1900);
	to = zone_rule_seconds(&end, tm.tm_year + 1900);
	/* The hour that does not exist belongs to what was before, as in the table. */
	from += summer - standard;
	if (from < to ? local_seconds >= from && local_seconds < to
		      : local_seconds >= from || local_seconds < to)
		*seconds = summer;
	return true;
}

static bool
zone_lookup(const uint8_t *data, size_t size, int64_t local_seconds, int *seconds)
{
	struct zone_counts counts;
	const uint8_t *at = data, *types;
	size_t width = 4;
	uint32_t i;
	int offset, type = -1;

	if (!zone_header(at, size, &counts))
		return false;
	if (at[4] >= '2') {
		size_t skip = ZONE_HEADER + zone_block(&counts, 4);

		if (skip > size || !zone_header(data + skip, size - skip, &counts))
			return false;
		at = data + skip;
		width = 8;
	}
	at += ZONE_HEADER;
	if ((size_t)(data + size - at) < zone_block(&counts, width) || counts.type == 0)
		return false;
	types = at + counts.time * (width + 1);
	for (i = 0; i < counts.time; i++) {
		int64_t when =
		    width == 8 ? (int64_t)load_u64(at + i * 8) : (int32_t)load_u32(at + i * 4);
		int before = type < 0 ? 0 : type, after = at[counts.time * width + i];
		int32_t ahead_before, ahead_after;

		if ((uint32_t)after >= counts.type)
			return false;
		ahead_before = (int32_t)load_u32(types + before * 6);
		ahead_after = (int32_t)load_u32(types + after * 6);
		/* A local time that exists twice, or not at all, belongs to before. */
		if (when + (ahead_before > ahead_after ? ahead_before : ahead_after) >
		    local_seconds)
			break;
		type = after;
	}
	if (i == counts.time && width == 8) {
		const char *footer = (const char *)at + zone_block(&counts, width);
		const char *end = (const char *)data + size;
		char text[80];

		if (footer < end && *footer == '\n' && (size_t)(end - footer) < sizeof(text)) {
			snprintf(text, sizeof(text), "%.*s", (int)(end - footer - 2), footer + 1);
			if (text[0] != '\0' && zone_posix(text, local_seconds, seconds))
				return true;
		}
	}
	offset = (int32_t)load_u32(types + (type < 0 ? 0 : type) * 6);
	*seconds = offset;
	return true;
}

bool
value_zone_offset(struct slice text, int64_t local_seconds, int *seconds)
{
	char name[64];
	uint8_t *data;
	size_t size, i;
	bool is_found;

	if (text.size == 0 || text.size >= sizeof(name))
		return false;
	memcpy(name, text.data, text.size);
	name[text.size] = '\0';
	*seconds = 0;
	for (i = 0; i < sizeof(zone_aliases) / sizeof(zone_aliases[0]); i++) {
		if (strcmp(name, zone_aliases[i].abbreviation) == 0)
			snprintf(name, sizeof(name), "%s", zone_aliases[i].zone);
	}
	if (strcmp(name, "UTC") == 0 || strcmp(name, "GMT") == 0 || strcmp(name, "UT") == 0)
		return true;
	if (!zone_is_name(name))
		return false;
	data = malloc(ZONE_FILE_MAX);
	if (data == NULL)
		return false;
	size = zone_read(name, data);
	is_found = size > 0 && zone_lookup(data, size, local_seconds, seconds);
	free(data);
	for (i = 0; !is_found && i < sizeof(zone_fixed) / sizeof(zone_fixed[0]); i++) {
		if (strcmp(name, zone_fixed[i].zone) == 0) {
			*seconds = zone_fixed[i].hours * 3600;
			is_found = true;
		}
	}
	return is_found;
}
