"""Names that the shell completes: of what there is in the running stack, as far as it answers at once."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

import typer

from services.cli.talking import on_mgmt, on_objects, on_router

if TYPE_CHECKING:
    from services.common.clients.objects import ObjectsClient

# ruff: noqa: PLC0415 - as in listing.py

_PATIENCE = 1.0  # seconds
_MOST = 200

Complete = Callable[[typer.Context, str], list[str]]


def names(kind: str) -> Complete:
    """Of QUEUE, EXCHANGE or CONNECTION: those that begin so, in the virtual host that is said."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return _fitting(incomplete, lambda: _objects(kind, ctx.params.get("virtual_host"), incomplete))

    return complete


def virtual_hosts(incomplete: str) -> list[str]:
    """Those that begin so."""
    return _fitting(incomplete, lambda: on_router(lambda client: _at_once(client.list())))


def users(incomplete: str) -> list[str]:
    """Those on record that begin so."""
    return _fitting(incomplete, lambda: [user.name for user in on_mgmt(lambda client: _at_once(client.list_users()))])


def _objects(kind: str, virtual_host: str | None, begin: str) -> list[str]:
    from services.rpc import objects_pb2 as pb

    # A * or ? in what was typed stands for itself; `_fitting` sees to it.
    request = pb.ListRequest(kind=pb.Kind.Value(kind), virtual_host=virtual_host, most=_MOST)
    request.fits["name"] = f"{begin}*"

    async def ask(client: ObjectsClient) -> list[str]:
        return [row["name"] async for page in client.list(request) for row in page.rows]

    return on_objects(lambda client: _at_once(ask(client)))


async def _at_once(asking: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - what is asked for
    import asyncio

    async with asyncio.timeout(_PATIENCE):
        return await asking


def _fitting(begin: str, ask: Callable[[], Iterable[str]]) -> list[str]:
    """Names that begin so; none where asking fails: the command says what is wrong, not its completion."""
    with contextlib.suppress(Exception, SystemExit), contextlib.redirect_stderr(io.StringIO()):
        return sorted({name for name in ask() if name.startswith(begin) and name.isprintable() and name})
    return []
