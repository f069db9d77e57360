# SPDX-License-Identifier: Apache-2.0
"""cassandra-driver for Python. A program of tests/interop/run: prints PASS and FAIL, asks with `ask:`."""
import collections
import datetime
import decimal
import ipaddress
import logging
import math
import os
import threading
import uuid

from cassandra import (AlreadyExists, ConsistencyLevel, InvalidRequest, ProtocolVersion,
                       Unauthorized)
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import ConstantReconnectionPolicy, WhiteListRoundRobinPolicy
from cassandra.protocol import ConfigurationException, SyntaxException
from cassandra.query import (BatchStatement, BatchType, BoundStatement, SimpleStatement, dict_factory,
                             named_tuple_factory)
from cassandra.util import Date, Duration, Time

from python_checks import ask, check, equal, raises, say, until

logging.disable(logging.CRITICAL)
HOST, PORT = os.environ["HOST"], int(os.environ["PORT"])
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


def connect(version=5, compression=False, keyspace=None, **options):
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([HOST]),
                               request_timeout=30)
    cluster = Cluster([HOST], port=PORT, protocol_version=version, compression=compression,
                      execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=20,
                      control_connection_timeout=20, reconnection_policy=ConstantReconnectionPolicy(0.2),
                      **options)
    return cluster.connect(keyspace)


NOW = datetime.datetime(2024, 2, 29, 12, 34, 56, 789000)
Address = collections.namedtuple("address", "street zip tags")
TYPES = {
    "ascii": ["plain", ""],
    "bigint": [-2**63, 2**63 - 1, 0],
    "blob": [b"", bytes(range(256)), b"\0" * 70000],
    "boolean": [True, False],
    "date": [Date(0), Date("1969-07-20"), Date("9999-12-31")],
    "decimal": [decimal.Decimal("0"), decimal.Decimal("-1234567890.000000000123456789"),
                decimal.Decimal("1E+20")],
    "double": [0.0, -1.5e300, math.inf],
    "duration": [Duration(1, 2, 3), Duration(-1, -2, -3)],
    "float": [0.5, -2.0],
    "inet": ["127.0.0.1", "2001:db8::1"],
    "int": [-2**31, 2**31 - 1],
    "smallint": [-2**15, 2**15 - 1],
    "text": ["", "schöner Text, 漢字, 😀", "x" * 70000],
    "time": [Time(0), Time("23:59:59.999999999")],
    "timestamp": [NOW, datetime.datetime(1969, 12, 31, 23, 59, 59)],
    "timeuuid": [uuid.UUID("550e8400-e29b-11d4-a716-446655440000")],
    "tinyint": [-128, 127],
    "uuid": [uuid.UUID("3f2504e0-4f89-41d3-9a0c-0305e82c3301")],
    "varchar": ["varchar"],
    "varint": [0, -2**200, 2**200, 127, 128, -128, -129],
    "list<int>": [[1, 2, 3, 2]],
    "set<text>": [{"b", "a", "ä"}],
    "map<text, int>": [{"one": 1, "two": 2}],
    "frozen<list<frozen<set<int>>>>": [[{1, 2}, {3}]],
    "map<int, frozen<map<text, frozen<list<double>>>>>": [{1: {"x": [1.0, 2.0]}}],
    "tuple<int, text, frozen<list<uuid>>>": [(1, "x", [uuid.UUID(int=1)]), (None, "x", None)],
    "frozen<address>": [Address("Road", 12345, {"a", "b"}), Address(None, 1, None)],
    "list<frozen<address>>": [[Address("Road", 1, {"a"}), Address("Way", 2, {"b"})]],
}


