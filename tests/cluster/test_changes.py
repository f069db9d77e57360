# SPDX-License-Identifier: Apache-2.0
"""The ring changes while clients write and read at QUORUM and count, and nodes are killed in the middle of it: nothing that
was acknowledged is lost, and no read goes back in time."""
import os
import threading

import pytest

from load import Counting, Load, connect
from ring import SLOWNESS, wait_until

pytestmark = pytest.mark.long
DELAY = {"cassandra__ring_delay_ms": 2000 * SLOWNESS}
THREE = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"


def prepare(session, blobs=300):
    """Tables for load and counting, and one of data that takes a while to move."""
    session.execute(f"CREATE KEYSPACE ks WITH replication = {THREE}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE ks.c (k int PRIMARY KEY, n counter)")
    session.execute("CREATE TABLE ks.blobs (k int PRIMARY KEY, v blob)")
    insert = session.prepare("INSERT INTO ks.blobs (k, v) VALUES (?, ?)")
    for answer in [session.execute_async(insert, (k, os.urandom(4000))) for k in range(blobs)]:
        answer.result()


def throttle(nodes, megabits):
    for node in nodes:
        node.nodetool("setstreamthroughput", megabits)


class Background(threading.Thread):
    """A nodetool command that is waited for later, and must end as it was said."""

    def __init__(self, node, *words, status=0):
        super().__init__()
        self.node, self.words, self.status = node, words, status
        self.failure = None
        self.start()

    def run(self):
        try:
            self.node.nodetool(*self.words, status=self.status)
        except Exception as failure:  # told by end()
            self.failure = failure

    def end(self):
        self.join()
        assert self.failure is None, self.failure


def is_streaming(node):
    return lambda: "bytes total. Already" in node.nodetool("netstats")


@pytest.fixture
def loaded(new_ring):
    """A function: a ring of `count` nodes, the sessions of its first three, the load and the counting that run."""
    running = []

    def make(count, **options):
        ring = new_ring(count, **DELAY, **options).start().wait_up()
        sessions = connect(ring, ring.nodes[:3])
        prepare(sessions[ring[0]])
        running.extend([Load(sessions, "ks.t"), Counting(sessions, "ks.c", threads=2)])
        for each in running:
            each.__enter__()
            each.go_on()
        return ring, sessions, *running

    yield make
    for each in running:
        each.__exit__()


def end(load, counting, sessions):
    load.go_on()
    counting.go_on()
    load.__exit__()
    counting.__exit__()
    load.check(sessions)
    counting.check()


def all_see(nodes, **codes):
    for node in nodes:
        node.wait_sees(**codes)


def test_a_source_dies_while_a_node_joins(loaded):
    ring, sessions, load, counting = loaded(3)
    throttle(ring.nodes, 0.5)
    fourth = ring.add(auto_bootstrap=True)
    fourth.launch()
    wait_until(lambda: "Starting to bootstrap" in fourth.log(), "the bootstrap")
    wait_until(is_streaming(fourth), "a stream")
    ring[1].kill()
    wait_until(lambda: "Use nodetool bootstrap resume" in fourth.log(), "the failure")
    load.go_on()
    ring[1].start()
    throttle([ring[1]], 0)
    throttle([ring[0], ring[2]], 0)
    all_see(ring.nodes, UN=ring.nodes[:3], UJ=[fourth])
    fourth.nodetool("bootstrap", "resume")
    fourth.wait_ready()
    ring.wait_up()
    end(load, counting, {**sessions, **connect(ring, [fourth])})


