/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_help.h"

#include <string.h>
#include <strings.h>

/* ---- The tables ------------------------------------------------------------------------------- */

#define SIMPLE(prefix, pattern, standard, text)                                                    \
	{                                                                                          \
		prefix, STRESS_OPTION_SIMPLE, pattern, standard, text, false                       \
	}
#define REQUIRED(prefix, pattern, standard, text)                                                  \
	{                                                                                          \
		prefix, STRESS_OPTION_SIMPLE, pattern, standard, text, true                        \
	}
#define FLAG(prefix, text)                                                                         \
	{                                                                                          \
		prefix, STRESS_OPTION_SIMPLE, "", NULL, text, false                                \
	}
#define REFUSED(prefix, text)                                                                      \
	{                                                                                          \
		prefix, STRESS_OPTION_REFUSED, NULL, NULL, text, false                             \
	}
#define DIST(prefix, standard, text)                                                               \
	{                                                                                          \
		prefix, STRESS_OPTION_DISTRIBUTION, NULL, standard, text, false                    \
	}
#define RATIO(prefix, standard, text)                                                              \
	{                                                                                          \
		prefix, STRESS_OPTION_RATIO, NULL, standard, text, false                           \
	}
#define MULTI(name, text)                                                                          \
	{                                                                                          \
		name, STRESS_OPTION_MULTI, NULL, NULL, text, false                                 \
	}
#define GROUP(options)                                                                             \
	{                                                                                          \
		options, sizeof(options) / sizeof((options)[0]), {NULL}, 0                         \
	}

#define LEVELS "ONE|QUORUM|LOCAL_QUORUM|EACH_QUORUM|ALL|ANY|TWO|THREE|LOCAL_ONE|SERIAL|LOCAL_SERIAL"

#define COMMAND_COUNT REQUIRED("n=", "[0-9]+[bmk]?", NULL, "Number of operations to perform")
#define COMMAND_DURATION                                                                           \
	REQUIRED("duration=", "[0-9]+[smh]", NULL, "Time to run in (in seconds, minutes or hours)")
#define COMMAND_UNCERTAINTY                                                                        \
	SIMPLE("err<", "0\\.[0-9]+", "0.02",                                                       \
	    "Run until the standard error of the mean is below this fraction"),                    \
	    SIMPLE("n>", "[0-9]+", "30",                                                           \
		"Run at least this many iterations before accepting uncertainty convergence"),     \
	    SIMPLE("n<", "[0-9]+", "200",                                                          \
		"Run at most this many iterations before accepting uncertainty convergence")
#define COMMAND_COMMON                                                                             \
	FLAG("no-warmup", "Do not warmup the process"),                                            \
	    SIMPLE("truncate=", "never|once|always", "never",                                      \
		"Truncate the table: never, before performing any work, or before each "           \
		"iteration"),                                                                      \
	    SIMPLE("cl=", LEVELS, "LOCAL_ONE", "Consistency level to use"),                        \
	    SIMPLE(                                                                                \
		"serial-cl=", "SERIAL|LOCAL_SERIAL", "SERIAL", "Serial consistency level to use")
#define COMMAND_PREDEFINED                                                                         \
	DIST("add=", "fixed(1)", "Distribution of value of counter increments"),                   \
	    SIMPLE("keysize=", "[0-9]+", "10", "Key size in bytes")
#define COMMAND_MIXED                                                                              \
	MULTI("ratio",                                                                             \
	    "Specify the ratios for operations to perform; e.g. (read=2,write=1) will perform 2 "  \
	    "reads for each write"),                                                               \
	    DIST("clustering=", "GAUSSIAN(1..10)",                                                 \
		"Distribution clustering runs of operations of the same kind")
#define COMMAND_USER                                                                               \
	REQUIRED("profile=", ".*", NULL,                                                           \
	    "Specify the path to a yaml cql3 profile. Multiple comma separated files can be "      \
	    "added."),                                                                             \
	    MULTI("ops",                                                                           \
		"Specify the ratios for inserts/queries to perform; e.g. "                         \
		"ops(insert=2,<query1>=1) will perform 2 inserts for each query1. When using "     \
		"multiple files, specify as keyspace.table.op."),                                  \
	    DIST("clustering=", "GAUSSIAN(1..10)",                                                 \
		"Distribution clustering runs of operations of the same kind")

