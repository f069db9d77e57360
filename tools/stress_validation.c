/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_validation.h"

#include <stdlib.h>
#include "base/alloc.h"
#include "cql/parser.h"

/* ---- Statements ------------------------------------------------------------------------------------- */

static void
stress_validation_put_name(struct buffer *out, const char *name)
{
	cql_quote_identifier(slice_of_string(name), out);
}

/* "(a, b) >= (?, ?)" */
static void
stress_validation_put_bound(
    struct buffer *out, const struct stress_table *table, uint32_t depth, const char *operator)
{
	for (uint32_t i = 0; i < depth; i++) {
		buffer_put_string(out, i == 0 ? " AND (" : ", ");
		stress_validation_put_name(out, table->clusterings[i].name);
	}
	buffer_printf(out, ") %s (", operator);
	for (uint32_t i = 0; i < depth; i++)
		buffer_put_string(out, i == 0 ? "?" : ", ?");
	buffer_put_string(out, ")");
}

static int
stress_validation_add(struct stress_validation *validation, struct stress_session *session,
    const char *name, const struct stress_table *table, struct stress_check check,
    struct error *err)
{
	struct buffer text;
	int rc;

	buffer_init(&text);
	buffer_put_string(&text, "SELECT ");
	for (uint32_t i = 0; i < validation->column_count; i++) {
		buffer_put_string(&text, i > 0 ? ", " : "");
		stress_validation_put_name(
		    &text, stress_table_name(table, table->key_count + validation->columns[i]));
	}
	if (validation->column_count == 0)
		stress_validation_put_name(&text, table->keys[0].name);
	buffer_printf(&text, " FROM %s", name);
	for (uint32_t i = 0; i < table->key_count; i++) {
		buffer_put_string(&text, i == 0 ? " WHERE " : " AND ");
		stress_validation_put_name(&text, table->keys[i].name);
		buffer_put_string(&text, " = ?");
	}
	if (check.depth > 0) {
		stress_validation_put_bound(
		    &text, table, check.depth, check.includes_first ? ">=" : ">");
		stress_validation_put_bound(
		    &text, table, check.depth, check.includes_last ? "<=" : "<");
	}
	buffer_put_u8(&text, 0);
	rc = stress_session_prepare(session, (const char *)text.data, &check.statement, err);
	if (rc != 0)
		error_prefix(err, "%s", (const char *)text.data);
	buffer_fini(&text);
	if (rc == 0)
		validation->checks[validation->count++] = check;
	return rc;
}

int
stress_validation_prepare(struct stress_validation *validation, struct stress_session *session,
    const char *name, const struct stress_table *table, struct error *err)
{
	uint32_t depth = table->clustering_count;

	if (validation->count > 0)
		return 0;
	validation->columns = xcalloc(depth + table->value_count + 1, sizeof(*validation->columns));
	for (uint32_t i = 0; i < depth + table->value_count; i++) {
		const struct stress_generator *value = i < depth ? NULL : &table->values[i - depth];

		if (value != NULL && value->type->kind == TYPE_COUNTER)
			return error_set(err, ERROR_INVALID,
			    "the operation 'validate' does not work on counters (column '%s')",
			    value->name);
		if (value == NULL || !value->is_static)
			validation->columns[validation->column_count++] = i;
	}
	validation->checks = xcalloc(depth + 4, sizeof(*validation->checks));
	for (uint32_t i = 0; i <= depth; i++) {
		struct stress_check check = {.depth = i, .includes_first = true};
		uint32_t kinds = i > 0 && i == depth ? 4 : 1;

		for (uint32_t kind = 0; kind < kinds; kind++) {
			check.includes_first = (kind & 1) == 0;
			check.includes_last = kinds == 4 && (kind & 2) == 0;
			if (stress_validation_add(validation, session, name, table, check, err) !=
			    0)
				return -1;
		}
	}
	return 0;
}

void
stress_validation_fini(struct stress_validation *validation)
{
	for (uint32_t i = 0; i < validation->count; i++)
		stress_statement_fini(&validation->checks[i].statement);
	free(validation->checks);
	free(validation->columns);
}

/* ---- Rows that should be there ----------------------------------------------------------------------- */

struct stress_rows {
	const struct stress_table *table;
	struct stress_value *values; /* in the arena */
	uint32_t count;
	uint32_t width;
};

static const struct stress_value *
stress_rows_at(const struct stress_rows *rows, uint32_t i)
{
	return &rows->values[(size_t)i * rows->width];
}

