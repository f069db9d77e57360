# SPDX-License-Identifier: Apache-2.0
"""Nodes find each other, tell clients who is there, and notice who goes."""
import re
import time

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from ring import NATIVE_PORT, STORAGE_PORT, wait_until


class Listener:
    """What the server told a driver of the other nodes: (change, address)."""

    def __init__(self, session):
        self.heard = []
        connection = session.cluster.control_connection._connection
        connection.register_watchers({"STATUS_CHANGE": self.hear, "TOPOLOGY_CHANGE": self.hear})

    def hear(self, event):
        self.heard.append((event["change_type"], event["address"][0]))


def peers_of(session):
    """system.peers_v2 of the one node of a session, by address."""
    return {row.peer: row for row in session.execute("SELECT * FROM system.peers_v2")}


def test_three_nodes_are_one_ring(ring):
    for node in ring.nodes:
        assert node.sees(UN=ring.nodes)
        assert len(re.findall(r"Up     Normal", node.nodetool("ring"))) == 3 * 16
    text = ring[1].nodetool("describecluster")
    assert re.search(r"Live: 3\n\tJoining: 0\n\tMoving: 0\n\tLeaving: 0\n\tUnreachable: 0", text)
    assert "\tdatacenter1 #Nodes: 3 #Down: 0\n" in text
    versions = re.findall(r"^\t\t[0-9a-f-]{36}: \[(.*)\]$", text, re.M)
    assert len(versions) == 1 and sorted(versions[0].split(", ")) == [n.address for n in ring.nodes]
    assert len(re.findall(r"^/127\.\d+\.\d+\.\d+$", ring[2].nodetool("gossipinfo"), re.M)) == 3
    assert len(ring[0].nodetool("failuredetector").splitlines()) == 3


def test_each_node_tells_drivers_of_the_others(ring):
    session = ring.connect()
    assert sorted(h.address for h in session.cluster.metadata.all_hosts()) == \
        [n.address for n in ring.nodes]
    assert len(session.cluster.metadata.token_map.ring) == 3 * 16
    sessions = {node.address: ring.connect(only=[node]) for node in ring.nodes}
    local = {address: each.execute("SELECT * FROM system.local").one()
             for address, each in sessions.items()}
    for row in local.values():
        assert row.bootstrapped == "COMPLETED" and len(row.tokens) == 16
    for each in sessions.values():
        wait_until(lambda: sum(row.schema_version is not None for row in peers_of(each).values()) == 2,
                   "rows of two peers")
        for address, row in peers_of(each).items():
            there = local[address]
            assert row.peer_port == STORAGE_PORT and row.host_id == there.host_id
            assert (row.data_center, row.rack) == (there.data_center, there.rack)
            assert (row.native_address, row.native_port) == (there.rpc_address, NATIVE_PORT)
            assert (row.preferred_ip, row.preferred_port) == (there.listen_address, STORAGE_PORT)
            assert row.release_version == there.release_version
            assert row.tokens == there.tokens and row.schema_version == there.schema_version
    session = sessions[ring[0].address]
    rows = session.execute("SELECT * FROM system.peers")
    assert {row.rpc_address for row in rows} == {ring[1].address, ring[2].address}
    rows = list(session.execute("SELECT * FROM system_views.gossip_info"))
    assert sorted(row.address for row in rows) == [n.address for n in ring.nodes]
    assert all(row.rpc_ready == "true" and row.status_with_port.startswith("NORMAL,")
               for row in rows)
    rows = list(session.execute("SELECT * FROM system_views.internode_outbound"))
    assert {row.address for row in rows} == {ring[1].address, ring[2].address}
    assert all(row.sent_count > 0 for row in rows)


def test_a_stopped_node_is_told_at_once_and_comes_back(ring):
    session = ring.connect(ring[0], only=[ring[0]])
    listener = Listener(session)
    ring[2].stop()
    wait_until(lambda: ring[0].sees(UN=ring.nodes[:2], DN=[ring[2]]), "DN")
    # It said so itself: nobody had to wait until it was missed.
    assert "shutdown,true" in ring[0].nodetool("gossipinfo")
    wait_until(lambda: ("DOWN", ring[2].address) in listener.heard, "the driver's event")
    ring[2].start()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
    wait_until(lambda: ("UP", ring[2].address) in listener.heard, "the driver's event")
    assert ("REMOVED_NODE", ring[2].address) not in listener.heard


def test_a_killed_node_is_missed_and_comes_back(ring):
    session = ring.connect(ring[0], only=[ring[0]])
    listener = Listener(session)
    ids = re.findall(r"[0-9a-f-]{36}", ring[0].nodetool("status"))
    ring[1].kill()
    for node in (ring[0], ring[2]):
        node.wait_sees(UN=[ring[0], ring[2]], DN=[ring[1]])
    wait_until(lambda: ("DOWN", ring[1].address) in listener.heard, "the driver's event")
    ring[1].start()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
    wait_until(lambda: ("UP", ring[1].address) in listener.heard, "the driver's event")
    assert sorted(re.findall(r"[0-9a-f-]{36}", ring[0].nodetool("status"))) == sorted(ids)


def test_a_node_that_came_back_knows_its_replicas_when_it_takes_clients(ring):
    """The others still believe in its life before when it comes back; what they answer to the new one is not lost."""
    session = ring.connect(ring[0])
    session.execute("CREATE KEYSPACE back WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE back.t (a int PRIMARY KEY)")
    for i in range(4):
        ring[2].kill()
        time.sleep(1.5)
        ring[2].start()
        client = ring.connect(ring[2], only=[ring[2]])
        client.execute(SimpleStatement(f"INSERT INTO back.t (a) VALUES ({i})", consistency_level=ConsistencyLevel.ALL))
        client.cluster.shutdown()
        life = ring[2].log().rsplit("Using saved tokens", 1)[1].split("Startup complete")[0]
        assert life.count("is now UP") == 2, life


