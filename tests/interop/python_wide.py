# SPDX-License-Identifier: Apache-2.0
"""cassandra-driver for Python, the wider half: shapes and sizes of values, results of conditional statements, what metadata
says of all kinds of schema, many streams, and what a client sees of what there is not."""
import datetime
import logging
import os
import time
import uuid

from cassandra import ConsistencyLevel, InvalidRequest, OperationTimedOut
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import (ConstantReconnectionPolicy, FallthroughRetryPolicy, RoundRobinPolicy,
                                WhiteListRoundRobinPolicy)
from cassandra.query import (BatchStatement, BatchType, SimpleStatement, UNSET_VALUE, dict_factory,
                             tuple_factory)
from cassandra.util import Date, Duration, Time

from python_checks import check, equal, raises, until

logging.disable(logging.CRITICAL)
HOST, PORT = os.environ["HOST"], int(os.environ["PORT"])
# A ring's addresses, where it is one: then all rows are read where they were not written.
NODES = os.environ.get("NODES", HOST).split(",")
FACTOR = 1 if len(NODES) == 1 else 3
REPLICATION = f"{{'class': 'SimpleStrategy', 'replication_factor': {FACTOR}}}"
LEVEL = ConsistencyLevel.ONE if FACTOR == 1 else ConsistencyLevel.QUORUM


def connect(version=5, compression=False, keyspace="wide", profiles=None, **options):
    cluster = Cluster([HOST], port=PORT, protocol_version=version, compression=compression,
                      connect_timeout=60, control_connection_timeout=60,
                      reconnection_policy=ConstantReconnectionPolicy(0.2, max_attempts=None),
                      execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(
                          load_balancing_policy=RoundRobinPolicy() if FACTOR > 1
                          else WhiteListRoundRobinPolicy([HOST]), consistency_level=LEVEL,
                          request_timeout=60), **(profiles or {})}, **options)
    return cluster.connect(keyspace)


def make(session):
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS wide WITH replication = {REPLICATION}")
    session.set_keyspace("wide")


NATIVE = {"ascii": "x", "bigint": 1, "blob": b"x", "boolean": True, "date": Date(1), "decimal": None,
          "double": 1.5, "duration": Duration(1, 2, 3), "float": 1.5, "inet": "::1", "int": 1,
          "smallint": 1, "text": "x", "time": Time(1), "timestamp": datetime.datetime(2024, 1, 1),
          "timeuuid": uuid.UUID("550e8400-e29b-11d4-a716-446655440000"), "tinyint": 1,
          "uuid": uuid.UUID(int=5), "varint": 12345678901234567890}
# Types whose values may have no bytes (an empty blob or text is a value like any other).
MAY_BE_EMPTY = {"bigint", "boolean", "decimal", "double", "float", "inet", "int", "timestamp", "timeuuid", "uuid",
                "varint"}


def null_unset_empty(session):
    """Each type: null deletes, unset leaves, no bytes are no null where the type allows it."""
    columns = ", ".join(f"c_{name} {name}" for name in NATIVE)
    session.execute(f"CREATE TABLE IF NOT EXISTS states (k int PRIMARY KEY, {columns})")
    for name, value in NATIVE.items():
        write = session.prepare(f"INSERT INTO states (k, c_{name}) VALUES (?, ?)")
        read = session.prepare(f"SELECT c_{name} FROM states WHERE k = ?")
        when = session.prepare(f"SELECT writetime(c_{name}) FROM states WHERE k = ?")
        session.execute(write, (1, value))
        got = session.execute(read, (1,)).one()[0]
        if value is not None:
            equal(got, value)
            session.execute(write, (1, UNSET_VALUE))
            equal(session.execute(read, (1,)).one()[0], value)
        session.execute(write, (1, None))
        equal(session.execute(read, (1,)).one()[0], None)
        bound = write.bind((2, None))
        bound.values[1] = b""
        if name in MAY_BE_EMPTY or name in ("ascii", "text", "blob"):
            session.execute(bound)
            assert session.execute(when, (2,)).one()[0] is not None, name
        else:
            raises(InvalidRequest, session.execute, bound)


