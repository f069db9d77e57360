# SPDX-License-Identifier: Apache-2.0
# pylint: disable=redefined-outer-name,unused-import
import pytest
from cassandra.query import SimpleStatement

from cql import connect, own_server, server, session, shared_session  # noqa: F401


def pages(session, query, size):
    result = session.execute(SimpleStatement(query, fetch_size=size))
    rows, sizes = [], []
    while True:
        sizes.append(len(result.current_rows))
        rows += [tuple(row) for row in result.current_rows]
        if not result.has_more_pages:
            return rows, sizes
        result.fetch_next_page()


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t (k int, c int, s int static, v int, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
    for k in range(7):
        for c in range(k):
            session.execute(insert, (k, c, k * 100 + c))
    session.execute("INSERT INTO t (k, s) VALUES (0, 5)")
    session.execute("INSERT INTO t (k, s) VALUES (3, 6)")
    return session


QUERIES = [
    "SELECT * FROM t",
    "SELECT * FROM t LIMIT 13",
    "SELECT * FROM t PER PARTITION LIMIT 3",
    "SELECT * FROM t PER PARTITION LIMIT 2 LIMIT 7",
    "SELECT DISTINCT k, s FROM t",
    "SELECT k, count(*) FROM t GROUP BY k",
    "SELECT k, c, sum(v) FROM t GROUP BY k, c LIMIT 9",
    "SELECT * FROM t WHERE k = 6",
    "SELECT * FROM t WHERE k = 6 ORDER BY c DESC",
    "SELECT * FROM t WHERE k IN (6, 0, 3)",
    "SELECT * FROM t WHERE k IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 77, 78, 79) LIMIT 17",
    "SELECT * FROM t WHERE k IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0) PER PARTITION LIMIT 2",
    "SELECT * FROM t WHERE k IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0) AND c IN (1, 4)",
    "SELECT * FROM t WHERE k IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0) AND v > 100 ALLOW FILTERING",
    "SELECT DISTINCT k, s FROM t WHERE k IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)",
    "SELECT k, count(*) FROM t WHERE k IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0) GROUP BY k",
    "SELECT k, c, max(v) FROM t WHERE k IN (9, 8, 7, 6, 5, 4) GROUP BY k, c PER PARTITION LIMIT 2 LIMIT 9",
    "SELECT * FROM t WHERE k = 6 AND c > 1 AND c <= 4",
    "SELECT * FROM t WHERE k = 6 AND c IN (0, 2, 5)",
    "SELECT * FROM t WHERE v > 200 ALLOW FILTERING",
    "SELECT * FROM t WHERE token(k) > -5000000000000000000",
    "SELECT JSON * FROM t",
]


@pytest.mark.parametrize("query", QUERIES)
def test_pages_of_every_size_add_up(table, query):
    whole, _ = pages(table, query, 5000)
    assert whole
    for size in (1, 2, 3, 5, 8):
        rows, sizes = pages(table, query, size)
        assert rows == whole
        assert max(sizes) <= size


def test_a_long_scan_is_read_in_chunks(session):
    session.execute("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
    futures = [session.execute_async(insert, (n % 13, n, "x" * 20)) for n in range(9000)]
    for future in futures:
        future.result()
    assert session.execute("SELECT count(*) FROM t").one().count == 9000
    rows, sizes = pages(session, "SELECT * FROM t", 0x7FFFFFFF)
    assert len(rows) == 9000 and len(sizes) == 1
    rows, _ = pages(session, "SELECT c FROM t WHERE k = 1", 100)
    assert [row[0] for row in rows] == list(range(1, 9000, 13))


def test_partitions_of_all_sizes_that_are_read_together(session):
    session.execute("CREATE TABLE t (k int, c int, s int static, v text, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
    sizes = [300, 0, 1, 2500, 10, 0, 4100, 7, 2000, 1999] + [3] * 30
    futures = [session.execute_async(insert, (k, c, "x" * 20)) for k, size in enumerate(sizes) for c in range(size)]
    for future in futures:
        future.result()
    session.execute("INSERT INTO t (k, s) VALUES (5, 1)")
    keys = ", ".join(map(str, reversed(range(len(sizes)))))
    query = f"SELECT k, c FROM t WHERE k IN ({keys})"
    whole = [(k, c) for k in sorted(range(len(sizes))) for c in (range(sizes[k]) if k != 5 else [None])]
    for size in (1000, 2000, 4000, 0x7FFFFFFF):
        assert pages(session, query, size)[0] == whole
    assert pages(session, query + " LIMIT 4444", 1500)[0] == whole[:4444]
    assert pages(session, query + " PER PARTITION LIMIT 2001", 700)[0] == [row for row in whole if (row[1] or 0) <= 2000]
    assert session.execute(query.replace("k, c", "count(c)", 1)).one()[0] == sum(sizes)
    assert pages(session, query.replace("k, c", "k, count(c)", 1) + " GROUP BY k", 7)[0] == [
        (k, size) for k, size in enumerate(sizes) if size or k == 5]


@pytest.mark.parametrize("state", [b"abc", bytes(50), b"\x48\x01\xff\xff"])
def test_a_broken_paging_state_is_refused(server, table, state):
    other = connect(server)  # the driver takes a protocol error for the end of its connection
    other.set_keyspace(table.keyspace)
    with pytest.raises(Exception, match="Invalid value for the paging state|shut down|shutdown"):
        other.execute("SELECT * FROM t", paging_state=state)
    other.cluster.shutdown()
    assert list(table.execute("SELECT * FROM t"))


def test_a_paging_state_survives_a_restart(own_server):
    session = connect(own_server)
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int, c int, PRIMARY KEY (k, c))")
    for k in range(5):
        for c in range(5):
            session.execute(f"INSERT INTO ks.t (k, c) VALUES ({k}, {c})")
    whole = [tuple(row) for row in session.execute("SELECT * FROM ks.t")]
    first = session.execute(SimpleStatement("SELECT * FROM ks.t", fetch_size=8))
    state, head = first.paging_state, [tuple(row) for row in first.current_rows]
    session.cluster.shutdown()
    own_server.restart()
    session = connect(own_server)
    rest = session.execute(SimpleStatement("SELECT * FROM ks.t", fetch_size=100), paging_state=state)
    assert head + [tuple(row) for row in rest] == whole
    session.cluster.shutdown()
