// What the declarations promise, held by the compiler alone: each `@ts-expect-error` must be one.

import { MemoryClient, MemoryError, NotFound, RateLimited } from "agentcore-memory";
import type { CallOptions, ClientOptions, MemorySummary, StoreResult } from "agentcore-memory";

const options: ClientOptions = { failOpen: true, timeoutMs: 500, fetch: globalThis.fetch };
const memory = new MemoryClient("http://127.0.0.1:8080", async () => "t.o.k", options);

export async function used(): Promise<void> {
  const stored: StoreResult = await memory.store({ content: "a", metadata: { deep: [1] }, tags: ["b"] });
  const found = await memory.retrieve({ query: "a", k: 3, memory_types: ["episodic"] });
  const first: MemorySummary | undefined = found.memories[0];
  const context: string = (await memory.getContext({ query: "a" })).context;
  const count: number = (await memory.count()).count;
  const memories: MemorySummary[] = await memory.retrieveMemories("a", { k: 3 });
  const said: string = await memory.getRelevantContext("a", { max_tokens: 200 });
  await memory.addInteraction({ query: "a" }, { task_id: "t" });
  const call: CallOptions = { signal: AbortSignal.timeout(500) };
  await memory.capabilities({}, call);
  await memory.getRelevantContext("a", {}, call);
  console.log(stored.memory_id, first?.score, context, count, memories.length, said);
}

export function told(failure: unknown): number {
  if (failure instanceof NotFound) {
    const code: -32001 = failure.code;
    return code;
  }
  const known: -32001 = NotFound.code;
  const codes: number[] = [known, MemoryError.code, RateLimited.code];
  const retryable: boolean = RateLimited.retryable;
  return failure instanceof MemoryError && retryable && failure.data ? failure.code : codes.length;
}

export async function mistaken(): Promise<void> {
  // @ts-expect-error a query is required
  await memory.retrieve({ k: 3 });
  // @ts-expect-error no such field
  await memory.store({ content: "a", importanse: 1 });
  // @ts-expect-error no such option of a call
  await memory.count({}, { timeoutMs: 500 });
  // @ts-expect-error no such layer
  await memory.list({ memory_types: ["forgotten"] });
  // @ts-expect-error a store has no memories
  console.log((await memory.store({ content: "a" })).memories);
  // @ts-expect-error NotFound has one code
  const code: -32002 = NotFound.code;
  console.log(code);
}
