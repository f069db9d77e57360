/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/parser_snippet.h"

#include <stdio.h>
#include <string.h>

enum {
	SNIPPET_TOKENS_BEFORE = 10,
	SNIPPET_TOKENS_BEHIND = 2,
};

/* The bytes between the quotes, and which character is doubled there (0: none). */
static struct slice
snippet_content(const char *text, const struct lexer_token *token, char *quote)
{
	const char *start = text + token->start;
	size_t size = token->end - token->start;

	*quote = '\0';
	if (token->type == TOKEN_STRING && *start == '$')
		return slice_of(start + 2, size - 4);
	if (token->type == TOKEN_STRING || token->type == TOKEN_QUOTED_NAME) {
		*quote = *start;
		return slice_of(start + 1, size - 2);
	}
	return slice_of(start, size);
}

void
snippet_token_text(const char *text, const struct lexer_token *token, char *out, size_t size)
{
	char quote;
	struct slice content = snippet_content(text, token, &quote);
	size_t used = 0;

	for (size_t i = 0; i < content.size && used + 3 < size; i++) {
		char c = (char)content.data[i];

		if (c == '\n' || c == '\r' || c == '\t') {
			out[used++] = '\\';
			c = (char)(c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
		}
		out[used++] = c;
		i += quote != '\0' && c == quote;
	}
	/* Do not end inside a character. */
	if (used + 3 >= size)
		while (used > 0 && (out[used - 1] & 0xc0) == 0x80)
			used--;
	out[used] = '\0';
}

/* UTF-16 units of the text that snippet_token_text() would show uncut. */
static uint32_t
snippet_token_length(const char *text, const struct lexer_token *token)
{
	char quote;
	struct slice content = snippet_content(text, token, &quote);
	uint32_t units = lexer_utf16_length((const char *)content.data, (uint32_t)content.size);

	for (size_t i = 0; quote != '\0' && i < content.size; i++) {
		if ((char)content.data[i] == quote) {
			units--;
			i++;
		}
	}
	return units;
}

/* The byte `units` UTF-16 units behind `at`, but not beyond the line's end. */
static uint32_t
snippet_forward(struct slice text, uint32_t at, uint32_t units)
{
	while (at < text.size && text.data[at] != '\n' && units > 0) {
		uint8_t c = text.data[at++];

		units -= c >= 0xf0 && units > 1 ? 2 : 1;
		while (at < text.size && (text.data[at] & 0xc0) == 0x80)
			at++;
	}
	return at;
}

struct snippet_output {
	char *text;
	size_t used;
	size_t room;
};

static void
snippet_put(struct snippet_output *output, char c)
{
	if (output->used + 1 < output->room)
		output->text[output->used++] = c;
}

static void
snippet_puts(struct snippet_output *output, const char *string)
{
	while (*string != '\0')
		snippet_put(output, *string++);
}

/* The token ends where the statement does, by Cassandra's reckoning in lines and columns. */
static bool
snippet_is_end(struct slice text, const struct lexer_token *token, uint32_t length)
{
	uint32_t size = (uint32_t)text.size, start, lines = 1;

	while (size > 0 && text.data[size - 1] == '\n')
		size--;
	start = size;
	while (start > 0 && text.data[start - 1] != '\n')
		start--;
	for (uint32_t i = 0; i < size; i++)
		lines += text.data[i] == '\n';
	return token->line == lines &&
	    token->column + length ==
	    lexer_utf16_length((const char *)text.data + start, size - start);
}

void
snippet_append(struct slice text, uint32_t marked, uint32_t last, struct error *err)
{
	uint32_t first = marked > SNIPPET_TOKENS_BEFORE ? marked - SNIPPET_TOKENS_BEFORE : 0;
	struct lexer_token from = {0}, mark = {0}, to = {0}, token;
	const char *bytes = (const char *)text.data;
	struct snippet_output output;
	uint32_t mark_end, end;
	struct lexer lexer;

	if (err == NULL)
		return;
	if (last > marked + SNIPPET_TOKENS_BEHIND)
		last = marked + SNIPPET_TOKENS_BEHIND;
	lexer_init(&lexer, text);
	do {
		lexer_next(&lexer, &token);
		if (token.ordinal == first)
			from = token;
		if (token.ordinal == marked)
			mark = token;
		to = token;
	} while (token.type != TOKEN_EOF && token.type != TOKEN_ERROR && token.ordinal < last);
	if (to.line == 0 || mark.line == 0 || from.line == 0)
		return;
	mark_end = snippet_forward(text, mark.start, snippet_token_length(bytes, &mark));
	end = snippet_forward(text, to.start, snippet_token_length(bytes, &to));
	output = (struct snippet_output){err->text, strlen(err->text), sizeof(err->text)};
	snippet_puts(&output, from.line == 1 && from.column == 0 ? " (" : " (...");
	for (uint32_t i = from.start; i <= end; i++) {
		if (i == mark.start)
			snippet_put(&output, '[');
		if (i == mark_end)
			snippet_put(&output, ']');
		if (i < end && text.data[i] != '\n')
			snippet_put(&output, bytes[i]);
	}
	if (!snippet_is_end(text, &to, snippet_token_length(bytes, &to)))
		snippet_puts(&output, "...");
	snippet_put(&output, ')');
	/* A cut text ends between characters. */
	if (output.used + 1 == output.room)
		while (output.used > 0 && (output.text[output.used - 1] & 0xc0) == 0x80)
			output.used--;
	output.text[output.used] = '\0';
}
