/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/token_allocator.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"

/* ---- The ring that is allocated in --------------------------------------------------------- */

/*
 * Nodes are units, and units of one group (a rack, or each unit its own) never hold two copies of a range. The new
 * unit is the last one. Shares are parts of the ring, 0 .. replicas.
 */
struct allocator_token {
	int64_t token;
	uint32_t unit;
	double share; /* of the ring, that is here because of this token */
};

struct allocator_unit {
	uint32_t group;
	uint32_t token_count;
	double share;
};

struct allocator {
	struct env *env;
	uint32_t replicas;
	uint32_t token_count; /* of the new unit */
	uint32_t unit_count; /* without the new one */
	uint32_t group_count;
	struct allocator_unit *units; /* owned; unit_count + 1 */
	uint32_t ring_count;
	struct allocator_token *ring; /* owned; ascending; room for the new unit's */
	double even; /* the share of a token if all were even */
	/* Groups met in a walk: by number of the walk. */
	uint32_t *met; /* owned */
	uint32_t walk;
};

static void
allocator_fini(struct allocator *allocator)
{
	free(allocator->units);
	free(allocator->ring);
	free(allocator->met);
}

static double
allocator_size(int64_t left, int64_t right)
{
	uint64_t size = (uint64_t)right - (uint64_t)left;

	return size == 0 ? 1.0 : (double)size / 18446744073709551616.0;
}

static struct allocator_token *
allocator_before(const struct allocator *allocator, const struct allocator_token *token)
{
	return token == allocator->ring ? &allocator->ring[allocator->ring_count - 1]
					: (struct allocator_token *)(uintptr_t)(token - 1);
}

/* A point in (left, right), `part` of the way from left. */
static int64_t
allocator_point(int64_t left, int64_t right, double part)
{
	uint64_t size = (uint64_t)right - (uint64_t)left;
	long double whole = size == 0 ? 18446744073709551616.0L : (long double)size;

	return (int64_t)((uint64_t)left + (uint64_t)(whole * (long double)part));
}

static void
allocator_insert(struct allocator *allocator, int64_t token, uint32_t unit)
{
	uint32_t at = allocator->ring_count;

	while (at > 0 && allocator->ring[at - 1].token > token)
		at--;
	memmove(&allocator->ring[at + 1], &allocator->ring[at],
	    (allocator->ring_count - at) * sizeof(*allocator->ring));
	allocator->ring[at] = (struct allocator_token){token, unit, 0};
	allocator->ring_count++;
}

static bool
allocator_has(const struct allocator *allocator, int64_t token)
{
	for (uint32_t i = 0; i < allocator->ring_count; i++) {
		if (allocator->ring[i].token == token)
			return true;
	}
	return token == INT64_MIN;
}

/* ---- The first nodes ----------------------------------------------------------------------- */

/*
 * Split the largest range again and again, in parts that are near each other's golden ratio but vary: halves would make ranges
 * of one size, which no later node could split evenly.
 */
static void
allocator_split(struct allocator *allocator)
{
	const double least = 1 - 1 / sqrt(5), spread = 0.075;
	uint32_t left = allocator->token_count;

	if (allocator->ring_count == 0) {
		allocator_insert(allocator, (int64_t)(env_random_u64(allocator->env) | 1),
		    allocator->unit_count);
		left--;
	}
	while (left > 0) {
		uint32_t largest = 0;
		double size = 0, part;
		int64_t token;

		for (uint32_t i = 0; i < allocator->ring_count; i++) {
			const struct allocator_token *token_at = &allocator->ring[i];
			double here = allocator_size(
			    allocator_before(allocator, token_at)->token, token_at->token);

			if (here <= size)
				continue;
			size = here;
			largest = i;
		}
		part = least +
		    spread * (double)(env_random_u64(allocator->env) >> 11) / 9007199254740992.0;
		token =
		    allocator_point(allocator_before(allocator, &allocator->ring[largest])->token,
			allocator->ring[largest].token, part);
		if (allocator_has(allocator, token))
			continue;
		allocator_insert(allocator, token, allocator->unit_count);
		left--;
	}
}

/* ---- One replica --------------------------------------------------------------------------- */

