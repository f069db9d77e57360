# SPDX-License-Identifier: Apache-2.0
# pylint: disable=redefined-outer-name,unused-import
import uuid

import pytest
from cassandra import InvalidRequest
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType

from cql import connect, own_server, server, session, shared_session  # noqa: F401


def test_values_are_bound_by_position_and_by_name(session):
    session.execute("CREATE TABLE t (k int, c text, v int, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
    session.execute(insert, (1, "a", 10))
    session.execute(insert, {"k": 1, "c": "b", "v": 20})
    select = session.prepare("SELECT v FROM t WHERE k = :key AND c = :clustering")
    assert session.execute(select, {"key": 1, "clustering": "b"}).one().v == 20
    assert session.execute(select, (1, "a")).one().v == 10


def test_unset_leaves_a_column_alone(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b int)")
    session.execute("INSERT INTO t (k, a, b) VALUES (1, 1, 1)")
    insert = session.prepare("INSERT INTO t (k, a, b) VALUES (?, ?, ?)")
    session.execute(insert, (1, UNSET_VALUE, 2))
    assert tuple(session.execute("SELECT a, b FROM t").one()) == (1, 2)
    session.execute(insert, (1, None, 3))
    assert tuple(session.execute("SELECT a, b FROM t").one()) == (None, 3)


def test_unset_is_refused_in_a_key(session):
    session.execute("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))")
    select = session.prepare("SELECT * FROM t WHERE k = ? AND c = ?")
    with pytest.raises(InvalidRequest, match="Invalid unset value for column c"):
        session.execute(select, (1, UNSET_VALUE))
    with pytest.raises(InvalidRequest, match="Invalid null value in condition for column k"):
        session.execute(select, (None, 1))


def test_unset_ttl_timestamp_and_limit_are_absent(session):
    session.execute("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?) USING TTL ? AND TIMESTAMP ?")
    session.execute(insert, (1, 1, 1, UNSET_VALUE, UNSET_VALUE))
    session.execute(insert, (1, 2, 1, 1000, 77))
    rows = list(session.execute("SELECT ttl(v) AS ttl, writetime(v) AS at FROM t WHERE k = 1"))
    assert rows[0].ttl is None and rows[0].at > 10**15
    assert 0 < rows[1].ttl <= 1000 and rows[1].at == 77
    select = session.prepare("SELECT c FROM t WHERE k = ? LIMIT ?")
    assert len(list(session.execute(select, (1, UNSET_VALUE)))) == 2
    assert len(list(session.execute(select, (1, 1)))) == 1
    with pytest.raises(InvalidRequest, match="LIMIT must be strictly positive"):
        session.execute(select, (1, 0))


def test_in_takes_a_list(session):
    session.execute("CREATE TABLE t (k int, a int, b int, PRIMARY KEY (k, a, b))")
    for k in range(3):
        for a in range(3):
            session.execute(f"INSERT INTO t (k, a, b) VALUES ({k}, {a}, {a})")
    keys = session.prepare("SELECT k, a FROM t WHERE k IN ? AND a = 1")
    assert keys.column_metadata[0].name == "in(k)"
    assert [row.k for row in session.execute(keys, ([2, 0, 2],))] == [0, 2]
    assert not list(session.execute(keys, ([],)))
    tuples = session.prepare("SELECT a FROM t WHERE k = 0 AND (a, b) IN ?")
    assert [row.a for row in session.execute(tuples, ([(2, 2), (0, 0), (1, 0)],))] == [0, 2]
    one = session.prepare("SELECT a FROM t WHERE k = 0 AND (a, b) > ?")
    assert [row.a for row in session.execute(one, ((0, 0),))] == [1, 2]


def test_key_positions_route_by_token(session):
    session.execute("CREATE TABLE t (a int, b text, v int, PRIMARY KEY ((a, b)))")
    assert session.prepare("INSERT INTO t (v, b, a) VALUES (?, ?, ?)").routing_key_indexes == [2, 1]
    assert session.prepare("UPDATE t SET v = ? WHERE b = ? AND a = ?").routing_key_indexes == [2, 1]
    assert session.prepare("SELECT * FROM t WHERE a = ? AND b = ?").routing_key_indexes == [0, 1]
    assert not session.prepare("SELECT * FROM t WHERE a = 1 AND b = ?").routing_key_indexes


def test_every_type_goes_in_and_comes_out(session):
    session.execute("CREATE TYPE ud (a int, b text)")
    session.execute(
        "CREATE TABLE t (k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, fl frozen<list<text>>, "
        "t tuple<int, text>, u frozen<ud>, mu ud, d double, x uuid, b blob)"
    )
    insert = session.prepare("INSERT INTO t (k, l, s, m, fl, t, u, mu, d, x, b) VALUES (?,?,?,?,?,?,?,?,?,?,?)")
    identity = uuid.uuid4()
    session.execute(
        insert, (1, [3, 1], {"b", "a"}, {"z": 1, "a": 2}, ["q"], (5, "t"), (1, "x"), (2, None), 1.5, identity, b"\xff")
    )
    row = session.execute("SELECT * FROM t").one()
    assert row.l == [3, 1] and row.s == {"a", "b"} and dict(row.m) == {"a": 2, "z": 1}
    assert row.fl == ["q"] and row.t == (5, "t") and tuple(row.u) == (1, "x") and tuple(row.mu) == (2, None)
    assert row.d == 1.5 and row.x == identity and row.b == b"\xff"


def test_select_star_is_told_of_a_new_column(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO t (k, v) VALUES (1, 2)")
    select = session.prepare("SELECT * FROM t")
    assert tuple(session.execute(select).one()) == (1, 2)
    session.execute("ALTER TABLE t ADD w text")
    assert session.execute(select).one()._asdict() == {"k": 1, "v": 2, "w": None}
    session.execute("ALTER TABLE t WITH comment = 'x'")
    assert session.execute(select).one().k == 1


def test_a_prepared_statement_survives_a_restart(own_server):
    session = connect(own_server)
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
    prepared = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
    session.cluster.shutdown()
    own_server.restart()
    session = connect(own_server)
    stored = session.execute("SELECT prepared_id, query_string FROM system.prepared_statements")
    assert (prepared.query_id, prepared.query_string) in [tuple(row) for row in stored]
    session.cluster.shutdown()


def test_a_batch_message_mixes_texts_and_prepared(session):
    session.execute("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
    batch = BatchStatement(BatchType.LOGGED)
    for c in range(5):
        batch.add(insert, (1, c, c * 10))
    batch.add("INSERT INTO t (k, c, v) VALUES (2, 0, 7)")
    batch.add("UPDATE t SET v = %s WHERE k = %s AND c = %s", (99, 1, 0))
    session.execute(batch)
    assert [row.v for row in session.execute("SELECT v FROM t WHERE k = 1")] == [99, 10, 20, 30, 40]
    batch = BatchStatement()
    batch.add("SELECT * FROM t")
    with pytest.raises(InvalidRequest, match="only UPDATE, INSERT and DELETE"):
        session.execute(batch)


def test_a_big_batch_warns_and_a_too_big_one_is_refused(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")

    def of(size):
        batch = BatchStatement()
        for k in range(10):
            batch.add(insert, (k, "x" * (size // 10)))
        return batch

    warned = session.execute_async(of(8000))
    warned.result()
    assert "exceeding specified threshold of 5120" in warned.warnings[0]
    with pytest.raises(InvalidRequest, match="Batch too large"):
        session.execute(of(60000))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_every_protocol_version_serves(server, session, version):
    other = connect(server, protocol_version=version)
    other.execute(f"USE {session.keyspace}")
    other.execute("CREATE TABLE t (k int PRIMARY KEY, v list<text>)")
    insert = other.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    for k in range(10):
        other.execute(insert, (k, ["a", str(k)]))
    assert len(list(other.execute("SELECT * FROM t"))) == 10
    other.cluster.shutdown()
