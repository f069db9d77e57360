# SPDX-License-Identifier: Apache-2.0
"""A logged batch is written whole, or not at all, whoever dies in the middle."""
import pytest
from cassandra import ConsistencyLevel as CL
from cassandra import Unavailable, WriteTimeout
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import BatchStatement, SimpleStatement

from ring import SLOWNESS, wait_until

KEYS = 20


def batch_of(value, level):
    batch = BatchStatement(consistency_level=level, retry_policy=FallthroughRetryPolicy())
    for key in range(KEYS):
        batch.add("INSERT INTO logged.t (pk, v) VALUES (%s, %s)", (key, value))
    return batch


def kept(node, ring):
    """Batches in the node's own system.batches."""
    session = ring.connect(only=[node])
    try:
        return len(list(session.execute("SELECT id FROM system.batches")))
    finally:
        session.cluster.shutdown()


def rows(session):
    found = session.execute(SimpleStatement("SELECT pk, v FROM logged.t", consistency_level=CL.ONE))
    return {row.pk: row.v for row in found}


@pytest.mark.long
def test_a_batch_whose_coordinator_dies_appears_whole(new_ring):
    """A replica is dead and nobody knows it yet: the batch is stored, a part of it is not written, and with the
    coordinator its hint dies, too."""
    ring = new_ring(4, cassandra__ring_delay_ms=1000 * SLOWNESS, write_request_timeout="1000ms").start().wait_up()
    session = ring.connect(only=[ring[0]])
    session.execute("CREATE KEYSPACE logged WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE logged.t (pk int PRIMARY KEY, v int)")
    session.execute(batch_of(0, CL.ONE))
    assert rows(session) == {key: 0 for key in range(KEYS)}
    wait_until(lambda: not any(kept(node, ring) for node in ring.nodes), "removal")

    def interrupted():
        """Until the batchlog does not choose the node that is going to be dead."""
        ring[0].wait_sees(UN=ring.nodes)
        ring[3].pause()
        try:
            session.execute(batch_of(1, CL.ONE))
        except WriteTimeout as error:
            if error.write_type == 5 or "BATCH_LOG" in str(error):
                ring[3].resume()
                return False
            ring[3].kill()
            return True
        except Unavailable:
            pass
        ring[3].resume()
        return False

    wait_until(interrupted, "a batch that was stored and not written")
    ring[0].kill()
    assert kept(ring[1], ring) + kept(ring[2], ring) >= 1
    ring[3].start()
    ring[0].start()
    ring[1].wait_sees(UN=ring.nodes)
    wait_until(lambda: not any(kept(node, ring) for node in ring.nodes), "replay")
    ring[1].nodetool("replaybatchlog")
    session = ring.connect(only=[ring[1]])
    wait_until(lambda: rows(session) == {key: 1 for key in range(KEYS)}, "the batch")


def test_a_batch_of_a_ring_leaves_nothing_behind(ring):
    session = ring.connect(only=[ring[0]])
    session.execute("CREATE KEYSPACE logged WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}")
    session.execute("CREATE TABLE logged.t (pk int PRIMARY KEY, v int)")
    for value in range(5):
        session.execute(batch_of(value, CL.QUORUM))
        assert rows(session) == {key: value for key in range(KEYS)}
    wait_until(lambda: not any(kept(node, ring) for node in ring.nodes), "removal")
    ring[2].kill()
    ring[0].wait_sees(UN=[ring[0], ring[1]], DN=[ring[2]])
    # One other node is left, and will do.
    session.execute(batch_of(9, CL.ANY))
    ring[1].kill()
    ring[0].wait_sees(UN=[ring[0]], DN=[ring[1], ring[2]])
    with pytest.raises(Unavailable):
        session.execute(batch_of(10, CL.ONE))
    # At ANY this node's own batchlog will do, and hints.
    session.execute(batch_of(11, CL.ANY))
    ring[1].start()
    ring[2].start()
    ring[0].wait_sees(UN=ring.nodes)


def test_the_throttle_of_replay(ring):
    assert ring[0].nodetool("getbatchlogreplaythrottle") == "Batchlog replay throttle: 1024 KB/s\n"
    ring[0].nodetool("setbatchlogreplaythrottle", 17)
    assert ring[0].nodetool("getbatchlogreplaythrottle") == "Batchlog replay throttle: 17 KB/s\n"
    assert ring[1].nodetool("getbatchlogreplaythrottle") == "Batchlog replay throttle: 1024 KB/s\n"
    ring[0].nodetool("setbatchlogreplaythrottle", "much", status=1)
    ring[0].nodetool("setbatchlogreplaythrottle", 1024)
    ring[0].nodetool("replaybatchlog")
    assert "BatchlogTasks" in ring[0].nodetool("tpstats")
