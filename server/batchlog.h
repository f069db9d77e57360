/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_BATCHLOG_H
#define HELENUS_SERVER_BATCHLOG_H

/*
 * A logged batch over several partitions takes effect whole or not at all, also when the node dies in
 * the middle: its mutations are kept in system.batches before the first is applied, and taken out
 * after the last; what a start finds there is applied again. Cassandra: batchlog/BatchlogManager.
 */
#include "base/error.h"
#include "cluster/batchlog.h"
#include "base/uuid.h"
#include "storage/mutation.h"

struct executor;

/* Keep the mutations; *id names them. Waits until the commit log has them. */
int batchlog_store(struct executor *executor, const struct mutation *mutations, uint32_t count,
    struct uuid *id, struct error *err);
/* They have been applied: forget them, on a stage of the node's (this may be the commit log's own
 * thread). What is not forgotten is applied again by the next start, which does no harm. */
void batchlog_remove(struct executor *executor, const struct uuid *id);
/*
 * The same over a ring, where two other nodes keep the batch; entry->on_done comes unless this fails. Nobody waits for the
 * removal.
 */
int batchlog_store_at(struct executor *executor, const struct mutation *mutations, uint32_t count,
    struct uuid *id, struct batchlog_entry *entry, bool is_any, struct worker *worker,
    struct error *err);
void batchlog_remove_from(struct executor *executor, const struct batchlog_entry *entry,
    const struct uuid *id, struct worker *worker);

/*
 * After the ring was joined, before clients are served: alone, what a crash left behind is applied; over a ring it is written
 * to its replicas, and from then on every ten seconds what is older than two write timeouts.
 */
struct batchlog_replayer;
int batchlog_start(struct executor *executor, struct batchlog_replayer **out, struct error *err);
void batchlog_stop(struct batchlog_replayer *replayer); /* NULL is accepted, as by the next */
void batchlog_free(struct batchlog_replayer *replayer); /* stages and timers are quiet */
/* nodetool replaybatchlog: now, and wait. A thread that may. */
int batchlog_replay_now(struct batchlog_replayer *replayer, struct error *err);

#endif
