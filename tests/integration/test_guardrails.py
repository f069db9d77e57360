# SPDX-License-Identifier: Apache-2.0
"""Guardrails: what Cassandra 4.1.8 answered an ordinary user under the same configuration stands in guardrails.txt."""
import os
import re
import subprocess

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, ReadFailure
from cassandra.cluster import ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import SimpleStatement

OPTIONS = dict(
    keyspaces_warn_threshold=1, keyspaces_fail_threshold=4, tables_warn_threshold=1, tables_fail_threshold=12,
    columns_per_table_warn_threshold=2, columns_per_table_fail_threshold=5, fields_per_udt_warn_threshold=1,
    fields_per_udt_fail_threshold=3, page_size_warn_threshold=10, page_size_fail_threshold=20,
    partition_keys_in_select_warn_threshold=1, partition_keys_in_select_fail_threshold=3,
    in_select_cartesian_product_warn_threshold=2, in_select_cartesian_product_fail_threshold=4,
    items_per_collection_warn_threshold=2, items_per_collection_fail_threshold=4, collection_size_warn_threshold="20B",
    collection_size_fail_threshold="60B", minimum_replication_factor_warn_threshold=3,
    read_consistency_levels_warned="TWO,THREE", read_consistency_levels_disallowed="EACH_QUORUM,LOCAL_QUORUM",
    write_consistency_levels_warned="ALL", write_consistency_levels_disallowed="ANY,LOCAL_ONE",
    table_properties_warned="comment", table_properties_ignored="gc_grace_seconds",
    table_properties_disallowed="default_time_to_live", user_timestamps_enabled=False, group_by_enabled=False,
    drop_truncate_table_enabled=False, uncompressed_tables_enabled=False, allow_filtering_enabled=False,
    read_before_write_list_operations_enabled=False, compact_tables_enabled=False, secondary_indexes_enabled=False)


