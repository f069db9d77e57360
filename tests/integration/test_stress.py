# SPDX-License-Identifier: Apache-2.0
"""What helenus-stress does with profiles, seen from the table that it filled."""
import os
import re
import subprocess

import pytest

from conftest import BUILD, PATIENCE

STRESS = os.path.join(BUILD, "helenus-stress")

PROFILE = """
keyspace: {keyspace}
table: t
table_definition: |
  CREATE TABLE t (a int, b text, c int, d timeuuid, s text static, v blob, w set<int>, x int, l list<text>,
                  PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC)
columnspec:
  - name: c
    cluster: uniform(1..5)
  - name: d
    cluster: fixed(3)
  - name: w
    size: uniform(0..10)
insert:
  partitions: fixed(2)
  batchtype: UNLOGGED
  {insert}
queries:
  cas:
    cql: UPDATE t SET x = ? WHERE a = ? AND b = ? AND c = ? AND d = ? IF x = ?
    fields: samerow
token_range_queries:
  all:
    columns: '*'
    page_size: 50
  some:
    columns: a, x
    page_size: 10000
"""


class Stress:
    def __init__(self, server, session, keyspace, path):
        self.server, self.session, self.keyspace, self.path = server, session, keyspace, path
        self.define()

    def define(self, insert="select: fixed(1)/1"):
        self.path.write_text(PROFILE.format(keyspace=self.keyspace, insert=insert))

    def run(self, operations, *words, count=300, status=0):
        done = subprocess.run(
            [STRESS, "user", f"profile={self.path}", f"ops({operations})", f"n={count}", "no-warmup",
             "-pop", "seq=1..300", "-rate", "threads=4", "-node", "127.0.0.1", "-port",
             f"native={self.server.port}", *words],
            capture_output=True, text=True, errors="replace", timeout=PATIENCE * 3, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def rows(self, columns="*"):
        return list(self.session.execute(f"SELECT {columns} FROM t"))


@pytest.fixture
def stress(server, session, keyspace, tmp_path):
    return Stress(server, session, keyspace, tmp_path / "profile.yaml")


def sums(output, name):
    return int(re.search(rf"^{name} *: +([\d,]+)", output, re.M).group(1).replace(",", ""))


def test_validate_finds_what_is_not_as_it_was_written(stress):
    stress.run("insert=1")
    row = stress.rows()[0]
    output = stress.run("validate=1", count=2000)
    assert sums(output, "Total errors") == 0
    assert sums(output, "Total partitions") > 300
    # A row that lacks, one too many, another value: each time somebody finds it.
    key = (row.a, row.b, row.c, row.d)
    where = "WHERE a = %s AND b = %s AND c = %s AND d = %s"
    stress.session.execute(f"DELETE FROM t {where}", key)
    assert "Data returned was not validated" in stress.run("validate=1", count=20000, status=1)
    stress.run("insert=1")
    stress.session.execute("INSERT INTO t (a, b, c, d) VALUES (%s, %s, %s, now())", key[:3])
    assert "Data returned was not validated" in stress.run("validate=1", count=20000, status=1)
    stress.session.execute("TRUNCATE t")
    stress.run("insert=1")
    assert sums(stress.run("validate=1", count=2000), "Total errors") == 0
    stress.session.execute(f"UPDATE t SET w = w + {{1}} {where}", key)
    assert "Data returned was not validated" in stress.run("validate=1", count=20000, status=1)
    stress.run("validate=1", "-errors", "skip-read-validation")


def test_token_ranges_read_everything_once(stress):
    stress.run("insert=1")
    rows = stress.rows("a, b")
    for name, options in (("all", ()), ("some", ("-tokenrange", "split-factor=5")),
                          ("all", ("-mode", "native", "cql3", "protocolVersion=4"))):
        output = stress.run(f"{name}=1", *options, count=100000)
        assert sums(output, "Total partitions") == len(set(rows)) == 300
        assert sums(output, "Total errors") == 0
    # Around and around, until the operations are used up.
    output = stress.run("some=1", "-tokenrange", "wrap", count=200)
    assert sums(output, "Total partitions") > 600


def test_conditional_writes_compare_with_what_is_there(stress):
    stress.run("insert=1")
    changed = {(row.a, row.b, row.c, row.d) for row in stress.rows()}
    for key in changed:
        stress.session.execute("UPDATE t SET x = 12345 WHERE a = %s AND b = %s AND c = %s AND d = %s", key)
    output = stress.run("cas=1", count=300)
    assert sums(output, "Total errors") == 0
    # A write of another value than 12345, on a row of each partition: it was read before.
    assert len({(row.a, row.b) for row in stress.rows() if row.x != 12345}) == 300


def test_inserts_with_a_condition_keep_what_is_there(stress):
    stress.define("condition: IF NOT EXISTS")
    stress.run("insert=1", "-insert", "partitions=fixed(1)")
    rows = stress.rows()
    assert len(rows) > 300
    row = rows[0]
    key = (row.a, row.b, row.c, row.d)
    stress.session.execute("UPDATE t SET x = 12345 WHERE a = %s AND b = %s AND c = %s AND d = %s", key)
    stress.run("insert=1", "-insert", "partitions=fixed(1)")
    assert 12345 in {row.x for row in stress.rows()}


def test_statements_are_shown_and_headers_come_again(stress, tmp_path):
    log = tmp_path / "queries"
    output = stress.run("insert=1", "-log", "show-queries", f"query-log-file={log}")
    assert "insert: UPDATE t SET" in output
    assert log.read_text().startswith("insert: UPDATE t SET")
    done = subprocess.run(
        [STRESS, "write", "duration=3s", "no-warmup", "-rate", "threads=1", "throttle=100/s", "-node", "127.0.0.1",
         "-port", f"native={stress.server.port}", "-reporting", "header-frequency=1s"],
        capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("type       total ops,") >= 2


def test_nodes_of_no_such_rack(stress):
    done = subprocess.run([STRESS, "read", "n=1", "-node", "rack=nowhere", "127.0.0.1", "-port",
                           f"native={stress.server.port}"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert "no node is in datacenter (any), rack nowhere" in done.stderr


def test_each_command_and_option_has_help():
    def help_of(*topic):
        return subprocess.run([STRESS, "help", *topic], capture_output=True, text=True, timeout=PATIENCE, check=False)

    for name in re.findall(r"^(\S+) +: ", help_of().stdout, re.M):
        found = help_of(name)
        assert found.stdout.lstrip().startswith("Usage: "), name