def normal(value):
    """Values in the one form in which they compare equal."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [normal(item) for item in value]
    if hasattr(value, "items"):
        return {str(key): normal(item) for key, item in value.items()}
    if hasattr(value, "_fields"):
        return [normal(getattr(value, name)) for name in value._fields]
    if hasattr(value, "union"):
        return {str(normal(item)) for item in value}
    return value


def make_schema(session):
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS interop WITH replication = {REPLICATION}")
    session.set_keyspace("interop")
    session.execute("CREATE TYPE IF NOT EXISTS address (street text, zip int, tags set<text>)")
    session.execute("CREATE TABLE IF NOT EXISTS kv (k text PRIMARY KEY, v int)")
    session.execute("CREATE TABLE IF NOT EXISTS wide (p int, c int, v text, s int static, "
                    "PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)")
    session.execute("CREATE TABLE IF NOT EXISTS counts (k text PRIMARY KEY, a counter, b counter)")
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(TYPES))
    session.execute(f"CREATE TABLE IF NOT EXISTS types (k int PRIMARY KEY, {columns})")


def types_bound(session):
    session.cluster.register_user_type("interop", "address", Address)
    for at, (kind, values) in enumerate(TYPES.items()):
        write = session.prepare(f"INSERT INTO types (k, c{at}) VALUES (?, ?)")
        read = session.prepare(f"SELECT c{at} FROM types WHERE k = ?")
        for value in values + [None]:
            session.execute(write, (1, value))
            row = session.execute(read, (1,)).one()
            assert normal(row[0]) == normal(value), f"{kind}: {row[0]!r} is not {value!r}"


def types_literal(session):
    """The driver's own text form of each value, parsed by the server."""
    for at, (kind, values) in enumerate(TYPES.items()):
        # The driver writes a decimal as a float.
        if "address" in kind or kind in ("blob", "decimal"):
            continue
        for value in values:
            if kind in ("double", "duration") or "double" in kind or "tuple" in kind:
                continue
            if kind == "inet":
                value = ipaddress.ip_address(value)
            session.execute(f"INSERT INTO types (k, c{at}) VALUES (2, %s)", (value,))
            row = session.execute(f"SELECT c{at} FROM types WHERE k = 2").one()
            if kind == "inet":
                value = str(value)
            assert normal(row[0]) == normal(value), f"{kind}: {row[0]!r} is not {value!r}"


def metadata(session):
    cluster = session.cluster
    cluster.refresh_schema_metadata()
    keyspace = cluster.metadata.keyspaces["interop"]
    equal(sorted(keyspace.user_types["address"].field_names), ["street", "tags", "zip"])
    table = keyspace.tables["types"]
    equal(len(table.columns), len(TYPES) + 1)
    for at, kind in enumerate(TYPES):
        equal(table.columns[f"c{at}"].cql_type.replace(" ", "").replace("varchar", "text"),
              ("frozen<" + kind + ">" if kind.startswith("tuple") else kind)
              .replace(" ", "").replace("varchar", "text"))
    wide = keyspace.tables["wide"]
    equal([column.name for column in wide.primary_key], ["p", "c"])
    assert wide.columns["c"].is_reversed and wide.columns["s"].is_static
    assert "CLUSTERING ORDER BY (c DESC)" in wide.as_cql_query()
    for name in ("system", "system_schema", "system_traces", "system_auth", "system_distributed"):
        assert name in cluster.metadata.keyspaces, name
    for name in ("system_views", "system_virtual_schema"):
        assert cluster.metadata.keyspaces[name].virtual, name
    # What the driver exports makes the same keyspace again.
    text = keyspace.export_as_string()
    session.execute("DROP KEYSPACE IF EXISTS copied")
    for statement in text.replace("KEYSPACE interop", "KEYSPACE copied").replace(
            " interop.", " copied.").split(";"):
        if statement.strip():
            session.execute(statement)
    copy = cluster.metadata.keyspaces["copied"].export_as_string()
    equal(copy.replace("copied", "interop"), text)
    session.execute("DROP KEYSPACE copied")
    host = cluster.metadata.get_host(HOST, PORT)
    equal((host.datacenter, host.rack), ("datacenter1", "rack1"))
    assert host.release_version.startswith("4.1"), host.release_version
    assert len(cluster.metadata.token_map.ring) == 16
    replicas = cluster.metadata.get_replicas("interop", b"x")
    equal([replica.address for replica in replicas], [HOST])


