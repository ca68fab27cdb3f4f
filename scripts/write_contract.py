"""Writes the committed contract: the OpenRPC document, the JSON Schemas, the error table. A test compares them."""

from __future__ import annotations

import json
from pathlib import Path

from agentcore.admission import HTTP_STATUS
from agentcore.errors import WIRE_ERRORS, AgentCoreError
from agentcore.memory.jsonrpc import DISCOVER, TITLE, memory_methods, schema_document, service_document

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"

ERROR_TABLE = """\
# Errors

Every failure is a JSON-RPC error object with one of these codes. They are never renumbered. The message may
be more precise than the one printed here; `data` names what is wrong where there is more to say, and holds
`"retryable": true` where the same request may succeed later. For wrong params `data` is either
`{"errors": [{"field", "problem"}, ...]}` or, with the problem in the message, `{"field"}`.

`data.cause` distinguishes errors of one code: a client raises the class of the cause, else that of the code.

A store that ends with -32005 may still have been stored, as where the connection broke between the commit
and its acknowledgement: try it again under the same `idempotency_key`.

The error of one call always travels with HTTP 200. The status below is that of a request whose whole answer
is one such error: no token, a body that is too large, too many requests.

| Code | Name | Class | Cause | Message | HTTP status | Retryable |
|---|---|---|---|---|---|---|
"""


def contract_files() -> dict[str, str]:
    methods = memory_methods()
    described = [method for method in methods if method.name != DISCOVER]
    schemas = schema_document(described, f"{TITLE}: params and results")
    return {
        "openrpc.json": json.dumps(service_document(methods), indent=2) + "\n",
        "schemas.json": json.dumps(schemas, indent=2) + "\n",
        "errors.md": ERROR_TABLE + "".join(_error_row(error) for error in WIRE_ERRORS),
    }


def _error_row(error: type[AgentCoreError]) -> str:
    status = HTTP_STATUS.get(error.code, 200)
    retryable = "yes" if error.retryable else "no"
    cause = f"`{error.cause}`" if error.cause else ""
    return (
        f"| {int(error.code)} | {error.code.name} | `{error.__name__}` | {cause} | {error().message} "
        f"| {status} | {retryable} |\n"
    )


if __name__ == "__main__":
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in contract_files().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")
