# SPDX-License-Identifier: Apache-2.0
"""SSTables between the two servers: Cassandra's files here, our files in Cassandra and its programs."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from harness import ADDRESS, HERE, PORT, ROOT, TOOLS, WORK, LeftOut, Server, need

FIXTURES = os.path.join(ROOT, "tests", "data", "cassandra-4.1")
KEYSPACE = "fixture1"
# More rows, made here; every compressor, kind of deletion and of column.
OWN = """
INSERT INTO fixture1.types (id, a, b, bl, bo, d, de, db, du, f, i, n, si, t, ti, ts, tu, ty, u, vi) VALUES
 (1001, 'ascii', -9223372036854775808, 0x00ff, true, '1969-07-20', -1.50, -1.5e300, 1mo2d3ns, 0.5,
 '2001:db8::1', -2147483648, -32768, 'text', '23:59:59.999999999', '1969-12-31T23:59:59.999Z',
 550e8400-e29b-11d4-a716-446655440000, -128, 3f2504e0-4f89-41d3-9a0c-0305e82c3301, -99999999999999999999);
INSERT INTO fixture1.types (id, a, t, bl) VALUES (1002, '', '', 0x);
INSERT INTO fixture1.types (id, t) VALUES (1003, 'expires later') USING TTL 864000;
INSERT INTO fixture1.types (id) VALUES (1004);
DELETE t FROM fixture1.types WHERE id = 1001;
INSERT INTO fixture1.collections (pk, ck, l, st, m, fl, fm, tp, ad, fad) VALUES ('own', 1, [1, 2, 3],
 {'a', 'b'}, {1: 'x', 2: 'y'}, [4, 5], {'k': {1, 2}}, (1, 'one', [7]), {street: 'Road', zip: 1,
 tags: {'t'}}, {street: 'Way', zip: 2});
UPDATE fixture1.collections SET l = l + [9], st = st - {'a'}, m[2] = null, ad.zip = 5
 WHERE pk = 'own' AND ck = 1;
UPDATE fixture1.collections SET l = [10] + l, m = {3: 'z'} WHERE pk = 'own' AND ck = 2;
INSERT INTO fixture1.tombs (pk, c1, c2, st, v, w) VALUES (5001, 1, 'a', 'static', 1, 'w');
INSERT INTO fixture1.tombs (pk, c1, c2, v) VALUES (5001, 2, 'b', 2);
INSERT INTO fixture1.tombs (pk, c1, c2, v) VALUES (5001, 3, 'c', 3);
DELETE FROM fixture1.tombs WHERE pk = 5001 AND c1 = 2;
DELETE FROM fixture1.tombs WHERE pk = 5001 AND c1 > 2 AND c1 < 9;
DELETE FROM fixture1.tombs WHERE pk = 5001 AND c1 >= 20;
DELETE FROM fixture1.tombs WHERE pk = 5001 AND c1 = 1 AND c2 >= 'x';
DELETE st FROM fixture1.tombs WHERE pk = 5001;
INSERT INTO fixture1.tombs (pk, st, st2) VALUES (5002, 'only static', 7);
DELETE FROM fixture1.tombs WHERE pk = 5003;
INSERT INTO fixture1.composite (a, b, c, d, v) VALUES (9, 'b', 9, 'd', {3, 1, 2});
UPDATE fixture1.counts SET hits = hits + 7 WHERE pk = 'own' AND ck = 1;
UPDATE fixture1.counts SET hits = hits - 2, miss = miss + 1 WHERE pk = 'own' AND ck = 1;
INSERT INTO fixture1.dropped (pk, b, c) VALUES (99, 'b', 5);
INSERT INTO fixture1.stress_like (key, "C0", "C1", "C2", "C3", "C4") VALUES (0x30313233, 0x01, 0x02, 0x03, 0x04, 0x05);
"""


def own_statements():
    lines = [OWN]
    for table in ("lz4", "zstd", "snappy", "deflate", "none", "small_chunks"):
        for row in range(200):
            lines.append(f"INSERT INTO fixture1.plain_{table} (pk, ck, v, b) VALUES ({1000 + row % 7}, {row}, "
                         f"'{'value ' * (row % 50)}{row}', 0x{'ab' * (row % 300)});\n")
    for row in range(3000):
        lines.append(f"INSERT INTO fixture1.wide (pk, ck, v) VALUES (77, {row:08x}-e29b-11d4-a716-446655440000, "
                     f"'{'w' * 60}{row}');\n")
    return "".join(lines)


class Cassandra:
    """A node run from its published jars, beside ours on the same address."""

    def __init__(self, jars):
        self.jars = jars
        self.path = os.path.join(WORK, "cassandra")
        self.port, self.jmx = PORT + 10, PORT + 13
        os.makedirs(self.path)
        self.process = None
        with open(f"{self.path}/cassandra.yaml", "w", encoding="utf-8") as file:
            file.write(f"""cluster_name: peer
