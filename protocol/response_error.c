/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include "protocol/response.h"

/*
 * The body of ERROR. Rule (Cassandra: messages/ErrorMessage): code, text, then fields that depend on
 * the code and the version; an error that the version does not know becomes an older one first:
 *
 *     before v4   READ_FAILURE, WRITE_FAILURE          the timeout of the same kind
 *                 FUNCTION_FAILURE, CDC_WRITE_FAILURE  INVALID, its name in the text
 *     before v5   CAS_WRITE_UNKNOWN                    WRITE_TIMEOUT of type CAS
 *                 WRITE_TIMEOUT of type CAS            without its own text and contentions
 */

/* What follows code and text. */
enum response_error_fields {
	RESPONSE_ERROR_PLAIN,
	RESPONSE_ERROR_UNAVAILABLE,
	RESPONSE_ERROR_WRITE_TIMEOUT,
	RESPONSE_ERROR_READ_TIMEOUT,
	RESPONSE_ERROR_WRITE_FAILURE,
	RESPONSE_ERROR_READ_FAILURE,
	RESPONSE_ERROR_FUNCTION,
	RESPONSE_ERROR_CAS_UNKNOWN,
	RESPONSE_ERROR_EXISTS,
	RESPONSE_ERROR_UNPREPARED,
};

struct response_error_info {
	uint32_t wire_code;
	enum response_error_fields fields;
	const char *name; /* of Cassandra's ExceptionCode, where a downgrade shows it */
};

static const struct response_error_info response_error_table[] = {
    [ERROR_NONE] = {0x0000, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_IO] = {0x0000, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_CORRUPT] = {0x0000, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_NO_MEMORY] = {0x0000, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_NO_SPACE] = {0x0000, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_SHUTDOWN] = {0x0000, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_WRONG_STATE] = {0x0000, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_SERVER] = {0x0000, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_PROTOCOL] = {0x000A, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_BAD_CREDENTIALS] = {0x0100, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_UNAVAILABLE] = {0x1000, RESPONSE_ERROR_UNAVAILABLE, NULL},
    [ERROR_OVERLOADED] = {0x1001, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_BOOTSTRAPPING] = {0x1002, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_TRUNCATE] = {0x1003, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_WRITE_TIMEOUT] = {0x1100, RESPONSE_ERROR_WRITE_TIMEOUT, NULL},
    [ERROR_READ_TIMEOUT] = {0x1200, RESPONSE_ERROR_READ_TIMEOUT, NULL},
    [ERROR_READ_FAILURE] = {0x1300, RESPONSE_ERROR_READ_FAILURE, NULL},
    [ERROR_FUNCTION_FAILURE] = {0x1400, RESPONSE_ERROR_FUNCTION, "FUNCTION_FAILURE"},
    [ERROR_WRITE_FAILURE] = {0x1500, RESPONSE_ERROR_WRITE_FAILURE, NULL},
    [ERROR_CDC_WRITE_FAILURE] = {0x1600, RESPONSE_ERROR_PLAIN, "CDC_WRITE_FAILURE"},
    [ERROR_CAS_WRITE_UNKNOWN] = {0x1700, RESPONSE_ERROR_CAS_UNKNOWN, NULL},
    [ERROR_SYNTAX] = {0x2000, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_UNAUTHORIZED] = {0x2100, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_INVALID] = {0x2200, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_CONFIG] = {0x2300, RESPONSE_ERROR_PLAIN, NULL},
    [ERROR_ALREADY_EXISTS] = {0x2400, RESPONSE_ERROR_EXISTS, NULL},
    [ERROR_UNPREPARED] = {0x2500, RESPONSE_ERROR_UNPREPARED, NULL},
};

enum { RESPONSE_ERROR_COUNT = sizeof(response_error_table) / sizeof(response_error_table[0]) };

static const struct response_error_info *
response_error_info(enum error_code code)
{
	if ((unsigned)code >= RESPONSE_ERROR_COUNT)
		code = ERROR_SERVER;
	return &response_error_table[code];
}

/* The code that goes out to this version. */
static enum error_code
response_error_downgrade(uint8_t version, enum error_code code)
{
	if (version < 4) {
		switch (code) {
		case ERROR_READ_FAILURE:
			return ERROR_READ_TIMEOUT;
		case ERROR_WRITE_FAILURE:
			return ERROR_WRITE_TIMEOUT;
		case ERROR_FUNCTION_FAILURE:
		case ERROR_CDC_WRITE_FAILURE:
			return ERROR_INVALID;
		default:
			break;
		}
	}
	if (version < 5 && code == ERROR_CAS_WRITE_UNKNOWN)
		return ERROR_WRITE_TIMEOUT;
	return code;
}

uint32_t
response_error_code(uint8_t version, enum error_code code)
{
	return response_error_info(response_error_downgrade(version, code))->wire_code;
}

static const char *
response_error_write_type(const struct error *err)
{
	if (err->code == ERROR_CAS_WRITE_UNKNOWN)
		return "CAS";
	return err->write_type != NULL ? err->write_type : "SIMPLE";
}

