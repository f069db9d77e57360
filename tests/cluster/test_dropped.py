# SPDX-License-Identifier: Apache-2.0
"""What another node asked for and this one came to too late is counted by verb (tpstats) and told in the log."""
import re

from cassandra import ConsistencyLevel
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import SimpleStatement

from ring import wait_until

TIMEOUT_MS = 300
MESSAGES = ("READ_REQ", "RANGE_REQ", "MUTATION_REQ", "COUNTER_MUTATION_REQ", "PAXOS_PREPARE_REQ")


def dropped(node):
    """The second part of tpstats: Message type, Dropped, ..."""
    rows = [line.split() for line in node.nodetool("tpstats").split("Message type")[1].splitlines()]
    return {row[0]: int(row[1]) for row in rows[1:] if row}


def test_late_range_requests_are_no_other_kind(ring):
    session = ring.connect(only=[ring[0]])
    session.execute("CREATE KEYSPACE late WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE late.t (k int PRIMARY KEY, v text)")
    write = session.prepare("INSERT INTO late.t (k, v) VALUES (?, ?)")
    write.consistency_level = ConsistencyLevel.ALL
    execute_concurrent_with_args(session, write, [(key, "v" * 200) for key in range(2000)])
    ring[0].nodetool("settimeout", "range", TIMEOUT_MS)
    late = ring[2]
    before = dropped(late)
    assert set(MESSAGES) <= set(before)
    scan = SimpleStatement("SELECT * FROM late.t", fetch_size=5000, consistency_level=ConsistencyLevel.ALL)

    def provoke():
        """The node hangs in the midst of its work until nobody waits for what it has not come to yet."""
        futures = [session.execute_async(scan) for _ in range(100)]
        late.pause()
        try:
            for future in futures:
                try:
                    future.result()
                except Exception:  # pylint: disable=broad-except
                    pass
        finally:
            late.resume()
        return dropped(late)["RANGE_REQ"] > before["RANGE_REQ"]

    wait_until(provoke, "a late RANGE_REQ")
    after = dropped(late)
    for message in MESSAGES:
        assert message == "RANGE_REQ" or after[message] == before[message], message
    wait_until(lambda: re.search(r"RANGE_REQ messages were dropped in last 5000 ms: 0 internal and [1-9]\d* cross node",
                                 late.log()), "the log's line")
    assert "READ_REQ messages were dropped" not in late.log()
