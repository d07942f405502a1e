"""Server names (SNI) that are not UTF-8 text: Python's ssl module cannot pass them to the callback that chooses.

The handshake fails then, and is logged as any other. But the module also calls `sys.unraisablehook`, which writes a
traceback, and any peer that reaches the port can ask for such a name as often as it likes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


class _Quiet:
    """Stands in front of the former hook."""

    def __init__(self, before: Callable[[UnraisableHookArgs], object]) -> None:
        self._before = before

    def __call__(self, what: UnraisableHookArgs) -> None:
        # The module passes the name as the error's object: no other unraisable decoding error has bytes there.
        if not (what.exc_type is UnicodeDecodeError and isinstance(what.object, bytes)):
            self._before(what)


def be_quiet() -> None:
    """Puts the hook in place, once for the process."""
    if not isinstance(sys.unraisablehook, _Quiet):
        sys.unraisablehook = _Quiet(sys.unraisablehook)
