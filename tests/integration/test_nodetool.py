# SPDX-License-Identifier: Apache-2.0
"""nodetool and the admin port against a running server."""
import json
import re
import signal
import time
import urllib.error
import urllib.request

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from conftest import ROOT, SLOWNESS
from cassandra import ReadTimeout, WriteTimeout

SIMPLE = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


@pytest.fixture(scope="module")
def table(server, session):
    session.execute(f"CREATE KEYSPACE nt WITH replication = {SIMPLE}")
    session.execute("CREATE TABLE nt.t (id int PRIMARY KEY, v text)")
    insert = session.prepare("INSERT INTO nt.t (id, v) VALUES (?, ?)")
    for i in range(200):
        session.execute(insert, (i, f"value {i}"))
    select = session.prepare("SELECT * FROM nt.t WHERE id = ?")
    for i in range(50):
        session.execute(select, (i,))
    return "nt.t"


def column(text, title, row):
    """The cell of a table's row that starts with `row`."""
    lines = text.splitlines()
    head = next(line for line in lines if title in line)
    at = head.index(title)
    line = next(line for line in lines if line.startswith(row))
    return line[at:].split()[0]


def test_tpstats_counts_what_the_stages_ran(server, table):
    text = server.nodetool("tpstats")
    assert text.startswith("Pool Name ")
    assert int(column(text, "Completed", "MutationStage")) >= 200
    assert int(column(text, "Completed", "ReadStage")) >= 50
    # Every request is one of these, also what went to its stage at once.
    assert int(column(text, "Completed", "Native-Transport-Requests")) >= 252
    for stage in ("CounterMutationStage", "ViewMutationStage", "CompactionExecutor", "GossipStage",
                  "Native-Transport-Requests", "MemtableFlushWriter", "AntiEntropyStage"):
        # A flush of the tests before may be running still.
        assert re.search(rf"^{stage} +\d+ +\d+ ", text, re.M), text
    assert "Message type" in text and "MUTATION_REQ" in text


def test_what_waited_too_long_is_dropped_and_counted(new_server):
    """A server that was stopped for longer than its timeouts has queues of what nobody waits for any more."""
    server = new_server(concurrent_reads=2, concurrent_writes=2).start()
    session = server.connect()
    session.execute(f"CREATE KEYSPACE nt WITH replication = {SIMPLE}")
    session.execute("CREATE TABLE nt.t (id int, c int, v text, PRIMARY KEY (id, c))")
    insert = session.prepare("INSERT INTO nt.t (id, c, v) VALUES (?, ?, ?)")
    write = "BEGIN UNLOGGED BATCH " + " ".join(
        f"INSERT INTO nt.t (id, c, v) VALUES ({i % 7}, {i}, 'value');" for i in range(100)) + " APPLY BATCH"
    batch = session.prepare(write)
    scan = session.prepare("SELECT * FROM nt.t WHERE id = ?")
    for i in range(500):
        session.execute(insert, (1, i, "v" * 500))
    for kind in ("read", "write", "range"):
        server.nodetool("settimeout", kind, 50)

    def dropped(message):
        return int(column(server.nodetool("tpstats"), "Dropped", message))

    def provoke(statement, values):
        answers = [session.execute_async(statement, values) for _ in range(300)]
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        server.process.send_signal(signal.SIGCONT)
        timeouts = 0
        for answer in answers:
            try:
                answer.result()
            except (ReadTimeout, WriteTimeout):
                timeouts += 1
        return timeouts

    for message, statement, values in (("READ_REQ", scan, (1,)), ("MUTATION_REQ", batch, ())):
        assert dropped(message) == 0
        server.wait_until(lambda: provoke(statement, values) > 0, message)
        assert dropped(message) > 0
    server.wait_until(lambda: "MUTATION_REQ messages were dropped in last 5000 ms" in server.log(), "the log's line")
    assert server.stop() == 0


