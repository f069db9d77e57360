/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_SIM_LINEARIZABLE_H
#define HELENUS_TESTS_SIM_LINEARIZABLE_H

/*
 * Is a history of compare-and-set and reads of one register linearizable? Each written value is written by one operation
 * of the history at most, and the register holds 0 at first. Then what was seen tells the only order that the values can
 * have had: each value's writer names the one before it. What is left is to find a moment for each change:
 *
 *   - within its operation (one whose outcome is not known may take effect at any time after it began),
 *   - after the change before it, and after the beginning of all reads of the value that it replaces,
 *   - before the end of all reads of the value that it brings.
 *
 * Taking the earliest moment that the first two allow is best for all that follow: the history is linearizable if and
 * only if the third then holds everywhere.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum outcome {
	OUTCOME_READ, /* a read, or a condition that did not hold: `seen` */
	OUTCOME_APPLIED, /* from `expected` to `written` */
	OUTCOME_UNKNOWN, /* may yet be applied, now or later */
	OUTCOME_NEVER, /* must not be applied: the client was told so */
};

struct operation {
	enum outcome outcome;
	uint32_t key; /* the register */
	int64_t expected, written, seen;
	uint64_t began, ended; /* moments; no two are the same */
};

struct linearizable {
	const struct operation *operations;
	uint32_t count, key;
	const struct operation **writers; /* by what they write */
	uint32_t writer_count;
	int64_t *order; /* the values after 0, in order */
	uint32_t length;
	char why[200];
};

static int
linearizable_compare(const void *a, const void *b)
{
	int64_t left = (*(const struct operation *const *)a)->written;
	int64_t right = (*(const struct operation *const *)b)->written;

	return (left > right) - (left < right);
}

/* Who writes what, so that a value's writer is found at once. */
static void
linearizable_find_writers(struct linearizable *history)
{
	for (uint32_t i = 0; i < history->count; i++) {
		const struct operation *each = &history->operations[i];

		if (each->key == history->key && each->outcome != OUTCOME_READ)
			history->writers[history->writer_count++] = each;
	}
	qsort(history->writers, history->writer_count, sizeof(struct operation *),
	    linearizable_compare);
}

static const struct operation *
linearizable_writer(const struct linearizable *history, int64_t value)
{
	const struct operation wanted = {.written = value}, *key = &wanted;
	const struct operation **found = bsearch(&key, history->writers, history->writer_count,
	    sizeof(struct operation *), linearizable_compare);

	return found == NULL ? NULL : *found;
}

/* Put a value that was there, and those before it that it needs, to the front of the reversed order. */
static bool
linearizable_extend(struct linearizable *history, int64_t last)
{
	for (int64_t value = last; value != 0;) {
		const struct operation *writer = linearizable_writer(history, value);

		if (writer == NULL || writer->outcome == OUTCOME_NEVER) {
			snprintf(history->why, sizeof(history->why),
			    "value %" PRId64 " was there, but %s", value,
			    writer == NULL ? "nobody wrote it"
					   : "its writer was told that it was not");
			return false;
		}
		if (history->length == history->count) {
			snprintf(history->why, sizeof(history->why), "values follow in a circle");
			return false;
		}
		history->order[history->length++] = value;
		value = writer->expected;
	}
	for (uint32_t i = 0; i < history->length / 2; i++) {
		int64_t value = history->order[i];

		history->order[i] = history->order[history->length - 1 - i];
		history->order[history->length - 1 - i] = value;
	}
	return true;
}

static uint32_t
linearizable_depth(const struct linearizable *history, int64_t value)
{
	uint32_t depth = 0;

	while (value != 0 && depth <= history->count) {
		const struct operation *writer = linearizable_writer(history, value);

		if (writer == NULL)
			break;
		value = writer->expected;
		depth++;
	}
	return depth;
}

/* Where a value stands in the order; -1: nowhere. */
static int64_t
linearizable_position(const struct linearizable *history, int64_t value)
{
	if (value == 0)
		return 0;
	for (uint32_t i = 0; i < history->length; i++)
		if (history->order[i] == value)
			return (int64_t)i + 1;
	return -1;
}

/* The order is that of the value with the most before it; every other value must be among them. */
static bool
linearizable_find_order(struct linearizable *history)
{
	int64_t last = 0;
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < history->count; i++) {
		const struct operation *each = &history->operations[i];
		int64_t value = each->outcome == OUTCOME_READ ? each->seen : each->written;
		uint32_t depth;

		if (each->key != history->key || each->outcome == OUTCOME_UNKNOWN ||
		    each->outcome == OUTCOME_NEVER)
			continue;
		depth = linearizable_depth(history, value);
		if (value != 0 && depth >= deepest) {
			deepest = depth;
			last = value;
		}
	}
	if (!linearizable_extend(history, last))
		return false;
	for (uint32_t i = 0; i < history->count; i++) {
		const struct operation *each = &history->operations[i];
		int64_t value = each->outcome == OUTCOME_READ ? each->seen : each->written;

		if (each->key == history->key &&
		    (each->outcome == OUTCOME_READ || each->outcome == OUTCOME_APPLIED) &&
		    linearizable_position(history, value) < 0) {
			snprintf(history->why, sizeof(history->why),
			    "value %" PRId64 " was there, but has no place on the way to %" PRId64,
			    value, last);
			return false;
		}
	}
	return true;
}