static void
allocator_count_own_shares(struct allocator *allocator)
{
	for (uint32_t u = 0; u <= allocator->unit_count; u++)
		allocator->units[u].share = 0;
	for (uint32_t i = 0; i < allocator->ring_count; i++) {
		struct allocator_token *token = &allocator->ring[i];

		token->share =
		    allocator_size(allocator_before(allocator, token)->token, token->token);
		allocator->units[token->unit].share += token->share;
	}
}

static int
allocator_compare_units(const void *a, const void *b, void *context)
{
	const struct allocator *allocator = context;
	double left = allocator->units[*(const uint32_t *)a].share;
	double right = allocator->units[*(const uint32_t *)b].share;

	return left > right ? -1 : left < right;
}

/* The largest of a unit's ranges that is not yet marked as given from (share < 0). */
static struct allocator_token *
allocator_largest(const struct allocator *allocator, uint32_t unit)
{
	struct allocator_token *largest = NULL;

	for (uint32_t i = 0; i < allocator->ring_count; i++) {
		struct allocator_token *token = &allocator->ring[i];

		if (token->unit == unit && token->share > 0 &&
		    (largest == NULL || token->share > largest->share))
			largest = token;
	}
	return largest;
}

/* One donor gives `give` of the ring from the `count` largest of its ranges; the new tokens go to out. */
static uint32_t
allocator_give(
    struct allocator *allocator, uint32_t unit, double give, uint32_t count, int64_t *out)
{
	struct allocator_token *chosen[TOKENS_MAX];
	double all = 0, part;
	uint32_t taken = 0;

	while (taken < count) {
		struct allocator_token *token = allocator_largest(allocator, unit);

		if (token == NULL)
			break;
		all += token->share;
		token->share = -token->share;
		chosen[taken++] = token;
	}
	/* Neither the whole of a range nor a sliver. */
	part = fmin(fmax(give / all, 0.1), 0.9);
	for (uint32_t i = 0; i < taken; i++)
		out[i] = allocator_point(
		    allocator_before(allocator, chosen[i])->token, chosen[i]->token, part);
	return taken;
}

/* How many of the units (by falling share) give, and down to which level. */
static uint32_t
allocator_donors(const struct allocator *allocator, const uint32_t *order, double *level)
{
	uint32_t donors = 0;
	double sum = 0;

	*level = 0;
	while (donors < allocator->unit_count && donors < allocator->token_count) {
		double share = allocator->units[order[donors]].share;
		double next = (sum + share) / (donors + 2);

		if (donors > 0 && share <= next)
			break;
		sum += share;
		*level = next;
		donors++;
	}
	return donors;
}

static void
allocator_level(struct allocator *allocator)
{
	uint32_t *order = xcalloc(allocator->unit_count, sizeof(*order));
	int64_t *tokens = xcalloc(allocator->token_count, sizeof(*tokens));
	uint32_t donors, taken = 0;
	double level;

	allocator_count_own_shares(allocator);
	for (uint32_t u = 0; u < allocator->unit_count; u++)
		order[u] = u;
	qsort_r(order, allocator->unit_count, sizeof(*order), allocator_compare_units, allocator);
	donors = allocator_donors(allocator, order, &level);
	for (uint32_t d = 0; d < donors; d++) {
		uint32_t count =
		    allocator->token_count / donors + (d < allocator->token_count % donors);
		double give = allocator->units[order[d]].share - level;

		taken += allocator_give(allocator, order[d], give, count, tokens + taken);
	}
	for (uint32_t i = 0; i < taken; i++)
		allocator_insert(allocator, tokens[i], allocator->unit_count);
	free(order);
	free(tokens);
	/* Donors with too few ranges. */
	allocator->token_count -= taken;
	if (allocator->token_count > 0)
		allocator_split(allocator);
	allocator->token_count += taken;
}

/* ---- Several replicas ---------------------------------------------------------------------- */

/* A token that may be: of the new unit, right before ring[before]. */
struct allocator_candidate {
	int64_t token;
	uint32_t before;
};

