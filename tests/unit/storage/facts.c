/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include "storage/merge.h"
#include "tests/unit/storage/facts.h"

uint32_t
random_below(struct random *random, uint32_t limit)
{
	random->state =
	    random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((random->state >> 33) % limit);
}

struct table_metadata *
facts_table(void)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("facts"));
	struct table_metadata *table = NULL;
	struct error err;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "c1", "int");
	table_builder_add_column(
	    builder, COLUMN_CLUSTERING, slice_of_string("c2"), type_native(TYPE_INT), true);
	table_builder_add(builder, COLUMN_STATIC, "s", "int");
	table_builder_add(builder, COLUMN_REGULAR, "a", "int");
	table_builder_add(builder, COLUMN_REGULAR, "b", "text");
	table_builder_add(builder, COLUMN_REGULAR, "m", "map<int, int>");
	ck_assert_int_eq(table_builder_build(builder, &table, &err), 0);
	table_builder_free(builder);
	return table;
}

struct table_metadata *
facts_lone_table(void)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("lone"));
	struct table_metadata *table = NULL;
	struct error err;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C0", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C1", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C2", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C3", "blob");
	table_builder_add(builder, COLUMN_REGULAR, "C4", "blob");
	ck_assert_int_eq(table_builder_build(builder, &table, &err), 0);
	table_builder_free(builder);
	return table;
}

void
facts_init(struct facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	facts->table = facts_table();
	arena_init(&facts->arena, 65536);
}

void
facts_fini(struct facts *facts)
{
	table_unref(facts->table);
	arena_fini(&facts->arena);
}

static void
facts_generate_range(struct fact *fact, struct random *random)
{
	static const enum bound_kind starts[] = {BOUND_INCL_START, BOUND_EXCL_START};
	static const enum bound_kind ends[] = {BOUND_INCL_END, BOUND_EXCL_END};

	fact->start_kind = starts[random_below(random, 2)];
	fact->end_kind = ends[random_below(random, 2)];
	fact->start_count = random_below(random, 3);
	fact->end_count = random_below(random, 3);
	fact->start[0] = (int)random_below(random, FACTS_C1);
	fact->start[1] = (int)random_below(random, FACTS_C2);
	fact->end[0] = (int)random_below(random, FACTS_C1);
	fact->end[1] = (int)random_below(random, FACTS_C2);
}

static void
facts_generate_one(struct facts *facts, struct fact *fact, struct random *random)
{
	const struct table_metadata *table = facts->table;
	uint32_t dice = random_below(random, 100);

	memset(fact, 0, sizeof(*fact));
	fact->timestamp = 1 + random_below(random, 6);
	fact->local_deletion_time = 1000 + (int32_t)random_below(random, 3);
	fact->c1 = (int)random_below(random, FACTS_C1);
	fact->c2 = (int)random_below(random, FACTS_C2);
	fact->value = (int)random_below(random, 3);
	fact->path = (int)random_below(random, 3);
	fact->column = &table->regulars[random_below(random, table->regular_count)];
	if (dice < 60) {
		uint32_t kind = random_below(random, 3);

		fact->kind = FACT_CELL;
		if (dice < 6) {
			fact->is_static = true;
			fact->column = &table->statics[0];
		}
		if (kind == 0)
			fact->local_deletion_time = LOCAL_DELETION_TIME_NONE;
		if (kind == 1)
			fact->ttl = 10 + (int32_t)random_below(random, 2);
	} else if (dice < 75) {
		fact->kind = FACT_LIVENESS;
		if (random_below(random, 2) == 0)
			fact->ttl = 10 + (int32_t)random_below(random, 2);
		else
			fact->local_deletion_time = LOCAL_DELETION_TIME_NONE;
	} else if (dice < 82) {
		fact->kind = FACT_ROW_DELETION;
	} else if (dice < 88) {
		fact->kind = FACT_COMPLEX_DELETION;
		fact->column = table_column(table, slice_of_string("m"));
	} else if (dice < 97) {
		fact->kind = FACT_RANGE;
		facts_generate_range(fact, random);
	} else {
		fact->kind = FACT_PARTITION;
		fact->timestamp = 1 + random_below(random, 3);
	}
}

void
facts_generate(struct facts *facts, struct random *random, uint32_t count)
{
	arena_reset(&facts->arena);
	facts->count = count;
	for (uint32_t i = 0; i < count; i++)
		facts_generate_one(facts, &facts->facts[i], random);
}

