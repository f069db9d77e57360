# SPDX-License-Identifier: Apache-2.0
"""Writes and reads over a ring at each consistency level, with all nodes and with one killed."""
import pytest
from cassandra import ConsistencyLevel, Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.query import SimpleStatement

LEVELS = ["ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_ONE", "LOCAL_QUORUM"]


def at(level, text):
    return SimpleStatement(text, consistency_level=getattr(ConsistencyLevel, level))


@pytest.fixture(scope="module")
def sessions(ring):
    """One for each node, which alone coordinates its requests."""
    made = [ring.connect(only=[node]) for node in ring.nodes]
    made[0].execute("CREATE KEYSPACE ks WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 3}")
    made[1].execute("CREATE TABLE ks.t (k text PRIMARY KEY, v int)")
    return made


@pytest.mark.parametrize("level", LEVELS)
def test_what_one_node_wrote_another_reads(sessions, level):
    for value, (writer, reader) in enumerate(zip(sessions, sessions[1:] + sessions[:1])):
        writer.execute(at("ALL", f"INSERT INTO ks.t (k, v) VALUES ('{level}', -1)"))
        writer.execute(at(level, f"INSERT INTO ks.t (k, v) VALUES ('{level}', {value})"))
        # Level and level may miss each other where their sum is not above the factor.
        other = "ALL" if level in ("ONE", "LOCAL_ONE") else level
        row = reader.execute(at(other, f"SELECT v FROM ks.t WHERE k = '{level}'")).one()
        assert row.v == value


def test_a_scan_over_all_ranges(sessions):
    for i in range(200):
        sessions[i % 3].execute(at("QUORUM", f"INSERT INTO ks.t (k, v) VALUES ('scan{i}', {i})"))
    for session in sessions:
        rows = session.execute(at("QUORUM", "SELECT k, v FROM ks.t"))
        assert {row.v for row in rows if row.k.startswith("scan")} == set(range(200))


def test_size_estimates_of_all_nodes_are_the_ring_once(ring, sessions):
    for table, where in (("size_estimates", ""), ("table_estimates", "AND range_type = 'primary'"),
                         ("table_estimates", "AND range_type = 'local_primary'")):
        ranges = []
        for node, session in zip(ring.nodes, sessions):
            node.nodetool("refreshsizeestimates")
            ranges += [(int(row.range_start), int(row.range_end)) for row in session.execute(
                f"SELECT * FROM system.{table} WHERE keyspace_name = 'ks' AND table_name = 't' {where}")]
        ranges.sort()
        assert len(ranges) == 3 * 16 + 1
        assert ranges[0][0] == ranges[-1][1] == -2 ** 63
        assert [end for _, end in ranges[:-1]] == [start for start, _ in ranges[1:]]


@pytest.mark.parametrize("text", [
    "SELECT k, v FROM ks.t", "SELECT k, v FROM ks.t WHERE v >= 0 ALLOW FILTERING",
    "SELECT k, v FROM ks.t WHERE token(k) > -4000000000000000000 AND token(k) < 4000000000000000000"])
def test_a_range_asks_another_where_a_replica_does_not_answer(ring, sessions, text):
    for i in range(20):
        sessions[0].execute(at("ALL", f"INSERT INTO ks.t (k, v) VALUES ('late{i}', {i})"))
    # How long answers of ranges take has to be known.
    for _ in range(20):
        expected = sorted(sessions[0].execute(at("QUORUM", text)))
    ring[1].pause()
    try:
        for _ in range(10):
            assert sorted(sessions[0].execute(at("QUORUM", text))) == expected
        # Nobody has missed the node yet: what was read did not wait for that.
        assert ring[0].status()[ring[1].address] == "UN"
    finally:
        ring[1].resume()


def test_a_killed_node_costs_what_the_level_says(ring, sessions):
    ring[2].kill()
    for node in ring.nodes[:2]:
        node.wait_sees(UN=ring.nodes[:2], DN=[ring[2]])
    for level in ("ONE", "TWO", "QUORUM", "LOCAL_QUORUM"):
        sessions[0].execute(at(level, f"INSERT INTO ks.t (k, v) VALUES ('down', {len(level)})"))
        assert sessions[1].execute(
            at("QUORUM", "SELECT v FROM ks.t WHERE k = 'down'")).one().v == len(level)
    for level in ("ALL", "THREE"):
        for text in ("INSERT INTO ks.t (k, v) VALUES ('down', 0)", "SELECT v FROM ks.t WHERE k = 'down'"):
            with pytest.raises(NoHostAvailable) as refused:
                sessions[0].execute(at(level, text))
            error = list(refused.value.errors.values())[0]
            assert isinstance(error, Unavailable)
            assert (error.required_replicas, error.alive_replicas) == (3, 2)
    ring[2].start()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
    sessions[0].execute(at("ALL", "INSERT INTO ks.t (k, v) VALUES ('back', 1)"))
