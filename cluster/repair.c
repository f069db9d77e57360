/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/repair.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/ranks.h"
#include "cluster/repair_internal.h"

#define REPAIR_S UINT64_C(1000000000)
/* A participant answers within five seconds (repair_participant.c). */
#define REPAIR_ASK_NS (30 * REPAIR_S)
#define REPAIR_PAUSE_NS REPAIR_S
enum { REPAIR_LOST_MAX = 5 };

/* ---- questions ------------------------------------------------------------------------------------- */

static void repair_call_ask(struct repair_call *call);

static void
repair_call_free(struct repair_call *call)
{
	*call->link = call->next;
	if (call->next != NULL)
		call->next->link = call->link;
	message_payload_unref(call->payload);
	message_payload_unref(call->answer);
	free(call);
}

static void
repair_call_tell(struct repair_call *call, struct slice result, const struct error *err)
{
	call->is_told = true;
	call->on_done(call->context, call->peer, result, err);
}

static void
repair_call_lost(struct repair_call *call)
{
	char address[ENDPOINT_TEXT_SIZE];
	struct error err;

	if (++call->lost < REPAIR_LOST_MAX) {
		cluster_timer_start(call->repairs->env, &call->timer, REPAIR_PAUSE_NS);
		return;
	}
	error_set(&err, ERROR_UNAVAILABLE, "Did not get an answer to %s from /%s",
	    verb_name((uint8_t)call->verb), endpoint_format(&call->peer->endpoint, address));
	repair_call_tell(call, (struct slice){NULL, 0}, &err);
	repair_call_free(call);
}

static void
repair_call_answered(struct repair_call *call)
{
	struct reader reader = reader_of((struct slice){call->answer->data, call->answer->size});
	uint8_t status = reader_u8(&reader);
	struct slice rest = {reader.at, reader_left(&reader)};
	char address[ENDPOINT_TEXT_SIZE];
	struct error err;

	call->lost = 0;
	if (!reader.is_failed && status == REPAIR_WORKING) {
		repair_call_ask(call);
		return;
	}
	if (!reader.is_failed && status == REPAIR_DONE) {
		repair_call_tell(call, rest, NULL);
	} else {
		endpoint_format(&call->peer->endpoint, address);
		error_set(&err, ERROR_SERVER, "%.*s", (int)rest.size, (const char *)rest.data);
		repair_call_tell(call, (struct slice){NULL, 0}, &err);
	}
	repair_call_free(call);
}

/* An answer came, or none will, or the pause is over. */
static void
repair_call_run(struct task *task, struct worker *worker)
{
	struct repair_call *call =
	    (struct repair_call *)((char *)task - offsetof(struct repair_call, task));

	(void)worker;
	if (call->is_told)
		repair_call_free(call);
	else if (call->answer != NULL)
		repair_call_answered(call);
	else
		repair_call_lost(call);
}

static void
repair_call_resume(struct task *task, struct worker *worker)
{
	struct repair_call *call =
	    (struct repair_call *)((char *)task - offsetof(struct repair_call, task));

	(void)worker;
	if (call->is_told)
		repair_call_free(call);
	else
		repair_call_ask(call);
}

static void
repair_call_fired(struct cluster_timer *timer)
{
	struct repair_call *call =
	    (struct repair_call *)((char *)timer - offsetof(struct repair_call, timer));

	call->task.run = repair_call_resume;
	/* Not taken: the node stops, and repairs_free() frees it. */
	(void)cluster_submit(call->repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &call->task);
}

static void
repair_call_on_answer(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct repair_call *call =
	    (struct repair_call *)((char *)callback - offsetof(struct repair_call, callback));

	(void)reason;
	(void)worker;
	if (answer != NULL && answer->payload != NULL) {
		message_payload_ref(answer->payload);
		call->answer = answer->payload;
	}
	call->task.run = repair_call_run;
	(void)cluster_submit(call->repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &call->task);
}

static void
repair_call_ask(struct repair_call *call)
{
	struct message *message;

	message_payload_unref(call->answer);
	call->answer = NULL;
	message_payload_ref(call->payload);
	message = message_new((uint8_t)call->verb, call->payload);
	if (message == NULL) {
		repair_call_lost(call);
		return;
	}
	message_set_trace(message, &call->trace);
	messaging_request(
	    call->repairs->messaging, call->peer, message, REPAIR_ASK_NS, &call->callback, NULL);
}

