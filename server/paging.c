/* SPDX-License-Identifier: Apache-2.0 */
#include "server/paging.h"

enum { PAGING_FORM = 0x48, PAGING_HAS_POSITION = 1 };

void
paging_encode(const struct paging_state *state, struct buffer *out)
{
	bool has_position = !slice_is_null(state->position);

	buffer_put_u8(out, PAGING_FORM);
	buffer_put_u8(out, has_position ? PAGING_HAS_POSITION : 0);
	buffer_put_vint(out, state->key.size);
	buffer_put_slice(out, state->key);
	buffer_put_vint(out, has_position ? state->position.size : 0);
	if (has_position)
		buffer_put_slice(out, state->position);
	buffer_put_vint(out, state->left);
	buffer_put_vint(out, state->left_in_partition);
}

int
paging_decode(struct slice bytes, struct paging_state *out, struct error *err)
{
	struct reader reader = reader_of(bytes);
	uint8_t form = reader_u8(&reader), flags = reader_u8(&reader);
	uint64_t left, left_in_partition;

	out->key = reader_bytes(&reader, reader_vint(&reader));
	out->position = reader_bytes(&reader, reader_vint(&reader));
	left = reader_vint(&reader);
	left_in_partition = reader_vint(&reader);
	if (reader.is_failed || form != PAGING_FORM || (flags & ~PAGING_HAS_POSITION) != 0 ||
	    reader_left(&reader) != 0 || left > INT32_MAX || left_in_partition > INT32_MAX)
		return error_set(err, ERROR_PROTOCOL, "Invalid value for the paging state");
	if ((flags & PAGING_HAS_POSITION) == 0)
		out->position = slice_null;
	out->left = (uint32_t)left;
	out->left_in_partition = (uint32_t)left_in_partition;
	return 0;
}
