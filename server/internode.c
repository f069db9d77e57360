/* SPDX-License-Identifier: Apache-2.0 */
#include "server/internode.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/interface.h"
#include "server/internode_internal.h"
#include "server/network_internal.h"
#include "server/ranks.h"

enum { INTERNODE_BACKLOG = 512 };

/* ---- Addresses ------------------------------------------------------------------------------ */

static int
internode_listen_address(
    const struct config *config, char out[ENDPOINT_TEXT_SIZE], struct error *err)
{
	if (config->listen_interface != NULL && *config->listen_interface != '\0')
		return interface_address("listen_interface", config->listen_interface,
		    config->listen_interface_prefer_ipv6, out, err);
	snprintf(out, ENDPOINT_TEXT_SIZE, "%s", config->listen_address);
	return 0;
}

int
internode_local_endpoint(const struct config *config, struct endpoint *out, struct error *err)
{
	const char *broadcast = config->broadcast_address;
	char listen[ENDPOINT_TEXT_SIZE];

	if (broadcast == NULL || *broadcast == '\0') {
		if (internode_listen_address(config, listen, err) != 0)
			return -1;
		broadcast = listen;
	}
	if (endpoint_parse(broadcast, (uint16_t)config->storage_port, out, err) != 0) {
		err->code = ERROR_CONFIG;
		error_prefix(err, "the address of this node");
		return -1;
	}
	return 0;
}

/* ---- Construction --------------------------------------------------------------------------- */

static enum internode_scope
internode_scope_of(const char *text)
{
	if (text == NULL || strcmp(text, "none") == 0)
		return INTERNODE_NONE;
	if (strcmp(text, "rack") == 0)
		return INTERNODE_RACK;
	return strcmp(text, "dc") == 0 ? INTERNODE_DC : INTERNODE_ALL;
}

/* A connection counts its bytes in so many bits (INTERNODE_HELD_ONE); the rest is room for a read that goes over a limit. */
static uint64_t
internode_receive_limit(int64_t bytes)
{
	return (uint64_t)bytes < INTERNODE_HELD_ONE / 4 ? (uint64_t)bytes : INTERNODE_HELD_ONE / 4;
}

static void
internode_configure(struct internode *internode)
{
	const struct config *config = internode->node->config;

	internode->send_capacity = (uint64_t)config->internode_application_send_queue_capacity;
	internode->send_endpoint_max =
	    (uint64_t)config->internode_application_send_queue_reserve_endpoint_capacity;
	internode->send_global_max =
	    (uint64_t)config->internode_application_send_queue_reserve_global_capacity;
	internode->receive_capacity =
	    internode_receive_limit(config->internode_application_receive_queue_capacity);
	internode->receive_endpoint_max = internode_receive_limit(
	    config->internode_application_receive_queue_reserve_endpoint_capacity);
	internode->receive_global_max = internode_receive_limit(
	    config->internode_application_receive_queue_reserve_global_capacity);
	internode->message_max = (size_t)config->internode_max_message_size;
	internode->compression = internode_scope_of(config->internode_compression);
	internode->encryption =
	    internode_scope_of(config->server_encryption_options__internode_encryption);
	internode->counts_waiting = config->internode_timeout;
	internode->is_tls_optional = config->server_encryption_options__optional;
}

struct internode *
internode_new(struct node *node, struct peers *peers)
{
	struct internode *internode = xzalloc(sizeof(*internode));

	internode->env = (struct cluster_env){.env = node->env,
	    .submit = internode_submit,
	    .timer_start = internode_timer_start,
	    .timer_stop = internode_timer_stop,
	    .send = internode_send,
	    .answer = internode_answer,
	    .stream_open = internode_stream_open};
	internode->node = node;
	internode->peers = peers;
	internode->local = peers_local(peers)->endpoint;
	for (int i = 0; i < INTERNODE_LISTENERS; i++)
		internode->listen_fds[i] = -1;
	lock_init(&internode->lock, "internode", RANK_INTERNODE);
	internode_configure(internode);
	internode_timers_start(internode);
	return internode;
}

