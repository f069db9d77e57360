# SPDX-License-Identifier: Apache-2.0
"""cassandra-driver for Python on a ring of two data centers (part_ring.py): what it finds out about the nodes, where it
sends what, and how it goes on when nodes come and go."""
import collections
import os
import subprocess
import threading
import uuid

from cassandra import (ConsistencyLevel, OperationTimedOut, ReadTimeout, Unavailable, WriteTimeout)
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import (ConstantReconnectionPolicy, ConstantSpeculativeExecutionPolicy,
                                DCAwareRoundRobinPolicy, HostDistance, HostStateListener, RetryPolicy,
                                RoundRobinPolicy, TokenAwarePolicy, WhiteListRoundRobinPolicy)
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from python_checks import ask, check, equal, raises, until

HOST, PORT = os.environ["HOST"], int(os.environ["PORT"])
NODES = os.environ["NODES"].split(",")
DC1, DC2 = NODES[:3], NODES[3:5]
REPLICATION = "{'class': 'NetworkTopologyStrategy', 'dc1': 3, 'dc2': 2}"
FEW = "{'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1}"
TIMEOUT = 60


def connect(policy=None, contact=None, version=5, profiles=None, **options):
    cluster = Cluster(contact or [HOST], port=PORT, protocol_version=version, connect_timeout=TIMEOUT,
                      control_connection_timeout=TIMEOUT,
                      reconnection_policy=ConstantReconnectionPolicy(0.2, max_attempts=None),
                      execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(
                          load_balancing_policy=policy or RoundRobinPolicy(),
                          request_timeout=TIMEOUT), **(profiles or {})}, **options)
    session = cluster.connect()
    # The driver goes on when it has one of its connections.
    until(lambda: len(session.get_pool_state()) == sum(
        host.is_up is not False and cluster.profile_manager.distance(host) != HostDistance.IGNORED
        for host in cluster.metadata.all_hosts()), "a pool for each node", TIMEOUT)
    return session


def only(*nodes):
    return connect(WhiteListRoundRobinPolicy(nodes), [nodes[0]])


def hosts_of(session, statement, parameters=None, times=1):
    """The nodes that coordinated."""
    found = collections.Counter()
    for _ in range(times):
        future = session.execute_async(statement, parameters)
        future.result()
        found[future.coordinator_host.address] += 1
    return found


def at(level, text, **options):
    return SimpleStatement(text, consistency_level=level, **options)


# ---- What the driver finds out ----


def discovery():
    """Each node as contact point leads to the same ring, on each version of the protocol."""
    seen = set()
    for version, contact in ((3, NODES[0]), (4, NODES[1]), (5, NODES[3])):
        session = connect(version=version, contact=[contact])
        metadata = session.cluster.metadata
        hosts = sorted(metadata.all_hosts(), key=lambda host: NODES.index(host.address))
        equal([host.address for host in hosts], NODES)
        equal([host.datacenter for host in hosts], ["dc1"] * 3 + ["dc2"] * 2)
        equal([host.rack for host in hosts], ["r1", "r2", "r3", "r1", "r2"])
        equal(len({host.host_id for host in hosts}), 5)
        assert all(host.release_version.startswith("4.1") and host.is_up for host in hosts)
        assert all(host.broadcast_rpc_address == host.address for host in hosts), hosts
        equal(len(metadata.token_map.ring), 5 * 16)
        seen.add(tuple((token.value, metadata.token_map.token_to_host_owner[token].address)
                       for token in metadata.token_map.ring))
        session.cluster.shutdown()
    equal(len(seen), 1)


