# SPDX-License-Identifier: Apache-2.0
"""
A script from a seed. Few keys and few timestamps, so that writes and deletions meet; the request says
what time it is, so that what expires does so at the same statement everywhere. The same seed gives the
same script.
"""
import random

from script import Script

NOW = 2000000000  # 2033: no clock gets there, so that compaction purges nothing by itself
FLIP = {"ASC": "DESC", "DESC": "ASC"}
KEY_TYPES = ["int", "int", "text", "bigint", "boolean", "tinyint", "decimal", "varint", "blob", "date",
             "double", "frozen<list<int>>", "tuple<int, text>"]
CELL_TYPES = ["int", "text", "bigint", "double", "blob", "boolean", "list<int>", "set<int>", "map<int, text>",
              "set<text>", "ud", "frozen<ud>", "frozen<set<int>>", "frozen<map<text, int>>",
              "tuple<int, text>", "list<frozen<ud>>", "map<text, frozen<list<int>>>"]
POOLS = {
    "int": ["-1", "0", "1", "2", "2147483647"],
    "tinyint": ["-1", "0", "1", "2", "127"],
    "bigint": ["-5", "0", "1", "300", "9223372036854775807"],
    "text": ["''", "'a'", "'b'", "'ab'", "'é'"],
    "boolean": ["true", "false"],
    "decimal": ["-1.5", "0", "1", "1.25", "100"],
    "varint": ["-300", "-1", "0", "1", "70000"],
    "blob": ["0x", "0x00", "0x0001", "0xff", "0x01"],
    "date": ["'1969-12-31'", "'1970-01-01'", "'2020-02-29'", "'2020-03-01'"],
    "double": ["-1.5", "0.0", "-0.0", "1.5", "NaN"],
}


