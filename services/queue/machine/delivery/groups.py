"""Message groups, as in Broker-J: whose the messages of one group are.

STANDARD        a consumer's who has had one of them, as long as he is there; messages without a group are anybody's
SHARED_GROUPS   a consumer's while he holds one of them; those without a group are one group too
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, Protocol
from zlib import crc32

from services.common.arguments.queue import SHARED_GROUPS, STANDARD_GROUPS
from services.common.errors import BrokerError
from services.common.message import format_named
from services.queue.machine.consumers import Consumer
from services.queue.machine.delivery.passed import Passed, Rank
from services.queue.machine.entry import Entry
from services.queue.machine.message import Message
from services.queue.machine.options import QueueOptions

_HEADER: Final = "JMSXGroupID"  # where a protocol has no property for it (JMS 3.5.9)


class Groups(Protocol):
    """Of one queue. What has been passed is given to be offered again: to all that have passed it, in its order."""

    def may_have(self, consumer: Consumer, entry: Entry) -> bool:
        """Whether its group is nobody else's."""

    def passed(self, entry: Entry) -> None:
        """Somebody could not have it, who does not come by again."""

    def given(self, consumer: Consumer, entry: Entry) -> list[Entry]:
        """The consumer has got it: gives what it may have next, of what was passed."""

    def behind(self, entry: Entry) -> list[Entry]:
        """Nobody has got it who might have had it: gives what they may have next, of what was passed."""

    def settled(self, entries: Iterable[Entry]) -> list[Entry]:
        """Nobody holds these any more: gives what others may have from now on, of what was passed."""

    def gone(self, consumer: Consumer) -> list[Entry]:
        """A consumer is not there any more: gives the same."""

    def sweep(self, count: int, size: int) -> None:
        """Forgets what has left, if that is much; `count` entries of `size` bytes wait."""


class StandardGroups:
    """See Groups. Groups of one hash are one: there is an end to what is remembered."""

    def __init__(self, options: QueueOptions, rank: Rank) -> None:
        self._mask = (1 << options.most_groups.bit_length()) - 1
        self._owners: dict[int, Consumer] = {}
        self._passed = Passed(rank)
        self._group_of = group_of(options.group_key)

    def may_have(self, consumer: Consumer, entry: Entry) -> bool:
        number = self._number(entry)
        return number is None or self._owners.get(number, consumer) is consumer

    def passed(self, entry: Entry) -> None:
        self._passed.add(self._number(entry), entry)

    def given(self, consumer: Consumer, entry: Entry) -> list[Entry]:
        if (number := self._number(entry)) is not None:
            self._owners[number] = consumer
        return self._passed.behind(number, entry)

    def behind(self, entry: Entry) -> list[Entry]:
        return self._passed.behind(self._number(entry), entry)

    def settled(self, entries: Iterable[Entry]) -> list[Entry]:  # noqa: ARG002 - as Groups says
        """It is the same one's yet."""
        return []

    def gone(self, consumer: Consumer) -> list[Entry]:
        free: list[Entry] = []
        for number in [number for number, owner in self._owners.items() if owner is consumer]:
            del self._owners[number]
            free += self._passed.first(number)
        return free

    def sweep(self, count: int, size: int) -> None:
        self._passed.sweep(count, size)

    def _number(self, entry: Entry) -> int | None:
        group = self._group_of(entry)
        return None if group is None else crc32(group.encode()) & self._mask


class SharedGroups:
    """See Groups."""

    def __init__(self, options: QueueOptions, rank: Rank) -> None:
        self._default = options.default_group
        self._group_of = group_of(options.group_key)
        self._holders: dict[str, tuple[Consumer, set[int]]] = {}
        self._passed = Passed(rank)

    def may_have(self, consumer: Consumer, entry: Entry) -> bool:
        holder = self._holders.get(self._group(entry))
        return holder is None or holder[0] is consumer

    def passed(self, entry: Entry) -> None:
        self._passed.add(self._group(entry), entry)

    def given(self, consumer: Consumer, entry: Entry) -> list[Entry]:
        group = self._group(entry)
        if not consumer.settled:
            self._holders.setdefault(group, (consumer, set()))[1].add(entry.message.uid)
        return self._passed.behind(group, entry)

    def behind(self, entry: Entry) -> list[Entry]:
        return self._passed.behind(self._group(entry), entry)

    def settled(self, entries: Iterable[Entry]) -> list[Entry]:
        free: list[Entry] = []
        for entry in entries:
            group = self._group(entry)
            held = self._holders.get(group, (None, set[int]()))[1]
            held.discard(entry.message.uid)
            if group in self._holders and not held:
                del self._holders[group]
                free += self._passed.first(group)
        return free

    def gone(self, consumer: Consumer) -> list[Entry]:  # noqa: ARG002 - as Groups says
        """It holds what it has had: its groups are others' when that is settled, or has come back."""
        return []

    def sweep(self, count: int, size: int) -> None:
        self._passed.sweep(count, size)

    def _group(self, entry: Entry) -> str:
        group = self._group_of(entry)
        return self._default if group is None else group


KINDS: Final[Mapping[str, Callable[[QueueOptions, Rank], Groups]]] = {
    STANDARD_GROUPS: StandardGroups,
    SHARED_GROUPS: SharedGroups,
}


def group_of(header: str | None) -> Callable[[Entry], str | None]:
    """Says of an entry its group: by a header, or as its protocol has it; None: it has none, or none that can be read.

    It is asked of one entry for each consumer in turn, and remembers the last.
    """

    @lru_cache(1)
    def group(entry: Entry) -> str | None:
        return _read(entry.message, header)

    return group


def _read(message: Message, header: str | None) -> str | None:
    its = format_named(message.facts.format)
    try:
        if header is None and (group := its.text(message.properties, "group-id")) is not None:
            return group
        value = its.headers(message.properties).get(header or _HEADER)
    except BrokerError:
        return None
    return None if value is None else str(value)
