/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_REPORT_H
#define HELENUS_TOOLS_STRESS_REPORT_H

/*
 * What was measured, and the lines of the report. Lines are, to the blank, those of cassandra-stress:
 * scripts read them. Cassandra: stress/report/TimingInterval, StressMetrics, stress/util/Uncertainty.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"
#include "tools/stress_histogram.h"

/* One kind of operation over a span of time. One thread. */
struct stress_timing {
	struct stress_histogram service; /* from when an operation was started */
	struct stress_histogram response; /* from when it was due, where there is a rate */
	struct stress_histogram wait; /* the difference */
	uint64_t partitions;
	uint64_t rows;
	uint64_t errors;
	int64_t start_ns; /* INT64_MAX: nothing yet */
	int64_t end_ns;
	bool is_fixed; /* latency is the response's */
};

void stress_timing_clear(struct stress_timing *timing);
/* Times of the spans are merged too. */
void stress_timing_merge(struct stress_timing *to, const struct stress_timing *from);
uint64_t stress_timing_count(const struct stress_timing *timing);
double stress_timing_rate(const struct stress_timing *timing);
/* Rows a second without the slowest operation: what convergence is judged by. */
double stress_timing_adjusted_rate(const struct stress_timing *timing);

/* How sure the mean of some measurements is. */
struct stress_uncertainty {
	int measurements;
	double sum;
	double sum_squares;
	double value; /* standard error over mean; may be NaN */
};

void stress_uncertainty_update(struct stress_uncertainty *uncertainty, double value);

/* The names of the columns, for graphs. */
enum { STRESS_COLUMN_NAMES = 19 };
extern const char *const stress_report_columns[STRESS_COLUMN_NAMES];

/* Lines are appended without their end. */
void stress_report_header(struct buffer *out);
/* `total` gives operations and time, `interval` the rest; the same for a summary. */
void stress_report_row(struct buffer *out, const char *type, const struct stress_timing *interval,
    const struct stress_timing *total, const struct stress_uncertainty *uncertainty);

/* An operation's sums, for the brackets of the results. */
struct stress_report_type {
	const char *name;
	const struct stress_timing *timing;
};

/* The lines between the last row and END, each with its end. types: sorted by name. */
void stress_report_results(struct buffer *out, const struct stress_timing *total,
    const struct stress_report_type *types, size_t count);

/* A number with thousands apart, as %,.Nf of Java prints it. */
void stress_report_number(struct buffer *out, double value, int width, int decimals);

#endif
