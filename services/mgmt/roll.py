"""The members of the stack, of each role: also those that went lately, and those that should run and never came."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path

from services.common.clock import Clock, monotonic
from services.common.config import Settings
from services.common.containment import for_each
from services.common.watchers import role_in
from services.rpc.store_pb2 import Record, Records

OK = "ok"
SILENT = "not serving"
ROLES = ("store", "router", "queue", "gateway")  # of which there may be several

_REMEMBERED = 300.0  # seconds
_NONE: Mapping[str, str] = {}


class Roll:
    """Kept up as members come and go; `clock` is monotonic."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._there: dict[str, dict[str, str]] = {role: {} for role in ROLES}
        self._gone: dict[str, dict[str, tuple[float, str]]] = defaultdict(dict)

    def there(self, role: str) -> Mapping[str, str]:
        """Members of a role that are believed alive, with their addresses; "" where none is known."""
        return self._there[role]

    def gone(self, role: str) -> AbstractSet[str]:
        """Members that went lately, and whose place no other has taken."""
        return self._gone[role].keys()

    def update(self, role: str, members: Mapping[str, str]) -> None:
        """These are there now. A former member is gone, unless another is at its address."""
        gone, now = self._gone[role], self._clock()
        for member, address in self._there[role].items():
            if member not in members:
                gone[member] = now, address
        self._there[role] = dict(members)
        taken = {address for address in members.values() if address}
        for member, (since, address) in list(gone.items()):
            if member in members or address in taken or now - since > _REMEMBERED:
                del gone[member]

    async def follow_gateways(self, records: AsyncIterator[Records]) -> None:
        """Applies a watch of the routers' records of watchers; ends with it."""
        gateways: dict[str, str] = {}
        snapshot: dict[str, str] = {}
        async for batch in records:
            found = snapshot if batch.snapshot else gateways
            for_each("reading a watcher's record", batch.records, partial(_apply, found))
            if batch.snapshot and batch.last:
                gateways, snapshot = snapshot, {}
            if not batch.snapshot or batch.last:
                self.update("gateway", gateways)

    def states(
        self, role: str, serving: AbstractSet[str], expected: Mapping[str, str], ends: Mapping[str, str] = _NONE
    ) -> dict[str, str]:
        """How each is; `expected`: names and addresses of those that should run. One with no address is OK if there.

        `ends`: how the last one at an address ended, where that is known, and none serves there since.
        """
        there, gone = self._there[role], self._gone[role]
        now, silent = self._clock(), partial(_silent, ends)
        states = {member: OK if not at or at in serving else silent(at) for member, at in sorted(there.items())}
        for member, (since, address) in sorted(gone.items()):
            if now - since <= _REMEMBERED:
                states[member] = explained(f"gone for {now - since:.0f} s", ends.get(address, ""))
        known = {*there.values(), *(address for _, address in gone.values())}
        missing = sorted(expected.items())
        return states | {name: silent(at) for name, at in missing if at not in known and at not in serving}


def explained(state: str, why: str) -> str:
    """The state, with the reason if one is known; of what serves there is none."""
    return f"{state}: {why}" if why and state != OK else state


def _silent(ends: Mapping[str, str], address: str) -> str:
    return explained(SILENT, ends.get(address, ""))


def expected(settings: Settings, running: Callable[[Path], Collection[str]]) -> dict[str, dict[str, str]]:
    """By role, the names and addresses of routers that are configured, and of what `hopline up` runs here.

    `running` gives the names of programs that a supervisor keeps running, which are known by their pid files.
    """
    names = {*settings.router_names, *running(settings.run_folder)}
    return {
        role: {name: settings.address_of(name) for name in names if name == role or name.startswith(f"{role}-")}
        for role in ROLES
    }


def supervised(folder: Path) -> list[str]:
    """The programs with a pid file there."""
    return [path.stem for path in folder.glob("*.pid")]


def _apply(gateways: dict[str, str], record: Record) -> None:
    if record.deleted:
        gateways.pop(record.key, None)
    elif role_in(record.value) == "gateway":
        gateways[record.key] = ""
