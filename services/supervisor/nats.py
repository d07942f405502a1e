"""The NATS server of the local stack: its port, its program, and its health check."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys

import structlog

from services.common.bus import server
from services.common.config import Settings
from services.common.runtime import CannotStart
from services.supervisor.program import Program

HOST = "127.0.0.1"
_SCHEME = "nats://"
_LOG_LIMIT = 10 << 20
_DO = "nothing, unless other programs look for it there: then set HOPLINE_NATS_PORT"
_LAST_GASP = 1.0  # seconds after which the server of a killed supervisor is surely gone

log = structlog.get_logger()


async def choose_port(settings: Settings, keep: contextlib.ExitStack) -> int:
    """The configured port; a free one for 0, or when the default is taken. Raises CannotStart for any other.

    No other stack chooses it until `keep` is closed, though nothing listens there yet.
    """
    wanted = settings.nats_port
    for _ in range(int(_LAST_GASP / 0.1)):
        if port := _claimed(wanted, keep):
            return port
        await asyncio.sleep(0.1)
    if "nats_port" in settings.model_fields_set:
        raise CannotStart(
            f"port {wanted} is taken; set HOPLINE_NATS_PORT to another one or to 0, "
            "or HOPLINE_NATS_URL to a NATS server that runs already"
        )
    while not (port := _claimed(0, keep)):
        continue
    log.warning("the usual NATS port is taken, another one is used", usual=wanted, port=port, do=_DO)
    return port


def program(settings: Settings, port: int) -> Program:
    """The server on loopback, with JetStream in the data folder. Raises CannotStart when it is not installed."""
    folder = settings.data.absolute() / "nats"
    log_file = ("--log", str(folder / "nats.log"), "--log_size_limit", str(_LOG_LIMIT))
    command = (sys.executable, "-P", "-m", "services.supervisor.parent", *server.command(folder, HOST, port))
    return Program("nats", (*command, *log_file), f"{_SCHEME}{HOST}:{port}", vital=False)


async def is_serving(address: str) -> bool:
    """Whether a NATS server answers at `address`."""
    host, _, port = address.removeprefix(_SCHEME).rpartition(":")
    try:
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                return (await reader.read(5)).startswith(b"INFO ")
            finally:
                writer.close()
    except OSError:
        return False


def _claimed(wanted: int, keep: contextlib.ExitStack) -> int:
    """Claims the port, or any free one for 0; gives 0 when another process listens there, or has claimed it."""
    port = wanted or _free_port()
    # An abstract name: like a port it belongs to one process in its network namespace, and ends with that process.
    claim = socket.socket(socket.AF_UNIX)
    with contextlib.ExitStack() as undo:
        undo.callback(claim.close)
        try:
            claim.bind(f"\0hopline-nats-{port}")
        except OSError:
            return 0
        if not _is_free(port):
            return 0
        keep.push(undo.pop_all())
    return port


def _is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])
