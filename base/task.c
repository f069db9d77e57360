/* SPDX-License-Identifier: Apache-2.0 */
#include "base/task.h"

void
worker_fini(struct worker *worker)
{
	buffer_fini(&worker->scratch);
	if (worker->arena.block_size != 0)
		arena_fini(&worker->arena);
}
