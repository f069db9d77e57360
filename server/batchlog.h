/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_BATCHLOG_H
#define HELENUS_SERVER_BATCHLOG_H

/*
 * A logged batch over several partitions takes effect whole or not at all, also when the node dies in
 * the middle: its mutations are kept in system.batches before the first is applied, and taken out
 * after the last; what a start finds there is applied again. Cassandra: batchlog/BatchlogManager.
 */
#include "base/error.h"
#include "base/uuid.h"
#include "storage/mutation.h"

struct executor;

/* Keep the mutations; *id names them. Waits until the commit log has them. */
int batchlog_store(struct executor *executor, const struct mutation *mutations, uint32_t count,
    struct uuid *id, struct error *err);
/* They have been applied: forget them, on a stage of the node's (this may be the commit log's own
 * thread). What is not forgotten is applied again by the next start, which does no harm. */
void batchlog_remove(struct executor *executor, const struct uuid *id);
/* At start, before clients are served: apply what was left behind. */
int batchlog_replay(struct executor *executor, struct error *err);

#endif
