# SPDX-License-Identifier: Apache-2.0
"""
A random case: generate.py SEED [STATEMENTS] prints writes with few distinct keys and timestamps, so that they
meet, deletions of every kind, and reads of every shape. "#flush" asks this server to write its memtables out,
"#compact" to merge its SSTables. The same seed prints the same case.
"""
import random
import sys


class Case:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.name = f"r{seed}"
        self.orders = [self.random.choice(["ASC", "DESC"]) for _ in range(2)]
        self.has_static = self.random.random() < 0.7

    def pick(self, *choices):
        return self.random.choice(choices)

    def number(self, below=4):
        return self.random.randrange(below)

    def schema(self):
        static = "s int static, ss set<int> static, " if self.has_static else ""
        yield f"DROP KEYSPACE IF EXISTS {self.name}"
        yield f"CREATE KEYSPACE {self.name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        yield f"CREATE TYPE {self.name}.ud (a int, b int)"
        yield (
            f"CREATE TABLE {self.name}.t (k int, c int, d int, {static}v int, w text, l list<int>, st set<int>, "
            f"m map<int, int>, u ud, f frozen<set<int>>, PRIMARY KEY (k, c, d)) "
            f"WITH CLUSTERING ORDER BY (c {self.orders[0]}, d {self.orders[1]})"
        )

    # ---- Writes ----

    def using(self):
        words = [f"TIMESTAMP {1 + self.number(12)}"]
        if self.random.random() < 0.15:
            words.append("TTL 1000000")
        return "USING " + " AND ".join(words)

    def value(self, column):
        if self.random.random() < 0.15:
            return "null"
        numbers = sorted({self.number() for _ in range(self.number(3) + 1)})
        return {
            "v": str(self.number()),
            "s": str(self.number()),
            "w": f"'{self.pick('a', 'b', '')}'",
            "l": str([self.number() for _ in range(self.number(4))]),
            "st": "{" + ", ".join(map(str, numbers)) + "}",
            "ss": "{" + ", ".join(map(str, numbers)) + "}",
            "f": "{" + ", ".join(map(str, numbers)) + "}",
            "m": "{" + ", ".join(f"{n}: {self.number()}" for n in numbers) + "}",
            "u": f"{{a: {self.number()}, b: {self.pick('null', self.number())}}}",
        }[column]

    def insert(self):
        columns = self.random.sample(["v", "w", "l", "st", "m", "u", "f"], self.number(4))
        if self.has_static and self.random.random() < 0.2:
            columns.append(self.pick("s", "ss"))
        names = ", ".join(["k", "c", "d"] + columns)
        values = ", ".join([str(self.number()) for _ in range(3)] + [self.value(column) for column in columns])
        return f"INSERT INTO {self.name}.t ({names}) VALUES ({values}) {self.using()}"

    def assignment(self):
        return self.pick(
            f"v = {self.value('v')}",
            f"w = {self.value('w')}",
            f"st = st + {{{self.number()}}}",
            f"st = st - {{{self.number()}, {self.number() + 4}}}",
            f"m = m + {{{self.number()}: {self.number()}}}",
            f"m = m - {{{self.number()}}}",
            f"m[{self.number()}] = {self.pick('null', self.number())}",
            f"st = {self.value('st')}",
            f"m = {self.value('m')}",
            f"u.a = {self.pick('null', self.number())}",
            f"u = {self.value('u')}",
            f"f = {self.value('f')}",
            f"l = {self.value('l')}",
        )

    def update(self):
        if self.has_static and self.random.random() < 0.15:
            change = self.pick(f"s = {self.value('s')}", f"ss = ss + {{{self.number()}}}", f"ss = {self.value('ss')}")
            return f"UPDATE {self.name}.t {self.using()} SET {change} WHERE k = {self.number()}"
        where = f"k = {self.number()} AND c = {self.number()} AND d = {self.number()}"
        if self.random.random() < 0.2:
            where = f"k = {self.number()} AND c IN ({self.number()}, {self.number()}) AND d = {self.number()}"
        return f"UPDATE {self.name}.t {self.using()} SET {self.assignment()} WHERE {where}"

    def delete(self):
        key = f"k = {self.number()}"
        row = f"{key} AND c = {self.number()} AND d = {self.number()}"
        at = f"USING TIMESTAMP {1 + self.number(12)}"
        low, high = sorted([self.number(5), self.number(5)])
        table = f"{self.name}.t"
        choices = [
            f"DELETE FROM {table} {at} WHERE {row}",
            f"DELETE v FROM {table} {at} WHERE {row}",
            f"DELETE st[{self.number()}] FROM {table} {at} WHERE {row}",
            f"DELETE m[{self.number()}], v FROM {table} {at} WHERE {row}",
            f"DELETE u.a FROM {table} {at} WHERE {row}",
            f"DELETE l, u FROM {table} {at} WHERE {row}",
            f"DELETE FROM {table} {at} WHERE {key} AND c = {self.number()}",
            f"DELETE FROM {table} {at} WHERE {key} AND c > {low} AND c <= {high}",
            f"DELETE FROM {table} {at} WHERE {key} AND c >= {low}",
            f"DELETE FROM {table} {at} WHERE {key} AND c = {self.number()} AND d < {high}",
            f"DELETE FROM {table} {at} WHERE {key} AND (c, d) >= ({low}, {self.number()}) AND (c) < ({high})",
        ]
        if self.random.random() < 0.25:
            choices = [f"DELETE FROM {table} {at} WHERE {key}"]
            if self.has_static:
                choices.append(f"DELETE s FROM {table} {at} WHERE {key}")
        return self.random.choice(choices)

    def batch(self):
        statements = "; ".join(self.random.choice([self.insert, self.update, self.delete])() for _ in range(3))
        return f"BEGIN {self.pick('', 'UNLOGGED ')}BATCH {statements}; APPLY BATCH"

    # ---- Reads ----

    def select(self):
        table = f"{self.name}.t"
        key = f"k = {self.number()}"
        low, high = sorted([self.number(5), self.number(5)])
        flip = {"ASC": "DESC", "DESC": "ASC"}
        statics = ", s" if self.has_static else ""
        order = self.pick(
            "",
            f" ORDER BY c {flip[self.orders[0]]}, d {flip[self.orders[1]]}",
            f" ORDER BY c {self.orders[0]}",
        )
        limit = self.pick("", "", f" LIMIT {1 + self.number()}", f" PER PARTITION LIMIT {1 + self.number(3)}")
        slices = self.pick(
            f" AND c > {low} AND c <= {high}",
            f" AND c = {self.number()} AND d >= {low}",
            f" AND c IN ({self.number()}, {self.number()})",
            f" AND c IN ({self.number()}, {self.number()}) AND d IN ({self.number()}, {self.number()})",
            f" AND (c, d) > ({low}, {self.number()})",
            f" AND (c, d) >= ({low}, {self.number()}) AND (c, d) < ({high}, {self.number()})",
            f" AND (c, d) IN (({self.number()}, {self.number()}), ({self.number()}, {self.number()}))",
            f" AND c = {self.number()} AND d = {self.number()}",
            "",
        )
        return self.pick(
            f"SELECT * FROM {table}{limit}",
            f"SELECT * FROM {table} WHERE {key}{slices}{order}{limit}",
            f"SELECT k, c, d, v{statics} FROM {table} WHERE {key}{slices}{order}",
            f"SELECT * FROM {table} WHERE k IN ({self.number()}, {self.number()}){slices}{limit}",
            f"SELECT DISTINCT k{statics} FROM {table}",
            f"SELECT k, c, count(*), sum(v), max(w) FROM {table} GROUP BY k, c{limit}",
            f"SELECT k, count(v), min(d) FROM {table} GROUP BY k",
            f"SELECT count(*) FROM {table} WHERE {key}{slices}",
            f"SELECT JSON * FROM {table} WHERE {key}{slices}{order}",
            f"SELECT k, c, d, writetime(v), writetime(w), u.a, m[{self.number()}], st[{low}..{high}] FROM {table}{limit}",
            f"SELECT * FROM {table} WHERE v = {self.number()} ALLOW FILTERING",
            f"SELECT * FROM {table} WHERE st CONTAINS {self.number()} ALLOW FILTERING",
            f"SELECT * FROM {table} WHERE c >= {low} AND v > 1 ALLOW FILTERING",
            f"SELECT * FROM {table} WHERE d = {self.number()}{limit} ALLOW FILTERING",
            f"SELECT * FROM {table} WHERE token(k) > token({self.number()}){limit}",
        )

    def lines(self, count):
        yield from self.schema()
        for n in range(count):
            kind = self.random.random()
            if kind < 0.3:
                yield self.insert()
            elif kind < 0.5:
                yield self.update()
            elif kind < 0.65:
                yield self.delete()
            elif kind < 0.7:
                yield self.batch()
            elif kind < 0.73:
                yield self.pick("#flush", "#flush", "#compact")
            elif kind < 0.78:
                yield f"#page {self.pick(0, 1, 2, 3, 7)}"
            else:
                yield self.select()
            if n % 10 == 9:
                yield f"SELECT * FROM {self.name}.t"


def main():
    seed = int(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    print("# SPDX-License-Identifier: Apache-2.0")
    for line in Case(seed).lines(count):
        print(line)


if __name__ == "__main__":
    main()
