"""The partitions of this process: acquired as a fair share, read back, served, handed over, lost."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from services.common.clients.leases import Leases
from services.common.errors import BrokerError, Fenced
from services.common.partition import lease_name, partition_in
from services.queue.context import QueueContext
from services.queue.dead_letter_office import DeadLetterOffice
from services.queue.host import Host
from services.queue.journal_draft import PartitionDraft
from services.queue.partition import Partition, State
from services.queue.recovering import Recoveries, read_back
from services.queue.share import plan
from services.rpc import store_pb2

log = structlog.get_logger()

_RETRY_SECONDS = 0.2
_PATIENCE = 5.0  # with a store that does not answer, when this process is to stop


class Partitions:
    """Listens to the leases. `office` gets the dead letters, `store` is read from."""

    def __init__(self, host: Host, office: DeadLetterOffice, store: Recoveries, partitions: int) -> None:
        self._host = host
        self._office = office
        self._store = store
        self._count = partitions
        # Enough that a share has moved within about a time to live, few enough that clients hardly notice.
        self._moves = max(1, partitions // 8)
        self._leases: Leases | None = None
        self._leaving = False
        self._settled = asyncio.Event()  # has what it wants and serves it
        self._wanting = True

    async def start(self, leases: Leases) -> None:
        """Returns when this process is a member and serves whatever it was given at first."""
        self._leases = leases
        await leases.start()
        await self._settled.wait()

    async def stop(self) -> None:
        """Hands everything over: nothing more is taken, what was taken is on disk, then the leases go."""
        self._leaving = True
        partitions = list(self._host.registry.partitions.values())
        for partition in partitions:
            self._host.registry.suspend(partition)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._host.writer.drained()
        if self._leases:
            await self._leases.stop()
        for partition in partitions:
            self._lose(partition)

    # -------------------------------------------------------------- the leases say

    def renewed(self, held: dict[str, int], reply: store_pb2.KeepAliveReply) -> None:
        """As LeaseListener says."""
        epochs = {number: epoch for name, epoch in held.items() if (number := partition_in(name)) is not None}
        for partition in list(self._host.registry.partitions.values()):
            if epochs.get(partition.number) != partition.epoch:
                self._lose(partition)
        if not self._leaving:
            for number, epoch in epochs.items():
                if number not in self._host.registry.partitions:
                    self._gain(number, epoch)
            self._balance(set(epochs), reply)

    def validity_changed(self, *, valid: bool) -> None:
        """As LeaseListener says."""
        if not valid:
            log.warning("leases may have run out, everything waits until they are renewed")
        self._host.resume(valid=valid)

    def fenced(self, partition: Partition) -> None:
        """The store refused a write: somebody else has the partition."""
        if partition.state is not State.GONE:
            log.warning("partition was fenced", partition=partition.number, epoch=partition.epoch)
            self._lose(partition)

    # -------------------------------------------------------------- moves

    def _balance(self, mine: set[int], reply: store_pb2.KeepAliveReply) -> None:
        assert self._leases is not None
        taken = {number for lease in reply.leases if (number := partition_in(lease.name)) is not None}
        acquire, release = plan(self._count, mine, taken, len(reply.members), self._moves)
        self._wanting = bool(acquire)
        self._leases.acquire([lease_name(number) for number in acquire])
        self._check_settled()
        moving = [self._host.registry.partitions[number] for number in release]
        serving = [partition for partition in moving if partition.state is State.SERVING]
        if serving and len(serving) == len(moving):
            for partition in serving:
                self._host.registry.suspend(partition)
            self._host.tasks.start(self._hand_over(serving), "hand over partitions")

    async def _hand_over(self, partitions: list[Partition]) -> None:
        await self._host.writer.drained()
        log.info("partitions handed over", partitions=[partition.number for partition in partitions])
        assert self._leases is not None
        self._leases.release([lease_name(partition.number) for partition in partitions])

    def _gain(self, number: int, epoch: int) -> None:
        partition = self._new(number, epoch)
        self._host.registry.partitions[number] = partition
        self._host.tasks.start(self._recover(partition), f"recover partition {number}")

    def _new(self, number: int, epoch: int) -> Partition:
        writer, office = self._host.writer, self._office
        draft = PartitionDraft(lambda: writer.touch(partition))
        partition = Partition(
            number, epoch, QueueContext(self._host.account, draft, lambda: office.collect_from(partition))
        )
        return partition

    async def _recover(self, partition: Partition) -> None:
        while partition.state is State.RECOVERING:
            try:
                recovery = await read_back(self._host, self._store, partition)
            except Fenced:
                self._lose(partition)
            except BrokerError as failure:
                log.warning("partition not read back, trying again", partition=partition.number, reason=failure.text)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._serve(partition, recovery.watermarks)

    def _serve(self, partition: Partition, watermarks: dict[int, int]) -> None:
        if partition.state is not State.RECOVERING:
            return
        partition.watermarks = watermarks
        self._host.registry.serve(partition)
        partition.replay()
        self._host.check_memory()
        self._check_settled()

    def _check_settled(self) -> None:
        partitions = self._host.registry.partitions.values()
        if not self._wanting and all(partition.state is not State.RECOVERING for partition in partitions):
            self._settled.set()

    def _lose(self, partition: Partition) -> None:
        if partition.state is State.GONE:
            return
        self._host.registry.drop(partition)
        for link in self._host.links:
            link.outbox.frame.lost_partitions.append(partition.number)
        partition.replay()
