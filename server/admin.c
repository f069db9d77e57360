/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "base/log.h"
#include "server/admin_internal.h"
#include "server/node.h"
#include "server/ranks.h"

enum { ADMIN_BODY_MAX = 1 << 20, ADMIN_HEADERS_MAX = 64 << 10, ADMIN_RUNNING_MAX = 32 };

struct admin {
	struct node *node; /* borrowed */
	struct event_base *base;
	struct evhttp *http;
	struct event *stop_event;
	pthread_t thread;
	bool is_started;
	uint32_t running; /* operations on threads of their own; the admin thread's */
	bool is_stopping; /* the admin thread's */
};

/* Answers that are on their way (of stopdaemon itself) get this long. */
static const struct timeval admin_linger = {0, 50000};

/* An operation that runs on a thread of its own. */
struct admin_job {
	struct admin_call call; /* first */
	struct admin *admin;
	struct evhttp_request *request; /* answered on the admin thread */
	const struct admin_route *route;
	struct error err;
	int rc;
};

/* ---- arguments ------------------------------------------------------------------------------------ */

const char *
admin_argument(const struct admin_call *call, const char *name)
{
	const char *value = evhttp_find_header(&call->arguments, name);

	return value == NULL || *value == '\0' ? NULL : value;
}

int
admin_need(const struct admin_call *call, const char *name, const char **out, struct error *err)
{
	*out = admin_argument(call, name);
	if (*out == NULL)
		return error_set(err, ERROR_INVALID, "argument '%s' is missing", name);
	return 0;
}

int
admin_need_number(const struct admin_call *call, const char *name, int64_t low, int64_t high,
    int64_t *out, struct error *err)
{
	const char *text;
	long long value;
	char *end;

	if (admin_need(call, name, &text, err) != 0)
		return -1;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0' || value < low || value > high)
		return error_set(err, ERROR_INVALID,
		    "argument '%s' is '%.40s'; it must be a number from %" PRId64 " to %" PRId64,
		    name, text, low, high);
	*out = value;
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------------- */

static void
admin_send(
    struct evhttp_request *request, int status, const char *type, const void *data, size_t size)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	struct evbuffer *body = evbuffer_new();

	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evbuffer_add(body, data, size);
	evhttp_send_reply(request, status, NULL, body);
	evbuffer_free(body);
}

static void
admin_send_json(struct evhttp_request *request, int status, json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

	if (text == NULL)
		admin_send(request, 500, "application/json", "{\"error\":\"no memory\"}", 21);
	else
		admin_send(request, status, "application/json", text, strlen(text));
	free(text);
}

static void
admin_send_error(struct evhttp_request *request, int status, const char *text)
{
	json_t *json = json_pack("{s:s}", "error", text);

	admin_send_json(request, status, json);
	json_decref(json);
}

static int
admin_status(const struct error *err)
{
	return err->code == ERROR_INVALID || err->code == ERROR_CONFIG ? 400 : 500;
}

static void
admin_finish(struct admin_job *job)
{
	if (job->rc == 0)
		admin_send_json(job->request, 200, job->call.answer);
	else
		admin_send_error(job->request, admin_status(&job->err), job->err.text);
	json_decref(job->call.answer);
	evhttp_clear_headers(&job->call.arguments);
	free(job);
}

/* ---- operations --------------------------------------------------------------------------------------- */

static void
admin_job_done_cb(evutil_socket_t fd, short what, void *argument)
{
	struct admin_job *job = argument;
	struct admin *admin = job->admin;

	(void)fd;
	(void)what;
	admin->running--;
	admin_finish(job);
	if (admin->is_stopping && admin->running == 0)
		event_base_loopexit(admin->base, &admin_linger);
}

static void *
admin_job_main(void *argument)
{
	static const struct timeval now = {0, 0};
	struct admin_job *job = argument;

	log_thread_name("admin-%s", job->route->name);
	job->rc = job->route->run(&job->call, &job->err);
	event_base_once(job->admin->base, -1, EV_TIMEOUT, admin_job_done_cb, job, &now);
	return NULL;
}

static void
admin_run(struct admin *admin, struct evhttp_request *request, const struct admin_route *route,
    const char *query)
{
	struct admin_job *job = xzalloc(sizeof(*job));
	pthread_t thread;

	job->admin = admin;
	job->request = request;
	job->route = route;
	job->call.node = admin->node;
	job->call.answer = json_object();
	TAILQ_INIT(&job->call.arguments);
	if (query != NULL && evhttp_parse_query_str(query, &job->call.arguments) != 0) {
		job->rc = error_set(&job->err, ERROR_INVALID, "the query is malformed");
		admin_finish(job);
		return;
	}
	if (!route->is_write) {
		job->rc = route->run(&job->call, &job->err);
		admin_finish(job);
		return;
	}
	if (admin->running >= ADMIN_RUNNING_MAX || admin->is_stopping ||
	    pthread_create(&thread, NULL, admin_job_main, job) != 0) {
		job->rc = error_set(&job->err, ERROR_OVERLOADED, "too many operations run already");
		admin_finish(job);
		return;
	}
	admin->running++;
	pthread_detach(thread);
}

static const struct admin_route *
admin_find(const struct admin_route *routes, const char *name)
{
	for (; routes->name != NULL; routes++)
		if (strcmp(routes->name, name) == 0)
			return routes;
	return NULL;
}

