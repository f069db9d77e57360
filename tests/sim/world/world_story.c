/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "tests/sim/world/world_internal.h"

static const char *const world_fates[] = {
    [FATE_SENT] = "sent",
    [FATE_LOST] = "LOST",
    [FATE_CUT] = "CUT",
    [FATE_REFUSED] = "REFUSED",
    [FATE_DELIVERED] = "arrived",
    [FATE_DOUBLED] = "DOUBLED",
    [FATE_NOTE] = "--",
};

void
world_story_add(struct world_story *story, const struct world_line *line)
{
	struct world_line *at = &story->lines[story->count++ % story->capacity];
	uint64_t facts[] = {story->digest, line->at_ns, line->id, line->fate, line->from, line->to,
	    line->size, line->verb};

	story->digest = hash_bytes(slice_of(facts, sizeof(facts)));
	free(at->note);
	*at = *line;
}

void
world_story_fini(struct world_story *story)
{
	for (uint32_t i = 0; i < story->capacity; i++)
		free(story->lines[i].note);
	free(story->lines);
}

void
world_note(struct world *world, const char *format, ...)
{
	struct world_line line = {.at_ns = world->now_ns, .fate = FATE_NOTE};
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&line.note, format, arguments) < 0)
		line.note = NULL;
	va_end(arguments);
	world_story_add(&world->story, &line);
}

void
world_tell(const struct world *world, FILE *out)
{
	const struct world_story *story = &world->story;
	uint64_t first = story->count > story->capacity ? story->count - story->capacity : 0;

	if (first > 0)
		fprintf(out, "... %" PRIu64 " lines before\n", first);
	for (uint64_t i = first; i < story->count; i++) {
		const struct world_line *line = &story->lines[i % story->capacity];

		fprintf(out, "%12.6f ", (double)line->at_ns / 1e9);
		if (line->fate == FATE_NOTE)
			fprintf(out, "-- %s\n", line->note == NULL ? "" : line->note);
		else
			fprintf(out,
			    "%3" PRIu32 " -> %-3" PRIu32 " %-20s id %-8" PRIu64 " %6" PRIu32
			    " bytes %s\n",
			    line->from, line->to, verb_name(line->verb), line->id, line->size,
			    world_fates[line->fate]);
	}
}

uint64_t
world_digest(const struct world *world)
{
	return world->story.digest;
}
