// SPDX-License-Identifier: Apache-2.0
// The Node.js driver. A program of tests/interop/run: prints PASS and FAIL, asks with "ask: ".
"use strict";
const assert = require("assert");
const cassandra = require("cassandra-driver");
const { ask, check, say, until } = require("./common");
const { types } = cassandra;

async function connect(version, keyspace) {
	const client = new cassandra.Client({
		contactPoints: [process.env.HOST],
		localDataCenter: "datacenter1",
		keyspace,
		protocolOptions: { port: Number(process.env.PORT), maxVersion: version },
		pooling: { maxRequestsPerConnection: 2048 },
		socketOptions: { connectTimeout: 20000, readTimeout: 30000 },
		policies: { reconnection: new cassandra.policies.reconnection.ConstantReconnectionPolicy(200) },
		encoding: { map: Map, set: Set },
	});
	// This driver falls over itself (a host that is null) when its control connection ends while it is being made anew.
	client.controls = 0;
	client.on("log", (_level, _name, text) => {
		client.controls += /^ControlConnection connected to .* and up to date/.test(text);
	});
	await client.connect();
	return client;
}

async function schema(client) {
	for (const text of [
		"CREATE KEYSPACE IF NOT EXISTS interop WITH replication = " +
			"{'class': 'SimpleStrategy', 'replication_factor': 1}",
		"USE interop",
		"CREATE TYPE IF NOT EXISTS address (street text, zip int)",
		"CREATE TABLE IF NOT EXISTS kv (k text PRIMARY KEY, v int)",
		"CREATE TABLE IF NOT EXISTS wide (p int, c int, v text, PRIMARY KEY (p, c))",
		"CREATE TABLE IF NOT EXISTS counts (k text PRIMARY KEY, n counter)",
		"CREATE TABLE IF NOT EXISTS types (k int PRIMARY KEY, " +
			kinds.map(([kind], at) => `c${at} ${kind}`).join(", ") + ")",
	])
		await client.execute(text);
}

const kinds = [
	["ascii", "plain"], ["bigint", types.Long.MIN_VALUE], ["blob", Buffer.alloc(100000, 7)],
	["boolean", true], ["date", types.LocalDate.fromString("1969-07-20")],
	["decimal", types.BigDecimal.fromString("-12345.000000000000000001")], ["double", -1.5e300],
	["duration", new types.Duration(1, 2, 3)], ["float", 0.5],
	["inet", types.InetAddress.fromString("2001:db8::1")], ["int", -(2 ** 31)], ["smallint", -32768],
	["text", "schöner Text 漢字 😀"], ["time", types.LocalTime.fromString("23:59:59.999999999")],
	["timestamp", new Date(-1)], ["timeuuid", types.TimeUuid.now()], ["tinyint", -128],
	["uuid", types.Uuid.random()], ["varint", types.Integer.fromString("-" + "9".repeat(60))],
	["list<int>", [3, 1, 2]], ["set<text>", new Set(["a", "b"])], ["map<text, int>", new Map([["one", 1]])],
	["tuple<int, text>", new types.Tuple(1, "one")], ["frozen<address>", { street: "Road", zip: 7 }],
];

async function allTypes(client, version) {
	for (const [at, [kind, value]] of kinds.entries()) {
		// To protocol v3 these are custom types, for which the driver has no codec.
		if (version < 4 && ["date", "time", "smallint", "tinyint"].includes(kind))
			continue;
		const write = `INSERT INTO types (k, c${at}) VALUES (1, ?)`;
		await client.execute(write, [value], { prepare: true });
		const read = `SELECT c${at} FROM types WHERE k = 1`;
		const got = (await client.execute(read)).first().get(0);
		if (value && value.equals && !(value instanceof Buffer))
			assert(value.equals(got), `${kind}: ${got}`);
		else if (kind === "frozen<address>")
			assert.deepStrictEqual({ ...got }, value);
		else if (kind.startsWith("tuple"))
			assert.deepStrictEqual(got.values(), value.values());
		else
			assert.deepStrictEqual(got, value);
		await client.execute(write, [null], { prepare: true });
		await client.execute("INSERT INTO types (k) VALUES (1)");
		assert.strictEqual((await client.execute(read)).first().get(0), null);
	}
}

async function prepared(client, version) {
	const write = "INSERT INTO kv (k, v) VALUES (:key, :value)";
	await client.execute(write, { key: "p", value: 1 }, { prepare: true });
	if (version > 3)
		await client.execute(write, { key: "p", value: types.unset }, { prepare: true });
	const read = "SELECT v FROM kv WHERE k = ?";
	assert.strictEqual((await client.execute(read, ["p"], { prepare: true })).first().v, 1);
	await client.execute("INSERT INTO kv (k, v) VALUES (?, ?)", ["hint", 5], { hints: ["text", "int"] });
	assert.strictEqual((await client.execute(read, ["absent"], { prepare: true })).rowLength, 0);
	await client.execute("DROP TABLE IF EXISTS altered");
	await client.execute("CREATE TABLE altered (k int PRIMARY KEY, a int)");
	await client.execute("INSERT INTO altered (k, a) VALUES (?, ?)", [1, 2], { prepare: true });
	await client.execute("SELECT k, a FROM altered WHERE k = ?", [1], { prepare: true });
	await client.execute("ALTER TABLE altered ADD b text");
	await client.execute("INSERT INTO altered (k, a) VALUES (?, ?)", [1, 3], { prepare: true });
	const row = (await client.execute("SELECT k, a FROM altered WHERE k = ?", [1], { prepare: true })).first();
	assert.strictEqual(row.a, 3);
}

