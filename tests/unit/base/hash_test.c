/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <check.h>
#include <stdlib.h>

/* What Cassandra 4.1 answers to SELECT token(k) for a blob key. */
static const struct {
	const char *key;
	int64_t token;
} tokens[] = {
    {"00", 5048724184180415669ll},
    {"61", -8839064797231613815ll},
    {"ff", -4442228696663692417ll},
    {"807f", -7220871545656335056ll},
    {"a54dca", 4236996237384561951ll},
    {"182530bb1d", -1778990148826695204ll},
    {"6d132cded6237b", 3736655268023081895ll},
    {"2ed91e3f721fcb19", -1130677912619721627ll},
    {"71174494d6493c9d5c", 4255681398078853211ll},
    {"3460be31201e69fedaa0eee8", -9118951002497247277ll},
    {"b9997f5c7c2999fdafe593253cd654", 4470652910850984785ll},
    {"af4dfad71427a0aeb3fee9232f8af221", -767245525448641666ll},
    {"1f9ee491c5b10becb5563bfc1e6f93427e", 1279690607003838205ll},
    {"cbc8fe2955e5cd8e46dc8ed4b7c2764d2a5a4d767706f8", -8018358833031464970ll},
    {"5d8690024ad6bda3401be9c8cbccc935f6cd1f61226ae153", 5441397987481178969ll},
    {"38ae1a34004d33ba0d246ac04c81b1baf23e3bf9eef5f79f2b4934af87f552", -1547394304844863290ll},
    {"0b69b94b0d982e85bb55b672a872637acd7466fcb60e0e8ff18463b0e4b2ba29", 6111139368740859894ll},
    {"703474f064ac68f700f5b02b3dc666f45bdeaa2ccaedcd2b5157410e4dee4af2b3", -1371908771184369654ll},
    {"4f430a073447de636c0e806c957ba684d6431fb5ead7424d09e15d024c5848f23d1fa6f7361d7f618d1532e70e2"
     "0e2",
	-3767771096083888961ll},
    {"a6668de7f47e8467e546d53ec8e2a1257bdb256c9b3e4fbb498146ef7030cbf9537252dcceadd764b6a32fbb09a"
     "deae109c4a997203975352b878b145c8a42d8",
	-2207561941174625258ll},
    {"84cf4cfda72d8e1d5dd92589082d852a7122873ee805add58942167a385286195c679f9c6994e45b8ab10980120"
     "70961f37de436ddfdc99d6e75af6547cfb11b42072482dc531c2bc3907c9617eb5e5089e40186baa8a57d119e6f"
     "b65d00abc32af38e66",
	5610596561436529623ll},
    {"68656c6c6f", -3758069500696749310ll},
    {"4b617373616e64726120e1bc94cf87ceb5ceb920ceb4ceafcebaceb9cebf", -6502535341160496956ll},
    {"00000001", -4069959284402364209ll},
    {"ffffffffffffffff", 7071048584287372947ll},
};

enum { TOKENS = sizeof(tokens) / sizeof(tokens[0]) };

START_TEST(test_token_is_that_of_cassandra)
{
	uint8_t key[128];
	size_t length = strlen(tokens[_i].key);

	ck_assert_int_eq(hex_decode(tokens[_i].key, length, key), 0);
	ck_assert_int_eq(murmur3_token(slice_of(key, length / 2)), tokens[_i].token);
}
END_TEST

START_TEST(test_empty_key_has_the_least_token)
{
	ck_assert_int_eq(murmur3_token(slice_empty), INT64_MIN);
}
END_TEST

START_TEST(test_crc32_is_zlib_s_and_can_be_continued)
{
	uint32_t crc = crc32_update(0, "123456789", 9);

	ck_assert_uint_eq(crc, 0xcbf43926u);
	ck_assert_uint_eq(crc32_update(crc32_update(0, "1234", 4), "56789", 5), crc);
	ck_assert_uint_eq(crc32_update(0, "", 0), 0);
	ck_assert_uint_eq(crc32_update(crc, NULL, 0), crc);
}
END_TEST

