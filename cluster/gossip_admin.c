/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operators do to nodes that cannot speak for themselves any more, and what they look at.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/gossip_internal.h"

enum {
	ASSASSINATE_HEARTBEAT = 9999, /* of a node that nobody knows */
	ASSASSINATE_AHEAD_S = 60,
	ASSASSINATE_ROUNDS = 4, /* for others to hear of it */
	GOSSIP_COLUMN_MAX = 64, /* longer than any state's name and "_version" */
};

/* ---- Writing in another node's name ---- */

/* All values in a new order of versions from 1: those of the life before may be as high as versions go. */
static uint32_t
gossip_renumber(const struct gossip_values *values, struct gossip_delta_value out[STATE_COUNT])
{
	uint32_t count = 0;

	for (int state = 0; state < STATE_COUNT; state++) {
		struct slice value = gossip_values_get(values, (enum application_state)state, NULL);

		if (value.data == NULL)
			continue;
		out[count] = (struct gossip_delta_value){
		    (enum application_state)state, (int32_t)count + 1, value};
		count++;
	}
	return count;
}

/*
 * A new life of the node, made by us: one generation above what is known, so that all take it whole. Its status has
 * versions of this node's, so that of two who write at once one is the newer.
 */
static void
gossip_overwrite_locked(struct gossip *gossip, struct gossip_endpoint *endpoint,
    const struct node_status *status, const struct uuid *coordinator)
{
	struct gossip_delta_value values[STATE_COUNT + 3];
	struct gossip_values *old = endpoint->values;
	struct buffer with_port, without, remover;
	uint32_t count, changed;
	char text[UUID_TEXT_SIZE];

	buffer_init(&with_port);
	buffer_init(&without);
	buffer_init(&remover);
	node_status_format(status, true, &with_port);
	node_status_format(status, false, &without);
	count = gossip_renumber(old, values);
	if (gossip->version < STATE_COUNT)
		gossip->version = STATE_COUNT;
	values[count++] = (struct gossip_delta_value){
	    STATE_STATUS_WITH_PORT, ++gossip->version, buffer_slice(&with_port)};
	values[count++] =
	    (struct gossip_delta_value){STATE_STATUS, ++gossip->version, buffer_slice(&without)};
	if (coordinator != NULL) {
		uuid_format(coordinator, text);
		buffer_printf(&remover, "REMOVER,%s", text);
		values[count++] = (struct gossip_delta_value){
		    STATE_REMOVAL_COORDINATOR, ++gossip->version, buffer_slice(&remover)};
	}
	endpoint->generation++;
	endpoint->heartbeat = endpoint->version_max = ++gossip->version;
	endpoint->values = NULL;
	gossip_merge_locked(gossip, endpoint, values, count);
	gossip_retire_locked(gossip, old);
	buffer_fini(&with_port);
	buffer_fini(&without);
	buffer_fini(&remover);
	changed = application_state_bit(STATE_STATUS) |
	    application_state_bit(STATE_STATUS_WITH_PORT) |
	    (coordinator == NULL ? 0 : application_state_bit(STATE_REMOVAL_COORDINATOR));
	endpoint->updated_ns = gossip_now_ns(gossip);
	gossip_event_locked(gossip, GOSSIP_EVENT_CHANGE, endpoint->peer, changed);
	gossip_follow_status_locked(gossip, endpoint);
	gossip_rumor_locked(gossip, endpoint);
}

int
gossip_advertise(struct gossip *gossip, struct peer *peer, const struct node_status *status,
    const struct uuid *coordinator, struct error *err)
{
	struct gossip_endpoint *endpoint;
	char text[ENDPOINT_TEXT_SIZE];

	lock_take(&gossip->lock);
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint == NULL || peer->is_local) {
		lock_drop(&gossip->lock);
		return error_set(err, ERROR_INVALID, "%s is not a node that gossip knows",
		    endpoint_format(&peer->endpoint, text));
	}
	gossip_overwrite_locked(gossip, endpoint, status, coordinator);
	lock_drop(&gossip->lock);
	gossip_flush(gossip, NULL);
	return 0;
}

void
gossip_replaced(struct gossip *gossip, struct peer *peer)
{
	struct gossip_endpoint *endpoint;

	lock_take(&gossip->lock);
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint != NULL && !peer->is_local) {
		gossip_remove_locked(gossip, endpoint);
		gossip_evict_locked(gossip, endpoint);
		gossip_quarantine_locked(
		    gossip, peer, INT32_MAX, 4 * gossip->options.ring_delay_ns);
	}
	lock_drop(&gossip->lock);
	gossip_flush(gossip, NULL);
}

/* ---- Assassinate ---- */

enum assassinate_phase { ASSASSINATE_WATCH, ASSASSINATE_SPREAD };

