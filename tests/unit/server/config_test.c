/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static struct config config;
static struct error err;

static void
setup(void)
{
	log_set_level("ROOT", LOG_OFF);
	config_init(&config);
}

static void
teardown(void)
{
	config_fini(&config);
}

static int
read_text(const char *text)
{
	return config_read_text(&config, "test.yaml", slice_of_string(text), &err);
}

START_TEST(test_defaults_are_cassandras)
{
	ck_assert_int_eq(config_finish(&config, &err), 0);
	ck_assert_str_eq(config.cluster_name, "Test Cluster");
	ck_assert_int_eq(config.concurrent_reads, 32);
	ck_assert_int_eq(config.native_transport_port, 9042);
	ck_assert_int_eq(config.native_transport_max_frame_size, 16 << 20);
	ck_assert_int_eq(config.read_request_timeout, 5000);
	ck_assert_int_eq(config.write_request_timeout, 2000);
	ck_assert_int_eq(config.commitlog_sync_period, 10000);
	ck_assert_int_eq(config.commitlog_segment_size, 32 << 20);
	ck_assert_int_eq(config.max_mutation_size, 16 << 20);
	ck_assert_int_eq(config.compaction_throughput, 64 << 20);
	ck_assert_str_eq(config.data_file_directories.items[0], "./data/data");
	ck_assert_str_eq(config.commitlog_directory, "./data/commitlog");
	ck_assert_ptr_null(config.dc); /* the snitch's to find */
	ck_assert_ptr_null(config.rack);
	ck_assert_int_gt(config.memtable_heap_space, 0);
	ck_assert_int_ge(config.concurrent_compactors, 2);
}
END_TEST

START_TEST(test_units_are_read)
{
	ck_assert_int_eq(read_text("read_request_timeout: 3s\n"
				   "range_request_timeout: 2m\n"
				   "write_request_timeout: 1500000us\n"
				   "commitlog_segment_size: 8MiB\n"
				   "column_index_size: 4KiB\n"
				   "compaction_throughput: 16MiB/s\n"
				   "key_cache_save_period: 4h\n"
				   "row_cache_save_period: 90\n"
				   "phi_convict_threshold: 9.5\n"),
	    0);
	ck_assert_int_eq(config.read_request_timeout, 3000);
	ck_assert_int_eq(config.range_request_timeout, 120000);
	ck_assert_int_eq(config.write_request_timeout, 1500);
	ck_assert_int_eq(config.commitlog_segment_size, 8 << 20);
	ck_assert_int_eq(config.column_index_size, 4096);
	ck_assert_int_eq(config.compaction_throughput, 16 << 20);
	ck_assert_int_eq(config.key_cache_save_period, 14400);
	ck_assert_int_eq(config.row_cache_save_period, 90);
	ck_assert_double_eq(config.phi_convict_threshold, 9.5);
}
END_TEST

START_TEST(test_old_names_keep_their_units)
{
	ck_assert_int_eq(read_text("read_request_timeout_in_ms: 7000\n"
				   "commitlog_segment_size_in_mb: 16\n"
				   "column_index_size_in_kb: 16\n"
				   "compaction_throughput_mb_per_sec: 32\n"
				   "native_transport_max_concurrent_requests_in_bytes: 12345\n"
				   "enable_materialized_views: true\n"),
	    0);
	ck_assert_int_eq(config.read_request_timeout, 7000);
	ck_assert_int_eq(config.commitlog_segment_size, 16 << 20);
	ck_assert_int_eq(config.column_index_size, 16 << 10);
	ck_assert_int_eq(config.compaction_throughput, 32 << 20);
	ck_assert_int_eq(config.native_transport_max_request_data_in_flight, 12345);
	ck_assert(config.materialized_views_enabled);
	buffer_put_u8(&config.deprecated, 0);
	ck_assert_ptr_nonnull(
	    strstr((const char *)config.deprecated.data, "read_request_timeout_in_ms"));
}
END_TEST

