/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The dynamic snitch: samples of how fast peers answer, a score for each, and the order of replicas by it.
 *
 * Whoever gets an answer writes it into the peer's ring of recent latencies: one atomic add, one store. The update
 * (each 100 ms) moves what came in since the last one into a reservoir of 100 samples which
 * forgets exponentially (forward decay: Cormode, Shkapenyuk, Srivastava, Xu 2009; alpha 0.75 per second), and takes
 * its weighted median. Of more than the ring holds between two updates the newest count.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/replica_plan.h"
#include "cluster/snitch_internal.h"

enum { SAMPLES_RECENT = 64, SAMPLES_KEPT = 100, SNITCH_SORT_MAX = 64 };

static const double samples_alpha = 0.75;
/* exp(0.75 * 256) is far from the end of a double. */
static const uint64_t samples_rescale_ns = 256000000000ULL;

struct sample {
	double priority; /* the smallest one gives way */
	double weight;
	uint32_t latency_us;
};

struct snitch_samples {
	atomic_uint written; /* how many were ever recorded */
	atomic_uint recent[SAMPLES_RECENT]; /* us; relaxed: any mixture of answers is a sample */
	_Atomic float severity;
	atomic_bool is_outdated; /* what came before the next update */

	/* The updating thread's. */
	uint32_t taken; /* of `written` */
	uint32_t count;
	bool has_changed; /* median_us is of what was kept before */
	double median_us;
	struct sample kept[SAMPLES_KEPT]; /* ascending by latency */
};

/* ---- Recording ----------------------------------------------------------------------------- */

static struct snitch_samples *
snitch_samples(struct peer *peer)
{
	struct snitch_samples *samples = atomic_load_explicit(&peer->samples, memory_order_acquire);
	struct snitch_samples *made;

	if (samples != NULL)
		return samples;
	made = xzalloc(sizeof(*made));
	/* Release: its zeros are seen by who finds it. */
	if (atomic_compare_exchange_strong_explicit(
		&peer->samples, &samples, made, memory_order_acq_rel, memory_order_acquire))
		return made;
	free(made);
	return samples;
}

void
snitch_record_latency(struct snitch *snitch, struct peer *peer, uint64_t latency_ns)
{
	struct snitch_samples *samples;
	uint64_t us = latency_ns / 1000;
	uint32_t at;

	if (!snitch->is_dynamic)
		return;
	samples = snitch_samples(peer);
	at = atomic_fetch_add_explicit(&samples->written, 1, memory_order_relaxed);
	atomic_store_explicit(&samples->recent[at % SAMPLES_RECENT],
	    us > UINT32_MAX ? UINT32_MAX : (uint32_t)us, memory_order_relaxed);
}

void
snitch_forget(struct snitch *snitch, struct peer *peer)
{
	if (snitch->is_dynamic)
		atomic_store_explicit(
		    &snitch_samples(peer)->is_outdated, true, memory_order_relaxed);
}

void
snitch_set_severity(struct snitch *snitch, struct peer *peer, double severity)
{
	if (snitch->is_dynamic)
		atomic_store_explicit(
		    &snitch_samples(peer)->severity, (float)severity, memory_order_relaxed);
}

void
snitch_free_samples(struct snitch *snitch)
{
	uint32_t count = peers_count(snitch->peers);

	for (uint32_t i = 0; i < count; i++) {
		struct peer *peer = peers_at(snitch->peers, i);

		free(atomic_exchange(&peer->samples, NULL));
		atomic_store_explicit(&peer->score, -1.0F, memory_order_relaxed);
	}
}

/* ---- Scores -------------------------------------------------------------------------------- */

/* In (0, 1]. */
static double
snitch_chance(struct snitch *snitch)
{
	uint64_t mixed = snitch->random += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
	mixed ^= mixed >> 31;
	return ((double)(mixed >> 11) + 1) / 9007199254740992.0;
}

/* The place of the one with the least priority. */
static uint32_t
samples_least(const struct snitch_samples *samples)
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < samples->count; i++) {
		if (samples->kept[i].priority < samples->kept[least].priority)
			least = i;
	}
	return least;
}

/* In its place: a sort for each update would cost more than all the rest of it. */
static void
samples_add(struct snitch_samples *samples, double weight, double chance, uint32_t latency_us)
{
	struct sample sample = {weight / chance, weight, latency_us}, *kept = samples->kept;
	uint32_t at = samples->count;

	if (samples->count < SAMPLES_KEPT) {
		samples->count++;
	} else {
		at = samples_least(samples);
		if (kept[at].priority >= sample.priority)
			return;
	}
	for (; at > 0 && kept[at - 1].latency_us > latency_us; at--)
		kept[at] = kept[at - 1];
	for (; at + 1 < samples->count && kept[at + 1].latency_us < latency_us; at++)
		kept[at] = kept[at + 1];
	kept[at] = sample;
	samples->has_changed = true;
}

