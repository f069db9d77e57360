/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_EVENTS_H
#define HELENUS_SERVER_EVENTS_H

/*
 * EVENTs to the clients that registered for them (transport/Server.EventNotifier). Any thread may push;
 * each loop encodes an event once per protocol version and appends it to its connections' output.
 */
#include "protocol/response.h"
#include "server/network.h"

/* A schema change, after it is in effect. Everything in `change` is copied. */
void events_push_schema(struct network *network, const struct schema_change *change);
/* A node came, went, is up or down. */
void events_push_node(struct network *network, const struct node_event *event);

#endif