START_TEST(test_lists_maps_and_seeds)
{
	ck_assert_int_eq(
	    read_text(
		"data_file_directories:\n  - /d/one\n  - /d/two\n"
		"hinted_handoff_disabled_datacenters: [a, b]\n"
		"client_encryption_options:\n  enabled: true\n  optional: false\n"
		"  keystore: conf/node.pem\n  cipher_suites: [X, Y]\n"
		"seed_provider:\n  - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n"
		"    parameters:\n      - seeds: \"10.0.0.1:7000, 10.0.0.2\"\n"
		"memtable:\n  configurations:\n    default:\n      class_name: TrieMemtable\n"),
	    0);
	ck_assert_int_eq(config_finish(&config, &err), 0);
	ck_assert_uint_eq(config.data_file_directories.count, 2);
	ck_assert_str_eq(config.data_file_directories.items[1], "/d/two");
	ck_assert_uint_eq(config.hinted_handoff_disabled_datacenters.count, 2);
	ck_assert(config.client_encryption_options__enabled);
	ck_assert_str_eq(config.client_encryption_options__keystore, "conf/node.pem");
	ck_assert_uint_eq(config.client_encryption_options__cipher_suites.count, 2);
	ck_assert_uint_eq(config.seed_list.count, 2);
	ck_assert_str_eq(config.seed_list.items[0], "10.0.0.1:7000");
	ck_assert_str_eq(config.memtable_class, "TrieMemtable");
	ck_assert_uint_eq(config.unknown.size, 0);
}
END_TEST

START_TEST(test_a_class_may_be_a_map_as_in_version_5)
{
	ck_assert_int_eq(read_text("authenticator:\n  class_name: PasswordAuthenticator\n"
				   "  parameters:\n    x: y\n"),
	    0);
	ck_assert_str_eq(config.authenticator, "PasswordAuthenticator");
}
END_TEST

START_TEST(test_unknown_keys_are_collected_not_refused)
{
	ck_assert_int_eq(read_text("no_such_key: 1\nother:\n  deep: 2\ncluster_name: c\n"
				   "client_encryption_options:\n  color: red\n"),
	    0);
	buffer_put_u8(&config.unknown, 0);
	ck_assert_str_eq((const char *)config.unknown.data,
	    "no_such_key, other, client_encryption_options.color");
	ck_assert_str_eq(config.cluster_name, "c");
}
END_TEST

static void
expect_wrong(const char *text, const char *words, const char *more)
{
	ck_assert_int_eq(read_text(text), -1);
	ck_assert_int_eq(err.code, ERROR_CONFIG);
	ck_assert_msg(strstr(err.text, words) != NULL, "'%s' has no '%s'", err.text, words);
	ck_assert_msg(strstr(err.text, more) != NULL, "'%s' has no '%s'", err.text, more);
}

START_TEST(test_wrong_values_name_file_line_key_and_what_would_be_right)
{
	expect_wrong("a: 1\nread_request_timeout: soon\n", "test.yaml:2: read_request_timeout",
	    "it is a duration");
	expect_wrong("read_request_timeout: 5000\n", "test.yaml:1: read_request_timeout", "10s");
	expect_wrong("commitlog_segment_size: 32MB\n", "'32MB' is wrong", "MiB");
	expect_wrong("auto_snapshot: maybe\n", "auto_snapshot", "true or false");
	expect_wrong("concurrent_reads: many\n", "concurrent_reads", "whole number");
	expect_wrong("commitlog_sync: sometimes\n", "commitlog_sync", "periodic batch group");
	expect_wrong("cluster_name: {a: b}\n", "cluster_name", "a map stands here");
	expect_wrong("a: [1\n", "test.yaml:", "");
	expect_wrong("- a\n- b\n", "test.yaml:1", "map");
}
END_TEST

