/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const error_names[] = {
    [ERROR_NONE] = "NONE",
    [ERROR_IO] = "IO",
    [ERROR_CORRUPT] = "CORRUPT",
    [ERROR_NO_MEMORY] = "NO_MEMORY",
    [ERROR_NO_SPACE] = "NO_SPACE",
    [ERROR_SHUTDOWN] = "SHUTDOWN",
    [ERROR_WRONG_STATE] = "WRONG_STATE",
    [ERROR_SERVER] = "SERVER",
    [ERROR_PROTOCOL] = "PROTOCOL",
    [ERROR_BAD_CREDENTIALS] = "BAD_CREDENTIALS",
    [ERROR_UNAVAILABLE] = "UNAVAILABLE",
    [ERROR_OVERLOADED] = "OVERLOADED",
    [ERROR_BOOTSTRAPPING] = "BOOTSTRAPPING",
    [ERROR_TRUNCATE] = "TRUNCATE",
    [ERROR_WRITE_TIMEOUT] = "WRITE_TIMEOUT",
    [ERROR_READ_TIMEOUT] = "READ_TIMEOUT",
    [ERROR_READ_FAILURE] = "READ_FAILURE",
    [ERROR_FUNCTION_FAILURE] = "FUNCTION_FAILURE",
    [ERROR_WRITE_FAILURE] = "WRITE_FAILURE",
    [ERROR_CDC_WRITE_FAILURE] = "CDC_WRITE_FAILURE",
    [ERROR_CAS_WRITE_UNKNOWN] = "CAS_WRITE_UNKNOWN",
    [ERROR_SYNTAX] = "SYNTAX",
    [ERROR_UNAUTHORIZED] = "UNAUTHORIZED",
    [ERROR_INVALID] = "INVALID",
    [ERROR_CONFIG] = "CONFIG",
    [ERROR_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [ERROR_UNPREPARED] = "UNPREPARED",
};

void
error_clear(struct error *err)
{
	/* The texts are big and stay unread while the code is NONE; clearing their first byte is
	 * enough and keeps this cheap on the request path. */
	err->code = ERROR_NONE;
	err->sys_errno = 0;
	err->text[0] = '\0';
}

/* The text was cut at the end of its room: drop the bytes of a character that is not whole. */
static void
error_trim_utf8(char *text)
{
	size_t size = strlen(text);
	size_t start = size;
	size_t needed;
	unsigned char lead;

	while (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start == 0)
		return;
	lead = (unsigned char)text[start - 1];
	needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
	if (size - (start - 1) < needed)
		text[start - 1] = '\0';
}

static void
error_begin(struct error *err, enum error_code code, int sys_errno, const char *file, int line)
{
	memset(err, 0, sizeof(*err));
	err->code = code;
	err->sys_errno = sys_errno;
	err->file = file;
	err->line = line;
}

/* The arguments may point into err->text (a caller that wraps an error in another), so the text is
 * made aside before the error is written. */
int
error_set_at(
    struct error *err, enum error_code code, const char *file, int line, const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list arguments;
	int length;

	if (err == NULL)
		return -1;
	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length >= ERROR_TEXT_MAX)
		error_trim_utf8(text);
	error_begin(err, code, 0, file, line);
	memcpy(err->text, text, strlen(text) + 1);
	return -1;
}

int
error_set_errno_at(
    struct error *err, int sys_errno, const char *file, int line, const char *format, ...)
{
	bool is_space = sys_errno == ENOSPC || sys_errno == EDQUOT;
	char text[ERROR_TEXT_MAX];
	char reason[128];
	va_list arguments;
	int length;

	if (err == NULL)
		return -1;
	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length >= ERROR_TEXT_MAX)
		error_trim_utf8(text);
	error_begin(err, is_space ? ERROR_NO_SPACE : ERROR_IO, sys_errno, file, line);
	length = snprintf(err->text, sizeof(err->text), "%s: %s", text,
	    strerror_r(sys_errno, reason, sizeof(reason)));
	if (length >= ERROR_TEXT_MAX)
		error_trim_utf8(err->text);
	return -1;
}

void
error_prefix(struct error *err, const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list arguments;
	int length;

	if (err == NULL)
		return;
	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length >= 0 && length < ERROR_TEXT_MAX)
		length += snprintf(text + length, sizeof(text) - (size_t)length, ": %s", err->text);
	if (length >= ERROR_TEXT_MAX)
		error_trim_utf8(text);
	memcpy(err->text, text, strlen(text) + 1);
}

const char *
error_code_name(enum error_code code)
{
	if ((size_t)code >= sizeof(error_names) / sizeof(error_names[0]))
		return "UNKNOWN";
	return error_names[code];
}
