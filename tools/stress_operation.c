/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_operation.h"

#include <math.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "cql/value.h"

enum { STRESS_BATCH_MAX = 65535 };

/* ---- Operations -------------------------------------------------------------------------------------- */

int
stress_operation_init(struct stress_operation *operation, const char *name,
    enum stress_operation_kind kind, const struct stress_statement *statement,
    const struct stress_table *table, struct error *err)
{
	memset(operation, 0, sizeof(*operation));
	snprintf(operation->name, sizeof(operation->name), "%s", name);
	operation->kind = kind;
	operation->statement = statement;
	operation->table = table;
	if (statement == NULL)
		return 0;
	operation->marker_columns = xcalloc(statement->marker_count + 1, sizeof(int32_t));
	for (uint32_t i = 0; i < statement->marker_count; i++) {
		operation->marker_columns[i] =
		    stress_table_index(table, statement->markers[i].name);
		if (operation->marker_columns[i] == INT32_MIN)
			return error_set(err, ERROR_INVALID,
			    "no column is made for the marker '%s'", statement->markers[i].name);
	}
	return 0;
}

void
stress_operation_route(struct stress_operation *operation, const struct stress_placement *placement)
{
	const struct stress_statement *statement = operation->statement;

	if (operation->kind == STRESS_OP_VALIDATE && placement->width > 0)
		operation->placement = placement;
	if (placement->width == 0 || statement == NULL || !statement->is_prepared)
		return;
	for (uint32_t key = 0; key < operation->table->key_count; key++) {
		uint32_t i = 0;

		while (i < statement->marker_count &&
		    operation->marker_columns[i] != -1 - (int32_t)key)
			i++;
		if (i == statement->marker_count)
			return;
	}
	operation->placement = placement;
}

void
stress_operation_fini(struct stress_operation *operation)
{
	free(operation->marker_columns);
	operation->marker_columns = NULL;
}

void
stress_predefined_table(const struct stress_settings *settings, struct stress_table *table)
{
	struct stress_distribution key_size = stress_distribution_fixed(settings->key_size);
	struct stress_generator_config config = {.seed_text = "randomstrkey", .size = &key_size};
	char seed_text[STRESS_NAME_MAX + 16];

	memset(table, 0, sizeof(*table));
	table->key_count = 1;
	table->value_count = settings->column_count;
	table->keys = xcalloc(1, sizeof(*table->keys));
	table->values = xcalloc(settings->column_count, sizeof(*table->values));
	stress_generator_init(&table->keys[0], "key", type_native(TYPE_BLOB), &config, NULL);
	table->keys[0].is_hex = true;
	for (uint32_t i = 0; i < settings->column_count; i++) {
		snprintf(seed_text, sizeof(seed_text), "randomstr%s", settings->columns[i]);
		config.seed_text = seed_text;
		config.size = &settings->column_size;
		stress_generator_init(
		    &table->values[i], settings->columns[i], type_native(TYPE_BLOB), &config, NULL);
	}
	stress_table_finish(table);
}

void
stress_predefined_query(
    const struct stress_settings *settings, enum stress_operation_kind kind, struct buffer *out)
{
	bool is_counter = kind == STRESS_OP_COUNTER_READ || kind == STRESS_OP_COUNTER_WRITE;

	if (kind == STRESS_OP_COUNTER_READ || (kind == STRESS_OP_READ && settings->slice)) {
		buffer_printf(
		    out, "SELECT * FROM \"%s\" WHERE KEY=?", is_counter ? "counter1" : "standard1");
		return;
	}
	if (kind == STRESS_OP_READ)
		buffer_put_string(out, "SELECT ");
	else if (is_counter)
		buffer_put_string(out, "UPDATE counter1 SET ");
	else if (settings->timestamp != NULL)
		buffer_printf(
		    out, "UPDATE \"standard1\" USING TIMESTAMP %s SET ", settings->timestamp);
	else
		buffer_put_string(out, "UPDATE \"standard1\" SET ");
	for (uint32_t i = 0; i < settings->column_count; i++) {
		const char *name = settings->columns[i];

		buffer_printf(out, "%s\"%s\"", i > 0 ? "," : "", name);
		if (is_counter)
			buffer_printf(out, "=\"%s\"+?", name);
		else if (kind == STRESS_OP_WRITE)
			buffer_put_string(out, " = ?");
	}
	if (kind == STRESS_OP_READ)
		buffer_put_string(out, " FROM \"standard1\"");
	buffer_put_string(out, " WHERE KEY=?");
}

