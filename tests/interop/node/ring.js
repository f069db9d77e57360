// SPDX-License-Identifier: Apache-2.0
// The Node.js driver on a ring of two data centers (part_ring.py): what it finds out about the nodes, where requests go,
// and going on while nodes die, hang, join and leave.
"use strict";
const assert = require("assert");
const { execFileSync } = require("child_process");
const cassandra = require("cassandra-driver");
const { ask, check, until } = require("./common");
const { types, policies } = cassandra;
const { consistencies } = types;

const NODES = (process.env.NODES || "").split(",");
const DC1 = NODES.slice(0, 3);
const DC2 = NODES.slice(3, 5);
const MINUTE = 60000;
const READ = "SELECT v FROM ringjs.kv WHERE k = 1";

const addressOf = (host) => host.address.replace(/:\d+$/, "");

// What the driver tells of its nodes, as "Up ADDRESS".
function listen(client) {
	const heard = [];
	for (const event of ["Up", "Down", "Add", "Remove"])
		client.on("host" + event, (host) => heard.push(`${event} ${addressOf(host)}`));
	return heard;
}

const hears = (heard, what) => until(() => heard.includes(what), `${what} (heard ${heard})`);

async function connect(datacenter, contact, more = {}) {
	const client = new cassandra.Client({
		contactPoints: [contact],
		localDataCenter: datacenter,
		protocolOptions: { port: Number(process.env.PORT), maxSchemaAgreementWaitSeconds: 60 },
		socketOptions: { connectTimeout: MINUTE, readTimeout: MINUTE },
		queryOptions: { consistency: consistencies.localQuorum },
		policies: { reconnection: new policies.reconnection.ConstantReconnectionPolicy(200), ...more },
	});
	await client.connect();
	return client;
}

function hostOf(client, address) {
	return client.hosts.values().find((host) => addressOf(host) === address);
}

const executed = (client, query, params, options) => client.execute(query, params, { prepare: true, ...options });

const coordinator = (result) => result.info.queriedHost.replace(/:\d+$/, "");

async function coordinators(client, times) {
	const found = new Set();
	for (let at = 0; at < times; at++)
		found.add(coordinator(await executed(client, READ)));
	return [...found].sort().join();
}

async function untilCoordinators(client, wanted) {
	const all = [...wanted].sort().join();
	await until(async () => (await coordinators(client, 60)) === all, `${all} to answer`);
}

async function schema(client) {
	for (const text of [
		"CREATE KEYSPACE IF NOT EXISTS ringjs WITH replication = " +
			"{'class': 'NetworkTopologyStrategy', 'dc1': 3, 'dc2': 2}",
		"CREATE KEYSPACE IF NOT EXISTS fewjs WITH replication = " +
			"{'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1}",
		"CREATE TABLE IF NOT EXISTS ringjs.kv (k int PRIMARY KEY, v int)",
		"CREATE TABLE IF NOT EXISTS fewjs.kv (k int PRIMARY KEY, v int)",
		"CREATE TABLE IF NOT EXISTS fewjs.wide (p int, c int, PRIMARY KEY (p, c))",
		"CREATE TABLE IF NOT EXISTS ringjs.counts (k int PRIMARY KEY, n counter)",
	])
		assert((await client.execute(text)).info.isSchemaInAgreement, text);
	await executed(client, "INSERT INTO ringjs.kv (k, v) VALUES (1, 1)", [], { consistency: consistencies.all });
}

async function discovery(client) {
	assert.strictEqual(client.hosts.length, 5);
	NODES.forEach((address, at) => {
		const host = hostOf(client, address);
		assert.strictEqual(host.datacenter, at < 3 ? "dc1" : "dc2");
		assert.strictEqual(host.rack, `r${(at % 3) + 1}`);
		assert.strictEqual(host.tokens.length, 16);
		assert(host.cassandraVersion.startsWith("4.1") && host.isUp());
	});
	assert.strictEqual(new Set(client.hosts.values().map((host) => String(host.hostId))).size, 5);
}

const key = (number) => {
	const buffer = Buffer.alloc(4);
	buffer.writeInt32BE(number);
	return buffer;
};

// The driver's replicas are those of `nodetool getendpoints`.
async function replicas(client) {
	for (const keyspace of ["ringjs", "fewjs"]) {
		for (let number = 0; number < 10; number++) {
			const wanted = execFileSync(process.env.NODETOOL, ["-h", NODES[number % 5], "getendpoints", keyspace,
				"kv", String(number)], { encoding: "utf8" }).trim().split(/\s+/);
			const found = client.getReplicas(keyspace, key(number)).map(addressOf);
			assert.deepStrictEqual(found.sort(), wanted.sort());
		}
	}
}

async function datacenters(client) {
	await untilCoordinators(client, DC1);
	const far = await connect("dc2", DC2[0]);
	await untilCoordinators(far, DC2);
	await far.shutdown();
}

async function tokenAware(client) {
	const used = new Set();
	for (let number = 0; number < 60; number++) {
		const [local, none] = client.getReplicas("fewjs", key(number)).filter((host) => host.datacenter === "dc1")
			.map(addressOf);
		assert(local && !none);
		const write = await executed(client, "INSERT INTO fewjs.kv (k, v) VALUES (?, ?)", [number, number],
			{ keyspace: "fewjs", consistency: consistencies.all });
		assert.strictEqual(coordinator(write), local);
		const read = await executed(client, "SELECT v FROM fewjs.kv WHERE k = ?", [number]);
		assert.strictEqual(coordinator(read), local);
		assert.strictEqual(read.first().v, number);
		used.add(local);
	}
	assert.strictEqual([...used].sort().join(), [...DC1].sort().join());
}

