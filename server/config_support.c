/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/bytes.h"
#include "base/log.h"
#include "cluster/snitch.h"
#include "server/config_inert.h"
#include "server/config_internal.h"

/*
 * What a configuration may ask for and this version does not have. What somebody relies on for safety
 * (a password, encryption, an audit trail) is refused; what merely tunes something that is not there is
 * named in one warning.
 */

/* Class names come with or without their package. */
static bool
config_is_class(const char *value, const char *class_name)
{
	const char *dot;

	if (value == NULL || *value == '\0')
		return true; /* the default */
	dot = strrchr(value, '.');
	return strcmp(dot != NULL ? dot + 1 : value, class_name) == 0;
}

static int
config_refuse(struct error *err, const char *key, const char *value, const char *only)
{
	return error_set(err, ERROR_CONFIG,
	    "%s: '%s' is not supported by this version of Helenus: it must be %s", key, value,
	    only);
}

static int
config_check_classes(const struct config *config, struct error *err)
{
	const struct {
		const char *key, *value, *only;
	} classes[] = {
	    {"authenticator", config->authenticator, "AllowAllAuthenticator"},
	    {"authorizer", config->authorizer, "AllowAllAuthorizer"},
	    {"role_manager", config->role_manager, "CassandraRoleManager"},
	    {"network_authorizer", config->network_authorizer, "AllowAllNetworkAuthorizer"},
	    {"seed_provider.class_name", config->seed_provider__class_name, "SimpleSeedProvider"},
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (!config_is_class(classes[i].value, classes[i].only))
			return config_refuse(
			    err, classes[i].key, classes[i].value, classes[i].only);
	return 0;
}

static bool
config_differs(
    const struct config *config, const struct config *defaults, const struct config_key *key)
{
	const char *a = (const char *)config + key->offset;
	const char *b = (const char *)defaults + key->offset;

	switch (key->kind) {
	case CONFIG_KIND_BOOL:
		return *(const bool *)a != *(const bool *)b;
	case CONFIG_KIND_INT:
		return *(const int32_t *)a != *(const int32_t *)b;
	case CONFIG_KIND_DOUBLE:
		return memcmp(a, b, sizeof(double)) != 0;
	case CONFIG_KIND_STRING: {
		const char *left = *(char *const *)a, *right = *(char *const *)b;

		return left != NULL && *left != '\0' && (right == NULL || strcmp(left, right) != 0);
	}
	case CONFIG_KIND_LIST:
		return ((const struct config_list *)a)->count !=
		    ((const struct config_list *)b)->count;
	default:
		return *(const int64_t *)a != *(const int64_t *)b;
	}
}

/* One warning that names the keys that were set to no effect. */
static void
config_warn_inert(const struct config *config)
{
#define CONFIG_INERT_NAME(field) #field,
	static const char *const names[] = {CONFIG_INERT_KEYS(CONFIG_INERT_NAME)};
	struct config defaults;
	struct buffer list;

	config_init(&defaults);
	buffer_init(&list);
	for (size_t i = 0; i < config_key_count; i++) {
		char name[CONFIG_NAME_MAX];
		bool is_inert = false;

		if (!config->is_set[i] || !config_differs(config, &defaults, &config_keys[i]))
			continue;
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]) && !is_inert; k++)
			is_inert = strcmp(config_keys[i].field, names[k]) == 0;
		if (!is_inert)
			continue;
		config_key_name(&config_keys[i], name);
		buffer_printf(&list, "%s%s", list.size > 0 ? ", " : "", name);
	}
	if (list.size > 0)
		log_warn("%s: these keys have no effect in this version of Helenus: %.*s",
		    config->path == NULL ? "configuration" : config->path, (int)list.size,
		    (const char *)list.data);
	buffer_fini(&list);
	config_fini(&defaults);
}

/* What a user who asks for Cassandra's newer Paxos gets. */
static void
config_warn_paxos(const struct config *config)
{
	if (strncmp(config->paxos_variant, "v2", 2) == 0)
		log_warn(
		    "paxos_variant: %s: conditional statements and serial reads give the same "
		    "results as "
		    "there, but run in the rounds of v1: the read follows the promises instead of "
		    "coming with them. What is left unfinished is finished by repair and by "
		    "itself, "
		    "as v2 needs it",
		    config->paxos_variant);
	if (strcmp(config->paxos_state_purging, "legacy") != 0)
		log_warn(
		    "paxos_state_purging: %s: the state of Paxos expires as with 'legacy', after "
		    "gc_grace_seconds of its table and three hours at least; repair does not purge "
		    "it",
		    config->paxos_state_purging);
}

int
config_check_support(const struct config *config, struct error *err)
{
	enum snitch_kind snitch;

	if (config_check_classes(config, err) != 0)
		return -1;
	if (config->audit_logging_options__enabled)
		return config_refuse(err, "audit_logging_options.enabled", "true", "false");
	if (config->transparent_data_encryption_options__enabled)
		return config_refuse(
		    err, "transparent_data_encryption_options.enabled", "true", "false");
	if (config->cdc_enabled)
		return config_refuse(err, "cdc_enabled", "true", "false");
	if (config->server_encryption_options__legacy_ssl_storage_port_enabled)
		return config_refuse(err,
		    "server_encryption_options.legacy_ssl_storage_port_enabled", "true", "false");
	if (config->internode_authenticator != NULL && *config->internode_authenticator != '\0' &&
	    strstr(config->internode_authenticator, "AllowAllInternodeAuthenticator") == NULL)
		return config_refuse(err, "internode_authenticator",
		    config->internode_authenticator, "AllowAllInternodeAuthenticator");
	if (snitch_parse_kind(config->endpoint_snitch, &snitch, err) != 0)
		return -1;
	config_warn_inert(config);
	config_warn_paxos(config);
	return 0;
}
