# SPDX-License-Identifier: Apache-2.0
"""Rings for tests: `ring` is one of three nodes, up, shared by a file's tests, which leave it as they found it."""
import os

import pytest

from ring import Ring


def pytest_configure(config):
    config.addinivalue_line("markers", "long: not part of `make check`")


def pytest_collection_modifyitems(items):
    if os.environ.get("TEST_LENGTH", "short") == "long":
        return
    for item in items:
        if "long" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="make check-cluster"))


@pytest.fixture
def new_ring(tmp_path):
    """A function that makes rings (not started); all are ended with the test."""
    rings = []

    def make(count, **options):
        made = Ring(count, path=str(tmp_path / f"ring{len(rings)}"), **options)
        rings.append(made)
        return made

    yield make
    for each in rings:
        each.end()


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    made = Ring(3, path=str(tmp_path_factory.mktemp("ring")))
    try:
        yield made.start().wait_up()
    finally:
        made.end()