def test_tpstats_as_json_and_yaml(server):
    answer = json.loads(server.nodetool("tpstats", "-F", "json"))
    assert set(answer) == {"ThreadPools", "WaitLatencies", "DroppedMessage"}
    assert "CompletedTasks" in answer["ThreadPools"]["ReadStage"]
    assert "ThreadPools:" in server.nodetool("tpstats", "-F", "yaml")
    server.nodetool("tpstats", "-F", "xml", status=1)


def test_status_has_the_line_that_scripts_look_for(server):
    text = server.nodetool("status")
    assert text.startswith("Datacenter: datacenter1\n=======================\n")
    assert re.search(r"^UN  127\.0\.0\.1 .* [0-9a-f-]{36}  rack1$", text, re.M)
    server.nodetool("status", "no_such_keyspace", status=1)


def test_info(server):
    text = server.nodetool("info")
    assert re.search(r"^ID                     : [0-9a-f-]{36}$", text, re.M)
    assert re.search(r"^Native Transport active: true$", text, re.M)
    assert re.search(r"^Uptime \(seconds\)       : \d+$", text, re.M)
    assert "(invoke with -T/--tokens to see all 4 tokens)" in text
    assert len(re.findall(r"^Token ", server.nodetool("info", "-T"), re.M)) == 4


def test_version_ring_and_cluster(server):
    assert server.nodetool("version").startswith("ReleaseVersion: 4.1.")
    assert len(re.findall(r"^127\.0\.0\.1 .*Up     Normal", server.nodetool("ring"), re.M)) == 4
    text = server.nodetool("describecluster")
    assert "Partitioner: org.apache.cassandra.dht.Murmur3Partitioner" in text
    assert re.search(r"^\t\t[0-9a-f-]{36}: \[127\.0\.0\.1\]$", text, re.M)
    assert "system_schema -> Replication class: LocalStrategy {}" in text
    assert server.nodetool("gossipinfo").startswith("/127.0.0.1\n  generation:")


def test_tablestats_says_the_same_in_lines_and_in_json(server, session, table):
    keyspace, name, table = "nt", "stats", "nt.stats"
    session.execute("CREATE TABLE nt.stats (k int PRIMARY KEY, v text)")
    for i in range(20):
        session.execute(f"INSERT INTO {table} (k, v) VALUES ({i}, 'x')")
    session.execute(f"DELETE FROM {table} WHERE k = 3")
    assert len(list(session.execute(f"SELECT * FROM {table}"))) == 19
    server.nodetool("flush", keyspace)
    answer = json.loads(server.nodetool("tablestats", "-F", "json", table))
    assert answer[keyspace]["read_count"] > 0 and answer[keyspace]["write_count"] > 0
    stats = answer[keyspace]["tables"][name]
    assert stats["bytes_unrepaired"] > 0 and stats["bytes_repaired"] == 0 and stats["percent_repaired"] == 0.0
    assert stats["maximum_live_cells_per_slice_last_five_minutes"] >= 19
    assert stats["maximum_tombstones_per_slice_last_five_minutes"] >= 1
    assert stats["space_used_live"].isdigit() and stats["sstables_in_each_level"] == []
    text = server.nodetool("tablestats", table)
    for label, key in (("Space used (live)", "space_used_live"), ("Local write count", "local_write_count"),
                       ("Bloom filter false ratio", "bloom_filter_false_ratio")):
        assert f"\t{label}: {stats[key]}\n" in text
    ranked = json.loads(server.nodetool("tablestats", "-F", "json", "-s", "writes", "-t", "1", keyspace))
    assert sorted(ranked) == ["nt.t", "total_number_of_tables"]
    session.execute("CREATE TABLE nt.empty (k int PRIMARY KEY)")
    empty = json.loads(server.nodetool("tablestats", "-F", "json", "nt.empty"))["nt"]["tables"]["empty"]
    assert empty["sstable_count"] == 0 and empty["percent_repaired"] == 100.0
    assert empty["average_live_cells_per_slice_last_five_minutes"] == "NaN"


