/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles and permissions: AllowAllAuthenticator and AllowAllAuthorizer, which know neither. The texts are
 * those Cassandra gives under the same configuration.
 */
#include "server/execution.h"

static int
auth_refuse(const struct execution *execution, struct error *err)
{
	switch (execution->plan->kind) {
	case STATEMENT_ADD_IDENTITY:
	case STATEMENT_DROP_IDENTITY:
		return error_set(err, ERROR_INVALID, "Identities are not supported");
	default:
		/* An anonymous user may do nothing with roles. */
		return error_set(err, ERROR_UNAUTHORIZED,
		    "You have to be logged in and not anonymous "
		    "to perform this request");
	}
}

void
auth_execute(struct execution *execution)
{
	struct error err;

	auth_refuse(execution, &err);
	execution_done(execution, &err);
}
