// One service's endpoint: the token, one POST a call, tries where they are safe, failures as our errors.

import {
  AuthenticationFailed, DependencyUnavailable, InternalError, MemoryError, NotReady, RateLimited, TooLarge, fromWire,
} from "./errors.js";
import { emptyResult } from "./empty_results.js";

const ENDPOINT = "/api/v1/jsonrpc";
const LONGEST_RETRY_WAIT_MS = 60_000;
const BY_STATUS = {
  401: AuthenticationFailed, 413: TooLarge, 429: RateLimited,
  502: DependencyUnavailable, 503: DependencyUnavailable, 504: DependencyUnavailable,
};
// The service's failures; the caller's own (params, token, scope) are never hidden.
const UNAVAILABLE = [DependencyUnavailable, NotReady, RateLimited, InternalError];

export class Connection {
  #token;
  #tokenSource;
  #options;
  #nextId = 1;

  constructor(url, token, options = {}) {
    if (!/^https?:\/\//.test(url)) throw new TypeError(`The service's URL starts with http:// or https:// (got ${url}).`);
    this.url = url.replace(/\/+$/, "").replace(new RegExp(`${ENDPOINT}$`), "");
    this.#tokenSource = token;
    this.#options = {
      timeoutMs: 30_000, maxAttempts: 3, failOpen: false, fetch: globalThis.fetch, warn: console.warn, ...options,
    };
  }

  async call(method, params, repeatable) {
    const body = { jsonrpc: "2.0", id: this.#nextId++, method, params };
    if (this.#options.a2aContext) body.a2a_context = this.#options.a2aContext;
    const deadline = Date.now() + this.#options.timeoutMs;
    const empty = this.#options.failOpen ? emptyResult(method) : undefined;
    try {
      return await this.#tried(body, repeatable, empty ? deadline : Infinity);
    } catch (error) {
      if (!empty || !UNAVAILABLE.some((each) => error instanceof each)) throw error;
      this.#options.warn(`${method} goes without memory: ${error.message}`);
      return empty(`memory was not asked: ${error.message}`);
    }
  }

  async #tried(body, repeatable, deadline) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#authenticated(body, deadline);
      } catch (error) {
        const wait = attempt < this.#options.maxAttempts ? waitBeforeRetry(error, repeatable, attempt) : undefined;
        if (wait === undefined || Date.now() + wait >= deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }

  async #authenticated(body, deadline) {
    const token = await this.#currentToken();
    try {
      return await this.#send(body, token, deadline);
    } catch (error) {
      if (!(error instanceof AuthenticationFailed) || typeof this.#tokenSource !== "function") throw error;
    }
    return this.#send(body, await this.#currentToken(token), deadline);
  }

  // A promise is kept, so that calls at the same time ask for one token; not one that failed.
  async #currentToken(refused) {
    const held = this.#token;
    if (held && refused !== undefined && (await held) === refused && this.#token === held) this.#token = undefined;
    this.#token ??= Promise.resolve(typeof this.#tokenSource === "function" ? this.#tokenSource() : this.#tokenSource);
    const asked = this.#token;
    try {
      return await asked;
    } catch (error) {
      if (this.#token === asked) this.#token = undefined;
      throw error;
    }
  }

  async #send(body, token, deadline) {
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
    if (this.#options.traceparent) headers.traceparent = this.#options.traceparent;
    const patience = Math.max(1, Math.min(this.#options.timeoutMs, deadline - Date.now()));
    let response, text;
    try {
      response = await this.#options.fetch(this.url + ENDPOINT, {
        method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(patience),
      });
      text = await response.text();
    } catch (cause) {
      throw unreachable(this.url, cause, this.#options.timeoutMs);
    }
    return resultOf(response, text, this.url);
  }
}

function unreachable(url, cause, timeoutMs) {
  const late = cause.name === "TimeoutError";
  const message = late ? `The service at ${url} did not answer within ${timeoutMs / 1000} s.`
    : `No service answers at ${url} (${cause.cause?.code ?? cause.message}): does \`agentcore serve\` run there?`;
  const error = new DependencyUnavailable(message, {}, { cause });
  // Nothing listens there: the request never left, so that also a write may be tried again.
  error.notSent = cause.cause?.code === "ECONNREFUSED";
  return error;
}

function waitBeforeRetry(error, repeatable, attempt) {
  const backoff = Math.min(5_000, 100 * 2 ** (attempt - 1));
  if (error instanceof RateLimited) {
    const seconds = error.data.retry_after_seconds;
    if (typeof seconds !== "number") return backoff;
    return seconds * 1000 <= LONGEST_RETRY_WAIT_MS ? seconds * 1000 : undefined;
  }
  const again = error instanceof NotReady || (error instanceof DependencyUnavailable && (repeatable || error.notSent));
  return again ? backoff : undefined;
}

function resultOf(response, text, url) {
  const answer = parsed(text);
  if ("result" in answer) return answer.result;
  const seconds = Number(response.headers.get("Retry-After") ?? NaN);
  const data = Number.isNaN(seconds) ? {} : { retry_after_seconds: seconds };
  if (Number.isInteger(answer.error?.code)) {
    throw fromWire(answer.error.code, answer.error.message, { ...data, ...answer.error.data });
  }
  const message = `${url} answered HTTP ${response.status} without a JSON-RPC answer`;
  const Known = BY_STATUS[response.status];
  throw Known ? new Known(`${message}.`, data) : new MemoryError(`${message}: is it the memory service?`);
}

function parsed(text) {
  try {
    const answer = JSON.parse(text);
    return answer !== null && typeof answer === "object" && !Array.isArray(answer) ? answer : {};
  } catch {
    return {};
  }
}
