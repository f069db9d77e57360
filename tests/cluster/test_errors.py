# SPDX-License-Identifier: Apache-2.0
"""What a client is told when replicas are silent, dead or fail: the error, and each of its fields, in every version of
the protocol."""
# pylint: disable=redefined-outer-name
import pytest
from cassandra import (ConsistencyLevel, InvalidRequest, ReadFailure, ReadTimeout, Unavailable, WriteFailure,
                       WriteTimeout, WriteType)
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.protocol import TruncateError
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from ring import NATIVE_PORT, PATIENCE, Ring, wait_until

VERSIONS = [3, 4, 5]
LEVEL = ConsistencyLevel.name_to_value
WRITE = "INSERT INTO ks.t (k, v) VALUES (1, 1)"
READ = "SELECT * FROM ks.t WHERE k = 1"
COUNT = "UPDATE ks.c SET n = n + 1 WHERE k = 1"


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """Timeouts are short; the second node takes no large mutation."""
    made = Ring(3, path=str(tmp_path_factory.mktemp("ring")), read_request_timeout="700ms",
                range_request_timeout="700ms", write_request_timeout="700ms", counter_write_request_timeout="700ms",
                cas_contention_timeout="700ms", tombstone_failure_threshold=50, tombstone_warn_threshold=10)
    made[1].options = {"max_mutation_size": "200KiB"}
    try:
        yield made.start().wait_up()
    finally:
        made.end()


@pytest.fixture(scope="module")
def sessions(ring):
    """By version; the first node coordinates."""
    made = {}
    for version in VERSIONS:
        profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([ring[0].address]),
                                   request_timeout=PATIENCE, retry_policy=FallthroughRetryPolicy())
        cluster = Cluster([ring[0].address], port=NATIVE_PORT, protocol_version=version, connect_timeout=PATIENCE,
                          control_connection_timeout=PATIENCE, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
        ring.clusters.append(cluster)
        made[version] = cluster.connect()
    session = made[5]
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 3}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE ks.c (k int PRIMARY KEY, n counter)")
    session.execute("CREATE TABLE ks.b (k int PRIMARY KEY, v blob)")
    session.execute("CREATE TABLE ks.w (k int, c int, PRIMARY KEY (k, c))")
    for c in range(100):
        session.execute(SimpleStatement(f"DELETE FROM ks.w WHERE k = 1 AND c = {c}", consistency_level=LEVEL["ALL"]))
    return made


def fails(session, kind, statement, level="QUORUM", **options):
    """The error."""
    if isinstance(statement, str):
        statement = SimpleStatement(statement, consistency_level=LEVEL[level], **options)
    with pytest.raises((kind, NoHostAvailable)) as raised:
        session.execute(statement)
    error = raised.value
    if isinstance(error, NoHostAvailable):
        error = list(error.errors.values())[0]
    assert isinstance(error, kind), error
    return error


def batch(kind, level, *texts):
    made = BatchStatement(kind, consistency_level=LEVEL[level])
    for text in texts:
        made.add(text)
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_levels_that_do_not_fit(sessions, version):
    session = sessions[version]
    for text, level, message in [
            (READ, "ANY", "ANY ConsistencyLevel is only supported for writes"),
            (WRITE, "SERIAL", "You must use conditional updates for serializable writes"),
            (WRITE, "LOCAL_SERIAL", "You must use conditional updates for serializable writes"),
            (COUNT, "SERIAL", "You must use conditional updates for serializable writes"),
            (COUNT, "ANY", "Consistency level ANY is not yet supported for counter table c"),
            (WRITE + " IF NOT EXISTS", "SERIAL",
             "SERIAL is not supported as conditional update commit consistency. Use ANY if you mean"),
            ("SELECT * FROM ks.t WHERE k IN (1, 2)", "SERIAL",
             "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time")]:
        assert message in str(fails(session, InvalidRequest, text, level)), (text, level)
    assert "You must use conditional updates for serializable writes" in str(
        fails(session, InvalidRequest, batch(BatchType.LOGGED, "SERIAL", WRITE)))
    for level in ("EACH_QUORUM", "LOCAL_SERIAL", "SERIAL", "LOCAL_ONE"):
        session.execute(SimpleStatement(READ, consistency_level=LEVEL[level]))
    assert session.execute(SimpleStatement(
        f"INSERT INTO ks.t (k, v) VALUES ({version}00, 1) IF NOT EXISTS", consistency_level=LEVEL["ANY"],
        serial_consistency_level=LEVEL["LOCAL_SERIAL"])).was_applied


@pytest.mark.parametrize("version", VERSIONS)
def test_too_many_tombstones(ring, sessions, version):
    for text, level, required in (("SELECT * FROM ks.w WHERE k = 1", "ALL", 3),
                                  ("SELECT * FROM ks.w", "QUORUM", 2),
                                  ("SELECT * FROM ks.w WHERE k = 1", "ONE", 1)):
        # Before version 4 there is no failure to tell of.
        error = fails(sessions[version], ReadFailure if version > 3 else ReadTimeout, text, level)
        assert (error.consistency, error.required_responses, error.received_responses) == (LEVEL[level], required, 0)
        assert not error.data_retrieved
        if version == 4:
            assert error.failures >= 1
        if version == 5:
            assert set(error.error_code_map.values()) == {1}
            assert set(error.error_code_map) <= {node.address for node in ring.nodes}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_replica_that_fails_a_write(ring, sessions, version):
    session = sessions[version]
    insert = f"INSERT INTO ks.b (k, v) VALUES (1, 0x{'ab' * 300000})"
    error = fails(session, WriteFailure if version > 3 else WriteTimeout, insert, "ALL")
    # It is told as soon as it is sure.
    assert (error.consistency, error.required_responses) == (LEVEL["ALL"], 3) and error.received_responses < 3
    assert error.write_type == WriteType.SIMPLE
    if version == 4:
        assert error.failures == 1
    if version == 5:
        assert error.error_code_map == {ring[1].address: 0}
    session.execute(SimpleStatement(insert, consistency_level=LEVEL["QUORUM"]))


