/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/hints_file.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/hash.h"

static const char hints_magic[8] = {'H', 'L', 'N', 'H', 'I', 'N', 'T', 'S'};

enum { HINTS_UUID_TEXT = UUID_TEXT_SIZE - 1, HINTS_HEADER_CRC_AT = 28, HINTS_RECORD_HEAD = 8 };

/* ---- Names --------------------------------------------------------------------------------- */

/* Digits alone, no more than fit. Moves *text behind them. */
static bool
hints_name_number(const char **text, uint64_t max, uint64_t *out)
{
	const char *at = *text;
	uint64_t value = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (value > (max - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (at == *text)
		return false;
	*text = at;
	*out = value;
	return true;
}

bool
hints_name_parse(const char *text, struct hints_name *out)
{
	uint64_t timestamp, version;

	if (strlen(text) <= HINTS_UUID_TEXT ||
	    uuid_parse(text, HINTS_UUID_TEXT, &out->host_id) != 0)
		return false;
	text += HINTS_UUID_TEXT;
	if (*text++ != '-' || !hints_name_number(&text, INT64_MAX, &timestamp) || *text++ != '-' ||
	    !hints_name_number(&text, UINT32_MAX, &version) || strcmp(text, ".hints") != 0)
		return false;
	out->timestamp_ms = (int64_t)timestamp;
	out->version = (uint32_t)version;
	return true;
}

const char *
hints_name_format(const struct hints_name *name, const char *suffix, char out[HINTS_NAME_SIZE])
{
	char host[UUID_TEXT_SIZE];

	uuid_format(&name->host_id, host);
	snprintf(out, HINTS_NAME_SIZE, "%s-%" PRId64 "-%" PRIu32 "%s", host, name->timestamp_ms,
	    name->version, suffix);
	return out;
}

/* ---- Layout -------------------------------------------------------------------------------- */

void
hints_header_encode(const struct uuid *host_id, struct buffer *out)
{
	uint8_t header[HINTS_HEADER_SIZE];

	memcpy(header, hints_magic, sizeof(hints_magic));
	store_u32(header + 8, HINTS_VERSION);
	memcpy(header + 12, host_id->bytes, sizeof(host_id->bytes));
	store_u32(header + HINTS_HEADER_CRC_AT, crc32_update(0, header, HINTS_HEADER_CRC_AT));
	buffer_put(out, header, sizeof(header));
}

int
hints_header_decode(struct slice bytes, struct uuid *host_id, struct error *err)
{
	if (bytes.size < HINTS_HEADER_SIZE)
		return error_set(err, ERROR_CORRUPT, "a file of hints with a torn header");
	if (memcmp(bytes.data, hints_magic, sizeof(hints_magic)) != 0)
		return error_set(err, ERROR_CORRUPT, "no file of hints of this server");
	if (crc32_update(0, bytes.data, HINTS_HEADER_CRC_AT) !=
	    load_u32(bytes.data + HINTS_HEADER_CRC_AT))
		return error_set(err, ERROR_CORRUPT, "a file of hints with a damaged header");
	if (load_u32(bytes.data + 8) != HINTS_VERSION)
		return error_set(err, ERROR_CORRUPT, "a file of hints of version %u",
		    (unsigned)load_u32(bytes.data + 8));
	memcpy(host_id->bytes, bytes.data + 12, sizeof(host_id->bytes));
	return 0;
}

void
hint_encode_body(const struct hint *hint, struct buffer *out)
{
	if (!buffer_reserve(out, HINTS_BODY_MIN + hint->mutation.size))
		return;
	buffer_put_u64(out, (uint64_t)hint->created_ms);
	buffer_put_u32(out, hint->gc_grace_seconds);
	buffer_put_slice(out, hint->mutation);
}

bool
hint_decode_body(struct slice body, struct hint *out)
{
	if (body.size < HINTS_BODY_MIN)
		return false;
	out->created_ms = (int64_t)load_u64(body.data);
	out->gc_grace_seconds = load_u32(body.data + 8);
	out->mutation = slice_of(body.data + HINTS_BODY_MIN, body.size - HINTS_BODY_MIN);
	return true;
}

void
hint_encode(const struct hint *hint, struct buffer *out)
{
	size_t size = HINTS_BODY_MIN + hint->mutation.size, body;
	uint8_t head[HINTS_RECORD_HEAD];

	if (!buffer_reserve(out, size + HINTS_RECORD_OVERHEAD))
		return;
	store_u32(head, (uint32_t)size);
	store_u32(head + 4, crc32_update(0, head, 4));
	buffer_put(out, head, sizeof(head));
	body = out->size;
	hint_encode_body(hint, out);
	buffer_put_u32(out, crc32_update(0, out->data + body, size));
}

enum hints_next
hints_next(struct reader *reader, struct hint *out, size_t *need)
{
	size_t left = reader_left(reader), size;
	const uint8_t *at = reader->at;

	if (left == 0)
		return HINTS_END;
	*need = HINTS_RECORD_HEAD;
	if (left < HINTS_RECORD_HEAD)
		return HINTS_SHORT;
	size = load_u32(at);
	if (crc32_update(0, at, 4) != load_u32(at + 4) || size < HINTS_BODY_MIN ||
	    size > HINTS_BODY_MAX)
		return HINTS_BAD_SIZE;
	*need = size + HINTS_RECORD_OVERHEAD;
	if (left < *need)
		return HINTS_SHORT;
	reader->at += *need;
	at += HINTS_RECORD_HEAD;
	if (crc32_update(0, at, size) != load_u32(at + size))
		return HINTS_BAD_BODY;
	return hint_decode_body(slice_of(at, size), out) ? HINTS_RECORD : HINTS_BAD_BODY;
}

void
hints_position_encode(uint64_t position, uint8_t out[HINTS_POSITION_SIZE])
{
	store_u64(out, position);
	store_u32(out + 8, crc32_update(0, out, 8));
}

bool
hints_position_decode(struct slice bytes, uint64_t *out)
{
	if (bytes.size != HINTS_POSITION_SIZE ||
	    crc32_update(0, bytes.data, 8) != load_u32(bytes.data + 8))
		return false;
	*out = load_u64(bytes.data);
	return true;
}
