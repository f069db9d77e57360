/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_RESTRICTION_INTERNAL_H
#define HELENUS_SERVER_RESTRICTION_INTERNAL_H

/*
 * What the files that prepare a WHERE share: restriction.c makes restrictions of its relations, restriction_check.c
 * judges them together.
 */
#include "server/restriction.h"

#define RESTRICTION_FILTERING                                                                      \
	"Cannot execute this query as it might involve data filtering and thus may have "          \
	"unpredictable performance. If you want to execute this query despite the performance "    \
	"unpredictability, use ALLOW FILTERING"

/* What the preparation of one WHERE has in hand. */
struct restriction_builder {
	struct preparation *preparation;
	const struct restrictions_options *options;
	struct restrictions *out;
	struct restriction_filter *filters; /* room for every relation and column */
	struct restriction **others; /* on statics and regulars, merged for the checks */
};

int restriction_no_memory(struct error *err);

/* "a, b, c", in the plan's arena. */
const char *restriction_names(struct restriction_builder *builder,
    const struct column_metadata *const *columns, uint32_t count);

/* A filter of the plan, to be filled. */
struct restriction_filter *restriction_add_filter(struct restriction_builder *builder,
    const struct column_metadata *column, enum filter_operator operator);

/* Cassandra's refusals and what is read: of the partition key, the clustering columns, and of all others. */
int restriction_check_partition(struct restriction_builder *builder, struct error *err);
int restriction_check_clustering(struct restriction_builder *builder, struct error *err);
int restriction_check_others(struct restriction_builder *builder, struct error *err);

#endif