@pytest.mark.parametrize("version", VERSIONS)
def test_replicas_that_are_silent(ring, sessions, version):
    session = sessions[version]
    ring[1].pause()
    ring[2].pause()
    try:
        for statement, kind, level, write_type in [
                (WRITE, None, "QUORUM", WriteType.SIMPLE),
                (WRITE, None, "LOCAL_QUORUM", WriteType.SIMPLE),
                (COUNT, None, "QUORUM", WriteType.COUNTER),
                (batch(BatchType.COUNTER, "QUORUM", COUNT), None, "QUORUM", WriteType.COUNTER),
                (batch(BatchType.UNLOGGED, "QUORUM", WRITE, WRITE.replace("1, 1", "2, 2")), None, "QUORUM",
                 WriteType.UNLOGGED_BATCH),
                (batch(BatchType.LOGGED, "QUORUM", WRITE, WRITE.replace("1, 1", "2, 2")), None, "TWO",
                 WriteType.BATCH_LOG),
                (WRITE + " IF NOT EXISTS", None, "SERIAL", WriteType.CAS),
                (READ, ReadTimeout, "QUORUM", None),
                ("SELECT * FROM ks.t", ReadTimeout, "QUORUM", None),
                (READ, ReadTimeout, "SERIAL", None)]:
            asked = "QUORUM" if write_type == WriteType.CAS else level
            error = fails(session, kind or WriteTimeout, statement, asked)
            received = 0 if write_type == WriteType.BATCH_LOG else 1
            assert (error.consistency, error.required_responses, error.received_responses) == (
                LEVEL[level], 2, received), statement
            if write_type is not None:
                assert error.write_type == write_type, statement
            elif level != "SERIAL":
                assert error.data_retrieved
        session.execute(SimpleStatement(WRITE, consistency_level=LEVEL["ANY"]))
    finally:
        ring[1].resume()
        ring[2].resume()
    ring[0].wait_sees(UN=ring.nodes)
    ring[1].wait_sees(UN=ring.nodes)
    ring[2].wait_sees(UN=ring.nodes)


def test_replicas_that_are_dead(ring, sessions):
    ring[1].kill()
    ring[2].kill()
    ring[0].wait_sees(UN=[ring[0]], DN=ring.nodes[1:])
    for session in sessions.values():
        for level, required in (("TWO", 2), ("THREE", 3), ("QUORUM", 2), ("ALL", 3), ("LOCAL_QUORUM", 2),
                                ("EACH_QUORUM", 2)):
            for text in (WRITE, READ, COUNT):
                error = fails(session, Unavailable, text, level)
                assert (error.consistency, error.required_replicas, error.alive_replicas) == (
                    LEVEL[level], required, 1)
        for level in ("SERIAL", "LOCAL_SERIAL"):
            error = fails(session, Unavailable, WRITE + " IF NOT EXISTS", serial_consistency_level=LEVEL[level])
            assert (error.consistency, error.required_replicas, error.alive_replicas) == (LEVEL[level], 2, 1)
        for level in ("ANY", "ONE", "LOCAL_ONE"):
            session.execute(SimpleStatement(WRITE, consistency_level=LEVEL[level]))
        error = fails(session, Unavailable, batch(BatchType.LOGGED, "ONE", WRITE, WRITE.replace("1, 1", "2, 2")))
        assert (error.consistency, error.required_replicas, error.alive_replicas) == (LEVEL["ONE"], 1, 0)
        session.execute(batch(BatchType.LOGGED, "ANY", WRITE, WRITE.replace("1, 1", "2, 2")))
        error = fails(session, TruncateError, "TRUNCATE ks.t")
        assert "Error during truncate: Cannot achieve consistency level ALL" in str(error)
        fails(session, Unavailable, "CREATE TABLE ks.other (k int PRIMARY KEY)")
    ring[1].start()
    ring[2].start()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)


def test_a_full_disk_of_a_replica_refuses_its_writes(tmp_path):
    """It says so by gossip, to those it meets and to those that come; without it the others take all again."""
    ring = Ring(2, path=str(tmp_path))
    full = ring[1]
    full.options = {"data_disk_usage_max_disk_size": "1MiB", "data_disk_usage_percentage_fail_threshold": 1}
    try:
        ring.start().wait_up()
        session = ring.connect(only=[ring[0]])
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY)")
        insert = session.prepare("INSERT INTO ks.t (k) VALUES (?)")
        endpoints = {key: full.nodetool("getendpoints", "ks", "t", str(key)).strip() for key in range(10)}
        assert set(endpoints.values()) == {node.address for node in (ring[0], full)}

        def refused():
            keys = set()
            for key in endpoints:
                try:
                    session.execute(insert, (key,))
                except InvalidRequest as error:
                    assert "Guardrail replica_disk_usage violated: Write request failed" in str(error)
                    keys.add(key)
            return keys

        its_own = {key for key, address in endpoints.items() if address == full.address}
        wait_until(lambda: refused() == its_own, "the news")
        assert "DISK_USAGE" in ring[0].nodetool("gossipinfo")
        ring[0].restart()
        session = ring.connect(only=[ring[0]])
        wait_until(lambda: refused() == its_own, "the news, told to a node that comes")
        full.stop()
        full.options = {}
        full.start()
        ring[0].wait_sees(UN=ring.nodes)
        wait_until(lambda: refused() == set(), "the end of it")
    finally:
        ring.end()
