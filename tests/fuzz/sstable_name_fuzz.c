/* SPDX-License-Identifier: Apache-2.0 */
/* File names in a table's folder, as they come from anywhere; a name that is understood prints back. */
#include <stdlib.h>
#include <string.h>
#include "storage/sstable.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = xmalloc(size + 1);
	enum sstable_component component;
	struct sstable_id id, again;

	memcpy(name, data, size);
	name[size] = 0;
	if (sstable_name_parse(name, &id, &component)) {
		struct sstable_descriptor descriptor = {"x", id};
		char path[SSTABLE_PATH_MAX];

		if (sstable_path(&descriptor, component, path, NULL) != 0 ||
		    !sstable_name_parse(path + 2, &again, NULL) || !sstable_id_equal(&id, &again))
			abort();
	}
	free(name);
	return 0;
}
