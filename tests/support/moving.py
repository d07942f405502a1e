"""Stores of all kinds that are moved, by the place where they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.store_house import House

if TYPE_CHECKING:
    from services.store.moving.site import Site

KINDS = ("sqlite", "postgres", "jetstream", "apart")


def house_of(where: Site) -> House:
    """The store that is there, or is to be."""
    folder = where.folder or Path()
    folder.mkdir(parents=True, exist_ok=True)

    def create(folder: Path) -> Any:
        return where.choice.make(folder)

    return House(where.choice.shown, folder, create, lasting=True)
