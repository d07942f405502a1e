"""Messages that are not for some consumers: these have said so (AMQP 1.0, part 3, 3.4.5, undeliverable-here).

It is so as long as both are there: a consumer that comes back to another owner says it again. Whoever has said it of a
message that waits is one that chooses; when none of them waits any more it takes what is next, as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from services.queue.machine.consumers import Consumer
from services.queue.machine.delivery.interest import Interest
from services.queue.machine.entry import Entry
from services.queue.machine.message import MemoryAccount

MOST: Final = 10_000
"""Messages that are not for one consumer."""
_TAKES: Final = 250  # bytes of memory, each of them


class NotFor:
    """Of one queue. `chose` is called when a consumer begins to choose, or does so no more."""

    __slots__ = ("_account", "_by_uid", "_chose")

    def __init__(self, account: MemoryAccount, chose: Callable[[], None]) -> None:
        self._account, self._chose = account, chose
        self._by_uid: dict[int, list[Consumer]] = {}

    def add(self, consumer: Consumer, uids: Sequence[int]) -> bool:
        """It is not to have these again; False where it has said so of too many."""
        chooses, interest = consumer.chooses, consumer.interest or Interest(None)
        if len(interest.refused) + len(uids) > MOST:
            return False
        for uid in uids:
            if uid not in interest.refused:
                interest.refused.add(uid)
                self._by_uid.setdefault(uid, []).append(consumer)
                self._account.used += _TAKES
        consumer.interest = interest
        if not chooses:
            self._chose()
        return True

    def left(self, entries: Iterable[Entry]) -> None:
        """They are not in the queue any more."""
        for entry in entries if self._by_uid else ():
            for consumer in self._by_uid.pop(entry.message.uid, ()):
                self._forget(consumer, entry.message.uid)

    def _forget(self, consumer: Consumer, uid: int) -> None:
        self._account.used -= _TAKES
        if (interest := consumer.interest) is None:
            return
        interest.refused.discard(uid)
        if interest.takes_all:
            consumer.interest = None
            self._chose()

    def gone(self, consumer: Consumer) -> None:
        """It is not here any more."""
        for uid in consumer.interest.refused if consumer.interest else ():
            if (its := self._by_uid.get(uid)) and consumer in its:
                its.remove(consumer)
                self._account.used -= _TAKES
                if not its:
                    del self._by_uid[uid]
