/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/repair_internal.h"
#include "cluster/repair_message.h"

/*
 * What this node did as a participant (repair/state/ParticipateState, ValidationState): kept for those who look on, also when the
 * parent is gone. The list is under repairs->lock; who works for a parent that is open has its trail without.
 */

enum { REPAIR_TRAILS_KEPT = 100 };

static void
repair_validation_free(struct repair_validation *validation)
{
	free(validation->table);
	free(validation->ranges);
	free(validation);
}

static void
repair_trail_free(struct repair_trail *trail)
{
	for (uint32_t i = 0; i < trail->validation_count; i++)
		repair_validation_free(trail->validations[i]);
	free(trail->validations);
	for (uint32_t i = 0; i < trail->table_count; i++)
		free(trail->tables[i]);
	free(trail->tables);
	free(trail->ranges);
	free(trail->keyspace);
	free(trail);
}

static struct ring_range *
repair_copy_ranges(const struct ring_range *ranges, uint32_t count)
{
	struct ring_range *copy = xcalloc((size_t)count + 1, sizeof(*copy));

	if (count > 0)
		memcpy(copy, ranges, count * sizeof(*copy));
	return copy;
}

/* Those that were dropped have no name any more. */
static void
repair_trail_name_tables(
    struct repairs *repairs, struct repair_trail *trail, const struct repair_message *message)
{
	struct schema *schema = repairs->ops.schema(repairs->ops.context);

	trail->tables = xcalloc((size_t)message->table_count + 1, sizeof(*trail->tables));
	for (uint32_t i = 0; i < message->table_count; i++) {
		const struct table_metadata *table =
		    schema_table_by_id(schema, &message->tables[i]);

		if (table != NULL)
			trail->tables[trail->table_count++] = xasprintf("%.*s.%.*s",
			    (int)table->keyspace.size, (const char *)table->keyspace.data,
			    (int)table->name.size, (const char *)table->name.data);
	}
	schema_unref(schema);
}

/* Of closed ones that are many, the oldest. */
static struct repair_trail *
repair_trail_take_old_locked(struct repairs *repairs)
{
	struct repair_trail **at = &repairs->trails, **oldest = NULL, *old;
	uint32_t count = 0;

	for (; *at != NULL; at = &(*at)->next) {
		count++;
		if (!(*at)->is_open)
			oldest = at;
	}
	if (count <= REPAIR_TRAILS_KEPT || oldest == NULL)
		return NULL;
	old = *oldest;
	*oldest = old->next;
	return old;
}

struct repair_trail *
repair_trail_open(
    struct repairs *repairs, const struct repair_message *message, const struct endpoint *initiator)
{
	struct repair_trail *trail = xzalloc(sizeof(*trail)), *old;

	trail->id = message->parent;
	trail->initiator = *initiator;
	trail->keyspace = xstrndup((const char *)message->keyspace.data, message->keyspace.size);
	trail->ranges = repair_copy_ranges(message->ranges, message->range_count);
	trail->range_count = message->range_count;
	trail->is_incremental = (message->flags & REPAIR_IS_INCREMENTAL) != 0;
	trail->is_global = (message->flags & REPAIR_IS_GLOBAL) != 0;
	trail->preview = (enum repair_preview)message->preview;
	trail->repaired_at = message->repaired_at;
	trail->is_open = true;
	repair_trail_name_tables(repairs, trail, message);
	repair_reach(repairs, &trail->history, 0);
	lock_take(&repairs->lock);
	trail->next = repairs->trails;
	repairs->trails = trail;
	old = repair_trail_take_old_locked(repairs);
	lock_drop(&repairs->lock);
	if (old != NULL)
		repair_trail_free(old);
	return trail;
}

void
repair_trail_end(struct repairs *repairs, struct repair_trail *trail, const char *why)
{
	repair_reach_end(repairs, &trail->history,
	    why == NULL ? REPAIR_RESULT_SUCCESS : REPAIR_RESULT_FAILURE,
	    why == NULL ? "Cleanup message received" : why);
}

void
repair_trail_release(struct repairs *repairs, struct repair_trail *trail)
{
	if (trail == NULL)
		return;
	lock_take(&repairs->lock);
	trail->is_open = false;
	lock_drop(&repairs->lock);
}