/*
 * Where the data of a token begins: behind the token of the replicas-th other group that a walk back meets, or behind the token
 * of its own group when that comes first. `candidate` (or NULL) is in the ring for this walk; `start` is the place of the token
 * (the candidate's own place is `before`, seen from behind it).
 */
static int64_t
allocator_data_start(struct allocator *allocator, uint32_t place, uint32_t group,
    const struct allocator_candidate *candidate)
{
	uint32_t new_group = allocator->units[allocator->unit_count].group;
	uint32_t groups = 0, at = place;
	int64_t start = 0;

	allocator->walk++;
	for (uint32_t steps = 0; steps <= allocator->ring_count; steps++) {
		uint32_t met;

		if (candidate != NULL && at == candidate->before) {
			/* Between this place and the one before it stands the candidate. */
			met = new_group;
			start = candidate->token;
			if (met == group)
				return start;
			if (allocator->met[met] != allocator->walk) {
				allocator->met[met] = allocator->walk;
				if (++groups == allocator->replicas)
					return start;
			}
		}
		at = at == 0 ? allocator->ring_count - 1 : at - 1;
		met = allocator->units[allocator->ring[at].unit].group;
		start = allocator->ring[at].token;
		if (met == group)
			return start;
		if (allocator->met[met] == allocator->walk)
			continue;
		allocator->met[met] = allocator->walk;
		if (++groups == allocator->replicas)
			return start;
	}
	return start;
}

static void
allocator_count_shares(struct allocator *allocator)
{
	for (uint32_t u = 0; u < allocator->unit_count; u++)
		allocator->units[u].share = 0;
	for (uint32_t i = 0; i < allocator->ring_count; i++) {
		struct allocator_token *token = &allocator->ring[i];
		struct allocator_unit *unit = &allocator->units[token->unit];

		token->share = allocator_size(
		    allocator_data_start(allocator, i, unit->group, NULL), token->token);
		if (token->unit != allocator->unit_count)
			unit->share += token->share;
	}
}

static double
allocator_square(double value)
{
	return value * value;
}

/* How a unit's unevenness changes: by the mean share of its tokens. */
struct allocator_changes {
	uint32_t units[64]; /* that lose or gain; one unit may do so at several tokens */
	double change[64];
	uint32_t count;
};

static void
allocator_note(struct allocator_changes *changes, uint32_t unit, double change)
{
	for (uint32_t i = 0; i < changes->count; i++) {
		if (changes->units[i] == unit) {
			changes->change[i] += change;
			return;
		}
	}
	/* So many that one more hardly matters. */
	if (changes->count == sizeof(changes->units) / sizeof(changes->units[0]))
		return;
	changes->units[changes->count] = unit;
	changes->change[changes->count++] = change;
}

static double
allocator_token_cost(
    const struct allocator *allocator, uint32_t unit, double old_share, double new_share)
{
	return (allocator_square(new_share - allocator->even) -
		   allocator_square(old_share - allocator->even)) /
	    allocator_square(allocator->units[unit].token_count);
}

static double
allocator_unit_cost(const struct allocator *allocator, const struct allocator_changes *changes)
{
	double cost = 0;

	for (uint32_t i = 0; i < changes->count; i++) {
		const struct allocator_unit *unit = &allocator->units[changes->units[i]];
		double off = unit->share / unit->token_count - allocator->even;

		cost += allocator_square(off + changes->change[i] / unit->token_count) -
		    allocator_square(off);
	}
	return cost;
}

/*
 * What the unevenness of units and tokens rises by when the candidate is taken (negative: better). The new unit counts as if
 * its tokens to come had an even share.
 */
