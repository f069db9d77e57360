# SPDX-License-Identifier: Apache-2.0
"""Rings of real nodes on one machine: each has an address 127.x.y.N of its own, and all have the same ports, as machines of
a cluster have. What is not said in options is what an operator's node has by default."""
import contextlib
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
HELENUSD = os.path.join(BUILD, "helenusd")
NODETOOL = os.path.join(BUILD, "nodetool")
NATIVE_PORT, STORAGE_PORT, ADMIN_PORT = 9042, 7000, 7199
# How many times slower than a plain build: tests/run says so of sanitizers.
SLOWNESS = int(os.environ.get("TEST_SLOWNESS", "1"))
# How long something may take that has to happen: machines may be slow and busy.
PATIENCE = int(os.environ.get("PATIENCE", 120 * SLOWNESS))
# Timeouts of requests where no test says otherwise, in milliseconds: etc/helenus.yaml's.
REQUEST_TIMEOUTS = {"read": 5000, "range": 10000, "write": 2000, "counter_write": 5000, "truncate": 60000}

# Ways to end that no test asks for: a fault of the program, or what a sanitizer found (ThreadSanitizer's is 66).
CRASHES = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE, 66)


def free_network():
    """127.x.y such that nobody else's nodes listen there."""
    while True:
        network = f"127.{random.randint(30, 250)}.{random.randint(1, 250)}"
        try:
            for port in (NATIVE_PORT, STORAGE_PORT, ADMIN_PORT):
                with socket.socket() as probe:
                    probe.bind((f"{network}.1", port))
        except OSError:
            continue
        return network


def wait_until(condition, what="it", patience=PATIENCE):
    """Returns what the condition does when that is true."""
    end = time.monotonic() + patience
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < end, (what() if callable(what) else what) + " did not happen"
        time.sleep(0.05)


