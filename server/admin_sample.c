/* SPDX-License-Identifier: Apache-2.0 */
/* toppartitions, profileload: which partitions are read and written most, and worst, while the call lasts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cql/parser.h"
#include "cql/value.h"
#include "server/admin_internal.h"
#include "server/node.h"
#include "server/operations.h"
#include "storage/store.h"

enum { ADMIN_SAMPLE_MS_MAX = 600 * 1000 };

/* As the answer names them. */
static const char *const admin_sampler_names[STORE_SAMPLERS] = {
    [STORE_SAMPLE_READS] = "READS",
    [STORE_SAMPLE_WRITES] = "WRITES",
    [STORE_SAMPLE_CAS_CONTENTIONS] = "CAS_CONTENTIONS",
    [STORE_SAMPLE_WRITE_SIZE] = "WRITE_SIZE",
    [STORE_SAMPLE_READ_TIME] = "LOCAL_READ_TIME",
};

struct admin_samples {
	struct schema *schema;
	const struct table_metadata *table;
	enum store_sampler which;
	json_t *list; /* of all tables */
};

/* The parts of a composite key are shown with ':' between them, as nodetool takes them. */
static void
admin_print_key(const struct table_metadata *table, struct slice key, struct buffer *out)
{
	struct reader reader = reader_of(key);

	if (table->partition_key_count == 1) {
		value_to_string(table->partition_key[0].type, key, out);
		return;
	}
	for (uint32_t i = 0; i < table->partition_key_count && !reader.is_failed; i++) {
		struct slice part = reader_bytes(&reader, reader_u16(&reader));

		(void)reader_u8(&reader);
		if (i > 0)
			buffer_put_u8(out, ':');
		value_to_string(table->partition_key[i].type, part, out);
	}
}

/* What was read, as CQL. */
static void
admin_print_query(const struct table_metadata *table, struct slice key, struct buffer *out)
{
	buffer_put_string(out, "SELECT * FROM ");
	cql_quote_identifier(table->keyspace, out);
	buffer_put_u8(out, '.');
	cql_quote_identifier(table->name, out);
	buffer_put_string(out, " WHERE ");
	for (uint32_t i = 0; i < table->partition_key_count; i++) {
		if (i > 0)
			buffer_put_u8(out, ':');
		cql_quote_identifier(table->partition_key[i].name, out);
	}
	buffer_put_string(out, " = ");
	admin_print_key(table, key, out);
}

static void
admin_add_sample(void *argument, const struct store_sample *sample)
{
	struct admin_samples *samples = argument;
	const struct table_metadata *table = samples->table;
	json_t *json = json_object(), *text;
	struct buffer key, name;

	buffer_init(&key);
	buffer_init(&name);
	if (samples->which == STORE_SAMPLE_READ_TIME)
		admin_print_query(table, sample->key, &key);
	else
		admin_print_key(table, sample->key, &key);
	buffer_printf(&name, "%.*s.%.*s", (int)table->keyspace.size,
	    (const char *)table->keyspace.data, (int)table->name.size,
	    (const char *)table->name.data);
	text = json_stringn((const char *)key.data, key.size);
	json_object_set_new(json, "table", json_stringn((const char *)name.data, name.size));
	json_object_set_new(json, "key", text == NULL ? json_string("?") : text);
	json_object_set_new(json, "count", json_integer((json_int_t)sample->count));
	json_object_set_new(json, "error", json_integer((json_int_t)sample->error));
	json_array_append_new(samples->list, json);
	buffer_fini(&key);
	buffer_fini(&name);
}

static void
admin_sleep(int64_t ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

static int
admin_sample_order(const void *a, const void *b)
{
	json_int_t left = json_integer_value(json_object_get(*(json_t *const *)a, "count"));
	json_int_t right = json_integer_value(json_object_get(*(json_t *const *)b, "count"));

	return left > right ? -1 : left < right;
}

/* The first `limit` of all tables' samples; takes the list. */
static json_t *
admin_sample_best(json_t *list, size_t limit)
{
	size_t count = json_array_size(list);
	json_t **sorted = xcalloc(count + 1, sizeof(*sorted)), *best = json_array();

	for (size_t i = 0; i < count; i++)
		sorted[i] = json_array_get(list, i);
	qsort(sorted, count, sizeof(*sorted), admin_sample_order);
	for (size_t i = 0; i < count && i < limit; i++)
		json_array_append(best, sorted[i]);
	free(sorted);
	json_decref(list);
	return best;
}

/* Without a table: those of the keyspace, without a keyspace: all. */
static int
admin_sample_tables(
    struct admin_call *call, struct table_store ***tables, uint32_t *count, struct error *err)
{
	const char *keyspace = admin_argument(call, "keyspace");
	const char *name = admin_argument(call, "table");
	struct table_store *table;

	if (keyspace == NULL || name == NULL)
		return admin_tables(call, tables, count, err);
	table = store_find_table(call->node->store, keyspace, name);
	if (table == NULL)
		return error_set(err, ERROR_INVALID, "Unknown table %s.%s", keyspace, name);
	*tables = xcalloc(1, sizeof(**tables));
	**tables = table;
	*count = 1;
	return 0;
}

/* What the samplers of the tables hold, of those that this call started. */
static void
admin_sample_collect(struct admin_call *call, struct table_store **tables, uint32_t count,
    const bool *is_started, enum store_sampler which, int64_t limit)
{
	struct admin_samples samples = {.which = which,
	    .list = json_array(),
	    .schema = operations_schema(call->node->executor)};
	json_t *json = json_object();
	uint64_t all = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t seen = 0;

		if (!is_started[i * STORE_SAMPLERS + which])
			continue;
		samples.table = schema_table_by_id(samples.schema, table_store_id(tables[i]));
		/* A table that was dropped meanwhile has nothing to show. */
		store_sample_finish(tables[i], which, samples.table == NULL ? 0 : (uint32_t)limit,
		    &seen, admin_add_sample, &samples);
		all += seen;
	}
	json_object_set_new(json, "seen", json_integer((json_int_t)all));
	json_object_set_new(json, "partitions", admin_sample_best(samples.list, (size_t)limit));
	json_object_set_new(call->answer, admin_sampler_names[which], json);
	schema_unref(samples.schema);
}

int
admin_post_sample(struct admin_call *call, struct error *err)
{
	struct table_store **tables;
	int64_t ms, capacity, limit;
	uint32_t count, started = 0;
	bool *is_started;

	if (admin_need_number(call, "ms", 1, ADMIN_SAMPLE_MS_MAX, &ms, err) != 0 ||
	    admin_need_number(call, "capacity", 1, 1024, &capacity, err) != 0 ||
	    admin_need_number(call, "limit", 1, capacity, &limit, err) != 0 ||
	    admin_sample_tables(call, &tables, &count, err) != 0)
		return -1;
	is_started = xcalloc((size_t)count * STORE_SAMPLERS + 1, sizeof(*is_started));
	for (uint32_t i = 0; i < count * STORE_SAMPLERS; i++) {
		is_started[i] = store_sample_start(tables[i / STORE_SAMPLERS],
		    (enum store_sampler)(i % STORE_SAMPLERS), (uint32_t)capacity);
		started += is_started[i];
	}
	if (started > 0) {
		admin_sleep(ms);
		for (int which = 0; which < STORE_SAMPLERS; which++)
			admin_sample_collect(
			    call, tables, count, is_started, (enum store_sampler)which, limit);
	}
	free(is_started);
	free(tables);
	return started > 0 || count == 0
	    ? 0
	    : error_set(err, ERROR_INVALID, "a sampling of these tables runs already");
}
