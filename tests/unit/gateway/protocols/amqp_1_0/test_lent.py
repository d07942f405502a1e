"""What was read and is lent: the engine copies what it keeps, and finds the same as in bytes of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.vocabulary import Publish
from tests.support.amqp_1_0_playbook import Playbook, data, framed, transfer

_LARGE = b"".join(number.to_bytes(2, "big") for number in range(15_000))
_STREAM = b"".join(
    (
        framed(0, transfer(0), data(_LARGE)),
        framed(0, transfer(1), data(b"small")),
        framed(0, transfer(2, more=True), data(_LARGE)[:20_000]),
        framed(0, transfer(2), data(_LARGE)[20_000:]),
        *(framed(0, transfer(number), data(_LARGE[number:])) for number in range(3, 8)),
    )
)


def _lent(read: bytes) -> memoryview:
    return memoryview(bytearray(read))


def _bodies(reads: Callable[[bytes], bytes | memoryview], cuts: list[int]) -> list[bytes]:
    book = Playbook(Amqp10Limits(frame_max=1 << 20)).sender()
    found: list[bytes] = []
    for start, end in pairwise([0, *sorted(cuts), len(_STREAM)]):
        read = reads(_STREAM[start:end])
        requests = book.engine.receive(read)
        if isinstance(read, memoryview):
            read[:] = bytes(len(read))  # the memory is used for something else as soon as it was looked at
        found += [body for request in requests if isinstance(request, Publish) for body in request.bodies]
    assert not book.engine.unread
    return found


@pytest.mark.fuzz
@given(st.lists(st.integers(0, len(_STREAM)), max_size=8))
def test_any_cuts(cuts: list[int]) -> None:
    """Wherever reads end: in a head, a performative, a payload."""
    whole = _bodies(bytes, [])
    assert len(whole) == 8
    assert _bodies(_lent, cuts) == whole
