"""Read-your-writes on replicas: how much of the write-ahead log a replica must have replayed to answer an agent."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast
from zlib import crc32

from redis.asyncio import Redis
from redis.exceptions import RedisError

# Agents in one bucket share a position: a write of one can send reads of the others to the primary. This bounds memory.
BUCKETS = 4_096
# Longer than any lag that a replica may have.
EXPIRY_SECONDS = 86_400
FLOOR = "floor"
LOST = -1

# KEYS[1]: the positions of a cluster; ARGV: TTL in seconds, then pairs of bucket and position. Keeps the largest.
_RECORD = """
for i = 2, #ARGV, 2 do
    local known = redis.call('ZSCORE', KEYS[1], ARGV[i])
    if not known or tonumber(known) < tonumber(ARGV[i + 1]) then redis.call('ZADD', KEYS[1], ARGV[i + 1], ARGV[i]) end
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""
# Returns the larger of the bucket's position and the floor; nothing without a floor: positions may have been lost.
_REQUIRED = """
local floor = redis.call('ZSCORE', KEYS[1], 'floor')
if not floor then return false end
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
if known and tonumber(known) > tonumber(floor) then return known end
return floor
"""


class WritePositions:
    """The position in PostgreSQL's write-ahead log after each agent's last write.

    Kept in this process and in Redis, for the other processes of the service. A position is a byte count; as the
    score of a sorted set it is exact up to 2**53, 9 PB of log.
    """

    def __init__(self, redis: Redis | None) -> None:
        self.cluster = ""
        self._own = [0] * BUCKETS
        # Buckets whose position Redis did not receive.
        self._unpublished: set[int] = set()
        self._record = None if redis is None else redis.register_script(_RECORD)
        self._required = None if redis is None else redis.register_script(_REQUIRED)

    async def record(self, agent_id: str, position: int) -> None:
        """Records a write before its caller gets a reply. If Redis does not reply, the next call publishes it."""
        bucket = _bucket(agent_id)
        self._own[bucket] = max(self._own[bucket], position)
        self._unpublished.add(bucket)
        await self._publish()

    async def required(self, agent_id: str) -> int | None:
        """Returns the position that a replica must have reached; LOST: call `start`; None: Redis does not reply."""
        bucket = _bucket(agent_id)
        if self._required is None:
            return self._own[bucket]
        if self._unpublished and not await self._publish():
            return None
        try:
            known = await cast(Awaitable[Any], self._required(keys=[self._key], args=[bucket]))
        except (RedisError, OSError):
            return None
        return LOST if known is None else max(self._own[bucket], int(float(known)))

    async def start(self, position: int) -> None:
        """Declares that all earlier writes of all agents are before `position`."""
        await self._send([FLOOR, position])

    async def _publish(self) -> bool:
        sent = {bucket: self._own[bucket] for bucket in self._unpublished}
        if not await self._send([each for pair in sent.items() for each in pair]):
            return False
        # A later write of the bucket may have been recorded meanwhile.
        self._unpublished -= {bucket for bucket, position in sent.items() if self._own[bucket] == position}
        return True

    async def _send(self, pairs: list[str | int]) -> bool:
        if self._record is None:
            return True
        try:
            await cast(Awaitable[Any], self._record(keys=[self._key], args=[EXPIRY_SECONDS, *pairs]))
        except (RedisError, OSError):
            return False
        return True

    @property
    def _key(self) -> str:
        return f"memory:positions:{self.cluster}"


def _bucket(agent_id: str) -> int:
    return crc32(agent_id.encode()) % BUCKETS
