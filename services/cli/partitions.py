"""`hopline partitions`: which queue process owns which partition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from services.cli.console import cell
from services.common.clients.placement import Placed


def parse(text: str, partitions: int) -> list[int]:
    """The partitions that "3", "1,4" or "0-7,9" names; raises ValueError for what is none of so many."""
    found = sorted({number for part in text.split(",") for number in _range(part)})
    if wrong := [number for number in found if not 0 <= number < partitions]:
        raise ValueError(f"{wrong[0]} is not a partition; there are 0 to {partitions - 1}")
    return found


def show(placed: Sequence[Placed], queues: Mapping[int, int] | None, console: Console) -> None:
    """As a table; `queues` is how many each has, or None when that is not known."""
    table = Table(box=None, pad_edge=False)
    for heading in ("partition", "owner", "epoch", "address", "queues", "messages", "per second", "pinned to"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "partition")
    for one in placed:
        table.add_row(*map(cell, _row(one, queues).values()))
    console.print(table)


def show_json(placed: Sequence[Placed], queues: Mapping[int, int] | None, console: Console) -> None:
    """As JSON lines."""
    for one in placed:
        console.out(json.dumps(_row(one, queues)), highlight=False)


def _row(one: Placed, queues: Mapping[int, int] | None) -> dict[str, int | str | None]:
    owner = one.owner
    return {
        "partition": one.partition,
        "owner": owner.member if owner else None,
        "epoch": owner.epoch if owner else None,
        "address": owner.address if owner else None,
        "queues": None if queues is None else queues.get(one.partition, 0),
        "messages": owner.messages if owner else None,
        "per_second": round(owner.rate) if owner else None,
        "pinned": one.pinned,
    }


def _range(part: str) -> Iterator[int]:
    first, dash, last = part.strip().partition("-")
    try:
        yield from range(int(first), int(last if dash else first) + 1)
    except ValueError:
        raise ValueError(f"'{part}' is neither a partition nor a range such as 0-7") from None
