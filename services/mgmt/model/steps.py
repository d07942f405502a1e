"""Work that takes long, done in steps of which none does: the caller may do something else in between."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

_T = TypeVar("_T")
Steps = Generator[None, None, _T]
"""What comes of it is returned."""
