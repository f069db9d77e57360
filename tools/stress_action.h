/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_ACTION_H
#define HELENUS_TOOLS_STRESS_ACTION_H

/*
 * A whole command: schema, warm-up, the run or the ladder of runs, and their report. Cassandra:
 * stress/StressAction, report/StressMetrics.
 */
#include <stdio.h>
#include "tools/stress_settings.h"

/* Where the report goes: standard output, a file, and memory for the graph. */
struct stress_output {
	FILE *file; /* owned; NULL: none */
	struct buffer text; /* owned; everything, where a graph is asked for */
	bool keeps_text;
};

int stress_output_open(
    struct stress_output *output, const struct stress_settings *settings, struct error *err);
void stress_output_close(struct stress_output *output);
void stress_output_put(struct stress_output *output, struct slice text);
void stress_output_printf(struct stress_output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* -1: it failed; why is on standard output and error already, or in err->text where that is not empty. */
int stress_action_run(
    const struct stress_settings *settings, struct stress_output *output, struct error *err);

/* The thread count after `threads` on the ladder: 4, 8, 16, 24, 36, ... */
int stress_ladder_next(int threads);
/* Whether a ladder goes on: rates of the runs so far, `uncertainty` as the settings have it. */
bool stress_ladder_improves(const double *rates, int count, double uncertainty);

#endif
