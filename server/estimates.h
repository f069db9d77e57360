/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_ESTIMATES_H
#define HELENUS_SERVER_ESTIMATES_H

/*
 * Tables that the node writes about itself every five minutes: system.size_estimates and table_estimates (how many
 * partitions of which size each primary range has; tools split scans by them), system.sstable_activity and
 * sstable_activity_v2 (how often each SSTable has been read). Cassandra: SizeEstimatesRecorder, SSTableReader.GlobalTidy.
 */
#include "base/error.h"

struct executor;
struct estimates;

struct estimates *estimates_new(struct executor *executor);
void
estimates_free(struct estimates *estimates); /* NULL is accepted; nothing of it runs any more */

/* Begin what is due, on MiscStage. Called by one thread now and then. */
void estimates_tick(struct estimates *estimates);
/* nodetool refreshsizeestimates: write all of it now and wait. */
int estimates_refresh(struct estimates *estimates, struct error *err);

#endif
