# SPDX-License-Identifier: Apache-2.0
"""The two servers: ours, started from $BUILD in a folder that is removed afterwards, and Cassandra."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))


class ServerDied(Exception):
    pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(address, port):
    try:
        socket.create_connection((address, port), 1).close()
        return True
    except OSError:
        return False


class Server:
    """A process that serves CQL clients; its output goes to a file that is shown where it dies."""

    name = ""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="helenus-oracle-")
        self.log = os.path.join(self.folder, "log")
        self.process = None
        self.address = "127.0.0.1"
        self.port = 0

    def start(self, command, seconds, environment=None):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            env=environment)
        end = time.monotonic() + seconds
        while not answers(self.address, self.port):
            self.check()
            if time.monotonic() > end:
                self.stop()
                raise ServerDied(f"{self.name} does not answer after {seconds} seconds")
            time.sleep(0.02 if seconds < 60 else 0.5)

    def tail(self):
        with open(self.log, "rb") as log:
            return log.read()[-3000:].decode("utf-8", "replace")

    def check(self):
        """Raise ServerDied where the process is gone."""
        if self.process is not None:
            # A crash closes the connection a moment before the process can be waited for.
            for _ in range(20):
                if self.process.poll() is not None:
                    raise ServerDied(f"{self.name} ended with {self.process.returncode}:\n" + self.tail())
                time.sleep(0.01)

    def stop(self):
        """The exit status, None where there was no process."""
        status = None
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(30)
                except subprocess.TimeoutExpired:
                    self.process.kill()
            status = self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        return status


class Helenus(Server):
    name = "Helenus"

    def __init__(self):
        super().__init__()
        self.port = free_port()
        self.admin = free_port()
        self.start([f"{BUILD}/helenusd", "-f", "-c", f"{ROOT}/etc/helenus.yaml",
                    "-D", f"data_directory={self.folder}/data",
                    "-D", f"native_transport_port={self.port}", "-D", f"storage_port={free_port()}",
                    "-D", f"admin_port={self.admin}", "-D", "cluster_name=peer"], 30)

    def nodetool(self, *words):
        subprocess.run([f"{BUILD}/nodetool", "-p", str(self.admin), *words], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)


class Cassandra(Server):
    """Started by tests/oracle/peer; or the one that $ORACLE_PEER names as ADDRESS:JMX_PORT."""

    name = "Cassandra"

    def __init__(self):
        super().__init__()
        running = os.environ.get("ORACLE_PEER")
        self.port = 9042
        if running:
            self.address, _, jmx = running.partition(":")
            self.jmx = int(jmx or 0)
            return
        self.address = os.environ.get("ORACLE_ADDRESS", "127.0.0.17")
        self.jmx = free_port()
        subprocess.run([f"{HERE}/peer", "fetch"], check=True)
        environment = dict(os.environ, JMX_PORT=str(self.jmx))
        self.start([f"{HERE}/peer", "run", f"{self.folder}/data", self.address], 180, environment)

    def nodetool(self, *words):
        if self.jmx:
            subprocess.run([f"{HERE}/peer", "nodetool", "-p", str(self.jmx), *words], check=True,
                           stdout=subprocess.DEVNULL, timeout=120)
