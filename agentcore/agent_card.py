"""The A2A agent card of the service. It names the service's own binding, since A2A's messages are not supported."""

from __future__ import annotations

from typing import Any

AGENT_CARD = "/.well-known/agent-card.json"
BINDING = "urn:agentcore:memory-jsonrpc:v1"
A2A_CONTEXT = "urn:agentcore:a2a-context:v1"
PROTOCOL_VERSION = "1.0"

_JSON = "application/json"
_SKILLS = (
    (
        "remember",
        "Store interactions and facts, one by one or a whole conversation.",
        ["memory", "store"],
        "memory.store, memory.store_batch, memory.add_session",
    ),
    (
        "recall",
        "Find what matters for a query, or a context for a prompt within a token budget.",
        ["memory", "search", "context"],
        "memory.retrieve, memory.get_context",
    ),
    (
        "correct",
        "Change a memory and keep what it was; take a change back.",
        ["memory", "history"],
        "memory.update, memory.history, memory.revert",
    ),
    (
        "forget",
        "Delete, prune with a dry run, restore what was archived.",
        ["memory", "forgetting"],
        "memory.delete, memory.prune, memory.restore",
    ),
)


def agent_card(url: str, version: str) -> dict[str, Any]:
    """Returns the card of a service at `url`; callers need their own token."""
    return {
        "name": "AgentCore Memory",
        "description": "The lasting memory of an agent: whoever calls with a JWT acts on the memory of the "
        "token's subject, and on no other. JSON-RPC 2.0; rpc.discover describes every method.",
        "version": version,
        "supportedInterfaces": [{"url": url, "protocolBinding": BINDING, "protocolVersion": PROTOCOL_VERSION}],
        "capabilities": {
            "streaming": False,
            "pushNotifications": False,
            "extendedAgentCard": False,
            "extensions": [
                {
                    "uri": A2A_CONTEXT,
                    "required": False,
                    "description": "A request may carry a2a_context (source_agent, target_agent, trace_id, "
                    "timestamp, session_id, conversation_id): it comes back on the answer, and is "
                    "kept with what was stored.",
                }
            ],
        },
        "securitySchemes": {
            "jwt": {
                "httpAuthSecurityScheme": {
                    "scheme": "Bearer",
                    "bearerFormat": "JWT",
                    "description": "sub is the agent; scope holds memory:read, memory:write, memory:admin.",
                }
            }
        },
        "securityRequirements": [{"schemes": {"jwt": {"list": ["memory:read", "memory:write"]}}}],
        "defaultInputModes": [_JSON],
        "defaultOutputModes": [_JSON],
        "skills": [
            {"id": name, "name": name.title(), "description": said, "tags": tags, "examples": [methods]}
            for name, said, tags, methods in _SKILLS
        ],
    }
