/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/snitch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/properties.h"
#include "cluster/ranks.h"
#include "cluster/snitch_internal.h"

static const char snitch_package[] = "org.apache.cassandra.locator.";

#define SNITCH_RACKDC_FILE "cassandra-rackdc.properties"
#define SNITCH_TOPOLOGY_FILE "cassandra-topology.properties"
#define SNITCH_UNKNOWN_DATACENTER "UNKNOWN_DC"
#define SNITCH_UNKNOWN_RACK "UNKNOWN_RACK"

enum { SNITCH_FILE_MAX = 16 * 1024 * 1024 };

const struct snitch_config snitch_config_default = {
    .endpoint_snitch = "SimpleSnitch",
    .is_dynamic = true,
    .badness_threshold = 1.0,
    .update_interval_ns = 100000000ULL,
    .reset_interval_ns = 600000000000ULL,
};

/* ---- Kinds --------------------------------------------------------------------------------- */

static const char *const snitch_kind_names[] = {
    "org.apache.cassandra.locator.SimpleSnitch",
    "org.apache.cassandra.locator.GossipingPropertyFileSnitch",
    "org.apache.cassandra.locator.PropertyFileSnitch",
    "org.apache.cassandra.locator.RackInferringSnitch",
};

static bool
snitch_is_cloud(const char *name)
{
	static const char *const clouds[] = {"Ec2Snitch", "Ec2MultiRegionSnitch",
	    "GoogleCloudSnitch", "AzureSnitch", "AlibabaCloudSnitch", "CloudstackSnitch"};

	for (size_t i = 0; i < sizeof(clouds) / sizeof(clouds[0]); i++) {
		if (strcmp(name, clouds[i]) == 0)
			return true;
	}
	return false;
}

int
snitch_parse_kind(const char *endpoint_snitch, enum snitch_kind *out, struct error *err)
{
	size_t package = sizeof(snitch_package) - 1;
	const char *name = endpoint_snitch;

	if (strncmp(name, snitch_package, package) == 0)
		name += package;
	for (size_t i = 0; i < sizeof(snitch_kind_names) / sizeof(snitch_kind_names[0]); i++) {
		if (strcmp(name, snitch_kind_names[i] + package) == 0) {
			*out = (enum snitch_kind)i;
			return 0;
		}
	}
	if (snitch_is_cloud(name))
		return error_set(err, ERROR_CONFIG,
		    "endpoint_snitch: %s is not supported, for no cloud's metadata service is "
		    "asked: use GossipingPropertyFileSnitch and write the region and zone as dc "
		    "and rack into " SNITCH_RACKDC_FILE,
		    name);
	return error_set(err, ERROR_CONFIG,
	    "endpoint_snitch: Unable to find snitch class '%s%s': it must be SimpleSnitch, "
	    "GossipingPropertyFileSnitch, PropertyFileSnitch or RackInferringSnitch",
	    strchr(name, '.') == NULL ? snitch_package : "", name);
}

/* ---- Names --------------------------------------------------------------------------------- */

const char *
snitch_intern(struct snitch *snitch, const char *name)
{
	const char *found = NULL;

	lock_take(&snitch->lock);
	for (uint32_t i = 0; found == NULL && i < snitch->name_count; i++) {
		if (strcmp(snitch->names[i], name) == 0)
			found = snitch->names[i];
	}
	if (found == NULL) {
		snitch->names =
		    xrealloc(snitch->names, (snitch->name_count + 1) * sizeof(*snitch->names));
		found = snitch->names[snitch->name_count++] = xstrdup(name);
	}
	lock_drop(&snitch->lock);
	return found;
}

/* ---- Property files ------------------------------------------------------------------------ */