num_tokens: 16
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
data_file_directories: [{self.path}/data]
commitlog_directory: {self.path}/commitlog
saved_caches_directory: {self.path}/saved_caches
hints_directory: {self.path}/hints
cdc_raw_directory: {self.path}/cdc_raw
commitlog_sync: periodic
commitlog_sync_period: 10000ms
commitlog_total_space: 64MiB
listen_address: {ADDRESS}
rpc_address: {ADDRESS}
native_transport_port: {self.port}
storage_port: {PORT + 11}
ssl_storage_port: {PORT + 12}
endpoint_snitch: SimpleSnitch
seed_provider: [{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{{seeds: "{ADDRESS}:{PORT + 11}"}}]}}]
""")
        with open(f"{self.path}/logback.xml", "w", encoding="utf-8") as file:
            file.write("""<configuration><appender name="S" class="ch.qos.logback.core.ConsoleAppender">
<target>System.err</target><encoder><pattern>%-5level %date %msg%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="S"/></root></configuration>
""")

    def command(self, *words):
        java = ["java", "-Xmx512M", "-Djava.security.manager=allow",
                "-Djdk.attach.allowAttachSelf=true"]
        for name in ("java.base/jdk.internal.misc", "java.base/jdk.internal.ref",
                     "java.base/sun.nio.ch", "java.management.rmi/com.sun.jmx.remote.internal.rmi",
                     "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server",
                     "java.rmi/sun.rmi.transport.tcp", "java.sql/java.sql",
                     "jdk.unsupported/sun.misc", "jdk.attach/sun.tools.attach",
                     "jdk.compiler/com.sun.tools.javac.file"):
            java += ["--add-exports", f"{name}=ALL-UNNAMED"]
        for name in ("java.lang", "java.lang.module", "java.io", "java.net", "java.nio",
                     "java.nio.charset", "java.util", "java.util.concurrent",
                     "java.util.concurrent.atomic", "jdk.internal.loader", "jdk.internal.math",
                     "jdk.internal.module", "jdk.internal.ref", "jdk.internal.reflect",
                     "jdk.internal.util.jar", "sun.nio.ch"):
            java += ["--add-opens", f"java.base/{name}=ALL-UNNAMED"]
        java += ["--add-opens", "jdk.management/com.sun.management.internal=ALL-UNNAMED",
                 "--add-opens", "java.rmi/sun.rmi.transport.tcp=ALL-UNNAMED"]
        java += [f"-Dcassandra.config=file://{self.path}/cassandra.yaml",
                 f"-Dcassandra.storagedir={self.path}",
                 f"-Dlogback.configurationFile={self.path}/logback.xml"]
        return java + [str(word) for word in words]

    def start(self):
        agent, = glob.glob(f"{self.jars}/jamm-*.jar")
        command = self.command(
            f"-javaagent:{agent}", f"-Dcassandra.jmx.local.port={self.jmx}",
            "-Dcassandra-foreground=yes", "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.ring_delay_ms=100", "-cp", f"{self.jars}/*",
            "org.apache.cassandra.service.CassandraDaemon")
        with open(f"{self.path}/log", "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + 180
        while True:
            try:
                socket.create_connection((ADDRESS, self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    with open(f"{self.path}/log", encoding="utf-8", errors="replace") as log:
                        raise RuntimeError(f"Cassandra did not start: {log.read()[-2000:]}") from None
                time.sleep(0.5)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def tool(self, name, *words):
        """Its exit status and what it printed."""
        agent, = glob.glob(f"{self.jars}/jamm-*.jar")
        done = subprocess.run(self.command(f"-javaagent:{agent}", "-cp", f"{self.jars}/*", f"org.apache.cassandra.tools.{name}",
                                           *words), capture_output=True, text=True, timeout=300,
                              check=False, errors="replace")
        return done.returncode, done.stdout, done.stderr

    def nodetool(self, *words):
        status, output, errors = self.tool("NodeTool", "-h", "127.0.0.1", "-p", self.jmx, *words)
        assert status == 0, output + errors

    def folder(self, table):
        found, = glob.glob(f"{self.path}/data/{KEYSPACE}/{table}-*")
        return found


class Cql:
    def __init__(self, program):
        self.program = program

    def __call__(self, port, *words):
        done = subprocess.run([self.program, os.path.join(HERE, "python_cql.py"), ADDRESS, str(port),
                               *words], capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
        return done.stdout

    def tables(self, port, names):
        tables, name = {}, None
        for line in self(port, "json", *(f"{KEYSPACE}.{name}" for name in names)).split("\n"):
            if line.startswith("-- "):
                name = line.split(".")[1]
                tables[name] = []
            elif line:
                tables[name].append(line)
        return tables


def same_rows(got, expected):
    for at, (left, right) in enumerate(zip(got, expected)):
        assert left == right, f"row {at}: {left[:600]} is not {right[:600]}"
    assert len(got) == len(expected), f"{len(got)} rows are not {len(expected)}"


def data_files(folder):
    return sorted(glob.glob(f"{folder}/*-Data.db"))


def dump(cassandra, files):
    for path in files:
        status, output, errors = cassandra.tool("SSTableExport", path)
        assert status == 0, f"{path}: {errors[-1000:]}"
        partitions = json.loads(output)
        assert partitions and all("partition" in one for one in partitions), path


def metadata(cassandra, files, table):
    status, output, errors = cassandra.tool("SSTableMetadataViewer", *files)
    assert status == 0, errors[-1000:]
    assert output.count("SSTable: ") == len(files), output[:2000]
    for part in ("Bloom Filter FP chance", "Minimum timestamp:", "Estimated droppable tombstones:",
                 "KeyType:", "ClusteringTypes:", "RegularColumns:", "Compressor:"):
        assert output.count(part) == len(files), f"{table}: {part}: {output[:2000]}"
    assert "Exception" not in output + errors, output + errors


def verify(cassandra, table):
    status, output, errors = cassandra.tool("StandaloneVerifier", "-f", "-e", KEYSPACE, table)
    assert status == 0 and not re.search(r"Error|Exception|orrupt", output + errors), (
        f"status {status}: {output[-1000:]}{errors[-1500:]}")
    assert "Verifying" in output, output


def jars():
    need("mvn")
    from __main__ import stamp, install

    def make(folder):
        shutil.copy(os.path.join(HERE, "cassandra", "pom.xml"), folder)
        install("Cassandra", ["mvn", "-q", "-B", "dependency:copy-dependencies",
                              f"-DoutputDirectory={folder}/jars"], cwd=folder)
    return os.path.join(stamp("cassandra", "cassandra/pom.xml", make), "jars")


def run(checks):
    need("java")
    from __main__ import venv
    cql = Cql(f"{venv()}/bin/python")
    names = sorted(name.rsplit("-", 1)[0] for name in os.listdir(f"{FIXTURES}/data/{KEYSPACE}"))
    server = Server("sstables").start()
    ours = {}
    try:
        cql(PORT, "run", f"{FIXTURES}/schema.cql")
        for path in glob.glob(f"{FIXTURES}/data/{KEYSPACE}/*/*"):
            table = os.path.basename(os.path.dirname(path)).rsplit("-", 1)[0]
            generation = os.path.basename(path).split("-")[1]
            # The rows that Cassandra answered are those of the files it dumped.
            if not os.path.exists(f"{FIXTURES}/dump/{table}.{generation}.json"):
                continue
            shutil.copy(path, server.table_folder(KEYSPACE, table))
        for table in names:
            checks.check("sstables", f"nodetool refresh of Cassandra's files of {table}",
                         lambda table=table: server.nodetool("refresh", KEYSPACE, table))
        got = cql.tables(PORT, names)

        def fixture(table):
            with open(f"{FIXTURES}/rows/{table}.jsonl", encoding="utf-8") as file:
                same_rows(got[table], file.read().rstrip("\n").split("\n"))
        for table in names:
            checks.check("sstables", f"the rows Cassandra read from {table}", fixture, table)
        with open(f"{WORK}/own.cql", "w", encoding="utf-8") as file:
            file.write(own_statements())
        cql(PORT, "run", f"{WORK}/own.cql")
        server.nodetool("flush")
        flushed = f"{WORK}/flushed"
        copy_files(server, names, flushed)
        before = cql.tables(PORT, names)
        for table in names:
            server.nodetool("compact", KEYSPACE, table)
        compacted = f"{WORK}/compacted"
        copy_files(server, names, compacted)
        ours = cql.tables(PORT, names)
        for table in names:
            checks.check("sstables", f"compaction leaves the rows of {table}",
                         lambda table=table: same_rows(ours[table], before[table]))
    finally:
        server.stop()
    in_cassandra(checks, cql, names, ours, flushed, compacted)


def copy_files(server, names, into):
    for table in names:
        shutil.copytree(server.table_folder(KEYSPACE, table), f"{into}/{table}",
                        ignore=shutil.ignore_patterns("snapshots", "backups"))


def in_cassandra(checks, cql, names, ours, flushed, compacted):
    cassandra = Cassandra(jars())
    for table in names:
        # What the compaction wrote is all ours; the flushed file is the newest of the folder.
        newest = max(data_files(f"{flushed}/{table}"), key=lambda path: int(path.split("-")[-3]))
        files = [newest] + data_files(f"{compacted}/{table}")
        checks.check("sstables", f"sstabledump of {table}, flushed and compacted", dump, cassandra, files)
        # That program falls over a range deletion that is open at an end, in Cassandra's own files too.
        checks.check("sstables", f"sstablemetadata of {table}", metadata, cassandra,
                     files[:1] if table == "wide" else files, table)
    try:
        cassandra.start()
        cql(cassandra.port, "run", f"{FIXTURES}/schema.cql")
        for table in names:
            for path in glob.glob(f"{compacted}/{table}/*"):
                if os.path.isfile(path):
                    shutil.copy(path, cassandra.folder(table))
            checks.check("sstables", f"Cassandra loads our files of {table}",
                         lambda table=table: cassandra.nodetool("refresh", KEYSPACE, table))
        theirs = cql.tables(cassandra.port, names)
        for table in names:
            checks.check("sstables", f"Cassandra reads the same rows of {table}",
                         lambda table=table: same_rows(theirs[table], ours[table]))
    finally:
        cassandra.stop()
    for table in names:
        checks.check("sstables", f"sstableverify of {table}", verify, cassandra, table)
