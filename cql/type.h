/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_TYPE_H
#define HELENUS_CQL_TYPE_H

/*
 * CQL types: what Cassandra's AbstractType does. A type is immutable and read by any thread.
 *
 * Ownership: native types are static constants (type_int() and so on live for ever). Every other
 * type lies in the arena that the caller gave when it was made, and points only to types of the
 * same arena or to static ones; whoever keeps a type longer copies it with type_copy() into its own
 * arena (a table_metadata does so for its columns). Two types are the same when type_equal() says
 * so; pointers are equal for native types only.
 *
 * Values are bytes in the serialised form that the native protocol, the commit log and SSTables
 * share. Collections, tuples and user types use the form of protocol v3 and later: int32 counts and
 * int32 lengths (-1 is null).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"

enum type_kind {
	TYPE_ASCII,
	TYPE_BIGINT,
	TYPE_BLOB,
	TYPE_BOOLEAN,
	TYPE_COUNTER,
	TYPE_DATE,
	TYPE_DECIMAL,
	TYPE_DOUBLE,
	TYPE_DURATION,
	TYPE_EMPTY, /* EmptyType: always zero bytes */
	TYPE_FLOAT,
	TYPE_INET,
	TYPE_INT,
	TYPE_SMALLINT,
	TYPE_TEXT, /* varchar is the same */
	TYPE_TIME,
	TYPE_TIMESTAMP,
	TYPE_TIMEUUID,
	TYPE_TINYINT,
	TYPE_UUID,
	TYPE_VARINT,
	/* From here on a type has parameters or a name. */
	TYPE_NATIVE_COUNT,
	TYPE_LIST = TYPE_NATIVE_COUNT, /* params[0] */
	TYPE_SET, /* params[0] */
	TYPE_MAP, /* params[0] key, params[1] value */
	TYPE_TUPLE, /* params[0..param_count) */
	TYPE_UDT, /* params[] types of the fields, fields[] their names */
	TYPE_VECTOR, /* params[0], dimension */
	TYPE_REVERSED, /* params[0]; only out of type_parse_class(): see type_unreversed() */
	TYPE_COMPOSITE, /* params[]; CompositeType: a composite partition key as SSTables name it */
	TYPE_CUSTOM, /* class_name; compared as bytes */
};

struct type {
	enum type_kind kind;
	/* Lists, sets, maps, user types: not frozen, each element is a cell of its own. Always false
	 * for the others (a tuple is always frozen). */
	bool is_multi_cell;
	/* True when something inside is a user type (DROP TYPE, ALTER TYPE ask). */
	bool has_udt;
	/* Bytes of every value that is not empty, as AbstractType.valueLengthIfFixed says: the row
	 * codec writes no length for these. -1: variable. Note that smallint, tinyint, date, time and
	 * counter are variable. */
	int32_t fixed_length;
	uint32_t param_count;
	uint32_t dimension; /* TYPE_VECTOR */
	const struct type *const *params; /* param_count of them */
	const struct slice *fields; /* TYPE_UDT: param_count names, exact case, not null */
	struct slice keyspace; /* TYPE_UDT */
	struct slice name; /* TYPE_UDT: its name; TYPE_CUSTOM: class name with package */
};

enum {
	TYPE_PARAMS_MAX = 8192, /* fields of a tuple or user type */
	TYPE_DEPTH_MAX = 32, /* nesting that the parsers accept */
	TYPE_DIMENSION_MAX = 8192, /* vector */
};

/* The static native type; kind < TYPE_NATIVE_COUNT. */
const struct type *type_native(enum type_kind kind);

/*
 * Constructors. All return NULL only without memory. The parameters are borrowed by the new type
 * (they must live as long as `arena`); slices and arrays are copied.
 */
const struct type *type_list(struct arena *arena, const struct type *element, bool is_multi_cell);
const struct type *type_set(struct arena *arena, const struct type *element, bool is_multi_cell);
const struct type *
type_map(struct arena *arena, const struct type *key, const struct type *value, bool is_multi_cell);
const struct type *
type_tuple(struct arena *arena, const struct type *const *params, uint32_t count);
const struct type *
type_udt(struct arena *arena, struct slice keyspace, struct slice name, const struct slice *fields,
    const struct type *const *params, uint32_t count, bool is_multi_cell);
