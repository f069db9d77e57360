/* SPDX-License-Identifier: Apache-2.0 */
/* The ring as this node sees it, and its gossip. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nodetool.h"

enum { CLUSTER_NAME_MAX = 300, CLUSTER_COLUMNS = 7 };

/* The node's address as the options ask for it. Good until the fourth call after. */
static const char *
cluster_address(const struct nodetool *tool, const json_t *node)
{
	static char texts[4][CLUSTER_NAME_MAX];
	static unsigned next;
	char *text = texts[next++ % 4];
	const char *address = nodetool_text(node, "address");

	if (!tool->print_port)
		snprintf(text, CLUSTER_NAME_MAX, "%s", address);
	else if (strchr(address, ':') != NULL)
		snprintf(
		    text, CLUSTER_NAME_MAX, "[%s]:%" PRId64, address, nodetool_int(node, "port"));
	else
		snprintf(
		    text, CLUSTER_NAME_MAX, "%s:%" PRId64, address, nodetool_int(node, "port"));
	return text;
}

/* -r: the name that the resolver has for it. */
static const char *
cluster_host(const struct nodetool *tool, const json_t *node)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found;
	static char name[NI_MAXHOST];
	int rc;

	if (nodetool_option(tool, "-r") == NULL ||
	    getaddrinfo(nodetool_text(node, "address"), NULL, &hints, &found) != 0)
		return cluster_address(tool, node);
	rc = getnameinfo(found->ai_addr, found->ai_addrlen, name, sizeof(name), NULL, 0, 0);
	freeaddrinfo(found);
	return rc == 0 ? name : cluster_address(tool, node);
}

static const char *
cluster_load(const json_t *node)
{
	return json_is_null(json_object_get(node, "load_bytes"))
	    ? "?"
	    : nodetool_size((uint64_t)nodetool_int(node, "load_bytes"));
}

static size_t
cluster_token_count(const json_t *node)
{
	return json_array_size(json_object_get(node, "tokens"));
}

/* The names of the data centers, in the alphabet; an array of the tool's. */
static json_t *
cluster_datacenters(struct nodetool *tool, const json_t *nodes)
{
	json_t *set = nodetool_keep(tool, json_object()),
	       *names = nodetool_keep(tool, json_array());
	json_t *node, *value;
	const char *name;
	size_t index;

	json_array_foreach(nodes, index, node)
	    json_object_set_new(set, nodetool_text(node, "data_center"), json_true());
	while (json_object_size(set) > 0) {
		const char *first = NULL;

		json_object_foreach(set, name, value) if (first == NULL || strcmp(name, first) < 0)
		    first = name;
		json_array_append_new(names, json_string(first));
		json_object_del(
		    set, json_string_value(json_array_get(names, json_array_size(names) - 1)));
	}
	return names;
}

/* Is the node one of this data center? */
static bool
cluster_is_in(const json_t *node, const char *datacenter)
{
	return strcmp(nodetool_text(node, "data_center"), datacenter) == 0;
}

/* ---- status -------------------------------------------------------------------------------------------- */

/* Rows of one width, printed data center by data center. */
struct cluster_status {
	char cells[CLUSTER_COLUMNS][CLUSTER_NAME_MAX];
	size_t widths[CLUSTER_COLUMNS];
};

