/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/speculation.h"

enum {
	SPECULATION_REFRESH_NS = 1000 * COORDINATOR_NS_PER_MS,
	/* While there is little to go by. */
	SPECULATION_EARLY_SAMPLES = 1000,
	SPECULATION_EARLY_NS = 50 * COORDINATOR_NS_PER_MS,
};

/* Until something was measured: half of the timeout, as ColumnFamilyStore begins. */
static uint64_t
speculation_percentile_ns(struct coordinator *coordinator, const struct table_metadata *table,
    double percentile, uint64_t timeout_ns)
{
	struct coordinator_table *kept = coordinator_table(coordinator, table);
	uint64_t now = coordinator_now(coordinator), threshold_ns = timeout_ns / 2;
	uint64_t samples, refresh_ns = SPECULATION_REFRESH_NS;
	const struct histogram *latency_us;

	if (kept == NULL)
		return threshold_ns;
	if (atomic_load_explicit(&kept->threshold_due_ns, memory_order_acquire) > now)
		return atomic_load_explicit(&kept->threshold_ns, memory_order_relaxed);
	latency_us = &kept->latency_us[COORDINATOR_LATENCY_READ];
	samples = histogram_count(latency_us);
	if (samples < SPECULATION_EARLY_SAMPLES)
		refresh_ns = SPECULATION_EARLY_NS;
	if (samples > 0)
		threshold_ns = histogram_quantile(latency_us, percentile / 100) * 1000;
	atomic_store_explicit(&kept->threshold_ns, threshold_ns, memory_order_relaxed);
	atomic_store_explicit(&kept->threshold_due_ns, now + refresh_ns, memory_order_release);
	return threshold_ns;
}

uint64_t
speculation_delay_ns(
    struct coordinator *coordinator, const struct table_metadata *table, uint64_t timeout_ns)
{
	const struct retry_policy *policy = &table->options.speculative_retry;
	uint64_t fixed_ns = (uint64_t)(policy->fixed_ms * COORDINATOR_NS_PER_MS);
	uint64_t percentile_ns = 0, delay_ns = 0;

	if (policy->kind == RETRY_PERCENTILE || policy->kind == RETRY_MIN ||
	    policy->kind == RETRY_MAX)
		percentile_ns =
		    speculation_percentile_ns(coordinator, table, policy->percentile, timeout_ns);
	switch (policy->kind) {
	case RETRY_NEVER:
	case RETRY_ALWAYS:
		return 0;
	case RETRY_FIXED:
		delay_ns = fixed_ns;
		break;
	case RETRY_PERCENTILE:
		delay_ns = percentile_ns;
		break;
	case RETRY_MIN:
		delay_ns = fixed_ns < percentile_ns ? fixed_ns : percentile_ns;
		break;
	case RETRY_MAX:
		delay_ns = fixed_ns > percentile_ns ? fixed_ns : percentile_ns;
		break;
	}
	if (delay_ns >= timeout_ns)
		return 0;
	return delay_ns > 0 ? delay_ns : 1;
}
