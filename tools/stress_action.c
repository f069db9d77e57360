/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_action.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "tools/stress_metrics.h"

enum {
	STRESS_LINK_TIMEOUT_MS = 5000,
	STRESS_WARMUP_MAX = 50000,
	STRESS_WARMUP_THREADS = 100,
	STRESS_LADDER_REST_S = 15, /* lets the commit log settle between runs that write */
	STRESS_LADDER_MAX = 64,
};

/* ---- Output -------------------------------------------------------------------------------------------- */

int
stress_output_open(
    struct stress_output *output, const struct stress_settings *settings, struct error *err)
{
	memset(output, 0, sizeof(*output));
	buffer_init(&output->text);
	output->keeps_text = settings->graph_file != NULL;
	if (settings->log_file == NULL)
		return 0;
	output->file = fopen(settings->log_file, "w");
	if (output->file == NULL)
		return error_set_errno(err, errno, "%s", settings->log_file);
	return 0;
}

void
stress_output_close(struct stress_output *output)
{
	if (output->file != NULL)
		fclose(output->file);
	buffer_fini(&output->text);
	memset(output, 0, sizeof(*output));
}

void
stress_output_put(struct stress_output *output, struct slice text)
{
	fwrite(text.data, 1, text.size, stdout);
	fflush(stdout);
	if (output->file != NULL) {
		fwrite(text.data, 1, text.size, output->file);
		fflush(output->file);
	}
	if (output->keeps_text)
		buffer_put_slice(&output->text, text);
}

void
stress_output_printf(struct stress_output *output, const char *format, ...)
{
	char line[2048];
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (size > (int)sizeof(line) - 1)
		size = (int)sizeof(line) - 1;
	stress_output_put(output, slice_of(line, (size_t)size));
}

/* ---- The action ------------------------------------------------------------------------------------------ */

struct stress_action {
	const struct stress_settings *settings; /* borrowed */
	struct stress_output *output; /* borrowed */
	struct stress_session session;
	struct stress_profile *profiles; /* owned; USER */
	uint32_t profile_count;
	struct stress_table table; /* predefined */
	struct stress_statement statements[STRESS_COUNTER_READ + 1]; /* predefined, by kind */
	struct stress_operation operations[STRESS_OPERATIONS_MAX];
	struct stress_placement *placements; /* owned; of each profile's keyspace, or the one */
	uint32_t operation_count;
	char *keyspace; /* owned; quoted, for USE */
	struct stress_link *links; /* owned; host by host */
	uint32_t link_count;
	uint32_t worker_count;
};

static void
stress_pause(uint32_t seconds)
{
	struct timespec pause = {.tv_sec = seconds};

	fflush(stdout);
	while (nanosleep(&pause, &pause) != 0)
		;
}

/* ---- The schema of the predefined commands ----------------------------------------------------------------- */

static void
stress_put_table(const struct stress_settings *settings, bool is_counter, struct buffer *out)
{
	buffer_printf(out, "CREATE TABLE IF NOT EXISTS \"%s\".%s (key blob PRIMARY KEY ",
	    settings->keyspace, is_counter ? "counter1" : "standard1");
	for (uint32_t i = 0; i < settings->column_count; i++)
		buffer_printf(
		    out, "\n, \"%s\" %s", settings->columns[i], is_counter ? "counter" : "blob");
	buffer_put_string(out, ") WITH compression = {");
	if (settings->table_compression != NULL)
		buffer_printf(out, "'class' : '%s'", settings->table_compression);
	buffer_put_string(out, "}");
	if (*settings->compaction != '\0')
		buffer_printf(out, " AND compaction = { 'class' : '%s'%s}", settings->compaction,
		    settings->compaction_options);
	buffer_put_string(out, ";\n");
	buffer_put_u8(out, 0);
}