static void
cluster_status_row(struct cluster_status *status, const struct nodetool *tool, const json_t *node,
    bool is_effective, bool has_one_token)
{
	char owns[32] = "?", tokens[32];
	const char *cells[CLUSTER_COLUMNS];
	char code[3] = {nodetool_text(node, "status")[0], nodetool_text(node, "state")[0], '\0'};

	if (is_effective)
		snprintf(owns, sizeof(owns), "%.1f%%", nodetool_real(node, "owns") * 100);
	if (has_one_token)
		snprintf(tokens, sizeof(tokens), "%" JSON_INTEGER_FORMAT,
		    json_integer_value(json_array_get(json_object_get(node, "tokens"), 0)));
	else
		snprintf(tokens, sizeof(tokens), "%zu", cluster_token_count(node));
	cells[0] = code;
	cells[1] = cluster_host(tool, node);
	cells[2] = cluster_load(node);
	cells[3] = has_one_token ? owns : tokens;
	cells[4] = has_one_token ? nodetool_text(node, "host_id") : owns;
	cells[5] = has_one_token ? tokens : nodetool_text(node, "host_id");
	cells[6] = nodetool_text(node, "rack");
	for (int i = 0; i < CLUSTER_COLUMNS; i++)
		snprintf(status->cells[i], sizeof(status->cells[i]), "%s", cells[i]);
}

static void
cluster_status_head(struct cluster_status *status, bool is_effective, bool has_one_token)
{
	const char *owns = is_effective ? "Owns (effective)" : "Owns";
	const char *cells[CLUSTER_COLUMNS] = {"--", "Address", "Load",
	    has_one_token ? owns : "Tokens", has_one_token ? "Host ID" : owns,
	    has_one_token ? "Token" : "Host ID", "Rack"};

	for (int i = 0; i < CLUSTER_COLUMNS; i++)
		snprintf(status->cells[i], sizeof(status->cells[i]), "%s", cells[i]);
}

static void
cluster_status_measure(struct cluster_status *status)
{
	for (int i = 0; i < CLUSTER_COLUMNS; i++)
		if (strlen(status->cells[i]) > status->widths[i])
			status->widths[i] = strlen(status->cells[i]);
}

/* As Cassandra's TableBuilder: every cell padded, the last of a row too. */
static void
cluster_status_print(const struct cluster_status *status)
{
	for (int i = 0; i < CLUSTER_COLUMNS; i++)
		printf("%-*s%s", (int)status->widths[i], status->cells[i],
		    i + 1 == CLUSTER_COLUMNS ? "\n" : "  ");
}

static json_t *
cluster_get_ring(struct nodetool *tool)
{
	return nodetool_get(tool, "ring?keyspace=%u", tool->word_count > 0 ? tool->words[0] : "");
}

static int
cluster_status(struct nodetool *tool)
{
	json_t *ring = cluster_get_ring(tool), *nodes = json_object_get(ring, "nodes"), *node;
	json_t *datacenters = cluster_datacenters(tool, nodes), *datacenter;
	bool is_effective = json_is_null(json_object_get(ring, "note"));
	struct cluster_status status = {0};
	size_t tokens = 0, index, at;
	bool has_one_token;

	json_array_foreach(nodes, index, node) tokens += cluster_token_count(node);
	has_one_token = tokens > 0 && json_array_size(datacenters) >= tokens;
	cluster_status_head(&status, is_effective, has_one_token);
	cluster_status_measure(&status);
	json_array_foreach(nodes, index, node)
	{
		cluster_status_row(&status, tool, node, is_effective, has_one_token);
		cluster_status_measure(&status);
	}
	json_array_foreach(datacenters, at, datacenter)
	{
		const char *name = json_string_value(datacenter);

		printf("%sDatacenter: %s\n", at == 0 ? "" : "\n", name);
		for (size_t i = 0; i < strlen("Datacenter: ") + strlen(name); i++)
			putchar('=');
		printf("\nStatus=Up/Down\n|/ State=Normal/Leaving/Joining/Moving\n");
		cluster_status_head(&status, is_effective, has_one_token);
		cluster_status_print(&status);
		json_array_foreach(nodes, index, node)
		{
			if (!cluster_is_in(node, name))
				continue;
			cluster_status_row(&status, tool, node, is_effective, has_one_token);
			cluster_status_print(&status);
		}
	}
	putchar('\n');
	if (!is_effective)
		printf("Note: %s\n", nodetool_text(ring, "note"));
	return 0;
}

