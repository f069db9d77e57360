/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_SCAN_H
#define HELENUS_TOOLS_STRESS_SCAN_H

/*
 * The token_range_queries of a profile: the whole table is read, one token range after the other, a page an
 * operation. All clients take their ranges out of one list; a client keeps to its range until the last page of
 * it. Cassandra: stress/operations/userdefined/TokenRangeQuery, stress/generate/TokenRangeIterator.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "tools/stress_request.h"
#include "tools/stress_ring.h"

/* Tokens above `after`, up to and with `until`. */
struct stress_range {
	bool has_after;
	bool has_until;
	int64_t after;
	int64_t until;
};

/* The ranges of the ring, none of which wraps around; each cut in `split` pieces of equal width. Owned by the
 * caller (free()). One range that is everything where the ring has no tokens. */
struct stress_range *
stress_ranges_new(const struct stress_ring *ring, uint32_t split, uint32_t *count);

struct stress_scan {
	char *name; /* owned; lower case */
	char *columns; /* owned; "*": all */
	int page_size;

	/* Once attached; constant during a run but for `next`. */
	char *token; /* owned; "token(a, b)" */
	char *select; /* owned; "SELECT token(a, b), columns FROM t" */
	enum consistency consistency;
	struct stress_range *ranges; /* owned */
	uint32_t range_count;
	bool wraps; /* after the last range comes the first */
	atomic_uint next;
};

void stress_scan_fini(struct stress_scan *scan);
/* A run begins. */
void stress_scan_rewind(struct stress_scan *scan);
/* Are all ranges handed out, for good? */
bool stress_scan_is_over(const struct stress_scan *scan);

/* Where one client is. All zero: nowhere. */
struct stress_cursor {
	bool is_open;
	struct stress_range range;
	struct buffer page; /* the paging state; empty: the first page */
	bool has_token; /* the partition that the last row was of */
	int64_t token;
};

void stress_cursor_fini(struct stress_cursor *cursor);

/*
 * Append the request for the next page, of a next range where the last one is over. 1: made; 0: there is no
 * range left; -1: ERROR_NO_MEMORY.
 */
int stress_scan_put(struct stress_scan *scan, struct stress_cursor *cursor, bool is_warmup,
    struct buffer *out, uint8_t version, struct stress_request *request, struct error *err);
/* A page is there: how many partitions begin in it. A warm-up goes no further than the first page. */
uint32_t
stress_scan_take(struct stress_cursor *cursor, const struct client_rows *rows, bool is_warmup);
/* "[after, until]", for error lines. */
void stress_cursor_print(const struct stress_cursor *cursor, struct buffer *out);

#endif
