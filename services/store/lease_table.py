"""The holder of each lease and the members that are alive, without I/O: time goes in, tables come out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.common.clients.stores import ROLE as STORE
from services.rpc.store_pb2 import KeepAliveReply, Lease, LeaseLoad, LeaseTable, Member
from services.store.provider import LeaseRow

# Members renew after two fifths of their time to live, give or take a moment.
_DUE = 0.45


@dataclass(slots=True)
class Alive:
    """A member that lives until its deadline (monotonic seconds), `ttl` seconds after it was last heard."""

    role: str
    address: str
    deadline: float
    ttl: float
    is_heard: bool = True  # by this process: not merely restored

    @property
    def due(self) -> float:
        """When it should have been heard again: a store that heard others after that would have heard it too."""
        return self.deadline - self.ttl * (1 - _DUE)


class Table:
    """The leases as they are on disk, and the members. A lease is free when its holder is not alive."""

    def __init__(self) -> None:
        self.version = 0
        self._weighed = 0  # how often a load has changed
        self._rows: dict[str, LeaseRow] = {}
        self._members: dict[str, Alive] = {}
        self._loads: dict[str, LeaseLoad] = {}
        self._unwritable = ""
        self._unchangeable = ""

    def restore(self, rows: Iterable[LeaseRow], version: int, now: float, ttl: float) -> None:
        """Takes every holder from before the start to be alive for one time to live."""
        self.version = version
        for row in rows:
            self._rows[row.name] = row
            if row.member:
                self._members[row.member] = Alive(row.role, row.address, now + ttl, ttl, is_heard=False)

    def renew(self, member: str, alive: Alive) -> None:
        """`member` lives until a new deadline, however late it renews."""
        known = self._members.get(member)
        if known and not known.is_heard:  # it is the last at its address: those before it are never heard again
            del self._members[member]
        self._members[member] = alive
        if known is None or not known.is_heard or (known.role, known.address) != (alive.role, alive.address):
            self.version += 1

    def renew_all(self, now: float, times: int) -> None:
        """Every member lives for so many times its time to live from now."""
        for alive in self._members.values():
            alive.deadline = now + times * alive.ttl

    def weigh(self, member: str, loads: Iterable[LeaseLoad]) -> None:
        """Takes the loads that `member` reports of its leases; watchers are not told for that alone."""
        for load in loads:
            row = self._rows.get(load.lease)
            if row and row.member == member:
                self._loads[load.lease] = load
                self._weighed += 1

    def remove(self, member: str) -> None:
        """`member` is gone; what it held is free."""
        if self._members.pop(member, None):
            self.version += 1

    def expire(self, now: float, heard: float) -> list[str]:
        """Removes members whose time is up, and gives their names; `heard` is when any member was heard last.

        Several that are silent together count as alive: the store may have been unreachable.
        """
        late = [name for name, alive in self._late(now) if alive.due < heard or self._is_alone]
        for name in late:
            self.remove(name)
        return late

    def spare(self, now: float, heard: float) -> list[str]:
        """A member is heard after none was since `heard`: prolongs those whose time ran out meanwhile, and names them.

        It also prolongs all others that should have renewed since.
        """
        late = [name for name, alive in self._late(now) if alive.due >= heard and not self._is_alone]
        for alive in self._members.values() if late else ():
            if heard <= alive.due <= now:
                alive.deadline = now + alive.ttl
        return late

    @property
    def _is_alone(self) -> bool:
        # The store processes say nothing of who can be heard besides.
        return sum(alive.role != STORE for alive in self._members.values()) <= 1

    def _late(self, now: float) -> list[tuple[str, Alive]]:
        return [(name, alive) for name, alive in self._members.items() if alive.deadline <= now]

    def unwritable(self, why: str) -> None:
        """Nothing can be written for now, and why; "" when it can."""
        self._unwritable = why
        self.version += 1

    def unchangeable(self, why: str) -> None:
        """The same of records."""
        self._unchangeable = why
        self.version += 1

    def put(self, row: LeaseRow) -> None:
        """A lease has another holder, or was released."""
        self._rows[row.name] = row
        self.version += 1

    def is_free(self, name: str) -> bool:
        row = self._rows.get(name)
        return row is None or row.member not in self._members

    def is_alive(self, member: str) -> bool:
        """Whether it has renewed in time."""
        return member in self._members

    def held_by(self, member: str) -> list[LeaseRow]:
        """The leases of `member`, alive or not."""
        return [row for row in self._rows.values() if row.member == member]

    def next_deadline(self) -> float | None:
        """When the next member expires unless it renews; None without members."""
        return min((alive.deadline for alive in self._members.values()), default=None)

    def reply(self, role: str, ttl_ms: int, incarnation: int, known: int) -> KeepAliveReply:
        """The answer to a member of `role` that knows version `known`: without the table if nothing has changed."""
        reply = KeepAliveReply(ttl_ms=ttl_ms, incarnation=incarnation, version=self.version + self._weighed)
        if reply.version != known:
            reply.leases.extend(self._leases(role))
            reply.members.extend(self._alive(role))
        return reply

    def published(self, role: str) -> LeaseTable:
        """The table that watchers of `role` are sent."""
        return LeaseTable(
            leases=self._leases(role),
            members=self._alive(role),
            version=self.version,
            unwritable=self._unwritable,
            unchangeable=self._unchangeable,
        )

    def _leases(self, role: str) -> list[Lease]:
        leases = []
        for row in self._rows.values():
            holder = self._members.get(row.member)
            if holder and holder.role == role:
                lease = Lease(name=row.name, epoch=row.epoch, member=row.member, address=holder.address)
                if load := self._loads.get(row.name):
                    lease.load.CopyFrom(load)
                leases.append(lease)
        return leases

    def _alive(self, role: str) -> list[Member]:
        return [
            Member(member=name, role=role, address=alive.address)
            for name, alive in self._members.items()
            if alive.role == role
        ]
