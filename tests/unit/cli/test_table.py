"""Tables of the command line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from services.cli.table import Column, Table, shown

_ENDLESS = """
import typer
from services.cli.console import say

def tell():
    for number in range(100_000):
        say([f"{number}: a line of some length"])

typer.run(tell)
"""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        ({}, "-"),
        (0, "0"),
        (False, "no"),
        (True, "yes"),
        ({"a": "\x1b"}, '{"a": "\\u001b"}'),
        ("a\nb", "a\\nb"),
    ],
)
def test_cells(value: object, text: str) -> None:
    """Say what is in them, and do nothing to a terminal."""
    assert shown(value) == text


def test_wide_characters() -> None:
    """Are two columns of a terminal."""
    table = Table([Column("name", "name"), Column("n", "n")])
    assert list(table.lines([{"name": "日本語", "n": 1}, {"name": "a", "n": 2}])) == [
        "name    n",
        "日本語  1",
        "a       2",
    ]


def test_who_reads_no_more() -> None:
    """Ends the command silently: there is more to say than a pipe takes."""
    command = subprocess.Popen([sys.executable, "-c", _ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert command.stdout
    assert command.stderr
    assert os.read(command.stdout.fileno(), 2) == b"0:"
    command.stdout.close()
    said = command.stderr.read()
    command.stderr.close()
    assert (command.wait(30), said) == (0, b"")
