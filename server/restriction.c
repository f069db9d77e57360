/* SPDX-License-Identifier: Apache-2.0 */
#include "server/restriction_internal.h"
#include <stdlib.h>
#include "server/prepare.h"

int
restriction_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for restrictions");
}

static const char *
restriction_relation_text(struct restriction_builder *builder, const struct ast_relation *relation)
{
	struct buffer buffer;
	const char *text;

	buffer_init(&buffer);
	ast_relation_text(builder->preparation->statement, relation, &buffer);
	text = arena_strndup(builder->preparation->arena, (const char *)buffer.data, buffer.size);
	buffer_fini(&buffer);
	return text != NULL ? text : "?";
}

const char *
restriction_names(struct restriction_builder *builder, const struct column_metadata *const *columns,
    uint32_t count)
{
	struct buffer buffer;
	const char *text;

	buffer_init(&buffer);
	for (uint32_t i = 0; i < count; i++)
		buffer_printf(&buffer, "%s%.*s", i > 0 ? ", " : "", (int)columns[i]->name.size,
		    columns[i]->name.data);
	text = arena_strndup(builder->preparation->arena, (const char *)buffer.data, buffer.size);
	buffer_fini(&buffer);
	return text != NULL ? text : "?";
}

/* ---- From a relation to a restriction ------------------------------------------------------ */

static int
restriction_set_slice(struct restriction_builder *builder, struct restriction *restriction,
    enum ast_operator operator, const struct term * value, struct error *err)
{
	int bound = operator== AST_GT || operator== AST_GTE ? BOUND_START : BOUND_END;
	struct restriction *relation = arena_alloc(builder->preparation->arena, sizeof(*relation));

	if (relation == NULL)
		return restriction_no_memory(err);
	restriction->kind = RESTRICTION_SLICE;
	restriction->bounds[bound] = value;
	restriction->is_inclusive[bound] = operator== AST_GTE || operator== AST_LTE;
	/* Others may be merged into the restriction; the bound stays the relation's. */
	*relation = *restriction;
	restriction->bound_of[bound] = relation;
	return 0;
}

static int
restriction_prepare_value(struct restriction_builder *builder, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	return term_prepare(builder->preparation, raw, receiver, out, err);
}

/* IN (a, b) or IN ?: list_format names the marker. */
static int
restriction_prepare_in(struct restriction_builder *builder, const struct ast_relation *relation,
    const struct column_spec *receiver, struct restriction *restriction, struct error *err)
{
	struct preparation *preparation = builder->preparation;

	restriction->kind = RESTRICTION_IN;
	if (relation->value != NULL) {
		struct column_spec list = term_part_receiver(preparation, receiver,
		    type_list(preparation->arena, receiver->type, false),
		    restriction->is_multi ? "%.*s" : "in(%.*s)");

		if (restriction->is_multi)
			list.name = slice_of_string(arena_printf(preparation->arena, "in%.*s",
			    (int)receiver->name.size, receiver->name.data));
		if (list.type == NULL)
			return restriction_no_memory(err);
		return restriction_prepare_value(
		    builder, relation->value, &list, &restriction->in_marker, err);
	}
	restriction->in_count = (uint32_t)relation->in_values.count;
	restriction->in_values = arena_calloc(
	    preparation->arena, relation->in_values.count, sizeof(*restriction->in_values));
	if (restriction->in_values == NULL)
		return restriction_no_memory(err);
	for (uint32_t i = 0; i < restriction->in_count; i++) {
		if (restriction_prepare_value(builder, relation->in_values.items[i], receiver,
			&restriction->in_values[i], err) != 0)
			return -1;
	}
	return 0;
}

static int
restriction_prepare_operand(struct restriction_builder *builder,
    const struct ast_relation *relation, const struct column_spec *receiver,
    struct restriction *restriction, struct error *err)
{
	const struct term *value;

