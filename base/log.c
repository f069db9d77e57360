/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
	LOG_LOGGERS_MAX = 64,
	LOG_NAME_MAX = 48,
	LOG_THREAD_NAME_MAX = 48,
	LOG_TEXT_MAX = 4096, /* of one event; a longer one is cut */
	LOG_LINE_MAX = LOG_TEXT_MAX * 2 + 512,
};

struct log_logger {
	char name[LOG_NAME_MAX]; /* constant once log.count covers it */
	atomic_int level;
};

/* The one log of the process: two nodes in one process share standard error anyway. */
static struct {
	/* Read without the lock: entries are only ever added, and `count` is stored (release) after
	 * the entry is complete. */
	struct log_logger loggers[LOG_LOGGERS_MAX];
	atomic_int count;

	/* Guards adding a logger and changing the file. Not a struct lock: the log has no rank and
	 * may be called under any lock. */
	pthread_mutex_t mutex;
	int fd;
	bool is_json;
} log_state = {
    .loggers = {{.name = "ROOT", .level = LOG_INFO}},
    .count = 1,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .fd = -1,
};

#define LOG_LIMIT_NS (60 * 1000000000ULL)

static _Thread_local char log_thread[LOG_THREAD_NAME_MAX];

static const char *const log_level_names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"};

static struct log_logger *
log_find(const char *name, size_t length)
{
	int count = atomic_load_explicit(&log_state.count, memory_order_acquire);

	for (int i = 0; i < count; i++) {
		struct log_logger *logger = &log_state.loggers[i];

		if (strncmp(logger->name, name, length) == 0 && logger->name[length] == '\0')
			return logger;
	}
	return NULL;
}

void
log_set_level(const char *name, enum log_level level)
{
	size_t length = strnlen(name, LOG_NAME_MAX - 1);
	struct log_logger *logger;
	int count;

	pthread_mutex_lock(&log_state.mutex);
	logger = log_find(name, length);
	count = atomic_load_explicit(&log_state.count, memory_order_relaxed);
	if (logger == NULL && count < LOG_LOGGERS_MAX) {
		logger = &log_state.loggers[count];
		memcpy(logger->name, name, length);
		logger->name[length] = '\0';
		atomic_store_explicit(&logger->level, level, memory_order_relaxed);
		atomic_store_explicit(&log_state.count, count + 1, memory_order_release);
	} else if (logger != NULL) {
		atomic_store_explicit(&logger->level, level, memory_order_relaxed);
	}
	pthread_mutex_unlock(&log_state.mutex);
}

static enum log_level
log_level_of(const char *name, size_t length)
{
	struct log_logger *logger = NULL;

	if (length < LOG_NAME_MAX)
		logger = log_find(name, length);
	if (logger == NULL)
		logger = &log_state.loggers[0];
	return (enum log_level)atomic_load_explicit(&logger->level, memory_order_relaxed);
}

enum log_level
log_get_level(const char *name)
{
	return log_level_of(name, strlen(name));
}

int
log_level_parse(const char *text, enum log_level *out)
{
	for (int i = LOG_TRACE; i <= LOG_OFF; i++) {
		if (strcasecmp(text, log_level_names[i]) == 0) {
			*out = (enum log_level)i;
			return 0;
		}
	}
	return -1;
}

const char *
log_level_name(enum log_level level)
{
	return log_level_names[level];
}

void
log_each_logger(
    void (*each)(const char *logger, enum log_level level, void *argument), void *argument)
{
	int count = atomic_load_explicit(&log_state.count, memory_order_acquire);

	for (int i = 0; i < count; i++) {
		struct log_logger *logger = &log_state.loggers[i];

		each(logger->name,
		    (enum log_level)atomic_load_explicit(&logger->level, memory_order_relaxed),
		    argument);
	}
}

int
log_open(const char *path, bool is_json)
{
	int fd = -1;
	int old;

	if (path != NULL) {
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0)
			return -1;
	}
	pthread_mutex_lock(&log_state.mutex);
	old = log_state.fd;
	log_state.fd = fd;
	log_state.is_json = is_json;
	pthread_mutex_unlock(&log_state.mutex);
	if (old >= 0)
		close(old);
	return 0;
}

void
log_thread_name(const char *format, ...)
{
	char short_name[16];
	va_list arguments;
	size_t length;

	va_start(arguments, format);
	vsnprintf(log_thread, sizeof(log_thread), format, arguments);
	va_end(arguments);
	/* Numbers stand at the end of a name: as the JVM has it, the middle is left out. */
	length = strlen(log_thread);
	if (length < sizeof(short_name))
		memcpy(short_name, log_thread, length + 1);
	else
		snprintf(short_name, sizeof(short_name), "%.7s..%.6s", log_thread,
		    log_thread + length - 6);
	pthread_setname_np(pthread_self(), short_name);
}

