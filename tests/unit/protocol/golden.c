/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include "base/alloc.h"

/* Golden bytes live as long as the test program; the chain keeps them from counting as leaks. */
struct golden_bytes {
	struct golden_bytes *next;
	uint8_t bytes[];
};

static struct golden_bytes *golden_all;

struct slice
golden(const char *text)
{
	struct golden_bytes *kept = xmalloc(sizeof(*kept) + strlen(text) + 1);
	uint8_t *bytes = kept->bytes;
	size_t size = 0;
	int digits = 0;

	kept->next = golden_all;
	golden_all = kept;
	while (*text != '\0') {
		if (*text == '\'') {
			for (text++; *text != '\''; text++)
				bytes[size++] = (uint8_t)*text;
		} else if (!isspace((unsigned char)*text)) {
			int digit =
			    isdigit((unsigned char)*text) ? *text - '0' : (*text | 32) - 'a' + 10;

			if (digits++ % 2 == 0)
				bytes[size++] = (uint8_t)(digit << 4);
			else
				bytes[size - 1] |= (uint8_t)digit;
		}
		text++;
	}
	ck_assert_int_eq(digits % 2, 0);
	return slice_of(bytes, size);
}

void
golden_check(struct slice actual, const char *expected)
{
	struct slice wanted = golden(expected);
	char *a, *b;

	if (slice_equal(actual, wanted))
		return;
	a = xmalloc(actual.size * 2 + 1);
	b = xmalloc(wanted.size * 2 + 1);
	hex_encode(actual, a);
	hex_encode(wanted, b);
	ck_abort_msg("\n got %s\nwant %s", a, b);
}
