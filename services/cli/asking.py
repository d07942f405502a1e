"""What all commands share: settings, calls to a service that may be away, and how a command says that it failed."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from services.cli import quick

if TYPE_CHECKING:
    from services.common.config import Settings

# ruff: noqa: PLC0415 - `hopline --help` needs none of it, and it takes time

_Result = TypeVar("_Result")


def read_settings() -> Settings:
    """With the secret that goes with them, which is read where it is wanted.

    Exits with status 2 and a line for each variable that has no meaning.
    """
    from pydantic import ValidationError

    from services.common import secret
    from services.common.config import Settings
    from services.common.invalid import words

    try:
        settings = Settings()
    except ValidationError as error:
        for fault in error.errors():
            variable = "HOPLINE_" + "_".join(str(part) for part in fault["loc"]).upper()
            typer.echo(f"{variable}={fault['input']}: {words(fault)}", err=True)
        raise typer.Exit(2) from None
    secret.use_that_of(settings)
    return settings


def read_bus_address(settings: Settings) -> str:
    """Where the event bus is; exits where none is known."""
    from services.common.bus.address import address_file, bus_address
    from services.common.runtime import CannotStart

    try:
        address = bus_address(settings)
    except CannotStart as error:
        fail(str(error))
    if not address and (file := address_file(settings)).exists():
        fail(f"where the event bus is could not be written to {file}: make room on its disk, and ask again")
    if not address:
        fail("no event bus is known; does Hopline run? HOPLINE_NATS_URL names a bus elsewhere")
    return address


def run(work: Coroutine[Any, Any, _Result], peer: str = "") -> _Result:
    """What `work` gives; exits with a line when `peer` does not answer, or with its error and what to do."""
    import uvloop

    from services.cli.hints import advised
    from services.common.errors import BrokerError, Unavailable
    from services.common.runtime import CannotStart

    quick.asks()
    try:
        return uvloop.run(_interruptible(work))
    except (OSError, Unavailable) as error:
        if isinstance(error, Unavailable) and error.answered:
            fail(error.text)
        asked = f"no answer from {peer}; does Hopline run? " if peer else ""
        fail(f"{asked}({str(error) or 'timeout'})")
    except (BrokerError, CannotStart) as error:
        fail(advised(str(error)))


async def _interruptible(work: Coroutine[Any, Any, _Result]) -> _Result:
    """What `work` gives. Ctrl-C ends it, also where a library takes a cancellation for one of its own."""
    import asyncio

    from services.common.runtime import end

    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        await end((task,))
        if not task.cancelled():
            task.exception()  # read, or asyncio logs that it never was
        raise
    return task.result()


def fail(text: str, status: int = 1) -> NoReturn:
    """Exits."""
    from services.common.printable import printable_lines

    typer.echo(printable_lines(text), err=True)
    raise typer.Exit(status)
