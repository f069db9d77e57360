/* SPDX-License-Identifier: Apache-2.0 */
#include "server/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "protocol/envelope.h"
#include "server/connection.h"
#include "server/network_internal.h"
#include "server/ranks.h"

enum {
	NETWORK_BACKLOG = 1024,
	NETWORK_ACCEPTS_MAX = 64, /* in one turn */
};

/* ---- construction ------------------------------------------------------------------------------------- */

static void
network_configure(struct network *network)
{
	const struct config *config = network->node->config;
	const char *authenticator = config->authenticator;

	network->limits.connections_max = config->native_transport_max_concurrent_connections;
	network->limits.connections_per_ip_max =
	    config->native_transport_max_concurrent_connections_per_ip;
	if (config->native_transport_max_request_data_in_flight > 0)
		atomic_store(&network->limits.bytes_max,
		    config->native_transport_max_request_data_in_flight);
	if (config->native_transport_max_request_data_in_flight_per_ip > 0)
		atomic_store(&network->limits.bytes_per_ip_max,
		    config->native_transport_max_request_data_in_flight_per_ip);
	network->frame_size_max = (uint32_t)config->native_transport_max_frame_size;
	network->receive_queue_bytes = (uint64_t)config->native_transport_receive_queue_capacity;
	network->idle_timeout_ns = config->native_transport_idle_timeout > 0
	    ? (uint64_t)config->native_transport_idle_timeout * 1000000
	    : 0;
	atomic_init(
	    &network->allows_older_versions, config->native_transport_allow_older_protocols);
	network->version_max = PROTOCOL_VERSION_MAX;
	if (config->native_transport_max_negotiable_protocol_version >= PROTOCOL_VERSION_MIN &&
	    config->native_transport_max_negotiable_protocol_version < PROTOCOL_VERSION_MAX)
		network->version_max =
		    (uint8_t)config->native_transport_max_negotiable_protocol_version;
	network->is_throwing = config->native_transport_throw_on_overload;
	network->has_more_cores = config->cores > network->loop_count;
	if (authenticator != NULL && strstr(authenticator, "AllowAllAuthenticator") == NULL) {
		snprintf(network->authenticator_class, sizeof(network->authenticator_class), "%s%s",
		    strchr(authenticator, '.') == NULL ? "org.apache.cassandra.auth." : "",
		    authenticator);
		network->authenticator = network->authenticator_class;
	}
	if (config->client_encryption_options__enabled)
		network->tls_mode = config->client_encryption_options__optional
		    ? NETWORK_TLS_OPTIONAL
		    : NETWORK_TLS_REQUIRED;
}

struct network *
network_new(struct node *node)
{
	struct network *network = xzalloc(sizeof(*network));

	network->node = node;
	network->loop_count = node->metrics.loop_count;
	network->listen_fd = -1;
	client_history_init(&network->clients_seen);
	lock_init(&network->control, "network control", RANK_NETWORK_CONTROL);
	lock_init(&network->lock, "network", RANK_NETWORK);
	limits_init(&network->limits);
	network->loops = xcalloc(network->loop_count, sizeof(*network->loops));
	network_configure(network);
	return network;
}

struct tls_context *
network_tls_context(struct network *network)
{
	struct tls_context *context;

	lock_take(&network->lock);
	context = network->tls == NULL ? NULL : tls_context_ref(network->tls);
	lock_drop(&network->lock);
	return context;
}

int
network_reload_tls(struct network *network, struct error *err)
{
	struct tls_context *context, *old;
	struct tls_options options;

	if (network->tls_mode == NETWORK_TLS_OFF)
		return 0;
	tls_client_options(network->node->config, &options);
	if (tls_context_new(&options, &context, err) != 0)
		return -1;
	lock_take(&network->lock);
	old = network->tls;
	network->tls = context;
	lock_drop(&network->lock);
	tls_context_unref(old);
	return 0;
}

/* ---- accepting ------------------------------------------------------------------------------------------ */

struct network_newcomer {
	struct loop_message message; /* first */
	struct limits_address *limits;
	int fd;
	uint16_t port;
	char address[64];
};

static void
network_newcomer_run(struct loop_message *message, struct loop *loop)
{
	struct network_newcomer *newcomer = (struct network_newcomer *)message;

	connection_open(loop, newcomer->fd, newcomer->address, newcomer->port, newcomer->limits);
	free(newcomer);
}

