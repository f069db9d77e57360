/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/row_copy.h"

int
row_copy(const struct row *from, struct row *to, struct arena *arena, struct error *err)
{
	struct cell *cells = arena_calloc(arena, from->cell_count, sizeof(*cells));
	struct slice *clustering = arena_calloc(arena, from->clustering_count, sizeof(*clustering));
	struct row copy = *from;

	if (cells == NULL || clustering == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a row");
	for (uint32_t i = 0; i < from->cell_count; i++) {
		cells[i] = from->cells[i];
		cells[i].value = arena_copy(arena, from->cells[i].value);
		cells[i].path = arena_copy(arena, from->cells[i].path);
	}
	for (uint32_t i = 0; i < from->clustering_count; i++)
		clustering[i] = arena_copy(arena, from->clustering[i]);
	copy.cells = cells;
	copy.clustering = clustering;
	copy.position = arena_copy(arena, from->position);
	copy.complex_deletion_count = 0;
	copy.complex_deletions = NULL;
	copy.deletion = DELETION_LIVE;
	*to = copy;
	return 0;
}
