/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/coordinator.h"
#include <stdlib.h>
#include "base/alloc.h"
#include "cluster/ring.h"

struct coordinator {
	struct store *store; /* borrowed */
	struct env *env; /* borrowed */
	struct ring ring;
};

struct coordinator *
coordinator_new(struct store *store, struct env *env)
{
	struct coordinator *coordinator = xzalloc(sizeof(*coordinator));

	coordinator->store = store;
	coordinator->env = env;
	ring_init(&coordinator->ring, "datacenter1");
	return coordinator;
}

void
coordinator_free(struct coordinator *coordinator)
{
	free(coordinator);
}

void
coordinator_set_datacenter(struct coordinator *coordinator, const char *datacenter)
{
	ring_init(&coordinator->ring, datacenter);
}

/* ---- Writes -------------------------------------------------------------------------------- */

/* A request of several mutations: done when the last of them is. */
struct coordinator_write_state {
	struct coordinator_write *write;
	atomic_uint left;
	atomic_flag has_failed; /* err belongs to who set it first */
	struct error err;
	struct store_write *writes;
};

/* The request's error as clients know it: what a replica failed with is a write failure. */
static void
coordinator_write_error(
    const struct coordinator_write *write, const struct error *from, struct error *to)
{
	static const char *const names[] = {
	    "SIMPLE", "BATCH", "UNLOGGED_BATCH", "COUNTER", "BATCH_LOG", "CAS"};

	*to = *from;
	if (from->code == ERROR_INVALID || from->code == ERROR_OVERLOADED ||
	    from->code == ERROR_CDC_WRITE_FAILURE)
		return;
	to->code = ERROR_WRITE_FAILURE;
	to->consistency = (uint16_t)write->consistency;
	to->received = 0;
	to->required = 1;
	to->failures = 1;
	to->write_type = names[write->type];
}

static void
coordinator_write_one_done(struct store_write *store_write, const struct error *err)
{
	struct coordinator_write_state *state = store_write->context;
	struct coordinator_write *write = state->write;
	struct error failed;

	if (err != NULL && !atomic_flag_test_and_set(&state->has_failed))
		coordinator_write_error(write, err, &state->err);
	/* Acquire and release: the last one sees the error that another thread wrote. */
	if (atomic_fetch_sub_explicit(&state->left, 1, memory_order_acq_rel) != 1)
		return;
	if (state->err.code == ERROR_NONE) {
		write->on_done(write, NULL);
		return;
	}
	failed = state->err;
	write->on_done(write, &failed);
}

static int
coordinator_write_begin(struct coordinator *coordinator, struct coordinator_write *write,
    struct coordinator_write_state **out, struct error *err)
{
	struct coordinator_write_state *state = NULL;

	if (ring_check(&coordinator->ring, write->keyspace, write->consistency, err) != 0)
		return -1;
	state = arena_alloc(write->arena, sizeof(*state));
	if (state == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a write");
	state->writes = arena_alloc(write->arena, write->mutation_count * sizeof(*state->writes));
	if (state->writes == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a write");
	state->write = write;
	state->err.code = ERROR_NONE;
	atomic_init(&state->left, write->mutation_count);
	atomic_flag_clear(&state->has_failed);
	*out = state;
	return 0;
}

void
coordinator_write(struct coordinator *coordinator, struct coordinator_write *write)
{
	struct coordinator_write_state *state = NULL;
	uint32_t count = write->mutation_count;
	struct store *store = coordinator->store;
	struct error err;

	if (count == 0) {
		write->on_done(write, NULL);
		return;
	}
	if (coordinator_write_begin(coordinator, write, &state, &err) != 0) {
		write->on_done(write, &err);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		state->writes[i] = (struct store_write){.mutation = &write->mutations[i],
		    .is_durable = write->keyspace->durable_writes,
		    .on_done = coordinator_write_one_done,
		    .context = state,
		    .scratch = write->scratch};
	/* After the last of them the request may be gone. */
	{
		struct store_write *writes = state->writes;

		for (uint32_t i = 0; i < count; i++)
			store_apply(store, &writes[i]);
	}
}

/* ---- Reads --------------------------------------------------------------------------------- */

void
coordinator_read(struct coordinator *coordinator, struct coordinator_read *read)
{
	struct partition_iterator *source;
	struct error err;

	if (ring_check(&coordinator->ring, read->keyspace, read->consistency, &err) != 0 ||
	    store_read(coordinator->store, read->command, read->arena, &source, &err) != 0) {
		if (err.code < ERROR_SERVER) {
			err.code = ERROR_READ_FAILURE;
			err.consistency = (uint16_t)read->consistency;
			err.received = 0;
			err.required = 1;
			err.failures = 1;
		}
		read->on_done(read, NULL, &err);
		return;
	}
	read->on_done(read, source, NULL);
}
