# SPDX-License-Identifier: Apache-2.0
"""Nodes come and go, and the data with them: every row that was acknowledged is there, before, while and after."""
import os
import re
import signal
import threading

import pytest

from ring import SLOWNESS, wait_until

ROWS = 400
DELAY = {"cassandra__ring_delay_ms": 1000 * SLOWNESS}


def fill(session, keyspace, factor, rows=ROWS, pad=0):
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = "
                    f"{{'class': 'NetworkTopologyStrategy', 'datacenter1': {factor}}}")
    session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text, pad text)")
    put(session, keyspace, range(rows), pad)


def put(session, keyspace, keys, pad=0):
    insert = session.prepare(f"INSERT INTO {keyspace}.t (k, v, pad) VALUES (?, ?, ?)")
    for answer in [session.execute_async(insert, (k, f"v{k}", "x" * pad)) for k in keys]:
        answer.result()


def missing(session, keyspace, rows=ROWS, level=None):
    """Keys whose row is not what was written, by reads of one row and by a scan."""
    from cassandra import ConsistencyLevel

    level = level or ConsistencyLevel.ONE
    select = session.prepare(f"SELECT v FROM {keyspace}.t WHERE k = ?")
    select.consistency_level = level
    answers = [(k, session.execute_async(select, (k,))) for k in range(rows)]
    gone = {k for k, answer in answers
            if [row.v for row in answer.result()] != [f"v{k}"]}
    scanned = {row.k: row.v for row in session.execute(f"SELECT k, v FROM {keyspace}.t")}
    return sorted(gone | {k for k in range(rows) if scanned.get(k) != f"v{k}"})


def host_id(node, of):
    return re.search(rf"^.. +{re.escape(of.address)} .*? ([0-9a-f-]{{36}})", node.nodetool("status"),
                     re.M).group(1)


def completed(node, peer):
    """Sessions with the peer that ended well, as the node's log tells."""
    return len(re.findall(rf"Session with {re.escape(peer.address)}:\d+ is complete", node.log()))


class Writer(threading.Thread):
    """Writes rows at QUORUM as long as it is let, each once; notes what was acknowledged."""

    def __init__(self, session, keyspace):
        from cassandra import ConsistencyLevel

        super().__init__(daemon=True)  # a test that fails does not end it
        self.session = session
        self.insert = session.prepare(f"INSERT INTO {keyspace}.t (k, v) VALUES (?, ?)")
        self.insert.consistency_level = ConsistencyLevel.QUORUM
        self.written, self.failed, self.is_over = [], [], False

    def run(self):
        key = 1000000
        while not self.is_over:
            key += 1
            try:
                self.session.execute(self.insert, (key, f"v{key}"))
                self.written.append(key)
            except Exception as failure:  # which, the test tells
                self.failed.append(failure)

    def end(self):
        self.is_over = True
        self.join()


def test_a_fourth_node_joins_and_leaves_under_writes(new_ring):
    ring = new_ring(3, **DELAY).start().wait_up()
    session = ring.connect()
    fill(session, "one", 1)
    fill(session, "three", 3)
    writers = [Writer(session, "one"), Writer(session, "three")]
    for writer in writers:
        writer.start()
    fourth = ring.add(auto_bootstrap=True).start()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
    new = ring.connect(fourth, only=[fourth])
    assert missing(new, "one") == [] and missing(new, "three") == []
    load = re.search(rf"^UN +{re.escape(fourth.address)} +([0-9.]+)", ring[0].nodetool("status"), re.M)
    assert load, "the node has data of its own"
    assert "Already" not in fourth.nodetool("netstats")
    for node in ring.nodes[:3]:
        node.nodetool("cleanup", "one")
        node.nodetool("cleanup", "three", "t")
    assert missing(new, "one") == [] and missing(new, "three") == []
    new.cluster.shutdown()

    fourth.nodetool("decommission")
    for node in ring.nodes[:3]:
        node.wait_sees(UN=ring.nodes[:3])
    assert fourth.nodetool("netstats").startswith("Mode: DECOMMISSIONED\n")
    for what, service in (("enablegossip", "gossip"), ("enablebinary", "native transport")):
        assert f"Unable to start {service} because the node is not in the normal state." in \
            fourth.nodetool(what, status=1)
    for writer in writers:
        writer.end()
        assert writer.failed == []
        assert len(writer.written) > 100
    for writer, keyspace in zip(writers, ("one", "three")):
        assert missing(session, keyspace) == []
        rows = {row.k for row in session.execute(f"SELECT k FROM {keyspace}.t")}
        assert [k for k in writer.written if k not in rows] == []
    fourth.stop()
    status, text = fourth.refuses_to_start()
    assert status != 0 and "This node was decommissioned and will not rejoin the ring" in text


