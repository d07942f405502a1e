"""Users and addresses of followed connections, asked of mgmt: services tell them once in an hour, perhaps before."""

from __future__ import annotations

import asyncio

import typer

from services.cli.following import Following
from services.common.clients.mgmt import MgmtClient
from services.common.errors import BrokerError
from services.common.printable import printable

_SETTLES = 1.5  # seconds after which mgmt has what services told before


async def introduce(following: Following, address: str) -> None:
    """Asks for the connections that were told before; says so where mgmt, at `address`, does not answer."""
    if not following.asks_for_ends:
        return
    await asyncio.sleep(_SETTLES)
    try:
        async with MgmtClient(address) as client:
            await following.ask(client.connections)
    except BrokerError as error:
        reason = printable(error.text)
        typer.echo(
            f"mgmt does not list connections, so users and addresses match only from now on ({reason})", err=True
        )
