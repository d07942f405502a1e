"""The process that services are forked from: it has imported what they need, and does nothing else.

A child of it begins in milliseconds, and shares with its sisters the memory of what was imported. It is no child of
this process but of the supervisor's, which is told how it ends: this one may die without harm to any service.
Nothing that a fork would leave half behind runs here: no thread, no event loop, no gRPC but what importing it does.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from setproctitle import setproctitle

from services.supervisor.parent import die_with

_LONGEST_ORDER = 1 << 18  # bytes; more than a socket takes at once
_LONGEST_PID = 20  # digits

Run = Callable[[list[str]], object]
"""Runs Hopline's command line with these arguments."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a child is to be."""

    arguments: list[str]
    environment: dict[str, str]

    def encode(self) -> bytes:
        """As it comes to the server, with two descriptors: where the child writes, and where it reads a byte to begin.

        Without that byte it ends: one of which nobody knows must not serve.
        """
        return json.dumps(asdict(self)).encode()


def serve(connection: socket.socket, supervisor: int, prepare: Callable[[], None], run: Run) -> NoReturn:
    """Imports what `prepare` does, then forks a child for each order; its process id is the answer.

    Ends with the supervisor. In a child it ends as `run` does.
    """
    os.setsid()
    die_with(supervisor)
    # Of all that processes show to others, the environment of `hopline up` may have the first user's password.
    setproctitle("hopline fork server")
    gc.disable()
    prepare()
    gc.freeze()
    while order := _receive(connection):
        connection.send(b"%d" % _fork(run, *order))
    os._exit(0)


def _receive(connection: socket.socket) -> tuple[Order, int, int] | None:
    data, descriptors, _, _ = socket.recv_fds(connection, _LONGEST_ORDER, 2)
    if not data:
        return None
    output, begin = descriptors
    return Order(**json.loads(data)), output, begin


def _fork(run: Run, order: Order, output: int, begin: int) -> int:
    """The child of a child that is gone: it belongs to the supervisor then, who takes up orphans."""
    told, tell = os.pipe()
    between = os.fork()
    if not between:
        child = os.fork()
        if not child:
            _become(order, output, begin)
            run(order.arguments)
            sys.exit()
        os.write(tell, b"%d" % child)
        os._exit(0)
    for descriptor in (tell, output, begin):
        os.close(descriptor)
    os.waitpid(between, 0)
    child = int(os.read(told, _LONGEST_PID))
    os.close(told)
    return child


def _become(order: Order, output: int, begin: int) -> None:
    """Makes of this process what it would be, had its command been executed."""
    if not os.read(begin, 1):
        os._exit(1)
    gc.enable()
    os.setsid()
    _open(output)
    os.environ.clear()
    os.environ.update(order.environment)
    sys.argv = ["hopline", *order.arguments]
    setproctitle(" ".join(sys.argv))


def _open(output: int) -> None:
    """Nothing to read, one pipe to write to, and nothing else."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        os.dup2(output, number)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(write_through=True)
    for opened in list(Path("/proc/self/fd").iterdir()):
        if int(opened.name) > 2:
            with contextlib.suppress(OSError):  # the listing's own is closed by now
                os.close(int(opened.name))