/* ---- Makers ------------------------------------------------------------------------------------------ */

void
stress_maker_init(struct stress_maker *maker, const struct stress_operation *operation,
    const struct stress_settings *settings, struct stress_seeds *seeds, int64_t random_seed)
{
	uint32_t count = operation->statement != NULL ? operation->statement->marker_count + 1 : 1;

	memset(maker, 0, sizeof(*maker));
	maker->operation = operation;
	maker->settings = settings;
	stress_partition_init(&maker->partition, operation->table, random_seed);
	maker->partition.seeds = seeds;
	stress_random_seed(&maker->random, random_seed ^ 0x5eed);
	maker->population = settings->population.distribution;
	stress_distribution_seed(&maker->population, random_seed * 31);
	maker->counter_add = settings->counter_add;
	stress_distribution_seed(&maker->counter_add, random_seed * 37);
	maker->row_population = settings->row_population;
	if (operation->profile != NULL) {
		if (operation->kind == STRESS_OP_INSERT)
			maker->row_population = operation->profile->row_population;
		maker->batch_size = operation->profile->partitions;
		maker->select = operation->profile->select;
		stress_distribution_seed(&maker->batch_size, random_seed * 41);
		stress_distribution_seed(&maker->select.distribution, random_seed * 43);
	}
	stress_distribution_seed(&maker->row_population.distribution, random_seed * 47);
	maker->values = xcalloc(count, sizeof(*maker->values));
	maker->keys = operation->condition != NULL
	    ? xcalloc(operation->condition->select.marker_count + 1, sizeof(*maker->keys))
	    : NULL;
	maker->rows = operation->kind == STRESS_OP_QUERY
	    ? xcalloc((size_t)count * count, sizeof(*maker->rows))
	    : NULL;
	arena_init(&maker->arena, 16384);
}

