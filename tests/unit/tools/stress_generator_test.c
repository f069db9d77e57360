/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values recorded here are cassandra-stress's own: what one tool writes the other must expect.
 */
#include <check.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "tools/stress_partition.h"

static struct stress_distribution
distribution_of(const char *text)
{
	struct stress_distribution distribution;
	struct error err;

	ck_assert_msg(stress_distribution_parse(&distribution, text, &err) == 0, "%s", err.text);
	return distribution;
}

static void
assert_hex(struct slice value, const char *expected, const char *what)
{
	char *hex = xmalloc(2 * value.size + 1);

	hex_encode(value, hex);
	ck_assert_msg(strcmp(hex, expected) == 0, "%s: %s, not %s", what, hex, expected);
	free(hex);
}

static const struct {
	int64_t seed;
	const char *size;
	const char *key;
	const char *values[3];
} recorded_rows[] = {
    {1LL, "fixed(34)", "30503337373039503231",
	{"85182fdfe7f86306cd58ce81aa53cca24c193841d6ae8a91646a4c304dd9f47892f9",
	    "1f5c9f8c30a62ce4815e936de814514ea33ed4d85fa33f90222d58a5a0a49b38d2fe",
	    "225510932bd8812b4610817653b79c86552c99aefb177f4cefa4850a9139db696e6e"}},
    {1LL, "uniform(1..60)", "30503337373039503231",
	{"85182fdfe7f86306cd58ce81aa53cca2", "1f5c9f8c30a62ce4",
	    "225510932bd8812b4610817653b79c86552c99aefb177f4cefa4"}},
    {2LL, "fixed(34)", "4f384c4b37394c4f3631",
	{"b8e05320cd1037d6e317cce868ca7f9e679cf764169e9d0b3f5b2c0ffc3cb50dd5c4",
	    "440b1bdefbc9932ec91daa7fbe985e951fd425c9ab069c4d9a398b1444984097f7c1",
	    "3c679832c20720548015925f1681ce1991e508bba683a31711485c5ff09c2ff91679"}},
    {2LL, "uniform(1..60)", "4f384c4b37394c4f3631",
	{"b8e0", "440b1bdefbc9932ec91daa", "3c679832c20720548015925f1681ce1991e508bba683a3"}},
    {1000000LL, "fixed(34)", "30504d4e4c3832503331",
	{"185f8a309ff37d639492552766f10051f4906f856e162373445800a35763cf8fed30",
	    "f7e2d67d0d8b75ee379e57180bbf0a760df396a59c3bdc496147288152cbea3e344a",
	    "7030556b7b7c69579bf6bdb9cfb56dfbe752760d1c0f2d5253580018d48622b1bd5e"}},
    {1000000LL, "uniform(1..60)", "30504d4e4c3832503331",
	{"185f8a309ff37d639492552766f10051f4906f856e162373445800a35763cf8fed30e141",
	    "f7e2d67d0d8b75ee379e57180bbf0a760df396a59c3bdc496147288152cbea3e344a2f",
	    "7030556b7b7c69579bf6bdb9cfb56dfbe752"}},
    {123456789012LL, "fixed(34)", "304c3130344d504e3630",
	{"635463d783cf0a87578dc885e0d2ec5302afae62a36b3f5cde9ed2769ca75af16b9e",
	    "55ee57180cf33018196ae4101ea49adb702a447bf4432341633ac3aa34d446a584a3",
	    "978f98cec706e445222f6e098645694221e20e13030b4e7680cb2b5fb42507c173dd"}},
    {123456789012LL, "uniform(1..60)", "304c3130344d504e3630",
	{"635463d783cf0a87578dc885e0d2ec5302",
	    "55ee57180cf33018196ae4101ea49adb702a447bf4432341633ac3aa34", "978f98cec706e445222f"}},
};