/* The loop with the fewest connections: eight clients on two loops are four and four. */
static struct loop *
network_choose(struct network *network)
{
	struct loop *best = &network->loops[0];

	for (uint32_t i = 1; i < network->loop_count; i++) {
		struct loop *loop = &network->loops[i];

		if (atomic_load_explicit(&loop->connection_count, memory_order_relaxed) <
		    atomic_load_explicit(&best->connection_count, memory_order_relaxed))
			best = loop;
	}
	atomic_fetch_add_explicit(&best->connection_count, 1, memory_order_relaxed);
	return best;
}

static void
network_name(const struct sockaddr_storage *from, char *out, size_t size, uint16_t *port)
{
	struct sockaddr_in four = {0};
	struct sockaddr_in6 six = {0};
	const void *address = &four.sin_addr;

	if (from->ss_family == AF_INET6) {
		memcpy(&six, from, sizeof(six));
		address = &six.sin6_addr;
		*port = ntohs(six.sin6_port);
	} else {
		memcpy(&four, from, sizeof(four));
		*port = ntohs(four.sin_port);
	}
	if (inet_ntop(from->ss_family, address, out, (socklen_t)size) == NULL)
		snprintf(out, size, "?");
}

static void
network_welcome(struct network *network, int fd, const struct sockaddr_storage *from)
{
	struct network_newcomer *newcomer = xzalloc(sizeof(*newcomer));
	struct metrics *metrics = &network->node->metrics;
	bool is_per_ip;

	newcomer->message.run = network_newcomer_run;
	newcomer->fd = fd;
	network_name(from, newcomer->address, sizeof(newcomer->address), &newcomer->port);
	newcomer->limits = limits_connect(&network->limits, newcomer->address, &is_per_ip);
	atomic_fetch_add_explicit(&metrics->connections_total, 1, memory_order_relaxed);
	if (newcomer->limits == NULL) {
		atomic_fetch_add_explicit(&metrics->connections_refused, 1, memory_order_relaxed);
		log_warn("Exceeded maximum native connection limit%s: closing %s:%u",
		    is_per_ip ? " per ip" : "", newcomer->address, newcomer->port);
		close(fd);
		free(newcomer);
		return;
	}
	loop_post(network_choose(network), &newcomer->message);
}

static void
network_accept_cb(evutil_socket_t fd, short what, void *argument)
{
	struct network *network = argument;

	(void)what;
	for (int i = 0; i < NETWORK_ACCEPTS_MAX; i++) {
		struct sockaddr_storage from = {0};
		socklen_t size = sizeof(from);
		int client =
		    accept4(fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (client < 0) {
			/* EMFILE and the like pass when somebody leaves; do not spin on them. */
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
				log_warn("accept: %s", strerror(errno));
				usleep(1000);
			}
			return;
		}
		network_welcome(network, client, &from);
	}
}

/* ---- listening -------------------------------------------------------------------------------------------- */

static int
network_bind(struct network *network, int *out, struct error *err)
{
	const struct config *config = network->node->config;
	struct addrinfo hints = {
	    .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	struct sockaddr_storage bound = {0};
	socklen_t size = sizeof(bound);
	char port[16], name[64];
	uint16_t bound_port;
	int fd = -1, on = 1, rc;

	snprintf(port, sizeof(port), "%d", config->native_transport_port);
	rc = getaddrinfo(config->rpc_address, port, &hints, &found);
	if (rc != 0)
		return error_set(err, ERROR_CONFIG, "rpc_address: %s: %s", config->rpc_address,
		    gai_strerror(rc));
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		goto failed;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, NETWORK_BACKLOG) != 0 ||
	    getsockname(fd, (struct sockaddr *)&bound, &size) != 0)
		goto failed;
	freeaddrinfo(found);
	network_name(&bound, name, sizeof(name), &bound_port);
	atomic_store(&network->port, bound_port);
	*out = fd;
	return 0;
failed:
	rc = errno;
	if (fd >= 0)
		close(fd);
	freeaddrinfo(found);
	return error_set_errno(err, rc, "cannot listen for CQL clients on %s:%s%s",
	    config->rpc_address, port,
	    rc == EADDRINUSE ? " (is another server running there?)" : "");
}

/* Messages that change what loop 0 and the others do, and wait until they did. */
struct network_order {
	struct loop_message message; /* first */
	struct network *network;
	void (*run)(struct network *network, struct loop *loop);
	atomic_int done;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	uint64_t deadline_ns;
};

