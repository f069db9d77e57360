/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_READ_REQUEST_H
#define HELENUS_CLUSTER_READ_REQUEST_H

/*
 * A read over a ring while it is under way: one part for each partition (cluster/partition_request.c), or one for
 * each sub-range of a batch of a range read (cluster/range_request.c). Internal to the coordinator.
 *
 * A part's way (service/reads/ReadCallback, DigestResolver, DataResolver, BlockingReadRepair):
 *
 *   FIRST    data from the nearest, digests from the others, one more when they are slow (speculation) or one fails
 *     equal -> SETTLED
 *   DATA     data from all that were asked, and one more as before; ranges begin here
 *     one answer is enough -> SETTLED
 *   ASK      what the merge still wants to know (short reads, filtered rows), again and again
 *   REPAIR   what replicas lack is sent to them, and awaited; where one is late or fails, to one more that was not asked
 *   SETTLED
 *
 * Threads: answers and timers only note what came and, when a part can go on, queue it. One thread at a time, a
 * stage's, takes the parts that can go on (read_request_run); it alone uses the arena of the caller.
 */
#include "cluster/coordinator_internal.h"
#include "storage/data_resolver.h"
#include "storage/read_response.h"

enum read_phase { READ_FIRST, READ_DATA, READ_ASK, READ_REPAIR, READ_SETTLED };
enum read_call_kind { READ_CALL_DATA, READ_CALL_DIGEST, READ_CALL_ASK, READ_CALL_REPAIR };
enum read_call_state { READ_CALL_WAITING, READ_CALL_ANSWERED, READ_CALL_FAILED };

struct read_request;
struct read_part;

/* One thing asked of one replica. */
struct read_call {
	struct message_callback callback; /* first */
	struct read_call *next; /* of the request */
	struct read_part *part;
	uint32_t replica;
	uint8_t kind; /* enum read_call_kind */
	uint8_t state; /* enum read_call_state; guarded by the request's lock */
	uint16_t reason; /* of a failure */
	bool is_within; /* of a block */
	const struct read_command *command; /* ASK; in the caller's arena */
	uint32_t index; /* ASK: of the resolver's request */
	/* What came; constant once state is ANSWERED. */
	struct message *answer; /* one reference; NULL: `local` */
	struct slice local; /* of this node's own read; in the caller's arena */
	struct read_digest digest; /* of `local` */
	/* REPAIR of this node's own data. */
	struct store_write write;
};

struct read_replica {
	struct peer *peer;
	struct read_call *first, *data; /* NULL: not asked */
	/* Guarded by the lock: not acknowledged yet, not acknowledged nor failed yet. */
	uint32_t repairs_left, repairs_unended;
	bool is_behind; /* the runner's: one more was to be repaired in its place */
};

struct read_timer {
	struct cluster_timer timer; /* first */
	struct read_part *part;
	bool is_started; /* and not stopped; the runner's */
};

struct read_part {
	struct read_request *request;
	const struct read_command *command; /* in the caller's memory, as long as request->read */
	struct read_command own; /* a sub-range's, a partition's of several */
	/* Owned; guarded by the lock. One of both is there from the start, the other when it is asked for. */
	struct message_payload *data_payload, *digest_payload;
	bool needs_digest; /* of the data: there may be others to compare with */
	int32_t block_for;
	uint32_t replica_count;
	struct read_replica *replicas; /* the nearest first */
	bool is_range;
	bool may_contact_more; /* speculative_retry is not NONE */
	struct speculation_answers
	    *latencies; /* of what speculation is by; NULL: nothing to learn */
	/* Of the speculation in READ_FIRST and in READ_DATA, and of repairs that are late. */
	struct read_timer timers[3];

	/* Guarded by the request's lock. */
	uint8_t phase; /* enum read_phase */
	bool is_queued;
	bool has_data;
	bool is_repairing_here; /* this node's own repairs are not all applied */
	bool
	    is_repair_late; /* the runner is to send what is not acknowledged to one replica more */
	uint32_t contact_count; /* of replicas, from the front */
	int32_t waiting, answered; /* of the calls of the phase */
	uint32_t repairing; /* replicas whose repairs are not all acknowledged */
	struct read_part *next_ready;

	/* The runner's; in READ_REPAIR guarded by the lock too. */
	uint32_t
	    participants; /* whose data is merged, and who is sent repairs in place of one of them */
	struct read_response response; /* SETTLED without a resolver */
	struct data_resolver *resolver;
};