/* ---- ring ------------------------------------------------------------------------------------------------- */

struct cluster_token {
	json_int_t token;
	const json_t *node;
};

static int
cluster_compare_tokens(const void *a, const void *b)
{
	const struct cluster_token *left = a, *right = b;

	return (left->token > right->token) - (left->token < right->token);
}

/* The tokens of a data center, in the order of the ring; free() the array. */
static struct cluster_token *
cluster_tokens_of(const json_t *nodes, const char *datacenter, size_t *count)
{
	struct cluster_token *tokens;
	json_t *node, *token;
	size_t index, at, all = 0;

	json_array_foreach(nodes, index, node) all += cluster_token_count(node);
	tokens = calloc(all + 1, sizeof(*tokens));
	if (tokens == NULL)
		nodetool_fail("no memory");
	*count = 0;
	json_array_foreach(nodes, index, node)
	{
		if (!cluster_is_in(node, datacenter))
			continue;
		json_array_foreach(json_object_get(node, "tokens"), at, token) tokens[(*count)++] =
		    (struct cluster_token){json_integer_value(token), node};
	}
	qsort(tokens, *count, sizeof(*tokens), cluster_compare_tokens);
	return tokens;
}

static void
cluster_print_ring(struct nodetool *tool, const json_t *nodes, const char *datacenter, int width,
    bool is_effective)
{
	static const char format[] = "%-*s  %-12s%-7s%-8s%-16s%-20s%-44s\n";
	struct cluster_token *tokens;
	char token[32], owns[32] = "?";
	size_t count;

	tokens = cluster_tokens_of(nodes, datacenter, &count);
	printf("Datacenter: %s\n==========\n", datacenter);
	printf(format, width, "Address", "Rack", "Status", "State", "Load", "Owns", "Token");
	if (count > 1) {
		snprintf(token, sizeof(token), "%" JSON_INTEGER_FORMAT, tokens[count - 1].token);
		printf(format, width, "", "", "", "", "", "", token);
	} else {
		putchar('\n');
	}
	for (size_t i = 0; i < count; i++) {
		const json_t *node = tokens[i].node;

		snprintf(token, sizeof(token), "%" JSON_INTEGER_FORMAT, tokens[i].token);
		if (is_effective)
			snprintf(owns, sizeof(owns), "%.2f%%", nodetool_real(node, "owns") * 100);
		printf(format, width, cluster_host(tool, node), nodetool_text(node, "rack"),
		    nodetool_text(node, "status"), nodetool_text(node, "state"), cluster_load(node),
		    owns, token);
	}
	putchar('\n');
	free(tokens);
}

static int
cluster_ring(struct nodetool *tool)
{
	json_t *ring = cluster_get_ring(tool), *nodes = json_object_get(ring, "nodes"), *node;
	json_t *datacenters = cluster_datacenters(tool, nodes), *datacenter;
	bool is_effective = json_is_null(json_object_get(ring, "note")), has_vnodes = false;
	size_t index;
	int width = 0;

	json_array_foreach(nodes, index, node)
	{
		/* Room for the port, shown or not. */
		int length = (int)strlen(nodetool_text(node, "address")) + 5;

		width = length > width ? length : width;
		has_vnodes |= cluster_token_count(node) > 1;
	}
	putchar('\n');
	json_array_foreach(datacenters, index, datacenter)
	    cluster_print_ring(tool, nodes, json_string_value(datacenter), width, is_effective);
	if (has_vnodes)
		printf("  Warning: \"nodetool ring\" is used to output all the tokens of a node.\n"
		       "  To view status related info of a node use \"nodetool status\" "
		       "instead.\n\n");
	printf("\n  ");
	if (!is_effective)
		printf("Note: %s\n", nodetool_text(ring, "note"));
	return 0;
}

/* ---- describecluster ------------------------------------------------------------------------------------------ */