void
gossip_assassinate(struct gossip *gossip, struct peer *peer, struct gossip_wait *wait)
{
	struct gossip_endpoint *endpoint;
	char text[ENDPOINT_TEXT_SIZE];

	lock_take(&gossip->lock);
	wait->gossip = gossip;
	wait->peer = peer;
	wait->pending = ASSASSINATE_WATCH;
	wait->generation = wait->heartbeat = 0;
	wait->until_ns = gossip_now_ns(gossip) + gossip->options.ring_delay_ns;
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint != NULL) {
		wait->generation = endpoint->generation;
		wait->heartbeat = endpoint->heartbeat;
	} else {
		wait->until_ns = 0; /* nobody can be disturbed */
	}
	wait->next = gossip->assassinations;
	gossip->assassinations = wait;
	lock_drop(&gossip->lock);
	log_warn("Assassinating %s via gossip", endpoint_format(&peer->endpoint, text));
	gossip_timer_arm(&gossip->start, 0);
}

static void
gossip_kill_locked(struct gossip *gossip, struct gossip_wait *wait)
{
	struct gossip_endpoint *endpoint = gossip_find_locked(gossip, wait->peer);
	struct node_status status = {.kind = NODE_STATUS_LEFT};
	int64_t *tokens;
	uint32_t count;

	if (endpoint == NULL) {
		endpoint = gossip_add_locked(gossip, wait->peer);
		endpoint->generation =
		    (int32_t)(gossip_wall_ms(gossip) / 1000) + ASSASSINATE_AHEAD_S;
		endpoint->heartbeat = endpoint->version_max = ASSASSINATE_HEARTBEAT;
	}
	if (tokens_decode(gossip_values_get(endpoint->values, STATE_TOKENS, NULL), &tokens, &count,
		NULL) == 0 &&
	    count > 0) {
		status.token = tokens[0];
		free(tokens);
	} else {
		status.token = (int64_t)((uint64_t)gossip_chance(gossip, UINT32_MAX) << 32 |
		    gossip_chance(gossip, UINT32_MAX));
	}
	status.expires_ms = gossip_wall_ms(gossip) + GOSSIP_EXPIRE_MS;
	gossip_overwrite_locked(gossip, endpoint, &status, NULL);
}

/* 1: done, 0: not yet, -1: it lives. */
static int
gossip_assassinate_one(struct gossip *gossip, struct gossip_wait *wait, struct error *err)
{
	struct gossip_endpoint *endpoint = gossip_find_locked(gossip, wait->peer);
	char text[ENDPOINT_TEXT_SIZE];

	endpoint_format(&wait->peer->endpoint, text);
	if (wait->peer->is_local)
		return error_set(
		    err, ERROR_INVALID, "%s is this node: it cannot assassinate itself", text);
	if (!gossip->is_running)
		return error_set(err, ERROR_SERVER, "Gossip is not running");
	if (wait->pending == ASSASSINATE_WATCH && endpoint != NULL && wait->generation != 0) {
		if (endpoint->generation != wait->generation)
			return error_set(err, ERROR_SERVER,
			    "Endpoint still alive: %s generation changed while trying to "
			    "assassinate it",
			    text);
		if (endpoint->heartbeat != wait->heartbeat)
			return error_set(err, ERROR_SERVER,
			    "Endpoint still alive: %s heartbeat changed while trying to "
			    "assassinate it",
			    text);
	}
	if (gossip_now_ns(gossip) < wait->until_ns)
		return 0;
	if (wait->pending == ASSASSINATE_SPREAD)
		return 1;
	gossip_kill_locked(gossip, wait);
	wait->pending = ASSASSINATE_SPREAD;
	wait->until_ns = gossip_now_ns(gossip) + ASSASSINATE_ROUNDS * gossip->options.interval_ns;
	return 0;
}

bool
gossip_assassinate_step(struct gossip *gossip)
{
	for (;;) {
		struct gossip_wait **at, *wait = NULL;
		struct error err;
		bool is_over;
		int rc = 0;

		lock_take(&gossip->lock);
		for (at = &gossip->assassinations; *at != NULL; at = &(*at)->next) {
			rc = gossip_assassinate_one(gossip, *at, &err);
			if (rc != 0) {
				wait = *at;
				*at = wait->next;
				break;
			}
		}
		is_over = gossip->assassinations == NULL;
		lock_drop(&gossip->lock);
		if (wait == NULL)
			return !is_over;
		if (rc > 0) {
			char text[ENDPOINT_TEXT_SIZE];

			log_warn("Finished assassinating %s",
			    endpoint_format(&wait->peer->endpoint, text));
		}
		wait->on_done(wait, rc < 0 ? &err : NULL);
	}
}

/* ---- Looking ---- */

/* A copy, so that nobody waits while it is looked at. */
struct gossip_copy {
	struct peer *peer;
	struct gossip_values *values; /* owned */
	int32_t generation, heartbeat;
	bool is_alive;
	double phi;
};