def test_flush_makes_sstables_that_tablestats_and_getsstables_show(server, table):
    server.nodetool("flush", "nt", "t")
    text = server.nodetool("tablestats", table)
    assert re.search(r"SSTable count: 1\n", text)
    assert re.search(r"Space used \(live\): [1-9]", text)
    assert re.search(r"Local write count: 200\n", text)
    path = server.nodetool("getsstables", "nt", "t", "7").strip()
    assert path.endswith("-big-Data.db") and "/nt/t-" in path
    assert server.nodetool("getendpoints", "nt", "t", "7") == "127.0.0.1\n"
    histograms = server.nodetool("tablehistograms", "nt", "t")
    assert "nt/t histograms" in histograms
    # One size of partitions has one bucket: its ends are the least and the most, here and there.
    sizes = {line.split()[0]: line.split()[-2] for line in histograms.splitlines() if line[:3] in ("Min", "Max")}
    for name, row in (("minimum", "Min"), ("maximum", "Max")):
        assert re.search(rf"Compacted partition {name} bytes: (\d+)", text)[1] == sizes[row], name
    answer = json.loads(server.nodetool("tablestats", "-F", "json", table))
    assert answer["nt"]["tables"]["t"]["sstable_count"] == 1


def test_a_compaction_takes_as_many_as_the_threshold_says(server, session, table):
    session.execute("CREATE TABLE nt.threshold (k int PRIMARY KEY)")
    assert server.nodetool("getcompactionthreshold", "nt", "threshold") == \
        "Current compaction thresholds for nt/threshold: \n min = 4,  max = 32\n"
    server.nodetool("disableautocompaction", "nt", "threshold")
    for i in range(2):
        session.execute("INSERT INTO nt.threshold (k) VALUES (%s)", (i,))
        server.nodetool("flush", "nt", "threshold")
    count = r"SSTable count: (\d+)\n"
    assert re.search(count, server.nodetool("tablestats", "nt.threshold"))[1] == "2"
    server.nodetool("enableautocompaction", "nt", "threshold")
    server.nodetool("setcompactionthreshold", "nt", "threshold", 2, 8)
    assert "min = 2,  max = 8" in server.nodetool("getcompactionthreshold", "nt", "threshold")
    deadline = time.monotonic() + 60
    while re.search(count, server.nodetool("tablestats", "nt.threshold"))[1] != "1":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "cannot be larger" in server.nodetool("setcompactionthreshold", "nt", "threshold", 9, 8, status=1)
    server.nodetool("setcompactionthreshold", "nt", "nothing", 2, 8, status=1)


def test_compact_leaves_one_sstable_and_a_history(server, session, table):
    for _ in range(3):
        session.execute("INSERT INTO nt.t (id, v) VALUES (1, 'again')")
        server.nodetool("flush", "nt")
    server.nodetool("compact", "nt", "t")
    assert re.search(r"SSTable count: 1\n", server.nodetool("tablestats", table))
    history = server.nodetool("compactionhistory")
    assert re.search(r" nt +t +\d{4}-\d\d-\d\dT", history), history
    assert server.nodetool("compactionstats").startswith("pending tasks: ")


def test_snapshots_come_and_go(server, table):
    assert "Snapshot directory: one" in server.nodetool("snapshot", "-t", "one", "nt")
    assert re.search(r"^one +nt +t ", server.nodetool("listsnapshots"), re.M)
    server.nodetool("clearsnapshot", status=2)
    server.nodetool("clearsnapshot", "-t", "one")
    assert "There are no snapshots" in server.nodetool("listsnapshots")
    server.nodetool("snapshot", "-t", "../up", "nt", status=1)


