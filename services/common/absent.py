"""Hides an optional library from another library's imports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def absent(name: str) -> Iterator[None]:
    """Within it `name` cannot be imported, as if it were not installed; does nothing if it is imported already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # the import system's own mark (reference, 5.3.1)
    try:
        yield
    finally:
        del sys.modules[name]


def do_without(*names: str) -> None:
    """As long as this process runs none of these can be imported; not for what is imported already."""
    for name in names:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # as above
