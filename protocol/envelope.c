/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope.h"

#include <inttypes.h>

enum { ENVELOPE_DIRECTION_BIT = 0x80 };

struct opcode_info {
	const char *name;
	bool is_request;
};

/* One row an opcode; a NULL name is no opcode. */
static const struct opcode_info opcode_table[] = {
    [OPCODE_ERROR] = {"ERROR", false},
    [OPCODE_STARTUP] = {"STARTUP", true},
    [OPCODE_READY] = {"READY", false},
    [OPCODE_AUTHENTICATE] = {"AUTHENTICATE", false},
    [OPCODE_CREDENTIALS] = {"CREDENTIALS", true},
    [OPCODE_OPTIONS] = {"OPTIONS", true},
    [OPCODE_SUPPORTED] = {"SUPPORTED", false},
    [OPCODE_QUERY] = {"QUERY", true},
    [OPCODE_RESULT] = {"RESULT", false},
    [OPCODE_PREPARE] = {"PREPARE", true},
    [OPCODE_EXECUTE] = {"EXECUTE", true},
    [OPCODE_REGISTER] = {"REGISTER", true},
    [OPCODE_EVENT] = {"EVENT", false},
    [OPCODE_BATCH] = {"BATCH", true},
    [OPCODE_AUTH_CHALLENGE] = {"AUTH_CHALLENGE", false},
    [OPCODE_AUTH_RESPONSE] = {"AUTH_RESPONSE", true},
    [OPCODE_AUTH_SUCCESS] = {"AUTH_SUCCESS", false},
};

enum { OPCODE_COUNT = sizeof(opcode_table) / sizeof(opcode_table[0]) };

const char *
opcode_name(uint8_t opcode)
{
	return opcode < OPCODE_COUNT && opcode_table[opcode].name != NULL
	    ? opcode_table[opcode].name
	    : "UNKNOWN";
}

static bool
opcode_is_known(uint8_t opcode)
{
	return opcode < OPCODE_COUNT && opcode_table[opcode].name != NULL;
}

bool
opcode_is_request(uint8_t opcode)
{
	return opcode_is_known(opcode) && opcode_table[opcode].is_request;
}

bool
opcode_is_response(uint8_t opcode)
{
	return opcode_is_known(opcode) && !opcode_table[opcode].is_request;
}

void
envelope_decoder_init(struct envelope_decoder *decoder, bool is_client, uint32_t frame_size_max)
{
	*decoder = (struct envelope_decoder){
	    .frame_size_max = frame_size_max != 0 ? frame_size_max : ENVELOPE_FRAME_MAX_DEFAULT,
	    .version_max = PROTOCOL_VERSION_BETA,
	    .version_min = PROTOCOL_VERSION_MIN,
	    .is_client = is_client,
	};
}

size_t
envelope_store_header(uint8_t *at, const struct envelope_header *header)
{
	uint8_t direction = header->is_response ? ENVELOPE_DIRECTION_BIT : 0;

	at[0] = header->version | direction;
	at[1] = header->flags;
	if (envelope_header_size(header->version) == ENVELOPE_HEADER_SIZE_OLD) {
		at[2] = (uint8_t)header->stream;
		at[3] = header->opcode;
		store_u32(at + 4, header->length);
		return ENVELOPE_HEADER_SIZE_OLD;
	}
	store_u16(at + 2, (uint16_t)header->stream);
	at[4] = header->opcode;
	store_u32(at + 5, header->length);
	return ENVELOPE_HEADER_SIZE;
}

struct envelope_header
envelope_load_header(const uint8_t *at)
{
	struct envelope_header header = {
	    .version = at[0] & ~ENVELOPE_DIRECTION_BIT,
	    .is_response = (at[0] & ENVELOPE_DIRECTION_BIT) != 0,
	    .flags = at[1],
	};

	if (envelope_header_size(header.version) == ENVELOPE_HEADER_SIZE_OLD) {
		header.stream = (int8_t)at[2];
		header.opcode = at[3];
		header.length = load_u32(at + 4);
	} else {
		header.stream = (int16_t)load_u16(at + 2);
		header.opcode = at[4];
		header.length = load_u32(at + 5);
	}
	return header;
}