struct cluster_env *
internode_env(struct internode *internode)
{
	return &internode->env;
}

void
internode_set_places(struct internode *internode, const struct internode_places *places)
{
	internode->places = *places;
}

static void
internode_unlisten(struct internode *internode)
{
	for (int i = 0; i < INTERNODE_LISTENERS; i++) {
		if (internode->listen_fds[i] >= 0)
			close(internode->listen_fds[i]);
		internode->listen_fds[i] = -1;
	}
}

void
internode_set_refused(struct internode *internode, internode_refused_fn refused, void *context)
{
	internode->on_refused = refused;
	internode->on_refused_context = context;
}

void
internode_free(struct internode *internode)
{
	if (internode == NULL)
		return;
	internode_stop_timers(internode);
	internode_unlisten(internode);
	for (uint32_t i = 0; i < peers_count(internode->peers); i++) {
		struct peer *peer = peers_at(internode->peers, i);
		void *link = atomic_exchange(&peer->link, NULL);

		if (link != NULL)
			internode_peer_free(link);
	}
	if (internode->loops != NULL)
		for (uint32_t i = 0; i < internode->loop_count; i++) {
			free(internode->loops[i].read_memory);
			internode_answers_fini(&internode->loops[i].answers);
		}
	free(internode->loops);
	tls_context_unref(internode->tls);
	timer_wheel_fini(&internode->timers.wheel);
	close(internode->timers.wake_fd);
	lock_fini(&internode->timers.lock);
	lock_fini(&internode->lock);
	free(internode);
}

/* ---- Who is where --------------------------------------------------------------------------- */

bool
internode_is_for(
    const struct internode *internode, enum internode_scope scope, const struct peer *peer)
{
	const struct internode_places *places = &internode->places;
	const struct config *config = internode->node->config;
	const char *datacenter, *rack;

	if (scope == INTERNODE_NONE || scope == INTERNODE_ALL)
		return scope == INTERNODE_ALL;
	datacenter = places->datacenter == NULL ? NULL : places->datacenter(places->context, peer);
	if (datacenter == NULL || strcmp(datacenter, config->dc) != 0)
		return true;
	if (scope == INTERNODE_DC)
		return false;
	rack = places->rack == NULL ? NULL : places->rack(places->context, peer);
	return rack == NULL || strcmp(rack, config->rack) != 0;
}

struct tls_context *
internode_tls(struct internode *internode)
{
	struct tls_context *context;

	lock_take(&internode->lock);
	context = internode->tls == NULL ? NULL : tls_context_ref(internode->tls);
	lock_drop(&internode->lock);
	return context;
}

int
internode_reload_tls(struct internode *internode, struct error *err)
{
	struct tls_context *context, *old;
	struct tls_options options;

	if (internode->encryption == INTERNODE_NONE)
		return 0;
	tls_internode_options(internode->node->config, &options);
	if (tls_context_new(&options, &context, err) != 0)
		return -1;
	lock_take(&internode->lock);
	old = internode->tls;
	internode->tls = context;
	lock_drop(&internode->lock);
	tls_context_unref(old);
	return 0;
}

struct loop *
internode_next_loop(struct internode *internode)
{
	struct network *network = internode->node->network;
	uint32_t next = atomic_fetch_add_explicit(&internode->next_loop, 1, memory_order_relaxed);

	return &network->loops[next % network->loop_count];
}

/* ---- Start and stop ------------------------------------------------------------------------- */

static int
internode_listen_at(
    const struct internode *internode, const char *address, int *out, struct error *err)
{
	struct addrinfo hints = {
	    .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char port[16];
	int fd, on = 1, rc;

	snprintf(port, sizeof(port), "%u", internode->local.port);
	rc = getaddrinfo(address, port, &hints, &found);
	if (rc != 0)
		return error_set(
		    err, ERROR_CONFIG, "listen_address: %s: %s", address, gai_strerror(rc));
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
	    listen(fd, INTERNODE_BACKLOG) != 0) {
		rc = errno;
		if (fd >= 0)
			close(fd);
		freeaddrinfo(found);
		return error_set_errno(err, rc, "cannot listen for other nodes on %s:%s%s", address,
		    port, rc == EADDRINUSE ? " (is another node running there?)" : "");
	}
	freeaddrinfo(found);
	*out = fd;
	return 0;
}