static void
samples_take_recent(struct snitch *snitch, struct snitch_samples *samples, double weight)
{
	uint32_t written = atomic_load_explicit(&samples->written, memory_order_relaxed);

	if (atomic_load_explicit(&samples->is_outdated, memory_order_relaxed) &&
	    atomic_exchange_explicit(&samples->is_outdated, false, memory_order_relaxed)) {
		samples->taken = written;
		samples->count = 0;
	}
	if (written - samples->taken > SAMPLES_RECENT)
		samples->taken = written - SAMPLES_RECENT;
	for (; samples->taken != written; samples->taken++)
		samples_add(samples, weight, snitch_chance(snitch),
		    atomic_load_explicit(
			&samples->recent[samples->taken % SAMPLES_RECENT], memory_order_relaxed));
}

/*
 * The least latency that half of the weight does not exceed. Without another sample it stays what it was: all weights change
 * together.
 */
static double
samples_median(struct snitch_samples *samples)
{
	double total = 0, sum = 0;
	uint32_t i;

	if (!samples->has_changed)
		return samples->median_us;
	samples->has_changed = false;
	for (i = 0; i < samples->count; i++)
		total += samples->kept[i].weight;
	for (i = 0; i + 1 < samples->count; i++) {
		sum += samples->kept[i].weight;
		if (sum * 2 >= total)
			break;
	}
	samples->median_us = samples->kept[i].latency_us;
	return samples->median_us;
}

/* Forget everything, or (by the factor) make all weights relative to a later moment. */
static void
snitch_rescale(struct snitch *snitch, double factor, bool is_reset)
{
	uint32_t count = peers_count(snitch->peers);

	for (uint32_t i = 0; i < count; i++) {
		struct snitch_samples *samples = atomic_load_explicit(
		    &peers_at(snitch->peers, i)->samples, memory_order_acquire);

		if (samples == NULL)
			continue;
		if (is_reset)
			samples->count = 0;
		for (uint32_t n = 0; n < samples->count; n++) {
			samples->kept[n].priority *= factor;
			samples->kept[n].weight *= factor;
		}
	}
}

/* Weight of what is sampled now. */
static double
snitch_weight(struct snitch *snitch, uint64_t now_ns)
{
	if (snitch->reset_at_ns == 0)
		snitch->reset_at_ns = snitch->decay_from_ns = now_ns;
	if (now_ns - snitch->reset_at_ns >= snitch->reset_interval_ns) {
		snitch_rescale(snitch, 0, true);
		snitch->reset_at_ns = snitch->decay_from_ns = now_ns;
	}
	if (now_ns - snitch->decay_from_ns >= samples_rescale_ns) {
		double seconds = (double)(now_ns - snitch->decay_from_ns) / 1e9;

		snitch_rescale(snitch, exp(-samples_alpha * seconds), false);
		snitch->decay_from_ns = now_ns;
	}
	return exp(samples_alpha * (double)(now_ns - snitch->decay_from_ns) / 1e9);
}

void
snitch_update(struct snitch *snitch, uint64_t now_ns)
{
	uint32_t count = peers_count(snitch->peers);
	double weight, worst = 0;
	double *medians;

	if (!snitch->is_dynamic)
		return;
	medians = xcalloc(count, sizeof(*medians));
	weight = snitch_weight(snitch, now_ns);
	for (uint32_t i = 0; i < count; i++) {
		struct snitch_samples *samples = atomic_load_explicit(
		    &peers_at(snitch->peers, i)->samples, memory_order_acquire);

		medians[i] = -1;
		if (samples == NULL)
			continue;
		samples_take_recent(snitch, samples, weight);
		if (samples->count == 0)
			continue;
		/* A microsecond at least: what is fast must not look unknown. */
		medians[i] = fmax(samples_median(samples), 1);
		worst = fmax(worst, medians[i]);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct peer *peer = peers_at(snitch->peers, i);
		double score = -1;

		if (medians[i] >= 0)
			score = medians[i] / worst +
			    (double)atomic_load_explicit(
				&snitch_samples(peer)->severity, memory_order_relaxed);
		atomic_store_explicit(&peer->score, (float)score, memory_order_relaxed);
	}
	free(medians);
}

static void
snitch_arm(struct snitch *snitch)
{
	if (!atomic_load(&snitch->is_stopping))
		cluster_timer_start(snitch->cluster, &snitch->timer, snitch->update_interval_ns);
}

static void
snitch_run(struct task *task, struct worker *worker)
{
	struct snitch *snitch = (struct snitch *)((char *)task - offsetof(struct snitch, task));

	(void)worker;
	snitch_update(snitch, env_monotonic_ns(snitch->env));
	snitch_arm(snitch);
}

