"""An S3 endpoint as a separate process: moto's server, which can be killed and restarted."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import boto3
import httpx

BUCKET = "archive"
CREDENTIALS: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}
START_SECONDS = 60.0


class ObjectStore:
    """An endpoint on a fixed port; its objects are lost with the process."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the endpoint; returns once it responds and has an empty bucket."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self._port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_SECONDS
        with httpx.Client(trust_env=False) as http:
            while True:
                try:
                    http.get(self.url)
                    break
                except httpx.TransportError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
        self.client().create_bucket(Bucket=BUCKET)

    def client(self) -> Any:
        """Returns boto3's client for it."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",  # noqa: S106
        )

    def kill(self) -> None:
        """Kills the process, as in an outage."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
