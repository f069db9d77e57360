/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_VIRTUAL_ROWS_H
#define HELENUS_SERVER_VIRTUAL_ROWS_H

/*
 * Rows that are made up for one read of a virtual table: begin a row, set its columns by name, end it;
 * then the rows become a source of partitions. Everything lies in the read's arena. Columns that are
 * not set are null. One thread.
 */
#include "storage/read_command.h"

struct virtual_rows;

struct virtual_rows *virtual_rows_new(const struct table_metadata *table, struct arena *arena);
void virtual_row_begin(struct virtual_rows *rows);
/* A column that the table does not have is ignored. Bytes are copied. */
void virtual_set(struct virtual_rows *rows, const char *column, struct slice value);
void virtual_set_text(struct virtual_rows *rows, const char *column, const char *value);
void virtual_set_int(struct virtual_rows *rows, const char *column, int32_t value);
void virtual_set_bigint(struct virtual_rows *rows, const char *column, int64_t value);
void virtual_set_float(struct virtual_rows *rows, const char *column, float value);
void virtual_set_double(struct virtual_rows *rows, const char *column, double value);
void virtual_set_boolean(struct virtual_rows *rows, const char *column, bool value);
/* A numeric address. */
void virtual_set_inet(struct virtual_rows *rows, const char *column, const char *address);
/* A frozen map<text, text>, set<text> or list<text>: `count` strings (pairs for maps). */
void virtual_set_texts(
    struct virtual_rows *rows, const char *column, const char *const *texts, uint32_t count);
void virtual_row_end(struct virtual_rows *rows);

/* Sort and hand out what the command asks for: by key, in the order of the key type. */
int virtual_rows_source(struct virtual_rows *rows, const struct read_command *command,
    struct partition_iterator **out, struct error *err);

#endif
