// What a reading call answers where memory cannot be asked and the caller goes on without it.

const receipt = (reason) => ({
  searched: {}, candidates: {}, dropped: [], fit: null, degraded: [reason], timings_ms: {},
});

const EMPTY = {
  "memory.retrieve": (reason) => ({ memories: [], receipt: receipt(reason) }),
  "memory.get_context": (reason) => ({
    context: "", token_count: 0, memory_ids: [], encoding: null, memories: null, receipt: receipt(reason),
  }),
  "memory.summarize": (reason) => ({
    summary: "", token_count: 0, memory_ids: [], memory_count: 0, receipt: receipt(reason),
  }),
};

export const emptyResult = (method) => EMPTY[method];