	switch (relation->operator) {
	case AST_EQ:
		restriction->kind = RESTRICTION_EQ;
		return restriction_prepare_value(
		    builder, relation->value, receiver, &restriction->value, err);
	case AST_IN:
		/* One value is as good as an equality (SingleColumnRelation.canHaveOnlyOneValue). */
		if (relation->value == NULL && relation->in_values.count == 1) {
			restriction->kind = RESTRICTION_EQ;
			return restriction_prepare_value(builder, relation->in_values.items[0],
			    receiver, &restriction->value, err);
		}
		return restriction_prepare_in(builder, relation, receiver, restriction, err);
	default:
		if (restriction_prepare_value(builder, relation->value, receiver, &value, err) != 0)
			return -1;
		return restriction_set_slice(builder, restriction, relation->operator, value, err);
	}
}

/* Put another restriction of the same columns together with what is there. */
static int
restriction_merge(struct restriction_builder *builder, struct restriction **slot,
    struct restriction *other, struct error *err)
{
	struct restriction *restriction = *slot;
	const char *names;

	if (restriction == NULL) {
		*slot = other;
		return 0;
	}
	names = restriction_names(builder, other->columns, other->column_count);
	if (restriction->is_multi != other->is_multi &&
	    (restriction->kind != RESTRICTION_SLICE || other->kind != RESTRICTION_SLICE))
		return error_set(err, ERROR_INVALID,
		    "Mixing single column relations and multi column relations on clustering "
		    "columns is not allowed");
	if (restriction->kind == RESTRICTION_EQ || other->kind == RESTRICTION_EQ)
		return error_set(err, ERROR_INVALID,
		    "%s cannot be restricted by more than one relation if it includes an Equal",
		    names);
	if (restriction->kind == RESTRICTION_IN || other->kind == RESTRICTION_IN)
		return error_set(err, ERROR_INVALID,
		    other->is_multi
			? "%s cannot be restricted by more than one relation if it includes a IN"
			: "%s cannot be restricted by more than one relation if it includes a IN",
		    names);
	for (int bound = BOUND_START; bound <= BOUND_END; bound++) {
		if (restriction->bounds[bound] != NULL && other->bounds[bound] != NULL)
			return error_set(err, ERROR_INVALID,
			    "More than one restriction was found for the %s bound on %s",
			    bound == BOUND_START ? "start" : "end", names);
		if (other->bounds[bound] != NULL) {
			restriction->bounds[bound] = other->bounds[bound];
			restriction->is_inclusive[bound] = other->is_inclusive[bound];
			restriction->bound_of[bound] = other->bound_of[bound];
		}
	}
	/* The wider relation says how many columns the slice takes. */
	if (other->column_count > restriction->column_count) {
		restriction->columns = other->columns;
		restriction->column_count = other->column_count;
	}
	return 0;
}

static struct restriction *
restriction_new(struct restriction_builder *builder, uint32_t column_count, struct error *err)
{
	struct arena *arena = builder->preparation->arena;
	struct restriction *restriction = arena_zalloc(arena, sizeof(*restriction));

	if (restriction != NULL) {
		restriction->column_count = column_count;
		restriction->columns =
		    arena_calloc(arena, column_count, sizeof(*restriction->columns));
	}
	if (restriction == NULL || restriction->columns == NULL) {
		restriction_no_memory(err);
		return NULL;
	}
	return restriction;
}

struct restriction_filter *
restriction_add_filter(struct restriction_builder *builder, const struct column_metadata *column,
    enum filter_operator operator)
{
	struct restriction_filter *filter = &builder->filters[builder->out->filter_count++];

	*filter = (struct restriction_filter){.column = column, .operator= operator};
	return filter;
}

static enum filter_operator restriction_filter_operator(enum ast_operator operator)
{
	switch (operator) {
	case AST_LT:
		return FILTER_LT;
	case AST_LTE:
		return FILTER_LTE;
	case AST_GT:
		return FILTER_GT;
	case AST_GTE:
		return FILTER_GTE;
	case AST_NEQ:
		return FILTER_NEQ;
	case AST_IN:
		return FILTER_IN;
	case AST_CONTAINS:
		return FILTER_CONTAINS;
	case AST_CONTAINS_KEY:
		return FILTER_CONTAINS_KEY;
	default:
		return FILTER_EQ;
	}
}

