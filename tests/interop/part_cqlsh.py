# SPDX-License-Identifier: Apache-2.0
"""cqlsh from PyPI."""
import csv
import os
import re
import subprocess

from harness import ADDRESS, PORT, WORK, Server

SCHEMA = """CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
USE shop;
CREATE TYPE address (street text, zip int);
CREATE TABLE t (k int, c text, v double, l list<int>, m map<text, text>, s set<text>, u uuid, ts timestamp,
 b blob, d date, a frozen<address>, x boolean, tu tuple<int, text>, PRIMARY KEY (k, c))
 WITH CLUSTERING ORDER BY (c DESC) AND comment = 'it''s a shop';
CREATE TABLE counts (k text PRIMARY KEY, n counter);
CREATE TABLE bare (k int PRIMARY KEY, v text);
"""
ROW = ("INSERT INTO t (k, c, v, l, m, s, u, ts, b, d, a, x, tu) VALUES (%d, 'c%d', %d.5, [1, 2, %d], "
       "{'a': 'b, \"c\"'}, {'x', 'y'}, 123e4567-e89b-12d3-a456-426614174000, "
       "'2024-02-29 12:34:56.789+0000', 0xcafe, '2024-02-29', {street: 'O''Road', zip: 7}, true, "
       "(1, 'one'));\n")


class Shell:
    def __init__(self, venv, address=ADDRESS, port=PORT):
        self.command = [f"{venv}/bin/python", "-W", "ignore", f"{venv}/bin/cqlsh", address, str(port),
                        "--no-color", "--request-timeout", "60", "--cqlshrc",
                        os.path.join(WORK, "cqlshrc")]
        with open(self.command[-1], "w", encoding="utf-8"):
            pass
        self.environment = dict(os.environ, HOME=WORK, COLUMNS="200",
                                PATH=f"{venv}/bin:" + os.environ["PATH"])

    def __call__(self, text, *words, status=0, cwd=WORK):
        if text and not text.rstrip().endswith(";"):
            text += ";"
        done = subprocess.run(self.command + list(words), input=text + "\n", capture_output=True, text=True,
                              timeout=180, check=False, env=self.environment, cwd=cwd)
        # cqlsh is of 5.0 and says so each time.
        output = "\n".join(line for line in (done.stdout + done.stderr).split("\n")
                           if not line.startswith("WARNING: cqlsh was built against"))
        assert status is None or done.returncode == status, f"status {done.returncode}: {output}"
        return output


def has(output, *parts):
    for part in parts:
        assert part in output, f"no {part!r} in {output[-800:]}"


def lacks(output, *parts):
    for part in parts:
        assert part not in output, f"{part!r} in {output}"


def start(shell):
    output = shell("", "-e", "SHOW VERSION; SHOW HOST")
    has(output, "| Cassandra 4.1", "| CQL spec 3.4", "Native protocol v5",
        f"Connected to Test Cluster at {ADDRESS}:{PORT}")
    for version in ("3", "4", "5"):
        has(shell("SHOW VERSION", "--protocol-version", version), f"Native protocol v{version}")


def schema(shell):
    lacks(shell(SCHEMA), "Error", "Exception")
    rows = "USE shop;\n" + "".join(ROW % (at % 10, at, at, at) for at in range(250))
    lacks(shell(rows), "Error", "Exception")
    lacks(shell("USE shop; UPDATE counts SET n = n + 5 WHERE k = 'x';"), "Error")
    has(shell("", "-k", "shop", "-e", "SELECT k, c, v FROM t WHERE k = 3 LIMIT 2"),
        " k | c   | v\n", " 3 | c93 | 93.5\n", "(2 rows)")
    has(shell("SELECT * FROM shop.t WHERE k = 3 LIMIT 1;"),
        "O''Road", "0xcafe", "2024-02-29 12:34:56.789000+0000", "{'a': 'b, \"c\"'}", "(1, 'one')")


