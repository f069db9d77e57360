/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_TABLE_OPTIONS_INTERNAL_H
#define HELENUS_CQL_TABLE_OPTIONS_INTERNAL_H

/* What table_options.c and table_options_maps.c share. */
#include "cql/table_options.h"

#define COMPACTION_PACKAGE "org.apache.cassandra.db.compaction."
#define COMPRESS_PACKAGE "org.apache.cassandra.io.compress."

/* Equal without regard to case. */
bool option_is_word(struct slice text, const char *word);
bool option_to_double(struct slice text, double *out);
bool option_to_int(struct slice text, int32_t *out);

/* Each reads one option of the statement into options; ERROR_CONFIG with Cassandra's text. */
int table_options_parse_retry(
    struct slice text, struct retry_policy *out, struct arena *arena, struct error *err);
int table_options_parse_caching(
    struct table_options *options, const struct option_map *map, struct error *err);
int table_options_parse_compaction(struct table_options *options, const struct option_map *map,
    struct arena *arena, struct error *err);
int table_options_parse_compression(struct table_options *options, const struct option_map *map,
    struct arena *arena, struct error *err);

#endif
