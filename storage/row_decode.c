/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/row_codec.h"

static inline int64_t
row_get_timestamp(const struct row_codec *codec, struct reader *reader)
{
	return (int64_t)(row_get_vint(reader) + (uint64_t)codec->min_timestamp);
}

static inline int32_t
row_get_int_delta(struct reader *reader, int32_t least)
{
	return (int32_t)((uint32_t)row_get_vint(reader) + (uint32_t)least);
}

static inline struct deletion
row_get_deletion(const struct row_codec *codec, struct reader *reader)
{
	struct deletion deletion;

	deletion.marked_for_delete_at = row_get_timestamp(codec, reader);
	deletion.local_deletion_time = row_get_int_delta(reader, codec->min_local_deletion_time);
	return deletion;
}

static inline struct slice
row_get_value(const struct type *type, struct reader *reader)
{
	uint64_t size =
	    type->fixed_length >= 0 ? (uint64_t)type->fixed_length : row_get_vint(reader);

	return row_get_bytes(reader, size);
}

static int
row_truncated(struct error *err)
{
	return error_set(err, ERROR_CORRUPT, "a row or marker goes on beyond the end of its data");
}

int
clustering_decode(const struct table_metadata *table, struct reader *reader, uint32_t count,
    struct arena *arena, const struct slice **values_out, struct error *err)
{
	struct slice *values = arena_alloc(arena, count * sizeof(*values));
	uint64_t header = 0;

	if (values == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for %u clustering values", count);
	for (uint32_t i = 0; i < count; i++) {
		if (i % 32 == 0)
			header = row_get_vint(reader);
		switch (header & 3) {
		case 0:
			values[i] = row_get_value(table->clustering[i].type, reader);
			break;
		case 1:
			values[i] = slice_empty;
			break;
		default:
			values[i] = slice_null;
			break;
		}
		header >>= 2;
	}
	*values_out = values;
	return reader->is_failed ? row_truncated(err) : 0;
}

static void
clustering_skip(const struct table_metadata *table, struct reader *reader, uint32_t count)
{
	uint64_t header = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (i % 32 == 0)
			header = row_get_vint(reader);
		if ((header & 3) == 0)
			row_get_value(table->clustering[i].type, reader);
		header >>= 2;
	}
}

/* ---- which columns a row has -------------------------------------------------------------------- */

enum { ROW_SUBSET_WORDS = 16 }; /* on the stack: up to 1024 columns */

/* Bitmap of the columns that are present. */
struct row_subset {
	uint64_t *words;
	uint64_t few[ROW_SUBSET_WORDS];
};

static inline bool
row_bitmap_has(const uint64_t *words, uint32_t bit)
{
	return (words[bit >> 6] >> (bit & 63)) & 1;
}

static int
row_subset_bad(struct error *err)
{
	return error_set(err, ERROR_CORRUPT, "a row's set of columns does not fit the header");
}

static int
row_get_large_subset(struct row_subset *subset, struct reader *reader, uint32_t count,
    uint64_t absent, struct error *err)
{
	uint32_t words = (count + 63) / 64;
	bool lists_present;
	uint64_t listed;

	if (absent > count)
		return row_subset_bad(err);
	lists_present = count - absent < count / 2;
	listed = lists_present ? count - absent : absent;
	memset(subset->words, lists_present ? 0 : 0xff, words * sizeof(*subset->words));
	for (uint64_t i = 0; i < listed; i++) {
		uint64_t index = row_get_vint(reader);

		if (index >= count)
			return row_subset_bad(err);
		if (lists_present)
			subset->words[index >> 6] |= UINT64_C(1) << (index & 63);
		else
			subset->words[index >> 6] &= ~(UINT64_C(1) << (index & 63));
	}
	return 0;
}

static int
row_get_subset(struct row_subset *subset, struct reader *reader, uint32_t count, bool has_all,
    struct arena *arena, struct error *err)
{
	uint32_t words = (count + 63) / 64;
	uint64_t encoded = has_all ? 0 : row_get_vint(reader);

