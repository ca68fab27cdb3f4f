"""Working memory: a task's newest memories, cached in Redis with a TTL and a token budget.

Copies are validated against PostgreSQL, so a failing Redis makes answers slower, never wrong.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import time
from typing import Any, cast
from uuid import UUID, uuid4

from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisUnreachable
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeout

from agentcore.circuit_breaker import CircuitBreaker, CircuitOpen
from agentcore.errors import AgentCoreError, DependencyUnavailable, Unreachable
from agentcore.memory.keys import encode_segment

MAX_ENTRIES = 200
READY_KEY = "memory:ready"
# The id of this Redis: erasure reports every other one.
INSTANCE_KEY = "memory:instance"
GENERATION_PREFIX = "memory:generation:"
RECORDED_SECONDS = 3_600
RECORD_TIMEOUT_SECONDS, RETRY_SECONDS = 2.0, 30.0
Record = Callable[[UUID, int], Awaitable[None]]
_ANOTHER_REDIS = -1

_UNREADABLE = UUID(int=0)
logger = logging.getLogger(__name__)

# KEYS[1]: the agent's generation; ARGV: a new value, TTL in seconds.
_GENERATION = """
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('GET', KEYS[1])
"""

# KEYS[1] the task, KEYS[2] the id of this Redis, KEYS[3] the generation of the agent; ARGV: TTL in seconds,
# token budget, "1" to create the copy or "0" to add to one, most entries, recorded id, generation, then
# pairs of token count and entry, newest first.
# Returns 1 after a write, 0 if there was none or the generation ended, -1 if this is another Redis.
_WRITE = """
if redis.call('GET', KEYS[2]) ~= ARGV[5] then return -1 end
if redis.call('GET', KEYS[3]) ~= ARGV[6] then return 0 end
local key, ttl, budget, make, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local there = redis.call('EXISTS', key)
if make == '0' and there == 0 then return 0 end
if make == '1' and there == 1 then return 0 end
for i = #ARGV - 1, 7, -2 do redis.call('LPUSH', key, ARGV[i] .. '|' .. ARGV[i + 1]) end
local kept, used = 0, 0
for _, entry in ipairs(redis.call('LRANGE', key, 0, -1)) do
    used = used + tonumber(string.match(entry, '^(%d+)|'))
    if kept == most or (kept > 0 and used > budget) then break end
    kept = kept + 1
end
redis.call('LTRIM', key, 0, kept - 1)
redis.call('EXPIRE', key, ttl)
return 1
"""


@dataclass(frozen=True)
class WorkingEntry:
    """A memory in a task's working memory; `summary` is empty if it equals the content."""

    memory_id: UUID
    memory_type: str
    content: str
    timestamp: datetime
    speaker: str | None
    token_count: int
    version: int
    summary: str = ""


_ENTRY = TypeAdapter(WorkingEntry)
Execute = Callable[..., Awaitable[Any]]


