/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "cql/parser_core.h"

/* ---- Columns ---- */

/* ( MASKED WITH ( DEFAULT | function ( term, ... ) ) )?; none in 4.1. */
static int
parser_mask(struct parser *p, struct ast_mask **out)
{
	struct ast_mask *mask;

	if (!parser_is_word(p, 1, "masked"))
		return 0;
	mask = parser_alloc(p, sizeof(*mask));
	if (mask == NULL)
		return -1;
	*out = mask;
	parser_take(p);
	if (parser_expect(p, K_WITH) != 0)
		return -1;
	mask->function.at = parser_position(p);
	if (parser_peek(p, 1) == K_DEFAULT && parser_peek(p, 2) != TOKEN_OPEN &&
	    parser_peek(p, 2) != TOKEN_DOT) {
		parser_take(p);
		mask->function.keyspace = (struct ast_string){"system", 6};
		mask->function.name = (struct ast_string){"mask_default", 12};
		return 0;
	}
	if (parser_function_name(p, &mask->function) != 0)
		return -1;
	return parser_term_list(p, &mask->arguments);
}

/* name type ( STATIC )? ( mask )? */
static int
parser_column(struct parser *p, struct ast_column *out)
{
	if (parser_ident(p, &out->name) != 0 || parser_type(p, &out->type) != 0)
		return -1;
	out->is_static = parser_accept(p, K_STATIC);
	return parser_mask(p, &out->mask);
}

/* a | ( a, b ) of a primary key, which is taken to its closing parenthesis. */
static int
parser_key_columns(
    struct parser *p, struct ast_identifiers *partition, struct ast_identifiers *clustering)
{
	enum lexer_token_type next;

	if (parser_expect(p, TOKEN_OPEN) != 0)
		return -1;
	next = parser_peek(p, 1);
	if (next == TOKEN_OPEN) {
		parser_take(p);
		if (parser_ident_list(p, partition) != 0 || parser_expect(p, TOKEN_CLOSE) != 0)
			return -1;
	} else {
		struct ast_identifier *item = PARSER_PUSH(p, partition->items, partition->count);

		if (item == NULL || parser_ident(p, item) != 0)
			return -1;
	}
	if (parser_accept(p, TOKEN_COMMA) && parser_ident_list(p, clustering) != 0)
		return -1;
	return parser_expect(p, TOKEN_CLOSE);
}

static int
parser_second_key(struct parser *p, const struct ast_name *table)
{
	return parser_refuse(p, ERROR_INVALID,
	    "Multiple PRIMARY KEY specified for table '%s%s%s' (exactly one required)",
	    table->keyspace.text != NULL ? table->keyspace.text : "",
	    table->keyspace.text != NULL ? "." : "", table->name.text);
}

/* ---- CREATE TABLE ---- */

static int
parser_table_column(struct parser *p, struct statement_create_table *create)
{
	struct ast_columns *columns = &create->columns;
	struct ast_column *column = PARSER_PUSH(p, columns->items, columns->count);
	struct ast_identifier *key;

	if (column == NULL || parser_column(p, column) != 0)
		return -1;
	for (size_t i = 0; i + 1 < columns->count; i++)
		if (ast_string_equal(columns->items[i].name.text, column->name.text))
			return parser_refuse(p, ERROR_INVALID,
			    "Duplicate column '%s' declaration for table '%s%s%s'",
			    column->name.text.text,
			    create->name.keyspace.text != NULL ? create->name.keyspace.text : "",
			    create->name.keyspace.text != NULL ? "." : "", create->name.name.text);
	if (!parser_accept(p, K_PRIMARY))
		return 0;
	if (parser_expect(p, K_KEY) != 0)
		return -1;
	if (create->partition_key.count > 0)
		return parser_second_key(p, &create->name);
	key = PARSER_PUSH(p, create->partition_key.items, create->partition_key.count);
	if (key == NULL)
		return -1;
	*key = column->name;
	return 0;
}

static int
parser_table_element(struct parser *p, struct statement_create_table *create)
{
	struct ast_identifiers partition = {0};

	if (parser_peek(p, 1) != K_PRIMARY) {
		if (!parser_is_ident(parser_peek(p, 1)))
			return parser_no_viable(p, 1);
		return parser_table_column(p, create);
	}
	parser_take(p);
	if (parser_expect(p, K_KEY) != 0 ||
	    parser_key_columns(p, &partition, &create->clustering_key) != 0)
		return -1;
	if (create->partition_key.count > 0)
		return parser_second_key(p, &create->name);
	create->partition_key = partition;
	return 0;
}

