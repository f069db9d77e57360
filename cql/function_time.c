/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of time and chance: now(), toDate(), floor(), uuid(), ... */
#include <inttypes.h>
#include "base/uuid.h"
#include "cql/function.h"
#include "cql/function_internal.h"
#include "cql/function_time.h"
#include "cql/type_internal.h"
#include "cql/value.h"
#include "cql/value_internal.h"

#define MS_PER_DAY INT64_C(86400000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_DAY (MS_PER_DAY * NS_PER_MS)

static int64_t
time_floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Milliseconds since 1970 of a timestamp, date or timeuuid. */
static int64_t
time_to_ms(const struct type *type, struct slice value)
{
	struct uuid uuid;

	switch (type->kind) {
	case TYPE_TIMEUUID:
		memcpy(uuid.bytes, value.data, sizeof(uuid.bytes));
		return uuid_unix_ms(&uuid);
	case TYPE_DATE:
		return ((int64_t)load_u32(value.data) - INT64_C(0x80000000)) * MS_PER_DAY;
	default:
		return type_load_signed(value);
	}
}

static int
time_put_ms(
    const struct type *type, int64_t ms, struct arena *arena, struct slice *out, struct error *err)
{
	if (type->kind == TYPE_DATE) {
		/* Towards zero, so that the last day of 1969 becomes 1970-01-01, as there. */
		int64_t days = ms / MS_PER_DAY;

		return value_put_integer(
		    (int64_t)(uint32_t)(days + INT64_C(0x80000000)), 4, arena, out, err);
	}
	return value_put_integer(ms, 8, arena, out, err);
}

int64_t
function_add_months(int64_t ms, int64_t months)
{
	int64_t days = time_floor_div(ms, MS_PER_DAY), rest = ms - days * MS_PER_DAY, year;
	int64_t total;
	int month, day, last;

	value_civil_from_days(days, &year, &month, &day);
	total = year * 12 + month - 1 + months;
	year = time_floor_div(total, 12);
	month = (int)(total - year * 12) + 1;
	/* The last day of the month where it has fewer days. */
	last = (int)(value_days_from_civil(
			 month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1) -
	    value_days_from_civil(year, month, 1));
	if (day > last)
		day = last;
	return value_days_from_civil(year, month, day) * MS_PER_DAY + rest;
}

/* ---- Now ----------------------------------------------------------------------------------- */

static int
time_now_uuid(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	uint8_t *bytes = value_alloc(arena, 16, err);

	(void)arguments;
	if (bytes == NULL)
		return -1;
	if (function->return_type->kind == TYPE_UUID)
		context->next_uuid(context->user, bytes);
	else
		context->next_timeuuid(context->user, bytes);
	*out = slice_of(bytes, 16);
	return 0;
}

static int
time_current(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	int64_t ms = time_floor_div(context->now_us, 1000);

	(void)arguments;
	if (function->return_type->kind == TYPE_TIME)
		return value_put_integer(
		    (ms - time_floor_div(ms, MS_PER_DAY) * MS_PER_DAY) * NS_PER_MS, 8, arena, out,
		    err);
	return time_put_ms(function->return_type, ms, arena, out, err);
}

/* ---- Conversions --------------------------------------------------------------------------- */

int
function_convert_time(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	(void)context;
	if (arguments[0].size == 0) {
		*out = slice_null;
		return 0;
	}
	return time_put_ms(function->return_type,
	    time_to_ms(function->argument_types[0], arguments[0]), arena, out, err);
}

static void
time_bound(uint64_t ticks, uint64_t low, uint8_t out[16])
{
	struct uuid uuid = uuid_from_time(ticks, low);

	memcpy(out, uuid.bytes, 16);
}

void
function_min_timeuuid(int64_t ms, uint8_t out[16])
{
	/* The low half is the least of all: its bytes are compared as signed ones. */
	time_bound(uuid_ticks_of_unix_us(ms * 1000), UINT64_C(0x8080808080808080), out);
}

void
function_max_timeuuid(int64_t ms, uint8_t out[16])
{
	time_bound(uuid_ticks_of_unix_us((ms + 1) * 1000) - 1, UINT64_C(0x7f7f7f7f7f7f7f7f), out);
}

