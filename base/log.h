/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_LOG_H
#define HELENUS_BASE_LOG_H

/*
 * The log: one line an event, to standard error and, where set, to a file:
 *   INFO  [MutationStage-3] 2026-11-30T12:00:00.123Z memtable.c:88 - text
 * or one JSON object a line. Any thread. The hot path logs nothing.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

/* Levels are held per "logger": a folder's name ("storage", "server") or "ROOT". */
void log_set_level(const char *logger, enum log_level level);
enum log_level log_get_level(const char *logger);
/* -1 when the text names no level ("TRACE" ... "OFF", any case). */
int log_level_parse(const char *text, enum log_level *out);
const char *log_level_name(enum log_level level);
/* Calls `each` for every logger that has a level of its own, ROOT first. */
void log_each_logger(
    void (*each)(const char *logger, enum log_level level, void *argument), void *argument);

/* Append to `path` as well (NULL: no file), JSON lines when is_json. -1 and errno on failure. */
int log_open(const char *path, bool is_json);
/* Name of the calling thread in log lines and in `top` (there without the middle of a long one: "Native-..port-1"). */
void log_thread_name(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The whole name of the calling thread; "main" where it was given none. */
const char *log_thread_name_get(void);

void log_write(enum log_level level, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* True when a line of `level` written from `file` would come out (guards costly arguments). */
bool log_is_on(enum log_level level, const char *file);

/*
 * What may happen many times a second and is the same each time (a full disk): the first line comes out, then one a minute,
 * which says how many did not. Zeros: nothing was said yet. (Cassandra: NoSpamLogger.)
 *
 *	if (log_limit_take(&limit, env_monotonic_ns(env), left_out))
 *		log_error("it failed again: %s%s", err.text, left_out);
 */
struct log_limit {
	atomic_ullong next_ns; /* monotonic; 0: at once */
	atomic_uint left_out;
};

enum { LOG_LIMIT_TEXT_MAX = 64 };

/* May a line come out? *text: what to put at its end, "" or how many were left out. */
bool log_limit_take(struct log_limit *limit, uint64_t now_ns, char text[LOG_LIMIT_TEXT_MAX]);
/* It is over: the next time is news again. */
void log_limit_reset(struct log_limit *limit);

#define log_trace(...) log_write(LOG_TRACE, __FILE__, __LINE__, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __FILE__, __LINE__, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __FILE__, __LINE__, __VA_ARGS__)

#endif
