/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sim_disk.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "base/alloc.h"

/* ---- Chance ---- */

/* splitmix64: any seed is good, and the state is one word. */
static uint64_t
sim_disk_next(struct sim_disk *disk)
{
	uint64_t value = disk->chance += 0x9e3779b97f4a7c15ull;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	return value ^ value >> 31;
}

uint64_t
sim_disk_below(struct sim_disk *disk, uint64_t bound)
{
	return sim_disk_next(disk) % bound;
}

/* ---- Bytes and nodes ---- */

static void
sim_disk_bytes_resize(struct sim_bytes *bytes, size_t size)
{
	if (size > bytes->capacity) {
		size_t capacity = bytes->capacity * 2 > size ? bytes->capacity * 2 : size;

		bytes->data = xrealloc(bytes->data, capacity);
		memset(bytes->data + bytes->capacity, 0, capacity - bytes->capacity);
		bytes->capacity = capacity;
	}
	if (size < bytes->size)
		memset(bytes->data + size, 0, bytes->size - size);
	bytes->size = size;
}

static void sim_disk_folder_fini(struct sim_disk *disk, struct sim_folder *folder);

struct sim_node *
sim_disk_node_new(struct sim_disk *disk, enum file_kind kind)
{
	struct sim_node *node = xzalloc(sizeof(*node));

	node->refs = 1;
	node->kind = kind;
	node->modified_us = disk->wall_us;
	return node;
}

struct sim_node *
sim_disk_node_ref(struct sim_node *node)
{
	node->refs++;
	return node;
}

void
sim_disk_node_unref(struct sim_disk *disk, struct sim_node *node)
{
	if (node == NULL || --node->refs > 0)
		return;
	disk->used -= node->now.size;
	sim_disk_folder_fini(disk, &node->names_now);
	sim_disk_folder_fini(disk, &node->names_durable);
	free(node->now.data);
	free(node->durable.data);
	free(node);
}

struct sim_entry *
sim_disk_folder_find(struct sim_folder *folder, const char *name)
{
	for (size_t i = 0; i < folder->count; i++) {
		if (strcmp(folder->entries[i].name, name) == 0)
			return &folder->entries[i];
	}
	return NULL;
}

static void
sim_disk_folder_remove(struct sim_disk *disk, struct sim_folder *folder, const char *name)
{
	struct sim_entry *entry = sim_disk_folder_find(folder, name);
	struct sim_node *node;

	if (entry == NULL)
		return;
	node = entry->node;
	free(entry->name);
	*entry = folder->entries[--folder->count];
	sim_disk_node_unref(disk, node);
}

static void
sim_disk_folder_put(
    struct sim_disk *disk, struct sim_folder *folder, const char *name, struct sim_node *node)
{
	sim_disk_node_ref(node);
	sim_disk_folder_remove(disk, folder, name);
	folder->entries = xrealloc(folder->entries, (folder->count + 1) * sizeof(*folder->entries));
	folder->entries[folder->count++] = (struct sim_entry){xstrdup(name), node};
}

static void
sim_disk_folder_fini(struct sim_disk *disk, struct sim_folder *folder)
{
	while (folder->count > 0)
		sim_disk_folder_remove(disk, folder, folder->entries[0].name);
	free(folder->entries);
	*folder = (struct sim_folder){0};
}

/* ---- Paths ---- */

