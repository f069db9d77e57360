/* SPDX-License-Identifier: Apache-2.0 */

/* What is read from Cassandra's SSTables is what its sstabledump says of them. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "cql/json.h"
#include "tests/unit/storage/sstable_fixture.h"

/* All numbers as doubles: a varint may be larger than any integer that jansson has. */
enum { JSON_READ_FLAGS = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL };

static json_t *
json_text(struct slice text)
{
	return json_stringn((const char *)text.data, text.size);
}

/* Java's Instant.toString(): no fraction, or three digits, or six. */
static json_t *
json_instant(int64_t us)
{
	time_t seconds = us / 1000000;
	int64_t fraction = us % 1000000;
	char text[64], digits[16] = "";
	struct tm parts;

	gmtime_r(&seconds, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	if (fraction % 1000 != 0)
		snprintf(digits, sizeof(digits), ".%06d", (int)fraction);
	else if (fraction != 0)
		snprintf(digits, sizeof(digits), ".%03d", (int)(fraction / 1000));
	return json_sprintf("%s%sZ", text, digits);
}

static json_t *
json_seconds(int32_t seconds)
{
	return json_instant((int64_t)seconds * 1000000);
}

static json_t *
json_value(const struct type *type, struct slice value)
{
	struct buffer text;
	json_t *json;

	/* sstabledump shows the first eight bytes of the counter's context. */
	if (type->kind == TYPE_COUNTER)
		return json_real((double)(int64_t)load_u64(value.data));
	buffer_init(&text);
	json_from_value(type, value, &text);
	json =
	    json_loadb((const char *)text.data, text.size, JSON_DECODE_ANY | JSON_READ_FLAGS, NULL);
	ck_assert_msg(json != NULL, "%.*s", (int)text.size, (const char *)text.data);
	buffer_fini(&text);
	return json;
}

/* A name as CQL writes it. */
static json_t *
json_name(struct slice name)
{
	for (size_t i = 0; i < name.size; i++) {
		if (name.data[i] >= 'A' && name.data[i] <= 'Z')
			return json_sprintf("\"%.*s\"", (int)name.size, (const char *)name.data);
	}
	return json_text(name);
}

/* AbstractType.getString(): the JSON text without its quotes; blobs have no 0x. */
static json_t *
json_string_of(const struct type *type, struct slice value)
{
	json_t *json = json_value(type, value);
	struct buffer text;

	if (type->kind == TYPE_BLOB) {
		json_t *string = json_string(json_string_value(json) + 2);

		json_decref(json);
		return string;
	}
	if (json_is_string(json))
		return json;
	json_decref(json);
	buffer_init(&text);
	json_from_value(type, value, &text);
	json = json_text(buffer_slice(&text));
	buffer_fini(&text);
	return json;
}

static json_t *
json_deletion(struct deletion deletion)
{
	json_t *json = json_object();

	json_object_set_new(json, "marked_deleted", json_instant(deletion.marked_for_delete_at));
	json_object_set_new(json, "local_delete_time", json_seconds(deletion.local_deletion_time));
	return json;
}

static json_t *
json_path(const struct column_metadata *column, struct slice path)
{
	json_t *json = json_array();

	if (column->type->kind == TYPE_UDT)
		json_array_append_new(json, json_text(column->type->fields[load_u16(path.data)]));
	else
		json_array_append_new(json, json_string_of(type_cell_path(column->type), path));
	return json;
}

static json_t *
json_cell(const struct cell *cell, const struct liveness *liveness)
{
	bool has_liveness = liveness->timestamp != TIMESTAMP_NONE;
	json_t *json = json_object();

	json_object_set_new(json, "name", json_name(cell->column->name));
	if (cell->column->is_complex)
		json_object_set_new(json, "path", json_path(cell->column, cell->path));
	if (cell_is_tombstone(cell)) {
		json_t *deletion = json_object();

		json_object_set_new(
		    deletion, "local_delete_time", json_seconds(cell->local_deletion_time));
		json_object_set_new(json, "deletion_info", deletion);
	} else {
		const struct type *type = cell->column->is_complex
		    ? type_cell_value(cell->column->type, cell->path)
		    : cell->column->type;

		json_object_set_new(json, "value",
		    type->kind == TYPE_EMPTY ? json_string("") : json_value(type, cell->value));
	}
	if (!has_liveness || cell->timestamp != liveness->timestamp)
		json_object_set_new(json, "tstamp", json_instant(cell->timestamp));
	if (cell->ttl != TTL_NONE && (!has_liveness || cell->ttl != liveness->ttl)) {
		json_object_set_new(json, "ttl", json_real(cell->ttl));
		json_object_set_new(json, "expires_at", json_seconds(cell->local_deletion_time));
	}
	return json;
}

static json_t *
json_cells(const struct row *row)
{
	json_t *json = json_array();
	uint32_t deletion = 0, cell = 0;

	/* A column's deletion stands before its cells. */
	while (deletion < row->complex_deletion_count || cell < row->cell_count) {
		const struct complex_deletion *next = &row->complex_deletions[deletion];

		if (deletion < row->complex_deletion_count &&
		    (cell == row->cell_count ||
			next->column->position <= row->cells[cell].column->position)) {
			json_t *object = json_object();

			json_object_set_new(object, "name", json_name(next->column->name));
			json_object_set_new(object, "deletion_info", json_deletion(next->deletion));
			json_array_append_new(json, object);
			deletion++;
		} else {
			json_array_append_new(json, json_cell(&row->cells[cell++], &row->liveness));
		}
	}
	return json;
}

static json_t *
json_clustering(const struct table_metadata *table, const struct slice *values, uint32_t count)
{
	json_t *json = json_array();

	for (uint32_t i = 0; i < table->clustering_count; i++)
		json_array_append_new(json,
		    i < count ? json_value(table->clustering[i].type, values[i])
			      : json_string("*"));
	return json;
}

static json_t *
json_row(const struct table_metadata *table, const struct row *row)
{
	json_t *json = json_object();

	json_object_set_new(json, "type", json_string(row->is_static ? "static_block" : "row"));
	if (row->clustering_count > 0)
		json_object_set_new(json, "clustering",
		    json_clustering(table, row->clustering, row->clustering_count));
	if (row->liveness.timestamp != TIMESTAMP_NONE) {
		json_t *liveness = json_object();

		json_object_set_new(liveness, "tstamp", json_instant(row->liveness.timestamp));
		if (row->liveness.ttl != TTL_NONE) {
			json_object_set_new(liveness, "ttl", json_real(row->liveness.ttl));
			json_object_set_new(liveness, "expires_at",
			    json_seconds(row->liveness.local_expiration_time));
		}
		json_object_set_new(json, "liveness_info", liveness);
	}
	if (!deletion_is_live(row->deletion))
		json_object_set_new(json, "deletion_info", json_deletion(row->deletion));
	json_object_set_new(json, "cells", json_cells(row));
	return json;
}

static json_t *
json_bound(const struct table_metadata *table, const struct marker *marker, bool is_inclusive,
    struct deletion deletion)
{
	json_t *json = json_object();

	json_object_set_new(json, "type", json_string(is_inclusive ? "inclusive" : "exclusive"));
	if (marker->clustering_count > 0)
		json_object_set_new(json, "clustering",
		    json_clustering(table, marker->clustering, marker->clustering_count));
	json_object_set_new(json, "deletion_info", json_deletion(deletion));
	return json;
}

static json_t *
json_marker(const struct table_metadata *table, const struct marker *marker)
{
	bool is_boundary = bound_opens(marker->kind) && bound_closes(marker->kind);
	json_t *json = json_object();

	json_object_set_new(json, "type",
	    json_string(is_boundary ? "range_tombstone_boundary" : "range_tombstone_bound"));
	if (bound_opens(marker->kind))
		json_object_set_new(json, "start",
		    json_bound(table, marker,
			marker->kind == BOUND_INCL_START ||
			    marker->kind == BOUND_EXCL_END_INCL_START,
			marker->open));
	if (bound_closes(marker->kind))
		json_object_set_new(json, "end",
		    json_bound(table, marker,
			marker->kind == BOUND_INCL_END || marker->kind == BOUND_INCL_END_EXCL_START,
			marker->close));
	return json;
}

static json_t *
json_key(const struct table_metadata *table, struct slice key)
{
	json_t *json = json_array();
	struct slice components[8];
	struct error err;

	ck_assert_int_eq(table_partition_key_split(table, key, components, &err), 0);
	for (uint32_t i = 0; i < table->partition_key_count; i++)
		json_array_append_new(
		    json, json_string_of(table->partition_key[i].type, components[i]));
	return json;
}

static json_t *
json_partition(const struct table_metadata *table, struct unfiltered_iterator *partition)
{
	json_t *json = json_object(), *head = json_object(), *rows = json_array();
	struct unfiltered item;
	struct error err;
	int rc;

	json_object_set_new(head, "key", json_key(table, partition->key));
	if (!deletion_is_live(partition->partition_deletion))
		json_object_set_new(
		    head, "deletion_info", json_deletion(partition->partition_deletion));
	if (partition->has_static_row)
		json_array_append_new(rows, json_row(table, &partition->static_row));
	while ((rc = unfiltered_iterator_next(partition, &item, &err)) > 0)
		json_array_append_new(rows,
		    item.kind == UNFILTERED_ROW ? json_row(table, &item.row)
						: json_marker(table, &item.marker));
	ck_assert_msg(rc == 0, "%s", err.text);
	json_object_set_new(json, "partition", head);
	json_object_set_new(json, "rows", rows);
	return json;
}

/* Positions are checked by the other test; whether something has expired depends on the day. */
static void
json_strip(json_t *json)
{
	const char *key;
	json_t *value;
	void *next;
	size_t i;

	if (json_is_array(json)) {
		json_array_foreach(json, i, value) json_strip(value);
		return;
	}
	if (!json_is_object(json))
		return;
	json_object_del(json, "position");
	json_object_del(json, "expired");
	json_object_foreach_safe(json, next, key, value) json_strip(value);
}

START_TEST(test_fixture_is_what_its_dump_says)
{
	const struct fixture *fixture = &fixtures[_i];
	struct env *env = env_posix_new();
	struct sstable_context context = {.env = env};
	struct table_metadata *table = fixture_table(fixture->table);
	struct partition_iterator *scan;
	struct unfiltered_iterator *partition;
	struct sstable *sstable = NULL;
	struct error err = {0};
	struct arena arena;
	char path[512];
	json_error_t problem;
	json_t *dump;
	size_t next = 0;
	int rc;

	if (fixture->is_compacted)
		goto done; /* came later, without a dump */
	snprintf(path, sizeof(path), "tests/data/cassandra-4.1/dump/%s.%d.json", fixture->table,
	    (int)fixture->generation);
	dump = json_load_file(path, JSON_READ_FLAGS, &problem);
	ck_assert_msg(dump != NULL, "%s: %d: %s", path, problem.line, problem.text);
	json_strip(dump);
	/* What was dropped since is not read any more: the first cell of the first row, column a. */
	if (strcmp(fixture->table, "dropped") == 0 && fixture->generation == 1)
		json_array_remove(
		    json_object_get(
			json_array_get(json_object_get(json_array_get(dump, 0), "rows"), 0),
			"cells"),
		    0);
	fixture_directory(fixture->table, path, sizeof(path));
	ck_assert_int_eq(
	    sstable_open(&context,
		&(struct sstable_descriptor){path, {.generation = fixture->generation}}, table,
		&sstable, &err),
	    0);
	arena_init(&arena, 1 << 16);
	ck_assert_int_eq(sstable_scan(sstable, NULL, NULL, 0, &arena, &scan, &err), 0);
	while ((rc = partition_iterator_next(scan, &partition, &err)) > 0) {
		json_t *actual = json_partition(table, partition);
		json_t *expected = json_array_get(dump, next++);

		if (!json_equal(actual, expected))
			ck_abort_msg("%s: partition %zu is\n%.3000s\nand not\n%.3000s",
			    fixture->table, next - 1, json_dumps(actual, 0),
			    expected == NULL ? "(none)" : json_dumps(expected, 0));
		json_decref(actual);
		unfiltered_iterator_close(partition);
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	ck_assert_uint_eq(next, json_array_size(dump));
	partition_iterator_close(scan);
	arena_fini(&arena);
	json_decref(dump);
	sstable_unref(sstable);
done:
	table_unref(table);
	env_free(env);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sstable_dump");
	TCase *tcase = tcase_create("dump");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, test_fixture_is_what_its_dump_says, 0, FIXTURE_COUNT);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
