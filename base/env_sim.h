/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_ENV_SIM_H
#define HELENUS_BASE_ENV_SIM_H

/*
 * A simulated environment: a clock that stands until it is moved, chance from a seed, and a disk in
 * memory that is as unkind as POSIX allows. The same seed and the same calls give the same world.
 *
 * The disk keeps two states of each file and folder: what a process sees, and what would be there
 * after a power cut. file_sync() carries a file's bytes over, files_sync_folder() the names in a
 * folder; a synced file whose name was not synced is gone after a crash. env_sim_crash() decides by
 * the seed what else survives:
 *   - of the bytes that were not synced, each sector (512 bytes) keeps the old or gets the new
 *     content, and one in a few is torn in the middle; a file that grew may have any size between;
 *   - of the changes of names, a prefix in the order in which they were made (a journal).
 * A sync that fails (env_sim_fail()) loses the bytes it should have written even when a later one
 * succeeds, as on Linux.
 *
 * Relative paths begin at the root folder, which is there from the start. ".." is refused.
 * Any thread may use it; determinism is then the caller's matter.
 */
#include "base/env.h"

struct env_sim;

struct env_sim *env_sim_new(uint64_t seed);
void env_sim_free(struct env_sim *sim);
/* Borrowed: lives as long as the simulation; env_free() of it does nothing. */
struct env *env_sim_env(struct env_sim *sim);

/* ---- Time: begins at 2026-01-01T00:00:00Z ---- */

void env_sim_advance(struct env_sim *sim, uint64_t ns);
/* Move the wall clock alone, as NTP or an operator does. */
void env_sim_step_wall(struct env_sim *sim, int64_t us);

/* ---- Power cuts ---- */

/*
 * The power goes and comes back. Files that are open are dead: every call on them fails with EIO,
 * and they must still be closed. Afterwards what survived is all there is.
 */
void env_sim_crash(struct env_sim *sim);
/*
 * The process dies, the machine does not: files that are open are dead as after a power cut (and env_sim_crash_after()
 * is over), but nothing that was written is lost, until the power goes before it was synced.
 */
void env_sim_kill(struct env_sim *sim);
/* Calls so far that change the disk (write, truncate, sync, create, rename, link, unlink, ...). */
uint64_t env_sim_changes(struct env_sim *sim);
/*
 * Cut the power at the change after `count` more: that call and all that follow fail with EIO until
 * env_sim_crash() brings the power back. A loop over `count` crashes a program at each of its steps.
 */
void env_sim_crash_after(struct env_sim *sim, uint64_t count);
/* True when the power was cut so and has not come back yet. */
bool env_sim_is_down(struct env_sim *sim);

/* ---- Faults ---- */

enum env_sim_call {
	ENV_SIM_OPEN,
	ENV_SIM_READ,
	ENV_SIM_WRITE, /* writes, truncation, reservation */
	ENV_SIM_SYNC, /* of files and folders */
	ENV_SIM_NAME, /* rename, link, unlink, mkdir, rmdir */
	ENV_SIM_CALLS
};

/*
 * Of the calls of a kind whose path holds `path_part` ("" is any), let `skip` pass, then fail `count`
 * of them with `sys_errno` (EIO, ENOSPC, ...). A failing write has written a part of its bytes. One
 * fault for each kind; a new one replaces the old one, count 0 ends it.
 */
void env_sim_fail(struct env_sim *sim, enum env_sim_call call, const char *path_part, uint64_t skip,
    uint64_t count, int sys_errno);
/* Size of the disk in bytes of file content; what does not fit gets ENOSPC. UINT64_MAX at first. */
void env_sim_set_space(struct env_sim *sim, uint64_t bytes);
/* Flip one bit in both states of a file. -1 when there is no such file or offset. */
int env_sim_flip_bit(struct env_sim *sim, const char *path, uint64_t offset, unsigned bit);
/* The next number of the simulation's chance, below `bound` (> 0): for tests that need their own. */
uint64_t env_sim_chance(struct env_sim *sim, uint64_t bound);

#endif
