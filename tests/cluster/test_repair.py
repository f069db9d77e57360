# SPDX-License-Identifier: Apache-2.0
"""Repair of rings of real nodes: replicas that missed writes and deletes become equal."""
import os
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


def pending(node, *words):
    """{"ks.table": (SSTables, sessions)} that stand apart for incremental repairs."""
    found = re.findall(r"^(\w+) +\| (\w+) +\| [^|]*?\((\d+) sstables / (\d+) sessions\)",
                       node.nodetool("repair_admin", "summarize-pending", *words), re.M)
    return {f"{keyspace}.{table}": (int(sstables), int(sessions)) for keyspace, table, sstables, sessions in found}


def has_pending(node):
    return any(sessions for _, sessions in pending(node).values())


def repaired(node, *words):
    """{"ks.table": (first, last time in ms)}"""
    found = re.findall(r"^(\w+) +\| (\w+) +\| (\d+) +\| (\d+)",
                       node.nodetool("repair_admin", "summarize-repaired", *words), re.M)
    return {f"{keyspace}.{table}": (int(first), int(last)) for keyspace, table, first, last in found}


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
    here = ring.connect(ring[0], only=[ring[0]])
    views = {row.command_id: row for row in here.execute("SELECT * FROM system_views.repairs")}
    assert sorted(views) == [1, 2]
    assert (views[1].status, views[1].completed) == ("failure", True) and "is dead" in views[1].failure_cause
    view = views[2]
    assert (view.status, view.keyspace_name, view.type) == ("success", "ks", "full")
    assert (view.options_parallelism, view.options_job_threads, view.options_column_families) == ("PARALLEL", 1, set())
    assert view.state_init_timestamp <= view.state_prepare_start_timestamp <= view.state_repair_start_timestamp \
        <= view.state_repair_complete_timestamp <= view.state_success_timestamp and not view.state_failure_timestamp
    assert sorted(view.participants) == sorted(f"/{node.address}:7000" for node in ring.nodes)
    assert len(view.ranges) == 1 and view.ranges == view.unfiltered_ranges and view.table_names == ["t"]
    assert set(view.ranges[0]) == parent[0].successful_ranges
    [row] = here.execute("SELECT * FROM system_views.repair_sessions")
    assert {row.id} == view.sessions and row.repair_id == view.id and row.status == "success"
    assert sorted(row.ranges) == sorted(view.ranges[0]) and row.table_names == ["t"]
    [job] = here.execute("SELECT * FROM system_views.repair_jobs")
    assert {job.id} == row.jobs and job.session_id == row.id and (job.table_name, job.status) == ("t", "success")
    ids = set()
    assert job.state_validation_start_timestamp <= job.state_validation_complete_timestamp \
        <= job.state_stream_start_timestamp
    # The participants' side: the session had one validation, under one id everywhere.
    for node in ring.nodes:
        there = ring.connect(node, only=[node])
        parts = {row.id: row for row in there.execute("SELECT * FROM system_views.repair_participates")}
        part = parts[view.id]
        assert (part.completed, part.incremental, getattr(part, "global", None) or part[list(part._fields).index("field_4_")],
                part.preview_kind, part.repaired_at) == (True, False, True, "NONE", None)
        assert part.initiator == f"/{ring[0].address}:7000" and part.tables == {"ks.t"}
        assert sorted(part.ranges) == sorted(view.ranges[0]) and part.failure_cause is None
        assert part.state_init_timestamp <= part.state_success_timestamp
        [validation] = [each for each in there.execute("SELECT * FROM system_views.repair_validations")
                        if each.repair_id == view.id]
        assert part.validations == {validation.id} and validation.session_id == row.id
        assert (validation.status, validation.keyspace_name, validation.table_name) == ("success", "ks", "t")
        assert validation.partitions_processed > 0 and validation.bytes_read > 0
        assert validation.progress_percentage == 100 and validation.estimated_partitions > 0
        assert validation.state_start_timestamp <= validation.state_sending_trees_timestamp \
            <= validation.state_success_timestamp
        ids.add(validation.id)
    assert len(ids) == 1
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
        assert not has_pending(node)
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
    # When what was repaired: of the whole ring at one time; that is on the disk.
    first, last = repaired(ring[0])["ks.t"]
    assert first == last > 0 and all(repaired(node)["ks.t"] == (first, last) for node in ring.nodes)
    assert f"| (-9223372036854775808,-9223372036854775808]={last}" in \
        ring[0].nodetool("repair_admin", "summarize-repaired", "-v", "ks", "t")
    assert repaired(ring[0])["system_distributed.repair_history"] == (0, 0)
    assert "Unknown keyspace/cf pair (ks.nothing)" in \
        ring[0].nodetool("repair_admin", "summarize-repaired", "ks", "nothing", status=1)
    assert "unexpected parameters: [ks]" in ring[0].nodetool("repair_admin", "list", "ks", status=1)
    session = ring.connect()
    write(session, "INSERT INTO ks.t (pk, ck, v) VALUES (1, 1000, 'later')", level=ConsistencyLevel.ALL)
    assert finished(ring[2].nodetool("repair", "-pr", "ks"))
    assert [rows_of(node, query) == sorted(rows[0] + [(1, 1000, "later")])
            for node in ring.nodes] == [True] * 3
    # Some ranges were repaired again, others not.
    assert repaired(ring[0])["ks.t"][0] == last < repaired(ring[0])["ks.t"][1]