/* CONTAINS and CONTAINS KEY. */
static int
restriction_add_contains(struct restriction_builder *builder, const struct ast_relation *relation,
    const struct column_metadata *column, struct error *err)
{
	struct preparation *preparation = builder->preparation;
	struct column_spec receiver = prepare_receiver(builder->out->table, column);
	const struct type *type = column->type;
	struct restriction_filter *filter;
	bool is_key = relation->operator== AST_CONTAINS_KEY;

	if (builder->options->use != RESTRICTIONS_SELECT)
		return error_set(err, ERROR_INVALID, "Cannot use %s with %s",
		    builder->options->use == RESTRICTIONS_UPDATE ? "UPDATE" : "DELETE",
		    ast_operator_text(relation->operator));
	if (!type_is_collection(type))
		return error_set(err, ERROR_INVALID, "Cannot use %s on non-collection column %.*s",
		    ast_operator_text(relation->operator), (int)column->name.size,
		    column->name.data);
	if (is_key && type->kind != TYPE_MAP)
		return error_set(err, ERROR_INVALID,
		    "Cannot use CONTAINS KEY on non-map column %.*s", (int)column->name.size,
		    column->name.data);
	receiver = term_part_receiver(preparation, &receiver,
	    type->kind == TYPE_MAP && !is_key ? type->params[1] : type->params[0],
	    is_key ? "key(%.*s)" : "value(%.*s)");
	filter =
	    restriction_add_filter(builder, column, is_key ? FILTER_CONTAINS_KEY : FILTER_CONTAINS);
	return restriction_prepare_value(builder, relation->value, &receiver, &filter->value, err);
}

static int
restriction_add_element(struct restriction_builder *builder, const struct ast_relation *relation,
    const struct column_metadata *column, struct error *err)
{
	struct preparation *preparation = builder->preparation;
	struct column_spec receiver = prepare_receiver(builder->out->table, column);
	struct column_spec key, value;
	struct restriction_filter *filter;

	if (column->type->kind == TYPE_LIST)
		return error_set(err, ERROR_INVALID,
		    "Indexes on list entries (%.*s[index] = value) are not currently supported.",
		    (int)column->name.size, column->name.data);
	if (column->type->kind != TYPE_MAP)
		return error_set(err, ERROR_INVALID, "Column %.*s cannot be used as a map",
		    (int)column->name.size, column->name.data);
	if (!column->type->is_multi_cell)
		return error_set(err, ERROR_INVALID,
		    "Map-entry equality predicates on frozen map column %.*s are not supported",
		    (int)column->name.size, column->name.data);
	if (relation->operator!= AST_EQ)
		return error_set(
		    err, ERROR_INVALID, "Only EQ relations are supported on map entries");
	key = term_part_receiver(preparation, &receiver, column->type->params[0], "key(%.*s)");
	value = term_part_receiver(preparation, &receiver, column->type->params[1], "value(%.*s)");
	filter = restriction_add_filter(builder, column, FILTER_MAP_EQ);
	if (restriction_prepare_value(builder, relation->key, &key, &filter->key, err) != 0)
		return -1;
	return restriction_prepare_value(builder, relation->value, &value, &filter->value, err);
}

/* The slot that holds what restricts this column. */
static struct restriction **
restriction_slot(struct restriction_builder *builder, const struct column_metadata *column)
{
	struct restrictions *out = builder->out;

	switch (column->kind) {
	case COLUMN_PARTITION_KEY:
		return &out->partition[column->position];
	case COLUMN_CLUSTERING:
		return &out->clustering[column->position];
	case COLUMN_STATIC:
		return &builder->others[column->position];
	case COLUMN_REGULAR:
		break;
	}
	return &builder->others[out->table->static_count + column->position];
}

