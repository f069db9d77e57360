/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the relations of a WHERE may be together, once each is merged into the restriction of its columns
 * (Cassandra: StatementRestrictions): whole keys, slices from the first clustering column on, and the rest by
 * filtering.
 */
#include "server/restriction_internal.h"

/* A restriction on a key column that is checked row by row. */
static void
restriction_to_filter(struct restriction_builder *builder, struct restriction *restriction)
{
	const struct column_metadata *column = restriction->columns[0];
	struct restriction_filter *filter;

	switch (restriction->kind) {
	case RESTRICTION_EQ:
		filter = restriction_add_filter(builder, column, FILTER_EQ);
		filter->value = restriction->value;
		break;
	case RESTRICTION_IN:
		filter = restriction_add_filter(builder, column, FILTER_IN);
		filter->value = restriction->in_marker;
		filter->in_values = restriction->in_values;
		filter->in_count = restriction->in_count;
		break;
	case RESTRICTION_SLICE:
		if (restriction->bounds[BOUND_START] != NULL) {
			filter = restriction_add_filter(builder, column,
			    restriction->is_inclusive[BOUND_START] ? FILTER_GTE : FILTER_GT);
			filter->value = restriction->bounds[BOUND_START];
		}
		if (restriction->bounds[BOUND_END] != NULL) {
			filter = restriction_add_filter(builder, column,
			    restriction->is_inclusive[BOUND_END] ? FILTER_LTE : FILTER_LT);
			filter->value = restriction->bounds[BOUND_END];
		}
		break;
	}
}

static int
restriction_check_modified_key(struct restriction_builder *builder, struct error *err)
{
	struct restrictions *out = builder->out;
	const struct table_metadata *table = out->table;
	const struct column_metadata **missing =
	    arena_calloc(builder->preparation->arena, table->partition_key_count, sizeof(*missing));
	uint32_t missing_count = 0;

	if (missing == NULL)
		return restriction_no_memory(err);
	if (out->token != NULL)
		return error_set(err, ERROR_INVALID,
		    "The token function cannot be used in WHERE clauses for %s statements",
		    builder->options->use == RESTRICTIONS_DELETE ? "DELETE" : "UPDATE");
	for (uint32_t i = 0; i < table->partition_key_count; i++) {
		if (out->partition[i] == NULL)
			missing[missing_count++] = &table->partition_key[i];
		else if (out->partition[i]->kind == RESTRICTION_SLICE)
			return error_set(err, ERROR_INVALID,
			    "Only EQ and IN relation are supported on the partition key (unless "
			    "you use the token() function) for %s statements",
			    builder->options->use == RESTRICTIONS_DELETE ? "DELETE" : "UPDATE");
	}
	if (missing_count > 0)
		return error_set(err, ERROR_INVALID, "Some partition key parts are missing: %s",
		    restriction_names(builder, missing, missing_count));
	return 0;
}

int
restriction_check_partition(struct restriction_builder *builder, struct error *err)
{
	struct restrictions *out = builder->out;
	const struct table_metadata *table = out->table;
	uint32_t restricted = 0;
	bool has_slice = false, has_in = false;

	out->is_simple_key = true;
	for (uint32_t i = 0; i < table->partition_key_count; i++) {
		struct restriction *restriction = out->partition[i];

		if (restriction == NULL || restriction->kind != RESTRICTION_EQ)
			out->is_simple_key = false;
		if (restriction == NULL)
			continue;
		restricted++;
		has_slice = has_slice || restriction->kind == RESTRICTION_SLICE;
		has_in = has_in || restriction->kind == RESTRICTION_IN;
	}
	out->has_key_in = has_in;
	if (builder->options->use != RESTRICTIONS_SELECT)
		return restriction_check_modified_key(builder, err);
	if (out->token != NULL) {
		out->is_simple_key = false;
		/* Whole keys and a range of tokens: the keys whose token lies in it. */
		if (restricted == table->partition_key_count && !has_slice) {
			out->has_key_in = true;
			return 0;
		}
		if (restricted > 0 && !builder->options->allow_filtering)
			return error_set(err, ERROR_INVALID, RESTRICTION_FILTERING);
		for (uint32_t i = 0; i < table->partition_key_count; i++) {
			if (out->partition[i] != NULL)
				restriction_to_filter(builder, out->partition[i]);
		}
		out->needs_filtering = restricted > 0;
		out->is_key_range = true;
		return 0;
	}
	if (restricted == table->partition_key_count && !has_slice) {
		out->has_key_in = has_in;
		return 0;
	}
	out->is_key_range = true;
	if (restricted == 0)
		return 0;
	if (!builder->options->allow_filtering)
		return error_set(err, ERROR_INVALID, RESTRICTION_FILTERING);
	out->needs_filtering = true;
	for (uint32_t i = 0; i < table->partition_key_count; i++) {
		if (out->partition[i] != NULL)
			restriction_to_filter(builder, out->partition[i]);
	}
	return 0;
}

static int
restriction_check_modified_clustering(
    struct restriction_builder *builder, uint32_t prefix, struct error *err)
{
	struct restrictions *out = builder->out;
	const struct table_metadata *table = out->table;

