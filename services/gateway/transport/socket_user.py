"""A connection as transports see it: what they tell it, and what they need to know of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.common.config import Settings
    from services.common.few_lines import FewLines
    from services.common.runtime import Tasks


class Shared(Protocol):
    """What all connections of a gateway share."""

    @property
    def settings(self) -> Settings: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def few(self) -> FewLines:
        """Limits log lines that any peer can cause."""


class SocketUser(Protocol):
    """A connection: its attributes and methods beside those of asyncio's Protocol."""

    peer: str
    peer_host: str
    certified: str
    """The name in its certificate, where TLS has verified one."""
    closing: bool
    """Whether its end is known, and in the log where it has to be."""

    @property
    def name(self) -> str: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    @property
    def listener(self) -> Shared: ...

    def speak_over(self, transport: asyncio.BaseTransport) -> None: ...
    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool: ...
    def connection_lost(self, failure: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def hold(self, reason: object) -> None: ...
    def release(self, reason: object) -> None: ...
    def cut_off(self) -> None: ...
