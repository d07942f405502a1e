"""Changes in groups: what came while the store wrote is decided together and written at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from services.common.bus.events import UNHEARD, Events
from services.common.clock import monotonic
from services.common.containment import contained, for_each
from services.common.errors import BrokerError, Fenced, Unavailable
from services.common.topology.records import KINDS, Record, RecordKey
from services.router.events import tell
from services.router.lease import Lease
from services.router.record_store import RecordStore
from services.router.topology.effects import Effects
from services.router.topology.topology import Topology
from services.router.unreadable import name_unreadable
from services.router.watchers import Watchers

T = TypeVar("T")

_TURN = 0.01  # seconds in which changes are decided together; to compile one's selector may take as long


class Done(NamedTuple, Generic[T]):
    """A change is kept; whoever routes by `version` or a later one routes by it."""

    answer: T
    version: int


class _Asked(NamedTuple):
    decide: Callable[[Effects], Any]
    done: asyncio.Future[Any]
    asker: str


class Changes:
    """The one writer of the topology. Decides, has it kept, tells the watchers, in this order."""

    def __init__(
        self,
        topology: Topology,
        store: RecordStore,
        watchers: Watchers,
        lease: Lease,
        version: int,
        events: Events = UNHEARD,
    ) -> None:
        self._topology = topology
        self._store = store
        self._watchers = watchers
        self._lease = lease
        self._events = events
        self._asked: list[_Asked] = []
        self._wake = asyncio.Event()
        self._restore = False
        self._decided = 0  # of those that are carried out together now
        self._apart = 0  # so many are carried out one by one: one of them failed, and which is not known
        self.version = version
        """What watchers have been told; the topology itself may be ahead of it."""

    async def submit(self, decide: Callable[[Effects], T]) -> None:
        """Carries `decide` out and returns when its effects are kept; raises what it raises, or Unavailable."""
        answer, _ = await self.decided(decide)
        if isinstance(answer, BrokerError):
            raise answer

    async def decided(self, decide: Callable[[Effects], T], asker: str = "") -> Done[T | BrokerError]:
        """The same; what `decide` raises is an answer, which rests on what is not kept before that either.

        `asker`: the watcher that asks, if one does.
        """
        done: asyncio.Future[Done[T | BrokerError]] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(decide, done, asker))
        self._wake.set()
        return await done

    async def restore(self, lost: Mapping[RecordKey, Record] | None = None) -> None:
        """The topology is what the store has, and what it has lost; nothing else."""
        stored = {(record.kind, record.key): record.value for record in await self._store.list(KINDS)}
        missing = {key: record.value for key, record in (lost or {}).items() if key not in stored}
        said = [(*key, value) for some in (stored, missing) for key, value in some.items()]
        name_unreadable(self._topology.restore(said))
        if missing:
            self.restore_transient()

    def restore_transient(self) -> None:
        """The store has lost what it kept in memory: all of it is put again."""
        self._restore = True
        self._wake.set()

    async def run(self) -> None:
        """Works until cancelled; raises Fenced when another router writes."""
        while True:
            await self._wake.wait()
            await self._lease.wait_valid()
            self._wake.clear()
            batch, self._asked = self._asked, []
            try:
                await self._in_turns(batch)
            finally:
                for asked in batch:
                    if not asked.done.done():
                        asked.done.set_exception(Unavailable("the router stops"))

    async def _in_turns(self, batch: list[_Asked]) -> None:
        """Thousands of clients may ask for what takes long: watchers are heard, and the lease renewed, in between."""
        await self._put_again()
        while batch:
            batch = await self._carry_out(batch)
            await asyncio.sleep(0)
            if batch:
                await self._lease.wait_valid()
                await self._put_again()

    async def _carry_out(self, batch: list[_Asked]) -> list[_Asked]:
        """Together, and gives the rest; when that fails, each of these by itself, in turns of their own, and only who
        asked for what cannot be done hears that.
        """
        self._decided = 0
        try:
            rest = await self._together(batch)
        except Fenced:
            raise
        except Exception as fault:  # noqa: BLE001 - one request's, which is not known yet
            # It may have been carried out in part: nothing of it is in the store.
            await self.restore()
            self._tell_all_anew()
            if self._decided > 1:
                self._apart = self._decided
                return batch
            _refuse(batch[0], fault)
            rest = batch[1:]
        self._apart = max(self._apart - 1, 0)
        return rest

    async def _together(self, batch: list[_Asked]) -> list[_Asked]:
        """As many as have their time in one turn; gives the others."""
        effects, until = Effects(), monotonic() + _TURN
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        for asked in batch:
            self._decided += 1
            answers.append((asked.done, self._decide(asked, effects)))
            if self._apart or monotonic() >= until:
                break
        if effects.records:
            await self._store.put(effects.records)
        self._publish(effects, {asked.asker for asked in batch[: len(answers)]})
        for done, answer in answers:
            if not done.done():
                done.set_result(Done(answer, self.version))
        if effects.happened:  # whoever waits is answered first
            happened = partial(for_each, "telling the bus of a change", effects.happened)
            asyncio.get_running_loop().call_soon(happened, partial(tell, self._events))
        return batch[len(answers) :]

    def _tell_all_anew(self) -> None:
        """A watcher that came back meanwhile was told of what is undone: everybody comes back, for a whole snapshot."""
        self.version += 1
        self._watchers.close()

    def _publish(self, effects: Effects, askers: set[str]) -> None:
        """What is kept is told; nothing that hears of it can undo it."""
        effects.news.records = {key: record for key, record in effects.records.items() if key.kind in KINDS}
        if effects.news:
            self.version += 1
            self._watchers.publish(self.version, effects.news, askers)

    async def _put_again(self) -> None:
        """The store has everything when this returns, or says of what it will not have."""
        if not self._restore:
            return
        self._restore = False
        current = {key: record for key, record in self._topology.all_records() if record.transient}
        try:
            await self._store.put(current)
        except Fenced:
            raise
        except BrokerError as refusal:
            contained("putting transient records again", refusal)

    def _decide(self, asked: _Asked, effects: Effects) -> Any:  # noqa: ANN401 - whatever `decide` gives
        if asked.done.done():
            return None  # who asked has gone before anything was done
        try:
            return asked.decide(effects)
        except BrokerError as error:
            return error


def _refuse(asked: _Asked, fault: Exception) -> None:
    error = contained("a change of the topology", fault)
    if not asked.done.done():
        asked.done.set_exception(error)
