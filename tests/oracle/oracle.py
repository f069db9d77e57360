# SPDX-License-Identifier: Apache-2.0
"""
The same statements on this server and on Cassandra.

  oracle.py replay              start helenusd, compare with the answers that were recorded
  oracle.py record ADDRESS      ask the Cassandra at ADDRESS, write answers/
  oracle.py live ADDRESS        start helenusd, compare both servers now

A file of cases/ has one statement a line. A line "#page N" sets the page size (0: none), "#differs WHY" says
that the answer to the next statement is known not to be the same, "#flush" and "#compact" are done by this server
alone (by nodetool), other comments are skipped.

  oracle.py random ADDRESS [SEED [SECONDS]]   random cases, one after the other, against the Cassandra at ADDRESS
"""
import json
import pathlib
import re
import sys
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
warnings.simplefilter("ignore")

from cassandra.cluster import Cluster  # noqa: E402
from cassandra.query import SimpleStatement, tuple_factory  # noqa: E402
import generate  # noqa: E402
import helenus  # noqa: E402

PAGE_ALL = 5000


def connect(address, port):
    cluster = Cluster(
        [address], port=port, protocol_version=5, schema_metadata_enabled=False, token_metadata_enabled=False
    )
    session = cluster.connect()
    session.row_factory = tuple_factory
    session.default_timeout = 60
    return session


def error_of(failure):
    """Code and text, wherever the driver keeps them."""
    inner = getattr(failure, "errors", None)
    for one in [failure] + (list(inner.values()) if isinstance(inner, dict) else []):
        found = re.search(r'code=([0-9A-Fa-f]{4}).*?message="(.*)"', str(one), re.S)
        if found:
            return {"error": found.group(1), "text": found.group(2)}
    if type(failure).__name__ == "AlreadyExists":
        return {"error": "2400", "text": str(failure)}
    return {"error": type(failure).__name__, "text": str(failure)}


def ask(session, text, page):
    try:
        statement = SimpleStatement(text, fetch_size=page or PAGE_ALL)
        future = session.execute_async(statement)
        result = future.result()
        names, types, told = future._col_names, future._col_types or [], future.warnings
        rows, pages = [], []
        while True:
            current = [repr(row) for row in result.current_rows or []]
            pages.append(len(current))
            rows += current
            if not result.has_more_pages:
                break
            result.fetch_next_page()
        answer = {
            "columns": list(names or []),
            "types": [kind.cql_parameterized_type() for kind in types],
            "rows": rows,
            "warnings": list(told or []),
        }
        if page:
            answer["pages"] = pages
        return answer
    except Exception as failure:  # pylint: disable=broad-except
        return error_of(failure)


def cases(path):
    """(statement, page size, why it differs or None)"""
    return cases_of(path.read_text().splitlines())


def cases_of(lines):
    page, why = 0, None
    for line in lines:
        line = line.strip()
        if line.startswith("#page"):
            page = int(line.split()[1])
        elif line in ("#flush", "#compact"):
            yield line, page, None
        elif line.startswith("#differs"):
            why = line[len("#differs"):].strip() or "known"
        elif line and not line.startswith("#"):
            yield line, page, why
            why = None


def record(address):
    session = connect(address, 9042)
    for path in sorted((HERE / "cases").glob("*.cql")):
        lines = [
            json.dumps(ask(session, text, page), sort_keys=True)
            for text, page, _ in cases(path)
            if not text.startswith("#")
        ]
        (HERE / "answers" / (path.stem + ".jsonl")).write_text("\n".join(lines) + "\n")
        print(f"{path.name}: {len(lines)} answers")


def show(path, text, ours, theirs):
    print(f"--- {path.name}: {text}")
    for key in sorted(set(ours) | set(theirs)):
        if ours.get(key) != theirs.get(key):
            print(f"    {key}\n      ours   {str(ours.get(key))[:800]}\n      theirs {str(theirs.get(key))[:800]}")


def compare(answers_of):
    passed = failed = 0
    server = helenus.Server().start()
    try:
        session = connect(server.address, server.port)
        for path in sorted((HERE / "cases").glob("*.cql")):
            theirs = answers_of(path)
            for text, page, why in cases(path):
                if text.startswith("#"):
                    server.nodetool(text[1:])
                    continue
                ours, their = ask(session, text, page), next(theirs)
                if ours == their or why is not None:
                    passed += 1
                else:
                    failed += 1
                    show(path, text, ours, their)
    finally:
        server.remove()
    print(f"{passed} passed, {failed} failed")
    return failed


def recorded(path):
    for line in (HERE / "answers" / (path.stem + ".jsonl")).read_text().splitlines():
        yield json.loads(line)


def compare_random(address, seed, seconds):
    theirs, server = connect(address, 9042), helenus.Server().start()
    end, asked, failed = time.monotonic() + seconds, 0, 0
    try:
        ours = connect(server.address, server.port)
        while time.monotonic() < end and failed < 10:
            name = pathlib.Path(f"seed {seed}")
            for text, page, _ in cases_of(generate.Case(seed).lines(300)):
                if text.startswith("#"):
                    try:
                        server.nodetool(text[1:])
                    except RuntimeError:
                        print(f"--- {name}: {text}\n{server.read_log()}")
                        raise
                    continue
                asked += 1
                mine, their = ask(ours, text, page), ask(theirs, text, page)
                if mine != their and their.get("error") != "1300":  # that is a failure of its own
                    failed += 1
                    show(name, text, mine, their)
                    if failed >= 10:
                        break
            seed += 1
    finally:
        server.remove()
    print(f"{asked - failed} passed, {failed} failed")
    return failed


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else "replay"
    if mode == "record":
        return record(sys.argv[2])
    if mode == "random":
        numbers = [int(word) for word in sys.argv[3:]] + [int(time.time()), 60][len(sys.argv) - 3:]
        return compare_random(sys.argv[2], *numbers)
    if mode == "live":
        session = connect(sys.argv[2], 9042)
        return compare(lambda path: (ask(session, text, page) for text, page, _ in cases(path) if text[0] != "#"))
    return compare(recorded)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
