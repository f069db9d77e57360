/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/lexer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct lexer_keyword_entry {
	const char *word;
	uint8_t length;
	uint8_t kind; /* enum lexer_word */
};

/* In the order of the enum: index 0 is the token after TOKEN_HIDDEN. */
static const struct lexer_keyword_entry lexer_keywords[] = {
#define LEXER_ENTRY(name, word, kind) {word, sizeof(word) - 1, kind},
    LEXER_KEYWORDS(LEXER_ENTRY)
#undef LEXER_ENTRY
};

enum {
	LEXER_KEYWORD_FIRST = TOKEN_HIDDEN + 1,
	LEXER_KEYWORD_COUNT = sizeof(lexer_keywords) / sizeof(lexer_keywords[0]),
	LEXER_KEYWORD_LENGTH_MAX = 14,
};

static const char *const lexer_names[TOKEN_TYPE_COUNT] = {
    [TOKEN_EOF] = "EOF",
    [TOKEN_ERROR] = "<invalid>",
    [TOKEN_HIDDEN] = "WS",
#define LEXER_NAME(name, word, kind) [K_##name] = "K_" #name,
    LEXER_KEYWORDS(LEXER_NAME)
#undef LEXER_NAME
	[K_NEGATIVE_NAN] = "K_NEGATIVE_NAN",
    [K_NEGATIVE_INFINITY] = "K_NEGATIVE_INFINITY",
    [TOKEN_IDENT] = "IDENT",
    [TOKEN_QUOTED_NAME] = "QUOTED_NAME",
    [TOKEN_EMPTY_QUOTED_NAME] = "EMPTY_QUOTED_NAME",
    [TOKEN_STRING] = "STRING_LITERAL",
    [TOKEN_INTEGER] = "INTEGER",
    [TOKEN_FLOAT] = "FLOAT",
    [TOKEN_BOOLEAN] = "BOOLEAN",
    [TOKEN_DURATION] = "DURATION",
    [TOKEN_UUID] = "UUID",
    [TOKEN_HEX] = "HEXNUMBER",
    [TOKEN_QMARK] = "QMARK",
    [TOKEN_RANGE] = "RANGE",
    [TOKEN_NOT_EQUAL] = "'!='",
    [TOKEN_PERCENT] = "'%'",
    [TOKEN_OPEN] = "'('",
    [TOKEN_CLOSE] = "')'",
    [TOKEN_PLUS] = "'+'",
    [TOKEN_PLUS_EQUAL] = "'+='",
    [TOKEN_COMMA] = "','",
    [TOKEN_MINUS] = "'-'",
    [TOKEN_MINUS_EQUAL] = "'-='",
    [TOKEN_DOT] = "'.'",
    [TOKEN_SLASH] = "'/'",
    [TOKEN_COLON] = "':'",
    [TOKEN_SEMICOLON] = "';'",
    [TOKEN_LESS] = "'<'",
    [TOKEN_LESS_EQUAL] = "'<='",
    [TOKEN_EQUAL] = "'='",
    [TOKEN_GREATER] = "'>'",
    [TOKEN_GREATER_EQUAL] = "'>='",
    [TOKEN_OPEN_BRACKET] = "'['",
    [TOKEN_CLOSE_BRACKET] = "']'",
    [TOKEN_STAR] = "'\\*'",
    [TOKEN_EXPR] = "'expr('",
    [TOKEN_OPEN_BRACE] = "'{'",
    [TOKEN_CLOSE_BRACE] = "'}'",
};

enum {
	LEXER_LETTER = 1,
	LEXER_DIGIT = 2,
	LEXER_HEX = 4,
	LEXER_WORD = 8, /* letter, digit, _ */
	LEXER_BLANK = 16,
};

static unsigned
lexer_class(unsigned char c)
{
	unsigned class = 0;

	if (c >= '0' && c <= '9')
		class |= LEXER_DIGIT | LEXER_HEX | LEXER_WORD;
	else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		class |= LEXER_LETTER | LEXER_WORD | ((c | 32) <= 'f' ? LEXER_HEX : 0);
	else if (c == '_')
		class |= LEXER_WORD;
	else if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
		class |= LEXER_BLANK;
	return class;
}

