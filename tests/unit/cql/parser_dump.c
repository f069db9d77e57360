/* SPDX-License-Identifier: Apache-2.0 */
#include "parser_dump.h"

#include <stdlib.h>

static void dump_term(const struct ast_term *term, struct buffer *out);
static void dump_selector(const struct ast_selector *selector, struct buffer *out);

/* ---- Names ---- */

static void
dump_string(struct ast_string string, struct buffer *out)
{
	if (string.text == NULL) {
		buffer_put_string(out, "-");
		return;
	}
	/* Parsed strings are promised to end with a NUL. */
	if (string.text[string.length] != '\0')
		abort();
	buffer_put_slice(out, ast_slice(string));
}

static void
dump_flag(const char *name, bool is_set, struct buffer *out)
{
	if (is_set)
		buffer_printf(out, " %s", name);
}

static void
dump_name(const struct ast_name *name, struct buffer *out)
{
	buffer_put_u8(out, ' ');
	if (name->keyspace.text != NULL) {
		dump_string(name->keyspace, out);
		buffer_put_u8(out, '.');
	}
	dump_string(name->name, out);
}

static void
dump_identifiers(const char *label, const struct ast_identifiers *names, struct buffer *out)
{
	if (names->count == 0)
		return;
	buffer_printf(out, " %s(", label);
	for (size_t i = 0; i < names->count; i++) {
		buffer_put_string(out, i > 0 ? " " : "");
		dump_string(names->items[i].text, out);
	}
	buffer_put_u8(out, ')');
}

/* ---- Types ---- */

static void
dump_types(const struct ast_types *types, struct buffer *out)
{
	buffer_put_string(out, " (");
	for (size_t i = 0; i < types->count; i++) {
		buffer_put_string(out, i > 0 ? ", " : "");
		ast_type_text(types->items[i], out);
	}
	buffer_put_u8(out, ')');
}

/* ---- Terms ---- */

static void
dump_terms(char open, const struct ast_terms *terms, char close, struct buffer *out)
{
	buffer_put_u8(out, (uint8_t)open);
	for (size_t i = 0; i < terms->count; i++) {
		buffer_put_string(out, i > 0 ? " " : "");
		dump_term(terms->items[i], out);
	}
	buffer_put_u8(out, (uint8_t)close);
}

static void
dump_constant(const struct ast_term *term, struct buffer *out)
{
	static const char letters[] = {
	    [AST_CONSTANT_STRING] = 's',
	    [AST_CONSTANT_INTEGER] = 'i',
	    [AST_CONSTANT_FLOAT] = 'f',
	    [AST_CONSTANT_UUID] = 'u',
	    [AST_CONSTANT_BOOLEAN] = 'b',
	    [AST_CONSTANT_HEX] = 'x',
	    [AST_CONSTANT_DURATION] = 'd',
	};

	buffer_printf(out, "%c:", letters[term->constant.kind]);
	dump_string(term->constant.text, out);
}

static void
dump_term(const struct ast_term *term, struct buffer *out)
{
	switch (term->kind) {
	case AST_TERM_CONSTANT:
		dump_constant(term, out);
		break;
	case AST_TERM_NULL:
		buffer_put_string(out, "null");
		break;
	case AST_TERM_MARKER:
		buffer_printf(out, "?%u", term->marker);
		break;
	case AST_TERM_LIST:
		dump_terms('[', &term->terms, ']', out);
		break;
	case AST_TERM_SET:
		dump_terms('{', &term->terms, '}', out);
		break;
	case AST_TERM_TUPLE:
		dump_terms('(', &term->terms, ')', out);
		break;
	case AST_TERM_MAP:
		buffer_put_string(out, "map{");
		for (size_t i = 0; i < term->pairs.count; i++) {
			buffer_put_string(out, i > 0 ? " " : "");
			dump_term(term->pairs.items[i].key, out);
			buffer_put_string(out, "=>");
			dump_term(term->pairs.items[i].value, out);
		}
		buffer_put_u8(out, '}');
		break;
	case AST_TERM_UDT:
		buffer_put_string(out, "udt{");
		for (size_t i = 0; i < term->fields.count; i++) {
			buffer_put_string(out, i > 0 ? " " : "");
			dump_string(term->fields.items[i].field.text, out);
			buffer_put_string(out, "=>");
			dump_term(term->fields.items[i].value, out);
		}
		buffer_put_u8(out, '}');
		break;
	case AST_TERM_FUNCTION:
		buffer_put_string(out, "call");
		dump_name(&term->function.name, out);
		dump_terms('(', &term->function.arguments, ')', out);
		break;
	case AST_TERM_TYPE_CAST:
	case AST_TERM_CAST:
		buffer_put_string(out, term->kind == AST_TERM_CAST ? "cast<" : "hint<");
		ast_type_text(term->cast.type, out);
		buffer_put_string(out, ">(");
		dump_term(term->cast.term, out);
		buffer_put_u8(out, ')');
		break;
	case AST_TERM_OPERATION:
		buffer_printf(out, "(%c ", term->operation.operator);
		dump_term(term->operation.left, out);
		buffer_put_u8(out, ' ');
		dump_term(term->operation.right, out);
		buffer_put_u8(out, ')');
		break;
	case AST_TERM_NEGATION:
		buffer_put_string(out, "(neg ");
		dump_term(term->negated, out);
		buffer_put_u8(out, ')');
		break;
	}
}

