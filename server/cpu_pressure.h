/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_CPU_PRESSURE_H
#define HELENUS_SERVER_CPU_PRESSURE_H

/*
 * Does a thread wait for a core that others have? By its run delay: how long the kernel has kept it waiting while it
 * could run (second number of /proc/thread-self/schedstat; Documentation/scheduler/sched-stats.rst of Linux). Whoever can
 * hand work to another thread gains nothing by it then: the other one waits for the same cores, and the switches of threads cost.
 */
#include <stdbool.h>
#include <stdint.h>

struct cpu_pressure {
	int fd; /* owned; -1: the kernel does not tell */
	uint64_t looked_ns, high_until_ns;
	uint64_t run_ns, wait_ns; /* at the last look, since the thread began */
};

/* On the thread that it is about. */
void cpu_pressure_init(struct cpu_pressure *pressure);
/* Any thread, when the one that it is about does not use it any more. */
void cpu_pressure_fini(struct cpu_pressure *pressure);
/* Looks ten times a second at most; a high pressure is told of for two seconds more. On the thread that it is about. */
bool cpu_pressure_is_high(struct cpu_pressure *pressure, uint64_t now_ns);
/* What a look has found: time since the thread began that it ran, and that it waited. */
void cpu_pressure_note(
    struct cpu_pressure *pressure, uint64_t now_ns, uint64_t run_ns, uint64_t wait_ns);

#endif