def paging(session, version):
    session.execute("TRUNCATE wide")
    write = session.prepare("INSERT INTO wide (p, c, v) VALUES (?, ?, ?)")
    execute_concurrent_with_args(session, write, [(p, c, f"{p}-{c}") for p in range(10)
                                                  for c in range(100)], concurrency=200)
    rows = session.execute(SimpleStatement("SELECT p, c FROM wide", fetch_size=7))
    equal(len(set(rows)), 1000)
    got = []
    state = None
    pages = 0
    read = session.prepare("SELECT c FROM wide WHERE p = ?")
    read.fetch_size = 33
    while True:
        result = session.execute(read, (3,), paging_state=state)
        got += [row.c for row in result.current_rows]
        pages += 1
        state = result.paging_state
        if not state:
            break
    equal(got, list(range(99, -1, -1)))
    equal(pages, 4)
    result = session.execute(SimpleStatement("SELECT DISTINCT p FROM wide", fetch_size=3))
    equal(sorted(row.p for row in result), list(range(10)))
    result = session.execute(SimpleStatement(
        "SELECT p, count(*) AS n FROM wide GROUP BY p", fetch_size=3))
    equal({(row.p, row.n) for row in result}, {(p, 100) for p in range(10)})
    result = session.execute(SimpleStatement("SELECT p FROM wide LIMIT 25", fetch_size=10))
    equal(len(list(result)), 25)
    result = session.execute(SimpleStatement("SELECT p, c FROM wide PER PARTITION LIMIT 2",
                                             fetch_size=3))
    equal(len(list(result)), 20)
    assert version


def bad_paging_state(session):
    """The driver gives up a connection on such an error, therefore in a session of its own."""
    error = raises(Exception, lambda: session.execute("SELECT * FROM wide",
                                                      paging_state=b"nonsense"))
    assert "paging state" in str(error), error
    session.cluster.shutdown()


def prepared(session):
    write = session.prepare("INSERT INTO kv (k, v) VALUES (:key, :value)")
    equal([column.name for column in write.column_metadata], ["key", "value"])
    equal(write.routing_key_indexes, [0])
    session.execute(write, {"key": "named", "value": 1})
    session.execute(write, {"key": "unset"})
    row = session.execute("SELECT * FROM kv WHERE k = 'unset'").one()
    equal(row.v, None)
    session.execute(write, {"key": "named", "value": None})
    equal(session.execute("SELECT v FROM kv WHERE k = 'named'").one().v, None)
    session.execute("INSERT INTO kv (k, v) VALUES (%(k)s, %(v)s)", {"k": "simple", "v": 5})
    equal(session.execute("SELECT v FROM kv WHERE k = %s", ("simple",)).one().v, 5)
    twice = session.prepare("SELECT * FROM kv WHERE k IN ?")
    equal(sorted(row.k for row in session.execute(twice, (["named", "simple", "no"],))),
          ["simple"] if session.execute("SELECT * FROM kv WHERE k = 'named'").one() is None
          else ["named", "simple"])
    limit = session.prepare("SELECT * FROM wide WHERE p = ? AND c > ? ORDER BY c ASC LIMIT ?")
    equal([row.c for row in session.execute(limit, (1, 10, 3))], [11, 12, 13])


def altered(session):
    session.execute("DROP TABLE IF EXISTS altered")
    session.execute("CREATE TABLE altered (k int PRIMARY KEY, a int)")
    read = session.prepare("SELECT * FROM altered WHERE k = 1")
    write = session.prepare("INSERT INTO altered (k, a) VALUES (?, ?)")
    session.execute(write, (1, 2))
    equal(session.execute(read).one(), (1, 2))
    session.execute("ALTER TABLE altered ADD b text")
    session.execute("INSERT INTO altered (k, a, b) VALUES (1, 2, 'three')")
    session.execute(write, (1, 4))
    equal(session.execute(read).one(), (1, 4, "three"))
    session.execute("ALTER TABLE altered DROP a")
    equal(session.execute(read).one(), (1, "three"))
    raises(InvalidRequest, session.execute, write, (1, 2))


