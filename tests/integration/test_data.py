# SPDX-License-Identifier: Apache-2.0
# pylint: disable=redefined-outer-name,unused-import
import re
import threading

import pytest
from cassandra import ReadFailure, ReadTimeout
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import SimpleStatement

import helenus

from cql import connect, own_server, server, session, shared_session  # noqa: F401


def test_rows_survive_kill(own_server):
    session = connect(own_server)
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int, c int, v text, s int static, l list<int>, PRIMARY KEY (k, c))")
    session.execute("CREATE TABLE ks.n (k int PRIMARY KEY, n counter)")
    insert = session.prepare("INSERT INTO ks.t (k, c, v, l) VALUES (?, ?, ?, ?)")
    for k in range(50):
        for c in range(4):
            session.execute(insert, (k, c, f"{k}-{c}", [k, c]))
    session.execute("DELETE FROM ks.t WHERE k = 1")
    session.execute("DELETE FROM ks.t WHERE k = 2 AND c > 1")
    session.execute("UPDATE ks.t SET s = 9 WHERE k = 3")
    for _ in range(10):
        session.execute("UPDATE ks.n SET n = n + 3 WHERE k = 1")
    rows = sorted(map(str, session.execute("SELECT * FROM ks.t")))
    session.cluster.shutdown()
    own_server.kill()
    own_server.start()
    session = connect(own_server)
    assert sorted(map(str, session.execute("SELECT * FROM ks.t"))) == rows
    assert session.execute("SELECT n FROM ks.n WHERE k = 1").one().n == 30
    session.execute("UPDATE ks.n SET n = n + 1 WHERE k = 1")
    assert session.execute("SELECT n FROM ks.n WHERE k = 1").one().n == 31
    session.cluster.shutdown()


def test_counters_and_conditions_hold_under_concurrency(server, session):
    session.execute("CREATE TABLE n (k int PRIMARY KEY, n counter)")
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO t (k, v) VALUES (1, 0)")
    won = []

    def work():
        mine = connect(server)
        mine.set_keyspace(session.keyspace)
        for _ in range(50):
            mine.execute("UPDATE n SET n = n + 1 WHERE k = 1")
            while True:
                seen = mine.execute("SELECT v FROM t WHERE k = 1").one().v
                if mine.execute("UPDATE t SET v = %s WHERE k = 1 IF v = %s", (seen + 1, seen)).one().applied:
                    won.append(seen)
                    break
        mine.cluster.shutdown()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.execute("SELECT n FROM n WHERE k = 1").one().n == 200
    assert session.execute("SELECT v FROM t WHERE k = 1").one().v == 200
    assert sorted(won) == list(range(200))