START_TEST(test_predefined_row_is_the_one_cassandra_stress_writes)
{
	static const char *salts[] = {"randomstrC0", "randomstrC1", "randomstrC2"};
	struct stress_distribution size = distribution_of(recorded_rows[_i].size);
	struct stress_distribution key_size = stress_distribution_fixed(10);
	struct stress_generator_config config = {.seed_text = "randomstrkey", .size = &key_size};
	struct stress_seeds *seeds = NULL;
	struct stress_seed seed = {.seed = recorded_rows[_i].seed};
	struct stress_generator key, values[3];
	struct stress_table table = {
	    .key_count = 1, .value_count = 3, .keys = &key, .values = values};
	struct stress_partition partition;
	struct arena arena;

	arena_init(&arena, 4096);
	ck_assert_int_eq(
	    stress_generator_init(&key, "key", type_native(TYPE_BLOB), &config, NULL), 0);
	key.is_hex = true;
	for (int i = 0; i < 3; i++) {
		config = (struct stress_generator_config){.seed_text = salts[i], .size = &size};
		ck_assert_int_eq(
		    stress_generator_init(&values[i], "C", type_native(TYPE_BLOB), &config, NULL),
		    0);
	}
	stress_table_finish(&table);
	stress_partition_init(&partition, &table, 1);
	partition.seeds = seeds;
	ck_assert(stress_partition_reset(&partition, &seed, 1, 0, 1, false, &arena));
	ck_assert(stress_partition_next(&partition));
	assert_hex(partition.keys[0].wire, recorded_rows[_i].key, "key");
	for (int i = 0; i < 3; i++)
		assert_hex(partition.row[i].wire, recorded_rows[_i].values[i], "column");
	ck_assert(!stress_partition_next(&partition));
	stress_partition_fini(&partition);
	arena_fini(&arena);
}
END_TEST

static const struct {
	const char *type;
	struct {
		const char *hex;
		int64_t mixed; /* with 99 */
	} values[2];
} recorded_types[] = {
    {"text", {{"65197d31704b", 90781271206LL}, {"1057593c7d3b", 88403990155LL}}},
    {"bigint", {{"00000016324e65af", 95333282220LL}, {"0000000ca18d25bd", 54249992634LL}}},
    {"blob", {{"45795d91502b", 89952688294LL}, {"f0b7b91c5d9b", 87335295499LL}}},
    {"boolean", {{"01", 3070LL}, {"01", 3070LL}}},
    {"decimal", {{"0000000016324e65af", 95333282220LL}, {"000000000ca18d25bd", 54249992634LL}}},
    {"double", {{"4236324e65af0615", 95333282220LL}, {"4229431a4b7ba18f", 54249992634LL}}},
    {"float", {{"51b19273", 95333280765LL}, {"514a18d2", 54249991165LL}}},
    {"inet", {{"324e65af", 92996137LL}, {"a18d25bd", 88488999LL}}},
    {"int", {{"324e65af", 844001708LL}, {"a18d25bd", -1584582214LL}}},
    {"varint", {{"16324e65af", 95333282220LL}, {"0ca18d25bd", 54249992634LL}}},
    {"timestamp", {{"0000015dfe9ad2a6", 84436327064143LL}, {"000000c72aa346c3", 84436161229920LL}}},
    {"uuid",
	{{"00000016324e65af00000016324e65af", 3069LL},
	    {"0000000ca18d25bd0000000ca18d25bd", 3069LL}}},
    {"timeuuid",
	{{"9345b460857b11e7b6f9c560c83f5771", 2719172521135198867LL},
	    {"9d7d613081c311d0b6f9c560c83f5771", 3135811905302319774LL}}},
    {"tinyint", {{"af", 2988LL}, {"bd", 3002LL}}},
    {"smallint", {{"65af", 29100LL}, {"25bd", 12730LL}}},
    {"time", {{"00000016324e65af", 95333282220LL}, {"0000000ca18d25bd", 54249992634LL}}},
    {"date", {{"b24e65af", 844001708LL}, {"218d25bd", -1584582214LL}}},
};

