/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps, dates, times and durations as text. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include "cql/value.h"
#include "cql/value_internal.h"
#include "cql/value_zone.h"

enum { MS_PER_DAY = 86400000, SECONDS_PER_DAY = 86400 };

#define NS_PER_SECOND INT64_C(1000000000)
#define NS_PER_DAY (SECONDS_PER_DAY * NS_PER_SECOND)

/* ---- The calendar -------------------------------------------------------------------------- */

int64_t
value_days_from_civil(int64_t year, int month, int day)
{
	int64_t era, year_of_era, day_of_year;

	/* Years begin in March, so that the leap day is the last one. */
	year -= month <= 2;
	era = (year >= 0 ? year : year - 399) / 400;
	year_of_era = year - era * 400;
	day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	    day_of_year - 719468;
}

void
value_civil_from_days(int64_t days, int64_t *year, int *month, int *day)
{
	int64_t era, day_of_era, year_of_era, day_of_year, shifted;

	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	day_of_era = days - era * 146097;
	year_of_era =
	    (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	shifted = (5 * day_of_year + 2) / 153;
	*day = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
	*month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
	*year = year_of_era + era * 400 + (*month <= 2);
}

static int
value_month_days(int64_t year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month == 2 && is_leap ? 29 : days[month - 1];
}

/* ---- Reading pieces ------------------------------------------------------------------------ */

struct time_text {
	const char *at;
	const char *end;
};

static bool
time_text_take(struct time_text *text, char c)
{
	if (text->at == text->end || *text->at != c)
		return false;
	text->at++;
	return true;
}

/* A number of `min` to `max` digits (at most 9). */
static bool
time_text_number(struct time_text *text, int min, int max, int *out)
{
	int digits = 0, number = 0;

	while (digits < max && text->at < text->end && isdigit((uint8_t)*text->at)) {
		number = number * 10 + (*text->at++ - '0');
		digits++;
	}
	*out = number;
	return digits >= min;
}

/* Up to nine digits as nanoseconds; how many there were. */
static int
time_text_fraction(struct time_text *text, int64_t *ns)
{
	int digits = 0;
	int64_t number = 0;
	int i;

	while (digits < 9 && text->at < text->end && isdigit((uint8_t)*text->at)) {
		number = number * 10 + (*text->at++ - '0');
		digits++;
	}
	for (i = digits; i < 9; i++)
		number *= 10;
	*ns = number;
	return digits;
}

/* ---- Timestamps ---------------------------------------------------------------------------- */

/* Hours, minutes, seconds and a fraction of up to nine digits; hours and the others may have any
 * number of digits. 24:00 is midnight of the next day. */
static bool
timestamp_parse_time(struct time_text *text, int64_t *ms)
{
	int hour, minute, second = 0;
	int64_t ns = 0;

	if (!time_text_number(text, 1, 9, &hour) || !time_text_take(text, ':') ||
	    !time_text_number(text, 1, 9, &minute))
		return false;
	if (time_text_take(text, ':')) {
		if (!time_text_number(text, 1, 9, &second))
			return false;
		if (time_text_take(text, '.'))
			time_text_fraction(text, &ns);
	}
	if (hour > 24 || minute > 59 || second > 59 ||
	    (hour == 24 && (minute != 0 || second != 0 || ns != 0)))
		return false;
	*ms = ((hour * 60 + minute) * 60 + second) * INT64_C(1000) + ns / 1000000;
	return true;
}

/* +hh, +hhmm, +hh:mm, +hh:mm:ss and the same with a minus; at most 18 hours. */
static bool
timestamp_parse_offset(struct time_text *text, int *seconds)
{
	int sign = *text->at == '-' ? -1 : 1;
	int hour, minute = 0, second = 0;
	bool has_colon = false;

	text->at++;
	if (!time_text_number(text, 2, 2, &hour))
		return false;
	if (text->at < text->end) {
		has_colon = time_text_take(text, ':');
		if (!time_text_number(text, 2, 2, &minute))
			return false;
	}
	if (has_colon && time_text_take(text, ':') && !time_text_number(text, 2, 2, &second))
		return false;
	*seconds = (hour * 60 + minute) * 60 + second;
	if (minute > 59 || second > 59 || *seconds > 18 * 3600)
		return false;
	*seconds *= sign;
	return text->at == text->end;
}

/* What stands behind date and time. Names of zones need a blank in front. */
static bool
timestamp_parse_zone(struct time_text *text, int64_t local_seconds, int *seconds)
{
	bool has_blank = time_text_take(text, ' ');

	*seconds = 0;
	if (text->at == text->end)
		return !has_blank;
	if (*text->at == 'Z' && text->end - text->at == 1)
		return true;
	if (*text->at == '+' || *text->at == '-')
		return timestamp_parse_offset(text, seconds);
	if (!has_blank)
		return false;
	/* UTC+01:00, with the colon only. */
	if (text->end - text->at == 9 && memcmp(text->at, "UTC", 3) == 0 && text->at[6] == ':') {
		text->at += 3;
		return timestamp_parse_offset(text, seconds);
	}
	return value_zone_offset(
	    slice_of(text->at, (size_t)(text->end - text->at)), local_seconds, seconds);
}

/*
 * A date alone has four digits of a year, perhaps a minus, and two of month and day. With a zone or a
 * time behind it there are no years before 1, and with a time any number of digits will do.
 */
static bool
timestamp_parse_text(struct slice input, int64_t *ms)
{
	struct time_text text = {(const char *)input.data, (const char *)input.data + input.size};
	bool is_negative = time_text_take(&text, '-'), is_strict, has_time = false;
	const char *start = text.at;
	int year, month, day, offset;
	int64_t time_ms = 0, days;

	if (!time_text_number(&text, 1, 9, &year) || !time_text_take(&text, '-') ||
	    !time_text_number(&text, 1, 9, &month) || !time_text_take(&text, '-') ||
	    !time_text_number(&text, 1, 9, &day) || month < 1 || month > 12 || day < 1 || day > 31)
		return false;
	is_strict = text.at - start == 10 && start[4] == '-' && start[7] == '-';
	/* The 30th of February is its last day. */
	if (day > value_month_days(year, month))
		day = value_month_days(year, month);
	days = value_days_from_civil(is_negative ? -year : year, month, day);
	if (text.at == text.end) {
		*ms = days * MS_PER_DAY;
		return is_strict;
	}
	if (*text.at == 'T' ||
	    (*text.at == ' ' && text.at + 1 < text.end && isdigit((uint8_t)text.at[1]))) {
		text.at++;
		has_time = true;
		if (!timestamp_parse_time(&text, &time_ms))
			return false;
	}
	if (is_negative || year == 0 || (!is_strict && !has_time))
		return false;
	*ms = days * MS_PER_DAY + time_ms;
	if (!timestamp_parse_zone(&text, days * SECONDS_PER_DAY + time_ms / 1000, &offset))
		return false;
	*ms -= offset * INT64_C(1000);
	return true;
}

static bool
time_is_integer(struct slice text)
{
	size_t i = text.size > 0 && text.data[0] == '-';

	if (i == text.size)
		return false;
	for (; i < text.size; i++) {
		if (!isdigit(text.data[i]))
			return false;
	}
	return true;
}

int
value_parse_timestamp(struct slice text, int64_t now_ms, int64_t *ms, struct error *err)
{
	if (text.size == 3 && strncasecmp((const char *)text.data, "now", 3) == 0) {
		*ms = now_ms;
		return 0;
	}
	if (time_is_integer(text)) {
		if (value_text_to_integer(text, INT64_MIN, INT64_MAX, ms))
			return 0;
		return error_set(err, ERROR_INVALID, "Unable to make long (for date) from: '%.*s'",
		    VALUE_ARGS(text));
	}
	if (timestamp_parse_text(text, ms))
		return 0;
	return error_set(
	    err, ERROR_INVALID, "Unable to parse a date/time from '%.*s'", VALUE_ARGS(text));
}

/* Floor division of a time into days and the rest. */
static int64_t
time_split(int64_t value, int64_t unit, int64_t *rest)
{
	int64_t whole = value / unit;

	*rest = value % unit;
	if (*rest < 0) {
		*rest += unit;
		whole--;
	}
	return whole;
}

void
value_print_timestamp_separated(int64_t ms, char separator, struct buffer *out)
{
	int64_t rest, year, days = time_split(ms, MS_PER_DAY, &rest);
	int month, day;

	value_civil_from_days(days, &year, &month, &day);
	/* The year of the era, as the formatter's "yyyy" is; no era is shown. */
	if (year <= 0)
		year = 1 - year;
	if (year > 9999)
		buffer_put_u8(out, '+');
	buffer_printf(out, "%04" PRId64 "-%02d-%02d%c%02d:%02d:%02d.%03dZ", year, month, day,
	    separator, (int)(rest / 3600000), (int)(rest / 60000 % 60), (int)(rest / 1000 % 60),
	    (int)(rest % 1000));
}

void
value_print_timestamp(int64_t ms, struct buffer *out)
{
	value_print_timestamp_separated(ms, ' ', out);
}

/* ---- Dates --------------------------------------------------------------------------------- */

/* ISO_LOCAL_DATE: four digits of a year, or more with a sign. */
static bool
date_parse_text(struct slice input, int64_t *days)
{
	struct time_text text = {(const char *)input.data, (const char *)input.data + input.size};
	bool is_negative = time_text_take(&text, '-');
	bool has_plus = !is_negative && time_text_take(&text, '+');
	const char *start = text.at;
	int year, month, day;
	size_t digits;

	if (!time_text_number(&text, 4, 9, &year))
		return false;
	digits = (size_t)(text.at - start);
	if (has_plus ? digits <= 4 : (digits > 4 && (!is_negative || *start == '0')))
		return false;
	if (!time_text_take(&text, '-') || !time_text_number(&text, 2, 2, &month) ||
	    !time_text_take(&text, '-') || !time_text_number(&text, 2, 2, &day) ||
	    text.at != text.end || month < 1 || month > 12)
		return false;
	if (is_negative)
		year = -year;
	if (day < 1 || day > value_month_days(year, month))
		return false;
	*days = value_days_from_civil(year, month, day);
	return true;
}

int
value_parse_date(struct slice text, uint32_t *days, struct error *err)
{
	int64_t number;

	if (time_is_integer(text)) {
		if (!value_text_to_integer(text, 0, UINT32_MAX, &number))
			return error_set(err, ERROR_INVALID,
			    "Unable to make unsigned int (for date) from: '%.*s'",
			    VALUE_ARGS(text));
		*days = (uint32_t)number;
		return 0;
	}
	if (!date_parse_text(text, &number))
		return error_set(err, ERROR_INVALID,
		    "Unable to coerce '%.*s' to a formatted date (long)", VALUE_ARGS(text));
	if (number < INT32_MIN)
		return error_set(err, ERROR_INVALID,
		    "Input date %.*s is less than min supported date -5877641-06-23T00:00Z",
		    VALUE_ARGS(text));
	if (number > INT32_MAX)
		return error_set(err, ERROR_INVALID,
		    "Input date %.*s is greater than max supported date +5881580-07-11T00:00Z",
		    VALUE_ARGS(text));
	*days = (uint32_t)number ^ UINT32_C(0x80000000);
	return 0;
}

void
value_print_date(uint32_t days, struct buffer *out)
{
	int64_t year;
	int month, day;

	value_civil_from_days((int32_t)(days ^ UINT32_C(0x80000000)), &year, &month, &day);
	if (year > 9999)
		buffer_put_u8(out, '+');
	else if (year < 0)
		buffer_put_u8(out, '-');
	buffer_printf(out, "%04" PRId64 "-%02d-%02d", year < 0 ? -year : year, month, day);
}

/* ---- Times --------------------------------------------------------------------------------- */

static bool
time_parse_text(struct slice input, int64_t *ns)
{
	struct time_text text = {(const char *)input.data, (const char *)input.data + input.size};
	int hour, minute, second;
	int64_t fraction = 0;

	if (!time_text_number(&text, 1, 9, &hour) || !time_text_take(&text, ':') ||
	    !time_text_number(&text, 1, 9, &minute) || !time_text_take(&text, ':') ||
	    !time_text_number(&text, 1, 9, &second))
		return false;
	if (time_text_take(&text, '.') && time_text_fraction(&text, &fraction) == 0)
		return false;
	if (text.at != text.end || hour > 23 || minute > 59 || second > 59)
		return false;
	*ns = ((hour * 60 + minute) * 60 + second) * NS_PER_SECOND + fraction;
	return true;
}

int
value_parse_time(struct slice text, int64_t *ns, struct error *err)
{
	if (time_is_integer(text)) {
		if (value_text_to_integer(text, 0, NS_PER_DAY - 1, ns))
			return 0;
		return error_set(err, ERROR_INVALID, "Unable to make long (for time) from: '%.*s'",
		    VALUE_ARGS(text));
	}
	if (time_parse_text(text, ns))
		return 0;
	return error_set(err, ERROR_INVALID,
	    "(TimeType) Unable to coerce '%.*s' to a formatted time (long)", VALUE_ARGS(text));
}

void
value_print_time(int64_t ns, struct buffer *out)
{
	int64_t seconds = ns / NS_PER_SECOND;

	buffer_printf(out, "%02d:%02d:%02d.%09d", (int)(seconds / 3600), (int)(seconds / 60 % 60),
	    (int)(seconds % 60), (int)(ns % NS_PER_SECOND));
}

/* ---- Durations ----------------------------------------------------------------------------- */

/* In the order in which they may stand; the index counts from 1. */
struct duration_unit {
	const char *symbol; /* lower case */
	const char *name;
	int months;
	int days;
	int64_t nanoseconds;
};

static const struct duration_unit duration_units[] = {
    {"y", "years", 12, 0, 0},
    {"mo", "months", 1, 0, 0},
    {"w", "weeks", 0, 7, 0},
    {"d", "days", 0, 1, 0},
    {"h", "hours", 0, 0, 3600 * NS_PER_SECOND},
    {"m", "minutes", 0, 0, 60 * NS_PER_SECOND},
    {"s", "seconds", 0, 0, NS_PER_SECOND},
    {"ms", "milliseconds", 0, 0, 1000000},
    {"us", "microseconds", 0, 0, 1000},
    {"ns", "nanoseconds", 0, 0, 1},
};

enum {
	UNIT_YEARS,
	UNIT_MONTHS,
	UNIT_WEEKS,
	UNIT_DAYS,
	UNIT_HOURS,
	UNIT_MINUTES,
	UNIT_SECONDS,
	UNIT_COUNT = sizeof(duration_units) / sizeof(duration_units[0]),
};

struct duration_builder {
	int64_t months;
	int64_t days;
	int64_t nanoseconds;
	int last; /* unit, -1 */
	struct error *err;
};

static int
duration_fail_total(struct duration_builder *builder, const char *name, int64_t max)
{
	return error_set(builder->err, ERROR_INVALID,
	    "Invalid duration. The total number of %s must be less or equal to %" PRId64, name,
	    max);
}

static int
duration_add(struct duration_builder *builder, int unit, int64_t number)
{
	const struct duration_unit *info = &duration_units[unit];
	int64_t amount;

	if (unit == builder->last)
		return error_set(builder->err, ERROR_INVALID,
		    "Invalid duration. The %s are specified multiple times", info->name);
	if (unit < builder->last)
		return error_set(builder->err, ERROR_INVALID,
		    "Invalid duration. The %s should be after %s",
		    duration_units[builder->last].name, info->name);
	builder->last = unit;
	if (info->months != 0) {
		if (__builtin_mul_overflow(number, info->months, &amount) ||
		    __builtin_add_overflow(builder->months, amount, &builder->months) ||
		    builder->months > INT32_MAX)
			return duration_fail_total(builder, "months", INT32_MAX);
	} else if (info->days != 0) {
		if (__builtin_mul_overflow(number, info->days, &amount) ||
		    __builtin_add_overflow(builder->days, amount, &builder->days) ||
		    builder->days > INT32_MAX)
			return duration_fail_total(builder, "days", INT32_MAX);
	} else if (__builtin_mul_overflow(number, info->nanoseconds, &amount) ||
	    __builtin_add_overflow(builder->nanoseconds, amount, &builder->nanoseconds)) {
		return duration_fail_total(builder, "nanoseconds", INT64_MAX);
	}
	return 0;
}

static int
duration_fail(struct slice text, struct error *err)
{
	return error_set(
	    err, ERROR_INVALID, "Unable to convert '%.*s' to a duration", VALUE_ARGS(text));
}

/* Digits; false when there are none or they do not fit. */
static bool
duration_number(struct time_text *text, int64_t *out)
{
	const char *start = text->at;

	while (text->at < text->end && isdigit((uint8_t)*text->at))
		text->at++;
	return value_text_to_integer(
	    slice_of(start, (size_t)(text->at - start)), 0, INT64_MAX, out);
}

/* The longest symbol that stands here. */
static int
duration_unit_at(struct time_text *text)
{
	size_t left = (size_t)(text->end - text->at), best_length = 0;
	int best = -1, i;

	/* U+00B5 as the micro sign. */
	if (left >= 3 && memcmp(text->at, "\xc2\xb5", 2) == 0 && (text->at[2] | 0x20) == 's') {
		text->at += 3;
		return 8;
	}
	for (i = 0; i < UNIT_COUNT; i++) {
		size_t length = strlen(duration_units[i].symbol);

		if (length > best_length && length <= left &&
		    strncasecmp(text->at, duration_units[i].symbol, length) == 0) {
			best = i;
			best_length = length;
		}
	}
	text->at += best_length;
	return best;
}

/* 1y2mo3w4d5h6m7s8ms9us10ns */
static int
duration_parse_plain(struct time_text *text, struct slice whole, struct duration_builder *builder)
{
	if (text->at == text->end)
		return duration_fail(whole, builder->err);
	while (text->at < text->end) {
		int64_t number;
		int unit;

		if (!duration_number(text, &number))
			return duration_fail(whole, builder->err);
		unit = duration_unit_at(text);
		if (unit < 0)
			return duration_fail(whole, builder->err);
		if (duration_add(builder, unit, number) != 0)
			return -1;
	}
	return 0;
}

/* P0001-02-03T04:05:06, after the P. */
static bool
duration_parse_alternative(struct time_text *text, struct duration_builder *builder, int *rc)
{
	static const int widths[] = {4, 2, 2, 2, 2, 2};
	static const char separators[] = "--T::";
	static const int units[] = {
	    UNIT_YEARS, UNIT_MONTHS, UNIT_DAYS, UNIT_HOURS, UNIT_MINUTES, UNIT_SECONDS};
	int numbers[6], i;

	if (text->end - text->at != 19)
		return false;
	for (i = 0; i < 6; i++) {
		if (i > 0 && !time_text_take(text, separators[i - 1]))
			return false;
		if (!time_text_number(text, widths[i], widths[i], &numbers[i]))
			return false;
	}
	for (i = 0, *rc = 0; i < 6 && *rc == 0; i++)
		*rc = duration_add(builder, units[i], numbers[i]);
	return true;
}

/* P1Y2M3DT4H5M6S or P4W, after the P. */
static int
duration_parse_iso(struct time_text *text, struct slice whole, struct duration_builder *builder)
{
	bool in_time = false;

	while (text->at < text->end) {
		static const char letters[] = "YMD";
		static const char time_letters[] = "HMS";
		const char *set, *found;
		int64_t number;
		int unit;

		if (!in_time && time_text_take(text, 'T')) {
			in_time = true;
			continue;
		}
		if (!duration_number(text, &number) || text->at == text->end)
			return duration_fail(whole, builder->err);
		/* Weeks stand alone. */
		if (*text->at == 'W' && text->at + 1 == text->end && builder->last < 0 &&
		    !in_time) {
			text->at++;
			return duration_add(builder, UNIT_WEEKS, number);
		}
		set = in_time ? time_letters : letters;
		found = memchr(set, *text->at, 3);
		if (found == NULL)
			return duration_fail(whole, builder->err);
		text->at++;
		unit = in_time      ? UNIT_HOURS + (int)(found - set)
		    : *found == 'D' ? UNIT_DAYS
				    : UNIT_YEARS + (int)(found - set);
		/* Out of order is no ISO form at all. */
		if (unit <= builder->last)
			return duration_fail(whole, builder->err);
		if (duration_add(builder, unit, number) != 0)
			return -1;
	}
	return 0;
}

int
value_parse_duration(struct slice input, struct duration *out, struct error *err)
{
	struct time_text text = {(const char *)input.data, (const char *)input.data + input.size};
	struct duration_builder builder = {.last = -1, .err = err};
	bool is_negative = time_text_take(&text, '-');
	int rc;

	/* Error texts show it without the sign. */
	if (is_negative)
		input = slice_of(input.data + 1, input.size - 1);
	if (time_text_take(&text, 'P')) {
		struct time_text again = text;

		if (!duration_parse_alternative(&again, &builder, &rc))
			rc = duration_parse_iso(&text, input, &builder);
	} else {
		rc = duration_parse_plain(&text, input, &builder);
	}
	if (rc != 0)
		return -1;
	out->months = (int32_t)(is_negative ? -builder.months : builder.months);
	out->days = (int32_t)(is_negative ? -builder.days : builder.days);
	out->nanoseconds = is_negative ? -builder.nanoseconds : builder.nanoseconds;
	return 0;
}

int
value_decode_duration(struct slice value, struct duration *out, struct error *err)
{
	struct reader reader = reader_of(value);

	if (type_validate(type_native(TYPE_DURATION), value, err) != 0)
		return -1;
	out->months = (int32_t)reader_signed_vint(&reader);
	out->days = (int32_t)reader_signed_vint(&reader);
	out->nanoseconds = reader_signed_vint(&reader);
	return 0;
}

void
value_encode_duration(const struct duration *duration, struct buffer *out)
{
	buffer_put_signed_vint(out, duration->months);
	buffer_put_signed_vint(out, duration->days);
	buffer_put_signed_vint(out, duration->nanoseconds);
}

static void
duration_print_part(uint64_t *left, uint64_t unit, const char *symbol, struct buffer *out)
{
	if (*left >= unit)
		buffer_printf(out, "%" PRIu64 "%s", *left / unit, symbol);
	*left %= unit;
}

static uint64_t
duration_magnitude(int64_t number)
{
	return number < 0 ? -(uint64_t)number : (uint64_t)number;
}

void
value_print_duration(const struct duration *duration, struct buffer *out)
{
	uint64_t months = duration_magnitude(duration->months);
	uint64_t days = duration_magnitude(duration->days);
	uint64_t ns = duration_magnitude(duration->nanoseconds);

	if (duration->months < 0 || duration->days < 0 || duration->nanoseconds < 0)
		buffer_put_u8(out, '-');
	duration_print_part(&months, 12, "y", out);
	duration_print_part(&months, 1, "mo", out);
	duration_print_part(&days, 1, "d", out);
	duration_print_part(&ns, 3600 * (uint64_t)NS_PER_SECOND, "h", out);
	duration_print_part(&ns, 60 * (uint64_t)NS_PER_SECOND, "m", out);
	duration_print_part(&ns, NS_PER_SECOND, "s", out);
	duration_print_part(&ns, 1000000, "ms", out);
	duration_print_part(&ns, 1000, "us", out);
	duration_print_part(&ns, 1, "ns", out);
}