static void
dump_optional_term(const char *label, const struct ast_term *term, struct buffer *out)
{
	if (term == NULL)
		return;
	buffer_printf(out, " %s ", label);
	dump_term(term, out);
}

/* ---- Selectors ---- */

static void
dump_selectors(char open, const struct ast_selectors *selectors, char close, struct buffer *out)
{
	buffer_put_u8(out, (uint8_t)open);
	for (size_t i = 0; i < selectors->count; i++) {
		buffer_put_string(out, i > 0 ? " " : "");
		dump_selector(selectors->items[i], out);
	}
	buffer_put_u8(out, (uint8_t)close);
}

static void
dump_wrapped(const char *label, const struct ast_selector *selector, struct buffer *out)
{
	buffer_printf(out, "%s(", label);
	dump_selector(selector, out);
	buffer_put_u8(out, ')');
}

static void
dump_selector_cast(const char *label, const struct ast_selector *selector, struct buffer *out)
{
	buffer_printf(out, "%s<", label);
	ast_type_text(selector->cast.type, out);
	dump_wrapped(">", selector->cast.operand, out);
}

static void
dump_slice(const struct ast_selector *selector, struct buffer *out)
{
	dump_selector(selector->slice.operand, out);
	buffer_put_u8(out, '[');
	if (selector->slice.from != NULL)
		dump_term(selector->slice.from, out);
	buffer_put_string(out, "..");
	if (selector->slice.to != NULL)
		dump_term(selector->slice.to, out);
	buffer_put_u8(out, ']');
}

static void
dump_selector_kind(const struct ast_selector *selector, struct buffer *out)
{
	switch (selector->kind) {
	case AST_SELECTOR_COLUMN:
		dump_string(selector->column.text, out);
		break;
	case AST_SELECTOR_TERM:
		dump_term(selector->term, out);
		break;
	case AST_SELECTOR_FUNCTION:
		buffer_put_string(out, "call");
		dump_name(&selector->function.name, out);
		dump_selectors('(', &selector->function.arguments, ')', out);
		break;
	case AST_SELECTOR_COUNT_ROWS:
		buffer_put_string(out, "count-rows");
		break;
	case AST_SELECTOR_WRITETIME:
		dump_wrapped("writetime", selector->operand, out);
		break;
	case AST_SELECTOR_MAXWRITETIME:
		dump_wrapped("maxwritetime", selector->operand, out);
		break;
	case AST_SELECTOR_MINWRITETIME:
		dump_wrapped("minwritetime", selector->operand, out);
		break;
	case AST_SELECTOR_TTL:
		dump_wrapped("ttl", selector->operand, out);
		break;
	case AST_SELECTOR_CAST:
		dump_selector_cast("cast", selector, out);
		break;
	case AST_SELECTOR_TYPE_HINT:
		dump_selector_cast("hint", selector, out);
		break;
	case AST_SELECTOR_OPERATION:
		buffer_printf(out, "(%c ", selector->operation.operator);
		dump_selector(selector->operation.left, out);
		buffer_put_u8(out, ' ');
		dump_selector(selector->operation.right, out);
		buffer_put_u8(out, ')');
		break;
	case AST_SELECTOR_NEGATION:
		dump_wrapped("neg", selector->operand, out);
		break;
	case AST_SELECTOR_FIELD:
		dump_selector(selector->field.operand, out);
		buffer_put_u8(out, '.');
		dump_string(selector->field.field.text, out);
		break;
	case AST_SELECTOR_ELEMENT:
		dump_selector(selector->element.operand, out);
		buffer_put_u8(out, '[');
		dump_term(selector->element.key, out);
		buffer_put_u8(out, ']');
		break;
	case AST_SELECTOR_SLICE:
		dump_slice(selector, out);
		break;
	case AST_SELECTOR_TUPLE:
		dump_selectors('(', &selector->items, ')', out);
		break;
	case AST_SELECTOR_LIST:
		dump_selectors('[', &selector->items, ']', out);
		break;
	case AST_SELECTOR_SET:
		dump_selectors('{', &selector->items, '}', out);
		break;
	case AST_SELECTOR_MAP:
		buffer_put_string(out, "map{");
		for (size_t i = 0; i < selector->pairs.count; i++) {
			buffer_put_string(out, i > 0 ? " " : "");
			dump_selector(selector->pairs.items[i].key, out);
			buffer_put_string(out, "=>");
			dump_selector(selector->pairs.items[i].value, out);
		}
		buffer_put_u8(out, '}');
		break;
	}
}

