# SPDX-License-Identifier: Apache-2.0
"""Replicas that each missed other writes and deletions: whatever is asked at QUORUM or ALL, in pages of any size, is what a
single node that had all writes answers. Nothing mends them: no hints, no read repair."""
# pylint: disable=redefined-outer-name
import os
import random

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

KEYS, WRITES = 12, 200
SEED = int(os.environ.get("SEED", "1"))
ALL_KEYS = ", ".join(map(str, range(KEYS - 1, -1, -1)))
QUERIES = [
    "SELECT * FROM ks.t",
    "SELECT * FROM ks.t LIMIT 17",
    "SELECT * FROM ks.t PER PARTITION LIMIT 2",
    "SELECT * FROM ks.t PER PARTITION LIMIT 2 LIMIT 5",
    "SELECT DISTINCT k, s FROM ks.t",
    "SELECT DISTINCT k FROM ks.t LIMIT 4",
    "SELECT k, count(*), max(v) FROM ks.t GROUP BY k",
    "SELECT k, c, count(*) FROM ks.t GROUP BY k, c LIMIT 11",
    "SELECT k, c, count(*) FROM ks.t GROUP BY k, c PER PARTITION LIMIT 2",
    "SELECT count(*) FROM ks.t",
    "SELECT sum(v), min(d) FROM ks.t",
    "SELECT * FROM ks.t WHERE v = 2 ALLOW FILTERING",
    "SELECT * FROM ks.t WHERE v = 2 LIMIT 5 ALLOW FILTERING",
    "SELECT * FROM ks.t WHERE s = 2 ALLOW FILTERING",
    "SELECT * FROM ks.t WHERE d > 3 ALLOW FILTERING",
    "SELECT * FROM ks.t WHERE v >= 3 AND w = 'xx' ALLOW FILTERING",
    "SELECT k, count(*) FROM ks.t WHERE v > 1 GROUP BY k ALLOW FILTERING",
    "SELECT * FROM ks.t WHERE token(k) > 3000000000000000000",
    "SELECT * FROM ks.t WHERE token(k) <= -2000000000000000000",
    "SELECT * FROM ks.t WHERE token(k) > -4000000000000000000 AND token(k) <= 5000000000000000000 LIMIT 13",
    f"SELECT * FROM ks.t WHERE k IN ({ALL_KEYS})",
    f"SELECT * FROM ks.t WHERE k IN ({ALL_KEYS}) LIMIT 9",
    f"SELECT * FROM ks.t WHERE k IN ({ALL_KEYS}) AND c = 2",
    f"SELECT * FROM ks.t WHERE k IN ({ALL_KEYS}) AND c > 1 AND c < 5 PER PARTITION LIMIT 3",
    f"SELECT * FROM ks.t WHERE k IN ({ALL_KEYS}) AND v = 1 ALLOW FILTERING",
    f"SELECT * FROM ks.t WHERE k IN ({ALL_KEYS}) AND (c, d) IN ((1, 2), (3, 4), (5, 5))",
    f"SELECT DISTINCT k, s FROM ks.t WHERE k IN ({ALL_KEYS})",
    f"SELECT k, sum(v) FROM ks.t WHERE k IN ({ALL_KEYS}) GROUP BY k",
] + [query.replace("KEY", str(key)) for key in range(KEYS) for query in (
    "SELECT * FROM ks.t WHERE k = KEY",
    "SELECT * FROM ks.t WHERE k = KEY ORDER BY c DESC, d DESC",
    "SELECT * FROM ks.t WHERE k = KEY LIMIT 1",
    "SELECT * FROM ks.t WHERE k = KEY ORDER BY c DESC LIMIT 3",
    "SELECT * FROM ks.t WHERE k = KEY AND c = 3 AND d >= 2 LIMIT 2",
    "SELECT * FROM ks.t WHERE k = KEY AND c IN (0, 2, 4) AND d = 3",
    "SELECT s FROM ks.t WHERE k = KEY LIMIT 1",
    "SELECT count(*) FROM ks.t WHERE k = KEY",
    "SELECT * FROM ks.t WHERE k = KEY AND v = 1 LIMIT 2 ALLOW FILTERING",
    "SELECT v, w FROM ks.t WHERE k = KEY AND c = 1 AND d = 1")]


