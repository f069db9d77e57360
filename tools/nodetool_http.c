/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tools/nodetool.h"

/* A blocking HTTP/1.0-style client: one request, read to the end. Operations may take hours: no timeout. */

void
nodetool_refuse(const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	fputs("nodetool: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs("\nSee 'nodetool help' or 'nodetool help <command>'.\n", stderr);
	exit(NODETOOL_USAGE);
}

void
nodetool_fail(const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	fputs("error: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(NODETOOL_FAILED);
}

static int
nodetool_connect(const struct nodetool *tool)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found, *each;
	int fd = -1, rc = getaddrinfo(tool->host, tool->port, &hints, &found), saved = 0;

	if (rc != 0)
		nodetool_refuse(
		    "Failed to connect to '%s:%s' - %s", tool->host, tool->port, gai_strerror(rc));
	for (each = found; each != NULL && fd < 0; each = each->ai_next) {
		fd = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, each->ai_addr, each->ai_addrlen) != 0) {
			saved = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	if (fd < 0)
		nodetool_refuse(
		    "Failed to connect to '%s:%s' - %s", tool->host, tool->port, strerror(saved));
	return fd;
}

/* printf with %u for an escaped string and %s for a plain one. */
static void
nodetool_put_path(struct buffer *out, const char *format, va_list arguments)
{
	for (; *format != '\0'; format++) {
		const char *text;

		if (format[0] != '%') {
			buffer_put_u8(out, (uint8_t)*format);
			continue;
		}
		format++;
		text = va_arg(arguments, const char *);
		if (text == NULL)
			continue;
		if (*format == 's') {
			buffer_put_string(out, text);
			continue;
		}
		for (; *text != '\0'; text++) {
			unsigned char byte = (unsigned char)*text;

			if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
			    (byte >= '0' && byte <= '9') || strchr("-_.~", byte) != NULL)
				buffer_put_u8(out, byte);
			else
				buffer_printf(out, "%%%02X", byte);
		}
	}
}

json_t *
nodetool_keep(struct nodetool *tool, json_t *json)
{
	if (json != NULL)
		json_array_append_new(tool->kept, json);
	return json;
}

static json_t *
nodetool_call(struct nodetool *tool, const char *method, const char *format, va_list arguments)
{
	struct buffer request, answer;
	const char *body, *text;
	json_error_t error;
	json_t *json;
	char part[16384];
	ssize_t got;
	int fd = nodetool_connect(tool), status = 0;

	buffer_init(&request);
	buffer_init(&answer);
	buffer_printf(&request, "%s /api/v1/", method);
	nodetool_put_path(&request, format, arguments);
	buffer_printf(&request,
	    " HTTP/1.0\r\nHost: %s:%s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	    tool->host, tool->port);
	for (size_t at = 0; at < request.size;) {
		ssize_t sent = send(fd, request.data + at, request.size - at, MSG_NOSIGNAL);

		if (sent < 0)
			nodetool_fail("the node closed the connection: %s", strerror(errno));
		at += (size_t)sent;
	}
	while ((got = recv(fd, part, sizeof(part), 0)) > 0)
		buffer_put(&answer, part, (size_t)got);
	buffer_put_u8(&answer, 0);
	close(fd);
	body = strstr((const char *)answer.data, "\r\n\r\n");
	if (answer.size > 13 && strncmp((const char *)answer.data, "HTTP/1.", 7) == 0)
		status = (int)strtol((const char *)answer.data + 9, NULL, 10);
	if (got < 0 || body == NULL || status == 0)
		nodetool_fail("the node closed the connection without an answer");
	json = json_loads(body + 4, 0, &error);
	buffer_fini(&request);
	buffer_fini(&answer);
	nodetool_keep(tool, json);
	if (json == NULL)
		nodetool_fail(
		    "no JSON came from %s:%s: is it a Helenus admin port?", tool->host, tool->port);
	text = nodetool_text(json, "error");
	if (status == 400)
		nodetool_refuse("%s", text);
	if (status != 200)
		nodetool_fail("%s", text);
	return json;
}

json_t *
nodetool_get(struct nodetool *tool, const char *format, ...)
{
	va_list arguments;
	json_t *json;

	va_start(arguments, format);
	json = nodetool_call(tool, "GET", format, arguments);
	va_end(arguments);
	return json;
}

json_t *
nodetool_post(struct nodetool *tool, const char *format, ...)
{
	va_list arguments;
	json_t *json;

	va_start(arguments, format);
	json = nodetool_call(tool, "POST", format, arguments);
	va_end(arguments);
	return json;
}

int64_t
nodetool_int(const json_t *json, const char *name)
{
	return json_integer_value(json_object_get(json, name));
}

double
nodetool_real(const json_t *json, const char *name)
{
	const json_t *value = json_object_get(json, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *
nodetool_text(const json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json, name));

	return text == NULL ? "" : text;
}

bool
nodetool_true(const json_t *json, const char *name)
{
	return json_is_true(json_object_get(json, name));
}
