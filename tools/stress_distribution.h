/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_DISTRIBUTION_H
#define HELENUS_TOOLS_STRESS_DISTRIBUTION_H

/*
 * Distributions as command lines and profiles write them:
 *
 *     FIXED(val)  UNIFORM(min..max)  EXP(min..max)  SEQ(min..max)
 *     GAUSSIAN(min..max[,stdevs to the edge])  GAUSSIAN(min..max,mean,stdev)
 *     EXTREME(min..max,shape)  QEXTREME(min..max,shape,quantas)
 *
 * names in letters of either case, ~ in front inverts, numbers may end in K, M, B. The same seed
 * gives the same numbers as cassandra-stress does. Plain data: copying a distribution gives an
 * independent one. One thread at a time. Cassandra: stress/settings/OptionDistribution,
 * stress/generate/Distribution*, commons-math3 3.2.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"
#include "tools/stress_random.h"

enum stress_distribution_kind {
	STRESS_FIXED,
	STRESS_UNIFORM,
	STRESS_GAUSSIAN,
	STRESS_EXPONENTIAL,
	STRESS_EXTREME,
	STRESS_QUANTIZED_EXTREME,
	STRESS_SEQUENCE,
};

enum { STRESS_QUANTAS_MAX = 64 };

struct stress_distribution {
	enum stress_distribution_kind kind;
	bool is_inverted;
	int64_t min; /* of the kind itself, before the inversion; both included */
	int64_t max;
	double mean; /* GAUSSIAN, EXPONENTIAL */
	double deviation; /* GAUSSIAN */
	double shape; /* EXTREME, QUANTIZED_EXTREME */
	double scale;
	int64_t turn_min; /* what an inversion turns around: the values at probability 0 and 1 */
	int64_t turn_max;
	uint64_t sequence; /* SEQUENCE: steps taken */
	uint32_t quanta_count;
	int64_t bounds[STRESS_QUANTAS_MAX + 1];
	struct stress_random random;
	struct stress_random quanta_random;
};

/* A number with an optional K, M or B. False when it is none or does not fit. */
bool stress_parse_long(const char *text, size_t size, int64_t *out);
/* "min..max" (or more dots). */
bool stress_parse_range(const char *text, size_t size, int64_t *min, int64_t *max);

/* ERROR_INVALID with the tool's text, such as "Illegal distribution type: foo". Seeded by `text`. */
int stress_distribution_parse(struct stress_distribution *out, const char *text, struct error *err);
struct stress_distribution stress_distribution_fixed(int64_t value);

void stress_distribution_seed(struct stress_distribution *distribution, int64_t seed);
int64_t stress_distribution_next(struct stress_distribution *distribution);
double stress_distribution_next_double(struct stress_distribution *distribution);
/* The value below which `probability` of the numbers lie. */
int64_t
stress_distribution_inverse(const struct stress_distribution *distribution, double probability);
int64_t stress_distribution_min(const struct stress_distribution *distribution);
int64_t stress_distribution_max(const struct stress_distribution *distribution);
/* About the mean, as Distribution.average() computes it. */
int64_t stress_distribution_average(const struct stress_distribution *distribution);
/* "Uniform:  min=1,max=10": as settings are shown. */
void stress_distribution_print(const struct stress_distribution *distribution, struct buffer *out);

/* A distribution over a divisor: "fixed(1)/1". Values are cut to 0..1. */
struct stress_ratio {
	struct stress_distribution distribution;
	double divisor;
};

int stress_ratio_parse(struct stress_ratio *out, const char *text, struct error *err);
double stress_ratio_next(struct stress_ratio *ratio);
double stress_ratio_min(const struct stress_ratio *ratio);
double stress_ratio_max(const struct stress_ratio *ratio);

#endif
