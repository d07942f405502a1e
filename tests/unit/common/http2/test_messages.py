"""MessageReader: whole messages, from octets in any pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.http2.messages import MessageFault, MessageReader, prefix
from tests.support.http2_transcript import messages

_BODIES = st.lists(st.binary(max_size=40) | st.sampled_from([b"", b"\0" * 5, b"x" * 1000]), max_size=10)
_SIZES = st.lists(st.integers(0, 50), min_size=1, max_size=30).filter(any)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """In pieces of these sizes, again and again."""
    pieces, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


@given(_BODIES, _SIZES)
def test_any_cut_gives_the_same_messages(bodies: list[bytes], sizes: list[int]) -> None:
    """In order, and each as soon as its last octet has come."""
    reader, found, fed = MessageReader(1000), [], 0
    ends = [len(messages(*bodies[: count + 1])) for count in range(len(bodies))]
    for piece in cut(messages(*bodies), sizes):
        found += reader.feed(piece)
        fed += len(piece)
        assert len(found) == sum(end <= fed for end in ends)
        assert reader.is_between_messages == (fed in (0, *ends))
    assert found == bodies


@pytest.mark.parametrize("come", [0, 3, 5, 500])
def test_a_limit_that_is_set_later(come: int) -> None:
    """Holds for the message that is on its way too; smaller ones are taken as before."""
    reader, data = MessageReader(1000), messages(bytes(900))
    assert reader.feed(data[:come]) == []
    reader.limit(900)
    assert reader.feed(data[come:]) == [bytes(900)]
    reader.limit(899)
    with pytest.raises(MessageFault, match="900 octets; 899 are taken"):
        [reader.feed(data[at : at + 6]) for at in range(0, 60, 6)]


@given(_BODIES, _SIZES, st.booleans())
def test_any_cut_of_what_is_no_message_is_a_fault(bodies: list[bytes], sizes: list[int], compressed: bool) -> None:
    """Once its prefix has come: compressed, or larger than agreed."""
    bad = b"\x01\0\0\0\x01" if compressed else b"\0\0\0\x03\xe9"
    reader = MessageReader(1000)
    *pieces, last = cut(messages(*bodies) + bad, sizes)
    before = b"".join(pieces)
    for piece in pieces:
        reader.feed(piece)
    assert before in messages(*bodies) + bad[:-1]
    with pytest.raises(MessageFault):
        reader.feed(last)


@given(st.binary(max_size=300))
def test_a_message_begins_with_its_length(message: bytes) -> None:
    """What we write, we read."""
    assert MessageReader(300).feed(prefix(len(message)) + message) == [message]
