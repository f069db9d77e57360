# SPDX-License-Identifier: Apache-2.0
"""nodetool compact with arguments, upgradesstables, verify, scrub, tablestats -s and -t."""
import glob
import json
import os

import pytest

KEYS = 40


@pytest.fixture
def node(new_server):
    server = new_server().start()
    session = server.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("ks")
    return server, session


def table(session, name="t", columns="k int PRIMARY KEY, v text", options=""):
    session.execute(f"CREATE TABLE {name} ({columns}) WITH compaction = "
                    f"{{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}} {options}")


def fill(server, session, keys, name="t", value="x"):
    for key in keys:
        session.execute(f"INSERT INTO {name} (k, v) VALUES ({key}, '{value}')")
    server.nodetool("flush", "ks", name)


def data_files(server, name="t"):
    return sorted(glob.glob(os.path.join(server.path, f"data/data/ks/{name}-*/*-Data.db")))


def numbers(server, name="t"):
    return [int(os.path.basename(path).split("-")[1]) for path in data_files(server, name)]


def read(session, name="t"):
    return {row.k: row.v for row in session.execute(f"SELECT k, v FROM {name}")}


def damage(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x55]))


def test_compact_of_named_files(node):
    server, session = node
    table(session)
    for part in range(4):
        fill(server, session, range(part * 10, part * 10 + 10))
    assert numbers(server) == [1, 2, 3, 4]
    files = data_files(server)
    server.nodetool("compact", "--user-defined", files[0], os.path.basename(files[2]))
    assert numbers(server) == [2, 4, 5]
    assert set(read(session)) == set(range(40))
    assert "only 0 of these 1 files are active SSTables" in server.nodetool(
        "compact", "--user-defined", files[0], status=1)
    server.nodetool("compact", "--user-defined", "-st", "1", files[1], status=2)


def test_compact_of_a_partition(node):
    server, session = node
    table(session)
    for part in range(4):
        fill(server, session, range(part * 10, part * 10 + 10))
    fill(server, session, [5], value="new")
    session.execute("DELETE FROM t WHERE k = 25")
    server.nodetool("compact", "--partition", "5", "ks", "t")
    # The flush of the deletion made the sixth.
    assert numbers(server) == [2, 3, 4, 6, 7]
    expected = {key: "x" for key in range(40) if key != 25} | {5: "new"}
    assert read(session) == expected
    server.nodetool("compact", "--partition", "no number", "ks", "t", status=1)


def test_compact_of_a_token_range(node):
    server, session = node
    table(session)
    tokens = {}
    for key in range(6):
        fill(server, session, [key])
        tokens[key] = session.execute(f"SELECT token(k) AS t FROM t WHERE k = {key}").one().t
    order = sorted(tokens, key=tokens.get)
    generation = {key: key + 1 for key in range(6)}
    chosen = order[2:5]
    server.nodetool("compact", "-st", tokens[order[1]], "-et", tokens[order[4]], "ks", "t")
    left = sorted(generation[key] for key in order if key not in chosen)
    assert numbers(server) == sorted(left + [7])
    # Wraps around: what is behind the start or before the end.
    server.nodetool("compact", "-st", tokens[order[4]], "-et", tokens[order[0]], "ks", "t")
    assert numbers(server) == sorted([generation[order[1]], 7, 8])
    assert set(read(session)) == set(range(6))


def test_upgradesstables(node):
    server, session = node
    table(session)
    fill(server, session, range(10))
    session.execute("DELETE FROM t WHERE k = 3")
    server.nodetool("flush", "ks", "t")
    server.nodetool("upgradesstables", "ks", "t")
    assert numbers(server) == [1, 2]
    server.nodetool("upgradesstables", "-a", "ks", "t")
    assert numbers(server) == [3, 4]
    assert set(read(session)) == set(range(10)) - {3}


def test_verify_can_ask_for_the_policy(new_server):
    server = new_server(disk_failure_policy="stop_paranoid").start()
    session = server.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("ks")
    table(session)
    fill(server, session, range(KEYS))
    damage(data_files(server)[0], 50)
    server.nodetool("verify", "ks", "t", status=2)
    assert server.nodetool("statusbinary") == "running\n"
    server.nodetool("verify", "-d", "ks", "t", status=2)
    server.wait_until(lambda: server.nodetool("statusbinary") == "not running\n", "a stop")


def test_rewriting_takes_jobs(node):
    server, session = node
    table(session)
    for part in range(5):
        fill(server, session, range(part * 10, part * 10 + 10))
    for jobs, first in ((1, 6), (3, 11), (0, 16)):
        server.nodetool("upgradesstables", "-a", "-j", jobs, "ks", "t")
        assert sorted(numbers(server)) == list(range(first, first + 5))
    server.nodetool("garbagecollect", "-j", 4, "ks", "t")
    assert sorted(numbers(server)) == list(range(21, 26))
    server.nodetool("scrub", "-j", 4, "-ns", "ks", "t")
    assert sorted(numbers(server)) == list(range(26, 31))
    server.nodetool("cleanup", "-j", 4, "ks", "t")
    assert set(read(session)) == set(range(50))
    server.nodetool("upgradesstables", "-a", "-j", "x", "ks", "t", status=1)