def test_settings_change_while_it_runs(server, table):
    server.nodetool("setconcurrency", "ReadStage", 7)
    assert re.search(r"^ReadStage +0 +7$", server.nodetool("getconcurrency", "ReadStage"), re.M)
    server.nodetool("setconcurrency", "RequestResponseStage", 3)
    assert re.search(r"^RequestResponseStage +0 +3$", server.nodetool("getconcurrency", "RequestResponseStage"), re.M)
    assert ("The size of GossipStage cannot be changed; that of ReadStage, MutationStage, CounterMutationStage, "
            "ViewMutationStage, RequestResponseStage, InternalResponseStage, PaxosRepairStage, "
            "Native-Transport-Requests can") in server.nodetool("setconcurrency", "GossipStage", 7, status=1)
    assert "Unknown stage: NoStage" in server.nodetool("setconcurrency", "NoStage", 7, status=1)
    server.nodetool("settimeout", "read", 4321)
    assert server.nodetool("gettimeout", "read") == "Current timeout for type read: 4321 ms\n"
    server.nodetool("gettimeout", "nonsense", status=1)
    server.nodetool("setcompactionthroughput", 17)
    assert server.nodetool("getcompactionthroughput") == "Current compaction throughput: 17 MB/s\n"
    server.nodetool("setlogginglevel", "ROOT", "DEBUG")
    assert re.search(r"^ROOT +DEBUG$", server.nodetool("getlogginglevels"), re.M)
    server.nodetool("setlogginglevel")
    assert re.search(r"^ROOT +INFO$", server.nodetool("getlogginglevels"), re.M)
    server.nodetool("disableautocompaction", "nt")
    assert server.nodetool("statusautocompaction", "nt") == "not running\n"
    server.nodetool("enableautocompaction", "nt")
    assert server.nodetool("statusautocompaction", "nt") == "running\n"


def test_settings_of_cassandra_are_read_back(server, session, table):
    for name, value, shown in (
            ("columnindexsize", 32, "Current value for column_index_size: 32 KiB\n"),
            ("batchlogreplaythrottle", 77, "Batchlog replay throttle: 77 KB/s\n"),
            ("snapshotthrottle", 1000, "Current snapshot throttle: 1000 links/s\n"),
            ("snapshotthrottle", 0, "Snapshot throttle is disabled\n"),
            ("defaultrf", 2, "2\n")):
        server.nodetool(f"set{name}", value)
        assert server.nodetool(f"get{name}") == shown
    session.execute("CREATE KEYSPACE two WITH replication = {'class': 'SimpleStrategy'}")
    assert session.execute("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'two'"
                           ).one()[0]["replication_factor"] == "2"
    server.nodetool("setdefaultrf", 1)
    # One that has a factor keeps it.
    session.execute("ALTER KEYSPACE two WITH replication = {'class': 'SimpleStrategy'}")
    assert session.execute("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'two'"
                           ).one()[0]["replication_factor"] == "2"
    server.nodetool("setdefaultrf", 0, status=1)
    server.nodetool("setdefaultrf", "many", status=1)
    server.nodetool("flush", "nt")
    assert re.search(r"^RangeKeySample: \n(\t-?\d+\n)+$", server.nodetool("rangekeysample"))


def test_the_snapshot_throttle_slows_snapshots(server, table):
    server.nodetool("flush", "nt")
    server.nodetool("setsnapshotthrottle", 4)
    began = time.monotonic()
    server.nodetool("snapshot", "-t", "slow", "nt")
    server.nodetool("setsnapshotthrottle", 0)
    # Eight components and more, a quarter of a second each.
    assert time.monotonic() - began > 1.5
    server.nodetool("clearsnapshot", "-t", "slow")


def test_old_protocol_versions_can_be_refused(server):
    from cassandra.cluster import NoHostAvailable

    server.nodetool("disableoldprotocolversions")
    with pytest.raises(NoHostAvailable):
        server.connect(protocol_version=4)
    server.connect(protocol_version=5)
    server.nodetool("enableoldprotocolversions")
    server.connect(protocol_version=4)


