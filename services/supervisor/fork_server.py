"""The process that services are forked from: it has imported what they need, and does nothing else.

A forked service starts in milliseconds, and shares the memory of what was imported with the others. The kernel makes it
a child of the supervisor, which is told how it ends: this process may die without harm to any service.
Nothing runs here that a fork would break: no thread, no event loop, and of gRPC only its import.
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
    """The arguments and environment of a child to be forked."""

    arguments: list[str]
    environment: dict[str, str]

    def encode(self) -> bytes:
        """The bytes for the server; two descriptors go with them: the child's output, and where it reads a start byte.

        Without that byte the child ends: a child that the supervisor does not know must not serve.
        """
        return json.dumps(asdict(self)).encode()


def serve(connection: socket.socket, supervisor: int, run: Run) -> NoReturn:
    """Forks a child for each order; the answer is the child's process id.

    Ends with the supervisor. In a child it ends as `run` does. Garbage is not collected here: see `Forks.begin`.
    """
    os.setsid()
    die_with(supervisor)
    # The title also hides the inherited environment of `hopline up`, which may have the first user's password.
    setproctitle("hopline fork server")
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
    """Forks twice, and the process between ends: the supervisor, a subreaper, becomes the parent of the orphan."""
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
    """Makes this process what it would be if its command had been executed."""
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
    """Opens nothing to read and one pipe to write to, and closes everything else."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        os.dup2(output, number)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(write_through=True)
    for opened in list(Path("/proc/self/fd").iterdir()):
        if int(opened.name) > 2:
            with contextlib.suppress(OSError):  # the descriptor of this listing is closed by now
                os.close(int(opened.name))