const struct type *type_vector(struct arena *arena, const struct type *element, uint32_t dimension);
const struct type *type_reversed(struct arena *arena, const struct type *base);
const struct type *
type_composite(struct arena *arena, const struct type *const *params, uint32_t count);
const struct type *type_custom(struct arena *arena, struct slice class_name);
/* Deep copy; native types are returned as they are. NULL without memory. */
const struct type *type_copy(struct arena *arena, const struct type *type);
/* The same type, frozen through and through (AbstractType.freeze); itself when already frozen. */
const struct type *type_freeze(struct arena *arena, const struct type *type);
/* The same type, multi-cell at the top (collections and user types; others as they are). */
const struct type *type_unfreeze(struct arena *arena, const struct type *type);
/* The type under ReversedType, and whether there was one. */
const struct type *type_unreversed(const struct type *type, bool *is_reversed);
/* `type` with every user type of this keyspace and name replaced by `udt` (ALTER TYPE), frozen or
 * not as the place was; `type` itself when it has none. */
const struct type *
type_replace_udt(struct arena *arena, const struct type *type, const struct type *udt);

/* Same structure, names and frozenness. */
bool type_equal(const struct type *a, const struct type *b);
/* True when the type is, or has inside, the user type. */
bool type_uses_udt(const struct type *type, struct slice keyspace, struct slice name);

static inline bool
type_is_collection(const struct type *type)
{
	return type->kind == TYPE_LIST || type->kind == TYPE_SET || type->kind == TYPE_MAP;
}

/* Tuples and user types. */
static inline bool
type_is_tuple(const struct type *type)
{
	return type->kind == TYPE_TUPLE || type->kind == TYPE_UDT;
}

/* True when values have an order, so that the type may be a key or clustering column: no duration,
 * no counter, no multi-cell type, and nothing of them inside. */
bool type_is_comparable(const struct type *type);
/* True when something inside is a duration / a counter (DDL checks). */
bool type_references_duration(const struct type *type);
bool type_references_counter(const struct type *type);
/* True when zero-length values are values of this type (TY-27). */
bool type_allows_empty(const struct type *type);
/* int, bigint, smallint, tinyint, varint, float, double, decimal, counter. */
bool type_is_numeric(const struct type *type);

/* bytes of every non-empty value, or -1 (AbstractType.valueLengthIfFixed). */
static inline int32_t
type_fixed_length(const struct type *type)
{
	return type->fixed_length;
}

/* AbstractType.isValueCompatibleWith: bytes written as `previous` may be read as `type` (re-adding
 * a dropped column; order may differ). */
bool type_is_value_compatible(const struct type *type, const struct type *previous);
/* AbstractType.isCompatibleWith: the same bytes and the same order. */
bool type_is_compatible(const struct type *type, const struct type *previous);

/*
 * Multi-cell columns. The path of a cell is a timeuuid for lists, the element for sets, the key for
 * maps, and the position of the field (smallint) for user types; the value is the element, nothing
 * (TYPE_EMPTY), the value, the field. NULL when the type is not multi-cell, or a user type has no
 * such field.
 */
const struct type *type_cell_path(const struct type *type);
const struct type *type_cell_value(const struct type *type, struct slice path);
/* Position of a field of a user type, or -1. */
int type_field_index(const struct type *type, struct slice field);

/* ---- Parsing and printing ------------------------------------------------------------------ */

/*
 * Finds a user type. keyspace.data == NULL: the name had no keyspace. Returns the type (multi-cell
 * form or frozen, the parser makes it what the text says) or NULL when there is none, leaving *err
 * alone. It must live as long as the arena of the parse.
 */
typedef const struct type *(*type_resolve_udt_fn)(
    void *user, struct slice keyspace, struct slice name);

/*
 * "map<text, frozen<list<int>>>" as CQL writes types: any case, quoted names, 'class' in single
 * quotes. resolve NULL: a user type is an error. Errors ERROR_SYNTAX (grammar) and ERROR_INVALID
 * with Cassandra's text ("Unknown type ks.x", "Non-frozen collections are not allowed inside
 * collections: list<list<int>>", ...).
 */
int type_parse_cql(struct slice text, type_resolve_udt_fn resolve, void *user, struct arena *arena,
    const struct type **out, struct error *err);

/*
 * "org.apache.cassandra.db.marshal.ReversedType(org...Int32Type)" as SSTables, custom types and
 * the protocol write them; the package may be missing. A name that Cassandra has no class for is
 * ERROR_CONFIG "Unable to find abstract-type class '...'"; wrong syntax ERROR_SYNTAX.
 */
int type_parse_class(
    struct slice text, struct arena *arena, const struct type **out, struct error *err);

