# SPDX-License-Identifier: Apache-2.0
"""Row, counter and key caches: what they hold, what nodetool and system_views.caches say, and what a restart keeps."""
import glob
import os
import threading

import pytest

CACHED = "WITH caching = {'keys': 'ALL', 'rows_per_partition': 'ALL'}"


def keyspace(session):
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("ks")


def cache(session, name):
    return session.execute(f"SELECT * FROM system_views.caches WHERE name = '{name}'").one()


@pytest.fixture
def rows(new_server):
    server = new_server(row_cache_size="16MiB").start()
    session = server.connect()
    keyspace(session)
    return server, session


def test_a_cached_row_follows_every_kind_of_change(rows):
    server, session = rows
    session.execute(f"CREATE TABLE t (k int, c int, s text static, v text, PRIMARY KEY (k, c)) {CACHED}")
    read = lambda: [tuple(row) for row in session.execute("SELECT c, s, v FROM t WHERE k = 1")]
    expected = []

    def check(statement, rows):
        session.execute(statement)
        before = cache(session, "rows").hit_count
        assert read() == rows
        assert read() == rows
        assert cache(session, "rows").hit_count == before + 1

    assert read() == expected
    check("INSERT INTO t (k, c, v) VALUES (1, 1, 'a')", [(1, None, "a")])
    check("INSERT INTO t (k, c, v) VALUES (1, 2, 'b')", [(1, None, "a"), (2, None, "b")])
    check("UPDATE t SET s = 'st' WHERE k = 1", [(1, "st", "a"), (2, "st", "b")])
    check("DELETE v FROM t WHERE k = 1 AND c = 1", [(1, "st", None), (2, "st", "b")])
    check("DELETE FROM t WHERE k = 1 AND c = 1", [(2, "st", "b")])
    check("UPDATE t SET v = 'c' WHERE k = 1 AND c = 2 IF v = 'b'", [(2, "st", "c")])
    check("BEGIN BATCH INSERT INTO t (k, c, v) VALUES (1, 3, 'd') INSERT INTO t (k, c, v) VALUES (2, 3, 'e') "
          "APPLY BATCH", [(2, "st", "c"), (3, "st", "d")])
    check("DELETE FROM t WHERE k = 1 AND c >= 3", [(2, "st", "c")])
    # A miss: the write went to another partition, so nothing was taken away.
    server.nodetool("flush", "ks")
    server.nodetool("compact", "ks")
    before = cache(session, "rows").hit_count
    assert read() == [(2, "st", "c")]
    assert cache(session, "rows").hit_count == before + 1
    session.execute("ALTER TABLE t ADD w int")
    session.execute("UPDATE t SET w = 7 WHERE k = 1 AND c = 2")
    for _ in range(2):
        assert session.execute("SELECT w FROM t WHERE k = 1").one().w == 7
    session.execute("ALTER TABLE t DROP w")
    session.execute("DELETE FROM t WHERE k = 1")
    for _ in range(2):
        assert read() == []
    session.execute("INSERT INTO t (k, c, v) VALUES (1, 1, 'a')")
    assert len(read()) == 1
    session.execute("TRUNCATE t")
    assert read() == []


def test_a_number_of_rows_is_cached_and_the_rest_is_read(rows):
    server, session = rows
    session.execute("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c)) "
                    "WITH caching = {'keys': 'ALL', 'rows_per_partition': '10'}")
    for c in range(50):
        session.execute(f"INSERT INTO t (k, c, v) VALUES (1, {c}, 'v{c}')")
    numbers = lambda where: [row.c for row in session.execute(f"SELECT c FROM t WHERE k = 1 {where}")]
    for _ in range(2):
        assert numbers("") == list(range(50))
        assert numbers("LIMIT 5") == list(range(5))
        assert numbers("AND c < 8") == list(range(8))
        assert numbers("AND c > 5 LIMIT 10") == list(range(6, 16))
        assert numbers("ORDER BY c DESC LIMIT 3") == [49, 48, 47]
        assert numbers("AND c IN (3, 30)") == [3, 30]
        assert numbers("AND c IN (3, 4)") == [3, 4]
    stats = cache(session, "rows")
    assert stats.entry_count == 1
    hits = stats.hit_count
    assert numbers("LIMIT 10") == list(range(10))
    assert numbers("AND c = 4") == [4]
    assert cache(session, "rows").hit_count == hits + 2
    session.default_fetch_size = 7
    assert numbers("") == list(range(50))


