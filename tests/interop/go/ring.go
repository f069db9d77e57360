// SPDX-License-Identifier: Apache-2.0

// Both Go drivers on a ring of two data centers (part_ring.py): where requests go, and going on while nodes die.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	gocql "DRIVER"
)

// Who answered, and what went wrong.
type watcher struct {
	lock  sync.Mutex
	hosts map[string]int
}

func (w *watcher) ObserveQuery(_ context.Context, query gocql.ObservedQuery) {
	if query.Err != nil || query.Host == nil {
		return
	}
	w.lock.Lock()
	w.hosts[query.Host.ConnectAddress().String()]++
	w.lock.Unlock()
}

func (w *watcher) take() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	var found []string
	for host := range w.hosts {
		found = append(found, host)
	}
	w.hosts = map[string]int{}
	sort.Strings(found)
	return found
}

func connectRing(nodes []string, policy gocql.HostSelectionPolicy, w *watcher, keyspace string) *gocql.Session {
	config := gocql.NewCluster(nodes...)
	config.Port, _ = strconv.Atoi(os.Getenv("PORT"))
	config.ProtoVersion = 4
	config.Keyspace = keyspace
	config.Timeout = 60 * time.Second
	config.ConnectTimeout = 60 * time.Second
	config.Consistency = gocql.LocalQuorum
	config.ReconnectInterval = 500 * time.Millisecond
	config.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 50, Interval: 200 * time.Millisecond}
	config.PoolConfig.HostSelectionPolicy = policy
	config.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 3}
	config.QueryObserver = w
	session, err := config.CreateSession()
	must(err)
	return session
}

// Until requests went to these nodes and to no others.
func untilHosts(w *watcher, wanted []string, body func()) {
	sort.Strings(wanted)
	end := time.Now().Add(60 * time.Second)
	for {
		w.take()
		for i := 0; i < 60; i++ {
			body()
		}
		found := w.take()
		if strings.Join(found, ",") == strings.Join(wanted, ",") {
			return
		}
		if time.Now().After(end) {
			panic(fmt.Sprintf("%v answered, not %v", found, wanted))
		}
	}
}

func runRing(nodes []string) {
	dc1, dc2 := nodes[:3], nodes[3:5]
	w := &watcher{hosts: map[string]int{}}
	session := connectRing(dc1[:1], gocql.DCAwareRoundRobinPolicy("dc1"), w, "")
	read := func(session *gocql.Session) func() {
		return func() {
			var v string
			must(session.Query("SELECT v FROM ringgo.kv WHERE k = ?", 1).Scan(&v))
			equal(v, "one")
		}
	}
	check("schema by way of one node", func() {
		must(session.Query("CREATE KEYSPACE IF NOT EXISTS ringgo WITH replication = " +
			"{'class': 'NetworkTopologyStrategy', 'dc1': 3, 'dc2': 2}").Exec())
		must(session.Query("CREATE KEYSPACE IF NOT EXISTS fewgo WITH replication = " +
			"{'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1}").Exec())
		must(session.Query("CREATE TABLE IF NOT EXISTS ringgo.kv (k int PRIMARY KEY, v text)").Exec())
		must(session.Query("CREATE TABLE IF NOT EXISTS fewgo.kv (k int PRIMARY KEY, v text)").Exec())
		must(session.AwaitSchemaAgreement(context.Background()))
		must(session.Query("INSERT INTO ringgo.kv (k, v) VALUES (1, 'one')").Consistency(gocql.All).Exec())
	})
	check("DC-aware policy", func() {
		untilHosts(w, append([]string{}, dc1...), read(session))
		other := &watcher{hosts: map[string]int{}}
		far := connectRing(dc2[:1], gocql.DCAwareRoundRobinPolicy("dc2"), other, "")
		defer far.Close()
		untilHosts(other, append([]string{}, dc2...), read(far))
	})
	check("token-aware policy", func() {
		// One replica in the data center: a key's requests all go to the same node. The driver knows the
		// replicas of its session's keyspace alone.
		other := &watcher{hosts: map[string]int{}}
		aware := connectRing(dc1[:1], gocql.TokenAwareHostPolicy(gocql.DCAwareRoundRobinPolicy("dc1")), other,
			"fewgo")
		defer aware.Close()
		used := map[string]bool{}
		until(func() bool {
			used = map[string]bool{}
			for key := 0; key < 30; key++ {
				other.take()
				for i := 0; i < 4; i++ {
					must(aware.Query("INSERT INTO fewgo.kv (k, v) VALUES (?, ?)", key, "x").
						Consistency(gocql.LocalOne).Exec())
				}
				hosts := other.take()
				if len(hosts) != 1 {
					return false
				}
				used[hosts[0]] = true
			}
			return len(used) == 3
		}, "one node for each key")
	})
	check("a node is killed and comes back", func() {
		ask("kill 2")
		untilHosts(w, []string{dc1[0], dc1[2]}, read(session))
		must(session.Query("CREATE TABLE IF NOT EXISTS ringgo.while_down (k int PRIMARY KEY)").Exec())
		ask("start 2")
		untilHosts(w, append([]string{}, dc1...), read(session))
		must(session.AwaitSchemaAgreement(context.Background()))
		must(session.Query("DROP TABLE ringgo.while_down").Exec())
	})
	check("a node joins and leaves", func() {
		last := nodes[0][strings.LastIndex(nodes[0], ".")+1:]
		sixth := strings.TrimSuffix(nodes[0], last) + os.Getenv("NEXT")
		ask("add dc1")
		untilHosts(w, append([]string{sixth}, dc1...), read(session))
		ask("decommission " + os.Getenv("NEXT"))
		untilHosts(w, append([]string{}, dc1...), read(session))
	})
	session.Close()
}