/* The CQL name, "frozen<...>" where it is frozen and could be otherwise (AbstractType.asCQL3Type
 * .toString()). Appended without NUL. */
void type_print_cql(const struct type *type, struct buffer *out);
/* The class name with package (AbstractType.toString()). */
void type_print_class(const struct type *type, struct buffer *out);
/* The CQL name as a C string in the arena (error texts); "?" without memory. */
const char *type_name(struct arena *arena, const struct type *type);

/* The option id of the native protocol (TY-01): 0 for what travels as a custom class. From `version`
 * 5 on duration is 0x15; before it is custom. */
uint16_t type_protocol_id(const struct type *type, int version);

/* ---- Values -------------------------------------------------------------------------------- */

/*
 * Whether bytes are a value of the type (AbstractType.validate), never null. A multi-cell type is
 * validated in its frozen form. ERROR_INVALID with the text of Cassandra's MarshalException, such as
 * "Expected 4 or 0 byte int (3)".
 */
int type_validate(const struct type *type, struct slice value, struct error *err);

/* AbstractType.compare: <0, 0, >0. Null values are not allowed; what is not valid is compared
 * somehow but never reads past its end. */
int type_compare(const struct type *type, struct slice a, struct slice b);

/*
 * Append the byte-comparable form: memcmp order of two forms is type_compare() order of the values,
 * values that compare equal have equal forms, and no form is a prefix of another, so that the forms
 * of several components can be concatenated. With is_reversed the order is turned around. Null has
 * no form: callers put a separator byte of their own in front of each component.
 *
 *   text, ascii, blob, inet, custom   00 -> 00 FF, end 00 00
 *   boolean                           empty 00, false 01, true 02
 *   every type of a fixed form        empty 00, else 01 and fixed bytes in order (sign flipped)
 *   varint                            empty 00, else sign and length, minimal bytes
 *   decimal                           empty 00, else sign, exponent, decimal digits
 *   list, set, map, tuple, udt        empty 00, else 01, elements (02 and form, null 01), end 00
 *   reversed                          every byte inverted
 *
 * A value that is not valid has a form too (its order is then unspecified). Memory failures stay in
 * the buffer.
 */
void type_to_comparable(
    const struct type *type, bool is_reversed, struct slice value, struct buffer *out);
/*
 * A value back from its form at `reader`, which is moved behind it. The value compares equal to the one that the
 * form was made of, and need not have its bytes (1.0 and 1.00). Its memory is the arena's. ERROR_PROTOCOL: no
 * such form.
 */
int type_from_comparable(const struct type *type, bool is_reversed, struct reader *reader,
    struct arena *arena, struct slice *out, struct error *err);
/* Bytes from which type_to_comparable() surely does not grow the buffer (hint for reserve). */
size_t type_comparable_size_max(const struct type *type, struct slice value);

/*
 * Elements of a collection, tuple, user type or vector. For maps keys and values alternate. A null
 * element comes back as the null slice. The slices point into the value.
 */
struct type_iterator {
	const struct type *type;
	struct reader reader;
	uint32_t index; /* of the next element; in maps 2 * pair (+ 1 for the value) */
	uint32_t count; /* collections: elements, maps: 2 * pairs; tuples, vectors: of the type */
	bool is_failed; /* a length does not fit: the value is not valid */
};

void
type_iterator_init(struct type_iterator *iterator, const struct type *type, struct slice value);
/* False at the end or on failure (is_failed). A tuple that is shorter than its type ends early.
 * *element_type may be NULL. */
bool type_iterator_next(
    struct type_iterator *iterator, struct slice *element, const struct type **element_type);
/* Elements (pairs for maps) of a serialised collection, without looking at them; -1 if too short. */
int32_t type_collection_size(struct slice value);

/*
 * Pack elements into the serialised form: list and set: the elements; map: 2 * count slices, key
 * and value; tuple and user type: `count` fields (null slices are null, fewer than the type has are
 * allowed); vector: dimension elements. The caller gives sets sorted and without doubles: see
 * type_sort_elements(). Null slice on no memory.
 */
struct slice type_pack(
    const struct type *type, const struct slice *elements, uint32_t count, struct arena *arena);
/* Sort the elements of a set (width 1) or the pairs of a map (width 2) by their first member and
 * drop doubles (the first key, the last value stays). Returns the new count (elements or pairs). */
uint32_t type_sort_elements(
    const struct type *element_type, struct slice *elements, uint32_t count, uint32_t width);

#endif