def nested(session):
    """User types in tuples in maps in user types, frozen and not; and more fields later."""
    for text in ("TABLE IF EXISTS trees", "TYPE IF EXISTS twig", "TYPE IF EXISTS leaf"):
        session.execute("DROP " + text)
    session.execute("CREATE TYPE leaf (a int, b frozen<list<text>>)")
    session.execute("CREATE TYPE twig (l frozen<leaf>, m frozen<map<text, frozen<tuple<int, "
                    "frozen<set<frozen<leaf>>>>>>>)")
    session.execute("CREATE TABLE trees (k int PRIMARY KEY, f frozen<twig>, t twig, "
                    "x map<frozen<tuple<int, text>>, frozen<list<frozen<map<int, frozen<leaf>>>>>>)")
    session.cluster.refresh_user_type_metadata("wide", "twig")
    leaf = (7, ["x", "y"])
    twig = (leaf, {"one": (1, [leaf, (8, None)]), "none": (None, None)})
    write = session.prepare("INSERT INTO trees (k, f, t, x) VALUES (?, ?, ?, ?)")
    session.execute(write, (1, twig, twig, {(1, "a"): [{5: leaf}, {}], (2, None): []}))
    row = session.execute("SELECT * FROM trees WHERE k = 1").one()
    for got in (row.f, row.t):
        equal((got.l.a, list(got.l.b)), leaf)
        equal(got.m["one"][0], 1)
        equal(sorted((each.a, each.b) for each in got.m["one"][1]), [(7, ["x", "y"]), (8, None)])
        equal(tuple(got.m["none"]), (None, None))
    equal((row.x[(1, "a")][0][5].a, list(row.x[(1, "a")][1]), list(row.x[(2, None)])), (7, [], []))
    session.execute("UPDATE trees SET t.l = {a: 9} WHERE k = 1")
    equal(session.execute("SELECT t.l.a FROM trees WHERE k = 1").one()[0], 9)
    session.execute("ALTER TYPE leaf ADD c double")
    row = session.execute("SELECT f FROM trees WHERE k = 1").one()
    equal((row.f.l.a, row.f.l.c), (7, None))


def vectors(session):
    session.execute("CREATE TABLE IF NOT EXISTS vectors (k int PRIMARY KEY, f vector<float, 3>, t vector<text, 2>)")
    session.execute("INSERT INTO vectors (k, f, t) VALUES (1, [1.5, -2, 0], ['a', 'longer'])")
    row = session.execute("SELECT * FROM vectors").one()
    equal(([float(x) for x in row.f], list(row.t)), ([1.5, -2.0, 0.0], ["a", "longer"]))
    write = session.prepare("INSERT INTO vectors (k, f, t) VALUES (?, ?, ?)")
    session.execute(write, (2, [1, 2, 3], ["x", ""]))
    equal(list(session.execute("SELECT t FROM vectors WHERE k = 2").one().t), ["x", ""])
    raises(Exception, session.execute, "INSERT INTO vectors (k, f) VALUES (3, [1, 2])")


def many_columns(session):
    count = 600
    names = [f"c{at}" for at in range(count)]
    session.execute(f"CREATE TABLE IF NOT EXISTS columns (k int PRIMARY KEY, {', '.join(n + ' int' for n in names)})")
    write = session.prepare(f"INSERT INTO columns (k, {', '.join(names)}) VALUES (?{', ?' * count})")
    session.execute(write, [1] + list(range(count)))
    read = session.prepare("SELECT * FROM columns WHERE k = ?")
    row = session.execute(read, (1,)).one()
    equal({name: getattr(row, name) for name in names}, {name: at for at, name in enumerate(names)})
    equal(len(session.cluster.metadata.keyspaces["wide"].tables["columns"].columns), count + 1)
    # Some of them: the others stay null.
    session.execute(write, [2] + [at if at % 7 == 0 else UNSET_VALUE for at in range(count)])
    row = session.execute(read, (2,)).one()
    equal([getattr(row, f"c{at}") for at in (0, 1, 7, 595)], [0, None, 7, 595])


