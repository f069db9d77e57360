# SPDX-License-Identifier: Apache-2.0
"""Recorded answers: a script's steps and what Cassandra answered to each, one step a line."""
import glob
import json
import os

from script import Script, load

HERE = os.path.dirname(os.path.abspath(__file__))


def script_paths():
    return sorted(glob.glob(os.path.join(HERE, "scripts", "*.cql")))


def path_of(name):
    return os.path.join(HERE, "recorded", name + ".json")


def unnamed(step):
    """A statement's name in README.md is not recorded, so that it can be given afterwards."""
    return {key: item for key, item in step.items() if key != "as"}


def save(script, answers):
    """answers: for each version the answers to all steps; written once where they are the same."""
    def compact(item):
        return json.dumps(item, ensure_ascii=True, separators=(",", ":"))

    head = {"name": script.name, "versions": script.versions}
    lines = []
    for step, *found in zip(script.steps, *(answers[version] for version in script.versions)):
        is_same = all(answer == found[0] for answer in found)
        plain = unnamed(step)
        lines.append(compact([plain, found[0]] if is_same else [plain, *found]))
    with open(path_of(script.name), "w", encoding="ascii") as file:
        file.write('{"head":' + compact(head) + ',"steps":[\n' + ",\n".join(lines) + "\n]}\n")


def read(path):
    """(Script, {version: answers})"""
    with open(path, encoding="ascii") as file:
        recorded = json.load(file)
    versions = recorded["head"]["versions"]
    lines = recorded["steps"]
    answers = {version: [line[1 + at if len(line) > 2 else 1] for line in lines]
               for at, version in enumerate(versions)}
    return Script(recorded["head"]["name"], [line[0] for line in lines], versions), answers


def random_recorded():
    return sorted(glob.glob(os.path.join(HERE, "recorded", "random_*.json")))


def is_current(script):
    """Whether the recording of a hand-written script is of the script as it is now."""
    try:
        recorded, _ = read(path_of(script.name))
    except OSError:
        return False
    steps = [unnamed(step) for step in script.steps]
    return recorded.steps == steps and recorded.versions == script.versions


def hand_written(names=()):
    """The scripts of scripts/, or those with one of the names."""
    found = [load(path) for path in script_paths()]
    return [script for script in found if not names or script.name in names]
