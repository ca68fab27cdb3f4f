// The client against prepared answers: what it sends, what it tries again, and how it reads answers.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import {
  AuthenticationFailed, Conflict, DependencyUnavailable, InvalidParams, MemoryClient, MemoryError, NotAuthorised,
  DiskFull, RateLimited, Unreachable,
} from "../src/index.js";

const COUNTED = { count: 3, receipt: {} };

function scripted(...answers) {
  const requests = [];
  const fetch = async (url, request) => {
    requests.push({ url, headers: request.headers, body: JSON.parse(request.body) });
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? answer(request) : answer;
  };
  return { fetch, requests };
}

const reply = (member, status = 200, headers = {}) =>
  new Response(JSON.stringify({ jsonrpc: "2.0", id: 1, ...member }), { status, headers });
const result = (value) => reply({ result: value });
const error = (code, status = 200, data = undefined) =>
  reply({ error: { code, message: "no", data } }, status);
const refused = () => new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
const client = (script, options = {}, token = "t.o.k") =>
  new MemoryClient("http://memory.test/", token, { fetch: script.fetch, ...options });

test("a call sends its wire name, its params and the token", async () => {
  const script = scripted(result(COUNTED));
  assert.equal((await client(script).count({ tags: ["a"] })).count, 3);
  const [{ url, headers, body }] = script.requests;
  assert.equal(url, "http://memory.test/api/v1/jsonrpc");
  assert.equal(headers.Authorization, "Bearer t.o.k");
  assert.deepEqual(body, { jsonrpc: "2.0", id: 1, method: "memory.count", params: { tags: ["a"] } });
});

test("an error answer becomes the class of its code, with its message and data", async () => {
  const failure = await client(scripted(error(-32602, 200, { field: "k" }))).count().catch((each) => each);
  assert.ok(failure instanceof InvalidParams && failure instanceof MemoryError);
  assert.deepEqual([failure.name, failure.code, failure.message, failure.data, failure.retryable],
    ["InvalidParams", -32602, "no", { field: "k" }, false]);
});

test("an error answer with a cause becomes its class, and is retried only where that helps", async () => {
  for (const [cause, Known, sent] of [["unreachable", Unreachable, 2], ["disk_full", DiskFull, 1]]) {
    const script = scripted(...Array.from({ length: 2 }, () => error(-32005, 200, { cause })));
    const failure = await client(script, { maxAttempts: 2 }).count().catch((each) => each);
    assert.ok(failure instanceof Known && failure instanceof DependencyUnavailable);
    assert.equal(script.requests.length, sent);
  }
});

test("what is no JSON-RPC answer is told by its status", async () => {
  const said = (status) => client(scripted(new Response("<html>", { status })), { maxAttempts: 1 }).count();
  for (const status of [200, 404]) {
    await assert.rejects(said(status), (each) => each instanceof DependencyUnavailable
      && /is it the memory service/.test(each.message));
  }
  for (const status of [500, 503, 520]) await assert.rejects(said(status), DependencyUnavailable);
  await assert.rejects(said(401), AuthenticationFailed);
  await assert.rejects(said(403), NotAuthorised);
});

test("fetch is called as the function that it is, as browsers ask", async () => {
  let called = "never";
  const fetch = async function () {
    called = this;
    return result(COUNTED);
  };
  await client({ fetch }).count();
  assert.equal(called, undefined);
});

test("what JSON has no number for is refused before it is sent", async () => {
  for (const value of [NaN, Infinity]) {
    await assert.rejects(client(scripted()).store({ content: "a", metadata: { at: [value] } }), InvalidParams);
  }
  assert.throws(() => client(scripted(), { traceparent: "0\u00f6-1" }), InvalidParams);
});

test("what JSON has no form for is refused by its name", async () => {
  const said = (value) => client(scripted()).store({ content: "a", metadata: { at: value } });
  await assert.rejects(said(10n), (each) => each instanceof InvalidParams && /^at is a BigInt/.test(each.message));
  await assert.rejects(said(new Date("never")), (each) => each instanceof InvalidParams
    && /^at is an invalid Date/.test(each.message));
});

test("params that are none reject, and never throw", async () => {
  for (const call of [(memory) => memory.storeBatch(), (memory) => memory.store(null),
    (memory) => memory.addSession(null), (memory) => memory.get("an id")]) {
    await assert.rejects(call(client(scripted())), InvalidParams);
  }
  const script = scripted(error(-32602), error(-32602));
  for (const items of [7, [null]]) {
    await assert.rejects(client(script).storeBatch({ items }), InvalidParams);
  }
  assert.equal(script.requests.length, 2);
});

test("a token is stripped, and what is none is said also failing open", async () => {
  const script = scripted(result(COUNTED));
  await client(script, {}, "t.o.k\n").count();
  assert.equal(script.requests[0].headers.Authorization, "Bearer t.o.k");
  for (const token of ["", "two words", "t\u00f6k", undefined]) {
    const memory = client(scripted(), { failOpen: true }, () => token);
    await assert.rejects(memory.retrieve({ query: "sky" }), AuthenticationFailed);
  }
});

