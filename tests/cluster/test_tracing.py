# SPDX-License-Identifier: Apache-2.0
"""A traced request of a ring: each node that has part in it writes its events into the session of the coordinator."""
import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from ring import wait_until


@pytest.fixture(scope="module")
def session(ring):
    made = ring.connect(only=[ring[0]])
    made.execute("CREATE KEYSPACE traced WITH replication = "
                 "{'class': 'NetworkTopologyStrategy', 'datacenter1': 3}")
    made.execute("CREATE TABLE traced.t (k int PRIMARY KEY, v int)")
    made.execute("CREATE TABLE traced.c (k int PRIMARY KEY, n counter)")
    return made


def trace(session, text, until, level="ALL"):
    """The trace once until(events) is true: others' events may come after the answer."""
    future = session.execute_async(
        SimpleStatement(text, consistency_level=getattr(ConsistencyLevel, level)), trace=True)
    future.result()

    def whole():
        found = future.get_query_trace(max_wait=60)
        if found.events and until([(e.source, e.description) for e in found.events]):
            return found
        future._query_traces[0].events = None
        return None
    return wait_until(whole, f"the trace of {text}")


def told(ring, *words):
    """Did each node tell of each of the words?"""
    return lambda events: all(
        any(source == node.address and word in text for source, text in events)
        for node in ring.nodes for word in words)


def test_replicas_tell_of_a_write(ring, session):
    found = trace(session, "INSERT INTO traced.t (k, v) VALUES (1, 1)", told(ring, "Adding to t memtable"))
    events = [(event.source, event.description) for event in found.events]
    here, others = ring[0].address, [node.address for node in ring.nodes[1:]]
    assert found.coordinator == here
    assert found.parameters["consistency_level"] == "ALL"
    for other in others:
        assert any(source == here and text.startswith(f"Sending MUTATION_REQ message to /{other}:7000, size=")
                   for source, text in events)
        assert (other, f"MUTATION_REQ message received from /{here}:7000") in events
        assert (other, f"Enqueuing response to /{here}:7000") in events
        assert (here, f"MUTATION_RSP message received from /{other}:7000") in events
    elapsed = [event.source_elapsed for event in found.events if event.source == here]
    assert elapsed == sorted(elapsed)
    threads = {event.thread_name.rstrip("0123456789") for event in found.events}
    assert threads <= {"MutationStage-", "Native-Transport-", "Native-Transport-Requests-"}


def test_replicas_tell_of_reads(ring, session):
    for text, verb in (("SELECT * FROM traced.t WHERE k = 1", "READ_REQ"), ("SELECT * FROM traced.t", "RANGE_REQ")):
        found = trace(session, text, told(ring, "Read 1 live rows and 0 tombstone cells"))
        assert sum(event.description.startswith(f"{verb} message received") for event in found.events) == 2
    found = trace(session, "SELECT * FROM traced.t WHERE k IN (1, 2, 3)", told(ring, "Read 1 live rows"))
    assert sum(event.description.startswith("READ_REQ message received") for event in found.events) == 6


def test_replicas_tell_of_paxos_counters_and_batches(ring, session):
    trace(session, "UPDATE traced.t SET v = 2 WHERE k = 1 IF v = 1",
          told(ring, "Promising ballot", "Accepting proposal", "Committing proposal"), "QUORUM")
    trace(session, "UPDATE traced.c SET n = n + 1 WHERE k = 1", told(ring, "Adding to c memtable"))
    trace(session, "BEGIN BATCH INSERT INTO traced.t (k, v) VALUES (5, 1);"
          "INSERT INTO traced.t (k, v) VALUES (6, 1); APPLY BATCH",
          lambda events: told(ring, "Adding to t memtable")(events) and
          sum("Adding to batches memtable" in text for _, text in events) == 4)


def test_values_that_were_bound_are_told(session):
    prepared = session.prepare("UPDATE traced.t SET v = ? WHERE k = ?")
    future = session.execute_async(prepared, (7, 8), trace=True)
    future.result()
    told_of = future.get_query_trace(max_wait=60).parameters
    assert (told_of["bound_var_0_v"], told_of["bound_var_1_k"]) == ("7", "8")
    assert told_of["query"] == "UPDATE traced.t SET v = ? WHERE k = ?"


def test_every_node_shows_what_some_trace(ring, session):
    before = session.execute("SELECT count(*) FROM system_traces.sessions").one()[0]
    ring[0].nodetool("settraceprobability", 1)
    session.execute("INSERT INTO traced.t (k, v) VALUES (9, 9)")
    ring[0].nodetool("settraceprobability", 0)
    other = ring.connect(only=[ring[2]])
    wait_until(lambda: other.execute("SELECT count(*) FROM system_traces.sessions").one()[0] > before, "a session")
    row = next(row for row in other.execute("SELECT * FROM system_traces.sessions")
               if "(9, 9)" in row.parameters["query"])
    assert row.command == "QUERY" and row.duration is not None
    ttl = other.execute("SELECT ttl(activity) FROM system_traces.events WHERE session_id = %s LIMIT 1",
                        [row.session_id]).one()[0]
    assert 0 < ttl <= 24 * 60 * 60


def test_describe_cluster_tells_of_all_ranges(ring, session):
    session.execute("CREATE KEYSPACE two WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}")
    session.set_keyspace("two")
    row = session.execute("DESCRIBE CLUSTER").one()
    assert (row.cluster, row.partitioner, row.snitch) == ("ring", "Murmur3Partitioner", "DynamicEndpointSnitch")
    assert len(row.range_ownership) == 48
    names = [f"/{node.address}:7000" for node in ring.nodes]
    for replicas in row.range_ownership.values():
        assert len(set(replicas)) == 2 and set(replicas) <= set(names)
    described = ring[1].nodetool("describering", "two")
    for token, replicas in row.range_ownership.items():
        line = next(line for line in described.splitlines() if f"end_token:{token}, " in line)
        named = ", ".join(name[1:].split(":")[0] for name in replicas)
        assert f"endpoints:[{named}]" in line
