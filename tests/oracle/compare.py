# SPDX-License-Identifier: Apache-2.0
"""What differs between two answers, in words, and which differences are known."""
import os
import re

from values import show

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md")
KNOWN_LINE = re.compile(r"^\|\s*`([\w.-]+/[\w.-]+)`\s*\|")


def known_differences():
    """The names (script/statement) in the table of README.md."""
    with open(README, encoding="utf-8") as file:
        return {match.group(1) for match in map(KNOWN_LINE.match, file) if match}


def row_text(row, columns):
    kinds = [column[2] for column in columns or []] or [""] * len(row)
    return "(" + ", ".join(show(cell, kind) for cell, kind in zip(row, kinds)) + ")"


def rows_difference(ours, theirs):
    columns = theirs.get("columns")
    mine = [len(page) for page in ours["pages"]]
    other = [len(page) for page in theirs["pages"]]
    found = []
    if mine != other:
        found.append(f"rows in pages {mine}, Cassandra has {other}")
    flat = [row for page in ours["pages"] for row in page]
    wanted = [row for page in theirs["pages"] for row in page]
    if flat != wanted:
        for at in range(max(len(flat), len(wanted))):
            left = flat[at] if at < len(flat) else None
            right = wanted[at] if at < len(wanted) else None
            if left != right:
                found.append(f"row {at}: {row_text(left, columns) if left else 'none'}, Cassandra has "
                             f"{row_text(right, columns) if right else 'none'}")
            if len(found) > 4:
                found.append("...")
                break
    return found


def differences(ours, theirs, with_text=True):
    """Lines that tell the differences; none where the answers are the same."""
    if ours == theirs:
        return []
    if ours is None or theirs is None:
        return [f"{ours}, Cassandra has {theirs}"]
    found = []
    for name in sorted(set(ours) | set(theirs)):
        left, right = ours.get(name), theirs.get(name)
        if left == right:
            continue
        if name == "pages" and left is not None and right is not None:
            found += rows_difference(ours, theirs)
        elif name == "prepare" and left and right:
            found += differences(left, right, with_text)
        elif name in ("text", "warnings") and not with_text and bool(left) == bool(right):
            continue
        elif name == "pages":
            found.append(f"rows {left}, Cassandra has {right}")
        else:
            found.append(f"{name} {left!r}, Cassandra has {right!r}")
    return found


class Tally:
    """Counts, prints, and knows which differences are expected."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.known = known_differences()
        self.seen = set()

    def fail(self, name, lines):
        self.failed += 1
        print(f"FAILED {name}", flush=True)
        for line in lines:
            print(f"    {line}", flush=True)

    def add(self, script, step, lines, title):
        label = f"{script}/{step['as']}" if "as" in step else None
        if label in self.known:
            self.seen.add(label)
            if lines:
                self.passed += 1
            else:
                self.fail(title, [f"{label} is listed as a difference in README.md, but is none"])
        elif lines:
            self.fail(title, lines)
        else:
            self.passed += 1