def batches(session):
    write = session.prepare("INSERT INTO wide (p, c, v) VALUES (?, ?, ?)")
    for kind in (BatchType.LOGGED, BatchType.UNLOGGED):
        batch = BatchStatement(batch_type=kind)
        batch.add("DELETE FROM wide WHERE p = 100")
        batch.clear()
        for c in range(50):
            batch.add(write, (100, c, f"batch {c}"))
        batch.add("INSERT INTO wide (p, s) VALUES (%s, %s)", (100, 7))
        batch.add(SimpleStatement("INSERT INTO kv (k, v) VALUES ('batch', 1)"))
        session.execute(batch)
        rows = list(session.execute("SELECT c, v, s FROM wide WHERE p = 100"))
        equal(len(rows), 50)
        equal(rows[0], (49, "batch 49", 7))
        session.execute("DELETE FROM wide WHERE p = 100")
    batch = BatchStatement(batch_type=BatchType.COUNTER)
    session.execute("TRUNCATE counts")
    for _ in range(3):
        batch.add("UPDATE counts SET a = a + 2, b = b - 1 WHERE k = 'batch'")
    session.execute(batch)
    equal(session.execute("SELECT a, b FROM counts WHERE k = 'batch'").one(), (6, -3))
    error = raises(InvalidRequest, session.execute,
                   BatchStatement(batch_type=BatchType.LOGGED).add(
                       "UPDATE counts SET a = a + 1 WHERE k = 'batch'"))
    assert "counter" in str(error).lower(), error
    session.execute("BEGIN BATCH USING TIMESTAMP 1 INSERT INTO kv (k, v) VALUES ('old', 1); "
                    "INSERT INTO kv (k, v) VALUES ('old2', 1); APPLY BATCH")
    equal(session.execute("SELECT writetime(v) FROM kv WHERE k = 'old'").one()[0], 1)


def conditional(session):
    session.execute("DELETE FROM kv WHERE k = 'lwt'")
    result = session.execute("INSERT INTO kv (k, v) VALUES ('lwt', 1) IF NOT EXISTS")
    assert result.was_applied
    result = session.execute("INSERT INTO kv (k, v) VALUES ('lwt', 2) IF NOT EXISTS")
    assert not result.was_applied
    equal(result.one(), (False, "lwt", 1))
    update = session.prepare("UPDATE kv SET v = ? WHERE k = 'lwt' IF v = ?")
    result = session.execute(update, (3, 2))
    equal(result.one(), (False, 1))
    assert session.execute(update, (3, 1)).was_applied
    statement = SimpleStatement("UPDATE kv SET v = 4 WHERE k = 'lwt' IF v IN (3, 9)",
                                serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL)
    assert session.execute(statement).was_applied
    batch = BatchStatement()
    batch.add("INSERT INTO wide (p, c, v) VALUES (200, 1, 'a') IF NOT EXISTS")
    batch.add("INSERT INTO wide (p, c, v) VALUES (200, 2, 'b')")
    session.execute("DELETE FROM wide WHERE p = 200")
    assert session.execute(batch).was_applied
    assert not session.execute(batch).was_applied
    assert session.execute("DELETE FROM kv WHERE k = 'lwt' IF EXISTS").was_applied
    statement = SimpleStatement("SELECT * FROM kv WHERE k = 'lwt'",
                                consistency_level=ConsistencyLevel.SERIAL)
    equal(session.execute(statement).one(), None)


