/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_INTERFACE_H
#define HELENUS_SERVER_INTERFACE_H

/* Addresses of network interfaces: listen_interface, rpc_interface. */
#include <stdbool.h>
#include "base/endpoint.h"
#include "base/error.h"

/*
 * The first address of the interface, of the family that is preferred where it has one. key: of the configuration, for the
 * error: ERROR_CONFIG where there is no such interface or address.
 */
int interface_address(const char *key, const char *name, bool prefers_ipv6,
    char out[ENDPOINT_TEXT_SIZE], struct error *err);

#endif
