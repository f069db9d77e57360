/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_distribution.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include "base/hash.h"

/* ---- Parsing ------------------------------------------------------------------------------- */

bool
stress_parse_long(const char *text, size_t size, int64_t *out)
{
	int64_t multiplier = 1, value;
	char digits[24];
	char *end;

	while (size > 0 && isspace((unsigned char)*text)) {
		text++;
		size--;
	}
	while (size > 0 && isspace((unsigned char)text[size - 1]))
		size--;
	if (size == 0)
		return false;
	switch (tolower((unsigned char)text[size - 1])) {
	case 'b':
		multiplier = 1000000000;
		break;
	case 'm':
		multiplier = 1000000;
		break;
	case 'k':
		multiplier = 1000;
		break;
	}
	if (multiplier > 1)
		size--;
	if (size == 0 || size >= sizeof(digits))
		return false;
	if (!isdigit((unsigned char)text[0]) && (size < 2 || (text[0] != '-' && text[0] != '+')))
		return false;
	memcpy(digits, text, size);
	digits[size] = '\0';
	errno = 0;
	value = strtoll(digits, &end, 10);
	if (errno != 0 || *end != '\0')
		return false;
	return !__builtin_mul_overflow(value, multiplier, out);
}

bool
stress_parse_range(const char *text, size_t size, int64_t *min, int64_t *max)
{
	const char *dots = size > 0 ? memmem(text, size, "..", 2) : NULL;
	const char *rest;

	if (dots == NULL || !stress_parse_long(text, (size_t)(dots - text), min))
		return false;
	rest = dots;
	while (rest < text + size && *rest == '.')
		rest++;
	return stress_parse_long(rest, (size_t)(text + size - rest), max);
}

struct stress_distribution_argument {
	const char *text;
	size_t size;
};

static bool
stress_distribution_double(const struct stress_distribution_argument *argument, double *out)
{
	char digits[64];
	char *end;

	if (argument->size == 0 || argument->size >= sizeof(digits))
		return false;
	memcpy(digits, argument->text, argument->size);
	digits[argument->size] = '\0';
	*out = strtod(digits, &end);
	while (isspace((unsigned char)*end))
		end++;
	return *end == '\0';
}

static const struct {
	const char *name;
	enum stress_distribution_kind kind;
	int arguments_min;
	int arguments_max;
	const char *title; /* in errors */
} stress_distribution_names[] = {
    {"exp", STRESS_EXPONENTIAL, 1, 1, "exponential"},
    {"extr", STRESS_EXTREME, 2, 2, "extreme (Weibull)"},
    {"extreme", STRESS_EXTREME, 2, 2, "extreme (Weibull)"},
    {"weibull", STRESS_EXTREME, 2, 2, "extreme (Weibull)"},
    {"qextr", STRESS_QUANTIZED_EXTREME, 3, 3, "quantized extreme (Weibull)"},
    {"qextreme", STRESS_QUANTIZED_EXTREME, 3, 3, "quantized extreme (Weibull)"},
    {"gaussian", STRESS_GAUSSIAN, 1, 3, "gaussian"},
    {"normal", STRESS_GAUSSIAN, 1, 3, "gaussian"},
    {"gauss", STRESS_GAUSSIAN, 1, 3, "gaussian"},
    {"norm", STRESS_GAUSSIAN, 1, 3, "gaussian"},
    {"uniform", STRESS_UNIFORM, 1, 1, "uniform"},
    {"fixed", STRESS_FIXED, 1, 1, "fixed"},
    {"seq", STRESS_SEQUENCE, 1, 1, "sequence"},
};

static int64_t stress_distribution_inverse_plain(
    const struct stress_distribution *distribution, double probability);

static void
stress_distribution_quantize(struct stress_distribution *out)
{
	uint32_t count = out->quanta_count;

	/* The bounds are those of the distribution that is cut up. */
	out->kind = STRESS_EXTREME;
	out->bounds[0] = stress_distribution_inverse_plain(out, 0);
	out->bounds[count] = stress_distribution_inverse_plain(out, 1) + 1;
	for (uint32_t i = 1; i < count; i++)
		out->bounds[i] = stress_distribution_inverse_plain(out, i / (double)count);
	out->kind = STRESS_QUANTIZED_EXTREME;
}