def peers_tables():
    """Each node's own row and the others', the old table and the new, agree."""
    session = connect()
    rows = {}
    for host in session.cluster.metadata.all_hosts():
        local = session.execute("SELECT * FROM system.local", host=host).one()
        rows[host.address] = local
        equal((local.listen_address, local.rpc_address, local.broadcast_address), (host.address,) * 3)
        equal((local.rpc_port, local.listen_port), (PORT, 7000))
    for host in session.cluster.metadata.all_hosts():
        old = {row.peer: row for row in session.execute("SELECT * FROM system.peers", host=host)}
        new = {row.peer: row for row in session.execute("SELECT * FROM system.peers_v2", host=host)}
        equal(set(old), set(NODES) - {host.address})
        equal(set(new), set(old))
        for address, row in old.items():
            local = rows[address]
            for name in ("data_center", "rack", "host_id", "release_version", "schema_version", "tokens"):
                equal(getattr(row, name), getattr(local, name))
                equal(getattr(new[address], name), getattr(local, name))
            equal((row.rpc_address, new[address].native_address), (address, address))
            equal((new[address].native_port, new[address].peer_port), (PORT, 7000))
    session.cluster.shutdown()


def token_map():
    """The driver's replicas are those of the server (nodetool getendpoints), for each keyspace."""
    session = connect()
    for name, replication in (("all5", REPLICATION), ("few", FEW),
                              ("simple", "{'class': 'SimpleStrategy', 'replication_factor': 2}")):
        session.execute(f"CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {replication}")
        session.execute(f"CREATE TABLE IF NOT EXISTS {name}.kv (k int PRIMARY KEY, v text)")
        write = session.prepare(f"INSERT INTO {name}.kv (k, v) VALUES (?, ?)")
        for key in range(10):
            want = subprocess.run([os.environ["NODETOOL"], "-h", NODES[key % 5], "getendpoints", name, "kv",
                                   str(key)], capture_output=True, text=True, check=True).stdout.split()
            bound = write.bind((key, "x"))
            found = [host.address for host in session.cluster.metadata.get_replicas(
                name, bound.routing_key)]
            equal(set(found), set(want))
    session.cluster.shutdown()


# ---- Where requests go ----


def datacenter_aware():
    session = connect(DCAwareRoundRobinPolicy("dc2"), contact=[NODES[3]])
    equal(set(hosts_of(session, "SELECT key FROM system.local", times=20)), set(DC2))
    distances = {host.address: session.cluster.profile_manager.distance(host)
                 for host in session.cluster.metadata.all_hosts()}
    equal({address for address, distance in distances.items() if distance == HostDistance.LOCAL}, set(DC2))
    session.cluster.shutdown()


def token_aware():
    session = connect(TokenAwarePolicy(DCAwareRoundRobinPolicy("dc1")))
    write = session.prepare("INSERT INTO few.kv (k, v) VALUES (?, ?)")
    read = session.prepare("SELECT v FROM few.kv WHERE k = ?")
    used = set()
    for key in range(60):
        bound = write.bind((key, f"value {key}"))
        bound.consistency_level = ConsistencyLevel.ALL
        replica, = [host.address for host in session.cluster.metadata.get_replicas("few", bound.routing_key)
                    if host.datacenter == "dc1"]
        equal(set(hosts_of(session, bound)), {replica})
        equal(set(hosts_of(session, read.bind((key,)))), {replica})
        used.add(replica)
    equal(used, set(DC1))
    session.cluster.shutdown()


def levels():
    """Each level is met by whole ring; EACH_QUORUM writes; SERIAL reads."""
    session = connect()
    session.execute("CREATE TABLE IF NOT EXISTS all5.levels (k int PRIMARY KEY, v int)")
    for count, name in enumerate(("ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM",
                                  "LOCAL_ONE")):
        level = ConsistencyLevel.name_to_value[name]
        session.execute(at(level, "INSERT INTO all5.levels (k, v) VALUES (%s, %s)"), (count, count))
        if name == "ANY":
            continue
        for host in session.cluster.metadata.all_hosts():
            row = session.execute(at(ConsistencyLevel.ALL, f"SELECT v FROM all5.levels WHERE k = {count}"),
                                  host=host).one()
            equal(row.v, count)
            row = session.execute(at(level, f"SELECT v FROM all5.levels WHERE k = {count}"), host=host).one()
            assert row is None or row.v == count
    for level in (ConsistencyLevel.SERIAL, ConsistencyLevel.LOCAL_SERIAL):
        equal(session.execute(at(level, "SELECT v FROM all5.levels WHERE k = 5")).one().v, 5)
    equal(len(list(session.execute(at(ConsistencyLevel.ALL, "SELECT * FROM all5.levels", fetch_size=2)))), 9)
    session.cluster.shutdown()


