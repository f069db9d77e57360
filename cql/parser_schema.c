/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/parser_core.h"

/* ---- WITH name = value AND ... ---- */

static int
parser_entry_text(struct parser *p, const struct ast_term *term, const struct ast_term *key,
    struct ast_string *out)
{
	const struct statement markers = {.markers = p->markers, .marker_count = p->marker_count};
	struct buffer text;
	int rc;

	if (term->kind == AST_TERM_CONSTANT) {
		*out = term->constant.text;
		return 0;
	}
	buffer_init(&text);
	buffer_printf(&text, key == NULL ? "Invalid property name: " : "Invalid property value: ");
	ast_term_text(&markers, term, &text);
	if (key != NULL) {
		buffer_printf(&text, " for property: ");
		ast_term_text(&markers, key, &text);
	}
	if (term->kind == AST_TERM_MARKER)
		buffer_printf(&text, " (bind variables are not supported in DDL queries)");
	rc = parser_refuse(p, ERROR_SYNTAX, "%.*s", (int)text.size, (const char *)text.data);
	buffer_fini(&text);
	return rc;
}

int
parser_property_map(struct parser *p, struct ast_property_entry **entries, size_t *count)
{
	struct ast_term *map;

	if (parser_map_literal(p, &map) != 0)
		return -1;
	for (size_t i = 0; i < map->pairs.count; i++) {
		const struct ast_map_entry *pair = &map->pairs.items[i];
		struct ast_property_entry *entry = PARSER_PUSH(p, *entries, *count);

		if (entry == NULL || parser_entry_text(p, pair->key, NULL, &entry->key) != 0 ||
		    parser_entry_text(p, pair->value, pair->key, &entry->value) != 0)
			return -1;
		for (size_t k = 0; k + 1 < *count; k++)
			if (ast_string_equal((*entries)[k].key, entry->key))
				return parser_refuse(p, ERROR_SYNTAX,
				    "Multiple definition for property %s", entry->key.text);
	}
	return 0;
}

static int
parser_property_value(struct parser *p, struct ast_property *property)
{
	struct ast_term *term;

	if (parser_is_constant(parser_peek(p, 1))) {
		if (parser_constant(p, &term) != 0)
			return -1;
		property->kind = term->constant.kind;
		property->value = term->constant.text;
		return 0;
	}
	property->is_keyword = true;
	/* A type's name comes as CQL writes it, any other word as it was written. */
	return parser_token_text(p, parser_take(p), true, &property->value);
}

static int
parser_property(struct parser *p, struct ast_properties *out)
{
	struct ast_property *property;
	struct ast_identifier name = {0};
	enum lexer_token_type value;

	/* The choice between map and value is made at the name. */
	if (!parser_is_ident(parser_peek(p, 1)))
		return parser_no_viable(p, 1);
	if (parser_peek(p, 2) != TOKEN_EQUAL)
		return parser_no_viable(p, 2);
	value = parser_peek(p, 3);
	if (value != TOKEN_OPEN_BRACE && !parser_is_constant(value) &&
	    lexer_word_kind(value) == LEXER_RESERVED)
		return parser_no_viable(p, 3);
	property = PARSER_PUSH(p, out->items, out->count);
	if (property == NULL || parser_ident(p, &name) != 0)
		return -1;
	property->name = name.text;
	property->at = name.at;
	parser_take(p);
	property->is_map = value == TOKEN_OPEN_BRACE;
	if ((property->is_map ? parser_property_map(p, &property->entries, &property->entry_count)
			      : parser_property_value(p, property)) != 0)
		return -1;
	for (size_t i = 0; i + 1 < out->count; i++)
		if (ast_string_equal(out->items[i].name, property->name))
			return parser_refuse(p, ERROR_SYNTAX,
			    "Multiple definition for property '%s'", property->name.text);
	return 0;
}

