"""The HTTP server inside of mgmt."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from services.common.runtime import CannotStart
from services.mgmt.front import Application


class HttpServer:
    """uvicorn inside a process that has its own signal handlers and its own log."""

    def __init__(self, host: str, port: int) -> None:
        """Binds at once, before anything else is begun; raises CannotStart when the port is taken."""
        self._socket = _bind(host, port)
        self._server: _Embedded | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port it is bound to."""
        number: int = self._socket.getsockname()[1]
        return number

    def start(self, app: Application) -> None:
        """Serves from now on."""
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,  # who says X-Forwarded-For may be anybody, and addresses are counted, and on record
            timeout_graceful_shutdown=1,
            date_header=False,
        )
        self._server = _Embedded(config)
        serving = self._server.serve(sockets=[self._socket])
        self._serving = asyncio.get_running_loop().create_task(serving, name="http")

    async def stop(self) -> None:
        """Lets requests under way end, for a second."""
        if self._server and self._serving:
            self._server.end()
            await self._serving
        self._socket.close()


class _Embedded(uvicorn.Server):
    """Without signal handlers, and without uvicorn's ten looks a second at whether it should end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ended = asyncio.Event()

    def end(self) -> None:
        """Lets requests under way end."""
        self.should_exit = True
        self._ended.set()

    async def main_loop(self) -> None:
        """Until `end`. The date of answers, which uvicorn would keep up, is left to those who ask."""
        await self.on_tick(0)
        await self._ended.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise CannotStart(f"no HTTP on {host} port {port} ({error.strerror}); set HOPLINE_HTTP_PORT") from error
