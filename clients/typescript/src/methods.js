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

  async #call(method, scope, params, call) {
    return this.#connection.call(method, params, isRepeatable(method, scope, params), call);
  }

  /** Store an interaction; `options` are the other params of store. */
  addInteraction(interaction, options = {}, call = {}) {
    return this.store({ interaction, ...options }, call);
  }

  /** The best memories for a query, best first; `options` are the other params of retrieve. */
  async retrieveMemories(query, options = {}, call = {}) {
    return (await this.retrieve({ query, ...options }, call)).memories;
  }

  /** A prompt-ready context; `options` are the other params of getContext. */
  async getRelevantContext(query, options = {}, call = {}) {
    return (await this.getContext({ query, ...options }, call)).context;
  }

  /** Store an interaction, or a plain content, as one memory. */
  store(params = {}, call = {}) {
    return this.#call("memory.store", "memory:write", params, call);
  }

  /** Store up to 1,000 memories in one transaction, with a result for each; invalid ones are rejected, the others stored. */
  storeBatch(params, call = {}) {
    return this.#call("memory.store_batch", "memory:write", params, call);
  }

  /** Find the memories that matter for a query, best first. */
  retrieve(params, call = {}) {
    return this.#call("memory.retrieve", "memory:read", params, call);
  }

  /** Build a prompt-ready context for a query inside a token budget. */
  getContext(params, call = {}) {
    return this.#call("memory.get_context", "memory:read", params, call);
  }

  /** Correct, extend or re-weigh a memory; the change is kept in its history. */
  update(params, call = {}) {
    return this.#call("memory.update", "memory:write", params, call);
  }

  /** What was changed in a memory, when and by whom, the latest first. */
  history(params, call = {}) {
    return this.#call("memory.history", "memory:read", params, call);
  }

  /** Bring a memory back to how it stood at an earlier version; nothing of its history goes. */
  revert(params, call = {}) {
    return this.#call("memory.revert", "memory:write", params, call);
  }

  /** Say how a memory served: helpful, unhelpful or wrong moves its relevance score. */
  feedback(params, call = {}) {
    return this.#call("memory.feedback", "memory:write", params, call);
  }

  /** Archive and remove memories of a layer by a strategy. */
  prune(params, call = {}) {
    return this.#call("memory.prune", "memory:write", params, call);
  }

  /** Bring archived memories back as they were, with vector, history, links and use. */
  restore(params = {}, call = {}) {
    return this.#call("memory.restore", "memory:write", params, call);
  }

  /** Archived memories page by page, those archived last first. */
  archived(params = {}, call = {}) {
    return this.#call("memory.archived", "memory:read", params, call);
  }

  /** One memory, whole, by its id. */
  get(params, call = {}) {
    return this.#call("memory.get", "memory:read", params, call);
  }

  /** Memories page by page, by time, importance or access count. */
  list(params = {}, call = {}) {
    return this.#call("memory.list", "memory:read", params, call);
  }

  /** How many memories match. */
  count(params = {}, call = {}) {
    return this.#call("memory.count", "memory:read", params, call);
  }

  /** Count the values of users, sessions, tags and other fields. */
  facets(params, call = {}) {
    return this.#call("memory.facets", "memory:read", params, call);
  }

  /** Project the vectors of memories onto two axes, for a map. */
  project(params = {}, call = {}) {
    return this.#call("memory.project", "memory:read", params, call);
  }

  /** Delete memories by id, or by a filter with confirm; says how many went. */
  delete(params = {}, call = {}) {
    return this.#call("memory.delete", "memory:write", params, call);
  }

  /** Counts by layer, links, archived memories and accesses. */
  stats(params = {}, call = {}) {
    return this.#call("memory.stats", "memory:read", params, call);
  }

  /** What this service can do, and its limits. */
  capabilities(params = {}, call = {}) {
    return this.#call("memory.capabilities", "memory:read", params, call);
  }

  /** End a task: its working memory is cleared, its lasting memories stay. */
  completeTask(params, call = {}) {
    return this.#call("memory.complete_task", "memory:write", params, call);
  }

  /** Store a conversation, or more of one: a memory for each message. */
  addSession(params, call = {}) {
    return this.#call("memory.add_session", "memory:write", params, call);
  }

  /** End a session: its working memory is promoted or ends, summaries of what was said are kept. */
  endSession(params, call = {}) {
    return this.#call("memory.end_session", "memory:write", params, call);
  }

  /** A summary of the memories that match, in their own sentences: no model is asked. It is not kept. */
  summarize(params = {}, call = {}) {
    return this.#call("memory.summarize", "memory:read", params, call);
  }

  /** Delete a session, a user's memories or all; says how many went. */
  clear(params = {}, call = {}) {
    return this.#call("memory.clear", "memory:write", params, call);
  }

  /** The agent's rules: how its layers forget, whether its episodes are consolidated. */
  settings(params = {}, call = {}) {
    return this.#call("memory.settings", "memory:read", params, call);
  }

  /** Give an agent rules of its own: how its layers forget, whether episodes are consolidated. */
  configure(params = {}, call = {}) {
    return this.#call("memory.configure", "memory:admin", params, call);
  }

  /** Give episodic memories that tell one thing together a summary that points to them. */
  consolidate(params = {}, call = {}) {
    return this.#call("memory.consolidate", "memory:write", params, call);
  }

  /** List the agent's background jobs, newest first; those that succeeded are deleted. */
  jobs(params = {}, call = {}) {
    return this.#call("memory.jobs", "memory:admin", params, call);
  }

  /** Retry a failed background job of the agent, or cancel one that waits or runs. */
  changeJob(params, call = {}) {
    return this.#call("memory.change_job", "memory:admin", params, call);
  }

  /** Erase all of the agent, or of a user within it, from every place; with a signed receipt. */
  erase(params = {}, call = {}) {
    return this.#call("memory.erase", "memory:admin", params, call);
  }
}
