"""A library that another one does without."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def absent(name: str) -> Iterator[None]:
    """Meanwhile `name` cannot be imported, as if it were not installed; who has it already keeps it."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # as the import system has it (reference, 5.3.1)
    try:
        yield
    finally:
        del sys.modules[name]
