"""Annotations that receivers have added to messages (AMQP 1.0, part 3, 3.4.5): its owner's death does not lose them.

A message has them in its properties from then on, and so has what is written of it at a hand-over, and its dead letter.
Of one whose content is in the journal already, all that was added is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from services.common.errors import BrokerError, NotAllowed
from services.common.message import format_named
from services.common.message.amqp_1_0 import added
from services.queue.machine import turn
from services.queue.machine.entry import Entry
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.message import NOBODYS, Holding, Message

if TYPE_CHECKING:
    from services.queue.machine.context import QueueContext
    from services.queue.machine.options import QueueOptions

FEATURE: Final = "annotated"
_UID: Final = Struct("<Q")


class _Noted(NamedTuple):
    """What the journal says was added, and where."""

    said: bytes
    place: NotePlace


class Annotated:
    """Of one queue."""

    feature = FEATURE
    __slots__ = ("_context", "_noted", "_options")

    def __init__(self, options: QueueOptions, context: QueueContext) -> None:
        self._options, self._context = options, context
        self._noted: dict[int, _Noted] = {}  # by uid

    def annotate(self, entries: Iterable[Entry], said: bytes, holding: Holding) -> str:
        """Adds to messages that are nobody's at the moment; why some have not taken it, or nothing."""
        why = ""
        for entry in entries:
            try:
                properties, noted = self._with(entry, said)
            except BrokerError as error:
                why = error.text
            else:
                self._replace(entry, properties, holding)
                self._note(entry, noted)
        return why

    def too_much(self, entries: Iterable[Entry], said: bytes) -> str:
        """Why some of them could not take it, or nothing."""
        for entry in entries:
            try:
                self._with(entry, said)
            except BrokerError as error:
                return error.text
        return ""

    def _with(self, entry: Entry, said: bytes) -> tuple[bytes, bytes]:
        """The properties of a message with what is said of it, and what is to be noted of it then.

        Raises ResourceError where either is too much, and NotAllowed where the queue goes by such a name.
        """
        if theirs := sorted(added.names_in(said) & self._options.keys, key=str):
            raise NotAllowed(f"receivers do not say '{theirs[0]}', by which the queue goes, of a message")
        noted = self._noted.get(entry.message.uid)
        return _added(entry.message, said), added.with_both(noted.said if noted else b"", said)

    def _replace(self, entry: Entry, properties: bytes, holding: Holding) -> None:
        """By a message of its own: other queues have the former one."""
        was, account = entry.message, self._context.account
        account.let_go([entry], holding)
        entry.message = now = Message(was.uid, was.facts, properties, was.body, was.received)
        account.hold([now], now.kept, holding)

    def _note(self, entry: Entry, said: bytes) -> None:
        if entry.part is None:
            return
        uid = entry.message.uid
        self._drop([uid])
        self._context.account.used += len(said)
        place = self._context.draft.note(Note(self._options.queue_id, FEATURE, _UID.pack(uid) + said))
        self._noted[uid] = _Noted(said, place)

    def handed_on(self, entries: Iterable[Entry]) -> Mapping[int, NotePlace]:
        """They are out of the queue, but on disk yet: by uid, where it is noted of them, for who drops it with them."""
        uids = [entry.message.uid for entry in entries]
        return {uid: noted.place for uid in uids if (noted := self._take(uid))}

    def left(self, entries: Iterable[Entry]) -> None:
        """They are not in the queue any more."""
        if self._noted:
            self._drop([entry.message.uid for entry in entries])

    def _take(self, uid: int) -> _Noted | None:
        noted = self._noted.pop(uid, None)
        if noted:
            self._context.account.used -= len(noted.said)
        return noted

    def _drop(self, uids: Iterable[int]) -> None:
        self._context.draft.drop_notes([noted.place for uid in uids if (noted := self._take(uid))])

    def end(self, *, durable: bool) -> None:
        """What was said of messages that were not put back yet takes no memory any more, nor, if `durable`, any of the
        journal.
        """
        if durable:
            self._drop(list(self._noted))
        else:
            for uid in list(self._noted):
                self._take(uid)

    def unwritten(self) -> Iterator[Note]:
        """Nothing: it is noted at once, or written with what the message is."""
        return iter(())

    def recall(self, notes: Sequence[tuple[Note, NotePlace]], entries: Sequence[Entry]) -> None:
        """As Keeper says: messages have it again once they are put back, by `recovered`.

        The last note of one has all; others are not needed any more.
        """
        there, stale = {entry.message.uid for entry in entries}, list[NotePlace]()
        for note, place in sorted(notes, key=lambda each: each[1]):
            if note.feature != FEATURE:
                continue
            (uid,) = _UID.unpack_from(note.value)
            if former := self._take(uid):
                stale.append(former.place)
            if uid in there:
                said = note.value[_UID.size :]
                self._context.account.used += len(said)
                self._noted[uid] = _Noted(said, place)
            else:
                stale.append(place)
        self._context.draft.drop_notes(stale)

    def portion(self, entries: Sequence[Entry]) -> int:
        """How many of these go in one turn: all, unless too many of them are to be written anew."""
        noted = [at for at, entry in enumerate(entries) if entry.message.uid in self._noted]
        return noted[turn.REWRITTEN] if len(noted) > turn.REWRITTEN else len(entries)

    def recovered(self, entries: Iterable[Entry]) -> None:
        """What was on disk is about to be put back, in parts: it takes long to write messages anew."""
        for entry in entries:
            if noted := self._noted.get(entry.message.uid):
                self._recall(entry, noted.said)

    def _recall(self, entry: Entry, said: bytes) -> None:
        """What was taken one after the other is not too much together (`added.py`): only a later release takes less."""
        with suppress(BrokerError):
            self._replace(entry, _added(entry.message, said), NOBODYS)


def _added(message: Message, said: bytes) -> bytes:
    return format_named(message.facts.format).with_annotations(message.properties, said)