def conditional_race(session):
    """Of many that want the same, each number is given once."""
    session.execute("INSERT INTO kv (k, v) VALUES ('race', 0)")
    update = session.prepare("UPDATE kv SET v = ? WHERE k = 'race' IF v = ?")
    won = []

    def climb():
        value = 0
        while value < 100:
            result = session.execute(update, (value + 1, value)).one()
            if result.applied:
                won.append(value)
                value += 1
            else:
                value = result.v
    threads = [threading.Thread(target=climb) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(sorted(won), list(range(100)))


def counters(session):
    session.execute("TRUNCATE counts")
    add = session.prepare("UPDATE counts SET a = a + ? WHERE k = ?")
    results = execute_concurrent_with_args(session, add, [(at, "sum") for at in range(500)],
                                           concurrency=100)
    assert all(result.success for result in results)
    equal(session.execute("SELECT a, b FROM counts WHERE k = 'sum'").one(), (sum(range(500)), None))
    session.execute("DELETE a FROM counts WHERE k = 'sum'")
    equal(session.execute("SELECT a FROM counts WHERE k = 'sum'").one(), None)


def concurrent(session):
    write = session.prepare("INSERT INTO kv (k, v) VALUES (?, ?)")
    read = session.prepare("SELECT v FROM kv WHERE k = ?")
    data = [(f"concurrent {at}", at) for at in range(5000)]
    results = execute_concurrent_with_args(session, write, data, concurrency=1000)
    assert all(result.success for result in results)
    results = execute_concurrent_with_args(session, read, [(key,) for key, _ in data],
                                           concurrency=1000)
    equal([result.result_or_exc.one().v for result in results], list(range(5000)))


def errors(session):
    error = raises(SyntaxException, session.execute, "SELEC * FROM kv")
    assert "line 1:0 no viable alternative at input 'SELEC'" in str(error), error
    error = raises(InvalidRequest, session.execute, "SELECT * FROM nothing")
    assert "table nothing does not exist" in str(error), error
    raises(InvalidRequest, session.execute, "SELECT nothing FROM kv")
    raises(InvalidRequest, session.execute, "SELECT * FROM kv WHERE v = 1")
    raises(InvalidRequest, session.execute, "INSERT INTO kv (k, v) VALUES ('x', 'text')")
    raises(InvalidRequest, session.prepare, "SELECT * FROM nowhere.nothing")
    error = raises(AlreadyExists, session.execute, "CREATE TABLE kv (k int PRIMARY KEY)")
    equal((error.keyspace, error.table), ("interop", "kv"))
    error = raises(AlreadyExists, session.execute,
                   f"CREATE KEYSPACE interop WITH replication = {REPLICATION}")
    equal((error.keyspace, error.table or None), ("interop", None))
    raises(ConfigurationException, session.execute,
           "CREATE KEYSPACE bad WITH replication = {'class': 'NoSuchStrategy'}")
    raises(ConfigurationException, session.execute,
           "CREATE TABLE bad (k int PRIMARY KEY) WITH compaction = {'class': 'NoSuchCompaction'}")
    raises(Unauthorized, session.execute, "DROP KEYSPACE system")
    raises(Unauthorized, session.execute, "ALTER TABLE system.local ADD x int")
    error = raises(Exception, session.execute, SimpleStatement(
        "INSERT INTO kv (k, v) VALUES ('x', 1)", consistency_level=ConsistencyLevel.SERIAL))
    assert "conditional updates for serializable writes" in str(error), error
    statement = BoundStatement(session.prepare("SELECT * FROM kv WHERE k = ?"))
    error = raises(InvalidRequest, session.execute, statement)
    equal(session.execute("SELECT v FROM kv WHERE k = 'concurrent 1'").one().v, 1)


def unavailable(session):
    from cassandra import Unavailable
    session.execute("DROP KEYSPACE IF EXISTS three")
    session.execute("CREATE KEYSPACE three WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE three.t (k int PRIMARY KEY)")
    statement = SimpleStatement("INSERT INTO three.t (k) VALUES (1)",
                                consistency_level=ConsistencyLevel.QUORUM)
    # The driver tries the next node, and there is none.
    error = raises(NoHostAvailable, session.execute, statement)
    error, = error.errors.values()
    assert isinstance(error, Unavailable), error
    equal((error.required_replicas, error.alive_replicas), (2, 1))
    session.execute(SimpleStatement("INSERT INTO three.t (k) VALUES (1)",
                                    consistency_level=ConsistencyLevel.ONE))
    session.execute("DROP KEYSPACE three")


def works(session):
    try:
        session.execute("SELECT key FROM system.local")
        return True
    except Exception:  # pylint: disable=broad-except
        return False


def events(session, other):
    """Another session's driver learns of each schema change by itself."""
    for one in (session, other):
        until(lambda one=one: works(one), "reconnection")
    keyspaces = other.cluster.metadata.keyspaces
    session.execute("DROP KEYSPACE IF EXISTS seen")
    session.execute(f"CREATE KEYSPACE seen WITH replication = {REPLICATION}")
    until(lambda: "seen" in keyspaces, "CREATE KEYSPACE")
    session.execute("CREATE TABLE seen.t (k int PRIMARY KEY)")
    until(lambda: "t" in keyspaces["seen"].tables, "CREATE TABLE")
    session.execute("ALTER TABLE seen.t ADD v int")
    until(lambda: "v" in keyspaces["seen"].tables["t"].columns, "ALTER TABLE")
    session.execute("CREATE TYPE seen.u (a int)")
    until(lambda: "u" in keyspaces["seen"].user_types, "CREATE TYPE")
    session.execute("ALTER TYPE seen.u ADD b int")
    until(lambda: len(keyspaces["seen"].user_types["u"].field_names) == 2, "ALTER TYPE")
    session.execute("DROP TYPE seen.u")
    until(lambda: "u" not in keyspaces["seen"].user_types, "DROP TYPE")
    session.execute("DROP TABLE seen.t")
    until(lambda: "t" not in keyspaces["seen"].tables, "DROP TABLE")
    session.execute("DROP KEYSPACE seen")
    until(lambda: "seen" not in keyspaces, "DROP KEYSPACE")


def tracing(session):
    result = session.execute("SELECT * FROM kv WHERE k = 'concurrent 1'", trace=True)
    trace = result.get_query_trace(max_wait_sec=10)
    assert trace.duration is not None and trace.coordinator == HOST, (trace.duration,
                                                                    trace.coordinator)
    equal(trace.request_type, "Execute CQL3 query")
    assert trace.events and trace.parameters["query"].startswith("SELECT"), trace.parameters
    write = session.prepare("INSERT INTO kv (k, v) VALUES (?, ?)")
    trace = session.execute(write, ("traced", 1), trace=True).get_query_trace(10)
    assert any("commitlog" in event.description.lower() for event in trace.events), [
        event.description for event in trace.events]
    batch = BatchStatement()
    batch.add(write, ("traced", 2))
    trace = session.execute(batch, trace=True).get_query_trace(10)
    assert "batch" in trace.request_type.lower(), trace.request_type


def warnings(session):
    batch = BatchStatement(batch_type=BatchType.UNLOGGED)
    write = session.prepare("INSERT INTO wide (p, c, v) VALUES (?, ?, ?)")
    for p in range(20):
        batch.add(write, (300 + p, 1, "w" * 400))
    future = session.execute_async(batch)
    future.result()
    assert future.warnings and "exceeding specified threshold" in future.warnings[0], future.warnings


def payload(session):
    """The server has no handler that would answer one: it is taken and ignored, as Cassandra does."""
    future = session.execute_async("SELECT * FROM system.local",
                                   custom_payload={"key": b"value"})
    assert future.result().one()
    equal(future.custom_payload, None)


def v5_only(session):
    """Keyspace per request, and the time a write is at."""
    session.execute("CREATE TABLE IF NOT EXISTS here (k int PRIMARY KEY)")
    statement = SimpleStatement("SELECT * FROM local", keyspace="system")
    equal(session.execute(statement).one().key, "local")
    read = session.prepare("SELECT cluster_name FROM local", keyspace="system")
    equal(session.execute(read).one().cluster_name, "Test Cluster")


def timestamps(session):
    key = uuid.uuid4().hex
    write = SimpleStatement(f"INSERT INTO kv (k, v) VALUES ('{key}', 1)")
    session.use_client_timestamp = True
    session.cluster.timestamp_generator = lambda: 1234567
    session.execute(write)
    equal(session.execute(f"SELECT writetime(v) FROM kv WHERE k = '{key}'").one()[0], 1234567)
    session.use_client_timestamp = False
    session.execute(f"INSERT INTO kv (k, v) VALUES ('{key}', 2) USING TTL 1000")
    row = session.execute(f"SELECT ttl(v), writetime(v), v FROM kv WHERE k = '{key}'").one()
    assert 990 < row[0] <= 1000 and row[1] > 10**15 and row[2] == 2, row


def restarts(session, how):
    write = session.prepare("INSERT INTO kv (k, v) VALUES (?, ?)")
    read = session.prepare("SELECT v FROM kv WHERE k = ?")
    read_all = session.prepare("SELECT k FROM kv")
    read_all.fetch_size = 100
    for at in range(500):
        session.execute(write, (f"{how} {at}", at))
    first = session.execute(read_all)
    state = first.paging_state
    seen = [row.k for row in first.current_rows]
    ask(how)
    until(lambda: works(session), "reconnection")
    # Prepared before, unknown to the new process or kept by it.
    for at in range(500):
        equal(session.execute(read, (f"{how} {at}",)).one().v, at)
    session.execute(write, (f"{how} again", 1))
    rest = session.execute(read_all, paging_state=state)
    seen += [row.k for row in rest]
    equal(len(seen), len(set(seen)))
    assert {f"{how} {at}" for at in range(500)} <= set(seen)


def row_factories(session):
    for factory, expected in ((dict_factory, {"v": 1}), (named_tuple_factory, (1,))):
        profile = session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=factory)
        row = session.execute("SELECT v FROM kv WHERE k = 'concurrent 1'",
                              execution_profile=profile).one()
        equal(row, expected)


