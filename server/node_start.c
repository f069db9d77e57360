/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "cluster/coordinator.h"
#include "server/admin.h"
#include "server/denylist.h"
#include "server/disk_usage.h"
#include "server/estimates.h"
#include "server/peer_events.h"
#include "server/batchlog.h"
#include "server/cluster.h"
#include "server/executor.h"
#include "server/node.h"
#include "server/node_failure.h"
#include "server/operations.h"
#include "storage/store.h"

/* Starting and stopping a node: everything that touches the disk and the other floors. */

enum { NODE_DRAIN_TIMEOUT_MS = 20000 };

/* ---- the store's background work runs on our stages ---------------------------------------------- */

static bool
node_submit(void *context, const char *name, store_work_fn work, void *argument)
{
	struct node *node = context;
	int stage = node_stage_find(name);

	if (stage < 0)
		stage = NODE_STAGE_MISC;
	return stage_submit_work(node->stages[stage], work, argument);
}

/* Seconds; a negative one is none. */
static uint64_t
node_period(int64_t seconds)
{
	return seconds > 0 ? (uint64_t)seconds : 0;
}

/* The greatest int means all, and so does a negative number. */
static uint64_t
node_keys_to_save(int32_t count)
{
	return count < 0 || count == INT32_MAX ? UINT64_MAX : (uint64_t)count;
}

static void
node_store_options(const struct config *config, struct store_options *options)
{
	const char *sync = config->commitlog_sync, *level;

	store_options_defaults(options);
	options->data_directories = (const char *const *)config->data_file_directories.items;
	options->data_directory_count = (uint32_t)config->data_file_directories.count;
	options->min_free_space_per_drive_bytes = (uint64_t)config->min_free_space_per_drive;
	options->commitlog_directory = config->commitlog_directory;
	options->commitlog_sync = strcasecmp(sync, "batch") == 0 ? COMMITLOG_SYNC_BATCH
	    : strcasecmp(sync, "group") == 0                     ? COMMITLOG_SYNC_GROUP
								 : COMMITLOG_SYNC_PERIODIC;
	options->commitlog_sync_period_ms = (uint32_t)config->commitlog_sync_period;
	options->commitlog_sync_group_window_ms = (uint32_t)config->commitlog_sync_group_window;
	options->periodic_commitlog_sync_lag_block_ms =
	    (uint32_t)config->periodic_commitlog_sync_lag_block;
	options->commitlog_segment_bytes = (uint64_t)config->commitlog_segment_size;
	options->commitlog_total_bytes = (uint64_t)config->commitlog_total_space;
	options->commitlog_compressor = config->commitlog_compression__class_name;
	level = config_extra(config, "commitlog_compression.parameters.compression_level");
	options->commitlog_compression_level = level == NULL ? 0 : (int32_t)strtol(level, NULL, 10);
	options->max_mutation_bytes = (uint64_t)config->max_mutation_size;
	options->archive_command = config->archive_command;
	options->restore_command = config->restore_command;
	options->restore_directories = config->restore_directories;
	options->restore_point_ms = config->restore_point_ms;
	options->restore_precision_ns = config->restore_precision_ns;
	options->commitlog_ignore_replay_errors = config->commitlog_ignore_replay_errors;
	options->memtable_bytes = (uint64_t)config->memtable_heap_space;
	options->memtable_cleanup_threshold = config->memtable_cleanup_threshold;
	options->memtable_shards = (uint32_t)config->memtable_shards;
	options->file_cache_bytes = (uint64_t)config->file_cache_size;
	options->key_cache_bytes = (uint64_t)config->key_cache_size;
	options->row_cache_bytes = (uint64_t)config->row_cache_size;
	options->counter_cache_bytes = (uint64_t)config->counter_cache_size;
	options->saved_caches_directory = config->saved_caches_directory;
	options->cache_save_period_seconds[0] = node_period(config->key_cache_save_period);
	options->cache_save_period_seconds[1] = node_period(config->row_cache_save_period);
	options->cache_save_period_seconds[2] = node_period(config->counter_cache_save_period);
	options->cache_keys_to_save[0] = node_keys_to_save(config->key_cache_keys_to_save);
	options->cache_keys_to_save[1] = node_keys_to_save(config->row_cache_keys_to_save);
	options->cache_keys_to_save[2] = node_keys_to_save(config->counter_cache_keys_to_save);
	options->cache_load_timeout_ms = (uint64_t)config->cache_load_timeout;
	options->compaction_large_partition_warning_bytes =
	    (uint64_t)config->compaction_large_partition_warning_threshold;
	options->compaction_tombstone_warning_count =
	    (uint64_t)config->compaction_tombstone_warning_threshold;
	options->column_index_bytes = (uint32_t)config->column_index_size;
	options->snapshot_links_per_second = (uint64_t)config->snapshot_links_per_second;
	options->concurrent_compactors = (uint32_t)config->concurrent_compactors;
	options->compaction_bytes_per_second = (uint64_t)config->compaction_throughput;
	options->auto_snapshot = config->auto_snapshot;
	options->trickle_fsync = config->trickle_fsync;
	options->auto_snapshot_ttl_seconds =
	    config->auto_snapshot_ttl == CONFIG_UNSET ? 0 : config->auto_snapshot_ttl / 1000;
	options->excludes_failed_directories =
	    strcasecmp(config->disk_failure_policy, "best_effort") == 0;
	options->skips_damaged_at_start = options->excludes_failed_directories ||
	    strcasecmp(config->disk_failure_policy, "ignore") == 0;
	options->commitlog_ignores_failures =
	    strcasecmp(config->commit_failure_policy, "ignore") == 0;
	options->snapshot_before_compaction = config->snapshot_before_compaction;
	options->incremental_backups = config->incremental_backups;
}

