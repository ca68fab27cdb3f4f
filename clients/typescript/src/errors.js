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
  static said = "Too many requests, or overload; `data.retry_after_seconds` says how long to wait.";
}

export class DependencyUnavailable extends MemoryError {
  static code = -32005;
  static retryable = true;
  static said = "A part the service depends on does not answer.";
}

export class Unreachable extends DependencyUnavailable {
  static code = -32005;
  static cause = "unreachable";
  static retryable = true;
  static said = "A part the service depends on cannot be reached.";
}

export class PoolExhausted extends DependencyUnavailable {
  static code = -32005;
  static cause = "pool_exhausted";
  static retryable = true;
  static said = "Every database connection is in use; none became free in time.";
}

export class TransactionConflict extends DependencyUnavailable {
  static code = -32005;
  static cause = "transaction_conflict";
  static retryable = true;
  static said = "A deadlock or a concurrent change ended this transaction; nothing of it was kept.";
}

export class StatementTimeout extends DependencyUnavailable {
  static code = -32005;
  static cause = "statement_timeout";
  static retryable = true;
  static said = "PostgreSQL took too long for this call.";
}

export class DiskFull extends DependencyUnavailable {
  static code = -32005;
  static cause = "disk_full";
  static retryable = false;
  static said = "A disk of the service is full: free space, or make it larger.";
}

export class ServerLimit extends DependencyUnavailable {
  static code = -32005;
  static cause = "server_limit";
  static retryable = false;
  static said = "A limit in PostgreSQL's configuration was reached, usually temp_file_limit: raise it.";
}

export class ReadOnlyDatabase extends DependencyUnavailable {
  static code = -32005;
  static cause = "read_only";
  static retryable = false;
  static said = "PostgreSQL accepts no changes: this server is a standby. Set DATABASE_URL to the primary.";
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

const BY_CAUSE = new Map([
  Unreachable,
  PoolExhausted,
  TransactionConflict,
  StatementTimeout,
  DiskFull,
  ServerLimit,
  ReadOnlyDatabase,
].map((each) => [each.cause, each]));

/** The error of an error object that was received; an unknown code becomes MemoryError. */
export function fromWire(code, message, data) {
  const byCause = BY_CAUSE.get(data?.cause);
  return new ((byCause?.code === code ? byCause : BY_CODE.get(code)) ?? MemoryError)(message, data);
}
