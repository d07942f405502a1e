"""Names that clients ask for (SNI) and that are no text: Python's ssl module cannot say them to who chooses.

The handshake fails then, which the log says as of any other. But the module also has `sys.unraisablehook` told, which
writes a traceback, and any peer that reaches the port can ask for such a name as often as it likes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


class _Quiet:
    """In front of the hook that was there."""

    def __init__(self, before: Callable[[UnraisableHookArgs], object]) -> None:
        self._before = before

    def __call__(self, what: UnraisableHookArgs) -> None:
        # The module gives the name as what the error concerns: nothing else that is raised nowhere concerns bytes.
        if not (what.exc_type is UnicodeDecodeError and isinstance(what.object, bytes)):
            self._before(what)


def be_quiet() -> None:
    """Once for the process, however often it is asked for."""
    if not isinstance(sys.unraisablehook, _Quiet):
        sys.unraisablehook = _Quiet(sys.unraisablehook)
