/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/store.h"

void
store_options_defaults(struct store_options *options)
{
	*options = (struct store_options){
	    .commitlog_sync = COMMITLOG_SYNC_PERIODIC,
	    .commitlog_sync_period_ms = 10000,
	    .commitlog_sync_group_window_ms = 1000,
	    .periodic_commitlog_sync_lag_block_ms = 15000,
	    .commitlog_segment_bytes = 32 << 20,
	    .commitlog_total_bytes = UINT64_C(8) << 30,
	    .restore_point_ms = INT64_MAX,
	    .restore_precision_ns = 1000,
	    .max_mutation_bytes = 16 << 20,
	    .memtable_bytes = UINT64_C(512) << 20,
	    .memtable_cleanup_threshold = 0.33,
	    .file_cache_bytes = UINT64_C(512) << 20,
	    .counter_cache_bytes = UINT64_C(50) << 20,
	    .cache_keys_to_save = {UINT64_MAX, UINT64_MAX, UINT64_MAX},
	    .cache_load_timeout_ms = 30000,
	    .key_cache_bytes = UINT64_C(100) << 20,
	    .column_index_bytes = 64 << 10,
	    .concurrent_compactors = 2,
	    .compaction_bytes_per_second = UINT64_C(64) << 20,
	    .auto_snapshot = true,
	};
}
