/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/ast.h"
#include "cql/describe.h"

#include <assert.h>

#include "cql/parser.h"

const char *
statement_kind_name(enum statement_kind kind)
{
	static const char *const names[] = {
	    [STATEMENT_SELECT] = "SELECT",
	    [STATEMENT_INSERT] = "INSERT",
	    [STATEMENT_UPDATE] = "UPDATE",
	    [STATEMENT_DELETE] = "DELETE",
	    [STATEMENT_BATCH] = "BATCH",
	    [STATEMENT_USE] = "USE",
	    [STATEMENT_TRUNCATE] = "TRUNCATE",
	    [STATEMENT_CREATE_KEYSPACE] = "CREATE_KEYSPACE",
	    [STATEMENT_ALTER_KEYSPACE] = "ALTER_KEYSPACE",
	    [STATEMENT_DROP_KEYSPACE] = "DROP_KEYSPACE",
	    [STATEMENT_CREATE_TABLE] = "CREATE_TABLE",
	    [STATEMENT_ALTER_TABLE] = "ALTER_TABLE",
	    [STATEMENT_DROP_TABLE] = "DROP_TABLE",
	    [STATEMENT_CREATE_TYPE] = "CREATE_TYPE",
	    [STATEMENT_ALTER_TYPE] = "ALTER_TYPE",
	    [STATEMENT_DROP_TYPE] = "DROP_TYPE",
	    [STATEMENT_CREATE_INDEX] = "CREATE_INDEX",
	    [STATEMENT_DROP_INDEX] = "DROP_INDEX",
	    [STATEMENT_CREATE_VIEW] = "CREATE_VIEW",
	    [STATEMENT_ALTER_VIEW] = "ALTER_VIEW",
	    [STATEMENT_DROP_VIEW] = "DROP_VIEW",
	    [STATEMENT_CREATE_FUNCTION] = "CREATE_FUNCTION",
	    [STATEMENT_DROP_FUNCTION] = "DROP_FUNCTION",
	    [STATEMENT_CREATE_AGGREGATE] = "CREATE_AGGREGATE",
	    [STATEMENT_DROP_AGGREGATE] = "DROP_AGGREGATE",
	    [STATEMENT_CREATE_TRIGGER] = "CREATE_TRIGGER",
	    [STATEMENT_DROP_TRIGGER] = "DROP_TRIGGER",
	    [STATEMENT_CREATE_ROLE] = "CREATE_ROLE",
	    [STATEMENT_ALTER_ROLE] = "ALTER_ROLE",
	    [STATEMENT_DROP_ROLE] = "DROP_ROLE",
	    [STATEMENT_GRANT_ROLE] = "GRANT_ROLE",
	    [STATEMENT_REVOKE_ROLE] = "REVOKE_ROLE",
	    [STATEMENT_GRANT_PERMISSIONS] = "GRANT_PERMISSIONS",
	    [STATEMENT_REVOKE_PERMISSIONS] = "REVOKE_PERMISSIONS",
	    [STATEMENT_LIST_PERMISSIONS] = "LIST_PERMISSIONS",
	    [STATEMENT_LIST_ROLES] = "LIST_ROLES",
	    [STATEMENT_LIST_USERS] = "LIST_USERS",
	    [STATEMENT_LIST_SUPERUSERS] = "LIST_SUPERUSERS",
	    [STATEMENT_ADD_IDENTITY] = "ADD_IDENTITY",
	    [STATEMENT_DROP_IDENTITY] = "DROP_IDENTITY",
	    [STATEMENT_DESCRIBE] = "DESCRIBE",
	};

	assert((size_t)kind < sizeof(names) / sizeof(names[0]));
	return names[kind];
}

const char *
ast_operator_text(enum ast_operator comparison)
{
	static const char *const texts[] = {
	    [AST_EQ] = "=",
	    [AST_LT] = "<",
	    [AST_LTE] = "<=",
	    [AST_GT] = ">",
	    [AST_GTE] = ">=",
	    [AST_NEQ] = "!=",
	    [AST_IN] = "IN",
	    [AST_CONTAINS] = "CONTAINS",
	    [AST_CONTAINS_KEY] = "CONTAINS KEY",
	    [AST_LIKE] = "LIKE",
	    [AST_IS_NOT] = "IS NOT",
	};

	assert((size_t)comparison < sizeof(texts) / sizeof(texts[0]));
	return texts[comparison];
}