static int
stress_create_keyspace(struct stress_action *action, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	struct buffer text;
	int rc;

	buffer_init(&text);
	buffer_printf(&text,
	    "CREATE KEYSPACE IF NOT EXISTS \"%s\" WITH replication = {'class': '%s'%s} AND "
	    "durable_writes = true;\n",
	    settings->keyspace, settings->strategy, settings->strategy_options);
	buffer_put_u8(&text, 0);
	rc = stress_session_run(&action->session, (char *)text.data, CONSISTENCY_LOCAL_ONE, err);
	for (int i = 0; rc == 0 && i < 2; i++) {
		buffer_clear(&text);
		stress_put_table(settings, i == 1, &text);
		rc = stress_session_run(
		    &action->session, (char *)text.data, CONSISTENCY_LOCAL_ONE, err);
	}
	buffer_fini(&text);
	if (rc != 0) {
		error_prefix(err, "Encountered exception creating schema");
		return -1;
	}
	stress_session_agree(&action->session);
	printf("Created keyspaces. Sleeping %us for propagation.\n", settings->node_count);
	stress_pause(settings->node_count);
	return 0;
}

static int
stress_truncate(struct stress_action *action, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	static const char *const tables[] = {"standard1", "counter1", "counter3"};
	char query[4 * STRESS_NAME_MAX];

	if (settings->command == STRESS_USER) {
		for (uint32_t i = 0; i < action->profile_count; i++) {
			const struct stress_profile *profile = &action->profiles[i];

			snprintf(query, sizeof(query), "TRUNCATE %s.%s", profile->keyspace,
			    profile->table);
			if (stress_session_run(&action->session, query, CONSISTENCY_ONE, err) != 0)
				return -1;
			printf("Truncated %s.%s. Sleeping %us for propagation.\n",
			    profile->keyspace, profile->table, settings->node_count);
		}
		stress_pause(settings->node_count);
		return 0;
	}
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		snprintf(query, sizeof(query), "TRUNCATE \"%s\".%s", settings->keyspace, tables[i]);
		/* counter3 is of old versions. */
		if (stress_session_run(&action->session, query, CONSISTENCY_ONE, err) != 0 &&
		    err->code != ERROR_INVALID)
			return -1;
	}
	printf("Truncated %s.[standard1, counter1, counter3]. Sleeping %us for propagation.\n",
	    settings->keyspace, settings->node_count);
	stress_pause(settings->node_count);
	return 0;
}

/* ---- Operations -------------------------------------------------------------------------------------------- */

static const struct {
	enum stress_command command;
	enum stress_operation_kind kind;
} stress_predefined[] = {
    {STRESS_READ, STRESS_OP_READ},
    {STRESS_WRITE, STRESS_OP_WRITE},
    {STRESS_COUNTER_READ, STRESS_OP_COUNTER_READ},
    {STRESS_COUNTER_WRITE, STRESS_OP_COUNTER_WRITE},
};

static int
stress_add_predefined(
    struct stress_action *action, const char *name, double share, struct error *err)
{
	struct stress_operation *operation = &action->operations[action->operation_count];
	struct buffer query;
	size_t i = 0;
	int rc;

	while (strcmp(stress_command_name(stress_predefined[i].command), name) != 0)
		i++;
	buffer_init(&query);
	stress_predefined_query(action->settings, stress_predefined[i].kind, &query);
	buffer_put_u8(&query, 0);
	rc = stress_session_prepare(&action->session, (char *)query.data,
	    &action->statements[stress_predefined[i].kind], err);
	buffer_fini(&query);
	if (rc != 0)
		return -1;
	action->statements[stress_predefined[i].kind].is_prepared = action->settings->is_prepared;
	action->statements[stress_predefined[i].kind].is_write =
	    stress_predefined[i].kind == STRESS_OP_WRITE ||
	    stress_predefined[i].kind == STRESS_OP_COUNTER_WRITE;
	rc = stress_operation_init(operation, name, stress_predefined[i].kind,
	    &action->statements[stress_predefined[i].kind], &action->table, err);
	operation->share = share;
	action->operation_count++;
	return rc;
}

static int
stress_prepare_predefined(struct stress_action *action, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	char use[STRESS_NAME_MAX + 16];

	action->keyspace = xasprintf("\"%s\"", settings->keyspace);
	snprintf(use, sizeof(use), "USE %s", action->keyspace);
	if (stress_session_run(&action->session, use, CONSISTENCY_ONE, err) != 0)
		return -1;
	stress_predefined_table(settings, &action->table);
	if (settings->command != STRESS_MIXED)
		return stress_add_predefined(
		    action, stress_command_name(settings->command), 1, err);
	for (uint32_t i = 0; i < settings->share_count; i++) {
		if (stress_add_predefined(
			action, settings->shares[i].name, settings->shares[i].share, err) != 0)
			return -1;
	}
	return 0;
}

