# SPDX-License-Identifier: Apache-2.0
"""Values in wire form: the words that scripts bind with, and the way back for people to read."""
import struct
import uuid as uuid_module

from wire import UNSET


def i(number):
    return struct.pack(">i", number)


def l(number):
    return struct.pack(">q", number)


def s(number):
    return struct.pack(">h", number)


def b(number):
    return struct.pack(">b", number)


def f(number):
    return struct.pack(">f", number)


def d(number):
    return struct.pack(">d", number)


def t(text):
    return text.encode("utf-8")


def x(digits):
    return bytes.fromhex(digits)


def u(text):
    return uuid_module.UUID(text).bytes


def boolean(flag):
    return b"\1" if flag else b"\0"


def seq(*items):
    """A list or a set."""
    return struct.pack(">i", len(items)) + tup(*items)


def map_(*items):
    """Keys and values in turn."""
    return struct.pack(">i", len(items) // 2) + tup(*items)


def tup(*items):
    """A tuple or a user-defined type."""
    return b"".join(struct.pack(">i", -1) if item is None else
                    struct.pack(">i", len(item)) + item for item in items)


WORDS = {"i": i, "l": l, "s": s, "b": b, "f": f, "d": d, "t": t, "x": x, "u": u, "bool": boolean,
         "seq": seq, "map": map_, "tup": tup, "null": None, "unset": UNSET}


def evaluate(text):
    """The list of values that a script's `!bind` names."""
    return list(eval(f"({text},)" if text.strip() else "()", {"__builtins__": {}}, WORDS))


def show(cell, kind):
    """A cell as a person would write it; hex where that is as good."""
    if cell is None:
        return "null"
    if cell == "*":
        return cell
    data = bytes.fromhex(cell)
    sizes = {"int": ">i", "bigint": ">q", "counter": ">q", "smallint": ">h", "tinyint": ">b",
             "double": ">d", "float": ">f", "timestamp": ">q", "time": ">q"}
    if kind in sizes and len(data) == struct.calcsize(sizes[kind]):
        return str(struct.unpack(sizes[kind], data)[0])
    if kind in ("varchar", "ascii"):
        return repr(data.decode("utf-8", "backslashreplace"))
    if kind == "boolean" and len(data) == 1:
        return "true" if data[0] else "false"
    if kind in ("uuid", "timeuuid") and len(data) == 16:
        return str(uuid_module.UUID(bytes=data))
    if kind == "varint" and data:
        return str(int.from_bytes(data, "big", signed=True))
    return "0x" + cell