static void
snitch_fire(struct cluster_timer *timer)
{
	struct snitch *snitch = (struct snitch *)((char *)timer - offsetof(struct snitch, timer));

	snitch->task = (struct task){.run = snitch_run};
	/* A stage that is full has better things to do: next time. */
	if (!cluster_submit(snitch->cluster, CLUSTER_STAGE_MISC, &snitch->task))
		snitch_arm(snitch);
}

void
snitch_start(struct snitch *snitch, struct cluster_env *cluster)
{
	if (!snitch->is_dynamic)
		return;
	snitch->cluster = cluster;
	snitch->timer.fire = snitch_fire;
	atomic_store(&snitch->is_stopping, false);
	snitch_arm(snitch);
}

void
snitch_stop(struct snitch *snitch)
{
	if (snitch->cluster == NULL)
		return;
	/* One that runs now may arm the timer once more: see the header. */
	atomic_store(&snitch->is_stopping, true);
	cluster_timer_stop(snitch->cluster, &snitch->timer);
}

uint64_t
snitch_update_interval_ns(const struct snitch *snitch)
{
	return snitch->update_interval_ns;
}

double
snitch_score(const struct snitch *snitch, const struct peer *peer)
{
	(void)snitch;
	return (double)atomic_load_explicit(&peer->score, memory_order_relaxed);
}

/* ---- Order --------------------------------------------------------------------------------- */

static uint8_t
snitch_distance(const struct topology *topology, const struct replica *replica)
{
	/* Equal names are equal pointers within a snapshot. */
	if (replica->peer->is_local)
		return 0;
	if (replica->datacenter != topology_local_datacenter(topology))
		return 3;
	return topology_rack(topology, replica->peer) == topology_local_rack(topology) ? 1 : 2;
}

/* Stable; replicas are few. */
static void
snitch_insertion_sort(struct replica *replicas, uint32_t count, bool by_score)
{
	for (uint32_t i = 1; i < count; i++) {
		struct replica replica = replicas[i];
		uint32_t at = i;

		while (at > 0 &&
		    (by_score && replicas[at - 1].score != replica.score
			    ? replicas[at - 1].score > replica.score
			    : replicas[at - 1].distance > replica.distance)) {
			replicas[at] = replicas[at - 1];
			at--;
		}
		replicas[at] = replica;
	}
}

/* Is some place of the order by distance held by one much slower than who would stand there by score? */
static bool
snitch_is_badly_ordered(const struct snitch *snitch, const struct replica *replicas, uint32_t count)
{
	float sorted[SNITCH_SORT_MAX];

	if (count > SNITCH_SORT_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;

		for (; at > 0 && sorted[at - 1] > replicas[i].score; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = replicas[i].score;
	}
	for (uint32_t i = 0; i < count; i++) {
		if ((double)replicas[i].score > (double)sorted[i] * (1 + snitch->badness_threshold))
			return true;
	}
	return false;
}

void
snitch_sort(struct snitch *snitch, const struct topology *topology, struct replica *replicas,
    uint32_t count)
{
	if (count < 2)
		return;
	for (uint32_t i = 0; i < count; i++) {
		float score = atomic_load_explicit(&replicas[i].peer->score, memory_order_relaxed);

		replicas[i].distance = snitch_distance(topology, &replicas[i]);
		/* Who is not known yet is tried. */
		replicas[i].score = score < 0 ? 0 : score;
	}
	snitch_insertion_sort(replicas, count, false);
	if (snitch->is_dynamic && snitch_is_badly_ordered(snitch, replicas, count))
		snitch_insertion_sort(replicas, count, true);
}

static bool
snitch_has_remote(const struct replica *replicas, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!replicas[i].is_local_datacenter)
			return true;
	}
	return false;
}

/* The worst score; negative when one is not known. */
static double
snitch_worst_score(const struct snitch *snitch, const struct replica *replicas, uint32_t count)
{
	double worst = -1;

	for (uint32_t i = 0; i < count; i++) {
		double score = snitch_score(snitch, replicas[i].peer);

		if (score < 0)
			return -1;
		worst = fmax(worst, score);
	}
	return worst;
}

bool
snitch_is_worth_merging(struct snitch *snitch, const struct replica *merged, uint32_t merged_count,
    const struct replica *left, uint32_t left_count, const struct replica *right,
    uint32_t right_count)
{
	double score, score_left, score_right;

	/* Never to another data center what could stay in this one. */
	if (snitch_has_remote(merged, merged_count) && !snitch_has_remote(left, left_count) &&
	    !snitch_has_remote(right, right_count))
		return false;
	if (!snitch->is_dynamic ||
	    (left_count == 1 && right_count == 1 && left[0].peer == right[0].peer))
		return true;
	score = snitch_worst_score(snitch, merged, merged_count);
	score_left = snitch_worst_score(snitch, left, left_count);
	score_right = snitch_worst_score(snitch, right, right_count);
	if (score < 0 || score_left < 0 || score_right < 0)
		return true;
	return score <= score_left + score_right;
}
