/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/memory/allocation.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include "base/alloc.h"

/* The linker's --wrap=NAME makes NAME of __wrap_NAME, and __real_NAME of NAME (Makefile). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void *__real_xmalloc(size_t size);
void *__real_xzalloc(size_t size);
void *__real_xcalloc(size_t count, size_t size);
void *__real_xrealloc(void *old, size_t size);
char *__real_xstrdup(const char *string);
char *__real_xstrndup(const char *string, size_t length);
/* Check's, which is a static library; replays are linked without it. */
void *__real_emalloc(size_t size) __attribute__((weak));
void *__real_erealloc(void *old, size_t size) __attribute__((weak));

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void *__wrap_xmalloc(size_t size);
void *__wrap_xzalloc(size_t size);
void *__wrap_xcalloc(size_t count, size_t size);
void *__wrap_xrealloc(void *old, size_t size);
char *__wrap_xstrdup(const char *string);
char *__wrap_xstrndup(const char *string, size_t length);
void *__wrap_emalloc(size_t size);
void *__wrap_erealloc(void *old, size_t size);

/* Allocations until the one that fails; 0: none will. */
static _Atomic uint64_t allocation_left;
static atomic_bool allocation_lasts, allocation_failed, allocation_suspended;
/* Inside of a function that must not fail. */
static _Thread_local int allocation_must;

void
allocation_fail(uint64_t nth, bool is_lasting)
{
	atomic_store(&allocation_lasts, is_lasting);
	atomic_store(&allocation_failed, false);
	atomic_store(&allocation_suspended, false);
	atomic_store(&allocation_left, nth);
}

void
allocation_suspend(bool is_suspended)
{
	atomic_store(&allocation_suspended, is_suspended);
}

bool
allocation_has_failed(void)
{
	atomic_store(&allocation_left, 0);
	return atomic_exchange(&allocation_failed, false);
}

static bool
allocation_fails(void)
{
	uint64_t left = atomic_load_explicit(&allocation_left, memory_order_relaxed);

	if (left == 0 || allocation_must != 0 || atomic_load(&allocation_suspended))
		return false;
	while (!atomic_compare_exchange_weak(
	    &allocation_left, &left, left == 1 && atomic_load(&allocation_lasts) ? 1 : left - 1)) {
		if (left == 0)
			return false;
	}
	if (left != 1)
		return false;
	atomic_store(&allocation_failed, true);
	errno = ENOMEM;
	return true;
}

void *
__wrap_malloc(size_t size)
{
	return allocation_fails() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *old, size_t size)
{
	return allocation_fails() ? NULL : __real_realloc(old, size);
}

int
__wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
	return allocation_fails() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

void *
__wrap_xmalloc(size_t size)
{
	void *memory;

	allocation_must++;
	memory = __real_xmalloc(size);
	allocation_must--;
	return memory;
}

void *
__wrap_xzalloc(size_t size)
{
	void *memory;

	allocation_must++;
	memory = __real_xzalloc(size);
	allocation_must--;
	return memory;
}

void *
__wrap_xcalloc(size_t count, size_t size)
{
	void *memory;

	allocation_must++;
	memory = __real_xcalloc(count, size);
	allocation_must--;
	return memory;
}

void *
__wrap_xrealloc(void *old, size_t size)
{
	void *memory;

	allocation_must++;
	memory = __real_xrealloc(old, size);
	allocation_must--;
	return memory;
}

char *
__wrap_xstrdup(const char *string)
{
	char *copy;

	allocation_must++;
	copy = __real_xstrdup(string);
	allocation_must--;
	return copy;
}

char *
__wrap_xstrndup(const char *string, size_t length)
{
	char *copy;

	allocation_must++;
	copy = __real_xstrndup(string, length);
	allocation_must--;
	return copy;
}

void *
__wrap_emalloc(size_t size)
{
	void *memory;

	allocation_must++;
	memory = __real_emalloc(size);
	allocation_must--;
	return memory;
}

void *
__wrap_erealloc(void *old, size_t size)
{
	void *memory;

	allocation_must++;
	memory = __real_erealloc(old, size);
	allocation_must--;
	return memory;
}
