"""The memory as a Model Context Protocol server."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.types import Receive, Scope, Send

from agentcore import __version__
from agentcore.agents.scope import MemoryScope
from agentcore.agents.tool_operations import Confirmations
from agentcore.agents.tools import ALL_TOOLS, MemoryTools, ToolDefinition, memory_instructions, tools_within
from agentcore.agents.working_template import WorkingTemplate
from agentcore.memory.api import MemoryApi

NAME = "agentcore-memory"

_Context = ServerRequestContext[Any, Any]


def memory_server(
    memory: MemoryApi,
    scope: MemoryScope | None = None,
    confirmations: Confirmations | None = None,
    offered: Sequence[str] = ALL_TOOLS,
    template: WorkingTemplate | None = None,
) -> Server[Any]:
    """Creates an MCP server over one agent's memory, for any transport of the SDK.

    Lists the tools in `offered`; a call of another one returns the error for the scope that the token lacks.
    """
    tools = MemoryTools(memory, scope, tools=ALL_TOOLS, confirmations=confirmations, template=template)
    listed = [tool for tool in tools.definitions if tool.name in offered or tool.name not in ALL_TOOLS]
    instructions = memory_instructions([tool.name for tool in listed])

    async def list_tools(context: _Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_described(tool) for tool in listed])

    async def call_tool(context: _Context, params: CallToolRequestParams) -> CallToolResult:
        answer = await tools.answer(params.name, params.arguments)
        return CallToolResult(content=[TextContent(text=answer.text)], is_error=answer.failed)

    return Server(
        NAME,
        version=__version__,
        title="AgentCore Memory",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(memory: MemoryApi, scope: MemoryScope | None = None) -> None:
    """Serves on standard input and output until the input ends; redirects stray prints to standard error."""
    server = memory_server(memory, scope)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def answer(
    memory: MemoryApi, key: bytes, scopes: Collection[str], scope: Scope, receive: Receive, send: Send
) -> None:
    """Answers one HTTP message, statelessly. `key`: makes a confirmation valid in the next message, in any process."""
    server = memory_server(memory, confirmations=Confirmations(key), offered=tools_within(scopes))
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


def _described(tool: ToolDefinition) -> Tool:
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters),
        annotations=ToolAnnotations(
            read_only_hint=tool.reads_only, destructive_hint=tool.destructive, open_world_hint=False
        ),
    )
