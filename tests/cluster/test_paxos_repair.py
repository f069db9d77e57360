# SPDX-License-Identifier: Apache-2.0
"""What conditional statements left over is finished: by nodetool repair, and before the ring changes."""
import os
import re

import pytest
from cassandra import ConsistencyLevel, OperationTimedOut, WriteTimeout
from cassandra.protocol import ConfigurationException
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import SimpleStatement

from ring import SLOWNESS, wait_until

STATE = "SELECT row_key, cf_id, in_progress_ballot, proposal_ballot, proposal, most_recent_commit_at FROM system.paxos"


def open_rounds(node):
    """Partitions that this node promised or accepted something for, and does not know the end of."""
    session = node.ring.connect(node, only=[node])
    found = set()
    for row in session.execute(STATE):
        last = max((b for b in (row.in_progress_ballot, row.proposal_ballot) if b is not None),
                   key=lambda ballot: ballot.time, default=None)
        if last is None:
            continue  # the schema's
        is_committed = row.most_recent_commit_at is not None and row.most_recent_commit_at.time >= last.time
        is_empty = row.proposal_ballot is not None and row.proposal_ballot.time >= last.time and not row.proposal
        if not is_committed and not is_empty:
            found.add((row.row_key, row.cf_id))
    return found


def finished(node):
    return sum(int(n) for n in re.findall(r"Paxos repair of keyspace ks: (\d+) partition", node.log()))