def test_trace_and_optimised_streams(quiet_ring):
    ring = quiet_ring
    session = make_table(ring)
    for pk in range(50):
        write(session, "INSERT INTO ks.t (pk, ck, v) VALUES (%s, 0, 'old')", pk, level=ConsistencyLevel.ALL)
    query = "SELECT pk, ck, v FROM ks.t"

    # Two replicas are equal, and the third lacks something that they have.
    only = only_with(ring, ring[2])
    write(only, "INSERT INTO ks.t (pk, ck, v) VALUES (7, 1, 'of two')", level=ConsistencyLevel.TWO)
    ring[2].start()
    ring.wait_up()

    def syncs(text):
        return re.findall(r"(?:/([0-9.]+): )?Syncing (\d+) range\(s\) of ks.t with /([0-9.]+):", text)

    text = ring[0].nodetool("repair", "-full", "-tr", "-os", "ks", "t")
    assert "optimise streams: true" in text and "Repair command #1 finished in" in text
    a, b, c = (node.address for node in ring.nodes)
    found = {(by or a, of) for by, _, of in syncs(text)}
    assert len(syncs(text)) == 3 and {(a, c), (b, c)} < found and ((c, a) in found or (c, b) in found)
    assert "Received merkle tree for t from" in text and "t is fully synced" in text
    assert re.search(rf"/{re.escape(c)}: Validated \d+ partitions of ks\.t", text)
    assert re.search(rf"/{re.escape(c)}: VALIDATION_REQ message received from /{re.escape(a)}", text)
    rows = [rows_of(node, query) for node in ring.nodes]
    assert rows[0] == rows[1] == rows[2] and len(rows[0]) == 51
    [traced] = [row for row in ring.connect().execute("SELECT * FROM system_traces.sessions") if row.command == "REPAIR"]
    assert traced.request == "repair" and traced.duration > 0 and traced.coordinator == a
    assert traced.parameters == {"keyspace": "ks", "columnFamilies": "ks.t"}
    [view] = ring.connect(ring[0], only=[ring[0]]).execute("SELECT * FROM system_views.repairs")
    assert view.options_trace and view.options_optimise_streams


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