static double
allocator_cost(struct allocator *allocator, const struct allocator_candidate *candidate)
{
	uint32_t new_unit = allocator->unit_count, at = candidate->before, groups = 0;
	struct allocator_changes changes = {.count = 0};
	uint32_t seen[64];
	double share, cost;

	share = allocator_size(
	    allocator_data_start(allocator, candidate->before, allocator->units[new_unit].group,
		&(struct allocator_candidate){candidate->token, UINT32_MAX}),
	    candidate->token);
	cost = allocator_token_cost(allocator, new_unit, allocator->even, share);
	allocator_note(&changes, new_unit, share - allocator->even);
	/* Tokens behind it, until so many groups came that the data of the rest begins later. */
	for (uint32_t steps = 0; steps < allocator->ring_count; steps++) {
		const struct allocator_token *token = &allocator->ring[at];
		uint32_t group = allocator->units[token->unit].group, i = 0;

		while (i < groups && seen[i] != group)
			i++;
		/* One of a group that was met begins behind that. */
		if (i == groups) {
			share = allocator_size(
			    allocator_data_start(allocator, at, group, candidate), token->token);
			cost += allocator_token_cost(allocator, token->unit, token->share, share);
			allocator_note(&changes, token->unit, share - token->share);
			if (groups == allocator->replicas - 1 ||
			    groups == sizeof(seen) / sizeof(seen[0]))
				break;
			seen[groups++] = group;
		}
		at = at + 1 == allocator->ring_count ? 0 : at + 1;
	}
	return cost + allocator_unit_cost(allocator, &changes);
}

/* The best middle of all ranges. */
static struct allocator_candidate
allocator_best(struct allocator *allocator)
{
	struct allocator_candidate best = {0, UINT32_MAX};
	double best_cost = INFINITY;

	for (uint32_t i = 0; i < allocator->ring_count; i++) {
		struct allocator_candidate candidate = {
		    allocator_point(allocator_before(allocator, &allocator->ring[i])->token,
			allocator->ring[i].token, 0.5),
		    i};
		double cost;

		if (candidate.token == INT64_MIN || candidate.token == allocator->ring[i].token ||
		    candidate.token == allocator_before(allocator, &allocator->ring[i])->token)
			continue;
		cost = allocator_cost(allocator, &candidate);
		if (cost < best_cost) {
			best = candidate;
			best_cost = cost;
		}
	}
	return best;
}

static void
allocator_even_out(struct allocator *allocator)
{
	uint32_t new_unit = allocator->unit_count;
	uint32_t total = allocator->ring_count + allocator->token_count;

	allocator->even = (double)allocator->replicas / total;
	for (uint32_t taken = 0; taken < allocator->token_count; taken++) {
		struct allocator_candidate best;
		double share = 0;

		allocator_count_shares(allocator);
		for (uint32_t i = 0; i < allocator->ring_count; i++) {
			if (allocator->ring[i].unit == new_unit)
				share += allocator->ring[i].share;
		}
		allocator->units[new_unit].share =
		    share + (allocator->token_count - taken) * allocator->even;
		best = allocator_best(allocator);
		if (best.before == UINT32_MAX)
			break;
		allocator_insert(allocator, best.token, new_unit);
	}
}

/* ---- Which ring ---------------------------------------------------------------------------- */

static int
token_compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

/* Does anybody have it, or is about to? */
static bool
token_is_taken(const struct topology *topology, int64_t token)
{
	uint32_t members = topology_member_count(topology);

	if (token == INT64_MIN)
		return true;
	for (uint32_t i = 0; i < members; i++) {
		const struct member *member = topology_member(topology, i);

		if (bsearch(&token, member->tokens, member->token_count, sizeof(token),
			token_compare) != NULL ||
		    bsearch(&token, member->next_tokens, member->next_token_count, sizeof(token),
			token_compare) != NULL)
			return true;
	}
	return false;
}

void
token_allocate_random(
    const struct topology *topology, struct env *env, uint32_t count, int64_t *out)
{
	for (uint32_t i = 0; i < count; i++) {
		bool is_taken;

		do {
			out[i] = (int64_t)env_random_u64(env);
			is_taken = token_is_taken(topology, out[i]);
			for (uint32_t n = 0; n < i; n++)
				is_taken = is_taken || out[n] == out[i];
		} while (is_taken);
	}
	qsort(out, count, sizeof(*out), token_compare);
}

/* Who shares a ring with the new node; NULL: any data center, any rack. */
struct allocator_scope {
	const char *datacenter, *rack;
	bool is_grouped_by_rack;
	uint32_t replicas;
};

