# SPDX-License-Identifier: Apache-2.0
"""Conditional statements and serial reads against rings whose nodes fail: each history is written as JSON and checked for
linearizability by porcupine (linearizability/)."""
import json
import os
import random
import shutil
import subprocess
import threading
import time

import pytest
from cassandra import ConsistencyLevel as CL
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import SimpleStatement

import network
from load import CLIENT_TIMEOUT, Clients, connect, is_fault, was_refused
from ring import BUILD, wait_until

pytestmark = pytest.mark.long
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "linearizability")
WHY_NOT = network.why_not()
needs_wires = pytest.mark.skipif(WHY_NOT is not None, reason=f"{WHY_NOT}")
KEYS = 4


@pytest.fixture(scope="module")
def checker():
    """The program that checks; a test without it is skipped, and says what is missing."""
    program = os.path.join(BUILD, "cluster", "linearizability")
    if shutil.which("go") is None:
        pytest.skip("there is no Go to build porcupine with")
    done = subprocess.run(["go", "build", "-o", program, "."], cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode != 0 and "github.com/anishathalye/porcupine" in done.stderr:
        pytest.skip("porcupine cannot be had: " + done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return program


def check(checker, history, path, status=0):
    text, drawn = str(path / "history.json"), str(path / "history.html")
    with open(text, "w", encoding="utf-8") as out:
        json.dump(history, out, indent=0)
    done = subprocess.run([checker, text, drawn], capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{done.stdout}{done.stderr}: {text}, {drawn}"


class Registers(Clients):
    """Clients that compare and set registers, and read them at SERIAL."""

    def __init__(self, sessions, clients=6):
        self.sessions = sessions
        self.nodes = list(sessions)
        self.lock = threading.Lock()
        self.history = []
        self.values = 0
        self.seen = [0] * KEYS
        self.finished = {"read": 0, "refused": 0, "applied": 0, "unknown": 0}
        self.violations = []
        self.is_over = False
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(clients)]

    def operate(self, session, operation):
        key = operation["key"]
        if operation["kind"] == "read":
            statement = SimpleStatement(f"SELECT v FROM ks.r WHERE k = {key}", consistency_level=CL.SERIAL,
                                        retry_policy=FallthroughRetryPolicy())
            operation["seen"] = session.execute(statement, timeout=CLIENT_TIMEOUT).one().v
            return "read"
        statement = SimpleStatement(
            f"UPDATE ks.r SET v = {operation['written']} WHERE k = {key} IF v = {operation['expected']}",
            consistency_level=CL.QUORUM, serial_consistency_level=CL.SERIAL, retry_policy=FallthroughRetryPolicy())
        row = session.execute(statement, timeout=CLIENT_TIMEOUT).one()
        if row.applied:
            return "applied"
        operation["seen"] = row.v
        return "refused"

    def begin(self, client, chance):
        key = chance.randrange(KEYS)
        operation = {"client": client, "key": key, "kind": "read", "seen": 0}
        if chance.random() < 0.6:
            with self.lock:
                self.values += 1
                operation |= {"kind": "cas", "expected": self.seen[key], "written": self.values}
        operation["began"] = time.monotonic_ns()
        return operation

    def end(self, operation, outcome):
        operation |= {"ended": time.monotonic_ns(), "outcome": outcome}
        with self.lock:
            self.history.append(operation)
            self.finished[outcome] += 1
            if outcome != "unknown":
                self.seen[operation["key"]] = operation["written"] if outcome == "applied" else operation["seen"]

    def run(self, client):
        chance = random.Random(client)
        while not self.is_over:
            operation = self.begin(client, chance)
            try:
                self.end(operation, self.operate(self.sessions[chance.choice(self.nodes)], operation))
            except Exception as error:  # pylint: disable=broad-except
                if not is_fault(error):
                    self.violations.append(f"{type(error).__name__}: {error}")
                    return
                # A read that failed tells nothing; a value of a refused statement must never be seen.
                if operation["kind"] == "cas" and not was_refused(error):
                    self.end(operation, "unknown")

    def go_on(self, count=30):
        with self.lock:
            wanted = {kind: self.finished[kind] + count for kind in ("read", "applied")}
        wait_until(lambda: all(self.finished[kind] >= number for kind, number in wanted.items()),
                   lambda: f"progress ({self.finished}, {self.violations})")


def prepare(ring):
    sessions = connect(ring, ring.nodes)
    first = sessions[ring[0]]
    first.execute("CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}")
    first.execute("CREATE TABLE ks.r (k int PRIMARY KEY, v int)")
    for key in range(KEYS):
        first.execute(SimpleStatement(f"INSERT INTO ks.r (k, v) VALUES ({key}, 0)", consistency_level=CL.ALL))
    return sessions


def all_up(ring):
    for node in ring.nodes:
        node.wait_sees(UN=ring.nodes)


def test_the_checker_finds_what_is_wrong(checker, tmp_path):
    write = {"client": 1, "key": 0, "kind": "cas", "expected": 0, "written": 1, "began": 1, "ended": 2,
             "outcome": "applied", "seen": 0}
    read = {"client": 2, "key": 0, "kind": "read", "began": 3, "ended": 4, "outcome": "read", "seen": 1}
    check(checker, [write, read], tmp_path)
    check(checker, [write, read | {"seen": 0}], tmp_path, status=1)
    check(checker, [write | {"outcome": "unknown"}, read | {"seen": 0}], tmp_path)
    check(checker, [write, read, write | {"client": 3, "written": 2, "began": 1, "ended": 5}], tmp_path, status=1)


@pytest.mark.parametrize("count", (3, 5))
def test_under_deaths_and_pauses(new_ring, checker, tmp_path, count):
    ring = new_ring(count).start().wait_up()
    with Registers(prepare(ring)) as registers:
        for node in ring.nodes:
            registers.go_on()
            node.kill()
            registers.go_on()
            node.start()
            registers.go_on()
            node.pause()
            registers.go_on()
            node.resume()
            all_up(ring)
    assert not registers.violations, registers.violations
    check(checker, registers.history, tmp_path)


@needs_wires
@pytest.mark.parametrize("count", (3, 5))
def test_under_partitions(new_ring, checker, tmp_path, count):
    ring = new_ring(count, wires=network.Network()).start().wait_up()
    chance = random.Random(count)
    with Registers(prepare(ring)) as registers:
        for _ in range(6):
            nodes = chance.sample(ring.nodes, count)
            registers.go_on()
            if chance.random() < 0.5:
                ring.wires.partition(nodes[:count // 2], nodes[count // 2:])
            else:
                ring.wires.cut(nodes[0], nodes[1])
                ring.wires.cut(nodes[1], nodes[-1])
            registers.go_on()
            ring.wires.heal()
            all_up(ring)
    assert not registers.violations, registers.violations
    check(checker, registers.history, tmp_path)


@needs_wires
def test_under_loss_and_delay(new_ring, checker, tmp_path):
    ring = new_ring(3, wires=network.Network(is_bad=True)).start().wait_up()
    with Registers(prepare(ring)) as registers:
        for faults in ({"loss": 0.02, "duplicate": 0.02, "delay": 0.002, "jitter": 0.02},
                       {"loss": 0, "duplicate": 0, "delay": 0.05, "jitter": 0.2}):
            registers.go_on()
            ring.wires.worsen(**faults)
            registers.go_on()
            ring.wires.worsen(loss=0, duplicate=0, delay=0, jitter=0)
            all_up(ring)
    assert not registers.violations, registers.violations
    check(checker, registers.history, tmp_path)
