// One service's endpoint: the token, one POST a call, tries where they are safe, failures as our errors.

import {
  AuthenticationFailed, DependencyUnavailable, InternalError, InvalidParams, MemoryError, NotAuthorised, NotReady,
  RateLimited, TooLarge, fromWire,
} from "./errors.js";
import { emptyResult } from "./empty_results.js";

const ENDPOINT = "/api/v1/jsonrpc";
const LONGEST_RETRY_WAIT_MS = 60_000;
// Of an answer that is no JSON-RPC: said by what stands before the service, which itself was not reached.
const BY_STATUS = { 401: AuthenticationFailed, 403: NotAuthorised, 413: TooLarge, 429: RateLimited };
// The service's failures; the caller's own (params, token, scope) are never hidden.
const UNAVAILABLE = [DependencyUnavailable, NotReady, RateLimited, InternalError];
// What node says of a connection that was there.
const LOST = ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"];

export class Connection {
  #held;
  #tokenSource;
  #options;
  #nextId = 1;

  constructor(url, token, options = {}) {
    if (/^(\w+:\/\/)?[^/?#]*@/.test(url)) {
      throw new TypeError(
        "The service's URL names a user or a password: leave it out; the token alone says who asks.");
    }
    if (!/^https?:\/\//.test(url)) {
      throw new TypeError(`The service's URL starts with http:// or https:// (got ${url}).`);
    }
    if (!/^[\x20-\x7e]*$/.test(options.traceparent ?? "")) {
      throw new InvalidParams("traceparent: holds characters that no header carries");
    }
    this.url = url.replace(/\/+$/, "").replace(new RegExp(`${ENDPOINT}$`), "");
    this.#tokenSource = token;
    this.#options = {
      timeoutMs: 30_000, maxAttempts: 3, failOpen: false, fetch: globalThis.fetch, warn: console.warn,
      ...options,
    };
  }

