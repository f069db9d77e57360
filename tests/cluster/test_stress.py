# SPDX-License-Identifier: Apache-2.0
"""helenus-stress against a ring: it finds all nodes, sends each operation to one that has the partition, and outlives a node."""
import os
import re
import subprocess
import threading
import time

from ring import BUILD, PATIENCE, wait_until

STRESS = os.path.join(BUILD, "helenus-stress")


def stress(node, *words, status=0):
    done = subprocess.run([STRESS, *words, "-node", node.address], capture_output=True, text=True,
                          timeout=PATIENCE * 3, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def errors(output):
    return int(re.search(r"^Total errors +: +(\d+)", output, re.M).group(1))


def sent(ring):
    """Messages that the nodes have sent each other."""
    total = 0
    for node in ring.nodes:
        session = ring.connect(node, only=[node])
        rows = session.execute("SELECT * FROM system_views.internode_outbound")
        total += sum(row.sent_count for row in rows)
        session.cluster.shutdown()
    return total


def test_operations_go_to_nodes_that_have_them(ring):
    stress(ring[0], "write", "n=1", "no-warmup", "-schema", "keyspace=one", "replication(factor=1)",
           "-rate", "threads=1")
    before = sent(ring)
    output = stress(ring[0], "write", "n=10000", "no-warmup", "-schema", "keyspace=one", "-rate", "threads=20")
    assert errors(output) == 0
    for node in ring.nodes:
        assert f"Host: /{node.address}:9042" in output
    output = stress(ring[1], "read", "n=10000", "no-warmup", "-schema", "keyspace=one", "-rate", "threads=20")
    assert errors(output) == 0
    # Sent to any node two thirds of 20000 would go on to another; gossip and the schema have some.
    assert sent(ring) - before < 3000
    counts = []
    for node in ring.nodes:
        node.nodetool("flush", "one")
        counts.append(int(re.search(r"Local write count: (\d+)", node.nodetool("tablestats", "one.standard1")).group(1)))
    assert sum(counts) == 10001 and min(counts) > 1000, counts


def test_a_profile_goes_to_nodes_that_have_its_partitions(ring, tmp_path):
    profile = tmp_path / "profile.yaml"
    profile.write_text("""
keyspace: two
keyspace_definition: "CREATE KEYSPACE two WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}"
table: t
table_definition: CREATE TABLE t (a int, b text, c int, v blob, PRIMARY KEY ((a, b), c))
columnspec:
  - name: c
    cluster: fixed(3)
insert:
  partitions: fixed(1)
queries:
  one:
    cql: SELECT * FROM t WHERE a = ? AND b = ?
    fields: samerow
""")
    stress(ring[0], "user", f"profile={profile}", "ops(insert=1)", "n=1", "no-warmup", "-rate", "threads=1")
    before = sent(ring)
    output = stress(ring[0], "user", f"profile={profile}", "ops(insert=1,one=1)", "n=6000", "no-warmup",
                    "-rate", "threads=10")
    assert errors(output) == 0
    assert sent(ring) - before < 1500


def test_a_node_dies_and_comes_back_during_a_run(new_ring):
    ring = new_ring(3).start().wait_up()
    stress(ring[0], "write", "n=1", "no-warmup", "-schema", "keyspace=three", "replication(factor=3)",
           "-rate", "threads=1")
    for level, options in (("quorum", []), ("all", ["-errors", "ignore", "retries=1"])):
        run = subprocess.Popen([STRESS, "write", "duration=15s", f"cl={level}", "no-warmup", "-schema", "keyspace=three",
                                "-rate", "threads=12", *options, "-log", "interval=1", "-node", ring[0].address],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in run.stdout:
            if line.startswith("total, "):
                break
        output = []
        reader = threading.Thread(target=lambda into=output, of=run.stdout: into.append(of.read()))
        reader.start()
        ring[2].kill()
        if level == "quorum":
            time.sleep(2)
        else:  # by then operations have failed; before, they may have waited until it was back
            ring[0].wait_sees(DN=ring[2:3], UN=ring[:2])
            time.sleep(1)
        ring[2].start()
        status = run.wait(PATIENCE)
        reader.join()
        rest = output[0]
        assert status == 0, rest
        assert rest.endswith("END\n"), rest
        assert (errors(rest) == 0) == (level == "quorum"), rest
        wait_until(lambda: all(node.sees(UN=ring.nodes) for node in ring.nodes), "coming back")
