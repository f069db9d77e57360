/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/token_allocator.h"
#include "server/config_internal.h"
#include "server/guardrails.h"
#include "server/interface.h"

enum { CONFIG_KIB = 1024, CONFIG_MIB = 1024 * 1024 };

static int64_t
config_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t
config_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- the machine ------------------------------------------------------------------------------------ */

static uint32_t
config_count_cores(const struct config *config)
{
	cpu_set_t cpus;

	if (config->available_processors > 0)
		return (uint32_t)config->available_processors;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 0)
		return (uint32_t)CPU_COUNT(&cpus);
	return (uint32_t)config_max(get_nprocs(), 1);
}

/* Physical memory, or what the control group leaves us. */
static int64_t
config_physical_bytes(void)
{
	struct sysinfo info;
	int64_t bytes = 2048LL * CONFIG_MIB, limit;
	char text[64];
	FILE *file;

	if (sysinfo(&info) == 0)
		bytes = (int64_t)info.totalram * info.mem_unit;
	file = fopen("/sys/fs/cgroup/memory.max", "re");
	if (file != NULL && fgets(text, sizeof(text), file) != NULL) {
		/* "max" gives 0: no limit. */
		limit = strtoll(text, NULL, 10);
		if (limit > 0)
			bytes = config_min(bytes, limit);
	}
	if (file != NULL)
		fclose(file);
	return bytes;
}

/* cassandra-env.sh: max(min(1/2 ram, 1 GiB), min(1/4 ram, 8 GiB)). */
static int64_t
config_heap_bytes(void)
{
	int64_t ram = config_physical_bytes();

	return config_max(
	    config_min(ram / 2, 1024LL * CONFIG_MIB), config_min(ram / 4, 8192LL * CONFIG_MIB));
}

/* ---- sizes that are "auto" ----------------------------------------------------------------------------- */

static void
config_auto(int64_t *field, int64_t value)
{
	if (*field == CONFIG_UNSET)
		*field = value;
}

static void
config_finish_sizes(struct config *config)
{
	int64_t heap = config->memory_bytes;
	int64_t segment = config->commitlog_segment_size;
	int64_t total = 8192LL * CONFIG_MIB;
	struct statvfs disk;

	if (config->memtable_flush_writers <= 0)
		config->memtable_flush_writers = config->data_file_directories.count == 1
		    ? 2
		    : (int32_t)config->data_file_directories.count;
	if (config->concurrent_compactors <= 0)
		config->concurrent_compactors = (int32_t)config_min(8,
		    config_max(2,
			config_min(config->cores, (int64_t)config->data_file_directories.count)));
	if (config->concurrent_validations <= 0)
		config->concurrent_validations = config->concurrent_compactors;
	if (config->native_transport_io_threads <= 0)
		/* What goes from one loop to another costs a wake and a switch of threads; the stages have the other cores. */
		config->native_transport_io_threads =
		    (int32_t)config_max(1, config_min(config->cores / 2, 4));
	config_auto(&config->memtable_heap_space, heap / 4);
	config_auto(&config->memtable_offheap_space, heap / 4);
	if (config->memtable_cleanup_threshold <= 0)
		config->memtable_cleanup_threshold = 1.0 / (config->memtable_flush_writers + 1);
	config_auto(&config->key_cache_size, config_min(heap / 20, 100LL * CONFIG_MIB));
	config_auto(&config->counter_cache_size, config_min(heap / 40, 50LL * CONFIG_MIB));
	config_auto(&config->file_cache_size, config_min(heap / 4, 512LL * CONFIG_MIB));
	config_auto(&config->networking_cache_size, config_min(heap / 16, 128LL * CONFIG_MIB));
	config_auto(
	    &config->prepared_statements_cache_size, config_max(heap / 256, 10LL * CONFIG_MIB));
	config_auto(&config->index_summary_capacity, heap / 20);
	config_auto(&config->repair_session_space, config_max(heap / 16, CONFIG_MIB));
	config_auto(&config->max_mutation_size, segment / 2);
	config_auto(&config->native_transport_max_request_data_in_flight, heap / 10);
	config_auto(&config->native_transport_max_request_data_in_flight_per_ip, heap / 40);
	config_auto(
	    &config->native_transport_max_message_size, config->native_transport_max_frame_size);
	if (statvfs(config->commitlog_directory, &disk) == 0 || statvfs(".", &disk) == 0)
		total = config_min(total, (int64_t)(disk.f_blocks * disk.f_frsize / 4));
	config_auto(&config->commitlog_total_space, config_max(total, 2 * segment));
	config_auto(&config->cdc_total_space, config_min(4096LL * CONFIG_MIB, total / 2));
	config_auto(&config->commitlog_sync_period, 10000);
	config_auto(
	    &config->periodic_commitlog_sync_lag_block, config->commitlog_sync_period * 3 / 2);
}

