# SPDX-License-Identifier: Apache-2.0
"""Incremental backups, snapshots before compactions, options of nodetool snapshot, several data directories."""
import glob
import json
import os

import pytest


def schema(session, options=""):
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute(f"CREATE TABLE ks.t (k int PRIMARY KEY, v text) {options}")
    session.execute("CREATE TABLE ks.other (k int PRIMARY KEY, v text) WITH incremental_backups = false")


def data_files(server, *below, table="t", data="data/data"):
    pattern = os.path.join(server.path, data, "ks", f"{table}-*", *below, "*-Data.db")
    return sorted(os.path.basename(path) for path in glob.glob(pattern))


def write(server, session, count=10):
    for key in range(count):
        session.execute(f"INSERT INTO ks.t (k, v) VALUES ({key}, 'x')")
        session.execute(f"INSERT INTO ks.other (k, v) VALUES ({key}, 'x')")
    server.nodetool("flush", "ks")


def test_incremental_backups_are_switched_while_the_node_runs(new_server):
    server = new_server().start()
    session = server.connect()
    schema(session)
    assert server.nodetool("statusbackup") == "not running\n"
    write(server, session)
    assert data_files(server, "backups") == []
    server.nodetool("enablebackup")
    assert server.nodetool("statusbackup") == "running\n"
    write(server, session)
    flushed = data_files(server)
    assert data_files(server, "backups") == flushed[1:]
    # The table's own option says no.
    assert data_files(server, "backups", table="other") == []
    # A compaction's output is no new data.
    server.nodetool("compact", "ks", "t")
    assert data_files(server, "backups") == flushed[1:]
    server.nodetool("disablebackup")
    write(server, session)
    assert data_files(server, "backups") == flushed[1:]


def test_incremental_backups_of_the_configuration(new_server):
    server = new_server(incremental_backups=True).start()
    schema(server.connect())
    write(server, server.connect())
    assert data_files(server, "backups") == data_files(server)


def test_a_snapshot_is_made_before_a_compaction(new_server):
    server = new_server(snapshot_before_compaction=True).start()
    session = server.connect()
    schema(session)
    write(server, session)
    write(server, session)
    before = data_files(server)
    server.nodetool("compact", "ks", "t")
    assert data_files(server, "snapshots", "*-compact-t") == before
    assert len(data_files(server)) == 1


def test_options_of_nodetool_snapshot(new_server):
    server = new_server().start()
    session = server.connect()
    schema(session)
    write(server, session)
    session.execute("INSERT INTO ks.t (k, v) VALUES (100, 'not flushed')")
    on_disk = data_files(server)
    out = server.nodetool("snapshot", "-t", "short", "-sf", "--ttl", "1h", "ks")
    assert "with snapshot name [short] and options {ttl=1h, skipFlush=true}" in out
    assert data_files(server) == on_disk == data_files(server, "snapshots", "short")
    manifest, = glob.glob(os.path.join(server.path, "data/data/ks/t-*/snapshots/short/manifest.json"))
    with open(manifest, encoding="utf-8") as file:
        content = json.load(file)
    assert content["expires_at"] > content["created_at"]
    assert content["files"] == on_disk
    server.nodetool("snapshot", "-t", "long", "-kt", "ks.t")
    listed = server.nodetool("listsnapshots")
    short, = [line for line in listed.splitlines() if line.startswith("short") and " t " in line]
    long, = [line for line in listed.splitlines() if line.startswith("long")]
    assert short.split()[-1] > short.split()[-2]
    assert len(long.split()) == len(short.split()) - 1
    assert "must be at least 60 seconds" in server.nodetool("snapshot", "--ttl", "59s", "ks", status=1)
    assert "Invalid duration" in server.nodetool("snapshot", "--ttl", "soon", "ks", status=1)


def test_auto_snapshot_ttl(new_server):
    server = new_server(auto_snapshot_ttl="1d").start()
    session = server.connect()
    schema(session)
    write(server, session)
    session.execute("TRUNCATE ks.t")
    manifest, = glob.glob(os.path.join(server.path, "data/data/ks/t-*/snapshots/truncated-*/manifest.json"))
    with open(manifest, encoding="utf-8") as file:
        assert json.load(file)["expires_at"] is not None


def test_several_data_directories(new_server, tmp_path):
    places = [tmp_path / "one", tmp_path / "two", tmp_path / "three"]
    server = new_server(data_file_directories=",".join(map(str, places))).start()
    session = server.connect()
    schema(session, "WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}")
    for first in range(0, 60, 10):
        for key in range(first, first + 10):
            session.execute(f"INSERT INTO ks.t (k, v) VALUES ({key}, 'x')")
        server.nodetool("flush", "ks", "t")
    for place in places:
        assert len(data_files(server, data=str(place))) == 2
    assert [str(place) in server.nodetool("datapaths", "--", "ks.t") for place in places] == [True] * 3
    # Another server may use none of them.
    other = new_server("other", data_file_directories=f"{tmp_path}/four,{places[2]}")
    with pytest.raises(AssertionError):
        other.start()
    assert f"{places[2]} is used by another server" in other.log()
    server.kill()
    server.start()
    session = server.connect()
    assert {row.k for row in session.execute("SELECT k FROM ks.t")} == set(range(60))
    session.execute("DROP TABLE ks.t")
    server.wait_until(lambda: not any(data_files(server, data=str(place)) for place in places), "the drop")
    assert len(data_files(server, "snapshots", "dropped-*", data=str(places[1]))) == 2
    server.nodetool("clearsnapshot", "--all")
    assert not any(data_files(server, "snapshots", "*", data=str(place)) for place in places)