def test_recompress_takes_those_that_are_compressed_otherwise(node):
    server, session = node
    table(session)
    fill(server, session, range(10))
    session.execute("ALTER TABLE t WITH compression = {'class': 'ZstdCompressor', 'chunk_length_in_kb': 16}")
    server.nodetool("recompress_sstables", "ks", "t")
    assert numbers(server) == [2]
    server.nodetool("recompress_sstables", "ks", "t")
    assert numbers(server) == [2]
    session.execute("ALTER TABLE t WITH compression = {'enabled': 'false'}")
    server.nodetool("recompress_sstables", "ks", "t")
    assert numbers(server) == [3]
    assert set(read(session)) == set(range(10))


def test_import_takes_sstables_of_any_folder(node, tmp_path):
    server, session = node
    table(session)
    fill(server, session, range(10))
    fill(server, session, range(10, 20))
    folder = tmp_path / "in"
    folder.mkdir()
    server.nodetool("snapshot", "-t", "all", "ks")
    session.execute("TRUNCATE t")
    source = glob.glob(os.path.join(server.path, "data/data/ks/t-*/snapshots/all"))[0]
    for name in os.listdir(source):
        if name.startswith("nb-"):
            (folder / name).write_bytes(open(os.path.join(source, name), "rb").read())
    server.nodetool("import", "-p", "ks", "t", folder)
    assert set(read(session)) == set(range(20))
    assert len(list(folder.glob("*-Data.db"))) == 2
    session.execute("TRUNCATE t")
    # One is damaged: it stays where it is and is told of, the other is taken and leaves.
    path = str(folder / "nb-2-big-Data.db")
    damage(path, 20)
    out = server.nodetool("import", "ks", "t", folder, status=2)
    assert path in out and "1 SSTables were not imported" in out
    assert set(read(session)) == set(range(10))
    assert [file.name for file in folder.glob("*-Data.db")] == ["nb-2-big-Data.db"]
    server.nodetool("import", "ks", "t", tmp_path / "nowhere", status=2)
    server.nodetool("import", "ks", "none", folder, status=1)
    server.stop()
    server.start()
    assert set(read(server.connect("ks"))) == set(range(10))


def test_getsstables_takes_hex_and_shows_levels(node):
    server, session = node
    table(session)
    fill(server, session, range(3))
    path = data_files(server)[0]
    assert server.nodetool("getsstables", "ks", "t", 1) == path + "\n"
    assert server.nodetool("getsstables", "-hf", "-l", "ks", "t", "00000001") == f"0: {path}\n"
    assert server.nodetool("getsstables", "-hf", "ks", "t", "00000009") == ""
    server.nodetool("getsstables", "-hf", "ks", "t", "1x", status=1)


def test_verify_names_what_is_damaged(node):
    server, session = node
    table(session)
    fill(server, session, range(KEYS))
    fill(server, session, range(KEYS))
    server.nodetool("verify", "-f", "-e", "ks", "t")
    server.nodetool("verify")
    path = data_files(server)[1]
    damage(path, 50)
    out = server.nodetool("verify", "ks", "t", status=2)
    assert f"{path} is damaged" in out and "1 of 2 SSTables are damaged" in out
    # Asked for by somebody: disk_failure_policy has nothing to do with it.
    assert "Stopping transports" not in server.log()
    # The index is sound.
    server.nodetool("verify", "-q", "-t", "-c", "ks", "t")
    server.nodetool("verify", "-r", "ks", "t", status=2)