/* ---- one server for one data directory -------------------------------------------------------------- */

/*
 * A locked file with our pid. It stays when we die and the lock goes with us, so a crash leaves nothing
 * to clean up.
 */
static int
node_lock_directory(struct node *node, const char *directory, struct error *err)
{
	char *path = xasprintf("%s/.helenusd.pid", directory);
	char text[32];
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644), rc = 0;
	ssize_t got;

	if (fd < 0) {
		rc = error_set_errno(err, errno, "%s", path);
	} else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		got = read(fd, text, sizeof(text) - 1);
		text[got > 0 ? (size_t)got : 0] = '\0';
		text[strcspn(text, "\n")] = '\0';
		rc = error_set(err, ERROR_CONFIG,
		    "%s is used by another server (process %s); give this one another "
		    "data_directory, or stop that one",
		    directory, text);
		close(fd);
	} else {
		int length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

		if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length)
			log_warn("%s: cannot write the pid: %s", path, strerror(errno));
		node->lock_fds[node->lock_count++] = fd;
	}
	free(path);
	return rc;
}

static int
node_lock_data(struct node *node, struct error *err)
{
	const struct config_list *directories = &node->config->data_file_directories;

	node->lock_fds = xcalloc(directories->count, sizeof(*node->lock_fds));
	for (size_t i = 0; i < directories->count; i++)
		if (node_lock_directory(node, directories->items[i], err) != 0)
			return -1;
	return 0;
}

static int
node_make_directories(struct node *node, struct error *err)
{
	const struct config *config = node->config;
	const char *directories[] = {
	    config->commitlog_directory, config->saved_caches_directory, config->hints_directory};

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (files_mkdir(node->env->files, directories[i], err) != 0)
			return -1;
	for (size_t i = 0; i < config->data_file_directories.count; i++)
		if (files_mkdir(node->env->files, config->data_file_directories.items[i], err) != 0)
			return -1;
	return 0;
}

/* ---- start and stop --------------------------------------------------------------------------------------- */

static int
node_start_parts(struct node *node, struct error *err)
{
	const struct store_executor executor = {.submit = node_submit, .context = node};
	struct store_options options;

	if (node_make_directories(node, err) != 0 || node_lock_data(node, err) != 0)
		return -1;
	if (cluster_new(node, &node->cluster, err) != 0)
		return -1;
	node_store_options(node->config, &options);
	/* Before there are compactions, whose threads are nice. */
	stage_start_thread(node->stages[NODE_STAGE_MEMTABLE_FLUSH]);
	if (store_open(&options, node->env, &executor, &node->store, err) != 0)
		return -1;
	node->coordinator = coordinator_new(node->store, node->env);
	if (cluster_set_coordinator(node->cluster, node->coordinator, err) != 0)
		return -1;
	node->executor = executor_new(node);
	cluster_set_executor(node->cluster, node->executor);
	node->network = network_new(node);
	if (executor_start(node->executor, err) != 0)
		return -1;
	operations_record_compactions(node->executor);
	node->estimates = estimates_new(node->executor);
	node->peer_events = peer_events_new(node->executor);
	if (node->config->admin_port >= 0 && admin_start(node, &node->admin, err) != 0)
		return -1;
	if (network_start_loops(node->network, err) != 0 || cluster_start(node->cluster, err) != 0)
		return -1;
	disk_usage_look(node);
	node->denylist = denylist_new(node->executor);
	denylist_load(node->denylist);
	if (batchlog_start(node->executor, &node->batchlog, err) != 0 ||
	    network_start(node->network, err) != 0)
		return -1;
	cluster_set_serving(node->cluster, node->config->start_native_transport);
	atomic_store(&node->mode, NODE_NORMAL);
	node_watch_failures(node);
	log_info("Startup complete");
	return 0;
}

