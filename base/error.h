/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_ERROR_H
#define HELENUS_BASE_ERROR_H

/*
 * One error value for the whole house. A function that can fail returns 0 or -1 and takes
 * `struct error *err` last. The first to see a failure writes it with error_set(); everybody
 * above passes it up untouched or handles it, and only who handles it logs it. The error travels
 * with the request, never in a thread-local. Nothing here allocates.
 */
#include <stdbool.h>
#include <stdint.h>

/*
 * The closed list. Everything from ERROR_SERVER down to ERROR_UNPREPARED has a code of its own in
 * the native protocol (protocol/ holds the one table that maps them); what stands before is seen
 * inside the server only and reaches a client as ERROR_SERVER or a read/write failure.
 */
enum error_code {
	ERROR_NONE = 0,
	ERROR_IO, /* a system call failed; sys_errno tells */
	ERROR_CORRUPT, /* a checksum or an invariant of a file does not hold; text names file, offset */
	ERROR_NO_MEMORY, /* an allocation failed, or a memory budget is used up */
	ERROR_NO_SPACE, /* disk full */
	ERROR_SHUTDOWN, /* the part that was asked is stopping or drained */
	ERROR_WRONG_STATE, /* what is on the disk belongs to another cluster, data center or rack than configured */

	ERROR_SERVER,
	ERROR_PROTOCOL,
	ERROR_BAD_CREDENTIALS,
	ERROR_UNAVAILABLE,
	ERROR_OVERLOADED,
	ERROR_BOOTSTRAPPING,
	ERROR_TRUNCATE,
	ERROR_WRITE_TIMEOUT,
	ERROR_READ_TIMEOUT,
	ERROR_READ_FAILURE,
	ERROR_FUNCTION_FAILURE,
	ERROR_WRITE_FAILURE,
	ERROR_CDC_WRITE_FAILURE,
	ERROR_CAS_WRITE_UNKNOWN,
	ERROR_SYNTAX,
	ERROR_UNAUTHORIZED,
	ERROR_INVALID,
	ERROR_CONFIG,
	ERROR_ALREADY_EXISTS,
	ERROR_UNPREPARED,
};

enum { ERROR_TEXT_MAX = 640, ERROR_NAME_MAX = 64, ERROR_REPLICAS_MAX = 8 };

/* A replica that failed, and why (Cassandra's RequestFailureReason). */
struct error_replica {
	uint8_t address[16]; /* network order */
	uint8_t address_size; /* 4 or 16 */
	uint16_t port;
	uint16_t reason;
};

struct error {
	enum error_code code;
	int sys_errno; /* 0, or the errno that ERROR_IO / ERROR_NO_SPACE saw */
	const char *file; /* source place that saw it first; static strings */
	int line;
	char text[ERROR_TEXT_MAX]; /* UTF-8, cut where too long, never ends inside a character */

	/* Fields of the protocol's longer errors; each is set only with the codes that carry it. */
	uint16_t consistency; /* UNAVAILABLE, *_TIMEOUT, *_FAILURE, CAS_WRITE_UNKNOWN: wire code */
	int32_t received; /* *_TIMEOUT, *_FAILURE: answers that came; UNAVAILABLE: alive */
	int32_t required; /* block-for; UNAVAILABLE: required */
	int32_t failures; /* *_FAILURE: replicas that failed */
	uint16_t reason; /* *_FAILURE: reason code, where `replicas` does not name who failed */
	uint16_t replica_count; /* *_FAILURE: the first of those that failed */
	struct error_replica replicas[ERROR_REPLICAS_MAX];
	bool data_present; /* READ_* */
	const char *write_type; /* WRITE_*: static string such as "SIMPLE" */
	int32_t contentions; /* WRITE_TIMEOUT of type CAS */
	char keyspace[ERROR_NAME_MAX]; /* ALREADY_EXISTS, FUNCTION_FAILURE */
	char table[ERROR_NAME_MAX]; /* ALREADY_EXISTS; function name in FUNCTION_FAILURE */
	char arguments[ERROR_TEXT_MAX / 4]; /* FUNCTION_FAILURE: argument types, comma separated */
	uint8_t prepared_id[16]; /* UNPREPARED */
};

/* Make *err say "no error". A caller that looks at err after success need not do this. */
void error_clear(struct error *err);

/*
 * Write an error; always returns -1 so that `return error_set(...)` reads well. `err` may be NULL
 * (the caller wants only the -1). The other fields are zeroed; the caller fills them afterwards.
 */
int error_set_at(struct error *err, enum error_code code, const char *file, int line,
    const char *format, ...) __attribute__((format(printf, 5, 6)));
#define error_set(err, code, ...) error_set_at((err), (code), __FILE__, __LINE__, __VA_ARGS__)

/* As error_set() with the text "<text>: <strerror(sys_errno)>"; ENOSPC and EDQUOT make
 * ERROR_NO_SPACE, everything else ERROR_IO. */
int error_set_errno_at(struct error *err, int sys_errno, const char *file, int line,
    const char *format, ...) __attribute__((format(printf, 5, 6)));
#define error_set_errno(err, sys_errno, ...)                                                       \
	error_set_errno_at((err), (sys_errno), __FILE__, __LINE__, __VA_ARGS__)

/* Put "<format>: " in front of the text that is there (what was being done when it happened). */
void error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "IO", "CORRUPT", ...: for logs. Static string. */
const char *error_code_name(enum error_code code);

#endif
