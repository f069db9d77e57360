# SPDX-License-Identifier: Apache-2.0
"""disk_failure_policy, commit_failure_policy, and files that are missing or damaged at start."""
import glob
import os
import shutil
import time

import pytest
from cassandra.cluster import NoHostAvailable

KEYS = 50


def filled(server, flushes=1):
    server.start()
    session = server.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v text) WITH compaction = "
                    "{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}")
    for part in range(flushes):
        for key in range(part * KEYS, (part + 1) * KEYS):
            session.execute(f"INSERT INTO ks.t (k, v) VALUES ({key}, '{'x' * 100}')")
        server.nodetool("flush", "ks", "t")
    return session


def files(server, component, data="data/data"):
    return sorted(glob.glob(os.path.join(server.path, data, "ks", "t-*", f"*-{component}")))


def flip(path, offset=40):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x20]))


def read_all(session):
    return {row.k for row in session.execute("SELECT k FROM ks.t")}


def restart(server):
    server.stop()
    return server.start()


def put_file_in_place_of(folder):
    """From now on everything in it fails, whoever tries."""
    os.rename(folder, folder + ".away")
    with open(folder, "w", encoding="utf-8"):
        pass


def is_serving(server):
    return server.nodetool("statusbinary") == "running\n"


@pytest.mark.parametrize("policy, outcome", [
    ("stop_paranoid", "stops"), ("stop", "serves"), ("best_effort", "serves"), ("ignore", "serves"), ("die", "dies")])
def test_a_damaged_sstable(new_server, policy, outcome):
    server = new_server(disk_failure_policy=policy)
    filled(server)
    server.stop()
    flip(files(server, "Data.db")[0])
    server.start()
    session = server.connect()
    with pytest.raises(Exception):
        read_all(session)
    if outcome == "dies":
        assert server.wait() == 1
        assert "Exiting as disk_failure_policy is die" in server.log()
    elif outcome == "stops":
        server.wait_until(lambda: not is_serving(server), "stop of the transports")
        assert "Stopping transports as disk_failure_policy is stop_paranoid" in server.log()
        assert server.stop() == 0
    else:
        server.wait_until(lambda: f"disk_failure_policy is {policy}, the node goes on" in server.log(), "the log line")
        assert is_serving(server)
        session.execute("SELECT * FROM system.local")


@pytest.mark.parametrize("policy, stops", [("stop_paranoid", True), ("stop", True), ("ignore", False)])
def test_a_file_that_cannot_be_read(new_server, policy, stops):
    server = new_server(disk_failure_policy=policy)
    filled(server)
    restart(server)
    os.unlink(files(server, "Index.db")[0])
    with pytest.raises(Exception):
        read_all(server.connect())
    if stops:
        server.wait_until(lambda: not is_serving(server), "stop of the transports")
    else:
        server.wait_until(lambda: "the node goes on" in server.log(), "the log line")
        assert is_serving(server)


@pytest.mark.parametrize("policy, stops", [("stop", True), ("ignore", False)])
def test_a_flush_that_cannot_be_written(new_server, policy, stops):
    server = new_server(disk_failure_policy=policy)
    session = filled(server)
    session.execute("INSERT INTO ks.t (k, v) VALUES (1000, 'last')")
    table, = glob.glob(os.path.join(server.path, "data/data/ks/t-*"))
    put_file_in_place_of(table)
    server.nodetool("flush", "ks", "t", status=2)
    if stops:
        server.wait_until(lambda: not is_serving(server), "stop of the transports")
    else:
        server.wait_until(lambda: "the node goes on" in server.log(), "the log line")
        assert is_serving(server)
    server.kill()
    os.unlink(table)
    os.rename(table + ".away", table)
    server.start()
    assert read_all(server.connect()) == set(range(KEYS)) | {1000}


def test_what_goes_on_failing_is_logged_once_for_each_time_it_begins(new_server):
    server = new_server(disk_failure_policy="ignore")
    session = filled(server)
    for times in (1, 2):
        session.execute("INSERT INTO ks.t (k, v) VALUES (1000, 'last')")
        table, = glob.glob(os.path.join(server.path, "data/data/ks/t-*"))
        put_file_in_place_of(table)
        server.nodetool("flush", "ks", "t", status=2)
        # It is tried again every second.
        for _ in range(3):
            server.nodetool("flush", "ks", "t", status=2)
        time.sleep(2.5)
        assert server.log().count("flush of ks.t failed") == times
        assert server.log().count("the node goes on") == 1
        os.unlink(table)
        os.rename(table + ".away", table)
        server.wait_until(lambda: server.log().count("flushing works again") == times, "a flush")