def test_seeds_are_read_again(ring):
    told = f"excluding the current node's IP: /{ring[0].address}:{STORAGE_PORT}\n"
    assert ring[1].nodetool("getseeds") == f"Current list of seed node IPs, {told}"
    assert ring[1].nodetool("reloadseeds") == f"Updated seed node IP list, {told}"
    assert ring[0].nodetool("reloadseeds") == "Seed node list does not contain any remote node IPs\n"


def test_gossip_off_and_on(ring):
    ring[1].nodetool("disablegossip")
    assert ring[1].nodetool("statusgossip") == "not running\n"
    ring[0].wait_sees(UN=[ring[0], ring[2]], DN=[ring[1]])
    ring[1].nodetool("enablegossip")
    assert ring[1].nodetool("statusgossip") == "running\n"
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)


def test_what_does_not_belong_together_is_refused(ring):
    ring[2].stop()
    status, text = ring[2].refuses_to_start(cluster_name="other")
    assert status == 100 and "Saved cluster name ring != configured name other" in text
    status, text = ring[2].refuses_to_start(dc="elsewhere")
    assert status == 100 and ("Cannot start node if snitch's data center (elsewhere) differs from "
                              "previous data center (datacenter1)") in text
    status, text = ring[2].refuses_to_start(rack="r9")
    assert status == 100 and "snitch's rack (r9) differs from previous rack (rack1)" in text
    status, text = ring[2].refuses_to_start(num_tokens=4)
    assert status == 2 and "Cannot change the number of tokens from 16 to 4" in text
    ring[2].start()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)


@pytest.mark.long
def test_a_ring_that_was_off_is_the_same_ring(new_ring):
    ring = new_ring(3).start().wait_up()
    before = sorted(re.findall(r"^(?:UN|DN).*$", ring[0].nodetool("status"), re.M))
    tokens = re.findall(r"-?\d{12,}", ring[0].nodetool("ring"))
    for node in ring.nodes:
        node.stop()
    # The seed is the last: saved peers are asked.
    ring[1].launch()
    ring[2].launch()
    ring[1].wait_ready()
    ring[2].wait_ready()
    ring[1].wait_sees(UN=ring.nodes[1:], DN=[ring[0]])
    ring[0].start()
    ring.wait_up()
    ids = lambda lines: [re.search(r"[0-9a-f-]{36}", line).group() for line in lines]
    after = sorted(re.findall(r"^(?:UN|DN).*$", ring[0].nodetool("status"), re.M))
    assert ids(before) == ids(after)
    assert tokens == re.findall(r"-?\d{12,}", ring[0].nodetool("ring"))


@pytest.mark.long
def test_a_node_may_change_its_address(new_ring):
    ring = new_ring(3).start().wait_up()
    old = ring[2].address
    session = ring.connect(ring[0], only=[ring[0]])
    listener = Listener(session)
    ring[2].stop()
    ring[2].address = f"{ring.network}.9"
    ring[2].start()
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)
    wait_until(lambda: set(peers_of(session)) == {ring[1].address, ring[2].address},
               "the row of the old address goes")
    wait_until(lambda: ("NEW_NODE", ring[2].address) in listener.heard, "the driver's event")
    ring[0].restart()
    ring[0].wait_sees(UN=ring.nodes)
    assert old not in ring[0].nodetool("status")


@pytest.mark.long
def test_another_node_may_not_take_an_address(new_ring):
    ring = new_ring(3).start().wait_up()
    ring[2].kill()
    ring[0].wait_sees(UN=ring.nodes[:2], DN=[ring[2]])
    status, text = ring[2].refuses_to_start(data_directory=f"{ring.path}/fresh")
    assert status == 2
    assert f"A node with address {ring[2].address}:{STORAGE_PORT} already exists, " \
        "cancelling join" in text
    ring[2].start()
    ring.wait_up()


@pytest.mark.long
def test_a_node_outside_the_ring_joins_when_told(new_ring):
    ring = new_ring(2).start().wait_up()
    outside = ring.add(cassandra__join_ring=False).start()
    assert outside.sees(UN=ring.nodes[:2])
    outside.nodetool("join")
    ring.wait_up()
    outside.nodetool("join", status=1)


@pytest.mark.long
def test_a_node_that_nobody_answers_does_not_start(new_ring):
    ring = new_ring(2)
    status, text = ring[1].refuses_to_start(cassandra__ring_delay_ms=1000)
    assert status != 0 and "Unable to gossip with any peers" in text


@pytest.mark.long
def test_six_nodes_in_two_data_centers(new_ring):
    ring = new_ring(6, endpoint_snitch="GossipingPropertyFileSnitch", seeds=2)
    for i, node in enumerate(ring.nodes):
        node.options = {"dc": f"dc{i % 2 + 1}", "rack": f"r{i // 2 + 1}"}
    ring.start().wait_up()
    text = ring[3].nodetool("status")
    assert re.findall(r"^Datacenter: (.*)$", text, re.M) == ["dc1", "dc2"]
    assert sorted(re.findall(r"^UN .* (r\d) *$", text, re.M)) == ["r1", "r1", "r2", "r2", "r3", "r3"]
    session = ring.connect()
    assert sorted(h.datacenter for h in session.cluster.metadata.all_hosts()) == \
        ["dc1"] * 3 + ["dc2"] * 3
