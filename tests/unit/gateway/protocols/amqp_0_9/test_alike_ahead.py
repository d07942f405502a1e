"""Publishes of one size are counted together as they would be one by one."""

from __future__ import annotations

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.protocols.amqp_0_9.alike_ahead import MANY, alike_ahead

_CHANGES = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4)


@pytest.mark.fuzz
@given(st.integers(0, 3 * MANY), st.binary(min_size=4, max_size=9), _CHANGES, st.integers(0, 3), st.data())
def test_as_many_as_have_the_pieces(
    count: int, one: bytes, changes: list[tuple[int, int]], position: int, data: st.DataObject
) -> None:
    """Up to the first that has another octet somewhere; none where these are few."""
    octets = bytearray(b"?" * position + one * count)
    for place, value in changes if octets else ():
        octets[place % len(octets)] = value
    most = data.draw(st.integers(0, count))
    pieces = [(len(one) - 1, one[-1:]), (0, one[:2])]
    each = [octets[at : at + len(one)] for at in range(position, position + most * len(one), len(one))]
    alike = len(list(takewhile(lambda its: its[-1:] == one[-1:] and its[:2] == one[:2], each)))
    found = alike_ahead(bytes(octets), position, len(one), most, pieces)
    assert found == (alike if alike >= MANY else 0)