/* Any way of splitting and any alignment gives what one bit at a time gives. */
START_TEST(test_crc32_agrees_with_the_plain_algorithm)
{
	uint8_t data[700];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + i / 7);
	for (size_t offset = 0; offset < 17; offset++) {
		for (size_t size = 0; size < 600; size += 1 + size / 16) {
			uint32_t plain = 0xffffffffu;

			for (size_t i = 0; i < size; i++) {
				plain ^= data[offset + i];
				for (int bit = 0; bit < 8; bit++)
					plain = plain >> 1 ^ (plain & 1 ? 0xedb88320u : 0);
			}
			plain = ~plain;
			ck_assert_uint_eq(crc32_update(0, data + offset, size), plain);
			ck_assert_uint_eq(crc32_update(crc32_update(0, data + offset, size / 3),
					      data + offset + size / 3, size - size / 3),
			    plain);
		}
	}
}
END_TEST

START_TEST(test_crc32_of_two_runs_is_joined_from_theirs)
{
	static uint8_t data[70000];
	uint32_t state = 1;

	for (size_t i = 0; i < sizeof(data); i++) {
		state = state * 1664525 + 1013904223;
		data[i] = (uint8_t)(state >> 24);
	}
	for (size_t size = 0; size < sizeof(data); size += 1 + size / 3) {
		for (size_t first = 0; first < sizeof(data) - size; first += 1 + first * 2) {
			uint32_t left = crc32_update(0, data, first);
			uint32_t right = crc32_update(0, data + first, size);

			ck_assert_uint_eq(
			    crc32_join(left, right, size), crc32_update(0, data, first + size));
		}
	}
}
END_TEST

/* The definition, one bit at a time. */
static uint32_t
crc24_plain(uint64_t value, size_t size)
{
	uint32_t crc = 0x875060;

	for (; size > 0; size--, value >>= 8) {
		crc ^= (uint32_t)(value & 0xff) << 16;
		for (int bit = 0; bit < 8; bit++) {
			crc <<= 1;
			if (crc & 0x1000000)
				crc ^= 0x1974f0b;
		}
	}
	return crc;
}

START_TEST(test_crc24_agrees_with_its_definition)
{
	uint64_t value = 0x0123456789abcdefull;

	for (size_t size = 1; size <= 8; size++) {
		for (int i = 0; i < 1000; i++) {
			value = value * 6364136223846793005ull + 1442695040888963407ull;
			ck_assert_uint_eq(crc24(value, size), crc24_plain(value, size));
		}
	}
	ck_assert_uint_eq(crc24(0, 3), crc24_plain(0, 3));
}
END_TEST

START_TEST(test_md5_is_md5)
{
	uint8_t digest[16];
	char hex[33];

	md5(slice_of_string("abc"), digest);
	hex_encode(slice_of(digest, 16), hex);
	ck_assert_str_eq(hex, "900150983cd24fb0d6963f7d28e17f72");
	md5(slice_empty, digest);
	hex_encode(slice_of(digest, 16), hex);
	ck_assert_str_eq(hex, "d41d8cd98f00b204e9800998ecf8427e");
}
END_TEST

START_TEST(test_hash_tells_zero_padding_apart)
{
	uint8_t zeros[32] = {0};

	for (size_t a = 0; a <= 32; a++) {
		for (size_t b = 0; b < a; b++)
			ck_assert_uint_ne(
			    hash_bytes(slice_of(zeros, a)), hash_bytes(slice_of(zeros, b)));
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("hash");
	TCase *tcase = tcase_create("hash");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, test_token_is_that_of_cassandra, 0, TOKENS);
	tcase_add_test(tcase, test_empty_key_has_the_least_token);
	tcase_add_test(tcase, test_crc32_is_zlib_s_and_can_be_continued);
	tcase_add_test(tcase, test_crc32_agrees_with_the_plain_algorithm);
	tcase_add_test(tcase, test_crc32_of_two_runs_is_joined_from_theirs);
	tcase_add_test(tcase, test_crc24_agrees_with_its_definition);
	tcase_add_test(tcase, test_md5_is_md5);
	tcase_add_test(tcase, test_hash_tells_zero_padding_apart);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