static void
dump_selector(const struct ast_selector *selector, struct buffer *out)
{
	dump_selector_kind(selector, out);
	if (selector->alias.text.text != NULL) {
		buffer_put_u8(out, '@');
		dump_string(selector->alias.text, out);
	}
}

/* ---- WHERE, IF ---- */

static void
dump_right_side(enum ast_operator comparison, const struct ast_term *value,
    const struct ast_terms *values, struct buffer *out)
{
	buffer_printf(out, " %s ", ast_operator_text(comparison));
	if (value != NULL)
		dump_term(value, out);
	else
		dump_terms('<', values, '>', out);
}

static void
dump_relation(const struct ast_relation *relation, struct buffer *out)
{
	static const char *const kinds[] = {
	    [AST_RELATION_COLUMN] = "",
	    [AST_RELATION_ELEMENT] = "element",
	    [AST_RELATION_TUPLE] = "tuple",
	    [AST_RELATION_TOKEN] = "token",
	    [AST_RELATION_EXPRESSION] = "expr",
	};

	buffer_printf(out, "{%s", kinds[relation->kind]);
	if (relation->kind == AST_RELATION_EXPRESSION) {
		buffer_put_u8(out, ' ');
		dump_string(relation->index, out);
	}
	for (size_t i = 0; i < relation->columns.count; i++) {
		buffer_put_u8(out, ' ');
		dump_string(relation->columns.items[i].text, out);
	}
	dump_optional_term("at", relation->key, out);
	dump_right_side(relation->operator, relation->value, &relation->in_values, out);
	buffer_put_u8(out, '}');
}

static void
dump_where(const struct ast_where *where, struct buffer *out)
{
	if (where->count == 0)
		return;
	buffer_put_string(out, " where");
	for (size_t i = 0; i < where->count; i++) {
		buffer_put_u8(out, ' ');
		dump_relation(where->items[i], out);
	}
}

static void
dump_part(struct ast_identifier column, const struct ast_term *element, struct ast_identifier field,
    struct buffer *out)
{
	dump_string(column.text, out);
	if (element != NULL) {
		buffer_put_u8(out, '[');
		dump_term(element, out);
		buffer_put_u8(out, ']');
	}
	if (field.text.text != NULL) {
		buffer_put_u8(out, '.');
		dump_string(field.text, out);
	}
}

static void
dump_conditions(const struct ast_conditions *conditions, struct buffer *out)
{
	dump_flag("if-exists", conditions->if_exists, out);
	for (size_t i = 0; i < conditions->count; i++) {
		const struct ast_condition *condition = conditions->items[i];

		buffer_put_string(out, " if {");
		dump_part(condition->column, condition->element, condition->field, out);
		dump_right_side(condition->operator, condition->value, &condition->in_values, out);
		buffer_put_u8(out, '}');
	}
}

static void
dump_attributes(const struct ast_attributes *attributes, struct buffer *out)
{
	dump_optional_term("timestamp", attributes->timestamp, out);
	dump_optional_term("ttl", attributes->ttl, out);
}

/* ---- SELECT, INSERT, UPDATE, DELETE, BATCH ---- */

