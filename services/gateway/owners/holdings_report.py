"""Tells new owners of partitions that everything that clients of this gateway hold has been reported."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.common.clients.publisher import Publisher
    from services.common.clients.queue_link import QueueLink
    from services.gateway.owners.used_queues import UsedQueues


class HoldingsReport:
    """A new owner delivers nothing before every gateway has reported: what is held must not be delivered again."""

    def __init__(self, publisher: Publisher, used: UsedQueues) -> None:
        self._publisher = publisher
        self._used = used
        self._epochs: dict[int, tuple[QueueLink, int]] = {}  # by partition

    def tell(self, untold: Container[int | None]) -> None:
        """Reports to each owner without a report yet, except for the partitions in `untold`, for which more follows."""
        told_one = False
        for partition, epoch, link in self._publisher.owners():
            if partition not in untold and self._epochs.get(partition) != (link, epoch):
                self._epochs[partition], told_one = (link, epoch), True
                link.told(partition, epoch, self._used.of(partition))
        if told_one:
            self._publisher.unpark_soon()

    def has(self, partition: int) -> bool:
        """Whether its owner has its report; true where none can be reached."""
        link, epoch = self._publisher.owner_in(partition)
        return link is None or self._epochs.get(partition) == (link, epoch)

    def forget(self, partition: int | None) -> None:
        """The partition's owner did not know yet that it is the owner: it is told again."""
        if partition is not None:
            self._epochs.pop(partition, None)

    def forget_link(self, link: QueueLink) -> None:
        """Another stream to a queue process begins: its owner is told again."""
        self._epochs = {partition: told for partition, told in self._epochs.items() if told[0] is not link}
