"""Read-your-writes on replicas: the LSN that a replica must have replayed before it is read for an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast
from zlib import crc32

from redis.asyncio import Redis
from redis.exceptions import RedisError

# Agents in one bucket share an LSN: a write of one can send reads of the others to the primary. This bounds memory.
BUCKETS = 4_096
# Renewed by each write. Expiry is safe: without a floor the primary is read until `set_floor`.
EXPIRY_SECONDS = 86_400
# The member of the floor: every write of every agent before the floor was set has an LSN at or below it.
FLOOR = "floor"
# Read the primary.
FLOOR_MISSING = -1

# KEYS[1]: the LSNs of a cluster; ARGV: TTL in seconds, then pairs of member and LSN. Keeps the largest of each.
_RECORD = """
for i = 2, #ARGV, 2 do
    local known = redis.call('ZSCORE', KEYS[1], ARGV[i])
    if not known or tonumber(known) < tonumber(ARGV[i + 1]) then redis.call('ZADD', KEYS[1], ARGV[i + 1], ARGV[i]) end
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""
# ARGV: the bucket, the member of the floor. Returns the larger LSN of both; nothing without a floor.
_REQUIRED = """
local floor = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not floor then return false end
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
if known and tonumber(known) > tonumber(floor) then return known end
return floor
"""


class LastWriteLsns:
    """The LSN after each agent's last write, in bytes, in this process and, for other processes, in Redis.

    As the score of a sorted set an LSN is exact up to 2**53, 9 PB of WAL. Without Redis the guarantee is that of one
    process. Other processes may read a replica that lacks a write: while its LSN is unknown or not in Redis, until the
    next call of this process; and if Redis loses recent writes but not the floor, as a failover to its replica may.
    """

    def __init__(self, redis: Redis | None) -> None:
        # The system identifier of PostgreSQL, set by Database.open.
        self.cluster = ""
        self._own = [0] * BUCKETS
        # Buckets whose LSN Redis did not receive.
        self._unpublished: set[int] = set()
        # Buckets of committed writes whose LSN could not be read, with a mark of the last one.
        self._unknown: dict[int, object] = {}
        self._record_script = None if redis is None else redis.register_script(_RECORD)
        self._required_script = None if redis is None else redis.register_script(_REQUIRED)

    async def record(self, agent_id: str, lsn: int | None) -> None:
        """Records a write before its caller gets a reply. If Redis does not reply, the next call publishes it.

        `lsn`: None if it is unknown; then `required_lsn` returns FLOOR_MISSING until `set_floor`.
        """
        bucket = _bucket(agent_id)
        if lsn is None:
            self._unknown[bucket] = object()
            return
        self._own[bucket] = max(self._own[bucket], lsn)
        self._unpublished.add(bucket)
        await self._publish()

    async def required_lsn(self, agent_id: str) -> int | None:
        """Returns the LSN that a replica must have replayed; None if Redis does not reply.

        FLOOR_MISSING: an LSN is unknown, or Redis may have lost some; read the primary and call `set_floor`.
        """
        bucket = _bucket(agent_id)
        if bucket in self._unknown:
            return FLOOR_MISSING
        if self._required_script is None:
            return self._own[bucket]
        if self._unpublished and not await self._publish():
            return None
        try:
            known = await cast(Awaitable[Any], self._required_script(keys=[self._key], args=[bucket, FLOOR]))
        except (RedisError, OSError):
            return None
        return FLOOR_MISSING if known is None else max(self._own[bucket], int(float(known)))

    async def set_floor(self, read_lsn: Callable[[], Awaitable[int]]) -> None:
        """Declares that all earlier writes of all agents are at or before the LSN that `read_lsn` returns."""
        unknown = dict(self._unknown)
        lsn = await read_lsn()
        for bucket, mark in unknown.items():
            self._own[bucket] = max(self._own[bucket], lsn)
            self._unpublished.add(bucket)
            # Another write may have been committed meanwhile.
            if self._unknown.get(bucket) is mark:
                del self._unknown[bucket]
        await self._send([FLOOR, lsn])

    async def _publish(self) -> bool:
        sent = {bucket: self._own[bucket] for bucket in self._unpublished}
        if not await self._send([each for pair in sent.items() for each in pair]):
            return False
        # A later write of the bucket may have been recorded meanwhile.
        self._unpublished -= {bucket for bucket, lsn in sent.items() if self._own[bucket] == lsn}
        return True

    async def _send(self, pairs: list[str | int]) -> bool:
        if self._record_script is None:
            return True
        try:
            await cast(Awaitable[Any], self._record_script(keys=[self._key], args=[EXPIRY_SECONDS, *pairs]))
        except (RedisError, OSError):
            return False
        return True

    @property
    def _key(self) -> str:
        return f"memory:positions:{self.cluster}"


def _bucket(agent_id: str) -> int:
    return crc32(agent_id.encode()) % BUCKETS
