"""A consumer as its gateway knows it: where it is attached, and what it may still be sent.

Credit makes the socket the authority over the backlog. A queue process sends while both message and byte credit are
above zero; message credit comes back when deliveries are settled (with a prefetch limit) or written to a socket that
drains (without), byte credit when they are written.
"""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink
    from services.gateway.session import Session

WINDOW_MESSAGES = 4000
WINDOW_BYTES = 4 << 20


class State(enum.Enum):
    """Where a consumer stands with the owner of its queue."""

    ATTACHING = "asked, no answer yet"
    ATTACHED = "served"
    ADRIFT = "the owner is gone; the next one will be asked"
    ENDED = "cancelled"


@dataclass(slots=True, eq=False)
class GetHolder:
    """Holds what basic.get took from one queue."""

    queue_id: int

    def returned(self, count: int) -> None:
        """A get has no credit."""


@dataclass(slots=True, eq=False)
class Consumer:
    """One consumer of one session."""

    handle: int
    session: Session
    tag: str
    queue_id: int
    settled: bool
    exclusive: bool
    browse: bool
    priority: int
    limit: int  # prefetch; 0 is none
    window: int  # bytes that may be on the way
    state: State = State.ATTACHING
    link: QueueLink | None = None
    answer: asyncio.Future[pb.Attached] | None = None
    ended: asyncio.Future[None] | None = None
    credit: int = 0  # granted messages that have not been used
    room: int = 0  # granted bytes, likewise
    due: int = 0  # messages to be granted
    due_room: int = 0
    started: bool = field(default=False)

    @property
    def capacity(self) -> int:
        """Messages that may be on the way at once."""
        return self.limit or WINDOW_MESSAGES

    def attach(self, link: QueueLink, held: list[int], *, again: bool) -> None:
        """Asks the owner of the queue; with `again`, deliveries in `held` stay the consumer's."""
        self.link, self.state = link, State.ATTACHING
        self.due = self.due_room = 0
        self.credit = max(self.capacity - (len(held) if self.limit else 0), 0) if again else 0
        self.room = self.window if again else 0
        link.attach(
            pb.AttachConsumer(
                consumer=self.handle,
                queue_id=self.queue_id,
                tag=self.tag,
                connection=self.session.connection.name,
                exclusive=self.exclusive,
                settled=self.settled,
                browse=self.browse,
                priority=self.priority,
                messages=self.credit,
                bytes=self.room,
                held=held,
                again=again,
            )
        )

    def start(self) -> None:
        """The client knows of the consumer: deliveries may come."""
        self.started = True
        self.due, self.due_room = self.capacity, self.window
        self.grant()

    def written(self, count: int, size: int) -> None:
        """Deliveries went to the socket."""
        self.credit -= count
        self.room -= size
        self.due_room += size
        if not self.limit:
            self.due += count

    def returned(self, count: int) -> None:
        """Deliveries were settled."""
        if self.limit:
            self.due += count

    def grant(self) -> None:
        """Passes on what is due, once it is worth a line: at once where a limit waits for it, else by halves."""
        if not self.started or self.state is not State.ATTACHED or self.link is None:
            return
        worth = self.due if self.limit else self.due * 2 >= WINDOW_MESSAGES
        if not worth and self.due_room * 2 < self.window:
            return
        self.link.credit(self.handle, self.due, self.due_room)
        self.credit += self.due
        self.room += self.due_room
        self.due = self.due_room = 0