def paging_moves():
    """Pages of one query from another node each: what the state says holds on all."""
    session = connect()
    session.execute("CREATE TABLE IF NOT EXISTS few.wide (p int, c int, PRIMARY KEY (p, c))")
    write = session.prepare("INSERT INTO few.wide (p, c) VALUES (?, ?)")
    write.consistency_level = ConsistencyLevel.ALL
    execute_concurrent_with_args(session, write, [(p, c) for p in range(20) for c in range(20)])
    hosts = session.cluster.metadata.all_hosts()
    for text, size in (("SELECT p, c FROM few.wide", 17), ("SELECT p, c FROM few.wide WHERE p = 7", 3),
                       ("SELECT p, c FROM few.wide WHERE p IN (1, 2, 3)", 7),
                       ("SELECT DISTINCT p FROM few.wide", 3)):
        state, found, pages = None, [], 0
        while pages == 0 or state:
            result = session.execute(SimpleStatement(text, fetch_size=size), paging_state=state,
                                     host=hosts[pages % len(hosts)])
            found += [tuple(row) for row in result.current_rows]
            state = result.paging_state
            pages += 1
        whole = [tuple(row) for row in session.execute(SimpleStatement(text, fetch_size=None))]
        equal(found, whole)
        assert pages > 3, pages
    session.cluster.shutdown()


def prepared_elsewhere():
    """Prepared on one node alone: the others say UNPREPARED, and the driver prepares there."""
    session = connect(prepare_on_all_hosts=False)
    read = session.prepare(f"SELECT k, v FROM few.kv WHERE k = ? /* {uuid.uuid4()} */")
    for host in session.cluster.metadata.all_hosts():
        for _ in range(2):
            equal(session.execute(read, (1,), host=host).one().v, "value 1")
    ids = {session.execute_async(f"SELECT release_version FROM system.local", host=host).result().one()[0]
           for host in session.cluster.metadata.all_hosts()}
    equal(len(ids), 1)
    session.cluster.shutdown()


def altered_elsewhere():
    """A column that comes by way of another node is in the next row (v5: new metadata with it)."""
    session = connect()
    other = only(NODES[4])
    session.execute("DROP TABLE IF EXISTS all5.altered")
    session.execute("CREATE TABLE all5.altered (k int PRIMARY KEY, a int)")
    session.execute("INSERT INTO all5.altered (k, a) VALUES (1, 2)")
    read = session.prepare("SELECT * FROM all5.altered WHERE k = 1")
    read.consistency_level = ConsistencyLevel.LOCAL_QUORUM
    for host in session.cluster.metadata.all_hosts():
        equal(tuple(session.execute(read, host=host).one()), (1, 2))
    other.execute("ALTER TABLE all5.altered ADD b text")
    other.execute(at(ConsistencyLevel.ALL, "INSERT INTO all5.altered (k, b) VALUES (1, 'x')"))
    for host in session.cluster.metadata.all_hosts():
        equal(tuple(session.execute(read, host=host).one()), (1, 2, "x"))
    other.cluster.shutdown()
    session.cluster.shutdown()


