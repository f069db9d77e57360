/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_UNIT_PROTOCOL_GOLDEN_H
#define HELENUS_TESTS_UNIT_PROTOCOL_GOLDEN_H

/*
 * Bytes written down by hand, from the specification or as a Cassandra 4.1.8 node sent them: hex
 * digits, spaces ignored, and text in single quotes: "0007 'CREATED'".
 */
#include "base/bytes.h"

/* The bytes; they live until the process ends. */
struct slice golden(const char *text);

/* Fails the test, showing both in hex, when they differ. */
void golden_check(struct slice actual, const char *expected);

#endif
