"""Encodes rows as a batch for the wire (proto/ledger.proto): in columns, repeated values once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from services.common.ledger.packed import NUMBERS, UIDS, looked_up, packed
from services.common.ledger.place import Keyed, LedgerPlace, Peer
from services.common.ledger.stages import GOING_ON
from services.common.ledger.uid_ranges import Ranges, compress
from services.rpc.ledger_pb2 import LedgerBatch, Place

MOST_RANGES = 30_000  # in a batch, messages of mixtures counted too: it has to stay below NATS's limit of 1 MiB
MOST_TEXT = 100_000  # characters of places, after which a batch is full
_MOST_SINGLES = 1000  # uids of a row that are listed one by one where they are not consecutive; more are told as ranges
_BASE, _KEY = itemgetter(0), itemgetter(1)  # of what is keyed
_HOUR_US = 3_600_000_000
_PLACES = 4096  # that are remembered as they are sent, unless …
_LONG = 1000  # … one of their words is longer: they would fill the memory
_MIXED_AT_ONCE = 256  # messages of a mixture that is too large for a batch


class Mixture(NamedTuple):
    """Places, and for each message, by uid ascending, the index of its place, and its bytes where they are known.

    Indexes that are below 256 take least time as bytes.
    """

    places: Sequence[Keyed]
    which: Sequence[int]
    sizes: Sequence[int] = ()


class Row(NamedTuple):
    """One stage reached by some messages; a plain tuple of the same shape does."""

    time_us: int
    stage: int
    place: LedgerPlace
    uids: Sequence[int]
    outcome: str
    reason: str
    size: int
    successors: range | None
    mixture: Mixture | None = None


class Identified(NamedTuple):
    """Messages with the properties that identify them; one for all, or one for each."""

    format: str
    uids: Sequence[int]
    properties: Sequence[bytes]


class Sealed(NamedTuple):
    """A batch ready to be sent: `rows` rows from number `first_row` on; or without rows, captured messages."""

    first_row: int
    rows: int
    payload: bytes
    captures: int = 0
    """Number of a batch of captured messages; 0 for a batch of rows."""

    @property
    def name(self) -> str:
        """Unique among the batches of the instance."""
        return f"{self.first_row}:{self.captures}" if self.captures else str(self.first_row)


class Draft:
    """A batch in the making: rows are encoded as they are added, so that sealing it takes no time.

    It begins with the fields of `header`; its rows are numbered from `first_row` on.
    """

    def __init__(self, header: LedgerBatch, first_row: int) -> None:
        self.first_row = first_row
        self.rows = 0
        self.room = MOST_RANGES
        """How many ranges may still be added."""
        self.text = 0
        """Characters of all places; at MOST_TEXT the batch is full."""
        self._batch = LedgerBatch(service=header.service, instance=header.instance, first_row=first_row, words=[""])
        self._places: dict[LedgerPlace, int] = {}
        self._numbers: dict[int, int] = {}  # of places by identity …
        self._kept: list[LedgerPlace] = []  # … which no other object has as long as they are here
        self._keyed: dict[tuple[int, str], int] = {}
        self._words = {"": 0}
        self._singles: list[Sequence[int]] = []

    @property
    def next_row(self) -> int:
        """The number of the next row that is added, here or to another draft."""
        return self.first_row + self.rows

    def fits(self, rows: Sequence[Row], ranges: Sequence[Ranges]) -> bool:
        """Whether there is room for rows."""
        wanted = sum([len(firsts) for firsts, _ in ranges])
        mixtures = [row[8] for row in rows if row[8] is not None]
        if not mixtures:
            return wanted <= self.room
        wanted += sum([len(mixture.which) for mixture in mixtures])
        return wanted <= self.room and self.text + sum(map(self._text_of, mixtures)) <= MOST_TEXT

    def _text_of(self, mixture: Mixture) -> int:
        return _text_of_keys(mixture) + _text_of_bases(mixture, self._numbers)

    def add(self, rows: Sequence[Row], ranges: Sequence[Ranges]) -> None:
        """Adds rows with the ranges of their uids (see `ranges_of`)."""
        times, stages, places, _, outcomes, reasons, sizes, _, mixtures = zip(*rows, strict=True)
        batch = self._batch
        batch.times_us.extend(times)
        batch.stages.extend(stages)
        batch.bytes.extend(sizes)
        batch.place.extend(self._numbers_of_places(places, times[0]))
        batch.outcome.extend(self._numbers_of_words(outcomes))
        batch.reason.extend(self._numbers_of_words(reasons))
        self._add_ranges(rows, ranges)
        for index, mixture in enumerate(mixtures, self.next_row):
            if mixture is not None:
                self._mix(index, mixture, times[0])
        self.rows += len(rows)

    def identify(self, identified: Sequence[Identified]) -> None:
        """Adds properties of messages."""
        for each in identified:
            self._batch.identified.add(format=each.format, uids=each.uids, properties=each.properties)

    def sealed(self) -> Sealed:
        """The batch of all that was added."""
        self._batch.singles.extend(map(len, self._singles))
        # Stages that a queue's messages reach at once have the same ones.
        distinct = {id(uids): uids for uids in self._singles}
        columns = {identity: packed(UIDS, uids) for identity, uids in distinct.items()}
        self._batch.uids = b"".join(map(columns.__getitem__, map(id, self._singles)))
        return Sealed(self.first_row, self.rows, self._batch.SerializeToString())

    def _numbers_of_places(self, places: Sequence[LedgerPlace], time_us: int) -> Iterator[int]:
        # By identity first: there are few objects, and comparing tuples of 13 fields costs more than all the rest.
        identities = list(map(id, places))
        if unknown := set(identities).difference(self._numbers):
            for identity, place in dict(zip(identities, places, strict=True)).items():
                if identity in unknown:
                    self._numbers[identity] = self._number(place, time_us)
        return map(self._numbers.__getitem__, identities)

    def _number(self, place: LedgerPlace, time_us: int) -> int:
        self._kept.append(place)
        number = self._places.setdefault(place, len(self._places))
        if number == len(self._batch.places):
            self._put(place, time_us)
        return number

    def _put(self, place: LedgerPlace, time_us: int) -> None:
        wire, text = _wire(place)
        self._batch.places.append(wire)
        self.text += text
        if (peer := place.peer) and peer.told_hour != time_us // _HOUR_US:
            self._introduce(place, peer, time_us)

    def _introduce(self, place: LedgerPlace, peer: Peer, time_us: int) -> None:
        peer.told_hour = time_us // _HOUR_US
        who = {"virtual_host": place.virtual_host, "protocol": place.protocol, "connection": place.connection}
        who |= {"client": place.client, "user": peer.user, "peer": peer.address}
        self._batch.connections.add(time_us=time_us, **who)
        self.text += sum(map(len, who.values()))

    def _mix(self, row: int, mixture: Mixture, time_us: int) -> None:
        places, which, sizes = mixture
        self.room -= len(which)
        bases, keys = zip(*places, strict=True)
        numbers = list(self._numbers_of_keyed(self._numbers_of_places(bases, time_us), keys))
        self._batch.mixtures.add(row=row, places=looked_up(which, numbers), sizes=packed(NUMBERS, sizes))

    def _numbers_of_keyed(self, bases: Iterator[int], keys: Sequence[str]) -> Iterator[int]:
        known, batch = self._keyed, self._batch
        pairs = list(zip(bases, keys, strict=True))
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        known.update(zip(unknown, range(len(known), len(known) + len(unknown)), strict=True))
        keys = list(map(_KEY, unknown))
        batch.bases.extend(map(_BASE, unknown))
        batch.keys.extend(keys)
        self.text += sum(map(len, keys))
        return map(known.__getitem__, pairs)

    def _numbers_of_words(self, words: Sequence[str]) -> Iterator[int]:
        for word in dict.fromkeys(words):
            if word not in self._words:
                self._words[word] = len(self._words)
                self._batch.words.append(word)
        return map(self._words.__getitem__, words)

    def _add_ranges(self, rows: Sequence[Row], ranges: Sequence[Ranges]) -> None:
        self.room -= sum([len(firsts) for firsts, _ in ranges])
        self._batch.ranges.extend([len(lengths) for _, lengths in ranges])
        self._batch.firsts.extend(chain.from_iterable([firsts for firsts, lengths in ranges if lengths]))
        self._batch.lengths.extend(chain.from_iterable([lengths for _, lengths in ranges]))
        self._singles += [uids for uids, lengths in ranges if not lengths]
        for index, row in enumerate(rows, self.next_row):
            if row[7] is not None:
                self._batch.successions.add(row=index, firsts=_successors(row[7], ranges[index - self.next_row][1]))


def _wire(place: LedgerPlace) -> tuple[Place, int]:
    """A place as it is sent, which every batch with rows of it says anew, and how many characters it has."""
    return (_made if max(len(place.routing_key), len(place.consumer), len(place.client)) > _LONG else _known)(place)


def _made(place: LedgerPlace) -> tuple[Place, int]:
    facts = place._asdict()
    del facts["peer"]
    return Place(**facts), sum([len(each) for each in facts.values() if isinstance(each, str)])


_known = lru_cache(_PLACES)(_made)


def ranges_of(row: Row) -> Ranges:
    """The ranges of a row's uids; without lengths, the firsts are all its uids, listed one by one."""
    uids = row[3]
    scattered = not isinstance(uids, range) and 1 < len(uids) <= _MOST_SINGLES
    if scattered and row[1] not in GOING_ON and row[8] is None:
        return uids, ()
    return compress(uids, in_order=row[1] in GOING_ON) if uids else ((), ())


