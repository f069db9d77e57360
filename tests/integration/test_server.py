# SPDX-License-Identifier: Apache-2.0
"""The process: command line, configuration, signals, one server for one data directory, TLS."""
import os
import re
import signal
import socket
import ssl
import subprocess
import threading

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from conftest import HELENUSD, PATIENCE

SIMPLE = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


def run(*words):
    return subprocess.run([HELENUSD, *words], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)


def test_version_and_help():
    assert run("--version").stdout.startswith("helenusd ")
    assert run("-v").returncode == 0
    assert "usage:" in run("-h").stdout


@pytest.mark.parametrize("words", [["-x"], ["-D", "no_such_key=1"], ["-D", "concurrent_reads=x"],
                                   ["-c", "/no/such/file"], ["stray"]])
def test_wrong_command_line_is_status_2(words):
    done = run(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("helenusd: ") or "usage:" in done.stderr
    assert done.stdout == ""


def test_wrong_value_names_file_line_and_key(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text("cluster_name: x\nread_request_timeout: soon\n")
    done = run("-c", str(path))
    assert done.returncode == 2
    assert f"{path}:2: read_request_timeout: 'soon' is wrong" in done.stderr
    assert "10s" in done.stderr


def test_unknown_and_old_keys_are_warned_of_and_harmless(new_server, tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text("no_such_key: 1\nread_request_timeout_in_ms: 4000\n")
    server = new_server(config=str(path)).start()
    assert "no_such_key" in server.log()
    assert server.nodetool("gettimeout", "read") == "Current timeout for type read: 4000 ms\n"


def test_seeds_that_cannot_be_found_are_named(new_server):
    """And a start that was refused does not say that it stops without a drain."""
    server = new_server(seeds="seed-one.invalid,seed-two.invalid")
    done = subprocess.run(server.command(), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert "Seed provider couldn't lookup host seed-one.invalid" in done.stderr
    assert "The seed provider lists no seeds that can be found: seeds: 'seed-two.invalid': " in done.stderr
    assert "without a drain" not in done.stderr


def test_two_servers_on_one_directory(new_server):
    first = new_server().start()
    second = new_server()
    assert second.port != first.port
    done = subprocess.run(second.command(), capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 2
    assert "is used by another server" in done.stderr


def test_port_in_use_is_told(new_server):
    first = new_server("one").start()
    second = new_server("two")
    second.port = first.port
    done = subprocess.run(second.command(), capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 1
    assert "cannot listen for CQL clients" in done.stderr


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signal_drains_and_exits_0(new_server, how):
    server = new_server().start()
    session = server.connect()
    session.execute(f"CREATE KEYSPACE s WITH replication = {SIMPLE}")
    session.execute("CREATE TABLE s.t (id int PRIMARY KEY)")
    for i in range(100):
        session.execute("INSERT INTO s.t (id) VALUES (%s)", (i,))
    assert server.stop(how) == 0
    assert "DRAINED" in server.log()
    server.start()
    assert len(list(server.connect().execute("SELECT * FROM s.t"))) == 100


def test_kill_loses_no_acknowledged_write_in_batch_mode(new_server):
    server = new_server(commitlog_sync="batch").start()
    session = server.connect()
    session.execute(f"CREATE KEYSPACE s WITH replication = {SIMPLE}")
    session.execute("CREATE TABLE s.t (id int PRIMARY KEY)")
    insert = session.prepare("INSERT INTO s.t (id) VALUES (?)")
    for i in range(200):
        session.execute(insert, (i,))
    server.kill()
    server.start()
    assert len(list(server.connect().execute("SELECT * FROM s.t"))) == 200


def test_service_manager_is_told(new_server, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.settimeout(PATIENCE)
        server = new_server().start(environment={**os.environ, "NOTIFY_SOCKET": path})
        assert listener.recv(100) == b"READY=1"
        server.stop()
        assert listener.recv(100) == b"STOPPING=1"


def test_log_file_as_json_and_pid_file(new_server, tmp_path):
    import json

    server = new_server(log_file=tmp_path / "system.log", log_format="json").start()
    server.stop()
    lines = (tmp_path / "system.log").read_text().splitlines()
    assert lines and all(json.loads(line) for line in lines)


def test_requests_in_flight_are_answered_before_the_end(new_server):
    server = new_server().start()
    session = server.connect()
    session.execute(f"CREATE KEYSPACE s WITH replication = {SIMPLE}")
    session.execute("CREATE TABLE s.t (id int PRIMARY KEY, v text)")
    insert = session.prepare("INSERT INTO s.t (id, v) VALUES (?, ?)")
    futures = [session.execute_async(insert, (i, "x" * 100)) for i in range(2000)]
    server.process.send_signal(signal.SIGTERM)
    acknowledged = 0
    for future in futures:
        try:
            future.result()
            acknowledged += 1
        except Exception:  # not sent any more
            pass
    assert server.stop() == 0
    server.start()
    assert len(list(server.connect().execute("SELECT id FROM s.t"))) >= acknowledged


# ---- TLS --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """(path of the node's PEM, path of the certificate, path of the key)"""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate, both = folder / "key.pem", folder / "certificate.pem", folder / "node.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    both.write_bytes(certificate.read_bytes() + key.read_bytes())
    return str(both), str(certificate), str(key)


def context(certificates=None):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if certificates is not None:
        made.load_cert_chain(certificates[1], certificates[2])
    return made


def can_connect(server, ssl_context, **options):
    try:
        session = server.connect(ssl_context=ssl_context, **options)
        return len(list(session.execute("SELECT * FROM system_schema.columns"))) > 100
    except Exception:
        return False


def test_tls_required(new_server, certificates):
    server = new_server(client_encryption_options__enabled=True,
                        client_encryption_options__keystore=certificates[0]).start()
    assert can_connect(server, context())
    assert not can_connect(server, None)
    rows = list(server.connect(ssl_context=context()).execute(
        "SELECT ssl_enabled, ssl_protocol FROM system_views.clients"))
    assert all(row.ssl_enabled and row.ssl_protocol.startswith("TLSv1.") for row in rows)


def test_tls_optional_takes_both(new_server, certificates):
    server = new_server(client_encryption_options__enabled=True,
                        client_encryption_options__optional=True,
                        client_encryption_options__keystore=certificates[0]).start()
    assert can_connect(server, context())
    assert can_connect(server, None)


def test_tls_client_certificate(new_server, certificates):
    server = new_server(client_encryption_options__enabled=True,
                        client_encryption_options__keystore=certificates[0],
                        client_encryption_options__truststore=certificates[1],
                        client_encryption_options__require_client_auth=True).start()
    assert can_connect(server, context(certificates))
    assert not can_connect(server, context())


def test_tls_large_answers_and_many_requests(new_server, certificates):
    server = new_server(client_encryption_options__enabled=True,
                        client_encryption_options__keystore=certificates[0]).start()
    session = server.connect(ssl_context=context())
    session.execute(f"CREATE KEYSPACE s WITH replication = {SIMPLE}")
    session.execute("CREATE TABLE s.t (id int PRIMARY KEY, v blob)")
    insert = session.prepare("INSERT INTO s.t (id, v) VALUES (?, ?)")
    blob = os.urandom(100000)
    for future in [session.execute_async(insert, (i, blob)) for i in range(50)]:
        future.result()
    rows = list(session.execute("SELECT * FROM s.t"))
    assert len(rows) == 50 and all(row.v == blob for row in rows)


def test_hangup_reads_the_certificates_again(new_server, certificates, tmp_path):
    keystore = tmp_path / "node.pem"
    keystore.write_bytes(open(certificates[0], "rb").read())
    server = new_server(client_encryption_options__enabled=True,
                        client_encryption_options__keystore=keystore).start()
    keystore.write_text("broken")
    server.process.send_signal(signal.SIGHUP)
    server.wait_until(lambda: "SIGHUP" in server.log(), "reading again")
    assert can_connect(server, context())  # the old ones stay


# ---- many clients ---------------------------------------------------------------------------------------


def test_many_connections_at_once(server):
    def use():
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
            client.sendall(bytes([4, 0, 0, 1, 5, 0, 0, 0, 0]))
            answers.append(client.recv(9)[4])

    answers = []
    threads = [threading.Thread(target=use) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [6] * 200


def test_slow_reads_are_named_in_the_log(new_server):
    server = new_server(slow_query_log_timeout="1ms").start()
    assert "no effect" not in server.log()
    session = server.connect()
    session.execute("CREATE KEYSPACE slow WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE slow.t (k int, c int, v text, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO slow.t (k, c, v) VALUES (1, ?, 'some text')")
    for one in range(20):
        execute_concurrent_with_args(session, insert, [(1000 * one + c,) for c in range(1000)])
    session.set_keyspace("slow")
    session.default_fetch_size = 0
    select = session.prepare("SELECT count(v) FROM t WHERE k = ? AND v = 'other' ALLOW FILTERING")
    for _ in range(3):
        session.execute(select, (1,))
    session.execute("SELECT max(c) FROM slow.t")
    server.wait_until(lambda: "SELECT max(c)" in server.log(), "the report")
    log = server.log()
    assert re.search(r"\d+ operations were slow in the last \d+ msecs:", log)
    # Three times, or what of them was quick enough is not counted.
    assert re.search(r"<SELECT count\(v\) FROM t WHERE k = \? AND v = 'other' ALLOW FILTERING> in slow, "
                     r"(was slow [23] times: avg/min/max \d+/\d+/\d+|time \d+) msec - slow timeout 1 msec", log), log
    assert re.search(r"<SELECT max\(c\) FROM slow.t> in slow, time \d+ msec - slow timeout 1 msec", log)
    assert "INSERT" not in log