struct read_request {
	struct task task; /* first */
	struct coordinator *coordinator;
	atomic_uint references; /* calls and timers that are to come, the runner, the source */
	enum consistency consistency;
	uint64_t began_ns, deadline_ns;
	enum coordinator_latency latency;
	struct trace trace; /* of type TRACE_NONE: not traced */

	struct lock lock;
	struct read_part *ready_first, *ready_last;
	bool is_running; /* somebody takes the ready parts, or is about to */
	struct read_call *calls; /* all of them, owned */
	struct read_call *spare_calls; /* of the newest block */
	uint32_t spare_count;

	/* The runner's. */
	struct coordinator_read *read; /* NULL once on_done is called */
	struct read_block *blocks; /* owned; memory of the parts */
	struct read_part *parts; /* of this batch, in order */
	uint32_t part_count, unsettled;
	struct range_scan *scan; /* NULL: partitions; in the caller's arena */
};

/* Make a request; one reference, which is the runner's. NULL: no memory. */
struct read_request *read_request_new(struct coordinator *coordinator,
    struct coordinator_read *read, enum coordinator_timeout timeout);
void read_request_unref(struct read_request *request);
/*
 * Room for `count` parts with `replicas` replicas in all, zeroed, as the request's next batch, and for `calls` calls, which are
 * what is usually asked. -1: no memory.
 */
int read_request_make_parts(
    struct read_request *request, uint32_t count, uint32_t replicas, uint32_t calls);
/* The part reads `command` from the plan's replicas. Encodes what is sent. */
int read_part_init(struct read_part *part, const struct read_command *command,
    const struct replica_plan *plan, bool is_range, struct error *err);
/* Ask the contacts of all parts, and run as long as something can be done. The runner's reference is gone then. */
void read_request_begin(struct read_request *request, struct worker *worker);
/* ... from within a run: the next batch. */
void read_request_send(struct read_request *request, uint64_t now_ns, struct worker *worker);
/* on_done with an error. */
void
read_request_fail(struct read_request *request, const struct error *err, struct worker *worker);
/* on_done with sources in order (an arena array); takes them over. */
void read_request_succeed(struct read_request *request, struct partition_iterator **sources,
    uint32_t count, struct worker *worker);
/* The rows of a settled part, from the caller's arena. */
int read_part_source(struct read_part *part, struct partition_iterator **out, struct error *err);

/* ---- between read_request.c (decides) and read_call.c (asks and waits); _locked: the request's lock is held ---- */

void read_request_ref(struct read_request *request);
/* A reference to what is sent to ask for data, or for a digest. NULL: no memory. */
struct message_payload *read_part_payload(struct read_part *part, bool is_digest);
/* Take the parts that can go on until there is none. Drops one reference. */
void read_request_run(struct read_request *request, struct worker *worker);

/* As many answers as the level asks for, and the data among them. */
bool read_part_has_enough_locked(const struct read_part *part);
/* Queue the part when it can go on. True: the caller must see that somebody runs (read_request_schedule). */
bool read_part_wake_locked(struct read_part *part);
/* Owned by the request. */
struct read_call *read_call_new(struct read_part *part, uint32_t replica, enum read_call_kind kind);
/* An answer or a failure came, or one of this node itself; wakes the part where it can go on. Any thread. */
void read_call_ended(
    struct read_call *call, bool is_answered, enum failure_reason reason, struct worker *worker);
/* What came: alive as long as the call. */
struct slice read_call_bytes(const struct read_call *call);
/* Takes over a reference of the payload (NULL: there was no memory for it). */
void read_call_send(struct read_call *call, enum verb verb, struct message_payload *payload,
    uint64_t now_ns, struct worker *worker);
/* On the runner's thread. */
void read_call_run_here(
    struct read_call *call, const struct read_command *command, struct worker *worker);
/* Send a call that `waiting` counts already; our own is left for later. */
void read_call_ask(struct read_call *call, uint64_t now_ns, struct worker *worker);
/* Speculate if the phase's answers are late. */
void read_part_start_timer(struct read_part *part);
/* Have the runner repair one replica more if acknowledgements are late. */
void read_part_start_repair_timer(struct read_part *part);
/* No speculation any more. */
void read_part_stop_timer(struct read_part *part);
/* Ask one replica more in FIRST or DATA, for the others are late or one failed. False: there is none. Any thread. */
bool read_part_contact_more(struct read_part *part, bool is_late, struct worker *worker);

/* ---- range_request.c ---- */

void range_request_start(struct coordinator *coordinator, struct coordinator_read *read,
    const struct topology *topology, const struct replication *replication);
/* All parts of the batch are settled: the next batch, or the end. */
void range_request_settled(struct read_request *request, struct worker *worker);
void range_scan_free(struct read_request *request);

#endif
