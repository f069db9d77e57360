/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_SIM_DISK_H
#define HELENUS_BASE_SIM_DISK_H

/*
 * The disk of the simulated environment: a tree of files and folders, each in two states, what a
 * process sees and what a power cut leaves. base/env_sim.h says how it behaves; this is env_sim.c's
 * own and nobody else's. No thread-safety: env_sim.c holds its lock around every call.
 */
#include "base/env.h"

enum {
	SIM_SECTOR = 512,
	SIM_NAME_MAX = 255,
};

/* A growable run of bytes; what lies between size and capacity is zero. */
struct sim_bytes {
	uint8_t *data;
	size_t size;
	size_t capacity;
};

struct sim_entry {
	char *name;
	struct sim_node *node; /* holds a reference */
};

struct sim_folder {
	struct sim_entry *entries;
	size_t count;
};

/* A file or a folder in both of its states. */
struct sim_node {
	int refs; /* one for each entry, pending change and open file; one of the root's owner */
	enum file_kind kind;
	uint32_t links; /* entries that a process sees */
	int64_t modified_us;

	struct sim_bytes now; /* what a process sees */
	struct sim_bytes durable; /* what a power cut leaves */
	size_t dirty_from; /* sectors of `now` that may differ; empty when from >= to */
	size_t dirty_to;

	struct sim_folder names_now;
	struct sim_folder names_durable;
};

/* A change of names that is not durable yet: one name goes, or comes, or both at once (a rename). */
struct sim_change {
	struct sim_change *next;
	struct sim_node *from_folder; /* NULL: nothing goes */
	char *from_name;
	struct sim_node *to_folder; /* NULL: nothing comes */
	char *to_name;
	struct sim_node *node; /* what comes */
};

struct sim_disk {
	uint64_t chance; /* state of the generator */
	int64_t wall_us; /* the clock that files are dated with */
	struct sim_node *root;
	struct sim_change *changes; /* oldest first */
	struct sim_change **changes_end;
	uint64_t space; /* bytes of file content that fit */
	uint64_t used;
};

void sim_disk_init(struct sim_disk *disk, uint64_t seed, int64_t wall_us);
void sim_disk_fini(struct sim_disk *disk);
/* Bytes of content that still fit. */
uint64_t sim_disk_room(const struct sim_disk *disk);
/* The next number of chance, below `bound` (> 0). */
uint64_t sim_disk_below(struct sim_disk *disk, uint64_t bound);

/* A node with one reference, the caller's. */
struct sim_node *sim_disk_node_new(struct sim_disk *disk, enum file_kind kind);
struct sim_node *sim_disk_node_ref(struct sim_node *node);
void sim_disk_node_unref(struct sim_disk *disk, struct sim_node *node);

/*
 * Walk to the folder that holds the last part of `path` and find what is there. *node is NULL when
 * nothing is. For the root itself *folder is NULL. -1 and errno when the way does not exist.
 */
int sim_disk_walk(struct sim_disk *disk, const char *path, struct sim_node **folder,
    char name[SIM_NAME_MAX + 1], struct sim_node **node);
/* The folder at `path`, or NULL with *sys_errno. */
struct sim_node *sim_disk_find_folder(struct sim_disk *disk, const char *path, int *sys_errno);

/*
 * Let the process see a change of names, and remember it until a folder is synced: a name goes
 * (from_folder), or `node` comes under a name (to_folder), or both.
 */
void sim_disk_change(struct sim_disk *disk, struct sim_node *from_folder, const char *from_name,
    struct sim_node *to_folder, const char *to_name, struct sim_node *node);
/* Make durable the pending changes that touch `folder`. */
void sim_disk_settle_folder(struct sim_disk *disk, struct sim_node *folder);

/* Write; 0 or ENOSPC, and then what fits is written. */
int sim_disk_put(struct sim_disk *disk, struct sim_node *node, struct slice slice, uint64_t offset);
void sim_disk_truncate(struct sim_disk *disk, struct sim_node *node, size_t size);
/* Sync: what a process sees of the file becomes durable. */
void sim_disk_carry_over(struct sim_node *node);
/* A power cut: chance decides what survives, and that is what a process sees afterwards. */
void sim_disk_crash(struct sim_disk *disk);

#endif