static void
dump_select(const struct statement_select *select, struct buffer *out)
{
	dump_flag("json", select->is_json, out);
	dump_flag("distinct", select->is_distinct, out);
	dump_flag("*", select->is_wildcard, out);
	if (!select->is_wildcard) {
		buffer_put_u8(out, ' ');
		dump_selectors('[', &select->selectors, ']', out);
	}
	dump_name(&select->table, out);
	dump_where(&select->where, out);
	if (select->group_by.count > 0) {
		buffer_put_string(out, " group ");
		dump_selectors('[', &select->group_by, ']', out);
	}
	for (size_t i = 0; i < select->ordering_count; i++) {
		buffer_put_string(out, " order ");
		dump_string(select->orderings[i].column.text, out);
		dump_flag("desc", select->orderings[i].is_descending, out);
		dump_optional_term("ann", select->orderings[i].ann_of, out);
	}
	dump_optional_term("per-partition", select->per_partition_limit, out);
	dump_optional_term("limit", select->limit, out);
	dump_flag("filtering", select->allow_filtering, out);
}

static void
dump_insert(const struct statement_insert *insert, struct buffer *out)
{
	dump_name(&insert->table, out);
	dump_identifiers("", &insert->columns, out);
	if (!insert->is_json) {
		buffer_put_u8(out, ' ');
		dump_terms('(', &insert->values, ')', out);
	}
	dump_optional_term("json", insert->json, out);
	dump_flag("default-unset", insert->default_unset, out);
	dump_flag("if-not-exists", insert->if_not_exists, out);
	dump_attributes(&insert->attributes, out);
}

static void
dump_update(const struct statement_update *update, struct buffer *out)
{
	static const char *const kinds[] = {
	    [AST_ASSIGN_SET] = "=",
	    [AST_ASSIGN_ADD] = "+=",
	    [AST_ASSIGN_SUBTRACT] = "-=",
	    [AST_ASSIGN_PREPEND] = "=+",
	    [AST_ASSIGN_SET_ELEMENT] = "=",
	    [AST_ASSIGN_SET_FIELD] = "=",
	};

	dump_name(&update->table, out);
	dump_attributes(&update->attributes, out);
	for (size_t i = 0; i < update->assignment_count; i++) {
		const struct ast_assignment *assignment = update->assignments[i];

		buffer_put_string(out, " {");
		dump_part(assignment->column, assignment->element, assignment->field, out);
		buffer_printf(out, " %s ", kinds[assignment->kind]);
		dump_term(assignment->value, out);
		buffer_put_u8(out, '}');
	}
	dump_where(&update->where, out);
	dump_conditions(&update->conditions, out);
}

static void
dump_delete(const struct statement_delete *delete, struct buffer *out)
{
	for (size_t i = 0; i < delete->deletion_count; i++) {
		const struct ast_deletion *deletion = delete->deletions[i];

		buffer_put_u8(out, ' ');
		dump_part(deletion->column, deletion->element, deletion->field, out);
	}
	buffer_put_string(out, " from");
	dump_name(&delete->table, out);
	dump_attributes(&delete->attributes, out);
	dump_where(&delete->where, out);
	dump_conditions(&delete->conditions, out);
}

static void
dump_batch(const struct statement_batch *batch, struct buffer *out)
{
	static const char *const kinds[] = {
	    [AST_BATCH_LOGGED] = "logged",
	    [AST_BATCH_UNLOGGED] = "unlogged",
	    [AST_BATCH_COUNTER] = "counter",
	};

	buffer_printf(out, " %s", kinds[batch->kind]);
	dump_attributes(&batch->attributes, out);
	for (size_t i = 0; i < batch->statement_count; i++) {
		buffer_put_string(out, " | ");
		parser_dump(batch->statements[i], out);
	}
}

/* ---- Schema ---- */

static void
dump_entries(const struct ast_property_entry *entries, size_t count, struct buffer *out)
{
	buffer_put_u8(out, '{');
	for (size_t i = 0; i < count; i++) {
		buffer_put_string(out, i > 0 ? " " : "");
		dump_string(entries[i].key, out);
		buffer_put_u8(out, ':');
		dump_string(entries[i].value, out);
	}
	buffer_put_u8(out, '}');
}

static void
dump_properties(const struct ast_properties *properties, struct buffer *out)
{
	for (size_t i = 0; i < properties->count; i++) {
		const struct ast_property *property = &properties->items[i];

		buffer_put_string(out, " with ");
		dump_string(property->name, out);
		buffer_put_u8(out, '=');
		if (property->is_map)
			dump_entries(property->entries, property->entry_count, out);
		else
			dump_string(property->value, out);
		dump_flag("(word)", property->is_keyword, out);
	}
}

