/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_UNFILTERED_HELD_H
#define HELENUS_STORAGE_UNFILTERED_HELD_H

/*
 * A stream that is looked into before it is handed on: the items up to its first row are taken, then given again.
 * For streams of one row (read_command_is_one_row()) whose items stay until the arena goes.
 */
#include "storage/unfiltered.h"

/* Before the row stands a marker where a range began, and seldom one more at the bound of the slice. Where there are
 * others the row is not looked for. */
enum { UNFILTERED_HELD_MAX = 3 };

struct unfiltered_held {
	struct unfiltered_iterator base;
	struct unfiltered_iterator *source; /* owned */
	struct unfiltered items[UNFILTERED_HELD_MAX];
	uint32_t count, at; /* taken, and how many of them were given again */
	struct row *row; /* the last of the items, which may be changed; NULL: there is none */
	bool is_cut; /* nothing comes after the items */
};

/*
 * *source becomes (*held)->base, which gives everything. It owns the one that was there, also after a failure, unless
 * that was one of memory: then *source is as it was.
 */
int unfiltered_hold_row(struct unfiltered_iterator **source, struct arena *arena,
    struct unfiltered_held **held, struct error *err);

/* Leave out all markers, of a stream that has a row. */
void unfiltered_held_drop_markers(struct unfiltered_held *held);

#endif
