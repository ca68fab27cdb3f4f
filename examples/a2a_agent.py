"""An A2A agent that remembers across conversations, without a language model.

Its own token opens its memory. Callers have tokens that this agent made, which open no memory; each caller is a
user in its memory. With the service running:

    export LIBRARIAN_SECRET=$(openssl rand -hex 32)
    export AGENTCORE_TOKEN=$(agentcore token --agent librarian)
    python examples/a2a_agent.py --token-for planner    # the token of planner
    python examples/a2a_agent.py --port 9000
"""

from __future__ import annotations

import argparse
import asyncio
import os
from datetime import UTC, datetime

import uvicorn
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, PROTOCOL_VERSION_1_0
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, AuthenticationError, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse

from agentcore.agent_card import A2A_CONTEXT
from agentcore.agents.ending import end_session
from agentcore.agents.scope import MemoryScope
from agentcore.auth import SharedSecret, TokenRules, TokenVerifier, mint_token
from agentcore.client import MemoryClient
from agentcore.config import load_settings
from agentcore.errors import AuthenticationFailed
from agentcore.params import RetrieveParams, StoreParams
from agentcore.server import bound

NAME = "librarian"
# Only tokens that this agent made for its own calls are valid.
RULES = TokenRules("HS256", issuer=NAME, audience=NAME)
CALLER_SECONDS = 24 * 3_600


class Librarian(AgentExecutor):
    """Stores statements, answers questions from memory; a goodbye ends the conversation."""

    def __init__(self, memory: MemoryClient) -> None:
        self._memory = memory

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        caller = context.call_context.user.user_name
        memory = self._memory.traced(
            traceparent=context.call_context.state["headers"].get("traceparent"),
            # Stored with the memory; the token identifies the caller.
            a2a_context={
                **context.metadata.get(A2A_CONTEXT, {}),
                "source_agent": caller,
                "target_agent": NAME,
                "conversation_id": context.context_id,
                "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )
        said = context.get_user_input()
        if said.casefold().startswith("goodbye"):
            ended = await end_session(memory, context.context_id, MemoryScope(user_id=caller))
            reply = f"Goodbye. We spoke of this: {ended.summary}" if ended.summary else "Goodbye."
        elif said.rstrip().endswith("?"):
            found = await memory.retrieve(RetrieveParams(query=said, k=1, user_id=caller))
            reply = f"You told me: {found.memories[0].content}" if found.memories else "You never told me."
        else:
            await memory.store(StoreParams(content=said, speaker=caller, user_id=caller, session_id=context.context_id))
            reply = "I will remember that."
        await event_queue.enqueue_event(new_text_message(reply, context_id=context.context_id))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """There is nothing to cancel: an answer is one message."""


class Callers(AuthenticationBackend):
    """Authenticates a caller by a JWT that was made for this agent."""

    def __init__(self, verifier: TokenVerifier) -> None:
        self._verifier = verifier

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        if conn.url.path == AGENT_CARD_WELL_KNOWN_PATH:
            return None
        try:
            principal = await self._verifier.verify(conn.headers.get("authorization"))
        except AuthenticationFailed as refusal:
            raise AuthenticationError(refusal.message) from refusal
        return AuthCredentials(principal.scopes), SimpleUser(principal.agent_id)


def refused(conn: HTTPConnection, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 401, headers={"WWW-Authenticate": 'Bearer realm="librarian"'})


def card(url: str) -> AgentCard:
    return AgentCard(
        name="Librarian",
        description="Remembers what you tell it, from one conversation to the next.",
        version="1.0.0",
        capabilities=AgentCapabilities(
            streaming=False,
            extensions=[
                AgentExtension(
                    uri=A2A_CONTEXT, description="The metadata of that name is kept with what is remembered."
                )
            ],
        ),
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=PROTOCOL_VERSION_1_0)
        ],
        security_schemes={
            "jwt": SecurityScheme(
                http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer", bearer_format="JWT")
            )
        },
        security_requirements=[SecurityRequirement(schemes={"jwt": StringList()})],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[
            AgentSkill(
                id="remember",
                name="Remember",
                tags=["memory"],
                description="Tell it something; ask it later, with a question mark.",
            )
        ],
    )


def application(url: str, memory: MemoryClient, verifier: TokenVerifier) -> Starlette:
    handler = DefaultRequestHandler(Librarian(memory), InMemoryTaskStore(), card(url))
    return Starlette(
        routes=[*create_agent_card_routes(card(url)), *create_jsonrpc_routes(handler, "/")],
        middleware=[Middleware(AuthenticationMiddleware, backend=Callers(verifier), on_error=refused)],
    )


def own_secret() -> str:
    """Returns the secret that signs the callers' tokens."""
    secret = os.environ.get("LIBRARIAN_SECRET")
    if secret is None:
        raise SystemExit("Set LIBRARIAN_SECRET: openssl rand -hex 32 makes one.")
    return secret


def token_for(caller: str) -> str:
    return mint_token(own_secret(), caller, (), CALLER_SECONDS, issuer=RULES.issuer, audience=RULES.audience)


async def main(port: int) -> None:
    settings = load_settings()
    if settings.agentcore_token is None:
        raise SystemExit("Set AGENTCORE_TOKEN: agentcore token --agent librarian prints one.")
    verifier = TokenVerifier(RULES, SharedSecret(own_secret()))
    with bound("127.0.0.1", port) as address:
        url = f"http://127.0.0.1:{address.getsockname()[1]}"
        token = settings.agentcore_token.get_secret_value()
        async with MemoryClient(settings.agentcore_url, token) as memory:
            app = application(f"{url}/", memory, verifier)
            address.listen()
            print(f"The librarian listens on {url}", flush=True)
            await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[address])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An A2A agent that remembers.")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--token-for", metavar="CALLER", help="print a token for this caller, and end")
    asked = parser.parse_args()
    if asked.token_for is None:
        asyncio.run(main(asked.port))
    else:
        print(token_for(asked.token_for))
