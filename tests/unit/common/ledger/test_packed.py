"""Columns of numbers as bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.common.ledger.packed import NUMBERS, looked_up, packed, unpacked


@given(st.data(), st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=300))
def test_looking_up_bytes_gives_what_looking_up_numbers_gives(data: st.DataObject, numbers: list[int]) -> None:
    """Also where numbers take all their bytes, and where there are more of them than indexes can name."""
    indexes = data.draw(st.lists(st.integers(0, min(255, len(numbers) - 1))))
    expected = packed(NUMBERS, [numbers[index] for index in indexes])
    assert looked_up(bytes(indexes), numbers) == looked_up(indexes, numbers) == expected
    assert unpacked(NUMBERS, expected).tolist() == [numbers[index] for index in indexes]
