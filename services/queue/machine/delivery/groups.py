"""Message groups, as in Broker-J: whose the messages of one group are.

STANDARD        a consumer's who has had one of them, as long as he is there; messages without a group are anybody's
SHARED_GROUPS   a consumer's while he holds one of them; those without a group are one group too
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol
from zlib import crc32

from services.common.arguments.queue import SHARED_GROUPS, STANDARD_GROUPS
from services.common.errors import BrokerError
from services.common.message import format_named
from services.queue.machine.consumers import Consumer
from services.queue.machine.delivery.passed import Passed, Rank
from services.queue.machine.entry import Entry, Holder
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

    def held(self, consumer: Consumer | None, entry: Entry) -> list[Entry]:
        """Its holder has it from before, as a consumer who is there or not: gives what that one may have next."""

    def settled(self, entries: Iterable[Entry]) -> list[Entry]:
        """Nobody holds these any more: gives what others may have from now on, of what was passed."""

    def handed_on(self, consumer: Consumer) -> bool:
        """Whether others get more of a group of which it holds some as soon as it is gone."""

    def gone(self, consumer: Consumer) -> list[Entry]:
        """A consumer is not there any more: gives the same."""

    def sweep(self, count: int, kept: int) -> None:
        """Forgets what has left, if that is much; `count` entries wait, in a queue that keeps so many bytes."""


@dataclass(slots=True, eq=False)
class _Owner:
    """Who has a group, and how many of its messages he holds; `who` is None while he is away, and may come again."""

    group: Hashable
    who: object
    held: int = 0


class StandardGroups:
    """See Groups. Groups of one hash are one: there is an end to what is remembered.

    A group stays one's who went away with a broken stream as long as he holds some of it: he may come again, and what
    he does not come for is back in its place before others get the rest.
    """

    def __init__(self, options: QueueOptions, rank: Rank) -> None:
        self._mask = (1 << options.most_groups.bit_length()) - 1
        self._owners: dict[Hashable, _Owner] = {}
        self._held: dict[int, _Owner] = {}  # by uid
        self._passed = Passed(rank)
        self._group_of = group_of(options.group_key)

    def may_have(self, consumer: Consumer, entry: Entry) -> bool:
        owner = self._owners.get(self._number(entry))
        return owner is None or owner.who is consumer

    def passed(self, entry: Entry) -> None:
        self._passed.add(self._number(entry), entry)

    def given(self, consumer: Consumer, entry: Entry) -> list[Entry]:
        if (number := self._number(entry)) is None:
            return []
        if (owner := self._owners.get(number)) is None:
            owner = self._owners[number] = _Owner(number, consumer)
        if not consumer.settled:
            self._hold(owner, entry)
        return self._passed.behind(number, entry)

    def behind(self, entry: Entry) -> list[Entry]:
        return self._passed.behind(self._number(entry), entry)

    def held(self, consumer: Consumer | None, entry: Entry) -> list[Entry]:
        if (number := self._number(entry)) is None:
            return []
        free = self.settled([entry])  # by whoever had it
        owner = self._owners.get(number)
        if consumer and (owner is None or owner.who is None):
            owner = self._owners[number] = _Owner(number, consumer)
            free += self._passed.first(number)
        elif owner is None and _is_awaited(entry):
            owner = self._owners[number] = _Owner(number, None)
        if owner and owner.who is consumer and (consumer or _is_awaited(entry)):
            self._hold(owner, entry)
        return free

    def settled(self, entries: Iterable[Entry]) -> list[Entry]:
        """It is the same one's yet, if he is there."""
        free: list[Entry] = []
        for entry in entries:
            owner = self._held.pop(entry.message.uid, None)
            if owner is None:
                continue
            owner.held -= 1
            if owner.who is None and not owner.held and self._owners.get(owner.group) is owner:
                free += self._free(owner)
        return free

    def handed_on(self, consumer: Consumer) -> bool:
        return any(owner.who is consumer and owner.held for owner in self._owners.values())

    def gone(self, consumer: Consumer) -> list[Entry]:
        free: list[Entry] = []
        for owner in [owner for owner in self._owners.values() if owner.who is consumer]:
            if consumer.link.broken and owner.held:
                owner.who = None
            else:
                free += self._free(owner)
        return free

    def sweep(self, count: int, kept: int) -> None:
        self._passed.sweep(count, kept)

    def _hold(self, owner: _Owner, entry: Entry) -> None:
        owner.held += 1
        self._held[entry.message.uid] = owner

    def _free(self, owner: _Owner) -> list[Entry]:
        del self._owners[owner.group]
        return self._passed.first(owner.group)

    def _number(self, entry: Entry) -> int | None:
        group = self._group_of(entry)
        return None if group is None else crc32(group.encode()) & self._mask


class SharedGroups:
    """See Groups. Of one group several may hold some, where they had it from before: it is nobody's more then."""

    def __init__(self, options: QueueOptions, rank: Rank) -> None:
        self._default = options.default_group
        self._group_of = group_of(options.group_key)
        self._owners: dict[Hashable, dict[object, _Owner]] = {}  # by group, and who
        self._held: dict[int, _Owner] = {}  # by uid
        self._passed = Passed(rank)

    def may_have(self, consumer: Consumer, entry: Entry) -> bool:
        owners = self._owners.get(self._group(entry))
        return owners is None or (len(owners) == 1 and consumer in owners)

    def passed(self, entry: Entry) -> None:
        self._passed.add(self._group(entry), entry)

    def given(self, consumer: Consumer, entry: Entry) -> list[Entry]:
        if not consumer.settled:
            self._hold(consumer, entry)
        return self.behind(entry)

    def behind(self, entry: Entry) -> list[Entry]:
        return self._passed.behind(self._group(entry), entry)

    def held(self, consumer: Consumer | None, entry: Entry) -> list[Entry]:
        free = self.settled([entry])  # by whoever had it
        self._hold(consumer or entry.holder, entry)
        return free + self._passed.first(self._group(entry))

    def settled(self, entries: Iterable[Entry]) -> list[Entry]:
        free: list[Entry] = []
        for entry in entries:
            owner = self._held.pop(entry.message.uid, None)
            if owner is None:
                continue
            owner.held -= 1
            if not owner.held:
                free += self._free(owner)
        return free

    def handed_on(self, consumer: Consumer) -> bool:  # noqa: ARG002 - as Groups says
        """They wait until it holds none."""
        return False

    def gone(self, consumer: Consumer) -> list[Entry]:  # noqa: ARG002 - as Groups says
        """It holds what it has had: its groups are others' when that is settled, or has come back."""
        return []

    def sweep(self, count: int, kept: int) -> None:
        self._passed.sweep(count, kept)

    def _hold(self, who: object, entry: Entry) -> None:
        group = self._group(entry)
        owners = self._owners.setdefault(group, {})
        owner = owners.get(who)
        if owner is None:
            owner = owners[who] = _Owner(group, who)
        owner.held += 1
        self._held[entry.message.uid] = owner

    def _free(self, owner: _Owner) -> list[Entry]:
        owners = self._owners[owner.group]
        del owners[owner.who]
        if not owners:
            del self._owners[owner.group]
        return self._passed.first(owner.group)

    def _group(self, entry: Entry) -> str:
        group = self._group_of(entry)
        return self._default if group is None else group


def _is_awaited(entry: Entry) -> bool:
    """Whether its holder may come again."""
    return isinstance(entry.holder, Holder) and entry.holder.broken


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
        value = its.header(message.properties, header or _HEADER)
    except BrokerError:
        return None
    return None if value is None else str(value)