def mutation(chance, timestamp):
    key, c, d, v = chance.randrange(KEYS), chance.randrange(6), chance.randrange(8), chance.randrange(5)
    using = f"USING TIMESTAMP {timestamp}"
    text = "x" * chance.randrange(5)
    row = f"k = {key} AND c = {c} AND d = {d}"
    return chance.choices([
        f"INSERT INTO ks.t (k, c, d, v, w) VALUES ({key}, {c}, {d}, {v}, '{text}') {using}",
        f"UPDATE ks.t {using} SET v = {v} WHERE {row}",
        f"UPDATE ks.t {using} SET s = {v} WHERE k = {key}",
        f"DELETE FROM ks.t {using} WHERE {row}",
        f"DELETE FROM ks.t {using} WHERE k = {key} AND c = {c}",
        f"DELETE FROM ks.t {using} WHERE k = {key} AND c = {c} AND d > {d - 3} AND d <= {d}",
        f"DELETE FROM ks.t {using} WHERE k = {key}",
        f"DELETE v FROM ks.t {using} WHERE {row}",
        f"DELETE s FROM ks.t {using} WHERE k = {key}"], weights=[55, 10, 7, 10, 5, 4, 2, 3, 4])[0]


def pages(session, query, size, level):
    result = session.execute(SimpleStatement(query, fetch_size=size, consistency_level=level))
    rows = []
    while True:
        assert len(result.current_rows) <= size
        rows += [tuple(row) for row in result.current_rows]
        if not result.has_more_pages:
            return rows
        result.fetch_next_page()


@pytest.mark.long
def test_what_is_read_is_what_was_written(new_ring):
    chance = random.Random(SEED)
    ring, single = new_ring(3, hinted_handoff_enabled=False), new_ring(1)
    ring.start().wait_up()
    single.start()
    sessions = [ring.connect(only=[node]) for node in ring.nodes]
    whole = single.connect(only=[single[0]])
    for session, factor in ((sessions[0], 3), (whole, 1)):
        session.execute("CREATE KEYSPACE ks WITH replication = "
                        f"{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}")
        session.execute("CREATE TABLE ks.t (k int, c int, d int, s int static, v int, w text, "
                        "PRIMARY KEY (k, c, d)) WITH read_repair = 'NONE'")

    def write(count, alive, first):
        for timestamp in range(first, first + count):
            text = mutation(chance, timestamp)
            chance.choice(alive).execute(SimpleStatement(text, consistency_level=ConsistencyLevel.QUORUM))
            whole.execute(text)

    write(300, sessions, 1000000)
    for down in range(3):
        others = [node for node in ring.nodes if node is not ring[down]]
        ring[down].kill()
        for node in others:
            node.wait_sees(UN=others, DN=[ring[down]])
        write(WRITES, [session for session in sessions if session is not sessions[down]], 2000000 + down * 100000)
        ring[down].start()
        for node in ring.nodes:
            node.wait_sees(UN=ring.nodes)
        sessions[down] = ring.connect(only=[ring[down]])
        if chance.random() < 0.5:
            chance.choice(ring.nodes).nodetool("flush")
    for query in QUERIES:
        wanted = pages(whole, query, 0x7FFFFFFF, ConsistencyLevel.ONE)
        for level in (ConsistencyLevel.QUORUM, ConsistencyLevel.ALL):
            for size in (chance.choice([1, 2, 3]), chance.choice([5, 8, 13]), 5000):
                assert pages(chance.choice(sessions), query, size, level) == wanted, (SEED, query, size, level)
