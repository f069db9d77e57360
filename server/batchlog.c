/* SPDX-License-Identifier: Apache-2.0 */
#include "server/batchlog.h"
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "server/execution.h"
#include "server/internal_query.h"

enum {
	BATCHLOG_ARENA_BLOCK = 16 << 10,
	BATCHLOG_VERSION = 0x48, /* the encoding is our own: mutation_encode() */
};

int
batchlog_store(struct executor *executor, const struct mutation *mutations, uint32_t count,
    struct uuid *id, struct error *err)
{
	const struct type *type;
	struct slice *blobs, values[3];
	struct buffer encoded;
	struct arena arena;
	uint8_t version[4];
	int rc = 0;

	arena_init(&arena, BATCHLOG_ARENA_BLOCK);
	buffer_init(&encoded);
	type = type_list(&arena, type_native(TYPE_BLOB), false);
	blobs = arena_calloc(&arena, count, sizeof(*blobs));
	if (type == NULL || blobs == NULL)
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for the batchlog");
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		buffer_clear(&encoded);
		mutation_encode(&mutations[i], &encoded);
		rc = buffer_check(&encoded, err);
		blobs[i] = arena_copy(&arena, buffer_slice(&encoded));
	}
	if (rc == 0) {
		executor_next_timeuuid(executor, id->bytes);
		store_u32(version, BATCHLOG_VERSION);
		values[0] = slice_of(id->bytes, sizeof(id->bytes));
		values[1] = type_pack(type, blobs, count, &arena);
		values[2] = slice_of(version, sizeof(version));
		rc = internal_execute(executor,
		    "INSERT INTO system.batches (id, mutations, version) VALUES (?, ?, ?)", values,
		    3, err);
	}
	buffer_fini(&encoded);
	arena_fini(&arena);
	return rc;
}

struct batchlog_removal {
	struct executor *executor;
	struct uuid id;
};

static void
batchlog_run_removal(void *argument)
{
	struct batchlog_removal *removal = argument;
	struct slice value = slice_of(removal->id.bytes, sizeof(removal->id.bytes));
	struct error err;

	if (internal_execute(
		removal->executor, "DELETE FROM system.batches WHERE id = ?", &value, 1, &err) != 0)
		log_warn("a batch that was applied could not be taken out of the batchlog: %s",
		    err.text);
	free(removal);
}

void
batchlog_remove(struct executor *executor, const struct uuid *id)
{
	struct stage *stage = executor->node->stages[NODE_STAGE_MISC];
	struct batchlog_removal *removal = xmalloc(sizeof(*removal));

	*removal = (struct batchlog_removal){executor, *id};
	if (stage == NULL || !stage_submit_work(stage, batchlog_run_removal, removal))
		free(removal);
}

/* ---- Replay -------------------------------------------------------------------------------- */

static const struct table_metadata *
batchlog_find_table(void *argument, const struct uuid *id)
{
	return schema_table_by_id(argument, id);
}

static void
batchlog_applied(struct store_write *write, const struct error *err)
{
	if (err != NULL && write->context != NULL)
		*(struct error *)write->context = *err;
}

static int
batchlog_apply(struct executor *executor, struct schema *schema, struct slice blob,
    struct arena *arena, struct error *err)
{
	struct mutation mutation;
	struct error failed;
	struct store_write write = {
	    .mutation = &mutation, .is_durable = false, .on_done = batchlog_applied};

	if (mutation_decode(blob, batchlog_find_table, schema, arena, &mutation, err) != 0)
		return -1;
	error_clear(&failed);
	write.context = &failed;
	/* Not through the commit log: a sync would answer later. The batch stays in the batchlog
	 * until what it wrote has been flushed. */
	store_apply(executor->store, &write);
	if (failed.code == ERROR_NONE)
		return 0;
	if (err != NULL)
		*err = failed;
	return -1;
}

static int
batchlog_replay_one(
    struct executor *executor, struct schema *schema, const struct slice *cells, struct error *err)
{
	const struct type *type;
	struct type_iterator iterator;
	struct slice blob;
	struct arena arena;
	int rc = 0;

	arena_init(&arena, BATCHLOG_ARENA_BLOCK);
	type = type_list(&arena, type_native(TYPE_BLOB), false);
	if (type == NULL)
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for the batchlog");
	if (rc == 0 && !slice_is_null(cells[1])) {
		type_iterator_init(&iterator, type, cells[1]);
		while (rc == 0 && type_iterator_next(&iterator, &blob, NULL))
			rc = batchlog_apply(executor, schema, blob, &arena, err);
	}
	arena_fini(&arena);
	return rc;
}

static int
batchlog_flush_all(struct executor *executor, struct error *err)
{
	struct table_store **tables;
	uint32_t count;
	int rc = 0;

	tables = store_tables(executor->store, &count);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = store_flush(executor->store, tables[i], err);
	free(tables);
	return rc;
}

int
batchlog_replay(struct executor *executor, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct schema *schema;
	struct internal_rows rows;
	unsigned count = 0;
	int rc = 0;

	if (internal_select(executor, "SELECT id, mutations, version FROM system.batches", NULL, 0,
		&rows, err) != 0)
		return -1;
	schema = schema_holder_get(&executor->schema);
	while (rc == 0 && internal_rows_next(&rows, cells)) {
		/* Another server's batches are in another form: they are left where they are. */
		if (cells[2].size != 4 || load_u32(cells[2].data) != BATCHLOG_VERSION)
			continue;
		rc = batchlog_replay_one(executor, schema, cells, err);
		count++;
	}
	schema_unref(schema);
	internal_rows_fini(&rows);
	if (rc != 0 || count == 0)
		return rc;
	log_info("%u batches that a crash interrupted were applied again", count);
	if (batchlog_flush_all(executor, err) != 0 ||
	    internal_select(
		executor, "SELECT id, version FROM system.batches", NULL, 0, &rows, err) != 0)
		return -1;
	while (internal_rows_next(&rows, cells)) {
		struct uuid id;

		if (cells[0].size != 16 || cells[1].size != 4 ||
		    load_u32(cells[1].data) != BATCHLOG_VERSION)
			continue;
		memcpy(id.bytes, cells[0].data, 16);
		batchlog_remove(executor, &id);
	}
	internal_rows_fini(&rows);
	return 0;
}
