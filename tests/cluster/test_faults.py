# SPDX-License-Identifier: Apache-2.0
"""Rings under load whose nodes are killed, stand still, start again and are cut off from each other."""
import pytest
from cassandra import ConsistencyLevel as CL
from cassandra.cluster import NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import SimpleStatement

import network
from load import Counting, FAULTS, Load, connect
from ring import PATIENCE, wait_until

WHY_NOT = network.why_not()
needs_wires = pytest.mark.skipif(WHY_NOT is not None, reason=f"{WHY_NOT}")
THREE = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"


def prepare(session, replication=THREE):
    session.execute(f"CREATE KEYSPACE ks WITH replication = {replication}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE ks.c (k int PRIMARY KEY, n counter)")


def all_up(nodes):
    for node in nodes:
        node.wait_sees(UN=nodes)


@pytest.fixture
def three(new_ring):
    ring = new_ring(3).start().wait_up()
    sessions = connect(ring, ring.nodes)
    prepare(sessions[ring[0]])
    return ring, sessions


@pytest.fixture
def wired(new_ring):
    """A function that makes a ring whose links can be cut."""
    return lambda count, **options: new_ring(count, wires=network.Network(), **options)


def trouble(ring, node, load):
    """A node is killed, stands still and is restarted, while the load goes on."""
    node.kill()
    load.go_on()
    node.start()
    load.go_on()
    node.pause()
    load.go_on()
    node.resume()
    all_up(ring.nodes)
    load.go_on()
    node.restart()
    all_up(ring.nodes)
    load.go_on()


def test_quorum_outlives_a_node(three):
    ring, sessions = three
    with Load(sessions, "ks.t") as load:
        load.go_on()
        ring[1].kill()
        load.go_on()
        ring[1].start()
        load.go_on()
        ring[2].restart()
        load.go_on()
    load.check()


@pytest.mark.long
def test_quorum_outlives_any_node(three):
    ring, sessions = three
    with Load(sessions, "ks.t") as load:
        for node in ring.nodes:
            trouble(ring, node, load)
    load.check()


@pytest.mark.long
def test_counters_add_up(three):
    ring, sessions = three
    with Counting(sessions, "ks.c") as load:
        for node in ring.nodes:
            trouble(ring, node, load)
    load.check()


def two_datacenters(ring):
    for i, node in enumerate(ring.nodes):
        node.options = {"dc": f"dc{i // 3 + 1}", "rack": f"r{i % 3 + 1}"}
    ring.start().wait_up()
    sessions = connect(ring, ring.nodes)
    prepare(sessions[ring[0]], "{'class': 'NetworkTopologyStrategy', 'dc1': 3, 'dc2': 3}")
    return sessions


@pytest.mark.long
def test_the_death_of_a_data_center_costs_the_other_nothing(new_ring):
    ring = new_ring(6, endpoint_snitch="GossipingPropertyFileSnitch", seeds=4)
    sessions = two_datacenters(ring)
    here = {node: sessions[node] for node in ring.nodes[:3]}
    with Load(here, "ks.t", level=CL.LOCAL_QUORUM, timeout=PATIENCE) as load:
        load.go_on()
        for node in ring.nodes[3:]:
            node.kill()
        load.go_on(400)
        ring[0].wait_sees(UN=ring.nodes[:3], DN=ring.nodes[3:])
        load.go_on(100)
        for node in ring.nodes[3:]:
            node.launch()
        for node in ring.nodes[3:]:
            node.wait_ready()
        all_up(ring.nodes)
        load.go_on(100)
    assert not load.errors, load.errors[:3]
    load.check(here)


@pytest.mark.long
def test_who_was_to_pass_a_write_on_dies(new_ring):
    """To a remote data center one message goes, to each of its nodes in turn: its neighbours get theirs all the same."""
    ring = new_ring(6, endpoint_snitch="GossipingPropertyFileSnitch", seeds=4, write_request_timeout="12s")
    session = two_datacenters(ring)[ring[0]]
    write = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
    write.consistency_level = CL.EACH_QUORUM
    write.retry_policy = FallthroughRetryPolicy()
    for key in range(3):
        session.execute(write, (key, 0))
    ring[4].pause()
    try:
        for key in range(6):
            session.execute(write, (key, 1))
    finally:
        ring[4].resume()
    all_up(ring.nodes)
    ring[5].kill()
    for key in range(30):
        session.execute(write, (key, 2))
    ring[5].start()
    all_up(ring.nodes)


def rows(session, level):
    found = session.execute(SimpleStatement("SELECT k, v FROM ks.t", consistency_level=level))
    return sorted((row.k, row.v) for row in found)


