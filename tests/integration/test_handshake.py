# SPDX-License-Identifier: Apache-2.0
"""What a connection may say when, and what it is told: byte for byte what was sent to a Cassandra 4.1.8,
whose answers (version, stream, opcode, error code and text) are recorded in handshake.json."""
import json
import os
import socket
import struct

import pytest

with open(os.path.join(os.path.dirname(__file__), "handshake.json"), encoding="utf-8") as file:
    CASES = json.load(file)


def envelopes(data, framed):
    """[version, stream, opcode, error text] of each whole envelope; None while one is not."""
    found, at, is_framed = [], 0, False
    while at < len(data):
        run, step = data[at:], None
        if is_framed:
            if len(run) < 6:
                return None
            size = int.from_bytes(run[:3], "little") & 0x1FFFF
            step = 6 + size + 4
            if len(run) < step:
                return None
            run = run[6:6 + size]
        inner = 0
        while inner < len(run):
            if len(run) - inner < 9:
                return None
            version, _, stream, opcode, size = struct.unpack(">BBhBI", run[inner:inner + 9])
            body = run[inner + 9:inner + 9 + size]
            if len(body) < size:
                return None
            text = ""
            if opcode == 0:
                length = struct.unpack(">H", body[4:6])[0]
                text = "%04x %s" % (struct.unpack(">I", body[:4])[0], body[6:6 + length].decode())
            found.append([version, stream, opcode, text])
            inner += 9 + size
            if framed and not is_framed and opcode in (2, 3):
                is_framed = True  # the next bytes are a segment's
                break
        at += inner if step is None else step
    return found


@pytest.mark.parametrize("name", CASES)
def test_as_cassandra(server, name):
    case = CASES[name]
    data = b""
    with socket.create_connection(("127.0.0.1", server.port), 10) as client:
        client.settimeout(10)
        for index, sent in enumerate(case["send"]):
            client.sendall(bytes.fromhex(sent))
            # As many answers as requests so far: then the next is sent.
            while len(envelopes(data, case["framed"]) or []) <= index < len(case["answers"]):
                part = client.recv(65536)
                assert part, "closed"
                data += part
    assert envelopes(data, case["framed"]) == case["answers"]
