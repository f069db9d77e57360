/* SPDX-License-Identifier: Apache-2.0 */
/* Hinted handoff. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "tools/nodetool.h"

static int
hints_status(struct nodetool *tool)
{
	const json_t *answer = nodetool_get(tool, "hints"), *datacenter;
	size_t index;

	printf(
	    "Hinted handoff is %s\n", nodetool_true(answer, "enabled") ? "running" : "not running");
	json_array_foreach(json_object_get(answer, "disabled_data_centers"), index, datacenter)
	    printf("Data center %s is disabled\n", json_string_value(datacenter));
	return 0;
}

static int
hints_window(struct nodetool *tool)
{
	printf("Current max hint window: %" PRId64 " ms\n",
	    nodetool_int(nodetool_get(tool, "hints"), "window_ms"));
	return 0;
}

static int
hints_list(struct nodetool *tool)
{
	const json_t *pending = json_object_get(nodetool_get(tool, "hints"), "pending"), *each;
	struct nodetool_grid grid;
	size_t index;

	if (json_array_size(pending) == 0) {
		printf("This node does not have any pending hints\n");
		return 0;
	}
	nodetool_grid_init(&grid, " ", 8);
	nodetool_grid_add(&grid, "Host ID");
	nodetool_grid_add(&grid, "Address");
	nodetool_grid_add(&grid, "Rack");
	nodetool_grid_add(&grid, "DC");
	nodetool_grid_add(&grid, "Status");
	nodetool_grid_add(&grid, "Total files");
	nodetool_grid_add(&grid, "Newest");
	nodetool_grid_add(&grid, "Oldest");
	json_array_foreach(pending, index, each)
	{
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "host_id"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "address"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "rack"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "data_center"));
		nodetool_grid_add(&grid, "%s", nodetool_text(each, "status"));
		nodetool_grid_add(&grid, "%" PRId64, nodetool_int(each, "files"));
		nodetool_grid_add(
		    &grid, "%s", nodetool_time(nodetool_int(each, "newest_ms"), false));
		nodetool_grid_add(
		    &grid, "%s", nodetool_time(nodetool_int(each, "oldest_ms"), false));
	}
	nodetool_grid_print(&grid);
	nodetool_grid_fini(&grid);
	return 0;
}

static bool
hints_is_on(const struct nodetool *tool)
{
	return strncmp(tool->command->name, "enable", 6) == 0 ||
	    strncmp(tool->command->name, "resume", 6) == 0;
}

static int
hints_switch(struct nodetool *tool)
{
	(void)nodetool_post(tool, "handoff?enabled=%s", hints_is_on(tool) ? "true" : "false");
	return 0;
}

static int
hints_switch_datacenter(struct nodetool *tool)
{
	(void)nodetool_post(
	    tool, "handoff?enabled=%s&dc=%u", hints_is_on(tool) ? "true" : "false", tool->words[0]);
	return 0;
}

static int
hints_switch_delivery(struct nodetool *tool)
{
	(void)nodetool_post(tool, "hintdelivery?enabled=%s", hints_is_on(tool) ? "true" : "false");
	return 0;
}

static int
hints_set_throttle(struct nodetool *tool)
{
	(void)nodetool_post(tool, "hintthrottle?kib=%u", tool->words[0]);
	return 0;
}

static int
hints_set_window(struct nodetool *tool)
{
	(void)nodetool_post(tool, "hintwindow?ms=%u", tool->words[0]);
	return 0;
}

static int
hints_truncate(struct nodetool *tool)
{
	if (tool->word_count == 0)
		(void)nodetool_post(tool, "truncatehints");
	for (int i = 0; i < tool->word_count; i++)
		(void)nodetool_post(tool, "truncatehints?address=%u", tool->words[i]);
	return 0;
}

static int
hints_batchlog_throttle(struct nodetool *tool)
{
	printf("Batchlog replay throttle: %" PRId64 " KB/s\n",
	    nodetool_int(nodetool_get(tool, "hints"), "batchlog_throttle_kib"));
	return 0;
}

static int
hints_set_batchlog_throttle(struct nodetool *tool)
{
	(void)nodetool_post(tool, "batchlogthrottle?kib=%u", tool->words[0]);
	return 0;
}

const struct nodetool_command nodetool_hints_commands[] = {
    {"disablehandoff", "Keep no hints for nodes that are down", "", 0, 0, NULL, hints_switch, NULL},
    {"disablehintsfordc", "Keep no hints for the nodes of a data center", "<datacenter>", 1, 1,
	NULL, hints_switch_datacenter, NULL},
    {"enablehandoff", "Keep hints for nodes that are down", "", 0, 0, NULL, hints_switch, NULL},
    {"enablehintsfordc", "Keep hints for the nodes of a data center again", "<datacenter>", 1, 1,
	NULL, hints_switch_datacenter, NULL},
    {"getbatchlogreplaythrottle", "Limit of the batchlog's replay, for the whole ring", "", 0, 0,
	NULL, hints_batchlog_throttle, NULL},
    {"getmaxhintwindow", "How long hints are kept for a node that is down", "", 0, 0, NULL,
	hints_window, NULL},
    {"listpendinghints", "Hints that this node has for others", "", 0, 0, NULL, hints_list, NULL},
    {"pausehandoff", "Deliver no hints for now", "", 0, 0, NULL, hints_switch_delivery, NULL},
    {"replaybatchlog", "Write what the batchlog has again, and wait", "", 0, 0, NULL, NULL,
	"replaybatchlog"},
    {"resumehandoff", "Deliver hints again", "", 0, 0, NULL, hints_switch_delivery, NULL},
    {"setbatchlogreplaythrottle",
	"Limit of the batchlog's replay, KiB/s for the whole ring; 0: none",
	"<value_in_kb_per_sec>", 1, 1, NULL, hints_set_batchlog_throttle, NULL},
    {"sethintedhandoffthrottlekb", "Limit of hints that are delivered, KiB/s; 0: none",
	"<value_in_kb_per_sec>", 1, 1, NULL, hints_set_throttle, NULL},
    {"setmaxhintwindow", "How long hints are kept for a node that is down, ms", "<value_in_ms>", 1,
	1, NULL, hints_set_window, NULL},
    {"statushandoff", "Are hints stored for nodes that are down", "", 0, 0, NULL, hints_status,
	NULL},
    {"truncatehints", "Forget hints: all, or those for some nodes", "[<address>...]", 0, 64, NULL,
	hints_truncate, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