async function paging(client) {
	await client.execute("TRUNCATE wide");
	const all = Array.from({ length: 500 }, (_, c) => c);
	await client.batch(all.map((c) => ({ query: "INSERT INTO wide (p, c, v) VALUES (1, ?, 'v')", params: [c] })),
		{ prepare: true, logged: false });
	const query = "SELECT c FROM wide WHERE p = 1";
	let got = [];
	for await (const row of client.stream(query, [], { prepare: true, fetchSize: 37, autoPage: true }))
		got.push(row.c);
	assert.deepStrictEqual(got, all);
	got = [];
	let state;
	let pages = 0;
	do {
		const result = await client.execute(query, [], { prepare: true, fetchSize: 100, pageState: state });
		got.push(...result.rows.map((row) => row.c));
		state = result.pageState;
		pages++;
	} while (state);
	assert.deepStrictEqual(got, all);
	assert(pages === 5 || pages === 6, pages);
}

async function batches(client) {
	await client.batch(["INSERT INTO wide (p, c, v) VALUES (5, 1, 'a')",
		{ query: "INSERT INTO wide (p, c, v) VALUES (5, ?, ?)", params: [2, "b"] }], { prepare: true });
	assert.strictEqual((await client.execute("SELECT * FROM wide WHERE p = 5")).rowLength, 2);
	await client.execute("TRUNCATE counts");
	const add = { query: "UPDATE counts SET n = n + ? WHERE k = 'x'", params: [2] };
	await client.batch(Array(10).fill(add), { prepare: true, counter: true });
	await client.execute("UPDATE counts SET n = n - ? WHERE k = 'x'", [5], { prepare: true });
	assert.strictEqual((await client.execute("SELECT n FROM counts")).first().n.toString(), "15");
}

async function conditional(client) {
	await client.execute("DELETE FROM kv WHERE k = 'lwt'");
	const insert = "INSERT INTO kv (k, v) VALUES ('lwt', 1) IF NOT EXISTS";
	assert((await client.execute(insert)).wasApplied());
	const second = await client.execute(insert);
	assert(!second.wasApplied());
	assert.strictEqual(second.first().v, 1);
	const update = "UPDATE kv SET v = ? WHERE k = 'lwt' IF v = ?";
	assert(!(await client.execute(update, [2, 7], { prepare: true })).wasApplied());
	assert((await client.execute(update, [2, 1], { prepare: true,
		serialConsistency: types.consistencies.localSerial })).wasApplied());
}

async function concurrent(client) {
	for (let round = 0; round < 5; round++) {
		await Promise.all(Array.from({ length: 1000 }, (_, at) =>
			client.execute("INSERT INTO kv (k, v) VALUES (?, ?)", ["c" + at, at + round], { prepare: true })));
		const results = await Promise.all(Array.from({ length: 1000 }, (_, at) =>
			client.execute("SELECT v FROM kv WHERE k = ?", ["c" + at], { prepare: true })));
		results.forEach((result, at) => assert.strictEqual(result.first().v, at + round));
	}
	const result = await cassandra.concurrent.executeConcurrent(client,
		"INSERT INTO kv (k, v) VALUES (?, ?)", Array.from({ length: 1000 }, (_, at) => ["d" + at, at]));
	assert.strictEqual(result.errors.length, 0);
}

async function fails(task, code) {
	try {
		await task;
	} catch (error) {
		const inner = error.innerErrors ? Object.values(error.innerErrors)[0] : error;
		assert.strictEqual(inner.code, code, String(error));
		return inner;
	}
	throw new Error("no error");
}

async function errors(client) {
	const { responseErrorCodes: codes } = types;
	await fails(client.execute("SELEC"), codes.syntaxError);
	await fails(client.execute("SELECT * FROM nothing"), codes.invalid);
	const exists = await fails(client.execute("CREATE TABLE kv (k int PRIMARY KEY)"), codes.alreadyExists);
	assert.strictEqual(exists.table, "kv");
	await fails(client.execute("DROP KEYSPACE system"), codes.unauthorized);
	await client.execute("CREATE KEYSPACE IF NOT EXISTS three WITH replication = " +
		"{'class': 'SimpleStrategy', 'replication_factor': 3}");
	await client.execute("CREATE TABLE IF NOT EXISTS three.t (k int PRIMARY KEY)");
	const unavailable = await fails(client.execute("INSERT INTO three.t (k) VALUES (1)", [],
		{ consistency: types.consistencies.quorum }), codes.unavailableException);
	assert.strictEqual(`${unavailable.required} ${unavailable.alive}`, "2 1");
	await client.execute("DROP KEYSPACE three");
}

