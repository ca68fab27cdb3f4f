// The memory API of an AgentCore Memory service over HTTP.

export { MemoryClient } from "./methods.js";
export * from "./errors.js";
