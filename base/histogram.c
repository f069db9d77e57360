/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include <assert.h>
#include <math.h>

/* next = max(last + 1, round(last * 1.2)): EstimatedHistogram.newOffsets(). */
static const uint64_t histogram_offset_table[HISTOGRAM_BUCKETS_MAX] = {
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    10,
    12,
    14,
    17,
    20,
    24,
    29,
    35,
    42,
    50,
    60,
    72,
    86,
    103,
    124,
    149,
    179,
    215,
    258,
    310,
    372,
    446,
    535,
    642,
    770,
    924,
    1109,
    1331,
    1597,
    1916,
    2299,
    2759,
    3311,
    3973,
    4768,
    5722,
    6866,
    8239,
    9887,
    11864,
    14237,
    17084,
    20501,
    24601,
    29521,
    35425,
    42510,
    51012,
    61214,
    73457,
    88148,
    105778,
    126934,
    152321,
    182785,
    219342,
    263210,
    315852,
    379022,
    454826,
    545791,
    654949,
    785939,
    943127,
    1131752,
    1358102,
    1629722,
    1955666,
    2346799,
    2816159,
    3379391,
    4055269,
    4866323,
    5839588,
    7007506,
    8409007,
    10090808,
    12108970,
    14530764,
    17436917,
    20924300,
    25109160,
    30130992,
    36157190,
    43388628,
    52066354,
    62479625,
    74975550,
    89970660,
    107964792,
    129557750,
    155469300,
    186563160,
    223875792,
    268650950,
    322381140,
    386857368,
    464228842,
    557074610,
    668489532,
    802187438,
    962624926,
    1155149911,
    1386179893,
    1663415872,
    1996099046,
    2395318855,
    2874382626,
    3449259151,
    4139110981,
    4966933177,
    5960319812,
    7152383774,
    8582860529,
    10299432635,
    12359319162,
    14831182994,
    17797419593,
    21356903512,
    25628284214,
    30753941057,
    36904729268,
    44285675122,
    53142810146,
    63771372175,
    76525646610,
    91830775932,
    110196931118,
    132236317342,
    158683580810,
    190420296972,
    228504356366,
    274205227639,
    329046273167,
    394855527800,
    473826633360,
    568591960032,
    682310352038,
    818772422446,
    982526906935,
    1179032288322,
    1414838745986,
    1697806495183,
    2037367794220,
    2444841353064,
    2933809623677,
    3520571548412,
    4224685858094,
    5069623029713,
    6083547635656,
    7300257162787,
    8760308595344,
    10512370314413,
    12614844377296,
    15137813252755,
    18165375903306,
    21798451083967,
};

void
histogram_init(struct histogram *histogram, size_t bucket_count)
{
	assert(bucket_count >= 1 && bucket_count <= HISTOGRAM_BUCKETS_MAX);
	histogram->bucket_count = bucket_count;
	histogram_clear(histogram);
}

const uint64_t *
histogram_offsets(void)
{
	return histogram_offset_table;
}

/* The first bucket whose offset is not below the value; bucket_count is the overflow bucket. */
static size_t
histogram_bucket(const struct histogram *histogram, uint64_t value)
{
	/* Where values of so many bits begin: 1 .. 8 have a bucket each, from there on it is at most five further. */
	static const uint8_t starts[] = {0, 0, 1, 3, 7, 11, 15, 19, 23, 26, 30, 34, 38, 42, 45, 49,
	    53, 57, 61, 64, 68, 72, 76, 80, 83, 87, 91, 95, 99, 102, 106, 110, 114, 118, 122, 125,
	    129, 133, 137, 141, 144, 148, 152, 156, 160, 163};
	size_t bucket;

	if (value > histogram_offset_table[HISTOGRAM_BUCKETS_MAX - 1])
		return histogram->bucket_count;
	bucket = starts[value == 0 ? 0 : 64 - __builtin_clzll(value)];
	while (histogram_offset_table[bucket] < value)
		bucket++;
	return bucket < histogram->bucket_count ? bucket : histogram->bucket_count;
}

void
histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram_add_many(histogram, value, 1);
}

void
histogram_add_many(struct histogram *histogram, uint64_t value, uint64_t times)
{
	unsigned long long max = atomic_load_explicit(&histogram->max, memory_order_relaxed);
	size_t bucket = histogram_bucket(histogram, value);

	atomic_fetch_add_explicit(&histogram->buckets[bucket], times, memory_order_relaxed);
	atomic_fetch_add_explicit(&histogram->sum, value * times, memory_order_relaxed);
	while (value > max &&
	    !atomic_compare_exchange_weak_explicit(
		&histogram->max, &max, value, memory_order_relaxed, memory_order_relaxed))
		;
}

void
histogram_clear(struct histogram *histogram)
{
	for (size_t i = 0; i <= HISTOGRAM_BUCKETS_MAX; i++)
		atomic_store_explicit(&histogram->buckets[i], 0, memory_order_relaxed);
	atomic_store_explicit(&histogram->sum, 0, memory_order_relaxed);
	atomic_store_explicit(&histogram->max, 0, memory_order_relaxed);
}

uint64_t
histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;

	for (size_t i = 0; i <= histogram->bucket_count; i++)
		count += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
	return count;
}

uint64_t
histogram_quantile(const struct histogram *histogram, double quantile)
{
	uint64_t wanted = (uint64_t)ceil((double)histogram_count(histogram) * quantile);
	uint64_t seen = 0;

	if (wanted == 0)
		return 0;
	for (size_t i = 0; i < histogram->bucket_count; i++) {
		seen += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
		if (seen >= wanted)
			return histogram_offset_table[i];
	}
	/* Beyond the last offset; Cassandra refuses to answer here, the greatest value is better. */
	return atomic_load_explicit(&histogram->max, memory_order_relaxed);
}

double
histogram_mean(const struct histogram *histogram)
{
	uint64_t count = histogram_count(histogram);

	if (count == 0)
		return 0;
	return (double)atomic_load_explicit(&histogram->sum, memory_order_relaxed) / (double)count;
}

void
histogram_recent_look(struct histogram_recent *recent, const struct histogram *histogram,
    uint64_t now_ns, uint64_t lifetime_ns)
{
	double left = exp(-(double)(now_ns - recent->looked_ns) / (double)lifetime_ns);

	recent->looked_ns = now_ns;
	for (size_t i = 0; i <= histogram->bucket_count; i++) {
		uint64_t count = atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);

		recent->weights[i] = recent->weights[i] * left + (double)(count - recent->seen[i]);
		recent->seen[i] = count;
	}
}

uint64_t
histogram_recent_quantile(
    const struct histogram_recent *recent, const struct histogram *histogram, double quantile)
{
	double wanted = 0, seen = 0;

	for (size_t i = 0; i <= histogram->bucket_count; i++)
		wanted += recent->weights[i];
	if (wanted == 0)
		return 0;
	wanted *= quantile;
	for (size_t i = 0; i < histogram->bucket_count; i++) {
		seen += recent->weights[i];
		if (seen >= wanted && seen > 0)
			return histogram_offset_table[i];
	}
	return atomic_load_explicit(&histogram->max, memory_order_relaxed);
}
