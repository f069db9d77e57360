/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clang-tidy has to know: it sees one file at a time, and would follow the paths on which these
 * return 0.
 */
#include "base/error.h"

#undef error_set
#undef error_set_errno
#define error_set(err, code, ...) (error_set_at((err), (code), __FILE__, __LINE__, __VA_ARGS__), -1)
#define error_set_errno(err, sys_errno, ...)                                                       \
	(error_set_errno_at((err), (sys_errno), __FILE__, __LINE__, __VA_ARGS__), -1)