static const struct stress_option basic_uncertainty[] = {
    COMMAND_UNCERTAINTY, COMMAND_COMMON, COMMAND_PREDEFINED};
static const struct stress_option basic_count[] = {
    COMMAND_COUNT, COMMAND_COMMON, COMMAND_PREDEFINED};
static const struct stress_option basic_duration[] = {
    COMMAND_DURATION, COMMAND_COMMON, COMMAND_PREDEFINED};
static const struct stress_option mixed_uncertainty[] = {
    COMMAND_MIXED, COMMAND_UNCERTAINTY, COMMAND_COMMON, COMMAND_PREDEFINED};
static const struct stress_option mixed_count[] = {
    COMMAND_COUNT, COMMAND_MIXED, COMMAND_COMMON, COMMAND_PREDEFINED};
static const struct stress_option mixed_duration[] = {
    COMMAND_DURATION, COMMAND_MIXED, COMMAND_COMMON, COMMAND_PREDEFINED};
static const struct stress_option user_uncertainty[] = {
    COMMAND_USER, COMMAND_UNCERTAINTY, COMMAND_COMMON};
static const struct stress_option user_count[] = {COMMAND_USER, COMMAND_COUNT, COMMAND_COMMON};
static const struct stress_option user_duration[] = {
    COMMAND_USER, COMMAND_DURATION, COMMAND_COMMON};

static const struct stress_option rate_auto[] = {
    SIMPLE("threads>=", "[0-9]+", "4", "run at least this many clients concurrently"),
    SIMPLE("threads<=", "[0-9]+", "1000", "run at most this many clients concurrently"),
    FLAG("auto", "stop increasing threads once throughput saturates"),
};
static const struct stress_option rate_threads[] = {
    REQUIRED("threads=", "[0-9]+", NULL, "run this many clients concurrently"),
    SIMPLE("throttle=", "[0-9]+/s", "0/s",
	"throttle operations per second across all clients to a maximum rate (or less) with no "
	"implied schedule"),
    SIMPLE("fixed=", "[0-9]+/s", "0/s",
	"expect fixed rate of operations per second across all clients with implied schedule"),
};
#define CONTENTS                                                                                   \
	SIMPLE("contents=", "sorted|shuffled", NULL,                                               \
	    "SORTED or SHUFFLED (intra-)partition order; if not specified, will be consistent "    \
	    "but arbitrary order")
static const struct stress_option pop_sequence[] = {
    REQUIRED("seq=", "[0-9]+[MBK]?\\.\\.+[0-9]+[MBK]?", NULL, "Generate all seeds in sequence"),
    FLAG("no-wrap", "Terminate the stress test once all seeds in the range have been visited"),
    DIST("read-lookback=", NULL, "Select read seeds from the recently visited write seeds"),
    CONTENTS,
};
static const struct stress_option pop_distribution[] = {
    DIST("dist=", NULL, "Seeds are selected from this distribution (default: gaussian(1..N))"),
    CONTENTS,
};
static const struct stress_option insert_options[] = {
    DIST("revisit=", "uniform(1..1M)",
	"The distribution with which we revisit partial writes (see visits); implicitly defines "
	"size of revisit collection"),
    DIST("visits=", "fixed(1)",
	"The target number of inserts to split a partition into; if more than one, the partition "
	"will be placed in the revisit set"),
    DIST("partitions=", NULL, "The number of partitions to update in a single batch"),
    SIMPLE("batchtype=", "unlogged|logged|counter", NULL,
	"Specify the type of batch statement (LOGGED, UNLOGGED or COUNTER)"),
    RATIO("select-ratio=", NULL,
	"The uniform probability of visiting any CQL row in the generated partition"),
    RATIO("row-population-ratio=", "fixed(1)/1", "The percent of a given rows columns to populate"),
};
#define COLUMN_COMMON                                                                              \
	FLAG("slice",                                                                              \
	    "If set, range slices will be used for reads, otherwise a names query will be"),       \
	    SIMPLE("super=", "0", "0", "Accepted as 0: CQL has no super columns"),                 \
	    SIMPLE("comparator=", "AsciiType|UTF8Type", "AsciiType",                               \
		"Accepted: columns of CQL are in the order of their names"),                       \
	    SIMPLE("timestamp=", "[0-9]+", NULL,                                                   \
		"If set, all columns will be written with the given timestamp"),                   \
	    DIST("size=", "FIXED(34)", "Cell size distribution")