def test_scrub_keeps_what_can_be_read(node):
    server, session = node
    # Chunks of their own for few partitions each.
    table(session, options="AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}")
    import random
    value = lambda key: random.Random(key).randbytes(1500).hex()
    for key in range(KEYS):
        session.execute(f"INSERT INTO t (k, v) VALUES ({key}, '{value(key)}')")
    server.nodetool("flush", "ks", "t")
    fill(server, session, range(100, 110))
    server.stop()
    damage(data_files(server)[0], os.path.getsize(data_files(server)[0]) // 2)
    server.start()
    session = server.connect("ks")
    with pytest.raises(Exception):
        read(session)
    out = server.nodetool("scrub", "ks", "t")
    assert "partitions of ks.t could not be read and were left out" in out
    left = read(session)
    assert set(range(100, 110)) <= set(left)
    assert KEYS - 4 <= len(left) - 10 < KEYS
    assert all(left[key] == value(key) for key in left if key < 100)
    assert numbers(server) == [3, 4]
    before = glob.glob(os.path.join(server.path, "data/data/ks/t-*/snapshots/pre-scrub-*/*-Data.db"))
    assert len(before) == 2
    server.nodetool("verify", "-e", "ks", "t")
    server.nodetool("scrub", "-ns", "ks", "t")
    assert read(session) == left
    assert len(glob.glob(os.path.join(server.path, "data/data/ks/t-*/snapshots/pre-scrub-*"))) == 1


def test_scrub_of_counters_wants_to_be_told(node):
    server, session = node
    table(session, "c", "k int PRIMARY KEY, n counter")
    for key in range(KEYS):
        session.execute(f"UPDATE c SET n = n + {key} WHERE k = {key}")
    server.nodetool("flush", "ks", "c")
    server.stop()
    damage(data_files(server, "c")[0], 60)
    server.start()
    assert "a partition of a counter table is damaged" in server.nodetool("scrub", "ks", "c", status=2)
    assert numbers(server, "c") == [1]
    server.nodetool("scrub", "-s", "ks", "c")
    list(server.connect("ks").execute("SELECT * FROM c"))


def test_tablestats_sorted(node):
    server, session = node
    table(session, "small")
    table(session, "large")
    fill(server, session, range(5), "small")
    fill(server, session, range(200), "large")
    out = server.nodetool("tablestats", "-s", "writes", "-t", "1")
    assert "(showing top 1 by writes)" in out
    assert [line.strip() for line in out.splitlines() if "Table: " in line] == ["Table: ks.large"]
    assert "\tTable: ks.large\n\tSSTable count: 1\n\tOld SSTable count: 0\n" in out
    out = server.nodetool("tablestats", "-s", "space_used_live", "ks")
    assert [line.strip() for line in out.splitlines() if "Table: " in line] == ["Table: ks.large", "Table: ks.small"]
    out = json.loads(server.nodetool("tablestats", "-s", "writes", "-t", "1", "-F", "json"))
    assert out["ks.large"]["local_write_count"] == 200 and "ks.small" not in out
    out = server.nodetool("tablestats", "-i", "ks.small", "ks.large", "-F", "yaml")
    assert "small:" not in out and "local:" in out
    out = server.nodetool("tablestats", "ks.small")
    assert "\t\tTable: small\n\t\tSSTable count: 1\n\t\tOld SSTable count: 0\n" in out
    assert "argument for sort must be one of: " in server.nodetool("tablestats", "-s", "size", status=1)
    assert "without specifying a sort key" in server.nodetool("tablestats", "-t", "3", status=1)


def dump(server, name="t"):
    return sum(os.path.getsize(path) for path in data_files(server, name))


@pytest.mark.parametrize("granularity", ["ROW", "CELL"])
def test_garbagecollect(node, granularity):
    server, session = node
    session.execute("CREATE TABLE t (k int, c int, s text static, v text, w text, PRIMARY KEY (k, c)) WITH compaction = "
                    "{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'} "
                    "AND compression = {'enabled': 'false'}")
    big = "x" * 1000
    for k in range(6):
        session.execute(f"INSERT INTO t (k, s) VALUES ({k}, 'static {big}')")
        for c in range(10):
            session.execute(f"INSERT INTO t (k, c, v, w) VALUES ({k}, {c}, '{big}', '{big}')")
    server.nodetool("flush", "ks", "t")
    session.execute("DELETE FROM t WHERE k = 0")
    session.execute("DELETE FROM t WHERE k = 1 AND c >= 5")
    session.execute("DELETE FROM t WHERE k = 2 AND c = 3")
    session.execute("DELETE v FROM t WHERE k = 3 AND c = 3")
    session.execute("INSERT INTO t (k, c, v) VALUES (4, 4, 'new')")
    session.execute("INSERT INTO t (k, s) VALUES (5, 'new')")
    server.nodetool("flush", "ks", "t")
    everything = lambda: sorted(tuple(row) for row in session.execute("SELECT k, c, s, v, w FROM t"))
    before = everything()
    sizes = [os.path.getsize(path) for path in data_files(server)]
    server.nodetool("garbagecollect", "-g", granularity, "ks", "t")
    assert everything() == before
    assert numbers(server) == [3, 4]
    # Both are rewritten at one time, so either may get the smaller generation.
    less = max(sizes) - max(os.path.getsize(path) for path in data_files(server))
    # Bytes that are gone: a partition with its static row, five rows, one row; cells of three more rows.
    deleted = 21_000 + 10_000 + 2_000
    replaced = 3_000 if granularity == "CELL" else 0
    assert deleted + replaced <= less < deleted + replaced + 1_500
    # The deletions are still there: nothing comes back when what they hid is read from elsewhere.
    server.nodetool("compact", "ks", "t")
    assert everything() == before
    assert "must be CELL or ROW" in server.nodetool("garbagecollect", "-g", "TABLE", "ks", "t", status=1)