/* ---- Types ---- */

static void
ast_put(struct buffer *out, struct ast_string string)
{
	buffer_put_slice(out, ast_slice(string));
}

static void
ast_generic_text(const char *name, const struct ast_type *type, struct buffer *out)
{
	buffer_put_string(out, name);
	buffer_put_u8(out, '<');
	for (size_t i = 0; i < type->argument_count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		ast_type_text(type->arguments[i], out);
	}
	if (type->kind == AST_TYPE_VECTOR)
		buffer_printf(out, ", %d", type->dimension);
	buffer_put_u8(out, '>');
}

void
ast_type_text(const struct ast_type *type, struct buffer *out)
{
	if (type->is_frozen)
		buffer_put_string(out, "frozen<");
	switch (type->kind) {
	case AST_TYPE_NATIVE:
		ast_put(out, type->name);
		break;
	case AST_TYPE_LIST:
		ast_generic_text("list", type, out);
		break;
	case AST_TYPE_SET:
		ast_generic_text("set", type, out);
		break;
	case AST_TYPE_MAP:
		ast_generic_text("map", type, out);
		break;
	case AST_TYPE_TUPLE:
		ast_generic_text("tuple", type, out);
		break;
	case AST_TYPE_VECTOR:
		ast_generic_text("vector", type, out);
		break;
	case AST_TYPE_USER:
		/* In quotes where it needs them: the text is parsed again to find the type. */
		if (type->keyspace.text != NULL) {
			describe_name(ast_slice(type->keyspace), out);
			buffer_put_u8(out, '.');
		}
		describe_name(ast_slice(type->name), out);
		break;
	case AST_TYPE_CUSTOM:
		buffer_put_u8(out, '\'');
		ast_put(out, type->name);
		buffer_put_u8(out, '\'');
		break;
	}
	if (type->is_frozen)
		buffer_put_u8(out, '>');
}

/* ---- Terms ---- */

static void
ast_terms_text(const struct statement *statement, const struct ast_terms *terms,
    const char *brackets, struct buffer *out)
{
	buffer_put_u8(out, (uint8_t)brackets[0]);
	for (size_t i = 0; i < terms->count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		ast_term_text(statement, terms->items[i], out);
	}
	buffer_put_u8(out, (uint8_t)brackets[1]);
}

static void
ast_pairs_text(const struct statement *statement, const struct ast_term *term, struct buffer *out)
{
	buffer_put_u8(out, '{');
	for (size_t i = 0; i < term->pairs.count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		ast_term_text(statement, term->pairs.items[i].key, out);
		buffer_put_string(out, ": ");
		ast_term_text(statement, term->pairs.items[i].value, out);
	}
	buffer_put_u8(out, '}');
}

static void
ast_fields_text(const struct statement *statement, const struct ast_term *term, struct buffer *out)
{
	buffer_put_u8(out, '{');
	for (size_t i = 0; i < term->fields.count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		ast_put(out, term->fields.items[i].field.text);
		buffer_put_string(out, ": ");
		ast_term_text(statement, term->fields.items[i].value, out);
	}
	buffer_put_u8(out, '}');
}

static void
ast_name_text(const struct ast_name *name, struct buffer *out)
{
	if (name->keyspace.text != NULL) {
		cql_quote_identifier(ast_slice(name->keyspace), out);
		buffer_put_u8(out, '.');
	}
	cql_quote_identifier(ast_slice(name->name), out);
}

/* Operators and casts are functions, and shown as such. */
static const char *
ast_operation_name(char sign)
{
	switch (sign) {
	case '+':
		return "_add";
	case '-':
		return "_substract";
	case '*':
		return "_multiply";
	case '/':
		return "_divide";
	default:
		return "_modulo";
	}
}

static void
ast_operation_text(
    const struct statement *statement, const struct ast_term *term, struct buffer *out)
{
	buffer_printf(out, "system.\"%s\"(", ast_operation_name(term->operation.operator));
	ast_term_text(statement, term->operation.left, out);
	buffer_put_string(out, ", ");
	ast_term_text(statement, term->operation.right, out);
	buffer_put_u8(out, ')');
}

