/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types as objects: the native ones, the constructors, and the questions that only need the
 * structure.
 */
#include <assert.h>
#include "cql/type.h"
#include "cql/type_internal.h"

struct type_native_info {
	const char *cql;
	const char *class_name;
	int32_t fixed_length;
	bool allows_empty;
	bool is_numeric;
	uint16_t protocol_id;
	uint8_t protocol_since;
};

/* One row a native type. Fixed lengths are Cassandra 4.1's valueLengthIfFixed: smallint, tinyint,
 * date, time and counter never got one, and SSTables depend on it. */
static const struct type_native_info type_natives_info[TYPE_NATIVE_COUNT] = {
    [TYPE_ASCII] = {"ascii", "AsciiType", -1, true, false, 0x01, 3},
    [TYPE_BIGINT] = {"bigint", "LongType", 8, true, true, 0x02, 3},
    [TYPE_BLOB] = {"blob", "BytesType", -1, true, false, 0x03, 3},
    [TYPE_BOOLEAN] = {"boolean", "BooleanType", 1, true, false, 0x04, 3},
    [TYPE_COUNTER] = {"counter", "CounterColumnType", -1, true, true, 0x05, 3},
    [TYPE_DATE] = {"date", "SimpleDateType", -1, false, false, 0x11, 4},
    [TYPE_DECIMAL] = {"decimal", "DecimalType", -1, true, true, 0x06, 3},
    [TYPE_DOUBLE] = {"double", "DoubleType", 8, true, true, 0x07, 3},
    [TYPE_DURATION] = {"duration", "DurationType", -1, false, false, 0x15, 5},
    [TYPE_EMPTY] = {"empty", "EmptyType", 0, true, false, 0x00, 3},
    [TYPE_FLOAT] = {"float", "FloatType", 4, true, true, 0x08, 3},
    [TYPE_INET] = {"inet", "InetAddressType", -1, true, false, 0x10, 3},
    [TYPE_INT] = {"int", "Int32Type", 4, true, true, 0x09, 3},
    [TYPE_SMALLINT] = {"smallint", "ShortType", -1, false, true, 0x13, 4},
    [TYPE_TEXT] = {"text", "UTF8Type", -1, true, false, 0x0d, 3},
    [TYPE_TIME] = {"time", "TimeType", -1, false, false, 0x12, 4},
    [TYPE_TIMESTAMP] = {"timestamp", "TimestampType", 8, true, false, 0x0b, 3},
    [TYPE_TIMEUUID] = {"timeuuid", "TimeUUIDType", 16, true, false, 0x0f, 3},
    [TYPE_TINYINT] = {"tinyint", "ByteType", -1, false, true, 0x14, 4},
    [TYPE_UUID] = {"uuid", "UUIDType", 16, true, false, 0x0c, 3},
    [TYPE_VARINT] = {"varint", "IntegerType", -1, true, true, 0x0e, 3},
};

#define TYPE_NATIVE(which, length) [which] = {.kind = which, .fixed_length = length}
static const struct type type_natives[TYPE_NATIVE_COUNT] = {
    TYPE_NATIVE(TYPE_ASCII, -1),
    TYPE_NATIVE(TYPE_BIGINT, 8),
    TYPE_NATIVE(TYPE_BLOB, -1),
    TYPE_NATIVE(TYPE_BOOLEAN, 1),
    TYPE_NATIVE(TYPE_COUNTER, -1),
    TYPE_NATIVE(TYPE_DATE, -1),
    TYPE_NATIVE(TYPE_DECIMAL, -1),
    TYPE_NATIVE(TYPE_DOUBLE, 8),
    TYPE_NATIVE(TYPE_DURATION, -1),
    TYPE_NATIVE(TYPE_EMPTY, 0),
    TYPE_NATIVE(TYPE_FLOAT, 4),
    TYPE_NATIVE(TYPE_INET, -1),
    TYPE_NATIVE(TYPE_INT, 4),
    TYPE_NATIVE(TYPE_SMALLINT, -1),
    TYPE_NATIVE(TYPE_TEXT, -1),
    TYPE_NATIVE(TYPE_TIME, -1),
    TYPE_NATIVE(TYPE_TIMESTAMP, 8),
    TYPE_NATIVE(TYPE_TIMEUUID, 16),
    TYPE_NATIVE(TYPE_TINYINT, -1),
    TYPE_NATIVE(TYPE_UUID, 16),
    TYPE_NATIVE(TYPE_VARINT, -1),
};