/* Also nodes that join: their tokens are as good as taken. */
static bool
allocator_is_in_scope(const struct allocator_scope *scope, const struct member *member)
{
	return member->token_count > 0 && member->state != MEMBER_REPLACING &&
	    (scope->datacenter == NULL || strcmp(scope->datacenter, member->datacenter) == 0) &&
	    (scope->rack == NULL || strcmp(scope->rack, member->rack) == 0);
}

static uint32_t
allocator_rack_group(const struct member *const *members, uint32_t count, const char *rack)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(members[i]->rack, rack) == 0)
			return i;
	}
	return count;
}

static void
allocator_init(struct allocator *allocator, const struct topology *topology,
    const struct allocator_scope *scope, const char *rack, struct env *env, uint32_t count)
{
	uint32_t total = topology_member_count(topology), tokens = 0;
	const struct member **members = xcalloc(total + 1, sizeof(*members));

	*allocator =
	    (struct allocator){.env = env, .replicas = scope->replicas, .token_count = count};
	for (uint32_t i = 0; i < total; i++) {
		const struct member *member = topology_member(topology, i);

		if (!allocator_is_in_scope(scope, member))
			continue;
		members[allocator->unit_count++] = member;
		tokens += member->token_count;
	}
	allocator->units = xcalloc(allocator->unit_count + 1, sizeof(*allocator->units));
	allocator->met = xcalloc(allocator->unit_count + 2, sizeof(*allocator->met));
	allocator->ring = xcalloc(tokens + count + 1, sizeof(*allocator->ring));
	for (uint32_t u = 0; u <= allocator->unit_count; u++) {
		bool is_new = u == allocator->unit_count;
		/* A group has the number of its first unit. */
		uint32_t group = scope->is_grouped_by_rack
		    ? allocator_rack_group(
			  members, allocator->unit_count, is_new ? rack : members[u]->rack)
		    : u;

		allocator->units[u].group = group;
		allocator->units[u].token_count = is_new ? count : members[u]->token_count;
		if (group == u && !is_new)
			allocator->group_count++;
		for (uint32_t n = 0; !is_new && n < members[u]->token_count; n++)
			allocator->ring[allocator->ring_count++] =
			    (struct allocator_token){members[u]->tokens[n], u, 0};
	}
	free(members);
}

static int
allocator_compare_tokens(const void *a, const void *b)
{
	const struct allocator_token *left = a, *right = b;

	return left->token < right->token ? -1 : left->token > right->token;
}

static void
allocator_run(const struct topology *topology, const struct allocator_scope *scope,
    const char *rack, struct env *env, uint32_t count, int64_t *out)
{
	struct allocator allocator;
	uint32_t taken = 0;

	allocator_init(&allocator, topology, scope, rack, env, count);
	qsort(allocator.ring, allocator.ring_count, sizeof(*allocator.ring),
	    allocator_compare_tokens);
	/* Fewer units than replicas: each has everything. Fewer tokens: nothing to choose from. */
	if (allocator.group_count < allocator.replicas || count > allocator.ring_count)
		allocator_split(&allocator);
	else if (allocator.replicas == 1)
		allocator_level(&allocator);
	else
		allocator_even_out(&allocator);
	for (uint32_t i = 0; i < allocator.ring_count && taken < count; i++) {
		if (allocator.ring[i].unit == allocator.unit_count)
			out[taken++] = allocator.ring[i].token;
	}
	allocator_fini(&allocator);
	/* No room left between tokens: never in a ring that people have. */
	if (taken < count)
		token_allocate_random(topology, env, count, out);
	/* Another data center or rack may have one of them already: the next one is as good. */
	for (uint32_t i = 0; i < count; i++) {
		while (token_is_taken(topology, out[i]) || (i > 0 && out[i] == out[i - 1]))
			out[i] = (int64_t)((uint64_t)out[i] + 1);
	}
	qsort(out, count, sizeof(*out), token_compare);
}

