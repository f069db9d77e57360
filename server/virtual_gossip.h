/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_VIRTUAL_GOSSIP_H
#define HELENUS_SERVER_VIRTUAL_GOSSIP_H

/* The rows of system_views.gossip_info. Any thread. */
#include "cluster/gossip.h"
#include "server/virtual_rows.h"

void virtual_gossip_fill(struct gossip *gossip, struct virtual_rows *rows);

#endif