void
stress_maker_fini(struct stress_maker *maker)
{
	stress_partition_fini(&maker->partition);
	free(maker->values);
	free(maker->keys);
	free(maker->rows);
	arena_fini(&maker->arena);
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

/* The values of the markers from the row at hand; counters are added a number of the settings. */
static void
stress_maker_gather(struct stress_maker *maker)
{
	const struct stress_operation *operation = maker->operation;

	for (uint32_t i = 0; i < operation->statement->marker_count; i++) {
		int32_t column = operation->marker_columns[i];

		maker->values[i] = stress_partition_value(&maker->partition, column)->wire;
		if (operation->kind == STRESS_OP_COUNTER_WRITE && column >= 0) {
			uint8_t *number = arena_alloc(&maker->arena, 8);

			store_u64(number, (uint64_t)stress_distribution_next(&maker->counter_add));
			maker->values[i] = slice_of(number, 8);
		}
	}
}

int
stress_maker_put(struct stress_maker *maker, struct buffer *out, uint8_t version, int16_t stream,
    struct stress_request *request, bool is_new, int64_t timestamp, struct error *err)
{
	struct stress_partition *partition = &maker->partition;

	arena_reset(&maker->arena);
	if (is_new)
		request->row_population = stress_ratio_next(&maker->row_population);
	if (maker->operation->kind == STRESS_OP_WRITE) {
		bool is_write = is_new;

		if (!stress_partition_reset(partition, &request->seed, 1, 0,
			request->row_population, is_write, &maker->arena) ||
		    !stress_partition_next(partition))
			return 0;
		/* The seed in hand may have been let go. */
		request->seed.managed = NULL;
	} else {
		stress_partition_set_key(partition, &request->seed, &maker->arena);
		if (is_new && stress_operation_is_write(maker->operation)) {
			stress_seeds_mark(partition->seeds, &request->seed, true, true);
			stress_seeds_release(partition->seeds, &request->seed);
		}
	}
	stress_maker_gather(maker);
	request->partitions = 1;
	request->rows = 1;
	stress_request_put(
	    out, version, stream, maker->operation->statement, maker->values, timestamp, request);
	return buffer_check(out, err) == 0 ? 1 : -1;
}

/* ---- Requests of profiles -------------------------------------------------------------------------- */

static void
stress_put_batch_entry(struct stress_maker *maker, struct buffer *out)
{
	const struct stress_statement *statement = maker->operation->statement;

	buffer_put_u8(out, statement->is_prepared);
	if (statement->is_prepared) {
		stress_request_put_short_bytes(out, statement->id);
		buffer_put_u16(out, (uint16_t)statement->marker_count);
	} else {
		stress_request_put_text(out, statement, maker->values);
		buffer_put_u16(out, 0);
		return;
	}
	for (uint32_t i = 0; i < statement->marker_count; i++) {
		buffer_put_u32(out,
		    slice_is_null(maker->values[i]) ? UINT32_MAX : (uint32_t)maker->values[i].size);
		buffer_put_slice(out, maker->values[i]);
	}
}

/*
 * Rows of some partitions. One row is an EXECUTE, more are a BATCH: it is written as a batch, and
 * begun anew when only one row came together.
 */
static int
stress_maker_put_insert(struct stress_maker *maker, struct stress_seeds *seeds, struct buffer *out,
    uint8_t version, uint32_t partitions, struct stress_request *request, int64_t timestamp,
    bool *is_over, struct error *err)
{
	const struct stress_statement *statement = maker->operation->statement;
	size_t start = stress_request_open(out, version, 0, OPCODE_BATCH), count_at;
	struct stress_seed seed;

	request->statement = statement;
	request->rows = 0;
	request->partitions = 0;
	buffer_put_u8(out, (uint8_t)maker->operation->profile->batch_type);
	count_at = out->size;
	buffer_put_u16(out, 0);
	while (request->partitions < partitions) {
		if (!stress_seeds_next(seeds, &maker->population, true, &seed)) {
			*is_over = request->partitions == 0;
			break;
		}
		if (!stress_partition_reset(&maker->partition, &seed,
			stress_ratio_next(&maker->select), 0,
			stress_ratio_next(&maker->row_population), true, &maker->arena))
			continue;
		request->seed = seed;
		request->seed.managed = NULL;
		request->partitions++;
		while (stress_partition_next(&maker->partition)) {
			if (request->rows == STRESS_BATCH_MAX)
				return error_set(err, ERROR_INVALID, "A batch of more than %d rows",
				    STRESS_BATCH_MAX);
			stress_maker_gather(maker);
			stress_put_batch_entry(maker, out);
			request->rows++;
		}
	}
	if (request->rows == 1) {
		out->size = start;
		stress_request_put(out, version, 0, statement, maker->values, timestamp, request);
		return buffer_check(out, err) == 0 ? 1 : -1;
	}
	if (request->rows == 0) {
		out->size = start;
		return 0;
	}
	if (!out->is_failed)
		store_u16(out->data + count_at, (uint16_t)request->rows);
	stress_request_put_options(out, start, version, statement, NULL, 0, timestamp, request);
	stress_request_close(out, start);
	return buffer_check(out, err) == 0 ? 1 : -1;
}

/* Arguments of a query: all of one row, or each from a row drawn out of a few. */
static bool
stress_maker_draw(struct stress_maker *maker, const struct stress_seed *seed)
{
	const struct stress_operation *operation = maker->operation;
	uint32_t markers = operation->statement->marker_count, rows = 0;
	int32_t wanted = operation->is_same_row || markers == 0 ? 1 : (int32_t)markers;

	if (!stress_partition_reset(&maker->partition, seed, NAN, wanted,
		stress_ratio_next(&maker->row_population), false, &maker->arena))
		return false;
	while (rows < (uint32_t)wanted && stress_partition_next(&maker->partition)) {
		for (uint32_t i = 0; i < markers; i++)
			maker->rows[rows * markers + i] = *stress_partition_value(
			    &maker->partition, operation->marker_columns[i]);
		rows++;
	}
	for (uint32_t i = 0; rows > 0 && i < markers; i++) {
		uint32_t row = operation->marker_columns[i] < 0 || rows == 1
		    ? 0
		    : stress_random_below(&maker->random, rows);

		maker->values[i] = maker->rows[row * markers + i].wire;
	}
	return rows > 0;
}

static int
stress_maker_put_check(struct stress_maker *maker, struct stress_seeds *seeds, struct buffer *out,
    uint8_t version, struct stress_request *request, bool *is_over, struct error *err)
{
	int rc;

	do {
		if (!stress_seeds_next(seeds, &maker->population, false, &request->seed)) {
			*is_over = true;
			return 0;
		}
		arena_reset(&maker->arena);
		rc = stress_validation_put(&maker->operation->profile->validation,
		    &maker->partition, &maker->random, &maker->arena, out, version, request, err);
	} while (rc == 0);
	return rc;
}

bool
stress_maker_take_page(
    struct stress_maker *maker, struct stress_request *request, const struct client_rows *rows)
{
	arena_reset(&maker->arena);
	return stress_validation_take(&maker->operation->profile->validation, &maker->partition,
	    &maker->arena, request, rows);
}

int
stress_maker_put_user(struct stress_maker *maker, struct stress_seeds *seeds, struct buffer *out,
    uint8_t version, uint32_t partitions, struct stress_request *request, int64_t timestamp,
    bool *is_over, struct error *err)
{
	const struct stress_condition *condition = maker->operation->condition;
	struct stress_seed seed;

	*is_over = false;
	arena_reset(&maker->arena);
	if (maker->operation->kind == STRESS_OP_INSERT)
		return stress_maker_put_insert(
		    maker, seeds, out, version, partitions, request, timestamp, is_over, err);
	if (maker->operation->kind == STRESS_OP_VALIDATE)
		return stress_maker_put_check(maker, seeds, out, version, request, is_over, err);
	do {
		if (!stress_seeds_next(seeds, &maker->population, false, &seed)) {
			*is_over = true;
			return 0;
		}
		request->seed = seed;
	} while (!stress_maker_draw(maker, &seed));
	request->rows = 0;
	request->partitions = 0;
	request->second_at = 0;
	if (condition != NULL) {
		stress_condition_put_select(
		    condition, &maker->partition, maker->keys, out, version);
		request->second_at = (uint32_t)out->size;
	}
	stress_request_put(
	    out, version, 0, maker->operation->statement, maker->values, timestamp, request);
	return buffer_check(out, err) == 0 ? 1 : -1;
}

int64_t
stress_maker_token(struct stress_maker *maker)
{
	uint32_t count = maker->partition.table.key_count;
	size_t size = 0;
	uint8_t *bytes, *at;

	if (count == 1)
		return murmur3_token(maker->partition.keys[0].wire);
	for (uint32_t i = 0; i < count; i++)
		size += 2 + maker->partition.keys[i].wire.size + 1;
	at = bytes = arena_alloc(&maker->arena, size);
	for (uint32_t i = 0; i < count; i++) {
		struct slice key = maker->partition.keys[i].wire;

		store_u16(at, (uint16_t)key.size);
		if (key.size > 0)
			memcpy(at + 2, key.data, key.size);
		at[2 + key.size] = 0;
		at += 2 + key.size + 1;
	}
	return murmur3_token(slice_of(bytes, size));
}

/* ---- Answers --------------------------------------------------------------------------------------------- */

bool
stress_maker_validate(struct stress_maker *maker, const struct stress_request *request,
    const struct client_rows *rows)
{
	struct stress_partition *partition = &maker->partition;
	const struct stress_table *table = &partition->table;
	uint32_t skipped = maker->settings->slice ? 1 : 0; /* the key, first of SELECT * */
	struct slice content = rows->content, cell;

	if (rows->row_count != 1 || rows->metadata.column_count != table->value_count + skipped)
		return false;
	arena_reset(&maker->arena);
	if (!stress_partition_reset(
		partition, &request->seed, 1, 0, request->row_population, false, &maker->arena) ||
	    !stress_partition_next(partition))
		return false;
	for (uint32_t i = 0; i < rows->metadata.column_count; i++) {
		if (client_next_cell(&content, &cell) != 0)
			return false;
		if (i < skipped)
			continue;
		/* What was not populated may be there from an earlier write. */
		if (!slice_is_null(partition->row[i - skipped].wire) &&
		    !slice_equal(cell, partition->row[i - skipped].wire))
			return false;
	}
	return true;
}

void
stress_maker_print_keys(
    struct stress_maker *maker, const struct stress_request *request, struct buffer *out)
{
	arena_reset(&maker->arena);
	stress_partition_set_key(&maker->partition, &request->seed, &maker->arena);
	buffer_put_string(out, "[");
	stress_partition_print_key(&maker->partition, out);
	buffer_put_string(out, "]");
}