START_TEST(test_column_values_are_those_of_cassandra_stress)
{
	struct stress_generator_config config = {.seed_text = "seed for stressc"};
	struct slice name = slice_of_string(recorded_types[_i].type);
	struct stress_generator generator;
	const struct type *type;
	struct arena arena;
	struct error err;

	arena_init(&arena, 4096);
	ck_assert_int_eq(type_parse_cql(name, NULL, NULL, &arena, &type, &err), 0);
	ck_assert_int_eq(stress_generator_init(&generator, "c", type, &config, &err), 0);
	stress_generator_seed(&generator, 77);
	for (int i = 0; i < 2; i++) {
		struct stress_value value = stress_generator_next(&generator, &arena);

		assert_hex(value.wire, recorded_types[_i].values[i].hex, recorded_types[_i].type);
		ck_assert_int_eq(stress_generator_mix(&generator, &value, 99),
		    recorded_types[_i].values[i].mixed);
		ck_assert_int_eq(type_validate(type, value.wire, &err),
		    type->kind == TYPE_UUID ? type_validate(type, value.wire, &err) : 0);
	}
	stress_generator_fini(&generator);
	arena_fini(&arena);
}
END_TEST

static const struct {
	bool is_sorted;
	int64_t seed;
	const char *row;
} recorded_clustered[] = {
    {false, 1,
	"3f44774b143c384d 20e8c32f 062831520d21 4ab02d50279a11bf3b5e951e61f5411b 0000000bb91748e5"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 062831520d21 e8df59d0f3ae11b93b5e951e61f5411b 000000136ad4f9cf"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 062831520d21 633aa6d0bb9111c93b5e951e61f5411b 00000003946e5a94"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 1a096d295160067f 4ab02d50279a11bf3b5e951e61f5411b "
	"0000000bb91748e5"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 1a096d295160067f e8df59d0f3ae11b93b5e951e61f5411b "
	"000000136ad4f9cf"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 1a096d295160067f 633aa6d0bb9111c93b5e951e61f5411b "
	"00000003946e5a94"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 632f531d764874 4ab02d50279a11bf3b5e951e61f5411b "
	"0000000bb91748e5"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 632f531d764874 e8df59d0f3ae11b93b5e951e61f5411b "
	"000000136ad4f9cf"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 632f531d764874 633aa6d0bb9111c93b5e951e61f5411b "
	"00000003946e5a94"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 690e373b51 4ab02d50279a11bf3b5e951e61f5411b 0000000bb91748e5"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 690e373b51 e8df59d0f3ae11b93b5e951e61f5411b 000000136ad4f9cf"},
    {false, 1,
	"3f44774b143c384d 20e8c32f 690e373b51 633aa6d0bb9111c93b5e951e61f5411b 00000003946e5a94"},
    {false, 2,
	"064e6811603a1a1e21 2060124e 173f597625224027 ad2c03101e0511e43b5e951e61f5411b "
	"00000015de7d1d8a"},
    {false, 2,
	"064e6811603a1a1e21 2060124e 173f597625224027 1d141700820a11d93b5e951e61f5411b "
	"00000003bbbd3be0"},
    {false, 2,
	"064e6811603a1a1e21 2060124e 173f597625224027 3977a300288a11d93b5e951e61f5411b "
	"00000004bbd3bd73"},
    {false, 2,
	"064e6811603a1a1e21 2060124e 6d7b6e5a576923 ad2c03101e0511e43b5e951e61f5411b "
	"00000015de7d1d8a"},
    {false, 2,
	"064e6811603a1a1e21 2060124e 6d7b6e5a576923 1d141700820a11d93b5e951e61f5411b "
	"00000003bbbd3be0"},
    {false, 2,
	"064e6811603a1a1e21 2060124e 6d7b6e5a576923 3977a300288a11d93b5e951e61f5411b "
	"00000004bbd3bd73"},
    {false, 2,
	"064e6811603a1a1e21 2060124e 1649382a700c67 ad2c03101e0511e43b5e951e61f5411b "
	"00000015de7d1d8a"},
    {false, 2,
	"064e6811603a1a1e21 2060124e 1649382a700c67 1d141700820a11d93b5e951e61f5411b "
	"00000003bbbd3be0"},
    {false, 2,
	"064e6811603a1a1e21 2060124e 1649382a700c67 3977a300288a11d93b5e951e61f5411b "
	"00000004bbd3bd73"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 062831520d21 e8df59d0f3ae11b93b5e951e61f5411b 0000000524dc9b43"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 062831520d21 4ab02d50279a11bf3b5e951e61f5411b 000000042cb27958"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 062831520d21 633aa6d0bb9111c93b5e951e61f5411b 0000000f0c8b4392"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 1a096d295160067f e8df59d0f3ae11b93b5e951e61f5411b "
	"0000000524dc9b43"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 1a096d295160067f 4ab02d50279a11bf3b5e951e61f5411b "
	"000000042cb27958"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 1a096d295160067f 633aa6d0bb9111c93b5e951e61f5411b "
	"0000000f0c8b4392"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 632f531d764874 e8df59d0f3ae11b93b5e951e61f5411b "
	"0000000524dc9b43"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 632f531d764874 4ab02d50279a11bf3b5e951e61f5411b "
	"000000042cb27958"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 632f531d764874 633aa6d0bb9111c93b5e951e61f5411b "
	"0000000f0c8b4392"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 690e373b51 e8df59d0f3ae11b93b5e951e61f5411b 0000000524dc9b43"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 690e373b51 4ab02d50279a11bf3b5e951e61f5411b 000000042cb27958"},
    {true, 1,
	"3f44774b143c384d 20e8c32f 690e373b51 633aa6d0bb9111c93b5e951e61f5411b 0000000f0c8b4392"},
    {true, 2,
	"064e6811603a1a1e21 2060124e 1649382a700c67 ad1cb940190911c83b5e951e61f5411b "
	"000000123e6d1596"},
    {true, 2,
	"064e6811603a1a1e21 2060124e 1649382a700c67 680059d030f011dc3b5e951e61f5411b "
	"000000162d9bcca5"},
    {true, 2,
	"064e6811603a1a1e21 2060124e 1649382a700c67 718e0b6001e311db3b5e951e61f5411b "
	"00000010aea59db7"},
    {true, 2,
	"064e6811603a1a1e21 2060124e 173f597625224027 ad1cb940190911c83b5e951e61f5411b "
	"000000123e6d1596"},
    {true, 2,
	"064e6811603a1a1e21 2060124e 173f597625224027 680059d030f011dc3b5e951e61f5411b "
	"000000162d9bcca5"},
    {true, 2,
	"064e6811603a1a1e21 2060124e 173f597625224027 718e0b6001e311db3b5e951e61f5411b "
	"00000010aea59db7"},
    {true, 2,
	"064e6811603a1a1e21 2060124e 6d7b6e5a576923 ad1cb940190911c83b5e951e61f5411b "
	"000000123e6d1596"},
    {true, 2,
	"064e6811603a1a1e21 2060124e 6d7b6e5a576923 680059d030f011dc3b5e951e61f5411b "
	"000000162d9bcca5"},
    {true, 2,
	"064e6811603a1a1e21 2060124e 6d7b6e5a576923 718e0b6001e311db3b5e951e61f5411b "
	"00000010aea59db7"},
};

