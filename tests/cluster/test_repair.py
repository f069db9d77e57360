# SPDX-License-Identifier: Apache-2.0
"""Repair of rings of real nodes: replicas that missed writes and deletes become equal."""
import random
import re
import subprocess

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from ring import NODETOOL, PATIENCE, wait_until

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


KINDS = {
    "plain": ("pk int, ck int, v text, w int, s text static, PRIMARY KEY (pk, ck)", "pk, ck, v, w, s, writetime(v)"),
    "collections": ("pk int, ck int, l list<int>, m map<text, int>, t set<int>, f frozen<list<int>>, "
                    "PRIMARY KEY (pk, ck)", "pk, ck, l, m, t, f"),
    "expiring": ("pk int, ck int, v text, PRIMARY KEY (pk, ck)", "pk, ck, v, ttl(v)"),
    "counters": ("pk int, ck int, n counter, PRIMARY KEY (pk, ck)", "pk, ck, n"),
    "same": ("pk int PRIMARY KEY, v int", "pk, v"),
}


def change_at_random(session, chance, count):
    """Writes and deletes of each kind, which the nodes that are down miss."""
    def run(text):
        write(session, text)

    for _ in range(count):
        pk, ck, n = chance.randrange(20), chance.randrange(50), chance.randrange(1000)
        upper = ck + chance.randrange(10)
        run(chance.choice([
            f"INSERT INTO ks.plain (pk, ck, v, w) VALUES ({pk}, {ck}, 'v{n}', {n})",
            f"UPDATE ks.plain SET s = 's{n}' WHERE pk = {pk}",
            f"DELETE FROM ks.plain WHERE pk = {pk} AND ck = {ck}",
            f"DELETE v FROM ks.plain WHERE pk = {pk} AND ck = {ck}",
            f"DELETE s FROM ks.plain WHERE pk = {pk}",
            f"DELETE FROM ks.plain WHERE pk = {pk} AND ck >= {ck} AND ck < {upper}",
            f"DELETE FROM ks.plain WHERE pk = {pk} AND ck > {ck}",
            f"DELETE FROM ks.plain WHERE pk = {pk % 3}"]))
        run(chance.choice([
            f"UPDATE ks.collections SET l = l + [{n}], m['k{n % 7}'] = {n}, t = t + {{{n % 9}}} "
            f"WHERE pk = {pk} AND ck = {ck}",
            f"UPDATE ks.collections SET l = [{n}], f = [{n}, 1] WHERE pk = {pk} AND ck = {ck}",
            f"DELETE m['k{n % 7}'], t FROM ks.collections WHERE pk = {pk} AND ck = {ck}",
            f"UPDATE ks.collections SET t = t - {{{n % 9}}} WHERE pk = {pk} AND ck = {ck}"]))
        run(chance.choice([
            f"INSERT INTO ks.expiring (pk, ck, v) VALUES ({pk}, {ck}, 'v{n}') USING TTL {chance.choice([3, 100000])}",
            f"DELETE FROM ks.expiring WHERE pk = {pk} AND ck = {ck}"]))
        run(f"UPDATE ks.counters SET n = n + {n} WHERE pk = {pk} AND ck = {ck % 5}")


def only_with(ring, down):
    """A session while one node is dead; the node starts again with .start()."""
    down.kill()
    up = [node for node in ring.nodes if node is not down]
    for node in up:
        node.wait_sees(UN=up, DN=[down])
    return ring.connect(up[0], only=up)


def test_replicas_that_differ_in_every_way_become_equal(quiet_ring):
    ring = quiet_ring
    session = ring.connect()
    session.execute(f"CREATE KEYSPACE ks WITH replication = {FACTOR % 3}")
    for name, (columns, _) in KINDS.items():
        session.execute(f"CREATE TABLE ks.{name} ({columns}) WITH read_repair = 'NONE' "
                        "AND speculative_retry = 'NEVER'" if name != "counters" else
                        f"CREATE TABLE ks.{name} ({columns})")
    for pk in range(100):
        write(session, f"INSERT INTO ks.same (pk, v) VALUES ({pk}, 1)", level=ConsistencyLevel.ALL)
    chance = random.Random(4)
    change_at_random(session, chance, 60)
    for number, down in enumerate(ring.nodes):
        change_at_random(only_with(ring, down), chance, 60)
        if number == 1:
            ring[0].nodetool("flush")
        down.start()
        ring.wait_up()
    everything = {name: f"SELECT {columns} FROM ks.{name}" for name, (_, columns) in KINDS.items()}
    for name in ("plain", "collections", "expiring", "counters"):
        assert len({str(rows_of(node, everything[name].replace(", ttl(v)", ""))) for node in ring.nodes}) > 1, name
    text = ring[0].nodetool("repair", "-full", "--preview", "ks")
    assert re.search(r"Total estimated streaming: [1-9]", text)
    assert finished(ring[1].nodetool("repair", "-full", "-j", "2", "ks"))
    # With tombstones and all that nobody sees.
    assert "Previewed data was in sync" in ring[2].nodetool("repair", "-full", "--preview", "ks")
    for name, query in everything.items():
        query = query.replace(", ttl(v)", "")
        rows = [rows_of(node, query) for node in ring.nodes]
        assert rows[0] == rows[1] == rows[2] and rows[0], name
    assert "consistent for same" in ring[1].log() and "out of sync for same" not in ring[1].log()
    # Compactions of it change nothing.
    ring[0].nodetool("compact", "ks")
    assert "Previewed data was in sync" in ring[2].nodetool("repair", "-full", "--preview", "ks")