static int
internode_listen(struct internode *internode, struct error *err)
{
	const struct config *config = internode->node->config;
	const char *broadcast = config->broadcast_address;

	if (internode_listen_at(
		internode, internode->listen_address, &internode->listen_fds[0], err) != 0)
		return -1;
	if (!config->listen_on_broadcast_address || broadcast == NULL || *broadcast == '\0' ||
	    strcmp(broadcast, internode->listen_address) == 0)
		return 0;
	return internode_listen_at(internode, broadcast, &internode->listen_fds[1], err);
}

static void
internode_begin_here(struct network *network, struct loop *loop)
{
	struct internode *internode = network->node->internode;
	struct internode_loop *here = &internode->loops[loop->index];

	here->internode = internode;
	here->read_memory = xmalloc(INTERNODE_READ_SIZE);
	loop->internode = here;
}

/* When all loops have begun: whom the first one accepts may go to any of them. */
static void
internode_accept_here(struct network *network, struct loop *loop)
{
	struct internode *internode = network->node->internode;

	if (loop->index != 0)
		return;
	for (int i = 0; i < INTERNODE_LISTENERS; i++) {
		if (internode->listen_fds[i] < 0)
			continue;
		internode->accept_events[i] = event_new(loop->base, internode->listen_fds[i],
		    EV_READ | EV_PERSIST, internode_accept_cb, internode);
		if (internode->accept_events[i] != NULL)
			event_add(internode->accept_events[i], NULL);
	}
}

int
internode_start(struct internode *internode, struct messaging *messaging, struct error *err)
{
	struct network *network = internode->node->network;

	internode->messaging = messaging;
	internode->loop_count = network->loop_count;
	internode->loops = xcalloc(network->loop_count, sizeof(*internode->loops));
	if (internode_listen_address(internode->node->config, internode->listen_address, err) !=
		0 ||
	    internode_reload_tls(internode, err) != 0 || internode_listen(internode, err) != 0)
		return -1;
	atomic_store(&internode->is_running, true);
	network_on_each_loop(network, internode_begin_here);
	network_on_each_loop(network, internode_accept_here);
	log_info("Starting Messaging Service on /%s:%u (%s)", internode->listen_address,
	    internode->local.port,
	    internode->encryption == INTERNODE_NONE ? "unencrypted"
		: internode->encryption == INTERNODE_ALL && !internode->is_tls_optional
		? "encrypted"
		: "encrypted and unencrypted");
	return 0;
}

static void
internode_end_here(struct network *network, struct loop *loop)
{
	struct internode *internode = network->node->internode;
	struct internode_loop *here = loop->internode;

	if (here == NULL)
		return;
	for (int i = 0; loop->index == 0 && i < INTERNODE_LISTENERS; i++) {
		if (internode->accept_events[i] != NULL)
			event_free(internode->accept_events[i]);
		internode->accept_events[i] = NULL;
	}
	while (here->inbound != NULL)
		internode_inbound_close(here->inbound);
	internode_streams_end(here);
	for (uint32_t i = 0; i < peers_count(internode->peers); i++) {
		struct internode_peer *peer = atomic_load_explicit(
		    &peers_at(internode->peers, i)->link, memory_order_acquire);

		for (int kind = 0; peer != NULL && kind < INTERNODE_KINDS; kind++)
			if (peer->links[kind].loop == loop)
				internode_link_end(&peer->links[kind]);
	}
}

void
internode_stop(struct internode *internode)
{
	if (!atomic_exchange(&internode->is_running, false))
		return;
	network_on_each_loop(internode->node->network, internode_end_here);
	internode_streams_end_dropped(internode);
	internode_unlisten(internode);
	log_info("Messaging service stopped");
}

