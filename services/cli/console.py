"""The console that commands write to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import typer
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


def say(lines: Iterable[str]) -> None:
    """On standard output; ends the command where its reader has ended: `| head`."""
    try:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise the flush at the end of the process would report the broken pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
