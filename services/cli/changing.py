"""The same done to several things, one after the other: each is told as it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from services.cli.talking import on_objects

if TYPE_CHECKING:
    from services.common.clients.objects import ObjectsClient

# ruff: noqa: PLC0415 - as in listing.py


def change_each(doing: str, names: Sequence[str], change: Callable[[ObjectsClient, str], Awaitable[str]]) -> None:
    """`change` says what became of one. The first that cannot be done ends it: those before it are done."""

    async def all_of_them(client: ObjectsClient) -> None:
        from services.cli.bar import bar
        from services.cli.console import say
        from services.common.printable import printable

        for number, name in enumerate(names, 1):
            async with bar(doing) as shown:
                shown.at(number, len(names))
                became = await change(client, name)
            say([f"{printable(name)}: {became}"])

    on_objects(all_of_them)
