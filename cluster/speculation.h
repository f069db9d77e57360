/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_SPECULATION_H
#define HELENUS_CLUSTER_SPECULATION_H

/*
 * When a read asks one replica more: the table's speculative_retry (service/reads/SpeculativeRetryPolicy and its
 * kinds). Percentiles are of the table's own reads at this coordinator of the last minute or so, worked out anew ten
 * times a second: where many more clients come at once, soon all reads are slower, and asking everybody twice would make it worse.
 */
#include "cluster/coordinator_internal.h"

/* Nanoseconds from the sending of the request; 0: never (NONE, or no sooner than the timeout). ALWAYS is a matter
 * of the plan: 0. */
uint64_t speculation_delay_ns(struct coordinator *coordinator, const struct table_metadata *table,
    uint64_t now_ns, uint64_t timeout_ns);

#endif
