/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit that benchmarks compare with: the project's own network stage and stages in front of an
 * executor that answers every request with Void. Options are those of helenusd.
 *
 *   null_server [-D key=value]...      prints one ready line, ends on SIGINT or SIGTERM
 */
#include <signal.h>
#include <stdio.h>

#include "base/env.h"
#include "base/log.h"
#include "tests/unit/server/null_executor.h"

int
main(int argc, char **argv)
{
	struct config config;
	struct error err;
	struct node node;
	struct env *env = env_posix_new();
	sigset_t signals;
	int option, signal;

	log_set_level("ROOT", LOG_WARN);
	config_init(&config);
	while ((option = getopt(argc, argv, "D:c:")) != -1) {
		int rc = option == 'D' ? config_set_option(&config, optarg, &err)
		    : option == 'c'    ? config_read_file(&config, optarg, &err)
				       : error_set(&err, ERROR_CONFIG, "usage: null_server -D k=v");

		if (rc != 0)
			goto failed;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (config_finish(&config, &err) != 0)
		goto failed;
	node_init(&node, &config, env);
	node.executor = executor_new(&node);
	node.network = network_new(&node);
	if (network_start(node.network, &err) != 0)
		goto failed;
	printf("ready: CQL clients on %s:%u\n", config.rpc_address, network_port(node.network));
	fflush(stdout);
	sigwait(&signals, &signal);
	network_stop(node.network, 1000);
	for (int i = 0; i < NODE_STAGE_COUNT; i++)
		stage_free(node.stages[i]);
	network_free(node.network);
	executor_free(node.executor);
	metrics_fini(&node.metrics);
	config_fini(&config);
	env_free(env);
	return 0;
failed:
	fprintf(stderr, "null_server: %s\n", err.text);
	return 2;
}
