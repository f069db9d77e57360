/* SPDX-License-Identifier: Apache-2.0 */
#include "server/virtual_gossip.h"

static void
virtual_gossip_key(void *context, const struct endpoint *endpoint)
{
	char text[ENDPOINT_TEXT_SIZE];

	virtual_set_inet(context, "address", endpoint_format_address(endpoint, text));
	virtual_set_int(context, "port", endpoint->port);
}

static void
virtual_gossip_number(void *context, const char *column, int32_t value)
{
	virtual_set_int(context, column, value);
}

static void
virtual_gossip_text(void *context, const char *column, struct slice value)
{
	virtual_set(context, column, value);
}

static void
virtual_gossip_row(void *context, const struct gossip_row *row)
{
	const struct gossip_columns columns = {
	    virtual_gossip_key, virtual_gossip_number, virtual_gossip_text, context};

	virtual_row_begin(context);
	gossip_row_columns(row, &columns);
	virtual_row_end(context);
}

void
virtual_gossip_fill(struct gossip *gossip, struct virtual_rows *rows)
{
	gossip_each(gossip, virtual_gossip_row, rows);
}
