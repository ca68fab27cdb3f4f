"""The archive in S3, or any store with its protocol. boto3 blocks, so each call runs in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from agentcore.circuit_breaker import CircuitBreaker, CircuitOpen
from agentcore.errors import DependencyUnavailable, NotFound, Unreachable
from agentcore.failpoints import failpoint
from agentcore.memory.archival import all_ended

TIMEOUT_SECONDS = 10
MAX_ATTEMPTS = 3
PROBE_INTERVAL_SECONDS = 15.0
CHECK_TIMEOUT_SECONDS = 2
WRITES_AT_ONCE = 8
# Limit of S3 for one request.
DELETED_AT_ONCE = 1_000
_WRITTEN_BY_ANOTHER = {"PreconditionFailed", "ConditionalRequestConflict"}
GZIP_MARK = b"\x1f\x8b"


class S3Archive:
    """Credentials and region come from the AWS environment. `object_headers` are sent with each object."""

    name = "s3"

    def __init__(
        self,
        bucket: str,
        endpoint_url: str | None = None,
        *,
        object_headers: Mapping[str, str] | None = None,
        client: Any = None,
    ) -> None:
        self._bucket = bucket
        self._object_headers = dict(object_headers or {})
        self.circuit = CircuitBreaker("archive", "nothing is pruned or restored", PROBE_INTERVAL_SECONDS)
        self._client = client or _client(endpoint_url, TIMEOUT_SECONDS, MAX_ATTEMPTS)
        self._quick = client or _client(endpoint_url, CHECK_TIMEOUT_SECONDS, 1)

    async def write(self, objects: Mapping[str, bytes]) -> None:
        slots, failed = asyncio.Semaphore(WRITES_AT_ONCE), asyncio.Event()

        async def put(key: str, data: bytes) -> None:
            async with slots:
                if failed.is_set():
                    return
                try:
                    await self._put(key, data)
                except DependencyUnavailable:
                    failed.set()
                    raise

        await all_ended(put(key, data) for key, data in objects.items())

    async def _put(self, key: str, data: bytes) -> None:
        kind = (
            {"ContentType": "application/json", "ContentEncoding": "gzip"}
            if data.startswith(GZIP_MARK)
            else {"ContentType": "application/octet-stream"}
        )
        await self._call(
            lambda: self._client.put_object(Bucket=self._bucket, Key=key, Body=data, **kind, **self._object_headers)
        )
        failpoint("archive.put")

    async def write_once(self, key: str, data: bytes) -> None:
        """Writes the object unless it exists. A store without conditional writes keeps the last one."""
        # Not in the storage class of the copies: it is read often.
        headers = {name: value for name, value in self._object_headers.items() if name != "StorageClass"}
        put = partial(self._client.put_object, Bucket=self._bucket, Key=key, Body=data, **headers)

        def put_once() -> None:
            try:
                put(IfNoneMatch="*")
            except ClientError as refused:
                code = refused.response.get("Error", {}).get("Code")
                if code == "NotImplemented":
                    put()
                elif code not in _WRITTEN_BY_ANOTHER:
                    raise

        await self._call(put_once)

    async def read(self, key: str) -> bytes:
        return bytes(await self._call(lambda: self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()))

    async def delete(self, keys: Collection[str]) -> None:
        """Deletes the objects; a versioned bucket keeps older versions."""
        waiting = list(keys)
        for start in range(0, len(waiting), DELETED_AT_ONCE):
            failed = await self._call(partial(self._delete, waiting[start : start + DELETED_AT_ONCE]))
            if failed:
                raise DependencyUnavailable(f"The S3 archive refused to delete ({failed[0]}).")

    def _delete(self, keys: Sequence[str]) -> list[str]:
        wanted = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        answer = self._client.delete_objects(Bucket=self._bucket, Delete=wanted)
        return [error.get("Code", "unknown") for error in answer.get("Errors", ())]

    async def keys(self, prefix: str) -> list[str]:
        return list(await self._call(lambda: self._keys(prefix)))

    def _keys(self, prefix: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        return sorted(each["Key"] for page in pages for each in page.get("Contents", ()))

    async def check(self) -> None:
        await self._call(lambda: self._quick.head_bucket(Bucket=self._bucket), force=True)

    async def _call(self, work: Callable[[], Any], *, force: bool = False) -> Any:
        try:
            with self.circuit.guard(BotoCoreError, answers=(ClientError,), force=force):
                return await asyncio.to_thread(work)
        except ClientError as cause:
            code = cause.response.get("Error", {}).get("Code", "unknown")
            if code == "NoSuchKey":
                raise NotFound("The archive holds no such memory.") from cause
            if code == "InvalidObjectState":
                raise DependencyUnavailable(
                    "The copy lies in a cold storage class: have S3 restore the object, then call again."
                ) from cause
            raise DependencyUnavailable(f"The S3 archive refused the call ({code}).") from cause
        except (BotoCoreError, CircuitOpen) as cause:
            raise Unreachable("The S3 archive does not answer.") from cause


def _client(endpoint_url: str | None, timeout_seconds: int, attempts: int) -> Any:
    config = Config(
        connect_timeout=timeout_seconds,
        read_timeout=timeout_seconds,
        retries={"max_attempts": attempts, "mode": "standard"},
    )
    return boto3.client("s3", endpoint_url=endpoint_url, config=config)
