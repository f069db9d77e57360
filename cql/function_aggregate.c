/* SPDX-License-Identifier: Apache-2.0 */
/* count, min, max, sum, avg: AggregateFcts. */
#include <math.h>
#include <stdio.h>
#include "cql/function.h"
#include "cql/function_internal.h"
#include "cql/function_number.h"
#include "cql/type_internal.h"
#include "cql/value_internal.h"

/* ---- count --------------------------------------------------------------------------------- */

static int
aggregate_count_add(const struct function *function, void *state, const struct slice *arguments,
    struct arena *arena, struct error *err)
{
	uint64_t *count = state;

	(void)arena;
	(void)err;
	if (function->argument_count == 0 || !slice_is_null(arguments[0]))
		(*count)++;
	return 0;
}

static int
aggregate_count_result(const struct function *function, const void *state, struct arena *arena,
    struct slice *out, struct error *err)
{
	const uint64_t *count = state;

	(void)function;
	return value_put_integer((int64_t)*count, 8, arena, out, err);
}

/* ---- min, max ------------------------------------------------------------------------------ */

/* The best value so far; its memory is used again when a better one fits. */
struct aggregate_value {
	uint8_t *bytes;
	size_t size;
	size_t capacity;
	bool is_set;
};

static int
aggregate_value_set(
    struct aggregate_value *best, struct slice value, struct arena *arena, struct error *err)
{
	if (best->bytes == NULL || value.size > best->capacity) {
		best->capacity = 2 * value.size + 16;
		best->bytes = value_alloc(arena, best->capacity, err);
		if (best->bytes == NULL)
			return -1;
	}
	if (value.size > 0)
		memcpy(best->bytes, value.data, value.size);
	best->size = value.size;
	best->is_set = true;
	return 0;
}

static int
aggregate_extreme_add(const struct function *function, void *state, const struct slice *arguments,
    struct arena *arena, struct error *err)
{
	struct aggregate_value *best = state;
	int order;

	if (slice_is_null(arguments[0]))
		return 0;
	if (best->is_set) {
		order = type_compare(
		    function->argument_types[0], arguments[0], slice_of(best->bytes, best->size));
		if (function->name[1] == 'i' ? order >= 0 : order <= 0)
			return 0;
	}
	return aggregate_value_set(best, arguments[0], arena, err);
}

static int
aggregate_extreme_result(const struct function *function, const void *state, struct arena *arena,
    struct slice *out, struct error *err)
{
	const struct aggregate_value *best = state;

	(void)function;
	(void)arena;
	(void)err;
	*out = best->is_set ? slice_of(best->bytes, best->size) : slice_null;
	return 0;
}

/* ---- sum and avg of integers --------------------------------------------------------------- */

/* Arenas align to 8 bytes, the compiler would count on 16. */
struct aggregate_integer {
	__int128 sum; /* 2^64 rows of the largest bigint would not fill it */
	uint64_t count;
} __attribute__((packed, aligned(8)));

static int
aggregate_integer_add(const struct function *function, void *state, const struct slice *arguments,
    struct arena *arena, struct error *err)
{
	struct aggregate_integer *sum = state;

	(void)function;
	(void)arena;
	(void)err;
	if (slice_is_null(arguments[0]) || arguments[0].size == 0)
		return 0;
	sum->sum += type_load_signed(arguments[0]);
	sum->count++;
	return 0;
}

static size_t
aggregate_integer_size(const struct type *type)
{
	switch (type->kind) {
	case TYPE_TINYINT:
		return 1;
	case TYPE_SMALLINT:
		return 2;
	case TYPE_INT:
		return 4;
	default:
		return 8;
	}
}

static int
aggregate_integer_result(const struct function *function, const void *state, struct arena *arena,
    struct slice *out, struct error *err)
{
	const struct aggregate_integer *sum = state;
	__int128 result = sum->sum;

	/* sum keeps the type and wraps; avg does not overflow and truncates. */
	if (function->name[0] == 'a')
		result = sum->count == 0 ? 0 : result / (__int128)sum->count;
	return value_put_integer((int64_t)(uint64_t)result,
	    aggregate_integer_size(function->return_type), arena, out, err);
}

/* ---- sum and avg of floating point --------------------------------------------------------- */

/* Kahan's compensated sum; the plain one tells the infinity that both would turn into NaN. */
struct aggregate_float {
	double sum;
	double compensation;
	double simple;
	uint64_t count;
};

