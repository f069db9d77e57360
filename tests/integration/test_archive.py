# SPDX-License-Identifier: Apache-2.0
"""commitlog_archiving.properties: segments are archived when they are full, and a node is restored from the archive."""
import os
import time

import pytest

from conftest import SLOWNESS

SEGMENT = "256KiB"


@pytest.fixture
def archived(new_server, tmp_path):
    """Makes servers whose configuration has these properties beside it."""
    def make(name, **properties):
        folder = tmp_path / f"etc-{name}"
        folder.mkdir()
        (folder / "helenus.yaml").write_text("")
        (folder / "commitlog_archiving.properties").write_text(
            "# comment\n" + "".join(f"{key} = {value}\n" for key, value in properties.items()))
        return new_server(name, config=str(folder / "helenus.yaml"), commitlog_segment_size=SEGMENT)
    return make


def write(session, first, last, timestamp=None):
    using = "" if timestamp is None else f" USING TIMESTAMP {timestamp}"
    insert = session.prepare(f"INSERT INTO ks.t (k, v) VALUES (?, ?){using}")
    for number in range(first, last):
        session.execute(insert, (number, "x" * 2000))


def schema(session):
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v text)")


def keys(session):
    return {row.k for row in session.execute("SELECT k FROM ks.t")}


def commitlog(server):
    return os.path.join(server.path, "data", "commitlog")


def is_archived(folder, archive):
    """Is all that is in the archive and still in the log noted as archived, and nothing more on its way?"""
    archived = set(os.listdir(archive))
    time.sleep(SLOWNESS / 2)
    there = set(os.listdir(folder))
    return archived == set(os.listdir(archive)) and all(f"{name}.archived" in there for name in archived & there)


def test_a_full_segment_is_archived_before_anything_is_flushed(archived, tmp_path):
    archive = tmp_path / "archive"
    archive.mkdir()
    server = archived("node", archive_command=f"/bin/ln %path {archive}/%name").start()
    session = server.connect()
    schema(session)
    write(session, 0, 600)
    server.wait_until(lambda: len(list(archive.iterdir())) >= 3, "archiving")
    # Still there: nothing was flushed.
    names = {each.name for each in archive.iterdir()}
    assert names <= set(os.listdir(commitlog(server)))
    contents = {name: (archive / name).read_bytes() for name in names}
    server.nodetool("flush")
    server.wait_until(lambda: not names & set(os.listdir(commitlog(server))), "deletion of segments")
    write(session, 600, 1200)
    # A hard link: nobody may have written into it.
    assert contents == {name: (archive / name).read_bytes() for name in names}
    assert not [name for name in os.listdir(commitlog(server))
                if name.endswith(".archived") and name[:-9] in names]
    # ln fails where the name is there: no segment is archived twice, killed and restarted or not. One that is killed between
    # the command and the note of it has to run the command again, so nothing may be on its way.
    server.wait_until(lambda: is_archived(commitlog(server), archive), "notes of what was archived")
    server.kill()
    server.start()
    assert server.stop() == 0
    assert "File exists" not in server.log()
    assert "is not archived" not in server.log()


def test_a_segment_that_cannot_be_archived_is_kept(archived, tmp_path):
    server = archived("node", archive_command=f"/bin/cp %path {tmp_path}/missing/%name").start()
    session = server.connect()
    schema(session)
    write(session, 0, 400)
    server.wait_until(lambda: "is not archived and is kept" in server.log(), "the error")
    before = {name for name in os.listdir(commitlog(server)) if not name.endswith(".tmp")}
    server.nodetool("flush")
    time.sleep(0.5)
    assert before <= set(os.listdir(commitlog(server)))
    server.kill()
    # Replayed, needed no more, and still the only copy.
    server.start()
    assert keys(server.connect()) == set(range(400))
    kept = os.path.join(commitlog(server), "unarchived")
    assert before <= set(os.listdir(kept)) | {"unarchived"}
    server.stop()
    (tmp_path / "missing").mkdir()
    server.start()
    assert os.listdir(kept) == []
    assert {name for name in before if name.endswith(".log")} <= set(os.listdir(tmp_path / "missing"))
    assert keys(server.connect()) == set(range(400))


def test_a_new_node_is_restored_up_to_a_point_in_time(archived, tmp_path):
    archive = tmp_path / "archive"
    archive.mkdir()
    server = archived("node", archive_command=f"/bin/cp -f %path {archive}/%name").start()
    session = server.connect()
    schema(session)
    point = int(time.time()) + 1
    write(session, 0, 300, point * 1000000 + 999)
    write(session, 300, 600, (point + 1) * 1000000)
    # The clean stop archives the last segment.
    assert server.stop() == 0

    other = archived("other", restore_command="/bin/cp -f %from %to", restore_directories=archive,
                     restore_point_in_time=time.strftime("%Y:%m:%d %H:%M:%S", time.gmtime(point)))
    other.start()
    assert keys(other.connect()) == set(range(300))
    assert "after restore_point_in_time left out" in other.log()
    assert other.stop() == 0

    whole = archived("whole", restore_command="/bin/cp -f %from %to", restore_directories=archive).start()
    assert keys(whole.connect()) == set(range(600))


@pytest.mark.parametrize("properties, text", [
    ({"restore_point_in_time": "2026-12-01"}, "yyyy:MM:dd HH:mm:ss"),
    ({"precision": "micros"}, "MICROSECONDS"),
    ({"restore_directories": "/tmp/nowhere-at-all"}, "needs a restore_command"),
])
def test_wrong_properties_are_named(archived, properties, text):
    server = archived("node", **properties)
    with pytest.raises(AssertionError):
        server.start()
    assert server.wait() != 0
    assert text in server.log()


@pytest.mark.parametrize("compressor", ["LZ4Compressor", "ZstdCompressor"])
def test_compressed_segments_are_replayed_archived_and_restored(archived, tmp_path, compressor):
    archive = tmp_path / "archive"
    archive.mkdir()
    server = archived("node", archive_command=f"/bin/cp %path {archive}/%name")
    server.options |= {"commitlog_compression__class_name": compressor, "commitlog_sync": "batch"}
    server.start()
    session = server.connect()
    schema(session)
    write(session, 0, 600)
    server.kill()
    server.start()
    assert keys(server.connect()) == set(range(600))
    write(server.connect(), 600, 1200)
    server.wait_until(lambda: len(list(archive.iterdir())) >= 3, "archiving")
    assert server.stop() == 0
    # 600 rows of 2000 equal bytes: uncompressed they would fill five segments of 256 KiB.
    assert sum(each.stat().st_size for each in archive.iterdir()) < 800_000
    other = archived("other", restore_command="/bin/cp -f %from %to", restore_directories=archive).start()
    assert keys(other.connect()) == set(range(1200))


def test_an_unknown_compressor_is_refused(new_server):
    server = new_server(commitlog_compression__class_name="BrotliCompressor")
    with pytest.raises(AssertionError):
        server.start()
    assert server.wait() == 2
    assert "there is no 'BrotliCompressor': LZ4Compressor, SnappyCompressor" in server.log()
