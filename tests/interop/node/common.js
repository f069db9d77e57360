// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder print and ask.
"use strict";
const assert = require("assert");
const readline = require("readline");

// Seconds that something may take which has to happen.
const PATIENCE = Number(process.env.PATIENCE || 180);

const lines = readline.createInterface({ input: process.stdin });
const answers = [];
const waiting = [];
lines.on("line", (line) => (waiting.length ? waiting.shift()(line) : answers.push(line)));

function say(line) {
	process.stdout.write(line.replace(/\n/g, " ") + "\n");
}

async function ask(what) {
	say("ask: " + what);
	const answer = answers.length ? answers.shift() : await new Promise((done) => waiting.push(done));
	assert.strictEqual(answer, "done");
}

async function check(name, body) {
	try {
		await body();
		say("PASS " + name);
	} catch (error) {
		const where = (error.stack || "").match(/(?:interop|ring)\.js:\d+/g) || [];
		say(`FAIL ${name}: ${error} (${where.join(" ")})`);
	}
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(condition, what) {
	const end = Date.now() + PATIENCE * 1000;
	while (!(await condition())) {
		assert(Date.now() < end, what + " did not happen");
		await sleep(50);
	}
}

module.exports = { ask, check, say, until };
