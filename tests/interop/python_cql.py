# SPDX-License-Identifier: Apache-2.0
"""Statements for the parts that are no driver's.

    python_cql.py HOST PORT run FILE          each statement of the file; they end at a line's end
    python_cql.py HOST PORT json TABLE...     SELECT JSON * of each table, a table's name before
"""
import logging
import sys

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

logging.disable(logging.CRITICAL)


def main():
    host, port, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([host]),
                               request_timeout=120)
    cluster = Cluster([host], port=port, protocol_version=4, connect_timeout=60,
                      control_connection_timeout=60, schema_metadata_enabled=False,
                      execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    session = cluster.connect()
    if what == "run":
        with open(sys.argv[4], encoding="utf-8") as file:
            for text in file.read().split(";\n"):
                if text.strip():
                    session.execute(text)
    else:
        for table in sys.argv[4:]:
            print(f"-- {table}")
            for row in session.execute(SimpleStatement(f"SELECT JSON * FROM {table}",
                                                       fetch_size=1000)):
                print(row[0].replace("\n", "\\n"))
    cluster.shutdown()


main()
