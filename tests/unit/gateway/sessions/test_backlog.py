"""Deliveries that wait, parted where a limit is."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.sessions.backlog import Arrived, part

if TYPE_CHECKING:
    from services.common.message.facts import Facts


@given(st.lists(st.integers(0, 4), max_size=6), st.integers(0, 25))
def test_part(lengths: list[int], count: int) -> None:
    """The first of all, and the others, in their order, however they came."""
    those, uid = list[Arrived](), 0
    for length in lengths:
        uids = range(uid, uid + length)
        those.append(Arrived(0, uids, [cast("Facts", None)] * length, [b""] * length, [b"x"] * length, length))
        uid += length
    first, others = ([uid for each in half for uid in each.uids] for half in part(those, count))
    assert (first, others) == (list(range(min(count, uid))), list(range(min(count, uid), uid)))
