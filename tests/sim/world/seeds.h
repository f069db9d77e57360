/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_SIM_WORLD_SEEDS_H
#define HELENUS_TESTS_SIM_WORLD_SEEDS_H

/*
 * What every simulation takes and tells: seeds from the command line (`sim [FIRST [COUNT]]`) or SIM_SEEDS, the log
 * only with SIM_LOG, and "N passed, N failed" at the end.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/log.h"

struct seeds {
	uint64_t first, count;
	bool is_setting; /* the count is SIM_SEEDS' */
	unsigned passed, failed;
};

/* `standard`: how many where nobody says. */
static inline struct seeds
seeds_begin(int argc, char **argv, uint64_t standard)
{
	const char *setting = getenv("SIM_SEEDS");
	struct seeds seeds = {.first = 1, .count = standard};

	if (argc > 1)
		seeds.first = strtoull(argv[1], NULL, 10);
	if (argc > 2) {
		seeds.count = strtoull(argv[2], NULL, 10);
	} else if (setting != NULL) {
		seeds.count = strtoull(setting, NULL, 10);
		seeds.is_setting = true;
	}
	log_set_level("ROOT", getenv("SIM_LOG") != NULL ? LOG_DEBUG : LOG_OFF);
	return seeds;
}

static inline void
seeds_count(struct seeds *seeds, bool has_passed)
{
	*(has_passed ? &seeds->passed : &seeds->failed) += 1;
}

/* The exit status. */
static inline int
seeds_end(const struct seeds *seeds)
{
	printf("%u passed, %u failed\n", seeds->passed, seeds->failed);
	return seeds->failed != 0;
}

#endif