/* "spec.operation", or an operation of the first profile. */
static struct stress_profile *
stress_find_profile(struct stress_action *action, const char *name, const char **operation)
{
	const char *dot = strrchr(name, '.');

	*operation = name;
	if (dot == NULL)
		return &action->profiles[0];
	*operation = dot + 1;
	for (uint32_t i = 0; i < action->profile_count; i++) {
		const char *spec = action->profiles[i].name;

		if (strlen(spec) == (size_t)(dot - name) &&
		    strncasecmp(spec, name, (size_t)(dot - name)) == 0)
			return &action->profiles[i];
	}
	return NULL;
}

static int
stress_add_user(struct stress_action *action, const struct stress_share *share, struct error *err)
{
	struct stress_operation *operation = &action->operations[action->operation_count];
	const char *name;
	struct stress_profile *profile = stress_find_profile(action, share->name, &name);
	enum stress_operation_kind kind = STRESS_OP_QUERY;
	const struct stress_statement *statement = NULL;
	struct stress_query *query;
	struct stress_scan *scan;

	if (profile == NULL)
		return error_set(err, ERROR_INVALID,
		    "Op name %s contains an invalid profile specname", share->name);
	query = stress_profile_query(profile, name);
	scan = stress_profile_scan(profile, name);
	if (strcmp(name, "insert") == 0) {
		kind = STRESS_OP_INSERT;
		statement = &profile->insert;
	} else if (strcmp(name, "validate") == 0) {
		kind = STRESS_OP_VALIDATE;
		if (stress_profile_attach_validation(profile, &action->session, err) != 0)
			return -1;
	} else if (scan != NULL) {
		kind = STRESS_OP_SCAN;
	} else if (query != NULL) {
		statement = &query->statement;
	} else {
		return error_set(err, ERROR_INVALID, "No query defined with name %s", name);
	}
	if (stress_operation_init(
		operation, share->name, kind, statement, &profile->columns, err) != 0)
		return -1;
	operation->profile = profile;
	operation->is_same_row = query != NULL && query->is_same_row;
	operation->condition = query != NULL ? query->condition : NULL;
	operation->scan = scan;
	operation->share = share->share;
	action->operation_count++;
	return 0;
}

static int
stress_prepare_user(struct stress_action *action, struct error *err)
{
	const struct stress_settings *settings = action->settings;

	for (uint32_t i = 0; i < action->profile_count; i++) {
		if (stress_profile_attach(&action->profiles[i], &action->session, err) != 0)
			return -1;
	}
	action->keyspace = xstrdup(action->profiles[0].keyspace);
	for (uint32_t i = 0; i < settings->share_count; i++) {
		if (stress_add_user(action, &settings->shares[i], err) != 0)
			return -1;
	}
	return 0;
}

static int
stress_load_profiles(struct stress_action *action, struct error *err)
{
	const char *paths = action->settings->profiles;
	int rc = 0;

	while (rc == 0 && *paths != '\0') {
		size_t size = strcspn(paths, ",");
		char *path = xstrndup(paths, size);
		struct stress_profile *profile;

		action->profiles = xrealloc(
		    action->profiles, (action->profile_count + 1) * sizeof(*action->profiles));
		profile = &action->profiles[action->profile_count++];
		rc = stress_profile_load(profile, path, err);
		for (uint32_t i = 0; rc == 0 && i + 1 < action->profile_count; i++) {
			if (strcmp(action->profiles[i].name, profile->name) == 0)
				rc = error_set(err, ERROR_INVALID,
				    "Must only specify a singe YAML file per table (including "
				    "keyspace "
				    "qualifier).");
		}
		free(path);
		paths += size + (paths[size] == ',');
	}
	if (rc == 0 && action->profile_count == 0)
		return error_set(err, ERROR_INVALID, "profile= names no file");
	return rc;
}

static const char *
stress_operation_text(const struct stress_operation *operation)
{
	return operation->scan != NULL ? operation->scan->select
	    : operation->statement != NULL
	    ? operation->statement->query
	    : operation->profile->validation.checks[0].statement.query;
}