/* ---- directories, addresses, place ----------------------------------------------------------------------- */

static void
config_default_directory(char **field, const char *root, const char *name)
{
	if (*field == NULL || **field == '\0') {
		free(*field);
		*field = xasprintf("%s/%s", root, name);
	}
}

static void
config_finish_directories(struct config *config)
{
	const char *root = config->data_directory == NULL ? "./data" : config->data_directory;

	if (config->data_file_directories.count == 0) {
		free(config->data_file_directories.items);
		config->data_file_directories.items =
		    xcalloc(1, sizeof(*config->data_file_directories.items));
		config->data_file_directories.items[0] = xasprintf("%s/data", root);
		config->data_file_directories.count = 1;
	}
	config_default_directory(&config->commitlog_directory, root, "commitlog");
	config_default_directory(&config->hints_directory, root, "hints");
	config_default_directory(&config->saved_caches_directory, root, "saved_caches");
	config_default_directory(&config->cdc_raw_directory, root, "cdc_raw");
}

void
config_forget_directories(struct config *config)
{
	for (size_t i = 0; i < config->data_file_directories.count; i++)
		free(config->data_file_directories.items[i]);
	config->data_file_directories.count = 0;
	config_assign(&config->commitlog_directory, NULL);
	config_assign(&config->hints_directory, NULL);
	config_assign(&config->saved_caches_directory, NULL);
	config_assign(&config->cdc_raw_directory, NULL);
}

static void
config_finish_seeds(struct config *config)
{
	const char *seeds = config->seeds;

	if (seeds == NULL)
		seeds = config_extra(config, "seed_provider.parameters.seeds");
	if (seeds == NULL)
		seeds = config->listen_address == NULL ? "127.0.0.1" : config->listen_address;
	while (*seeds != '\0') {
		size_t length;

		seeds += strspn(seeds, ", ");
		length = strcspn(seeds, ", ");
		if (length == 0)
			break;
		config->seed_list.items = xrealloc(config->seed_list.items,
		    (config->seed_list.count + 1) * sizeof(*config->seed_list.items));
		config->seed_list.items[config->seed_list.count++] = xstrndup(seeds, length);
		seeds += length;
	}
}

/* initial_token: as many as num_tokens, where that is given. */
static int
config_finish_tokens(struct config *config, struct error *err)
{
	const char *text = config->initial_token;
	struct config_tokens *tokens = &config->initial_tokens;

	if (text == NULL || *text == '\0')
		return 0;
	if (!config_is_set(config, &config->num_tokens)) {
		config->num_tokens = 1;
		for (const char *comma = text; (comma = strchr(comma, ',')) != NULL; comma++)
			config->num_tokens++;
	}
	if (config->num_tokens < 1 || config->num_tokens > TOKENS_MAX)
		return 0; /* config_check() says so */
	tokens->count = (uint32_t)config->num_tokens;
	tokens->items = xcalloc(tokens->count, sizeof(*tokens->items));
	return token_parse_list(text, tokens->count, tokens->items, err);
}

/* ---- what belongs together --------------------------------------------------------------------------------- */

static bool
config_is_wildcard(const char *address)
{
	return address != NULL && (strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0);
}