const char *
lexer_token_name(enum lexer_token_type type)
{
	assert((unsigned)type < TOKEN_TYPE_COUNT);
	return lexer_names[type];
}

enum lexer_word
lexer_word_kind(enum lexer_token_type type)
{
	unsigned index = (unsigned)type - LEXER_KEYWORD_FIRST;

	return index < LEXER_KEYWORD_COUNT ? lexer_keywords[index].kind : LEXER_RESERVED;
}

enum lexer_token_type
lexer_keyword(const char *word, size_t length)
{
	char folded[LEXER_KEYWORD_LENGTH_MAX];
	unsigned low = 0, high = LEXER_KEYWORD_COUNT;

	if (length < 2 || length > LEXER_KEYWORD_LENGTH_MAX)
		return TOKEN_IDENT;
	for (size_t i = 0; i < length; i++) {
		if (!(lexer_class((unsigned char)word[i]) & LEXER_LETTER))
			return TOKEN_IDENT;
		folded[i] = (char)(word[i] | 32);
	}
	while (low < high) {
		unsigned middle = (low + high) / 2;
		const struct lexer_keyword_entry *entry = &lexer_keywords[middle];
		int order = folded[0] - entry->word[0];

		if (order == 0) {
			size_t shorter = length < entry->length ? length : entry->length;

			order = memcmp(folded, entry->word, shorter);
			if (order == 0)
				order = (int)length - (int)entry->length;
		}
		if (order == 0)
			return LEXER_KEYWORD_FIRST + middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return TOKEN_IDENT;
}

uint32_t
lexer_utf16_length(const char *text, uint32_t size)
{
	uint32_t units = 0;

	for (uint32_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		/* Bytes that go on a character add nothing; four-byte ones make a pair. */
		units += (c & 0xc0) != 0x80;
		units += c >= 0xf0;
	}
	return units;
}

void
lexer_init(struct lexer *lexer, struct slice text)
{
	assert(text.size < INT32_MAX);
	memset(lexer, 0, sizeof(*lexer));
	lexer->text = (const char *)text.data;
	lexer->size = (uint32_t)text.size;
	lexer->line = 1;
}

/* The byte at `at`; -1 beyond the end. */
static inline int
lexer_peek(const struct lexer *lexer, uint32_t at)
{
	return at < lexer->size ? (unsigned char)lexer->text[at] : -1;
}

static inline unsigned
lexer_peek_class(const struct lexer *lexer, uint32_t at)
{
	return at < lexer->size ? lexer_class((unsigned char)lexer->text[at]) : 0;
}

/* As lexer_peek(), letters in lower case. */
static inline int
lexer_peek_folded(const struct lexer *lexer, uint32_t at)
{
	int c = lexer_peek(lexer, at);

	return c >= 'A' && c <= 'Z' ? c | 32 : c;
}

/* Move over bytes that may hold line ends and characters beyond ASCII. */
static void
lexer_advance(struct lexer *lexer, uint32_t to)
{
	for (uint32_t i = lexer->at; i < to; i++) {
		unsigned char c = (unsigned char)lexer->text[i];

		if (c == '\n') {
			lexer->line++;
			lexer->line_start = i + 1;
			lexer->line_extra = 0;
		} else if (c >= 0x80) {
			lexer->line_extra += (c & 0xc0) == 0x80;
			lexer->line_extra -= c >= 0xf0;
		}
	}
	lexer->at = to;
}

/* "'x'" of the character at the lexer's place, as ANTLR shows characters. */
static void
lexer_show_character(const struct lexer *lexer, char out[16])
{
	int c = lexer_peek(lexer, lexer->at);
	uint32_t size = 1;

	if (c < 0) {
		strcpy(out, "'<EOF>'");
		return;
	}
	if (c == '\n' || c == '\r' || c == '\t') {
		snprintf(out, 16, "'\\%c'", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
		return;
	}
	if (c >= 0xf0 || (c & 0xc0) == 0x80) {
		strcpy(out, "'?'"); /* half a surrogate pair has no UTF-8 */
		return;
	}
	while (c >= 0xc0 && size < 3 && (lexer_peek(lexer, lexer->at + size) & 0xc0) == 0x80)
		size++;
	snprintf(out, 16, "'%.*s'", (int)size, lexer->text + lexer->at);
}

/* Stop at byte `at`. expected: NULL for "no viable alternative". */
static int
lexer_fail(struct lexer *lexer, uint32_t at, const char *expected)
{
	char shown[16];

	lexer_advance(lexer, at);
	lexer_show_character(lexer, shown);
	if (expected == NULL)
		snprintf(lexer->problem, sizeof(lexer->problem),
		    "no viable alternative at character %s", shown);
	else
		snprintf(lexer->problem, sizeof(lexer->problem),
		    "mismatched character %s expecting %s", shown, expected);
	lexer->problem_line = lexer->line;
	lexer->problem_column = at - lexer->line_start - lexer->line_extra;
	return TOKEN_ERROR;
}

static const char lexer_any_of[] = "set null";

/* -- or // to the end of the line, which belongs to it and must be there. */
static int
lexer_line_comment(struct lexer *lexer)
{
	uint32_t at = lexer->at + 2;

	while (at < lexer->size && lexer->text[at] != '\n' && lexer->text[at] != '\r')
		at++;
	if (at == lexer->size)
		return lexer_fail(lexer, at, lexer_any_of);
	lexer_advance(lexer, at + 1);
	return TOKEN_HIDDEN;
}

static int
lexer_block_comment(struct lexer *lexer)
{
	uint32_t at = lexer->at + 2;

	while (at + 1 < lexer->size && !(lexer->text[at] == '*' && lexer->text[at + 1] == '/'))
		at++;
	if (at + 1 >= lexer->size)
		return lexer_fail(lexer, lexer->size, "'*'");
	lexer_advance(lexer, at + 2);
	return TOKEN_HIDDEN;
}

static int
lexer_string(struct lexer *lexer)
{
	uint32_t at = lexer->at + 1;

	for (;;) {
		const char *quote = memchr(lexer->text + at, '\'', lexer->size - at);

		if (quote == NULL)
			return lexer_fail(lexer, lexer->size, "'''");
		at = (uint32_t)(quote - lexer->text) + 1;
		if (lexer_peek(lexer, at) != '\'')
			break;
		at++;
	}
	lexer_advance(lexer, at);
	return TOKEN_STRING;
}

static int
lexer_dollar_string(struct lexer *lexer)
{
	uint32_t at = lexer->at + 1;

	if (lexer_peek(lexer, at) != '$')
		return lexer_fail(lexer, at, "'$'");
	at++;
	while (at + 1 < lexer->size && !(lexer->text[at] == '$' && lexer->text[at + 1] == '$'))
		at++;
	/* Without an end, the last character is where the end should have begun. */
	while (at < lexer->size && (lexer->text[at] & 0xc0) == 0x80)
		at--;
	for (int i = 0; i < 2; i++, at++)
		if (lexer_peek(lexer, at) != '$') {
			lexer_fail(lexer, at, "'$'");
			lexer->problem_column += lexer_peek(lexer, at) >= 0xf0;
			return TOKEN_ERROR;
		}
	lexer_advance(lexer, at);
	return TOKEN_STRING;
}

static int
lexer_quoted_name(struct lexer *lexer)
{
	uint32_t at = lexer->at + 1;

	if (lexer_peek(lexer, at) == '"' && lexer_peek(lexer, at + 1) != '"') {
		lexer_advance(lexer, at + 1);
		return TOKEN_EMPTY_QUOTED_NAME;
	}
	if (at == lexer->size)
		return lexer_fail(lexer, at, NULL);
	for (;;) {
		const char *quote = memchr(lexer->text + at, '"', lexer->size - at);

		if (quote == NULL)
			return lexer_fail(lexer, lexer->size, "'\"'");
		at = (uint32_t)(quote - lexer->text) + 1;
		if (lexer_peek(lexer, at) != '"')
			break;
		at++;
	}
	lexer_advance(lexer, at);
	return TOKEN_QUOTED_NAME;
}

/* 8-4-4-4-12 hex digits; only called once nothing else can come of it. */
static int
lexer_uuid(struct lexer *lexer)
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	uint32_t at = lexer->at;

	for (const char *expected = shape; *expected != '\0'; expected++, at++) {
		if (*expected == '-') {
			if (lexer_peek(lexer, at) != '-')
				return lexer_fail(lexer, at, "'-'");
		} else if (!(lexer_peek_class(lexer, at) & LEXER_HEX)) {
			return lexer_fail(lexer, at, lexer_any_of);
		}
	}
	lexer->at = at;
	return TOKEN_UUID;
}

/* Eight hex digits and a minus stand here: then it is a UUID or nothing. */
static bool
lexer_is_uuid(const struct lexer *lexer)
{
	uint32_t at = lexer->at;

	while (at < lexer->at + 8 && (lexer_peek_class(lexer, at) & LEXER_HEX))
		at++;
	return at == lexer->at + 8 && lexer_peek(lexer, at) == '-';
}

static uint32_t
lexer_skip_digits(const struct lexer *lexer, uint32_t at)
{
	while (lexer_peek_class(lexer, at) & LEXER_DIGIT)
		at++;
	return at;
}

/* Length of the duration unit at `at`; 0: none begins here; -1: one begins but does not end. */
static int
lexer_duration_unit(const struct lexer *lexer, uint32_t at)
{
	int next = lexer_peek_folded(lexer, at + 1);

	switch (lexer_peek_folded(lexer, at)) {
	case 'y':
	case 'w':
	case 'd':
	case 'h':
	case 's':
		return 1;
	case 'm':
		return next == 'o' || next == 's' ? 2 : 1;
	case 'u':
	case 'n':
		return next == 's' ? 2 : -1;
	case 0xc2: /* the micro sign, U+00B5 */
		if (next != 0xb5)
			return 0;
		return lexer_peek_folded(lexer, at + 2) == 's' ? 3 : -1;
	default:
		return 0;
	}
}

/* 1y2mo3d: `at` is behind the first digits, where a unit begins. */
static int
lexer_duration(struct lexer *lexer, uint32_t at)
{
	for (;;) {
		int unit = lexer_duration_unit(lexer, at);

		if (unit == 0)
			return lexer_fail(lexer, at, NULL);
		if (unit < 0)
			return lexer_fail(
			    lexer, at + (lexer_peek(lexer, at) == 0xc2 ? 2 : 1), lexer_any_of);
		at += (uint32_t)unit;
		if (!(lexer_peek_class(lexer, at) & LEXER_DIGIT))
			break;
		at = lexer_skip_digits(lexer, at);
	}
	lexer_advance(lexer, at);
	return TOKEN_DURATION;
}

/* 1e and no digit. Where a UUID was possible until now, the choice itself fails. */
static int
lexer_no_exponent(struct lexer *lexer, uint32_t at, bool may_be_uuid)
{
	char shown[16];

	lexer_fail(lexer, at, NULL);
	if (may_be_uuid)
		return TOKEN_ERROR;
	lexer_show_character(lexer, shown);
	snprintf(lexer->problem, sizeof(lexer->problem),
	    "required (...)+ loop did not match anything at character %s", shown);
	return TOKEN_ERROR;
}

/* Behind the digits of a number: .5 and e-3. */
static int
lexer_fraction(struct lexer *lexer, uint32_t at, bool may_be_uuid)
{
	int type = TOKEN_INTEGER;

	if (lexer_peek(lexer, at) == '.') {
		if (lexer_peek(lexer, at + 1) == '.' && lexer_peek(lexer, at + 2) != '.') {
			lexer->at = at; /* 1..2 is a range */
			return TOKEN_INTEGER;
		}
		type = TOKEN_FLOAT;
		may_be_uuid = false;
		at = lexer_skip_digits(lexer, at + 1);
	}
	if (lexer_peek_folded(lexer, at) == 'e') {
		uint32_t digits = at + 1;

		type = TOKEN_FLOAT;
		if (lexer_peek(lexer, digits) == '+' || lexer_peek(lexer, digits) == '-') {
			may_be_uuid = false;
			digits++;
		}
		at = lexer_skip_digits(lexer, digits);
		if (at == digits)
			return lexer_no_exponent(lexer, at, may_be_uuid);
	}
	lexer->at = at;
	return type;
}

/*
 * Digits stand here. A hex digit that no other number goes on with leaves a UUID as the only choice:
 * 1a, but not 1d (a duration) or 1e5 (a float).
 */
static bool
lexer_is_uuid_start(const struct lexer *lexer)
{
	bool is_plain = true, is_after_digit = false, is_exponent = false;

	for (uint32_t at = lexer->at; at < lexer->at + 8; at++) {
		int c = lexer_peek_folded(lexer, at);

		if (c >= '0' && c <= '9') {
			is_after_digit = true;
			continue;
		}
		if (!(lexer_peek_class(lexer, at) & LEXER_HEX))
			return false;
		if (c == 'e' && is_plain && is_after_digit)
			is_exponent = true;
		else if (c != 'd' || !is_after_digit || is_exponent)
			return true;
		is_plain = false;
		is_after_digit = false;
	}
	return false;
}

static int
lexer_number(struct lexer *lexer)
{
	bool is_negative = lexer->text[lexer->at] == '-';
	uint32_t first = lexer->at + is_negative;
	uint32_t at = lexer_skip_digits(lexer, first);
	int next = lexer_peek_folded(lexer, at);

	if (!is_negative) {
		if (at == first + 1 && lexer->text[first] == '0' && next == 'x') {
			for (at++; lexer_peek_class(lexer, at) & LEXER_HEX; at++)
				;
			lexer->at = at;
			return TOKEN_HEX;
		}
		if (lexer_is_uuid(lexer))
			return lexer_uuid(lexer);
		if (lexer_is_uuid_start(lexer))
			return lexer_uuid(lexer);
	}
	if (lexer_duration_unit(lexer, at) != 0)
		return lexer_duration(lexer, at);
	return lexer_fraction(lexer, at, !is_negative && at - first < 8);
}

/* Digits and one of `units`, in their order, each at most once; returns the end, `at` if none. */
static uint32_t
lexer_iso_fields(const struct lexer *lexer, uint32_t at, const char *units)
{
	for (;;) {
		uint32_t behind = lexer_skip_digits(lexer, at);
		const char *unit;

		if (behind == at || behind >= lexer->size || lexer->text[behind] == '\0')
			return at;
		unit = strchr(units, lexer->text[behind]);
		if (unit == NULL)
			return at;
		units = unit + 1;
		at = behind + 1;
	}
}

/*
 * The end of an ISO 8601 duration whose P stands at `at`, or 0. Its letters are upper case only.
 * PT alone, or with a field out of order, is none.
 */
static uint32_t
lexer_iso_duration(const struct lexer *lexer, uint32_t at)
{
	uint32_t period = lexer_iso_fields(lexer, ++at, "YMD");
	uint32_t end;

	if (period == at) {
		end = lexer_iso_fields(lexer, at, "W");
		if (end != at)
			return end;
	}
	if (lexer_peek(lexer, period) != 'T')
		return period == at ? 0 : period;
	end = lexer_iso_fields(lexer, period + 1, "HMS");
	if (end == period + 1)
		return period == at ? 0 : period;
	return end;
}

/* P2021-01-02T03:04:05, once P2021- has been seen. */
static int
lexer_iso_moment(struct lexer *lexer, uint32_t at)
{
	static const char shape[] = "P0000-00-00T00:00:00";

	for (const char *expected = shape; *expected != '\0'; expected++, at++) {
		char wanted[4] = {'\'', *expected, '\'', '\0'};

		if (*expected == '0') {
			if (!(lexer_peek_class(lexer, at) & LEXER_DIGIT))
				return lexer_fail(lexer, at, lexer_any_of);
		} else if (lexer_peek(lexer, at) != *expected) {
			return lexer_fail(lexer, at, wanted);
		}
	}
	lexer->at = at;
	return TOKEN_DURATION;
}

static bool
lexer_is_iso_moment(const struct lexer *lexer, uint32_t at)
{
	return lexer_skip_digits(lexer, at + 1) == at + 5 && lexer_peek(lexer, at + 5) == '-';
}

static int
lexer_word(struct lexer *lexer)
{
	uint32_t start = lexer->at, at = start + 1;
	const char *text = lexer->text;
	uint32_t end;
	size_t length;

	if ((lexer_class((unsigned char)text[start]) & LEXER_HEX) && lexer_is_uuid(lexer))
		return lexer_uuid(lexer);
	if (text[start] == 'P' && lexer_is_iso_moment(lexer, start))
		return lexer_iso_moment(lexer, start);
	while (at < lexer->size && (lexer_class((unsigned char)text[at]) & LEXER_WORD))
		at++;
	lexer->at = at;
	length = at - start;
	if (text[start] == 'P' && length > 2) {
		end = lexer_iso_duration(lexer, start);
		if (end == at)
			return TOKEN_DURATION;
	}
	if (length == 4 && memcmp(text + start, "expr", 4) == 0 && lexer_peek(lexer, at) == '(') {
		lexer->at++;
		return TOKEN_EXPR;
	}
	if (length == 4 && (text[start] | 32) == 't' && (text[start + 1] | 32) == 'r' &&
	    (text[start + 2] | 32) == 'u' && (text[start + 3] | 32) == 'e')
		return TOKEN_BOOLEAN;
	if (length == 5 && (text[start] | 32) == 'f' && (text[start + 1] | 32) == 'a' &&
	    (text[start + 2] | 32) == 'l' && (text[start + 3] | 32) == 's' &&
	    (text[start + 4] | 32) == 'e')
		return TOKEN_BOOLEAN;
	switch (lexer_keyword(text + start, length)) {
	case K_TABLE: /* one token to the grammar and to error texts */
		return K_COLUMNFAMILY;
	case K_COLUMNFAMILIES:
		return K_TABLES;
	default:
		return lexer_keyword(text + start, length);
	}
}

static int
lexer_negative_word(struct lexer *lexer, const char *word, int type)
{
	uint32_t at = lexer->at + 1;

	for (; *word != '\0'; word++, at++)
		if (lexer_peek_folded(lexer, at) != *word)
			return lexer_fail(lexer, at, lexer_any_of);
	lexer->at = at;
	return type;
}

static int
lexer_minus(struct lexer *lexer)
{
	int next = lexer_peek(lexer, lexer->at + 1);
	uint32_t end;

	switch (next) {
	case '-':
		return lexer_line_comment(lexer);
	case '=':
		lexer->at += 2;
		return TOKEN_MINUS_EQUAL;
	case 'n':
	case 'N':
		return lexer_negative_word(lexer, "nan", K_NEGATIVE_NAN);
	case 'i':
	case 'I':
		return lexer_negative_word(lexer, "infinity", K_NEGATIVE_INFINITY);
	case 'P':
		if (lexer_is_iso_moment(lexer, lexer->at + 1))
			return lexer_iso_moment(lexer, lexer->at + 1);
		end = lexer_iso_duration(lexer, lexer->at + 1);
		if (end == 0) {
			end = lexer->at + 2;
			end += lexer_peek(lexer, end) == 'T';
			return lexer_fail(lexer, lexer_skip_digits(lexer, end), NULL);
		}
		lexer->at = end;
		return TOKEN_DURATION;
	default:
		if (next >= '0' && next <= '9')
			return lexer_number(lexer);
		lexer->at++;
		return TOKEN_MINUS;
	}
}

/* A mark of one character, or of two when `second` follows. */
static int
lexer_mark(struct lexer *lexer, int one, char second, int two)
{
	if (lexer_peek(lexer, lexer->at + 1) == second) {
		lexer->at += 2;
		return two;
	}
	lexer->at++;
	return one;
}

static int
lexer_single(struct lexer *lexer, int type)
{
	lexer->at++;
	return type;
}

static int
lexer_cut(struct lexer *lexer)
{
	unsigned char c = (unsigned char)lexer->text[lexer->at];
	unsigned class = lexer_class(c);
	uint32_t at;

	if (class & LEXER_BLANK) {
		for (at = lexer->at + 1; lexer_peek_class(lexer, at) & LEXER_BLANK; at++)
			;
		lexer_advance(lexer, at);
		return TOKEN_HIDDEN;
	}
	if (class & LEXER_LETTER)
		return lexer_word(lexer);
	if (class & LEXER_DIGIT)
		return lexer_number(lexer);
	switch (c) {
	case '\'':
		return lexer_string(lexer);
	case '"':
		return lexer_quoted_name(lexer);
	case '$':
		return lexer_dollar_string(lexer);
	case '-':
		return lexer_minus(lexer);
	case '/':
		if (lexer_peek(lexer, lexer->at + 1) == '/')
			return lexer_line_comment(lexer);
		if (lexer_peek(lexer, lexer->at + 1) == '*')
			return lexer_block_comment(lexer);
		return lexer_single(lexer, TOKEN_SLASH);
	case '!':
		if (lexer_peek(lexer, lexer->at + 1) != '=')
			return lexer_fail(lexer, lexer->at + 1, "'='");
		return lexer_mark(lexer, TOKEN_NOT_EQUAL, '=', TOKEN_NOT_EQUAL);
	case '+':
		return lexer_mark(lexer, TOKEN_PLUS, '=', TOKEN_PLUS_EQUAL);
	case '<':
		return lexer_mark(lexer, TOKEN_LESS, '=', TOKEN_LESS_EQUAL);
	case '>':
		return lexer_mark(lexer, TOKEN_GREATER, '=', TOKEN_GREATER_EQUAL);
	case '.':
		return lexer_mark(lexer, TOKEN_DOT, '.', TOKEN_RANGE);
	case '?':
		return lexer_single(lexer, TOKEN_QMARK);
	case '%':
		return lexer_single(lexer, TOKEN_PERCENT);
	case '(':
		return lexer_single(lexer, TOKEN_OPEN);
	case ')':
		return lexer_single(lexer, TOKEN_CLOSE);
	case ',':
		return lexer_single(lexer, TOKEN_COMMA);
	case ':':
		return lexer_single(lexer, TOKEN_COLON);
	case ';':
		return lexer_single(lexer, TOKEN_SEMICOLON);
	case '=':
		return lexer_single(lexer, TOKEN_EQUAL);
	case '[':
		return lexer_single(lexer, TOKEN_OPEN_BRACKET);
	case ']':
		return lexer_single(lexer, TOKEN_CLOSE_BRACKET);
	case '*':
		return lexer_single(lexer, TOKEN_STAR);
	case '{':
		return lexer_single(lexer, TOKEN_OPEN_BRACE);
	case '}':
		return lexer_single(lexer, TOKEN_CLOSE_BRACE);
	default:
		return lexer_fail(lexer, lexer->at, NULL);
	}
}

void
lexer_next(struct lexer *lexer, struct lexer_token *out)
{
	uint32_t at = lexer->at;

	out->start = at;
	out->line = lexer->line;
	out->column = at - lexer->line_start - lexer->line_extra;
	out->ordinal = lexer->ordinal;
	if (lexer->problem[0] != '\0') {
		out->type = TOKEN_ERROR;
	} else if (at == lexer->size) {
		out->type = TOKEN_EOF;
		out->line = 0;
	} else {
		out->type = (uint8_t)lexer_cut(lexer);
		lexer->ordinal++;
	}
	out->end = lexer->at;
}
