/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_PROTOCOL_TYPE_CODEC_H
#define HELENUS_PROTOCOL_TYPE_CODEC_H

/*
 * Column types on the wire: the [option] of result and prepared metadata. Pure functions.
 * Cassandra: transport/DataType.
 */
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"

struct type; /* cql/type.h */

/*
 * Append the [option] of `type` as that version knows it; what it has no id for (date, time, smallint,
 * tinyint on v3, duration before v5) goes out as Custom with Cassandra's class name.
 */
void type_codec_encode(struct buffer *buffer, uint8_t version, const struct type *type);

/* Skip over one [option]; -1 and ERROR_PROTOCOL when it is malformed or nested too deep. */
int type_codec_skip(struct reader *reader, struct error *err);

/* Read one [option] into a type of `arena`. -1: ERROR_PROTOCOL, ERROR_NO_MEMORY. */
int type_codec_decode(
    struct slice option, struct arena *arena, const struct type **out, struct error *err);

#endif