def large(session):
    """Values up to the frame's limit; what is larger is refused and the connection lives."""
    session.execute("CREATE TABLE IF NOT EXISTS large (k int PRIMARY KEY, v blob, m map<int, text>)")
    write = session.prepare("INSERT INTO large (k, v) VALUES (?, ?)")
    read = session.prepare("SELECT v FROM large WHERE k = ?")
    for size in (131071 - 9, 131072, 1 << 20, 7 << 20):
        value = os.urandom(1 << 16) * (size // (1 << 16)) + b"x" * (size % (1 << 16))
        session.execute(write, (1, value))
        assert session.execute(read, (1,)).one().v == value, size
    elements = {at: "e" * 100 for at in range(20000)}
    session.execute(session.prepare("UPDATE large SET m = ? WHERE k = 2"), (elements,))
    equal(dict(session.execute("SELECT m FROM large WHERE k = 2").one().m), elements)
    rows = [(at, b"r" * 100000) for at in range(10, 60)]
    execute_concurrent_with_args(session, write, rows, concurrency=10)
    found = {row.k: row.v for row in session.execute(SimpleStatement("SELECT k, v FROM large", fetch_size=7))}
    assert all(found[key] == value for key, value in rows)
    error = raises(Exception, session.execute, write, (3, b"x" * (20 << 20)))
    until(lambda: works(session), "a connection after it", 60)
    assert error is not None


def works(session):
    try:
        return session.execute("SELECT k FROM large WHERE k = 1").one() is not None
    except Exception:  # pylint: disable=broad-except
        return False


def conditional_shapes(session):
    """The columns of each kind of answer to a condition, applied and not."""
    session.execute("CREATE TABLE IF NOT EXISTS lwt (p int, c int, s int static, v text, m map<text, int>, "
                    "PRIMARY KEY (p, c))")
    session.execute("DELETE FROM lwt WHERE p = 1")
    profile = session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=dict_factory)

    def answer(text):
        return session.execute(text, execution_profile=profile).one()
    equal(answer("INSERT INTO lwt (p, c, v) VALUES (1, 1, 'a') IF NOT EXISTS"), {"[applied]": True})
    equal(answer("INSERT INTO lwt (p, c, v) VALUES (1, 1, 'b') IF NOT EXISTS"),
          {"[applied]": False, "p": 1, "c": 1, "s": None, "m": None, "v": "a"})
    equal(answer("UPDATE lwt SET v = 'c' WHERE p = 1 AND c = 1 IF v = 'z' AND m['k'] = 4"),
          {"[applied]": False, "v": "a", "m": None})
    equal(answer("UPDATE lwt SET s = 1 WHERE p = 1 IF s = null"), {"[applied]": True})
    equal(answer("UPDATE lwt SET s = 2 WHERE p = 1 IF s IN (5, 6)"), {"[applied]": False, "s": 1})
    equal(answer("UPDATE lwt SET v = 'x' WHERE p = 1 AND c = 9 IF EXISTS"), {"[applied]": False})
    equal(answer("UPDATE lwt SET v = 'x' WHERE p = 1 AND c = 9 IF v != 'y'"), {"[applied]": True})
    equal(answer("DELETE FROM lwt WHERE p = 1 AND c = 9 IF v > 'y'"), {"[applied]": False, "v": "x"})
    equal(answer("DELETE FROM lwt WHERE p = 1 AND c = 9 IF EXISTS"), {"[applied]": True})
    # SimpleStrategy counts replicas of all data centers: no level of one of them is sure to be met.
    serial = ConsistencyLevel.LOCAL_SERIAL if FACTOR == 1 else ConsistencyLevel.SERIAL
    batch = BatchStatement(consistency_level=LEVEL, serial_consistency_level=serial)
    batch.add("INSERT INTO lwt (p, c, v) VALUES (1, 2, 'b') IF NOT EXISTS")
    batch.add("UPDATE lwt SET v = 'q' WHERE p = 1 AND c = 1 IF v = 'nope'")
    rows = list(session.execute(batch, execution_profile=profile))
    assert rows[0]["[applied]"] is False and rows[0]["v"] == "a", rows
    equal(set(rows[0]), {"[applied]", "p", "c", "s", "v", "m"} & set(rows[0]))
    batch = BatchStatement(consistency_level=LEVEL)
    batch.add("INSERT INTO lwt (p, c, v) VALUES (1, 2, 'b') IF NOT EXISTS")
    batch.add("INSERT INTO lwt (p, s) VALUES (1, 10)")
    equal(list(session.execute(batch, execution_profile=profile)), [{"[applied]": True}])
    batch = BatchStatement(consistency_level=LEVEL)
    batch.add("INSERT INTO lwt (p, c, v) VALUES (1, 3, 'b') IF NOT EXISTS")
    batch.add("INSERT INTO lwt (p, c, v) VALUES (2, 3, 'b')")
    error = raises(InvalidRequest, session.execute, batch)
    assert "multiple partitions" in str(error), error