static const struct stress_option column_names[] = {
    REQUIRED("names=", ".*", NULL, "Column names"), COLUMN_COMMON};
static const struct stress_option column_count[] = {
    DIST("n=", "FIXED(5)", "Cell count distribution, per operation"), COLUMN_COMMON};
static const struct stress_option error_options[] = {
    SIMPLE(
	"retries=", "[0-9]+", "9", "Number of tries to perform for each operation before failing"),
    FLAG("ignore", "Do not fail on errors"),
    FLAG("skip-read-validation", "Skip read validation and message output"),
    FLAG("skip-unsupported-columns",
	"Skip unsupported columns, such as maps and embedded collections, when generating data for "
	"a user profile"),
};
static const struct stress_option log_options[] = {
    SIMPLE(
	"level=", "minimal|normal|verbose", "normal", "Logging level (minimal, normal or verbose)"),
    FLAG("no-summary", "Disable printing of aggregate statistics at the end of a test"),
    SIMPLE("file=", ".*", NULL, "Log to a file"),
    SIMPLE("hdrfile=", ".*", NULL, "Log latency histograms to a file"),
    SIMPLE(
	"interval=", "[0-9]+(ms|s|)", "1s", "Log progress every <value> seconds or milliseconds"),
    FLAG("no-settings", "Disable printing of settings values at start of test"),
    FLAG("no-progress", "Accepted: nothing animated is printed"),
    FLAG("show-queries", "Print the statement of each operation before the run"),
    SIMPLE("query-log-file=", ".+", NULL, "Write the statement of each operation to a file"),
};
static const struct stress_option mode_options[] = {
    FLAG("native", "The native protocol, which there is no alternative to"),
    FLAG("cql3", "CQL, which there is no alternative to"),
    FLAG("4x", "Accepted: the protocol's newest version is taken anyway"),
    FLAG("simplenative", "Accepted as native"),
    FLAG("prepared", "use prepared statements (the default)"),
    FLAG("unprepared", "force use of unprepared statements"),
    SIMPLE("compression=", "none|lz4|snappy", "none", "Compression of the protocol"),
    SIMPLE("protocolVersion=", "[3-5]|NEWEST_SUPPORTED|DEFAULT", "NEWEST_SUPPORTED",
	"CQL Protocol Version"),
    SIMPLE("port=", "[0-9]+", NULL, "Where -port native= is not given: that port"),
    SIMPLE("user=", ".+", NULL, "CQL user"),
    SIMPLE("password=", ".+", NULL, "CQL password"),
    SIMPLE("auth-provider=", "(.*\\.)?PlainTextAuthProvider", NULL,
	"PlainTextAuthProvider, which is what user= and password= are for anyway"),
    SIMPLE("maxPending=", "[0-9]+", "128", "Maximum pending requests per connection"),
    SIMPLE("connectionsPerHost=", "[0-9]+", "8", "Number of connections per host"),
    SIMPLE("requestTimeout=", "[0-9]+", "12000", "Request timeout in milliseconds"),
    SIMPLE("workers=", "[0-9]+", "0",
	"Operating system threads that carry all clients (0: one for two CPUs)"),
};
static const struct stress_option node_options[] = {
    SIMPLE("datacenter=", ".*", NULL, "Only nodes of this datacenter"),
    SIMPLE("rack=", ".+", NULL, "Only nodes of this rack (of the datacenter)"),
    FLAG("whitelist", "Limit communications to the provided nodes"),
    SIMPLE("file=", ".*", NULL, "Node file (one per line)"),
    REFUSED("loadbalance=",
	"operations go to the nodes that have their partition, these in turn; say which nodes with "
	"datacenter=, rack= or whitelist"),
    REFUSED("remote-dc=", "nodes of other datacenters than datacenter= are not used"),
    SIMPLE("", "[^=,]+(,[^=,]+)*", "localhost", "comma delimited list of nodes"),
};
static const struct stress_option port_options[] = {
    SIMPLE("native=", "[0-9]+", "9042", "Use this port for the Cassandra native protocol"),
    SIMPLE("jmx=", "[0-9]+", "7199", "Accepted: nothing is collected over JMX"),
    REFUSED("thrift=", "there is no Thrift"),
};
static const struct stress_option schema_options[] = {
    MULTI("replication",
	"Define the replication strategy (strategy=, factor=) and any parameters (a datacenter's "
	"name=factor)"),
    MULTI("compaction", "Define the compaction strategy (strategy=) and any parameters"),
    SIMPLE("keyspace=", ".*", "keyspace1", "The keyspace name to use"),
    SIMPLE("compression=", ".*", NULL,
	"Specify the compression to use for sstable, default:no compression"),
};
static const struct stress_option transport_options[] = {
    SIMPLE("truststore=", ".*", NULL, "TLS: the authorities' certificates, PEM or PKCS#12"),
    SIMPLE("truststore-password=", ".*", NULL, "TLS: truststore password"),
    SIMPLE("keystore=", ".*", NULL, "TLS: own certificate and key, PEM or PKCS#12"),
    SIMPLE("keystore-password=", ".*", NULL, "TLS: keystore password"),
    SIMPLE("ssl-protocol=", "TLS|TLSv1\\.[23]", "TLS", "TLS: of which version; TLS: 1.2 or later"),
    SIMPLE("ssl-alg=", "SunX509|PKIX", NULL, "Accepted: certificates are checked as PKIX has it"),
    SIMPLE("store-type=", "JKS|PKCS12|PEM", NULL,
	"Accepted: the file tells (and a JKS file is refused with what to do)"),
    SIMPLE("ssl-ciphers=", ".+", NULL,
	"TLS: list of cipher suites to use, with their standard names or OpenSSL's"),
    SIMPLE(
	"hostname-verification=", "true|false", "false", "TLS: the certificate must name the node"),
    REFUSED("factory=", "it names a class of Java"),
};
static const struct stress_option graph_options[] = {
    REQUIRED("file=", ".*", NULL, "HTML file to create or append to"),
    SIMPLE("revision=", ".*", "unknown",
	"Unique name to assign to the current configuration being stressed"),
    SIMPLE("title=", ".*", NULL, "Title for chart (current date by default)"),
    SIMPLE("op=", ".*", NULL,
	"Alternative name for current operation (stress op name used by default)"),
};
static const struct stress_option token_range_options[] = {
    FLAG("wrap", "Re-use token ranges in order to terminate stress iterations"),
    FLAG("no-wrap", "Visit each token range once"),
    SIMPLE("split-factor=", "[0-9]+[bmk]?", "1", "Split every token range by this factor"),
};
static const struct stress_option reporting_options[] = {
    SIMPLE(
	"output-frequency=", "[0-9]+(ms|s|)", "1s", "Frequency each type of output is reported at"),
    SIMPLE("header-frequency=", "[0-9]+(ms|s|)", NULL,
	"Frequency the header of the statistics is printed again at (default: never)"),
};
static const struct stress_option print_options[] = {
    {"dist=", STRESS_OPTION_DISTRIBUTION, NULL, NULL, "A mathematical distribution", true},
};