def recorded():
    """[(level, page size, statement, what came)]"""
    steps = []
    with open(os.path.join(os.path.dirname(__file__), "guardrails.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("    "):
                steps[-1][3].append(line.strip())
            else:
                level, size, text = line.rstrip("\n").split(" ", 2)
                steps.append((level, int(size), text, []))
    return steps


def ask(session, level, size, text):
    """The warnings, each once, then the error."""
    statement = SimpleStatement(text, consistency_level=getattr(ConsistencyLevel, level), fetch_size=size or None)
    future = session.execute_async(statement)
    error = []
    try:
        future.result()
    except Exception as failure:  # pylint: disable=broad-except
        name = type(failure).__name__
        text = re.search(r'message="(.*)"', str(failure), re.DOTALL)
        error = [f"{name} {text.group(1)}" if name == "InvalidRequest" else name]
    return list(dict.fromkeys(f"warning {text}" for text in future.warnings or [])) + error


def test_what_is_warned_of_and_refused(new_server):
    server = new_server(**OPTIONS).start()
    session = server.connect(execution_profiles={
        EXEC_PROFILE_DEFAULT: ExecutionProfile(retry_policy=FallthroughRetryPolicy(), request_timeout=60)})
    for level, size, text, expected in recorded():
        assert (text, ask(session, level, size, text)) == (text, expected)
    # What a guardrail ignores is not set.
    row = session.execute(SimpleStatement("SELECT gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = 'k3' "
                                          "AND table_name = 't'", fetch_size=None)).one()
    assert row.gc_grace_seconds == 864000
    # Others like the first one are not logged for a while.
    assert server.log().count("Guardrail ") == 2


def test_a_factor_that_is_too_small_is_refused(new_server):
    session = new_server(minimum_replication_factor_fail_threshold=2, default_keyspace_rf=2).start().connect()
    for replication, factor in (("'class': 'SimpleStrategy', 'replication_factor': 1", 1),
                                ("'class': 'NetworkTopologyStrategy', 'datacenter1': 1", 1)):
        assert ask(session, "ONE", 0, f"CREATE KEYSPACE ks WITH replication = {{{replication}}}")[-1] == (
            "InvalidRequest Guardrail minimum_replication_factor violated: The keyspace ks has a replication factor of "
            f"{factor}, below the failure threshold of 2.")
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}")


def test_a_large_schema_is_warned_of(new_server):
    session = new_server(keyspace_count_warn_threshold=6, table_count_warn_threshold=1).start().connect()
    make = "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    assert ask(session, "ONE", 0, make.format("a")) == []
    assert ask(session, "ONE", 0, make.format("b")) == [
        "warning Cluster already contains 7 keyspaces. Having a large number of keyspaces will significantly slow down "
        "schema dependent cluster operations."]
    warnings = ask(session, "ONE", 0, "CREATE TABLE a.t (k int PRIMARY KEY)")
    assert len(warnings) == 1 and re.fullmatch(
        r"warning Cluster already contains \d+ tables in 7 keyspaces\. Having a large number of tables will significantly "
        r"slow down schema dependent cluster operations\.", warnings[0])


def test_use_may_be_prohibited(new_server):
    session = new_server(use_statements_enabled=False).start().connect()
    assert ask(session, "ONE", 0, "USE system") == [
        "InvalidRequest USE statements prohibited. (see use_statements_enabled in cassandra.yaml)"]


@pytest.mark.parametrize("options, said", [
    (dict(tables_warn_threshold=0), "Invalid value for tables_warn_threshold: 0 is not allowed; if attempting to disable "
     "use -1"),
    (dict(page_size_fail_threshold=-2), "Invalid value -2 for page_size_fail_threshold: negative values are not allowed, "
     "outside of -1 which disables the guardrail"),
    (dict(tables_warn_threshold=9, tables_fail_threshold=8), "The warn threshold 9 for tables_warn_threshold should be "
     "lower than the fail threshold 8"),
    (dict(minimum_replication_factor_fail_threshold=3), "default_keyspace_rf (1) cannot be less than "
     "minimum_replication_factor_fail_threshold (3)"),
    (dict(read_consistency_levels_warned="ONE,SOME"), "read_consistency_levels_warned: 'SOME' is no consistency level"),
    (dict(table_properties_ignored="id,commend"), "Invalid value for table_properties_ignored: 'id' do not parse as valid "
     "table properties")])
def test_a_wrong_value_is_refused(new_server, options, said):
    done = subprocess.run(new_server(**options).command(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and said in done.stderr


TOKEN_OF_1, TOKEN_OF_2 = -4069959284402364209, -3248873570005575792


def test_the_size_of_answers(new_server):
    """What Cassandra 4.1.8 answered under the same configuration, word by word."""
    server = new_server(read_thresholds_enabled=True, coordinator_read_size_warn_threshold="100KiB",
                        coordinator_read_size_fail_threshold="400KiB").start()
    assert "no effect" not in server.log()
    session = server.connect(protocol_version=5)
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (a int, c int, b text, PRIMARY KEY (a, c))")
    insert = session.prepare("INSERT INTO k.t (a, c, b) VALUES (?, ?, ?)")
    for c in range(60):
        session.execute(insert, (1, c, "x" * 20000))
    for c in range(2):
        session.execute(insert, (2, c, "x" * 20000))

    def ask(query, size=5000):
        future = session.execute_async(SimpleStatement(query, fetch_size=size))
        return len(future.result().current_rows), future.warnings

    def warned(where, rows=10):
        return rows, [f"Read on table k.t has exceeded the size warning threshold of 102,400 bytes with {where}"]

    assert ask("SELECT * FROM k.t WHERE a = 2") == (2, None)
    assert ask("SELECT * FROM k.t WHERE a = 1 LIMIT 5") == (5, None)
    assert ask("SELECT c FROM k.t WHERE a = 1 LIMIT 20") == (20, None)
    one = f"token: {TOKEN_OF_1}"
    assert ask("SELECT * FROM k.t WHERE a = 1 LIMIT 20") == warned(one, 20)
    # 420,168 bytes, which are too many; but nothing comes behind them.
    assert ask("SELECT * FROM k.t WHERE a = 1 LIMIT 21") == warned(one, 21)
    assert ask("SELECT * FROM k.t WHERE a = 1", 10) == warned(one)
    assert ask("SELECT * FROM k.t WHERE a = 1 ORDER BY c DESC LIMIT 10") == warned(one)
    assert ask("SELECT JSON * FROM k.t WHERE a = 1 LIMIT 10") == warned(one)
    assert ask("SELECT count(*) FROM k.t WHERE a = 1") == (1, None)
    assert ask("SELECT a, count(*), max(b) FROM k.t WHERE a = 1 GROUP BY a, c LIMIT 10") == warned(one)
    both = f"tokens: [{TOKEN_OF_1}, {TOKEN_OF_2}]"
    assert ask("SELECT * FROM k.t WHERE a IN (1, 2) LIMIT 10") == warned(both)
    lowest = -2**63
    assert ask("SELECT * FROM k.t LIMIT 10") == warned(f"token range: ({lowest}, {lowest})")
    assert ask(f"SELECT * FROM k.t WHERE token(a) >= {TOKEN_OF_1} AND token(a) <= 5 LIMIT 10") \
        == warned(f"token range: ({TOKEN_OF_1}, 5]")
    assert ask("SELECT * FROM k.t WHERE token(a) > -5000000000000000000 LIMIT 10") \
        == warned(f"token range: (-5000000000000000000, {lowest}]")
    for query in ("SELECT * FROM k.t WHERE a = 1 LIMIT 100", "SELECT a, max(b) FROM k.t WHERE a = 1 GROUP BY a, c"):
        future = session.execute_async(query)
        with pytest.raises(ReadFailure) as failed:
            future.result()
        text = f"Read on table k.t has exceeded the size failure threshold of 409,600 bytes with token: {TOKEN_OF_1}"
        assert future.warnings == [text]
        assert f"Operation failed - {text}: READ_SIZE from /127.0.0.1:" in str(failed.value)
        assert (failed.value.required_responses, failed.value.received_responses, failed.value.failures,
                failed.value.data_retrieved) == (1, 0, 1, True)
        assert failed.value.error_code_map == {"127.0.0.1": 4}
    assert "409,600 bytes with query SELECT * FROM k.t WHERE a = 1 LIMIT 100" in server.log()
    server.stop()
    done = subprocess.run(new_server(coordinator_read_size_warn_threshold="2KiB", coordinator_read_size_fail_threshold="1KiB")
                          .command(), capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "coordinator_read_size_fail_threshold (1024B) must be greater than or equal to" in done.stderr


@pytest.mark.parametrize("is_refused", [False, True])
def test_writes_to_a_node_whose_disk_is_full(new_server, is_refused):
    """The memtables of the system's own tables are more than a percent of a megabyte."""
    limits = {"fail": 1} if is_refused else {"warn": 1, "fail": 90}
    server = new_server(data_disk_usage_max_disk_size="1MiB", **{
        f"data_disk_usage_percentage_{kind}_threshold": limit for kind, limit in limits.items()}).start()
    if is_refused:
        assert re.search(r"ERROR .* Guardrail local_data_disk_usage violated: Local data disk usage \d+%\(Full\) exceeds "
                         r"failure threshold of 1%, will stop accepting writes", server.log())
    else:
        assert re.search(r"WARN .* Guardrail local_data_disk_usage violated: Local data disk usage \d+%\(Stuffed\) exceeds "
                         r"warning threshold of 1%", server.log())
    session = server.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (a int PRIMARY KEY, b text)")
    text = "Guardrail replica_disk_usage violated: " + (
        "Write request failed because disk usage exceeds failure threshold" if is_refused
        else "Replica disk usage exceeds warning threshold")
    for query in ("INSERT INTO k.t (a, b) VALUES (1, 'x')", "UPDATE k.t SET b = 'y' WHERE a = 1",
                  "INSERT INTO k.t (a, b) VALUES (2, 'x') IF NOT EXISTS", "DELETE FROM k.t WHERE a = 2",
                  "BEGIN BATCH INSERT INTO k.t (a, b) VALUES (3, 'x'); DELETE FROM k.t WHERE a = 4; APPLY BATCH"):
        future = session.execute_async(query)
        if is_refused:
            with pytest.raises(InvalidRequest) as refused:
                future.result()
            assert text in str(refused.value)
        else:
            future.result()
        assert future.warnings == [text], query
    future = session.execute_async("SELECT a FROM k.t")
    assert [row.a for row in future.result()] == ([] if is_refused else [1, 3])
    assert future.warnings is None
    session.execute("TRUNCATE k.t")


def test_denied_partitions(new_server):
    """In Cassandra 4.1.8's words."""
    server = new_server(partition_denylist_enabled=True, denylist_refresh="1s", denylist_consistency_level="ONE",
                        denylist_max_keys_per_table=3, denylist_max_keys_total=4).start()
    assert "no effect" not in server.log()
    session = server.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (a int PRIMARY KEY, b text)")
    session.execute("CREATE TABLE k.u (a int, b text, c int, PRIMARY KEY ((a, b), c))")
    for key in range(5):
        session.execute(f"INSERT INTO k.t (a, b) VALUES ({key}, 'x')")

    def deny(table, key, keyspace="k"):
        session.execute("INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) "
                        f"VALUES ('{keyspace}', '{table}', 0x{key})")

    def is_refused(query, text, level="ONE"):
        with pytest.raises(InvalidRequest) as refused:
            session.execute(SimpleStatement(query, consistency_level=ConsistencyLevel.name_to_value[level]))
        return f'message="{text}"' in str(refused.value)

    def is_denied(query):
        try:
            session.execute(query)
        except InvalidRequest:
            return True
        return False

    deny("t", "00000001")
    deny("u", "0004000000010000017800")
    deny("local", "6c6f63616c", "system")
    deny("no_such_table", "00")
    server.wait_until(lambda: is_denied("SELECT * FROM k.t WHERE a = 1"), "the refresh")
    key = f"[0xDecoratedKey({TOKEN_OF_1}, 00000001)] in k/t"
    for query in ("SELECT * FROM k.t WHERE a = 1", "SELECT * FROM k.t WHERE a IN (1, 2)"):
        assert is_refused(query, f"Unable to read denylisted partition {key}")
    assert is_refused("SELECT * FROM k.t WHERE a = 1", f"Unable to read denylisted partition {key}", "SERIAL")
    for query in ("INSERT INTO k.t (a, b) VALUES (1, 'y')", "UPDATE k.t SET b = 'z' WHERE a = 1", "DELETE FROM k.t WHERE a = 1",
                  "BEGIN BATCH INSERT INTO k.t (a, b) VALUES (2, 'y'); INSERT INTO k.t (a, b) VALUES (1, 'y'); APPLY BATCH"):
        assert is_refused(query, f"Unable to write to denylisted partition {key}")
    for query in ("INSERT INTO k.t (a, b) VALUES (1, 'y') IF NOT EXISTS", "UPDATE k.t SET b = 'z' WHERE a = 1 IF b = 'x'"):
        assert is_refused(query, f"Unable to CAS write to denylisted partition {key}")
    assert is_refused("SELECT * FROM k.u WHERE a = 1 AND b = 'x'", "Unable to read denylisted partition "
                      "[0xDecoratedKey(746584927563629270, 0004000000010000017800)] in k/u")
    lowest = -2**63
    for where, bounds in (
            ("", f"({lowest}, {lowest})"),
            (f"WHERE token(a) >= {TOKEN_OF_1}", f"({TOKEN_OF_1}, {lowest}]"),
            (f"WHERE token(a) <= {TOKEN_OF_1}", f"({lowest}, {TOKEN_OF_1}]"),
            ("WHERE token(a) > -5000000000000000000 AND token(a) < -4000000000000000000",
             "(-5000000000000000000, -4000000000000000000]")):
        assert is_refused(f"SELECT * FROM k.t {where}", "Attempted to read a range containing 1 denylisted keys in k/t. "
                          f"Range read: token range: {bounds}")
    assert len(list(session.execute(f"SELECT * FROM k.t WHERE token(a) > {TOKEN_OF_1}"))) == 4
    assert not list(session.execute(f"SELECT * FROM k.t WHERE token(a) < {TOKEN_OF_1}"))
    # What is not denied, or cannot be.
    assert session.execute("SELECT b FROM k.t WHERE a = 2").one().b == "x"
    session.execute("INSERT INTO k.t (a, b) VALUES (2, 'y')")
    assert session.execute("SELECT key FROM system.local WHERE key = 'local'").one()
    # A key that is taken from the list, and more than it may have.
    session.execute("DELETE FROM system_distributed.partition_denylist WHERE ks_name = 'k' AND table_name = 't' AND key = 0x00000001")
    server.wait_until(lambda: not is_denied("SELECT * FROM k.t WHERE a = 1"), "the refresh")
    for last in range(10, 16):
        deny("t", f"000000{last:02x}")
    server.wait_until(lambda: "Partition denylist for k/t has exceeded the per-table allowance of (3)" in server.log(), "the error")
    server.wait_until(lambda: "containing 3 denylisted keys" in str(pytest.raises(
        InvalidRequest, session.execute, "SELECT * FROM k.t").value), "the refresh")
    # It is there as soon as clients are.
    server.stop()
    server.start()
    session = server.connect()
    assert is_denied("SELECT * FROM k.t WHERE a = 10")
    assert not is_denied("SELECT * FROM k.t WHERE a = 15")