class Started:
    """A nodetool repair in the background."""

    def __init__(self, node, *words):
        self.node = node
        self.process = subprocess.Popen([NODETOOL, "-h", node.address, "repair", *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self):
        text, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, text


def sessions_of(node):
    lines = node.nodetool("repair_admin", "list").splitlines()
    return [[part.strip() for part in line.split("|")] for line in lines[1:]]


def is_streaming(node):
    return "Repair" in node.nodetool("netstats") and node.nodetool("netstats").count("Receiving")


@pytest.fixture
def slow_ring(new_ring):
    """Three nodes of which the last one lacks some MB, that others would send it for half a minute."""
    ring = new_ring(3, hinted_handoff_enabled=False, stream_throughput_outbound="200KiB/s",
                    entire_sstable_stream_throughput_outbound="200KiB/s").start().wait_up()
    make_table(ring, options="AND compression = {'enabled': 'false'}")
    only = only_with(ring, ring[2])
    statement = only.prepare("INSERT INTO ks.t (pk, ck, v) VALUES (?, ?, ?)")
    for pk in range(300):
        only.execute(statement, (pk, 0, str(pk) * 8000))
    ring[2].start()
    return ring.wait_up()


def unthrottle(ring):
    for node in ring.nodes:
        node.nodetool("setstreamthroughput", 0)
        node.nodetool("setstreamthroughput", "-e", 0)


@pytest.mark.long
def test_an_incremental_repair_is_cancelled(slow_ring):
    ring = slow_ring
    repair = Started(ring[0], "ks")
    wait_until(lambda: sessions_of(ring[2]) and is_streaming(ring[2]), "the session's streams")
    [[session, state, _, coordinator, _]] = sessions_of(ring[2])
    assert state in ("PREPARED", "REPAIRING") and coordinator.startswith(f"/{ring[0].address}:")
    assert ring[0].nodetool("repair_admin", "summarize-pending") != "nothing pending\n"
    text = ring[2].nodetool("repair_admin", "cancel", "-s", session, status=1)
    assert "coordinator" in text
    ring[0].nodetool("repair_admin", "cancel", "-s", session)
    status, text = repair.end()
    assert status == 2 and "cancelled" in text
    for node in ring.nodes:
        wait_until(lambda each=node: not sessions_of(each), "the end of the session")
        assert "| FAILED |" in node.nodetool("repair_admin", "list", "--all")
        wait_until(lambda each=node: each.nodetool("repair_admin", "summarize-pending") == "nothing pending\n",
                   "SSTables that are free again")
    unthrottle(ring)
    assert finished(ring[1].nodetool("repair", "ks"))
    query = "SELECT pk, v FROM ks.t"
    assert rows_of(ring[2], query) == rows_of(ring[0], query)


@pytest.mark.long
@pytest.mark.parametrize("is_incremental", [False, True])
def test_a_participant_dies_and_the_next_repair_goes_on(slow_ring, is_incremental):
    ring = slow_ring
    repair = Started(ring[0], *([] if is_incremental else ["-full"]), "ks")
    wait_until(lambda: is_streaming(ring[2]), "streams")
    ring[2].kill()
    status, text = repair.end()
    assert status == 2
    assert re.search(rf"Repair session [-0-9a-f]{{36}} for range .* failed with error .*{ring[2].address}", text)
    assert "Repair command #1 finished with error" in text
    ring[2].start()
    ring.wait_up()
    unthrottle(ring)
    assert finished(ring[0].nodetool("repair", *([] if is_incremental else ["-full"]), "ks"))
    query = "SELECT pk, v FROM ks.t"
    assert rows_of(ring[2], query) == rows_of(ring[0], query)
    for node in ring.nodes:
        assert node.nodetool("repair_admin") == "no sessions\n"
        assert node.nodetool("repair_admin", "summarize-pending") == "nothing pending\n"


@pytest.mark.long
def test_two_repairs_of_one_table_at_once_and_one_that_is_dropped(slow_ring):
    ring = slow_ring
    repairs = [Started(ring[0], "ks"), Started(ring[1], "-full", "ks")]
    wait_until(lambda: is_streaming(ring[2]), "streams")
    # An incremental repair of what another one has in hand is refused; full ones are not in anybody's way.
    status, text = Started(ring[1], "ks").end()
    assert status == 2, text
    unthrottle(ring)
    for repair in repairs:
        status, text = repair.end()
        assert status == 0, text
    query = "SELECT pk, v FROM ks.t"
    assert rows_of(ring[2], query) == rows_of(ring[0], query)
    for node in ring.nodes:
        node.nodetool("setstreamthroughput", "-m", 1)
    session = ring.connect()
    session.execute("CREATE TABLE ks.u (pk int PRIMARY KEY, v text)")
    only = only_with(ring, ring[2])
    for pk in range(50):
        only.execute("INSERT INTO ks.u (pk, v) VALUES (%s, %s)", (pk, "v" * 30000))
    ring[2].start()
    ring.wait_up()
    repair = Started(ring[0], "-full", "ks")
    session.execute("DROP TABLE ks.u")
    status, text = repair.end()
    assert status in (0, 2), text
    if status == 2:
        assert "dropped" in text
    assert finished(ring[0].nodetool("repair", "-full", "ks"))
