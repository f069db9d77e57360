/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_STREAM_MESSAGE_H
#define HELENUS_CLUSTER_STREAM_MESSAGE_H

/*
 * What two nodes say on a streaming channel, big-endian. Each record begins with its verb (cluster/message.h, u8);
 * strings and lists begin with a vint, their size or count.
 *
 *   initiator                                    follower
 *   INIT     u8 version, plan id, u8 operation, u8 flags [pending repair]
 *   PREPARE  requests, summaries          ->
 *                                         <-     PREPARE no requests, summaries
 *   then both ways:
 *   FILE     vint number, table id, vint bytes   a file begins
 *   DATA     u8 is last, bytes                   ... of the file that began last
 *   ACK      vint number, u8 again, string       it arrived; or it shall come again, and why
 *   DONE                                         all my files have been sent and acknowledged
 *   COMPLETE                                     yours are part of my tables
 *   FAILED   string                              the session is over, and why
 *   KEEP_ALIVE
 *
 * After a connection broke, instead of PREPARE:
 *   INIT     as it was, with the flag "resumes"
 *   RESUME   u8 flags, list of vint       ->     files that arrived, by their numbers; the others are sent again
 *                                         <-     RESUME, the same; if not known: INIT and PREPARE follow, from the beginning
 *
 *   request  string keyspace, list of table names, list of (i64 left, i64 right)
 *   summary  table id, string keyspace, string table, vint files, vint bytes
 */
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/uuid.h"
#include "cluster/message.h"
#include "cluster/topology.h"

enum { STREAM_MESSAGE_VERSION = 2 };

/* Of RESUME. */
enum {
	STREAM_RESUME_KNOWN = 1, /* the session is here yet */
	STREAM_RESUME_COMMITTED =
	    2, /* ... and all files are part of the tables: numbers are left out */
};

struct stream_request {
	struct slice keyspace;
	uint32_t table_count; /* 0: all */
	struct slice *tables;
	uint32_t range_count;
	struct ring_range *ranges;
};

struct stream_summary {
	struct uuid table_id;
	struct slice keyspace, table;
	uint64_t files, bytes;
};

struct stream_message {
	uint8_t verb;
	union {
		struct {
			struct uuid plan_id;
			uint8_t operation;
			bool has_pending_repair, resumes;
			struct uuid pending_repair;
		} init;
		struct {
			uint8_t flags;
			uint32_t count;
			uint64_t *numbers;
		} resume;
		struct {
			uint32_t request_count, summary_count;
			struct stream_request *requests;
			struct stream_summary *summaries;
		} prepare;
		struct {
			uint64_t number;
			struct uuid table_id;
			uint64_t bytes; /* an estimate, but for an entire SSTable */
		} file;
		struct {
			bool is_last;
			struct slice bytes;
		} data;
		struct {
			uint64_t number;
			bool again;
			struct slice reason;
		} ack;
		struct slice failure;
	};
};

/* Appends. */
void stream_message_encode(const struct stream_message *message, struct buffer *out);
/* Lists are the arena's; slices point into `record`. ERROR_PROTOCOL. */
int stream_message_decode(
    struct slice record, struct arena *arena, struct stream_message *out, struct error *err);

#endif
