# SPDX-License-Identifier: Apache-2.0
"""Scripts of statements: how they are written, and how one is played on a server.

A script is a text of CQL statements, each ending with a `;` at the end of a line. It is played in
a keyspace of its own, which has its name. Lines that begin with `#` are comments; lines that begin
with `!` say how the statements that follow are sent:

    !bind i(1), t('a'), null    prepare the next statement and execute it with these values (values.py)
    !prepare                    only prepare the next statement
    !as NAME                    the next statement's name in the table of README.md
    !mask COLUMN...             these columns of the next result differ from run to run, where they
                                are not null (COLUMN?: also in whether they are)
    !mask-text                  the next error's text differs from run to run
    !page N                     from here on: rows in a page (0: no paging)
    !timestamp N                from here on: the request's default timestamp (- ends it)
    !now N                      from here on: the request's now_in_seconds; protocol 5 only (- ends it)
    !consistency NAME           from here on: the consistency level
    !serial NAME                from here on: the serial consistency level (- ends it)
    !keyspace NAME              from here on: the request's keyspace; protocol 5 only (- ends it)
    !batch KIND ... !end        the statements between are sent as one BATCH message
    !flush, !compact            nodetool flush or compact of the script's keyspace
    !pause SECONDS              let time pass
    !versions N...              protocol versions to play it with (4 and 5 unless said)
"""
import os
import re
import time

from values import UNSET, evaluate
from wire import Connection, WireError

STICKY = {"page": int, "timestamp": int, "now": int, "consistency": str, "serial": str,
          "keyspace": str}
OPTIONS = ("page", "timestamp", "now", "consistency", "serial", "keyspace", "state")


class ScriptError(Exception):
    pass


class Script:
    def __init__(self, name, steps, versions=(4, 5)):
        self.name = name
        self.keyspace = name
        self.steps = steps
        self.versions = tuple(versions)


def hex_of(values):
    return ["unset" if data is UNSET else None if data is None else data.hex() for data in values]


def values_of(digits):
    return [UNSET if text == "unset" else None if text is None else bytes.fromhex(text)
            for text in digits]


