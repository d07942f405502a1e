"""Credit modes of a consumer: how its client says what it may be sent, message by message.

Credit is counted in messages. What a mode says is due is to be granted to the owner of the queue again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

WINDOW_MESSAGES: Final = 4000


@dataclass(slots=True)
class Window:
    """No limit: as much as its socket takes, granted by halves of a window."""

    room: ClassVar[None] = None
    is_used_up: ClassVar[bool] = False

    def capacity(self, shared: int) -> int:
        """Messages that may be on the way; `shared`: by a limit over all consumers of the session, 0 for none."""
        return shared or WINDOW_MESSAGES

    def held(self, _count: int) -> int:
        """What of the capacity is used by unsettled deliveries."""
        return 0

    def written(self, count: int) -> int:
        """What is due when deliveries went to the socket."""
        return count

    def kept_back(self, count: int) -> int:
        """The same when they were given to the engine, and not sent."""
        return count

    def settled(self, _count: int) -> int:
        """The same when they were settled."""
        return 0

    def grantable(self, due: int) -> int:
        """What of it is granted now."""
        return due if due * 2 >= WINDOW_MESSAGES else 0


@dataclass(slots=True)
class Prefetch:
    """Not more than a number of deliveries are unsettled (0-9-1: basic.qos)."""

    limit: int
    room: ClassVar[None] = None
    is_used_up: ClassVar[bool] = False

    def capacity(self, shared: int) -> int:
        """As Window says."""
        return min(self.limit, shared) if shared else self.limit

    def held(self, count: int) -> int:
        """As Window says."""
        return count

    def written(self, _count: int) -> int:
        """As Window says."""
        return 0

    def kept_back(self, count: int) -> int:
        """As Window says."""
        return count

    def settled(self, count: int) -> int:
        """As Window says."""
        return count

    def grantable(self, due: int) -> int:
        """As Window says."""
        return max(due, 0)


@dataclass(slots=True)
class LinkCredit:
    """So many deliveries in all, since it began, as its client says each time (1.0: link-credit)."""

    up_to: int = 0
    sent: int = 0

    @property
    def room(self) -> int:
        """How many more may be sent, whatever is on the way."""
        return self.up_to - self.sent

    @property
    def is_used_up(self) -> bool:
        return self.sent >= self.up_to

    def take(self, up_to: int) -> int:
        """The client allows so many: more than before, or fewer. Gives what is due."""
        due = up_to - self.up_to
        self.up_to = up_to
        return due

    def capacity(self, _shared: int) -> int:
        """As Window says."""
        return max(self.up_to - self.sent, 0)

    def held(self, _count: int) -> int:
        """As Window says."""
        return 0

    def written(self, count: int) -> int:
        """As Window says."""
        self.sent += count
        return 0

    def kept_back(self, count: int) -> int:
        """As Window says."""
        self.sent -= count
        return count

    def settled(self, _count: int) -> int:
        """As Window says."""
        return 0

    def grantable(self, due: int) -> int:
        """As Window says."""
        return max(due, 0)


CreditMode: TypeAlias = Window | Prefetch | LinkCredit