/* Which relations a column of this type cannot have. */
static int
restriction_check_relation(struct restriction_builder *builder, const struct ast_relation *relation,
    const struct column_metadata *column, struct error *err)
{
	const struct type *type = column->type;

	if (type->is_multi_cell && type_is_collection(type))
		return error_set(err, ERROR_INVALID,
		    "Collection column '%.*s' (%s) cannot be restricted by a '%s' relation",
		    (int)column->name.size, column->name.data,
		    type_name(builder->preparation->arena, type),
		    ast_operator_text(relation->operator));
	if (type->is_multi_cell && type->kind == TYPE_UDT)
		return error_set(err, ERROR_INVALID,
		    "Non-frozen UDT column '%.*s' (%s) cannot be restricted by any relation",
		    (int)column->name.size, column->name.data,
		    type_name(builder->preparation->arena, type));
	if (relation->operator== AST_EQ || relation->operator== AST_IN)
		return 0;
	if (type->kind == TYPE_DURATION)
		return error_set(
		    err, ERROR_INVALID, "Slice restrictions are not supported on duration columns");
	if (type_references_duration(type))
		return error_set(err, ERROR_INVALID,
		    "Slice restrictions are not supported on %s containing durations",
		    type_is_collection(type)       ? "collections"
			: type->kind == TYPE_TUPLE ? "tuples"
						   : "UDTs");
	return 0;
}

/* A column outside the key can only be filtered by. */
static int
restriction_filter_column(struct restriction_builder *builder, const struct ast_relation *relation,
    const struct restriction *restriction, struct error *err)
{
	const struct column_metadata *column = restriction->columns[0];
	struct restriction_filter *filter;

	if (column->kind == COLUMN_REGULAR && restriction->kind == RESTRICTION_IN &&
	    !builder->options->allow_filtering && builder->options->use == RESTRICTIONS_SELECT)
		return error_set(err, ERROR_INVALID, RESTRICTION_FILTERING);
	filter = restriction_add_filter(
	    builder, column, restriction_filter_operator(relation->operator));
	if (restriction->kind == RESTRICTION_EQ) {
		filter->operator= FILTER_EQ;
		filter->value = restriction->value;
	} else if (restriction->kind == RESTRICTION_IN) {
		filter->value = restriction->in_marker;
		filter->in_values = restriction->in_values;
		filter->in_count = restriction->in_count;
	} else {
		filter->value = restriction->bounds[BOUND_START] != NULL
		    ? restriction->bounds[BOUND_START]
		    : restriction->bounds[BOUND_END];
	}
	return 0;
}

static int
restriction_add_column(
    struct restriction_builder *builder, const struct ast_relation *relation, struct error *err)
{
	struct restrictions *out = builder->out;
	const struct column_metadata *column =
	    prepare_column(out->table, ast_slice(relation->columns.items[0].text), err);
	struct restriction *restriction;
	struct column_spec receiver;

	if (column == NULL)
		return -1;
	if (relation->operator== AST_IS_NOT)
		return error_set(err, ERROR_INVALID, "Unsupported restriction: %s",
		    restriction_relation_text(builder, relation));
	if (relation->operator== AST_NEQ)
		return error_set(err, ERROR_INVALID, "Unsupported \"!=\" relation: %s",
		    restriction_relation_text(builder, relation));
	if (relation->operator== AST_LIKE)
		return error_set(err, ERROR_INVALID,
		    "LIKE restriction is only supported on properly indexed columns. %s is not "
		    "valid.",
		    restriction_relation_text(builder, relation));
	if (relation->operator== AST_CONTAINS || relation->operator== AST_CONTAINS_KEY)
		return restriction_add_contains(builder, relation, column, err);
	if (relation->kind == AST_RELATION_ELEMENT)
		return restriction_add_element(builder, relation, column, err);
	if (restriction_check_relation(builder, relation, column, err) != 0)
		return -1;
	restriction = restriction_new(builder, 1, err);
	if (restriction == NULL)
		return -1;
	restriction->columns[0] = column;
	receiver = prepare_receiver(out->table, column);
	if (restriction_prepare_operand(builder, relation, &receiver, restriction, err) != 0)
		return -1;
	if ((column->kind == COLUMN_STATIC || column->kind == COLUMN_REGULAR) &&
	    restriction_filter_column(builder, relation, restriction, err) != 0)
		return -1;
	return restriction_merge(builder, restriction_slot(builder, column), restriction, err);
}

