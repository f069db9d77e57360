# SPDX-License-Identifier: Apache-2.0
"""Starts real servers: each on ports of its own, with its data in a folder of the test."""
import os
import select
import signal
import socket
import subprocess
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
HELENUSD = os.path.join(BUILD, "helenusd")
NODETOOL = os.path.join(BUILD, "nodetool")
# How many times slower than a plain build: tests/run says so of sanitizers.
SLOWNESS = int(os.environ.get("TEST_SLOWNESS", "1"))
PATIENCE = int(os.environ.get("PATIENCE", 60 * SLOWNESS))
# Timeouts of requests where no test says otherwise, in milliseconds: etc/helenus.yaml's.
REQUEST_TIMEOUTS = {"read": 5000, "range": 10000, "write": 2000, "counter_write": 5000, "truncate": 60000}

# Ways to end that no test asks for: a fault of the program, or what a sanitizer found (ThreadSanitizer's is 66).
CRASHES = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE, 66)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def slow_timeouts():
    if SLOWNESS == 1:
        return {}
    return {f"{kind}_request_timeout": f"{ms * SLOWNESS}ms" for kind, ms in REQUEST_TIMEOUTS.items()}


class Server:
    """One helenusd. Options are keys of the configuration: Server(path, num_tokens=4)."""

    def __init__(self, path, config=None, **options):
        self.path = str(path)
        self.config = config
        self.options = dict(options)
        self.port = free_port()
        self.admin_port = free_port()
        self.process = None
        self.clusters = []
        self.log_path = os.path.join(self.path, "log")
        os.makedirs(self.path, exist_ok=True)

    def command(self):
        options = {"data_directory": os.path.join(self.path, "data"), "rpc_address": "127.0.0.1",
                   "native_transport_port": self.port, "admin_port": self.admin_port,
                   "storage_port": free_port(),
                   "num_tokens": 4, **(slow_timeouts() if self.config is None else {}), **self.options}
        config = self.config
        if config is None:
            config = os.path.join(self.path, "empty.yaml")
            with open(config, "w", encoding="utf-8"):
                pass
        command = [HELENUSD, "-c", config]
        for key, value in options.items():
            value = str(value).lower() if isinstance(value, bool) else str(value)
            command += ["-D", f"{key.replace('__', '.')}={value}"]
        return command

    def start(self, environment=None):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdout=subprocess.PIPE, stderr=log, env=environment)
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline().decode() if ready else ""
        assert line == f"ready: CQL clients on 127.0.0.1:{self.port}\n", line + self.log()
        return self

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def wait(self):
        return self.process.wait(PATIENCE)

    def stop(self, how=signal.SIGTERM):
        """End it, return the exit status."""
        for cluster in self.clusters:
            cluster.shutdown()
        self.clusters = []
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.wait()
        self.process.stdout.close()
        self.process = None
        assert status not in CRASHES, f"crashed with {status}\n{self.log()[-20000:]}"
        return status

    def kill(self):
        self.stop(signal.SIGKILL)

    def connect(self, keyspace=None, **options):
        """A session of the Python driver."""
        from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
        from cassandra.policies import WhiteListRoundRobinPolicy

        if "execution_profiles" not in options:
            options["execution_profiles"] = {EXEC_PROFILE_DEFAULT: ExecutionProfile(
                load_balancing_policy=WhiteListRoundRobinPolicy(["127.0.0.1"]),
                request_timeout=PATIENCE)}
        cluster = Cluster(["127.0.0.1"], port=self.port, connect_timeout=PATIENCE,
                          control_connection_timeout=PATIENCE, **options)
        self.clusters.append(cluster)
        return cluster.connect(keyspace)

    def nodetool(self, *words, status=0):
        """Standard output of a command that ends with `status`."""
        done = subprocess.run([NODETOOL, "-p", str(self.admin_port), *map(str, words)],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout if status == 0 else done.stdout + done.stderr

    def wait_until(self, condition, what="it"):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"{what} did not happen"
            time.sleep(0.05)


@pytest.fixture
def new_server(tmp_path):
    """A function that makes servers (not started); all are ended with the test."""
    servers = []

    def make(name="node", **options):
        made = Server(tmp_path / name, **options)
        servers.append(made)
        return made

    yield make
    crashes = []
    for each in servers:
        try:
            each.kill()
        except AssertionError as crash:
            crashes.append(str(crash))
    assert not crashes, "\n".join(crashes)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One running server for all tests of a file."""
    running = Server(tmp_path_factory.mktemp("server") / "node").start()
    yield running
    assert running.stop() == 0, running.log()


@pytest.fixture(scope="module")
def session(server):
    yield server.connect()


@pytest.fixture
def keyspace(session):
    """A keyspace of the test's own, in use."""
    keyspace.count = getattr(keyspace, "count", 0) + 1
    name = f"ks{keyspace.count}"
    session.execute(f"CREATE KEYSPACE {name} WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace(name)
    yield name
    session.execute(f"DROP KEYSPACE {name}")
