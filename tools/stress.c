/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helenus-stress: cassandra-stress's command lines, data and reports, on the project's own protocol
 * code. See man/helenus-stress.1.
 */
#include <signal.h>
#include <stdio.h>
#include "tools/stress_action.h"
#include "tools/stress_graph.h"

int
main(int argc, char **argv)
{
	struct stress_settings settings;
	struct stress_output output;
	struct error err;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = stress_settings_parse(&settings, argc - 1, argv + 1, &err);
	if (rc != 0) {
		if (rc < 0)
			printf("%s\n", err.text);
		stress_settings_fini(&settings);
		return rc < 0;
	}
	rc = stress_output_open(&output, &settings, &err);
	if (rc == 0)
		rc = stress_action_run(&settings, &output, &err);
	if (settings.graph_file != NULL && output.text.size > 0 && rc == 0)
		rc = stress_graph_write(&settings, argc, argv, buffer_slice(&output.text), &err);
	if (rc != 0)
		fprintf(stderr, "java.lang.RuntimeException: %s\n", err.text);
	stress_output_close(&output);
	stress_settings_fini(&settings);
	return rc != 0;
}
