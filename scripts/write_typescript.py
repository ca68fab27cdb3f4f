"""Writes the derived parts of the TypeScript client: methods, errors, types. A test compares them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentcore.errors import WIRE_ERRORS, AgentCoreError
from agentcore.memory.jsonrpc import memory_methods, service_document

SOURCE = Path(__file__).resolve().parents[1] / "clients" / "typescript" / "src"
HEAD = "// Written by scripts/write_typescript.py from the OpenRPC document.\n\n"
OWN_REFERENCE = re.compile(r"^#/components/schemas/")
SIMPLE = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}

Schema = Mapping[str, Any]

ERROR_ROOT = """\
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

"""
ERROR_TYPES = """\
/** What went wrong; `retryable` says whether the same request may succeed later. */
export declare class MemoryError extends Error {
  static readonly code: number;
  static readonly retryable: boolean;
  readonly code: number;
  readonly retryable: boolean;
  readonly data: Record<string, unknown>;
  constructor(message?: string, data?: Record<string, unknown>, options?: ErrorOptions);
}

"""
CLASS_HEAD = """\
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
"""
ERROR_FOOT = """\
/** The error of an error object that was received; an unknown code becomes MemoryError. */
export function fromWire(code, message, data) {
  const byCause = BY_CAUSE.get(data?.cause);
  return new ((byCause?.code === code ? byCause : BY_CODE.get(code)) ?? MemoryError)(message, data);
}
"""
CLASS_TYPE = """\
/** One agent's memory, over HTTP. */
export declare class MemoryClient {
  constructor(url: string, token: TokenSource, options?: ClientOptions);
  readonly url: string;
  /** Store an interaction; `options` are the other params of store. */
  addInteraction(interaction: Interaction, options?: Omit<StoreParams, "interaction">,
    call?: CallOptions): Promise<StoreResult>;
  /** The best memories for a query, best first; `options` are the other params of retrieve. */
  retrieveMemories(query: string, options?: Omit<RetrieveParams, "query">,
    call?: CallOptions): Promise<MemorySummary[]>;
  /** A prompt-ready context; `options` are the other params of getContext. */
  getRelevantContext(query: string, options?: Omit<GetContextParams, "query">,
    call?: CallOptions): Promise<string>;
"""


def client_files() -> dict[str, str]:
    document = service_document(memory_methods())
    return {
        "methods.js": HEAD + _methods(document),
        "errors.js": HEAD + _errors(),
        "index.d.ts": HEAD + _types(document),
    }


def _camel(name: str) -> str:
    first, *others = name.removeprefix("memory.").split("_")
    return first + "".join(part.capitalize() for part in others)


def _methods(document: Schema) -> str:
    parts = [CLASS_HEAD]
    for method in document["methods"]:
        name, scope = json.dumps(method["name"]), json.dumps(method["x-scope"])
        given = "params" if _needs_params(method) else "params = {}"
        parts.append(
            f"\n  /** {method['summary']} */\n  {_camel(method['name'])}({given}, call = {{}}) {{\n"
            f"    return this.#call({name}, {scope}, params, call);\n  }}\n"
        )
    return "".join([*parts, "}\n"])


def _errors() -> str:
    classes = "".join(
        f"export class {error.__name__} extends {_parent(error)} {{\n  static code = {int(error.code)};\n"
        f"{_cause(error)}  static retryable = {json.dumps(error.retryable)};\n"
        f"  static said = {json.dumps(error().message)};\n}}\n\n"
        for error in WIRE_ERRORS
    )
    return ERROR_ROOT + classes + _map("code", has_cause=False) + _map("cause", has_cause=True) + ERROR_FOOT


def _map(key: str, *, has_cause: bool) -> str:
    listed = [error for error in WIRE_ERRORS if (error.cause is not None) is has_cause]
    names = "".join(f"  {error.__name__},\n" for error in listed)
    return f"const BY_{key.upper()} = new Map([\n{names}].map((each) => [each.{key}, each]));\n\n"


def _cause(error: type[AgentCoreError]) -> str:
    return "" if error.cause is None else f"  static cause = {json.dumps(error.cause)};\n"


def _parent(error: type[AgentCoreError]) -> str:
    [parent] = error.__bases__
    return "MemoryError" if parent is AgentCoreError else parent.__name__


def _types(document: Schema) -> str:
    parts = [
        'import type { CallOptions, ClientOptions, TokenSource } from "./connection.js";\n'
        'export type { CallOptions, ClientOptions, TokenSource } from "./connection.js";\n\n'
    ]
    parts += [_declared(name, schema) for name, schema in document["components"]["schemas"].items()]
    parts.append(ERROR_TYPES)
    for error in WIRE_ERRORS:
        said = error().message.rstrip(".")
        parts.append(
            f"/** {said}. */\nexport declare class {error.__name__} extends {_parent(error)} {{\n"
            f"  static readonly code: {int(error.code)};\n"
            f"  readonly code: {int(error.code)};\n}}\n\n"
        )
    parts.append(CLASS_TYPE)
    for method in document["methods"]:
        name = _named(method["result"]["schema"])
        optional = "" if _needs_params(method) else "?"
        parts.append(
            f"  /** {method['summary']} */\n  {_camel(method['name'])}(params{optional}: "
            f"{name.removesuffix('Result')}Params, call?: CallOptions): Promise<{name}>;\n"
        )
    return "".join([*parts, "}\n"])


def _named(schema: Schema) -> str:
    return OWN_REFERENCE.sub("", schema["$ref"])


def _needs_params(method: Schema) -> bool:
    return any(param["required"] for param in method["params"])


def _declared(name: str, schema: Schema) -> str:
    said = f"/** {' '.join(schema['description'].split())} */\n" if schema.get("description") else ""
    if "properties" not in schema:
        closed = "Record<string, never>" if schema.get("type") == "object" else _type(schema)
        return f"{said}export type {name} = {closed};\n\n"
    return f"{said}export interface {name} {{\n{''.join(_members(schema))}}}\n\n"


def _members(schema: Schema) -> Iterator[str]:
    required = schema.get("required", [])
    for name, member in schema["properties"].items():
        if member.get("description"):
            yield f"  /** {member['description']} */\n"
        yield f"  {name}{'' if name in required else '?'}: {_type(member)};\n"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return OWN_REFERENCE.sub("", schema["$ref"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        inner = _type(schema.get("items", {}))
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind == "object":
        return _object(schema)
    return SIMPLE.get(str(kind), "unknown")


def _object(schema: Schema) -> str:
    values = schema.get("additionalProperties")
    value = _type(values) if isinstance(values, dict) else "unknown"
    keys = schema.get("propertyNames")
    return f"Partial<Record<{_type(keys)}, {value}>>" if keys else f"Record<string, {value}>"


if __name__ == "__main__":
    SOURCE.mkdir(parents=True, exist_ok=True)
    for name, text in client_files().items():
        (SOURCE / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")