int
node_start(struct node *node, struct error *err)
{
	if (node_start_parts(node, err) == 0)
		return 0;
	if (err->code == ERROR_NO_SPACE)
		error_prefix(err,
		    "the disk is full, nothing acknowledged is lost: make room (folders snapshots/ "
		    "and backups/ below the data directory are the first to look at) and start "
		    "again");
	return -1;
}

int
node_drain(struct node *node, struct error *err)
{
	static const enum node_stage order[] = {NODE_STAGE_COUNTER_MUTATION,
	    NODE_STAGE_VIEW_MUTATION, NODE_STAGE_MUTATION, NODE_STAGE_READ,
	    NODE_STAGE_NATIVE_TRANSPORT, NODE_STAGE_NATIVE_AUTH};
	int mode = NODE_NORMAL;

	if (!atomic_compare_exchange_strong(&node->mode, &mode, NODE_DRAINING))
		return mode == NODE_DRAINED || mode == NODE_STARTING
		    ? 0
		    : error_set(err, ERROR_SHUTDOWN, "the node is being drained already");
	log_info("DRAINING: starting drain process");
	batchlog_stop(node->batchlog);
	/* First, so that clients of the others turn away from this node before it does from its own. */
	if (node->cluster != NULL)
		cluster_leave(node->cluster);
	if (node->network != NULL)
		network_stop(node->network, NODE_DRAIN_TIMEOUT_MS);
	peer_events_write(node->peer_events);
	/* Not before: what its clients still wait for may be another node's. */
	if (node->cluster != NULL)
		cluster_stop(node->cluster);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		stage_stop(node->stages[order[i]]);
	if (node->store != NULL && store_drain(node->store, err) != 0)
		return -1;
	atomic_store(&node->mode, NODE_DRAINED);
	log_info("DRAINED");
	return 0;
}

void
node_fini(struct node *node)
{
	/* An operation of the admin port may be waiting for one, and so would the stages' end. */
	if (node->store != NULL)
		store_end_compactions(node->store);
	batchlog_stop(node->batchlog);
	if (node->admin != NULL)
		admin_stop(node->admin);
	if (node->network != NULL)
		network_stop(node->network, 0);
	if (node->cluster != NULL)
		cluster_stop(node->cluster);
	/* A start that was refused has said why. */
	if (node->store != NULL && atomic_load(&node->mode) != NODE_DRAINED &&
	    atomic_load(&node->mode) != NODE_STARTING)
		log_warn("stopping without a drain: the commit log will be replayed");
	/* The store first: its work on the stages ends, and then the stages do. */
	for (int i = 0; i < NODE_STAGE_COUNT; i++)
		if (node->stages[i] != NULL)
			stage_stop(node->stages[i]);
	estimates_free(node->estimates);
	peer_events_free(node->peer_events);
	denylist_free(node->denylist);
	if (node->cluster != NULL)
		cluster_end(node->cluster);
	batchlog_free(node->batchlog);
	executor_free(node->executor);
	coordinator_free(node->coordinator);
	store_close(node->store);
	network_free(node->network);
	cluster_free(node->cluster);
	free(node->saved_tokens);
	for (int i = 0; i < NODE_STAGE_COUNT; i++)
		stage_free(node->stages[i]);
	metrics_fini(&node->metrics);
	for (size_t i = 0; i < node->lock_count; i++)
		close(node->lock_fds[i]);
	free(node->lock_fds);
	if (node->stop_fd >= 0)
		close(node->stop_fd);
	memset(node, 0, sizeof(*node));
}
