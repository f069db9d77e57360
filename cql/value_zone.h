/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_VALUE_ZONE_H
#define HELENUS_CQL_VALUE_ZONE_H

/* Time zones by name, for timestamps as text. */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"

/*
 * Seconds that the zone is ahead of UTC at a local time (seconds since 1970 as the zone's clocks
 * show them). "UTC", "GMT", the abbreviations that Java knows ("PST"), and the names of the
 * system's zone files ("Europe/Paris"), which are read each time: this is for hand-written text.
 * False: no such zone.
 */
bool value_zone_offset(struct slice name, int64_t local_seconds, int *seconds);

#endif
