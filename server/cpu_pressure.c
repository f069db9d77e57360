/* SPDX-License-Identifier: Apache-2.0 */
#include "server/cpu_pressure.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define CPU_PRESSURE_LOOK_NS UINT64_C(100000000)
/* Long against the looks: without the work that it does itself a thread waits less, and would try again and again. */
#define CPU_PRESSURE_HOLD_NS UINT64_C(2000000000)
#define CPU_PRESSURE_BUSY_NS UINT64_C(10000000) /* a thread that hardly runs says little */

enum { CPU_PRESSURE_SHARE = 8 }; /* one in eight parts of the time that it could run */

void
cpu_pressure_init(struct cpu_pressure *pressure)
{
	*pressure =
	    (struct cpu_pressure){.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
}

void
cpu_pressure_fini(struct cpu_pressure *pressure)
{
	if (pressure->fd >= 0)
		close(pressure->fd);
	pressure->fd = -1;
}

void
cpu_pressure_note(struct cpu_pressure *pressure, uint64_t now_ns, uint64_t run_ns, uint64_t wait_ns)
{
	uint64_t waited = wait_ns - pressure->wait_ns;
	uint64_t wanted = waited + run_ns - pressure->run_ns;

	pressure->run_ns = run_ns;
	pressure->wait_ns = wait_ns;
	if (wanted >= CPU_PRESSURE_BUSY_NS && waited >= wanted / CPU_PRESSURE_SHARE)
		pressure->high_until_ns = now_ns + CPU_PRESSURE_HOLD_NS;
}

bool
cpu_pressure_is_high(struct cpu_pressure *pressure, uint64_t now_ns)
{
	char text[96];
	uint64_t run_ns, wait_ns;
	ssize_t size;

	if (pressure->fd >= 0 && now_ns - pressure->looked_ns >= CPU_PRESSURE_LOOK_NS) {
		pressure->looked_ns = now_ns;
		size = pread(pressure->fd, text, sizeof(text) - 1, 0);
		text[size > 0 ? size : 0] = '\0';
		if (sscanf(text, "%" SCNu64 " %" SCNu64, &run_ns, &wait_ns) == 2)
			cpu_pressure_note(pressure, now_ns, run_ns, wait_ns);
	}
	return now_ns < pressure->high_until_ns;
}