def batch_kinds(session):
    session.execute("CREATE TABLE IF NOT EXISTS pairs (k int PRIMARY KEY, v text)")
    session.execute("CREATE TABLE IF NOT EXISTS tally (k int PRIMARY KEY, n counter)")
    write = session.prepare("INSERT INTO pairs (k, v) VALUES (?, ?)")
    for kind in (BatchType.LOGGED, BatchType.UNLOGGED):
        batch = BatchStatement(batch_type=kind, consistency_level=LEVEL)
        for key in range(30):
            batch.add(write, (key, str(kind)))
        batch.add("INSERT INTO pairs (k, v) VALUES (%s, %s)", (30, str(kind)))
        batch.add(SimpleStatement("DELETE FROM pairs WHERE k = 3"))
        session.execute(batch)
        session.execute(BatchStatement(batch_type=kind))  # nothing in it
    error = raises(InvalidRequest, session.execute, BatchStatement(batch_type=BatchType.LOGGED).add(
        "SELECT * FROM pairs"))
    assert error is not None
    tally = BatchStatement(batch_type=BatchType.COUNTER)
    tally.add("INSERT INTO pairs (k, v) VALUES (1, 'x')")
    raises(InvalidRequest, session.execute, tally)


def streams(session):
    """More requests at once than a connection has streams of; each gets its own answer."""
    session.execute("CREATE TABLE IF NOT EXISTS pairs (k int PRIMARY KEY, v text)")
    write = session.prepare("INSERT INTO pairs (k, v) VALUES (?, ?)")
    read = session.prepare("SELECT k, v FROM pairs WHERE k = ?")
    count, total = 3000, 40000 if FACTOR == 1 else 8000
    execute_concurrent_with_args(session, write, [(key, f"v{key}") for key in range(count)], concurrency=200)
    futures = [session.execute_async(read, (at % count,), timeout=300) for at in range(total)]
    for at, future in enumerate(futures):
        equal(tuple(future.result().one()), (at % count, f"v{at % count}"))


def profiles():
    session = connect(profiles={
        "tuples": ExecutionProfile(row_factory=tuple_factory, request_timeout=60,
                                   consistency_level=ConsistencyLevel.ONE),
        "hurry": ExecutionProfile(request_timeout=0.000001, retry_policy=FallthroughRetryPolicy())})
    equal(type(session.execute("SELECT key FROM system.local", execution_profile="tuples").one()), tuple)

    def hurry(text):
        session.execute(text, execution_profile="hurry")
    raises(OperationTimedOut, hurry, "SELECT * FROM large")
    # An answer that comes when nobody waits for it any more frees its stream.
    for _ in range(200):
        raises(OperationTimedOut, hurry, "SELECT key FROM system.local")
    equal(session.execute("SELECT key FROM system.local").one().key, "local")
    session.cluster.shutdown()


