/* SPDX-License-Identifier: Apache-2.0 */
#include "server/disk_usage.h"

#include <fts.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/application_state.h"
#include "cluster/gossip.h"
#include "server/cluster.h"
#include "server/node.h"
#include "storage/store.h"

#define DISK_USAGE_INTERVAL_NS (UINT64_C(30) * 1000000000)
/* What stays over a threshold is logged again after so long. */
#define DISK_USAGE_SILENCE_NS (UINT64_C(30) * 60 * 1000000000)

static const struct {
	const char *name, *text;
} disk_usages[] = {
    [DISK_USAGE_NOT_AVAILABLE] = {"NOT_AVAILABLE", "Not Available"},
    [DISK_USAGE_SPACIOUS] = {"SPACIOUS", "Spacious"},
    [DISK_USAGE_STUFFED] = {"STUFFED", "Stuffed"},
    [DISK_USAGE_FULL] = {"FULL", "Full"},
};

enum { DISK_USAGES = sizeof(disk_usages) / sizeof(disk_usages[0]) };

/* ---- What the nodes say -------------------------------------------------------------------- */

/* Of one peer by one thread at a time. */
static void
disk_usage_set(struct node *node, struct peer *peer, enum disk_usage usage)
{
	uint8_t before = atomic_exchange(&peer->disk_usage, (uint8_t)usage);

	if (usage >= DISK_USAGE_STUFFED && before < DISK_USAGE_STUFFED)
		atomic_fetch_add(&node->stuffed_peers, 1);
	else if (usage < DISK_USAGE_STUFFED && before >= DISK_USAGE_STUFFED)
		atomic_fetch_sub(&node->stuffed_peers, 1);
}

void
disk_usage_heard(struct node *node, struct peer *peer)
{
	enum disk_usage usage = DISK_USAGE_NOT_AVAILABLE;
	struct slice value;

	if (peer->is_local)
		return;
	value = gossip_value(node->cluster->gossip, peer, STATE_DISK_USAGE);
	for (int i = 0; i < DISK_USAGES && !slice_is_null(value); i++)
		if (slice_equal_string(value, disk_usages[i].name))
			usage = (enum disk_usage)i;
	disk_usage_set(node, peer, usage);
}

void
disk_usage_forget(struct node *node, struct peer *peer)
{
	if (!peer->is_local)
		disk_usage_set(node, peer, DISK_USAGE_NOT_AVAILABLE);
}

/* ---- This node's own ----------------------------------------------------------------------- */

/* Bytes of all files below, snapshots and temporary ones included. */
static uint64_t
disk_usage_folder(char *path)
{
	char *paths[] = {path, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	uint64_t bytes = 0;
	FTSENT *entry;

	if (tree == NULL)
		return 0;
	while ((entry = fts_read(tree)) != NULL)
		if (entry->fts_info == FTS_F)
			bytes += (uint64_t)entry->fts_statp->st_size;
	fts_close(tree);
	return bytes;
}

/* Directories of one disk share the space that is left on it. */
static bool
disk_usage_is_new_disk(const struct config_list *directories, size_t at)
{
	struct stat mine, other;

	if (stat(directories->items[at], &mine) != 0)
		return false;
	for (size_t i = 0; i < at; i++)
		if (stat(directories->items[i], &other) == 0 && other.st_dev == mine.st_dev)
			return false;
	return true;
}

/* Percent, rounded up. */
static int64_t
disk_usage_measure(const struct node *node)
{
	const struct config_list *directories = &node->config->data_file_directories;
	int64_t most = node->config->data_disk_usage_max_disk_size;
	double used = 0, usable = 0, total, percent;

	for (size_t i = 0; i < directories->count; i++) {
		struct statvfs disk;

		used += (double)disk_usage_folder(directories->items[i]);
		if (disk_usage_is_new_disk(directories, i) &&
		    statvfs(directories->items[i], &disk) == 0)
			usable += (double)disk.f_bavail * (double)disk.f_frsize;
	}
	total = used + usable;
	if (most != CONFIG_UNSET && total > (double)most)
		total = (double)most;
	used += (double)store_memtable_bytes(node->store);
	percent = total > 0 ? used / total * 100 : 100;
	return (int64_t)percent + ((double)(int64_t)percent < percent);
}

static void
disk_usage_log(struct node *node, enum disk_usage usage, int64_t percent)
{
	const struct config *config = node->config;
	uint64_t now = env_monotonic_ns(node->env);
	bool is_full = usage == DISK_USAGE_FULL;

	if (usage < DISK_USAGE_STUFFED || now < node->disk_usage_log_ns[is_full])
		return;
	node->disk_usage_log_ns[is_full] = now + DISK_USAGE_SILENCE_NS;
	if (is_full)
		log_error(
		    "Guardrail local_data_disk_usage violated: Local data disk usage "
		    "%lld%%(%s) exceeds failure threshold of %d%%, will stop accepting writes",
		    (long long)percent, disk_usages[usage].text,
		    config->data_disk_usage_percentage_fail_threshold);
	else
		log_warn("Guardrail local_data_disk_usage violated: Local data disk usage "
			 "%lld%%(%s) exceeds warning threshold of %d%%",
		    (long long)percent, disk_usages[usage].text,
		    config->data_disk_usage_percentage_warn_threshold);
}

static bool
disk_usage_is_asked_for(const struct config *config)
{
	return config->data_disk_usage_percentage_warn_threshold > 0 ||
	    config->data_disk_usage_percentage_fail_threshold > 0;
}

void
disk_usage_look(struct node *node)
{
	const struct config *config = node->config;
	int32_t warn = config->data_disk_usage_percentage_warn_threshold;
	int32_t fail = config->data_disk_usage_percentage_fail_threshold;
	struct peer *local = peers_local(node->cluster->peers);
	struct gossip_change change = {.state = STATE_DISK_USAGE};
	enum disk_usage usage;
	int64_t percent;

	if (!disk_usage_is_asked_for(config))
		return;
	percent = disk_usage_measure(node);
	usage = fail > 0 && percent > fail ? DISK_USAGE_FULL
	    : warn > 0 && percent > warn   ? DISK_USAGE_STUFFED
					   : DISK_USAGE_SPACIOUS;
	disk_usage_log(node, usage, percent);
	if (atomic_load(&local->disk_usage) == usage)
		return;
	disk_usage_set(node, local, usage);
	change.value = slice_of_string(disk_usages[usage].name);
	gossip_set(node->cluster->gossip, &change, 1);
}

static void
disk_usage_run(void *argument)
{
	disk_usage_look(argument);
}

void
disk_usage_tick(struct node *node)
{
	uint64_t now = env_monotonic_ns(node->env);

	if (!disk_usage_is_asked_for(node->config) || now < node->disk_usage_next_ns)
		return;
	node->disk_usage_next_ns = now + DISK_USAGE_INTERVAL_NS;
	/* Not taken: the node stops. */
	(void)stage_submit_work(node->stages[NODE_STAGE_MISC], disk_usage_run, node);
}