/* Missing is a result: *is_there false. */
static int
snitch_read_file(struct snitch *snitch, const char *folder, const char *name, property_fn each,
    bool *is_there, struct error *err)
{
	char *path = xasprintf("%s/%s", folder == NULL ? "." : folder, name);
	struct buffer content;
	struct file_stat stat;
	int rc;

	buffer_init(&content);
	rc = files_stat(snitch->env->files, path, &stat, err);
	*is_there = rc == 0 && stat.kind != FILE_MISSING;
	if (*is_there)
		rc = files_read_all(snitch->env->files, path, SNITCH_FILE_MAX, &content, err);
	if (rc == 0 && *is_there)
		rc = properties_parse(buffer_slice(&content), path, each, snitch, err);
	buffer_fini(&content);
	free(path);
	return rc;
}

/*
 * The values that are there already (the keys dc and rack of the configuration) stay. dc_suffix is the cloud
 * snitches' alone, as in Cassandra; unknown keys pass, as any reader of properties lets them.
 */
static int
snitch_rackdc_property(
    void *argument, const char *key, const char *value, unsigned line, struct error *err)
{
	struct snitch *snitch = argument;

	(void)line;
	(void)err;
	if (strcmp(key, "dc") == 0 && snitch->datacenter == NULL && *value != '\0')
		snitch->datacenter = xstrdup(value);
	else if (strcmp(key, "rack") == 0 && snitch->rack == NULL && *value != '\0')
		snitch->rack = xstrdup(value);
	else if (strcmp(key, "prefer_local") == 0)
		snitch->prefers_local = strcasecmp(value, "true") == 0;
	return 0;
}

/* "DC1:RAC1"; what has no colon is "default" in both, as Cassandra reads it. */
static void
snitch_split_place(
    struct snitch *snitch, const char *value, const char **datacenter, const char **rack)
{
	const char *colon = strchr(value, ':');
	char *first, *second;

	if (colon == NULL || colon[1] == '\0') {
		*datacenter = *rack = snitch_intern(snitch, "default");
		return;
	}
	first = xstrndup(value, (size_t)(colon - value));
	second = xstrndup(colon + 1, strcspn(colon + 1, ":"));
	first[strcspn(first, " \t")] = '\0';
	*datacenter = snitch_intern(snitch, first);
	*rack = snitch_intern(snitch, second + strspn(second, " \t"));
	free(first);
	free(second);
}

static int
snitch_topology_property(
    void *argument, const char *key, const char *value, unsigned line, struct error *err)
{
	struct snitch *snitch = argument;
	struct snitch_place place;

	(void)line;
	if (strcmp(key, "default") == 0) {
		snitch_split_place(
		    snitch, value, &snitch->default_datacenter, &snitch->default_rack);
		return 0;
	}
	if (endpoint_parse(key, 1, &place.endpoint, err) != 0) {
		if (err != NULL)
			err->code = ERROR_CONFIG;
		return -1;
	}
	place.endpoint.port = 0;
	snitch_split_place(snitch, value, &place.datacenter, &place.rack);
	for (uint32_t i = 0; i < snitch->place_count; i++) {
		/* The last line of an address holds. */
		if (endpoint_equal(&snitch->places[i].endpoint, &place.endpoint)) {
			snitch->places[i] = place;
			return 0;
		}
	}
	snitch->places =
	    xrealloc(snitch->places, (snitch->place_count + 1) * sizeof(*snitch->places));
	snitch->places[snitch->place_count++] = place;
	return 0;
}

static int
snitch_compare_places(const void *a, const void *b)
{
	const struct snitch_place *left = a, *right = b;

	return endpoint_compare(&left->endpoint, &right->endpoint);
}

static int
snitch_read_topology(struct snitch *snitch, const char *folder, struct error *err)
{
	if (snitch_read_file(snitch, folder, SNITCH_TOPOLOGY_FILE, snitch_topology_property,
		&snitch->has_topology, err) != 0)
		return -1;
	if (snitch->place_count > 0)
		qsort(snitch->places, snitch->place_count, sizeof(*snitch->places),
		    snitch_compare_places);
	return 0;
}

