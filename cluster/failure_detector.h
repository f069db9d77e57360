/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_FAILURE_DETECTOR_H
#define HELENUS_CLUSTER_FAILURE_DETECTOR_H

/*
 * The phi accrual failure detector (gms/FailureDetector): how unlikely is it that a peer which told of itself in
 * these intervals is silent for so long? phi = time since the last news / mean interval * log10(e). A verdict is
 * not spoken when this process itself stood still.
 *
 * Pure arithmetic on times that are handed in; peers by their index. Not thread-safe: the gossiper's lock.
 */
#include "cluster/peer.h"

enum {
	FAILURE_DETECTOR_WINDOW = 1000, /* intervals that the mean is made of */
	FAILURE_DETECTOR_WINDOW_FIRST = 8, /* room at first; it grows */
};

#define FAILURE_DETECTOR_PHI_FACTOR 0.43429448190325176 /* 1 / ln(10) */

struct failure_detector_options {
	double phi_threshold; /* phi_convict_threshold: 5..16; 8 */
	uint64_t interval_ns; /* of gossip; the first interval is taken to be twice that */
	uint64_t
	    interval_max_ns; /* longer ones are not learned (fd_max_interval_ms): twice interval_ns */
	uint64_t pause_ns; /* fd_max_local_pause_ms: 5 s; 0: no guard */
};

struct failure_detector;

struct failure_detector *
failure_detector_new(const struct failure_detector_options *options, uint64_t now_ns);
void failure_detector_free(struct failure_detector *detector);
/* nodetool, and admin's setting of phi_convict_threshold. */
void failure_detector_set_threshold(struct failure_detector *detector, double threshold);
double failure_detector_threshold(const struct failure_detector *detector);

/* News of the peer came: a newer heartbeat or generation. */
void failure_detector_report(
    struct failure_detector *detector, const struct peer *peer, uint64_t now_ns);
/* Forget its intervals. */
void failure_detector_remove(struct failure_detector *detector, const struct peer *peer);
/*
 * Once in each round, before failure_detector_convicts(): false when this process stood still for
 * longer than pause_ns since the last call, or did so less than pause_ns ago: no verdicts now.
 */
bool failure_detector_may_judge(struct failure_detector *detector, uint64_t now_ns);
/*
 * Is it dead? True when phi is above `share` (0..1] of the threshold. Share 1 is the rule; less is for who has more
 * evidence than silence. A peer never reported of is not convicted.
 */
bool failure_detector_convicts(const struct failure_detector *detector, const struct peer *peer,
    double share, uint64_t now_ns);
/* 0 for a peer never reported of. */
double failure_detector_phi(
    const struct failure_detector *detector, const struct peer *peer, uint64_t now_ns);
/* Time of the last report; 0: never. Mean of the window, ns; 0: empty. */
uint64_t failure_detector_last(const struct failure_detector *detector, const struct peer *peer);
uint64_t failure_detector_mean(const struct failure_detector *detector, const struct peer *peer);

#endif