static int
aggregate_float_add(const struct function *function, void *state, const struct slice *arguments,
    struct arena *arena, struct error *err)
{
	struct aggregate_float *sum = state;
	double number, corrected, rounded;

	(void)arena;
	(void)err;
	if (slice_is_null(arguments[0]) || arguments[0].size == 0)
		return 0;
	number = function_to_double(function->argument_types[0], arguments[0]);
	sum->simple += number;
	corrected = number - sum->compensation;
	rounded = sum->sum + corrected;
	sum->compensation = (rounded - sum->sum) - corrected;
	sum->sum = rounded;
	sum->count++;
	return 0;
}

static int
aggregate_float_result(const struct function *function, const void *state, struct arena *arena,
    struct slice *out, struct error *err)
{
	const struct aggregate_float *sum = state;
	double result = sum->sum + sum->compensation;

	if (isnan(result) && isinf(sum->simple))
		result = sum->simple;
	if (function->name[0] == 'a')
		result = sum->count == 0 ? 0 : result / (double)sum->count;
	if (function->return_type->kind == TYPE_FLOAT)
		return value_put_float((float)result, arena, out, err);
	return value_put_double(result, arena, out, err);
}

/* ---- sum and avg of varint and decimal ----------------------------------------------------- */

struct aggregate_big {
	struct aggregate_value value; /* of the return type; not set: nothing yet */
	uint64_t count;
};

/* avg of decimals is a running mean, each step rounded half even at the scale of the difference. */
static int
aggregate_decimal_mean(struct function_number *mean, struct function_number *number, uint64_t count)
{
	struct function_number divisor = {BN_new(), 0};
	BIGNUM *step = NULL;
	int64_t scale = mean->scale > number->scale ? mean->scale : number->scale;
	int rc = -1;

	if (divisor.unscaled == NULL || !BN_set_word(divisor.unscaled, count) ||
	    function_bn_scale(mean->unscaled, scale - mean->scale) != 0 ||
	    function_bn_scale(number->unscaled, scale - number->scale) != 0 ||
	    !BN_sub(number->unscaled, number->unscaled, mean->unscaled))
		goto done;
	mean->scale = number->scale = scale;
	step = function_bn_divide(number, &divisor, scale, true);
	if (step != NULL && BN_add(mean->unscaled, mean->unscaled, step))
		rc = 0;
done:
	BN_free(step);
	BN_free(divisor.unscaled);
	return rc;
}

static int
aggregate_big_sum(struct function_number *sum, struct function_number *number)
{
	int64_t scale = sum->scale > number->scale ? sum->scale : number->scale;

	if (function_bn_scale(sum->unscaled, scale - sum->scale) != 0 ||
	    function_bn_scale(number->unscaled, scale - number->scale) != 0 ||
	    !BN_add(sum->unscaled, sum->unscaled, number->unscaled))
		return -1;
	sum->scale = scale;
	return 0;
}

static int
aggregate_big_init(const struct function *function, const struct aggregate_big *state,
    struct function_number *number)
{
	if (state->value.is_set)
		return function_number_init(
		    number, function->return_type, slice_of(state->value.bytes, state->value.size));
	number->scale = 0;
	number->unscaled = BN_new();
	return number->unscaled != NULL ? 0 : -1;
}

static int
aggregate_big_add(const struct function *function, void *state, const struct slice *arguments,
    struct arena *arena, struct error *err)
{
	const struct type *type = function->return_type;
	struct aggregate_big *big = state;
	struct function_number total = {NULL, 0}, number = {NULL, 0};
	struct arena scratch;
	struct slice value;
	int rc = -1;

	if (slice_is_null(arguments[0]) || arguments[0].size == 0)
		return 0;
	arena_init(&scratch, 512);
	big->count++;
	if (aggregate_big_init(function, big, &total) != 0 ||
	    function_number_init(&number, type, arguments[0]) != 0)
		error_set(err, ERROR_NO_MEMORY, "out of memory for %s", function->name);
	else if ((function->name[0] == 'a' && type->kind == TYPE_DECIMAL
			 ? aggregate_decimal_mean(&total, &number, big->count)
			 : aggregate_big_sum(&total, &number)) != 0)
		error_set(err, ERROR_INVALID, "%s: the result has too many digits", function->name);
	else if (function_number_put(&total, type, &scratch, &value, err) == 0)
		rc = aggregate_value_set(&big->value, value, arena, err);
	function_number_fini(&total);
	function_number_fini(&number);
	arena_fini(&scratch);
	return rc;
}

