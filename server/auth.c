/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles and permissions: AllowAllAuthenticator and AllowAllAuthorizer, which know neither. The texts and their order are
 * those of Cassandra under the same configuration: who asks may do all with data, is no superuser, and is nobody; and what
 * the authenticator does not know (passwords) is no option of a role.
 */
#include <string.h>
#include "cluster/topology.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/node.h"

static int
auth_refuse_anonymous(struct error *err)
{
	return error_set(err, ERROR_UNAUTHORIZED,
	    "You have to be logged in and not anonymous to perform this request");
}

/* What Cassandra asks before it looks at the statement. */
static int
auth_check_superuser(const struct statement_role *role, bool is_alter, struct error *err)
{
	if (is_alter && role->is_superuser != AST_UNSET)
		return error_set(err, ERROR_UNAUTHORIZED,
		    "Only superusers are allowed to alter superuser status");
	if (is_alter && role->datacenter_access != AST_ACCESS_UNSET)
		return error_set(err, ERROR_UNAUTHORIZED,
		    "Only superusers are allowed to alter access to datacenters.");
	if (!is_alter && role->is_superuser == AST_TRUE)
		return error_set(err, ERROR_UNAUTHORIZED,
		    "Only superusers can create a role with superuser status");
	return 0;
}

static int
auth_check_options(const struct statement_role *role, struct error *err)
{
	const char *option = role->password.text != NULL ? "PASSWORD"
	    : role->hashed_password.text != NULL         ? "HASHED_PASSWORD"
	    : role->has_options                          ? "OPTIONS"
							 : NULL;

	if (option == NULL)
		return 0;
	return error_set(err, ERROR_INVALID,
	    "org.apache.cassandra.auth.CassandraRoleManager doesn't support %s", option);
}

static bool
auth_is_datacenter(const char *const *datacenters, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(datacenters[i], name) == 0)
			return true;
	return false;
}

static int
auth_check_datacenters(
    const struct execution *execution, const struct statement_role *role, struct error *err)
{
	struct topology_holder *holder = execution->executor->node->cluster->topology;
	const struct topology *topology = topology_acquire(holder);
	const char *const *datacenters;
	uint32_t count = topology_datacenters(topology, &datacenters);
	struct buffer unknown;
	int rc = 0;

	buffer_init(&unknown);
	for (size_t i = 0; i < role->datacenter_count; i++)
		if (!auth_is_datacenter(datacenters, count, role->datacenters[i].text))
			buffer_printf(&unknown, "%s%s", unknown.size > 0 ? ", " : "",
			    role->datacenters[i].text);
	if (unknown.size > 0)
		rc = error_set(err, ERROR_INVALID,
		    "Invalid value(s) for DATACENTERS '[%.*s]',All values must be valid "
		    "datacenters",
		    (int)unknown.size, (const char *)unknown.data);
	buffer_fini(&unknown);
	topology_release(holder, topology);
	return rc;
}

static int
auth_refuse_role(const struct execution *execution, struct error *err)
{
	const struct statement_role *role = &execution->plan->statement->role;
	bool is_alter = execution->plan->kind == STATEMENT_ALTER_ROLE;

	if (auth_check_superuser(role, is_alter, err) != 0 || auth_check_options(role, err) != 0 ||
	    auth_check_datacenters(execution, role, err) != 0)
		return -1;
	if (!is_alter && *role->name.text.text == '\0')
		return error_set(err, ERROR_INVALID, "Role name can't be an empty string");
	if (is_alter && role->is_login == AST_UNSET)
		return error_set(err, ERROR_INVALID, "ALTER [ROLE|USER] can't be empty");
	return auth_refuse_anonymous(err);
}

static int
auth_refuse(const struct execution *execution, struct error *err)
{
	switch (execution->plan->kind) {
	case STATEMENT_ADD_IDENTITY:
	case STATEMENT_DROP_IDENTITY:
		return error_set(err, ERROR_INVALID, "Identities are not supported");
	case STATEMENT_CREATE_ROLE:
	case STATEMENT_ALTER_ROLE:
		return auth_refuse_role(execution, err);
	default:
		return auth_refuse_anonymous(err);
	}
}

void
auth_execute(struct execution *execution)
{
	struct error err;

	auth_refuse(execution, &err);
	execution_done(execution, &err);
}
