/* SPDX-License-Identifier: Apache-2.0 */
/* Names of result columns, as Cassandra's Selectable.toString() makes them. */
#include "server/selection.h"

static void
selector_names(
    struct preparation *preparation, const struct ast_selectors *items, struct buffer *out)
{
	for (size_t i = 0; i < items->count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		selector_name(preparation, items->items[i], out);
	}
}

static void
selector_name_function(
    struct preparation *preparation, const struct ast_selector *raw, struct buffer *out)
{
	const struct ast_name *name = &raw->function.name;

	/* count(1) is count(*). */
	if (raw->function.arguments.count == 1 && name->name.length == 5 &&
	    memcmp(name->name.text, "count", 5) == 0 &&
	    raw->function.arguments.items[0]->kind == AST_SELECTOR_TERM) {
		buffer_put_string(out, "count");
		return;
	}
	if (name->keyspace.text != NULL)
		buffer_put(out, name->keyspace.text, name->keyspace.length);
	else
		buffer_put_string(out, "system");
	buffer_put_u8(out, '.');
	/* Native functions are known by lower-case names. */
	buffer_put(out, name->name.text, name->name.length);
	buffer_put_u8(out, '(');
	selector_names(preparation, &raw->function.arguments, out);
	buffer_put_u8(out, ')');
}

static void
selector_name_group(struct preparation *preparation, const char *open, const char *close,
    const struct ast_selector *raw, struct buffer *out)
{
	buffer_put_string(out, open);
	if (raw->kind == AST_SELECTOR_MAP) {
		for (size_t i = 0; i < raw->pairs.count; i++) {
			if (i > 0)
				buffer_put_string(out, ", ");
			selector_name(preparation, raw->pairs.items[i].key, out);
			buffer_put_string(out, ": ");
			selector_name(preparation, raw->pairs.items[i].value, out);
		}
	} else {
		selector_names(preparation, &raw->items, out);
	}
	buffer_put_string(out, close);
}

static void
selector_name_call(struct preparation *preparation, const char *name,
    const struct ast_selector *operand, struct buffer *out)
{
	buffer_put_string(out, name);
	buffer_put_u8(out, '(');
	selector_name(preparation, operand, out);
	buffer_put_u8(out, ')');
}

static void
selector_name_hint(
    struct preparation *preparation, const struct ast_selector *raw, struct buffer *out)
{
	const struct ast_type *type = raw->cast.type;

	buffer_put_u8(out, '(');
	if (type->kind == AST_TYPE_USER && type->keyspace.text == NULL)
		buffer_printf(out, "%.*s.", (int)preparation->table->keyspace.size,
		    preparation->table->keyspace.data);
	ast_type_text(type, out);
	buffer_put_u8(out, ')');
	selector_name(preparation, raw->cast.operand, out);
}

static void
selector_name_slice(
    struct preparation *preparation, const struct ast_selector *raw, struct buffer *out)
{
	selector_name(preparation, raw->slice.operand, out);
	buffer_put_u8(out, '[');
	if (raw->slice.from != NULL)
		ast_term_text(preparation->statement, raw->slice.from, out);
	buffer_put_string(out, "..");
	if (raw->slice.to != NULL)
		ast_term_text(preparation->statement, raw->slice.to, out);
	buffer_put_u8(out, ']');
}

void
selector_name(struct preparation *preparation, const struct ast_selector *raw, struct buffer *out)
{
	const struct statement *statement = preparation->statement;

	switch (raw->kind) {
	case AST_SELECTOR_COLUMN:
		buffer_put(out, raw->column.text.text, raw->column.text.length);
		break;
	case AST_SELECTOR_TERM:
		ast_term_text(statement, raw->term, out);
		break;
	case AST_SELECTOR_COUNT_ROWS:
		buffer_put_string(out, "count");
		break;
	case AST_SELECTOR_FUNCTION:
		selector_name_function(preparation, raw, out);
		break;
	case AST_SELECTOR_WRITETIME:
		selector_name_call(preparation, "writetime", raw->operand, out);
		break;
	case AST_SELECTOR_MAXWRITETIME:
		selector_name_call(preparation, "maxwritetime", raw->operand, out);
		break;
	case AST_SELECTOR_MINWRITETIME:
		selector_name_call(preparation, "minwritetime", raw->operand, out);
		break;
	case AST_SELECTOR_TTL:
		selector_name_call(preparation, "ttl", raw->operand, out);
		break;
	case AST_SELECTOR_CAST:
		buffer_put_string(out, "cast(");
		selector_name(preparation, raw->cast.operand, out);
		buffer_put_string(out, " as ");
		ast_type_text(raw->cast.type, out);
		buffer_put_u8(out, ')');
		break;
	case AST_SELECTOR_TYPE_HINT:
		selector_name_hint(preparation, raw, out);
		break;
	case AST_SELECTOR_OPERATION:
		selector_name(preparation, raw->operation.left, out);
		buffer_printf(out, " %c ", raw->operation.operator);
		selector_name(preparation, raw->operation.right, out);
		break;
	case AST_SELECTOR_NEGATION:
		buffer_put_u8(out, '-');
		selector_name(preparation, raw->operand, out);
		break;
	case AST_SELECTOR_FIELD:
		selector_name(preparation, raw->field.operand, out);
		buffer_put_u8(out, '.');
		buffer_put(out, raw->field.field.text.text, raw->field.field.text.length);
		break;
	case AST_SELECTOR_ELEMENT:
		selector_name(preparation, raw->element.operand, out);
		buffer_put_u8(out, '[');
		ast_term_text(statement, raw->element.key, out);
		buffer_put_u8(out, ']');
		break;
	case AST_SELECTOR_SLICE:
		selector_name_slice(preparation, raw, out);
		break;
	case AST_SELECTOR_TUPLE:
		selector_name_group(preparation, "(", ")", raw, out);
		break;
	case AST_SELECTOR_LIST:
		selector_name_group(preparation, "[", "]", raw, out);
		break;
	case AST_SELECTOR_SET:
	case AST_SELECTOR_MAP:
		selector_name_group(preparation, "{", "}", raw, out);
		break;
	}
}
