/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALLOC_SMALL = 4096 };

/* No allocation and no log on the way out: the log itself allocates. */
static void __attribute__((noreturn)) alloc_die(void)
{
	static const char text[] = "helenus: out of memory for a control structure, stopping\n";
	ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)written;
	abort();
}

void *
xmalloc(size_t size)
{
	void *memory = malloc(size != 0 ? size : 1);

	if (memory == NULL)
		alloc_die();
	return memory;
}

void *
zalloc(size_t size)
{
	void *memory = malloc(size);

	/* The compiler must not see whose memory it is: it makes calloc() of malloc() and memset(). */
	__asm__("" : "+r"(memory));
	return memory == NULL ? NULL : memset(memory, 0, size);
}

void *
xzalloc(size_t size)
{
	/* Large pieces may come zeroed from the system. */
	void *memory = size < ALLOC_SMALL ? zalloc(size != 0 ? size : 1) : calloc(1, size);

	if (memory == NULL)
		alloc_die();
	return memory;
}

void *
xcalloc(size_t count, size_t size)
{
	void *memory = calloc(count != 0 ? count : 1, size != 0 ? size : 1);

	if (memory == NULL)
		alloc_die();
	return memory;
}

void *
xrealloc(void *old, size_t size)
{
	void *memory = realloc(old, size != 0 ? size : 1);

	if (memory == NULL)
		alloc_die();
	return memory;
}

char *
xstrdup(const char *string)
{
	return xstrndup(string, strlen(string));
}

char *
xstrndup(const char *string, size_t length)
{
	size_t size = strnlen(string, length);
	char *copy = xmalloc(size + 1);

	memcpy(copy, string, size);
	copy[size] = '\0';
	return copy;
}

char *
xasprintf(const char *format, ...)
{
	char *text = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		alloc_die();
	return text;
}
