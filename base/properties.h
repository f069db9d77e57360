/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_PROPERTIES_H
#define HELENUS_BASE_PROPERTIES_H

/*
 * Java's .properties text, as cassandra-rackdc.properties and cassandra-topology.properties are written
 * (java.util.Properties): "key=value", "key:value" or "key value"; lines that begin with # or ! are comments; a
 * backslash at the end of a line joins the next one, and before a character makes it plain (\: in IPv6 addresses; \t,
 * \n, \r, \f and \uXXXX are what they look like). Blanks around keys and before values are passed over, and, which
 * Java leaves to its users, behind values too. Pure; any thread.
 */
#include "base/bytes.h"
#include "base/error.h"

/* `line` counts from 1. The strings live during the call. Non-zero stops the reading. */
typedef int (*property_fn)(
    void *argument, const char *key, const char *value, unsigned line, struct error *err);

/*
 * Each property in the order of the text. -1: what `each` said, with "<name>:<line>: " in front; ERROR_CONFIG for a
 * broken \u or a NUL.
 */
int properties_parse(
    struct slice text, const char *name, property_fn each, void *argument, struct error *err);

#endif
