/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_ENDPOINT_H
#define HELENUS_BASE_ENDPOINT_H

/*
 * Where a node listens for others: an IP address and a port (Cassandra: locator/InetAddressAndPort). A value
 * type; pure functions; any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum { ENDPOINT_TEXT_SIZE = 56, ENDPOINT_WIRE_MAX = 19 };

struct endpoint {
	uint8_t address[16]; /* network order; IPv4 uses the first 4, the others are 0 */
	uint8_t size; /* 4 or 16 */
	uint16_t port;
};

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);
/* By address bytes (IPv4 before IPv6), then port: <0, 0, >0. */
int endpoint_compare(const struct endpoint *a, const struct endpoint *b);
uint32_t endpoint_hash(const struct endpoint *endpoint);
/*
 * Numeric "1.2.3.4", "1.2.3.4:7000", "::1", "[::1]:7000"; default_port where none is given. A leading '/', as
 * Java prints, is passed over. Names are not resolved here. ERROR_INVALID.
 */
int
endpoint_parse(const char *text, uint16_t default_port, struct endpoint *out, struct error *err);
/* "1.2.3.4:7000", "[::1]:7000". Returns out. */
const char *endpoint_format(const struct endpoint *endpoint, char out[ENDPOINT_TEXT_SIZE]);
/* "1.2.3.4", "::1". Returns out. */
const char *endpoint_format_address(const struct endpoint *endpoint, char out[ENDPOINT_TEXT_SIZE]);

/* Wire form: u8 size of the address, address, u16 port (big-endian). Returns the bytes written. */
size_t endpoint_encode(const struct endpoint *endpoint, uint8_t out[ENDPOINT_WIRE_MAX]);
/* Bytes taken, or 0 when `data` holds no endpoint (short, or a size that is neither 4 nor 16). */
size_t endpoint_decode(const uint8_t *data, size_t size, struct endpoint *out);

#endif