/* ---- facts as the code under test sees them ------------------------------------------------------ */

static struct slice
facts_int(struct facts *facts, int value)
{
	uint8_t *at = arena_alloc_bytes(&facts->arena, 4);

	store_u32(at, (uint32_t)value);
	return slice_of(at, 4);
}

static const struct slice *
facts_values(struct facts *facts, const int *values, uint32_t count)
{
	struct slice *slices = arena_alloc(&facts->arena, count * sizeof(*slices));

	for (uint32_t i = 0; i < count; i++)
		slices[i] = facts_int(facts, values[i]);
	return slices;
}

struct slice
facts_position(struct facts *facts, enum bound_kind kind, const int *values, uint32_t count)
{
	return position_make(
	    facts->table, kind, facts_values(facts, values, count), count, &facts->arena);
}

/* Text values have as many bytes as the number says and one. */
static struct slice
facts_value(struct facts *facts, const struct fact *fact)
{
	static const char text[] = "xxxxxx";

	if (fact->local_deletion_time != LOCAL_DELETION_TIME_NONE && fact->ttl == TTL_NONE)
		return slice_empty;
	if (fact->column->type->kind == TYPE_TEXT)
		return slice_of(text, (size_t)fact->value);
	return facts_int(facts, fact->value);
}

static void
facts_add_row(struct facts *facts, struct update_builder *builder, const struct fact *fact)
{
	struct row row = {
	    .is_static = fact->is_static,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE,
	};
	struct deletion deletion = {fact->timestamp, fact->local_deletion_time};
	struct cell *cell = arena_zalloc(&facts->arena, sizeof(*cell));
	struct complex_deletion *complex = arena_zalloc(&facts->arena, sizeof(*complex));
	struct error err;
	int values[2] = {fact->c1, fact->c2};

	if (!fact->is_static) {
		row.clustering = facts_values(facts, values, 2);
		row.clustering_count = 2;
	}
	switch (fact->kind) {
	case FACT_CELL:
		*cell = (struct cell){fact->column, fact->timestamp, fact->ttl,
		    fact->local_deletion_time, slice_null, facts_value(facts, fact)};
		if (fact->column->is_complex)
			cell->path = facts_int(facts, fact->path);
		row.cells = cell;
		row.cell_count = 1;
		break;
	case FACT_LIVENESS:
		row.liveness =
		    (struct liveness){fact->timestamp, fact->ttl, fact->local_deletion_time};
		break;
	case FACT_ROW_DELETION:
		row.deletion = deletion;
		break;
	default:
		*complex = (struct complex_deletion){fact->column, deletion};
		row.complex_deletions = complex;
		row.complex_deletion_count = 1;
		break;
	}
	ck_assert_int_eq(update_builder_add_row(builder, &row, &err), 0);
}

void
facts_update(struct facts *facts, uint64_t which, struct partition_update *out)
{
	struct update_builder *builder =
	    update_builder_new(facts->table, facts_int(facts, 7), &facts->arena);
	struct error err;

	for (uint32_t i = 0; i < facts->count; i++) {
		const struct fact *fact = &facts->facts[i];
		struct range_tombstone tombstone;

		if (((which >> i) & 1) == 0)
			continue;
		switch (fact->kind) {
		case FACT_PARTITION:
			update_builder_delete_partition(
			    builder, (struct deletion){fact->timestamp, fact->local_deletion_time});
			break;
		case FACT_RANGE:
			tombstone = (struct range_tombstone){
			    .start_kind = fact->start_kind,
			    .end_kind = fact->end_kind,
			    .start_count = fact->start_count,
			    .end_count = fact->end_count,
			    .start = facts_values(facts, fact->start, fact->start_count),
			    .end = facts_values(facts, fact->end, fact->end_count),
			    .deletion = {fact->timestamp, fact->local_deletion_time},
			};
			ck_assert_int_eq(update_builder_delete_range(builder, &tombstone, &err), 0);
			break;
		default:
			facts_add_row(facts, builder, fact);
			break;
		}
	}
	ck_assert_int_eq(update_builder_finish(builder, out, &err), 0);
}

/* ---- the model ---------------------------------------------------------------------------------- */

int
facts_row_index(int c1, int c2)
{
	return c1 * FACTS_C2 + (FACTS_C2 - 1 - c2); /* c2 descends */
}