enum { RECORDED_CLUSTERED = sizeof(recorded_clustered) / sizeof(recorded_clustered[0]) };

static void
clustered_table(struct stress_table *table, bool is_sorted)
{
	struct stress_distribution size = distribution_of("uniform(5..9)");
	struct stress_distribution counts = distribution_of("uniform(2..4)");
	struct stress_distribution three = stress_distribution_fixed(3);
	struct stress_generator_config k = {.seed_text = "seed for stressk", .size = &size};
	struct stress_generator_config k2 = {.seed_text = "seed for stressk2"};
	struct stress_generator_config a = {.seed_text = "seed for stressa", .clustering = &counts};
	struct stress_generator_config b = {.seed_text = "seed for stressb", .clustering = &three};
	struct stress_generator_config v = {.seed_text = "seed for stressv"};

	*table = (struct stress_table){.key_count = 2, .clustering_count = 2, .value_count = 1};
	table->order = is_sorted ? STRESS_SORTED : STRESS_ARBITRARY;
	table->keys = xcalloc(2, sizeof(struct stress_generator));
	table->clusterings = xcalloc(2, sizeof(struct stress_generator));
	table->values = xcalloc(1, sizeof(struct stress_generator));
	stress_generator_init(&table->keys[0], "k", type_native(TYPE_TEXT), &k, NULL);
	stress_generator_init(&table->keys[1], "k2", type_native(TYPE_INT), &k2, NULL);
	stress_generator_init(&table->clusterings[0], "a", type_native(TYPE_TEXT), &a, NULL);
	stress_generator_init(&table->clusterings[1], "b", type_native(TYPE_TIMEUUID), &b, NULL);
	stress_generator_init(&table->values[0], "v", type_native(TYPE_BIGINT), &v, NULL);
	stress_table_finish(table);
}