def describe(shell):
    output = shell("DESCRIBE KEYSPACE shop;")
    has(output, "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', "
        "'replication_factor': '1'}  AND durable_writes = true;", "CREATE TYPE shop.address (",
        "CREATE TABLE shop.t (", "WITH CLUSTERING ORDER BY (c DESC)", "comment = 'it''s a shop'",
        "    PRIMARY KEY (k, c)", "n counter")
    has(shell("DESCRIBE KEYSPACES; DESC TABLES; DESC TYPES;"), "system_schema", "shop", "counts",
        "address")
    has(shell("DESCRIBE CLUSTER"), "Cluster: Test Cluster", "Murmur3Partitioner", "Snitch:")
    has(shell("DESCRIBE TABLE shop.bare"), "CREATE TABLE shop.bare (", "gc_grace_seconds = 864000",
        "AND compaction = {'class': 'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy'")
    has(shell("DESCRIBE TYPE shop.address"), "street text")
    has(shell("DESCRIBE FULL SCHEMA"), "CREATE TABLE shop.t (", "system_auth")
    has(shell("DESCRIBE TABLE shop.nothing", status=None), "not found")
    lacks(shell("DESCRIBE SCHEMA"), "system_auth")
    has(shell("USE shop; DESCRIBE t"), "CREATE TABLE shop.t (")
    has(shell("DESC system.local; DESC KEYSPACE system_views"), "CREATE TABLE system.local",
        "VIRTUAL TABLE system_views.clients")


def recreate(shell):
    """What DESCRIBE prints makes the same again."""
    output = shell("DESCRIBE KEYSPACE shop;")
    text = output.replace("shop.", "shop2.").replace("KEYSPACE shop ", "KEYSPACE shop2 ")
    lacks(shell(text), "Error", "Exception")
    again = shell("DESCRIBE KEYSPACE shop2;")
    assert again.replace("shop2", "shop") == output, again
    shell("DROP KEYSPACE shop2;")


def source(shell):
    path = os.path.join(WORK, "source.cql")
    with open(path, "w", encoding="utf-8") as file:
        file.write("/* a comment */ USE shop;\n-- another\nINSERT INTO bare (k, v) VALUES "
                   "(1, 'from; a file');\n// third\nINSERT INTO bare (k, v)\n VALUES (2, $$dollars$$);"
                   "\nBEGIN BATCH INSERT INTO bare (k, v) VALUES (3, 'x'); DELETE FROM bare WHERE k = 9;"
                   " APPLY BATCH;\n")
    lacks(shell(f"SOURCE '{path}'"), "Error")
    has(shell("SELECT v FROM shop.bare;"), "from; a file", "dollars", "(3 rows)")
    lacks(shell("", "-f", path), "Error")


def copy(shell):
    path = os.path.join(WORK, "t.csv")
    output = shell(f"COPY shop.t TO '{path}' WITH HEADER = true;")
    has(output, "250 rows exported to 1 files")
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 251 and rows[0][0] == "k", rows[0]
    before = shell("SELECT JSON * FROM shop.t;")
    shell("TRUNCATE shop.t;")
    has(shell("SELECT * FROM shop.t;"), "(0 rows)")
    output = shell(f"COPY shop.t FROM '{path}' WITH HEADER = true;")
    has(output, "250 rows imported from 1 files")
    after = shell("SELECT JSON * FROM shop.t;")
    assert sorted(after.split("\n")) == sorted(before.split("\n")), after[:2000]
    path = os.path.join(WORK, "counts.csv")
    has(shell(f"COPY shop.counts TO '{path}';"), "1 rows exported")
    has(shell(f"COPY shop.counts FROM '{path}';"), "1 rows imported")
    has(shell("SELECT n FROM shop.counts;"), "10")
    path = os.path.join(WORK, "many.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{at},value {at}\n" for at in range(20000))
    output = shell(f"COPY shop.bare (k, v) FROM '{path}' WITH CHUNKSIZE = 500 AND NUMPROCESSES = 2;")
    has(output, "20000 rows imported from 1 files")
    has(shell("SELECT count(*) FROM shop.bare;"), "20000")
    output = shell(f"COPY shop.bare TO '{path}.out' WITH PAGESIZE = 777 AND MAXREQUESTS = 3;")
    has(output, "20000 rows exported to 1 files")
    with open(path + ".out", encoding="utf-8") as file:
        assert len(set(file)) == 20000


def paging(shell):
    output = shell("PAGING 60;\nSELECT k, c FROM shop.t;\nPAGING OFF;\nPAGING;")
    has(output, "Page size: 60", "(250 rows)")
    assert len(re.findall(r"^ +\d \| +c\d+$", output, re.M)) == 250
    has(shell("PAGING OFF;\nSELECT k FROM shop.bare;"), "(20000 rows)")


def tracing(shell):
    output = shell("TRACING ON;\nSELECT * FROM shop.bare WHERE k = 7;\n"
                   "INSERT INTO shop.bare (k, v) VALUES (7, 'seven');\nTRACING OFF;")
    has(output, "TRACING set to ON", "Tracing session:", "Execute CQL3 query",
        "Parsing SELECT * FROM shop.bare WHERE k = 7;", "Request complete", "Appending to commitlog",
        "TRACING set to OFF")
    session, = set(re.findall(r"Tracing session: ([0-9a-f-]{36})", output)[:1])
    has(shell(f"SHOW SESSION {session}"), "Request complete", ADDRESS)


