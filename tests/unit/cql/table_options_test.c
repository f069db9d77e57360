/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "cql/table_options.h"

static struct arena arena;

static void
setup(void)
{
	arena_init(&arena, 4096);
}

static void
teardown(void)
{
	arena_fini(&arena);
}

/* "name=value" or "name={a:b,c:d}" applied to the defaults. */
static int
apply(const char *text, struct table_options *options, struct error *err)
{
	struct table_property property = {.map = {NULL, 0}};
	char *copy = arena_strdup(&arena, text);
	char *value = strchr(copy, '=');

	*value++ = '\0';
	property.name = slice_of_string(copy);
	if (*value == '{') {
		char *entry;

		property.is_map = true;
		value[strlen(value) - 1] = '\0';
		for (entry = strtok(value + 1, ","); entry != NULL; entry = strtok(NULL, ",")) {
			char *colon = strchr(entry, ':');

			*colon = '\0';
			option_map_put(&property.map, slice_of_string(entry),
			    slice_of_string(colon + 1), &arena);
		}
	} else {
		property.value = slice_of_string(value);
	}
	table_options_init(options);
	return table_options_apply(options, &property, 1, &arena, err);
}

static const char *
print(const struct table_options *options)
{
	struct buffer buffer;
	char *text;

	buffer_init(&buffer);
	table_options_print(options, false, &buffer);
	text = arena_strndup(&arena, (const char *)buffer.data, buffer.size);
	buffer_fini(&buffer);
	return text;
}

#define C "org.apache.cassandra.db.compaction."
#define Z "org.apache.cassandra.io.compress."

START_TEST(test_defaults_print_as_describe)
{
	struct table_options options;

	table_options_init(&options);
	ck_assert_str_eq(print(&options),
	    "additional_write_policy = '99p'\n"
	    "    AND bloom_filter_fp_chance = 0.01\n"
	    "    AND caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}\n"
	    "    AND cdc = false\n"
	    "    AND comment = ''\n"
	    "    AND compaction = {'class': '" C "SizeTieredCompactionStrategy', "
	    "'max_threshold': '32', 'min_threshold': '4'}\n"
	    "    AND compression = {'chunk_length_in_kb': '16', 'class': '" Z "LZ4Compressor'}\n"
	    "    AND memtable = 'default'\n"
	    "    AND crc_check_chance = 1.0\n"
	    "    AND default_time_to_live = 0\n"
	    "    AND extensions = {}\n"
	    "    AND gc_grace_seconds = 864000\n"
	    "    AND max_index_interval = 2048\n"
	    "    AND memtable_flush_period_in_ms = 0\n"
	    "    AND min_index_interval = 128\n"
	    "    AND read_repair = 'BLOCKING'\n"
	    "    AND speculative_retry = '99p'");
}
END_TEST

START_TEST(test_values_are_normalised_as_in_cassandra)
{
	static const char *const cases[][2] = {
	    {"comment=it's", "comment = 'it''s'"},
	    {"bloom_filter_fp_chance=0.00075", "bloom_filter_fp_chance = 7.5E-4"},
	    {"caching={keys:none,rows_per_partition:10}",
		"caching = {'keys': 'NONE', 'rows_per_partition': '10'}"},
	    {"caching={}", "caching = {'keys': 'NONE', 'rows_per_partition': 'NONE'}"},
	    {"cdc=yes", "cdc = true"},
	    {"read_repair=none", "read_repair = 'NONE'"},
	    {"speculative_retry=99.5PERCENTILE", "speculative_retry = '99.5p'"},
	    {"speculative_retry=50.5MS", "speculative_retry = '50ms'"},
	    {"speculative_retry=none", "speculative_retry = 'NEVER'"},
	    {"speculative_retry=MAX(50ms, 99p)", "speculative_retry = 'MAX(99p,50ms)'"},
	    {"compaction={class:LeveledCompactionStrategy,sstable_size_in_mb:10}",
		"compaction = {'class': '" C "LeveledCompactionStrategy', 'max_threshold': '32', "
		"'min_threshold': '4', 'sstable_size_in_mb': '10'}"},
	    {"compaction={class:LeveledCompactionStrategy}", "bloom_filter_fp_chance = 0.1"},
	    {"compression={}", "compression = {'enabled': 'false'}"},
	    {"compression={sstable_compression:DeflateCompressor,chunk_length_kb:64}",
		"compression = {'chunk_length_in_kb': '64', 'class': '" Z "DeflateCompressor'}"},
	    {"compression={class:LZ4Compressor,min_compress_ratio:2}",
		"compression = {'chunk_length_in_kb': '16', 'class': '" Z
		"LZ4Compressor', 'min_compress_ratio': '2.0'}"},
	    {"compression={class:LZ4Compressor,crc_check_chance:0.5}", "crc_check_chance = 0.5"},
	};
	struct table_options options;
	struct error err;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(
		    apply(cases[i][0], &options, &err) == 0, "%s: %s", cases[i][0], err.text);
		ck_assert_msg(strstr(print(&options), cases[i][1]) != NULL, "%s gives %s",
		    cases[i][0], print(&options));
	}
}
END_TEST

