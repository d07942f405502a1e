"""Uids as ranges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.common.ledger.uid_ranges import compress, condense, span

UIDS = st.lists(st.integers(1, 40), unique=True, min_size=1).map(lambda low: [(7 << 39) + each for each in low])


def expand(ranges: tuple[list[int], list[int]]) -> list[int]:
    return [first + offset for first, count in zip(*ranges, strict=True) for offset in range(count)]


@given(UIDS)
def test_ranges_hold_exactly_the_uids_in_ascending_order(uids: list[int]) -> None:
    """What is compressed comes out again, ascending, in as few ranges as can be."""
    firsts, counts = compress(uids)
    assert expand((firsts, counts)) == sorted(uids)
    assert all(first + count < following for first, count, following in zip(firsts, counts, firsts[1:], strict=False))


@given(UIDS)
def test_order_is_kept_where_it_matters(uids: list[int]) -> None:
    """With `in_order`, uids come out as they went in."""
    assert expand(compress(uids, in_order=True)) == uids


@given(UIDS)
def test_what_is_condensed_is_the_same(uids: list[int]) -> None:
    """Uids that are consecutive, and in order, become a range; others stay as they are."""
    assert list(condense(uids)) == uids
    assert isinstance(condense(sorted(uids)), range) == (max(uids) - min(uids) == len(uids) - 1)


@given(st.integers(0, 100), st.integers(1, 50), st.integers(1, 4))
def test_a_range_is_compressed_as_its_list_is(start: int, count: int, step: int) -> None:
    """A range with or without gaps says the same as the list of its numbers."""
    uids = range(start, start + count * step, step)
    assert expand(compress(uids)) == list(uids)


@given(st.lists(st.integers(0, 60), unique=True, min_size=1).map(sorted), st.data())
def test_a_span_is_the_slice(uids: list[int], data: st.DataObject) -> None:
    """A span has the uids of the slice, whether it is given as a range or as a list."""
    first = data.draw(st.integers(0, len(uids) - 1))
    count = data.draw(st.integers(1, len(uids) - first))
    assert list(span(uids, first, count)) == uids[first : first + count]