static void
dump_columns(const struct ast_columns *columns, struct buffer *out)
{
	for (size_t i = 0; i < columns->count; i++) {
		const struct ast_column *column = &columns->items[i];

		buffer_put_string(out, " {");
		dump_string(column->name.text, out);
		if (column->type != NULL) {
			buffer_put_u8(out, ' ');
			ast_type_text(column->type, out);
		}
		dump_flag("static", column->is_static, out);
		if (column->mask != NULL) {
			buffer_put_string(out, " masked");
			dump_name(&column->mask->function, out);
			dump_terms('(', &column->mask->arguments, ')', out);
		}
		buffer_put_u8(out, '}');
	}
}

static void
dump_clustering(const struct ast_clustering_order *order, size_t count, struct buffer *out)
{
	for (size_t i = 0; i < count; i++) {
		buffer_put_string(out, " order ");
		dump_string(order[i].column.text, out);
		dump_flag("desc", order[i].is_descending, out);
	}
}

static void
dump_renames(const struct ast_rename *renames, size_t count, struct buffer *out)
{
	for (size_t i = 0; i < count; i++) {
		buffer_put_string(out, " {");
		dump_string(renames[i].from.text, out);
		buffer_put_string(out, "=>");
		dump_string(renames[i].to.text, out);
		buffer_put_u8(out, '}');
	}
}

static void
dump_keyspace(const struct statement_keyspace *keyspace, struct buffer *out)
{
	dump_flag("if-exists", keyspace->if_exists, out);
	dump_flag("if-not-exists", keyspace->if_not_exists, out);
	buffer_put_u8(out, ' ');
	dump_string(keyspace->name, out);
	dump_properties(&keyspace->properties, out);
}

static void
dump_create_table(const struct statement_create_table *create, struct buffer *out)
{
	dump_flag("if-not-exists", create->if_not_exists, out);
	dump_name(&create->name, out);
	dump_columns(&create->columns, out);
	dump_identifiers("partition", &create->partition_key, out);
	dump_identifiers("clustering", &create->clustering_key, out);
	dump_flag("compact", create->is_compact_storage, out);
	dump_clustering(create->clustering_order, create->clustering_order_count, out);
	dump_properties(&create->properties, out);
}

static void
dump_alter_table(const struct statement_alter_table *alter, struct buffer *out)
{
	static const char *const kinds[] = {
	    [AST_ALTER_TABLE_COLUMN_TYPE] = "type",
	    [AST_ALTER_TABLE_MASK] = "mask",
	    [AST_ALTER_TABLE_ADD] = "add",
	    [AST_ALTER_TABLE_DROP] = "drop",
	    [AST_ALTER_TABLE_RENAME] = "rename",
	    [AST_ALTER_TABLE_DROP_COMPACT_STORAGE] = "drop-compact-storage",
	    [AST_ALTER_TABLE_PROPERTIES] = "properties",
	};

	dump_flag("if-exists", alter->if_exists, out);
	dump_name(&alter->name, out);
	buffer_printf(out, " %s", kinds[alter->kind]);
	dump_flag("if-column-exists", alter->if_column_exists, out);
	dump_flag("if-column-not-exists", alter->if_column_not_exists, out);
	dump_columns(&alter->columns, out);
	dump_renames(alter->renames, alter->rename_count, out);
	if (alter->has_timestamp)
		buffer_printf(out, " timestamp %lld", (long long)alter->timestamp);
	dump_properties(&alter->properties, out);
}

static void
dump_alter_type(const struct statement_alter_type *alter, struct buffer *out)
{
	static const char *const kinds[] = {
	    [AST_ALTER_TYPE_FIELD_TYPE] = "type",
	    [AST_ALTER_TYPE_ADD] = "add",
	    [AST_ALTER_TYPE_RENAME] = "rename",
	};

	dump_flag("if-exists", alter->if_exists, out);
	dump_name(&alter->name, out);
	buffer_printf(out, " %s", kinds[alter->kind]);
	dump_flag("if-field-exists", alter->if_field_exists, out);
	dump_flag("if-field-not-exists", alter->if_field_not_exists, out);
	dump_columns(&alter->fields, out);
	dump_renames(alter->renames, alter->rename_count, out);
}