/* False: neither a line nor a default. */
static bool
snitch_find_place(const struct snitch *snitch, const struct endpoint *endpoint,
    const char **datacenter, const char **rack)
{
	struct snitch_place key = {.endpoint = *endpoint};
	const struct snitch_place *place = NULL;

	key.endpoint.port = 0;
	if (snitch->place_count > 0)
		place = bsearch(
		    &key, snitch->places, snitch->place_count, sizeof(key), snitch_compare_places);
	*datacenter = place != NULL ? place->datacenter : snitch->default_datacenter;
	*rack = place != NULL ? place->rack : snitch->default_rack;
	return *datacenter != NULL;
}

/* The second and third octet. */
static void
snitch_infer(struct snitch *snitch, const struct endpoint *endpoint, const char **datacenter,
    const char **rack)
{
	char text[8];

	snprintf(text, sizeof(text), "%u", endpoint->address[1]);
	*datacenter = snitch_intern(snitch, text);
	snprintf(text, sizeof(text), "%u", endpoint->address[2]);
	*rack = snitch_intern(snitch, text);
}

/* ---- This node's place --------------------------------------------------------------------- */

static int
snitch_place_by_rackdc(struct snitch *snitch, const char *folder, struct error *err)
{
	bool is_there;

	if (snitch_read_file(
		snitch, folder, SNITCH_RACKDC_FILE, snitch_rackdc_property, &is_there, err) != 0)
		return -1;
	if (snitch->datacenter == NULL || snitch->rack == NULL)
		return error_set(err, ERROR_CONFIG,
		    "DC or rack not found in snitch properties, check your configuration in: "
		    "%s/" SNITCH_RACKDC_FILE "%s",
		    folder == NULL ? "." : folder, is_there ? "" : ", which does not exist");
	/* For nodes that have not gossiped yet, while a cluster comes over from PropertyFileSnitch. */
	return snitch_read_topology(snitch, folder, err);
}

static int
snitch_place_by_topology(struct snitch *snitch, const char *folder, struct error *err)
{
	const struct endpoint *local = &peers_local(snitch->peers)->endpoint;
	const char *datacenter, *rack;
	char text[ENDPOINT_TEXT_SIZE];

	if (snitch_read_topology(snitch, folder, err) != 0)
		return -1;
	if (!snitch->has_topology)
		return error_set(err, ERROR_CONFIG, "Unable to read %s/" SNITCH_TOPOLOGY_FILE,
		    folder == NULL ? "." : folder);
	if (!snitch_find_place(snitch, local, &datacenter, &rack))
		return error_set(err, ERROR_CONFIG,
		    "Snitch definitions at %s/" SNITCH_TOPOLOGY_FILE
		    " do not define a location for this node's broadcast address %s, nor does it "
		    "provide a default",
		    folder == NULL ? "." : folder, endpoint_format_address(local, text));
	if (snitch->datacenter == NULL)
		snitch->datacenter = xstrdup(datacenter);
	if (snitch->rack == NULL)
		snitch->rack = xstrdup(rack);
	return 0;
}

static int
snitch_place_self(struct snitch *snitch, const char *folder, struct error *err)
{
	const char *datacenter = "datacenter1", *rack = "rack1";

	if (snitch->kind == SNITCH_GOSSIPING_PROPERTY_FILE)
		return snitch_place_by_rackdc(snitch, folder, err);
	if (snitch->kind == SNITCH_PROPERTY_FILE)
		return snitch_place_by_topology(snitch, folder, err);
	if (snitch->kind == SNITCH_RACK_INFERRING)
		snitch_infer(snitch, &peers_local(snitch->peers)->endpoint, &datacenter, &rack);
	else
		snitch->goes_by_gossip = snitch->datacenter != NULL || snitch->rack != NULL;
	if (snitch->datacenter == NULL)
		snitch->datacenter = xstrdup(datacenter);
	if (snitch->rack == NULL)
		snitch->rack = xstrdup(rack);
	return 0;
}

int
snitch_new(const struct snitch_config *config, struct env *env, struct peers *peers,
    struct snitch **out, struct error *err)
{
	struct snitch *snitch = xzalloc(sizeof(*snitch));

