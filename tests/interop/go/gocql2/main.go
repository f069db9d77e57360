// SPDX-License-Identifier: Apache-2.0

// gocql 2.x, of the Apache project.
package main

import (
	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/apache/cassandra-gocql-driver/v2/lz4"
	"github.com/apache/cassandra-gocql-driver/v2/snappy"
)

func main() {
	runAll([]int{3, 4, 5}, map[string]gocql.Compressor{"plain": nil, "lz4": lz4.LZ4Compressor{},
		"snappy": snappy.SnappyCompressor{}})
}
