# SPDX-License-Identifier: Apache-2.0
"""Writes and reads over a ring of three at every consistency level, and what a client is told when replicas are gone."""
import time

import pytest
from cassandra import ConsistencyLevel as CL
from cassandra import ReadTimeout, Unavailable, WriteTimeout
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from ring import wait_until

pytestmark = pytest.mark.long

WRITE_LEVELS = (CL.ANY, CL.ONE, CL.TWO, CL.THREE, CL.QUORUM, CL.ALL, CL.LOCAL_ONE, CL.LOCAL_QUORUM, CL.EACH_QUORUM)
READ_LEVELS = tuple(level for level in WRITE_LEVELS if level != CL.ANY)


def at(level, text):
    """The statement at a level; the driver tells what the server said, and tries nobody else."""
    return SimpleStatement(text, consistency_level=level, retry_policy=FallthroughRetryPolicy())


@pytest.fixture(scope="module")
def sessions(ring):
    """A session to each node alone."""
    made = [ring.connect(only=[node]) for node in ring.nodes]
    for factor in (1, 3):
        made[0].execute(f"CREATE KEYSPACE rf{factor} WITH replication = "
                        f"{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}")
        made[1].execute(f"CREATE TABLE rf{factor}.t (pk int, ck int, v text, l list<int>, PRIMARY KEY (pk, ck))")
    made[2].execute("CREATE TABLE rf3.c (pk int PRIMARY KEY, n counter)")
    return made


def test_every_level_writes_and_reads(sessions):
    for level in WRITE_LEVELS:
        for node, session in enumerate(sessions):
            session.execute(at(level, "INSERT INTO rf3.t (pk, ck, v) VALUES (%s, %s, 'v')"), (level, node))
            rows = sessions[(node + 1) % 3].execute(at(CL.ALL, "SELECT ck FROM rf3.t WHERE pk = %s"), (level,))
            assert [row.ck for row in rows] == list(range(node + 1))
    for level in READ_LEVELS:
        for session in sessions:
            assert len(list(session.execute(at(level, "SELECT * FROM rf3.t WHERE pk = 1")))) == 3


def test_ranges_cross_all_nodes(sessions):
    insert = sessions[0].prepare("INSERT INTO rf1.t (pk, ck, v) VALUES (?, 0, ?)")
    for key in range(500):
        sessions[key % 3].execute(sessions[key % 3].prepare(insert.query_string), (key, str(key)))
    for session in sessions:
        for size in (7, 100, 5000):
            rows = list(session.execute(SimpleStatement("SELECT pk FROM rf1.t", fetch_size=size)))
            assert sorted(row.pk for row in rows) == list(range(500))
        assert session.execute("SELECT count(*) FROM rf1.t").one()[0] == 500
        assert len(list(session.execute("SELECT pk FROM rf1.t LIMIT 33"))) == 33
        assert len(list(session.execute("SELECT pk FROM rf1.t WHERE pk IN (1, 20, 300, 499)"))) == 4
        rows = session.execute("SELECT pk FROM rf1.t WHERE v = '77' ALLOW FILTERING")
        assert [row.pk for row in rows] == [77]


def test_counters_add_up_wherever_they_are_led(sessions):
    for number in range(30):
        sessions[number % 3].execute(at(CL.QUORUM, "UPDATE rf3.c SET n = n + %s WHERE pk = 1"), (number,))
    for session in sessions:
        assert session.execute(at(CL.ALL, "SELECT n FROM rf3.c WHERE pk = 1")).one().n == sum(range(30))


