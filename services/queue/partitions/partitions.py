"""The partitions of this process: acquired as a fair share, read back, served, handed over, lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from functools import partial

import structlog

from services.common.clients.leases import Leases
from services.common.clients.partition_table import Owner
from services.common.clock import monotonic
from services.common.containment import contained, for_each
from services.common.errors import Fenced, Unavailable
from services.common.ledger.place import LedgerPlace
from services.common.partition import lease_name, partition_in
from services.common.remedies import SLOW, TRIED_AGAIN
from services.queue.dead_letters.office import DeadLetterOffice
from services.queue.host import Host
from services.queue.journal.known import Known
from services.queue.machine.context import QueueContext
from services.queue.machine.journal_draft import PartitionDraft
from services.queue.observe.traced_record import queue_record
from services.queue.partitions.gone import Gone
from services.queue.partitions.hand_over import Row, frames, in_order, unwritten
from services.queue.partitions.loads import Loads
from services.queue.partitions.partition import CLAIM_AT_MOST_MS, Partition, PartitionState, Prepared
from services.queue.partitions.recovering import Recoveries, put_back, read_back
from services.queue.partitions.share import Placement, View
from services.queue.partitions.sisters import Together
from services.rpc import store_pb2
from services.rpc.ledger_pb2 import HANDED_OVER

log = structlog.get_logger()

_RETRY_SECONDS = 0.2
_PATIENCE = 5.0  # with a store that does not answer, when this process is to stop; with transactions
_SHORTLY = 1.0  # to wait for gateways and dead letters, when a partition is to leave
_LOOK_SECONDS = 0.005
_LAST_WORDS = 0.1  # for answers on their way to gateways, before the leases go


class Partitions:
    """Listens to the leases. `office` gets the dead letters, `store` is read from; a share is left to those that start
    `together` with this process.
    """

    def __init__(
        self,
        host: Host,
        office: DeadLetterOffice,
        store: Recoveries,
        partitions: int,
        placement: Placement,
        together: Together,
    ) -> None:
        self._host = host
        self._office = office
        self._store = store
        self._count = partitions
        self._placement = placement
        self._gone = Gone(host.tasks)
        self._loads = Loads(host.registry.partitions, monotonic)
        # Enough that a share has moved within about a time to live, few enough that clients hardly notice.
        self._moves = max(1, partitions // 8)
        self._leases: Leases | None = None
        self._pins: Mapping[int, str] = {}
        self._joining = True
        self._leaving = False
        self._together = together
        self._moving: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # this process has its share and serves it
        self._wanting = True
        self._room = True  # the store's disk has some
        self._balanced: store_pb2.KeepAliveReply | None = None  # the reply by which nothing was to be moved

    async def join(self, leases: Leases) -> None:
        """Returns when the other queue processes know that this one is joining."""
        self._leases = leases
        self._host.leases_hold = leases.check
        leases.loads = self._loads.changed
        await leases.start()

    async def start(self, address: str) -> None:
        """Returns when this process, which others reach at `address`, serves its first share of partitions."""
        assert self._leases is not None
        self._joining = False
        # Partitions left to processes that have not joined by then are shared among the members that have.
        for seconds in self._together.begin(monotonic()):
            asyncio.get_running_loop().call_later(seconds + _LOOK_SECONDS, self._look_again)
        self._host.untold.expect_strangers()
        self._leases.serve_at(address)
        await self._settled.wait()

    async def stop(self) -> None:
        """Hands all partitions over: takes nothing more, waits until all is on disk and answered, ends the leases."""
        self._leaving = True
        partitions = list(self._host.registry.partitions.values())
        serving = [partition for partition in partitions if partition.state is PartitionState.SERVING]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                _tell(await self._hand_over(serving, _PATIENCE / 2))
                if self._moving:
                    await self._moving
        for partition in partitions:
            self._lose(partition)
        if self._host.links:
            # A gateway that learns of the end before it has its answers would resend to the next owner.
            await asyncio.sleep(_LAST_WORDS)
        if self._leases:
            await self._leases.stop()

    # -------------------------------------------------------------- the leases say

    def renewed(self, held: dict[str, int], reply: store_pb2.KeepAliveReply) -> None:
        """As LeaseListener says."""
        epochs = {number: epoch for name, epoch in held.items() if (number := partition_in(name)) is not None}
        for partition in list(self._host.registry.partitions.values()):
            if epochs.get(partition.number) != partition.epoch:
                self._lose(partition)
        if not self._leaving and not self._joining:
            self._gain(
                {number: epoch for number, epoch in epochs.items() if number not in self._host.registry.partitions}
            )
            if reply is not self._balanced:
                self._balance(reply)
        if self._host.suspended:
            # Only now, when it is known which partitions were lost meanwhile.
            for partition in self._host.registry.partitions.values():
                partition.wait_for_claims(self._host.now())
            self._host.resume(valid=True)

    def validity_changed(self, *, valid: bool) -> None:
        """As LeaseListener says."""
        if not valid:
            log.warning("leases may have run out, everything waits until they are renewed", do=SLOW)
            self._host.resume(valid=False)

    def fenced(self, partition: Partition) -> None:
        """The store refused a write: another process owns the partition."""
        if partition.state is not PartitionState.GONE:
            what = "another process has the partition, which is let go"
            log.warning(what, partition=partition.number, epoch=partition.epoch, do=SLOW)
            self._lose(partition)

    # -------------------------------------------------------------- moves

    def pin(self, pins: Mapping[int, str]) -> None:
        """Takes the pins: which partitions shall be with which members from now on."""
        self._pins, self._balanced = pins, None
        self._look_again()

    def owners_changed(self, owners: Mapping[int, Owner], *, room: bool = True) -> None:
        """Partitions have changed owners; one without an owner may be for this process, and its clients wait.

        `room`: whether the store has disk space for what is handed over; without it no partition is moved.
        """
        if self._leases:
            self._leases.heard_of((lease_name(number), owner.epoch) for number, owner in owners.items())
        grown, self._room = room and not self._room, room
        if grown or any(number not in owners for number in range(self._count)):
            self._look_again()

    def _look_again(self) -> None:
        if self._leases and not self._joining and not self._leaving:
            self._leases.refresh()

    def _view(self, me: str, reply: store_pb2.KeepAliveReply) -> View:
        owners = {number: lease.member for lease in reply.leases if (number := partition_in(lease.name)) is not None}
        members = {me, *(member.member for member in reply.members if member.address)}
        joined = {member.member for member in reply.members if not member.address}
        joining = self._together.joining(monotonic(), members, joined)
        loads = {number: lease.load.rate for lease in reply.leases if (number := partition_in(lease.name)) is not None}
        return View(self._count, owners, members, joining, self._pins, loads)

    def _balance(self, reply: store_pb2.KeepAliveReply) -> None:
        assert self._leases is not None
        me = self._leases.member
        view = self._view(me, reply)
        acquire, release = self._placement.plan(view, me, self._moves)
        self._wanting = bool(acquire)
        self._balanced = None if acquire or release or view.joining else reply
        self._leases.acquire([lease_name(number) for number in acquire])
        self._check_settled()
        moving = [self._host.registry.partitions[number] for number in release if self._room]
        if moving and (self._moving is None or self._moving.done()):
            self._moving = self._host.tasks.start(self._move(moving), "hand over partitions")

    async def _move(self, partitions: list[Partition]) -> None:
        """Hands over one after the other, so that each is without an owner as briefly as possible."""
        handed: list[int] = []
        for partition in partitions:
            if partition.state is PartitionState.SERVING and not self._leaving:
                handed += await self._hand_over([partition], _PATIENCE)
                assert self._leases is not None
                self._leases.release({lease_name(partition.number): partition.epoch})
        _tell(handed)

    async def _hand_over(self, partitions: list[Partition], patience: float) -> list[int]:
        """Waits `patience` seconds for what was begun, then for the store; gives the partitions handed over."""
        handed: list[int] = []
        for_each("recalling a partition", partitions, self._host.registry.suspend)
        await self._ended(partitions, patience)
        for partition in partitions:
            if partition.state is PartitionState.LEAVING and await self._write_out(partition):
                handed.append(partition.number)
                self._host.recorder.note(HANDED_OVER, LedgerPlace(partition=partition.number, epoch=partition.epoch))
                partition.replay()
        return handed

    async def _ended(self, partitions: list[Partition], patience: float) -> None:
        """Returns when no transaction is undecided, no dead letter on its first way, no settlement on its way here.

        A gateway that has heard that a queue leaves asks for it again, and keeps settlements until it is answered. One
        that has left says nothing again: what it was done with, and waits for its turn, is waited for. If a gateway
        does not send its decision of a transaction in time, the store aborts the transaction. While the store
        is away nothing could be written down either.
        """
        began = monotonic()
        while True:
            passed = monotonic() - began
            leaving = [partition for partition in partitions if partition.state is PartitionState.LEAVING]
            undecided = [each for partition in leaving for each in partition.undecided]
            if passed >= patience:
                for_each("having a transaction decided", undecided, _ask)
            on_their_way = any(partition.recalled or self._office.sends(partition) for partition in leaving)
            on_their_way = (on_their_way and passed < _SHORTLY) or (self._host.late.has_left and passed < patience)
            if not undecided and not on_their_way and self._host.certain:
                return  # not before leases hold: gateways' frames wait for them, and what has left says nothing again
            await asyncio.sleep(_LOOK_SECONDS)

    async def _write_out(self, partition: Partition) -> bool:
        """False when the partition was lost meanwhile, or not all of it was written; it is handed over all the same."""
        partition.state = PartitionState.WRITTEN
        rows = unwritten(partition, self._office.letters_of(partition))
        writing = asyncio.get_running_loop().create_task(self._write_all(partition, rows), name="write a partition out")
        try:
            await self._written(partition, rows, writing)
            return writing.done() and writing.result()
        except Exception as fault:  # noqa: BLE001 - no process serves the partition until it is given up
            contained("writing down what the next owner gets", fault, partition=partition.number)
            return False
        finally:
            writing.cancel()

    async def _written(self, partition: Partition, rows: list[Row], writing: asyncio.Task[bool]) -> None:
        """Returns when that is done, or the store has no room for it and every entry is on disk already.

        The partition is not served meanwhile, and only its consumers may be able to make room.
        """
        while not writing.done():
            await asyncio.wait((writing,), timeout=_PATIENCE)
            if not writing.done() and not self._room and all(row.entry.part is not None for row in rows):
                log.info(
                    "the store has no room for what is handed over, the next owner reads back what is on disk",
                    partition=partition.number,
                )
                return

    async def _write_all(self, partition: Partition, rows: list[Row]) -> bool:
        """Puts everything into the journal that is not there yet."""
        writer = self._host.writer
        await writer.drained()
        while_leaving = partial(_is_written, partition)
        if not await in_order(frames(partition, rows, self._host.take_id), writer.append, while_leaving):
            self.fenced(partition)
        return while_leaving()

    def _gain(self, epochs: Mapping[int, int]) -> None:
        if gained := {number: self._new(number, epoch) for number, epoch in epochs.items()}:
            self._host.registry.partitions.update(gained)
            self._read_back(list(gained.values()))

    def _read_back(self, partitions: list[Partition]) -> None:
        numbers = sorted(partition.number for partition in partitions)
        self._host.tasks.start(self._recover(partitions), f"read back partitions {numbers}")

    def _new(self, number: int, epoch: int) -> Partition:
        writer, office = self._host.writer, self._office
        draft = PartitionDraft(lambda: writer.touch(partition), self._host.take_id)
        journeys = self._host.journeys if self._host.journeys.tracer.on else None
        record_of = partial(queue_record, self._host.recorder, epoch, journeys)
        context = QueueContext(self._host.account, draft, lambda: office.collect_from(partition), record_of, epoch)
        context.on_timed = self._host.timed.set
        context.on_early = self._host.unheard.expect
        context.on_more = self._host.overfull.came
        partition = Partition(number, epoch, context, self._host.recorder, journeys)
        return partition

    async def _recover(self, left: list[Partition]) -> None:
        """Reads them back together; each is served as soon as all of it is there.

        What cannot be read may be one partition's alone: then each is read by itself, and the others are served.
        """
        while left := [each for each in left if each.state is PartitionState.RECOVERING and not self._leaving]:
            given, apart = set[Partition](), False
            try:
                async with contextlib.aclosing(read_back(self._host, self._store, left)) as found:
                    async for partition, known in found:
                        given.add(partition)
                        self._read(partition, known)
            except Fenced:  # which is about the first of them; of the others the next attempt tells
                for_each("giving a partition up", [each for each in left if each not in given][:1], self._lose)
            except Exception as failure:  # noqa: BLE001 - all that is for the partitions waits until they are served
                numbers = sorted(each.number for each in left if each not in given)
                contained("taking partitions over", failure, do=TRIED_AGAIN, partitions=numbers)
                await asyncio.sleep(_RETRY_SECONDS)
                apart = len(left) > 1 and not isinstance(failure, Unavailable)
            left = [each for each in left if each not in given]
            if apart:
                for partition in left:
                    self._read_back([partition])
                return

    def _read(self, partition: Partition, known: Known | None) -> None:
        if known is None:
            self._lose(partition)
        else:
            self._host.tasks.start(self._begin(partition, known), f"begin with partition {partition.number}")

    async def _begin(self, partition: Partition, known: Known) -> None:
        while partition.state is PartitionState.RECOVERING and not self._leaving:
            try:
                await put_back(self._host, partition)
                await self._heard(partition)
                self._serve(partition, known)
            except Exception as failure:  # noqa: BLE001 - all that is for the partition waits until it is served
                contained("taking a partition over", failure, do=TRIED_AGAIN, partition=partition.number)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _heard(self, partition: Partition) -> None:
        """Returns when every gateway has reported what its consumers hold from the former owner, or after a moment.

        In it leases hold, and no frame waits behind what was claimed of other partitions, or for what it needs.
        """
        host, give_up, at_most = self._host, monotonic() + _SHORTLY, monotonic() + CLAIM_AT_MOST_MS / 1000
        while partition.state is PartitionState.RECOVERING:
            now = monotonic()
            held_up = not host.certain or bool(host.claims) or self._are_late(partition)
            give_up = now + _SHORTLY if held_up else give_up
            at_most = at_most if host.certain else now + CLAIM_AT_MOST_MS / 1000
            is_over = now >= (at_most if held_up else give_up)
            if host.certain and (partition.epoch == 1 or is_over or self._have_told(partition)):
                return
            await asyncio.sleep(_LOOK_SECONDS / 2)

    def _are_late(self, partition: Partition) -> bool:
        return any(self._host.late.has_one_of(link.origin) for link in self._host.links if not link.has_told(partition))

    def _have_told(self, partition: Partition) -> bool:
        return not self._host.untold.misses_any and all(link.has_told(partition) for link in self._host.links)

    def _serve(self, partition: Partition, known: Known) -> None:
        if partition.state is not PartitionState.RECOVERING or self._leaving:
            return  # a message that is taken now would not be handed over
        partition.known, partition.served = known, monotonic()
        self._host.registry.serve(partition)
        partition.replay()
        for link in self._host.links:
            link.told.pass_on(partition, self._host.now())
        self._host.check_full()
        self._host.timed.set()
        self._check_settled()

    def _check_settled(self) -> None:
        partitions = self._host.registry.partitions.values()
        if not self._wanting and all(partition.state is not PartitionState.RECOVERING for partition in partitions):
            self._settled.set()

    def _lose(self, partition: Partition) -> None:
        if partition.state is PartitionState.GONE:
            return
        before = self._host.account.used
        self._host.registry.drop(partition)
        self._gone.told(before - self._host.account.used)
        for link in self._host.links:
            link.outbox.frame.lost_partitions.append(partition.number)
            link.outbox.frame.lost_terms.append(partition.epoch)
        partition.replay()


def _ask(transaction: Prepared) -> None:
    transaction.ask()


def _tell(handed: list[int]) -> None:
    if handed:
        log.info("partitions handed over", partitions=sorted(handed))


def _is_written(partition: Partition) -> bool:
    return partition.state is PartitionState.WRITTEN