def negotiate():
    cluster = Cluster([HOST], port=PORT, connect_timeout=20,
                      execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(
                          load_balancing_policy=WhiteListRoundRobinPolicy([HOST]))})
    session = cluster.connect()
    equal(session.execute("SELECT release_version FROM system.local").one()[0][:3], "4.1")
    # The driver starts at DSE's versions or at a beta one and goes down by what the server says.
    equal(cluster.protocol_version, ProtocolVersion.V5)
    cluster.shutdown()


def main():
    check("version negotiation", negotiate)
    for version in (3, 4, 5):
        for compression in (False, "lz4", "snappy"):
            if version == 5 and compression == "snappy":
                continue
            label = f"v{version} {compression or 'plain'}"
            try:
                session = connect(version, compression)
                make_schema(session)
            except Exception as error:  # pylint: disable=broad-except
                say(f"FAIL {label} connect: {type(error).__name__}: {error}")
                continue
            say(f"PASS {label} connect and make the schema")
            for name, function in (("types as bound values", types_bound),
                                   ("types as literals", types_literal),
                                   ("counters", counters), ("batches", batches),
                                   ("conditional statements", conditional),
                                   ("1000 requests in flight", concurrent)):
                check(f"{label} {name}", function, session)
            check(f"{label} paging", paging, session, version)
            check(f"{label} prepared statements, named, null and unset values",
                  prepared if version > 3 else prepared_v3, session)
            check(f"{label} prepared statements and ALTER TABLE",
                  altered if version > 4 else altered_old, session)
            for name, function in (("errors", errors), ("Unavailable", unavailable),
                                   ("tracing", tracing), ("row factories", row_factories),
                                   ("timestamps and TTL", timestamps)):
                check(f"{label} {name}", function, session)
            if version > 3:
                check(f"{label} warnings", warnings, session)
                check(f"{label} custom payload", payload, session)
            if version > 4:
                check(f"{label} keyspace per request", v5_only, session)
            session.cluster.shutdown()
    session = connect(5, "lz4", "interop")
    check("schema metadata", metadata, session)
    check("conditional statements race", conditional_race, session)
    check("wrong paging state", bad_paging_state, connect(4, False, "interop"))
    other = connect(4)
    check("schema events reach another session", events, session, other)
    check("prepared, data and paging state after a restart", restarts, session, "restart")
    check("prepared, data and paging state after kill -9", restarts, session, "kill")
    check("the other session after both", restarts, connect(4, False, "interop"), "kill")
    # A control connection of this driver may be lost in its own race of two reconnections.
    fresh = connect(4)
    check("schema events after both", events, connect(5, "lz4", "interop"), fresh)
    session.cluster.shutdown()
    other.cluster.shutdown()


def prepared_v3(session):
    write = session.prepare("INSERT INTO kv (k, v) VALUES (:key, :value)")
    session.execute(write, {"key": "named", "value": 1})
    equal(session.execute("SELECT v FROM kv WHERE k = 'named'").one().v, 1)
    raises(Exception, session.execute, write, {"key": "unset"})


def altered_old(session):
    """Before v5 the driver keeps the columns it saw first; named columns go on working."""
    session.execute("DROP TABLE IF EXISTS altered")
    session.execute("CREATE TABLE altered (k int PRIMARY KEY, a int)")
    read = session.prepare("SELECT k, a FROM altered WHERE k = 1")
    write = session.prepare("INSERT INTO altered (k, a) VALUES (?, ?)")
    session.execute("ALTER TABLE altered ADD b text")
    session.execute(write, (1, 4))
    equal(session.execute(read).one(), (1, 4))


main()
