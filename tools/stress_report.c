/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_report.h"

#include <math.h>
#include <stdio.h>

const char *const stress_report_columns[STRESS_COLUMN_NAMES] = {"type", "total ops", "op/s", "pk/s",
    "row/s", "mean", "med", ".95", ".99", ".999", "max", "time", "stderr", "errors", "gc: #",
    "max ms", "sum ms", "sdv ms", "mb"};

/* ---- Sums -------------------------------------------------------------------------------------- */

void
stress_timing_clear(struct stress_timing *timing)
{
	stress_histogram_clear(&timing->service);
	stress_histogram_clear(&timing->response);
	stress_histogram_clear(&timing->wait);
	timing->partitions = timing->rows = timing->errors = 0;
	timing->start_ns = INT64_MAX;
	timing->end_ns = INT64_MIN;
}

void
stress_timing_merge(struct stress_timing *to, const struct stress_timing *from)
{
	stress_histogram_merge(&to->service, &from->service);
	stress_histogram_merge(&to->response, &from->response);
	stress_histogram_merge(&to->wait, &from->wait);
	to->partitions += from->partitions;
	to->rows += from->rows;
	to->errors += from->errors;
	if (from->start_ns < to->start_ns)
		to->start_ns = from->start_ns;
	if (from->end_ns > to->end_ns)
		to->end_ns = from->end_ns;
}

static const struct stress_histogram *
stress_timing_latency(const struct stress_timing *timing)
{
	return timing->is_fixed && timing->response.total > 0 ? &timing->response
							      : &timing->service;
}

uint64_t
stress_timing_count(const struct stress_timing *timing)
{
	return stress_timing_latency(timing)->total;
}

static double
stress_timing_seconds(const struct stress_timing *timing)
{
	return timing->end_ns > timing->start_ns
	    ? (double)(timing->end_ns - timing->start_ns) * 1e-9
	    : 0;
}

double
stress_timing_rate(const struct stress_timing *timing)
{
	return (double)stress_timing_count(timing) / stress_timing_seconds(timing);
}

double
stress_timing_adjusted_rate(const struct stress_timing *timing)
{
	return (double)timing->rows /
	    (stress_timing_seconds(timing) -
		(double)stress_histogram_max(stress_timing_latency(timing)) * 1e-9);
}

void
stress_uncertainty_update(struct stress_uncertainty *uncertainty, double value)
{
	double mean, deviation;

	uncertainty->measurements++;
	uncertainty->sum += value;
	uncertainty->sum_squares += value * value;
	mean = uncertainty->sum / uncertainty->measurements;
	deviation = sqrt(uncertainty->sum_squares / uncertainty->measurements - mean * mean);
	uncertainty->value = deviation / sqrt(uncertainty->measurements) / mean;
}

/* ---- Numbers as Java prints them ------------------------------------------------------------------ */

void
stress_report_number(struct buffer *out, double value, int width, int decimals)
{
	char digits[400], grouped[540];
	size_t size = 0, whole;

	if (isnan(value)) {
		buffer_printf(out, "%*s", width, "NaN");
		return;
	}
	if (isinf(value)) {
		buffer_printf(out, "%*s", width, value > 0 ? "Infinity" : "-Infinity");
		return;
	}
	snprintf(digits, sizeof(digits), "%.*f", decimals, value);
	whole = strcspn(digits, ".");
	for (size_t i = 0; digits[i] != '\0'; i++) {
		if (i > 0 && i < whole && (whole - i) % 3 == 0 && digits[i - 1] != '-')
			grouped[size++] = ',';
		grouped[size++] = digits[i];
	}
	grouped[size] = '\0';
	buffer_printf(out, "%*s", width, grouped);
}

/* Without the thousands apart: the rows. */
static void
stress_report_plain(struct buffer *out, double value, int width, int decimals)
{
	if (isfinite(value))
		buffer_printf(out, ",%*.*f", width, decimals, value);
	else
		buffer_printf(out, ",%*s", width,
		    isnan(value)    ? "NaN"
			: value > 0 ? "Infinity"
				    : "-Infinity");
}

/* ---- Rows ------------------------------------------------------------------------------------------ */

void
stress_report_header(struct buffer *out)
{
	static const int widths[STRESS_COLUMN_NAMES] = {
	    10, 10, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7, 9, 7, 7, 8, 8, 8, 8};

	for (int i = 0; i < STRESS_COLUMN_NAMES; i++)
		buffer_printf(out,
		    i == 0       ? "%-*s"
			: i == 1 ? "%*s"
				 : ",%*s",
		    widths[i], stress_report_columns[i]);
}

void
stress_report_row(struct buffer *out, const char *type, const struct stress_timing *interval,
    const struct stress_timing *total, const struct stress_uncertainty *uncertainty)
{
	const struct stress_histogram *latency = stress_timing_latency(interval);
	double seconds = stress_timing_seconds(interval);
	int64_t total_ms =
	    total->end_ns > total->start_ns ? (total->end_ns - total->start_ns) / 1000000 : 0;
	char name[160];

	snprintf(name, sizeof(name), "%s,", type);
	buffer_printf(out, "%-10s%10llu", name, (unsigned long long)stress_timing_count(total));
	stress_report_plain(out, (double)latency->total / seconds, 8, 0);
	stress_report_plain(out, (double)interval->partitions / seconds, 8, 0);
	stress_report_plain(out, (double)interval->rows / seconds, 8, 0);
	stress_report_plain(out, stress_histogram_mean(latency) * 1e-6, 8, 1);
	stress_report_plain(out, (double)stress_histogram_percentile(latency, 50) * 1e-6, 8, 1);
	stress_report_plain(out, (double)stress_histogram_percentile(latency, 95) * 1e-6, 8, 1);
	stress_report_plain(out, (double)stress_histogram_percentile(latency, 99) * 1e-6, 8, 1);
	stress_report_plain(out, (double)stress_histogram_percentile(latency, 99.9) * 1e-6, 8, 1);
	stress_report_plain(out, (double)stress_histogram_max(latency) * 1e-6, 8, 1);
	stress_report_plain(out, (double)total_ms / 1000, 7, 1);
	stress_report_plain(out, uncertainty->value, 9, 5);
	/* There is no garbage to be collected, on either side. */
	buffer_printf(
	    out, ",%7llu,%7d,%8d,%8d,%8d,%8d", (unsigned long long)interval->errors, 0, 0, 0, 0, 0);
}

