/* SPDX-License-Identifier: Apache-2.0 */
#include "base/consistency.h"

#include <string.h>
#include <strings.h>

static const char *const consistency_names[CONSISTENCY_COUNT] = {
    [CONSISTENCY_ANY] = "ANY",
    [CONSISTENCY_ONE] = "ONE",
    [CONSISTENCY_TWO] = "TWO",
    [CONSISTENCY_THREE] = "THREE",
    [CONSISTENCY_QUORUM] = "QUORUM",
    [CONSISTENCY_ALL] = "ALL",
    [CONSISTENCY_LOCAL_QUORUM] = "LOCAL_QUORUM",
    [CONSISTENCY_EACH_QUORUM] = "EACH_QUORUM",
    [CONSISTENCY_SERIAL] = "SERIAL",
    [CONSISTENCY_LOCAL_SERIAL] = "LOCAL_SERIAL",
    [CONSISTENCY_LOCAL_ONE] = "LOCAL_ONE",
};

const char *
consistency_name(enum consistency level)
{
	return consistency_is_known((uint16_t)level) ? consistency_names[level] : "UNKNOWN";
}

bool
consistency_parse(const char *name, size_t size, enum consistency *out)
{
	for (int i = 0; i < CONSISTENCY_COUNT; i++) {
		const char *known = consistency_names[i];

		if (strlen(known) == size && strncasecmp(known, name, size) == 0) {
			*out = (enum consistency)i;
			return true;
		}
	}
	return false;
}

int32_t
consistency_answers(enum consistency level, int32_t total, int32_t local)
{
	switch (level) {
	case CONSISTENCY_ANY:
	case CONSISTENCY_ONE:
	case CONSISTENCY_LOCAL_ONE:
		return 1;
	case CONSISTENCY_TWO:
		return 2;
	case CONSISTENCY_THREE:
		return 3;
	case CONSISTENCY_QUORUM:
	case CONSISTENCY_SERIAL:
	case CONSISTENCY_EACH_QUORUM:
		return total / 2 + 1;
	case CONSISTENCY_LOCAL_QUORUM:
	case CONSISTENCY_LOCAL_SERIAL:
		return local / 2 + 1;
	case CONSISTENCY_ALL:
		return total;
	}
	return total;
}