static const struct {
	const char *name;
	enum stress_command command;
	const char *title;
	bool updates;
	const char *text; /* NULL: another name of the one above */
} stress_commands[] = {
    {"read", STRESS_READ, "READ", false,
	"Multiple concurrent reads - the cluster must first be populated by a write test"},
    {"write", STRESS_WRITE, "WRITE", true, "Multiple concurrent writes against the cluster"},
    {"insert", STRESS_WRITE, "WRITE", true, NULL},
    {"mixed", STRESS_MIXED, "MIXED", true,
	"Interleaving of any basic commands, with configurable ratio and distribution - the "
	"cluster must first be populated by a write test"},
    {"counter_write", STRESS_COUNTER_WRITE, "COUNTER_WRITE", true,
	"Multiple concurrent updates of counters."},
    {"counterwrite", STRESS_COUNTER_WRITE, "COUNTER_WRITE", true, NULL},
    {"counter_add", STRESS_COUNTER_WRITE, "COUNTER_WRITE", true, NULL},
    {"counteradd", STRESS_COUNTER_WRITE, "COUNTER_WRITE", true, NULL},
    {"counter_read", STRESS_COUNTER_READ, "COUNTER_READ", false,
	"Multiple concurrent reads of counters. The cluster must first be populated by a "
	"counterwrite test."},
    {"counterread", STRESS_COUNTER_READ, "COUNTER_READ", false, NULL},
    {"counter_get", STRESS_COUNTER_READ, "COUNTER_READ", false, NULL},
    {"counterget", STRESS_COUNTER_READ, "COUNTER_READ", false, NULL},
    {"user", STRESS_USER, "USER", true,
	"Interleaving of user provided queries, with configurable ratio and distribution"},
    {"help", STRESS_HELP, "HELP", false, "Print help for a command or option"},
    {"-?", STRESS_HELP, "HELP", false, NULL},
    {"-h", STRESS_HELP, "HELP", false, NULL},
    {"--help", STRESS_HELP, "HELP", false, NULL},
    {"print", STRESS_PRINT, "PRINT", false, "Inspect the output of a distribution definition"},
    {"version", STRESS_VERSION, "VERSION", false, "Print the version of the program"},
    {"--version", STRESS_VERSION, "VERSION", false, NULL},
};