@pytest.mark.long
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
    assert has_pending(ring[0]) and pending(ring[0], "ks", "t")["ks.t"][1] == 1
    text = ring[0].nodetool("repair_admin", "summarize-pending", "-v", "ks")
    assert re.search(r"^keyspace +\| table +\| total +\| pending +\| finalized +\| failed", text)
    text = ring[0].nodetool("repair_admin", "cleanup", "ks")  # of a session that runs: nothing
    assert re.search(r"^ks +\| t +\| 0 +\| 0", text, re.M) and has_pending(ring[0])
    text = ring[2].nodetool("repair_admin", "cancel", "-s", session, status=1)
    assert "coordinator" in text
    ring[0].nodetool("repair_admin", "cancel", "-s", session)
    status, text = repair.end()
    assert status == 2 and "cancelled" in text
    for node in ring.nodes:
        wait_until(lambda each=node: not sessions_of(each), "the end of the session")
        assert "| FAILED |" in node.nodetool("repair_admin", "list", "--all")
        wait_until(lambda each=node: not has_pending(each), "SSTables that are free again")
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
        assert not has_pending(node)


@pytest.mark.long
@pytest.mark.parametrize("is_incremental", [False, True])
def test_the_coordinator_dies_and_another_node_repairs_at_once(slow_ring, is_incremental):
    """What participants keep for the dead one is in nobody's way, as soon as they see that it is dead."""
    ring = slow_ring
    full = [] if is_incremental else ["-full"]
    repair = Started(ring[0], *full, "ks")
    wait_until(lambda: is_streaming(ring[2]), "streams")
    ring[0].kill()
    status, _ = repair.end()
    assert status != 0
    left = ring.nodes[1:]
    for node in left:
        node.wait_sees(UN=left, DN=[ring[0]])
    unthrottle(Left(left))
    assert "Repair command #1 finished in" in ring[1].nodetool("repair", *full, "--force", "ks")
    query = "SELECT pk, v FROM ks.t"
    assert rows_of(ring[2], query) == rows_of(ring[1], query)
    there = ring.connect(ring[1], only=left)
    ended = {row.initiator: row for row in there.execute("SELECT * FROM system_views.repair_participates")}
    assert f"Coordinator /{ring[0].address}:7000 died" == ended[f"/{ring[0].address}:7000"].failure_cause
    ring[0].start()
    ring.wait_up()
    assert "Repair command #1 finished in" in ring[0].nodetool("repair", *full, "ks")
    for node in ring.nodes:
        assert node.nodetool("repair_admin") == "no sessions\n"
        assert not has_pending(node)


class Left:
    def __init__(self, nodes):
        self.nodes = nodes


@pytest.mark.long
def test_validations_are_stopped(new_ring):
    ring = new_ring(3, hinted_handoff_enabled=False).start().wait_up()
    session = make_table(ring, options="AND compression = {'enabled': 'false'}")
    insert = session.prepare("INSERT INTO ks.t (pk, ck, v) VALUES (?, ?, ?)")
    for pk in range(200):
        for answer in [session.execute_async(insert, (pk, ck, "v" * 2000)) for ck in range(100)]:
            answer.result()
    for node in ring.nodes:
        node.nodetool("flush", "ks")
    repair = Started(ring[0], "-full", "ks")

    def is_validating(node):
        there = ring.connect(node, only=[node])
        found = [row for row in there.execute("SELECT * FROM system_views.repair_validations") if row.status == "start"]
        there.cluster.shutdown()
        return found

    wait_until(lambda: is_validating(ring[1]) or repair.process.poll() is not None, "a validation")
    ring[1].nodetool("stop", "VALIDATION")
    status, text = repair.end()
    if status == 0:
        pytest.skip("it had validated before it could be stopped")
    assert status == 2 and re.search(rf"Validation failed in /{re.escape(ring[1].address)}:7000: .*cancelled", text), text
    [view] = ring.connect(ring[1], only=[ring[1]]).execute("SELECT * FROM system_views.repair_validations")
    assert view.status == "failure" and "cancelled" in view.failure_cause
    assert finished(ring[0].nodetool("repair", "-full", "ks"))


