"""Batches that are decoded together give the rows that each gives by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.ledger.encoding import Mixture, Sealed
from services.common.ledger.packed import NUMBERS, UIDS, packed
from services.common.ledger.place import LedgerPlace, Peer
from services.common.ledger.row_recorder import RowRecorder
from services.mgmt.ledger.decode import decode
from services.mgmt.ledger.joined import joined, together
from services.rpc.ledger_pb2 import DEAD_LETTERED, RECEIVED, SETTLED, LedgerBatch


@st.composite
def _batch(draw: st.DrawFn) -> LedgerBatch:
    """Of an instance of its own, with places, words and keys of its own, by numbers that other batches use too."""
    name = draw(st.sampled_from(["a", "b", "c"]))
    sealed: list[Sealed] = []
    recorder = RowRecorder("gateway", name, sealed.append)
    place = LedgerPlace("/", name, "key", f"queue-{name}", 1, 2, peer=Peer("user", name))
    uids = draw(st.lists(st.integers(1, 60).map(lambda n: (1 + n % 2) << 39 | n), min_size=1, unique=True))
    recorder.record(SETTLED, place, uids, outcome=f"outcome-{name}", reason=name, size=9)
    if draw(st.booleans()):
        keyed = [(place._replace(routing_key=""), f"{name}-{number}") for number in range(draw(st.integers(1, 3)))]
        which = draw(st.lists(st.integers(0, len(keyed) - 1), min_size=1, max_size=9))
        recorder.record_each(RECEIVED, Mixture(keyed, which, which), range(5, 5 + len(which)))
    if draw(st.booleans()):
        recorder.record(DEAD_LETTERED, place, [9, 4], reason="expired", successors=range(70, 72))
    recorder.seal()
    return LedgerBatch.FromString(sealed[0].payload)


def _rows(batches: list[LedgerBatch]) -> list[tuple[str, Any]]:
    found = decode(batches)
    return sorted((name, str(row)) for name in ("stages", "connections") for row in getattr(found, name).to_pylist())


@given(st.lists(_batch(), min_size=1, max_size=5))
def test_together_they_give_what_each_gives(batches: list[LedgerBatch]) -> None:
    """No row has a place, a word, a key or a uid of another batch."""
    assert _rows(batches) == sorted(row for batch in batches for row in _rows([batch]))


@given(st.lists(st.none() | _batch(), max_size=5))
def test_all_come_once_in_their_order(batches: list[LedgerBatch | None]) -> None:
    """Also those that cannot be read."""
    assert [batch for some in together(batches) for batch in some] == batches


def _place(batch: LedgerBatch) -> None:
    batch.place[0] = len(batch.places)


def _word(batch: LedgerBatch) -> None:
    batch.reason[0] = len(batch.words)


def _uid(batch: LedgerBatch) -> None:
    batch.uids = batch.uids[8:]


def _time(batch: LedgerBatch) -> None:
    batch.times_us.append(1)


@pytest.mark.parametrize("spoil", [_place, _word, _uid, _time])
def test_what_one_batch_does_not_say_is_not_taken_from_another(spoil: Callable[[LedgerBatch], None]) -> None:
    """A batch that refers to more than it has is wrong, also where the one behind it has that."""
    sealed: list[Sealed] = []
    recorder = RowRecorder("queue", "queue-1", sealed.append)
    recorder.record(SETTLED, LedgerPlace("/"), [5, 8])
    recorder.seal()
    batch, other = (LedgerBatch.FromString(sealed[0].payload) for _ in range(2))
    spoil(batch)
    with pytest.raises(ValueError, match=r"match|not said"):
        decode([batch, other])


def test_a_place_that_several_batches_say_is_kept_once() -> None:
    """Each batch says its places anew, a hundred queues' in every one: they are read once for all of them."""
    (one, _), (other, _) = _of_keys("a", 2), _of_keys("b", 2)
    found = joined([one, other, one])
    assert [place.exchange for place in found.places] == ["a", "b"]
    assert found.place == [0, 1, 0]


@pytest.mark.parametrize("beyond", [2, 3])
def test_a_mixture_has_no_key_of_another_batch(beyond: int) -> None:
    """Whether that one has as many keys or more."""
    (batch, mixture), (other, _) = _of_keys("a", 2), _of_keys("b", 3)
    mixture.places = packed(NUMBERS, [0, beyond])
    with pytest.raises(ValueError, match="mixture of places that are not said"):
        decode([batch, other])


def test_a_uid_has_63_bits() -> None:
    """A larger one would be filed as one below 0."""
    batch = _told(lambda recorder: recorder.record(SETTLED, LedgerPlace("/"), [5, 8]))
    batch.uids = packed(UIDS, [5, 1 << 63])
    with pytest.raises(ValueError, match="63 bits"):
        decode([batch])


def _of_keys(name: str, count: int) -> tuple[LedgerBatch, Any]:
    """A batch with a mixture of two messages, and so many keys."""
    keyed = [(LedgerPlace("/", name), f"{name}-{number}") for number in range(count)]
    batch = _told(lambda recorder: recorder.record_each(RECEIVED, Mixture(keyed, [0, 1]), range(5, 7)))
    return batch, batch.mixtures[0]


def _told(tell: Callable[[RowRecorder], None]) -> LedgerBatch:
    sealed: list[Sealed] = []
    recorder = RowRecorder("gateway", "gateway-1", sealed.append)
    tell(recorder)
    recorder.seal()
    return LedgerBatch.FromString(sealed[0].payload)
