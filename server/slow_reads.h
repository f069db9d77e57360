/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SLOW_READS_H
#define HELENUS_SERVER_SLOW_READS_H

/*
 * SELECTs of clients that took longer than slow_query_log_timeout, from the bytes read to the answer: gathered by their text,
 * and told in the log every few seconds. Cassandra: db/monitoring/MonitoringTask, which sees a replica's part of a read; here
 * it is all of what the client waited for, under the client's own text.
 */
#include "base/bytes.h"
#include "base/lock.h"

enum {
	SLOW_READS_MAX = 50, /* texts; more are counted only */
	SLOW_READS_TEXT_MAX = 1000, /* the end of a longer one is cut off */
};

struct slow_read {
	char *text; /* owned */
	uint64_t count, total_ms, min_ms, max_ms;
};

struct slow_reads {
	struct lock lock; /* guards what follows */
	struct slow_read list[SLOW_READS_MAX];
	uint32_t count;
	uint64_t left_out;
	uint64_t told_ns; /* monotonic, when slow_reads_report() was last called */
};

void slow_reads_init(struct slow_reads *reads, uint64_t now_ns);
void slow_reads_fini(struct slow_reads *reads);

/* keyspace: what names without one mean in `query`; null: none. Any thread. */
void
slow_reads_note(struct slow_reads *reads, struct slice keyspace, struct slice query, uint64_t ms);
/* Tell what was noted since the last call. One thread. */
void slow_reads_report(struct slow_reads *reads, int64_t timeout_ms, uint64_t now_ns);

#endif