static const char *const type_param_classes[] = {
    [0] = "ListType",
    [TYPE_SET - TYPE_LIST] = "SetType",
    [TYPE_MAP - TYPE_LIST] = "MapType",
    [TYPE_TUPLE - TYPE_LIST] = "TupleType",
    [TYPE_UDT - TYPE_LIST] = "UserType",
    [TYPE_VECTOR - TYPE_LIST] = "VectorType",
    [TYPE_REVERSED - TYPE_LIST] = "ReversedType",
    [TYPE_COMPOSITE - TYPE_LIST] = "CompositeType",
    [TYPE_CUSTOM - TYPE_LIST] = NULL,
};

const struct type *
type_native(enum type_kind kind)
{
	assert(kind < TYPE_NATIVE_COUNT);
	return &type_natives[kind];
}

const char *
type_class_of(enum type_kind kind)
{
	return kind < TYPE_NATIVE_COUNT ? type_natives_info[kind].class_name
					: type_param_classes[kind - TYPE_LIST];
}

const char *
type_cql_of(enum type_kind kind)
{
	return kind < TYPE_NATIVE_COUNT ? type_natives_info[kind].cql : NULL;
}

/* A type of `count` parameters, copied from `params`. */
static struct type *
type_new(struct arena *arena, enum type_kind kind, const struct type *const *params, uint32_t count)
{
	struct type *type = arena_zalloc(arena, sizeof(*type));
	const struct type **copy = arena_calloc(arena, count, sizeof(*copy));
	uint32_t i;

	if (type == NULL || copy == NULL)
		return NULL;
	type->kind = kind;
	type->fixed_length = -1;
	type->param_count = count;
	type->params = copy;
	for (i = 0; i < count; i++) {
		if (params[i] == NULL)
			return NULL;
		copy[i] = params[i];
		type->has_udt |= params[i]->has_udt;
	}
	return type;
}

static const struct type *
type_collection(struct arena *arena, enum type_kind kind, const struct type *const *params,
    uint32_t count, bool is_multi_cell)
{
	struct type *type = type_new(arena, kind, params, count);

	if (type != NULL)
		type->is_multi_cell = is_multi_cell;
	return type;
}

const struct type *
type_list(struct arena *arena, const struct type *element, bool is_multi_cell)
{
	return type_collection(arena, TYPE_LIST, &element, 1, is_multi_cell);
}

const struct type *
type_set(struct arena *arena, const struct type *element, bool is_multi_cell)
{
	return type_collection(arena, TYPE_SET, &element, 1, is_multi_cell);
}

const struct type *
type_map(struct arena *arena, const struct type *key, const struct type *value, bool is_multi_cell)
{
	const struct type *params[] = {key, value};

	return type_collection(arena, TYPE_MAP, params, 2, is_multi_cell);
}

const struct type *
type_tuple(struct arena *arena, const struct type *const *params, uint32_t count)
{
	return type_new(arena, TYPE_TUPLE, params, count);
}

const struct type *
type_udt(struct arena *arena, struct slice keyspace, struct slice name, const struct slice *fields,
    const struct type *const *params, uint32_t count, bool is_multi_cell)
{
	struct type *type = type_new(arena, TYPE_UDT, params, count);
	struct slice *names = arena_calloc(arena, count, sizeof(*names));
	uint32_t i;

	if (type == NULL || names == NULL)
		return NULL;
	for (i = 0; i < count; i++) {
		names[i] = arena_copy(arena, fields[i]);
		if (names[i].data == NULL)
			return NULL;
	}
	type->fields = names;
	type->keyspace = arena_copy(arena, keyspace);
	type->name = arena_copy(arena, name);
	type->is_multi_cell = is_multi_cell;
	type->has_udt = true;
	return type->name.data == NULL ? NULL : type;
}

