/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_settings.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/alloc.h"
#include "protocol/message.h"

/* As a shell would, but for quotes: words at blanks. Help goes nowhere. */
static int
parse(struct stress_settings *settings, const char *line, struct error *err)
{
	char *copy = xstrdup(line), *words[64], *rest = NULL;
	int count = 0, rc, standard = dup(1), nowhere = open("/dev/null", O_WRONLY);

	for (char *word = strtok_r(copy, " ", &rest); word != NULL;
	     word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	fflush(stdout);
	dup2(nowhere, 1);
	rc = stress_settings_parse(settings, count, words, err);
	fflush(stdout);
	dup2(standard, 1);
	close(standard);
	close(nowhere);
	free(copy);
	return rc;
}

static const char *const good[] = {
    "write",
    "write n=1000000",
    "insert n=1M cl=QUORUM no-warmup",
    "write duration=30s -mode native cql3 -rate threads=700 -node 127.0.0.1",
    "mixed ratio(read=1) duration=30s -pop dist=gauss(1..1000000,500000,50000) -mode native cql3 "
    "-rate threads=700",
    "mixed ratio(read=1,write=1) n=10k clustering=fixed(2)",
    "mixed ratio( read = 1 , write = 3 ) n=10",
    "counter_write n=10 add=uniform(1..5)",
    "counterwrite n=10",
    "counter_read duration=2m",
    "read err<0.05 n>10 n<20",
    "user profile=a.yaml ops(insert=1,q=2) n=10",
    "user profile=a.yaml,b.yaml ops(insert=1,ks.t.q=2) duration=1h",
    "write n=10 -rate threads>=4 threads<=913 auto",
    "write n=10 -rate threads=10 throttle=1000/s",
    "write n=10 -rate threads=10 fixed=1000/s",
    "write n=10 -pop seq=1..100M no-wrap",
    "write n=10 -pop seq=1..100 read-lookback=uniform(1..10) contents=SORTED",
    "read n=10 -pop dist=UNIFORM(1..10B)",
    "write n=10 -insert visits=fixed(2) revisit=uniform(1..10) partitions=fixed(3) "
    "batchtype=UNLOGGED "
    "select-ratio=fixed(1)/2 row-population-ratio=uniform(1..10)/10",
    "write n=10 -col n=FIXED(8) size=GAUSSIAN(10..50) slice comparator=UTF8Type timestamp=5",
    "write n=10 -col names=b,a,c",
    "write n=10 -errors retries=3 ignore skip-read-validation",
    "write n=10 -log level=verbose no-summary no-settings interval=100ms file=x hdrfile=y",
    "write n=10 -log interval=5",
    "write n=10 -mode native cql3 protocolVersion=4 compression=lz4 user=u password=p "
    "connectionsPerHost=2 maxPending=16",
    "write n=10 -mode native cql3 unprepared",
    "write n=10 -node whitelist a,b,c -port native=9999 jmx=7200",
    "write n=10 -node datacenter=dc1 127.0.0.1",
    "write n=10 -schema replication(factor=3) keyspace=k compression=LZ4Compressor",
    "write n=10 -schema replication(strategy=NetworkTopologyStrategy,dc1=3) "
    "compaction(strategy=LeveledCompactionStrategy,sstable_size_in_mb=10)",
    "write n=10 -graph file=g.html title=t revision=r op=o",
    "write n=10 -transport truststore=ca.pem keystore=me.pem hostname-verification=true",
    "write n=10 -reporting output-frequency=10s",
    "write n=10 -tokenrange no-wrap split-factor=2",
    "write n=10 -tokenrange wrap",
    "write n=10 -reporting output-frequency=10s header-frequency=60s",
    "write n=10 -log show-queries query-log-file=q no-progress",
    "write n=10 -node datacenter=dc1 rack=r1 127.0.0.1",
    "write n=10 -mode native cql3 auth-provider=com.datastax.driver.core.PlainTextAuthProvider",
    "write n=10 -transport truststore=a ssl-protocol=TLSv1.3 ssl-alg=SunX509 store-type=JKS",
    "WRITE n=10 -RATE threads=5",
    "write truncate=always n=10 serial-cl=LOCAL_SERIAL keysize=16",
};

START_TEST(test_command_lines_of_cassandra_stress_are_taken)
{
	struct stress_settings settings;
	struct error err;

	ck_assert_msg(parse(&settings, good[_i], &err) == 0, "%s: %s", good[_i], err.text);
	stress_settings_fini(&settings);
}
END_TEST

static const struct {
	const char *line;
	const char *text; /* somewhere in the error */
} bad[] = {
    {"", "No command"},
    {"nothing n=1", "No command"},
    {"write n=x", "Invalid value x"},
    {"write n=1 n=2", "more than once"},
    {"write n=1 duration=3s", "Invalid write options"},
    {"write duration=3", "Invalid value 3"},
    {"write foo=1", "Invalid parameter foo=1"},
    {"write cl=MOST", "Invalid value MOST"},
    {"write n=1 -rate threads=5 -rate threads=6", "multiple times"},
    {"write n=1 -rate threads=0", "at least 1"},
    {"write n=1 -rate threads=99999999999", "threads="},
    {"write n=1 -rate threads=5 throttle=5/s fixed=5/s", "both fixed and throttle"},
    {"write n=1 -rate threads=5 auto", "Invalid -rate"},
    {"write n=1 -rate throttle=5/s", "Invalid -rate"},
    {"write n=1 -rate threads=5 throttle=5", "Invalid value 5"},
    {"write n=1 -pop seq=5..1", "Invalid sequence"},
    {"write n=1 -pop seq=1..5 dist=fixed(1)", "Invalid -pop"},
    {"write n=1 -pop dist=foo(1)", "Illegal distribution type: foo"},
    {"write n=1 -pop dist=uniform(1)", "Invalid parameter list"},
    {"write n=1 -col n=fixed(0)", "number of columns"},
    {"write n=1 -col names=", "No column names"},
    {"write n=1 -mode thrift", "Invalid parameter thrift"},
    {"write n=1 -mode native cql3 compression=zip", "Invalid value zip"},
    {"write n=1 -mode native cql3 maxPending=0", "maxPending="},
    {"write n=1 -node a,,b", "Invalid value a,,b"},
    {"write n=1 -node file=/nonexistent/nodes", "/nonexistent/nodes"},
    {"write n=1 -port native=0", "no port"},
    {"write n=1 -log interval=0", "greater than zero"},
    {"write n=1 -graph title=x", "Invalid -graph"},
    {"write n=1 -bar x y", "-bar x y"},
    {"write n=1 -sendto host", "-sendto is not supported"},
    {"mixed ratio(foo=1) n=1", "Invalid ratio specification: foo"},
    {"mixed ratio(read=0) n=1", "non-zero"},
    {"mixed ratio(read=x) n=1", "Invalid ratio"},
    {"user n=1", "Invalid user options"},
    {"user profile=a.yaml n=1", "non-zero"},
    {"user profile=a.yaml ops(insert) n=1", "Invalid ops"},
    {"user profile=a.yaml ops(insert=1) n=1 -schema keyspace=x", "-schema can only be"},
    {"legacy", "legacy command lines are not supported"},
    {"write n=1 -sample live=5", "-sample is not supported"},
    {"write n=1 -col n=fixed(5) super=2", "Invalid value 2"},
    {"write n=1 -col comparator=TimeUUIDType", "Invalid value TimeUUIDType"},
    {"write n=1 -mode native cql3 auth-provider=my.Provider", "Invalid value my.Provider"},
    {"write n=1 -node loadbalance=RoundRobin a", "loadbalance= is not supported"},
    {"write n=1 -node remote-dc=2 a", "remote-dc= is not supported"},
    {"write n=1 -port thrift=9160", "thrift= is not supported"},
    {"write n=1 -transport factory=a.b", "factory= is not supported"},
    {"write n=1 -transport ssl-protocol=SSLv3", "Invalid value SSLv3"},
    {"write n=1 -tokenrange split-factor=0", "split-factor= must be"},
    {"help frobnicate", "Invalid command or option"},
};

START_TEST(test_wrong_command_lines_are_refused_with_a_reason)
{
	struct stress_settings settings;
	struct error err;

	ck_assert_msg(parse(&settings, bad[_i].line, &err) == -1, "%s", bad[_i].line);
	ck_assert_msg(strstr(err.text, bad[_i].text) != NULL, "%s: %s", bad[_i].line, err.text);
	stress_settings_fini(&settings);
}
END_TEST

START_TEST(test_defaults_are_those_of_cassandra_stress)
{
	struct stress_settings settings;

	ck_assert_int_eq(parse(&settings, "write n=5000", NULL), 0);
	ck_assert_int_eq(settings.threads, 200);
	ck_assert_int_eq(settings.consistency, CONSISTENCY_LOCAL_ONE);
	ck_assert_int_eq(settings.serial_consistency, CONSISTENCY_SERIAL);
	ck_assert_int_eq(settings.key_size, 10);
	ck_assert_uint_eq(settings.column_count, 5);
	ck_assert_str_eq(settings.columns[4], "C4");
	ck_assert_int_eq(stress_distribution_max(&settings.column_size), 34);
	ck_assert(settings.population.is_sequence);
	ck_assert_int_eq(settings.population.last, 5000);
	ck_assert_int_eq(settings.tries, 10);
	ck_assert_int_eq(settings.pending_max, 128);
	ck_assert_int_eq(settings.connections_per_host, 8);
	ck_assert_int_eq(settings.port, 9042);
	ck_assert_str_eq(settings.nodes[0], "localhost");
	ck_assert_str_eq(settings.keyspace, "keyspace1");
	ck_assert_int_eq(settings.interval_ms, 1000);
	ck_assert(settings.is_prepared);
	stress_settings_fini(&settings);
}
END_TEST

START_TEST(test_reads_draw_from_a_gaussian_and_climb_the_ladder)
{
	struct stress_settings settings;

	ck_assert_int_eq(parse(&settings, "read", NULL), 0);
	ck_assert(!settings.population.is_sequence);
	ck_assert_int_eq(settings.population.distribution.kind, STRESS_GAUSSIAN);
	ck_assert_int_eq(settings.population.distribution.max, 1000000);
	ck_assert(settings.is_auto);
	ck_assert_int_eq(settings.threads_min, 4);
	ck_assert_int_eq(settings.threads_max, 1000);
	ck_assert(settings.target_uncertainty > 0.019 && settings.target_uncertainty < 0.021);
	stress_settings_fini(&settings);
}
END_TEST

START_TEST(test_port_of_mode_counts_where_no_other_is_given)
{
	struct stress_settings settings;

	ck_assert_int_eq(parse(&settings, "write n=1 -mode native cql3 port=9999", NULL), 0);
	ck_assert_int_eq(settings.port, 9999);
	stress_settings_fini(&settings);
	ck_assert_int_eq(
	    parse(&settings, "write n=1 -mode native cql3 port=9999 -port native=8888", NULL), 0);
	ck_assert_int_eq(settings.port, 8888);
	stress_settings_fini(&settings);
}
END_TEST

START_TEST(test_columns_are_sorted_as_bytes)
{
	struct stress_settings settings;

	ck_assert_int_eq(parse(&settings, "write n=1 -col n=fixed(12)", NULL), 0);
	ck_assert_str_eq(settings.columns[1], "C1");
	ck_assert_str_eq(settings.columns[2], "C10");
	ck_assert_str_eq(settings.columns[11], "C9");
	stress_settings_fini(&settings);
}
END_TEST

START_TEST(test_replication_and_compaction_become_options)
{
	struct stress_settings settings;

	ck_assert_int_eq(
	    parse(&settings,
		"write n=1 -schema replication(strategy=NetworkTopologyStrategy,dc1=3,dc2=2) "
		"compaction(strategy=LeveledCompactionStrategy,sstable_size_in_mb=10)",
		NULL),
	    0);
	ck_assert_str_eq(settings.strategy, "org.apache.cassandra.locator.NetworkTopologyStrategy");
	ck_assert_str_eq(settings.strategy_options, ", 'dc1' : '3', 'dc2' : '2'");
	ck_assert_str_eq(settings.compaction, "LeveledCompactionStrategy");
	ck_assert_str_eq(settings.compaction_options, ", 'sstable_size_in_mb' : '10'");
	stress_settings_fini(&settings);
}
END_TEST

START_TEST(test_shares_of_user_operations_are_lower_case)
{
	struct stress_settings settings;

	ck_assert_int_eq(
	    parse(&settings, "user profile=a.yaml ops(insert=1,MyQuery=2.5) n=1", NULL), 0);
	ck_assert_uint_eq(settings.share_count, 2);
	ck_assert_str_eq(settings.shares[1].name, "myquery");
	ck_assert(settings.shares[1].share > 2.4);
	ck_assert(!stress_settings_inserts_only(&settings));
	ck_assert_str_eq(settings.profiles, "a.yaml");
	stress_settings_fini(&settings);
}
END_TEST

START_TEST(test_settings_are_shown)
{
	struct stress_settings settings;
	struct buffer text;

	buffer_init(&text);
	ck_assert_int_eq(
	    parse(&settings,
		"mixed ratio(read=1,write=2) n=1M -mode native cql3 user=u password=secret", NULL),
	    0);
	stress_settings_print(&settings, &text);
	buffer_put_u8(&text, 0);
	ck_assert_ptr_nonnull(strstr((char *)text.data, "  Type: mixed\n  Count: 1,000,000\n"));
	ck_assert_ptr_nonnull(
	    strstr((char *)text.data, "  Command Ratios: {READ=1.0, WRITE=2.0}\n"));
	ck_assert_ptr_nonnull(strstr((char *)text.data, "  Password: *suppressed*\n"));
	ck_assert_ptr_null(strstr((char *)text.data, "secret"));
	buffer_fini(&text);
	stress_settings_fini(&settings);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stress_settings");
	TCase *tcase = tcase_create("stress_settings");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, test_command_lines_of_cassandra_stress_are_taken, 0,
	    sizeof(good) / sizeof(good[0]));
	tcase_add_loop_test(tcase, test_wrong_command_lines_are_refused_with_a_reason, 0,
	    sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tcase, test_defaults_are_those_of_cassandra_stress);
	tcase_add_test(tcase, test_reads_draw_from_a_gaussian_and_climb_the_ladder);
	tcase_add_test(tcase, test_port_of_mode_counts_where_no_other_is_given);
	tcase_add_test(tcase, test_columns_are_sorted_as_bytes);
	tcase_add_test(tcase, test_replication_and_compaction_become_options);
	tcase_add_test(tcase, test_shares_of_user_operations_are_lower_case);
	tcase_add_test(tcase, test_settings_are_shown);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
