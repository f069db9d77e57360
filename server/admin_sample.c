/* SPDX-License-Identifier: Apache-2.0 */
/* toppartitions: which partitions are read and written most while the call lasts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cql/value.h"
#include "server/admin_internal.h"
#include "server/node.h"
#include "server/operations.h"
#include "storage/store.h"

enum { ADMIN_SAMPLE_MS_MAX = 600 * 1000 };

struct admin_sample {
	struct schema *schema;
	const char *keyspace, *table;
	json_t *list;
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

static void
admin_add_sample(void *argument, const struct store_sample *sample)
{
	struct admin_sample *samples = argument;
	const struct table_metadata *table = schema_table(
	    samples->schema, slice_of_string(samples->keyspace), slice_of_string(samples->table));
	json_t *json = json_object(), *text;
	struct buffer key;

	buffer_init(&key);
	if (table != NULL)
		admin_print_key(table, sample->key, &key);
	text = json_stringn((const char *)key.data, key.size);
	json_object_set_new(json, "key", text == NULL ? json_string("?") : text);
	json_object_set_new(json, "count", json_integer((json_int_t)sample->count));
	json_object_set_new(json, "error", json_integer((json_int_t)sample->error));
	json_array_append_new(samples->list, json);
	buffer_fini(&key);
}

static void
admin_sleep(int64_t ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

int
admin_post_sample(struct admin_call *call, struct error *err)
{
	static const char *const names[STORE_SAMPLERS] = {
	    [STORE_SAMPLE_READS] = "reads", [STORE_SAMPLE_WRITES] = "writes"};
	struct admin_sample samples = {0};
	struct table_store *table;
	int64_t ms, capacity, limit;
	bool is_started[STORE_SAMPLERS] = {false};

	if (admin_need(call, "keyspace", &samples.keyspace, err) != 0 ||
	    admin_need(call, "table", &samples.table, err) != 0 ||
	    admin_need_number(call, "ms", 1, ADMIN_SAMPLE_MS_MAX, &ms, err) != 0 ||
	    admin_need_number(call, "capacity", 1, 65536, &capacity, err) != 0 ||
	    admin_need_number(call, "limit", 1, capacity, &limit, err) != 0)
		return -1;
	table = store_find_table(call->node->store, samples.keyspace, samples.table);
	if (table == NULL)
		return error_set(
		    err, ERROR_INVALID, "Unknown table %s.%s", samples.keyspace, samples.table);
	for (int i = 0; i < STORE_SAMPLERS; i++)
		is_started[i] =
		    store_sample_start(table, (enum store_sampler)i, (uint32_t)capacity);
	if (!is_started[STORE_SAMPLE_READS] && !is_started[STORE_SAMPLE_WRITES])
		return error_set(err, ERROR_INVALID, "a sampling of %s.%s runs already",
		    samples.keyspace, samples.table);
	admin_sleep(ms);
	samples.schema = operations_schema(call->node->executor);
	for (int i = 0; i < STORE_SAMPLERS; i++) {
		json_t *json = json_object();
		uint64_t seen = 0;

		samples.list = json_array();
		if (is_started[i])
			store_sample_finish(table, (enum store_sampler)i, (uint32_t)limit, &seen,
			    admin_add_sample, &samples);
		json_object_set_new(json, "seen", json_integer((json_int_t)seen));
		json_object_set_new(json, "partitions", samples.list);
		json_object_set_new(call->answer, names[i], json);
	}
	schema_unref(samples.schema);
	return 0;
}
