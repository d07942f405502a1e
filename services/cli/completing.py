"""Names that the shell completes: of what there is in the running stack, as far as it answers at once."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from services.common.clients.objects import ObjectsClient

# ruff: noqa: PLC0415 - as in listing.py

_PATIENCE = 1.0  # seconds
_MOST = 200

Complete = Callable[[typer.Context, str], list[str]]


def names(kind: str) -> Complete:
    """Of QUEUE, EXCHANGE or CONNECTION: those that begin so, in the virtual host that is said."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        # Somebody types: what is wrong is told by the command, and not by its completion.
        with contextlib.suppress(Exception, SystemExit), contextlib.redirect_stderr(io.StringIO()):
            return _asked(kind, ctx.params.get("virtual_host"), incomplete)
        return []

    return complete


def _asked(kind: str, virtual_host: str | None, begin: str) -> list[str]:
    import asyncio

    from services.cli.talking import on_objects
    from services.rpc import objects_pb2 as pb

    # A * or ? in what was typed stands for itself; that it does is seen to below.
    request = pb.ListRequest(kind=pb.Kind.Value(kind), virtual_host=virtual_host, most=_MOST)
    request.fits["name"] = f"{begin}*"

    async def ask(client: ObjectsClient) -> list[str]:
        found: list[str] = []
        async with asyncio.timeout(_PATIENCE):
            async for page in client.list(request):
                found += (row["name"] for row in page.rows)
        return found

    return sorted({name for name in on_objects(ask) if name.startswith(begin) and name.isprintable() and name})
