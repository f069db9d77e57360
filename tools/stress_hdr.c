/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_hdr.h"

#include <string.h>
#include <time.h>
#include <zlib.h>

enum {
	STRESS_HDR_COOKIE = 0x1c849303 | 0x10, /* V2, counts of one byte unit */
	STRESS_HDR_COMPRESSED_COOKIE = 0x1c849304 | 0x10,
	STRESS_HDR_HEADER_SIZE = 40,
};

int64_t
stress_hdr_begin(FILE *file)
{
	struct timespec day, mono;
	char date[64];
	struct tm calendar;

	clock_gettime(CLOCK_REALTIME, &day);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	localtime_r(&day.tv_sec, &calendar);
	strftime(date, sizeof(date), "%a %b %d %H:%M:%S %Z %Y", &calendar);
	fprintf(file,
	    "#Logging op latencies for Cassandra Stress\n"
	    "#[Histogram log format version 1.3]\n"
	    "#[BaseTime: %lld.000 (seconds since epoch)]\n"
	    "#[StartTime: %lld.000 (seconds since epoch), %s]\n"
	    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_"
	    "Histogram\"\n",
	    (long long)day.tv_sec, (long long)day.tv_sec, date);
	return mono.tv_sec * 1000000000LL + mono.tv_nsec - day.tv_nsec;
}

static void
stress_hdr_put_count(struct buffer *out, int64_t count)
{
	uint64_t value = zigzag_encode(count);

	/* LEB128, but the ninth byte has all its bits. */
	for (int i = 0; i < 8 && value >= 0x80; i++, value >>= 7)
		buffer_put_u8(out, (uint8_t)(value | 0x80));
	buffer_put_u8(out, (uint8_t)value);
}

void
stress_hdr_encode(const struct stress_histogram *histogram, struct buffer *out)
{
	uint32_t last = stress_histogram_index(histogram->max);
	double ratio = 1;
	uint64_t bits;
	size_t size_at;

	memcpy(&bits, &ratio, sizeof(bits));
	buffer_put_u32(out, STRESS_HDR_COOKIE);
	size_at = out->size;
	buffer_put_u32(out, 0);
	buffer_put_u32(out, 0); /* normalizing offset */
	buffer_put_u32(out, 3); /* significant digits */
	buffer_put_u64(out, 1); /* lowest discernible value */
	buffer_put_u64(out, (1ULL << STRESS_HISTOGRAM_BITS) - 1); /* highest trackable value */
	buffer_put_u64(out, bits);
	for (uint32_t i = 0; i <= last;) {
		int64_t zeros = 0;

		if (histogram->counts[i] != 0) {
			stress_hdr_put_count(out, (int64_t)histogram->counts[i++]);
			continue;
		}
		for (; i <= last && histogram->counts[i] == 0; i++)
			zeros++;
		stress_hdr_put_count(out, -zeros);
	}
	if (!out->is_failed)
		buffer_patch_u32(
		    out, size_at, (uint32_t)(out->size - size_at + 4 - STRESS_HDR_HEADER_SIZE));
}

static void
stress_hdr_put_base64(struct buffer *out, struct slice bytes)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes.size; i += 3) {
		size_t left = bytes.size - i;
		uint32_t word = (uint32_t)bytes.data[i] << 16 |
		    (left > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0) |
		    (left > 2 ? bytes.data[i + 2] : 0);

		buffer_put_u8(out, (uint8_t)digits[word >> 18]);
		buffer_put_u8(out, (uint8_t)digits[word >> 12 & 63]);
		buffer_put_u8(out, left > 1 ? (uint8_t)digits[word >> 6 & 63] : '=');
		buffer_put_u8(out, left > 2 ? (uint8_t)digits[word & 63] : '=');
	}
}

void
stress_hdr_put(FILE *file, const char *name, const char *suffix,
    const struct stress_histogram *histogram, int64_t start_ns, int64_t end_ns)
{
	struct buffer plain, packed, line;
	uLongf size;

	if (histogram->total == 0)
		return;
	buffer_init(&plain);
	buffer_init(&packed);
	buffer_init(&line);
	stress_hdr_encode(histogram, &plain);
	size = compressBound(plain.size);
	buffer_put_u32(&packed, STRESS_HDR_COMPRESSED_COOKIE);
	buffer_put_u32(&packed, 0);
	if (buffer_reserve(&packed, size) &&
	    compress(packed.data + packed.size, &size, plain.data, plain.size) == Z_OK) {
		buffer_patch_u32(&packed, 4, (uint32_t)size);
		packed.size += size;
		stress_hdr_put_base64(&line, buffer_slice(&packed));
		/* The maximum is shown in milliseconds. */
		fprintf(file, "Tag=%s%s,%.3f,%.3f,%.3f,%.*s\n", name, suffix,
		    (double)start_ns * 1e-9, (double)(end_ns - start_ns) * 1e-9,
		    (double)stress_histogram_max(histogram) * 1e-6, (int)line.size,
		    (const char *)line.data);
		fflush(file);
	}
	buffer_fini(&plain);
	buffer_fini(&packed);
	buffer_fini(&line);
}
