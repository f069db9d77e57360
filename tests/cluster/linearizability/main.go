// SPDX-License-Identifier: Apache-2.0

// Is a history of conditional statements and serial reads linearizable? Porcupine says.
//
//	linearizability HISTORY.json [VISUALIZATION.html]
//
// The history is a list of operations on registers, as test_lwt.py writes it. Status 0: it is; 1: it is not (and what
// was found is drawn into the second file); 2: it cannot be read, or there was no time to find out.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Client   int    `json:"client"`
	Key      int    `json:"key"`
	Kind     string `json:"kind"` // "read", "cas"
	Expected int64  `json:"expected"`
	Written  int64  `json:"written"`
	Began    int64  `json:"began"`   // ns
	Ended    int64  `json:"ended"`   // ns
	Outcome  string `json:"outcome"` // "read", "applied", "refused" (the condition did not hold), "unknown"
	Seen     int64  `json:"seen"`    // of "read" and "refused"
}

// A register holds 0 at first.
var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := map[int][]porcupine.Operation{}
		for _, each := range history {
			key := each.Input.(operation).Key
			keys[key] = append(keys[key], each)
		}
		var parts [][]porcupine.Operation
		for _, part := range keys {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() interface{} { return int64(0) },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		value, op := state.(int64), input.(operation)
		switch op.Outcome {
		case "read":
			return value == op.Seen, value
		case "refused":
			return value == op.Seen && value != op.Expected, value
		case "applied":
			return value == op.Expected, op.Written
		default: // Whether and when nobody knows: it may also take effect after all others, where it changes nothing.
			if value == op.Expected {
				return true, op.Written
			}
			return true, value
		}
	},
	DescribeOperation: func(input, _ interface{}) string {
		op := input.(operation)
		if op.Kind == "read" {
			return fmt.Sprintf("read: %d", op.Seen)
		}
		return fmt.Sprintf("%d -> %d: %s (%d)", op.Expected, op.Written, op.Outcome, op.Seen)
	},
}

func fail(status int, err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(status)
}

func main() {
	var operations []operation
	var history []porcupine.Operation

	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail(2, err)
	}
	if err = json.Unmarshal(text, &operations); err != nil {
		fail(2, err)
	}
	for _, op := range operations {
		ended := op.Ended
		if op.Outcome == "unknown" {
			ended = math.MaxInt64
		}
		history = append(history, porcupine.Operation{
			ClientId: op.Client, Input: op, Call: op.Began, Output: op.Seen, Return: ended})
	}
	result, info := porcupine.CheckOperationsVerbose(registers, history, 5*time.Minute)
	if result != porcupine.Ok && len(os.Args) > 2 {
		if err = porcupine.VisualizePath(registers, info, os.Args[2]); err != nil {
			fail(2, err)
		}
	}
	fmt.Printf("%d operations: %s\n", len(history), result)
	if result == porcupine.Illegal {
		os.Exit(1)
	}
	if result != porcupine.Ok {
		os.Exit(2)
	}
}