START_TEST(test_wrong_values_say_what_cassandra_says)
{
	static const struct {
		const char *property;
		enum error_code code;
		const char *text;
	} cases[] = {
	    {"foo=1", ERROR_SYNTAX, "Unknown property 'foo'"},
	    {"comment={a:b}", ERROR_SYNTAX,
		"Invalid value for property 'comment'. It should be a string"},
	    {"caching=ALL", ERROR_SYNTAX,
		"Invalid value for property 'caching'. It should be a map."},
	    {"bloom_filter_fp_chance=0", ERROR_CONFIG,
		"bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 "
		"(got 0.0)"},
	    {"bloom_filter_fp_chance=-1", ERROR_CONFIG,
		"bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 "
		"(got -1.0)"},
	    {"bloom_filter_fp_chance=abc", ERROR_SYNTAX,
		"Invalid double value abc for 'bloom_filter_fp_chance'"},
	    {"caching={keys:foo}", ERROR_CONFIG,
		"Invalid value 'foo' for caching sub-option 'keys': only 'ALL' and 'NONE' are "
		"allowed"},
	    {"cdc=maybe", ERROR_SYNTAX,
		"Invalid boolean value maybe for 'cdc'. Positive values can be '1', 'true' or "
		"'yes'. Negative values can be '0', 'false' or 'no'."},
	    {"crc_check_chance=-1", ERROR_CONFIG,
		"crc_check_chance must be larger than or equal to 0 and smaller than or equal to "
		"1.0 (got -1.0)"},
	    {"default_time_to_live=630720001", ERROR_CONFIG,
		"default_time_to_live must be less than or equal to 630720000 (got 630720001)"},
	    {"default_time_to_live=1.5", ERROR_SYNTAX,
		"Invalid integer value 1.5 for 'default_time_to_live'"},
	    {"max_index_interval=100", ERROR_CONFIG,
		"max_index_interval must be greater than or equal to min_index_interval (128) "
		"(got 100)"},
	    {"speculative_retry=100p", ERROR_CONFIG,
		"Invalid value 100p for PERCENTILE option 'speculative_retry': must be between "
		"(0.0 and 100.0)"},
	    {"speculative_retry=", ERROR_CONFIG, "Invalid value  for option 'speculative_retry'"},
	    {"speculative_retry=MIN(99p,98p)", ERROR_CONFIG,
		"Invalid value MIN(99p,98p) for option 'speculative_retry': MIN()/MAX() arguments "
		"should be of different types, but both are of type PERCENTILE"},
	    {"memtable=foo", ERROR_CONFIG, "Memtable configuration \"foo\" not found."},
	    {"compaction={}", ERROR_CONFIG,
		"Missing sub-option 'class' for the 'compaction' option"},
	    {"compaction={class:FooStrategy}", ERROR_CONFIG,
		"Unable to find compaction strategy class '" C "FooStrategy'"},
	    {"compaction={class:SizeTieredCompactionStrategy,min_threshold:40}", ERROR_CONFIG,
		"Min compaction threshold (got 40) cannot be greater than max compaction threshold "
		"(got 32)"},
	    {"compaction={class:SizeTieredCompactionStrategy,foo:bar}", ERROR_CONFIG,
		"Properties specified [foo] are not understood by SizeTieredCompactionStrategy"},
	    {"compaction={class:SizeTieredCompactionStrategy,bucket_low:2,bucket_high:1}",
		ERROR_CONFIG,
		"bucket_high value (1.0) is less than or equal to the bucket_low value (2.0)"},
	    {"compaction={class:LeveledCompactionStrategy,sstable_size_in_mb:0}", ERROR_CONFIG,
		"sstable_size_in_mb must be larger than 0, but was 0"},
	    {"compaction={class:TimeWindowCompactionStrategy,compaction_window_unit:foo}",
		ERROR_CONFIG, "foo is not valid for compaction_window_unit"},
	    {"compression={enabled:true}", ERROR_CONFIG,
		"Missing sub-option 'class' for the 'compression' option."},
	    {"compression={enabled:false,class:LZ4Compressor}", ERROR_CONFIG,
		"If the 'enabled' option is set to false no other options must be specified"},
	    {"compression={class:FooCompressor}", ERROR_CONFIG,
		"Could not create Compression for type " Z "FooCompressor"},
	    {"compression={class:LZ4Compressor,chunk_length_in_kb:3}", ERROR_CONFIG,
		"chunk_length_in_kb must be a power of 2"},
	    {"compression={class:LZ4Compressor,foo:bar}", ERROR_CONFIG,
		"Unknown compression options foo"},
	};
	struct table_options options;
	struct error err;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(
		    apply(cases[i].property, &options, &err) == -1, "%s", cases[i].property);
		ck_assert_str_eq(err.text, cases[i].text);
		ck_assert_int_eq(err.code, cases[i].code);
	}
}
END_TEST