static void
dump_create_index(const struct statement_create_index *create, struct buffer *out)
{
	static const char *const kinds[] = {
	    [AST_INDEX_SIMPLE] = "",
	    [AST_INDEX_VALUES] = "values:",
	    [AST_INDEX_KEYS] = "keys:",
	    [AST_INDEX_ENTRIES] = "entries:",
	    [AST_INDEX_FULL] = "full:",
	};

	dump_flag("custom", create->is_custom, out);
	dump_flag("if-not-exists", create->if_not_exists, out);
	dump_name(&create->name, out);
	buffer_put_string(out, " on");
	dump_name(&create->table, out);
	for (size_t i = 0; i < create->target_count; i++) {
		buffer_printf(out, " %s", kinds[create->targets[i].kind]);
		dump_string(create->targets[i].column.text, out);
	}
	if (create->custom_class.text != NULL) {
		buffer_put_string(out, " using ");
		dump_string(create->custom_class, out);
	}
	dump_properties(&create->properties, out);
}

static void
dump_create_view(const struct statement_create_view *create, struct buffer *out)
{
	dump_flag("if-not-exists", create->if_not_exists, out);
	dump_name(&create->name, out);
	dump_flag("*", create->is_wildcard, out);
	if (!create->is_wildcard) {
		buffer_put_u8(out, ' ');
		dump_selectors('[', &create->selectors, ']', out);
	}
	buffer_put_string(out, " from");
	dump_name(&create->base, out);
	dump_where(&create->where, out);
	dump_identifiers("partition", &create->partition_key, out);
	dump_identifiers("clustering", &create->clustering_key, out);
	dump_clustering(create->clustering_order, create->clustering_order_count, out);
	dump_properties(&create->properties, out);
}

static void
dump_create_function(const struct statement_create_function *create, struct buffer *out)
{
	dump_flag("or-replace", create->or_replace, out);
	dump_flag("if-not-exists", create->if_not_exists, out);
	dump_name(&create->name, out);
	dump_identifiers("", &create->argument_names, out);
	dump_types(&create->argument_types, out);
	dump_flag("called-on-null", create->is_called_on_null, out);
	buffer_put_string(out, " returns ");
	ast_type_text(create->return_type, out);
	buffer_put_u8(out, ' ');
	dump_string(create->language, out);
	buffer_put_u8(out, ' ');
	dump_string(create->body, out);
}

static void
dump_create_aggregate(const struct statement_create_aggregate *create, struct buffer *out)
{
	dump_flag("or-replace", create->or_replace, out);
	dump_flag("if-not-exists", create->if_not_exists, out);
	dump_name(&create->name, out);
	dump_types(&create->argument_types, out);
	buffer_put_string(out, " sfunc ");
	dump_string(create->state_function, out);
	buffer_put_string(out, " stype ");
	ast_type_text(create->state_type, out);
	if (create->final_function.text != NULL) {
		buffer_put_string(out, " final ");
		dump_string(create->final_function, out);
	}
	dump_optional_term("init", create->initial_condition, out);
}

static void
dump_drop_function(const struct statement_drop_function *drop, struct buffer *out)
{
	dump_flag("if-exists", drop->if_exists, out);
	dump_name(&drop->name, out);
	if (drop->has_arguments)
		dump_types(&drop->argument_types, out);
}

static void
dump_trigger(const struct statement_trigger *trigger, struct buffer *out)
{
	dump_flag("if-exists", trigger->if_exists, out);
	dump_flag("if-not-exists", trigger->if_not_exists, out);
	buffer_put_u8(out, ' ');
	dump_string(trigger->name.text, out);
	dump_name(&trigger->table, out);
	buffer_put_u8(out, ' ');
	dump_string(trigger->trigger_class, out);
}

/* ---- Roles and permissions ---- */

static void
dump_tristate(const char *name, enum ast_tristate value, struct buffer *out)
{
	if (value != AST_UNSET)
		buffer_printf(out, " %s=%d", name, value);
}

static void
dump_access(const char *name, enum ast_access_kind kind, const struct ast_string *items,
    size_t count, struct buffer *out)
{
	if (kind == AST_ACCESS_UNSET)
		return;
	buffer_printf(out, " %s=%s", name, kind == AST_ACCESS_ALL ? "all" : "");
	for (size_t i = 0; i < count; i++) {
		buffer_put_string(out, i > 0 ? "," : "");
		dump_string(items[i], out);
	}
}