struct repair_call *
repair_call(struct repairs *repairs, struct peer *peer, enum verb verb, struct slice payload,
    const struct trace *trace, repair_call_fn on_done, void *context)
{
	struct repair_call *call = xzalloc(sizeof(*call));

	call->repairs = repairs;
	call->peer = peer;
	call->verb = verb;
	call->payload = message_payload_new(payload);
	if (call->payload == NULL)
		call->payload = message_payload_new((struct slice){(const uint8_t *)"", 0});
	call->callback.on_answer = repair_call_on_answer;
	call->timer.fire = repair_call_fired;
	call->on_done = on_done;
	call->context = context;
	if (trace != NULL)
		call->trace = *trace;
	call->next = repairs->calls;
	call->link = &repairs->calls;
	if (call->next != NULL)
		call->next->link = &call->next;
	repairs->calls = call;
	repair_call_ask(call);
	return call;
}

void
repair_call_cancel(struct repair_call *call)
{
	call->is_told = true;
}

/* ---- peers that died ------------------------------------------------------------------------------- */

struct repair_death {
	struct task task;
	struct repairs *repairs;
	struct peer *peer;
};

static void
repair_bury(struct task *task, struct worker *worker)
{
	struct repair_death *death = (struct repair_death *)task;
	char address[ENDPOINT_TEXT_SIZE];
	struct repair_call *call;
	struct error err;
	bool was_found;

	(void)worker;
	error_set(&err, ERROR_UNAVAILABLE, "Endpoint /%s died",
	    endpoint_format(&death->peer->endpoint, address));
	/* What is told may cancel others: look from the front again. */
	do {
		was_found = false;
		for (call = death->repairs->calls; call != NULL && !was_found; call = call->next) {
			if (call->is_told || call->peer != death->peer)
				continue;
			was_found = true;
			repair_call_tell(call, (struct slice){NULL, 0}, &err);
		}
	} while (was_found);
	repair_participant_peer_is_down(death->repairs, death->peer);
	free(death);
}

void
repairs_peer_is_down(struct repairs *repairs, struct peer *peer)
{
	struct repair_death *death = xzalloc(sizeof(*death));

	death->task.run = repair_bury;
	death->repairs = repairs;
	death->peer = peer;
	if (!cluster_submit(repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &death->task))
		free(death);
}

/* ---- life ------------------------------------------------------------------------------------------- */

struct repairs *
repairs_new(struct cluster_env *env, struct peers *peers, struct messaging *messaging,
    struct topology_holder *topology, struct store *store, const struct repair_ops *ops)
{
	struct repairs *repairs = xzalloc(sizeof(*repairs));

	repairs->env = env;
	repairs->peers = peers;
	repairs->messaging = messaging;
	repairs->topology = topology;
	repairs->store = store;
	repairs->ops = *ops;
	lock_init(&repairs->lock, "repairs", RANK_REPAIRS);
	repair_participant_init(repairs);
	return repairs;
}

void
repairs_free(struct repairs *repairs)
{
	if (repairs == NULL)
		return;
	/* Commands first: they look at their questions. */
	while (repairs->commands != NULL) {
		struct repair_command *command = repairs->commands;

		repairs->commands = command->next;
		repair_command_free(command);
	}
	while (repairs->calls != NULL)
		repair_call_free(repairs->calls);
	repair_paxos_free(repairs);
	repair_participant_free(repairs);
	repair_locals_free(repairs);
	repair_trails_free(repairs);
	lock_fini(&repairs->lock);
	free(repairs);
}

void
repair_uuid(struct repairs *repairs, struct uuid *out)
{
	*out = uuid_from_time(uuid_ticks_of_unix_us(env_wall_us(repairs->env->env)) +
		env_random_u64(repairs->env->env) % 10,
	    (env_random_u64(repairs->env->env) & (UINT64_MAX >> 2)) |
		UINT64_C(0x8000010000000000)); /* the variant, and a node that is no network card */
}

struct peer *
repair_peer(struct repairs *repairs, const struct endpoint *endpoint)
{
	return peers_get(repairs->peers, endpoint);
}

bool
repair_is_alive(const struct peer *peer)
{
	return peer->is_local || atomic_load_explicit(&peer->is_alive, memory_order_relaxed);
}

/* ---- commands ---------------------------------------------------------------------------------------- */