def is_stopped(pid):
    """All of its threads; the signal alone says nothing."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii", errors="replace") as stat:
            if stat.read().rpartition(")")[2].split()[0] != "T":
                return False
    return True


def leave_open(ring, others, table="t", keys=range(5)):
    """Conditional statements whose coordinator, the first node, has no majority: it has promised itself something."""
    session = ring.connect(ring[0], only=[ring[0]])
    for node in others:
        node.pause()
    for node in others:
        wait_until(lambda pid=node.process.pid: is_stopped(pid), "a node that stands still")
    for key in keys:
        statement = SimpleStatement(f"INSERT INTO ks.{table} (k, v) VALUES ({key}, 1) IF NOT EXISTS",
                                    retry_policy=FallthroughRetryPolicy())
        with pytest.raises((WriteTimeout, OperationTimedOut)):
            session.execute(statement, timeout=30)
    for node in others:
        node.resume()
    wait_until(lambda: ring[0].sees(UN=ring.nodes), "the others again")


def make_table(ring, factor=3):
    session = ring.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': %d}"
                    % factor)
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE ks.other (k int PRIMARY KEY, v int)")
    return session


def test_repair_finishes_what_was_left_over(new_ring):
    ring = new_ring(3, cas_contention_timeout="300ms", write_request_timeout="300ms").start().wait_up()
    session = make_table(ring)
    session.execute("INSERT INTO ks.t (k, v) VALUES (100, 1) IF NOT EXISTS")
    leave_open(ring, ring.nodes[1:])
    leave_open(ring, ring.nodes[1:], "other", [7])
    before = open_rounds(ring[0])
    assert len(before) >= 5
    assert "Cannot specify both" in ring[0].nodetool("repair", "--paxos-only", "--skip-paxos", "ks", status=1)
    text = ring[1].nodetool("repair", "-full", "--skip-paxos", "ks")
    assert "repairPaxos: false, paxosOnly: false" in text
    assert open_rounds(ring[0]) == before and finished(ring[0]) == 0
    validated = ring[0].log().count("Validated")
    # Of one table; the other is left as it is.
    text = ring[1].nodetool("repair", "--paxos-only", "ks", "other")
    assert "incremental: false" in text and "repairPaxos: true, paxosOnly: true" in text
    assert "Repair completed successfully" in text
    assert len(open_rounds(ring[0])) == len(before) - 1
    assert sum(finished(node) for node in ring.nodes) >= 1
    assert ring[0].log().count("Validated") == validated
    # An ordinary repair does it too.
    assert "Repair completed successfully" in ring[2].nodetool("repair", "ks")
    for node in ring.nodes:
        assert not open_rounds(node)
    rows = session.execute(SimpleStatement("SELECT * FROM ks.t WHERE k = 100",
                                           consistency_level=ConsistencyLevel.SERIAL))
    assert [tuple(row) for row in rows] == [(100, 1)]


@pytest.mark.long
def test_a_node_that_joins_or_leaves_has_it_finished_first(new_ring):
    ring = new_ring(3, cas_contention_timeout="300ms", write_request_timeout="300ms",
                    cassandra__ring_delay_ms=1000 * SLOWNESS).start().wait_up()
    make_table(ring)
    leave_open(ring, ring.nodes[1:], keys=range(15))
    before = open_rounds(ring[0])
    assert len(before) >= 15
    joined = ring.add(auto_bootstrap=True).start()
    ring.wait_up()
    assert "Paxos repaired for bootstrap" in joined.log()
    # In the ranges whose replicas are others now.
    assert finished(ring[0]) > 0
    assert len(open_rounds(ring[0])) == len(before) - finished(ring[0])
    leave_open(ring, ring.nodes[1:], keys=range(100, 115))
    before = open_rounds(ring[0])
    assert before
    ring[0].nodetool("decommission")
    assert "Paxos repaired for decommission" in ring[0].log()
    wait_until(lambda: ring[1].sees(UN=ring.nodes[1:]), "the others alone")
    for node in ring.nodes[1:]:
        assert not open_rounds(node) & before


@pytest.mark.long
def test_it_is_finished_before_a_node_takes_its_own_address_again(new_ring):
    """All others must be there for it: the node itself has forgotten what it promised."""
    ring = new_ring(3, cas_contention_timeout="300ms", write_request_timeout="300ms",
                    cassandra__ring_delay_ms=1000).start().wait_up()
    make_table(ring)
    leave_open(ring, ring.nodes[1:], keys=range(10))
    assert len(open_rounds(ring[0])) >= 10
    dead = ring[2]
    dead.kill()
    ring[0].wait_sees(UN=ring.nodes[:2], DN=[dead])
    dead.options.update(data_directory=f"{ring.path}/fresh", auto_bootstrap=True,
                        cassandra__replace_address_first_boot=dead.address)
    dead.start()
    ring.wait_up()
    assert "Paxos repaired for replacing a node" in dead.log()
    assert not open_rounds(ring[0])
    session = ring.connect(dead, only=[dead])
    for key in range(10):
        session.execute(f"INSERT INTO ks.t (k, v) VALUES ({key}, 2) IF NOT EXISTS")


def test_alter_keyspace_warns_where_conditional_statements_were_used(new_ring):
    ring = new_ring(3).start().wait_up()
    session = make_table(ring, 2)
    session.execute("CREATE KEYSPACE other WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE other.t (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO other.t (k, v) VALUES (1, 1)")
    for key in range(30):
        session.execute(f"INSERT INTO ks.t (k, v) VALUES ({key}, 1) IF NOT EXISTS")

    def told(keyspace, factor, more=""):
        answer = session.execute_async(f"ALTER KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', "
                                       f"'replication_factor': {factor}}}{more}")
        answer.result()
        return answer.warnings or []

    paxos = "Conditional statements were used in keyspace ks: until a full (-full) repair"
    assert [text for text in told("ks", 3) if text.startswith(paxos)]
    # The same replicas as before, and a keyspace without such statements.
    assert not [text for text in told("ks", 3, " AND durable_writes = true") if "Conditional" in text]
    assert not [text for text in told("other", 2) if "Conditional" in text]
    assert [text for text in told("ks", 1) if text.startswith(paxos)]


@pytest.mark.long
def test_replication_is_not_altered_while_the_ring_changes(new_ring):
    ring = new_ring(2, cassandra__ring_delay_ms=1000, stream_throughput_outbound="20KiB/s",
                    entire_sstable_stream_throughput_outbound="20KiB/s").start().wait_up()
    session = make_table(ring, 1)
    for key in range(100):
        session.execute("INSERT INTO ks.t (k, v) VALUES (%s, 1)", (key,))
    session.execute("CREATE TABLE ks.big (k int PRIMARY KEY, v text) WITH compression = {'enabled': 'false'}")
    for key in range(200):
        session.execute("INSERT INTO ks.big (k, v) VALUES (%s, %s)", (key, str(key) * 2000))
    third = ring.add(auto_bootstrap=True).launch()
    wait_until(lambda: ring[0].status().get(third.address) == "UJ", "a node that joins")
    only = ring.connect(ring[0], only=[ring[0]])
    alter = "ALTER KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}"
    with pytest.raises(ConfigurationException, match="Cannot alter RF while some endpoints are not in normal state"):
        only.execute(alter)
    only.execute("ALTER KEYSPACE ks WITH durable_writes = true")
    for node in ring.nodes[:2]:
        node.nodetool("setstreamthroughput", 0)
        node.nodetool("setstreamthroughput", "-e", 0)
    third.wait_ready()
    ring.wait_up()
    only.execute(alter)


def test_a_node_finishes_what_nobody_did(new_ring):
    """Also what it had forgotten of, since it was started anew."""
    ring = new_ring(3, cas_contention_timeout="300ms", write_request_timeout="300ms",
                    cassandra__auto_repair_frequency_seconds=1).start().wait_up()
    make_table(ring)
    leave_open(ring, ring.nodes[1:], keys=range(3))
    wait_until(lambda: not open_rounds(ring[0]), "rounds that were finished")
    # By whoever came first: the others accept what was asked of them while they stood still, and have it open too.
    wait_until(lambda: any("Paxos repair of what was left over: " in node.log() for node in ring.nodes), "their repair")
    ring[0].options["paxos_repair_enabled"] = False
    ring[0].restart()
    ring.wait_up()
    leave_open(ring, ring.nodes[1:], keys=range(3, 6))
    assert len(open_rounds(ring[0])) >= 3
    del ring[0].options["paxos_repair_enabled"]
    ring[0].restart()
    wait_until(lambda: not open_rounds(ring[0]), "rounds of before the start")