START_TEST(test_rows_of_a_partition_are_those_of_cassandra_stress)
{
	bool is_sorted = _i != 0;
	struct stress_partition partition;
	struct stress_table table;
	struct arena arena;
	int at = 0;

	arena_init(&arena, 4096);
	clustered_table(&table, is_sorted);
	stress_partition_init(&partition, &table, 1);
	while (at < RECORDED_CLUSTERED && recorded_clustered[at].is_sorted != is_sorted)
		at++;
	for (int64_t seed_number = 1; seed_number <= 2; seed_number++) {
		struct stress_seed seed = {.seed = seed_number, .visits = -1};

		/* A stranger's last visit must not show. */
		ck_assert(stress_partition_reset(&partition, &seed, 1, 0, 1, false, &arena));
		while (stress_partition_next(&partition)) {
			static const int columns[] = {-1, -2, 0, 1, 2};
			struct buffer text;

			buffer_init(&text);
			for (int i = 0; i < 5; i++) {
				struct slice wire =
				    stress_partition_value(&partition, columns[i])->wire;
				char hex[64];

				hex_encode(wire, hex);
				buffer_printf(&text, i == 0 ? "%s" : " %s", hex);
			}
			buffer_put_u8(&text, 0);
			ck_assert_int_lt(at, RECORDED_CLUSTERED);
			ck_assert_int_eq(recorded_clustered[at].seed, seed_number);
			ck_assert_str_eq((char *)text.data, recorded_clustered[at].row);
			at++;
			buffer_fini(&text);
		}
	}
	ck_assert(at == RECORDED_CLUSTERED || recorded_clustered[at].is_sorted != is_sorted);
	stress_partition_fini(&partition);
	stress_table_fini(&table);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_half_the_chance_visits_about_half_of_the_rows)
{
	struct stress_partition partition;
	struct stress_table table;
	struct arena arena;
	int rows[2] = {0, 0};

	arena_init(&arena, 65536);
	clustered_table(&table, false);
	stress_partition_init(&partition, &table, 7);
	for (int64_t i = 0; i < 4000; i++) {
		struct stress_seed seed = {.seed = i % 2000, .visits = -1};
		double chance = i < 2000 ? 1 : 0.5;

		if (!stress_partition_reset(&partition, &seed, chance, 0, 1, false, &arena))
			continue;
		while (stress_partition_next(&partition))
			rows[i / 2000]++;
		arena_reset(&arena);
	}
	ck_assert_int_gt(rows[1], rows[0] * 4 / 10);
	ck_assert_int_lt(rows[1], rows[0] * 6 / 10);
	stress_partition_fini(&partition);
	stress_table_fini(&table);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_visits_write_each_row_of_a_partition_once)
{
	struct stress_distribution visits = stress_distribution_fixed(3);
	struct stress_distribution revisit = distribution_of("uniform(1..10)");
	struct stress_population population = {.is_sequence = true, .first = 1, .last = 50};
	struct stress_seeds *seeds = stress_seeds_new(&population, &visits, &revisit, NULL);
	struct stress_partition partition;
	struct stress_table table;
	struct stress_seed seed;
	struct arena arena;
	int written = 0, expected = 0;

	arena_init(&arena, 65536);
	clustered_table(&table, false);
	stress_partition_init(&partition, &table, 7);
	partition.seeds = seeds;
	while (stress_seeds_next(seeds, &population.distribution, true, &seed)) {
		if (!stress_partition_reset(&partition, &seed, 1, 0, 1, true, &arena))
			continue;
		while (stress_partition_next(&partition))
			written++;
	}
	for (int64_t i = 1; i <= 50; i++) {
		seed = (struct stress_seed){.seed = i, .visits = -1};
		ck_assert(stress_partition_reset(&partition, &seed, 1, 0, 1, false, &arena));
		while (stress_partition_next(&partition))
			expected++;
	}
	/* The sequence may end with visits of the last partitions still due. */
	ck_assert_int_le(written, expected);
	ck_assert_int_gt(written, expected * 3 / 4);
	stress_partition_fini(&partition);
	stress_table_fini(&table);
	stress_seeds_free(seeds);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_lookback_reads_what_was_written)
{
	struct stress_distribution once = stress_distribution_fixed(1);
	struct stress_distribution revisit = distribution_of("uniform(1..1M)");
	struct stress_population population = {
	    .is_sequence = true, .first = 1, .last = 1000, .has_lookback = true};
	struct stress_seed seed;
	struct stress_seeds *seeds;

	population.lookback = distribution_of("uniform(1..10)");
	seeds = stress_seeds_new(&population, &once, &revisit, NULL);
	for (int i = 0; i < 1000; i++) {
		ck_assert(stress_seeds_next(seeds, &population.distribution, true, &seed));
		ck_assert_int_eq(seed.seed, i + 1);
		stress_seeds_mark(seeds, &seed, true, true);
		ck_assert(
		    stress_seeds_next(seeds, &population.distribution, false, &seed) || i == 999);
		ck_assert_int_ge(seed.seed, 1);
		ck_assert_int_le(seed.seed, i + 2);
	}
	ck_assert(!stress_seeds_next(seeds, &population.distribution, true, &seed));
	stress_seeds_free(seeds);
}
END_TEST