class Column:
    def __init__(self, name, kind, type_):
        self.name = name
        self.kind = kind
        self.type = type_

    @property
    def is_multi_cell(self):
        return self.type.startswith(("list", "set", "map")) or self.type == "ud"


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.name = f"random_{seed}"
        self.version = self.pick(5, 5, 5, 4)
        self.is_counter = self.chance(0.08)
        # A condition writes with the clock's timestamp, which must not be selected then.
        self.is_conditional = self.chance(0.3)
        # Cassandra forgets cells that are not selected and older than the row's marker, also where the
        # marker has expired: rows vanish with the selection (see README.md).
        self.rows_expire = self.version == 5 and self.chance(0.3)
        self.steps = []
        self.page = 0
        self.make_columns()

    # ---- Dice ----

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, part):
        return self.random.random() < part

    def number(self, below):
        return self.random.randrange(below)

    def some(self, items, most):
        return self.random.sample(items, min(len(items), self.number(most + 1)))

    # ---- Schema ----

    def make_columns(self):
        self.partition = [Column(name, "partition", self.pick("int", *KEY_TYPES))
                          for name in ("k", "j")[:self.pick(1, 1, 2)]]
        self.clustering = [Column(name, "clustering", self.pick(*KEY_TYPES))
                           for name in ("c", "d", "e")[:self.pick(0, 1, 2, 2, 3)]]
        self.orders = [self.pick("ASC", "ASC", "DESC") for _ in self.clustering]
        types = ["counter"] if self.is_counter else ["int", "text"] + CELL_TYPES
        self.regular = [Column(name, "regular", self.pick(*types))
                        for name in ("v", "w", "x", "y")[:1 + self.number(4)]]
        self.static = []
        if self.clustering and self.chance(0.6):
            self.static = [Column(name, "static", self.pick(*types)) for name in ("s", "t")[:1 + self.number(2)]]
        self.cells = self.regular + self.static

    def schema(self):
        self.add("CREATE TYPE ud (a int, b text)")
        columns = [f"{one.name} {one.type}{' static' if one.kind == 'static' else ''}"
                   for one in self.partition + self.clustering + self.cells]
        key = ", ".join([f"({', '.join(one.name for one in self.partition)})"] +
                        [one.name for one in self.clustering])
        options = []
        if self.clustering:
            options.append("CLUSTERING ORDER BY (" + ", ".join(
                f"{one.name} {order}" for one, order in zip(self.clustering, self.orders)) + ")")
        if not self.is_counter and self.rows_expire and self.chance(0.5):
            options.append("default_time_to_live = 40")
        options.append("compression = " + self.pick(
            "{'enabled': 'false'}", "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}"))
        self.add(f"CREATE TABLE t ({', '.join(columns)}, PRIMARY KEY ({key})) WITH " + " AND ".join(options))

    # ---- Values ----

    def value(self, kind):
        if kind.startswith("frozen<"):
            return self.value(kind[7:-1])
        if kind.startswith("list<"):
            return "[" + ", ".join(self.value(kind[5:-1]) for _ in range(self.number(4))) + "]"
        if kind.startswith("set<"):
            return "{" + ", ".join(sorted({self.value(kind[4:-1]) for _ in range(self.number(4))})) + "}"
        if kind.startswith("map<"):
            key, _, item = kind[4:-1].partition(", ")
            keys = sorted({self.value(key) for _ in range(self.number(4))})
            return "{" + ", ".join(f"{one}: {self.value(item)}" for one in keys) + "}"
        if kind.startswith("tuple<"):
            return f"({self.value('int')}, {self.pick('null', self.value('text'))})"
        if kind == "ud":
            return f"{{a: {self.pick('null', self.value('int'))}, b: {self.value('text')}}}"
        return self.pick(*POOLS[kind][:4 if self.chance(0.9) else 5])

    def cell(self, column):
        return "null" if self.chance(0.12) else self.value(column.type)

    # ---- Clauses ----

    def using(self, may_expire=True):
        words = [f"TIMESTAMP {1 + self.number(12)}"]
        if may_expire and self.version == 5 and self.chance(0.2):
            words.append(f"TTL {self.pick(1, 10, 50, 1000)}")
        return "USING " + " AND ".join(words)

    def key(self, columns=None):
        columns = self.partition if columns is None else columns
        return " AND ".join(f"{one.name} = {self.key_value(one)}" for one in columns)

    def key_value(self, column):
        value = self.value(column.type)
        # A key may not be empty; whether that or an empty slice is seen first is of no interest.
        while column.kind == "partition" and value in ("''", "0x"):
            value = self.value(column.type)
        return value

    def keys_in(self):
        last = self.partition[-1]
        values = ", ".join(self.key_value(last) for _ in range(1 + self.number(3)))
        return " AND ".join([self.key([one]) for one in self.partition[:-1]] + [f"{last.name} IN ({values})"])

    def slice(self, column):
        kind = self.pick("from", "to", "both")
        words = []
        if kind != "to":
            words.append(f"{column.name} {self.pick('>', '>=')} {self.value(column.type)}")
        if kind != "from":
            words.append(f"{column.name} {self.pick('<', '<=')} {self.value(column.type)}")
        return " AND ".join(words)

    def tuple_of(self, columns):
        return "(" + ", ".join(self.value(one.type) for one in columns) + ")"

    def multi(self, with_in=True):
        columns = self.clustering[:1 + self.number(len(self.clustering))]
        names = "(" + ", ".join(one.name for one in columns) + ")"
        if with_in and self.chance(0.3):
            values = ", ".join(self.tuple_of(columns) for _ in range(1 + self.number(3)))
            return f"{names} IN ({values})"
        words = [f"{names} {self.pick('>', '>=')} {self.tuple_of(columns)}"]
        if self.chance(0.5):
            shorter = columns[:1 + self.number(len(columns))]
            words.append("(" + ", ".join(one.name for one in shorter) +
                         f") {self.pick('<', '<=')} {self.tuple_of(shorter)}")
        return " AND ".join(words)

    def restriction(self, is_read):
        """Of the clustering columns; "" where there is none."""
        if not self.clustering or self.chance(0.25):
            return ""
        if self.chance(0.3):
            return " AND " + self.multi()
        at = self.number(len(self.clustering))
        words = [f"{one.name} = {self.value(one.type)}" for one in self.clustering[:at]]
        column = self.clustering[at]
        if self.chance(0.4):
            words.append(self.slice(column))
        elif self.chance(0.4):
            values = ", ".join(self.value(column.type) for _ in range(1 + self.number(3)))
            words.append(f"{column.name} IN ({values})")
            if is_read:
                words += [f"{one.name} = {self.value(one.type)}" for one in self.clustering[at + 1:]
                          if self.chance(0.5)]
        else:
            words.append(f"{column.name} = {self.value(column.type)}")
        return " AND " + " AND ".join(words)

    # ---- Writes ----

    def insert(self):
        columns = self.partition + self.clustering + self.some(self.regular, 4)
        if self.static and self.chance(0.3):
            columns.append(self.pick(*self.static))
        if self.static and self.chance(0.05):
            columns = self.partition + [self.pick(*self.static)]
        values = [self.value(one.type) if one.kind in ("partition", "clustering") else self.cell(one)
                  for one in columns]
        return (f"INSERT INTO t ({', '.join(one.name for one in columns)}) VALUES ({', '.join(values)}) "
                f"{self.using(self.rows_expire)}")

    def assignment(self, column):
        name, kind = column.name, column.type
        if kind == "counter":
            return f"{name} = {name} {self.pick('+', '-')} {1 + self.number(5)}"
        choices = [f"{name} = {self.cell(column)}"]
        if kind.startswith("list<"):
            choices += [f"{name} = {name} + {self.value(kind)}", f"{name} = {self.value(kind)} + {name}",
                        f"{name} = {name} - {self.value(kind)}"]
        elif kind.startswith("set<"):
            choices += [f"{name} = {name} {self.pick('+', '-')} {self.value(kind)}"] * 2
        elif kind.startswith("map<"):
            key, _, item = kind[4:-1].partition(", ")
            choices += [f"{name} = {name} + {self.value(kind)}", f"{name} = {name} - {self.value(f'set<{key}>')}",
                        f"{name}[{self.value(key)}] = {self.pick('null', self.value(item))}"]
        elif kind == "ud":
            choices += [f"{name}.a = {self.pick('null', self.value('int'))}", f"{name}.b = {self.value('text')}"]
        return self.pick(*choices)

    def update(self):
        columns = [self.pick(*(self.cells if self.chance(0.3) else self.regular))]
        where = self.key()
        if all(one.kind == "static" for one in columns):
            pass
        elif self.clustering and self.chance(0.2):
            last = self.clustering[-1]
            values = ", ".join(self.value(last.type) for _ in range(2))
            where = " AND ".join([where] + [self.key([one]) for one in self.clustering[:-1]] +
                                 [f"{last.name} IN ({values})"])
        else:
            where = self.key(self.partition + self.clustering)
            others = [one for one in self.regular if one not in columns]
            if others and self.chance(0.4):
                columns.append(self.pick(*others))
        using = "" if self.is_counter else self.using() + " "
        return f"UPDATE t {using}SET {', '.join(self.assignment(one) for one in columns)} WHERE {where}"

    def deleted(self, column):
        kind = column.type
        if kind == "ud" and self.chance(0.5):
            return f"{column.name}.{self.pick('a', 'b')}"
        if kind.startswith(("set<", "map<")) and self.chance(0.5):
            return f"{column.name}[{self.value(kind[4:-1].partition(', ')[0])}]"
        return column.name

    def delete(self):
        using = "" if self.is_counter else self.using(False) + " "
        die = self.random.random()
        if die < 0.3:
            columns = ", ".join(self.deleted(one) for one in {self.pick(*self.regular) for _ in range(2)})
            return f"DELETE {columns} FROM t {using}WHERE {self.key(self.partition + self.clustering)}"
        if die < 0.35 and self.static:
            return f"DELETE {self.deleted(self.pick(*self.static))} FROM t {using}WHERE {self.key()}"
        if die < 0.5:
            return f"DELETE FROM t {using}WHERE {self.key(self.partition + self.clustering)}"
        return f"DELETE FROM t {using}WHERE {self.key()}{self.restriction(False)}"

    def write(self):
        if self.is_counter:
            return self.update()  # what was deleted may come back there, out of the counter cache
        return self.pick(self.insert, self.insert, self.update, self.update, self.delete)()

    def batch(self):
        if self.is_counter:
            return "BEGIN COUNTER BATCH " + "; ".join(self.update() for _ in range(3)) + "; APPLY BATCH"
        writes = "; ".join(self.write() for _ in range(2 + self.number(3)))
        return f"BEGIN {self.pick('', 'UNLOGGED ')}BATCH {writes}; APPLY BATCH"

    def conditional(self):
        where = self.key(self.partition + self.clustering)
        if self.is_counter:
            return self.update()
        plain = [one for one in self.cells if one.type in POOLS]
        condition = "EXISTS"
        if plain and self.chance(0.7):
            column = self.pick(*plain)
            condition = self.pick(f"{column.name} {self.pick('=', '!=', '<', '>=')} {self.cell(column)}",
                                  f"{column.name} IN ({self.value(column.type)}, {self.value(column.type)})")
        if self.chance(0.2):
            return f"DELETE FROM t WHERE {where} IF {condition}"
        if self.chance(0.3):
            names = [one.name for one in self.partition + self.clustering]
            values = ", ".join(self.value(one.type) for one in self.partition + self.clustering)
            return f"INSERT INTO t ({', '.join(names)}) VALUES ({values}) IF NOT EXISTS"
        return f"UPDATE t SET {self.assignment(self.pick(*self.regular))} WHERE {where} IF {condition}"

    # ---- Reads ----

    def selected(self):
        die = self.random.random()
        if die < 0.35 or self.is_counter or self.rows_expire:
            return "*"
        if die < 0.45:
            return "JSON *"
        words = [one.name for one in self.partition + self.clustering + self.some(self.cells, 4)
                 if self.chance(0.8)]
        for column in self.some(self.cells, 3):
            if not column.is_multi_cell and not self.is_conditional:
                words.append(f"{self.pick('writetime', 'ttl')}({column.name})"
                             if self.version == 5 else f"writetime({column.name})")
            elif column.type.startswith(("set<", "map<")):
                key = column.type[4:-1].partition(", ")[0]
                words.append(f"{column.name}[{self.value(key)}{self.pick('', '..', '..' + self.value(key))}]")
            elif column.type == "ud":
                words.append(f"{column.name}.{self.pick('a', 'b')}")
        return ", ".join(words) or "*"

    def aggregates(self):
        words = ["count(*)"]
        if self.rows_expire:
            return words[0]
        for column in self.some(self.partition + self.clustering + self.cells, 3):
            words.append(f"{self.pick('count', 'min', 'max')}({column.name})" if column.type in POOLS
                         else f"count({column.name})")
            if column.type in ("int", "bigint", "varint", "decimal"):
                words.append(f"{self.pick('sum', 'avg')}({column.name})")
        return ", ".join(words)

    def order(self):
        if not self.clustering or self.chance(0.5):
            return ""
        count = 1 + self.number(len(self.clustering))
        flip = self.chance(0.7)
        return " ORDER BY " + ", ".join(
            f"{one.name} {FLIP[order] if flip else order}"
            for one, order in list(zip(self.clustering, self.orders))[:count])

    def limits(self):
        words = f" PER PARTITION LIMIT {1 + self.number(3)}" if self.chance(0.2) else ""
        return words + (f" LIMIT {1 + self.number(6)}" if self.chance(0.25) else "")

    def group(self):
        """(GROUP BY, its columns)"""
        columns = self.partition + self.clustering[:self.number(len(self.clustering) + 1)]
        return ", ".join(one.name for one in columns)

    def token(self):
        names = ", ".join(one.name for one in self.partition)
        return (f"token({names}) {self.pick('>', '<=')} "
                f"token({', '.join(self.value(one.type) for one in self.partition)})")

    def filter(self):
        column = self.pick(*(self.clustering + self.cells))
        if column.type.startswith("map<") and self.chance(0.5):
            return f"{column.name} CONTAINS KEY {self.value(column.type[4:-1].partition(', ')[0])}"
        if column.type.startswith(("list<", "set<", "map<")):
            kind = column.type[5:-1] if column.type.startswith("list") else column.type[4:-1].split(", ")[-1]
            return f"{column.name} CONTAINS {self.value(kind)}"
        if column.type == "ud" or column.type == "counter":
            column = self.pick(*(self.partition + self.clustering))
        return f"{column.name} {self.pick('=', '>', '<=')} {self.value(column.type)}"

    def select(self):
        die = self.random.random()
        if die < 0.15:
            return f"SELECT {self.selected()} FROM t{self.limits()}"
        if die < 0.45:
            return (f"SELECT {self.selected()} FROM t WHERE {self.key()}{self.restriction(True)}"
                    f"{self.order()}{self.limits()}")
        if die < 0.55:
            return (f"SELECT {self.selected()} FROM t WHERE {self.keys_in()}{self.restriction(True)}"
                    f"{self.limits()}")
        if die < 0.62:
            names = ", ".join(one.name for one in self.partition + (self.static if self.chance(0.7) else []))
            return f"SELECT DISTINCT {names} FROM t" + (f" LIMIT {1 + self.number(3)}" if self.chance(0.3) else "")
        if die < 0.72:
            group = self.group()
            where = self.pick("", f" WHERE {self.key()}{self.restriction(True)}")
            return f"SELECT {group}, {self.aggregates()} FROM t{where} GROUP BY {group}{self.limits()}"
        if die < 0.8:
            return f"SELECT {self.aggregates()} FROM t WHERE {self.key()}{self.restriction(True)}"
        if die < 0.87:
            return f"SELECT {self.selected()} FROM t WHERE {self.token()}{self.limits()}"
        where = " AND ".join(self.filter() for _ in range(self.pick(1, 1, 2)))
        if self.chance(0.4):
            where = f"{self.key()} AND {where}"
        return f"SELECT {self.selected()} FROM t WHERE {where}{self.limits()} ALLOW FILTERING"

    # ---- All of it ----

    def add(self, text, is_read=False):
        step = {"do": "query", "cql": text}
        if self.version == 5:
            step["now"] = NOW + self.number(60)
        # Pages of groups over several partitions end in errors there (an invalid paging state).
        if is_read and self.page and (" GROUP BY " not in text or " WHERE " in text):
            step["page"] = self.page
        if self.chance(0.2):
            step["do"], step["bind"] = "execute", []
        self.steps.append(step)

    def script(self):
        self.schema()
        for number in range(self.pick(40, 80, 160)):
            die = self.random.random()
            if die < 0.5:
                self.add(self.write())
            elif die < 0.55:
                self.add(self.batch())
            elif die < 0.6 and self.is_conditional:
                self.add(self.conditional())
            elif die < 0.64:
                self.steps.append({"do": self.pick("flush", "flush", "compact")})
            else:
                self.page = self.pick(0, 0, 1, 2, 3, 5, 100)
                self.add(self.select(), True)
            if number % 10 == 9:
                self.add("SELECT * FROM t", True)
        return Script(self.name, self.steps, [self.version])


def random_script(seed):
    return Generator(seed).script()