static bool
stress_distribution_parse_arguments(struct stress_distribution *out,
    const struct stress_distribution_argument *arguments, int count)
{
	double steepest, stdevs = 3, quantas;

	if (out->kind == STRESS_FIXED) {
		if (!stress_parse_long(arguments[0].text, arguments[0].size, &out->min))
			return false;
		out->max = out->min;
		return true;
	}
	if (!stress_parse_range(arguments[0].text, arguments[0].size, &out->min, &out->max))
		return false;
	if (out->min > out->max || (out->kind == STRESS_SEQUENCE && out->min == out->max))
		return false;
	/* The share of the range's last value: the root, since the value itself is too skewed. */
	steepest = 1 - sqrt(1.0 / (double)(out->max - out->min));
	switch (out->kind) {
	case STRESS_GAUSSIAN:
		out->mean = (double)(out->min + out->max) / 2;
		if (count == 3) {
			if (!stress_distribution_double(&arguments[1], &out->mean) ||
			    !stress_distribution_double(&arguments[2], &out->deviation))
				return false;
			break;
		}
		if (count == 2 && !stress_distribution_double(&arguments[1], &stdevs))
			return false;
		out->deviation = ((double)(out->max - out->min) / 2) / stdevs;
		break;
	case STRESS_EXPONENTIAL:
		out->mean = (double)(out->max - out->min) / -log(1 - steepest);
		break;
	case STRESS_QUANTIZED_EXTREME:
		if (!stress_distribution_double(&arguments[2], &quantas) || quantas < 1 ||
		    quantas > STRESS_QUANTAS_MAX)
			return false;
		out->quanta_count = (uint32_t)quantas;
		/* fall through */
	case STRESS_EXTREME:
		if (!stress_distribution_double(&arguments[1], &out->shape) || out->shape <= 0)
			return false;
		out->scale =
		    (double)(out->max - out->min) / pow(-log(1 - steepest), 1 / out->shape);
		break;
	default:
		break;
	}
	if (out->min == out->max)
		out->kind = STRESS_FIXED;
	if (out->kind == STRESS_GAUSSIAN && !(out->deviation > 0))
		return false;
	return true;
}

int
stress_distribution_parse(struct stress_distribution *out, const char *text, struct error *err)
{
	const char *name = text[0] == '~' ? text + 1 : text;
	size_t name_size = strcspn(name, "("), size = strlen(text);
	struct stress_distribution_argument arguments[4] = {{NULL, 0}};
	const char *at, *end;
	int count = 0;
	size_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < name_size && isalpha((unsigned char)name[i]); i++)
		;
	if (name_size == 0 || i < name_size || text[size - 1] != ')' || name[name_size] != '(' ||
	    name + name_size + 2 > text + size - 1)
		return error_set(
		    err, ERROR_INVALID, "Illegal distribution specification: %s", text);
	for (i = 0; i < sizeof(stress_distribution_names) / sizeof(stress_distribution_names[0]);
	     i++) {
		if (strlen(stress_distribution_names[i].name) == name_size &&
		    strncasecmp(stress_distribution_names[i].name, name, name_size) == 0)
			break;
	}
	if (i == sizeof(stress_distribution_names) / sizeof(stress_distribution_names[0]))
		return error_set(
		    err, ERROR_INVALID, "Illegal distribution type: %.*s", (int)name_size, name);
	at = name + name_size + 1;
	end = text + size - 1;
	while (at < end && count < 4) {
		size_t length = (size_t)(end - at);
		const char *comma = memchr(at, ',', length);

		if (comma != NULL)
			length = (size_t)(comma - at);
		if (length > 0)
			arguments[count++] = (struct stress_distribution_argument){at, length};
		at += length + 1;
	}
	out->kind = stress_distribution_names[i].kind;
	if (count < stress_distribution_names[i].arguments_min ||
	    count > stress_distribution_names[i].arguments_max ||
	    !stress_distribution_parse_arguments(out, arguments, count))
		return error_set(err, ERROR_INVALID,
		    "Invalid parameter list for %s distribution: [%.*s]",
		    stress_distribution_names[i].title, (int)(end - name - (long)name_size - 1),
		    name + name_size + 1);
	if (out->kind == STRESS_QUANTIZED_EXTREME)
		stress_distribution_quantize(out);
	out->turn_min = stress_distribution_inverse_plain(out, 0);
	out->turn_max = stress_distribution_inverse_plain(out, 1);
	out->is_inverted = text[0] == '~';
	stress_random_seed(&out->random, (int64_t)hash_bytes(slice_of(text, size)));
	stress_random_seed(&out->quanta_random, (int64_t)hash_bytes(slice_of(text, size)) + 1);
	return 0;
}