def consistency(shell):
    output = shell("CONSISTENCY QUORUM;\nSELECT * FROM shop.bare WHERE k = 7;\nCONSISTENCY;\n"
                   "SERIAL CONSISTENCY LOCAL_SERIAL;\nSERIAL CONSISTENCY;\n"
                   "UPDATE shop.bare SET v = 'lwt' WHERE k = 7 IF v = 'seven';\n"
                   "CONSISTENCY SERIAL;\nSELECT v FROM shop.bare WHERE k = 7;")
    has(output, "Consistency level set to QUORUM.", "Current consistency level is QUORUM.",
        "Serial consistency level set to LOCAL_SERIAL.", "[applied]", "True", "lwt")
    has(shell("CONSISTENCY THREE;\nSELECT * FROM shop.bare WHERE k = 7;", status=None), "Unavailable")


def expand_and_capture(shell):
    has(shell("EXPAND ON;\nSELECT k, v FROM shop.bare WHERE k = 8;"), "@ Row 1", " k | 8",
        " v | value 8")
    path = os.path.join(WORK, "captured.txt")
    shell(f"CAPTURE '{path}';\nSELECT v FROM shop.bare WHERE k = 9;\nCAPTURE OFF;")
    with open(path, encoding="utf-8") as file:
        has(file.read(), "value 9", "(1 rows)")


def errors(shell):
    has(shell("SELEC * FROM x;", status=None), "SyntaxException",
        "line 1:0 no viable alternative at input 'SELEC'")
    has(shell("SELECT * FROM shop.none;", status=None), "InvalidRequest", "code=2200",
        "table none does not exist")
    has(shell("CREATE TABLE shop.bare (k int PRIMARY KEY);", status=None), "AlreadyExists")
    has(shell("INSERT INTO shop.bare (k) VALUES ('x');", status=None), "Invalid STRING constant")
    has(shell("USE nowhere;", status=None), "Keyspace 'nowhere' does not exist")


def json_and_functions(shell):
    lacks(shell("""INSERT INTO shop.bare JSON '{"k": 30001, "v": "json"}';"""), "Error")
    has(shell("SELECT JSON * FROM shop.bare WHERE k = 30001;"), '{"k": 30001, "v": "json"}')
    has(shell("SELECT token(k), writetime(v), ttl(v), toJson(v), count(*) FROM shop.bare "
              "WHERE k = 30001;"), '"json"', "null")
    has(shell("SELECT now(), uuid(), toTimestamp(now()) FROM system.local;"), "system.now()",
        "(1 rows)")


def system_tables(shell):
    for table in ("system.local", "system.peers", "system.peers_v2", "system_schema.tables",
                  "system_schema.columns", "system_schema.types", "system_schema.functions",
                  "system_schema.aggregates", "system_schema.indexes", "system_schema.views",
                  "system_schema.triggers", "system_schema.keyspaces", "system_views.clients",
                  "system_views.settings", "system_views.thread_pools", "system_views.caches",
                  "system_views.sstable_tasks", "system_virtual_schema.tables", "system_auth.roles",
                  "system_traces.sessions", "system.size_estimates", "system.compaction_history"):
        lacks(shell(f"SELECT * FROM {table} LIMIT 5;"), "Error", "Exception", "Traceback")


def after_kill(shell, server):
    server.kill()
    server.start()
    has(shell("SELECT count(*) FROM shop.bare; SELECT n FROM shop.counts;"), "20001", "10")


def run(checks, venv):
    shell = Shell(venv)
    server = Server("cqlsh").start()
    try:
        for name, function in (
                ("connects, on each protocol version", start), ("schema and statements", schema),
                ("DESCRIBE", describe), ("DESCRIBE makes the same keyspace again", recreate),
                ("SOURCE and -f", source), ("COPY TO and FROM", copy), ("PAGING", paging),
                ("TRACING and SHOW SESSION", tracing), ("CONSISTENCY", consistency),
                ("EXPAND and CAPTURE", expand_and_capture), ("errors", errors),
                ("JSON and functions", json_and_functions), ("system tables", system_tables)):
            checks.check("cqlsh", name, function, shell)
        checks.check("cqlsh", "the same data after kill -9", after_kill, shell, server)
    finally:
        server.stop()
