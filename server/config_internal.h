/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_CONFIG_INTERNAL_H
#define HELENUS_SERVER_CONFIG_INTERNAL_H

/* Shared by config.c (the table and values), config_yaml.c (the reader) and config_finish.c. */
#include "server/config.h"

enum config_kind {
	CONFIG_KIND_BOOL,
	CONFIG_KIND_INT,
	CONFIG_KIND_LONG,
	CONFIG_KIND_DOUBLE,
	CONFIG_KIND_STRING,
	CONFIG_KIND_LIST,
	CONFIG_KIND_MS,
	CONFIG_KIND_SECONDS,
	CONFIG_KIND_SIZE,
	CONFIG_KIND_RATE,
};

struct config_key {
	const char *field; /* "__" stands for "." */
	enum config_kind kind;
	size_t offset; /* in struct config */
	const char *text; /* default */
	const char *old; /* "name:unit name" or NULL */
};

extern const struct config_key config_keys[];
extern const size_t config_key_count;

enum { CONFIG_NAME_MAX = 128 };

/* The key as it stands in the file. */
void config_key_name(const struct config_key *key, char name[CONFIG_NAME_MAX]);
/* By name, old names included: *unit is then the old name's ("" for a rename), else NULL. */
const struct config_key *config_key_find(const char *name, char unit[16], bool *is_old);
/* Is some key below "<name>."? */
bool config_is_section(const char *name);
/* Is `name` below a map whose keys are free? */
bool config_is_free_form(const char *name);

/* Store a value. text NULL: null. where: "file:line: " or "-D ". */
int config_store(struct config *config, const struct config_key *key, const char *unit,
    const char *text, const char *where, const char *name, struct error *err);
int config_store_list(struct config *config, const struct config_key *key, char **items,
    size_t count, const char *where, const char *name, struct error *err);
bool config_is_set(const struct config *config, const void *field);
void config_add_extra(struct config *config, const char *name, const char *value);

/* Replace an owned string. */
void config_assign(char **field, const char *value);
/* Directories that were named so far are those below data_directory again (config_finish.c). */
void config_forget_directories(struct config *config);

/*
 * The lines "key=value" of the file `name` beside the configuration; none where there is no such file. Comments are
 * left out, blanks trimmed. -1 when `each` says so, with file and key in front of its error.
 */
typedef int (*config_property_fn)(
    void *argument, const char *key, const char *value, struct error *err);
int config_read_properties(struct config *config, const char *name, config_property_fn each,
    void *argument, struct error *err);
/* commitlog_archiving.properties. ERROR_CONFIG. */
int config_read_archiving(struct config *config, struct error *err);

#endif
