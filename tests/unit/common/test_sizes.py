"""Sizes in words."""

from __future__ import annotations

import pytest

from services.common.disk import mebibytes


@pytest.mark.parametrize(
    ("size", "said"), [(0, "0 KiB"), (100, "100 bytes"), (1024, "1 KiB"), (1 << 20, "1 MiB"), (5 << 20, "5 MiB")]
)
def test_sizes(size: int, said: str) -> None:
    """What is there is not told as nothing."""
    assert mebibytes(size) == said
