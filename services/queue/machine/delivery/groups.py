"""Message groups, as in Broker-J: whose the messages of one group are.

STANDARD        a consumer's who has had one of them, as long as he is there; messages without a group are anybody's
SHARED_GROUPS   a consumer's while he holds one of them; those without a group are one group too
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias
from zlib import crc32

from sortedcontainers import SortedKeyList

from services.common.arguments.queue import SHARED_GROUPS, STANDARD_GROUPS
from services.common.errors import BrokerError
from services.common.message import format_named
from services.queue.machine.consumers import Consumer
from services.queue.machine.entry import AVAILABLE, Entry
from services.queue.machine.message import Message
from services.queue.machine.options import QueueOptions

_HEADER: Final = "JMSXGroupID"  # where a protocol has no property for it (JMS 3.5.9)
_AT_ONCE: Final = 16  # messages of a group that are offered again when it is nobody's any more; each brings the next

Rank: TypeAlias = Callable[[Entry], Any]
"""Of an entry, its place in the order."""


class Groups(Protocol):
    """Of one queue."""

    def may_have(self, consumer: Consumer, entry: Entry) -> bool:
        """Whether its group is nobody else's."""

    def passed(self, entry: Entry) -> None:
        """Somebody could not have it, who does not come by again."""

    def given(self, consumer: Consumer, entry: Entry) -> list[Entry]:
        """The consumer has got it: gives what it may have next, of what it has passed."""

    def settled(self, entries: Iterable[Entry]) -> list[Entry]:
        """Nobody holds these any more: gives those that wait, and that others may have from now on."""

    def gone(self, consumer: Consumer) -> bool:
        """A consumer is not there any more; whether others may have from now on what they have passed."""


class StandardGroups:
    """See Groups. Groups of one hash are one: there is an end to what is remembered."""

    def __init__(self, options: QueueOptions, rank: Rank) -> None:  # noqa: ARG002 - as all kinds
        self._mask = (1 << options.most_groups.bit_length()) - 1
        self._owners: dict[int, Consumer] = {}
        self._group_of = group_of(options.group_key)

    def may_have(self, consumer: Consumer, entry: Entry) -> bool:
        number = self._number(entry)
        return number is None or self._owners.get(number, consumer) is consumer

    def passed(self, entry: Entry) -> None:
        """All look again when its consumer is not there any more."""

    def given(self, consumer: Consumer, entry: Entry) -> list[Entry]:
        if (number := self._number(entry)) is not None:
            self._owners[number] = consumer
        return []

    def settled(self, entries: Iterable[Entry]) -> list[Entry]:  # noqa: ARG002 - as Groups says
        """It is the same one's yet."""
        return []

    def gone(self, consumer: Consumer) -> bool:
        before = len(self._owners)
        self._owners = {number: owner for number, owner in self._owners.items() if owner is not consumer}
        return len(self._owners) < before

    def _number(self, entry: Entry) -> int | None:
        group = self._group_of(entry)
        return None if group is None else crc32(group.encode()) & self._mask


class SharedGroups:
    """See Groups. `_passed` are entries that wait, by their group, and that somebody could not have: in their order."""

    def __init__(self, options: QueueOptions, rank: Rank) -> None:
        self._default = options.default_group
        self._group_of = group_of(options.group_key)
        self._holders: dict[str, tuple[Consumer, set[int]]] = {}
        self._passed: dict[str, SortedKeyList[Entry, Any]] = {}
        self._rank = rank

    def may_have(self, consumer: Consumer, entry: Entry) -> bool:
        holder = self._holders.get(self._group(entry))
        return holder is None or holder[0] is consumer

    def passed(self, entry: Entry) -> None:
        group = self._group(entry)
        if (passed := self._passed.get(group)) is None:
            passed = self._passed[group] = SortedKeyList(key=self._rank)
        if entry not in passed:
            passed.add(entry)

    def given(self, consumer: Consumer, entry: Entry) -> list[Entry]:
        group = self._group(entry)
        if not consumer.settled:
            self._holders.setdefault(group, (consumer, set()))[1].add(entry.message.uid)
        return self._take_passed(group, 1)

    def settled(self, entries: Iterable[Entry]) -> list[Entry]:
        free: list[Entry] = []
        for entry in entries:
            group = self._group(entry)
            held = self._holders.get(group, (None, set[int]()))[1]
            held.discard(entry.message.uid)
            if group in self._holders and not held:
                del self._holders[group]
                free += self._take_passed(group, _AT_ONCE)
        return free

    def gone(self, consumer: Consumer) -> bool:  # noqa: ARG002 - as Groups says
        """It holds what it has had: its groups are others' when that is settled, or has come back."""
        return False

    def _take_passed(self, group: str, most: int) -> list[Entry]:
        """The first that wait yet."""
        passed, taken = self._passed.get(group), list[Entry]()
        while passed and len(taken) < most:
            entry: Entry = passed.pop(0)
            if entry.state == AVAILABLE:
                taken.append(entry)
        if passed is not None and not passed:
            del self._passed[group]
        return taken

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
