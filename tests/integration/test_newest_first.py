# SPDX-License-Identifier: Apache-2.0
"""A read of one row asks the SSTables newest first and stops: never too early, whatever the timestamps."""
import random

import pytest

KEYS = 12
SIMPLE = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


class Model:
    """What every operation so far has left, by timestamps alone."""

    def __init__(self):
        self.operations = []

    def expect(self, key):
        mine = [operation for operation in self.operations if operation[1] == key]
        deleted = max([t for kind, _, t, _ in mine if kind == "row"], default=0)
        is_live = max([t for kind, _, t, _ in mine if kind == "insert"], default=0) > deleted
        row = {}
        for name in "ab":
            best = (deleted, 1, 0)  # a tombstone wins over a value of the same time
            for kind, _, t, what in mine:
                if kind in ("insert", "update") and name in what:
                    best = max(best, (t, 0, what[name])) if t > deleted else best
                elif kind == "column" and what == name:
                    best = max(best, (t, 1, 0))
            row[name] = best[2] if best[1] == 0 else None
        if not is_live and row["a"] is None and row["b"] is None:
            return None
        return row


# A row a partition, and named rows of a few partitions.
TABLES = {
    "lone": ("(k int PRIMARY KEY, a int, b int, c text)", lambda key: {"k": key}),
    "named": ("(p int, k int, s int static, a int, b int, c text, PRIMARY KEY (p, k))",
              lambda key: {"p": key % 3, "k": key}),
}


def change(session, model, chance, table, key_of):
    key, t, kind = chance.randrange(KEYS), chance.randint(1, 60), chance.randrange(6)
    where = " AND ".join(f"{name} = {value}" for name, value in key_of(key).items())
    if kind <= 1:
        cells = {name: chance.randrange(100) for name in "ab" if chance.random() < 0.7}
        columns = {**key_of(key), **cells}
        values = ", ".join(map(str, columns.values()))
        session.execute(f"INSERT INTO nf.{table} ({', '.join(columns)}) VALUES ({values}) USING TIMESTAMP {t}")
        model.operations.append(("insert", key, t, cells))
    elif kind <= 3:
        name, value = chance.choice("ab"), chance.randrange(100)
        session.execute(f"UPDATE nf.{table} USING TIMESTAMP {t} SET {name} = {value} WHERE {where}")
        model.operations.append(("update", key, t, {name: value}))
    elif kind == 4:
        name = chance.choice("ab")
        session.execute(f"DELETE {name} FROM nf.{table} USING TIMESTAMP {t} WHERE {where}")
        model.operations.append(("column", key, t, name))
    else:
        session.execute(f"DELETE FROM nf.{table} USING TIMESTAMP {t} WHERE {where}")
        model.operations.append(("row", key, t, None))


@pytest.mark.parametrize("table", TABLES)
def test_rows_over_many_sstables_are_what_their_timestamps_say(server, session, table):
    columns, key_of = TABLES[table]
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS nf WITH replication = {SIMPLE}")
    session.execute(f"CREATE TABLE nf.{table} {columns} WITH compaction = "
                    "{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}")
    model, chance = Model(), random.Random(39)
    for _ in range(12):
        for _ in range(25):
            change(session, model, chance, table, key_of)
        server.nodetool("flush", "nf")
        for key in range(KEYS):
            expected = model.expect(key)
            where = " AND ".join(f"{name} = {value}" for name, value in key_of(key).items())
            for names in ("a, b", "a", "b"):
                row = session.execute(f"SELECT {names} FROM nf.{table} WHERE {where}").one()
                wanted = None if expected is None else {n: expected[n] for n in names.split(", ")}
                assert (None if row is None else row._asdict()) == wanted, (key, names)
