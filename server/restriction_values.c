/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restrictions with the values of one execution: keys, tokens, slices of clusterings, filters.
 */
#include <stdlib.h>
#include "base/hash.h"
#include "server/guardrails.h"
#include "server/restriction.h"

static int
restriction_values_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for the values of restrictions");
}

static int
restriction_eval(const struct term *term, const struct column_metadata *column,
    const struct term_context *context, struct slice *out, struct error *err)
{
	bool is_unset;

	if (term_eval(term, context, out, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return error_set(err, ERROR_INVALID, "Invalid unset value for column %.*s",
		    (int)column->name.size, column->name.data);
	if (slice_is_null(*out))
		return error_set(err, ERROR_INVALID,
		    "Invalid null value in condition for column %.*s", (int)column->name.size,
		    column->name.data);
	return 0;
}

/* The values of a restriction on one column: one (EQ) or those of IN. */
static int
restriction_single_values(const struct restriction *restriction, const struct term_context *context,
    struct slice **values, uint32_t *count, struct error *err)
{
	const struct column_metadata *column = restriction->columns[0];
	struct slice list;
	int32_t size;

	if (restriction->kind == RESTRICTION_EQ || restriction->in_marker == NULL) {
		const struct term *const *terms = restriction->kind == RESTRICTION_EQ
		    ? &restriction->value
		    : (const struct term *const *)restriction->in_values;

		*count = restriction->kind == RESTRICTION_EQ ? 1 : restriction->in_count;
		*values = arena_calloc(context->arena, *count, sizeof(**values));
		if (*values == NULL)
			return restriction_values_no_memory(err);
		for (uint32_t i = 0; i < *count; i++) {
			if (restriction_eval(terms[i], column, context, &(*values)[i], err) != 0)
				return -1;
		}
		return 0;
	}
	{
		struct type_iterator iterator;
		bool is_unset;

		if (term_eval(restriction->in_marker, context, &list, &is_unset, err) != 0)
			return -1;
		if (is_unset)
			return error_set(err, ERROR_INVALID, "Invalid unset value for column %.*s",
			    (int)column->name.size, column->name.data);
		if (slice_is_null(list))
			return error_set(err, ERROR_INVALID, "Invalid null value for column %.*s",
			    (int)column->name.size, column->name.data);
		size = type_collection_size(list);
		*count = 0;
		*values =
		    arena_calloc(context->arena, size > 0 ? (size_t)size : 0, sizeof(**values));
		if (*values == NULL)
			return restriction_values_no_memory(err);
		type_iterator_init(&iterator, restriction->in_marker->type, list);
		while (*count < (uint32_t)(size > 0 ? size : 0) &&
		    type_iterator_next(&iterator, &(*values)[*count], NULL)) {
			if (slice_is_null((*values)[*count]))
				return error_set(err, ERROR_INVALID,
				    "Invalid null value in condition for column %.*s",
				    (int)column->name.size, column->name.data);
			(*count)++;
		}
	}
	return 0;
}

/* ---- Partition keys ------------------------------------------------------------------------ */

static int
restriction_check_key(const struct table_metadata *table, struct slice key, struct error *err)
{
	if (key.size == 0 && table->partition_key_count == 1)
		return error_set(err, ERROR_INVALID, "Key may not be empty");
	if (key.size > UINT16_MAX)
		return error_set(err, ERROR_INVALID,
		    "Key length of %zu is longer than maximum of %d", key.size, UINT16_MAX);
	return 0;
}

static int
restriction_make_key(const struct table_metadata *table, const struct slice *components,
    struct arena *arena, struct slice *key, struct error *err)
{
	if (table->partition_key_count > 1) {
		for (uint32_t i = 0; i < table->partition_key_count; i++) {
			if (components[i].size > UINT16_MAX)
				return error_set(err, ERROR_INVALID,
				    "Key length of %zu is longer than maximum of %d",
				    components[i].size, UINT16_MAX);
		}
	}
	*key = table_partition_key(table, components, arena);
	if (slice_is_null(*key))
		return restriction_values_no_memory(err);
	return restriction_check_key(table, *key, err);
}

int
restrictions_key(const struct restrictions *restrictions, const struct term_context *context,
    struct slice *key, struct error *err)
{
	const struct table_metadata *table = restrictions->table;
	struct slice components[8];
	struct slice *parts = components;

	if (table->partition_key_count > 8) {
		parts = arena_calloc(context->arena, table->partition_key_count, sizeof(*parts));
		if (parts == NULL)
			return restriction_values_no_memory(err);
	}
	for (uint32_t i = 0; i < table->partition_key_count; i++) {
		if (restriction_eval(restrictions->partition[i]->value, &table->partition_key[i],
			context, &parts[i], err) != 0)
			return -1;
	}
	return restriction_make_key(table, parts, context->arena, key, err);
}

struct restriction_column_values {
	struct slice *values;
	uint32_t count;
};

int
restrictions_keys(const struct restrictions *restrictions, const struct term_context *context,
    struct slice **keys, uint32_t *count, struct error *err)
{
	const struct table_metadata *table = restrictions->table;
	uint32_t width = table->partition_key_count;
	struct restriction_column_values *columns =
	    arena_calloc(context->arena, width, sizeof(*columns));
	struct slice *components = arena_calloc(context->arena, width, sizeof(*components));
	uint64_t total = 1, product = 1;
	bool has_in = false;

	if (columns == NULL || components == NULL)
		return restriction_values_no_memory(err);
	for (uint32_t i = 0; i < width; i++) {
		if (restriction_single_values(restrictions->partition[i], context,
			&columns[i].values, &columns[i].count, err) != 0)
			return -1;
		/* Doubles count here: the work was asked for. */
		product *= columns[i].count;
		columns[i].count = type_sort_elements(
		    table->partition_key[i].type, columns[i].values, columns[i].count, 1);
		total *= columns[i].count;
		has_in = has_in || restrictions->partition[i]->kind != RESTRICTION_EQ;
		if (total > 1000000)
			return error_set(err, ERROR_INVALID,
			    "The query selects more than 1000000 partition keys");
		if (has_in &&
		    guardrail_check_maximum(context->execution,
			GUARDRAIL_IN_SELECT_CARTESIAN_PRODUCT, slice_of_string("partition key"),
			(int64_t)product, err) != 0)
			return -1;
	}
	*count = (uint32_t)total;
	*keys = arena_calloc(context->arena, total, sizeof(**keys));
	if (*keys == NULL)
		return restriction_values_no_memory(err);
	for (uint32_t n = 0; n < total; n++) {
		uint64_t rest = n;

		for (uint32_t i = width; i-- > 0;) {
			components[i] = columns[i].values[rest % columns[i].count];
			rest /= columns[i].count;
		}
		if (restriction_make_key(table, components, context->arena, &(*keys)[n], err) != 0)
			return -1;
	}
	return 0;
}

static int
restriction_eval_token(const struct restriction *restriction, const struct term *term,
    const struct term_context *context, int64_t *out, struct error *err)
{
	struct slice value;

	if (restriction_eval(term, restriction->columns[0], context, &value, err) != 0)
		return -1;
	*out = value.size == 8 ? (int64_t)load_u64(value.data) : INT64_MIN;
	return 0;
}

int
restrictions_token_range(const struct restrictions *restrictions,
    const struct term_context *context, struct token_range *range, bool *is_empty,
    struct error *err)
{
	const struct restriction *restriction = restrictions->token;
	int64_t start, end;

	*is_empty = false;
	*range = (struct token_range){INT64_MIN, INT64_MIN, true, false, slice_null, false};
	if (restriction == NULL)
		return 0;
	if (restriction->kind == RESTRICTION_EQ) {
		if (restriction_eval_token(restriction, restriction->value, context, &start, err) !=
		    0)
			return -1;
		range->left = start;
		range->right = start;
		/* No key has the smallest token but the empty one, which is refused. */
		*is_empty = start == INT64_MIN;
		return 0;
	}
	if (restriction->bounds[BOUND_START] != NULL) {
		if (restriction_eval_token(
			restriction, restriction->bounds[BOUND_START], context, &start, err) != 0)
			return -1;
		range->left = start;
		range->includes_left = restriction->is_inclusive[BOUND_START];
	}
	if (restriction->bounds[BOUND_END] != NULL) {
		if (restriction_eval_token(
			restriction, restriction->bounds[BOUND_END], context, &end, err) != 0)
			return -1;
		range->right = end;
		range->excludes_right = !restriction->is_inclusive[BOUND_END] && end != INT64_MIN;
	}
	/* A range never wraps; the smallest token as an upper bound is the end of the ring. */
	if (range->right != INT64_MIN) {
		if (range->left > range->right)
			*is_empty = true;
		else if (range->left == range->right)
			*is_empty = !range->includes_left || range->excludes_right;
	}
	return 0;
}

/* ---- Clusterings --------------------------------------------------------------------------- */

/* A half line: everything after (start) or before (end) a bound, given a prefix. */
struct restriction_bound {
	enum bound_kind kind;
	const struct slice *values;
	uint32_t count;
	struct slice position;
};

struct restriction_prefixes {
	struct slice *values; /* count * width */
	uint32_t count;
	uint32_t width;
};

static int
restriction_tuple_parts(const struct restriction *restriction, struct slice tuple,
    const struct term_context *context, struct slice *out, struct error *err)
{
	struct type_iterator iterator;
	uint32_t i = 0;

	(void)context;
	type_iterator_init(&iterator, restriction->tuple_type, tuple);
	while (i < restriction->column_count && type_iterator_next(&iterator, &out[i], NULL)) {
		const struct column_metadata *column = restriction->columns[i];

		if (slice_is_null(out[i]))
			return error_set(err, ERROR_INVALID,
			    "Invalid null value in condition for column %.*s",
			    (int)column->name.size, column->name.data);
		i++;
	}
	for (; i < restriction->column_count; i++)
		return error_set(err, ERROR_INVALID,
		    "Invalid null value in condition for column %.*s",
		    (int)restriction->columns[i]->name.size, restriction->columns[i]->name.data);
	return 0;
}

/* A tuple's components; a literal may be shorter than the columns of a slice. */
static int
restriction_eval_tuple(const struct restriction *restriction, const struct term *term,
    const struct term_context *context, struct slice *out, struct error *err)
{
	struct slice tuple;

	if (term->kind == TERM_TUPLE) {
		for (uint32_t i = 0; i < term->parts.count; i++) {
			if (restriction_eval(term->parts.items[i], restriction->columns[i], context,
				&out[i], err) != 0)
				return -1;
		}
		if (term->parts.count < restriction->column_count)
			return error_set(err, ERROR_INVALID,
			    "Expected %u elements in value tuple, but got %u",
			    restriction->column_count, term->parts.count);
		return 0;
	}
	if (restriction_eval(term, restriction->columns[0], context, &tuple, err) != 0)
		return -1;
	return restriction_tuple_parts(restriction, tuple, context, out, err);
}

/* The value tuples of an EQ or IN, `column_count` slices each. */
static int
restriction_multi_values(const struct restriction *restriction, const struct term_context *context,
    struct slice **values, uint32_t *count, struct error *err)
{
	uint32_t width = restriction->column_count;

	if (restriction->in_marker != NULL) {
		struct type_iterator iterator;
		struct slice list, tuple;
		int32_t size;

		if (restriction_eval(
			restriction->in_marker, restriction->columns[0], context, &list, err) != 0)
			return -1;
		size = type_collection_size(list);
		*values = arena_calloc(
		    context->arena, (size_t)(size > 0 ? size : 0) * width, sizeof(**values));
		if (*values == NULL)
			return restriction_values_no_memory(err);
		*count = 0;
		type_iterator_init(&iterator, restriction->in_marker->type, list);
		while (*count < (uint32_t)(size > 0 ? size : 0) &&
		    type_iterator_next(&iterator, &tuple, NULL)) {
			if (restriction_tuple_parts(restriction, tuple, context,
				*values + (size_t)*count * width, err) != 0)
				return -1;
			(*count)++;
		}
		return 0;
	}
	*count = restriction->kind == RESTRICTION_EQ ? 1 : restriction->in_count;
	*values = arena_calloc(context->arena, (size_t)*count * width, sizeof(**values));
	if (*values == NULL)
		return restriction_values_no_memory(err);
	for (uint32_t i = 0; i < *count; i++) {
		const struct term *term = restriction->kind == RESTRICTION_EQ
		    ? restriction->value
		    : restriction->in_values[i];

		if (restriction_eval_tuple(
			restriction, term, context, *values + (size_t)i * width, err) != 0)
			return -1;
	}
	return 0;
}

static int
restriction_extend(const struct restrictions *restrictions, const struct restriction *restriction,
    const struct term_context *context, struct restriction_prefixes *prefixes, struct error *err)
{
	struct slice *values, *extended;
	uint32_t count, width = restriction->column_count;
	uint64_t total;

	(void)restrictions;
	if (restriction->is_multi
		? restriction_multi_values(restriction, context, &values, &count, err)
		: restriction_single_values(restriction, context, &values, &count, err))
		return -1;
	total = (uint64_t)prefixes->count * count;
	if (total > 1000000)
		return error_set(
		    err, ERROR_INVALID, "The query selects more than 1000000 clusterings");
	extended =
	    arena_calloc(context->arena, total * (prefixes->width + width), sizeof(*extended));
	if (extended == NULL)
		return restriction_values_no_memory(err);
	for (uint32_t i = 0, n = 0; i < prefixes->count; i++) {
		for (uint32_t j = 0; j < count; j++, n++) {
			struct slice *to = extended + (size_t)n * (prefixes->width + width);

			memcpy(to, prefixes->values + (size_t)i * prefixes->width,
			    prefixes->width * sizeof(*to));
			memcpy(
			    to + prefixes->width, values + (size_t)j * width, width * sizeof(*to));
		}
	}
	prefixes->values = extended;
	prefixes->count = (uint32_t)total;
	prefixes->width += width;
	return 0;
}

static int
clustering_range_compare(const void *a, const void *b)
{
	const struct clustering_range *left = a, *right = b;

	return slice_compare(left->start_position, right->start_position);
}

static int
clustering_range_positions(const struct table_metadata *table, struct clustering_range *range,
    struct arena *arena, struct error *err)
{
	range->start_position =
	    position_make(table, range->start_kind, range->start, range->start_count, arena);
	range->end_position =
	    position_make(table, range->end_kind, range->end, range->end_count, arena);
	if (slice_is_null(range->start_position) || slice_is_null(range->end_position))
		return restriction_values_no_memory(err);
	return 0;
}

/* Sort, drop doubles. */
static void
clustering_ranges_sort(struct clustering_range *ranges, uint32_t *count)
{
	uint32_t kept = 0;

	if (*count < 2)
		return;
	qsort(ranges, *count, sizeof(*ranges), clustering_range_compare);
	for (uint32_t i = 0; i < *count; i++) {
		if (kept > 0 &&
		    slice_equal(ranges[kept - 1].start_position, ranges[i].start_position) &&
		    slice_equal(ranges[kept - 1].end_position, ranges[i].end_position))
			continue;
		ranges[kept++] = ranges[i];
	}
	*count = kept;
}

/*
 * The ranges behind one prefix for which (c1, .., cn) <op> (v1, .., vn) holds. In the order of values
 * that is the union, over i, of: the first i columns equal v, and column i beyond v. When all
 * columns run the same way it is one range; when orders are mixed it is n of them.
 */
static int
restriction_half(const struct restrictions *restrictions, const struct restriction *restriction,
    int which, const struct slice *prefix, uint32_t prefix_width, const struct slice *values,
    const struct term_context *context, struct clustering_range *ranges, uint32_t *count,
    struct error *err)
{
	const struct table_metadata *table = restrictions->table;
	uint32_t width = restriction->column_count;
	bool is_inclusive = restriction->is_inclusive[which];
	bool is_mixed = false;

	for (uint32_t i = 1; i < width; i++) {
		if (restriction->columns[i]->is_reversed != restriction->columns[0]->is_reversed)
			is_mixed = true;
	}
	*count = 0;
	for (uint32_t i = is_mixed ? 0 : width - 1; i < width; i++) {
		struct clustering_range *range = &ranges[(*count)++];
		struct slice *bound =
		    arena_calloc(context->arena, (size_t)prefix_width + width, sizeof(*bound));
		uint32_t equal = is_mixed ? i : 0; /* leading columns that are equal */
		bool is_start =
		    (which == BOUND_START) != restriction->columns[is_mixed ? i : 0]->is_reversed;
		bool closes = is_inclusive && i == width - 1;

		if (bound == NULL)
			return restriction_values_no_memory(err);
		memcpy(bound, prefix, prefix_width * sizeof(*bound));
		memcpy(bound + prefix_width, values, width * sizeof(*bound));
		*range = (struct clustering_range){.start_kind = BOUND_INCL_START,
		    .end_kind = BOUND_INCL_END,
		    .start = bound,
		    .end = bound,
		    .start_count = prefix_width + equal,
		    .end_count = prefix_width + equal};
		if (is_start) {
			range->start_kind = closes ? BOUND_INCL_START : BOUND_EXCL_START;
			range->start_count = prefix_width + i + 1;
		} else {
			range->end_kind = closes ? BOUND_INCL_END : BOUND_EXCL_END;
			range->end_count = prefix_width + i + 1;
		}
		if (clustering_range_positions(table, range, context->arena, err) != 0)
			return -1;
	}
	clustering_ranges_sort(ranges, count);
	return 0;
}

/* Append the common parts of two lists of disjoint ranges. */
static void
clustering_ranges_intersect(const struct clustering_range *a, uint32_t a_count,
    const struct clustering_range *b, uint32_t b_count, struct clustering_range *out,
    uint32_t *count)
{
	for (uint32_t i = 0; i < a_count; i++) {
		for (uint32_t j = 0; j < b_count; j++) {
			struct clustering_range range = a[i];

			if (slice_compare(b[j].start_position, range.start_position) > 0) {
				range.start_kind = b[j].start_kind;
				range.start = b[j].start;
				range.start_count = b[j].start_count;
				range.start_position = b[j].start_position;
			}
			if (slice_compare(b[j].end_position, range.end_position) < 0) {
				range.end_kind = b[j].end_kind;
				range.end = b[j].end;
				range.end_count = b[j].end_count;
				range.end_position = b[j].end_position;
			}
			if (slice_compare(range.start_position, range.end_position) < 0)
				out[(*count)++] = range;
		}
	}
}

static int
restriction_eval_bound(const struct restriction *restriction, int which,
    const struct term_context *context, struct slice *values, struct error *err)
{
	const struct term *term = restriction->bounds[which];
	bool is_unset;

	if (restriction->is_multi)
		return restriction_eval_tuple(restriction, term, context, values, err);
	/* Null is before every value, as Cassandra has it. */
	if (term_eval(term, context, values, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return error_set(err, ERROR_INVALID, "Invalid unset value for column %.*s",
		    (int)restriction->columns[0]->name.size, restriction->columns[0]->name.data);
	return 0;
}

/* One prefix, then a slice. */
static int
restriction_slice_ranges(const struct restrictions *restrictions,
    const struct restriction *restriction, const struct restriction_prefixes *prefixes,
    const struct term_context *context, struct clustering_range **ranges, uint32_t *count,
    struct error *err)
{
	uint32_t width = restriction->column_count;
	struct slice *values[2] = {NULL, NULL};
	struct clustering_range *halves[2];

	*ranges =
	    arena_calloc(context->arena, (size_t)prefixes->count * width * width, sizeof(**ranges));
	for (int which = 0; which < 2; which++) {
		halves[which] = arena_calloc(context->arena, width, sizeof(*halves[which]));
		values[which] = arena_calloc(context->arena, width, sizeof(*values[which]));
		if (*ranges == NULL || halves[which] == NULL || values[which] == NULL)
			return restriction_values_no_memory(err);
		if (restriction->bounds[which] != NULL &&
		    restriction_eval_bound(
			restriction->bound_of[which], which, context, values[which], err) != 0)
			return -1;
	}
	*count = 0;
	for (uint32_t n = 0; n < prefixes->count; n++) {
		const struct slice *prefix = prefixes->values + (size_t)n * prefixes->width;
		struct clustering_range whole = {.start_kind = BOUND_INCL_START,
		    .end_kind = BOUND_INCL_END,
		    .start = prefix,
		    .end = prefix,
		    .start_count = prefixes->width,
		    .end_count = prefixes->width};
		uint32_t counts[2] = {0, 0};

		for (int which = 0; which < 2; which++) {
			if (restriction->bounds[which] == NULL) {
				if (clustering_range_positions(
					restrictions->table, &whole, context->arena, err) != 0)
					return -1;
				halves[which][0] = whole;
				counts[which] = 1;
				continue;
			}
			if (restriction_half(restrictions, restriction->bound_of[which], which,
				prefix, prefixes->width, values[which], context, halves[which],
				&counts[which], err) != 0)
				return -1;
		}
		clustering_ranges_intersect(
		    halves[0], counts[0], halves[1], counts[1], *ranges, count);
	}
	clustering_ranges_sort(*ranges, count);
	return 0;
}

int
restrictions_ranges(const struct restrictions *restrictions, const struct term_context *context,
    struct clustering_range **ranges, uint32_t *count, struct error *err)
{
	const struct table_metadata *table = restrictions->table;
	struct slice nothing = slice_empty;
	struct restriction_prefixes prefixes = {&nothing, 1, 0};
	bool has_in = false;
	uint32_t i = 0;

	while (i < restrictions->clustering_prefix) {
		const struct restriction *restriction = restrictions->clustering[i];

		if (restriction->kind == RESTRICTION_SLICE)
			return restriction_slice_ranges(
			    restrictions, restriction, &prefixes, context, ranges, count, err);
		if (restriction_extend(restrictions, restriction, context, &prefixes, err) != 0)
			return -1;
		has_in = has_in || restriction->kind != RESTRICTION_EQ;
		if (has_in &&
		    guardrail_check_maximum(context->execution,
			GUARDRAIL_IN_SELECT_CARTESIAN_PRODUCT, slice_of_string("clustering key"),
			prefixes.count, err) != 0)
			return -1;
		i += restriction->column_count;
	}
	*count = prefixes.count;
	*ranges = arena_calloc(context->arena, prefixes.count, sizeof(**ranges));
	if (*ranges == NULL)
		return restriction_values_no_memory(err);
	for (uint32_t n = 0; n < prefixes.count; n++) {
		struct clustering_range *range = &(*ranges)[n];
		const struct slice *prefix = prefixes.values + (size_t)n * prefixes.width;

		*range = (struct clustering_range){.start_kind = BOUND_INCL_START,
		    .end_kind = BOUND_INCL_END,
		    .start = prefix,
		    .end = prefix,
		    .start_count = prefixes.width,
		    .end_count = prefixes.width,
		    .is_row = prefixes.width == table->clustering_count};
		if (clustering_range_positions(table, range, context->arena, err) != 0)
			return -1;
	}
	clustering_ranges_sort(*ranges, count);
	return 0;
}

/* ---- Filters ------------------------------------------------------------------------------- */

static int
restriction_eval_operand(const struct restriction_filter *filter,
    const struct term_context *context, struct slice *out, struct error *err)
{
	bool is_unset;

	if (term_eval(filter->value, context, out, &is_unset, err) != 0)
		return -1;
	if (is_unset || slice_is_null(*out))
		return error_set(err, ERROR_INVALID, "Unsupported %s value for column %.*s",
		    is_unset ? "unset" : "null", (int)filter->column->name.size,
		    filter->column->name.data);
	return 0;
}

int
restrictions_filters(const struct restrictions *restrictions, const struct term_context *context,
    const struct filter_expression **filters, uint32_t *count, struct error *err)
{
	struct filter_expression *out =
	    arena_calloc(context->arena, restrictions->filter_count, sizeof(*out));

	if (out == NULL)
		return restriction_values_no_memory(err);
	for (uint32_t i = 0; i < restrictions->filter_count; i++) {
		const struct restriction_filter *filter = &restrictions->filters[i];
		struct filter_expression *to = &out[i];

		to->column = filter->column;
		to->operator= filter->operator;
		if (filter->operator== FILTER_IN) {
			struct restriction in = {.kind = RESTRICTION_IN,
			    .columns = (const struct column_metadata **)&filter->column,
			    .column_count = 1,
			    .in_values = filter->in_values,
			    .in_count = filter->in_count,
			    .in_marker = filter->value};
			struct slice *values;

			if (restriction_single_values(
				&in, context, &values, &to->value_count, err) != 0)
				return -1;
			to->values = values;
			continue;
		}
		if (restriction_eval_operand(filter, context, &to->value, err) != 0)
			return -1;
		if (filter->key != NULL &&
		    restriction_eval(filter->key, filter->column, context, &to->map_key, err) != 0)
			return -1;
	}
	*filters = out;
	*count = restrictions->filter_count;
	return 0;
}
