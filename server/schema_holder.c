/* SPDX-License-Identifier: Apache-2.0 */
#include "server/schema_holder.h"

enum { SCHEMA_HOLDER_LOCK_RANK = 50 };

void
schema_holder_init(struct schema_holder *holder)
{
	lock_init(&holder->lock, "schema_holder", SCHEMA_HOLDER_LOCK_RANK);
	holder->schema = schema_new();
}

void
schema_holder_fini(struct schema_holder *holder)
{
	schema_unref(holder->schema);
	lock_fini(&holder->lock);
}

struct schema *
schema_holder_get(struct schema_holder *holder)
{
	struct schema *schema;

	lock_take(&holder->lock);
	schema = schema_ref(holder->schema);
	lock_drop(&holder->lock);
	return schema;
}

void
schema_holder_set(struct schema_holder *holder, struct schema *schema)
{
	struct schema *old;

	schema_ref(schema);
	lock_take(&holder->lock);
	old = holder->schema;
	holder->schema = schema;
	lock_drop(&holder->lock);
	schema_unref(old);
}