/* -log show-queries, query-log-file= */
static int
stress_tell_queries(struct stress_action *action, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	FILE *file = NULL;

	if (settings->query_log_file != NULL) {
		file = fopen(settings->query_log_file, "w");
		if (file == NULL)
			return error_set_errno(err, errno, "%s", settings->query_log_file);
	}
	for (uint32_t i = 0; i < action->operation_count; i++) {
		const struct stress_operation *operation = &action->operations[i];
		const char *text = stress_operation_text(operation);

		if (settings->shows_queries)
			stress_output_printf(action->output, "%s: %s\n", operation->name, text);
		if (file != NULL)
			fprintf(file, "%s: %s\n", operation->name, text);
	}
	if (file != NULL && fclose(file) != 0)
		return error_set_errno(err, errno, "%s", settings->query_log_file);
	return 0;
}

/* Where there are several nodes, operations go to those that have their partitions. */
static void
stress_route(struct stress_action *action)
{
	uint32_t count = action->profile_count > 0 ? action->profile_count : 1;

	action->placements = xcalloc(count, sizeof(*action->placements));
	for (uint32_t i = 0; i < count; i++)
		stress_session_place(&action->session,
		    action->profile_count > 0 ? action->profiles[i].keyspace : action->keyspace,
		    &action->placements[i]);
	for (uint32_t i = 0; i < action->operation_count; i++) {
		struct stress_operation *operation = &action->operations[i];

		stress_operation_route(operation,
		    &action->placements[operation->profile == NULL
			    ? 0
			    : operation->profile - action->profiles]);
	}
}

/* ---- The pool ------------------------------------------------------------------------------------------------ */

static uint32_t
stress_choose_workers(const struct stress_action *action)
{
	const struct stress_settings *settings = action->settings;
	uint32_t workers = (uint32_t)settings->workers;
	cpu_set_t cpus;

	/* Half of the machine: the other half is most often the server's. */
	if (workers == 0) {
		workers = 1;
		if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 2)
			workers = (uint32_t)CPU_COUNT(&cpus) / 2;
		if (workers > 8)
			workers = 8;
	}
	/* Each worker has a connection to each host. */
	if (workers > (uint32_t)settings->connections_per_host)
		workers = (uint32_t)settings->connections_per_host;
	return workers;
}

static int
stress_open_pool(struct stress_action *action, struct error *err)
{
	const struct stress_session *session = &action->session;
	uint32_t per_host = (uint32_t)action->settings->connections_per_host;
	uint32_t opened = 0;
	bool is_away = false;
	struct error last;

	action->worker_count = stress_choose_workers(action);
	action->links = xcalloc(session->host_count * per_host, sizeof(*action->links));
	for (uint32_t i = 0; i < session->host_count * per_host; i++) {
		struct stress_link *link = &action->links[action->link_count++];

		link->host = session->hosts[i / per_host].address;
		link->host_number = (uint16_t)(i / per_host);
		link->port = action->settings->port;
		link->version = session->connection.version;
		link->keyspace = action->keyspace;
		link->connection.fd = -1;
		is_away &= i % per_host != 0;
		if (is_away)
			continue; /* the first of a host speaks for all */
		if (stress_link_open(link, action->settings, &session->tls, STRESS_LINK_TIMEOUT_MS,
			&last) == 0) {
			opened++;
		} else if (i % per_host == 0) {
			is_away = true;
			fprintf(stderr, "%s:%d: %s\n", link->host, link->port, last.text);
		}
	}
	if (opened > 0)
		return 0;
	*err = last;
	return -1;
}

/* ---- One run -------------------------------------------------------------------------------------------------- */

/* What a run is asked for; `output` NULL: a warm-up. */
struct stress_plan {
	const struct stress_operation *operations;
	uint32_t operation_count;
	int threads;
	int64_t count; /* -1: no end */
	int64_t duration_ns; /* 0: none */
	bool converges; /* until the mean is certain */
	struct stress_output *output;
};

static int64_t
stress_duration_ns(const struct stress_settings *settings)
{
	int64_t unit = settings->duration_unit == 'h' ? 3600
	    : settings->duration_unit == 'm'          ? 60
						      : 1;

	return settings->duration * unit * 1000000000LL;
}