class Parser:
    def __init__(self, path):
        self.path = path
        self.sticky = {}
        self.once = {}
        self.batch = None
        self.steps = []
        self.versions = (4, 5)

    def directive(self, line):
        word, _, rest = line[1:].partition(" ")
        rest = rest.strip()
        if word in STICKY:
            if rest == "-" or (word == "page" and rest == "0"):
                self.sticky.pop(word, None)
            else:
                self.sticky[word] = STICKY[word](rest)
        elif word == "bind":
            self.once["bind"] = hex_of(evaluate(rest))
        elif word == "prepare":
            self.once["do"] = "prepare"
        elif word == "as":
            self.once["as"] = rest
        elif word == "mask":
            self.once["mask"] = rest.split()
        elif word == "mask-text":
            self.once["mask_text"] = True
        elif word in ("flush", "compact"):
            self.steps.append({"do": word})
        elif word == "pause":
            self.steps.append({"do": "pause", "seconds": float(rest)})
        elif word == "versions":
            self.versions = tuple(int(number) for number in rest.split())
        elif word == "batch":
            self.batch = {"do": "batch", "type": rest, "statements": [], **self.sticky, **self.once}
            self.once = {}
        elif word == "end":
            self.steps.append(self.batch)
            self.batch = None
        else:
            raise ScriptError(f"unknown directive !{word}")

    def statement(self, text):
        if self.batch is not None:
            self.batch["statements"].append([text, self.once.get("bind")])
        else:
            step = {"do": "execute" if "bind" in self.once else "query", "cql": text}
            self.steps.append({**step, **self.sticky, **self.once})
        self.once = {}

    def parse(self):
        pending = []
        with open(self.path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                line = line.rstrip("\n")
                if not pending and (not line.strip() or line.startswith("#")):
                    continue
                if not pending and line.startswith("!"):
                    try:
                        self.directive(line)
                    except Exception as problem:
                        raise ScriptError(f"{self.path}:{number}: {problem}") from problem
                    continue
                pending.append(line)
                if line.rstrip().endswith(";"):
                    self.statement("\n".join(pending).rstrip()[:-1])
                    pending = []
        if pending or self.batch:
            raise ScriptError(f"{self.path}: the last statement does not end")
        name = os.path.splitext(os.path.basename(self.path))[0]
        return Script(name, self.steps, self.versions)


def load(path):
    return Parser(path).parse()


class Player:
    """Plays steps on one server and hands back their answers."""

    def __init__(self, server, script, version):
        self.server = server
        self.keyspace = script.keyspace
        self.version = version
        self.connection = None
        self.connect()
        self.connection.query(f"DROP KEYSPACE IF EXISTS {self.keyspace}", {})
        self.must(f"CREATE KEYSPACE {self.keyspace} WITH replication = "
                  "{'class': 'SimpleStrategy', 'replication_factor': 1}")
        self.must(f"USE {self.keyspace}")

    def connect(self):
        self.connection = Connection(self.server.address, self.server.port, self.version)

    def must(self, text):
        answer = self.connection.query(text, {})
        if answer["kind"] == "error":
            raise ScriptError(f"{self.server.name}: {text}: {answer['text']}")

    def close(self):
        try:
            self.connection.query(f"DROP KEYSPACE IF EXISTS {self.keyspace}", {})
        except (OSError, WireError):
            pass
        self.connection.close()

    def play(self, step):
        """The answer to compare; a broken connection is an answer too."""
        try:
            return self.masked(step, getattr(self, "do_" + step["do"])(step))
        except (OSError, WireError) as problem:
            self.connection.close()
            self.server.check()
            self.connect()
            self.must(f"USE {self.keyspace}")
            return {"kind": "broken", "text": str(problem)}

    def masked(self, step, answer):
        if answer is None:
            return None
        answer.pop("metadata_id", None)
        answer.pop("id", None)
        if step.get("mask_text"):
            answer["text"] = "*"
        masks = step.get("mask", ())
        hidden = [at for at, column in enumerate(answer.get("columns") or [])
                  if column[1] in masks or column[1] + "?" in masks]
        for page in answer.get("pages", []):
            for row in page:
                for at in hidden:
                    is_null = row[at] is None and answer["columns"][at][1] + "?" not in masks
                    row[at] = None if is_null else "*"
        return answer

    def paged(self, send, step):
        options = {name: step[name] for name in OPTIONS if name in step}
        answer = send(options)
        if answer["kind"] != "rows":
            return answer
        pages = [answer.pop("rows")]
        state = answer.pop("state")
        while state is not None and len(pages) < 1000:
            more = send({**options, "state": state})
            if more["kind"] != "rows":
                answer["then"] = more
                break
            if more["columns"] != answer["columns"]:
                answer["then"] = {"columns": more["columns"]}
            if more.get("warnings"):
                answer.setdefault("more_warnings", []).append(more["warnings"])
            pages.append(more["rows"])
            state = more["state"]
        answer["pages"] = pages
        return answer

    def do_query(self, step):
        return self.paged(lambda options: self.connection.query(step["cql"], options), step)

    def do_prepare(self, step):
        return self.connection.prepare(step["cql"], step)

    def do_execute(self, step):
        prepared = self.connection.prepare(step["cql"], step)
        if prepared["kind"] != "prepared":
            return {"kind": "refused", "prepare": prepared}
        values = values_of(step["bind"])
        answer = self.paged(lambda options: self.connection.execute(prepared, values, options), step)
        answer.pop("metadata_id", None)
        answer["prepared"] = {"bind": prepared["bind"], "key": prepared["key"]}
        if prepared["columns"] and prepared["columns"] != answer.get("columns"):
            answer["prepared"]["columns"] = prepared["columns"]
        return answer

    def do_batch(self, step):
        statements = []
        for text, digits in step["statements"]:
            if digits is None:
                statements.append((text, []))
                continue
            prepared = self.connection.prepare(text, step)
            if prepared["kind"] != "prepared":
                return {"kind": "refused", "prepare": prepared}
            statements.append((prepared["id"], values_of(digits)))
        options = {name: step[name] for name in OPTIONS if name in step and name != "page"}
        answer = self.connection.batch(step["type"], statements, options)
        if answer["kind"] == "rows":
            answer["pages"] = [answer.pop("rows")]
            answer.pop("state")
        return answer

    def do_flush(self, _):
        self.server.nodetool("flush", self.keyspace)

    def do_compact(self, _):
        self.server.nodetool("compact", self.keyspace)

    def do_pause(self, step):
        time.sleep(step["seconds"])


def play(server, script, version, steps=None):
    """The answers to all steps, None for those that have none."""
    player = Player(server, script, version)
    try:
        return [player.play(step) for step in steps or script.steps]
    finally:
        player.close()


def words(step):
    """A step in one line, for people."""
    extra = " ".join(f"{name}={step[name]}" for name in ("page", "timestamp", "now", "consistency",
                                                         "serial", "keyspace", "bind") if name in step)
    if step["do"] in ("query", "execute", "prepare"):
        text = re.sub(r"\s*\n\s*", " ", step["cql"])
        return text + (f"    [{step['do']} {extra}]" if extra or step["do"] != "query" else "")
    if step["do"] == "batch":
        return f"BATCH {step['type']} {step['statements']} [{extra}]"
    return "!" + step["do"]