def heartbeats():
    """Idle connections are asked again and again, and stay."""
    session = connect(idle_heartbeat_interval=0.5, idle_heartbeat_timeout=30)
    before = [id(connection) for holder in session.cluster.get_connection_holders()
              for connection in holder.get_connections()]
    time.sleep(3)
    after = [id(connection) for holder in session.cluster.get_connection_holders()
             for connection in holder.get_connections()]
    assert set(before) <= set(after), (before, after)
    session.cluster.shutdown()


def schema_storm(session):
    """Many changes at once: the driver's picture, brought together from events, is the server's in the end."""
    other = connect(4)
    for count in range(30):
        session.execute(f"CREATE TABLE IF NOT EXISTS storm{count} (k int PRIMARY KEY)")
        session.execute(f"ALTER TABLE storm{count} ADD v{count} int")
    tables = other.cluster.metadata.keyspaces["wide"].tables
    until(lambda: all(f"v{count}" in tables[f"storm{count}"].columns if f"storm{count}" in tables else False
                      for count in range(30)), "all tables and columns", 60)
    for count in range(30):
        session.execute(f"DROP TABLE storm{count}")
    until(lambda: not any(name.startswith("storm") for name in tables), "all dropped", 60)
    other.cluster.shutdown()


OPTIONS = """CREATE TABLE IF NOT EXISTS options (p int, q text, c timeuuid, d int, s text static, v blob,
    PRIMARY KEY ((p, q), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)
    AND additional_write_policy = '99PERCENTILE' AND bloom_filter_fp_chance = 0.05
    AND caching = {'keys': 'NONE', 'rows_per_partition': '10'} AND cdc = false AND comment = 'it''s "so"'
    AND compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '32'}
    AND compression = {'class': 'ZstdCompressor', 'chunk_length_in_kb': '32', 'compression_level': '5'}
    AND crc_check_chance = 0.5 AND default_time_to_live = 3600 AND gc_grace_seconds = 100
    AND max_index_interval = 4096 AND memtable_flush_period_in_ms = 100000 AND min_index_interval = 256
    AND read_repair = 'NONE' AND speculative_retry = '50ms'"""


def all_metadata(session):
    """Options as they were given; kinds of which there are none; what the driver writes makes the same again."""
    session.execute(OPTIONS)
    keyspace = session.cluster.metadata.keyspaces["wide"]
    table = keyspace.tables["options"]
    for name, value in (("bloom_filter_fp_chance", 0.05), ("comment", "it's \"so\""), ("crc_check_chance", 0.5),
                        ("default_time_to_live", 3600), ("gc_grace_seconds", 100), ("max_index_interval", 4096),
                        ("min_index_interval", 256), ("memtable_flush_period_in_ms", 100000),
                        ("read_repair", "NONE"), ("speculative_retry", "50ms")):
        equal((name, table.options[name]), (name, value))
    equal(dict(table.options["caching"]), {"keys": "NONE", "rows_per_partition": "10"})
    equal([column.name for column in table.partition_key], ["p", "q"])
    equal([(column.name, column.is_reversed) for column in table.clustering_key], [("c", True), ("d", False)])
    equal((keyspace.functions, keyspace.aggregates, keyspace.views, keyspace.indexes), ({}, {}, {}, {}))
    equal((table.indexes, table.views, table.triggers), ({}, {}, {}))
    text = table.export_as_string()
    session.execute("DROP TABLE options")
    session.execute(text.rstrip(";"))
    equal(session.cluster.metadata.keyspaces["wide"].tables["options"].export_as_string(), text)
    # The whole schema as the server tells it (cqlsh asks so too).
    described = session.execute("DESCRIBE KEYSPACE wide")
    assert any(row.name == "options" and row.type == "table" for row in described)


