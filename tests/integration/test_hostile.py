# SPDX-License-Identifier: Apache-2.0
"""What clients and disks do to a server that did nothing to them: it goes on serving the others."""
import glob
import io
import os
import random
import select
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

from conftest import PATIENCE

KEYSPACE = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
STARTUP = struct.pack(">H", 1) + b"\0\x0bCQL_VERSION\0\x053.0.0"


def frame(version, opcode, body=b"", stream=0, flags=0):
    return struct.pack(">BBhBI", version, flags, stream, opcode, len(body)) + body


def query(text, tail=b"\0\1\0"):
    return struct.pack(">I", len(text)) + text.encode() + tail


def open_socket(server, version=4):
    """A connection after STARTUP; version 0: before it."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    if version:
        client.sendall(frame(version, 1, STARTUP))
        assert receive(client)[0] == 2
    return client


def receive(client):
    """Opcode and body of the next envelope."""
    def take(size):
        data = b""
        while len(data) < size:
            more = client.recv(size - len(data))
            assert more, "closed"
            data += more
        return data
    header = take(9)
    return header[4], take(struct.unpack(">I", header[5:])[0])


def test_garbage_hurts_nobody_else(server, session):
    rand = random.Random(20261130)
    seeds = [frame(4, 7, query("SELECT * FROM system.local")), frame(4, 9, query("SELECT key FROM system.local", b"")),
             frame(4, 10, b"\0\x10" + bytes(16) + b"\0\1\1\0\1\0\0\0\4abcd"), frame(3, 5), frame(4, 11, b"\0\1\0\x0dSCHEMA_CHANGE"),
             frame(4, 13, b"\0\0\2\0" + query("INSERT INTO x.y (k) VALUES (?)", b"\0\1\xff\xff\xff\xff") + b"\1\0\0"),
             frame(4, 7, query("SELECT * FROM system.local", b"\0\1\x0c\0\0\0\1\0\0\0\4abcd"))]
    for _ in range(200):
        client = open_socket(server, rand.choice([0, 3, 4]))
        try:
            for _ in range(rand.randrange(1, 6)):
                data = bytearray(rand.choice(seeds))
                for _ in range(rand.randrange(4)):
                    data[rand.randrange(len(data))] = rand.choice([0, 1, 127, 128, 255, rand.randrange(256)])
                client.sendall(data[:rand.choice([len(data), rand.randrange(len(data) + 1)])])
        except ConnectionError:
            pass
        client.close()
        assert session.execute("SELECT key FROM system.local").one().key == "local"
    server.wait_until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) < 100, "closing")


@pytest.mark.parametrize("text", [
    "INSERT INTO k.t (k, l) VALUES (1, " + "[" * 100000 + "]" * 100000 + ")",
    "SELECT " + "f(" * 100000 + "k" + ")" * 100000 + " FROM k.t",
    "SELECT * FROM k.t WHERE " + "(" * 100000,
    "CREATE TABLE k.u (k int PRIMARY KEY, v " + "frozen<list<" * 50000 + "int" + ">>" * 50000 + ")",
    "SELECT * FROM k.t WHERE k IN (" + "?," * 65535 + "?)",
], ids=["list", "function", "paren", "type", "markers"])
def test_bottomless_statements_are_errors(server, text):
    client = open_socket(server)
    client.sendall(frame(4, 7, query(text)))
    opcode, body = receive(client)
    assert opcode == 0 and struct.unpack(">I", body[:4])[0] in (0x2000, 0x2200)
    client.close()


def test_half_requests_of_many_hold_up_nobody(server, session):
    clients = [open_socket(server, index % 2 * 4) for index in range(300)]
    for client in clients:
        client.sendall(frame(4, 7, b"")[:5] + struct.pack(">I", 16 << 20) + b"x")
    began = time.monotonic()
    assert session.execute("SELECT key FROM system.local").one().key == "local"
    assert time.monotonic() - began < PATIENCE / 4
    for client in clients:
        client.close()


@pytest.fixture
def counted_memory(monkeypatch):
    """AddressSanitizer keeps what was freed: servers of this test give it back, as they would without."""
    if os.path.basename(os.environ.get("BUILD", "")) == "tsan":
        pytest.skip("ThreadSanitizer's shadow counts as memory of the process")
    options = os.environ.get("ASAN_OPTIONS", "")
    monkeypatch.setenv("ASAN_OPTIONS", f"{options}:quarantine_size_mb=1:thread_local_quarantine_size_kb=64")


def resident(server):
    """Bytes of memory that the process has."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))


def wire(version, envelope):
    """An envelope as it is sent after the handshake: v5 cuts it into segments."""
    if version < 5:
        return envelope
    from cassandra.segment import SegmentCodec
    out = io.BytesIO()
    SegmentCodec().encode(out, envelope)
    return out.getvalue()


