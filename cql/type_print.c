/* SPDX-License-Identifier: Apache-2.0 */
/* Names of types: the CQL form and the Java class form. */
#include "cql/describe.h"
#include "cql/type.h"
#include "cql/type_internal.h"

static void
type_print_cql_params(const struct type *type, const char *name, struct buffer *out)
{
	uint32_t i;

	buffer_put_string(out, name);
	buffer_put_u8(out, '<');
	for (i = 0; i < type->param_count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		type_print_cql(type->params[i], out);
	}
	if (type->kind == TYPE_VECTOR)
		buffer_printf(out, ", %u", type->dimension);
	buffer_put_u8(out, '>');
}

void
type_print_cql(const struct type *type, struct buffer *out)
{
	bool is_frozen = !type->is_multi_cell && (type_is_collection(type) || type_is_tuple(type));

	if (type->kind == TYPE_REVERSED) {
		type_print_cql(type->params[0], out);
		return;
	}
	if (is_frozen)
		buffer_put_string(out, "frozen<");
	switch (type->kind) {
	case TYPE_LIST:
		type_print_cql_params(type, "list", out);
		break;
	case TYPE_SET:
		type_print_cql_params(type, "set", out);
		break;
	case TYPE_MAP:
		type_print_cql_params(type, "map", out);
		break;
	case TYPE_TUPLE:
		type_print_cql_params(type, "tuple", out);
		break;
	case TYPE_VECTOR:
		type_print_cql_params(type, "vector", out);
		break;
	case TYPE_UDT:
		describe_name(type->name, out);
		break;
	case TYPE_COMPOSITE:
	case TYPE_CUSTOM:
		buffer_put_u8(out, '\'');
		type_print_class(type, out);
		buffer_put_u8(out, '\'');
		break;
	default:
		buffer_put_string(out, type_cql_of(type->kind));
		break;
	}
	if (is_frozen)
		buffer_put_u8(out, '>');
}

static void
type_put_hex(struct slice text, struct buffer *out)
{
	size_t i;

	for (i = 0; i < text.size; i++)
		buffer_printf(out, "%02x", text.data[i]);
}

/* ignore_freezing: something around is frozen already, which freezes all inside. */
static void
type_print_class_inner(const struct type *type, bool ignore_freezing, struct buffer *out)
{
	bool can_freeze = type_is_collection(type) || type->kind == TYPE_UDT;
	bool is_frozen = can_freeze && !type->is_multi_cell && !ignore_freezing;
	bool inner =
	    ignore_freezing || (can_freeze && !type->is_multi_cell) || type->kind == TYPE_TUPLE;
	uint32_t i;

	if (type->kind == TYPE_CUSTOM) {
		buffer_put_slice(out, type->name);
		return;
	}
	if (is_frozen)
		buffer_put_string(out, TYPE_CLASS_PACKAGE "FrozenType(");
	buffer_put_string(out, TYPE_CLASS_PACKAGE);
	buffer_put_string(out, type_class_of(type->kind));
	if (type->kind < TYPE_NATIVE_COUNT)
		return;
	buffer_put_u8(out, '(');
	if (type->kind == TYPE_UDT) {
		buffer_put_slice(out, type->keyspace);
		buffer_put_u8(out, ',');
		type_put_hex(type->name, out);
	}
	for (i = 0; i < type->param_count; i++) {
		if (i > 0 || type->kind == TYPE_UDT)
			buffer_put_u8(out, ',');
		if (type->kind == TYPE_UDT) {
			type_put_hex(type->fields[i], out);
			buffer_put_u8(out, ':');
		}
		type_print_class_inner(type->params[i], inner, out);
	}
	if (type->kind == TYPE_VECTOR)
		buffer_printf(out, ", %u", type->dimension);
	buffer_put_u8(out, ')');
	if (is_frozen)
		buffer_put_u8(out, ')');
}

void
type_print_class(const struct type *type, struct buffer *out)
{
	type_print_class_inner(type, false, out);
}

const char *
type_name(struct arena *arena, const struct type *type)
{
	struct buffer buffer;
	char *text;

	buffer_init(&buffer);
	type_print_cql(type, &buffer);
	text = arena_strndup(arena, (const char *)buffer.data, buffer.size);
	if (buffer.is_failed)
		text = NULL;
	buffer_fini(&buffer);
	return text != NULL ? text : "?";
}
