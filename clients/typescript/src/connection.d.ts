/** A JWT, or a function that gives one: asked when first needed, and again, once, when the service refuses it. */
export type TokenSource = string | (() => string | Promise<string>);

export interface ClientOptions {
  /** For each try; with `failOpen`, for a search, a context or a summary in all. Default 30,000. */
  timeoutMs?: number;
  /** A call is tried again only where that cannot store, change or delete twice. Default 3. */
  maxAttempts?: number;
  /** A search, a context or a summary is empty where the service does not answer; the receipt says so. */
  failOpen?: boolean;
  /** Where the warnings of `failOpen` go. Default console.warn. */
  warn?: (message: string) => void;
  /** A W3C trace context that each call carries. */
  traceparent?: string;
  /** The A2A context that each call carries; it comes to stand in the provenance of what is stored. */
  a2aContext?: Record<string, unknown>;
  /** Instead of the global fetch. */
  fetch?: typeof globalThis.fetch;
}

/** Of one call, beside its params. */
export interface CallOptions {
  /** Ends the call, which rejects with the signal's reason; a write may have happened all the same. */
  signal?: AbortSignal;
}
