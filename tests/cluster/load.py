# SPDX-License-Identifier: Apache-2.0
"""Clients that write and read while nodes fail, and know what must hold: an acknowledged write is there, and no read
sees something older than what was known when it began. Each key is written by one thread only, with versions that
grow; what failed may or may not have been written."""
import random
import threading

from cassandra import (ConsistencyLevel as CL, OperationTimedOut, ReadFailure, ReadTimeout, Unavailable, WriteFailure,
                       WriteTimeout, WriteType)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy
from cassandra.protocol import ErrorMessage
from cassandra.query import SimpleStatement

from ring import wait_until

# What a client is told when nodes fail. All else is a mistake of the server's.
FAULTS = (Unavailable, ReadTimeout, WriteTimeout, ReadFailure, WriteFailure, OperationTimedOut, NoHostAvailable,
          ConnectionException)
# After so many seconds a client asks another node: one that stands still must not hold all clients.
CLIENT_TIMEOUT = 3


def is_fault(error):
    """Of FAULTS, or CAS_WRITE_UNKNOWN, which the driver has no class for."""
    return isinstance(error, FAULTS) or isinstance(error, ErrorMessage) and error.code == 0x1700


def was_refused(error):
    """Did the server say that nothing was done?"""
    if isinstance(error, NoHostAvailable):
        return bool(error.errors) and all(isinstance(each, Unavailable) for each in error.errors.values())
    return isinstance(error, Unavailable)


def connect(ring, nodes):
    """{node: a session whose requests that node alone coordinates}"""
    return {node: ring.connect(only=[node], reconnection_policy=ConstantReconnectionPolicy(0.3, None))
            for node in nodes}


def ask(session, text, level=CL.QUORUM):
    """The rows, as soon as the driver has found out that the node is there again."""
    statement = SimpleStatement(text, consistency_level=level, retry_policy=FallthroughRetryPolicy())

    def asked():
        try:
            return [session.execute(statement)]
        except (NoHostAvailable, ConnectionException) as error:
            if was_refused(error):
                raise
            return None
    return list(wait_until(asked, "an answer")[0])


class Clients:
    """Threads that run until the block ends: they have to look at is_over."""

    is_over = False
    threads = ()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()


class Load(Clients):
    def __init__(self, sessions, table, level=CL.QUORUM, keys=12, threads=4, timeout=CLIENT_TIMEOUT):
        self.timeout = timeout
        self.sessions = sessions
        self.nodes = list(sessions)
        self.table = table
        self.level = level
        self.lock = threading.Lock()
        self.acked = [0] * keys
        self.seen = [0] * keys
        self.tried = [0] * keys
        self.writes = self.reads = 0
        self.errors = []  # (node, error) of what a fault excuses
        self.violations = []
        self.is_over = False
        self.threads = [threading.Thread(target=self.run, args=(i, threads)) for i in range(threads)]

    def statement(self, text):
        return SimpleStatement(text, consistency_level=self.level, retry_policy=FallthroughRetryPolicy())

    def write(self, session, key):
        self.tried[key] += 1
        version = self.tried[key]
        session.execute(self.statement(
            f"UPDATE {self.table} USING TIMESTAMP {version} SET v = {version} WHERE k = {key}"), timeout=self.timeout)
        with self.lock:
            self.acked[key] = max(self.acked[key], version)
            self.writes += 1

    def read(self, session, key):
        with self.lock:
            floor = max(self.acked[key], self.seen[key])
        row = session.execute(self.statement(f"SELECT v FROM {self.table} WHERE k = {key}"),
                              timeout=self.timeout).one()
        version = row.v if row else 0
        with self.lock:
            if not floor <= version <= self.tried[key]:
                self.violations.append(f"key {key}: read {version}, known was {floor}, tried {self.tried[key]}")
            self.seen[key] = max(self.seen[key], version)
            self.reads += 1

    def run(self, index, threads):
        chance = random.Random(index)
        mine = range(index, len(self.acked), threads)
        while not self.is_over:
            node = chance.choice(self.nodes)
            try:
                if chance.random() < 0.5:
                    self.write(self.sessions[node], chance.choice(mine))
                else:
                    self.read(self.sessions[node], chance.randrange(len(self.acked)))
            except FAULTS as error:
                with self.lock:
                    self.errors.append((node, error))
            except Exception as error:  # pylint: disable=broad-except
                with self.lock:
                    self.violations.append(f"{node}: {type(error).__name__}: {error}")

    def go_on(self, count=60):
        """Until so many more writes and reads have succeeded."""
        with self.lock:
            writes, reads = self.writes + count, self.reads + count
        wait_until(lambda: self.writes >= writes and self.reads >= reads,
                   lambda: f"progress (the last errors: {self.errors[-3:]})")

    def check(self, sessions=None):
        """After the load: everything acknowledged is there, wherever one asks."""
        assert not self.violations, self.violations[:5]
        for node, session in (sessions or self.sessions).items():
            for key, acked in enumerate(self.acked):
                rows = ask(session, f"SELECT v FROM {self.table} WHERE k = {key}", self.level)
                assert acked <= (rows[0].v if rows else 0) <= self.tried[key], (node, key, rows, acked)


class Counting:
    """Increments of one counter, each of 1: its value must be among those that the acknowledged and the unknown allow."""

    def __init__(self, sessions, table, threads=4):
        self.sessions = sessions
        self.nodes = list(sessions)
        self.table = table
        self.lock = threading.Lock()
        self.acked = self.unknown = 0
        self.violations = []
        self.is_over = False
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(threads)]

    __enter__ = Load.__enter__
    __exit__ = Load.__exit__

    def run(self, index):
        chance = random.Random(index)
        statement = SimpleStatement(f"UPDATE {self.table} SET n = n + 1 WHERE k = 0", consistency_level=CL.QUORUM,
                                    retry_policy=FallthroughRetryPolicy())
        while not self.is_over:
            try:
                self.sessions[chance.choice(self.nodes)].execute(statement, timeout=CLIENT_TIMEOUT)
                with self.lock:
                    self.acked += 1
            except FAULTS as error:
                with self.lock:
                    self.unknown += not was_refused(error)
                    if isinstance(error, WriteTimeout) and error.write_type != WriteType.COUNTER:
                        self.violations.append(f"write type {error.write_type}")
            except Exception as error:  # pylint: disable=broad-except
                with self.lock:
                    self.violations.append(f"{type(error).__name__}: {error}")

    def go_on(self, count=60):
        acked = self.acked + count
        wait_until(lambda: self.acked >= acked, "progress")

    def check(self):
        assert not self.violations, self.violations[:5]
        for session in self.sessions.values():
            n = ask(session, f"SELECT n FROM {self.table} WHERE k = 0", CL.ALL)[0].n
            assert self.acked <= n <= self.acked + self.unknown