/* ---- Results --------------------------------------------------------------------------------------- */

enum stress_figure {
	STRESS_FIGURE_RATE,
	STRESS_FIGURE_PARTITION_RATE,
	STRESS_FIGURE_ROW_RATE,
	STRESS_FIGURE_MEAN,
	STRESS_FIGURE_MEDIAN,
	STRESS_FIGURE_95,
	STRESS_FIGURE_99,
	STRESS_FIGURE_999,
	STRESS_FIGURE_MAX,
	STRESS_FIGURE_PARTITIONS,
	STRESS_FIGURE_ERRORS,
};

static const struct {
	const char *title;
	const char *unit;
	int width;
	int decimals;
	const char *gap; /* before the brackets */
} stress_figures[] = {
    {"Op rate                   ", "op/s", 8, 0, "  "},
    {"Partition rate            ", "pk/s", 8, 0, "  "},
    {"Row rate                  ", "row/s", 8, 0, " "},
    {"Latency mean              ", "ms", 6, 1, " "},
    {"Latency median            ", "ms", 6, 1, " "},
    {"Latency 95th percentile   ", "ms", 6, 1, " "},
    {"Latency 99th percentile   ", "ms", 6, 1, " "},
    {"Latency 99.9th percentile ", "ms", 6, 1, " "},
    {"Latency max               ", "ms", 6, 1, " "},
    {"Total partitions          ", "", 10, 0, " "},
    {"Total errors              ", "", 10, 0, " "},
};

static double
stress_figure_of(const struct stress_timing *timing, enum stress_figure figure)
{
	const struct stress_histogram *latency = stress_timing_latency(timing);
	double seconds = stress_timing_seconds(timing);

	switch (figure) {
	case STRESS_FIGURE_RATE:
		return (double)latency->total / seconds;
	case STRESS_FIGURE_PARTITION_RATE:
		return (double)timing->partitions / seconds;
	case STRESS_FIGURE_ROW_RATE:
		return (double)timing->rows / seconds;
	case STRESS_FIGURE_MEAN:
		return stress_histogram_mean(latency) * 1e-6;
	case STRESS_FIGURE_MEDIAN:
		return (double)stress_histogram_percentile(latency, 50) * 1e-6;
	case STRESS_FIGURE_95:
		return (double)stress_histogram_percentile(latency, 95) * 1e-6;
	case STRESS_FIGURE_99:
		return (double)stress_histogram_percentile(latency, 99) * 1e-6;
	case STRESS_FIGURE_999:
		return (double)stress_histogram_percentile(latency, 99.9) * 1e-6;
	case STRESS_FIGURE_MAX:
		return (double)stress_histogram_max(latency) * 1e-6;
	case STRESS_FIGURE_PARTITIONS:
		return (double)timing->partitions;
	default:
		return (double)timing->errors;
	}
}

static void
stress_report_figure(struct buffer *out, enum stress_figure figure,
    const struct stress_timing *total, const struct stress_report_type *types, size_t count)
{
	const char *unit = stress_figures[figure].unit;

	buffer_printf(out, "%s: ", stress_figures[figure].title);
	stress_report_number(out, stress_figure_of(total, figure), stress_figures[figure].width,
	    stress_figures[figure].decimals);
	buffer_printf(out, "%s%s%s[", *unit != '\0' ? " " : "", unit, stress_figures[figure].gap);
	for (size_t i = 0; i < count; i++) {
		buffer_printf(out, "%s%s: ", i > 0 ? ", " : "", types[i].name);
		stress_report_number(out, stress_figure_of(types[i].timing, figure), 0,
		    stress_figures[figure].decimals);
		buffer_printf(out, "%s%s", *unit != '\0' ? " " : "", unit);
	}
	buffer_put_string(out, "]\n");
}

void
stress_report_results(struct buffer *out, const struct stress_timing *total,
    const struct stress_report_type *types, size_t count)
{
	int64_t seconds =
	    total->end_ns > total->start_ns ? (total->end_ns - total->start_ns) / 1000000000 : 0;

	buffer_put_string(out, "\n\nResults:\n");
	for (int figure = 0; figure <= STRESS_FIGURE_ERRORS; figure++)
		stress_report_figure(out, (enum stress_figure)figure, total, types, count);
	buffer_put_string(out,
	    "Total GC count            : 0\n"
	    "Total GC memory           : 0.000 KiB\n"
	    "Total GC time             :    0.0 seconds\n"
	    "Avg GC time               :    NaN ms\n"
	    "StdDev GC time            :    0.0 ms\n");
	buffer_printf(out, "Total operation time      : %02lld:%02lld:%02lld\n\n",
	    (long long)seconds / 3600, (long long)seconds / 60 % 60, (long long)seconds % 60);
}
