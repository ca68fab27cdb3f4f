// Written by scripts/write_typescript.py from the OpenRPC document.

/** What went wrong; `retryable` says whether the same request may succeed later. */
export class MemoryError extends Error {
  static code = -32603;
  static retryable = false;

  constructor(message, data = {}, options = undefined) {
    super(message || new.target.said, options);
    this.name = new.target.name;
    this.code = new.target.code;
    this.retryable = new.target.retryable;
    this.data = data;
  }
}
MemoryError.said = "Something went wrong inside the memory service.";

export class ParseError extends MemoryError {
  static code = -32700;
  static retryable = false;
  static said = "Parse error";
}

export class InvalidRequest extends MemoryError {
  static code = -32600;
  static retryable = false;
  static said = "Invalid Request";
}

export class MethodNotFound extends MemoryError {
  static code = -32601;
  static retryable = false;
  static said = "Method not found";
}

export class InvalidParams extends MemoryError {
  static code = -32602;
  static retryable = false;
  static said = "Invalid params";
}

export class InternalError extends MemoryError {
  static code = -32603;
  static retryable = false;
  static said = "Internal error";
}

export class NotFound extends MemoryError {
  static code = -32001;
  static retryable = false;
  static said = "No such memory.";
}

export class Conflict extends MemoryError {
  static code = -32002;
  static retryable = false;
  static said = "The request contradicts what is already stored.";
}

export class TooLarge extends MemoryError {
  static code = -32003;
  static retryable = false;
  static said = "The request is larger than the service accepts.";
}

export class RateLimited extends MemoryError {
  static code = -32004;
  static retryable = true;
  static said = "Too many requests; `data.retry_after_seconds` says how long to wait.";
}

export class DependencyUnavailable extends MemoryError {
  static code = -32005;
  static retryable = true;
  static said = "A part the service depends on does not answer.";
}

export class NotReady extends MemoryError {
  static code = -32006;
  static retryable = true;
  static said = "The service is starting or stopping.";
}

export class AuthenticationFailed extends MemoryError {
  static code = -32103;
  static retryable = false;
  static said = "Authentication failed.";
}

export class NotAuthorised extends MemoryError {
  static code = -32104;
  static retryable = false;
  static said = "The token lacks the scope this method needs.";
}

const BY_CODE = new Map([
  ParseError,
  InvalidRequest,
  MethodNotFound,
  InvalidParams,
  InternalError,
  NotFound,
  Conflict,
  TooLarge,
  RateLimited,
  DependencyUnavailable,
  NotReady,
  AuthenticationFailed,
  NotAuthorised,
].map((each) => [each.code, each]));

/** The error of an error object that was received; an unknown code becomes MemoryError. */
export function fromWire(code, message, data) {
  return new (BY_CODE.get(code) ?? MemoryError)(message, data);
}