test("a source that fails or hangs is a part that does not answer", async () => {
  const options = { timeoutMs: 50, maxAttempts: 1, warn: () => {} };
  const broken = () => { throw new TypeError("its secret is hunter2"); };
  const stuck = () => new Promise(() => {});
  for (const [source, said] of [[broken, /failed with TypeError/], [stuck, /none within 0.05 s/]]) {
    const failure = await client(scripted(), options, source).count().catch((each) => each);
    assert.ok(failure instanceof DependencyUnavailable);
    assert.match(failure.message, said);
    assert.doesNotMatch(failure.message, /hunter2/);
    const open = client(scripted(), { ...options, failOpen: true }, source);
    assert.match((await open.retrieve({ query: "sky" })).receipt.degraded[0], said);
  }
});

test("the short forms answer what an agent uses", async () => {
  const script = scripted(result({ success: true }), result({ memories: [1] }), result({ context: "sky" }));
  const memory = client(script);
  await memory.addInteraction({ query: "a" }, { task_id: "t" });
  assert.deepEqual(await memory.retrieveMemories("a", { k: 3 }), [1]);
  assert.equal(await memory.getRelevantContext("a", { max_tokens: 9 }), "sky");
  assert.deepEqual(script.requests.map((each) => each.body.params), [
    { interaction: { query: "a" }, task_id: "t" }, { query: "a", k: 3 }, { query: "a", max_tokens: 9 }]);
});

test("what repeats safely is tried again, and a write is not", async () => {
  const again = scripted(error(-32005), error(-32005), result(COUNTED));
  await client(again).count();
  assert.equal(again.requests.length, 3);
  const keyed = scripted(error(-32005), result({ success: true }));
  await client(keyed).store({ content: "once", idempotency_key: "a" });
  const write = scripted(error(-32005));
  await assert.rejects(client(write).store({ content: "once" }), DependencyUnavailable);
  assert.equal(write.requests.length, 1);
});

test("a write that was never sent is tried again", async () => {
  const script = scripted(refused(), error(-32006), result({ success: true }));
  assert.equal((await client(script).store({ content: "once" })).success, true);
});

test("a connection lost on the way is not said to be no service", async () => {
  const lost = new TypeError("fetch failed", { cause: { code: "UND_ERR_SOCKET" } });
  const failure = await client(scripted(lost)).store({ content: "a" }).catch((each) => each);
  assert.ok(failure instanceof DependencyUnavailable);
  assert.match(failure.message, /^No whole answer came from http:\/\/memory.test \(UND_ERR_SOCKET\)/);
});

test("a rate limit is waited out for as long as it says, and not for an hour", async () => {
  const script = scripted(error(-32004, 429, { retry_after_seconds: 0.05 }), result(COUNTED));
  const began = Date.now();
  await client(script).count();
  assert.ok(Date.now() - began >= 45);
  const hour = reply({ error: { code: -32004, message: "no" } }, 429, { "Retry-After": "3600" });
  await assert.rejects(client(scripted(hour)).count(), RateLimited);
});

test("a refused token is renewed once, by one call for all", async () => {
  const minted = ["old", "new"];
  let asked = 0;
  const script = scripted(error(-32103, 401), error(-32103, 401), result(COUNTED), result(COUNTED));
  const memory = client(script, {}, async () => minted[asked++]);
  await Promise.all([memory.count(), memory.count()]);
  assert.deepEqual(script.requests.map((each) => each.headers.Authorization),
    ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]);
  assert.equal(asked, 2);
});

test("a renewal that hangs holds up no call beyond its time", async () => {
  let asked = 0, arrived = 0, tellRenewal;
  const renewal = new Promise((resolve) => (tellRenewal = resolve));
  const source = () => (asked++ ? new Promise(() => tellRenewal()) : "old");
  const fetch = async () => {
    if (arrived++) await renewal; // the second call is refused while the first asks for another token
    return error(-32103, 401);
  };
  const memory = client({ fetch }, { timeoutMs: 200, maxAttempts: 1 }, source);
  const late = (each) => each instanceof DependencyUnavailable && /none within 0.2 s/.test(each.message);
  await Promise.all([assert.rejects(memory.count(), late), assert.rejects(memory.count(), late)]);
  assert.equal(asked, 2);
});

test("a token that could not be had is asked for again", async () => {
  let asked = 0;
  const source = () => asked++ ? "t.o.k" : Promise.reject(new Error("no login"));
  const memory = client(scripted(result(COUNTED)), { maxAttempts: 1 }, source);
  await assert.rejects(memory.count(), (each) => each.cause.message === "no login");
  assert.equal((await memory.count()).count, 3);
});

