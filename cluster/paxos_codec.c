/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/paxos_codec.h"

#include <string.h>

/* Of messages; of values, which are on disks too. */
enum { PAXOS_VERSION = 2, PAXOS_CONTENT_VERSION = 1, PAXOS_TICKS_PER_US = 10 };
/* Ballot.Flag: what the tenths of the microsecond say. */
enum { PAXOS_BALLOT_LOCAL = 1, PAXOS_BALLOT_GLOBAL = 2 };
enum { PROMISE_REFUSED, PROMISE_GIVEN, PROMISE_ELECTORATE_OTHER };

/* ---- Ballots -------------------------------------------------------------------------------- */

bool
paxos_ballot_is_none(const struct uuid *ballot)
{
	static const struct uuid none;

	return uuid_equal(ballot, &none);
}

int
paxos_ballot_compare(const struct uuid *a, const struct uuid *b)
{
	bool a_none = paxos_ballot_is_none(a), b_none = paxos_ballot_is_none(b);
	uint64_t left, right;
	int order;

	if (a_none || b_none)
		return (int)b_none - (int)a_none;
	left = uuid_ticks(a);
	right = uuid_ticks(b);
	if (left != right)
		return left < right ? -1 : 1;
	order = memcmp(a->bytes + 8, b->bytes + 8, 8);
	return (order > 0) - (order < 0);
}

int64_t
paxos_ballot_timestamp(const struct uuid *ballot)
{
	return (int64_t)((uuid_ticks(ballot) - uuid_ticks_of_unix_us(0)) / PAXOS_TICKS_PER_US);
}

bool
paxos_ballot_is_later(const struct uuid *a, const struct uuid *b)
{
	if (paxos_ballot_is_none(a) || paxos_ballot_is_none(b))
		return !paxos_ballot_is_none(a);
	return paxos_ballot_timestamp(a) > paxos_ballot_timestamp(b);
}

struct uuid
paxos_ballot_make(int64_t timestamp, uint64_t nonce, bool is_local)
{
	return uuid_from_time(uuid_ticks_of_unix_us(timestamp) +
		(is_local ? PAXOS_BALLOT_LOCAL : PAXOS_BALLOT_GLOBAL),
	    nonce);
}

bool
paxos_ballot_is_local(const struct uuid *ballot)
{
	return (uuid_ticks(ballot) - uuid_ticks_of_unix_us(0)) % PAXOS_TICKS_PER_US ==
	    PAXOS_BALLOT_LOCAL;
}

/* ---- Messages ------------------------------------------------------------------------------- */

static void
paxos_put_bytes(struct slice bytes, struct buffer *out)
{
	buffer_put_u32(out, (uint32_t)bytes.size);
	buffer_put_slice(out, bytes);
}

static struct slice
paxos_bytes(struct reader *reader)
{
	return reader_bytes(reader, reader_u32(reader));
}

static void
paxos_uuid(struct reader *reader, struct uuid *out)
{
	struct slice bytes = reader_bytes(reader, sizeof(out->bytes));

	if (bytes.size == sizeof(out->bytes))
		memcpy(out->bytes, bytes.data, sizeof(out->bytes));
}

static void
paxos_put_uuid(const struct uuid *uuid, struct buffer *out)
{
	buffer_put(out, uuid->bytes, sizeof(uuid->bytes));
}

static void
paxos_version(struct reader *reader, uint8_t version)
{
	if (reader_u8(reader) != version)
		reader->is_failed = true;
}

static int
paxos_end(const struct reader *reader, const char *what, struct error *err)
{
	if (reader->is_failed || reader_left(reader) != 0)
		return error_set(err, ERROR_INVALID, "a Paxos %s is malformed", what);
	return 0;
}

void
paxos_commit_encode(const struct paxos_commit *commit, struct buffer *out)
{
	buffer_put_u8(out, PAXOS_VERSION);
	paxos_put_uuid(&commit->ballot, out);
	paxos_put_uuid(&commit->table, out);
	paxos_put_bytes(commit->key, out);
	paxos_put_bytes(commit->value, out);
	buffer_put_u64(out, commit->electorate);
}

int
paxos_commit_decode(struct slice bytes, struct paxos_commit *out, struct error *err)
{
	struct reader reader = reader_of(bytes);
	struct paxos_commit commit;

	memset(&commit, 0, sizeof(commit));
	paxos_version(&reader, PAXOS_VERSION);
	paxos_uuid(&reader, &commit.ballot);
	paxos_uuid(&reader, &commit.table);
	commit.key = paxos_bytes(&reader);
	commit.value = paxos_bytes(&reader);
	commit.electorate = reader_u64(&reader);
	if (paxos_end(&reader, "request", err) != 0)
		return -1;
	if (uuid_version(&commit.ballot) != 1)
		return error_set(err, ERROR_INVALID, "a Paxos request has no ballot");
	*out = commit;
	return 0;
}