static int
time_bound_uuid(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	uint8_t *bytes;

	(void)context;
	if (arguments[0].size == 0) {
		*out = slice_null;
		return 0;
	}
	bytes = value_alloc(arena, 16, err);
	if (bytes == NULL)
		return -1;
	if (function->name[1] == 'i')
		function_min_timeuuid(type_load_signed(arguments[0]), bytes);
	else
		function_max_timeuuid(type_load_signed(arguments[0]), bytes);
	*out = slice_of(bytes, 16);
	return 0;
}

/* ---- floor --------------------------------------------------------------------------------- */

/* start + n times the duration. */
static int64_t
time_floor_step(int64_t start, const struct duration *duration, int64_t n)
{
	return function_add_months(start, duration->months * n) + duration->days * n * MS_PER_DAY +
	    duration->nanoseconds / NS_PER_MS * n;
}

/* The last multiple of the duration after `start` that is not after `ms`. */
static int64_t
time_floor(int64_t ms, const struct duration *duration, int64_t start)
{
	int64_t low = 0, high, step;

	step = duration->days * MS_PER_DAY + duration->nanoseconds / NS_PER_MS;
	if (duration->months == 0)
		return step == 0 ? ms : ms - (ms - start) % step;
	/* Months are of unequal length: search, they have at least 28 days. */
	step += duration->months * 28 * MS_PER_DAY;
	high = (ms - start) / step + 1;
	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;

		if (time_floor_step(start, duration, middle) <= ms)
			low = middle;
		else
			high = middle - 1;
	}
	return time_floor_step(start, duration, low);
}

static int
time_fail_precision(
    const struct type *type, const struct duration *duration, const char *unit, struct error *err)
{
	struct buffer text;

	buffer_init(&text);
	value_print_duration(duration, &text);
	error_set(err, ERROR_INVALID,
	    "The floor %scannot be computed for the %.*s duration as precision is below 1 %s",
	    type->kind == TYPE_DATE ? "on date values " : "", (int)text.size,
	    text.size > 0 ? (const char *)text.data : "", unit);
	buffer_fini(&text);
	return -1;
}

static int
time_floor_function(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	const struct type *type = function->argument_types[0];
	struct duration duration;
	int64_t ms, start = 0;

	(void)context;
	if (arguments[0].size == 0 || (function->argument_count > 2 && arguments[2].size == 0)) {
		*out = slice_null;
		return 0;
	}
	if (value_decode_duration(arguments[1], &duration, err) != 0)
		return -1;
	ms = time_to_ms(type, arguments[0]);
	if (function->argument_count > 2)
		start = time_to_ms(function->argument_types[2], arguments[2]);
	if (type->kind == TYPE_DATE && duration.nanoseconds != 0)
		return time_fail_precision(type, &duration, "day", err);
	if (duration.nanoseconds % NS_PER_MS != 0)
		return time_fail_precision(type, &duration, "millisecond", err);
	if (start > ms)
		return error_set(err, ERROR_INVALID,
		    "The floor function starting time is greater than the provided time");
	if (duration.months < 0 || duration.days < 0 || duration.nanoseconds < 0)
		return error_set(err, ERROR_INVALID,
		    "Negative durations are not supported by the floor function");
	return time_put_ms(
	    function->return_type, time_floor(ms, &duration, start), arena, out, err);
}

static int
time_floor_of_day(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	struct duration duration;
	int64_t ns;

	(void)function;
	(void)context;
	if (value_decode_duration(arguments[1], &duration, err) != 0)
		return -1;
	if (duration.months != 0 || duration.days != 0 || duration.nanoseconds > NS_PER_DAY)
		return error_set(err, ERROR_INVALID,
		    "For time values, the floor can only be computed for durations smaller that a "
		    "day");
	if (duration.nanoseconds < 0)
		return error_set(err, ERROR_INVALID,
		    "Negative durations are not supported by the floor function");
	ns = type_load_signed(arguments[0]);
	if (duration.nanoseconds > 0)
		ns -= ns % duration.nanoseconds;
	return value_put_integer(ns, 8, arena, out, err);
}

/* ---- The list ------------------------------------------------------------------------------ */

enum { NONE = -1 };

