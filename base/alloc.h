/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_ALLOC_H
#define HELENUS_BASE_ALLOC_H

/*
 * Small control structures (a table's handle, a stage, a listener) come from here: without memory
 * these log one line and abort, since a node that cannot allocate 200 bytes cannot say sorry either.
 * Data memory (rows, frames, pages) never comes from here: it is budgeted and its failure is a result.
 */
#include <stddef.h>

/*
 * malloc() and zeroes; NULL without memory. For small things that come and go with each request: glibc's calloc() passes by
 * the thread's own cache of freed pieces, which free() fills.
 */
void *zalloc(size_t size);
void *xmalloc(size_t size);
void *xzalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *string);
char *xstrndup(const char *string, size_t length);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
