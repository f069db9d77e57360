/* SPDX-License-Identifier: Apache-2.0 */
/* + - * / % and unary minus over all numbers, and on dates (OperationFcts). */
#include <math.h>
#include <stdio.h>
#include "cql/function.h"
#include "cql/function_internal.h"
#include "cql/function_number.h"
#include "cql/function_time.h"
#include "cql/type_internal.h"
#include "cql/value.h"
#include "cql/value_internal.h"

static const enum type_kind operator_kinds[] = {TYPE_TINYINT, TYPE_SMALLINT, TYPE_INT, TYPE_BIGINT,
    TYPE_COUNTER, TYPE_FLOAT, TYPE_DOUBLE, TYPE_VARINT, TYPE_DECIMAL};

enum {
	OPERATOR_KINDS = sizeof(operator_kinds) / sizeof(operator_kinds[0]),
	OPERATOR_BIG = 1000, /* "size" of varint and decimal */
};

static const struct {
	char symbol;
	const char *name;
} operator_names[] = {
    {'+', "_add"},
    {'-', "_substract"},
    {'*', "_multiply"},
    {'/', "_divide"},
    {'%', "_modulo"},
    {'n', "_negate"},
};

static char
operator_symbol(const struct function *function)
{
	size_t i;

	for (i = 0; i < sizeof(operator_names) / sizeof(operator_names[0]); i++) {
		if (operator_names[i].name == function->name)
			return operator_names[i].symbol;
	}
	return '?';
}

static int
operator_size(enum type_kind kind)
{
	switch (kind) {
	case TYPE_TINYINT:
		return 1;
	case TYPE_SMALLINT:
		return 2;
	case TYPE_INT:
	case TYPE_FLOAT:
		return 4;
	case TYPE_VARINT:
	case TYPE_DECIMAL:
		return OPERATOR_BIG;
	default:
		return 8;
	}
}

static bool
operator_is_floating(enum type_kind kind)
{
	return kind == TYPE_FLOAT || kind == TYPE_DOUBLE || kind == TYPE_DECIMAL;
}

/* The wider of the two sizes; floating when one of them is. */
static enum type_kind
operator_result(enum type_kind left, enum type_kind right)
{
	int a = operator_size(left), b = operator_size(right);
	int size = a > b ? a : b;

	if (operator_is_floating(left) || operator_is_floating(right))
		return size == 4 ? TYPE_FLOAT : size <= 8 ? TYPE_DOUBLE : TYPE_DECIMAL;
	switch (size) {
	case 1:
		return TYPE_TINYINT;
	case 2:
		return TYPE_SMALLINT;
	case 4:
		return TYPE_INT;
	case 8:
		return TYPE_BIGINT;
	default:
		return TYPE_VARINT;
	}
}

/* "the operation 'int / int' failed: / by zero" */
static int
operator_fail(
    const struct function *function, const char *why, struct arena *arena, struct error *err)
{
	const char *left = type_name(arena, function->argument_types[0]);
	const char *right =
	    function->argument_count > 1 ? type_name(arena, function->argument_types[1]) : "";

	error_set(err, ERROR_FUNCTION_FAILURE, "the operation '%s %c %s' failed: %s", left,
	    operator_symbol(function), right, why);
	if (err != NULL) {
		snprintf(err->keyspace, sizeof(err->keyspace), "system");
		snprintf(err->table, sizeof(err->table), "%s", function->name);
		snprintf(err->arguments, sizeof(err->arguments), "%s,%s", left, right);
	}
	return -1;
}

static int
operator_integer(const struct function *function, const struct slice *arguments, size_t size,
    struct arena *arena, struct slice *out, struct error *err)
{
	/* Unsigned, so that overflow wraps as in Java. */
	uint64_t a = (uint64_t)type_load_signed(arguments[0]);
	uint64_t b = (uint64_t)type_load_signed(arguments[1]);
	char symbol = operator_symbol(function);
	uint64_t result;

	switch (symbol) {
	case '+':
		result = a + b;
		break;
	case '-':
		result = a - b;
		break;
	case '*':
		result = a * b;
		break;
	default:
		if (b == 0)
			return operator_fail(function, "/ by zero", arena, err);
		if (b == UINT64_MAX)
			result = symbol == '/' ? -a : 0;
		else if (symbol == '/')
			result = (uint64_t)((int64_t)a / (int64_t)b);
		else
			result = (uint64_t)((int64_t)a % (int64_t)b);
		break;
	}
	return value_put_integer((int64_t)result, size, arena, out, err);
}

