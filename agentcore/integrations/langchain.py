"""Memory as a LangChain retriever, and the memory tools as LangChain tools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import Field, PrivateAttr

from agentcore.agents.recordable import searchable
from agentcore.agents.scope import MemoryScope
from agentcore.agents.tools import USUAL_TOOLS, MemoryTools, ToolDefinition
from agentcore.agents.working_template import WorkingTemplate
from agentcore.integrations import not_installed
from agentcore.integrations.own_loop import OwnLoop
from agentcore.limits import MAX_K
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import MemorySummary
from agentcore.memory.params.memories import RetrieveParams

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool, StructuredTool
except ImportError as cause:
    raise not_installed("langchain", cause) from cause

# Fields of a memory that become metadata of its document, if present.
_TOLD = (
    "memory_type",
    "timestamp",
    "score",
    "similarity",
    "relevance_score",
    "speaker",
    "session_id",
    "task_id",
    "user_id",
    "namespace",
    "external_id",
    "tags",
    "valid_from",
    "valid_to",
    "superseded_by",
)


class MemoryRetriever(BaseRetriever):
    """A retriever over any `MemoryApi`, within `scope`: returns documents, best first, or none.

    `filters` are those of `memory.retrieve` (`memory_types`, `after`, `min_score` ...). The sync calls
    require that the memory's event loop runs in another thread. `loop` is that loop; default: the one running
    at creation.
    """

    memory: MemoryApi = Field(exclude=True, repr=False)
    scope: MemoryScope = Field(default_factory=MemoryScope)
    k: int = Field(5, ge=1, le=MAX_K)
    filters: dict[str, Any] = Field(default_factory=dict)
    loop: asyncio.AbstractEventLoop | None = Field(None, exclude=True, repr=False)

    _loop: OwnLoop = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        self._loop = OwnLoop(self.loop)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return self._loop.waited(self._found(query))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return await self._loop.awaited(self._found(query))

    async def _found(self, query: str) -> list[Document]:
        if not (asked := searchable(query)):
            return []
        within: dict[str, Any] = {**self.filters, **self.scope.filters()}
        found = await self.memory.retrieve(RetrieveParams(query=asked, k=self.k, **within))
        return [_document(memory) for memory in found.memories]


def memory_tools(
    memory: MemoryApi,
    scope: MemoryScope | None = None,
    *,
    tools: Sequence[str] = USUAL_TOOLS,
    template: WorkingTemplate | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> list[BaseTool]:
    """Returns the memory tools for a model's `bind_tools` or an agent."""
    answering, own_loop = MemoryTools(memory, scope, tools=tools, template=template), OwnLoop(loop)
    return [_structured_tool(answering, tool, own_loop) for tool in answering.definitions]


def _structured_tool(tools: MemoryTools, tool: ToolDefinition, loop: OwnLoop) -> BaseTool:
    def wait(**arguments: Any) -> str:
        return loop.waited(tools.call(tool.name, arguments))

    async def answer(**arguments: Any) -> str:
        return await loop.awaited(tools.call(tool.name, arguments))

    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=dict(tool.parameters), func=wait, coroutine=answer
    )


def _document(memory: MemorySummary) -> Document:
    told = memory.model_dump(mode="json", include=set(_TOLD), exclude_none=True)
    return Document(
        id=str(memory.memory_id),
        page_content=memory.content,
        metadata={**memory.metadata, **told, "memory_id": str(memory.memory_id)},
    )