def test_batches_and_lists(sessions):
    for kind in (BatchType.LOGGED, BatchType.UNLOGGED):
        batch = BatchStatement(kind, consistency_level=CL.QUORUM)
        for key in range(10):
            batch.add("INSERT INTO rf3.t (pk, ck, v) VALUES (%s, 0, 'batch')", (1000 + key,))
        sessions[1].execute(batch)
        for key in range(10):
            row = sessions[2].execute(at(CL.QUORUM, "SELECT v FROM rf3.t WHERE pk = %s"), (1000 + key,)).one()
            assert row.v == "batch"
    sessions[0].execute(at(CL.QUORUM, "UPDATE rf3.t SET l = [1, 2, 3] WHERE pk = 7 AND ck = 7"))
    sessions[1].execute(at(CL.QUORUM, "UPDATE rf3.t SET l[1] = 9 WHERE pk = 7 AND ck = 7"))
    assert sessions[2].execute(at(CL.QUORUM, "SELECT l FROM rf3.t WHERE pk = 7 AND ck = 7")).one().l == [1, 9, 3]


def test_a_node_that_dies_is_missed_by_all_alone_and_repaired_by_reads(ring, sessions):
    keys = range(40)
    for key in keys:
        sessions[0].execute(at(CL.ALL, "INSERT INTO rf3.t (pk, ck, v) VALUES (%s, 50, 'old')"), (2000 + key,))
    ring[2].kill()
    for key in keys:
        sessions[key % 2].execute(at(CL.QUORUM, "INSERT INTO rf3.t (pk, ck, v) VALUES (%s, 50, 'new')"), (2000 + key,))
    with pytest.raises((Unavailable, WriteTimeout)) as caught:
        sessions[0].execute(at(CL.ALL, "INSERT INTO rf3.t (pk, ck, v) VALUES (1, 51, '')"))
    if isinstance(caught.value, WriteTimeout):
        assert (caught.value.received_responses, caught.value.required_responses) == (2, 3)
    ring[0].wait_sees(UN=[ring[0], ring[1]], DN=[ring[2]])
    began = time.monotonic()
    for level in (CL.ALL, CL.THREE):
        with pytest.raises(Unavailable) as caught:
            sessions[0].execute(at(level, "SELECT * FROM rf3.t WHERE pk = 1"))
        assert (caught.value.required_replicas, caught.value.alive_replicas) == (3, 2)
    assert time.monotonic() - began < 1
    ring[2].restart()
    ring[0].wait_sees(UN=ring.nodes)
    again = ring.connect(only=[ring[2]], max_schema_agreement_wait=0)
    select = "SELECT v FROM rf3.t WHERE pk = %s AND ck = 50"
    assert all(again.execute(at(CL.QUORUM, select), (2000 + key,)).one().v == "new" for key in keys)
    # What it lacked was written to it before the answers came.
    assert all(again.execute(at(CL.ONE, select), (2000 + key,)).one().v == "new" for key in keys)


def test_a_node_that_stands_still_times_out(ring, sessions):
    ring[1].pause()
    try:
        with pytest.raises((WriteTimeout, Unavailable)):
            sessions[0].execute(at(CL.ALL, "INSERT INTO rf3.t (pk, ck, v) VALUES (1, 52, '')"))
        with pytest.raises((ReadTimeout, Unavailable)):
            sessions[0].execute(at(CL.ALL, "SELECT * FROM rf3.t WHERE pk = 1"))
        sessions[0].execute(at(CL.QUORUM, "INSERT INTO rf3.t (pk, ck, v) VALUES (1, 52, 'q')"))
        row = sessions[0].execute(at(CL.QUORUM, "SELECT v FROM rf3.t WHERE pk = 1 AND ck = 52")).one()
        assert row.v == "q"
    finally:
        ring[1].resume()
    ring[0].wait_sees(UN=ring.nodes)


def test_truncate_is_for_all_nodes(ring, sessions):
    wait_until(lambda: all(node.sees(UN=ring.nodes) for node in ring.nodes), "all nodes up")
    sessions[0].execute(at(CL.ALL, "INSERT INTO rf3.t (pk, ck, v) VALUES (1, 1, 'v')"))
    sessions[1].execute("TRUNCATE rf3.t", timeout=60)
    assert list(sessions[0].execute(at(CL.ALL, "SELECT * FROM rf3.t"))) == []
