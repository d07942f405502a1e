"""Where a store process listens: where it says how it is, and, while it writes, where the others look for the store.

Nobody but the one that writes listens at the store's address. Over a network that is an address of each process's own,
and whoever looks for the store tries them all. Where they meet on unix sockets it is the name of one socket, which is
made to lead to that of the process that writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.common.config import Settings

_UNIX = "unix:"


@dataclass(frozen=True, slots=True)
class Addresses:
    """gRPC targets; `own` is empty where it says how it is only while it writes, at the store's address."""

    store: str  # as the others know it
    serving: str
    own: str = ""

    @classmethod
    def of(cls, settings: Settings, name: str) -> Addresses:
        """Of the process of that name."""
        store, own = settings.address_of("store"), settings.address_of(name)
        if not store.startswith(_UNIX):
            return cls(store, settings.store_listen or store, settings.store_process_address)
        if own == store:
            return cls(store, store)
        return cls(store, f"{own.removesuffix('.sock')}-writes.sock", own)

    def lead(self) -> None:
        """From now on the others find this process, which listens."""
        if self.store == self.serving or not self.store.startswith(_UNIX):
            return
        store, serving = (Path(address.removeprefix(_UNIX)) for address in (self.store, self.serving))
        fresh = serving.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(serving.name)
        fresh.replace(store)