def test_best_effort_goes_on_with_the_other_directories(new_server, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    server = new_server(disk_failure_policy="best_effort", data_file_directories=f"{one},{two}")
    filled(server, flushes=2)
    restart(server)
    # What is on the second disk cannot be read.
    for path in files(server, "Index.db", data=str(two)):
        os.unlink(path)
    session = server.connect()
    with pytest.raises(Exception):
        read_all(session)
    server.wait_until(lambda: "is read without 1 SSTables" in server.log(), "the exclusion")
    left = read_all(session)
    assert left in (set(range(KEYS)), set(range(KEYS, 2 * KEYS)))
    for key in range(5):
        session.execute(f"INSERT INTO ks.t (k, v) VALUES ({1000 + key}, 'x')")
        server.nodetool("flush", "ks", "t")
    assert len(files(server, "Data.db", data=str(one))) == 6
    assert len(files(server, "Data.db", data=str(two))) == 1
    assert is_serving(server)
    # The last directory fails as well.
    for table in glob.glob(os.path.join(one, "ks", "t-*")):
        put_file_in_place_of(table)
    session.execute("INSERT INTO ks.t (k, v) VALUES (2000, 'x')")
    server.nodetool("flush", "ks", "t", status=2)
    server.wait_until(lambda: not is_serving(server), "stop of the transports")


@pytest.mark.parametrize("policy, outcome", [("stop", "stops"), ("stop_commit", "refuses"), ("die", "dies")])
def test_a_commit_log_that_cannot_be_written(new_server, policy, outcome):
    server = new_server(commit_failure_policy=policy, commitlog_segment_size="64KiB")
    session = filled(server)
    put_file_in_place_of(os.path.join(server.path, "data/commitlog"))
    failed = False
    try:
        for key in range(1000):
            session.execute(f"INSERT INTO ks.t (k, v) VALUES ({key}, '{'y' * 1000}')")
    except Exception:
        failed = True
    assert failed
    if outcome == "dies":
        assert server.wait() == 1
        assert "Exiting as commit_failure_policy is die" in server.log()
    elif outcome == "stops":
        server.wait_until(lambda: not is_serving(server), "stop of the transports")
    else:
        server.wait_until(lambda: "commit_failure_policy is stop_commit, the node goes on" in server.log(), "the log line")
        assert is_serving(server)
        assert len(read_all(session)) >= KEYS


@pytest.mark.parametrize("policy", ["stop", "best_effort", "ignore"])
def test_an_sstable_without_its_data_file_at_start(new_server, policy):
    server = new_server(disk_failure_policy=policy)
    filled(server, flushes=2)
    server.stop()
    missing = files(server, "Data.db")[1]
    shutil.move(missing, missing + ".away")
    if policy == "stop":
        with pytest.raises(AssertionError):
            server.start()
        assert server.wait() == 1
        assert f"{missing} is missing beside its TOC.txt" in server.log()
        shutil.move(missing + ".away", missing)
        server.start()
        assert read_all(server.connect()) == set(range(2 * KEYS))
    else:
        server.start()
        assert read_all(server.connect()) == set(range(KEYS))
        assert f"{missing} is missing beside its TOC.txt" in server.log()
        assert "ks.t is read without this SSTable" in server.log()


def test_connections_are_closed_when_the_transports_stop(new_server):
    server = new_server(disk_failure_policy="stop_paranoid")
    session = filled(server)
    restart(server)
    flip(files(server, "Data.db")[0])
    session = server.connect()
    with pytest.raises(Exception):
        read_all(session)
    server.wait_until(lambda: not is_serving(server), "stop of the transports")
    with pytest.raises(NoHostAvailable):
        server.connect()
    server.wait_until(lambda: server.nodetool("statusgossip") == "not running\n", "stop of gossip")
    assert server.stop() == 0


def test_a_flush_that_ends_well_does_not_hide_one_that_fails(new_server):
    server = new_server(disk_failure_policy="ignore")
    session = filled(server)
    session.execute("CREATE TABLE ks.u (k int PRIMARY KEY)")
    session.execute("INSERT INTO ks.t (k, v) VALUES (1, 'x')")
    session.execute("INSERT INTO ks.u (k) VALUES (1)")
    folder = glob.glob(os.path.join(server.path, "data/data/ks/t-*"))[0]
    put_file_in_place_of(folder)
    server.nodetool("flush", "ks", "t", status=2)
    server.nodetool("flush", "ks", "u")
    for key in range(20):
        with pytest.raises(Exception, match="writes are refused while data cannot be flushed"):
            session.execute(f"INSERT INTO ks.u (k) VALUES ({key})")
        time.sleep(0.1)
    os.unlink(folder)
    os.rename(folder + ".away", folder)
    server.wait_until(lambda: "flushing works again" in server.log(), "flush of what failed")
    session.execute("INSERT INTO ks.u (k) VALUES (1)")
    assert read_all(session) == set(range(KEYS))
