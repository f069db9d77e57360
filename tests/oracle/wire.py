# SPDX-License-Identifier: Apache-2.0
"""The native protocol, versions 4 and 5, as plainly as a test needs it.

A Connection sends one request at a time and gives back what came as dictionaries and lists that
can be written as JSON: every cell in hex, every type as text, every field of an error. A driver
would hide some of that (empty pages, the order of metadata), so none is used here.
"""
import socket
import struct
import zlib

CONSISTENCY = {"ANY": 0, "ONE": 1, "TWO": 2, "THREE": 3, "QUORUM": 4, "ALL": 5, "LOCAL_QUORUM": 6,
               "EACH_QUORUM": 7, "SERIAL": 8, "LOCAL_SERIAL": 9, "LOCAL_ONE": 10}
CONSISTENCY_NAMES = {number: name for name, number in CONSISTENCY.items()}
BATCH_KINDS = {"logged": 0, "unlogged": 1, "counter": 2}
UNSET = object()

STARTUP, OPTIONS, QUERY, PREPARE, EXECUTE, BATCH = 0x01, 0x05, 0x07, 0x09, 0x0A, 0x0D
ERROR, READY, SUPPORTED, RESULT = 0x00, 0x02, 0x06, 0x08

TYPES = {0x01: "ascii", 0x02: "bigint", 0x03: "blob", 0x04: "boolean", 0x05: "counter",
         0x06: "decimal", 0x07: "double", 0x08: "float", 0x09: "int", 0x0B: "timestamp",
         0x0C: "uuid", 0x0D: "varchar", 0x0E: "varint", 0x0F: "timeuuid", 0x10: "inet",
         0x11: "date", 0x12: "time", 0x13: "smallint", 0x14: "tinyint", 0x15: "duration"}


class WireError(Exception):
    """The connection broke, or what came cannot be read."""


def crc24(data):
    crc = 0x875060
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1974F0B
    return crc


def crc32(data):
    return zlib.crc32(b"\xfa\x2d\x55\xca" + data)


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, size):
        piece = self.data[self.at:self.at + size]
        if size < 0 or len(piece) != size:
            raise WireError("a message ends before its last field")
        self.at += size
        return piece

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def byte(self):
        return self.number(">B")

    def short(self):
        return self.number(">H")

    def int(self):
        return self.number(">i")

    def string(self):
        return self.take(self.short()).decode("utf-8", "surrogateescape")

    def short_bytes(self):
        return self.take(self.short())

    def bytes(self):
        size = self.int()
        return None if size < 0 else self.take(size)

    def strings(self):
        return [self.string() for _ in range(self.short())]

    def multimap(self):
        return {self.string(): self.strings() for _ in range(self.short())}

    def type(self):
        option = self.short()
        if option == 0x00:
            return "'" + self.string() + "'"
        if option == 0x20:
            return "list<" + self.type() + ">"
        if option == 0x21:
            key = self.type()
            return "map<" + key + ", " + self.type() + ">"
        if option == 0x22:
            return "set<" + self.type() + ">"
        if option == 0x30:
            name = self.string() + "." + self.string()
            fields = [self.string() + " " + self.type() for _ in range(self.short())]
            return name + "{" + ", ".join(fields) + "}"
        if option == 0x31:
            return "tuple<" + ", ".join([self.type() for _ in range(self.short())]) + ">"
        if option not in TYPES:
            raise WireError(f"type {option:#x}")
        return TYPES[option]


def string(text):
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack(">H", len(data)) + data


def long_string(text):
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack(">i", len(data)) + data


def value(data):
    if data is None:
        return struct.pack(">i", -1)
    if data is UNSET:
        return struct.pack(">i", -2)
    return struct.pack(">i", len(data)) + data


def columns(reader, flags, count):
    """[[keyspace.table, name, type]...] of a result's or a statement's metadata."""
    shared = reader.string() + "." + reader.string() if flags & 1 else None
    found = []
    for _ in range(count):
        table = shared or reader.string() + "." + reader.string()
        name = reader.string()
        found.append([table, name, reader.type()])
    return found


def failures(reader, version):
    """How many replicas failed, and from version 5 on why."""
    count = reader.int()
    if version < 5:
        return [count]
    codes = []
    for _ in range(count):
        reader.take(reader.byte())
        codes.append(reader.short())
    return [count, codes]