static void
ast_cast_text(const struct statement *statement, const struct ast_term *term, struct buffer *out)
{
	const char *type = term->cast.type->name.text;

	buffer_printf(out, "system.\"castAs%c%s\"(", type[0] - 'a' + 'A', type + 1);
	ast_term_text(statement, term->cast.term, out);
	buffer_put_u8(out, ')');
}

static void
ast_constant_text(const struct ast_term *term, struct buffer *out)
{
	bool is_string = term->constant.kind == AST_CONSTANT_STRING;

	/* Quotes inside are not doubled: getText() is for people. */
	if (is_string)
		buffer_put_u8(out, '\'');
	ast_put(out, term->constant.text);
	if (is_string)
		buffer_put_u8(out, '\'');
}

void
ast_term_text(const struct statement *statement, const struct ast_term *term, struct buffer *out)
{
	switch (term->kind) {
	case AST_TERM_CONSTANT:
		ast_constant_text(term, out);
		break;
	case AST_TERM_NULL:
		buffer_put_string(out, "NULL");
		break;
	case AST_TERM_MARKER:
		buffer_put_u8(out, '?'); /* the name is not shown */
		break;
	case AST_TERM_LIST:
		ast_terms_text(statement, &term->terms, "[]", out);
		break;
	case AST_TERM_SET:
		ast_terms_text(statement, &term->terms, "{}", out);
		break;
	case AST_TERM_TUPLE:
		ast_terms_text(statement, &term->terms, "()", out);
		break;
	case AST_TERM_MAP:
		ast_pairs_text(statement, term, out);
		break;
	case AST_TERM_UDT:
		ast_fields_text(statement, term, out);
		break;
	case AST_TERM_FUNCTION:
		ast_name_text(&term->function.name, out);
		ast_terms_text(statement, &term->function.arguments, "()", out);
		break;
	case AST_TERM_TYPE_CAST:
		buffer_put_u8(out, '(');
		ast_type_text(term->cast.type, out);
		buffer_put_u8(out, ')');
		ast_term_text(statement, term->cast.term, out);
		break;
	case AST_TERM_CAST:
		ast_cast_text(statement, term, out);
		break;
	case AST_TERM_OPERATION:
		ast_operation_text(statement, term, out);
		break;
	case AST_TERM_NEGATION:
		buffer_put_string(out, "system.\"_negate\"(");
		ast_term_text(statement, term->negated, out);
		buffer_put_u8(out, ')');
		break;
	}
}

/* ---- Relations ---- */

static void
ast_columns_text(const struct ast_relation *relation, struct buffer *out)
{
	buffer_put_u8(out, '(');
	for (size_t i = 0; i < relation->columns.count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		cql_quote_identifier(ast_slice(relation->columns.items[i].text), out);
	}
	buffer_put_u8(out, ')');
}

void
ast_relation_text(
    const struct statement *statement, const struct ast_relation *relation, struct buffer *out)
{
	switch (relation->kind) {
	case AST_RELATION_COLUMN:
		cql_quote_identifier(ast_slice(relation->columns.items[0].text), out);
		break;
	case AST_RELATION_ELEMENT:
		cql_quote_identifier(ast_slice(relation->columns.items[0].text), out);
		buffer_put_u8(out, '[');
		ast_term_text(statement, relation->key, out);
		buffer_put_u8(out, ']');
		break;
	case AST_RELATION_TUPLE:
		ast_columns_text(relation, out);
		break;
	case AST_RELATION_TOKEN:
		buffer_put_string(out, "token");
		ast_columns_text(relation, out);
		break;
	case AST_RELATION_EXPRESSION:
		buffer_put_string(out, "expr(");
		cql_quote_identifier(ast_slice(relation->index), out);
		buffer_put_u8(out, ',');
		ast_term_text(statement, relation->value, out);
		buffer_put_u8(out, ')');
		return;
	}
	buffer_printf(out, " %s ", ast_operator_text(relation->operator));
	if (relation->value == NULL)
		ast_terms_text(statement, &relation->in_values, "()", out);
	else
		ast_term_text(statement, relation->value, out);
}
