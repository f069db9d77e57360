/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32 of zlib's polynomial, by carry-less multiplication where the processor has it. Commit log
 * records and frames are a few hundred bytes long, which zlib's table code takes several times as
 * long for; every other size and processor is left to zlib.
 *
 * The bytes are a polynomial over GF(2), reflected. A block of 128 bits that stands n bits before
 * another is worth the same as its product with x^n mod P added to that other one; the halves of a
 * block are multiplied apart:
 *
 *   1. The running CRC is added to the first four bytes.
 *   2. Four blocks at a time are folded into the four that follow, 512 bits on.
 *   3. The four, and then what follows block by block, are folded into one, 128 bits on.
 *   4. A rest of r < 16 bytes: the state's first r bytes A and other bytes B, with the rest D, are the
 *      two blocks [0 A] [B D], so it is one more fold.
 *   5. The last block is brought down to 64 bits, and those to 32 by Barrett's reduction.
 *
 * The method and its constants (powers of x modulo P, reflected) are in V. Gopal et al., "Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009.
 */
#include "base/hash.h"

#include <zlib.h>

#ifdef __x86_64__

#include <immintrin.h>

#define CRC32_TARGET __attribute__((target("pclmul,sse4.1")))

/* pshufb indexes that move a block by r bytes; an index with the high bit gives zero. */
static const uint8_t crc32_shifts[48] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
    0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80};

CRC32_TARGET static inline __m128i
crc32_load(const uint8_t *at)
{
	return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* `block` folded into `into`, as far on as the two powers in `powers` tell. */
CRC32_TARGET static inline __m128i
crc32_fold(__m128i block, __m128i into, __m128i powers)
{
	__m128i low = _mm_clmulepi64_si128(block, powers, 0x00);
	__m128i high = _mm_clmulepi64_si128(block, powers, 0x11);

	return _mm_xor_si128(_mm_xor_si128(low, high), into);
}

/* Step 5. */
CRC32_TARGET static uint32_t
crc32_reduce(__m128i state)
{
	const __m128i power_64 = _mm_set_epi64x(0, 0x163cd6124);
	const __m128i power_96 = _mm_set_epi64x(0, 0x0ccaa009e);
	const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
	const __m128i low_32 = _mm_set_epi32(0, 0, 0, -1);
	__m128i quotient;

	state =
	    _mm_xor_si128(_mm_srli_si128(state, 8), _mm_clmulepi64_si128(state, power_96, 0x00));
	state = _mm_xor_si128(_mm_srli_si128(state, 4),
	    _mm_clmulepi64_si128(_mm_and_si128(state, low_32), power_64, 0x00));
	quotient = _mm_clmulepi64_si128(_mm_and_si128(state, low_32), barrett, 0x10);
	quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32), barrett, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(state, quotient), 1);
}

/* `size` is 16 or more; `crc` is zlib's, complemented. */
CRC32_TARGET static uint32_t
crc32_multiply(uint32_t crc, const uint8_t *at, size_t size)
{
	const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
	const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
	__m128i state = _mm_xor_si128(crc32_load(at), _mm_cvtsi32_si128((int)crc));

	if (size >= 128) {
		__m128i second = crc32_load(at + 16);
		__m128i third = crc32_load(at + 32);
		__m128i fourth = crc32_load(at + 48);

		for (at += 64, size -= 64; size >= 64; at += 64, size -= 64) {
			state = crc32_fold(state, crc32_load(at), by_512);
			second = crc32_fold(second, crc32_load(at + 16), by_512);
			third = crc32_fold(third, crc32_load(at + 32), by_512);
			fourth = crc32_fold(fourth, crc32_load(at + 48), by_512);
		}
		state = crc32_fold(state, second, by_128);
		state = crc32_fold(state, third, by_128);
		state = crc32_fold(state, fourth, by_128);
	} else {
		at += 16;
		size -= 16;
	}
	for (; size >= 16; at += 16, size -= 16)
		state = crc32_fold(state, crc32_load(at), by_128);
	if (size > 0) {
		__m128i right = crc32_load(crc32_shifts + size);
		__m128i left = crc32_load(crc32_shifts + 16 + size);
		/* The 16 bytes that end where the data ends: their last `size` ones are D. */
		__m128i last = crc32_load(at + size - 16);
		__m128i following = _mm_blendv_epi8(last, _mm_shuffle_epi8(state, left), right);

		state = crc32_fold(_mm_shuffle_epi8(state, right), following, by_128);
	}
	return crc32_reduce(state);
}

/* x^(2^k) mod P, reflected; the 32nd would be the first again. */
static const uint32_t crc32_powers[32] = {0x40000000, 0x20000000, 0x08000000, 0x00800000,
    0x00008000, 0xedb88320, 0xb1e6b092, 0xa06a2517, 0xed627dae, 0x88d14467, 0xd7bbfe6a, 0xec447f11,
    0x8e7ea170, 0x6427800e, 0x4d47bae0, 0x09fe548f, 0x83852d0f, 0x30362f1a, 0x7b5a9cc3, 0x31fec169,
    0x9fec022a, 0x6c8dedc4, 0x15d6874d, 0x5fde7a4e, 0xbad90e37, 0x2e4e5eef, 0x4eaba214, 0xa8a472c0,
    0x429a969e, 0x148d302a, 0xc40ba6d0, 0xc4e22c3c};

/* a * b mod P: the product of two reflected values is one bit short, then Barrett's reduction. */
CRC32_TARGET static uint32_t
crc32_product(uint32_t a, uint32_t b)
{
	const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
	const __m128i low_32 = _mm_set_epi32(0, 0, 0, -1);
	__m128i product = _mm_slli_epi64(
	    _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0x00), 1);
	__m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(product, low_32), barrett, 0x10);

	quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32), barrett, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(product, quotient), 1);
}

/* The first CRC goes on over as many zeros as the second one's data is long. */
CRC32_TARGET static uint32_t
crc32_shift(uint32_t crc, size_t size)
{
	for (unsigned int k = 3; size != 0; k++, size >>= 1) {
		if ((size & 1) != 0)
			crc = crc32_product(crc32_powers[k & 31], crc);
	}
	return crc;
}

static int
crc32_can_multiply(void)
{
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

#endif

uint32_t
crc32_update(uint32_t crc, const void *data, size_t size)
{
#ifdef __x86_64__
	if (size >= 16 && crc32_can_multiply())
		return ~crc32_multiply(~crc, data, size);
#endif
	/* zlib takes NULL, which an empty slice may have, for a request to begin anew. */
	if (size == 0)
		return crc;
	return (uint32_t)crc32_z(crc, data, size);
}

uint32_t
crc32_join(uint32_t first, uint32_t second, size_t second_size)
{
#ifdef __x86_64__
	if (crc32_can_multiply())
		return crc32_shift(first, second_size) ^ second;
#endif
	return (uint32_t)crc32_combine(first, second, (z_off_t)second_size);
}
