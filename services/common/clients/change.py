"""What an outcome says of deliveries besides where they go (AMQP 1.0, part 3, section 3.4.5)."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol


class Handled(Protocol):
    """A consumer; its handle is another one with each owner of its queue."""

    @property
    def handle(self) -> int: ...


class Change(NamedTuple):
    """`annotations` are added to them, as `services/common/message/amqp_1_0/added.py` writes them. With `not_again` the
    consumer that says so is given none of them again.
    """

    annotations: bytes = b""
    by: Handled | None = None
    not_again: bool = False

    @property
    def handle(self) -> int:
        """By which the queue's owner knows the consumer at present; 0: nobody."""
        return self.by.handle if self.by else 0


UNCHANGED: Final = Change()