def test_flushes_have_their_three_stages(server, session, table):
    session.execute("INSERT INTO nt.t (id, v) VALUES (1, 'x')")
    server.nodetool("flush", "nt")

    def all_counted():
        text = server.nodetool("tpstats")
        return all(int(column(text, "Completed", stage)) > 0
                   for stage in ("MemtableFlushWriter", "MemtablePostFlush", "MemtableReclaimMemory"))

    server.wait_until(all_counted, "a flush in all three stages")


def test_clientstats_shows_this_driver(server, session):
    text = server.nodetool("clientstats", "--all")
    assert "DataStax Python Driver" in text or "Python Driver" in text
    assert re.search(r"^Total connected clients: [1-9]", text, re.M)
    assert re.search(r"^anonymous +[1-9]", text, re.M)
    seen = r"^5/v5 +/127\.0\.0\.1 +[A-Z][a-z]{2} \d\d, \d{4} \d\d:\d\d:\d\d *$"
    assert re.search(seen, server.nodetool("clientstats", "--by-protocol"), re.M)
    assert server.nodetool("clientstats", "--clear-history") == "Clearing connection history\n"
    assert not re.search(seen, server.nodetool("clientstats", "--by-protocol"), re.M)


def test_top_partitions(server, session, table):
    import threading

    stop = threading.Event()

    def load():
        while not stop.is_set():
            session.execute("SELECT * FROM nt.t WHERE id = 33")
            session.execute("INSERT INTO nt.t (id, v) VALUES (34, 'a value that is longer than others')")

    thread = threading.Thread(target=load)
    thread.start()
    one_table = server.nodetool("toppartitions", "nt", "t", 500)
    sizes = server.nodetool("profileload", "-a", "WRITE_SIZE", "nt", "*", 500)
    all_tables = server.nodetool("profileload", 500)
    stop.set()
    thread.join()
    for text in (one_table, all_tables):
        reads, writes, contentions, size, times = text.split("\n\n")
        assert re.search(r"^Frequency of reads by partition:\n   Table +Partition +Count +\+/- *$", reads, re.M)
        assert re.search(r"^   nt\.t +33 +\d+ +0", reads, re.M), text
        assert re.search(r"^   nt\.t +34 +\d+ +0", writes, re.M), text
        assert "Nothing recorded" in contentions
        assert re.search(r"^   nt\.t +34 +\d\d+ *$", size, re.M), text
        assert re.search(r"^   SELECT \* FROM nt\.t WHERE id = 33 +\d+ *$", times, re.M), text
    assert sizes.startswith("Max mutation size by partition:\n   Table") and sizes.count(":") == 1
    assert "sampler is not available" in server.nodetool("toppartitions", "-a", "WRONG", "nt", "t", 100, status=1)


def test_wrong_usage_says_so(server):
    assert "See 'nodetool help'" in server.nodetool("no_such_command", status=1)
    assert "rebuild_index is not supported: there are no secondary indexes" in server.nodetool(
        "rebuild_index", status=2)
    server.nodetool("getendpoints", "nt", status=1)
    server.nodetool("flush", "no_such_keyspace", status=1)
    assert "tpstats" in server.nodetool("help")
    assert "SYNOPSIS" in server.nodetool("help", "snapshot")


def get(server, path, method="GET", headers=None):
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.admin_port}{path}", method=method, headers=headers or {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


def test_metrics_are_prometheus_text(server, table):
    text = get(server, "/metrics")
    for line in text.splitlines():
        assert re.match(r"#|[a-z_:]+(\{[^}]*\})? -?[0-9.e+-]+$", line), line
    assert re.search(r'cassandra_threadpools_completedtasks\{pool="MutationStage"\} [1-9]', text)
    assert re.search(r'cassandra_table_writelatency_count\{keyspace="nt",table="t"\} [1-9]', text)
    assert "cassandra_clientrequest_latency_count" in text


def test_console_is_one_page_and_asks_nobody_else(server):
    page = get(server, "/")
    assert page.startswith("<!doctype html>")
    assert "http://" not in page and "https://" not in page


