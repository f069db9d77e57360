/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large an answer may be (coordinator_read_size_warn_threshold, ..._fail_threshold; Cassandra: SelectStatement.maybeWarn
 * and maybeFail): the bytes of the values of a page. As there, what is too large is found when the row behind it is about to be
 * added, so that a page of one row of any size can be read.
 */
#include "base/hash.h"
#include "base/log.h"
#include "cluster/message.h"
#include "server/select_internal.h"

enum { SELECT_SIZE_QUERY_MAX = 1000 };

void
select_size_begin(struct select_run *run)
{
	const struct execution *execution = run->execution;
	const struct config *config = execution->executor->config;

	run->range_left = run->command.range.left;
	run->range_right = run->command.range.right;
	run->size_warn = run->size_fail = INT64_MAX;
	/* Statements of the server itself are exempt. */
	if (!config->read_thresholds_enabled || execution->client == NULL)
		return;
	if (config->coordinator_read_size_warn_threshold > 0)
		run->size_warn = config->coordinator_read_size_warn_threshold;
	if (config->coordinator_read_size_fail_threshold > 0)
		run->size_fail = config->coordinator_read_size_fail_threshold;
	run->rows_offset = execution->out->size;
}

/* Each value has a length of four bytes in front. */
static int64_t
select_size(const struct select_run *run)
{
	const struct prepared_statement *plan = run->execution->plan;
	size_t rows = run->rows.row_count + run->sorted_count;

	return (int64_t)(run->execution->out->size - run->rows_offset + run->sorted_cells.size -
	    4 * rows * plan->result_count);
}

void
select_put_tokens(const struct select_run *run, struct buffer *out)
{
	if (run->is_range) {
		bool is_whole = run->range_left == INT64_MIN && run->range_right == INT64_MIN;

		buffer_printf(out, "token range: (%lld, %lld%c", (long long)run->range_left,
		    (long long)run->range_right, is_whole ? ')' : ']');
		return;
	}
	if (run->key_count == 1) {
		buffer_printf(out, "token: %lld", (long long)murmur3_token(run->keys[0]));
		return;
	}
	for (uint32_t i = 0; i < run->key_count; i++)
		buffer_printf(out, "%s%lld", i == 0 ? "tokens: [" : ", ",
		    (long long)murmur3_token(run->keys[i]));
	buffer_printf(out, "]");
}

/* 1234567 as 1,234,567. */
static void
select_size_put_number(struct buffer *out, int64_t number)
{
	if (number >= 1000) {
		select_size_put_number(out, number / 1000);
		buffer_printf(out, ",%03d", (int)(number % 1000));
	} else {
		buffer_printf(out, "%d", (int)number);
	}
}

/* To the log and to the client; `out` holds the client's text afterwards. */
static void
select_size_tell(
    const struct select_run *run, const char *which, int64_t threshold, struct buffer *out)
{
	struct execution *execution = run->execution;
	struct slice query = execution->plan->query;

	buffer_printf(out, "Read on table %.*s.%.*s has exceeded the size %s threshold of ",
	    (int)run->table->keyspace.size, run->table->keyspace.data, (int)run->table->name.size,
	    run->table->name.data, which);
	select_size_put_number(out, threshold);
	buffer_printf(out, " bytes");
	log_warn("%.*s with query %.*s", (int)out->size, (const char *)out->data,
	    (int)(query.size > SELECT_SIZE_QUERY_MAX ? SELECT_SIZE_QUERY_MAX : query.size),
	    (const char *)query.data);
	buffer_printf(out, " with ");
	select_put_tokens(run, out);
	execution_warn(execution, "%.*s", (int)out->size, (const char *)out->data);
}

int
select_size_check(struct select_run *run, struct error *err)
{
	const struct config *config = run->execution->executor->config;
	struct buffer text;

	if (run->size_fail == INT64_MAX || select_size(run) <= run->size_fail)
		return 0;
	buffer_init(&text);
	select_size_tell(run, "failure", run->size_fail, &text);
	error_set(err, ERROR_READ_FAILURE, "Operation failed - %.*s: READ_SIZE from /%s:%d",
	    (int)text.size, (const char *)text.data, config->listen_address,
	    (int)config->storage_port);
	buffer_fini(&text);
	err->reason = FAILURE_READ_SIZE;
	err->consistency = (uint16_t)run->execution->options->consistency;
	err->required = 1;
	err->failures = 1;
	err->data_present = true;
	return -1;
}

void
select_size_warn(struct select_run *run)
{
	struct buffer text;

	if (run->size_warn == INT64_MAX || select_size(run) <= run->size_warn)
		return;
	buffer_init(&text);
	select_size_tell(run, "warning", run->size_warn, &text);
	buffer_fini(&text);
}
