/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_ROW_COPY_H
#define HELENUS_STORAGE_ROW_COPY_H

/* Rows that outlive what they were read from. */
#include "storage/row.h"

/* Copy clustering and cells of *from, bytes and all, into `arena`; deletions are left out (what is read
 * for a client is live). *to may be *from. */
int row_copy(const struct row *from, struct row *to, struct arena *arena, struct error *err);

#endif