/* "1.2.3.4:7000" or "[::1]:7000", with or without its port. */
static void
cluster_print_endpoint(const char *text, bool with_port)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);

	if (with_port)
		printf("%s", text);
	else if (text[0] == '[' && length > 2)
		printf("%.*s", (int)length - 2, text + 1);
	else
		printf("%.*s", (int)length, text);
}

/* "<indent>name: [a, b]" and an empty line, for each. */
static void
cluster_print_groups(json_t *groups, const char *indent, bool with_port)
{
	json_t *list, *endpoint;
	const char *name;
	size_t index;

	json_object_foreach(groups, name, list)
	{
		printf("%s%s: [", indent, name);
		json_array_foreach(list, index, endpoint)
		{
			printf("%s", index == 0 ? "" : ", ");
			cluster_print_endpoint(json_string_value(endpoint), with_port);
		}
		printf("]\n\n");
	}
}

static void
cluster_print_keyspaces(const json_t *keyspaces)
{
	json_t *keyspace;
	size_t index;

	printf("Keyspaces:\n");
	json_array_foreach(keyspaces, index, keyspace)
	{
		json_t *replication = json_object_get(keyspace, "replication"), *value;
		const char *class = nodetool_text(replication, "class"), *name;
		const char *dot = strrchr(class, '.');
		bool is_first = true;

		printf("\t%s -> Replication class: %s {", nodetool_text(keyspace, "name"),
		    dot == NULL ? class : dot + 1);
		json_object_foreach(replication, name, value)
		{
			if (strcmp(name, "class") == 0)
				continue;
			printf("%s%s=%s", is_first ? "" : ", ", name, json_string_value(value));
			is_first = false;
		}
		printf("}\n");
	}
}

static int
cluster_describe(struct nodetool *tool)
{
	json_t *cluster = nodetool_get(tool, "cluster"), *datacenter;
	size_t index;

	printf("Cluster Information:\n\tName: %s\n", nodetool_text(cluster, "cluster_name"));
	printf("\tSnitch: %s\n", nodetool_text(cluster, "snitch"));
	printf("\tDynamicEndPointSnitch: %s\n",
	    nodetool_true(cluster, "dynamic_snitch") ? "enabled" : "disabled");
	printf("\tPartitioner: %s\n\tSchema versions:\n", nodetool_text(cluster, "partitioner"));
	cluster_print_groups(json_object_get(cluster, "schema_versions"), "\t\t", tool->print_port);
	printf("Stats for all nodes:\n\tLive: %" PRId64 "\n\tJoining: %" PRId64
	       "\n\tMoving: %" PRId64 "\n\tLeaving: %" PRId64 "\n\tUnreachable: %" PRId64 "\n\n",
	    nodetool_int(cluster, "live"), nodetool_int(cluster, "joining"),
	    nodetool_int(cluster, "moving"), nodetool_int(cluster, "leaving"),
	    nodetool_int(cluster, "unreachable"));
	printf("Data Centers: \n");
	json_array_foreach(json_object_get(cluster, "data_centers"), index, datacenter) printf(
	    "\t%s #Nodes: %" PRId64 " #Down: %" PRId64 "\n", nodetool_text(datacenter, "name"),
	    nodetool_int(datacenter, "nodes"), nodetool_int(datacenter, "down"));
	printf("\nDatabase versions:\n");
	cluster_print_groups(json_object_get(cluster, "versions"), "\t", true);
	cluster_print_keyspaces(json_object_get(cluster, "keyspaces"));
	return 0;
}

/* ---- who holds what ---------------------------------------------------------------------------------------------- */

