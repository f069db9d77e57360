/* SPDX-License-Identifier: Apache-2.0 */

/* The two sketches of Statistics.db: drop times of tombstones and the number of keys. */
#include <stdlib.h>
#include "base/alloc.h"
#include "storage/statistics.h"

/* ---- drop times ------------------------------------------------------------------------------ */

static void
statistics_drop_times_merge_closest(struct statistics_drop_times *histogram)
{
	uint32_t best = 0;
	int64_t gap = INT64_MAX;
	int64_t count;

	for (uint32_t i = 0; i + 1 < histogram->count; i++) {
		if (histogram->times[i + 1] - histogram->times[i] < gap) {
			gap = histogram->times[i + 1] - histogram->times[i];
			best = i;
		}
	}
	count = histogram->counts[best] + histogram->counts[best + 1];
	histogram->times[best] +=
	    (int64_t)((double)gap * (double)histogram->counts[best + 1] / (double)count);
	histogram->counts[best] = count;
	for (uint32_t i = best + 1; i + 1 < histogram->count; i++) {
		histogram->times[i] = histogram->times[i + 1];
		histogram->counts[i] = histogram->counts[i + 1];
	}
	histogram->count--;
}

static void
statistics_drop_times_insert(struct statistics_drop_times *histogram, int64_t time, int64_t count)
{
	uint32_t i = histogram->count;

	while (i > 0 && histogram->times[i - 1] >= time)
		i--;
	if (i < histogram->count && histogram->times[i] == time) {
		histogram->counts[i] += count;
		return;
	}
	for (uint32_t j = histogram->count; j > i; j--) {
		histogram->times[j] = histogram->times[j - 1];
		histogram->counts[j] = histogram->counts[j - 1];
	}
	histogram->times[i] = time;
	histogram->counts[i] = count;
	histogram->count++;
	if (histogram->count > STATISTICS_DROP_BINS)
		statistics_drop_times_merge_closest(histogram);
}

void
statistics_drop_times_finish(struct statistics_drop_times *histogram)
{
	for (uint32_t i = 0; histogram->spool_count > 0 && i < STATISTICS_SPOOL; i++) {
		if (histogram->spool_counts[i] == 0)
			continue;
		statistics_drop_times_insert(
		    histogram, histogram->spool_times[i], histogram->spool_counts[i]);
		histogram->spool_counts[i] = 0;
	}
	histogram->spool_count = 0;
}

