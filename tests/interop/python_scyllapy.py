# SPDX-License-Identifier: Apache-2.0
"""scyllapy: the Rust driver behind asyncio."""
import asyncio
import os
import sys
import traceback
import uuid

from scyllapy import Batch, Scylla

HOST, PORT = os.environ["HOST"], int(os.environ["PORT"])
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


def say(line):
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def ask(what):
    say("ask: " + what)
    answer = sys.stdin.readline().strip()
    assert answer == "done", answer


async def check(name, task):
    try:
        await asyncio.wait_for(task, 60)
    except Exception as error:  # pylint: disable=broad-except
        line = [at.lineno for at in traceback.extract_tb(error.__traceback__)
                if at.filename == __file__]
        say(f"FAIL {name}: {type(error).__name__}: {error} (line {line[-1:]})")
    else:
        say(f"PASS {name}")


async def schema(session):
    await session.execute(f"CREATE KEYSPACE IF NOT EXISTS interop WITH replication = {REPLICATION}")
    await session.execute("CREATE TABLE IF NOT EXISTS interop.t (k int PRIMARY KEY, a text, b uuid,"
                          " c list<int>, d map<text, text>, e boolean)")


async def round_trip(session):
    write = await session.prepare("INSERT INTO interop.t (k, a, b, c, d, e) "
                                  "VALUES (?, ?, ?, ?, ?, ?)")
    values = [1, "text ä", uuid.UUID(int=5), [1, 2, 3], {"x": "y"}, True]
    await session.execute(write, values)
    read = await session.prepare("SELECT k, a, b, c, d, e FROM interop.t WHERE k = ?")
    row = (await session.execute(read, [1])).first()
    row["b"] = uuid.UUID(str(row["b"]))
    assert [row[name] for name in "kabcde"] == values, row


async def concurrent(session):
    write = await session.prepare("INSERT INTO interop.t (k, a) VALUES (?, ?)")
    for start in range(0, 5000, 1000):
        await asyncio.gather(*[session.execute(write, [key, str(key)])
                               for key in range(start, start + 1000)])
    rows = (await session.execute("SELECT k FROM interop.t")).all()
    assert len(rows) == 5000, len(rows)


async def paging(session):
    total = 0
    async for _ in await session.execute("SELECT k FROM interop.t", paged=True):
        total += 1
    assert total == 5000, total


async def batch(session):
    both = Batch()
    both.add_query("INSERT INTO interop.t (k, a) VALUES (?, 'x')")
    both.add_query("INSERT INTO interop.t (k, a) VALUES (?, 'y')")
    await session.batch(both, [[9001], [9002]])
    rows = (await session.execute("SELECT * FROM interop.t WHERE k IN (9001, 9002)")).all()
    assert len(rows) == 2, rows


async def main():
    session = Scylla([f"{HOST}:{PORT}"])
    await session.startup()
    for function in (schema, round_trip, concurrent, paging, batch):
        await check(function.__name__.replace("_", " "), function(session))
    ask("kill")
    await asyncio.sleep(3)
    await check("round trip after kill -9", round_trip(session))
    await session.shutdown()


asyncio.run(main())