int
parser_create_table(struct parser *p, struct statement *out)
{
	struct statement_create_table *create = &out->create_table;

	out->kind = STATEMENT_CREATE_TABLE;
	parser_take(p);
	if (parser_if_not_exists(p, &create->if_not_exists) != 0 ||
	    parser_table_name(p, &create->name) != 0 || parser_expect(p, TOKEN_OPEN) != 0 ||
	    parser_table_element(p, create) != 0)
		return -1;
	while (parser_accept(p, TOKEN_COMMA)) {
		/* Commas too many do no harm. */
		if (parser_peek(p, 1) != K_PRIMARY && !parser_is_ident(parser_peek(p, 1)))
			continue;
		if (parser_table_element(p, create) != 0)
			return -1;
	}
	if (parser_expect(p, TOKEN_CLOSE) != 0)
		return -1;
	return parser_table_properties(p, create->name.name, &create->is_compact_storage,
	    &create->clustering_order, &create->clustering_order_count, &create->properties);
}

/* ---- CREATE MATERIALIZED VIEW ---- */

int
parser_create_view(struct parser *p, struct statement *out)
{
	struct statement_create_view *create = &out->create_view;
	bool is_compact_storage = false;

	out->kind = STATEMENT_CREATE_VIEW;
	parser_take(p);
	if (parser_expect(p, K_VIEW) != 0 || parser_if_not_exists(p, &create->if_not_exists) != 0 ||
	    parser_table_name(p, &create->name) != 0 || parser_expect(p, K_AS) != 0 ||
	    parser_expect(p, K_SELECT) != 0 ||
	    parser_selectors(p, &create->is_wildcard, &create->selectors) != 0 ||
	    parser_expect(p, K_FROM) != 0 || parser_table_name(p, &create->base) != 0)
		return -1;
	if (parser_accept(p, K_WHERE) && parser_where(p, &create->where) != 0)
		return -1;
	if (parser_expect(p, K_PRIMARY) != 0 || parser_expect(p, K_KEY) != 0 ||
	    parser_key_columns(p, &create->partition_key, &create->clustering_key) != 0)
		return -1;
	if (parser_table_properties(p, create->name.name, &is_compact_storage,
		&create->clustering_order, &create->clustering_order_count,
		&create->properties) != 0)
		return -1;
	if (is_compact_storage)
		return parser_refuse(p, ERROR_SYNTAX,
		    "COMPACT STORAGE tables are not allowed starting with version 4.0");
	return 0;
}

/* ---- ALTER TABLE ---- */

static struct ast_column *
parser_push_alter_column(struct parser *p, struct statement_alter_table *alter)
{
	return PARSER_PUSH(p, alter->columns.items, alter->columns.count);
}

/* ALTER column TYPE type; from 5.0 ALTER ( IF EXISTS )? column MASKED WITH ... | DROP MASKED */
static int
parser_alter_column(struct parser *p, struct statement_alter_table *alter)
{
	struct ast_column *column = parser_push_alter_column(p, alter);

	alter->kind = AST_ALTER_TABLE_COLUMN_TYPE;
	if (column == NULL || parser_if_exists(p, &alter->if_column_exists) != 0 ||
	    parser_column_ident(p, &column->name) != 0)
		return -1;
	if (parser_is_word(p, 1, "masked")) {
		alter->kind = AST_ALTER_TABLE_MASK;
		return parser_mask(p, &column->mask);
	}
	if (parser_peek(p, 1) == K_DROP && parser_is_word(p, 2, "masked")) {
		alter->kind = AST_ALTER_TABLE_MASK;
		parser_take(p);
		parser_take(p);
		return 0;
	}
	if (parser_expect(p, K_TYPE) != 0)
		return -1;
	return parser_type(p, &column->type);
}

