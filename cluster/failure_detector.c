/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/failure_detector.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"

/*
 * A window keeps its intervals as 16 bit numbers: a ring of a thousand holds a million windows in the simulation, and
 * 50 us is finer than a round needs.
 */
enum { FAILURE_DETECTOR_UNIT_NS = 50000, FAILURE_DETECTOR_UNITS_MAX = UINT16_MAX };

struct arrival_window {
	uint64_t last_ns;
	uint64_t sum; /* of the intervals, units */
	uint16_t *intervals; /* owned; a ring */
	uint16_t capacity, count, next;
};

struct failure_detector {
	struct failure_detector_options options;
	uint64_t judged_ns; /* last call of failure_detector_may_judge() */
	uint64_t paused_ns; /* end of the last pause; 0: none */
	struct arrival_window *windows; /* owned; by peer index */
	uint32_t capacity;
};

struct failure_detector *
failure_detector_new(const struct failure_detector_options *options, uint64_t now_ns)
{
	struct failure_detector *detector = xzalloc(sizeof(*detector));

	detector->options = *options;
	detector->judged_ns = now_ns;
	return detector;
}

void
failure_detector_free(struct failure_detector *detector)
{
	if (detector == NULL)
		return;
	for (uint32_t i = 0; i < detector->capacity; i++)
		free(detector->windows[i].intervals);
	free(detector->windows);
	free(detector);
}

void
failure_detector_set_threshold(struct failure_detector *detector, double threshold)
{
	detector->options.phi_threshold = threshold;
}

double
failure_detector_threshold(const struct failure_detector *detector)
{
	return detector->options.phi_threshold;
}

static const struct arrival_window *
failure_detector_find(const struct failure_detector *detector, const struct peer *peer)
{
	const struct arrival_window *window;

	if (peer->index >= detector->capacity)
		return NULL;
	window = &detector->windows[peer->index];
	return window->count == 0 ? NULL : window;
}

static struct arrival_window *
failure_detector_window(struct failure_detector *detector, const struct peer *peer)
{
	if (peer->index >= detector->capacity) {
		uint32_t capacity = detector->capacity == 0 ? 16 : detector->capacity;

		while (capacity <= peer->index)
			capacity *= 2;
		detector->windows =
		    xrealloc(detector->windows, capacity * sizeof(*detector->windows));
		memset(detector->windows + detector->capacity, 0,
		    (capacity - detector->capacity) * sizeof(*detector->windows));
		detector->capacity = capacity;
	}
	return &detector->windows[peer->index];
}

static void
arrival_window_add(struct arrival_window *window, uint64_t interval_ns)
{
	uint64_t units = interval_ns / FAILURE_DETECTOR_UNIT_NS;

	/* A mean of nothing would convict at once. */
	if (units == 0)
		units = 1;
	if (units > FAILURE_DETECTOR_UNITS_MAX)
		units = FAILURE_DETECTOR_UNITS_MAX;
	if (window->count == window->capacity && window->capacity < FAILURE_DETECTOR_WINDOW) {
		uint32_t capacity =
		    window->capacity == 0 ? FAILURE_DETECTOR_WINDOW_FIRST : window->capacity * 2u;

		if (capacity > FAILURE_DETECTOR_WINDOW)
			capacity = FAILURE_DETECTOR_WINDOW;
		window->intervals =
		    xrealloc(window->intervals, capacity * sizeof(*window->intervals));
		window->capacity = (uint16_t)capacity;
		/* While it grows it has never wrapped: the next place is the new room. */
		window->next = window->count;
	}
	if (window->count == window->capacity)
		window->sum -= window->intervals[window->next];
	else
		window->count++;
	window->intervals[window->next] = (uint16_t)units;
	window->sum += units;
	window->next = (uint16_t)((window->next + 1) % window->capacity);
}

void
failure_detector_report(struct failure_detector *detector, const struct peer *peer, uint64_t now_ns)
{
	struct arrival_window *window = failure_detector_window(detector, peer);

	if (window->count == 0)
		arrival_window_add(window, 2 * detector->options.interval_ns);
	else if (now_ns - window->last_ns <= detector->options.interval_max_ns)
		arrival_window_add(window, now_ns - window->last_ns);
	window->last_ns = now_ns;
}

void
failure_detector_remove(struct failure_detector *detector, const struct peer *peer)
{
	if (peer->index >= detector->capacity)
		return;
	free(detector->windows[peer->index].intervals);
	memset(&detector->windows[peer->index], 0, sizeof(detector->windows[peer->index]));
}

bool
failure_detector_may_judge(struct failure_detector *detector, uint64_t now_ns)
{
	uint64_t pause = detector->options.pause_ns;
	uint64_t since = now_ns - detector->judged_ns;

	detector->judged_ns = now_ns;
	if (pause == 0)
		return true;
	if (since > pause) {
		detector->paused_ns = now_ns;
		return false;
	}
	return detector->paused_ns == 0 || now_ns - detector->paused_ns >= pause;
}

double
failure_detector_phi(
    const struct failure_detector *detector, const struct peer *peer, uint64_t now_ns)
{
	const struct arrival_window *window = failure_detector_find(detector, peer);
	double mean;

	if (window == NULL || now_ns <= window->last_ns)
		return 0;
	mean = (double)window->sum / window->count * FAILURE_DETECTOR_UNIT_NS;
	return FAILURE_DETECTOR_PHI_FACTOR * (double)(now_ns - window->last_ns) / mean;
}

bool
failure_detector_convicts(
    const struct failure_detector *detector, const struct peer *peer, double share, uint64_t now_ns)
{
	return failure_detector_phi(detector, peer, now_ns) >
	    detector->options.phi_threshold * share;
}

uint64_t
failure_detector_last(const struct failure_detector *detector, const struct peer *peer)
{
	const struct arrival_window *window = failure_detector_find(detector, peer);

	return window == NULL ? 0 : window->last_ns;
}

uint64_t
failure_detector_mean(const struct failure_detector *detector, const struct peer *peer)
{
	const struct arrival_window *window = failure_detector_find(detector, peer);

	return window == NULL ? 0 : window->sum * FAILURE_DETECTOR_UNIT_NS / window->count;
}