def thread_states(pid):
    """The letters of /proc: "T" is stopped. Threads that end meanwhile have none."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as stat:
                yield stat.read().rpartition(")")[2].split()[0]


def slow_timeouts():
    if SLOWNESS == 1:
        return {}
    return {f"{kind}_request_timeout": f"{ms * SLOWNESS}ms" for kind, ms in REQUEST_TIMEOUTS.items()}


class Node:
    """One helenusd. Options are keys of the configuration, "." written as "__"."""

    def __init__(self, ring, number, **options):
        self.ring = ring
        self.number = number
        self.address = f"{ring.network}.{number}"
        self.path = os.path.join(ring.path, f"node{number}")
        self.options = options
        self.process = None
        os.makedirs(self.path, exist_ok=True)

    def __repr__(self):
        return self.address

    @property
    def log_path(self):
        return os.path.join(self.path, "log")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def command(self, **more):
        options = {"cluster_name": "ring", "data_directory": os.path.join(self.path, "data"),
                   "listen_address": self.address, "rpc_address": self.address,
                   "admin_address": self.address, "seeds": self.ring.seeds,
                   "auto_bootstrap": False, "num_tokens": 16, "memtable_heap_space": "64MiB",
                   **slow_timeouts(), **self.ring.options, **self.options, **more}
        config = os.path.join(self.path, "empty.yaml")
        with open(config, "w", encoding="utf-8"):
            pass
        command = self.ring.in_network(self.number) + [HELENUSD, "-c", config]
        for key, value in options.items():
            value = str(value).lower() if isinstance(value, bool) else str(value)
            command += ["-D", f"{key.replace('__', '.')}={value}"]
        return command

    def launch(self, **more):
        """Start it and do not wait."""
        assert self.process is None
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(**more), stdout=subprocess.PIPE, stderr=log)
        return self

    def wait_ready(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline().decode() if ready else ""
        assert line == f"ready: CQL clients on {self.address}:{NATIVE_PORT}\n", line + self.log()
        return self

    def start(self, **more):
        return self.launch(**more).wait_ready()

    def refuses_to_start(self, **more):
        """(exit status, what it said) of a start that must fail."""
        at = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        self.launch(**more)
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process = None
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            log.seek(at)
            return status, log.read()

    def signal(self, number):
        self.process.send_signal(number)

    def pause(self):
        """It stands still when this returns: on a busy machine its threads go on for a while after the signal."""
        self.signal(signal.SIGSTOP)
        wait_until(lambda: set(thread_states(self.process.pid)) == {"T"}, f"{self.address} stands still")

    def resume(self):
        self.signal(signal.SIGCONT)

    def end(self, number):
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process = None
        assert status not in CRASHES, f"{self}: crashed with {status}\n{self.log()[-20000:]}"
        return status

    def stop(self):
        status = self.end(signal.SIGTERM)
        assert status in (0, None), f"{self}: ended with {status}\n{self.log()}"

    def kill(self):
        self.end(signal.SIGKILL)

    def restart(self):
        self.stop()
        return self.start()

    def nodetool(self, *words, status=0):
        """Standard output of a command that ends with `status`; all output of one that fails."""
        done = subprocess.run([NODETOOL, "-h", self.address, *map(str, words)],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout if status == 0 else done.stdout + done.stderr

    def status(self):
        """{address: code} of `nodetool status`: {"127.0.0.1": "UN"}."""
        rows = [line.split() for line in self.nodetool("status").splitlines()]
        return {row[1]: row[0] for row in rows
                if len(row) > 4 and len(row[0]) == 2 and row[0][0] in "UD?" and row[0][1] in "NLJM"}

    def sees(self, **codes):
        """sees(UN=[a, b], DN=[c]): are these all, and are they so?"""
        wanted = {getattr(node, "address", node): code
                  for code, nodes in codes.items() for node in nodes}
        return self.status() == wanted

    def wait_sees(self, **codes):
        wait_until(lambda: self.sees(**codes),
                   lambda: f"{self} sees {self.status()}; {codes}")


class Ring:
    """wires: a network.Network, whose links can be cut, to stand in; None: the loopback."""

    def __init__(self, count, path=None, seeds=1, wires=None, **options):
        self.wires = wires
        self.network = wires.prefix if wires else free_network()
        self.path = path or tempfile.mkdtemp(prefix="helenus-ring-")
        self.owns_path = path is None
        self.options = options
        self.seeds = ",".join(f"{self.network}.{i + 1}" for i in range(seeds))
        self.nodes = [Node(self, i + 1) for i in range(count)]
        self.clusters = []

    def __getitem__(self, index):
        return self.nodes[index]

    def add(self, **options):
        node = Node(self, len(self.nodes) + 1, **options)
        self.nodes.append(node)
        return node

    def in_network(self, number):
        """What starts a program where node `number` stands."""
        return self.wires.host(number) if self.wires else []

    def start(self):
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_ready()
        return self

    def wait_up(self):
        for node in self.nodes:
            node.wait_sees(UN=self.nodes)
        return self

    def connect(self, node=None, only=None, **options):
        """A session of the Python driver. only: nodes to coordinate; all otherwise."""
        from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
        from cassandra.policies import RoundRobinPolicy, WhiteListRoundRobinPolicy

        policy = RoundRobinPolicy() if only is None else WhiteListRoundRobinPolicy(
            [each.address for each in only])
        first = node or (only[0] if only else self.nodes[0])
        cluster = Cluster([first.address], port=NATIVE_PORT, connect_timeout=PATIENCE,
                          control_connection_timeout=PATIENCE,
                          execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(
                              load_balancing_policy=policy, request_timeout=PATIENCE)}, **options)
        self.clusters.append(cluster)
        return cluster.connect()

    def end(self):
        for cluster in self.clusters:
            cluster.shutdown()
        crashes = []
        for node in self.nodes:
            try:
                node.kill()
            except AssertionError as crash:
                crashes.append(str(crash))
        if self.wires:
            self.wires.end()
        if self.owns_path:
            shutil.rmtree(self.path, ignore_errors=True)
        assert not crashes, "\n".join(crashes)