void
paxos_content_encode(const struct paxos_content *content, struct buffer *out)
{
	buffer_put_u8(out, PAXOS_CONTENT_VERSION);
	paxos_put_uuid(&content->origin, out);
	buffer_put_u8(out, (uint8_t)content->history_count);
	buffer_put_slice(out, content->history);
	paxos_put_bytes(content->mutation, out);
}

int
paxos_content_decode(struct slice value, struct paxos_content *out, struct error *err)
{
	struct reader reader = reader_of(value);
	struct paxos_content content;

	memset(&content, 0, sizeof(content));
	paxos_version(&reader, PAXOS_CONTENT_VERSION);
	paxos_uuid(&reader, &content.origin);
	content.history_count = reader_u8(&reader);
	if (content.history_count > PAXOS_HISTORY_MAX)
		reader.is_failed = true;
	content.history =
	    reader_bytes(&reader, (size_t)content.history_count * sizeof(content.origin.bytes));
	content.mutation = paxos_bytes(&reader);
	if (paxos_end(&reader, "value", err) != 0)
		return -1;
	*out = content;
	return 0;
}

static struct uuid
paxos_content_at(const struct paxos_content *content, uint32_t index)
{
	struct uuid origin;

	memcpy(origin.bytes, content->history.data + (size_t)index * sizeof(origin.bytes),
	    sizeof(origin.bytes));
	return origin;
}

bool
paxos_content_has(const struct paxos_content *content, const struct uuid *origin)
{
	bool has = uuid_equal(&content->origin, origin);

	for (uint32_t i = 0; i < content->history_count && !has; i++) {
		struct uuid other = paxos_content_at(content, i);

		has = uuid_equal(&other, origin);
	}
	return has;
}

bool
paxos_content_may_have_had(const struct paxos_content *content, const struct uuid *origin)
{
	struct uuid last;

	if (paxos_content_has(content, origin))
		return true;
	if (content->history_count < PAXOS_HISTORY_MAX)
		return false;
	last = paxos_content_at(content, content->history_count - 1);
	return paxos_ballot_compare(&last, origin) > 0;
}

void
paxos_promise_encode(const struct paxos_promise *promise, struct buffer *out)
{
	buffer_put_u8(out, PAXOS_VERSION);
	buffer_put_u8(out,
	    promise->is_electorate_other ? PROMISE_ELECTORATE_OTHER
		: promise->is_promised   ? PROMISE_GIVEN
					 : PROMISE_REFUSED);
	paxos_put_uuid(&promise->promised, out);
	paxos_put_uuid(&promise->accepted_ballot, out);
	paxos_put_bytes(promise->accepted, out);
	paxos_put_uuid(&promise->committed_ballot, out);
	paxos_put_bytes(promise->committed, out);
}

int
paxos_promise_decode(struct slice bytes, struct paxos_promise *out, struct error *err)
{
	struct reader reader = reader_of(bytes);
	struct paxos_promise promise;
	uint8_t outcome;

	memset(&promise, 0, sizeof(promise));
	paxos_version(&reader, PAXOS_VERSION);
	outcome = reader_u8(&reader);
	promise.is_promised = outcome == PROMISE_GIVEN;
	promise.is_electorate_other = outcome == PROMISE_ELECTORATE_OTHER;
	paxos_uuid(&reader, &promise.promised);
	paxos_uuid(&reader, &promise.accepted_ballot);
	promise.accepted = paxos_bytes(&reader);
	paxos_uuid(&reader, &promise.committed_ballot);
	promise.committed = paxos_bytes(&reader);
	if (paxos_end(&reader, "promise", err) != 0)
		return -1;
	*out = promise;
	return 0;
}

void
paxos_acceptance_encode(const struct paxos_acceptance *acceptance, struct buffer *out)
{
	buffer_put_u8(out, PAXOS_VERSION);
	buffer_put_u8(out, acceptance->is_accepted);
	paxos_put_uuid(&acceptance->promised, out);
}

int
paxos_acceptance_decode(struct slice bytes, struct paxos_acceptance *out, struct error *err)
{
	struct reader reader = reader_of(bytes);
	struct paxos_acceptance acceptance;

	memset(&acceptance, 0, sizeof(acceptance));
	paxos_version(&reader, PAXOS_VERSION);
	acceptance.is_accepted = reader_u8(&reader) == 1;
	paxos_uuid(&reader, &acceptance.promised);
	if (paxos_end(&reader, "acceptance", err) != 0)
		return -1;
	*out = acceptance;
	return 0;
}