def test_dead_nodes_are_replaced_and_removed(new_ring):
    from cassandra import ConsistencyLevel

    ring = new_ring(4, **DELAY).start().wait_up()
    session = ring.connect(only=ring.nodes[:2])
    fill(session, "three", 3)
    dead, others = ring[3], ring.nodes[:3]
    lost = host_id(ring[0], dead)
    dead.kill()
    ring[0].wait_sees(UN=others, DN=[dead])
    # Rows that the dead node never saw.
    put(session, "three", range(ROWS // 2))

    status, text = ring.add(auto_bootstrap=True).refuses_to_start(
        cassandra__replace_address=ring[1].address)
    assert status != 0 and "is up" in text
    ring.nodes.pop()
    fifth = ring.add(auto_bootstrap=True)
    fifth.address = f"{ring.network}.6"
    fifth.path += "b"
    os.makedirs(fifth.path)
    status, text = fifth.refuses_to_start(cassandra__replace_address=f"{ring.network}.99")
    assert status != 0 and "because it doesn't exist in gossip" in text
    fifth.options["cassandra__replace_address_first_boot"] = dead.address
    fifth.start()
    ring.nodes.pop()
    ring.nodes[3] = fifth
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
    assert host_id(ring[0], fifth) != lost
    new = ring.connect(fifth, only=[fifth])
    assert missing(new, "three") == []
    fifth.restart()  # the option means nothing any more
    ring.wait_up()

    # By another's death every row is on two nodes left, and reads at ALL find it on three again once it is removed.
    gone = ring[2]
    lost = host_id(ring[0], gone)
    gone.kill()
    left = [ring[0], ring[1], fifth]
    for node in left:
        node.wait_sees(UN=left, DN=[gone])
    assert "No token removals in process" in ring[0].nodetool("removenode", "status")
    assert "is alive and owns this ID" in ring[0].nodetool("removenode", host_id(ring[0], fifth), status=1)
    ring[0].nodetool("removenode", lost)
    for node in left:
        node.wait_sees(UN=left)
    again = ring.connect(ring[0], only=left)
    assert missing(again, "three", level=ConsistencyLevel.ALL) == []
    assert "Not enough live nodes to maintain replication factor in keyspace three (RF = 3, N = 3)" \
        in ring[0].nodetool("decommission", status=1)


def test_a_dead_node_is_replaced_under_its_own_address(new_ring):
    ring = new_ring(4, **DELAY).start().wait_up()
    session = ring.connect(only=ring.nodes[:2])
    fill(session, "two", 2)
    dead = ring[3]
    lost = host_id(ring[0], dead)
    dead.kill()
    ring[0].wait_sees(UN=ring.nodes[:3], DN=[dead])
    fresh = {"data_directory": f"{ring.path}/fresh", "auto_bootstrap": True}
    status, text = dead.refuses_to_start(**fresh)
    assert status != 0 and "already exists, cancelling join" in text
    dead.options.update(fresh, cassandra__replace_address_first_boot=dead.address)
    dead.start()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
    assert host_id(ring[0], dead) == lost
    assert missing(ring.connect(dead, only=[dead]), "two") == []


def holders(ring, keyspace, keys):
    """{key: nodes that have its row themselves}: a replica that coordinates a read at ONE asks nobody else."""
    from cassandra import ConsistencyLevel

    found = {key: set() for key in keys}
    for node in ring.nodes:
        session = ring.connect(node, only=[node])
        select = session.prepare(f"SELECT v FROM {keyspace}.t WHERE k = ?")
        select.consistency_level = ConsistencyLevel.ONE
        for key in keys:
            replicas = session.cluster.metadata.get_replicas(keyspace, select.bind((key,)).routing_key)
            if node.address in {replica.address for replica in replicas} and session.execute(select, (key,)).one():
                found[key].add(node)
        session.cluster.shutdown()
    return found


def test_writes_go_to_the_right_replicas_while_a_node_takes_its_own_address_again(new_ring):
    """The others do not give its ranges to anybody meanwhile, who would not be asked for them afterwards."""
    ring = new_ring(4, cassandra__ring_delay_ms=3000, hinted_handoff_enabled=False).start().wait_up()
    session = ring.connect(only=ring.nodes[:2])
    fill(session, "three", 3, 50)
    session.execute("ALTER TABLE three.t WITH read_repair = 'NONE' AND speculative_retry = 'NEVER'")
    dead, others = ring[3], ring.nodes[:3]
    dead.kill()
    for node in others:
        node.wait_sees(UN=others, DN=[dead])
    dead.options.update({"data_directory": f"{ring.path}/fresh", "auto_bootstrap": True},
                        cassandra__replace_address_first_boot=dead.address)
    writer = Writer(session, "three")
    writer.start()
    dead.launch()
    wait_until(lambda: "waiting for pending range calculation" in dead.log() or "JOINING" in dead.log(), "its hibernation")
    assert others[0].sees(UN=others, DN=[dead])
    dead.wait_ready()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
    writer.end()
    assert writer.failed == []
    keys = writer.written[-2000:][::10] + writer.written[:100]
    assert [key for key, nodes in holders(ring, "three", keys).items() if len(nodes) < 2] == []


@pytest.mark.long
def test_a_node_with_one_token_moves(new_ring):
    ring = new_ring(3, num_tokens=1, **DELAY)
    for i, node in enumerate(ring.nodes):
        node.options["initial_token"] = -6000000000000000000 + i * 6000000000000000000
    ring.start().wait_up()
    session = ring.connect()
    fill(session, "one", 1)
    fill(session, "two", 2)
    assert "is already owned by another node" in ring[1].nodetool("move", 6000000000000000000, status=1)
    ring[1].nodetool("move", "4000000000000000000")
    for node in ring.nodes:
        wait_until(lambda node=node: re.search(
            rf"{re.escape(ring[1].address)} .*Normal .* 4000000000000000000", node.nodetool("ring")),
            "the new token")
    assert missing(session, "one") == [] and missing(session, "two") == []
    for node in ring.nodes:
        node.nodetool("cleanup")
    assert missing(session, "one") == [] and missing(session, "two") == []
    ring[1].restart()
    ring.wait_up()
    assert missing(session, "one") == []


@pytest.mark.long
def test_a_data_center_is_added(new_ring):
    from cassandra import ConsistencyLevel

    ring = new_ring(2, endpoint_snitch="GossipingPropertyFileSnitch", dc="datacenter1", rack="r1",
                    **DELAY).start().wait_up()
    session = ring.connect(only=ring.nodes)
    fill(session, "ks", 2)
    new = [ring.add(dc="far", auto_bootstrap=False) for _ in range(2)]
    for node in new:
        node.start()
    ring.wait_up()
    session.execute("ALTER KEYSPACE ks WITH replication = "
                    "{'class': 'NetworkTopologyStrategy', 'datacenter1': 2, 'far': 2}")
    far = ring.connect(new[0], only=new)
    assert missing(far, "ks", level=ConsistencyLevel.LOCAL_ONE) != []
    new[0].nodetool("setinterdcstreamthroughput", 400)
    assert new[0].nodetool("getinterdcstreamthroughput") == \
        "Current inter-datacenter stream throughput: 400 Mb/s\n"
    for node in new:
        node.nodetool("rebuild", "datacenter1")
    assert missing(far, "ks", level=ConsistencyLevel.LOCAL_ONE) == []
    assert "is not a valid datacenter" in new[0].nodetool("rebuild", "nowhere", status=1)


@pytest.mark.long
def test_a_bootstrap_that_failed_is_resumed(new_ring):
    ring = new_ring(3, **DELAY).start().wait_up()
    session = ring.connect(only=ring.nodes[:2])
    fill(session, "one", 1, rows=2000, pad=2000)
    ring[2].nodetool("setstreamthroughput", "0.5")
    fourth = ring.add(auto_bootstrap=True, cassandra__ring_delay_ms=2000)
    fourth.launch()
    wait_until(lambda: "waiting for pending range" in fourth.log(), "the bootstrap")
    second = ring.add(auto_bootstrap=True)
    status, text = second.refuses_to_start()
    assert status != 0 and "Other bootstrapping/leaving/moving nodes detected, cannot bootstrap " \
        f"while cassandra.consistent.rangemovement is true. Nodes detected, bootstrapping: {fourth.address}:" in text
    ring.nodes.pop()
    for node in ring.nodes[:2]:
        wait_until(lambda node=node: completed(fourth, node) == 1, "the first sessions")
    ring[2].kill()
    wait_until(lambda: "Use nodetool bootstrap resume" in fourth.log(), "the failure")
    assert "UJ" in ring[0].nodetool("status")
    assert "Node is already bootstrapped" in ring[0].nodetool("bootstrap", "resume", status=1)
    assert "is down" in fourth.nodetool("bootstrap", "resume", status=2)
    ring[2].start()
    wait_until(lambda: fourth.sees(UN=ring.nodes[:3], UJ=[fourth]), "all are up")
    fourth.nodetool("bootstrap", "resume")
    fourth.wait_ready()
    ring.wait_up()
    # What had come from the first two did not come again.
    assert [completed(fourth, node) for node in ring.nodes[:3]] == [1, 1, 1]
    new = ring.connect(fourth, only=[fourth])
    assert list(new.execute("SELECT * FROM system.available_ranges_v2")) == []
    assert missing(new, "one", rows=2000) == []


@pytest.mark.long
def test_a_join_that_was_killed_goes_on_while_the_ring_knows_it(new_ring):
    ring = new_ring(3, cassandra__ring_delay_ms=10000).start().wait_up()
    session = ring.connect(only=ring.nodes[:3])
    fill(session, "one", 1, rows=2000, pad=2000)
    ring[2].nodetool("setstreamthroughput", "0.1")
    fourth = ring.add(auto_bootstrap=True)
    fourth.launch()
    for node in ring.nodes[:2]:
        wait_until(lambda node=node: completed(fourth, node) == 1, "the first sessions")
    # Writes that the joining node has to have wait for it: none is acknowledged while it is away.
    writer = Writer(session, "one")
    writer.start()
    fourth.kill()
    wait_until(lambda: writer.failed or len(writer.written) > 500, "writes")
    ring[2].nodetool("setstreamthroughput", "0")
    fourth.start()
    ring.wait_up()
    writer.end()
    rows = {row.k for row in session.execute("SELECT k FROM one.t")}
    assert [k for k in writer.written if k not in rows] == []
    assert "Detected previous bootstrap failure" in fourth.log()
    assert [completed(fourth, node) for node in ring.nodes[:3]] == [1, 1, 1]
    assert missing(ring.connect(fourth, only=[fourth]), "one", rows=2000) == []


@pytest.mark.long
def test_a_decommission_that_failed_is_gone_on_with(new_ring):
    ring = new_ring(4, **DELAY).start().wait_up()
    session = ring.connect(only=ring.nodes[:2])
    fill(session, "one", 1, rows=2000, pad=2000)
    leaver = ring[3]
    ring[2].kill()
    for node in ring.nodes[:2] + [leaver]:
        node.wait_sees(UN=ring.nodes[:2] + [leaver], DN=[ring[2]])
    leaver.nodetool("setstreamthroughput", "0.05")  # what is written over and over is small on the disk
    nodetool = threading.Thread(target=leaver.nodetool, args=("decommission",), kwargs={"status": 2})
    nodetool.start()
    wait_until(lambda: re.search(r"^Unbootstrap [0-9a-f-]{36}\n(.*\n)*        Sending [1-9]\d* files, \d+ bytes total. "
                                 r"Already sent", leaver.nodetool("netstats"), re.M), "a stream")
    assert leaver.nodetool("netstats").startswith("Mode: LEAVING\n")
    assert "Node is still decommissioning" in leaver.nodetool("decommission", status=1)
    assert f"{leaver.address}:7000 is leaving" in ring[0].nodetool("decommission", status=1)
    status, text = ring.add(auto_bootstrap=True).refuses_to_start()
    assert status != 0 and f"leaving: {leaver.address}:7000" in text
    ring.nodes.pop()
    leaver.nodetool("setstreamthroughput", "0")
    nodetool.join()
    assert leaver.nodetool("netstats").startswith("Mode: LEAVING\nNot sending any streams.\n")
    assert [completed(leaver, node) for node in ring.nodes[:3]] == [1, 1, 0]
    assert ring[0].sees(UN=ring.nodes[:2], UL=[leaver], DN=[ring[2]])
    ring[2].start()
    wait_until(lambda: leaver.sees(UN=ring.nodes[:3], UL=[leaver]), "all are up")
    leaver.nodetool("decommission")
    for node in ring.nodes[:3]:
        node.wait_sees(UN=ring.nodes[:3])
    assert [completed(leaver, node) for node in ring.nodes[:3]] == [1, 1, 1]
    assert missing(session, "one", rows=2000) == []


@pytest.mark.long
def test_a_rebuild_that_broke_off_goes_on(new_ring):
    ring = new_ring(3, endpoint_snitch="GossipingPropertyFileSnitch", dc="datacenter1", rack="r1",
                    **DELAY).start().wait_up()
    session = ring.connect(only=ring.nodes)
    fill(session, "ks", 1, rows=1500, pad=2000)
    far = ring.add(dc="far", auto_bootstrap=False).start()
    ring.wait_up()
    session.execute("ALTER KEYSPACE ks WITH replication = "
                    "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1, 'far': 1}")
    ring[2].nodetool("setinterdcstreamthroughput", "0.2")
    nodetool = threading.Thread(target=far.nodetool, args=("rebuild", "datacenter1"), kwargs={"status": 2})
    nodetool.start()
    for node in ring.nodes[:2]:
        wait_until(lambda node=node: completed(far, node) == 1, "the first sessions")
    assert "Node is still rebuilding" in far.nodetool("rebuild", "datacenter1", status=1)
    ring[2].kill()
    nodetool.join()
    ring[2].start()
    ring.wait_up()
    far.restart()
    ring.wait_up()
    far.nodetool("rebuild", "datacenter1")
    assert [completed(far, node) for node in ring.nodes[:3]] == [1, 1, 1]
    there = ring.connect(far, only=[far])
    from cassandra import ConsistencyLevel
    assert missing(there, "ks", rows=1500, level=ConsistencyLevel.LOCAL_ONE) == []
    # It has ended: the next one is a whole one.
    far.nodetool("rebuild", "datacenter1")
    assert [completed(far, node) for node in ring.nodes[:3]] == [2, 2, 2]
    # What came for a keyspace that was dropped counts for none of its name.
    moved = lambda: [row.keyspace_name for row in there.execute("SELECT * FROM system.available_ranges_v2")]
    assert moved() == []
    ring[2].nodetool("setinterdcstreamthroughput", "0.2")
    nodetool = threading.Thread(target=far.nodetool, args=("rebuild", "datacenter1"), kwargs={"status": 2})
    nodetool.start()
    for node in ring.nodes[:2]:
        wait_until(lambda node=node: completed(far, node) == 3, "the first sessions")
    ring[2].kill()
    nodetool.join()
    assert "ks" in moved()
    session.execute("DROP KEYSPACE ks")
    wait_until(lambda: "ks" not in moved(), "they are forgotten")


@pytest.mark.long
def test_a_join_that_was_stopped_begins_anew(new_ring):
    ring = new_ring(3, **DELAY).start().wait_up()
    session = ring.connect(only=ring.nodes[:3])
    fill(session, "one", 1, rows=2000, pad=2000)
    for node in ring.nodes:
        node.nodetool("setstreamthroughput", "0.1")
    fourth = ring.add(auto_bootstrap=True)
    fourth.launch()
    wait_until(lambda: "Starting to bootstrap" in fourth.log(), "the bootstrap")
    wait_until(lambda: re.search(
        r"^Bootstrap [0-9a-f-]{36}\n    /127.*\n        Receiving \d+ files, \d+ bytes total. "
        r"Already received \d+ files \(", fourth.nodetool("netstats"), re.M), "a stream")
    assert fourth.end(signal.SIGTERM) not in (None, -signal.SIGKILL)
    assert "the node is stopping" in fourth.log()
    fourth.launch()
    wait_until(lambda: fourth.log().count("Starting to bootstrap") == 2, "the bootstrap")
    fourth.kill()
    for node in ring.nodes[:3]:
        node.nodetool("setstreamthroughput", "0")
    assert missing(session, "one", rows=2000) == []
    fourth.start()
    ring.wait_up()
    assert missing(ring.connect(fourth, only=[fourth]), "one", rows=2000) == []