def test_cached_cells_expire(rows):
    server, session = rows
    session.execute(f"CREATE TABLE t (k int PRIMARY KEY, v text) {CACHED}")
    session.execute("INSERT INTO t (k, v) VALUES (1, 'short') USING TTL 2")
    read = lambda: session.execute("SELECT v FROM t WHERE k = 1").one()
    assert read().v == "short"
    assert read().v == "short"
    server.wait_until(lambda: read() is None, "expiry")


def test_nodetool_changes_the_caches(rows):
    server, session = rows
    session.execute(f"CREATE TABLE t (k int PRIMARY KEY, v text) {CACHED}")
    session.execute("INSERT INTO t (k, v) VALUES (1, 'x')")
    server.nodetool("flush", "ks")
    session.execute("SELECT * FROM t WHERE k = 1")
    session.execute("SELECT * FROM t WHERE k = 1")
    stats = cache(session, "rows")
    assert (stats.capacity_bytes, stats.entry_count, stats.hit_count, stats.request_count) == (16 << 20, 1, 1, 2)
    assert stats.hit_ratio == 0.5 and stats.size_bytes > 0
    info = server.nodetool("info")
    line, = [line for line in info.splitlines() if line.startswith("Row Cache")]
    assert "entries 1," in line and "capacity 16 MiB, 1 hits, 2 requests" in line
    server.nodetool("invalidaterowcache")
    assert cache(session, "rows").entry_count == 0
    session.execute("SELECT * FROM t WHERE k = 1")
    server.nodetool("setcachecapacity", 5, 0, 7)
    assert cache(session, "keys").capacity_bytes == 5 << 20
    assert cache(session, "counters").capacity_bytes == 7 << 20
    stats = cache(session, "rows")
    assert (stats.capacity_bytes, stats.entry_count) == (0, 0)
    session.execute("SELECT * FROM t WHERE k = 1")
    assert cache(session, "rows").entry_count == 0
    server.nodetool("setcachecapacity", "1", "x", "1", status=1)