  async call(method, params, repeatable, { signal } = {}) {
    if (params === null || typeof params !== "object") {
      throw new InvalidParams(`${method} takes its params as an object, not ${params}`);
    }
    const request = { jsonrpc: "2.0", id: this.#nextId++, method, params };
    if (this.#options.a2aContext) request.a2a_context = this.#options.a2aContext;
    const body = JSON.stringify(request, representable);
    const deadline = Date.now() + this.#options.timeoutMs;
    const empty = this.#options.failOpen ? emptyResult(method) : undefined;
    try {
      return await this.#tried(body, repeatable, empty ? deadline : Infinity, signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (!empty || !UNAVAILABLE.some((each) => error instanceof each)) throw error;
      this.#options.warn(`${method} goes without memory: ${error.message}`);
      return empty(`memory was not asked: ${error.message}`);
    }
  }

  async #tried(body, repeatable, deadline, signal) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#authenticated(body, deadline, signal);
      } catch (error) {
        signal?.throwIfAborted();
        const last = attempt >= this.#options.maxAttempts;
        const wait = last ? undefined : waitBeforeRetry(error, repeatable, attempt);
        if (wait === undefined || Date.now() + wait >= deadline) throw error;
        await pause(wait, signal);
      }
    }
  }

  async #authenticated(body, deadline, signal) {
    const token = await this.#currentToken(undefined, deadline, signal);
    try {
      return await this.#send(body, token, deadline, signal);
    } catch (error) {
      if (!(error instanceof AuthenticationFailed) || typeof this.#tokenSource !== "function") throw error;
    }
    return this.#send(body, await this.#currentToken(token, deadline, signal), deadline, signal);
  }

  // What was asked for is kept, so that calls at the same time ask for one token; not what failed.
  async #currentToken(refused, deadline, signal) {
    signal?.throwIfAborted();
    if (refused !== undefined && this.#held?.token === refused) this.#held = undefined;
    // A source that never answers is asked anew, however short each call waited for it.
    if (this.#held?.token === undefined && Date.now() > this.#held?.until) this.#held = undefined;
    const held = (this.#held ??= asking(this.#tokenSource, Date.now() + this.#options.timeoutMs));
    try {
      return await this.#inTime(held.asked, deadline, signal);
    } catch (error) {
      if (this.#held === held && !signal?.aborted) this.#held = undefined;
      throw error;
    }
  }

  async #inTime(asked, deadline, signal) {
    let timer, leave;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new DependencyUnavailable(
        `The source of the token gave none within ${this.#options.timeoutMs / 1000} s.`)), this.#patience(deadline));
      leave = () => reject(signal.reason);
      signal?.addEventListener("abort", leave);
    });
    try {
      return await Promise.race([asked, late]);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", leave);
    }
  }

  #patience(deadline) {
    return Math.max(1, Math.min(this.#options.timeoutMs, deadline - Date.now()));
  }

  async #send(body, token, deadline, signal) {
    signal?.throwIfAborted();
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
    if (this.#options.traceparent) headers.traceparent = this.#options.traceparent;
    // Called as a function: a browser's fetch refuses to be a method of anything but its window.
    const { fetch } = this.#options;
    // Node 18 has no AbortSignal.any.
    const cut = new AbortController();
    const leave = () => cut.abort(signal.reason);
    const timer = setTimeout(() => cut.abort(new DOMException("late", "TimeoutError")), this.#patience(deadline));
    signal?.addEventListener("abort", leave);
    let response, text;
    try {
      response = await fetch(this.url + ENDPOINT, { method: "POST", headers, body, signal: cut.signal });
      text = await response.text();
    } catch (cause) {
      throw unreachable(this.url, cause, this.#options.timeoutMs);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", leave);
    }
    return resultOf(response, text, this.url);
  }
}

// Over at once where the caller aborts.
async function pause(wait, signal) {
  let timer, over;
  await new Promise((resolve) => {
    over = resolve;
    timer = setTimeout(over, wait);
    signal?.addEventListener("abort", over);
  });
  clearTimeout(timer);
  signal?.removeEventListener("abort", over);
}

function asking(source, until) {
  const held = { token: undefined, until };
  held.asked = tokenFrom(source).then((token) => (held.token = token));
  return held;
}

async function tokenFrom(source) {
  let token;
  try {
    token = typeof source === "function" ? await source() : source;
  } catch (cause) {
    if (cause instanceof MemoryError) throw cause;
    throw new DependencyUnavailable(`The source of the token failed with ${cause?.name}.`, {}, { cause });
  }
  const stripped = typeof token === "string" ? token.trim() : "";
  if (!/^[\x21-\x7e]+$/.test(stripped)) {
    throw new AuthenticationFailed("The token is not a JWT: it is empty, or holds characters no token has.");
  }
  return stripped;
}

// JSON.stringify would write null for what is not finite, and an invalid Date is null already.
function representable(name, value) {
  const given = this[name];
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new InvalidParams(`${name} is ${value}, which JSON has no number for`);
  }
  if (typeof value === "bigint") {
    throw new InvalidParams(`${name} is a BigInt, which JSON has no form for: give a number or a text`);
  }
  if (given instanceof Date && Number.isNaN(given.getTime())) {
    throw new InvalidParams(`${name} is an invalid Date`);
  }
  return value;
}

function unreachable(url, cause, timeoutMs) {
  const reason = cause.cause?.code ?? cause.message;
  let message = `No service answers at ${url} (${reason}): does \`agentcore serve\` run there?`;
  if (cause.name === "TimeoutError") {
    message = `The service at ${url} did not answer within ${timeoutMs / 1000} s.`;
  } else if (LOST.includes(cause.cause?.code)) {
    message = `No whole answer came from ${url} (${reason}): the connection was lost on the way.`;
  }
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
  const unsure = error instanceof DependencyUnavailable && error.retryable && (repeatable || error.notSent);
  return error instanceof NotReady || unsure ? backoff : undefined;
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
  const Known = BY_STATUS[response.status] ?? DependencyUnavailable;
  const sure = Known !== DependencyUnavailable || response.status >= 500;
  throw new Known(message + (sure ? "." : ": is it the memory service?"), data);
}

function parsed(text) {
  try {
    const answer = JSON.parse(text);
    return answer !== null && typeof answer === "object" && !Array.isArray(answer) ? answer : {};
  } catch {
    return {};
  }
}