bool
log_limit_take(struct log_limit *limit, uint64_t now_ns, char text[LOG_LIMIT_TEXT_MAX])
{
	unsigned long long next = atomic_load_explicit(&limit->next_ns, memory_order_relaxed);
	unsigned left_out;

	/* Of several at once, one has the line. */
	if (now_ns < next ||
	    !atomic_compare_exchange_strong(&limit->next_ns, &next, now_ns + LOG_LIMIT_NS)) {
		atomic_fetch_add_explicit(&limit->left_out, 1, memory_order_relaxed);
		return false;
	}
	left_out = atomic_exchange(&limit->left_out, 0);
	text[0] = '\0';
	if (left_out > 0)
		snprintf(
		    text, LOG_LIMIT_TEXT_MAX, " (and %u times since it was last logged)", left_out);
	return true;
}

void
log_limit_reset(struct log_limit *limit)
{
	/* Mostly nothing was said: then no line of memory is written. */
	if (atomic_load_explicit(&limit->next_ns, memory_order_relaxed) == 0)
		return;
	atomic_store(&limit->next_ns, 0);
	atomic_store(&limit->left_out, 0);
}

const char *
log_thread_name_get(void)
{
	return log_thread[0] != '\0' ? log_thread : "main";
}

/* The folder of a source file is its logger; a file outside of any folder belongs to ROOT. */
static enum log_level
log_level_of_file(const char *file)
{
	const char *slash = strchr(file, '/');

	return log_level_of(file, slash != NULL ? (size_t)(slash - file) : 0);
}

bool
log_is_on(enum log_level level, const char *file)
{
	return level >= log_level_of_file(file) && level < LOG_OFF;
}

/*
 * Copy `text` with what would break a line, or a JSON string, escaped. `out` has room for twice the
 * text; control characters that would need more become '?'.
 */
static size_t
log_escape(const char *text, bool is_json, char *out)
{
	char *to = out;

	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n' || c == '\r' || c == '\t') {
			*to++ = '\\';
			*to++ = c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
		} else if (c < 0x20 || c == 0x7f) {
			*to++ = '?';
		} else {
			if (is_json && (c == '"' || c == '\\'))
				*to++ = '\\';
			*to++ = (char)c;
		}
	}
	*to = '\0';
	return (size_t)(to - out);
}

static void
log_time(char *out, size_t size)
{
	struct timespec now;
	struct tm tm;
	size_t length;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	length = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + length, size - length, ".%03ldZ", now.tv_nsec / 1000000);
}

static void
log_put(int fd, const char *line, size_t size)
{
	while (size > 0) {
		ssize_t written = write(fd, line, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return; /* nowhere left to complain */
		line += written;
		size -= (size_t)written;
	}
}

void
log_write(enum log_level level, const char *file, int line, const char *format, ...)
{
	const char *slash = strrchr(file, '/');
	int saved_errno = errno;
	char text[LOG_TEXT_MAX];
	char out[LOG_LINE_MAX];
	char time[48];
	va_list arguments;
	int length;

	if (!log_is_on(level, file))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (log_thread[0] == '\0')
		pthread_getname_np(pthread_self(), log_thread, sizeof(log_thread));
	log_time(time, sizeof(time));

	/* One write a line to each place, so that lines of two threads never mix. */
	pthread_mutex_lock(&log_state.mutex);
	if (log_state.is_json)
		length = snprintf(out, sizeof(out),
		    "{\"time\":\"%s\",\"level\":\"%s\",\"thread\":\"%s\",\"source\":\"%s:%d\","
		    "\"text\":\"",
		    time, log_level_names[level], log_thread, file, line);
	else
		length = snprintf(out, sizeof(out), "%-5s [%s] %s %s:%d - ", log_level_names[level],
		    log_thread, time, slash != NULL ? slash + 1 : file, line);
	length += (int)log_escape(text, log_state.is_json, out + length);
	if (log_state.is_json)
		length += sprintf(out + length, "\"}");
	out[length++] = '\n';
	log_put(STDERR_FILENO, out, (size_t)length);
	if (log_state.fd >= 0)
		log_put(log_state.fd, out, (size_t)length);
	pthread_mutex_unlock(&log_state.mutex);
	errno = saved_errno;
}