static void
stress_describe(
    const struct stress_action *action, const struct stress_plan *plan, struct buffer *out)
{
	bool is_mix =
	    action->settings->command == STRESS_MIXED || action->settings->command == STRESS_USER;

	buffer_put_string(out, is_mix && plan->output != NULL ? "[" : "");
	for (uint32_t i = 0; i < plan->operation_count; i++)
		buffer_printf(out, "%s%s", i > 0 ? ", " : "", plan->operations[i].name);
	buffer_put_string(out, is_mix && plan->output != NULL ? "]" : "");
}

static void
stress_put_header(struct stress_output *output)
{
	struct buffer text;

	buffer_init(&text);
	stress_report_header(&text);
	buffer_put_string(&text, "\n");
	stress_output_put(output, buffer_slice(&text));
	buffer_fini(&text);
}

static void
stress_announce(const struct stress_action *action, const struct stress_plan *plan)
{
	const struct stress_settings *settings = action->settings;
	struct buffer text;

	buffer_init(&text);
	buffer_put_string(&text, "Running ");
	stress_describe(action, plan, &text);
	buffer_printf(&text, " with %d threads ", plan->threads);
	if (settings->duration > 0)
		buffer_printf(&text, "%lld %s\n", (long long)settings->duration,
		    settings->duration_unit == 'h'       ? "hours"
			: settings->duration_unit == 'm' ? "minutes"
							 : "seconds");
	else if (plan->count > 0)
		buffer_printf(&text, "for %lld iteration\n", (long long)plan->count);
	else
		buffer_printf(&text, "until stderr of mean < %g\n", settings->target_uncertainty);
	stress_output_put(plan->output, buffer_slice(&text));
	buffer_fini(&text);
	fprintf(stderr, "Failed to connect over JMX; not collecting these stats\n");
	stress_put_header(plan->output);
}

static void
stress_sleep_until(struct stress_run *run, int64_t until_ns)
{
	/* In steps: a run may be over before its interval is. */
	while (atomic_load_explicit(&run->clients, memory_order_relaxed) > 0) {
		int64_t left = until_ns - stress_now_ns();
		struct timespec step = {.tv_nsec = left > 5000000 ? 5000000 : left};

		if (left <= 0)
			return;
		nanosleep(&step, NULL);
	}
}

static bool
stress_is_certain(const struct stress_settings *settings, const struct stress_metrics *metrics)
{
	const struct stress_uncertainty *uncertainty = &metrics->uncertainty;

	return (uncertainty->value < settings->target_uncertainty &&
		   uncertainty->measurements >= settings->uncertainty_min) ||
	    uncertainty->measurements >= settings->uncertainty_max;
}

/* Collect and print at each interval until all clients are done. */
static void
stress_watch(struct stress_action *action, const struct stress_plan *plan, struct stress_run *run,
    struct stress_worker **workers, uint32_t worker_count, struct stress_metrics *metrics)
{
	int64_t interval = (int64_t)action->settings->interval_ms * 1000000;
	int64_t header = (int64_t)action->settings->header_interval_ms * 1000000;
	int64_t next_header =
	    header > 0 && plan->output != NULL ? run->start_ns + header : INT64_MAX;
	int64_t from = run->start_ns, to, end;
	struct timespec day;

	/* Rows are printed on the second; the first interval is the rest of one. */
	clock_gettime(CLOCK_REALTIME, &day);
	to = from + interval - (interval >= 1000000000 ? day.tv_nsec : 0);
	for (;;) {
		int64_t until = to;
		int64_t stop =
		    plan->duration_ns > 0 ? run->start_ns + plan->duration_ns : INT64_MAX;

		if (stop < until && !atomic_load(&run->is_stopped)) {
			stress_sleep_until(run, stop);
			atomic_store(&run->is_stopped, true);
		}
		stress_sleep_until(run, until);
		if (atomic_load_explicit(&run->clients, memory_order_relaxed) == 0)
			break;
		end = stress_now_ns();
		if (end >= next_header) {
			stress_put_header(plan->output);
			next_header += header;
		}
		stress_metrics_collect(metrics, workers, worker_count, from, end, plan->output);
		from = end;
		to += interval;
		if (plan->converges && stress_is_certain(action->settings, metrics))
			atomic_store(&run->is_stopped, true);
	}
	for (uint32_t i = 0; i < worker_count; i++)
		stress_worker_join(workers[i]);
	end = atomic_load(&run->last_end_ns);
	stress_metrics_collect(
	    metrics, workers, worker_count, from, end > from ? end : from + 1, plan->output);
}