def test_other_sites_may_not_operate(server):
    with pytest.raises(urllib.error.HTTPError) as error:
        get(server, "/api/v1/flush", "POST", {"Origin": "http://evil.example"})
    assert error.value.code == 403
    with pytest.raises(urllib.error.HTTPError) as error:
        get(server, "/api/v1/flush")
    assert error.value.code == 405


def test_binary_off_and_on(new_server):
    server = new_server().start()
    server.connect()
    server.nodetool("disablebinary")
    assert server.nodetool("statusbinary") == "not running\n"
    with pytest.raises(Exception):
        server.connect()
    server.nodetool("enablebinary")
    server.connect().execute("SELECT * FROM system.local")


def test_drain_then_stopdaemon(new_server):
    server = new_server().start()
    session = server.connect()
    session.execute(f"CREATE KEYSPACE d WITH replication = {SIMPLE}")
    session.execute("CREATE TABLE d.t (id int PRIMARY KEY)")
    session.execute("INSERT INTO d.t (id) VALUES (1)")
    server.nodetool("drain")
    assert "Mode: DRAINED" in server.nodetool("netstats")
    assert "drained" in server.nodetool("enablebinary", status=2)
    server.nodetool("stopdaemon")
    assert server.wait() == 0
    server.stop()
    server.start()
    assert list(server.connect().execute("SELECT id FROM d.t")) == [(1,)]


def test_some_requests_are_traced_without_being_asked(server, session, table):
    server.nodetool("settraceprobability", 1)
    assert server.nodetool("gettraceprobability") == "Current trace probability: 1\n"
    result = session.execute("SELECT * FROM nt.t WHERE id = 5")
    assert not result.response_future._query_traces
    server.nodetool("settraceprobability", 0)
    server.wait_until(lambda: any(
        row.parameters and "id = 5" in row.parameters.get("query", "")
        for row in session.execute("SELECT parameters FROM system_traces.sessions")), "a trace")
    server.nodetool("settraceprobability", 2, status=1)


@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_scan_that_finds_nothing_ends_with_its_timeout(server, session, table, is_prepared):
    session.execute("CREATE TABLE IF NOT EXISTS nt.wide (a int, b int, v int, PRIMARY KEY (a, b))")
    insert = session.prepare("INSERT INTO nt.wide (a, b, v) VALUES (?, ?, 1)")
    # So many rows that no machine filters them in a millisecond.
    execute_concurrent_with_args(
        session, insert, [(a, b) for a in range(200) for b in range(500 // SLOWNESS)], concurrency=200)
    query = "SELECT a FROM nt.wide WHERE v = -1 ALLOW FILTERING"
    assert not list(session.execute(query))
    if is_prepared:
        query = session.prepare(query)
    server.nodetool("settimeout", "range", 1)
    try:
        with pytest.raises(ReadTimeout):
            session.execute(query)
    finally:
        server.nodetool("settimeout", "range", 10000 * SLOWNESS)
    assert not list(session.execute(query))


def test_the_manual_names_every_command(server):
    commands = re.findall(r"^    (\w+) +", server.nodetool("help"), re.M)
    with open(f"{ROOT}/man/nodetool.1", encoding="utf-8") as manual:
        assert re.findall(r"^\.TP\n\.B \"?(\w+)", manual.read(), re.M) == sorted(commands)


def test_compactions_may_wait_for_the_operator(new_server):
    server = new_server(autocompaction_on_startup_enabled=False).start()
    session = server.connect()
    session.execute("CREATE KEYSPACE held WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE held.t (k int PRIMARY KEY)")
    assert server.nodetool("statusautocompaction", "held") == "running\n"
    server.stop()
    server.start()
    assert server.nodetool("statusautocompaction", "held") == "not running\n"
    assert "autocompaction_on_startup_enabled is set to false" in server.log()
    server.nodetool("enableautocompaction", "held")
    assert server.nodetool("statusautocompaction", "held") == "running\n"