static double
operator_compute_double(char symbol, double a, double b)
{
	switch (symbol) {
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '*':
		return a * b;
	case '/':
		return a / b;
	default:
		return fmod(a, b);
	}
}

static float
operator_compute_float(char symbol, float a, float b)
{
	switch (symbol) {
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '*':
		return a * b;
	case '/':
		return a / b;
	default:
		return fmodf(a, b);
	}
}

/* ---- Big numbers --------------------------------------------------------------------------- */

/* Quotient scale: 32 significant digits at least, at least the scale of either side, 1000 at most. */
enum { OPERATOR_MIN_SCALE = 32, OPERATOR_MAX_SCALE = 1000 };

static int
operator_decimal_divide(struct function_number *a, struct function_number *b)
{
	int64_t first = (function_bn_digits(a->unscaled) - a->scale) -
	    (function_bn_digits(b->unscaled) - b->scale);
	int64_t scale = OPERATOR_MIN_SCALE - first;
	BIGNUM *quotient;

	if (scale < a->scale)
		scale = a->scale;
	if (scale < b->scale)
		scale = b->scale;
	if (scale < OPERATOR_MIN_SCALE)
		scale = OPERATOR_MIN_SCALE;
	if (scale > OPERATOR_MAX_SCALE)
		scale = OPERATOR_MAX_SCALE;
	quotient = function_bn_divide(a, b, scale, false);
	if (quotient == NULL)
		return -1;
	BN_free(a->unscaled);
	a->unscaled = quotient;
	a->scale = scale;
	function_number_strip(a);
	return 0;
}

/* Bring both to the larger scale. */
static int
operator_align(struct function_number *a, struct function_number *b)
{
	int64_t scale = a->scale > b->scale ? a->scale : b->scale;

	if (function_bn_scale(a->unscaled, scale - a->scale) != 0 ||
	    function_bn_scale(b->unscaled, scale - b->scale) != 0)
		return -1;
	a->scale = b->scale = scale;
	return 0;
}

/*
 * BigDecimal.remainder: a - (a divided to an integer) * b. Its scale is that of `a`, or larger when
 * the integer quotient, which loses zeros at its end, does not reach a smaller one.
 */
static int
operator_decimal_modulo(struct function_number *a, struct function_number *b, BN_CTX *context)
{
	int64_t a_scale = a->scale, b_scale = b->scale, wanted;
	BIGNUM *quotient = BN_new();
	int rc = -1;

	if (quotient == NULL || operator_align(a, b) != 0 ||
	    !BN_div(quotient, a->unscaled, a->unscaled, b->unscaled, context))
		goto done;
	wanted = a_scale;
	if (a_scale < b_scale && !BN_is_zero(quotient)) {
		wanted = b_scale;
		while (wanted > a_scale && BN_div_word(quotient, 10) == 0)
			wanted--;
	}
	for (; a->scale > wanted; a->scale--)
		BN_div_word(a->unscaled, 10);
	rc = 0;
done:
	BN_free(quotient);
	return rc;
}

static int
operator_big_compute(
    char symbol, bool is_decimal, struct function_number *a, struct function_number *b)
{
	BN_CTX *context = BN_CTX_new();
	int rc = -1;

	if (context == NULL)
		return -1;
	switch (symbol) {
	case '+':
	case '-':
		if (operator_align(a, b) == 0 &&
		    (symbol == '+' ? BN_add(a->unscaled, a->unscaled, b->unscaled)
				   : BN_sub(a->unscaled, a->unscaled, b->unscaled)))
			rc = 0;
		break;
	case '*':
		a->scale += b->scale;
		rc = BN_mul(a->unscaled, a->unscaled, b->unscaled, context) ? 0 : -1;
		break;
	case '/':
		if (is_decimal)
			rc = operator_decimal_divide(a, b);
		else
			rc = BN_div(a->unscaled, NULL, a->unscaled, b->unscaled, context) ? 0 : -1;
		break;
	default:
		if (is_decimal)
			rc = operator_decimal_modulo(a, b, context);
		else
			rc = BN_div(NULL, a->unscaled, a->unscaled, b->unscaled, context) ? 0 : -1;
		break;
	}
	BN_CTX_free(context);
	return rc;
}