/* Cut the next part off a path into `name`; 0 at the end, 1 for a part, -1 and errno. */
static int
sim_disk_path_next(const char **path, char name[SIM_NAME_MAX + 1])
{
	size_t length;

	while (**path == '/' || (**path == '.' && ((*path)[1] == '/' || (*path)[1] == '\0')))
		(*path)++;
	length = strcspn(*path, "/");
	if (length == 0)
		return 0;
	if (length > SIM_NAME_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(name, *path, length);
	name[length] = '\0';
	*path += length;
	if (strcmp(name, "..") == 0) {
		errno = EINVAL;
		return -1;
	}
	return 1;
}

int
sim_disk_walk(struct sim_disk *disk, const char *path, struct sim_node **folder,
    char name[SIM_NAME_MAX + 1], struct sim_node **node)
{
	char next[SIM_NAME_MAX + 1];
	int rc;

	*folder = NULL;
	*node = disk->root;
	while ((rc = sim_disk_path_next(&path, next)) > 0) {
		struct sim_entry *entry;

		if (*node == NULL || (*node)->kind != FILE_FOLDER) {
			errno = *node == NULL ? ENOENT : ENOTDIR;
			return -1;
		}
		*folder = *node;
		entry = sim_disk_folder_find(&(*folder)->names_now, next);
		*node = entry != NULL ? entry->node : NULL;
		memcpy(name, next, sizeof(next));
	}
	return rc;
}

struct sim_node *
sim_disk_find_folder(struct sim_disk *disk, const char *path, int *sys_errno)
{
	char name[SIM_NAME_MAX + 1];
	struct sim_node *folder;
	struct sim_node *node;

	if (sim_disk_walk(disk, path, &folder, name, &node) != 0) {
		*sys_errno = errno;
		return NULL;
	}
	if (node == NULL || node->kind != FILE_FOLDER) {
		*sys_errno = node == NULL ? ENOENT : ENOTDIR;
		return NULL;
	}
	return node;
}

/* ---- Changes of names ---- */

static void
sim_disk_change_free(struct sim_disk *disk, struct sim_change *change)
{
	sim_disk_node_unref(disk, change->from_folder);
	sim_disk_node_unref(disk, change->to_folder);
	sim_disk_node_unref(disk, change->node);
	free(change->from_name);
	free(change->to_name);
	free(change);
}

static void
sim_disk_change_settle(struct sim_disk *disk, struct sim_change *change)
{
	if (change->from_folder != NULL)
		sim_disk_folder_remove(
		    disk, &change->from_folder->names_durable, change->from_name);
	if (change->to_folder != NULL)
		sim_disk_folder_put(
		    disk, &change->to_folder->names_durable, change->to_name, change->node);
}

void
sim_disk_change(struct sim_disk *disk, struct sim_node *from_folder, const char *from_name,
    struct sim_node *to_folder, const char *to_name, struct sim_node *node)
{
	struct sim_change *change = xzalloc(sizeof(*change));
	struct sim_entry *old;

	if (node != NULL)
		change->node = sim_disk_node_ref(node);
	if (from_folder != NULL) {
		change->from_folder = sim_disk_node_ref(from_folder);
		change->from_name = xstrdup(from_name);
		old = sim_disk_folder_find(&from_folder->names_now, from_name);
		old->node->links--;
		sim_disk_folder_remove(disk, &from_folder->names_now, from_name);
		from_folder->modified_us = disk->wall_us;
	}
	if (to_folder != NULL) {
		change->to_folder = sim_disk_node_ref(to_folder);
		change->to_name = xstrdup(to_name);
		old = sim_disk_folder_find(&to_folder->names_now, to_name);
		if (old != NULL)
			old->node->links--;
		assert(node != NULL); /* what gets a name is there */
		node->links++;
		sim_disk_folder_put(disk, &to_folder->names_now, to_name, node);
		to_folder->modified_us = disk->wall_us;
	}
	*disk->changes_end = change;
	disk->changes_end = &change->next;
}

void
sim_disk_settle_folder(struct sim_disk *disk, struct sim_node *folder)
{
	struct sim_change **link = &disk->changes;
	struct sim_change *change;

	while ((change = *link) != NULL) {
		if (change->from_folder != folder && change->to_folder != folder) {
			link = &change->next;
			continue;
		}
		sim_disk_change_settle(disk, change);
		*link = change->next;
		sim_disk_change_free(disk, change);
	}
	disk->changes_end = link;
}

static void
sim_disk_mark_dirty(struct sim_node *node, size_t from, size_t to)
{
	bool is_clean = node->dirty_from >= node->dirty_to;

	if (is_clean || from < node->dirty_from)
		node->dirty_from = from;
	if (is_clean || to > node->dirty_to)
		node->dirty_to = to;
}

int
sim_disk_put(struct sim_disk *disk, struct sim_node *node, struct slice slice, uint64_t offset)
{
	uint64_t end = offset + slice.size;
	size_t size = slice.size;
	int sys_errno = 0;

	if (end > node->now.size) {
		uint64_t room = sim_disk_room(disk);
		uint64_t more = end - node->now.size;

		if (more > room) {
			sys_errno = ENOSPC;
			if (node->now.size + room <= offset)
				return sys_errno;
			size = (size_t)(node->now.size + room - offset);
			end = offset + size;
		}
		if (end > node->now.size) {
			disk->used += end - node->now.size;
			sim_disk_mark_dirty(node, node->now.size, (size_t)end);
			sim_disk_bytes_resize(&node->now, (size_t)end);
		}
	}
	if (size > 0) {
		memcpy(node->now.data + offset, slice.data, size);
		sim_disk_mark_dirty(node, (size_t)offset, (size_t)end);
	}
	return sys_errno;
}

uint64_t
sim_disk_room(const struct sim_disk *disk)
{
	return disk->space > disk->used ? disk->space - disk->used : 0;
}

void
sim_disk_truncate(struct sim_disk *disk, struct sim_node *node, size_t size)
{
	size_t old = node->now.size;

	sim_disk_mark_dirty(node, old < size ? old : size, old > size ? old : size);
	disk->used = disk->used - old + size;
	sim_disk_bytes_resize(&node->now, size);
	node->modified_us = disk->wall_us;
}

void
sim_disk_carry_over(struct sim_node *node)
{
	size_t from = node->dirty_from;
	size_t to = node->dirty_to < node->now.size ? node->dirty_to : node->now.size;

	sim_disk_bytes_resize(&node->durable, node->now.size);
	if (from < to)
		memcpy(node->durable.data + from, node->now.data + from, to - from);
	node->dirty_from = node->dirty_to = 0;
}

/* ---- The power cut ---- */

/*
 * 1. The size is the durable one, the one that was seen, or one between.
 * 2. Each sector of the dirty run has the old bytes, the new ones, or (one in eight) new bytes up to
 *    a point and old ones after it. Where there was nothing, "old" is zeros.
 */
static void
sim_disk_crash_file(struct sim_disk *disk, struct sim_node *node)
{
	size_t low = node->now.size < node->durable.size ? node->now.size : node->durable.size;
	size_t high = node->now.size > node->durable.size ? node->now.size : node->durable.size;
	size_t size = node->durable.size;
	size_t end = node->dirty_to < node->now.size ? node->dirty_to : node->now.size;

	if (node->dirty_from < node->dirty_to) {
		uint64_t choice = sim_disk_below(disk, 3);

		if (choice == 0)
			size = node->now.size;
		else if (choice == 1)
			size = low + (size_t)sim_disk_below(disk, high - low + 1);
	}
	sim_disk_bytes_resize(&node->durable, size);
	for (size_t at = node->dirty_from; at < end && at < size;) {
		size_t stop = (at / SIM_SECTOR + 1) * SIM_SECTOR;
		size_t length = (stop < end ? stop : end) - at;

		length = length < size - at ? length : size - at;
		switch (sim_disk_below(disk, 8)) {
		case 0: /* torn */
			memcpy(node->durable.data + at, node->now.data + at,
			    (size_t)sim_disk_below(disk, length + 1));
			break;
		case 1:
		case 2:
		case 3:
		case 4: /* written */
			memcpy(node->durable.data + at, node->now.data + at, length);
			break;
		default: /* not written */
			break;
		}
		at += length;
	}
	node->dirty_from = node->dirty_to = 0;
	disk->used = disk->used - node->now.size + node->durable.size;
	sim_disk_bytes_resize(&node->now, size);
	if (size > 0)
		memcpy(node->now.data, node->durable.data, size);
}

/* Every node below `folder` as the power cut leaves it. A file with two names is met twice and has
 * nothing left to lose the second time. */
static void
sim_disk_crash_folder(struct sim_disk *disk, struct sim_node *folder)
{
	struct sim_folder *durable = &folder->names_durable;

	sim_disk_folder_fini(disk, &folder->names_now);
	for (size_t i = 0; i < durable->count; i++) {
		struct sim_node *node = durable->entries[i].node;

		sim_disk_folder_put(disk, &folder->names_now, durable->entries[i].name, node);
		if (node->kind == FILE_FOLDER)
			sim_disk_crash_folder(disk, node);
		else
			sim_disk_crash_file(disk, node);
	}
}

static void
sim_disk_count_links(struct sim_node *folder, bool is_counting)
{
	for (size_t i = 0; i < folder->names_now.count; i++) {
		struct sim_node *node = folder->names_now.entries[i].node;

		node->links = is_counting ? node->links + 1 : 0;
		if (node->kind == FILE_FOLDER)
			sim_disk_count_links(node, is_counting);
	}
}

/*
 * 1. Of the changes of names, a prefix.
 * 2. Of each file that is left, what sim_disk_crash_file() decides.
 */
void
sim_disk_crash(struct sim_disk *disk)
{
	struct sim_change *change;
	uint64_t count = 0;
	uint64_t kept;

	for (change = disk->changes; change != NULL; change = change->next)
		count++;
	kept = sim_disk_below(disk, count + 1);
	while ((change = disk->changes) != NULL) {
		disk->changes = change->next;
		if (kept > 0) {
			sim_disk_change_settle(disk, change);
			kept--;
		}
		sim_disk_change_free(disk, change);
	}
	disk->changes_end = &disk->changes;
	sim_disk_crash_folder(disk, disk->root);
	sim_disk_count_links(disk->root, false);
	sim_disk_count_links(disk->root, true);
}

/* ---- Life ---- */

void
sim_disk_init(struct sim_disk *disk, uint64_t seed, int64_t wall_us)
{
	*disk = (struct sim_disk){.chance = seed, .wall_us = wall_us, .space = UINT64_MAX};
	disk->root = sim_disk_node_new(disk, FILE_FOLDER);
	disk->changes_end = &disk->changes;
}

void
sim_disk_fini(struct sim_disk *disk)
{
	struct sim_change *change;

	while ((change = disk->changes) != NULL) {
		disk->changes = change->next;
		sim_disk_change_free(disk, change);
	}
	sim_disk_node_unref(disk, disk->root);
}
