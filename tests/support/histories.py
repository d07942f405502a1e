"""Messages whose owners and gateways die at any moment, and what truly became of each: kept outside of the record.

Each message has a queue, a partition, a gateway and two queue processes of its own, so that many are one ledger. A
killed process takes with it the rows that it has not sent: those of its last quarter of a second. One that is too busy,
or whose bus is away, gives rows up, and tells later ones. Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from services.common.uid import SEQUENCE_BITS
from tests.support.ledger_rows import START, stage

Row = dict[str, Any]

END = 1000.0
_TOLD_EVERY = 0.25
_TAKEOVER = 5.0
_MISSED = 31.0
_NEVER = float("inf")

# By what is true: what may be said of it. What is unknown must have a gap to blame.
ALLOWED = {
    "settled": {"settled", "unknown"},
    "lost": {"lost (transient)", "unknown"},
    "waits": {"waiting", "unknown"},
    "held": {"unsettled", "unknown"},
    "never came": {"", "not_enqueued", "unknown"},
}


@dataclass
class History:
    """One message; `truth` is a key of ALLOWED."""

    number: int
    truth: str = ""
    rows: list[Row] = field(default_factory=list)
    gaps: list[Row] = field(default_factory=list)
    is_clear: bool = False
    """Whether the record says everything: neither the message nor a gateway was about when the owner died."""

    @property
    def queue(self) -> str:
        return f"q{self.number}"

    @property
    def uid(self) -> int:
        return self.number << SEQUENCE_BITS | 1  # its gateway gave it


def histories(count: int, seed: int, older: float = 0.2, busy: float = 0.0) -> list[History]:
    """So many of them; of a share of the gaps, as older releases file them, it is not on record since when they are.
    A share of the processes is `busy`.
    """
    random = Random(seed)
    return [_history(number, random, older, busy) for number in range(1, count + 1)]


@dataclass
class _Life:
    """One instance: what it does after its death it does not do, and what it did not tell is not on record."""

    instance: str
    dies: float
    told_until: float
    gives_up: tuple[float, float] | None = None  # what it saw between these times

    def does(self, at: float) -> bool:
        return at < self.dies

    def tells(self, at: float) -> bool:
        """Whether what it does then is on record."""
        given_up = self.gives_up is not None and self.gives_up[0] < at <= self.gives_up[1]
        return self.does(at) and at <= self.told_until and not given_up


def _life(instance: str, random: Random, *, mortal: float, busy: float) -> _Life:
    dies = random.uniform(1, 110) if random.random() < mortal else _NEVER
    life = _Life(instance, dies, dies - random.uniform(0, _TOLD_EVERY) if dies < _NEVER else _NEVER)
    if random.random() < busy:
        begin = random.uniform(0, 120)
        life.gives_up = begin, begin + random.uniform(0.1, 15)
        if life.gives_up[1] >= life.told_until:  # it is never heard of again
            life.told_until, life.gives_up = min(life.told_until, begin), None
    return life


def _history(number: int, random: Random, older: float, busy: float) -> History:
    found = History(number)
    gateway = _life(f"gateway-{number}", random, mortal=0.3, busy=busy)
    owner = _life(f"queue-{number}a", random, mortal=0.7, busy=busy)
    heir = _life(f"queue-{number}b", random, mortal=0.0, busy=busy)
    story = _Story(found, random, gateway, owner, heir)
    story.tell()
    for one in (gateway, owner, heir):
        if one.gives_up is not None:
            found.gaps.append(_gap(one, one.gives_up[1] + 0.5, one.gives_up[0], "given_up"))
        if one.dies < _NEVER:
            since = None if random.random() < older else one.told_until
            found.gaps.append(_gap(one, one.dies + _MISSED, since))
    followed = any(row["stage"] == "taken_over" for row in found.rows)
    found.is_clear = (
        gateway.dies == _NEVER
        and not any(gap["reason"] == "given_up" for gap in found.gaps)
        and (
            owner.dies == _NEVER
            or (followed and found.gaps[-1]["since"] is not None and story.enqueued < owner.dies - 1.6)
        )
    )
    return found


class _Story:
    def __init__(self, found: History, random: Random, gateway: _Life, owner: _Life, heir: _Life) -> None:
        self.found, self.random, self.gateway, self.owner, self.heir = found, random, gateway, owner, heir
        self.persistent = random.random() < 0.5
        self.enqueued = random.uniform(1, 100)
        if random.random() < 0.3 and owner.dies < _NEVER:
            self.enqueued = max(owner.dies - random.uniform(0, 1), 0.5)  # about when it dies
        self.on_disk = self.enqueued + random.uniform(0.005, 0.3) if self.persistent else _NEVER
        consumed = random.random() < 0.5
        self.delivered = self.enqueued + random.expovariate(1 / 10) if consumed else _NEVER
        self.settles = self.delivered + random.uniform(0.01, 20) if random.random() < 0.8 else _NEVER

    def tell(self) -> None:
        """Fills the history in."""
        gateway, owner = self.gateway, self.owner
        if not gateway.does(self.enqueued - 0.01) or not owner.does(self.enqueued):
            self.found.truth = "never came"
            self._by(gateway, "received", self.enqueued - 0.02)
            self._by(gateway, "routed", self.enqueued - 0.01)
            self._heir_comes(has=False)
            return
        self._by(gateway, "received", self.enqueued - 0.02)
        self._by(gateway, "routed", self.enqueued - 0.01)
        self._by(owner, "enqueued", self.enqueued, epoch=1)
        if self.persistent:
            self._by(owner, "persisted", self.on_disk, epoch=1)
        safe = self.on_disk if self.persistent else self.enqueued
        if owner.does(safe):
            self._by(gateway, "confirmed", safe + 0.005)
        self._consume()

    def _consume(self) -> None:
        gateway, owner = self.gateway, self.owner
        sent = self.delivered + 0.01
        reached = owner.does(self.delivered) and gateway.does(sent)
        self._by(owner, "delivered", self.delivered, epoch=1)
        if reached:
            self._by(gateway, "sent", sent)
        settled = reached and gateway.does(self.settles)
        if settled and owner.does(self.settles):
            self._by(owner, "settled", self.settles, epoch=1)
            self.found.truth = "settled"
            self._heir_comes(has=False)
            return
        if owner.dies < _NEVER:
            self._outlive(reached=reached, settled=settled)
        elif reached and gateway.dies == _NEVER:
            self.found.truth = "held"
        else:
            if owner.does(self.delivered) and self.delivered < _NEVER:
                self._by(owner, "requeued", max(gateway.dies, self.delivered) + 0.1, epoch=1, reason="consumer_gone")
            self.found.truth = "waits"

    def _outlive(self, *, reached: bool, settled: bool) -> None:
        """The owner died before it was settled."""
        kept = self.on_disk < self.owner.dies
        followed = self._heir_comes(has=kept)
        held = reached and self.gateway.dies == _NEVER
        if not kept:
            # Its consumer may settle it, and no row says so any more.
            self.found.truth = "settled" if reached else "lost"
        elif followed and held:
            at = self.owner.dies + _TAKEOVER + 0.1
            self._by(self.heir, "recovered", at, epoch=2, reason="held")
            if settled:
                self._by(self.heir, "settled", max(at + 0.1, self.settles), epoch=2)
            self.found.truth = "settled" if settled else "held"
        else:
            self.found.truth = "settled" if settled and held else "waits"

    def _heir_comes(self, *, has: bool) -> bool:
        if self.owner.dies == _NEVER or self.random.random() < 0.2:
            return False
        at = self.owner.dies + _TAKEOVER
        if has:
            self._by(self.heir, "recovered", at, epoch=2, reason="journal")
        nobody = {"queue": "", "count": 0, "first_uid": None, "last_uid": None, "uids": []}
        facts = {"partition": self.found.number, "epoch": 2, "instance": self.heir.instance}
        if self.heir.tells(at):
            row = len(self.found.rows) + 1
            self.found.rows.append({**stage("taken_over", 0, at=at), **facts, **nobody, "row": row})
        return True

    def _by(self, who: _Life, name: str, at: float, **facts: Any) -> None:
        """It happens if `who` is alive, and is on record if it was sent in time."""
        if at < _NEVER and who.tells(at):
            place = {"queue": self.found.queue, "partition": self.found.number}
            placed = {} if name in {"received", "confirmed"} else place
            row = len(self.found.rows) + 1
            made = stage(name, self.found.uid, at=at, instance=who.instance, row=row, **placed, **facts)
            self.found.rows.append(made)


def _gap(who: _Life, noticed: float, since: float | None, reason: str = "silent") -> Row:
    row = {"service": who.instance.partition("-")[0], "instance": who.instance, "first_row": 1, "last_row": 1}
    begin = None if since is None else START + timedelta(seconds=since)
    return {**row, "count": -1, "reason": reason, "time": START + timedelta(seconds=noticed), "since": begin}
