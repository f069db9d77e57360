// SPDX-License-Identifier: Apache-2.0

// The checks of both Go drivers; tests/interop/run lays this file beside each main.go, with the import
// of that driver.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	gocql "DRIVER"
	"gopkg.in/inf.v0"
)

var stdin = bufio.NewReader(os.Stdin)
var prefix string

func say(line string) {
	fmt.Println(strings.ReplaceAll(line, "\n", " "))
}

func ask(what string) {
	say("ask: " + what)
	answer, err := stdin.ReadString('\n')
	if err != nil || answer != "done\n" {
		panic(fmt.Sprint(answer, err))
	}
}

func check(name string, body func()) {
	defer func() {
		if failure := recover(); failure != nil {
			where := ""
			for _, line := range strings.Split(string(debug.Stack()), "\n") {
				if at := strings.Index(line, "interop.go:"); at >= 0 {
					where += " " + strings.Fields(line[at+len("interop.go:"):])[0]
				}
			}
			say(fmt.Sprintf("FAIL %s%s: %v (lines%s)", prefix, name, failure, where))
			return
		}
		say("PASS " + prefix + name)
	}()
	body()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(left, right interface{}) {
	if !reflect.DeepEqual(left, right) {
		panic(fmt.Sprintf("%v is not %v", left, right))
	}
}

func until(condition func() bool, what string) {
	end := time.Now().Add(20 * time.Second)
	for !condition() {
		if time.Now().After(end) {
			panic(what + " did not happen")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func connect(version int, compressor gocql.Compressor, keyspace string) (*gocql.Session, error) {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	must(err)
	config := gocql.NewCluster(os.Getenv("HOST"))
	config.Port = port
	config.ProtoVersion = version
	config.Compressor = compressor
	config.Keyspace = keyspace
	config.Timeout = 30 * time.Second
	config.ConnectTimeout = 20 * time.Second
	config.Consistency = gocql.LocalQuorum
	config.ReconnectInterval = 500 * time.Millisecond
	config.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 50, Interval: 200 * time.Millisecond}
	return config.CreateSession()
}

type address struct {
	Street string   `cql:"street"`
	Zip    int      `cql:"zip"`
	Tags   []string `cql:"tags"`
}

func schema(session *gocql.Session) {
	for _, text := range []string{
		"CREATE TYPE IF NOT EXISTS address (street text, zip int, tags list<text>)",
		"CREATE TABLE IF NOT EXISTS kv (k text PRIMARY KEY, v int)",
		"CREATE TABLE IF NOT EXISTS wide (p int, c int, v text, PRIMARY KEY (p, c))",
		"CREATE TABLE IF NOT EXISTS counts (k text PRIMARY KEY, n counter)",
		`CREATE TABLE IF NOT EXISTS types (k int PRIMARY KEY, c0 ascii, c1 bigint, c2 blob, c3 boolean,
		 c4 decimal, c5 double, c6 float, c7 inet, c8 int, c9 smallint, c10 text, c11 time,
		 c12 timestamp, c13 timeuuid, c14 tinyint, c15 uuid, c16 varint, c17 list<int>, c18 set<text>,
		 c19 map<text, bigint>, c20 frozen<address>, c21 date, c22 duration, c23 tuple<int, text>)`,
	} {
		must(session.Query(text).Exec())
	}
}

func types(session *gocql.Session, version int) {
	id, err := gocql.ParseUUID("550e8400-e29b-11d4-a716-446655440000")
	must(err)
	big200 := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 200))
	decimal, _ := new(inf.Dec).SetString("-12345.000000000000000001")
	values := []interface{}{"ascii", int64(-1 << 63), bytes.Repeat([]byte{0, 255}, 50000), true, decimal,
		-1.5e300, float32(0.5), net.ParseIP("2001:db8::1"), -1 << 31, int16(-32768),
		"schöner Text 漢字 😀", 23*time.Hour + time.Nanosecond, time.UnixMilli(-1).UTC(), id, int8(-128), id,
		big200, []int{3, 1, 2}, []string{"a", "b"}, map[string]int64{"one": 1},
		address{"Road", 7, []string{"x", "y"}}, time.Date(1969, 7, 20, 0, 0, 0, 0, time.UTC),
		gocql.Duration{Months: 1, Days: 2, Nanoseconds: 3}}
	old := map[int]bool{9: true, 11: true, 14: true, 21: true, 22: true}
	for at, value := range values {
		// To old protocols these are custom types, for which the driver has no codec.
		if old[at] && (version < 4 || at == 22 && version < 5) {
			continue
		}
		write := fmt.Sprintf("INSERT INTO types (k, c%d) VALUES (?, ?)", at)
		must(session.Query(write, 1, value).Exec())
		got := reflect.New(reflect.TypeOf(value))
		read := fmt.Sprintf("SELECT c%d FROM types WHERE k = ?", at)
		must(session.Query(read, 1).Scan(got.Interface()))
		switch value := value.(type) {
		case *inf.Dec:
			equal(got.Elem().Interface().(*inf.Dec).String(), value.String())
		case *big.Int:
			equal(got.Elem().Interface().(*big.Int).String(), value.String())
		case net.IP:
			equal(got.Elem().Interface().(net.IP).String(), value.String())
		case time.Time:
			equal(got.Elem().Interface().(time.Time).UnixMilli(), value.UnixMilli())
		default:
			equal(got.Elem().Interface(), value)
		}
		if at != 20 { // the driver refuses a null there
			must(session.Query(write, 1, nil).Exec())
		}
	}
	must(session.Query("INSERT INTO types (k, c23) VALUES (1, (?, ?))", 5, "five").Exec())
	var number int
	var text string
	must(session.Query("SELECT c23 FROM types WHERE k = 1").Scan(&number, &text))
	equal(fmt.Sprintf("%d %s", number, text), "5 five")
}

func prepared(session *gocql.Session, version int) {
	must(session.Query("INSERT INTO kv (k, v) VALUES (?, ?)", "p", 1).Exec())
	if version > 3 {
		must(session.Query("INSERT INTO kv (k, v) VALUES (?, ?)", "p", gocql.UnsetValue).Exec())
	}
	var v int
	must(session.Query("SELECT v FROM kv WHERE k = :name", "p").Scan(&v))
	equal(v, 1)
	err := session.Query("SELECT v FROM kv WHERE k = ?", "absent").Scan(&v)
	equal(err, gocql.ErrNotFound)
	must(session.Query("DROP TABLE IF EXISTS altered").Exec())
	must(session.Query("CREATE TABLE altered (k int PRIMARY KEY, a int)").Exec())
	must(session.Query("INSERT INTO altered (k, a) VALUES (?, ?)", 1, 2).Exec())
	read := "SELECT k, a FROM altered WHERE k = ?"
	var k, a int
	must(session.Query(read, 1).Scan(&k, &a))
	must(session.Query("ALTER TABLE altered ADD b text").Exec())
	must(session.Query("INSERT INTO altered (k, a) VALUES (?, ?)", 1, 3).Exec())
	must(session.Query(read, 1).Scan(&k, &a))
	equal(a, 3)
	row := map[string]interface{}{}
	must(session.Query("SELECT * FROM altered WHERE k = ?", 1).MapScan(row))
	equal(len(row), 3)
}

func paging(session *gocql.Session) {
	must(session.Query("TRUNCATE wide").Exec())
	batch := session.NewBatch(gocql.UnloggedBatch)
	for c := 0; c < 500; c++ {
		batch.Query("INSERT INTO wide (p, c, v) VALUES (?, ?, ?)", 1, c, "v")
	}
	must(session.ExecuteBatch(batch))
	iter := session.Query("SELECT c FROM wide WHERE p = ?", 1).PageSize(37).Iter()
	expected, c := 0, 0
	for iter.Scan(&c) {
		equal(c, expected)
		expected++
	}
	must(iter.Close())
	equal(expected, 500)
	var state []byte
	total, pages := 0, 0
	for {
		iter := session.Query("SELECT c FROM wide WHERE p = ? ORDER BY c DESC", 1).PageSize(100).
			PageState(state).Iter()
		state = append([]byte(nil), iter.PageState()...)
		for iter.Scan(&c) {
			total++
		}
		must(iter.Close())
		pages++
		if len(state) == 0 {
			break
		}
	}
	equal(total, 500)
	if pages < 5 || pages > 6 {
		panic(fmt.Sprint(pages, " pages"))
	}
}

func batches(session *gocql.Session) {
	batch := session.NewBatch(gocql.LoggedBatch)
	batch.Query("INSERT INTO wide (p, c, v) VALUES (?, ?, ?)", 5, 1, "a")
	batch.Query("INSERT INTO wide (p, c, v) VALUES (5, 2, 'b')")
	batch.Query("INSERT INTO kv (k, v) VALUES (?, 9)", "batch")
	must(session.ExecuteBatch(batch))
	var n int
	must(session.Query("SELECT count(*) FROM wide WHERE p = 5").Scan(&n))
	equal(n, 2)
	must(session.Query("TRUNCATE counts").Exec())
	batch = session.NewBatch(gocql.CounterBatch)
	for i := 0; i < 10; i++ {
		batch.Query("UPDATE counts SET n = n + ? WHERE k = 'x'", int64(2))
	}
	must(session.ExecuteBatch(batch))
	must(session.Query("UPDATE counts SET n = n - ? WHERE k = 'x'", int64(5)).Exec())
	must(session.Query("SELECT n FROM counts").Scan(&n))
	equal(n, 15)
}

func conditional(session *gocql.Session) {
	must(session.Query("DELETE FROM kv WHERE k = 'lwt'").Exec())
	row := map[string]interface{}{}
	applied, err := session.Query("INSERT INTO kv (k, v) VALUES ('lwt', 1) IF NOT EXISTS").MapScanCAS(row)
	must(err)
	equal(applied, true)
	row = map[string]interface{}{}
	applied, err = session.Query("INSERT INTO kv (k, v) VALUES ('lwt', 1) IF NOT EXISTS").MapScanCAS(row)
	must(err)
	equal(applied, false)
	equal(row["v"], 1)
	var v int
	applied, err = session.Query("UPDATE kv SET v = ? WHERE k = 'lwt' IF v = ?", 2, 7).ScanCAS(&v)
	must(err)
	equal(fmt.Sprint(applied, v), "false 1")
	batch := session.NewBatch(gocql.LoggedBatch)
	batch.Query("UPDATE kv SET v = ? WHERE k = 'lwt' IF v = ?", 3, 1)
	row = map[string]interface{}{}
	applied, _, err = session.MapExecuteBatchCAS(batch, row)
	must(err)
	equal(applied, true)
}

func concurrent(session *gocql.Session) {
	var group sync.WaitGroup
	failures := make(chan error, 1000)
	for worker := 0; worker < 1000; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			key := fmt.Sprint("c", worker)
			for round := 0; round < 5; round++ {
				if err := session.Query("INSERT INTO kv (k, v) VALUES (?, ?)", key, round).Exec(); err != nil {
					failures <- err
					return
				}
				v := -1
				if err := session.Query("SELECT v FROM kv WHERE k = ?", key).Scan(&v); err != nil || v != round {
					failures <- fmt.Errorf("%d is not %d: %v", v, round, err)
					return
				}
			}
		}(worker)
	}
	group.Wait()
	select {
	case err := <-failures:
		panic(err)
	default:
	}
}

