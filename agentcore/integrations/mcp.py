"""The memory as a Model Context Protocol server."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from agentcore import __version__
from agentcore.agents.scope import MemoryScope
from agentcore.agents.tool_contract import failure_sentence
from agentcore.agents.tool_operations import Confirmations
from agentcore.agents.tools import ALL_TOOLS, MemoryTools, ToolDefinition, memory_instructions, tools_within
from agentcore.agents.working_template import WorkingTemplate
from agentcore.errors import AgentCoreError, InvalidParams, NotFound
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import GetParams, ListParams

NAME = "agentcore-memory"
SCHEME = "memory://"
PROMPT = "use_memory"
PAGE = 50
NAME_CHARS = 80

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
    resources = _Resources(memory, scope or MemoryScope())

    async def list_tools(context: _Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_described(tool) for tool in listed])

    async def call_tool(context: _Context, params: CallToolRequestParams) -> CallToolResult:
        answer = await tools.answer(params.name, params.arguments)
        return CallToolResult(content=[TextContent(text=answer.text)], is_error=answer.failed)

    async def get_prompt(context: _Context, params: GetPromptRequestParams) -> GetPromptResult:
        if params.name != PROMPT:
            raise MCPError(INVALID_PARAMS, f"There is no prompt {params.name!r}; there is {PROMPT}.")
        return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(text=instructions))])

    return Server(
        NAME,
        version=__version__,
        title="AgentCore Memory",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=resources.list,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_list_prompts=_list_prompts,
        on_get_prompt=get_prompt,
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


class _Resources:
    def __init__(self, memory: MemoryApi, scope: MemoryScope) -> None:
        self._memory = memory
        self._scope = scope

    async def list(self, context: _Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        cursor = None if params is None else params.cursor
        try:
            page = await self._memory.list(ListParams(limit=PAGE, cursor=cursor, **self._scope.filters()))
        except (AgentCoreError, ValidationError) as failure:
            raise _refused(failure) from failure
        return ListResourcesResult(
            resources=[_pointer(record) for record in page.memories], next_cursor=page.next_cursor
        )

    async def templates(self, context: _Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    name="memory",
                    uri_template=f"{SCHEME}{{memory_id}}",
                    mime_type="application/json",
                    description="One memory with all its fields, by the id that recall_memory answered.",
                )
            ]
        )

    async def read(self, context: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        try:
            memory_id = _id_in(params.uri)
            record = (await self._memory.get(GetParams(memory_id=memory_id))).memory
            if not self._scope.holds(record):
                raise NotFound
        except (AgentCoreError, ValidationError) as failure:
            raise _refused(failure) from failure
        return ReadResourceResult(
            contents=[
                TextResourceContents(
                    uri=params.uri, mime_type="application/json", text=record.model_dump_json(exclude_none=True)
                )
            ]
        )


def _pointer(record: MemoryRecord) -> Resource:
    return Resource(
        uri=f"{SCHEME}{record.memory_id}",
        name=" ".join(record.content.split())[:NAME_CHARS],
        description=f"{record.memory_type.value}, {record.timestamp:%Y-%m-%d}",
        mime_type="application/json",
    )


def _id_in(uri: str) -> UUID:
    try:
        return UUID(uri.removeprefix(SCHEME))
    except ValueError as cause:
        raise NotFound from cause


def _refused(failure: AgentCoreError | ValidationError) -> MCPError:
    theirs = isinstance(failure, (NotFound, InvalidParams, ValidationError))
    return MCPError(INVALID_PARAMS if theirs else INTERNAL_ERROR, failure_sentence(failure))


async def _list_prompts(context: _Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
    return ListPromptsResult(prompts=[Prompt(name=PROMPT, description="How to use this memory.")])