	(void)prefix;
	if (builder->options->use == RESTRICTIONS_UPDATE && out->has_clustering) {
		for (uint32_t i = 0; i < table->clustering_count; i++) {
			if (out->clustering[i] != NULL &&
			    out->clustering[i]->kind == RESTRICTION_SLICE)
				return error_set(err, ERROR_INVALID,
				    "Slice restrictions are not supported on the clustering "
				    "columns "
				    "in UPDATE statements");
		}
	}
	return 0;
}

/* How many leading columns make the slices that are read; what comes behind a slice or a gap does not. */
static uint32_t
restriction_find_prefix(const struct restrictions *restrictions, bool *has_slice)
{
	uint32_t prefix = 0;

	*has_slice = false;
	while (prefix < restrictions->table->clustering_count && !*has_slice) {
		const struct restriction *restriction = restrictions->clustering[prefix];

		/* A relation on several columns may begin in the middle of another. */
		if (restriction == NULL || restriction->columns[0]->position != prefix)
			break;
		*has_slice = restriction->kind == RESTRICTION_SLICE;
		prefix += restriction->column_count;
	}
	return prefix;
}

/* A column behind a gap or behind a slice, without ALLOW FILTERING. */
static int
restriction_refuse_gap(const struct restrictions *restrictions, bool has_slice, struct error *err)
{
	const struct table_metadata *table = restrictions->table;
	uint32_t prefix = restrictions->clustering_prefix, at = prefix;

	while (at < table->clustering_count && restrictions->clustering[at] == NULL)
		at++;
	if (has_slice)
		return error_set(err, ERROR_INVALID,
		    "Clustering column \"%.*s\" cannot be restricted (preceding column "
		    "\"%.*s\" is restricted by a non-EQ relation)",
		    (int)table->clustering[at].name.size, table->clustering[at].name.data,
		    (int)table->clustering[prefix - 1].name.size,
		    table->clustering[prefix - 1].name.data);
	return error_set(err, ERROR_INVALID,
	    "PRIMARY KEY column \"%.*s\" cannot be restricted as preceding column \"%.*s\" "
	    "is not restricted",
	    (int)table->clustering[at].name.size, table->clustering[at].name.data,
	    (int)table->clustering[prefix].name.size, table->clustering[prefix].name.data);
}

/* Rows are filtered by what stands behind the prefix. */
static int
restriction_filter_rest(struct restriction_builder *builder, struct error *err)
{
	struct restrictions *out = builder->out;

	for (uint32_t i = out->clustering_prefix; i < out->table->clustering_count; i++) {
		if (out->clustering[i] == NULL)
			continue;
		if (out->clustering[i]->is_multi)
			return error_set(err, ERROR_INVALID,
			    "Multi-column relations on clustering columns that need filtering are "
			    "not supported");
		restriction_to_filter(builder, out->clustering[i]);
	}
	out->needs_filtering = true;
	return 0;
}

int
restriction_check_clustering(struct restriction_builder *builder, struct error *err)
{
	struct restrictions *out = builder->out;
	bool is_select = builder->options->use == RESTRICTIONS_SELECT, has_slice;
	uint32_t restricted = 0;

	out->is_simple_clustering = true;
	for (uint32_t i = 0; i < out->table->clustering_count; i++) {
		const struct restriction *restriction = out->clustering[i];

		if (restriction == NULL || restriction->kind != RESTRICTION_EQ ||
		    restriction->is_multi)
			out->is_simple_clustering = false;
		restricted += restriction != NULL ? 1 : 0;
	}
	out->has_clustering = restricted > 0;
	out->clustering_prefix = restriction_find_prefix(out, &has_slice);
	if (!is_select &&
	    restriction_check_modified_clustering(builder, out->clustering_prefix, err) != 0)
		return -1;
	/* UPDATE says itself which columns are missing. */
	if (restricted != out->clustering_prefix && builder->options->use != RESTRICTIONS_UPDATE) {
		if (!is_select || !builder->options->allow_filtering)
			return restriction_refuse_gap(out, has_slice, err);
		if (restriction_filter_rest(builder, err) != 0)
			return -1;
	}
	/* Slices over the whole ring read every partition: rows are filtered. DISTINCT is refused in its own words. */
	if (is_select && !builder->options->is_distinct && out->is_key_range && restricted > 0)
		out->needs_filtering = true;
	return 0;
}

int
restriction_check_others(struct restriction_builder *builder, struct error *err)
{
	struct restrictions *out = builder->out;
	const struct column_metadata **columns =
	    arena_calloc(builder->preparation->arena, out->filter_count, sizeof(*columns));
	uint32_t count = 0;

	if (columns == NULL)
		return restriction_no_memory(err);
	for (uint32_t i = 0; i < out->filter_count; i++) {
		const struct column_metadata *column = out->filters[i].column;
		bool is_known = false;

		if (column->kind == COLUMN_STATIC)
			out->has_static_filter = true;
		else if (column->kind == COLUMN_REGULAR)
			out->has_regular_filter = true;
		else if (out->filters[i].operator!= FILTER_CONTAINS && out->filters[i].operator!=
			 FILTER_CONTAINS_KEY)
			continue;
		for (uint32_t j = 0; j < count; j++)
			is_known = is_known || columns[j] == column;
		if (!is_known)
			columns[count++] = column;
	}
	if (count == 0)
		return 0;
	if (builder->options->use != RESTRICTIONS_SELECT)
		return error_set(err, ERROR_INVALID,
		    "Non PRIMARY KEY columns found in where clause: %s ",
		    restriction_names(builder, columns, count));
	out->needs_filtering = true;
	return 0;
}