static struct gossip_values *
gossip_values_copy(const struct gossip_values *values)
{
	size_t size = values == NULL
	    ? 0
	    : sizeof(*values) + gossip_values_count(values) * sizeof(values->at[0]) + values->size;
	struct gossip_values *copy = size == 0 ? NULL : xmalloc(size);

	if (copy != NULL)
		memcpy(copy, values, size);
	return copy;
}

static int
gossip_copy_compare(const void *a, const void *b)
{
	const struct gossip_copy *left = a, *right = b;

	return endpoint_compare(&left->peer->endpoint, &right->peer->endpoint);
}

void
gossip_each(
    struct gossip *gossip, void (*each)(void *context, const struct gossip_row *row), void *context)
{
	uint64_t now = gossip_now_ns(gossip);
	struct gossip_copy *copies;
	uint32_t count;

	lock_take(&gossip->lock);
	count = gossip->order.count;
	copies = xcalloc(count + 1, sizeof(*copies));
	for (uint32_t i = 0; i < count; i++) {
		const struct gossip_endpoint *endpoint = gossip->order.at[i];

		copies[i] = (struct gossip_copy){
		    .peer = endpoint->peer,
		    .values = gossip_values_copy(endpoint->values),
		    .generation = endpoint->generation,
		    .heartbeat = endpoint->heartbeat,
		    .is_alive = endpoint->list == GOSSIP_LIVE || endpoint->peer->is_local,
		    .phi = failure_detector_phi(gossip->detector, endpoint->peer, now),
		};
	}
	lock_drop(&gossip->lock);
	qsort(copies, count, sizeof(*copies), gossip_copy_compare);
	for (uint32_t i = 0; i < count; i++) {
		struct gossip_row row = {
		    .peer = copies[i].peer,
		    .generation = copies[i].generation,
		    .heartbeat = copies[i].heartbeat,
		    .is_alive = copies[i].is_alive,
		    .is_local = copies[i].peer->is_local,
		    .phi = copies[i].phi,
		};

		for (int state = 0; state < STATE_COUNT; state++)
			row.states[state].value = gossip_values_get(copies[i].values,
			    (enum application_state)state, &row.states[state].version);
		each(context, &row);
		free(copies[i].values);
	}
	free(copies);
}

void
gossip_row_columns(const struct gossip_row *row, const struct gossip_columns *to)
{
	char text[ENDPOINT_TEXT_SIZE];

	to->key(to->context, &row->peer->endpoint);
	/* Cassandra looks the name up; an address is its own name where nobody may wait for a resolver. */
	to->text(to->context, "hostname",
	    slice_of_string(endpoint_format_address(&row->peer->endpoint, text)));
	to->number(to->context, "generation", row->generation);
	to->number(to->context, "heartbeat", row->heartbeat);
	for (int state = 0; state < STATE_COUNT; state++) {
		const char *name = application_state_name((enum application_state)state);
		char column[GOSSIP_COLUMN_MAX];
		size_t length = strlen(name);

		if (row->states[state].value.data == NULL)
			continue;
		for (size_t i = 0; i <= length; i++)
			column[i] = (char)tolower((unsigned char)name[i]);
		if (state != STATE_TOKENS)
			to->text(to->context, column, row->states[state].value);
		memcpy(column + length, "_version", sizeof("_version"));
		to->number(to->context, column, row->states[state].version);
	}
}

struct gossip_info {
	bool with_port;
	struct buffer *out;
};

static void
gossip_info_row(void *context, const struct gossip_row *row)
{
	struct gossip_info *info = context;
	char text[ENDPOINT_TEXT_SIZE];

	buffer_printf(info->out, "/%s\n  generation:%" PRId32 "\n  heartbeat:%" PRId32 "\n",
	    info->with_port ? endpoint_format(&row->peer->endpoint, text)
			    : endpoint_format_address(&row->peer->endpoint, text),
	    row->generation, row->heartbeat);
	for (int state = 0; state < STATE_COUNT; state++) {
		if (row->states[state].value.data == NULL || state == STATE_TOKENS)
			continue;
		buffer_printf(info->out, "  %s:%" PRId32 ":",
		    application_state_name((enum application_state)state),
		    row->states[state].version);
		buffer_put_slice(info->out, row->states[state].value);
		buffer_put_u8(info->out, '\n');
	}
	if (row->states[STATE_TOKENS].value.data != NULL)
		buffer_printf(info->out, "  TOKENS:%" PRId32 ":<hidden>\n",
		    row->states[STATE_TOKENS].version);
	else
		buffer_put_string(info->out, "  TOKENS: not present\n");
}

void
gossip_info(struct gossip *gossip, bool with_port, struct buffer *out)
{
	struct gossip_info info = {with_port, out};

	gossip_each(gossip, gossip_info_row, &info);
}