static void
network_order_run(struct loop_message *message, struct loop *loop)
{
	struct network_order *order = (struct network_order *)message;

	loop->drain_deadline_ns = order->deadline_ns;
	order->run(order->network, loop);
	pthread_mutex_lock(&order->mutex);
	atomic_store(&order->done, 1);
	pthread_cond_signal(&order->changed);
	pthread_mutex_unlock(&order->mutex);
}

/* Run something on a loop's thread and wait for it. */
static void
network_on_loop(struct network *network, struct loop *loop, uint64_t deadline_ns,
    void (*run)(struct network *network, struct loop *loop))
{
	struct network_order order = {
	    .message = {.run = network_order_run},
	    .network = network,
	    .run = run,
	    .deadline_ns = deadline_ns,
	};

	if (!loop->is_started) {
		loop->drain_deadline_ns = deadline_ns;
		run(network, loop);
		return;
	}
	pthread_mutex_init(&order.mutex, NULL);
	pthread_cond_init(&order.changed, NULL);
	loop_post(loop, &order.message);
	pthread_mutex_lock(&order.mutex);
	while (atomic_load(&order.done) == 0)
		pthread_cond_wait(&order.changed, &order.mutex);
	pthread_mutex_unlock(&order.mutex);
	pthread_cond_destroy(&order.changed);
	pthread_mutex_destroy(&order.mutex);
}

static void
network_listen_here(struct network *network, struct loop *loop)
{
	network->accept_event = event_new(
	    loop->base, network->listen_fd, EV_READ | EV_PERSIST, network_accept_cb, network);
	if (network->accept_event != NULL)
		event_add(network->accept_event, NULL);
}

static void
network_unlisten_here(struct network *network, struct loop *loop)
{
	(void)loop;
	if (network->accept_event != NULL)
		event_free(network->accept_event);
	network->accept_event = NULL;
	if (network->listen_fd >= 0)
		close(network->listen_fd);
	network->listen_fd = -1;
}

static void
network_drain_here(struct network *network, struct loop *loop)
{
	(void)network;
	loop->is_draining = true;
	loop_tick_soon(loop);
}

static void
network_stop_here(struct network *network, struct loop *loop)
{
	network_drain_here(network, loop);
	loop->is_stopping = true;
}

static int
network_listen(struct network *network, struct error *err)
{
	const struct config *config = network->node->config;
	int fd = -1;

	if (network_bind(network, &fd, err) != 0)
		return -1;
	network->listen_fd = fd;
	network_on_loop(network, &network->loops[0], 0, network_listen_here);
	atomic_store(&network->is_listening, true);
	log_info("Starting listening for CQL clients on /%s:%u (%s)...", config->rpc_address,
	    network_port(network),
	    network->tls_mode == NETWORK_TLS_OFF            ? "unencrypted"
		: network->tls_mode == NETWORK_TLS_OPTIONAL ? "encrypted and unencrypted"
							    : "encrypted");
	return 0;
}

void
network_on_each_loop(
    struct network *network, void (*run)(struct network *network, struct loop *loop))
{
	for (uint32_t i = 0; i < network->loop_count; i++)
		network_on_loop(network, &network->loops[i], 0, run);
}

int
network_start_loops(struct network *network, struct error *err)
{
	if (network->has_loops)
		return 0;
	for (uint32_t i = 0; i < network->loop_count; i++)
		if (loop_init(&network->loops[i], network, i, err) != 0)
			return -1;
	for (uint32_t i = 0; i < network->loop_count; i++)
		if (loop_start(&network->loops[i], err) != 0)
			return -1;
	network->has_loops = true;
	return 0;
}

int
network_start(struct network *network, struct error *err)
{
	if (network_reload_tls(network, err) != 0 || network_start_loops(network, err) != 0)
		return -1;
	if (!network->node->config->start_native_transport) {
		log_info("Not starting native transport as requested; start it with nodetool "
			 "enablebinary");
		return 0;
	}
	return network_listen(network, err);
}

static void
network_unlisten(struct network *network)
{
	if (!atomic_exchange(&network->is_listening, false))
		return;
	network_on_loop(network, &network->loops[0], 0, network_unlisten_here);
	log_info("Stop listening for CQL clients");
}

int
network_enable(struct network *network, struct error *err)
{
	int rc = 0;

	lock_take(&network->control);
	if (atomic_load(&network->is_stopped))
		rc = error_set(err, ERROR_SHUTDOWN,
		    "Unable to start native transport because the node was drained.");
	else if (!atomic_load(&network->is_listening))
		rc = network_listen(network, err);
	lock_drop(&network->control);
	return rc;
}

