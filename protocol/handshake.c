/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/handshake.h"

void
handshake_init(struct handshake *handshake)
{
	*handshake = (struct handshake){.state = HANDSHAKE_NEW};
}

/* "4/v4", "6/v6-beta" */
static const char *
handshake_version_name(uint8_t version)
{
	switch (version) {
	case 3:
		return "3/v3";
	case 4:
		return "4/v4";
	case 5:
		return "5/v5";
	case PROTOCOL_VERSION_BETA:
		return "6/v6-beta";
	default:
		return "?";
	}
}

static int
handshake_check_state(
    const struct handshake *handshake, uint8_t opcode, int16_t *stream, struct error *err)
{
	switch (handshake->state) {
	case HANDSHAKE_NEW:
		if (opcode == OPCODE_STARTUP || opcode == OPCODE_OPTIONS)
			return 0;
		/* As Cassandra, whose handler of new connections knows no streams yet (NP-24). */
		*stream = 0;
		return error_set(err, ERROR_PROTOCOL,
		    "Unexpected message %s, expecting STARTUP or OPTIONS", opcode_name(opcode));
	case HANDSHAKE_AUTHENTICATION:
		if (opcode == OPCODE_AUTH_RESPONSE)
			return 0;
		return error_set(err, ERROR_PROTOCOL,
		    "Unexpected message %s, expecting SASL_RESPONSE", opcode_name(opcode));
	case HANDSHAKE_READY:
		if (opcode != OPCODE_STARTUP)
			return 0;
		return error_set(err, ERROR_PROTOCOL,
		    "Unexpected message STARTUP, the connection is already initialized");
	}
	return 0;
}

int
handshake_check(const struct handshake *handshake, const struct envelope_header *header,
    int16_t *stream, uint8_t *version, struct error *err)
{
	*stream = header->stream;
	*version = header->version;
	if (handshake->version != 0 && header->version != handshake->version) {
		*version = handshake->version;
		return error_set(err, ERROR_PROTOCOL,
		    "Invalid message version. Got %s but previous messages on this connection had "
		    "version %s",
		    handshake_version_name(header->version),
		    handshake_version_name(handshake->version));
	}
	return handshake_check_state(handshake, header->opcode, stream, err);
}

/* The major number of "3.4.5"; -1 when that is no version. One to three numbers may be there, and
 * a qualifier after a dash or plus. */
static long
handshake_parse_cql_version(struct slice text)
{
	long major = 0, number = 0;
	int parts = 0;
	size_t i = 0;

	for (;;) {
		size_t start = i;

		number = 0;
		while (i < text.size && text.data[i] >= '0' && text.data[i] <= '9' && i - start < 9)
			number = number * 10 + (text.data[i++] - '0');
		if (i == start)
			return -1;
		if (parts++ == 0)
			major = number;
		if (i == text.size || text.data[i] != '.' || parts == 3)
			break;
		i++;
	}
	if (parts < 2 || (i < text.size && text.data[i] != '-' && text.data[i] != '+'))
		return -1;
	return major;
}

static int
handshake_check_cql_version(struct slice text, struct error *err)
{
	int shown = text.size > 64 ? 64 : (int)text.size;
	long major;

	if (slice_is_null(text))
		return error_set(
		    err, ERROR_PROTOCOL, "Missing value CQL_VERSION in STARTUP message");
	major = handshake_parse_cql_version(text);
	if (major < 0)
		return error_set(err, ERROR_PROTOCOL, "Invalid version value: %.*s", shown,
		    (const char *)text.data);
	if (major < 3)
		return error_set(err, ERROR_PROTOCOL,
		    "CQL version %.*s is not supported by the binary protocol (supported version "
		    "are >= 3.0.0)",
		    shown, (const char *)text.data);
	return 0;
}

static int
handshake_check_compression(
    struct slice name, uint8_t version, enum compression *out, struct error *err)
{
	*out = COMPRESSION_NONE;
	if (slice_is_null(name))
		return 0;
	if (!compression_parse(name, out))
		return error_set(err, ERROR_PROTOCOL, "Unknown compression algorithm: %.*s",
		    name.size > 64 ? 64 : (int)name.size, (const char *)name.data);
	if (*out == COMPRESSION_SNAPPY && version >= 5)
		return error_set(err, ERROR_PROTOCOL,
		    "Snappy compression is not supported in protocol V%u", version);
	return 0;
}

static bool
handshake_is_on(const struct request_startup *startup, const char *name, const char *on)
{
	return slice_equal_string(message_startup_option(startup, name), on);
}

int
handshake_startup(
    struct handshake *handshake, const struct client_message *startup, struct error *err)
{
	const struct request_startup *options = &startup->startup;
	enum compression compression;

	if (handshake_check_cql_version(message_startup_option(options, "CQL_VERSION"), err) != 0)
		return -1;
	if (handshake_check_compression(message_startup_option(options, "COMPRESSION"),
		startup->version, &compression, err) != 0)
		return -1;
	handshake->version = startup->version;
	handshake->compression = compression;
	handshake->throw_on_overload = handshake_is_on(options, "THROW_ON_OVERLOAD", "1");
	handshake->no_compact =
	    startup->version < 5 && handshake_is_on(options, "NO_COMPACT", "true");
	return 0;
}

void
handshake_answered(struct handshake *handshake, enum opcode answer)
{
	bool is_startup_answer = handshake->state == HANDSHAKE_NEW && handshake->version != 0;

	if (is_startup_answer && (answer == OPCODE_READY || answer == OPCODE_AUTHENTICATE)) {
		handshake->is_framed = handshake->version >= 5;
		handshake->state =
		    answer == OPCODE_READY ? HANDSHAKE_READY : HANDSHAKE_AUTHENTICATION;
	} else if (handshake->state == HANDSHAKE_AUTHENTICATION && answer == OPCODE_AUTH_SUCCESS) {
		handshake->state = HANDSHAKE_READY;
	}
}

enum compression
handshake_body_compression(const struct handshake *handshake)
{
	if (handshake->state == HANDSHAKE_NEW || handshake->version >= 5)
		return COMPRESSION_NONE;
	return handshake->compression;
}
