# SPDX-License-Identifier: Apache-2.0
"""A ring of two data centers for the drivers: three nodes in dc1, two in dc2; cqlsh and stress on it."""
import csv
import os
import re
import subprocess
import sys

from harness import HERE, ROOT, WORK
from part_cqlsh import Shell, has, lacks

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
                "NODES": ",".join(node.address for node in self.members()),
                # The number of a node that is added.
                "NEXT": str(len(self.ring.nodes) + 1),
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


# ---- cqlsh ----

KEYSPACE = "CREATE KEYSPACE shell WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': '3', 'dc2': '2'}"


def describe(shells, server):
    """Each node describes the same; a table made by way of one is there on all."""
    lacks(shells[0](f"{KEYSPACE};\nCREATE TABLE shell.t (k int PRIMARY KEY, v text);"), "Error", "Exception")
    texts = {shell("DESCRIBE KEYSPACE shell;") for shell in shells}
    assert len(texts) == 1, texts
    has(texts.pop(), KEYSPACE, "CREATE TABLE shell.t (")
    for shell in shells:
        output = shell("USE shell;\nDESCRIBE CLUSTER;")
        has(output, "Cluster: ring", "Partitioner: Murmur3Partitioner", "Snitch: DynamicEndpointSnitch",
            "Range ownership:")
        ranges = re.findall(r"^ +(-?\d+) +\[([^]]*)\]$", output, re.M)
        assert len(ranges) == 5 * 16, output[-500:]
        for _, owners in ranges:
            assert len(owners.split(",")) == 5, owners
        for node in server.members():
            has(output, node.address)


def tracing(shells, server):
    """The replicas' part of a trace, and the session by way of another node."""
    addresses = {node.address for node in server.members()}
    output = shells[0]("CONSISTENCY ALL;\nTRACING ON;\nINSERT INTO shell.t (k, v) VALUES (1, 'x');\n"
                       "SELECT * FROM shell.t WHERE k = 1;\nTRACING OFF;")
    lacks(output, "Error", "Exception")
    sessions = re.findall(r"Tracing session: ([0-9a-f-]{36})", output)
    assert len(sessions) == 2, output
    for session in sessions:
        def told(session=session):
            text = shells[3](f"CONSISTENCY ALL;\nSHOW SESSION {session};")
            return addresses <= set(re.findall(r"127\.\d+\.\d+\.\d+", text)) and "Request complete" in text
        rings.wait_until(told, "events of all five nodes")


def levels(shells, _server):
    for level in ("ANY", "ONE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE"):
        has(shells[1](f"CONSISTENCY {level};\nINSERT INTO shell.t (k, v) VALUES (2, '{level}');"),
            f"Consistency level set to {level}.")
        has(shells[2]("CONSISTENCY ALL;\nSELECT v FROM shell.t WHERE k = 2;"), f" {level}\n")
    has(shells[4]("SERIAL CONSISTENCY LOCAL_SERIAL;\nCONSISTENCY LOCAL_QUORUM;\n"
                  "UPDATE shell.t SET v = 'lwt' WHERE k = 2 IF v = 'LOCAL_ONE';"), "[applied]", "True")


def copy(shells, _server):
    """In by way of one node, out by way of one in the other data center."""
    path = os.path.join(WORK, "ring.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{at},value {at}\n" for at in range(5000))
    has(shells[1](f"CONSISTENCY QUORUM;\nCOPY shell.t (k, v) FROM '{path}' WITH NUMPROCESSES = 2;"),
        "5000 rows imported from 1 files")
    has(shells[4](f"CONSISTENCY QUORUM;\nCOPY shell.t (k, v) TO '{path}.out' WITH NUMPROCESSES = 2 AND "
                  "PAGESIZE = 333;"), "5000 rows exported to 1 files")
    with open(path + ".out", newline="", encoding="utf-8") as file:
        assert {(int(k), v) for k, v in csv.reader(file)} == {(at, f"value {at}") for at in range(5000)}
    has(shells[3]("CONSISTENCY QUORUM;\nPAGING 100;\nSELECT count(*) FROM shell.t;"), "5000")
    lacks(shells[2]("TRUNCATE shell.t;"), "Error")
    has(shells[0]("CONSISTENCY ALL;\nSELECT count(*) FROM shell.t;"), " 0\n")


def cqlsh(checks, venv, server):
    shells = [Shell(venv, node.address, rings.NATIVE_PORT) for node in server.members()]
    for name, function in (("DESCRIBE on each node", describe), ("TRACING", tracing), ("CONSISTENCY", levels),
                           ("COPY, paging and TRUNCATE", copy)):
        checks.check("ring cqlsh", name, function, shells, server)


# ---- Stress ----


def stress(checks, command, server):
    """The command lines of cassandra-stress, which finds the ring by a list of nodes."""
    nodes = ",".join(node.address for node in server.ring.nodes[:3])
    replication = "-schema replication(strategy=NetworkTopologyStrategy,dc1=3,dc2=2)"

    def run(line):
        done = subprocess.run(command + line.split() + ["-node", nodes], capture_output=True, text=True,
                              errors="replace", timeout=900, check=False, cwd=WORK)
        assert done.returncode == 0, f"status {done.returncode}: {done.stdout[-1500:]}{done.stderr[-500:]}"
        assert "Total errors              :          0" in done.stdout, done.stdout[-1500:]

    name = os.path.basename(command[0])
    profile = os.path.join(HERE, "stress.yaml")
    for line in (f"write n=20000 cl=LOCAL_QUORUM {replication} -rate threads=50",
                 "read n=20000 cl=LOCAL_QUORUM -rate threads=50",
                 "mixed ratio(read=1,write=1) n=20000 cl=LOCAL_QUORUM -rate threads=50",
                 "counter_write n=5000 cl=LOCAL_QUORUM no-warmup -rate threads=20",
                 "counter_read n=5000 cl=LOCAL_QUORUM no-warmup -rate threads=20",
                 f"user profile={profile} ops(insert=1,one=1) n=5000 cl=ONE no-warmup -rate threads=20"):
        checks.check("ring", f"{name} {line.split(' -')[0].replace(profile, 'stress.yaml')}", run, line)