/*
 * An operand. In decimal arithmetic Cassandra takes integers and floats by way of a double, which
 * shows in the digits: (int) 3 + (decimal) 1 is 4.0. For integers beyond 2^53 that would be wrong
 * digits, and is not followed.
 */
static int
operator_operand(
    struct function_number *number, const struct type *type, struct slice value, bool is_decimal)
{
	uint8_t bytes[8];
	uint64_t bits;
	double real;

	if (!is_decimal || type->kind == TYPE_VARINT || type->kind == TYPE_DECIMAL)
		return function_number_init(number, type, value);
	real = function_to_double(type, value);
	if (type->kind != TYPE_FLOAT && fabs(real) > 9007199254740992.0)
		return function_number_init(number, type, value);
	memcpy(&bits, &real, sizeof(bits));
	store_u64(bytes, bits);
	return function_number_init(number, type_native(TYPE_DOUBLE), slice_of(bytes, 8));
}

static int
operator_big(const struct function *function, const struct slice *arguments, struct arena *arena,
    struct slice *out, struct error *err)
{
	bool is_decimal = function->return_type->kind == TYPE_DECIMAL;
	char symbol = operator_symbol(function);
	struct function_number a = {NULL, 0}, b = {NULL, 0};
	int rc = -1;

	if (operator_operand(&a, function->argument_types[0], arguments[0], is_decimal) != 0 ||
	    operator_operand(&b, function->argument_types[1], arguments[1], is_decimal) != 0)
		operator_fail(function, "Infinite or NaN", arena, err);
	else if ((symbol == '/' || symbol == '%') && BN_is_zero(b.unscaled))
		operator_fail(function,
		    symbol == '%' && is_decimal ? "Division by zero" : "BigInteger divide by zero",
		    arena, err);
	else if (operator_big_compute(symbol, is_decimal, &a, &b) != 0)
		operator_fail(function, "the result has too many digits", arena, err);
	else
		rc = function_number_put(&a, function->return_type, arena, out, err);
	function_number_fini(&a);
	function_number_fini(&b);
	return rc;
}

static int
operator_execute(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	const struct type *const *types = function->argument_types;
	char symbol = operator_symbol(function);

	(void)context;
	if (arguments[0].size == 0 || arguments[1].size == 0) {
		*out = slice_null;
		return 0;
	}
	switch (function->return_type->kind) {
	case TYPE_FLOAT:
		return value_put_float(
		    operator_compute_float(symbol, function_to_float(types[0], arguments[0]),
			function_to_float(types[1], arguments[1])),
		    arena, out, err);
	case TYPE_DOUBLE:
		return value_put_double(
		    operator_compute_double(symbol, function_to_double(types[0], arguments[0]),
			function_to_double(types[1], arguments[1])),
		    arena, out, err);
	case TYPE_VARINT:
	case TYPE_DECIMAL:
		return operator_big(function, arguments, arena, out, err);
	default:
		return operator_integer(function, arguments,
		    (size_t)operator_size(function->return_type->kind), arena, out, err);
	}
}

static int
operator_negate(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	const struct type *type = function->return_type;
	struct function_number number;
	int rc;

	(void)context;
	if (arguments[0].size == 0) {
		*out = slice_null;
		return 0;
	}
	switch (type->kind) {
	case TYPE_FLOAT:
		return value_put_float(-value_get_float(arguments[0]), arena, out, err);
	case TYPE_DOUBLE:
		return value_put_double(-value_get_double(arguments[0]), arena, out, err);
	case TYPE_VARINT:
	case TYPE_DECIMAL:
		if (function_number_init(&number, type, arguments[0]) != 0)
			return error_set(err, ERROR_NO_MEMORY, "out of memory for a number");
		BN_set_negative(number.unscaled, !BN_is_negative(number.unscaled));
		rc = function_number_put(&number, type, arena, out, err);
		function_number_fini(&number);
		return rc;
	default:
		return value_put_integer((int64_t) - (uint64_t)type_load_signed(arguments[0]),
		    arguments[0].size, arena, out, err);
	}
}

/* ---- Dates and text ------------------------------------------------------------------------ */

#define OPERATOR_MS_PER_DAY INT64_C(86400000)
#define OPERATOR_NS_PER_MS INT64_C(1000000)

static int
operator_fail_precision(const struct function *function, const struct duration *duration,
    const char *unit, struct arena *arena, struct error *err)
{
	struct buffer text;
	char *why;

	buffer_init(&text);
	value_print_duration(duration, &text);
	why = arena_printf(arena, "The duration must have a %s precision. Was: %.*s", unit,
	    (int)text.size, text.size > 0 ? (const char *)text.data : "");
	buffer_fini(&text);
	return operator_fail(function, why != NULL ? why : "?", arena, err);
}

