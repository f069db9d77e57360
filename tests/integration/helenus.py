# SPDX-License-Identifier: Apache-2.0
"""A helenusd of our own: on a free port, in a folder of its own, ended by its process id."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))
if not BUILD.is_absolute():
    BUILD = ROOT / BUILD


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


class Server:
    """start() waits until the server says that it is ready; stop() asks it to end, kill() does not ask."""

    def __init__(self, address="127.0.0.1", options=(), directory=None):
        self.address = address
        self.port = free_port(address)
        self.admin_port = free_port(address)
        self.options = list(options)
        self.owns_directory = directory is None
        self.directory = directory or tempfile.mkdtemp(prefix="helenus-")
        self.process = None

    def start(self, timeout=30):
        options = {
            "data_directory": self.directory,
            "listen_address": self.address,
            "rpc_address": self.address,
            "native_transport_port": self.port,
            "storage_port": free_port(self.address),
            "admin_address": self.address,
            "admin_port": self.admin_port,
            "cluster_name": "test",
        }
        command = [str(BUILD / "helenusd"), "-f"]
        for key, value in options.items():
            command += ["-D", f"{key}={value}"]
        for option in self.options:
            command += ["-D", option]
        self.log = open(os.path.join(self.directory, "server.log"), "ab")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, cwd=ROOT)
        deadline = time.monotonic() + timeout
        line = b""
        while time.monotonic() < deadline and not line.startswith(b"ready:"):
            line = self.process.stdout.readline()
            if not line and self.process.poll() is not None:
                raise RuntimeError(f"helenusd ended with {self.process.returncode}: {self.read_log()}")
        return self

    def read_log(self):
        with open(os.path.join(self.directory, "server.log"), errors="replace") as log:
            return log.read()[-4000:]

    def end(self, number, timeout):
        if self.process is None:
            return None
        self.process.send_signal(number)
        try:
            return self.process.wait(timeout)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.log.close()
            self.process = None

    def stop(self, timeout=30):
        return self.end(signal.SIGTERM, timeout)

    def kill(self):
        return self.end(signal.SIGKILL, 30)

    def nodetool(self, *words):
        done = subprocess.run(
            [str(BUILD / "nodetool"), "-p", str(self.admin_port), *words],
            capture_output=True, text=True, timeout=60, check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"nodetool {words}: {done.stdout}{done.stderr}")
        return done.stdout

    def restart(self):
        self.stop()
        return self.start()

    def remove(self):
        self.kill()
        if self.owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)
