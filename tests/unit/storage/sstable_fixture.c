/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/storage/sstable_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/alloc.h"

#define FIXTURE_ROOT "tests/data/cassandra-4.1/data/fixture1"

const struct fixture fixtures[FIXTURE_COUNT] = {
    {"collections", 1, false},
    {"composite", 1, false},
    {"counts", 1, false},
    {"dropped", 1, false},
    {"dropped", 2, false},
    {"plain_deflate", 1, false},
    {"plain_deflate", 2, true},
    {"plain_lz4", 1, false},
    {"plain_lz4", 2, false},
    {"plain_none", 1, false},
    {"plain_small_chunks", 1, false},
    {"plain_snappy", 1, false},
    {"plain_zstd", 1, false},
    {"plain_zstd", 2, true},
    {"stress_like", 1, false},
    {"tombs", 1, false},
    {"types", 1, false},
    {"wide", 1, false},
};

/* kind name type; kind: p partition key, c clustering, C clustering descending, s static, r regular. */
static const struct {
	const char *table;
	const char *columns;
} fixture_schemas[] = {
    {"plain", "p pk int,c ck int,r v text,r b blob"},
    {"types",
	"p id int,r a ascii,r b bigint,r bl blob,r bo boolean,r d date,r de decimal,r db double,"
	"r du duration,r f float,r i inet,r n int,r si smallint,r t text,r ti time,r ts timestamp,"
	"r tu timeuuid,r ty tinyint,r u uuid,r vi varint"},
    {"collections",
	"p pk text,c ck int,r l list<int>,r st set<text>,r m map<int;text>,r fl frozen<list<int>>,"
	"r fm frozen<map<text;frozen<set<int>>>>,r tp tuple<int;text;frozen<list<int>>>,"
	"r ad address,r fad frozen<address>"},
    {"tombs", "p pk int,C c1 int,c c2 text,s st text,s st2 int,r v int,r w text"},
    {"wide", "p pk int,C ck timeuuid,r v text"},
    {"composite", "p a int,p b text,C c int,C d text,r v set<int>"},
    {"counts", "p pk text,c ck int,r hits counter,r miss counter"},
    {"stress_like", "p key blob,r C0 blob,r C1 blob,r C2 blob,r C3 blob,r C4 blob"},
    {"dropped", "p pk int,r b text,r c int"},
};

static const struct type *
fixture_resolve(void *user, struct slice keyspace, struct slice name)
{
	struct arena *arena = user;
	const struct type *set = type_set(arena, type_native(TYPE_TEXT), false);
	const struct type *params[] = {type_native(TYPE_TEXT), type_native(TYPE_INT), set};
	const struct slice fields[] = {
	    slice_of_string("street"), slice_of_string("zip"), slice_of_string("tags")};

	(void)keyspace;
	(void)name;
	return type_udt(arena, slice_of_string("fixture1"), slice_of_string("address"), fields,
	    params, 3, true);
}

static enum column_kind
fixture_kind(char letter)
{
	switch (letter) {
	case 'p':
		return COLUMN_PARTITION_KEY;
	case 'c':
	case 'C':
		return COLUMN_CLUSTERING;
	case 's':
		return COLUMN_STATIC;
	default:
		return COLUMN_REGULAR;
	}
}

static void
fixture_add_column(struct table_builder *builder, char *text)
{
	struct arena *arena = table_builder_arena(builder);
	char *name = text + 2;
	char *type_text = strchr(name, ' ');
	const struct type *type;
	struct error err;

	*type_text++ = 0;
	for (char *at = type_text; *at != 0; at++) {
		if (*at == ';')
			*at = ',';
	}
	if (type_parse_cql(
		slice_of_string(type_text), fixture_resolve, arena, arena, &type, &err) != 0) {
		fprintf(stderr, "%s: %s\n", type_text, err.text);
		abort();
	}
	table_builder_add_column(
	    builder, fixture_kind(text[0]), slice_of_string(name), type, text[0] == 'C');
}

struct table_metadata *
fixture_table(const char *name)
{
	const char *shape = strncmp(name, "plain", 5) == 0 ? "plain" : name;
	struct table_builder *builder =
	    table_builder_new(slice_of_string("fixture1"), slice_of_string(name));
	struct table_metadata *table = NULL;
	struct table_options *options = table_builder_options(builder);
	struct error err;

	for (size_t i = 0; i < sizeof(fixture_schemas) / sizeof(fixture_schemas[0]); i++) {
		char *columns, *rest, *column;

		if (strcmp(fixture_schemas[i].table, shape) != 0)
			continue;
		columns = rest = xstrdup(fixture_schemas[i].columns);
		while ((column = strsep(&rest, ",")) != NULL)
			fixture_add_column(builder, column);
		free(columns);
	}
	if (strcmp(shape, "counts") == 0)
		table_builder_set_flags(builder, TABLE_COMPOUND | TABLE_COUNTER);
	if (strcmp(name, "dropped") == 0)
		table_builder_add_dropped(builder, COLUMN_REGULAR, slice_of_string("a"),
		    type_native(TYPE_INT), INT64_C(1600000000000000) + 1000000000);
	options->compressor = strcmp(name, "plain_zstd") == 0 ? COMPRESSOR_ZSTD
	    : strcmp(name, "plain_snappy") == 0               ? COMPRESSOR_SNAPPY
	    : strcmp(name, "plain_deflate") == 0              ? COMPRESSOR_DEFLATE
	    : strcmp(name, "plain_none") == 0 || strcmp(name, "stress_like") == 0 ? COMPRESSOR_NONE
										  : COMPRESSOR_LZ4;
	options->chunk_length = strcmp(name, "plain_small_chunks") == 0 ? 4096 : 16384;
	if (table_builder_build(builder, &table, &err) != 0) {
		fprintf(stderr, "%s: %s\n", name, err.text);
		abort();
	}
	table_builder_free(builder);
	return table;
}

void
fixture_directory(const char *name, char *out, size_t size)
{
	struct env *env = env_posix_new();
	struct file_list list;
	struct error err;
	size_t length = strlen(name);

	if (files_list(env->files, FIXTURE_ROOT, &list, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	out[0] = 0;
	for (size_t i = 0; i < list.count; i++) {
		if (strncmp(list.entries[i].name, name, length) == 0 &&
		    list.entries[i].name[length] == '-')
			snprintf(out, size, "%s/%s", FIXTURE_ROOT, list.entries[i].name);
	}
	file_list_fini(&list);
	env_free(env);
}

char *
scratch_new(void)
{
	/* In memory where that is possible: the many fsyncs of these tests prove nothing here. */
	char *path = xstrdup(access("/dev/shm", W_OK) == 0 ? "/dev/shm/helenus-sstable-XXXXXX"
							   : "/tmp/helenus-sstable-XXXXXX");

	if (mkdtemp(path) == NULL)
		abort();
	return path;
}

void
scratch_free(struct env *env, char *directory)
{
	files_remove_tree(env->files, directory, NULL);
	free(directory);
}

struct buffer
component_bytes(
    struct env *env, const struct sstable_descriptor *descriptor, enum sstable_component component)
{
	char path[SSTABLE_PATH_MAX];
	struct buffer bytes;
	struct error err;

	buffer_init(&bytes);
	if (sstable_path(descriptor, component, path, &err) != 0 ||
	    files_read_all(env->files, path, 1 << 30, &bytes, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return bytes;
}