def send_what_goes(client, data):
    """Until the server takes no more. Returns what is left."""
    client.setblocking(False)
    try:
        while data and select.select([], [client], [], 0.1)[1]:
            data = data[client.send(data[:1 << 20]):]
    except BlockingIOError:
        pass
    client.settimeout(PATIENCE)
    return data


BIG = 12 << 20


def big_query(version=4, tail=b"\0\1\0"):
    return frame(version, 7, query("SELECT key FROM system.local /*" + "x" * BIG + "*/", tail))


SMALL_LIMITS = {"native_transport_max_request_data_in_flight": "32MiB",
                "native_transport_max_request_data_in_flight_per_ip": "32MiB"}


@pytest.mark.parametrize("version", [4, 5])
def test_half_requests_take_bounded_memory(new_server, counted_memory, version):
    server = new_server(**SMALL_LIMITS).start()
    session = server.connect()
    before = resident(server)
    # The flags of a QUERY are four bytes in v5.
    whole = wire(version, big_query(version, b"\0\1\0" if version < 5 else b"\0\1\0\0\0\0"))
    clients = [open_socket(server, version) for _ in range(60)]
    left = [send_what_goes(client, whole[:BIG // 2]) for client in clients]
    assert session.execute("SELECT key FROM system.local").one().key == "local"
    # Two have room; what the kernel holds of the others is not ours.
    assert resident(server) - before < 100 << 20
    # As these are done the others have their turn, in whatever order.
    opcodes = []

    def finish(client, rest):
        client.sendall(rest + whole[BIG // 2:])
        opcodes.append(receive_any(client, version)[0])
        client.close()

    threads = [threading.Thread(target=finish, args=pair) for pair in zip(clients, left)]
    for thread in threads:
        thread.start()
    highest = before
    while any(thread.is_alive() for thread in threads):
        highest = max(highest, resident(server))
        time.sleep(0.02)
    assert opcodes == [8] * 60
    assert highest - before < 150 << 20
    assert server.stop() == 0


def receive_any(client, version):
    """Opcode and body of the next envelope of any framing; plain segments only."""
    if version == 5:
        header = client.recv(6, socket.MSG_WAITALL)
        data = client.recv((int.from_bytes(header[:3], "little") & 0x1ffff) + 4, socket.MSG_WAITALL)
        return data[4], data[9:-4]
    return receive(client)


def test_a_large_request_that_does_not_come_is_given_up(new_server):
    server = new_server(**SMALL_LIMITS).start()
    big = big_query()
    holders = [open_socket(server) for _ in range(2)]
    for holder in holders:
        assert send_what_goes(holder, big[:1 << 20]) == b""
    # This one waits for the memory that they hold.
    client = open_socket(server)
    client.settimeout(60)
    client.sendall(big)
    assert receive(client)[0] == 8
    assert "did not send it, the connection is closed" in server.log()
    for holder in holders:
        holder.close()


def test_half_request_over_the_limit_is_told(new_server):
    server = new_server(**SMALL_LIMITS).start()
    big = big_query()
    holders = [open_socket(server) for _ in range(2)]
    for holder in holders:
        assert send_what_goes(holder, big[:1 << 20]) == b""
    client = open_socket(server, 0)
    client.sendall(frame(4, 1, b"\0\2" + STARTUP[2:] + b"\0\x11THROW_ON_OVERLOAD\0\x011"))
    assert receive(client)[0] == 2
    client.sendall(big[:1 << 20])
    opcode, body = receive(client)
    assert opcode == 0 and struct.unpack(">I", body[:4])[0] == 0x1001
    client.sendall(big[1 << 20:] + frame(4, 7, query("SELECT key FROM system.local")))
    assert receive(client)[0] == 8
    for holder in holders:
        holder.close()

    def is_let_through():
        client.sendall(big)
        return receive(client)[0] == 8

    server.wait_until(is_let_through, "giving back of what the holders had taken")
    client.close()
    assert server.stop() == 0


@pytest.mark.parametrize("version", [3, 4, 5])
def test_more_than_an_int_of_bytes_is_refused_at_once(server, session, version):
    client = open_socket(server, version)
    envelope = struct.pack(">BBhBI", version, 0, 3, 7, 0x80000001) + b"x" * 200000
    try:
        client.sendall(wire(version, envelope))
    except ConnectionError:
        pass
    opcode, body = receive_any(client, version)
    assert opcode == 0
    assert (b"Request is too big: length 2147483658" if version < 5 else
            b"Invalid value for envelope header body length field: -2147483647") in body
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    client.close()
    assert session.execute("SELECT key FROM system.local").one().key == "local"


def test_overload_takes_bounded_memory(new_server, counted_memory, tmp_path):
    """Eighty times what may be in flight, half of it over TLS: all is answered, memory stays."""
    keystore = tmp_path / "keystore"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=node", "-days", "2",
                    "-keyout", str(keystore) + ".key", "-out", str(keystore)], check=True, capture_output=True)
    with open(keystore, "a", encoding="ascii") as out, open(str(keystore) + ".key", encoding="ascii") as key:
        out.write(key.read())
    server = new_server(native_transport_max_request_data_in_flight="8MiB",
                        native_transport_max_request_data_in_flight_per_ip="8MiB",
                        native_transport_receive_queue_capacity="256KiB",
                        client_encryption_options__enabled=True, client_encryption_options__optional=True,
                        client_encryption_options__keystore=keystore).start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = frame(4, 7, query("SELECT key FROM system.local /*" + "x" * (256 << 10) + "*/"))
    depth, results, highest = 64, [], [0]

    def connect(is_tls):
        client = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        client = context.wrap_socket(client) if is_tls else client
        client.sendall(frame(4, 1, STARTUP))
        assert receive(client)[0] == 2
        return client

    def load(client):
        """Sends and receives on one thread: a TLS session does not bear two."""
        client.setblocking(False)
        left, held, done = memoryview(request * depth), b"", 0
        while done < depth:
            select.select([client], [client] if left else [], [], 0.1)
            try:
                if left:
                    left = left[client.send(left[:65536]):]
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            try:
                more = client.recv(65536)
                assert more, "closed"
                held += more
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            while len(held) >= 9 and len(held) >= 9 + int.from_bytes(held[5:9], "big"):
                results.append(held[4])
                held = held[9 + int.from_bytes(held[5:9], "big"):]
                done += 1

    before = resident(server)
    clients = [connect(index % 2 == 0) for index in range(40)]
    threads = [threading.Thread(target=load, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        highest[0] = max(highest[0], resident(server))
        time.sleep(0.02)
    assert results == [8] * (40 * depth)
    assert highest[0] - before < 120 << 20
    for client in clients:
        client.close()
    assert server.stop() == 0


def test_refresh_beside_compactions(new_server):
    server = new_server().start()
    session = server.connect()
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE k.t (k int PRIMARY KEY, v int)")
    is_over = threading.Event()

    def refresh():
        while not is_over.is_set():
            server.nodetool("refresh", "k", "t")

    refresher = threading.Thread(target=refresh)
    refresher.start()
    for round_number in range(12):
        for key in range(20):
            session.execute(f"INSERT INTO k.t (k, v) VALUES ({key}, {round_number})")
        server.nodetool("flush", "k", "t")
        if round_number % 3 == 2:
            server.nodetool("compact", "k", "t")
        assert len(list(session.execute("SELECT * FROM k.t"))) == 20
    is_over.set()
    refresher.join()
    server.nodetool("compact", "k", "t")
    assert {row.v for row in session.execute("SELECT * FROM k.t")} == {11}
    assert server.stop() == 0


def test_stops_at_once_beside_a_throttled_compaction(new_server):
    server = new_server().start()
    session = server.connect()
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE k.t (k int PRIMARY KEY, v blob) WITH compression = {'enabled': false}")
    insert = session.prepare("INSERT INTO k.t (k, v) VALUES (?, ?)")
    server.nodetool("disableautocompaction", "k", "t")
    for half in range(2):
        for key in range(100):
            session.execute(insert, (half * 100 + key, os.urandom(60000)))
        server.nodetool("flush", "k", "t")
    server.nodetool("setcompactionthroughput", 1)
    compact = threading.Thread(target=lambda: server.nodetool("compact", "k", "t", status=2))
    compact.daemon = True
    compact.start()
    server.wait_until(lambda: "COMPACTION" in server.nodetool("compactionstats").upper().split("ID", 1)[-1],
                      "the compaction")
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 10


def test_lost_and_cut_components(new_server):
    server = new_server().start()
    session = server.connect()
    session.execute(KEYSPACE)
    for table in ("t", "u"):
        session.execute(f"CREATE TABLE k.{table} (k int PRIMARY KEY, v int)")
        for key in range(100):
            session.execute(f"INSERT INTO k.{table} (k, v) VALUES ({key}, {key})")
    assert server.stop() == 0
    (toc,) = glob.glob(os.path.join(server.path, "data/data/k/t-*/nb-*-big-TOC.txt"))
    (index,) = glob.glob(os.path.join(server.path, "data/data/k/u-*/nb-*-big-Index.db"))
    os.remove(toc)
    os.truncate(index, 0)
    server.start()
    session = server.connect()
    assert "TOC.txt is missing" in server.log()
    assert len(list(session.execute("SELECT * FROM k.t"))) == 100
    from cassandra import ReadFailure
    from cassandra.protocol import ServerError
    with pytest.raises((ReadFailure, ServerError)):
        for low in (-2**62, 0, 2**62):
            list(session.execute(f"SELECT * FROM k.u WHERE token(k) > {low}"))
