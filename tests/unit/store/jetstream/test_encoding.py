"""Groups as messages, and back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import InternalError
from services.store.provider import (
    Changes,
    DequeueRow,
    EntryRow,
    LeaseRow,
    RecordRow,
    RefusalRow,
    TakenRow,
)
from services.store.providers.jetstream_encoding import ContentPosition, Part, decode, encode, parts, places
from services.store.providers.jetstream_replay import Replay

IDS = st.integers(0, (1 << 63) - 1)
WIDE = st.integers(0, (1 << 64) - 1)
SMALL = st.integers(0, (1 << 32) - 1)
BYTES = st.binary(max_size=60)
TEXT = st.text(max_size=8)

ENTRIES = st.builds(EntryRow, IDS, SMALL, IDS, SMALL, BYTES)
RECORDS = st.builds(RecordRow, TEXT, TEXT, BYTES, IDS)


def _records(rows: list[RecordRow], gone: set[tuple[str, str]]) -> dict[tuple[str, str], RecordRow | None]:
    kept: dict[tuple[str, str], RecordRow | None] = {(row.kind, row.key): row for row in rows}
    return kept | dict.fromkeys(gone)


CHANGES = st.builds(
    Changes,
    at=IDS,
    dead_batches=st.lists(IDS, max_size=3),
    dead_contents=st.lists(IDS, max_size=3),
    contents=st.dictionaries(IDS, BYTES, max_size=3),
    blanked=st.dictionaries(IDS, BYTES, max_size=3),
    entries=st.lists(ENTRIES, max_size=3).map(lambda rows: {row.id: row for row in rows}),
    dequeues=st.lists(st.builds(DequeueRow, IDS, SMALL, BYTES), max_size=3),
    delivered=st.dictionaries(IDS, SMALL, max_size=3),
    replaced=st.sets(st.tuples(SMALL, IDS), max_size=3).map(dict.fromkeys),
    taken=st.lists(st.builds(TakenRow, IDS, SMALL, IDS, IDS, BYTES), max_size=3),
    floors=st.dictionaries(st.tuples(SMALL, IDS), IDS, max_size=3),
    writers=st.dictionaries(IDS, IDS, max_size=3),
    refusals=st.lists(st.builds(RefusalRow, IDS, IDS, BYTES), max_size=3),
    outcomes=st.dictionaries(WIDE, st.booleans(), max_size=3),
    leases=st.lists(st.builds(LeaseRow, TEXT, IDS, TEXT, TEXT, TEXT), max_size=3).map(
        lambda rows: {row.name: row for row in rows}
    ),
    records=st.builds(_records, st.lists(RECORDS, max_size=3), st.sets(st.tuples(TEXT, TEXT), max_size=2)),
    origin=IDS,
    running=IDS,
    incarnation=IDS,
)


def read(body: bytes, packed: bytes) -> bytes:
    """What is at a place, of a group that is one message."""
    [(_, start, end)] = list(ContentPosition.unpack(packed).spans()) or [(0, 0, 0)]
    return body[start:end]


@given(CHANGES)
def test_a_group_comes_back(changes: Changes) -> None:
    """Any group comes back as it was, with a place for each content, at which its columns are."""
    body = encode(changes)
    found = decode(body, 7, len(body))
    assert found == places(changes, body, 7, len(body))
    assert replace(found, contents={}, blanked={}) == replace(changes, contents={}, blanked={})
    assert {number: read(body, packed) for number, packed in found.contents.items()} == changes.contents
    assert {number: read(body, packed) for number, packed in found.blanked.items()} == changes.blanked


@given(CHANGES, st.integers(1, 40), IDS)
def test_places_in_parts(changes: Changes, cut: int, first: int) -> None:
    """Columns are found in the messages that have them, however the group was cut."""
    body = encode(changes)
    found = {first + each.nth: each.body for each in parts(1, 1, body, cut)}
    for number, packed in decode(body, first, cut).contents.items():
        spans = ContentPosition.unpack(packed).spans()
        assert b"".join(found[at][start:end] for at, start, end in spans) == changes.contents[number]


@given(WIDE, WIDE, SMALL, SMALL, BYTES)
def test_a_part_comes_back(writer: int, number: int, nth: int, total: int, body: bytes) -> None:
    """A message says whose it is, and which part of which group."""
    part = Part(writer, number, nth, total, body)
    assert Part.decode(part.encode()) == part


@pytest.mark.parametrize("message", [b"", b"\x01", b"\x02" + bytes(40)])
def test_a_message_of_others(message: bytes) -> None:
    """What is none of ours, or of a later release, is refused."""
    with pytest.raises(InternalError, match="a message in the stream that this release does not understand"):
        Part.decode(message)


@pytest.mark.parametrize("body", [b"", b"\x00\x00\x00\x02\xff\xff", b"\x00\x00\x00\x01\x0a"])
def test_a_group_that_is_damaged(body: bytes) -> None:
    """It is said where it is."""
    with pytest.raises(InternalError, match="the group at 9 cannot be read"):
        decode(body, 9, 10)


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60), st.booleans()), max_size=20), st.integers(1, 9))
def test_torn_groups_do_not_count(groups: list[tuple[int, int, bool]], cut: int) -> None:
    """Of groups that were written in part, and perhaps again, those come back that are whole, as they were."""
    log: list[Part] = []
    expected = []
    for number, (size, torn, again) in enumerate(groups):
        whole = parts(1, number, bytes([number]) * size, cut)
        kept = whole[: min(torn, len(whole) - 1)]
        log += kept
        if again:
            expected.append((number, len(log) + 1, bytes([number]) * size))
            log += whole
    replay = Replay()
    found = [got for sequence, part in enumerate(log, 1) if (got := replay.take(sequence, part))]
    assert [(got.number, got.sequence, got.body) for got in found] == expected


def test_what_was_not_written_in_one_go_is_torn() -> None:
    """Parts with something between them were not written by one who knew of it."""
    first, second, third = parts(1, 1, b"abc", 1)
    replay = Replay()
    for sequence, part in ((1, first), (2, second), (4, third), (5, first), (6, third), (7, second), (8, third)):
        assert replay.take(sequence, part) is None
    others = [each._replace(writer=2) for each in (first, second, third)]
    for sequence, part in ((10, first), (11, others[1]), (12, third), (13, others[2])):
        assert replay.take(sequence, part) is None
    assert replay.take(20, first) is None
    assert replay.take(21, second) is None
    found = replay.take(22, third)
    assert found
    assert (found.sequence, found.cut, found.body) == (20, 1, b"abc")
