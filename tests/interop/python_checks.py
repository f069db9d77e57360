# SPDX-License-Identifier: Apache-2.0
"""What a Python program of tests/interop/run says to it: PASS and FAIL, and what it asks for."""
import os
import sys
import time
import traceback


def say(line):
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def ask(what):
    say("ask: " + what)
    answer = sys.stdin.readline().strip()
    assert answer == "done", answer


def check(name, function, *arguments):
    try:
        function(*arguments)
    except Exception as error:  # pylint: disable=broad-except
        line = [at.lineno for at in traceback.extract_tb(error.__traceback__)
                if os.path.dirname(at.filename) == os.path.dirname(__file__)
                and at.filename != __file__][-1]
        say(f"FAIL {name}: {type(error).__name__}: {error} (line {line})")
    else:
        say(f"PASS {name}")


def equal(left, right):
    assert left == right, f"{left!r} is not {right!r}"


def raises(kind, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def until(condition, what, patience=20):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.05)
