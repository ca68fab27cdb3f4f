"""Children that are forked while threads of gRPC are busy: the adapter of Milvus loads gRPC."""

from __future__ import annotations

import os
import subprocess
import sys

FORKS = """
import os, subprocess, threading
from concurrent.futures import ThreadPoolExecutor
from agentcore.providers import milvus_vectors
import grpc

server = grpc.server(ThreadPoolExecutor(2))
call = grpc.insecure_channel(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}").unary_unary("/no/method")
server.start()

def busy():
    while True:
        try:
            call(b"", timeout=1)
        except grpc.RpcError:
            pass

for _ in range(3):
    threading.Thread(target=busy, daemon=True).start()
# Another user: subprocess forks instead of vfork.
codes = {subprocess.run(["/bin/true"], user=os.getuid()).returncode for _ in range(300)}
print(codes, flush=True)
os._exit(0)
"""


def test_children_of_a_process_with_busy_grpc_threads_start() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_ENABLE_FORK_SUPPORT"}
    ran = subprocess.run([sys.executable, "-c", FORKS], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "{0}\n"