// Each page of a query from another node (of this data center: it connects to no other).
async function pages(client) {
	for (let at = 0; at < 200; at++)
		await executed(client, "INSERT INTO fewjs.wide (p, c) VALUES (?, ?)", [Math.floor(at / 10), at % 10],
			{ consistency: consistencies.all });
	const query = "SELECT p, c FROM fewjs.wide";
	const text = (row) => `${row.p} ${row.c}`;
	const whole = (await executed(client, query)).rows.map(text);
	assert.strictEqual(whole.length, 200);
	const found = [];
	let pageState;
	let count = 0;
	do {
		const result = await executed(client, query, [], { fetchSize: 17, pageState,
			host: hostOf(client, DC1[count++ % 3]) });
		found.push(...result.rows.map(text));
		pageState = result.pageState;
	} while (pageState);
	assert.deepStrictEqual(found, whole);
	assert(count > 10, count);
}

async function countersAndConditions(client) {
	const count = async () => Number((await executed(client, "SELECT n FROM ringjs.counts WHERE k = 1", [],
		{ consistency: consistencies.all })).rows.map((row) => row.n)[0] || 0);
	const before = await count();
	await Promise.all(Array.from({ length: 200 }, (_, at) =>
		executed(client, "UPDATE ringjs.counts SET n = n + 1 WHERE k = 1", [],
			{ consistency: consistencies.quorum, host: hostOf(client, DC1[at % 3]) })));
	assert.strictEqual(await count(), before + 200);
	await executed(client, "DELETE FROM ringjs.kv WHERE k = 2", [], { consistency: consistencies.all });
	for (const node of DC1) {
		const result = await executed(client, "INSERT INTO ringjs.kv (k, v) VALUES (2, 5) IF NOT EXISTS", [],
			{ host: hostOf(client, node) });
		assert.strictEqual(result.wasApplied(), node === DC1[0]);
		if (node !== DC1[0])
			assert.strictEqual(result.first().v, 5);
	}
}

async function failure(task) {
	try {
		await task;
	} catch (error) {
		return error.innerErrors ? Object.values(error.innerErrors)[0] : error;
	}
	throw new Error("no error");
}

async function killed(client, heard) {
	const victim = DC1[1];
	heard.length = 0;
	await ask("kill 2");
	await hears(heard, "Down " + victim);
	await untilCoordinators(client, [DC1[0], DC1[2]]);
	const error = await failure(executed(client, READ, [], { consistency: consistencies.all }));
	assert.strictEqual(error.code, types.responseErrorCodes.unavailableException, String(error));
	assert.strictEqual(`${error.required} ${error.alive}`, "5 4");
	// (This driver counts the node that is down among those that have to agree.)
	await client.execute("CREATE TABLE ringjs.while_down (k int PRIMARY KEY)");
	await ask("start 2");
	await hears(heard, "Up " + victim);
	await untilCoordinators(client, DC1);
	// What was prepared before it died, and the table that it missed.
	const host = hostOf(client, victim);
	assert.strictEqual((await executed(client, READ, [], { host })).first().v, 1);
	await executed(client, "SELECT * FROM ringjs.while_down", [], { host });
	assert((await client.execute("DROP TABLE ringjs.while_down")).info.isSchemaInAgreement);
}

async function hangs() {
	const client = await connect("dc1", DC1[0], {
		speculativeExecution: new policies.speculativeExecution.ConstantSpeculativeExecutionPolicy(200, 5) });
	await untilCoordinators(client, DC1);
	await ask("pause 3");
	try {
		const error = await failure(client.execute("INSERT INTO ringjs.kv (k, v) VALUES (1, 1)", [],
			{ consistency: consistencies.all, host: hostOf(client, DC1[0]) }));
		assert.strictEqual(error.code, types.responseErrorCodes.writeTimeout, String(error));
		assert.strictEqual(`${error.blockFor} ${error.received} ${error.writeType}`, "5 4 SIMPLE");
		for (let at = 0; at < 30; at++)
			assert.strictEqual((await executed(client, READ, [], { isIdempotent: true })).first().v, 1);
	} finally {
		await ask("resume 3");
	}
	await untilCoordinators(client, DC1);
	await client.shutdown();
}

async function grows(client, heard) {
	const sixth = NODES[0].replace(/\d+$/, process.env.NEXT);
	heard.length = 0;
	await ask("add dc1");
	await hears(heard, "Add " + sixth);
	await until(() => hostOf(client, sixth).isUp() && hostOf(client, sixth).tokens.length === 16, "its tokens");
	assert.strictEqual(hostOf(client, sixth).datacenter, "dc1");
	await untilCoordinators(client, [...DC1, sixth]);
	await ask("decommission " + process.env.NEXT);
	await hears(heard, "Remove " + sixth);
	await untilCoordinators(client, DC1);
	assert.strictEqual(client.hosts.length, 5);
}

async function run() {
	const client = await connect("dc1", DC1[0]);
	const heard = listen(client);
	for (const [name, body] of [
		["schema by way of one node", schema], ["discovery", discovery],
		["the token map is the server's", replicas], ["requests stay in a data center", datacenters],
		["requests go to a replica", tokenAware], ["pages from another node each", pages],
		["counters and conditional statements", countersAndConditions],
		["a node is killed and comes back", killed], ["a node hangs", hangs],
		["a node joins and leaves", grows],
	])
		await check(name, () => body(client, heard));
	await client.shutdown();
}

module.exports = { run };
