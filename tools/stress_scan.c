/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include "base/alloc.h"

enum { STRESS_SCAN_WARMUP_ROWS = 100 };

/* ---- Ranges ----------------------------------------------------------------------------------------- */

static void
stress_ranges_split(
    struct stress_range **list, uint32_t *count, struct stress_range whole, uint32_t split)
{
	/* The lowest token is no partition's: a range may begin there. */
	int64_t low = whole.has_after ? whole.after : INT64_MIN;
	int64_t high = whole.has_until ? whole.until : INT64_MAX;
	uint64_t width = (uint64_t)high - (uint64_t)low, step = width / split;

	if (step == 0)
		split = 1;
	*list = xrealloc(*list, (*count + split) * sizeof(**list));
	for (uint32_t i = 0; i < split; i++) {
		struct stress_range piece = whole;

		if (i > 0) {
			piece.has_after = true;
			piece.after = (int64_t)((uint64_t)low + step * i);
		}
		if (i + 1 < split) {
			piece.has_until = true;
			piece.until = (int64_t)((uint64_t)low + step * (i + 1));
		}
		(*list)[(*count)++] = piece;
	}
}

struct stress_range *
stress_ranges_new(const struct stress_ring *ring, uint32_t split, uint32_t *count)
{
	struct stress_range *list = NULL;
	struct stress_range range = {.has_after = false};

	if (split == 0)
		split = 1;
	*count = 0;
	for (uint32_t i = 0; i < ring->token_count; i++) {
		range.has_until = true;
		range.until = ring->tokens[i].token;
		if (!range.has_after || range.after != range.until)
			stress_ranges_split(&list, count, range, split);
		range.has_after = true;
		range.after = range.until;
	}
	range.has_until = false;
	stress_ranges_split(&list, count, range, split);
	return list;
}

/* ---- Scans ------------------------------------------------------------------------------------------ */

void
stress_scan_fini(struct stress_scan *scan)
{
	free(scan->name);
	free(scan->columns);
	free(scan->token);
	free(scan->select);
	free(scan->ranges);
}

void
stress_scan_rewind(struct stress_scan *scan)
{
	atomic_store(&scan->next, 0);
}

bool
stress_scan_is_over(const struct stress_scan *scan)
{
	return !scan->wraps &&
	    atomic_load_explicit(&scan->next, memory_order_relaxed) >= scan->range_count;
}

void
stress_cursor_fini(struct stress_cursor *cursor)
{
	buffer_fini(&cursor->page);
}

static bool
stress_cursor_open(struct stress_scan *scan, struct stress_cursor *cursor)
{
	uint32_t next;

	if (stress_scan_is_over(scan)) /* also keeps the counter from going round */
		return false;
	next = atomic_fetch_add_explicit(&scan->next, 1, memory_order_relaxed);
	if (!scan->wraps && next >= scan->range_count)
		return false;
	cursor->is_open = true;
	cursor->has_token = false;
	cursor->range = scan->ranges[next % scan->range_count];
	buffer_clear(&cursor->page);
	return true;
}

static void
stress_scan_put_text(
    const struct stress_scan *scan, const struct stress_range *range, struct buffer *out)
{
	size_t start = out->size;

	buffer_put_u32(out, 0);
	buffer_put_string(out, scan->select);
	if (range->has_after)
		buffer_printf(out, " WHERE %s > %" PRId64, scan->token, range->after);
	if (range->has_until)
		buffer_printf(out, " %s %s <= %" PRId64, range->has_after ? "AND" : "WHERE",
		    scan->token, range->until);
	if (!out->is_failed)
		buffer_patch_u32(out, start, (uint32_t)(out->size - start - 4));
}

int
stress_scan_put(struct stress_scan *scan, struct stress_cursor *cursor, bool is_warmup,
    struct buffer *out, uint8_t version, struct stress_request *request, struct error *err)
{
	uint32_t flags = QUERY_FLAG_PAGE_SIZE;
	int32_t page_size = scan->page_size;
	size_t start;

	request->rows = 0;
	request->partitions = 0;
	request->page_at = 0;
	request->statement = NULL;
	if (!cursor->is_open && !stress_cursor_open(scan, cursor))
		return 0;
	if (is_warmup && page_size > STRESS_SCAN_WARMUP_ROWS)
		page_size = STRESS_SCAN_WARMUP_ROWS;
	start = stress_request_open(out, version, 0, OPCODE_QUERY);
	stress_scan_put_text(scan, &cursor->range, out);
	buffer_put_u16(out, (uint16_t)scan->consistency);
	if (cursor->page.size > 0)
		flags |= QUERY_FLAG_PAGING_STATE;
	if (version >= 5)
		buffer_put_u32(out, flags);
	else
		buffer_put_u8(out, (uint8_t)flags);
	buffer_put_u32(out, (uint32_t)page_size);
	if (cursor->page.size > 0) {
		buffer_put_u32(out, (uint32_t)cursor->page.size);
		buffer_put_slice(out, buffer_slice(&cursor->page));
	}
	stress_request_close(out, start);
	return buffer_check(out, err) == 0 ? 1 : -1;
}

uint32_t
stress_scan_take(struct stress_cursor *cursor, const struct client_rows *rows, bool is_warmup)
{
	struct slice content = rows->content, cell;
	uint32_t partitions = 0;

	/* The token comes first in each row, and rows come in its order. */
	for (uint32_t i = 0; i < rows->row_count; i++) {
		for (uint32_t j = 0; j < rows->metadata.column_count; j++) {
			if (client_next_cell(&content, &cell) != 0)
				return partitions;
			if (j > 0 || cell.size != 8)
				continue;
			if (!cursor->has_token || cursor->token != (int64_t)load_u64(cell.data))
				partitions++;
			cursor->has_token = true;
			cursor->token = (int64_t)load_u64(cell.data);
		}
	}
	buffer_clear(&cursor->page);
	if (slice_is_null(rows->metadata.paging_state) || is_warmup)
		cursor->is_open = false;
	else
		buffer_put_slice(&cursor->page, rows->metadata.paging_state);
	return partitions;
}

void
stress_cursor_print(const struct stress_cursor *cursor, struct buffer *out)
{
	if (!cursor->is_open) {
		buffer_put_string(out, "-");
		return;
	}
	if (cursor->range.has_after)
		buffer_printf(out, "[%" PRId64 ", ", cursor->range.after);
	else
		buffer_put_string(out, "[null, ");
	if (cursor->range.has_until)
		buffer_printf(out, "%" PRId64 "]", cursor->range.until);
	else
		buffer_put_string(out, "null]");
}
