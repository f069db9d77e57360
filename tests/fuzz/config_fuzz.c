/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration reader on any bytes. */
#include <stdint.h>

#include "base/log.h"
#include "server/config.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config;
	struct error err;

	log_set_level("ROOT", LOG_OFF);
	config_init(&config);
	if (config_read_text(&config, "fuzz", slice_of(data, size), &err) == 0)
		(void)config_finish(&config, &err);
	config_fini(&config);
	return 0;
}