/* Racks of the data center; 1 when the new node's is not among them: it is then a place of its own. */
static uint32_t
allocator_count_racks(const struct topology *topology, const char *datacenter, const char *rack)
{
	uint32_t members = topology_member_count(topology), racks = 0;
	bool is_known = false;

	for (uint32_t i = 0; i < members; i++) {
		const struct member *member = topology_member(topology, i);
		bool is_first = true;

		if (member->state == MEMBER_JOINING || member->state == MEMBER_REPLACING ||
		    strcmp(member->datacenter, datacenter) != 0)
			continue;
		for (uint32_t n = 0; n < i; n++) {
			const struct member *other = topology_member(topology, n);

			if (other->state != MEMBER_JOINING && other->state != MEMBER_REPLACING &&
			    other->datacenter == member->datacenter && other->rack == member->rack)
				is_first = false;
		}
		racks += is_first;
		is_known = is_known || strcmp(member->rack, rack) == 0;
	}
	return is_known ? racks : 1;
}

int
token_allocate_for_factor(const struct topology *topology, const char *datacenter, const char *rack,
    int32_t factor, struct env *env, uint32_t count, int64_t *out, struct error *err)
{
	uint32_t racks = allocator_count_racks(topology, datacenter, rack);
	struct allocator_scope scope = {datacenter, NULL, false, 1};

	if (factor > 1 && racks == (uint32_t)factor) {
		scope.rack = rack;
	} else if (factor > 1) {
		scope.replicas = (uint32_t)factor;
		scope.is_grouped_by_rack = racks > (uint32_t)factor;
		if (racks < (uint32_t)factor && racks != 1)
			return error_set(err, ERROR_CONFIG,
			    "Algorithmic token allocation failed: the number of racks %u in "
			    "datacenter %s is lower than its replication factor %d. If you are "
			    "starting a new datacenter, please make sure that the first %d nodes "
			    "to start are from different racks",
			    racks, datacenter, factor, factor);
	}
	allocator_run(topology, &scope, rack, env, count, out);
	return 0;
}

int
token_allocate_for_keyspace(const struct topology *topology, const struct replication *replication,
    const char *datacenter, const char *rack, struct env *env, uint32_t count, int64_t *out,
    struct error *err)
{
	struct allocator_scope scope = {NULL, NULL, false, 1};

	switch (replication_class(replication)) {
	case REPLICATION_NETWORK_TOPOLOGY:
		return token_allocate_for_factor(topology, datacenter, rack,
		    replication_factor_of(replication, datacenter), env, count, out, err);
	case REPLICATION_SIMPLE:
		scope.replicas = (uint32_t)replication_total_factor(replication);
		if (scope.replicas == 0)
			scope.replicas = 1;
		allocator_run(topology, &scope, rack, env, count, out);
		return 0;
	case REPLICATION_LOCAL:
	case REPLICATION_EVERYWHERE:
		break;
	}
	return error_set(err, ERROR_CONFIG,
	    "allocate_tokens_for_keyspace: token allocation supports SimpleStrategy and "
	    "NetworkTopologyStrategy only");
}

/* ---- initial_token ------------------------------------------------------------------------- */

int
token_parse_list(const char *text, uint32_t count, int64_t *out, struct error *err)
{
	uint32_t found = 0;
	const char *at = text;

	for (;;) {
		char *end;
		long long token;

		at += strspn(at, " \t");
		errno = 0;
		token = strtoll(at, &end, 10);
		if (end == at || errno != 0 || token == INT64_MIN)
			return error_set(err, ERROR_CONFIG,
			    "initial_token: '%.*s' is no token: it must be a whole number above "
			    "-9223372036854775808 and below 9223372036854775808",
			    (int)strcspn(at, ","), at);
		if (found < count)
			out[found] = token;
		found++;
		at = end + strspn(end, " \t");
		if (*at == '\0')
			break;
		if (*at != ',')
			return error_set(err, ERROR_CONFIG,
			    "initial_token: '%s' stands behind token %lld: tokens are separated "
			    "by commas",
			    at, token);
		at++;
	}
	if (found != count)
		return error_set(err, ERROR_CONFIG,
		    "The number of initial tokens (by initial_token) specified (%u) is different "
		    "from num_tokens value (%u)",
		    found, count);
	qsort(out, count, sizeof(*out), token_compare);
	for (uint32_t i = 1; i < count; i++) {
		if (out[i] == out[i - 1])
			return error_set(err, ERROR_CONFIG,
			    "initial_token: token %lld is given twice", (long long)out[i]);
	}
	return 0;
}