enum { STRESS_COMMANDS = sizeof(stress_commands) / sizeof(stress_commands[0]) };

/* The options that help can be asked for, in the order the tool lists them. */
static const struct {
	const char *name;
	const char *text;
	struct stress_group groups[2];
	size_t count;
} stress_topics[] = {
    {"-pop", "Population distribution and intra-partition visit order",
	{GROUP(pop_sequence), GROUP(pop_distribution)}, 2},
    {"-insert",
	"Insert specific options relating to various methods for batching and splitting partition "
	"updates",
	{GROUP(insert_options)}, 1},
    {"-col",
	"Column details such as size and count distribution, data generator, names, comparator and "
	"if super columns should be used",
	{GROUP(column_names), GROUP(column_count)}, 2},
    {"-rate", "Thread count, rate limit or automatic mode (default is auto)",
	{GROUP(rate_auto), GROUP(rate_threads)}, 2},
    {"-mode", "CQL mode options", {GROUP(mode_options)}, 1},
    {"-errors", "How to handle errors when encountered during stress", {GROUP(error_options)}, 1},
    {"-schema", "Replication settings, compression, compaction, etc.", {GROUP(schema_options)}, 1},
    {"-node", "Nodes to connect to", {GROUP(node_options)}, 1},
    {"-log", "Where to log progress to, and the interval at which to do it", {GROUP(log_options)},
	1},
    {"-transport", "TLS", {GROUP(transport_options)}, 1},
    {"-port", "The port to connect to cassandra nodes on", {GROUP(port_options)}, 1},
    {"-graph", "Graph recorded metrics", {GROUP(graph_options)}, 1},
    {"-tokenrange", "Token range settings", {GROUP(token_range_options)}, 1},
    {"-reporting", "Frequency of printing statistics", {GROUP(reporting_options)}, 1},
};

enum { STRESS_TOPICS = sizeof(stress_topics) / sizeof(stress_topics[0]) };

/* The one option that takes a file's name and nothing else. */
#define STRESS_CREDENTIALS "-credentials-file"
#define STRESS_CREDENTIALS_TEXT "File with cql.username= and cql.password= lines"

