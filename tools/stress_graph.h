/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_GRAPH_H
#define HELENUS_TOOLS_STRESS_GRAPH_H

/*
 * The chart of a run: an HTML page that holds its data and its script and needs nothing from
 * elsewhere. A page that exists is added to, so that runs can be compared. The block of data is that of
 * cassandra-stress. Cassandra: stress/StressGraph.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "tools/stress_settings.h"

/* report: what the run printed. ERROR_IO, or ERROR_CORRUPT where the page has no data block. */
int stress_graph_write(const struct stress_settings *settings, int argc, char *const *argv,
    struct slice report, struct error *err);

/* The data alone, added to `old` (JSON, may be null): for tests. */
int stress_graph_add(const struct stress_settings *settings, const char *command,
    struct slice report, struct slice old, struct buffer *json, struct error *err);

#endif