static void
response_put_error_text(struct buffer *buffer, uint8_t version, const struct error *err)
{
	enum error_code code = response_error_downgrade(version, err->code);
	bool is_old_cas = version < 5 && code == ERROR_WRITE_TIMEOUT &&
	    strcmp(response_error_write_type(err), "CAS") == 0;
	char text[ERROR_TEXT_MAX + 64];

	if (code == ERROR_INVALID && err->code != code)
		snprintf(text, sizeof(text), "ERROR %s: %s", response_error_info(err->code)->name,
		    err->text);
	else if (code != err->code || is_old_cas)
		snprintf(text, sizeof(text), "Operation timed out - received only %d responses.",
		    err->received);
	else
		snprintf(text, sizeof(text), "%s", err->text);
	response_put_string(buffer, slice_of_string(text));
}

/* "int, map<int, text>": commas inside of brackets separate nothing. */
static void
response_put_argument_types(struct buffer *buffer, const char *arguments)
{
	size_t count_offset = buffer->size;
	uint16_t count = 0;

	buffer_put_u16(buffer, 0);
	while (*arguments != '\0') {
		size_t size = 0;
		int depth = 0;

		while (*arguments == ' ' || *arguments == ',')
			arguments++;
		while (arguments[size] != '\0' && (arguments[size] != ',' || depth > 0)) {
			depth += (arguments[size] == '<') - (arguments[size] == '>');
			size++;
		}
		if (size == 0)
			break;
		response_put_string(buffer, slice_of(arguments, size));
		arguments += size;
		count++;
	}
	if (!buffer->is_failed)
		store_u16(buffer->data + count_offset, count);
}

static void
response_put_answers(struct buffer *buffer, const struct error *err)
{
	buffer_put_u16(buffer, err->consistency);
	buffer_put_u32(buffer, (uint32_t)err->received);
	buffer_put_u32(buffer, (uint32_t)err->required);
}

/* v4: a number. v5: a map of it, [inetaddr] to reason. */
static void
response_put_failures(struct buffer *buffer, uint8_t version, const struct error *err,
    const struct replica_failure *failures, uint32_t failure_count)
{
	/* Nobody named the replicas: the number and the reason are still told. */
	static const struct inet_address unknown = {.size = 4};

	if (version < 5) {
		buffer_put_u32(
		    buffer, failure_count != 0 ? failure_count : (uint32_t)err->failures);
		return;
	}
	if (failure_count == 0 && err->failures > 0) {
		buffer_put_u32(buffer, 1);
		response_put_inetaddr(buffer, &unknown);
		buffer_put_u16(buffer, err->reason);
		return;
	}
	buffer_put_u32(buffer, failure_count);
	for (uint32_t i = 0; i < failure_count; i++) {
		response_put_inetaddr(buffer, &failures[i].address);
		buffer_put_u16(buffer, failures[i].reason);
	}
}

static void
response_put_write_type(struct buffer *buffer, const struct error *err)
{
	response_put_string(buffer, slice_of_string(response_error_write_type(err)));
}

void
response_put_error(struct buffer *buffer, uint8_t version, const struct error *err,
    const struct replica_failure *failures, uint32_t failure_count)
{
	enum error_code code = response_error_downgrade(version, err->code);
	const struct response_error_info *info = response_error_info(code);

	buffer_put_u32(buffer, info->wire_code);
	response_put_error_text(buffer, version, err);
	switch (info->fields) {
	case RESPONSE_ERROR_PLAIN:
		break;
	case RESPONSE_ERROR_UNAVAILABLE:
		buffer_put_u16(buffer, err->consistency);
		buffer_put_u32(buffer, (uint32_t)err->required);
		buffer_put_u32(buffer, (uint32_t)err->received);
		break;
	case RESPONSE_ERROR_WRITE_TIMEOUT:
		response_put_answers(buffer, err);
		response_put_write_type(buffer, err);
		if (version >= 5 && strcmp(response_error_write_type(err), "CAS") == 0)
			buffer_put_u16(buffer, (uint16_t)err->contentions);
		break;
	case RESPONSE_ERROR_READ_TIMEOUT:
		response_put_answers(buffer, err);
		buffer_put_u8(buffer, err->data_present);
		break;
	case RESPONSE_ERROR_WRITE_FAILURE:
		response_put_answers(buffer, err);
		response_put_failures(buffer, version, err, failures, failure_count);
		response_put_write_type(buffer, err);
		break;
	case RESPONSE_ERROR_READ_FAILURE:
		response_put_answers(buffer, err);
		response_put_failures(buffer, version, err, failures, failure_count);
		buffer_put_u8(buffer, err->data_present);
		break;
	case RESPONSE_ERROR_FUNCTION:
		response_put_string(buffer, slice_of_string(err->keyspace));
		response_put_string(buffer, slice_of_string(err->table));
		response_put_argument_types(buffer, err->arguments);
		break;
	case RESPONSE_ERROR_CAS_UNKNOWN:
		response_put_answers(buffer, err);
		break;
	case RESPONSE_ERROR_EXISTS:
		response_put_string(buffer, slice_of_string(err->keyspace));
		response_put_string(buffer, slice_of_string(err->table));
		break;
	case RESPONSE_ERROR_UNPREPARED:
		response_put_short_bytes(
		    buffer, slice_of(err->prepared_id, sizeof(err->prepared_id)));
		break;
	}
}

void
response_put_error_envelope(
    struct buffer *buffer, uint8_t version, int16_t stream, uint8_t flags, const struct error *err)
{
	struct response response;

	if (version == 0 || version > PROTOCOL_VERSION_BETA)
		version = PROTOCOL_VERSION_MAX;
	response = response_begin(buffer, version, stream, OPCODE_ERROR, flags, NULL);
	response_put_error(buffer, version, err, NULL, 0);
	response_end(&response, COMPRESSION_NONE);
}
