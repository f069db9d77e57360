# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests of CQL: one server for all of them, a keyspace of its own for each."""
import itertools
import warnings

import pytest
from cassandra.cluster import Cluster

import helenus

warnings.simplefilter("ignore")
NUMBERS = itertools.count()


def connect(server, **options):
    options.setdefault("protocol_version", 5)
    cluster = Cluster([server.address], port=server.port, **options)
    session = cluster.connect()
    session.default_timeout = 60
    return session


@pytest.fixture(scope="session")
def server():
    running = helenus.Server().start()
    yield running
    running.remove()


@pytest.fixture(scope="session")
def shared_session(server):
    session = connect(server)
    yield session
    session.cluster.shutdown()


@pytest.fixture
def session(shared_session):
    """A session in a keyspace of its own."""
    keyspace = f"ks{next(NUMBERS)}"
    shared_session.execute(
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    shared_session.set_keyspace(keyspace)
    yield shared_session
    shared_session.execute(f"DROP KEYSPACE {keyspace}")


@pytest.fixture
def own_server():
    """A server that a test may stop and kill."""
    running = helenus.Server().start()
    yield running
    running.remove()
