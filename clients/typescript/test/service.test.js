// The client against a running service: AGENTCORE_URL and AGENTCORE_TOKEN name it and the agent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuthenticationFailed, InvalidParams, MemoryClient, NotFound } from "../src/index.js";

const { AGENTCORE_URL: url, AGENTCORE_TOKEN: token } = process.env;
const memory = new MemoryClient(url, () => token);
const TEA = "Ada prefers green tea over coffee in the morning.";

test("a memory lives its whole life", async () => {
  const stored = await memory.store({ content: TEA, tags: ["drinks"], task_id: "breakfast" });
  assert.equal(stored.status, "stored");
  const found = await memory.retrieve({ query: "does Ada prefer tea or coffee?", explain: true });
  assert.equal(found.memories[0].content, TEA);
  const built = await memory.getContext({ query: "green tea", task_id: "breakfast", max_tokens: 300 });
  assert.ok(built.context.includes(TEA) && built.token_count <= 300);
  const changed = await memory.update({ memory_id: stored.memory_id, updates: { importance: 0.9 } });
  assert.equal(changed.version, 2);
  assert.equal((await memory.history({ memory_id: stored.memory_id })).changes[0].operation, "update");
  assert.equal((await memory.completeTask({ task_id: "breakfast" })).cleared_count, 1);
  assert.equal((await memory.count()).count, 1);
  assert.equal((await memory.list({ tags: ["drinks"] })).memories[0].relevance_score, 0.9);
  assert.equal((await memory.prune({ memory_layer: "episodic", target: 1, dry_run: true })).dry_run, true);
  assert.equal((await memory.delete({ memory_ids: [stored.memory_id] })).deleted_count, 1);
  await assert.rejects(memory.get({ memory_id: stored.memory_id }), NotFound);
});

test("a conversation is added, summarised and cleared", async () => {
  const messages = [{ content: TEA }, { content: "Noted: green tea for Ada.", role: "assistant" }];
  assert.equal((await memory.addSession({ session_id: "s-1", messages })).stored_count, 2);
  assert.ok((await memory.summarize({ session_id: "s-1" })).summary.length > 0);
  assert.equal((await memory.clear({ session_id: "s-1" })).cleared_count, 2);
});

test("the service's errors are told by their classes", async () => {
  const refused = await memory.retrieve({ query: "tea", k: -1 }).catch((each) => each);
  assert.ok(refused instanceof InvalidParams);
  assert.match(`${refused.message} ${JSON.stringify(refused.data)}`, /k/);
  await assert.rejects(new MemoryClient(url, "t.o.k").count(), AuthenticationFailed);
});

test("the service tells what it can do", async () => {
  assert.ok((await memory.capabilities()).memory_types.includes("semantic"));
});