int
parser_properties(struct parser *p, struct ast_properties *out)
{
	do {
		if (parser_property(p, out) != 0)
			return -1;
	} while (parser_accept(p, K_AND));
	return 0;
}

/* WITH clustering order, compact storage and properties of tables and views. */
static int
parser_clustering_order(
    struct parser *p, struct ast_string table, struct ast_clustering_order **orders, size_t *count)
{
	parser_take(p);
	parser_take(p);
	if (parser_expect(p, K_BY) != 0 || parser_expect(p, TOKEN_OPEN) != 0)
		return -1;
	do {
		struct ast_clustering_order *order = PARSER_PUSH(p, *orders, *count);

		if (order == NULL || parser_ident(p, &order->column) != 0)
			return -1;
		order->is_descending = parser_peek(p, 1) == K_DESC;
		if (!order->is_descending && parser_peek(p, 1) != K_ASC)
			return parser_no_viable(p, 1);
		parser_take(p);
		for (size_t i = 0; i + 1 < *count; i++)
			if (ast_string_equal((*orders)[i].column.text, order->column.text))
				return parser_refuse(p, ERROR_INVALID,
				    "Duplicate column '%s' in CLUSTERING ORDER BY clause for table "
				    "'%s'",
				    order->column.text.text, table.text);
	} while (parser_accept(p, TOKEN_COMMA));
	return parser_expect(p, TOKEN_CLOSE);
}

int
parser_table_properties(struct parser *p, struct ast_string table, bool *is_compact_storage,
    struct ast_clustering_order **orders, size_t *order_count, struct ast_properties *properties)
{
	if (!parser_accept(p, K_WITH))
		return 0;
	do {
		enum lexer_token_type next = parser_peek(p, 1);
		int rc;

		if (next == K_COMPACT && parser_peek(p, 2) == K_STORAGE) {
			*is_compact_storage = true;
			parser_take(p);
			parser_take(p);
			rc = 0;
		} else if (next == K_CLUSTERING && parser_peek(p, 2) == K_ORDER) {
			rc = parser_clustering_order(p, table, orders, order_count);
		} else {
			rc = parser_property(p, properties);
		}
		if (rc != 0)
			return -1;
	} while (parser_accept(p, K_AND));
	return 0;
}

/* ---- Keyspaces ---- */

static int
parser_keyspace_properties(struct parser *p, struct statement_keyspace *out)
{
	if (parser_keyspace_name(p, &out->name) != 0 || parser_expect(p, K_WITH) != 0)
		return -1;
	return parser_properties(p, &out->properties);
}

static int
parser_create_keyspace(struct parser *p, struct statement *out)
{
	out->kind = STATEMENT_CREATE_KEYSPACE;
	parser_take(p);
	if (parser_if_not_exists(p, &out->keyspace.if_not_exists) != 0)
		return -1;
	return parser_keyspace_properties(p, &out->keyspace);
}

static int
parser_alter_keyspace(struct parser *p, struct statement *out)
{
	out->kind = STATEMENT_ALTER_KEYSPACE;
	parser_take(p);
	if (parser_if_exists(p, &out->keyspace.if_exists) != 0)
		return -1;
	return parser_keyspace_properties(p, &out->keyspace);
}

/* ---- Types ---- */

static int
parser_field(struct parser *p, struct ast_columns *out)
{
	struct ast_column *field = PARSER_PUSH(p, out->items, out->count);

	if (field == NULL || parser_ident(p, &field->name) != 0)
		return -1;
	return parser_type(p, &field->type);
}

static int
parser_create_type(struct parser *p, struct statement *out)
{
	struct statement_create_type *create = &out->create_type;

	out->kind = STATEMENT_CREATE_TYPE;
	parser_take(p);
	if (parser_if_not_exists(p, &create->if_not_exists) != 0 ||
	    parser_type_name(p, &create->name) != 0 || parser_expect(p, TOKEN_OPEN) != 0 ||
	    parser_field(p, &create->fields) != 0)
		return -1;
	while (parser_accept(p, TOKEN_COMMA)) {
		/* Commas too many do no harm. */
		if (parser_is_ident(parser_peek(p, 1)) && parser_field(p, &create->fields) != 0)
			return -1;
	}
	return parser_expect(p, TOKEN_CLOSE);
}

