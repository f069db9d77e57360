# SPDX-License-Identifier: Apache-2.0
"""The server under test, and checks that are counted."""
import os
import select
import shutil
import signal
import subprocess
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
# What is installed or compiled for these tests; kept between runs.
TOOLS = os.path.join(ROOT, "build", "interop")
WORK = os.path.join(BUILD, "interop-run")
ADDRESS = os.environ.get("INTEROP_ADDRESS", "127.0.0.17")
PORT = int(os.environ.get("INTEROP_PORT", "9300"))
# How long something may take that has to happen: machines may be slow and busy.
PATIENCE = int(os.environ.get("PATIENCE", "180"))


class LeftOut(Exception):
    """What a check or a part needs is not on this machine."""


class Checks:
    def __init__(self):
        self.passed = 0
        self.failed = 0

    def say(self, line):
        print(line, flush=True)

    def note(self, line, prefix):
        """Count a line that a program printed."""
        if line.startswith("PASS "):
            self.passed += 1
            self.say(f"PASS {prefix}: {line[5:]}")
        elif line.startswith("FAIL "):
            self.failed += 1
            self.say(f"FAIL {prefix}: {line[5:]}")
        else:
            self.say(f"  {prefix}: {line}")

    def check(self, prefix, name, function, *arguments):
        try:
            function(*arguments)
        except LeftOut as error:
            self.note(f"left out: {name}: {error}", prefix)
            return False
        except Exception as error:  # pylint: disable=broad-except
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error}"
            self.note(f"FAIL {name}: {text[:2000]} ({os.path.basename(last.filename)}:{last.lineno})",
                      prefix)
            return False
        self.note(f"PASS {name}", prefix)
        return True


class Server:
    """One helenusd with its data in a folder of its own."""

    def __init__(self, name, **options):
        self.path = os.path.join(WORK, name)
        shutil.rmtree(self.path, ignore_errors=True)
        os.makedirs(self.path)
        self.data = os.path.join(self.path, "data")
        self.options = options
        self.process = None

    def start(self):
        config = os.path.join(self.path, "empty.yaml")
        with open(config, "w", encoding="utf-8"):
            pass
        options = {"data_directory": self.data, "rpc_address": ADDRESS, "listen_address": ADDRESS,
                   "native_transport_port": PORT, "admin_address": ADDRESS, "admin_port": PORT + 1,
                   "storage_port": PORT + 2, "seeds": ADDRESS, "num_tokens": 16, **self.options}
        command = [os.path.join(BUILD, "helenusd"), "-f", "-c", config]
        for key, value in options.items():
            command += ["-D", f"{key}={value}"]
        with open(os.path.join(self.path, "log"), "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline().decode() if ready else ""
        if not line.startswith("ready:"):
            self.stop(signal.SIGKILL)
            raise RuntimeError(f"no ready line but {line!r}; see {self.path}/log: {self.tail()}")
        return self

    def tail(self):
        with open(os.path.join(self.path, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()[-1500:]

    def stop(self, how=signal.SIGTERM):
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process = None
        return status

    def kill(self):
        self.stop(signal.SIGKILL)

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def nodetool(self, *words):
        done = subprocess.run([os.path.join(BUILD, "nodetool"), "-h", ADDRESS, "-p", str(PORT + 1),
                               *words], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"nodetool {words}: {done.stdout}{done.stderr}")
        return done.stdout

    def table_folder(self, keyspace, table):
        parent = os.path.join(self.data, "data", keyspace)
        for name in os.listdir(parent):
            if name.rsplit("-", 1)[0] == table:
                return os.path.join(parent, name)
        raise RuntimeError(f"no folder of {keyspace}.{table} in {parent}")

    def do(self, what):
        """What a program under test may ask for."""
        if what == "restart":
            status = self.stop()
            assert status == 0, f"status {status} on SIGTERM"
            self.start()
        elif what == "kill":
            self.kill()
            self.start()
        elif what == "stop":
            self.kill()
        elif what == "start":
            self.start()
        elif what.startswith("nodetool "):
            self.nodetool(*what.split()[1:])
        else:
            raise ValueError(what)


def converse(checks, prefix, command, server, timeout=900, cwd=None, environment=None):
    """Run a program that prints `PASS name`, `FAIL name: why`, and asks with `ask: what`.

    It gets HOST and PORT in its environment and a line `done` on its standard input for each
    request. Without a single PASS or FAIL, or with a status that is not 0, it has failed."""
    environment = {**os.environ, "HOST": ADDRESS, "PORT": str(PORT), **(environment or {})}
    before = checks.passed + checks.failed
    log_path = os.path.join(WORK, prefix.replace(" ", "-") + ".err")
    with open(log_path, "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=log, cwd=cwd, env=environment)
    end = time.monotonic() + timeout
    try:
        while True:
            ready, _, _ = select.select([process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                process.kill()
                checks.note(f"FAIL the program: not done after {timeout} s", prefix)
                break
            line = read_line(process.stdout.fileno())
            if line is None:
                break
            if line.startswith("ask: "):
                try:
                    server.do(line[5:])
                    answer = "done"
                except Exception as error:  # pylint: disable=broad-except
                    answer = f"failed: {error}".replace("\n", " ")
                    checks.note(f"FAIL {line}: {answer}", prefix)
                os.write(process.stdin.fileno(), answer.encode() + b"\n")
            elif line:
                checks.note(line, prefix)
    finally:
        if process.poll() is None:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        status = process.wait()
        process.stdin.close()
        process.stdout.close()
    with open(log_path, encoding="utf-8", errors="replace") as log:
        text = log.read().strip()
    if status != 0 or checks.passed + checks.failed == before:
        checks.note(f"FAIL the program: status {status}: {text[-1500:]}", prefix)
    if not server.is_running():
        checks.note(f"FAIL the server: ended: {server.tail()}", prefix)
        server.stop()
        server.start()


def read_line(descriptor):
    """Bytewise: what a buffer held back, select() would not tell of."""
    data = bytearray()
    while True:
        byte = os.read(descriptor, 1)
        if not byte:
            return data.decode(errors="replace") if data else None
        if byte == b"\n":
            return data.decode(errors="replace").rstrip("\r")
        data += byte


def need(program):
    """The path of a program, or this part is left out."""
    path = shutil.which(program)
    if path is None:
        raise LeftOut(f"there is no {program} on this machine")
    return path


def install(name, command, cwd=None, timeout=1800, environment=None):
    """Run a package manager; where it cannot install, the part is left out with its last words."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(environment or {})))
    if done.returncode != 0:
        raise LeftOut(f"{name} was not installed: {done.stdout.strip()[-1500:]}")