def test_counters_are_right_with_the_cache(new_server):
    server = new_server().start()
    session = server.connect()
    keyspace(session)
    session.execute("CREATE TABLE t (k int, c int, s counter static, n counter, m counter, PRIMARY KEY (k, c))")
    update = session.prepare("UPDATE t SET n = n + ?, m = m - 1, s = s + 1 WHERE k = ? AND c = ?")

    def count(times):
        for _ in range(times):
            session.execute(update, (2, 1, 1))

    threads = [threading.Thread(target=count, args=(50,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = lambda: tuple(session.execute("SELECT n, m, s FROM t WHERE k = 1 AND c = 1").one())
    assert read() == (400, -200, 200)
    stats = cache(session, "counters")
    assert stats.entry_count == 3
    assert stats.hit_count >= 3 * 190
    server.nodetool("flush", "ks")
    server.nodetool("invalidatecountercache")
    count(1)
    assert read() == (402, -201, 201)
    # Killed: what was cached is found again on disk.
    server.kill()
    server.start()
    session = server.connect("ks")
    update = session.prepare("UPDATE t SET n = n + ?, m = m - 1, s = s + 1 WHERE k = ? AND c = ?")
    count(3)
    assert read() == (408, -204, 204)
    session.execute("TRUNCATE t")
    count(1)
    assert read() == (2, -1, 1)
    session.execute("UPDATE t SET n = n + 5 WHERE k = 2 AND c = 1")
    session.execute("DELETE FROM t WHERE k = 2")
    assert cache(session, "counters").entry_count >= 0
    assert session.execute("SELECT * FROM t WHERE k = 2").one() is None


def test_saved_caches_are_read_after_a_restart(new_server):
    server = new_server(row_cache_size="16MiB", row_cache_save_period=3600, file_cache_size="32MiB").start()
    session = server.connect()
    keyspace(session)
    session.execute("CREATE TABLE plain (k int PRIMARY KEY, v text)")
    session.execute(f"CREATE TABLE t (k int PRIMARY KEY, v text) {CACHED}")
    session.execute("CREATE TABLE n (k int PRIMARY KEY, n counter)")
    for key in range(100):
        session.execute(f"INSERT INTO plain (k, v) VALUES ({key}, 'p{key}')")
        session.execute(f"INSERT INTO t (k, v) VALUES ({key}, 'v{key}')")
        session.execute(f"UPDATE n SET n = n + {key} WHERE k = {key}")
    server.nodetool("flush", "ks")
    for key in range(100):
        session.execute(f"SELECT * FROM plain WHERE k = {key}")
        session.execute(f"SELECT * FROM t WHERE k = {key}")
    keys = cache(session, "keys").entry_count
    assert keys >= 200
    assert server.stop() == 0
    saved = os.path.join(server.path, "data/saved_caches")
    assert sorted(os.listdir(saved)) == ["CounterCache-h1.db", "KeyCache-h1.db", "RowCache-h1.db"]
    server.start()
    server.wait_until(lambda: "Read CounterCache-h1.db" in server.log(), "reading of the caches")
    session = server.connect("ks")
    assert cache(session, "keys").entry_count >= 200
    assert cache(session, "rows").entry_count == 100
    assert cache(session, "counters").entry_count == 100
    before = cache(session, "keys").hit_count
    for key in range(100):
        assert session.execute(f"SELECT v FROM plain WHERE k = {key}").one().v == f"p{key}"
        assert session.execute(f"SELECT v FROM t WHERE k = {key}").one().v == f"v{key}"
        session.execute(f"UPDATE n SET n = n + 1 WHERE k = {key}")
        assert session.execute(f"SELECT n FROM n WHERE k = {key}").one().n == key + 1
    assert cache(session, "keys").hit_count >= before + 100
    assert cache(session, "rows").hit_count >= 100
    # Damaged or of other SSTables: not used, and not in the way.
    server.nodetool("compact", "ks")
    server.nodetool("setcachekeystosave", 10, 0, 5)
    server.stop()
    sizes = {name: os.path.getsize(os.path.join(saved, name)) for name in os.listdir(saved)}
    assert sizes["RowCache-h1.db"] == 16 and 16 < sizes["CounterCache-h1.db"] < 16 + 5 * 60
    assert sizes["KeyCache-h1.db"] < 2000
    with open(os.path.join(saved, "CounterCache-h1.db"), "r+b") as file:
        file.seek(20)
        file.write(b"\xff\xff")
    server.start()
    server.wait_until(lambda: "CounterCache-h1.db: bad CRC" in server.log(), "the warning")
    session = server.connect("ks")
    for key in range(100):
        assert session.execute(f"SELECT v FROM plain WHERE k = {key}").one().v == f"p{key}"
        session.execute(f"UPDATE n SET n = n + 1 WHERE k = {key}")
        assert session.execute(f"SELECT n FROM n WHERE k = {key}").one().n == key + 2


def test_caches_are_saved_now_and_then(new_server):
    server = new_server(key_cache_save_period=1).start()
    session = server.connect()
    keyspace(session)
    server.wait_until(lambda: glob.glob(os.path.join(server.path, "data/saved_caches/KeyCache-h1.db")), "saving")
    assert not glob.glob(os.path.join(server.path, "data/saved_caches/RowCache-h1.db"))
    server.kill()
    server.start()
    assert server.connect().execute("SELECT * FROM system.local").one()
