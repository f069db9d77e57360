# SPDX-License-Identifier: Apache-2.0
# pylint: disable=redefined-outer-name,unused-import
import time

import pytest
from cassandra import AlreadyExists, InvalidRequest

from cql import connect, own_server, server, session, shared_session  # noqa: F401


def test_the_driver_knows_what_was_created(session):
    session.execute("CREATE TYPE ud (a int, b frozen<list<text>>)")
    session.execute(
        "CREATE TABLE t (k int, c text, d timeuuid, s int static, v map<text, frozen<ud>>, PRIMARY KEY ((k), c, d)) "
        "WITH CLUSTERING ORDER BY (c DESC, d ASC) AND comment = 'hello' AND gc_grace_seconds = 5"
    )
    session.cluster.refresh_schema_metadata()
    table = session.cluster.metadata.keyspaces[session.keyspace].tables["t"]
    assert [column.name for column in table.primary_key] == ["k", "c", "d"]
    assert table.columns["c"].is_reversed and not table.columns["d"].is_reversed
    assert table.columns["s"].is_static
    assert table.columns["v"].cql_type == "map<text, frozen<ud>>"
    assert table.options["comment"] == "hello" and table.options["gc_grace_seconds"] == 5
    assert "ud" in session.cluster.metadata.keyspaces[session.keyspace].user_types


def test_the_schema_survives_kill_and_restart(own_server):
    session = connect(own_server)
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}")
    session.execute("CREATE TYPE ks.ud (a int)")
    session.execute("CREATE TYPE ks.outer_ud (x frozen<ud>)")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v frozen<outer_ud>, w int, x int) WITH comment = 'c'")
    session.execute("ALTER TABLE ks.t DROP w")
    session.execute("ALTER TABLE ks.t ADD y text")
    session.execute("CREATE TABLE ks.gone (k int PRIMARY KEY)")
    session.execute("DROP TABLE ks.gone")
    session.execute("INSERT INTO ks.t (k, x, y) VALUES (1, 2, 'three')")
    before = [row.create_statement for row in session.execute("DESCRIBE KEYSPACE ks WITH INTERNALS")]
    version = session.execute("SELECT schema_version FROM system.local").one().schema_version
    session.cluster.shutdown()
    own_server.kill()
    own_server.start()
    session = connect(own_server)
    assert [row.create_statement for row in session.execute("DESCRIBE KEYSPACE ks WITH INTERNALS")] == before
    assert session.execute("SELECT schema_version FROM system.local").one().schema_version == version
    assert session.execute("SELECT x, y FROM ks.t").one() == (2, "three")
    assert not list(session.execute("SELECT * FROM system_schema.tables WHERE keyspace_name='ks' AND table_name='gone'"))
    session.cluster.shutdown()


def test_a_dropped_columns_data_stays_away(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b int)")
    session.execute("INSERT INTO t (k, a, b) VALUES (1, 1, 1)")
    session.execute("ALTER TABLE t DROP b")
    session.execute("ALTER TABLE t ADD b int")
    assert session.execute("SELECT a, b FROM t").one() == (1, None)
    session.execute("UPDATE t SET b = 5 WHERE k = 1")
    assert session.execute("SELECT a, b FROM t").one() == (1, 5)


def test_altered_types_read_old_values(session):
    session.execute("CREATE TYPE ud (a int)")
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v frozen<ud>, l list<frozen<ud>>)")
    session.execute("INSERT INTO t (k, v, l) VALUES (1, {a: 1}, [{a: 2}])")
    session.execute("ALTER TYPE ud ADD b text")
    row = session.execute("SELECT v.a AS a, v.b AS b FROM t").one()
    assert (row.a, row.b) == (1, None)
    session.execute("ALTER TYPE ud RENAME a TO aa")
    assert session.execute("SELECT v.aa AS aa FROM t").one().aa == 1


def test_events_are_pushed(server, session):
    other = connect(server)
    time.sleep(0.3)
    session.execute("CREATE TABLE pushed (k int PRIMARY KEY)")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        keyspace = other.cluster.metadata.keyspaces.get(session.keyspace)
        if keyspace is not None and "pushed" in keyspace.tables:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the other client was not told")
    other.cluster.shutdown()


def test_refusals(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY)")
    with pytest.raises(AlreadyExists):
        session.execute("CREATE TABLE t (k int PRIMARY KEY)")
    with pytest.raises(InvalidRequest, match="does not exist"):
        session.execute("SELECT * FROM nope")
    with pytest.raises(InvalidRequest, match="Secondary indexes"):
        session.execute("CREATE INDEX ON t (k)")


def test_truncate_and_restart(own_server):
    session = connect(own_server)
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY)")
    for k in range(10):
        session.execute(f"INSERT INTO ks.t (k) VALUES ({k})")
    session.execute("TRUNCATE ks.t")
    session.execute("INSERT INTO ks.t (k) VALUES (100)")
    assert [row.k for row in session.execute("SELECT k FROM ks.t")] == [100]
    session.cluster.shutdown()
    own_server.kill()
    own_server.start()
    session = connect(own_server)
    assert [row.k for row in session.execute("SELECT k FROM ks.t")] == [100]
    session.cluster.shutdown()