const struct type *
type_vector(struct arena *arena, const struct type *element, uint32_t dimension)
{
	struct type *type = type_new(arena, TYPE_VECTOR, &element, 1);

	if (type == NULL)
		return NULL;
	type->dimension = dimension;
	if (element->fixed_length > 0)
		type->fixed_length = element->fixed_length * (int32_t)dimension;
	return type;
}

const struct type *
type_reversed(struct arena *arena, const struct type *base)
{
	struct type *type = type_new(arena, TYPE_REVERSED, &base, 1);

	if (type != NULL)
		type->fixed_length = base->fixed_length;
	return type;
}

const struct type *
type_composite(struct arena *arena, const struct type *const *params, uint32_t count)
{
	return type_new(arena, TYPE_COMPOSITE, params, count);
}

const struct type *
type_custom(struct arena *arena, struct slice class_name)
{
	struct type *type = type_new(arena, TYPE_CUSTOM, NULL, 0);

	if (type == NULL)
		return NULL;
	type->name = arena_copy(arena, class_name);
	if (type->name.data == NULL)
		return NULL;
	if (slice_equal_string(class_name, TYPE_CLASS_PACKAGE "LexicalUUIDType"))
		type->fixed_length = 16;
	return type;
}

/* How type_map_params() treats each type of the tree. */
enum type_change {
	TYPE_CHANGE_COPY,
	TYPE_CHANGE_FREEZE,
};

static const struct type *
type_transform(struct arena *arena, const struct type *type, enum type_change change)
{
	struct type *copy;
	const struct type **params;
	struct slice *fields = NULL;
	uint32_t i;

	if (type == NULL || type->kind < TYPE_NATIVE_COUNT)
		return type;
	copy = arena_alloc(arena, sizeof(*copy));
	params = arena_calloc(arena, type->param_count, sizeof(*params));
	if (copy == NULL || params == NULL)
		return NULL;
	*copy = *type;
	copy->params = params;
	if (change == TYPE_CHANGE_FREEZE)
		copy->is_multi_cell = false;
	for (i = 0; i < type->param_count; i++) {
		params[i] = type_transform(arena, type->params[i], change);
		if (params[i] == NULL)
			return NULL;
	}
	if (type->fields != NULL) {
		fields = arena_calloc(arena, type->param_count, sizeof(*fields));
		if (fields == NULL)
			return NULL;
		for (i = 0; i < type->param_count; i++)
			fields[i] = arena_copy(arena, type->fields[i]);
		copy->fields = fields;
	}
	copy->keyspace = arena_copy(arena, type->keyspace);
	copy->name = arena_copy(arena, type->name);
	return copy;
}

const struct type *
type_copy(struct arena *arena, const struct type *type)
{
	return type_transform(arena, type, TYPE_CHANGE_COPY);
}

static bool
type_has_multi_cell(const struct type *type)
{
	uint32_t i;

	if (type->is_multi_cell)
		return true;
	for (i = 0; i < type->param_count; i++) {
		if (type_has_multi_cell(type->params[i]))
			return true;
	}
	return false;
}

const struct type *
type_freeze(struct arena *arena, const struct type *type)
{
	if (!type_has_multi_cell(type))
		return type;
	return type_transform(arena, type, TYPE_CHANGE_FREEZE);
}

const struct type *
type_unfreeze(struct arena *arena, const struct type *type)
{
	struct type *copy;

	if (type->is_multi_cell || (!type_is_collection(type) && type->kind != TYPE_UDT))
		return type;
	copy = arena_alloc(arena, sizeof(*copy));
	if (copy == NULL)
		return NULL;
	*copy = *type;
	copy->is_multi_cell = true;
	return copy;
}

const struct type *
type_unreversed(const struct type *type, bool *is_reversed)
{
	bool reversed = type->kind == TYPE_REVERSED;

	if (is_reversed != NULL)
		*is_reversed = reversed;
	return reversed ? type->params[0] : type;
}

