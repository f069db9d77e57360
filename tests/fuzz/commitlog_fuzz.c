/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay of a commit log segment. The first byte chooses what the rest is: a whole file; what follows a sound
 * header (the second byte says how much of it was synced); payloads that are put into sound records, with
 * one byte of the file changed; or sections of a compressed segment, stored bytes of whatever compressor.
 */
#include <stdint.h>
#include <stdlib.h>
#include "base/env_sim.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/commitlog_segment.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_ID = 1234567, FUZZ_FILE_MAX = 1 << 16 };

static int
fuzz_record(
    void *context, struct slice record, struct commitlog_position position, struct error *err)
{
	struct commitlog_position *last = context;

	(void)err;
	/* Records come in order, inside the file, and their bytes can be read. */
	if (record.size == 0 || commitlog_position_compare(position, *last) <= 0 ||
	    position.segment_id != FUZZ_ID)
		abort();
	(void)hash_bytes(record);
	*last = position;
	return 1;
}

static void
fuzz_put_header(struct buffer *file, uint64_t synced, char version)
{
	uint8_t header[SEGMENT_HEADER_SIZE] = {'H', 'E', 'L', 'E', 'N', 'U', 'S', (uint8_t)version};

	store_u64(header + 8, FUZZ_ID);
	store_u32(header + 16, FUZZ_FILE_MAX);
	store_u32(header + 20, crc32_update(0, header, 20));
	store_u64(header + 24, synced);
	store_u32(header + 32, crc32_update(0, header + 24, 8));
	buffer_put(file, header, sizeof(header));
}

static void
fuzz_put_record(struct buffer *file, struct slice payload)
{
	uint8_t sealed[16];

	store_u64(sealed, FUZZ_ID);
	store_u32(sealed + 8, (uint32_t)file->size);
	store_u32(sealed + 12, (uint32_t)payload.size);
	buffer_put_u32(file, (uint32_t)payload.size);
	buffer_put_u32(file, crc32_update(0, sealed, sizeof(sealed)));
	buffer_put_u32(file, crc32_update(0, payload.data, payload.size));
	buffer_put_slice(file, payload);
	while (file->size % SEGMENT_ALIGNMENT != 0)
		buffer_put_u8(file, 0);
}

/* u8 kind, u16 size before, u8 size stored, bytes; the offsets and checksums are right. */
static void
fuzz_put_sections(struct reader *input, struct buffer *file)
{
	uint32_t at = SEGMENT_HEADER_SIZE;

	while (reader_left(input) > 4 && file->size < FUZZ_FILE_MAX) {
		uint32_t kind = reader_u8(input), size = reader_u16(input);
		struct slice stored = reader_bytes(input, reader_u8(input));
		uint8_t place[16], header[16];

		if (input->is_failed)
			return;
		store_u32(header, (uint32_t)stored.size);
		store_u32(header + 4, size);
		store_u32(header + 8, at);
		store_u32(header + 12, kind);
		store_u64(place, FUZZ_ID);
		store_u64(place + 8, file->size);
		buffer_put(file, header, sizeof(header));
		buffer_put_u32(file,
		    crc32_update(crc32_update(0, place, sizeof(place)), header, sizeof(header)));
		buffer_put_u32(file, crc32_update(0, stored.data, stored.size));
		buffer_put_slice(file, stored);
		at += size;
	}
}

static void
fuzz_make_file(struct reader *input, struct buffer *file)
{
	uint8_t kind = reader_u8(input) % 4;
	uint16_t synced, damage;

	if (kind == 0) {
		buffer_put_slice(file, reader_bytes(input, reader_left(input)));
		return;
	}
	synced = reader_u16(input);
	fuzz_put_header(file, synced, kind == 3 ? 'Z' : '1');
	if (kind == 1) {
		buffer_put_slice(file, reader_bytes(input, reader_left(input)));
		return;
	}
	if (kind == 3) {
		fuzz_put_sections(input, file);
		return;
	}
	damage = reader_u16(input);
	while (reader_left(input) > 1 && file->size < FUZZ_FILE_MAX) {
		size_t size = 1 + reader_u8(input) % 64;

		if (size > reader_left(input))
			size = reader_left(input);
		fuzz_put_record(file, reader_bytes(input, size));
	}
	if (damage < file->size && damage >= SEGMENT_HEADER_SIZE)
		file->data[damage] ^= 0x10;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct env_sim *world;
	struct env *env;
	struct reader input = reader_of(slice_of(data, size));
	struct segment_file file = {.id = FUZZ_ID, .path = (char *)"/log/CommitLog-h1-1234567.log"};
	struct segment_replay_totals totals = {0};
	struct commitlog_position last = {0, 0};
	struct buffer content;
	struct error err;

	fuzz_memory_certain(true);
	log_set_level("ROOT", LOG_OFF);
	world = env_sim_new(1);
	env = env_sim_env(world);
	buffer_init(&content);
	fuzz_make_file(&input, &content);
	file.size = content.size;
	if (files_mkdir(env->files, "/log", &err) != 0 ||
	    files_replace(env->files, file.path, buffer_slice(&content), &err) != 0)
		abort();
	fuzz_memory_certain(false);
	for (int ignore = 0; ignore < 2; ignore++) {
		int rc;

		last = (struct commitlog_position){0, 0};
		rc = segment_replay(env, &file, ignore != 0, fuzz_record, &last, &totals, &err);
		/* Damage is told by name, and can always be overridden. */
		if (rc != 0 && (ignore != 0 || err.code != ERROR_CORRUPT) &&
		    err.code != ERROR_NO_MEMORY)
			abort();
	}
	buffer_fini(&content);
	env_sim_free(world);
	return 0;
}