void
internode_peer_is_down(struct internode *internode, struct peer *peer)
{
	struct internode_peer *self = atomic_load_explicit(&peer->link, memory_order_acquire);

	if (self == NULL || !atomic_load(&internode->is_running))
		return;
	for (int kind = 0; kind < INTERNODE_KINDS; kind++) {
		struct internode_link *link = &self->links[kind];

		atomic_store(&link->is_drop_wanted, true);
		internode_link_wake(link);
	}
}

/* ---- What others ask ------------------------------------------------------------------------ */

static void
internode_tell_outbound(struct internode_link *link, internode_outbound_fn each, void *argument)
{
	struct internode_outbound told = {
	    .peer = link->peer->peer,
	    .kind = link->kind,
	    .is_connected = atomic_load_explicit(&link->is_connected, memory_order_relaxed),
	    .connection_attempts = internode_get(&link->attempts),
	    .successful_connection_attempts = internode_get(&link->successes),
	    .sent_count = internode_get(&link->sent_count),
	    .sent_bytes = internode_get(&link->sent_bytes),
	    .expired_count = internode_get(&link->expired_count),
	    .expired_bytes = internode_get(&link->expired_bytes),
	    .error_count = internode_get(&link->error_count),
	    .error_bytes = internode_get(&link->error_bytes),
	    .reserve_bytes = internode_get(&link->peer->send_reserve),
	};

	lock_take(&link->lock);
	told.pending_count = link->pending_count;
	told.pending_bytes = link->pending_bytes;
	told.overload_count = link->overload_count;
	told.overload_bytes = link->overload_bytes;
	lock_drop(&link->lock);
	each(argument, &told);
}

void
internode_each_outbound(struct internode *internode, internode_outbound_fn each, void *argument)
{
	for (uint32_t i = 0; i < peers_count(internode->peers); i++) {
		struct internode_peer *peer = atomic_load_explicit(
		    &peers_at(internode->peers, i)->link, memory_order_acquire);

		for (int kind = 0; peer != NULL && kind < INTERNODE_KINDS; kind++)
			internode_tell_outbound(&peer->links[kind], each, argument);
	}
}

void
internode_each_inbound(struct internode *internode, internode_inbound_fn each, void *argument)
{
	for (uint32_t i = 0; i < peers_count(internode->peers); i++) {
		struct peer *peer = peers_at(internode->peers, i);
		struct internode_peer *self =
		    atomic_load_explicit(&peer->link, memory_order_acquire);
		struct internode_inbound told;
		uint64_t done_count, done_bytes;

		if (self == NULL)
			continue;
		told = (struct internode_inbound){
		    .peer = peer,
		    .connections = internode_get(&self->connections),
		    .processed_count = internode_get(&self->processed_count),
		    .processed_bytes = internode_get(&self->processed_bytes),
		    .expired_count = internode_get(&self->expired_count),
		    .expired_bytes = internode_get(&self->expired_bytes),
		    .error_count = internode_get(&self->error_count),
		    .error_bytes = internode_get(&self->error_bytes),
		    .corrupt_frames_recovered = internode_get(&self->recovered),
		    .corrupt_frames_unrecovered = internode_get(&self->unrecovered),
		    .throttled_count = internode_get(&self->throttled_count),
		    .throttled_nanos = internode_get(&self->throttled_ns),
		    .using_reserve_bytes = internode_get(&self->receive_reserve),
		};
		/* Last: what is done with was received before. */
		told.received_count = internode_get(&self->received_count);
		told.received_bytes = internode_get(&self->received_bytes);
		done_count = told.processed_count + told.expired_count + told.error_count;
		done_bytes = told.processed_bytes + told.expired_bytes + told.error_bytes;
		told.scheduled_count =
		    told.received_count > done_count ? told.received_count - done_count : 0;
		told.scheduled_bytes =
		    told.received_bytes > done_bytes ? told.received_bytes - done_bytes : 0;
		told.using_bytes = told.scheduled_bytes;
		each(argument, &told);
	}
}