struct stress_distribution
stress_distribution_fixed(int64_t value)
{
	return (struct stress_distribution){
	    .kind = STRESS_FIXED,
	    .min = value,
	    .max = value,
	    .turn_min = value,
	    .turn_max = value,
	};
}

/* ---- Values -------------------------------------------------------------------------------- */

/* A double to an integer as Java casts: toward zero, the ends for what is beyond, 0 for NaN. */
static inline int64_t
stress_to_long(double value)
{
	if (value >= 0x1.0p63)
		return INT64_MAX;
	if (value <= -0x1.0p63)
		return INT64_MIN;
	return value == value ? (int64_t)value : 0;
}

static inline int64_t
stress_bound(const struct stress_distribution *distribution, double value)
{
	int64_t whole = stress_to_long(value);

	if (whole < distribution->min)
		return distribution->min;
	return whole > distribution->max ? distribution->max : whole;
}

static inline int64_t
stress_offset(const struct stress_distribution *distribution, double value)
{
	int64_t whole = stress_to_long(value);
	int64_t delta = distribution->max - distribution->min;

	if (whole < 0)
		whole = 0;
	return distribution->min + (whole > delta ? delta : whole);
}

/*
 * Exponential numbers as commons-math draws them (Ahrens and Dieter's algorithm SA, 1972): the
 * thresholds are the partial sums of ln(2)^n / n!.
 */
static double
stress_sample_exponential(struct stress_distribution *distribution)
{
	double a = 0, u = stress_random_double(&distribution->random), least, draw, sum, term;
	int i = 0;

	while (u < 0.5) {
		a += M_LN2;
		u *= 2;
	}
	u += u - 1;
	term = M_LN2;
	sum = term;
	if (u <= sum)
		return distribution->mean * (a + u);
	least = stress_random_double(&distribution->random);
	do {
		i++;
		draw = stress_random_double(&distribution->random);
		if (draw < least)
			least = draw;
		term *= M_LN2 / (i + 1);
		sum += term;
	} while (u > sum && i < 15);
	return distribution->mean * (a + least * M_LN2);
}

static double
stress_extreme_inverse(const struct stress_distribution *distribution, double probability)
{
	if (probability <= 0)
		return 0;
	if (probability >= 1)
		return INFINITY;
	return distribution->scale * pow(-log(1 - probability), 1 / distribution->shape);
}

static double
stress_sample(struct stress_distribution *distribution)
{
	double u;

	switch (distribution->kind) {
	case STRESS_UNIFORM:
		u = stress_random_double(&distribution->random);
		return u * (double)(distribution->max + 1) + (1 - u) * (double)distribution->min;
	case STRESS_GAUSSIAN:
		return distribution->deviation * stress_random_gaussian(&distribution->random) +
		    distribution->mean;
	case STRESS_EXPONENTIAL:
		return stress_sample_exponential(distribution);
	case STRESS_EXTREME:
	case STRESS_QUANTIZED_EXTREME:
		return stress_extreme_inverse(
		    distribution, stress_random_double(&distribution->random));
	default:
		return (double)distribution->min;
	}
}

/* Which quanta a value lies in; -1 and quanta_count outside, as the binary search gives it. */
static int
stress_quanta(const struct stress_distribution *distribution, int64_t value)
{
	int low = 0, high = (int)distribution->quanta_count;

	while (low <= high) {
		int middle = (low + high) >> 1;

		if (distribution->bounds[middle] < value)
			low = middle + 1;
		else if (distribution->bounds[middle] > value)
			high = middle - 1;
		else
			return middle - 1;
	}
	return low - 1;
}

static int64_t
stress_next_quantized(struct stress_distribution *distribution)
{
	int quanta =
	    stress_quanta(distribution, stress_offset(distribution, stress_sample(distribution)));
	const int64_t *bounds;

	/* A value on the lowest bound would fall before the first quanta. */
	bounds = distribution->bounds + (quanta < 0 ? 0 : quanta);
	return bounds[0] +
	    (int64_t)(stress_random_double(&distribution->quanta_random) *
		(double)(bounds[1] - bounds[0]));
}

