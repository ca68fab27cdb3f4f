// Written by scripts/write_typescript.py from the OpenRPC document.

import { Connection } from "./connection.js";
import { isRepeatable } from "./repeatable.js";

/** One agent's memory, over HTTP. */
export class MemoryClient {
  #connection;

  constructor(url, token, options) {
    this.#connection = new Connection(url, token, options);
  }

  get url() {
    return this.#connection.url;
  }

  async #call(method, scope, params) {
    return this.#connection.call(method, params, isRepeatable(method, scope, params));
  }

  /** Store an interaction; `options` are the other params of store. */
  addInteraction(interaction, options = {}) {
    return this.store({ interaction, ...options });
  }

  /** The best memories for a query, best first; `options` are the other params of retrieve. */
  async retrieveMemories(query, options = {}) {
    return (await this.retrieve({ query, ...options })).memories;
  }

  /** A prompt-ready context; `options` are the other params of getContext. */
  async getRelevantContext(query, options = {}) {
    return (await this.getContext({ query, ...options })).context;
  }

  /** Store an interaction, or a plain content, as one memory. */
  store(params = {}) {
    return this.#call("memory.store", "memory:write", params);
  }

  /** Store up to 1,000 memories in one transaction, with a result for each. */
  storeBatch(params) {
    return this.#call("memory.store_batch", "memory:write", params);
  }

  /** Find the memories that matter for a query, best first. */
  retrieve(params) {
    return this.#call("memory.retrieve", "memory:read", params);
  }

  /** Build a prompt-ready context for a query inside a token budget. */
  getContext(params) {
    return this.#call("memory.get_context", "memory:read", params);
  }

  /** Correct, extend or re-weigh a memory; the change is kept in its history. */
  update(params) {
    return this.#call("memory.update", "memory:write", params);
  }

  /** What was changed in a memory, when and by whom, the latest first. */
  history(params) {
    return this.#call("memory.history", "memory:read", params);
  }

  /** Bring a memory back to how it stood at an earlier version; nothing of its history goes. */
  revert(params) {
    return this.#call("memory.revert", "memory:write", params);
  }

  /** Say how a memory served: helpful, unhelpful or wrong moves its relevance score. */
  feedback(params) {
    return this.#call("memory.feedback", "memory:write", params);
  }

  /** Archive and remove memories of a layer by a strategy. */
  prune(params) {
    return this.#call("memory.prune", "memory:write", params);
  }

  /** Bring archived memories back as they were, with vector, history, links and use. */
  restore(params = {}) {
    return this.#call("memory.restore", "memory:write", params);
  }

  /** Archived memories page by page, those archived last first. */
  archived(params = {}) {
    return this.#call("memory.archived", "memory:read", params);
  }

  /** One memory, whole, by its id. */
  get(params) {
    return this.#call("memory.get", "memory:read", params);
  }

  /** Memories page by page, by time, importance or access count. */
  list(params = {}) {
    return this.#call("memory.list", "memory:read", params);
  }

  /** How many memories match. */
  count(params = {}) {
    return this.#call("memory.count", "memory:read", params);
  }

  /** Delete memories by id, or by a filter with confirm; says how many went. */
  delete(params = {}) {
    return this.#call("memory.delete", "memory:write", params);
  }

  /** Counts by layer, links, archived memories and accesses. */
  stats(params = {}) {
    return this.#call("memory.stats", "memory:read", params);
  }

  /** What this service can do, and its limits. */
  capabilities(params = {}) {
    return this.#call("memory.capabilities", "memory:read", params);
  }

  /** End a task: its working memory is cleared, its lasting memories stay. */
  completeTask(params) {
    return this.#call("memory.complete_task", "memory:write", params);
  }

  /** Store a conversation, or more of one: a memory for each message. */
  addSession(params) {
    return this.#call("memory.add_session", "memory:write", params);
  }

  /** End a session: its working memory is promoted or ends, summaries of what was said are kept. */
  endSession(params) {
    return this.#call("memory.end_session", "memory:write", params);
  }

  /** A summary of the memories that match, in their own sentences: no model is asked. It is not kept. */
  summarize(params = {}) {
    return this.#call("memory.summarize", "memory:read", params);
  }

  /** Delete a session, a user's memories or all; says how many went. */
  clear(params = {}) {
    return this.#call("memory.clear", "memory:write", params);
  }

  /** The agent's rules: how its layers forget, whether its episodes are consolidated. */
  settings(params = {}) {
    return this.#call("memory.settings", "memory:read", params);
  }

  /** Give an agent rules of its own: how its layers forget, whether episodes are consolidated. */
  configure(params = {}) {
    return this.#call("memory.configure", "memory:admin", params);
  }

  /** Give episodic memories that tell one thing together a summary that points to them. */
  consolidate(params = {}) {
    return this.#call("memory.consolidate", "memory:write", params);
  }

  /** Erase all of the agent, or of a user within it, from every place; with a signed receipt. */
  erase(params = {}) {
    return this.#call("memory.erase", "memory:admin", params);
  }

  /** Say what something is called too: each form then finds what was said in the other. */
  setAlias(params) {
    return this.#call("memory.set_alias", "memory:write", params);
  }

  /** Take an alias away, whether it was set or learnt. */
  deleteAlias(params) {
    return this.#call("memory.delete_alias", "memory:write", params);
  }

  /** The aliases that apply, page by page: those set, and those learnt from memories. */
  listAliases(params = {}) {
    return this.#call("memory.list_aliases", "memory:read", params);
  }
}