void
network_allow_older_versions(struct network *network, bool is_allowed)
{
	atomic_store(&network->allows_older_versions, is_allowed);
}

bool
network_allows_older_versions(const struct network *network)
{
	return atomic_load(&network->allows_older_versions);
}

void
network_disable(struct network *network)
{
	uint64_t deadline =
	    env_monotonic_ns(network->node->env) + (uint64_t)10 * 1000 * 1000 * 1000;

	lock_take(&network->control);
	network_unlisten(network);
	for (uint32_t i = 0; i < network->loop_count && !atomic_load(&network->is_stopped); i++)
		network_on_loop(network, &network->loops[i], deadline, network_drain_here);
	lock_drop(&network->control);
}

void
network_stop(struct network *network, uint32_t timeout_ms)
{
	uint64_t deadline = env_monotonic_ns(network->node->env) + (uint64_t)timeout_ms * 1000000;

	lock_take(&network->control);
	if (atomic_exchange(&network->is_stopped, true)) {
		lock_drop(&network->control);
		return;
	}
	network_unlisten(network);
	for (uint32_t i = 0; i < network->loop_count; i++)
		if (network->loops[i].is_started)
			atomic_fetch_add(&network->undrained, 1);
	for (uint32_t i = 0; i < network->loop_count; i++)
		if (network->loops[i].is_started)
			network_on_loop(network, &network->loops[i], deadline, network_stop_here);
	for (uint32_t i = 0; i < network->loop_count; i++) {
		struct loop *loop = &network->loops[i];

		if (loop->is_started)
			pthread_join(loop->thread, NULL);
		loop->is_started = false;
	}
	/* Those that ended last gave to those that had ended, and other nodes' coming and going is told still. */
	for (uint32_t i = 0; i < network->loop_count; i++)
		if (network->loops[i].base != NULL)
			loop_end_messages(&network->loops[i]);
	lock_drop(&network->control);
}

void
network_free(struct network *network)
{
	if (network == NULL)
		return;
	network_stop(network, 0);
	for (uint32_t i = 0; i < network->loop_count; i++)
		if (network->loops[i].base != NULL)
			loop_fini(&network->loops[i]);
	free(network->loops);
	tls_context_unref(network->tls);
	limits_fini(&network->limits);
	lock_fini(&network->lock);
	lock_fini(&network->control);
	client_history_fini(&network->clients_seen);
	free(network);
}

/* ---- what others ask ------------------------------------------------------------------------------------------ */

bool
network_is_running(const struct network *network)
{
	return atomic_load(&network->is_listening);
}

uint16_t
network_port(const struct network *network)
{
	return atomic_load(&network->port);
}

uint32_t
network_client_count(const struct network *network)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < network->loop_count; i++)
		count +=
		    atomic_load_explicit(&network->loops[i].connection_count, memory_order_relaxed);
	return count;
}

struct client_history *
network_clients_seen(struct network *network)
{
	return &network->clients_seen;
}

static void
network_tell_client(const struct connection *connection, network_client_fn each, void *argument)
{
	const struct client_state *client = &connection->client;
	static const char *const stages[] = {
	    [HANDSHAKE_NEW] = "established",
	    [HANDSHAKE_AUTHENTICATION] = "authenticating",
	    [HANDSHAKE_READY] = "ready",
	};
	struct network_client told = {
	    .address = client->address,
	    .port = client->port,
	    .stage = stages[connection->shown_state],
	    .protocol_version = client->version,
	    .driver_name = connection->driver_name,
	    .driver_version = connection->driver_version,
	    .user = atomic_load(&client->user),
	    .keyspace = atomic_load(&client->keyspace),
	    .request_count = atomic_load_explicit(&client->request_count, memory_order_relaxed),
	    .is_ssl = connection->ssl_protocol != NULL,
	    .ssl_cipher_suite = connection->ssl_cipher,
	    .ssl_protocol = connection->ssl_protocol,
	    .options = connection->options,
	    .option_count = connection->option_count,
	};

	each(argument, &told);
}

void
network_each_client(struct network *network, network_client_fn each, void *argument)
{
	for (uint32_t i = 0; i < network->loop_count; i++) {
		struct loop *loop = &network->loops[i];

		if (loop->base == NULL)
			continue;
		lock_take(&loop->lock);
		for (const struct connection *connection = loop->connections; connection != NULL;
		     connection = connection->next)
			network_tell_client(connection, each, argument);
		lock_drop(&loop->lock);
	}
}