static int
stress_start_workers(struct stress_action *action, const struct stress_plan *plan,
    struct stress_run *run, struct stress_worker **workers, uint32_t *started, struct error *err)
{
	uint32_t count = action->worker_count, first = 0;

	if (count > (uint32_t)plan->threads)
		count = (uint32_t)plan->threads;
	atomic_store(&run->clients, plan->threads);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t share = ((uint32_t)plan->threads + count - 1 - i) / count;

		workers[i] = stress_worker_new(run, i, share, first);
		first += share;
		for (uint32_t j = i; j < action->link_count; j += count)
			stress_worker_add_link(workers[i], &action->links[j]);
	}
	run->start_ns = stress_now_ns();
	for (*started = 0; *started < count; (*started)++) {
		if (stress_worker_start(workers[*started], err) != 0)
			return -1;
	}
	return 0;
}

/* 0, or -1: the run failed (told) or could not be started (err). */
static int
stress_run_once(struct stress_action *action, const struct stress_plan *plan,
    struct stress_metrics *metrics, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	struct stress_worker *workers[256];
	struct stress_run *run;
	uint32_t started = 0;
	int rc;

	run = aligned_alloc(64, (sizeof(*run) + 63) & ~(size_t)63);
	if (run == NULL)
		abort();
	memset(run, 0, sizeof(*run));
	run->settings = settings;
	run->operations = plan->operations;
	run->operation_count = plan->operation_count;
	run->tls = &action->session.tls;
	run->has_end = plan->count >= 0;
	run->interval_ns =
	    plan->output != NULL && settings->rate > 0 ? 1000000000 / settings->rate : 0;
	run->output = stdout;
	run->is_warmup = plan->output == NULL;
	for (uint32_t i = 0; i < plan->operation_count; i++) {
		if (plan->operations[i].scan != NULL)
			stress_scan_rewind(plan->operations[i].scan);
	}
	atomic_store(&run->permits, plan->count);
	pthread_mutex_init(&run->failure_mutex, NULL);
	error_clear(err);
	run->seeds =
	    stress_seeds_new(&settings->population, &settings->visits, &settings->revisit, err);
	rc = run->seeds == NULL ? -1 : 0;
	if (rc == 0)
		rc = stress_start_workers(action, plan, run, workers, &started, err);
	if (rc == 0) {
		stress_watch(action, plan, run, workers, started, metrics);
		if (atomic_load(&run->is_failed))
			rc = -1;
		for (uint32_t i = 0; i < started; i++)
			stress_worker_free(workers[i]);
	}
	stress_seeds_free(run->seeds);
	pthread_mutex_destroy(&run->failure_mutex);
	free(run);
	return rc;
}

/* A run with its header, rows and results. */
static int
stress_run_reported(
    struct stress_action *action, int threads, struct stress_metrics *metrics, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	struct stress_plan plan = {
	    .operations = action->operations,
	    .operation_count = action->operation_count,
	    .threads = threads,
	    .count = settings->count,
	    .duration_ns = stress_duration_ns(settings),
	    .converges = settings->target_uncertainty >= 0,
	    .output = action->output,
	};

	if (stress_metrics_init(metrics, settings, plan.operations, plan.operation_count, err) != 0)
		return -1;
	stress_announce(action, &plan);
	if (stress_run_once(action, &plan, metrics, err) != 0)
		return -1;
	if (!settings->no_summary)
		stress_metrics_summarise(metrics, action->output);
	return 0;
}