static void
dump_role(const struct statement *statement, struct buffer *out)
{
	const struct statement_role *role = &statement->role;

	dump_flag("user", role->is_user, out);
	dump_flag("if-exists", role->if_exists, out);
	dump_flag("if-not-exists", role->if_not_exists, out);
	buffer_put_u8(out, ' ');
	dump_string(role->name.text, out);
	if (statement->kind == STATEMENT_DROP_ROLE)
		return;
	if (role->password.text != NULL) {
		buffer_put_string(out, " password=");
		dump_string(role->password, out);
	}
	if (role->hashed_password.text != NULL) {
		buffer_put_string(out, " hashed=");
		dump_string(role->hashed_password, out);
	}
	dump_tristate("superuser", role->is_superuser, out);
	dump_tristate("login", role->is_login, out);
	if (role->has_options) {
		buffer_put_u8(out, ' ');
		dump_entries(role->options, role->option_count, out);
	}
	dump_access(
	    "datacenters", role->datacenter_access, role->datacenters, role->datacenter_count, out);
	dump_access("cidrs", role->cidr_access, role->cidrs, role->cidr_count, out);
}

static void
dump_grant(const struct statement_grant *grant, struct buffer *out)
{
	static const char *const permissions[] = {"create", "alter", "drop", "select", "modify",
	    "authorize", "describe", "execute", "unmask", "select_masked"};
	static const char *const resources[] = {
	    [AST_RESOURCE_NONE] = NULL,
	    [AST_RESOURCE_ALL_KEYSPACES] = "keyspaces",
	    [AST_RESOURCE_KEYSPACE] = "keyspace",
	    [AST_RESOURCE_ALL_TABLES_IN_KEYSPACE] = "tables-in",
	    [AST_RESOURCE_TABLE] = "table",
	    [AST_RESOURCE_ALL_ROLES] = "roles",
	    [AST_RESOURCE_ROLE] = "role",
	    [AST_RESOURCE_ALL_FUNCTIONS] = "functions",
	    [AST_RESOURCE_ALL_FUNCTIONS_IN_KEYSPACE] = "functions-in",
	    [AST_RESOURCE_FUNCTION] = "function",
	    [AST_RESOURCE_ALL_MBEANS] = "mbeans",
	    [AST_RESOURCE_MBEAN] = "mbean",
	    [AST_RESOURCE_MBEANS] = "mbeans-like",
	};

	for (size_t i = 0; i < sizeof(permissions) / sizeof(permissions[0]); i++)
		dump_flag(permissions[i], (grant->permissions >> i & 1) != 0, out);
	if (grant->resource.kind != AST_RESOURCE_NONE) {
		buffer_printf(out, " on %s", resources[grant->resource.kind]);
		dump_name(&grant->resource.name, out);
	}
	if (grant->resource.kind == AST_RESOURCE_FUNCTION)
		dump_types(&grant->resource.argument_types, out);
	if (grant->role.text.text != NULL) {
		buffer_put_string(out, " role ");
		dump_string(grant->role.text, out);
	}
	if (grant->grantee.text.text != NULL) {
		buffer_put_string(out, " grantee ");
		dump_string(grant->grantee.text, out);
	}
	dump_flag("recursive", grant->is_recursive, out);
}

static void
dump_identity(const struct statement_identity *identity, struct buffer *out)
{
	dump_flag("if-exists", identity->if_exists, out);
	dump_flag("if-not-exists", identity->if_not_exists, out);
	buffer_put_u8(out, ' ');
	dump_string(identity->identity, out);
	buffer_put_u8(out, ' ');
	dump_string(identity->role, out);
}

static void
dump_describe(const struct statement_describe *describe, struct buffer *out)
{
	static const char *const kinds[] = {
	    [AST_DESCRIBE_CLUSTER] = "cluster",
	    [AST_DESCRIBE_SCHEMA] = "schema",
	    [AST_DESCRIBE_KEYSPACES] = "keyspaces",
	    [AST_DESCRIBE_KEYSPACE] = "keyspace",
	    [AST_DESCRIBE_TABLES] = "tables",
	    [AST_DESCRIBE_TABLE] = "table",
	    [AST_DESCRIBE_INDEX] = "index",
	    [AST_DESCRIBE_VIEW] = "view",
	    [AST_DESCRIBE_TYPES] = "types",
	    [AST_DESCRIBE_TYPE] = "type",
	    [AST_DESCRIBE_FUNCTIONS] = "functions",
	    [AST_DESCRIBE_FUNCTION] = "function",
	    [AST_DESCRIBE_AGGREGATES] = "aggregates",
	    [AST_DESCRIBE_AGGREGATE] = "aggregate",
	    [AST_DESCRIBE_ANY] = "any",
	};

	buffer_printf(out, " %s", kinds[describe->kind]);
	dump_name(&describe->name, out);
	dump_flag("full", describe->is_full, out);
	dump_flag("only", describe->is_only, out);
	dump_flag("internals", describe->with_internals, out);
}

