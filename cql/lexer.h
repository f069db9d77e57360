/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_LEXER_H
#define HELENUS_CQL_LEXER_H

/*
 * Cuts CQL text into tokens, with the choices (and the quirks) of the lexer Cassandra generates from
 * Lexer.g, because its error texts tell of tokens: `-n` begins -NaN and nothing else, eight hex
 * digits and a minus begin a UUID, a comment to the end of a line needs that end.
 *
 * The lexer allocates nothing and copies nothing; a token is a range of the text. It has no state
 * but the struct, so any number may run.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"

/* What a keyword may be beside a keyword. */
enum lexer_word {
	LEXER_RESERVED, /* never an identifier */
	LEXER_UNRESERVED, /* any identifier, a function's or a type's name too */
	LEXER_TYPE, /* a native type; an identifier and a function's name */
	LEXER_COLUMN, /* an identifier, but no function's name */
};

/*
 * Every keyword of 4.1.8, sorted by its word. Words that came with 5.0 (vector, masked, ann, ...) are
 * identifiers which the parser looks at where they matter, so that 4.1's texts stay 4.1's.
 */
#define LEXER_KEYWORDS(X)                                                                          \
	X(ACCESS, "access", LEXER_UNRESERVED)                                                      \
	X(ADD, "add", LEXER_RESERVED)                                                              \
	X(AGGREGATE, "aggregate", LEXER_UNRESERVED)                                                \
	X(AGGREGATES, "aggregates", LEXER_UNRESERVED)                                              \
	X(ALL, "all", LEXER_UNRESERVED)                                                            \
	X(ALLOW, "allow", LEXER_RESERVED)                                                          \
	X(ALTER, "alter", LEXER_RESERVED)                                                          \
	X(AND, "and", LEXER_RESERVED)                                                              \
	X(APPLY, "apply", LEXER_RESERVED)                                                          \
	X(AS, "as", LEXER_UNRESERVED)                                                              \
	X(ASC, "asc", LEXER_RESERVED)                                                              \
	X(ASCII, "ascii", LEXER_TYPE)                                                              \
	X(AUTHORIZE, "authorize", LEXER_RESERVED)                                                  \
	X(BATCH, "batch", LEXER_RESERVED)                                                          \
	X(BEGIN, "begin", LEXER_RESERVED)                                                          \
	X(BIGINT, "bigint", LEXER_TYPE)                                                            \
	X(BLOB, "blob", LEXER_TYPE)                                                                \
	X(BOOLEAN, "boolean", LEXER_TYPE)                                                          \
	X(BY, "by", LEXER_RESERVED)                                                                \
	X(CALLED, "called", LEXER_UNRESERVED)                                                      \
	X(CAST, "cast", LEXER_COLUMN)                                                              \
	X(CLUSTER, "cluster", LEXER_UNRESERVED)                                                    \
	X(CLUSTERING, "clustering", LEXER_UNRESERVED)                                              \
	X(COLUMNFAMILIES, "columnfamilies", LEXER_UNRESERVED)                                      \
	X(COLUMNFAMILY, "columnfamily", LEXER_RESERVED)                                            \
	X(COMPACT, "compact", LEXER_UNRESERVED)                                                    \
	X(CONTAINS, "contains", LEXER_UNRESERVED)                                                  \
	X(COUNT, "count", LEXER_COLUMN)                                                            \
	X(COUNTER, "counter", LEXER_TYPE)                                                          \
	X(CREATE, "create", LEXER_RESERVED)                                                        \
	X(CUSTOM, "custom", LEXER_UNRESERVED)                                                      \
	X(DATACENTERS, "datacenters", LEXER_UNRESERVED)                                            \
	X(DATE, "date", LEXER_TYPE)                                                                \
	X(DECIMAL, "decimal", LEXER_TYPE)                                                          \
	X(DEFAULT, "default", LEXER_UNRESERVED)                                                    \
	X(DELETE, "delete", LEXER_RESERVED)                                                        \
	X(DESC, "desc", LEXER_RESERVED)                                                            \
	X(DESCRIBE, "describe", LEXER_RESERVED)                                                    \
	X(DISTINCT, "distinct", LEXER_COLUMN)                                                      \
	X(DOUBLE, "double", LEXER_TYPE)                                                            \
	X(DROP, "drop", LEXER_RESERVED)                                                            \
	X(DURATION, "duration", LEXER_TYPE)                                                        \
	X(ENTRIES, "entries", LEXER_RESERVED)                                                      \
	X(EXECUTE, "execute", LEXER_RESERVED)                                                      \
	X(EXISTS, "exists", LEXER_UNRESERVED)                                                      \
	X(FILTERING, "filtering", LEXER_UNRESERVED)                                                \
	X(FINALFUNC, "finalfunc", LEXER_UNRESERVED)                                                \
	X(FLOAT, "float", LEXER_TYPE)                                                              \
	X(FROM, "from", LEXER_RESERVED)                                                            \
	X(FROZEN, "frozen", LEXER_UNRESERVED)                                                      \
	X(FULL, "full", LEXER_RESERVED)                                                            \
	X(FUNCTION, "function", LEXER_UNRESERVED)                                                  \
	X(FUNCTIONS, "functions", LEXER_UNRESERVED)                                                \
	X(GRANT, "grant", LEXER_RESERVED)                                                          \
	X(GROUP, "group", LEXER_UNRESERVED)                                                        \
	X(HASHED, "hashed", LEXER_UNRESERVED)                                                      \
	X(IF, "if", LEXER_RESERVED)                                                                \
	X(IN, "in", LEXER_RESERVED)                                                                \
	X(INDEX, "index", LEXER_RESERVED)                                                          \
	X(INET, "inet", LEXER_TYPE)                                                                \
	X(POSITIVE_INFINITY, "infinity", LEXER_RESERVED)                                           \
	X(INITCOND, "initcond", LEXER_UNRESERVED)                                                  \
	X(INPUT, "input", LEXER_UNRESERVED)                                                        \
	X(INSERT, "insert", LEXER_RESERVED)                                                        \
	X(INT, "int", LEXER_TYPE)                                                                  \
	X(INTERNALS, "internals", LEXER_UNRESERVED)                                                \
	X(INTO, "into", LEXER_RESERVED)                                                            \
	X(IS, "is", LEXER_RESERVED)                                                                \
	X(JSON, "json", LEXER_COLUMN)                                                              \
	X(KEY, "key", LEXER_COLUMN)                                                                \
	X(KEYS, "keys", LEXER_UNRESERVED)                                                          \
	X(KEYSPACE, "keyspace", LEXER_RESERVED)                                                    \
	X(KEYSPACES, "keyspaces", LEXER_UNRESERVED)                                                \
	X(LANGUAGE, "language", LEXER_UNRESERVED)                                                  \
	X(LIKE, "like", LEXER_UNRESERVED)                                                          \
	X(LIMIT, "limit", LEXER_RESERVED)                                                          \
	X(LIST, "list", LEXER_UNRESERVED)                                                          \
	X(LOGIN, "login", LEXER_UNRESERVED)                                                        \
	X(MAP, "map", LEXER_UNRESERVED)                                                            \
	X(MATERIALIZED, "materialized", LEXER_RESERVED)                                            \
	X(MBEAN, "mbean", LEXER_UNRESERVED)                                                        \
	X(MBEANS, "mbeans", LEXER_UNRESERVED)                                                      \
	X(MODIFY, "modify", LEXER_RESERVED)                                                        \
	X(POSITIVE_NAN, "nan", LEXER_RESERVED)                                                     \
	X(NOLOGIN, "nologin", LEXER_UNRESERVED)                                                    \
	X(NORECURSIVE, "norecursive", LEXER_RESERVED)                                              \
	X(NOSUPERUSER, "nosuperuser", LEXER_UNRESERVED)                                            \
	X(NOT, "not", LEXER_RESERVED)                                                              \
	X(NULL, "null", LEXER_RESERVED)                                                            \
	X(OF, "of", LEXER_RESERVED)                                                                \
	X(ON, "on", LEXER_RESERVED)                                                                \
	X(ONLY, "only", LEXER_UNRESERVED)                                                          \
	X(OPTIONS, "options", LEXER_UNRESERVED)                                                    \
	X(OR, "or", LEXER_RESERVED)                                                                \
	X(ORDER, "order", LEXER_RESERVED)                                                          \
	X(PARTITION, "partition", LEXER_UNRESERVED)                                                \
	X(PASSWORD, "password", LEXER_UNRESERVED)                                                  \
	X(PER, "per", LEXER_UNRESERVED)                                                            \
	X(PERMISSION, "permission", LEXER_UNRESERVED)                                              \
	X(PERMISSIONS, "permissions", LEXER_UNRESERVED)                                            \
	X(PRIMARY, "primary", LEXER_RESERVED)                                                      \
	X(RENAME, "rename", LEXER_RESERVED)                                                        \
	X(REPLACE, "replace", LEXER_UNRESERVED)                                                    \
	X(RETURNS, "returns", LEXER_UNRESERVED)                                                    \
	X(REVOKE, "revoke", LEXER_RESERVED)                                                        \
	X(ROLE, "role", LEXER_UNRESERVED)                                                          \
	X(ROLES, "roles", LEXER_UNRESERVED)                                                        \
	X(SCHEMA, "schema", LEXER_RESERVED)                                                        \
	X(SELECT, "select", LEXER_RESERVED)                                                        \
	X(SET, "set", LEXER_RESERVED)                                                              \
	X(SFUNC, "sfunc", LEXER_UNRESERVED)                                                        \
	X(SMALLINT, "smallint", LEXER_TYPE)                                                        \
	X(STATIC, "static", LEXER_UNRESERVED)                                                      \
	X(STORAGE, "storage", LEXER_UNRESERVED)                                                    \
	X(STYPE, "stype", LEXER_UNRESERVED)                                                        \
	X(SUPERUSER, "superuser", LEXER_UNRESERVED)                                                \
	X(TABLE, "table", LEXER_RESERVED)                                                          \
	X(TABLES, "tables", LEXER_UNRESERVED)                                                      \
	X(TEXT, "text", LEXER_TYPE)                                                                \
	X(TIME, "time", LEXER_TYPE)                                                                \
	X(TIMESTAMP, "timestamp", LEXER_TYPE)                                                      \
	X(TIMEUUID, "timeuuid", LEXER_TYPE)                                                        \
	X(TINYINT, "tinyint", LEXER_TYPE)                                                          \
	X(TO, "to", LEXER_RESERVED)                                                                \
	X(TOKEN, "token", LEXER_RESERVED)                                                          \
	X(TRIGGER, "trigger", LEXER_UNRESERVED)                                                    \
	X(TRUNCATE, "truncate", LEXER_RESERVED)                                                    \
	X(TTL, "ttl", LEXER_COLUMN)                                                                \
	X(TUPLE, "tuple", LEXER_UNRESERVED)                                                        \
	X(TYPE, "type", LEXER_UNRESERVED)                                                          \
	X(TYPES, "types", LEXER_UNRESERVED)                                                        \
	X(UNLOGGED, "unlogged", LEXER_RESERVED)                                                    \
	X(UNSET, "unset", LEXER_UNRESERVED)                                                        \
	X(UPDATE, "update", LEXER_RESERVED)                                                        \
	X(USE, "use", LEXER_RESERVED)                                                              \
	X(USER, "user", LEXER_UNRESERVED)                                                          \
	X(USERS, "users", LEXER_UNRESERVED)                                                        \
	X(USING, "using", LEXER_RESERVED)                                                          \
	X(UUID, "uuid", LEXER_TYPE)                                                                \
	X(VALUES, "values", LEXER_UNRESERVED)                                                      \
	X(VARCHAR, "varchar", LEXER_TYPE)                                                          \
	X(VARINT, "varint", LEXER_TYPE)                                                            \
	X(VIEW, "view", LEXER_RESERVED)                                                            \
	X(WHERE, "where", LEXER_RESERVED)                                                          \
	X(WITH, "with", LEXER_RESERVED)                                                            \
	X(WRITETIME, "writetime", LEXER_COLUMN)

