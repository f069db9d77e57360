/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE, ALTER, DROP TYPE. */
#include "server/execution.h"
#include "server/guardrails.h"
#include "server/schema_change.h"

static int
type_check_field(const struct type *type, struct error *err)
{
	if (type->kind == TYPE_COUNTER)
		return error_set(err, ERROR_INVALID, "A user type cannot contain counters");
	if (type->kind == TYPE_UDT && type->is_multi_cell)
		return error_set(err, ERROR_INVALID, "A user type cannot contain non-frozen UDTs");
	return 0;
}

static int
type_create(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_create_type *create = &transformation->statement->create_type;
	struct arena *arena = transformation->arena;
	size_t count = create->fields.count;
	struct slice *names = arena_calloc(arena, count, sizeof(*names));
	const struct type **types = arena_calloc(arena, count, sizeof(*types));
	struct slice name = ast_slice(create->name.name);
	const struct type *udt;

	if (names == NULL || types == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a type");
	if (transformation->before == NULL)
		return error_set(err, ERROR_INVALID, "Keyspace '%.*s' doesn't exist",
		    (int)transformation->name.size, (const char *)transformation->name.data);
	if (keyspace_type(transformation->before, name) != NULL) {
		if (create->if_not_exists) {
			transformation->is_noop = true;
			return 0;
		}
		return error_set(err, ERROR_INVALID, "A user type with name '%s' already exists",
		    create->name.name.text);
	}
	for (size_t i = 0; i < count; i++) {
		const struct ast_column *field = &create->fields.items[i];

		names[i] = ast_slice(field->name.text);
		for (size_t n = 0; n < i; n++) {
			if (slice_equal(names[n], names[i]))
				return error_set(err, ERROR_INVALID,
				    "Duplicate field name '%s' in type '%s'", field->name.text.text,
				    create->name.name.text);
		}
		/* Before it is looked up, so that a type cannot contain itself either. */
		if (field->type->kind == AST_TYPE_USER && !field->type->is_frozen)
			return error_set(
			    err, ERROR_INVALID, "A user type cannot contain non-frozen UDTs");
		if (schema_resolve_type(transformation->schema, transformation->name, field->type,
			arena, &types[i], err) != 0 ||
		    type_check_field(types[i], err) != 0)
			return -1;
		/* What is inside a user type is frozen but for its own top. */
	}
	udt = type_udt(arena, transformation->name, name, names, types, (uint32_t)count, true);
	if (udt == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a type");
	transformation->after = keyspace_with_type(transformation->before, udt);
	transformation->change.kind = SCHEMA_CREATED;
	return 0;
}

/* ---- ALTER --------------------------------------------------------------------------------- */

struct type_fields {
	struct slice *names;
	const struct type **types;
	uint32_t count;
};

static int
type_add_fields(struct schema_transformation *transformation, const struct type *udt,
    struct type_fields *fields, struct error *err)
{
	const struct statement_alter_type *alter = &transformation->statement->alter_type;
	struct arena *arena = transformation->arena;

	for (size_t i = 0; i < alter->fields.count; i++) {
		const struct ast_column *field = &alter->fields.items[i];
		struct slice name = ast_slice(field->name.text);
		const struct type *type;
		bool is_there = false;

		for (uint32_t n = 0; n < fields->count; n++)
			is_there = is_there || slice_equal(fields->names[n], name);
		if (is_there) {
			if (alter->if_field_not_exists)
				continue;
			return error_set(err, ERROR_INVALID,
			    "Cannot add field %s to type %.*s.%.*s: a field with name %s already "
			    "exists",
			    field->name.text.text, (int)udt->keyspace.size, udt->keyspace.data,
			    (int)udt->name.size, udt->name.data, field->name.text.text);
		}
		if (schema_resolve_type(transformation->schema, transformation->name, field->type,
			arena, &type, err) != 0 ||
		    type_check_field(type, err) != 0)
			return -1;
		if (type_uses_udt(type, udt->keyspace, udt->name))
			return error_set(err, ERROR_INVALID,
			    "Cannot add new field %s of type %s to user type %.*s.%.*s as it would "
			    "create a circular reference",
			    field->name.text.text,
			    type->kind == TYPE_UDT
				? arena_printf(arena, "frozen<%.*s.%.*s>", (int)type->keyspace.size,
				      type->keyspace.data, (int)type->name.size, type->name.data)
				: type_name(arena, type),
			    (int)udt->keyspace.size, udt->keyspace.data, (int)udt->name.size,
			    udt->name.data);
		fields->names[fields->count] = name;
		fields->types[fields->count++] = type;
		if (guardrail_check_maximum(transformation->execution, GUARDRAIL_FIELDS_PER_UDT,
			udt->name, fields->count, err) != 0)
			return -1;
	}
	return 0;
}

static int
type_rename_fields(struct schema_transformation *transformation, const struct type *udt,
    struct type_fields *fields, struct error *err)
{
	const struct statement_alter_type *alter = &transformation->statement->alter_type;

	for (size_t i = 0; i < alter->rename_count; i++) {
		struct slice from = ast_slice(alter->renames[i].from.text);
		uint32_t at = 0;

		while (at < fields->count && !slice_equal(fields->names[at], from))
			at++;
		if (at == fields->count) {
			if (alter->if_field_exists)
				continue;
			return error_set(err, ERROR_INVALID,
			    "Unkown field %s in user type %.*s.%.*s",
			    alter->renames[i].from.text.text, (int)udt->keyspace.size,
			    udt->keyspace.data, (int)udt->name.size, udt->name.data);
		}
		fields->names[at] = ast_slice(alter->renames[i].to.text);
	}
	for (uint32_t i = 0; i < fields->count; i++) {
		for (uint32_t n = 0; n < i; n++) {
			if (slice_equal(fields->names[i], fields->names[n]))
				return error_set(err, ERROR_INVALID,
				    "Duplicate field name %.*s in type %.*s",
				    (int)fields->names[i].size, fields->names[i].data,
				    (int)udt->keyspace.size, udt->keyspace.data);
		}
	}
	return 0;
}

static int
type_alter(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_alter_type *alter = &transformation->statement->alter_type;
	struct arena *arena = transformation->arena;
	const struct type *udt = transformation->before == NULL
	    ? NULL
	    : keyspace_type(transformation->before, ast_slice(alter->name.name));
	struct type_fields fields = {0};
	int rc;

	if (udt == NULL) {
		if (alter->if_exists) {
			transformation->is_noop = true;
			return 0;
		}
		return error_set(err, ERROR_INVALID, "Type %.*s.%s doesn't exist",
		    (int)transformation->name.size, (const char *)transformation->name.data,
		    alter->name.name.text);
	}
	if (alter->kind == AST_ALTER_TYPE_FIELD_TYPE)
		return error_set(err, ERROR_INVALID, "Altering field types is no longer supported");
	fields.names =
	    arena_calloc(arena, udt->param_count + alter->fields.count, sizeof(*fields.names));
	fields.types =
	    arena_calloc(arena, udt->param_count + alter->fields.count, sizeof(*fields.types));
	if (fields.names == NULL || fields.types == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a type");
	for (uint32_t i = 0; i < udt->param_count; i++) {
		fields.names[i] = udt->fields[i];
		fields.types[i] = udt->params[i];
	}
	fields.count = udt->param_count;
	rc = alter->kind == AST_ALTER_TYPE_ADD
	    ? type_add_fields(transformation, udt, &fields, err)
	    : type_rename_fields(transformation, udt, &fields, err);
	if (rc != 0)
		return -1;
	udt = type_udt(
	    arena, udt->keyspace, udt->name, fields.names, fields.types, fields.count, true);
	if (udt == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a type");
	transformation->after = keyspace_with_type(transformation->before, udt);
	transformation->change.kind = SCHEMA_UPDATED;
	return 0;
}

/* ---- DROP ---------------------------------------------------------------------------------- */

static int
type_check_unused(
    const struct keyspace_metadata *keyspace, const struct type *udt, struct error *err)
{
	struct buffer users;
	int rc = 0;

	buffer_init(&users);
	for (uint32_t i = 0; i < keyspace->type_count; i++) {
		const struct type *other = keyspace->types[i].type;
		bool uses = false;

		for (uint32_t n = 0; n < other->param_count; n++)
			uses = uses || type_uses_udt(other->params[n], udt->keyspace, udt->name);
		if (uses)
			buffer_printf(&users, "%s%.*s", users.size > 0 ? ", " : "",
			    (int)other->name.size, other->name.data);
	}
	if (users.size > 0)
		rc = error_set(err, ERROR_INVALID,
		    "Cannot drop user type '%.*s.%.*s' as it is still used by user types %.*s",
		    (int)udt->keyspace.size, udt->keyspace.data, (int)udt->name.size,
		    udt->name.data, (int)users.size, (const char *)users.data);
	buffer_clear(&users);
	for (uint32_t i = 0; i < keyspace->table_count; i++) {
		const struct table_metadata *table = keyspace->tables[i];
		bool uses = false;

		for (uint32_t n = 0; n < table->column_count; n++)
			uses = uses ||
			    type_uses_udt(table->select_order[n]->type, udt->keyspace, udt->name);
		if (uses)
			buffer_printf(&users, "%s%.*s", users.size > 0 ? ", " : "",
			    (int)table->name.size, table->name.data);
	}
	if (rc == 0 && users.size > 0)
		rc = error_set(err, ERROR_INVALID,
		    "Cannot drop user type '%.*s.%.*s' as it is still used by tables %.*s",
		    (int)udt->keyspace.size, udt->keyspace.data, (int)udt->name.size,
		    udt->name.data, (int)users.size, (const char *)users.data);
	buffer_fini(&users);
	return rc;
}

static int
type_drop(struct schema_transformation *transformation, struct error *err)
{
	const struct statement_drop *drop = &transformation->statement->drop;
	struct slice name = ast_slice(drop->name.name);
	const struct type *udt =
	    transformation->before == NULL ? NULL : keyspace_type(transformation->before, name);

	if (udt == NULL) {
		if (drop->if_exists) {
			transformation->is_noop = true;
			return 0;
		}
		return error_set(err, ERROR_INVALID, "Type '%.*s.%s' doesn't exist",
		    (int)transformation->name.size, (const char *)transformation->name.data,
		    drop->name.name.text);
	}
	if (type_check_unused(transformation->before, udt, err) != 0)
		return -1;
	transformation->after = keyspace_without_type(transformation->before, name);
	transformation->change.kind = SCHEMA_DROPPED;
	return 0;
}

int
schema_transform_type(struct schema_transformation *transformation, struct error *err)
{
	const struct statement *statement = transformation->statement;
	const struct ast_name *name = statement->kind == STATEMENT_CREATE_TYPE
	    ? &statement->create_type.name
	    : statement->kind == STATEMENT_ALTER_TYPE ? &statement->alter_type.name
						      : &statement->drop.name;

	transformation->change.target = SCHEMA_TYPE;
	transformation->change.name = ast_slice(name->name);
	if (schema_target_keyspace(transformation, ast_slice(name->keyspace), err) != 0)
		return -1;
	switch (statement->kind) {
	case STATEMENT_CREATE_TYPE:
		return type_create(transformation, err);
	case STATEMENT_ALTER_TYPE:
		return type_alter(transformation, err);
	default:
		return type_drop(transformation, err);
	}
}