/* ---- Help ------------------------------------------------------------------------------------ */

void
stress_print_help(void)
{
	printf("Usage:      helenus-stress <command> [options]\n");
	printf("Help usage: helenus-stress help <command>\n\n---Commands---\n");
	for (size_t i = 0; i < STRESS_COMMANDS; i++) {
		if (stress_commands[i].text != NULL)
			printf("%-20s : %s\n", stress_commands[i].name, stress_commands[i].text);
	}
	printf("\n---Options---\n");
	for (size_t i = 0; i < STRESS_TOPICS; i++)
		printf("%-21s : %s\n", stress_topics[i].name, stress_topics[i].text);
	printf("%-21s : %s\n", STRESS_CREDENTIALS, STRESS_CREDENTIALS_TEXT);
}

size_t
stress_command_groups(enum stress_command command, struct stress_group groups[3])
{
	static const struct stress_group basic[] = {
	    GROUP(basic_uncertainty), GROUP(basic_count), GROUP(basic_duration)};
	static const struct stress_group mixed[] = {
	    GROUP(mixed_uncertainty), GROUP(mixed_count), GROUP(mixed_duration)};
	static const struct stress_group user[] = {
	    GROUP(user_uncertainty), GROUP(user_duration), GROUP(user_count)};
	static const struct stress_group print[] = {GROUP(print_options)};

	switch (command) {
	case STRESS_MIXED:
		memcpy(groups, mixed, sizeof(mixed));
		return 3;
	case STRESS_USER:
		memcpy(groups, user, sizeof(user));
		return 3;
	case STRESS_PRINT:
		memcpy(groups, print, sizeof(print));
		return 1;
	case STRESS_HELP:
	case STRESS_VERSION:
		return 0;
	default:
		memcpy(groups, basic, sizeof(basic));
		return 3;
	}
}

bool
stress_print_topic(const char *name)
{
	struct stress_group groups[3];

	for (size_t i = 0; i < STRESS_COMMANDS; i++) {
		if (strcasecmp(stress_commands[i].name, name) == 0) {
			size_t count = stress_command_groups(stress_commands[i].command, groups);

			if (count == 0)
				printf("Usage: helenus-stress %s\n", name);
			else
				stress_groups_print_help(name, groups, count);
			return true;
		}
	}
	for (size_t i = 0; i < STRESS_TOPICS; i++) {
		if (strcasecmp(stress_topics[i].name, name) == 0) {
			stress_groups_print_help(
			    stress_topics[i].name, stress_topics[i].groups, stress_topics[i].count);
			return true;
		}
	}
	if (strcasecmp(STRESS_CREDENTIALS, name) == 0) {
		printf("Usage: " STRESS_CREDENTIALS " FILE\n\n" STRESS_CREDENTIALS_TEXT "\n");
		return true;
	}
	return false;
}

const char *
stress_command_name(enum stress_command command)
{
	for (size_t i = 0; i < STRESS_COMMANDS; i++) {
		if (stress_commands[i].command == command)
			return stress_commands[i].title;
	}
	return "";
}

bool
stress_command_updates(enum stress_command command)
{
	for (size_t i = 0; i < STRESS_COMMANDS; i++) {
		if (stress_commands[i].command == command)
			return stress_commands[i].updates;
	}
	return false;
}

bool
stress_command_find(const char *name, enum stress_command *command)
{
	for (size_t i = 0; i < STRESS_COMMANDS; i++) {
		if (strcmp(stress_commands[i].name, name) == 0) {
			*command = stress_commands[i].command;
			return true;
		}
	}
	return false;
}

size_t
stress_topic_groups(const char *name, struct stress_group groups[STRESS_TOPIC_GROUPS_MAX])
{
	for (size_t i = 0; i < STRESS_TOPICS; i++) {
		if (strcmp(stress_topics[i].name, name) == 0) {
			memcpy(groups, stress_topics[i].groups, sizeof(stress_topics[i].groups));
			return stress_topics[i].count;
		}
	}
	return 0;
}
