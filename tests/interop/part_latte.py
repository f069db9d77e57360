# SPDX-License-Identifier: Apache-2.0
"""latte, a benchmark program from crates.io, with workloads of our own."""
import json
import os
import re
import shutil
import subprocess

from harness import ADDRESS, HERE, PORT, ROOT, TOOLS, WORK, Server, install, need

SECONDS = os.environ.get("LATTE_SECONDS", "5")


def program():
    for path in (os.environ.get("LATTE"), shutil.which("latte"), f"{TOOLS}/latte/bin/latte"):
        if path and os.path.exists(path):
            return path
    need("cargo")
    install("latte", ["cargo", "install", "--quiet", "--root", f"{TOOLS}/latte", "latte-cli"],
            environment={"CARGO_TARGET_DIR": f"{TOOLS}/latte/target"}, timeout=3600)
    return f"{TOOLS}/latte/bin/latte"


def latte(*words):
    done = subprocess.run([program(), *words], capture_output=True, text=True, cwd=WORK, check=False,
                          timeout=600)
    output = done.stdout + done.stderr
    assert done.returncode == 0, f"status {done.returncode}: {output[-1500:]}"
    assert "error" not in output.lower().replace("errors", ""), output[-2500:]
    return output


def errors_of(output):
    """The column `Errors`/`Error count` of the report is 0."""
    for line in output.split("\n"):
        found = re.match(r"\s*(?:Error\w*|Errors)\s*(?:\[[^]]*\])?\s+([0-9.]+)", line)
        if found:
            assert float(found.group(1)) == 0, line


def workload(name):
    address = f"{ADDRESS}:{PORT}"
    # Reading and writing are those of the benchmark.
    script = os.path.join(HERE, "latte", f"{name}.rn")
    if not os.path.exists(script):
        script = os.path.join(ROOT, "tests", "bench", f"{name}.rn")
    latte("schema", script, address)
    latte("load", script, address)
    output = latte("run", script, address, "-q", "-d", f"{SECONDS}s", "-p", "64",
                   "-o", os.path.join(WORK, f"{name}.json"))
    errors_of(output)
    with open(os.path.join(WORK, f"{name}.json"), encoding="utf-8") as file:
        result = json.load(file)["result"]
    assert result["error_count"] == 0, result["errors"]
    assert result["cycle_count"] > 100, result["cycle_count"]


def run(checks):
    program()
    server = Server("latte").start()
    try:
        for name in ("write", "read", "mixed"):
            checks.check("latte", f"schema, load and run of {name}", workload, name)
        checks.check("latte", "the server goes on", server.nodetool, "status")
    finally:
        server.stop()
