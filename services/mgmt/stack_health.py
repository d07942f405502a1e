"""Whether the whole stack is ready, and which part is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from services.common.clients.partition_table import PartitionTable
from services.common.clients.stores import Stores
from services.common.clock import Clock, monotonic
from services.common.config import Settings
from services.common.ended import FORMER, ended
from services.common.grpc_channel import is_serving
from services.common.partition import TAKEN_OVER
from services.mgmt.answers import Answers, HealthCheck
from services.mgmt.roll import OK, ROLES, SILENT, Roll, expected, explained, replaced, supervised

_GOOD_FOR = 0.1  # seconds that a report is given again, so that many who poll cost no more than one
_ANY_WILL_DO = ("router", "gateway")  # of which one that answers is enough
_BAD_FOR = 0.05  # a stack that comes up is noticed at once


@dataclass(frozen=True, slots=True)
class Report:
    """Each part of the stack, "ok" or what is wrong with it; members that are away though others stand in, by part.

    `members` says the same of each member of the parts that may have several, and `does` of which of them writes and
    which stands by, where only one can write. `restored` says what the stack does not
    know since it was restored from a backup; "" when it never was.
    """

    services: dict[str, str]
    away: dict[str, list[str]] = field(default_factory=dict)
    members: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # what is amiss with a part that no message waits for
    restored: str = ""
    does: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return all(state == OK for state in self.services.values())


class StackHealth:
    """Asks every service that it knows; callers at the same time share one answer."""

    def __init__(
        self,
        settings: Settings,
        table: PartitionTable,
        roll: Roll,
        check: HealthCheck = is_serving,
        clock: Clock = monotonic,
        notes: Callable[[], dict[str, str]] = dict,
        restored: Callable[[], str] = str,
        stores: Stores | None = None,
    ) -> None:
        """`roll` has the members that are believed alive: of several routers one is enough.

        `stores` knows what store processes do. `notes` and `restored` give what a report says of them.
        """
        self._settings = settings
        self._singles = {name: settings.address_of(name) for name in ("store", "mgmt")}
        self._roll = roll
        self._notes = notes
        self._partitions = settings.partitions
        self._table = table
        self._answers = Answers(check)
        self._clock = clock
        self._restored = restored
        self._stores = stores or Stores()
        self._lock = asyncio.Lock()
        self._report = Report({})
        self._expires = clock()

    async def report(self) -> Report:
        """At most a tenth of a second old."""
        async with self._lock:
            if self._clock() >= self._expires:
                self._report = await self._ask()
                self._expires = self._clock() + (_GOOD_FOR if self._report.ok else _BAD_FOR)
            return self._report

    async def _ask(self) -> Report:
        owners = {owner.address for owner in self._table.owners.values() if owner.member in self._table.members}
        planned = expected(self._settings, supervised)
        members = {role: {*self._roll.there(role).values(), *planned[role].values()} - {""} for role in ROLES}
        members["gateway"].add(self._settings.address_of("gateway"))
        addresses = {*self._singles.values(), *owners}.union(*members.values())
        asked = [*((address, "") for address in addresses), *((address, TAKEN_OVER) for address in owners)]
        answers = await self._answers.serving(asked)
        serving = {address for address in addresses if (address, "") in answers}
        beginning = {address for address in owners if (address, TAKEN_OVER) not in answers}
        states = {name: OK if address in serving else SILENT for name, address in self._singles.items()}
        if states["store"] == OK:
            states["store"] = store_state(self._table)
        states |= {role: OK if members[role] & serving else SILENT for role in _ANY_WILL_DO}
        states["queue"] = queue_state(self._table, self._partitions, serving, beginning)
        ends = ended(self._settings.run_folder)
        states = {part: explained(state, ends.get(part, "")) for part, state in states.items()}
        away = {
            role: sorted(members[role] - serving)
            for role in ("store", *_ANY_WILL_DO)
            if states[role] == OK and members[role]
        }
        reasons = self._by_address(ends), self._by_address(ended(self._settings.run_folder, FORMER))
        each = {role: self._roll.states(role, serving, planned[role], *reasons) for role in ROLES}
        found = {role: its for role, its in each.items() if its}
        away = {role: absent for role, absent in away.items() if absent}
        return Report(states, away, found, self._notes(), self._restored(), self._stores.does())

    def _by_address(self, ends: Mapping[str, str]) -> dict[str, str]:
        return {self._settings.address_of(name): how for name, how in ends.items() if _role(name) in ROLES}


def _role(program: str) -> str:
    return program.partition("-")[0]


def store_state(table: PartitionTable) -> str:
    """Of one that answers: what it cannot write."""
    configuration = table.unchangeable and f"configuration: {table.unchangeable}"
    return "; ".join(filter(None, (table.unwritable, configuration))) or OK


def queue_state(table: PartitionTable, partitions: int, serving: set[str], beginning: set[str]) -> str:
    """Every partition needs an owner that is believed alive, answers and has taken it over."""
    alive = [owner for owner in table.owners.values() if owner.member in table.members]
    if silent := sorted({owner.address for owner in alive} - serving):
        return f"not serving: {', '.join(silent)}"
    gone = replaced(table.members)  # their leases have not run out
    if left := [owner for owner in alive if owner.member in gone]:
        return f"the owners of {len(left)} partitions are gone, others have them in a moment"
    if len(alive) < partitions:
        return f"{len(alive)} of {partitions} partitions have an owner"
    if beginning:
        return f"partitions are changing hands: {', '.join(sorted(beginning))}"
    return OK