uint64_t
envelope_size(struct slice run)
{
	size_t header_size;

	if (run.size == 0)
		return 0;
	header_size = envelope_header_size(run.data[0] & ~ENVELOPE_DIRECTION_BIT);
	if (run.size < header_size)
		return 0;
	return (uint64_t)header_size + envelope_load_header(run.data).length;
}

/*
 * Drivers look for these texts (NP-20, NP-21) and step down to a version in the list. The answer
 * goes out on stream 0 whatever the request's: a client of another version may have put it elsewhere.
 */
static int
envelope_check_version(
    const struct envelope_decoder *decoder, struct envelope_header *header, struct error *error)
{
	uint8_t version = header->version;

	if (version >= PROTOCOL_VERSION_MIN && version <= PROTOCOL_VERSION_MAX &&
	    version <= decoder->version_max && version >= decoder->version_min)
		return 0;
	header->stream = 0;
	if (version >= PROTOCOL_VERSION_MIN && version < decoder->version_min)
		return error_set(error, ERROR_PROTOCOL, "Rejecting Protocol Version %u < %u.",
		    version, decoder->version_min);
	if (version == PROTOCOL_VERSION_BETA && decoder->version_max >= PROTOCOL_VERSION_BETA)
		return error_set(error, ERROR_PROTOCOL,
		    "Beta version of the protocol used (6/v6-beta), but USE_BETA flag is unset");
	if (version != 1 && version != 2)
		header->version = PROTOCOL_VERSION_MAX;
	error_set(error, ERROR_PROTOCOL,
	    "Invalid or unsupported protocol version (%u); supported versions are "
	    "(3/v3, 4/v4%s%s)",
	    version, decoder->version_max >= PROTOCOL_VERSION_MAX ? ", 5/v5" : "",
	    decoder->version_max >= PROTOCOL_VERSION_BETA ? ", 6/v6-beta" : "");
	if (header->version > decoder->version_max)
		header->version = decoder->version_max;
	return -1;
}

/* Everything that can be wrong with a header but its length. */
static int
envelope_check_header(
    const struct envelope_decoder *decoder, struct envelope_header *header, struct error *error)
{
	bool is_beta = header->version == PROTOCOL_VERSION_BETA &&
	    decoder->version_max >= PROTOCOL_VERSION_BETA &&
	    (header->flags & ENVELOPE_USE_BETA) != 0;

	if (!is_beta && envelope_check_version(decoder, header, error) != 0)
		return -1;
	if (header->version >= 5 && header->length > INT32_MAX)
		return error_set(error, ERROR_PROTOCOL,
		    "Invalid value for envelope header body length field: %" PRId32,
		    (int32_t)header->length);
	if (!opcode_is_known(header->opcode))
		return error_set(error, ERROR_PROTOCOL, "Unknown opcode %d", header->opcode);
	if (opcode_is_request(header->opcode) == header->is_response)
		return error_set(error, ERROR_PROTOCOL,
		    "Wrong protocol direction (expected %s, got %s) for opcode %d (%s)",
		    header->is_response ? "REQUEST" : "RESPONSE",
		    header->is_response ? "RESPONSE" : "REQUEST", header->opcode,
		    opcode_name(header->opcode));
	if (header->is_response != decoder->is_client)
		return error_set(error, ERROR_PROTOCOL, "A %s message cannot be sent by the %s",
		    opcode_name(header->opcode), decoder->is_client ? "server" : "client");
	return 0;
}