class GuardedRedis(Redis):
    """A client whose commands, except pipelines, fail fast while the circuit is open."""

    circuit: CircuitBreaker

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Raises redis ConnectionError while the circuit is open; any error reply closes it."""
        execute: Execute = super().execute_command
        try:
            with self.circuit.guard(RedisUnreachable, RedisTimeout, OSError, answers=(ResponseError,)):
                return await execute(*args, **options)
        except CircuitOpen as cause:
            raise RedisUnreachable(str(cause)) from None


class WorkingMemory:
    """Copies of all tasks. If Redis is off or fails, `recall` returns None, writes False."""

    def __init__(
        self, redis: Redis | None, *, ttl_seconds: int, budget_tokens: int, record: Record | None = None
    ) -> None:
        self.ttl_seconds = ttl_seconds
        self._record = record
        self._recorded: tuple[UUID | None, float] | None = None
        self.budget_tokens = budget_tokens
        self._redis = redis
        self._write = None if redis is None else redis.register_script(_WRITE)
        self._generation = None if redis is None else redis.register_script(_GENERATION)

    async def generation(self, agent_id: str) -> bytes | None:
        """Returns the token that `add` and `make` require; None without Redis.

        Get it before rows are read or committed: an erasure ends it, and later writes with it are refused.
        """
        script, keys = self._generation, [_generation_key(agent_id)]
        if script is None:
            return None
        found = await _or_none(lambda: cast(Awaitable[Any], script(keys=keys, args=[uuid4().hex, self.ttl_seconds])))
        return cast(bytes | None, found)

    async def end_generation(self, agent_id: str) -> None:
        """Refuses later writes with the generation. Raises DependencyUnavailable."""
        await self.drop([_generation_key(agent_id).encode()])

    async def add(self, agent_id: str, task_id: str, entries: Sequence[WorkingEntry], generation: bytes | None) -> bool:
        """Adds entries, newest first, to an existing copy and resets its TTL; returns whether it did."""
        return await self._script(agent_id, task_id, entries, self.ttl_seconds, generation, make="0")

    async def make(
        self, agent_id: str, task_id: str, entries: Sequence[WorkingEntry], ttl_seconds: int, generation: bytes | None
    ) -> bool:
        """Creates a copy from entries, newest first, unless one exists; returns whether it did."""
        return await self._script(agent_id, task_id, entries, ttl_seconds, generation, make="1")

    async def recall(self, agent_id: str, task_id: str) -> list[WorkingEntry] | None:
        """Returns the copy, newest first, or None. Drops a malformed copy."""
        key = _key(agent_id, task_id)
        stored = await self._ask("LRANGE", key, 0, -1) or ()
        entries = [each for entry in stored if (each := _load(entry, key)) is not None]
        if len(entries) < len(stored):
            await self.forget(agent_id, [task_id])
            return None
        return entries or None

    async def forget(self, agent_id: str, task_ids: Sequence[str]) -> None:
        """Deletes the copies of these tasks; ignores failures."""
        if task_ids:
            await self._ask("DEL", *(_key(agent_id, task_id) for task_id in task_ids))

    async def held(self, agent_id: str) -> dict[bytes, set[UUID]]:
        """Returns memory ids by key, zero for an unreadable entry. Raises DependencyUnavailable."""
        redis = self._redis
        if redis is None:
            return {}
        found: dict[bytes, set[UUID]] = {}
        try:
            async for key in redis.scan_iter(match=_key(agent_id, "") + "*", count=1_000):
                entries = await cast(Awaitable[list[bytes]], redis.lrange(key, 0, -1))
                loaded = [_load(entry, key.decode()) for entry in entries]
                found[key] = {_UNREADABLE if each is None else each.memory_id for each in loaded}
        except (RedisError, OSError, TimeoutError) as cause:
            raise DependencyUnavailable("Redis did not answer: working memory may remain.") from cause
        return found

    async def drop(self, keys: Collection[bytes]) -> None:
        """Deletes copies by key. Raises DependencyUnavailable."""
        if self._redis is not None and keys:
            try:
                await self._redis.delete(*keys)
            except (RedisError, OSError, TimeoutError) as cause:
                raise DependencyUnavailable("Redis did not answer: working memory may remain.") from cause

    async def instance_id(self) -> UUID | None:
        """Returns the id stored in the Redis, None without one. Raises DependencyUnavailable."""
        if self._redis is None:
            return None
        try:
            await self._ask("SET", INSTANCE_KEY, str(uuid4()), "NX")
            return UUID(bytes(await self._ask("GET", INSTANCE_KEY) or b"").decode())
        except ValueError as cause:
            raise DependencyUnavailable("Redis did not answer: working memory may remain.") from cause

    async def _recorded_id(self) -> UUID | None:
        """Returns the id once it is recorded, so that erasures know every Redis that contains text.

        While one call records it, and for RETRY_SECONDS after a failure, other calls skip the copy.
        """
        now = time()
        if self._recorded is not None and now < self._recorded[1]:
            return self._recorded[0]
        self._recorded = None
        with suppress(AgentCoreError, TimeoutError):
            found = await self.instance_id()
            if found is not None and self._record is not None:
                self._recorded = (None, now + RETRY_SECONDS)
                async with asyncio.timeout(RECORD_TIMEOUT_SECONDS):
                    await self._record(found, self.ttl_seconds + 2 * RECORDED_SECONDS)
            self._recorded = None if found is None else (found, now + RECORDED_SECONDS)
        return None if self._recorded is None else self._recorded[0]

    async def check(self) -> None:
        """Raises Unreachable unless Redis accepts a write."""
        key = f"{READY_KEY}:{uuid4().hex}"  # another process checks at the same time
        if not await self._ask("SET", key, 1, "EX", 5) or await self._ask("DEL", key) != 1:
            raise Unreachable("Redis does not answer, or refuses to write.")

    def without_copies(self) -> WorkingMemory:
        """Returns a working memory without copies, which contain the memories of all users of a task."""
        return _RowsAlone(self._redis, ttl_seconds=self.ttl_seconds, budget_tokens=self.budget_tokens)

    async def answers(self) -> bool:
        """Pings Redis; returns whether it replied."""
        return await self._ask("PING") is not None

    async def _ask(self, command: str, *arguments: Any) -> Any:
        if self._redis is None:
            return None
        execute: Execute = self._redis.execute_command
        return await _or_none(lambda: execute(command, *arguments))

    async def _script(
        self,
        agent_id: str,
        task_id: str,
        entries: Sequence[WorkingEntry],
        ttl_seconds: int,
        generation: bytes | None,
        *,
        make: str,
    ) -> bool:
        if not entries or ttl_seconds < 1 or generation is None:
            return False
        pairs = [piece for entry in entries for piece in (entry.token_count, _ENTRY.dump_json(entry))]
        keys = [_key(agent_id, task_id), INSTANCE_KEY, _generation_key(agent_id)]
        call = (keys, [ttl_seconds, self.budget_tokens, make, MAX_ENTRIES], [generation, *pairs])
        done = await self._written(*call)
        if done == _ANOTHER_REDIS:
            self._recorded = None
            done = await self._written(*call)
        return bool(done == 1)

    async def _written(self, keys: list[str], options: Sequence[Any], rest: Sequence[Any]) -> Any:
        script, redis_id = self._write, await self._recorded_id()
        if script is None or redis_id is None:
            return None
        values = [*options, str(redis_id), *rest]
        return await _or_none(lambda: cast(Awaitable[Any], script(keys=keys, args=values)))


class _RowsAlone(WorkingMemory):
    async def recall(self, agent_id: str, task_id: str) -> list[WorkingEntry] | None:
        return None

    async def generation(self, agent_id: str) -> bytes | None:
        return None


def _key(agent_id: str, task_id: str) -> str:
    return f"memory:working:{encode_segment(agent_id)}:{encode_segment(task_id)}"


def _generation_key(agent_id: str) -> str:
    return f"{GENERATION_PREFIX}{encode_segment(agent_id)}"


def _load(stored: bytes, key: str) -> WorkingEntry | None:
    try:
        return _ENTRY.validate_json(stored.partition(b"|")[2])
    except ValidationError:
        # The error is not logged: it quotes the memory's text.
        logger.warning("working memory: dropping the copy %s, which has a malformed entry", key)
        return None


async def _or_none(call: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await call()
    except (RedisError, OSError, TimeoutError):
        return None
