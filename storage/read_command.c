/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/counter.h"
#include "storage/read_command.h"

bool
read_command_is_one_row(const struct read_command *command)
{
	const struct table_metadata *table = command->table;
	const struct clustering_filter *filter = &command->clustering;

	if (command->is_range || table_is_counter(table) ||
	    (table->static_count != 0 && filter->with_static) ||
	    (table->clustering_count != 0 && (!filter->is_names || filter->slice_count != 1)))
		return false;
	/* Columns of many cells stand behind the others. */
	for (uint32_t i = table->regular_simple_count; i < table->regular_count; i++)
		if (command->wanted_regulars == NULL ||
		    (command->wanted_regulars[i / 64] >> (i % 64) & 1) != 0)
			return false;
	return true;
}

/* Component `position` of a composite key; the key itself when there is only one. */
static struct slice
read_command_key_component(const struct table_metadata *table, struct slice key, uint32_t position)
{
	struct reader reader = reader_of(key);
	struct slice component = slice_null;

	if (table->partition_key_count == 1)
		return key;
	for (uint32_t i = 0; i <= position; i++) {
		component = reader_bytes(&reader, reader_u16(&reader));
		reader_skip(&reader, 1);
	}
	return reader.is_failed ? slice_null : component;
}

/* A column's cells in a row: the first, and how many. Columns match by name across versions. */
static const struct cell *
read_command_cells(const struct row *row, const struct column_metadata *column, uint32_t *count)
{
	const struct cell *first = NULL;

	*count = 0;
	if (row == NULL)
		return NULL;
	for (uint32_t i = 0; i < row->cell_count; i++) {
		const struct column_metadata *other = row->cells[i].column;

		if (other != column && !slice_equal(other->name, column->name)) {
			if (first != NULL)
				break;
			continue;
		}
		if (first == NULL)
			first = &row->cells[i];
		++*count;
	}
	return first;
}

static bool
read_command_equal(const struct type *type, struct slice a, struct slice b)
{
	return !slice_is_null(a) && !slice_is_null(b) && type_compare(type, a, b) == 0;
}

static bool
read_command_contains_bytes(struct slice value, struct slice part)
{
	return part.size == 0 || memmem(value.data, value.size, part.data, part.size) != NULL;
}

/* '%' is a wildcard at the ends of the pattern only (LIKE_PREFIX, _SUFFIX, _CONTAINS, _MATCHES). */
static bool
read_command_like(struct slice value, struct slice pattern)
{
	bool any_before = false, any_after = false;

	if (pattern.size != 0 && pattern.data[0] == '%') {
		any_before = true;
		pattern.data++;
		pattern.size--;
	}
	if (pattern.size != 0 && pattern.data[pattern.size - 1] == '%') {
		any_after = true;
		pattern.size--;
	}
	if (pattern.size > value.size)
		return false;
	if (any_before && any_after)
		return read_command_contains_bytes(value, pattern);
	if (any_before)
		value.data += value.size - pattern.size;
	else if (!any_after && value.size != pattern.size)
		return false;
	return pattern.size == 0 || memcmp(value.data, pattern.data, pattern.size) == 0;
}

/* The operators that look at one value. */
static bool
read_command_test(
    const struct filter_expression *filter, const struct type *type, struct slice value)
{
	switch (filter->operator) {
	case FILTER_EQ:
		return read_command_equal(type, value, filter->value);
	case FILTER_NEQ:
		return !slice_is_null(filter->value) &&
		    type_compare(type, value, filter->value) != 0;
	case FILTER_LT:
		return !slice_is_null(filter->value) &&
		    type_compare(type, value, filter->value) < 0;
	case FILTER_LTE:
		return !slice_is_null(filter->value) &&
		    type_compare(type, value, filter->value) <= 0;
	case FILTER_GT:
		return !slice_is_null(filter->value) &&
		    type_compare(type, value, filter->value) > 0;
	case FILTER_GTE:
		return !slice_is_null(filter->value) &&
		    type_compare(type, value, filter->value) >= 0;
	case FILTER_IN:
		for (uint32_t i = 0; i < filter->value_count; i++) {
			if (read_command_equal(type, value, filter->values[i]))
				return true;
		}
		return false;
	case FILTER_LIKE:
		return !slice_is_null(filter->value) && read_command_like(value, filter->value);
	case FILTER_IS_NOT_NULL:
		return true;
	case FILTER_CONTAINS:
	case FILTER_CONTAINS_KEY:
	case FILTER_MAP_EQ:
		break;
	}
	return false;
}

