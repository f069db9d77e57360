# SPDX-License-Identifier: Apache-2.0
"""One order of schema changes for the whole ring, and conditional statements by Paxos, over three real nodes."""
import threading

import pytest
from cassandra import AlreadyExists, ConsistencyLevel as CL, Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.query import SimpleStatement

from ring import wait_until


@pytest.fixture(scope="module")
def sessions(ring):
    made = [ring.connect(only=[node]) for node in ring.nodes]
    made[0].execute("CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}")
    made[1].execute("CREATE TABLE ks.cas (k int PRIMARY KEY, v int)")
    return made


def together(calls):
    """What each of the calls returned or raised, made at the same time."""
    results = [None] * len(calls)

    def run(index):
        try:
            results[index] = calls[index]()
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def version(session):
    return session.execute("SELECT schema_version FROM system.local").one().schema_version


def test_two_clients_create_the_same_table_at_once(sessions):
    for i in range(4):
        results = together([lambda s=s: s.execute(f"CREATE TABLE ks.same{i} (k int PRIMARY KEY)") for s in sessions])
        assert sum(isinstance(result, AlreadyExists) for result in results) == 2, results
        assert sum(not isinstance(result, Exception) for result in results) == 1, results
        ids = {s.execute(f"SELECT id FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 'same{i}'")
               .one().id for s in sessions}
        assert len(ids) == 1
        assert len({version(session) for session in sessions}) == 1


def test_changes_of_all_kinds_are_everywhere(sessions):
    first, second, third = sessions
    first.execute("CREATE TYPE ks.address (street text)")
    second.execute("CREATE TABLE ks.people (k int PRIMARY KEY, a frozen<address>, v int)")
    third.execute("ALTER TYPE ks.address ADD city text")
    first.execute("ALTER TABLE ks.people DROP v")
    second.execute("ALTER TABLE ks.people ADD w int")
    third.execute("INSERT INTO ks.people (k, a, w) VALUES (1, {street: 's', city: 'c'}, 2)")
    for session in sessions:
        row = session.execute(SimpleStatement("SELECT * FROM ks.people", consistency_level=CL.QUORUM)).one()
        assert (row.k, row.a.city, row.w) == (1, "c", 2)
    first.execute("DROP TABLE ks.people")
    second.execute("DROP TYPE ks.address")
    assert len({version(session) for session in sessions}) == 1


def test_a_node_that_was_down_catches_up_and_a_minority_changes_nothing(ring, sessions):
    ring[2].kill()
    for node in ring.nodes[:2]:
        node.wait_sees(UN=ring.nodes[:2], DN=[ring[2]])
    sessions[0].execute("CREATE TABLE ks.meanwhile (k int PRIMARY KEY)")
    sessions[1].execute("DROP TABLE IF EXISTS ks.same0")
    ring[1].kill()
    ring[0].wait_sees(UN=[ring[0]], DN=ring.nodes[1:])
    with pytest.raises(NoHostAvailable) as refused:
        sessions[0].execute("CREATE TABLE ks.minority (k int PRIMARY KEY)")
    error = list(refused.value.errors.values())[0]
    assert isinstance(error, Unavailable) and (error.required_replicas, error.alive_replicas) == (2, 1)
    for node in ring.nodes[1:]:
        node.restart()
    ring.wait_up()
    again = [ring.connect(only=[node]) for node in ring.nodes]
    wait_until(lambda: len({version(session) for session in again}) == 1, "one schema version")
    for session in again:
        names = {row.table_name for row in session.execute(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks'")}
        assert "meanwhile" in names and "same0" not in names and "minority" not in names
    again[2].execute("CREATE TABLE ks.afterwards (k int PRIMARY KEY)")


def test_conditions_have_one_winner(ring):
    sessions = [ring.connect(only=[node]) for node in ring.nodes]
    for k in range(10):
        results = together([lambda s=s, n=n: s.execute(f"INSERT INTO ks.cas (k, v) VALUES ({k}, {n}) IF NOT EXISTS").one()
                            for n, s in enumerate(sessions)])
        assert sum(result.applied for result in results) == 1, results
        winner = [result.applied for result in results].index(True)
        assert all(result.v == winner for result in results if not result.applied)
        for session in sessions:
            row = session.execute(SimpleStatement(f"SELECT v FROM ks.cas WHERE k = {k}", consistency_level=CL.SERIAL))
            assert row.one().v == winner


def test_increments_by_conditions_add_up(ring):
    sessions = [ring.connect(only=[node]) for node in ring.nodes]
    sessions[0].execute("INSERT INTO ks.cas (k, v) VALUES (100, 0) IF NOT EXISTS")

    def increment(session):
        done = 0
        while done < 10:
            v = session.execute(SimpleStatement("SELECT v FROM ks.cas WHERE k = 100",
                                                consistency_level=CL.SERIAL)).one().v
            if session.execute(f"UPDATE ks.cas SET v = {v + 1} WHERE k = 100 IF v = {v}").one().applied:
                done += 1
        return done

    assert together([lambda s=s: increment(s) for s in sessions]) == [10, 10, 10]
    assert sessions[0].execute("SELECT v FROM ks.cas WHERE k = 100").one().v in range(31)
    assert sessions[1].execute(SimpleStatement("SELECT v FROM ks.cas WHERE k = 100",
                                               consistency_level=CL.SERIAL)).one().v == 30
