/* SPDX-License-Identifier: Apache-2.0 */
#include "server/slow_reads.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/ranks.h"

void
slow_reads_init(struct slow_reads *reads, uint64_t now_ns)
{
	memset(reads, 0, sizeof(*reads));
	lock_init(&reads->lock, "slow reads", RANK_SLOW_READS);
	reads->told_ns = now_ns;
}

void
slow_reads_fini(struct slow_reads *reads)
{
	for (uint32_t i = 0; i < reads->count; i++)
		free(reads->list[i].text);
	lock_fini(&reads->lock);
}

static struct slow_read *
slow_reads_find_locked(struct slow_reads *reads, const char *text)
{
	lock_assert_held(&reads->lock);
	for (uint32_t i = 0; i < reads->count; i++)
		if (strcmp(reads->list[i].text, text) == 0)
			return &reads->list[i];
	if (reads->count == SLOW_READS_MAX)
		return NULL;
	reads->list[reads->count] = (struct slow_read){.text = xstrdup(text), .min_ms = UINT64_MAX};
	return &reads->list[reads->count++];
}

void
slow_reads_note(struct slow_reads *reads, struct slice keyspace, struct slice query, uint64_t ms)
{
	struct slow_read *read;
	struct buffer text;

	buffer_init(&text);
	buffer_printf(&text, "<%.*s%s>",
	    (int)(query.size > SLOW_READS_TEXT_MAX ? SLOW_READS_TEXT_MAX : query.size),
	    (const char *)query.data, query.size > SLOW_READS_TEXT_MAX ? "..." : "");
	if (!slice_is_null(keyspace))
		buffer_printf(&text, " in %.*s", (int)keyspace.size, (const char *)keyspace.data);
	buffer_put(&text, "", 1);
	lock_take(&reads->lock);
	read = text.is_failed ? NULL : slow_reads_find_locked(reads, (const char *)text.data);
	if (read == NULL) {
		reads->left_out++;
	} else {
		read->count++;
		read->total_ms += ms;
		if (ms < read->min_ms)
			read->min_ms = ms;
		if (ms > read->max_ms)
			read->max_ms = ms;
	}
	lock_drop(&reads->lock);
	buffer_fini(&text);
}

static void
slow_reads_tell(const struct slow_read *read, int64_t timeout_ms)
{
	if (read->count == 1)
		log_info("%s, time %" PRIu64 " msec - slow timeout %" PRId64 " msec", read->text,
		    read->total_ms, timeout_ms);
	else
		log_info("%s, was slow %" PRIu64 " times: avg/min/max %" PRIu64 "/%" PRIu64
			 "/%" PRIu64 " msec - slow timeout %" PRId64 " msec",
		    read->text, read->count, read->total_ms / read->count, read->min_ms,
		    read->max_ms, timeout_ms);
}

void
slow_reads_report(struct slow_reads *reads, int64_t timeout_ms, uint64_t now_ns)
{
	struct slow_read list[SLOW_READS_MAX];
	uint64_t left_out, elapsed_ms = (now_ns - reads->told_ns) / 1000000;
	uint32_t count;

	reads->told_ns = now_ns;
	lock_take(&reads->lock);
	count = reads->count;
	memcpy(list, reads->list, count * sizeof(*list));
	left_out = reads->left_out;
	reads->count = 0;
	reads->left_out = 0;
	lock_drop(&reads->lock);
	if (count == 0 && left_out == 0)
		return;
	log_info("%" PRIu64 " operations were slow in the last %" PRIu64 " msecs:",
	    count + left_out, elapsed_ms);
	for (uint32_t i = 0; i < count; i++) {
		slow_reads_tell(&list[i], timeout_ms);
		free(list[i].text);
	}
	if (left_out > 0)
		log_info("... (%" PRIu64 " were dropped)", left_out);
}
