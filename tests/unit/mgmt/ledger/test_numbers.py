"""Columns of numbers, as Arrow has them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from services.mgmt.ledger.numbers import numbers, small


def test_columns_have_what_arrow_makes_of_the_same_numbers() -> None:
    """Also of an iterator, and of nothing; negative ones and the largest are there."""
    for values in ([], [0], [-1, 5, (1 << 31) - 1]):
        assert small(iter(values)).equals(pa.array(values, pa.int32()))
        assert numbers(values).equals(pa.array(values, pa.int64()))
    assert numbers([(1 << 63) - 1]).equals(pa.array([(1 << 63) - 1], pa.int64()))


def test_numbers_that_are_too_large_are_wrong_values() -> None:
    """The filer takes a batch with such a one for unreadable, and goes on."""
    for column, largest in ((small, 1 << 31), (numbers, 1 << 63)):
        with pytest.raises(ValueError, match=r"too|greater"):
            column([largest])
