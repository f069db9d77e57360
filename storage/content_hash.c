/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "storage/content_hash.h"

/* What begins an item, so that no two sequences of items have the same bytes. */
enum {
	CONTENT_PARTITION = 'P',
	CONTENT_STATIC = 'S',
	CONTENT_ROW = 'R',
	CONTENT_MARKER = 'M',
	CONTENT_LIVENESS = 'l',
	CONTENT_DELETION = 'd',
	CONTENT_COMPLEX = 'x',
	CONTENT_CELL = 'c',
};

void
content_hash_init(struct content_hash *hash)
{
	hash->total = 0;
	hash->used = CONTENT_HASH_SIZE;
	memset(hash->block, 0, CONTENT_HASH_SIZE);
}

void
content_hash_copy(struct content_hash *to, const struct content_hash *from)
{
	to->total = from->total;
	to->used = from->used;
	memcpy(to->block, from->block, from->used);
}

/* The block's hash is the state at the beginning of the next block. */
static void
content_hash_turn(struct content_hash *hash)
{
	uint64_t state[2];

	murmur3_128(slice_of(hash->block, hash->used), 0, state);
	store_u64(hash->block, state[0]);
	store_u64(hash->block + 8, state[1]);
	hash->used = CONTENT_HASH_SIZE;
}

static void
content_hash_put_long(struct content_hash *hash, const uint8_t *data, size_t size)
{
	while (size != 0) {
		size_t room = CONTENT_HASH_BLOCK - hash->used, part = size < room ? size : room;

		memcpy(hash->block + hash->used, data, part);
		hash->used += (uint32_t)part;
		data += part;
		size -= part;
		if (hash->used == CONTENT_HASH_BLOCK)
			content_hash_turn(hash);
	}
}

/* `size` bytes that a caller fills at once; at most 32. */
static inline uint8_t *
content_hash_room(struct content_hash *hash, size_t size)
{
	uint8_t *at;

	if (hash->used + size > CONTENT_HASH_BLOCK)
		content_hash_turn(hash);
	at = hash->block + hash->used;
	hash->used += (uint32_t)size;
	hash->total += size;
	return at;
}

/* A null slice is another value than an empty one. */
static inline void
content_hash_put(struct content_hash *hash, struct slice bytes)
{
	store_u32(
	    content_hash_room(hash, 4), slice_is_null(bytes) ? UINT32_MAX : (uint32_t)bytes.size);
	hash->total += bytes.size;
	if (bytes.size == 0)
		return;
	if (bytes.size < CONTENT_HASH_BLOCK - hash->used) {
		memcpy(hash->block + hash->used, bytes.data, bytes.size);
		hash->used += (uint32_t)bytes.size;
		return;
	}
	content_hash_put_long(hash, bytes.data, bytes.size);
}

static void
content_hash_deletion(struct content_hash *hash, uint8_t tag, struct deletion deletion)
{
	uint8_t *at = content_hash_room(hash, 13);

	at[0] = tag;
	store_u64(at + 1, (uint64_t)deletion.marked_for_delete_at);
	store_u32(at + 9, (uint32_t)deletion.local_deletion_time);
}

static void
content_hash_cell(struct content_hash *hash, const struct cell *cell)
{
	uint8_t *at = content_hash_room(hash, 17);

	at[0] = CONTENT_CELL;
	store_u64(at + 1, (uint64_t)cell->timestamp);
	store_u32(at + 9, (uint32_t)cell->ttl);
	store_u32(at + 13, (uint32_t)cell->local_deletion_time);
	content_hash_put(hash, cell->column->name);
	if (cell->column->is_complex)
		content_hash_put(hash, cell->path);
	content_hash_put(hash, cell->value);
}

static void
content_hash_row_body(struct content_hash *hash, const struct row *row)
{
	if (row->liveness.timestamp != TIMESTAMP_NONE) {
		uint8_t *at = content_hash_room(hash, 17);

		at[0] = CONTENT_LIVENESS;
		store_u64(at + 1, (uint64_t)row->liveness.timestamp);
		store_u32(at + 9, (uint32_t)row->liveness.ttl);
		store_u32(at + 13, (uint32_t)row->liveness.local_expiration_time);
	}
	if (!deletion_is_live(row->deletion))
		content_hash_deletion(hash, CONTENT_DELETION, row->deletion);
	for (uint32_t i = 0; i < row->complex_deletion_count; i++) {
		content_hash_deletion(hash, CONTENT_COMPLEX, row->complex_deletions[i].deletion);
		content_hash_put(hash, row->complex_deletions[i].column->name);
	}
	for (uint32_t i = 0; i < row->cell_count; i++)
		content_hash_cell(hash, &row->cells[i]);
}

void
content_hash_partition(struct content_hash *hash, struct slice key, struct deletion deletion,
    const struct row *static_row)
{
	*content_hash_room(hash, 1) = CONTENT_PARTITION;
	content_hash_put(hash, key);
	if (!deletion_is_live(deletion))
		content_hash_deletion(hash, CONTENT_DELETION, deletion);
	if (static_row == NULL)
		return;
	*content_hash_room(hash, 1) = CONTENT_STATIC;
	content_hash_row_body(hash, static_row);
}

void
content_hash_row(struct content_hash *hash, const struct row *row)
{
	*content_hash_room(hash, 1) = CONTENT_ROW;
	content_hash_put(hash, row->position);
	content_hash_row_body(hash, row);
}

void
content_hash_marker(struct content_hash *hash, const struct marker *marker)
{
	uint8_t *at = content_hash_room(hash, 2);

	at[0] = CONTENT_MARKER;
	at[1] = (uint8_t)marker->kind;
	content_hash_put(hash, marker->position);
	if (bound_closes(marker->kind))
		content_hash_deletion(hash, CONTENT_DELETION, marker->close);
	if (bound_opens(marker->kind))
		content_hash_deletion(hash, CONTENT_DELETION, marker->open);
}

void
content_hash_finish(const struct content_hash *hash, uint8_t out[CONTENT_HASH_SIZE])
{
	uint64_t state[2];

	/* The length is the seed: where blocks end depends on where short items did not fit. */
	murmur3_128(slice_of(hash->block, hash->used), hash->total, state);
	store_u64(out, state[0]);
	store_u64(out + 8, state[1]);
}