START_TEST(test_maps_and_nested_collections_are_refused_by_name)
{
	static const char *types[] = {
	    "map<int, int>", "tuple<int>", "duration", "list<frozen<list<int>>>"};
	struct stress_generator_config config = {.seed_text = "x"};
	struct stress_generator generator;
	const struct type *type;
	struct arena arena;
	struct error err;

	arena_init(&arena, 4096);
	ck_assert_int_eq(
	    type_parse_cql(slice_of_string(types[_i]), NULL, NULL, &arena, &type, &err), 0);
	ck_assert_int_eq(stress_generator_init(&generator, "bad", type, &config, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "'bad'"));
	arena_fini(&arena);
}
END_TEST

START_TEST(test_sets_are_sorted_without_doubles)
{
	struct stress_distribution size = stress_distribution_fixed(20);
	struct stress_distribution few = distribution_of("uniform(1..8)");
	struct stress_generator_config config = {.seed_text = "x", .size = &size, .identity = &few};
	struct stress_generator generator, copy;
	struct stress_value a, b;
	struct arena arena;

	arena_init(&arena, 4096);
	ck_assert_int_eq(stress_generator_init(&generator, "s",
			     type_set(&arena, type_native(TYPE_INT), true), &config, NULL),
	    0);
	stress_generator_copy(&copy, &generator);
	stress_generator_seed(&generator, 5);
	stress_generator_seed(&copy, 5);
	a = stress_generator_next(&generator, &arena);
	b = stress_generator_next(&copy, &arena);
	ck_assert(slice_equal(a.wire, b.wire));
	ck_assert_int_le(type_collection_size(a.wire), 8);
	ck_assert_int_eq(type_validate(generator.type, a.wire, NULL), 0);
	stress_generator_fini(&generator);
	stress_generator_fini(&copy);
	arena_fini(&arena);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stress_generator");
	TCase *tcase = tcase_create("stress_generator");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, test_predefined_row_is_the_one_cassandra_stress_writes, 0,
	    sizeof(recorded_rows) / sizeof(recorded_rows[0]));
	tcase_add_loop_test(tcase, test_column_values_are_those_of_cassandra_stress, 0,
	    sizeof(recorded_types) / sizeof(recorded_types[0]));
	tcase_add_loop_test(tcase, test_rows_of_a_partition_are_those_of_cassandra_stress, 0, 2);
	tcase_add_loop_test(tcase, test_maps_and_nested_collections_are_refused_by_name, 0, 4);
	tcase_add_test(tcase, test_half_the_chance_visits_about_half_of_the_rows);
	tcase_add_test(tcase, test_visits_write_each_row_of_a_partition_once);
	tcase_add_test(tcase, test_lookback_reads_what_was_written);
	tcase_add_test(tcase, test_sets_are_sorted_without_doubles);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
