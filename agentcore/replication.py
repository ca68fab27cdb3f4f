"""Read-your-writes on replicas: how much of the write-ahead log a replica must have replayed to answer an agent."""

from __future__ import annotations

import logging
from zlib import crc32

from redis.asyncio import Redis
from redis.exceptions import RedisError

# Agents share positions: those of one bucket wait for each other's writes. Bounds memory for any number of agents.
BUCKETS = 4_096
KEY = "database:positions"

logger = logging.getLogger(__name__)


class WritePositions:
    """The position in PostgreSQL's write-ahead log after each agent's last write.

    Kept in this process and in Redis, for the other processes of the service. A position is a byte count; as the
    score of a sorted set it is exact up to 2**53, 9 PB of log.
    """

    def __init__(self, redis: Redis | None) -> None:
        self._redis = redis
        # Written before Redis is asked: correct for this process even if Redis does not answer.
        self._own = [0] * BUCKETS

    async def record(self, agent_id: str, position: int) -> None:
        """Records a write before its caller is answered. Without Redis other processes do not learn of it."""
        bucket = _bucket(agent_id)
        self._own[bucket] = max(self._own[bucket], position)
        if self._redis is not None:
            try:
                await self._redis.zadd(KEY, {str(bucket): position}, gt=True)
            except (RedisError, OSError) as cause:
                logger.warning("the position of a write was not published: %s", type(cause).__name__)

    async def required(self, agent_id: str) -> int | None:
        """Returns the position a replica must have reached; None if Redis does not tell: read the primary."""
        bucket = _bucket(agent_id)
        own = self._own[bucket]
        if self._redis is None:
            return own
        try:
            published = await self._redis.zscore(KEY, str(bucket))
        except (RedisError, OSError):
            return None
        return max(own, int(published or 0))


def _bucket(agent_id: str) -> int:
    return crc32(agent_id.encode()) % BUCKETS