static int
config_check_range(struct error *err, const char *name, int64_t value, int64_t low, int64_t high)
{
	if (value >= low && value <= high)
		return 0;
	return error_set(err, ERROR_CONFIG, "%s: %ld is wrong: it must be from %ld to %ld", name,
	    (long)value, (long)low, (long)high);
}

/* What names a place or a ring cannot be blank: nodes with such a name would only find each other. */
static int
config_check_name(struct error *err, const char *name, const char *value)
{
	if (value == NULL || value[strspn(value, " \t")] != '\0')
		return 0;
	return error_set(err, ERROR_CONFIG, "%s: it must not be empty", name);
}

static int
config_check_ring(const struct config *config, struct error *err)
{
	if (config_check_name(err, "cluster_name", config->cluster_name) != 0 ||
	    config_check_name(err, "dc", config->dc) != 0 ||
	    config_check_name(err, "rack", config->rack) != 0)
		return -1;
	if (config->phi_convict_threshold < 5 || config->phi_convict_threshold > 16)
		return error_set(err, ERROR_CONFIG,
		    "phi_convict_threshold must be between 5 and 16, but was %g",
		    config->phi_convict_threshold);
	return 0;
}

static int
config_check(struct config *config, struct error *err)
{
	const struct {
		const char *name;
		int64_t value, low, high;
	} ranges[] = {
	    {"native_transport_port", config->native_transport_port, 0, 65535},
	    {"storage_port", config->storage_port, 0, 65535},
	    {"admin_port", config->admin_port, -1, 65535},
	    {"num_tokens", config->num_tokens, 1, 1536},
	    {"concurrent_reads", config->concurrent_reads, 2, 65536},
	    {"concurrent_writes", config->concurrent_writes, 2, 65536},
	    {"concurrent_counter_writes", config->concurrent_counter_writes, 2, 65536},
	    {"native_transport_max_threads", config->native_transport_max_threads, 1, 65536},
	    {"native_transport_io_threads", config->native_transport_io_threads, 1, 64},
	    {"native_transport_max_frame_size", config->native_transport_max_frame_size, 1024,
		256LL * CONFIG_MIB},
	    {"native_transport_receive_queue_capacity",
		config->native_transport_receive_queue_capacity, 1, INT32_MAX},
	    {"commitlog_segment_size", config->commitlog_segment_size, 64LL * CONFIG_KIB,
		2047LL * CONFIG_MIB},
	    {"read_request_timeout", config->read_request_timeout, 10, INT32_MAX},
	    {"range_request_timeout", config->range_request_timeout, 10, INT32_MAX},
	    {"write_request_timeout", config->write_request_timeout, 10, INT32_MAX},
	    {"counter_write_request_timeout", config->counter_write_request_timeout, 10, INT32_MAX},
	    {"truncate_request_timeout", config->truncate_request_timeout, 10, INT32_MAX},
	    {"memtable_heap_space", config->memtable_heap_space, CONFIG_MIB, INT64_MAX},
	    {"default_keyspace_rf", config->default_keyspace_rf, 1, INT32_MAX},
	    {"snapshot_links_per_second", config->snapshot_links_per_second, 0, INT32_MAX},
	    {"column_index_size", config->column_index_size, 1, INT32_MAX},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (config_check_range(
			err, ranges[i].name, ranges[i].value, ranges[i].low, ranges[i].high) != 0)
			return -1;
	if (config_is_wildcard(config->rpc_address) &&
	    (config->broadcast_rpc_address == NULL ||
		config_is_wildcard(config->broadcast_rpc_address)))
		return error_set(err, ERROR_CONFIG,
		    "If rpc_address is set to a wildcard address (%s), then you must set "
		    "broadcast_rpc_address to a value other than %s",
		    config->rpc_address, config->rpc_address);
	if (config_is_wildcard(config->listen_address))
		return error_set(err, ERROR_CONFIG,
		    "listen_address cannot be a wildcard address (%s)!", config->listen_address);
	if (config->partitioner != NULL &&
	    strstr(config->partitioner, "Murmur3Partitioner") == NULL)
		return error_set(err, ERROR_CONFIG,
		    "partitioner: '%s' is not supported: it must be Murmur3Partitioner",
		    config->partitioner);
	if (config_check_ring(config, err) != 0)
		return -1;
	if (config->max_mutation_size * 2 > config->commitlog_segment_size)
		return error_set(err, ERROR_CONFIG,
		    "commitlog_segment_size must be at least twice the size of max_mutation_size "
		    "(%ld bytes)",
		    (long)config->max_mutation_size);
	return 0;
}

static void
config_warn(struct config *config)
{
	if (config->unknown.size > 0)
		log_warn("%s: these keys are not known and have no effect: %.*s",
		    config->path == NULL ? "configuration" : config->path,
		    (int)config->unknown.size, (const char *)config->unknown.data);
	if (config->deprecated.size > 0)
		log_warn("%s: these keys have new names and should be replaced: %.*s",
		    config->path == NULL ? "configuration" : config->path,
		    (int)config->deprecated.size, (const char *)config->deprecated.data);
}

/* Names become addresses once, here: what drivers are told and what the log shows is numeric. IPv4 first,
 * as Cassandra's JVM prefers it. */
static int
config_resolve(char **field, const char *key, struct error *err)
{
	static const int families[] = {AF_INET, AF_INET6};
	char text[INET6_ADDRSTRLEN];
	int rc = EAI_NONAME;

	if (*field == NULL)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		struct addrinfo hints = {.ai_family = families[i], .ai_socktype = SOCK_STREAM};
		struct addrinfo *found;

		rc = getaddrinfo(*field, NULL, &hints, &found);
		if (rc != 0)
			continue;
		rc = getnameinfo(
		    found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST);
		freeaddrinfo(found);
		if (rc == 0) {
			config_assign(field, text);
			return 0;
		}
	}
	/* A machine without /etc/hosts has a loopback all the same (RFC 6761). */
	if (strcmp(*field, "localhost") == 0) {
		config_assign(field, "127.0.0.1");
		return 0;
	}
	return error_set(err, ERROR_CONFIG, "%s: cannot find the address of '%s': %s", key, *field,
	    gai_strerror(rc));
}

