"""What a look-up does without: a person waits for it, and nearly all of the time is imports."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.common.grpc_channel import serve
from services.common.trace import Journey, Match, Trace
from services.rpc import mgmt_pb2, mgmt_pb2_grpc

_IMPORTED = """
import json, sys
from services.__main__ import app
try:
    app()
finally:
    print(json.dumps(sorted(sys.modules)))
"""
_OTHERS = {
    "services.cli.queues", "services.cli.definitions", "services.cli.placing", "services.cli.acl",
    "services.common.definitions", "services.common.scram", "services.common.plugins", "services.common.clients.store",
    "services.supervisor", "structlog", "opentelemetry", "grpc_health.v1", "nats",
    "duckdb", "pyarrow", "cryptography", "typer.rich_utils", "rich.progress",
}  # fmt: skip


class _Mgmt(mgmt_pb2_grpc.MgmtServicer):
    async def Trace(self, request: mgmt_pb2.TraceRequest, context: Any) -> mgmt_pb2.TraceReply:  # noqa: N802
        match = Match(uid=7, kind="message_id", time_us=1)
        journey = Journey(match=match, messages=[], gaps=[], cut_short=False)
        found = Trace(id=request.id, journeys=[journey] if request.id == "known" else [], more=False)
        return mgmt_pb2.TraceReply(trace=found.model_dump_json().encode())


@pytest.fixture
async def mgmt(tmp_path: Path) -> AsyncIterator[str]:
    """The address of one that knows one message."""
    address = f"unix:{tmp_path}/mgmt.sock"
    server = serve(address, [])
    mgmt_pb2_grpc.add_MgmtServicer_to_server(_Mgmt(), server)
    await server.start()
    yield address
    await server.stop(None)


async def _imported_by(address: str, *command: str) -> tuple[str, set[str]]:
    """What the command writes, and what it has imported at its end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _IMPORTED, *command),
        env={"HOPLINE_MGMT_ADDRESS": address},
        stdout=asyncio.subprocess.PIPE,
    )
    written, _ = await process.communicate()
    *lines, modules = written.decode().splitlines()
    return "\n".join(lines), set(json.loads(modules))


@pytest.mark.parametrize("name", sorted(_OTHERS))
def test_what_is_not_imported_is_there(name: str) -> None:
    """Of each name that a look-up does without there is a module: of one that was renamed nothing would be proven."""
    assert importlib.util.find_spec(name)


@pytest.mark.parametrize("command", [("trace", "known"), ("trace", "known", "--json"), ("trace", "unknown")])
async def test_a_look_up(mgmt: str, command: tuple[str, ...]) -> None:
    """It imports no other command, nothing that logs, traces or stores, and neither help nor a bar."""
    told, modules = await _imported_by(mgmt, *command)
    assert ("7" in told) is ("known" in command)
    assert modules & _OTHERS == set()


@pytest.mark.parametrize("command", [("trace", "known", "--json"), ("trace", "unknown")])
async def test_an_answer_without_a_waterfall(mgmt: str, command: tuple[str, ...]) -> None:
    """What draws it is not imported where nothing is drawn."""
    _, modules = await _imported_by(mgmt, *command)
    assert modules & {"rich", "services.cli.trace"} == set()


async def test_a_waterfall(mgmt: str) -> None:
    """It is: the tests above look for names that there are."""
    _, modules = await _imported_by(mgmt, "trace", "known")
    assert {"rich", "services.cli.trace"} <= modules
