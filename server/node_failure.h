/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_NODE_FAILURE_H
#define HELENUS_SERVER_NODE_FAILURE_H

/*
 * What a node does when a disk fails, by disk_failure_policy and commit_failure_policy:
 *
 *                  read or write fails    SSTable damaged   disk full            commit log fails
 *   die            exit 1                 exit 1            exit 1               exit 1
 *   stop_paranoid  transports stop        transports stop   writes refused       -
 *   stop           transports stop        read fails        writes refused       transports stop
 *   stop_commit    -                      -                 -                    writes refused
 *   best_effort    directory is excluded  read fails        writes refused       -
 *   ignore         request fails          read fails        writes refused       request fails
 *
 * Cassandra stops its transports for a full disk as well; here what was refused is told to clients, and
 * writes go on by themselves when there is space.
 */
struct node;

/* Once clients are served; what failed before is handled then. */
void node_watch_failures(struct node *node);

#endif
