/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COMMITLOG_POSITION_H
#define HELENUS_STORAGE_COMMITLOG_POSITION_H

/* A place in the commit log (CommitLogPosition): the same numbers in the log, in SSTables'
 * Statistics.db and in system.local's truncated_at. */
#include <stdint.h>

/* Ordered by segment, then position. The zero value is before everything. */
struct commitlog_position {
	int64_t segment_id;
	int32_t position; /* byte offset in the segment */
};

static inline int
commitlog_position_compare(struct commitlog_position a, struct commitlog_position b)
{
	if (a.segment_id != b.segment_id)
		return a.segment_id < b.segment_id ? -1 : 1;
	return a.position < b.position ? -1 : a.position > b.position;
}

#endif
