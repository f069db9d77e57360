/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CQL text of any kind, parsed as a statement, a type, a term and a WHERE clause: it is answered
 * with a tree or with an error of the parser's own, within memory that the text's size bounds; the
 * trees can be walked and shown.
 */
#include <assert.h>
#include <string.h>
#include "cql/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_check(int rc, const struct error *err, const struct arena *arena, size_t size)
{
	if (rc != 0) {
		assert(err->code == ERROR_SYNTAX || err->code == ERROR_INVALID ||
		    err->code == ERROR_NO_MEMORY);
		assert(err->text[0] != '\0');
		assert(memchr(err->text, '\0', sizeof(err->text)) != NULL);
	}
	assert(arena->total_bytes <= (1 << 16) + size * 4096);
}

static void
fuzz_where(const struct statement *statement, const struct ast_where *where, struct buffer *text)
{
	for (size_t i = 0; i < where->count; i++) {
		buffer_clear(text);
		ast_relation_text(statement, where->items[i], text);
	}
}

static void
fuzz_statement(const struct statement *statement, struct buffer *text)
{
	assert(statement_kind_name(statement->kind) != NULL);
	for (size_t i = 0; i < statement->marker_count; i++)
		assert(statement->markers[i].at.line > 0);
	switch (statement->kind) {
	case STATEMENT_SELECT:
		fuzz_where(statement, &statement->select.where, text);
		break;
	case STATEMENT_UPDATE:
		fuzz_where(statement, &statement->update.where, text);
		break;
	case STATEMENT_INSERT:
		for (size_t i = 0; i < statement->insert.values.count; i++) {
			buffer_clear(text);
			ast_term_text(statement, statement->insert.values.items[i], text);
		}
		break;
	default:
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = slice_of(data, size);
	struct statement *statement;
	struct ast_where where;
	struct ast_type *type;
	struct ast_term *term;
	struct buffer text;
	struct arena arena;
	struct error err;
	int rc;

	if (size > 1 << 16)
		return 0;
	arena_init(&arena, 4096);
	buffer_init(&text);
	rc = cql_parse(input, &arena, &statement, &err);
	fuzz_check(rc, &err, &arena, size);
	if (rc == 0)
		fuzz_statement(statement, &text);
	rc = cql_parse_type(input, &arena, &type, &err);
	fuzz_check(rc, &err, &arena, size);
	if (rc == 0)
		ast_type_text(type, &text);
	rc = cql_parse_term(input, &arena, &term, &err);
	fuzz_check(rc, &err, &arena, size);
	if (rc == 0)
		ast_term_text(NULL, term, &text);
	rc = cql_parse_where(input, &arena, &where, &err);
	fuzz_check(rc, &err, &arena, size);
	if (rc == 0)
		fuzz_where(NULL, &where, &text);
	buffer_clear(&text);
	cql_quote_identifier(input, &text);
	buffer_fini(&text);
	arena_fini(&arena);
	return 0;
}