/* timestamp and date, plus and minus a duration. */
static int
operator_move_time(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	int sign = operator_symbol(function) == '-' ? -1 : 1;
	bool is_date = function->return_type->kind == TYPE_DATE;
	struct duration duration;
	int64_t ms;

	(void)context;
	if (arguments[0].size == 0 || arguments[1].size == 0) {
		*out = slice_null;
		return 0;
	}
	if (value_decode_duration(arguments[1], &duration, err) != 0)
		return -1;
	if (is_date && duration.nanoseconds != 0)
		return operator_fail_precision(function, &duration, "day", arena, err);
	if (duration.nanoseconds % OPERATOR_NS_PER_MS != 0)
		return operator_fail_precision(function, &duration, "millisecond", arena, err);
	if (is_date)
		ms = ((int64_t)load_u32(arguments[0].data) - INT64_C(0x80000000)) *
		    OPERATOR_MS_PER_DAY;
	else
		ms = type_load_signed(arguments[0]);
	/* Far away from any calendar the sum could wrap; there is nothing right to answer. */
	if (ms > INT64_MAX / 2 || ms < INT64_MIN / 2)
		return operator_fail(function, "the result is out of range", arena, err);
	ms = function_add_months(ms, sign * (int64_t)duration.months);
	ms += sign *
	    ((int64_t)duration.days * OPERATOR_MS_PER_DAY +
		duration.nanoseconds / OPERATOR_NS_PER_MS);
	if (!is_date)
		return value_put_integer(ms, 8, arena, out, err);
	ms = ms / OPERATOR_MS_PER_DAY + INT64_C(0x80000000);
	if (ms < 0 || ms > UINT32_MAX)
		return operator_fail(function, "the result is out of range", arena, err);
	return value_put_integer(ms, 4, arena, out, err);
}

static int
operator_concatenate(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err)
{
	size_t size = arguments[0].size + arguments[1].size;
	uint8_t *text = value_alloc(arena, size, err);

	(void)function;
	(void)context;
	if (text == NULL)
		return -1;
	if (arguments[0].size > 0)
		memcpy(text, arguments[0].data, arguments[0].size);
	if (arguments[1].size > 0)
		memcpy(text + arguments[0].size, arguments[1].data, arguments[1].size);
	*out = slice_of(text, size);
	return 0;
}

static void
operator_find_others(char symbol, const char *name, struct function_list *list)
{
	if (symbol == '+' || symbol == '-') {
		function_list_add_native(list, name, TYPE_TIMESTAMP, operator_move_time,
		    TYPE_TIMESTAMP, TYPE_DURATION, -1);
		function_list_add_native(
		    list, name, TYPE_DATE, operator_move_time, TYPE_DATE, TYPE_DURATION, -1);
	}
	if (symbol == '+') {
		function_list_add_native(
		    list, name, TYPE_TEXT, operator_concatenate, TYPE_TEXT, TYPE_TEXT, -1);
		function_list_add_native(
		    list, name, TYPE_TEXT, operator_concatenate, TYPE_TEXT, TYPE_ASCII, -1);
		function_list_add_native(
		    list, name, TYPE_TEXT, operator_concatenate, TYPE_ASCII, TYPE_TEXT, -1);
		function_list_add_native(
		    list, name, TYPE_ASCII, operator_concatenate, TYPE_ASCII, TYPE_ASCII, -1);
	}
}

void
function_operator_find(char symbol, struct function_list *list)
{
	const char *name = NULL;
	size_t i, j;

	for (i = 0; i < sizeof(operator_names) / sizeof(operator_names[0]); i++) {
		if (operator_names[i].symbol == symbol)
			name = operator_names[i].name;
	}
	for (i = 0; i < OPERATOR_KINDS; i++) {
		if (symbol == 'n') {
			function_list_add_native(list, name, operator_kinds[i], operator_negate,
			    operator_kinds[i], -1, -1);
			continue;
		}
		for (j = 0; j < OPERATOR_KINDS; j++)
			function_list_add_native(list, name,
			    operator_result(operator_kinds[i], operator_kinds[j]), operator_execute,
			    operator_kinds[i], operator_kinds[j], -1);
	}
	operator_find_others(symbol, name, list);
}
