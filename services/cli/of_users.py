"""Changes of what a user may, for names that are those of no user too: it may be one of a directory, or a slip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from services.cli.talking import on_mgmt

if TYPE_CHECKING:
    from services.common.clients.mgmt import MgmtClient

# ruff: noqa: PLC0415 - as in services/__main__.py


def change_access_of(user: str, **change: Any) -> None:  # noqa: ANN401 - as MgmtClient.change_access has it
    """Makes the change; says so on standard error where no user of that name is on record."""
    from services.common.printable import printable

    async def make(client: MgmtClient) -> bool:
        await client.change_access(**change)
        return any(each.name == user for each in await client.list_users())

    if not on_mgmt(make):
        about = "it holds for one of that name whom a provider lets in"
        typer.echo(
            f"no user '{printable(user)}' is on record: {about}; `hopline users list` says which there are", err=True
        )
