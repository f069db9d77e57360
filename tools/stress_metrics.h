/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_METRICS_H
#define HELENUS_TOOLS_STRESS_METRICS_H

/*
 * The measurements of one run: collected from the workers at each interval, summed, printed as rows.
 * One thread. Cassandra: stress/report/StressMetrics.
 */
#include <stdio.h>
#include "tools/stress_action.h"
#include "tools/stress_report.h"
#include "tools/stress_worker.h"

struct stress_metrics {
	const struct stress_operation *operations; /* borrowed */
	uint32_t count;
	uint32_t *sorted; /* owned; operations by name */
	struct stress_timing *current; /* owned; one for each operation, and the total */
	struct stress_timing *summary; /* owned; likewise */
	struct stress_uncertainty uncertainty;
	FILE *hdr; /* owned; NULL: none */
	int64_t hdr_epoch_ns; /* monotonic time of the file's base time */
};

/* Opens -log hdrfile=. */
int stress_metrics_init(struct stress_metrics *metrics, const struct stress_settings *settings,
    const struct stress_operation *operations, uint32_t count, struct error *err);
void stress_metrics_fini(struct stress_metrics *metrics);

/* Take what the workers have measured since the last call, which was at start_ns. output NULL: print
 * nothing. */
void stress_metrics_collect(struct stress_metrics *metrics, struct stress_worker *const *workers,
    uint32_t worker_count, int64_t start_ns, int64_t end_ns, struct stress_output *output);
/* The "Results:" block. */
void stress_metrics_summarise(const struct stress_metrics *metrics, struct stress_output *output);
/* Rows of the table over all runs. */
void stress_metrics_put_rows(
    const struct stress_metrics *metrics, const char *id, int id_width, struct buffer *out);
const struct stress_timing *stress_metrics_total(const struct stress_metrics *metrics);

#endif
