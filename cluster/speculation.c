/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/speculation.h"

enum { SPECULATION_REFRESH_NS = 100 * COORDINATOR_NS_PER_MS };

static const uint64_t speculation_lifetime_ns =
    UINT64_C(60) * 1000 * COORDINATOR_NS_PER_MS; /* as Cassandra's reservoirs */

static const double speculation_range_percentile = 99;

static void
speculation_look(struct speculation_threshold *threshold, const struct histogram *us,
    double percentile, uint64_t now_ns)
{
	uint64_t threshold_us;

	if (atomic_flag_test_and_set_explicit(&threshold->is_looking, memory_order_acquire))
		return;
	histogram_recent_look(&threshold->recent, us, now_ns, speculation_lifetime_ns);
	threshold_us = histogram_recent_quantile(&threshold->recent, us, percentile / 100);
	atomic_store_explicit(&threshold->ns, threshold_us * 1000, memory_order_relaxed);
	atomic_store_explicit(
	    &threshold->due_ns, now_ns + SPECULATION_REFRESH_NS, memory_order_relaxed);
	atomic_flag_clear_explicit(&threshold->is_looking, memory_order_release);
}

/* Until something was measured: half of the timeout, as ColumnFamilyStore begins. */
static uint64_t
speculation_percentile_ns(struct speculation_threshold *threshold, const struct histogram *us,
    double percentile, uint64_t now_ns, uint64_t timeout_ns)
{
	uint64_t threshold_ns;

	if (threshold == NULL)
		return timeout_ns / 2;
	if (atomic_load_explicit(&threshold->due_ns, memory_order_relaxed) <= now_ns)
		speculation_look(threshold, us, percentile, now_ns);
	threshold_ns = atomic_load_explicit(&threshold->ns, memory_order_relaxed);
	return threshold_ns > 0 ? threshold_ns : timeout_ns / 2;
}

static bool
speculation_has_percentile(const struct retry_policy *policy)
{
	return policy->kind == RETRY_PERCENTILE || policy->kind == RETRY_MIN ||
	    policy->kind == RETRY_MAX;
}

static uint64_t
speculation_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
speculation_most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t
speculation_policy_ns(const struct retry_policy *policy, uint64_t percentile_ns)
{
	uint64_t fixed_ns = (uint64_t)(policy->fixed_ms * COORDINATOR_NS_PER_MS);

	switch (policy->kind) {
	case RETRY_NEVER:
		break;
	case RETRY_FIXED:
		return fixed_ns;
	case RETRY_ALWAYS:
	case RETRY_PERCENTILE:
		return percentile_ns;
	case RETRY_MIN:
		return speculation_least(fixed_ns, percentile_ns);
	case RETRY_MAX:
		return speculation_most(fixed_ns, percentile_ns);
	}
	return 0;
}

/* A timer's: 0 is never. */
static uint64_t
speculation_within(uint64_t delay_ns, uint64_t timeout_ns)
{
	if (delay_ns >= timeout_ns)
		return 0;
	return delay_ns > 0 ? delay_ns : 1;
}

uint64_t
speculation_delay_ns(const struct table_metadata *table, struct speculation_answers *answers,
    bool is_range, uint64_t now_ns, uint64_t timeout_ns)
{
	const struct retry_policy *policy = &table->options.speculative_retry;
	uint64_t percentile_ns = 0, delay_ns;

	if (policy->kind == RETRY_NEVER || (policy->kind == RETRY_ALWAYS && !is_range))
		return 0;
	if (is_range || speculation_has_percentile(policy))
		percentile_ns =
		    speculation_percentile_ns(answers == NULL ? NULL : &answers->threshold,
			answers == NULL ? NULL : &answers->answers_us,
			speculation_has_percentile(policy) ? policy->percentile
							   : speculation_range_percentile,
			now_ns, timeout_ns);
	delay_ns = speculation_policy_ns(policy, percentile_ns);
	if (is_range)
		delay_ns = speculation_most(delay_ns, percentile_ns);
	return speculation_within(delay_ns, timeout_ns);
}

uint64_t
speculation_write_delay_ns(const struct table_metadata *table, struct coordinator_table *kept,
    uint64_t now_ns, uint64_t timeout_ns)
{
	const struct retry_policy *policy = &table->options.additional_write_policy;
	uint64_t percentile_ns = 0;

	if (policy->kind == RETRY_NEVER)
		return 0;
	if (speculation_has_percentile(policy))
		percentile_ns =
		    speculation_percentile_ns(kept == NULL ? NULL : &kept->write_threshold,
			kept == NULL ? NULL : &kept->latency_us[COORDINATOR_LATENCY_WRITE],
			policy->percentile, now_ns, timeout_ns);
	return speculation_within(speculation_policy_ns(policy, percentile_ns), timeout_ns);
}
