# SPDX-License-Identifier: Apache-2.0
"""A ring of two data centers for the drivers: three nodes in dc1, two in dc2."""
import os
import subprocess
import sys

from harness import ROOT, WORK

sys.path.insert(0, os.path.join(ROOT, "tests", "cluster"))
# pylint: disable=wrong-import-position,import-error
import ring as rings

DATACENTERS = ["dc1", "dc1", "dc1", "dc2", "dc2"]


class RingServer:
    """What converse() asks of a server, of five nodes. Programs name a node by its number, from 1."""

    def __init__(self, name):
        self.ring = rings.Ring(len(DATACENTERS), path=os.path.join(WORK, name), seeds=2,
                               endpoint_snitch="GossipingPropertyFileSnitch",
                               cassandra__ring_delay_ms=2000)
        for at, node in enumerate(self.ring.nodes):
            node.options = {"dc": DATACENTERS[at], "rack": f"r{at % 3 + 1}"}
        # Nodes that a program took out of the ring.
        self.gone = set()

    def start(self):
        self.ring.start().wait_up()
        return self

    def stop(self):
        self.ring.end()

    def environment(self):
        return {"HOST": self.ring[0].address, "PORT": str(rings.NATIVE_PORT),
                "NODES": ",".join(node.address for node in self.ring.nodes),
                "NODETOOL": rings.NODETOOL}

    def members(self):
        return [node for node in self.ring.nodes if node.number not in self.gone]

    def is_running(self):
        return all(node.process is not None and node.process.poll() is None for node in self.members())

    def tail(self):
        return "\n".join(f"{node}: {node.log()[-500:]}" for node in self.members()
                         if node.process is None or node.process.poll() is not None)

    def wait_up(self):
        """Until those that run see that they do."""
        running = [node for node in self.members() if node.process is not None]
        for one in running:
            rings.wait_until(lambda one=one: all(one.status().get(node.address) == "UN"
                                                 for node in running), f"{one} sees the others up")

    def do(self, what):
        word, *words = what.split()
        if word == "add":
            node = self.ring.add(dc=words[0], rack="r1", auto_bootstrap=True)
            node.start()
            self.wait_up()
            return
        node = self.ring[int(words[0]) - 1]
        if word in ("kill", "stop"):
            getattr(node, word)()
            for other in self.members():
                if other.process is not None:
                    rings.wait_until(lambda other=other: other.status()[node.address] == "DN",
                                     f"{other} sees {node} down")
        elif word == "start":
            node.start()
            self.wait_up()
        elif word == "restart":
            node.restart()
            self.wait_up()
        elif word == "pause":
            node.pause()
        elif word == "resume":
            node.resume()
        elif word == "decommission":
            node.nodetool("decommission")
            self.gone.add(node.number)
            node.kill()
            self.wait_up()
        elif word == "nodetool":
            node.nodetool(*words[1:])
        else:
            raise ValueError(what)


def stress(checks, command, server):
    """helenus-stress finds the ring by one node, and also by a list of them."""
    nodes = ",".join(node.address for node in server.ring.nodes[:3])
    replication = "-schema replication(strategy=NetworkTopologyStrategy,dc1=3,dc2=2)"

    def run(line):
        done = subprocess.run(command + line.split() + ["-node", nodes], capture_output=True, text=True,
                              errors="replace", timeout=900, check=False, cwd=WORK)
        assert done.returncode == 0, f"status {done.returncode}: {done.stdout[-1500:]}{done.stderr[-500:]}"
        assert "Total errors              :          0" in done.stdout, done.stdout[-1500:]

    name = os.path.basename(command[0])
    for line in (f"write n=20000 cl=LOCAL_QUORUM {replication} -rate threads=50",
                 "read n=20000 cl=LOCAL_QUORUM -rate threads=50",
                 "mixed ratio(read=1,write=1) n=20000 cl=LOCAL_QUORUM -rate threads=50",
                 "counter_write n=5000 cl=LOCAL_QUORUM no-warmup -rate threads=20",
                 "counter_read n=5000 cl=LOCAL_QUORUM no-warmup -rate threads=20"):
        checks.check("ring", f"{name} {line.split(' -')[0]}", run, line)
