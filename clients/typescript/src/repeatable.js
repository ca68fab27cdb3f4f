// Which calls that write may be tried again: those that cannot store, change or delete twice.

const keyed = (items, key) => items?.every?.((item) => item?.[key] != null) ?? false;

const REPEATABLE = {
  "memory.store": (params) => params?.idempotency_key != null,
  "memory.store_batch": (params) => keyed(params?.items, "idempotency_key"),
  "memory.add_session": (params) => keyed(params?.messages, "message_id"),
  "memory.prune": (params) => params?.dry_run === true,
  "memory.restore": (params) => params?.dry_run === true,
  "memory.configure": () => true,
  "memory.consolidate": () => true,
};

export const isRepeatable = (method, scope, params) =>
  scope === "memory:read" || (REPEATABLE[method]?.(params) ?? false);