def error(reader, version):
    code = reader.int()
    answer = {"kind": "error", "code": f"{code:04x}", "text": reader.string()}
    if code == 0x1000:
        answer["fields"] = [CONSISTENCY_NAMES[reader.short()], reader.int(), reader.int()]
    elif code in (0x1100, 0x1500):
        fields = [CONSISTENCY_NAMES[reader.short()], reader.int(), reader.int()]
        if code == 0x1500:
            fields += failures(reader, version)
        answer["fields"] = fields + [reader.string()]
    elif code in (0x1200, 0x1300):
        answer["fields"] = [CONSISTENCY_NAMES[reader.short()], reader.int(), reader.int()]
        if code == 0x1300:
            answer["fields"] += failures(reader, version)
        answer["fields"].append(reader.byte())
    elif code == 0x1400:
        answer["fields"] = [reader.string(), reader.string(), reader.strings()]
    elif code == 0x1700:
        answer["fields"] = [CONSISTENCY_NAMES[reader.short()], reader.int(), reader.int()]
    elif code == 0x2400:
        answer["fields"] = [reader.string(), reader.string()]
    elif code == 0x2500:
        answer["fields"] = [reader.short_bytes().hex()]
    return answer


class Connection:
    def __init__(self, address, port, version, timeout=30):
        self.version = version
        self.has_segments = False
        self.socket = socket.create_connection((address, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = 0
        self.request(STARTUP, struct.pack(">H", 1) + string("CQL_VERSION") + string("3.0.0"))
        self.has_segments = version >= 5

    def close(self):
        self.socket.close()

    # ---- Frames ----------------------------------------------------------------------------------

    def receive(self, size):
        pieces = []
        while size > 0:
            piece = self.socket.recv(min(size, 1 << 20))
            if not piece:
                raise WireError("the server closed the connection")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def send(self, frame):
        if not self.has_segments:
            return self.socket.sendall(frame)
        most = (1 << 17) - 1
        is_whole = len(frame) <= most
        for at in range(0, len(frame), most):
            payload = frame[at:at + most]
            header = (len(payload) | is_whole << 17).to_bytes(3, "little")
            self.socket.sendall(header + crc24(header).to_bytes(3, "little") + payload +
                                crc32(payload).to_bytes(4, "little"))
        return None

    def segment(self):
        head = self.receive(6)
        if crc24(head[:3]) != int.from_bytes(head[3:], "little"):
            raise WireError("CRC of a segment's header")
        bits = int.from_bytes(head[:3], "little")
        payload = self.receive(bits & 0x1FFFF)
        if crc32(payload) != int.from_bytes(self.receive(4), "little"):
            raise WireError("CRC of a segment's payload")
        return payload

    def frame(self):
        if not self.has_segments:
            head = self.receive(9)
            return head, self.receive(struct.unpack(">i", head[5:])[0])
        data = self.segment()
        while len(data) < 9 or len(data) < 9 + struct.unpack(">i", data[5:9])[0]:
            data += self.segment()
        return data[:9], data[9:]

    def request(self, opcode, body):
        """(opcode, warnings, Reader) of the answer."""
        self.stream = (self.stream + 1) % 1000
        flags = 0
        self.send(struct.pack(">BBhBi", self.version, flags, self.stream, opcode, len(body)) + body)
        head, body = self.frame()
        version, flags, stream, opcode, _ = struct.unpack(">BBhBi", head)
        if version & 0x7F != self.version or stream != self.stream:
            raise WireError(f"version {version:#x}, stream {stream} for {self.stream}")
        reader = Reader(body)
        if flags & 0x02:
            reader.take(16)
        warnings = reader.strings() if flags & 0x08 else []
        if flags & 0x04:
            for _ in range(reader.short()):
                reader.string(), reader.bytes()
        return opcode, warnings, reader

    # ---- Requests --------------------------------------------------------------------------------

    def parameters(self, values, options, skip_metadata=False):
        """<consistency><flags>… of QUERY and EXECUTE, and the end of BATCH where values is None."""
        is_batch = values is None
        flags = 0
        tail = b""
        if values:
            flags |= 0x01
            tail += struct.pack(">H", len(values)) + b"".join(value(data) for data in values)
        if skip_metadata:
            flags |= 0x02
        if options.get("page"):
            flags |= 0x04
            tail += struct.pack(">i", options["page"])
        if options.get("state") is not None:
            flags |= 0x08
            tail += value(options["state"])
        if options.get("serial"):
            flags |= 0x10
            tail += struct.pack(">H", CONSISTENCY[options["serial"]])
        if options.get("timestamp") is not None:
            flags |= 0x20
            tail += struct.pack(">q", options["timestamp"])
        if options.get("keyspace"):
            flags |= 0x80
            tail += string(options["keyspace"])
        if options.get("now") is not None and self.version >= 5:
            flags |= 0x100
            tail += struct.pack(">i", options["now"])
        level = CONSISTENCY[options.get("consistency", "ONE")]
        if is_batch:
            assert not flags & 0x0F
        return struct.pack(">H", level) + struct.pack(">I" if self.version >= 5 else ">B", flags) + tail

    def query(self, text, options):
        return self.answer(QUERY, long_string(text) + self.parameters([], options))

    def prepare(self, text, options):
        body = long_string(text)
        if self.version >= 5:
            keyspace = options.get("keyspace")
            body += struct.pack(">i", 1) + string(keyspace) if keyspace else struct.pack(">i", 0)
        return self.answer(PREPARE, body)

    def execute(self, prepared, values, options):
        body = struct.pack(">H", len(prepared["id"])) + prepared["id"]
        if self.version >= 5:
            body += struct.pack(">H", len(prepared["metadata_id"])) + prepared["metadata_id"]
        return self.answer(EXECUTE, body + self.parameters(values, options))

    def batch(self, kind, statements, options):
        """statements: [(text or prepared id, values)]"""
        body = struct.pack(">BH", BATCH_KINDS[kind], len(statements))
        for what, values in statements:
            if isinstance(what, str):
                body += b"\0" + long_string(what)
            else:
                body += b"\1" + struct.pack(">H", len(what)) + what
            body += struct.pack(">H", len(values)) + b"".join(value(data) for data in values)
        return self.answer(BATCH, body + self.parameters(None, options))

    def answer(self, opcode, body):
        opcode, warnings, reader = self.request(opcode, body)
        if opcode == ERROR:
            answer = error(reader, self.version)
        elif opcode == RESULT:
            answer = self.result(reader)
        else:
            raise WireError(f"opcode {opcode:#x} as an answer")
        if reader.at != len(reader.data):
            raise WireError(f"{len(reader.data) - reader.at} bytes after the end of {answer}")
        if warnings:
            answer["warnings"] = warnings
        return answer

    def result(self, reader):
        kind = reader.int()
        if kind == 1:
            return {"kind": "void"}
        if kind == 2:
            return self.rows(reader)
        if kind == 3:
            return {"kind": "keyspace", "keyspace": reader.string()}
        if kind == 4:
            return self.prepared(reader)
        if kind == 5:
            change, target = reader.string(), reader.string()
            names = [reader.string()]
            if target != "KEYSPACE":
                names.append(reader.string())
            if target in ("FUNCTION", "AGGREGATE"):
                names.append(reader.strings())
            return {"kind": "schema", "change": [change, target, *names]}
        raise WireError(f"result of kind {kind}")

    def rows_metadata(self, reader):
        flags = reader.int()
        count = reader.int()
        answer = {"state": reader.bytes() if flags & 2 else None}
        answer["metadata_id"] = reader.short_bytes() if flags & 8 else None
        answer["columns"] = None if flags & 4 else columns(reader, flags, count)
        answer["count"] = count
        return answer

    def rows(self, reader):
        answer = {"kind": "rows", **self.rows_metadata(reader)}
        cells = answer.pop("count")
        answer["rows"] = []
        for _ in range(reader.int()):
            row = [reader.bytes() for _ in range(cells)]
            answer["rows"].append([None if cell is None else cell.hex() for cell in row])
        return answer

    def prepared(self, reader):
        answer = {"kind": "prepared", "id": reader.short_bytes()}
        answer["metadata_id"] = reader.short_bytes() if self.version >= 5 else None
        flags = reader.int()
        count = reader.int()
        answer["key"] = [reader.short() for _ in range(reader.int())]
        answer["bind"] = columns(reader, flags, count)
        answer["columns"] = self.rows_metadata(reader)["columns"]
        return answer
