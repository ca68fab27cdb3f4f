"""An agent that calls the librarian of a2a_agent.py; each run is a new conversation.

export LIBRARIAN_TOKEN=$(python examples/a2a_agent.py --token-for planner)
python examples/a2a_caller.py http://127.0.0.1:9000 "I love African Grey parrots"
python examples/a2a_caller.py http://127.0.0.1:9000 "What bird did I like?"
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Sequence

import httpx
from a2a.client import A2AClientError, ClientConfig, create_client
from a2a.extensions.common import HTTP_EXTENSION_HEADER
from a2a.helpers import get_stream_response_text, new_text_message
from a2a.types import Role, SendMessageRequest

from agentcore.agent_card import A2A_CONTEXT


async def ask(url: str, token: str, texts: Sequence[str]) -> str:
    headers = {"Authorization": f"Bearer {token}", HTTP_EXTENSION_HEADER: A2A_CONTEXT}
    async with httpx.AsyncClient(headers=headers) as http:
        agent = await create_client(url, ClientConfig(streaming=False, httpx_client=http))
        conversation, answers = str(uuid.uuid4()), []
        for text in texts:
            request = SendMessageRequest(
                message=new_text_message(text, role=Role.ROLE_USER, context_id=conversation),
                metadata={A2A_CONTEXT: {"session_id": f"run-{os.getpid()}"}},
            )
            answers += [get_stream_response_text(event) async for event in agent.send_message(request)]
    return "\n".join(answers)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        print(asyncio.run(ask(sys.argv[1], os.environ.get("LIBRARIAN_TOKEN", ""), sys.argv[2:])))
    except A2AClientError as failure:
        sys.exit(f"The agent did not answer: {failure}")
