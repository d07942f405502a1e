"""The members of the stack, of each role: also those that went lately, and those that should run and never came."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from services.common.clock import Clock, monotonic
from services.common.config import Settings
from services.common.containment import for_each
from services.common.ports.state import RECORD_KIND as PORT_STATE
from services.common.watchers import RECORD_KIND as WATCHER
from services.common.watchers import origin_in
from services.rpc.store_pb2 import Record, Records

OK = "ok"
SILENT = "not serving"
GONE = "gone"
ROLES = ("store", "router", "queue", "gateway")  # of which there may be several
GATEWAYS = (WATCHER, PORT_STATE)
"""Kinds of the records that tell of gateways."""

_REMEMBERED = 300.0  # seconds
_NONE: Mapping[str, str] = {}


class _Gone(NamedTuple):
    since: float
    address: str
    has_successor: bool


class Roll:
    """Kept up as members come and go; `clock` is monotonic."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._there: dict[str, dict[str, str]] = {role: {} for role in ROLES}
        self._gone: dict[str, dict[str, _Gone]] = defaultdict(dict)
        self._said: Mapping[str, Any] = {}

    def there(self, role: str) -> Mapping[str, str]:
        """Members of a role that are believed alive, in the order in which they came; "": no address is known."""
        return self._there[role]

    def gone(self, role: str) -> AbstractSet[str]:
        """Members that went lately."""
        return self._gone[role].keys()

    @property
    def said_of_ports(self) -> list[Any]:
        """What gateways that are believed alive say of their ports: values of their records, by name of gateway."""
        return [self._said[name] for name in sorted(self._there["gateway"]) if name in self._said]

    def update(self, role: str, members: Mapping[str, str]) -> None:
        """These are there now, in the order in which they came; former members are gone."""
        gone, now = self._gone[role], self._clock()
        for member, address in self._there[role].items():
            if member not in members:
                gone[member] = _Gone(now, address, has_successor=False)
        self._there[role] = dict(members)
        taken = {address for address in members.values() if address}
        for member, its in list(gone.items()):
            if member in members or now - its.since > _REMEMBERED:
                del gone[member]
            elif its.address in taken:
                gone[member] = its._replace(has_successor=True)

    async def follow_gateways(self, records: AsyncIterator[Records]) -> None:
        """Applies a watch of records of GATEWAYS; ends with it."""
        gateways, snapshot = _Gateways(), _Gateways()
        async for batch in records:
            found = snapshot if batch.snapshot else gateways
            for_each("reading a gateway's record", batch.records, found.apply)
            if batch.snapshot and batch.last:
                gateways, snapshot = snapshot, _Gateways()
            if not batch.snapshot or batch.last:
                self._said = gateways.said
                self.update("gateway", gateways.members())

    def states(
        self,
        role: str,
        serving: AbstractSet[str],
        expected: Mapping[str, str],
        ends: Mapping[str, str] = _NONE,
        formers: Mapping[str, str] = _NONE,
    ) -> dict[str, str]:
        """How each is; `expected`: names and addresses of those that should run. One with no address is OK if there.

        `ends`: how the last one at an address ended, where that is known, and none serves there since; `formers`: how
        the last one ended of which another serves there since.
        """
        there, former, now = self._there[role], {**formers, **ends}, self._clock()
        past = replaced(there)
        latest = {at: member for member, at in there.items() if member in past}  # of those it is told how one ended …
        silent = partial(_silent, {at: how for at, how in ends.items() if at not in latest})  # … and not of the next
        states = {member: OK if not at or at in serving else silent(at) for member, at in sorted(there.items())}
        states |= dict.fromkeys(past, GONE)
        states |= {member: explained(GONE, former.get(at, "")) for at, member in latest.items()}
        gone = {member: its for member, its in sorted(self._gone[role].items()) if not its.has_successor}
        for member, its in gone.items():
            if now - its.since <= _REMEMBERED:
                states[member] = explained(f"{GONE} for {now - its.since:.0f} s", ends.get(its.address, ""))
        known = {*there.values(), *(its.address for its in gone.values())}
        missing = sorted(expected.items())
        return states | {name: silent(at) for name, at in missing if at not in known and at not in serving}


def replaced(members: Mapping[str, str]) -> set[str]:
    """Those at whose address another one has come since: they are gone, and it is not yet on record."""
    latest = {address: member for member, address in members.items()}
    return {member for member, address in members.items() if address and latest[address] != member}


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


@dataclass(slots=True)
class _Gateways:
    origins: dict[str, int] = field(default_factory=dict)  # which grow
    addresses: dict[str, str] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)

    def apply(self, record: Record) -> None:
        """Raises where the value cannot be read."""
        if record.kind == PORT_STATE:
            self._apply_said(record)
            return
        self.origins.pop(record.key, None)
        if record.deleted:
            self.addresses.pop(record.key, None)
        if not record.deleted and (origin := origin_in(record.value)) is not None:
            self.origins[record.key] = origin

    def _apply_said(self, record: Record) -> None:
        """A gateway that stops deletes it first: where it was is known until it has gone."""
        self.said.pop(record.key, None)
        if record.key not in self.origins or not record.deleted:
            self.addresses.pop(record.key, None)
        if not record.deleted:
            said = json.loads(record.value)
            self.addresses[record.key], self.said[record.key] = str(said.get("address", "")), said

    def members(self) -> dict[str, str]:
        """In the order in which they came."""
        return {name: self.addresses.get(name, "") for name in sorted(self.origins, key=self.origins.__getitem__)}