/* The same on all participants (RepairJobDesc.determanisticId): a UUID of version 3, of the session and the table. */
static struct uuid
repair_validation_id(const struct repair_message *message)
{
	uint8_t digest[EVP_MAX_MD_SIZE], name[3 * sizeof(struct uuid)];
	struct uuid id;

	memcpy(name, message->parent.bytes, sizeof(id.bytes));
	memcpy(name + sizeof(id.bytes), message->session.bytes, sizeof(id.bytes));
	memcpy(name + 2 * sizeof(id.bytes), message->table.bytes, sizeof(id.bytes));
	memset(digest, 0, sizeof(digest));
	(void)EVP_Digest(name, sizeof(name), digest, NULL, EVP_md5(), NULL);
	memcpy(id.bytes, digest, sizeof(id.bytes));
	id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x30);
	id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80);
	return id;
}

struct repair_validation *
repair_trail_validation(
    struct repairs *repairs, struct repair_trail *trail, const struct repair_message *message)
{
	struct repair_validation *validation = xzalloc(sizeof(*validation));
	struct schema *schema = repairs->ops.schema(repairs->ops.context);
	const struct table_metadata *table = schema_table_by_id(schema, &message->table);

	validation->id = repair_validation_id(message);
	validation->session = message->session;
	validation->table =
	    table == NULL ? NULL : xstrndup((const char *)table->name.data, table->name.size);
	validation->ranges = repair_copy_ranges(message->ranges, message->range_count);
	validation->range_count = message->range_count;
	schema_unref(schema);
	repair_reach(repairs, &validation->history, REPAIR_VALIDATION_INIT);
	lock_take(&repairs->lock);
	trail->validations = xrealloc(
	    trail->validations, (trail->validation_count + 1) * sizeof(struct repair_validation *));
	trail->validations[trail->validation_count++] = validation;
	lock_drop(&repairs->lock);
	return validation;
}

/* ---- looking on ---- */

static uint64_t
repair_figure(const _Atomic uint64_t *figure)
{
	return atomic_load_explicit(figure, memory_order_relaxed);
}

static void
repair_look_at_validation(const struct repair_trail *trail,
    const struct repair_validation *validation,
    void (*each)(void *context, const struct repair_view *view), void *context)
{
	const struct repair_view view = {.kind = REPAIR_VIEW_VALIDATION,
	    .id = validation->id,
	    .parent = trail->id,
	    .session = validation->session,
	    .history = &validation->history,
	    .keyspace = trail->keyspace,
	    .tables = (const char *const *)&validation->table,
	    .table_count = validation->table != NULL,
	    .ranges = validation->ranges,
	    .range_count = validation->range_count,
	    .initiator = &trail->initiator,
	    .estimated_partitions = repair_figure(&validation->estimated_partitions),
	    .estimated_bytes = repair_figure(&validation->estimated_bytes),
	    .partitions = repair_figure(&validation->partitions),
	    .bytes = repair_figure(&validation->bytes)};

	each(context, &view);
}

static void
repair_look_at_trail(const struct repair_trail *trail,
    void (*each)(void *context, const struct repair_view *view), void *context)
{
	struct uuid *validations =
	    xcalloc((size_t)trail->validation_count + 1, sizeof(*validations));
	const struct repair_view view = {.kind = REPAIR_VIEW_PARTICIPATE,
	    .id = trail->id,
	    .parent = trail->id,
	    .history = &trail->history,
	    .keyspace = trail->keyspace,
	    .tables = (const char *const *)trail->tables,
	    .table_count = trail->table_count,
	    .ranges = trail->ranges,
	    .range_count = trail->range_count,
	    .children = validations,
	    .child_count = trail->validation_count,
	    .initiator = &trail->initiator,
	    .is_incremental = trail->is_incremental,
	    .is_global = trail->is_global,
	    .preview = trail->preview,
	    .repaired_at = trail->repaired_at};

	for (uint32_t i = 0; i < trail->validation_count; i++)
		validations[i] = trail->validations[i]->id;
	each(context, &view);
	free(validations);
}

void
repair_trails_each(struct repairs *repairs, enum repair_view_kind kind,
    void (*each)(void *context, const struct repair_view *view), void *context)
{
	lock_assert_held(&repairs->lock);
	for (const struct repair_trail *trail = repairs->trails; trail != NULL;
	     trail = trail->next) {
		if (kind == REPAIR_VIEW_PARTICIPATE)
			repair_look_at_trail(trail, each, context);
		for (uint32_t i = 0; i < trail->validation_count && kind == REPAIR_VIEW_VALIDATION;
		     i++)
			repair_look_at_validation(trail, trail->validations[i], each, context);
	}
}

void
repair_trails_free(struct repairs *repairs)
{
	while (repairs->trails != NULL) {
		struct repair_trail *trail = repairs->trails;

		repairs->trails = trail->next;
		repair_trail_free(trail);
	}
}