static int
restriction_add_token(
    struct restriction_builder *builder, const struct ast_relation *relation, struct error *err)
{
	struct restrictions *out = builder->out;
	const struct table_metadata *table = out->table;
	uint32_t count = (uint32_t)relation->columns.count;
	struct restriction *restriction = restriction_new(builder, count, err);
	struct column_spec receiver = {table->keyspace, table->name,
	    slice_of_string("partition key token"), type_native(TYPE_BIGINT)};
	bool is_key_order = count == table->partition_key_count;

	if (restriction == NULL)
		return -1;
	if (count > table->partition_key_count)
		return error_set(err, ERROR_INVALID,
		    "The token() function must contains only partition key components");
	for (uint32_t i = 0; i < count; i++) {
		restriction->columns[i] =
		    prepare_column(table, ast_slice(relation->columns.items[i].text), err);
		if (restriction->columns[i] == NULL)
			return -1;
		if (restriction->columns[i]->kind != COLUMN_PARTITION_KEY)
			return error_set(err, ERROR_INVALID,
			    "The token() function must be applied to all partition key components "
			    "or "
			    "none of them");
		if (restriction->columns[i]->position != i)
			is_key_order = false;
	}
	if (!is_key_order) {
		const struct column_metadata **key = arena_calloc(
		    builder->preparation->arena, table->partition_key_count, sizeof(*key));

		if (count != table->partition_key_count)
			return error_set(err, ERROR_INVALID,
			    "The token() function must be applied to all partition key components "
			    "or none of them");
		for (uint32_t i = 0; key != NULL && i < table->partition_key_count; i++)
			key[i] = &table->partition_key[i];
		return error_set(err, ERROR_INVALID,
		    "The token function arguments must be in the partition key order: %s",
		    key == NULL ? "" : restriction_names(builder, key, table->partition_key_count));
	}
	if (relation->operator> AST_GTE) /* IN and the others */
		return error_set(err, ERROR_INVALID, "%s cannot be used with the token function",
		    ast_operator_text(relation->operator));
	if (restriction_prepare_operand(builder, relation, &receiver, restriction, err) != 0)
		return -1;
	return restriction_merge(builder, &out->token, restriction, err);
}

/* Literals must have as many values as there are columns. */
static int
restriction_check_arity(struct restriction_builder *builder, const struct ast_relation *relation,
    uint32_t columns, struct error *err)
{
	size_t count = relation->value != NULL ? 1 : relation->in_values.count;

	for (size_t i = 0; i < count; i++) {
		const struct ast_term *term =
		    relation->value != NULL ? relation->value : relation->in_values.items[i];
		struct buffer text;
		int rc;

		if (term->kind != AST_TERM_TUPLE || term->terms.count == columns)
			continue;
		buffer_init(&text);
		ast_term_text(builder->preparation->statement, term, &text);
		rc = error_set(err, ERROR_INVALID,
		    "Expected %u elements in value tuple, but got %zu: %.*s", columns,
		    term->terms.count, (int)text.size, (const char *)text.data);
		buffer_fini(&text);
		return rc;
	}
	return 0;
}

/* Markers in (c, d) > (?, ?) are told as those of the columns. */
static void
restriction_name_markers(struct restriction_builder *builder, const struct ast_term *raw,
    const struct restriction *restriction)
{
	struct preparation *preparation = builder->preparation;

	if (raw == NULL || raw->kind != AST_TERM_TUPLE)
		return;
	for (size_t i = 0; i < raw->terms.count && i < restriction->column_count; i++) {
		if (raw->terms.items[i]->kind == AST_TERM_MARKER &&
		    preparation->statement->markers[raw->terms.items[i]->marker].name.text == NULL)
			preparation->markers[raw->terms.items[i]->marker].name =
			    restriction->columns[i]->name;
	}
}

