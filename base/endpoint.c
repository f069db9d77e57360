/* SPDX-License-Identifier: Apache-2.0 */
#include "base/endpoint.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
	return a->size == b->size && a->port == b->port &&
	    memcmp(a->address, b->address, a->size) == 0;
}

int
endpoint_compare(const struct endpoint *a, const struct endpoint *b)
{
	int order;

	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	order = memcmp(a->address, b->address, a->size);
	if (order != 0)
		return order;
	return (a->port > b->port) - (a->port < b->port);
}

uint32_t
endpoint_hash(const struct endpoint *endpoint)
{
	uint8_t wire[ENDPOINT_WIRE_MAX];
	uint32_t hash = 2166136261U; /* FNV-1a: 7 or 19 bytes, seldom */
	size_t size = endpoint_encode(endpoint, wire);

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ wire[i]) * 16777619U;
	return hash;
}

/* The port behind the last colon, or -1. */
static int
endpoint_parse_port(const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || *text == '-' || *text == '+' || port == 0 ||
	    port > UINT16_MAX)
		return -1;
	return (int)port;
}

int
endpoint_parse(const char *text, uint16_t default_port, struct endpoint *out, struct error *err)
{
	char host[ENDPOINT_TEXT_SIZE];
	const char *begin = *text == '/' ? text + 1 : text;
	const char *end = begin + strlen(begin), *port = NULL;
	int number = default_port;

	if (*begin == '[') {
		begin++;
		end = strchr(begin, ']');
		if (end == NULL || (end[1] != '\0' && end[1] != ':'))
			return error_set(err, ERROR_INVALID, "'%s' is no address", text);
		port = end[1] == ':' ? end + 2 : NULL;
	} else if (strchr(begin, ':') != NULL && strchr(begin, ':') == strrchr(begin, ':')) {
		end = strchr(begin, ':');
		port = end + 1;
	}
	if (port != NULL)
		number = endpoint_parse_port(port);
	if (number < 0)
		return error_set(err, ERROR_INVALID, "'%s': '%s' is no port", text, port);
	if ((size_t)(end - begin) >= sizeof(host))
		return error_set(err, ERROR_INVALID, "'%s' is no address", text);
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = '\0';
	memset(out, 0, sizeof(*out));
	out->port = (uint16_t)number;
	out->size = 4;
	if (inet_pton(AF_INET, host, out->address) == 1)
		return 0;
	out->size = 16;
	if (inet_pton(AF_INET6, host, out->address) == 1)
		return 0;
	return error_set(err, ERROR_INVALID, "'%s' is no address", text);
}

const char *
endpoint_format_address(const struct endpoint *endpoint, char out[ENDPOINT_TEXT_SIZE])
{
	inet_ntop(
	    endpoint->size == 4 ? AF_INET : AF_INET6, endpoint->address, out, ENDPOINT_TEXT_SIZE);
	return out;
}

const char *
endpoint_format(const struct endpoint *endpoint, char out[ENDPOINT_TEXT_SIZE])
{
	char address[ENDPOINT_TEXT_SIZE];

	endpoint_format_address(endpoint, address);
	snprintf(out, ENDPOINT_TEXT_SIZE, endpoint->size == 4 ? "%.46s:%u" : "[%.46s]:%u", address,
	    endpoint->port);
	return out;
}

size_t
endpoint_encode(const struct endpoint *endpoint, uint8_t out[ENDPOINT_WIRE_MAX])
{
	size_t size = endpoint->size;

	out[0] = endpoint->size;
	memcpy(out + 1, endpoint->address, size);
	out[1 + size] = (uint8_t)(endpoint->port >> 8);
	out[2 + size] = (uint8_t)endpoint->port;
	return size + 3;
}

size_t
endpoint_decode(const uint8_t *data, size_t size, struct endpoint *out)
{
	size_t length;

	if (size < 1 || (data[0] != 4 && data[0] != 16) || size < (size_t)data[0] + 3)
		return 0;
	length = data[0];
	memset(out, 0, sizeof(*out));
	out->size = (uint8_t)length;
	memcpy(out->address, data + 1, length);
	out->port = (uint16_t)(data[1 + length] << 8 | data[2 + length]);
	return length + 3;
}
