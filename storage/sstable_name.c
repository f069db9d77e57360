/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include "storage/sstable.h"

static const char *const sstable_component_names[SSTABLE_COMPONENT_COUNT] = {
    [SSTABLE_DATA] = "Data.db",
    [SSTABLE_INDEX] = "Index.db",
    [SSTABLE_SUMMARY] = "Summary.db",
    [SSTABLE_FILTER] = "Filter.db",
    [SSTABLE_STATISTICS] = "Statistics.db",
    [SSTABLE_COMPRESSION_INFO] = "CompressionInfo.db",
    [SSTABLE_CRC] = "CRC.db",
    [SSTABLE_DIGEST] = "Digest.crc32",
    [SSTABLE_TOC] = "TOC.txt",
};

const char *
sstable_component_name(enum sstable_component component)
{
	return sstable_component_names[component];
}

bool
sstable_id_equal(const struct sstable_id *a, const struct sstable_id *b)
{
	if (a->is_uuid != b->is_uuid)
		return false;
	return a->is_uuid ? uuid_equal(&a->uuid, &b->uuid) : a->generation == b->generation;
}

/*
 * UUIDBasedSSTableId: the 100 ns ticks of a version 1 uuid as days, seconds of the day and ticks of the
 * second, then its low 64 bits; all in base 36, zero-filled: dddd_ssss_tttttllllllllllllll.
 */
enum { ID_DAYS = 4, ID_SECONDS = 4, ID_TICKS = 5, ID_LOW = 13, ID_TEXT = 28 };
#define ID_TICKS_A_SECOND UINT64_C(10000000)
#define ID_SECONDS_A_DAY UINT64_C(86400)

static void
sstable_id_put(char *at, size_t width, uint64_t value)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

	for (size_t i = width; i > 0; i--, value /= 36)
		at[i - 1] = digits[value % 36];
}

void
sstable_id_format(const struct sstable_id *id, char out[SSTABLE_ID_TEXT_SIZE])
{
	uint64_t ticks, seconds;

	if (!id->is_uuid) {
		snprintf(out, SSTABLE_ID_TEXT_SIZE, "%llu", (unsigned long long)id->generation);
		return;
	}
	ticks = uuid_ticks(&id->uuid);
	seconds = ticks / ID_TICKS_A_SECOND;
	memset(out, '_', ID_TEXT);
	sstable_id_put(out, ID_DAYS, seconds / ID_SECONDS_A_DAY);
	sstable_id_put(out + 5, ID_SECONDS, seconds % ID_SECONDS_A_DAY);
	sstable_id_put(out + 10, ID_TICKS, ticks % ID_TICKS_A_SECOND);
	sstable_id_put(out + 15, ID_LOW, load_u64(id->uuid.bytes + 8));
	out[ID_TEXT] = 0;
}

static bool
sstable_id_get(const char *at, size_t width, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < width; i++) {
		unsigned digit;

		if (at[i] >= '0' && at[i] <= '9')
			digit = (unsigned)(at[i] - '0');
		else if (at[i] >= 'a' && at[i] <= 'z')
			digit = (unsigned)(at[i] - 'a') + 10;
		else
			return false;
		if (__builtin_mul_overflow(*value, 36, value) ||
		    __builtin_add_overflow(*value, digit, value))
			return false;
	}
	return true;
}

static bool
sstable_id_parse_uuid(const char *text, struct sstable_id *id)
{
	uint64_t days, seconds, ticks, low;

	if (text[4] != '_' || text[9] != '_' || !sstable_id_get(text, ID_DAYS, &days) ||
	    !sstable_id_get(text + 5, ID_SECONDS, &seconds) ||
	    !sstable_id_get(text + 10, ID_TICKS, &ticks) ||
	    !sstable_id_get(text + 15, ID_LOW, &low) || seconds >= ID_SECONDS_A_DAY ||
	    ticks >= ID_TICKS_A_SECOND)
		return false;
	id->is_uuid = true;
	id->uuid =
	    uuid_from_time((days * ID_SECONDS_A_DAY + seconds) * ID_TICKS_A_SECOND + ticks, low);
	store_u64(id->uuid.bytes + 8, low);
	return true;
}

static bool
sstable_id_parse(const char *text, size_t size, struct sstable_id *id)
{
	*id = (struct sstable_id){0};
	if (size == ID_TEXT)
		return sstable_id_parse_uuid(text, id);
	if (size == 0 || size > 19)
		return false;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		id->generation = id->generation * 10 + (uint64_t)(text[i] - '0');
	}
	return true;
}

bool
sstable_name_parse(const char *file_name, struct sstable_id *id, enum sstable_component *component)
{
	struct sstable_id parsed;
	const char *text = file_name + 3;
	const char *end;

	if (strncmp(file_name, "nb-", 3) != 0)
		return false;
	end = strstr(text, "-big-");
	if (end == NULL || !sstable_id_parse(text, (size_t)(end - text), &parsed))
		return false;
	for (int i = 0; i < SSTABLE_COMPONENT_COUNT; i++) {
		if (strcmp(end + 5, sstable_component_names[i]) != 0)
			continue;
		if (id != NULL)
			*id = parsed;
		if (component != NULL)
			*component = (enum sstable_component)i;
		return true;
	}
	return false;
}

int
sstable_path(const struct sstable_descriptor *descriptor, enum sstable_component component,
    char out[SSTABLE_PATH_MAX], struct error *err)
{
	char id[SSTABLE_ID_TEXT_SIZE];
	int size;

	sstable_id_format(&descriptor->id, id);
	size = snprintf(out, SSTABLE_PATH_MAX, "%s/nb-%s-big-%s", descriptor->directory, id,
	    sstable_component_names[component]);
	if (size < 0 || size >= SSTABLE_PATH_MAX)
		return error_set(err, ERROR_IO, "path of %d bytes is too long", size);
	return 0;
}