def counters_and_batches():
    session = connect()
    session.execute("CREATE TABLE IF NOT EXISTS all5.counts (k text PRIMARY KEY, n counter)")
    add = session.prepare("UPDATE all5.counts SET n = n + 1 WHERE k = ?")
    add.consistency_level = ConsistencyLevel.QUORUM
    before = session.execute(at(ConsistencyLevel.ALL, "SELECT n FROM all5.counts WHERE k = 'x'")).one()
    results = execute_concurrent_with_args(session, add, [("x",)] * 300, concurrency=30)
    assert all(result.success for result in results)
    for host in session.cluster.metadata.all_hosts():
        equal(session.execute(at(ConsistencyLevel.QUORUM, "SELECT n FROM all5.counts WHERE k = 'x'"),
                              host=host).one().n, 300 + (before.n if before else 0))
    write = session.prepare("INSERT INTO few.kv (k, v) VALUES (?, ?)")
    for kind in (BatchType.LOGGED, BatchType.UNLOGGED):
        batch = BatchStatement(batch_type=kind, consistency_level=ConsistencyLevel.LOCAL_QUORUM)
        for key in range(1000, 1030):
            batch.add(write, (key, str(kind)))
        session.execute(batch)
        for key in range(1000, 1030):
            row = session.execute(at(ConsistencyLevel.ALL, f"SELECT v FROM few.kv WHERE k = {key}")).one()
            equal(row.v, str(kind))
    session.cluster.shutdown()