static int
repair_check_names(struct repairs *repairs, const struct repair_options *options, struct error *err)
{
	struct schema *schema = repairs->ops.schema(repairs->ops.context);
	const struct keyspace_metadata *keyspace =
	    schema_keyspace(schema, slice_of_string(options->keyspace));
	int rc = 0;

	if (keyspace == NULL || keyspace->is_virtual)
		rc = error_set(
		    err, ERROR_INVALID, "Keyspace [%s] does not exist.", options->keyspace);
	for (uint32_t i = 0; i < options->table_count && rc == 0; i++)
		if (schema_table(schema, keyspace->name, slice_of_string(options->tables[i])) ==
		    NULL)
			rc = error_set(err, ERROR_INVALID, "Unknown keyspace/cf pair (%s.%s)",
			    options->keyspace, options->tables[i]);
	schema_unref(schema);
	return rc;
}

static int
repair_check(struct repairs *repairs, const struct repair_options *options, struct error *err)
{
	if (repair_check_names(repairs, options, err) != 0)
		return -1;
	if (options->job_threads == 0)
		return error_set(err, ERROR_INVALID, "Invalid number of job threads: 0");
	if (options->is_primary_range && (options->datacenter_count > 1 || options->host_count > 0))
		return error_set(err, ERROR_INVALID,
		    "You need to run primary range repair on all nodes in the cluster.");
	if (options->is_primary_range && options->range_count > 0)
		return error_set(err, ERROR_INVALID,
		    "Primary range repair should be performed on all nodes in the cluster: it "
		    "takes "
		    "no tokens.");
	if (options->is_paxos_only && options->skips_paxos)
		return error_set(
		    err, ERROR_INVALID, "Cannot specify both --paxos-only and --skip-paxos.");
	if (options->is_paxos_only && options->preview != REPAIR_PREVIEW_NONE)
		return error_set(err, ERROR_INVALID,
		    "A repair of Paxos alone compares nothing: it has no preview.");
	if (options->is_pull && options->host_count != 2)
		return error_set(err, ERROR_INVALID,
		    "Pull repair can only be performed between two hosts. Please specify two "
		    "hosts, "
		    "one of which must be this host.");
	if (options->is_pull && options->range_count == 0)
		return error_set(err, ERROR_INVALID,
		    "Token ranges must be specified when performing pull repair. Please specify at "
		    "least one token range which both hosts have in common.");
	return 0;
}

/* Does anybody else have the keyspace's data? */
static bool
repair_is_replicated(struct repairs *repairs, const char *name)
{
	struct schema *schema = repairs->ops.schema(repairs->ops.context);
	const struct keyspace_metadata *keyspace = schema_keyspace(schema, slice_of_string(name));
	const struct topology *topology = topology_acquire(repairs->topology);
	const struct replication *replication =
	    keyspace == NULL ? NULL : topology_replication(topology, keyspace);
	bool is_replicated = replication != NULL && !replication_is_local_strategy(replication) &&
	    replication_total_factor(replication) > 1;

	topology_release(repairs->topology, topology);
	schema_unref(schema);
	return is_replicated;
}

/* The list's own copy of what options point to. */
static void
repair_copy_options(struct repair_command *command, const struct repair_options *options)
{
	struct repair_options *copy = &command->options;
	uint32_t count = 0;

	*copy = *options;
	copy->is_incremental &= !options->is_paxos_only;
	command->texts =
	    xcalloc((size_t)options->table_count + options->datacenter_count + 1, sizeof(char *));
	copy->keyspace = command->texts[count++] = xstrdup(options->keyspace);
	copy->tables = (const char *const *)&command->texts[count];
	for (uint32_t i = 0; i < options->table_count; i++)
		command->texts[count++] = xstrdup(options->tables[i]);
	copy->datacenters = (const char *const *)&command->texts[count];
	for (uint32_t i = 0; i < options->datacenter_count; i++)
		command->texts[count++] = xstrdup(options->datacenters[i]);
	command->text_count = count;
	copy->hosts = xcalloc((size_t)options->host_count + 1, sizeof(*copy->hosts));
	for (uint32_t i = 0; i < options->host_count; i++)
		((struct endpoint *)copy->hosts)[i] = options->hosts[i];
	copy->ranges = xcalloc((size_t)options->range_count + 1, sizeof(*copy->ranges));
	for (uint32_t i = 0; i < options->range_count; i++)
		((struct ring_range *)copy->ranges)[i] = options->ranges[i];
}

