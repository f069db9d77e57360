/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_CRASH_CLIENT_H
#define HELENUS_TESTS_CRASH_CLIENT_H

/* A blocking client of the native protocol (v4, no compression) that can pipeline: for tests that must know
 * exactly which requests were acknowledged when the server died. One thread each. */
#include "protocol/client.h"

struct crash_client {
	int fd; /* -1: not connected */
	struct buffer out;
	struct buffer in;
	size_t taken; /* bytes of `in` that were consumed */
	struct arena arena; /* of the last response */
};

/* 0 or -1 (nobody listens, or the connection broke). */
int crash_client_open(struct crash_client *client, int port);
void crash_client_close(struct crash_client *client);

/* Queue a request; stream is the caller's. Nothing is sent before crash_client_flush(). */
void crash_client_query(struct crash_client *client, int16_t stream, const char *text);
void crash_client_execute(struct crash_client *client, int16_t stream, struct slice id,
    const struct slice *values, uint32_t count);
int crash_client_flush(struct crash_client *client);
/* Wait for the next response; it points into the client until the next call. -1: the connection is gone. */
int crash_client_next(struct crash_client *client, struct client_response *response);

/* One query and its answer; a server error is printed and -1. */
int
crash_client_do(struct crash_client *client, struct client_response *response, const char *text);
/* Prepare; the id (16 bytes) is copied out. */
int crash_client_prepare(struct crash_client *client, const char *text, uint8_t id[16]);

#endif