static int
stress_rows_compare(const struct stress_table *table, const struct stress_value *a,
    const struct stress_value *b, uint32_t depth)
{
	int order = 0;

	for (uint32_t i = 0; order == 0 && i < depth; i++)
		order = type_compare(table->clusterings[i].type, a[i].wire, b[i].wire);
	return order;
}

static int
stress_rows_compare_cb(const void *a, const void *b, void *user)
{
	const struct stress_table *table = user;

	return stress_rows_compare(table, a, b, table->clustering_count);
}

/* All rows that are written of the partition, fully populated, in the order of their clustering. False: none. */
static bool
stress_rows_make(struct stress_rows *rows, struct stress_partition *partition,
    const struct stress_seed *seed, struct arena *arena)
{
	uint32_t capacity = 16;

	rows->table = &partition->table;
	rows->width = partition->table.clustering_count + partition->table.value_count;
	rows->count = 0;
	rows->values =
	    arena_calloc(arena, (size_t)capacity * rows->width + 1, sizeof(*rows->values));
	partition->is_as_written = true;
	if (!stress_partition_reset(partition, seed, 1, 0, 1, false, arena))
		return false;
	while (stress_partition_next(partition)) {
		if (rows->count == capacity) {
			struct stress_value *more = arena_calloc(
			    arena, (size_t)capacity * 2 * rows->width + 1, sizeof(*more));

			memcpy(more, rows->values,
			    (size_t)capacity * rows->width * sizeof(*rows->values));
			rows->values = more;
			capacity *= 2;
		}
		if (rows->width > 0)
			memcpy(rows->values + (size_t)rows->count * rows->width, partition->row,
			    rows->width * sizeof(*rows->values));
		rows->count++;
	}
	if (rows->count > 1)
		qsort_r(rows->values, rows->count, rows->width * sizeof(*rows->values),
		    stress_rows_compare_cb, (void *)rows->table);
	return rows->count > 0;
}

/* Is the row inside of the check's bounds? */
static bool
stress_check_covers(const struct stress_check *check, const struct stress_rows *rows,
    const struct stress_request *request, const struct stress_value *row)
{
	int from, to;

	if (check->depth == 0)
		return true;
	from = stress_rows_compare(
	    rows->table, row, stress_rows_at(rows, request->first), check->depth);
	to = stress_rows_compare(
	    rows->table, row, stress_rows_at(rows, request->last), check->depth);
	return (check->includes_first ? from >= 0 : from > 0) &&
	    (check->includes_last ? to <= 0 : to < 0);
}

/* ---- Requests ---------------------------------------------------------------------------------------- */

/* Each depth is as likely as the others, and each kind of its bounds. */
static uint32_t
stress_validation_choose(
    const struct stress_validation *validation, uint32_t depths, struct stress_random *random)
{
	uint32_t depth = stress_random_below(random, depths + 1);

	if (depth == depths && depths > 0)
		return depth + stress_random_below(random, validation->count - depth);
	return depth;
}

int
stress_validation_put(const struct stress_validation *validation,
    struct stress_partition *partition, struct stress_random *random, struct arena *arena,
    struct buffer *out, uint8_t version, struct stress_request *request, struct error *err)
{
	const struct stress_table *table = &partition->table;
	const struct stress_check *check;
	struct stress_rows rows;
	struct slice *values;
	uint32_t count = 0;

	if (!stress_rows_make(&rows, partition, &request->seed, arena))
		return 0;
	request->check = stress_validation_choose(validation, table->clustering_count, random);
	check = &validation->checks[request->check];
	request->first = stress_random_below(random, rows.count);
	request->last = request->first + stress_random_below(random, rows.count - request->first);
	request->rows = 0;
	request->partitions = 0;
	values = arena_calloc(arena, table->key_count + 2 * check->depth + 1, sizeof(*values));
	for (uint32_t i = 0; i < table->key_count; i++)
		values[count++] = partition->keys[i].wire;
	for (uint32_t i = 0; i < check->depth; i++)
		values[count++] = stress_rows_at(&rows, request->first)[i].wire;
	for (uint32_t i = 0; i < check->depth; i++)
		values[count++] = stress_rows_at(&rows, request->last)[i].wire;
	stress_request_put(out, version, 0, &check->statement, values, 0, request);
	return buffer_check(out, err) == 0 ? 1 : -1;
}

/* ---- Answers ----------------------------------------------------------------------------------------- */