def _text_of_keys(mixture: Mixture) -> int:
    return sum(map(len, map(_KEY, mixture.places)))


def _text_of_bases(mixture: Mixture, known: Collection[int] = ()) -> int:
    """Characters of the places besides their keys; of those whose identities are `known` nothing has to be said."""
    bases = {id(base): base for base in map(_BASE, mixture.places)}
    return sum([_wire(base)[1] for identity, base in bases.items() if identity not in known])


def parts(row: Row, ranges: Ranges) -> Iterator[tuple[Row, Ranges]]:
    """A row too large for a batch as several; its bytes count in the first only."""
    mixture = row[8]
    if mixture is None:
        yield from _parts_by_ranges(row, ranges)
    elif (
        len(ranges[0]) + len(mixture.which) <= MOST_RANGES
        and _text_of_keys(mixture) + _text_of_bases(mixture) <= MOST_TEXT
    ):
        yield row, ranges
    else:
        yield from _parts_by_messages(row, mixture)


def _parts_by_ranges(row: Row, ranges: Ranges) -> Iterator[tuple[Row, Ranges]]:
    firsts, lengths = ranges
    time_us, stage, place, uids, outcome, reason, size, successors, _ = row
    for start in range(0, len(firsts) or 1, MOST_RANGES):
        end = start + MOST_RANGES
        count = sum(lengths[start:end])
        follow = None if successors is None else successors[:count]
        successors = None if successors is None else successors[count:]
        part = (time_us, stage, place, uids, outcome, reason, 0 if start else size, follow, None)
        yield part, (firsts[start:end], lengths[start:end])  # type: ignore[misc]  # a plain tuple, as all rows are


def _parts_by_messages(row: Row, mixture: Mixture) -> Iterator[tuple[Row, Ranges]]:
    time_us, stage, place, uids, outcome, reason, *_ = row
    for some in _portions(mixture):
        places = [mixture.places[each] for each in mixture.which[some]]
        its = Mixture(places, range(len(places)), mixture.sizes[some])
        part = Row(time_us, stage, place, uids[some], outcome, reason, sum(its.sizes), None, its)
        yield part, ranges_of(part)


def _portions(mixture: Mixture) -> Iterator[slice]:
    """Its messages, in portions that fit a batch each."""
    sizes = [len(key) + _wire(base)[1] for base, key in mixture.places]
    first = text = 0
    for index, place in enumerate(mixture.which):
        if index - first == _MIXED_AT_ONCE or (text and text + sizes[place] > MOST_TEXT):
            yield slice(first, index)
            first, text = index, 0
        text += sizes[place]
    yield slice(first, len(mixture.which))


def _successors(successors: range, lengths: Sequence[int]) -> Iterator[int]:
    """The first successor of each range; successors were given in the order of the uids."""
    following = successors.start
    for length in lengths:
        yield following
        following += length
