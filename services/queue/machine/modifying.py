"""What consumers say of messages that they give back: annotations for them, and that they are not for them again.

AMQP 1.0, part 3, section 3.4.5. Nothing is made for it in a queue of which nobody has said that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from services.queue.machine.consumers import Consumer
from services.queue.machine.delivery.dispatcher import Dispatcher
from services.queue.machine.delivery.not_for import MOST, NotFor
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry
from services.queue.machine.features.annotated import Annotated
from services.queue.machine.record import uids_of


class Change(NamedTuple):
    """`annotations` as `services/common/message/amqp_1_0/added.py` writes them."""

    annotations: bytes = b""
    not_for: Consumer | None = None


UNCHANGED: Final = Change()


class Modifying:
    """Of one queue."""

    __slots__ = ("_delivery", "_entries")

    def __init__(self, entries: Entries, delivery: Dispatcher) -> None:
        self._entries, self._delivery = entries, delivery

    def apply(self, entries: list[Entry], change: Change, coming: Sequence[int] = ()) -> str:
        """To messages that are nobody's at the moment, and go back then; why it was too much, or nothing.

        Annotations of what is `coming`, from who had it before there was this owner, are forgotten.
        """
        why = ""
        if change.annotations:
            why = self.annotated().annotate(entries, change.annotations, self._entries.holding)
        if change.not_for is not None and not self._refuse_all(change.not_for, uids_of(entries), coming):
            why = f"more than {MOST} messages of a queue are undeliverable here"
        return why

    def _refuse_all(self, consumer: Consumer, here: Sequence[int], coming: Sequence[int]) -> bool:
        return self.refuse(consumer, here, here=True) and self.refuse(consumer, coming, here=False)

    def annotated(self) -> Annotated:
        """What is known of annotations that were added; made now, if there were none."""
        its = self._entries
        if its.annotated is None:
            its.annotated = Annotated(its.options, its.context)
        return its.annotated

    def refuse(self, consumer: Consumer, uids: Sequence[int], *, here: bool) -> bool:
        """It is not to have these again, as NotFor.add says; False where there are too many of them."""
        its = self._entries
        if not uids:
            return True
        if its.not_for is None:
            its.not_for = NotFor(its.context.account, self._delivery.chose)
        return its.not_for.add(consumer, uids, here=here)

    def too_much(self, entries: Iterable[Entry], annotations: bytes) -> str:
        """Why some of these could not take them, or nothing. They stay as they are."""
        return self.annotated().too_much(entries, annotations) if annotations else ""
