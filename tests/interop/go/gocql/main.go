// SPDX-License-Identifier: Apache-2.0

// gocql 1.x.
package main

import "github.com/gocql/gocql"

func main() {
	runAll([]int{3, 4}, map[string]gocql.Compressor{"plain": nil, "snappy": gocql.SnappyCompressor{}})
}