/* -1, 0, 1: the row is before, has the prefix, is after it. */
static int
facts_compare_prefix(int c1, int c2, const int *values, uint32_t count)
{
	if (count > 0 && c1 != values[0])
		return c1 < values[0] ? -1 : 1;
	if (count > 1 && c2 != values[1])
		return c2 > values[1] ? -1 : 1;
	return 0;
}

static bool
facts_range_covers(const struct fact *fact, int c1, int c2)
{
	int start = facts_compare_prefix(c1, c2, fact->start, fact->start_count);
	int end = facts_compare_prefix(c1, c2, fact->end, fact->end_count);

	return (start > 0 || (start == 0 && fact->start_kind == BOUND_INCL_START)) &&
	    (end < 0 || (end == 0 && fact->end_kind == BOUND_INCL_END));
}

/* Later by (timestamp, local deletion time). */
static void
facts_raise(struct deletion *deletion, const struct fact *fact)
{
	if (fact->timestamp > deletion->marked_for_delete_at ||
	    (fact->timestamp == deletion->marked_for_delete_at &&
		fact->local_deletion_time > deletion->local_deletion_time))
		*deletion = (struct deletion){fact->timestamp, fact->local_deletion_time};
}

static struct deletion
facts_max(struct deletion a, struct deletion b)
{
	return deletion_supersedes(b, a) ? b : a;
}

/* A number that is greater for the cell (or marker) that wins: ST-27 read as a list. */
static uint64_t
facts_rank(const struct fact *fact)
{
	bool ends = fact->local_deletion_time != LOCAL_DELETION_TIME_NONE;
	uint64_t kind = !ends ? 0 : fact->ttl != TTL_NONE ? 1 : 2;
	uint64_t rank = (uint64_t)fact->timestamp;

	rank = rank * 4 + kind;
	rank = rank * 4096 + (ends ? (uint64_t)fact->local_deletion_time : 0);
	rank = rank * 16 + (kind == 2 ? 0 : (uint64_t)fact->value);
	return rank * 64 + (uint64_t)fact->ttl;
}

static uint64_t
facts_liveness_rank(const struct fact *fact)
{
	uint64_t rank = (uint64_t)fact->timestamp * 2 + (fact->ttl != TTL_NONE);

	rank = rank * 4096 + (fact->ttl != TTL_NONE ? (uint64_t)fact->local_deletion_time : 0);
	return rank * 64 + (uint64_t)fact->ttl;
}

static void
facts_print_deletion(struct buffer *out, const char *what, struct deletion deletion)
{
	if (!deletion_is_live(deletion))
		buffer_printf(out, " %s %lld/%d", what, (long long)deletion.marked_for_delete_at,
		    deletion.local_deletion_time);
}

static bool
facts_is_of_row(const struct fact *fact, bool is_static, int c1, int c2)
{
	if (fact->kind == FACT_RANGE || fact->kind == FACT_PARTITION)
		return false;
	if (is_static || fact->is_static)
		return is_static == fact->is_static;
	return fact->c1 == c1 && fact->c2 == c2;
}

static void
facts_expect_cell(const struct facts *facts, const struct column_metadata *column, bool is_static,
    int c1, int c2, int path, struct deletion active, struct buffer *out)
{
	const struct fact *best = NULL;

	for (uint32_t i = 0; i < facts->count; i++) {
		const struct fact *fact = &facts->facts[i];

		if (fact->kind != FACT_CELL || !facts_is_of_row(fact, is_static, c1, c2) ||
		    fact->column != column || (column->is_complex && fact->path != path) ||
		    fact->timestamp <= active.marked_for_delete_at)
			continue;
		if (best == NULL || facts_rank(fact) > facts_rank(best))
			best = fact;
	}
	if (best == NULL)
		return;
	buffer_printf(out, " %.*s[%d]=", (int)column->name.size, (const char *)column->name.data,
	    column->is_complex ? path : 0);
	if (best->local_deletion_time == LOCAL_DELETION_TIME_NONE || best->ttl != TTL_NONE)
		buffer_printf(out, "%d", best->value);
	buffer_printf(out, "@%lld", (long long)best->timestamp);
	if (best->local_deletion_time != LOCAL_DELETION_TIME_NONE)
		buffer_printf(out, "/%d/%d", best->ttl, best->local_deletion_time);
}