enum lexer_token_type {
	TOKEN_EOF,
	TOKEN_ERROR, /* the text cannot be cut further; see struct lexer */
	TOKEN_HIDDEN, /* blanks or a comment */

#define LEXER_ENUM(name, word, kind) K_##name,
	LEXER_KEYWORDS(LEXER_ENUM)
#undef LEXER_ENUM
	    K_NEGATIVE_NAN,
	K_NEGATIVE_INFINITY,

	TOKEN_IDENT,
	TOKEN_QUOTED_NAME,
	TOKEN_EMPTY_QUOTED_NAME,
	TOKEN_STRING,
	TOKEN_INTEGER,
	TOKEN_FLOAT,
	TOKEN_BOOLEAN,
	TOKEN_DURATION,
	TOKEN_UUID,
	TOKEN_HEX,
	TOKEN_QMARK,
	TOKEN_RANGE, /* .. */
	TOKEN_NOT_EQUAL,
	TOKEN_PERCENT,
	TOKEN_OPEN, /* ( */
	TOKEN_CLOSE,
	TOKEN_PLUS,
	TOKEN_PLUS_EQUAL,
	TOKEN_COMMA,
	TOKEN_MINUS,
	TOKEN_MINUS_EQUAL,
	TOKEN_DOT,
	TOKEN_SLASH,
	TOKEN_COLON,
	TOKEN_SEMICOLON,
	TOKEN_LESS,
	TOKEN_LESS_EQUAL,
	TOKEN_EQUAL,
	TOKEN_GREATER,
	TOKEN_GREATER_EQUAL,
	TOKEN_OPEN_BRACKET, /* [ */
	TOKEN_CLOSE_BRACKET,
	TOKEN_STAR,
	TOKEN_EXPR, /* expr( in one piece, lower case: a custom index expression */
	TOKEN_OPEN_BRACE,
	TOKEN_CLOSE_BRACE,

