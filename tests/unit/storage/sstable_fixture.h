/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_UNIT_STORAGE_SSTABLE_FIXTURE_H
#define HELENUS_TESTS_UNIT_STORAGE_SSTABLE_FIXTURE_H

/* The tables of tests/data/cassandra-4.1 (what Cassandra 4.1.8 wrote), and what SSTable tests share. */
#include "base/env.h"
#include "storage/sstable.h"

enum { FIXTURE_COUNT = 18 };

struct fixture {
	const char *table;
	uint64_t generation;
	bool is_compacted; /* by Cassandra; else flushed: always with a fast compressor */
};

extern const struct fixture fixtures[FIXTURE_COUNT];

/* The metadata of a fixture's table; one reference. Aborts when the name is none. */
struct table_metadata *fixture_table(const char *name);
/* The folder of its SSTables, in `out`. The tests run in the root of the project. */
void fixture_directory(const char *name, char *out, size_t size);

/* A fresh folder under build/; removed by scratch_free(). */
char *scratch_new(void);
void scratch_free(struct env *env, char *directory);

/* The file behind <directory>/<id>-<component>, whole. Aborts when it is not there. */
struct buffer component_bytes(
    struct env *env, const struct sstable_descriptor *descriptor, enum sstable_component component);

#endif
