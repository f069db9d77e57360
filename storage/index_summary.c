/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/index_summary.h"

#include <stdlib.h>
#include "base/hash.h"

enum { INDEX_SUMMARY_BASE_LEVEL = 128, INDEX_SUMMARY_POSITION = 8 };

static uint32_t
index_summary_load_le32(const uint8_t *at)
{
	return __builtin_bswap32(load_u32(at));
}

static uint64_t
index_summary_load_le64(const uint8_t *at)
{
	return __builtin_bswap64(load_u64(at));
}

static int
index_summary_split(struct slice content, struct index_summary *out, struct slice *mapped,
    struct slice *first, struct slice *last, struct error *err)
{
	struct reader reader = reader_of(content);
	uint64_t mapped_size;

	*out = (struct index_summary){0};
	out->min_interval = reader_u32(&reader);
	out->count = reader_u32(&reader);
	mapped_size = reader_u64(&reader);
	out->sampling_level = reader_u32(&reader);
	out->full_count = reader_u32(&reader);
	if (!reader.is_failed && mapped_size > reader_left(&reader))
		reader.is_failed = true;
	*mapped = reader_bytes(&reader, (size_t)mapped_size);
	*first = reader_bytes(&reader, reader_u32(&reader));
	*last = reader_bytes(&reader, reader_u32(&reader));
	if (reader.is_failed)
		return error_set(err, ERROR_CORRUPT, "ends early at byte %zu", content.size);
	if (mapped->size / 4 < out->count)
		return error_set(err, ERROR_CORRUPT, "%u entries do not fit in %zu bytes",
		    out->count, mapped->size);
	if (out->sampling_level == 0 || out->sampling_level > INDEX_SUMMARY_BASE_LEVEL)
		return error_set(
		    err, ERROR_CORRUPT, "sampling level %u at byte 16", out->sampling_level);
	return 0;
}

int
index_summary_decode_keys(
    struct slice content, struct slice *first, struct slice *last, struct error *err)
{
	struct index_summary unused;
	struct slice mapped;

	return index_summary_split(content, &unused, &mapped, first, last, err);
}

static size_t
index_summary_offset(const struct index_summary *summary, uint32_t i)
{
	if (i == summary->count)
		return summary->mapped;
	return index_summary_load_le32(summary->bytes + (size_t)i * 4);
}

/* Offsets, order of keys; fills the tokens. */
static int
index_summary_check(struct index_summary *summary, struct error *err)
{
	for (uint32_t i = 0; i < summary->count; i++) {
		size_t start = index_summary_offset(summary, i);
		size_t end = index_summary_offset(summary, i + 1);

		if (start < (size_t)summary->count * 4 || end > summary->mapped || start > end ||
		    end - start < INDEX_SUMMARY_POSITION)
			return error_set(err, ERROR_CORRUPT, "offset of entry %u is wrong", i);
		summary->tokens[i] = murmur3_token(index_summary_key(summary, i));
		if (i > 0 && summary->tokens[i] < summary->tokens[i - 1])
			return error_set(err, ERROR_CORRUPT, "entry %u is out of order", i);
		if (i > 0 &&
		    index_summary_position(summary, i) <= index_summary_position(summary, i - 1))
			return error_set(
			    err, ERROR_CORRUPT, "position of entry %u is out of order", i);
	}
	return 0;
}

int
index_summary_decode(struct slice content, struct index_summary *out, struct error *err)
{
	struct index_summary summary;
	struct slice mapped, first, last;

	if (index_summary_split(content, &summary, &mapped, &first, &last, err) != 0)
		return -1;
	summary.mapped = mapped.size;
	summary.size = mapped.size + first.size + last.size;
	summary.bytes = malloc(summary.size + 1);
	summary.tokens = malloc(((size_t)summary.count + 1) * sizeof(int64_t));
	if (summary.bytes == NULL || summary.tokens == NULL) {
		index_summary_fini(&summary);
		return error_set(err, ERROR_NO_MEMORY, "no memory for %zu bytes", summary.size);
	}
	memcpy(summary.bytes, mapped.data, mapped.size);
	memcpy(summary.bytes + mapped.size, first.data, first.size);
	memcpy(summary.bytes + mapped.size + first.size, last.data, last.size);
	summary.first_key = slice_of(summary.bytes + mapped.size, first.size);
	summary.last_key = slice_of(summary.bytes + mapped.size + first.size, last.size);
	if (index_summary_check(&summary, err) != 0) {
		index_summary_fini(&summary);
		return -1;
	}
	*out = summary;
	return 0;
}