def test_a_node_that_dies_while_it_joins_leaves_nothing(loaded):
    ring, sessions, load, counting = loaded(3)
    throttle(ring.nodes, 0.5)
    fourth = ring.add(auto_bootstrap=True)
    fourth.launch()
    wait_until(lambda: "Starting to bootstrap" in fourth.log(), "the bootstrap")
    wait_until(is_streaming(fourth), "a stream")
    fourth.kill()
    throttle(ring.nodes[:3], 0)
    all_see(ring.nodes[:3], UN=ring.nodes[:3])
    for node in ring.nodes[:3]:
        wait_until(lambda node=node: fourth.address not in node.nodetool("gossipinfo"), "it is forgotten")
        assert node.nodetool("netstats").startswith("Mode: NORMAL\nNot sending any streams.\n")
    # No write waits for it any more.
    errors = len(load.errors)
    load.go_on(200)
    assert len(load.errors) == errors
    fourth.start(data_directory=f"{ring.path}/fresh")
    ring.wait_up()
    end(load, counting, {**sessions, **connect(ring, [fourth])})


def test_a_dead_node_is_replaced_under_load(loaded):
    ring, sessions, load, counting = loaded(4)
    dead = ring[3]
    dead.kill()
    all_see(ring.nodes[:3], UN=ring.nodes[:3], DN=[dead])
    load.go_on()
    throttle(ring.nodes[:3], 0.5)
    fifth = ring.add(auto_bootstrap=True, cassandra__replace_address_first_boot=dead.address)
    fifth.launch()
    wait_until(lambda: "Starting to bootstrap" in fifth.log(), "the bootstrap")
    wait_until(is_streaming(fifth), "a stream")
    fifth.kill()
    load.go_on()
    throttle(ring.nodes[:3], 0)
    fifth.start()
    ring.nodes.remove(dead)
    ring.wait_up()
    status, text = dead.refuses_to_start()
    assert status == 2 and "this node was replaced while it was away" in text
    end(load, counting, {**sessions, **connect(ring, [fifth])})
    assert dead.address not in ring[0].nodetool("status")


def test_a_node_leaves_while_others_die(loaded):
    ring, sessions, load, counting = loaded(5)
    leaver, victim = ring[4], ring[3]
    throttle([leaver], 0.5)
    # What is kept for one that is away goes to somebody else.
    victim.kill()
    all_see(ring.nodes[:3] + [leaver], UN=ring.nodes[:3] + [leaver], DN=[victim])
    load.go_on()
    victim.start()
    ring.wait_up()
    decommission = Background(leaver, "decommission", status=2)
    wait_until(is_streaming(leaver), "a stream")
    load.go_on()
    victim.kill()
    decommission.end()
    victim.start()
    all_see(ring.nodes, UN=ring.nodes[:4], UL=[leaver])
    throttle([leaver], 0)
    leaver.nodetool("decommission")
    all_see(ring.nodes[:4], UN=ring.nodes[:4])
    for node in ring.nodes[:4]:
        node.nodetool("cleanup")
    end(load, counting, {**sessions, **connect(ring, [victim])})


def test_a_dead_node_is_removed_while_its_remover_dies(loaded):
    ring, sessions, load, counting = loaded(5)
    dead, remover = ring[4], ring[3]
    host_id = next(line.split()[-2] for line in ring[0].nodetool("status").splitlines() if dead.address in line)
    dead.kill()
    all_see(ring.nodes[:4], UN=ring.nodes[:4], DN=[dead])
    throttle(ring.nodes[:4], 0.5)
    removal = Background(remover, "removenode", host_id, status=2)
    ring[0].wait_sees(UN=ring.nodes[:4], DL=[dead])
    wait_until(lambda: any(is_streaming(node)() for node in ring.nodes[:4]), "a stream")
    remover.kill()
    removal.end()
    load.go_on()
    remover.start()
    all_see(ring.nodes[:4], UN=ring.nodes[:4], DL=[dead])
    throttle(ring.nodes[:4], 0)
    ring[0].nodetool("removenode", host_id)
    all_see(ring.nodes[:4], UN=ring.nodes[:4])
    status, text = dead.refuses_to_start()
    assert status == 2 and "This node was removed from the ring while it was away" in text
    dead.start(auto_bootstrap=True, cassandra__override_decommission=True)
    ring.wait_up()
    end(load, counting, {**sessions, **connect(ring, [remover])})