/* A quarter of the work, each operation for itself, so that the server has met the data. */
static int
stress_warm_up(struct stress_action *action, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	int64_t iterations = settings->count >= 0 && settings->count / 4 < STRESS_WARMUP_MAX
	    ? settings->count / 4
	    : STRESS_WARMUP_MAX;
	struct stress_metrics metrics;
	int threads = STRESS_WARMUP_THREADS, rc = 0;

	iterations *= settings->node_count;
	if (settings->threads_max > 0 && settings->threads_max < threads)
		threads = settings->threads_max;
	if (settings->threads > 0 && settings->threads < threads)
		threads = settings->threads;
	for (uint32_t i = 0; rc == 0 && iterations > 0 && i < action->operation_count; i++) {
		struct stress_plan plan = {
		    .operations = &action->operations[i],
		    .operation_count = 1,
		    .threads = threads,
		    .count = iterations,
		};

		stress_output_printf(action->output, "Warming up %s with %lld iterations...\n",
		    action->operations[i].name, (long long)iterations);
		rc = stress_metrics_init(&metrics, settings, plan.operations, 1, err);
		if (rc == 0)
			rc = stress_run_once(action, &plan, &metrics, err);
		stress_metrics_fini(&metrics);
	}
	if (rc != 0 && *err->text == '\0')
		error_set(err, ERROR_SERVER, "Failed to execute warmup");
	return rc;
}

/* ---- The ladder ---------------------------------------------------------------------------------------------- */

int
stress_ladder_next(int threads)
{
	if (threads >= INT32_MAX / 2)
		return INT32_MAX;
	return threads < 16 ? threads * 2 : (int)(threads * 1.5);
}

static double
stress_average_improvement(const double *rates, int count, int steps)
{
	double sum = 0;

	for (int i = count - steps; i < count; i++)
		sum += (rates[i] - rates[i - 1]) / rates[i - 1];
	return sum / steps;
}

bool
stress_ladder_improves(const double *rates, int count, double uncertainty)
{
	return (count < 4 || stress_average_improvement(rates, count, 3) >= 0) &&
	    (count < 6 || stress_average_improvement(rates, count, 5) >= uncertainty);
}

static void
stress_print_ladder(struct stress_action *action, const struct stress_metrics *runs,
    const int *threads, const double *rates, int count)
{
	struct buffer text;
	int width = 0, best = 0;
	char id[48];

	for (int i = 0; i < count; i++) {
		int size = snprintf(id, sizeof(id), "%d threadCount", threads[i]);

		width = size > width ? size : width;
		best = rates[i] > rates[best] ? i : best;
	}
	buffer_init(&text);
	buffer_printf(&text, "%*s, ", width, "id");
	stress_report_header(&text);
	buffer_put_string(&text, "\n");
	for (int i = 0; i < count; i++) {
		snprintf(id, sizeof(id), "%d threadCount", threads[i]);
		stress_metrics_put_rows(&runs[i], id, width, &text);
	}
	buffer_printf(&text, "Best thread count: %d (", threads[best]);
	stress_report_number(&text, rates[best], 0, 0);
	buffer_put_string(&text, " op/s)\n");
	stress_output_put(action->output, buffer_slice(&text));
	buffer_fini(&text);
}

static int
stress_climb(struct stress_action *action, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	struct stress_metrics *runs = xcalloc(STRESS_LADDER_MAX, sizeof(*runs));
	int threads[STRESS_LADDER_MAX], next = settings->threads_min, count = 0, rc = 0;
	double rates[STRESS_LADDER_MAX];

	if (settings->target_uncertainty >= 0)
		stress_output_printf(action->output,
		    "WARNING: uncertainty mode (err<) results in uneven workload between thread "
		    "runs, so "
		    "should be used for high level analysis only\n");
	for (;;) {
		stress_output_printf(action->output, "\nRunning with %d threadCount\n", next);
		if (settings->truncate == STRESS_TRUNCATE_ALWAYS &&
		    (rc = stress_truncate(action, err)) != 0)
			break;
		threads[count] = next;
		rc = stress_run_reported(action, next, &runs[count], err);
		rates[count] = rc == 0 ? stress_timing_rate(stress_metrics_total(&runs[count])) : 0;
		count++;
		if (rc != 0)
			break;
		if (count > 1)
			printf("Improvement over %d threadCount: %.0f%%\n", threads[count - 2],
			    100 * stress_average_improvement(rates, count, 1));
		next = stress_ladder_next(next);
		if (next > settings->threads_max || count == STRESS_LADDER_MAX)
			break;
		if (stress_command_updates(settings->command)) {
			stress_output_printf(
			    action->output, "Sleeping for %ds\n", STRESS_LADDER_REST_S);
			stress_pause(STRESS_LADDER_REST_S);
		}
		if (settings->is_auto &&
		    !stress_ladder_improves(rates, count, settings->target_uncertainty))
			break;
	}
	if (rc == 0)
		stress_print_ladder(action, runs, threads, rates, count);
	for (int i = 0; i < count; i++)
		stress_metrics_fini(&runs[i]);
	free(runs);
	return rc;
}