static void
facts_expect_row(const struct facts *facts, bool is_static, int c1, int c2, struct deletion over,
    struct buffer *out)
{
	const struct column_metadata *columns =
	    is_static ? facts->table->statics : facts->table->regulars;
	uint32_t count = is_static ? facts->table->static_count : facts->table->regular_count;
	struct deletion deletion = DELETION_LIVE, complex = DELETION_LIVE, active = over;
	const struct fact *liveness = NULL;

	for (uint32_t i = 0; i < facts->count; i++) {
		const struct fact *fact = &facts->facts[i];

		if (!facts_is_of_row(fact, is_static, c1, c2))
			continue;
		if (fact->kind == FACT_ROW_DELETION)
			facts_raise(&deletion, fact);
		if (fact->kind == FACT_COMPLEX_DELETION)
			facts_raise(&complex, fact);
		if (fact->kind == FACT_LIVENESS &&
		    (liveness == NULL || facts_liveness_rank(fact) > facts_liveness_rank(liveness)))
			liveness = fact;
	}
	if (deletion_supersedes(deletion, over)) {
		active = deletion;
		facts_print_deletion(out, "deleted", deletion);
	}
	if (liveness != NULL && liveness->timestamp > active.marked_for_delete_at)
		buffer_printf(out, " live@%lld/%d/%d", (long long)liveness->timestamp,
		    liveness->ttl, liveness->local_deletion_time);
	for (uint32_t i = 0; i < count; i++) {
		struct deletion cells = active;

		if (!columns[i].is_complex) {
			facts_expect_cell(facts, &columns[i], is_static, c1, c2, 0, active, out);
			continue;
		}
		if (deletion_supersedes(complex, active)) {
			cells = complex;
			facts_print_deletion(out, "m deleted", complex);
		}
		for (int path = 0; path < 3; path++)
			facts_expect_cell(facts, &columns[i], is_static, c1, c2, path, cells, out);
	}
}

void
facts_expect(const struct facts *facts, uint32_t selected, bool is_reversed, struct buffer *out)
{
	struct deletion partition = DELETION_LIVE;

	for (uint32_t i = 0; i < facts->count; i++) {
		if (facts->facts[i].kind == FACT_PARTITION)
			facts_raise(&partition, &facts->facts[i]);
	}
	buffer_printf(out, "partition");
	facts_print_deletion(out, "deleted", partition);
	buffer_printf(out, "\nstatic");
	facts_expect_row(facts, true, 0, 0, partition, out);
	for (int step = 0; step < FACTS_ROWS; step++) {
		int index = is_reversed ? FACTS_ROWS - 1 - step : step;
		int c1 = index / FACTS_C2, c2 = FACTS_C2 - 1 - index % FACTS_C2;
		struct deletion over = partition;

		if (((selected >> index) & 1) == 0)
			continue;
		for (uint32_t i = 0; i < facts->count; i++) {
			if (facts->facts[i].kind == FACT_RANGE &&
			    facts_range_covers(&facts->facts[i], c1, c2))
				facts_raise(&over, &facts->facts[i]);
		}
		buffer_printf(out, "\n%d %d", c1, c2);
		facts_print_deletion(out, "over", over);
		buffer_printf(out, ":");
		facts_expect_row(facts, false, c1, c2, over, out);
	}
	buffer_put_u8(out, 0);
}

/* ---- printing a stream -------------------------------------------------------------------------- */

static void
facts_print_cell(const struct cell *cell, struct buffer *out)
{
	bool is_text = cell->column->type->kind == TYPE_TEXT;

	buffer_printf(out, " %.*s[%d]=", (int)cell->column->name.size,
	    (const char *)cell->column->name.data,
	    cell->column->is_complex ? (int)load_u32(cell->path.data) : 0);
	if (!cell_is_tombstone(cell))
		buffer_printf(
		    out, "%d", is_text ? (int)cell->value.size : (int)load_u32(cell->value.data));
	buffer_printf(out, "@%lld", (long long)cell->timestamp);
	if (cell->local_deletion_time != LOCAL_DELETION_TIME_NONE)
		buffer_printf(out, "/%d/%d", cell->ttl, cell->local_deletion_time);
}

