"""Where a store process listens: for health checks, and, while it writes, at the store's address for clients.

Only the process that writes listens at the store's address. Over a network each process has an address of its own, and
clients try them all. With unix sockets the address is the name of one socket, a link to the socket of the process that
writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.common.config import Settings
from services.common.streams.address import all_of

_UNIX = "unix:"


@dataclass(frozen=True, slots=True)
class Addresses:
    """gRPC targets; `own`, for health checks, is empty where it answers those only at the store's address."""

    store: str  # as clients know it
    serving: str
    own: str = ""
    others: tuple[str, ...] = ()  # where each of the others listens while it writes, if that is known by their names

    @classmethod
    def of(cls, settings: Settings, name: str) -> Addresses:
        """The addresses of the process of that name."""
        store, own = settings.address_of("store"), settings.address_of(name)
        if not store.startswith(_UNIX):
            return cls(store, settings.store_listen or store, settings.store_process_address)
        if own == store:
            return cls(store, store)
        others = (_writes(settings.address_of(each)) for each in settings.store_names if each != name)
        return cls(store, _writes(own), own, tuple(others))

    async def writers(self) -> list[str]:
        """Where another process that writes may listen, one by one; over a network this one is among them.

        Raises OSError while the store's name leads nowhere.
        """
        if self.store.startswith(_UNIX):
            return list(self.others)
        return [address.target for address in await all_of(self.store)]

    def lead(self) -> None:
        """From now on clients find this process, which listens."""
        if self.store == self.serving or not self.store.startswith(_UNIX):
            return
        store, serving = (Path(address.removeprefix(_UNIX)) for address in (self.store, self.serving))
        fresh = serving.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(serving.name)
        fresh.replace(store)


def _writes(own: str) -> str:
    return f"{own.removesuffix('.sock')}-writes.sock"