	lock_init(&snitch->lock, "snitch", RANK_SNITCH);
	snitch->env = env;
	snitch->peers = peers;
	snitch->is_dynamic = config->is_dynamic;
	snitch->badness_threshold = config->badness_threshold;
	snitch->update_interval_ns = config->update_interval_ns;
	snitch->reset_interval_ns = config->reset_interval_ns;
	snitch->random = env_random_u64(env);
	if (config->datacenter != NULL)
		snitch->datacenter = xstrdup(config->datacenter);
	if (config->rack != NULL)
		snitch->rack = xstrdup(config->rack);
	if (snitch_parse_kind(config->endpoint_snitch, &snitch->kind, err) != 0 ||
	    snitch_place_self(snitch, config->config_folder, err) != 0) {
		snitch_free(snitch);
		return -1;
	}
	*out = snitch;
	return 0;
}

void
snitch_free(struct snitch *snitch)
{
	if (snitch == NULL)
		return;
	snitch_free_samples(snitch);
	for (uint32_t i = 0; i < snitch->name_count; i++)
		free(snitch->names[i]);
	free(snitch->names);
	free(snitch->places);
	free(snitch->datacenter);
	free(snitch->rack);
	lock_fini(&snitch->lock);
	free(snitch);
}

enum snitch_kind
snitch_kind(const struct snitch *snitch)
{
	return snitch->kind;
}

const char *
snitch_class_name(const struct snitch *snitch)
{
	return snitch->is_dynamic ? "org.apache.cassandra.locator.DynamicEndpointSnitch"
				  : snitch_kind_names[snitch->kind];
}

const char *
snitch_subclass_name(const struct snitch *snitch)
{
	return snitch_kind_names[snitch->kind];
}

const char *
snitch_local_datacenter(const struct snitch *snitch)
{
	return snitch->datacenter;
}

const char *
snitch_local_rack(const struct snitch *snitch)
{
	return snitch->rack;
}

bool
snitch_prefers_local(const struct snitch *snitch)
{
	return snitch->prefers_local;
}

/* ---- Others' places ------------------------------------------------------------------------ */

static void
snitch_locate_by_gossip(struct snitch *snitch, const struct endpoint *endpoint,
    const char *gossiped_datacenter, const char *gossiped_rack, const char **datacenter,
    const char **rack)
{
	if (!snitch_find_place(snitch, endpoint, datacenter, rack)) {
		*datacenter = SNITCH_UNKNOWN_DATACENTER;
		*rack = SNITCH_UNKNOWN_RACK;
	}
	if (gossiped_datacenter != NULL)
		*datacenter = gossiped_datacenter;
	if (gossiped_rack != NULL)
		*rack = gossiped_rack;
}

void
snitch_locate(struct snitch *snitch, const struct endpoint *endpoint,
    const char *gossiped_datacenter, const char *gossiped_rack, const char **datacenter,
    const char **rack)
{
	*datacenter = snitch->datacenter;
	*rack = snitch->rack;
	if (endpoint_equal(endpoint, &peers_local(snitch->peers)->endpoint))
		return;
	switch (snitch->kind) {
	case SNITCH_SIMPLE:
		if (snitch->goes_by_gossip)
			snitch_locate_by_gossip(
			    snitch, endpoint, gossiped_datacenter, gossiped_rack, datacenter, rack);
		break;
	case SNITCH_GOSSIPING_PROPERTY_FILE:
		snitch_locate_by_gossip(
		    snitch, endpoint, gossiped_datacenter, gossiped_rack, datacenter, rack);
		break;
	case SNITCH_PROPERTY_FILE:
		if (!snitch_find_place(snitch, endpoint, datacenter, rack)) {
			*datacenter = SNITCH_UNKNOWN_DATACENTER;
			*rack = SNITCH_UNKNOWN_RACK;
		}
		break;
	case SNITCH_RACK_INFERRING:
		snitch_infer(snitch, endpoint, datacenter, rack);
		break;
	}
}
