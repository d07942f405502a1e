"""Where a command gets a password from: a file, a terminal, or, for all to see, its command line."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from services.cli.asking import fail

_STDIN = "-"


def read_password(given: str | None, file: str | None, *, twice: bool = True) -> str:
    """What was given, or is in the file ("-": standard input), or is typed; exits with status 2 where there is none."""
    if given is not None and file is not None:
        fail("--password, or --password-file: not both", status=2)
    if given is not None:
        return given
    if file is not None:
        return _from_file(file)
    if not _at_a_terminal():
        fail("no password: --password-file FILE names a file that has it, - is standard input", status=2)
    typed: str = typer.prompt("Password", hide_input=True, confirmation_prompt=twice)
    return typed


def _at_a_terminal() -> bool:
    return sys.stdin.isatty()


def _from_file(file: str) -> str:
    try:
        text = sys.stdin.read() if file == _STDIN else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        fail(f"--password-file {file}: {why}", status=2)
    return text.rstrip("\r\n")
