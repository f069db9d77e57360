/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_PROFILE_H
#define HELENUS_TOOLS_STRESS_PROFILE_H

/*
 * A user profile: the YAML file that names a table, how its columns are filled, and the queries to
 * run. Reading the file is pure; attaching creates what it defines and reads the columns back from the
 * server. Cassandra: stress/StressYaml, StressProfile.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "tools/stress_condition.h"
#include "tools/stress_partition.h"
#include "tools/stress_scan.h"
#include "tools/stress_session.h"
#include "tools/stress_validation.h"

/* What the salt of a column begins with. */
#define STRESS_SEED_TEXT "seed for stress"

struct stress_column_spec {
	char *name; /* lower case */
	char *seed_text; /* what the salt is made of: the name as it was written */
	bool has_size, has_population, has_clustering;
	struct stress_distribution size;
	struct stress_distribution population;
	struct stress_distribution clustering;
};

struct stress_query {
	char *name; /* lower case */
	char *cql;
	bool is_same_row; /* all arguments from one row; else each from a row of its own */
	bool has_consistency, has_serial_consistency;
	enum consistency consistency;
	enum consistency serial_consistency;
	struct stress_statement statement; /* once attached */
	struct stress_condition *condition; /* owned; once attached: NULL, or it is such a write */
};

struct stress_profile {
	char *name; /* keyspace.table, or specname */
	char *keyspace;
	char *keyspace_definition; /* NULL: none */
	char *table;
	char *table_definition;
	char **extra_definitions;
	uint32_t extra_count;
	struct stress_column_spec *specs;
	uint32_t spec_count;
	struct stress_query *queries;
	uint32_t query_count;
	struct stress_scan *scans; /* token_range_queries */
	uint32_t scan_count;

	/* insert: */
	struct stress_distribution partitions;
	struct stress_ratio select;
	struct stress_ratio row_population;
	int batch_type; /* enum batch_type */
	char *condition; /* "IF ...", NULL: none */
	bool has_consistency, has_serial_consistency;
	enum consistency consistency;
	enum consistency serial_consistency;

	/* Once attached. */
	struct arena arena; /* types and names of the columns */
	struct stress_table columns;
	struct buffer insert_query; /* NUL-terminated */
	struct stress_statement insert;
	bool has_insert;
	struct stress_validation validation; /* once an operation asks for it */
};

/* ERROR_INVALID: YAML or values that are wrong, with the place; ERROR_IO: the file. */
int stress_profile_load(struct stress_profile *profile, const char *path, struct error *err);
void stress_profile_fini(struct stress_profile *profile);

/* Create keyspace, table and the extra definitions. */
int stress_profile_create(
    struct stress_profile *profile, struct stress_session *session, struct error *err);
/* Read the columns from the server and prepare the statements. Command line options win over what
 * the file says of inserts. */
int stress_profile_attach(
    struct stress_profile *profile, struct stress_session *session, struct error *err);
/* The INSERT or UPDATE of a table, and the generators of its columns, from rows of
 * system_schema.columns that are sorted by name. For stress_profile_attach() and tests. */
struct stress_column {
	const char *name;
	const struct type *type;
	char kind; /* 'p'artition key, 'c'lustering, 'r'egular, 's'tatic */
	int32_t position;
};
int stress_profile_set_columns(struct stress_profile *profile, const struct stress_column *columns,
    uint32_t count, enum stress_order order, bool skips_unsupported, struct error *err);

/* Prepare the operation "validate". */
int stress_profile_attach_validation(
    struct stress_profile *profile, struct stress_session *session, struct error *err);

/* By the name, in lower case; NULL: there is none. */
struct stress_query *stress_profile_query(struct stress_profile *profile, const char *name);
struct stress_scan *stress_profile_scan(struct stress_profile *profile, const char *name);
void stress_profile_print(const struct stress_profile *profile, struct buffer *out);

#endif
