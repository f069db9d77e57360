# SPDX-License-Identifier: Apache-2.0
"""The command lines of cassandra-stress: with a real one where CASSANDRA_STRESS names it, and with ours."""
import os
import re
import shlex
import subprocess
import threading
import time

from harness import ADDRESS, BUILD, HERE, PORT, WORK, Server

SECONDS = os.environ.get("STRESS_SECONDS", "10")
ROWS = os.environ.get("STRESS_ROWS", "1000000" if os.environ.get("TEST_LENGTH") == "long" else "100000")


def stress(command, text, timeout=900):
    """Run it without an error; -> its output."""
    words = command + shlex.split(text) + ["-node", ADDRESS, "-port", f"native={PORT}"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=timeout, check=False, cwd=WORK)
    output = done.stdout
    assert done.returncode == 0, f"status {done.returncode}: {output[-1500:]}"
    return output


def results(output):
    """The figures of each report: name -> text."""
    found = []
    for part in output.split("\nResults:")[1:]:
        found.append(dict(re.findall(r"^([A-Z][\w .]*\w)\s*:\s*(.*)$", part, re.M)))
    assert found, output[-1500:]
    return found


def clean(command, text, least=1, timeout=900):
    for result in results(stress(command, text, timeout)):
        errors = result.get("Total errors", "0")
        assert re.match(r"0\b", errors), f"errors: {errors}"
        count = int(re.sub(r"\D", "", result["Total partitions"].split("[")[0]))
        assert count >= least, f"{count} partitions"


def ladder(command, name):
    graph = os.path.join(WORK, f"{name}.html")
    output = stress(command, f"write n=20000 cl=ONE -rate threads>=4 threads<=913 "
                             f"-graph file={graph} title={name}")
    assert "Running with 4 threadCount" in output, output[:2000]
    assert re.search(r"^\s*id,\s*type", output, re.M), output[-2000:]
    with open(graph, encoding="utf-8") as file:
        text = file.read()
    assert re.search("<(html|!doctype html)", text.lower()) and name in text, text[:500]


def killed(command, server):
    """Whatever was written before is there after a kill under load."""
    failures = []

    def kill():
        try:
            time.sleep(3)
            server.kill()
            time.sleep(1)
            server.start()
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)
    clean(command, f"write n={ROWS} -rate threads=200", int(ROWS))
    thread = threading.Thread(target=kill)
    thread.start()
    words = command + shlex.split(f"write n={ROWS} -errors ignore -rate threads=200") + [
        "-node", ADDRESS, "-port", f"native={PORT}"]
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=900,
                   check=False, cwd=WORK)
    thread.join()
    assert not failures, failures
    clean(command, f"read n={ROWS} -rate threads=200", int(ROWS))


def commands(checks, prefix, command, server):
    rate = f"duration={SECONDS}s"
    gauss = "-pop dist=gauss(1..1000000,500000,50000)"
    threads = "-mode native cql3 -rate threads=700"
    profile = os.path.join(HERE, "stress.yaml")
    for name, function, *arguments in (
            ("write with 700 threads", clean, f"write {rate} {threads}"),
            (f"write n={ROWS}", clean, f"write n={ROWS} -rate threads=200", int(ROWS)),
            (f"read validates {ROWS} rows", clean, f"read n={ROWS} -rate threads=200", int(ROWS)),
            ("mixed ratio(read=1) with 700 threads", clean,
             f"mixed 'ratio(read=1)' {rate} {gauss.replace('1000000', ROWS).replace('500000', str(int(ROWS) // 2)).replace('50000)', str(int(ROWS) // 20) + ')')} {threads}"),
            ("mixed ratio(read=1,write=1) with 700 threads", clean,
             f"mixed 'ratio(read=1,write=1)' {rate} {threads} -pop seq=1..{ROWS}"),
            ("counter_write", clean, f"counter_write n=20000 no-warmup -rate threads=50", 20000),
            ("counter_read", clean, f"counter_read n=20000 no-warmup -rate threads=50", 20000),
            ("user profile, inserts", clean,
             f"user profile={profile} 'ops(insert=1)' n=20000 no-warmup -rate threads=50", 1),
            ("user profile, inserts and two queries", clean,
             f"user profile={profile} 'ops(insert=1,one=2,newest=1)' n=20000 no-warmup "
             "-rate threads=50", 1)):
        checks.check(prefix, name, function, command, *arguments)
    checks.check(prefix, "automatic thread counts and the graph", ladder, command, prefix)
    checks.check(prefix, f"{ROWS} rows after kill -9 under load", killed, command, server)


def run(checks):
    real = os.environ.get("CASSANDRA_STRESS")
    if not real:
        checks.note("left out: cassandra-stress itself: CASSANDRA_STRESS does not name one; "
                    "the same commands run with helenus-stress", "stress")
    programs = [("cassandra-stress", shlex.split(real))] if real else []
    programs.append(("helenus-stress", [os.path.join(BUILD, "helenus-stress")]))
    for name, command in programs:
        server = Server(name).start()
        try:
            commands(checks, name, command, server)
        finally:
            server.stop()