static const struct {
	const char *camel; /* lower case, the name that is shown */
	const char *snake; /* its name since 5.0 */
	int return_kind;
	function_execute_fn execute;
	int arguments[3];
	bool is_impure;
} time_functions[] = {
    {"now", NULL, TYPE_TIMEUUID, time_now_uuid, {NONE, NONE, NONE}, true},
    {"uuid", NULL, TYPE_UUID, time_now_uuid, {NONE, NONE, NONE}, true},
    {"currenttimeuuid", "current_timeuuid", TYPE_TIMEUUID, time_now_uuid, {NONE, NONE, NONE}, true},
    {"currenttimestamp", "current_timestamp", TYPE_TIMESTAMP, time_current, {NONE, NONE, NONE},
	true},
    {"currentdate", "current_date", TYPE_DATE, time_current, {NONE, NONE, NONE}, true},
    {"currenttime", "current_time", TYPE_TIME, time_current, {NONE, NONE, NONE}, true},
    {"mintimeuuid", "min_timeuuid", TYPE_TIMEUUID, time_bound_uuid, {TYPE_TIMESTAMP, NONE, NONE},
	false},
    {"maxtimeuuid", "max_timeuuid", TYPE_TIMEUUID, time_bound_uuid, {TYPE_TIMESTAMP, NONE, NONE},
	false},
    {"dateof", NULL, TYPE_TIMESTAMP, function_convert_time, {TYPE_TIMEUUID, NONE, NONE}, false},
    {"unixtimestampof", NULL, TYPE_BIGINT, function_convert_time, {TYPE_TIMEUUID, NONE, NONE},
	false},
    {"todate", "to_date", TYPE_DATE, function_convert_time, {TYPE_TIMEUUID, NONE, NONE}, false},
    {"todate", "to_date", TYPE_DATE, function_convert_time, {TYPE_TIMESTAMP, NONE, NONE}, false},
    {"totimestamp", "to_timestamp", TYPE_TIMESTAMP, function_convert_time,
	{TYPE_TIMEUUID, NONE, NONE}, false},
    {"totimestamp", "to_timestamp", TYPE_TIMESTAMP, function_convert_time, {TYPE_DATE, NONE, NONE},
	false},
    {"tounixtimestamp", "to_unix_timestamp", TYPE_BIGINT, function_convert_time,
	{TYPE_TIMEUUID, NONE, NONE}, false},
    {"tounixtimestamp", "to_unix_timestamp", TYPE_BIGINT, function_convert_time,
	{TYPE_TIMESTAMP, NONE, NONE}, false},
    {"tounixtimestamp", "to_unix_timestamp", TYPE_BIGINT, function_convert_time,
	{TYPE_DATE, NONE, NONE}, false},
    {"floor", NULL, TYPE_TIMESTAMP, time_floor_function, {TYPE_TIMESTAMP, TYPE_DURATION, NONE},
	false},
    {"floor", NULL, TYPE_TIMESTAMP, time_floor_function,
	{TYPE_TIMESTAMP, TYPE_DURATION, TYPE_TIMESTAMP}, false},
    {"floor", NULL, TYPE_TIMESTAMP, time_floor_function, {TYPE_TIMEUUID, TYPE_DURATION, NONE},
	false},
    {"floor", NULL, TYPE_TIMESTAMP, time_floor_function,
	{TYPE_TIMEUUID, TYPE_DURATION, TYPE_TIMESTAMP}, false},
    {"floor", NULL, TYPE_DATE, time_floor_function, {TYPE_DATE, TYPE_DURATION, NONE}, false},
    {"floor", NULL, TYPE_DATE, time_floor_function, {TYPE_DATE, TYPE_DURATION, TYPE_DATE}, false},
    {"floor", NULL, TYPE_TIME, time_floor_of_day, {TYPE_TIME, TYPE_DURATION, NONE}, false},
};

void
function_time_find(struct slice name, struct function_list *list)
{
	size_t i;

	for (i = 0; i < sizeof(time_functions) / sizeof(time_functions[0]); i++) {
		struct function *function;

		if (!function_name_is(name, time_functions[i].camel, time_functions[i].snake))
			continue;
		function = function_list_add_native(list, time_functions[i].camel,
		    time_functions[i].return_kind, time_functions[i].execute,
		    time_functions[i].arguments[0], time_functions[i].arguments[1],
		    time_functions[i].arguments[2]);
		if (function != NULL)
			function->is_pure = !time_functions[i].is_impure;
	}
}