/* One element of a collection: key (map), or the element of a set as key; value (list, map). */
static bool
read_command_test_element(const struct filter_expression *filter, const struct type *type,
    struct slice key, struct slice value)
{
	switch (filter->operator) {
	case FILTER_CONTAINS:
		if (type->kind == TYPE_SET)
			return read_command_equal(type->params[0], key, filter->value);
		return read_command_equal(
		    type->params[type->kind == TYPE_MAP], value, filter->value);
	case FILTER_CONTAINS_KEY:
		return read_command_equal(type->params[0], key, filter->value);
	case FILTER_MAP_EQ:
		return read_command_equal(type->params[0], key, filter->map_key) &&
		    read_command_equal(type->params[1], value, filter->value);
	default:
		return false;
	}
}

static bool
read_command_test_frozen(
    const struct filter_expression *filter, const struct type *type, struct slice collection)
{
	struct type_iterator iterator;
	struct slice element, value = slice_null;

	type_iterator_init(&iterator, type, collection);
	while (type_iterator_next(&iterator, &element, NULL)) {
		if (type->kind == TYPE_MAP && !type_iterator_next(&iterator, &value, NULL))
			break;
		if (read_command_test_element(
			filter, type, element, type->kind == TYPE_MAP ? value : element))
			return true;
	}
	return false;
}

static bool read_command_is_about_elements(enum filter_operator operator)
{
	return operator== FILTER_CONTAINS || operator== FILTER_CONTAINS_KEY || operator==
	    FILTER_MAP_EQ;
}

/* A column that is not part of the key. */
static bool
read_command_test_cells(const struct filter_expression *filter, const struct row *row)
{
	const struct type *type = filter->column->type;
	uint32_t count;
	const struct cell *cells = read_command_cells(row, filter->column, &count);
	uint8_t total[8];

	if (count == 0)
		return false;
	if (read_command_is_about_elements(filter->operator)) {
		if (!type_is_collection(type) ||
		    (filter->operator!= FILTER_CONTAINS && type->kind != TYPE_MAP))
			return false;
		if (!filter->column->is_complex)
			return read_command_test_frozen(filter, type, cells->value);
		for (uint32_t i = 0; i < count; i++) {
			if (read_command_test_element(filter, type, cells[i].path, cells[i].value))
				return true;
		}
		return false;
	}
	if (filter->column->is_complex)
		return filter->operator== FILTER_IS_NOT_NULL;
	if (type->kind == TYPE_COUNTER) {
		store_u64(total, (uint64_t)counter_total(cells->value));
		return read_command_test(
		    filter, type_native(TYPE_BIGINT), slice_of(total, sizeof(total)));
	}
	return read_command_test(filter, type, cells->value);
}

/* A column of the key. */
static bool
read_command_test_key(const struct filter_expression *filter, struct slice value)
{
	const struct type *type = filter->column->type;

	if (slice_is_null(value))
		return false;
	if (!read_command_is_about_elements(filter->operator))
		return read_command_test(filter, type, value);
	return type_is_collection(type) &&
	    (filter->operator== FILTER_CONTAINS || type->kind == TYPE_MAP) &&
	    read_command_test_frozen(filter, type, value);
}

int
read_command_filter(const struct read_command *command, struct slice key,
    const struct row *static_row, const struct row *row, struct error *err)
{
	(void)err; /* nothing fails yet: custom expressions would */
	for (uint32_t i = 0; i < command->filter_count; i++) {
		const struct filter_expression *filter = &command->filters[i];
		const struct column_metadata *column = filter->column;
		bool passes = false;

		switch (column->kind) {
		case COLUMN_PARTITION_KEY:
			passes = read_command_test_key(filter,
			    read_command_key_component(command->table, key, column->position));
			break;
		case COLUMN_CLUSTERING:
			if (row != NULL && column->position < row->clustering_count)
				passes = read_command_test_key(
				    filter, row->clustering[column->position]);
			break;
		case COLUMN_STATIC:
			passes = read_command_test_cells(filter, static_row);
			break;
		case COLUMN_REGULAR:
			passes = read_command_test_cells(filter, row);
			break;
		}
		if (!passes)
			return 0;
	}
	return 1;
}