/* ---- Any statement ---- */

static void
dump_markers(const struct statement *statement, struct buffer *out)
{
	for (size_t i = 0; i < statement->marker_count; i++) {
		buffer_put_string(out, i == 0 ? " markers " : ",");
		dump_string(statement->markers[i].name, out);
		buffer_printf(
		    out, "@%u:%u", statement->markers[i].at.line, statement->markers[i].at.column);
	}
}

static void
dump_body(const struct statement *statement, struct buffer *out)
{
	switch (statement->kind) {
	case STATEMENT_SELECT:
		dump_select(&statement->select, out);
		break;
	case STATEMENT_INSERT:
		dump_insert(&statement->insert, out);
		break;
	case STATEMENT_UPDATE:
		dump_update(&statement->update, out);
		break;
	case STATEMENT_DELETE:
		dump_delete(&statement->delete, out);
		break;
	case STATEMENT_BATCH:
		dump_batch(&statement->batch, out);
		break;
	case STATEMENT_USE:
		buffer_put_u8(out, ' ');
		dump_string(statement->use, out);
		break;
	case STATEMENT_TRUNCATE:
	case STATEMENT_DROP_TABLE:
	case STATEMENT_DROP_TYPE:
	case STATEMENT_DROP_INDEX:
	case STATEMENT_DROP_VIEW:
		dump_flag("if-exists", statement->drop.if_exists, out);
		dump_name(&statement->drop.name, out);
		break;
	case STATEMENT_CREATE_KEYSPACE:
	case STATEMENT_ALTER_KEYSPACE:
	case STATEMENT_DROP_KEYSPACE:
		dump_keyspace(&statement->keyspace, out);
		break;
	case STATEMENT_CREATE_TABLE:
		dump_create_table(&statement->create_table, out);
		break;
	case STATEMENT_ALTER_TABLE:
		dump_alter_table(&statement->alter_table, out);
		break;
	case STATEMENT_CREATE_TYPE:
		dump_flag("if-not-exists", statement->create_type.if_not_exists, out);
		dump_name(&statement->create_type.name, out);
		dump_columns(&statement->create_type.fields, out);
		break;
	case STATEMENT_ALTER_TYPE:
		dump_alter_type(&statement->alter_type, out);
		break;
	case STATEMENT_CREATE_INDEX:
		dump_create_index(&statement->create_index, out);
		break;
	case STATEMENT_CREATE_VIEW:
		dump_create_view(&statement->create_view, out);
		break;
	case STATEMENT_ALTER_VIEW:
		dump_flag("if-exists", statement->alter_view.if_exists, out);
		dump_name(&statement->alter_view.name, out);
		dump_properties(&statement->alter_view.properties, out);
		break;
	case STATEMENT_CREATE_FUNCTION:
		dump_create_function(&statement->create_function, out);
		break;
	case STATEMENT_CREATE_AGGREGATE:
		dump_create_aggregate(&statement->create_aggregate, out);
		break;
	case STATEMENT_DROP_FUNCTION:
	case STATEMENT_DROP_AGGREGATE:
		dump_drop_function(&statement->drop_function, out);
		break;
	case STATEMENT_CREATE_TRIGGER:
	case STATEMENT_DROP_TRIGGER:
		dump_trigger(&statement->trigger, out);
		break;
	case STATEMENT_CREATE_ROLE:
	case STATEMENT_ALTER_ROLE:
	case STATEMENT_DROP_ROLE:
		dump_role(statement, out);
		break;
	case STATEMENT_GRANT_ROLE:
	case STATEMENT_REVOKE_ROLE:
	case STATEMENT_GRANT_PERMISSIONS:
	case STATEMENT_REVOKE_PERMISSIONS:
	case STATEMENT_LIST_PERMISSIONS:
	case STATEMENT_LIST_ROLES:
	case STATEMENT_LIST_USERS:
	case STATEMENT_LIST_SUPERUSERS:
		dump_grant(&statement->grant, out);
		break;
	case STATEMENT_ADD_IDENTITY:
	case STATEMENT_DROP_IDENTITY:
		dump_identity(&statement->identity, out);
		break;
	case STATEMENT_DESCRIBE:
		dump_describe(&statement->describe, out);
		break;
	}
}

void
parser_dump(const struct statement *statement, struct buffer *out)
{
	buffer_put_string(out, statement_kind_name(statement->kind));
	dump_body(statement, out);
	dump_markers(statement, out);
}