def not_there(session):
    """What is not supported says so by its name, and an index, view or function is not half there."""
    session.execute("CREATE TABLE IF NOT EXISTS pairs (k int PRIMARY KEY, v text)")
    for text, word in (
            ("CREATE INDEX ON pairs (v)", "index"),
            ("CREATE CUSTOM INDEX i ON pairs (v) USING 'StorageAttachedIndex'", "index"),
            ("CREATE MATERIALIZED VIEW view AS SELECT * FROM pairs WHERE k IS NOT NULL AND v IS NOT NULL "
             "PRIMARY KEY (v, k)", "materialized view"),
            ("CREATE FUNCTION f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
             "function"),
            ("CREATE AGGREGATE g (int) SFUNC f STYPE int", "function"),
            ("CREATE TRIGGER t ON pairs USING 'x'", "trigger"),
            ("CREATE ROLE r WITH PASSWORD = 'x'", "logged in"), ("CREATE USER u", "logged in"),
            ("LIST ROLES", "logged in"), ("GRANT SELECT ON pairs TO r", "logged in")):
        error = raises(Exception, session.execute, text)
        assert word in str(error).lower(), (text, error)
    for table in ("indexes", "views", "functions", "aggregates", "triggers"):
        equal(list(session.execute(f"SELECT * FROM system_schema.{table} WHERE keyspace_name = 'wide'")), [])


def timestamps_and_ttl(session):
    """The driver's timestamp, the statement's own, the server's; and the time to live of rows that die."""
    session.execute("CREATE TABLE IF NOT EXISTS pairs (k int PRIMARY KEY, v text)")
    write = session.prepare("INSERT INTO pairs (k, v) VALUES (?, ?) USING TIMESTAMP ? AND TTL ?")
    session.execute("DELETE FROM pairs USING TIMESTAMP 1 WHERE k = -1")
    session.execute(write, (-1, "a", 5, 1))
    session.execute(write, (-1, "b", 4, 1000))  # older
    row = session.execute("SELECT v, writetime(v) AS w, ttl(v) AS t FROM pairs WHERE k = -1").one()
    assert row is None or (row.v, row.w) == ("a", 5), row
    until(lambda: session.execute("SELECT v FROM pairs WHERE k = -1").one() is None, "expiry", 60)
    batch = BatchStatement(consistency_level=LEVEL)
    batch.add("INSERT INTO pairs (k, v) VALUES (-2, 'x') USING TIMESTAMP 77")
    batch.add("INSERT INTO pairs (k, v) VALUES (-3, 'x')")
    session.execute(batch)
    equal(session.execute("SELECT writetime(v) FROM pairs WHERE k = -2").one()[0], 77)
    assert session.execute("SELECT writetime(v) FROM pairs WHERE k = -3").one()[0] > 10**15


def main():
    session = connect(keyspace=None)
    check("a keyspace", make, session)
    session.cluster.shutdown()
    for version, compression in ((3, False), (4, "lz4"), (5, "lz4")):
        session = connect(version, compression)
        for name, function in (("null, unset and empty values of each type", null_unset_empty), ("nested types", nested),
                               ("vectors", vectors), ("600 columns", many_columns), ("large values", large),
                               ("answers to conditions", conditional_shapes), ("kinds of batches", batch_kinds),
                               ("thousands of requests at once", streams), ("all metadata", all_metadata),
                               ("what is not there", not_there), ("timestamps and TTL", timestamps_and_ttl)):
            if version == 3 and function in (null_unset_empty, many_columns):
                continue  # unset values came with v4
            check(f"v{version} {name}", function, session)
        session.cluster.shutdown()
    session = connect()
    check("many schema changes at once", schema_storm, session)
    check("execution profiles, late answers", profiles)
    check("heartbeats", heartbeats)
    session.cluster.shutdown()


main()
