/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_CQL_PARSER_DUMP_H
#define HELENUS_TESTS_CQL_PARSER_DUMP_H

/* A statement's tree on one line, everything that is not empty or false in it, for comparison. */
#include "base/bytes.h"
#include "cql/ast.h"

void parser_dump(const struct statement *statement, struct buffer *out);

#endif
