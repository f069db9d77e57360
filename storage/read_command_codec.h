/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_READ_COMMAND_CODEC_H
#define HELENUS_STORAGE_READ_COMMAND_CODEC_H

/*
 * Read commands between nodes (ReadCommand.Serializer), in our own versioned form. The table goes by its id and
 * columns by their names, so that nodes whose schemas differ for a moment understand each other: what the
 * receiver's table has more is left out, what it does not have is an error that says so. Pure functions.
 */
#include "storage/mutation.h"
#include "storage/read_command.h"

/*
 * Append the command. Everything that the replica needs goes along (is_transient too: a replica that streams its
 * answer need not keep rows). buffer_check() tells of missing memory.
 */
void read_command_encode(const struct read_command *command, struct buffer *out);

/*
 * Decode into `arena`; bytes are borrowed from `encoded`. `find` as for mutation_decode(); the table is
 * borrowed from whoever owns it there. Nothing of what comes from outside is trusted: positions are well formed
 * for the table, slices ascend and do not overlap, limits and operators are ones that exist.
 *
 * -1: ERROR_PROTOCOL: damaged or of a version that we do not know. ERROR_INVALID with err->reason 3
 * (INCOMPATIBLE_SCHEMA, as RequestFailureReason has it): the table or a column is not known here.
 */
int read_command_decode(struct slice encoded, mutation_table_fn find, void *argument,
    struct arena *arena, struct read_command *out, struct error *err);

/* Table and key of an encoded command of one partition. False: it is none. Borrowed from `encoded`. */
bool read_command_peek(struct slice encoded, struct uuid *table_id, struct slice *key);

#endif
