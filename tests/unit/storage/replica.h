/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_UNIT_STORAGE_REPLICA_H
#define HELENUS_TESTS_UNIT_STORAGE_REPLICA_H

/*
 * A replica for tests of reads over several: a few memtables of the facts' table, read merged. Which update lies
 * in which of them is chance, as it is in memtables and SSTables.
 */
#include "storage/data_resolver.h"
#include "storage/memtable.h"
#include "tests/unit/storage/facts.h"

enum { REPLICA_MEMTABLES = 3 };

struct replica {
	struct memtable *memtables[REPLICA_MEMTABLES];
};

void replica_init(struct replica *replica, struct table_metadata *table);
void replica_fini(struct replica *replica);
void replica_apply(
    struct replica *replica, const struct partition_update *update, struct random *random);
/* Apply the facts (bitmap) in groups of a random cut, to the partition of `key`. */
void replica_apply_facts(
    struct replica *replica, struct facts *facts, uint64_t which, int key, struct random *random);
struct slice replica_key(int key, struct arena *arena);
struct partition_iterator *
replica_read(struct replica *replica, const struct read_command *command, struct arena *arena);
/* Its answer, copied into the arena. */
struct slice replica_answer(struct replica *replica, const struct read_command *command,
    bool is_data, struct arena *arena, struct read_response_stats *stats);

/* A command for one partition (key), or for all (key -1); without limits, at second 500. */
struct read_command replica_command(struct table_metadata *table, int key, struct arena *arena);
/* Random slices over the facts' rows, direction and wanted columns. */
void replica_command_vary(struct read_command *command, struct facts *facts, struct random *random);

/* Everything of a stream of partitions, as text; the stream is closed. */
void replica_print(struct partition_iterator *partitions, struct buffer *out);

#endif
