"""Names that the shell completes: of what there is in the running stack, as far as it answers at once."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

import typer

from services.cli.talking import on_capture, on_mgmt, on_objects, on_ports, on_router, on_tracing

if TYPE_CHECKING:
    from services.common.clients.objects import ObjectsClient

# ruff: noqa: PLC0415 - as in listing.py

_PATIENCE = 1.0  # seconds
_MOST = 200
_HOSTS = "virtual_host", "vhost"  # as commands call what `--vhost` says

Complete = Callable[[typer.Context, str], list[str]]
CompleteWord = Callable[[str], list[str]]


def names(kind: str) -> Complete:
    """Of QUEUE, EXCHANGE or CONNECTION: those that begin so, in the virtual host that is said."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return _fitting(incomplete, lambda: _objects(kind, ctx, incomplete))

    return complete


def destinations(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of bindings: queues, or exchanges where those are meant."""
    kind = "EXCHANGE" if ctx.params.get("to_exchange") else "QUEUE"
    return _fitting(incomplete, lambda: _objects(kind, ctx, incomplete))


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of messages: of the default exchange it is a queue's name; of others nobody knows."""
    return [] if ctx.params.get("exchange") else _fitting(incomplete, lambda: _objects("QUEUE", ctx, incomplete))


def words(*known: str) -> CompleteWord:
    """There are no others, in any stack."""

    def complete(incomplete: str) -> list[str]:
        return _fitting(incomplete, lambda: known)

    return complete


def kinds(group: str) -> CompleteWord:
    """Plug-ins that are installed here."""

    def complete(incomplete: str) -> list[str]:
        from services.common import plugins

        return _fitting(incomplete, lambda: plugins.names(group))

    return complete


def virtual_hosts(incomplete: str) -> list[str]:
    """Those that begin so."""
    return _fitting(incomplete, lambda: on_router(lambda client: _at_once(client.list())))


def users(incomplete: str) -> list[str]:
    """Those on record that begin so."""
    return _fitting(incomplete, _of(lambda: on_mgmt(lambda client: _at_once(client.list_users()))))


def groups(incomplete: str) -> list[str]:
    """The same."""
    found = _of(lambda: on_mgmt(lambda client: _at_once(client.list_access())).groups)
    return _fitting(incomplete, found)


def providers(incomplete: str) -> list[str]:
    """The same, and those of the settings."""
    return _fitting(incomplete, _of(lambda: on_mgmt(lambda client: _at_once(client.list_providers()))))


def policies(ctx: typer.Context, incomplete: str) -> list[str]:
    """Users' or operators', in the virtual host that is said."""
    kind = "OPERATOR_POLICY" if ctx.params.get("operator") else "POLICY"
    return _fitting(incomplete, lambda: _objects(kind, ctx, incomplete))


def ports(incomplete: str) -> list[str]:
    """Those that can be removed."""

    def ask() -> Iterable[str]:
        found = on_ports(lambda client: _at_once(client.ports()))
        return [each.port.name for each in found if not each.of_settings]

    return _fitting(incomplete, ask)


def tracing_rules(incomplete: str) -> list[str]:
    """Those on record that begin so."""
    return _fitting(incomplete, _of(lambda: on_tracing(lambda client: _at_once(client.rules()))))


def capture_rules(incomplete: str) -> list[str]:
    """The same."""
    found = _of(lambda: [each.rule for each in on_capture(lambda client: _at_once(client.rules()))])
    return _fitting(incomplete, found)


def _of(ask: Callable[[], Iterable[Any]]) -> Callable[[], list[str]]:
    return lambda: [each.name for each in ask()]


def _objects(kind: str, ctx: typer.Context, begin: str) -> list[str]:
    from services.rpc import objects_pb2 as pb

    virtual_host = next((ctx.params[name] for name in _HOSTS if ctx.params.get(name)), None)
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
