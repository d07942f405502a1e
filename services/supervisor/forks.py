"""Starts Hopline's own programs by forks: fast, and with shared memory. Programs that cannot be forked are executed."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Self

import structlog

from services.supervisor.executed import execute
from services.supervisor.fork_server import Order, Run, serve
from services.supervisor.forked import Forked
from services.supervisor.pipe import reader_of
from services.supervisor.process import Process
from services.supervisor.program import Program

log = structlog.get_logger()

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_LONGEST_ANSWER = 64  # bytes; a process id
_PATIENCE = 60.0  # seconds in which the server has imported everything, on a slow machine


class Forks:
    """A fork server, and the orders to it."""

    def __init__(self, connection: socket.socket, server: int) -> None:
        self._connection: socket.socket | None = connection
        self._server = server
        self._turn = asyncio.Lock()

    @classmethod
    def begin(cls, prepare: Callable[[], None], run: Run) -> Self:
        """Calls `prepare`, which imports, and starts the server, as `serve` says.

        To be called before this process has opened files, started threads or logged: children would inherit that.
        This process shares the memory of what is imported too: most of what it needs itself is among that.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        supervisor = os.getpid()
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        gc.disable()
        prepare()
        # Objects that are never collected are not written to either, so their memory stays shared. Garbage stays too:
        # children would fill the room that it leaves, each for itself, and so copy the pages around it.
        gc.freeze()
        server = os.fork()
        if not server:
            ours.close()
            serve(theirs, supervisor, run)
        gc.enable()
        theirs.close()
        ours.setblocking(False)
        return cls(ours, server)

    async def start(self, program: Program, environment: Mapping[str, str]) -> Process:
        """As Start says. Raises OSError."""
        if program.arguments:
            async with self._turn:
                if forked := await self._fork(program, environment):
                    return forked
        return await execute(program, environment)

    async def _fork(self, program: Program, environment: Mapping[str, str]) -> Process | None:
        if not self._connection:
            return None
        order = Order(list(program.arguments), dict(environment)).encode()
        try:
            async with asyncio.timeout(_PATIENCE):
                return await _ordered(self._connection, order)
        except OSError as failure:
            log.warning(
                "services cannot be forked, and are executed: they start later and take more memory",
                reason=str(failure) or type(failure).__name__,
                do="nothing at once; restart the stack when it suits",
            )
            self.end()
        return None

    def end(self) -> None:
        """Ends the server; its children run on."""
        if self._connection is None:
            return
        self._connection.close()
        self._connection = None
        os.kill(self._server, signal.SIGKILL)  # the process id is valid, dead or alive, until it is waited for
        os.waitpid(self._server, 0)


async def _ordered(connection: socket.socket, order: bytes) -> Process:
    """Has the server fork a process. Raises OSError."""
    with contextlib.ExitStack() as opened:
        (read, output), (begin, say) = os.pipe(), os.pipe()
        for descriptor in (output, begin, say):
            opened.callback(os.close, descriptor)
        stdout = await reader_of(os.fdopen(read, "rb", 0))
        socket.send_fds(connection, [order], [output, begin])
        answer = await asyncio.get_running_loop().sock_recv(connection, _LONGEST_ANSWER)
        if not answer:
            raise ConnectionResetError("the fork server has ended")
        process = Forked(int(answer), stdout)
        os.write(say, b"!")
        return process
