/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "tools/stress_ring.h"

static struct stress_ring ring;
static struct stress_placement placement;

/* Nodes a, b, ... with tokens 10, 20, ...; two turns of the ring. */
static void
make_ring(uint32_t count, const char *const *datacenters, const char *const *racks)
{
	ring = (struct stress_ring){.nodes = NULL};
	for (uint32_t i = 0; i < count; i++) {
		char name[2] = {(char)('a' + i), '\0'};
		uint32_t node = stress_ring_add_node(&ring, name, datacenters[i], racks[i]);

		ring.nodes[node].host = (uint16_t)i;
		stress_ring_add_token(&ring, node, 10 * ((int64_t)i + 1));
		stress_ring_add_token(&ring, node, 1000 + 10 * ((int64_t)i + 1));
	}
	stress_ring_sort(&ring);
}

static void
place(bool is_simple, uint32_t factor, const char *datacenter)
{
	struct stress_replication replication = {is_simple, factor, datacenter};

	stress_placement_init(&placement, &ring, &replication);
}

static void
expect(int64_t token, const char *names)
{
	const uint16_t *hosts = stress_placement_find(&placement, token);
	char found[16] = "";
	uint32_t count = 0;

	ck_assert_ptr_nonnull(hosts);
	for (; count < placement.width && hosts[count] != STRESS_NO_HOST; count++)
		found[count] = *ring.nodes[hosts[count]].address;
	ck_assert_str_eq(found, names);
}

static void
end(void)
{
	stress_placement_fini(&placement);
	stress_ring_fini(&ring);
}

static const char *const one_datacenter[] = {"x", "x", "x", "x"};
static const char *const racks[] = {"1", "1", "2", "2"};

START_TEST(test_simple_strategy_takes_the_next_nodes)
{
	make_ring(4, one_datacenter, racks);
	place(true, 2, "x");
	expect(10, "ab");
	expect(11, "bc");
	expect(40, "da");
	expect(41, "ab");
	expect(1041, "ab");
	expect(INT64_MIN, "ab");
	expect(INT64_MAX, "ab");
	end();
}
END_TEST

START_TEST(test_a_datacenter_takes_other_racks_first)
{
	make_ring(4, one_datacenter, racks);
	place(false, 2, "x");
	expect(10, "ac");
	expect(20, "bc");
	expect(30, "ca");
	expect(40, "da");
	stress_placement_fini(&placement);
	place(false, 3, "x");
	expect(10, "abc");
	expect(20, "bcd");
	stress_placement_fini(&placement);
	place(false, 9, "x");
	expect(30, "cdab");
	end();
}
END_TEST

START_TEST(test_nodes_of_other_datacenters_are_left_out)
{
	static const char *const datacenters[] = {"x", "y", "x", "y"};

	make_ring(4, datacenters, racks);
	place(false, 1, "x");
	expect(11, "c");
	expect(31, "a");
	stress_placement_fini(&placement);
	/* A node that holds the range and is not sent to is none to choose. */
	ring.nodes[1].host = ring.nodes[3].host = STRESS_NO_HOST;
	place(true, 2, "x");
	expect(11, "c");
	expect(10, "a");
	end();
}
END_TEST

START_TEST(test_what_is_not_known_is_not_routed)
{
	make_ring(0, one_datacenter, racks);
	place(true, 2, "x");
	ck_assert_ptr_null(stress_placement_find(&placement, 1));
	end();
	make_ring(2, one_datacenter, racks);
	place(false, 0, "x");
	ck_assert_ptr_null(stress_placement_find(&placement, 1));
	end();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stress_ring");
	TCase *tests = tcase_create("stress_ring");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, test_simple_strategy_takes_the_next_nodes);
	tcase_add_test(tests, test_a_datacenter_takes_other_racks_first);
	tcase_add_test(tests, test_nodes_of_other_datacenters_are_left_out);
	tcase_add_test(tests, test_what_is_not_known_is_not_routed);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