static int
cluster_describe_ring(struct nodetool *tool)
{
	json_t *ring = nodetool_get(tool, "describering?keyspace=%u", tool->words[0]), *range;
	size_t index;

	printf("Schema Version:%s\nTokenRange: \n", nodetool_text(ring, "schema_version"));
	json_array_foreach(json_object_get(ring, "ranges"), index, range)
	{
		json_t *endpoints = json_object_get(range, "endpoints"), *node;
		size_t at;

		printf("\tTokenRange(start_token:%" PRId64 ", end_token:%" PRId64 ", endpoints:[",
		    nodetool_int(range, "start"), nodetool_int(range, "end"));
		json_array_foreach(endpoints, at, node)
		    printf("%s%s", at == 0 ? "" : ", ", cluster_address(tool, node));
		printf("], rpc_endpoints:[");
		json_array_foreach(endpoints, at, node)
		{
			printf("%s%s", at == 0 ? "" : ", ", nodetool_text(node, "rpc_address"));
			if (tool->print_port)
				printf(":%" PRId64, nodetool_int(node, "native_port"));
		}
		printf("], endpoint_details:[");
		json_array_foreach(endpoints, at, node)
		    printf("%sEndpointDetails(host:%s, datacenter:%s, rack:%s)",
			at == 0 ? "" : ", ", cluster_address(tool, node),
			nodetool_text(node, "data_center"), nodetool_text(node, "rack"));
		printf("])\n");
	}
	return 0;
}

static int
cluster_endpoints(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "endpoints?keyspace=%u&table=%u&key=%u", tool->words[0],
		   tool->words[1], tool->words[2]),
	       *node;
	size_t index;

	json_array_foreach(json_object_get(answer, "endpoints"), index, node)
	    printf("%s\n", cluster_address(tool, node));
	return 0;
}

/* ---- gossip and the wire -------------------------------------------------------------------------------------------- */

static int
cluster_gossip_info(struct nodetool *tool)
{
	printf("%s",
	    nodetool_text(
		nodetool_get(tool, "gossip?port=%s", tool->print_port ? "true" : ""), "text"));
	return 0;
}

static int
cluster_failure_detector(struct nodetool *tool)
{
	json_t *answer = nodetool_get(tool, "failuredetector"), *node;
	size_t index;

	printf("%10s,%16s\n", "Endpoint", "Phi");
	json_array_foreach(json_object_get(answer, "nodes"), index, node)
	{
		char name[CLUSTER_NAME_MAX + 1];

		snprintf(name, sizeof(name), "/%s", cluster_address(tool, node));
		printf("%10s,%16.8f\n", name, nodetool_real(node, "phi"));
	}
	return 0;
}

static int
cluster_netstats(struct nodetool *tool)
{
	static const char format[] = "%-25s%10s%10s%15s%10s\n";
	json_t *answer = nodetool_get(tool, "netstats"), *pool;
	size_t index;

	printf("Mode: %s\n", nodetool_text(answer, "mode"));
	topology_print_streams(tool, json_object_get(answer, "streams"));
	if (strcmp(nodetool_text(answer, "mode"), "STARTING") == 0)
		return 0;
	printf("Read Repair Statistics:\nAttempted: %" PRId64 "\nMismatch (Blocking): %" PRId64
	       "\nMismatch (Background): %" PRId64 "\n",
	    nodetool_int(answer, "read_repair_attempted"),
	    nodetool_int(answer, "read_repair_blocking"),
	    nodetool_int(answer, "read_repair_background"));
	printf(format, "Pool Name", "Active", "Pending", "Completed", "Dropped");
	json_array_foreach(json_object_get(answer, "pools"), index, pool)
	{
		char pending[32], completed[32], dropped[32];

		snprintf(pending, sizeof(pending), "%" PRId64, nodetool_int(pool, "pending"));
		snprintf(completed, sizeof(completed), "%" PRId64, nodetool_int(pool, "completed"));
		snprintf(dropped, sizeof(dropped), "%" PRId64, nodetool_int(pool, "dropped"));
		printf(format, nodetool_text(pool, "name"), "n/a", pending, completed, dropped);
	}
	return 0;
}

