# SPDX-License-Identifier: Apache-2.0
"""acsylla: the C++ driver behind asyncio."""
import asyncio
import os
import sys
import traceback
import uuid

import acsylla

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
    for text in (f"CREATE KEYSPACE IF NOT EXISTS interop WITH replication = {REPLICATION}",
                 "CREATE TABLE IF NOT EXISTS interop.t (k int PRIMARY KEY, a text, b bigint, c uuid,"
                 " d list<int>, e map<text, int>, f double, g blob, h boolean)"):
        await session.execute(acsylla.create_statement(text, 0))


async def round_trip(session):
    write = await session.create_prepared(
        "INSERT INTO interop.t (k, a, b, c, d, e, f, g, h) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
    values = [1, "text ä", 2**40, uuid.UUID(int=5), [1, 2, 3], {"x": 1}, 0.5, b"\0\1", True]
    statement = write.bind()
    statement.bind_list(values)
    await session.execute(statement)
    read = await session.create_prepared("SELECT * FROM interop.t WHERE k = ?")
    statement = read.bind()
    statement.bind(0, 1)
    row = (await session.execute(statement)).first()
    got = [row.column_value(name) for name in "kabcdefgh"]
    got = [str(value) if index == 3 else value for index, value in enumerate(got)]
    values[3] = str(values[3])
    assert got == values, got


async def concurrent(session):
    write = await session.create_prepared("INSERT INTO interop.t (k, a) VALUES (?, ?)")

    async def one(key):
        statement = write.bind()
        statement.bind_list([key, str(key)])
        await session.execute(statement)
    for start in range(0, 5000, 1000):
        await asyncio.gather(*[one(key) for key in range(start, start + 1000)])
    result = await session.execute(acsylla.create_statement("SELECT count(*) FROM interop.t", 0))
    count = result.first().column_value_by_index(0) if hasattr(
        result.first(), "column_value_by_index") else result.first().column_value("count")
    assert count == 5000, count


async def paging(session):
    statement = acsylla.create_statement("SELECT k FROM interop.t", 0, page_size=300)
    total = 0
    while True:
        result = await session.execute(statement)
        total += result.count()
        if not result.has_more_pages():
            break
        statement.set_page_state(result.page_state())
    assert total == 5000, total


async def batch(session):
    both = acsylla.create_batch_logged()
    both.add_statement(acsylla.create_statement("INSERT INTO interop.t (k, a) VALUES (9001, 'x')", 0))
    both.add_statement(acsylla.create_statement("INSERT INTO interop.t (k, a) VALUES (9002, 'y')", 0))
    await session.execute_batch(both)
    result = await session.execute(acsylla.create_statement(
        "SELECT * FROM interop.t WHERE k IN (9001, 9002)", 0))
    assert result.count() == 2, result.count()


async def errors(session):
    for text, kind in (("SELEC", acsylla.errors.CassErrorServerSyntaxError),
                       ("SELECT * FROM interop.no", acsylla.errors.CassErrorServerInvalidQuery)):
        try:
            await session.execute(acsylla.create_statement(text, 0))
        except kind:
            continue
        raise AssertionError(text)


async def main():
    for version in (4, 3):
        try:
            cluster = acsylla.create_cluster([HOST], port=PORT, protocol_version=version,
                                             connect_timeout=20, request_timeout=20)
            session = await cluster.create_session()
        except Exception as error:  # pylint: disable=broad-except
            say(f"FAIL v{version} connect: {type(error).__name__}: {error}")
            continue
        say(f"PASS v{version} connect")
        for function in (schema, round_trip, concurrent, paging, batch, errors):
            await check(f"v{version} {function.__name__.replace('_', ' ')}", function(session))
            if function is batch:
                await session.execute(acsylla.create_statement("TRUNCATE interop.t", 0))
        if version == 4:
            ask("kill")
            await asyncio.sleep(3)
            await check("v4 round trip after kill -9", round_trip(session))
            await session.execute(acsylla.create_statement("TRUNCATE interop.t", 0))
        await session.close()


asyncio.run(main())
