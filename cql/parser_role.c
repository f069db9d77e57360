/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cql/parser_core.h"

/* ---- Options of roles ---- */

static int
parser_multiple_option(struct parser *p, const char *name)
{
	return parser_refuse(p, ERROR_SYNTAX, "Multiple definition for property '%s'", name);
}

static int
parser_boolean_option(struct parser *p, const char *name, enum ast_tristate *out)
{
	char first;

	parser_take(p);
	if (parser_expect(p, TOKEN_EQUAL) != 0)
		return -1;
	if (parser_peek(p, 1) != TOKEN_BOOLEAN)
		return parser_mismatch(p, "BOOLEAN");
	if (*out != AST_UNSET)
		return parser_multiple_option(p, name);
	first = p->text[parser_take(p)->start];
	*out = (first | 32) == 't' ? AST_TRUE : AST_FALSE;
	return 0;
}

/* ( HASHED )? PASSWORD '='? string; `has_equal`: roles write it, users do not. */
static int
parser_password(struct parser *p, bool has_equal, struct statement_role *role)
{
	bool is_hashed = parser_accept(p, K_HASHED);
	struct ast_string *out = is_hashed ? &role->hashed_password : &role->password;
	struct ast_string value;

	if (parser_expect(p, K_PASSWORD) != 0 ||
	    (has_equal && parser_expect(p, TOKEN_EQUAL) != 0) || parser_string(p, &value) != 0)
		return -1;
	if (out->text != NULL)
		return parser_multiple_option(p, is_hashed ? "HASHED_PASSWORD" : "PASSWORD");
	*out = value;
	return 0;
}

