"""A message as a queue process holds it: once, however many queues refer to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from services.common.message.alike import objects
from services.common.message.facts import Facts

if TYPE_CHECKING:
    from services.queue.machine.body import Body
    from services.queue.machine.entry import Entry

# What the resident set grows by, as measured, for a message beside properties, body and routing key, and for an entry
# of it: the objects, what the allocator rounds up, their share of containers, and facts, which are its own where no
# other has its key. An entry that is unsettled takes a little more, one that waits a little less.
_MESSAGE = 308
_ENTRY = 180


class Message:
    """Identity, opaque properties and body; `references` counts the entries that hold it.

    `received`: when a gateway had it, Unix ms.
    """

    __slots__ = ("body", "facts", "properties", "received", "references", "uid")

    def __init__(self, uid: int, facts: Facts, properties: bytes, body: Body, received: int = 0) -> None:
        self.uid = uid
        self.facts = facts
        self.properties = properties
        self.body = body
        self.received = received
        self.references = 0

    @property
    def weight(self) -> int:
        """Bytes that are carried of it; a number kept with each message would take as much again as its uid."""
        return len(self.properties) + len(self.body)

    @property
    def kept(self) -> int:
        """Bytes of it that are in memory as long as it is: those that are carried, and its routing key."""
        return len(self.properties) + len(self.body) + len(self.facts.routing_key)


class Holding:
    """Bytes that one queue keeps in memory; a message on several queues counts for each of them.

    `letters`, of `letter_bytes` of bodies, are its dead letters that are on their way, or wait for one.
    """

    __slots__ = ("letter_bytes", "letters", "size")

    def __init__(self) -> None:
        self.size = 0
        self.letters = 0
        self.letter_bytes = 0

    def buries(self, entry: Entry) -> None:
        """It is a dead letter from now on."""
        self.letters += 1
        self.letter_bytes += len(entry.message.body)

    def buried(self, entry: Entry) -> None:
        """It is one no more: others have it, or nobody."""
        self.letters -= 1
        self.letter_bytes -= len(entry.message.body)

    def take(self, entries: Iterable[Entry]) -> None:
        """Entries that the account has already are this queue's."""
        self.size += sum(entry.message.kept + _MESSAGE + _ENTRY for entry in entries)


NOBODYS: Final = Holding()
"""Of entries that are in no queue of this process, yet or any more."""


class MemoryAccount:
    """Bytes of the messages that this process holds, all queues together: a message once, however many have it."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0

    def hold(self, messages: Sequence[Message], kept: int, holding: Holding) -> None:
        """Each has one entry more, in the queue of `holding`; `kept` is the sum of what they say of themselves."""
        count = len(messages)
        fresh = [message for message in messages if not message.references]
        for message in messages:
            message.references += 1
        size = kept if len(fresh) == count else sum([message.kept for message in fresh])
        self.used += size + len(fresh) * _MESSAGE + count * _ENTRY
        holding.size += kept + count * (_MESSAGE + _ENTRY)

    def hold_parcel(self, count: int, kept: int, holding: Holding) -> None:
        """So many messages of one queue came, each with its entry; neither need be an object yet."""
        size = kept + count * (_MESSAGE + _ENTRY)
        self.used += size
        holding.size += size

    def let_go_parcel(self, count: int, kept: int, holding: Holding) -> None:
        """They are no more."""
        self.hold_parcel(-count, -kept, holding)

    def let_go(self, entries: Sequence[Entry], holding: Holding) -> None:
        """These entries of the queue of `holding` are no more."""
        count, gone, size, whole = len(entries), 0, 0, 0
        for entry in entries:
            message = entry.message
            message.references -= 1
            kept = len(message.properties) + len(message.body) + len(message.facts.routing_key)
            whole += kept
            if not message.references:
                gone += 1
                size += kept
        self.used -= size + gone * _MESSAGE + count * _ENTRY
        holding.size -= whole + count * (_MESSAGE + _ENTRY)


class Interned:
    """Makes equal properties one object. Bounded: forgets everything when it is full.

    Long properties are hardly ever the same twice, and would be kept here when their messages are gone.
    """

    _AT_MOST = 4096
    _LONGEST = 512

    def __init__(self) -> None:
        self._properties: dict[bytes, bytes] = {}

    def properties(self, column: list[bytes]) -> list[bytes]:
        """The same, with one object for equal ones that repeat here."""
        found = objects(column)
        if 2 * len(found) > len(column) > 1:
            return column
        if len(found) == 1:
            return [self.one(column[0])] * len(column)
        interned = {identity: self.one(value) for identity, value in found.items()}
        return list(map(interned.__getitem__, map(id, column)))

    def one(self, properties: bytes) -> bytes:
        """The one object for equal ones, unless they are long."""
        if len(properties) > self._LONGEST:
            return properties
        if len(self._properties) > self._AT_MOST:
            self._properties.clear()
        return self._properties.setdefault(properties, properties)