	TOKEN_TYPE_COUNT,
};

struct lexer_token {
	uint32_t start; /* bytes of the text */
	uint32_t end;
	uint32_t line; /* from 1; 0 for TOKEN_EOF, as the tokens of ANTLR have it */
	uint32_t column; /* from 0, UTF-16 units */
	uint32_t ordinal; /* from 0, hidden tokens counted */
	uint8_t type; /* enum lexer_token_type */
};

struct lexer {
	const char *text; /* borrowed */
	uint32_t size;
	uint32_t at;
	uint32_t line;
	uint32_t line_start; /* byte where the line begins */
	uint32_t line_extra; /* bytes of this line, before `at`, beyond its UTF-16 units */
	uint32_t ordinal;

	/* After TOKEN_ERROR: Cassandra's words, such as "mismatched character 'x' expecting '$'". */
	char problem[96];
	uint32_t problem_line;
	uint32_t problem_column;
};

/* `text` stays the caller's and must be shorter than 2 GiB. */
void lexer_init(struct lexer *lexer, struct slice text);

/* The next token, hidden ones too. After TOKEN_EOF or TOKEN_ERROR comes the same again. */
void lexer_next(struct lexer *lexer, struct lexer_token *out);

/* "K_FROM", "')'", "IDENT", "EOF": as in "expecting ...". Static string. */
const char *lexer_token_name(enum lexer_token_type type);

/* What a keyword's token may be beside a keyword; LEXER_RESERVED for all that is no keyword. */
enum lexer_word lexer_word_kind(enum lexer_token_type type);

/* The keyword's token, or TOKEN_IDENT. Any case. */
enum lexer_token_type lexer_keyword(const char *word, size_t length);

/* UTF-16 units of UTF-8 bytes: what Java's String.length() counts. */
uint32_t lexer_utf16_length(const char *text, uint32_t size);

#endif
