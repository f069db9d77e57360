/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_SPECULATION_H
#define HELENUS_CLUSTER_SPECULATION_H

/*
 * When a read asks one replica more: the table's speculative_retry (service/reads/SpeculativeRetryPolicy and its
 * kinds). Percentiles are of the answers to this coordinator's reads of the table in the last minute or so, worked out anew ten
 * times a second: where many more clients come at once, soon all reads are slower, and asking everybody twice would make it worse.
 *
 * Reads of ranges speculate too, which Cassandra leaves out: there a replica that has just died costs each of them its timeout. What
 * an operator says in milliseconds is meant for one partition, so that a range never speculates before the time
 * that all but a hundredth of the answers of ranges took.
 */
#include "cluster/coordinator_internal.h"

/*
 * Nanoseconds from the sending of the request; 0: never (NONE, or no sooner than the timeout). ALWAYS is a matter
 * of the plan for one partition: 0. answers: of the table, for partitions or for ranges; NULL: the store has no such table.
 */
uint64_t speculation_delay_ns(const struct table_metadata *table,
    struct speculation_answers *answers, bool is_range, uint64_t now_ns, uint64_t timeout_ns);

/*
 * When read repair that waits for a replica is sent to one more: the table's additional_write_policy, whose percentiles are of this
 * coordinator's writes of the table (ColumnFamilyStore.additionalWriteLatencyMicros). Nanoseconds from the sending; 0: never.
 * kept: NULL when the store has no such table.
 */
uint64_t speculation_write_delay_ns(const struct table_metadata *table,
    struct coordinator_table *kept, uint64_t now_ns, uint64_t timeout_ns);

#endif
