from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from services.cli.partitions import parse, show, show_json
from services.common.clients.partition_table import Owner
from services.common.clients.placement import Placed


@pytest.mark.parametrize(("text", "numbers"), [("3", [3]), ("4, 1", [1, 4]), ("0-2,7,1", [0, 1, 2, 7])])
def test_parse(text: str, numbers: list[int]) -> None:
    """Numbers and ranges, in any order."""
    assert parse(text, 8) == numbers


@pytest.mark.parametrize("text", ["8", "-1", "x", "", "1-y", "0-8"])
def test_what_is_no_partition(text: str) -> None:
    """What is none, or too high, is an error that says so."""
    with pytest.raises(ValueError, match="partition"):
        parse(text, 8)


_PLACED = [Placed(0, Owner("queue-1-ab", "unix:q", 7, 1200.4, 15), "queue-1-ab"), Placed(1, None, None)]


def test_table() -> None:
    """A line for each partition; a missing owner, or an unknown value, is a dash."""
    written = io.StringIO()
    show(_PLACED, None, Console(file=written, width=120))
    rows = [line.split() for line in written.getvalue().splitlines()[1:]]
    assert rows == [["0", "queue-1-ab", "7", "unix:q", "-", "15", "1200", "queue-1-ab"], ["1", *"-------"]]


def test_json() -> None:
    """The same as JSON lines."""
    written = io.StringIO()
    show_json(_PLACED, {0: 3}, Console(file=written, width=20))
    first, second = map(json.loads, written.getvalue().splitlines())
    assert (first["owner"], first["epoch"], first["queues"]) == ("queue-1-ab", 7, 3)
    assert (first["messages"], first["per_second"]) == (15, 1200)
    assert (second["partition"], second["owner"], second["queues"]) == (1, None, 0)
