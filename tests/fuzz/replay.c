/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files without a fuzzer: the corpus of `make check`, and the file that
 * reproduces a finding. Arguments are files or folders. The empty input is always tried.
 *
 * With --no-memory first, every input is run again and again, and another one of its allocations fails each time: alone, and
 * with all that follow.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/env.h"
#include "tests/memory/allocation.h"

/* Inputs that allocate more often are of the same few decoders as the others. */
enum { REPLAY_ALLOCATIONS_MAX = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
replay_input(const uint8_t *data, size_t size, bool has_no_memory)
{
	LLVMFuzzerTestOneInput(data, size);
	for (int is_lasting = 0; has_no_memory && is_lasting <= 1; is_lasting++) {
		for (uint64_t nth = 1; nth <= REPLAY_ALLOCATIONS_MAX; nth++) {
			allocation_fail(nth, is_lasting != 0);
			LLVMFuzzerTestOneInput(data, size);
			if (!allocation_has_failed())
				break;
		}
	}
}

static int
replay_file(struct env *env, const char *path, bool has_no_memory)
{
	struct error err;
	struct buffer buffer;
	uint8_t *exact;

	buffer_init(&buffer);
	if (files_read_all(env->files, path, SIZE_MAX / 4, &buffer, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		buffer_fini(&buffer);
		return -1;
	}
	/* A block of just this size, so that AddressSanitizer sees a read past the end. */
	exact = xmalloc(buffer.size);
	if (buffer.size > 0)
		memcpy(exact, buffer.data, buffer.size);
	replay_input(exact, buffer.size, has_no_memory);
	free(exact);
	buffer_fini(&buffer);
	return 0;
}

static int
replay(struct env *env, const char *path, bool has_no_memory, size_t *count)
{
	struct file_list list = {0};
	struct file_stat stat;
	struct error err;
	int rc = 0;

	if (files_stat(env->files, path, &stat, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	if (stat.kind == FILE_REGULAR) {
		++*count;
		return replay_file(env, path, has_no_memory);
	}
	if (stat.kind != FILE_FOLDER || files_list(env->files, path, &list, &err) != 0) {
		fprintf(stderr, "%s: no such file or folder\n", path);
		return -1;
	}
	for (size_t i = 0; i < list.count; i++) {
		char *child = xasprintf("%s/%s", path, list.entries[i].name);

		if (replay(env, child, has_no_memory, count) != 0)
			rc = -1;
		free(child);
	}
	file_list_fini(&list);
	return rc;
}

int
main(int argc, char **argv)
{
	bool has_no_memory = argc > 1 && strcmp(argv[1], "--no-memory") == 0;
	struct env *env = env_posix_new();
	size_t count = 0;
	int rc = 0;

	replay_input((const uint8_t *)"", 0, has_no_memory);
	for (int i = has_no_memory ? 2 : 1; i < argc; i++) {
		if (replay(env, argv[i], has_no_memory, &count) != 0)
			rc = -1;
	}
	env_free(env);
	printf("%zu inputs\n", count);
	printf("%d passed, %d failed\n", rc == 0, rc != 0);
	return rc != 0;
}
