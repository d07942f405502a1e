"""The user who asks for a change, and from where: known to the service that signed it in, sent with the change."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterable
from contextvars import ContextVar

FIELD = "hopline-actor"
_LONGEST = 512

_acting: ContextVar[str] = ContextVar("acting", default="")


def act_for(who: str) -> None:
    """From now on in this task; for `acting`."""
    _acting.set(who[:_LONGEST])


def acting() -> str:
    """The user for whom this task works; "" where a service works by itself."""
    return _acting.get()


def act_for_command_line() -> None:
    """The user of the command line, and its machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # the user is in no list of users
        user = "an unknown user"
    act_for(f"{user} at the command line of {socket.gethostname()}")


def fields() -> tuple[tuple[str, str], ...]:
    """What a call over gRPC says of it."""
    said = acting().encode("ascii", "backslashreplace").decode()
    return ((FIELD, said),) if said else ()


def act_for_caller(metadata: Iterable[tuple[str, str | bytes]] | None) -> None:
    """For the user that a call over gRPC names."""
    said = next((value for name, value in metadata or () if name == FIELD), "")
    act_for(said if isinstance(said, str) else said.decode(errors="replace"))