int
parser_renames(struct parser *p, struct ast_rename **renames, size_t *count)
{
	do {
		struct ast_rename *rename = PARSER_PUSH(p, *renames, *count);

		if (rename == NULL || parser_ident(p, &rename->from) != 0 ||
		    parser_expect(p, K_TO) != 0 || parser_ident(p, &rename->to) != 0)
			return -1;
	} while (parser_accept(p, K_AND));
	return 0;
}

static int
parser_alter_type_field(struct parser *p, struct statement_alter_type *alter)
{
	struct ast_column *field = PARSER_PUSH(p, alter->fields.items, alter->fields.count);

	if (field == NULL || parser_ident(p, &field->name) != 0 || parser_expect(p, K_TYPE) != 0)
		return -1;
	return parser_type(p, &field->type);
}

static int
parser_alter_type(struct parser *p, struct statement *out)
{
	struct statement_alter_type *alter = &out->alter_type;

	out->kind = STATEMENT_ALTER_TYPE;
	parser_take(p);
	if (parser_if_exists(p, &alter->if_exists) != 0 || parser_type_name(p, &alter->name) != 0)
		return -1;
	if (parser_accept(p, K_ALTER)) {
		alter->kind = AST_ALTER_TYPE_FIELD_TYPE;
		return parser_alter_type_field(p, alter);
	}
	if (parser_accept(p, K_ADD)) {
		alter->kind = AST_ALTER_TYPE_ADD;
		if (parser_if_not_exists(p, &alter->if_field_not_exists) != 0)
			return -1;
		return parser_field(p, &alter->fields);
	}
	if (parser_accept(p, K_RENAME)) {
		alter->kind = AST_ALTER_TYPE_RENAME;
		if (parser_if_exists(p, &alter->if_field_exists) != 0)
			return -1;
		return parser_renames(p, &alter->renames, &alter->rename_count);
	}
	return parser_no_viable(p, 1);
}

/* ---- Indexes and triggers ---- */

static int
parser_index_target(struct parser *p, struct ast_index_target *out)
{
	enum lexer_token_type type = parser_peek(p, 1);

	out->kind = AST_INDEX_SIMPLE;
	if ((type == K_VALUES || type == K_KEYS) && parser_peek(p, 2) != TOKEN_OPEN &&
	    parser_peek(p, 2) != TOKEN_COMMA && parser_peek(p, 2) != TOKEN_CLOSE)
		return parser_no_viable(p, 2);
	if (type == K_ENTRIES)
		out->kind = AST_INDEX_ENTRIES;
	else if (type == K_FULL)
		out->kind = AST_INDEX_FULL;
	else if (type == K_VALUES && parser_peek(p, 2) == TOKEN_OPEN)
		out->kind = AST_INDEX_VALUES;
	else if (type == K_KEYS && parser_peek(p, 2) == TOKEN_OPEN)
		out->kind = AST_INDEX_KEYS;
	if (out->kind == AST_INDEX_SIMPLE)
		return parser_column_ident(p, &out->column);
	parser_take(p);
	if (parser_expect(p, TOKEN_OPEN) != 0 || parser_column_ident(p, &out->column) != 0)
		return -1;
	return parser_expect(p, TOKEN_CLOSE);
}

static bool
parser_is_index_target(enum lexer_token_type type)
{
	return type == K_ENTRIES || type == K_FULL || type == TOKEN_EMPTY_QUOTED_NAME ||
	    parser_is_ident(type);
}

