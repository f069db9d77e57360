# SPDX-License-Identifier: Apache-2.0
"""What the node writes about itself: size estimates, SSTable activity, rates, batch metrics."""
import time


def keyspace(session):
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("ks")


def rows(session, table, where="keyspace_name = 'ks'"):
    return list(session.execute(f"SELECT * FROM system.{table} WHERE {where}"))


def fill(server, session, table, first, last):
    insert = session.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")
    for key in range(first, last):
        session.execute(insert, (key, "x" * 500))
    server.nodetool("flush", "ks", table)


def test_size_estimates_cover_the_ring(new_server):
    server = new_server(num_tokens=8).start()
    session = server.connect()
    keyspace(session)
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    session.execute("CREATE TABLE empty (k int PRIMARY KEY, v text)")
    fill(server, session, "t", 0, 20000 // 4)
    fill(server, session, "t", 20000 // 4, 20000 // 2)
    server.nodetool("refreshsizeestimates")
    estimates = rows(session, "size_estimates", "keyspace_name = 'ks' AND table_name = 't'")
    ends = sorted((int(row.range_start), int(row.range_end)) for row in estimates)
    minimum = -2 ** 63
    assert len(ends) == 9
    assert ends[0][0] == minimum and ends[-1][1] == minimum
    for (_, end), (start, _) in zip(ends, ends[1:]):
        assert end == start
    assert 5000 <= sum(row.partitions_count for row in estimates) <= 20000
    assert all(250 <= row.mean_partition_size <= 1100 for row in estimates)
    for kind in ("primary", "local_primary"):
        same = rows(session, "table_estimates",
                    f"keyspace_name = 'ks' AND table_name = 't' AND range_type = '{kind}'")
        assert [(row.range_start, row.partitions_count) for row in same] == \
            [(row.range_start, row.partitions_count) for row in estimates]
    empty = rows(session, "size_estimates", "keyspace_name = 'ks' AND table_name = 'empty'")
    assert len(empty) == 9
    assert {(row.partitions_count, row.mean_partition_size) for row in empty} == {(0, 0)}
    assert rows(session, "size_estimates", "keyspace_name = 'system'") == []
    # A table that is dropped goes, while the node runs and while it does not look.
    session.execute("DROP TABLE empty")
    server.nodetool("refreshsizeestimates")
    assert {row.table_name for row in rows(session, "size_estimates")} == {"t"}
    session.execute("DROP TABLE t")
    server.kill()
    server.start()
    session = server.connect()
    server.nodetool("refreshsizeestimates")
    assert rows(session, "size_estimates") == rows(session, "table_estimates") == []


def test_sstable_activity(new_server):
    server = new_server().start()
    session = server.connect()
    keyspace(session)
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    fill(server, session, "t", 0, 100)
    fill(server, session, "t", 100, 200)
    for _ in range(5):
        for key in range(100):
            session.execute(f"SELECT v FROM t WHERE k = {key}")
    server.nodetool("refreshsizeestimates")

    def activity():
        return {row.generation: row for row in session.execute("SELECT * FROM system.sstable_activity")
                if row.keyspace_name == "ks"}

    seen = activity()
    assert sorted(seen) == [1, 2]
    assert seen[1].rate_15m > 0 and seen[1].rate_120m > 0
    assert seen[2].rate_15m < seen[1].rate_15m
    newer = {row.id: row for row in session.execute("SELECT * FROM system.sstable_activity_v2")
             if row.keyspace_name == "ks"}
    assert newer["1"].rate_15m == seen[1].rate_15m
    # It goes on after a restart, and falls while nobody reads.
    server.restart() if hasattr(server, "restart") else (server.stop(), server.start())
    session = server.connect("ks")
    server.nodetool("refreshsizeestimates")
    assert 0 < activity()[1].rate_15m <= seen[1].rate_15m
    server.nodetool("compact", "ks", "t")
    server.nodetool("refreshsizeestimates")
    assert sorted(activity()) == [3]


def test_rates_are_averages_of_what_happened(new_server):
    server = new_server().start()
    session = server.connect()
    keyspace(session)
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    fill(server, session, "t", 0, 100)
    rate = lambda table, name="t": session.execute(
        f"SELECT per_second FROM system_views.{table} WHERE keyspace_name = 'ks' AND table_name = '{name}'"
    ).one().per_second
    select = session.prepare("SELECT v FROM t WHERE k = ?")
    end = time.monotonic() + 60
    while rate("local_read_latency") == 0 and time.monotonic() < end:
        for key in range(100):
            session.execute(select, (key,))
    assert rate("local_read_latency") > 0
    assert rate("coordinator_read_latency") > 0
    assert rate("local_write_latency") > 0
    assert rate("local_scan_latency") == 0
    cache = session.execute("SELECT * FROM system_views.caches WHERE name = 'keys'").one()
    assert cache.recent_request_rate_per_second >= cache.recent_hit_rate_per_second > 0


def test_batch_metrics(new_server):
    server = new_server().start()
    session = server.connect()
    keyspace(session)
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    session.execute("CREATE TABLE c (k int PRIMARY KEY, n counter)")
    metrics = lambda: {row.name: row for row in session.execute("SELECT * FROM system_views.batch_metrics")}
    assert {name: row.max for name, row in metrics().items()} == {
        "partitions_per_logged_batch": 0, "partitions_per_unlogged_batch": 0, "partitions_per_counter_batch": 0}
    many = lambda count: " ".join(f"INSERT INTO t (k, v) VALUES ({key}, 'x');" for key in range(count))
    for _ in range(10):
        session.execute(f"BEGIN BATCH {many(3)} APPLY BATCH")
    session.execute(f"BEGIN UNLOGGED BATCH {many(8)} APPLY BATCH")
    session.execute("BEGIN COUNTER BATCH UPDATE c SET n = n + 1 WHERE k = 1; UPDATE c SET n = n + 1 WHERE k = 2; "
                    "APPLY BATCH")
    seen = metrics()
    assert (seen["partitions_per_logged_batch"].max, seen["partitions_per_logged_batch"].p50th) == (3, 3)
    assert seen["partitions_per_unlogged_batch"].max == 8
    assert seen["partitions_per_counter_batch"].p999th == 2