static int
config_finish_rpc_interface(struct config *config, struct error *err)
{
	char text[ENDPOINT_TEXT_SIZE];

	if (config_is_set(config, &config->rpc_address))
		return error_set(err, ERROR_CONFIG, "Set rpc_address OR rpc_interface, not both");
	if (interface_address("rpc_interface", config->rpc_interface,
		config->rpc_interface_prefer_ipv6, text, err) != 0)
		return -1;
	config_assign(&config->rpc_address, text);
	return 0;
}

static int
config_finish_addresses(struct config *config, struct error *err)
{
	if (config->listen_address == NULL || *config->listen_address == '\0')
		config_assign(&config->listen_address, "localhost");
	if (config->rpc_interface != NULL && *config->rpc_interface != '\0' &&
	    config_finish_rpc_interface(config, err) != 0)
		return -1;
	if (config->rpc_address == NULL || *config->rpc_address == '\0')
		config_assign(&config->rpc_address, "localhost");
	if (config_resolve(&config->listen_address, "listen_address", err) != 0 ||
	    config_resolve(&config->rpc_address, "rpc_address", err) != 0 ||
	    config_resolve(&config->broadcast_address, "broadcast_address", err) != 0)
		return -1;
	return config_resolve(&config->broadcast_rpc_address, "broadcast_rpc_address", err);
}

int
config_finish(struct config *config, struct error *err)
{
	config->cores = config_count_cores(config);
	config->memory_bytes = config_heap_bytes();
	config_finish_directories(config);
	config_finish_sizes(config);
	config_finish_seeds(config);
	config_assign(&config->memtable_class,
	    config_extra(config, "memtable.configurations.default.class_name"));
	if (config_finish_addresses(config, err) != 0 || config_finish_tokens(config, err) != 0 ||
	    config_check(config, err) != 0 || config_finish_guardrails(config, err) != 0) {
		if (config->path != NULL)
			error_prefix(err, "%s", config->path);
		return -1;
	}
	if (config_read_archiving(config, err) != 0)
		return -1;
	config_warn(config);
	return 0;
}