/* { 'a', 'b' } */
static int
parser_string_set(struct parser *p, struct ast_string **items, size_t *count)
{
	if (parser_expect(p, TOKEN_OPEN_BRACE) != 0)
		return -1;
	do {
		struct ast_string *item = PARSER_PUSH(p, *items, *count);

		if (item == NULL || parser_string(p, item) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return parser_expect(p, TOKEN_CLOSE_BRACE);
}

static int
parser_set_access(struct parser *p, enum ast_access_kind kind, enum ast_access_kind *out)
{
	if (*out != AST_ACCESS_UNSET && *out != kind)
		return parser_refuse(
		    p, ERROR_SYNTAX, "ACCESS is given both for all and for some of them");
	*out = kind;
	return 0;
}

/* ACCESS FROM ( ALL CIDRS | CIDRS { ... } ), from 5.0. */
static int
parser_cidr_access(struct parser *p, struct statement_role *role)
{
	bool is_all;

	parser_take(p);
	is_all = parser_accept(p, K_ALL);
	if (!parser_is_word(p, 1, "cidrs"))
		return parser_mismatch(p, "K_CIDRS");
	parser_take(p);
	if (parser_set_access(p, is_all ? AST_ACCESS_ALL : AST_ACCESS_LIST, &role->cidr_access) !=
	    0)
		return -1;
	return is_all ? 0 : parser_string_set(p, &role->cidrs, &role->cidr_count);
}

/* ACCESS TO ( ALL DATACENTERS | DATACENTERS { ... } ) */
static int
parser_access(struct parser *p, struct statement_role *role)
{
	bool is_all;

	if (parser_peek(p, 2) == K_FROM) {
		parser_take(p);
		return parser_cidr_access(p, role);
	}
	/* Which of the forms it is, is settled at ACCESS. */
	if (parser_peek(p, 2) != K_TO)
		return parser_no_viable(p, 2);
	if (parser_peek(p, 3) != K_ALL && parser_peek(p, 3) != K_DATACENTERS)
		return parser_no_viable(p, 3);
	parser_take(p);
	parser_take(p);
	is_all = parser_accept(p, K_ALL);
	if (parser_expect(p, K_DATACENTERS) != 0 ||
	    parser_set_access(
		p, is_all ? AST_ACCESS_ALL : AST_ACCESS_LIST, &role->datacenter_access) != 0)
		return -1;
	return is_all ? 0 : parser_string_set(p, &role->datacenters, &role->datacenter_count);
}

static int
parser_role_options(struct parser *p, struct statement_role *role)
{
	bool has_options = role->has_options;

	parser_take(p);
	if (parser_expect(p, TOKEN_EQUAL) != 0 ||
	    parser_property_map(p, &role->options, &role->option_count) != 0)
		return -1;
	role->has_options = true;
	return has_options ? parser_multiple_option(p, "OPTIONS") : 0;
}

static int
parser_role_option(struct parser *p, struct statement_role *role)
{
	switch (parser_peek(p, 1)) {
	case K_PASSWORD:
	case K_HASHED:
		return parser_password(p, true, role);
	case K_OPTIONS:
		return parser_role_options(p, role);
	case K_SUPERUSER:
		return parser_boolean_option(p, "SUPERUSER", &role->is_superuser);
	case K_LOGIN:
		return parser_boolean_option(p, "LOGIN", &role->is_login);
	case K_ACCESS:
		return parser_access(p, role);
	default:
		return parser_no_viable(p, 1);
	}
}

/* ---- CREATE, ALTER, DROP ROLE and USER ---- */

static int
parser_user_name(struct parser *p, struct ast_identifier *out)
{
	switch (parser_peek(p, 1)) {
	case TOKEN_IDENT:
		/* Unlike a role's, the name keeps its case. */
		out->is_quoted = false;
		out->at = parser_position(p);
		return parser_token_text(p, parser_take(p), false, &out->text);
	case TOKEN_STRING:
		return parser_role_name(p, out);
	case TOKEN_QUOTED_NAME:
		return parser_refuse(p, ERROR_SYNTAX,
		    "Quoted strings are are not supported for user names and USER is deprecated, "
		    "please use ROLE");
	default:
		return parser_no_viable(p, 1);
	}
}

/* What follows the name of a user. */
static int
parser_user_options(struct parser *p, struct statement_role *role)
{
	if (parser_accept(p, K_WITH)) {
		if (parser_peek(p, 1) != K_PASSWORD && parser_peek(p, 1) != K_HASHED)
			return parser_no_viable(p, 1);
		if (parser_password(p, false, role) != 0)
			return -1;
	}
	if (parser_accept(p, K_SUPERUSER))
		role->is_superuser = AST_TRUE;
	else if (parser_accept(p, K_NOSUPERUSER))
		role->is_superuser = AST_FALSE;
	return 0;
}

static int
parser_name_and_options(struct parser *p, struct statement_role *role)
{
	if ((role->is_user ? parser_user_name(p, &role->name) : parser_role_name(p, &role->name)) !=
	    0)
		return -1;
	role->is_superuser = AST_UNSET;
	role->is_login = AST_UNSET;
	if (role->is_user) {
		if (parser_user_options(p, role) != 0)
			return -1;
	} else if (parser_accept(p, K_WITH)) {
		do {
			if (parser_role_option(p, role) != 0)
				return -1;
		} while (parser_accept(p, K_AND));
	}
	if (role->password.text != NULL && role->hashed_password.text != NULL)
		return parser_refuse(p, ERROR_SYNTAX,
		    "Options 'password' and 'hashed password' are mutually exclusive");
	return 0;
}

int
parser_create_role(struct parser *p, struct statement *out)
{
	struct statement_role *role = &out->role;

	out->kind = STATEMENT_CREATE_ROLE;
	role->is_user = parser_take(p)->type == K_USER;
	if (parser_if_not_exists(p, &role->if_not_exists) != 0 ||
	    parser_name_and_options(p, role) != 0)
		return -1;
	if (role->is_superuser == AST_UNSET)
		role->is_superuser = AST_FALSE;
	if (role->is_login == AST_UNSET)
		role->is_login = role->is_user ? AST_TRUE : AST_FALSE;
	return 0;
}

int
parser_alter_role(struct parser *p, struct statement *out)
{
	out->kind = STATEMENT_ALTER_ROLE;
	out->role.is_user = parser_take(p)->type == K_USER;
	if (parser_if_exists(p, &out->role.if_exists) != 0)
		return -1;
	return parser_name_and_options(p, &out->role);
}

int
parser_drop_role(struct parser *p, struct statement *out)
{
	out->kind = STATEMENT_DROP_ROLE;
	out->role.is_user = parser_take(p)->type == K_USER;
	if (parser_if_exists(p, &out->role.if_exists) != 0)
		return -1;
	return out->role.is_user ? parser_user_name(p, &out->role.name)
				 : parser_role_name(p, &out->role.name);
}

/* ---- Permissions ---- */

/* The permission that the token `ahead` names, or 0. */
static uint32_t
parser_permission_at(struct parser *p, size_t ahead)
{
	switch (parser_peek(p, ahead)) {
	case K_CREATE:
		return AST_PERMISSION_CREATE;
	case K_ALTER:
		return AST_PERMISSION_ALTER;
	case K_DROP:
		return AST_PERMISSION_DROP;
	case K_SELECT:
		return AST_PERMISSION_SELECT;
	case K_MODIFY:
		return AST_PERMISSION_MODIFY;
	case K_AUTHORIZE:
		return AST_PERMISSION_AUTHORIZE;
	case K_DESCRIBE:
		return AST_PERMISSION_DESCRIBE;
	case K_EXECUTE:
		return AST_PERMISSION_EXECUTE;
	default:
		if (parser_is_word(p, ahead, "unmask"))
			return AST_PERMISSION_UNMASK;
		if (parser_is_word(p, ahead, "select_masked"))
			return AST_PERMISSION_SELECT_MASKED;
		return 0;
	}
}

static int
parser_permissions(struct parser *p, uint32_t *out)
{
	uint32_t permission;

	if (parser_accept(p, K_ALL)) {
		parser_accept(p, K_PERMISSIONS);
		*out = AST_PERMISSIONS_ALL;
		return 0;
	}
	do {
		permission = parser_permission_at(p, 1);
		if (permission == 0)
			return parser_mismatch(p, "set null");
		*out |= permission;
		parser_take(p);
		parser_accept(p, K_PERMISSION);
	} while (parser_accept(p, TOKEN_COMMA));
	return 0;
}

/* GRANT x ...: x is a permission, not a role. The words of 5.0 and ALL are roles' names too. */
static bool
parser_is_permissions(struct parser *p, enum lexer_token_type end)
{
	if (parser_peek(p, 2) == K_ALL || parser_peek(p, 2) == TOKEN_IDENT)
		return (parser_peek(p, 2) == K_ALL || parser_permission_at(p, 2) != 0) &&
		    parser_peek(p, 3) != end;
	return parser_permission_at(p, 2) != 0;
}

/* ---- Resources ---- */

static int
parser_keyspace_resource(struct parser *p, enum ast_resource_kind kind, struct ast_resource *out)
{
	out->kind = kind;
	out->name.at = parser_position(p);
	return parser_keyspace_name(p, &out->name.keyspace);
}

static int
parser_all_resource(struct parser *p, struct ast_resource *out)
{
	parser_take(p);
	switch (parser_take(p)->type) {
	case K_KEYSPACES:
		out->kind = AST_RESOURCE_ALL_KEYSPACES;
		return 0;
	case K_ROLES:
		out->kind = AST_RESOURCE_ALL_ROLES;
		return 0;
	case K_MBEANS:
		out->kind = AST_RESOURCE_ALL_MBEANS;
		return 0;
	case K_TABLES:
		if (parser_expect(p, K_IN) != 0 || parser_expect(p, K_KEYSPACE) != 0)
			return -1;
		return parser_keyspace_resource(p, AST_RESOURCE_ALL_TABLES_IN_KEYSPACE, out);
	default:
		out->kind = AST_RESOURCE_ALL_FUNCTIONS;
		if (!parser_accept(p, K_IN))
			return 0;
		if (parser_expect(p, K_KEYSPACE) != 0)
			return -1;
		return parser_keyspace_resource(p, AST_RESOURCE_ALL_FUNCTIONS_IN_KEYSPACE, out);
	}
}

/* A name is enough for Java's ObjectName if it reads domain:key=value[,key=value]*. */
static bool
parser_is_object_name(struct ast_string name)
{
	const char *colon = memchr(name.text, ':', name.length);
	const char *end = name.text + name.length, *at;

	if (colon == NULL || colon + 1 == end)
		return false;
	for (at = colon + 1; at < end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma == NULL ? end : comma;
		const char *equal = memchr(at, '=', (size_t)(stop - at));

		if (!(stop - at == 1 && *at == '*') && (equal == NULL || equal == at))
			return false;
		at = stop + 1;
		if (comma != NULL && at == end)
			return false;
	}
	return true;
}

static int
parser_mbean(struct parser *p, bool is_pattern, struct ast_resource *out)
{
	struct ast_string name;

	out->kind = is_pattern ? AST_RESOURCE_MBEANS : AST_RESOURCE_MBEAN;
	parser_take(p);
	out->name.at = parser_position(p);
	if (parser_string(p, &name) != 0)
		return -1;
	out->name.name = name;
	if (name.length == 0)
		return parser_refuse(p, ERROR_SYNTAX, "Empty JMX object name supplied");
	if (slice_equal_string(ast_slice(name), "*:*"))
		return parser_refuse(
		    p, ERROR_SYNTAX, "Please use ALL MBEANS instead of wildcard pattern");
	if (!parser_is_object_name(name))
		return parser_refuse(
		    p, ERROR_SYNTAX, "%s is not a valid JMX object name", name.text);
	if (is_pattern && memchr(name.text, '*', name.length) == NULL &&
	    memchr(name.text, '?', name.length) == NULL)
		return parser_refuse(p, ERROR_SYNTAX,
		    "Plural form used, but non-pattern JMX object name specified (%s)", name.text);
	return 0;
}

static int
parser_function_resource(struct parser *p, struct ast_resource *out)
{
	out->kind = AST_RESOURCE_FUNCTION;
	parser_take(p);
	if (parser_function_name(p, &out->name) != 0 || parser_expect(p, TOKEN_OPEN) != 0 ||
	    parser_type_list(p, &out->argument_types) != 0)
		return -1;
	if (out->name.keyspace.text == NULL)
		return parser_refuse(p, ERROR_INVALID,
		    "In this context function name must be explictly qualified by a keyspace");
	return 0;
}

static int
parser_role_resource(struct parser *p, struct ast_resource *out)
{
	struct ast_identifier name = {0};

	out->kind = AST_RESOURCE_ROLE;
	parser_take(p);
	if (parser_role_name(p, &name) != 0)
		return -1;
	out->name.name = name.text;
	out->name.at = name.at;
	return 0;
}

static bool
parser_is_all_resource(enum lexer_token_type type)
{
	return type == K_KEYSPACES || type == K_TABLES || type == K_ROLES || type == K_FUNCTIONS ||
	    type == K_MBEANS;
}

/* What may follow a table's name in GRANT, REVOKE and LIST. */
static bool
parser_may_follow_resource(enum lexer_token_type type)
{
	return type == TOKEN_DOT || type == K_TO || type == K_FROM || type == K_OF ||
	    type == K_NORECURSIVE || type == TOKEN_SEMICOLON || type == TOKEN_EOF;
}

static bool
parser_is_name(enum lexer_token_type type)
{
	return type == TOKEN_STRING || type == TOKEN_QMARK || parser_is_ident(type);
}

static int
parser_resource(struct parser *p, struct ast_resource *out)
{
	enum lexer_token_type type = parser_peek(p, 1);

	switch (type) {
	case K_ALL:
		if (parser_is_all_resource(parser_peek(p, 2)))
			return parser_all_resource(p, out);
		if (!parser_may_follow_resource(parser_peek(p, 2)))
			return parser_no_viable(p, 2);
		break;
	case K_KEYSPACE:
		parser_take(p);
		return parser_keyspace_resource(p, AST_RESOURCE_KEYSPACE, out);
	case K_ROLE:
		if (parser_is_name(parser_peek(p, 2)))
			return parser_role_resource(p, out);
		break;
	case K_FUNCTION:
		if (parser_is_name(parser_peek(p, 2)) || parser_peek(p, 2) == K_TOKEN)
			return parser_function_resource(p, out);
		break;
	case K_MBEAN:
	case K_MBEANS:
		if (parser_peek(p, 2) == TOKEN_STRING)
			return parser_mbean(p, type == K_MBEANS, out);
		if (!parser_may_follow_resource(parser_peek(p, 2)))
			return parser_no_viable(p, 2);
		break;
	default:
		break;
	}
	/* Otherwise those words name a table. */
	out->kind = AST_RESOURCE_TABLE;
	if (!parser_accept(p, K_COLUMNFAMILY) && !parser_is_ident(type) && type != TOKEN_QMARK)
		return parser_no_viable(p, 1);
	return parser_table_name(p, &out->name);
}

/* Permissions that make sense on a resource, and its class as Cassandra's refusal names it. */
static uint32_t
parser_applicable(enum ast_resource_kind kind, const char **name)
{
	const uint32_t masking = AST_PERMISSION_UNMASK | AST_PERMISSION_SELECT_MASKED;
	const uint32_t data = AST_PERMISSION_ALTER | AST_PERMISSION_DROP | AST_PERMISSION_SELECT |
	    AST_PERMISSION_MODIFY | AST_PERMISSION_AUTHORIZE | masking;
	const uint32_t function = AST_PERMISSION_ALTER | AST_PERMISSION_DROP |
	    AST_PERMISSION_AUTHORIZE | AST_PERMISSION_EXECUTE;

	switch (kind) {
	case AST_RESOURCE_ALL_KEYSPACES:
	case AST_RESOURCE_KEYSPACE:
	case AST_RESOURCE_ALL_TABLES_IN_KEYSPACE:
		*name = "DataResource";
		return data | AST_PERMISSION_CREATE;
	case AST_RESOURCE_TABLE:
		*name = "DataResource";
		return data;
	case AST_RESOURCE_ALL_ROLES:
		*name = "RoleResource";
		return AST_PERMISSION_CREATE | AST_PERMISSION_ALTER | AST_PERMISSION_DROP |
		    AST_PERMISSION_AUTHORIZE | AST_PERMISSION_DESCRIBE;
	case AST_RESOURCE_ROLE:
		*name = "RoleResource";
		return AST_PERMISSION_ALTER | AST_PERMISSION_DROP | AST_PERMISSION_AUTHORIZE;
	case AST_RESOURCE_ALL_FUNCTIONS:
	case AST_RESOURCE_ALL_FUNCTIONS_IN_KEYSPACE:
		*name = "FunctionResource";
		return function | AST_PERMISSION_CREATE;
	case AST_RESOURCE_FUNCTION:
		*name = "FunctionResource";
		return function;
	default:
		*name = "JMXResource";
		return AST_PERMISSION_AUTHORIZE | AST_PERMISSION_DESCRIBE | AST_PERMISSION_EXECUTE |
		    AST_PERMISSION_SELECT | AST_PERMISSION_MODIFY;
	}
}

/* ---- GRANT, REVOKE, LIST ---- */

/* permissions ON resource TO role | role TO role; for REVOKE `direction` is K_FROM. */
static int
parser_grant_or_revoke(struct parser *p, enum lexer_token_type direction,
    enum statement_kind permissions_kind, enum statement_kind role_kind, struct statement *out)
{
	struct statement_grant *grant = &out->grant;
	const char *resource;
	uint32_t applicable;

	if (parser_peek(p, 2) == K_ALL && parser_peek(p, 3) != K_ON &&
	    parser_peek(p, 3) != K_PERMISSIONS && parser_peek(p, 3) != direction)
		return parser_no_viable(p, 3);
	if (!parser_is_permissions(p, direction)) {
		out->kind = role_kind;
		if (!parser_is_name(parser_peek(p, 2)))
			return parser_no_viable(p, 2);
		parser_take(p);
		if (parser_role_name(p, &grant->role) != 0 || parser_expect(p, direction) != 0)
			return -1;
		return parser_role_name(p, &grant->grantee);
	}
	out->kind = permissions_kind;
	parser_take(p);
	if (parser_permissions(p, &grant->permissions) != 0 || parser_expect(p, K_ON) != 0 ||
	    parser_resource(p, &grant->resource) != 0 || parser_expect(p, direction) != 0 ||
	    parser_role_name(p, &grant->grantee) != 0)
		return -1;
	applicable = parser_applicable(grant->resource.kind, &resource);
	grant->permissions &= applicable;
	if (grant->permissions == 0)
		return parser_refuse(p, ERROR_SYNTAX,
		    "Resource type %s does not support any of the requested permissions", resource);
	return 0;
}

int
parser_grant(struct parser *p, struct statement *out)
{
	return parser_grant_or_revoke(
	    p, K_TO, STATEMENT_GRANT_PERMISSIONS, STATEMENT_GRANT_ROLE, out);
}

int
parser_revoke(struct parser *p, struct statement *out)
{
	return parser_grant_or_revoke(
	    p, K_FROM, STATEMENT_REVOKE_PERMISSIONS, STATEMENT_REVOKE_ROLE, out);
}

/* ( OF role )? ( NORECURSIVE )? */
static int
parser_list_of(struct parser *p, struct statement_grant *out)
{
	if (parser_accept(p, K_OF) && parser_role_name(p, &out->grantee) != 0)
		return -1;
	out->is_recursive = !parser_accept(p, K_NORECURSIVE);
	return 0;
}

int
parser_list(struct parser *p, struct statement *out)
{
	struct statement_grant *list = &out->grant;

	switch (parser_peek(p, 2)) {
	case K_USERS:
		out->kind = STATEMENT_LIST_USERS;
		parser_take(p);
		parser_take(p);
		return 0;
	case K_ROLES:
		out->kind = STATEMENT_LIST_ROLES;
		parser_take(p);
		parser_take(p);
		return parser_list_of(p, list);
	default:
		if (parser_is_word(p, 2, "superusers")) {
			out->kind = STATEMENT_LIST_SUPERUSERS;
			parser_take(p);
			parser_take(p);
			return 0;
		}
		if (parser_peek(p, 2) != K_ALL && parser_permission_at(p, 2) == 0)
			return parser_no_viable(p, 2);
	}
	out->kind = STATEMENT_LIST_PERMISSIONS;
	parser_take(p);
	if (parser_permissions(p, &list->permissions) != 0)
		return -1;
	if (parser_accept(p, K_ON) && parser_resource(p, &list->resource) != 0)
		return -1;
	return parser_list_of(p, list);
}

/* ---- Identities, from 5.0 ---- */

static int
parser_identity_name(struct parser *p, struct ast_string *out)
{
	enum lexer_token_type type = parser_peek(p, 1);

	if (type == TOKEN_QUOTED_NAME)
		return parser_refuse(
		    p, ERROR_SYNTAX, "Quoted strings are are not supported for identity");
	if (type != TOKEN_IDENT && type != TOKEN_STRING)
		return parser_no_viable(p, 1);
	return parser_token_text(p, parser_take(p), false, out);
}

int
parser_add_identity(struct parser *p, struct statement *out)
{
	out->kind = STATEMENT_ADD_IDENTITY;
	parser_take(p);
	parser_take(p);
	if (parser_if_not_exists(p, &out->identity.if_not_exists) != 0 ||
	    parser_identity_name(p, &out->identity.identity) != 0 || parser_expect(p, K_TO) != 0 ||
	    parser_expect(p, K_ROLE) != 0)
		return -1;
	return parser_identity_name(p, &out->identity.role);
}

int
parser_drop_identity(struct parser *p, struct statement *out)
{
	out->kind = STATEMENT_DROP_IDENTITY;
	parser_take(p);
	if (parser_if_exists(p, &out->identity.if_exists) != 0)
		return -1;
	return parser_identity_name(p, &out->identity.identity);
}
