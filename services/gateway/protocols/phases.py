"""What a connection's state means for the stream that it is on, whatever its protocol calls its states."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from enum import Enum
from typing import ClassVar, Generic, TypeVar

_State = TypeVar("_State")


class Phases(Generic[_State]):
    """Of a class with a `state`. `WAITING`: for the broker; `LEAVING`: we close the connection when its sessions have
    ended; `CLOSING`: only for the peer's farewell; `SAID_ALL`: for nothing of the peer's any more.
    """

    WAITING: ClassVar[AbstractSet[Enum]]
    LEAVING: ClassVar[Enum]
    CLOSING: ClassVar[Enum]
    SAID_ALL: ClassVar[AbstractSet[Enum]]

    state: _State

    @property
    def waits_for_broker(self) -> bool:
        """What comes from the peer cannot be understood before the broker has answered."""
        return self.state in self.WAITING

    @property
    def closing(self) -> bool:
        """Whether only the peer's farewell is waited for. A peer that does not send it soon can be cut off."""
        return self.state is self.CLOSING

    @property
    def is_over(self) -> bool:
        """Nothing that comes from the peer matters but its farewell."""
        return self.closing or self.leaving or not self.reads

    @property
    def leaving(self) -> bool:
        """Whether nothing more is asked, and what was asked is still answered before we close."""
        return self.state is self.LEAVING

    @property
    def reads(self) -> bool:
        """Whether anything that comes from the peer matters."""
        return self.state not in self.SAID_ALL