func mapped(session *gocql.Session) {
	codes := map[string]int{
		"SELEC":                               0x2000,
		"SELECT * FROM nothing":               0x2200,
		"CREATE TABLE kv (k int PRIMARY KEY)": 0x2400,
		"DROP KEYSPACE system":                0x2100,
		"CREATE KEYSPACE x WITH replication = {'class': 'NoSuchStrategy'}": 0x2300,
	}
	for text, code := range codes {
		err := session.Query(text).Exec()
		var request gocql.RequestError
		if !errors.As(err, &request) {
			panic(fmt.Sprint(text, ": ", err))
		}
		equal(request.Code(), code)
	}
	must(session.Query("CREATE KEYSPACE IF NOT EXISTS three WITH replication = " +
		"{'class': 'SimpleStrategy', 'replication_factor': 3}").Exec())
	must(session.Query("CREATE TABLE IF NOT EXISTS three.t (k int PRIMARY KEY)").Exec())
	err := session.Query("INSERT INTO three.t (k) VALUES (1)").Consistency(gocql.Quorum).Exec()
	var unavailable *gocql.RequestErrUnavailable
	if !errors.As(err, &unavailable) {
		panic(err)
	}
	equal(fmt.Sprint(unavailable.Required, unavailable.Alive), "2 1")
	must(session.Query("DROP KEYSPACE three").Exec())
}

