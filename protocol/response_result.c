/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "cql/type.h"
#include "protocol/response.h"
#include "protocol/type_codec.h"

enum {
	RESPONSE_ID_SIZE = 16,
	RESPONSE_SPECS_FLAGS_SIZE = 4, /* in front of encoded specs */
};

void
response_put_void(struct buffer *buffer)
{
	buffer_put_u32(buffer, RESULT_VOID);
}

void
response_put_set_keyspace(struct buffer *buffer, struct slice keyspace)
{
	buffer_put_u32(buffer, RESULT_SET_KEYSPACE);
	response_put_string(buffer, keyspace);
}

/* ---- metadata ---- */

static uint32_t
response_spec_flags(const struct column_spec *columns, uint32_t column_count)
{
	for (uint32_t i = 1; i < column_count; i++) {
		if (!slice_equal(columns[i].keyspace, columns[0].keyspace) ||
		    !slice_equal(columns[i].table, columns[0].table))
			return 0;
	}
	return column_count > 0 ? ROWS_GLOBAL_TABLES_SPEC : 0;
}

static void
response_put_specs(struct buffer *buffer, uint8_t version, uint32_t flags,
    const struct column_spec *columns, uint32_t column_count)
{
	if ((flags & ROWS_GLOBAL_TABLES_SPEC) != 0) {
		response_put_string(buffer, columns[0].keyspace);
		response_put_string(buffer, columns[0].table);
	}
	for (uint32_t i = 0; i < column_count; i++) {
		if ((flags & ROWS_GLOBAL_TABLES_SPEC) == 0) {
			response_put_string(buffer, columns[i].keyspace);
			response_put_string(buffer, columns[i].table);
		}
		response_put_string(buffer, columns[i].name);
		type_codec_encode(buffer, version, columns[i].type);
	}
}

void
response_encode_specs(struct buffer *buffer, uint8_t version, const struct column_spec *columns,
    uint32_t column_count)
{
	uint32_t flags = response_spec_flags(columns, column_count);

	buffer_put_u32(buffer, flags);
	response_put_specs(buffer, version, flags, columns, column_count);
}

static bool
response_has_encoded(const struct columns_metadata *metadata)
{
	return metadata->encoded.size >= RESPONSE_SPECS_FLAGS_SIZE;
}

static uint32_t
response_metadata_flags(const struct columns_metadata *metadata)
{
	if (response_has_encoded(metadata))
		return load_u32(metadata->encoded.data);
	return response_spec_flags(metadata->columns, metadata->column_count);
}

static void
response_put_metadata(
    struct buffer *buffer, uint8_t version, uint32_t flags, const struct columns_metadata *metadata)
{
	if (response_has_encoded(metadata))
		buffer_put(buffer, metadata->encoded.data + RESPONSE_SPECS_FLAGS_SIZE,
		    metadata->encoded.size - RESPONSE_SPECS_FLAGS_SIZE);
	else
		response_put_specs(
		    buffer, version, flags, metadata->columns, metadata->column_count);
}

/* ---- rows ---- */

struct response_rows
response_begin_rows(struct buffer *buffer, uint8_t version, const struct columns_metadata *metadata,
    bool skip_metadata, const uint8_t *new_metadata_id)
{
	struct response_rows rows = {0};

	if (version < 5)
		new_metadata_id = NULL;
	if (skip_metadata && new_metadata_id == NULL)
		rows.flags = ROWS_NO_METADATA;
	else
		rows.flags = response_metadata_flags(metadata);
	if (new_metadata_id != NULL)
		rows.flags |= ROWS_METADATA_CHANGED;
	buffer_put_u32(buffer, RESULT_ROWS);
	rows.flags_offset = buffer->size;
	buffer_put_u32(buffer, rows.flags);
	buffer_put_u32(buffer, metadata->column_count);
	rows.paging_offset = buffer->size;
	if (new_metadata_id != NULL)
		response_put_short_bytes(buffer, slice_of(new_metadata_id, RESPONSE_ID_SIZE));
	if ((rows.flags & ROWS_NO_METADATA) == 0)
		response_put_metadata(buffer, version, rows.flags, metadata);
	rows.count_offset = buffer->size;
	buffer_put_u32(buffer, 0);
	return rows;
}

void
response_end_rows(struct buffer *buffer, struct response_rows *rows, struct slice paging_state)
{
	if (buffer->is_failed)
		return;
	buffer_patch_u32(buffer, rows->count_offset, rows->row_count);
	if (slice_is_null(paging_state))
		return;
	/* Whether there is more is known only after the rows, but stands before them. A page is moved
	 * up once; keeping room for a state of unknown size would cost every other answer. */
	if (!buffer_reserve(buffer, 4 + paging_state.size))
		return;
	uint8_t *at = buffer->data + rows->paging_offset;

	memmove(at + 4 + paging_state.size, at, buffer->size - rows->paging_offset);
	store_u32(at, (uint32_t)paging_state.size);
	memcpy(at + 4, paging_state.data, paging_state.size);
	buffer->size += 4 + paging_state.size;
	rows->count_offset += 4 + paging_state.size;
	rows->flags |= ROWS_HAS_MORE_PAGES;
	buffer_patch_u32(buffer, rows->flags_offset, rows->flags);
}

/* ---- prepared ---- */

void
response_put_prepared(struct buffer *buffer, uint8_t version, const struct prepared_info *info)
{
	uint32_t flags = response_metadata_flags(&info->markers);

	buffer_put_u32(buffer, RESULT_PREPARED);
	response_put_short_bytes(buffer, slice_of(info->id, RESPONSE_ID_SIZE));
	if (version >= 5)
		response_put_short_bytes(
		    buffer, slice_of(info->result_metadata_id, RESPONSE_ID_SIZE));

	buffer_put_u32(buffer, flags);
	buffer_put_u32(buffer, info->markers.column_count);
	if (version >= 4) {
		/* A statement on several tables has no key that a client could route by. */
		uint32_t count = (flags & ROWS_GLOBAL_TABLES_SPEC) != 0 ? info->key_index_count : 0;

		buffer_put_u32(buffer, count);
		for (uint32_t i = 0; i < count; i++)
			buffer_put_u16(buffer, info->key_indexes[i]);
	}
	response_put_metadata(buffer, version, flags, &info->markers);

	if (info->result.column_count == 0) {
		buffer_put_u32(buffer, ROWS_NO_METADATA);
		buffer_put_u32(buffer, 0);
		return;
	}
	flags = response_metadata_flags(&info->result);
	buffer_put_u32(buffer, flags);
	buffer_put_u32(buffer, info->result.column_count);
	response_put_metadata(buffer, version, flags, &info->result);
}

void
response_metadata_id(const struct column_spec *columns, uint32_t column_count, uint8_t id[16])
{
	struct buffer digest;

	buffer_init(&digest);
	for (uint32_t i = 0; i < column_count; i++) {
		buffer_put_slice(&digest, columns[i].name);
		buffer_put_u8(&digest, 0);
		type_print_class(columns[i].type, &digest);
		buffer_put_u16(&digest, 0);
	}
	md5(digest.size > 0 ? buffer_slice(&digest) : slice_empty, id);
	buffer_fini(&digest);
}
