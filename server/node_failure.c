/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "server/cluster.h"
#include "server/node_failure.h"
#include "server/node.h"
#include "storage/store.h"

/* disk_failure_policy and commit_failure_policy (Cassandra: DefaultFSErrorHandler, CommitLog.handleCommitError). */

enum node_reaction { NODE_GOES_ON, NODE_STOPS_TRANSPORTS, NODE_DIES };

static bool
node_policy_is(const char *policy, const char *name)
{
	return policy != NULL && strcasecmp(policy, name) == 0;
}

static enum node_reaction
node_react_to_disk(const char *policy, enum store_failure failure)
{
	bool is_file = failure == STORE_FAILURE_READ || failure == STORE_FAILURE_WRITE;

	if (node_policy_is(policy, "die"))
		return NODE_DIES;
	/* A full disk has not failed: the store refuses writes until there is space, reads go on. */
	if (failure == STORE_FAILURE_SPACE)
		return NODE_GOES_ON;
	if (node_policy_is(policy, "stop_paranoid"))
		return NODE_STOPS_TRANSPORTS;
	if (node_policy_is(policy, "stop"))
		return is_file ? NODE_STOPS_TRANSPORTS : NODE_GOES_ON;
	if (node_policy_is(policy, "best_effort") && failure == STORE_FAILURE_NO_DIRECTORY)
		return NODE_STOPS_TRANSPORTS;
	return NODE_GOES_ON;
}

static enum node_reaction
node_react_to_commit_log(const char *policy)
{
	return node_policy_is(policy, "die") ? NODE_DIES
	    : node_policy_is(policy, "stop") ? NODE_STOPS_TRANSPORTS
					     : NODE_GOES_ON;
}

/*
 * On MiscStage: closing waits for what is in flight. The others are told that the node is gone
 * (StorageService.stopTransports), so that they send it nothing more.
 */
static void
node_stop_transports(void *argument)
{
	struct node *node = argument;
	struct error err;

	network_disable(node->network);
	if (cluster_set_gossiping(node->cluster, false, &err) != 0)
		log_warn("gossip was not stopped: %s", err.text);
}

static void
node_on_failure(void *context, enum store_failure failure, const struct error *err)
{
	struct node *node = context;
	const struct config *config = node->config;
	bool is_log = failure == STORE_FAILURE_COMMIT_LOG;
	const char *key = is_log ? "commit_failure_policy" : "disk_failure_policy";
	char left_out[LOG_LIMIT_TEXT_MAX];
	const char *policy = is_log ? config->commit_failure_policy : config->disk_failure_policy;

	switch (is_log ? node_react_to_commit_log(policy) : node_react_to_disk(policy, failure)) {
	case NODE_DIES:
		log_error("Exiting as %s is %s: %s", key, policy, err->text);
		_exit(EXIT_FAILURE);
	case NODE_STOPS_TRANSPORTS:
		log_error(
		    "Stopping transports as %s is %s: %s. The process stays for nodetool; mend "
		    "the disk and restart it, or replace the node",
		    key, policy, err->text);
		if (!stage_submit_work(node->stages[NODE_STAGE_MISC], node_stop_transports, node))
			node_stop_transports(node);
		break;
	case NODE_GOES_ON:
		if (log_limit_take(
			&node->failure_logs[failure], env_monotonic_ns(node->env), left_out))
			log_error(
			    "%s is %s, the node goes on: %s%s", key, policy, err->text, left_out);
		break;
	}
}

void
node_watch_failures(struct node *node)
{
	store_on_failure(node->store, node_on_failure, node);
}