@pytest.mark.long
def test_a_repair_while_a_node_bootstraps(new_ring):
    """The ranges are those of the ring as it is; the node that joins gets what is repaired as it gets other writes."""
    ring = new_ring(3, hinted_handoff_enabled=False, cassandra__ring_delay_ms=1000,
                    stream_throughput_outbound="50KiB/s",
                    entire_sstable_stream_throughput_outbound="50KiB/s").start().wait_up()
    make_table(ring, options="AND compression = {'enabled': 'false'}", factor=2)
    session = ring.connect()
    statement = session.prepare("INSERT INTO ks.t (pk, ck, v) VALUES (?, ?, ?)")
    for pk in range(300):
        session.execute(statement, (pk, 0, str(pk) * 2000))
    fourth = ring.add(auto_bootstrap=True).launch()
    wait_until(lambda: os.path.exists(fourth.log_path) and "Starting to bootstrap" in fourth.log(), "a bootstrap")
    wait_until(lambda: ring[0].status().get(fourth.address) == "UJ", "a node that joins")
    # By chance one or the other has hardly anything to give.
    sources = [ring.connect(node, only=[node]) for node in ring.nodes[:3]]
    plans = "SELECT * FROM system_views.streaming"
    there, row = wait_until(lambda: next(((source, row) for source in sources for row in source.execute(plans)
                                          if row.bytes_to_send > row.bytes_sent), None), "a stream")
    assert (row.operation, row.follower, row.status) == ("Bootstrap", True, "start")
    assert row.peers == [f"/{fourth.address}:7000"] and row.files_to_send > 0
    # Both kinds, of all ranges of this node, while it lasts.
    assert finished(ring[0].nodetool("repair", "-full", "ks"))
    assert ring[0].status().get(fourth.address) == "UJ"
    assert finished(ring[1].nodetool("repair", "ks"))
    assert "Previewed data was in sync" in ring[2].nodetool("repair", "-full", "--preview", "ks")
    for node in ring.nodes[:3]:
        node.nodetool("setstreamthroughput", 0)
        node.nodetool("setstreamthroughput", "-e", 0)
    fourth.wait_ready()
    ring.wait_up()
    row = wait_until(lambda: next((row for row in there.execute(plans)
                                   if row.operation == "Bootstrap" and row.status == "success"), None),
                     lambda: f"the end of {list(there.execute(plans))}")
    assert row.bytes_sent == row.bytes_to_send > 0 and row.files_sent == row.files_to_send
    assert row.progress_percentage == 100 and row.status_init_timestamp <= row.status_success_timestamp
    for node in ring.nodes:
        assert finished(node.nodetool("repair", "-pr", "ks"))
    rows = sorted(tuple(row) for row in ring.connect(fourth, only=[fourth]).execute("SELECT pk FROM ks.t"))
    assert rows == sorted((pk,) for pk in range(300))


@pytest.mark.long
def test_two_repairs_of_one_table_at_once_and_one_that_is_dropped(slow_ring):
    ring = slow_ring
    repairs = [Started(ring[0], "ks"), Started(ring[1], "-full", "ks")]
    wait_until(lambda: all([row[1] for row in sessions_of(node)] in (["PREPARED"], ["REPAIRING"])
                           for node in ring.nodes), "a session that has the data in hand")
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