static int64_t
stress_next_sequence(struct stress_distribution *distribution)
{
	uint64_t count = (uint64_t)(distribution->max - distribution->min) + 1;
	int64_t step = (int64_t)distribution->sequence++;

	/* With a seed the step may be negative; Java's remainder keeps the sign. */
	return distribution->min + step % (int64_t)count;
}

static int64_t
stress_next_plain(struct stress_distribution *distribution)
{
	switch (distribution->kind) {
	case STRESS_FIXED:
		return distribution->min;
	case STRESS_UNIFORM:
	case STRESS_GAUSSIAN:
		return stress_bound(distribution, stress_sample(distribution));
	case STRESS_QUANTIZED_EXTREME:
		return stress_next_quantized(distribution);
	case STRESS_SEQUENCE:
		return stress_next_sequence(distribution);
	default:
		return stress_offset(distribution, stress_sample(distribution));
	}
}

int64_t
stress_distribution_next(struct stress_distribution *distribution)
{
	int64_t value = stress_next_plain(distribution);

	if (!distribution->is_inverted)
		return value;
	return distribution->turn_max - (value - distribution->turn_min);
}

double
stress_distribution_next_double(struct stress_distribution *distribution)
{
	double value, low = (double)distribution->min, high = (double)distribution->max;

	switch (distribution->kind) {
	case STRESS_UNIFORM:
	case STRESS_GAUSSIAN:
		value = stress_sample(distribution);
		value = value < low ? low : value > high ? high : value;
		break;
	case STRESS_EXPONENTIAL:
	case STRESS_EXTREME:
		value = stress_sample(distribution);
		value = value < 0 ? 0 : value > high - low ? high - low : value;
		value += low;
		break;
	default:
		value = (double)stress_next_plain(distribution);
		break;
	}
	if (!distribution->is_inverted)
		return value;
	return (double)distribution->turn_max - (value - (double)distribution->turn_min);
}

void
stress_distribution_seed(struct stress_distribution *distribution, int64_t seed)
{
	distribution->sequence = (uint64_t)seed;
	stress_random_seed(&distribution->random, seed);
}

/* ---- The inverse of the cumulative probability ------------------------------------------------- */

/* Quantile of the normal distribution (Acklam), made exact by one step of Halley's method. */
static double
stress_normal_quantile(double p)
{
	static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,
	    -2.759285104469687e+02, 1.383577518672690e+02, -3.066479806614716e+01,
	    2.506628277459239e+00};
	static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,
	    -1.556989798598866e+02, 6.680131188771972e+01, -1.328068155288572e+01};
	static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01,
	    -2.400758277161838e+00, -2.549732539343734e+00, 4.374664141464968e+00,
	    2.938163982698783e+00};
	static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01,
	    2.445134137142996e+00, 3.754408661907416e+00};
	double q, r, x, e, u;

	if (p <= 0)
		return -INFINITY;
	if (p >= 1)
		return INFINITY;
	if (p < 0.02425 || p > 1 - 0.02425) {
		q = sqrt(-2 * log(p < 0.5 ? p : 1 - p));
		x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
		    ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
		x = p < 0.5 ? x : -x;
	} else {
		q = p - 0.5;
		r = q * q;
		x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
		    (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
	}
	e = 0.5 * erfc(-x / M_SQRT2) - p;
	u = e * sqrt(2 * M_PI) * exp(x * x / 2);
	return x - u / (1 + x * u / 2);
}

static int64_t
stress_inverse_quantized(const struct stress_distribution *distribution, double probability)
{
	uint32_t count = distribution->quanta_count;
	int64_t value =
	    stress_offset(distribution, stress_extreme_inverse(distribution, probability));
	int quanta = stress_quanta(distribution, value);

	if (quanta < 0)
		return distribution->bounds[0];
	if (quanta >= (int)count)
		return distribution->bounds[count] - 1;
	probability = (probability - quanta / (double)count) * count;
	return distribution->bounds[quanta] +
	    stress_to_long(probability *
		(double)(distribution->bounds[quanta + 1] - distribution->bounds[quanta]));
}