START_TEST(test_what_does_not_go_together_is_refused)
{
	ck_assert_int_eq(read_text("rpc_address: 0.0.0.0\n"), 0);
	ck_assert_int_eq(config_finish(&config, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "broadcast_rpc_address"));
	ck_assert_int_eq(read_text("rpc_address: 127.0.0.1\nconcurrent_writes: 1\n"), 0);
	ck_assert_int_eq(config_finish(&config, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "concurrent_writes"));
}
END_TEST

START_TEST(test_clients_connect_to_the_address_of_an_interface)
{
	ck_assert_int_eq(read_text("rpc_interface: lo\n"), 0);
	ck_assert_msg(config_finish(&config, &err) == 0, "%s", err.text);
	ck_assert_str_eq(config.rpc_address, "127.0.0.1");
	config_fini(&config);
	config_init(&config);
	ck_assert_int_eq(read_text("rpc_interface: lo\nrpc_address: 127.0.0.1\n"), 0);
	ck_assert_int_eq(config_finish(&config, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "Set rpc_address OR rpc_interface, not both"));
	config_fini(&config);
	config_init(&config);
	ck_assert_int_eq(read_text("rpc_interface: none7\n"), 0);
	ck_assert_int_eq(config_finish(&config, &err), -1);
	ck_assert_ptr_nonnull(
	    strstr(err.text, "Configured rpc_interface \"none7\" could not be found"));
}
END_TEST

START_TEST(test_what_harms_a_ring_is_refused)
{
	static const char *const wrong[] = {"phi_convict_threshold: 0",
	    "phi_convict_threshold: 4.9", "phi_convict_threshold: 16.1", "dc: \"\"", "rack: \" \"",
	    "cluster_name: \"\""};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)strcspn(wrong[i], ":"), wrong[i]);
		config_fini(&config);
		config_init(&config);
		ck_assert_int_eq(read_text(wrong[i]), 0);
		ck_assert_msg(config_finish(&config, &err) == -1, "%s", wrong[i]);
		ck_assert_msg(strstr(err.text, key) != NULL, "%s: %s", key, err.text);
	}
	config_fini(&config);
	config_init(&config);
	ck_assert_int_eq(read_text("phi_convict_threshold: 5\ndc: a\nrack: b\n"), 0);
	ck_assert_int_eq(config_finish(&config, &err), 0);
}
END_TEST

START_TEST(test_options_of_the_command_line_win)
{
	ck_assert_int_eq(read_text("native_transport_port: 9999\n"
				   "data_file_directories: [/elsewhere]\n"
				   "commitlog_directory: /elsewhere/log\n"),
	    0);
	ck_assert_int_eq(config_set_option(&config, "native_transport_port=9043", &err), 0);
	ck_assert_int_eq(config_set_option(&config, "data_directory=/tmp/x", &err), 0);
	ck_assert_int_eq(
	    config_set_option(&config, "client_encryption_options.enabled=true", &err), 0);
	ck_assert_int_eq(config_set_option(&config, "seeds=a,b,c", &err), 0);
	ck_assert_int_eq(config_finish(&config, &err), 0);
	ck_assert_int_eq(config.native_transport_port, 9043);
	ck_assert_str_eq(config.data_file_directories.items[0], "/tmp/x/data");
	ck_assert_str_eq(config.commitlog_directory, "/tmp/x/commitlog");
	ck_assert(config.client_encryption_options__enabled);
	ck_assert_uint_eq(config.seed_list.count, 3);
	ck_assert_int_eq(config_set_option(&config, "nonsense=1", &err), -1);
	ck_assert_int_eq(config_set_option(&config, "nonsense", &err), -1);
	ck_assert_int_eq(config_set_option(&config, "native_transport_port=x", &err), -1);
}
END_TEST