	subset->words = subset->few;
	if (words > ROW_SUBSET_WORDS) {
		subset->words = arena_alloc(arena, words * sizeof(*subset->words));
		if (subset->words == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for a set of columns");
	}
	if (encoded == 0) {
		memset(subset->words, 0xff, words * sizeof(*subset->words));
		return 0;
	}
	if (count >= 64)
		return row_get_large_subset(subset, reader, count, encoded, err);
	if (encoded >> count != 0)
		return row_subset_bad(err);
	subset->words[0] = ~encoded;
	return 0;
}

/* ---- cells -------------------------------------------------------------------------------------- */

/* One row's decoding. With `row` NULL everything is skipped. */
struct row_decoder {
	const struct row_codec *codec;
	struct reader *reader;
	struct arena *arena;
	const uint64_t *wanted;
	struct row *row;
	struct liveness liveness;
	const struct column_metadata *columns;
	const struct column_metadata *const *targets;
	const int64_t *dropped_us;
	uint32_t column_count;
	bool has_complex_deletion;

	struct cell *cells;
	uint32_t cell_count, cell_room;
	struct complex_deletion *deletions;
	uint32_t deletion_count;
};

static int
row_decoder_grow(struct row_decoder *decoder, uint32_t more, struct error *err)
{
	struct cell *cells;
	uint32_t room = decoder->cell_count + more;

	if (room <= decoder->cell_room)
		return 0;
	cells = arena_alloc(decoder->arena, room * sizeof(*cells));
	if (cells == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a row of %u cells", room);
	if (decoder->cell_count != 0)
		memcpy(cells, decoder->cells, decoder->cell_count * sizeof(*cells));
	decoder->cells = cells;
	decoder->cell_room = room;
	return 0;
}

static inline void
row_get_cell(struct row_decoder *decoder, const struct column_metadata *column, struct cell *cell)
{
	const struct row_codec *codec = decoder->codec;
	struct reader *reader = decoder->reader;
	uint8_t flags = 0;

	if (reader->at != reader->end)
		flags = *reader->at++;
	else
		reader->is_failed = true;
	if (flags & ~CELL_FLAGS_ALL)
		reader->is_failed = true;

	cell->timestamp = flags & CELL_USE_ROW_TIMESTAMP ? decoder->liveness.timestamp
							 : row_get_timestamp(codec, reader);
	cell->ttl = TTL_NONE;
	cell->local_deletion_time = LOCAL_DELETION_TIME_NONE;
	if (flags & CELL_USE_ROW_TTL) {
		cell->ttl = decoder->liveness.ttl;
		cell->local_deletion_time = decoder->liveness.local_expiration_time;
	} else if (flags & (CELL_IS_DELETED | CELL_IS_EXPIRING)) {
		cell->local_deletion_time =
		    row_get_int_delta(reader, codec->min_local_deletion_time);
		if (flags & CELL_IS_EXPIRING)
			cell->ttl = row_get_int_delta(reader, codec->min_ttl);
	}
	cell->path = slice_null;
	if (column->is_complex)
		cell->path = row_get_bytes(reader, row_get_vint(reader));
	cell->value = slice_empty;
	if ((flags & CELL_HAS_EMPTY_VALUE) == 0)
		cell->value = row_get_value(column->type, reader);
}

/* A cell that was written with its row and has a value, as most have; false: it is another one. */
static inline bool
row_get_usual_cell(
    struct row_decoder *decoder, const struct column_metadata *column, struct cell *cell)
{
	struct reader *reader = decoder->reader;

	if (reader->at == reader->end || *reader->at != CELL_USE_ROW_TIMESTAMP)
		return false;
	reader->at++;
	cell->timestamp = decoder->liveness.timestamp;
	cell->ttl = TTL_NONE;
	cell->local_deletion_time = LOCAL_DELETION_TIME_NONE;
	cell->path = slice_null;
	cell->value = row_get_value(column->type, reader);
	return true;
}

static void
row_skip_cell(struct row_decoder *decoder, const struct column_metadata *column)
{
	struct reader *reader = decoder->reader;
	uint8_t flags = 0;

	if (reader->at != reader->end)
		flags = *reader->at++;
	else
		reader->is_failed = true;
	if ((flags & CELL_USE_ROW_TIMESTAMP) == 0)
		row_get_vint(reader);
	if ((flags & CELL_USE_ROW_TTL) == 0 && flags & (CELL_IS_DELETED | CELL_IS_EXPIRING)) {
		row_get_vint(reader);
		if (flags & CELL_IS_EXPIRING)
			row_get_vint(reader);
	}
	if (column->is_complex)
		row_get_bytes(reader, row_get_vint(reader));
	if ((flags & CELL_HAS_EMPTY_VALUE) == 0)
		row_get_value(column->type, reader);
}

/* What the cells of a column point to, or NULL when they are to be skipped. */
static inline const struct column_metadata *
row_decoder_target(const struct row_decoder *decoder, uint32_t index)
{
	const struct column_metadata *target =
	    decoder->targets != NULL ? decoder->targets[index] : &decoder->columns[index];

	if (decoder->row == NULL || target == NULL)
		return NULL;
	if (decoder->wanted != NULL && !row_bitmap_has(decoder->wanted, target->position))
		return NULL;
	return target;
}

static int
row_get_complex(struct row_decoder *decoder, uint32_t index, const struct column_metadata *target,
    uint32_t columns_left, struct error *err)
{
	const struct column_metadata *column = &decoder->columns[index];
	struct reader *reader = decoder->reader;
	int64_t dropped_us = decoder->dropped_us != NULL ? decoder->dropped_us[index] : INT64_MIN;
	uint64_t count;

	if (decoder->has_complex_deletion) {
		struct deletion deletion = row_get_deletion(decoder->codec, reader);

		if (target != NULL && !deletion_is_live(deletion) &&
		    deletion.marked_for_delete_at > dropped_us) {
			if (decoder->deletions == NULL)
				decoder->deletions = arena_alloc(
				    decoder->arena, columns_left * sizeof(*decoder->deletions));
			if (decoder->deletions == NULL)
				return error_set(err, ERROR_NO_MEMORY, "no memory for a deletion");
			decoder->deletions[decoder->deletion_count++] =
			    (struct complex_deletion){target, deletion};
		}
	}
	count = row_get_vint(reader);
	/* A cell takes at least a byte of flags and one of path. */
	if (count > reader_left(reader) / 2)
		return error_set(err, ERROR_CORRUPT,
		    "a column claims %llu cells, more than there is data",
		    (unsigned long long)count);
	if (target == NULL) {
		while (count-- != 0 && !reader->is_failed)
			row_skip_cell(decoder, column);
		return 0;
	}
	if (row_decoder_grow(decoder, (uint32_t)count + columns_left, err) != 0)
		return -1;
	while (count-- != 0 && !reader->is_failed) {
		struct cell *cell = &decoder->cells[decoder->cell_count];

		row_get_cell(decoder, column, cell);
		cell->column = target;
		if (cell->timestamp > dropped_us || decoder->dropped_us == NULL)
			decoder->cell_count++;
	}
	return 0;
}

static int
row_get_columns(struct row_decoder *decoder, const struct row_subset *subset, struct error *err)
{
	uint32_t present = 0;

	for (uint32_t i = 0; i < decoder->column_count; i += 64) {
		uint64_t word = subset->words[i >> 6];

		if (decoder->column_count - i < 64)
			word &= (UINT64_C(1) << (decoder->column_count - i)) - 1;
		present += (uint32_t)__builtin_popcountll(word);
	}
	if (decoder->row != NULL && row_decoder_grow(decoder, present, err) != 0)
		return -1;
	for (uint32_t i = 0; i < decoder->column_count; i++) {
		const struct column_metadata *column = &decoder->columns[i], *target;

		if (!row_bitmap_has(subset->words, i))
			continue;
		target = row_decoder_target(decoder, i);
		if (column->is_complex) {
			if (row_get_complex(decoder, i, target, present, err) != 0)
				return -1;
		} else if (target == NULL) {
			row_skip_cell(decoder, column);
		} else {
			struct cell *cell = &decoder->cells[decoder->cell_count];

			if (!row_get_usual_cell(decoder, column, cell))
				row_get_cell(decoder, column, cell);
			cell->column = target;
			if (decoder->dropped_us == NULL || cell->timestamp > decoder->dropped_us[i])
				decoder->cell_count++;
		}
		present--;
	}
	return decoder->reader->is_failed ? row_truncated(err) : 0;
}

/* ---- rows and markers --------------------------------------------------------------------------- */

static int
row_get_body(struct row_decoder *decoder, uint8_t flags, struct error *err)
{
	const struct row_codec *codec = decoder->codec;
	struct reader *reader = decoder->reader;
	struct deletion deletion = DELETION_LIVE;
	struct row_subset subset;
	struct row *row = decoder->row;

	decoder->liveness = LIVENESS_NONE;
	if (flags & ROW_HAS_TIMESTAMP)
		decoder->liveness.timestamp = row_get_timestamp(codec, reader);
	if (flags & ROW_HAS_TTL) {
		decoder->liveness.ttl = row_get_int_delta(reader, codec->min_ttl);
		decoder->liveness.local_expiration_time =
		    row_get_int_delta(reader, codec->min_local_deletion_time);
	}
	if (flags & ROW_HAS_DELETION)
		deletion = row_get_deletion(codec, reader);
	decoder->has_complex_deletion = (flags & ROW_HAS_COMPLEX_DELETION) != 0;
	if (row_get_subset(&subset, reader, decoder->column_count,
		(flags & ROW_HAS_ALL_COLUMNS) != 0, decoder->arena, err) != 0 ||
	    row_get_columns(decoder, &subset, err) != 0)
		return -1;
	if (row == NULL)
		return 0;
	row->liveness = decoder->liveness;
	row->deletion = deletion;
	row->cells = decoder->cells;
	row->cell_count = decoder->cell_count;
	row->complex_deletions = decoder->deletions;
	row->complex_deletion_count = decoder->deletion_count;
	return 0;
}

/* Cut a body with its sizes (SSTABLE flavor) out of the reader. */
static struct reader
row_cut_body(struct reader *reader)
{
	uint64_t size = row_get_vint(reader);
	struct reader body = reader_of(row_get_bytes(reader, size));

	body.is_failed = reader->is_failed;
	row_get_vint(&body); /* size of the previous unfiltered: nobody reads backwards */
	return body;
}

static int
row_check_flags(uint8_t flags, uint8_t extended, bool is_static, struct error *err)
{
	if (flags & UNFILTERED_END_OF_PARTITION ||
	    (extended & ~(ROW_EXTENDED_IS_STATIC | ROW_EXTENDED_HAS_SHADOWABLE_DELETION)) != 0 ||
	    ((flags & ROW_HAS_TTL) != 0 && (flags & ROW_HAS_TIMESTAMP) == 0))
		return error_set(
		    err, ERROR_CORRUPT, "unknown flags %02x %02x of a row", flags, extended);
	if (((extended & ROW_EXTENDED_IS_STATIC) != 0) != is_static)
		return error_set(err, ERROR_CORRUPT,
		    is_static ? "a static row is missing" : "a static row among the rows");
	return 0;
}

static int
row_decode(const struct row_codec *codec, enum row_codec_flavor flavor, struct reader *reader,
    bool is_static, const uint64_t *wanted, uint8_t flags, struct arena *arena, struct row *row,
    struct error *err)
{
	uint8_t extended = flags & ROW_EXTENSION ? row_get_u8(reader) : 0;
	struct row_decoder decoder = {
	    .codec = codec,
	    .reader = reader,
	    .arena = arena,
	    .wanted = wanted,
	    .row = row,
	    .columns = is_static ? codec->statics : codec->regulars,
	    .targets = is_static ? codec->static_targets : codec->regular_targets,
	    .dropped_us = is_static ? codec->static_dropped_us : codec->regular_dropped_us,
	    .column_count = is_static ? codec->static_count : codec->regular_count,
	};
	struct reader body;

	if (row_check_flags(flags, extended, is_static, err) != 0)
		return -1;
	row->is_static = is_static;
	row->clustering_count = 0;
	row->clustering = NULL;
	row->position = slice_null;
	if (!is_static && codec->table->clustering_count != 0) {
		row->clustering_count = codec->table->clustering_count;
		if (clustering_decode(codec->table, reader, row->clustering_count, arena,
			&row->clustering, err) != 0)
			return -1;
	}
	if (flavor == ROW_CODEC_SSTABLE) {
		body = row_cut_body(reader);
		decoder.reader = &body;
	}
	if (row_get_body(&decoder, flags, err) != 0)
		return -1;
	if (flavor == ROW_CODEC_SSTABLE && reader_left(&body) != 0)
		return error_set(err, ERROR_CORRUPT,
		    "a row is %zu bytes shorter than its size says", reader_left(&body));
	return 0;
}

int
row_decode_body(const struct row_codec *codec, struct reader *body, uint8_t flags,
    struct arena *arena, struct row *row, struct error *err)
{
	struct row_decoder decoder = {
	    .codec = codec,
	    .reader = body,
	    .arena = arena,
	    .row = row,
	    .columns = codec->regulars,
	    .targets = codec->regular_targets,
	    .dropped_us = codec->regular_dropped_us,
	    .column_count = codec->regular_count,
	};

	*row = (struct row){.position = slice_null};
	return row_get_body(&decoder, flags, err);
}

/* Kind and number of values of a marker. */
static int
marker_get_head(const struct row_codec *codec, struct reader *reader, enum bound_kind *kind,
    uint32_t *count, struct error *err)
{
	*kind = row_get_u8(reader);
	*count = reader_u16(reader);
	if (reader->is_failed)
		return row_truncated(err);
	if (!bound_opens(*kind) && !bound_closes(*kind))
		return error_set(err, ERROR_CORRUPT, "a marker of unknown kind %d", (int)*kind);
	if (*count > codec->table->clustering_count)
		return error_set(err, ERROR_CORRUPT, "a marker with %u of %u clustering values",
		    *count, codec->table->clustering_count);
	return 0;
}

static int
marker_decode(const struct row_codec *codec, enum row_codec_flavor flavor, struct reader *reader,
    struct arena *arena, struct marker *marker, struct error *err)
{
	struct reader body = *reader, *from = reader;

	if (marker_get_head(codec, reader, &marker->kind, &marker->clustering_count, err) != 0 ||
	    clustering_decode(codec->table, reader, marker->clustering_count, arena,
		&marker->clustering, err) != 0)
		return -1;
	if (flavor == ROW_CODEC_SSTABLE) {
		body = row_cut_body(reader);
		from = &body;
	}
	marker->position = slice_null;
	marker->close = DELETION_LIVE;
	marker->open = DELETION_LIVE;
	if (bound_closes(marker->kind))
		marker->close = row_get_deletion(codec, from);
	if (bound_opens(marker->kind))
		marker->open = row_get_deletion(codec, from);
	return from->is_failed ? row_truncated(err) : 0;
}

int
unfiltered_decode(const struct row_codec *codec, enum row_codec_flavor flavor,
    struct reader *reader, bool is_static, const uint64_t *wanted, struct arena *arena,
    enum unfiltered_kind *kind, struct row *row, struct marker *marker, struct error *err)
{
	uint8_t flags = row_get_u8(reader);

	if (reader->is_failed)
		return row_truncated(err);
	if (flags & UNFILTERED_END_OF_PARTITION && !is_static) {
		*kind = UNFILTERED_END;
		return 0;
	}
	if (flags & ROW_IS_MARKER && !is_static) {
		*kind = UNFILTERED_MARKER;
		return marker_decode(codec, flavor, reader, arena, marker, err);
	}
	*kind = UNFILTERED_ROW;
	return row_decode(codec, flavor, reader, is_static, wanted, flags, arena, row, err);
}

/* Walk a row of the MESSAGE flavor, which has no size. */
static int
row_skip_body(const struct row_codec *codec, struct reader *reader, bool is_static, uint8_t flags,
    struct error *err)
{
	struct row_decoder decoder = {
	    .codec = codec,
	    .reader = reader,
	    .columns = is_static ? codec->statics : codec->regulars,
	    .column_count = is_static ? codec->static_count : codec->regular_count,
	};
	struct arena arena; /* for the column set of very wide tables alone */
	int rc;

	arena_init(&arena, 1024);
	decoder.arena = &arena;
	rc = row_get_body(&decoder, flags, err);
	arena_fini(&arena);
	return rc;
}

int
unfiltered_skip(const struct row_codec *codec, enum row_codec_flavor flavor, struct reader *reader,
    bool is_static, enum unfiltered_kind *kind, struct error *err)
{
	uint8_t flags = row_get_u8(reader), extended = 0;
	enum bound_kind bound;
	uint32_t count = codec->table->clustering_count;

	if (reader->is_failed)
		return row_truncated(err);
	if (flags & UNFILTERED_END_OF_PARTITION && !is_static) {
		*kind = UNFILTERED_END;
		return 0;
	}
	*kind = flags & ROW_IS_MARKER && !is_static ? UNFILTERED_MARKER : UNFILTERED_ROW;
	if (*kind == UNFILTERED_MARKER) {
		if (marker_get_head(codec, reader, &bound, &count, err) != 0)
			return -1;
	} else {
		if (flags & ROW_EXTENSION)
			extended = row_get_u8(reader);
		if (row_check_flags(flags, extended, is_static, err) != 0)
			return -1;
	}
	if (!is_static)
		clustering_skip(codec->table, reader, count);
	if (flavor == ROW_CODEC_SSTABLE) {
		row_cut_body(reader);
	} else if (*kind == UNFILTERED_MARKER) {
		for (int i = bound_opens(bound) + bound_closes(bound); i > 0; i--)
			row_get_deletion(codec, reader);
	} else if (row_skip_body(codec, reader, is_static, flags, err) != 0) {
		return -1;
	}
	return reader->is_failed ? row_truncated(err) : 0;
}