static int
parser_alter_add(struct parser *p, struct statement_alter_table *alter)
{
	bool is_list;

	alter->kind = AST_ALTER_TABLE_ADD;
	if (parser_if_not_exists(p, &alter->if_column_not_exists) != 0)
		return -1;
	is_list = parser_peek(p, 1) == TOKEN_OPEN;
	if (!is_list && !parser_is_ident(parser_peek(p, 1)))
		return parser_no_viable(p, 1);
	parser_accept(p, TOKEN_OPEN);
	do {
		struct ast_column *column = parser_push_alter_column(p, alter);

		if (column == NULL || parser_column(p, column) != 0)
			return -1;
	} while (is_list && parser_accept(p, TOKEN_COMMA));
	return is_list ? parser_expect(p, TOKEN_CLOSE) : 0;
}

/* ( USING TIMESTAMP integer )? */
static int
parser_drop_timestamp(struct parser *p, struct statement_alter_table *alter)
{
	struct ast_string text;

	if (!parser_accept(p, K_USING))
		return 0;
	if (parser_expect(p, K_TIMESTAMP) != 0)
		return -1;
	if (parser_peek(p, 1) != TOKEN_INTEGER)
		return parser_mismatch(p, "INTEGER");
	if (parser_token_text(p, parser_take(p), false, &text) != 0)
		return -1;
	errno = 0;
	alter->has_timestamp = true;
	alter->timestamp = strtoll(text.text, NULL, 10);
	if (errno == ERANGE)
		return parser_refuse(p, ERROR_SYNTAX, "timestamp %s is out of range", text.text);
	return 0;
}

/* STORAGE, or the end of dropping a column of that name. */
static bool
parser_may_follow_compact(enum lexer_token_type type)
{
	return type == K_STORAGE || type == K_USING || type == TOKEN_SEMICOLON || type == TOKEN_EOF;
}

static int
parser_alter_drop(struct parser *p, struct statement_alter_table *alter)
{
	enum lexer_token_type next = parser_peek(p, 2);
	bool is_list;

	/* Which DROP it is, is decided before the word is taken. */
	if (next != K_IF && next != TOKEN_OPEN && !parser_is_ident(next))
		return parser_no_viable(p, 2);
	if (next == K_COMPACT && !parser_may_follow_compact(parser_peek(p, 3)))
		return parser_no_viable(p, 3);
	parser_take(p);
	if (next == K_COMPACT && parser_peek(p, 2) == K_STORAGE) {
		alter->kind = AST_ALTER_TABLE_DROP_COMPACT_STORAGE;
		parser_take(p);
		parser_take(p);
		return 0;
	}
	alter->kind = AST_ALTER_TABLE_DROP;
	if (parser_if_exists(p, &alter->if_column_exists) != 0)
		return -1;
	is_list = parser_peek(p, 1) == TOKEN_OPEN;
	if (!is_list && !parser_is_ident(parser_peek(p, 1)))
		return parser_no_viable(p, 1);
	parser_accept(p, TOKEN_OPEN);
	do {
		struct ast_column *column = parser_push_alter_column(p, alter);

		if (column == NULL || parser_ident(p, &column->name) != 0)
			return -1;
	} while (is_list && parser_accept(p, TOKEN_COMMA));
	if (is_list && parser_expect(p, TOKEN_CLOSE) != 0)
		return -1;
	return parser_drop_timestamp(p, alter);
}

static int
parser_alter_rename(struct parser *p, struct statement_alter_table *alter)
{
	alter->kind = AST_ALTER_TABLE_RENAME;
	if (parser_if_exists(p, &alter->if_column_exists) != 0)
		return -1;
	return parser_renames(p, &alter->renames, &alter->rename_count);
}

int
parser_alter_table(struct parser *p, struct statement *out)
{
	struct statement_alter_table *alter = &out->alter_table;

	out->kind = STATEMENT_ALTER_TABLE;
	parser_take(p);
	if (parser_if_exists(p, &alter->if_exists) != 0 || parser_table_name(p, &alter->name) != 0)
		return -1;
	if (parser_accept(p, K_ALTER))
		return parser_alter_column(p, alter);
	if (parser_accept(p, K_ADD))
		return parser_alter_add(p, alter);
	if (parser_peek(p, 1) == K_DROP)
		return parser_alter_drop(p, alter);
	if (parser_accept(p, K_RENAME))
		return parser_alter_rename(p, alter);
	if (parser_accept(p, K_WITH)) {
		alter->kind = AST_ALTER_TABLE_PROPERTIES;
		return parser_properties(p, &alter->properties);
	}
	return parser_no_viable(p, 1);
}
