"""What all commands share: settings, calls that may find nobody, and how a command says that it failed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import typer
import uvloop
from pydantic import ValidationError

from services.common import secret
from services.common.bus.address import bus_address
from services.common.config import Settings
from services.common.errors import BrokerError, Unavailable
from services.common.printable import printable_lines
from services.common.runtime import CannotStart, end

_Result = TypeVar("_Result")


def read_settings() -> Settings:
    """With the secret that goes with them, which is read where it is wanted.

    Exits with status 2 and a line for each variable that has no meaning.
    """
    try:
        settings = Settings()
    except ValidationError as error:
        for fault in error.errors():
            variable = "HOPLINE_" + "_".join(str(part) for part in fault["loc"]).upper()
            typer.echo(f"{variable}={fault['input']}: {fault['msg']}", err=True)
        raise typer.Exit(2) from None
    secret.use_that_of(settings)
    return settings


def read_bus_address(settings: Settings) -> str:
    """Where the event bus is; exits where none is known."""
    try:
        address = bus_address(settings)
    except CannotStart as error:
        fail(str(error))
    if not address:
        fail("no event bus is known; does Hopline run? HOPLINE_NATS_URL names a bus elsewhere")
    return address


def run(work: Coroutine[Any, Any, _Result], peer: str = "") -> _Result:
    """What `work` gives; exits with a line when `peer` does not answer, or with the error that it answers with."""
    try:
        return uvloop.run(_interruptible(work))
    except (OSError, Unavailable) as error:
        if isinstance(error, Unavailable) and error.answered:
            fail(error.text)
        asked = f"no answer from {peer}; does Hopline run? " if peer else ""
        fail(f"{asked}({str(error) or 'timeout'})")
    except (BrokerError, CannotStart) as error:
        fail(str(error))


async def _interruptible(work: Coroutine[Any, Any, _Result]) -> _Result:
    """What `work` gives. Ctrl-C ends it, also where a library takes a cancellation for one of its own."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        await end((task,))
        if not task.cancelled():
            task.exception()  # nobody asks for it any more
        raise
    return task.result()


def fail(text: str, status: int = 1) -> NoReturn:
    """Exits."""
    typer.echo(printable_lines(text), err=True)
    raise typer.Exit(status)
