"""The HTTP server inside of mgmt."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import uvicorn

from services.common.files import files
from services.common.memory import available
from services.common.runtime import CannotStart
from services.mgmt.front import Application
from services.mgmt.http.bodies import Bodies
from services.mgmt.http.connection import Bounds, Config
from services.mgmt.http.doors import Doors
from services.mgmt.http.unread import Unread

if TYPE_CHECKING:
    from services.common.config import Settings

_BUDGET = 128 << 20  # bytes of bodies that are not answered yet, and of answers not read; less on a small machine
_BACKLOG = 1024  # connections that the kernel has accepted and mgmt has not: more come at once when many try


class HttpServer:
    """uvicorn inside a process that has its own signal handlers and its own log."""

    def __init__(self, settings: Settings) -> None:
        """Binds at once, before anything else is begun; raises CannotStart when the port is taken."""
        self._settings = settings
        self._socket = _bind(settings.http_host, settings.http_port)
        self.doors = Doors(settings.http_max_connections, settings.http_max_connections_each, files())
        self._server: _Embedded | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port it is bound to."""
        number: int = self._socket.getsockname()[1]
        return number

    def start(self, app: Application) -> None:
        """Serves from now on."""
        settings, budget = self._settings, min(available() // 16, _BUDGET)
        bodies, unread = Bodies(budget, self.doors.whose), Unread(budget, self.doors.whose)
        config = Config(
            Bounds(self.doors, bodies, unread, settings.http_head_timeout, settings.unread_timeout),
            app,
            log_config=None,
            log_level="error",  # what it warns of is what anybody may send
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,  # who says X-Forwarded-For may be anybody, and addresses are counted, and on record
            timeout_keep_alive=settings.http_idle_timeout,
            timeout_graceful_shutdown=1,
            backlog=_BACKLOG,
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
        self._server = self._serving = None  # with all that the application has
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
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise CannotStart(f"no HTTP on {host} port {port} ({error.strerror}); set HOPLINE_HTTP_PORT") from error