type tracer struct{ ids [][]byte }

func (tracer *tracer) Trace(id []byte) { tracer.ids = append(tracer.ids, append([]byte(nil), id...)) }

func tracing(session *gocql.Session) {
	tracer := &tracer{}
	must(session.Query("SELECT * FROM kv WHERE k = ?", "p").Trace(tracer).Exec())
	if len(tracer.ids) == 0 {
		panic("no trace")
	}
	id, err := gocql.UUIDFromBytes(tracer.ids[0])
	must(err)
	until(func() bool {
		var duration int
		err := session.Query("SELECT duration FROM system_traces.sessions WHERE session_id = ?", id).
			Consistency(gocql.One).Scan(&duration)
		return err == nil && duration > 0
	}, "the session "+hex.EncodeToString(tracer.ids[0]))
	var n int
	must(session.Query("SELECT count(*) FROM system_traces.events WHERE session_id = ?", id).
		Consistency(gocql.One).Scan(&n))
	if n < 2 {
		panic(fmt.Sprint(n, " events"))
	}
}

func extras(session *gocql.Session, version int) {
	must(session.Query("INSERT INTO kv (k, v) VALUES ('time', 1) USING TIMESTAMP 1").Exec())
	must(session.Query("INSERT INTO kv (k, v) VALUES ('time', 2)").WithTimestamp(12345).Exec())
	var at int64
	must(session.Query("SELECT writetime(v) FROM kv WHERE k = 'time'").Scan(&at))
	if at < 12345 {
		panic(at)
	}
	context, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	query := session.Query("SELECT * FROM kv WHERE k = 'time'").WithContext(context)
	if version > 3 {
		query = query.CustomPayload(map[string][]byte{"key": []byte("value")})
	}
	must(query.Exec())
	if version > 3 {
		batch := session.NewBatch(gocql.UnloggedBatch)
		for i := 0; i < 20; i++ {
			batch.Query("INSERT INTO wide (p, c, v) VALUES (?, 1, ?)", 1000+i, strings.Repeat("w", 400))
		}
		must(session.ExecuteBatch(batch))
	}
	metadata, err := session.KeyspaceMetadata("interop")
	must(err)
	equal(len(metadata.Tables["wide"].PartitionKey)+len(metadata.Tables["wide"].ClusteringColumns), 2)
	until(func() bool { return session.AwaitSchemaAgreement(context) == nil }, "agreement")
}

