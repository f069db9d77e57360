/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/stream_session.h"

/*
 * What became of plans (streaming/StreamingState): those under way and the last that ended, for who looks on. The list is under
 * streams->lock, before a session's lock.
 */

enum { STREAM_HISTORIES_KEPT = 100 };

struct stream_history {
	struct stream_history *next;
	struct uuid plan_id;
	enum stream_operation operation;
	bool is_follower;
	struct peer **peers; /* owned */
	uint32_t peer_count;
	uint32_t open; /* sessions that have not ended */
	int64_t init_ms, start_ms, end_ms; /* 0: not yet */
	bool has_failed;
	char failure[ERROR_TEXT_MAX];
	struct stream_sums ended; /* of sessions that are gone */
};

static int64_t
stream_history_now_ms(const struct streams *streams)
{
	return (int64_t)(env_wall_us(streams->env->env) / 1000);
}

/* The two sides of a plan have one id: of a node that streams with itself in tests too. */
static struct stream_history *
stream_history_find_locked(struct streams *streams, const struct stream_session *session)
{
	lock_assert_held(&streams->lock);
	for (struct stream_history *plan = streams->histories; plan != NULL; plan = plan->next)
		if (uuid_equal(&plan->plan_id, &session->plan_id) &&
		    plan->is_follower == session->is_follower)
			return plan;
	return NULL;
}

static void
stream_history_free(struct stream_history *plan)
{
	free(plan->peers);
	free(plan);
}

/* Of those that ended and are too many, the oldest. */
static void
stream_history_forget_locked(struct streams *streams)
{
	struct stream_history **oldest = NULL, *old;
	uint32_t ended = 0;

	for (struct stream_history **at = &streams->histories; *at != NULL; at = &(*at)->next) {
		if ((*at)->open > 0)
			continue;
		ended++;
		oldest = at;
	}
	if (ended <= STREAM_HISTORIES_KEPT)
		return;
	old = *oldest;
	*oldest = old->next;
	stream_history_free(old);
}

void
stream_history_begin(struct stream_session *session)
{
	struct streams *streams = session->streams;
	struct stream_history *plan;
	bool is_known = false;

	lock_take(&streams->lock);
	plan = stream_history_find_locked(streams, session);
	if (plan == NULL) {
		plan = xzalloc(sizeof(*plan));
		plan->plan_id = session->plan_id;
		plan->operation = session->operation;
		plan->is_follower = session->is_follower;
		plan->init_ms = stream_history_now_ms(streams);
		plan->next = streams->histories;
		streams->histories = plan;
		plan->open = 1;
	} else {
		plan->open++;
	}
	plan->end_ms = 0;
	for (uint32_t i = 0; i < plan->peer_count && !is_known; i++)
		is_known = plan->peers[i] == session->peer;
	if (!is_known) {
		plan->peers = xrealloc(plan->peers, (plan->peer_count + 1) * sizeof(struct peer *));
		plan->peers[plan->peer_count++] = session->peer;
	}
	session->has_history = true;
	lock_drop(&streams->lock);
}

void
stream_history_start(struct stream_session *session)
{
	struct streams *streams = session->streams;
	struct stream_history *plan;

	lock_take(&streams->lock);
	plan = stream_history_find_locked(streams, session);
	if (plan != NULL && plan->start_ms == 0)
		plan->start_ms = stream_history_now_ms(streams);
	lock_drop(&streams->lock);
}

static void
stream_sums_add(struct stream_sums *sums, const struct stream_flow *receiving,
    const struct stream_flow *sending)
{
	sums->bytes_to_receive += receiving->bytes;
	sums->bytes_received += receiving->bytes_done;
	sums->files_to_receive += receiving->files;
	sums->files_received += receiving->files_done;
	sums->bytes_to_send += sending->bytes;
	sums->bytes_sent += sending->bytes_done;
	sums->files_to_send += sending->files;
	sums->files_sent += sending->files_done;
}

void
stream_history_end(struct stream_session *session, const struct error *err)
{
	struct streams *streams = session->streams;
	struct stream_history *plan;

	lock_take(&streams->lock);
	plan = session->has_history ? stream_history_find_locked(streams, session) : NULL;
	session->has_history = false;
	if (plan != NULL) {
		lock_take(&session->lock);
		stream_sums_add(&plan->ended, &session->receiving.flow, &session->sending.flow);
		lock_drop(&session->lock);
		if (err != NULL && !plan->has_failed) {
			plan->has_failed = true;
			snprintf(plan->failure, sizeof(plan->failure), "%s", err->text);
		}
		if (--plan->open == 0) {
			plan->end_ms = stream_history_now_ms(streams);
			stream_history_forget_locked(streams);
		}
	}
	lock_drop(&streams->lock);
}

void
stream_history_move(struct stream_session *session, struct stream_session *old)
{
	lock_take(&session->streams->lock);
	session->has_history = old->has_history;
	old->has_history = false;
	lock_drop(&session->streams->lock);
}

void
streams_each_plan(struct streams *streams,
    void (*each)(void *context, const struct stream_plan_info *info), void *context)
{
	lock_take(&streams->lock);
	for (const struct stream_history *plan = streams->histories; plan != NULL;
	     plan = plan->next) {
		struct stream_plan_info info = {.plan_id = plan->plan_id,
		    .operation = plan->operation,
		    .is_follower = plan->is_follower,
		    .peers = plan->peers,
		    .peer_count = plan->peer_count,
		    .init_ms = plan->init_ms,
		    .start_ms = plan->start_ms,
		    .end_ms = plan->end_ms,
		    .failure = plan->has_failed ? plan->failure : NULL,
		    .sums = plan->ended};

		for (struct stream_session *at = streams->sessions; at != NULL; at = at->next) {
			if (!at->has_history || !uuid_equal(&at->plan_id, &plan->plan_id) ||
			    at->is_follower != plan->is_follower)
				continue;
			lock_take(&at->lock);
			stream_sums_add(&info.sums, &at->receiving.flow, &at->sending.flow);
			lock_drop(&at->lock);
		}
		each(context, &info);
	}
	lock_drop(&streams->lock);
}

void
stream_histories_free(struct streams *streams)
{
	while (streams->histories != NULL) {
		struct stream_history *plan = streams->histories;

		streams->histories = plan->next;
		stream_history_free(plan);
	}
}
