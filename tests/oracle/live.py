# SPDX-License-Identifier: Apache-2.0
"""Both servers at once: the scripts, then random ones until the time is over.

A difference that a random script finds is shown with the fewest statements that still show it.
"""
import os
import time

import recordings
from compare import Tally, differences
from random_script import random_script
from script import play, words
from servers import Cassandra, Helenus

TRIALS = 60
# Errors that say that Cassandra itself failed: a random read that ends so says nothing.
ACCIDENTS = ("0000", "1300")


def both(servers, script, version, steps=None):
    return [play(server, script, version, steps) for server in servers]


def shrink(servers, script, version, at):
    """The steps needed to see step `at` differ: pieces are left out while it still does."""
    target = script.steps[at]
    steps = script.steps[:at]
    trials = 0
    size = max(1, len(steps) // 2)
    while size >= 1 and trials < TRIALS:
        start = len(steps)
        while start > 0 and trials < TRIALS:
            start = max(0, start - size)
            fewer = steps[:start] + steps[start + size:]
            trials += 1
            try:
                ours, theirs = both(servers, script, version, fewer + [target])
            except OSError:
                return steps + [target]
            if differences(ours[-1], theirs[-1], with_text=False):
                steps = fewer
        size //= 2
    return steps + [target]


def compare_script(servers, tally, script, version):
    """False where something new differs."""
    ours, theirs = both(servers, script, version)
    is_random = script.name.startswith("random_")
    for number, (step, left, right) in enumerate(zip(script.steps, ours, theirs)):
        if right is None:
            continue
        if is_random and right.get("code") in ACCIDENTS and left["kind"] in ("rows", "error"):
            continue
        lines = differences(left, right, with_text=not is_random)
        if lines and is_random:
            shown = shrink(servers, script, version, number)
            tally.fail(f"{script.name}:{number} v{version}", lines + [words(one) + ";" for one in shown])
            return False  # what follows has the same cause more often than not
        tally.add(script.name, step, lines, f"{script.name}:{number} v{version}: {words(step)}")
    return True


def live():
    tally = Tally()
    seconds = float(os.environ.get("ORACLE_SECONDS", "300"))
    seed = int(os.environ.get("ORACLE_SEED", int(time.time()) % 1000000 * 1000))
    print(f"seed {seed}, {seconds:g} seconds", flush=True)
    servers = [Helenus()]
    try:
        servers.append(Cassandra())
        end = time.monotonic() + seconds
        for script in [] if "ORACLE_SEED" in os.environ else recordings.hand_written():
            for version in script.versions:
                compare_script(servers, tally, script, version)
        count = 0
        while time.monotonic() < end and tally.failed < 20:
            script = random_script(seed + count)
            compare_script(servers, tally, script, script.versions[count % len(script.versions)])
            count += 1
        print(f"{count} random scripts", flush=True)
    finally:
        for server in servers:
            server.stop()
    return tally


