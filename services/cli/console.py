"""The console that commands write to."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from services.common.printable import printable

_NEVER_FOLDED = 10_000  # columns


def stdout_console() -> Console:
    """As wide as the terminal is; for a file or a pipe so wide that a row stays one line, however long its cells."""
    return Console() if sys.stdout.isatty() else Console(width=_NEVER_FOLDED)


def cell(value: object) -> Text:
    """Of a table, where a bare string would be read for markup; "-" for None."""
    return Text("-" if value is None else printable(str(value)))
