# SPDX-License-Identifier: Apache-2.0
"""Repair of rings of real nodes: replicas that missed writes and deletes become equal."""
import re

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement
FACTOR = "{'class': 'SimpleStrategy', 'replication_factor': %d}"


def rows_of(node, query):
    """What a node alone has, with the others not asked: ONE, coordinated by a replica, reads itself."""
    session = node.ring.connect(node, only=[node])
    statement = SimpleStatement(query, consistency_level=ConsistencyLevel.ONE, fetch_size=None)
    return sorted(tuple(row) for row in session.execute(statement))


def write(session, text, *values, level=ConsistencyLevel.ONE):
    session.execute(SimpleStatement(text, consistency_level=level), values)


def make_table(ring, name="t", options="", factor=3):
    session = ring.connect()
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {FACTOR % factor}")
    session.execute(f"CREATE TABLE IF NOT EXISTS ks.{name} (pk int, ck int, v text, s int static, "
                    f"PRIMARY KEY (pk, ck)) WITH read_repair = 'NONE' "
                    f"AND speculative_retry = 'NEVER' {options}")
    return session


def validated(node):
    """How many partitions each validation of ks.t found on this node."""
    return [int(count) for count in re.findall(r"Validated (\d+) partitions of ks\.t", node.log())]


def finished(text):
    return re.search(r"Repair command #\d+ finished in \d+ seconds?\n$", text)


@pytest.fixture
def quiet_ring(new_ring):
    """Nobody keeps hints for who is down."""
    return new_ring(3, hinted_handoff_enabled=False).start().wait_up()


def test_full_repair_brings_what_a_dead_node_missed(quiet_ring):
    ring = quiet_ring
    session = make_table(ring)
    for i in range(200):
        write(session, "INSERT INTO ks.t (pk, ck, v, s) VALUES (%s, %s, %s, %s)", i % 40, i, "old", i,
              level=ConsistencyLevel.ALL)
    ring[2].kill()
    for node in ring.nodes[:2]:
        node.wait_sees(UN=ring.nodes[:2], DN=[ring[2]])
    only = ring.connect(ring[0], only=ring.nodes[:2])
    for i in range(200, 300):
        write(only, "INSERT INTO ks.t (pk, ck, v) VALUES (%s, %s, 'new')", i % 50, i)
    for pk in range(5):
        write(only, "DELETE FROM ks.t WHERE pk = %s", pk)
    for pk in range(5, 10):
        write(only, "DELETE FROM ks.t WHERE pk = %s AND ck < 100", pk)
    text = ring[0].nodetool("repair", "-full", "ks", status=2)
    assert "is dead: session failed" in text
    ring[2].start()
    ring.wait_up()
    query = "SELECT pk, ck, v, s FROM ks.t"
    assert rows_of(ring[2], query) != rows_of(ring[0], query)
    text = ring[0].nodetool("repair", "-full", "ks")
    lines = text.splitlines()
    assert re.match(r"\[[-0-9]+ [0-9:]+,\d{3}\] Starting repair command #\d+ \([-0-9a-f]{36}\), repairing "
                    r"keyspace ks with repair options \(parallelism: parallel, primary range: false, "
                    r"incremental: false, job threads: 1, ", lines[0])
    assert re.search(r"Repair session [-0-9a-f]{36} for range \[\(.*\]\] finished "
                     r"\(progress: 100%\)$", lines[1])
    assert "] Repair completed successfully" in lines[2]
    assert finished(text)
    rows = [rows_of(node, query) for node in ring.nodes]
    assert rows[0] == rows[1] == rows[2]
    assert len(rows[0]) == len([row for row in rows[0]]) > 0
    assert not [row for row in rows[0] if row[0] < 5 and row[1] is not None and row[1] < 200]

    history = list(session.execute("SELECT * FROM system_distributed.repair_history "
                                   "WHERE keyspace_name = 'ks' AND columnfamily_name = 't'"))
    assert [row.status for row in history] == ["SUCCESS"]
    assert sorted(history[0].participants) == sorted(node.address for node in ring.nodes)
    parent = list(session.execute("SELECT * FROM system_distributed.parent_repair_history "
                                  "WHERE parent_id = %s", [history[0].parent_id]))
    assert parent[0].columnfamily_names == {"t"} and parent[0].finished_at is not None
    assert parent[0].successful_ranges == parent[0].requested_ranges
    # Nothing is left to do, and a preview says so.
    assert "Previewed data was in sync" in ring[1].nodetool("repair", "-full", "--preview", "ks", "t")


def test_incremental_repair(quiet_ring):
    ring = quiet_ring
    session = make_table(ring)
    for i in range(300):
        write(session, "INSERT INTO ks.t (pk, ck, v) VALUES (%s, %s, 'old')", i % 40, i,
              level=ConsistencyLevel.ALL)
    ring[1].kill()
    for node in (ring[0], ring[2]):
        node.wait_sees(UN=[ring[0], ring[2]], DN=[ring[1]])
    only = ring.connect(ring[0], only=[ring[0], ring[2]])
    for i in range(300, 400):
        write(only, "INSERT INTO ks.t (pk, ck, v) VALUES (%s, %s, 'new')", i % 50, i)
    ring[1].start()
    ring.wait_up()
    assert finished(ring[0].nodetool("repair", "ks", "t"))
    query = "SELECT pk, ck, v FROM ks.t"
    rows = [rows_of(node, query) for node in ring.nodes]
    assert rows[0] == rows[1] == rows[2] and len(rows[0]) == 400
    for node in ring.nodes:
        assert node.nodetool("repair_admin") == "no sessions\n"
        assert node.nodetool("repair_admin", "summarize-pending") == "nothing pending\n"
        lines = node.nodetool("repair_admin", "list", "--all").splitlines()
        assert len(lines) == 2 and "| FINALIZED |" in lines[1]
        saved = list(ring.connect(node, only=[node]).execute("SELECT * FROM system.repairs"))
        assert [row.state for row in saved] == [4]
        assert sorted(saved[0].participants) == sorted(each.address for each in ring.nodes)
    assert "Repaired data is in sync" in ring[2].nodetool("repair", "--validate", "ks", "t")

    # What was repaired is not looked at again: a difference in it stays, for the next full repair.
    assert "Previewed data was in sync" in ring[0].nodetool("repair", "--preview", "ks", "t")
    before = {node: validated(node) for node in ring.nodes}
    assert finished(ring[1].nodetool("repair", "ks", "t"))
    for node in ring.nodes:
        assert validated(node)[len(before[node]):] == [0]
        node.restart()
    ring.wait_up()
    assert "| FINALIZED |" in ring[0].nodetool("repair_admin", "list", "--all")
    session = ring.connect()
    write(session, "INSERT INTO ks.t (pk, ck, v) VALUES (1, 1000, 'later')", level=ConsistencyLevel.ALL)
    assert finished(ring[2].nodetool("repair", "-pr", "ks"))
    assert [rows_of(node, query) == sorted(rows[0] + [(1, 1000, "later")])
            for node in ring.nodes] == [True] * 3
