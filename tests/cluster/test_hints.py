# SPDX-License-Identifier: Apache-2.0
"""What a node missed comes to it when it is back: rows are read from that node's own data alone, at ONE of a keyspace of
three copies by a coordinator that has one itself."""
import os

import pytest
from cassandra import ConsistencyLevel as CL
from cassandra.query import SimpleStatement

from ring import SLOWNESS, wait_until

KEYS = 40


@pytest.fixture(scope="module")
def session(ring):
    made = ring.connect(only=[ring[0]])
    made.execute("CREATE KEYSPACE hinted WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    made.execute("CREATE TABLE hinted.t (pk int PRIMARY KEY, v int) WITH read_repair = 'NONE'")
    return made


def write(session, value, level=CL.QUORUM):
    for key in range(KEYS):
        session.execute(SimpleStatement("INSERT INTO hinted.t (pk, v) VALUES (%s, %s)", consistency_level=level),
                        (key, value))


def own_rows(ring, node):
    """{pk: v} as the node itself has them: the others are stopped meanwhile for nobody else to answer."""
    others = [each for each in ring.nodes if each is not node]
    session = ring.connect(only=[node])
    for each in others:
        each.pause()
    try:
        found = {}
        for key in range(KEYS):
            row = session.execute(SimpleStatement("SELECT v FROM hinted.t WHERE pk = %s",
                                                  consistency_level=CL.ONE), (key,)).one()
            found[key] = None if row is None else row.v
        return found
    finally:
        for each in others:
            each.resume()
        session.cluster.shutdown()


def pending(node):
    return "does not have any" not in node.nodetool("listpendinghints")


def hint_files(node):
    return sorted(name for name in os.listdir(os.path.join(node.path, "data", "hints"))
                  if name.endswith(".hints"))


def test_a_node_gets_what_it_missed(ring, session):
    host_id = [row.host_id for row in session.execute("SELECT host_id, peer FROM system.peers")
               if row.peer == ring[2].address][0]
    ring[2].kill()
    ring[0].wait_sees(UN=[ring[0], ring[1]], DN=[ring[2]])
    write(session, 1)
    wait_until(lambda: pending(ring[0]), "a file of hints")
    assert all(name.startswith(f"{host_id}-") and name.endswith("-1.hints") for name in hint_files(ring[0]))
    row = session.execute("SELECT * FROM system_views.pending_hints").one()
    assert (row.host_id, row.address, row.status, row.dc) == (host_id, ring[2].address, "DOWN", "datacenter1")
    assert row.files >= 1 and row.oldest <= row.newest
    ring[2].start()
    wait_until(lambda: not hint_files(ring[0]) and not pending(ring[0]), "delivery")
    assert own_rows(ring, ring[2]) == {key: 1 for key in range(KEYS)}


@pytest.mark.long
def test_hints_survive_the_death_of_their_keeper(ring, session):
    ring[0].wait_sees(UN=ring.nodes)
    ring[0].nodetool("pausehandoff")
    ring[2].kill()
    ring[0].wait_sees(UN=[ring[0], ring[1]], DN=[ring[2]])
    write(session, 2)
    wait_until(lambda: hint_files(ring[0]), "a file of hints")
    ring[2].start()
    ring[0].wait_sees(UN=ring.nodes)
    ring[0].kill()
    ring[0].start()
    ring[0].wait_sees(UN=ring.nodes)
    wait_until(lambda: not hint_files(ring[0]), "delivery")
    assert own_rows(ring, ring[2]) == {key: 2 for key in range(KEYS)}


@pytest.mark.long
def test_no_hints_where_handoff_is_off_or_the_window_is_over(ring):
    session = ring.connect(only=[ring[0]])
    ring[0].wait_sees(UN=ring.nodes)
    assert ring[0].nodetool("statushandoff") == "Hinted handoff is running\n"
    ring[0].nodetool("disablehandoff")
    ring[0].nodetool("disablehintsfordc", "datacenter1")
    assert ring[0].nodetool("statushandoff") == \
        "Hinted handoff is not running\nData center datacenter1 is disabled\n"
    ring[2].kill()
    ring[0].wait_sees(UN=[ring[0], ring[1]], DN=[ring[2]])

    def kept():
        write(session, 3)
        ring[0].nodetool("truncatehints")
        return int(metric(ring[0], "cassandra_storage_totalhints"))

    before = kept()
    assert kept() == before
    ring[0].nodetool("enablehandoff")
    assert kept() == before
    ring[0].nodetool("setmaxhintwindow", 0)
    assert ring[0].nodetool("getmaxhintwindow") == "Current max hint window: 0 ms\n"
    ring[0].nodetool("enablehintsfordc", "datacenter1")
    assert kept() == before
    ring[0].nodetool("setmaxhintwindow", 10800000)
    assert kept() == before + KEYS
    ring[0].nodetool("truncatehints", ring[2].address)
    assert "unknown address" in ring[0].nodetool("truncatehints", "127.0.0.99", status=1)
    assert not pending(ring[0])
    ring[2].start()
    ring[0].wait_sees(UN=ring.nodes)
    # What went past the window is told of each ten minutes, or at a clean stop.
    ring[0].restart()
    ring[0].wait_sees(UN=ring.nodes)
    session = ring.connect(only=[ring[0]])
    for table in ("peer_events", "peer_events_v2"):
        rows = list(session.execute(f"SELECT peer, hints_dropped FROM system.{table}"))
        assert [(row.peer, sum(row.hints_dropped.values())) for row in rows] == [(ring[2].address, KEYS)]
    assert f"/{ring[2].address}:7000 has {KEYS} dropped hints, because node is down past" in ring[0].log()


def metric(node, name):
    import urllib.request
    with urllib.request.urlopen(f"http://{node.address}:7199/metrics", timeout=30) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
    return None


@pytest.mark.long
def test_a_node_that_leaves_hands_on_what_it_keeps(new_ring):
    ring = new_ring(4, cassandra__ring_delay_ms=1000 * SLOWNESS).start().wait_up()
    keeper, victim = ring[3], ring[2]
    session = ring.connect(only=[keeper])
    session.execute("CREATE KEYSPACE hinted WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE hinted.t (pk int PRIMARY KEY, v int) WITH read_repair = 'NONE'")
    write(session, 0, CL.ALL)
    for node in ring.nodes:
        node.nodetool("pausehandoff")
    victim.kill()
    keeper.wait_sees(UN=ring.nodes[:2] + [keeper], DN=[victim])
    write(session, 1)
    wait_until(lambda: hint_files(keeper), "a file of hints")
    victim.start()
    ring.wait_up()
    keeper.nodetool("decommission")
    session.cluster.shutdown()
    keeper.stop()
    assert not hint_files(keeper)
    ring.nodes.pop()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
        node.nodetool("resumehandoff")
    wait_until(lambda: not any(hint_files(node) or pending(node) for node in ring.nodes), "delivery")
    assert own_rows(ring, victim) == {key: 1 for key in range(KEYS)}
