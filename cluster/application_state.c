/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/application_state.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/alloc.h"

enum {
	TOKEN_SIZE = 8,
	STATUS_PARTS_MAX = 3,
	STATUS_PART_SIZE =
	    64, /* room for one part's text; an address with its port is the longest */
};

static const char *const application_state_names[STATE_COUNT] = {
    [STATE_STATUS] = "STATUS",
    [STATE_LOAD] = "LOAD",
    [STATE_SCHEMA] = "SCHEMA",
    [STATE_DC] = "DC",
    [STATE_RACK] = "RACK",
    [STATE_RELEASE_VERSION] = "RELEASE_VERSION",
    [STATE_REMOVAL_COORDINATOR] = "REMOVAL_COORDINATOR",
    [STATE_INTERNAL_IP] = "INTERNAL_IP",
    [STATE_RPC_ADDRESS] = "RPC_ADDRESS",
    [9] = "X_11_PADDING",
    [STATE_SEVERITY] = "SEVERITY",
    [STATE_NET_VERSION] = "NET_VERSION",
    [STATE_HOST_ID] = "HOST_ID",
    [STATE_TOKENS] = "TOKENS",
    [STATE_RPC_READY] = "RPC_READY",
    [STATE_INTERNAL_ADDRESS_AND_PORT] = "INTERNAL_ADDRESS_AND_PORT",
    [STATE_NATIVE_ADDRESS_AND_PORT] = "NATIVE_ADDRESS_AND_PORT",
    [STATE_STATUS_WITH_PORT] = "STATUS_WITH_PORT",
    [STATE_SSTABLE_VERSIONS] = "SSTABLE_VERSIONS",
    [STATE_DISK_USAGE] = "DISK_USAGE",
    [STATE_INDEX_STATUS] = "INDEX_STATUS",
};

const char *
application_state_name(enum application_state state)
{
	assert(state < STATE_COUNT);
	return application_state_names[state];
}

/* ---- STATUS ---- */

/* What stands behind the name. */
enum status_form {
	FORM_TOKEN,
	FORM_TOKEN_EXPIRES,
	FORM_ENDPOINT,
	FORM_HOST,
	FORM_HOST_EXPIRES,
	FORM_TRUE,
};

static const struct status_name {
	const char *name;
	enum status_form form;
	bool is_dead, is_silent;
} status_names[] = {
    [NODE_STATUS_BOOT] = {"BOOT", FORM_TOKEN, false, true},
    [NODE_STATUS_BOOT_REPLACE] = {"BOOT_REPLACE", FORM_ENDPOINT, false, true},
    [NODE_STATUS_NORMAL] = {"NORMAL", FORM_TOKEN, false, false},
    [NODE_STATUS_LEAVING] = {"LEAVING", FORM_TOKEN, false, false},
    [NODE_STATUS_LEFT] = {"LEFT", FORM_TOKEN_EXPIRES, true, true},
    [NODE_STATUS_MOVING] = {"MOVING", FORM_TOKEN, false, false},
    [NODE_STATUS_REMOVING] = {"removing", FORM_HOST, true, true},
    [NODE_STATUS_REMOVED] = {"removed", FORM_HOST_EXPIRES, true, true},
    [NODE_STATUS_SHUTDOWN] = {"shutdown", FORM_TRUE, false, true},
    [NODE_STATUS_HIBERNATE] = {"hibernate", FORM_TRUE, true, true},
};

enum { STATUS_NAMES = sizeof(status_names) / sizeof(status_names[0]) };

void
node_status_format(const struct node_status *status, bool with_port, struct buffer *out)
{
	const struct status_name *name;
	char text[ENDPOINT_TEXT_SIZE];

	if (status->kind == NODE_STATUS_NONE)
		return;
	assert((int)status->kind < STATUS_NAMES);
	name = &status_names[status->kind];
	buffer_put_string(out, name->name);
	switch (name->form) {
	case FORM_TOKEN:
		buffer_printf(out, ",%" PRId64, status->token);
		break;
	case FORM_TOKEN_EXPIRES:
		buffer_printf(out, ",%" PRId64 ",%" PRId64, status->token, status->expires_ms);
		break;
	case FORM_ENDPOINT:
		buffer_printf(out, ",%s",
		    with_port ? endpoint_format(&status->replaced, text)
			      : endpoint_format_address(&status->replaced, text));
		break;
	case FORM_HOST:
	case FORM_HOST_EXPIRES:
		uuid_format(&status->host_id, text);
		buffer_printf(out, ",%s", text);
		if (name->form == FORM_HOST_EXPIRES)
			buffer_printf(out, ",%" PRId64, status->expires_ms);
		break;
	case FORM_TRUE:
		buffer_put_string(out, ",true");
		break;
	}
}