/* The columns of (a, b, ...): clustering columns in the key's order, each once. */
static int
restriction_tuple_columns(struct restriction_builder *builder, const struct ast_relation *relation,
    struct restriction *restriction, struct error *err)
{
	for (uint32_t i = 0; i < restriction->column_count; i++) {
		const struct column_metadata *column = prepare_column(
		    builder->out->table, ast_slice(relation->columns.items[i].text), err);

		if (column == NULL)
			return -1;
		if (column->kind != COLUMN_CLUSTERING)
			return error_set(err, ERROR_INVALID,
			    "Multi-column relations can only be applied to clustering columns but "
			    "was applied to: %.*s",
			    (int)column->name.size, column->name.data);
		for (uint32_t j = 0; j < i; j++) {
			if (restriction->columns[j] == column)
				return error_set(err, ERROR_INVALID,
				    "Column \"%.*s\" appeared twice in a relation: %s",
				    (int)column->name.size, column->name.data,
				    restriction_relation_text(builder, relation));
		}
		if (i > 0 && column->position != restriction->columns[i - 1]->position + 1)
			return error_set(err, ERROR_INVALID,
			    "Clustering columns must appear in the PRIMARY KEY order in "
			    "multi-column relations: %s",
			    restriction_relation_text(builder, relation));
		restriction->columns[i] = column;
	}
	return 0;
}

/* What the columns' values are together, and what a marker for all of them is called: (a,b). */
static int
restriction_tuple_receiver(struct restriction_builder *builder, struct restriction *restriction,
    struct column_spec *out, struct error *err)
{
	struct arena *arena = builder->preparation->arena;
	uint32_t count = restriction->column_count;
	const struct type **types = arena_calloc(arena, count, sizeof(*types));
	struct buffer name;

	if (types == NULL)
		return restriction_no_memory(err);
	buffer_init(&name);
	for (uint32_t i = 0; i < count; i++) {
		const struct column_metadata *column = restriction->columns[i];

		types[i] = column->type;
		buffer_printf(
		    &name, "%s%.*s", i == 0 ? "(" : ",", (int)column->name.size, column->name.data);
	}
	buffer_put_u8(&name, ')');
	restriction->tuple_type = type_tuple(arena, types, count);
	out->keyspace = builder->out->table->keyspace;
	out->table = builder->out->table->name;
	out->type = restriction->tuple_type;
	out->name = arena_copy(arena, buffer_slice(&name));
	buffer_fini(&name);
	if (restriction->tuple_type == NULL || slice_is_null(out->name))
		return restriction_no_memory(err);
	return 0;
}

/* Each of the columns is restricted by it now. */
static int
restriction_merge_tuple(
    struct restriction_builder *builder, struct restriction *restriction, struct error *err)
{
	struct restriction **slot = restriction_slot(builder, restriction->columns[0]);
	uint32_t count = restriction->column_count;

	if (restriction_merge(builder, slot, restriction, err) != 0)
		return -1;
	restriction = *slot;
	for (uint32_t i = 1; i < count; i++) {
		slot = restriction_slot(builder, restriction->columns[i]);
		if (*slot == NULL) {
			*slot = restriction;
		} else if (*slot != restriction) {
			if (!(*slot)->is_multi || restriction->kind != RESTRICTION_SLICE ||
			    (*slot)->kind != RESTRICTION_SLICE)
				return restriction_merge(builder, slot, restriction, err);
			return error_set(err, ERROR_INVALID,
			    "Column \"%.*s\" cannot be restricted by two inequalities not "
			    "starting with the same column",
			    (int)restriction->columns[i]->name.size,
			    restriction->columns[i]->name.data);
		}
	}
	return 0;
}

static int
restriction_add_tuple(
    struct restriction_builder *builder, const struct ast_relation *relation, struct error *err)
{
	uint32_t count = (uint32_t)relation->columns.count;
	struct restriction *restriction = restriction_new(builder, count, err);
	struct column_spec receiver;