static int
cluster_status_gossip(struct nodetool *tool)
{
	printf("%s\n",
	    nodetool_true(nodetool_get(tool, "info"), "gossip_active") ? "running" : "not running");
	return 0;
}

static int
cluster_gossip(struct nodetool *tool)
{
	(void)nodetool_post(tool, "gossip?enabled=%s",
	    strcmp(tool->command->name, "enablegossip") == 0 ? "true" : "false");
	return 0;
}

static void
cluster_print_seeds(const json_t *answer, const char *title)
{
	json_t *seeds = json_object_get(answer, "seeds"), *seed;
	size_t index;

	if (json_array_size(seeds) == 0) {
		printf("Seed node list does not contain any remote node IPs\n");
		return;
	}
	printf("%s seed node IP%s, excluding the current node's IP:", title,
	    title[0] == 'U' ? " list" : "s");
	json_array_foreach(seeds, index, seed) printf(" /%s", json_string_value(seed));
	putchar('\n');
}

static int
cluster_seeds(struct nodetool *tool)
{
	cluster_print_seeds(nodetool_get(tool, "seeds"), "Current list of");
	return 0;
}

static int
cluster_reload_seeds(struct nodetool *tool)
{
	cluster_print_seeds(nodetool_post(tool, "reloadseeds"), "Updated");
	return 0;
}

static int
cluster_assassinate(struct nodetool *tool)
{
	(void)nodetool_post(tool, "assassinate?address=%u", tool->words[0]);
	return 0;
}

static const struct nodetool_option cluster_human_options[] = {
    {"-H", "--human-readable", NULL, "Sizes with units"}, {NULL, NULL, NULL, NULL}};
static const struct nodetool_option cluster_resolve_options[] = {
    {"-r", "--resolve-ip", NULL, "Show names instead of addresses"}, {NULL, NULL, NULL, NULL}};

const struct nodetool_command nodetool_cluster_commands[] = {
    {"assassinate", "Take a dead node out of the ring by force, without its data: the last resort",
	"[--] <ip_address>", 1, 1, NULL, cluster_assassinate, NULL},
    {"describecluster", "Name, snitch, partitioner and schema versions of the cluster", "", 0, 0,
	NULL, cluster_describe, NULL},
    {"describering", "Token ranges of a keyspace and who holds them", "[--] <keyspace>", 1, 1, NULL,
	cluster_describe_ring, NULL},
    {"disablegossip", "Stop gossip: to the others the node is down", "", 0, 0, NULL, cluster_gossip,
	NULL},
    {"enablegossip", "Gossip again", "", 0, 0, NULL, cluster_gossip, NULL},
    {"failuredetector", "How suspect each other node is", "", 0, 0, NULL, cluster_failure_detector,
	NULL},
    {"getendpoints", "Nodes that hold a key", "[--] <keyspace> <table> <key>", 3, 3, NULL,
	cluster_endpoints, NULL},
    {"getseeds", "Seeds other than this node", "", 0, 0, NULL, cluster_seeds, NULL},
    {"gossipinfo", "What gossip tells of the nodes", "", 0, 0, cluster_resolve_options,
	cluster_gossip_info, NULL},
    {"join", "Join the ring, of a node that was started with cassandra.join_ring false", "", 0, 0,
	NULL, NULL, "join"},
    {"netstats", "Streams and messages between nodes", "", 0, 1, cluster_human_options,
	cluster_netstats, NULL},
    {"reloadseeds", "Read the seeds from the configuration file again", "", 0, 0, NULL,
	cluster_reload_seeds, NULL},
    {"ring", "All tokens of the ring", "[<keyspace>]", 0, 1, cluster_resolve_options, cluster_ring,
	NULL},
    {"status", "The nodes of the cluster: state, load, ids", "[--] [<keyspace>]", 0, 1,
	cluster_resolve_options, cluster_status, NULL},
    {"statusgossip", "Does the node gossip", "", 0, 0, NULL, cluster_status_gossip, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