static_assert((int)ENDPOINT_TEXT_SIZE >= (int)UUID_TEXT_SIZE, "one buffer serves both");

/* Cut at commas into NUL-terminated parts; -1: too many, or one too long. */
static int
status_split(struct slice value, char parts[STATUS_PARTS_MAX][STATUS_PART_SIZE])
{
	int count = 0;
	size_t length = 0;

	memset(parts, 0, (size_t)STATUS_PARTS_MAX * STATUS_PART_SIZE);
	for (size_t i = 0; i < value.size; i++) {
		if (value.data[i] == ',') {
			if (++count == STATUS_PARTS_MAX)
				return -1;
			length = 0;
			continue;
		}
		if (length + 1 >= STATUS_PART_SIZE || value.data[i] == '\0')
			return -1;
		parts[count][length++] = (char)value.data[i];
	}
	return count + 1;
}

static int
status_number(const char *text, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	return text[0] == '\0' || end == text || *end != '\0' || errno != 0 ? -1 : 0;
}

static int
status_parse_fields(const struct status_name *name, char parts[][STATUS_PART_SIZE], int count,
    uint16_t default_port, struct node_status *out)
{
	bool expires = name->form == FORM_TOKEN_EXPIRES || name->form == FORM_HOST_EXPIRES;

	if (count != (expires ? 3 : 2))
		return -1;
	if (expires && status_number(parts[2], &out->expires_ms) != 0)
		return -1;
	switch (name->form) {
	case FORM_TOKEN:
	case FORM_TOKEN_EXPIRES:
		return status_number(parts[1], &out->token);
	case FORM_ENDPOINT:
		return endpoint_parse(parts[1], default_port, &out->replaced, NULL);
	case FORM_HOST:
	case FORM_HOST_EXPIRES:
		return uuid_parse(parts[1], strlen(parts[1]), &out->host_id);
	case FORM_TRUE:
		return strcmp(parts[1], "true") == 0 ? 0 : -1;
	}
	return -1;
}

int
node_status_parse(
    struct slice value, uint16_t default_port, struct node_status *out, struct error *err)
{
	char parts[STATUS_PARTS_MAX][STATUS_PART_SIZE];
	int count;

	memset(out, 0, sizeof(*out));
	if (value.size == 0)
		return 0;
	count = status_split(value, parts);
	for (int i = 1; count > 0 && i < STATUS_NAMES; i++) {
		if (strcmp(parts[0], status_names[i].name) != 0)
			continue;
		if (status_parse_fields(&status_names[i], parts, count, default_port, out) != 0)
			break;
		out->kind = (enum node_status_kind)i;
		return 0;
	}
	memset(out, 0, sizeof(*out));
	return error_set(err, ERROR_INVALID, "a node has no status '%.*s'",
	    (int)(value.size < 64 ? value.size : 64), (const char *)value.data);
}

bool
node_status_is_dead(enum node_status_kind kind)
{
	return status_names[kind].is_dead;
}

bool
node_status_is_silent(enum node_status_kind kind)
{
	return status_names[kind].is_silent;
}

/* ---- TOKENS ---- */

void
tokens_encode(const int64_t *tokens, uint32_t count, struct buffer *out)
{
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_u32(out, TOKEN_SIZE);
		buffer_put_u64(out, (uint64_t)tokens[i]);
	}
	buffer_put_u32(out, 0);
}

int
tokens_decode(struct slice value, int64_t **out, uint32_t *count, struct error *err)
{
	struct reader reader = reader_of(value);
	size_t most = value.size / (sizeof(uint32_t) + TOKEN_SIZE);
	int64_t *tokens = most == 0 ? NULL : xcalloc(most, sizeof(*tokens));
	uint32_t n = 0;

	for (;;) {
		uint32_t size = reader_u32(&reader);
		int64_t token;

		if (reader.is_failed || (size == 0 && reader_left(&reader) > 0) ||
		    (size != 0 && size != TOKEN_SIZE))
			break;
		if (size == 0) {
			if (n == 0) {
				free(tokens);
				tokens = NULL;
			}
			*out = tokens;
			*count = n;
			return 0;
		}
		token = (int64_t)reader_u64(&reader);
		if (reader.is_failed)
			break;
		tokens[n++] = token;
	}
	free(tokens);
	return error_set(err, ERROR_INVALID, "a node's tokens are not readable");
}