void
index_summary_fini(struct index_summary *summary)
{
	free(summary->bytes);
	free(summary->tokens);
	summary->bytes = NULL;
	summary->tokens = NULL;
	summary->count = 0;
}

struct slice
index_summary_key(const struct index_summary *summary, uint32_t i)
{
	size_t start = index_summary_offset(summary, i);

	return slice_of(summary->bytes + start,
	    index_summary_offset(summary, i + 1) - start - INDEX_SUMMARY_POSITION);
}

uint64_t
index_summary_position(const struct index_summary *summary, uint32_t i)
{
	return index_summary_load_le64(
	    summary->bytes + index_summary_offset(summary, i + 1) - INDEX_SUMMARY_POSITION);
}

int64_t
index_summary_floor(const struct index_summary *summary, int64_t token, struct slice key)
{
	int64_t low = 0, high = (int64_t)summary->count;

	/* Entries below `low` are <=, those from `high` on are greater. */
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		int64_t other = summary->tokens[middle];

		if (other < token ||
		    (other == token &&
			slice_compare(index_summary_key(summary, (uint32_t)middle), key) <= 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

int64_t
index_summary_floor_token(const struct index_summary *summary, int64_t token)
{
	int64_t low = 0, high = (int64_t)summary->count;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (summary->tokens[middle] < token)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

void
index_summary_builder_init(struct index_summary_builder *builder, uint32_t min_interval)
{
	*builder = (struct index_summary_builder){
	    .min_interval = min_interval == 0 ? INDEX_SUMMARY_BASE_LEVEL : min_interval};
	buffer_init(&builder->offsets);
	buffer_init(&builder->entries);
	buffer_init(&builder->first_key);
	buffer_init(&builder->last_key);
}

void
index_summary_builder_fini(struct index_summary_builder *builder)
{
	buffer_fini(&builder->offsets);
	buffer_fini(&builder->entries);
	buffer_fini(&builder->first_key);
	buffer_fini(&builder->last_key);
}

static void
index_summary_put_le(struct buffer *out, uint64_t value, size_t size)
{
	uint8_t *at = buffer_append(out, size);

	for (size_t i = 0; at != NULL && i < size; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

void
index_summary_builder_add(
    struct index_summary_builder *builder, struct slice key, uint64_t index_position)
{
	if (builder->keys == 0)
		buffer_put_slice(&builder->first_key, key);
	buffer_clear(&builder->last_key);
	buffer_put_slice(&builder->last_key, key);
	/* Offsets are 32 bits: a table of that many keys is sampled more coarsely from there on. */
	if (builder->keys == builder->next_sample && builder->entries.size < INT32_MAX / 2) {
		index_summary_put_le(&builder->offsets, builder->entries.size, 4);
		buffer_put_slice(&builder->entries, key);
		index_summary_put_le(&builder->entries, index_position, 8);
		builder->count++;
		builder->next_sample += builder->min_interval;
	}
	builder->keys++;
}

int
index_summary_builder_encode(
    struct index_summary_builder *builder, struct buffer *out, struct error *err)
{
	if (buffer_check(&builder->offsets, err) != 0 ||
	    buffer_check(&builder->entries, err) != 0 ||
	    buffer_check(&builder->first_key, err) != 0 ||
	    buffer_check(&builder->last_key, err) != 0)
		return -1;
	buffer_put_u32(out, builder->min_interval);
	buffer_put_u32(out, builder->count);
	buffer_put_u64(out, builder->offsets.size + builder->entries.size);
	buffer_put_u32(out, INDEX_SUMMARY_BASE_LEVEL);
	buffer_put_u32(
	    out, (uint32_t)((builder->keys + builder->min_interval - 1) / builder->min_interval));
	for (uint32_t i = 0; i < builder->count; i++) {
		uint64_t offset = index_summary_load_le32(builder->offsets.data + (size_t)i * 4);

		index_summary_put_le(out, offset + builder->offsets.size, 4);
	}
	buffer_put_slice(out, buffer_slice(&builder->entries));
	buffer_put_u32(out, (uint32_t)builder->first_key.size);
	buffer_put_slice(out, buffer_slice(&builder->first_key));
	buffer_put_u32(out, (uint32_t)builder->last_key.size);
	buffer_put_slice(out, buffer_slice(&builder->last_key));
	return buffer_check(out, err);
}
