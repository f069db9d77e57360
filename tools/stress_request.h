/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_REQUEST_H
#define HELENUS_TOOLS_STRESS_REQUEST_H

/*
 * Requests as bytes, made without a struct of the message in between: half the time of an operation
 * would go into that. Any thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include "protocol/client.h"
#include "tools/stress_seeds.h"
#include "tools/stress_session.h"

/* What was put into a buffer, and what is remembered of it until the answer. */
struct stress_request {
	struct stress_seed seed; /* predefined, VALIDATE: makes the same rows again */
	double row_population;
	uint32_t partitions; /* of writes; SCAN: read so far */
	uint32_t rows;
	const struct stress_statement *statement; /* borrowed; NULL: none that is prepared */
	uint32_t flags_at; /* of the options' flags, from the envelope's start */
	uint32_t page_at; /* after the page size; 0: no pages */
	uint32_t second_at; /* QUERY with a condition: where the conditional write begins */
	uint32_t check; /* VALIDATE: which statement */
	uint32_t first; /* VALIDATE: the rows that bound it, in the order of their clustering */
	uint32_t last;
};

/* Begin an envelope; returns where, for stress_request_close(), which writes its size. */
size_t stress_request_open(struct buffer *out, uint8_t version, int16_t stream, enum opcode opcode);
void stress_request_close(struct buffer *out, size_t start);
/* Consistency, flags, values and the rest. */
void stress_request_put_options(struct buffer *out, size_t start, uint8_t version,
    const struct stress_statement *statement, const struct slice *values, uint32_t count,
    int64_t timestamp, struct stress_request *request);
void stress_request_put_short_bytes(struct buffer *out, struct slice bytes);
/* The statement's text with literals in the place of its markers, as [long string]. */
void stress_request_put_text(
    struct buffer *out, const struct stress_statement *statement, const struct slice *values);

/* EXECUTE, or QUERY where the statement is not prepared; a value for each marker. */
void stress_request_put(struct buffer *out, uint8_t version, int16_t stream,
    const struct stress_statement *statement, const struct slice *values, int64_t timestamp,
    struct stress_request *request);

/* The request once more, for the page after `paging_state`. */
void stress_request_put_page(const struct stress_request *request, struct slice envelope,
    uint8_t version, struct slice paging_state, struct buffer *out);

#endif
