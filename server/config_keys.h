/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_CONFIG_KEYS_H
#define HELENUS_SERVER_CONFIG_KEYS_H

/*
 * Every configuration key, once: the struct, the reader, system_views.settings and the checks
 * are all made from this table. Names, units and defaults are those of Cassandra 4.1's Config
 * (conf/cassandra.yaml documents them); keys of our own stand among them in the alphabet.
 *
 *     X(KIND, field, default text or NULL for none, "old_name:unit ..." or NULL)
 *
 * A field's "__" is a "." of the key: client_encryption_options__enabled. Cassandra's system properties (-Dcassandra.x) are
 * keys too, for -D here as there. An old name without a
 * unit is a plain rename. KIND: BOOL, INT, LONG, DOUBLE, STRING, LIST, MS (a duration), SECONDS (a
 * duration that old files give as a bare number of seconds), SIZE (bytes), RATE (bytes a second).
 */
/* clang-format off */
#define CONFIG_KEYS(X) \
	X(STRING, admin_address, "127.0.0.1", NULL) \
	X(INT, admin_port, "7199", NULL) \
	X(STRING, allocate_tokens_for_keyspace, NULL, NULL) \
	X(INT, allocate_tokens_for_local_replication_factor, NULL, NULL) \
	X(BOOL, allow_extra_insecure_udfs, "false", NULL) \
	X(BOOL, allow_filtering_enabled, "true", NULL) \
	X(BOOL, allow_insecure_udfs, "false", NULL) \
	X(BOOL, audit_logging_options__allow_nodetool_archive_command, "false", NULL) \
	X(STRING, audit_logging_options__archive_command, "", NULL) \
	X(STRING, audit_logging_options__audit_logs_dir, "audit", NULL) \
	X(BOOL, audit_logging_options__block, "true", NULL) \
	X(BOOL, audit_logging_options__enabled, "false", NULL) \
	X(STRING, audit_logging_options__excluded_categories, "", NULL) \
	X(STRING, audit_logging_options__excluded_keyspaces, \
	    "system,system_schema,system_virtual_schema", NULL) \
	X(STRING, audit_logging_options__excluded_users, "", NULL) \
	X(STRING, audit_logging_options__included_categories, "", NULL) \
	X(STRING, audit_logging_options__included_keyspaces, "", NULL) \
	X(STRING, audit_logging_options__included_users, "", NULL) \
	X(STRING, audit_logging_options__logger__class_name, "BinAuditLogger", NULL) \
	X(INT, audit_logging_options__max_archive_retries, "10", NULL) \
	X(LONG, audit_logging_options__max_log_size, "17179869184", NULL) \
	X(INT, audit_logging_options__max_queue_weight, "268435456", NULL) \
	X(STRING, audit_logging_options__roll_cycle, "HOURLY", NULL) \
	X(BOOL, auth_cache_warming_enabled, "false", NULL) \
	X(STRING, auth_read_consistency_level, "LOCAL_QUORUM", NULL) \
	X(STRING, auth_write_consistency_level, "EACH_QUORUM", NULL) \
	X(STRING, authenticator, "AllowAllAuthenticator", NULL) \
	X(STRING, authorizer, "AllowAllAuthorizer", NULL) \
	X(BOOL, auto_bootstrap, "true", NULL) \
	X(BOOL, auto_hints_cleanup_enabled, "false", NULL) \
	X(BOOL, auto_optimise_full_repair_streams, "false", NULL) \
	X(BOOL, auto_optimise_inc_repair_streams, "false", NULL) \
	X(BOOL, auto_optimise_preview_repair_streams, "false", NULL) \
	X(BOOL, auto_snapshot, "true", NULL) \
	X(MS, auto_snapshot_ttl, NULL, NULL) \
	X(BOOL, autocompaction_on_startup_enabled, "true", NULL) \
	X(BOOL, automatic_sstable_upgrade, "false", NULL) \
	X(INT, available_processors, "-1", NULL) \
	X(BOOL, back_pressure_enabled, "false", NULL) \
	X(STRING, back_pressure_strategy__class_name, NULL, NULL) \
	X(SIZE, batch_size_fail_threshold, "50KiB", "batch_size_fail_threshold_in_kb:KiB") \
	X(SIZE, batch_size_warn_threshold, "5KiB", "batch_size_warn_threshold_in_kb:KiB") \
	X(STRING, batchlog_endpoint_strategy, "random_remote", NULL) \
	X(SIZE, batchlog_replay_throttle, "1024KiB", "batchlog_replay_throttle_in_kb:KiB") \
	X(BOOL, block_for_peers_in_remote_dcs, "false", NULL) \
	X(INT, block_for_peers_timeout_in_secs, "10", NULL) \
	X(STRING, broadcast_address, NULL, NULL) \
	X(STRING, broadcast_rpc_address, NULL, NULL) \
	X(BOOL, buffer_pool_use_heap_if_exhausted, "false", NULL) \
	X(MS, cache_load_timeout, "30s", "cache_load_timeout_seconds:s") \
	X(MS, cas_contention_timeout, "1800ms", "cas_contention_timeout_in_ms:ms") \
	X(BOOL, cassandra__allow_alter_rf_during_range_movement, "false", NULL) \
	X(BOOL, cassandra__allow_unsafe_replace, "false", NULL) \
	X(LONG, cassandra__auto_repair_frequency_seconds, "300", NULL) \
	X(BOOL, cassandra__consistent__rangemovement, "true", NULL) \
	X(BOOL, cassandra__ignore_dc, "false", NULL) \
	X(BOOL, cassandra__ignore_rack, "false", NULL) \
	X(BOOL, cassandra__join_ring, "true", NULL) \
	X(BOOL, cassandra__override_decommission, "false", NULL) \
	X(STRING, cassandra__replace_address, NULL, NULL) \
	X(STRING, cassandra__replace_address_first_boot, NULL, NULL) \
	X(BOOL, cassandra__reset_bootstrap_progress, "false", NULL) \
	X(LONG, cassandra__ring_delay_ms, "30000", NULL) \
	X(BOOL, cdc_block_writes, "true", NULL) \
	X(BOOL, cdc_enabled, "false", NULL) \
	X(MS, cdc_free_space_check_interval, "250ms", "cdc_free_space_check_interval_ms:ms") \
	X(STRING, cdc_raw_directory, NULL, NULL) \
	X(SIZE, cdc_total_space, NULL, "cdc_total_space_in_mb:MiB") \
	X(BOOL, check_for_duplicate_rows_during_compaction, "true", NULL) \
	X(BOOL, check_for_duplicate_rows_during_reads, "true", NULL) \
	X(LIST, client_encryption_options__accepted_protocols, "[]", NULL) \
	X(STRING, client_encryption_options__algorithm, NULL, NULL) \
	X(LIST, client_encryption_options__cipher_suites, "[]", NULL) \
	X(BOOL, client_encryption_options__enabled, "false", NULL) \
	X(STRING, client_encryption_options__keystore, "conf/.keystore", NULL) \
	X(STRING, client_encryption_options__keystore_password, NULL, NULL) \
	X(BOOL, client_encryption_options__optional, "false", NULL) \
	X(STRING, client_encryption_options__protocol, NULL, NULL) \
	X(STRING, client_encryption_options__require_client_auth, "false", NULL) \
	X(BOOL, client_encryption_options__require_endpoint_verification, "false", NULL) \
	X(STRING, client_encryption_options__ssl_context_factory__class_name, \
	    "org.apache.cassandra.security.DefaultSslContextFactory", NULL) \
	X(STRING, client_encryption_options__ssl_context_factory__parameters__private_key, \
	    NULL, NULL) \
	X(STRING, client_encryption_options__ssl_context_factory__parameters__private_key_password, \
	    NULL, NULL) \
	X(STRING, client_encryption_options__ssl_context_factory__parameters__trusted_certificates, \
	    NULL, NULL) \
	X(STRING, client_encryption_options__store_type, "JKS", NULL) \
	X(STRING, client_encryption_options__truststore, "conf/.truststore", NULL) \
	X(STRING, client_encryption_options__truststore_password, NULL, NULL) \
	X(LIST, client_error_reporting_exclusions__subnets, "[]", NULL) \
	X(STRING, cluster_name, "Test Cluster", NULL) \
	X(SIZE, collection_size_fail_threshold, NULL, NULL) \
	X(SIZE, collection_size_warn_threshold, NULL, NULL) \
	X(SIZE, column_index_cache_size, "2KiB", "column_index_cache_size_in_kb:KiB") \
	X(SIZE, column_index_size, "64KiB", "column_index_size_in_kb:KiB") \
	X(INT, columns_per_table_fail_threshold, "-1", NULL) \
	X(INT, columns_per_table_warn_threshold, "-1", NULL) \
	X(STRING, commit_failure_policy, "stop", NULL) \
	X(STRING, commitlog_compression__class_name, NULL, NULL) \
	X(STRING, commitlog_directory, NULL, NULL) \
	X(BOOL, commitlog_ignore_replay_errors, "false", NULL) \
	X(INT, commitlog_max_compression_buffers_in_pool, "3", NULL) \
	X(INT, commitlog_periodic_queue_size, "-1", NULL) \
	X(SIZE, commitlog_segment_size, "32MiB", "commitlog_segment_size_in_mb:MiB") \
	X(STRING, commitlog_sync, "periodic", NULL) \
	X(STRING, commitlog_sync_batch_window_in_ms, "NaN", NULL) \
	X(MS, commitlog_sync_group_window, "1000ms", "commitlog_sync_group_window_in_ms:ms") \
	X(MS, commitlog_sync_period, "10000ms", "commitlog_sync_period_in_ms:ms") \
	X(SIZE, commitlog_total_space, NULL, "commitlog_total_space_in_mb:MiB") \
	X(BOOL, compact_tables_enabled, "true", NULL) \
	X(SIZE, compaction_large_partition_warning_threshold, \
	    "100MiB", "compaction_large_partition_warning_threshold_mb:MiB") \
	X(RATE, compaction_throughput, "64MiB/s", "compaction_throughput_mb_per_sec:MiB/s") \
	X(INT, compaction_tombstone_warning_threshold, "100000", NULL) \
	X(INT, concurrent_compactors, "0", NULL) \
	X(INT, concurrent_counter_writes, "32", NULL) \
	X(INT, concurrent_materialized_view_builders, "1", NULL) \
	X(INT, concurrent_materialized_view_writes, "32", NULL) \
	X(INT, concurrent_merkle_tree_requests, "0", NULL) \
	X(INT, concurrent_reads, "32", NULL) \
	X(INT, concurrent_replicates, NULL, NULL) \
	X(INT, concurrent_validations, "0", NULL) \
	X(INT, concurrent_writes, "32", NULL) \
	X(INT, consecutive_message_errors_threshold, "1", NULL) \
	X(SIZE, coordinator_read_size_fail_threshold, NULL, NULL) \
	X(SIZE, coordinator_read_size_warn_threshold, NULL, NULL) \
	X(STRING, corrupted_tombstone_strategy, "disabled", NULL) \
	X(INT, counter_cache_keys_to_save, "2147483647", NULL) \
	X(SECONDS, counter_cache_save_period, "7200", NULL) \
	X(SIZE, counter_cache_size, NULL, "counter_cache_size_in_mb:MiB") \
	X(MS, counter_write_request_timeout, \
	    "5000ms", "counter_write_request_timeout_in_ms:ms") \
	X(STRING, cql_start_time, "REQUEST", NULL) \
	X(BOOL, credentials_cache_active_update, "false", NULL) \
	X(INT, credentials_cache_max_entries, "1000", NULL) \
	X(MS, credentials_update_interval, NULL, "credentials_update_interval_in_ms:ms") \
	X(MS, credentials_validity, "2s", "credentials_validity_in_ms:ms") \
	X(STRING, data_directory, NULL, NULL) \
	X(SIZE, data_disk_usage_max_disk_size, NULL, NULL) \
	X(INT, data_disk_usage_percentage_fail_threshold, "-1", NULL) \
	X(INT, data_disk_usage_percentage_warn_threshold, "-1", NULL) \
	X(LIST, data_file_directories, "[]", NULL) \
	X(STRING, dc, NULL, NULL) \
	X(INT, default_keyspace_rf, "1", NULL) \
	X(STRING, denylist_consistency_level, "QUORUM", NULL) \
	X(MS, denylist_initial_load_retry, "5s", NULL) \
	X(INT, denylist_max_keys_per_table, "1000", NULL) \
	X(INT, denylist_max_keys_total, "10000", NULL) \
	X(BOOL, denylist_range_reads_enabled, "true", NULL) \
	X(BOOL, denylist_reads_enabled, "true", NULL) \
	X(MS, denylist_refresh, "600s", NULL) \
	X(BOOL, denylist_writes_enabled, "true", NULL) \
	X(BOOL, diagnostic_events_enabled, "false", NULL) \
	X(STRING, disk_access_mode, "mmap", NULL) \
	X(STRING, disk_failure_policy, "stop", NULL) \
	X(DOUBLE, disk_optimization_estimate_percentile, "0.95", NULL) \
	X(DOUBLE, disk_optimization_page_cross_chance, "0.1", NULL) \
	X(STRING, disk_optimization_strategy, "ssd", NULL) \
	X(BOOL, drop_compact_storage_enabled, "false", "enable_drop_compact_storage") \
	X(BOOL, drop_truncate_table_enabled, "true", NULL) \
	X(BOOL, dynamic_snitch, "true", NULL) \
	X(DOUBLE, dynamic_snitch_badness_threshold, "1.0", NULL) \
	X(MS, dynamic_snitch_reset_interval, "10m", "dynamic_snitch_reset_interval_in_ms:ms") \
	X(MS, dynamic_snitch_update_interval, \
	    "100ms", "dynamic_snitch_update_interval_in_ms:ms") \
	X(STRING, endpoint_snitch, "SimpleSnitch", NULL) \
	X(BOOL, enforce_native_deadline_for_hints, "false", NULL) \
	X(RATE, entire_sstable_inter_dc_stream_throughput_outbound, "24MiB/s", NULL) \
	X(RATE, entire_sstable_stream_throughput_outbound, "24MiB/s", NULL) \
	X(STRING, failure_detector, "FailureDetector", NULL) \
	X(INT, fields_per_udt_fail_threshold, "-1", NULL) \
	X(INT, fields_per_udt_warn_threshold, "-1", NULL) \
	X(BOOL, file_cache_enabled, "false", NULL) \
	X(BOOL, file_cache_round_up, "false", NULL) \
	X(SIZE, file_cache_size, NULL, "file_cache_size_in_mb:MiB") \
	X(STRING, flush_compression, "fast", NULL) \
	X(BOOL, force_new_prepared_statement_behaviour, "false", NULL) \
	X(BOOL, full_query_logging_options__allow_nodetool_archive_command, "false", NULL) \
	X(STRING, full_query_logging_options__archive_command, "", NULL) \
	X(BOOL, full_query_logging_options__block, "true", NULL) \
	X(STRING, full_query_logging_options__log_dir, "", NULL) \
	X(INT, full_query_logging_options__max_archive_retries, "10", NULL) \
	X(LONG, full_query_logging_options__max_log_size, "17179869184", NULL) \
	X(INT, full_query_logging_options__max_queue_weight, "268435456", NULL) \
	X(STRING, full_query_logging_options__roll_cycle, "HOURLY", NULL) \
	X(MS, gc_log_threshold, "200ms", "gc_log_threshold_in_ms:ms") \
	X(MS, gc_warn_threshold, "1s", "gc_warn_threshold_in_ms:ms") \
	X(BOOL, group_by_enabled, "true", NULL) \
	X(BOOL, hint_window_persistent_enabled, "true", NULL) \
	X(LIST, hinted_handoff_disabled_datacenters, "[]", NULL) \
	X(BOOL, hinted_handoff_enabled, "true", NULL) \
	X(SIZE, hinted_handoff_throttle, "1024KiB", "hinted_handoff_throttle_in_kb:KiB") \
	X(STRING, hints_compression__class_name, NULL, NULL) \
	X(STRING, hints_directory, NULL, NULL) \
	X(MS, hints_flush_period, "10s", "hints_flush_period_in_ms:ms") \
	X(STRING, ideal_consistency_level, NULL, NULL) \
	X(INT, in_select_cartesian_product_fail_threshold, "-1", NULL) \
	X(INT, in_select_cartesian_product_warn_threshold, "-1", NULL) \
	X(BOOL, incremental_backups, "false", NULL) \
	X(SIZE, index_summary_capacity, NULL, "index_summary_capacity_in_mb:MiB") \
	X(MS, index_summary_resize_interval, \
	    "60m", "index_summary_resize_interval_in_minutes:m") \
	X(INT, initial_range_tombstone_list_allocation_size, "1", NULL) \
	X(STRING, initial_token, NULL, NULL) \
	X(RATE, inter_dc_stream_throughput_outbound, \
	    "24MiB/s", "inter_dc_stream_throughput_outbound_megabits_per_sec:Mb/s") \
	X(BOOL, inter_dc_tcp_nodelay, "true", NULL) \
	X(SIZE, internode_application_receive_queue_capacity, \
	    "4MiB", "internode_application_receive_queue_capacity_in_bytes:B") \
	X(SIZE, internode_application_receive_queue_reserve_endpoint_capacity, \
	    "128MiB", "internode_application_receive_queue_reserve_endpoint_capacity_in_bytes:B") \
	X(SIZE, internode_application_receive_queue_reserve_global_capacity, \
	    "512MiB", "internode_application_receive_queue_reserve_global_capacity_in_bytes:B") \
	X(SIZE, internode_application_send_queue_capacity, \
	    "4MiB", "internode_application_send_queue_capacity_in_bytes:B") \
	X(SIZE, internode_application_send_queue_reserve_endpoint_capacity, \
	    "128MiB", "internode_application_send_queue_reserve_endpoint_capacity_in_bytes:B") \
	X(SIZE, internode_application_send_queue_reserve_global_capacity, \
	    "512MiB", "internode_application_send_queue_reserve_global_capacity_in_bytes:B") \
	X(STRING, internode_authenticator, "AllowAllInternodeAuthenticator", NULL) \
	X(STRING, internode_compression, "none", NULL) \
	X(LIST, internode_error_reporting_exclusions__subnets, "[]", NULL) \
	X(SIZE, internode_max_message_size, \
	    "134217728B", "internode_max_message_size_in_bytes:B") \
	X(SIZE, internode_socket_receive_buffer_size, \
	    "0B", "internode_recv_buff_size_in_bytes:B internode_socket_receive_buffer_size_in_bytes:B") \
	X(SIZE, internode_socket_send_buffer_size, \
	    "0B", "internode_send_buff_size_in_bytes:B internode_socket_send_buffer_size_in_bytes:B") \
	X(MS, internode_streaming_tcp_user_timeout, \
	    "300s", "internode_streaming_tcp_user_timeout_in_ms:ms") \
	X(MS, internode_tcp_connect_timeout, "2s", "internode_tcp_connect_timeout_in_ms:ms") \
	X(MS, internode_tcp_user_timeout, "30s", "internode_tcp_user_timeout_in_ms:ms") \
	X(BOOL, internode_timeout, "true", "cross_node_timeout") \
	X(INT, items_per_collection_fail_threshold, "-1", NULL) \
	X(INT, items_per_collection_warn_threshold, "-1", NULL) \
	X(INT, key_cache_keys_to_save, "2147483647", NULL) \
	X(BOOL, key_cache_migrate_during_compaction, "true", NULL) \
	X(SECONDS, key_cache_save_period, "14400", NULL) \
	X(SIZE, key_cache_size, NULL, "key_cache_size_in_mb:MiB") \
	X(INT, keyspace_count_warn_threshold, "40", NULL) \
	X(INT, keyspaces_fail_threshold, "-1", NULL) \
	X(INT, keyspaces_warn_threshold, "-1", NULL) \
	X(STRING, listen_address, "localhost", NULL) \
	X(STRING, listen_interface, NULL, NULL) \
	X(BOOL, listen_interface_prefer_ipv6, "false", NULL) \
	X(BOOL, listen_on_broadcast_address, "false", NULL) \
	X(SIZE, local_read_size_fail_threshold, NULL, NULL) \
	X(SIZE, local_read_size_warn_threshold, NULL, NULL) \
	X(STRING, local_system_data_file_directory, NULL, NULL) \
	X(STRING, log_file, NULL, NULL) \
	X(STRING, log_format, "text", NULL) \
	X(STRING, log_level, "INFO", NULL) \
	X(BOOL, log_out_of_token_range_requests, "true", NULL) \
	X(BOOL, materialized_views_enabled, "false", "enable_materialized_views") \
	X(INT, materialized_views_per_table_fail_threshold, "-1", NULL) \
	X(INT, materialized_views_per_table_warn_threshold, "-1", NULL) \
	X(INT, max_concurrent_automatic_sstable_upgrades, "1", NULL) \
	X(MS, max_hint_window, "3h", "max_hint_window_in_ms:ms") \
	X(INT, max_hints_delivery_threads, "2", NULL) \
	X(SIZE, max_hints_file_size, "128MiB", "max_hints_file_size_in_mb:MiB") \
	X(SIZE, max_hints_size_per_host, "0B", NULL) \
	X(SIZE, max_mutation_size, NULL, "max_mutation_size_in_kb:KiB") \
	X(INT, max_streaming_retries, "3", NULL) \
	X(INT, max_top_size_partition_count, "10", NULL) \
	X(INT, max_top_tombstone_partition_count, "10", NULL) \
	X(SIZE, max_value_size, "256MiB", "max_value_size_in_mb:MiB") \
	X(STRING, memtable_allocation_type, "heap_buffers", NULL) \
	X(DOUBLE, memtable_cleanup_threshold, "0", NULL) \
	X(INT, memtable_flush_writers, "0", NULL) \
	X(SIZE, memtable_heap_space, NULL, "memtable_heap_space_in_mb:MiB") \
	X(SIZE, memtable_offheap_space, NULL, "memtable_offheap_space_in_mb:MiB") \
	X(INT, memtable_shards, "0", NULL) \
	X(SIZE, min_free_space_per_drive, "50MiB", "min_free_space_per_drive_in_mb:MiB") \
	X(SIZE, min_tracked_partition_size, "1MiB", NULL) \
	X(INT, min_tracked_partition_tombstone_count, "5000", NULL) \
	X(INT, minimum_replication_factor_fail_threshold, "-1", NULL) \
	X(INT, minimum_replication_factor_warn_threshold, "-1", NULL) \
	X(BOOL, native_transport_allow_older_protocols, "true", NULL) \
	X(BOOL, native_transport_flush_in_batches_legacy, "false", NULL) \
	X(MS, native_transport_idle_timeout, "0ms", "native_transport_idle_timeout_in_ms:ms") \
	X(INT, native_transport_io_threads, "0", NULL) \
	X(INT, native_transport_max_auth_threads, "4", NULL) \
	X(MS, native_transport_max_backoff_on_queue_overload, "200ms", NULL) \
	X(LONG, native_transport_max_concurrent_connections, "-1", NULL) \
	X(LONG, native_transport_max_concurrent_connections_per_ip, "-1", NULL) \
	X(SIZE, native_transport_max_frame_size, \
	    "16MiB", "native_transport_max_frame_size_in_mb:MiB") \
	X(SIZE, native_transport_max_message_size, NULL, NULL) \
	X(INT, native_transport_max_negotiable_protocol_version, NULL, NULL) \
	X(SIZE, native_transport_max_request_data_in_flight, \
	    NULL, "native_transport_max_concurrent_requests_in_bytes:B") \
	X(SIZE, native_transport_max_request_data_in_flight_per_ip, \
	    NULL, "native_transport_max_concurrent_requests_in_bytes_per_ip:B") \
	X(INT, native_transport_max_requests_per_second, "1000000", NULL) \
	X(INT, native_transport_max_threads, "128", NULL) \
	X(MS, native_transport_min_backoff_on_queue_overload, "10ms", NULL) \
	X(INT, native_transport_port, "9042", NULL) \
	X(INT, native_transport_port_ssl, NULL, NULL) \
	X(DOUBLE, native_transport_queue_max_item_age_threshold, \
	    "1.7976931348623157E308", NULL) \
	X(BOOL, native_transport_rate_limiting_enabled, "false", NULL) \
	X(SIZE, native_transport_receive_queue_capacity, \
	    "1MiB", "native_transport_receive_queue_capacity_in_bytes:B") \
	X(BOOL, native_transport_throw_on_overload, "false", NULL) \
	X(MS, native_transport_timeout, "12000ms", NULL) \
	X(STRING, network_authorizer, "AllowAllNetworkAuthorizer", NULL) \
	X(SIZE, networking_cache_size, NULL, "networking_cache_size_in_mb:MiB") \
	X(INT, num_tokens, "1", NULL) \
	X(INT, otc_backlog_expiration_interval_ms, "200", NULL) \
	X(INT, otc_coalescing_enough_coalesced_messages, "8", NULL) \
	X(STRING, otc_coalescing_strategy, "DISABLED", NULL) \
	X(INT, otc_coalescing_window_us, "200", NULL) \
	X(INT, page_size_fail_threshold, "-1", NULL) \
	X(INT, page_size_warn_threshold, "-1", NULL) \
	X(BOOL, partition_denylist_enabled, "false", NULL) \
	X(INT, partition_keys_in_select_fail_threshold, "-1", NULL) \
	X(INT, partition_keys_in_select_warn_threshold, "-1", NULL) \
	X(STRING, partitioner, "org.apache.cassandra.dht.Murmur3Partitioner", NULL) \
	X(SIZE, paxos_cache_size, NULL, NULL) \
	X(STRING, paxos_contention_max_wait, NULL, NULL) \
	X(STRING, paxos_contention_min_delta, NULL, NULL) \
	X(STRING, paxos_contention_min_wait, NULL, NULL) \
	X(STRING, paxos_contention_wait_randomizer, NULL, NULL) \
	X(STRING, paxos_on_linearizability_violations, "ignore", NULL) \
	X(MS, paxos_purge_grace_period, "60s", NULL) \
	X(BOOL, paxos_repair_enabled, "true", NULL) \
	X(INT, paxos_repair_parallelism, "4", NULL) \
	X(STRING, paxos_state_purging, "legacy", NULL) \
	X(BOOL, paxos_topology_repair_no_dc_checks, "false", NULL) \
	X(BOOL, paxos_topology_repair_strict_each_quorum, "false", NULL) \
	X(STRING, paxos_variant, "v1", NULL) \
	X(MS, periodic_commitlog_sync_lag_block, \
	    NULL, "periodic_commitlog_sync_lag_block_in_ms:ms") \
	X(BOOL, permissions_cache_active_update, "false", NULL) \
	X(INT, permissions_cache_max_entries, "1000", NULL) \
	X(MS, permissions_update_interval, NULL, "permissions_update_interval_in_ms:ms") \
	X(MS, permissions_validity, "2s", "permissions_validity_in_ms:ms") \
	X(DOUBLE, phi_convict_threshold, "8.0", NULL) \
	X(SIZE, prepared_statements_cache_size, NULL, "prepared_statements_cache_size_mb:MiB") \
	X(STRING, rack, NULL, NULL) \
	X(MS, range_request_timeout, "10000ms", "range_request_timeout_in_ms:ms") \
	X(DOUBLE, range_tombstone_list_growth_factor, "1.5", NULL) \
	X(BOOL, read_before_write_list_operations_enabled, "true", NULL) \
	X(LIST, read_consistency_levels_disallowed, "[]", NULL) \
	X(LIST, read_consistency_levels_warned, "[]", NULL) \
	X(MS, read_request_timeout, "5000ms", "read_request_timeout_in_ms:ms") \
	X(BOOL, read_thresholds_enabled, "false", NULL) \
	X(BOOL, reject_out_of_token_range_requests, "true", NULL) \
	X(INT, reject_repair_compaction_threshold, "2147483647", NULL) \
	X(STRING, repair_command_pool_full_strategy, "queue", NULL) \
	X(INT, repair_command_pool_size, "0", NULL) \
	X(MS, repair_request_timeout, "120000ms", "repair_request_timeout_in_ms:ms") \
	X(INT, repair_session_max_tree_depth, "20", NULL) \
	X(SIZE, repair_session_space, NULL, "repair_session_space_in_mb:MiB") \
	X(MS, repair_state_expires, "3d", NULL) \
	X(INT, repair_state_size, "100000", NULL) \
	X(BOOL, repaired_data_tracking_for_partition_reads_enabled, "false", NULL) \
	X(BOOL, repaired_data_tracking_for_range_reads_enabled, "false", NULL) \
	X(INT, replica_filtering_protection__cached_rows_fail_threshold, "32000", NULL) \
	X(INT, replica_filtering_protection__cached_rows_warn_threshold, "2000", NULL) \
	X(BOOL, report_unconfirmed_repaired_data_mismatches, "false", NULL) \
	X(MS, request_timeout, "10000ms", "request_timeout_in_ms:ms") \
	X(STRING, role_manager, "CassandraRoleManager", NULL) \
	X(BOOL, roles_cache_active_update, "false", NULL) \
	X(INT, roles_cache_max_entries, "1000", NULL) \
	X(MS, roles_update_interval, NULL, "roles_update_interval_in_ms:ms") \
	X(MS, roles_validity, "2s", "roles_validity_in_ms:ms") \
	X(STRING, row_cache_class_name, "org.apache.cassandra.cache.OHCProvider", NULL) \
	X(INT, row_cache_keys_to_save, "2147483647", NULL) \
	X(SECONDS, row_cache_save_period, "0", NULL) \
	X(SIZE, row_cache_size, "0MiB", "row_cache_size_in_mb:MiB") \
	X(SIZE, row_index_read_size_fail_threshold, NULL, NULL) \
	X(SIZE, row_index_read_size_warn_threshold, NULL, NULL) \
	X(STRING, rpc_address, "localhost", NULL) \
	X(STRING, rpc_interface, NULL, NULL) \
	X(BOOL, rpc_interface_prefer_ipv6, "false", NULL) \
	X(BOOL, rpc_keepalive, "true", NULL) \
	X(BOOL, sasi_indexes_enabled, "false", "enable_sasi_indexes") \
	X(STRING, saved_caches_directory, NULL, NULL) \
	X(BOOL, scripted_user_defined_functions_enabled, \
	    "false", "enable_scripted_user_defined_functions") \
	X(BOOL, secondary_indexes_enabled, "true", NULL) \
	X(INT, secondary_indexes_per_table_fail_threshold, "-1", NULL) \
	X(INT, secondary_indexes_per_table_warn_threshold, "-1", NULL) \
	X(STRING, seed_provider__class_name, \
	    "org.apache.cassandra.locator.SimpleSeedProvider", NULL) \
	X(STRING, seeds, NULL, NULL) \
	X(LIST, server_encryption_options__accepted_protocols, "[]", NULL) \
	X(STRING, server_encryption_options__algorithm, NULL, NULL) \
	X(LIST, server_encryption_options__cipher_suites, "[]", NULL) \
	X(BOOL, server_encryption_options__enabled, "false", NULL) \
	X(STRING, server_encryption_options__internode_encryption, "none", NULL) \
	X(STRING, server_encryption_options__keystore, "conf/.keystore", NULL) \
	X(STRING, server_encryption_options__keystore_password, NULL, NULL) \
	X(BOOL, server_encryption_options__legacy_ssl_storage_port_enabled, "false", NULL) \
	X(BOOL, server_encryption_options__optional, "false", NULL) \
	X(STRING, server_encryption_options__protocol, NULL, NULL) \
	X(STRING, server_encryption_options__require_client_auth, "false", NULL) \
	X(BOOL, server_encryption_options__require_endpoint_verification, "false", NULL) \
	X(STRING, server_encryption_options__ssl_context_factory__class_name, \
	    "org.apache.cassandra.security.DefaultSslContextFactory", NULL) \
	X(STRING, server_encryption_options__ssl_context_factory__parameters__private_key, \
	    NULL, NULL) \
	X(STRING, server_encryption_options__ssl_context_factory__parameters__private_key_password, \
	    NULL, NULL) \
	X(STRING, server_encryption_options__ssl_context_factory__parameters__trusted_certificates, \
	    NULL, NULL) \
	X(STRING, server_encryption_options__store_type, "JKS", NULL) \
	X(STRING, server_encryption_options__truststore, "conf/.truststore", NULL) \
	X(STRING, server_encryption_options__truststore_password, NULL, NULL) \
	X(BOOL, skip_paxos_repair_on_topology_change, "false", NULL) \
	X(LIST, skip_paxos_repair_on_topology_change_keyspaces, "[]", NULL) \
	X(MS, slow_query_log_timeout, "500ms", "slow_query_log_timeout_in_ms:ms") \
	X(BOOL, snapshot_before_compaction, "false", NULL) \
	X(INT, snapshot_links_per_second, "0", NULL) \
	X(BOOL, snapshot_on_duplicate_row_detection, "false", NULL) \
	X(BOOL, snapshot_on_repaired_data_mismatch, "false", NULL) \
	X(INT, ssl_storage_port, "7001", NULL) \
	X(SIZE, sstable_preemptive_open_interval, \
	    "50MiB", "sstable_preemptive_open_interval_in_mb:MiB") \
	X(BOOL, start_native_transport, "true", NULL) \
	X(INT, storage_port, "7000", NULL) \
	X(BOOL, stream_entire_sstables, "true", NULL) \
	X(RATE, stream_throughput_outbound, \
	    "24MiB/s", "stream_throughput_outbound_megabits_per_sec:Mb/s") \
	X(INT, streaming_connections_per_host, "1", NULL) \
	X(MS, streaming_keep_alive_period, "300s", "streaming_keep_alive_period_in_secs:s") \
	X(MS, streaming_slow_events_log_timeout, "10s", NULL) \
	X(MS, streaming_state_expires, "3d", NULL) \
	X(SIZE, streaming_state_size, "40MiB", NULL) \
	X(BOOL, streaming_stats_enabled, "true", NULL) \
	X(INT, table_count_warn_threshold, "150", NULL) \
	X(LIST, table_properties_disallowed, "[]", NULL) \
	X(LIST, table_properties_ignored, "[]", NULL) \
	X(LIST, table_properties_warned, "[]", NULL) \
	X(INT, tables_fail_threshold, "-1", NULL) \
	X(INT, tables_warn_threshold, "-1", NULL) \
	X(INT, tombstone_failure_threshold, "100000", NULL) \
	X(INT, tombstone_warn_threshold, "1000", NULL) \
	X(BOOL, top_partitions_enabled, "true", NULL) \
	X(MS, trace_type_query_ttl, "1d", "tracetype_query_ttl:s") \
	X(MS, trace_type_repair_ttl, "7d", "tracetype_repair_ttl:s") \
	X(BOOL, transfer_hints_on_decommission, "true", NULL) \
	X(BOOL, transient_replication_enabled, "false", "enable_transient_replication") \
	X(INT, transparent_data_encryption_options__chunk_length_kb, "64", NULL) \
	X(STRING, transparent_data_encryption_options__cipher, "AES/CBC/PKCS5Padding", NULL) \
	X(BOOL, transparent_data_encryption_options__enabled, "false", NULL) \
	X(INT, transparent_data_encryption_options__iv_length, "16", NULL) \
	X(STRING, transparent_data_encryption_options__key_alias, NULL, NULL) \
	X(STRING, transparent_data_encryption_options__key_provider__class_name, NULL, NULL) \
	X(INT, transparent_data_encryption_options_chunk_length_kb, "64", NULL) \
	X(BOOL, traverse_auth_from_root, "false", NULL) \
	X(BOOL, trickle_fsync, "false", NULL) \
	X(SIZE, trickle_fsync_interval, "10240KiB", "trickle_fsync_interval_in_kb:KiB") \
	X(MS, truncate_request_timeout, "60000ms", "truncate_request_timeout_in_ms:ms") \
	X(BOOL, uncompressed_tables_enabled, "true", NULL) \
	X(INT, unlogged_batch_across_partitions_warn_threshold, "10", NULL) \
	X(BOOL, use_creation_time_for_hint_ttl, "true", NULL) \
	X(BOOL, use_deterministic_table_id, "false", NULL) \
	X(BOOL, use_offheap_merkle_trees, "true", NULL) \
	X(BOOL, use_statements_enabled, "true", NULL) \
	X(BOOL, user_defined_functions_enabled, "false", "enable_user_defined_functions") \
	X(MS, user_defined_functions_fail_timeout, \
	    "1500ms", "user_defined_function_fail_timeout:ms") \
	X(BOOL, user_defined_functions_threads_enabled, \
	    "true", "enable_user_defined_functions_threads") \
	X(MS, user_defined_functions_warn_timeout, \
	    "500ms", "user_defined_function_warn_timeout:ms") \
	X(STRING, user_function_timeout_policy, "die", NULL) \
	X(BOOL, user_timestamps_enabled, "true", NULL) \
	X(BOOL, uuid_sstable_identifiers_enabled, "false", NULL) \
	X(MS, validation_preview_purge_head_start, \
	    "3600s", "validation_preview_purge_head_start_in_sec:s") \
	X(INT, windows_timer_interval, "0", NULL) \
	X(LIST, write_consistency_levels_disallowed, "[]", NULL) \
	X(LIST, write_consistency_levels_warned, "[]", NULL) \
	X(MS, write_request_timeout, "2000ms", "write_request_timeout_in_ms:ms")
/* clang-format on */

#endif