static int
parser_create_index(struct parser *p, struct statement *out)
{
	struct statement_create_index *create = &out->create_index;

	out->kind = STATEMENT_CREATE_INDEX;
	create->is_custom = parser_accept(p, K_CUSTOM);
	if (parser_expect(p, K_INDEX) != 0 || parser_if_not_exists(p, &create->if_not_exists) != 0)
		return -1;
	create->name.at = parser_position(p);
	if ((parser_is_ident(parser_peek(p, 1)) || parser_peek(p, 1) == TOKEN_QMARK) &&
	    parser_index_name(p, &create->name.name) != 0)
		return -1;
	if (parser_expect(p, K_ON) != 0 || parser_table_name(p, &create->table) != 0 ||
	    parser_expect(p, TOKEN_OPEN) != 0)
		return -1;
	if (parser_is_index_target(parser_peek(p, 1))) {
		do {
			struct ast_index_target *target =
			    PARSER_PUSH(p, create->targets, create->target_count);

			if (target == NULL || parser_index_target(p, target) != 0)
				return -1;
		} while (parser_accept(p, TOKEN_COMMA));
	}
	if (parser_expect(p, TOKEN_CLOSE) != 0)
		return -1;
	if (parser_accept(p, K_USING) && parser_string(p, &create->custom_class) != 0)
		return -1;
	return parser_accept(p, K_WITH) ? parser_properties(p, &create->properties) : 0;
}

static int
parser_create_trigger(struct parser *p, struct statement *out)
{
	struct statement_trigger *trigger = &out->trigger;

	out->kind = STATEMENT_CREATE_TRIGGER;
	parser_take(p);
	if (parser_if_not_exists(p, &trigger->if_not_exists) != 0 ||
	    parser_ident(p, &trigger->name) != 0 || parser_expect(p, K_ON) != 0 ||
	    parser_table_name(p, &trigger->table) != 0 || parser_expect(p, K_USING) != 0)
		return -1;
	return parser_string(p, &trigger->trigger_class);
}

static int
parser_drop_trigger(struct parser *p, struct statement *out)
{
	struct statement_trigger *trigger = &out->trigger;

	out->kind = STATEMENT_DROP_TRIGGER;
	parser_take(p);
	if (parser_if_exists(p, &trigger->if_exists) != 0 || parser_ident(p, &trigger->name) != 0 ||
	    parser_expect(p, K_ON) != 0)
		return -1;
	return parser_table_name(p, &trigger->table);
}

/* ---- Views ---- */

static int
parser_alter_view(struct parser *p, struct statement *out)
{
	out->kind = STATEMENT_ALTER_VIEW;
	parser_take(p);
	if (parser_expect(p, K_VIEW) != 0 || parser_if_exists(p, &out->alter_view.if_exists) != 0 ||
	    parser_table_name(p, &out->alter_view.name) != 0 || parser_expect(p, K_WITH) != 0)
		return -1;
	return parser_properties(p, &out->alter_view.properties);
}

/* ---- CREATE, ALTER, DROP ---- */

static int
parser_create_or_replace(struct parser *p, struct statement *out)
{
	if (parser_peek(p, 3) != K_REPLACE)
		return parser_no_viable(p, 3);
	if (parser_peek(p, 4) != K_FUNCTION && parser_peek(p, 4) != K_AGGREGATE)
		return parser_no_viable(p, 4);
	parser_take(p);
	parser_take(p);
	parser_take(p);
	return parser_peek(p, 1) == K_FUNCTION ? parser_create_function(p, true, out)
					       : parser_create_aggregate(p, true, out);
}