START_TEST(test_cells_read_back_to_the_same_options)
{
	static const char *const changes[] = {
	    "comment=hello",
	    "speculative_retry=MIN(99p,50ms)",
	    "caching={keys:none}",
	    "compaction={class:LeveledCompactionStrategy,fanout_size:8}",
	    "compression={class:ZstdCompressor,compression_level:5}",
	    "compression={}",
	    "cdc=true",
	    "gc_grace_seconds=5",
	    "read_repair=NONE",
	    "allow_auto_snapshot=false",
	    "incremental_backups=false",
	};
	struct table_option_cell cells[TABLE_OPTIONS_CELLS_MAX];
	struct table_options options, copy;
	struct error err;
	uint32_t count, j;
	size_t i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		ck_assert_int_eq(apply(changes[i], &options, &err), 0);
		count = table_options_to_cells(&options, &arena, cells);
		table_options_init(&copy);
		for (j = 0; j < count; j++) {
			ck_assert(j == 0 || strcmp(cells[j - 1].column, cells[j].column) < 0);
			/* Cassandra 4.1's table has no such columns. */
			if (strcmp(cells[j].column, "allow_auto_snapshot") == 0 ||
			    strcmp(cells[j].column, "incremental_backups") == 0)
				continue;
			ck_assert_int_eq(
			    table_options_from_cell(&copy, slice_of_string(cells[j].column),
				cells[j].value, &arena, &err),
			    0);
		}
		ck_assert_str_eq(print(&copy), print(&options));
		ck_assert(table_options_equal(&copy, &options));
		ck_assert_int_eq(copy.compressor, options.compressor);
		ck_assert_int_eq(copy.strategy, options.strategy);
		ck_assert_int_eq(copy.chunk_length, options.chunk_length);
	}
}
END_TEST

START_TEST(test_bloom_filter_chance_stays_when_the_strategy_changes)
{
	struct table_property property = {.is_map = true, .map = {NULL, 0}};
	struct table_options options;
	struct error err;

	ck_assert_int_eq(apply("comment=x", &options, &err), 0);
	property.name = slice_of_string("compaction");
	option_map_put(&property.map, slice_of_string("class"),
	    slice_of_string("LeveledCompactionStrategy"), &arena);
	ck_assert_int_eq(table_options_apply(&options, &property, 1, &arena, &err), 0);
	ck_assert_double_eq(table_options_fp_chance(&options), 0.01);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cql/table_options");
	TCase *cases = tcase_create("table_options");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_test(cases, test_defaults_print_as_describe);
	tcase_add_test(cases, test_values_are_normalised_as_in_cassandra);
	tcase_add_test(cases, test_wrong_values_say_what_cassandra_says);
	tcase_add_test(cases, test_cells_read_back_to_the_same_options);
	tcase_add_test(cases, test_bloom_filter_chance_stays_when_the_strategy_changes);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