const struct type *
type_replace_udt(struct arena *arena, const struct type *type, const struct type *udt)
{
	struct type *copy;
	const struct type **params;
	uint32_t i;

	if (!type_uses_udt(type, udt->keyspace, udt->name))
		return type;
	if (type->kind == TYPE_UDT && slice_equal(type->keyspace, udt->keyspace) &&
	    slice_equal(type->name, udt->name))
		return type->is_multi_cell ? type_unfreeze(arena, udt) : type_freeze(arena, udt);
	copy = arena_alloc(arena, sizeof(*copy));
	params = arena_calloc(arena, type->param_count, sizeof(*params));
	if (copy == NULL || params == NULL)
		return NULL;
	*copy = *type;
	copy->params = params;
	for (i = 0; i < type->param_count; i++) {
		params[i] = type_replace_udt(arena, type->params[i], udt);
		if (params[i] == NULL)
			return NULL;
	}
	return copy;
}

bool
type_equal(const struct type *a, const struct type *b)
{
	uint32_t i;

	if (a == b)
		return true;
	if (a->kind != b->kind || a->kind < TYPE_NATIVE_COUNT)
		return a->kind == b->kind;
	if (a->is_multi_cell != b->is_multi_cell || a->param_count != b->param_count ||
	    a->dimension != b->dimension || !slice_equal(a->name, b->name) ||
	    !slice_equal(a->keyspace, b->keyspace))
		return false;
	for (i = 0; i < a->param_count; i++) {
		if (!type_equal(a->params[i], b->params[i]))
			return false;
		if (a->fields != NULL && !slice_equal(a->fields[i], b->fields[i]))
			return false;
	}
	return true;
}

bool
type_uses_udt(const struct type *type, struct slice keyspace, struct slice name)
{
	uint32_t i;

	if (!type->has_udt)
		return false;
	if (type->kind == TYPE_UDT && slice_equal(type->keyspace, keyspace) &&
	    slice_equal(type->name, name))
		return true;
	for (i = 0; i < type->param_count; i++) {
		if (type_uses_udt(type->params[i], keyspace, name))
			return true;
	}
	return false;
}

static bool
type_references(const struct type *type, enum type_kind kind)
{
	uint32_t i;

	if (type->kind == kind)
		return true;
	for (i = 0; i < type->param_count; i++) {
		if (type_references(type->params[i], kind))
			return true;
	}
	return false;
}

bool
type_references_duration(const struct type *type)
{
	return type_references(type, TYPE_DURATION);
}

bool
type_references_counter(const struct type *type)
{
	return type_references(type, TYPE_COUNTER);
}

bool
type_is_comparable(const struct type *type)
{
	return !type_has_multi_cell(type) && !type_references(type, TYPE_DURATION) &&
	    !type_references(type, TYPE_COUNTER);
}

bool
type_allows_empty(const struct type *type)
{
	if (type->kind < TYPE_NATIVE_COUNT)
		return type_natives_info[type->kind].allows_empty;
	switch (type->kind) {
	case TYPE_REVERSED:
		return type_allows_empty(type->params[0]);
	case TYPE_TUPLE:
	case TYPE_UDT:
	case TYPE_COMPOSITE:
	case TYPE_CUSTOM:
		return true;
	default:
		return false;
	}
}

bool
type_is_numeric(const struct type *type)
{
	return type->kind < TYPE_NATIVE_COUNT && type_natives_info[type->kind].is_numeric;
}

/* Reading bytes of another native type; type_is_compatible() has said no. */
static bool
type_native_is_value_compatible(enum type_kind kind, enum type_kind previous)
{
	switch (kind) {
	case TYPE_VARINT:
		return previous == TYPE_INT || previous == TYPE_BIGINT ||
		    previous == TYPE_SMALLINT || previous == TYPE_TINYINT ||
		    previous == TYPE_TIMESTAMP;
	case TYPE_BIGINT:
		return previous == TYPE_TIMESTAMP;
	case TYPE_TIMESTAMP:
	case TYPE_TIME:
		return previous == TYPE_BIGINT;
	case TYPE_DATE:
		return previous == TYPE_VARINT;
	case TYPE_UUID:
		return previous == TYPE_TIMEUUID;
	default:
		return false;
	}
}

