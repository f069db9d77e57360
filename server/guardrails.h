/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_GUARDRAILS_H
#define HELENUS_SERVER_GUARDRAILS_H

/*
 * What an operator does not let clients do (Cassandra 4.1: db/guardrails): thresholds beyond which a statement is warned
 * of or refused, switches, consistency levels and table properties that are not to be used. Names, texts and what each
 * one looks at are Cassandra's. Statements of the server itself are exempt, as there; Cassandra's superusers are too, and
 * there is none here, where all clients are one: with AllowAllAuthenticator Cassandra would take everybody for one.
 *
 * A refusal is ERROR_INVALID, "Guardrail NAME violated: ...", and its text is a warning too. Everything is constant after start;
 * the thread of the execution. Where no guardrail is set a check costs a comparison or two.
 */
#include "base/error.h"
#include "server/config.h"

struct execution;
struct modification;
struct option_map;

/* The maximum of something: warned of beyond one number, refused beyond another. */
enum guardrail_maximum {
	GUARDRAIL_KEYSPACES,
	GUARDRAIL_TABLES,
	GUARDRAIL_COLUMNS_PER_TABLE,
	GUARDRAIL_FIELDS_PER_UDT,
	GUARDRAIL_PAGE_SIZE,
	GUARDRAIL_PARTITION_KEYS_IN_SELECT,
	GUARDRAIL_IN_SELECT_CARTESIAN_PRODUCT,
	GUARDRAIL_ITEMS_PER_COLLECTION,
	GUARDRAIL_COLLECTION_SIZE,
	GUARDRAIL_MAXIMUM_COUNT,
};

/* What can be switched off. */
enum guardrail_switch {
	GUARDRAIL_ALLOW_FILTERING,
	GUARDRAIL_GROUP_BY,
	GUARDRAIL_USER_TIMESTAMPS,
	GUARDRAIL_DROP_TRUNCATE_TABLE,
	GUARDRAIL_UNCOMPRESSED_TABLES,
	GUARDRAIL_COMPACT_TABLES,
	GUARDRAIL_SECONDARY_INDEXES,
	GUARDRAIL_READ_BEFORE_WRITE_LISTS,
};

/* Is there anything to check? Where counting costs something. */
bool guardrail_is_set(const struct execution *execution, enum guardrail_maximum which);
/* `what` is the thing's name in the text. */
int guardrail_check_maximum(struct execution *execution, enum guardrail_maximum which,
    struct slice what, int64_t value, struct error *err);
/* what: as the text begins ("User provided timestamps ..."); NULL: the switch's own. */
int guardrail_check_switch(
    struct execution *execution, enum guardrail_switch which, const char *what, struct error *err);
/* Replication factors of a keyspace of clients, each of a data center or the only one. */
int guardrail_check_replication(struct execution *execution, struct slice keyspace,
    const struct option_map *replication, struct error *err);
/* Levels, filtering, groups and the page of a SELECT. */
int guardrail_check_select(struct execution *execution, struct error *err);
/* Levels, timestamps and operations on lists of INSERT, UPDATE, DELETE, or of those of a batch. */
int guardrail_check_write(struct execution *execution, const struct modification *modifications,
    uint32_t count, struct error *err);
/* A collection that is written whole or added to; size: of its cells in bytes, as Cell.dataSize() counts. */
int guardrail_check_collection(struct execution *execution, struct slice column, uint32_t items,
    int64_t size, struct error *err);
/* A schema change of a client, before it is looked at against the schema of its turn. */
int guardrail_check_schema_change(struct execution *execution, struct error *err);
/* Is WITH `property` of CREATE or ALTER TABLE passed over? */
bool guardrail_ignores_property(const struct execution *execution, struct slice property);

/* ---- config_guardrails.c ---- */

/* Check the keys, and make masks of the levels that they name. ERROR_CONFIG. */
int config_finish_guardrails(struct config *config, struct error *err);
/* The fields of a threshold. */
void guardrail_limits(
    const struct config *config, enum guardrail_maximum which, int64_t *warn, int64_t *fail);
const char *guardrail_maximum_name(enum guardrail_maximum which);

#endif