func events(session, other *gocql.Session) {
	columns := func() int {
		metadata, err := other.KeyspaceMetadata("interop")
		must(err)
		if metadata.Tables["seen"] == nil {
			return 0
		}
		return len(metadata.Tables["seen"].Columns)
	}
	must(session.Query("DROP TABLE IF EXISTS seen").Exec())
	until(func() bool { return columns() == 0 }, "DROP TABLE")
	must(session.Query("CREATE TABLE seen (k int PRIMARY KEY)").Exec())
	until(func() bool { return columns() == 1 }, "CREATE TABLE")
	must(session.Query("ALTER TABLE seen ADD v int").Exec())
	until(func() bool { return columns() == 2 }, "ALTER TABLE")
}

func restarts(session *gocql.Session, how string) {
	write := "INSERT INTO interop.kv (k, v) VALUES (?, ?)"
	for i := 0; i < 300; i++ {
		must(session.Query(write, fmt.Sprint(how, i), i).Exec())
	}
	ask(how)
	until(func() bool { return session.Query("SELECT key FROM system.local").Exec() == nil }, "reconnection")
	for i := 0; i < 300; i++ {
		v := -1
		var err error
		// Connections of the pool that are not back yet may still fail.
		for try := 0; try < 20; try++ {
			if err = session.Query("SELECT v FROM interop.kv WHERE k = ?", fmt.Sprint(how, i)).Scan(&v); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		must(err)
		equal(v, i)
	}
	must(session.Query(write, how, 1).Exec())
}

func runAll(versions []int, compressors map[string]gocql.Compressor) {
	if nodes := os.Getenv("NODES"); nodes != "" {
		runRing(strings.Split(nodes, ","))
		return
	}
	first, err := connect(4, nil, "")
	if err != nil {
		say("FAIL connect: " + err.Error())
		return
	}
	must(first.Query("CREATE KEYSPACE IF NOT EXISTS interop WITH replication = " +
		"{'class': 'SimpleStrategy', 'replication_factor': 1}").Exec())
	first.Close()
	for _, version := range versions {
		for _, name := range []string{"plain", "lz4", "snappy"} {
			compressor, known := compressors[name]
			if !known || version == 5 && name == "snappy" {
				continue
			}
			prefix = fmt.Sprintf("v%d %s ", version, name)
			session, err := connect(version, compressor, "interop")
			if err != nil {
				say("FAIL " + prefix + "connect: " + err.Error())
				continue
			}
			check("connect and make the schema", func() { schema(session) })
			check("types", func() { types(session, version) })
			check("prepared, unset, ALTER TABLE", func() { prepared(session, version) })
			check("paging", func() { paging(session) })
			check("batches and counters", func() { batches(session) })
			check("conditional statements", func() { conditional(session) })
			check("1000 requests in flight", func() { concurrent(session) })
			check("errors", func() { mapped(session) })
			check("tracing", func() { tracing(session) })
			check("timestamps, payload, metadata", func() { extras(session, version) })
			session.Close()
		}
	}
	prefix = ""
	session, err := connect(versions[len(versions)-1], compressors["snappy"], "interop")
	if versions[len(versions)-1] == 5 {
		session, err = connect(5, nil, "interop")
	}
	must(err)
	other, err := connect(4, nil, "interop")
	must(err)
	check("schema events reach another session", func() { events(session, other) })
	check("data and prepared after a restart", func() { restarts(session, "restart") })
	check("data and prepared after kill -9", func() { restarts(session, "kill") })
	check("version negotiation", func() {
		session, err := connect(0, nil, "")
		must(err)
		session.Close()
	})
}