/* A page of another site may make a browser send us a request; it then says where it is from. */
static bool
admin_is_foreign(struct evhttp_request *request)
{
	struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
	const char *origin = evhttp_find_header(headers, "Origin");
	const char *host = evhttp_find_header(headers, "Host");
	const char *site = origin == NULL ? NULL : strstr(origin, "://");

	return origin != NULL && (site == NULL || host == NULL || strcmp(site + 3, host) != 0);
}

static void
admin_request_cb(struct evhttp_request *request, void *argument)
{
	struct admin *admin = argument;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = evhttp_uri_get_path(uri);
	enum evhttp_cmd_type method = evhttp_request_get_command(request);
	const struct admin_route *route = NULL;
	bool is_api = path != NULL && strncmp(path, "/api/v1/", 8) == 0;

	if (admin_is_foreign(request)) {
		admin_send_error(request, 403, "the request comes from another site");
	} else if (is_api) {
		route =
		    admin_find(method == EVHTTP_REQ_POST ? admin_writes : admin_reads, path + 8);
		if (route != NULL)
			admin_run(admin, request, route, evhttp_uri_get_query(uri));
		else if (admin_find(method == EVHTTP_REQ_POST ? admin_reads : admin_writes,
			     path + 8) != NULL)
			admin_send_error(
			    request, 405, "wrong method: reads are GET, operations POST");
		else
			admin_send_error(request, 404, "no such call");
	} else if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		admin_send_error(request, 405, "wrong method");
	} else if (path != NULL && strcmp(path, "/metrics") == 0) {
		struct buffer text;

		buffer_init(&text);
		admin_metrics(admin->node, &text);
		admin_send(
		    request, 200, "text/plain; version=0.0.4; charset=utf-8", text.data, text.size);
		buffer_fini(&text);
	} else if (path == NULL || *path == '\0' || strcmp(path, "/") == 0) {
		admin_send(
		    request, 200, "text/html; charset=utf-8", admin_console, strlen(admin_console));
	} else {
		admin_send_error(request, 404, "no such page");
	}
}

/* ---- start and stop ------------------------------------------------------------------------------------ */

static void
admin_stop_cb(evutil_socket_t fd, short what, void *argument)
{
	struct admin *admin = argument;

	(void)fd;
	(void)what;
	admin->is_stopping = true;
	if (admin->running == 0)
		event_base_loopexit(admin->base, &admin_linger);
}

static void *
admin_main(void *argument)
{
	struct admin *admin = argument;

	log_thread_name("admin");
	event_base_dispatch(admin->base);
	return NULL;
}

/*
 * 7199 is Cassandra's JMX port, and cassandra-stress and old nodetools begin a talk of RMI there ("JRMI"
 * and three bytes, then they wait). HTTP would wait for the end of the line: both until a timeout.
 * A connection that ends at once is what these tools take for "no JMX", and go on.
 */
static void
admin_input_cb(struct evbuffer *input, const struct evbuffer_cb_info *info, void *argument)
{
	char start[4];

	(void)info;
	if (evbuffer_copyout(input, start, sizeof(start)) == sizeof(start) &&
	    memcmp(start, "JRMI", sizeof(start)) == 0)
		shutdown(bufferevent_getfd(argument), SHUT_RDWR);
}

static struct bufferevent *
admin_new_connection_cb(struct event_base *base, void *argument)
{
	struct bufferevent *connection = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

	(void)argument;
	if (connection != NULL)
		evbuffer_add_cb(bufferevent_get_input(connection), admin_input_cb, connection);
	return connection;
}

int
admin_start(struct node *node, struct admin **out, struct error *err)
{
	const struct config *config = node->config;
	struct admin *admin = xzalloc(sizeof(*admin));
	int rc;

	evthread_use_pthreads();
	admin->node = node;
	admin->base = event_base_new();
	admin->http = admin->base == NULL ? NULL : evhttp_new(admin->base);
	if (admin->http == NULL) {
		admin_stop(admin);
		return error_set(err, ERROR_NO_MEMORY, "admin port: no memory");
	}
	admin->stop_event = event_new(admin->base, -1, EV_PERSIST, admin_stop_cb, admin);
	evhttp_set_max_body_size(admin->http, ADMIN_BODY_MAX);
	evhttp_set_max_headers_size(admin->http, ADMIN_HEADERS_MAX);
	evhttp_set_allowed_methods(admin->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD);
	evhttp_set_gencb(admin->http, admin_request_cb, admin);
	evhttp_set_bevcb(admin->http, admin_new_connection_cb, NULL);
	errno = 0;
	if (evhttp_bind_socket_with_handle(
		admin->http, config->admin_address, (uint16_t)config->admin_port) == NULL) {
		rc = error_set_errno(err, errno == 0 ? EADDRINUSE : errno,
		    "admin port %s:%d (admin_address, admin_port; -1 turns it off)",
		    config->admin_address, config->admin_port);
		admin_stop(admin);
		return rc;
	}
	rc = pthread_create(&admin->thread, NULL, admin_main, admin);
	if (rc != 0) {
		admin_stop(admin);
		return error_set_errno(err, rc, "admin thread");
	}
	admin->is_started = true;
	*out = admin;
	return 0;
}

void
admin_stop(struct admin *admin)
{
	if (admin == NULL)
		return;
	if (admin->is_started) {
		event_active(admin->stop_event, EV_TIMEOUT, 0);
		pthread_join(admin->thread, NULL);
	}
	if (admin->stop_event != NULL)
		event_free(admin->stop_event);
	if (admin->http != NULL)
		evhttp_free(admin->http);
	if (admin->base != NULL)
		event_base_free(admin->base);
	free(admin);
}
