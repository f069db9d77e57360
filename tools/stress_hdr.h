/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_HDR_H
#define HELENUS_TOOLS_STRESS_HDR_H

/*
 * HdrHistogram's interval log, format 1.3: a line for each histogram, its counts as zig-zag LEB128,
 * deflated, in base64 (V2 encoding). What HdrHistogram's tools and plotters read.
 */
#include <stdint.h>
#include <stdio.h>
#include "base/bytes.h"
#include "tools/stress_histogram.h"

/* The comment lines and the legend. Returns the monotonic time that base time stands for, ns. */
int64_t stress_hdr_begin(FILE *file);
/* One line, nothing for an empty histogram. Times are relative to what stress_hdr_begin() returned. */
void stress_hdr_put(FILE *file, const char *name, const char *suffix,
    const struct stress_histogram *histogram, int64_t start_ns, int64_t end_ns);
/* The payload of a line, before base64. */
void stress_hdr_encode(const struct stress_histogram *histogram, struct buffer *out);

#endif