START_TEST(test_data_directory_of_the_file_is_for_what_is_not_named)
{
	ck_assert_int_eq(read_text("data_directory: /data\ncommitlog_directory: /log\n"), 0);
	ck_assert_int_eq(config_finish(&config, &err), 0);
	ck_assert_str_eq(config.data_file_directories.items[0], "/data/data");
	ck_assert_str_eq(config.hints_directory, "/data/hints");
	ck_assert_str_eq(config.commitlog_directory, "/log");
}
END_TEST

struct seen {
	int count;
	const char *want;
	char value[128];
};

static void
see(void *argument, const char *name, const char *value)
{
	struct seen *seen = argument;

	seen->count++;
	if (strcmp(name, seen->want) == 0)
		snprintf(seen->value, sizeof(seen->value), "%s", value == NULL ? "null" : value);
}

START_TEST(test_settings_show_every_key_and_hide_secrets)
{
	static const char *const wants[][2] = {{"read_request_timeout_in_ms", "5000"},
	    {"client_encryption_options.keystore_password", "*****"},
	    {"commitlog_segment_size", "32MiB"}, {"commitlog_segment_size_in_mb", "32"},
	    {"hinted_handoff_disabled_datacenters", "[]"}, {"initial_token", "null"},
	    {"compaction_throughput", "64MiB/s"}};

	ck_assert_int_eq(
	    config_set(&config, "client_encryption_options.keystore_password", "secret", &err), 0);
	ck_assert_int_eq(config_finish(&config, &err), 0);
	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
		struct seen seen = {.want = wants[i][0]};

		config_each_setting(&config, see, &seen);
		ck_assert_str_eq(seen.value, wants[i][1]);
		ck_assert_int_gt(seen.count, 450);
	}
}
END_TEST

START_TEST(test_an_empty_file_is_all_defaults)
{
	ck_assert_int_eq(config_read_text(&config, "empty", slice_null, &err), 0);
	ck_assert_int_eq(read_text(""), 0);
	ck_assert_int_eq(read_text("# nothing\n"), 0);
	ck_assert_int_eq(config_finish(&config, &err), 0);
}
END_TEST

/* The time of the parser alone, which is quadratic, would be minutes. */
static void
expect_too_deep(const char *start, const char *piece)
{
	size_t size = 256 << 10, step = strlen(piece);
	char *text = malloc(size + 1);

	for (size_t i = 0; i < size; i++)
		text[i] = piece[i % step];
	memcpy(text, start, strlen(start));
	text[size] = '\0';
	expect_wrong(text, "test.yaml:1: ", "deep");
	free(text);
}

START_TEST(test_deep_and_endless_files_are_refused)
{
	expect_too_deep("", "[");
	expect_too_deep("", "{a: ");
	expect_too_deep("no_such_key: ", "[[[{b: ");
	expect_too_deep("", "- ");
	ck_assert_int_eq(
	    read_text("a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n"
		      "c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n"
		      "e: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n"),
	    -1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config");
	TCase *tests = tcase_create("config");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, test_defaults_are_cassandras);
	tcase_add_test(tests, test_units_are_read);
	tcase_add_test(tests, test_old_names_keep_their_units);
	tcase_add_test(tests, test_lists_maps_and_seeds);
	tcase_add_test(tests, test_a_class_may_be_a_map_as_in_version_5);
	tcase_add_test(tests, test_unknown_keys_are_collected_not_refused);
	tcase_add_test(tests, test_wrong_values_name_file_line_key_and_what_would_be_right);
	tcase_add_test(tests, test_what_does_not_go_together_is_refused);
	tcase_add_test(tests, test_what_harms_a_ring_is_refused);
	tcase_add_test(tests, test_clients_connect_to_the_address_of_an_interface);
	tcase_add_test(tests, test_options_of_the_command_line_win);
	tcase_add_test(tests, test_data_directory_of_the_file_is_for_what_is_not_named);
	tcase_add_test(tests, test_settings_show_every_key_and_hide_secrets);
	tcase_add_test(tests, test_an_empty_file_is_all_defaults);
	tcase_add_test(tests, test_deep_and_endless_files_are_refused);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