static void
repair_run_command(struct task *task, struct worker *worker)
{
	(void)worker;
	repair_command_begin(
	    (struct repair_command *)((char *)task - offsetof(struct repair_command, task)));
}

/* Old ones are forgotten. */
static struct repair_command *
repair_take_old_locked(struct repairs *repairs)
{
	struct repair_command **at = &repairs->commands, *old = NULL;
	uint32_t count = 0;

	while (*at != NULL) {
		if (count >= REPAIR_COMMANDS_KEPT && (*at)->is_done) {
			struct repair_command *found = *at;

			*at = found->next;
			found->next = old;
			old = found;
		} else {
			at = &(*at)->next;
		}
		count++;
	}
	return old;
}

int
repairs_start(struct repairs *repairs, const struct repair_options *options, uint32_t *number,
    struct error *err)
{
	struct repair_command *command, *old;

	if (repair_check(repairs, options, err) != 0)
		return -1;
	*number = 0;
	if (!repair_is_replicated(repairs, options->keyspace))
		return 0;
	command = xzalloc(sizeof(*command));
	command->repairs = repairs;
	repair_copy_options(command, options);
	repair_uuid(repairs, &command->parent);
	if (options->is_traced) {
		command->trace.type = TRACE_REPAIR;
		repair_uuid(repairs, &command->trace.session);
		command->trace.began_ns = env_monotonic_ns(repairs->env->env);
	}
	command->task.run = repair_run_command;
	repair_reach(repairs, &command->history, REPAIR_COMMAND_INIT);
	lock_take(&repairs->lock);
	command->number = ++repairs->last_number;
	command->next = repairs->commands;
	repairs->commands = command;
	old = repair_take_old_locked(repairs);
	lock_drop(&repairs->lock);
	while (old != NULL) {
		struct repair_command *next = old->next;

		repair_command_free(old);
		old = next;
	}
	*number = command->number;
	if (!cluster_submit(repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &command->task))
		return error_set(err, ERROR_SHUTDOWN, "the node is going down");
	return 0;
}

struct repair_termination {
	struct task task;
	struct repairs *repairs;
};

static void
repair_terminate(struct task *task, struct worker *worker)
{
	struct repair_termination *termination = (struct repair_termination *)task;
	struct repairs *repairs = termination->repairs;
	struct repair_command *command;

	(void)worker;
	/* The list grows at its front only, and who runs is not taken out of it. */
	lock_take(&repairs->lock);
	command = repairs->commands;
	lock_drop(&repairs->lock);
	while (command != NULL) {
		struct repair_command *next;

		lock_take(&repairs->lock);
		next = command->next;
		lock_drop(&repairs->lock);
		if (command->is_terminating && !command->is_done)
			repair_command_terminate(command, "Terminate session is called");
		command = next;
	}
	free(termination);
}

uint32_t
repairs_terminate_all(struct repairs *repairs)
{
	struct repair_termination *termination = xzalloc(sizeof(*termination));
	uint32_t count = 0;

	termination->task.run = repair_terminate;
	termination->repairs = repairs;
	lock_take(&repairs->lock);
	for (struct repair_command *each = repairs->commands; each != NULL; each = each->next) {
		if (each->is_done)
			continue;
		each->is_terminating = true;
		count++;
	}
	lock_drop(&repairs->lock);
	if (!cluster_submit(repairs->env, CLUSTER_STAGE_ANTI_ENTROPY, &termination->task))
		free(termination);
	return count;
}

bool
repairs_status(struct repairs *repairs, uint32_t number, uint32_t from,
    void (*each)(void *context, const struct repair_line *line), void *context,
    struct repair_status *out)
{
	struct repair_command *command;

	lock_take(&repairs->lock);
	for (command = repairs->commands; command != NULL && command->number != number;)
		command = command->next;
	if (command != NULL) {
		*out = (struct repair_status){.parent = command->parent,
		    .trace = command->trace,
		    .is_done = command->is_done,
		    .has_failed = command->has_failed,
		    .line_count = command->line_count};
		memcpy(out->failure, command->failure, sizeof(out->failure));
		for (uint32_t i = from; i < command->line_count && each != NULL; i++)
			each(context,
			    &(struct repair_line){command->lines[i].time_ms,
				command->lines[i].percent, command->lines[i].text});
	}
	lock_drop(&repairs->lock);
	return command != NULL;
}