def conditional_race():
    """Of many on all nodes that want the same, each number is given once."""
    session = connect()
    session.execute(at(ConsistencyLevel.ALL, "INSERT INTO all5.levels (k, v) VALUES (100, 0)"))
    update = session.prepare("UPDATE all5.levels SET v = ? WHERE k = 100 IF v = ?")
    won, failures = [], []

    def climb():
        value = 0
        while value < 30:
            try:
                row = session.execute(update, (value + 1, value)).one()
            except (WriteTimeout, ReadTimeout):  # contention: unknown whether it is done
                failures.append(value)
                value = session.execute(at(ConsistencyLevel.SERIAL,
                                           "SELECT v FROM all5.levels WHERE k = 100")).one().v
                continue
            if row.applied:
                won.append(value)
                value += 1
            else:
                value = row.v
    threads = [threading.Thread(target=climb) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(len(set(won)), len(won))
    assert len(won) + len(failures) >= 30, (won, failures)
    equal(session.execute(at(ConsistencyLevel.SERIAL, "SELECT v FROM all5.levels WHERE k = 100")).one().v, 30)
    session.cluster.shutdown()


# ---- Schema ----


def agreement():
    """Many changes by way of each node in turn; the versions are one at once, and each driver sees all."""
    sessions = [only(node) for node in NODES]
    watcher = connect(contact=[NODES[4]])
    for count in range(10):
        session = sessions[count % 5]
        session.execute(f"CREATE TABLE all5.turn{count} (k int PRIMARY KEY)")
        assert session.cluster.control_connection.wait_for_schema_agreement(wait_time=TIMEOUT)
        sessions[(count + 1) % 5].execute(f"INSERT INTO all5.turn{count} (k) VALUES (1)")
    tables = watcher.cluster.metadata.keyspaces["all5"].tables
    until(lambda: all(f"turn{count}" in tables for count in range(10)), "CREATE TABLE events")
    for count in range(10):
        sessions[count % 5].execute(f"DROP TABLE all5.turn{count}")
    until(lambda: not any(f"turn{count}" in tables for count in range(10)), "DROP TABLE events")
    for session in sessions + [watcher]:
        session.cluster.shutdown()


def same_table_at_once():
    """One table of five statements at once: one creates it, or all say that it exists already."""
    from cassandra import AlreadyExists
    sessions = [only(node) for node in NODES]
    outcomes = []

    def create(session):
        try:
            session.execute("CREATE TABLE all5.once (k int PRIMARY KEY)")
            outcomes.append("made")
        except AlreadyExists as error:
            outcomes.append((error.keyspace, error.table))
    threads = [threading.Thread(target=create, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(collections.Counter(outcomes), {"made": 1, ("all5", "once"): 4})
    ids = {session.execute("SELECT id FROM system_schema.tables WHERE keyspace_name = 'all5' AND "
                           "table_name = 'once'").one().id for session in sessions}
    equal(len(ids), 1)
    sessions[0].execute("DROP TABLE all5.once")
    for session in sessions:
        session.cluster.shutdown()


# ---- Nodes come and go ----


class Listener(HostStateListener):
    def __init__(self):
        self.heard = []

    def on_up(self, host):
        self.heard.append(("up", host.address))

    def on_down(self, host):
        self.heard.append(("down", host.address))

    def on_add(self, host):
        self.heard.append(("add", host.address))

    def on_remove(self, host):
        self.heard.append(("remove", host.address))


class Raw:
    """EVENT frames as they come to a control connection of one node."""

    def __init__(self, session):
        self.heard = []
        connection = session.cluster.control_connection._connection
        for kind in ("STATUS_CHANGE", "TOPOLOGY_CHANGE"):
            connection.register_watcher(kind, self.hear)

    def hear(self, event):
        self.heard.append((event["change_type"], event["address"][0]))


def wait_up(session, *nodes):
    def are_up():
        up = {host.address for host in session.cluster.metadata.all_hosts() if host.is_up}
        return set(nodes) <= up
    until(are_up, f"{nodes} up", TIMEOUT)


def killed():
    """A node dies: DOWN is told, the rest serves; Unavailable where they are too few; UP when it is back."""
    listener = Listener()
    session = connect()
    session.cluster.register_listener(listener)
    raw = Raw(session)
    victim, address = 2, NODES[1]
    prepared = session.prepare("SELECT v FROM all5.levels WHERE k = ?")
    ask(f"kill {victim}")
    until(lambda: ("DOWN", address) in raw.heard, "DOWN", TIMEOUT)
    until(lambda: ("down", address) in listener.heard, "on_down", TIMEOUT)
    row = session.execute(at(ConsistencyLevel.QUORUM, "SELECT v FROM all5.levels WHERE k = 5")).one()
    equal(row.v, 5)
    local = only(NODES[0])
    for statement in ("SELECT v FROM all5.levels WHERE k = 5", "INSERT INTO all5.levels (k, v) VALUES (5, 5)"):
        failure = raises(NoHostAvailable, local.execute, at(ConsistencyLevel.ALL, statement))
        error, = failure.errors.values()
        assert isinstance(error, Unavailable), error
        equal((error.required_replicas, error.alive_replicas), (5, 4))
    for count in range(200):
        session.execute(at(ConsistencyLevel.QUORUM, "INSERT INTO all5.levels (k, v) VALUES (%s, 7)"),
                        (1000 + count,))
    ask(f"start {victim}")
    until(lambda: ("UP", address) in raw.heard, "UP", TIMEOUT)
    wait_up(session, address)
    assert ("NEW_NODE", address) not in raw.heard and ("REMOVED_NODE", address) not in raw.heard, raw.heard
    # What it missed comes by hints; what was prepared before it died is known again.
    host = session.cluster.metadata.get_host(address)
    equal(session.execute(prepared, (5,), host=host).one().v, 5)
    until(lambda: all(session.execute(at(ConsistencyLevel.ONE, f"SELECT v FROM all5.levels WHERE k = {key}"),
                                      host=host).one() for key in (1000, 1100, 1199)), "hints", TIMEOUT)
    local.cluster.shutdown()
    session.cluster.shutdown()


def schema_while_down():
    """A node that was down learns what was changed meanwhile."""
    session = only(NODES[0])
    ask("stop 5")
    session.execute("CREATE TABLE IF NOT EXISTS all5.missed (k int PRIMARY KEY, v text)")
    session.execute(at(ConsistencyLevel.QUORUM, "INSERT INTO all5.missed (k, v) VALUES (1, 'm')"))
    ask("start 5")
    other = only(NODES[4])
    until(lambda: "missed" in other.cluster.metadata.keyspaces["all5"].tables or
          other.cluster.refresh_schema_metadata(), "the missed table", TIMEOUT)
    equal(other.execute(at(ConsistencyLevel.LOCAL_QUORUM, "SELECT v FROM all5.missed WHERE k = 1")).one().v,
          "m")
    assert session.cluster.control_connection.wait_for_schema_agreement(wait_time=TIMEOUT)
    session.execute("DROP TABLE all5.missed")
    other.cluster.shutdown()
    session.cluster.shutdown()


class Note(RetryPolicy):
    """Says what it was asked, and goes on to the next node."""

    def __init__(self):
        self.asked = []

    def on_read_timeout(self, query, consistency, required_responses, received_responses, data_retrieved,
                        retry_num):
        self.asked.append(("read", consistency, required_responses, received_responses, data_retrieved))
        return self.RETHROW, None

    def on_write_timeout(self, query, consistency, write_type, required_responses, received_responses,
                         retry_num):
        self.asked.append(("write", consistency, write_type, required_responses, received_responses))
        return self.RETHROW, None

    def on_unavailable(self, query, consistency, required_replicas, alive_replicas, retry_num):
        self.asked.append(("unavailable", consistency, required_replicas, alive_replicas))
        return (self.RETRY_NEXT_HOST, None) if retry_num == 0 else (self.RETHROW, None)


def paused():
    """A node that hangs: timeouts with their fields and to the retry policy; a speculative request of the driver goes by."""
    policy = Note()
    session = connect(WhiteListRoundRobinPolicy([NODES[0]]), profiles={
        "fast": ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=TIMEOUT,
                                 speculative_execution_policy=ConstantSpeculativeExecutionPolicy(0.2, 5))})
    read = session.prepare("SELECT v FROM all5.levels WHERE k = ?")
    read.is_idempotent = True
    for _ in range(10):
        session.execute(read, (5,), execution_profile="fast")
    ask("pause 3")
    try:
        error = raises(WriteTimeout, session.execute, SimpleStatement(
            "INSERT INTO all5.levels (k, v) VALUES (5, 5)", consistency_level=ConsistencyLevel.ALL,
            retry_policy=policy))
        equal((error.required_responses, error.received_responses), (5, 4))
        error = raises(ReadTimeout, session.execute, SimpleStatement(
            "SELECT v FROM all5.levels WHERE k = 5", consistency_level=ConsistencyLevel.ALL,
            retry_policy=policy))
        equal((error.required_responses, error.received_responses), (5, 4))
        equal([asked[0] for asked in policy.asked], ["write", "read"])
        for _ in range(20):
            equal(session.execute(read, (5,), execution_profile="fast").one().v, 5)
        # The server's own speculation and the others' answers: a quorum does not wait for the node.
        for _ in range(20):
            equal(session.execute(at(ConsistencyLevel.QUORUM, "SELECT v FROM all5.levels WHERE k = 5")).one().v,
                  5)
    finally:
        ask("resume 3")
    until(lambda: not is_failing(session), "the ring whole again", TIMEOUT)
    session.cluster.shutdown()


def is_failing(session):
    try:
        session.execute(at(ConsistencyLevel.ALL, "SELECT v FROM all5.levels WHERE k = 5"))
        return False
    except (Unavailable, ReadTimeout, NoHostAvailable, OperationTimedOut):
        return True


def datacenter_gone():
    """All of dc2 dies: dc1 at LOCAL_QUORUM has no error; EACH_QUORUM says what is missing."""
    session = connect(TokenAwarePolicy(DCAwareRoundRobinPolicy("dc1")))
    write = session.prepare("INSERT INTO all5.levels (k, v) VALUES (?, ?)")
    write.consistency_level = ConsistencyLevel.LOCAL_QUORUM
    stop, failures, done = threading.Event(), [], []

    def load():
        while not stop.is_set():
            try:
                session.execute(write, (2000 + len(done) % 50, len(done)))
                done.append(1)
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)
    thread = threading.Thread(target=load)
    thread.start()
    try:
        ask("kill 4")
        ask("kill 5")
        seen = len(done)
        until(lambda: len(done) > seen + 100, "load", TIMEOUT)
        until(lambda: all(not session.cluster.metadata.get_host(node).is_up for node in DC2), "DOWN", TIMEOUT)
        error = raises(Unavailable, session.execute,
                       at(ConsistencyLevel.EACH_QUORUM, "INSERT INTO all5.levels (k, v) VALUES (1, 1)"))
        equal((error.required_replicas, error.alive_replicas), (2, 0))
    finally:
        stop.set()
        thread.join()
        ask("start 4")
        ask("start 5")
    assert not failures, failures[:3]
    wait_up(session, *DC2)
    session.cluster.shutdown()


def grown_and_shrunk():
    """A sixth node joins and leaves: events, token map, ownership; data is there all the time."""
    listener = Listener()
    session = connect()
    session.cluster.register_listener(listener)
    raw = Raw(session)
    address = NODES[0].rsplit(".", 1)[0] + "." + os.environ["NEXT"]
    write = session.prepare("INSERT INTO few.kv (k, v) VALUES (?, ?)")
    write.consistency_level = ConsistencyLevel.ALL
    execute_concurrent_with_args(session, write, [(key, f"v{key}") for key in range(300)])
    ask("add dc1")
    until(lambda: ("NEW_NODE", address) in raw.heard and ("UP", address) in raw.heard, "NEW_NODE and UP",
          TIMEOUT)
    until(lambda: ("add", address) in listener.heard, "on_add", TIMEOUT)
    wait_up(session, address)
    host = session.cluster.metadata.get_host(address)
    equal((host.datacenter, host.rack), ("dc1", "r1"))
    until(lambda: len(session.cluster.metadata.token_map.ring) == 6 * 16, "its tokens", TIMEOUT)
    read = session.prepare("SELECT v FROM few.kv WHERE k = ?")
    for key in range(300):
        equal(session.execute(read, (key,), host=host if key % 2 else None).one().v, f"v{key}")
    ask("decommission " + os.environ["NEXT"])
    until(lambda: ("REMOVED_NODE", address) in raw.heard, "REMOVED_NODE", TIMEOUT)
    until(lambda: ("remove", address) in listener.heard, "on_remove", TIMEOUT)
    until(lambda: len(session.cluster.metadata.token_map.ring) == 5 * 16, "its tokens gone", TIMEOUT)
    for key in range(300):
        equal(session.execute(read, (key,)).one().v, f"v{key}")
    equal([row.peer for row in session.execute("SELECT peer FROM system.peers_v2") if row.peer == address], [])
    session.cluster.shutdown()


def main():
    for name, function in (
            ("discovery from each node, v3 to v5", discovery), ("peers, peers_v2 and local agree", peers_tables),
            ("the token map is the server's", token_map), ("DC-aware policy", datacenter_aware),
            ("token-aware policy", token_aware), ("all consistency levels", levels),
            ("pages from another node each", paging_moves), ("prepared on one node", prepared_elsewhere),
            ("altered on another node", altered_elsewhere), ("counters and batches", counters_and_batches),
            ("conditional statements race", conditional_race), ("schema agreement", agreement),
            ("one table, created on five nodes at once", same_table_at_once),
            ("a node is killed and comes back", killed), ("a node misses a schema change", schema_while_down),
            ("a node hangs", paused), ("a data center dies under load", datacenter_gone),
            ("a node joins and leaves", grown_and_shrunk)):
        check(name, function)


main()