/* ---- All together -------------------------------------------------------------------------------------------- */

static int
stress_prepare(struct stress_action *action, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	bool is_user = settings->command == STRESS_USER;

	if (is_user && stress_load_profiles(action, err) != 0)
		return -1;
	if (!settings->no_settings) {
		struct buffer text;

		buffer_init(&text);
		stress_settings_print(settings, &text);
		buffer_put_string(
		    &text, is_user ? "\n******************** Profile ********************\n" : "");
		for (uint32_t i = 0; i < action->profile_count; i++)
			stress_profile_print(&action->profiles[i], &text);
		buffer_put_string(&text, "\n");
		stress_output_put(action->output, buffer_slice(&text));
		buffer_fini(&text);
	}
	if (stress_session_open(&action->session, settings, err) != 0)
		return -1;
	for (uint32_t i = 0; i < action->profile_count; i++) {
		if (stress_profile_create(&action->profiles[i], &action->session, err) != 0)
			return -1;
	}
	if ((settings->command == STRESS_WRITE || settings->command == STRESS_COUNTER_WRITE) &&
	    stress_create_keyspace(action, err) != 0)
		return -1;
	if (settings->count == 0)
		return 0;
	if ((is_user ? stress_prepare_user(action, err) : stress_prepare_predefined(action, err)) !=
	    0)
		return -1;
	if (stress_tell_queries(action, err) != 0)
		return -1;
	stress_route(action);
	return stress_open_pool(action, err);
}

static int
stress_execute(struct stress_action *action, struct error *err)
{
	const struct stress_settings *settings = action->settings;
	struct stress_metrics metrics;
	int rc;

	if (settings->count == 0) {
		stress_output_printf(action->output, "N=0: SCHEMA CREATED, NOTHING ELSE DONE.\n");
		return 0;
	}
	stress_output_printf(action->output, "Sleeping 2s...\n");
	stress_pause(2);
	if (!settings->no_warmup && stress_warm_up(action, err) != 0)
		return -1;
	if ((settings->truncate == STRESS_TRUNCATE_ONCE ||
		(settings->threads != -1 && settings->truncate == STRESS_TRUNCATE_ALWAYS)) &&
	    stress_truncate(action, err) != 0)
		return -1;
	if (settings->threads == -1)
		stress_output_printf(action->output, "Thread count was not specified\n");
	if (settings->threads_min > 0) {
		rc = stress_climb(action, err);
	} else {
		memset(&metrics, 0, sizeof(metrics));
		rc = stress_run_reported(action, settings->threads, &metrics, err);
		stress_metrics_fini(&metrics);
	}
	stress_output_printf(action->output, rc == 0 ? "END\n" : "FAILURE\n");
	if (rc != 0 && *err->text == '\0')
		error_set(err, ERROR_SERVER, "Failed to execute stress action");
	return rc;
}

int
stress_action_run(
    const struct stress_settings *settings, struct stress_output *output, struct error *err)
{
	struct stress_action action = {.settings = settings, .output = output};
	int rc;

	action.session.connection.fd = -1;
	error_clear(err);
	rc = stress_prepare(&action, err);
	if (rc == 0)
		rc = stress_execute(&action, err);
	for (uint32_t i = 0; i < action.link_count; i++)
		stress_link_fini(&action.links[i]);
	free(action.links);
	for (uint32_t i = 0; i < action.operation_count; i++)
		stress_operation_fini(&action.operations[i]);
	for (int i = 0; i <= STRESS_COUNTER_READ; i++) {
		if (action.statements[i].query != NULL)
			stress_statement_fini(&action.statements[i]);
	}
	for (uint32_t i = 0; action.placements != NULL && (i == 0 || i < action.profile_count); i++)
		stress_placement_fini(&action.placements[i]);
	free(action.placements);
	for (uint32_t i = 0; i < action.profile_count; i++)
		stress_profile_fini(&action.profiles[i]);
	free(action.profiles);
	stress_table_fini(&action.table);
	free(action.keyspace);
	stress_session_close(&action.session);
	return rc;
}