static bool
type_params_compatible(const struct type *type, const struct type *previous, bool by_value)
{
	uint32_t i;

	for (i = 0; i < previous->param_count; i++) {
		/* The first parameter of a set or a map gives the order. */
		bool is_order = i == 0 && (type->kind == TYPE_SET || type->kind == TYPE_MAP);

		if (by_value && !is_order) {
			if (!type_is_value_compatible(type->params[i], previous->params[i]))
				return false;
		} else if (!type_is_compatible(type->params[i], previous->params[i])) {
			return false;
		}
	}
	return true;
}

static bool
type_compatible(const struct type *type, const struct type *previous, bool by_value)
{
	if (type->kind != previous->kind || type->is_multi_cell != previous->is_multi_cell)
		return false;
	if (type->kind == TYPE_UDT && !slice_equal(type->keyspace, previous->keyspace))
		return false;
	if (type_is_tuple(type) || type->kind == TYPE_COMPOSITE) {
		/* A longer tuple reads a shorter one. */
		if (type->param_count < previous->param_count)
			return false;
	} else if (type->param_count != previous->param_count ||
	    type->dimension != previous->dimension) {
		return false;
	}
	return type_params_compatible(type, previous, by_value);
}

bool
type_is_compatible(const struct type *type, const struct type *previous)
{
	if (type_equal(type, previous))
		return true;
	if (type->kind == TYPE_BLOB)
		return previous->kind == TYPE_ASCII || previous->kind == TYPE_TEXT;
	if (type->kind == TYPE_TEXT)
		return previous->kind == TYPE_ASCII;
	if (type->kind < TYPE_NATIVE_COUNT || type->kind == TYPE_CUSTOM)
		return false;
	return type_compatible(type, previous, false);
}

bool
type_is_value_compatible(const struct type *type, const struct type *previous)
{
	type = type_unreversed(type, NULL);
	previous = type_unreversed(previous, NULL);
	if (type->kind == TYPE_BLOB)
		return !previous->is_multi_cell;
	if (type_is_compatible(type, previous))
		return true;
	if (type->kind < TYPE_NATIVE_COUNT)
		return type_native_is_value_compatible(type->kind, previous->kind);
	return type->kind != TYPE_CUSTOM && type_compatible(type, previous, true);
}

const struct type *
type_cell_path(const struct type *type)
{
	if (!type->is_multi_cell)
		return NULL;
	switch (type->kind) {
	case TYPE_LIST:
		return type_native(TYPE_TIMEUUID);
	case TYPE_SET:
	case TYPE_MAP:
		return type->params[0];
	case TYPE_UDT:
		return type_native(TYPE_SMALLINT);
	default:
		return NULL;
	}
}

const struct type *
type_cell_value(const struct type *type, struct slice path)
{
	uint16_t position;

	if (!type->is_multi_cell)
		return NULL;
	switch (type->kind) {
	case TYPE_LIST:
		return type->params[0];
	case TYPE_SET:
		return type_native(TYPE_EMPTY);
	case TYPE_MAP:
		return type->params[1];
	case TYPE_UDT:
		if (path.size != 2)
			return NULL;
		position = load_u16(path.data);
		return position < type->param_count ? type->params[position] : NULL;
	default:
		return NULL;
	}
}

int
type_field_index(const struct type *type, struct slice field)
{
	uint32_t i;

	if (type->kind != TYPE_UDT)
		return -1;
	for (i = 0; i < type->param_count; i++) {
		if (slice_equal(type->fields[i], field))
			return (int)i;
	}
	return -1;
}

uint16_t
type_protocol_id(const struct type *type, int version)
{
	if (type->kind < TYPE_NATIVE_COUNT) {
		const struct type_native_info *info = &type_natives_info[type->kind];

		return version >= info->protocol_since ? info->protocol_id : 0;
	}
	switch (type->kind) {
	case TYPE_LIST:
		return 0x20;
	case TYPE_MAP:
		return 0x21;
	case TYPE_SET:
		return 0x22;
	case TYPE_UDT:
		return 0x30;
	case TYPE_TUPLE:
		return 0x31;
	default:
		return 0;
	}
}
