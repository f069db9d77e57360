/* SPDX-License-Identifier: Apache-2.0 */
/* Keyspaces and the snapshot of all of them. */
#include <assert.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/refs.h"
#include "cql/schema.h"
#include "cql/schema_internal.h"

/* ---- Keyspaces ----------------------------------------------------------------------------- */

struct keyspace_metadata *
keyspace_ref(const struct keyspace_metadata *keyspace)
{
	struct keyspace_metadata *mutable = (struct keyspace_metadata *)(uintptr_t)keyspace;

	refs_take(&mutable->refs);
	return mutable;
}

void
keyspace_unref(const struct keyspace_metadata *keyspace)
{
	struct keyspace_metadata *mutable = (struct keyspace_metadata *)(uintptr_t)keyspace;
	uint32_t i;

	if (keyspace == NULL || !refs_drop(&mutable->refs))
		return;
	for (i = 0; i < mutable->table_count; i++)
		table_unref(mutable->tables[i]);
	arena_fini(&mutable->arena);
	free(mutable);
}

/* Where `name` is, or would be, in an array sorted by a name that is the struct slice at `offset`
 * of each element. */
static uint32_t
keyspace_find(const void *array, uint32_t count, size_t size, size_t offset, struct slice name,
    bool *is_found)
{
	uint32_t low = 0, high = count;

	*is_found = false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct slice *key =
		    (const void *)((const uint8_t *)array + middle * size + offset);
		int order = slice_compare(*key, name);

		if (order == 0) {
			*is_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t
keyspace_find_table(const struct keyspace_metadata *keyspace, struct slice name, bool *is_found)
{
	uint32_t low = 0, high = keyspace->table_count;

	*is_found = false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = slice_compare(keyspace->tables[middle]->name, name);

		if (order == 0) {
			*is_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t
keyspace_find_type(const struct keyspace_metadata *keyspace, struct slice name, bool *is_found)
{
	uint32_t i;

	*is_found = false;
	for (i = 0; i < keyspace->type_count; i++) {
		int order = slice_compare(keyspace->types[i].type->name, name);

		if (order >= 0) {
			*is_found = order == 0;
			break;
		}
	}
	return i;
}

const struct table_metadata *
keyspace_table(const struct keyspace_metadata *keyspace, struct slice name)
{
	bool is_found;
	uint32_t at = keyspace_find_table(keyspace, name, &is_found);

	return is_found ? keyspace->tables[at] : NULL;
}

const struct type *
keyspace_type(const struct keyspace_metadata *keyspace, struct slice name)
{
	bool is_found;
	uint32_t at = keyspace_find_type(keyspace, name, &is_found);

	return is_found ? keyspace->types[at].type : NULL;
}

const struct view_metadata *
keyspace_view(const struct keyspace_metadata *keyspace, struct slice name)
{
	bool is_found;
	uint32_t at = keyspace_find(keyspace->views, keyspace->view_count, sizeof(*keyspace->views),
	    offsetof(struct view_metadata, name), name, &is_found);

	return is_found ? &keyspace->views[at] : NULL;
}

const struct type *
keyspace_resolve_udt(void *user, struct slice keyspace, struct slice name)
{
	const struct keyspace_metadata *metadata = user;

	if (!slice_is_null(keyspace) && !slice_equal(keyspace, metadata->name))
		return NULL;
	return keyspace_type(metadata, name);
}

static void
keyspace_copy_function(
    struct arena *arena, struct function_metadata *out, const struct function_metadata *function)
{
	struct slice *names;
	const struct type **types;
	uint32_t i;

	*out = *function;
	names = schema_alloc(arena, function->argument_count, sizeof(*names));
	types = schema_alloc(arena, function->argument_count, sizeof(*types));
	for (i = 0; i < function->argument_count; i++) {
		if (function->argument_names != NULL)
			names[i] = schema_copy(arena, function->argument_names[i]);
		types[i] = schema_copy_type(arena, function->argument_types[i]);
	}
	out->name = schema_copy(arena, function->name);
	out->argument_names = function->argument_names != NULL ? names : NULL;
	out->argument_types = types;
	out->return_type = schema_copy_type(arena, function->return_type);
	out->body = schema_copy(arena, function->body);
	out->language = schema_copy(arena, function->language);
	out->state_function = schema_copy(arena, function->state_function);
	out->final_function = schema_copy(arena, function->final_function);
	out->state_type = schema_copy_type(arena, function->state_type);
	out->initial_condition = schema_copy(arena, function->initial_condition);
}

static void
keyspace_copy_view(struct arena *arena, struct view_metadata *out, const struct view_metadata *view)
{
	*out = *view;
	out->name = schema_copy(arena, view->name);
	out->base_table = schema_copy(arena, view->base_table);
	out->where_clause = schema_copy(arena, view->where_clause);
}

struct keyspace_metadata *
keyspace_new(
    struct slice name, const struct option_map *replication, bool durable_writes, bool is_virtual)
{
	struct keyspace_metadata *keyspace = xzalloc(sizeof(*keyspace));

	atomic_init(&keyspace->refs, 1);
	arena_init(&keyspace->arena, 4096);
	keyspace->name = schema_copy(&keyspace->arena, name);
	keyspace->durable_writes = durable_writes;
	keyspace->is_virtual = is_virtual;
	if (replication != NULL)
		keyspace->replication = option_map_copy(&keyspace->arena, replication);
	keyspace->replication_hash = option_map_hash(&keyspace->replication);
	return keyspace;
}

/* A copy that may still be changed, every array with room for one more. */
static struct keyspace_metadata *
keyspace_clone(const struct keyspace_metadata *keyspace)
{
	struct keyspace_metadata *copy = keyspace_new(
	    keyspace->name, &keyspace->replication, keyspace->durable_writes, keyspace->is_virtual);
	struct arena *arena = &copy->arena;
	uint32_t i;

	copy->table_count = keyspace->table_count;
	copy->tables = schema_alloc(arena, copy->table_count + 1, sizeof(*copy->tables));
	for (i = 0; i < copy->table_count; i++)
		copy->tables[i] = table_ref(keyspace->tables[i]);
	copy->type_count = keyspace->type_count;
	copy->types = schema_alloc(arena, copy->type_count + 1, sizeof(*copy->types));
	for (i = 0; i < copy->type_count; i++)
		copy->types[i].type = schema_copy_type(arena, keyspace->types[i].type);
	copy->view_count = keyspace->view_count;
	copy->views = schema_alloc(arena, copy->view_count + 1, sizeof(*copy->views));
	for (i = 0; i < copy->view_count; i++)
		keyspace_copy_view(arena, &copy->views[i], &keyspace->views[i]);
	copy->function_count = keyspace->function_count;
	copy->functions = schema_alloc(arena, copy->function_count + 1, sizeof(*copy->functions));
	for (i = 0; i < copy->function_count; i++)
		keyspace_copy_function(arena, &copy->functions[i], &keyspace->functions[i]);
	return copy;
}

static void
keyspace_open_gap(void *array, uint32_t count, uint32_t at, size_t size)
{
	uint8_t *bytes = array;

	memmove(bytes + (at + 1) * size, bytes + at * size, (count - at) * size);
}

static void
keyspace_close_gap(void *array, uint32_t count, uint32_t at, size_t size)
{
	uint8_t *bytes = array;

	memmove(bytes + at * size, bytes + (at + 1) * size, (count - at - 1) * size);
}

struct keyspace_metadata *
keyspace_with_params(const struct keyspace_metadata *keyspace, const struct option_map *replication,
    bool durable_writes)
{
	struct keyspace_metadata *copy = keyspace_clone(keyspace);

	copy->replication = option_map_copy(&copy->arena, replication);
	copy->replication_hash = option_map_hash(&copy->replication);
	copy->durable_writes = durable_writes;
	return copy;
}

static void
keyspace_put_table(struct keyspace_metadata *keyspace, const struct table_metadata *table)
{
	bool is_found;
	uint32_t at = keyspace_find_table(keyspace, table->name, &is_found);

	if (is_found) {
		table_unref(keyspace->tables[at]);
	} else {
		keyspace_open_gap(
		    keyspace->tables, keyspace->table_count, at, sizeof(*keyspace->tables));
		keyspace->table_count++;
	}
	keyspace->tables[at] = table_ref(table);
}

static void
keyspace_remove_table(struct keyspace_metadata *keyspace, struct slice name)
{
	bool is_found;
	uint32_t at = keyspace_find_table(keyspace, name, &is_found);

	if (!is_found)
		return;
	table_unref(keyspace->tables[at]);
	keyspace_close_gap(keyspace->tables, keyspace->table_count, at, sizeof(*keyspace->tables));
	keyspace->table_count--;
}

struct keyspace_metadata *
keyspace_with_table(const struct keyspace_metadata *keyspace, const struct table_metadata *table)
{
	struct keyspace_metadata *copy = keyspace_clone(keyspace);

	keyspace_put_table(copy, table);
	return copy;
}

struct keyspace_metadata *
keyspace_without_table(const struct keyspace_metadata *keyspace, struct slice name)
{
	struct keyspace_metadata *copy = keyspace_clone(keyspace);

	keyspace_remove_table(copy, name);
	return copy;
}

/* Tables and other types that have the type inside. */
static void
keyspace_replace_udt(struct keyspace_metadata *keyspace, const struct type *udt)
{
	uint32_t i;

	for (i = 0; i < keyspace->type_count; i++) {
		if (slice_equal(keyspace->types[i].type->name, udt->name))
			continue;
		keyspace->types[i].type =
		    type_replace_udt(&keyspace->arena, keyspace->types[i].type, udt);
		if (keyspace->types[i].type == NULL)
			abort();
	}
	for (i = 0; i < keyspace->table_count; i++) {
		struct table_builder *builder = table_builder_from(keyspace->tables[i]);
		struct table_metadata *table;

		if (table_builder_replace_udt(builder, udt)) {
			if (table_builder_build(builder, &table, NULL) != 0)
				abort(); /* it was a valid table before */
			table_unref(keyspace->tables[i]);
			keyspace->tables[i] = table;
		}
		table_builder_free(builder);
	}
}

struct keyspace_metadata *
keyspace_with_type(const struct keyspace_metadata *keyspace, const struct type *udt)
{
	struct keyspace_metadata *copy = keyspace_clone(keyspace);
	const struct type *mine = schema_copy_type(&copy->arena, udt);
	bool is_found;
	uint32_t at = keyspace_find_type(copy, udt->name, &is_found);

	mine = type_unfreeze(&copy->arena, mine);
	if (mine == NULL)
		abort();
	if (is_found) {
		keyspace_replace_udt(copy, mine);
	} else {
		keyspace_open_gap(copy->types, copy->type_count, at, sizeof(*copy->types));
		copy->type_count++;
	}
	copy->types[at].type = mine;
	return copy;
}

struct keyspace_metadata *
keyspace_without_type(const struct keyspace_metadata *keyspace, struct slice name)
{
	struct keyspace_metadata *copy = keyspace_clone(keyspace);
	bool is_found;
	uint32_t at = keyspace_find_type(copy, name, &is_found);

	if (is_found) {
		keyspace_close_gap(copy->types, copy->type_count, at, sizeof(*copy->types));
		copy->type_count--;
	}
	return copy;
}

struct keyspace_metadata *
keyspace_with_view(const struct keyspace_metadata *keyspace, const struct view_metadata *view,
    const struct table_metadata *table)
{
	struct keyspace_metadata *copy = keyspace_clone(keyspace);
	bool is_found;
	uint32_t at = keyspace_find(copy->views, copy->view_count, sizeof(*copy->views),
	    offsetof(struct view_metadata, name), view->name, &is_found);

	if (!is_found) {
		keyspace_open_gap(copy->views, copy->view_count, at, sizeof(*copy->views));
		copy->view_count++;
	}
	keyspace_copy_view(&copy->arena, &copy->views[at], view);
	keyspace_put_table(copy, table);
	return copy;
}

struct keyspace_metadata *
keyspace_without_view(const struct keyspace_metadata *keyspace, struct slice name)
{
	struct keyspace_metadata *copy = keyspace_clone(keyspace);
	bool is_found;
	uint32_t at = keyspace_find(copy->views, copy->view_count, sizeof(*copy->views),
	    offsetof(struct view_metadata, name), name, &is_found);

	if (is_found) {
		keyspace_close_gap(copy->views, copy->view_count, at, sizeof(*copy->views));
		copy->view_count--;
		keyspace_remove_table(copy, name);
	}
	return copy;
}

/* By name, then by the argument types' names. */
static int
keyspace_function_order(const struct function_metadata *a, const struct function_metadata *b)
{
	struct buffer left, right;
	int order = slice_compare(a->name, b->name);
	uint32_t i;

	if (order != 0)
		return order;
	buffer_init(&left);
	buffer_init(&right);
	for (i = 0; i < a->argument_count; i++) {
		type_print_cql(a->argument_types[i], &left);
		buffer_put_u8(&left, ',');
	}
	for (i = 0; i < b->argument_count; i++) {
		type_print_cql(b->argument_types[i], &right);
		buffer_put_u8(&right, ',');
	}
	order =
	    slice_compare(slice_of(left.data != NULL ? left.data : (const uint8_t *)"", left.size),
		slice_of(right.data != NULL ? right.data : (const uint8_t *)"", right.size));
	buffer_fini(&left);
	buffer_fini(&right);
	return order;
}

static uint32_t
keyspace_find_function(const struct keyspace_metadata *keyspace,
    const struct function_metadata *function, bool *is_found)
{
	uint32_t i;

	*is_found = false;
	for (i = 0; i < keyspace->function_count; i++) {
		int order = keyspace_function_order(&keyspace->functions[i], function);

		if (order >= 0) {
			*is_found = order == 0;
			break;
		}
	}
	return i;
}

struct keyspace_metadata *
keyspace_with_function(
    const struct keyspace_metadata *keyspace, const struct function_metadata *function)
{
	struct keyspace_metadata *copy = keyspace_clone(keyspace);
	bool is_found;
	uint32_t at = keyspace_find_function(copy, function, &is_found);

	if (!is_found) {
		keyspace_open_gap(
		    copy->functions, copy->function_count, at, sizeof(*copy->functions));
		copy->function_count++;
	}
	keyspace_copy_function(&copy->arena, &copy->functions[at], function);
	return copy;
}

struct keyspace_metadata *
keyspace_without_function(
    const struct keyspace_metadata *keyspace, const struct function_metadata *function)
{
	struct keyspace_metadata *copy = keyspace_clone(keyspace);
	bool is_found;
	uint32_t at = keyspace_find_function(copy, function, &is_found);

	if (is_found) {
		keyspace_close_gap(
		    copy->functions, copy->function_count, at, sizeof(*copy->functions));
		copy->function_count--;
	}
	return copy;
}

/* ---- The snapshot -------------------------------------------------------------------------- */

bool
schema_is_local_keyspace(struct slice name)
{
	return slice_equal_string(name, "system") || slice_equal_string(name, "system_schema");
}

bool
schema_is_replicated_system_keyspace(struct slice name)
{
	return slice_equal_string(name, "system_auth") ||
	    slice_equal_string(name, "system_distributed") ||
	    slice_equal_string(name, "system_traces");
}

/* Index what the keyspaces hold and compute the version. */
static void
schema_finish(struct schema *schema)
{
	struct buffer content;
	uint8_t digest[16];
	uint32_t i, j;

	buffer_init(&content);
	map_init(&schema->keyspaces_by_name);
	map_init(&schema->tables_by_id);
	for (i = 0; i < schema->keyspace_count; i++) {
		struct keyspace_metadata *keyspace = schema->keyspaces[i];

		map_put(&schema->keyspaces_by_name, keyspace->name, keyspace);
		for (j = 0; j < keyspace->table_count; j++)
			map_put(&schema->tables_by_id, slice_of(keyspace->tables[j]->id.bytes, 16),
			    keyspace->tables[j]);
		if (!keyspace->is_virtual && !schema_is_local_keyspace(keyspace->name))
			schema_digest_keyspace(keyspace, &content);
	}
	if (content.is_failed)
		abort();
	md5(content.data != NULL ? buffer_slice(&content) : slice_empty, digest);
	/* The digest as a name-based uuid (version 3). */
	digest[6] = (digest[6] & 0x0f) | 0x30;
	digest[8] = (digest[8] & 0x3f) | 0x80;
	memcpy(schema->version.bytes, digest, 16);
	buffer_fini(&content);
}

struct schema *
schema_new(void)
{
	struct schema *schema = xzalloc(sizeof(*schema));

	atomic_init(&schema->refs, 1);
	schema_finish(schema);
	return schema;
}

struct schema *
schema_ref(const struct schema *schema)
{
	struct schema *mutable = (struct schema *)(uintptr_t)schema;

	refs_take(&mutable->refs);
	return mutable;
}

void
schema_unref(const struct schema *schema)
{
	struct schema *mutable = (struct schema *)(uintptr_t)schema;
	uint32_t i;

	if (schema == NULL || !refs_drop(&mutable->refs))
		return;
	map_fini(&mutable->keyspaces_by_name);
	map_fini(&mutable->tables_by_id);
	for (i = 0; i < mutable->keyspace_count; i++)
		keyspace_unref(mutable->keyspaces[i]);
	free(mutable->keyspaces);
	free(mutable);
}

const struct keyspace_metadata *
schema_keyspace(const struct schema *schema, struct slice name)
{
	return map_get(&schema->keyspaces_by_name, name);
}

const struct table_metadata *
schema_table(const struct schema *schema, struct slice keyspace, struct slice name)
{
	const struct keyspace_metadata *found = schema_keyspace(schema, keyspace);

	return found != NULL ? keyspace_table(found, name) : NULL;
}

const struct table_metadata *
schema_table_by_id(const struct schema *schema, const struct uuid *id)
{
	return map_get(&schema->tables_by_id, slice_of(id->bytes, 16));
}

const struct type *
schema_resolve_udt(void *user, struct slice keyspace, struct slice name)
{
	const struct keyspace_metadata *found;

	if (slice_is_null(keyspace))
		return NULL;
	found = schema_keyspace(user, keyspace);
	return found != NULL ? keyspace_type(found, name) : NULL;
}

/* The old keyspaces without `name`, with `added` in its place when it is not NULL. */
static struct schema *
schema_replace(
    const struct schema *schema, struct slice name, const struct keyspace_metadata *added)
{
	struct schema *copy = xzalloc(sizeof(*copy));
	uint32_t i = 0, n = 0;

	atomic_init(&copy->refs, 1);
	copy->keyspaces = xcalloc(schema->keyspace_count + 1, sizeof(*copy->keyspaces));
	for (; i < schema->keyspace_count && slice_compare(schema->keyspaces[i]->name, name) < 0;
	     i++)
		copy->keyspaces[n++] = keyspace_ref(schema->keyspaces[i]);
	if (added != NULL)
		copy->keyspaces[n++] = keyspace_ref(added);
	if (i < schema->keyspace_count && slice_equal(schema->keyspaces[i]->name, name))
		i++;
	for (; i < schema->keyspace_count; i++)
		copy->keyspaces[n++] = keyspace_ref(schema->keyspaces[i]);
	copy->keyspace_count = n;
	schema_finish(copy);
	return copy;
}

struct schema *
schema_with_keyspace(const struct schema *schema, const struct keyspace_metadata *keyspace)
{
	return schema_replace(schema, keyspace->name, keyspace);
}

struct schema *
schema_without_keyspace(const struct schema *schema, struct slice name)
{
	return schema_replace(schema, name, NULL);
}

struct schema *
schema_with_table(const struct schema *schema, const struct table_metadata *table)
{
	const struct keyspace_metadata *keyspace = schema_keyspace(schema, table->keyspace);
	struct keyspace_metadata *changed;
	struct schema *copy;

	assert(keyspace != NULL);
	changed = keyspace_with_table(keyspace, table);
	copy = schema_with_keyspace(schema, changed);
	keyspace_unref(changed);
	return copy;
}
