"""What two services need: a short, closed list. See README.md.

gRPC reads its experiments when it is loaded, so they are chosen here, before any module imports it. Its event engine
hands each read and write from thread to thread; without it a bare echo between two processes takes 0.15 ms instead of
0.25 (unix socket, 2 cores, grpcio 1.85). A gRPC that no longer knows these names logs one line about it, and works.
"""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