@needs_wires
@pytest.mark.long
def test_a_data_center_that_was_cut_off_converges(wired):
    ring = wired(6, endpoint_snitch="GossipingPropertyFileSnitch", seeds=4)
    sessions = two_datacenters(ring)
    sides = [ring.nodes[:3], ring.nodes[3:]]
    ring.wires.partition(*sides)
    for side, other in (sides, sides[::-1]):
        for node in side:
            node.wait_sees(UN=side, DN=other)
    for i in range(200):
        side = sides[i % 2]
        sessions[side[i % 3]].execute(SimpleStatement(
            f"INSERT INTO ks.t (k, v) VALUES ({i}, {i % 2})", consistency_level=CL.LOCAL_QUORUM))
        # Both sides write this one: the later stands.
        sessions[side[i % 3]].execute(SimpleStatement(
            f"INSERT INTO ks.t (k, v) VALUES (1000, {i})", consistency_level=CL.LOCAL_QUORUM))
    ring.wires.heal()
    all_up(ring.nodes)
    for node in ring.nodes:
        node.nodetool("repair", "-full", "ks")
    wanted = sorted([(i, i % 2) for i in range(200)] + [(1000, 199)])
    before = [mismatches(node) for node in ring.nodes]
    for node in ring.nodes:
        assert rows(sessions[node], CL.ONE) == wanted
        assert rows(sessions[node], CL.ALL) == wanted
        for key in (1, 100, 1000):
            sessions[node].execute(SimpleStatement(f"SELECT v FROM ks.t WHERE k = {key}", consistency_level=CL.ALL))
    # Nothing was left for reads to repair.
    assert [mismatches(node) for node in ring.nodes] == before


def mismatches(node):
    """Reads that found replicas to differ."""
    lines = [line for line in node.nodetool("netstats").splitlines() if line.startswith("Mismatch")]
    assert lines
    return [line.split()[-1] for line in lines]


@needs_wires
@pytest.mark.long
def test_a_minority_can_do_nothing_and_comes_back(wired):
    ring = wired(3).start().wait_up()
    sessions = connect(ring, ring.nodes)
    prepare(sessions[ring[0]])
    lonely, rest = ring[2], ring.nodes[:2]
    with Load(sessions, "ks.t") as load:
        load.go_on()
        ring.wires.partition([lonely], rest)
        lonely.wait_sees(UN=[lonely], DN=rest)
        for node in rest:
            node.wait_sees(UN=rest, DN=[lonely])
        load.go_on()
        with pytest.raises(FAULTS) as refused:
            sessions[lonely].execute(SimpleStatement("INSERT INTO ks.t (k, v) VALUES (100, 1)",
                                                     consistency_level=CL.QUORUM))
        assert "Cannot achieve consistency level QUORUM" in str(refused.value)
        with pytest.raises(NoHostAvailable) as refused:
            sessions[lonely].execute("CREATE TABLE ks.lonely (k int PRIMARY KEY)")
        assert "schema" in str(refused.value).lower()
        sessions[rest[0]].execute("CREATE TABLE ks.meanwhile (k int PRIMARY KEY)")
        ring.wires.heal()
        all_up(ring.nodes)
        load.go_on()
    load.check()
    wait_until(lambda: has_table(sessions[lonely], "meanwhile"), "the schema comes")
    assert not has_table(sessions[lonely], "lonely")
    versions = {session.execute("SELECT schema_version FROM system.local").one().schema_version
                for session in sessions.values()}
    assert len(versions) == 1


def has_table(session, name):
    return session.execute("SELECT id FROM system_schema.tables WHERE keyspace_name = 'ks' "
                           f"AND table_name = '{name}'").one() is not None


@needs_wires
@pytest.mark.long
def test_links_that_are_cut_one_way(wired):
    ring = wired(3).start().wait_up()
    sessions = connect(ring, ring.nodes)
    prepare(sessions[ring[0]])
    with Load(sessions, "ks.t") as load:
        for one in ring.nodes:
            for other in ring.nodes:
                if one is other:
                    continue
                ring.wires.cut(one, other)
                load.go_on(200)
                ring.wires.heal()
                all_up(ring.nodes)
                load.go_on()
    load.check()


@needs_wires
@pytest.mark.long
def test_a_network_that_loses_and_delays(new_ring):
    ring = new_ring(3, wires=network.Network(is_bad=True)).start().wait_up()
    sessions = connect(ring, ring.nodes)
    prepare(sessions[ring[0]])
    with Load(sessions, "ks.t", threads=3) as load, Counting(sessions, "ks.c", threads=2) as counting:
        load.go_on()
        for faults in ({"loss": 0.02, "duplicate": 0.02, "delay": 0.002, "jitter": 0.02},
                       {"loss": 0, "duplicate": 0, "delay": 0.1, "jitter": 0.1},
                       {"loss": 0.1, "duplicate": 0, "delay": 0, "jitter": 0.005}):
            ring.wires.worsen(**faults)
            load.go_on(100)
            counting.go_on(30)
            ring.wires.worsen(loss=0, duplicate=0, delay=0, jitter=0)
            all_up(ring.nodes)
            load.go_on()
    load.check()
    counting.check()
