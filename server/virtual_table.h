/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_VIRTUAL_TABLE_H
#define HELENUS_SERVER_VIRTUAL_TABLE_H

/*
 * Tables without storage: system_views and system_virtual_schema. A read asks the node for the rows, as
 * they are now, sorts them, and hands them out as any other source of partitions. Cassandra:
 * db/virtual/.
 */
#include "storage/read_command.h"

struct executor;

/* *out is closed by the caller; everything lies in `arena`. */
int virtual_table_read(struct executor *executor, const struct read_command *command,
    struct arena *arena, struct partition_iterator **out, struct error *err);

/* Tables about other nodes (virtual_cluster.c). */
struct virtual_rows;
void virtual_fill_pending_hints(struct executor *executor, struct virtual_rows *rows);

/* virtual_repair.c */
void virtual_fill_streaming(struct executor *executor, struct virtual_rows *rows);
void virtual_fill_repairs(struct executor *executor, struct virtual_rows *rows);
void virtual_fill_repair_sessions(struct executor *executor, struct virtual_rows *rows);
void virtual_fill_repair_jobs(struct executor *executor, struct virtual_rows *rows);
void virtual_fill_repair_participates(struct executor *executor, struct virtual_rows *rows);
void virtual_fill_repair_validations(struct executor *executor, struct virtual_rows *rows);
void virtual_fill_gossip_info(struct executor *executor, struct virtual_rows *rows);
void virtual_fill_internode_inbound(struct executor *executor, struct virtual_rows *rows);
void virtual_fill_internode_outbound(struct executor *executor, struct virtual_rows *rows);

#endif
