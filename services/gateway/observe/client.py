"""Who is at the other end of messages, as ledger, spans, captured messages and events name it."""

from __future__ import annotations

from typing import Protocol


class Client(Protocol):
    """A connection, and who has signed in on it."""

    @property
    def name(self) -> str: ...
    @property
    def virtual_host(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def client(self) -> str:
        """What the application calls itself, or its user."""

    @property
    def peer(self) -> str:
        """Address and port."""