async function tracing(client) {
	const result = await client.execute("SELECT * FROM kv WHERE k = 'p'", [], { traceQuery: true });
	let trace;
	await until(async () => {
		try {
			trace = await client.metadata.getTrace(result.info.traceId, types.consistencies.one);
			return trace.duration > 0;
		} catch (error) {
			return false;
		}
	}, "the session");
	assert.strictEqual(trace.requestType, "Execute CQL3 query");
	assert(trace.events.length > 1);
}

async function extras(client, version) {
	await client.execute("INSERT INTO kv (k, v) VALUES ('time', 1)", [], { timestamp: Date.now() * 1000 });
	if (version > 3) {
		await client.execute("SELECT * FROM kv WHERE k = 'time'", [],
			{ customPayload: { key: Buffer.from("value") } });
		const result = await client.batch(Array.from({ length: 20 }, (_, at) => ({
			query: "INSERT INTO wide (p, c, v) VALUES (?, 1, ?)", params: [1000 + at, "w".repeat(400)] })),
			{ prepare: true, logged: false });
		assert(result.info.warnings && result.info.warnings.length > 0, "warnings");
	}
	if (version > 4)
		assert.strictEqual((await client.execute("SELECT key FROM local", [], { keyspace: "system" }))
			.first().key, "local");
	const table = await client.metadata.getTable("interop", "wide");
	assert.strictEqual(table.partitionKeys.length + table.clusteringKeys.length, 2);
	const type = await client.metadata.getUdt("interop", "address");
	assert.strictEqual(type.fields.length, 2);
	assert.strictEqual(client.metadata.getReplicas("interop", Buffer.from("x")).length, 1);
	assert(await client.metadata.checkSchemaAgreement());
}

async function events(client, other) {
	const columns = async () => {
		const table = await other.metadata.getTable("interop", "seen");
		return table ? table.columns.length : 0;
	};
	await client.execute("DROP TABLE IF EXISTS seen");
	await until(async () => (await columns()) === 0, "DROP TABLE");
	await client.execute("CREATE TABLE seen (k int PRIMARY KEY)");
	await until(async () => (await columns()) === 1, "CREATE TABLE");
	await client.execute("ALTER TABLE seen ADD v int");
	await until(async () => (await columns()) === 2, "ALTER TABLE");
	await client.execute("CREATE KEYSPACE IF NOT EXISTS seen WITH replication = " +
		"{'class': 'SimpleStrategy', 'replication_factor': 1}");
	await until(() => other.metadata.keyspaces.seen !== undefined, "CREATE KEYSPACE");
	await client.execute("DROP KEYSPACE seen");
	await until(() => other.metadata.keyspaces.seen === undefined, "DROP KEYSPACE");
}

async function restarts(client, other, how) {
	const write = "INSERT INTO interop.kv (k, v) VALUES (?, ?)";
	const read = "SELECT v FROM interop.kv WHERE k = ?";
	for (let at = 0; at < 300; at++)
		await client.execute(write, [how + at, at], { prepare: true });
	await client.execute(read, ["x"], { prepare: true });
	const before = [client.controls, other.controls];
	await ask(how);
	await until(() => client.controls > before[0] && other.controls > before[1], "a new control connection");
	await until(async () => {
		try {
			await client.execute("SELECT key FROM system.local");
			return true;
		} catch (error) {
			return false;
		}
	}, "reconnection");
	for (let at = 0; at < 300; at++)
		assert.strictEqual((await client.execute(read, [how + at], { prepare: true })).first().v, at);
	await client.execute(write, [how, 1], { prepare: true });
}

async function main() {
	if (process.env.NODES) {
		await require("./ring").run();
		process.exit(0);
	}
	let session;
	// This driver ends at v4.
	for (const version of [3, 4]) {
		const prefix = `v${version} `;
		try {
			session = await connect(version);
		} catch (error) {
			say(`FAIL ${prefix}connect: ${error}`);
			continue;
		}
		const client = session;
		await check(prefix + "connect and make the schema", () => schema(client));
		await check(prefix + "types", () => allTypes(client, version));
		await check(prefix + "prepared, named, unset, ALTER TABLE", () => prepared(client, version));
		await check(prefix + "paging", () => paging(client));
		await check(prefix + "batches and counters", () => batches(client));
		await check(prefix + "conditional statements", () => conditional(client));
		await check(prefix + "1000 requests in flight", () => concurrent(client));
		await check(prefix + "errors", () => errors(client));
		await check(prefix + "tracing", () => tracing(client));
		await check(prefix + "timestamps, payload, warnings, metadata", () => extras(client, version));
		await client.shutdown();
	}
	const client = await connect(undefined, "interop");
	const other = await connect(4, "interop");
	await check("schema events reach another session", () => events(client, other));
	await check("data and prepared after a restart", () => restarts(client, other, "restart"));
	await check("data and prepared after kill -9", () => restarts(client, other, "kill"));
	await client.shutdown();
	await other.shutdown();
	process.exit(0);
}

main().catch((error) => {
	process.stderr.write(String(error.stack) + "\n");
	process.exit(1);
});