static enum envelope_result
envelope_refuse_size(const struct envelope_decoder *decoder, const struct envelope_header *header,
    struct error *error)
{
	error_set(error, ERROR_INVALID,
	    "Request is too big: length %" PRIu64 " exceeds maximum allowed length %" PRIu32 ".",
	    (uint64_t)header->length + ENVELOPE_HEADER_SIZE, decoder->frame_size_max);
	return ENVELOPE_BAD;
}

/* Read away what is left of a refused envelope. */
static enum envelope_result
envelope_skip(struct envelope_decoder *decoder, struct slice run, size_t *consumed,
    struct envelope *envelope, struct error *error)
{
	size_t step = run.size < decoder->skip_left ? run.size : (size_t)decoder->skip_left;

	decoder->skip_left -= step;
	*consumed += step;
	if (decoder->skip_left > 0 || !decoder->is_answer_due)
		return ENVELOPE_MORE;
	decoder->is_answer_due = false;
	envelope->header = decoder->skipped;
	envelope->body = slice_empty;
	return envelope_refuse_size(decoder, &decoder->skipped, error);
}

void
envelope_decoder_skip(struct envelope_decoder *decoder, uint64_t size)
{
	decoder->skip_left = size;
	decoder->is_answer_due = false;
}

enum envelope_result
envelope_decode(struct envelope_decoder *decoder, struct slice run, size_t *consumed,
    struct envelope *envelope, struct error *error)
{
	struct envelope_header *header = &envelope->header;
	size_t header_size;
	uint64_t total;

	*consumed = 0;
	if (decoder->skip_left > 0) {
		if (envelope_skip(decoder, run, consumed, envelope, error) == ENVELOPE_BAD)
			return ENVELOPE_BAD;
		run = slice_of(run.data + *consumed, run.size - *consumed);
	}
	if (run.size == 0)
		return ENVELOPE_MORE;
	header_size = envelope_header_size(run.data[0] & ~ENVELOPE_DIRECTION_BIT);
	if (run.size < header_size)
		return ENVELOPE_MORE;
	*header = envelope_load_header(run.data);
	total = (uint64_t)header_size + header->length;
	if (envelope_check_header(decoder, header, error) != 0) {
		*consumed += header_size;
		decoder->skip_left = header->length;
		decoder->is_answer_due = false;
		envelope->body = slice_empty;
		return ENVELOPE_BAD;
	}
	if (total > decoder->frame_size_max && header->length > INT32_MAX) {
		*consumed += header_size;
		envelope->body = slice_empty;
		return envelope_refuse_size(decoder, header, error);
	}
	if (total > decoder->frame_size_max) {
		decoder->skip_left = total;
		decoder->is_answer_due = true;
		decoder->skipped = *header;
		return envelope_skip(decoder, run, consumed, envelope, error);
	}
	if (run.size < total)
		return ENVELOPE_MORE;
	envelope->body = slice_of(run.data + header_size, header->length);
	*consumed += total;
	return ENVELOPE_ONE;
}

enum envelope_result
envelope_decode_payload(struct envelope_decoder *decoder, struct slice run, size_t *consumed,
    struct envelope *envelope, struct error *error)
{
	enum envelope_result result = envelope_decode(decoder, run, consumed, envelope, error);
	bool was_skipping = decoder->skip_left > 0;

	if (result != ENVELOPE_MORE) {
		/* A length that leads out of the segment must not eat the segments that follow. */
		if (was_skipping && decoder->skip_left > run.size - *consumed)
			decoder->skip_left = run.size - *consumed;
		return result;
	}
	if (*consumed == run.size && !was_skipping)
		return ENVELOPE_MORE;
	if (was_skipping)
		envelope->header = decoder->skipped;
	else if (run.size - *consumed < ENVELOPE_HEADER_SIZE)
		envelope->header = (struct envelope_header){.version = PROTOCOL_VERSION_MAX};
	decoder->skip_left = 0;
	decoder->is_answer_due = false;
	*consumed = run.size;
	envelope->body = slice_empty;
	error_set(error, ERROR_PROTOCOL, "Segment ends inside of a message");
	return ENVELOPE_BAD;
}