static bool
linearizable_find_moments(struct linearizable *history)
{
	uint64_t moment = 0;

	for (uint32_t i = 1; i <= history->length; i++) {
		const struct operation *writer =
		    linearizable_writer(history, history->order[i - 1]);
		int64_t before = i == 1 ? 0 : history->order[i - 2];

		if (writer->began > moment)
			moment = writer->began;
		for (uint32_t j = 0; j < history->count; j++) {
			const struct operation *each = &history->operations[j];

			if (each->key == history->key && each->outcome == OUTCOME_READ &&
			    each->seen == before && each->began > moment)
				moment = each->began;
		}
		for (uint32_t j = 0; j < history->count; j++) {
			const struct operation *each = &history->operations[j];
			bool brings = each == writer && each->outcome == OUTCOME_APPLIED;
			bool sees = each->key == history->key && each->outcome == OUTCOME_READ &&
			    each->seen == history->order[i - 1];

			if ((!brings && !sees) || moment <= each->ended)
				continue;
			snprintf(history->why, sizeof(history->why),
			    "value %" PRId64 " cannot have come before moment %" PRIu64
			    ", and was there in [%" PRIu64 ", %" PRIu64 "]",
			    writer->written, moment, each->began, each->ended);
			return false;
		}
	}
	return true;
}

/* Is it? why (200 bytes) says why not. */
static bool
linearizable_check(const struct operation *operations, uint32_t count, uint32_t key, char *why)
{
	struct linearizable history = {.operations = operations, .count = count, .key = key};
	bool is_sound;

	history.order = calloc((size_t)count + 1, sizeof(*history.order));
	history.writers = calloc((size_t)count + 1, sizeof(struct operation *));
	linearizable_find_writers(&history);
	is_sound = linearizable_find_order(&history) && linearizable_find_moments(&history);
	snprintf(why, sizeof(history.why), "%s", history.why);
	free(history.order);
	free(history.writers);
	return is_sound;
}

/* ---- The checker, checked ---- */

static bool
linearizable_self_check(void)
{
	static const struct {
		bool is_sound;
		uint32_t count;
		struct operation operations[4];
	} cases[] = {
	    /* One after the other. */
	    {true, 2, {{OUTCOME_APPLIED, 0, 0, 1, 0, 1, 2}, {OUTCOME_READ, 0, 0, 0, 1, 3, 4}}},
	    /* An acknowledged change that is not seen. */
	    {false, 2, {{OUTCOME_APPLIED, 0, 0, 1, 0, 1, 2}, {OUTCOME_READ, 0, 0, 0, 0, 3, 4}}},
	    /* While it is under way both are right. */
	    {true, 2, {{OUTCOME_APPLIED, 0, 0, 1, 0, 1, 4}, {OUTCOME_READ, 0, 0, 0, 0, 2, 3}}},
	    /* Two that replaced the same value. */
	    {false, 2, {{OUTCOME_APPLIED, 0, 0, 1, 0, 1, 3}, {OUTCOME_APPLIED, 0, 0, 2, 0, 2, 4}}},
	    /* Nobody wrote it. */
	    {false, 1, {{OUTCOME_READ, 0, 0, 0, 7, 1, 2}}},
	    /* Its writer was told that it was not applied. */
	    {false, 2, {{OUTCOME_NEVER, 0, 0, 1, 0, 1, 2}, {OUTCOME_READ, 0, 0, 0, 1, 3, 4}}},
	    /* An unknown outcome may come late, */
	    {true, 3,
		{{OUTCOME_UNKNOWN, 0, 0, 1, 0, 1, 2}, {OUTCOME_READ, 0, 0, 0, 0, 3, 4},
		    {OUTCOME_READ, 0, 0, 0, 1, 5, 6}}},
	    /* but does not go away again, */
	    {false, 3,
		{{OUTCOME_UNKNOWN, 0, 0, 1, 0, 1, 2}, {OUTCOME_READ, 0, 0, 0, 1, 3, 4},
		    {OUTCOME_READ, 0, 0, 0, 0, 5, 6}}},
	    /* and not before it began. */
	    {false, 2, {{OUTCOME_READ, 0, 0, 0, 1, 1, 2}, {OUTCOME_UNKNOWN, 0, 0, 1, 0, 3, 4}}},
	    /* Another register's. */
	    {false, 2, {{OUTCOME_APPLIED, 1, 0, 1, 0, 1, 2}, {OUTCOME_READ, 0, 0, 0, 1, 3, 4}}},
	};
	char why[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (linearizable_check(cases[i].operations, cases[i].count, 0, why) !=
		    cases[i].is_sound) {
			printf("--- the checker is wrong about case %zu\n", i);
			return false;
		}
	}
	return true;
}

#endif