int
parser_create(struct parser *p, struct statement *out)
{
	int (*rule)(struct parser * p, struct statement * out);

	switch (parser_peek(p, 2)) {
	case K_KEYSPACE:
		rule = parser_create_keyspace;
		break;
	case K_COLUMNFAMILY:
		rule = parser_create_table;
		break;
	case K_CUSTOM:
	case K_INDEX:
		rule = parser_create_index;
		break;
	case K_MATERIALIZED:
		rule = parser_create_view;
		break;
	case K_TRIGGER:
		rule = parser_create_trigger;
		break;
	case K_TYPE:
		rule = parser_create_type;
		break;
	case K_USER:
	case K_ROLE:
		rule = parser_create_role;
		break;
	case K_OR:
		return parser_create_or_replace(p, out);
	case K_FUNCTION:
		parser_take(p);
		return parser_create_function(p, false, out);
	case K_AGGREGATE:
		parser_take(p);
		return parser_create_aggregate(p, false, out);
	default:
		return parser_no_viable(p, 2);
	}
	parser_take(p);
	return rule(p, out);
}

int
parser_alter(struct parser *p, struct statement *out)
{
	int (*rule)(struct parser * p, struct statement * out);

	switch (parser_peek(p, 2)) {
	case K_KEYSPACE:
		rule = parser_alter_keyspace;
		break;
	case K_COLUMNFAMILY:
		rule = parser_alter_table;
		break;
	case K_MATERIALIZED:
		rule = parser_alter_view;
		break;
	case K_TYPE:
		rule = parser_alter_type;
		break;
	case K_USER:
	case K_ROLE:
		rule = parser_alter_role;
		break;
	default:
		return parser_no_viable(p, 2);
	}
	parser_take(p);
	return rule(p, out);
}

/* DROP KEYSPACE, TABLE, TYPE, INDEX, MATERIALIZED VIEW: the token after the kind is next. */
static int
parser_drop_named(
    struct parser *p, struct statement *out, int (*name)(struct parser *p, struct ast_name *out))
{
	if (parser_if_exists(p, &out->drop.if_exists) != 0)
		return -1;
	return name(p, &out->drop.name);
}

static int
parser_drop_keyspace(struct parser *p, struct statement *out)
{
	if (parser_if_exists(p, &out->keyspace.if_exists) != 0)
		return -1;
	return parser_keyspace_name(p, &out->keyspace.name);
}

static int
parser_drop_view(struct parser *p, struct statement *out)
{
	if (parser_expect(p, K_VIEW) != 0)
		return -1;
	return parser_drop_named(p, out, parser_table_name);
}

int
parser_drop(struct parser *p, struct statement *out)
{
	enum lexer_token_type what = parser_peek(p, 2);

	switch (what) {
	case K_KEYSPACE:
	case K_COLUMNFAMILY:
	case K_TYPE:
	case K_INDEX:
	case K_MATERIALIZED:
	case K_TRIGGER:
	case K_FUNCTION:
	case K_AGGREGATE:
	case K_USER:
	case K_ROLE:
		break;
	default:
		if (parser_is_word(p, 2, "identity")) {
			parser_take(p);
			return parser_drop_identity(p, out);
		}
		return parser_no_viable(p, 2);
	}
	parser_take(p);
	if (what == K_TRIGGER)
		return parser_drop_trigger(p, out);
	if (what == K_USER || what == K_ROLE)
		return parser_drop_role(p, out);
	if (what == K_FUNCTION || what == K_AGGREGATE)
		return parser_drop_function(p, out);
	parser_take(p);
	switch (what) {
	case K_KEYSPACE:
		out->kind = STATEMENT_DROP_KEYSPACE;
		return parser_drop_keyspace(p, out);
	case K_TYPE:
		out->kind = STATEMENT_DROP_TYPE;
		return parser_drop_named(p, out, parser_type_name);
	case K_INDEX:
		out->kind = STATEMENT_DROP_INDEX;
		return parser_drop_named(p, out, parser_qualified_index_name);
	case K_MATERIALIZED:
		out->kind = STATEMENT_DROP_VIEW;
		return parser_drop_view(p, out);
	default:
		out->kind = STATEMENT_DROP_TABLE;
		return parser_drop_named(p, out, parser_table_name);
	}
}
