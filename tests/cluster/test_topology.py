# SPDX-License-Identifier: Apache-2.0
"""Nodes come and go, and the data with them: every row that was acknowledged is there, before, while and after."""
import re
import threading

import pytest

from ring import wait_until

ROWS = 400
DELAY = {"cassandra__ring_delay_ms": 1000}


def fill(session, keyspace, factor, rows=ROWS):
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = "
                    f"{{'class': 'NetworkTopologyStrategy', 'datacenter1': {factor}}}")
    session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text)")
    put(session, keyspace, range(rows))


def put(session, keyspace, keys, word="v"):
    insert = session.prepare(f"INSERT INTO {keyspace}.t (k, v) VALUES (?, ?)")
    for answer in [session.execute_async(insert, (k, f"{word}{k}")) for k in keys]:
        answer.result()


def missing(session, keyspace, rows=ROWS, level=None):
    """Keys whose row is not what was written, by reads of one row and by a scan."""
    from cassandra import ConsistencyLevel

    level = level or ConsistencyLevel.ONE
    select = session.prepare(f"SELECT v FROM {keyspace}.t WHERE k = ?")
    select.consistency_level = level
    answers = [(k, session.execute_async(select, (k,))) for k in range(rows)]
    gone = {k for k, answer in answers
            if [row.v for row in answer.result()] != [f"v{k}"]}
    scanned = {row.k: row.v for row in session.execute(f"SELECT k, v FROM {keyspace}.t")}
    return sorted(gone | {k for k in range(rows) if scanned.get(k) != f"v{k}"})


def host_id(node, of):
    return re.search(rf"^.. +{re.escape(of.address)} .*? ([0-9a-f-]{{36}})", node.nodetool("status"),
                     re.M).group(1)


class Writer(threading.Thread):
    """Writes rows at QUORUM as long as it is let, each once; notes what was acknowledged."""

    def __init__(self, session, keyspace):
        from cassandra import ConsistencyLevel

        super().__init__()
        self.session = session
        self.insert = session.prepare(f"INSERT INTO {keyspace}.t (k, v) VALUES (?, ?)")
        self.insert.consistency_level = ConsistencyLevel.QUORUM
        self.written, self.failed, self.is_over = [], [], False

    def run(self):
        key = 1000000
        while not self.is_over:
            key += 1
            try:
                self.session.execute(self.insert, (key, f"v{key}"))
                self.written.append(key)
            except Exception as failure:  # which, the test tells
                self.failed.append(failure)

    def end(self):
        self.is_over = True
        self.join()


def test_a_fourth_node_joins_and_leaves_under_writes(new_ring):
    ring = new_ring(3, **DELAY).start().wait_up()
    session = ring.connect()
    fill(session, "one", 1)
    fill(session, "three", 3)
    writers = [Writer(session, "one"), Writer(session, "three")]
    for writer in writers:
        writer.start()
    fourth = ring.add(auto_bootstrap=True).start()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
    new = ring.connect(fourth, only=[fourth])
    assert missing(new, "one") == [] and missing(new, "three") == []
    load = re.search(rf"^UN +{re.escape(fourth.address)} +([0-9.]+)", ring[0].nodetool("status"), re.M)
    assert load, "the node has data of its own"
    assert "Already" not in fourth.nodetool("netstats")
    for node in ring.nodes[:3]:
        node.nodetool("cleanup", "one")
        node.nodetool("cleanup", "three", "t")
    assert missing(new, "one") == [] and missing(new, "three") == []
    new.cluster.shutdown()

    fourth.nodetool("decommission")
    for node in ring.nodes[:3]:
        node.wait_sees(UN=ring.nodes[:3])
    assert fourth.nodetool("netstats").startswith("Mode: DECOMMISSIONED\n")
    for writer in writers:
        writer.end()
        assert writer.failed == []
        assert len(writer.written) > 100
    for writer, keyspace in zip(writers, ("one", "three")):
        assert missing(session, keyspace) == []
        rows = {row.k for row in session.execute(f"SELECT k FROM {keyspace}.t")}
        assert [k for k in writer.written if k not in rows] == []
    fourth.stop()
    status, text = fourth.refuses_to_start()
    assert status != 0 and "This node was decommissioned and will not rejoin the ring" in text
