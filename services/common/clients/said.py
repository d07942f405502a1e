"""What every owner of a partition is told once in each of its terms, on each stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink


class Said:
    """One thing that is told."""

    def __init__(self) -> None:
        self._said: dict[int, tuple[QueueLink, int]] = {}  # partition → to whom, and in which epoch

    def has(self, partition: int, epoch: int, link: QueueLink) -> bool:
        """Whether this owner was told in this term."""
        return self._said.get(partition) == (link, epoch)

    def add(self, partition: int, epoch: int, link: QueueLink) -> None:
        """It is told now."""
        self._said[partition] = link, epoch

    def forget(self, partition: int) -> None:
        """It is to be told again."""
        self._said.pop(partition, None)

    def forget_link(self, link: QueueLink) -> None:
        """Its stream is gone, and what was told on it."""
        self._said = {partition: said for partition, said in self._said.items() if said[0] is not link}