def test_ttl_and_default_timestamps(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO t (k, v) VALUES (1, 1) USING TTL 100")
    row = session.execute("SELECT ttl(v) AS ttl, writetime(v) AS at FROM t").one()
    assert 90 < row.ttl <= 100
    session.execute("UPDATE t USING TTL 0 SET v = 2 WHERE k = 1")
    assert session.execute("SELECT ttl(v) AS ttl FROM t").one().ttl is None


def test_a_large_value_goes_through(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v blob)")
    insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    value = bytes(range(256)) * 8192
    session.execute(insert, (1, value))
    assert session.execute("SELECT v FROM t WHERE k = 1").one().v == value


def test_tombstones_are_warned_of(session):
    session.execute("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))")
    delete = session.prepare("DELETE FROM t WHERE k = 1 AND c = ?")
    for future in [session.execute_async(delete, (c,)) for c in range(1500)]:
        future.result()
    session.execute("INSERT INTO t (k, c) VALUES (1, 5000)")
    future = session.execute_async(SimpleStatement("SELECT * FROM t WHERE k = 1 LIMIT 1"))
    assert len(list(future.result())) == 1
    assert "1500 tombstone cells" in future.warnings[0]


def test_a_trace_is_written(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    result = session.execute("INSERT INTO t (k, v) VALUES (1, 1)", trace=True)
    trace = result.get_query_trace(max_wait_sec=10)
    assert trace.request_type == "Execute CQL3 query"
    assert "INSERT INTO t" in trace.parameters["query"]
    assert trace.events and trace.duration is not None


def test_virtual_tables_tell_of_the_node(server, session):
    pools = {row.name for row in session.execute("SELECT name FROM system_views.thread_pools")}
    assert {"ReadStage", "MutationStage", "CompactionExecutor", "Native-Transport-Requests"} <= pools
    clients = list(session.execute("SELECT * FROM system_views.clients"))
    assert any("Python Driver" in row.driver_name for row in clients)
    setting = session.execute("SELECT value FROM system_views.settings WHERE name = 'native_transport_port'").one()
    assert setting.value == str(server.port)
    assert {row.name for row in session.execute("SELECT * FROM system_views.caches")} >= {"keys", "counters", "rows"}
    views = session.execute("SELECT table_name FROM system_virtual_schema.tables WHERE keyspace_name = 'system_views'")
    assert "sstable_tasks" in {row.table_name for row in views}
    own = session.execute("SELECT helenus_version, release_version FROM system_views.helenus").one()
    local = session.execute("SELECT release_version FROM system.local").one()
    assert own.helenus_version and own.release_version == local.release_version


def test_a_logged_batch_is_whole_after_a_crash(own_server):
    session = connect(own_server)
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
    for n in range(50):
        rows = " ".join(f"INSERT INTO ks.t (k, v) VALUES ({k}, {n});" for k in range(20))
        session.execute(f"BEGIN BATCH {rows} APPLY BATCH")
    session.cluster.shutdown()
    own_server.kill()
    own_server.start()
    session = connect(own_server)
    assert {row.v for row in session.execute("SELECT v FROM ks.t")} == {49}
    assert not list(session.execute("SELECT id FROM system.batches"))
    session.cluster.shutdown()


def test_too_many_tombstones_fail_a_read():
    server = helenus.Server(options=["tombstone_failure_threshold=200"]).start()
    try:
        for version in (3, 4, 5):
            session = connect(server, protocol_version=version)
            session.execute(
                "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = "
                "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            session.execute("CREATE TABLE IF NOT EXISTS ks.t (k int, c int, PRIMARY KEY (k, c))")
            for c in range(300):
                session.execute(f"DELETE FROM ks.t WHERE k = 1 AND c = {c}")
            with pytest.raises(ReadTimeout if version == 3 else ReadFailure):
                session.execute(
                    SimpleStatement("SELECT * FROM ks.t WHERE k = 1", retry_policy=FallthroughRetryPolicy())
                )
            assert not list(session.execute("SELECT * FROM ks.t WHERE k = 2"))
            session.cluster.shutdown()
    finally:
        server.remove()


def test_large_partitions_and_many_tombstones_are_named_in_the_log(new_server):
    server = new_server(compaction_large_partition_warning_threshold="100KiB", compaction_tombstone_warning_threshold=50).start()
    assert "no effect" not in server.log()
    session = server.connect()
    session.execute("CREATE KEYSPACE warned WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE warned.t (a int, b text, c int, v text, w text, PRIMARY KEY ((a, b), c)) WITH compaction = "
                    "{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}")
    insert = session.prepare("INSERT INTO warned.t (a, b, c, v) VALUES (?, ?, ?, ?)")
    for c in range(60):
        session.execute(insert, (1, "large", c, "x" * 1000))
        session.execute(insert, (1, "small", c, "x"))
    for c in range(51):
        session.execute(f"DELETE FROM warned.t WHERE a = 2 AND b = 'many' AND c = {c}")
    for c in range(25):
        session.execute(f"DELETE v, w FROM warned.t WHERE a = 2 AND b = 'few' AND c = {c}")
    server.nodetool("flush", "warned")
    assert "Writing large partition" not in server.log()
    assert re.search(r"WARN .*Writing 51 tombstones to warned/t:2:many in sstable \S+-Data.db", server.log())
    for c in range(60, 120):
        session.execute(insert, (1, "large", c, "x" * 1000))
    server.nodetool("flush", "warned")
    assert "Writing large partition" not in server.log()
    session.execute("DELETE FROM warned.t WHERE a = 2 AND b = 'few' AND c = 24")
    server.nodetool("compact", "warned")
    assert re.search(r"WARN .*Writing large partition warned/t:1:large \(1\d\d\.\d\d\dKiB\) to sstable \S+-Data.db", server.log())
    # Once when it was flushed, and once more when rows are merged.
    assert server.log().count("Writing 51 tombstones to warned/t:2:many") == 2
    assert "warned/t:1:small" not in server.log() and "warned/t:2:few" not in server.log()