test("failing open, a search is empty and says why, and mistakes still raise", async () => {
  const warnings = [];
  const options = { failOpen: true, maxAttempts: 1, warn: (text) => warnings.push(text) };
  const failures = scripted(refused(), error(-32005), error(-32603));
  const memory = client(failures, options);
  assert.deepEqual((await memory.retrieve({ query: "sky" })).memories, []);
  const { context, encoding } = await memory.getContext({ query: "sky" });
  assert.deepEqual([context, encoding], ["", null]);
  assert.match((await memory.summarize({ session_id: "s" })).receipt.degraded[0], /memory was not asked/);
  assert.equal(warnings.length, 3);
  await assert.rejects(client(scripted(error(-32602)), options).retrieve({ query: "" }), InvalidParams);
  const expired = scripted(error(-32103, 401));
  await assert.rejects(client(expired, options).retrieve({ query: "a" }), AuthenticationFailed);
  const page = client(scripted(new Response("<html>", { status: 500 })), options);
  assert.match((await page.retrieve({ query: "a" })).receipt.degraded[0], /HTTP 500/);
  await assert.rejects(client(scripted(error(-32005)), options).count(), DependencyUnavailable);
});

test("failing open waits no longer than its time in all", async () => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const began = Date.now();
  const memory = new MemoryClient(`http://127.0.0.1:${silent.address().port}`, "t.o.k",
    { failOpen: true, timeoutMs: 100, warn: () => {} });
  const found = await memory.retrieve({ query: "sky" });
  silent.closeAllConnections();
  silent.close();
  assert.deepEqual(found.memories, []);
  assert.ok(Date.now() - began < 2_000);
});

const hanging = (request) => new Promise((_, reject) => {
  request.signal.addEventListener("abort", () => reject(request.signal.reason));
});

test("a call that its caller aborts ends with the reason, whatever it waits for", async () => {
  const waits = [
    [[hanging], {}, "t.o.k"], [[hanging], { failOpen: true }, "t.o.k"],
    [[error(-32004, 429, { retry_after_seconds: 50 })], {}, "t.o.k"], [[], {}, () => new Promise(() => {})],
  ];
  for (const [answers, options, token] of waits) {
    const script = scripted(...answers);
    const leaving = new AbortController();
    const asked = client(script, options, token).retrieve({ query: "sky" }, { signal: leaving.signal });
    setImmediate(() => leaving.abort(new Error("the user left")));
    await assert.rejects(asked, /^Error: the user left$/);
    assert.equal(script.requests.length, answers.length);
  }
});

test("an aborted call is not sent, and takes no token from others", async () => {
  let give;
  const script = scripted(result(COUNTED));
  const memory = client(script, {}, () => new Promise((resolve) => { give = resolve; }));
  const leaving = new AbortController();
  const [left, stayed] = [memory.count({}, { signal: leaving.signal }), memory.count()];
  leaving.abort();
  await assert.rejects(left, { name: "AbortError" });
  await assert.rejects(memory.count({}, { signal: leaving.signal }), { name: "AbortError" });
  await assert.rejects(memory.addInteraction({ query: "a" }, {}, { signal: leaving.signal }), { name: "AbortError" });
  await assert.rejects(memory.retrieveMemories("a", {}, { signal: leaving.signal }), { name: "AbortError" });
  await assert.rejects(memory.getRelevantContext("a", {}, { signal: leaving.signal }), { name: "AbortError" });
  give("t.o.k");
  assert.equal((await stayed).count, 3);
  assert.equal(script.requests.length, 1);
});

test("a source that hung once is asked anew, however short each call waits for it", async () => {
  let asked = 0;
  const source = () => (++asked === 1 ? new Promise(() => {}) : "t.o.k");
  const memory = client(scripted(result(COUNTED), result(COUNTED), result(COUNTED)), { timeoutMs: 100 }, source);
  let counted;
  for (let calls = 0; !counted && calls < 50; calls += 1) {
    counted = await memory.count({}, { signal: AbortSignal.timeout(20) }).catch(() => undefined);
  }
  assert.equal(counted?.count, 3);
  assert.equal(asked, 2);
});

test("a trace and a conversation travel with each call", async () => {
  const script = scripted(error(-32002));
  const memory = client(script, { traceparent: "00-1-2-01", a2aContext: { source_agent: "planner" } });
  await assert.rejects(memory.count(), Conflict);
  assert.equal(script.requests[0].headers.traceparent, "00-1-2-01");
  assert.deepEqual(script.requests[0].body.a2a_context, { source_agent: "planner" });
});

test("what is no URL is refused at once", () => {
  assert.throws(() => new MemoryClient("memory.test", "t.o.k"), /URL/);
  for (const url of ["http://ada:hunter2@memory.test", "https://hunter2@memory.test/", "ada:hunter2@memory.test"]) {
    assert.throws(() => new MemoryClient(url, "t.o.k"), (each) => /the token alone/.test(each.message)
      && !/hunter2/.test(each.message));
  }
});