@pytest.mark.long
def test_data_centers_and_hosts_that_take_part(new_ring):
    ring = new_ring(4, hinted_handoff_enabled=False, endpoint_snitch="GossipingPropertyFileSnitch")
    for number, node in enumerate(ring.nodes):
        node.options.update(dc=f"dc{number // 2 + 1}", rack="r1")
    ring.start().wait_up()
    session = ring.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 2, 'dc2': 2}")
    session.execute("CREATE TABLE ks.t (pk int PRIMARY KEY, v int) WITH read_repair = 'NONE' "
                    "AND speculative_retry = 'NEVER'")
    query = "SELECT pk, v FROM ks.t"

    def missed(down, first):
        only = only_with(ring, down)
        for pk in range(first, first + 100):
            write(only, "INSERT INTO ks.t (pk, v) VALUES (%s, 1)", pk)
        down.start()
        ring.wait_up()

    missed(ring[1], 0)
    missed(ring[3], 100)
    counts = [len(rows_of(node, query)) for node in ring.nodes]
    assert counts == [200, 100, 200, 100]
    assert "must be part of the repair" in ring[0].nodetool("repair", "-full", "-dc", "dc2", "ks", status=2)
    assert "must be part of the repair" in ring[0].nodetool("repair", "-full", "-hosts", ring[3].address, "ks",
                                                          status=2)
    # What only some replicas took part in does not count as repaired.
    text = ring[0].nodetool("repair", "-local", "ks")
    assert "dataCenters: [dc1]" in text and finished(text)
    assert [len(rows_of(node, query)) for node in ring.nodes] == [200, 200, 200, 100]
    assert "Previewed data was in sync" in ring[0].nodetool("repair", "-full", "--preview", "-local", "ks")
    assert "Total estimated streaming" in ring[0].nodetool("repair", "--preview", "ks")
    missed(ring[1], 200)
    # Of the ranges that two replicas have in common, one fetches.
    start, end = ring[1].nodetool("describering", "ks").split("start_token:")[1].split(", end_token:")
    end = end.split(",")[0]
    text = ring[1].nodetool("repair", "-full", "-pl", "-hosts", ring[0].address, "-hosts", ring[1].address,
                            "-st", start, "-et", end, "ks")
    assert "pull repair: true" in text and finished(text)
    assert len(rows_of(ring[1], query)) >= 200
    text = ring[0].nodetool("repair", "-full", "-dc", "dc1", "-dc", "dc2", "-dcpar", "ks")
    assert "parallelism: dc_parallel" in text and finished(text)
    assert [len(rows_of(node, query)) for node in ring.nodes] == [300] * 4
    # Only those that are alive, where that is wanted.
    ring[3].kill()
    ring[0].wait_sees(UN=ring.nodes[:3], DN=[ring[3]])
    assert "is dead" in ring[0].nodetool("repair", "-full", "ks", status=2)
    assert finished(ring[0].nodetool("repair", "-full", "--force", "-seq", "ks"))
    ring[3].start()
    ring.wait_up()
    for node in ring.nodes:
        assert finished(node.nodetool("repair", "-pr", "ks"))
    assert "Repaired data is in sync" in ring[0].nodetool("repair", "--validate", "ks")


@pytest.mark.long
def test_repaired_data_stays_apart_from_the_rest(quiet_ring):
    """Compactions do not mix it, and what little differs in much data moves little."""
    ring = quiet_ring
    session = make_table(ring, options="AND compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2}")
    for pk in range(1000):
        write(session, "INSERT INTO ks.t (pk, ck, v) VALUES (%s, 0, %s)", pk, "v" * 500, level=ConsistencyLevel.ALL)
    assert finished(ring[0].nodetool("repair", "ks"))

    def repaired():
        found = re.search(r"Percent repaired: ([0-9.]+)", ring[2].nodetool("tablestats", "ks.t"))
        return float(found[1])

    assert repaired() == 100.0
    for i in range(3):
        for pk in range(1000):
            write(session, "INSERT INTO ks.t (pk, ck, v) VALUES (%s, 1, %s)", pk, "w" * 500, level=ConsistencyLevel.ALL)
        for node in ring.nodes:
            node.nodetool("flush", "ks")
    for node in ring.nodes:
        node.nodetool("compact", "ks", "t")
    assert 20 < repaired() < 80
    assert "SSTable count: 2" in ring[2].nodetool("tablestats", "ks.t")
    only = only_with(ring, ring[2])
    write(only, "INSERT INTO ks.t (pk, ck, v) VALUES (7, 2, 'little')")
    ring[2].start()
    ring.wait_up()
    assert finished(ring[1].nodetool("repair", "ks"))
    assert repaired() == 100.0
    query = "SELECT pk, ck, v FROM ks.t"
    assert rows_of(ring[2], query) == rows_of(ring[0], query)
    pattern = r"ranges? out of sync for t"
    assert re.findall(rf"have (\d+) {pattern}|have (\d+) range\(s\) out of sync for t", ring[1].log())
    counts = re.findall(r"have (\d+) range\(s\) out of sync for t", ring[1].log())
    assert counts and set(counts) == {"1"}