/* The elements of a collection as the protocol carries it. 0: it is malformed. */
static uint32_t
stress_elements(struct slice wire, struct arena *arena, struct slice **out)
{
	uint32_t count = wire.size >= 4 ? load_u32(wire.data) : 0;
	struct slice content;

	if (count == 0 || count > (wire.size - 4) / 4)
		return 0;
	content = slice_of(wire.data + 4, wire.size - 4);
	*out = arena_calloc(arena, count, sizeof(**out));
	for (uint32_t i = 0; i < count; i++) {
		if (client_next_cell(&content, &(*out)[i]) != 0)
			return 0;
	}
	return count;
}

static bool
stress_elements_hold(const struct slice *elements, uint32_t count, struct slice element)
{
	for (uint32_t i = 0; i < count; i++) {
		if (slice_equal(elements[i], element))
			return true;
	}
	return false;
}

/* Sets come back sorted and each element once. */
static bool
stress_set_equal(struct slice expected, struct slice actual, struct arena *arena)
{
	struct slice *wanted = NULL, *found = NULL;
	uint32_t wanted_count = stress_elements(expected, arena, &wanted);
	uint32_t found_count = stress_elements(actual, arena, &found), kept = 0;

	for (uint32_t i = 0; i < wanted_count; i++) {
		if (!stress_elements_hold(found, found_count, wanted[i]))
			return false;
		kept += !stress_elements_hold(wanted, i, wanted[i]);
	}
	return kept == found_count;
}

static bool
stress_cell_matches(const struct stress_generator *generator, struct slice expected,
    struct slice actual, struct arena *arena)
{
	bool is_collection =
	    generator->type->kind == TYPE_SET || generator->type->kind == TYPE_LIST;

	/* A collection without elements is no cell. */
	if (is_collection && generator->type->is_multi_cell && slice_is_null(actual))
		return expected.size >= 4 && load_u32(expected.data) == 0;
	if (generator->type->kind == TYPE_SET)
		return stress_set_equal(expected, actual, arena);
	return !slice_is_null(actual) && slice_equal(expected, actual);
}

/* The row with the clustering that begins `cells`; NULL: there should be none. */
static const struct stress_value *
stress_rows_find(const struct stress_rows *rows, const struct stress_value *cells)
{
	uint32_t low = 0, high = rows->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = stress_rows_compare(rows->table, stress_rows_at(rows, middle), cells,
		    rows->table->clustering_count);

		if (order == 0)
			return stress_rows_at(rows, middle);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static bool
stress_validation_take_row(const struct stress_validation *validation,
    const struct stress_rows *rows, const struct stress_request *request,
    const struct stress_value *cells, struct arena *arena)
{
	uint32_t depth = rows->table->clustering_count;
	const struct stress_value *row = stress_rows_find(rows, cells);

	if (row == NULL ||
	    !stress_check_covers(&validation->checks[request->check], rows, request, row))
		return false;
	for (uint32_t i = depth; i < validation->column_count; i++) {
		uint32_t column = validation->columns[i];

		if (slice_is_null(cells[i].wire) && validation->may_lack)
			continue;
		if (!stress_cell_matches(&rows->table->values[column - depth], row[column].wire,
			cells[i].wire, arena))
			return false;
	}
	return true;
}

bool
stress_validation_take(const struct stress_validation *validation,
    struct stress_partition *partition, struct arena *arena, struct stress_request *request,
    const struct client_rows *page)
{
	const struct stress_check *check = &validation->checks[request->check];
	uint32_t width = validation->column_count > 0 ? validation->column_count : 1;
	struct slice content = page->content;
	struct stress_value *cells;
	struct stress_rows rows;
	uint32_t expected = 0;

	if (page->metadata.column_count != width ||
	    !stress_rows_make(&rows, partition, &request->seed, arena))
		return false;
	cells = arena_calloc(arena, width, sizeof(*cells));
	for (uint32_t i = 0; i < page->row_count; i++) {
		for (uint32_t j = 0; j < width; j++) {
			if (client_next_cell(&content, &cells[j].wire) != 0)
				return false;
		}
		if (!stress_validation_take_row(validation, &rows, request, cells, arena))
			return false;
	}
	request->rows += page->row_count;
	if (!slice_is_null(page->metadata.paging_state))
		return true;
	for (uint32_t i = 0; i < rows.count; i++)
		expected += stress_check_covers(check, &rows, request, stress_rows_at(&rows, i));
	return request->rows == expected;
}
