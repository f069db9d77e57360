/* SPDX-License-Identifier: Apache-2.0 */
/* .properties files: whatever the text, what is told are strings and lines that rise. */
#include <assert.h>
#include <string.h>
#include "base/properties.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_properties {
	size_t bytes; /* of all keys and values */
	unsigned line;
};

static int
fuzz_property(void *argument, const char *key, const char *value, unsigned line, struct error *err)
{
	struct fuzz_properties *properties = argument;

	assert(line >= 1 && line >= properties->line);
	properties->line = line;
	properties->bytes += strlen(key) + strlen(value);
	return strcmp(key, "stop") == 0 ? error_set(err, ERROR_CONFIG, "%s", value) : 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_properties properties = {0, 0};
	struct error err;

	error_clear(&err);
	if (properties_parse(slice_of(data, size), "fuzz", fuzz_property, &properties, &err) != 0)
		assert(err.code == ERROR_CONFIG || err.code == ERROR_NO_MEMORY);
	/* \uXXXX is six bytes, and at most three of UTF-8. */
	assert(properties.bytes <= size);
	return 0;
}
