/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_ADMIN_H
#define HELENUS_SERVER_ADMIN_H

/*
 * The admin port: HTTP on admin_address:admin_port, for nodetool, Prometheus and people.
 *
 *   GET  /                a console with live charts, one self-contained page
 *   GET  /metrics         Prometheus text
 *   GET  /api/v1/NAME     a JSON object (admin_read.c)
 *   POST /api/v1/NAME     an operation; its arguments are the query's (admin_write.c)
 *
 * An error is {"error": text} with status 400 (the caller's fault), 404 or 500. The port has no login: it
 * listens on the loopback unless told otherwise, and refuses requests that a browser sends on behalf of
 * another site. One thread serves; an operation runs on a thread of its own, so that a long one holds
 * nobody up.
 */
#include "base/error.h"

struct admin;
struct node;

int admin_start(struct node *node, struct admin **out, struct error *err);
/* Stop listening, wait for running operations, free. NULL is accepted. */
void admin_stop(struct admin *admin);

#endif