static int64_t
stress_distribution_inverse_plain(
    const struct stress_distribution *distribution, double probability)
{
	double low = (double)distribution->min, high = (double)distribution->max;

	switch (distribution->kind) {
	case STRESS_UNIFORM:
		return stress_bound(distribution, low + probability * (high + 1 - low));
	case STRESS_GAUSSIAN:
		return stress_bound(distribution,
		    distribution->mean +
			distribution->deviation * stress_normal_quantile(probability));
	case STRESS_EXPONENTIAL:
		return stress_offset(distribution,
		    probability >= 1 ? INFINITY : -distribution->mean * log(1 - probability));
	case STRESS_EXTREME:
		return stress_offset(
		    distribution, stress_extreme_inverse(distribution, probability));
	case STRESS_QUANTIZED_EXTREME:
		return stress_inverse_quantized(distribution, probability);
	case STRESS_SEQUENCE:
		return stress_to_long(low + (high - low) * probability);
	default:
		return distribution->min;
	}
}

int64_t
stress_distribution_inverse(const struct stress_distribution *distribution, double probability)
{
	int64_t value = stress_distribution_inverse_plain(distribution, probability);

	if (!distribution->is_inverted)
		return value;
	return distribution->turn_max - (value - distribution->turn_min);
}

int64_t
stress_distribution_min(const struct stress_distribution *distribution)
{
	return stress_distribution_inverse(distribution, 0);
}

int64_t
stress_distribution_max(const struct stress_distribution *distribution)
{
	return stress_distribution_inverse(distribution, 1);
}

int64_t
stress_distribution_average(const struct stress_distribution *distribution)
{
	float probability = 0;
	double sum = 0;
	int count = 0;

	/* A float there, too: the number of steps depends on its rounding. */
	while (probability <= 1.0) {
		sum += (double)stress_distribution_inverse(distribution, probability);
		probability = (float)(probability + 0.02);
		count++;
	}
	return stress_to_long(sum / count);
}

void
stress_distribution_print(const struct stress_distribution *distribution, struct buffer *out)
{
	long long min = distribution->min, max = distribution->max;

	if (distribution->is_inverted)
		buffer_put_string(out, "Inverse: ");
	switch (distribution->kind) {
	case STRESS_FIXED:
		buffer_printf(out, "Fixed:  key=%lld", min);
		break;
	case STRESS_UNIFORM:
		buffer_printf(out, "Uniform:  min=%lld,max=%lld", min, max);
		break;
	case STRESS_GAUSSIAN:
		buffer_printf(out, "Gaussian:  min=%lld,max=%lld,mean=%f,stdev=%f", min, max,
		    distribution->mean, distribution->deviation);
		break;
	case STRESS_EXPONENTIAL:
		buffer_printf(
		    out, "Exponential:  min=%lld,max=%lld,mean=%f", min, max, distribution->mean);
		break;
	case STRESS_SEQUENCE:
		buffer_printf(out, "Sequence:  start=%lld,end=%lld", min, max);
		break;
	default:
		buffer_printf(out, "Extreme:  min=%lld,max=%lld,shape=%f, scale=%f", min, max,
		    distribution->shape, distribution->scale);
		break;
	}
}

/* ---- Ratios -------------------------------------------------------------------------------- */

int
stress_ratio_parse(struct stress_ratio *out, const char *text, struct error *err)
{
	const char *slash = strrchr(text, '/');
	char spec[256];
	int64_t divisor;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(spec) ||
	    !stress_parse_long(slash + 1, strlen(slash + 1), &divisor) || divisor <= 0)
		return error_set(err, ERROR_INVALID, "Invalid ratio definition: %s", text);
	snprintf(spec, sizeof(spec), "%.*s", (int)(slash - text), text);
	out->divisor = (double)divisor;
	return stress_distribution_parse(&out->distribution, spec, err);
}

static double
stress_ratio_cut(double value)
{
	return value < 0 ? 0 : value > 1 ? 1 : value;
}

double
stress_ratio_next(struct stress_ratio *ratio)
{
	return stress_ratio_cut(
	    stress_distribution_next_double(&ratio->distribution) / ratio->divisor);
}

double
stress_ratio_min(const struct stress_ratio *ratio)
{
	return stress_ratio_cut(
	    (double)stress_distribution_min(&ratio->distribution) / ratio->divisor);
}

double
stress_ratio_max(const struct stress_ratio *ratio)
{
	return stress_ratio_cut(
	    (double)stress_distribution_max(&ratio->distribution) / ratio->divisor);
}
