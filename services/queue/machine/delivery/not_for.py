"""Messages that are not for some consumers: these have said so (AMQP 1.0, part 3, 3.4.5, undeliverable-here).

It is so as long as both are there: a consumer that comes back to another owner says it again, also of messages that are
done with by then. Whoever has said it is one that chooses; when all of those messages have left it takes what is next,
as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from services.queue.machine.consumers import Consumer
from services.queue.machine.delivery.interest import Interest
from services.queue.machine.entry import Entry
from services.queue.machine.message import MemoryAccount

MOST: Final = 1000
"""Messages that are not for one consumer: with another owner all consumers of a queue say theirs in one turn."""
_TAKES: Final = 250  # bytes of memory, each of them


class NotFor:
    """Of one queue. `chose` is called when a consumer begins to choose, or does so no more."""

    __slots__ = ("_account", "_by_uid", "_chose")

    def __init__(self, account: MemoryAccount, chose: Callable[[], None]) -> None:
        self._account, self._chose = account, chose
        self._by_uid: dict[int, list[Consumer]] = {}

    def add(self, consumer: Consumer, uids: Sequence[int], *, here: bool) -> bool:
        """It is not to have these again; False where it has said so of too many. `here`: they are in the queue."""
        chooses, interest = consumer.chooses, consumer.interest or Interest(None)
        known = dict.fromkeys(uid for uid in uids if uid in interest.refused)
        if here:
            interest.refused |= dict.fromkeys(known, True)
        fresh = [uid for uid in dict.fromkeys(uids) if uid not in known]
        if not self._make_room(consumer, interest, len(fresh)):
            return False
        for uid in fresh:
            self._by_uid.setdefault(uid, []).append(consumer)
        self._account.used += _TAKES * len(fresh)
        interest.refused |= dict.fromkeys(fresh, here)
        if interest.refused:
            consumer.interest = interest
        if consumer.chooses is not chooses:
            self._chose()
        return True

    def _make_room(self, consumer: Consumer, interest: Interest, count: int) -> bool:
        """Of what nobody has seen here it said so to a former owner: that may be done with, and the first gives way."""
        excess = max(len(interest.refused) + count - MOST, 0)
        unseen = list(islice((uid for uid, here in interest.refused.items() if not here), excess))
        if len(unseen) < excess:
            return False
        for uid in unseen:
            del interest.refused[uid]
            self._not_his(consumer, uid)
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
        interest.refused.pop(uid, None)
        if interest.takes_all:
            consumer.interest = None
            self._chose()

    def gone(self, consumer: Consumer) -> None:
        """It is not here any more."""
        for uid in consumer.interest.refused if consumer.interest else ():
            self._not_his(consumer, uid)

    def _not_his(self, consumer: Consumer, uid: int) -> None:
        if (its := self._by_uid.get(uid)) and consumer in its:
            its.remove(consumer)
            self._account.used -= _TAKES
            if not its:
                del self._by_uid[uid]