	if (restriction == NULL)
		return restriction_no_memory(err);
	if (restriction_check_arity(builder, relation, count, err) != 0)
		return -1;
	restriction->is_multi = true;
	if (restriction_tuple_columns(builder, relation, restriction, err) != 0)
		return -1;
	if (relation->operator> AST_GTE && relation->operator!= AST_IN)
		return error_set(err, ERROR_INVALID, "%s cannot be used for multi-column relations",
		    ast_operator_text(relation->operator));
	if (restriction_tuple_receiver(builder, restriction, &receiver, err) != 0 ||
	    restriction_prepare_operand(builder, relation, &receiver, restriction, err) != 0)
		return -1;
	restriction_name_markers(builder, relation->value, restriction);
	for (size_t i = 0; relation->operator== AST_IN && i<relation->in_values.count; i++)
		restriction_name_markers(builder, relation->in_values.items[i], restriction);
	return restriction_merge_tuple(builder, restriction, err);
}

static int
restriction_add(
    struct restriction_builder *builder, const struct ast_relation *relation, struct error *err)
{
	switch (relation->kind) {
	case AST_RELATION_COLUMN:
	case AST_RELATION_ELEMENT:
		return restriction_add_column(builder, relation, err);
	case AST_RELATION_TUPLE:
		return restriction_add_tuple(builder, relation, err);
	case AST_RELATION_TOKEN:
		return restriction_add_token(builder, relation, err);
	case AST_RELATION_EXPRESSION:
		return error_set(err, ERROR_INVALID,
		    "Invalid index %s; custom index expressions are not supported",
		    relation->index.text);
	}
	return error_set(err, ERROR_SERVER, "unknown kind of relation");
}

int
restrictions_prepare(struct preparation *preparation, const struct ast_where *where,
    const struct restrictions_options *options, struct restrictions *out, struct error *err)
{
	const struct table_metadata *table = preparation->table;
	struct arena *arena = preparation->arena;
	struct restriction_builder builder = {
	    .preparation = preparation, .options = options, .out = out};
	size_t filters = where->count * 2 + (size_t)table->column_count * 2;

	*out = (struct restrictions){.table = table};
	out->partition = arena_calloc(arena, table->partition_key_count, sizeof(*out->partition));
	out->clustering = arena_calloc(arena, table->clustering_count, sizeof(*out->clustering));
	builder.others = arena_calloc(
	    arena, (size_t)table->static_count + table->regular_count, sizeof(*builder.others));
	builder.filters = arena_calloc(arena, filters, sizeof(*builder.filters));
	if (out->partition == NULL || out->clustering == NULL || builder.others == NULL ||
	    builder.filters == NULL)
		return restriction_no_memory(err);
	out->filters = builder.filters;
	for (size_t i = 0; i < where->count; i++) {
		if (restriction_add(&builder, where->items[i], err) != 0)
			return -1;
	}
	if (restriction_check_partition(&builder, err) != 0 ||
	    restriction_check_clustering(&builder, err) != 0 ||
	    restriction_check_others(&builder, err) != 0)
		return -1;
	if (options->use == RESTRICTIONS_SELECT && out->needs_filtering &&
	    !options->allow_filtering)
		return error_set(err, ERROR_INVALID, RESTRICTION_FILTERING);
	return 0;
}

uint32_t
restrictions_key_markers(
    const struct restrictions *restrictions, struct arena *arena, uint16_t **out)
{
	uint32_t count = restrictions->table->partition_key_count;
	uint16_t *markers = arena_calloc(arena, count, sizeof(*markers));

	if (markers == NULL || restrictions->token != NULL)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct restriction *restriction = restrictions->partition[i];

		const struct term *value = restriction == NULL ? NULL : restriction->value;

		/* Of several values for one column the last marker is told. */
		if (restriction != NULL && restriction->kind == RESTRICTION_IN) {
			for (uint32_t n = 0; n < restriction->in_count; n++) {
				if (restriction->in_values[n]->kind == TERM_MARKER)
					value = restriction->in_values[n];
			}
		}
		if (value == NULL || value->kind != TERM_MARKER)
			return 0;
		markers[i] = (uint16_t)value->marker;
	}
	*out = markers;
	return count;
}
