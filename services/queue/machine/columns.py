"""A publish batch, decoded: what there is of each message, and which messages are for which queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from struct import Struct
from typing import Final, NamedTuple, TypeAlias, cast

from services.common.errors import InternalError
from services.common.message import columns, in_front
from services.common.message.facts import Facts, from_bytes, from_run
from services.common.message.indexes import chosen, condensed
from services.common.topology.slots import SlotId, slots_in
from services.queue.machine.body import Body
from services.queue.machine.message import Interned, Message
from services.queue.machine.times import times_of
from services.rpc.queue_pb2 import PublishBatch

Raw: TypeAlias = bytes | memoryview
"""A batch as it came."""


def decoded(raw: Raw) -> tuple[PublishBatch, list[Body]]:
    """A batch, and its bodies, which it need not have; none that are shared. Raises DecodeError for other bytes."""
    bodies, rest = in_front.bodies(in_front.PUBLISHES, raw)
    batch = PublishBatch.FromString(bytes(raw[rest:]))
    return batch, [*bodies, *batch.bodies]


_LETTER_OF: Final = Struct("<QQ")  # queue id, uid


class Alike(NamedTuple):
    """Messages of a batch, by their indexes, that were sent and received alike."""

    indexes: Sequence[int]
    time_ms: int  # when they were received, Unix ms
    resent: bool = False
    immediate: bool = False


def queue_ids_of(batch: PublishBatch) -> set[SlotId]:
    """All queues where messages of a batch go."""
    named = (one.queue_id for one in batch.queues), *(run.queue_ids for run in batch.runs)
    return set(slots_in(chain.from_iterable(named)))


class Only:
    """A batch of one message, as Columns has it: that takes a third of the time."""

    __slots__ = ("_message", "uids")

    def __init__(self, message: Message) -> None:
        self.uids = [message.uid]
        self._message = message

    def message(self, index: int) -> Message:
        """As Columns says."""
        return (self._message,)[index]

    def received(self, index: int) -> int:
        """As Columns says."""
        return self.message(index).received


def only(batch: PublishBatch, bodies: Sequence[Body], interned: Interned) -> Only | None:
    """A batch of one message; None for any other batch, and for one that contradicts itself."""
    if (
        len(batch.uids) != 1
        or batch.runs
        or batch.keys
        or not len(batch.facts) == len(batch.properties) == len(bodies) == 1
    ):
        return None
    received = batch.times_ms[0] if batch.times_ms else batch.time_ms
    facts, properties = from_bytes(batch.facts[0]), interned.one(batch.properties[0])
    return Only(Message(batch.uids[0], facts, properties, bodies[0], received))


class Columns:
    """`queues` are the ids, with the indexes of the messages for each; `times` are Unix ms.

    `some_are_shared`: whether some messages are for more queues than one. Every queue asks, so it is kept. `published`:
    whether clients have published them: they are no dead letters, nor moved by hand. `letters`: of those that are dead
    letters, what says of which entry, if there are any.
    """

    __slots__ = (
        "_immediate",
        "_messages",
        "_resent",
        "bodies",
        "facts",
        "letters",
        "properties",
        "published",
        "queues",
        "some_are_shared",
        "times",
        "uids",
    )

    def __init__(
        self, batch: PublishBatch, bodies: Sequence[Body], interned: Interned, *, published: bool = True
    ) -> None:
        """Raises InternalError for a batch that contradicts itself."""
        self.published = published
        self.uids: list[int] = list(batch.uids)
        self.bodies = bodies
        self.times: int | list[int] = times_of(batch)
        self.letters = _letters_in(batch) if batch.letter_uids else None
        self._messages: list[Message | None] | None = None
        if batch.runs:
            self._read_runs(batch, interned)
        else:
            self._read_columns(batch, interned)
        self.some_are_shared = sum(len(indexes) for _, indexes in self.queues) > len(self.uids)

    def _read_columns(self, batch: PublishBatch, interned: Interned) -> None:
        self.facts: list[Facts] = columns.facts_in(batch)
        self.properties: list[bytes] = interned.properties(columns.properties_in(batch))
        queues = [(one.queue_id, chosen(one)) for one in batch.queues]
        self.queues = cast("list[tuple[SlotId, Sequence[int]]]", queues)  # no call for each of many
        self._resent = frozenset(batch.resent)
        self._immediate = frozenset(batch.immediate)

    def _read_runs(self, batch: PublishBatch, interned: Interned) -> None:
        """As batches were before there were facts."""
        self.facts, properties = [], []
        queues: dict[SlotId, list[int]] = {}
        resent: set[int] = set()
        immediate: set[int] = set()
        own = iter(batch.properties)
        for run in batch.runs:
            indexes = range(len(self.facts), len(self.facts) + run.count)
            self.facts += [from_run(run)] * run.count
            shared = run.HasField("shared_properties")
            properties += [run.shared_properties] * run.count if shared else [next(own) for _ in indexes]
            for queue_id in slots_in(run.queue_ids):
                queues.setdefault(queue_id, []).extend(indexes)
            resent.update(indexes if run.resent else ())
            immediate.update(indexes if run.immediate else ())
        self.properties = interned.properties(properties)
        self.queues = [(queue_id, condensed(some)) for queue_id, some in queues.items()]
        self._resent, self._immediate = frozenset(resent), frozenset(immediate)

    def received(self, index: int) -> int:
        """When the gateway had a message, Unix ms."""
        return self.times if isinstance(self.times, int) else self.times[index]

    def alike(self, indexes: Sequence[int]) -> Iterator[Alike]:
        """Messages in their order, parted where they differ in how they were sent; they hardly ever do."""
        if isinstance(self.times, int) and not self._resent and not self._immediate:
            yield Alike(indexes, self.times)
            return
        for (time_ms, resent, immediate), group in groupby(indexes, self._how):
            yield Alike(condensed(list(group)), time_ms, resent, immediate)

    def _how(self, index: int) -> tuple[int, bool, bool]:
        return self.received(index), index in self._resent, index in self._immediate

    def message(self, index: int) -> Message:
        """The one object for a message."""
        if self._messages is None:
            self._messages = [None] * len(self.uids)
        found = self._messages[index]
        if found is None:
            columns = self.uids[index], self.facts[index], self.properties[index], self.bodies[index]
            found = Message(*columns, self.received(index))
            self._messages[index] = found
        return found


def _letters_in(batch: PublishBatch) -> list[bytes | None]:
    if not len(batch.letter_queues) == len(batch.letter_uids) == len(batch.uids):
        raise InternalError("a batch says of other messages than it has of what they are the dead letters")
    letters = zip(batch.letter_queues, batch.letter_uids, strict=True)
    return [_LETTER_OF.pack(*letter) if letter[0] else None for letter in letters]