static void
facts_print_row(const struct row *row, struct buffer *out)
{
	facts_print_deletion(out, "deleted", row->deletion);
	if (row->liveness.timestamp != TIMESTAMP_NONE)
		buffer_printf(out, " live@%lld/%d/%d", (long long)row->liveness.timestamp,
		    row->liveness.ttl, row->liveness.local_expiration_time);
	for (uint32_t i = 0; i <= row->cell_count; i++) {
		/* The deletion of the only complex column stands before its first cell. */
		if (row->complex_deletion_count != 0 &&
		    (i == row->cell_count || row->cells[i].column->is_complex) &&
		    (i == 0 || !row->cells[i - 1].column->is_complex))
			facts_print_deletion(out, "m deleted", row->complex_deletions[0].deletion);
		if (i < row->cell_count)
			facts_print_cell(&row->cells[i], out);
	}
}

/* The possible rows up to the stream's present place (all, when null). */
struct facts_walk {
	struct facts *facts;
	int step;
	bool is_reversed;
	uint32_t selected;
	struct deletion partition, open;
	struct buffer *out;
};

static void
facts_walk_to(struct facts_walk *walk, struct slice position, const struct row *row)
{
	for (; walk->step < FACTS_ROWS; walk->step++) {
		int index = walk->is_reversed ? FACTS_ROWS - 1 - walk->step : walk->step;
		int values[2] = {index / FACTS_C2, FACTS_C2 - 1 - index % FACTS_C2};
		struct slice at = facts_position(walk->facts, BOUND_CLUSTERING, values, 2);
		int order = slice_is_null(position) ? -1 : slice_compare(at, position);

		if (walk->is_reversed && !slice_is_null(position))
			order = -order;
		if (order > 0 || (order == 0 && row == NULL))
			return;
		if ((walk->selected >> index) & 1) {
			buffer_printf(walk->out, "\n%d %d", values[0], values[1]);
			facts_print_deletion(
			    walk->out, "over", facts_max(walk->partition, walk->open));
			buffer_printf(walk->out, ":");
			if (order == 0)
				facts_print_row(row, walk->out);
		} else {
			ck_assert_msg(order != 0, "a row that was not selected");
		}
		if (order == 0) {
			walk->step++;
			return;
		}
	}
}

static void
facts_walk_marker(struct facts_walk *walk, const struct marker *marker)
{
	struct deletion below = bound_closes(marker->kind) ? marker->close : DELETION_LIVE;
	struct deletion above = bound_opens(marker->kind) ? marker->open : DELETION_LIVE;
	struct deletion before = walk->is_reversed ? above : below;

	ck_assert_int_eq(before.marked_for_delete_at, walk->open.marked_for_delete_at);
	ck_assert_int_eq(before.local_deletion_time, walk->open.local_deletion_time);
	walk->open = walk->is_reversed ? below : above;
}

void
facts_print(struct facts *facts, struct unfiltered_iterator *iterator, uint32_t selected,
    struct buffer *out)
{
	struct facts_walk walk = {facts, 0, iterator->is_reversed, selected,
	    iterator->partition_deletion, DELETION_LIVE, out};
	struct unfiltered unfiltered;
	struct slice last = slice_null;
	struct error err;
	int rc;

	buffer_printf(out, "partition");
	facts_print_deletion(out, "deleted", iterator->partition_deletion);
	buffer_printf(out, "\nstatic");
	if (iterator->has_static_row)
		facts_print_row(&iterator->static_row, out);
	while ((rc = unfiltered_iterator_next(iterator, &unfiltered, &err)) > 0) {
		bool is_row = unfiltered.kind != UNFILTERED_MARKER;

		if (unfiltered.kind == UNFILTERED_RAW) {
			facts->raw_count++;
			ck_assert_int_eq(
			    unfiltered_decode_raw(&unfiltered, &facts->arena, &err), 0);
		}
		struct slice at = is_row ? unfiltered.row.position : unfiltered.marker.position;

		if (!slice_is_null(last) && iterator->is_reversed)
			ck_assert_int_lt(slice_compare(at, last), 0);
		else if (!slice_is_null(last))
			ck_assert_int_gt(slice_compare(at, last), 0);
		last = at;
		if (is_row)
			ck_assert(!row_is_empty(&unfiltered.row));
		facts_walk_to(&walk, at, is_row ? &unfiltered.row : NULL);
		if (!is_row)
			facts_walk_marker(&walk, &unfiltered.marker);
	}
	ck_assert_msg(rc == 0, "%s", rc < 0 ? err.text : "");
	facts_walk_to(&walk, slice_null, NULL);
	ck_assert(deletion_is_live(walk.open));
	unfiltered_iterator_close(iterator);
	buffer_put_u8(out, 0);
}