void
statistics_drop_times_add(struct statistics_drop_times *histogram, int32_t time, uint64_t count)
{
	int64_t rounded = time;
	uint32_t slot;

	if (rounded < 0)
		rounded = 0;
	rounded =
	    (rounded + STATISTICS_DROP_ROUND - 1) / STATISTICS_DROP_ROUND * STATISTICS_DROP_ROUND;
	if (rounded >= INT32_MAX)
		rounded = INT32_MAX - 1; /* Cell.MAX_DELETION_TIME */
	slot = (uint32_t)((uint64_t)rounded * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
	    (STATISTICS_SPOOL - 1);
	while (histogram->spool_counts[slot] != 0 && histogram->spool_times[slot] != rounded)
		slot = (slot + 1) & (STATISTICS_SPOOL - 1);
	if (histogram->spool_counts[slot] == 0) {
		histogram->spool_times[slot] = rounded;
		histogram->spool_count++;
	}
	histogram->spool_counts[slot] += (int64_t)count;
	if (histogram->spool_count > STATISTICS_SPOOL / 2)
		statistics_drop_times_finish(histogram);
}

double
statistics_drop_times_sum(const struct sstable_drop_times *histogram, double time)
{
	double sum = 0;
	double weight, width, next;
	uint32_t i = 0;

	if (histogram->count == 0 || time < histogram->times[0])
		return 0;
	while (i + 1 < histogram->count && histogram->times[i + 1] <= time)
		sum += (double)histogram->counts[i++];
	if (i + 1 == histogram->count)
		return sum + (double)histogram->counts[i];
	/* Half of a bin lies on each side of its time; between two bins the density is linear. */
	width = (double)histogram->times[i + 1] - histogram->times[i];
	weight = (time - histogram->times[i]) / width;
	next = (double)histogram->counts[i] +
	    ((double)histogram->counts[i + 1] - (double)histogram->counts[i]) * weight;
	sum += ((double)histogram->counts[i] + next) * weight / 2;
	return sum + (double)histogram->counts[i] / 2;
}

/* ---- HyperLogLog++ ------------------------------------------------------------------------------ */

enum {
	CARDINALITY_P = 13,
	CARDINALITY_SP = 25,
	CARDINALITY_REGISTERS = 1 << CARDINALITY_P,
	CARDINALITY_REGISTERS_A_WORD = 6,
	CARDINALITY_REGISTER_BITS = 5,
	CARDINALITY_VERSION = -2,
};

/* MurmurHash 2, 64 bits, seed 0, as Cassandra has it: the last bytes are sign extended. */
static uint64_t
statistics_hash(struct slice key)
{
	const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
	uint64_t hash = m * key.size;
	size_t blocks = key.size / 8;
	size_t tail = key.size & 7;

	for (size_t i = 0; i < blocks; i++) {
		uint64_t k = __builtin_bswap64(load_u64(key.data + i * 8)) * m;

		k ^= k >> 47;
		hash = (hash ^ (k * m)) * m;
	}
	if (tail > 0) {
		for (size_t i = tail; i > 0; i--)
			hash ^= (uint64_t)(int64_t)(int8_t)key.data[blocks * 8 + i - 1]
			    << (8 * (i - 1));
		hash *= m;
	}
	hash = (hash ^ (hash >> 47)) * m;
	return hash ^ (hash >> 47);
}

void
statistics_cardinality_init(struct statistics_cardinality *cardinality)
{
	*cardinality = (struct statistics_cardinality){
	    .sparse = xcalloc(2 * STATISTICS_SPARSE_MAX, sizeof(uint32_t))};
}

void
statistics_cardinality_fini(struct statistics_cardinality *cardinality)
{
	free(cardinality->sparse);
	free(cardinality->registers);
	*cardinality = (struct statistics_cardinality){0};
}

/* Leading zeros behind the register's index bits, plus one; bounded by a sentinel bit. */
static uint32_t
statistics_run_length(uint64_t hash)
{
	return (uint32_t)__builtin_clzll(
		   (hash << CARDINALITY_P) | (UINT64_C(1) << (CARDINALITY_P - 1))) +
	    1;
}

/* HyperLogLogPlus.encodeHash: 25 bits of index; where those after the 13th are all zero the run
 * length cannot be told from them and is stored too. */
static uint32_t
statistics_sparse_encode(uint64_t hash)
{
	uint32_t index = (uint32_t)(hash >> (64 - CARDINALITY_SP));

	if (index << (32 - CARDINALITY_SP + CARDINALITY_P) != 0)
		return index << 1;
	return ((index << 6 | (statistics_run_length(hash) ^ 63)) << 1) | 1;
}

static uint32_t
statistics_sparse_index(uint32_t encoded)
{
	return (encoded & 1) != 0 ? encoded >> 7 : encoded >> 1;
}

static uint32_t
statistics_sparse_run(uint32_t encoded)
{
	if ((encoded & 1) != 0)
		return ((encoded >> 1) & 63) ^ 63;
	return (uint32_t)__builtin_clz(encoded << (CARDINALITY_P + 31 - CARDINALITY_SP)) + 1;
}

/* The order of the sparse set: by index, and of one index the longest run first. */
static int
statistics_sparse_compare(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	uint32_t left_index = statistics_sparse_index(left);
	uint32_t right_index = statistics_sparse_index(right);

	if (left_index != right_index)
		return left_index < right_index ? -1 : 1;
	return left < right ? -1 : left > right;
}

static void
statistics_sparse_sort(struct statistics_cardinality *cardinality)
{
	uint32_t kept = 0;

	qsort(cardinality->sparse, cardinality->sparse_count, sizeof(uint32_t),
	    statistics_sparse_compare);
	for (uint32_t i = 0; i < cardinality->sparse_count; i++) {
		if (kept > 0 &&
		    statistics_sparse_index(cardinality->sparse[kept - 1]) ==
			statistics_sparse_index(cardinality->sparse[i]))
			continue;
		cardinality->sparse[kept++] = cardinality->sparse[i];
	}
	cardinality->sparse_count = kept;
	cardinality->sorted_count = kept;
}

static void
statistics_cardinality_set(struct statistics_cardinality *cardinality, uint32_t index, uint32_t run)
{
	if (run >= 1u << CARDINALITY_REGISTER_BITS)
		run = (1u << CARDINALITY_REGISTER_BITS) - 1;
	if (cardinality->registers[index] < run)
		cardinality->registers[index] = (uint8_t)run;
}

void
statistics_cardinality_add(struct statistics_cardinality *cardinality, struct slice key)
{
	uint64_t hash = statistics_hash(key);

	if (cardinality->registers != NULL) {
		statistics_cardinality_set(cardinality, (uint32_t)(hash >> (64 - CARDINALITY_P)),
		    statistics_run_length(hash));
		return;
	}
	cardinality->sparse[cardinality->sparse_count++] = statistics_sparse_encode(hash);
	if (cardinality->sparse_count < 2 * STATISTICS_SPARSE_MAX)
		return;
	statistics_sparse_sort(cardinality);
	if (cardinality->sparse_count <= STATISTICS_SPARSE_MAX)
		return;
	cardinality->registers = xzalloc(CARDINALITY_REGISTERS);
	for (uint32_t i = 0; i < cardinality->sparse_count; i++) {
		uint32_t encoded = cardinality->sparse[i];

		statistics_cardinality_set(cardinality,
		    statistics_sparse_index(encoded) >> (CARDINALITY_SP - CARDINALITY_P),
		    statistics_sparse_run(encoded));
	}
}

/* Little-endian base 128, the library's own; not the vint of the rest. */
static void
statistics_put_varint(struct buffer *out, uint32_t value)
{
	while (value >= 0x80) {
		buffer_put_u8(out, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	buffer_put_u8(out, (uint8_t)value);
}

static void
statistics_cardinality_encode_registers(
    const struct statistics_cardinality *cardinality, struct buffer *out)
{
	uint32_t words = CARDINALITY_REGISTERS / CARDINALITY_REGISTERS_A_WORD + 1;

	statistics_put_varint(out, 0);
	statistics_put_varint(out, words * 4);
	for (uint32_t word = 0; word < words; word++) {
		uint32_t value = 0;

		for (uint32_t i = 0; i < CARDINALITY_REGISTERS_A_WORD; i++) {
			uint32_t index = word * CARDINALITY_REGISTERS_A_WORD + i;

			if (index < CARDINALITY_REGISTERS)
				value |= (uint32_t)cardinality->registers[index]
				    << (CARDINALITY_REGISTER_BITS * i);
		}
		buffer_put_u32(out, value);
	}
}

void
statistics_cardinality_encode(struct statistics_cardinality *cardinality, struct buffer *out)
{
	uint32_t last = 0;

	buffer_put_u32(out, (uint32_t)CARDINALITY_VERSION);
	statistics_put_varint(out, CARDINALITY_P);
	statistics_put_varint(out, CARDINALITY_SP);
	if (cardinality->registers != NULL) {
		statistics_cardinality_encode_registers(cardinality, out);
		return;
	}
	statistics_sparse_sort(cardinality);
	statistics_put_varint(out, 1);
	statistics_put_varint(out, cardinality->sparse_count);
	for (uint32_t i = 0; i < cardinality->sparse_count; i++) {
		statistics_put_varint(out, cardinality->sparse[i] - last);
		last = cardinality->sparse[i];
	}
}