static int
aggregate_big_result(const struct function *function, const void *state, struct arena *arena,
    struct slice *out, struct error *err)
{
	const struct aggregate_big *big = state;
	struct function_number total = {NULL, 0};
	BN_CTX *context = NULL;
	BIGNUM *count = NULL;
	int rc = -1;

	if (aggregate_big_init(function, big, &total) != 0)
		return error_set(err, ERROR_NO_MEMORY, "out of memory for %s", function->name);
	if (function->name[0] == 'a' && function->return_type->kind == TYPE_VARINT &&
	    big->count > 0) {
		context = BN_CTX_new();
		count = BN_new();
		if (context == NULL || count == NULL || !BN_set_word(count, big->count) ||
		    !BN_div(total.unscaled, NULL, total.unscaled, count, context)) {
			error_set(err, ERROR_NO_MEMORY, "out of memory for %s", function->name);
			goto done;
		}
	}
	rc = function_number_put(&total, function->return_type, arena, out, err);
done:
	BN_free(count);
	BN_CTX_free(context);
	function_number_fini(&total);
	return rc;
}

/* ---- The list ------------------------------------------------------------------------------ */

static void
aggregate_fill(
    struct function *function, size_t state_size, function_add_fn add, function_result_fn result)
{
	if (function == NULL)
		return;
	function->is_aggregate = true;
	function->called_on_null = true;
	function->state_size = state_size;
	function->add = add;
	function->result = result;
}

static void
aggregate_add_sum(struct function_list *list, const char *name, enum type_kind kind)
{
	struct function *function = function_list_add_native(list, name, kind, NULL, kind, -1, -1);

	if (kind == TYPE_FLOAT || kind == TYPE_DOUBLE)
		aggregate_fill(function, sizeof(struct aggregate_float), aggregate_float_add,
		    aggregate_float_result);
	else if (kind == TYPE_VARINT || kind == TYPE_DECIMAL)
		aggregate_fill(function, sizeof(struct aggregate_big), aggregate_big_add,
		    aggregate_big_result);
	else
		aggregate_fill(function, sizeof(struct aggregate_integer), aggregate_integer_add,
		    aggregate_integer_result);
}

void
function_aggregate_find(struct slice name, struct function_list *list)
{
	static const char *const names[] = {"count", "min", "max", "sum", "avg"};
	struct function *function;
	const char *found = NULL;
	size_t i;
	int kind;

	if (function_name_is(name, "countrows", "count_rows")) {
		function =
		    function_list_add_native(list, "countRows", TYPE_BIGINT, NULL, -1, -1, -1);
		aggregate_fill(
		    function, sizeof(uint64_t), aggregate_count_add, aggregate_count_result);
		return;
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (slice_equal_string(name, names[i]))
			found = names[i];
	}
	if (found == NULL)
		return;
	for (kind = 0; kind < TYPE_NATIVE_COUNT; kind++) {
		bool is_sum = found[0] == 's' || found[0] == 'a';

		if (is_sum) {
			if (type_is_numeric(type_native((enum type_kind)kind)))
				aggregate_add_sum(list, found, (enum type_kind)kind);
			continue;
		}
		function = function_list_add_native(
		    list, found, found[0] == 'c' ? TYPE_BIGINT : kind, NULL, kind, -1, -1);
		if (found[0] == 'c')
			aggregate_fill(function, sizeof(uint64_t), aggregate_count_add,
			    aggregate_count_result);
		else
			aggregate_fill(function, sizeof(struct aggregate_value),
			    aggregate_extreme_add, aggregate_extreme_result);
	}
}

/* The bigint of type_native() has no constant address for an initialiser, but an equal copy has. */
static const struct type function_bigint = {.kind = TYPE_BIGINT, .fixed_length = 8};

static const struct function function_rows = {
    .keyspace = "system",
    .name = "countRows",
    .return_type = &function_bigint,
    .is_aggregate = true,
    .is_pure = true,
    .called_on_null = true,
    .state_size = sizeof(uint64_t),
    .add = aggregate_count_add,
    .result = aggregate_count_result,
};

const struct function *
function_count_rows(void)
{
	return &function_rows;
}

void *
function_aggregate_new(const struct function *function, struct arena *arena)
{
	return arena_zalloc(arena, function->state_size);
}

int
function_aggregate_add(const struct function *function, void *state, const struct slice *arguments,
    struct arena *arena, struct error *err)
{
	return function->add(function, state, arguments, arena, err);
}

int
function_aggregate_result(const struct function *function, const void *state, struct arena *arena,
    struct slice *out, struct error *err)
{
	return function->result(function, state, arena, out, err);
}
