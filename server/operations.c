/* SPDX-License-Identifier: Apache-2.0 */
#include "server/operations.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/log.h"
#include "server/execution.h"
#include "server/internal_query.h"
#include "server/system_local.h"
#include "storage/store.h"

struct schema *
operations_schema(struct executor *executor)
{
	return schema_holder_get(&executor->schema);
}

void
operations_cql(struct executor *executor, struct operations_cql *out)
{
	*out = (struct operations_cql){
	    .prepared = atomic_load_explicit(&executor->prepared.count, memory_order_relaxed),
	    .evicted = atomic_load_explicit(&executor->prepared.evictions, memory_order_relaxed),
	    .prepared_executed =
		atomic_load_explicit(&executor->prepared_executed, memory_order_relaxed),
	    .regular_executed =
		atomic_load_explicit(&executor->regular_executed, memory_order_relaxed),
	};
}

int64_t *
operations_tokens(struct executor *executor, uint32_t *count)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;
	int64_t *tokens = NULL;
	struct error err;

	*count = 0;
	if (internal_select(executor, "SELECT tokens FROM system.local WHERE key = 'local'", NULL,
		0, &rows, &err) != 0)
		return NULL;
	if (internal_rows_next(&rows, cells) && !slice_is_null(cells[0]))
		tokens = system_parse_tokens(cells[0], count);
	internal_rows_fini(&rows);
	return tokens;
}

/* map<int, bigint> as Cassandra's nodetool shows it: {1:10, 2:3} */
static void
operations_print_merged(struct slice cell, struct buffer *out)
{
	struct reader reader = reader_of(cell);
	uint32_t size = slice_is_null(cell) ? 0 : reader_u32(&reader);

	buffer_put_string(out, "{");
	for (uint32_t i = 0; i < size && !reader.is_failed; i++) {
		struct slice key = reader_bytes(&reader, reader_u32(&reader));
		struct slice value = reader_bytes(&reader, reader_u32(&reader));

		if (!reader.is_failed && key.size == 4 && value.size == 8)
			buffer_printf(out, "%s%" PRId32 ":%" PRId64, i == 0 ? "" : ", ",
			    (int32_t)load_u32(key.data), (int64_t)load_u64(value.data));
	}
	buffer_put_string(out, "}");
	buffer_put_u8(out, 0);
}

static char *
operations_text(struct slice cell)
{
	return xstrndup(slice_is_null(cell) ? "" : (const char *)cell.data, cell.size);
}

static int64_t
operations_long(struct slice cell)
{
	return cell.size == 8 ? (int64_t)load_u64(cell.data) : 0;
}

int
operations_compaction_history(struct executor *executor,
    void (*each)(void *argument, const struct operations_compaction *compaction), void *argument,
    struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;
	struct buffer merged;

	if (internal_select(executor,
		"SELECT id, keyspace_name, columnfamily_name, compacted_at, bytes_in, bytes_out, "
		"rows_merged FROM system.compaction_history",
		NULL, 0, &rows, err) != 0)
		return -1;
	buffer_init(&merged);
	while (internal_rows_next(&rows, cells)) {
		struct operations_compaction compaction = {
		    .compacted_at_ms = operations_long(cells[3]),
		    .bytes_in = operations_long(cells[4]),
		    .bytes_out = operations_long(cells[5]),
		};
		char *keyspace = operations_text(cells[1]), *table = operations_text(cells[2]);

		if (cells[0].size == sizeof(compaction.id))
			memcpy(&compaction.id, cells[0].data, sizeof(compaction.id));
		buffer_clear(&merged);
		operations_print_merged(cells[6], &merged);
		compaction.keyspace = keyspace;
		compaction.table = table;
		compaction.rows_merged = merged.is_failed ? "{}" : (const char *)merged.data;
		each(argument, &compaction);
		free(keyspace);
		free(table);
	}
	buffer_fini(&merged);
	internal_rows_fini(&rows);
	return 0;
}

/* {rows: how many partitions came from that many SSTables} as map<int, bigint>. */
static void
operations_put_merged(struct buffer *out, const struct store_compaction_record *record)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < record->rows_merged_count; i++)
		count += record->rows_merged[i] > 0;
	buffer_put_u32(out, count);
	for (uint32_t i = 0; i < record->rows_merged_count; i++) {
		if (record->rows_merged[i] == 0)
			continue;
		buffer_put_u32(out, 4);
		buffer_put_u32(out, i + 1);
		buffer_put_u32(out, 8);
		buffer_put_u64(out, record->rows_merged[i]);
	}
}

static void
operations_record_compaction(void *context, const struct store_compaction_record *record)
{
	uint8_t numbers[3][8];
	struct buffer merged;
	struct error err;

	/* Its own compactions would make it grow by themselves (SystemKeyspace does the same). */
	if (strcmp(record->keyspace, "system") == 0 &&
	    strcmp(record->table, "compaction_history") == 0)
		return;
	store_u64(numbers[0], (uint64_t)record->ended_ms);
	store_u64(numbers[1], record->bytes_in);
	store_u64(numbers[2], record->bytes_out);
	buffer_init(&merged);
	operations_put_merged(&merged, record);
	if (internal_execute(context,
		"INSERT INTO system.compaction_history (id, keyspace_name, columnfamily_name, "
		"compacted_at, bytes_in, bytes_out, rows_merged) VALUES (?, ?, ?, ?, ?, ?, ?) "
		"USING TTL 604800",
		(const struct slice[]){slice_of(record->id.bytes, sizeof(record->id.bytes)),
		    slice_of_string(record->keyspace), slice_of_string(record->table),
		    slice_of(numbers[0], 8), slice_of(numbers[1], 8), slice_of(numbers[2], 8),
		    buffer_slice(&merged)},
		7, &err) != 0)
		log_warn("system.compaction_history: %s", err.text);
	buffer_fini(&merged);
}

void
operations_record_compactions(struct executor *executor)
{
	store_on_compaction(executor->store, operations_record_compaction, executor);
}
